/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What devices there are, as the command tells it.
 */
#include <stdio.h>
#include <string.h>

#include "host/host.h"
#include "runtime/context.h"

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

/* The context that a script would get. NULL: there is none, said on stderr. */
static tps_context *open_context(const host_options *options) {
  tps_error err;
  tps_context *context;
  bool empty = options->device != NULL && options->device[0] == '\0';
  if (empty)
    tps_fail(&err, TPS_MISUSE, "no device is named so");
  else if (tps_context_new(options->device, &context, &err) == 0)
    return context;
  if (options->device != NULL)
    fprintf(stderr, "%s: --device %s: %s\n", options->program,
            options->device, err.message);
  else
    fprintf(stderr, "%s: %s\n", options->program, err.message);
  print_visible();
  return NULL;
}

bool host_check_device(const host_options *options) {
  if (options->device == NULL) return true;
  tps_context *context = open_context(options);
  if (context == NULL) return false;
  tps_context_close(context);
  return true;
}

/* Why there is no GPU in use, into `out`. */
static void explain(char *out, size_t size) {
  tps_error why = {0};
  if (tps_device_count(TPS_CUDA, &why) > 0)
    snprintf(out, size, "as asked for");
  else
    snprintf(out, size, "%s", why.message);
}

void host_describe_device(const host_options *options, char *out,
                          size_t size) {
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
         p->name, p->capability_major, p->capability_minor,
         p->multiprocessors, (double)p->total_memory / (1 << 30));
}

bool host_print_devices(const host_options *options) {
  char why[sizeof ((tps_error *)0)->message];
  tps_context *context = open_context(options);
  if (context == NULL) return false;
  for (int kind = TPS_CUDA; kind <= TPS_SIM; kind++) {
    int count = tps_device_count((tps_device_kind)kind, NULL);
    for (int i = 0; i < count; i++) {
      tps_device *device;
      tps_error err;
      if (tps_device_get((tps_device_kind)kind, i, &device, &err) == 0)
        print_device(device, (int)context->kind == kind &&
                                 context->initial_device == i);
      else
        fprintf(stderr, "%s: %s\n", options->program, err.message);
    }
  }
  if (context->kind == TPS_SIM) {
    explain(why, sizeof why);
    printf("the simulated device is used (%s)\n", why);
  }
  tps_context_close(context);
  return true;
}
