/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The loads from a parameter, sorted. */
#include "ptx/fields.h"

#include <stdlib.h>
#include <string.h>

static const tps_ptx_function *find_kernel(const tps_ptx_module *module,
                                           const char *name) {
  for (uint32_t i = 0; i < module->function_count; i++) {
    const tps_ptx_function *f = &module->functions[i];
    if (f->entry && strcmp(f->name, name) == 0) return f;
  }
  return NULL;
}

/* Whether i loads from that parameter; then its elements are from *out on. */
static bool is_load(const tps_ptx_instruction *i, uint32_t param,
                    tps_field *out) {
  const tps_ptx_operand *from = &i->operands[1];
  if (i->op != TPS_PTX_OP_LD || i->space != TPS_PTX_PARAM ||
      i->operand_count < 2 || i->type_count == 0 ||
      from->kind != TPS_PTX_OPD_ADDR || from->base_kind != TPS_PTX_OPD_VAR ||
      !from->local || from->index != (int32_t)param || from->value < 0)
    return false;
  out->offset = (uint32_t)from->value;
  out->size = tps_ptx_type_size((tps_ptx_type)i->types[0]);
  return out->size > 0;
}

static int by_offset(const void *a, const void *b) {
  const tps_field *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return (x->size > y->size) - (x->size < y->size);
}

static size_t leave_each_once(tps_field *fields, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++)
    if (kept == 0 || by_offset(&fields[kept - 1], &fields[i]) != 0)
      fields[kept++] = fields[i];
  return kept;
}

/* Writes the fields, if there is where to; how many there are, repeated ones too.
 */
static size_t collect(const tps_ptx_function *f, uint32_t param,
                      tps_field *to) {
  size_t n = 0;
  tps_field first;
  for (uint32_t k = 0; k < f->instruction_count; k++) {
    const tps_ptx_instruction *i = &f->instructions[k];
    if (!is_load(i, param, &first)) continue;
    for (uint32_t e = 0; e < i->vector; e++, n++)
      if (to != NULL)
        to[n] = (tps_field){first.offset + e * first.size, first.size};
  }
  return n;
}

tps_field *tps_ptx_fields(const tps_ptx_module *module, const char *kernel,
                          uint32_t param, size_t *count) {
  const tps_ptx_function *f = find_kernel(module, kernel);
  size_t n = f != NULL && param < f->input_count ? collect(f, param, NULL) : 0;
  tps_field *fields = n > 0 ? malloc(n * sizeof *fields) : NULL;
  *count = 0;
  if (fields == NULL) return NULL;
  collect(f, param, fields);
  qsort(fields, n, sizeof *fields, by_offset);
  *count = leave_each_once(fields, n);
  return fields;
}
