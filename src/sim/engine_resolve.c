/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * From a device address to host memory, for one lane, with every check and with
 * the words that say what was wrong. The handlers come here when an access does
 * not lie in the memory that their instruction hit last.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/engine_report.h"

/* --- bounds --------------------------------------------------------------- */

/* An aligned word that other threads may change meanwhile: of an atomic operation,
 * or of a load that says so. */
static bool is_atomic_word(const access *a, uint64_t offset) {
  if (a->size != 4 || offset % 4 != 0) return false;
  if (a->kind != ACCESS_LOAD) return a->kind == ACCESS_ATOMIC;
  const function *f = tps_sim_function_of(a->e->launch->kernel, a->i);
  const tps_ptx_instruction *p = &f->ptx->instructions[a->i->ptx];
  for (unsigned k = 0; k < p->mod_count; k++)
    if (p->mods[k] == TPS_PTX_M_RELAXED || p->mods[k] == TPS_PTX_M_ACQUIRE)
      return true;
  return false;
}

/* Whether an access at `offset` stays within `size` bytes. libcu++ makes atomic
 * bytes of the word that they are in: at the end that is more than belongs to the
 * program, but not more than there is, here as on a GPU: memory goes on to a
 * multiple of 64 bytes at least. */
static bool stays_within(const access *a, uint64_t offset, uint64_t size) {
  if (offset >= size) return false;
  return size - offset >= a->size || is_atomic_word(a, offset);
}

/* --- global memory ------------------------------------------------------- */

_Noreturn static void opaque(const access *a, const tps_sim_allocation *m) {
  char text[200];
  snprintf(text, sizeof text,
           "the handle or memory of %s, which only %s "
           "instructions reach",
           m->kind == TPS_SIM_TEXTURE   ? "a texture"
           : m->kind == TPS_SIM_SURFACE ? "a surface"
                                        : "an array",
           m->kind == TPS_SIM_SURFACE ? "surface" : "texture");
  tps_sim_bad_access(a, TPS_ILLEGAL_ADDRESS, text);
}

static unsigned char *global(const access *a, uint64_t address) {
  engine *e = a->e;
  tps_sim_allocation *m = tps_sim_find(e->launch->space, address);
  if (!m || m->kind == TPS_SIM_INTERNAL) tps_sim_bad_address(a, address);
  if (!atomic_load_explicit(&m->live, memory_order_relaxed))
    tps_sim_bad_memory(a, m);
  if (m->kind >= TPS_SIM_ARRAY) opaque(a, m);
  if (!stays_within(a, address - m->base, m->size))
    tps_sim_bad_address(a, address);
  if (m->kind == TPS_SIM_CONSTANT && a->kind != ACCESS_LOAD)
    tps_sim_bad_access(a, TPS_ILLEGAL_ADDRESS, "constant memory is read-only");
  if (m->kind != TPS_SIM_HEAP) {
    region *r = &e->slots[a->i->slot];
    r->base = m->base, r->size = m->size, r->host = m->host;
  }
  return m->host + (address - m->base);
}

/* --- the other spaces ---------------------------------------------------- */

static unsigned char *shared(const access *a, uint64_t offset) {
  const region *r = &a->e->shared;
  if (stays_within(a, offset, r->size)) return r->host + offset;
  tps_sim_bad_shared(a, offset);
}

/* Of any block of the cluster. */
static unsigned char *shared_of_cluster(const access *a, uint64_t offset) {
  uint64_t rank = offset >> RANK_SHIFT;
  char text[200];
  const char *why;
  if (rank == 0 || rank > 255) return shared(a, offset);
  const region *r = tps_sim_peer(a->e, rank - 1, &why);
  offset &= ~RANK_MASK;
  if (r && stays_within(a, offset, r->size)) return r->host + offset;
  if (r)
    snprintf(text, sizeof text,
             "out of range of the %llu bytes of shared memory of block %llu of "
             "the cluster",
             (unsigned long long)r->size, (unsigned long long)rank - 1);
  else
    snprintf(text, sizeof text,
             "shared memory of block %llu of the cluster, %s",
             (unsigned long long)rank - 1, why);
  tps_sim_bad_access(a, TPS_ILLEGAL_ADDRESS, text);
}

