/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The address space of all simulated devices: like a GPU's it is one for all, so
 * that an address means the same bytes wherever it is used, and each device has a
 * part of it that counts as its memory. Addresses only ever grow: there is room
 * for 2^63 bytes, so no range is given out twice, a stale pointer never meets
 * another's memory, and the table of ranges stays sorted by appending.
 *
 * Readers take no lock. They see the table through one atomic pointer and its
 * length through another; a table that was replaced (it grew, or the dead were
 * taken out) is kept until whatever executed at that time has ended, which the
 * epochs tell. Structs of allocations are recycled as structs, never unmapped.
 *
 * With a seed that reuses it is otherwise: what is dead and still has its bytes is
 * given out again, bytes and address, to the next that asks for as much.
 */
#include "sim/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/blocks.h"

#define ALIGNMENT 256u
#define GUARD_LEAST UINT64_C(4096)
#define GUARD_MOST (UINT64_C(8) << 30)
#define STRUCTS_PER_SLAB 64
#define QUARANTINE_BYTES (UINT64_C(64) << 20)
#define QUARANTINE_RANGES 4096u
#define EVICT_BATCH 1024u /* taking out of the table costs a pass over it */
#define NOISE_STEP UINT64_C(0xd1342543de82ef95)
#define LARGEST (UINT64_C(1) << 46)

typedef struct range {
  uint64_t base, size;
  tps_sim_allocation *allocation;
} range;

typedef struct table {
  _Atomic size_t count;
  size_t capacity;
  struct table *next; /* in the list of the retired */
  uint64_t retired;   /* epoch */
  range ranges[];
} table;

/* First in, first out. */
typedef struct list {
  tps_sim_allocation *first, *last;
  uint64_t ranges;
} list;

