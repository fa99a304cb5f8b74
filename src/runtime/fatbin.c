/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * PTX out of a fatbin: a header, then entries, each for one architecture, with PTX
 * or machine code, plain or compressed (what nvcc 13 writes was looked at). LZ4 is
 * undone here, Zstandard by its library, which is opened when it is needed. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "runtime/parts.h"

#define KIND_PTX 1u
#define FLAG_LZ4 0x2000u
#define FLAG_ZSTD 0x8000u
#define LARGEST ((uint64_t)256 << 20) /* of what an entry becomes */

typedef struct entry {
  const unsigned char *data;
  uint64_t size; /* compressed, if it is */
  uint64_t whole;
  uint64_t flags;
  uint32_t kind, arch; /* 80 */
} entry;

static uint64_t get(const unsigned char *p, unsigned width) {
  uint64_t value = 0;
  for (unsigned i = 0; i < width; i++) value |= (uint64_t)p[i] << (8 * i);
  return value;
}

/* The entry at *at, which then is behind it; false: there are no more, or what is
 * there makes no sense. */
static bool read_entry(const unsigned char *b, size_t size, size_t *at,
                       entry *e) {
  if (size < *at || size - *at < 64) return false;
  const unsigned char *p = b + *at;
  uint64_t header = get(p + 4, 4), body = get(p + 8, 8);
  if (header < 64 || header > size - *at || body > size - *at - header)
    return false;
  *e = (entry){.data = p + header,
               .size = body,
               .whole = get(p + 56, 8),
               .flags = get(p + 40, 8),
               .kind = (uint32_t)get(p, 2),
               .arch = (uint32_t)get(p + 28, 4)};
  if ((e->flags & (FLAG_LZ4 | FLAG_ZSTD)) != 0) {
    uint64_t compressed = get(p + 16, 4);
    if (compressed < body) e->size = compressed; /* without what fills up */
  }
  *at += header + body;
  return true;
}

/* The PTX for the highest architecture that the device has. */
static bool choose(const unsigned char *b, size_t size, uint32_t most,
                   entry *out) {
  size_t at = (size_t)get(b + 6, 2);
  bool found = false;
  entry e = {0};
  while (read_entry(b, size, &at, &e))
    if (e.kind == KIND_PTX && e.arch <= most &&
        (!found || e.arch > out->arch)) {
      *out = e;
      found = true;
    }
  return found;
}

/* ---- decompression ------------------------------------------------------- */

/* A length of LZ4's: 15, and then bytes up to one that is not 255. */
static bool add_length(const unsigned char **p, const unsigned char *end,
                       size_t *n) {
  unsigned char byte = 255;
  if (*n != 15) return true;
  while (byte == 255) {
    if (*p == end) return false;
    byte = *(*p)++;
    *n += byte;
  }
  return true;
}

/* One block; the size that came out, 0 when it is damaged. */
static size_t undo_lz4(const unsigned char *p, size_t size, char *to,
                       size_t room) {
  const unsigned char *end = p + size;
  size_t n = 0;
  while (p < end) {
    unsigned token = *p++;
    size_t literals = token >> 4, length = token & 15;
    if (!add_length(&p, end, &literals) || literals > (size_t)(end - p) ||
        literals > room - n)
      return 0;
    memcpy(to + n, p, literals);
    n += literals;
    p += literals;
    if (p == end) return n; /* the last has no match */
    if (end - p < 2) return 0;
    size_t back = (size_t)get(p, 2);
    p += 2;
    if (!add_length(&p, end, &length) || back == 0 || back > n ||
        length + 4 > room - n)
      return 0;
    for (length += 4; length > 0; length--, n++) to[n] = to[n - back];
  }
  return n;
}

/* The size, 0 when it is damaged; *missing: there is no library. */
static size_t undo_zstd(const unsigned char *p, size_t size, char *to,
                        size_t room, bool *missing) {
  size_t (*decompress)(void *, size_t, const void *, size_t) = NULL;
  void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  size_t n = 0;
  *missing = library == NULL ||
             !tps_library_bind(library, "ZSTD_decompress", &decompress);
  if (!*missing) {
    n = decompress(to, room, p, size);
    if (n > room) n = 0; /* an error's number */
  }
  if (library != NULL) dlclose(library);
  return n;
}

static int damaged(tps_error *err) {
  return tps_fail(err, TPS_INVALID_IMAGE,
                  "invalid image: the PTX in the fatbin is damaged");
}

static int unpack(const entry *e, char *to, size_t room, tps_error *err) {
  bool missing = false;
  size_t n = room;
  if (e->flags & FLAG_ZSTD) n = undo_zstd(e->data, e->size, to, room, &missing);
  else if (e->flags & FLAG_LZ4) n = undo_lz4(e->data, e->size, to, room);
  else memcpy(to, e->data, room);
  if (missing)
    return tps_fail(err, TPS_NOT_SUPPORTED,
                    "the PTX in the fatbin is compressed with Zstandard, and "
                    "libzstd.so.1 is not installed (nvcc --compress-mode=speed "
                    "does without)");
  if (n != room) return damaged(err);
  to[n] = '\0';
  return 0;
}

int tps_fatbin_ptx(const void *bytes, size_t size, const tps_device *device,
                   char **ptx, tps_error *err) {
  entry e = {0};
  uint32_t most = (uint32_t)(device->properties.capability_major * 10 +
                             device->properties.capability_minor);
  *ptx = NULL;
  if (!choose(bytes, size, most, &e)) return 0;
  bool packed = (e.flags & (FLAG_LZ4 | FLAG_ZSTD)) != 0;
  uint64_t room = packed ? e.whole : e.size;
  if (room == 0 || room > LARGEST) return damaged(err);
  char *text = malloc(room + 1);
  if (text == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  int code = unpack(&e, text, room, err);
  if (code == 0) *ptx = text;
  else free(text);
  return code;
}
