/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What a graph keeps alive: the memory, modules and views that its nodes use,
 * the notices of its host nodes, the events that it records. */
#include <stdlib.h>
#include <string.h>

#include "runtime/capture.h"
#include "runtime/texture.h"

int tps_keep_use(tps_keep *keep, const tps_use *use, tps_error *err) {
  tps_use *uses = tps_grow(keep->uses, keep->use_count, &keep->use_capacity,
                           sizeof *uses, err);
  if (uses == NULL) return TPS_NO_HOST_MEMORY;
  keep->uses = uses;
  keep->uses[keep->use_count++] = *use;
  tps_memory_ref(use->memory);
  if (use->view != NULL) tps_view_ref(use->view);
  return 0;
}

int tps_keep_module(tps_keep *keep, tps_module *module, tps_error *err) {
  for (uint32_t i = keep->module_count; i-- > 0;)
    if (keep->modules[i] == module) return 0;
  tps_module **modules = tps_grow(keep->modules, keep->module_count,
                                  &keep->module_capacity, sizeof *modules, err);
  if (modules == NULL) return TPS_NO_HOST_MEMORY;
  keep->modules = modules;
  keep->modules[keep->module_count++] = module;
  tps_module_lend(module);
  return 0;
}

int tps_keep_notice(tps_keep *keep, tps_context *context, tps_error *err) {
  struct tps_notice **notices =
      tps_grow(keep->notices, keep->notice_count, &keep->notice_capacity,
               sizeof *notices, err);
  if (notices == NULL) return TPS_NO_HOST_MEMORY;
  keep->notices = notices;
  struct tps_notice *notice = tps_notice_new(context, err);
  if (notice == NULL) return TPS_NO_HOST_MEMORY;
  keep->notices[keep->notice_count++] = notice;
  return 0;
}

int tps_keep_event(tps_keep *keep, tps_event *event, tps_error *err) {
  tps_event **events = tps_grow(keep->events, keep->event_count,
                                &keep->event_capacity, sizeof *events, err);
  if (events == NULL) return TPS_NO_HOST_MEMORY;
  keep->events = events;
  keep->events[keep->event_count++] = event;
  tps_event_ref(event);
  return 0;
}

int tps_keep_all(tps_keep *keep, const tps_keep *of, bool events,
                 tps_error *err) {
  int code = 0;
  for (uint32_t i = 0; events && i < of->event_count && code == 0; i++)
    code = tps_keep_event(keep, of->events[i], err);
  for (uint32_t i = 0; i < of->use_count && code == 0; i++)
    code = tps_keep_use(keep, &of->uses[i], err);
  for (uint32_t i = 0; i < of->module_count && code == 0; i++)
    code = tps_keep_module(keep, of->modules[i], err);
  return code;
}

void tps_keep_cut(tps_keep *keep, uint32_t notices, uint32_t events) {
  while (keep->notice_count > notices)
    tps_notice_unref(keep->notices[--keep->notice_count]);
  while (keep->event_count > events)
    tps_event_free(keep->events[--keep->event_count]);
}

static void drop_use(const tps_use *use) {
  if (use->view != NULL) tps_view_close(use->view);
  tps_memory_unref(use->memory);
}

static int by_memory(const void *a, const void *b) {
  const tps_use *x = a, *y = b;
  if (x->memory->id != y->memory->id)
    return x->memory->id < y->memory->id ? -1 : 1;
  uintptr_t v = (uintptr_t)x->view, w = (uintptr_t)y->view;
  return (v > w) - (v < w);
}

/* *to covers both. */
static void widen(tps_use *to, const tps_use *other) {
  uint64_t a = to->first + to->bytes, b = other->first + other->bytes;
  if (other->first < to->first) to->first = other->first;
  to->bytes = (a > b ? a : b) - to->first;
  to->access = tps_access_join(to->access, other->access);
}

void tps_keep_merge(tps_keep *keep) {
  uint32_t kept = 0;
  if (keep->use_count > 1)
    qsort(keep->uses, keep->use_count, sizeof *keep->uses, by_memory);
  for (uint32_t i = 0; i < keep->use_count; i++) {
    tps_use use = keep->uses[i];
    if (kept > 0 && by_memory(&keep->uses[kept - 1], &use) == 0) {
      widen(&keep->uses[kept - 1], &use);
      drop_use(&use);
    } else {
      keep->uses[kept++] = use;
    }
  }
  keep->use_count = kept;
}

void tps_keep_free(tps_keep *keep) {
  for (uint32_t i = 0; i < keep->use_count; i++) drop_use(&keep->uses[i]);
  for (uint32_t i = 0; i < keep->module_count; i++)
    tps_module_give_back(keep->modules[i]);
  tps_keep_cut(keep, 0, 0);
  free(keep->uses);
  free(keep->modules);
  free(keep->notices);
  free(keep->events);
  memset(keep, 0, sizeof *keep);
}
