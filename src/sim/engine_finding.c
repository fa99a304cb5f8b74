/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 */
#include "sim/engine_finding.h"

#include <stdarg.h>
#include <stdio.h>

#include "sim/engine_report.h"

/* What an instruction takes on the hardware: offsets look as they do there. */
#define INSN_BYTES 16

static void append(finding *f, const char *format, va_list args) {
  size_t room = sizeof f->text - f->used - 1; /* for the line's end */
  int n = vsnprintf(f->text + f->used, room, format, args);
  if (n > 0) f->used += (size_t)n < room ? (size_t)n : room - 1;
  f->text[f->used++] = '\n';
  f->text[f->used] = '\0';
}

/* FNV-1a */
static void mix_key(finding *f, const char *text) {
  for (; *text; text++)
    f->key = (f->key ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
}

void tps_sim_finding_begin(finding *f, unsigned check, const char *title, ...) {
  va_list args;
  f->check = check;
  f->key = UINT64_C(0xcbf29ce484222325) + check;
  f->used = 0;
  va_start(args, title);
  append(f, title, args);
  va_end(args);
  mix_key(f, f->text);
}

/* Lines whose end would not fit are left out. */
void tps_sim_finding_add(finding *f, const char *format, ...) {
  static const char indent[] = "    ";
  va_list args;
  if (sizeof f->text - f->used < sizeof indent + 2) return;
  memcpy(f->text + f->used, indent, sizeof indent);
  f->used += sizeof indent - 1;
  va_start(args, format);
  append(f, format, args);
  va_end(args);
}

void tps_sim_code_place(const struct tps_sim_launch *launch, const insn *i,
                        char *text, size_t size) {
  const struct tps_sim_kernel *kernel = launch->kernel;
  const function *of = tps_sim_function_of(kernel, i);
  char name[TPS_SIM_NAME_BYTES], where[600];
  tps_sim_insn_where(kernel, i, where, sizeof where);
  snprintf(text, size, "%s+0x%x in %s",
           of == kernel->main ? tps_sim_kernel_name(launch)
                              : tps_sim_readable(of->ptx->name, false, name),
           i->ptx < 0 ? 0 : (unsigned)i->ptx * INSN_BYTES, where);
}

void tps_sim_finding_at(finding *f, const engine *e, const insn *i) {
  const struct tps_sim_kernel *kernel = e->launch->kernel;
  char place[1000], line[600];
  tps_sim_code_place(e->launch, i, place, sizeof place);
  tps_sim_finding_add(f, "at %s", place);
  if (tps_sim_function_of(kernel, i) != kernel->main)
    tps_sim_finding_add(f, "in kernel %s", tps_sim_kernel_name(e->launch));
  mix_key(f, tps_sim_kernel_name(e->launch));
  mix_key(f, tps_sim_insn_where(kernel, i, line, sizeof line));
}

void tps_sim_thread_of(const engine *e, const warp *w, unsigned lane,
                       uint32_t to[3]) {
  const uint32_t *t =
      (const uint32_t *)(const void *)(e->launch->tids +
                                       (size_t)w->index * WARP_ROWS * ROW32);
  for (unsigned k = 0; k < 3; k++) to[k] = t[k * LANES + lane];
}

void tps_sim_finding_by(finding *f, const engine *e, const warp *w,
                        unsigned lane) {
  uint32_t t[3];
  const uint32_t *b = e->block->ctaid;
  tps_sim_thread_of(e, w, lane, t);
  tps_sim_finding_add(f, "by thread (%u,%u,%u) in block (%u,%u,%u)", t[0], t[1],
                      t[2], b[0], b[1], b[2]);
}

void tps_sim_finding_tell(finding *f, const tps_op *op) {
  char where[512];
  if (!op) return;
  if (tps_op_where(op, where, sizeof where)[0] != '\0')
    tps_sim_finding_add(f, "launched at %s", where);
  tps_finding told = {
      .check = f->check, .op = op, .text = f->text, .key = f->key};
  tps_watch_found(&told);
}