typedef struct universe {
  unsigned spaces; /* that lie in it */
  pthread_mutex_t lock;
  _Atomic(table *) table;
  table *retired;
  _Atomic uint64_t epoch;
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

/* --- the table ------------------------------------------------------------ */

static table *table_new(size_t capacity) {
  table *t = malloc(sizeof *t + capacity * sizeof t->ranges[0]);
  if (t == NULL) return NULL;
  atomic_init(&t->count, 0);
  t->capacity = capacity;
  t->next = NULL;
  t->retired = 0;
  return t;
}

/* Makes `t` the one that readers see; the old one waits for its last reader. */
static void publish(universe *u, table *t) {
  table *old = atomic_load_explicit(&u->table, memory_order_relaxed);
  atomic_store_explicit(&u->table, t, memory_order_release);
  old->retired = atomic_fetch_add(&u->epoch, 1);
  old->next = u->retired;
  u->retired = old;
}

static bool make_room(universe *u) {
  table *t = atomic_load_explicit(&u->table, memory_order_relaxed);
  size_t count = atomic_load_explicit(&t->count, memory_order_relaxed);
  if (count < t->capacity) return true;
  table *bigger = table_new(t->capacity * 2);
  if (bigger == NULL) return false;
  memcpy(bigger->ranges, t->ranges, count * sizeof t->ranges[0]);
  atomic_init(&bigger->count, count);
  publish(u, bigger);
  return true;
}

/* There must be room. */
static void append(universe *u, tps_sim_allocation *a) {
  table *t = atomic_load_explicit(&u->table, memory_order_relaxed);
  size_t count = atomic_load_explicit(&t->count, memory_order_relaxed);
  t->ranges[count] = (range){a->base, a->size, a};
  atomic_store_explicit(&t->count, count + 1, memory_order_release);
}

/* Number of ranges that begin at or below `address`. */
static size_t ranges_below(const table *t, size_t count, uint64_t address) {
  size_t low = 0;
  while (count > 0) {
    size_t half = count / 2;
    if (t->ranges[low + half].base <= address) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}

/* --- the space ------------------------------------------------------------ */

static universe *universe_new(void) {
  universe *u = calloc(1, sizeof *u);
  table *t = table_new(64);
  if (u == NULL || t == NULL) {
    free(u);
    free(t);
    return NULL;
  }
  pthread_mutex_init(&u->lock, NULL);
  atomic_init(&u->table, t);
  atomic_init(&u->epoch, 1);
  u->next = TPS_SIM_GLOBAL_BASE;
  return u;
}

static void free_tables(table *t) {
  while (t != NULL) {
    table *next = t->next;
    free(t);
    t = next;
  }
}

static void universe_destroy(universe *u) {
  table *t = atomic_load(&u->table);
  for (size_t i = 0; i < atomic_load(&t->count); i++) {
    tps_sim_allocation *a = t->ranges[i].allocation;
    tps_sim_blocks_unmap(a->host, a->size);
  }
  free(t);
  free_tables(u->retired);
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
  if (!make_room(u)) return NULL;
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
  append(u, a);
  return a;
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

/* The table with `now` in place of `before`, which begins where it does. */
static bool exchange(universe *u, const tps_sim_allocation *before,
                     tps_sim_allocation *now) {
  table *t = atomic_load_explicit(&u->table, memory_order_relaxed);
  size_t count = atomic_load_explicit(&t->count, memory_order_relaxed);
  table *next = table_new(t->capacity);
  if (next == NULL) return false;
  memcpy(next->ranges, t->ranges, count * sizeof t->ranges[0]);
  size_t at = ranges_below(t, count, before->base) - 1;
  next->ranges[at] = (range){now->base, now->size, now};
  atomic_init(&next->count, count);
  publish(u, next);
  return true;
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
  if (!exchange(u, old, a)) {
    space->used -= charge(a);
    push(&u->spare, a);
    return NULL;
  }
  take_out(&u->kept, old);
  u->kept_bytes -= old->size;
  old->died = atomic_fetch_add(&u->epoch, 1);
  push(&u->bare, old);
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

static void look_if_overfull(universe *u) {
  bool overfull =
      u->kept_bytes > QUARANTINE_BYTES ||
      u->bare.ranges + u->kept.ranges > QUARANTINE_RANGES + EVICT_BATCH;
  atomic_store_explicit(&u->overfull, overfull, memory_order_relaxed);
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
  a->died = atomic_fetch_add(&u->epoch, 1);
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
  const table *t = atomic_load(&u->table);
  for (size_t i = 0; i < atomic_load(&t->count); i++)
    if (atomic_load(&t->ranges[i].allocation->live) &&
        t->ranges[i].allocation->owner == space)
      bury(t->ranges[i].allocation, "", 0);
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

static bool is_gone(const tps_sim_allocation *a) {
  return a->died == 0 && !atomic_load_explicit(&a->live, memory_order_relaxed);
}

/* Takes the oldest dead out of the table; their structs serve again. */
static void evict(universe *u, uint64_t epoch) {
  uint64_t dead = u->bare.ranges + u->kept.ranges;
  if (dead <= QUARANTINE_RANGES + EVICT_BATCH) return;
  table *t = atomic_load_explicit(&u->table, memory_order_relaxed);
  size_t count = atomic_load_explicit(&t->count, memory_order_relaxed);
  table *smaller = table_new(t->capacity);
  if (smaller == NULL) return; /* the next reclaim tries again */
  list gone = {0};
  pick_oldest(u, dead - QUARANTINE_RANGES, epoch, &gone);
  size_t n = 0;
  for (size_t i = 0; i < count; i++)
    if (!is_gone(t->ranges[i].allocation)) smaller->ranges[n++] = t->ranges[i];
  atomic_init(&smaller->count, n);
  publish(u, smaller);
  for (tps_sim_allocation *a; (a = pop(&gone)) != NULL;) push(&u->spare, a);
}

static void drop_tables(universe *u, uint64_t epoch) {
  for (table **p = &u->retired; *p != NULL;) {
    table *t = *p;
    if (t->retired < epoch) {
      *p = t->next;
      free(t);
    } else {
      p = &t->next;
    }
  }
}

uint64_t tps_sim_space_epoch(tps_sim_space *space) {
  return atomic_load(&space->u->epoch);
}

bool tps_sim_space_is_overfull(tps_sim_space *space) {
  return atomic_load_explicit(&space->u->overfull, memory_order_relaxed);
}

void tps_sim_space_reclaim_before(tps_sim_space *space, uint64_t epoch) {
  universe *u = space->u;
  pthread_mutex_lock(&u->lock);
  strip(u, epoch);
  evict(u, epoch);
  drop_tables(u, epoch);
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
  table *t = atomic_load_explicit(&space->u->table, memory_order_acquire);
  size_t count = atomic_load_explicit(&t->count, memory_order_acquire);
  size_t below = ranges_below(t, count, address);
  if (below == 0) return NULL;
  const range *r = &t->ranges[below - 1];
  return address - r->base < r->size ? r->allocation : NULL;
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
  table *t = atomic_load_explicit(&space->u->table, memory_order_relaxed);
  size_t count = atomic_load_explicit(&t->count, memory_order_relaxed);
  tps_sim_allocation *best = NULL;
  for (size_t i = 0; i < count; i++)
    if (t->ranges[i].allocation->kind != TPS_SIM_INTERNAL)
      best = nearer(best, t->ranges[i].allocation, address);
  pthread_mutex_unlock(&space->u->lock);
  return best;
}
