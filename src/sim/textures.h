/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Textures and surfaces of the simulated device. An array is an allocation of
 * the device's space, its rows and slices without gaps. A texture or surface is
 * an allocation, too, which holds the view below; its address is the handle
 * that kernels get. So a handle that is none, or whose view was closed, is told
 * by the means that tell a wild address, and what still runs never sees the
 * memory of a view go away.
 */
#ifndef TPS_SIM_TEXTURES_H
#define TPS_SIM_TEXTURES_H

#include "device/device.h"
#include "sim/memory.h"

/* Texels that a sample depends on: where they are, in bytes from the first. */
typedef struct tps_sim_texels {
  uint32_t count;
  uint64_t at[8];
} tps_sim_texels;

/* What a kernel's handle leads to. Constant once it is made. */
typedef struct tps_sim_view {
  tps_array_shape shape;
  tps_sampling sampling;
  uint64_t array;        /* device address of the texels */
  unsigned char *texels; /* the same for the host */
  uint64_t row_bytes, slice_bytes;
  uint32_t texel_bytes;
  bool line; /* linear memory: fetched by integers only */
  tps_sim_texels
      *read; /* of a copy of a view: where samples note what they read */
} tps_sim_view;

/* The four channels of a texel as a kernel gets them: bits of float, or of
 * integers extended to 32 bits. */
typedef struct tps_sim_texel {
  uint32_t channel[4];
} tps_sim_texel;

/* Where a texture is sampled. */
typedef struct tps_sim_point {
  float x, y, z; /* of a cube, the direction */
  int32_t layer;
} tps_sim_point;

/* At float coordinates, filtered as the view says. `dimensions` is how many of
 * them the instruction gives; 1 to 3. */
tps_sim_texel tps_sim_sample(const tps_sim_view *view, unsigned dimensions,
                             tps_sim_point at);
/* The texel with these numbers, out of range as the address mode says. */
tps_sim_texel tps_sim_fetch(const tps_sim_view *view, unsigned dimensions,
                            const int32_t at[3], int32_t layer);
tps_sim_texel tps_sim_sample_cube(const tps_sim_view *view, tps_sim_point at);
/* One channel of the four texels that a linear filter in a plane takes. */
tps_sim_texel tps_sim_gather(const tps_sim_view *view, tps_sim_point at,
                             unsigned channel);

/* The face. */
void tps_sim_texture_limits(tps_device *, bool writable,
                            tps_texture_limits *out);
int tps_sim_array_create(tps_device *, const tps_array_shape *,
                         tps_device_array **out, tps_error *err);
void tps_sim_array_begin(tps_device *, tps_device_array *, const char *source,
                         int line);
void tps_sim_array_destroy(tps_device *, tps_device_array *);
int tps_sim_array_copy(tps_device *, tps_device_array *, uint64_t address,
                       bool to_array, tps_device_stream *, tps_op *op,
                       tps_error *err);
int tps_sim_texture_create(tps_device *, const tps_texture_source *,
                           const tps_sampling *, uint64_t *handle,
                           tps_error *err);
int tps_sim_surface_create(tps_device *, tps_device_array *, uint64_t *handle,
                           tps_error *err);
void tps_sim_view_destroy(tps_device *, uint64_t handle);

#endif
