/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Host bytes on their way. Writes are copied into a page-locked ring of up to
 * 16 MiB, so that the source may change at once, and go on from there in stream
 * order. The ring is made of chunks and grows by one where the first is still
 * in use; each remembers which streams read from it, and gets one event for
 * each of them when it is full, not one for each write. Reads come back through
 * two halves of their own, one filled while the other is emptied. */
#include <stdlib.h>
#include <string.h>

#include "runtime/capture.h"

#define CHUNKS 16u
#define CHUNK_BYTES ((uint64_t)1 << 20)
#define ALIGN 16u
/* A smaller write moves on to the next chunk. */
#define WORTH_SPLITTING 65536u

/* The last use of a part of the staging memory by one stream. */
typedef struct fence {
  tps_stream *stream; /* held; NULL: none */
  uint64_t seq;
  tps_device_event *event; /* of the stream's pool; NULL until it is needed */
} fence;

typedef struct chunk {
  tps_pinned *block; /* NULL until the ring has grown so far */
  fence *fences;
  uint32_t count, capacity;
} chunk;

typedef struct half {
  tps_pinned *block; /* NULL until a read has needed it */
  fence use;
} half;

struct tps_staging {
  chunk chunks[CHUNKS];
  unsigned current;
  uint64_t used; /* of the current chunk */
  half halves[2];
};

static struct tps_staging *staging_of(tps_local *local, tps_error *err) {
  if (local->staging == NULL)
    local->staging = calloc(1, sizeof *local->staging);
  if (local->staging == NULL)
    tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  return local->staging;
}

/* ---- fences -------------------------------------------------------------- */

static void drop_event(fence *f) {
  if (f->event != NULL) tps_event_give(f->stream->parts->local, f->event);
  f->event = NULL;
}

static void drop_fence(fence *f) {
  if (f->stream == NULL) return;
  drop_event(f);
  tps_stream_unhold(f->stream);
  f->stream = NULL;
}

/* The fence now stands for a use by `stream` that is about to be queued. */
static void set_fence(fence *f, tps_stream *stream) {
  if (f->stream != stream) {
    tps_stream_hold(stream);
    drop_fence(f);
    f->stream = stream;
  } else {
    drop_event(f);
  }
  f->seq = UINT64_MAX; /* until it has a number */
}

/* Waits until the use is over. Without an event of its own: until all that is
 * queued on the stream is. */
static int wait_fence(fence *f, uint64_t timeout_ns, tps_error *err) {
  if (f->stream == NULL) return 0;
  struct tps_stream_parts *parts = f->stream->parts;
  uint64_t seq = f->event != NULL ? f->seq : f->stream->last_seq;
  tps_device_event *event = f->event;
  if (event == NULL) event = tps_stream_last(f->stream);
  if (!tps_stream_passed(f->stream, f->seq) &&
      (event != NULL || !tps_stream_blank(f->stream))) {
    int code = tps_wait(parts->local, parts->handle, event, timeout_ns, err);
    if (code != 0) return code;
    tps_stream_reached(f->stream, seq);
  }
  drop_fence(f);
  return 0;
}

/* ---- the ring ------------------------------------------------------------ */

/* The chunk's fence for the stream, made if need be. */
static fence *chunk_fence(chunk *c, tps_stream *stream, tps_error *err) {
  for (uint32_t i = c->count; i-- > 0;)
    if (c->fences[i].stream == stream) return &c->fences[i];
  if (c->count == c->capacity) {
    uint32_t capacity = c->capacity * 2 + 2;
    fence *fences = realloc(c->fences, capacity * sizeof *fences);
    if (fences == NULL) {
      tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
      return NULL;
    }
    c->fences = fences;
    c->capacity = capacity;
  }
  fence *f = &c->fences[c->count++];
  memset(f, 0, sizeof *f);
  return f;
}

/* Gives each fence its event. Where that fails the fence goes without. */
static void seal(chunk *c) {
  tps_error err;
  for (uint32_t i = 0; i < c->count; i++) {
    fence *f = &c->fences[i];
    if (f->event == NULL && f->stream->parts->handle != NULL &&
        !f->stream->parts->foreign && !tps_stream_passed(f->stream, f->seq))
      tps_event_mark(f->stream, &f->event, &err);
  }
}

static int empty(chunk *c, uint64_t timeout_ns, tps_error *err) {
  while (c->count > 0) {
    int code = wait_fence(&c->fences[c->count - 1], timeout_ns, err);
    if (code != 0) return code;
    c->count--;
  }
  return 0;
}

static int block_for(tps_local *local, tps_pinned **block, tps_error *err) {
  return *block != NULL
             ? 0
             : tps_pinned_take(local, CHUNK_BYTES, TPS_PIN_STAGING, block, err);
}

