/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The face that every device presents to the runtime: one struct of function
 * pointers, implemented by cuda/ and by sim/, with nothing of CUDA's types in it.
 *
 * Rules for both sides:
 * - Every function is thread-safe against every other on different objects; one
 *   stream, event or module is used by one thread at a time. The legacy stream
 *   may be used from several.
 * - Functions return 0 or a code and then fill *err (never NULL). Once a device
 *   has faulted every function but the destroying ones returns the fault's code;
 *   the device fills in all it knows (simulated: kernel, block, thread, source
 *   line, script line).
 * - Nothing but the *_synchronize functions, `memory_unpin`, `module_unload`,
 *   `array_destroy` and `close` may wait for queued work.
 * - Each function sets whatever "current device" its library has, by itself.
 * - Destroying a stream or an event with work queued lets that work finish.
 * - `op` is the operation's record (never NULL); a device that reports into it
 *   later takes a reference of its own.
 */
#ifndef TPS_DEVICE_DEVICE_H
#define TPS_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/kernel.h"
#include "device/product.h"
#include "device/record.h"

typedef enum tps_device_kind { TPS_CUDA, TPS_SIM } tps_device_kind;

typedef struct tps_device tps_device;

/* Handles of a device; each kind has structs (or casts) of its own behind. */
typedef struct tps_device_stream tps_device_stream;
typedef struct tps_device_event tps_device_event;
typedef struct tps_device_module tps_device_module;
typedef struct tps_device_kernel tps_device_kernel;
typedef struct tps_device_array tps_device_array;
typedef struct tps_device_graph tps_device_graph;

typedef struct tps_device_properties {
  char name[256];
  int capability_major, capability_minor;
  int multiprocessors;
  int warp_size;
  int max_threads_per_block;
  int max_threads_per_multiprocessor;
  int max_blocks_per_multiprocessor;
  int64_t max_block[3]; /* x, y, z */
  int64_t max_grid[3];
  int64_t shared_per_block; /* without opt-in */
  int64_t shared_per_block_optin;
  int64_t shared_per_multiprocessor;
  int64_t registers_per_block;
  int64_t registers_per_multiprocessor;
  int64_t constant_memory;
  int64_t total_memory;
  int64_t l2_cache;
  int clock_khz, memory_clock_khz, memory_bus_bits;
  bool cooperative_launch;
  bool clusters;
  bool managed_memory; /* that the host may use while kernels run */
  bool concurrent_kernels;
  int async_engines;
  int priority_least, priority_greatest; /* 0 and -5 */
  int driver_version, runtime_version;   /* 13000; 0 on the simulated device */
  char pci_bus_id[32], uuid[48];         /* "" on the simulated device */
} tps_device_properties;

typedef struct tps_launch {
  uint32_t grid[3], block[3];
  uint32_t cluster[3]; /* all 0: none */
  uint32_t shared;     /* dynamic bytes */
  bool cooperative;
  uint8_t carveout; /* what shared memory should get of what it shares with the
                       L1 cache, percent + 1; 0: as the device likes */
  const void *params; /* the packed parameter block, copied before return */
  uint32_t param_bytes;
  void **argv; /* the address of each parameter inside the block */
  uint32_t argc;
} tps_launch;

typedef struct tps_kernel_attributes {
  int registers;
  int64_t shared_bytes; /* static */
  int64_t local_bytes;  /* a thread */
  int64_t const_bytes;
  int max_threads;            /* a block */
  int64_t max_dynamic_shared; /* as the device now allows for this kernel */
} tps_kernel_attributes;

/* --- arrays, textures, surfaces ------------------------------------------- */

typedef enum tps_texel_kind {
  TPS_TEXEL_UNSIGNED,
  TPS_TEXEL_SIGNED,
  TPS_TEXEL_FLOAT
} tps_texel_kind;

typedef struct tps_texel {
  uint8_t kind;     /* tps_texel_kind */
  uint8_t bits;     /* of a channel: 8, 16, 32 */
  uint8_t channels; /* 1, 2 or 4 */
} tps_texel;

/* Opaque memory that textures sample and surfaces write. */
typedef struct tps_array_shape {
  tps_texel texel;
  uint64_t width;  /* texels */
  uint64_t height; /* 0: one dimension */
  uint64_t depth;  /* 0: at most two */
  uint64_t layers; /* 0: not layered; of a cube: of six faces each */
  bool cube;
  bool writable; /* surfaces may be made of it */
} tps_array_shape;

