/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Fuzz target: any bytes through the PTX reader; what it accepts is described
 * and goes through the engine's decoder, as a whole and as a part to be linked.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "sim/engine.h"

/* Addresses only grow, so a space would do for very long, but its table of
 * freed memory fills. */
static tps_sim_space *fresh_space(void) {
  static tps_sim_space *space;
  static unsigned used;
  tps_error err;
  if (space != NULL && ++used % 256 == 0) {
    tps_sim_space_destroy(space);
    space = NULL;
  }
  if (space == NULL && tps_sim_space_new(64u << 20, &space, &err) != 0) abort();
  return space;
}

static void describe(const tps_ptx_module *module) {
  tps_image_desc desc;
  tps_error err;
  if (tps_ptx_describe(module, &desc, &err) == 0) tps_image_desc_free(&desc);
}

static bool decode(const uint8_t *data, size_t size, bool unlinked) {
  tps_error err;
  tps_ptx_module *module;
  tps_sim_code *code;
  if (tps_ptx_parse((const char *)data, size, &module, &err) != 0) return false;
  if (!unlinked) describe(module);
  if (tps_sim_code_new(module, fresh_space(), 90, unlinked, &code, &err) != 0)
    return false;
  tps_sim_code_destroy(code);
  return true;
}

bool tps_fuzz_reader(const uint8_t *data, size_t size) {
  decode(data, size, true);
  return decode(data, size, false);
}

#ifdef TPS_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tps_fuzz_reader(data, size);
  return 0;
}
#endif
