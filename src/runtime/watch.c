/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Being notified of events. A notification comes after all work of its stream, so
 * for an event that later work has followed it is queued on a stream of the
 * runtime's own, which waits for the event and does nothing else. Events of one
 * stream are reached in the order of their records: one such stream serves them
 * all, as long as they are asked for in that order. */
#include <stdlib.h>

#include "runtime/inbox.h"

struct tps_watcher {
  struct tps_watcher *next;
  tps_stream *stream;
  uint64_t source, seq; /* the last event's: its stream's serial, its record */
};

static int new_watcher(tps_local *local, struct tps_watcher **out,
                       tps_error *err) {
  struct tps_watcher *w = calloc(1, sizeof *w);
  if (w == NULL) return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  w->stream = tps_stream_internal(local, err);
  if (w->stream == NULL) {
    free(w);
    return err->code;
  }
  w->next = local->watchers;
  local->watchers = w;
  *out = w;
  return 0;
}

/* One whose last event comes before, or one that nobody waits on. A source of 0
 * is unknown. */
static int find_watcher(tps_local *local, uint64_t source, uint64_t seq,
                        struct tps_watcher **out, tps_error *err) {
  struct tps_watcher *idle = NULL;
  for (struct tps_watcher *w = local->watchers; w != NULL; w = w->next) {
    if (source != 0 && w->source == source && w->seq <= seq) {
      *out = w;
      return 0;
    }
    if (w->stream->parts->holds == 0) idle = w;
  }
  *out = idle;
  return idle != NULL ? 0 : new_watcher(local, out, err);
}

int tps_event_watch(tps_event *event, tps_stream **out, tps_error *err) {
  uint64_t seq;
  tps_device *device = event->device;
  int code = tps_device_fault(device, err);
  if (code != 0) return code;
  tps_stream *source = tps_event_last(event, &seq);
  if (source != NULL && !source->closed && !source->parts->foreign &&
      !source->parts->unseen && source->last_seq == seq) {
    *out = source;
    return 0;
  }
  tps_local *local = tps_local_get(event->context, device, err);
  if (local == NULL) return TPS_NO_HOST_MEMORY;
  struct tps_watcher *w = NULL;
  uint64_t serial = source != NULL ? source->parts->serial : 0;
  code = find_watcher(local, serial, seq, &w, err);
  if (code != 0 || w == NULL) return code;
  tps_op *op = tps_op_internal(w->stream, TPS_OP_WAIT, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  code = device->face->stream_wait_event(device, w->stream->handle,
                                         event->handle, op, err);
  if (code != 0) return tps_failed(device, local, code, err);
  w->source = serial;
  w->seq = seq;
  *out = w->stream;
  return 0;
}

void tps_watchers_free(tps_local *local) {
  while (local->watchers != NULL) {
    struct tps_watcher *next = local->watchers->next;
    free(local->watchers);
    local->watchers = next;
  }
}
