/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Strings that live as long as the process: names of scripts and kernels, which
 * operation records point to after Lua has collected its own copy.
 */
#ifndef TPS_BASE_INTERN_H
#define TPS_BASE_INTERN_H

#include <stddef.h>

/* The one copy of these bytes, NUL-terminated; "" when out of memory.
 * Thread-safe. */
const char *tps_intern(const char *text, size_t size);

#endif
