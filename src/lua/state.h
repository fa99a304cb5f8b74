/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What the files of lua/ share. One tps_lua belongs to a Lua state; it is a
 * userdata and upvalue 1 of every C function of the library, so that no call
 * looks anything up in the registry. Types are told by comparing the address of
 * a value's metatable with the one kept there; boxes of the types that calls
 * check most often carry a seal besides, which takes fewer calls of Lua's to see.
 *
 * tps_to gives a value's box or NULL, tps_check_x raises unless it is an open
 * one of that type. Boxes are born closed (all zero), get their metatable, and
 * only then acquire what they own: nothing that can raise stands in between.
 */
#ifndef TPS_LUA_STATE_H
#define TPS_LUA_STATE_H

#include <lauxlib.h>
#include <lua.h>

#include "lua/api.h"
#include "runtime/event.h"
#include "runtime/module.h"
#include "runtime/observer.h"
#include "runtime/texture.h"

typedef enum tps_type {
  TPS_TYPE_STATE,
  TPS_TYPE_ERROR,
  TPS_TYPE_GUARD,
  TPS_TYPE_DEVICE,
  TPS_TYPE_TIMER,
  TPS_TYPE_HALF,
  TPS_TYPE_MODULE,
  TPS_TYPE_TEXTURE,
  TPS_TYPE_SURFACE,
  TPS_TYPE_PARAMETER,
  TPS_TYPE_CAPTURE,
  TPS_TYPE_TIMELINE, /* a table's */
  TPS_TYPE_RECORDING,
  TPS_TYPE_RANGE,
  TPS_TYPE_STREAM, /* from here to LAUNCH: tps_sealed */
  TPS_TYPE_SCOPE,
  TPS_TYPE_GRAPH,
  TPS_TYPE_EVENT,
  TPS_TYPE_BUFFER,
  TPS_TYPE_KERNEL,
  TPS_TYPE_LAUNCH,
  TPS_TYPE_RUNNER,
  TPS_TYPE_BUILD,
  TPS_TYPE_COUNT
} tps_type;

/* User values of the state's userdata. */
enum {
  TPS_UV_DEVICES = 1, /* address of tps_device → Device */
  TPS_UV_STREAMS,     /* number of a box → Stream; weak values */
  TPS_UV_HELD,  /* address of a box → Stream, while set_stream holds it */
  TPS_UV_BASES, /* thread → base frame; ephemeron */
  TPS_UV_DIAGNOSTICS, /* the table of lua/tpstream/diagnostics.lua */
  TPS_UV_METHODS,     /* the set of all tables of functions */
  TPS_UV_CALLBACKS,   /* callback.c's, by token */
  TPS_UV_WITH_STREAM, /* the function tp.with_stream */
  TPS_UV_INHERIT,     /* the functions of inherit.c */
  TPS_UV_INHERITED,   /* its last frame */
  TPS_UV_LIVE_TASKS,  /* the scheduler's, which counts them */
  TPS_UV_WOKEN,       /* the scheduler's, for lists of waiters */
  TPS_UV_GRAPH,       /* the Graph that is being captured, or nil */
  TPS_UV_METATABLES,  /* that of type t is TPS_UV_METATABLES + t */
  TPS_UV_COUNT = TPS_UV_METATABLES + TPS_TYPE_COUNT - 1
};

struct tps_frame;
#define TPS_KEPT_FRAMES 4

/* A coroutine with frames, and its innermost. */
typedef struct tps_thread {
  lua_State *owner; /* NULL: an empty slot */
  struct tps_frame *top;
} tps_thread;

typedef struct tps_lua_device tps_lua_device;

