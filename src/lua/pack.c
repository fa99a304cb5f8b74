/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Arguments → a kernel's parameter block, by its plans. On the fast path nothing is
 * allocated, in Lua or in C. */
#include "lua/capture.h"
#include "lua/plan.h"

#include <math.h>
#include <string.h>

/* ---- failing ------------------------------------------------------------- */

const char *tps_push_parameter(lua_State *L, const tps_lua_kernel *k,
                               uint32_t i) {
  const char *name = k->names;
  if (name == NULL) return lua_pushfstring(L, "#%d", (int)i + 1);
  for (; i > 0; i--) name += strcspn(name, ",") + 2;
  lua_pushlstring(L, name, strcspn(name, ","));
  return lua_pushfstring(L, "'%s'", lua_tostring(L, -1));
}

void tps_bad_argument(lua_State *L, const tps_lua_kernel *k, uint32_t i,
                      const char *why) {
  const char *type = k->kernel->desc->params[i].type;
  tps_misuse(L, "kernel '%s': argument %s (%s): %s", k->kernel->name,
             tps_push_parameter(L, k, i), type == NULL ? "unknown type" : type,
             why);
}

static TPS_COLD _Noreturn void bad_type(lua_State *L, const tps_lua_kernel *k,
                                        uint32_t i, int index,
                                        const char *expected) {
  tps_bad_argument(L, k, i,
                   lua_pushfstring(L, "%s expected, got %s", expected,
                                   tps_type_name(L, index)));
}

static TPS_COLD _Noreturn void bad_number(lua_State *L, const tps_lua_kernel *k,
                                          uint32_t i, int index, int dtype,
                                          tps_fit fit) {
  const tps_lua_half *half =
      (const tps_lua_half *)tps_to(L, index, TPS_TYPE_HALF);
  if (half != NULL)
    tps_bad_argument(L, k, i,
                     lua_pushfstring(L, "%s expected, got a %s",
                                     tps_dtype_names[dtype],
                                     tps_dtype_names[half->dtype]));
  tps_bad_argument(L, k, i, tps_push_misfit(L, index, dtype, fit));
}

static TPS_COLD _Noreturn void bad_bits(lua_State *L, const tps_lua_kernel *k,
                                        uint32_t i, int index, tps_fit fit) {
  const tps_plan *p = &k->plans[i];
  const char *number;
  if (fit == TPS_NOT_A_NUMBER) bad_type(L, k, i, index, "integer");
  if (fit == TPS_NOT_WHOLE) {
    number = luaL_tolstring(L, index, NULL);
    tps_bad_argument(L, k, i,
                     lua_pushfstring(L, "%s is not a whole number", number));
  }
  tps_push_bits_misfit(L, index, p);
  tps_bad_argument(L, k, i, lua_tostring(L, -1));
}

void tps_bad_count(lua_State *L, const tps_lua_kernel *k, uint32_t expected,
                   int given) {
  const char *what = k->kernel->desc->signature;
  if (k->names != NULL) { /* the first of them, or all */
    size_t size = expected < k->count ? strlen(k->names) - strlen(", n")
                                      : strlen(k->names);
    what = lua_pushlstring(L, k->names, size);
  }
  tps_misuse(L, "kernel '%s': %u argument%s expected, got %d (%s)",
             k->kernel->name, expected, expected == 1 ? "" : "s", given, what);
}

/* ---- converting ---------------------------------------------------------- */

static TPS_COLD bool reachable(tps_device *device, const tps_memory *memory) {
  tps_device *other = memory->device;
  if (other == device) return true;
  if (other->kind != device->kind) return false;
  return memory->kind == TPS_MEMORY_PINNED ||
         device->face->can_access_peer(device, other);
}

static TPS_COLD _Noreturn void unreachable(lua_State *L,
                                           const tps_lua_kernel *k, uint32_t i,
                                           tps_device *device,
                                           const tps_memory *memory) {
  char a[32], b[32];
  tps_bad_argument(
      L, k, i,
      lua_pushfstring(L, "the buffer is on %s, the launch on %s",
                      tps_device_label(memory->device, a, sizeof a),
                      tps_device_label(device, b, sizeof b)));
}

