/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The order of a seed (TPSTREAM_SIM_SEED): one of those that CUDA's rules allow,
 * chosen by dice, the same each time.
 *
 * - Nothing starts by itself. What has reached the head of its stream and waits
 *   for nothing else, be it a kernel, a copy, an event or a free, is a
 *   candidate; so is each task that runs. Chance picks among them, with a
 *   preference for one stream that changes now and then, so that others get far
 *   behind. Priorities are hints: they count for nothing here.
 * - There is one worker, and it runs only while the host waits, or in the middle
 *   of a call of the host, for a number of turns that the dice tell. So the
 *   order depends on the calls and the seed alone, not on time.
 * - A host that does something else for long, as one that polls pinned memory,
 *   lets the worker run freely until its next call. That is the one thing that
 *   depends on time.
 */
#include "sim/queue.h"

#define FREE_AFTER_NS 20000000u
#define TURNS_MOST 128u

uint64_t tps_sim_dice(tps_sim_pool *pool) {
  uint64_t x = pool->dice += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

/* --- streams that could start something ----------------------------------- */

static bool can_start(const tps_sim_stream *stream) {
  const tps_sim_task *head = stream->head;
  return head != NULL && !head->started && head->blockers == 0;
}

void tps_sim_chance_add(tps_sim_stream *stream) {
  tps_sim_pool *pool = stream->device->pool;
  if (stream->startable) return;
  stream->startable = true;
  stream->startable_next = pool->startable;
  pool->startable = stream;
  atomic_fetch_add_explicit(&pool->offers, 1, memory_order_release);
  if (pool->idle > 0) pthread_cond_broadcast(&pool->work);
}

void tps_sim_chance_remove(tps_sim_stream *stream) {
  if (!stream->startable) return;
  tps_sim_stream **p = &stream->device->pool->startable;
  while (*p != stream) p = &(*p)->startable_next;
  *p = stream->startable_next;
  stream->startable = false;
}

/* --- the decision --------------------------------------------------------- */

/* What can be picked: a stream whose head starts, or a task that runs. */
typedef struct pick {
  tps_sim_stream *stream;
  tps_sim_task *task;
} pick;

typedef struct lot {
  tps_sim_pool *pool;
  bool favours; /* the preferred stream, else any */
  uint64_t best, seen;
  pick chosen;
} lot;

static uint64_t favour(const tps_sim_pool *pool, const tps_sim_stream *stream) {
  uint64_t x = (stream->handle + 1) * UINT64_C(0x9e3779b97f4a7c15);
  x ^= pool->fashion;
  return (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
}

static void consider(lot *l, tps_sim_stream *stream, tps_sim_task *task) {
  uint64_t worth = l->favours ? favour(l->pool, stream) : 0;
  l->seen++;
  bool better = l->favours ? l->seen == 1 || worth > l->best
                           : tps_sim_dice(l->pool) % l->seen == 0;
  if (!better) return;
  l->best = worth;
  l->chosen = (pick){task == NULL ? stream : NULL, task};
}

static void consider_running(lot *l) {
  for (int level = 0; level < TPS_SIM_LEVELS; level++) {
    tps_sim_task *first = l->pool->rings[level], *task = first;
    if (first == NULL) continue;
    do {
      if (tps_sim_has_any(task)) consider(l, task->stream, task);
      task = task->ring_next;
    } while (task != first);
  }
}

static pick choose(tps_sim_pool *pool) {
  lot l = {.pool = pool, .favours = tps_sim_dice(pool) % 4 != 0};
  if (tps_sim_dice(pool) % 16 == 0) pool->fashion = tps_sim_dice(pool);
  for (tps_sim_stream **p = &pool->startable; *p != NULL;) {
    tps_sim_stream *stream = *p;
    if (can_start(stream)) {
      consider(&l, stream, NULL);
      p = &stream->startable_next;
    } else {
      *p = stream->startable_next;
      stream->startable = false;
    }
  }
  consider_running(&l);
  return l.chosen;
}

static tps_sim_aside *take_one(tps_sim_asides *list, uint64_t skip) {
  tps_sim_asides before = {0};
  while (skip-- > 0) tps_sim_asides_push(&before, tps_sim_asides_pop(list));
  tps_sim_aside *one = tps_sim_asides_pop(list);
  tps_sim_asides_move(&before, list);
  *list = before;
  return one;
}

/* A fresh part, or one of those set aside. */
static void take(tps_sim_pool *pool, tps_sim_task *task, tps_sim_turn *t) {
  uint64_t ready = task->ready.count, aside = ready + task->yielded.count;
  *t = (tps_sim_turn){.task = task};
  if (tps_sim_take_beginning(task, t)) return;
  bool fresh = tps_sim_has_fresh(task);
  if (fresh && (aside == 0 || tps_sim_dice(pool) % 2 == 0)) {
    tps_sim_take_fresh(task, 1, t);
    return;
  }
  uint64_t skip = tps_sim_dice(pool) % aside;
  if (skip < ready) t->aside = take_one(&task->ready, skip);
  else t->aside = take_one(&task->yielded, skip - ready);
}

bool tps_sim_chance_decide(tps_sim_pool *pool, tps_sim_turn *t) {
  *t = (tps_sim_turn){.task = NULL};
  pick p = choose(pool);
  if (p.task != NULL) {
    take(pool, p.task, t);
    t->slice = tps_sim_dice(pool) % 4 == 0 ? 1 + tps_sim_dice(pool) % 64 : 0;
  } else if (p.stream != NULL) {
    tps_sim_chance_remove(p.stream);
    tps_sim_start_head(p.stream);
  } else {
    return false;
  }
  if (pool->allowance > 0 && --pool->allowance == 0 && pool->waiting > 0)
    pthread_cond_broadcast(&pool->calm); /* it will not hold for that */
  return true;
}

/* --- when the worker may run ---------------------------------------------- */

bool tps_sim_chance_may_run(const tps_sim_pool *pool) {
  return pool->allowance > 0 || pool->waiting > 0 || pool->at_liberty;
}

void tps_sim_chance_hold(tps_sim_pool *pool) {
  uint64_t calls = pool->calls;
  bool idle = pool->runnable == 0 && pool->startable == NULL;
  pthread_cond_broadcast(&pool->calm);
  if (!tps_sim_rest_for(pool, idle ? 0 : FREE_AFTER_NS) &&
      pool->calls == calls && pool->calling == 0)
    pool->at_liberty = true;
}

static uint64_t turns_for(tps_sim_pool *pool, bool asks) {
  uint64_t x = tps_sim_dice(pool), n = tps_sim_dice(pool);
  if (asks) return 1 + n % (x % 4 == 0 ? TURNS_MOST : 8);
  switch (x % 8) {
  case 0: return TURNS_MOST;
  case 1: return 1 + n % 32;
  case 2:
  case 3: return 1 + n % 4;
  default: return 0;
  }
}

void tps_sim_chance_call(tps_sim_pool *pool, bool asks) {
  if (pool->seed == 0 || pool->thread_count == 0) return;
  pool->at_liberty = false;
  pool->calls++;
  pool->calling++;
  pool->allowance += turns_for(pool, asks);
  if (pool->allowance > 0) pthread_cond_broadcast(&pool->work);
  while (!pool->stopping &&
         (pool->allowance > 0 || (pool->in_turn && pool->waiting == 0)))
    pthread_cond_wait(&pool->calm, &pool->lock);
  pool->calling--;
}

void tps_sim_asked(tps_sim_pool *pool) {
  if (pool->seed == 0) return;
  tps_sim_lock(pool);
  tps_sim_chance_call(pool, true);
  tps_sim_unlock(pool);
}
