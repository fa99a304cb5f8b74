/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Launches of graphs on the simulated device. The launch of a graph is one task
 * of its stream; when its turn comes the nodes that wait for nothing start, each
 * other one when the last it comes after has ended, and the launch ends with the
 * last node. So branches run side by side, and a launch costs the host what one
 * operation does. Only so many nodes are before the workers at once as a GPU runs
 * kernels side by side: to choose from thousands would take each decision long.
 *
 * Launches of one graph run one after the other: each waits for the one before.
 * So a plan keeps the state of its run.
 *
 * A conditional node is the parent of its body's plan as the launch is of the
 * whole.
 *
 * An event that a graph records is recorded from the call of the launch on, as
 * if by an operation of the stream: the tasks for that are made with the launch.
 */
#include "sim/graphs.h"

#include <stdlib.h>

#include "base/clock.h"

#define AT_ONCE 128u /* nodes before the workers, of all graphs */

static tps_sim_device *to_device(tps_device *device) {
  return (tps_sim_device *)device;
}

static int no_memory(tps_error *err) {
  return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for a graph");
}

/* --- launching ------------------------------------------------------------ */

static tps_sim_task *take_record(const tps_sim_task *launch,
                                 const tps_sim_node *node) {
  tps_sim_task **records = launch->u.graph.records;
  tps_sim_task *task = records[node->record];
  records[node->record] = NULL;
  return task;
}

void tps_sim_graph_release(tps_sim_task *task) {
  tps_sim_graph *graph = task->u.graph.graph;
  tps_sim_plan *plan = task->u.graph.plan;
  if (task->u.graph.records != NULL)
    for (tps_sim_node *n = plan->records; n != NULL; n = n->next_record) {
      tps_sim_task *record = take_record(task, n);
      if (record != NULL) tps_sim_release(record);
    }
  free(task->u.graph.records);
  if (graph->last == task) graph->last = NULL;
  tps_sim_plan_unref(plan);
  tps_sim_graph_unref(graph);
}

/* The tasks that will record the plan's events; *out: their records, with a
 * reference to each. */
static int make_records(tps_sim_task *launch, const tps_sim_plan *plan,
                        tps_sim_record ***out, tps_error *err) {
  if (plan->record_count == 0) return 0;
  *out = calloc(plan->record_count, sizeof **out);
  launch->u.graph.records =
      calloc(plan->record_count, sizeof *launch->u.graph.records);
  if (*out == NULL || launch->u.graph.records == NULL) return no_memory(err);
  for (const tps_sim_node *n = plan->records; n != NULL; n = n->next_record) {
    tps_sim_task *task = tps_sim_record_task(n->model->device, n->model->op);
    if (task == NULL) return no_memory(err);
    launch->u.graph.records[n->record] = task;
    (*out)[n->record] = task->u.record;
    task->u.record->refs++;
  }
  return 0;
}

/* The records become those of their events, or are let go. */
static void settle_records(const tps_sim_plan *plan, tps_sim_record **records,
                           bool queued) {
  if (records == NULL) return;
  for (const tps_sim_node *n = plan->records; n != NULL; n = n->next_record) {
    tps_sim_record *other = records[n->record];
    if (queued) {
      other = n->event->record;
      n->event->record = records[n->record];
    }
    tps_sim_record_unref(other);
  }
  free(records);
}

int tps_sim_graph_launch(tps_device *face, tps_device_graph *handle,
                         tps_device_stream *stream, tps_op *op,
                         tps_error *err) {
  tps_sim_device *device = to_device(face);
  tps_sim_graph *graph = (tps_sim_graph *)handle;
  tps_sim_record **records = NULL;
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
  code = make_records(task, graph->plan, &records, err);
  if (code == 0) {
    graph->last = task;
    code = tps_sim_link_task((tps_sim_stream *)stream, task, before, err);
  }
  settle_records(graph->plan, records, code == 0);
  if (code == 0) tps_sim_chance_call(device->pool, false);
  else graph->last = before;
  tps_sim_unlock(device->pool);
  if (code != 0) tps_sim_discard(task);
  return code;
}

/* --- running (lock held) -------------------------------------------------- */

/* Whether the node is one of those that may have to wait until others have ended:
 * none that others, in the middle, might be waiting for. */
static bool is_limited(const tps_sim_task *task) {
  return task->kind == TPS_SIM_TASK_LAUNCH || task->kind == TPS_SIM_TASK_COPY ||
         task->kind == TPS_SIM_TASK_FILL;
}

static void make_ready(tps_sim_node *node) {
  tps_sim_pool *pool = node->model->device->pool;
  tps_sim_nodes *list = is_limited(node->model) ? &pool->ready : &pool->prompt;
  node->ready_next = NULL;
  if (list->first != NULL) list->last->ready_next = node;
  else list->first = node;
  list->last = node;
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

/* Of a node that will not run: what it would tell is told. */
static void tell_failed(const tps_sim_task *launch, const tps_sim_node *node) {
  const tps_sim_task *model = node->model;
  if (model->kind == TPS_SIM_TASK_NOTIFY)
    model->u.notice.call(model->u.notice.data, true);
  if (node->event != NULL) tps_sim_record_end(take_record(launch, node), true);
}

/* Bodies call no host and record nothing. */
void tps_sim_graph_skip(const tps_sim_task *task) {
  const tps_sim_plan *plan = task->u.graph.plan;
  for (uint32_t i = 0; i < plan->count; i++) tell_failed(task, &plan->nodes[i]);
}

void tps_sim_graph_start(tps_sim_task *task) {
  tps_sim_task_begins(task);
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

/* What is in a body may not run at all, so nobody knew that it would. */
static void tell_body(const tps_sim_task *task) {
  tps_op *op = task->op;
  if (task->node->plan->parent->kind != TPS_SIM_TASK_CONDITION ||
      op->kind == TPS_OP_LAUNCH || op->touch_count == 0)
    return;
  tps_watch_touched(op, task->stream->head->op, op->touches, op->touch_count);
}

void tps_sim_node_finish(tps_sim_task *task, bool failed) {
  tps_sim_node *node = task->node;
  tps_sim_device *device = task->device;
  if (!failed && tps_watched(TPS_WATCH_TOUCHES)) tell_body(task);
  if (is_limited(task)) device->pool->begun--;
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

/* Without a task. */
static void skip(tps_sim_node *node) {
  tell_failed(node->plan->parent, node);
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
  tps_sim_task *task =
      node->event != NULL ? take_record(parent, node) : task_like(node->model);
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
  if (is_limited(task)) device->pool->begun++;
  tps_sim_start(task);
}

bool tps_sim_any_ready(const tps_sim_pool *pool) {
  return pool->prompt.first != NULL ||
         (pool->ready.first != NULL && pool->begun < AT_ONCE);
}

void tps_sim_start_ready(tps_sim_pool *pool) {
  while (tps_sim_any_ready(pool)) {
    tps_sim_nodes *list =
        pool->prompt.first != NULL ? &pool->prompt : &pool->ready;
    tps_sim_node *node = list->first;
    list->first = node->ready_next;
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
