/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Modules, kernels and launches of the simulated device. A module lives until
 * its handle and the last launch of it are gone, so unloading never waits.
 */
#include "sim/queue.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_SHARED INT64_C(49152) /* static + dynamic, without opt-in */
#define RESERVED_SHARED INT64_C(1024) /* of each block, by the system */

static tps_sim_device *to_device(tps_device *device) {
  return (tps_sim_device *)device;
}

static tps_sim_function *to_function(tps_device_kernel *kernel) {
  return (tps_sim_function *)kernel;
}

/* --- modules -------------------------------------------------------------- */

void tps_sim_module_unref(tps_sim_module *module) {
  if (atomic_fetch_sub_explicit(&module->refs, 1, memory_order_acq_rel) != 1)
    return;
  tps_sim_code_destroy(module->code);
  while (module->functions != NULL) {
    tps_sim_function *next = module->functions->next;
    free(module->functions);
    module->functions = next;
  }
  pthread_mutex_destroy(&module->lock);
  free(module);
}

static int load(tps_sim_device *device, const void *image, size_t size,
                bool unlinked, tps_sim_code **code, tps_error *err) {
  const tps_device_properties *p = &device->base.properties;
  tps_ptx_module *ptx = NULL;
  int status = tps_ptx_parse_shared(image, size, &ptx, err);
  if (status != 0) return status;
  return tps_sim_code_new(ptx, device->space,
                          p->capability_major * 10 + p->capability_minor,
                          unlinked, code, err);
}

int tps_sim_module_check(tps_device *face, const void *image, size_t size,
                         tps_error *err) {
  tps_sim_code *code;
  int status = load(to_device(face), image, size, true, &code, err);
  if (status == 0) tps_sim_code_destroy(code);
  return status;
}

