/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What can be told of each kind of device without opening one: for the command's
 * --info.
 */
#ifndef TPS_DEVICE_INFO_H
#define TPS_DEVICE_INFO_H

#include <stdint.h>

#include "base/error.h"

/* As 1000 * major + 10 * minor. The driver's is 0 when none can be loaded; both
 * are 0 in a build without the CUDA toolkit. */
void tps_cuda_versions(int *driver, int *runtime);

/* A library that is opened when it is first needed. */
typedef struct tps_library_info {
  char path[4096];  /* "": there is none that serves */
  char version[32]; /* "13.1" */
  char why[512];    /* there is none: where it was looked for, what it lacks */
} tps_library_info;

/* cuBLAS, for products of matrices on a GPU. Opens it. */
void tps_cublas_look(tps_library_info *out);

typedef struct tps_sim_settings {
  uint64_t devices;
  uint64_t threads; /* 0: one a processor */
  uint64_t memory;  /* bytes a device */
  uint64_t seed;
  uint64_t timeout_ns; /* 0: no limit */
  bool peers;          /* kernels may use other devices' memory */
  int capability;      /* 80 or 90 */
} tps_sim_settings;

/* As the environment has them. Fails, naming the variable, if one of them is
 * malformed; a simulated device can't be opened then either. */
int tps_sim_settings_read(tps_sim_settings *out, tps_error *err);

#endif
