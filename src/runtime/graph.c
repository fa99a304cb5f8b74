/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Graphs that have been captured: built by the device, launched, changed. A
 * launch counts as a use of all the memory that the nodes work on, so that what
 * is freed is freed after it. */
#include <stdlib.h>
#include <string.h>

#include "runtime/capture.h"

/* ---- building ------------------------------------------------------------ */

static uint32_t count_nodes(const tps_graph_node_list *list) {
  uint32_t count = list->count;
  for (uint32_t i = 0; i < list->count; i++) {
    const tps_graph_node *node = &list->nodes[i];
    if (node->kind == TPS_NODE_IF || node->kind == TPS_NODE_WHILE)
      count += count_nodes(&node->u.condition.body);
  }
  return count;
}

static void list_ops(const tps_graph_node_list *list, tps_op_list *ops) {
  for (uint32_t i = 0; i < list->count; i++) {
    const tps_graph_node *node = &list->nodes[i];
    if (node->kind == TPS_NODE_IF || node->kind == TPS_NODE_WHILE)
      list_ops(&node->u.condition.body, ops);
    ops->ops[ops->count++] = tps_op_ref(node->op);
  }
}

static int make_ops(struct tps_graph_parts *parts, tps_error *err) {
  if (parts->ops != NULL) return 0;
  parts->ops = tps_op_list_new(count_nodes(&parts->list));
  if (parts->ops == NULL) return tps_out_of_host_memory(err);
  list_ops(&parts->list, parts->ops);
  return 0;
}

/* Branches may be of other devices; a body is of its node's. */
static bool is_spread(const tps_graph_node_list *list,
                      const tps_device *device) {
  for (uint32_t i = 0; i < list->count; i++)
    if (list->nodes[i].device != device) return true;
  return false;
}

int tps_graph_build(tps_graph *graph, tps_error *err) {
  struct tps_graph_parts *parts = graph->parts;
  tps_device *device = graph->device;
  if (parts->built != NULL) return 0;
  int code = tps_device_fault(device, err);
  if (code == 0) code = make_ops(parts, err);
  if (code != 0) return code;
  parts->spread = is_spread(&parts->list, device);
  code = device->face->graph_build(device, &parts->list, &parts->built, err);
  if (code == 0) return 0;
  parts->built = NULL;
  return tps_failed(device, parts->local, code, err);
}

/* At the next launch it is built anew, and comes after the launches so far. */
static void unbuild(tps_graph *graph) {
  struct tps_graph_parts *parts = graph->parts;
  tps_op_list_unref(parts->ops);
  parts->ops = NULL;
  if (parts->built == NULL) return;
  graph->device->face->graph_destroy(graph->device, parts->built);
  parts->built = NULL;
}

/* ---- launching ----------------------------------------------------------- */

static void disarm(struct tps_graph_parts *parts, uint32_t count) {
  while (count-- > 0) tps_notice_disarm(parts->keep.notices[count]);
}

static int arm(struct tps_graph_parts *parts, tps_stream *stream,
               const uint64_t *tokens, const uint64_t *promises,
               tps_error *err) {
  const tps_keep *keep = &parts->keep;
  for (uint32_t i = 0; i < keep->notice_count; i++) {
    int code = tps_notice_arm(keep->notices[i], stream, tokens[i],
                              promises != NULL ? promises[i] : 0, err);
    if (code == 0) continue;
    disarm(parts, i);
    return code;
  }
  return 0;
}

/* For observers, one for each notice; NULL: there are none, or no memory. */
static TPS_COLD uint64_t *make_promises(uint32_t count) {
  uint64_t *promises = malloc(count * sizeof *promises);
  for (uint32_t i = 0; promises != NULL && i < count; i++)
    promises[i] = tps_next_id();
  return promises;
}

static TPS_COLD void tell_launching(tps_op *op, const tps_stream *stream,
                                    const tps_graph *graph,
                                    const uint64_t *promises) {
  const tps_keep *keep = &graph->parts->keep;
  for (uint32_t i = 0; i < keep->use_count; i++) {
    const tps_memory *memory = keep->uses[i].memory;
    tps_observe_memory(memory, TPS_MEMORY_USED);
    if (memory->captured) tps_observe_memory(memory, TPS_MEMORY_SETTLED);
  }
  tps_observe_launching(op, stream, graph, promises);
}

/* Memory that was made in a capture is for one launch at a time, also where
 * several graphs have it in common by a part of theirs. */
static int ready_uses(const tps_keep *keep, tps_stream *stream,
                      tps_error *err) {
  int code = 0;
  for (uint32_t i = 0; i < keep->use_count && code == 0; i++) {
    tps_memory *memory = keep->uses[i].memory;
    if (memory->captured) code = tps_uses_follow(memory, stream, err);
    if (code == 0) code = tps_uses_ready(memory, stream, err);
  }
  return code;
}

