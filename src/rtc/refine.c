/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What a build adds to the description that PTX gives of a module: types, and the
 * expressions that instances were asked for by; and what it takes out of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rtc/parts.h"

/* Ours, the compiler's own, or a constant of the toolkit's headers. */
static bool is_hidden(const char *name, const char *plain) {
  static const char *const beginnings[] = {
      "$",     "__unnamed_", "__tpstream_sig", "cuda::",
      "cub::", "thrust::",   "nvcuda::",       "cooperative_groups::"};
  if (plain == NULL) plain = name;
  for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
    if (strncmp(plain, beginnings[i], strlen(beginnings[i])) == 0) return true;
  return false;
}

static void free_kernel(tps_kernel_desc *kernel) {
  tps_kernel_desc *one = malloc(sizeof *one);
  if (one == NULL) return;
  *one = *kernel;
  tps_image_desc_free(&(tps_image_desc){.kernels = one, .kernel_count = 1});
}

/* Takes out what a script has no business with. */
static void hide(tps_image_desc *desc) {
  size_t n = 0;
  for (size_t i = 0; i < desc->kernel_count; i++)
    if (is_hidden(desc->kernels[i].name, desc->kernels[i].plain))
      free_kernel(&desc->kernels[i]);
    else desc->kernels[n++] = desc->kernels[i];
  desc->kernel_count = n;
  n = 0;
  for (size_t i = 0; i < desc->global_count; i++)
    if (is_hidden(desc->globals[i].name, desc->globals[i].plain)) {
      free(desc->globals[i].name);
      free(desc->globals[i].plain);
    } else desc->globals[n++] = desc->globals[i];
  desc->global_count = n;
}

static int add_alias(tps_kernel_desc *kernel, const char *expression) {
  const char *have = kernel->aliases != NULL ? kernel->aliases : "";
  char *text;
  if (asprintf(&text, "%s%s\n", have, expression) < 0)
    return TPS_NO_HOST_MEMORY;
  free(kernel->aliases);
  kernel->aliases = text;
  return 0;
}

static int refine_kernel(const tps_rtc_build *b, const tps_rtc_request *r,
                         tps_kernel_desc *kernel) {
  int code = 0;
  for (size_t i = 0; i < b->typed.count && code == 0; i++) {
    const char *name = b->typed.items[i], *last = strrchr(name, ':');
    if (strcmp(last != NULL ? last + 1 : name, kernel->name) == 0)
      code = tps_signature_from_type(kernel, b->types.items[i]);
  }
  for (size_t i = 0; i < b->lowered.count && code == 0; i++)
    if (strcmp(b->lowered.items[i], kernel->name) == 0)
      code = add_alias(kernel, r->names[i]);
  return code;
}

static int refine_global(const tps_rtc_build *b, tps_global_desc *global) {
  int code = 0;
  for (size_t i = 0; i < b->typed.count && code == 0; i++)
    if (strcmp(b->typed.items[i], global->plain) == 0)
      code = tps_global_from_type(global, b->types.items[i]);
  return code;
}

int tps_rtc_refine(const tps_rtc_build *build, const tps_rtc_request *request,
                   tps_image_desc *desc) {
  int code = 0;
  hide(desc);
  for (size_t i = 0; i < desc->kernel_count && code == 0; i++)
    code = refine_kernel(build, request, &desc->kernels[i]);
  for (size_t i = 0; i < desc->global_count && code == 0; i++)
    code = refine_global(build, &desc->globals[i]);
  return code;
}
