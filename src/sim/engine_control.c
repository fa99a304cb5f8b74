/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Branches, calls and returns, guards, and the instructions that end or pause a
 * thread; the functions that every program may call (vprintf, malloc, …).
 */
#include "sim/engine_core.h"
#include "sim/engine_initcheck.h"
#include "sim/engine_report.h"

#define HANDLER(name)                                                          \
  static const insn *op_##name(engine *e, const insn *i, uint32_t mask)
#define ON(mask, l) (((mask) >> (l)) & 1)

/* --- guards -------------------------------------------------------------- */

HANDLER(guarded) {
  mask &= *mask_of(e, i->guard);
  return mask ? i->inner(e, i, mask) : i + 1;
}
HANDLER(guarded_not) {
  mask &= ~*mask_of(e, i->guard);
  return mask ? i->inner(e, i, mask) : i + 1;
}

/* Lanes of the running group that are not in `mask` go on behind `i`. */
static void others_go_on(engine *e, const insn *i, uint32_t mask) {
  uint32_t others = e->group->mask & ~mask;
  if (others) tps_sim_split(e->warp, e->group, others)->pc = i + 1;
}

/* --- branches ------------------------------------------------------------ */

static const insn *jump_back(engine *e, const insn *i, const insn *target) {
  e->left -= i - target + 1;
  if (e->left > 0 && !e->multi) return target;
  if (e->multi && --e->group->quota == 0) e->group->tired = true;
  return leave(e, target);
}

HANDLER(bra) {
  (void)e, (void)mask;
  return i->target;
}
HANDLER(bra_back) {
  (void)mask;
  return jump_back(e, i, i->target);
}

static const insn *diverge(engine *e, const insn *i, uint32_t taken) {
  tps_sim_split(e->warp, e->group, taken)->pc = i->target;
  return leave(e, i + 1);
}
HANDLER(cbra) {
  uint32_t taken = mask & *mask_of(e, i->a);
  if (taken == mask) return i->target;
  return taken ? diverge(e, i, taken) : i + 1;
}
HANDLER(cbra_not) {
  uint32_t taken = mask & ~*mask_of(e, i->a);
  if (taken == mask) return i->target;
  return taken ? diverge(e, i, taken) : i + 1;
}
HANDLER(cbra_back) {
  uint32_t taken = mask & *mask_of(e, i->a);
  if (taken == mask) return jump_back(e, i, i->target);
  return taken ? diverge(e, i, taken) : i + 1;
}
HANDLER(cbra_not_back) {
  uint32_t taken = mask & ~*mask_of(e, i->a);
  if (taken == mask) return jump_back(e, i, i->target);
  return taken ? diverge(e, i, taken) : i + 1;
}

/* Lanes whose element equals that of the first lane of the mask. */
static uint32_t same_as_first(const uint32_t *v, uint32_t mask) {
  uint32_t same = 0, first = v[__builtin_ctz(mask)];
  for (unsigned l = 0; l < LANES; l++) same |= (uint32_t)(v[l] == first) << l;
  return same & mask;
}

HANDLER(brx) {
  const branch_table *t = i->side;
  const uint32_t *index = row32(e, i->a);
  others_go_on(e, i, mask);
  uint32_t same = same_as_first(index, mask);
  if (same != mask) tps_sim_split(e->warp, e->group, mask & ~same)->pc = i;
  unsigned lane = (unsigned)__builtin_ctz(same);
  if (index[lane] >= t->count)
    tps_sim_fault(e, i, (int)lane, TPS_INVALID_PC,
                  "branch table index %u (the table has %u entries)",
                  index[lane], t->count);
  const insn *target = t->targets[index[lane]];
  if (target <= i) e->left -= i - target + 1;
  if (target <= i && --e->group->quota == 0) e->group->tired = true;
  return leave(e, target);
}

/* --- calls --------------------------------------------------------------- */

