/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Matrix instructions: mma, wmma, ldmatrix, stmatrix, movmatrix. All lanes of
 * a warp take part. A group that holds all that live executes on its own rows;
 * otherwise its lanes are parked, as those of a shuffle are, and when all are
 * there their sources are put together in rows of their own.
 */
#include <stdio.h>

#include "sim/engine_fragment.h"
#include "sim/engine_lanes.h"
#include "sim/engine_synccheck.h"
#include "sim/engine_watch.h"

typedef const void *const *sources;
typedef void *const *sinks;

static void read_row(const void *from, bool wide, uint64_t *to) {
  for (unsigned l = 0; l < LANES; l++)
    to[l] = wide ? ((const uint64_t *)from)[l] : ((const uint32_t *)from)[l];
}

/* --- wmma.load, wmma.store ----------------------------------------------- */

/* Where a matrix lies: the address of each lane, and the steps in bytes. */
typedef struct area {
  uint64_t base[LANES];
  uint32_t stride[LANES]; /* from a row, or a column, to the next */
  unsigned size;          /* of what is moved at once */
  bool same;              /* for all lanes */
} area;

/* Whole bytes; of smaller elements the words that hold them. */
static unsigned moved_bytes(uint8_t type) {
  unsigned bits = tps_sim_element_bits(type);
  return bits < 8 ? 4 : bits / 8;
}

static void find_area(const matrix_site *s, sources in, area *a) {
  const uint32_t *strides = s->ins > s->c_at ? in[s->c_at] : NULL;
  unsigned bits = tps_sim_element_bits(s->d.type);
  uint32_t usual = s->transposed ? s->d.rows : s->d.cols;
  a->size = moved_bytes(s->d.type);
  if (bits < 8) usual *= 32 / bits;
  read_row(in[0], s->wide_in, a->base);
  uint64_t different = 0;
  for (unsigned l = 0; l < LANES; l++) {
    a->base[l] += (uint64_t)s->offset;
    a->stride[l] =
        (uint32_t)((uint64_t)(strides ? strides[l] : usual) * bits / 8);
    different |= (a->base[l] ^ a->base[0]) | (a->stride[l] ^ a->stride[0]);
  }
  a->same = different == 0;
}

/* An offset of elements in the matrix as one in memory. Offsets of a lane, a
 * register and an element in it add up: their columns never carry. */
static uint32_t offset_in(const matrix_site *s, const area *a, unsigned lane,
                          unsigned at) {
  unsigned shift = (unsigned)__builtin_ctz(s->d.cols); /* a power of two */
  unsigned row = at >> shift, col = at & (s->d.cols - 1u);
  unsigned major = s->transposed ? col : row;
  unsigned minor = s->transposed ? row : col;
  return major * a->stride[lane] + minor * a->size;
}

/* The whole matrix in host memory, if it lies in what was hit last. */
static unsigned char *whole(engine *e, const insn *i, const matrix_site *s,
                            const area *a, access_kind kind) {
  unsigned lines = s->transposed ? s->d.cols : s->d.rows;
  unsigned line = (s->transposed ? s->d.rows : s->d.cols) * a->size;
  uint64_t bytes = (uint64_t)(lines - 1) * a->stride[0] + line;
  bool local = false;
  if (!a->same || ((a->base[0] | a->stride[0]) & (a->size - 1))) return NULL;
  unsigned char *p =
      tps_sim_resolve(e, i, 0, a->base[0], a->size, kind, &local);
  const region *r =
      i->space == TPS_PTX_SHARED ? &e->shared : &e->slots[i->slot];
  uint64_t at = (uint64_t)(p - r->host);
  bool inside = p >= r->host && at < r->size && r->size - at >= bytes;
  return inside && !local ? p : NULL;
}

/* --- all lanes at once, in host memory */

/* The offsets in bytes of what lanes, registers, and elements in them add. */
typedef struct spots {
  uint32_t lane[LANES], reg[FRAGMENT_REGS], step;
  unsigned size, per; /* of what is moved at once; how often in a register */
} spots;

static void find_spots(const matrix_site *s, const area *a, spots *t) {
  const fragment *f = &s->d;
  for (unsigned l = 0; l < LANES; l++)
    t->lane[l] = offset_in(s, a, 0, f->lane[l]);
  for (unsigned r = 0; r < f->all; r++)
    t->reg[r] = offset_in(s, a, 0, f->reg[r]);
  t->step = offset_in(s, a, 0, f->step);
  t->size = a->size, t->per = a->size == 8 ? 1 : 4 / a->size;
  bool together = t->step == t->size && !((a->base[0] | a->stride[0]) & 3);
  if (t->per > 1 && together) t->size = 4, t->per = 1;
}

