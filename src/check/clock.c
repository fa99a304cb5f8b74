/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Trees of which equal parts are one. Where of two nodes the one covers the other,
 * their join is that one itself, not a copy: so the clocks of streams that have
 * waited for the same come to be the same. */
#include "check/clock.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH TPS_CLOCK_WIDTH

/* ---- nodes --------------------------------------------------------------- */

static tps_clock *new_node(uint32_t shift) {
  tps_clock *node = calloc(1, sizeof *node);
  if (node == NULL) return NULL;
  node->refs = 1;
  node->shift = shift;
  return node;
}

void tps_clock_unref(tps_clock *clock) {
  if (clock == NULL || --clock->refs > 0) return;
  for (uint32_t i = 0; i < WIDTH && clock->shift > 0; i++)
    tps_clock_unref(clock->u.parts[i]);
  free(clock);
}

/* Part `i` of the node, seen as one with that shift, which is not smaller than
 * its own. */
static tps_clock *part_of(const tps_clock *node, uint32_t shift, uint32_t i) {
  if (node == NULL) return NULL;
  if (node->shift == shift) return node->u.parts[i];
  return i == 0 ? (tps_clock *)node : NULL;
}

static uint32_t wider(const tps_clock *a, const tps_clock *b) {
  return a->shift > b->shift ? a->shift : b->shift;
}

/* ---- one lane ------------------------------------------------------------ */

/* The shift of the smallest node with that lane. */
static uint32_t shift_for(uint32_t lane) {
  uint32_t shift = 0;
  while (lane >> shift >= WIDTH) shift += TPS_CLOCK_BITS;
  return shift;
}

/* The node, if the reference *at is the only one; else a copy in its place. NULL: no
 * memory. */
static tps_clock *own(tps_clock **at) {
  tps_clock *node = *at, *copy;
  if (node->refs == 1) return node;
  copy = new_node(node->shift);
  if (copy == NULL) return NULL;
  copy->u = node->u;
  for (uint32_t i = 0; i < WIDTH && node->shift > 0; i++)
    tps_clock_ref(node->u.parts[i]);
  node->refs--;
  return *at = copy;
}

/* Puts a wider node above *at. */
static bool widen(tps_clock **at, uint32_t shift) {
  tps_clock *node = new_node(shift);
  if (node == NULL) return false;
  node->u.parts[0] = *at;
  *at = node;
  return true;
}

/* Where the number of the lane is, in nodes that belong to *clock alone. NULL: no
 * memory. */
static uint64_t *number_of(tps_clock **clock, uint32_t lane) {
  tps_clock **at = clock;
  for (;;) {
    uint32_t shift = shift_for(lane);
    if (*at == NULL) *at = new_node(shift);
    else if ((*at)->shift < shift && !widen(at, shift)) return NULL;
    tps_clock *node = *at == NULL ? NULL : own(at);
    if (node == NULL) return NULL;
    if (node->shift == 0) return &node->u.upto[lane];
    uint32_t part = lane >> node->shift;
    lane -= part << node->shift;
    at = &node->u.parts[part];
  }
}

/* ---- two clocks ---------------------------------------------------------- */

static bool leaf_has(const tps_clock *a, const tps_clock *b) {
  for (uint32_t i = 0; i < WIDTH; i++)
    if (a->u.upto[i] < b->u.upto[i]) return false;
  return true;
}

static tps_clock *join_leaves(tps_clock *a, tps_clock *b, bool mine) {
  if (leaf_has(a, b)) return tps_clock_ref(a);
  if (leaf_has(b, a)) return tps_clock_ref(b);
  tps_clock *sum = mine ? tps_clock_ref(a) : new_node(0);
  for (uint32_t i = 0; i < WIDTH && sum != NULL; i++)
    sum->u.upto[i] = a->u.upto[i] > b->u.upto[i] ? a->u.upto[i] : b->u.upto[i];
  return sum;
}

static bool has_parts(const tps_clock *node, uint32_t shift,
                      tps_clock *const *parts) {
  return node->shift == shift &&
         memcmp(node->u.parts, parts, sizeof node->u.parts) == 0;
}

/* A node with these parts, references that it takes: one of `a` and `b`, if those
 * are theirs. */
static tps_clock *node_of(uint32_t shift, tps_clock **parts, tps_clock *a,
                          tps_clock *b) {
  tps_clock *same = has_parts(a, shift, parts)   ? a
                    : has_parts(b, shift, parts) ? b
                                                 : NULL;
  tps_clock *node = same != NULL ? tps_clock_ref(same) : new_node(shift);
  for (uint32_t i = 0; i < WIDTH; i++) {
    if (node == NULL || same != NULL) tps_clock_unref(parts[i]);
    else node->u.parts[i] = parts[i];
  }
  return node;
}

/* A reference to what covers both; NULL: no memory, or both are NULL. `mine`: what
 * only the caller refers to in `a` may change. */
static tps_clock *join(tps_clock *a, tps_clock *b, bool mine) {
  if (b == NULL || a == b) return tps_clock_ref(a);
  if (a == NULL) return tps_clock_ref(b);
  tps_clock *parts[WIDTH] = {0};
  uint32_t shift = wider(a, b);
  mine = mine && a->refs == 1;
  if (shift == 0) return join_leaves(a, b, mine);
  for (uint32_t i = 0; i < WIDTH; i++) {
    tps_clock *of_a = part_of(a, shift, i), *of_b = part_of(b, shift, i);
    parts[i] = join(of_a, of_b, mine);
    if (parts[i] != NULL || (of_a == NULL && of_b == NULL)) continue;
    while (i-- > 0) tps_clock_unref(parts[i]);
    return NULL;
  }
  return node_of(shift, parts, a, b);
}

bool tps_clock_join(tps_clock **clock, const tps_point *point) {
  if (point->seq > 0 && tps_clock_covers(*clock, point->lane, point->seq))
    return true;
  if (point->clock != NULL && point->clock != *clock) {
    tps_clock *sum = join(*clock, point->clock, true);
    if (sum == NULL) return false;
    tps_clock_unref(*clock);
    *clock = sum;
  }
  if (point->seq == 0) return true;
  uint64_t *number = number_of(clock, point->lane);
  if (number != NULL) *number = point->seq;
  return number != NULL;
}
