/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Memory that is allocated while a stream captures. Outside of graphs the
 * allocation and the constructor's filling come before every use on any stream;
 * in a graph an edge sees to that. */
#include <stdlib.h>

#include "runtime/capture.h"

int tps_capture_born(const tps_stream *stream, tps_memory *memory,
                     tps_error *err) {
  tps_branch *home = stream->parts->branch;
  tps_capture *capture = home->capture;
  tps_birth *births = tps_grow(capture->births, capture->birth_count,
                               &capture->birth_capacity, sizeof *births, err);
  if (births == NULL) return TPS_NO_HOST_MEMORY;
  capture->births = births;
  memory->captured = true;
  tps_memory_changed(memory, TPS_MEMORY_CAPTURED);
  capture->births[capture->birth_count++] =
      (tps_birth){.memory = memory->id, .home = home, .node = UINT32_MAX};
  return 0;
}

static tps_birth *find(const tps_capture *capture, uint64_t memory) {
  for (uint32_t i = capture->birth_count; i-- > 0;)
    if (capture->births[i].memory == memory) return &capture->births[i];
  return NULL;
}

/* The first use on each other branch comes after what was done at home. */
static int follow(tps_birth *birth, tps_branch *branch, tps_error *err) {
  if (birth->home == branch) return 0;
  birth->frozen = true;
  for (uint32_t i = 0; i < birth->count; i++)
    if (birth->followers[i] == branch) return 0;
  tps_branch **followers = tps_grow(birth->followers, birth->count,
                                    &birth->capacity, sizeof *followers, err);
  if (followers == NULL) return TPS_NO_HOST_MEMORY;
  birth->followers = followers;
  int code = 0;
  if (birth->node != UINT32_MAX)
    code = tps_capture_follow(branch, birth->node, err);
  if (code == 0) birth->followers[birth->count++] = branch;
  return code;
}

/* In a body: the node that runs it comes after what is done around it. */
static int order(tps_branch *branch, uint64_t memory, tps_error *err) {
  while (branch != NULL) {
    const tps_capture *capture = branch->capture;
    tps_birth *birth = find(capture, memory);
    if (birth != NULL) return follow(birth, branch, err);
    branch = capture->around == NULL ? NULL : capture->outer->parts->branch;
  }
  return 0;
}

int tps_birth_order(tps_branch *branch, const tps_use *uses, uint32_t count,
                    tps_error *err) {
  int code = 0;
  for (uint32_t i = 0; i < count && code == 0; i++)
    code = order(branch, uses[i].memory->id, err);
  return code;
}

void tps_birth_note(const tps_branch *branch, const tps_use *uses,
                    uint32_t count, uint32_t node) {
  for (uint32_t i = 0; i < count; i++) {
    tps_birth *birth = find(branch->capture, uses[i].memory->id);
    if (birth != NULL && birth->home == branch && !birth->frozen)
      birth->node = node;
  }
}

void tps_births_free(tps_capture *capture) {
  for (uint32_t i = 0; i < capture->birth_count; i++)
    free(capture->births[i].followers);
  free(capture->births);
}
