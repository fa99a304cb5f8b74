/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What is written is known a byte exactly: global memory's bits lie with the
 * allocation (sim/written.h), those of a block's shared memory and of its threads'
 * stacks here. A load is told when none of the bytes of one of its elements was
 * written: programs may well read a structure with its padding.
 */
#include "sim/engine_initcheck.h"

#include <stdlib.h>

#include "sim/engine_atomic.h"
#include "sim/engine_finding.h"
#include "sim/engine_report.h"
#include "sim/engine_texture.h"

#define LEAST_STACK 256u
#define WIDE_SPAN 4096u /* costs more to look through than the lanes do */
#define SOME_ELEMENT 8u /* of accesses that have none of their own */

/* What a thread has written of its stack. */
typedef struct stack_bits {
  tps_sim_written *written;
  uint64_t bytes;
} stack_bits;

/* What an asynchronous copy reads, for what it writes. */
typedef struct source {
  const insn *i; /* NULL: nothing */
  unsigned lane;
  const tps_sim_written *written;
  uint64_t at, bytes;
} source;

typedef struct init_state {
  source source;
  uint64_t shared_bytes;
  tps_sim_written *shared; /* NULL: no memory, or none to watch */
  uint32_t threads;        /* of whole warps */
  stack_bits stacks[];
} init_state;

/* --- a launch and its blocks --------------------------------------------- */

static void *block_new(void *launch, struct tps_sim_block *block) {
  uint32_t threads = block->launch->warps * LANES;
  init_state *s = calloc(1, sizeof *s + threads * sizeof s->stacks[0]);
  (void)launch;
  if (!s) return NULL;
  s->threads = threads;
  s->shared_bytes = block->launch->shared_bytes;
  if (s->shared_bytes) s->shared = tps_sim_written_new(s->shared_bytes);
  block->watch->init = s;
  return s;
}

static void block_begin(void *launch, void *block) {
  init_state *s = block;
  (void)launch;
  s->source.i = NULL;
  tps_sim_written_clear(s->shared, 0, s->shared_bytes);
  for (uint32_t k = 0; k < s->threads; k++)
    tps_sim_written_clear(s->stacks[k].written, 0, s->stacks[k].bytes);
}

static void block_free(void *launch, void *block) {
  init_state *s = block;
  (void)launch;
  tps_sim_written_free(s->shared);
  for (uint32_t k = 0; k < s->threads; k++)
    tps_sim_written_free(s->stacks[k].written);
  free(s);
}

static void on_touch(void *launch, void *block, const touch *t);

const watch_part tps_sim_initcheck = {.wants = TPS_WATCH_INIT,
                                      .launch_new = tps_sim_watch_told_new,
                                      .launch_free = free,
                                      .block_new = block_new,
                                      .block_begin = block_begin,
                                      .block_free = block_free,
                                      .texels = true,
                                      .touch = on_touch};

/* --- telling ------------------------------------------------------------- */

/* Whether a path goes through a folder. */
static bool is_below(const char *path, const char *folder) {
  const char *at = path;
  while ((at = strstr(at, folder)) != NULL) {
    if (at == path || at[-1] == '/') return true;
    at++;
  }
  return false;
}

/* CUB fetches ahead of what it uses. */
static bool is_library(const touch *t) {
  char where[600];
  tps_sim_insn_where(t->e->launch->kernel, t->i, where, sizeof where);
  return is_below(where, "cub/") || is_below(where, "thrust/");
}

/* "texel (3,1,0) of a texture of 4 x 2 x 1" */
static void add_texel(finding *f, const touch *t, unsigned lane,
                      uint64_t address) {
  bool surface = t->i->op == H_suld || t->i->op == H_sured;
  const tps_sim_view *v = tps_sim_view_of(t->e, t->i, lane, surface);
  uint64_t at = address - v->array, row = at % v->slice_bytes;
  tps_sim_finding_add(f, "texel (%llu,%llu,%llu) of a %s of %llu x %llu x %llu",
                      (unsigned long long)(row % v->row_bytes / v->texel_bytes),
                      (unsigned long long)(row / v->row_bytes),
                      (unsigned long long)(at / v->slice_bytes),
                      surface ? "surface" : "texture",
                      (unsigned long long)v->shape.width,
                      (unsigned long long)tps_array_rows(&v->shape),
                      (unsigned long long)tps_array_slices(&v->shape));
}

