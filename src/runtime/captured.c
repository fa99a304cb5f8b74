/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What becomes a node while a stream captures: launches, copies, fills, writes,
 * host notifications, records of events, whole graphs and conditional nodes. Each is made at the
 * end of the list, completed, and then the only tip of its branch; where one
 * fails in the middle it is taken back. */
#include <stdlib.h>
#include <string.h>

#include "runtime/capture.h"

/* A record as tps_op_begin makes it, but not of something queued. */
static tps_op *new_op(const tps_stream *stream, tps_op_kind kind,
                      tps_error *err) {
  tps_op *op = tps_op_new();
  if (op == NULL) {
    tps_out_of_host_memory(err);
    return NULL;
  }
  const tps_context *context = stream->context;
  op->kind = (uint8_t)kind;
  op->device_kind = (uint8_t)stream->device->kind;
  op->device = stream->device->ordinal;
  op->context = context->id;
  op->stream = stream->id;
  op->source = context->site.source;
  op->line = context->site.line;
  return op;
}

/* A node at the end of the branch, which is not yet its tip. */
static tps_graph_node *new_node(tps_stream *stream, tps_branch *branch,
                                tps_graph_node_kind kind, tps_op_kind op_kind,
                                tps_error *err) {
  tps_op *op = new_op(stream, op_kind, err);
  tps_graph_node_list *list = &branch->capture->list;
  tps_graph_node *node = op == NULL ? NULL : tps_graph_node_append(list, err);
  if (node == NULL) {
    tps_op_unref(op);
    return NULL;
  }
  node->kind = (uint8_t)kind;
  node->op = op;
  node->device = stream->device;
  if (tps_graph_node_follow(node, branch->tips, branch->tip_count, err) == 0)
    return node;
  tps_graph_node_drop(node);
  list->count--;
  return NULL;
}

static void take_back(tps_branch *branch) {
  tps_graph_node_list *list = &branch->capture->list;
  tps_graph_node_drop(&list->nodes[--list->count]);
}

/* The node made last, which is complete, gets its id. */
static void number(const tps_branch *branch) {
  tps_graph_node_list *list = &branch->capture->list;
  list->nodes[list->count - 1].id = branch->capture->graph->parts->ids++;
}

/* And becomes the branch's tip. */
static int commit(tps_branch *branch, tps_error *err) {
  tps_graph_node_list *list = &branch->capture->list;
  uint32_t *tips =
      tps_grow(branch->tips, 0, &branch->tip_capacity, sizeof *tips, err);
  if (tips == NULL) return TPS_NO_HOST_MEMORY;
  branch->tips = tips;
  number(branch);
  branch->tips[0] = list->count - 1;
  branch->tip_count = 1;
  return 0;
}

/* Notes what the node works on, in its record and with the graph. */
static int note_use(const tps_branch *branch, const tps_graph_node *node,
                    const tps_use *use, tps_error *err) {
  int code = tps_op_touch(node->op, use->memory, use->first, use->bytes,
                          (tps_access)use->access, err);
  if (code == 0)
    code = tps_keep_use(&branch->capture->graph->parts->keep, use, err);
  return code;
}

/* A node in the making, and what it works on. */
typedef struct making {
  tps_stream *stream;
  const tps_use *uses;
  uint32_t use_count;
  tps_branch *branch;
  tps_graph_node *node;
} making;

static int begin_node(making *m, tps_graph_node_kind kind, tps_op_kind op_kind,
                      tps_error *err) {
  int code = tps_capture_branch(m->stream, &m->branch, err);
  if (code == 0) code = tps_birth_order(m->branch, m->uses, m->use_count, err);
  if (code != 0) return code;
  m->node = new_node(m->stream, m->branch, kind, op_kind, err);
  if (m->node == NULL) return TPS_NO_HOST_MEMORY;
  for (uint32_t i = 0; i < m->use_count && code == 0; i++)
    code = note_use(m->branch, m->node, &m->uses[i], err);
  if (code != 0) take_back(m->branch);
  return code;
}

/* `code` tells whether what is special of its kind could be filled in. */
static int end_node(const making *m, int code, tps_error *err) {
  if (code == 0) code = commit(m->branch, err);
  if (code != 0) take_back(m->branch);
  else tps_birth_note(m->branch, m->uses, m->use_count, m->branch->tips[0]);
  return code;
}

