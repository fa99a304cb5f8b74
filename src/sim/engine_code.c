/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A module on a device: its variables, placed and initialised, and its kernels,
 * decoded when first asked for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/carrier.h"
#include "sim/engine_watch.h"

/* --- variables ----------------------------------------------------------- */

static bool is_placed(const tps_ptx_var *v) {
  return v->space == TPS_PTX_GLOBAL || v->space == TPS_PTX_CONST;
}

static tps_sim_memory_kind kind_of(const tps_ptx_var *v) {
  if (strncmp(v->name, TPS_CARRIER_PREFIX, strlen(TPS_CARRIER_PREFIX)) == 0)
    return TPS_SIM_INTERNAL;
  return v->space == TPS_PTX_CONST ? TPS_SIM_CONSTANT : TPS_SIM_VARIABLE;
}

static int place(struct tps_sim_code *code, const tps_ptx_var *v,
                 tps_sim_allocation **out, tps_error *err) {
  if (!is_placed(v)) return 0;
  if (v->linkage == 2 && !code->unlinked)
    return tps_fail(err, TPS_INVALID_PTX,
                    "variable '%s' is declared but not defined", v->name);
  int status = tps_sim_allocate(code->space, v->size ? v->size : 1, kind_of(v),
                                out, err);
  if (status) return status;
  if (v->init) memcpy((*out)->host, v->init, v->size); /* else it is zero */
  return 0;
}

static int place_variables(struct tps_sim_code *code, tps_error *err) {
  const tps_ptx_module *m = code->module;
  int status = 0;
  for (uint32_t k = 0; k < m->var_count && !status; k++)
    status = place(code, &m->vars[k], &code->globals[k], err);
  for (uint32_t k = 0; k < m->function_count && !status; k++) {
    const tps_ptx_function *f = &m->functions[k];
    code->locals[k] = calloc(f->var_count + 1, sizeof *code->locals[k]);
    if (!code->locals[k])
      return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
    for (uint32_t n = 0; n < f->var_count && !status; n++)
      if (f->vars[n].role == TPS_PTX_FUNCTION_VAR)
        status = place(code, &f->vars[n], &code->locals[k][n], err);
  }
  return status;
}

static void relocate(struct tps_sim_code *code, const tps_ptx_var *v,
                     const tps_sim_allocation *a) {
  for (uint32_t k = 0; k < v->relocation_count; k++) {
    const tps_ptx_relocation *r = &v->relocations[k];
    uint64_t value = (uint64_t)r->addend;
    if (r->function)
      value += TPS_SIM_CODE_BASE + 16 * (uint64_t)(uint32_t)r->index;
    else if (code->globals[r->index]) value += code->globals[r->index]->base;
    else if (r->generic) value += TPS_SIM_SHARED_BASE;
    value >>= r->shift;
    memcpy(a->host + r->offset, &value, r->size);
  }
}

static void relocate_all(struct tps_sim_code *code) {
  const tps_ptx_module *m = code->module;
  for (uint32_t k = 0; k < m->var_count; k++)
    if (code->globals[k]) relocate(code, &m->vars[k], code->globals[k]);
  for (uint32_t k = 0; k < m->function_count; k++)
    for (uint32_t n = 0; n < m->functions[k].var_count; n++)
      if (code->locals[k][n])
        relocate(code, &m->functions[k].vars[n], code->locals[k][n]);
}

/* --- the code ------------------------------------------------------------ */

static int allocate(struct tps_sim_code *code, tps_error *err) {
  const tps_ptx_module *m = code->module;
  code->globals = calloc(m->var_count + 1, sizeof *code->globals);
  code->locals = calloc(m->function_count + 1, sizeof *code->locals);
  code->kernels = calloc(m->function_count + 1, sizeof *code->kernels);
  code->watched = calloc(m->function_count + 1, sizeof *code->watched);
  if (!code->globals || !code->locals || !code->kernels || !code->watched)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  return 0;
}

static int fill(struct tps_sim_code *code, tps_error *err) {
  const tps_ptx_module *m = code->module;
  if (m->target > (unsigned)code->capability)
    return tps_fail(err, TPS_NO_BINARY_FOR_GPU,
                    "the module is for sm_%u (the simulated device has "
                    "capability %d.%d)",
                    m->target, code->capability / 10, code->capability % 10);
  int status = allocate(code, err);
  if (!status) status = place_variables(code, err);
  if (status) return status;
  relocate_all(code);
  return tps_sim_check_module(code, err);
}

int tps_sim_code_new(tps_ptx_module *module, tps_sim_space *space,
                     int capability, bool unlinked, tps_sim_code **out,
                     tps_error *err) {
  struct tps_sim_code *code = calloc(1, sizeof *code);
  if (!code) {
    tps_ptx_free(module);
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  }
  code->module = module;
  code->space = space;
  code->capability = capability;
  code->unlinked = unlinked;
  code->table = tps_sim_handlers();
  pthread_mutex_init(&code->lock, NULL);
  int status = fill(code, err);
  if (status) tps_sim_code_destroy(code);
  else *out = code;
  return status;
}

