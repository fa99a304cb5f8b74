/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The list of devices of the process: counted once, opened at the first use,
 * open until the end. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/parts.h"

#define MAX_DEVICES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  bool counted;
  int count;
  tps_error why; /* of a count of 0 */
  tps_device *devices[MAX_DEVICES];
} kinds[2]; /* by tps_device_kind */

static _Atomic uint64_t last_id;

uint64_t tps_next_id(void) {
  return atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
}

const char *tps_kind_name(tps_device_kind kind) {
  return kind == TPS_CUDA ? "cuda" : "sim";
}

static int count_locked(tps_device_kind kind) {
  if (kinds[kind].counted) return kinds[kind].count;
  int n = kind == TPS_CUDA ? tps_cuda_device_count(&kinds[kind].why)
                           : tps_sim_device_count();
  if (n < 0) n = 0;
  kinds[kind].count = n < MAX_DEVICES ? n : MAX_DEVICES;
  kinds[kind].counted = true;
  return kinds[kind].count;
}

int tps_device_count(tps_device_kind kind, tps_error *why) {
  pthread_mutex_lock(&lock);
  int count = count_locked(kind);
  if (count == 0 && why != NULL) *why = kinds[kind].why;
  pthread_mutex_unlock(&lock);
  return count;
}

static int no_such_device(tps_device_kind kind, int64_t ordinal, int count,
                          tps_error *err) {
  const char *name = tps_kind_name(kind);
  if (count == 0 && kinds[kind].why.message[0] != '\0')
    return tps_fail(err, TPS_NO_DEVICE, "no %s device is visible: %s", name,
                    kinds[kind].why.message);
  if (count == 0)
    return tps_fail(err, TPS_NO_DEVICE, "no %s device is visible", name);
  return tps_fail(err, TPS_INVALID_DEVICE,
                  "no device %s:%" PRId64 ": %d %s device%s visible", name,
                  ordinal, count, name, count == 1 ? " is" : "s are");
}

static int open_locked(tps_device_kind kind, int ordinal, tps_error *err) {
  tps_device_state *state = calloc(1, sizeof *state);
  if (state == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  tps_device *device = NULL;
  int code = kind == TPS_CUDA ? tps_cuda_device_open(ordinal, &device, err)
                              : tps_sim_device_open(ordinal, &device, err);
  if (code != 0) {
    free(state);
    return code;
  }
  pthread_mutex_init(&state->lock, NULL);
  device->runtime = state;
  kinds[kind].devices[ordinal] = device;
  return 0;
}

int tps_device_get(tps_device_kind kind, int64_t ordinal, tps_device **out,
                   tps_error *err) {
  pthread_mutex_lock(&lock);
  int code = 0, count = count_locked(kind);
  if (ordinal < 0 || ordinal >= count)
    code = no_such_device(kind, ordinal, count, err);
  else if (kinds[kind].devices[ordinal] == NULL)
    code = open_locked(kind, (int)ordinal, err);
  if (code == 0) *out = kinds[kind].devices[ordinal];
  pthread_mutex_unlock(&lock);
  return code;
}

/* Digits → ordinal; false for anything else and for what 64 bits can't hold, so
 * that a message has the number as it was asked for. */
static bool parse_ordinal(const char *text, int64_t *ordinal) {
  size_t digits = strspn(text, "0123456789");
  if (digits == 0 || text[digits] != '\0') return false;
  errno = 0;
  *ordinal = strtoll(text, NULL, 10);
  return errno == 0;
}

/* True when text is `name` or `name:digits`. */
static bool parse_kind(const char *text, const char *name, int64_t *ordinal) {
  size_t size = strlen(name);
  if (strncmp(text, name, size) != 0) return false;
  *ordinal = 0;
  if (text[size] == '\0') return true;
  return text[size] == ':' && parse_ordinal(text + size + 1, ordinal);
}

int tps_device_parse(const char *text, tps_device_kind kind, tps_device **out,
                     tps_error *err) {
  int64_t ordinal;
  if (parse_kind(text, "cuda", &ordinal)) kind = TPS_CUDA;
  else if (parse_kind(text, "sim", &ordinal)) kind = TPS_SIM;
  else if (!parse_ordinal(text, &ordinal))
    return tps_fail(err, TPS_MISUSE,
                    "no such device '%s' (a device is \"cuda\", \"cuda:N\", "
                    "\"sim\", \"sim:N\" or N)",
                    text);
  return tps_device_get(kind, ordinal, out, err);
}

const char *tps_device_label(const tps_device *device, char *buffer,
                             size_t size) {
  snprintf(buffer, size, "%s:%d", tps_kind_name(device->kind), device->ordinal);
  return buffer;
}

int tps_device_memory_info(tps_device *device, uint64_t *free, uint64_t *total,
                           tps_error *err) {
  int code = tps_device_fault(device, err);
  if (code != 0) return code;
  code = device->face->memory_info(device, free, total, err);
  return code != 0 ? tps_failed(device, NULL, code, err) : 0;
}
