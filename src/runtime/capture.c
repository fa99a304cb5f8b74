/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Capturing: which streams take part, and what each node comes after. A stream
 * that captures has a branch; its tips are the nodes that the next one comes
 * after. To wait for a branch is to add its tips to one's own. */
#include "runtime/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_BACK 64 /* nodes, for edges that say nothing new */

static struct tps_capture *innermost(const tps_context *context) {
  return context->parts->capture;
}

static const char *body_or_graph(const tps_capture *capture) {
  return capture->around != NULL ? "body" : "graph";
}

bool tps_capture_any(const tps_context *context) {
  return innermost(context) != NULL;
}

bool tps_capture_lives(const tps_context *context, uint64_t capture) {
  const tps_capture *c = innermost(context);
  while (c != NULL && c->id != capture) c = c->around;
  return c != NULL;
}

uint32_t tps_capture_last(const tps_stream *stream) {
  const tps_branch *branch = stream->parts->branch;
  if (branch == NULL || branch->tip_count == 0) return UINT32_MAX;
  return branch->capture->list.nodes[branch->tips[branch->tip_count - 1]].id;
}

/* ---- branches ------------------------------------------------------------ */

static tps_branch *new_branch(tps_capture *capture, tps_stream *stream,
                              tps_error *err) {
  tps_branch *branch = calloc(1, sizeof *branch);
  if (branch == NULL) {
    tps_out_of_host_memory(err);
    return NULL;
  }
  branch->capture = capture;
  branch->stream = stream;
  branch->stream_id = stream->id;
  branch->forked_at = stream->context->site;
  branch->next = capture->branches;
  capture->branches = branch;
  stream->parts->branch = branch;
  stream->capturing = true;
  return branch;
}

void tps_capture_forget(tps_stream *stream) {
  tps_branch *branch = stream->parts->branch;
  if (branch == NULL) return;
  branch->stream = NULL;
  stream->parts->branch = NULL;
  stream->capturing = false;
}

/* True when `later` is known to come after `earlier` anyway: what it comes after
 * is gone through up to that far back. */
static bool comes_after(const tps_graph_node_list *list, uint32_t later,
                        uint32_t earlier) {
  uint32_t seen[LOOK_BACK], count = 1; /* not cleared: that takes longer */
  if (later <= earlier) return later == earlier;
  seen[0] = later;
  for (uint32_t i = 0; i < count; i++) {
    const tps_graph_node *node = &list->nodes[seen[i]];
    for (uint32_t j = 0; j < node->after_count; j++) {
      if (node->after[j] == earlier) return true;
      if (node->after[j] > earlier && count < LOOK_BACK)
        seen[count++] = node->after[j];
    }
  }
  return false;
}

static void remove_tip(tps_branch *branch, uint32_t i) {
  branch->tip_count--;
  memmove(&branch->tips[i], &branch->tips[i + 1],
          (branch->tip_count - i) * sizeof *branch->tips);
}

static int add_tip(tps_branch *branch, uint32_t tip, tps_error *err) {
  const tps_graph_node_list *list = &branch->capture->list;
  for (uint32_t i = branch->tip_count; i-- > 0;) {
    if (comes_after(list, branch->tips[i], tip)) return 0;
    if (comes_after(list, tip, branch->tips[i])) remove_tip(branch, i);
  }
  uint32_t *tips = tps_grow(branch->tips, branch->tip_count,
                            &branch->tip_capacity, sizeof tip, err);
  if (tips == NULL) return TPS_NO_HOST_MEMORY;
  branch->tips = tips;
  tips[branch->tip_count++] = tip;
  return 0;
}

int tps_capture_follow(tps_branch *branch, uint32_t node, tps_error *err) {
  return add_tip(branch, node, err);
}

static int add_tips(tps_branch *branch, const uint32_t *tips, uint32_t count,
                    tps_error *err) {
  int code = 0;
  for (uint32_t i = 0; i < count && code == 0; i++)
    code = add_tip(branch, tips[i], err);
  return code;
}

int tps_capture_branch(const tps_stream *stream, tps_branch **out,
                       tps_error *err) {
  *out = stream->parts->branch;
  if ((*out)->capture == innermost(stream->context)) return 0;
  return tps_fail(err, TPS_MISUSE,
                  "stream %llu is captured by the graph around this body: only "
                  "streams of the body can be used in it",
                  (unsigned long long)stream->id);
}

/* ---- begin and end ------------------------------------------------------- */