static void copy_words(unsigned char *to, const unsigned char *from,
                       uint32_t words, uint32_t mask) {
  for (uint32_t w = 0; w < words; w++) {
    uint32_t *d = (uint32_t *)(to + (size_t)w * ROW32);
    const uint32_t *s = (const uint32_t *)(from + (size_t)w * ROW32);
    for (unsigned l = 0; l < LANES; l++) d[l] = ON(mask, l) ? s[l] : d[l];
  }
}

static void copy_params(const frame *to, const param_rows *d, const frame *from,
                        const param_rows *s, uint32_t count, uint32_t limit,
                        uint32_t mask) {
  for (uint32_t k = 0; k < count && k < limit; k++) {
    uint32_t words = d[k].words < s[k].words ? d[k].words : s[k].words;
    copy_words(frame_row(to, d[k].offset), frame_row(from, s[k].offset), words,
               mask);
  }
}

static void push_stack(engine *e, const insn *i, const frame *from,
                       const frame *to, uint32_t mask) {
  const uint64_t *old = frame_row(from, from->of->local_base);
  uint64_t *base = frame_row(to, to->of->local_base);
  uint32_t *pc = frame_row(to, to->of->return_pc);
  uint64_t *taken = to->of->taken ? frame_row(to, to->of->taken) : NULL;
  uint64_t limit = e->launch->config.stack_bytes;
  uint32_t back = (uint32_t)(i + 1 - e->launch->kernel->insns);
  for (unsigned l = 0; l < LANES; l++) {
    if (!ON(mask, l)) continue;
    base[l] = old[l] + from->of->stack_bytes + tps_sim_taken(from, l);
    if (taken) taken[l] = 0;
    pc[l] = back;
    if (base[l] + to->of->stack_bytes > limit)
      tps_sim_bad_call(e, i, l, to->of->ptx->name, limit);
  }
  if (e->launch->watch) tps_sim_init_stack(e, mask, base, to->of->stack_bytes);
}

static const insn *enter_function(engine *e, const insn *i, uint32_t mask,
                                  const function *callee) {
  const call_site *site = i->side;
  group *g = e->group;
  frame *from = g->frame;
  frame *to = tps_sim_frame(e, g->depth + 1, callee);
  push_stack(e, i, from, to, mask);
  copy_params(to, callee->inputs, from, site->arguments, site->argument_count,
              callee->ptx->input_count, mask);
  g->frame = to;
  g->depth++;
  e->left -= 8;
  if (e->warp->group_count > 1 || e->left <= 0) return leave(e, callee->entry);
  tps_sim_enter(e, g);
  return callee->entry;
}

HANDLER(call) {
  others_go_on(e, i, mask);
  return enter_function(e, i, mask, ((const call_site *)i->side)->callee);
}

HANDLER(call_indirect) {
  const uint64_t *target = row64(e, i->a);
  unsigned lane = (unsigned)__builtin_ctz(mask);
  const struct tps_sim_kernel *k = e->launch->kernel;
  uint64_t n = (target[lane] - TPS_SIM_CODE_BASE) / 16;
  if (target[lane] < TPS_SIM_CODE_BASE || target[lane] % 16 ||
      n >= k->code->module->function_count || !k->functions[n])
    tps_sim_fault(e, i, (int)lane, TPS_ILLEGAL_ADDRESS,
                  "call through %s pointer 0x%llx, where no function is",
                  target[lane] ? "a" : "a null",
                  (unsigned long long)target[lane]);
  others_go_on(e, i, mask);
  uint32_t same = 0;
  for (unsigned l = 0; l < LANES; l++)
    same |= (uint32_t)(target[l] == target[lane]) << l;
  same &= mask;
  if (same != mask) tps_sim_split(e->warp, e->group, mask & ~same)->pc = i;
  return enter_function(e, i, same, k->functions[n]);
}

HANDLER(exit) {
  e->group->pc = i + 1;
  tps_sim_lanes_exit(e, mask);
  return NULL;
}

