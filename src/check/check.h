/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The checker: finds what timing hides. One for the process, since an order
 * between two Lua states can only be seen from above both. `order` (order.h) goes
 * by what is queued, on every device; the others are the simulated device's, which
 * watches kernels (device/watch.h): here their findings are gathered, and on a GPU
 * nothing is found.
 *
 * Use: tps_check_start, as often as one likes; what is found are reports
 * (reports.h); as many tps_check_stop.
 */
#ifndef TPS_CHECK_CHECK_H
#define TPS_CHECK_CHECK_H

#include "check/reports.h"
#include "device/watch.h"

enum {
  TPS_CHECK_ORDER = 1u << 16, /* beside TPS_WATCH_MEMORY to TPS_WATCH_BARRIER */
  TPS_CHECK_ALL = TPS_CHECK_ORDER | TPS_WATCH_MEMORY | TPS_WATCH_RACE |
                  TPS_WATCH_INIT | TPS_WATCH_BARRIER
};

#define TPS_CHECK_NAMES "order, memory, race, init, barrier"

/* "order" → TPS_CHECK_ORDER; 0: no check is called that. */
unsigned tps_check_named(const char *name, size_t size);
const char *tps_check_name(unsigned check);

/* These checks as well from now on; the time (tps_report_now) is *began. False: no
 * memory. */
bool tps_check_start(unsigned checks, uint64_t *began);
/* Once for each start; the last ends all checks: what a device has not told of
 * yet is then taken as declared. */
void tps_check_stop(void);
/* As often as that; returns what tps_report_list(began, count) does, before another
 * start can make it forgotten. */
tps_report **tps_check_stop_all(unsigned starts, uint64_t began, size_t *count);
/* Checks what is known by now. */
void tps_check_settle(void);
/* Those that are on. */
unsigned tps_check_running(void);

#endif
