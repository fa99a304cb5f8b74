/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Graphs. While a stream captures, what is queued on it becomes a node instead;
 * a stream that waits for it joins the capture. The runtime itself keeps the
 * nodes and what each comes after, so that both kinds of device capture alike
 * and nothing done beside can spoil a capture: the device is only handed the
 * finished list. A graph keeps what its nodes use: memory, modules, textures.
 *
 * A context captures one graph at a time. Within it the bodies of conditional
 * nodes are captured one inside another, each on streams of its own.
 */
#ifndef TPS_RUNTIME_GRAPH_H
#define TPS_RUNTIME_GRAPH_H

#include "runtime/memory.h"

typedef struct tps_graph {
  tps_context *context;
  tps_device *device; /* of the stream that it was captured on */
  uint64_t id;        /* unique in the process */
  struct tps_graph_parts *parts;
} tps_graph;

/* ---- capturing ----------------------------------------------------------- */

/* `relaxed`: the device may be synchronized meanwhile. */
int tps_capture_begin(tps_stream *stream, bool relaxed, tps_error *err);
/* Ends the capture begun last in any case. What was captured as a graph that is
 * not built yet, or an error: a stream was forked and not joined. */
int tps_capture_end(tps_context *context, tps_graph **out, tps_error *err);
/* Ends the capture begun last, a body or all; nothing comes of it. */
void tps_capture_abort(tps_context *context);
/* True while something captures. */
bool tps_capture_any(const tps_context *context);

/* A body: what is queued on `inner`, a stream that nothing else uses, until the
 * end; then a node that runs it follows on `outer`: if, or as long as, the
 * 32-bit integer at byte `first` of `flag` is not 0. */
int tps_capture_body_begin(tps_stream *outer, tps_stream *inner,
                           tps_error *err);
int tps_capture_body_end(tps_context *context, bool loop, tps_memory *flag,
                         uint64_t first, tps_error *err);

/* The id of the node captured last on the stream; UINT32_MAX: none. */
uint32_t tps_capture_last(const tps_stream *stream);

/* ---- graphs -------------------------------------------------------------- */

/* Makes the device's graph, if that has not been done. */
int tps_graph_build(tps_graph *graph, tps_error *err);
/* Queues all of it on the stream, or on a capturing one: copies its nodes into
 * that capture. `tokens`: one for each host notification. */
int tps_graph_launch(tps_graph *graph, tps_stream *stream,
                     const uint64_t *tokens, tps_error *err);
uint32_t tps_graph_notice_count(const tps_graph *graph);
/* `size` bytes at `offset` of the parameters of launch node `id`: for launches
 * from now on. */
int tps_graph_set(tps_graph *graph, uint32_t id, uint32_t offset,
                  const void *bytes, size_t size, tps_error *err);
/* The same for the elements of fill node `id`. */
int tps_graph_set_fill(tps_graph *graph, uint32_t id, uint64_t pattern,
                       tps_error *err);
/* `graph` becomes what `with` is, which is freed. *in_place: the shape was the
 * same and the device could keep what it has. `with` stays as it is when this
 * fails. */
int tps_graph_replace(tps_graph *graph, tps_graph *with, bool *in_place,
                      tps_error *err);
/* The nodes of `child` once more, after all of `graph`. *base: added to their
 * ids. */
int tps_graph_add(tps_graph *graph, tps_graph *child, uint32_t *base,
                  tps_error *err);
const tps_graph_node_list *tps_graph_nodes(const tps_graph *graph);
/* In bodies, too. */
uint32_t tps_graph_node_count(const tps_graph *graph);
/* Never waits; what was launched, ends. NULL is fine. */
void tps_graph_free(tps_graph *graph);

#endif
