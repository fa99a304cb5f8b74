/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What a worker runs next. Each decision takes a part, or a batch of short
 * ones, from one of the tasks that streams have started:
 *
 * - the highest priority goes first; of one priority, the task that has had the
 *   least time;
 * - a block that spent its slice goes behind the other begun blocks of its
 *   task; now and then a fresh block is begun beside them, since they may be
 *   waiting for it;
 * - a block that yields goes behind all of its own priority and below, but for
 *   a quarter of the decisions;
 * - each 16th decision serves whoever has waited longest, whatever its
 *   priority, so that a kernel that spins can't keep what it waits for from
 *   running; each second one, when no block of the first in line ends.
 *
 * With a seed sim/chance.c decides instead.
 */
#include "sim/queue.h"

#define BATCH_NS 50000u /* aim for a batch of short parts */
#define BATCH_MOST 64u
#define RARE_BATCH_NS 500000u /* for those whose turn comes rarely */
#define RARE_BATCH_MOST 1024u
#define FRESH_AFTER 8u /* turns of begun blocks per fresh one */

/* --- blocks set aside ----------------------------------------------------- */

void tps_sim_asides_push(tps_sim_asides *list, tps_sim_aside *aside) {
  aside->next = NULL;
  if (list->last != NULL) list->last->next = aside;
  else list->first = aside;
  list->last = aside;
  list->count++;
}

tps_sim_aside *tps_sim_asides_pop(tps_sim_asides *list) {
  tps_sim_aside *aside = list->first;
  list->first = aside->next;
  if (list->first == NULL) list->last = NULL;
  list->count--;
  return aside;
}

void tps_sim_asides_move(tps_sim_asides *to, tps_sim_asides *from) {
  while (from->count > 0) tps_sim_asides_push(to, tps_sim_asides_pop(from));
}

/* --- the rings ------------------------------------------------------------ */

/* What the others of its ring have had at least: a newcomer gets no credit. */
static uint64_t least_time(const tps_sim_task *newcomer) {
  uint64_t time = newcomer->ring_next->ran_ns;
  for (const tps_sim_task *t = newcomer->ring_next; t != newcomer;
       t = t->ring_next)
    if (t->ran_ns < time) time = t->ran_ns;
  return time;
}

void tps_sim_ring_insert(tps_sim_pool *pool, tps_sim_task *task) {
  tps_sim_task **ring = &pool->rings[task->stream->level];
  task->served = pool->turn;
  task->ran_ns = 0;
  if (*ring == NULL) {
    task->ring_next = task->ring_previous = task;
    *ring = task;
  } else {
    task->ring_next = *ring;
    task->ring_previous = (*ring)->ring_previous;
    task->ring_previous->ring_next = task;
    (*ring)->ring_previous = task;
    task->ran_ns = least_time(task);
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

bool tps_sim_has_fresh(const tps_sim_task *task) {
  return task->next_part < task->parts &&
         task->resident < task->resident_limit && !task->beginning;
}

static bool has_ready(const tps_sim_task *task) {
  return task->ready.count > 0 || tps_sim_has_fresh(task);
}

bool tps_sim_has_any(const tps_sim_task *task) {
  return task->yielded.count > 0 || has_ready(task);
}

/* Of the ring's tasks that have what is wanted, the one that has run for the
 * shortest time. */
static tps_sim_task *ring_find(tps_sim_pool *pool, int level,
                               bool (*wanted)(const tps_sim_task *)) {
  tps_sim_task *first = pool->rings[level], *task = first, *best = NULL;
  if (first == NULL) return NULL;
  do {
    if (wanted(task) && (best == NULL || task->ran_ns < best->ran_ns))
      best = task;
    task = task->ring_next;
  } while (task != first);
  return best;
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
      if (tps_sim_has_any(task) &&
          (best == NULL || task->served < best->served))
        best = task;
      task = task->ring_next;
    } while (task != first);
  }
  return best;
}

