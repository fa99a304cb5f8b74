/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What faults say of memory. Texts name the thing itself where they can: a
 * buffer by its element type and the line that made it, a variable or a shared
 * array by its name in the source. What is past an end is counted from the last
 * byte before it, as compute-sanitizer does: the next one is 1 byte after.
 */
#include "sim/engine_report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mangle.h"

#define NAME_BYTES TPS_SIM_NAME_BYTES

static const char *const kind_names[] = {"load", "store", "atomic operation"};

_Noreturn static void end_with(const access *a, int code, const char *why) {
  tps_sim_fault_as(a->e, a->i, (int)a->lane, code, FAULT_UNTOLD, NULL,
                   "%s of %u byte%s at address 0x%llx: %s", kind_names[a->kind],
                   a->size, a->size == 1 ? "" : "s",
                   (unsigned long long)a->address, why);
}

_Noreturn void tps_sim_bad_access(const access *a, int code, const char *why) {
  tps_sim_tell_access(a, code, why);
  end_with(a, code, why);
}

_Noreturn void tps_sim_bad_alignment(const access *a) {
  char text[80];
  snprintf(text, sizeof text, "misaligned (a multiple of %u is needed)",
           a->size);
  tps_sim_bad_access(a, TPS_MISALIGNED_ADDRESS, text);
}

/* "1 byte", "12 bytes" */
static const char *bytes_text(uint64_t bytes, char *text, size_t size) {
  snprintf(text, size, "%llu byte%s", (unsigned long long)bytes,
           bytes == 1 ? "" : "s");
  return text;
}

/* --- names --------------------------------------------------------------- */

const char *tps_sim_readable(const char *symbol, bool brief,
                             char text[NAME_BYTES]) {
  snprintf(text, NAME_BYTES, "%s", symbol);
  tps_mangle *m = strncmp(symbol, "_Z", 2) == 0 ? tps_mangle_new() : NULL;
  tps_node *name, *params;
  bool is_function;
  if (m && tps_mangle_name(m, symbol, &name, &params, &is_function)) {
    size_t size;
    const char *last = brief ? tps_mangle_identifier(name, &size) : NULL;
    char *whole = last ? NULL : tps_mangle_text(m, name, true);
    if (last) snprintf(text, NAME_BYTES, "%.*s", (int)size, last);
    else if (whole) snprintf(text, NAME_BYTES, "%s", whole);
    free(whole);
  }
  tps_mangle_free(m);
  return text;
}

/* --- global memory ------------------------------------------------------- */

/* The name of a variable among those that one list placed, or NULL. */
static const char *name_among(const tps_ptx_var *vars, uint32_t count,
                              tps_sim_allocation *const *placed,
                              const tps_sim_allocation *m) {
  for (uint32_t k = 0; placed && k < count; k++)
    if (placed[k] == m) return vars[k].name;
  return NULL;
}

/* Of this launch's module; another module's variables stay nameless. */
static const char *name_of(const engine *e, const tps_sim_allocation *m) {
  const struct tps_sim_code *code = e->launch->kernel->code;
  const tps_ptx_module *ptx = code->module;
  const char *name = name_among(ptx->vars, ptx->var_count, code->globals, m);
  for (uint32_t k = 0; !name && k < ptx->function_count; k++) {
    const tps_ptx_function *f = &ptx->functions[k];
    name = name_among(f->vars, f->var_count, code->locals[k], m);
  }
  return name;
}

const char *tps_sim_describe(const engine *e, const tps_sim_allocation *m,
                             char *text, size_t size) {
  static const char *const kinds[] = {
      "allocation", "pinned allocation", "managed allocation",
      "variable",   "constant",          "heap block",
      "array",      "texture",           "surface"};
  const char *symbol = name_of(e, m);
  char name[NAME_BYTES], quoted[NAME_BYTES + 4] = "", length[32];
  char element[64] = "", made[400] = "";
  if (symbol)
    snprintf(quoted, sizeof quoted, " '%s'",
             tps_sim_readable(symbol, false, name));
  if (m->element[0])
    snprintf(element, sizeof element, " (%s buffer)", m->element);
  if (m->source[0])
    snprintf(made, sizeof made, ", made at %s:%d", m->source, (int)m->line);
  snprintf(text, size, "%s%s at 0x%llx of %s%s%s", kinds[m->kind], quoted,
           (unsigned long long)m->base,
           bytes_text(m->size, length, sizeof length), element, made);
  return text;
}

_Noreturn void tps_sim_bad_memory(const access *a,
                                  const tps_sim_allocation *m) {
  char what[800], by[400] = "", text[1400];
  tps_sim_describe(a->e, m, what, sizeof what);
  if (m->free_source[0])
    snprintf(by, sizeof by, " at %s:%d", m->free_source, (int)m->free_line);
  snprintf(text, sizeof text, "the %s, was freed%s", what, by);
  tps_sim_tell_memory(a, m);
  end_with(a, TPS_ILLEGAL_ADDRESS, text);
}

