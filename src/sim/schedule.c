/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What a worker runs next. Each decision takes a part, or a batch of short
 * ones, from one of the tasks that streams have started:
 *
 * - the highest priority goes first, tasks of one priority take turns;
 * - a block that spent its slice goes behind the other begun blocks of its
 * task; now and then a fresh block is begun beside them, since they may be
 * waiting for it;
 * - a block that yields goes behind all of its own priority and below, but for
 *   a quarter of the decisions;
 * - each 16th decision serves whoever has waited longest, whatever its
 * priority, so that a kernel that spins can't keep what it waits for from
 * running.
 */
#include "sim/queue.h"

#define BATCH_NS 50000u /* aim for a batch of short parts */
#define BATCH_MOST 64u
#define FRESH_AFTER 8u /* turns of begun blocks per fresh one */

static uint64_t dice(tps_sim_pool *pool) {
  uint64_t x = pool->seed += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

/* --- blocks set aside ----------------------------------------------------- */

void tps_sim_asides_push(tps_sim_asides *list, tps_sim_aside *aside) {
  aside->next = NULL;
  if (list->last != NULL)
    list->last->next = aside;
  else
    list->first = aside;
  list->last = aside;
  list->count++;
}

static tps_sim_aside *asides_pop(tps_sim_asides *list) {
  tps_sim_aside *aside = list->first;
  list->first = aside->next;
  if (list->first == NULL) list->last = NULL;
  list->count--;
  return aside;
}

void tps_sim_asides_move(tps_sim_asides *to, tps_sim_asides *from) {
  while (from->count > 0) tps_sim_asides_push(to, asides_pop(from));
}

/* --- the rings ------------------------------------------------------------ */

void tps_sim_ring_insert(tps_sim_pool *pool, tps_sim_task *task) {
  tps_sim_task **ring = &pool->rings[task->stream->level];
  if (*ring == NULL) {
    task->ring_next = task->ring_previous = task;
    *ring = task;
  } else {
    task->ring_next = *ring;
    task->ring_previous = (*ring)->ring_previous;
    task->ring_previous->ring_next = task;
    (*ring)->ring_previous = task;
  }
  pool->runnable++;
}

void tps_sim_ring_remove(tps_sim_pool *pool, tps_sim_task *task) {
  tps_sim_task **ring = &pool->rings[task->stream->level];
  if (task->ring_next == task) {
    *ring = NULL;
  } else {
    if (*ring == task) *ring = task->ring_next;
    task->ring_previous->ring_next = task->ring_next;
    task->ring_next->ring_previous = task->ring_previous;
  }
  task->ring_next = task->ring_previous = NULL;
  pool->runnable--;
}

static bool has_fresh(const tps_sim_task *task) {
  return task->next_part < task->parts && task->resident < task->resident_limit;
}

static bool has_ready(const tps_sim_task *task) {
  return task->ready.count > 0 || has_fresh(task);
}

static bool has_any(const tps_sim_task *task) {
  return task->yielded.count > 0 || has_ready(task);
}

/* The first one of the ring that has what is wanted; it goes to the ring's end.
 */
static tps_sim_task *ring_find(tps_sim_pool *pool, int level,
                               bool (*wanted)(const tps_sim_task *)) {
  tps_sim_task *first = pool->rings[level], *task = first;
  if (first == NULL) return NULL;
  if (pool->seed != 0)
    for (uint64_t skip = dice(pool) % pool->runnable; skip > 0; skip--)
      first = task = task->ring_next;
  do {
    if (wanted(task)) {
      pool->rings[level] = task->ring_next;
      return task;
    }
    task = task->ring_next;
  } while (task != first);
  return NULL;
}

static tps_sim_task *find(tps_sim_pool *pool, int lowest,
                          bool (*wanted)(const tps_sim_task *)) {
  for (int level = TPS_SIM_LEVELS - 1; level >= lowest; level--) {
    tps_sim_task *task = ring_find(pool, level, wanted);
    if (task != NULL) return task;
  }
  return NULL;
}

static bool has_yielded(const tps_sim_task *task) {
  return task->yielded.count > 0;
}

static tps_sim_task *longest_waiting(tps_sim_pool *pool) {
  tps_sim_task *best = NULL;
  for (int level = 0; level < TPS_SIM_LEVELS; level++) {
    tps_sim_task *first = pool->rings[level], *task = first;
    if (first == NULL) continue;
    do {
      if (has_any(task) && (best == NULL || task->served < best->served))
        best = task;
      task = task->ring_next;
    } while (task != first);
  }
  return best;
}

/* --- the decision --------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t batch_size(const tps_sim_pool *pool, const tps_sim_task *task) {
  uint64_t left = task->parts - task->next_part;
  uint64_t share = left / (2 * (uint64_t)pool->threads) + 1;
  uint64_t count = task->part_ns == 0 ? 1 : BATCH_NS / task->part_ns;
  count = least(count, BATCH_MOST);
  count = least(count, share);
  count = least(count, task->resident_limit - task->resident);
  return count == 0 ? 1 : count;
}

static void take_fresh(tps_sim_pool *pool, tps_sim_task *task,
                       tps_sim_turn *t) {
  t->first = task->next_part;
  t->count = batch_size(pool, task);
  task->next_part += t->count;
  task->resident += t->count;
  task->aside_picks = 0;
}

/* Whether a fresh block goes before those begun. */
static bool prefers_fresh(tps_sim_pool *pool, const tps_sim_task *task) {
  if (!has_fresh(task)) return false;
  if (task->ready.count == 0) return true;
  if (task->kind == TPS_SIM_TASK_LAUNCH && task->u.run.cooperative) return true;
  if (pool->seed != 0) return dice(pool) % 2 == 0;
  return task->aside_picks >= FRESH_AFTER + task->ready.count / 4;
}

static void take(tps_sim_pool *pool, tps_sim_task *task, bool yielded_first,
                 tps_sim_turn *t) {
  *t = (tps_sim_turn){.task = task};
  if (yielded_first && task->yielded.count > 0) {
    t->aside = asides_pop(&task->yielded);
  } else if (prefers_fresh(pool, task)) {
    take_fresh(pool, task, t);
  } else if (task->ready.count > 0) {
    t->aside = asides_pop(&task->ready);
    task->aside_picks++;
  } else {
    t->aside = asides_pop(&task->yielded);
  }
  task->served = pool->turn;
}

bool tps_sim_decide(tps_sim_pool *pool, tps_sim_turn *t) {
  if (pool->runnable == 0) return false;
  pool->turn++;
  if (pool->turn % 16 == 15) {
    tps_sim_task *task = longest_waiting(pool);
    if (task == NULL) return false;
    take(pool, task, pool->turn % 32 == 31, t);
    return true;
  }
  tps_sim_task *task = find(pool, 0, has_ready);
  tps_sim_task *yielded = NULL;
  if (task == NULL)
    yielded = find(pool, 0, has_yielded);
  else if (pool->turn % 4 == 2)
    yielded = find(pool, task->stream->level, has_yielded);
  if (task == NULL && yielded == NULL) return false;
  take(pool, yielded != NULL ? yielded : task, yielded != NULL, t);
  return true;
}

bool tps_sim_has_more(tps_sim_pool *pool) {
  if (pool->runnable == 0) return false;
  for (int level = 0; level < TPS_SIM_LEVELS; level++) {
    tps_sim_task *first = pool->rings[level], *task = first;
    if (first == NULL) continue;
    do {
      if (has_ready(task)) return true;
      task = task->ring_next;
    } while (task != first);
  }
  return false;
}

uint64_t tps_sim_yielded_blocks(const tps_sim_pool *pool) {
  uint64_t count = 0;
  for (int level = 0; level < TPS_SIM_LEVELS; level++) {
    const tps_sim_task *first = pool->rings[level], *task = first;
    if (first == NULL) continue;
    do {
      count += task->yielded.count;
      task = task->ring_next;
    } while (task != first);
  }
  return count;
}
