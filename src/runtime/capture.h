/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Capturing as the other files of the runtime see it: each function that queues
 * something looks at stream->capturing first and goes here if it is set.
 */
#ifndef TPS_RUNTIME_CAPTURE_H
#define TPS_RUNTIME_CAPTURE_H

#include "runtime/graph.h"
#include "runtime/parts.h"

/* What a graph keeps: a reference for each. */
typedef struct tps_keep {
  tps_use *uses;
  uint32_t use_count, use_capacity;
  tps_module **modules;
  uint32_t module_count, module_capacity;
  struct tps_notice **notices; /* in the order of the host nodes */
  uint32_t notice_count, notice_capacity;
  tps_event **events; /* that its launches record */
  uint32_t event_count, event_capacity;
} tps_keep;

struct tps_graph_parts {
  tps_local *local;
  tps_graph_node_list list;
  tps_keep keep;
  uint32_t ids;            /* given to nodes so far */
  tps_op_list *ops;        /* of all nodes; made when it is built */
  bool spread;             /* since then: over several devices */
  tps_device_graph *built; /* NULL: at the next launch */
  tps_stream *last;        /* launched there before it was built anew; held */
  uint64_t last_seq;
};

/* One stream's part of a capture. */
typedef struct tps_branch {
  struct tps_branch *next;
  struct tps_capture *capture;
  tps_stream *stream; /* NULL once it is closed */
  uint64_t stream_id;
  tps_site forked_at;
  uint32_t *tips; /* what is queued next comes after these nodes */
  uint32_t tip_count, tip_capacity;
} tps_branch;

/* Memory allocated while capturing: what fills it first comes before its first
 * use on another stream, as outside of graphs. */
typedef struct tps_birth {
  uint64_t memory; /* id */
  tps_branch *home;
  uint32_t node; /* the last that used it at home, until another branch did */
  bool frozen;   /* one has */
  tps_branch **followers;
  uint32_t count, capacity;
} tps_birth;

/* A graph that was made part of the one that is captured: the memory of its own
 * (ids), and the nodes that it ends with. */
typedef struct tps_part {
  struct tps_part *next;
  uint64_t *memories;
  uint32_t *leaves;
  uint32_t memory_count, leaf_count;
} tps_part;

typedef struct tps_capture {
  struct tps_capture *around; /* a body's */
  tps_stream *outer;          /* of a body: where its node goes */
  tps_graph *graph;           /* the whole */
  uint64_t id;
  bool relaxed;
  tps_device *device;       /* of the stream that it began on */
  tps_graph_node_list list; /* of this body, or of all */
  tps_branch *branches;     /* the first begun stands last */
  tps_branch *origin;
  tps_birth *births;
  uint32_t birth_count, birth_capacity;
  tps_part *parts;
} tps_capture;

/* An event recorded while capturing: a place in that capture. */
typedef struct tps_capture_mark {
  uint64_t capture;
  bool only;     /* a place and no more, also when the capture has ended */
  uint32_t node; /* that records it; UINT32_MAX: none, in a body */
  uint32_t count;
  uint32_t tips[];
} tps_capture_mark;

/* The stream's branch of the capture begun last; MISUSE for one of a capture
 * around that. */
int tps_capture_branch(const tps_stream *stream, tps_branch **out,
                       tps_error *err);

/* What `branch` queues next comes after this node as well. */
int tps_capture_follow(tps_branch *branch, uint32_t node, tps_error *err);

/* ---- memory made meanwhile (birth.c) ------------------------------------- */

/* The memory was just allocated on the stream, which captures. */
int tps_capture_born(const tps_stream *stream, tps_memory *memory,
                     tps_error *err);
/* Before a node is made on the branch that uses these. */
int tps_birth_order(tps_branch *branch, const tps_use *uses, uint32_t count,
                    tps_error *err);
/* After it was made. */
void tps_birth_note(const tps_branch *branch, const tps_use *uses,
                    uint32_t count, uint32_t node);
void tps_births_free(tps_capture *capture);

/* ---- graphs that become parts (part.c) ----------------------------------- */

/* Before the nodes of a graph that keeps these are added to the branch. */
int tps_part_order(tps_branch *branch, const tps_keep *keep, tps_error *err);
/* They were added, and end with these. */
int tps_part_note(tps_capture *capture, const tps_keep *keep,
                  const uint32_t *leaves, uint32_t count, tps_error *err);
/* The parts of a body, which `node` runs, go over to the capture around it. */
void tps_parts_of_body(tps_capture *around, tps_part *parts, uint32_t node);
void tps_parts_free(tps_part *parts);

/* ---- instead of queueing ------------------------------------------------- */

int tps_capture_launch(const tps_prepared *prepared, tps_stream *stream,
                       const tps_use *uses, uint32_t count, tps_error *err);
int tps_capture_copy(tps_stream *stream, const tps_use *to, const tps_use *from,
                     const tps_rows *rows, tps_error *err);
int tps_capture_fill(tps_stream *stream, tps_memory *memory, uint64_t first,
                     uint64_t pattern, unsigned width, uint64_t count,
                     tps_error *err);
/* The bytes are kept with the graph. */
int tps_capture_write(tps_stream *stream, tps_memory *memory, uint64_t first,
                      const void *source, uint64_t bytes, tps_error *err);
int tps_capture_notify(tps_stream *stream, tps_error *err);
int tps_capture_graph(tps_graph *graph, tps_stream *stream, tps_error *err);
/* The body goes over to the node, perhaps also where this fails. */
int tps_capture_condition(tps_stream *outer, bool loop, tps_memory *flag,
                          uint64_t first, tps_graph_node_list *body,
                          tps_error *err);

