/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Giving things back without waiting. Device memory is freed in stream order:
 * on the stream that used it, or on an internal reclaim stream that waits for
 * all that did. What only the host can give back (page-locked blocks, modules)
 * stays on a list with an event until that is done. What is still busy when its
 * context ends goes to a list of the process, which later contexts look
 * through. */
#include <stdlib.h>

#include "runtime/foreign.h"

#define FEW 8u

/* ---- which stream frees -------------------------------------------------- */

static bool mark_passed(const tps_mark *mark) {
  return tps_stream_passed(mark->stream, mark->seq);
}

/* True when `stream` takes work of this device and comes after all the marks.
 */
static bool after_all(const tps_stream *stream, const tps_device *device,
                      const tps_mark *marks, uint32_t count) {
  if (stream->closed || stream->device != device || stream->parts->foreign)
    return false;
  for (uint32_t i = 0; i < count; i++)
    if (marks[i].stream != stream && !mark_passed(&marks[i]) &&
        !tps_stream_covers(stream, marks[i].stream, marks[i].seq))
      return false;
  return true;
}

/* One of the using streams that already comes after all the others, or NULL. */
static tps_stream *single(const tps_device *device, const tps_mark *marks,
                          uint32_t count, uint32_t first) {
  if (count == 0 || count > FEW) return NULL;
  for (uint32_t i = 0; i < count; i++) {
    tps_stream *stream = marks[(first + i) % count].stream;
    if (after_all(stream, device, marks, count)) return stream;
  }
  return NULL;
}

static int follow_marks(tps_stream *reclaim, const tps_mark *marks,
                        uint32_t count, tps_error *err) {
  int code = 0;
  for (uint32_t i = 0; i < count && code == 0; i++)
    code =
        tps_stream_follow(reclaim, marks[i].stream, marks[i].seq, false, err);
  return code;
}

static int follow_list(tps_stream *reclaim, const tps_stream_list *list,
                       bool force, tps_error *err) {
  int code = 0;
  for (tps_stream *s = list->first; s != NULL && code == 0; s = s->parts->next)
    code = tps_stream_follow(reclaim, s, s->last_seq, force, err);
  return code;
}

int tps_reclaim_after_all(tps_local *local, bool force, tps_error *err) {
  tps_stream *reclaim = tps_reclaim_stream(local, err), *legacy;
  if (reclaim == NULL) return err->code;
  int code = 0;
  if (force)
    code = tps_stream_default(local->context, local->device, &legacy, err);
  if (code == 0) code = follow_list(reclaim, &local->open, force, err);
  if (code == 0) code = follow_list(reclaim, &local->closed, force, err);
  return code;
}

/* A stream that comes after all the marks, or with `all` after all work. */
static int stream_after(tps_local *local, const tps_mark *marks, uint32_t count,
                        uint32_t first, bool all, tps_stream **out,
                        tps_error *err) {
  if (!all && (*out = single(local->device, marks, count, first)) != NULL)
    return 0;
  *out = tps_reclaim_stream(local, err);
  if (*out == NULL) return err->code;
  int code = all ? tps_reclaim_after_all(local, true, err) : 0;
  return code == 0 ? follow_marks(*out, marks, count, err) : code;
}

/* ---- device memory ------------------------------------------------------- */

