/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors */
#include "base/error.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct row {
  int number;
  const char *name;
  bool sticky;
  const char *message;
  const char *hint;
} row;

static const row rows[] = {
#define X(symbol, number, name, sticky, message, hint)                         \
  {number, name, sticky, message, hint},
    TPS_ERROR_CODES(X)
#undef X
};

static const row *find(int code) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].number == code) return &rows[i];
  return NULL;
}

const char *tps_code_name(int code) {
  const row *r = find(code);
  return r ? r->name : "cudaError";
}

const char *tps_code_message(int code) {
  const row *r = find(code);
  return r ? r->message : "unknown error";
}

const char *tps_code_hint(int code) {
  const row *r = find(code);
  return r ? r->hint : "";
}

bool tps_code_sticky(int code) {
  const row *r = find(code);
  return r != NULL && r->sticky;
}

int tps_vfail(tps_error *err, int code, const char *format, va_list args) {
  if (err == NULL) return code;
  err->code = code;
  err->kernel[0] = err->where[0] = '\0';
  err->stream = 0;
  int n = vsnprintf(err->message, sizeof err->message, format, args);
  if (n >= (int)sizeof err->message)
    memcpy(err->message + sizeof err->message - 4, "...", 4);
  snprintf(err->hint, sizeof err->hint, "%s", tps_code_hint(code));
  return code;
}

int tps_fail(tps_error *err, int code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  code = tps_vfail(err, code, format, args);
  va_end(args);
  return code;
}
