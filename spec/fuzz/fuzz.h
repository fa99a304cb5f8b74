/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the fuzz targets offer: to libFuzzer, when built with TPS_LIBFUZZER (see
 * bench/fuzz.md), and to spec/c/fuzz_test.c, which replays their corpora and
 * runs short seeded campaigns with any compiler.
 */
#ifndef TPS_SPEC_FUZZ_H
#define TPS_SPEC_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Any bytes through the PTX reader, and what it accepts through the engine's
 * decoder. True when it was accepted by both. */
bool tps_fuzz_reader(const uint8_t *data, size_t size);

/* The same, then each kernel for a bounded number of instructions. True when a
 * kernel has run. */
bool tps_fuzz_runner(const uint8_t *data, size_t size);

/* Changes a text as one would change a program, of at most `room` bytes, in
 * place; the new size. The same seed makes the same change. */
size_t tps_fuzz_mutate(uint8_t *data, size_t size, size_t room, unsigned seed);

#endif