static int free_on(tps_memory *memory, tps_stream *stream, tps_error *err) {
  tps_device *device = memory->device;
  tps_op *op = tps_op_begin(stream, TPS_OP_FREE, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  op->source = memory->parts->closed_at.source;
  op->line = memory->parts->closed_at.line;
  int code = tps_op_touch(op, memory, 0, memory->bytes, TPS_ACCESS_NONE, err);
  if (code == 0) {
    tps_op_announce(op, stream);
    if (tps_spare_keep(stream, memory->address, memory->bytes)) return 0;
    code = device->face->memory_free(device, memory->address,
                                     stream->parts->handle, op, err);
  }
  if (code == 0) return 0;
  tps_op_broke(op);
  return tps_failed(device, stream->parts->local, code, err);
}

static int free_device_memory(tps_memory *memory, tps_error *err) {
  struct tps_memory_parts *parts = memory->parts;
  tps_stream *stream;
  int code = stream_after(parts->local, parts->marks, parts->count, parts->last,
                          memory->escaped, &stream, err);
  return code == 0 ? free_on(memory, stream, err) : code;
}

#define ATTEMPTS 100u

/* A free that can't be queued now is tried again later; on a faulted device
 * there is nothing to free any more. */
static void try_free(tps_memory *memory) {
  struct tps_memory_parts *parts = memory->parts;
  tps_local *local = parts->local;
  tps_error err;
  if (!tps_faulted(memory->device) && free_device_memory(memory, &err) != 0 &&
      !tps_faulted(memory->device) && parts->attempts++ < ATTEMPTS) {
    parts->next = local->unfreed;
    local->unfreed = memory;
    local->stats.pending_bytes += memory->bytes;
    local->stats.pending_count++;
    return;
  }
  tps_memory_discard(memory);
}

static void reclaim_device(tps_memory *memory) {
  tps_memory_stats *stats = &memory->parts->local->stats;
  if (memory->address == 0) {
    tps_memory_discard(memory);
    return;
  }
  stats->live_bytes -= memory->bytes;
  stats->live_count--;
  stats->frees++;
  try_free(memory);
}

/* For the reports of a device that has such. */
static void tell_closed(const tps_memory *memory) {
  tps_device *device = memory->device;
  if (device->face->memory_note != NULL)
    device->face->memory_note(device, memory->address, NULL,
                              memory->parts->closed_at.source,
                              memory->parts->closed_at.line);
}

static void reclaim_pinned(tps_memory *memory) {
  struct tps_memory_parts *parts = memory->parts;
  tps_memory_stats *stats = &parts->local->stats;
  if (parts->pinned != NULL) {
    *(memory->managed ? &stats->managed_bytes : &stats->pinned_bytes) -=
        memory->bytes;
    stats->frees++;
    tell_closed(memory);
    tps_pinned_retire(parts->local, parts->pinned, parts->marks, parts->count,
                      memory->escaped);
  }
  tps_memory_discard(memory);
}

void tps_memory_reclaim(tps_memory *memory) {
  struct tps_memory_parts *parts = memory->parts;
  memory->context->parts->held -= parts->held;
  parts->held = 0;
  tps_memory_changed(memory, TPS_MEMORY_ENDED);
  if (memory->kind == TPS_MEMORY_DEVICE) {
    reclaim_device(memory);
  } else if (memory->kind == TPS_MEMORY_PINNED) {
    reclaim_pinned(memory);
  } else if (memory->kind == TPS_MEMORY_FOREIGN) {
    tps_foreign_reclaim(memory);
  } else if (memory->kind == TPS_MEMORY_ARRAY) {
    tps_array_reclaim(memory);
  } else {
    void *owner = parts->owner;
    void (*release)(void *) = parts->release;
    tps_memory_discard(memory);
    if (release != NULL) release(owner);
  }
}

static void retry_frees(tps_local *local) {
  tps_memory *list = local->unfreed;
  local->unfreed = NULL;
  while (list != NULL) {
    tps_memory *memory = list;
    list = memory->parts->next;
    local->stats.pending_bytes -= memory->bytes;
    local->stats.pending_count--;
    try_free(memory);
  }
}

/* ---- page-locked blocks -------------------------------------------------- */

static void orphan_pinned(tps_pinned *block) {
  tps_device_state *state = tps_state(block->device);
  pthread_mutex_lock(&state->lock);
  block->next = state->orphan_pinned;
  state->orphan_pinned = block;
  if (!block->stuck) atomic_fetch_add(&state->orphans, 1);
  pthread_mutex_unlock(&state->lock);
}

static void append_pending(tps_local *local, tps_pinned *block) {
  block->next = NULL;
  if (local->pending_last != NULL) local->pending_last->next = block;
  else local->pending = block;
  local->pending_last = block;
  local->stats.pending_bytes += block->bytes;
  local->stats.pending_count++;
}

/* Asks the driver where it is not known: an event would cost more. */
static bool all_passed(const tps_mark *marks, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!mark_passed(&marks[i]) && !tps_stream_idle(marks[i].stream))
      return false;
  return true;
}

/* An event that marks the present end of all work of the device. */
static int mark_all(tps_local *local, bool force, tps_device_event **out,
                    tps_error *err) {
  int code = tps_reclaim_after_all(local, force, err);
  return code == 0 ? tps_event_mark(local->reclaim, out, err) : code;
}

/* A block that can't be marked now (no event to be had) is `stuck`: marked
 * later, behind all work by then. */
void tps_pinned_retire(tps_local *local, tps_pinned *block,
                       const tps_mark *marks, uint32_t count, bool all) {
  tps_error err;
  tps_stream *stream;
  if (tps_faulted(local->device) || (!all && all_passed(marks, count))) {
    tps_pinned_give(block);
    return;
  }
  int code = stream_after(local, marks, count, 0, all, &stream, &err);
  if (code == 0) code = tps_event_mark(stream, &block->event, &err);
  if (code != 0 && tps_faulted(local->device)) {
    tps_pinned_give(block);
    return;
  }
  block->stuck = code != 0;
  append_pending(local, block);
}

