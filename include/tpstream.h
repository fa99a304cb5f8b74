/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * tpstream for programs that embed Lua 5.4: lets a script work on streams and
 * device memory that the program owns, and the program on those of the script.
 *
 * There is nothing to link. The module tpstream.so, loaded by `require` as for
 * any script, leaves a table of functions in the Lua registry; what stands here
 * are inline functions that call it. In the order in which one uses them:
 *
 *   lua_State *L = luaL_newstate();
 *   luaL_openlibs(L);                   // and package.cpath, see below
 *   tpstream_setdevice(L, "cuda:0");    // optional, before opening
 *   tpstream_open(L);                   // pushes the library's table
 *   ...
 *   tpstream_memory mine = {.data = pointer, .dtype = TPSTREAM_FLOAT32,
 *                           .count = n, .release = give_back, .owner = me};
 *   tpstream_pushstream(L, "cuda:0", my_cuda_stream);
 *   tpstream_pushbuffer(L, "cuda:0", &mine);
 *   lua_call(L, 2, 1);                  // script(stream, buffer) -> buffer
 *
 *   tpstream_buffer b;
 *   tpstream_checkbuffer(L, -1, &b);    // b.data, b.dtype, b.count, b.device
 *   ...
 *   tpstream_finish(L);
 *   lua_close(L);
 *
 * Errors are Lua errors, as with luaL_check...: call these functions in a C
 * function that Lua calls, or under lua_pcall. `L` may be any coroutine. A Lua
 * state and all that belongs to it is for one thread at a time.
 *
 * package.cpath has to lead to tpstream.so: `pkg-config --variable=cpath
 * tpstream` says how, as does tpstream_LUA_CPATH of the CMake package. A
 * program with a static Lua must show Lua's names to the module (-Wl,-E; the
 * CMake package and pkg-config see to it).
 *
 * Arrays go to and come from other libraries by DLPack: buffer:dlpack() returns
 * a DLManagedTensor * as light userdata, tp.from_dlpack takes one.
 *
 * Everything else that scripts can do, a program does by calling the same Lua
 * functions, e.g. a new stream:
 *
 *   tpstream_open(L);
 *   lua_getfield(L, -1, "Stream");
 *   lua_call(L, 0, 1);
 *
 * Versions. TPSTREAM_INTERFACE changes when something here changes its meaning;
 * then a program has to be compiled anew. Otherwise functions are only added at
 * the end of tpstream_interface, and fields at the end of the other structs:
 * a program runs with any later module of the same TPSTREAM_INTERFACE.
 * tpstream_open refuses what does not fit.
 */
#ifndef TPSTREAM_H
#define TPSTREAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include <lauxlib.h>
#include <lua.h>

#if LUA_VERSION_NUM != 504
#error "tpstream needs Lua 5.4"
#endif

#define TPSTREAM_VERSION_MAJOR 0
#define TPSTREAM_VERSION_MINOR 1
#define TPSTREAM_VERSION_PATCH 0
#define TPSTREAM_VERSION "0.1.0"

#define TPSTREAM_INTERFACE 1

/* ---- what is passed ------------------------------------------------------ */

/* Kinds of device. */
typedef enum tpstream_kind { TPSTREAM_CUDA, TPSTREAM_SIM } tpstream_kind;

/* Element types. */
typedef enum tpstream_dtype {
  TPSTREAM_INT8,
  TPSTREAM_UINT8,
  TPSTREAM_INT16,
  TPSTREAM_UINT16,
  TPSTREAM_INT32,
  TPSTREAM_UINT32,
  TPSTREAM_INT64,
  TPSTREAM_UINT64,
  TPSTREAM_FLOAT16,
  TPSTREAM_BFLOAT16,
  TPSTREAM_FLOAT32,
  TPSTREAM_FLOAT64
} tpstream_dtype;

/* A Stream of the script's. */
typedef struct tpstream_stream {
  void *handle;      /* the cudaStream_t, NULL for the legacy stream; on the
                       simulated device a number that means nothing else */
  uint64_t id;       /* s:id(): never used again, 0 for the legacy stream */
  int32_t kind;      /* tpstream_kind of the device */
  int32_t device;    /* its ordinal */
  int32_t priority;  /* in force */
  int32_t blocking;  /* not 0: with respect to the legacy stream */
  int32_t capturing; /* not 0: the script captures a graph on it. What is queued
                        by the handle meanwhile is not captured: it runs */
  int32_t reserved;
} tpstream_stream;

