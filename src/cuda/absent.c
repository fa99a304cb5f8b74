/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Stands in for the CUDA device in a program built without the CUDA toolkit
 * (TPS_NO_CUDA): there are no such devices. The other files of this folder are
 * then left out. */
#include <stdio.h>

#include "device/device.h"
#include "device/info.h"

static int absent(tps_error *err) {
  return tps_fail(err, TPS_NO_DEVICE, "built without the CUDA toolkit");
}

int tps_cuda_device_count(tps_error *why) {
  absent(why);
  return 0;
}

int tps_cuda_device_open(int ordinal, tps_device **out, tps_error *err) {
  (void)ordinal;
  *out = NULL;
  return absent(err);
}

void tps_cuda_versions(int *driver, int *runtime) { *driver = *runtime = 0; }

void tps_cublas_look(tps_library_info *out) {
  tps_error err;
  absent(&err);
  out->path[0] = out->version[0] = '\0';
  snprintf(out->why, sizeof out->why, "%s", err.message);
}