static bool event_done(tps_local *local, tps_device_event *event) {
  tps_device *device = local->device;
  tps_error err;
  if (event == NULL || tps_faulted(device)) return true;
  int code = device->face->event_query(device, event, &err);
  if (code != 0 && code != TPS_NOT_READY) tps_failed(device, local, code, &err);
  return code == 0 || tps_faulted(device);
}

/* Takes `block`, which follows `previous`, off the pending list. */
static void unlink_pending(tps_local *local, tps_pinned *previous,
                           tps_pinned *block) {
  if (previous != NULL) previous->next = block->next;
  else local->pending = block->next;
  if (local->pending_last == block) local->pending_last = previous;
  local->stats.pending_bytes -= block->bytes;
  local->stats.pending_count--;
}

static bool block_done(tps_local *local, tps_pinned *block) {
  tps_error err;
  if (block->stuck && !tps_faulted(local->device)) {
    if (mark_all(local, true, &block->event, &err) != 0) return false;
    block->stuck = false;
  }
  return event_done(local, block->event);
}

void tps_reclaim_pending(tps_local *local, unsigned most, unsigned busy) {
  tps_pinned *previous = NULL, *next;
  for (tps_pinned *b = local->pending; b != NULL && most > 0 && busy > 0;
       b = next) {
    next = b->next;
    most--;
    if (!block_done(local, b)) {
      busy--;
      previous = b;
      continue;
    }
    unlink_pending(local, previous, b);
    if (b->event != NULL) tps_event_give(local, b->event);
    b->event = NULL;
    b->stuck = false;
    tps_pinned_give(b);
  }
}

/* ---- modules ------------------------------------------------------------- */

static void orphan_module(tps_loaded *loaded) {
  tps_device_state *state = tps_state(loaded->device);
  pthread_mutex_lock(&state->lock);
  loaded->next = state->orphan_modules;
  state->orphan_modules = loaded;
  if (!loaded->stuck) atomic_fetch_add(&state->orphans, 1);
  pthread_mutex_unlock(&state->lock);
}

/* One that can't be marked now goes when the device is found quiet. */
void tps_module_retire(tps_local *local, tps_loaded *loaded) {
  tps_error err;
  if (!tps_faulted(local->device)) mark_all(local, false, &loaded->event, &err);
  if (tps_faulted(local->device)) {
    loaded->stuck = true; /* to the end of the process */
    orphan_module(loaded);
    return;
  }
  loaded->next = local->dead;
  local->dead = loaded;
}

static bool list_idle(const tps_stream_list *list) {
  for (tps_stream *s = list->first; s != NULL; s = s->parts->next)
    if (!tps_stream_idle(s)) return false;
  return true;
}

/* True when nothing of this process runs on the device: unloading a module and
 * unpinning memory would wait for any kernel. */
static bool quiet(tps_local *local) {
  tps_device_state *state = tps_state(local->device);
  pthread_mutex_lock(&state->lock);
  bool alone = state->contexts == 1;
  pthread_mutex_unlock(&state->lock);
  return alone && !tps_faulted(local->device) && list_idle(&local->open) &&
         list_idle(&local->closed) && !tps_faulted(local->device);
}

static void unload(tps_loaded *loaded) {
  tps_device *device = loaded->device;
  device->face->module_unload(device, loaded->module);
  free(loaded);
}

/* Everything has passed when the device is quiet, the modules' events too. */
static void unload_dead(tps_local *local) {
  if (local->dead == NULL || !event_done(local, local->dead->event) ||
      !quiet(local))
    return;
  while (local->dead != NULL) {
    tps_loaded *loaded = local->dead;
    local->dead = loaded->next;
    if (loaded->event != NULL) tps_event_give(local, loaded->event);
    unload(loaded);
  }
}

/* ---- what contexts left behind ------------------------------------------- */

/* With the device's lock held, so a fault is left for others to find. */
static bool orphan_done(tps_device *device, tps_device_event *event) {
  tps_error err;
  return event == NULL || device->face->event_query(device, event, &err) == 0;
}

/* Both take what is done off the process's list; its event is destroyed. */
static tps_pinned *collect_blocks(tps_device *device) {
  tps_device_state *state = tps_state(device);
  tps_pinned *done = NULL;
  for (tps_pinned **p = &state->orphan_pinned; *p != NULL;) {
    tps_pinned *b = *p;
    if (b->stuck || !orphan_done(device, b->event)) {
      p = &b->next;
      continue;
    }
    *p = b->next;
    if (b->event != NULL) device->face->event_destroy(device, b->event);
    b->event = NULL;
    b->next = done;
    done = b;
    atomic_fetch_sub(&state->orphans, 1);
  }
  return done;
}

