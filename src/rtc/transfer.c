/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Jobs and builds as bytes: between the processes that compile untrusted sources,
 * and for the cache. Whoever reads them trusts no count and no size. */
#include <stdlib.h>
#include <string.h>

#include "rtc/pack.h"
#include "rtc/parts.h"

#define MARK 0x74707374726d3031u /* changes when jobs look different */
#define MOST_ITEMS 1000000u

/* ---- strings ------------------------------------------------------------- */

static void pack_text(tps_packer *p, const char *text) {
  tps_pack_number(p, text != NULL);
  if (text != NULL) tps_pack_bytes(p, text, strlen(text));
}

static void pack_list(tps_packer *p, char *const *items, size_t count) {
  tps_pack_number(p, count);
  for (size_t i = 0; i < count; i++)
    tps_pack_bytes(p, items[i], strlen(items[i]));
}

static void unpack_strings(tps_unpacker *u, tps_strings *list) {
  uint64_t count = tps_unpack_number(u);
  if (count > MOST_ITEMS) u->failed = true;
  for (uint64_t i = 0; i < count && !u->failed; i++)
    if (!tps_strings_take(list, tps_unpack_bytes(u, NULL))) u->failed = true;
}

/* A text that the job owns, NULL for NULL. */
static const char *unpack_text(tps_unpacker *u, tps_rtc_job *job) {
  if (tps_unpack_number(u) == 0) return NULL;
  char *text = tps_unpack_bytes(u, NULL);
  if (text == NULL || !tps_strings_take(&job->owned, text)) u->failed = true;
  return u->failed ? NULL : text;
}

/* ---- builds -------------------------------------------------------------- */

void tps_build_pack(tps_packer *p, const tps_rtc_build *b) {
  tps_pack_number(p, (uint64_t)b->result);
  pack_text(p, b->log);
  tps_pack_number(p, b->ptx != NULL);
  if (b->ptx != NULL) tps_pack_bytes(p, b->ptx, b->ptx_size);
  tps_pack_number(p, b->cubin != NULL);
  if (b->cubin != NULL) tps_pack_bytes(p, b->cubin, b->cubin_size);
  pack_list(p, b->lowered.items, b->lowered.count);
  pack_list(p, b->typed.items, b->typed.count);
  pack_list(p, b->types.items, b->types.count);
}

bool tps_build_unpack(tps_unpacker *u, tps_rtc_build *b) {
  memset(b, 0, sizeof *b);
  uint64_t result = tps_unpack_number(u);
  b->result = result < 1000 ? (int)result : TPS_NVRTC_COMPILATION;
  if (tps_unpack_number(u) != 0) b->log = tps_unpack_bytes(u, NULL);
  if (tps_unpack_number(u) != 0) b->ptx = tps_unpack_bytes(u, &b->ptx_size);
  if (tps_unpack_number(u) != 0) b->cubin = tps_unpack_bytes(u, &b->cubin_size);
  unpack_strings(u, &b->lowered);
  unpack_strings(u, &b->typed);
  unpack_strings(u, &b->types);
  bool good = !u->failed && u->at == u->end && b->log != NULL &&
              b->typed.count == b->types.count &&
              (b->result != 0 || b->ptx != NULL);
  if (!good) tps_rtc_build_free(b);
  return good;
}

/* ---- jobs ---------------------------------------------------------------- */

void tps_job_pack(tps_packer *p, const char *library, const tps_strings *roots,
                  const tps_rtc_request *r, const tps_strings *options,
                  const tps_strings *names) {
  tps_pack_number(p, MARK);
  tps_pack_number(p, r->max_memory);
  tps_pack_number(p, r->max_time);
  pack_text(p, library);
  pack_list(p, roots->items, roots->count);
  pack_text(p, r->source);
  pack_text(p, r->folder);
  pack_text(p, r->name);
  pack_text(p, r->std);
  tps_pack_number(p, r->header_count);
  for (size_t i = 0; i < r->header_count; i++) {
    pack_text(p, r->headers[i].name);
    pack_text(p, r->headers[i].text);
  }
  pack_list(p, (char *const *)r->names, r->name_count);
  pack_list(p, options->items, options->count);
  pack_list(p, names->items, names->count);
}

static void unpack_headers(tps_unpacker *u, tps_rtc_job *job) {
  uint64_t count = tps_unpack_number(u);
  if (u->failed || count > MOST_ITEMS) {
    u->failed = true;
    return;
  }
  job->headers = calloc((size_t)count + 1, sizeof *job->headers);
  if (job->headers == NULL) u->failed = true;
  for (size_t i = 0; i < count && !u->failed; i++) {
    job->headers[i].name = unpack_text(u, job);
    job->headers[i].text = unpack_text(u, job);
    job->request.header_count = i + 1;
  }
  job->request.headers = job->headers;
}

bool tps_job_unpack(tps_unpacker *u, tps_rtc_job *job) {
  tps_rtc_request *r = &job->request;
  memset(job, 0, sizeof *job);
  if (tps_unpack_number(u) != MARK) return false;
  r->max_memory = tps_unpack_number(u);
  r->max_time = tps_unpack_number(u);
  job->library = unpack_text(u, job);
  unpack_strings(u, &job->roots);
  r->source = unpack_text(u, job);
  r->folder = unpack_text(u, job);
  r->name = unpack_text(u, job);
  r->std = unpack_text(u, job);
  unpack_headers(u, job);
  unpack_strings(u, &job->expressions);
  unpack_strings(u, &job->options);
  unpack_strings(u, &job->names);
  if (u->failed || u->at != u->end || job->library == NULL || r->source == NULL)
    return false;
  r->source_size = strlen(r->source);
  r->names = (const char *const *)job->expressions.items;
  r->name_count = job->expressions.count;
  return true;
}