GUEST static void load_words(const spots *t, const unsigned char *from,
                             uint32_t *d) {
  for (unsigned l = 0; l < LANES; l++)
    d[l] = *(const uint32_t *)(const void *)(from + t->lane[l]);
}

/* Two elements of two bytes for each lane, `step` apart. */
GUEST static void load_halves(const spots *t, const unsigned char *from,
                              uint32_t *d) {
  for (unsigned l = 0; l < LANES; l++) {
    const uint16_t *low = (const void *)(from + t->lane[l]);
    const uint16_t *high = (const void *)(from + t->lane[l] + t->step);
    d[l] = *low | (uint32_t)*high << 16;
  }
}

static uint64_t load_parts(const spots *t, const unsigned char *from) {
  uint64_t value = 0;
  for (unsigned j = 0; j < t->per; j++)
    value |= load_atomic(from + j * t->step, t->size, __ATOMIC_RELAXED)
             << (8 * t->size * j);
  return value;
}

/* The last registers may be copies of the first ones. */
static void load_whole(const matrix_site *s, const spots *t,
                       const unsigned char *p, sinks out) {
  for (unsigned r = 0; r < s->d.regs; r++) {
    const unsigned char *from = p + t->reg[r];
    uint32_t *d = out[r];
    uint64_t *wide = out[r];
    if (t->size == 4) load_words(t, from, d);
    else if (t->size == 2) load_halves(t, from, d);
    else if (s->wide_out)
      for (unsigned l = 0; l < LANES; l++)
        wide[l] = load_parts(t, from + t->lane[l]);
    else
      for (unsigned l = 0; l < LANES; l++)
        d[l] = (uint32_t)load_parts(t, from + t->lane[l]);
  }
  for (unsigned r = s->d.regs; r < s->d.all; r++)
    memcpy(out[r], out[r % s->d.regs], LANES * sizeof(uint32_t));
}

GUEST static void store_words(const spots *t, unsigned char *to,
                              const uint32_t *v) {
  for (unsigned l = 0; l < LANES; l++)
    *(uint32_t *)(void *)(to + t->lane[l]) = v[l];
}

GUEST static void store_halves(const spots *t, unsigned char *to,
                               const uint32_t *v) {
  for (unsigned l = 0; l < LANES; l++) {
    *(uint16_t *)(void *)(to + t->lane[l]) = (uint16_t)v[l];
    *(uint16_t *)(void *)(to + t->lane[l] + t->step) = (uint16_t)(v[l] >> 16);
  }
}

static void store_parts(const spots *t, unsigned char *to, uint64_t value) {
  for (unsigned j = 0; j < t->per; j++)
    store_atomic(to + j * t->step, t->size, value >> (8 * t->size * j),
                 __ATOMIC_RELAXED);
}

static void store_whole(const matrix_site *s, const spots *t, unsigned char *p,
                        sources values) {
  for (unsigned r = 0; r < s->d.regs; r++) {
    unsigned char *to = p + t->reg[r];
    const uint32_t *v = values[r];
    const uint64_t *wide = values[r];
    if (t->size == 4) store_words(t, to, v);
    else if (t->size == 2) store_halves(t, to, v);
    else
      for (unsigned l = 0; l < LANES; l++)
        store_parts(t, to + t->lane[l], s->wide_out ? wide[l] : v[l]);
  }
}

/* --- element by element, with every check */

static uint64_t load_lane(engine *e, const insn *i, const area *a, unsigned l,
                          unsigned first) {
  const matrix_site *s = i->side;
  unsigned per = a->size == 8 ? 1 : 4 / a->size;
  uint64_t value = 0;
  for (unsigned j = 0; j < per; j++) {
    uint64_t p = a->base[l] + offset_in(s, a, l, first + j * s->d.step);
    value |= tps_sim_load(e, i, l, p, a->size) << (8 * a->size * j);
  }
  return value;
}

static void store_lane(engine *e, const insn *i, const area *a, unsigned l,
                       unsigned first, uint64_t value) {
  const matrix_site *s = i->side;
  unsigned per = a->size == 8 ? 1 : 4 / a->size;
  for (unsigned j = 0; j < per; j++) {
    uint64_t p = a->base[l] + offset_in(s, a, l, first + j * s->d.step);
    tps_sim_store(e, i, l, p, a->size, value >> (8 * a->size * j));
  }
}