/* A Buffer of the script's. */
typedef struct tpstream_buffer {
  void *data;     /* address of the first element on the device; a
                         number on the simulated one, never to be followed
                         on the host. NULL if there are no bytes */
  void *host;     /* the same bytes for the host where the memory is
                         page-locked, else NULL */
  int64_t count;  /* elements */
  int32_t dtype;  /* tpstream_dtype */
  int32_t size;   /* bytes of an element */
  int32_t kind;   /* tpstream_kind of the device */
  int32_t device; /* its ordinal */
} tpstream_buffer;

/* Device memory that the program lends to scripts. */
typedef struct tpstream_memory {
  void *data;    /* its address on the device, a multiple of the element's
                    size; may be NULL if count is 0 */
  int32_t dtype; /* tpstream_dtype */
  int64_t count; /* elements */
  /* Called once, with owner, when no Buffer over the memory is left (slices
   * count) and what scripts have queued on the device is done. NULL: not
   * called. See tpstream_pushbuffer. */
  void (*release)(void *owner);
  void *owner;
} tpstream_memory;

/* ---- what the module offers ---------------------------------------------- */

/* Left in the registry as light userdata. Programs use the functions below. The
 * size_t arguments are the sizes of the caller's structs. */
typedef struct tpstream_interface {
  uint32_t interface_version; /* TPSTREAM_INTERFACE */
  uint32_t size;              /* of this struct */
  const char *version;        /* of the module: TPSTREAM_VERSION */
  /* 1 and *out filled, 0: no such value, -1: closed. Never raise. */
  int (*to_stream)(lua_State *L, int index, tpstream_stream *out, size_t size);
  int (*to_buffer)(lua_State *L, int index, tpstream_buffer *out, size_t size);
  void (*push_stream)(lua_State *L, const char *device, void *handle);
  void (*push_buffer)(lua_State *L, const char *device,
                      const tpstream_memory *memory, size_t size);
  int (*finish)(lua_State *L);
} tpstream_interface;

#define TPSTREAM_KEY "tpstream.interface"

/* ---- before opening ------------------------------------------------------ */

/* The device that is current at the start: "cuda", "sim:0", "1"; NULL takes
 * that back. Otherwise the environment decides (TPSTREAM_DEVICE). */
static inline void tpstream_setdevice(lua_State *L, const char *device) {
  lua_pushstring(L, device);
  lua_setfield(L, LUA_REGISTRYINDEX, "tpstream.device");
}

/* `interrupted` is called every now and then while a call waits: not 0 ends the
 * wait with the error "interrupted!" (for Ctrl-C, or a button). */
static inline void tpstream_setinterrupt(lua_State *L,
                                         int (*interrupted)(void)) {
  union {
    int (*function)(void);
    void *pointer;
  } both;
  both.pointer = NULL;
  both.function = interrupted;
  if (interrupted != NULL) lua_pushlightuserdata(L, both.pointer);
  else lua_pushnil(L);
  lua_setfield(L, LUA_REGISTRYINDEX, "tpstream.interrupt");
}

/* ---- opening ------------------------------------------------------------- */

/* The module's functions, or NULL if this state has none that fit. Never
 * raises. */
static inline const tpstream_interface *tpstream_find(lua_State *L) {
  const tpstream_interface *found;
  if (!lua_checkstack(L, 1)) return NULL;
  lua_getfield(L, LUA_REGISTRYINDEX, TPSTREAM_KEY);
  found = (const tpstream_interface *)lua_touserdata(L, -1);
  lua_pop(L, 1);
  if (found == NULL || found->interface_version != TPSTREAM_INTERFACE ||
      found->size < sizeof(tpstream_interface))
    return NULL;
  return found;
}

/* The same; raises when there are none. */
static inline const tpstream_interface *tpstream_get(lua_State *L) {
  const tpstream_interface *found = tpstream_find(L);
  if (found != NULL) return found;
  luaL_checkstack(L, 2, "tpstream");
  lua_getfield(L, LUA_REGISTRYINDEX, TPSTREAM_KEY);
  found = (const tpstream_interface *)lua_touserdata(L, -1);
  lua_pop(L, 1);
  if (found == NULL) luaL_error(L, "tpstream is not open in this Lua state");
  else if (found->interface_version != TPSTREAM_INTERFACE)
    luaL_error(L,
               "tpstream %s has interface %d, this program was compiled "
               "for interface %d",
               found->version, (int)found->interface_version,
               TPSTREAM_INTERFACE);
  else
    luaL_error(L,
               "tpstream %s is older than the header of this program "
               "(" TPSTREAM_VERSION ")",
               found->version);
  return NULL;
}