static void tell(atomic_uchar *told, const touch *t, unsigned lane,
                 uint64_t offset, unsigned bytes) {
  static const char *const spaces[] = {"__global__", "__shared__", "__local__"};
  uint64_t address = offset;
  unsigned char bit = (unsigned char)(1u << t->place);
  char array[300];
  finding f;
  if (t->place == WATCH_GLOBAL) address += t->memory->base;
  told += t->i - t->e->launch->kernel->insns;
  if (t->place == WATCH_SHARED && is_library(t)) return;
  if (atomic_fetch_or(told, bit) & bit) return;
  tps_sim_finding_begin(&f, TPS_WATCH_INIT,
                        "Uninitialized %s memory read of size %u bytes",
                        spaces[t->place], bytes);
  tps_sim_finding_at(&f, t->e, t->i);
  tps_sim_finding_by(&f, t->e, t->e->warp, lane);
  tps_sim_finding_add(&f, "Address 0x%llx", (unsigned long long)address);
  if (t->texel) add_texel(&f, t, lane, address);
  if (t->place == WATCH_GLOBAL)
    tps_sim_finding_memory(&f, t->memory, address, bytes);
  if (t->place == WATCH_SHARED) {
    tps_sim_describe_shared(t->e->launch->kernel, t->owner->e.shared.size,
                            offset, array, sizeof array);
    tps_sim_finding_add(&f, "and is inside %s", array);
  }
  tps_sim_finding_tell(&f, t->e->launch->config.op);
}

/* --- accesses ------------------------------------------------------------ */

/* Objects of which only their own instructions know the content. */
static bool is_opaque(const touch *t) {
  switch (t->i->op) {
  case H_mbarrier_init:
  case H_mbarrier_inval:
  case H_mbarrier_arrive:
  case H_mbarrier_tx:
  case H_mbarrier_wait:
  case H_async_arrive: return true;
  case H_async_bulk: /* the mbarrier that it tells */
    return t->kind == WATCH_UPDATE && !(t->order & WATCH_ASYNC);
  default: return false;
  }
}

/* All of a texture's linear memory, of which the texels come one by one as well. */
static bool is_whole_texture(const touch *t) {
  return !t->texel && (t->i->op == H_tex || t->i->op == H_tld4);
}

static bool is_plain(const touch *t) {
  return t->i->op >= H_ld_u8_global && t->i->op <= H_st_any;
}

static bool is_copy(const touch *t) {
  return t->i->op == H_async_copy || t->i->op == H_async_bulk;
}

static uint64_t element_of(const touch *t) {
  const insn *i = t->i;
  if (is_copy(t) && t->kind == WATCH_LOAD) return t->bytes; /* see `copied` */
  if (is_copy(t)) return tps_sim_atomic_size((i->f - 1) >> 8);
  if (t->texel && t->kind == WATCH_LOAD && i->op != H_suld) return t->bytes;
  if (is_plain(t) || t->texel) return i->f & 255;
  return t->bytes < SOME_ELEMENT ? t->bytes : SOME_ELEMENT;
}

/* Tells of the first element of a lane that is all unwritten; false: none is. */
static bool check_lane(atomic_uchar *told, const touch *t, unsigned lane,
                       const tps_sim_written *w) {
  uint64_t element = element_of(t);
  for (uint64_t at = 0; at < t->bytes; at += element) {
    uint64_t offset = t->at[lane] + at;
    if (!tps_sim_written_none(w, offset, element)) continue;
    tell(told, t, lane, offset, (unsigned)element);
    return true;
  }
  return false;
}

/* What all lanes together span. */
static void span_of(const touch *t, uint64_t *first, uint64_t *bytes) {
  const uint64_t *at = t->at;
  uint64_t least = at[__builtin_ctz(t->lanes)], most = least;
  if (t->lanes == FULL) { /* vector code */
    for (unsigned l = 0; l < LANES; l++) {
      least = at[l] < least ? at[l] : least;
      most = at[l] > most ? at[l] : most;
    }
  } else {
    for (uint32_t m = t->lanes; m; m &= m - 1) {
      unsigned l = (unsigned)__builtin_ctz(m);
      least = at[l] < least ? at[l] : least;
      most = at[l] > most ? at[l] : most;
    }
  }
  *first = least;
  *bytes = most - least + t->bytes;
}

