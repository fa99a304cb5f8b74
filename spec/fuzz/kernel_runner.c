/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Fuzz target: a valid PTX text, changed by mutate.c, is loaded and each of its
 * kernels runs on two blocks, with parameters that follow from the text, for a
 * bounded number of instructions. Faults are answers like any other; what is
 * looked for is what the sanitizers see.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "sim/engine.h"

enum {
  BUFFERS = 4,
  BUFFER_BYTES = 68 << 10, /* pages of its own, each with its end */
  MOST_KERNELS = 4,
  MOST_BLOCKS = 8,
  MOST_PARAMS = 4096,
  BUDGET = 2000,
  SLICE = 500,
  ROUNDS = 100
};

typedef struct machine {
  tps_sim_space *space;
  tps_sim_allocation *buffers[BUFFERS];
  unsigned used;
} machine;

static machine *fresh_machine(void) {
  static machine m;
  tps_error err;
  if (m.space != NULL && ++m.used % 64 == 0) {
    tps_sim_space_destroy(m.space);
    m.space = NULL;
  }
  if (m.space != NULL) return &m;
  if (tps_sim_space_new(64u << 20, &m.space, &err) != 0) abort();
  for (int i = 0; i < BUFFERS; i++)
    if (tps_sim_allocate(m.space, BUFFER_BYTES, TPS_SIM_DEVICE_MEMORY,
                         &m.buffers[i], &err) != 0)
      abort();
  return &m;
}

static uint64_t next(uint64_t *random) {
  uint64_t x = *random;
  x ^= x << 13, x ^= x >> 7, x ^= x << 17;
  return *random = x;
}

static uint64_t number(uint64_t *random) {
  static const uint64_t odd[] = {
      0,   1,    2,          31,         32,         33,        64,
      100, 1000, UINT32_MAX, 0x3f800000, 0x7fc00000, UINT64_MAX};
  uint64_t x = next(random) >> 8;
  return x % 4 ? odd[(x >> 8) % (sizeof odd / sizeof *odd)] : next(random);
}

/* Words of eight bytes are mostly pointers. */
static void fill_params(machine *m, const tps_ptx_function *f,
                        unsigned char *params, uint64_t *random) {
  memset(params, 0, MOST_PARAMS);
  for (uint32_t k = 0; k < f->input_count; k++) {
    const tps_ptx_var *v = &f->vars[f->return_count + k];
    for (uint64_t at = 0; at + 4 <= v->size; at += v->size % 8 ? 4 : 8) {
      uint64_t value = number(random), dice = next(random) >> 20;
      if (v->size % 8 == 0 && dice % 8)
        value = m->buffers[dice / 8 % BUFFERS]->base + dice / 64 % 4 * 256;
      if (v->offset + at + 8 <= MOST_PARAMS)
        memcpy(params + v->offset + at, &value, v->size % 8 ? 4 : 8);
    }
  }
}

static void fill_buffers(machine *m, uint64_t *random) {
  for (int i = 0; i < BUFFERS; i++)
    for (int at = 0; at < 1024; at += 8) {
      uint64_t value = at < 512 ? number(random) : next(random);
      memcpy(m->buffers[i]->host + at, &value, 8);
    }
}

static void print(void *context, const char *text, size_t size) {
  uint64_t *sum = context;
  for (size_t i = 0; i < size; i++) *sum += (unsigned char)text[i];
}

/* Blocks take turns, so that those that wait for one another get on. */
static void run_blocks(tps_sim_launch *launch) {
  tps_sim_block *blocks[MOST_BLOCKS] = {0};
  uint64_t count = tps_sim_launch_blocks(launch), open = 0;
  for (; open < count && open < MOST_BLOCKS; open++)
    if ((blocks[open] = tps_sim_block_new(launch, open)) == NULL) break;
  uint64_t ended = 0;
  for (int round = 0; round < ROUNDS && ended < open; round++)
    for (uint64_t k = 0; k < open; k++) {
      if (blocks[k] == NULL) continue;
      tps_sim_outcome how = tps_sim_block_run(blocks[k], SLICE);
      if (how == TPS_SIM_SLICE || how == TPS_SIM_YIELD) continue;
      tps_sim_block_destroy(blocks[k]);
      blocks[k] = NULL;
      ended++;
    }
  for (uint64_t k = 0; k < open; k++)
    if (blocks[k] != NULL) tps_sim_block_destroy(blocks[k]);
}

static bool run_kernel(machine *m, tps_sim_code *code,
                       const tps_ptx_function *f, uint64_t *random) {
  static const uint32_t sizes[] = {32, 64, 33, 1, 96, 31};
  static unsigned char params[MOST_PARAMS];
  uint64_t printed = 0;
  tps_error err;
  tps_sim_launch *launch;
  tps_sim_launch_config c = {.seed = next(random) % 4 ? 0 : next(random),
                             .budget = BUDGET,
                             .stack_bytes = 2048,
                             .multiprocessors = 4,
                             .print = print,
                             .print_context = &printed,
                             .shape = {.grid = {2, 1, 1},
                                       .block = {sizes[next(random) % 6], 1, 1},
                                       .shared = next(random) % 2 ? 1024 : 0,
                                       .cooperative = next(random) % 8 == 0,
                                       .params = params,
                                       .param_bytes = f->input_bytes}};
  if (f->input_bytes > MOST_PARAMS ||
      tps_sim_code_kernel(code, f->name, &c.kernel, &err) != 0)
    return false;
  tps_sim_kernel_info info;
  tps_sim_kernel_describe(c.kernel, &info);
  if (info.static_shared > 48 << 10) return false;
  fill_params(m, f, params, random);
  if (tps_sim_launch_new(m->space, &c, &launch, &err) != 0) return false;
  run_blocks(launch);
  tps_sim_launch_fault(launch, &err);
  tps_sim_launch_destroy(launch);
  return true;
}

bool tps_fuzz_runner(const uint8_t *data, size_t size) {
  tps_error err;
  tps_ptx_module *module;
  tps_sim_code *code;
  unsigned ran = 0;
  uint64_t random = UINT64_C(0x2545f4914f6cdd1d) + size;
  for (size_t i = 0; i < size; i++) random = random * 31 + data[i];
  random |= 1;
  if (tps_ptx_parse((const char *)data, size, &module, &err) != 0) return false;
  machine *m = fresh_machine();
  if (tps_sim_code_new(module, m->space, 90, false, &code, &err) != 0)
    return false;
  fill_buffers(m, &random);
  for (uint32_t k = 0; k < module->function_count && ran < MOST_KERNELS; k++) {
    const tps_ptx_function *f = &module->functions[k];
    if (f->entry && !f->declared_only) ran += run_kernel(m, code, f, &random);
  }
  tps_sim_code_destroy(code);
  return ran > 0;
}

#ifdef TPS_LIBFUZZER
/* A change that leaves the text readable, if one is found soon. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room,
                               unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room,
                               unsigned seed) {
  tps_error err;
  tps_ptx_module *module;
  uint8_t *before = malloc(size + 1);
  size_t changed = 0;
  if (before == NULL) abort();
  memcpy(before, data, size);
  for (unsigned tries = 0; tries < 12; tries++) {
    memcpy(data, before, size);
    changed = tps_fuzz_mutate(data, size, room, seed + tries * 7919);
    if (tps_ptx_parse((const char *)data, changed, &module, &err) != 0)
      continue;
    tps_ptx_free(module);
    break;
  }
  free(before);
  return changed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tps_fuzz_runner(data, size);
  return 0;
}
#endif