typedef struct tps_lua {
  lua_State *main;
  tps_context *context; /* NULL once the Lua state closes */
  const void *meta[TPS_TYPE_COUNT];
  tps_lua_device *initial; /* its device, once looked up */
  bool strict;
  unsigned checks;      /* check.c: started here, not stopped yet */
  uint64_t check_began; /* tps_report_now then */
  bool gc_stress;  /* TPSTREAM_GC_STRESS=1: a full collection at every entry */
  bool fault_told; /* a device's fault has been raised in this state */
  int (*interrupt)(void); /* the host's flag, or NULL */
  lua_Hook hook;          /* of the main coroutine when the wait began */
  /* The last site's script, as found and as interned; size with the NUL. */
  char site_text[LUA_IDSIZE];
  size_t site_size;
  const char *site_name;
  /* scope.c: the main coroutine's innermost frame, and a hash of the others. */
  struct tps_frame *main_top;
  tps_thread *threads;
  size_t thread_count, thread_slots;
  struct tps_frame *inherited; /* inherit.c: the last frame, or NULL */
  lua_Integer stream_number;   /* the last one given */
  uint64_t frame_seq;
  struct tps_frame *kept[TPS_KEPT_FRAMES]; /* for blocks of the main one */
  uint64_t callback_seq;                   /* the last token given */
  struct tps_lua_capture *capture;         /* the one begun last, or NULL */
  struct tps_timeline *timeline;           /* that is recorded, or NULL */
  const void *running; /* the Runner of the safe point at hand, or NULL */
  struct tps_callback **again; /* callback.c's: to be due once more */
  size_t again_count;
} tps_lua;

static inline tps_lua *tps_lua_of(lua_State *L) {
  return (tps_lua *)lua_touserdata(L, lua_upvalueindex(1));
}

extern const char *const tps_type_names[TPS_TYPE_COUNT];

/* Begins a box. The seal is made of type and address, so no other memory holds
 * it by chance; finalizers break it, lest what Lua puts there next has it. Under
 * gc_stress there are none, so that every check leads to tps_to_any, which
 * collects: what is usual pays nothing for that. */
typedef struct tps_head {
  uintptr_t seal;
  tps_lua *lua;
} tps_head;

static inline uintptr_t tps_seal(const void *box, tps_type type) {
  return (uintptr_t)box ^ (uintptr_t)&tps_type_names[type];
}
/* Boxes of these types begin with a tps_head. */
static inline bool tps_sealed(tps_type type) {
  return type >= TPS_TYPE_STREAM && type <= TPS_TYPE_LAUNCH;
}
static inline void tps_break_seal(void *box) { ((tps_head *)box)->seal = 0; }

/* tps_to of any type, sealed or not: by the metatable. */
TPS_COLD void *tps_to_any(lua_State *L, int index, tps_type type);

/* The userdata at `index` if it is of that type, else NULL. */
static inline void *tps_to(lua_State *L, int index, tps_type type) {
  void *box = lua_touserdata(L, index);
  if (box == NULL) return NULL;
  if (tps_sealed(type) && lua_rawlen(L, index) >= sizeof(tps_head) &&
      ((const tps_head *)box)->seal == tps_seal(box, type))
    return box;
  return tps_to_any(L, index, type);
}

/* ---- state.c ------------------------------------------------------------- */

/* Makes the metatable of a type from meta's functions; __index is a table of
 * `methods` unless meta has one of its own. Upvalue 1 of all functions is the
 * state on the top of the stack, which stays there, upvalue 2 of meta's that
 * table. */
void tps_type_make(lua_State *L, tps_type type, const luaL_Reg *meta,
                   const luaL_Reg *methods);
/* Adds functions to the library's table, which lies below the state on the
 * stack. Every tps_…_open is called with these two on top. */
void tps_functions(lua_State *L, const luaL_Reg *functions);
/* The table of functions on top, which stays there, gives them their names in
 * messages about arguments; `state` is the index of the state. */
