/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A launch: the parameters and the dimensions as rows, which all its blocks
 * read, and the first fault. Blocks that have ended are kept for the next
 * ones.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/engine_watch.h"

#define STACK_BYTES (512u * 1024u)

void tps_sim_block_free(struct tps_sim_block *block);

static void fill32(unsigned char *at, uint32_t value) {
  uint32_t *p = (uint32_t *)(void *)at;
  for (unsigned l = 0; l < LANES; l++) p[l] = value;
}
static void fill64(unsigned char *at, uint64_t value) {
  uint64_t *p = (uint64_t *)(void *)at;
  for (unsigned l = 0; l < LANES; l++) p[l] = value;
}

static void fill_param(const struct tps_sim_launch *launch,
                       const launch_row *r) {
  uint64_t value = 0;
  memcpy(&value, launch->params + r->offset, r->size);
  if (r->sign && r->size < 8) {
    unsigned shift = 64 - 8 * r->size;
    value = (uint64_t)((int64_t)(value << shift) >> shift);
  }
  if (r->wide) fill64(launch->rows + r->row, value);
  else fill32(launch->rows + r->row, (uint32_t)value);
}

static void fill_dimensions(struct tps_sim_launch *launch) {
  const tps_launch *s = &launch->config.shape;
  for (unsigned k = 0; k < 3; k++) {
    uint32_t size = launch->cluster[k];
    fill32(launch->rows + (ROW_NTID_X + k) * ROW32, s->block[k]);
    fill32(launch->rows + (ROW_NCTAID_X + k) * ROW32, s->grid[k]);
    fill32(launch->rows + (ROW_CLUSTER_SIZE_X + k) * ROW32, size);
    fill32(launch->rows + (ROW_NCLUSTER_X + k) * ROW32, s->grid[k] / size);
  }
  fill32(launch->rows + ROW_CLUSTER_RANKS * ROW32, launch->cluster_blocks);
  fill32(launch->rows + ROW_EXPLICIT_CLUSTER * ROW32,
         s->cluster[0] > 0 ? FULL : 0);
  fill32(launch->rows + ROW_NWARPID * ROW32, 64);
  fill32(launch->rows + ROW_NSMID * ROW32,
         (uint32_t)launch->config.multiprocessors);
  fill32(launch->rows + ROW_DYNAMIC_SHARED * ROW32, s->shared);
  fill32(launch->rows + ROW_TOTAL_SHARED * ROW32, launch->shared_bytes);
  fill32(launch->rows + ROW_RESERVED_SHARED * ROW32,
         launch->shared_end - RESERVED_SHARED);
  fill32(launch->rows + ROW_RESERVED_END * ROW32, launch->shared_end);
  uint64_t workspace = launch->workspace ? launch->workspace->base : 0;
  fill32(launch->rows + ROW_ENVREG1 * ROW32, (uint32_t)(workspace >> 32));
  fill32(launch->rows + ROW_ENVREG2 * ROW32, (uint32_t)workspace);
}

static void fill_tids(struct tps_sim_launch *launch) {
  const uint32_t *block = launch->config.shape.block;
  for (uint32_t w = 0; w < launch->warps; w++) {
    uint32_t *at =
        (uint32_t *)(void *)(launch->tids + (size_t)w * WARP_ROWS * ROW32);
    uint32_t t = w * LANES, x = t % block[0], y = t / block[0] % block[1];
    uint32_t z = t / block[0] / block[1];
    for (unsigned l = 0; l < LANES; l++) {
      at[l] = x, at[LANES + l] = y, at[2 * LANES + l] = z;
      at[3 * LANES + l] = w;
      if (++x == block[0]) x = 0, y++;
      if (y == block[1]) y = 0, z++;
    }
  }
}

/* Grid synchronization needs a counter that %envreg1 and 2 address. */
static int make_workspace(struct tps_sim_launch *launch, tps_error *err) {
  if (!launch->config.shape.cooperative) return 0;
  int code = tps_sim_allocate(launch->space, 256, TPS_SIM_VARIABLE,
                              &launch->workspace, err);
  if (code) return code;
  memset(launch->workspace->host, 0, 256);
  return 0;
}

static int allocate_rows(struct tps_sim_launch *launch, tps_error *err) {
  const struct tps_sim_kernel *kernel = launch->kernel;
  size_t params = (kernel->ptx->input_bytes + 64u) & ~63u;
  size_t tids = (size_t)launch->warps * WARP_ROWS * ROW32;
  size_t total = kernel->launch_bytes + tids + params;
  launch->rows = aligned_alloc(64, (total + 63) & ~(size_t)63);
  if (!launch->rows)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory for a launch");
  launch->tids = launch->rows + kernel->launch_bytes;
  launch->params = launch->tids + tids;
  memset(launch->params, 0, params);
  uint32_t given = launch->config.shape.param_bytes;
  uint32_t known = kernel->ptx->input_bytes;
  if (launch->config.shape.params)
    memcpy(launch->params, launch->config.shape.params,
           given < known ? given : known);
  return 0;
}