static int check_begin(const tps_stream *stream, tps_error *err) {
  const tps_capture *capture = innermost(stream->context);
  if (stream->is_default)
    return tps_fail(err, TPS_MISUSE,
                    "the default stream can't capture: use a stream of your "
                    "own, or none");
  if (capture == NULL) return 0;
  char where[512] = "";
  const tps_site *site = &capture->origin->forked_at;
  if (site->line > 0)
    snprintf(where, sizeof where, ", begun at %.480s:%d", site->source,
             site->line);
  return tps_fail(err, TPS_MISUSE,
                  "captures can't be nested: stream %llu is capturing%s",
                  (unsigned long long)capture->origin->stream_id, where);
}

static tps_graph *new_graph(tps_stream *stream, tps_error *err) {
  tps_graph *graph = calloc(1, sizeof *graph);
  struct tps_graph_parts *parts = calloc(1, sizeof *parts);
  if (graph == NULL || parts == NULL) {
    free(graph);
    free(parts);
    tps_out_of_host_memory(err);
    return NULL;
  }
  graph->context = stream->context;
  graph->device = stream->device;
  graph->id = tps_next_id();
  graph->parts = parts;
  parts->local = stream->parts->local;
  tps_context_hold(graph->context);
  return graph;
}

/* A capture on the stream, inside `around` or with a graph of its own. */
static int begin(tps_stream *stream, tps_capture *around, tps_error *err) {
  tps_capture *capture = calloc(1, sizeof *capture);
  if (capture == NULL) return tps_out_of_host_memory(err);
  capture->around = around;
  capture->id = tps_next_id();
  capture->device = stream->device;
  capture->graph = around != NULL ? around->graph : new_graph(stream, err);
  if (capture->graph != NULL)
    capture->origin = new_branch(capture, stream, err);
  if (capture->origin == NULL) {
    if (around == NULL) tps_graph_free(capture->graph);
    free(capture);
    return TPS_NO_HOST_MEMORY;
  }
  stream->context->parts->capture = capture;
  return 0;
}

int tps_capture_begin(tps_stream *stream, bool relaxed, tps_error *err) {
  int code = tps_stream_ready(stream, err);
  if (code == 0) code = check_begin(stream, err);
  if (code == 0) code = begin(stream, NULL, err);
  if (code == 0) innermost(stream->context)->relaxed = relaxed;
  return code;
}

int tps_capture_body_begin(tps_stream *outer, tps_stream *inner,
                           tps_error *err) {
  tps_branch *branch;
  int code = tps_stream_ready(outer, err);
  if (code == 0) code = tps_stream_ready(inner, err);
  if (code != 0) return code;
  if (!outer->capturing)
    return tps_fail(err, TPS_MISUSE,
                    "conditional nodes are made while a graph is captured "
                    "(tp.capture), on a stream that is part of it");
  code = tps_capture_branch(outer, &branch, err);
  if (code == 0) code = begin(inner, branch->capture, err);
  if (code != 0) return code;
  innermost(outer->context)->outer = outer;
  innermost(outer->context)->relaxed = branch->capture->relaxed;
  return 0;
}

/* Marks what the origin's end comes after: the nodes up to there. */
static bool *reached_nodes(const tps_capture *capture) {
  const tps_graph_node_list *list = &capture->list;
  bool *reached = calloc(list->count + 1, sizeof *reached);
  if (reached == NULL) return NULL;
  for (uint32_t i = 0; i < capture->origin->tip_count; i++)
    reached[capture->origin->tips[i]] = true;
  for (uint32_t i = list->count; i-- > 0;)
    for (uint32_t j = 0; reached[i] && j < list->nodes[i].after_count; j++)
      reached[list->nodes[i].after[j]] = true;
  return reached;
}

static bool joined(const tps_branch *branch, const bool *reached) {
  for (uint32_t i = 0; i < branch->tip_count; i++)
    if (!reached[branch->tips[i]]) return false;
  return true;
}

static int not_joined(const tps_capture *capture, const tps_branch *branch,
                      tps_error *err) {
  char where[512] = "";
  unsigned long long origin = capture->origin->stream_id;
  if (branch->forked_at.line > 0)
    snprintf(where, sizeof where, " at %.480s:%d", branch->forked_at.source,
             branch->forked_at.line);
  return tps_fail(err, TPS_MISUSE,
                  "stream %llu was forked%s and not joined again: stream %llu, "
                  "on which the %s is captured, has to wait for it",
                  (unsigned long long)branch->stream_id, where, origin,
                  body_or_graph(capture));
}