static int set_touches(tps_op *op, const tps_keep *keep, tps_error *err) {
  if (tps_op_reserve_touches(op, keep->use_count) != 0)
    return tps_out_of_host_memory(err);
  for (uint32_t i = 0; i < keep->use_count; i++) {
    const tps_use *use = &keep->uses[i];
    op->touches[i] =
        (tps_touch){use->memory->id, use->first, use->bytes, use->access, 0, 0};
  }
  return 0;
}

/* Launches are remembered, for one that is built anew has to come after. */
static void remember(struct tps_graph_parts *parts, tps_stream *stream) {
  if (parts->last != stream) {
    tps_stream_hold(stream);
    if (parts->last != NULL) tps_stream_unhold(parts->last);
    parts->last = stream;
  }
  parts->last_seq = stream->last_seq;
}

/* A record that is used again mostly has the parts and the touches of the same
 * graph. */
static int note_uses(tps_op *op, const struct tps_graph_parts *parts,
                     tps_error *err) {
  const tps_keep *keep = &parts->keep;
  if (op->parts != parts->ops) {
    int code = set_touches(op, keep, err);
    if (code != 0) return code;
    tps_op_list_unref(op->parts);
    op->parts = tps_op_list_ref(parts->ops);
  }
  op->touch_count = keep->use_count;
  for (uint32_t i = 0; i < keep->use_count; i++)
    tps_uses_set(keep->uses[i].memory, op->seq);
  return 0;
}

