/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Decoding of tex, tld4, txq, suld, sust, sured and suq. All their operands are
 * moved into rows that lie side by side, so that the handlers need one number
 * for them; results go from there into registers. Levels and gradients choose
 * among mipmaps, of which there are none: they don't count.
 */
#include "sim/engine_decode.h"
#include "sim/engine_texture.h"

enum { DATA_ROWS = 4, ARGUMENT_ROWS = 4 };

/* The rows, one set for each function. */
static uint32_t rows_of(builder *b) {
  if (b->texture_rows == 0)
    b->texture_rows =
        tps_sim_place(b, DATA_ROWS * ROW64 + ARGUMENT_ROWS * ROW32);
  return b->texture_rows;
}

static uint32_t argument_row(builder *b, unsigned k) {
  return rows_of(b) + DATA_ROWS * ROW64 + k * ROW32;
}

static const ptx_opd *element(const builder *b, const ptx_opd *o, unsigned k) {
  return is_group(o) ? part_of(b, o, k) : o;
}
static unsigned elements(const ptx_opd *o) {
  return is_group(o) ? o->count : 1;
}

/* ---- pieces -------------------------------------------------------------- */

/* False, with a message of its own, for a texture reference. */
static bool handle_row(builder *b, const ptx_opd *o, uint32_t *row) {
  char where[600];
  if (o->kind != TPS_PTX_OPD_ADDR || o->value != 0) return false;
  if (o->base_kind == TPS_PTX_OPD_VAR) {
    tps_ptx_where(b->module, b->p, where, sizeof where);
    b->failed = tps_fail(b->err, TPS_NOT_SUPPORTED,
                         "'%.200s' is a texture or surface reference, which "
                         "CUDA no longer has: use objects, as tp.texture and "
                         "tp.surface make them (%s)",
                         tps_sim_var(b, o)->name, where);
    return true;
  }
  if (o->base_kind != TPS_PTX_OPD_REG) return false;
  ptx_opd base = *o;
  base.kind = TPS_PTX_OPD_REG;
  *row = tps_sim_source(b, &base, TPS_PTX_U64);
  return true;
}

/* The geometry in flags; false when there is none. */
static bool geometry(const builder *b, int64_t *flags) {
  static const struct {
    tps_ptx_mod mod;
    uint8_t flags;
  } table[] = {{TPS_PTX_M_1D, 1},
               {TPS_PTX_M_2D, 2},
               {TPS_PTX_M_3D, 3},
               {TPS_PTX_M_A1D, 1 | VIEW_LAYERED},
               {TPS_PTX_M_A2D, 2 | VIEW_LAYERED},
               {TPS_PTX_M_CUBE, 2 | VIEW_CUBE},
               {TPS_PTX_M_ACUBE, 2 | VIEW_CUBE | VIEW_LAYERED}};
  for (unsigned k = 0; k < sizeof table / sizeof *table; k++)
    if (has(b, table[k].mod)) {
      *flags = table[k].flags;
      return true;
    }
  return false;
}

/* How many coordinates count, the layer included. */
static unsigned coordinate_count(int64_t flags) {
  unsigned n = flags & VIEW_CUBE ? 3 : (unsigned)(flags & VIEW_DIMENSIONS);
  return n + (flags & VIEW_LAYERED ? 1 : 0);
}

static bool move_coordinates(builder *b, const ptx_opd *o, int64_t flags,
                             uint8_t type) {
  unsigned n = coordinate_count(flags);
  if (elements(o) < n) return false;
  for (unsigned k = 0; k < n; k++) {
    bool layer = k == 0 && (flags & VIEW_LAYERED);
    uint32_t s =
        tps_sim_source(b, element(b, o, k), layer ? TPS_PTX_U32 : type);
    tps_sim_emit3(b, H_mov_32, argument_row(b, k), s, 0, 0);
  }
  return true;
}

