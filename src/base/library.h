/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Shared libraries that are opened while the program runs, by dlopen. */
#ifndef TPS_BASE_LIBRARY_H
#define TPS_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Puts the function of that name into the pointer to a function at `slot`; NULL
 * and false if the library has none. */
bool tps_library_bind(void *library, const char *name, void *slot);

/* Where the loader has found it; leaves *out as it is if it does not tell. */
void tps_library_path(void *library, char *out, size_t size);

#endif