static int next_chunk(struct tps_staging *s, tps_local *local, tps_error *err) {
  tps_error ignored;
  unsigned next = (s->current + 1) % CHUNKS;
  seal(&s->chunks[s->current]);
  if (s->chunks[next].block == NULL && empty(&s->chunks[0], 0, &ignored) == 0)
    next = 0;
  int code = empty(&s->chunks[next], TPS_FOREVER, err);
  if (code == 0) code = block_for(local, &s->chunks[next].block, err);
  if (code != 0) return code;
  s->current = next;
  s->used = 0;
  return 0;
}

/* Room for up to `want` bytes in one piece at s->used; *got says how many. */
static int make_room(struct tps_staging *s, tps_local *local, uint64_t want,
                     uint64_t *got, tps_error *err) {
  uint64_t least = want < WORTH_SPLITTING ? want : WORTH_SPLITTING;
  int code = s->used + least > CHUNK_BYTES
                 ? next_chunk(s, local, err)
                 : block_for(local, &s->chunks[s->current].block, err);
  uint64_t room = CHUNK_BYTES - s->used;
  *got = want < room ? want : room;
  return code;
}

/* ---- copies -------------------------------------------------------------- */

/* Between the memory and staging, which is of the stream's device. */
static int copy(tps_stream *stream, const tps_memory *memory, uint64_t first,
                uint64_t bytes, uint64_t staged, bool in, tps_op *op,
                tps_error *err) {
  tps_device *device = stream->device, *other = memory->device;
  uint64_t address = memory->address + first;
  uint64_t to = in ? address : staged, from = in ? staged : address;
  if (tps_memory_near(memory, device))
    return device->face->copy(device, to, from, bytes, stream->handle, op, err);
  return device->face->copy_peer(device, to, in ? other : device, from,
                                 in ? device : other, bytes, stream->handle, op,
                                 err);
}

/* Queues it; *seq is then its number. */
static int queue_copy(tps_stream *stream, tps_memory *memory, uint64_t first,
                      uint64_t bytes, uint64_t staged, bool in, uint64_t *seq,
                      tps_error *err) {
  int code = tps_uses_ready(memory, stream, err);
  if (code != 0) return code;
  tps_op *op = tps_op_begin(stream, TPS_OP_COPY, err);
  if (op == NULL) return TPS_NO_HOST_MEMORY;
  *seq = op->seq;
  tps_uses_set(memory, op->seq);
  code = tps_op_touch(op, memory, first, bytes,
                      in ? TPS_ACCESS_WRITE : TPS_ACCESS_READ, err);
  if (code != 0) return code;
  tps_op_set_copy(op, in ? memory : NULL, in ? NULL : memory, bytes);
  tps_op_announce(op, stream);
  code = copy(stream, memory, first, bytes, staged, in, op, err);
  if (code == 0) {
    tps_stream_queued(stream);
    return 0;
  }
  tps_op_broke(op);
  return tps_failed(stream->device, stream->parts->local, code, err);
}

static int write_piece(struct tps_staging *s, tps_stream *stream,
                       tps_memory *memory, uint64_t first, const char *source,
                       uint64_t bytes, tps_error *err) {
  chunk *c = &s->chunks[s->current];
  fence *f = chunk_fence(c, stream, err);
  if (f == NULL) return TPS_NO_HOST_MEMORY;
  set_fence(f, stream);
  memcpy((char *)c->block->host + s->used, source, bytes);
  uint64_t seq = stream->last_seq;
  int code = queue_copy(stream, memory, first, bytes,
                        c->block->address + s->used, true, &seq, err);
  f->seq = seq;
  s->used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
  return code;
}

/* What staging needs of stream and memory: one device, an open stream, a range.
 */
static int check(tps_stream *stream, tps_memory *memory, uint64_t first,
                 uint64_t bytes, tps_error *err) {
  char a[32], b[32];
  int code = tps_stream_ready(stream, err);
  if (code == 0) code = tps_memory_check(memory, first, bytes, err);
  if (code != 0) return code;
  bool near = memory->kind == TPS_MEMORY_PINNED
                  ? memory->device->kind == stream->device->kind
                  : memory->device == stream->device;
  if (near) return 0;
  return tps_fail(err, TPS_MISUSE,
                  "memory of %s can't be used on a stream of %s",
                  tps_device_label(memory->device, a, sizeof a),
                  tps_device_label(stream->device, b, sizeof b));
}

int tps_memory_write(tps_stream *stream, tps_memory *memory, uint64_t first,
                     const void *source, uint64_t bytes, tps_error *err) {
  int code = check(stream, memory, first, bytes, err);
  if (code != 0 || bytes == 0) return code;
  if (stream->capturing)
    return tps_capture_write(stream, memory, first, source, bytes, err);
  tps_local *local = stream->parts->local;
  struct tps_staging *s = staging_of(local, err);
  if (s == NULL) return TPS_NO_HOST_MEMORY;
  const char *from = source;
  while (code == 0 && bytes > 0) {
    uint64_t n;
    code = make_room(s, local, bytes, &n, err);
    if (code == 0) code = write_piece(s, stream, memory, first, from, n, err);
    first += n;
    from += n;
    bytes -= n;
  }
  return code;
}

/* ---- reading ------------------------------------------------------------- */

