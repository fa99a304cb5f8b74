/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Braces, flat or nested, hold numbers, strings of bytes, and addresses, which
 * become relocations. Values not given are zero.
 */
#include "ptx/initialiser.h"

#include <string.h>

#define MOST_BYTES ((uint64_t)1 << 28) /* of a module's initialisers */

typedef struct filling {
  const tps_ptx_var *var;
  const shape *shape;
  uint64_t limit;   /* elements, or UINT64_MAX when open */
  uint64_t reached; /* elements up to the last one given */
  uint32_t size;    /* of an element */
} filling;

/* --- one element */

static uint64_t float_bits(double value, uint8_t type) {
  uint64_t bits = 0;
  float narrow = (float)value;
  switch (type) {
  case TPS_PTX_F16: return tps_f16_from_double(value);
  case TPS_PTX_BF16: return tps_bf16_from_double(value);
  case TPS_PTX_F32: memcpy(&bits, &narrow, sizeof narrow); return bits;
  default: memcpy(&bits, &value, sizeof value); return bits;
  }
}

/* A float's value for a float, its bits for anything else. */
static uint64_t element_bits(constant c, uint8_t type) {
  bool is_float = c.type == TPS_PTX_F32 || c.type == TPS_PTX_F64;
  bool wants = type == TPS_PTX_F32 || type == TPS_PTX_F64 ||
               (is_float && tps_ptx_type_is_float(type));
  if (!wants || c.type == type) return c.bits; /* keeps the bits of a NaN */
  return float_bits(tps_ptx_constant_double(c), type);
}

static char *element(reader *r, filling *f, uint64_t index) {
  if (index >= f->limit)
    tps_ptx_stop(r, r->tok.line,
                 "'%.200s' has more values than its %llu "
                 "elements",
                 f->var->name, (unsigned long long)f->limit);
  uint64_t end = (index + 1) * f->size;
  if (index > MOST_BYTES || end > MOST_BYTES)
    tps_ptx_stop(r, r->tok.line, "initialiser of more than %llu bytes",
                 (unsigned long long)MOST_BYTES);
  if (end > r->bytes.used) {
    uint64_t more = end - r->bytes.used;
    tps_ptx_push(r, &r->bytes, more);
  }
  if (index + 1 > f->reached) f->reached = index + 1;
  return r->bytes.data + index * f->size;
}

static void relocate(reader *r, const filling *f, uint64_t index, constant c) {
  uint32_t size = c.mask >= 0 ? 1 : f->size;
  if (c.mask < 0 && size != 8 && size != 4)
    tps_ptx_stop(r, r->tok.line,
                 "an address needs 4 or 8 bytes, elements of '%.200s' have %u",
                 f->var->name, f->size);
  tps_ptx_relocation *relocation =
      tps_ptx_push(r, &r->relocations, sizeof *relocation);
  *relocation = (tps_ptx_relocation){
      .offset = index * f->size,
      .addend = (int64_t)c.bits,
      .index = c.symbol->index,
      .size = (uint8_t)size,
      .shift = (uint8_t)(c.mask > 0 ? c.mask * 8 : 0),
      .function = c.symbol->kind == SYM_FUNCTION,
      .generic = c.generic,
  };
}

static void read_value(reader *r, filling *f, uint64_t index) {
  constant c = tps_ptx_constant(r);
  char *place = element(r, f, index);
  if (c.symbol != NULL) {
    if (c.symbol->kind == SYM_LOCAL_VAR)
      tps_ptx_stop(r, r->tok.line,
                   "the address of a function's variable is no constant");
    relocate(r, f, index, c);
    return;
  }
  uint64_t bits = element_bits(c, f->var->type);
  if (f->size <= sizeof bits) {
    memcpy(place, &bits, f->size);
  } else { /* .b128 */
    bool negative = c.type == TPS_PTX_S64 && bits >> 63;
    memcpy(place, &bits, sizeof bits);
    memset(place + sizeof bits, negative ? 0xff : 0, f->size - sizeof bits);
  }
}

/* --- strings */

static const char *escape(const char *p, char *out) {
  static const char from[] = "abfnrtv", to[] = "\a\b\f\n\r\t\v";
  const char *known = *p ? strchr(from, *p) : NULL;
  unsigned value = 0;
  int digits = 0;
  if (known != NULL) {
    *out = to[known - from];
    return p + 1;
  }
  for (; digits < 3 && *p >= '0' && *p <= '7'; digits++, p++)
    value = value * 8 + (unsigned)(*p - '0');
  *out = (char)(digits > 0 ? (int)value : *p);
  return digits > 0 ? p : p + 1;
}

