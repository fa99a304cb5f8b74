/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Modules: the description of what is in them, and the image loaded on each
 * device that uses it. A module's variables may be lent out as memory: it is
 * unloaded only when those are gone. */
#include <stdlib.h>
#include <string.h>

#include "ptx/fidelity.h"
#include "runtime/parts.h"

/* A variable of a module known only from a binary: described when asked for. */
typedef struct extra_global {
  struct extra_global *next;
  tps_global_desc desc;
} extra_global;

struct tps_module_parts {
  tps_image_source source;
  tps_loaded *on;
  unsigned lent; /* variables lent out as memory, and graphs */
  extra_global *extras;
  tps_fidelity *fidelity; /* once asked for */
};

static int no_memory(tps_error *err) {
  tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  return TPS_NO_HOST_MEMORY;
}

/* ---- loading on a device ------------------------------------------------- */

static int load(tps_module *module, tps_local *local, tps_loaded *loaded,
                tps_error *err) {
  tps_device *device = local->device;
  const tps_image_source *source = &module->parts->source;
  tps_image_kind kind;
  const void *bytes;
  size_t size;
  char label[32];
  int code = source->image(source->data, device, &kind, &bytes, &size, err);
  if (code != 0) return code;
  if (kind == TPS_IMAGE_BINARY && device->kind == TPS_SIM)
    return tps_fail(err, TPS_NO_BINARY_FOR_GPU,
                    "%s can't run a binary image (CUBIN or fatbin), only PTX",
                    tps_device_label(device, label, sizeof label));
  const char *probe =
      module->desc.kernel_count > 0 ? module->desc.kernels[0].name : NULL;
  code = device->face->module_load(device, kind, bytes, size, probe,
                                   &loaded->module, err);
  return code != 0 ? tps_failed(device, local, code, err) : 0;
}

static tps_loaded *find_loaded(const tps_module *module,
                               const tps_device *device) {
  tps_loaded *loaded = module->parts->on;
  while (loaded != NULL && loaded->device != device) loaded = loaded->next;
  return loaded;
}

int tps_module_on(tps_module *module, tps_device *device,
                  tps_device_module **out, tps_error *err) {
  if (module->closed)
    return tps_fail(err, TPS_MISUSE, "attempt to use a closed module");
  if (module->unlinked)
    return tps_fail(err, TPS_MISUSE,
                    "the module is relocatable: it can run once it is linked "
                    "(tp.link)");
  tps_loaded *loaded = find_loaded(module, device);
  if (loaded != NULL) {
    *out = loaded->module;
    return 0;
  }
  int code = tps_device_fault(device, err);
  if (code != 0) return code;
  tps_local *local = tps_local_get(module->context, device, err);
  if (local == NULL) return TPS_NO_HOST_MEMORY;
  loaded = calloc(1, sizeof *loaded);
  if (loaded == NULL) return no_memory(err);
  loaded->device = device;
  code = load(module, local, loaded, err);
  if (code != 0) {
    free(loaded);
    return code;
  }
  loaded->next = module->parts->on;
  module->parts->on = loaded;
  *out = loaded->module;
  return 0;
}

static void retire_all(tps_module *module) {
  struct tps_module_parts *parts = module->parts;
  tps_error err;
  while (parts->on != NULL) {
    tps_loaded *loaded = parts->on;
    parts->on = loaded->next;
    tps_module_retire(tps_local_get(module->context, loaded->device, &err),
                      loaded);
  }
}

/* ---- description --------------------------------------------------------- */

/* Leaves what was read in *parsed, for the device that will read it too. */
static int describe_ptx(tps_module *module, const char *ptx, size_t size,
                        tps_ptx_module **parsed, tps_error *err) {
  int code = tps_ptx_parse_shared(ptx, size, parsed, err);
  return code != 0 ? code : tps_ptx_describe(*parsed, &module->desc, err);
}

