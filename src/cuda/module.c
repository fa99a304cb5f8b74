/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Modules of the CUDA device: PTX, CUBINs and fat binaries, loaded as cudart
 * libraries. Those load lazily, also from bad images, so that loading here asks
 * for the module behind the library at once: that compiles PTX, checks binaries
 * and says what is wrong with them. Bringing code to the device waits for what
 * runs there (measured: whether at the load, at the first question about a
 * kernel or at the first launch); here the load does, so that no launch ever
 * does.
 */
#include "cuda/cuda.h"

#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- images --------------------------------------------------------------- */

#define FAT_MAGIC 0xBA55ED50u

typedef struct fat_header {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes; /* of what follows the header */
} fat_header;

/* Bytes that an ELF file spans by its own headers; 0 if they make no sense
 * within `size`. */
static uint64_t elf_extent(const unsigned char *image, size_t size) {
  Elf64_Ehdr head;
  Elf64_Shdr section;
  if (size < sizeof head) return 0;
  memcpy(&head, image, sizeof head);
  uint64_t end = head.e_shoff + (uint64_t)head.e_shnum * sizeof section;
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shoff > size ||
      (head.e_shnum != 0 && head.e_shentsize != sizeof section) || end > size)
    return 0;
  for (unsigned i = 0; i < head.e_shnum; i++) {
    memcpy(&section, image + head.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
    if (section.sh_offset > size || section.sh_size > size - section.sh_offset)
      return 0;
    if (section.sh_offset + section.sh_size > end)
      end = section.sh_offset + section.sh_size;
  }
  return end;
}

/* The driver is given no size and believes the image's headers: one that is cut
 * off would make it read past the end. */
static int check_binary(const void *image, size_t size, tps_error *err) {
  fat_header fat;
  if (size >= SELFMAG && memcmp(image, ELFMAG, SELFMAG) == 0) {
    if (elf_extent(image, size) != 0) return 0;
    return tps_fail(err, TPS_INVALID_IMAGE,
                    "the CUBIN of %zu bytes is damaged or cut off", size);
  }
  if (size >= sizeof fat) {
    memcpy(&fat, image, sizeof fat);
    if (fat.magic == FAT_MAGIC) {
      if (fat.header_bytes <= size && fat.bytes <= size - fat.header_bytes)
        return 0;
      return tps_fail(err, TPS_INVALID_IMAGE,
                      "the fat binary of %zu bytes is damaged or cut off",
                      size);
    }
  }
  return tps_fail(err, TPS_INVALID_IMAGE,
                  "the image of %zu bytes is neither a CUBIN nor a fat binary",
                  size);
}

/* --- loading -------------------------------------------------------------- */

static void trim(char *text) {
  size_t n = strlen(text);
  while (n > 0 && isspace((unsigned char)text[n - 1])) text[--n] = '\0';
}

/* Compiles the PTX once more, through the driver's older call, for the sake of
 * its log: a library's log would be written at some later load, when the buffer
 * is gone. */
static int fail_with_log(const tps_cuda_driver *driver, int number,
                         const char *ptx, tps_error *err) {
  char log[1536] = "";
  CUmodule module = NULL;
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
  if (driver->module_load(&module, ptx, 2, options, values) == CUDA_SUCCESS)
    driver->module_unload(module);
  trim(log);
  tps_cuda_fail(err, number, "loading PTX");
  if (log[0] == '\0' || err == NULL) return number;
  size_t used = strlen(err->message);
  snprintf(err->message + used, sizeof err->message - used, "\n%s", log);
  return number;
}

/* The driver brings a kernel's code to the device when it is first asked for, and
 * then its launch waits for whatever runs there (measured: behind a kernel that
 * waited for the host it never began). So each is asked for now. */
static int bring_kernels(cudaLibrary_t library, tps_error *err) {
  unsigned count = 0;
  struct cudaFuncAttributes ignored;
  cudaError_t e = cudaLibraryGetKernelCount(&count, library);
  cudaKernel_t *kernels = calloc(count + 1, sizeof *kernels);
  if (kernels == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for %u kernels", count);
  if (e == cudaSuccess && count > 0)
    e = cudaLibraryEnumerateKernels(kernels, count, library);
  for (unsigned i = 0; e == cudaSuccess && i < count; i++)
    e = cudaFuncGetAttributes(&ignored, (const void *)kernels[i]);
  free(kernels);
  return e == cudaSuccess ? 0 : tps_cuda_fail(err, e, "loading a kernel");
}

/* `code` is the image as the driver wants it; PTX ends with a NUL. */
static int load(tps_cuda_device *self, tps_image_kind kind, const void *code,
                const char *probe, cudaLibrary_t *out, tps_error *err) {
  const tps_cuda_driver *driver = &self->driver;
  cudaLibrary_t library = NULL;
  CUmodule module = NULL;
  cudaKernel_t kernel = NULL;
  int number =
      (int)cudaLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0);
  if (number == 0) number = (int)driver->library_module(&module, library);
  if (number != 0) {
    number = kind == TPS_IMAGE_PTX
                 ? fail_with_log(driver, number, code, err)
                 : tps_cuda_fail(err, number, "loading a binary image");
  } else if (probe != NULL) {
    number = (int)cudaLibraryGetKernel(&kernel, library, probe);
    if (number != 0) tps_cuda_fail(err, number, "looking up '%s'", probe);
  }
  if (number == 0) number = bring_kernels(library, err);
  if (number == 0) *out = library;
  else if (library != NULL) cudaLibraryUnload(library);
  cudaGetLastError();
  return number;
}

