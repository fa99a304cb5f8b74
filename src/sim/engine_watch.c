/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Between the watched code and those who watch: finds what an instruction is
 * about to touch, checks it as the instruction itself will, and passes it on. A
 * warp's contiguous access to one allocation, the common case, is checked as one.
 */
#include "sim/engine_synccheck.h"

#include <stdlib.h>

#include "sim/engine_shape.h"
#include "sim/engine_texture.h"

#define NO_OPERAND UINT32_MAX

/* --- who watches --------------------------------------------------------- */

static const watch_part *const all_parts[] = {
    &tps_sim_footprint, &tps_sim_race, &tps_sim_synccheck, &tps_sim_initcheck};

#define ALL_PARTS (sizeof all_parts / sizeof *all_parts)
_Static_assert(ALL_PARTS <= WATCH_PARTS, "room for every part");

void tps_sim_watch_launch_free(struct tps_sim_launch *launch) {
  struct tps_sim_watch *w = launch->watch;
  if (!w) return;
  for (uint32_t k = 0; k < w->count; k++)
    w->parts[k]->launch_free(w->states[k]);
  pthread_mutex_destroy(&w->turn);
  free(w);
  launch->watch = NULL;
}

void *tps_sim_watch_told_new(struct tps_sim_launch *launch) {
  return calloc(launch->kernel->insn_count + 1, sizeof(atomic_uchar));
}

static bool add_part(struct tps_sim_launch *launch, const watch_part *part) {
  struct tps_sim_watch *w = launch->watch;
  w->parts[w->count] = part;
  w->states[w->count] = part->launch_new(launch);
  w->alone |= part->alone;
  w->touches |= part->touch != NULL;
  w->texels |= part->texels;
  return w->states[w->count] != NULL && ++w->count > 0;
}

int tps_sim_watch_launch(struct tps_sim_launch *launch, tps_error *err) {
  unsigned wanted = tps_watched(TPS_WATCH_TOUCHES | TPS_WATCH_RACE |
                                TPS_WATCH_INIT | TPS_WATCH_BARRIER);
  if (!(wanted & TPS_WATCH_INIT)) tps_sim_written_miss();
  if (wanted == 0) return 0;
  int code = tps_sim_code_watched(launch->kernel, &launch->kernel, err);
  if (code) return code;
  launch->watch = calloc(1, sizeof *launch->watch);
  bool good = launch->watch != NULL;
  if (good) pthread_mutex_init(&launch->watch->turn, NULL);
  for (unsigned k = 0; good && k < ALL_PARTS; k++)
    if (all_parts[k]->wants & wanted) good = add_part(launch, all_parts[k]);
  if (good) return 0;
  return tps_fail(err, TPS_NO_HOST_MEMORY,
                  "out of host memory to watch a launch");
}

void tps_sim_launch_tell(tps_sim_launch *launch, tps_op *graph) {
  struct tps_sim_watch *w = launch->watch;
  if (!w || !launch->config.op) return;
  for (uint32_t k = 0; k < w->count; k++)
    if (w->parts[k]->launch_end)
      w->parts[k]->launch_end(w->states[k], launch->config.op, graph);
}

void tps_sim_watch_take_turn(struct tps_sim_watch *w) {
  if (w->alone) pthread_mutex_lock(&w->turn);
}

void tps_sim_watch_end_turn(struct tps_sim_watch *w) {
  if (w->alone) pthread_mutex_unlock(&w->turn);
}

bool tps_sim_watch_block(struct tps_sim_block *block) {
  struct tps_sim_watch *w = block->launch->watch;
  uint32_t slots = block->launch->kernel->slots;
  struct block_watch *b = block->watch = calloc(1, sizeof *b);
  bool good = b != NULL;
  if (good) good = (b->memory = calloc(slots + 1, sizeof(*b->memory))) != NULL;
  tps_sim_watch_take_turn(w);
  for (uint32_t k = 0; good && k < w->count; k++)
    if (w->parts[k]->block_new)
      good =
          (b->states[k] = w->parts[k]->block_new(w->states[k], block)) != NULL;
  if (!good && b) tps_sim_watch_block_free(block);
  tps_sim_watch_end_turn(w);
  return good;
}

void tps_sim_watch_block_begin(struct tps_sim_block *block) {
  struct tps_sim_watch *w = block->launch->watch;
  tps_sim_watch_take_turn(w);
  for (uint32_t k = 0; k < w->count; k++)
    if (w->parts[k]->block_begin)
      w->parts[k]->block_begin(w->states[k], block->watch->states[k]);
  tps_sim_watch_end_turn(w);
}