static tps_loaded *collect_modules(tps_device *device) {
  tps_device_state *state = tps_state(device);
  tps_loaded *done = NULL;
  for (tps_loaded **p = &state->orphan_modules; *p != NULL;) {
    tps_loaded *m = *p;
    if (m->stuck || !orphan_done(device, m->event)) {
      p = &m->next;
      continue;
    }
    *p = m->next;
    if (m->event != NULL) device->face->event_destroy(device, m->event);
    m->next = done;
    done = m;
    atomic_fetch_sub(&state->orphans, 1);
  }
  return done;
}

static void adopt_orphans(tps_local *local) {
  tps_device_state *state = tps_state(local->device);
  if (atomic_load_explicit(&state->orphans, memory_order_relaxed) == 0 ||
      tps_faulted(local->device))
    return;
  bool with_modules = quiet(local);
  if (pthread_mutex_trylock(&state->lock) != 0) return;
  tps_pinned *blocks = collect_blocks(local->device);
  tps_loaded *modules = with_modules ? collect_modules(local->device) : NULL;
  pthread_mutex_unlock(&state->lock);
  while (blocks != NULL) {
    tps_pinned *b = blocks;
    blocks = b->next;
    tps_pinned_give(b);
  }
  while (modules != NULL) {
    tps_loaded *m = modules;
    modules = m->next;
    unload(m);
  }
}

/* ---- the whole of a context's part --------------------------------------- */

void tps_reclaim_local(tps_local *local) {
  tps_lent_collect(local->context);
  if (local->pending != NULL) tps_reclaim_pending(local, UINT32_MAX, 64);
  if (local->unfreed != NULL) retry_frees(local);
  if (local->closed.first != NULL) tps_stream_settle_some(local, 16);
  unload_dead(local);
  adopt_orphans(local);
  if (tps_arrays_are_many(local->device) && quiet(local))
    tps_arrays_drop_pool(local->device);
  if (tps_shared_waits(local->device) && quiet(local))
    tps_shared_drop(local->device);
}

/* True when there is a mark of its last work for others to look at. */
static bool marked(tps_local *local, tps_loaded *loaded) {
  tps_error err;
  return loaded->event != NULL ||
         mark_all(local, false, &loaded->event, &err) == 0;
}

/* After a fault nothing is given to the driver: it stays until the process
 * ends. */
static void hand_over(tps_local *local) {
  while (local->pending != NULL) {
    tps_pinned *b = local->pending;
    unlink_pending(local, NULL, b);
    orphan_pinned(b);
  }
  while (local->dead != NULL) {
    tps_loaded *m = local->dead;
    local->dead = m->next;
    m->stuck = tps_faulted(local->device) || !marked(local, m);
    if (m->stuck && m->event != NULL) tps_event_give(local, m->event);
    if (m->stuck) m->event = NULL;
    orphan_module(m);
  }
  while (local->unfreed != NULL) {
    tps_memory *memory = local->unfreed;
    local->unfreed = memory->parts->next;
    tps_memory_discard(memory);
  }
}

static void destroy_all(tps_local *local) {
  while (local->open.first != NULL) tps_stream_destroy(local->open.first);
  while (local->closed.first != NULL) tps_stream_destroy(local->closed.first);
  tps_device *device = local->device;
  while (local->event_count > 0)
    device->face->event_destroy(device, local->events[--local->event_count]);
  tps_op_unref(local->scratch);
}

/* Leaves the device's state; true for the last context there. */
static bool leave(tps_local *local) {
  tps_device_state *state = tps_state(local->device);
  pthread_mutex_lock(&state->lock);
  bool last = --state->contexts == 0;
  pthread_mutex_unlock(&state->lock);
  return last;
}

void tps_local_free(tps_local *local) {
  tps_device *device = local->device;
  tps_staging_free(local);
  tps_reclaim_pending(local, UINT32_MAX, UINT32_MAX);
  retry_frees(local);
  unload_dead(local);
  adopt_orphans(local);
  bool idle = quiet(local);
  hand_over(local);
  tps_watchers_free(local);
  destroy_all(local);
  if (leave(local) && idle) {
    tps_pinned_drop_pool(device);
    tps_arrays_drop_pool(device);
    tps_shared_drop(device);
  }
  free(local);
}