static insn *emit(builder *b, unsigned op, uint32_t handle, int64_t flags) {
  insn *i = tps_sim_emit3(b, op, rows_of(b), handle, argument_row(b, 0), 0);
  i->imm = flags;
  i->slot = b->kernel->slots++;
  i->count = 4;
  return i;
}

static void move_results(builder *b, const ptx_opd *o, uint8_t type) {
  bool wide = is_wide(type);
  for (unsigned k = 0; k < elements(o); k++)
    tps_sim_emit3(b, wide ? H_mov_64 : H_mov_32,
                  tps_sim_result(b, element(b, o, k), type),
                  rows_of(b) + k * ROW64, 0, 0);
}

/* ---- textures ------------------------------------------------------------ */

/* There are no sparse textures: all that is read is there. */
static void set_true(builder *b, const ptx_opd *o) {
  uint32_t all = tps_sim_constant(b, FULL, false);
  tps_sim_emit3(b, H_mov_pred, tps_sim_result_pred(b, o), all, all, 0);
}

static bool word_type(uint8_t t) {
  return t == TPS_PTX_F32 || t == TPS_PTX_U32 || t == TPS_PTX_S32 ||
         t == TPS_PTX_B32;
}

/* Operands behind the coordinates: level, or two gradients. */
static unsigned extra_operands(const builder *b) {
  return has(b, TPS_PTX_M_GRAD) ? 2 : has(b, TPS_PTX_M_LEVEL) ? 1 : 0;
}

static bool texture(builder *b) {
  int64_t flags;
  uint32_t handle = 0;
  uint8_t type = type_at(b, 0), at = type_at(b, 1);
  const ptx_opd *d = opd(b, 0), *resident = NULL;
  bool gather = b->p->op == TPS_PTX_OP_TLD4;
  if (d->kind == TPS_PTX_OPD_PAIR) {
    resident = part_of(b, d, 1);
    d = part_of(b, d, 0);
  }
  if (!geometry(b, &flags) || !word_type(type) ||
      (at != TPS_PTX_F32 && at != TPS_PTX_S32) || elements(d) > 4 ||
      b->p->operand_count != 3 + extra_operands(b))
    return false;
  if (at == TPS_PTX_S32) flags |= VIEW_INTEGER;
  if (gather) {
    int64_t channel = has(b, TPS_PTX_M_G)   ? 1
                      : has(b, TPS_PTX_M_B) ? 2
                      : has(b, TPS_PTX_M_A) ? 3
                                            : 0;
    if (flags & (VIEW_CUBE | VIEW_INTEGER)) return false;
    flags |= channel << VIEW_SHIFT;
  }
  if (!handle_row(b, opd(b, 1), &handle)) return false;
  if (b->failed) return true;
  if (!move_coordinates(b, opd(b, 2), flags, at)) return false;
  emit(b, gather ? H_tld4 : H_tex, handle, flags);
  move_results(b, d, type);
  if (resident) set_true(b, resident);
  return true;
}

static bool question(const builder *b, int64_t *ask) {
  static const struct {
    tps_ptx_mod mod;
    uint8_t ask;
  } table[] = {{TPS_PTX_M_WIDTH, ASK_WIDTH},
               {TPS_PTX_M_HEIGHT, ASK_HEIGHT},
               {TPS_PTX_M_DEPTH, ASK_DEPTH},
               {TPS_PTX_M_ARRAY_SIZE, ASK_LAYERS},
               {TPS_PTX_M_NORMALIZED_COORDS, ASK_NORMALIZED},
               {TPS_PTX_M_CHANNEL_DATA_TYPE, ASK_DATA_TYPE},
               {TPS_PTX_M_CHANNEL_ORDER, ASK_ORDER},
               {TPS_PTX_M_NUM_MIPMAP_LEVELS, ASK_ONE},
               {TPS_PTX_M_NUM_SAMPLES, ASK_ONE}};
  for (unsigned k = 0; k < sizeof table / sizeof *table; k++)
    if (has(b, table[k].mod)) {
      *ask = (int64_t)table[k].ask << VIEW_SHIFT;
      return true;
    }
  return false;
}

