/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What a launch may ask for. Every limit is checked before the device sees the
 * launch, so that the message can name the bound; the codes are a GPU's. */
#include <stdio.h>
#include <string.h>

#include "runtime/parts.h"

#define CLUSTER_BLOCKS 8 /* what every device that has clusters allows */
#define REGISTER_UNIT 8  /* registers of a thread come in these */

static const char axes[] = "xyz";

/* What the checks look at. */
typedef struct check {
  const tps_kernel *kernel;
  const tps_kernel_on *on;
  const tps_shape *shape;
  const tps_device_properties *p;
  tps_error *err;
} check;

static int refuse(const check *c, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fails with "kernel 'name': ...". */
static int refuse(const check *c, int code, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tps_fail(c->err, code, "kernel '%s': %s", c->kernel->name, text);
  snprintf(c->err->kernel, sizeof c->err->kernel, "%s", c->kernel->name);
  return code;
}

static int check_extent(const check *c, const char *what, const char *unit,
                        const int64_t n[3], const int64_t most[3]) {
  for (int i = 0; i < 3; i++) {
    if (n[i] < 1)
      return refuse(c, TPS_INVALID_VALUE, "%s of %lld %s in %c (at least 1)",
                    what, (long long)n[i], unit, axes[i]);
    if (n[i] > most[i])
      return refuse(c, TPS_INVALID_VALUE,
                    "%s of %lld %s in %c (this device allows %lld)", what,
                    (long long)n[i], unit, axes[i], (long long)most[i]);
  }
  return 0;
}

static int64_t volume(const int64_t n[3]) { return n[0] * n[1] * n[2]; }

/* What the kernel was compiled for at the most, registers apart. */
static int64_t most_threads(const check *c) {
  int64_t most = c->p->max_threads_per_block;
  if (c->kernel->desc->max_threads != 0 && c->kernel->desc->max_threads < most)
    most = c->kernel->desc->max_threads;
  return most;
}

static int64_t round_up(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

static int check_threads(const check *c) {
  static const int64_t no_limit[3] = {INT32_MAX, INT32_MAX, INT32_MAX};
  const int64_t *block = c->shape->block;
  int code = check_extent(c, "block", "threads", block, no_limit);
  if (code != 0) return code;
  int64_t most = most_threads(c);
  double exact = (double)block[0] * (double)block[1] * (double)block[2];
  if (exact > (double)most)
    return refuse(c, TPS_INVALID_VALUE,
                  "block of %.0f threads (this kernel allows %lld)", exact,
                  (long long)most);
  code = check_extent(c, "block", "threads", block, c->p->max_block);
  if (code != 0) return code;
  int64_t threads = volume(block);
  int64_t registers = round_up(c->on->attributes.registers, REGISTER_UNIT) *
                      round_up(threads, c->p->warp_size);
  bool counted = c->on->device->kind == TPS_CUDA; /* else an estimate only */
  if (counted && registers > c->p->registers_per_block)
    return refuse(c, TPS_LAUNCH_OUT_OF_RESOURCES,
                  "%d registers a thread for %lld threads (this device has "
                  "%lld a block)",
                  c->on->attributes.registers, (long long)threads,
                  (long long)c->p->registers_per_block);
  if (threads > c->on->attributes.max_threads)
    return refuse(c, TPS_INVALID_VALUE,
                  "block of %lld threads (this kernel allows %d)",
                  (long long)threads, c->on->attributes.max_threads);
  return 0;
}

/* The cluster that the kernel itself demands; all 0: none. */
static void fixed_cluster(const check *c, int64_t n[3]) {
  const uint32_t *fixed = c->kernel->desc->cluster;
  for (int i = 0; i < 3; i++)
    n[i] = fixed[0] != 0 && fixed[i] == 0 ? 1 : fixed[i];
}

static int check_cluster(const check *c) {
  int64_t fixed[3];
  const int64_t *n = c->shape->cluster, *grid = c->shape->grid;
  fixed_cluster(c, fixed);
  if (n[0] == 0 && n[1] == 0 && n[2] == 0) n = fixed;
  if (n[0] == 0 && n[1] == 0 && n[2] == 0) return 0;
  if (fixed[0] != 0 && memcmp(n, fixed, sizeof fixed) != 0)
    return refuse(c, TPS_INVALID_VALUE,
                  "cluster of %lldx%lldx%lld blocks (the kernel is made for "
                  "%lldx%lldx%lld)",
                  (long long)n[0], (long long)n[1], (long long)n[2],
                  (long long)fixed[0], (long long)fixed[1],
                  (long long)fixed[2]);
  if (!c->p->clusters)
    return refuse(c, TPS_NOT_SUPPORTED,
                  "clusters need compute capability 9.0 (this device has "
                  "%d.%d)",
                  c->p->capability_major, c->p->capability_minor);
  for (int i = 0; i < 3; i++) {
    if (n[i] < 1 || n[i] > CLUSTER_BLOCKS)
      return refuse(c, TPS_INVALID_VALUE,
                    "cluster of %lld blocks in %c (1 to %d)", (long long)n[i],
                    axes[i], CLUSTER_BLOCKS);
    if (grid[i] % n[i] != 0)
      return refuse(c, TPS_INVALID_VALUE,
                    "grid of %lld blocks in %c is no multiple of the "
                    "cluster's %lld",
                    (long long)grid[i], axes[i], (long long)n[i]);
  }
  if (volume(n) > CLUSTER_BLOCKS)
    return refuse(c, TPS_INVALID_VALUE, "cluster of %lld blocks (at most %d)",
                  (long long)volume(n), CLUSTER_BLOCKS);
  return 0;
}

static int check_shared(const check *c) {
  int64_t fixed = c->on->attributes.shared_bytes, most;
  most = c->p->shared_per_block_optin > c->p->shared_per_block
             ? c->p->shared_per_block_optin
             : c->p->shared_per_block;
  if (c->shape->shared < 0)
    return refuse(c, TPS_INVALID_VALUE,
                  "%lld bytes of dynamic shared memory (at least 0)",
                  (long long)c->shape->shared);
  if (c->shape->shared > most - fixed)
    return refuse(c, TPS_INVALID_VALUE,
                  "%lld bytes of static and %lld of dynamic shared memory "
                  "(this device allows %lld a block)",
                  (long long)fixed, (long long)c->shape->shared,
                  (long long)most);
  return 0;
}

/* Always up to the most there is: a driver keeps one bound for a function,
 * which another kernel object of the same function must not lower. */
int tps_limits_shared(tps_kernel_on *on, int64_t shared, tps_error *err) {
  tps_device *device = on->device;
  const tps_device_properties *p = &device->properties;
  int64_t fixed = on->attributes.shared_bytes;
  if (fixed + shared <= p->shared_per_block || on->opted_in) return 0;
  int64_t most = p->shared_per_block_optin - fixed;
  int code = device->face->kernel_opt_in_shared(device, on->handle, most, err);
  if (code != 0) return tps_failed(device, NULL, code, err);
  on->opted_in = true;
  on->attributes.max_dynamic_shared = most;
  return 0;
}

static int check_cooperative(const check *c, tps_device *device) {
  if (!c->shape->cooperative) return 0;
  if (!c->p->cooperative_launch)
    return refuse(c, TPS_NOT_SUPPORTED,
                  "this device has no cooperative launch");
  int blocks;
  int code = device->face->kernel_occupancy(device, c->on->handle,
                                            (int)volume(c->shape->block),
                                            c->shape->shared, &blocks, c->err);
  if (code != 0) return tps_failed(device, NULL, code, c->err);
  int64_t most = (int64_t)blocks * c->p->multiprocessors;
  double exact = (double)c->shape->grid[0] * (double)c->shape->grid[1] *
                 (double)c->shape->grid[2];
  if (exact <= (double)most) return 0;
  return refuse(c, TPS_COOPERATIVE_LAUNCH_TOO_LARGE,
                "cooperative grid of %.0f blocks (%lld fit at once)", exact,
                (long long)most);
}

int tps_limits_check(tps_kernel *kernel, tps_kernel_on *on,
                     const tps_shape *shape, tps_error *err) {
  tps_device *device = on->device;
  check c = {kernel, on, shape, &device->properties, err};
  int code = check_extent(&c, "grid", "blocks", shape->grid, c.p->max_grid);
  if (code == 0) code = check_threads(&c);
  if (code == 0) code = check_cluster(&c);
  if (code == 0) code = check_shared(&c);
  if (code == 0) code = tps_limits_shared(on, shape->shared, err);
  if (code == 0) code = check_cooperative(&c, device);
  return code;
}

/* ---- questions ----------------------------------------------------------- */

/* False where no such block can be launched at all. */
static bool possible(const tps_kernel *kernel, tps_kernel_on *on,
                     int64_t threads, int64_t shared) {
  tps_error err;
  tps_shape shape = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .shared = shared};
  check c = {kernel, on, &shape, &on->device->properties, &err};
  if (threads < 1 || threads > most_threads(&c) ||
      threads > on->attributes.max_threads)
    return false;
  return check_shared(&c) == 0;
}

int tps_kernel_occupancy(tps_kernel *kernel, tps_device *device,
                         int64_t threads, int64_t shared, int *blocks,
                         tps_error *err) {
  tps_kernel_on *on;
  *blocks = 0;
  int code = tps_kernel_get(kernel, device, &on, err);
  if (code != 0 || !possible(kernel, on, threads, shared)) return code;
  code = tps_limits_shared(on, shared, err);
  if (code != 0) return code;
  code = device->face->kernel_occupancy(device, on->handle, (int)threads,
                                        shared, blocks, err);
  return code != 0 ? tps_failed(device, NULL, code, err) : 0;
}

static int find_best(tps_kernel *kernel, tps_kernel_on *on, int64_t *best,
                     tps_error *err) {
  int64_t most = 0, warp = on->device->properties.warp_size;
  *best = 1;
  for (int64_t n = warp; possible(kernel, on, n, 0); n += warp) {
    int blocks;
    int code = tps_kernel_occupancy(kernel, on->device, n, 0, &blocks, err);
    if (code != 0) return code;
    if (blocks * n < most) continue;
    most = blocks * n;
    *best = n;
  }
  if (most == 0 && on->attributes.max_threads > 0 &&
      on->attributes.max_threads < warp)
    *best = on->attributes.max_threads;
  return 0;
}

int tps_kernel_best_block(tps_kernel *kernel, tps_device *device,
                          int64_t *threads, tps_error *err) {
  tps_kernel_on *on;
  int code = tps_kernel_get(kernel, device, &on, err);
  if (code == 0 && on->best_block == 0)
    code = find_best(kernel, on, &on->best_block, err);
  if (code == 0) *threads = on->best_block;
  return code;
}

int tps_kernel_cooperative_grid(tps_kernel *kernel, tps_device *device,
                                int64_t threads, int64_t shared,
                                int64_t *blocks, tps_error *err) {
  int n;
  int code = tps_kernel_occupancy(kernel, device, threads, shared, &n, err);
  if (code == 0) *blocks = (int64_t)n * device->properties.multiprocessors;
  return code;
}