static int describe_kernel(tps_device *device, tps_device_module *loaded,
                           const char *name, tps_kernel_desc *desc,
                           tps_error *err) {
  tps_device_kernel *handle;
  desc->name = strdup(name);
  desc->plain = strdup(name);
  desc->signature = strdup(name);
  if (desc->name == NULL || desc->plain == NULL || desc->signature == NULL)
    return no_memory(err);
  int code = device->face->kernel_find(device, loaded, name, &handle, err);
  if (code == 0) code = device->face->kernel_params(device, handle, desc, err);
  if (code != 0) return code;
  return tps_signature_from_name(desc) == 0 ? 0 : no_memory(err);
}

/* A binary alone: the device tells names and sizes. */
static int describe_binary(tps_module *module, tps_device *device,
                           tps_device_module *loaded, tps_error *err) {
  tps_image_desc *desc = &module->desc;
  char **names;
  size_t count;
  int code = device->face->module_kernels(device, loaded, &names, &count, err);
  if (code != 0) return code;
  desc->kernels = calloc(count + 1, sizeof *desc->kernels);
  if (desc->kernels == NULL) code = no_memory(err);
  for (size_t i = 0; i < count && code == 0; i++) {
    desc->kernel_count = i + 1;
    code = describe_kernel(device, loaded, names[i], &desc->kernels[i], err);
  }
  free(names);
  return code;
}

/* ---- making and dropping ------------------------------------------------- */

static int fill(tps_module *module, tps_device *device, tps_error *err) {
  const tps_image_source *source = &module->parts->source;
  tps_device_module *loaded = NULL;
  size_t size = 0;
  const char *ptx =
      source->ptx != NULL ? source->ptx(source->data, &size) : NULL;
  tps_ptx_module *parsed = NULL;
  int code = ptx != NULL ? describe_ptx(module, ptx, size, &parsed, err) : 0;
  if (code == 0 && !module->unlinked)
    code = tps_module_on(module, device, &loaded, err);
  else if (code == 0 && ptx != NULL && device->face->module_check != NULL)
    code = device->face->module_check(device, ptx, size, err);
  tps_ptx_free(parsed);
  if (code == 0 && ptx == NULL)
    code = describe_binary(module, device, loaded, err);
  if (code == 0 && source->refine != NULL &&
      source->refine(source->data, &module->desc) != 0)
    code = no_memory(err);
  return code;
}

int tps_module_refine(const tps_module *module, tps_image_desc *desc) {
  const tps_image_source *source = &module->parts->source;
  return source->refine != NULL ? source->refine(source->data, desc) : 0;
}

static void release_source(const tps_image_source *source) {
  if (source->release != NULL) source->release(source->data);
}

int tps_module_new(tps_context *context, tps_device *device,
                   const tps_image_source *source, tps_module **out,
                   tps_error *err) {
  tps_module *module = calloc(1, sizeof *module);
  struct tps_module_parts *parts = calloc(1, sizeof *parts);
  if (module == NULL || parts == NULL) {
    free(module);
    free(parts);
    release_source(source);
    return no_memory(err);
  }
  module->context = context;
  module->refs = 1;
  module->unlinked = source->unlinked;
  module->parts = parts;
  parts->source = *source;
  tps_context_hold(context);
  int code = tps_device_fault(device, err);
  if (code == 0) code = fill(module, device, err);
  if (code != 0) tps_module_unref(module);
  else *out = module;
  return code;
}

void tps_module_close(tps_module *module) {
  if (module->closed) return;
  module->closed = true;
  if (module->parts->lent == 0) retire_all(module);
}

tps_module *tps_module_ref(tps_module *module) {
  module->refs++;
  return module;
}

static void free_extras(struct tps_module_parts *parts) {
  while (parts->extras != NULL) {
    extra_global *extra = parts->extras;
    parts->extras = extra->next;
    free(extra->desc.name);
    free(extra->desc.plain);
    free(extra);
  }
}

void tps_module_unref(tps_module *module) {
  if (module == NULL || --module->refs > 0) return;
  tps_context *context = module->context;
  tps_module_close(module);
  tps_image_desc_free(&module->desc);
  release_source(&module->parts->source);
  free_extras(module->parts);
  tps_ptx_fidelity_free(module->parts->fidelity);
  free(module->parts);
  free(module);
  tps_context_release(context);
}

