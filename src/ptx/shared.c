/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Modules that are in use, so that a text is read once however many devices
 * load it: a module never changes after it was read.
 */
#include <pthread.h>
#include <string.h>

#include "ptx/owner.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tps_ptx_owner *first; /* of all shared ones */

static tps_ptx_owner *find(const char *text, size_t size) {
  for (tps_ptx_owner *o = first; o != NULL; o = o->next)
    if (o->module.text_size == size && memcmp(o->module.text, text, size) == 0)
      return o;
  return NULL;
}

static tps_ptx_module *take(const char *text, size_t size) {
  pthread_mutex_lock(&lock);
  tps_ptx_owner *o = find(text, size);
  if (o != NULL) o->users++;
  pthread_mutex_unlock(&lock);
  return o != NULL ? &o->module : NULL;
}

int tps_ptx_parse_shared(const char *text, size_t size, tps_ptx_module **out,
                         tps_error *err) {
  while (size > 0 && text[size - 1] == '\0') size--;
  *out = take(text, size);
  if (*out != NULL) return 0;
  int code = tps_ptx_parse(text, size, out, err);
  if (code != 0) return code;
  tps_ptx_owner *o = (tps_ptx_owner *)*out;
  pthread_mutex_lock(&lock);
  o->users = 1;
  o->next = first;
  first = o;
  pthread_mutex_unlock(&lock);
  return 0;
}

/* Takes the module out of the list with its last user. */
static bool release(tps_ptx_owner *o) {
  pthread_mutex_lock(&lock);
  bool last = o->users <= 1;
  if (!last) {
    o->users--;
  } else if (o->users == 1) {
    tps_ptx_owner **at = &first;
    while (*at != o) at = &(*at)->next;
    *at = o->next;
  }
  pthread_mutex_unlock(&lock);
  return last;
}

void tps_ptx_free(tps_ptx_module *module) {
  if (module == NULL || !release((tps_ptx_owner *)module)) return;
  arena memory = ((tps_ptx_owner *)module)->memory;
  tps_arena_free(&memory);
}