HANDLER(ret) {
  group *g = e->group;
  if (g->depth == 0) return op_exit(e, i, mask);
  others_go_on(e, i, mask);
  const struct tps_sim_kernel *k = e->launch->kernel;
  frame *from = g->frame;
  const uint32_t *pcs = frame_row(from, from->of->return_pc);
  uint32_t same = same_as_first(pcs, mask);
  if (same != mask) tps_sim_split(e->warp, g, mask & ~same)->pc = i;
  const insn *back = k->insns + pcs[__builtin_ctz(same)];
  const call_site *site = back[-1].side;
  frame *to = g->depth == 1 ? &e->warp->main
                            : tps_sim_frame(e, g->depth - 1,
                                            tps_sim_function_of(k, back - 1));
  copy_params(to, site->results, from, from->of->returns, site->result_count,
              from->of->ptx->return_count, same);
  g->frame = to;
  g->depth--;
  e->left -= 8;
  if (e->warp->group_count > 1 || e->left <= 0) return leave(e, back);
  tps_sim_enter(e, g);
  return back;
}

/* --- pauses and ends ----------------------------------------------------- */

HANDLER(nanosleep) {
  (void)mask;
  e->group->tired = true;
  e->left -= 16;
  return leave(e, i + 1);
}
HANDLER(fence) {
  (void)e, (void)mask;
  atomic_thread_fence(memory_order_seq_cst);
  return i + 1;
}
HANDLER(nop) {
  (void)e, (void)mask;
  return i + 1;
}
/* The toolkit's grid.sync() traps where the launch has no grid to wait for. */
static bool is_grid_sync(const engine *e, const insn *i) {
  char where[600];
  return !e->launch->config.shape.cooperative &&
         strstr(tps_sim_insn_where(e->launch->kernel, i, where, sizeof where),
                "cooperative_groups") != NULL;
}
HANDLER(trap) {
  tps_sim_fault(e, i, __builtin_ctz(mask), TPS_LAUNCH_FAILED,
                "the kernel executed a trap%s",
                is_grid_sync(e, i)
                    ? " (grid synchronization needs cooperative = true)"
                    : "");
}
HANDLER(brkpt) {
  tps_sim_fault(e, i, __builtin_ctz(mask), TPS_LAUNCH_FAILED,
                "the kernel executed a breakpoint");
}

/* Clocks are synthetic: time of the host. imm: 0 the low word, 1 the high one,
 * 2 both. */
HANDLER(clock) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
  for (unsigned l = 0; l < LANES; l++) {
    if (!ON(mask, l)) continue;
    if (i->imm == 2) row64(e, i->d)[l] = now;
    else row32(e, i->d)[l] = (uint32_t)(i->imm ? now >> 32 : now);
  }
  return i + 1;
}
/* A value of the launch. imm: 0 %gridid, 1 the same in 32 bits */
HANDLER(gridid) {
  for (unsigned l = 0; l < LANES; l++) {
    if (!ON(mask, l)) continue;
    if (i->imm == 0) row64(e, i->d)[l] = e->launch->grid_id;
    else row32(e, i->d)[l] = (uint32_t)e->launch->grid_id;
  }
  return i + 1;
}
HANDLER(activemask) {
  uint32_t active = e->mask;
  for (unsigned l = 0; l < LANES; l++)
    if (ON(mask, l)) row32(e, i->d)[l] = active;
  return i + 1;
}

/* imm: the space. */
static bool in_space(engine *e, uint64_t p, int64_t space) {
  bool shared = p - TPS_SIM_SHARED_BASE < TPS_SIM_SHARED_SIZE;
  uint64_t rank = (p & RANK_MASK) >> RANK_SHIFT; /* plus one */
  bool local = p - TPS_SIM_LOCAL_BASE < TPS_SIM_LOCAL_SIZE;
  bool param = p - TPS_SIM_PARAM_BASE < TPS_SIM_PARAM_SIZE;
  switch (space) {
  case TPS_PTX_SHARED:
    return shared && (rank == 0 || rank == e->block->rank + 1);
  case TPS_PTX_SHARED_CLUSTER: return shared;
  case TPS_PTX_LOCAL: return local;
  case TPS_PTX_PARAM: return param;
  case TPS_PTX_CONST: {
    const tps_sim_allocation *a = tps_sim_find(e->launch->space, p);
    return a && a->kind == TPS_SIM_CONSTANT;
  }
  default: return !shared && !local && !param;
  }
}
HANDLER(isspacep) {
  const uint64_t *a = row64(e, i->a);
  uint32_t r = 0;
  for (unsigned l = 0; l < LANES; l++)
    if (ON(mask, l)) r |= (uint32_t)in_space(e, a[l], i->imm) << l;
  set_mask(e, i->d, r, mask);
  return i + 1;
}

