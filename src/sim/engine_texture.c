/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * tex, tld4, and the queries of textures and surfaces. Sampling itself is
 * sample.c's. Where instruction and texture don't go together a GPU gives
 * zeros, and so does this: a volume sampled as a plane or the other way round,
 * floating coordinates for linear memory, an integer one for an array of one
 * dimension.
 */
#include "sim/engine_texture.h"

#include "sim/engine_number.h"

#define HANDLER(name)                                                          \
  static const insn *op_##name(engine *e, const insn *i, uint32_t mask)
#define EACH_LANE_OF(mask)                                                     \
  for (uint32_t m = (mask), l; m && (l = (uint32_t)__builtin_ctz(m), true);    \
       m &= m - 1)

/* ---- handles ------------------------------------------------------------- */

_Noreturn static void bad_handle(engine *e, const insn *i, unsigned lane,
                                 bool surface, const char *why) {
  tps_sim_fault(e, i, (int)lane, TPS_ILLEGAL_ADDRESS, "%s handle 0x%llx: %s",
                surface ? "surface" : "texture",
                (unsigned long long)row64(e, i->a)[lane], why);
}

static const tps_sim_view *look_up(engine *e, const insn *i, unsigned lane,
                                   bool surface) {
  uint64_t handle = row64(e, i->a)[lane];
  uint8_t kind = surface ? TPS_SIM_SURFACE : TPS_SIM_TEXTURE;
  uint8_t other = surface ? TPS_SIM_TEXTURE : TPS_SIM_SURFACE;
  if (handle == 0) bad_handle(e, i, lane, surface, "a null handle");
  tps_sim_allocation *m = tps_sim_find(e->launch->space, handle);
  if (m == NULL || m->base != handle || (m->kind != kind && m->kind != other) ||
      (m->owner != e->launch->space && atomic_load(&m->live)))
    bad_handle(e, i, lane, surface,
               surface ? "there is no such surface"
                       : "there is no such texture");
  if (m->kind == other)
    bad_handle(e, i, lane, surface,
               surface ? "it is a texture's" : "it is a surface's");
  if (!atomic_load_explicit(&m->live, memory_order_relaxed))
    bad_handle(e, i, lane, surface,
               surface ? "the surface was closed" : "the texture was closed");
  region *r = &e->slots[i->slot];
  r->base = m->base, r->size = m->size, r->host = m->host;
  return (const tps_sim_view *)(const void *)m->host;
}

const tps_sim_view *tps_sim_view_of(engine *e, const insn *i, unsigned lane,
                                    bool surface) {
  const region *r = &e->slots[i->slot];
  if (r->base == row64(e, i->a)[lane] && r->size != 0)
    return (const tps_sim_view *)(const void *)r->host;
  return look_up(e, i, lane, surface);
}

/* ---- operands ------------------------------------------------------------ */

static uint32_t argument(engine *e, const insn *i, unsigned k, unsigned lane) {
  return row32(e, i->b + k * ROW32)[lane];
}

static void put_texel(engine *e, const insn *i, unsigned lane,
                      const tps_sim_texel *t) {
  for (unsigned c = 0; c < 4; c++)
    row32(e, i->d + c * ROW64)[lane] = t->channel[c];
}

static tps_sim_point point(engine *e, const insn *i, unsigned lane) {
  unsigned k = i->imm & VIEW_LAYERED ? 1 : 0;
  unsigned n = i->imm & VIEW_CUBE ? 3 : i->imm & VIEW_DIMENSIONS;
  tps_sim_point p = {0, 0, 0, 0};
  if (k > 0) p.layer = (int32_t)argument(e, i, 0, lane);
  p.x = f32_of(argument(e, i, k, lane));
  if (n > 1) p.y = f32_of(argument(e, i, k + 1, lane));
  if (n > 2) p.z = f32_of(argument(e, i, k + 2, lane));
  return p;
}

/* ---- tex, tld4 ----------------------------------------------------------- */

static bool is_volume(const tps_sim_view *v) { return v->shape.depth > 0; }

static tps_sim_texel fetch(engine *e, const insn *i, unsigned lane,
                           const tps_sim_view *v) {
  static const tps_sim_texel nothing;
  unsigned dimensions = i->imm & VIEW_DIMENSIONS;
  unsigned k = i->imm & VIEW_LAYERED ? 1 : 0;
  int32_t at[3] = {0, 0, 0};
  for (unsigned d = 0; d < dimensions; d++)
    at[d] = (int32_t)argument(e, i, k + d, lane);
  if (is_volume(v) != (dimensions == 3)) return nothing;
  if (dimensions == 1 && k == 0 && !v->line) return nothing;
  return tps_sim_fetch(v, dimensions, at,
                       k > 0 ? (int32_t)argument(e, i, 0, lane) : 0);
}