/* Writes the buffer's address and notes its use. */
static inline void put_buffer(lua_State *L, tps_lua_kernel *k, uint32_t i,
                              const tps_lua_buffer *b, tps_device *device,
                              uint32_t *uses) {
  const tps_plan *p = &k->plans[i];
  tps_memory *memory = b->memory;
  if (memory == NULL)
    tps_bad_argument(L, k, i, "attempt to use a closed buffer");
  if (TPS_UNLIKELY(memory->device != device) && !reachable(device, memory))
    unreachable(L, k, i, device, memory);
  uint64_t address = memory->address + b->first;
  memcpy(k->kernel->block + p->offset, &address, 8);
  k->uses[(*uses)++] =
      (tps_use){memory, b->first, tps_buffer_bytes(b), p->access, NULL};
}

/* What the kernel does with the parameter tells what it has to be. */
static TPS_COLD void check_handle(lua_State *L, const tps_lua_kernel *k,
                                  uint32_t i, int index) {
  uint8_t wanted = k->kernel->desc->params[i].handle;
  if (wanted == 0) return;
  bool texture = tps_to(L, index, TPS_TYPE_TEXTURE) != NULL;
  bool surface = tps_to(L, index, TPS_TYPE_SURFACE) != NULL;
  if (wanted == TPS_HANDLE_TEXTURE && !texture)
    tps_bad_argument(L, k, i,
                     surface ? "a texture expected, got a surface"
                             : "a texture expected, got a buffer");
  if (wanted == TPS_HANDLE_SURFACE && !surface)
    tps_bad_argument(L, k, i,
                     texture ? "a surface expected, got a texture"
                             : "a surface expected, got a buffer");
}

/* The same for a texture or a surface, where the parameter has room for a
 * handle: 64 bits that are no pointer. False: it is none. */
static TPS_COLD bool put_view(lua_State *L, tps_lua_kernel *k, uint32_t i,
                              int index, tps_device *device, uint32_t *uses) {
  char a[32], b[32];
  const tps_plan *p = &k->plans[i];
  bool handle = p->size == 8 && !k->kernel->desc->params[i].pointer;
  tps_lua_view *box = handle ? tps_to_view(L, index) : NULL;
  if (box == NULL) return false;
  check_handle(L, k, i, index);
  tps_view *view = box->view;
  if (view == NULL)
    tps_bad_argument(L, k, i,
                     tps_to(L, index, TPS_TYPE_SURFACE) != NULL
                         ? "attempt to use a closed surface"
                         : "attempt to use a closed texture");
  if (view->memory->device != device)
    tps_bad_argument(
        L, k, i,
        lua_pushfstring(L, "the %s is on %s, the launch on %s",
                        view->surface ? "surface" : "texture",
                        tps_device_label(view->memory->device, a, sizeof a),
                        tps_device_label(device, b, sizeof b)));
  memcpy(k->kernel->block + p->offset, &view->handle, 8);
  k->uses[(*uses)++] =
      (tps_use){view->memory, view->first, view->bytes,
                view->surface ? TPS_ACCESS_BOTH : TPS_ACCESS_READ, view};
  return true;
}

static bool element_fits(const tps_plan *p, const tps_lua_buffer *b) {
  if (p->dtype == b->dtype || p->dtype == TPS_OPAQUE) return true;
  if (p->dtype == TPS_BOOL) return b->dtype == TPS_UINT8;
  return p->either_char && (b->dtype == TPS_INT8 || b->dtype == TPS_UINT8);
}

static TPS_COLD _Noreturn void bad_element(lua_State *L,
                                           const tps_lua_kernel *k, uint32_t i,
                                           const tps_lua_buffer *b) {
  const tps_plan *p = &k->plans[i];
  const char *dtype = p->dtype == TPS_BOOL ? "uint8"
                      : p->either_char     ? "int8 or uint8"
                                           : tps_dtype_names[p->dtype];
  tps_bad_argument(L, k, i,
                   lua_pushfstring(L, "a buffer of %s expected, got one of %s",
                                   dtype, tps_dtype_names[b->dtype]));
}

static void put_pointer(lua_State *L, tps_lua_kernel *k, uint32_t i, int index,
                        tps_device *device, uint32_t *uses) {
  const tps_plan *p = &k->plans[i];
  tps_lua_buffer *b = (tps_lua_buffer *)tps_to(L, index, TPS_TYPE_BUFFER);
  if (b != NULL) {
    if (b->memory != NULL && !element_fits(p, b)) bad_element(L, k, i, b);
    put_buffer(L, k, i, b, device, uses);
  } else if (lua_isnil(L, index)) {
    memset(k->kernel->block + p->offset, 0, 8);
  } else {
    bad_type(L, k, i, index, "tpstream.Buffer or nil");
  }
}

