/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The kernel that conditional nodes of graphs need: only device code can set a
 * condition. It is given as PTX, which the driver compiles for the device when
 * the first such node is made, and whose one external function the driver itself
 * has: so neither a compiler nor a library of the toolkit is needed. That is why
 * PTX stands in this file, and nowhere else in cuda/.
 */
#include "cuda/cuda.h"

#define KERNEL "tps_set_condition"

/* void tps_set_condition(cudaGraphConditionalHandle c, const unsigned *flag) {
 *   cudaGraphSetConditional(c, *flag != 0);
 * } */
static const char text[] =
    ".version 7.0\n"
    ".target sm_60\n"
    ".address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 condition,\n"
    "                                      .param .b32 value);\n"
    ".visible .entry " KERNEL "(.param .u64 condition, .param .u64 flag)\n"
    "{\n"
    "  .reg .b64 %handle, %address;\n"
    "  .reg .b32 %word, %value;\n"
    "  .reg .pred %set;\n"
    "  ld.param.u64 %handle, [condition];\n"
    "  ld.param.u64 %address, [flag];\n"
    "  cvta.to.global.u64 %address, %address;\n"
    "  ld.volatile.global.u32 %word, [%address];\n"
    "  setp.ne.u32 %set, %word, 0;\n"
    "  selp.u32 %value, 1, 0, %set;\n"
    "  {\n"
    "    .param .b64 first;\n"
    "    .param .b32 second;\n"
    "    st.param.b64 [first], %handle;\n"
    "    st.param.b32 [second], %value;\n"
    "    call.uni cudaGraphSetConditional, (first, second);\n"
    "  }\n"
    "  ret;\n"
    "}\n";

/* With the lock held. The module stays for as long as the process does. */
static int load(tps_cuda_device *self, CUfunction *out, tps_error *err) {
  CUmodule module = NULL;
  *out = atomic_load_explicit(&self->set_condition, memory_order_relaxed);
  if (*out != NULL) return 0;
  int code = (int)self->driver.module_load(&module, text, 0, NULL, NULL);
  if (code == 0) {
    code = (int)self->driver.module_function(out, module, KERNEL);
    if (code != 0) self->driver.module_unload(module);
  }
  if (code != 0)
    return tps_cuda_fail(err, code, "the kernel for conditional nodes");
  atomic_store_explicit(&self->set_condition, *out, memory_order_release);
  return 0;
}

int tps_cuda_condition_kernel(tps_cuda_device *self, CUfunction *out,
                              tps_error *err) {
  *out = atomic_load_explicit(&self->set_condition, memory_order_acquire);
  if (*out != NULL) return 0;
  pthread_mutex_lock(&self->lock);
  int code = load(self, out, err);
  pthread_mutex_unlock(&self->lock);
  return code;
}
