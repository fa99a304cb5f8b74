/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What kernels print: vprintf with C's conversions, and the line of a failed
 * assertion. Arguments lie in a packed buffer, each aligned to its size: 4
 * bytes, or 8 for long integers, doubles, pointers. Strings are read as a
 * kernel reads: outside its memory that is a fault, and nothing is printed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/engine_core.h"

typedef struct text {
  char *bytes;
  size_t size, capacity;
  bool failed;
} text;

static void add(text *t, const char *bytes, size_t size) {
  if (t->failed || size == 0) return;
  if (t->size + size > t->capacity) {
    size_t capacity = (t->size + size) * 2 + 64;
    char *p = realloc(t->bytes, capacity);
    if (!p) {
      t->failed = true;
      return;
    }
    t->bytes = p;
    t->capacity = capacity;
  }
  memcpy(t->bytes + t->size, bytes, size);
  t->size += size;
}

static void flush_text(engine *e, text *t) {
  const tps_sim_launch_config *c = &e->launch->config;
  if (t->size && c->print) c->print(c->print_context, t->bytes, t->size);
  free(t->bytes);
}

/* Where the arguments of one call are read. */
typedef struct reader {
  engine *e;
  unsigned lane;
  uint64_t at;
  int count;   /* read so far */
  bool failed; /* there was nothing to read at `bad`, the first such place */
  uint64_t bad;
} reader;

static int read_byte(reader *r, uint64_t address) {
  int byte = tps_sim_peek(r->e, r->lane, address);
  if (byte >= 0) return byte;
  if (!r->failed) r->bad = address;
  r->failed = true;
  return 0;
}

static uint64_t argument(reader *r, unsigned size) {
  r->at = (r->at + size - 1) & ~(uint64_t)(size - 1);
  uint64_t value = 0;
  for (unsigned k = 0; k < size; k++)
    value |= (uint64_t)read_byte(r, r->at + k) << (8 * k);
  r->at += size;
  r->count++;
  return value;
}

static void add_bytes(text *t, reader *r, uint64_t address, int precision) {
  for (int k = 0; precision < 0 || k < precision; k++) {
    int c = read_byte(r, address + (uint64_t)k);
    if (c == 0) return;
    char byte = (char)c;
    add(t, &byte, 1);
  }
}

static void add_string(text *t, reader *r, uint64_t address, int precision) {
  if (address == 0) add(t, "(null)", 6);
  else add_bytes(t, r, address, precision);
}

/* A conversion: flags, width, precision, length, letter. */
typedef struct conversion {
  char flags[8];
  int width, precision; /* -1: none */
  int longs, shorts;
  char letter;
} conversion;

static const char *number(const char *p, reader *r, int *value) {
  if (*p == '*') {
    *value = (int)(int32_t)argument(r, 4);
    return p + 1;
  }
  int n = 0;
  while (*p >= '0' && *p <= '9' && n < 100000) n = n * 10 + (*p++ - '0');
  *value = n;
  return p;
}

static const char *parse(const char *p, reader *r, conversion *c) {
  size_t flags = 0;
  memset(c, 0, sizeof *c);
  c->width = c->precision = -1;
  while (*p && strchr("-+ #0", *p)) {
    if (flags < 5 && !strchr(c->flags, *p)) c->flags[flags++] = *p;
    p++;
  }
  if (*p == '*' || (*p >= '1' && *p <= '9')) p = number(p, r, &c->width);
  if (c->width < -1) {
    if (!strchr(c->flags, '-')) c->flags[flags++] = '-';
    c->width = -c->width;
  }
  if (*p == '.') p = number(p + 1, r, &c->precision);
  if (c->precision < -1) c->precision = -1;
  for (; *p && strchr("hlLqjzt", *p); p++) {
    if (*p == 'h') c->shorts++;
    else c->longs++;
  }
  c->letter = *p;
  return *p ? p + 1 : p;
}

/* printf's own work with the conversion put together again. */
static void format_one(text *t, const conversion *c, const char *length, ...) {
  char format[64], small[512];
  int n = snprintf(format, sizeof format, "%%%s", c->flags);
  if (c->width >= 0)
    n += snprintf(format + n, sizeof format - (size_t)n, "%d", c->width);
  if (c->precision >= 0)
    n += snprintf(format + n, sizeof format - (size_t)n, ".%d", c->precision);
  snprintf(format + n, sizeof format - (size_t)n, "%s%c", length, c->letter);
  va_list args;
  va_start(args, length);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  int size = vsnprintf(small, sizeof small, format, args);
  va_end(args);
  if (size < (int)sizeof small) {
    if (size > 0) add(t, small, (size_t)size);
    return;
  }
  char *big = malloc((size_t)size + 1);
  if (!big) return;
  va_start(args, length);
  vsnprintf(big, (size_t)size + 1, format, args);
  va_end(args);
#pragma GCC diagnostic pop
  add(t, big, (size_t)size);
  free(big);
}

