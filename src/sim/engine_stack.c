/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Memory that a function takes from a thread's stack as it runs: alloca,
 * stacksave and stackrestore. It lies behind the frame's variables; the row
 * function.taken holds how many bytes each lane has taken, multiples of 16. All
 * is given back when the function returns.
 */
#include "sim/engine_initcheck.h"

#define HANDLER(name)                                                          \
  static const insn *op_##name(engine *e, const insn *i, uint32_t mask)

/* The end of what the lane's frame uses. */
static uint64_t top_of(const frame *f, unsigned lane) {
  const uint64_t *base = frame_row(f, f->of->local_base);
  return base[lane] + f->of->stack_bytes + tps_sim_taken(f, lane);
}

static void set_top(const frame *f, unsigned lane, uint64_t top) {
  const uint64_t *base = frame_row(f, f->of->local_base);
  uint64_t *taken = frame_row(f, f->of->taken);
  taken[lane] = top - base[lane] - f->of->stack_bytes;
}

/* a: the size; f: the alignment. */
HANDLER(alloca) {
  const frame *f = e->group->frame;
  uint64_t limit = e->launch->config.stack_bytes, align = i->f;
  for (uint32_t m = mask; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    uint64_t size = row64(e, i->a)[l];
    uint64_t at = (top_of(f, l) + align - 1) & ~(align - 1);
    if (at > limit || size > limit - at)
      tps_sim_fault_as(
          e, i, (int)l, TPS_ILLEGAL_ADDRESS, FAULT_MEMORY, "Stack overflow",
          "stack overflow: alloca of %llu bytes needs more than the "
          "%llu bytes of stack of a thread",
          (unsigned long long)size, (unsigned long long)limit);
    set_top(f, l, (at + size + 15) & ~UINT64_C(15));
    row64(e, i->d)[l] = at;
    if (e->launch->watch) tps_sim_init_stack(e, 1u << l, row64(e, i->d), size);
  }
  return i + 1;
}

HANDLER(stacksave) {
  for (uint32_t m = mask; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    row64(e, i->d)[l] = top_of(e->group->frame, l);
  }
  return i + 1;
}

HANDLER(stackrestore) {
  const frame *f = e->group->frame;
  const uint64_t *base = frame_row(f, f->of->local_base);
  for (uint32_t m = mask; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    uint64_t to = row64(e, i->a)[l], least = base[l] + f->of->stack_bytes;
    if (to < least || to > top_of(f, l) || to % 16)
      tps_sim_fault(e, i, (int)l, TPS_ILLEGAL_ADDRESS,
                    "stackrestore to 0x%llx, which stacksave has not returned "
                    "here",
                    (unsigned long long)to);
    set_top(f, l, to);
  }
  return i + 1;
}

#define FILL(name) table[H_##name] = op_##name;
void tps_sim_fill_stack(handler **table);
void tps_sim_fill_stack(handler **table) { STACK_OPS(FILL) }
