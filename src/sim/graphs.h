/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Plans of graphs, as graphs.c makes them and graph_runs.c runs them. */
#ifndef TPS_SIM_GRAPHS_H
#define TPS_SIM_GRAPHS_H

#include "sim/queue.h"

struct tps_sim_node {
  tps_sim_plan *plan;
  tps_sim_node *ready_next;
  tps_sim_task *model;
  tps_sim_plan *body; /* of a conditional node, owned */
  uint32_t *followers;
  uint32_t follower_count;
  uint32_t before;           /* nodes that it comes after */
  uint32_t waiting;          /* those of them that have not ended in this run */
  tps_sim_event *event;      /* that it records, or NULL */
  tps_sim_node *next_record; /* the next of the plan that records one */
  uint32_t record;           /* its number among those */
};

struct tps_sim_plan {
  unsigned refs;        /* the graph's, and one for each launch in the queue */
  tps_sim_task *parent; /* of the run */
  uint32_t left;        /* nodes that have not ended in this run */
  bool failed;
  tps_sim_node *records, *last_record; /* nodes that record events */
  uint32_t record_count;
  uint32_t count;
  tps_sim_node nodes[];
};

struct tps_sim_graph {
  unsigned refs; /* the owner's, and one for each launch in the queue */
  tps_sim_plan *plan;
  tps_sim_task *last; /* the launch queued last, until it has ended */
};

/* Lock held. */
void tps_sim_plan_unref(tps_sim_plan *plan);
void tps_sim_graph_unref(tps_sim_graph *graph);

#endif
