/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Contexts: the choice of the first device, the part for each device, waiting.
 * A context is counted by its objects, since a Lua state may collect them in
 * any order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/callback.h"
#include "runtime/capture.h"

/* ---- choice -------------------------------------------------------------- */

/* A number alone needs the kind in use; else no GPU is looked for unasked. */
static int choose(const char *choice, tps_device **out, tps_error *err) {
  tps_device_kind kind = TPS_SIM;
  const char *variable = choice == NULL ? getenv("TPSTREAM_DEVICE") : NULL;
  if (choice == NULL) choice = variable;
  if (choice == NULL || choice[0] == '\0') choice = "0";
  if (choice[0] >= '0' && choice[0] <= '9' &&
      tps_device_count(TPS_CUDA, NULL) > 0)
    kind = TPS_CUDA;
  int code = tps_device_parse(choice, kind, out, err);
  if (code == 0 || variable == NULL) return code;
  tps_error why = *err;
  return tps_fail(err, code, "TPSTREAM_DEVICE is '%.64s': %s", variable,
                  why.message);
}

int tps_context_new(const char *choice, tps_context **out, tps_error *err) {
  tps_device *device;
  int code = choose(choice, &device, err);
  if (code != 0) return code;
  tps_context *context = calloc(1, sizeof *context);
  struct tps_context_parts *parts = calloc(1, sizeof *parts);
  if (context == NULL || parts == NULL) {
    free(context);
    free(parts);
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  }
  context->id = tps_next_id();
  context->kind = device->kind;
  context->initial_device = device->ordinal;
  context->site.source = "";
  context->parts = parts;
  parts->refs = 1;
  parts->limit = UINT64_MAX;
  *out = context;
  return 0;
}

/* ---- end ----------------------------------------------------------------- */

static void free_context(tps_context *context) {
  struct tps_context_parts *parts = context->parts;
  while (parts->locals != NULL) {
    tps_local *local = parts->locals;
    parts->locals = local->next;
    tps_local_free(local);
  }
  while (parts->spare != NULL) {
    tps_memory *memory = parts->spare;
    parts->spare = memory->parts->next;
    free(memory);
  }
  free(parts);
  free(context);
}

void tps_context_release(tps_context *context) {
  if (--context->parts->refs == 0) free_context(context);
}

void tps_context_close(tps_context *context) {
  if (context == NULL) return;
  context->interrupted = NULL;
  tps_callback_end(context);
  tps_lent_leave(context);
}

/* ---- the part for each device -------------------------------------------- */

static tps_local *new_local(tps_context *context, tps_device *device) {
  tps_local *local = calloc(1, sizeof *local);
  if (local == NULL) return NULL;
  local->context = context;
  local->device = device;
  local->next = context->parts->locals;
  context->parts->locals = local;
  tps_device_state *state = tps_state(device);
  pthread_mutex_lock(&state->lock);
  state->contexts++;
  pthread_mutex_unlock(&state->lock);
  return local;
}

static tps_local *find_local(const tps_context *context,
                             const tps_device *device) {
  tps_local *local = context->parts->locals;
  while (local != NULL && local->device != device) local = local->next;
  return local;
}

tps_local *tps_local_get(tps_context *context, tps_device *device,
                         tps_error *err) {
  tps_local *local = find_local(context, device);
  if (local == NULL) local = new_local(context, device);
  if (local == NULL) tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  return local;
}

void tps_context_reclaim(tps_context *context) {
  for (tps_local *l = context->parts->locals; l != NULL; l = l->next)
    tps_reclaim_local(l);
}

void tps_memory_get_stats(tps_context *context, tps_device *device,
                          tps_memory_stats *out) {
  const tps_local *local = find_local(context, device);
  memset(out, 0, sizeof *out);
  if (local != NULL) *out = local->stats;
  tps_device_state *state = tps_state(device);
  pthread_mutex_lock(&state->lock);
  out->pool_bytes = state->pool_bytes;
  pthread_mutex_unlock(&state->lock);
}

/* ---- waiting ------------------------------------------------------------- */

static int ask(tps_device *device, tps_device_stream *stream,
               tps_device_event *event, uint64_t timeout_ns, tps_error *err) {
  const tps_device_face *face = device->face;
  if (event != NULL)
    return timeout_ns == 0
               ? face->event_query(device, event, err)
               : face->event_synchronize(device, event, timeout_ns, err);
  return timeout_ns == 0
             ? face->stream_query(device, stream, err)
             : face->stream_synchronize(device, stream, timeout_ns, err);
}

/* How long to wait next; 0 when the deadline has passed. */
static uint64_t slice(uint64_t deadline) {
  if (deadline == TPS_FOREVER) return TPS_SLICE_NS;
  uint64_t now = tps_now_ns(), left = deadline > now ? deadline - now : 0;
  return left < TPS_SLICE_NS ? left : TPS_SLICE_NS;
}

