/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * C++ types of kernel parameters, from mangled names. PTX has told sizes and
 * offsets before; a signature that contradicts them (it can: a hand-written PTX
 * may use any name) is not believed. */
#include "base/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mangle.h"

/* What a C++ type means for an argument. */
typedef struct meaning {
  uint32_t size; /* 0: unknown, no check */
  uint8_t dtype;
  bool pointer, is_const, is_struct;
  bool undecided; /* keep what PTX says: an enum or a struct, a code pointer */
} meaning;

typedef struct builtin_row {
  uint8_t code, dtype, size;
} builtin_row;

/* clang-format off */
static const builtin_row builtins[] = {
    {'b', TPS_BOOL, 1},      {'c', TPS_INT8, 1},    {'a', TPS_INT8, 1},
    {'h', TPS_UINT8, 1},     {'s', TPS_INT16, 2},   {'t', TPS_UINT16, 2},
    {'i', TPS_INT32, 4},     {'j', TPS_UINT32, 4},  {'l', TPS_INT64, 8},
    {'m', TPS_UINT64, 8},    {'x', TPS_INT64, 8},   {'y', TPS_UINT64, 8},
    {'f', TPS_FLOAT32, 4},   {'d', TPS_FLOAT64, 8}, {'e', TPS_FLOAT64, 8},
    {'w', TPS_INT32, 4},     {'n', TPS_OPAQUE, 16}, {'o', TPS_OPAQUE, 16},
    {'g', TPS_OPAQUE, 16},   {'v', TPS_OPAQUE, 0},  {'h' + 'D', TPS_FLOAT16, 2},
    {'b' + 'D', TPS_BFLOAT16, 2}, {'i' + 'D', TPS_UINT32, 4},
    {'s' + 'D', TPS_UINT16, 2}, {'u' + 'D', TPS_UINT8, 1}};
/* clang-format on */

/* The classes that CUDA's headers define over one element type. A name without
 * underscores stands for its four vectors. */
typedef struct class_row {
  const char *name;
  uint8_t dtype;
  bool vector;
} class_row;

/* clang-format off */
static const class_row classes[] = {
    {"__half", TPS_FLOAT16, false},
    {"__nv_bfloat16", TPS_BFLOAT16, false},
    {"__bf16", TPS_BFLOAT16, false},
    {"__half2", TPS_FLOAT16, true},
    {"__nv_bfloat162", TPS_BFLOAT16, true},
    {"char", TPS_INT8, true},      {"uchar", TPS_UINT8, true},
    {"short", TPS_INT16, true},    {"ushort", TPS_UINT16, true},
    {"int", TPS_INT32, true},      {"uint", TPS_UINT32, true},
    {"long", TPS_INT64, true},     {"ulong", TPS_UINT64, true},
    {"longlong", TPS_INT64, true}, {"ulonglong", TPS_UINT64, true},
    {"float", TPS_FLOAT32, true},  {"double", TPS_FLOAT64, true}};
/* clang-format on */

/* The length of `name` without a vector's width: "float4" and "double4_16a". */
static size_t stem(const char *name, size_t size) {
  if (size > 4 && (memcmp(name + size - 4, "_16a", 4) == 0 ||
                   memcmp(name + size - 4, "_32a", 4) == 0))
    size -= 4;
  if (size > 1 && name[size - 1] >= '1' && name[size - 1] <= '4') size--;
  return size;
}

static const class_row *find_class(const tps_node *n) {
  size_t size;
  if (n->kind != TPS_NODE_NAME) return NULL;
  const char *name = tps_mangle_identifier(n, &size);
  if (name == NULL) return NULL;
  size_t vector_stem = stem(name, size);
  for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
    const class_row *row = &classes[i];
    bool exact = row->name[0] == '_';
    size_t length = exact ? size : vector_stem;
    if (!exact && length == size) continue; /* no width: somebody's own class */
    if (strlen(row->name) == length && memcmp(row->name, name, length) == 0)
      return row;
  }
  return NULL;
}

static const builtin_row *find_builtin(const tps_node *n) {
  if (n->kind != TPS_NODE_BUILTIN) return NULL;
  for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++)
    if (builtins[i].code == n->code) return &builtins[i];
  return NULL;
}

static uint8_t element_dtype(const tps_node *n) {
  while (n->kind == TPS_NODE_QUALIFIED || n->kind == TPS_NODE_ARRAY) n = n->a;
  const builtin_row *builtin = find_builtin(n);
  if (builtin != NULL) return builtin->dtype;
  const class_row *class = find_class(n);
  return class != NULL ? class->dtype : TPS_OPAQUE;
}

static meaning pointer_meaning(const tps_node *to) {
  meaning m = {.size = 8, .pointer = true, .dtype = element_dtype(to)};
  const tps_node *n = to;
  for (; n->kind == TPS_NODE_QUALIFIED || n->kind == TPS_NODE_ARRAY; n = n->a)
    if (n->kind == TPS_NODE_QUALIFIED && n->code != 0) m.is_const = true;
  if (n->kind == TPS_NODE_FUNCTION) m.undecided = true;
  return m;
}

