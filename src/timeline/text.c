/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Text as the writers need it: names are the user's and may hold anything. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "timeline/parts.h"

/* How many bytes the character at `s` has, *code what it is; 0: no UTF-8. */
static unsigned decode(const unsigned char *s, uint32_t *code) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned size = s[0] < 0x80                   ? 1
                  : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
                  : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
                  : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                                : 0;
  if (size < 2) {
    *code = s[0];
    return size;
  }
  uint32_t c = s[0] & (0x7fu >> size);
  for (unsigned i = 1; i < size; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
    c = c << 6 | (s[i] & 0x3fu);
  }
  if (c < least[size] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
  *code = c;
  return size;
}

static bool is_plain(uint32_t c) {
  return c >= 0x20 && c != '"' && c != '\\' && c != '<' && c != '>' &&
         c != '&' && c != 0x7f && c != 0x2028 && c != 0x2029;
}

void tps_write_json(FILE *out, const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  fputc('"', out);
  while (*s != '\0') {
    uint32_t c = 0;
    unsigned size = decode(s, &c);
    if (size == 0) {
      fputs("\\ufffd", out);
      size = 1;
    } else if (c == '"' || c == '\\') {
      fprintf(out, "\\%c", (char)c);
    } else if (is_plain(c)) {
      fwrite(s, 1, size, out);
    } else {
      fprintf(out, "\\u%04" PRIx32, c);
    }
    s += size;
  }
  fputc('"', out);
}

const char *tps_write_device(uint8_t kind, int32_t device, char out[32]) {
  snprintf(out, 32, "%s:%" PRId32, kind == TPS_CUDA ? "cuda" : "sim", device);
  return out;
}

const char *tps_write_shape(const uint32_t n[3], char out[40]) {
  if (n[2] > 1)
    snprintf(out, 40, "%" PRIu32 "x%" PRIu32 "x%" PRIu32, n[0], n[1], n[2]);
  else if (n[1] > 1) snprintf(out, 40, "%" PRIu32 "x%" PRIu32, n[0], n[1]);
  else snprintf(out, 40, "%" PRIu32, n[0]);
  return out;
}

const char *tps_write_bytes(uint64_t bytes, char out[32]) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
  double value = (double)bytes;
  unsigned unit = 0;
  while (value >= 999.95 && unit < 4) {
    value /= 1000;
    unit++;
  }
  snprintf(out, 32, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return out;
}

const char *tps_write_lasts(double ns, char out[32]) {
  static const char *const units[] = {"ns", "us", "ms", "s"};
  unsigned unit = 0;
  if (ns <= 0) return strcpy(out, "0");
  while (ns >= 999.5 && unit < 3) {
    ns /= 1000;
    unit++;
  }
  int digits = ns >= 99.95 ? 0 : ns >= 9.995 ? 1 : 2;
  snprintf(out, 32, "%.*f %s", unit > 0 ? digits : 0, ns, units[unit]);
  return out;
}

const char *tps_write_where(const char *source, int32_t line, char *out,
                            size_t size) {
  if (source[0] == '\0' || line <= 0) out[0] = '\0';
  else snprintf(out, size, "%s:%" PRId32, source, line);
  return out;
}

const char *tps_write_name(const tps_timeline_item *item, char *out,
                           size_t size) {
  const char *kind = tps_timeline_kind(item);
  if (item->kind == TPS_OP_LAUNCH && item->kernel != NULL) return item->kernel;
  if (item->kind != TPS_OP_COPY) return kind;
  snprintf(out, size, "%s %s", kind, tps_timeline_route(item));
  return out;
}

/* Characters, in order, that take two columns of a terminal, or none. */
typedef struct range {
  uint32_t first, last;
} range;

static const range wide[] = {
    {0x1100, 0x115f},   {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
    {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
    {0x1f900, 0x1faff}, {0x20000, 0x3fffd}};
static const range joined[] = {{0x300, 0x36f},   {0x1ab0, 0x1aff},
                               {0x1dc0, 0x1dff}, {0x20d0, 0x20ff},
                               {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
/* That it would obey: controls, and what turns the direction of a line. */
static const range obeyed[] = {{0, 0x1f},        {0x7f, 0x9f},
                               {0x200b, 0x200f}, {0x2028, 0x202e},
                               {0x2060, 0x206f}, {0xfeff, 0xfeff}};

#define IS_IN(c, ranges) is_in(c, ranges, sizeof(ranges) / sizeof *(ranges))

static bool is_in(uint32_t c, const range *ranges, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (c <= ranges[i].last) return c >= ranges[i].first;
  return false;
}

static int columns_of(uint32_t c) {
  if (c < 0x300) return 1;
  return IS_IN(c, joined) ? 0 : IS_IN(c, wide) ? 2 : 1;
}

/* NULL: only counts. *all: whether there was room for all. */
static int write_plain(FILE *out, const char *text, int room, bool *all) {
  const unsigned char *s = (const unsigned char *)text;
  int used = 0;
  *all = true;
  while (*s != '\0') {
    uint32_t c = 0;
    unsigned size = decode(s, &c);
    bool fine = size > 0 && !IS_IN(c, obeyed);
    int columns = fine ? columns_of(c) : 1;
    *all = used + columns <= room;
    if (!*all) break;
    if (fine && out != NULL) fwrite(s, 1, size, out);
    else if (out != NULL) fputc('?', out);
    s += size > 0 ? size : 1;
    used += columns;
  }
  return used;
}

int tps_write_plain(FILE *out, const char *text, int room) {
  bool all;
  return write_plain(out, text, room, &all);
}

int tps_write_cut(FILE *out, const char *text, int room) {
  bool all;
  write_plain(NULL, text, room, &all);
  if (all || room < 4) return write_plain(out, text, room, &all);
  int used = write_plain(out, text, room - 2, &all);
  fputs("..", out);
  return used + 2;
}