static unsigned char *param(const access *a, uint64_t offset) {
  const struct tps_sim_launch *launch = a->e->launch;
  uint64_t size = launch->kernel->ptx->input_bytes;
  if (a->kind != ACCESS_LOAD)
    tps_sim_bad_access(a, TPS_ILLEGAL_ADDRESS,
                       "kernel parameters are read-only");
  if (offset < size && size - offset >= a->size) return launch->params + offset;
  tps_sim_bad_access(a, TPS_ILLEGAL_ADDRESS, "beyond the kernel's parameters");
}

/* The end of what a lane uses of its stack. */
static uint64_t local_end(const frame *f, unsigned lane) {
  const uint64_t *base = frame_row(f, f->of->local_base);
  uint64_t taken = tps_sim_taken(f, lane);
  return base[lane] + (taken ? f->of->stack_bytes + taken : f->of->local_bytes);
}

static void grow_local(const access *a, uint64_t bytes) {
  warp *w = a->e->warp;
  uint64_t size = w->local_size ? w->local_size : 64;
  while (size < bytes) size *= 2;
  uint32_t *p = realloc(w->local, size * LANES);
  if (!p)
    tps_sim_fault(a->e, a->i, (int)a->lane, TPS_NO_HOST_MEMORY,
                  "out of host memory for local memory");
  memset((char *)p + w->local_size * LANES, 0, (size - w->local_size) * LANES);
  w->local = p;
  w->local_size = size;
}

static void check_alignment(const access *a, uint64_t address) {
  if (address & (a->size - 1)) tps_sim_bad_alignment(a);
}

static uint32_t *local(const access *a, uint64_t offset) {
  const frame *f = a->e->group->frame;
  warp *w = a->e->warp;
  uint64_t limit = local_end(f, a->lane);
  check_alignment(a, offset);
  if (offset >= limit || limit - offset < a->size)
    tps_sim_bad_local(a, offset, limit);
  if (offset + a->size > w->local_size) grow_local(a, offset + a->size);
  return w->local + (offset >> 2) * LANES + a->lane;
}

uint32_t *tps_sim_local_word(engine *e, const insn *i, unsigned lane,
                             uint64_t address, unsigned size,
                             access_kind kind) {
  access a = {e, i, lane, address, size, kind};
  return local(&a, address);
}

/* --- any space ----------------------------------------------------------- */

static bool within(uint64_t address, uint64_t base, uint64_t size) {
  return address - base < size;
}

static unsigned char *generic(const access *a, bool *is_local) {
  uint64_t p = a->address;
  if (within(p, TPS_SIM_SHARED_BASE, TPS_SIM_SHARED_SIZE))
    return shared_of_cluster(a, p - TPS_SIM_SHARED_BASE);
  if (within(p, TPS_SIM_LOCAL_BASE, TPS_SIM_LOCAL_SIZE)) {
    *is_local = true;
    return (unsigned char *)local(a, p - TPS_SIM_LOCAL_BASE);
  }
  if (within(p, TPS_SIM_PARAM_BASE, TPS_SIM_PARAM_SIZE))
    return param(a, p - TPS_SIM_PARAM_BASE);
  return global(a, p);
}

static unsigned char *in_space(const access *a, uint8_t space, bool *is_local) {
  switch (space) {
  case TPS_PTX_SHARED: return shared(a, a->address);
  case TPS_PTX_SHARED_CLUSTER: return shared_of_cluster(a, a->address);
  case TPS_PTX_LOCAL:
    *is_local = true;
    return (unsigned char *)local(a, a->address);
  case TPS_PTX_PARAM: return param(a, a->address);
  case TPS_PTX_GENERIC: return generic(a, is_local);
  default: return global(a, a->address);
  }
}

unsigned char *tps_sim_resolve(engine *e, const insn *i, unsigned lane,
                               uint64_t address, unsigned size,
                               access_kind kind, bool *is_local) {
  access a = {e, i, lane, address, size, kind};
  check_alignment(&a, address);
  return in_space(&a, i->space, is_local);
}

unsigned char *tps_sim_reach(engine *e, const insn *i, unsigned lane,
                             uint8_t space, uint64_t address, uint64_t bytes,
                             unsigned align, access_kind kind) {
  access a = {e, i, lane, address, (unsigned)bytes, kind};
  bool is_local = false;
  char text[80];
  if (address & (align - 1)) {
    snprintf(text, sizeof text, "misaligned (a multiple of %u is needed)",
             align);
    tps_sim_bad_access(&a, TPS_MISALIGNED_ADDRESS, text);
  }
  if (space == TPS_PTX_GENERIC &&
      within(address, TPS_SIM_LOCAL_BASE, TPS_SIM_LOCAL_SIZE))
    tps_sim_bad_access(&a, TPS_ILLEGAL_ADDRESS,
                       "local memory is of no use here");
  return in_space(&a, space, &is_local);
}

