/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The address space of all simulated devices: like a GPU's it is one for all, so
 * that an address means the same bytes wherever it is used, and each device has a
 * part of it that counts as its memory. Addresses only ever grow: there is room
 * for 2^63 bytes, so no range is given out twice, a stale pointer never meets
 * another's memory, and the table of ranges stays sorted by appending.
 * (ranges.h, which readers look into without a lock). Structs of allocations are
 * recycled as structs, never unmapped.
 *
 * With a seed that reuses it is otherwise: what is dead and still has its bytes is
 * given out again, bytes and address, to the next that asks for as much.
 */
#include "sim/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/watch.h"
#include "sim/blocks.h"
#include "sim/ranges.h"

#define ALIGNMENT 256u
#define GUARD_LEAST UINT64_C(4096)
#define GUARD_MOST (UINT64_C(8) << 30)
#define STRUCTS_PER_SLAB 64
#define QUARANTINE_BYTES (UINT64_C(64) << 20)
#define QUARANTINE_RANGES 4096u
#define EVICT_BATCH 1024u /* taking out of the table costs a pass over it */
#define RETIRED_BYTES (UINT64_C(4) << 20) /* of tables that were replaced */
#define NOISE_STEP UINT64_C(0xd1342543de82ef95)
#define LARGEST (UINT64_C(1) << 46)

/* First in, first out. */
typedef struct list {
  tps_sim_allocation *first, *last;
  uint64_t ranges;
} list;

typedef struct universe {
  unsigned spaces; /* that lie in it */
  pthread_mutex_t lock;
  tps_sim_ranges ranges;
  uint64_t next; /* address */
  /* The dead in order of death; those of `kept` still have their bytes. */
  list bare, kept;
  uint64_t kept_bytes;
  atomic_bool overfull;
  list spare; /* structs for new allocations */
  tps_sim_blocks blocks;
} universe;

struct tps_sim_space {
  universe *u;
  uint64_t total, used;
  uint64_t heap; /* of what is used: device-side malloc */
  /* With a seed: what new memory holds follows from it. */
  bool garbles, reuses;
  uint64_t noise;
};

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static universe *the_universe; /* while there is any space */

/* --- lists ---------------------------------------------------------------- */

static void push(list *l, tps_sim_allocation *a) {
  a->next = NULL;
  if (l->last != NULL) l->last->next = a;
  else l->first = a;
  l->last = a;
  l->ranges++;
}

static tps_sim_allocation *pop(list *l) {
  tps_sim_allocation *a = l->first;
  if (a == NULL) return NULL;
  l->first = a->next;
  if (l->first == NULL) l->last = NULL;
  l->ranges--;
  return a;
}

static void take_out(list *l, tps_sim_allocation *a) {
  tps_sim_allocation *before = NULL, *x = l->first;
  for (; x != a; x = x->next) before = x;
  if (before == NULL) l->first = a->next;
  else before->next = a->next;
  if (l->last == a) l->last = before;
  l->ranges--;
}

/* --- the space ------------------------------------------------------------ */

static universe *universe_new(void) {
  universe *u = calloc(1, sizeof *u);
  if (u == NULL || !tps_sim_ranges_begin(&u->ranges)) {
    free(u);
    return NULL;
  }
  pthread_mutex_init(&u->lock, NULL);
  u->next = TPS_SIM_GLOBAL_BASE;
  return u;
}

static void forget_written(tps_sim_allocation *a) {
  tps_sim_written_free(a->written);
  a->written = NULL;
}

void tps_sim_begin_unwritten(tps_sim_allocation *a) {
  bool bare = a->kind == TPS_SIM_DEVICE_MEMORY || a->kind == TPS_SIM_ARRAY;
  forget_written(a);
  if (bare && tps_watched(TPS_WATCH_INIT))
    a->written = tps_sim_written_new(a->size);
}

static void universe_destroy(universe *u) {
  for (tps_sim_allocation *a = u->bare.first; a != NULL; a = a->next)
    forget_written(a);
  for (size_t i = 0; i < tps_sim_ranges_count(&u->ranges); i++) {
    tps_sim_allocation *a = tps_sim_ranges_at(&u->ranges, i);
    tps_sim_blocks_unmap(a->host, a->size);
    forget_written(a);
  }
  tps_sim_ranges_end(&u->ranges);
  tps_sim_blocks_end(&u->blocks);
  pthread_mutex_destroy(&u->lock);
  free(u);
}

