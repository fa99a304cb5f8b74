/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Kernels: found by name, looked up on each device at the first use there. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "ptx/fields.h"
#include "runtime/parts.h"

#define LONGEST 96u /* bytes of a name that count for its distance */
#define LISTED 24u

/* ---- names --------------------------------------------------------------- */

/* Edits that make one name of the other. */
static unsigned distance(const char *a, const char *b) {
  unsigned row[LONGEST + 1];
  size_t m = strnlen(a, LONGEST), n = strnlen(b, LONGEST);
  for (size_t j = 0; j <= n; j++) row[j] = (unsigned)j;
  for (size_t i = 1; i <= m; i++) {
    unsigned corner = row[0];
    row[0] = (unsigned)i;
    for (size_t j = 1; j <= n; j++) {
      unsigned change = corner + (a[i - 1] != b[j - 1]);
      unsigned other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
      corner = row[j];
      row[j] = change < other ? change : other;
    }
  }
  return row[n];
}

/* Moves the nearest of names[from ..] to names[from]. */
static void nearest_first(const char **names, size_t count, size_t from,
                          const char *name) {
  size_t best = from;
  unsigned least = distance(name, names[from]);
  for (size_t i = from + 1; i < count; i++) {
    unsigned d = distance(name, names[i]);
    if (d >= least) continue;
    least = d;
    best = i;
  }
  const char *found = names[best];
  memmove(&names[from + 1], &names[from], (best - from) * sizeof *names);
  names[from] = found;
}

void tps_list_nearest(const char *const *names, size_t count, const char *name,
                      char *buffer, size_t size) {
  const char **order = malloc((count + 1) * sizeof *order);
  size_t used = 0, i;
  buffer[0] = '\0';
  if (order == NULL) {
    snprintf(buffer, size, "%zu, no memory to list them", count);
    return;
  }
  memcpy(order, names, count * sizeof *order);
  for (i = 0; i < count && i < LISTED; i++) {
    nearest_first(order, count, i, name);
    if (used + strlen(order[i]) + 32 > size) break;
    used += (size_t)snprintf(buffer + used, size - used, "%s'%s'",
                             i == 0 ? "" : ", ", order[i]);
  }
  if (i < count)
    snprintf(buffer + used, size - used, "%s%zu %s", i == 0 ? "" : " and ",
             count - i, i == 0 ? "with long names" : "more");
  free(order);
}

/* Equal but for blanks. */
static bool same_text(const char *a, const char *b) {
  for (;;) {
    while (isspace((unsigned char)*a)) a++;
    while (isspace((unsigned char)*b)) b++;
    if (*a != *b) return false;
    if (*a == '\0') return true;
    a++, b++;
  }
}

/* The end of a qualified name at a "::" outside of <> and (), or NULL. */
static const char *after_qualifier(const char *plain) {
  int depth = 0;
  for (; *plain != '\0'; plain++) {
    if (*plain == '<' || *plain == '(') depth++;
    if (*plain == '>' || *plain == ')') depth--;
    if (depth == 0 && plain[0] == ':' && plain[1] == ':') return plain + 2;
  }
  return NULL;
}

bool tps_same_name(const char *plain, const char *name) {
  if (strncmp(name, "::", 2) == 0) return same_text(plain, name + 2);
  for (; plain != NULL; plain = after_qualifier(plain))
    if (same_text(plain, name)) return true;
  return false;
}

const char *tps_kernel_listed_name(const tps_image_desc *desc, size_t i) {
  const tps_kernel_desc *k = &desc->kernels[i];
  for (size_t j = 0; j < desc->kernel_count; j++)
    if (j != i && strcmp(desc->kernels[j].plain, k->plain) == 0)
      return k->signature;
  return k->plain;
}

const char *tps_shown_name(const char *name, char shown[SHOWN_NAME]) {
  size_t n = 0;
  for (; n < SHOWN_NAME - 4 && name[n] != '\0'; n++)
    shown[n] = (char)(iscntrl((unsigned char)name[n]) ? '?' : name[n]);
  strcpy(shown + n, name[n] != '\0' ? "..." : "");
  return shown;
}