/* Bytes of interleaved local memory, which resolve found at `p`. */
static uint64_t local_get(const unsigned char *p, uint64_t address,
                          unsigned size) {
  const uint32_t *w = (const uint32_t *)(const void *)p;
  if (size == 8) return (uint64_t)w[LANES] << 32 | w[0];
  uint32_t v = w[0] >> (8 * (address & 3));
  return size == 4 ? v : v & ((1u << (8 * size)) - 1);
}
static void local_put(unsigned char *p, uint64_t address, unsigned size,
                      uint64_t value) {
  uint32_t *w = (uint32_t *)(void *)p;
  if (size >= 4) {
    w[0] = (uint32_t)value;
    if (size == 8) w[LANES] = (uint32_t)(value >> 32);
    return;
  }
  unsigned shift = 8 * (unsigned)(address & 3);
  uint32_t keep = ((1u << (8 * size)) - 1) << shift;
  w[0] = (w[0] & ~keep) | ((uint32_t)value << shift & keep);
}

uint64_t tps_sim_load(engine *e, const insn *i, unsigned lane, uint64_t address,
                      unsigned size) {
  bool is_local = false;
  unsigned char *p =
      tps_sim_resolve(e, i, lane, address, size, ACCESS_LOAD, &is_local);
  if (is_local) return local_get(p, address, size);
  return load_atomic(p, size, __ATOMIC_RELAXED);
}

void tps_sim_store(engine *e, const insn *i, unsigned lane, uint64_t address,
                   unsigned size, uint64_t value) {
  bool is_local = false;
  unsigned char *p =
      tps_sim_resolve(e, i, lane, address, size, ACCESS_STORE, &is_local);
  if (is_local) local_put(p, address, size, value);
  else store_atomic(p, size, value, __ATOMIC_RELAXED);
}

static int peek_shared(engine *e, uint64_t offset) {
  uint64_t rank = offset >> RANK_SHIFT;
  const region *r = &e->shared;
  const char *why;
  if (rank != 0) r = rank > 255 ? NULL : tps_sim_peer(e, rank - 1, &why);
  offset &= ~RANK_MASK;
  return r && offset < r->size ? r->host[offset] : -1;
}

/* What the stack has room for but nothing was stored to yet is zero. */
static int peek_local(engine *e, unsigned lane, uint64_t offset) {
  if (offset >= local_end(e->group->frame, lane)) return -1;
  if (offset >= e->warp->local_size) return 0;
  uint32_t w = e->warp->local[(offset >> 2) * LANES + lane];
  return (int)(w >> (8 * (offset & 3)) & 255);
}

int tps_sim_peek(engine *e, unsigned lane, uint64_t p) {
  if (within(p, TPS_SIM_SHARED_BASE, TPS_SIM_SHARED_SIZE))
    return peek_shared(e, p - TPS_SIM_SHARED_BASE);
  if (within(p, TPS_SIM_LOCAL_BASE, TPS_SIM_LOCAL_SIZE))
    return peek_local(e, lane, p - TPS_SIM_LOCAL_BASE);
  if (within(p, TPS_SIM_PARAM_BASE, TPS_SIM_PARAM_SIZE)) {
    uint64_t offset = p - TPS_SIM_PARAM_BASE;
    uint64_t size = e->launch->kernel->ptx->input_bytes;
    return offset < size ? e->launch->params[offset] : -1;
  }
  tps_sim_allocation *m = tps_sim_find(e->launch->space, p);
  if (!m || !atomic_load(&m->live) || m->kind >= TPS_SIM_ARRAY) return -1;
  return (int)load_atomic(m->host + (p - m->base), 1, __ATOMIC_RELAXED);
}

_Noreturn void tps_sim_bad_read(engine *e, const insn *i, unsigned lane,
                                uint64_t p) {
  access a = {e, i, lane, p, 1, ACCESS_LOAD};
  bool is_local = false;
  generic(&a, &is_local); /* which says why */
  tps_sim_bad_access(&a, TPS_ILLEGAL_ADDRESS, "there is nothing to read");
}
