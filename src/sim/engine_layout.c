/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Which functions a kernel can reach, and where their shared variables lie. A
 * list instead of recursion: a chain of calls may be as long as the text.
 */
#include <stdlib.h>

#include "sim/engine_decode.h"

/* --- what a kernel reaches ----------------------------------------------- */

static void reach(builder *b, uint32_t index) {
  const tps_ptx_function *fn = &b->module->functions[index];
  if (b->kernel->functions[index] || fn->declared_only || b->failed) return;
  function *f = calloc(1, sizeof *f);
  if (!f) {
    tps_sim_no_memory(b);
    return;
  }
  f->ptx = fn;
  f->index = index;
  b->kernel->functions[index] = f;
  b->queue[b->queued++] = index;
}

static void reach_operand(builder *b, const tps_ptx_function *fn,
                          const ptx_opd *o) {
  if (o->kind == TPS_PTX_OPD_FUNC) reach(b, (uint32_t)o->index);
  for (unsigned k = 0; is_group(o) && k < o->count; k++)
    reach_operand(b, fn, &fn->parts[o->first + (int32_t)k]);
}

/* A call through a register may go to any function whose address is taken. */
static void reach_taken(builder *b) {
  const tps_ptx_module *m = b->module;
  if (b->taken) return;
  b->taken = true;
  for (uint32_t k = 0; k < m->var_count; k++)
    for (uint32_t n = 0; n < m->vars[k].relocation_count; n++)
      if (m->vars[k].relocations[n].function)
        reach(b, (uint32_t)m->vars[k].relocations[n].index);
  for (uint32_t k = 0; k < m->function_count; k++) {
    const tps_ptx_function *fn = &m->functions[k];
    for (uint32_t n = 0; n < fn->instruction_count; n++) {
      const ptx_insn *p = &fn->instructions[n];
      if (p->op == TPS_PTX_OP_CALL) continue;
      for (unsigned o = 0; o < p->operand_count; o++)
        reach_operand(b, fn, &p->operands[o]);
    }
  }
}

static void reach_from(builder *b, const tps_ptx_function *fn) {
  bool indirect = false;
  for (uint32_t k = 0; k < fn->instruction_count; k++) {
    const ptx_insn *p = &fn->instructions[k];
    for (unsigned n = 0; n < p->operand_count; n++)
      reach_operand(b, fn, &p->operands[n]);
    if (p->op == TPS_PTX_OP_CALL && p->operands[1].kind == TPS_PTX_OPD_REG)
      indirect = true;
  }
  if (indirect) reach_taken(b);
}

/* From the kernel, or from all kernels of the module; others may call the functions
 * of one that is yet to be linked. */
static void reach_all(builder *b, const tps_ptx_function *entry) {
  const tps_ptx_module *m = b->module;
  for (uint32_t k = 0; k < m->function_count; k++)
    if (entry ? entry == &m->functions[k]
              : m->functions[k].entry || b->code->unlinked)
      reach(b, k);
  for (uint32_t k = 0; k < b->queued; k++)
    reach_from(b, &m->functions[b->queue[k]]);
}

/* --- shared variables ---------------------------------------------------- */

#define UNPLACED UINT32_MAX

/* Notes a variable for reports, which do without where there is no memory. */
static void note_shared(builder *b, const tps_ptx_var *v, uint32_t at) {
  struct tps_sim_kernel *k = b->kernel;
  for (uint32_t n = 0; n < k->array_count; n++)
    if (k->arrays[n].name == v->name) return;
  shared_array *arrays =
      realloc(k->arrays, (k->array_count + 1) * sizeof *arrays);
  if (!arrays) return;
  k->arrays = arrays;
  arrays[k->array_count++] = (shared_array){v->name, at, v->size, v->unsized};
}

