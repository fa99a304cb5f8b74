/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Arrays exchanged with other libraries in the same process, without copying: DLPack.
 * A tensor that was given away is its receiver's, who calls its deleter once, from
 * whatever thread; one that was taken is deleted with the last Buffer over it, or
 * at once when it can't be used: a script has no other way to delete it. */
#include "lua/dlpack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/buffer.h"
#include "runtime/lent.h"

/* ---- element types ------------------------------------------------------- */

static const DLDataType types[TPS_DTYPE_COUNT] = {
    [TPS_INT8] = {kDLInt, 8, 1},       [TPS_UINT8] = {kDLUInt, 8, 1},
    [TPS_INT16] = {kDLInt, 16, 1},     [TPS_UINT16] = {kDLUInt, 16, 1},
    [TPS_INT32] = {kDLInt, 32, 1},     [TPS_UINT32] = {kDLUInt, 32, 1},
    [TPS_INT64] = {kDLInt, 64, 1},     [TPS_UINT64] = {kDLUInt, 64, 1},
    [TPS_FLOAT16] = {kDLFloat, 16, 1}, [TPS_BFLOAT16] = {kDLBfloat, 16, 1},
    [TPS_FLOAT32] = {kDLFloat, 32, 1}, [TPS_FLOAT64] = {kDLFloat, 64, 1}};

/* Booleans are bytes. */
static int dtype_of(DLDataType t) {
  if (t.code == kDLBool && t.bits == 8 && t.lanes == 1) return TPS_UINT8;
  for (int i = 0; i < TPS_DTYPE_COUNT; i++)
    if (t.code == types[i].code && t.bits == types[i].bits && t.lanes == 1)
      return i;
  return -1;
}

/* ---- giving -------------------------------------------------------------- */

typedef struct given {
  DLManagedTensor tensor; /* first: the deleter gets its address */
  int64_t shape[1], strides[1];
  tps_device *device;
  uint64_t address; /* what kernels use for tensor.data */
  tps_lent *lent;
} given;

static void delete_given(DLManagedTensor *tensor) {
  given *g = (given *)tensor;
  tps_memory_return(g->lent);
  free(g);
}

static DLDevice place_of(const tps_memory *memory) {
  DLDevice place = {kDLExtDev, memory->device->ordinal};
  if (memory->device->kind == TPS_SIM) {
    if (memory->host != NULL) place = (DLDevice){kDLCPU, 0};
  } else if (memory->managed) {
    place.device_type = kDLCUDAManaged;
  } else if (memory->host != NULL) {
    place = (DLDevice){kDLCUDAHost, 0};
  } else {
    place.device_type = kDLCUDA;
  }
  return place;
}

/* Kernels and the host have one address for it on a GPU; the simulated device has
 * addresses of its own. */
static void *data_of(const tps_lua_buffer *b) {
  const tps_memory *memory = b->memory;
  if (memory->host != NULL) return (unsigned char *)memory->host + b->first;
  return memory->address == 0 ? NULL
                              : (void *)(uintptr_t)(memory->address + b->first);
}

static void fill_given(given *g, const tps_lua_buffer *b) {
  memset(g, 0, sizeof *g);
  g->device = b->memory->device;
  g->address = b->memory->address + b->first;
  g->shape[0] = b->count;
  g->strides[0] = 1;
  g->tensor.dl_tensor = (DLTensor){.data = data_of(b),
                                   .device = place_of(b->memory),
                                   .ndim = 1,
                                   .dtype = types[b->dtype],
                                   .shape = g->shape,
                                   .strides = g->strides};
  g->tensor.manager_ctx = g;
  g->tensor.deleter = delete_given;
}

/* b:dlpack([{stream=}]) */
int tps_buffer_dlpack(lua_State *L) {
  static const char *const names[] = {"stream", NULL};
  tps_error err;
  tps_check_buffer(L, 1);
  tps_check_options(L, 2, names);
  tps_stream *reader = tps_option_stream_kept(L, 2, "stream", 2);
  if (reader != NULL) {
    tps_stream *writer = tps_current_stream(L, NULL);
    tps_site_set(L, tps_lua_of(L));
    if (writer->capturing) /* the reader would become part of the graph */
      return tps_misuse(
          L,
          "stream %llu is capturing: what is queued there runs when "
          "the graph is launched, so no other library's stream can "
          "wait for it now",
          (unsigned long long)writer->id);
    if (tps_stream_wait_stream(reader, writer, &err) != 0)
      return tps_raise(L, &err);
  }
  tps_lua_buffer *b = tps_check_buffer(L, 1);
  lua_pushnil(L); /* room for the result */
  given *g = malloc(sizeof *g);
  if (g == NULL) {
    tps_fail(&err, TPS_NO_HOST_MEMORY, "out of host memory");
    return tps_raise(L, &err);
  }
  fill_given(g, b);
  if (tps_memory_lend(b->memory, &g->lent, &err) != 0) {
    free(g);
    return tps_raise(L, &err);
  }
  lua_pushlightuserdata(L, &g->tensor);
  return 1;
}

/* ---- taking -------------------------------------------------------------- */

static _Noreturn int refuse(lua_State *L, tps_guard *guard, const char *format,
                            ...) __attribute__((format(printf, 3, 4)));
/* Deletes the tensor, too. */
static _Noreturn int refuse(lua_State *L, tps_guard *guard, const char *format,
                            ...) {
  char text[300];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tps_guard_release(guard);
  tps_argument_error(L, 1, text);
}

static _Noreturn int fail(lua_State *L, tps_guard *guard,
                          const tps_error *err) {
  tps_guard_release(guard);
  tps_raise(L, err);
}

