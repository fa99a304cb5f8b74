/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What can be made to fail, for injection_test.c alone:
 * - Lua's allocator;
 * - malloc and its kin in our own code, by the linker's --wrap, on the thread
 *   that runs Lua or on the others;
 * - the face of the simulated devices: tps_sim_device_open is wrapped too and
 *   gives a shell around the real device, which counts what lives and can be
 *   emptied and filled anew (revive), as a fault is for ever otherwise.
 */
#ifndef TPS_SPEC_INJECTION_H
#define TPS_SPEC_INJECTION_H

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/device.h"
#include "runtime/parts.h"

/* ---- the countdown ------------------------------------------------------- */

typedef enum place {
  NOWHERE,
  LUA_ONCE,    /* one of Lua's allocations and its second try */
  LUA_ALL,     /* that one and all that follow */
  C_HERE,      /* one allocation of C's on Lua's thread */
  C_ELSEWHERE, /* one on another thread */
  FACE         /* one call of the device's face */
} place;

static struct {
  _Atomic(place) where;
  atomic_long left; /* until the one that fails */
  int code;         /* that the face returns */
  const char *call; /* of the face that failed */
} fuse;

static _Thread_local bool on_lua_thread;

static void arm(place where, long n, int code) {
  atomic_store(&fuse.left, n);
  fuse.code = code;
  fuse.call = "";
  atomic_store(&fuse.where, where);
}

/* True if what was armed has come to pass. */
static bool disarm(void) {
  atomic_store(&fuse.where, NOWHERE);
  return atomic_load(&fuse.left) <= 0;
}

static bool strikes(place where) {
  return atomic_load(&fuse.where) == where &&
         atomic_fetch_sub(&fuse.left, 1) == 1;
}

/* ---- Lua's allocator ----------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
char *__real_strdup(const char *text);
int __real_vasprintf(char **out, const char *format, va_list args);
void *__real_mmap(void *at, size_t size, int protection, int flags, int file,
                  off_t offset);

static size_t lua_bytes; /* that live */

static bool lua_strikes(void) {
  place where = atomic_load(&fuse.where);
  if (where != LUA_ONCE && where != LUA_ALL) return false;
  long left = atomic_fetch_sub(&fuse.left, 1);
  return where == LUA_ALL ? left <= 1 : left == 1 || left == 0;
}

static void *lua_allocate(void *data, void *block, size_t old, size_t size) {
  (void)data;
  if (block == NULL) old = 0;
  if (size == 0) {
    free(block);
    lua_bytes -= old;
    return NULL;
  }
  if (size > old && lua_strikes()) return NULL;
  void *fresh = __real_realloc(block, size);
  if (fresh != NULL) lua_bytes += size - old;
  return fresh;
}

/* ---- C's ----------------------------------------------------------------- */

static bool c_strikes(void) {
  return strikes(on_lua_thread ? C_HERE : C_ELSEWHERE);
}

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
char *__wrap_strdup(const char *text);
int __wrap_vasprintf(char **out, const char *format, va_list args);
int __wrap_asprintf(char **out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file,
                  off_t offset);

