/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Checks of a request, but for the source itself: what NVRTC would take for
 * something else, or die of. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rtc/parts.h"

static int check_lines(const char *what, const char *const *items, size_t count,
                       tps_error *err) {
  int code = 0;
  for (size_t i = 0; i < count && code == 0; i++)
    code = tps_rtc_check_line(what, items[i], err);
  return code;
}

/* An identifier, or one with its parameters: "MAX(a,b)". */
static int check_macro(const char *name, tps_error *err) {
  size_t n = 0;
  while (isalnum((unsigned char)name[n]) || name[n] == '_') n++;
  size_t length = strlen(name);
  bool whole = name[n] == '\0' || (name[n] == '(' && name[length - 1] == ')');
  if (n > 0 && !isdigit((unsigned char)name[0]) && whole) return 0;
  return tps_fail(err, TPS_MISUSE, "define '%.200s' is not a macro's name",
                  name);
}

static int check_defines(const tps_rtc_request *r, tps_error *err) {
  int code = 0;
  for (size_t i = 0; i < r->define_count && code == 0; i++) {
    const tps_rtc_define *d = &r->defines[i];
    code = tps_rtc_check_line("name of a define", d->name, err);
    if (code == 0) code = check_macro(d->name, err);
    char what[128];
    snprintf(what, sizeof what, "value of the define %s", d->name);
    if (code == 0 && d->value != NULL && *d->value != '\0')
      code = tps_rtc_check_line(what, d->value, err);
  }
  return code;
}

static int check_headers(const tps_rtc_request *r, tps_error *err) {
  int code = 0;
  for (size_t i = 0; i < r->header_count && code == 0; i++) {
    const tps_rtc_header *header = &r->headers[i];
    char what[256];
    snprintf(what, sizeof what, "header '%s'", header->name);
    code = tps_rtc_check_line("name of a header", header->name, err);
    if (code == 0)
      code = tps_rtc_check_text(what, header->text, strlen(header->text), err);
  }
  return code;
}

/* NVRTC ends the process when it can't write the file of
 * --fdevice-time-trace=FILE, which it calls FILE.json. */
static int check_trace(const char *option, tps_error *err) {
  char *path;
  const char *name = option + strspn(option, "-");
  if (strncmp(name, "fdevice-time-trace=", 19) != 0) return 0;
  if (asprintf(&path, "%s.json", name + 19) < 0)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  FILE *file = fopen(path, "ab");
  int code = file != NULL ? 0
                          : tps_fail(err, TPS_IO, "cannot write '%s': %s", path,
                                     strerror(errno));
  if (file != NULL) fclose(file);
  free(path);
  return code;
}

static int check_options(const tps_rtc_request *r, tps_error *err) {
  int code = check_lines("option", r->options, r->option_count, err);
  if (code == 0 && r->untrusted) code = tps_rtc_check_untrusted(r, err);
  for (size_t i = 0; i < r->option_count && code == 0; i++)
    code = check_trace(r->options[i], err);
  return code;
}

int tps_rtc_check_request(const tps_rtc_request *r, tps_error *err) {
  int code = check_lines("name expression", r->names, r->name_count, err);
  if (code == 0) code = check_headers(r, err);
  if (code == 0)
    code = check_lines("include directory", r->includes, r->include_count, err);
  if (code == 0) code = check_defines(r, err);
  if (code == 0 && r->std != NULL)
    code = tps_rtc_check_line("std", r->std, err);
  if (code == 0 && r->folder != NULL)
    code = tps_rtc_check_line("folder", r->folder, err);
  if (code == 0 && r->name != NULL)
    code = tps_rtc_check_line("name", r->name, err);
  if (code == 0) code = check_options(r, err); /* last: it makes a file */
  return code;
}
