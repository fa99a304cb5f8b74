/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Text as the writers need it: names are the user's and may hold anything. */
#include <inttypes.h>
#include <stdio.h>

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

int tps_write_plain(FILE *out, const char *text, int room) {
  const unsigned char *s = (const unsigned char *)text;
  int used = 0;
  while (*s != '\0' && used < room) {
    uint32_t c = 0;
    unsigned size = decode(s, &c);
    bool fine = size > 0 && c >= 0x20 && (c < 0x7f || c >= 0xa0);
    if (fine) fwrite(s, 1, size, out);
    else fputc('?', out);
    s += size > 0 ? size : 1;
    used++;
  }
  return used;
}