static void place_shared(builder *b, const tps_ptx_var *v, uint32_t *offset,
                         uint32_t *dynamic_align) {
  uint32_t align = v->align ? v->align : 1;
  if (v->space != TPS_PTX_SHARED || *offset != UNPLACED) return;
  if (v->unsized) {
    note_shared(b, v, 0);
    if (align > *dynamic_align) *dynamic_align = align;
    return;
  }
  b->shared_bytes = (b->shared_bytes + align - 1) & ~((uint64_t)align - 1);
  *offset = (uint32_t)b->shared_bytes; /* what is too large is refused */
  note_shared(b, v, *offset);
  b->shared_bytes += v->size;
}

static void place_used(builder *b, const tps_ptx_function *fn, const ptx_opd *o,
                       uint32_t *dynamic_align) {
  bool named = o->kind == TPS_PTX_OPD_VAR ||
               (o->kind == TPS_PTX_OPD_ADDR && o->base_kind == TPS_PTX_OPD_VAR);
  if (named && !o->local)
    place_shared(b, &b->module->vars[o->index], &b->shared_at[o->index],
                 dynamic_align);
  for (unsigned k = 0; is_group(o) && k < o->count; k++)
    place_used(b, fn, &fn->parts[o->first + (int32_t)k], dynamic_align);
}

static void place_of_function(builder *b, uint32_t index,
                              uint32_t *dynamic_align) {
  const tps_ptx_function *fn = &b->module->functions[index];
  uint32_t *own = malloc((fn->var_count + 1) * sizeof *own);
  b->local_shared[index] = own;
  if (!own) {
    tps_sim_no_memory(b);
    return;
  }
  for (uint32_t k = 0; k < fn->var_count; k++) {
    own[k] = UNPLACED;
    place_shared(b, &fn->vars[k], &own[k], dynamic_align);
  }
  for (uint32_t k = 0; k < fn->instruction_count; k++) {
    const ptx_insn *p = &fn->instructions[k];
    for (unsigned n = 0; n < p->operand_count; n++)
      place_used(b, fn, &p->operands[n], dynamic_align);
  }
}

/* What has no place of its own is dynamic. */
static void place_dynamic(builder *b, uint32_t align) {
  const tps_ptx_module *m = b->module;
  uint32_t at = ((uint32_t)b->shared_bytes + align - 1) & ~(align - 1);
  b->kernel->static_shared = (uint32_t)b->shared_bytes;
  b->kernel->dynamic_at = at;
  for (uint32_t k = 0; k < b->kernel->array_count; k++)
    if (b->kernel->arrays[k].unsized) b->kernel->arrays[k].at = at;
  for (uint32_t k = 0; k < m->var_count; k++)
    if (b->shared_at[k] == UNPLACED) b->shared_at[k] = at;
  for (uint32_t k = 0; k < m->function_count; k++)
    for (uint32_t n = 0; b->local_shared[k] && n < m->functions[k].var_count;
         n++)
      if (b->local_shared[k][n] == UNPLACED) b->local_shared[k][n] = at;
}

void tps_sim_layout(builder *b, const tps_ptx_function *entry) {
  const tps_ptx_module *m = b->module;
  uint32_t align = 16;
  reach_all(b, entry);
  for (uint32_t k = 0; k < m->var_count; k++) b->shared_at[k] = UNPLACED;
  uint32_t first = b->queued > 0 ? b->queue[0] : UINT32_MAX;
  if (!b->failed && b->queued > 0) place_of_function(b, first, &align);
  for (uint32_t k = 0; k < m->function_count && !b->failed; k++)
    if (b->kernel->functions[k] && k != first) place_of_function(b, k, &align);
  if (b->queued > 0) b->kernel->main = b->kernel->functions[first];
  if (!b->failed) place_dynamic(b, align);
}

bool tps_sim_shared_limit(builder *b) {
  if (b->failed || b->shared_bytes <= MOST_SHARED) return b->failed != 0;
  b->failed = tps_fail(b->err, TPS_INVALID_PTX,
                       "kernel '%s': %llu bytes of static shared memory (%u "
                       "are allowed)",
                       b->kernel->name, (unsigned long long)b->shared_bytes,
                       MOST_SHARED);
  return true;
}