void tps_remember_names(lua_State *L, int state);
/* A zeroed userdata of that type, but for the head that it begins with. */
void *tps_new(lua_State *L, tps_type type, size_t size, int user_values);
/* Raise: the value at `index` is not of that type; the state is closed. */
TPS_COLD void tps_wrong_type(lua_State *L, int index, tps_type type);
TPS_COLD void tps_state_closed(lua_State *L);
/* Raises what is said of the box of `what` that is closed, or whose state is. */
TPS_COLD void tps_box_closed(lua_State *L, const char *what, bool box_closed);
/* Raises unless the value at `index` is of that type. */
static inline void *tps_check(lua_State *L, int index, tps_type type) {
  void *box = tps_to(L, index, type);
  if (TPS_UNLIKELY(box == NULL)) tps_wrong_type(L, index, type);
  return box;
}
/* The state; raises once it is closed (a finalizer of the script's, late). */
static inline tps_lua *tps_open(lua_State *L) {
  tps_lua *lua = tps_lua_of(L);
  if (TPS_UNLIKELY(lua->context == NULL)) tps_state_closed(L);
  return lua;
}

/* A userdata that frees what it owns: for memory of C's that must outlive calls
 * that can raise. release(NULL) is never called. */
typedef struct tps_guard {
  void *data;
  void (*release)(void *data);
} tps_guard;
tps_guard *tps_guard_push(lua_State *L);
/* For what is there already: where the guard can't be made, it is freed. */
tps_guard *tps_guard_over(lua_State *L, void *data,
                          void (*release)(void *data));
/* Frees at once; the guard on the stack stays, empty. */
void tps_guard_release(tps_guard *guard);

/* The whole file as a string on the stack; true, or false and *err filled. */
bool tps_push_file(lua_State *L, const char *path, tps_error *err);

/* ---- kernels.c ----------------------------------------------------------- */

void tps_kernels_open(lua_State *L);

/* ---- errors.c ------------------------------------------------------------ */

/* Raises what *err says: a string with position for MISUSE, else an object. */
TPS_COLD _Noreturn int tps_raise(lua_State *L, const tps_error *err);
/* Pushes what tps_raise would raise. */
void tps_push_error(lua_State *L, const tps_error *err);
/* The same with the text on top, which goes, for the message, and of another place
 * in the script. */
void tps_push_error_at(lua_State *L, const tps_error *err,
                       const char *position);
