/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The description of a kernel: what a launch must know of it. ptx/ fills sizes
 * and access from the compiled text; base/signature.c adds the C++ types.
 */
#ifndef TPS_BASE_KERNEL_H
#define TPS_BASE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

typedef enum tps_access {
  TPS_ACCESS_NONE = 0, /* the kernel never follows the pointer */
  TPS_ACCESS_READ = 1,
  TPS_ACCESS_WRITE = 2,
  TPS_ACCESS_BOTH = 3,
  TPS_ACCESS_UNKNOWN = 7, /* lost track of: counts as both */
  /* Besides, of a use or a touch: by atomic and volatile operations alone, of which
   * no two are a race. */
  TPS_ACCESS_STRONG = 8
} tps_access;

/* Both together. */
static inline uint8_t tps_access_join(uint8_t a, uint8_t b) {
  return (uint8_t)(((a | b) & TPS_ACCESS_UNKNOWN) |
                   (a & b & TPS_ACCESS_STRONG));
}

/* What a kernel takes a parameter's value for, if it is the handle of a texture or
 * of a surface; both at once, or neither, where the PTX doesn't tell. */
enum { TPS_HANDLE_TEXTURE = 1, TPS_HANDLE_SURFACE = 2 };

/* How sure the type is. PTX alone tells .u64, not whether it is a pointer. */
typedef enum tps_certainty {
  TPS_BY_SIZE, /* size known only: a CUBIN's parameter */
  TPS_BY_PTX,  /* the PTX type: dtype holds for floats, width for integers */
  TPS_BY_SIGNATURE /* the C++ type */
} tps_certainty;

typedef struct tps_param {
  char *type;      /* C++ or PTX type as text ("float const*"), owned */
  uint32_t offset; /* in the parameter block */
  uint32_t size;
  uint32_t align;
  uint8_t dtype;     /* tps_dtype; of a pointer, what it points to */
  uint8_t certainty; /* tps_certainty */
  uint8_t access;    /* tps_access, of pointers */
  uint8_t handle;    /* TPS_HANDLE_… */
  bool pointer;      /* known to be one; BY_PTX .u64 has false: may be either */
  bool is_const;     /* pointer to const */
  bool strong;    /* it is followed by atomic and volatile operations alone */
  bool is_struct; /* takes a string of exactly `size` bytes */
} tps_param;

/* A part of a struct that is passed by value, as far as the code tells. */
typedef struct tps_field {
  uint32_t offset, size; /* bytes, from the beginning of the struct */
} tps_field;

typedef struct tps_kernel_desc {
  char *name;      /* symbol in the image, mangled if C++; owned */
  char *plain;     /* "saxpy"; owned; equals name for extern "C" */
  char *signature; /* "scale(float*, int)" or plain when unknown; owned */
  tps_param *params;
  uint32_t param_count;
  uint32_t param_bytes;   /* of the whole block */
  uint32_t max_threads;   /* from .maxntid, 0 when not given */
  uint32_t cluster[3];    /* blocks that its clusters must have, 0: any */
  uint32_t static_shared; /* bytes, without dynamic */
  uint32_t registers;     /* estimate from live ranges (simulated device) */
  uint32_t local_bytes;   /* per thread, one frame */
  char *aliases; /* name expressions that this kernel was asked for by when
                       it was compiled, each ended by '\n'; owned; NULL: none */
} tps_kernel_desc;

/* A __device__ or __constant__ variable of an image. */
typedef struct tps_global_desc {
  char *name;  /* symbol in the image; owned */
  char *plain; /* "ns::coef" or "coef"; owned */
  uint64_t size;
  uint8_t dtype; /* TPS_OPAQUE when PTX says only bytes */
  bool is_const; /* __constant__ */
} tps_global_desc;

/* What an image holds. */
typedef struct tps_image_desc {
  tps_kernel_desc *kernels;
  size_t kernel_count;
  tps_global_desc *globals;
  size_t global_count;
  unsigned version; /* PTX version × 10: 90 for 9.0 */
  unsigned target;  /* 80 for sm_80 */
} tps_image_desc;

void tps_image_desc_free(tps_image_desc *desc);

/* Fills plain, signature and the parameters' C++ types of *kernel from its own
 * mangled name; leaves BY_PTX types where the name is not mangled. Never fails
 * but for memory: a type it can't read is opaque. Returns 0 or NO_HOST_MEMORY. */
int tps_signature_from_name(tps_kernel_desc *kernel);

/* The same from the mangled text of a function type ("FvifPKfPfE": what follows
 * the name of `&sig<decltype(saxpy)>`), for extern "C" kernels. */
int tps_signature_from_type(tps_kernel_desc *kernel, const char *type);

/* Likewise the element type of a variable from the mangled text of its own type
 * ("A3_f"); what is no type of a buffer's elements leaves it as it is. */
int tps_global_from_type(tps_global_desc *global, const char *type);

/* True when `name` is the kernel's symbol, plain name, whole signature, that up
 * to the parameters ("scale<float, 4>") or one of its aliases; blanks do not
 * count but in the first two. Several kernels may share a plain name. */
bool tps_kernel_has_name(const tps_kernel_desc *kernel, const char *name);

/* "ns::coef" for a mangled variable or function name without parameters, a copy
 * of the name itself where it is not mangled. NULL when out of memory. */
char *tps_plain_name(const char *mangled);

#endif