const char *tps_module_ptx(tps_module *module, size_t *size) {
  const tps_image_source *source = &module->parts->source;
  return source->ptx != NULL ? source->ptx(source->data, size) : NULL;
}

int tps_module_fidelity(tps_module *module, const tps_fidelity **out,
                        tps_error *err) {
  struct tps_module_parts *parts = module->parts;
  size_t size;
  const char *ptx = tps_module_ptx(module, &size);
  tps_ptx_module *parsed;
  if (ptx == NULL)
    return tps_fail(err, TPS_NOT_SUPPORTED,
                    "fidelity is told from PTX, this module is a binary image "
                    "(CUBIN or fatbin)");
  if (parts->fidelity == NULL) {
    int code = tps_ptx_parse(ptx, size, &parsed, err);
    if (code != 0) return code;
    parts->fidelity = tps_ptx_fidelity_of(parsed);
    tps_ptx_free(parsed);
    if (parts->fidelity == NULL) return no_memory(err);
  }
  *out = parts->fidelity;
  return 0;
}

/* ---- loaded bytes -------------------------------------------------------- */

typedef struct image_bytes {
  tps_image_kind kind;
  char *ptx; /* of a fatbin, owned, or NULL */
  size_t size;
  char bytes[]; /* and a NUL, for PTX */
} image_bytes;

static int bytes_image(void *data, tps_device *device, tps_image_kind *kind,
                       const void **bytes, size_t *size, tps_error *err) {
  const image_bytes *image = data;
  (void)err;
  bool inner = device->kind == TPS_SIM && image->ptx != NULL;
  *kind = inner ? TPS_IMAGE_PTX : image->kind;
  *bytes = inner ? image->ptx : image->bytes;
  *size = inner ? strlen(image->ptx) : image->size;
  return 0;
}

static const char *bytes_ptx(void *data, size_t *size) {
  const image_bytes *image = data;
  const char *ptx = image->kind == TPS_IMAGE_PTX ? image->bytes : image->ptx;
  *size = ptx == image->bytes ? image->size : ptx != NULL ? strlen(ptx) : 0;
  return ptx;
}

static void free_bytes(void *data) {
  image_bytes *image = data;
  free(image->ptx);
  free(image);
}

/* A GPU needs no PTX: without it less is known of the kernels. */
static int find_ptx(image_bytes *image, const tps_device *device,
                    tps_error *err) {
  if (image->kind == TPS_IMAGE_PTX || memcmp(image->bytes, "\177ELF", 4) == 0)
    return 0;
  int code =
      tps_fatbin_ptx(image->bytes, image->size, device, &image->ptx, err);
  return device->kind == TPS_SIM ? code : 0;
}

int tps_module_load(tps_context *context, tps_device *device, const void *bytes,
                    size_t size, bool unlinked, tps_module **out,
                    tps_error *err) {
  tps_image_kind kind;
  int code = tps_image_tell(bytes, size, &kind, err);
  if (code != 0) return code;
  if (unlinked && kind != TPS_IMAGE_PTX)
    return tps_fail(err, TPS_NOT_SUPPORTED,
                    "only PTX can be linked, this is a binary image (CUBIN or "
                    "fatbin)");
  image_bytes *image = malloc(sizeof *image + size + 1);
  if (image == NULL) return no_memory(err);
  image->kind = kind;
  image->ptx = NULL;
  image->size = size;
  memcpy(image->bytes, bytes, size);
  image->bytes[size] = '\0';
  code = find_ptx(image, device, err);
  if (code != 0) {
    free_bytes(image);
    return code;
  }
  tps_image_source source = {.data = image,
                             .image = bytes_image,
                             .ptx = bytes_ptx,
                             .release = free_bytes,
                             .unlinked = unlinked};
  return tps_module_new(context, device, &source, out, err);
}

/* ---- variables ----------------------------------------------------------- */

void tps_module_lend(tps_module *module) {
  tps_module_ref(module);
  module->parts->lent++;
}

