/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Accesses against those before them, and the memory that they are of. */
#include "check/order.h"

#include <stdlib.h>
#include <string.h>

#define SWEEP_AT 256u /* pieces more than the last sweep left */

/* ---- the test ------------------------------------------------------------ */

#define TOLD 8u

typedef struct testing {
  tps_order *o;
  const tps_pending *p;
  tps_access_try attempt;
  const tps_origin
      *told[TOLD]; /* the operations it has no order with, the latest */
  unsigned count;
} testing;

static bool in_order(const tps_pending *p, const tps_visit *before) {
  return before->origin->refused || before->lane == p->visit.lane ||
         tps_clock_covers(p->clock, before->lane, before->seq) ||
         tps_clock_covers(p->host, before->lane, before->seq);
}

/* Two operations are told of once, whatever they have in common. */
static void report(testing *t, const tps_visit *before, uint64_t first,
                   uint64_t end) {
  for (unsigned i = 0; i < TOLD; i++)
    if (t->told[i] == before->origin) return;
  t->told[t->count++ % TOLD] = before->origin;
  if (!tps_order_report(t->o, before, &t->attempt, first, end))
    t->o->broken = true;
}

/* A plain write need not come after the one before: what was between them does, and
 * it after that. */
static void test(void *data, const tps_span *span, uint64_t first,
                 uint64_t end) {
  testing *t = data;
  uint8_t access = t->attempt.access;
  bool direct = true;
  for (uint32_t i = 0; i < span->count && direct; i++)
    direct = span->others[i].origin->refused;
  if ((access & TPS_ACCESS_READ) != 0) direct = true;
  if (direct && span->write.origin != NULL && !in_order(t->p, &span->write))
    report(t, &span->write, first, end);
  for (uint32_t i = 0; i < span->count; i++)
    if (tps_visits_conflict(span->others[i].access, access) &&
        !in_order(t->p, &span->others[i]))
      report(t, &span->others[i], first, end);
}

/* Nobody has to come after it any more. */
static bool covered(void *data, const tps_visit *visit) {
  const tps_clock *host = data;
  return tps_clock_covers(host, visit->lane, visit->seq);
}

/* Memory that was there before the checker. */
static tps_place *unknown_place(tps_order *o, uint64_t memory) {
  tps_place *place = calloc(1, sizeof *place);
  if (place == NULL || !tps_table_put(&o->places, memory, place)) {
    free(place);
    o->broken = true;
    return NULL;
  }
  place->id = memory;
  place->space = TPS_SPACE_OTHER;
  place->address = o->next_address;
  place->source = "";
  o->next_address += UINT64_C(1) << 44;
  return place;
}

static void access_bytes(testing *t, tps_spans *spans, uint64_t first,
                         uint64_t end) {
  const tps_pending *p = t->p;
  tps_spans_look(spans, first, end, test, t);
  if (p->visit.origin->kind == TPS_ORIGIN_HOST)
    return; /* what is queued later comes after it anyhow */
  tps_visit visit = p->visit;
  visit.access = t->attempt.access;
  uint8_t how = visit.access & (TPS_ACCESS_WRITE | TPS_ACCESS_STRONG);
  bool fine = how == TPS_ACCESS_WRITE
                  ? tps_spans_write(spans, first, end, &visit)
                  : tps_spans_add(spans, first, end, &visit, covered, p->host);
  if (!fine) t->o->broken = true;
}

/* What a device tells of has no memory, but an address. */
static void access_memory(testing *t, const tps_touch *touch) {
  tps_order *o = t->o;
  const tps_place *place = NULL;
  if (touch->bytes == 0 || touch->access == TPS_ACCESS_NONE) return;
  if (touch->memory != 0) {
    place = tps_table_get(&o->places, touch->memory);
    if (place == NULL) place = unknown_place(o, touch->memory);
    if (place == NULL) return;
  }
  tps_spans *spans =
      &o->spans[place != NULL ? place->space : (uint8_t)TPS_SPACE_SIM];
  uint64_t first = touch->first + (place != NULL ? place->address : 0);
  uint64_t end = first + touch->bytes;
  t->attempt = (tps_access_try){&t->p->visit, place, touch->access};
  if (touch->row == 0) access_bytes(t, spans, first, end);
  for (; touch->row > 0 && first < end; first += touch->pitch)
    access_bytes(t, spans, first, first + touch->row);
}

/* A view of a variable ends before the variable does. */
static void clear_memory(tps_order *o, uint64_t memory, int what) {
  const tps_place *place = tps_table_get(&o->places, memory);
  if (place == NULL ||
      (what == TPS_PENDING_FORGET && place->kind == TPS_MEMORY_BORROWED))
    return;
  if (place->bytes > 0 &&
      !tps_spans_clear(&o->spans[place->space], place->address,
                       place->address + place->bytes))
    o->broken = true;
}

