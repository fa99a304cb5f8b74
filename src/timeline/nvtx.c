/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Ranges for tools that listen to NVTX (Nsight, for one), where the build found
 * the toolkit's headers; there is no library to it. With no tool a range costs
 * the look at a pointer. */
#include "timeline/parts.h"

#ifdef TPS_NVTX
#include <nvtx3/nvToolsExt.h>

/* Tools draw what is pushed on the thread's row; what may end in another order,
 * in one of the process. */
void tps_nvtx_begin(tps_range *range, const char *name, bool nested) {
  range->pushed = nested;
  if (nested) nvtxRangePushA(name);
  else range->nvtx = nvtxRangeStartA(name);
}

void tps_nvtx_end(const tps_range *range) {
  if (range->pushed) nvtxRangePop();
  else nvtxRangeEnd(range->nvtx);
}

#else

void tps_nvtx_begin(tps_range *range, const char *name, bool nested) {
  (void)range;
  (void)name;
  (void)nested;
}

void tps_nvtx_end(const tps_range *range) { (void)range; }
#endif