static void load_matrix(engine *e, const insn *i, sources in, sinks out) {
  const matrix_site *s = i->side;
  const fragment *f = &s->d;
  area a;
  spots t;
  find_area(s, in, &a);
  const unsigned char *p = whole(e, i, s, &a, ACCESS_LOAD);
  if (p) {
    find_spots(s, &a, &t);
    load_whole(s, &t, p, out);
    return;
  }
  for (unsigned r = 0; r < f->all; r++)
    for (unsigned l = 0; l < LANES; l++) {
      uint64_t value = load_lane(e, i, &a, l, f->lane[l] + f->reg[r]);
      if (s->wide_out) ((uint64_t *)out[r])[l] = value;
      else ((uint32_t *)out[r])[l] = (uint32_t)value;
    }
}

static void store_matrix(engine *e, const insn *i, sources in) {
  const matrix_site *s = i->side;
  const fragment *f = &s->d;
  area a;
  spots t;
  find_area(s, in, &a);
  unsigned char *p = whole(e, i, s, &a, ACCESS_STORE);
  if (p) {
    find_spots(s, &a, &t);
    store_whole(s, &t, p, in + s->b_at);
    return;
  }
  for (unsigned r = 0; r < f->regs; r++)
    for (unsigned l = 0; l < LANES; l++) {
      const void *row = in[s->b_at + r];
      uint64_t value =
          s->wide_out ? ((const uint64_t *)row)[l] : ((const uint32_t *)row)[l];
      store_lane(e, i, &a, l, f->lane[l] + f->reg[r], value);
    }
}

/* --- ldmatrix, stmatrix, movmatrix --------------------------------------- */

/* The 16 bytes of a row, which a lane has the address of. */
static uint32_t *row_memory(engine *e, const insn *i, const uint64_t *address,
                            unsigned lane, access_kind kind) {
  const matrix_site *s = i->side;
  uint64_t p = address[lane] + (uint64_t)s->offset;
  const region *r = &e->shared;
  bool local = false;
  if (i->space == TPS_PTX_SHARED && p < r->size && r->size - p >= 16 &&
      p % 16 == 0)
    return (uint32_t *)(void *)(r->host + p);
  unsigned char *at = tps_sim_resolve(e, i, lane, p, 16, kind, &local);
  if (local)
    tps_sim_fault(e, i, (int)lane, TPS_ILLEGAL_ADDRESS,
                  "a matrix at address 0x%llx: local memory holds none",
                  (unsigned long long)p);
  return (uint32_t *)(void *)at;
}

/* The element in row r and column c of an 8 × 8 matrix, given as rows. */
static uint32_t half_of(uint32_t *const *rows, unsigned r, unsigned c) {
  uint32_t w = (uint32_t)load_atomic(rows[r] + c / 2, 4, __ATOMIC_RELAXED);
  return w >> (16 * (c & 1)) & 0xffff;
}

static void load_rows(engine *e, const insn *i, sources in, sinks out) {
  const matrix_site *s = i->side;
  uint64_t address[LANES];
  uint32_t *rows[LANES];
  read_row(in[0], s->wide_in, address);
  for (unsigned l = 0; l < 8u * s->outs; l++)
    rows[l] = row_memory(e, i, address, l, ACCESS_LOAD);
  for (unsigned t = 0; t < s->outs; t++) {
    uint32_t *d = out[t], *const *matrix = rows + 8 * t;
    for (unsigned l = 0; l < LANES; l++) {
      unsigned r = l >> 2, c = 2 * (l & 3);
      if (s->transposed)
        d[l] = half_of(matrix, c, r) | half_of(matrix, c + 1, r) << 16;
      else d[l] = (uint32_t)load_atomic(matrix[r] + c / 2, 4, __ATOMIC_RELAXED);
    }
  }
}

static void store_rows(engine *e, const insn *i, sources in) {
  const matrix_site *s = i->side;
  unsigned count = s->ins - 1u;
  uint64_t address[LANES];
  uint32_t *rows[LANES];
  read_row(in[0], s->wide_in, address);
  for (unsigned l = 0; l < 8 * count; l++)
    rows[l] = row_memory(e, i, address, l, ACCESS_STORE);
  for (unsigned t = 0; t < count; t++) {
    const uint32_t *v = in[1 + t];
    uint32_t *const *matrix = rows + 8 * t;
    for (unsigned l = 0; l < LANES; l++) {
      unsigned r = l >> 2, c = 2 * (l & 3);
      if (!s->transposed) {
        store_atomic(matrix[r] + c / 2, 4, v[l], __ATOMIC_RELAXED);
        continue;
      }
      for (unsigned k = 0; k < 2; k++)
        store_atomic((uint16_t *)(void *)matrix[c + k] + r, 2, v[l] >> (16 * k),
                     __ATOMIC_RELAXED);
    }
  }
}