void tps_sim_code_destroy(tps_sim_code *code) {
  if (!code) return;
  const tps_ptx_module *m = code->module;
  for (uint32_t k = 0; code->kernels && k < m->function_count; k++)
    tps_sim_kernel_destroy(code->kernels[k]);
  for (uint32_t k = 0; code->watched && k < m->function_count; k++)
    tps_sim_kernel_destroy(code->watched[k]);
  for (uint32_t k = 0; code->globals && k < m->var_count; k++)
    if (code->globals[k]) tps_sim_free(code->space, code->globals[k], "", 0);
  for (uint32_t k = 0; code->locals && k < m->function_count; k++) {
    for (uint32_t n = 0; code->locals[k] && n < m->functions[k].var_count; n++)
      if (code->locals[k][n])
        tps_sim_free(code->space, code->locals[k][n], "", 0);
    free(code->locals[k]);
  }
  free(code->globals);
  free(code->locals);
  free(code->kernels);
  free(code->watched);
  pthread_mutex_destroy(&code->lock);
  tps_ptx_free(code->module);
  free(code);
}

static uint32_t find_kernel(const tps_ptx_module *m, const char *name) {
  uint32_t k = 0;
  while (k < m->function_count &&
         (!m->functions[k].entry || m->functions[k].declared_only ||
          strcmp(m->functions[k].name, name) != 0))
    k++;
  return k;
}

int tps_sim_code_kernel(tps_sim_code *code, const char *name,
                        const tps_sim_kernel **out, tps_error *err) {
  const tps_ptx_module *m = code->module;
  uint32_t k = find_kernel(m, name);
  int status = 0;
  *out = NULL;
  if (k == m->function_count)
    return tps_fail(err, TPS_NOT_FOUND, "no kernel '%s' in the module", name);
  pthread_mutex_lock(&code->lock);
  if (code->kernels[k] == NULL)
    status =
        tps_sim_decode_kernel(code, &m->functions[k], &code->kernels[k], err);
  *out = code->kernels[k];
  pthread_mutex_unlock(&code->lock);
  return status;
}

static int make_watched(struct tps_sim_code *code, uint32_t k, tps_error *err) {
  struct tps_sim_kernel *kernel = NULL;
  int status =
      tps_sim_decode_kernel(code, &code->module->functions[k], &kernel, err);
  if (status) return status;
  if (!tps_sim_watch_code(kernel)) {
    tps_sim_kernel_destroy(kernel);
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  }
  code->watched[k] = kernel;
  return 0;
}

int tps_sim_code_watched(const struct tps_sim_kernel *kernel,
                         const struct tps_sim_kernel **out, tps_error *err) {
  struct tps_sim_code *code = kernel->code;
  uint32_t k = (uint32_t)(kernel->ptx - code->module->functions);
  pthread_mutex_lock(&code->lock);
  int status = code->watched[k] ? 0 : make_watched(code, k, err);
  *out = code->watched[k];
  pthread_mutex_unlock(&code->lock);
  return status;
}

tps_sim_allocation *tps_sim_code_global(const tps_sim_code *code,
                                        const char *name) {
  const tps_ptx_module *m = code->module;
  for (uint32_t k = 0; k < m->var_count; k++)
    if (code->globals[k] && !strcmp(m->vars[k].name, name))
      return code->globals[k];
  return NULL;
}

static int64_t constant_bytes(const tps_ptx_module *m) {
  int64_t bytes = 0;
  for (uint32_t k = 0; k < m->var_count; k++)
    if (m->vars[k].space == TPS_PTX_CONST) bytes += (int64_t)m->vars[k].size;
  return bytes;
}

/* The most threads that .maxntid or .reqntid allow. */
static int max_threads(const tps_ptx_function *f) {
  const uint32_t *n = f->reqntid[0] ? f->reqntid : f->maxntid;
  uint64_t threads = 1;
  for (unsigned k = 0; k < 3; k++) threads *= n[k] ? n[k] : 1;
  return n[0] && threads < 1024 ? (int)threads : 1024;
}

void tps_sim_kernel_describe(const tps_sim_kernel *kernel,
                             tps_sim_kernel_info *out) {
  const tps_ptx_function *f = kernel->ptx;
  out->name = kernel->name;
  out->param_bytes = f->input_bytes;
  out->registers = (int)f->register_demand;
  out->static_shared = kernel->static_shared;
  out->local_bytes = kernel->local_bytes;
  out->const_bytes = constant_bytes(kernel->code->module);
  out->max_threads = max_threads(f);
}
