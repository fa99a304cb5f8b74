/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Memory lent to others. */
#include "runtime/lent.h"

#include <stdlib.h>

#include "runtime/parts.h"

struct tps_lent {
  tps_lent *next; /* in the list of what was returned */
  tps_memory *memory;
  tps_context *context; /* held */
};

/* Guards what contexts keep of this: all of it is rare. */
static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;

int tps_memory_lend(tps_memory *memory, tps_lent **out, tps_error *err) {
  tps_lent *lent = malloc(sizeof *lent);
  if (lent == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  lent->memory = tps_memory_ref(memory);
  lent->context = memory->context;
  tps_context_hold(memory->context);
  tps_memory_expose(memory);
  *out = lent;
  return 0;
}

/* With the lock. */
static tps_lent *take_returned(struct tps_context_parts *parts) {
  tps_lent *list = atomic_load_explicit(&parts->returned, memory_order_relaxed);
  atomic_store_explicit(&parts->returned, NULL, memory_order_relaxed);
  return list;
}

/* The last of them may free the context. */
static void let_go(tps_lent *list) {
  while (list != NULL) {
    tps_lent *lent = list;
    list = lent->next;
    tps_memory_unref(lent->memory);
    tps_context_release(lent->context);
    free(lent);
  }
}

void tps_lent_collect(tps_context *context) {
  if (atomic_load_explicit(&context->parts->returned, memory_order_relaxed) ==
      NULL)
    return;
  pthread_mutex_lock(&the_lock);
  tps_lent *list = take_returned(context->parts);
  pthread_mutex_unlock(&the_lock);
  let_go(list);
}

/* One thread at a time lets go for a context that was left, as memory and the
 * context itself are for one thread at a time; it takes along what comes in
 * meanwhile. Called with the lock, returns without; gives up a reference to the
 * context. */
static void serve(tps_context *context) {
  struct tps_context_parts *parts = context->parts;
  parts->serving = true;
  for (tps_lent *list; (list = take_returned(parts)) != NULL;) {
    pthread_mutex_unlock(&the_lock);
    let_go(list);
    pthread_mutex_lock(&the_lock);
  }
  parts->serving = false;
  bool last =
      parts->refs == 1; /* nothing is lent any more: no one else comes */
  if (!last) tps_context_release(context);
  pthread_mutex_unlock(&the_lock);
  if (last) tps_context_release(context);
}

void tps_lent_leave(tps_context *context) {
  pthread_mutex_lock(&the_lock);
  context->parts->left = true;
  serve(context);
}

void tps_memory_return(tps_lent *lent) {
  tps_context *context = lent->context;
  struct tps_context_parts *parts = context->parts;
  pthread_mutex_lock(&the_lock);
  lent->next = atomic_load_explicit(&parts->returned, memory_order_relaxed);
  atomic_store_explicit(&parts->returned, lent, memory_order_relaxed);
  if (!parts->left || parts->serving) {
    pthread_mutex_unlock(&the_lock);
    return;
  }
  tps_context_hold(context);
  serve(context);
}
