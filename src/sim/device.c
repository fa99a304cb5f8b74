/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The simulated device: the machine that it pretends to be, the environment
 * variables that shape it, opening and closing, and what its kernels print.
 */
#include "sim/queue.h"
#include "sim/textures.h"

#include "device/info.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRINT_MOST ((size_t)64 << 10)

/* What the environment asks for. */
typedef struct settings {
  uint64_t threads; /* 0: as many as there are processors */
  uint64_t memory;
  uint64_t seed;
  uint64_t timeout_ns;
  uint64_t peers;
  int capability;
} settings;

static tps_sim_device *to_device(tps_device *device) {
  return (tps_sim_device *)device;
}

/* --- the environment ------------------------------------------------------ */

static int malformed(const char *name, const char *value, const char *allowed,
                     tps_error *err) {
  return tps_fail(err, TPS_INVALID_VALUE, "%s is '%.64s' (%s)", name, value,
                  allowed);
}

static const char *setting(const char *name) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Digits only; false when there is anything else or they don't fit. */
static bool read_digits(const char *text, uint64_t *out, const char **end) {
  uint64_t value = 0;
  if (!isdigit((unsigned char)*text)) return false;
  for (; isdigit((unsigned char)*text); text++) {
    unsigned digit = (unsigned)(*text - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  *end = text;
  return true;
}

static bool read_whole(const char *text, uint64_t *out) {
  const char *end;
  return read_digits(text, out, &end) && *end == '\0';
}

/* Bytes, or with K, M or G behind the number. */
static bool read_size(const char *text, uint64_t *out) {
  const char *end;
  if (!read_digits(text, out, &end)) return false;
  static const char units[] = "KMG";
  int c = toupper((unsigned char)*end);
  const char *unit = c != '\0' ? strchr(units, c) : NULL;
  if (unit != NULL) {
    unsigned shift = 10 * (unsigned)(unit - units + 1);
    if (*out > UINT64_MAX >> shift) return false;
    *out <<= shift;
    end++;
  }
  return *end == '\0';
}

/* Seconds with a fraction, whatever the locale's decimal point is. */
static bool read_seconds(const char *text, uint64_t *ns) {
  uint64_t whole = 0, fraction = 0, unit = 1000000000u;
  const char *p = text;
  if (isdigit((unsigned char)*p) && !read_digits(p, &whole, &p)) return false;
  if (*p == '.')
    for (p++; isdigit((unsigned char)*p); p++) {
      unit /= 10;
      fraction += (uint64_t)(*p - '0') * unit;
    }
  if (*p != '\0' || whole > 1000000000u) return false;
  *ns = whole * 1000000000u + fraction;
  return *ns > 0;
}

static int read_count(const char *name, uint64_t least, uint64_t most,
                      const char *allowed, uint64_t *out, tps_error *err) {
  const char *value = setting(name);
  if (value == NULL) return 0;
  if (!read_whole(value, out) || *out < least || *out > most)
    return malformed(name, value, allowed, err);
  return 0;
}

static int read_capability(int *out, tps_error *err) {
  const char *value = setting("TPSTREAM_SIM_CAPABILITY");
  *out = 80;
  if (value == NULL || strcmp(value, "8.0") == 0) return 0;
  *out = 90;
  if (strcmp(value, "9.0") == 0) return 0;
  return malformed("TPSTREAM_SIM_CAPABILITY", value, "8.0 and 9.0 are allowed",
                   err);
}

#define LEAST_MEMORY (UINT64_C(1) << 20)
#define MOST_MEMORY (UINT64_C(1) << 40)

static int read_memory(uint64_t *out, tps_error *err) {
  const char *value = setting("TPSTREAM_SIM_MEMORY");
  *out = UINT64_C(4) << 30;
  if (value == NULL) return 0;
  if (!read_size(value, out) || *out < LEAST_MEMORY || *out > MOST_MEMORY)
    return malformed("TPSTREAM_SIM_MEMORY", value,
                     "1M to 1024G are allowed: bytes, or a number with K, M "
                     "or G",
                     err);
  return 0;
}

static int read_timeout(uint64_t *out, tps_error *err) {
  const char *value = setting("TPSTREAM_SIM_TIMEOUT");
  if (value == NULL || read_seconds(value, out)) return 0;
  return malformed("TPSTREAM_SIM_TIMEOUT", value,
                   "seconds above 0 are allowed, as in 2 or 0.5", err);
}

static int read_devices(uint64_t *out, tps_error *err) {
  *out = 1;
  return read_count("TPSTREAM_SIM_DEVICES", 1, 64, "1 to 64 are allowed", out,
                    err);
}

static int read_settings(settings *s, tps_error *err) {
  memset(s, 0, sizeof *s);
  int code = read_count("TPSTREAM_SIM_THREADS", 1, 256, "1 to 256 are allowed",
                        &s->threads, err);
  if (code == 0)
    code = read_count("TPSTREAM_SIM_SEED", 0, UINT64_MAX,
                      "0 to 18446744073709551615 are allowed", &s->seed, err);
  s->peers = 1;
  if (code == 0)
    code = read_count("TPSTREAM_SIM_PEERS", 0, 1, "0 and 1 are allowed",
                      &s->peers, err);
  if (code == 0) code = read_memory(&s->memory, err);
  if (code == 0) code = read_timeout(&s->timeout_ns, err);
  if (code == 0) code = read_capability(&s->capability, err);
  return code;
}

int tps_sim_device_count(void) {
  uint64_t count;
  tps_error ignored; /* opening a device says what is wrong */
  return read_devices(&count, &ignored) == 0 ? (int)count : 1;
}

int tps_sim_settings_read(tps_sim_settings *out, tps_error *err) {
  settings s;
  uint64_t devices;
  int code = read_devices(&devices, err);
  if (code == 0) code = read_settings(&s, err);
  if (code != 0) return code;
  *out = (tps_sim_settings){.devices = devices,
                            .threads = s.threads,
                            .memory = s.memory,
                            .seed = s.seed,
                            .timeout_ns = s.timeout_ns,
                            .peers = s.peers != 0,
                            .capability = s.capability};
  return 0;
}

/* --- the machine ---------------------------------------------------------- */

static void describe(tps_device_properties *p, const settings *s) {
  bool hopper = s->capability == 90;
  snprintf(p->name, sizeof p->name,
           "tpstream simulated device (compute capability %d.%d)",
           s->capability / 10, s->capability % 10);
  p->capability_major = s->capability / 10;
  p->capability_minor = s->capability % 10;
  p->multiprocessors = 16;
  p->warp_size = 32;
  p->max_threads_per_block = 1024;
  p->max_threads_per_multiprocessor = 2048;
  p->max_blocks_per_multiprocessor = 32;
  p->max_block[0] = p->max_block[1] = 1024;
  p->max_block[2] = 64;
  p->max_grid[0] = INT32_MAX;
  p->max_grid[1] = p->max_grid[2] = 65535;
  p->shared_per_block = 49152;
  p->shared_per_block_optin = hopper ? 232448 : 166912;
  p->shared_per_multiprocessor = hopper ? 233472 : 167936;
  p->registers_per_block = p->registers_per_multiprocessor = 65536;
  p->constant_memory = 65536;
  p->total_memory = (int64_t)s->memory;
  p->l2_cache = 4 << 20;
  p->clock_khz = p->memory_clock_khz = 1000000;
  p->memory_bus_bits = 64;
  p->cooperative_launch = true;
  p->clusters = hopper;
  p->managed_memory = true;
  p->concurrent_kernels = true;
  p->async_engines = 2;
  p->priority_least = 0;
  p->priority_greatest = -5;
}

/* --- what kernels print --------------------------------------------------- */

/* print_lock held. */
static void flush_locked(tps_sim_device *device) {
  size_t bytes = atomic_load(&device->printed_bytes);
  if (bytes > 0) fwrite(device->printed, 1, bytes, stdout);
  atomic_store(&device->printed_bytes, 0);
}

void tps_sim_flush(tps_sim_device *device) {
  pthread_mutex_lock(&device->print_lock);
  flush_locked(device);
  pthread_mutex_unlock(&device->print_lock);
}

static bool make_print_room(tps_sim_device *device, size_t size) {
  size_t bytes = atomic_load(&device->printed_bytes);
  if (bytes + size <= device->printed_capacity) return true;
  if (device->printed != NULL || size > PRINT_MOST) return false;
  device->printed = malloc(PRINT_MOST);
  if (device->printed == NULL) return false;
  device->printed_capacity = PRINT_MOST;
  return true;
}

void tps_sim_print(void *context, const char *text, size_t size) {
  tps_sim_device *device = context;
  pthread_mutex_lock(&device->print_lock);
  if (!make_print_room(device, size)) flush_locked(device);
  if (make_print_room(device, size)) {
    size_t bytes = atomic_load(&device->printed_bytes);
    memcpy(device->printed + bytes, text, size);
    atomic_store(&device->printed_bytes, bytes + size);
  } else {
    fwrite(text, 1, size, stdout);
  }
  pthread_mutex_unlock(&device->print_lock);
}

/* --- the device ----------------------------------------------------------- */

static int memory_info(tps_device *face, uint64_t *free_bytes, uint64_t *total,
                       tps_error *err) {
  tps_sim_device *device = to_device(face);
  int code = tps_sim_refuse(device, err);
  if (code == 0) tps_sim_space_info(device->space, free_bytes, total);
  return code;
}

static tps_device_stream *default_stream(tps_device *face) {
  return (tps_device_stream *)to_device(face)->legacy;
}

static int no_sharing(tps_error *err) {
  return tps_fail(err, TPS_NOT_SUPPORTED,
                  "the simulated device has no memory for other processes");
}

static int memory_share(tps_device *face, uint64_t bytes, uint64_t *address,
                        tps_error *err) {
  (void)face, (void)bytes, (void)address;
  return no_sharing(err);
}

static int memory_export(tps_device *face, uint64_t address,
                         char handle[TPS_MEMORY_IPC_BYTES], tps_error *err) {
  (void)face, (void)address, (void)handle;
  return no_sharing(err);
}

static int memory_import(tps_device *face,
                         const char handle[TPS_MEMORY_IPC_BYTES],
                         uint64_t *address, uint64_t *bytes, tps_error *err) {
  (void)face, (void)handle, (void)address, (void)bytes;
  return no_sharing(err);
}

static void memory_unshare(tps_device *face, uint64_t address, bool imported) {
  (void)face, (void)address, (void)imported;
}

static bool can_access_peer(tps_device *face, tps_device *other) {
  if (other->kind != TPS_SIM) return false;
  return face == other || to_device(face)->peers;
}

void tps_sim_tidy(tps_sim_device *device) {
  if (!tps_sim_space_is_overfull(device->space)) return;
  tps_sim_space_reclaim_before(device->space, tps_sim_oldest_epoch(device));
}

static void destroy(tps_sim_device *device) {
  while (device->streams != NULL) {
    tps_sim_stream *next = device->streams->next;
    free(device->streams);
    device->streams = next;
  }
  if (device->pool != NULL) tps_sim_pool_leave(device);
  tps_sim_space_destroy(device->space);
  pthread_mutex_destroy(&device->print_lock);
  free(device->printed);
  free(device);
}

static void close_device(tps_device *face) {
  tps_sim_drain(to_device(face));
  destroy(to_device(face));
}

static const tps_device_face face = {
    .memory_info = memory_info,
    .synchronize = tps_sim_synchronize,
    .close = close_device,
    .default_stream = default_stream,
    .stream_create = tps_sim_stream_create,
    .stream_destroy = tps_sim_stream_destroy,
    .stream_query = tps_sim_stream_query,
    .stream_synchronize = tps_sim_stream_synchronize,
    .stream_wait_event = tps_sim_stream_wait_event,
    .stream_handle = tps_sim_stream_handle,
    .event_create = tps_sim_event_create,
    .event_destroy = tps_sim_event_destroy,
    .event_record = tps_sim_event_record,
    .event_query = tps_sim_event_query,
    .event_synchronize = tps_sim_event_synchronize,
    .event_elapsed = tps_sim_event_elapsed,
    .event_handle = tps_sim_event_handle,
    .memory_allocate = tps_sim_memory_allocate,
    .memory_free = tps_sim_memory_free,
    .memory_pin = tps_sim_memory_pin,
    .memory_unpin = tps_sim_memory_unpin,
    .memory_note = tps_sim_memory_note,
    .copy = tps_sim_copy,
    .copy_peer = tps_sim_copy_peer,
    .copy_rows = tps_sim_copy_rows,
    .memory_share = memory_share,
    .memory_export = memory_export,
    .memory_import = memory_import,
    .memory_unshare = memory_unshare,
    .fill = tps_sim_fill,
    .can_access_peer = can_access_peer,
    .module_load = tps_sim_module_load,
    .module_check = tps_sim_module_check,
    .module_unload = tps_sim_module_unload,
    .kernel_find = tps_sim_kernel_find,
    .kernel_params = tps_sim_kernel_params,
    .module_kernels = tps_sim_module_kernels,
    .kernel_attributes = tps_sim_kernel_attributes,
    .kernel_opt_in_shared = tps_sim_kernel_opt_in_shared,
    .kernel_occupancy = tps_sim_kernel_occupancy,
    .global_find = tps_sim_global_find,
    .launch = tps_sim_launch_kernel,
    .stream_notify = tps_sim_stream_notify,
    .stream_adopt = tps_sim_stream_adopt,
    .stream_forget = tps_sim_stream_forget,
    .event_export = tps_sim_event_export,
    .event_import = tps_sim_event_import,
    .texture_limits = tps_sim_texture_limits,
    .array_create = tps_sim_array_create,
    .array_begin = tps_sim_array_begin,
    .array_destroy = tps_sim_array_destroy,
    .array_copy = tps_sim_array_copy,
    .texture_create = tps_sim_texture_create,
    .texture_destroy = tps_sim_view_destroy,
    .surface_create = tps_sim_surface_create,
    .surface_destroy = tps_sim_view_destroy,
    .graph_build = tps_sim_graph_build,
    .graph_change = tps_sim_graph_change,
    .graph_update = tps_sim_graph_update,
    .graph_launch = tps_sim_graph_launch,
    .graph_destroy = tps_sim_graph_destroy,
};

static int check_ordinal(int ordinal, tps_error *err) {
  uint64_t count;
  int code = read_devices(&count, err);
  if (code != 0) return code;
  if (ordinal >= 0 && (uint64_t)ordinal < count) return 0;
  return tps_fail(err, TPS_INVALID_DEVICE,
                  "simulated device %d asked for, %d visible "
                  "(TPSTREAM_SIM_DEVICES)",
                  ordinal, (int)count);
}

static int set_up(tps_sim_device *device, const settings *s, tps_error *err) {
  int code = tps_sim_space_new(s->memory, &device->space, err);
  if (code == 0) tps_sim_space_seed(device->space, s->seed);
  if (code == 0)
    code = tps_sim_pool_join(device, (unsigned)s->threads, s->seed, err);
  if (code == 0 && tps_sim_stream_make(device, 0, true) == NULL)
    code = tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for a stream");
  return code;
}

int tps_sim_device_open(int ordinal, tps_device **out, tps_error *err) {
  settings s;
  int code = check_ordinal(ordinal, err);
  if (code == 0) code = read_settings(&s, err);
  if (code != 0) return code;
  tps_sim_device *device = calloc(1, sizeof *device);
  if (device == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for a device");
  device->base.face = &face;
  device->base.kind = TPS_SIM;
  device->base.ordinal = ordinal;
  describe(&device->base.properties, &s);
  device->base.recycles = tps_sim_seed_reuses(s.seed);
  device->seed = s.seed;
  device->timeout_ns = s.timeout_ns;
  device->peers = s.peers != 0;
  pthread_mutex_init(&device->print_lock, NULL);
  code = set_up(device, &s, err);
  if (code != 0) {
    destroy(device);
    return code;
  }
  *out = &device->base;
  return 0;
}