typedef struct reading {
  struct tps_staging *s;
  tps_stream *stream;
  tps_memory *memory;
  uint64_t first, bytes, pieces;
  char *to;
} reading;

static uint64_t piece_bytes(const reading *r, uint64_t i) {
  uint64_t left = r->bytes - i * CHUNK_BYTES;
  return left < CHUNK_BYTES ? left : CHUNK_BYTES;
}

/* Queues piece i into its half. The last one needs no event: its stream is
 * waited for. */
static int queue_piece(reading *r, uint64_t i, tps_error *err) {
  half *h = &r->s->halves[i % 2];
  int code = wait_fence(&h->use, TPS_FOREVER, err);
  if (code == 0) code = block_for(r->stream->parts->local, &h->block, err);
  if (code != 0) return code;
  set_fence(&h->use, r->stream);
  uint64_t seq = r->stream->last_seq;
  code = queue_copy(r->stream, r->memory, r->first + i * CHUNK_BYTES,
                    piece_bytes(r, i), h->block->address, false, &seq, err);
  h->use.seq = seq;
  if (code == 0 && i + 1 < r->pieces)
    code = tps_event_mark(r->stream, &h->use.event, err);
  return code;
}

static int take_piece(reading *r, uint64_t i, tps_error *err) {
  half *h = &r->s->halves[i % 2];
  int code = wait_fence(&h->use, TPS_FOREVER, err);
  if (code == 0) code = tps_device_fault(r->stream->device, err);
  if (code != 0) return code;
  memcpy(r->to + i * CHUNK_BYTES, h->block->host, piece_bytes(r, i));
  return 0;
}

static int read_staged(reading *r, tps_error *err) {
  r->s = staging_of(r->stream->parts->local, err);
  if (r->s == NULL) return TPS_NO_HOST_MEMORY;
  r->pieces = (r->bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
  int code = queue_piece(r, 0, err);
  for (uint64_t i = 0; code == 0 && i < r->pieces; i++) {
    if (i + 1 < r->pieces) code = queue_piece(r, i + 1, err);
    if (code == 0) code = take_piece(r, i, err);
  }
  return code;
}

/* Pinned memory needs no staging: the stream is waited for, the bytes are
 * there. */
static int read_pinned(const reading *r, tps_error *err) {
  tps_stream *stream = r->stream;
  int code = tps_uses_ready(r->memory, stream, err);
  if (code != 0) return code;
  uint64_t seq = stream->last_seq;
  code = tps_wait(stream->parts->local, stream->handle, NULL, TPS_FOREVER, err);
  if (code != 0) return code;
  tps_stream_reached(stream, seq);
  memcpy(r->to, (char *)r->memory->host + r->first, r->bytes);
  return 0;
}

int tps_memory_read(tps_stream *stream, tps_memory *memory, uint64_t first,
                    void *to, uint64_t bytes, tps_error *err) {
  int code = check(stream, memory, first, bytes, err);
  if (code != 0 || bytes == 0) return code;
  if (stream->capturing)
    return tps_capture_refuse(stream, "wait for what is read", err);
  reading r = {.stream = stream,
               .memory = memory,
               .first = first,
               .bytes = bytes,
               .to = to};
  code = memory->kind == TPS_MEMORY_PINNED ? read_pinned(&r, err)
                                           : read_staged(&r, err);
  if (code == 0) code = tps_others(stream->parts->local, err);
  if (code == 0) {
    tps_waited_stream(stream);
    if (memory->kind == TPS_MEMORY_PINNED && tps_observing())
      tps_observe_host(memory, first, bytes, TPS_ACCESS_READ);
    tps_reclaim_local(stream->parts->local);
  }
  return code;
}

/* ---- the end ------------------------------------------------------------- */

/* Gives the block to the reclaim list, after what the fences stand for. */
static void retire(tps_local *local, tps_pinned *block, const fence *fences,
                   size_t count) {
  if (block == NULL) return;
  tps_mark *marks = malloc((count + 1) * sizeof *marks);
  uint32_t n = 0;
  for (size_t i = 0; marks != NULL && i < count; i++)
    if (fences[i].stream != NULL)
      marks[n++] = (tps_mark){fences[i].stream, fences[i].seq};
  tps_pinned_retire(local, block, marks, n, marks == NULL);
  free(marks);
}

static void free_chunk(tps_local *local, chunk *c) {
  retire(local, c->block, c->fences, c->count);
  for (uint32_t i = 0; i < c->count; i++) drop_fence(&c->fences[i]);
  free(c->fences);
}

void tps_staging_free(tps_local *local) {
  struct tps_staging *s = local->staging;
  if (s == NULL) return;
  for (unsigned i = 0; i < CHUNKS; i++) free_chunk(local, &s->chunks[i]);
  for (unsigned i = 0; i < 2; i++) {
    retire(local, s->halves[i].block, &s->halves[i].use, 1);
    drop_fence(&s->halves[i].use);
  }
  free(s);
  local->staging = NULL;
}
