/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors */
#include "base/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

/* ISO C has no conversion from dlsym's pointer to one of a function. */
bool tps_library_bind(void *library, const char *name, void *slot) {
  void *function = dlsym(library, name);
  memcpy(slot, &function, sizeof function);
  return function != NULL;
}

void tps_library_path(void *library, char *out, size_t size) {
  struct link_map *map;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0)
    snprintf(out, size, "%s", map->l_name);
}