static int check_joined(const tps_capture *capture, tps_error *err) {
  bool *reached = reached_nodes(capture);
  const tps_branch *found = NULL;
  if (reached == NULL) return tps_out_of_host_memory(err);
  for (const tps_branch *b = capture->branches; b != NULL; b = b->next)
    if (!joined(b, reached)) found = b; /* the first one forked */
  free(reached);
  return found != NULL ? not_joined(capture, found, err) : 0;
}

/* The streams are as they were before; the capture around goes on. */
static void finish(tps_context *context, tps_capture *capture) {
  context->parts->capture = capture->around;
  while (capture->branches != NULL) {
    tps_branch *branch = capture->branches;
    capture->branches = branch->next;
    if (branch->stream != NULL) tps_capture_forget(branch->stream);
    free(branch->tips);
    free(branch);
  }
  tps_births_free(capture);
  tps_parts_free(capture->parts);
  tps_graph_node_list_free(&capture->list);
  free(capture);
}

int tps_capture_end(tps_context *context, tps_graph **out, tps_error *err) {
  tps_capture *capture = innermost(context);
  tps_graph *graph = capture->graph;
  int code = tps_device_fault(graph->device, err);
  if (code == 0) code = check_joined(capture, err);
  graph->parts->list = capture->list;
  capture->list = (tps_graph_node_list){0};
  finish(context, capture);
  if (code == 0) code = tps_capture_quiet(graph, err);
  if (code == 0) tps_keep_merge(&graph->parts->keep);
  if (code != 0) tps_graph_free(graph);
  else *out = graph;
  return code;
}

void tps_capture_abort(tps_context *context) {
  tps_capture *capture = innermost(context);
  if (capture == NULL) return;
  tps_graph *graph = capture->around == NULL ? capture->graph : NULL;
  finish(context, capture);
  tps_graph_free(graph);
}

/* ---- order --------------------------------------------------------------- */

int tps_capture_record(tps_stream *stream, tps_event *event,
                       tps_capture_mark **mark, tps_error *err) {
  tps_branch *branch;
  int code = tps_capture_branch(stream, &branch, err);
  if (code != 0) return code;
  uint64_t id = branch->capture->id;
  uint32_t room = branch->tip_count + 1, earlier = UINT32_MAX;
  tps_capture_mark *fresh = malloc(sizeof *fresh + room * sizeof *branch->tips);
  if (fresh == NULL) return tps_out_of_host_memory(err);
  *fresh =
      (tps_capture_mark){id, branch->capture->around != NULL, UINT32_MAX, 0};
  if (*mark != NULL && (*mark)->capture == id) earlier = (*mark)->node;
  if (!fresh->only)
    code = tps_capture_event(stream, event, earlier, &fresh->node, err);
  if (code != 0) {
    free(fresh);
    return code;
  }
  fresh->count = branch->tip_count;
  if (fresh->count > 0)
    memcpy(fresh->tips, branch->tips, fresh->count * sizeof *branch->tips);
  free(*mark);
  *mark = fresh;
  return 0;
}

/* The stream becomes part of the capture. */
static int fork_stream(tps_stream *stream, tps_branch **out, tps_error *err) {
  char a[32], b[32];
  tps_capture *capture = innermost(stream->context);
  const tps_device *device = capture->device;
  if (stream->is_default)
    return tps_fail(err, TPS_MISUSE,
                    "the default stream can't become part of a capture");
  if (capture->around != NULL && stream->device != device)
    return tps_fail(err, TPS_MISUSE,
                    "a stream of %s can't become part of the body of a "
                    "conditional node on %s",
                    tps_device_label(stream->device, a, sizeof a),
                    tps_device_label(device, b, sizeof b));
  if (device->kind != stream->device->kind)
    return tps_fail(err, TPS_MISUSE,
                    "a stream of %s can't become part of a graph of %s: the "
                    "devices are of different kinds",
                    tps_device_label(stream->device, a, sizeof a),
                    tps_device_label(device, b, sizeof b));
  *out = new_branch(capture, stream, err);
  return *out == NULL ? TPS_NO_HOST_MEMORY : 0;
}

/* The branch of a stream that waits for a place in the capture. */
static int joining(tps_stream *stream, tps_branch **out, tps_error *err) {
  return stream->capturing ? tps_capture_branch(stream, out, err)
                           : fork_stream(stream, out, err);
}

int tps_capture_wait(tps_stream *stream, const tps_capture_mark *mark,
                     tps_error *err) {
  const tps_capture *capture = innermost(stream->context);
  tps_branch *branch = NULL;
  if (capture == NULL)
    return tps_fail(
        err, TPS_MISUSE,
        "the event was recorded in a capture that has ended: record "
        "it again");
  if (capture->id != mark->capture)
    return tps_fail(err, TPS_MISUSE,
                    "the event was recorded outside of the %s that is being "
                    "captured",
                    body_or_graph(capture));
  int code = joining(stream, &branch, err);
  return branch != NULL ? add_tips(branch, mark->tips, mark->count, err) : code;
}

