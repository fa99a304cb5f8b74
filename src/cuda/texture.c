/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * CUDA arrays, texture objects, surface objects. */
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "cuda/times.h"

struct tps_device_array {
  cudaArray_t handle;
  tps_array_shape shape;
};

/* ---- limits -------------------------------------------------------------- */

typedef struct attribute {
  size_t offset; /* in tps_texture_limits */
  enum cudaDeviceAttr texture, surface;
} attribute;

#define EXTENT(field, name)                                                    \
  {                                                                            \
    offsetof(tps_texture_limits, field), cudaDevAttrMaxTexture##name,          \
        cudaDevAttrMaxSurface##name                                            \
  }
#define TEXTURE(field, name)                                                   \
  { offsetof(tps_texture_limits, field), name, name }

static const attribute attributes[] = {
    EXTENT(line, 1DWidth),
    EXTENT(plane[0], 2DWidth),
    EXTENT(plane[1], 2DHeight),
    EXTENT(volume[0], 3DWidth),
    EXTENT(volume[1], 3DHeight),
    EXTENT(volume[2], 3DDepth),
    EXTENT(layered_line[0], 1DLayeredWidth),
    EXTENT(layered_line[1], 1DLayeredLayers),
    EXTENT(layered_plane[0], 2DLayeredWidth),
    EXTENT(layered_plane[1], 2DLayeredHeight),
    EXTENT(layered_plane[2], 2DLayeredLayers),
    EXTENT(cube, CubemapWidth),
    EXTENT(layered_cube[0], CubemapLayeredWidth),
    EXTENT(layered_cube[1], CubemapLayeredLayers),
    TEXTURE(linear_line, cudaDevAttrMaxTexture1DLinearWidth),
    TEXTURE(linear_plane[0], cudaDevAttrMaxTexture2DLinearWidth),
    TEXTURE(linear_plane[1], cudaDevAttrMaxTexture2DLinearHeight),
    TEXTURE(linear_pitch, cudaDevAttrMaxTexture2DLinearPitch),
    TEXTURE(address_alignment, cudaDevAttrTextureAlignment),
    TEXTURE(pitch_alignment, cudaDevAttrTexturePitchAlignment),
};

void tps_cuda_texture_limits(tps_device *device, bool writable,
                             tps_texture_limits *out) {
  memset(out, 0, sizeof *out);
  for (size_t k = 0; k < sizeof attributes / sizeof *attributes; k++) {
    const attribute *a = &attributes[k];
    int value = 0;
    cudaDeviceGetAttribute(&value, writable ? a->surface : a->texture,
                           device->ordinal);
    *(uint32_t *)(void *)((char *)out + a->offset) = (uint32_t)value;
  }
  out->layered_cube[1] /= 6; /* CUDA counts faces */
  if (out->address_alignment == 0) out->address_alignment = 512;
  if (out->pitch_alignment == 0) out->pitch_alignment = 32;
  cudaGetLastError();
}

/* ---- arrays -------------------------------------------------------------- */

static struct cudaChannelFormatDesc format(tps_texel t) {
  static const enum cudaChannelFormatKind kinds[] = {
      [TPS_TEXEL_UNSIGNED] = cudaChannelFormatKindUnsigned,
      [TPS_TEXEL_SIGNED] = cudaChannelFormatKindSigned,
      [TPS_TEXEL_FLOAT] = cudaChannelFormatKindFloat};
  int bits = t.bits;
  return (struct cudaChannelFormatDesc){
      bits, t.channels > 1 ? bits : 0, t.channels > 2 ? bits : 0,
      t.channels > 3 ? bits : 0, kinds[t.kind]};
}

/* Gathering needs a flag, which planes up to a size may have. */
static bool may_gather(const tps_device *device, const tps_array_shape *s) {
  int width = 0, height = 0;
  if (s->height == 0 || s->depth > 0 || s->layers > 0 || s->cube) return false;
  cudaDeviceGetAttribute(&width, cudaDevAttrMaxTexture2DGatherWidth,
                         device->ordinal);
  cudaDeviceGetAttribute(&height, cudaDevAttrMaxTexture2DGatherHeight,
                         device->ordinal);
  return s->width <= (uint64_t)width && s->height <= (uint64_t)height;
}

static unsigned flags_of(const tps_device *device, const tps_array_shape *s) {
  unsigned flags = 0;
  if (s->layers > 0) flags |= cudaArrayLayered;
  if (s->cube) flags |= cudaArrayCubemap;
  if (s->writable) flags |= cudaArraySurfaceLoadStore;
  if (may_gather(device, s)) flags |= cudaArrayTextureGather;
  return flags;
}

