/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * From a module to the table of what a program can use of it: kernels with
 * their parameters, and variables.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ptx/access.h"
#include "ptx/words.h"

/* --- types */

static tps_dtype dtype_of(uint8_t type) {
  switch (type) {
  case TPS_PTX_S8: return TPS_INT8;
  case TPS_PTX_U8:
  case TPS_PTX_B8: return TPS_UINT8;
  case TPS_PTX_S16: return TPS_INT16;
  case TPS_PTX_U16:
  case TPS_PTX_B16: return TPS_UINT16;
  case TPS_PTX_S32: return TPS_INT32;
  case TPS_PTX_U32:
  case TPS_PTX_B32: return TPS_UINT32;
  case TPS_PTX_S64: return TPS_INT64;
  case TPS_PTX_U64:
  case TPS_PTX_B64: return TPS_UINT64;
  case TPS_PTX_F16: return TPS_FLOAT16;
  case TPS_PTX_BF16: return TPS_BFLOAT16;
  case TPS_PTX_F32: return TPS_FLOAT32;
  case TPS_PTX_F64: return TPS_FLOAT64;
  default: return TPS_OPAQUE;
  }
}

/* Untyped bits tell nothing about a variable's elements. */
static tps_dtype global_dtype(uint8_t type) {
  bool bits = type >= TPS_PTX_B8 && type <= TPS_PTX_B128;
  return bits ? TPS_OPAQUE : dtype_of(type);
}

/* ".u64", ".b8[24]" */
static char *type_text(const tps_ptx_var *var) {
  char text[64];
  const char *name = tps_ptx_type_name(var->type);
  if (var->count == 1) snprintf(text, sizeof text, ".%s", name);
  else
    snprintf(text, sizeof text, ".%s[%llu]", name,
             (unsigned long long)var->count);
  return strdup(text);
}

/* --- what a kernel reaches */

/* Everything that a function names, once for all kernels that reach it. */
typedef struct edges {
  uint32_t first, functions, vars; /* in `named`: functions, then variables */
  bool known, indirect;            /* … with a call through a register */
} edges;

typedef struct reach {
  const tps_ptx_module *module;
  edges *edges;
  uint32_t *named;
  size_t named_count, named_room;
  uint32_t *function_stamp, *var_stamp; /* kernel that reached it last, + 1 */
  uint32_t *functions, *vars;           /* reached by this one */
  uint32_t function_count, var_count;
  uint32_t stamp;
  size_t pointed_first, pointed_end; /* in `named`: those that are pointed to */
  bool pointed_known;
  bool pointed; /* the kernel calls through a register */
  bool failed;  /* out of memory */
} reach;

static void name_one(reach *w, uint32_t index) {
  if (w->named_count == w->named_room) {
    size_t room = w->named_room ? w->named_room * 2 : 1024;
    uint32_t *more = realloc(w->named, room * sizeof *more);
    if (more == NULL) {
      w->failed = true;
      return;
    }
    w->named = more;
    w->named_room = room;
  }
  w->named[w->named_count++] = index;
}

typedef enum wanted { FUNCTIONS, VARIABLES } wanted;

static void see_operand(reach *w, const tps_ptx_function *f,
                        const tps_ptx_operand *o, wanted wanted) {
  bool var = o->kind == TPS_PTX_OPD_VAR ||
             (o->kind == TPS_PTX_OPD_ADDR && o->base_kind == TPS_PTX_OPD_VAR);
  if (wanted == VARIABLES) {
    if (var && !o->local) name_one(w, (uint32_t)o->index);
  } else if (o->kind == TPS_PTX_OPD_FUNC) {
    name_one(w, (uint32_t)o->index);
  } else if (o->kind == TPS_PTX_OPD_TABLE &&
             f->tables[o->index].kind == TPS_PTX_CALL_TARGETS) {
    for (uint32_t k = 0; k < f->tables[o->index].target_count; k++)
      name_one(w, (uint32_t)f->tables[o->index].targets[k]);
  }
}

static uint32_t see_function(reach *w, const tps_ptx_function *f,
                             wanted wanted) {
  size_t before = w->named_count;
  for (uint32_t k = 0; k < f->instruction_count; k++) {
    const tps_ptx_instruction *i = &f->instructions[k];
    for (unsigned n = 0; n < i->operand_count; n++)
      see_operand(w, f, &i->operands[n], wanted);
  }
  for (uint32_t k = 0; k < f->part_count; k++)
    see_operand(w, f, &f->parts[k], wanted);
  return (uint32_t)(w->named_count - before);
}

static bool calls_by_register(const tps_ptx_function *f) {
  for (uint32_t k = 0; k < f->instruction_count; k++)
    if (f->instructions[k].op == TPS_PTX_OP_CALL &&
        f->instructions[k].operands[1].kind == TPS_PTX_OPD_REG)
      return true;
  return false;
}

static const edges *edges_of(reach *w, uint32_t number) {
  const tps_ptx_function *f = &w->module->functions[number];
  edges *e = &w->edges[number];
  if (e->known) return e;
  e->known = true;
  e->first = (uint32_t)w->named_count;
  e->functions = see_function(w, f, FUNCTIONS);
  e->vars = see_function(w, f, VARIABLES);
  e->indirect = calls_by_register(f);
  return e;
}