void tps_sim_watch_block_free(struct tps_sim_block *block) {
  const struct tps_sim_watch *w = block->launch->watch;
  struct block_watch *b = block->watch;
  for (uint32_t k = 0; k < w->count; k++)
    if (w->parts[k]->block_free && b->states[k])
      w->parts[k]->block_free(w->states[k], b->states[k]);
  free(b->memory);
  free(b);
  block->watch = NULL;
}

static void pass_on(const touch *t) {
  const struct tps_sim_watch *w = t->e->launch->watch;
  void *const *states = t->e->block->watch->states;
  for (uint32_t k = 0; k < w->count; k++)
    if (w->parts[k]->touch && (!t->texel || w->parts[k]->texels))
      w->parts[k]->touch(w->states[k], states[k], t);
}

void tps_sim_watch_sync(engine *e, unsigned what, uint32_t lanes,
                        unsigned number) {
  const struct tps_sim_watch *w = e->launch->watch;
  void *const *states = e->block->watch->states;
  for (uint32_t k = 0; k < w->count; k++)
    if (w->parts[k]->sync)
      w->parts[k]->sync(w->states[k], states[k], e, (watch_sync)what, lanes,
                        number);
}

void tps_sim_watch_phase(engine *e, const uint64_t *object) {
  const struct tps_sim_watch *w = e->launch->watch;
  void *const *states = e->block->watch->states;
  for (uint32_t k = 0; k < w->count; k++)
    if (w->parts[k]->phase) w->parts[k]->phase(w->states[k], states[k], object);
}

void *tps_sim_watch_state(const struct tps_sim_block *block, const void *mine) {
  const struct tps_sim_watch *w = block->launch->watch;
  for (uint32_t k = 0; k < w->count; k++)
    if (w->states[k] == mine) return block->watch->states[k];
  return NULL;
}

/* --- addresses ----------------------------------------------------------- */

/* Addresses of the instruction's lanes, its offset added. */
static void addresses_of(engine *e, const insn *i, const watch_site *s,
                         uint64_t *to) {
  uint64_t by = s->whole ? 0 : (uint64_t)i->imm;
  if (s->narrow) {
    const uint32_t *a = ROW(const uint32_t, i->a);
    EACH_LANE { to[l] = a[l] + by; }
  } else {
    const uint64_t *a = ROW(const uint64_t, i->a);
    EACH_LANE { to[l] = a[l] + by; }
  }
}

/* The word that holds an atomic byte counts as inside, as in engine_resolve.c. */
static bool fits_in(const touch *t, uint64_t at, uint64_t size) {
  if (at >= size || (at & (t->align - 1u)) != 0) return false;
  return size - at >= t->bytes || (t->bytes == 4 && t->order & WATCH_STRONG);
}

/* Whether all lanes are well inside; vector code. */
static bool all_inside(const touch *t, uint64_t size) {
  uint64_t most = 0, bits = 0;
  if (t->lanes != FULL) return false;
  EACH_LANE {
    most = t->at[l] > most ? t->at[l] : most;
    bits |= t->at[l];
  }
  return most < size && size - most >= t->bytes &&
         (bits & (t->align - 1u)) == 0;
}

/* Takes the lanes out of `t->lanes` whose bytes are not all in the region. */
static void keep_inside(touch *t, uint64_t size) {
  uint32_t good = 0;
  if (t->lanes == FULL && run32_u64(t->at, t->bytes)) {
    t->run = t->at[0] < size && size - t->at[0] >= LANES * t->bytes &&
             (t->at[0] & (t->align - 1u)) == 0;
    if (t->run) return;
  }
  if (all_inside(t, size)) return;
  for (uint32_t m = t->lanes; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    good |= (uint32_t)fits_in(t, t->at[l], size) << l;
  }
  t->lanes = good;
}

/* --- one place after the other ------------------------------------------- */

static void in_block(touch *t, struct tps_sim_block *owner) {
  t->place = WATCH_SHARED;
  t->owner = owner;
  t->host = owner->e.shared.host;
  keep_inside(t, owner->e.shared.size);
  if (t->lanes) pass_on(t);
}

/* Offsets whose upper bits name a block of the cluster. */
static void in_cluster(touch *t) {
  const cluster *c = t->e->block->cluster;
  uint32_t left = t->lanes;
  while (left) {
    touch part = *t;
    uint64_t rank = t->at[__builtin_ctz(left)] & RANK_MASK;
    uint32_t same = 0;
    EACH_LANE { same |= (uint32_t)((t->at[l] & RANK_MASK) == rank) << l; }
    part.lanes = same & left;
    left &= ~same;
    rank >>= RANK_SHIFT;
    if (rank > c->count) continue;
    EACH_LANE { part.at[l] &= ~RANK_MASK; }
    in_block(&part, rank ? c->blocks[rank - 1] : t->e->block);
  }
}

