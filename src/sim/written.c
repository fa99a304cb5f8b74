/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 */
#include "sim/written.h"

#include <stdatomic.h>
#include <stdlib.h>

struct tps_sim_written {
  uint64_t bytes;
  unsigned missed; /* as it was when this began */
  _Atomic uint64_t words[];
};

static atomic_uint alive; /* of them all */
static atomic_uint missed;

tps_sim_written *tps_sim_written_new(uint64_t bytes) {
  uint64_t words = (bytes + 63) / 64;
  tps_sim_written *w =
      calloc(1, sizeof *w + (size_t)words * sizeof w->words[0]);
  if (w == NULL) return NULL;
  w->bytes = bytes;
  atomic_fetch_add(&alive, 1);
  w->missed = atomic_load(&missed);
  return w;
}

void tps_sim_written_free(tps_sim_written *w) {
  if (w != NULL) atomic_fetch_sub(&alive, 1);
  free(w);
}

void tps_sim_written_miss(void) {
  if (atomic_load(&alive) > 0) atomic_fetch_add(&missed, 1);
}

/* Bits [first, end) of one word. */
static uint64_t mask_of(uint64_t first, uint64_t end) {
  uint64_t count = end - first;
  uint64_t bits = count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
  return bits << first % 64;
}

static uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* The end of the range's part that lies in the word of `at`. */
static uint64_t word_end(uint64_t at, uint64_t end) {
  return min(end, (at / 64 + 1) * 64);
}

static uint64_t end_of(const tps_sim_written *w, uint64_t first,
                       uint64_t bytes) {
  return first >= w->bytes ? first : first + min(bytes, w->bytes - first);
}

static uint64_t get(const tps_sim_written *w, uint64_t word) {
  return atomic_load_explicit(&w->words[word], memory_order_relaxed);
}

/* Most that is written has been written before, which a load tells. */
static void put(tps_sim_written *w, uint64_t word, uint64_t mask) {
  if ((~get(w, word) & mask) != 0)
    atomic_fetch_or_explicit(&w->words[word], mask, memory_order_relaxed);
}

void tps_sim_written_set(tps_sim_written *w, uint64_t first, uint64_t bytes) {
  if (w == NULL) return;
  uint64_t end = end_of(w, first, bytes);
  for (uint64_t at = first; at < end;) {
    uint64_t next = word_end(at, end);
    put(w, at / 64, mask_of(at, next));
    at = next;
  }
}

void tps_sim_written_clear(tps_sim_written *w, uint64_t first, uint64_t bytes) {
  if (w == NULL) return;
  uint64_t end = end_of(w, first, bytes);
  for (uint64_t at = first; at < end;) {
    uint64_t next = word_end(at, end);
    atomic_fetch_and_explicit(&w->words[at / 64], ~mask_of(at, next),
                              memory_order_relaxed);
    at = next;
  }
}

static bool is_blind(const tps_sim_written *w) {
  return w == NULL ||
         w->missed != atomic_load_explicit(&missed, memory_order_relaxed);
}

bool tps_sim_written_none(const tps_sim_written *w, uint64_t first,
                          uint64_t bytes) {
  if (is_blind(w)) return false;
  uint64_t end = end_of(w, first, bytes), some = 0;
  for (uint64_t at = first; at < end && some == 0;) {
    uint64_t next = word_end(at, end);
    some = get(w, at / 64) & mask_of(at, next);
    at = next;
  }
  return some == 0 && end > first;
}

bool tps_sim_written_all(const tps_sim_written *w, uint64_t first,
                         uint64_t bytes) {
  if (is_blind(w)) return true;
  uint64_t end = end_of(w, first, bytes), missing = 0;
  for (uint64_t at = first; at < end && missing == 0;) {
    uint64_t next = word_end(at, end);
    missing = ~get(w, at / 64) & mask_of(at, next);
    at = next;
  }
  return missing == 0;
}

/* Up to 64 bits from `at` on. */
static uint64_t bits_at(const tps_sim_written *w, uint64_t at) {
  uint64_t word = at / 64, shift = at % 64, last = (w->bytes - 1) / 64;
  uint64_t bits = get(w, word) >> shift;
  if (shift != 0 && word < last) bits |= get(w, word + 1) << (64 - shift);
  return bits;
}

static void assign(tps_sim_written *w, uint64_t word, uint64_t mask,
                   uint64_t bits) {
  if (mask == UINT64_MAX) {
    atomic_store_explicit(&w->words[word], bits, memory_order_relaxed);
    return;
  }
  put(w, word, mask & bits);
  if ((get(w, word) & mask & ~bits) != 0)
    atomic_fetch_and_explicit(&w->words[word], ~mask | bits,
                              memory_order_relaxed);
}

void tps_sim_written_copy(tps_sim_written *to, uint64_t to_first,
                          const tps_sim_written *from, uint64_t from_first,
                          uint64_t bytes) {
  if (to == NULL) return;
  if (is_blind(from)) {
    tps_sim_written_set(to, to_first, bytes);
    return;
  }
  uint64_t end = end_of(to, to_first, bytes);
  for (uint64_t at = to_first; at < end;) {
    uint64_t next = word_end(at, end), source = from_first + (at - to_first);
    uint64_t bits = source < from->bytes ? bits_at(from, source) : 0;
    assign(to, at / 64, mask_of(at, next), bits << at % 64);
    at = next;
  }
}