static void transpose(sources in, sinks out) {
  const uint32_t *a = in[0];
  uint32_t d[LANES];
  for (unsigned l = 0; l < LANES; l++) {
    unsigned g = l >> 2, from = 8 * (l & 3) + g / 2, shift = 16 * (g & 1);
    d[l] = (a[from] >> shift & 0xffff) | (a[from + 4] >> shift) << 16;
  }
  memcpy(out[0], d, sizeof d);
}

/* --- for those who watch ------------------------------------------------- */

static void watch_matrix(engine *e, const insn *i, sources in,
                         watch_kind kind) {
  const matrix_site *s = i->side;
  const fragment *f = &s->d;
  area a;
  find_area(s, in, &a);
  unsigned per = a.size == 8 ? 1 : 4 / a.size;
  for (unsigned r = 0; r < f->regs; r++)
    for (unsigned j = 0; j < per; j++) {
      touch t = {.e = e, .i = i, .kind = (uint8_t)kind, .lanes = FULL};
      t.align = (uint8_t)a.size, t.bytes = a.size;
      for (unsigned l = 0; l < LANES; l++)
        t.at[l] = a.base[l] +
                  offset_in(s, &a, l, f->lane[l] + f->reg[r] + j * f->step);
      tps_sim_watch_lanes(&t, i->space);
    }
}

/* Rows of 8 × 8 matrices, each the business of the lane that has its address. */
static void watch_rows(engine *e, const insn *i, sources in, watch_kind kind,
                       unsigned count) {
  const matrix_site *s = i->side;
  touch t = {.e = e, .i = i, .kind = (uint8_t)kind, .align = 16, .bytes = 16};
  t.lanes = count == 4 ? FULL : (1u << 8 * count) - 1;
  read_row(in[0], s->wide_in, t.at);
  for (unsigned l = 0; l < LANES; l++) t.at[l] += (uint64_t)s->offset;
  tps_sim_watch_lanes(&t, i->space);
}

/* All lanes have met. */
static void watch(engine *e, const insn *i, sources in) {
  const matrix_site *s = i->side;
  tps_sim_watch_sync(e, SYNC_WARP, FULL, 0);
  switch (s->what) {
  case MATRIX_LOAD: watch_matrix(e, i, in, WATCH_LOAD); break;
  case MATRIX_STORE: watch_matrix(e, i, in, WATCH_STORE); break;
  case MATRIX_ROWS_LOAD: watch_rows(e, i, in, WATCH_LOAD, s->outs); break;
  case MATRIX_ROWS_STORE: watch_rows(e, i, in, WATCH_STORE, s->ins - 1u); break;
  default: break;
  }
}

/* --- the instruction ----------------------------------------------------- */

static void perform(engine *e, const insn *i, sources in, sinks out) {
  const matrix_site *s = i->side;
  if (e->launch->watch) watch(e, i, in);
  switch (s->what) {
  case MATRIX_MULTIPLY: tps_sim_multiply(s, in, out); break;
  case MATRIX_LOAD: load_matrix(e, i, in, out); break;
  case MATRIX_STORE: store_matrix(e, i, in); break;
  case MATRIX_ROWS_LOAD: load_rows(e, i, in, out); break;
  case MATRIX_ROWS_STORE: store_rows(e, i, in); break;
  default: transpose(in, out); break;
  }
}

/* Sources and results of lanes that do not stand together. */
typedef struct gathered {
  _Alignas(64) uint64_t in[MATRIX_INS][LANES];
  _Alignas(64) uint64_t out[MATRIX_OUTS][LANES];
  const void *sources[MATRIX_INS];
  void *sinks[MATRIX_OUTS];
} gathered;

static void copy_lanes(void *to, const void *from, bool wide, uint32_t lanes) {
  for (unsigned l = 0; l < LANES; l++) {
    if (!ON(lanes, l)) continue;
    if (wide) ((uint64_t *)to)[l] = ((const uint64_t *)from)[l];
    else ((uint32_t *)to)[l] = ((const uint32_t *)from)[l];
  }
}

/* Addresses may be wide where values are not. */
static bool is_wide_source(const matrix_site *s, unsigned k) {
  if (s->what == MATRIX_MULTIPLY || k == 0) return s->wide_in;
  return s->what == MATRIX_STORE && k >= s->b_at && s->wide_out;
}