static void in_local(touch *t) {
  t->place = WATCH_LOCAL;
  t->host = NULL;
  keep_inside(t, t->e->launch->config.stack_bytes);
  if (t->lanes) pass_on(t);
}

static bool is_watchable(const tps_sim_allocation *m) {
  return m && m->kind < TPS_SIM_ARRAY && m->kind != TPS_SIM_CONSTANT &&
         atomic_load_explicit(&m->live, memory_order_relaxed);
}

/* The lanes of `t`, which holds addresses, that are in one allocation. */
static uint32_t in_memory(const touch *t, tps_sim_allocation *m) {
  touch part = *t;
  uint32_t inside = 0;
  part.place = WATCH_GLOBAL;
  part.memory = m;
  part.host = m->host;
  EACH_LANE {
    part.at[l] -= m->base;
    inside |= (uint32_t)(part.at[l] < m->size) << l;
  }
  inside &= t->lanes;
  part.lanes = inside;
  keep_inside(&part, m->size);
  if (part.lanes) pass_on(&part);
  return inside;
}

static void in_global(touch *t) {
  tps_sim_allocation **last = &t->e->block->watch->memory[t->i->slot];
  uint32_t left = t->lanes;
  tps_sim_allocation *m = *last;
  while (left) {
    uint64_t first = t->at[__builtin_ctz(left)];
    t->lanes = left;
    if (!is_watchable(m) || first - m->base >= m->size)
      m = tps_sim_find(t->e->launch->space, first);
    if (is_watchable(m)) {
      *last = m;
      left &= ~in_memory(t, m);
    } else {
      left &= left - 1; /* nothing there, or nothing of interest */
    }
  }
}

static uint32_t lanes_within(const touch *t, uint64_t base, uint64_t size) {
  uint32_t lanes = 0;
  EACH_LANE { lanes |= (uint32_t)(t->at[l] - base < size) << l; }
  return lanes & t->lanes;
}

static void in_window(const touch *t, uint32_t lanes, uint64_t base,
                      void (*place)(touch *t)) {
  touch part = *t;
  if (!lanes) return;
  part.lanes = lanes;
  EACH_LANE { part.at[l] -= base; }
  place(&part);
}

static void anywhere(const touch *t) {
  uint32_t shared = lanes_within(t, TPS_SIM_SHARED_BASE, TPS_SIM_SHARED_SIZE);
  uint32_t local = lanes_within(t, TPS_SIM_LOCAL_BASE, TPS_SIM_LOCAL_SIZE);
  uint32_t param = lanes_within(t, TPS_SIM_PARAM_BASE, TPS_SIM_PARAM_SIZE);
  in_window(t, shared, TPS_SIM_SHARED_BASE, in_cluster);
  in_window(t, local, TPS_SIM_LOCAL_BASE, in_local);
  in_window(t, t->lanes & ~(shared | local | param), 0, in_global);
}

static void in_space(touch *t, uint8_t space) {
  switch (space) {
  case TPS_PTX_SHARED: in_block(t, t->e->block); break;
  case TPS_PTX_SHARED_CLUSTER: in_cluster(t); break;
  case TPS_PTX_LOCAL: in_local(t); break;
  case TPS_PTX_GENERIC: anywhere(t); break;
  case TPS_PTX_GLOBAL: in_global(t); break;
  default: break;
  }
}

/* What one lane does to some bytes. */
typedef struct one {
  unsigned lane;
  watch_kind kind;
  unsigned order;
  const void *object;
} one;

static void touch_one(engine *e, const insn *i, one o, uint8_t space,
                      uint64_t address, uint64_t bytes) {
  touch t = {.e = e,
             .i = i,
             .kind = (uint8_t)o.kind,
             .order = (uint8_t)o.order,
             .lanes = 1u << o.lane,
             .align = 1,
             .bytes = bytes,
             .object = o.object};
  t.at[o.lane] = address;
  if (bytes) in_space(&t, space);
}

void tps_sim_watch_one(engine *e, const insn *i, unsigned lane, uint8_t space,
                       uint64_t address, uint64_t bytes, watch_kind kind,
                       unsigned order) {
  touch_one(e, i, (one){lane, kind, order, NULL}, space, address, bytes);
}

void tps_sim_watch_lanes(touch *t, uint8_t space) { in_space(t, space); }

/* --- instructions of their own kind -------------------------------------- */