static void add_function(reach *w, uint32_t index) {
  if (w->function_stamp[index] == w->stamp) return;
  w->function_stamp[index] = w->stamp;
  w->functions[w->function_count++] = index;
}

static void add_var(reach *w, uint32_t index) {
  if (w->var_stamp[index] == w->stamp) return;
  w->var_stamp[index] = w->stamp;
  w->vars[w->var_count++] = index;
}

static void name_pointed(reach *w, const tps_ptx_var *var) {
  for (uint32_t k = 0; k < var->relocation_count; k++)
    if (var->relocations[k].function)
      name_one(w, (uint32_t)var->relocations[k].index);
}

/* A call through a register may reach every function whose address the module
 * takes in an initialiser; those taken by instructions are reached anyway. */
static void name_all_pointed(reach *w) {
  const tps_ptx_module *m = w->module;
  w->pointed_known = true;
  w->pointed_first = w->named_count;
  for (uint32_t k = 0; k < m->var_count; k++) name_pointed(w, &m->vars[k]);
  for (uint32_t k = 0; k < m->function_count; k++)
    for (uint32_t n = 0; n < m->functions[k].var_count; n++)
      name_pointed(w, &m->functions[k].vars[n]);
  w->pointed_end = w->named_count;
}

static void add_all_pointed(reach *w) {
  if (w->pointed) return;
  w->pointed = true;
  if (!w->pointed_known) name_all_pointed(w);
  for (size_t k = w->pointed_first; k < w->pointed_end && !w->failed; k++)
    add_function(w, w->named[k]);
}

static void walk(reach *w, uint32_t kernel) {
  w->stamp = kernel + 1;
  w->function_count = w->var_count = 0;
  w->pointed = false;
  add_function(w, kernel);
  for (uint32_t k = 0; k < w->function_count && !w->failed; k++) {
    edges e = *edges_of(w, w->functions[k]);
    uint32_t at = e.first; /* where there are none, there is no array either */
    if (w->failed) return;
    for (uint32_t n = 0; n < e.functions; n++) add_function(w, w->named[at++]);
    for (uint32_t n = 0; n < e.vars; n++) add_var(w, w->named[at++]);
    if (e.indirect) add_all_pointed(w);
  }
}

static bool reach_begin(reach *w, const tps_ptx_module *module) {
  size_t functions = (size_t)module->function_count + 1;
  size_t vars = (size_t)module->var_count + 1;
  w->module = module;
  w->edges = calloc(functions, sizeof *w->edges);
  w->function_stamp = calloc(functions * 2, sizeof *w->function_stamp);
  w->var_stamp = calloc(vars * 2, sizeof *w->var_stamp);
  if (!w->edges || !w->function_stamp || !w->var_stamp) return false;
  w->functions = w->function_stamp + functions;
  w->vars = w->var_stamp + vars;
  return true;
}

static void reach_end(reach *w) {
  free(w->edges);
  free(w->named);
  free(w->function_stamp);
  free(w->var_stamp);
}

/* --- sums over what is reached */

static uint64_t place(uint64_t bytes, uint64_t align, uint64_t size) {
  align = align ? align : 1;
  return ((bytes + align - 1) & ~(align - 1)) + size;
}

static uint32_t shared_bytes(const reach *w) {
  const tps_ptx_module *m = w->module;
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < w->var_count; k++) {
    const tps_ptx_var *v = &m->vars[w->vars[k]];
    if (v->space == TPS_PTX_SHARED && !v->unsized)
      bytes = place(bytes, v->align, v->size);
  }
  for (uint32_t k = 0; k < w->function_count; k++) {
    uint32_t own = m->functions[w->functions[k]].shared_bytes;
    if (own > 0) bytes = place(bytes, 16, own);
  }
  return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

/* A few registers beyond the live ranges for addresses and the call frame, as
 * compiled code shows; never more than a thread can have. */
static uint32_t register_estimate(const reach *w, const tps_ptx_function *f) {
  enum { BESIDES = 6, LEAST = 8, MOST = 255 };
  uint32_t most = 0;
  for (uint32_t k = 0; k < w->function_count; k++) {
    uint32_t own = w->module->functions[w->functions[k]].register_demand;
    if (own > most) most = own;
  }
  most += BESIDES;
  if (most < LEAST) most = LEAST;
  if (f->maxnreg > 0 && most > f->maxnreg) most = f->maxnreg;
  return most > MOST ? MOST : most;
}

