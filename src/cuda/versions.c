/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The versions of the driver and of the runtime, which need no device.
 */
#include <cuda_runtime_api.h>

#include "device/info.h"

void tps_cuda_versions(int *driver, int *runtime) {
  *driver = *runtime = 0;
  cudaDriverGetVersion(driver);
  cudaRuntimeGetVersion(runtime);
  cudaGetLastError();
}