static void settle(struct tps_sim_launch *launch) {
  tps_sim_launch_config *c = &launch->config;
  const uint32_t *g = c->shape.grid, *b = c->shape.block;
  tps_sim_kernel_cluster(launch->kernel, c->shape.cluster);
  launch->cluster_blocks = 1;
  for (unsigned k = 0; k < 3; k++) {
    uint32_t size = c->shape.cluster[k];
    launch->cluster[k] = size ? size : 1;
    launch->cluster_blocks *= launch->cluster[k];
  }
  launch->blocks = (uint64_t)g[0] * g[1] * g[2];
  launch->threads = b[0] * b[1] * b[2];
  launch->warps = (launch->threads + LANES - 1) / LANES;
  launch->shared_bytes = c->shape.shared
                             ? launch->kernel->dynamic_at + c->shape.shared
                             : launch->kernel->static_shared;
  launch->shared_end = launch->shared_bytes;
  if (launch->kernel->reserved)
    launch->shared_end =
        ((launch->shared_bytes + 15u) & ~15u) + RESERVED_SHARED;
  if (!c->stack_bytes) c->stack_bytes = STACK_BYTES;
  if (c->multiprocessors <= 0) c->multiprocessors = 1;
  launch->grid_id = c->op ? c->op->seq : 1;
}

int tps_sim_launch_new(tps_sim_space *space,
                       const tps_sim_launch_config *config,
                       tps_sim_launch **out, tps_error *err) {
  const uint32_t *b = config->shape.block, *g = config->shape.grid;
  uint64_t threads = (uint64_t)b[0] * b[1] * b[2];
  if (threads == 0 || threads > 1024 || !g[0] || !g[1] || !g[2])
    return tps_fail(err, TPS_INVALID_VALUE,
                    "kernel '%s': block of %llu threads (from 1 to 1024)",
                    config->kernel->name, (unsigned long long)threads);
  struct tps_sim_launch *launch = calloc(1, sizeof *launch);
  if (!launch)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory for a launch");
  launch->kernel = config->kernel;
  launch->space = space;
  launch->config = *config;
  launch->config.shape.params = NULL;
  launch->config.shape.argv = NULL;
  pthread_mutex_init(&launch->lock, NULL);
  settle(launch);
  launch->config.shape.params = config->shape.params;
  int code = allocate_rows(launch, err);
  launch->config.shape.params = NULL;
  if (!code) code = make_workspace(launch, err);
  if (!code) code = tps_sim_watch_launch(launch, err);
  if (code) {
    launch->config.op = NULL;
    tps_sim_launch_destroy(launch);
    return code;
  }
  fill_dimensions(launch);
  fill_tids(launch);
  for (uint32_t k = 0; k < launch->kernel->param_count; k++)
    fill_param(launch, &launch->kernel->params[k]);
  if (launch->config.op) tps_op_ref(launch->config.op);
  *out = launch;
  return 0;
}

void tps_sim_launch_destroy(tps_sim_launch *launch) {
  if (!launch) return;
  while (launch->pool) {
    struct tps_sim_block *block = launch->pool;
    launch->pool = block->next;
    tps_sim_block_free(block);
  }
  tps_sim_watch_launch_free(launch);
  if (launch->workspace) tps_sim_free(launch->space, launch->workspace, "", 0);
  if (launch->config.op) tps_op_unref(launch->config.op);
  pthread_mutex_destroy(&launch->lock);
  free(launch->rows);
  free(launch);
}

uint64_t tps_sim_launch_blocks(const tps_sim_launch *launch) {
  return launch->blocks / launch->cluster_blocks;
}

void tps_sim_kernel_cluster(const tps_sim_kernel *kernel, uint32_t extent[3]) {
  const uint32_t *fixed = kernel->ptx->reqnctapercluster;
  if (extent[0] == 0 && fixed[0] > 0)
    for (unsigned k = 0; k < 3; k++) extent[k] = fixed[k] ? fixed[k] : 1;
}

void tps_sim_launch_fault(const tps_sim_launch *launch, tps_error *err) {
  struct tps_sim_launch *l = (struct tps_sim_launch *)launch;
  pthread_mutex_lock(&l->lock);
  if (l->faulted) *err = l->fault;
  pthread_mutex_unlock(&l->lock);
}

void tps_sim_launch_cancel(tps_sim_launch *launch, int code,
                           const char *message) {
  tps_sim_launch_fail(launch, code, message);
}