int tps_cuda_array_create(tps_device *device, const tps_array_shape *s,
                          tps_device_array **out, tps_error *err) {
  bool slices = s->depth > 0 || s->layers > 0 || s->cube;
  struct cudaChannelFormatDesc texel = format(s->texel);
  struct cudaExtent extent = {s->width, s->height,
                              slices ? tps_array_slices(s) : 0};
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  tps_device_array *array = calloc(1, sizeof *array);
  if (array == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for an array");
  array->shape = *s;
  cudaError_t e =
      cudaMalloc3DArray(&array->handle, &texel, extent, flags_of(device, s));
  if (e == cudaSuccess) {
    *out = array;
    return 0;
  }
  free(array);
  return tps_cuda_fail(err, e, "cudaMalloc3DArray of %llu x %llu x %llu",
                       (unsigned long long)extent.width,
                       (unsigned long long)extent.height,
                       (unsigned long long)extent.depth);
}

void tps_cuda_array_destroy(tps_device *device, tps_device_array *array) {
  tps_error ignored;
  if (tps_cuda_use(device, &ignored) == 0) cudaFreeArray(array->handle);
  cudaGetLastError();
  free(array);
}

int tps_cuda_array_copy(tps_device *device, tps_device_array *array,
                        uint64_t address, bool to_array,
                        tps_device_stream *stream, tps_op *op, tps_error *err) {
  const tps_array_shape *s = &array->shape;
  uint64_t row = s->width * tps_texel_bytes(s->texel);
  struct cudaPitchedPtr linear = {(void *)(uintptr_t)address, row, row,
                                  tps_array_rows(s)};
  struct cudaMemcpy3DParms p = {
      .extent = {s->width, tps_array_rows(s), tps_array_slices(s)},
      .kind = cudaMemcpyDefault};
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  if (to_array) p.srcPtr = linear, p.dstArray = array->handle;
  else p.srcArray = array->handle, p.dstPtr = linear;
  tps_cuda_span *span = tps_cuda_times_begin(device, stream, op);
  cudaError_t e = cudaMemcpy3DAsync(&p, (cudaStream_t)stream);
  tps_cuda_times_end(device, span, stream, e == cudaSuccess);
  return e == cudaSuccess ? 0 : tps_cuda_fail(err, e, "cudaMemcpy3DAsync");
}

/* ---- objects ------------------------------------------------------------- */

static struct cudaResourceDesc resource(const tps_texture_source *source) {
  const tps_array_shape *s = &source->shape;
  struct cudaResourceDesc r = {.resType = cudaResourceTypeArray};
  void *memory = (void *)(uintptr_t)source->address;
  uint64_t row = s->width * tps_texel_bytes(s->texel);
  if (source->array != NULL) {
    r.res.array.array = source->array->handle;
  } else if (source->pitch == 0) {
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = memory;
    r.res.linear.desc = format(s->texel);
    r.res.linear.sizeInBytes = row;
  } else {
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = memory;
    r.res.pitch2D.desc = format(s->texel);
    r.res.pitch2D.width = s->width;
    r.res.pitch2D.height = s->height;
    r.res.pitch2D.pitchInBytes = source->pitch;
  }
  return r;
}

static struct cudaTextureDesc description(const tps_sampling *s) {
  static const enum cudaTextureAddressMode modes[] = {
      [TPS_ADDRESS_WRAP] = cudaAddressModeWrap,
      [TPS_ADDRESS_CLAMP] = cudaAddressModeClamp,
      [TPS_ADDRESS_MIRROR] = cudaAddressModeMirror,
      [TPS_ADDRESS_BORDER] = cudaAddressModeBorder};
  struct cudaTextureDesc d = {
      .filterMode = s->linear ? cudaFilterModeLinear : cudaFilterModePoint,
      .readMode = s->normalized_read ? cudaReadModeNormalizedFloat
                                     : cudaReadModeElementType,
      .sRGB = s->srgb,
      .normalizedCoords = s->normalized};
  for (int k = 0; k < 3; k++) d.addressMode[k] = modes[s->address[k]];
  memcpy(d.borderColor, s->border, sizeof d.borderColor);
  return d;
}

int tps_cuda_texture_create(tps_device *device,
                            const tps_texture_source *source,
                            const tps_sampling *sampling, uint64_t *handle,
                            tps_error *err) {
  struct cudaResourceDesc r = resource(source);
  struct cudaTextureDesc d = description(sampling);
  cudaTextureObject_t object = 0;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaCreateTextureObject(&object, &r, &d, NULL);
  if (e != cudaSuccess) return tps_cuda_fail(err, e, "cudaCreateTextureObject");
  *handle = object;
  return 0;
}

void tps_cuda_texture_destroy(tps_device *device, uint64_t handle) {
  tps_error ignored;
  if (tps_cuda_use(device, &ignored) == 0) cudaDestroyTextureObject(handle);
  cudaGetLastError();
}

int tps_cuda_surface_create(tps_device *device, tps_device_array *array,
                            uint64_t *handle, tps_error *err) {
  struct cudaResourceDesc r = {.resType = cudaResourceTypeArray};
  cudaSurfaceObject_t object = 0;
  r.res.array.array = array->handle;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaCreateSurfaceObject(&object, &r);
  if (e != cudaSuccess) return tps_cuda_fail(err, e, "cudaCreateSurfaceObject");
  *handle = object;
  return 0;
}

void tps_cuda_surface_destroy(tps_device *device, uint64_t handle) {
  tps_error ignored;
  if (tps_cuda_use(device, &ignored) == 0) cudaDestroySurfaceObject(handle);
  cudaGetLastError();
}
