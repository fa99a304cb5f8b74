/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors */
#include "base/intern.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024

typedef struct entry {
  struct entry *next;
  size_t size;
  char text[];
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry *buckets[BUCKETS];

static size_t hash(const char *text, size_t size) {
  uint64_t h = 1469598103934665603u;
  for (size_t i = 0; i < size; i++)
    h = (h ^ (unsigned char)text[i]) * 1099511628211u;
  return (size_t)(h ^ (h >> 32)) % BUCKETS;
}

static entry *find_or_add(const char *text, size_t size) {
  entry **bucket = &buckets[hash(text, size)];
  for (entry *e = *bucket; e != NULL; e = e->next)
    if (e->size == size && memcmp(e->text, text, size) == 0) return e;
  entry *e = malloc(sizeof *e + size + 1);
  if (e == NULL) return NULL;
  e->size = size;
  memcpy(e->text, text, size);
  e->text[size] = '\0';
  e->next = *bucket;
  *bucket = e;
  return e;
}

const char *tps_intern(const char *text, size_t size) {
  pthread_mutex_lock(&lock);
  entry *e = find_or_add(text, size);
  pthread_mutex_unlock(&lock);
  return e != NULL ? e->text : "";
}
