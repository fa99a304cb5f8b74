/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What is tried before a device is said to be out of memory, from what costs
 * nothing to what waits, and how that is said. */
#include "runtime/foreign.h"

/* What is kept for later and used by nothing. */
static bool give_kept(tps_local *local) {
  bool flushed = tps_spares_flush_all(local);
  return tps_arrays_drop_pool(local->device) || flushed;
}

/* The arrays that queued work uses last, and other blocks with an owner. */
static int wait_for_arrays(tps_local *local, bool *any, tps_error *err) {
  int code = 0;
  for (tps_pinned *b = local->pending; b != NULL && code == 0; b = b->next) {
    if (!tps_block_foreign(b) || b->bytes == 0 || b->event == NULL) continue;
    *any = true;
    code = tps_wait(local, NULL, b->event, TPS_FOREVER, err);
  }
  return code;
}

/* All that is queued on the device, frees included. */
static int wait_for_all(tps_local *local, tps_error *err) {
  tps_device_event *event;
  int code = tps_reclaim_after_all(local, false, err);
  if (code == 0) code = tps_event_mark(local->reclaim, &event, err);
  if (code != 0) return code;
  code = tps_wait(local, NULL, event, TPS_FOREVER, err);
  tps_event_give(local, event);
  return code;
}

/* Sets *again when it has given something back, or may have. */
static int relieve(tps_local *local, tps_relief relief, bool *again,
                   tps_error *err) {
  int code = 0;
  if (relief == TPS_RELIEF_ARRAYS) code = wait_for_arrays(local, again, err);
  if (relief == TPS_RELIEF_ALL) {
    code = wait_for_all(local, err);
    *again = true;
  }
  if (*again) tps_reclaim_pending(local, UINT32_MAX, UINT32_MAX);
  if (give_kept(local)) *again = true;
  return code;
}

bool tps_relieve(tps_local *local, tps_relief *next, tps_relief last, int *code,
                 tps_error *err) {
  bool again = false;
  while (*code == TPS_OUT_OF_MEMORY && !again && *next <= last) {
    int failed = relieve(local, (*next)++, &again, err);
    if (failed == 0) continue;
    *code = failed;
    return false;
  }
  return again;
}

int tps_out_of_memory(tps_device *device, const char *what, uint64_t bytes,
                      tps_error *err) {
  uint64_t left = 0, total = 0;
  char label[32];
  tps_error ignored;
  tps_device_label(device, label, sizeof label);
  if (device->face->memory_info(device, &left, &total, &ignored) != 0)
    return tps_fail(err, TPS_OUT_OF_MEMORY,
                    "out of memory on %s: %s%llu bytes asked for", label, what,
                    (unsigned long long)bytes);
  return tps_fail(err, TPS_OUT_OF_MEMORY,
                  "out of memory on %s: %s%llu bytes asked for, %llu free of "
                  "%llu",
                  label, what, (unsigned long long)bytes,
                  (unsigned long long)left, (unsigned long long)total);
}
