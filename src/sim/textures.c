/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Arrays, textures and surfaces: making and destroying them, and copies. */
#include "sim/textures.h"

#include <stdlib.h>
#include <string.h>

#include "sim/queue.h"

struct tps_device_array {
  tps_array_shape shape;
  tps_sim_allocation *memory;
};

/* As of a GPU of compute capability 8.0; surfaces of one dimension are shorter
 * than textures. Memory begins at multiples of 256 bytes here. */
void tps_sim_texture_limits(tps_device *device, bool writable,
                            tps_texture_limits *out) {
  (void)device;
  *out = (tps_texture_limits){.line = writable ? 32768 : 131072,
                              .linear_line = 1u << 28,
                              .plane = {131072, 65536},
                              .linear_plane = {131072, 65000},
                              .volume = {16384, 16384, 16384},
                              .layered_line = {32768, 2048},
                              .layered_plane = {32768, 32768, 2048},
                              .cube = 32768,
                              .layered_cube = {32768, 341},
                              .linear_pitch = 2097120,
                              .address_alignment = 256,
                              .pitch_alignment = 32};
}

static uint64_t bytes_of(const tps_array_shape *s) {
  return s->width * tps_texel_bytes(s->texel) * tps_array_rows(s) *
         tps_array_slices(s);
}

int tps_sim_array_create(tps_device *face, const tps_array_shape *shape,
                         tps_device_array **out, tps_error *err) {
  tps_sim_device *device = (tps_sim_device *)face;
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  tps_device_array *array = calloc(1, sizeof *array);
  if (array == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for an array");
  tps_sim_tidy(device);
  array->shape = *shape;
  code = tps_sim_allocate(device->space, bytes_of(shape), TPS_SIM_ARRAY,
                          &array->memory, err);
  if (code == 0) *out = array;
  else free(array);
  return code;
}

void tps_sim_array_begin(tps_device *face, tps_device_array *array,
                         const char *source, int line) {
  (void)face;
  tps_sim_begin_unwritten(array->memory);
  array->memory->source = source;
  array->memory->line = line;
}

void tps_sim_array_destroy(tps_device *face, tps_device_array *array) {
  tps_sim_device *device = (tps_sim_device *)face;
  tps_sim_free(device->space, array->memory, "", 0);
  free(array);
}

int tps_sim_array_copy(tps_device *device, tps_device_array *array,
                       uint64_t address, bool to_array,
                       tps_device_stream *stream, tps_op *op, tps_error *err) {
  uint64_t base = array->memory->base;
  return tps_sim_copy(device, to_array ? base : address,
                      to_array ? address : base, bytes_of(&array->shape),
                      stream, op, err);
}

/* ---- views --------------------------------------------------------------- */

static void lay_out(tps_sim_view *view, const tps_array_shape *shape,
                    uint64_t pitch) {
  view->shape = *shape;
  view->texel_bytes = (uint32_t)tps_texel_bytes(shape->texel);
  view->row_bytes = pitch != 0 ? pitch : shape->width * view->texel_bytes;
  view->slice_bytes = view->row_bytes * tps_array_rows(shape);
}

static void point_to(tps_sim_view *view, const tps_sim_allocation *memory,
                     uint64_t address) {
  view->array = address;
  view->texels = memory->host + (address - memory->base);
}

/* Gives the view an address of its own. */
static int publish(tps_sim_device *device, const tps_sim_view *view,
                   tps_sim_memory_kind kind, uint64_t *handle, tps_error *err) {
  tps_sim_allocation *memory;
  tps_sim_tidy(device);
  int code = tps_sim_allocate(device->space, sizeof *view, kind, &memory, err);
  if (code != 0) return code;
  memcpy(memory->host, view, sizeof *view);
  *handle = memory->base;
  return 0;
}

/* The memory of a texture that has no array. */
static int linear_memory(tps_sim_device *device,
                         const tps_texture_source *source,
                         tps_sim_allocation **out, tps_error *err) {
  const tps_array_shape *s = &source->shape;
  uint64_t row = s->width * tps_texel_bytes(s->texel);
  uint64_t bytes = row + source->pitch * (tps_array_rows(s) - 1);
  *out = tps_sim_lookup(device->space, source->address);
  if (*out != NULL && atomic_load(&(*out)->live) &&
      bytes <= (*out)->size - (source->address - (*out)->base))
    return 0;
  return tps_fail(
      err, TPS_INVALID_VALUE, "texture of %llu bytes at 0x%llx: no such memory",
      (unsigned long long)bytes, (unsigned long long)source->address);
}

int tps_sim_texture_create(tps_device *face, const tps_texture_source *source,
                           const tps_sampling *sampling, uint64_t *handle,
                           tps_error *err) {
  tps_sim_device *device = (tps_sim_device *)face;
  tps_sim_view view = {.sampling = *sampling};
  tps_sim_allocation *memory;
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  lay_out(&view, &source->shape, source->pitch);
  if (source->array != NULL) {
    memory = source->array->memory;
    point_to(&view, memory, memory->base);
  } else {
    code = linear_memory(device, source, &memory, err);
    if (code != 0) return code;
    point_to(&view, memory, source->address);
    view.line = source->pitch == 0;
  }
  return publish(device, &view, TPS_SIM_TEXTURE, handle, err);
}

int tps_sim_surface_create(tps_device *face, tps_device_array *array,
                           uint64_t *handle, tps_error *err) {
  tps_sim_device *device = (tps_sim_device *)face;
  tps_sim_view view = {0};
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  lay_out(&view, &array->shape, 0);
  point_to(&view, array->memory, array->memory->base);
  return publish(device, &view, TPS_SIM_SURFACE, handle, err);
}

void tps_sim_view_destroy(tps_device *face, uint64_t handle) {
  tps_sim_device *device = (tps_sim_device *)face;
  tps_sim_allocation *memory = tps_sim_find_base(device->space, handle);
  if (memory != NULL) tps_sim_free(device->space, memory, "", 0);
}
