/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Which streams have used a memory, and up to which operation. Most memory is
 * used on one or two streams: four marks are in the struct itself, and the one
 * found last is looked at first. */
#include <stdlib.h>
#include <string.h>

#include "runtime/parts.h"

static void remove_mark(tps_memory *memory, uint32_t i) {
  struct tps_memory_parts *parts = memory->parts;
  tps_stream *stream = parts->marks[i].stream;
  if (parts->home == stream) parts->home = NULL; /* all done there */
  parts->marks[i] = parts->marks[--parts->count];
  tps_stream_unhold(stream);
}

/* Drops the marks of work that is done. */
static void prune(tps_memory *memory) {
  struct tps_memory_parts *parts = memory->parts;
  for (uint32_t i = parts->count; i-- > 0;) {
    const tps_mark *mark = &parts->marks[i];
    if (tps_stream_passed(mark->stream, mark->seq) ||
        tps_stream_idle(mark->stream))
      remove_mark(memory, i);
  }
}

static int grow(tps_memory *memory, tps_error *err) {
  struct tps_memory_parts *parts = memory->parts;
  uint32_t capacity = parts->capacity * 2;
  tps_mark *old = parts->marks == parts->few ? NULL : parts->marks;
  tps_mark *marks = /* capacity begins at that of `few`: NOLINTNEXTLINE */
      realloc(old, capacity * sizeof *marks);
  if (marks == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  if (old == NULL) memcpy(marks, parts->few, sizeof parts->few);
  parts->marks = marks;
  parts->capacity = capacity;
  return 0;
}

static int make_room(tps_memory *memory, tps_error *err) {
  struct tps_memory_parts *parts = memory->parts;
  if (parts->count == parts->capacity) prune(memory);
  return parts->count == parts->capacity ? grow(memory, err) : 0;
}

/* The allocation and the filling come before what another stream does. */
static int follow_home(const tps_memory *memory, tps_stream *stream,
                       tps_error *err) {
  const struct tps_memory_parts *parts = memory->parts;
  if (tps_observing()) tps_observe_followed(stream, parts->home);
  for (uint32_t i = 0; i < parts->count; i++)
    if (parts->marks[i].stream == parts->home)
      return tps_stream_follow(stream, parts->home, parts->marks[i].seq, false,
                               err);
  return 0;
}

int tps_uses_find(tps_memory *memory, tps_stream *stream, tps_error *err) {
  struct tps_memory_parts *parts = memory->parts;
  for (uint32_t i = 0; i < parts->count; i++) {
    if (parts->marks[i].stream != stream) continue;
    parts->last = i;
    return 0;
  }
  if (memory->context != stream->context)
    return tps_fail(err, TPS_MISUSE,
                    "memory and stream belong to different Lua states");
  int code = 0;
  if (parts->home != NULL) code = follow_home(memory, stream, err);
  if (code == 0) code = make_room(memory, err);
  if (code != 0) return code;
  tps_stream_hold(stream);
  parts->last = parts->count++;
  parts->marks[parts->last] = (tps_mark){stream, 0};
  return 0;
}

int tps_uses_follow(const tps_memory *memory, tps_stream *stream,
                    tps_error *err) {
  const struct tps_memory_parts *parts = memory->parts;
  int code = 0;
  for (uint32_t i = 0; i < parts->count && code == 0; i++)
    code = tps_stream_follow(stream, parts->marks[i].stream,
                             parts->marks[i].seq, false, err);
  return code;
}

void tps_uses_clear(tps_memory *memory) {
  struct tps_memory_parts *parts = memory->parts;
  for (uint32_t i = 0; i < parts->count; i++)
    tps_stream_unhold(parts->marks[i].stream);
  if (parts->marks != parts->few) free(parts->marks);
  parts->marks = parts->few;
  parts->capacity = TPS_MARKS;
  parts->count = parts->last = 0;
  parts->home = NULL;
}

int tps_uses_wait(tps_memory *memory, tps_error *err) {
  const struct tps_memory_parts *parts = memory->parts;
  for (uint32_t i = 0; i < parts->count; i++) {
    tps_stream *stream = parts->marks[i].stream;
    struct tps_stream_parts *s = stream->parts;
    if (tps_stream_passed(stream, parts->marks[i].seq) && !tps_observing())
      continue;
    if (tps_stream_blank(stream)) continue;
    uint64_t seq = stream->last_seq;
    int code = tps_wait(s->local, s->handle, tps_stream_last(stream),
                        TPS_FOREVER, err);
    if (code != 0) return code;
    tps_stream_reached(stream, seq);
    tps_waited_stream(stream);
  }
  return 0;
}