/* Elements, which lie without gaps in the order of C. */
static int64_t count_of(lua_State *L, tps_guard *guard, const DLTensor *t) {
  int64_t count = 1;
  if (t->ndim > 0 && t->shape == NULL)
    refuse(L, guard, "a tensor without a shape");
  if (t->ndim < 0) refuse(L, guard, "a tensor of %d dimensions", (int)t->ndim);
  for (int32_t i = t->ndim; i-- > 0;) {
    int64_t n = t->shape[i];
    if (n < 0 || __builtin_mul_overflow(count, n, &count))
      refuse(L, guard, "dimension %d of the tensor is %lld", (int)i + 1,
             (long long)n);
  }
  int64_t stride = 1;
  for (int32_t i = t->ndim; t->strides != NULL && count > 0 && i-- > 0;) {
    if (t->shape[i] > 1 && t->strides[i] != stride)
      refuse(L, guard,
             "the tensor has gaps or another order: stride %lld in dimension "
             "%d, %lld expected",
             (long long)t->strides[i], (int)i + 1, (long long)stride);
    stride *= t->shape[i];
  }
  return count;
}

static tps_device *device_of(lua_State *L, tps_guard *guard,
                             const DLTensor *t) {
  tps_device_kind kind =
      t->device.device_type == kDLExtDev ? TPS_SIM : TPS_CUDA;
  tps_device *device;
  tps_error err;
  if (tps_device_get(kind, t->device.device_id, &device, &err) != 0)
    fail(L, guard, &err);
  return device;
}

static void delete_taken(void *owner) {
  DLManagedTensor *tensor = (DLManagedTensor *)owner;
  if (tensor->deleter != NULL) tensor->deleter(tensor);
}

/* Our own host memory, coming back: on the simulated device other libraries get it
 * as plain memory, but its kernels have an address for it. */
static const given *own_tensor(const DLManagedTensor *tensor) {
  return tensor->deleter == delete_given ? (const given *)tensor : NULL;
}

/* Memory that devices reach: used where it is. */
static void take_over(lua_State *L, tps_guard *guard, tps_lua_buffer *box) {
  DLManagedTensor *tensor = (DLManagedTensor *)guard->data;
  const DLTensor *t = &tensor->dl_tensor;
  const given *own = own_tensor(tensor);
  uint64_t address =
      own != NULL ? own->address : (uintptr_t)t->data + t->byte_offset;
  tps_device *device = own != NULL ? own->device : device_of(L, guard, t);
  tps_memory *memory;
  tps_error err;
  if (address % box->size != 0)
    refuse(L, guard,
           "address 0x%llx of the tensor is no multiple of %u, the size of "
           "%s",
           (unsigned long long)address, (unsigned)box->size,
           tps_dtype_names[box->dtype]);
  tps_site_set_observed(L, tps_open(L));
  if (tps_memory_adopt(tps_open(L)->context, device, address,
                       tps_buffer_bytes(box), tensor, delete_taken, &memory,
                       &err) != 0)
    fail(L, guard, &err);
  guard->data = NULL;
  if (t->device.device_type == kDLCPU || t->device.device_type == kDLCUDAHost ||
      t->device.device_type == kDLCUDAManaged)
    memory->host = (unsigned char *)t->data + t->byte_offset;
  box->memory = memory;
}

/* The host's memory, which devices do not reach: copied, and given back at once. */
static void copy_over(lua_State *L, tps_guard *guard, tps_lua_buffer *box) {
  const DLTensor *t = &((DLManagedTensor *)guard->data)->dl_tensor;
  tps_site_set(L, tps_open(L));
  tps_buffer_pin(L, box, tps_current_device(L), false);
  if (box->count > 0)
    memcpy(box->memory->host, (const unsigned char *)t->data + t->byte_offset,
           tps_buffer_bytes(box));
  tps_guard_release(guard);
}

/* tp.from_dlpack(light userdata) */
int tps_buffer_from_dlpack(lua_State *L) {
  if (lua_type(L, 1) != LUA_TLIGHTUSERDATA)
    tps_type_error(L, 1, "light userdata");
  DLManagedTensor *tensor = (DLManagedTensor *)lua_touserdata(L, 1);
  if (tensor == NULL) tps_argument_error(L, 1, "a null pointer");
  tps_guard *guard = tps_guard_over(L, tensor, delete_taken);
  tps_open(L);
  const DLTensor *t = &tensor->dl_tensor;
  int dtype = dtype_of(t->dtype);
  if (dtype < 0)
    refuse(L, guard,
           "elements of type code %d, %d bits, %d lanes have no name here",
           t->dtype.code, t->dtype.bits, t->dtype.lanes);
  int64_t count = count_of(L, guard, t);
  if (count > 0 && t->data == NULL) refuse(L, guard, "a tensor without data");
  if (count > INT64_MAX / tps_dtype_sizes[dtype])
    refuse(L, guard, "%lld elements of %s are more bytes than there can be",
           (long long)count, tps_dtype_names[dtype]);
  tps_lua_buffer *box = tps_push_buffer(L, dtype, count);
  switch (t->device.device_type) {
  case kDLCUDA:
  case kDLCUDAHost:
  case kDLCUDAManaged:
  case kDLExtDev: take_over(L, guard, box); break;
  case kDLCPU:
    if (own_tensor((DLManagedTensor *)guard->data) != NULL)
      take_over(L, guard, box);
    else copy_over(L, guard, box);
    break;
  default:
    refuse(L, guard,
           "a tensor on a device of type %d (only CPU, CUDA and this "
           "library's own can be taken)",
           (int)t->device.device_type);
  }
  return 1;
}
