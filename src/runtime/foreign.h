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
/* Tells the owner, and frees the block. */
void tps_foreign_give(tps_pinned *block);
/* The end of memory of kind FOREIGN: tells the owner now if no work can still
 * touch it, else once that is done. */
void tps_foreign_reclaim(tps_memory *memory);

#endif