/* Replaces *mark. Outside of bodies launches of the graph record the event. */
int tps_capture_record(tps_stream *stream, tps_event *event,
                       tps_capture_mark **mark, tps_error *err);
/* A node that records the event, in place of that at `earlier`, which did so
 * before (UINT32_MAX: none). What follows on the stream comes after the node only
 * if the event has timing. */
int tps_capture_event(tps_stream *stream, tps_event *event, uint32_t earlier,
                      uint32_t *node, tps_error *err);
/* At the end: leaves out records that nobody can hear of. */
int tps_capture_quiet(tps_graph *graph, tps_error *err);
/* True until that capture ends. */
bool tps_capture_lives(const tps_context *context, uint64_t capture);
/* Makes the stream, capturing or not, wait for the mark. */
int tps_capture_wait(tps_stream *stream, const tps_capture_mark *mark,
                     tps_error *err);
/* Where at least one of them captures. */
int tps_capture_wait_stream(tps_stream *stream, tps_stream *other,
                            tps_error *err);
/* The same; all of them have to. */
int tps_capture_barrier(tps_stream *const *streams, size_t count,
                        tps_error *err);
/* The stream is closed; its branch has still to be joined. */
void tps_capture_forget(tps_stream *stream);

/* "stream 3 is capturing: it can't be queried" for what = "be queried". */
TPS_COLD int tps_capture_refuse(const tps_stream *stream, const char *what,
                                tps_error *err);
/* Refuses an event that is a place in a capture (event.c). */
int tps_event_refuse_captured(const tps_event *event, const char *what,
                              tps_error *err);
/* Whether somebody beside the graph that keeps it can ask for the event. */
bool tps_event_heard(const tps_event *event);
/* One more keeps the event (event.c). */
void tps_event_ref(tps_event *event);
/* A graph that records the event was queued on the stream (event.c). */
void tps_event_launched(tps_event *event, tps_stream *stream, uint64_t seq);
/* Refuses to synchronize a device with a capturing stream. */
int tps_capture_refuse_device(const tps_context *context,
                              const tps_device *device, tps_error *err);

/* ---- nodes --------------------------------------------------------------- */

int tps_out_of_host_memory(tps_error *err);
/* The array with room for one more element, perhaps in another place; NULL and as
 * it was when out of memory. */
void *tps_grow(void *items, uint32_t count, uint32_t *capacity, size_t size,
               tps_error *err);
/* A node at the end of the list, zeroed; NULL when out of memory. */
tps_graph_node *tps_graph_node_append(tps_graph_node_list *list,
                                      tps_error *err);
/* Frees what the node owns. */
void tps_graph_node_drop(tps_graph_node *node);
void tps_graph_node_list_free(tps_graph_node_list *list);
/* Sets node->after. */
int tps_graph_node_follow(tps_graph_node *node, const uint32_t *after,
                          uint32_t count, tps_error *err);
/* Sets node->u.run.launch, with parameters of its own. */
int tps_graph_node_set_launch(tps_graph_node *node, const tps_launch *launch,
                              tps_error *err);
/* Appends the nodes of `from`, those that come after none after `tips`; base_id
 * is added to their ids; host nodes notify notices of their own, added to
 * `keep`; in a body no event is recorded. On failure the list is as before. */
int tps_graph_node_list_copy(tps_graph_node_list *list,
                             const tps_graph_node_list *from,
                             const uint32_t *tips, uint32_t count,
                             uint32_t base_id, tps_keep *keep, bool body,
                             tps_context *context, tps_error *err);
/* Takes out the nodes that record nothing; what came after one comes after what
 * that came after. */
int tps_graph_node_list_prune(tps_graph_node_list *list, tps_error *err);
/* Those that nothing comes after: an owned array. */
int tps_graph_node_leaves(const tps_graph_node_list *list, uint32_t **out,
                          uint32_t *count, tps_error *err);
/* True when both have the same nodes but for what these work on. */
bool tps_graph_node_same_shape(const tps_graph_node_list *a,
                               const tps_graph_node_list *b);
tps_graph_node *tps_graph_node_find(tps_graph_node_list *list, uint32_t id,
                                    uint32_t *index);

/* ---- what a graph keeps -------------------------------------------------- */

int tps_keep_use(tps_keep *keep, const tps_use *use, tps_error *err);
int tps_keep_module(tps_keep *keep, tps_module *module, tps_error *err);
int tps_keep_notice(tps_keep *keep, tps_context *context, tps_error *err);
int tps_keep_event(tps_keep *keep, tps_event *event, tps_error *err);
/* Uses and modules, and, where they are recorded, events. */
int tps_keep_all(tps_keep *keep, const tps_keep *of, bool events,
                 tps_error *err);
/* Lets go of notices and events beyond so many. */
void tps_keep_cut(tps_keep *keep, uint32_t notices, uint32_t events);
/* One use for each memory, of all that was used. */
void tps_keep_merge(tps_keep *keep);
void tps_keep_free(tps_keep *keep);

/* ---- host notifications (callback.c) ------------------------------------- */

/* A host node's: each launch of its graph arms it once, each run delivers once.
 */
struct tps_notice *tps_notice_new(tps_context *context, tps_error *err);
void tps_notice_unref(struct tps_notice *notice);
int tps_notice_arm(struct tps_notice *notice, tps_stream *stream,
                   uint64_t token, uint64_t promise, tps_error *err);
/* Takes the last arming back. */
void tps_notice_disarm(struct tps_notice *notice);
/* What the device calls. */
void tps_notice_deliver(void *notice, bool failed);

#endif