static meaning value_meaning(const tps_node *n) {
  const builtin_row *builtin = find_builtin(n);
  if (builtin != NULL)
    return (meaning){.size = builtin->size,
                     .dtype = builtin->dtype,
                     .is_struct = builtin->dtype == TPS_OPAQUE};
  const class_row *class = find_class(n);
  if (class == NULL) return (meaning){.dtype = TPS_OPAQUE, .undecided = true};
  if (class->vector) return (meaning){.dtype = TPS_OPAQUE, .is_struct = true};
  return (meaning){.size = tps_dtype_sizes[class->dtype],
                   .dtype = class->dtype};
}

static meaning type_meaning(const tps_node *n) {
  while (n->kind == TPS_NODE_QUALIFIED) n = n->a;
  if (n->kind == TPS_NODE_POINTER || n->kind == TPS_NODE_LVALUE ||
      n->kind == TPS_NODE_RVALUE)
    return pointer_meaning(n->a);
  return value_meaning(n);
}

/* ---- kernels ------------------------------------------------------------- */

static int replace(char **field, char *text) {
  if (text == NULL) return TPS_NO_HOST_MEMORY;
  free(*field);
  *field = text;
  return 0;
}

/* A type that is too long to print is no reason to fail. */
static char *text_or(tps_mangle *m, const tps_node *n, bool plain,
                     const char *otherwise) {
  char *text = tps_mangle_text(m, n, plain);
  return text != NULL ? text : strdup(otherwise);
}

static bool agrees(const tps_kernel_desc *kernel, const tps_node *params) {
  uint32_t i = 0;
  for (; params != NULL; params = params->b, i++) {
    if (i == kernel->param_count) return false;
    meaning m = type_meaning(params->a);
    if (m.size != 0 && m.size != kernel->params[i].size) return false;
  }
  return i == kernel->param_count;
}

/* CUDA's names for handles are but other names of an integer type, which mangled
 * names don't keep: what the kernel does with the value tells. */
static const char *handle_type(const tps_param *param, const meaning *m) {
  if (m->dtype != TPS_UINT64 || m->pointer || m->is_struct) return NULL;
  switch (param->handle) {
  case TPS_HANDLE_TEXTURE: return "cudaTextureObject_t";
  case TPS_HANDLE_SURFACE: return "cudaSurfaceObject_t";
  default: return NULL;
  }
}

/* An enum and a struct look alike in a name, but PTX passes the one as a number
 * and the other as bytes: is_struct has been set from that. */
static int apply_type(tps_mangle *mangle, tps_param *param, const tps_node *n) {
  meaning m = type_meaning(n);
  const char *handle = handle_type(param, &m);
  int code =
      replace(&param->type, handle ? strdup(handle)
                                   : text_or(mangle, n, false, "(long type)"));
  if (code != 0) return code;
  if (m.undecided && !param->is_struct && param->certainty != TPS_BY_SIZE)
    return 0;
  param->is_struct = m.undecided ? !m.pointer : m.is_struct;
  param->dtype = m.dtype;
  param->pointer = m.pointer && !m.undecided;
  param->is_const = m.is_const;
  param->certainty = TPS_BY_SIGNATURE;
  return 0;
}

static int apply_types(tps_mangle *mangle, tps_kernel_desc *kernel,
                       const tps_node *params) {
  if (!agrees(kernel, params)) return 0;
  for (uint32_t i = 0; i < kernel->param_count; i++, params = params->b) {
    int code = apply_type(mangle, &kernel->params[i], params->a);
    if (code != 0) return code;
  }
  return 0;
}

/* "scale<float, 4>" and its parameters → "scale<float, 4>(float*, int)". */
static char *call_text(tps_mangle *m, const char *name,
                       const tps_node *params) {
  char *list = text_or(m, params, false, "...");
  if (list == NULL) return NULL;
  size_t size = strlen(name) + strlen(list) + 3;
  char *text = malloc(size);
  if (text != NULL) snprintf(text, size, "%s(%s)", name, list);
  free(list);
  return text;
}

static int apply_names(tps_mangle *m, tps_kernel_desc *kernel,
                       const tps_node *name, const tps_node *params) {
  int code = replace(&kernel->plain, text_or(m, name, true, kernel->name));
  if (code != 0) return code;
  char *whole = text_or(m, name, false, kernel->name);
  if (whole == NULL) return TPS_NO_HOST_MEMORY;
  code = replace(&kernel->signature, call_text(m, whole, params));
  free(whole);
  return code;
}

/* Names for a kernel of which nothing is known but its symbol. */
static int unknown_names(tps_kernel_desc *kernel) {
  int code = 0;
  if (kernel->plain == NULL)
    code = replace(&kernel->plain, strdup(kernel->name));
  if (code == 0 && kernel->signature == NULL)
    code = replace(&kernel->signature, strdup(kernel->plain));
  return code;
}