static bool query(builder *b) {
  int64_t flags;
  uint32_t handle = 0;
  if (!question(b, &flags) || !handle_row(b, opd(b, 1), &handle)) return false;
  if (b->failed) return true;
  if (b->p->op == TPS_PTX_OP_SUQ) flags |= VIEW_FORMATTED;
  emit(b, H_query, handle, flags);
  move_results(b, opd(b, 0), TPS_PTX_B32);
  return true;
}

/* ---- surfaces ------------------------------------------------------------ */

static bool surface_flags(const builder *b, int64_t *flags) {
  if (!geometry(b, flags) || (*flags & VIEW_CUBE)) return false;
  if (has(b, TPS_PTX_M_CLAMP)) *flags |= VIEW_CLAMP;
  if (has(b, TPS_PTX_M_ZERO)) *flags |= VIEW_ZERO;
  if (has(b, TPS_PTX_M_P)) *flags |= VIEW_FORMATTED;
  return true;
}

static bool data_type(uint8_t t, unsigned count) {
  unsigned bits = bits_of_type(t);
  return (bits == 8 || bits == 16 || bits == 32 || bits == 64) &&
         bits * count <= 128;
}

static void move_data(builder *b, const ptx_opd *o, uint8_t type) {
  bool wide = is_wide(type);
  for (unsigned k = 0; k < elements(o); k++) {
    uint32_t s = tps_sim_source(b, element(b, o, k), type);
    tps_sim_emit3(b, wide ? H_mov_64 : H_mov_32, rows_of(b) + k * ROW64, s, 0,
                  0);
  }
}

static bool reduction(const builder *b, int64_t *flags) {
  int64_t op = has(b, TPS_PTX_M_ADD)   ? RED_ADD
               : has(b, TPS_PTX_M_MIN) ? RED_MIN
               : has(b, TPS_PTX_M_MAX) ? RED_MAX
               : has(b, TPS_PTX_M_AND) ? RED_BAND
               : has(b, TPS_PTX_M_OR)  ? RED_BOR
                                       : -1;
  uint8_t t = type_at(b, 0);
  if (op < 0 || bits_of_type(t) < 32) return false;
  *flags |= op << VIEW_SHIFT | (is_signed(t) ? VIEW_SIGNED : 0);
  return true;
}

static bool surface(builder *b) {
  int64_t flags;
  uint32_t handle = 0;
  uint8_t type = type_at(b, 0);
  bool load = b->p->op == TPS_PTX_OP_SULD, red = b->p->op == TPS_PTX_OP_SURED;
  const ptx_opd *data = opd(b, load ? 0 : 2);
  unsigned count = elements(data), first = load ? 1 : 0;
  if (!surface_flags(b, &flags) || count > 4 || !data_type(type, count) ||
      (red && (count != 1 || !reduction(b, &flags))) ||
      (load && (flags & VIEW_FORMATTED)) ||
      ((flags & VIEW_FORMATTED) && bits_of_type(type) != 32))
    return false;
  if (!handle_row(b, opd(b, first), &handle)) return false;
  if (b->failed) return true;
  if (!move_coordinates(b, opd(b, first + 1), flags, TPS_PTX_S32)) return false;
  if (!load) move_data(b, data, type);
  insn *i = emit(b, load ? H_suld : red ? H_sured : H_sust, handle, flags);
  i->count = (uint8_t)count;
  i->f = tps_ptx_type_size((tps_ptx_type)type);
  if (load) move_results(b, data, type);
  return true;
}

bool tps_sim_decode_texture(builder *b) {
  switch (b->p->op) {
  case TPS_PTX_OP_TEX:
  case TPS_PTX_OP_TLD4: return texture(b);
  case TPS_PTX_OP_TXQ:
  case TPS_PTX_OP_SUQ: return query(b);
  default: return surface(b);
  }
}