void *__wrap_malloc(size_t size) {
  return c_strikes() ? NULL : __real_malloc(size);
}
void *__wrap_calloc(size_t count, size_t size) {
  return c_strikes() ? NULL : __real_calloc(count, size);
}
void *__wrap_realloc(void *block, size_t size) {
  return c_strikes() ? NULL : __real_realloc(block, size);
}
void *__wrap_aligned_alloc(size_t align, size_t size) {
  return c_strikes() ? NULL : __real_aligned_alloc(align, size);
}
char *__wrap_strdup(const char *text) {
  return c_strikes() ? NULL : __real_strdup(text);
}
int __wrap_vasprintf(char **out, const char *format, va_list args) {
  return c_strikes() ? -1 : __real_vasprintf(out, format, args);
}
int __wrap_asprintf(char **out, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int size = __wrap_vasprintf(out, format, args);
  va_end(args);
  return size;
}
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file,
                  off_t offset) {
  if (!c_strikes())
    return __real_mmap(at, size, protection, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

/* ---- the shell ----------------------------------------------------------- */

typedef struct live {
  int streams, events, memories, pinned, modules, arrays, views, graphs;
} live;

typedef struct shell {
  tps_device base;
  tps_device *inner;
  live live;
} shell;

static shell shells[2];

static tps_device *inner(tps_device *device) {
  return ((shell *)device)->inner;
}

#define LIVE(device) (&((shell *)(device))->live)

static int face_strikes(const char *call, tps_error *err) {
  if (!strikes(FACE)) return 0;
  fuse.call = call;
  return tps_fail(err, fuse.code, "%s was made to fail", call);
}

/* A call that may fail; `counted` changes when it succeeds. */
#define FORWARD(call, counted, ...)                                            \
  do {                                                                         \
    int code = face_strikes(#call, err);                                       \
    if (code == 0) code = inner(d)->face->call(inner(d), __VA_ARGS__);         \
    if (code == 0) {                                                           \
      counted;                                                                 \
    }                                                                          \
    return code;                                                               \
  } while (0)

static int f_memory_info(tps_device *d, uint64_t *left, uint64_t *total,
                         tps_error *err) {
  FORWARD(memory_info, , left, total, err);
}
static int f_synchronize(tps_device *d, tps_error *err) {
  FORWARD(synchronize, , err);
}
static tps_device_stream *f_default_stream(tps_device *d) {
  return inner(d)->face->default_stream(inner(d));
}
static int f_stream_create(tps_device *d, int priority, unsigned flags,
                           tps_device_stream **out, int *effective,
                           tps_error *err) {
  FORWARD(stream_create, LIVE(d)->streams++, priority, flags, out, effective,
          err);
}
static void f_stream_destroy(tps_device *d, tps_device_stream *stream) {
  LIVE(d)->streams--;
  inner(d)->face->stream_destroy(inner(d), stream);
}
static int f_stream_query(tps_device *d, tps_device_stream *s, tps_error *err) {
  FORWARD(stream_query, , s, err);
}
static int f_stream_synchronize(tps_device *d, tps_device_stream *s,
                                uint64_t timeout_ns, tps_error *err) {
  FORWARD(stream_synchronize, , s, timeout_ns, err);
}
static int f_stream_wait_event(tps_device *d, tps_device_stream *s,
                               tps_device_event *e, tps_op *op,
                               tps_error *err) {
  FORWARD(stream_wait_event, , s, e, op, err);
}
static uint64_t f_stream_handle(tps_device *d, tps_device_stream *s) {
  return inner(d)->face->stream_handle(inner(d), s);
}
static int f_event_create(tps_device *d, unsigned flags, tps_device_event **out,
                          tps_error *err) {
  FORWARD(event_create, LIVE(d)->events++, flags, out, err);
}
static void f_event_destroy(tps_device *d, tps_device_event *e) {
  LIVE(d)->events--;
  inner(d)->face->event_destroy(inner(d), e);
}
static int f_event_record(tps_device *d, tps_device_event *e,
                          tps_device_stream *s, tps_op *op, tps_error *err) {
  FORWARD(event_record, , e, s, op, err);
}
static int f_event_query(tps_device *d, tps_device_event *e, tps_error *err) {
  FORWARD(event_query, , e, err);
}
static int f_event_synchronize(tps_device *d, tps_device_event *e,
                               uint64_t timeout_ns, tps_error *err) {
  FORWARD(event_synchronize, , e, timeout_ns, err);
}
static int f_event_elapsed(tps_device *d, tps_device_event *a,
                           tps_device_event *b, double *ms, tps_error *err) {
  FORWARD(event_elapsed, , a, b, ms, err);
}
static uint64_t f_event_handle(tps_device *d, tps_device_event *e) {
  return inner(d)->face->event_handle(inner(d), e);
}
static int f_memory_allocate(tps_device *d, uint64_t bytes,
                             tps_device_stream *s, tps_op *op,
                             uint64_t *address, tps_error *err) {
  FORWARD(memory_allocate, LIVE(d)->memories++, bytes, s, op, address, err);
}
static int f_memory_free(tps_device *d, uint64_t address, tps_device_stream *s,
                         tps_op *op, tps_error *err) {
  FORWARD(memory_free, LIVE(d)->memories--, address, s, op, err);
}
static int f_memory_pin(tps_device *d, uint64_t bytes, tps_pin kind,
                        void **host, uint64_t *address, tps_error *err) {
  FORWARD(memory_pin, LIVE(d)->pinned++, bytes, kind, host, address, err);
}
static int f_memory_unpin(tps_device *d, tps_pin kind, void *host,
                          uint64_t address, tps_error *err) {
  FORWARD(memory_unpin, LIVE(d)->pinned--, kind, host, address, err);
}
static void f_memory_note(tps_device *d, uint64_t address, const char *element,
                          const char *source, int line) {
  if (inner(d)->face->memory_note)
    inner(d)->face->memory_note(inner(d), address, element, source, line);
}
static int f_copy(tps_device *d, uint64_t to, uint64_t from, uint64_t bytes,
                  tps_device_stream *s, tps_op *op, tps_error *err) {
  FORWARD(copy, , to, from, bytes, s, op, err);
}
static int f_copy_peer(tps_device *d, uint64_t to, tps_device *to_device,
                       uint64_t from, tps_device *from_device, uint64_t bytes,
                       tps_device_stream *s, tps_op *op, tps_error *err) {
  FORWARD(copy_peer, , to, inner(to_device), from, inner(from_device), bytes, s,
          op, err);
}
static int f_copy_rows(tps_device *d, uint64_t to, tps_device *to_device,
                       uint64_t from, tps_device *from_device,
                       const tps_rows *rows, tps_device_stream *s, tps_op *op,
                       tps_error *err) {
  FORWARD(copy_rows, , to, inner(to_device), from, inner(from_device), rows, s,
          op, err);
}
static int f_memory_share(tps_device *d, uint64_t bytes, uint64_t *address,
                          tps_error *err) {
  FORWARD(memory_share, , bytes, address, err);
}
static int f_memory_export(tps_device *d, uint64_t address,
                           char handle[TPS_MEMORY_IPC_BYTES], tps_error *err) {
  FORWARD(memory_export, , address, handle, err);
}
static int f_memory_import(tps_device *d,
                           const char handle[TPS_MEMORY_IPC_BYTES],
                           uint64_t *address, uint64_t *bytes, tps_error *err) {
  FORWARD(memory_import, , handle, address, bytes, err);
}
static void f_memory_unshare(tps_device *d, uint64_t address, bool imported) {
  inner(d)->face->memory_unshare(inner(d), address, imported);
}
static bool f_can_multiply(tps_device *d, const tps_product *product) {
  return inner(d)->face->can_multiply &&
         inner(d)->face->can_multiply(inner(d), product);
}
static int f_multiply(tps_device *d, const tps_product *product,
                      tps_device_stream *s, tps_op *op, tps_error *err) {
  FORWARD(multiply, , product, s, op, err);
}
static int f_fill(tps_device *d, uint64_t to, uint64_t pattern, unsigned width,
                  uint64_t count, tps_device_stream *s, tps_op *op,
                  tps_error *err) {
  FORWARD(fill, , to, pattern, width, count, s, op, err);
}
static bool f_can_access_peer(tps_device *d, tps_device *other) {
  return inner(d)->face->can_access_peer(inner(d), inner(other));
}
static int f_module_load(tps_device *d, tps_image_kind kind, const void *image,
                         size_t size, const char *probe,
                         tps_device_module **out, tps_error *err) {
  FORWARD(module_load, LIVE(d)->modules++, kind, image, size, probe, out, err);
}
static int f_module_check(tps_device *d, const void *image, size_t size,
                          tps_error *err) {
  if (inner(d)->face->module_check == NULL) return 0;
  FORWARD(module_check, , image, size, err);
}
static void f_module_unload(tps_device *d, tps_device_module *m) {
  LIVE(d)->modules--;
  inner(d)->face->module_unload(inner(d), m);
}
static int f_kernel_find(tps_device *d, tps_device_module *m, const char *name,
                         tps_device_kernel **out, tps_error *err) {
  FORWARD(kernel_find, , m, name, out, err);
}
static int f_kernel_params(tps_device *d, tps_device_kernel *k,
                           tps_kernel_desc *desc, tps_error *err) {
  FORWARD(kernel_params, , k, desc, err);
}
static int f_module_kernels(tps_device *d, tps_device_module *m, char ***names,
                            size_t *count, tps_error *err) {
  FORWARD(module_kernels, , m, names, count, err);
}
static int f_kernel_attributes(tps_device *d, tps_device_kernel *k,
                               tps_kernel_attributes *out, tps_error *err) {
  FORWARD(kernel_attributes, , k, out, err);
}
static int f_kernel_opt_in_shared(tps_device *d, tps_device_kernel *k,
                                  int64_t bytes, tps_error *err) {
  FORWARD(kernel_opt_in_shared, , k, bytes, err);
}
static int f_kernel_occupancy(tps_device *d, tps_device_kernel *k, int threads,
                              int64_t shared, int *blocks, tps_error *err) {
  FORWARD(kernel_occupancy, , k, threads, shared, blocks, err);
}
static int f_global_find(tps_device *d, tps_device_module *m, const char *name,
                         uint64_t *address, uint64_t *bytes, tps_error *err) {
  FORWARD(global_find, , m, name, address, bytes, err);
}
static int f_launch(tps_device *d, tps_device_kernel *k,
                    const tps_launch *launch, tps_device_stream *s, tps_op *op,
                    tps_error *err) {
  FORWARD(launch, , k, launch, s, op, err);
}

static int f_stream_notify(tps_device *d, tps_device_stream *s,
                           void (*notify)(void *data, bool failed), void *data,
                           tps_op *op, tps_error *err) {
  FORWARD(stream_notify, , s, notify, data, op, err);
}
static int f_stream_adopt(tps_device *d, uint64_t handle,
                          tps_device_stream **out, int *priority,
                          bool *blocking, tps_error *err) {
  FORWARD(stream_adopt, LIVE(d)->streams++, handle, out, priority, blocking,
          err);
}
static void f_stream_forget(tps_device *d, tps_device_stream *s) {
  LIVE(d)->streams--;
  inner(d)->face->stream_forget(inner(d), s);
}
static int f_event_export(tps_device *d, tps_device_event *e,
                          char handle[TPS_EVENT_IPC_BYTES], tps_error *err) {
  FORWARD(event_export, , e, handle, err);
}
static int f_event_import(tps_device *d, const char handle[TPS_EVENT_IPC_BYTES],
                          tps_device_event **out, tps_error *err) {
  FORWARD(event_import, LIVE(d)->events++, handle, out, err);
}

static void f_texture_limits(tps_device *d, bool writable,
                             tps_texture_limits *out) {
  inner(d)->face->texture_limits(inner(d), writable, out);
}
static int f_array_create(tps_device *d, const tps_array_shape *shape,
                          tps_device_array **out, tps_error *err) {
  FORWARD(array_create, LIVE(d)->arrays++, shape, out, err);
}
static void f_array_begin(tps_device *d, tps_device_array *a,
                          const char *source, int line) {
  if (inner(d)->face->array_begin)
    inner(d)->face->array_begin(inner(d), a, source, line);
}
static void f_array_destroy(tps_device *d, tps_device_array *a) {
  LIVE(d)->arrays--;
  inner(d)->face->array_destroy(inner(d), a);
}
static int f_array_copy(tps_device *d, tps_device_array *a, uint64_t address,
                        bool to_array, tps_device_stream *s, tps_op *op,
                        tps_error *err) {
  FORWARD(array_copy, , a, address, to_array, s, op, err);
}
static int f_texture_create(tps_device *d, const tps_texture_source *source,
                            const tps_sampling *sampling, uint64_t *handle,
                            tps_error *err) {
  FORWARD(texture_create, LIVE(d)->views++, source, sampling, handle, err);
}
static void f_texture_destroy(tps_device *d, uint64_t handle) {
  LIVE(d)->views--;
  inner(d)->face->texture_destroy(inner(d), handle);
}
static int f_surface_create(tps_device *d, tps_device_array *a,
                            uint64_t *handle, tps_error *err) {
  FORWARD(surface_create, LIVE(d)->views++, a, handle, err);
}
static void f_surface_destroy(tps_device *d, uint64_t handle) {
  LIVE(d)->views--;
  inner(d)->face->surface_destroy(inner(d), handle);
}

/* The nodes name their devices: the true ones, while the device reads them. */
static tps_device *turned(tps_device *d, bool inwards) {
  if (inwards) return inner(d);
  return shells[0].inner == d ? &shells[0].base : &shells[1].base;
}

static void turn(const tps_graph_node_list *list, bool inwards) {
  for (uint32_t i = 0; i < list->count; i++) {
    tps_graph_node *n = &list->nodes[i];
    n->device = turned(n->device, inwards);
    if (n->kind == TPS_NODE_COPY) {
      n->u.copy.to_device = turned(n->u.copy.to_device, inwards);
      n->u.copy.from_device = turned(n->u.copy.from_device, inwards);
    } else if (n->kind == TPS_NODE_IF || n->kind == TPS_NODE_WHILE) {
      turn(&n->u.condition.body, inwards);
    }
  }
}

static int f_graph_build(tps_device *d, const tps_graph_node_list *list,
                         tps_device_graph **out, tps_error *err) {
  int code = face_strikes("graph_build", err);
  if (code != 0) return code;
  turn(list, true);
  code = inner(d)->face->graph_build(inner(d), list, out, err);
  turn(list, false);
  if (code == 0) LIVE(d)->graphs++;
  return code;
}
static int f_graph_change(tps_device *d, tps_device_graph *g,
                          const tps_graph_node_list *list, uint32_t index,
                          tps_error *err) {
  int code = face_strikes("graph_change", err);
  if (code != 0) return code;
  turn(list, true);
  code = inner(d)->face->graph_change(inner(d), g, list, index, err);
  turn(list, false);
  return code;
}
static int f_graph_update(tps_device *d, tps_device_graph *g,
                          const tps_graph_node_list *list, tps_error *err) {
  int code = face_strikes("graph_update", err);
  if (code != 0) return code;
  turn(list, true);
  code = inner(d)->face->graph_update(inner(d), g, list, err);
  turn(list, false);
  return code;
}
static int f_graph_launch(tps_device *d, tps_device_graph *g,
                          tps_device_stream *s, tps_op *op, tps_error *err) {
  FORWARD(graph_launch, , g, s, op, err);
}
static void f_graph_destroy(tps_device *d, tps_device_graph *g) {
  LIVE(d)->graphs--;
  inner(d)->face->graph_destroy(inner(d), g);
}

static void f_times_collect(tps_device *d) {
  if (inner(d)->face->times_collect) inner(d)->face->times_collect(inner(d));
}

/* A function added to the face belongs here, too. */
_Static_assert(sizeof(tps_device_face) == 64 * sizeof(void (*)(void)),
               "the shell forwards every function of the face");

static const tps_device_face shell_face = {
    .graph_build = f_graph_build,
    .graph_change = f_graph_change,
    .graph_update = f_graph_update,
    .graph_launch = f_graph_launch,
    .graph_destroy = f_graph_destroy,
    .texture_limits = f_texture_limits,
    .array_create = f_array_create,
    .array_begin = f_array_begin,
    .array_destroy = f_array_destroy,
    .array_copy = f_array_copy,
    .texture_create = f_texture_create,
    .texture_destroy = f_texture_destroy,
    .surface_create = f_surface_create,
    .surface_destroy = f_surface_destroy,
    .memory_info = f_memory_info,
    .synchronize = f_synchronize,
    .default_stream = f_default_stream,
    .stream_create = f_stream_create,
    .stream_destroy = f_stream_destroy,
    .stream_query = f_stream_query,
    .stream_synchronize = f_stream_synchronize,
    .stream_wait_event = f_stream_wait_event,
    .stream_handle = f_stream_handle,
    .event_create = f_event_create,
    .event_destroy = f_event_destroy,
    .event_record = f_event_record,
    .event_query = f_event_query,
    .event_synchronize = f_event_synchronize,
    .event_elapsed = f_event_elapsed,
    .event_handle = f_event_handle,
    .stream_notify = f_stream_notify,
    .stream_adopt = f_stream_adopt,
    .stream_forget = f_stream_forget,
    .event_export = f_event_export,
    .event_import = f_event_import,
    .memory_allocate = f_memory_allocate,
    .memory_free = f_memory_free,
    .memory_pin = f_memory_pin,
    .memory_unpin = f_memory_unpin,
    .memory_note = f_memory_note,
    .times_collect = f_times_collect,
    .copy = f_copy,
    .copy_peer = f_copy_peer,
    .copy_rows = f_copy_rows,
    .can_multiply = f_can_multiply,
    .multiply = f_multiply,
    .memory_share = f_memory_share,
    .memory_export = f_memory_export,
    .memory_import = f_memory_import,
    .memory_unshare = f_memory_unshare,
    .fill = f_fill,
    .can_access_peer = f_can_access_peer,
    .module_load = f_module_load,
    .module_check = f_module_check,
    .module_unload = f_module_unload,
    .kernel_find = f_kernel_find,
    .kernel_params = f_kernel_params,
    .module_kernels = f_module_kernels,
    .kernel_attributes = f_kernel_attributes,
    .kernel_opt_in_shared = f_kernel_opt_in_shared,
    .kernel_occupancy = f_kernel_occupancy,
    .global_find = f_global_find,
    .launch = f_launch,
};

int __real_tps_sim_device_open(int ordinal, tps_device **out, tps_error *err);
int __wrap_tps_sim_device_open(int ordinal, tps_device **out, tps_error *err);

int __wrap_tps_sim_device_open(int ordinal, tps_device **out, tps_error *err) {
  shell *s = &shells[ordinal];
  int code = __real_tps_sim_device_open(ordinal, &s->inner, err);
  if (code != 0) return code;
  s->base = *s->inner;
  s->base.face = &shell_face;
  *out = &s->base;
  return 0;
}

/* ---- after a fault ------------------------------------------------------- */

static void free_blocks(const shell *s, tps_pinned *list) {
  while (list != NULL) {
    tps_pinned *next = list->next;
    if (list->event != NULL)
      s->inner->face->event_destroy(s->inner, list->event);
    free(list);
    list = next;
  }
}

static void free_modules(const shell *s, tps_loaded *list) {
  while (list != NULL) {
    tps_loaded *next = list->next;
    if (list->event != NULL)
      s->inner->face->event_destroy(s->inner, list->event);
    s->inner->face->module_unload(s->inner, list->module);
    free(list);
    list = next;
  }
}

/* Gives the shell a new device and forgets what the old one's fault has left to
 * stay for ever. No context may live. False: out of memory. */
static bool revive(shell *s) {
  tps_device_state *state = tps_state(&s->base);
  tps_error err;
  for (unsigned i = 0; i < 2 * TPS_POOL_CLASSES; i++) {
    free_blocks(s, (&state->pool[0][0])[i]);
    (&state->pool[0][0])[i] = NULL;
  }
  free_blocks(s, state->orphan_pinned);
  free_modules(s, state->orphan_modules);
  state->orphan_pinned = NULL;
  state->orphan_modules = NULL;
  state->pool_bytes = 0;
  tps_arrays_drop_pool(&s->base);
  atomic_store(&state->orphans, 0);
  atomic_store(&state->faulted, 0);
  s->inner->face->close(s->inner);
  memset(&s->live, 0, sizeof s->live);
  return __real_tps_sim_device_open(0, &s->inner, &err) == 0;
}

#endif
