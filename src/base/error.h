/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Errors below Lua. A function that can fail returns a code (0 is success) and,
 * where it has more to say, fills the tps_error that its caller lends it. Only
 * failure writes to that struct: success costs nothing.
 *
 * MISUSE means that the script's arguments are wrong: lua/ raises its message as
 * a plain string. Every other code becomes an error object.
 */
#ifndef TPS_BASE_ERROR_H
#define TPS_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#include "base/error_codes.h"

/* Not inlined, and what leads there is kept out of the way of what is usual:
 * where a driver has emptied the caches in between, each line of code counts. */
#define TPS_COLD __attribute__((cold, noinline))
#define TPS_UNLIKELY(x) __builtin_expect(!!(x), 0)

typedef enum tps_code {
#define X(symbol, number, name, sticky, message, hint) TPS_##symbol = number,
  TPS_ERROR_CODES(X)
#undef X
} tps_code;

typedef struct tps_error {
  int code;           /* a tps_code, or a CUDA number that the list lacks */
  char message[2048]; /* what broke, the culprit and the limit; lower case,
                           no full stop; cut with "..." when it is longer */
  char hint[512];     /* what to do about it, or "" */
  char kernel[256];   /* kernel at fault, or "" */
  unsigned long long stream; /* id of the stream + 1, or 0 for none */
  char where[512];           /* "file:line" of the launch at fault, or "" */
} tps_error;

/* Fills *err (when not NULL) with code, a printf-like message and the list's
 * hint; clears the other fields. Returns code, so that `return tps_fail(...)`
 * is the one form of failing. */
TPS_COLD int tps_fail(tps_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int tps_vfail(tps_error *err, int code, const char *format, va_list args);

/* "cudaErrorInvalidValue" …; "unknown error 4711" codes give "cudaError". */
const char *tps_code_name(int code);
const char *tps_code_message(int code);
const char *tps_code_hint(int code);
bool tps_code_sticky(int code);

/* NCCL-like check: leaves the current function through `label` on failure. The
 * function must have a local `int code`. */
#define TPS_TRY(label, call)                                                   \
  do {                                                                         \
    code = (call);                                                             \
    if (code != 0) goto label;                                                 \
  } while (0)

#endif
