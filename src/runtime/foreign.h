/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Memory that the program around Lua owns, as the rest of the runtime sees it.
 * While it waits for queued work it is a block on the list of the page-locked
 * ones, told from those by having no host address. */
#ifndef TPS_RUNTIME_FOREIGN_H
#define TPS_RUNTIME_FOREIGN_H

#include "runtime/parts.h"

static inline bool tps_block_foreign(const tps_pinned *block) {
  return block->host == NULL;
}
/* A block that stands for something else that waits for queued work; release is
 * called as tps_memory_adopt says. NULL when out of memory. */
tps_pinned *tps_foreign_new(tps_device *device, uint64_t bytes, void *owner,
                            void (*release)(void *owner));
/* Tells the owner, and frees the block. */
void tps_foreign_give(tps_pinned *block);
/* The end of memory of kind FOREIGN: tells the owner now if no work can still
 * touch it, else once that is done. */
void tps_foreign_reclaim(tps_memory *memory);

#endif
