/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What a build that failed comes to: NVRTC's result and log as an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rtc/parts.h"

/* "program.cu(6): identifier … (and 3 more errors)" */
static int fail_compilation(const tps_rtc_report *report, tps_error *err) {
  const tps_rtc_diagnostic *first = NULL;
  size_t errors = 0;
  for (size_t i = 0; i < report->diagnostic_count; i++)
    if (report->diagnostics[i].severity == TPS_RTC_ERROR) {
      if (first == NULL) first = &report->diagnostics[i];
      errors++;
    }
  if (first == NULL)
    return tps_fail(err, TPS_COMPILATION, "compilation failed: %s",
                    report->log != NULL ? report->log : "");
  char more[48] = "";
  if (errors > 1)
    snprintf(more, sizeof more, " (and %zu more error%s)", errors - 1,
             errors > 2 ? "s" : "");
  if (first->line > 0)
    return tps_fail(err, TPS_COMPILATION, "compilation failed: %s:%d: %s%s",
                    first->file, first->line, first->message, more);
  return tps_fail(err, TPS_COMPILATION, "compilation failed: %s%s",
                  first->message, more);
}

int tps_rtc_fail_empty(const tps_compiler *compiler, const tps_rtc_request *r,
                       tps_error *err) {
  const char *culprit = NULL;
  for (size_t i = 0; i < r->option_count; i++)
    if (strstr(r->options[i], "lto") != NULL ||
        strstr(r->options[i], "dlink") != NULL)
      culprit = r->options[i];
  tps_strings options = {0};
  for (size_t i = 0; i < r->option_count; i++)
    if (!tps_strings_add(&options, r->options[i])) break;
  char *all = tps_strings_join(&options, " ");
  tps_fail(err, TPS_COMPILER,
           "NVRTC %s made no PTX, which is needed here%s%s%s; the options "
           "given were: %s",
           compiler->version, culprit != NULL ? ": option '" : "",
           culprit != NULL ? culprit : "",
           culprit != NULL ? "' makes it give something else" : "",
           all != NULL ? all : "");
  free(all);
  tps_strings_free(&options);
  return TPS_COMPILER;
}

int tps_rtc_fail_result(const tps_compiler *compiler,
                        const tps_strings *options, int result,
                        const tps_rtc_report *report, tps_error *err) {
  static const char *const prefixes[] = {"nvrtc: error: ",
                                         "Command-line error: "};
  const char *log = report->log != NULL ? report->log : "";
  bool options_fault = result != TPS_NVRTC_COMPILATION;
  for (int i = 0; i < 2; i++)
    if (strncmp(log, prefixes[i], strlen(prefixes[i])) == 0) {
      log += strlen(prefixes[i]);
      options_fault = true;
    }
  int log_size = (int)strcspn(log, "\n");
  if (!options_fault) return fail_compilation(report, err);
  if (result == TPS_NVRTC_OUT_OF_MEMORY)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  if (result == TPS_NVRTC_BUILTINS)
    return tps_fail(err, TPS_COMPILER_MISSING,
                    "NVRTC at %s did not find its libnvrtc-builtins.so.%s, "
                    "which belongs beside it: %.*s",
                    compiler->path, compiler->version, log_size, log);
  char *all = tps_strings_join(options, " ");
  tps_fail(err, TPS_COMPILER, "NVRTC %s: %.*s; the options were: %s",
           compiler->version, log_size, log, all != NULL ? all : "");
  free(all);
  return TPS_COMPILER;
}
