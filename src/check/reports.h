/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the checker has found: one report for what is the same mistake, with how
 * often it was seen. Thread safe; a report's texts never change.
 */
#ifndef TPS_CHECK_REPORTS_H
#define TPS_CHECK_REPORTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One of the two operations that have no order. */
typedef struct tps_report_side {
  const char *access; /* "write", "read", "read and write" */
  const char *kind;   /* "kernel", "copy", "fill", "host" */
  const char *kernel; /* or NULL */
  const char *source; /* "" if not known, as line 0 */
  int line;           /* that queued it; of a graph's part: captured it */
  uint64_t stream;    /* id; of the host's: 0 */
  char on[48]; /* "stream 2", "the default stream of sim:1", "the host" */
  char launched[200]; /* "script.lua:12", of a graph's part; else "" */
} tps_report_side;

typedef struct tps_report {
  unsigned check; /* TPS_CHECK_ORDER or one of TPS_WATCH_* */
  uint64_t key;   /* with `check`: what makes it the same */
  atomic_int refs;
  _Atomic uint64_t count;
  uint64_t seen; /* the last time, of tps_report_now; under the lock */
  char *text;    /* lines, each ended by "\n"; owned */
  char *hint;    /* owned, or NULL */
  /* Of the order check: */
  tps_report_side first, second;
  const char *dtype;         /* of the buffer, or NULL */
  int64_t elements;          /* it has; of bytes where there is no dtype */
  int64_t from, to;          /* those concerned, from 1 on */
  const char *buffer_source; /* that made it, "" if not known */
  int buffer_line;
  /* Of the others: the launch. */
  const char *kernel, *source;
  int line;
} tps_report;

/* Takes over `report` (one reference; check, key and all else filled in), or
 * counts it where there is one like it, and frees it. False: no memory, and it is
 * gone. */
bool tps_report_add(tps_report *report);
/* True, and it is counted, when there is one like it already. */
bool tps_report_again(unsigned check, uint64_t key);
tps_report *tps_report_new(unsigned check, uint64_t key); /* NULL: no memory */
void tps_report_unref(tps_report *report);

/* How many there are. */
size_t tps_report_count(void);
/* A time that only reports make go on. */
uint64_t tps_report_now(void);
/* Those that were seen after that time, a reference to each, in an owned array of
 * *count, in the order in which they were first seen. NULL: no memory. */
tps_report **tps_report_list(uint64_t after, size_t *count);
/* Forgets all. */
void tps_report_clear(void);
/* Called with each new report from now on, on any thread, never two at a time;
 * it must call nothing of the library. NULL: nobody. */
void tps_report_tell(void (*tell)(const tps_report *report));

#endif
