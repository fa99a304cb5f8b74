/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors */
#include "check/reports.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tps_report **list;
static size_t count, capacity;
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

/* Lock held. */
static tps_report *find(unsigned check, uint64_t key) {
  for (size_t i = 0; i < count; i++)
    if (list[i]->key == key && list[i]->check == check) return list[i];
  return NULL;
}

static bool again(unsigned check, uint64_t key) {
  tps_report *known = find(check, key);
  if (known != NULL) atomic_fetch_add(&known->count, 1);
  return known != NULL;
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
  list[count++] = report;
  return true;
}

void tps_report_add(tps_report *report) {
  pthread_mutex_lock(&lock);
  bool kept = !again(report->check, report->key) && append(report);
  if (kept && teller != NULL) teller(report);
  pthread_mutex_unlock(&lock);
  if (!kept) tps_report_unref(report);
}

size_t tps_report_count(void) {
  pthread_mutex_lock(&lock);
  size_t n = count;
  pthread_mutex_unlock(&lock);
  return n;
}

tps_report **tps_report_list(size_t from, size_t *out) {
  pthread_mutex_lock(&lock);
  tps_report **copy = NULL;
  *out = from < count ? count - from : 0;
  if (*out > 0) copy = malloc(*out * sizeof(tps_report *));
  if (copy == NULL) *out = 0;
  for (size_t i = 0; i < *out; i++) {
    copy[i] = list[from + i];
    atomic_fetch_add_explicit(&copy[i]->refs, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&lock);
  return copy;
}

void tps_report_clear(void) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < count; i++) tps_report_unref(list[i]);
  free(list);
  list = NULL;
  count = capacity = 0;
  pthread_mutex_unlock(&lock);
}

void tps_report_tell(void (*tell)(const tps_report *report)) {
  pthread_mutex_lock(&lock);
  teller = tell;
  pthread_mutex_unlock(&lock);
}
