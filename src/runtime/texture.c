/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Arrays with their pool, and views. What is allowed is texture_limits.c's. */
#include "runtime/texture.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/capture.h"
#include "runtime/foreign.h"

/* Bytes of idle arrays that a quiet device keeps. */
#define KEPT ((uint64_t)16 << 20)

typedef struct tps_array {
  struct tps_array *next; /* in the pool */
  tps_device *device;
  tps_device_array *handle;
  tps_array_shape shape;
  uint64_t bytes;
} tps_array;

static tps_array *array_of(const tps_memory *memory) {
  return memory->parts->owner;
}

/* ---- the pool ------------------------------------------------------------ */

/* The release of a block: nothing uses the array any more. */
static void give_array(void *owner) {
  tps_array *array = owner;
  tps_device_state *state = tps_state(array->device);
  pthread_mutex_lock(&state->lock);
  array->next = state->arrays;
  state->arrays = array;
  state->array_bytes += array->bytes;
  pthread_mutex_unlock(&state->lock);
}

static bool same_shape(const tps_array_shape *a, const tps_array_shape *b) {
  return a->texel.kind == b->texel.kind && a->texel.bits == b->texel.bits &&
         a->texel.channels == b->texel.channels && a->width == b->width &&
         a->height == b->height && a->depth == b->depth &&
         a->layers == b->layers && a->cube == b->cube &&
         a->writable == b->writable;
}

static tps_array *take_array(tps_device *device, const tps_array_shape *shape) {
  tps_device_state *state = tps_state(device);
  tps_array *found = NULL;
  pthread_mutex_lock(&state->lock);
  for (tps_array **p = &state->arrays; *p != NULL; p = &(*p)->next) {
    if (!same_shape(&(*p)->shape, shape)) continue;
    found = *p;
    *p = found->next;
    state->array_bytes -= found->bytes;
    break;
  }
  pthread_mutex_unlock(&state->lock);
  return found;
}

bool tps_arrays_are_many(const tps_device *device) {
  tps_device_state *state = tps_state(device);
  pthread_mutex_lock(&state->lock);
  bool many = state->array_bytes > KEPT;
  pthread_mutex_unlock(&state->lock);
  return many;
}

bool tps_arrays_drop_pool(tps_device *device) {
  tps_device_state *state = tps_state(device);
  pthread_mutex_lock(&state->lock);
  tps_array *list = state->arrays;
  state->arrays = NULL;
  state->array_bytes = 0;
  pthread_mutex_unlock(&state->lock);
  bool any = list != NULL;
  while (list != NULL) {
    tps_array *array = list;
    list = array->next;
    device->face->array_destroy(device, array->handle);
    free(array);
  }
  return any;
}

/* ---- arrays -------------------------------------------------------------- */

uint64_t tps_array_bytes(const tps_array_shape *s) {
  return s->width * tps_texel_bytes(s->texel) * tps_array_rows(s) *
         tps_array_slices(s);
}

