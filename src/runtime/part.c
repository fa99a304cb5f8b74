/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Graphs as parts of one that is being captured. A part brings memory of its
 * own, made when it was captured; what uses the same of it twice, in branches
 * side by side, is put in order by edges. */
#include <stdlib.h>
#include <string.h>

#include "runtime/capture.h"

static bool has(const tps_part *part, uint64_t memory) {
  for (uint32_t i = 0; i < part->memory_count; i++)
    if (part->memories[i] == memory) return true;
  return false;
}

static bool shares(const tps_part *part, const tps_keep *keep) {
  for (uint32_t i = 0; i < keep->use_count; i++)
    if (keep->uses[i].memory->captured && has(part, keep->uses[i].memory->id))
      return true;
  return false;
}

/* In a body: the node that runs it comes after parts around it. */
int tps_part_order(tps_branch *branch, const tps_keep *keep, tps_error *err) {
  int code = 0;
  while (branch != NULL && code == 0) {
    const tps_capture *capture = branch->capture;
    for (const tps_part *p = capture->parts; p != NULL && code == 0;
         p = p->next)
      for (uint32_t i = 0; i < p->leaf_count && code == 0 && shares(p, keep);
           i++)
        code = tps_capture_follow(branch, p->leaves[i], err);
    branch = capture->around == NULL ? NULL : capture->outer->parts->branch;
  }
  return code;
}

/* A part with room for so many of each. */
static tps_part *new_part(uint32_t memories, uint32_t leaves, tps_error *err) {
  tps_part *part = calloc(1, sizeof *part);
  if (part != NULL) {
    part->memories = calloc(memories + 1, sizeof *part->memories);
    part->leaves = calloc(leaves + 1, sizeof *part->leaves);
    if (part->memories != NULL && part->leaves != NULL) return part;
    free(part->memories);
    free(part->leaves);
    free(part);
  }
  tps_out_of_host_memory(err);
  return NULL;
}

static void add(tps_capture *capture, tps_part *part) {
  part->next = capture->parts;
  capture->parts = part;
}

int tps_part_note(tps_capture *capture, const tps_keep *keep,
                  const uint32_t *leaves, uint32_t count, tps_error *err) {
  tps_part *part = new_part(keep->use_count, count, err);
  if (part == NULL) return TPS_NO_HOST_MEMORY;
  for (uint32_t i = 0; i < keep->use_count; i++)
    if (keep->uses[i].memory->captured)
      part->memories[part->memory_count++] = keep->uses[i].memory->id;
  if (count > 0) memcpy(part->leaves, leaves, count * sizeof *leaves);
  part->leaf_count = count;
  add(capture, part);
  return 0;
}

/* No more than the node that runs the body is seen of them. */
void tps_parts_of_body(tps_capture *around, tps_part *parts, uint32_t node) {
  while (parts != NULL) {
    tps_part *part = parts;
    parts = part->next;
    part->leaves[0] = node; /* there is room for one more than there were */
    part->leaf_count = 1;
    add(around, part);
  }
}

void tps_parts_free(tps_part *parts) {
  while (parts != NULL) {
    tps_part *part = parts;
    parts = part->next;
    free(part->memories);
    free(part->leaves);
    free(part);
  }
}