int tps_sim_space_new(uint64_t total, tps_sim_space **out, tps_error *err) {
  tps_sim_space *space = calloc(1, sizeof *space);
  pthread_mutex_lock(&the_lock);
  if (the_universe == NULL) the_universe = universe_new();
  universe *u = the_universe;
  if (space != NULL && u != NULL) u->spaces++;
  pthread_mutex_unlock(&the_lock);
  if (space == NULL || u == NULL) {
    free(space);
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for an address space");
  }
  space->u = u;
  space->total = total;
  *out = space;
  return 0;
}

void tps_sim_space_seed(tps_sim_space *space, uint64_t seed) {
  space->garbles = seed != 0;
  space->reuses = tps_sim_seed_reuses(seed);
  space->noise = seed * NOISE_STEP;
}

static uint64_t rounded(uint64_t bytes) {
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Pinned memory is the host's, and what is not the program's costs it none. */
static bool costs_nothing(tps_sim_memory_kind kind) {
  return kind == TPS_SIM_PINNED || kind == TPS_SIM_INTERNAL;
}

static uint64_t charge(const tps_sim_allocation *a) {
  return costs_nothing((tps_sim_memory_kind)a->kind) ? 0 : rounded(a->size);
}

/* Device-side malloc returns multiples of 16 bytes and keeps a header. */
static uint64_t heap_charge(uint64_t bytes) {
  return (bytes + 15) / 16 * 16 + 16;
}

static tps_sim_allocation *struct_new(universe *u) {
  if (u->spare.first == NULL) {
    tps_sim_allocation *fresh =
        (tps_sim_allocation *)(void *)tps_sim_blocks_slab(
            &u->blocks, STRUCTS_PER_SLAB * sizeof(tps_sim_allocation));
    if (fresh == NULL) return NULL;
    for (size_t i = 0; i < STRUCTS_PER_SLAB; i++) push(&u->spare, &fresh[i]);
  }
  return pop(&u->spare);
}

/* Guard zones grow with the allocation, since addresses cost nothing: twice its
 * size past its end is still nobody's. */
static uint64_t take_addresses(universe *u, uint64_t bytes) {
  uint64_t guard = rounded(bytes) * 2;
  if (guard < GUARD_LEAST) guard = GUARD_LEAST;
  if (guard > GUARD_MOST) guard = GUARD_MOST;
  uint64_t base = u->next;
  u->next += rounded(bytes) + guard;
  return base;
}

/* Lock held. A live allocation in `a`, but for its place in the table. */
static void enliven(tps_sim_allocation *a, tps_sim_space *space, uint64_t bytes,
                    tps_sim_memory_kind kind) {
  a->owner = space;
  a->size = bytes;
  a->kind = (uint8_t)kind;
  a->id = 0;
  a->element = a->source = a->free_source = "";
  a->line = a->free_line = 0;
  a->died = 0;
  a->written = NULL;
  tps_sim_begin_unwritten(a);
  atomic_store_explicit(&a->freeing, false, memory_order_relaxed);
  atomic_store_explicit(&a->live, true, memory_order_relaxed);
  space->used += charge(a);
  if (kind == TPS_SIM_HEAP) space->heap += heap_charge(bytes);
}

/* What a GPU does not clear, with a seed. */
static bool is_garbled(const tps_sim_space *space, tps_sim_memory_kind kind) {
  return space->garbles &&
         (kind == TPS_SIM_DEVICE_MEMORY || kind == TPS_SIM_HEAP);
}

/* Lock held; the size is known to fit. NULL when out of host memory. */
static tps_sim_allocation *add(tps_sim_space *space, uint64_t bytes,
                               tps_sim_memory_kind kind) {
  universe *u = space->u;
  if (!tps_sim_ranges_reserve(&u->ranges)) return NULL;
  tps_sim_allocation *a = struct_new(u);
  if (a == NULL) return NULL;
  unsigned char *host = tps_sim_blocks_take(&u->blocks, bytes);
  if (host == NULL) {
    push(&u->spare, a);
    return NULL;
  }
  if (is_garbled(space, kind))
    tps_sim_blocks_garble(host, bytes, space->noise += NOISE_STEP);
  a->base = take_addresses(u, bytes);
  a->host = host;
  enliven(a, space, bytes, kind);
  tps_sim_ranges_append(&u->ranges, a);
  return a;
}

static void look_if_overfull(universe *u) {
  bool overfull =
      u->kept_bytes > QUARANTINE_BYTES ||
      u->ranges.retired_bytes > RETIRED_BYTES ||
      u->bare.ranges + u->kept.ranges > QUARANTINE_RANGES + EVICT_BATCH;
  atomic_store_explicit(&u->overfull, overfull, memory_order_relaxed);
}

/* --- reuse, with a seed --------------------------------------------------- */

/* The latest dead memory of the device that still has its bytes and is, rounded,
 * of that size; NULL: none. */
static tps_sim_allocation *latest_like(const tps_sim_space *space,
                                       uint64_t bytes) {
  tps_sim_allocation *found = NULL;
  for (tps_sim_allocation *a = space->u->kept.first; a != NULL; a = a->next)
    if (a->owner == space && a->kind == TPS_SIM_DEVICE_MEMORY &&
        rounded(a->size) == rounded(bytes))
      found = a;
  return found;
}

/* Lock held. Dead memory lives again, with its bytes as they were; in a struct of
 * its own, since kernels that run may have the old one at hand, which stays with
 * the dead, out of the table, until they have ended. NULL: there is none. */
static tps_sim_allocation *revive(tps_sim_space *space, uint64_t bytes) {
  universe *u = space->u;
  tps_sim_allocation *old = latest_like(space, bytes);
  tps_sim_allocation *a = old == NULL ? NULL : struct_new(u);
  if (a == NULL) return NULL;
  a->base = old->base;
  a->host = old->host;
  enliven(a, space, bytes, TPS_SIM_DEVICE_MEMORY);
  if (!tps_sim_ranges_exchange(&u->ranges, old, a)) {
    space->used -= charge(a);
    forget_written(a);
    push(&u->spare, a);
    return NULL;
  }
  take_out(&u->kept, old);
  u->kept_bytes -= old->size;
  old->died = atomic_fetch_add(&u->ranges.epoch, 1);
  push(&u->bare, old);
  look_if_overfull(u);
  return a;
}

/* Lock held. */
static tps_sim_allocation *make(tps_sim_space *space, uint64_t bytes,
                                tps_sim_memory_kind kind) {
  tps_sim_allocation *a = NULL;
  if (space->reuses && kind == TPS_SIM_DEVICE_MEMORY) a = revive(space, bytes);
  return a != NULL ? a : add(space, bytes, kind);
}

static int does_not_fit(tps_sim_space *space, uint64_t bytes, uint64_t left,
                        tps_error *err) {
  return tps_fail(err, TPS_OUT_OF_MEMORY,
                  "out of memory: %llu bytes asked for, %llu free of %llu",
                  (unsigned long long)bytes, (unsigned long long)left,
                  (unsigned long long)space->total);
}

/* Bytes that the host can give without swapping its programs out or ending
 * one of them; what is there at all where Linux does not tell. */
static uint64_t host_available(void) {
  unsigned long long kilobytes = 0;
  char line[128];
  FILE *file = fopen("/proc/meminfo", "re");
  while (file != NULL && kilobytes == 0 && fgets(line, sizeof line, file))
    sscanf(line, "MemAvailable: %llu", &kilobytes);
  if (file != NULL) fclose(file);
  if (kilobytes > 0) return kilobytes << 10;
  return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

#define LOOK_FROM ((uint64_t)64 << 20) /* less is not worth a look */

/* Memory that the host fills at once: one that lacks it would end us. */
static bool host_lacks(uint64_t bytes, tps_sim_memory_kind kind) {
  return (kind == TPS_SIM_PINNED || kind == TPS_SIM_MANAGED) &&
         bytes >= LOOK_FROM && bytes > host_available();
}

int tps_sim_allocate_ahead(tps_sim_space *space, uint64_t bytes,
                           tps_sim_memory_kind kind, uint64_t credit,
                           tps_sim_allocation **out, tps_error *err) {
  if (bytes == 0)
    return tps_fail(err, TPS_INVALID_VALUE, "allocation of 0 bytes");
  pthread_mutex_lock(&space->u->lock);
  uint64_t used = space->used > credit ? space->used - credit : 0;
  uint64_t left = space->total > used ? space->total - used : 0;
  int code = 0;
  if (bytes > LARGEST || (!costs_nothing(kind) && rounded(bytes) > left)) {
    code = does_not_fit(space, bytes, left, err);
  } else if (kind == TPS_SIM_HEAP &&
             space->heap + heap_charge(bytes) > TPS_SIM_HEAP_BYTES) {
    code = tps_fail(err, TPS_OUT_OF_MEMORY,
                    "the device's heap of %llu bytes "
                    "has no %llu left",
                    TPS_SIM_HEAP_BYTES, (unsigned long long)bytes);
  } else if (host_lacks(bytes, kind) ||
             (*out = make(space, bytes, kind)) == NULL) {
    code = tps_fail(
        err, costs_nothing(kind) ? TPS_OUT_OF_MEMORY : TPS_NO_HOST_MEMORY,
        "the host has no %llu bytes for the simulated device",
        (unsigned long long)bytes);
  }
  pthread_mutex_unlock(&space->u->lock);
  return code;
}

int tps_sim_allocate(tps_sim_space *space, uint64_t bytes,
                     tps_sim_memory_kind kind, tps_sim_allocation **out,
                     tps_error *err) {
  return tps_sim_allocate_ahead(space, bytes, kind, 0, out, err);
}

/* Lock held. */
static void bury(tps_sim_allocation *a, const char *source, int line) {
  if (!atomic_load_explicit(&a->live, memory_order_relaxed)) return;
  tps_sim_space *space = a->owner; /* may be gone where it is dead */
  universe *u = space->u;
  a->free_source = source != NULL ? source : "";
  a->free_line = line;
  space->used -= charge(a);
  if (a->kind == TPS_SIM_HEAP) space->heap -= heap_charge(a->size);
  u->kept_bytes += a->size;
  a->died = atomic_fetch_add(&u->ranges.epoch, 1);
  push(&u->kept, a);
  atomic_store_explicit(&a->live, false, memory_order_release);
  look_if_overfull(u);
}

void tps_sim_free(tps_sim_space *space, tps_sim_allocation *a,
                  const char *source, int line) {
  pthread_mutex_lock(&space->u->lock);
  bury(a, source, line);
  pthread_mutex_unlock(&space->u->lock);
}

/* --- the end --------------------------------------------------------------- */

/* What one device leaves in a universe that others live on in. */
static void free_all(tps_sim_space *space) {
  universe *u = space->u;
  pthread_mutex_lock(&u->lock);
  for (size_t i = 0; i < tps_sim_ranges_count(&u->ranges); i++) {
    tps_sim_allocation *a = tps_sim_ranges_at(&u->ranges, i);
    if (atomic_load(&a->live) && a->owner == space) bury(a, "", 0);
  }
  pthread_mutex_unlock(&u->lock);
}

void tps_sim_space_destroy(tps_sim_space *space) {
  if (space == NULL) return;
  universe *u = space->u;
  pthread_mutex_lock(&the_lock);
  bool last = --u->spaces == 0;
  if (last) the_universe = NULL;
  pthread_mutex_unlock(&the_lock);
  if (last) universe_destroy(u);
  else free_all(space);
  free(space);
}

/* --- reclaiming ----------------------------------------------------------- */

/* Takes the bytes of the oldest dead until the quarantine fits. */
static void strip(universe *u, uint64_t epoch) {
  while (u->kept_bytes > QUARANTINE_BYTES && u->kept.first->died < epoch) {
    tps_sim_allocation *a = pop(&u->kept);
    u->kept_bytes -= a->size;
    tps_sim_blocks_give(&u->blocks, a->host, a->size);
    a->host = NULL;
    forget_written(a);
    push(&u->bare, a);
  }
}

/* Moves the oldest dead, at the most `count`, from the lists to `gone`; marked
 * by a death at 0. */
static void pick_oldest(universe *u, uint64_t count, uint64_t epoch,
                        list *gone) {
  while (gone->ranges < count) {
    bool bare = u->bare.first != NULL;
    list *from = bare ? &u->bare : &u->kept;
    if (from->first == NULL || from->first->died >= epoch) break;
    tps_sim_allocation *a = pop(from);
    if (!bare) {
      u->kept_bytes -= a->size;
      tps_sim_blocks_give(&u->blocks, a->host, a->size);
      a->host = NULL;
    }
    a->died = 0;
    push(gone, a);
  }
}

static bool stays(const tps_sim_allocation *a) {
  return a->died != 0 || atomic_load_explicit(&a->live, memory_order_relaxed);
}

/* Takes the oldest dead out of the table; their structs serve again. */
static void evict(universe *u, uint64_t epoch) {
  uint64_t dead = u->bare.ranges + u->kept.ranges;
  if (dead <= QUARANTINE_RANGES + EVICT_BATCH) return;
  tps_sim_table *smaller = tps_sim_ranges_prepare(&u->ranges);
  if (smaller == NULL) return; /* the next reclaim tries again */
  list gone = {0};
  pick_oldest(u, dead - QUARANTINE_RANGES, epoch, &gone);
  tps_sim_ranges_keep(&u->ranges, smaller, stays);
  for (tps_sim_allocation *a; (a = pop(&gone)) != NULL;) {
    forget_written(a);
    push(&u->spare, a);
  }
}

uint64_t tps_sim_space_epoch(tps_sim_space *space) {
  return atomic_load(&space->u->ranges.epoch);
}

bool tps_sim_space_is_overfull(tps_sim_space *space) {
  return atomic_load_explicit(&space->u->overfull, memory_order_relaxed);
}

void tps_sim_space_reclaim_before(tps_sim_space *space, uint64_t epoch) {
  universe *u = space->u;
  pthread_mutex_lock(&u->lock);
  strip(u, epoch);
  evict(u, epoch);
  tps_sim_ranges_settle(&u->ranges, epoch);
  look_if_overfull(u);
  pthread_mutex_unlock(&u->lock);
}

void tps_sim_space_reclaim(tps_sim_space *space) {
  tps_sim_space_reclaim_before(space, UINT64_MAX);
}

void tps_sim_space_info(tps_sim_space *space, uint64_t *free_bytes,
                        uint64_t *total) {
  pthread_mutex_lock(&space->u->lock);
  *free_bytes = space->total > space->used ? space->total - space->used : 0;
  *total = space->total;
  pthread_mutex_unlock(&space->u->lock);
}

/* --- looking up ----------------------------------------------------------- */

tps_sim_allocation *tps_sim_find(tps_sim_space *space, uint64_t address) {
  return tps_sim_ranges_find(&space->u->ranges, address);
}

tps_sim_allocation *tps_sim_lookup(tps_sim_space *space, uint64_t address) {
  pthread_mutex_lock(&space->u->lock);
  tps_sim_allocation *a = tps_sim_find(space, address);
  pthread_mutex_unlock(&space->u->lock);
  return a;
}

tps_sim_allocation *tps_sim_find_base(tps_sim_space *space, uint64_t address) {
  tps_sim_allocation *a = tps_sim_lookup(space, address);
  bool fits = a != NULL && a->base == address &&
              atomic_load_explicit(&a->live, memory_order_acquire);
  return fits ? a : NULL;
}

static uint64_t distance(const tps_sim_allocation *a, uint64_t address) {
  if (address < a->base) return a->base - address;
  uint64_t end = a->base + a->size;
  return address < end ? 0 : address - end + 1;
}

/* The better of two for a report; either may be NULL. */
static tps_sim_allocation *nearer(tps_sim_allocation *a, tps_sim_allocation *b,
                                  uint64_t address) {
  if (a == NULL) return b;
  if (b == NULL) return a;
  bool a_lives = atomic_load_explicit(&a->live, memory_order_acquire);
  bool b_lives = atomic_load_explicit(&b->live, memory_order_acquire);
  if (a_lives != b_lives) return a_lives ? a : b;
  return distance(b, address) < distance(a, address) ? b : a;
}

tps_sim_allocation *tps_sim_find_nearest(tps_sim_space *space,
                                         uint64_t address) {
  pthread_mutex_lock(&space->u->lock);
  const tps_sim_ranges *ranges = &space->u->ranges;
  tps_sim_allocation *best = NULL;
  for (size_t i = 0; i < tps_sim_ranges_count(ranges); i++) {
    tps_sim_allocation *a = tps_sim_ranges_at(ranges, i);
    if (a->kind != TPS_SIM_INTERNAL) best = nearer(best, a, address);
  }
  pthread_mutex_unlock(&space->u->lock);
  return best;
}