/* require "tpstream": pushes the library's table, and checks that the module
 * fits this header. Again and again is fine. */
static inline void tpstream_open(lua_State *L) {
  luaL_checkstack(L, 3, "tpstream");
  lua_getglobal(L, "require");
  lua_pushliteral(L, "tpstream");
  lua_call(L, 1, 1);
  tpstream_get(L);
}

/* The version of the module in this state, e.g. "0.1.0". */
static inline const char *tpstream_version(lua_State *L) {
  return tpstream_get(L)->version;
}

/* ---- streams ------------------------------------------------------------- */

/* Pushes the Stream over a cudaStream_t of the program's (tp.ExternalStream).
 * `device` is its device ("cuda:0"; NULL: the current one). The same handle
 * gives the same Stream as long as that lives. The program goes on owning the
 * stream: it destroys it, after the script has no more use for it. Work that
 * the program queues there counts for the script's waits: s:synchronize,
 * s:record_event and other streams' wait_stream see it. */
static inline void tpstream_pushstream(lua_State *L, const char *device,
                                       void *handle) {
  tpstream_get(L)->push_stream(L, device, handle);
}

/* 1 and *out filled if the value at `index` is an open Stream, else 0. */
static inline int tpstream_tostream(lua_State *L, int index,
                                    tpstream_stream *out) {
  const tpstream_interface *found = tpstream_find(L);
  return found != NULL && found->to_stream(L, index, out, sizeof *out) > 0;
}

/* Argument `index` as a Stream; raises unless it is an open one. The handle is
 * good as long as the Stream is open: keep the Lua value while it is used. */
static inline void tpstream_checkstream(lua_State *L, int index,
                                        tpstream_stream *out) {
  int is = tpstream_get(L)->to_stream(L, index, out, sizeof *out);
  if (is == 0) luaL_typeerror(L, index, "tpstream.Stream");
  if (is < 0) luaL_error(L, "attempt to use a closed stream");
}

/* ---- memory -------------------------------------------------------------- */

/* Pushes a Buffer over memory of the program's, which scripts use as any
 * other: it is an argument to kernels, is read, written, copied, sliced.
 *
 * The memory has to stay until `release` is called. That is when no Buffer over
 * it is left and the script's work on that device is done: in b:close(), in the
 * collector, in a later call that allocates or waits, in tpstream_finish or
 * lua_close. If work is still running when the Lua state closes, it may
 * also be called from another thread that uses tpstream, or (where none does)
 * not at all: tpstream_finish before lua_close, or waiting for the device,
 * makes sure that it was called when lua_close returns. `release` must call
 * neither Lua nor tpstream. It is not called when this raises: the memory is
 * lent only on return.
 *
 * Work that the program itself queues is its own to order: before the call, on
 * the stream that the script will use; after it, behind the script's work,
 * on the script's stream or after an event. */
static inline void tpstream_pushbuffer(lua_State *L, const char *device,
                                       const tpstream_memory *memory) {
  tpstream_get(L)->push_buffer(L, device, memory, sizeof *memory);
}

/* 1 and *out filled if the value at `index` is an open Buffer, else 0. */
static inline int tpstream_tobuffer(lua_State *L, int index,
                                    tpstream_buffer *out) {
  const tpstream_interface *found = tpstream_find(L);
  return found != NULL && found->to_buffer(L, index, out, sizeof *out) > 0;
}

/* Argument `index` as a Buffer; raises unless it is an open one. The address is
 * good as long as the Buffer is open; once it is closed or collected, the
 * memory is freed after all that is then queued on the device's streams, as
 * after b:ptr(). The call waits for nothing: what the script has queued may
 * still be running. */
static inline void tpstream_checkbuffer(lua_State *L, int index,
                                        tpstream_buffer *out) {
  int is = tpstream_get(L)->to_buffer(L, index, out, sizeof *out);
  if (is == 0) luaL_typeerror(L, index, "tpstream.Buffer");
  if (is < 0) luaL_error(L, "attempt to use a closed buffer");
}

/* ---- the end ------------------------------------------------------------- */

/* Waits for all that this state's scripts have queued on any device, and for
 * the release of memory of the program's that they have dropped. Returns 0; or
 * not 0 with the error pushed, as lua_pcall does, when a device has failed or
 * the wait was interrupted. Nothing to do, and 0, if tpstream was never
 * opened. Raises nothing but out of memory. */
static inline int tpstream_finish(lua_State *L) {
  const tpstream_interface *found = tpstream_find(L);
  return found != NULL ? found->finish(L) : 0;
}

#ifdef __cplusplus
}
#endif

#endif
