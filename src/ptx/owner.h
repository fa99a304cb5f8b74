/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A module with its memory: it lives at the begin of its own arena's first
 * chunk.
 */
#ifndef TPS_PTX_OWNER_H
#define TPS_PTX_OWNER_H

#include "ptx/arena.h"
#include "ptx/ptx.h"

typedef struct tps_ptx_owner {
  tps_ptx_module module;
  arena memory;
  unsigned users; /* 0: not shared (shared.c) */
  struct tps_ptx_owner *next;
} tps_ptx_owner;

#endif
