/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * --check: reports go to standard error as they are found, in the form that
 * compute-sanitizer has made known; at the end, how many there were.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "host/host.h"

static bool checking;

bool host_check_read(const char *list, unsigned *checks, char *unknown,
                     size_t size) {
  unsigned all = 0;
  for (const char *p = list;; p++) {
    size_t length = strcspn(p, ",");
    unsigned check = tps_check_named(p, length);
    if (check == 0) {
      snprintf(unknown, size, "%.*s", (int)length, p);
      return false;
    }
    all |= check;
    p += length;
    if (*p == '\0') break;
  }
  *checks |= all;
  return true;
}

static void print(const tps_report *report) {
  fflush(stdout);
  for (const char *p = report->text; *p != '\0';) {
    size_t length = strcspn(p, "\n");
    fprintf(stderr, "========= %.*s\n", (int)length, p);
    p += length + (p[length] == '\n');
  }
  fputs("=========\n", stderr);
  fflush(stderr);
}

bool host_check_begin(const host_options *options) {
  uint64_t began;
  if (options->checks == 0) return true;
  tps_report_tell(print);
  checking = tps_check_start(options->checks, &began);
  if (!checking) host_message(options->program, "--check: not enough memory");
  return checking;
}

/* "3 times: Missing order …", of what was seen again after it was printed. */
static void print_again(const tps_report *report) {
  unsigned long long times = atomic_load(&report->count);
  int length = (int)strcspn(report->text, "\n");
  if (times > 1)
    fprintf(stderr, "========= %llu times: %.*s\n", times, length,
            report->text);
}

static void print_summary(size_t found) {
  size_t count; /* 0 where there is no memory for the list */
  tps_report **list = tps_report_list(0, &count);
  fflush(stdout);
  for (size_t i = 0; i < count; i++) {
    print_again(list[i]);
    tps_report_unref(list[i]);
  }
  free(list);
  fprintf(stderr, "========= ERROR SUMMARY: %zu error%s\n", found,
          found == 1 ? "" : "s");
  fflush(stderr);
}

/* Once more where a finalizer calls os.exit while the Lua state is closed. */
int host_check_end(int status) {
  static bool found;
  if (checking) {
    checking = false;
    tps_check_stop();
    tps_report_tell(NULL);
    size_t count = tps_report_count();
    found = count > 0;
    if (found || host_has_run()) print_summary(count);
  }
  return status == STATUS_OK && found ? STATUS_FOUND : status;
}
