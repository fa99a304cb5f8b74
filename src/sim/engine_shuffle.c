/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * shfl where all lanes that it names are here, which is the common case:
 * anything else goes to engine_exchange.c. Built once for each processor
 * level.
 *
 * Operands: a value, b a lane or a distance, c segments and clamp, the second
 * result e, members f; imm: 0 idx, 1 up, 2 down, 3 bfly.
 */
#include "sim/engine_lanes.h"

#define NO_OPERAND UINT32_MAX

/* Whether the lanes of the mask have one member mask, and all of it is here. */
static bool all_here(engine *e, const insn *i, uint32_t mask) {
  if (i->f == NO_OPERAND) return true;
  const uint32_t *members = ROW(const uint32_t, i->f);
  uint32_t member = members[__builtin_ctz(mask)], other = 0;
  for (unsigned l = 0; l < LANES; l++)
    other |= ON(mask, l) ? members[l] ^ member : 0;
  return other == 0 && (member & e->warp->live & ~mask) == 0;
}

/* The lane that each lane reads, and whether that is within its segment. */
#define SOURCES(lane, inside)                                                  \
  for (int l = 0; l < (int)LANES; l++) {                                       \
    int by = (int)(b[l] & 31), clamp = (int)(c[l] & 31);                       \
    int segment = (int)(c[l] >> 8 & 31);                                       \
    int least = l & segment, most = least | (clamp & ~segment);                \
    int j = (lane);                                                            \
    bool in = (inside);                                                        \
    (void)least;                                                               \
    from[l] = (uint32_t)(in ? j & 31 : l);                                     \
    within[l] = in ? FULL : 0;                                                 \
  }                                                                            \
  break

static uint32_t sources(const uint32_t *b, const uint32_t *c, int64_t mode,
                        uint32_t *from) {
  _Alignas(64) uint32_t within[LANES];
  switch (mode & 3) {
  case 0: SOURCES(least | (by & ~segment), j <= most);
  case 1: SOURCES(l - by, j >= most);
  case 2: SOURCES(l + by, j <= most);
  default: SOURCES(l ^ by, j <= most);
  }
  return mask_of_words(within);
}

static void permute(uint32_t *to, const uint32_t *value, const uint32_t *from) {
#if defined(__AVX512F__)
  __m512i lo = _mm512_load_si512(value), hi = _mm512_load_si512(value + 16);
  for (unsigned k = 0; k < LANES; k += 16)
    _mm512_store_si512(
        to + k, _mm512_permutex2var_epi32(lo, _mm512_load_si512(from + k), hi));
#else
  for (unsigned l = 0; l < LANES; l++) to[l] = value[from[l]];
#endif
}

HANDLER(shfl) {
  _Alignas(64) uint32_t from[LANES], value[LANES], r[LANES];
  if (!all_here(e, i, mask)) return tps_sim_exchange(e, i, mask);
  const uint32_t *a = ROW(const uint32_t, i->a);
  uint32_t within = sources(ROW(const uint32_t, i->b),
                            ROW(const uint32_t, i->c), i->imm, from);
  /* a lane that does not take part gives 0, as in engine_exchange.c */
  EACH_LANE { value[l] = ON(mask, l) ? a[l] : 0; }
  permute(r, value, from);
  if (i->d != NO_OPERAND) {
    uint32_t *d = ROW(uint32_t, i->d);
    BLEND(r[l]);
  }
  if (i->e != NO_OPERAND) set_mask(e, i->e, within, mask);
  return i + 1;
}

void VARIANT(tps_sim_fill_shuffle)(handler **table);
void VARIANT(tps_sim_fill_shuffle)(handler **table) { SHUFFLE_OPS(FILL) }