int tps_cuda_module_load(tps_device *device, tps_image_kind kind,
                         const void *image, size_t size, const char *probe,
                         tps_device_module **out, tps_error *err) {
  cudaLibrary_t library = NULL;
  char *text = NULL;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  if (kind == TPS_IMAGE_PTX) {
    text = malloc(size + 1);
    if (text == NULL)
      return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for %zu bytes of PTX",
                      size);
    memcpy(text, image, size);
    text[size] = '\0';
    image = text;
  } else {
    TPS_TRY(done, check_binary(image, size, err));
  }
  TPS_TRY(done, load(tps_cuda(device), kind, image, probe, &library, err));
  *out = (tps_device_module *)library;
done:
  free(text);
  return code;
}

/* Waits for running kernels of the module, as CUDA does. */
void tps_cuda_module_unload(tps_device *device, tps_device_module *module) {
  if (tps_cuda_use(device, NULL) == 0) cudaLibraryUnload((cudaLibrary_t)module);
  cudaGetLastError();
}

/* --- what is in a module -------------------------------------------------- */

/* One block: the array, then the strings. NULL when out of memory. */
static char **pack_names(const char *const *names, size_t count) {
  size_t bytes = (count + 1) * sizeof(char *);
  for (size_t i = 0; i < count; i++) bytes += strlen(names[i]) + 1;
  char **block = malloc(bytes);
  if (block == NULL) return NULL;
  char *to = (char *)(block + count + 1);
  for (size_t i = 0; i < count; i++) {
    size_t n = strlen(names[i]) + 1;
    block[i] = memcpy(to, names[i], n);
    to += n;
  }
  block[count] = NULL;
  return block;
}

/* Replaces each kernel of the array by its name; both are pointers. */
static int name_kernels(const tps_cuda_driver *driver, cudaKernel_t *kernels,
                        const char **names, size_t count, tps_error *err) {
  for (size_t i = 0; i < count; i++) {
    int number = (int)driver->kernel_name(&names[i], (CUkernel)kernels[i]);
    if (number != 0) return tps_cuda_fail(err, number, "cuKernelGetName");
  }
  return 0;
}

int tps_cuda_module_kernels(tps_device *device, tps_device_module *module,
                            char ***names, size_t *count, tps_error *err) {
  cudaLibrary_t library = (cudaLibrary_t)module;
  cudaKernel_t *kernels = NULL;
  const char **found = NULL;
  unsigned n = 0;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaLibraryGetKernelCount(&n, library);
  if (e != cudaSuccess)
    return tps_cuda_fail(err, e, "cudaLibraryGetKernelCount");
  kernels = calloc(n + 1, sizeof *kernels);
  found = calloc(n + 1, sizeof *found);
  if (kernels != NULL && found != NULL && n > 0)
    e = cudaLibraryEnumerateKernels(kernels, n, library);
  if (e != cudaSuccess) {
    code = tps_cuda_fail(err, e, "cudaLibraryEnumerateKernels");
  } else if (kernels != NULL && found != NULL) {
    code = name_kernels(&tps_cuda(device)->driver, kernels, found, n, err);
    *names = code == 0 ? pack_names(found, n) : NULL;
    *count = n;
  }
  if (code == 0 && (kernels == NULL || found == NULL || *names == NULL))
    code = tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for %u names", n);
  free(kernels);
  free(found);
  return code;
}

int tps_cuda_global_find(tps_device *device, tps_device_module *module,
                         const char *name, uint64_t *address, uint64_t *bytes,
                         tps_error *err) {
  void *memory = NULL;
  size_t size = 0;
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e =
      cudaLibraryGetGlobal(&memory, &size, (cudaLibrary_t)module, name);
  if (e != cudaSuccess)
    return tps_cuda_fail(err, e, "looking up the variable '%s'", name);
  *address = (uint64_t)(uintptr_t)memory;
  *bytes = size;
  return 0;
}
