/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * suld, sust and sured: surfaces as memory. The first coordinate counts bytes,
 * with .p texels. What is out of range is brought to the edge (.clamp), reads
 * as zeros and is not written (.zero), or faults. A surface of other dimensions
 * than the instruction's counts as out of range altogether, but a plane of a
 * volume or of layers, which is the first one: as on a GPU.
 */
#include "sim/engine_number.h"
#include "sim/engine_texture.h"

#define HANDLER(name)                                                          \
  static const insn *op_##name(engine *e, const insn *i, uint32_t mask)

/* ---- places -------------------------------------------------------------- */

typedef struct place {
  engine *e;
  const insn *i;
  unsigned lane;
  const tps_sim_view *view;
  unsigned size; /* bytes */
  int64_t x, y, slice;
} place;

static int64_t argument(const place *p, unsigned k) {
  return (int32_t)row32(p->e, p->i->b + k * ROW32)[p->lane];
}

static const char *geometry(const insn *i) {
  static const char *const plain[] = {"", "1d", "2d", "3d"};
  if (i->imm & VIEW_LAYERED)
    return (i->imm & VIEW_DIMENSIONS) == 1 ? "a1d" : "a2d";
  return plain[i->imm & VIEW_DIMENSIONS];
}

_Noreturn static void outside(const place *p, const char *what) {
  const tps_array_shape *s = &p->view->shape;
  tps_sim_fault(
      p->e, p->i, (int)p->lane, TPS_ILLEGAL_ADDRESS,
      "surface access of %u bytes at byte %lld, row %lld, slice %lld (%s): %s "
      "the surface of %llu x %llu x %llu texels of %u bytes",
      p->size, (long long)p->x, (long long)p->y, (long long)p->slice,
      geometry(p->i), what, (unsigned long long)s->width,
      (unsigned long long)tps_array_rows(s),
      (unsigned long long)tps_array_slices(s), p->view->texel_bytes);
}

static bool dimensions_fit(const place *p) {
  const tps_array_shape *s = &p->view->shape;
  unsigned n = p->i->imm & VIEW_DIMENSIONS;
  bool layered = p->i->imm & VIEW_LAYERED;
  if (n == 3) return s->depth > 0;
  if (layered && s->layers == 0 && !s->cube) return false;
  return (n == 2) == (s->height > 0) && (n == 2 || layered == (s->layers > 0));
}

static bool in_range(const place *p) {
  const tps_sim_view *v = p->view;
  int64_t width = (int64_t)(v->shape.width * v->texel_bytes);
  return p->x >= 0 && p->x + p->size <= width && p->y >= 0 &&
         p->y < (int64_t)tps_array_rows(&v->shape) && p->slice >= 0 &&
         p->slice < (int64_t)tps_array_slices(&v->shape);
}

static int64_t bring(int64_t i, int64_t most) {
  return i < 0 ? 0 : i > most ? most : i;
}

static void to_edge(place *p) {
  const tps_sim_view *v = p->view;
  int64_t width = (int64_t)(v->shape.width * v->texel_bytes);
  p->x = bring(p->x, width - p->size);
  p->y = bring(p->y, (int64_t)tps_array_rows(&v->shape) - 1);
  int64_t last = (int64_t)tps_array_slices(&v->shape) - 1;
  if (p->i->imm & VIEW_LAYERED && p->slice < 0) p->slice = last; /* unsigned */
  p->slice = bring(p->slice, last);
}

static void read_coordinates(place *p) {
  unsigned n = p->i->imm & VIEW_DIMENSIONS, k = 0;
  p->y = p->slice = 0;
  if (p->i->imm & VIEW_LAYERED) p->slice = argument(p, k++);
  p->x = argument(p, k++);
  if (p->i->imm & VIEW_FORMATTED) p->x *= p->view->texel_bytes;
  if (n > 1) p->y = argument(p, k++);
  if (n > 2) p->slice = argument(p, k);
}

/* Where the lane's `size` bytes are (with .p: a texel's), NULL: nowhere. */
static unsigned char *find(place *p) {
  const insn *i = p->i;
  p->view = tps_sim_view_of(p->e, i, p->lane, true);
  if (i->imm & VIEW_FORMATTED) p->size = p->view->texel_bytes;
  read_coordinates(p);
  if (!dimensions_fit(p)) {
    if (i->imm & (VIEW_CLAMP | VIEW_ZERO)) return NULL;
    outside(p, "not of the dimensions of");
  }
  if (p->x & (p->size - 1))
    tps_sim_fault(p->e, i, (int)p->lane, TPS_MISALIGNED_ADDRESS,
                  "surface access of %u bytes at byte %lld: misaligned (a "
                  "multiple of %u is needed)",
                  p->size, (long long)p->x, p->size);
  if (!in_range(p)) {
    if (i->imm & VIEW_ZERO) return NULL;
    if (!(i->imm & VIEW_CLAMP)) outside(p, "out of range of");
    to_edge(p);
    if (!in_range(p)) return NULL;
  }
  return p->view->texels + (uint64_t)p->slice * p->view->slice_bytes +
         (uint64_t)p->y * p->view->row_bytes + (uint64_t)p->x;
}

bool tps_sim_surface_touched(engine *e, const insn *i, unsigned lane,
                             uint64_t *at, unsigned *bytes) {
  place p = {.e = e, .i = i, .lane = lane};
  p.size = (i->f & 255) * i->count;
  const unsigned char *first = find(&p);
  if (first == NULL) return false;
  *at = (uint64_t)(first - p.view->texels);
  *bytes = p.size;
  return true;
}