int tps_capture_launch(const tps_prepared *prepared, tps_stream *stream,
                       const tps_use *uses, uint32_t count, tps_error *err) {
  making m = {.stream = stream, .uses = uses, .use_count = count};
  int code = begin_node(&m, TPS_NODE_LAUNCH, TPS_OP_LAUNCH, err);
  if (code != 0) return code;
  m.node->u.run.kernel = prepared->handle;
  tps_op_set_launch(m.node->op, prepared);
  code = tps_graph_node_set_launch(m.node, &prepared->launch, err);
  if (code == 0)
    code = tps_keep_module(&m.branch->capture->graph->parts->keep,
                           prepared->kernel->module, err);
  return end_node(&m, code, err);
}

int tps_capture_copy(tps_stream *stream, const tps_use *to, const tps_use *from,
                     const tps_rows *rows, tps_error *err) {
  tps_use uses[] = {*from, *to};
  making m = {.stream = stream, .uses = uses, .use_count = 2};
  int code = begin_node(&m, TPS_NODE_COPY, TPS_OP_COPY, err);
  if (code != 0) return code;
  tps_op_set_copy(m.node->op, to->memory, from->memory,
                  rows->count * rows->bytes);
  tps_op_set_rows(m.node->op, rows);
  m.node->u.copy.to = to->memory->address + to->first;
  m.node->u.copy.from = from->memory->address + from->first;
  m.node->u.copy.rows = *rows;
  m.node->u.copy.to_device = to->memory->device;
  m.node->u.copy.from_device = from->memory->device;
  return end_node(&m, 0, err);
}

int tps_capture_fill(tps_stream *stream, tps_memory *memory, uint64_t first,
                     uint64_t pattern, unsigned width, uint64_t count,
                     tps_error *err) {
  tps_use use = {memory, first, count * width, TPS_ACCESS_WRITE, NULL};
  making m = {.stream = stream, .uses = &use, .use_count = 1};
  int code = begin_node(&m, TPS_NODE_FILL, TPS_OP_FILL, err);
  if (code != 0) return code;
  m.node->u.fill.to = memory->address + first;
  m.node->u.fill.pattern = pattern;
  m.node->u.fill.width = width;
  m.node->u.fill.count = count;
  return end_node(&m, 0, err);
}

int tps_capture_write(tps_stream *stream, tps_memory *memory, uint64_t first,
                      const void *source, uint64_t bytes, tps_error *err) {
  tps_memory *kept;
  int code =
      tps_memory_pin(stream->context, stream->device, bytes, false, &kept, err);
  if (code != 0) return code;
  memcpy(kept->host, source, bytes);
  tps_use to = {memory, first, bytes, TPS_ACCESS_WRITE, NULL};
  tps_use from = {kept, 0, bytes, TPS_ACCESS_READ, NULL};
  tps_rows line = {1, bytes, bytes, bytes};
  code = tps_capture_copy(stream, &to, &from, &line, err);
  tps_memory_unref(kept);
  return code;
}

int tps_capture_notify(tps_stream *stream, tps_error *err) {
  making m = {.stream = stream};
  int code = tps_capture_branch(stream, &m.branch, err);
  if (code != 0) return code;
  if (m.branch->capture->around != NULL)
    return tps_fail(err, TPS_MISUSE,
                    "the body of a conditional node can't call the host "
                    "(on_complete)");
  tps_keep *keep = &m.branch->capture->graph->parts->keep;
  code = tps_keep_notice(keep, stream->context, err);
  if (code != 0) return code;
  code = begin_node(&m, TPS_NODE_HOST, TPS_OP_HOST, err);
  if (code == 0) {
    m.node->u.host.notify = tps_notice_deliver;
    m.node->u.host.data = keep->notices[keep->notice_count - 1];
    code = end_node(&m, 0, err);
  }
  if (code != 0) tps_keep_cut(keep, keep->notice_count - 1, keep->event_count);
  return code;
}

static int make_record(making *m, tps_event *event, tps_error *err) {
  int code = begin_node(m, TPS_NODE_RECORD, TPS_OP_RECORD, err);
  if (code != 0) return code;
  m->node->op->event = event->id;
  m->node->u.record.event = event->handle;
  m->node->u.record.owner = event;
  if (event->flags & TPS_EVENT_TIMING) return end_node(m, 0, err);
  number(m->branch);
  return 0;
}

