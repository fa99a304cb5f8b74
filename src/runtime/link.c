/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A module linked of others: its PTX is theirs made one, which describes it and is
 * what the simulated device runs; a GPU gets a binary, made for its architecture
 * when the module is first used there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/link.h"
#include "runtime/parts.h"

typedef struct binary {
  struct binary *next;
  int major, minor; /* of the device */
  char *bytes;
  size_t size;
} binary;

typedef struct linked {
  tps_module **modules; /* each with a reference */
  tps_ptx_input *inputs;
  char (*names)[32];
  size_t count;
  char *ptx;
  tps_linker *link;
  binary *binaries;
} linked;

static int no_memory(tps_error *err) {
  return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
}

static void free_linked(void *data) {
  linked *l = data;
  while (l->binaries != NULL) {
    binary *next = l->binaries->next;
    free(l->binaries->bytes);
    free(l->binaries);
    l->binaries = next;
  }
  for (size_t i = 0; i < l->count; i++) tps_module_unref(l->modules[i]);
  free((void *)l->modules);
  free(l->inputs);
  free(l->names);
  free(l->ptx);
  free(l);
}

static int make_binary(linked *l, const tps_device *device, binary **out,
                       tps_error *err) {
  binary *b = calloc(1, sizeof *b);
  if (b == NULL) return no_memory(err);
  b->major = device->properties.capability_major;
  b->minor = device->properties.capability_minor;
  int code = l->link(l->inputs, l->count, device, &b->bytes, &b->size, err);
  if (code != 0) {
    free(b);
    return code;
  }
  b->next = l->binaries;
  l->binaries = b;
  *out = b;
  return 0;
}

static int linked_image(void *data, tps_device *device, tps_image_kind *kind,
                        const void **bytes, size_t *size, tps_error *err) {
  linked *l = data;
  *kind = TPS_IMAGE_PTX;
  *bytes = l->ptx;
  *size = strlen(l->ptx);
  if (device->kind == TPS_SIM) return 0;
  binary *b = l->binaries;
  while (b != NULL && (b->major != device->properties.capability_major ||
                       b->minor != device->properties.capability_minor))
    b = b->next;
  if (b == NULL) {
    int code = make_binary(l, device, &b, err);
    if (b == NULL) return code;
  }
  *kind = TPS_IMAGE_BINARY;
  *bytes = b->bytes;
  *size = b->size;
  return 0;
}

static const char *linked_ptx(void *data, size_t *size) {
  const linked *l = data;
  *size = strlen(l->ptx);
  return l->ptx;
}

/* Each knows of its own kernels and variables. */
static int linked_refine(void *data, tps_image_desc *desc) {
  const linked *l = data;
  int code = 0;
  for (size_t i = 0; i < l->count && code == 0; i++)
    code = tps_module_refine(l->modules[i], desc);
  return code;
}

/* Refuses what can't be linked, and takes a reference of each of the others. */
static int take_modules(linked *l, tps_module *const *modules, size_t count,
                        tps_error *err) {
  for (size_t i = 0; i < count; i++) {
    size_t size;
    if (modules[i]->closed)
      return tps_fail(err, TPS_MISUSE, "attempt to use a closed module");
    if (!modules[i]->unlinked)
      return tps_fail(err, TPS_MISUSE,
                      "module %zu was not compiled to be linked "
                      "(relocatable=true)",
                      i + 1);
    snprintf(l->names[i], sizeof l->names[i], "module %zu", i + 1);
    l->inputs[i].name = l->names[i];
    l->inputs[i].text = tps_module_ptx(modules[i], &size);
    l->modules[i] = tps_module_ref(modules[i]);
    l->count = i + 1;
  }
  return 0;
}

int tps_module_link(tps_context *context, tps_device *device,
                    tps_module *const *modules, size_t count, tps_linker *link,
                    tps_module **out, tps_error *err) {
  linked *l = calloc(1, sizeof *l);
  if (l == NULL) return no_memory(err);
  l->link = link;
  l->modules = calloc(count + 1, sizeof *l->modules);
  l->inputs = calloc(count + 1, sizeof *l->inputs);
  l->names = calloc(count + 1, sizeof *l->names);
  int code = l->modules == NULL || l->inputs == NULL || l->names == NULL
                 ? no_memory(err)
                 : take_modules(l, modules, count, err);
  if (code == 0) code = tps_ptx_link(l->inputs, l->count, &l->ptx, err);
  if (code != 0) {
    free_linked(l);
    return code;
  }
  tps_image_source source = {.data = l,
                             .image = linked_image,
                             .ptx = linked_ptx,
                             .refine = linked_refine,
                             .release = free_linked};
  return tps_module_new(context, device, &source, out, err);
}
