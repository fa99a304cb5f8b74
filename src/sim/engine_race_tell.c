/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What is said of races: once for each pair of instructions of a launch, with how
 * often they raced and the first case, in the shape of compute-sanitizer's
 * racecheck.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/engine_finding.h"
#include "sim/engine_race.h"
#include "sim/engine_report.h"

#define MOST_HAZARDS 1000u /* of a launch: more are not told apart */

/* --- noting -------------------------------------------------------------- */

static bool is_pair(const hazard *h, const hazard *like, unsigned first) {
  return h->insns[0] == like->insns[first] &&
         h->insns[1] == like->insns[1 - first] && h->place == like->place;
}

/* The pair may have met in either order. */
static hazard *known(const race *r, const hazard *like) {
  for (hazard *h = r->hazards; h; h = h->next)
    if (is_pair(h, like, 0) || is_pair(h, like, 1)) return h;
  return NULL;
}

static void describe(const touch *t, uint64_t at, char *text, size_t size) {
  char what[800];
  if (t->place == WATCH_SHARED) {
    tps_sim_describe_shared(t->e->launch->kernel, t->owner->e.shared.size, at,
                            what, sizeof what);
    snprintf(text, size, "Address 0x%llx in %s", (unsigned long long)at, what);
    return;
  }
  uint64_t address = t->memory->base + at;
  tps_sim_describe(t->e, t->memory, what, sizeof what);
  snprintf(text, size, "Address 0x%llx, byte %llu of the %s",
           (unsigned long long)address, (unsigned long long)at, what);
}

void tps_sim_race_note(race *r, const mark *m, watch_kind kind, const touch *t,
                       unsigned lane, uint64_t at) {
  const insn *insns = r->launch->kernel->insns;
  hazard new = {.insns = {m->who >> MARK_INSN, (uint32_t)(t->i - insns)},
                .kinds = {(uint8_t)kind, t->kind},
                .place = t->place,
                .count = 1};
  hazard *h = known(r, &new);
  if (h) {
    h->count++;
    return;
  }
  h = r->hazard_count < MOST_HAZARDS ? malloc(sizeof *h) : NULL;
  if (!h) {
    r->untold = true;
    return;
  }
  *h = new;
  h->several = (m->who & MARK_SEVERAL) != 0;
  h->blocks[0] = m->warp / r->launch->warps;
  h->blocks[1] = t->e->block->index;
  h->threads[0] = m->warp % r->launch->warps * LANES + mark_lane(m);
  h->threads[1] = t->e->warp->index * LANES + lane;
  describe(t, at, h->where, sizeof h->where);
  *r->last = h;
  r->last = &h->next;
  r->hazard_count++;
}

/* --- telling ------------------------------------------------------------- */

static const char *const names[] = {"", "Read", "Write", "Atomic"};

typedef struct coordinates {
  unsigned long long x, y, z;
} coordinates;

static coordinates in_grid(const uint32_t extent[3], uint64_t n) {
  return (coordinates){n % extent[0], n / extent[0] % extent[1],
                       n / extent[0] / extent[1]};
}

static void add_thread(finding *f, const race *r, const hazard *h, unsigned k) {
  const tps_launch *s = &r->launch->config.shape;
  coordinates b = in_grid(s->grid, h->blocks[k]);
  coordinates t = in_grid(s->block, h->threads[k]);
  if (k == 0 && h->several)
    tps_sim_finding_add(f, "%s by warp %u in block (%llu,%llu,%llu)",
                        names[h->kinds[k]], h->threads[k] / LANES, b.x, b.y,
                        b.z);
  else
    tps_sim_finding_add(f,
                        "%s by thread (%llu,%llu,%llu) in block "
                        "(%llu,%llu,%llu)",
                        names[h->kinds[k]], t.x, t.y, t.z, b.x, b.y, b.z);
}

static void tell(const race *r, const hazard *h, tps_op *op) {
  const struct tps_sim_kernel *kernel = r->launch->kernel;
  char first[1000], second[1000];
  finding f;
  tps_sim_code_place(r->launch, &kernel->insns[h->insns[0]], first,
                     sizeof first);
  tps_sim_code_place(r->launch, &kernel->insns[h->insns[1]], second,
                     sizeof second);
  tps_sim_finding_begin(&f, TPS_WATCH_RACE,
                        "Race reported between %s access at %s",
                        names[h->kinds[0]], first);
  tps_sim_finding_add(&f, "and %s access at %s [%llu hazard%s]",
                      names[h->kinds[1]], second, (unsigned long long)h->count,
                      h->count == 1 ? "" : "s");
  add_thread(&f, r, h, 0);
  add_thread(&f, r, h, 1);
  tps_sim_finding_add(&f, "%s", h->where);
  f.key = h->key;
  tps_sim_finding_tell(&f, op);
}

/* A launch that was not looked at as a whole: nobody should take it for right. */
static void tell_incomplete(const race *r, tps_op *op) {
  finding f;
  tps_sim_finding_begin(&f, TPS_WATCH_RACE,
                        "Race check incomplete in kernel %s",
                        tps_sim_kernel_name(r->launch));
  if (r->unseen)
    tps_sim_finding_add(&f,
                        "It touches more memory than can be followed: %llu MiB "
                        "are kept for the marks of a launch",
                        (unsigned long long)(tps_sim_race_most >> 20));
  if (r->untold)
    tps_sim_finding_add(&f, "More than %u pairs of its instructions race",
                        MOST_HAZARDS);
  tps_sim_finding_tell(&f, op);
}

/* The kernel and the lines, whichever came first: a line may have been made
 * several instructions. */
static uint64_t key_of(const race *r, const hazard *h) {
  const struct tps_sim_kernel *kernel = r->launch->kernel;
  char first[600], second[600];
  finding f;
  tps_sim_insn_where(kernel, &kernel->insns[h->insns[0]], first, sizeof first);
  tps_sim_insn_where(kernel, &kernel->insns[h->insns[1]], second,
                     sizeof second);
  bool turned = strcmp(first, second) > 0;
  tps_sim_finding_begin(&f, TPS_WATCH_RACE, "%s %s %s %d",
                        tps_sim_kernel_name(r->launch), turned ? second : first,
                        turned ? first : second, h->place);
  return f.key;
}

static void add_to_first(race *r, hazard *h) {
  hazard *first = r->hazards;
  while (first->key != h->key) first = first->next;
  if (first == h) return;
  first->count += h->count;
  h->count = 0;
}

void tps_sim_race_tell(race *r, tps_op *op) {
  for (hazard *h = r->hazards; h; h = h->next) {
    h->key = key_of(r, h);
    add_to_first(r, h);
  }
  for (const hazard *h = r->hazards; h; h = h->next)
    if (h->count > 0) tell(r, h, op);
  if (r->unseen || r->untold) tell_incomplete(r, op);
}