static int wait_in_slices(tps_local *local, tps_device_stream *stream,
                          tps_device_event *event, uint64_t timeout_ns,
                          tps_error *err) {
  tps_context *context = local->context;
  uint64_t deadline =
      timeout_ns == TPS_FOREVER ? TPS_FOREVER : tps_deadline_ns(timeout_ns);
  uint64_t next = timeout_ns == 0 ? 0 : slice(deadline);
  for (;;) {
    int code = ask(local->device, stream, event, next, err);
    if (code == 0) return 0;
    if (code != TPS_NOT_READY)
      return tps_failed(local->device, local, code, err);
    if (next == 0) return code;
    if (context->interrupted != NULL &&
        context->interrupted(context->interrupted_data) != 0)
      return tps_fail(err, TPS_INTERRUPTED, "interrupted!");
    next = slice(deadline);
  }
}

int tps_wait(tps_local *local, tps_device_stream *stream,
             tps_device_event *event, uint64_t timeout_ns, tps_error *err) {
  if (timeout_ns == 0 || !tps_observing())
    return wait_in_slices(local, stream, event, timeout_ns, err);
  uint64_t began = tps_now_ns();
  int code = wait_in_slices(local, stream, event, timeout_ns, err);
  tps_observe_held(local->context, began);
  return code;
}

int tps_ask_others(const tps_local *local, tps_error *err) {
  for (tps_local *l = local->context->parts->locals; l != NULL; l = l->next) {
    tps_device *device = l->device;
    if (l == local || tps_faulted(device)) continue;
    int code = ask(device, device->face->default_stream(device), NULL, 0, err);
    if (code != 0 && code != TPS_NOT_READY)
      return tps_failed(device, l, code, err);
  }
  return 0;
}

static uint64_t left_until(uint64_t deadline) {
  if (deadline == TPS_FOREVER) return TPS_FOREVER;
  uint64_t now = tps_now_ns();
  return deadline > now ? deadline - now : 0;
}

/* Waits for one stream of a list, open or closed. */
static int wait_stream(tps_stream *stream, uint64_t deadline, tps_error *err) {
  struct tps_stream_parts *parts = stream->parts;
  uint64_t seq = stream->last_seq;
  if (parts->done_seq >= seq && !parts->unseen) return 0;
  if (tps_stream_blank(stream)) return 0;
  int code = tps_wait(parts->local, parts->handle, tps_stream_last(stream),
                      left_until(deadline), err);
  if (code == 0) code = tps_others(parts->local, err);
  if (code == 0) tps_stream_reached(stream, seq);
  return code;
}

static int wait_list(const tps_stream_list *list, uint64_t deadline,
                     tps_error *err) {
  for (tps_stream *s = list->first; s != NULL; s = s->parts->next) {
    if (s->parts->internal) continue;
    int code = wait_stream(s, deadline, err);
    if (code != 0) return code;
  }
  return 0;
}

/* For all that the context, or anybody, has queued on the device. */
static void waited_all(const tps_local *local, bool anybody) {
  if (tps_observing())
    tps_observe_waited(&(tps_wait_note){
        .context = local->context, .device = local->device, .all = anybody});
}

static int wait_local(tps_local *local, uint64_t deadline, tps_error *err) {
  int code = tps_device_fault(local->device, err);
  if (code == 0) code = wait_list(&local->open, deadline, err);
  if (code == 0) code = wait_list(&local->closed, deadline, err);
  if (code == 0) waited_all(local, false);
  return code;
}

int tps_context_synchronize(tps_context *context, uint64_t timeout_ns,
                            tps_error *err) {
  uint64_t deadline = tps_deadline_ns(timeout_ns);
  int code = 0;
  for (tps_local *l = context->parts->locals; l != NULL && code == 0;
       l = l->next)
    code = wait_local(l, deadline, err);
  tps_context_reclaim(context);
  return code;
}

/* What the runtime did not queue itself can only be waited for without an end,
 * or asked about on the legacy stream. */
static int wait_foreign(tps_local *local, uint64_t timeout_ns,
                        uint64_t deadline, tps_error *err) {
  tps_device *device = local->device;
  if (timeout_ns != TPS_FOREVER)
    return tps_wait(local, device->face->default_stream(device), NULL,
                    left_until(deadline), err);
  uint64_t began = tps_observing() ? tps_now_ns() : 0;
  int code = device->face->synchronize(device, err);
  if (began != 0) tps_observe_held(local->context, began);
  return code != 0 ? tps_failed(device, local, code, err) : 0;
}

int tps_device_synchronize(tps_context *context, tps_device *device,
                           uint64_t timeout_ns, tps_error *err) {
  tps_local *local = tps_local_get(context, device, err);
  if (local == NULL) return TPS_NO_HOST_MEMORY;
  uint64_t deadline = tps_deadline_ns(timeout_ns);
  int code = tps_capture_refuse_device(context, device, err);
  if (code == 0) code = wait_local(local, deadline, err);
  if (code == 0) code = wait_foreign(local, timeout_ns, deadline, err);
  if (code == 0) waited_all(local, timeout_ns == TPS_FOREVER);
  tps_reclaim_local(local);
  return code;
}