int tps_sim_module_load(tps_device *face, tps_image_kind kind,
                        const void *image, size_t size, const char *probe,
                        tps_device_module **out, tps_error *err) {
  (void)probe; /* the reader finds everything wrong at once */
  tps_sim_device *device = to_device(face);
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  if (kind == TPS_IMAGE_BINARY)
    return tps_fail(err, TPS_INVALID_IMAGE,
                    "a compiled binary can't run on the simulated device: it "
                    "needs PTX");
  tps_sim_module *module = calloc(1, sizeof *module);
  if (module == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for a module");
  module->device = device;
  atomic_init(&module->refs, 1);
  code = load(device, image, size, false, &module->code, err);
  if (code != 0) {
    free(module);
    return code;
  }
  pthread_mutex_init(&module->lock, NULL);
  *out = (tps_device_module *)module;
  return 0;
}

/* Launches hold the module themselves; copies of its variables don't, so it is
 * let go of when all that was queued before has ended. */
void tps_sim_module_unload(tps_device *face, tps_device_module *handle) {
  tps_sim_device *device = to_device(face);
  tps_sim_module *module = (tps_sim_module *)handle;
  tps_sim_lock(device->pool);
  module->unloaded = device->pool->numbered;
  module->next = device->unloading;
  device->unloading = module;
  tps_sim_settle_modules(device);
  tps_sim_unlock(device->pool);
}

int tps_sim_module_kernels(tps_device *face, tps_device_module *module,
                           char ***names, size_t *count, tps_error *err) {
  (void)face, (void)module, (void)names, (void)count;
  return tps_fail(err, TPS_NOT_SUPPORTED,
                  "the simulated device lists no kernels: its modules are PTX, "
                  "which tells them");
}

int tps_sim_global_find(tps_device *face, tps_device_module *handle,
                        const char *name, uint64_t *address, uint64_t *bytes,
                        tps_error *err) {
  tps_sim_module *module = (tps_sim_module *)handle;
  int code = tps_sim_refuse(to_device(face), err);
  if (code != 0) return code;
  tps_sim_allocation *memory = tps_sim_code_global(module->code, name);
  if (memory == NULL)
    return tps_fail(err, TPS_NOT_FOUND, "no variable '%s' in the module", name);
  *address = memory->base;
  *bytes = memory->size;
  return 0;
}

/* --- kernels -------------------------------------------------------------- */

static tps_sim_function *known_function(tps_sim_module *module,
                                        const tps_sim_kernel *kernel) {
  for (tps_sim_function *f = module->functions; f != NULL; f = f->next)
    if (f->kernel == kernel) return f;
  return NULL;
}

static tps_sim_function *function_new(tps_sim_module *module,
                                      const tps_sim_kernel *kernel) {
  tps_sim_function *f = calloc(1, sizeof *f);
  if (f == NULL) return NULL;
  f->module = module;
  f->kernel = kernel;
  tps_sim_kernel_describe(kernel, &f->info);
  int64_t left = DEFAULT_SHARED - f->info.static_shared;
  atomic_init(&f->dynamic_limit, left > 0 ? left : 0);
  f->next = module->functions;
  module->functions = f;
  return f;
}

int tps_sim_kernel_find(tps_device *face, tps_device_module *handle,
                        const char *name, tps_device_kernel **out,
                        tps_error *err) {
  tps_sim_module *module = (tps_sim_module *)handle;
  int code = tps_sim_refuse(to_device(face), err);
  if (code != 0) return code;
  const tps_sim_kernel *kernel;
  code = tps_sim_code_kernel(module->code, name, &kernel, err);
  if (code != 0) return code;
  pthread_mutex_lock(&module->lock);
  tps_sim_function *f = known_function(module, kernel);
  if (f == NULL) f = function_new(module, kernel);
  pthread_mutex_unlock(&module->lock);
  if (f == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for a kernel");
  *out = (tps_device_kernel *)f;
  return 0;
}

int tps_sim_kernel_params(tps_device *face, tps_device_kernel *kernel,
                          tps_kernel_desc *desc, tps_error *err) {
  (void)face, (void)kernel, (void)desc;
  return tps_fail(err, TPS_NOT_SUPPORTED,
                  "the simulated device tells no parameters: its modules are "
                  "PTX, which tells them");
}

int tps_sim_kernel_attributes(tps_device *face, tps_device_kernel *kernel,
                              tps_kernel_attributes *out, tps_error *err) {
  tps_sim_function *f = to_function(kernel);
  int code = tps_sim_refuse(to_device(face), err);
  if (code != 0) return code;
  out->registers = f->info.registers;
  out->shared_bytes = f->info.static_shared;
  out->local_bytes = f->info.local_bytes;
  out->const_bytes = f->info.const_bytes;
  out->max_threads = f->info.max_threads;
  out->max_dynamic_shared = atomic_load(&f->dynamic_limit);
  return 0;
}

int tps_sim_kernel_opt_in_shared(tps_device *face, tps_device_kernel *kernel,
                                 int64_t bytes, tps_error *err) {
  tps_sim_device *device = to_device(face);
  tps_sim_function *f = to_function(kernel);
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  int64_t most = device->base.properties.shared_per_block_optin;
  if (bytes < 0 || bytes > most - f->info.static_shared)
    return tps_fail(
        err, TPS_INVALID_VALUE,
        "kernel '%s': %lld bytes of dynamic shared memory (with %lld "
        "static, the device allows %lld)",
        f->info.name, (long long)bytes, (long long)f->info.static_shared,
        (long long)most);
  atomic_store(&f->dynamic_limit, bytes);
  return 0;
}

static int64_t round_up(int64_t x, int64_t to) {
  return (x + to - 1) / to * to;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Warps that the registers of a multiprocessor are enough for. Registers go to
 * warps in units of 256, warps to four schedulers. */
static int64_t warps_by_registers(const tps_device_properties *p,
                                  int registers) {
  if (registers <= 0) return INT64_MAX;
  int64_t a_warp = round_up((int64_t)smaller(registers, 255) * 32, 256);
  return p->registers_per_multiprocessor / a_warp / 4 * 4;
}

/* The usual formula: blocks a multiprocessor, by whatever runs out first. */
static int64_t occupancy(const tps_sim_device *device,
                         const tps_sim_function *f, int64_t threads,
                         int64_t dynamic) {
  const tps_device_properties *p = &device->base.properties;
  int64_t shared = f->info.static_shared + dynamic;
  if (threads < 1 || threads > f->info.max_threads) return 0;
  if (dynamic < 0 || shared > p->shared_per_block_optin) return 0;
  int64_t warps = round_up(threads, p->warp_size) / p->warp_size;
  int64_t all_warps = p->max_threads_per_multiprocessor / p->warp_size;
  int64_t blocks = smaller(p->max_blocks_per_multiprocessor, all_warps / warps);
  blocks = smaller(blocks, warps_by_registers(p, f->info.registers) / warps);
  int64_t a_block = round_up(shared + RESERVED_SHARED, 128);
  return smaller(blocks, p->shared_per_multiprocessor / a_block);
}

int tps_sim_kernel_occupancy(tps_device *face, tps_device_kernel *kernel,
                             int threads, int64_t shared, int *blocks,
                             tps_error *err) {
  tps_sim_device *device = to_device(face);
  int code = tps_sim_refuse(device, err);
  if (code != 0) return code;
  *blocks = (int)occupancy(device, to_function(kernel), threads, shared);
  return 0;
}

/* --- launches ------------------------------------------------------------- */

static const char *shown_name(const tps_sim_function *f, const tps_op *op) {
  return op->kernel != NULL ? op->kernel : f->info.name;
}

static int check_extent(const char *name, const char *what, char axis,
                        uint64_t extent, int64_t most, tps_error *err) {
  if (extent >= 1 && extent <= (uint64_t)most) return 0;
  return tps_fail(err, TPS_INVALID_VALUE,
                  "kernel '%s': %s %c is %llu (1 to %lld are allowed)", name,
                  what, axis, (unsigned long long)extent, (long long)most);
}

static uint64_t volume(const uint32_t extent[3]) {
  return (uint64_t)extent[0] * extent[1] * extent[2];
}

static int check_shape(const tps_sim_device *device, const tps_sim_function *f,
                       const tps_launch *launch, const char *name,
                       tps_error *err) {
  const tps_device_properties *p = &device->base.properties;
  for (int i = 0; i < 3; i++) {
    int code = check_extent(name, "grid", "xyz"[i], launch -> grid[i],
                            p -> max_grid[i], err);
    if (code == 0)
      code = check_extent(name, "block", "xyz"[i], launch -> block[i],
                          p -> max_block[i], err);
    if (code != 0) return code;
  }
  uint64_t threads = volume(launch->block);
  if (threads > (uint64_t)f->info.max_threads)
    return tps_fail(err, TPS_INVALID_VALUE,
                    "kernel '%s': block of %llu threads (this kernel allows "
                    "%d)",
                    name, (unsigned long long)threads, f->info.max_threads);
  /* y and z are bounded by 65535, so only x can make the product overflow. */
  if (volume(launch->grid) > (uint64_t)INT64_MAX)
    return tps_fail(err, TPS_INVALID_VALUE, "kernel '%s': too many blocks",
                    name);
  return 0;
}

static int check_cluster(const tps_sim_device *device, const tps_launch *launch,
                         const char *name, tps_error *err) {
  uint64_t blocks = volume(launch->cluster);
  if (blocks == 0 &&
      launch->cluster[0] + launch->cluster[1] + launch->cluster[2] == 0)
    return 0;
  if (!device->base.properties.clusters)
    return tps_fail(err, TPS_INVALID_VALUE,
                    "kernel '%s': clusters need compute capability 9.0 (this "
                    "device has %d.%d)",
                    name, device->base.properties.capability_major,
                    device->base.properties.capability_minor);
  if (blocks == 0 || blocks > 8)
    return tps_fail(err, TPS_INVALID_VALUE,
                    "kernel '%s': cluster of %llu blocks (1 to 8 are allowed)",
                    name, (unsigned long long)blocks);
  for (int i = 0; i < 3; i++)
    if (launch->grid[i] % launch->cluster[i] != 0)
      return tps_fail(err, TPS_INVALID_VALUE,
                      "kernel '%s': grid %c of %u is not a multiple of the "
                      "cluster's %u",
                      name, "xyz"[i], launch -> grid[i], launch -> cluster[i]);
  return 0;
}

static int check_resources(const tps_sim_device *device, tps_sim_function *f,
                           const tps_launch *launch, const char *name,
                           int64_t blocks, tps_error *err) {
  int64_t dynamic = atomic_load(&f->dynamic_limit);
  if (launch->shared > dynamic)
    return tps_fail(err, TPS_INVALID_VALUE,
                    "kernel '%s': %u bytes of dynamic shared memory (%lld are "
                    "allowed beside %lld static; with opt-in the device has "
                    "%lld)",
                    name, launch->shared, (long long)dynamic,
                    (long long)f->info.static_shared,
                    (long long)device->base.properties.shared_per_block_optin);
  if (launch->param_bytes != f->info.param_bytes)
    return tps_fail(err, TPS_INVALID_VALUE,
                    "kernel '%s': %u bytes of parameters (it takes %u)", name,
                    launch->param_bytes, f->info.param_bytes);
  uint64_t most = (uint64_t)(blocks * device->base.properties.multiprocessors);
  if (launch->cooperative && volume(launch->grid) > most)
    return tps_fail(
        err, TPS_COOPERATIVE_LAUNCH_TOO_LARGE,
        "kernel '%s': cooperative grid of %llu blocks (%llu fit the "
        "device at once)",
        name, (unsigned long long)volume(launch->grid),
        (unsigned long long)most);
  return 0;
}

/* The launch with the cluster that the kernel demands where it names none. */
static int settle_cluster(const tps_sim_function *f, const tps_launch *launch,
                          const char *name, tps_launch *out, tps_error *err) {
  uint32_t fixed[3] = {0};
  tps_sim_kernel_cluster(f->kernel, fixed);
  *out = *launch;
  if (fixed[0] == 0) return 0;
  if (launch->cluster[0] == 0) {
    memcpy(out->cluster, fixed, sizeof fixed);
    return 0;
  }
  if (memcmp(launch->cluster, fixed, sizeof fixed) == 0) return 0;
  return tps_fail(err, TPS_INVALID_VALUE,
                  "kernel '%s': cluster of %ux%ux%u (the kernel is made for "
                  "%ux%ux%u)",
                  name, launch->cluster[0], launch->cluster[1],
                  launch->cluster[2], fixed[0], fixed[1], fixed[2]);
}

static int check_launch(const tps_sim_device *device, tps_sim_function *f,
                        const tps_launch *launch, const char *name,
                        int64_t blocks, tps_error *err) {
  int code = check_shape(device, f, launch, name, err);
  if (code == 0) code = check_cluster(device, launch, name, err);
  if (code == 0) code = check_resources(device, f, launch, name, blocks, err);
  return code;
}

static uint64_t mix(uint64_t x) {
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

static uint64_t divisor(uint64_t a, uint64_t b) {
  while (b != 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* The order in which blocks begin: as numbered, or one of the many that a seed
 * chooses from. */
static void choose_order(tps_sim_task *task, uint64_t seed) {
  task->u.run.stride = 1;
  if (seed == 0 || task->parts < 2) return;
  uint64_t stride = mix(seed) % task->parts;
  while (divisor(stride, task->parts) != 1) stride = (stride + 1) % task->parts;
  task->u.run.stride = stride;
  task->u.run.offset = mix(seed + 1) % task->parts;
}

static tps_sim_order *order_new(tps_sim_function *f, const tps_launch *launch) {
  tps_sim_order *order = malloc(sizeof *order + launch->param_bytes);
  if (order == NULL) return NULL;
  atomic_init(&order->refs, 1);
  order->function = f;
  order->shape = *launch;
  if (launch->param_bytes > 0)
    memcpy(order->params, launch->params, launch->param_bytes);
  order->shape.params = order->params;
  order->shape.argv = NULL;
  return order;
}

void tps_sim_order_unref(tps_sim_order *order) {
  if (order != NULL && atomic_fetch_sub(&order->refs, 1) == 1) free(order);
}

/* Makes the engine's launch. Only when its turn has come, so that a queue of
 * thousands of launches is quick to fill and takes little memory. */
int tps_sim_launch_begin(tps_sim_task *task, tps_error *err) {
  tps_sim_device *device = task->device;
  tps_sim_order *order = task->u.run.order;
  tps_sim_launch_config config = {.kernel = order->function->kernel,
                                  .shape = order->shape,
                                  .op = task->op,
                                  .seed = task->u.run.seed,
                                  .multiprocessors =
                                      device->base.properties.multiprocessors,
                                  .print = tps_sim_print,
                                  .print_context = device};
  return tps_sim_launch_new(device->space, &config, &task->u.run.launch, err);
}

void tps_sim_launch_number(tps_sim_task *task) {
  tps_sim_device *device = task->device;
  uint64_t number = atomic_fetch_add(&device->launches, 1);
  task->u.run.seed = device->seed == 0 ? 0 : mix(device->seed + number) | 1;
  choose_order(task, task->u.run.seed);
}

/* Everything of the task but its place in a stream. */
static bool prepare(tps_sim_device *device, tps_sim_function *f,
                    const tps_launch *launch, int64_t blocks,
                    tps_sim_task *task) {
  tps_sim_order *order = order_new(f, launch);
  if (order == NULL) return false;
  task->u.run.order = order;
  task->u.run.module = f->module;
  atomic_fetch_add_explicit(&f->module->refs, 1, memory_order_relaxed);
  task->u.run.cooperative = launch->cooperative;
  uint64_t size = volume(launch->cluster);
  if (size == 0) size = 1;
  task->parts = volume(launch->grid) / size;
  if (blocks < 1) blocks = 1;
  task->resident_limit =
      (uint64_t)(blocks * device->base.properties.multiprocessors) / size;
  return true;
}

int tps_sim_launch_task(tps_sim_device *device, tps_device_kernel *kernel,
                        const tps_launch *given, tps_op *op, tps_sim_task **out,
                        tps_error *err) {
  tps_sim_function *f = to_function(kernel);
  tps_launch settled;
  const tps_launch *launch = &settled;
  int code = settle_cluster(f, given, shown_name(f, op), &settled, err);
  if (code != 0) return code;
  int64_t blocks =
      occupancy(device, f, (int64_t)volume(launch->block), launch->shared);
  code = check_launch(device, f, launch, shown_name(f, op), blocks, err);
  if (code != 0) return code;
  tps_sim_task *task = tps_sim_task_new(device, TPS_SIM_TASK_LAUNCH, op);
  if (task != NULL && prepare(device, f, launch, blocks, task)) {
    *out = task;
    return 0;
  }
  if (task != NULL) tps_sim_discard(task);
  return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for queued work");
}

int tps_sim_launch_kernel(tps_device *face, tps_device_kernel *kernel,
                          const tps_launch *launch, tps_device_stream *stream,
                          tps_op *op, tps_error *err) {
  tps_sim_device *device = to_device(face);
  tps_sim_task *task = NULL;
  int code = tps_sim_refuse(device, err);
  if (code == 0)
    code = tps_sim_launch_task(device, kernel, launch, op, &task, err);
  if (code != 0 || task == NULL) return code;
  tps_sim_launch_number(task);
  tps_sim_tidy(device);
  return tps_sim_queue((tps_sim_stream *)stream, task, err);
}