static tps_sim_texel sample(engine *e, const insn *i, unsigned lane,
                            const tps_sim_view *v) {
  static const tps_sim_texel nothing;
  unsigned dimensions = i->imm & VIEW_DIMENSIONS;
  if (v->line) return nothing;
  if (i->imm & VIEW_CUBE)
    return v->shape.cube ? tps_sim_sample_cube(v, point(e, i, lane)) : nothing;
  if (is_volume(v) != (dimensions == 3)) return nothing;
  return tps_sim_sample(v, dimensions, point(e, i, lane));
}

HANDLER(tex) {
  EACH_LANE_OF(mask) {
    const tps_sim_view *v = tps_sim_view_of(e, i, l, false);
    tps_sim_texel t =
        i->imm & VIEW_INTEGER ? fetch(e, i, l, v) : sample(e, i, l, v);
    put_texel(e, i, l, &t);
  }
  return i + 1;
}

static tps_sim_texel gather(engine *e, const insn *i, unsigned lane,
                            const tps_sim_view *v) {
  static const tps_sim_texel nothing;
  if (v->line || is_volume(v)) return nothing;
  return tps_sim_gather(v, point(e, i, lane), (unsigned)(i->imm >> VIEW_SHIFT));
}

HANDLER(tld4) {
  EACH_LANE_OF(mask) {
    const tps_sim_view *v = tps_sim_view_of(e, i, l, false);
    tps_sim_texel t = gather(e, i, l, v);
    put_texel(e, i, l, &t);
  }
  return i + 1;
}

tps_sim_texels tps_sim_texels_read(engine *e, const insn *i, unsigned lane) {
  tps_sim_texels read = {.count = 0};
  tps_sim_view v = *tps_sim_view_of(e, i, lane, false);
  v.read = &read;
  if (i->op == H_tld4) gather(e, i, lane, &v);
  else if (i->imm & VIEW_INTEGER) fetch(e, i, lane, &v);
  else sample(e, i, lane, &v);
  return read;
}

/* ---- queries ------------------------------------------------------------- */

/* The numbers of OpenCL's header, as PTX has it. */
static uint32_t data_type(const tps_sim_view *v) {
  tps_texel t = v->shape.texel;
  unsigned size = t.bits == 8 ? 0 : t.bits == 16 ? 1 : 2;
  if (t.kind == TPS_TEXEL_FLOAT) return t.bits == 16 ? 0x10dd : 0x10de;
  bool is_signed = t.kind == TPS_TEXEL_SIGNED;
  if (v->sampling.normalized_read) return (is_signed ? 0x10d0 : 0x10d2) + size;
  return (is_signed ? 0x10d7 : 0x10da) + size;
}

static uint32_t channel_order(const tps_sim_view *v) {
  unsigned n = v->shape.texel.channels;
  return n == 1 ? 0x10b0 : n == 2 ? 0x10b2 : 0x10b5; /* R, RG, RGBA */
}

static uint32_t answer(const tps_sim_view *v, unsigned question) {
  switch (question) {
  case ASK_WIDTH: return (uint32_t)v->shape.width;
  case ASK_HEIGHT: return (uint32_t)v->shape.height;
  case ASK_DEPTH: return (uint32_t)v->shape.depth;
  case ASK_LAYERS: return (uint32_t)v->shape.layers;
  case ASK_NORMALIZED: return v->sampling.normalized;
  case ASK_DATA_TYPE: return data_type(v);
  case ASK_ORDER: return channel_order(v);
  default: return 1;
  }
}

HANDLER(query) {
  EACH_LANE_OF(mask) {
    const tps_sim_view *v =
        tps_sim_view_of(e, i, l, (i->imm & VIEW_FORMATTED) != 0);
    row32(e, i->d)[l] = answer(v, (unsigned)(i->imm >> VIEW_SHIFT));
  }
  return i + 1;
}

#define FILL(name) table[H_##name] = op_##name;
void tps_sim_fill_texture(handler **table);
void tps_sim_fill_texture(handler **table) { TEXTURE_OPS(FILL) }