/* The same with the string on the top of the stack as the message. */
_Noreturn int tps_raise_text(lua_State *L, const tps_error *err);
/* A string error with the position of the calling Lua function. */
TPS_COLD _Noreturn int tps_misuse(lua_State *L, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sets context->site to the Lua function that called. */
void tps_site_set(lua_State *L, tps_lua *lua);
/* The same where only observers want to know. */
static inline void tps_site_set_observed(lua_State *L, tps_lua *lua) {
  if (TPS_UNLIKELY(tps_observing() || lua->capture != NULL)) {
    tps_site_set(L, lua);
  } else {
    lua->context->site.source = "";
    lua->context->site.line = 0;
  }
}
/* The same where besides the simulated device wants to: a GPU tells nobody of
 * allocations. */
static inline void tps_site_set_told(lua_State *L, tps_lua *lua,
                                     const tps_device *device) {
  if (device->kind == TPS_SIM) tps_site_set(L, lua);
  else tps_site_set_observed(L, lua);
}
/* "script.lua:12" of the calling Lua function, "" if there is none. */
const char *tps_push_position(lua_State *L);
/* Finds the calling Lua function that is not the library's own; false: none. */
bool tps_caller(lua_State *L, lua_Debug *ar, const char *what);
/* The next such function above *level, which is then its. */
bool tps_caller_above(lua_State *L, int *level, lua_Debug *ar,
                      const char *what);
/* Before every call that may wait: what counts as Ctrl-C from now on. */
static inline void tps_before_wait(tps_lua *lua) {
  lua->hook = lua_gethook(lua->main);
}
/* As luaL_argerror and its like, but these know methods that are called through
 * pcall by their names, and give the nearest line of the script. */
TPS_COLD _Noreturn int tps_argument_error(lua_State *L, int argument,
                                          const char *why);
TPS_COLD _Noreturn int tps_type_error(lua_State *L, int argument,
                                      const char *expected);
void tps_check_type(lua_State *L, int argument, int type);
int tps_interrupted(void *data); /* for context->interrupted */
/* "number" or the __name of a userdata, for messages. */
const char *tps_type_name(lua_State *L, int index);
void tps_error_open(lua_State *L);

/* ---- arguments.c --------------------------------------------------------- */

/* As luaL_check… and luaL_opt…, with this library's errors. */
void tps_check_any(lua_State *L, int index);
lua_Integer tps_check_integer(lua_State *L, int index);
lua_Integer tps_opt_integer(lua_State *L, int index, lua_Integer otherwise);
const char *tps_check_string(lua_State *L, int index);
/* Milliseconds → nanoseconds; none or nil: for ever. */
uint64_t tps_check_timeout(lua_State *L, int index);
/* Raises if the options table at `index` has a key that is not among names,
 * which ends with NULL. */
void tps_check_options(lua_State *L, int index, const char *const *names);
/* The field's value is pushed; its type, LUA_TNIL when absent or no table. */
int tps_option(lua_State *L, int index, const char *name);
/* false when absent; raises unless boolean. Pushes nothing. */
bool tps_option_boolean(lua_State *L, int index, const char *name,
                        bool otherwise);
lua_Integer tps_option_integer(lua_State *L, int index, const char *name,
                               lua_Integer otherwise);
/* "bad argument #2 to 'x' (field 'count': …)" */
TPS_COLD _Noreturn int tps_option_error(lua_State *L, int index,
                                        const char *name, const char *format,
                                        ...)
    __attribute__((format(printf, 4, 5)));
/* Elements first .. first + count - 1 of `size`: first at index, count after it
 * (absent: all from first on). *offset is 0-based. */
void tps_check_range(lua_State *L, int index, int64_t size, int64_t *offset,
                     int64_t *count);
void tps_check_span(lua_State *L, int64_t first, int64_t count, int64_t size);
int tps_check_dtype(lua_State *L, int index);

/* ---- elements.c ---------------------------------------------------------- */

typedef enum tps_fit {
  TPS_FITS,
  TPS_NOT_A_NUMBER, /* not Lua's number type */
  TPS_NOT_WHOLE,
  TPS_OUT_OF_RANGE
} tps_fit;

/* Converts the value at `index` into an element; never wraps or truncates. */
tps_fit tps_element_from(lua_State *L, int index, int dtype, void *to);
/* Pushes why it did not fit: "300 does not fit uint8 (0 to 255)". */
const char *tps_push_misfit(lua_State *L, int index, int dtype, tps_fit fit);
void tps_push_element(lua_State *L, int dtype, const void *from);
/* An integer between the limits, or a float of the same value. */
tps_fit tps_integer_from(lua_State *L, int index, lua_Integer least,
                         lua_Integer greatest, lua_Integer *to);
/* Converts `count` elements of the table at `index`, raising on the first that
 * does not fit. Pushes a userdata that holds them. */
void *tps_push_elements(lua_State *L, int index, int dtype, int64_t count);
void tps_elements_table(lua_State *L, int dtype, const void *from,
                        int64_t count);
void tps_half_open(lua_State *L);
typedef struct tps_lua_half {
  uint16_t bits;
  uint8_t dtype;
} tps_lua_half;

/* ---- device.c ------------------------------------------------------------ */

struct tps_lua_device {
  tps_device *device;
  struct tps_lua_stream *stream; /* the default stream, kept by user value 1 */
};

void tps_device_open_type(lua_State *L);
tps_lua_device *tps_push_device(lua_State *L, tps_device *device);
/* Ordinal, name, Device; nil or negative: the current one. */
tps_device *tps_check_device(lua_State *L, int index);
/* The same for an options field; NULL when it is absent. */
tps_device *tps_option_device(lua_State *L, int index, const char *name);

/* ---- stream.c ------------------------------------------------------------ */

typedef struct tps_lua_stream {
  tps_head head;
  tps_stream *stream; /* NULL once closed; then only: */
  tps_device *device; /* whose it was */
  int holds;          /* frames that have it */
  int anchors;        /* entries of theirs that TPS_UV_HELD keeps alive */
  lua_Integer number; /* its key in TPS_UV_STREAMS, never used again */
  bool close_later;   /* at the end of the last block that holds it */
} tps_lua_stream;

void tps_stream_open_type(lua_State *L);
static inline tps_lua_stream *tps_check_stream(lua_State *L, int index) {
  tps_lua_stream *box = (tps_lua_stream *)tps_check(L, index, TPS_TYPE_STREAM);
  if (TPS_UNLIKELY(box->stream == NULL || box->head.lua->context == NULL))
    tps_box_closed(L, "stream", box->stream == NULL);
  return box;
}
/* Pushes a Stream that is still closed. */
tps_lua_stream *tps_push_stream(lua_State *L);
void tps_stream_box_close(tps_lua_stream *box);
/* Pushes the userdata of a box. */
void tps_push_stream_of(lua_State *L, const tps_lua_stream *box);
/* The same for a function that returns it: with something below, too. */
void tps_return_stream_of(lua_State *L, const tps_lua_stream *box);
/* Pushes the box of a device's default stream's userdata. */
tps_lua_stream *tps_push_default_stream(lua_State *L, tps_device *device);
/* The box of a device's default stream; pushes nothing. */
tps_lua_stream *tps_default_stream_box(lua_State *L, tps_device *device);
/* An argument or the current stream. */
tps_stream *tps_opt_stream(lua_State *L, int index);
/* A field or NULL. */
tps_stream *tps_option_stream(lua_State *L, int index, const char *name);
/* The same, kept from the collector at `slot` of the stack, which may be `index`
 * where no other field is read any more: a metamethod may have made it. */
tps_stream *tps_option_stream_kept(lua_State *L, int index, const char *name,
                                   int slot);

/* ---- scope.c ------------------------------------------------------------- */

void tps_scope_open(lua_State *L);
void tps_scope_close_all(tps_lua *lua);
tps_device *tps_current_device(lua_State *L);
/* Of the current device when device is NULL. Never a closed one. */
tps_lua_stream *tps_current_stream_box(lua_State *L, tps_device *device);
static inline tps_stream *tps_current_stream(lua_State *L, tps_device *device) {
  return tps_current_stream_box(L, device)->stream;
}
/* Takes out the frames of coroutines that have ended. */
void tps_scope_purge(lua_State *L, tps_lua *lua);

/* Pushes tp.with_stream, whatever the script has made of that name. */
void tps_push_with_stream(lua_State *L);
void tps_check_callable(lua_State *L, int index);

/* ---- callback.c, external.c ---------------------------------------------- */

void tps_callback_open(lua_State *L);
int tps_stream_on_complete(lua_State *L); /* s:on_complete */
int tps_stream_external(lua_State *L);    /* tp.ExternalStream */
/* True when callbacks were queued that have not run yet. */
bool tps_callback_waiting(lua_State *L);
/* Runs what is due → how many; raises the first error, or the fault of a device
 * whose callbacks are lost. */
lua_Integer tps_callback_run(lua_State *L);
/* The end of every call that has waited: runs what is due. */
static inline void tps_safe_point(lua_State *L) {
  if (tps_callback_waiting(L)) tps_callback_run(L);
}
/* Forgets those that a fault has lost, and tells it who waits; for whoever raises
 * it. */
void tps_callback_drop(lua_State *L);
/* done → : a token of the runtime's for done(ok, ...), which must not raise: called
 * with true where it is due, with false, the error, true after a fault. */
uint64_t tps_callback_put(lua_State *L);
/* waiter → the list that is the token's entry, to which it has been added. */
void tps_callback_join(lua_State *L, uint64_t token);
void tps_callback_forget(lua_State *L, uint64_t token); /* queueing failed */
void tps_callback_deliver_again(tps_lua *lua);

/* ---- check.c ------------------------------------------------------------- */

void tps_check_open(lua_State *L);
/* The state's end: stops what it has started. */
void tps_check_leave(tps_lua *lua);

/* ---- wait.c -------------------------------------------------------------- */

/* Stream, Event: __await. An object whose metatable has __await(x, done) can be
 * waited for with tp.await: done(ok, ...) is called once, on the Lua thread, with
 * the results or false and the error; what __await returns, if anything, is called
 * to abandon the wait. */
int tps_stream_await(lua_State *L);
int tps_event_await(lua_State *L);
/* library state → the same, with tp.spawn and all that belongs to tasks */
void tps_wait_open(lua_State *L);

/* ---- event.c, timer.c ---------------------------------------------------- */

typedef struct tps_lua_event {
  tps_head head;
  tps_event *event; /* NULL once closed */
} tps_lua_event;

void tps_event_open_type(lua_State *L);
void tps_timer_open_type(lua_State *L);
static inline tps_event *tps_check_event(lua_State *L, int index) {
  tps_lua_event *box = (tps_lua_event *)tps_check(L, index, TPS_TYPE_EVENT);
  if (TPS_UNLIKELY(box->event == NULL || box->head.lua->context == NULL))
    tps_box_closed(L, "event", box->event == NULL);
  return box->event;
}
/* Pushes a new Event. */
tps_event *tps_push_event(lua_State *L, unsigned flags);
/* Raises in strict mode when the event was never recorded. */
void tps_check_recorded(lua_State *L, const tps_event *event);

/* ---- timeline.c ---------------------------------------------------------- */

void tps_timeline_open(lua_State *L);

/* ---- buffer.c ------------------------------------------------------------ */

typedef struct tps_lua_buffer {
  tps_head head;
  tps_memory *memory; /* NULL once closed */
  uint64_t first;     /* byte of the memory where the view begins */
  int64_t count;      /* elements */
  uint8_t dtype, size;
} tps_lua_buffer;

void tps_buffer_open_type(lua_State *L);
static inline tps_lua_buffer *tps_check_buffer(lua_State *L, int index) {
  tps_lua_buffer *box = (tps_lua_buffer *)tps_check(L, index, TPS_TYPE_BUFFER);
  if (TPS_UNLIKELY(box->memory == NULL || box->head.lua->context == NULL))
    tps_box_closed(L, "buffer", box->memory == NULL);
  return box;
}
/* Pushes a Buffer that is still closed: the caller fills `memory` last. */
tps_lua_buffer *tps_push_buffer(lua_State *L, int dtype, int64_t count);
static inline uint64_t tps_buffer_bytes(const tps_lua_buffer *b) {
  return (uint64_t)b->count * b->size;
}

/* ---- texture.c ----------------------------------------------------------- */

/* A Texture or a Surface. */
typedef struct tps_lua_view {
  tps_view *view; /* NULL once closed */
  uint8_t dtype;
} tps_lua_view;

void tps_texture_open_types(lua_State *L);
/* The Texture or Surface at `index`, which may be closed, or NULL. */
tps_lua_view *tps_to_view(lua_State *L, int index);

/* ---- module.c, compile.c ------------------------------------------------- */

typedef struct tps_lua_module {
  tps_module *module; /* NULL once closed */
} tps_lua_module;

/* Its user values; all but the log are of compiled modules only. */
enum {
  TPS_MODULE_LOG = 1,
  TPS_MODULE_SOURCE,
  TPS_MODULE_OPTIONS,
  TPS_MODULE_INSTANCES, /* name expression → Module compiled on demand */
  TPS_MODULE_USER_VALUES = TPS_MODULE_INSTANCES
};

void tps_module_open_type(lua_State *L);
/* Pushes a Module that is still closed. */
tps_lua_module *tps_push_module(lua_State *L);
/* Compiles the source at stack index `source` with the options table (or none)
 * at `options`, and besides the name expression `name` (may be NULL) and pushes
 * the Module; else fills *err and, when the compiler has found errors, pushes
 * the whole text of what it said (code COMPILATION). */
int tps_compile(lua_State *L, int source, int options, const char *name,
                tps_error *err);
/* What a compile had to say goes to standard error, too, if the options at that
 * index or the host want that. */
void tps_show_warnings(lua_State *L, int options, const char *text);
/* Whether the options at that index or the host say so of what is compiled. */
bool tps_untrusted(lua_State *L, int index);
int tps_module_compile(lua_State *L);      /* tp.compile */
int tps_module_compile_file(lua_State *L); /* tp.compile_file */
int tps_module_link_all(lua_State *L);     /* tp.link */

/* ---- kernel.c, plan.c, pack.c, launch.c ---------------------------------- */

/* How one parameter is converted: made once for each kernel. */
typedef struct tps_plan {
  uint8_t kind;  /* tps_argument_kind */
  uint8_t dtype; /* of the value, or of what a pointer points to */
  uint8_t access;
  bool either_char; /* char*: takes int8 and uint8 */
  uint32_t offset, size;
  lua_Integer least, greatest;
} tps_plan;

typedef struct tps_lua_kernel {
  tps_head head;
  tps_kernel *kernel; /* NULL once closed */
  uint32_t count;
  tps_plan *plans; /* owned */
  tps_use *uses;   /* owned: those of the launch in hand */
  char *names;     /* owned, tp.map's alone: its parameters, "x, y, n"; the last
                      one, the count, is passed by forall itself */
  tps_device *best_device; /* for which best_threads was worked out */
  int64_t best_threads;
} tps_lua_kernel;

void tps_kernel_open_type(lua_State *L);
void tps_launch_open_type(lua_State *L);
tps_lua_kernel *tps_check_kernel(lua_State *L, int index);
/* Pushes the Kernel, or fills *err. */
int tps_push_kernel(lua_State *L, tps_module *module, const char *name,
                    tps_error *err);
/* Fills box->plans from the kernel's description; 0 or NO_HOST_MEMORY. */
int tps_plan_make(tps_lua_kernel *box, tps_error *err);
/* Converts the arguments from stack index `first` on into the kernel's block
 * for a launch on `device`; returns how many uses it has noted. */
uint32_t tps_pack(lua_State *L, tps_lua_kernel *k, int first,
                  tps_device *device);
/* Replaces the named parameters among these arguments by their values and notes
 * them, while something is captured (capture.c). */
void tps_capture_arguments(lua_State *L, const tps_lua_kernel *k, int first);
/* The same for the value at `index`, which elements of that type get. False: it is
 * no Parameter, or nothing is captured. */
bool tps_capture_value(lua_State *L, int index, int dtype);
/* They are part of the launch or fill captured last on the stream. */
void tps_capture_launched(tps_lua *lua, const tps_stream *stream);
/* "kernel 'saxpy': argument #1 (float): …" */
/* Pushes what messages call a parameter: "'x'" if it has a name, else "#1". */
TPS_COLD const char *tps_push_parameter(lua_State *L, const tps_lua_kernel *k,
                                        uint32_t i);
/* Raises the wrong number of arguments: `expected` of the kernel's. */
TPS_COLD _Noreturn void tps_bad_count(lua_State *L, const tps_lua_kernel *k,
                                      uint32_t expected, int given);
TPS_COLD _Noreturn void tps_bad_argument(lua_State *L, const tps_lua_kernel *k,
                                         uint32_t i, const char *why);
/* struct.c: a struct, or an integer of 128 bits, into the kernel's block. */
void tps_put_struct(lua_State *L, tps_lua_kernel *k, uint32_t i, int index);
/* Methods of Kernel. */
int tps_kernel_launch(lua_State *L);
int tps_kernel_bind(lua_State *L);
int tps_kernel_forall(lua_State *L);

#endif
