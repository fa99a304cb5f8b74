/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Graphs of the simulated device. What the runtime has captured becomes a plan:
 * for each node a task that serves as the model of those that will run, how many
 * nodes it comes after and which come after it. Launches in the queue keep the
 * plan that they were made with; a graph that changes meanwhile gets another.
 */
#include "sim/graphs.h"

#include <stdlib.h>

static tps_sim_device *to_device(tps_device *device) {
  return (tps_sim_device *)device;
}

static tps_sim_graph *to_graph(tps_device_graph *graph) {
  return (tps_sim_graph *)graph;
}

static int no_memory(tps_error *err) {
  return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for a graph");
}

/* --- the end -------------------------------------------------------------- */

/* Lock held. */
static void plan_free(tps_sim_plan *plan) {
  for (uint32_t i = 0; i < plan->count; i++) {
    tps_sim_node *node = &plan->nodes[i];
    if (node->model != NULL) tps_sim_release(node->model);
    if (node->body != NULL) plan_free(node->body);
    free(node->followers);
  }
  free(plan);
}

void tps_sim_plan_unref(tps_sim_plan *plan) {
  if (--plan->refs == 0) plan_free(plan);
}

void tps_sim_graph_unref(tps_sim_graph *graph) {
  if (--graph->refs > 0) return;
  tps_sim_plan_unref(graph->plan);
  free(graph);
}

void tps_sim_graph_destroy(tps_device *face, tps_device_graph *graph) {
  tps_sim_pool *pool = to_device(face)->pool;
  tps_sim_lock(pool);
  tps_sim_graph_unref(to_graph(graph));
  tps_sim_unlock(pool);
}

/* --- making plans --------------------------------------------------------- */

static int make_host(const tps_graph_node *from, tps_sim_task **out,
                     tps_error *err) {
  tps_sim_task *task =
      tps_sim_task_new(to_device(from->device), TPS_SIM_TASK_NOTIFY, from->op);
  if (task == NULL) return no_memory(err);
  task->u.notice.call = from->u.host.notify;
  task->u.notice.data = from->u.host.data;
  *out = task;
  return 0;
}

/* The tasks that record the event are made at each launch. */
static void note_record(tps_sim_node *node, const tps_graph_node *from) {
  tps_sim_plan *plan = node->plan;
  node->event = (tps_sim_event *)from->u.record.event;
  node->record = plan->record_count++;
  if (plan->last_record != NULL) plan->last_record->next_record = node;
  else plan->records = node;
  plan->last_record = node;
}

static int make_bare(const tps_graph_node *from, tps_sim_task **out,
                     tps_error *err) {
  *out = tps_sim_task_new(to_device(from->device), TPS_SIM_TASK_WAIT, from->op);
  return *out == NULL ? no_memory(err) : 0;
}

static int make_condition(const tps_graph_node *from, tps_sim_task **out,
                          tps_error *err) {
  tps_sim_task *task = tps_sim_task_new(to_device(from->device),
                                        TPS_SIM_TASK_CONDITION, from->op);
  if (task == NULL) return no_memory(err);
  task->u.condition.flag = from->u.condition.flag;
  task->u.condition.loop = from->kind == TPS_NODE_WHILE;
  *out = task;
  return 0;
}

static int make_model(const tps_graph_node *from, tps_sim_task **out,
                      tps_error *err) {
  tps_sim_device *device = to_device(from->device);
  switch ((tps_graph_node_kind)from->kind) {
  case TPS_NODE_LAUNCH:
    return tps_sim_launch_task(device, from->u.run.kernel, &from->u.run.launch,
                               from->op, out, err);
  case TPS_NODE_COPY:
    return tps_sim_copy_task(device, from->u.copy.to_device, from->u.copy.to,
                             from->u.copy.from_device, from->u.copy.from,
                             &from->u.copy.rows, from->op, out, err);
  case TPS_NODE_FILL:
    return tps_sim_fill_task(device, from->u.fill.to, from->u.fill.pattern,
                             from->u.fill.width, from->u.fill.count, from->op,
                             out, err);
  case TPS_NODE_HOST: return make_host(from, out, err);
  case TPS_NODE_RECORD: return make_bare(from, out, err);
  default: return make_condition(from, out, err);
  }
}