static int new_array(tps_local *local, const tps_array_shape *shape,
                     tps_array **out, tps_error *err) {
  tps_device *device = local->device;
  tps_relief next = TPS_RELIEF_KEPT;
  tps_array *array = calloc(1, sizeof *array);
  if (array == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  array->device = device;
  array->shape = *shape;
  array->bytes = tps_array_bytes(shape);
  int code;
  do code = device->face->array_create(device, shape, &array->handle, err);
  while (tps_relieve(local, &next, TPS_RELIEF_ALL, &code, err));
  if (code == 0) *out = array;
  else free(array);
  return code;
}

static int find_array(tps_local *local, const tps_array_shape *shape,
                      tps_array **out, tps_error *err) {
  *out = take_array(local->device, shape);
  if (*out != NULL) return 0;
  int code = new_array(local, shape, out, err);
  if (code == TPS_OUT_OF_MEMORY)
    return tps_out_of_memory(local->device, "an array of ",
                             tps_array_bytes(shape), err);
  return tps_failed(local->device, local, code, err);
}

static void count(tps_memory_stats *stats, uint64_t bytes) {
  stats->live_bytes += bytes;
  stats->live_count++;
  stats->allocations++;
  if (stats->live_bytes > stats->peak_bytes)
    stats->peak_bytes = stats->live_bytes;
}

int tps_array_allocate(tps_context *context, tps_device *device,
                       const tps_array_shape *shape, tps_memory **out,
                       tps_error *err) {
  int code = tps_device_fault(device, err);
  if (code == 0) code = tps_array_check(device, shape, err);
  if (code != 0) return code;
  tps_local *local = tps_local_get(context, device, err);
  if (local == NULL) return TPS_NO_HOST_MEMORY;
  tps_reclaim_glance(local);
  tps_array *array;
  code = tps_memory_afford(local, "an array of ", tps_array_bytes(shape), err);
  if (code != 0) return code;
  code = find_array(local, shape, &array, err);
  if (code != 0) return code;
  tps_pinned *end = tps_foreign_new(device, array->bytes, array, give_array);
  tps_memory *memory =
      end == NULL ? NULL
                  : tps_memory_new(local, TPS_MEMORY_ARRAY, array->bytes, err);
  if (memory == NULL) {
    free(end);
    give_array(array);
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  }
  memory->parts->owner = array;
  memory->parts->pinned = end;
  if (device->face->array_begin != NULL)
    device->face->array_begin(device, array->handle, memory->site.source,
                              memory->site.line);
  count(&local->stats, array->bytes);
  tps_memory_hold(memory);
  tps_memory_changed(memory, TPS_MEMORY_MADE);
  *out = memory;
  return 0;
}

void tps_array_reclaim(tps_memory *memory) {
  struct tps_memory_parts *parts = memory->parts;
  tps_memory_stats *stats = &parts->local->stats;
  stats->live_bytes -= memory->bytes;
  stats->live_count--;
  stats->frees++;
  tps_pinned_retire(parts->local, parts->pinned, parts->marks, parts->count,
                    memory->escaped);
  tps_memory_discard(memory);
}

/* ---- copies -------------------------------------------------------------- */

static int check_copy(tps_stream *stream, const tps_memory *array,
                      const tps_memory *memory, uint64_t first,
                      tps_error *err) {
  char a[32], b[32];
  int code = tps_stream_ready(stream, err);
  if (code == 0) code = tps_memory_check(memory, first, array->bytes, err);
  if (code != 0) return code;
  if (array->device == stream->device &&
      tps_memory_near(memory, stream->device))
    return 0;
  const tps_device *other =
      array->device != stream->device ? array->device : memory->device;
  return tps_fail(err, TPS_MISUSE,
                  "memory of %s can't be copied on a stream of %s to or from "
                  "an array",
                  tps_device_label(other, a, sizeof a),
                  tps_device_label(stream->device, b, sizeof b));
}

int tps_array_copy(tps_stream *stream, tps_memory *array, tps_memory *memory,
                   uint64_t first, bool to_array, bool initial,
                   tps_error *err) {
  tps_device *device = stream->device;
  tps_memory *from = to_array ? memory : array, *to = to_array ? array : memory;
  uint64_t from_first = to_array ? first : 0, to_first = to_array ? 0 : first;
  int code;
  TPS_TRY(out, check_copy(stream, array, memory, first, err));
  if (stream->capturing)
    return tps_capture_refuse(stream, "copy to or from a texture or surface",
                              err);
  TPS_TRY(out, tps_uses_ready(array, stream, err));
  TPS_TRY(out, tps_uses_ready(memory, stream, err));
  tps_op *op = tps_op_begin(stream, TPS_OP_COPY, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  tps_uses_set(array, op->seq);
  tps_uses_set(memory, op->seq);
  TPS_TRY(out, tps_op_touch(op, from, from_first, array->bytes, TPS_ACCESS_READ,
                            err));
  TPS_TRY(out,
          tps_op_touch(op, to, to_first, array->bytes, TPS_ACCESS_WRITE, err));
  tps_op_set_copy(op, to, from, array->bytes);
  tps_op_announce(op, stream);
  code = device->face->array_copy(device, array_of(array)->handle,
                                  memory->address + first, to_array,
                                  stream->handle, op, err);
  if (code == 0) {
    tps_stream_queued(stream);
    if (initial) array->parts->home = stream;
    if (initial) tps_memory_changed(array, TPS_MEMORY_SETTLED);
  } else {
    tps_op_broke(op);
    code = tps_failed(device, stream->parts->local, code, err);
  }
out:
  return code;
}

int tps_array_write(tps_stream *stream, tps_memory *array, const void *from,
                    bool initial, tps_error *err) {
  tps_memory *between;
  int code = tps_memory_allocate(stream, array->bytes, &between, err);
  if (code != 0) return code;
  code = tps_memory_write(stream, between, 0, from, array->bytes, err);
  if (code == 0)
    code = tps_array_copy(stream, array, between, 0, true, initial, err);
  tps_memory_unref(between);
  return code;
}

int tps_array_read(tps_stream *stream, tps_memory *array, void *to,
                   tps_error *err) {
  tps_memory *between;
  int code = tps_memory_allocate(stream, array->bytes, &between, err);
  if (code != 0) return code;
  code = tps_array_copy(stream, array, between, 0, false, false, err);
  if (code == 0)
    code = tps_memory_read(stream, between, 0, to, array->bytes, err);
  tps_memory_unref(between);
  return code;
}

/* ---- views --------------------------------------------------------------- */

/* A handle of the device's, until nothing uses it. */
typedef struct ending {
  tps_device *device;
  uint64_t handle;
  bool surface;
} ending;

static void end_handle(void *owner) {
  ending e = *(ending *)owner;
  const tps_device_face *face = e.device->face;
  free(owner);
  if (e.handle == 0) return;
  if (e.surface) face->surface_destroy(e.device, e.handle);
  else face->texture_destroy(e.device, e.handle);
}

/* Everything but the device's handle. */
static tps_view *new_view(tps_memory *memory, bool surface, ending **end,
                          tps_error *err) {
  tps_reclaim_glance(memory->parts->local);
  tps_view *view = calloc(1, sizeof *view);
  *end = calloc(1, sizeof **end);
  if (view != NULL && *end != NULL)
    view->end = tps_foreign_new(memory->device, 0, *end, end_handle);
  if (view == NULL || view->end == NULL) {
    free(view);
    free(*end);
    tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
    return NULL;
  }
  **end = (ending){memory->device, 0, surface};
  view->refs = 1;
  view->surface = surface;
  view->memory = tps_memory_ref(memory);
  view->bytes = memory->bytes;
  return view;
}

static int finish_view(tps_view *view, ending *end, int code, tps_view **out,
                       tps_error *err) {
  tps_local *local = view->memory->parts->local;
  if (code != 0) {
    code = tps_failed(view->memory->device, local, code, err);
    tps_view_close(view);
    return code;
  }
  end->handle = view->handle;
  *out = view;
  return 0;
}

static int create_texture(tps_view *view, const tps_texture_source *source,
                          const tps_sampling *sampling, tps_error *err) {
  tps_device *device = view->memory->device;
  tps_local *local = view->memory->parts->local;
  tps_relief next = TPS_RELIEF_KEPT;
  int code;
  do
    code = device->face->texture_create(device, source, sampling, &view->handle,
                                        err);
  while (tps_relieve(local, &next, TPS_RELIEF_ALL, &code, err));
  return code;
}

int tps_view_texture(tps_memory *array, const tps_sampling *sampling,
                     tps_view **out, tps_error *err) {
  tps_device *device = array->device;
  tps_array *a = array_of(array);
  ending *end;
  int code = tps_device_fault(device, err);
  if (code == 0) code = tps_sampling_check(&a->shape, sampling, err);
  if (code != 0) return code;
  tps_view *view = new_view(array, false, &end, err);
  if (view == NULL) return TPS_NO_HOST_MEMORY;
  view->shape = a->shape;
  tps_texture_source source = {.shape = a->shape, .array = a->handle};
  code = create_texture(view, &source, sampling, err);
  return finish_view(view, end, code, out, err);
}

int tps_view_surface(tps_memory *array, tps_view **out, tps_error *err) {
  tps_device *device = array->device;
  tps_array *a = array_of(array);
  tps_relief next = TPS_RELIEF_KEPT;
  ending *end;
  int code = tps_device_fault(device, err);
  if (code != 0) return code;
  tps_view *view = new_view(array, true, &end, err);
  if (view == NULL) return TPS_NO_HOST_MEMORY;
  view->shape = a->shape;
  do code = device->face->surface_create(device, a->handle, &view->handle, err);
  while (tps_relieve(array->parts->local, &next, TPS_RELIEF_ALL, &code, err));
  return finish_view(view, end, code, out, err);
}

/* The range of the memory, its alignment and its extents. */
static int check_linear(const tps_memory *memory, uint64_t first,
                        const tps_array_shape *s, uint64_t pitch,
                        uint64_t bytes, tps_error *err) {
  tps_texture_limits limits;
  uint64_t row = s->width * tps_texel_bytes(s->texel);
  memory->device->face->texture_limits(memory->device, false, &limits);
  uint64_t most = pitch == 0 ? limits.linear_line : limits.linear_plane[0];
  if (s->width < 1 || s->width > most)
    return tps_fail(err, TPS_MISUSE,
                    "width %llu of a texture on linear memory (1 to %llu)",
                    (unsigned long long)s->width, (unsigned long long)most);
  if (s->height > limits.linear_plane[1])
    return tps_fail(err, TPS_MISUSE,
                    "height %llu of a texture on linear memory (1 to %u)",
                    (unsigned long long)s->height, limits.linear_plane[1]);
  if (pitch != 0 && (pitch < row || pitch > limits.linear_pitch ||
                     pitch % limits.pitch_alignment != 0))
    return tps_fail(err, TPS_MISUSE,
                    "pitch of %llu bytes (a multiple of %u from %llu to %u is "
                    "needed)",
                    (unsigned long long)pitch, limits.pitch_alignment,
                    (unsigned long long)row, limits.linear_pitch);
  if ((memory->address + first) % limits.address_alignment != 0)
    return tps_fail(err, TPS_MISUSE,
                    "a texture can't begin at byte %llu of this memory (its "
                    "address has to be a multiple of %u)",
                    (unsigned long long)first, limits.address_alignment);
  return tps_memory_check(memory, first, bytes, err);
}

int tps_view_linear(tps_memory *memory, uint64_t first,
                    const tps_array_shape *shape, uint64_t pitch,
                    const tps_sampling *sampling, tps_view **out,
                    tps_error *err) {
  tps_device *device = memory->device;
  ending *end;
  uint64_t bytes = shape->width * tps_texel_bytes(shape->texel) +
                   pitch * (tps_array_rows(shape) - 1);
  int code = tps_device_fault(device, err);
  if (code == 0) code = tps_sampling_check(shape, sampling, err);
  if (code == 0) code = check_linear(memory, first, shape, pitch, bytes, err);
  if (code != 0) return code;
  tps_view *view = new_view(memory, false, &end, err);
  if (view == NULL) return TPS_NO_HOST_MEMORY;
  view->shape = *shape;
  view->linear = true;
  view->first = first;
  view->bytes = bytes;
  tps_texture_source source = {
      .shape = *shape, .address = memory->address + first, .pitch = pitch};
  code = create_texture(view, &source, sampling, err);
  return finish_view(view, end, code, out, err);
}

tps_view *tps_view_ref(tps_view *view) {
  view->refs++;
  return view;
}

void tps_view_close(tps_view *view) {
  if (--view->refs > 0) return;
  tps_memory *memory = view->memory;
  const struct tps_memory_parts *parts = memory->parts;
  tps_pinned_retire(parts->local, view->end, parts->marks, parts->count,
                    memory->escaped);
  free(view);
  tps_memory_close(memory);
}
