/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Foreign memory: lent by the program around Lua, told back to it when nothing
 * can touch it any more. */
#include "runtime/foreign.h"

#include <stdlib.h>

typedef struct foreign {
  tps_pinned block; /* first: the lists know only this */
  void *owner;
  void (*release)(void *owner);
} foreign;

tps_pinned *tps_foreign_new(tps_device *device, uint64_t bytes, void *owner,
                            void (*release)(void *owner)) {
  foreign *f = calloc(1, sizeof *f);
  if (f == NULL) return NULL;
  f->block.device = device;
  f->block.bytes = bytes;
  f->owner = owner;
  f->release = release;
  return &f->block;
}

int tps_memory_adopt(tps_context *context, tps_device *device, uint64_t address,
                     uint64_t bytes, void *owner, void (*release)(void *owner),
                     tps_memory **out, tps_error *err) {
  tps_local *local = tps_local_get(context, device, err);
  if (local == NULL) return TPS_NO_HOST_MEMORY;
  tps_pinned *block = tps_foreign_new(device, bytes, owner, release);
  if (block == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  tps_memory *memory = tps_memory_new(local, TPS_MEMORY_FOREIGN, bytes, err);
  if (memory == NULL) {
    free(block);
    return TPS_NO_HOST_MEMORY;
  }
  memory->address = address;
  memory->escaped = true; /* its owner has the address */
  memory->parts->pinned = block;
  tps_memory_changed(memory, TPS_MEMORY_MADE);
  *out = memory;
  return 0;
}

void tps_foreign_give(tps_pinned *block) {
  foreign f = *(foreign *)block;
  free(block);
  if (f.release != NULL) f.release(f.owner);
}

static bool list_idle(const tps_stream_list *list) {
  for (tps_stream *s = list->first; s != NULL; s = s->parts->next)
    if (!tps_stream_idle(s)) return false;
  return true;
}

/* The owner may have queued work on any stream, the legacy one included, which
 * is in the list of the open ones once it was asked for. */
static bool all_idle(tps_local *local) {
  tps_stream *legacy;
  tps_error err;
  return tps_stream_default(local->context, local->device, &legacy, &err) ==
             0 &&
         list_idle(&local->open) && list_idle(&local->closed);
}

void tps_foreign_reclaim(tps_memory *memory) {
  struct tps_memory_parts *parts = memory->parts;
  if (!tps_faulted(memory->device) && all_idle(parts->local))
    tps_foreign_give(parts->pinned);
  else
    tps_pinned_retire(parts->local, parts->pinned, parts->marks, parts->count,
                      true);
  tps_memory_discard(memory);
}

static int settle(tps_local *local, tps_error *err) {
  int code = 0;
  for (tps_pinned *b = local->pending; b != NULL && code == 0; b = b->next)
    if (tps_block_foreign(b) && b->event != NULL)
      code = tps_wait(local, NULL, b->event, TPS_FOREVER, err);
  tps_reclaim_pending(local, UINT32_MAX, UINT32_MAX);
  return code;
}

int tps_memory_settle(tps_context *context, tps_error *err) {
  int code = 0;
  for (tps_local *l = context->parts->locals; l != NULL && code == 0;
       l = l->next)
    code = settle(l, err);
  return code;
}
