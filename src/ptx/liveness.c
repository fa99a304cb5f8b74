/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * How many 32-bit registers a function needs at once: live ranges by the usual
 * backward data flow over basic blocks. Only registers that live across blocks
 * get a bit in the sets; compiled code has few of those.
 */
#include <stdlib.h>
#include <string.h>

#include "ptx/uses.h"

#define MOST_WORDS ((uint64_t)1 << 24)
#define MOST_STEPS ((uint64_t)1 << 26)

typedef struct block {
  uint32_t first, end; /* instructions */
  int32_t next[2];     /* blocks, or -1; brx: its table besides */
  int32_t table;
} block;

typedef struct flow {
  const tps_ptx_function *f;
  block *blocks;
  uint32_t block_count;
  int32_t *block_of; /* block that begins at an instruction, or -1 */
  int32_t *bit_of;   /* bit of a register, or -1 */
  int32_t *reg_of;   /* the reverse */
  uint32_t bit_count, words;
  uint64_t *in;        /* words for each block: live at its begin */
  uint32_t *stamp;     /* of a register: last block that wrote it, + 1 */
  uint8_t *live;       /* of a register that lives in one block only */
  uint64_t *live_bits; /* of the others */
  uint32_t now, most;  /* 32-bit registers live */
  uint32_t block;      /* being walked */
  uint64_t steps;      /* words looked at and registers made live */
} flow;

/* --- blocks */

static bool ends_block(const tps_ptx_instruction *i) {
  return i->op == TPS_PTX_OP_BRA || i->op == TPS_PTX_OP_BRX ||
         i->op == TPS_PTX_OP_RET || i->op == TPS_PTX_OP_EXIT ||
         i->op == TPS_PTX_OP_TRAP;
}

static void mark_targets(flow *w) {
  const tps_ptx_function *f = w->f;
  memset(w->block_of, 0xff, (f->instruction_count + 1) * sizeof(int32_t));
  w->block_of[0] = 0;
  for (uint32_t k = 0; k < f->instruction_count; k++) {
    const tps_ptx_instruction *i = &f->instructions[k];
    if (ends_block(i)) w->block_of[k + 1] = 0;
    if (i->op == TPS_PTX_OP_BRA) w->block_of[i->operands[0].index] = 0;
  }
  for (uint32_t t = 0; t < f->table_count; t++)
    if (f->tables[t].kind == TPS_PTX_BRANCH_TARGETS)
      for (uint32_t k = 0; k < f->tables[t].target_count; k++)
        w->block_of[f->tables[t].targets[k]] = 0;
}

static void link_block(flow *w, block *b) {
  const tps_ptx_instruction *last = &w->f->instructions[b->end - 1];
  bool stops = ends_block(last) && last->guard < 0;
  b->next[0] =
      stops || b->end >= w->f->instruction_count ? -1 : w->block_of[b->end];
  b->next[1] =
      last->op == TPS_PTX_OP_BRA ? w->block_of[last->operands[0].index] : -1;
  b->table = last->op == TPS_PTX_OP_BRX ? last->operands[1].index : -1;
}

static void make_blocks(flow *w) {
  uint32_t count = w->f->instruction_count;
  for (uint32_t k = 0; k < count; k++) {
    if (w->block_of[k] < 0) continue;
    w->block_of[k] = (int32_t)w->block_count;
    if (w->block_count > 0) w->blocks[w->block_count - 1].end = k;
    w->blocks[w->block_count++] = (block){.first = k, .end = count};
  }
  for (uint32_t b = 0; b < w->block_count; b++) link_block(w, &w->blocks[b]);
}

/* --- registers that live across blocks */

static void find_global(void *context, int32_t reg) {
  flow *w = context;
  if (w->stamp[reg] == w->block + 1 || w->bit_of[reg] >= 0) return;
  w->reg_of[w->bit_count] = reg;
  w->bit_of[reg] = (int32_t)w->bit_count++;
}

static void note_written(void *context, int32_t reg) {
  flow *w = context;
  w->stamp[reg] = w->block + 1;
}

static void find_globals(flow *w) {
  const tps_ptx_function *f = w->f;
  memset(w->bit_of, 0xff, f->register_count * sizeof(int32_t));
  for (w->block = 0; w->block < w->block_count; w->block++) {
    const block *b = &w->blocks[w->block];
    for (uint32_t k = b->first; k < b->end; k++) {
      tps_ptx_each_use(f, &f->instructions[k], find_global, w);
      if (f->instructions[k].guard < 0)
        tps_ptx_each_definition(f, &f->instructions[k], note_written, w);
    }
  }
  w->words = (w->bit_count + 63) / 64;
}

/* --- data flow */

static unsigned units(const flow *w, int32_t reg) {
  uint8_t type = w->f->registers[reg].type;
  if (type == TPS_PTX_PRED) return 0;
  return (tps_ptx_type_size(type) + 3) / 4;
}

static bool set_live(flow *w, int32_t reg, bool live) {
  int32_t bit = w->bit_of[reg];
  bool was = w->live[reg];
  if (bit < 0) {
    w->live[reg] = live;
    return was;
  }
  uint64_t *word = &w->live_bits[bit / 64], mask = (uint64_t)1 << bit % 64;
  was = (*word & mask) != 0;
  *word = live ? *word | mask : *word & ~mask;
  return was;
}

