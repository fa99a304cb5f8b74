/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Races inside a launch: one access and one cell. See engine_race.h.
 */
#include "sim/engine_lanes.h"
#include "sim/engine_race.h"

/* --- values -------------------------------------------------------------- */

/* The bytes that a plain store of the touch would put where the lane stores to;
 * false: it is no such store. */
static bool value_of(const touch *t, unsigned lane, unsigned char *to) {
  const insn *i = t->i;
  const uint32_t rows[4] = {i->d, i->b, i->c, i->e};
  if (i->op == H_st_128) {
    for (unsigned k = 0; k < 2; k++)
      memcpy(to + 8 * k, &row64(t->e, i->b + k * ROW64)[lane], 8);
    return true;
  }
  bool store = (i->op >= H_st_8_global && i->op <= H_stv_64_shared32) ||
               i->op == H_st_any;
  unsigned size = i->f & 255;
  if (!store) return false;
  for (unsigned k = 0; k < i->count; k++) {
    uint64_t v =
        size == 8 ? row64(t->e, rows[k])[lane] : row32(t->e, rows[k])[lane];
    memcpy(to + k * size, &v, size);
  }
  return true;
}

/* Whether lanes of one store that overlap agree. */
static bool same_as_lane(const touch *t, const unsigned char *value,
                         uint64_t from, unsigned bytes, unsigned other) {
  unsigned char theirs[64];
  if (!value_of(t, other, theirs)) return false;
  for (unsigned k = 0; k < bytes; k++) {
    uint64_t at = from + k - t->at[other];
    if (at < t->bytes && theirs[at] != value[k]) return false;
  }
  return true;
}

/* --- comparing ----------------------------------------------------------- */

/* Two writes of one value do no harm. */
GUEST static bool is_same_value(const visit *v, const mark *m) {
  const touch *t = v->t;
  unsigned char value[64];
  unsigned lane = mark_lane(&v->mark), other = mark_lane(m);
  uint64_t first = v->at > t->at[lane] ? v->at : t->at[lane];
  uint64_t end = v->at + v->bytes, last = t->at[lane] + t->bytes;
  if (end > last) end = last;
  if (t->kind != WATCH_STORE || t->bytes > 64 || !value_of(t, lane, value))
    return false;
  const unsigned char *ours = value + (first - t->at[lane]);
  bool together = m->who >> MARK_INSN == v->mark.who >> MARK_INSN &&
                  m->warp == v->mark.warp && ON(t->lanes, other) &&
                  t->at[other] < end && t->at[other] + t->bytes > first;
  if (together)
    return same_as_lane(t, ours, first, (unsigned)(end - first), other);
  for (uint64_t k = first; k < end; k++)
    if (t->host[k] != ours[k - first]) return false;
  return true;
}

static bool conflicts(const visit *v, const mark *m) {
  return m->now >= v->least && !tps_sim_race_knows(v->b, v->self, m);
}

static void against_write(const visit *v, const mark *m) {
  if (!conflicts(v, m)) return;
  bool plain = !(m->who & (MARK_UPDATE | MARK_FLYING));
  if (v->t->kind == WATCH_STORE && plain && is_same_value(v, m)) return;
  tps_sim_race_note(v->r, m, m->who & MARK_UPDATE ? WATCH_UPDATE : WATCH_STORE,
                    v->t, mark_lane(&v->mark), v->at);
}

static void against_read(const visit *v, const mark *m) {
  if (conflicts(v, m))
    tps_sim_race_note(v->r, m, WATCH_LOAD, v->t, mark_lane(&v->mark), v->at);
}

/* Whether the second of two reads makes room for the first, a third one being there.
 * A copy under way stays, since nothing but the wait for it makes it known. */
static bool gives_way(const visit *v, mark second, mark first) {
  if (second.now < v->least) return true;
  if (second.who & MARK_FLYING) return false;
  return first.warp != v->mark.warp || first.who & MARK_FLYING;
}

/* Keeps two reads that don't know of each other, of two warps if there are. */
static void leave_read(const visit *v, race_chunk *c, unsigned k) {
  mark new = v->mark, old = mark_at(&c->reads[0], k);
  bool flies = (old.who | new.who) & MARK_FLYING;
  if (old.warp == new.warp && old.now == new.now && !flies) {
    if ((old.who ^ new.who) & MARK_LANE || old.who & MARK_SEVERAL)
      new.who |= MARK_SEVERAL;
  } else if (old.now >= v->least && !tps_sim_race_knows(v->b, v->self, &old) &&
             tps_sim_race_second(v->r, c)) {
    /* of more than two the oldest gives way */
    if (gives_way(v, mark_at(&c->reads[1], k), old))
      mark_put(&c->reads[1], k, old);
  }
  mark_put(&c->reads[0], k, new);
}

static void read_cell(const visit *v, race_chunk *c, unsigned k) {
  mark write = {0, 0, 0};
  if (c->writes.now) write = mark_at(&c->writes, k);
  against_write(v, &write);
  if (v->strong) {
    c->strong[k].read = v->mark;
    return;
  }
  if (c->strong) against_write(v, &c->strong[k].write);
  leave_read(v, c, k);
}

static void against_reads(const visit *v, race_chunk *c, unsigned k) {
  for (unsigned n = 0; n < 2 && c->reads[n].now; n++) {
    mark m = mark_at(&c->reads[n], k);
    against_read(v, &m);
    if (!v->strong) c->reads[n].now[k] = 0;
  }
}

/* What a plain write has been compared with need not be compared with again:
 * whatever comes later is compared with the write. */
static void write_cell(const visit *v, race_chunk *c, unsigned k) {
  mark write = {0, 0, 0};
  if (c->writes.now) write = mark_at(&c->writes, k);
  against_write(v, &write);
  against_reads(v, c, k);
  if (v->strong) {
    c->strong[k].write = v->mark;
    return;
  }
  if (c->strong) {
    against_write(v, &c->strong[k].write);
    against_read(v, &c->strong[k].read);
    c->strong[k].write.now = c->strong[k].read.now = 0;
  }
  mark_put(&c->writes, k, v->mark);
}

void tps_sim_race_visit(const visit *v, race_chunk *c, unsigned k) {
  if (v->t->kind == WATCH_LOAD) read_cell(v, c, k);
  else write_cell(v, c, k);
}

void tps_sim_race_order(const visit *v, race_chunk *c, unsigned k) {
  release *at = &c->strong[k].release;
  if (at->now < v->least) memset(at, 0, sizeof *at);
  if (v->told) tps_sim_race_leave(at, v->told);
  if (v->t->order & WATCH_ACQUIRES && at->now)
    tps_sim_race_acquire(v->b, v->self, at);
  if (v->t->kind != WATCH_LOAD) tps_sim_race_release(v->b, v->self, at);
}