int tps_capture_wait_stream(tps_stream *stream, tps_stream *other,
                            tps_error *err) {
  tps_branch *from, *branch;
  if (!other->capturing)
    return tps_fail(err, TPS_MISUSE,
                    "stream %llu is not part of the capture: stream %llu can't "
                    "wait for it there",
                    (unsigned long long)other->id,
                    (unsigned long long)stream->id);
  int code = tps_capture_branch(other, &from, err);
  if (code == 0) code = joining(stream, &branch, err);
  return code == 0 ? add_tips(branch, from->tips, from->tip_count, err) : code;
}

/* Instead of its own the branch has the tips of the other one. */
static int take_tips(tps_branch *branch, const tps_branch *from,
                     tps_error *err) {
  uint32_t count = from->tip_count;
  uint32_t *tips = malloc((count + 1) * sizeof *tips);
  if (tips == NULL) return tps_out_of_host_memory(err);
  if (count > 0) memcpy(tips, from->tips, count * sizeof *tips);
  free(branch->tips);
  branch->tips = tips;
  branch->tip_count = count;
  branch->tip_capacity = count + 1;
  return 0;
}

/* The first waits for all; nothing is queued meanwhile, so the others, which wait
 * for all as well, come to where it is. */
int tps_capture_barrier(tps_stream *const *streams, size_t count,
                        tps_error *err) {
  int code = 0;
  for (size_t i = 0; i < count; i++)
    if (!streams[i]->capturing)
      return tps_fail(err, TPS_MISUSE,
                      "stream %llu is not part of the capture, as others of "
                      "this barrier are",
                      (unsigned long long)streams[i]->id);
  for (size_t i = 1; i < count && code == 0; i++)
    code = tps_capture_wait_stream(streams[0], streams[i], err);
  for (size_t i = 1; i < count && code == 0; i++)
    if (streams[i] != streams[0])
      code =
          take_tips(streams[i]->parts->branch, streams[0]->parts->branch, err);
  return code;
}

/* ---- refusing ------------------------------------------------------------ */

int tps_capture_refuse(const tps_stream *stream, const char *what,
                       tps_error *err) {
  return tps_fail(err, TPS_MISUSE, "stream %llu is capturing: it can't %s",
                  (unsigned long long)stream->id, what);
}

int tps_capture_refuse_device(const tps_context *context,
                              const tps_device *device, tps_error *err) {
  char label[32];
  for (const tps_capture *c = innermost(context); c != NULL; c = c->around)
    for (const tps_branch *b = c->branches; b != NULL; b = b->next)
      if (!c->relaxed && b->stream != NULL && b->stream->device == device)
        return tps_fail(err, TPS_MISUSE,
                        "%s can't be synchronized while stream %llu captures",
                        tps_device_label(device, label, sizeof label),
                        (unsigned long long)b->stream_id);
  return 0;
}

/* ---- bodies -------------------------------------------------------------- */

static int check_body(const tps_capture *body, bool loop, tps_error *err) {
  int code = tps_device_fault(body->graph->device, err);
  if (code == 0) code = check_joined(body, err);
  if (code != 0) return code;
  if (loop && body->list.count == 0)
    return tps_fail(err, TPS_MISUSE,
                    "the body of graph_while is empty: nothing in it would set "
                    "the flag to 0");
  if (body->outer->closed || !body->outer->capturing)
    return tps_fail(err, TPS_MISUSE, "attempt to use a closed stream");
  return 0;
}

int tps_capture_body_end(tps_context *context, bool loop, tps_memory *flag,
                         uint64_t first, tps_error *err) {
  tps_capture *body = innermost(context);
  tps_stream *outer = body->outer;
  int code = check_body(body, loop, err);
  tps_graph_node_list list = body->list;
  tps_part *parts = body->parts;
  body->list = (tps_graph_node_list){0};
  body->parts = NULL;
  finish(context, body);
  if (code != 0 || list.count == 0) {
    tps_parts_free(parts);
    tps_graph_node_list_free(&list);
    return code;
  }
  code = tps_capture_condition(outer, loop, flag, first, &list, err);
  if (code == 0)
    tps_parts_of_body(innermost(context), parts, outer->parts->branch->tips[0]);
  else tps_parts_free(parts);
  tps_graph_node_list_free(&list);
  return code;
}
