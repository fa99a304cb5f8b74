/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Memory lent to others, who give it back from any thread and at any time, even
 * when the Lua state it came from is long closed (DLPack's deleters do). A context
 * takes back what was returned whenever it allocates or waits; once it is closed,
 * whoever returns the memory also frees it. */
#ifndef TPS_RUNTIME_LENT_H
#define TPS_RUNTIME_LENT_H

#include "runtime/memory.h"

typedef struct tps_lent tps_lent;

/* Keeps the memory until it is returned. Its address is out then: as after
 * tps_memory_expose. */
int tps_memory_lend(tps_memory *memory, tps_lent **out, tps_error *err);
/* From any thread, exactly once; waits for nothing. */
void tps_memory_return(tps_lent *lent);

/* For the context's thread: what was returned is let go. */
void tps_lent_collect(tps_context *context);
/* The context's thread gives up its reference and will not come again. */
void tps_lent_leave(tps_context *context);

#endif