static int add_follower(tps_sim_node *node, uint32_t follower, tps_error *err) {
  uint32_t n = node->follower_count;
  if ((n & (n - 1)) == 0) { /* at each power of two */
    uint32_t room = n == 0 ? 1 : 2 * n;
    uint32_t *more = realloc(node->followers, room * sizeof *more);
    if (more == NULL) return no_memory(err);
    node->followers = more;
  }
  node->followers[node->follower_count++] = follower;
  return 0;
}

static int plan_make(const tps_graph_node_list *list, tps_sim_plan **out,
                     tps_error *err);

static int make_node(tps_sim_plan *plan, uint32_t i, const tps_graph_node *from,
                     tps_error *err) {
  tps_sim_node *node = &plan->nodes[i];
  node->plan = plan;
  node->before = from->after_count;
  int code = make_model(from, &node->model, err);
  if (from->kind == TPS_NODE_RECORD && from->u.record.event != NULL)
    note_record(node, from);
  if (code == 0 && (from->kind == TPS_NODE_IF || from->kind == TPS_NODE_WHILE))
    code = plan_make(&from->u.condition.body, &node->body, err);
  for (uint32_t j = 0; j < from->after_count && code == 0; j++)
    code = add_follower(&plan->nodes[from->after[j]], i, err);
  return code;
}

static void plan_drop(tps_sim_plan *plan, tps_sim_pool *pool) {
  tps_sim_lock(pool);
  plan_free(plan);
  tps_sim_unlock(pool);
}

static int plan_make(const tps_graph_node_list *list, tps_sim_plan **out,
                     tps_error *err) {
  tps_sim_plan *plan =
      calloc(1, sizeof *plan + list->count * sizeof plan->nodes[0]);
  if (plan == NULL) return no_memory(err);
  plan->refs = 1;
  plan->count = list->count;
  for (uint32_t i = 0; i < list->count; i++) {
    int code = make_node(plan, i, &list->nodes[i], err);
    if (code == 0) continue;
    plan_drop(plan, to_device(list->nodes[i].device)->pool);
    return code;
  }
  *out = plan;
  return 0;
}

int tps_sim_graph_build(tps_device *face, const tps_graph_node_list *list,
                        tps_device_graph **out, tps_error *err) {
  int code = tps_sim_refuse(to_device(face), err);
  if (code != 0) return code;
  tps_sim_graph *graph = calloc(1, sizeof *graph);
  if (graph == NULL) return no_memory(err);
  graph->refs = 1;
  code = plan_make(list, &graph->plan, err);
  if (code == 0) *out = (tps_device_graph *)graph;
  else free(graph);
  return code;
}

int tps_sim_graph_update(tps_device *face, tps_device_graph *handle,
                         const tps_graph_node_list *list, tps_error *err) {
  tps_sim_pool *pool = to_device(face)->pool;
  tps_sim_plan *plan = NULL;
  int code = tps_sim_refuse(to_device(face), err);
  if (code == 0) code = plan_make(list, &plan, err);
  if (code != 0 || plan == NULL) return code;
  tps_sim_lock(pool);
  tps_sim_plan_unref(to_graph(handle)->plan);
  to_graph(handle)->plan = plan;
  tps_sim_unlock(pool);
  return 0;
}

/* In place, unless launches with the old parameters are still to come. */
int tps_sim_graph_change(tps_device *face, tps_device_graph *handle,
                         const tps_graph_node_list *list, uint32_t index,
                         tps_error *err) {
  tps_sim_pool *pool = to_device(face)->pool;
  tps_sim_graph *graph = to_graph(handle);
  tps_sim_task *model = NULL, *before = NULL;
  int code = tps_sim_refuse(to_device(face), err);
  if (code == 0) code = make_model(&list->nodes[index], &model, err);
  if (code != 0 || model == NULL) return code;
  tps_sim_lock(pool);
  bool idle = graph->plan->refs == 1;
  if (idle) {
    before = graph->plan->nodes[index].model;
    graph->plan->nodes[index].model = model;
  }
  tps_sim_release(idle ? before : model);
  tps_sim_unlock(pool);
  return idle ? 0 : tps_sim_graph_update(face, handle, list, err);
}
