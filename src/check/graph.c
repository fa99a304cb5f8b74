/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A graph's launch: its nodes are operations of their own, in the order that was
 * captured. Nodes that follow one another share a lane, so that a graph which is
 * a mere row stays on its stream's; each branch beside it has one of those that
 * the stream keeps for its graphs. */
#include "check/order.h"

#include <stdlib.h>

/* Where a node is, and whether another one follows it on its lane. */
typedef struct knot {
  tps_point point;
  bool followed;
} knot;

typedef struct run {
  tps_order *o;
  tps_op *op; /* of the launch */
  tps_strand *strand;
  const uint64_t *promises;
  uint32_t lanes; /* of the strand, taken so far */
  unsigned depth; /* of bodies */
} run;

static void run_list(run *r, const tps_graph_node_list *list,
                     const tps_point *begin, tps_clock **end);

static bool next_lane(run *r, uint32_t *lane) {
  return tps_strand_lane(r->o, r->strand, r->lanes++, lane);
}

/* The lane of node `i`: that of the first node before it which nothing follows
 * there yet; of the first root: that on which the list begins. */
static bool find_lane(run *r, const tps_graph_node *node, knot *knots,
                      const tps_point *begin, bool *begun, uint32_t *lane) {
  for (uint32_t i = 0; i < node->after_count; i++) {
    knot *k = &knots[node->after[i]];
    if (k->followed) continue;
    k->followed = true;
    *lane = k->point.lane;
    return true;
  }
  if (node->after_count > 0 || *begun) return next_lane(r, lane);
  *begun = true;
  *lane = begin->lane;
  return true;
}

static void run_body(run *r, const tps_graph_node *node, knot *k) {
  tps_clock *end = tps_clock_ref(k->point.clock);
  r->depth++;
  run_list(r, &node->u.condition.body, &k->point, &end);
  r->depth--;
  tps_point_set(&k->point, end, k->point.lane,
                tps_lane_step(r->o, k->point.lane));
  tps_clock_unref(end);
}

static void act(run *r, const tps_graph_node *node, knot *k) {
  tps_order *o = r->o;
  switch (node->kind) {
  case TPS_NODE_RECORD:
    if (node->u.record.event != NULL)
      tps_point_put(o, &o->events, node->op->event, &k->point);
    break;
  case TPS_NODE_HOST:
    if (r->promises == NULL) break;
    tps_point_put(o, &o->promises, *r->promises++, &k->point);
    break;
  case TPS_NODE_IF:
  case TPS_NODE_WHILE:
    tps_pending_op(o, node->op, r->op, r->depth > 0, &k->point);
    run_body(r, node, k);
    break;
  default: tps_pending_op(o, node->op, r->op, r->depth > 0, &k->point);
  }
}

/* *clock comes to cover `before`, of which an operation on `lane` follows; its own
 * lane it need not tell of. */
static void join(run *r, tps_clock **clock, tps_point before, uint32_t lane) {
  if (before.lane == lane) before.seq = 0;
  tps_order_join(r->o, clock, &before);
}

static bool run_node(run *r, const tps_graph_node *node, knot *knots,
                     uint32_t i, const tps_point *begin, bool *begun) {
  knot *k = &knots[i];
  uint32_t lane;
  if (!find_lane(r, node, knots, begin, begun, &lane)) return false;
  tps_clock *clock = NULL;
  if (node->after_count == 0) join(r, &clock, *begin, lane);
  for (uint32_t j = 0; j < node->after_count; j++)
    join(r, &clock, knots[node->after[j]].point, lane);
  tps_point_set(&k->point, clock, lane, tps_lane_step(r->o, lane));
  tps_clock_unref(clock);
  act(r, node, k);
  return true;
}

/* *end comes to cover all of the list's nodes. */
static void run_list(run *r, const tps_graph_node_list *list,
                     const tps_point *begin, tps_clock **end) {
  knot *knots = calloc(list->count + 1, sizeof *knots);
  bool begun = false, fine = knots != NULL;
  for (uint32_t i = 0; i < list->count && fine; i++)
    fine = run_node(r, &list->nodes[i], knots, i, begin, &begun);
  for (uint32_t i = 0; i < list->count && fine; i++)
    tps_order_join(r->o, end, &knots[i].point);
  for (uint32_t i = 0; i < list->count && knots != NULL; i++)
    tps_point_clear(&knots[i].point);
  free(knots);
  if (!fine) r->o->broken = true;
}

/* Launches of one graph come one after the other, and so do those of graphs with
 * memory of their own in common. `point`: the end of this one; else before it. */
static void one_by_one(tps_order *o, const tps_op *op, uint64_t graph,
                       tps_clock **clock, const tps_point *point) {
  for (uint32_t i = 0; i <= op->touch_count; i++) {
    uint64_t key = i == 0 ? graph : op->touches[i - 1].memory;
    const tps_place *place = tps_table_get(&o->places, key);
    if (i > 0 && (place == NULL || !place->captured)) continue;
    const tps_point *before = tps_table_get(&o->graphs, key);
    if (point != NULL) tps_point_put(o, &o->graphs, key, point);
    else if (before != NULL) tps_order_join(o, clock, before);
  }
}

void tps_order_launching(tps_order *o, tps_op *op, const tps_stream *stream,
                         const tps_graph *graph, const uint64_t *promises) {
  tps_strand *s = tps_strand_of(o, stream);
  if (s == NULL || o->broken) return;
  tps_strand_enter(o, s);
  one_by_one(o, op, graph->id, &s->clock, NULL);
  run r = {o, op, s, promises, 1, 0};
  tps_point begin = tps_strand_point(s);
  tps_clock *end = tps_clock_ref(s->clock);
  run_list(&r, tps_graph_nodes(graph), &begin, &end);
  tps_clock_unref(s->clock);
  s->clock = end;
  tps_strand_next(o, s);
  tps_point point = tps_strand_point(s);
  one_by_one(o, op, graph->id, NULL, &point);
  tps_pending_drain(o);
}
