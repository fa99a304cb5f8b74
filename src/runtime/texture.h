/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Textures and surfaces. An array is a tps_memory of kind ARRAY: opaque memory
 * with a shape, whose uses are tracked as those of any other, so that it may be
 * dropped while kernels sample it. A tps_view is what a kernel gets a handle
 * of: a texture or a surface over an array, or a texture over linear memory. A
 * view keeps its memory; its handle goes after all uses of that.
 *
 * Arrays that are done with stay in a pool for others of the same shape: giving
 * one back to a GPU's driver waits for running kernels, so that is done when
 * the device is quiet, or when memory runs out.
 */
#ifndef TPS_RUNTIME_TEXTURE_H
#define TPS_RUNTIME_TEXTURE_H

#include "runtime/memory.h"

typedef struct tps_view {
  tps_memory *memory; /* a reference */
  uint64_t handle;
  uint64_t first, bytes; /* of the memory */
  bool surface;
  bool linear; /* bound to linear memory */
  tps_array_shape shape;
  struct tps_pinned *end; /* the runtime's own */
  int refs;               /* its owner's, and those of graphs */
} tps_view;

uint64_t tps_array_bytes(const tps_array_shape *shape);

/* Refuses a shape that the device has no room for, each extent by name. */
int tps_array_check(tps_device *device, const tps_array_shape *shape,
                    tps_error *err);
/* What lies in a new array is not defined. */
int tps_array_allocate(tps_context *context, tps_device *device,
                       const tps_array_shape *shape, tps_memory **out,
                       tps_error *err);
/* All of the array, from or to `memory` of the same device from byte `first`
 * on, queued. `initial`: comes before what other streams do with the array. */
int tps_array_copy(tps_stream *stream, tps_memory *array, tps_memory *memory,
                   uint64_t first, bool to_array, bool initial, tps_error *err);
/* Host bytes; writing is queued, reading waits for the stream. */
int tps_array_write(tps_stream *stream, tps_memory *array, const void *from,
                    bool initial, tps_error *err);
int tps_array_read(tps_stream *stream, tps_memory *array, void *to,
                   tps_error *err);

/* Refuses what a texture of such texels can't do. */
int tps_sampling_check(const tps_array_shape *shape,
                       const tps_sampling *sampling, tps_error *err);
/* Over an array. */
int tps_view_texture(tps_memory *array, const tps_sampling *sampling,
                     tps_view **out, tps_error *err);
int tps_view_surface(tps_memory *array, tps_view **out, tps_error *err);
/* Over linear memory from byte `first` on; a pitch of 0: a line of texels. */
int tps_view_linear(tps_memory *memory, uint64_t first,
                    const tps_array_shape *shape, uint64_t pitch,
                    const tps_sampling *sampling, tps_view **out,
                    tps_error *err);
tps_view *tps_view_ref(tps_view *view);
/* Gives a reference back; never waits, never fails; queued work goes on. */
void tps_view_close(tps_view *view);

#endif
