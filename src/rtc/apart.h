/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the two processes of an untrusted compile agree on, besides parts.h. The
 * job comes through descriptor 0, whose end is marked by a shutdown; the build
 * goes back there. */
#ifndef TPS_RTC_APART_H
#define TPS_RTC_APART_H

/* How the compiling process ends. */
enum {
  TPS_APART_DONE = 0,
  TPS_APART_BAD_JOB = 3,
  TPS_APART_NO_COMPILER = 4, /* not even a trivial program compiles */
  TPS_APART_NO_ANSWER = 5    /* it could not be built or sent */
};

#endif
