/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Graphs of the simulated device. What the runtime has captured becomes a plan:
 * for each node a task that serves as the model of those that will run, how many
 * nodes it comes after and which come after it. The launch of a graph is one
 * task of its stream; when its turn comes the nodes that wait for nothing start,
 * each other one when the last it comes after has ended, and the launch ends
 * with the last node. So branches run side by side, and a launch costs the host
 * what one operation does.
 *
 * Launches of one graph run one after the other: each waits for the one before.
 * So a plan keeps the state of its run. Launches in the queue keep the plan that
 * they were made with; a graph that changes meanwhile gets another.
 *
 * A conditional node is the parent of its body's plan as the launch is of the
 * whole.
 */
#include "sim/queue.h"

#include <stdlib.h>

#include "base/clock.h"

struct tps_sim_node {
  tps_sim_plan *plan;
  tps_sim_node *ready_next;
  tps_sim_task *model;
  tps_sim_plan *body; /* of a conditional node, owned */
  uint32_t *followers;
  uint32_t follower_count;
  uint32_t before;  /* nodes that it comes after */
  uint32_t waiting; /* those of them that have not ended in this run */
};

struct tps_sim_plan {
  unsigned refs;        /* the graph's, and one for each launch in the queue */
  tps_sim_task *parent; /* of the run */
  uint32_t left;        /* nodes that have not ended in this run */
  bool failed;
  uint32_t count;
  tps_sim_node nodes[];
};

struct tps_sim_graph {
  unsigned refs; /* the owner's, and one for each launch in the queue */
  tps_sim_plan *plan;
  tps_sim_task *last; /* the launch queued last, until it has ended */
};

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

static void plan_unref(tps_sim_plan *plan) {
  if (--plan->refs == 0) plan_free(plan);
}

static void graph_unref(tps_sim_graph *graph) {
  if (--graph->refs > 0) return;
  plan_unref(graph->plan);
  free(graph);
}

void tps_sim_graph_release(tps_sim_task *task) {
  tps_sim_graph *graph = task->u.graph.graph;
  if (graph->last == task) graph->last = NULL;
  plan_unref(task->u.graph.plan);
  graph_unref(graph);
}