static inline uint64_t tps_texel_bytes(tps_texel t) {
  return (uint64_t)t.bits / 8 * t.channels;
}
static inline uint64_t tps_array_rows(const tps_array_shape *s) {
  return s->height == 0 ? 1 : s->height;
}
/* Slices, or layers times faces. */
static inline uint64_t tps_array_slices(const tps_array_shape *s) {
  uint64_t layers = s->layers == 0 ? 1 : s->layers;
  return s->depth > 0 ? s->depth : s->cube ? 6 * layers : layers;
}

typedef enum tps_address_mode {
  TPS_ADDRESS_WRAP,
  TPS_ADDRESS_CLAMP,
  TPS_ADDRESS_MIRROR,
  TPS_ADDRESS_BORDER
} tps_address_mode;

typedef struct tps_sampling {
  uint8_t address[3]; /* tps_address_mode, by dimension */
  bool linear;        /* filter */
  bool normalized;    /* coordinates */
  bool normalized_read;
  bool srgb;
  float border[4];
} tps_sampling;

/* What a texture samples: an array, or linear memory as one line of
 * shape.width texels (which integer coordinates fetch), or, with a pitch, as
 * shape.height rows that many bytes apart. */
typedef struct tps_texture_source {
  tps_array_shape shape;
  tps_device_array *array; /* NULL: linear memory */
  uint64_t address;
  uint64_t pitch;
} tps_texture_source;

/* The largest extents; 0 where there is no such thing. */
typedef struct tps_texture_limits {
  uint32_t line, linear_line, plane[2], linear_plane[2], volume[3];
  uint32_t layered_line[2], layered_plane[3]; /* layers last */
  uint32_t cube, layered_cube[2];
  uint32_t linear_pitch;
  uint32_t address_alignment, pitch_alignment;
} tps_texture_limits;

typedef enum tps_image_kind { TPS_IMAGE_PTX, TPS_IMAGE_BINARY } tps_image_kind;

/* Flags of stream_create. */
#define TPS_STREAM_BLOCKING 1u /* joins the legacy stream's implicit order */
/* Flags of event_create. */
#define TPS_EVENT_TIMING 1u
#define TPS_EVENT_BLOCKING_SYNC 2u
#define TPS_EVENT_INTERPROCESS 4u

#define TPS_EVENT_IPC_BYTES 64 /* of a handle for another process */
#define TPS_MEMORY_IPC_BYTES 64

/* Host memory that a device reaches. */
typedef enum tps_pin {
  TPS_PIN_LOCKED,  /* page-locked */
  TPS_PIN_STAGING, /* page-locked, the runtime's own, for copies alone: a device
                      that can keeps kernels off it and says nothing of it */
  TPS_PIN_MANAGED  /* moves to where it is used; the host may use it while
                      kernels run */
} tps_pin;

/* Rows of bytes, `to_pitch` and `from_pitch` bytes from one to the next. */
typedef struct tps_rows {
  uint64_t count, bytes; /* both > 0 */
  uint64_t to_pitch, from_pitch;
} tps_rows;

/* --- graphs --------------------------------------------------------------- */

typedef enum tps_graph_node_kind {
  TPS_NODE_LAUNCH,
  TPS_NODE_COPY,
  TPS_NODE_FILL,
  TPS_NODE_HOST,
  TPS_NODE_RECORD, /* of an event; not in a body */
  TPS_NODE_IF,     /* its body runs if the flag is not 0 */
  TPS_NODE_WHILE   /* and again, as long as it is not */
} tps_graph_node_kind;

typedef struct tps_graph_node tps_graph_node;

/* Each node stands after those that it comes after. */
typedef struct tps_graph_node_list {
  tps_graph_node *nodes;
  uint32_t count, capacity;
} tps_graph_node_list;

struct tps_graph_node {
  uint8_t kind; /* tps_graph_node_kind */
  uint32_t id;  /* in order of capture; counts those of bodies, too */
  int priority; /* of the stream that it was captured on */
  tps_device *device;
  tps_op *op;      /* a reference: made at capture, shared by all launches */
  uint32_t *after; /* owned: indices of nodes of the same list */
  uint32_t after_count;
  union {
    struct {
      tps_device_kernel *kernel;
      tps_launch launch; /* its parameters owned */
    } run;
    struct {
      uint64_t to, from;
      tps_rows rows;
      tps_device *to_device, *from_device; /* as for copy_rows */
    } copy;
    struct {
      uint64_t to, pattern, count;
      unsigned width;
    } fill;
    struct {
      void (*notify)(void *data, bool failed); /* as for stream_notify */
      void *data;
    } host;
    struct {
      /* Each launch records it anew, from the call on as event_record does. It
       * lives as long as the graph. NULL: nothing. */
      tps_device_event *event;
      void *owner; /* the runtime's */
    } record;
    struct {
      uint64_t flag; /* address of a 32-bit integer */
      tps_graph_node_list body;
    } condition;
  } u;
};