/* Its bytes and a zero, where that has room. */
static uint64_t read_string(reader *r, filling *f, uint64_t index) {
  if (f->size != 1)
    tps_ptx_stop(r, r->tok.line, "a string needs elements of a byte");
  const char *p = r->text + r->tok.at, *end = p + r->tok.size;
  while (p < end) {
    char c = *p++;
    if (c == '\\' && p < end) p = escape(p, &c);
    *element(r, f, index++) = c;
  }
  if (index < f->limit) *element(r, f, index++) = '\0';
  tps_ptx_next(r);
  return index;
}

/* --- braces */

static uint64_t inner_size(const filling *f, int level) {
  uint64_t n = 1;
  for (int i = level + 1; i < f->shape->count; i++) n *= f->shape->sizes[i];
  return n;
}

/* The values in braces of dimension `level`, from element `first` on. */
static void read_braces(reader *r, filling *f, int level, uint64_t first) {
  uint64_t inner = inner_size(f, level), at = first;
  uint64_t limit = f->limit;
  tps_ptx_next(r);
  /* cppcheck-suppress arrayIndexOutOfBoundsCond ; level is below the count */
  if (level > 0) f->limit = first + f->shape->sizes[level] * inner;
  while (!tps_ptx_is(r, '}')) {
    if (tps_ptx_is(r, '{')) {
      if (level + 1 >= f->shape->count)
        tps_ptx_stop(r, r->tok.line, "too many braces for '%.200s'",
                     f->var->name);
      if (at >= f->limit) element(r, f, at);
      read_braces(r, f, level + 1, at);
      at += inner;
    } else if (tps_ptx_is(r, T_STRING)) {
      at = read_string(r, f, at);
    } else {
      read_value(r, f, at++);
    }
    if (!tps_ptx_accept(r, ',')) break;
  }
  f->limit = limit;
  tps_ptx_expect(r, '}', "the values of a variable");
}

/* { addr_mode_0 = wrap, … } of a sampler: what it says is the program's to set
 * when it makes a texture, so that it is only read. */
static void skip_sampler(reader *r) {
  tps_ptx_expect(r, '{', "'='");
  while (!tps_ptx_is(r, '}')) {
    if (!tps_ptx_is(r, T_NAME) && !tps_ptx_is(r, T_INTEGER) &&
        !tps_ptx_is(r, '=') && !tps_ptx_is(r, ','))
      tps_ptx_unexpected(r, "a property of a sampler or texture");
    tps_ptx_next(r);
  }
  tps_ptx_next(r);
}

static void finish(reader *r, tps_ptx_var *var, uint64_t bytes) {
  if (var->linkage == 2)
    tps_ptx_stop(r, var->line, ".extern variable '%.200s' has a value",
                 var->name);
  if (var->space != TPS_PTX_GLOBAL && var->space != TPS_PTX_CONST)
    tps_ptx_stop(r, var->line, ".%s variable '%.200s' has a value",
                 tps_ptx_space_name(var->space), var->name);
  r->initialised_total += bytes;
  if (bytes > MOST_BYTES || r->initialised_total > MOST_BYTES)
    tps_ptx_stop(r, var->line, "initialisers of more than %llu bytes",
                 (unsigned long long)MOST_BYTES);
  char *data = tps_ptx_take(r, bytes);
  if (r->bytes.used > 0) memcpy(data, r->bytes.data, r->bytes.used);
  var->init = data;
  var->relocations = tps_ptx_copy(r, r->relocations.data, r->relocations.used);
  var->relocation_count = COUNT(r->relocations, tps_ptx_relocation);
}

void tps_ptx_initialiser(reader *r, tps_ptx_var *var, const shape *s,
                         bool open) {
  filling f = {var, s, open ? UINT64_MAX : var->count, 0,
               tps_ptx_type_size(var->type)};
  if (var->type == TPS_PTX_TEXREF || var->type == TPS_PTX_SAMPLERREF ||
      var->type == TPS_PTX_SURFREF) {
    skip_sampler(r);
    return;
  }
  r->bytes.used = r->relocations.used = 0;
  if (tps_ptx_is(r, '{') && s->count > 0) read_braces(r, &f, 0, 0);
  else if (tps_ptx_is(r, T_STRING)) read_string(r, &f, 0);
  else if (tps_ptx_accept(r, '{')) {
    /* {7} of a scalar */
    read_value(r, &f, 0);
    tps_ptx_expect(r, '}', "the value of a variable");
  } else read_value(r, &f, 0);
  if (open) {
    uint64_t inner = inner_size(&f, 0);
    if (inner == 0) inner = 1;
    var->count = (f.reached + inner - 1) / inner * inner;
  }
  finish(r, var, var->count * f.size);
}