#define EACH(m, l)                                                             \
  for (uint32_t m##_left = (m), l = 0;                                         \
       m##_left && (l = (uint32_t)__builtin_ctz(m##_left), true);              \
       m##_left &= m##_left - 1)

static void watch_copy(engine *e, const insn *i, uint32_t mask) {
  const uint64_t *to = row64(e, i->a), *from = row64(e, i->b);
  EACH(mask, l) {
    uint32_t bytes = i->count;
    if (i->c != NO_OPERAND) bytes = row32(e, i->c)[l];
    if (i->e != NO_OPERAND && ON(*mask_of(e, i->e), l)) bytes = 0;
    tps_sim_watch_one(e, i, l, i->space, from[l], bytes, WATCH_LOAD,
                      WATCH_ASYNC);
    tps_sim_watch_one(e, i, l, TPS_PTX_SHARED, to[l], i->count, WATCH_STORE,
                      WATCH_ASYNC);
  }
}

/* The mbarrier at an offset whose upper bits may name a block of the cluster; NULL:
 * there is none, which will be a fault. */
static const void *object_at(const engine *e, uint64_t at) {
  const cluster *c = e->block->cluster;
  uint64_t rank = (at & RANK_MASK) >> RANK_SHIFT, offset = at & ~RANK_MASK;
  if (rank > c->count) return NULL;
  const region *r = rank ? &c->blocks[rank - 1]->e.shared : &e->shared;
  return offset < r->size && r->size - offset >= 8 ? r->host + offset : NULL;
}

/* `keep` and `above` make the addresses those of a block of the cluster. */
static void watch_bulk_to(engine *e, const insn *i, unsigned l, uint64_t above,
                          uint64_t keep) {
  uint64_t to = (row64(e, i->a)[l] & keep) | above, at = 0;
  one o = {.lane = l,
           .kind = i->f ? WATCH_UPDATE : WATCH_STORE,
           .order = WATCH_ASYNC | (i->f ? WATCH_STRONG : 0)};
  if (i->e != NO_OPERAND) {
    at = (row64(e, i->e)[l] & keep) | above;
    o.object = object_at(e, at);
  }
  touch_one(e, i, o, i->space, to, row32(e, i->c)[l]);
  if (i->e != NO_OPERAND)
    tps_sim_watch_one(e, i, l, TPS_PTX_SHARED_CLUSTER, at, 8, WATCH_UPDATE,
                      WATCH_STRONG | WATCH_RELEASES);
}

/* To many blocks: each has an mbarrier of its own, and which of them tells that all
 * is read nobody knows; it counts as read at once. */
static void watch_bulk(engine *e, const insn *i, uint32_t mask) {
  EACH(mask, l) {
    bool many = i->d != NO_OPERAND;
    one o = {.lane = l,
             .kind = WATCH_LOAD,
             .order = many ? 0 : WATCH_ASYNC,
             .object = many || i->e == NO_OPERAND
                           ? NULL
                           : object_at(e, row64(e, i->e)[l])};
    touch_one(e, i, o, i->count, row64(e, i->b)[l], row32(e, i->c)[l]);
    uint32_t ranks = many ? row32(e, i->d)[l] & 0xffff : 0;
    if (!many) watch_bulk_to(e, i, l, 0, UINT64_MAX);
    EACH(ranks, r)
    watch_bulk_to(e, i, l, (uint64_t)(r + 1) << RANK_SHIFT, ~RANK_MASK);
  }
}

/* Bytes of a texture or surface, from its first texel. */
static void touch_texels(engine *e, const insn *i, one o, const tps_sim_view *v,
                         uint64_t at, uint64_t bytes) {
  tps_sim_allocation *m = tps_sim_find(e->launch->space, v->array);
  if (!m || !atomic_load_explicit(&m->live, memory_order_relaxed)) return;
  touch t = {.e = e,
             .i = i,
             .kind = (uint8_t)o.kind,
             .order = (uint8_t)o.order,
             .place = WATCH_GLOBAL,
             .texel = true,
             .align = 1,
             .lanes = 1u << o.lane,
             .bytes = bytes,
             .memory = m,
             .host = m->host};
  t.at[o.lane] = v->array - m->base + at;
  pass_on(&t);
}

static void watch_texels(engine *e, const insn *i, uint32_t mask) {
  EACH(mask, l) {
    const tps_sim_view *v = tps_sim_view_of(e, i, l, false);
    tps_sim_texels read = tps_sim_texels_read(e, i, l);
    one o = {.lane = l, .kind = WATCH_LOAD, .order = WATCH_STRONG};
    for (uint32_t k = 0; k < read.count; k++)
      touch_texels(e, i, o, v, read.at[k], v->texel_bytes);
  }
}

static void watch_surface(engine *e, const insn *i, watch_kind kind,
                          uint32_t mask) {
  EACH(mask, l) {
    uint64_t at;
    unsigned bytes;
    one o = {.lane = l, .kind = kind, .order = WATCH_STRONG};
    if (tps_sim_surface_touched(e, i, l, &at, &bytes))
      touch_texels(e, i, o, tps_sim_view_of(e, i, l, true), at, bytes);
  }
}

/* What texture instructions read counts as all of the linear memory below it;
 * arrays are nobody's memory to plain accesses. */
static void watch_texture(engine *e, const insn *i, uint32_t mask) {
  uint64_t last = 0;
  EACH(mask, l) {
    uint64_t handle = row64(e, i->a)[l];
    if (handle == last) continue;
    last = handle;
    const tps_sim_view *v = tps_sim_view_of(e, i, l, false);
    uint64_t rows = tps_array_rows(&v->shape);
    uint64_t bytes = v->shape.width * v->texel_bytes;
    if (rows > 1) bytes += (rows - 1) * v->row_bytes;
    tps_sim_watch_one(e, i, l, TPS_PTX_GLOBAL, v->array, bytes, WATCH_LOAD,
                      WATCH_STRONG);
  }
  if (e->launch->watch->texels) watch_texels(e, i, mask);
}

static watch_sync sync_of(const insn *i) {
  switch (i->op) {
  case H_fence: return SYNC_FENCE;
  case H_cluster_arrive: return SYNC_CLUSTER_ARRIVE;
  case H_cluster_wait: return SYNC_CLUSTER_WAIT;
  case H_async_commit: return i->imm ? SYNC_BULK_GROUP : SYNC_COPIES_GROUP;
  default: break;
  }
  if (i->imm & WAIT_READ) return SYNC_BULK_WAIT_READ;
  return i->imm & WAIT_BULK ? SYNC_BULK_WAIT : SYNC_COPIES_WAIT;
}

static void watch_sync_insn(engine *e, const insn *i, uint32_t mask) {
  tps_sim_watch_sync(e, sync_of(i), mask, i->op == H_async_wait ? i->f : 0);
}

/* --- the handlers -------------------------------------------------------- */

void tps_sim_watch_insn(engine *e, const insn *i, uint32_t mask) {
  const watch_site *s = &e->launch->kernel->sites[i - e->launch->kernel->insns];
  touch t;
  if (s->joins) tps_sim_sync_joins(e, i, e->group->mask);
  if (!e->launch->watch->touches) return;
  switch (i->op) {
  case H_async_copy: watch_copy(e, i, mask); return;
  case H_async_bulk: watch_bulk(e, i, mask); return;
  case H_tex:
  case H_tld4: watch_texture(e, i, mask); return;
  case H_suld:
  case H_sust:
  case H_sured:
    if (e->launch->watch->texels)
      watch_surface(e, i, (watch_kind)s->kind, mask);
    return;
  case H_fence:
  case H_async_commit:
  case H_async_wait:
  case H_cluster_arrive:
  case H_cluster_wait: watch_sync_insn(e, i, mask); return;
  default: break;
  }
  if (s->kind == WATCH_NOTHING) return;
  t.e = e, t.i = i;
  t.kind = s->kind, t.order = s->order;
  t.run = t.texel = false;
  t.lanes = mask;
  t.align = t.bytes = s->bytes;
  t.memory = NULL, t.owner = NULL, t.object = NULL;
  addresses_of(e, i, s, t.at);
  in_space(&t, i->space);
}

HANDLER(watched) {
  tps_sim_watch_insn(e, i, mask);
  return i->inner(e, i, mask);
}
/* Lanes that the guard leaves out are at the instruction, too. */
static const insn *watch_some(engine *e, const insn *i, uint32_t mask,
                              uint32_t on) {
  const watch_site *s = &e->launch->kernel->sites[i - e->launch->kernel->insns];
  if (on) {
    tps_sim_watch_insn(e, i, on);
    return i->inner(e, i, on);
  }
  if (s->joins) tps_sim_sync_joins(e, i, mask);
  return i + 1;
}
HANDLER(watched_if) {
  return watch_some(e, i, mask, mask & *mask_of(e, i->guard));
}
HANDLER(watched_unless) {
  return watch_some(e, i, mask, mask & ~*mask_of(e, i->guard));
}

void tps_sim_fill_watch(handler **table);
void tps_sim_fill_watch(handler **table) { WATCH_OPS(FILL) }