typedef struct tps_device_face {
  /* --- the device ------------------------------------------------------- */
  int (*memory_info)(tps_device *, uint64_t *free, uint64_t *total,
                     tps_error *err);
  /* Waits for everything on the device, foreign streams included. The runtime
   * has waited for its own streams in slices before. */
  int (*synchronize)(tps_device *, tps_error *err);
  void (*close)(tps_device *);

  /* --- streams ------------------------------------------------------------ */
  /* The legacy stream; always there; never destroyed. */
  tps_device_stream *(*default_stream)(tps_device *);
  /* priority is clamped; *effective tells the one in force. */
  int (*stream_create)(tps_device *, int priority, unsigned flags,
                       tps_device_stream **out, int *effective, tps_error *err);
  void (*stream_destroy)(tps_device *, tps_device_stream *);
  /* 0 done, NOT_READY, or an error. */
  int (*stream_query)(tps_device *, tps_device_stream *, tps_error *err);
  /* Waits at most timeout_ns (the runtime asks in slices of 50 ms so that it can
   * look at its interrupt flag): 0 done, NOT_READY, or an error. */
  int (*stream_synchronize)(tps_device *, tps_device_stream *,
                            uint64_t timeout_ns, tps_error *err);
  /* The event may belong to another device of the same kind. */
  int (*stream_wait_event)(tps_device *, tps_device_stream *,
                           tps_device_event *, tps_op *op, tps_error *err);
  uint64_t (*stream_handle)(tps_device *, tps_device_stream *);

  /* --- events ------------------------------------------------------------- */
  int (*event_create)(tps_device *, unsigned flags, tps_device_event **out,
                      tps_error *err);
  void (*event_destroy)(tps_device *, tps_device_event *);
  int (*event_record)(tps_device *, tps_device_event *, tps_device_stream *,
                      tps_op *op, tps_error *err);
  int (*event_query)(tps_device *, tps_device_event *, tps_error *err);
  int (*event_synchronize)(tps_device *, tps_device_event *,
                           uint64_t timeout_ns, tps_error *err);
  /* Both recorded with timing and finished, on this device; b - a. */
  int (*event_elapsed)(tps_device *, tps_device_event *a, tps_device_event *b,
                       double *ms, tps_error *err);
  uint64_t (*event_handle)(tps_device *, tps_device_event *);

  /* --- memory ------------------------------------------------------------- */
  /* In stream order; bytes > 0; 256-byte aligned. `op` carries the script's line
   * and the allocation's id (touches[0].memory), for the device's reports. */
  int (*memory_allocate)(tps_device *, uint64_t bytes, tps_device_stream *,
                         tps_op *op, uint64_t *address, tps_error *err);
  int (*memory_free)(tps_device *, uint64_t address, tps_device_stream *,
                     tps_op *op, tps_error *err);
  /* Host memory that kernels reach at *address. NOT_SUPPORTED for managed memory
   * on a device that has none. `unpin` may wait for running work: the runtime
   * calls it only when nothing runs. */
  int (*memory_pin)(tps_device *, uint64_t bytes, tps_pin, void **host,
                    uint64_t *address, tps_error *err);
  int (*memory_unpin)(tps_device *, tps_pin, void *host, uint64_t address,
                      tps_error *err);
  /* May be NULL, where reports say nothing of allocations. What they should say
   * of the one at `address`: its element type and the script's line ("" and 0
   * where not known; constant texts). `element` NULL: closed there. */
  void (*memory_note)(tps_device *, uint64_t address, const char *element,
                      const char *source, int line);
  /* Between device memory and pinned host memory, any direction; host memory
   * that is not pinned must not be passed. Host pointers are given as the
   * addresses that memory_pin returned. Ranges lie within one allocation each
   * and overlap only where source and destination are the same. */
  int (*copy)(tps_device *, uint64_t to, uint64_t from, uint64_t bytes,
              tps_device_stream *, tps_op *op, tps_error *err);
  /* Between two devices of one kind; `stream` belongs to the first argument. */
  int (*copy_peer)(tps_device *, uint64_t to, tps_device *to_device,
                   uint64_t from, tps_device *from_device, uint64_t bytes,
                   tps_device_stream *, tps_op *op, tps_error *err);
  /* Row by row, within a device or between two; the ranges from the first byte
   * of the first row to the last of the last are in one allocation each. No byte
   * that is written is read. */
  int (*copy_rows)(tps_device *, uint64_t to, tps_device *to_device,
                   uint64_t from, tps_device *from_device, const tps_rows *,
                   tps_device_stream *, tps_op *op, tps_error *err);
  /* `count` elements of `width` (1, 2, 4, 8) bytes, each set to the low bytes of
   * `pattern`. */
  int (*fill)(tps_device *, uint64_t to, uint64_t pattern, unsigned width,
              uint64_t count, tps_device_stream *, tps_op *op, tps_error *err);
  /* True when kernels of this device may use the other one's memory; tries to
   * turn peer access on at the first call. */
  bool (*can_access_peer)(tps_device *, tps_device *other);

  /* --- modules and kernels -------------------------------------------------- */
  /* The image may be dropped after the call. Loading must report a bad image
   * here (look a kernel up at once where the driver is lazy): `probe` is the
   * name of a kernel known to be in it, or NULL. */
  int (*module_load)(tps_device *, tps_image_kind, const void *image,
                     size_t size, const char *probe, tps_device_module **out,
                     tps_error *err);
  /* What loading would say of PTX that is yet to be linked, as far as it can be
   * told of a part. NULL: nothing. */
  int (*module_check)(tps_device *, const void *image, size_t size,
                      tps_error *err);
  void (*module_unload)(tps_device *, tps_device_module *);
  int (*kernel_find)(tps_device *, tps_device_module *, const char *name,
                     tps_device_kernel **out, tps_error *err);
  /* Sizes and offsets of the parameters of a kernel known only from a binary:
   * fills params (certainty BY_SIZE), param_count and param_bytes of *desc. */
  int (*kernel_params)(tps_device *, tps_device_kernel *, tps_kernel_desc *desc,
                       tps_error *err);
  /* Names of the kernels of a loaded binary: an array of owned strings in one
   * malloc'd block, to be freed by the caller. */
  int (*module_kernels)(tps_device *, tps_device_module *, char ***names,
                        size_t *count, tps_error *err);
  int (*kernel_attributes)(tps_device *, tps_device_kernel *,
                           tps_kernel_attributes *out, tps_error *err);
  /* Lets the kernel use up to `bytes` of dynamic shared memory. */
  int (*kernel_opt_in_shared)(tps_device *, tps_device_kernel *, int64_t bytes,
                              tps_error *err);
  /* Blocks of that many threads that fit a multiprocessor. */
  int (*kernel_occupancy)(tps_device *, tps_device_kernel *, int threads,
                          int64_t shared, int *blocks, tps_error *err);
  int (*global_find)(tps_device *, tps_device_module *, const char *name,
                     uint64_t *address, uint64_t *bytes, tps_error *err);
  int (*launch)(tps_device *, tps_device_kernel *, const tps_launch *,
                tps_device_stream *, tps_op *op, tps_error *err);

  /* --- host notification ---------------------------------------------------- */
  /* Calls notify(data, failed) once, from a thread of the device's or from
   * inside this call, when the work queued on the stream before is done; later
   * work waits for it. It must neither wait nor call the device. `failed`: the
   * device has faulted, the work was dropped. A GPU makes no call at all after
   * a fault. Nothing is called when this fails. */
  int (*stream_notify)(tps_device *, tps_device_stream *,
                       void (*notify)(void *data, bool failed), void *data,
                       tps_op *op, tps_error *err);

  /* --- times --------------------------------------------------------------- */
  /* May be NULL: nothing is put off. Tells (device/watch.h) of all operations
   * that have ended; where nobody wants to know any more it forgets those that
   * have not. Waits for no queued work. */
  void (*times_collect)(tps_device *);

  /* --- what others have made ------------------------------------------------ */
  /* A stream by its handle, not the legacy one's; 2 is the per-thread default
   * stream. INVALID_HANDLE or INVALID_VALUE says what is wrong with it. */
  int (*stream_adopt)(tps_device *, uint64_t handle, tps_device_stream **out,
                      int *priority, bool *blocking, tps_error *err);
  /* The end of an adopted stream's use; it stays its owner's. */
  void (*stream_forget)(tps_device *, tps_device_stream *);
  /* Of an event made with TPS_EVENT_INTERPROCESS. NOT_SUPPORTED where there is
   * no such thing. */
  int (*event_export)(tps_device *, tps_device_event *,
                      char handle[TPS_EVENT_IPC_BYTES], tps_error *err);
  int (*event_import)(tps_device *, const char handle[TPS_EVENT_IPC_BYTES],
                      tps_device_event **out, tps_error *err);
  /* Memory that other processes can open: there at once, in no stream's order,
   * NOT_SUPPORTED where there is no such thing. */
  int (*memory_share)(tps_device *, uint64_t bytes, uint64_t *address,
                      tps_error *err);
  int (*memory_export)(tps_device *, uint64_t address,
                       char handle[TPS_MEMORY_IPC_BYTES], tps_error *err);
  int (*memory_import)(tps_device *, const char handle[TPS_MEMORY_IPC_BYTES],
                       uint64_t *address, uint64_t *bytes, tps_error *err);
  /* The end of shared or imported memory. May wait for running work: called only
   * when nothing runs. */
  void (*memory_unshare)(tps_device *, uint64_t address, bool imported);

  /* --- textures and surfaces ------------------------------------------------ */
  void (*texture_limits)(tps_device *, bool writable, tps_texture_limits *out);
  int (*array_create)(tps_device *, const tps_array_shape *,
                      tps_device_array **out, tps_error *err);
  /* May be NULL, where reports say nothing of arrays. It begins to be the program's,
   * anew if it was before: the script's line that makes it, and nothing has been
   * written to it yet. Nothing that uses it may be queued or running. */
  void (*array_begin)(tps_device *, tps_device_array *, const char *source,
                      int line);
  /* Nothing that uses it may be queued or running. */
  void (*array_destroy)(tps_device *, tps_device_array *);
  /* The whole array, its rows and slices without gaps, from device or pinned
   * memory or to it. */
  int (*array_copy)(tps_device *, tps_device_array *, uint64_t address,
                    bool to_array, tps_device_stream *, tps_op *op,
                    tps_error *err);
  /* The handle is what kernels take; never 0. */
  int (*texture_create)(tps_device *, const tps_texture_source *,
                        const tps_sampling *, uint64_t *handle, tps_error *err);
  void (*texture_destroy)(tps_device *, uint64_t handle);
  int (*surface_create)(tps_device *, tps_device_array *, uint64_t *handle,
                        tps_error *err);
  void (*surface_destroy)(tps_device *, uint64_t handle);

  /* --- what the device's own libraries do better ---------------------------- */
  /* Both may be NULL. Whether there is a library, for these types. */
  bool (*can_multiply)(tps_device *, const tps_product *);
  /* NOT_SUPPORTED, with nothing queued: it will not after all. */
  int (*multiply)(tps_device *, const tps_product *, tps_device_stream *,
                  tps_op *op, tps_error *err);

  /* --- graphs --------------------------------------------------------------- */
  /* Makes a graph that can be launched; takes what it needs of the list and a
   * reference to each op that it goes on using. Refuses what it would refuse
   * to queue. */
  int (*graph_build)(tps_device *, const tps_graph_node_list *,
                     tps_device_graph **out, tps_error *err);
  /* Node `index`, a launch or a fill, has other parameters or another pattern than
   * when the graph was built: for launches from now on. NOT_SUPPORTED: it has to be
   * built anew. */
  int (*graph_change)(tps_device *, tps_device_graph *,
                      const tps_graph_node_list *, uint32_t index,
                      tps_error *err);
  /* The list, of the same shape as that which it was built from, replaces it.
   * NOT_SUPPORTED as above. */
  int (*graph_update)(tps_device *, tps_device_graph *,
                      const tps_graph_node_list *, tps_error *err);
  /* Launches of one graph come one after the other, whatever their streams. */
  int (*graph_launch)(tps_device *, tps_device_graph *, tps_device_stream *,
                      tps_op *op, tps_error *err);
  /* What was launched, ends. */
  void (*graph_destroy)(tps_device *, tps_device_graph *);
} tps_device_face;

struct tps_device {
  const tps_device_face *face;
  tps_device_kind kind;
  int ordinal;
  tps_device_properties properties;
  bool
      unpin_waits; /* giving page-locked memory back waits for running work: it is
                       rather kept for the next time */
  bool recycles; /* freed memory may be handed out again in stream order without
                    asking the device */
  void *runtime; /* the runtime's state for this device */
};

/* The devices of each kind. `count` may be 0 (CUDA without a driver: then *why
 * says so). Devices are opened once in the process and stay open; open is cheap:
 * it makes no CUDA context and starts no thread until the device is used. */
int tps_cuda_device_count(tps_error *why);
int tps_cuda_device_open(int ordinal, tps_device **out, tps_error *err);
int tps_sim_device_count(void); /* TPSTREAM_SIM_DEVICES, default 1, 1 to 64 */
int tps_sim_device_open(int ordinal, tps_device **out, tps_error *err);

#endif