static void in_one(atomic_uchar *told, const touch *t, tps_sim_written *w,
                   bool reads, bool writes) {
  uint64_t first, bytes;
  span_of(t, &first, &bytes);
  /* The common cases: all is written, or one piece is. */
  if (bytes <= WIDE_SPAN && tps_sim_written_all(w, first, bytes)) return;
  for (uint32_t m = reads ? t->lanes : 0; m; m &= m - 1)
    if (check_lane(told, t, (unsigned)__builtin_ctz(m), w)) break;
  if (!writes) return;
  if (t->run) tps_sim_written_set(w, first, bytes);
  for (uint32_t m = t->run ? 0 : t->lanes; m; m &= m - 1)
    tps_sim_written_set(w, t->at[__builtin_ctz(m)], t->bytes);
}

/* A thread's bits, with room for `bytes`; NULL: no memory. */
static tps_sim_written *stack_of(stack_bits *s, uint64_t bytes) {
  uint64_t room = s->bytes ? s->bytes : LEAST_STACK;
  while (room < bytes) room *= 2;
  if (room == s->bytes) return s->written;
  tps_sim_written *wider = tps_sim_written_new(room);
  if (!wider) return NULL;
  if (s->written) tps_sim_written_copy(wider, 0, s->written, 0, s->bytes);
  tps_sim_written_free(s->written);
  s->written = wider;
  s->bytes = room;
  return wider;
}

static void in_stacks(init_state *s, atomic_uchar *told, const touch *t,
                      bool reads, bool writes) {
  uint32_t first = t->e->warp->index * LANES;
  for (uint32_t m = t->lanes; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    tps_sim_written *w = stack_of(&s->stacks[first + l], t->at[l] + t->bytes);
    if (reads && check_lane(told, t, l, w)) reads = false;
    if (writes) tps_sim_written_set(w, t->at[l], t->bytes);
  }
}

static tps_sim_written *written_of(const touch *t) {
  if (t->place == WATCH_GLOBAL) return t->memory->written;
  return t->owner->watch->init->shared;
}

/* Asynchronous copies take along what is known of each byte, but if nothing of the
 * source was written, which is told, and once is enough. */
static void copied(init_state *s, atomic_uchar *told, const touch *t) {
  unsigned lane = (unsigned)__builtin_ctz(t->lanes);
  tps_sim_written *w = written_of(t);
  source *from = &s->source;
  if (t->kind == WATCH_LOAD) {
    bool none = w && check_lane(told, t, lane, w);
    *from = (source){t->i, lane, none ? NULL : w, t->at[lane], t->bytes};
    return;
  }
  bool known = from->i == t->i && from->lane == lane;
  uint64_t bytes = known ? from->bytes : 0;
  tps_sim_written_set(w, t->at[lane] + bytes, t->bytes - bytes);
  if (known)
    tps_sim_written_copy(w, t->at[lane], from->written, from->at, bytes);
  if (t->i->op == H_async_copy) from->i = NULL; /* the next may read nothing */
}

static void on_special(init_state *s, atomic_uchar *told, const touch *t) {
  bool reads = t->kind != WATCH_STORE && !is_opaque(t);
  bool writes = t->kind != WATCH_LOAD || is_opaque(t);
  tps_sim_written *w = written_of(t);
  if (is_whole_texture(t)) return;
  if (is_copy(t) && t->kind != WATCH_UPDATE) copied(s, told, t);
  else if (w) in_one(told, t, w, reads, writes);
}

static void on_touch(void *launch, void *block, const touch *t) {
  bool reads = t->kind != WATCH_STORE, writes = t->kind != WATCH_LOAD;
  if (t->place == WATCH_LOCAL) {
    in_stacks(block, launch, t, reads, writes);
  } else if (is_plain(t)) {
    tps_sim_written *w = written_of(t);
    if (w) in_one(launch, t, w, reads, writes);
  } else {
    on_special(block, launch, t);
  }
}

/* --- new memory ---------------------------------------------------------- */

void tps_sim_init_stack(engine *e, uint32_t lanes, const uint64_t *at,
                        uint64_t bytes) {
  init_state *s = e->block->watch->init;
  if (!s || !bytes) return;
  for (uint32_t m = lanes; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    stack_bits *stack = &s->stacks[e->warp->index * LANES + l];
    tps_sim_written_clear(stack->written, at[l], bytes);
  }
}

void tps_sim_init_heap(const engine *e, tps_sim_allocation *a) {
  if (e->block->watch->init) a->written = tps_sim_written_new(a->size);
}
