/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Faults: where in the source, by which thread of which block, and why. The
 * launch keeps the first one; the block that met it ends by a jump back into
 * tps_sim_block_run.
 */
#include <stdarg.h>
#include <stdio.h>

#include "sim/engine_finding.h"
#include "sim/engine_report.h"
#include "sim/engine_synccheck.h"

const function *tps_sim_function_of(const struct tps_sim_kernel *kernel,
                                    const insn *i) {
  if (i >= kernel->main->entry && i < kernel->main->end) return kernel->main;
  uint32_t count = kernel->code->module->function_count;
  for (uint32_t k = 0; k < count; k++) {
    const function *f = kernel->functions[k];
    if (f && i >= f->entry && i < f->end) return f;
  }
  return kernel->main;
}

const char *tps_sim_insn_where(const struct tps_sim_kernel *kernel,
                               const insn *i, char *buffer, size_t size) {
  const function *f = tps_sim_function_of(kernel, i);
  if (i->ptx < 0 || (uint32_t)i->ptx >= f->ptx->instruction_count) {
    snprintf(buffer, size, "%s", f->ptx->name);
    return buffer;
  }
  return tps_ptx_where(kernel->code->module, &f->ptx->instructions[i->ptx],
                       buffer, size);
}

const char *tps_sim_kernel_name(const struct tps_sim_launch *launch) {
  const tps_op *op = launch->config.op;
  return op && op->kernel ? op->kernel : launch->kernel->name;
}

void tps_sim_launch_fail(struct tps_sim_launch *launch, int code,
                         const char *message) {
  pthread_mutex_lock(&launch->lock);
  if (!launch->faulted) {
    tps_error *err = &launch->fault;
    tps_fail(err, code, "%s", message);
    snprintf(err->kernel, sizeof err->kernel, "%s",
             tps_sim_kernel_name(launch));
    if (launch->config.op)
      tps_op_where(launch->config.op, err->where, sizeof err->where);
    launch->faulted = true;
  }
  pthread_mutex_unlock(&launch->lock);
  atomic_store(&launch->stop, true);
}

/* "block (1,0,0), thread (5,0,0), saxpy.cu:4" */
static void describe_place(const engine *e, const insn *i, int lane, char *text,
                           size_t size) {
  const uint32_t *b = e->block->ctaid;
  char thread[80] = "", where[600] = "";
  uint32_t t[3];
  if (lane >= 0 && e->warp) {
    tps_sim_thread_of(e, e->warp, (unsigned)lane, t);
    snprintf(thread, sizeof thread, ", thread (%u,%u,%u)", t[0], t[1], t[2]);
  }
  if (i) tps_sim_insn_where(e->launch->kernel, i, where, sizeof where);
  snprintf(text, size, "block (%u,%u,%u)%s%s%s", b[0], b[1], b[2], thread,
           i ? ", " : "", where);
}

/* A group that could go on, else any; NULL when all have ended. */
static const group *some_group(tps_sim_block *block, warp **of) {
  const group *any = NULL;
  for (uint32_t k = 0; k < block->launch->warps; k++)
    for (uint32_t n = 0; n < block->warps[k].group_count; n++) {
      const group *g = &block->warps[k].groups[n];
      if (any && g->state != RUNS) continue;
      any = g;
      *of = &block->warps[k];
      if (g->state == RUNS) return g;
    }
  return any;
}

void tps_sim_block_place(tps_sim_block *block, char *text, size_t size) {
  warp *w = NULL;
  const group *g = some_group(block, &w);
  block->e.warp = w;
  describe_place(&block->e, g ? g->pc : NULL, g ? __builtin_ctz(g->mask) : -1,
                 text, size);
}

/* Faults of memory of any kind. */
static bool is_memory(int code) {
  return code == TPS_ILLEGAL_ADDRESS || code == TPS_MISALIGNED_ADDRESS;
}

static void tell(const engine *e, const insn *i, int lane, int code,
                 fault_told as, const char *title, const char *what) {
  if (as == FAULT_BARRIER) tps_sim_tell_sync(e, i, e->warp, lane, title, what);
  else if (as == FAULT_MEMORY || (as == FAULT_PLAIN && is_memory(code)))
    tps_sim_tell_fault(e, i, lane, title, what);
}

_Noreturn void tps_sim_fault_as(engine *e, const insn *i, int lane, int code,
                                fault_told as, const char *title,
                                const char *format, ...) {
  char what[1700], place[900], message[2800];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  tell(e, i, lane, code, as, title, what);
  describe_place(e, i, lane, place, sizeof place);
  snprintf(message, sizeof message, "kernel '%s', %s: %s",
           tps_sim_kernel_name(e->launch), place, what);
  tps_sim_launch_fail(e->block->launch, code, message);
  longjmp(e->block->fault, 1);
}
