/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Faults of memory as findings (TPS_WATCH_MEMORY), told just before they end the
 * launch.
 */
#include <stdio.h>

#include "sim/engine_finding.h"
#include "sim/engine_report.h"

static bool within(uint64_t address, uint64_t base, uint64_t size) {
  return address - base < size;
}

/* As CUDA C++ qualifies what lies there. */
static const char *space_name(const access *a) {
  switch (a->i->space) {
  case TPS_PTX_SHARED:
  case TPS_PTX_SHARED_CLUSTER: return "__shared__";
  case TPS_PTX_LOCAL: return "__local__";
  case TPS_PTX_PARAM: return "__param__";
  case TPS_PTX_CONST: return "__constant__";
  case TPS_PTX_GENERIC: break;
  default: return "__global__";
  }
  if (within(a->address, TPS_SIM_SHARED_BASE, TPS_SIM_SHARED_SIZE))
    return "__shared__";
  if (within(a->address, TPS_SIM_LOCAL_BASE, TPS_SIM_LOCAL_SIZE))
    return "__local__";
  if (within(a->address, TPS_SIM_PARAM_BASE, TPS_SIM_PARAM_SIZE))
    return "__param__";
  return "__global__";
}

static void begin(finding *f, const access *a, const char *is) {
  static const char *const kinds[] = {"read", "write", "atomic"};
  tps_sim_finding_begin(f, TPS_WATCH_MEMORY, "Invalid %s %s of size %u bytes",
                        space_name(a), kinds[a->kind], a->size);
  tps_sim_finding_at(f, a->e, a->i);
  tps_sim_finding_by(f, a->e, a->e->warp, a->lane);
  tps_sim_finding_add(f, "Access to 0x%llx is %s",
                      (unsigned long long)a->address, is);
}

/* Who made the memory and who freed it, as far as that is known. */
static void add_history(finding *f, const tps_sim_allocation *m) {
  const char *element = m->element;
  if (m->source[0])
    tps_sim_finding_add(f, "made at %s:%d%s%s%s", m->source, (int)m->line,
                        element[0] ? " (" : "", element,
                        element[0] ? " buffer)" : "");
  if (!atomic_load(&m->live) && m->free_source[0])
    tps_sim_finding_add(f, "freed at %s:%d", m->free_source, (int)m->free_line);
}

void tps_sim_finding_memory(finding *f, const tps_sim_allocation *m,
                            uint64_t address, uint64_t bytes) {
  const char *kind = atomic_load(&m->live) ? "allocation" : "freed allocation";
  uint64_t end = m->base + m->size, gap = 0;
  char where[80] = "inside";
  if (address < m->base) gap = m->base - address;
  else if (address >= end) gap = address - end + 1;
  if (gap)
    snprintf(where, sizeof where, "%llu bytes %s", (unsigned long long)gap,
             address < m->base ? "before" : "after");
  else if (bytes > end - address)
    snprintf(where, sizeof where, "across the end of");
  tps_sim_finding_add(
      f, "and is %s the nearest %s at 0x%llx of size %llu bytes", where, kind,
      (unsigned long long)m->base, (unsigned long long)m->size);
  add_history(f, m);
}

void tps_sim_tell_memory(const access *a, const tps_sim_allocation *m) {
  finding f;
  if (!tps_watched(TPS_WATCH_MEMORY)) return;
  begin(&f, a, "out of bounds");
  if (m) tps_sim_finding_memory(&f, m, a->address, a->size);
  tps_sim_finding_tell(&f, a->e->launch->config.op);
}

void tps_sim_tell_access(const access *a, int code, const char *why) {
  finding f;
  if (!tps_watched(TPS_WATCH_MEMORY)) return;
  bool misaligned = code == TPS_MISALIGNED_ADDRESS;
  begin(&f, a, misaligned ? "misaligned" : "out of bounds");
  const tps_sim_allocation *m = NULL;
  if (misaligned && strcmp(space_name(a), "__global__") == 0)
    m = tps_sim_find(a->e->launch->space, a->address);
  if (m && m->kind != TPS_SIM_INTERNAL)
    tps_sim_finding_memory(&f, m, a->address, 1);
  else tps_sim_finding_add(&f, "%s", why);
  tps_sim_finding_tell(&f, a->e->launch->config.op);
}

void tps_sim_tell_fault(const engine *e, const insn *i, int lane,
                        const char *title, const char *what) {
  finding f;
  if (!tps_watched(TPS_WATCH_MEMORY)) return;
  tps_sim_finding_begin(&f, TPS_WATCH_MEMORY, "%s", title);
  if (i) tps_sim_finding_at(&f, e, i);
  if (lane >= 0 && e->warp) tps_sim_finding_by(&f, e, e->warp, (unsigned)lane);
  tps_sim_finding_add(&f, "%s", what);
  tps_sim_finding_tell(&f, e->launch->config.op);
}