int tps_signature_from_name(tps_kernel_desc *kernel) {
  tps_node *name, *params;
  bool is_function;
  if (strncmp(kernel->name, "_Z", 2) != 0) return unknown_names(kernel);
  tps_mangle *m = tps_mangle_new();
  if (m == NULL) return TPS_NO_HOST_MEMORY;
  int code;
  if (tps_mangle_name(m, kernel->name, &name, &params, &is_function) &&
      is_function) {
    code = apply_names(m, kernel, name, params);
    if (code == 0) code = apply_types(m, kernel, params);
  } else code = unknown_names(kernel);
  tps_mangle_free(m);
  return code;
}

int tps_signature_from_type(tps_kernel_desc *kernel, const char *type) {
  tps_node *params;
  int code = unknown_names(kernel);
  if (code != 0) return code;
  tps_mangle *m = tps_mangle_new();
  if (m == NULL) return TPS_NO_HOST_MEMORY;
  if (tps_mangle_function_type(m, type, &params)) {
    if (agrees(kernel, params))
      code = replace(&kernel->signature, call_text(m, kernel->plain, params));
    if (code == 0) code = apply_types(m, kernel, params);
  }
  tps_mangle_free(m);
  return code;
}

int tps_global_from_type(tps_global_desc *global, const char *type) {
  tps_mangle *m = tps_mangle_new();
  if (m == NULL) return TPS_NO_HOST_MEMORY;
  const tps_node *n = tps_mangle_type(m, type);
  uint8_t dtype = n != NULL ? element_dtype(n) : TPS_OPAQUE;
  if (dtype == TPS_BOOL) dtype = TPS_UINT8;
  if (dtype != TPS_OPAQUE && global->size % tps_dtype_sizes[dtype] == 0)
    global->dtype = dtype;
  tps_mangle_free(m);
  return 0;
}

char *tps_plain_name(const char *mangled) {
  tps_node *name, *params;
  bool is_function;
  if (strncmp(mangled, "_Z", 2) != 0) return strdup(mangled);
  tps_mangle *m = tps_mangle_new();
  if (m == NULL) return NULL;
  char *text = tps_mangle_name(m, mangled, &name, &params, &is_function)
                   ? text_or(m, name, is_function, mangled)
                   : strdup(mangled);
  tps_mangle_free(m);
  return text;
}

/* ---- the description of an image ----------------------------------------- */

static void free_kernel(tps_kernel_desc *kernel) {
  free(kernel->name);
  free(kernel->plain);
  free(kernel->signature);
  free(kernel->aliases);
  for (uint32_t i = 0; i < kernel->param_count; i++)
    free(kernel->params[i].type);
  free(kernel->params);
}

void tps_image_desc_free(tps_image_desc *desc) {
  for (size_t i = 0; i < desc->kernel_count; i++)
    free_kernel(&desc->kernels[i]);
  for (size_t i = 0; i < desc->global_count; i++) {
    free(desc->globals[i].name);
    free(desc->globals[i].plain);
  }
  free(desc->kernels);
  free(desc->globals);
  memset(desc, 0, sizeof *desc);
}

/* ---- finding by name ----------------------------------------------------- */

/* Whether `a` is the text from `b` to `b_end`, blanks aside. */
static bool same_but_blanks(const char *a, const char *b, const char *b_end) {
  for (;;) {
    while (*a == ' ') a++;
    while (b < b_end && *b == ' ') b++;
    if (b == b_end || *a == '\0') return b == b_end && *a == '\0';
    if (*a++ != *b++) return false;
  }
}

/* Where the parameters of a signature begin: at the parenthesis that the last
 * one closes. */
static const char *parameters_of(const char *signature) {
  const char *p = signature + strlen(signature);
  int depth = 0;
  while (p > signature) {
    p--;
    if (*p == ')') depth++;
    else if (*p == '(' && --depth == 0) return p;
    if (depth == 0) break;
  }
  return signature + strlen(signature);
}

static bool has_alias(const tps_kernel_desc *kernel, const char *name) {
  const char *p = kernel->aliases;
  while (p != NULL && *p != '\0') {
    const char *end = strchr(p, '\n');
    if (end == NULL) end = p + strlen(p);
    if (same_but_blanks(name, p, end)) return true;
    p = *end == '\n' ? end + 1 : end;
  }
  return false;
}

bool tps_kernel_has_name(const tps_kernel_desc *kernel, const char *name) {
  const char *s = kernel->signature;
  if (strcmp(name, kernel->name) == 0 || strcmp(name, kernel->plain) == 0)
    return true;
  return same_but_blanks(name, s, s + strlen(s)) ||
         same_but_blanks(name, s, parameters_of(s)) || has_alias(kernel, name);
}
