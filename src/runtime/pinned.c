/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Page-locked blocks and the process's pool of them. Giving one back to the
 * driver waits for running kernels, so that is done only when a device's last
 * context ends with nothing running. The simulated device has no pool: its
 * blocks are of the very size asked for, and no address serves twice. */
#include <stdlib.h>

#include "runtime/foreign.h"

#define LEAST 4096u
#define LARGEST_EXPONENT 50u

/* Size classes: four steps to each power of two. */
static unsigned class_of(uint64_t bytes, uint64_t *rounded) {
  *rounded = LEAST;
  if (bytes <= LEAST) return 0;
  unsigned exponent = 63 - (unsigned)__builtin_clzll(bytes - 1);
  uint64_t base = (uint64_t)1 << exponent, step = base / 4;
  unsigned k = (unsigned)((bytes - 1 - base) / step);
  *rounded = base + (k + 1) * step;
  return (exponent - 12) * 4 + k + 1;
}

/* Staging is page-locked memory like any other where there is a pool. */
static tps_pinned **shelf(tps_device_state *state, tps_pin kind,
                          unsigned class) {
  return &state->pool[kind == TPS_PIN_MANAGED][class];
}

static tps_pinned *take_from_pool(tps_device *device, tps_pin kind,
                                  unsigned class) {
  tps_device_state *state = tps_state(device);
  pthread_mutex_lock(&state->lock);
  tps_pinned **first = shelf(state, kind, class), *block = *first;
  if (block != NULL) {
    *first = block->next;
    state->pool_bytes -= block->bytes;
    block->next = NULL;
  }
  pthread_mutex_unlock(&state->lock);
  return block;
}

static int pin(tps_local *local, uint64_t bytes, tps_pin kind, tps_pinned **out,
               tps_error *err) {
  tps_device *device = local->device;
  char label[32];
  tps_pinned *block = calloc(1, sizeof *block);
  if (block == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  block->device = device;
  block->bytes = bytes;
  block->kind = kind;
  int code = device->face->memory_pin(device, bytes, kind, &block->host,
                                      &block->address, err);
  if (code == 0) {
    *out = block;
    return 0;
  }
  free(block);
  if (code == TPS_OUT_OF_MEMORY)
    return tps_fail(err, code, "out of %s memory for %s: %llu bytes asked for",
                    kind == TPS_PIN_MANAGED ? "managed" : "page-locked host",
                    tps_device_label(device, label, sizeof label),
                    (unsigned long long)bytes);
  return tps_failed(device, local, code, err);
}

int tps_pinned_take(tps_local *local, uint64_t bytes, tps_pin kind,
                    tps_pinned **out, tps_error *err) {
  int code = tps_device_fault(local->device, err);
  if (code != 0) return code;
  if (bytes > (uint64_t)1 << LARGEST_EXPONENT || !local->device->unpin_waits)
    return pin(local, bytes, kind, out, err);
  uint64_t rounded;
  unsigned class = class_of(bytes, &rounded);
  *out = take_from_pool(local->device, kind, class);
  return *out != NULL ? 0 : pin(local, rounded, kind, out, err);
}

/* At once, where that waits for nothing; false: for another time. */
static bool unpin(tps_pinned *block) {
  tps_device *device = block->device;
  tps_error ignored;
  if (device->unpin_waits ||
      device->face->memory_unpin(device, block->kind, block->host,
                                 block->address, &ignored))
    return false;
  free(block);
  return true;
}

void tps_pinned_give(tps_pinned *block) {
  tps_device_state *state = tps_state(block->device);
  uint64_t rounded;
  if (tps_block_foreign(block)) {
    tps_foreign_give(block);
    return;
  }
  if (unpin(block)) return;
  pthread_mutex_lock(&state->lock);
  if (block->bytes <= (uint64_t)1 << LARGEST_EXPONENT) {
    unsigned class = class_of(block->bytes, &rounded);
    tps_pinned **first = shelf(state, block->kind, class);
    block->next = *first;
    *first = block;
    state->pool_bytes += block->bytes;
  }
  pthread_mutex_unlock(&state->lock);
}

static tps_pinned *take_all(tps_device_state *state) {
  tps_pinned *all = NULL, **shelves = &state->pool[0][0];
  pthread_mutex_lock(&state->lock);
  for (unsigned i = 0; i < 2 * TPS_POOL_CLASSES; i++)
    while (shelves[i] != NULL) {
      tps_pinned *block = shelves[i];
      shelves[i] = block->next;
      block->next = all;
      all = block;
    }
  state->pool_bytes = 0;
  pthread_mutex_unlock(&state->lock);
  return all;
}

void tps_pinned_drop_pool(tps_device *device) {
  tps_pinned *all = take_all(tps_state(device));
  tps_error err;
  while (all != NULL) {
    tps_pinned *block = all;
    all = block->next;
    int code = device->face->memory_unpin(device, block->kind, block->host,
                                          block->address, &err);
    if (code == 0) free(block);
    else tps_pinned_give(block); /* for another time */
  }
}
