/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Memory of several processes. To the rest of the runtime it is foreign memory,
 * whose end puts it on the device's list: giving it back may wait for running
 * work, so that is done when nothing runs. */
#include <stdlib.h>

#include "runtime/foreign.h"

typedef struct tps_shared {
  struct tps_shared *next;
  tps_device *device;
  uint64_t address;
  bool imported;
} tps_shared;

static void retire(void *owner) {
  tps_shared *shared = owner;
  tps_device_state *state = tps_state(shared->device);
  pthread_mutex_lock(&state->lock);
  shared->next = state->unshared;
  state->unshared = shared;
  pthread_mutex_unlock(&state->lock);
}

bool tps_shared_waits(const tps_device *device) {
  tps_device_state *state = tps_state(device);
  pthread_mutex_lock(&state->lock);
  bool waits = state->unshared != NULL;
  pthread_mutex_unlock(&state->lock);
  return waits;
}

void tps_shared_drop(tps_device *device) {
  tps_device_state *state = tps_state(device);
  pthread_mutex_lock(&state->lock);
  tps_shared *list = state->unshared;
  state->unshared = NULL;
  pthread_mutex_unlock(&state->lock);
  while (list != NULL) {
    tps_shared *shared = list;
    list = shared->next;
    device->face->memory_unshare(device, shared->address, shared->imported);
    free(shared);
  }
}

static tps_shared *new_shared(tps_device *device, bool imported,
                              tps_error *err) {
  tps_shared *shared = calloc(1, sizeof *shared);
  if (shared == NULL) {
    tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
    return NULL;
  }
  shared->device = device;
  shared->imported = imported;
  return shared;
}

/* Owns `shared` and, where it holds an address, that. */
static int adopt(tps_local *local, tps_shared *shared, uint64_t bytes,
                 tps_memory **out, tps_error *err) {
  int code = tps_memory_adopt(local->context, local->device, shared->address,
                              bytes, shared, retire, out, err);
  if (code != 0) {
    retire(shared);
    return code;
  }
  (*out)->shared = !shared->imported;
  if (!shared->imported) tps_memory_hold(*out);
  return 0;
}

int tps_memory_share(tps_context *context, tps_device *device, uint64_t bytes,
                     tps_memory **out, tps_error *err) {
  int code = tps_device_fault(device, err);
  if (code != 0) return code;
  tps_local *local = tps_local_get(context, device, err);
  if (local == NULL) return TPS_NO_HOST_MEMORY;
  tps_reclaim_local(local);
  code = tps_memory_afford(local, "shared memory of ", bytes, err);
  if (code != 0) return code;
  tps_shared *shared = new_shared(device, false, err);
  if (shared == NULL) return TPS_NO_HOST_MEMORY;
  code = device->face->memory_share(device, bytes, &shared->address, err);
  if (code == 0) return adopt(local, shared, bytes, out, err);
  free(shared);
  if (code == TPS_OUT_OF_MEMORY)
    return tps_out_of_memory(device, "shared memory of ", bytes, err);
  return tps_failed(device, local, code, err);
}

int tps_memory_export(tps_memory *memory, char handle[TPS_MEMORY_IPC_BYTES],
                      tps_error *err) {
  tps_device *device = memory->device;
  int code = tps_device_fault(device, err);
  if (code != 0) return code;
  if (!memory->shared)
    return tps_fail(err, TPS_MISUSE,
                    "only a buffer made with ipc=true has a handle for other "
                    "processes");
  code = device->face->memory_export(device, memory->address, handle, err);
  return code == 0 ? 0 : tps_failed(device, memory->parts->local, code, err);
}

int tps_memory_import(tps_context *context, tps_device *device,
                      const char handle[TPS_MEMORY_IPC_BYTES], tps_memory **out,
                      tps_error *err) {
  uint64_t bytes = 0;
  int code = tps_device_fault(device, err);
  if (code != 0) return code;
  tps_local *local = tps_local_get(context, device, err);
  if (local == NULL) return TPS_NO_HOST_MEMORY;
  tps_shared *shared = new_shared(device, true, err);
  if (shared == NULL) return TPS_NO_HOST_MEMORY;
  code = device->face->memory_import(device, handle, &shared->address, &bytes,
                                     err);
  if (code == 0) return adopt(local, shared, bytes, out, err);
  free(shared);
  return tps_failed(device, local, code, err);
}
