/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Plans for the arguments of a kernel, and single values by one. */
#include "lua/plan.h"

#include <stdlib.h>
#include <string.h>

/* ---- making -------------------------------------------------------------- */

static bool is_char(const char *type) {
  if (type == NULL) return false;
  if (strncmp(type, "const ", 6) == 0) type += 6;
  return strncmp(type, "char", 4) == 0 && strncmp(type, "char1", 5) != 0;
}

static void plan_integer(tps_plan *p, bool is_signed, bool is_unsigned) {
  unsigned bits = 8 * p->size;
  p->kind = is_signed && is_unsigned ? ARG_BITS : ARG_INTEGER;
  p->least = is_signed ? -((lua_Integer)1 << (bits - 1)) : 0;
  p->greatest = ((lua_Integer)1 << (is_unsigned ? bits : bits - 1)) - 1;
}

/* A value whose type is known. */
static void plan_dtype(tps_plan *p) {
  switch (p->dtype) {
  case TPS_INT8:
  case TPS_INT16:
  case TPS_INT32: plan_integer(p, true, false); break;
  case TPS_UINT8:
  case TPS_UINT16:
  case TPS_UINT32: plan_integer(p, false, true); break;
  case TPS_FLOAT32: p->kind = ARG_FLOAT32; break;
  case TPS_BOOL: p->kind = ARG_BOOL; break;
  default: p->kind = ARG_ELEMENT; break;
  }
}

/* A value of which PTX tells the width. */
static void plan_ptx(tps_plan *p) {
  if (p->size == 8) p->kind = ARG_ADDRESS;
  else if (p->size == 1 || p->size == 2 || p->size == 4)
    plan_integer(p, true, true);
  else p->kind = ARG_STRUCT;
}

/* A value of which only the size is known. */
static void plan_raw(tps_plan *p) {
  if (p->size == 1 || p->size == 2 || p->size == 4) plan_integer(p, true, true);
  p->kind = ARG_RAW;
}

static void plan_param(tps_plan *p, const tps_param *q) {
  p->dtype = q->dtype;
  p->access = q->access | (q->strong ? TPS_ACCESS_STRONG : 0);
  if (q->is_const && q->access == TPS_ACCESS_UNKNOWN)
    p->access = TPS_ACCESS_READ; /* lost track of, but its type says so */
  p->offset = q->offset;
  p->size = q->size;
  p->either_char = q->pointer && is_char(q->type);
  bool known = q->dtype <= TPS_BOOL && tps_dtype_sizes[q->dtype] == q->size;
  if (q->pointer)
    p->kind = q->certainty == TPS_BY_SIGNATURE ? ARG_POINTER : ARG_ADDRESS;
  else if (q->is_struct) p->kind = ARG_STRUCT;
  else if (known && (q->certainty == TPS_BY_SIGNATURE ||
                     (q->certainty == TPS_BY_PTX && q->dtype >= TPS_FLOAT16 &&
                      q->dtype <= TPS_FLOAT64)))
    plan_dtype(p);
  else if (q->certainty == TPS_BY_PTX) plan_ptx(p);
  else plan_raw(p);
}

int tps_plan_make(tps_lua_kernel *box, tps_error *err) {
  const tps_kernel_desc *desc = box->kernel->desc;
  size_t count = desc->param_count;
  box->plans = (tps_plan *)calloc(count + 1, sizeof *box->plans);
  box->uses = (tps_use *)calloc(count + 1, sizeof *box->uses);
  if (box->plans == NULL || box->uses == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "not enough memory");
  for (size_t i = 0; i < count; i++)
    plan_param(&box->plans[i], &desc->params[i]);
  box->count = desc->param_count;
  return 0;
}

/* ---- single values ------------------------------------------------------- */

bool tps_put_special(lua_State *L, const tps_plan *p, int index, void *to) {
  if (p->size == 1 && lua_isboolean(L, index)) {
    *(unsigned char *)to = (unsigned char)lua_toboolean(L, index);
    return true;
  }
  if (p->size != 2) return false;
  tps_lua_half *half = (tps_lua_half *)tps_to(L, index, TPS_TYPE_HALF);
  if (half != NULL) memcpy(to, &half->bits, 2);
  return half != NULL;
}

void tps_push_bits_misfit(lua_State *L, int index, const tps_plan *p) {
  const char *number = luaL_tolstring(L, index, NULL);
  lua_pushfstring(L, "%s does not fit %d bits (%I to %I)", number,
                  (int)(8 * p->size), (LUAI_UACINT)p->least,
                  (LUAI_UACINT)p->greatest);
}

tps_fit tps_plan_convert(lua_State *L, int index, const tps_plan *p, void *to) {
  lua_Integer value = 0;
  tps_fit fit = TPS_NOT_A_NUMBER;
  switch (p->kind) {
  case ARG_FLOAT32:
  case ARG_ELEMENT: return tps_element_from(L, index, p->dtype, to);
  case ARG_ADDRESS: return tps_element_from(L, index, TPS_UINT64, to);
  case ARG_BOOL:
    if (!lua_isboolean(L, index)) return TPS_NOT_A_NUMBER;
    *(unsigned char *)to = (unsigned char)lua_toboolean(L, index);
    return TPS_FITS;
  case ARG_BITS:
  case ARG_RAW:
    if (tps_put_special(L, p, index, to)) return TPS_FITS;
    if (p->size > 4) return TPS_NOT_A_NUMBER; /* fall through */
  case ARG_INTEGER:
    fit = tps_integer_from(L, index, p->least, p->greatest, &value);
    if (fit == TPS_FITS) memcpy(to, &value, p->size);
    return fit;
  default: return fit;
  }
}

const char *tps_plan_misfit(lua_State *L, int index, const tps_plan *p,
                            tps_fit fit) {
  if (p->kind == ARG_POINTER || p->kind == ARG_STRUCT)
    return lua_pushliteral(L, "the kernel's parameter is no plain value");
  if (p->kind == ARG_BOOL)
    return lua_pushfstring(L, "boolean expected, got %s",
                           tps_type_name(L, index));
  if ((p->kind == ARG_BITS || p->kind == ARG_RAW) && fit == TPS_OUT_OF_RANGE) {
    tps_push_bits_misfit(L, index, p);
    return lua_tostring(L, -1);
  }
  int dtype = p->kind == ARG_ADDRESS ? TPS_UINT64 : p->dtype;
  return tps_push_misfit(L, index, dtype, fit);
}
