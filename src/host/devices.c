/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What devices there are, as the command tells it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/host.h"

/* "visible: cuda:0, sim:0" on stderr. */
static void print_visible(void) {
  static const char *const names[] = {[TPS_CUDA] = "cuda", [TPS_SIM] = "sim"};
  const char *before = "visible: ";
  for (int kind = TPS_CUDA; kind <= TPS_SIM; kind++) {
    int count = tps_device_count((tps_device_kind)kind, NULL);
    for (int i = 0; i < count; i++, before = ", ")
      fprintf(stderr, "%s%s:%d", before, names[kind], i);
  }
  fputc('\n', stderr);
}

tps_context *host_open_context(const host_options *options) {
  tps_error err;
  tps_context *context;
  tps_device *none;
  bool empty = options->device != NULL && options->device[0] == '\0';
  if (empty) tps_device_parse("", TPS_SIM, &none, &err); /* as a wrong name */
  else if (tps_context_new(options->device, &context, &err) == 0)
    return context;
  if (options->device != NULL)
    fprintf(stderr, "%s: --device %s: %s\n", options->program, options->device,
            err.message);
  else fprintf(stderr, "%s: %s\n", options->program, err.message);
  print_visible();
  return NULL;
}

bool host_check_device(const host_options *options) {
  const char *asked = getenv("TPSTREAM_DEVICE");
  bool chosen = options->device != NULL || (asked != NULL && *asked != '\0');
  if (!chosen) return true;
  tps_context *context = host_open_context(options);
  if (context == NULL) return false;
  tps_context_close(context);
  return true;
}

/* Why there is no GPU in use, into `out`. */
static void explain(char *out, size_t size) {
  tps_error why = {0};
  if (tps_device_count(TPS_CUDA, &why) > 0) snprintf(out, size, "as asked for");
  else snprintf(out, size, "%s", why.message);
}

void host_describe_device(const host_options *options, char *out, size_t size) {
  tps_error err;
  tps_context *context;
  tps_device *device;
  char label[32], why[256];
  if (tps_context_new(options->device, &context, &err) != 0) {
    snprintf(out, size, "no device (%s)", err.message);
    return;
  }
  if (tps_device_get(context->kind, context->initial_device, &device, &err)) {
    snprintf(out, size, "no device (%s)", err.message);
  } else if (context->kind == TPS_CUDA) {
    snprintf(out, size, "%s (%s)", tps_device_label(device, label, 32),
             device->properties.name);
  } else {
    explain(why, sizeof why);
    snprintf(out, size, "%s: the simulated device is used (%s)",
             tps_device_label(device, label, 32), why);
  }
  tps_context_close(context);
}

static void print_device(const tps_device *device, bool in_use) {
  const tps_device_properties *p = &device->properties;
  char label[32];
  printf("%c %-7s %s, capability %d.%d, %d multiprocessors, %.1f GiB\n",
         in_use ? '*' : ' ', tps_device_label(device, label, sizeof label),
         p->name, p->capability_major, p->capability_minor, p->multiprocessors,
         (double)p->total_memory / (1 << 30));
}

static bool is_used(const tps_context *context, const tps_device *device) {
  return context != NULL && context->kind == device->kind &&
         context->initial_device == device->ordinal;
}

void host_list_devices(const host_options *options,
                       const tps_context *context) {
  for (int kind = TPS_CUDA; kind <= TPS_SIM; kind++) {
    int count = tps_device_count((tps_device_kind)kind, NULL);
    for (int i = 0; i < count; i++) {
      tps_device *device;
      tps_error err;
      if (tps_device_get((tps_device_kind)kind, i, &device, &err) == 0)
        print_device(device, is_used(context, device));
      else fprintf(stderr, "%s: %s\n", options->program, err.message);
    }
  }
}

static void write_triple(host_json *json, const char *key, const int64_t *xyz) {
  host_json_open(json, key, '[');
  for (int i = 0; i < 3; i++) host_json_integer(json, NULL, xyz[i]);
  host_json_close(json, ']');
}