/* What a parameter of 64 bits takes. */
static const char *addressed(const tps_lua_kernel *k, uint32_t i) {
  switch (k->kernel->desc->params[i].handle) {
  case TPS_HANDLE_TEXTURE: return "tpstream.Texture, nil or integer";
  case TPS_HANDLE_SURFACE: return "tpstream.Surface, nil or integer";
  default: return "tpstream.Buffer, nil or integer";
  }
}

static void put_address(lua_State *L, tps_lua_kernel *k, uint32_t i, int index,
                        tps_device *device, uint32_t *uses) {
  unsigned char *to = k->kernel->block + k->plans[i].offset;
  tps_lua_buffer *b = (tps_lua_buffer *)tps_to(L, index, TPS_TYPE_BUFFER);
  if (b != NULL) {
    check_handle(L, k, i, index);
    put_buffer(L, k, i, b, device, uses);
  } else if (lua_isnil(L, index)) {
    memset(to, 0, 8);
  } else if (!lua_isuserdata(L, index) ||
             !put_view(L, k, i, index, device, uses)) {
    tps_fit fit = tps_element_from(L, index, TPS_UINT64, to);
    if (fit == TPS_NOT_A_NUMBER) bad_type(L, k, i, index, addressed(k, i));
    if (fit != TPS_FITS) bad_number(L, k, i, index, TPS_UINT64, fit);
  }
}

/* What is no integer in range. */
static TPS_COLD void put_other_integer(lua_State *L, tps_lua_kernel *k,
                                       uint32_t i, int index) {
  const tps_plan *p = &k->plans[i];
  lua_Integer value = 0;
  tps_fit fit = tps_integer_from(L, index, p->least, p->greatest, &value);
  if (fit != TPS_FITS) bad_number(L, k, i, index, p->dtype, fit);
  memcpy(k->kernel->block + p->offset, &value, p->size);
}

/* Of 1, 2 or 4 bytes. */
static inline void put_integer(lua_State *L, tps_lua_kernel *k, uint32_t i,
                               int index) {
  const tps_plan *p = &k->plans[i];
  unsigned char *to = k->kernel->block + p->offset;
  lua_Integer value = lua_tointeger(L, index);
  if (TPS_UNLIKELY(!lua_isinteger(L, index) || value < p->least ||
                   value > p->greatest))
    put_other_integer(L, k, i, index);
  else if (p->size == 4) memcpy(to, &value, 4);
  else memcpy(to, &value, p->size);
}

static void put_bits(lua_State *L, tps_lua_kernel *k, uint32_t i, int index) {
  const tps_plan *p = &k->plans[i];
  unsigned char *to = k->kernel->block + p->offset;
  lua_Integer value = 0;
  if (tps_put_special(L, p, index, to)) return;
  tps_fit fit = tps_integer_from(L, index, p->least, p->greatest, &value);
  if (fit != TPS_FITS) bad_bits(L, k, i, index, fit);
  memcpy(to, &value, p->size);
}

static inline void put_float32(lua_State *L, tps_lua_kernel *k, uint32_t i,
                               int index) {
  lua_Number x = lua_tonumber(L, index);
  float f = (float)x;
  if (TPS_UNLIKELY(lua_type(L, index) != LUA_TNUMBER))
    bad_number(L, k, i, index, TPS_FLOAT32, TPS_NOT_A_NUMBER);
  if (TPS_UNLIKELY(isinf(f) && isfinite(x)))
    bad_number(L, k, i, index, TPS_FLOAT32, TPS_OUT_OF_RANGE);
  memcpy(k->kernel->block + k->plans[i].offset, &f, sizeof f);
}

