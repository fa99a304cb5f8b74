/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The opcodes of a module, sorted, each with its fidelity.
 */
#include "ptx/fidelity.h"

#include <stdlib.h>
#include <string.h>

/* An opcode in the module's text. */
typedef struct word {
  const char *text;
  uint32_t size;
  bool approximate;
} word;

/* A product of float matrices: it is summed in as many ways as there are
 * generations of GPUs. float64 is a chain of fused multiply-adds on all. */
static bool is_float_product(const tps_ptx_instruction *i) {
  bool product = i->op == TPS_PTX_OP_MMA || tps_ptx_has(i, TPS_PTX_M_MMA) ||
                 tps_ptx_has(i, TPS_PTX_M_MMA_ASYNC);
  return product && i->type_count > 0 &&
         (i->types[0] == TPS_PTX_F32 || i->types[0] == TPS_PTX_F16);
}

bool tps_ptx_approximate(const tps_ptx_instruction *i) {
  switch (i->op) {
  case TPS_PTX_OP_SIN:
  case TPS_PTX_OP_COS:
  case TPS_PTX_OP_LG2:
  case TPS_PTX_OP_EX2:
  case TPS_PTX_OP_TANH: return true;
  case TPS_PTX_OP_DIV:
    if (tps_ptx_has(i, TPS_PTX_M_FULL)) return true;
    break;
  case TPS_PTX_OP_MMA:
  case TPS_PTX_OP_WMMA:
  case TPS_PTX_OP_WGMMA: return is_float_product(i);
  default: break;
  }
  return tps_ptx_has(i, TPS_PTX_M_APPROX);
}

static int compare(const void *a, const void *b) {
  const word *x = a, *y = b;
  uint32_t size = x->size < y->size ? x->size : y->size;
  int order = memcmp(x->text, y->text, size);
  if (order != 0) return order;
  return x->size < y->size ? -1 : x->size > y->size;
}

static size_t count_instructions(const tps_ptx_module *module) {
  size_t count = 0;
  for (uint32_t k = 0; k < module->function_count; k++)
    count += module->functions[k].instruction_count;
  return count;
}

/* Every instruction's opcode; what the reader added itself has none. */
static size_t collect(const tps_ptx_module *module, word *words) {
  size_t count = 0;
  for (uint32_t k = 0; k < module->function_count; k++) {
    const tps_ptx_function *f = &module->functions[k];
    for (uint32_t n = 0; n < f->instruction_count; n++) {
      const tps_ptx_instruction *i = &f->instructions[n];
      if (i->text_size > 0)
        words[count++] = (word){module->text + i->text, i->text_size,
                                tps_ptx_approximate(i)};
    }
  }
  return count;
}

static size_t leave_each_once(word *words, size_t count) {
  size_t kept = 0;
  for (size_t k = 0; k < count; k++)
    if (kept == 0 || compare(&words[kept - 1], &words[k]) != 0)
      words[kept++] = words[k];
  return kept;
}

static tps_fidelity *copy(const word *words, size_t count) {
  tps_fidelity *f = calloc(1, sizeof *f + count * sizeof *f->opcodes);
  if (f == NULL) return NULL;
  for (; f->count < count; f->count++) {
    const word *w = &words[f->count];
    char *name = strndup(w->text, w->size);
    if (name == NULL) {
      tps_ptx_fidelity_free(f);
      return NULL;
    }
    f->opcodes[f->count] = (tps_opcode){name, w->approximate};
  }
  return f;
}

tps_fidelity *tps_ptx_fidelity_of(const tps_ptx_module *module) {
  word *words = malloc((count_instructions(module) + 1) * sizeof *words);
  if (words == NULL) return NULL;
  size_t count = collect(module, words);
  qsort(words, count, sizeof *words, compare);
  tps_fidelity *f = copy(words, leave_each_once(words, count));
  free(words);
  return f;
}

void tps_ptx_fidelity_free(tps_fidelity *f) {
  if (f == NULL) return;
  for (size_t k = 0; k < f->count; k++) free(f->opcodes[k].name);
  free(f);
}
