/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Modules, kernels, launches. A module is counted (its Lua object and each kernel
 * hold a reference) and loads itself on a device when first used there, with the
 * image that its source gives for that device.
 */
#ifndef TPS_RUNTIME_MODULE_H
#define TPS_RUNTIME_MODULE_H

#include "base/fidelity.h"
#include "ptx/link.h"
#include "runtime/memory.h"

/* Where images come from. rtc/ implements it for compiled sources; the runtime
 * itself for loaded bytes. */
typedef struct tps_image_source {
  void *data;
  /* The image for `device`; valid until the next call or release. */
  int (*image)(void *data, tps_device *device, tps_image_kind *kind,
               const void **bytes, size_t *size, tps_error *err);
  /* PTX to read the description from (NULL when there is only a binary); valid
   * until release. */
  const char *(*ptx)(void *data, size_t *size);
  /* May be NULL. Adds what only the source knows to the description, e.g. C++
   * types of extern "C" kernels. */
  int (*refine)(void *data, tps_image_desc *desc);
  void (*release)(void *data);
  bool unlinked; /* relocatable: it is not loaded, only linked */
} tps_image_source;

typedef struct tps_module {
  tps_context *context;
  tps_image_desc desc;
  bool closed;
  bool unlinked; /* nothing of it can run before tps_module_link */
  int refs;
  struct tps_module_parts *parts;
} tps_module;

/* Reads the description and loads the image on `device` at once, so that a bad
 * image is reported here. Takes over `source`, also on failure. */
int tps_module_new(tps_context *context, tps_device *device,
                   const tps_image_source *source, tps_module **out,
                   tps_error *err);
/* The same from bytes that are copied: PTX, CUBIN or fatbin, told by content; an
 * unlinked one must be PTX. Neither: INVALID_IMAGE saying what the first bytes are.
 */
int tps_module_load(tps_context *context, tps_device *device, const void *bytes,
                    size_t size, bool unlinked, tps_module **out,
                    tps_error *err);
/* Makes one module of several that are unlinked. `link` makes a binary for a GPU of
 * the modules' PTX; the simulated device needs none. Errors name modules by their
 * numbers from 1 on. */
typedef int tps_linker(const tps_ptx_input *inputs, size_t count,
                       const tps_device *device, char **cubin, size_t *size,
                       tps_error *err);
int tps_module_link(tps_context *context, tps_device *device,
                    tps_module *const *modules, size_t count, tps_linker *link,
                    tps_module **out, tps_error *err);
void tps_module_close(tps_module *module); /* what runs, ends */
tps_module *tps_module_ref(tps_module *module);
void tps_module_unref(tps_module *module);
/* The same for work that may be queued at any time: it stays loaded though it is
 * closed. */
void tps_module_lend(tps_module *module);
void tps_module_give_back(tps_module *module);
/* PTX text of the module, or NULL. */
const char *tps_module_ptx(tps_module *module, size_t *size);
/* Its opcodes (base/fidelity.h), valid while the module lives. NOT_SUPPORTED for a
 * binary. */
int tps_module_fidelity(tps_module *module, const tps_fidelity **out,
                        tps_error *err);

typedef struct tps_kernel {
  tps_module *module;
  const tps_kernel_desc *desc;
  const char *name;     /* plain, interned */
  unsigned char *block; /* scratch: the packed parameters of the next launch */
  void **argv;          /* the address of each in `block` */
  bool closed;
  struct tps_kernel_parts *parts; /* per device: handle, attributes */
} tps_kernel;

/* By plain name, symbol, or signature. NOT_FOUND lists the names there are; a
 * plain name that several share: MISUSE-like text with code NOT_FOUND listing the
 * candidates' signatures. */
int tps_kernel_find(tps_module *module, const char *name, tps_kernel **out,
                    tps_error *err);
void tps_kernel_free(tps_kernel *kernel);
/* What the kernel's code reads of a parameter, in order, owned: to help whoever packs
 * a struct. NULL and *count 0 when there is nothing to be told. */
tps_field *tps_kernel_fields(tps_kernel *kernel, uint32_t param, size_t *count);
/* What kernel i is called in lists: its plain name where that is unique, else its
 * signature. */
const char *tps_kernel_listed_name(const tps_image_desc *desc, size_t i);

/* A variable of the module on `device`, as borrowed memory that keeps the module
 * alive. *desc describes it. NOT_FOUND lists the names there are. */
int tps_module_global(tps_module *module, tps_device *device, const char *name,
                      tps_memory **out, const tps_global_desc **desc,
                      tps_error *err);

typedef struct tps_shape {
  int64_t grid[3], block[3]; /* unused dimensions 1 */
  int64_t cluster[3];        /* all 0: none */
  int64_t shared;
  bool cooperative;
  uint8_t carveout; /* as tps_launch's */
} tps_shape;

/* A shape checked against a kernel on a device: what a bound kernel keeps. Plain
 * data; valid while the kernel lives. */
typedef struct tps_prepared {
  tps_kernel *kernel;
  tps_device *device;
  tps_device_kernel *handle;
  tps_launch launch;
} tps_prepared;

/* Loads the module on the device if need be, checks every limit (each message
 * says the bound that broke: "kernel 'saxpy': block of 2048 threads (this kernel
 * allows 1024)"), opts into dynamic shared memory. */
int tps_launch_prepare(tps_kernel *kernel, tps_device *device,
                       const tps_shape *shape, tps_prepared *out,
                       tps_error *err);
/* Launches with the parameters in kernel->block. `stream` must be of the prepared
 * device. The uses name what the pointer parameters point to. */
int tps_launch_run(const tps_prepared *prepared, tps_stream *stream,
                   const tps_use *uses, uint32_t use_count, tps_error *err);

int tps_kernel_attributes_of(tps_kernel *kernel, tps_device *device,
                             tps_kernel_attributes *out, tps_error *err);
/* Blocks a multiprocessor; 0 if impossible. */
int tps_kernel_occupancy(tps_kernel *kernel, tps_device *device,
                         int64_t threads, int64_t shared, int *blocks,
                         tps_error *err);
/* The 1-D block size with the highest occupancy (largest such, ≤ max_threads). */
int tps_kernel_best_block(tps_kernel *kernel, tps_device *device,
                          int64_t *threads, tps_error *err);
/* Blocks of a cooperative grid at the most. */
int tps_kernel_cooperative_grid(tps_kernel *kernel, tps_device *device,
                                int64_t threads, int64_t shared,
                                int64_t *blocks, tps_error *err);

#endif