static void gather(engine *e, gathered *g, const insn *i, const frame *f,
                   uint32_t lanes) {
  const matrix_site *s = i->side;
  for (unsigned k = 0; k < s->ins; k++)
    copy_lanes(g->in[k], row_of(e, f, s->in[k]), is_wide_source(s, k), lanes);
}

static void scatter(engine *e, const gathered *g, const insn *i, const frame *f,
                    uint32_t lanes) {
  const matrix_site *s = i->side;
  for (unsigned k = 0; k < s->outs; k++)
    copy_lanes(row_of(e, f, s->out[k]), g->out[k], s->wide_out, lanes);
}

static gathered *begin(gathered *g) {
  memset(g->in, 0, sizeof g->in);
  for (unsigned k = 0; k < MATRIX_INS; k++) g->sources[k] = g->in[k];
  for (unsigned k = 0; k < MATRIX_OUTS; k++) g->sinks[k] = g->out[k];
  return g;
}

/* Lanes as people count them: "lane 5", "lanes 0x0000fff0". */
static const char *lanes_text(uint32_t lanes, char *text, size_t size) {
  if (lanes & (lanes - 1)) snprintf(text, size, "lanes 0x%08x", lanes);
  else snprintf(text, size, "lane %d", __builtin_ctz(lanes));
  return text;
}

/* A GPU leaves it open what comes out then. */
static _Noreturn void by_part(engine *e, const insn *i, uint32_t lanes) {
  const function *f = tps_sim_function_of(e->launch->kernel, i);
  const tps_ptx_module *m = e->launch->kernel->code->module;
  const tps_ptx_instruction *p = &f->ptx->instructions[i->ptx];
  uint32_t never = ~e->warp->members, ended = ~lanes & e->warp->members;
  char text[64], more[32], whole[160];
  if (never)
    snprintf(whole, sizeof whole, "%s %s not exist in a block of %u threads",
             lanes_text(never, text, sizeof text),
             never & (never - 1) ? "do" : "does", e->launch->threads);
  else
    snprintf(whole, sizeof whole, "%s ended before",
             lanes_text(ended, text, sizeof text));
  if (never && ended) {
    size_t used = strlen(whole);
    snprintf(whole + used, sizeof whole - used, ", %s ended before",
             lanes_text(ended, more, sizeof more));
  }
  tps_sim_sync_fault(
      e, i, __builtin_ctz(lanes), TPS_LAUNCH_FAILED,
      "Divergent thread(s) in warp",
      "'%.*s' by part of warp %u, which takes all of its 32 lanes: "
      "%s",
      p->text_size > 100 ? 100 : (int)p->text_size, m->text + p->text,
      e->warp->index, whole);
}

static bool meets(const group *g, uint32_t key, uint32_t member) {
  return g->state == PARKED && g->key == key && g->member == member;
}

void tps_sim_matrix_meet(engine *e, warp *w, uint32_t key, uint32_t member) {
  gathered all;
  const insn *first = NULL;
  uint32_t lanes = 0;
  begin(&all);
  for (uint32_t k = 0; k < w->group_count; k++) {
    const group *g = &w->groups[k];
    if (!meets(g, key, member)) continue;
    if (!first) first = g->pc;
    gather(e, &all, g->pc, g->frame, g->mask);
    lanes |= g->mask;
  }
  if (!first) return;
  if (lanes != FULL) by_part(e, first, lanes);
  perform(e, first, all.sources, all.sinks);
  for (uint32_t k = 0; k < w->group_count; k++) {
    group *g = &w->groups[k];
    if (!meets(g, key, member)) continue;
    scatter(e, &all, g->pc, g->frame, g->mask);
    g->state = RUNS;
    g->pc++;
  }
}

/* All lanes of the warp stand here. */
static void at_once(engine *e, const insn *i) {
  const matrix_site *s = i->side;
  const void *in[MATRIX_INS];
  void *out[MATRIX_OUTS];
  for (unsigned k = 0; k < s->ins; k++) in[k] = row(e, s->in[k]);
  for (unsigned k = 0; k < s->outs; k++) out[k] = row(e, s->out[k]);
  perform(e, i, in, out);
}

static const insn *op_matrix(engine *e, const insn *i, uint32_t mask) {
  if (mask != FULL) {
    if (e->warp->live & ~mask) return tps_sim_park(e, i, mask);
    by_part(e, i, mask);
  }
  at_once(e, i);
  return i + 1;
}

void tps_sim_fill_matrix(handler **table);
void tps_sim_fill_matrix(handler **table) { table[H_matrix] = op_matrix; }
