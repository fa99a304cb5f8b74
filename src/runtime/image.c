/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Telling what an image is by its bytes. A driver is given no size for a binary
 * image and believes the lengths inside: a truncated file must be found here.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "runtime/parts.h"

#define FATBIN_MAGIC 0xBA55ED50u
#define FATBIN_WRAPPER_MAGIC 0x466243B1u
#define ELF_CUDA 190u
#define SECTION_NOBITS 8u

static uint64_t get(const unsigned char *bytes, size_t at, unsigned width) {
  uint64_t value = 0;
  for (unsigned i = 0; i < width; i++)
    value |= (uint64_t)bytes[at + i] << (8 * i);
  return value;
}

static int bad(tps_error *err, const char *what) {
  return tps_fail(err, TPS_INVALID_IMAGE, "invalid image: %s", what);
}

static bool inside(uint64_t at, uint64_t bytes, size_t size) {
  return at <= size && bytes <= size - at;
}

/* ---- CUBIN --------------------------------------------------------------- */

static int check_sections(const unsigned char *b, size_t size, tps_error *err) {
  uint64_t table = get(b, 40, 8), width = get(b, 58, 2), count = get(b, 60, 2);
  if (width < 64 || !inside(table, width * count, size))
    return bad(err, "a CUBIN that is truncated");
  for (uint64_t i = 0; i < count; i++) {
    const unsigned char *section = b + table + i * width;
    if (get(section, 4, 4) == SECTION_NOBITS) continue;
    if (!inside(get(section, 24, 8), get(section, 32, 8), size))
      return bad(err, "a CUBIN that is truncated");
  }
  return 0;
}

static int check_elf(const unsigned char *b, size_t size, tps_error *err) {
  if (size < 64) return bad(err, "a CUBIN that is truncated");
  if (b[4] != 2 || b[5] != 1 || get(b, 18, 2) != ELF_CUDA)
    return bad(err, "an ELF file, but no CUBIN (it is for another machine)");
  return check_sections(b, size, err);
}

/* ---- fatbin -------------------------------------------------------------- */

static int check_fatbin(const unsigned char *b, size_t size, tps_error *err) {
  if (size < 16) return bad(err, "a fatbin that is truncated");
  uint64_t header = get(b, 6, 2), body = get(b, 8, 8);
  if (header < 16 || !inside(header, body, size))
    return bad(err, "a fatbin that is truncated");
  return 0;
}

/* ---- text ---------------------------------------------------------------- */

/* Past blanks and comments. */
static size_t skip_blank(const char *text, size_t size, size_t at) {
  while (at < size) {
    if (isspace((unsigned char)text[at])) {
      at++;
    } else if (at + 1 < size && text[at] == '/' && text[at + 1] == '/') {
      const char *end = memchr(text + at, '\n', size - at);
      at = end != NULL ? (size_t)(end - text) : size;
    } else if (at + 1 < size && text[at] == '/' && text[at + 1] == '*') {
      at += 2;
      while (at + 1 < size && (text[at] != '*' || text[at + 1] != '/')) at++;
      at = at + 1 < size ? at + 2 : size;
    } else {
      break;
    }
  }
  return at;
}

static bool like_ptx(const char *text, size_t size) {
  size_t at = skip_blank(text, size, 0);
  return at < size && text[at] == '.';
}

/* What the bytes begin with, for the message. */
static int unknown(const unsigned char *b, size_t size, tps_error *err) {
  char shown[64];
  size_t n = size < 16 ? size : 16, used = 0;
  bool text = true;
  for (size_t i = 0; i < n; i++)
    text = text && (isprint(b[i]) || isspace(b[i]));
  for (size_t i = 0; i < n; i++) {
    const char *format = text ? "%c" : i == 0 ? "%02x" : " %02x";
    used += (size_t)snprintf(shown + used, sizeof shown - used, format,
                             text && isspace(b[i]) ? ' ' : b[i]);
  }
  return tps_fail(err, TPS_INVALID_IMAGE,
                  "invalid image: neither PTX nor CUBIN nor fatbin, it begins "
                  "with %s%s%s",
                  text ? "'" : "", shown, text ? "'" : "");
}

int tps_image_tell(const void *bytes, size_t size, tps_image_kind *kind,
                   tps_error *err) {
  const unsigned char *b = bytes;
  if (size == 0) return bad(err, "it is empty");
  *kind = TPS_IMAGE_BINARY;
  if (size >= 4 && memcmp(b, "\177ELF", 4) == 0) return check_elf(b, size, err);
  if (size >= 4 && get(b, 0, 4) == FATBIN_MAGIC)
    return check_fatbin(b, size, err);
  if (size >= 4 && get(b, 0, 4) == FATBIN_WRAPPER_MAGIC)
    return bad(err, "the wrapper of a fatbin, which only points to it");
  *kind = TPS_IMAGE_PTX;
  return like_ptx(bytes, size) ? 0 : unknown(b, size, err);
}
