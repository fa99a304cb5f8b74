/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The binary interface of DLPack, as far as arrays without further fields go: what
 * Python's "dltensor" capsules hold. Names and values are the standard's. */
#ifndef TPS_LUA_DLPACK_H
#define TPS_LUA_DLPACK_H

#include <stdint.h>

typedef enum DLDeviceType {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3, /* page-locked */
  kDLExtDev = 12,  /* the simulated device */
  kDLCUDAManaged = 13
} DLDeviceType;

typedef struct DLDevice {
  int32_t device_type;
  int32_t device_id;
} DLDevice;

typedef enum DLDataTypeCode {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLBool = 6
} DLDataTypeCode;

typedef struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: rows without gaps */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#endif
