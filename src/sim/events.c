/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Events of the simulated device. An event points to its latest recording; a
 * wait that was queued keeps the recording that it saw.
 */
#include "sim/queue.h"

#include <stdlib.h>

#include "base/clock.h"

static tps_sim_device *to_device(tps_device *device) {
  return (tps_sim_device *)device;
}

static tps_sim_event *to_event(tps_device_event *event) {
  return (tps_sim_event *)event;
}

void tps_sim_record_unref(tps_sim_record *record) {
  if (record != NULL && --record->refs == 0) free(record);
}

int tps_sim_event_create(tps_device *face, unsigned flags,
                         tps_device_event **out, tps_error *err) {
  tps_sim_device *device = to_device(face);
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  tps_sim_event *event = calloc(1, sizeof *event);
  if (event == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for an event");
  event->device = device;
  event->flags = flags;
  tps_sim_lock(device->pool);
  event->handle = ++device->pool->handles * 16;
  tps_sim_unlock(device->pool);
  *out = (tps_device_event *)event;
  return 0;
}

void tps_sim_event_destroy(tps_device *face, tps_device_event *handle) {
  tps_sim_pool *pool = to_device(face)->pool;
  tps_sim_event *event = to_event(handle);
  tps_sim_lock(pool);
  tps_sim_record_unref(event->record);
  tps_sim_unlock(pool);
  free(event);
}

/* The event will hold the record, too. The lock may be held. */
tps_sim_task *tps_sim_record_task(tps_sim_device *device, tps_op *op) {
  tps_sim_record *record = calloc(1, sizeof *record);
  if (record == NULL) return NULL;
  tps_sim_task *task = tps_sim_task_new(device, TPS_SIM_TASK_RECORD, op);
  if (task == NULL) {
    free(record);
    return NULL;
  }
  record->refs = 1;
  record->device = device;
  record->task = task;
  task->u.record = record;
  return task;
}

int tps_sim_event_record(tps_device *face, tps_device_event *handle,
                         tps_device_stream *stream, tps_op *op,
                         tps_error *err) {
  tps_sim_device *device = to_device(face);
  tps_sim_event *event = to_event(handle);
  if (event->device != device)
    return tps_fail(err, TPS_INVALID_HANDLE,
                    "event of device %d recorded on device %d",
                    event->device->base.ordinal, device->base.ordinal);
  tps_sim_task *task = tps_sim_record_task(device, op);
  if (task == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for queued work");
  tps_sim_record *record = task->u.record, *before = NULL;
  tps_sim_lock(device->pool);
  record->refs++; /* the task may be gone when link_task returns */
  int code = tps_sim_link_task((tps_sim_stream *)stream, task, NULL, err);
  if (code == 0) {
    before = event->record;
    event->record = record;
  } else {
    before = record;
  }
  tps_sim_record_unref(before);
  if (code == 0) tps_sim_chance_call(device->pool, false);
  tps_sim_unlock(device->pool);
  if (code != 0) tps_sim_discard(task);
  return code;
}

int tps_sim_stream_wait_event(tps_device *face, tps_device_stream *handle,
                              tps_device_event *event, tps_op *op,
                              tps_error *err) {
  tps_sim_device *device = to_device(face);
  tps_sim_task *task = tps_sim_task_new(device, TPS_SIM_TASK_WAIT, op);
  if (task == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for queued work");
  tps_sim_lock(device->pool);
  tps_sim_record *record = to_event(event)->record;
  if (record != NULL) record->refs++;
  task->u.record = record;
  int code = tps_sim_link_task((tps_sim_stream *)handle, task,
                               record != NULL ? record->task : NULL, err);
  if (code == 0) tps_sim_chance_call(device->pool, false);
  tps_sim_unlock(device->pool);
  if (code != 0) tps_sim_discard(task);
  return code;
}

static bool is_done(const void *what) {
  const tps_sim_record *record = what;
  return record == NULL ||
         atomic_load_explicit(&record->done, memory_order_acquire);
}

int tps_sim_event_query(tps_device *face, tps_device_event *event,
                        tps_error *err) {
  tps_sim_asked(to_device(face)->pool);
  bool done = is_done(to_event(event)->record);
  int code = tps_sim_refuse(to_device(face), err);
  if (code != 0 || done) return code;
  return tps_fail(err, TPS_NOT_READY, "the event is not done");
}

int tps_sim_event_synchronize(tps_device *face, tps_device_event *handle,
                              uint64_t timeout_ns, tps_error *err) {
  tps_sim_device *device = to_device(face);
  tps_sim_record *record = to_event(handle)->record;
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  uint64_t deadline = tps_deadline_ns(timeout_ns);
  bool done = tps_sim_look(&device->pool->hosts, is_done, record, deadline);
  if (!done) {
    tps_sim_lock(device->pool);
    record->refs++;
    done = is_done(record) ||
           tps_sim_sleep_in(device->pool, &record->waiters, 0, deadline);
    tps_sim_record_unref(record);
    tps_sim_unlock(device->pool);
  }
  code = tps_sim_refuse(device, err);
  if (code != 0 || done) return code;
  return tps_fail(err, TPS_NOT_READY, "the event is not done");
}

static int check_timed(const tps_sim_event *event, const char *which,
                       tps_error *err) {
  if ((event->flags & TPS_EVENT_TIMING) == 0)
    return tps_fail(err, TPS_INVALID_HANDLE, "%s event has no timing", which);
  if (event->record == NULL)
    return tps_fail(err, TPS_INVALID_HANDLE, "%s event was never recorded",
                    which);
  return 0;
}

int tps_sim_event_elapsed(tps_device *face, tps_device_event *a,
                          tps_device_event *b, double *ms, tps_error *err) {
  tps_sim_event *start_event = to_event(a), *end_event = to_event(b);
  int code = tps_sim_refuse(to_device(face), err);
  if (code == 0) code = check_timed(start_event, "start", err);
  if (code == 0) code = check_timed(end_event, "end", err);
  if (code != 0) return code;
  if (!is_done(start_event->record) || !is_done(end_event->record))
    return tps_fail(err, TPS_NOT_READY, "%s event is not done",
                    is_done(start_event->record) ? "end" : "start");
  *ms = ((double)end_event->record->time_ns -
         (double)start_event->record->time_ns) /
        1e6;
  return 0;
}

uint64_t tps_sim_event_handle(tps_device *face, tps_device_event *event) {
  (void)face;
  return to_event(event)->handle;
}

static int not_shared(tps_error *err) {
  return tps_fail(err, TPS_NOT_SUPPORTED,
                  "events of a simulated device can't be shared between "
                  "processes");
}

int tps_sim_event_export(tps_device *face, tps_device_event *event,
                         char handle[TPS_EVENT_IPC_BYTES], tps_error *err) {
  (void)face;
  (void)event;
  (void)handle;
  return not_shared(err);
}

int tps_sim_event_import(tps_device *face,
                         const char handle[TPS_EVENT_IPC_BYTES],
                         tps_device_event **out, tps_error *err) {
  (void)face;
  (void)handle;
  (void)out;
  return not_shared(err);
}