static void make_live(void *context, int32_t reg) {
  flow *w = context;
  if (set_live(w, reg, true)) return;
  w->now += units(w, reg);
  if (w->now > w->most) w->most = w->now;
}

static void make_dead(void *context, int32_t reg) {
  flow *w = context;
  if (set_live(w, reg, false)) w->now -= units(w, reg);
}

/* What is live at the end of a block, made live. */
static void join(flow *w, int32_t successor) {
  if (successor < 0) return;
  const uint64_t *set = w->in + (size_t)successor * w->words;
  for (uint32_t i = 0; i < w->words; i++) {
    uint64_t rest = set[i] & ~w->live_bits[i];
    w->steps += 1 + (uint64_t)__builtin_popcountll(rest);
    for (; rest != 0; rest &= rest - 1)
      make_live(w, w->reg_of[i * 64 + (uint32_t)__builtin_ctzll(rest)]);
  }
}

static void join_successors(flow *w, const block *b) {
  join(w, b->next[0]);
  join(w, b->next[1]);
  if (b->table < 0) return;
  const tps_ptx_table *t = &w->f->tables[b->table];
  w->steps += t->target_count;
  for (uint32_t k = 0; k < t->target_count && w->steps < MOST_STEPS; k++)
    join(w, w->block_of[t->targets[k]]);
}

static void walk(flow *w, const block *b) {
  const tps_ptx_function *f = w->f;
  for (uint32_t k = b->end; k-- > b->first;) {
    const tps_ptx_instruction *i = &f->instructions[k];
    if (i->guard < 0) tps_ptx_each_definition(f, i, make_dead, w);
    tps_ptx_each_use(f, i, make_live, w);
  }
}

/* Takes what is live now as the set of the block, and makes it dead. True when
 * the set has grown. */
static bool store(flow *w, uint32_t number) {
  uint64_t *set = w->in + (size_t)number * w->words;
  bool grown = false;
  for (uint32_t i = 0; i < w->words; i++) {
    grown |= (w->live_bits[i] & ~set[i]) != 0;
    set[i] |= w->live_bits[i];
    w->live_bits[i] = 0;
  }
  w->now = 0;
  return grown;
}

/* Backwards until nothing changes. The last round has seen every set in its
 * final state, so its counts are right; earlier ones only saw less. A text made
 * to be slow gets an answer that is too low, and false. */
static bool solve(flow *w) {
  bool grown = true;
  while (grown && w->steps < MOST_STEPS) {
    grown = false;
    for (w->block = w->block_count; w->block-- > 0 && w->steps < MOST_STEPS;) {
      const block *b = &w->blocks[w->block];
      join_successors(w, b);
      walk(w, b);
      w->steps += b->end - b->first + w->words;
      grown |= store(w, w->block);
    }
  }
  return !grown && w->steps < MOST_STEPS;
}

/* The sets: one row for each block, and one for the walk. */
static bool make_sets(flow *w) {
  size_t size = ((size_t)w->block_count + 1) * w->words;
  w->in = calloc(size + 1, sizeof *w->in);
  if (w->in == NULL) return false;
  w->live_bits = w->in + (size_t)w->block_count * w->words;
  return true;
}

static bool make_tables(flow *w) {
  size_t count = w->f->instruction_count, registers = w->f->register_count;
  w->blocks = calloc(count + 1, sizeof *w->blocks);
  w->block_of = calloc(count + 1, sizeof *w->block_of);
  w->bit_of = calloc(registers + 1, sizeof *w->bit_of);
  w->reg_of = calloc(registers + 1, sizeof *w->reg_of);
  w->stamp = calloc(registers + 1, sizeof *w->stamp);
  w->live = calloc(registers + 1, 1);
  return w->blocks && w->block_of && w->bit_of && w->reg_of && w->stamp &&
         w->live;
}

/* All registers at once, where the sets would be too large. */
static uint32_t all_units(const flow *w) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < w->f->register_count; i++)
    sum += units(w, (int32_t)i);
  return sum;
}

/* What lives where the function begins is read before it is written. */
static void mark_unset(const flow *w, uint8_t *unset) {
  for (uint32_t i = 0; i < w->bit_count; i++)
    if (w->in[i / 64] >> i % 64 & 1) unset[w->reg_of[i]] = 1;
}

uint32_t tps_ptx_register_demand(const tps_ptx_function *f, uint8_t *unset,
                                 bool *memory) {
  flow w = {.f = f};
  bool solved = false;
  *memory = make_tables(&w);
  if (*memory) {
    mark_targets(&w);
    make_blocks(&w);
    find_globals(&w);
    if ((uint64_t)w.block_count * w.words > MOST_WORDS) w.most = all_units(&w);
    else if ((*memory = make_sets(&w))) solved = solve(&w);
  }
  if (solved) mark_unset(&w, unset);
  else memset(unset, 1, f->register_count);
  free(w.blocks);
  free(w.block_of);
  free(w.bit_of);
  free(w.reg_of);
  free(w.stamp);
  free(w.live);
  free(w.in);
  return w.most;
}