/* ---- bytes --------------------------------------------------------------- */

static unsigned element_size(const insn *i) { return i->f & 255; }

static void put(engine *e, const insn *i, unsigned k, unsigned lane,
                uint64_t value) {
  uint32_t at = i->d + k * ROW64;
  if (element_size(i) == 8) row64(e, at)[lane] = value;
  else row32(e, at)[lane] = (uint32_t)value;
}

static uint64_t get(engine *e, const insn *i, unsigned k, unsigned lane) {
  uint32_t at = i->d + k * ROW64;
  return element_size(i) == 8 ? row64(e, at)[lane] : row32(e, at)[lane];
}

HANDLER(suld) {
  unsigned size = element_size(i);
  for (uint32_t m = mask; m; m &= m - 1) {
    place p = {.e = e, .i = i, .lane = (unsigned)__builtin_ctz(m)};
    p.size = size * i->count;
    const unsigned char *from = find(&p);
    for (unsigned k = 0; k < i->count; k++)
      put(e, i, k, p.lane,
          from == NULL ? 0
                       : load_atomic(from + k * size, size, __ATOMIC_RELAXED));
  }
  return i + 1;
}

/* A register of 32 bits as a channel of the surface's format holds it. */
static uint64_t channel_from(tps_texel t, uint32_t bits) {
  if (t.kind == TPS_TEXEL_FLOAT && t.bits == 16)
    return f32_of(bits) != f32_of(bits) ? (bits >> 16 & 0x8000) | 0x7fff
                                        : f16_from(f32_of(bits), 0);
  if (t.bits == 32) return bits;
  if (t.kind == TPS_TEXEL_UNSIGNED) {
    uint32_t most = (1u << t.bits) - 1;
    return bits > most ? most : bits;
  }
  int32_t most = (1 << (t.bits - 1)) - 1, s = (int32_t)bits;
  s = s > most ? most : s < -most - 1 ? -most - 1 : s;
  return (uint32_t)s;
}

static void store_texel(const place *p, unsigned char *to) {
  tps_texel t = p->view->shape.texel;
  unsigned size = t.bits / 8;
  for (unsigned k = 0; k < t.channels && k < p->i->count; k++)
    store_atomic(to + k * size, size,
                 channel_from(t, (uint32_t)get(p->e, p->i, k, p->lane)),
                 __ATOMIC_RELAXED);
}

/* Of lanes that write one place the lowest prevails, as with stores. */
HANDLER(sust) {
  unsigned size = element_size(i);
  for (uint32_t m = mask; m;) {
    place p = {.e = e, .i = i, .lane = 31u - (unsigned)__builtin_clz(m)};
    m ^= 1u << p.lane;
    p.size = size * i->count;
    unsigned char *to = find(&p);
    if (to == NULL) continue;
    if (i->imm & VIEW_FORMATTED) {
      store_texel(&p, to);
      continue;
    }
    for (unsigned k = 0; k < i->count; k++)
      store_atomic(to + k * size, size, get(e, i, k, p.lane), __ATOMIC_RELAXED);
  }
  return i + 1;
}

/* ---- reductions ---------------------------------------------------------- */

static uint64_t combine(unsigned op, bool is_signed, unsigned size, uint64_t a,
                        uint64_t b) {
  int64_t x = size == 4 ? (int32_t)a : (int64_t)a;
  int64_t y = size == 4 ? (int32_t)b : (int64_t)b;
  bool less = is_signed ? x < y : a < b;
  switch (op) {
  case RED_ADD: return a + b;
  case RED_MIN: return less ? a : b;
  case RED_MAX: return less ? b : a;
  case RED_BAND: return a & b;
  default: return a | b;
  }
}

static void reduce(void *to, unsigned op, bool is_signed, unsigned size,
                   uint64_t value) {
  if (size == 8) {
    uint64_t old = __atomic_load_n((uint64_t *)to, __ATOMIC_RELAXED), new;
    do new = combine(op, is_signed, 8, old, value);
    while (!__atomic_compare_exchange_n((uint64_t *)to, &old, new, true,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return;
  }
  uint32_t old = __atomic_load_n((uint32_t *)to, __ATOMIC_RELAXED), new;
  do new = (uint32_t)combine(op, is_signed, 4, old, (uint32_t)value);
  while (!__atomic_compare_exchange_n((uint32_t *)to, &old, new, true,
                                      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

HANDLER(sured) {
  unsigned size = element_size(i), op = (unsigned)(i->imm >> VIEW_SHIFT);
  for (uint32_t m = mask; m; m &= m - 1) {
    place p = {.e = e, .i = i, .lane = (unsigned)__builtin_ctz(m)};
    p.size = size;
    unsigned char *to = find(&p);
    if (to == NULL) continue;
    bool formatted = i->imm & VIEW_FORMATTED;
    if (formatted && p.size != 4)
      tps_sim_fault(e, i, (int)p.lane, TPS_ILLEGAL_ADDRESS,
                    "surface reduction on texels of %u bytes (4 are needed)",
                    p.size);
    bool is_signed = formatted ? p.view->shape.texel.kind == TPS_TEXEL_SIGNED
                               : (i->imm & VIEW_SIGNED) != 0;
    reduce(to, op, is_signed, size, get(e, i, 0, p.lane));
  }
  return i + 1;
}

#define FILL(name) table[H_##name] = op_##name;
void tps_sim_fill_surface(handler **table);
void tps_sim_fill_surface(handler **table) { SURFACE_OPS(FILL) }
