/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Memory. A tps_memory is one allocation, counted; buffers and their slices in
 * lua/ are views (memory, offset, dtype, count). It remembers the last use on
 * every stream that touched it, and when the last reference goes its bytes return
 * in stream order after all of them, without waiting:
 *   - used on one stream only: freed on that stream;
 *   - on several: a pooled event is recorded on each (for a closed stream: its
 *     closing event), an internal reclaim stream waits for them and frees;
 *   - pinned memory goes to the reclaim list and, when its events are done, back
 *     to a pool (returning it to the driver would wait for running kernels);
 *   - an address that escaped through tps_memory_expose waits for every stream of
 *     its device.
 * The allocation itself and the constructor's filling come before the first use
 * on another stream: that stream waits for an event made then.
 */
#ifndef TPS_RUNTIME_MEMORY_H
#define TPS_RUNTIME_MEMORY_H

#include "runtime/stream.h"

typedef enum tps_memory_kind {
  TPS_MEMORY_DEVICE,
  TPS_MEMORY_PINNED,   /* page-locked, or managed */
  TPS_MEMORY_BORROWED, /* a module's variable: kept by `owner` */
  TPS_MEMORY_FOREIGN,  /* lent by the program around Lua */
  TPS_MEMORY_ARRAY     /* opaque, of textures and surfaces; has no address */
} tps_memory_kind;

typedef struct tps_memory {
  tps_context *context;
  tps_device *device;
  uint8_t kind; /* tps_memory_kind */
  bool escaped;
  bool captured; /* made while a graph was captured: of its nodes' own */
  bool managed;
  bool shared;      /* can be exported to other processes */
  uint64_t id;      /* unique in the process */
  uint64_t address; /* on the device; 0 for 0 bytes */
  void *host;       /* of PINNED: the bytes themselves */
  uint64_t bytes;
  int refs;
  tps_site site;                  /* where it was made */
  const char *element;            /* what tps_memory_tell was told, or NULL */
  struct tps_memory_parts *parts; /* uses */
} tps_memory;

/* A part of an allocation that an operation touches. */
typedef struct tps_use {
  tps_memory *memory;
  uint64_t first, bytes;
  uint8_t access;        /* tps_access */
  struct tps_view *view; /* the texture or surface that leads there, or NULL */
} tps_use;

/* Device memory in stream order. bytes 0 is fine: no driver call. OUT_OF_MEMORY
 * with the size asked for, free and total: the caller may collect and retry. */
int tps_memory_allocate(tps_stream *stream, uint64_t bytes, tps_memory **out,
                        tps_error *err);
/* Page-locked or managed memory for `device`, zero-filled; from the pool if
 * possible. NOT_SUPPORTED where there is no managed memory. */
int tps_memory_pin(tps_context *context, tps_device *device, uint64_t bytes,
                   bool managed, tps_memory **out, tps_error *err);
/* Reports call it a buffer of elements of that type (a constant
 * text), made at memory->site. */
void tps_memory_tell(tps_memory *memory, const char *element);
/* A view of `bytes` at `address` that something else owns; release(owner) is
 * called with the last reference. */
int tps_memory_borrow(tps_context *context, tps_device *device,
                      uint64_t address, uint64_t bytes, void *owner,
                      void (*release)(void *owner), tps_memory **out,
                      tps_error *err);
/* Memory of the program's own: release(owner), which may be NULL, is called once
 * the last reference is gone and no queued work of the device can touch it any
 * more: at once, or at a later reclaiming, perhaps of another context. It must
 * call nothing of this library. Not called when this fails. */
int tps_memory_adopt(tps_context *context, tps_device *device, uint64_t address,
                     uint64_t bytes, void *owner, void (*release)(void *owner),
                     tps_memory **out, tps_error *err);
/* Memory that other processes can open, and such of theirs: NOT_SUPPORTED where
 * there is none. It is there at once, on every stream. The
 * imported has all the bytes that there are from the handle's address on. */
int tps_memory_share(tps_context *context, tps_device *device, uint64_t bytes,
                     tps_memory **out, tps_error *err);
int tps_memory_export(tps_memory *memory, char handle[TPS_MEMORY_IPC_BYTES],
                      tps_error *err);
int tps_memory_import(tps_context *context, tps_device *device,
                      const char handle[TPS_MEMORY_IPC_BYTES], tps_memory **out,
                      tps_error *err);
/* Waits until all foreign memory that was dropped has been released. */
int tps_memory_settle(tps_context *context, tps_error *err);
tps_memory *tps_memory_ref(tps_memory *memory);
void tps_memory_unref(tps_memory *memory); /* never waits, never fails */
/* The same where the script closes it: if this frees it, the free carries
 * context->site (otherwise it has no line: a collector comes at any time). */
void tps_memory_close(tps_memory *memory);
/* The address leaves the runtime's sight (b:ptr()). */
uint64_t tps_memory_expose(tps_memory *memory);

/* Host bytes → memory, through the pinned staging ring (16 MiB; a larger write
 * waits for room): queued on return, and the source may change at once. For
 * PINNED memory too (in stream order). Ranges are checked by the caller as well
 * as here. */
int tps_memory_write(tps_stream *stream, tps_memory *memory, uint64_t first,
                     const void *source, uint64_t bytes, tps_error *err);
/* Memory → host bytes: waits for the stream, interruptibly. */
int tps_memory_read(tps_stream *stream, tps_memory *memory, uint64_t first,
                    void *to, uint64_t bytes, tps_error *err);
/* Any two memories. Same device or peer: asynchronous. Different kinds of
 * device: through the host, waits. */
int tps_memory_copy(tps_stream *stream, tps_memory *to, uint64_t to_first,
                    tps_memory *from, uint64_t from_first, uint64_t bytes,
                    tps_error *err);
/* The same row by row; of no rows, or rows of no bytes, nothing. */
int tps_memory_copy_rows(tps_stream *stream, tps_memory *to, uint64_t to_first,
                         tps_memory *from, uint64_t from_first,
                         const tps_rows *rows, tps_error *err);
int tps_memory_fill(tps_stream *stream, tps_memory *memory, uint64_t first,
                    uint64_t pattern, unsigned width, uint64_t count,
                    tps_error *err);

/* The most bytes that the context may hold at a time, on all devices, pinned and
 * managed memory and arrays included; UINT64_MAX: no limit. What was in force
 * before. An allocation beyond it is OUT_OF_MEMORY. */
uint64_t tps_memory_limit(tps_context *context, uint64_t bytes);
uint64_t tps_memory_get_limit(const tps_context *context);

typedef struct tps_memory_stats {
  uint64_t live_bytes, live_count; /* of this context on that device */
  uint64_t peak_bytes;
  uint64_t pending_bytes, pending_count; /* dropped, not yet reclaimed */
  uint64_t pinned_bytes, managed_bytes;  /* in use */
  uint64_t pool_bytes;                   /* of both, kept for the next */
  uint64_t allocations, frees;           /* since the start */
} tps_memory_stats;
void tps_memory_get_stats(tps_context *context, tps_device *device,
                          tps_memory_stats *out);

#endif
