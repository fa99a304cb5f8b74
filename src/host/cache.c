/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * --cache: what is kept of earlier compiles, and `--cache clear`, which empties
 * it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/host.h"
#include "rtc/rtc.h"

static void print_text(const tps_rtc_cache *c) {
  if (c->folder == NULL) {
    printf("no cache: %s\n", c->why);
    return;
  }
  printf("folder   %s\n", c->folder);
  printf("entries  %" PRIu64 "\n", c->entries);
  printf("size     %.1f MB of at most %.1f MB\n", (double)c->bytes / 1e6,
         (double)c->limit / 1e6);
  if (c->unusable[0] != '\0') printf("unusable: %s\n", c->unusable);
}

void host_json_cache(host_json *json, const char *key, const tps_rtc_cache *c) {
  host_json_open(json, key, '{');
  host_json_string(json, "folder", c->folder);
  host_json_string(json, "why", c->folder == NULL ? c->why : NULL);
  host_json_string(json, "unusable",
                   c->unusable[0] != '\0' ? c->unusable : NULL);
  host_json_integer(json, "entries", (int64_t)c->entries);
  host_json_integer(json, "bytes", (int64_t)c->bytes);
  host_json_integer(json, "limit", (int64_t)c->limit);
  host_json_close(json, '}');
}

static bool clear(const host_options *options) {
  tps_error err;
  uint64_t left = 0;
  if (tps_rtc_cache_clear(&left, &err) != 0) {
    host_message(options->program, err.message);
    return false;
  }
  if (left == 0) return true;
  char text[100];
  snprintf(text, sizeof text, "%" PRIu64 " cache entr%s could not be removed",
           left, left == 1 ? "y" : "ies");
  host_message(options->program, text);
  return false;
}

bool host_cache(const host_options *options) {
  tps_rtc_cache cache;
  tps_error err;
  if (options->cache_clear && !clear(options)) return false;
  if (tps_rtc_cache_look(&cache, &err) != 0) {
    host_message(options->program, err.message);
    return false;
  }
  host_json json = {0};
  if (options->json) host_json_cache(&json, NULL, &cache);
  else print_text(&cache);
  free(cache.folder);
  return true;
}
