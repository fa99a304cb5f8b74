/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A request that lives longer than its caller's strings. */
#include <stdlib.h>
#include <string.h>

#include "rtc/parts.h"

/* A copy that lives as long as `owned`; NULL for NULL. Sets *failed. */
static const char *keep(tps_strings *owned, const char *text, bool *failed) {
  if (text == NULL) return NULL;
  if (!tps_strings_add(owned, text)) {
    *failed = true;
    return NULL;
  }
  return owned->items[owned->count - 1];
}

static const char **keep_all(tps_strings *owned, const char *const *items,
                             size_t count, bool *failed) {
  const char **copy = calloc(count + 1, sizeof *copy);
  *failed = *failed || copy == NULL;
  for (size_t i = 0; i < count && !*failed; i++)
    copy[i] = keep(owned, items[i], failed);
  return copy;
}

static bool copy_pairs(tps_rtc_request *to, const tps_rtc_request *from,
                       tps_strings *owned) {
  bool failed = false;
  tps_rtc_define *defines = calloc(from->define_count + 1, sizeof *defines);
  tps_rtc_header *headers = calloc(from->header_count + 1, sizeof *headers);
  to->defines = defines;
  to->headers = headers;
  if (defines == NULL || headers == NULL) return false;
  for (size_t i = 0; i < from->define_count && !failed; i++) {
    defines[i].name = keep(owned, from->defines[i].name, &failed);
    defines[i].value = keep(owned, from->defines[i].value, &failed);
  }
  for (size_t i = 0; i < from->header_count && !failed; i++) {
    headers[i].name = keep(owned, from->headers[i].name, &failed);
    headers[i].text = keep(owned, from->headers[i].text, &failed);
  }
  return !failed;
}

static bool copy_parts(tps_rtc_request *to, const tps_rtc_request *from) {
  tps_rtc_part *parts = calloc(from->part_count + 1, sizeof *parts);
  for (size_t i = 0; parts != NULL && i < from->part_count; i++)
    parts[i] = from->parts[i];
  to->parts = parts;
  return parts != NULL;
}

bool tps_rtc_copy(tps_rtc_request *to, const tps_rtc_request *from, char *text,
                  tps_strings *owned) {
  bool failed = false;
  *to = *from;
  to->source = text;
  to->source_size = strlen(text);
  to->folder = keep(owned, from->folder, &failed);
  to->name = keep(owned, from->name, &failed);
  to->script = keep(owned, from->script, &failed);
  to->std = keep(owned, from->std, &failed);
  to->arch = keep(owned, from->arch, &failed);
  to->includes = keep_all(owned, from->includes, from->include_count, &failed);
  to->names = keep_all(owned, from->names, from->name_count, &failed);
  to->options = keep_all(owned, from->options, from->option_count, &failed);
  bool parts = copy_parts(to, from);
  return copy_pairs(to, from, owned) && parts && !failed;
}

void tps_rtc_copy_free(tps_rtc_request *copy, tps_strings *owned) {
  free((void *)copy->source);
  free((void *)copy->includes);
  free((void *)copy->names);
  free((void *)copy->options);
  free((void *)copy->defines);
  free((void *)copy->headers);
  free((void *)copy->parts);
  tps_strings_free(owned);
}