_Noreturn void tps_sim_bad_address(const access *a, uint64_t address) {
  char what[800], text[1400], distance[32];
  tps_sim_space *space = a->e->launch->space;
  if (address < 4096)
    tps_sim_bad_access(a, TPS_ILLEGAL_ADDRESS, "a null pointer");
  tps_sim_allocation *m = tps_sim_find(space, address);
  if (!m || m->kind == TPS_SIM_INTERNAL)
    m = tps_sim_find_nearest(space, address);
  if (!m) tps_sim_bad_access(a, TPS_ILLEGAL_ADDRESS, "no memory is allocated");
  if (!atomic_load(&m->live)) tps_sim_bad_memory(a, m);
  tps_sim_describe(a->e, m, what, sizeof what);
  uint64_t end = m->base + m->size;
  bool before = address < m->base, inside = !before && address < end;
  uint64_t gap = before ? m->base - address : address - end + 1;
  if (inside) snprintf(text, sizeof text, "it crosses the end of the %s", what);
  else
    snprintf(text, sizeof text, "%s %s the nearest %s",
             bytes_text(gap, distance, sizeof distance),
             before ? "before" : "after", what);
  tps_sim_tell_memory(a, m);
  end_with(a, TPS_ILLEGAL_ADDRESS, text);
}

/* --- shared and local memory --------------------------------------------- */

/* The array that ends last at or before `offset`, or that holds it. */
static const shared_array *array_before(const struct tps_sim_kernel *kernel,
                                        uint64_t offset) {
  const shared_array *best = NULL;
  for (uint32_t k = 0; k < kernel->array_count; k++) {
    const shared_array *s = &kernel->arrays[k];
    if (s->at <= offset && (!best || s->at >= best->at)) best = s;
  }
  return best;
}

static uint64_t end_of(const shared_array *s, uint64_t total) {
  if (!s->unsized) return s->at + s->size;
  return total > s->at ? total : s->at;
}

void tps_sim_describe_shared(const struct tps_sim_kernel *kernel,
                             uint64_t total, uint64_t offset, char *text,
                             size_t size) {
  const shared_array *s = array_before(kernel, offset);
  char name[NAME_BYTES], bytes[32];
  if (!s || offset >= end_of(s, total)) {
    snprintf(text, size, "shared memory of %s",
             bytes_text(total, bytes, sizeof bytes));
    return;
  }
  snprintf(text, size, "%sshared array '%s' of %s",
           s->unsized ? "dynamic " : "", tps_sim_readable(s->name, true, name),
           bytes_text(end_of(s, total) - s->at, bytes, sizeof bytes));
}

_Noreturn void tps_sim_bad_shared(const access *a, uint64_t offset) {
  const struct tps_sim_kernel *kernel = a->e->launch->kernel;
  const shared_array *s = array_before(kernel, offset);
  uint64_t total = a->e->shared.size, end = total;
  char name[NAME_BYTES], gap[32], text[400], size[32], all[32], array[200] = "";
  if (s) {
    end = end_of(s, total);
    snprintf(array, sizeof array, "%sshared array '%s' of %s (",
             s->unsized ? "dynamic " : "",
             tps_sim_readable(s->name, true, name),
             bytes_text(end - s->at, size, sizeof size));
  }
  if (offset < end)
    snprintf(text, sizeof text, "it crosses the end of %s",
             s ? array : "the block's shared memory (");
  else
    snprintf(text, sizeof text, "%s past %s",
             bytes_text(offset - end + 1, gap, sizeof gap),
             s ? array : "the block's shared memory (");
  size_t used = strlen(text);
  snprintf(text + used, sizeof text - used,
           "the block has %s of shared memory)",
           bytes_text(total, all, sizeof all));
  tps_sim_bad_access(a, TPS_ILLEGAL_ADDRESS, text);
}

_Noreturn void tps_sim_bad_local(const access *a, uint64_t offset,
                                 uint64_t limit) {
  char text[200], gap[32], size[32];
  if (offset < limit) snprintf(gap, sizeof gap, "it crosses the end");
  else bytes_text(offset - limit + 1, gap, sizeof gap);
  snprintf(text, sizeof text,
           "%s%s of the %s of local memory (stack) that the thread uses here",
           gap, offset < limit ? "" : " past the end",
           bytes_text(limit, size, sizeof size));
  tps_sim_bad_access(a, TPS_ILLEGAL_ADDRESS, text);
}

_Noreturn void tps_sim_bad_call(engine *e, const insn *i, unsigned lane,
                                const char *callee, uint64_t limit) {
  char name[NAME_BYTES];
  tps_sim_fault_as(
      e, i, (int)lane, TPS_ILLEGAL_ADDRESS, FAULT_MEMORY, "Stack overflow",
      "stack overflow: call of '%s' at depth %u needs more than the "
      "%llu bytes of stack of a thread",
      tps_sim_readable(callee, false, name), e->group->depth + 1,
      (unsigned long long)limit);
}