static int not_found(const tps_module *module, const char *name, bool ambiguous,
                     tps_error *err) {
  const tps_image_desc *desc = &module->desc;
  char shown[SHOWN_NAME];
  tps_shown_name(name, shown);
  if (desc->kernel_count == 0)
    return tps_fail(err, TPS_NOT_FOUND, "no kernel '%s': the module has none",
                    shown);
  const char **names = malloc(desc->kernel_count * sizeof *names);
  if (names == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  char list[1500];
  size_t count = 0;
  for (size_t i = 0; i < desc->kernel_count; i++) {
    const tps_kernel_desc *k = &desc->kernels[i];
    if (!ambiguous) names[count++] = tps_kernel_listed_name(desc, i);
    else if (tps_same_name(k->plain, name)) names[count++] = k->signature;
  }
  tps_list_nearest(names, count, name, list, sizeof list);
  free(names);
  return tps_fail(err, TPS_NOT_FOUND,
                  ambiguous ? "several kernels '%s': ask for one of %s"
                            : "no kernel '%s' in the module (it has %s)",
                  shown, list);
}

/* ---- finding ------------------------------------------------------------- */

/* What is so called in full: a symbol, a signature, an instance of a template
 * or the expression that it was asked for by. */
static const tps_kernel_desc *exact(const tps_image_desc *desc,
                                    const char *name) {
  for (size_t i = 0; i < desc->kernel_count; i++)
    if (strcmp(desc->kernels[i].name, name) == 0) return &desc->kernels[i];
  for (size_t i = 0; i < desc->kernel_count; i++)
    if (same_text(desc->kernels[i].signature, name)) return &desc->kernels[i];
  for (size_t i = 0; i < desc->kernel_count; i++)
    if (!same_text(desc->kernels[i].plain, name) &&
        tps_kernel_has_name(&desc->kernels[i], name))
      return &desc->kernels[i];
  return NULL;
}

/* By plain name as `same` tells; the number of those there are. */
static size_t by_plain(const tps_image_desc *desc, const char *name,
                       bool (*same)(const char *, const char *),
                       const tps_kernel_desc **out) {
  size_t matches = 0;
  for (size_t i = 0; i < desc->kernel_count; i++) {
    if (!same(desc->kernels[i].plain, name)) continue;
    *out = &desc->kernels[i];
    matches++;
  }
  return matches;
}

static int search(const tps_module *module, const char *name,
                  const tps_kernel_desc **out, tps_error *err) {
  const tps_image_desc *desc = &module->desc;
  *out = exact(desc, name);
  if (*out != NULL) return 0;
  size_t matches = by_plain(desc, name, same_text, out);
  if (matches == 0) matches = by_plain(desc, name, tps_same_name, out);
  return matches == 1 ? 0 : not_found(module, name, matches > 1, err);
}

/* The parameter block, and the place of each parameter in it. */
static bool make_block(tps_kernel *kernel) {
  const tps_kernel_desc *desc = kernel->desc;
  size_t bytes = (desc->param_bytes + 31u) / 16 * 16;
  kernel->block = aligned_alloc(16, bytes);
  kernel->argv = calloc(desc->param_count + 1, sizeof *kernel->argv);
  if (kernel->block == NULL || kernel->argv == NULL) return false;
  memset(kernel->block, 0, bytes);
  for (uint32_t i = 0; i < desc->param_count; i++)
    kernel->argv[i] = kernel->block + desc->params[i].offset;
  return true;
}

int tps_kernel_find(tps_module *module, const char *name, tps_kernel **out,
                    tps_error *err) {
  const tps_kernel_desc *desc;
  if (module->closed)
    return tps_fail(err, TPS_MISUSE, "attempt to use a closed module");
  if (module->unlinked)
    return tps_fail(err, TPS_MISUSE,
                    "the module is relocatable: its kernels can run once it "
                    "is linked (tp.link)");
  int code = search(module, name, &desc, err);
  if (code != 0) return code;
  tps_kernel *kernel = calloc(1, sizeof *kernel);
  if (kernel == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  kernel->module = tps_module_ref(module);
  kernel->desc = desc;
  kernel->name = tps_intern(desc->plain, strlen(desc->plain));
  kernel->parts = calloc(1, sizeof *kernel->parts);
  if (!make_block(kernel) || kernel->parts == NULL) {
    tps_kernel_free(kernel);
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  }
  *out = kernel;
  return 0;
}

void tps_kernel_free(tps_kernel *kernel) {
  if (kernel == NULL) return;
  while (kernel->parts != NULL && kernel->parts->on != NULL) {
    tps_kernel_on *on = kernel->parts->on;
    kernel->parts->on = on->next;
    free(on);
  }
  free(kernel->parts);
  free(kernel->block);
  free(kernel->argv);
  tps_module_unref(kernel->module);
  free(kernel);
}

tps_field *tps_kernel_fields(tps_kernel *kernel, uint32_t param,
                             size_t *count) {
  tps_error err;
  size_t size;
  const char *ptx = tps_module_ptx(kernel->module, &size);
  tps_ptx_module *parsed;
  *count = 0;
  if (ptx == NULL || tps_ptx_parse_shared(ptx, size, &parsed, &err) != 0)
    return NULL;
  tps_field *fields = tps_ptx_fields(parsed, kernel->desc->name, param, count);
  tps_ptx_free(parsed);
  return fields;
}

/* ---- on a device --------------------------------------------------------- */

static int look_up(tps_kernel *kernel, tps_device *device, tps_kernel_on *on,
                   tps_error *err) {
  tps_device_module *module;
  const tps_device_face *face = device->face;
  int code = tps_module_on(kernel->module, device, &module, err);
  if (code != 0) return code;
  code =
      face->kernel_find(device, module, kernel->desc->name, &on->handle, err);
  if (code == 0)
    code = face->kernel_attributes(device, on->handle, &on->attributes, err);
  return code != 0 ? tps_failed(device, NULL, code, err) : 0;
}

int tps_kernel_get(tps_kernel *kernel, tps_device *device, tps_kernel_on **out,
                   tps_error *err) {
  if (kernel->closed || kernel->module->closed)
    return tps_fail(err, TPS_MISUSE, "attempt to use a closed kernel");
  int code = tps_device_fault(device, err);
  if (code != 0) return code;
  tps_kernel_on *on = kernel->parts->on;
  while (on != NULL && on->device != device) on = on->next;
  if (on == NULL) {
    on = calloc(1, sizeof *on);
    if (on == NULL)
      return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
    on->device = device;
    code = look_up(kernel, device, on, err);
    if (code != 0) {
      free(on);
      return code;
    }
    on->next = kernel->parts->on;
    kernel->parts->on = on;
  }
  *out = on;
  return 0;
}

int tps_kernel_attributes_of(tps_kernel *kernel, tps_device *device,
                             tps_kernel_attributes *out, tps_error *err) {
  tps_kernel_on *on = NULL;
  int code = tps_kernel_get(kernel, device, &on, err);
  if (on != NULL) *out = on->attributes;
  return code;
}