/* --- functions of the device's library ----------------------------------- */

/* A 64-bit argument of a lane, from its two words. */
static uint64_t argument64(engine *e, const call_site *s, unsigned k,
                           unsigned lane) {
  const uint32_t *w = frame_row(e->group->frame, s->arguments[k].offset);
  uint64_t high = s->arguments[k].words > 1 ? w[LANES + lane] : 0;
  return high << 32 | w[lane];
}
static void result64(engine *e, const call_site *s, unsigned lane, uint64_t v) {
  if (!s->result_count) return;
  uint32_t *w = frame_row(e->group->frame, s->results[0].offset);
  w[lane] = (uint32_t)v;
  if (s->results[0].words > 1) w[LANES + lane] = (uint32_t)(v >> 32);
}

HANDLER(vprintf) {
  const call_site *s = i->side;
  for (uint32_t m = mask; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    uint32_t result = 0;
    tps_sim_vprintf(e, i, l, argument64(e, s, 0, l), argument64(e, s, 1, l),
                    &result);
    result64(e, s, l, result);
  }
  return i + 1;
}

HANDLER(assertfail) {
  const call_site *s = i->side;
  uint64_t text[4][LANES];
  uint32_t line[LANES];
  for (unsigned l = 0; l < LANES; l++) {
    for (unsigned k = 0; k < 4; k++) text[k][l] = argument64(e, s, k, l);
    line[l] = (uint32_t)text[2][l];
  }
  const uint64_t *const rows[4] = {text[0], text[1], text[2], text[3]};
  tps_sim_assert_failed(e, i, mask, rows, line);
}

HANDLER(malloc) {
  const call_site *s = i->side;
  for (uint32_t m = mask; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    uint64_t bytes = argument64(e, s, 0, l);
    tps_sim_allocation *a = NULL;
    tps_error err;
    if (bytes == 0) bytes = 1; /* a pointer of its own, as on a GPU */
    if (tps_sim_allocate(e->launch->space, bytes, TPS_SIM_HEAP, &a, &err) != 0)
      a = NULL;
    if (a && e->launch->watch) tps_sim_init_heap(e, a);
    result64(e, s, l, a ? a->base : 0);
  }
  return i + 1;
}

HANDLER(free) {
  const call_site *s = i->side;
  tps_sim_space *space = e->launch->space;
  for (uint32_t m = mask; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    uint64_t p = argument64(e, s, 0, l);
    if (!p) continue;
    tps_sim_allocation *a = tps_sim_find(space, p);
    if (!a || a->base != p || a->kind != TPS_SIM_HEAP ||
        (a->owner != space && atomic_load(&a->live)))
      tps_sim_fault_as(e, i, (int)l, TPS_ILLEGAL_ADDRESS, FAULT_MEMORY,
                       "Malloc/Free Error encountered : Invalid pointer to "
                       "device-side free",
                       "free of 0x%llx, which malloc has not returned",
                       (unsigned long long)p);
    if (!atomic_load(&a->live))
      tps_sim_fault_as(
          e, i, (int)l, TPS_LAUNCH_FAILED, FAULT_MEMORY,
          "Malloc/Free Error encountered : Device-side double free",
          "free of 0x%llx, which was freed before", (unsigned long long)p);
    const tps_op *op = e->launch->config.op;
    tps_sim_free(space, a, op ? op->source : "", op ? op->line : 0);
  }
  return i + 1;
}

#define FILL(name) table[H_##name] = op_##name;
void tps_sim_fill_control(handler **table);
void tps_sim_fill_control(handler **table) { CONTROL_OPS(FILL) }