static void put_element(lua_State *L, tps_lua_kernel *k, uint32_t i, int index,
                        tps_device *device, uint32_t *uses) {
  const tps_plan *p = &k->plans[i];
  if (p->dtype == TPS_UINT64 && lua_isuserdata(L, index) &&
      put_view(L, k, i, index, device, uses))
    return;
  unsigned char *to = k->kernel->block + p->offset;
  tps_lua_half *half = (tps_lua_half *)tps_to(L, index, TPS_TYPE_HALF);
  if (half != NULL && half->dtype == p->dtype) {
    memcpy(to, &half->bits, 2);
    return;
  }
  tps_fit fit = tps_element_from(L, index, p->dtype, to);
  uint8_t handle = k->kernel->desc->params[i].handle;
  if (fit == TPS_NOT_A_NUMBER && handle == TPS_HANDLE_TEXTURE)
    bad_type(L, k, i, index, "tpstream.Texture or integer");
  if (fit == TPS_NOT_A_NUMBER && handle == TPS_HANDLE_SURFACE)
    bad_type(L, k, i, index, "tpstream.Surface or integer");
  if (fit != TPS_FITS) bad_number(L, k, i, index, p->dtype, fit);
}

static void put_bool(lua_State *L, tps_lua_kernel *k, uint32_t i, int index) {
  if (!lua_isboolean(L, index)) bad_type(L, k, i, index, "boolean");
  k->kernel->block[k->plans[i].offset] = (unsigned char)lua_toboolean(L, index);
}

/* PTX alone does not tell a half from a struct of two bytes. */
static bool put_half(lua_State *L, const tps_lua_kernel *k, uint32_t i,
                     int index) {
  const tps_plan *p = &k->plans[i];
  return p->size == 2 && k->kernel->desc->params[i].certainty == TPS_BY_PTX &&
         tps_put_special(L, p, index, k->kernel->block + p->offset);
}

static void put_struct(lua_State *L, tps_lua_kernel *k, uint32_t i, int index) {
  if (!put_half(L, k, i, index)) tps_put_struct(L, k, i, index);
}

/* Known by its size alone, as in a CUBIN: a string of that size always does;
 * for 8 bytes a Buffer, nil or an integer, for 1, 2 and 4 an integer, too. A
 * float does not: its format could not be told. */
static void put_raw(lua_State *L, tps_lua_kernel *k, uint32_t i, int index,
                    tps_device *device, uint32_t *uses) {
  const tps_plan *p = &k->plans[i];
  int type = lua_type(L, index);
  bool small = p->size == 1 || p->size == 2 || p->size == 4;
  if (type == LUA_TNUMBER && !lua_isinteger(L, index))
    tps_bad_argument(
        L, k, i,
        "only the size of this parameter is known: give a float as a "
        "string (string.pack)");
  if (type == LUA_TSTRING || !(small || p->size == 8)) {
    put_struct(L, k, i, index);
  } else if (p->size == 8) {
    put_address(L, k, i, index, device, uses);
  } else {
    put_bits(L, k, i, index);
  }
}

static __attribute__((noinline)) void put_other(lua_State *L, tps_lua_kernel *k,
                                                uint32_t i, int index,
                                                tps_device *device,
                                                uint32_t *uses) {
  switch (k->plans[i].kind) {
  case ARG_BITS: put_bits(L, k, i, index); break;
  case ARG_ELEMENT: put_element(L, k, i, index, device, uses); break;
  case ARG_BOOL: put_bool(L, k, i, index); break;
  case ARG_ADDRESS: put_address(L, k, i, index, device, uses); break;
  case ARG_STRUCT: put_struct(L, k, i, index); break;
  default: put_raw(L, k, i, index, device, uses);
  }
}

/* ---- all of them ---------------------------------------------------------- */

uint32_t tps_pack(lua_State *L, tps_lua_kernel *k, int first,
                  tps_device *device) {
  int given = lua_gettop(L) - first + 1;
  uint32_t uses = 0;
  if ((uint32_t)given != k->count) tps_bad_count(L, k, k->count, given);
  if (TPS_UNLIKELY(k->head.lua->capture != NULL))
    tps_capture_arguments(L, k, first);
  for (uint32_t i = 0; i < k->count; i++) {
    int index = first + (int)i;
    switch (k->plans[i].kind) {
    case ARG_INTEGER: put_integer(L, k, i, index); break;
    case ARG_FLOAT32: put_float32(L, k, i, index); break;
    case ARG_POINTER: put_pointer(L, k, i, index, device, &uses); break;
    default: put_other(L, k, i, index, device, &uses);
    }
  }
  return uses;
}
