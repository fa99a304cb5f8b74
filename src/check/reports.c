/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors */
#include "check/reports.h"

#include <pthread.h>
#include <stdlib.h>

#include "check/table.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tps_report **list;
static size_t count, capacity;
static tps_table by_key; /* those of the list */
static uint64_t now;     /* how often anything was seen */
static void (*teller)(const tps_report *report);

tps_report *tps_report_new(unsigned check, uint64_t key) {
  tps_report *report = calloc(1, sizeof *report);
  if (report == NULL) return NULL;
  report->check = check;
  report->key = key;
  atomic_init(&report->refs, 1);
  atomic_init(&report->count, 1);
  report->source = report->buffer_source = "";
  report->first.source = report->second.source = "";
  return report;
}

void tps_report_unref(tps_report *report) {
  if (report == NULL ||
      atomic_fetch_sub_explicit(&report->refs, 1, memory_order_acq_rel) != 1)
    return;
  free(report->text);
  free(report->hint);
  free(report);
}

/* Keys are hashes as they are. */
static uint64_t key_of(unsigned check, uint64_t key) {
  return key ^ check * UINT64_C(0x9e3779b97f4a7c15);
}

/* Lock held. */
static bool again(unsigned check, uint64_t key) {
  tps_report *known = tps_table_get(&by_key, key_of(check, key));
  if (known == NULL) return false;
  atomic_fetch_add(&known->count, 1);
  known->seen = ++now;
  return true;
}

bool tps_report_again(unsigned check, uint64_t key) {
  pthread_mutex_lock(&lock);
  bool known = again(check, key);
  pthread_mutex_unlock(&lock);
  return known;
}

static bool append(tps_report *report) {
  if (count == capacity) {
    size_t wide = capacity * 2 + 8;
    tps_report **room = realloc(list, wide * sizeof(tps_report *));
    if (room == NULL) return false;
    list = room;
    capacity = wide;
  }
  if (!tps_table_put(&by_key, key_of(report->check, report->key), report))
    return false;
  report->seen = ++now;
  list[count++] = report;
  return true;
}

bool tps_report_add(tps_report *report) {
  pthread_mutex_lock(&lock);
  bool known = again(report->check, report->key);
  bool kept = !known && append(report);
  if (kept && teller != NULL) teller(report);
  pthread_mutex_unlock(&lock);
  if (!kept) tps_report_unref(report);
  return known || kept;
}

size_t tps_report_count(void) {
  pthread_mutex_lock(&lock);
  size_t n = count;
  pthread_mutex_unlock(&lock);
  return n;
}

uint64_t tps_report_now(void) {
  pthread_mutex_lock(&lock);
  uint64_t time = now;
  pthread_mutex_unlock(&lock);
  return time;
}

tps_report **tps_report_list(uint64_t after, size_t *out) {
  pthread_mutex_lock(&lock);
  tps_report **copy = malloc((count + 1) * sizeof(tps_report *));
  *out = 0;
  for (size_t i = 0; i < count && copy != NULL; i++) {
    if (list[i]->seen <= after) continue;
    atomic_fetch_add_explicit(&list[i]->refs, 1, memory_order_relaxed);
    copy[(*out)++] = list[i];
  }
  pthread_mutex_unlock(&lock);
  return copy;
}

void tps_report_clear(void) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < count; i++) tps_report_unref(list[i]);
  free(list);
  tps_table_free(&by_key);
  list = NULL;
  count = capacity = 0;
  pthread_mutex_unlock(&lock);
}

void tps_report_tell(void (*tell)(const tps_report *report)) {
  pthread_mutex_lock(&lock);
  teller = tell;
  pthread_mutex_unlock(&lock);
}