/* By the names that Device.properties() has. */
static void write_properties(host_json *json, const tps_device_properties *p) {
#define INTEGER(field) host_json_integer(json, #field, p->field)
#define BOOLEAN(field) host_json_boolean(json, #field, p->field)
  INTEGER(capability_major), INTEGER(capability_minor);
  INTEGER(multiprocessors), INTEGER(warp_size);
  INTEGER(max_threads_per_block), INTEGER(max_threads_per_multiprocessor);
  INTEGER(max_blocks_per_multiprocessor);
  write_triple(json, "max_block", p->max_block);
  write_triple(json, "max_grid", p->max_grid);
  INTEGER(shared_per_block), INTEGER(shared_per_block_optin);
  INTEGER(shared_per_multiprocessor);
  INTEGER(registers_per_block), INTEGER(registers_per_multiprocessor);
  INTEGER(constant_memory), INTEGER(total_memory), INTEGER(l2_cache);
  INTEGER(clock_khz), INTEGER(memory_clock_khz), INTEGER(memory_bus_bits);
  BOOLEAN(cooperative_launch), BOOLEAN(clusters), BOOLEAN(managed_memory);
  BOOLEAN(concurrent_kernels), INTEGER(async_engines);
  INTEGER(priority_least), INTEGER(priority_greatest);
  INTEGER(driver_version), INTEGER(runtime_version);
  host_json_string(json, "pci_bus_id", p->pci_bus_id);
  host_json_string(json, "uuid", p->uuid);
#undef INTEGER
#undef BOOLEAN
}

static void write_device(host_json *json, const tps_context *context,
                         tps_device_kind kind, int index) {
  tps_device *device;
  tps_error err;
  host_json_open(json, NULL, '{');
  host_json_string(json, "kind", kind == TPS_CUDA ? "cuda" : "sim");
  host_json_integer(json, "index", index);
  if (tps_device_get(kind, index, &device, &err) == 0) {
    host_json_string(json, "name", device->properties.name);
    host_json_boolean(json, "in_use", is_used(context, device));
    write_properties(json, &device->properties);
  } else {
    host_json_boolean(json, "in_use", false);
    host_json_string(json, "error", err.message);
  }
  host_json_close(json, '}');
}

void host_json_devices(host_json *json, const tps_context *context) {
  char notice[sizeof((tps_error *)0)->message + 64];
  host_json_open(json, "devices", '[');
  for (int kind = TPS_CUDA; kind <= TPS_SIM; kind++) {
    int count = tps_device_count((tps_device_kind)kind, NULL);
    for (int i = 0; i < count; i++)
      write_device(json, context, (tps_device_kind)kind, i);
  }
  host_json_close(json, ']');
  host_notice(context, notice, sizeof notice);
  host_json_string(json, "notice", notice[0] != '\0' ? notice : NULL);
}

void host_notice(const tps_context *context, char *out, size_t size) {
  char why[sizeof((tps_error *)0)->message];
  out[0] = '\0';
  if (context == NULL || context->kind != TPS_SIM) return;
  explain(why, sizeof why);
  snprintf(out, size, "the simulated device is used (%s)", why);
}

static void print_json(const tps_context *context) {
  host_json json = {0};
  host_json_open(&json, NULL, '{');
  host_json_devices(&json, context);
  host_json_close(&json, '}');
}

static void print_text(const host_options *options,
                       const tps_context *context) {
  char notice[sizeof((tps_error *)0)->message + 64];
  host_list_devices(options, context);
  host_notice(context, notice, sizeof notice);
  if (notice[0] != '\0') puts(notice);
}

bool host_print_devices(const host_options *options) {
  tps_context *context = host_open_context(options);
  if (context == NULL) return false;
  if (options->json) print_json(context);
  else print_text(options, context);
  tps_context_close(context);
  return true;
}
