/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Giving up rights. Two fences, one behind the other: the C library's functions
 * as the compiler sees them (files.c), on every system, and the kernel's
 * (kernel.c), where it has the means. */
#ifndef TPS_COMPILER_FENCE_H
#define TPS_COMPILER_FENCE_H

#include "rtc/parts.h"

/* From now on the compiler finds no file but those below the roots (real paths,
 * which stay the caller's), writes none and starts no program. */
void tps_fence_files(const tps_strings *roots);

/* The same by Landlock and seccomp, for whoever gets around that. What this kernel
 * does not have is left out. */
void tps_fence_kernel(const tps_strings *roots);

#endif