static uint32_t product(const uint32_t extents[3]) {
  uint64_t n = (uint64_t)extents[0] * extents[1];
  n = n > UINT32_MAX ? UINT32_MAX : n * extents[2];
  return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* --- kernels */

static bool is_strong(uint8_t access) {
  uint8_t known = access & (TPS_PTX_ACCESS_BITS | TPS_PTX_PLAIN);
  return known > TPS_ACCESS_NONE && known <= TPS_ACCESS_BOTH;
}

static bool describe_param(tps_param *out, const tps_ptx_var *var,
                           uint8_t access) {
  *out = (tps_param){
      .type = type_text(var),
      .offset = (uint32_t)var->offset,
      .size = (uint32_t)var->size,
      .align = var->align,
      .dtype = (uint8_t)(var->count == 1 ? dtype_of(var->type) : TPS_OPAQUE),
      .certainty = TPS_BY_PTX,
      .access = access & TPS_PTX_ACCESS_BITS,
      .strong = is_strong(access),
      .handle = (uint8_t)(access >> TPS_PTX_HANDLE_SHIFT),
      .pointer = var->pointer,
      .is_struct = var->count != 1,
  };
  if (out->pointer) out->dtype = TPS_OPAQUE; /* what it points to is unknown */
  return out->type != NULL;
}

static bool describe_params(tps_kernel_desc *out, const tps_ptx_function *f,
                            const tps_ptx_access *access) {
  out->params = calloc((size_t)f->input_count + 1, sizeof *out->params);
  if (out->params == NULL) return false;
  out->param_bytes = f->input_bytes;
  for (; out->param_count < f->input_count; out->param_count++) {
    uint32_t k = out->param_count;
    if (!describe_param(&out->params[k], &f->vars[f->return_count + k],
                        access->inputs[k]))
      return false;
  }
  return true;
}

static int describe_kernel(tps_kernel_desc *out, reach *w, uint32_t number,
                           const tps_ptx_access *access) {
  const tps_ptx_function *f = &w->module->functions[number];
  walk(w, number);
  if (w->failed) return TPS_NO_HOST_MEMORY;
  out->name = strdup(f->name);
  memcpy(out->cluster, f->reqnctapercluster, sizeof out->cluster);
  out->max_threads = f->reqntid[0] ? product(f->reqntid) : product(f->maxntid);
  out->static_shared = shared_bytes(w);
  out->registers = register_estimate(w, f);
  out->local_bytes = f->local_bytes;
  if (out->name == NULL || !describe_params(out, f, &access[number]))
    return TPS_NO_HOST_MEMORY;
  return tps_signature_from_name(out);
}

static int describe_kernels(const tps_ptx_module *m, tps_image_desc *out,
                            const tps_ptx_access *access) {
  reach w = {0};
  int code = reach_begin(&w, m) ? TPS_OK : TPS_NO_HOST_MEMORY;
  out->kernels = calloc((size_t)m->function_count + 1, sizeof *out->kernels);
  if (out->kernels == NULL) code = TPS_NO_HOST_MEMORY;
  for (uint32_t k = 0; code == TPS_OK && k < m->function_count; k++)
    if (m->functions[k].entry && !m->functions[k].declared_only)
      code = describe_kernel(&out->kernels[out->kernel_count++], &w, k, access);
  reach_end(&w);
  return code;
}

/* --- variables */

/* The compiler's own: texts, variables inside functions. */
static bool is_hidden(const tps_ptx_var *var) {
  return var->linkage == 0 && (strchr(var->name, '$') != NULL ||
                               strncmp(var->name, "__unnamed_", 10) == 0);
}

/* Those that the program named and this module defines. */
static bool is_global(const tps_ptx_var *var) {
  return (var->space == TPS_PTX_GLOBAL || var->space == TPS_PTX_CONST) &&
         var->linkage != 2 && !is_hidden(var) && var->type != TPS_PTX_TEXREF &&
         var->type != TPS_PTX_SAMPLERREF && var->type != TPS_PTX_SURFREF;
}

static int describe_globals(const tps_ptx_module *m, tps_image_desc *out) {
  out->globals = calloc((size_t)m->var_count + 1, sizeof *out->globals);
  if (out->globals == NULL) return TPS_NO_HOST_MEMORY;
  for (uint32_t k = 0; k < m->var_count; k++) {
    const tps_ptx_var *var = &m->vars[k];
    if (!is_global(var)) continue;
    tps_global_desc *g = &out->globals[out->global_count++];
    *g = (tps_global_desc){
        .name = strdup(var->name),
        .plain = tps_plain_name(var->name),
        .size = var->size,
        .dtype = (uint8_t)global_dtype(var->type),
        .is_const = var->space == TPS_PTX_CONST,
    };
    if (g->name == NULL || g->plain == NULL) return TPS_NO_HOST_MEMORY;
  }
  return TPS_OK;
}

int tps_ptx_describe(const tps_ptx_module *module, tps_image_desc *out,
                     tps_error *err) {
  int code;
  *out = (tps_image_desc){.version = module->version, .target = module->target};
  tps_ptx_access *access = tps_ptx_access_of(module);
  code = access == NULL ? TPS_NO_HOST_MEMORY : TPS_OK;
  if (code == TPS_OK) code = describe_kernels(module, out, access);
  if (code == TPS_OK) code = describe_globals(module, out);
  tps_ptx_access_free(access, module);
  if (code == TPS_OK) return TPS_OK;
  tps_image_desc_free(out);
  *out = (tps_image_desc){0};
  return tps_fail(err, code, "out of host memory");
}