int tps_capture_event(tps_stream *stream, tps_event *event, uint32_t earlier,
                      uint32_t *node, tps_error *err) {
  making m = {.stream = stream};
  bool again = earlier != UINT32_MAX;
  int code = tps_capture_branch(stream, &m.branch, err);
  if (code != 0) return code;
  tps_graph_node_list *list = &m.branch->capture->list;
  tps_keep *keep = &m.branch->capture->graph->parts->keep;
  if (!again) code = tps_keep_event(keep, event, err);
  if (code != 0) return code;
  code = make_record(&m, event, err);
  if (code == 0) {
    *node = list->count - 1;
    if (again) list->nodes[earlier].u.record.event = NULL;
  } else if (!again) {
    tps_keep_cut(keep, keep->notice_count, keep->event_count - 1);
  }
  return code;
}

int tps_capture_quiet(tps_graph *graph, tps_error *err) {
  tps_graph_node_list *list = &graph->parts->list;
  tps_keep *keep = &graph->parts->keep;
  for (uint32_t i = 0; i < list->count; i++) {
    tps_graph_node *node = &list->nodes[i];
    if (node->kind == TPS_NODE_RECORD && node->u.record.event != NULL &&
        !tps_event_heard(node->u.record.owner))
      node->u.record.event = NULL;
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < keep->event_count; i++) {
    tps_event *event = keep->events[i];
    if (tps_event_heard(event)) keep->events[kept++] = event;
    else tps_event_free(event);
  }
  keep->event_count = kept;
  return tps_graph_node_list_prune(list, err);
}

static int check_graph(const tps_graph *graph, const tps_stream *stream,
                       const tps_branch *branch, tps_error *err) {
  char a[32], b[32];
  if (graph->device != stream->device)
    return tps_fail(err, TPS_MISUSE,
                    "the graph was captured on %s, the stream is of %s",
                    tps_device_label(graph->device, a, sizeof a),
                    tps_device_label(stream->device, b, sizeof b));
  if (branch->capture->around != NULL && graph->parts->keep.notice_count > 0)
    return tps_fail(err, TPS_MISUSE,
                    "the body of a conditional node can't call the host, as "
                    "the graph does (on_complete)");
  return 0;
}

/* The leaves of what was added are the branch's tips. */
static int add_leaves(tps_branch *branch, const struct tps_graph_parts *added,
                      uint32_t base, tps_error *err) {
  uint32_t *leaves, count;
  int code = tps_graph_node_leaves(&added->list, &leaves, &count, err);
  for (uint32_t i = 0; code == 0 && i < count; i++) leaves[i] += base;
  if (code == 0)
    code = tps_part_note(branch->capture, &added->keep, leaves, count, err);
  if (code != 0 || count == 0) {
    free(leaves);
    return code;
  }
  free(branch->tips);
  branch->tips = leaves;
  branch->tip_count = count;
  branch->tip_capacity = added->list.count + 1;
  return 0;
}

int tps_capture_graph(tps_graph *graph, tps_stream *stream, tps_error *err) {
  tps_branch *branch;
  int code = tps_capture_branch(stream, &branch, err);
  if (code == 0) code = check_graph(graph, stream, branch, err);
  if (code == 0) code = tps_part_order(branch, &graph->parts->keep, err);
  if (code != 0) return code;
  tps_capture *capture = branch->capture;
  struct tps_graph_parts *parts = capture->graph->parts;
  tps_graph_node_list *list = &capture->list;
  const tps_graph_node_list *child = &graph->parts->list;
  uint32_t base = list->count, notices = parts->keep.notice_count;
  uint32_t events = parts->keep.event_count;
  bool body = capture->around != NULL;
  code = tps_keep_all(&parts->keep, &graph->parts->keep, !body, err);
  if (code == 0)
    code = tps_graph_node_list_copy(list, child, branch->tips,
                                    branch->tip_count, parts->ids, &parts->keep,
                                    body, capture->graph->context, err);
  if (code == 0) code = add_leaves(branch, graph->parts, base, err);
  if (code == 0) {
    parts->ids += graph->parts->ids;
    return 0;
  }
  while (list->count > base) tps_graph_node_drop(&list->nodes[--list->count]);
  tps_keep_cut(&parts->keep, notices, events);
  return code;
}

int tps_capture_condition(tps_stream *outer, bool loop, tps_memory *flag,
                          uint64_t first, tps_graph_node_list *body,
                          tps_error *err) {
  tps_use use = {flag, first, 4, TPS_ACCESS_READ, NULL};
  making m = {.stream = outer, .uses = &use, .use_count = 1};
  int code =
      begin_node(&m, loop ? TPS_NODE_WHILE : TPS_NODE_IF, TPS_OP_GRAPH, err);
  if (code != 0) return code;
  m.node->u.condition.flag = flag->address + first;
  m.node->u.condition.body = *body;
  *body = (tps_graph_node_list){0};
  return end_node(&m, 0, err);
}