void tps_module_give_back(tps_module *module) {
  if (--module->parts->lent == 0 && module->closed) retire_all(module);
  tps_module_unref(module);
}

static void give_back(void *owner) { tps_module_give_back(owner); }

/* By symbol, then by name in full, then by one without its namespaces, which several
 * may share: *matches tells how many. */
static const tps_global_desc *find_global(const tps_module *module,
                                          const char *name, size_t *matches) {
  const tps_image_desc *desc = &module->desc;
  const tps_global_desc *found = NULL;
  *matches = 1;
  for (size_t i = 0; i < desc->global_count; i++)
    if (strcmp(desc->globals[i].name, name) == 0) return &desc->globals[i];
  for (size_t i = 0; i < desc->global_count; i++)
    if (strcmp(desc->globals[i].plain, name) == 0) return &desc->globals[i];
  *matches = 0;
  for (size_t i = 0; i < desc->global_count; i++)
    if (tps_same_name(desc->globals[i].plain, name)) {
      found = &desc->globals[i];
      ++*matches;
    }
  for (extra_global *e = module->parts->extras; e != NULL && found == NULL;
       e = e->next)
    if (strcmp(e->desc.name, name) == 0) found = &e->desc;
  return found;
}

/* All of them, or those that share the name. */
static int no_such_global(const tps_module *module, const char *name,
                          bool ambiguous, tps_error *err) {
  const tps_image_desc *desc = &module->desc;
  char shown[SHOWN_NAME];
  tps_shown_name(name, shown);
  if (desc->global_count == 0)
    return tps_fail(err, TPS_NOT_FOUND, "no variable '%s': the module has none",
                    shown);
  const char **names = calloc(desc->global_count, sizeof *names);
  char list[1500] = "";
  size_t count = 0;
  for (size_t i = 0; i < desc->global_count && names != NULL; i++)
    if (!ambiguous || tps_same_name(desc->globals[i].plain, name))
      names[count++] = desc->globals[i].plain;
  if (count > 0) tps_list_nearest(names, count, name, list, sizeof list);
  free(names);
  return tps_fail(err, TPS_NOT_FOUND,
                  ambiguous ? "several variables '%s': ask for one of %s"
                            : "no variable '%s' in the module (it has %s)",
                  shown, list);
}

/* Adds a description for a variable that only the device knows of. */
static int add_extra(tps_module *module, const char *name, uint64_t bytes,
                     const tps_global_desc **out, tps_error *err) {
  extra_global *extra = calloc(1, sizeof *extra);
  if (extra == NULL) return no_memory(err);
  extra->next = module->parts->extras;
  module->parts->extras = extra;
  extra->desc.name = strdup(name);
  extra->desc.plain = strdup(name);
  extra->desc.size = bytes;
  extra->desc.dtype = TPS_OPAQUE;
  *out = &extra->desc;
  return extra->desc.name != NULL && extra->desc.plain != NULL ? 0
                                                               : no_memory(err);
}

int tps_module_global(tps_module *module, tps_device *device, const char *name,
                      tps_memory **out, const tps_global_desc **desc,
                      tps_error *err) {
  tps_device_module *loaded = NULL;
  uint64_t address = 0, bytes = 0;
  int code = tps_device_fault(device, err);
  if (code == 0) code = tps_module_on(module, device, &loaded, err);
  if (code != 0) return code;
  size_t size, matches;
  bool described = tps_module_ptx(module, &size) != NULL;
  *desc = find_global(module, name, &matches);
  if (matches > 1 || (*desc == NULL && described))
    return no_such_global(module, name, matches > 1, err);
  code = device->face->global_find(device, loaded,
                                   *desc != NULL ? (*desc)->name : name,
                                   &address, &bytes, err);
  if (code == TPS_NOT_FOUND) return no_such_global(module, name, false, err);
  if (code != 0) return tps_failed(device, NULL, code, err);
  if (*desc == NULL) code = add_extra(module, name, bytes, desc, err);
  if (code == 0)
    code = tps_memory_borrow(module->context, device, address, bytes, module,
                             give_back, out, err);
  if (code != 0) return code;
  tps_module_lend(module);
  return 0;
}