static void add_integer(text *t, reader *r, const conversion *c) {
  bool sign = c->letter == 'd' || c->letter == 'i';
  if (c->longs) {
    uint64_t v = argument(r, 8);
    format_one(t, c, "ll", (long long)v);
    return;
  }
  uint32_t v = (uint32_t)argument(r, 4);
  if (c->shorts == 1) v = sign ? (uint32_t)(int16_t)v : (uint16_t)v;
  if (c->shorts > 1) v = sign ? (uint32_t)(int8_t)v : (uint8_t)v;
  format_one(t, c, "", (int)v);
}

static void add_padded_string(text *t, reader *r, const conversion *c) {
  text s = {0};
  add_string(&s, r, argument(r, 8), c->precision);
  size_t width = c->width > 0 ? (size_t)c->width : 0;
  bool left = strchr(c->flags, '-') != NULL;
  for (size_t k = s.size; !left && k < width; k++) add(t, " ", 1);
  if (s.size) add(t, s.bytes, s.size);
  for (size_t k = s.size; left && k < width; k++) add(t, " ", 1);
  free(s.bytes);
}

/* `from` to `to` is how the conversion is written. */
static void add_conversion(text *t, reader *r, const conversion *c,
                           const char *from, const char *to) {
  switch (c->letter) {
  case 'd':
  case 'i':
  case 'u':
  case 'x':
  case 'X':
  case 'o': add_integer(t, r, c); break;
  case 'c': format_one(t, c, "", (int)argument(r, 4)); break;
  case 'f':
  case 'F':
  case 'e':
  case 'E':
  case 'g':
  case 'G':
  case 'a':
  case 'A': {
    uint64_t bits = argument(r, 8);
    double v;
    memcpy(&v, &bits, 8);
    format_one(t, c, "", v);
    break;
  }
  case 'p': format_one(t, c, "", (void *)(uintptr_t)argument(r, 8)); break;
  case 's': add_padded_string(t, r, c); break;
  case '%': add(t, "%", 1); break;
  default: add(t, from, (size_t)(to - from)); break; /* as a GPU does */
  }
}

/* The format string, with a NUL; empty when out of memory. */
static text read_format(reader *r, uint64_t address) {
  text f = {0};
  add_bytes(&f, r, address, -1);
  add(&f, "", 1);
  return f;
}

void tps_sim_vprintf(engine *e, const insn *i, unsigned lane, uint64_t format,
                     uint64_t arguments, uint32_t *result) {
  reader r = {.e = e, .lane = lane, .at = arguments};
  text f = read_format(&r, format), out = {0};
  const char *p = f.bytes;
  while (!r.failed && p && *p) {
    size_t plain = strcspn(p, "%");
    add(&out, p, plain);
    p += plain;
    if (!*p) break;
    conversion c;
    const char *from = p;
    p = parse(p + 1, &r, &c);
    add_conversion(&out, &r, &c, from, p);
  }
  free(f.bytes);
  if (r.failed) {
    free(out.bytes);
    tps_sim_bad_read(e, i, lane, r.bad);
  }
  flush_text(e, &out);
  *result = (uint32_t)r.count;
}

static void add_format(text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_format(text *t, const char *format, ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n > 0)
    add(t, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* The message, file and function of a lane, as the compiler passed them. Returns
 * where what follows the place begins. */
static size_t assert_line(engine *e, unsigned lane, text *t, uint64_t message,
                          uint64_t file, uint32_t line, uint64_t function) {
  reader r = {.e = e, .lane = lane};
  const uint32_t *tid = (const uint32_t *)(e->base[IN_WARP] + IN_WARP);
  const uint32_t *block = e->block->ctaid;
  add_string(t, &r, file, -1);
  add_format(t, ":%u: ", line);
  size_t after_place = t->size;
  add_string(t, &r, function, -1);
  add_format(t, ": block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `", block[0],
             block[1], block[2], tid[lane], tid[LANES + lane],
             tid[2 * LANES + lane]);
  add_string(t, &r, message, -1);
  add(t, "` failed.", 9);
  return after_place;
}

_Noreturn void tps_sim_assert_failed(engine *e, const insn *i, uint32_t mask,
                                     const uint64_t *const arguments[4],
                                     const uint32_t *line) {
  char first[1500] = "";
  unsigned first_lane = (unsigned)__builtin_ctz(mask);
  for (uint32_t m = mask; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    text t = {0};
    size_t start = assert_line(e, l, &t, arguments[0][l], arguments[1][l],
                               line[l], arguments[3][l]);
    if (l == first_lane)
      snprintf(first, sizeof first, "%.*s", (int)(t.size - start),
               t.bytes + start);
    add(&t, "\n", 1);
    flush_text(e, &t);
  }
  tps_sim_fault(e, i, (int)first_lane, TPS_ASSERT, "%s", first);
}