void tps_sim_graph_destroy(tps_device *face, tps_device_graph *graph) {
  tps_sim_pool *pool = to_device(face)->pool;
  tps_sim_lock(pool);
  graph_unref(to_graph(graph));
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
  plan_unref(to_graph(handle)->plan);
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

/* --- launching ------------------------------------------------------------ */

int tps_sim_graph_launch(tps_device *face, tps_device_graph *handle,
                         tps_device_stream *stream, tps_op *op,
                         tps_error *err) {
  tps_sim_device *device = to_device(face);
  tps_sim_graph *graph = to_graph(handle);
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  tps_sim_tidy(device);
  tps_sim_task *task = tps_sim_task_new(device, TPS_SIM_TASK_GRAPH, op);
  if (task == NULL) return no_memory(err);
  tps_sim_lock(device->pool);
  task->u.graph.graph = graph;
  task->u.graph.plan = graph->plan;
  graph->refs++;
  graph->plan->refs++;
  tps_sim_task *before = graph->last;
  graph->last = task;
  code = tps_sim_link_task((tps_sim_stream *)stream, task, before, err);
  if (code == 0) tps_sim_chance_call(device->pool, false);
  else graph->last = before;
  tps_sim_unlock(device->pool);
  if (code != 0) tps_sim_discard(task);
  return code;
}

/* --- running (lock held) -------------------------------------------------- */

static void make_ready(tps_sim_node *node) {
  tps_sim_pool *pool = node->model->device->pool;
  node->ready_next = NULL;
  if (pool->ready != NULL) pool->ready_last->ready_next = node;
  else pool->ready = node;
  pool->ready_last = node;
}

/* What runs a plan that is at its end goes on. */
static void parent_finish(tps_sim_task *parent, bool failed) {
  bool again = parent->kind == TPS_SIM_TASK_CONDITION &&
               parent->u.condition.loop && !failed;
  if (!again) {
    tps_sim_task_finish(parent, failed);
    return;
  }
  parent->next_part = 0;
  tps_sim_offer(parent->device->pool, parent);
}

static void plan_start(tps_sim_plan *plan, tps_sim_task *parent) {
  plan->parent = parent;
  plan->left = plan->count;
  plan->failed = false;
  for (uint32_t i = 0; i < plan->count; i++) {
    tps_sim_node *node = &plan->nodes[i];
    node->waiting = node->before;
    if (node->before == 0) make_ready(node);
  }
  if (plan->count == 0) parent_finish(parent, false);
}

/* Bodies call no host. */
void tps_sim_graph_skip(const tps_sim_task *task) {
  const tps_sim_plan *plan = task->u.graph.plan;
  for (uint32_t i = 0; i < plan->count; i++) {
    const tps_sim_task *model = plan->nodes[i].model;
    if (model->kind == TPS_SIM_TASK_NOTIFY)
      model->u.notice.call(model->u.notice.data, true);
  }
}

void tps_sim_graph_start(tps_sim_task *task) {
  atomic_store_explicit(&task->op->started_ns, tps_now_ns(),
                        memory_order_relaxed);
  atomic_store_explicit(&task->op->state, TPS_OP_RUNNING, memory_order_release);
  plan_start(task->u.graph.plan, task);
}

static void node_done(tps_sim_node *node, bool failed) {
  tps_sim_plan *plan = node->plan;
  if (failed) plan->failed = true;
  for (uint32_t i = 0; i < node->follower_count; i++) {
    tps_sim_node *follower = &plan->nodes[node->followers[i]];
    if (--follower->waiting == 0) make_ready(follower);
  }
  if (--plan->left == 0) parent_finish(plan->parent, plan->failed);
}

void tps_sim_node_finish(tps_sim_task *task, bool failed) {
  tps_sim_node *node = task->node;
  tps_sim_device *device = task->device;
  if (task->kind == TPS_SIM_TASK_NOTIFY) {
    task->u.notice.call(task->u.notice.data, failed);
    device->pool->at_liberty = false; /* the host may have waited for this */
  }
  tps_sim_release(task);
  node_done(node, failed);
  if (device->unloading != NULL) tps_sim_settle_modules(device);
}

/* A task like the model, with its own share of what that holds. */
static tps_sim_task *task_like(const tps_sim_task *model) {
  tps_sim_task *task = tps_sim_task_new(
      model->device, (tps_sim_task_kind)model->kind, model->op);
  if (task == NULL) return NULL;
  task->u = model->u;
  task->parts = model->parts;
  task->resident_limit = model->resident_limit;
  if (model->kind == TPS_SIM_TASK_LAUNCH) {
    atomic_fetch_add(&task->u.run.order->refs, 1);
    atomic_fetch_add(&task->u.run.module->refs, 1);
    tps_sim_launch_number(task);
  } else if (model->kind == TPS_SIM_TASK_CONDITION) {
    task->parts = 1;
    task->resident_limit = UINT64_MAX;
    task->u.condition.began_ns = tps_now_ns();
  }
  return task;
}

static void not_begun(tps_op *op) {
  atomic_store_explicit(&op->started_ns, 0, memory_order_relaxed);
  atomic_store_explicit(&op->finished_ns, 0, memory_order_relaxed);
  atomic_store_explicit(&op->state, TPS_OP_QUEUED, memory_order_relaxed);
}

/* Without a task: what it would tell is told. */
static void skip(tps_sim_node *node) {
  const tps_sim_task *model = node->model;
  if (model->kind == TPS_SIM_TASK_NOTIFY)
    model->u.notice.call(model->u.notice.data, true);
  node_done(node, true);
}

static void start_node(tps_sim_node *node) {
  tps_sim_device *device = node->model->device;
  tps_sim_task *parent = node->plan->parent;
  tps_error err;
  if (tps_sim_is_doomed(device) || tps_sim_is_doomed(parent->device)) {
    skip(node);
    return;
  }
  tps_sim_task *task = task_like(node->model);
  if (task == NULL) {
    no_memory(&err);
    tps_sim_device_fault(device, &err);
    skip(node);
    return;
  }
  not_begun(task->op);
  task->node = node;
  task->stream = parent->stream;
  task->number = parent->number;
  tps_sim_start(task);
}

void tps_sim_start_ready(tps_sim_pool *pool) {
  while (pool->ready != NULL) {
    tps_sim_node *node = pool->ready;
    pool->ready = node->ready_next;
    start_node(node);
  }
}

/* --- conditions (lock held) ----------------------------------------------- */

static void condition_failed(tps_sim_task *task, int code, const char *what) {
  tps_error err;
  tps_fail(&err, code, "conditional node of a graph: %s", what);
  err.stream = task->stream->head->op->stream + 1;
  tps_op_where(task->op, err.where, sizeof err.where);
  tps_sim_device_fault(task->device, &err);
  tps_sim_task_finish(task, true);
}

void tps_sim_condition_decide(tps_sim_task *task) {
  uint64_t flag = task->u.condition.flag;
  uint64_t limit = task->device->timeout_ns;
  const tps_sim_allocation *memory = tps_sim_lookup(task->device->space, flag);
  if (memory == NULL || !atomic_load(&memory->live)) {
    condition_failed(task, TPS_ILLEGAL_ADDRESS, "its flag was freed before");
  } else if (*(const uint32_t *)(memory->host + (flag - memory->base)) == 0) {
    tps_sim_task_finish(task, false);
  } else if (limit != 0 && tps_now_ns() - task->u.condition.began_ns > limit) {
    condition_failed(task, TPS_LAUNCH_TIMEOUT,
                     "still running after TPSTREAM_SIM_TIMEOUT");
  } else {
    plan_start(task->node->body, task);
  }
}