static int queue(tps_graph *graph, tps_stream *stream, const uint64_t *tokens,
                 tps_error *err) {
  struct tps_graph_parts *parts = graph->parts;
  tps_device *device = graph->device;
  tps_op *op = tps_op_begin(stream, TPS_OP_GRAPH, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  int code = note_uses(op, parts, err);
  uint64_t *promises = NULL;
  if (TPS_UNLIKELY(tps_observing()) && parts->keep.notice_count > 0)
    promises = make_promises(parts->keep.notice_count);
  if (code == 0) code = arm(parts, stream, tokens, promises, err);
  if (code == 0 && TPS_UNLIKELY(tps_observing()))
    tell_launching(op, stream, graph, promises);
  free(promises);
  if (code != 0) {
    tps_op_broke(op);
    return code;
  }
  tps_op_announce(op, stream);
  code =
      device->face->graph_launch(device, parts->built, stream->handle, op, err);
  if (code == 0) {
    remember(parts, stream);
    for (uint32_t i = 0; i < parts->keep.event_count; i++)
      tps_event_launched(parts->keep.events[i], stream, stream->last_seq);
    tps_stream_queued(stream);
    return 0;
  }
  tps_op_broke(op);
  disarm(parts, parts->keep.notice_count);
  return tps_failed(device, parts->local, code, err);
}

static int check_launch(const tps_graph *graph, const tps_stream *stream,
                        tps_error *err) {
  char a[32], b[32];
  int code = tps_stream_ready(stream, err);
  if (code != 0 || graph->device == stream->device) return code;
  return tps_fail(err, TPS_MISUSE,
                  "the graph was captured on %s, the stream is of %s",
                  tps_device_label(graph->device, a, sizeof a),
                  tps_device_label(stream->device, b, sizeof b));
}

/* Costs as much as the graph is long, so no launch of one that is built on a
 * single device comes here. */
static int check_faults(const tps_graph *graph, tps_error *err) {
  const tps_graph_node_list *list = &graph->parts->list;
  int code = 0;
  for (uint32_t i = 0; i < list->count && code == 0; i++)
    if (list->nodes[i].device != graph->device)
      code = tps_device_fault(list->nodes[i].device, err);
  return code;
}

int tps_graph_launch(tps_graph *graph, tps_stream *stream,
                     const uint64_t *tokens, tps_error *err) {
  struct tps_graph_parts *parts = graph->parts;
  int code = check_launch(graph, stream, err);
  if (code == 0 && (parts->built == NULL || parts->spread))
    code = check_faults(graph, err);
  if (code != 0) return code;
  if (stream->capturing) return tps_capture_graph(graph, stream, err);
  bool anew = parts->built == NULL;
  code = tps_graph_build(graph, err);
  if (code == 0 && anew && parts->last != NULL)
    code = tps_stream_follow(stream, parts->last, parts->last_seq, false, err);
  if (code == 0) code = ready_uses(&parts->keep, stream, err);
  if (parts->spread) graph->context->parts->spread = true;
  if (code == 0) code = queue(graph, stream, tokens, err);
  if (code != 0 || !stream->context->blocking) return code;
  return tps_stream_synchronize(stream, TPS_FOREVER, err);
}

uint32_t tps_graph_notice_count(const tps_graph *graph) {
  return graph->parts->keep.notice_count;
}

/* ---- changing ------------------------------------------------------------ */

/* The device could not change what it has. */
static int settle_change(tps_graph *graph, int code, tps_error *err) {
  if (code == TPS_NOT_SUPPORTED) {
    unbuild(graph);
    return 0;
  }
  return code == 0 ? 0
                   : tps_failed(graph->device, graph->parts->local, code, err);
}

static int no_parameter(tps_error *err) {
  return tps_fail(err, TPS_MISUSE, "the graph has no such parameter");
}

/* The node, number `index` of the list or in a body there, is not as before. */
static int changed(tps_graph *graph, const tps_graph_node *node, uint32_t index,
                   tps_error *err) {
  struct tps_graph_parts *parts = graph->parts;
  int code = TPS_NOT_SUPPORTED;
  if (parts->built == NULL) return 0;
  if (node == &parts->list.nodes[index])
    code = graph->device->face->graph_change(graph->device, parts->built,
                                             &parts->list, index, err);
  return settle_change(graph, code, err);
}

int tps_graph_set(tps_graph *graph, uint32_t id, uint32_t offset,
                  const void *bytes, size_t size, tps_error *err) {
  uint32_t index = 0;
  const tps_graph_node *node =
      tps_graph_node_find(&graph->parts->list, id, &index);
  if (node == NULL || node->kind != TPS_NODE_LAUNCH ||
      offset + size > node->u.run.launch.param_bytes)
    return no_parameter(err);
  unsigned char *to = (unsigned char *)node->u.run.launch.params + offset;
  if (memcmp(to, bytes, size) == 0) return 0;
  memcpy(to, bytes, size);
  return changed(graph, node, index, err);
}

int tps_graph_set_fill(tps_graph *graph, uint32_t id, uint64_t pattern,
                       tps_error *err) {
  uint32_t index = 0;
  tps_graph_node *node = tps_graph_node_find(&graph->parts->list, id, &index);
  if (node == NULL || node->kind != TPS_NODE_FILL) return no_parameter(err);
  if (node->u.fill.pattern == pattern) return 0;
  node->u.fill.pattern = pattern;
  return changed(graph, node, index, err);
}

static void free_contents(struct tps_graph_parts *parts) {
  tps_op_list_unref(parts->ops);
  tps_graph_node_list_free(&parts->list);
  tps_keep_free(&parts->keep);
}

int tps_graph_replace(tps_graph *graph, tps_graph *with, bool *in_place,
                      tps_error *err) {
  struct tps_graph_parts *parts = graph->parts, *fresh = with->parts;
  char a[32], b[32];
  if (graph->device != with->device)
    return tps_fail(err, TPS_MISUSE,
                    "a graph of %s can't be updated with one of %s",
                    tps_device_label(graph->device, a, sizeof a),
                    tps_device_label(with->device, b, sizeof b));
  int code = make_ops(fresh, err);
  if (code != 0) return code;
  *in_place = parts->built != NULL &&
              tps_graph_node_same_shape(&parts->list, &fresh->list);
  code = !*in_place ? TPS_NOT_SUPPORTED
                    : graph->device->face->graph_update(
                          graph->device, parts->built, &fresh->list, err);
  if (code != 0) *in_place = false;
  code = settle_change(graph, code, err);
  if (code != 0) return code;
  free_contents(parts);
  parts->list = fresh->list;
  parts->keep = fresh->keep;
  parts->ids = fresh->ids;
  parts->ops = fresh->ops;
  parts->spread = is_spread(&parts->list, graph->device);
  fresh->list = (tps_graph_node_list){0};
  fresh->keep = (tps_keep){0};
  fresh->ops = NULL;
  tps_graph_free(with);
  return 0;
}

int tps_graph_add(tps_graph *graph, tps_graph *child, uint32_t *base,
                  tps_error *err) {
  struct tps_graph_parts *parts = graph->parts;
  const struct tps_graph_parts *of = child->parts;
  char a[32], b[32];
  if (graph->device != child->device)
    return tps_fail(err, TPS_MISUSE, "a graph of %s can't be part of one of %s",
                    tps_device_label(child->device, a, sizeof a),
                    tps_device_label(graph->device, b, sizeof b));
  uint32_t *leaves, count, notices = parts->keep.notice_count;
  uint32_t events = parts->keep.event_count;
  uint32_t ids = of->ids;
  int code = tps_graph_node_leaves(&parts->list, &leaves, &count, err);
  if (code == 0 && graph != child)
    code = tps_keep_all(&parts->keep, &of->keep, true, err);
  if (code == 0)
    code = tps_graph_node_list_copy(&parts->list, &of->list, leaves, count,
                                    parts->ids, &parts->keep, false,
                                    graph->context, err);
  free(leaves);
  tps_keep_merge(&parts->keep);
  if (code == 0) {
    *base = parts->ids;
    parts->ids += ids;
    unbuild(graph);
    return 0;
  }
  tps_keep_cut(&parts->keep, notices, events);
  return code;
}

const tps_graph_node_list *tps_graph_nodes(const tps_graph *graph) {
  return &graph->parts->list;
}

uint32_t tps_graph_node_count(const tps_graph *graph) {
  return count_nodes(&graph->parts->list);
}

void tps_graph_free(tps_graph *graph) {
  if (graph == NULL) return;
  struct tps_graph_parts *parts = graph->parts;
  tps_context *context = graph->context;
  unbuild(graph);
  free_contents(parts);
  if (parts->last != NULL) tps_stream_unhold(parts->last);
  free(parts);
  free(graph);
  tps_context_release(context);
}