/* --- the decision --------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t batch_size(const tps_sim_pool *pool, const tps_sim_task *task,
                           bool rare) {
  uint64_t left = task->parts - task->next_part;
  uint64_t share = left / (2 * (uint64_t)pool->threads) + 1;
  uint64_t ns = rare ? RARE_BATCH_NS : BATCH_NS;
  uint64_t count = task->part_ns == 0 ? 1 : ns / task->part_ns;
  count = least(count, rare ? RARE_BATCH_MOST : BATCH_MOST);
  count = least(count, share);
  count = least(count, task->resident_limit - task->resident);
  return count == 0 ? 1 : count;
}

void tps_sim_take_fresh(tps_sim_task *task, uint64_t count, tps_sim_turn *t) {
  t->first = task->next_part;
  t->count = count;
  task->next_part += t->count;
  task->resident += t->count;
  task->aside_picks = 0;
}

/* Whether a fresh block goes before those begun. */
static bool prefers_fresh(const tps_sim_task *task) {
  if (!tps_sim_has_fresh(task)) return false;
  if (task->ready.count == 0) return true;
  if (task->kind == TPS_SIM_TASK_LAUNCH && task->u.run.cooperative) return true;
  return task->aside_picks >= FRESH_AFTER + task->ready.count / 4;
}

bool tps_sim_take_beginning(tps_sim_task *task, tps_sim_turn *t) {
  if (task->kind != TPS_SIM_TASK_LAUNCH || task->u.run.launch != NULL)
    return false;
  t->begins = task->beginning = true;
  task->resident++;
  return true;
}

static void take_aside(tps_sim_task *task, tps_sim_asides *list,
                       tps_sim_turn *t) {
  t->aside = tps_sim_asides_pop(list);
  task->aside_picks++;
  task->fruitless++;
}

static void take(tps_sim_pool *pool, tps_sim_task *task, bool rare,
                 tps_sim_turn *t) {
  *t = (tps_sim_turn){.task = task};
  if (tps_sim_take_beginning(task, t)) {
  } else if (prefers_fresh(task)) {
    tps_sim_take_fresh(task, batch_size(pool, task, rare), t);
  } else {
    take_aside(task, task->ready.count > 0 ? &task->ready : &task->yielded, t);
  }
  task->served = pool->turn;
}

/* Whether the task's blocks have all run for long without one of them ending:
 * they may be waiting for another kernel, in a loop that looks like work. */
static bool may_be_waiting(const tps_sim_task *task) {
  return task->fruitless > 32 + 2 * task->resident;
}

/* A task with a block that yielded, when it is the turn of such. */
static tps_sim_task *find_yielded(tps_sim_pool *pool,
                                  const tps_sim_task *task) {
  if (task == NULL) return find(pool, 0, has_yielded);
  if (pool->turn % 4 != 2) return NULL;
  return find(pool, task->stream->level, has_yielded);
}

bool tps_sim_decide(tps_sim_pool *pool, tps_sim_turn *t) {
  if (pool->seed != 0) return tps_sim_chance_decide(pool, t);
  if (pool->runnable == 0) return false;
  pool->turn++;
  tps_sim_task *task = find(pool, 0, has_ready);
  bool generous = pool->turn % 16 == 15 ||
                  (pool->turn % 2 == 1 && task != NULL && may_be_waiting(task));
  tps_sim_task *other = generous ? longest_waiting(pool) : NULL;
  if (other != NULL) {
    take(pool, other, true, t);
    return true;
  }
  tps_sim_task *yielded = find_yielded(pool, task);
  if (yielded != NULL) {
    *t = (tps_sim_turn){.task = yielded};
    take_aside(yielded, &yielded->yielded, t);
    yielded->served = pool->turn;
    return true;
  }
  if (task != NULL) take(pool, task, false, t);
  return task != NULL;
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