/* One touch of the host's after the other, if it stands for several. */
static void access_again(tps_order *o, const tps_pending *p) {
  tps_touch touch = p->touches[0];
  for (uint64_t i = 0; i < p->again; i++) {
    testing t = {.o = o, .p = p};
    touch.first += p->step;
    access_memory(&t, &touch);
  }
}

void tps_access_run(tps_order *o, const tps_pending *p) {
  uint64_t memory = p->count > 0 ? p->touches[0].memory : 0;
  if (p->what != TPS_PENDING_OP) clear_memory(o, memory, p->what);
  if (p->what == TPS_PENDING_FORGET) free(tps_table_take(&o->places, memory));
  if (p->what != TPS_PENDING_OP || p->visit.origin->refused || o->broken)
    return;
  testing t = {.o = o, .p = p};
  for (uint32_t i = 0; i < p->count; i++) access_memory(&t, &p->touches[i]);
  if (p->again > 0) access_again(o, p);
}

bool tps_access_is_told(const tps_order *o, const tps_touch *touch) {
  const tps_place *place = tps_table_get(&o->places, touch->memory);
  return place != NULL && place->space != TPS_SPACE_OTHER;
}

/* ---- memory -------------------------------------------------------------- */

static void change_later(tps_order *o, int what, uint64_t memory) {
  tps_touch touch = {.memory = memory};
  tps_pending p = {.ready = true, .touches = &touch, .count = 1};
  p.what = what;
  tps_pending_take(o, &p);
}

static void made(tps_order *o, const tps_memory *memory) {
  tps_place *place = calloc(1, sizeof *place);
  free(tps_table_take(&o->places, memory->id));
  if (place == NULL || !tps_table_put(&o->places, memory->id, place)) {
    free(place);
    o->broken = true;
    return;
  }
  place->id = memory->id;
  place->bytes = memory->bytes;
  place->kind = memory->kind;
  place->captured = memory->captured;
  place->element = memory->element;
  place->source = memory->site.source != NULL ? memory->site.source : "";
  place->line = memory->site.line;
  if (memory->kind == TPS_MEMORY_ARRAY) {
    place->space = TPS_SPACE_OTHER;
    place->address = o->next_address;
    o->next_address += memory->bytes;
    return;
  }
  place->space =
      memory->device->kind == TPS_CUDA ? TPS_SPACE_CUDA : TPS_SPACE_SIM;
  place->address = memory->address;
}

/* It may be older than the checker. */
void tps_access_know(tps_order *o, const tps_memory *memory) {
  if (tps_table_get(&o->places, memory->id) == NULL) made(o, memory);
}

void tps_order_memory(tps_order *o, const tps_memory *memory,
                      tps_memory_change what) {
  bool own = memory->kind == TPS_MEMORY_DEVICE ||
             memory->kind == TPS_MEMORY_PINNED ||
             memory->kind == TPS_MEMORY_ARRAY;
  if (memory->bytes == 0) return;
  if (what == TPS_MEMORY_USED) {
    tps_access_know(o, memory);
  } else if (what == TPS_MEMORY_MADE) {
    made(o, memory);
    if (own && !o->broken) change_later(o, TPS_PENDING_CLEAR, memory->id);
  } else if (what == TPS_MEMORY_CAPTURED) {
    tps_place *place = tps_table_get(&o->places, memory->id);
    if (place != NULL) place->captured = true;
  } else if (what == TPS_MEMORY_SETTLED) {
    change_later(o, TPS_PENDING_CLEAR, memory->id);
  } else {
    change_later(o, TPS_PENDING_FORGET, memory->id);
  }
}

void tps_order_named(tps_order *o, const tps_memory *memory,
                     const char *element) {
  tps_place *place = tps_table_get(&o->places, memory->id);
  if (place != NULL) place->element = element;
}

/* ---- letting go ---------------------------------------------------------- */

void tps_access_sweep(tps_order *o) {
  size_t count = 0;
  if (o->graphs.count > o->graphs_kept * 2 + SWEEP_AT) {
    tps_points_forget(o, &o->graphs);
    o->graphs_kept = o->graphs.count;
  }
  for (int i = 0; i < TPS_SPACES; i++) count += o->spans[i].count;
  if (o->first != NULL || count < o->swept * 2 + SWEEP_AT) return;
  for (int i = 0; i < TPS_SPACES; i++)
    tps_spans_sweep(&o->spans[i], covered, o->host);
  o->swept = 0;
  for (int i = 0; i < TPS_SPACES; i++) o->swept += o->spans[i].count;
}
