/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The module: what stands outside functions, and the beginning and end of a
 * parse.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/owner.h"
#include "ptx/reader.h"

typedef struct alias {
  int32_t function, target;
  uint32_t line;
} alias;

/* --- errors and memory */

void tps_ptx_stop(reader *r, uint32_t line, const char *format, ...) {
  char message[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  r->code = tps_fail(r->err, TPS_INVALID_PTX, "line %u: %s", line, message);
  longjmp(r->stop, 1);
}

void tps_ptx_stop_code(reader *r, int code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  r->code = tps_vfail(r->err, code, format, args);
  va_end(args);
  longjmp(r->stop, 1);
}

void *tps_ptx_take(reader *r, size_t size) {
  void *piece = tps_arena_take(&r->memory, size);
  if (piece == NULL)
    tps_ptx_stop_code(r, TPS_NO_HOST_MEMORY, "out of host memory");
  return piece;
}

void *tps_ptx_copy(reader *r, const void *data, size_t size) {
  if (size == 0) return NULL;
  return memcpy(tps_ptx_take(r, size), data, size);
}

static void grow(reader *r, buffer *b, size_t size) {
  size_t room = b->room ? b->room * 2 : 4096;
  while (room < b->used + size) room *= 2;
  char *data = realloc(b->data, room);
  if (data == NULL)
    tps_ptx_stop_code(r, TPS_NO_HOST_MEMORY, "out of host memory");
  b->data = data;
  b->room = room;
}

void *tps_ptx_push(reader *r, buffer *b, size_t size) {
  if (b->room - b->used < size) grow(r, b, size);
  void *piece = b->data + b->used;
  memset(piece, 0, size);
  b->used += size;
  return piece;
}

/* --- version and target */

static unsigned digits(const char **p, const char *end) {
  unsigned n = 0;
  for (; *p < end && **p >= '0' && **p <= '9' && n < 10000; ++*p)
    n = n * 10 + (unsigned)(**p - '0');
  return n;
}

static void read_version(reader *r) {
  const char *p = r->text + r->tok.at, *end = p + r->tok.size;
  unsigned major = digits(&p, end), minor = 0;
  if (tps_ptx_is(r, T_FLOAT) && p < end && *p == '.') {
    p++;
    minor = digits(&p, end);
  }
  bool is_number = tps_ptx_is(r, T_FLOAT) || tps_ptx_is(r, T_INTEGER);
  if (!is_number || p != end || r->text[r->pos] == '.' || minor > 9)
    tps_ptx_unexpected(r, "a version such as 8.0");
  if (major < 1 || major > 9)
    tps_ptx_stop_code(r, TPS_UNSUPPORTED_PTX_VERSION,
                      "PTX version %u.%u (this reader knows 1.0 to 9.9)", major,
                      minor);
  r->module.version = major * 10 + minor;
  tps_ptx_next(r);
}

/* sm_90a, compute_80; other words are options: debug, texmode_independent */
static void read_target_word(reader *r) {
  const char *p = r->text + r->tok.at, *end = p + r->tok.size;
  if (!tps_ptx_is(r, T_NAME)) tps_ptx_unexpected(r, "a target");
  bool sm = r->tok.size > 3 && strncmp(p, "sm_", 3) == 0;
  bool compute = r->tok.size > 8 && strncmp(p, "compute_", 8) == 0;
  if (sm || compute) {
    p += sm ? 3 : 8;
    r->module.target = digits(&p, end);
    r->module.target_specific = p < end;
    if (r->module.target == 0 || end - p > 1 ||
        (p < end && *p != 'a' && *p != 'f'))
      tps_ptx_unexpected(r, "a target such as sm_80");
  }
  tps_ptx_next(r);
}

static void read_target(reader *r) {
  uint32_t line = r->tok.line;
  do read_target_word(r);
  while (tps_ptx_accept(r, ','));
  if (r->module.target == 0)
    tps_ptx_stop(r, line, "'.target' names no architecture");
}

static void read_address_size(reader *r) {
  uint32_t line = r->tok.line;
  uint64_t size = tps_ptx_unsigned(r, "address size", 64);
  if (size != 64)
    tps_ptx_stop(r, line,
                 "'.address_size %u': programs of 64 bits are all there is",
                 (unsigned)size);
  r->module.address_size = (unsigned)size;
  r->address_size_given = true;
}

/* --- aliases */

static int32_t read_function_name(reader *r) {
  if (!tps_ptx_is(r, T_NAME)) tps_ptx_unexpected(r, "the name of a function");
  int32_t n = tps_ptx_token_name(r);
  const symbol *s = tps_ptx_lookup(r, n);
  if (s == NULL || s->kind != SYM_FUNCTION)
    tps_ptx_stop(r, r->tok.line, "'%.200s' is not a function",
                 tps_ptx_name_text(r, n));
  tps_ptx_next(r);
  return s->index;
}

static void read_alias(reader *r) {
  alias a = {.line = r->tok.line};
  a.function = read_function_name(r);
  tps_ptx_expect(r, ',', "'.alias'");
  a.target = read_function_name(r);
  tps_ptx_expect(r, ';', "'.alias'");
  *(alias *)tps_ptx_push(r, &r->aliases, sizeof a) = a;
}

/* An alias gets the body of its target, which may have come later. */
static void resolve_aliases(reader *r) {
  for (uint32_t i = 0; i < COUNT(r->aliases, alias); i++) {
    const alias *a = AT(r->aliases, alias, i);
    tps_ptx_function *f = AT(r->functions, tps_ptx_function, a->function);
    const tps_ptx_function *target =
        AT(r->functions, tps_ptx_function, a->target);
    const char *name = f->name;
    uint8_t linkage = f->linkage;
    if (!f->declared_only || target->declared_only)
      tps_ptx_stop(r, a->line, "alias '%.100s' of '%.100s': %s", name,
                   target->name,
                   target->declared_only ? "the latter has no body"
                                         : "the former has a body");
    if (f->entry != target->entry || f->input_bytes != target->input_bytes ||
        f->return_bytes != target->return_bytes)
      tps_ptx_stop(r, a->line, "alias '%.100s' differs from '%.100s'", name,
                   target->name);
    *f = *target;
    f->name = name;
    f->linkage = linkage;
    f->alias_of = target->name;
  }
}

/* --- the module */

static uint8_t read_linkage(reader *r) {
  static const char *const words[] = {"visible", "extern", "weak", "common"};
  for (uint8_t i = 0; i < 4; i++)
    if (tps_ptx_accept_word(r, words[i])) return i + 1;
  return 0;
}

static void need_target(reader *r) {
  if (r->module.target == 0)
    tps_ptx_stop(r, r->tok.line, "'.target' is missing");
}

static void read_section(reader *r) {
  uint32_t line = r->tok.line;
  while (!tps_ptx_accept(r, '{')) {
    if (tps_ptx_is(r, T_END)) tps_ptx_unexpected(r, "'{' after '.section'");
    tps_ptx_next(r);
  }
  tps_ptx_skip_section(r, line);
}

/* .visible .entry …, .global …, or anything else with that beginning */
static void read_declaration(reader *r) {
  char found[80];
  uint8_t linkage = read_linkage(r);
  need_target(r);
  if (!tps_ptx_is(r, T_WORD)) tps_ptx_unexpected(r, "a function or a variable");
  bool entry = tps_ptx_is_word(r, "entry");
  if (entry || tps_ptx_is_word(r, "func")) {
    tps_ptx_function_read(r, entry, linkage);
    return;
  }
  int space = tps_ptx_find_space(r->text + r->tok.at, r->tok.size);
  if (tps_ptx_is_word(r, "tex")) space = TPS_PTX_GLOBAL; /* of version 1 */
  if (space == TPS_PTX_GENERIC)
    tps_ptx_stop(r, r->tok.line, "unknown directive %s",
                 tps_ptx_token_text(r, found));
  if (space == TPS_PTX_REG)
    tps_ptx_stop(r, r->tok.line, "a register outside a function");
  tps_ptx_variables(r, space, linkage);
}

static void read_directive(reader *r) {
  if (tps_ptx_accept_word(r, "version")) read_version(r);
  else if (tps_ptx_accept_word(r, "target")) read_target(r);
  else if (tps_ptx_accept_word(r, "address_size")) read_address_size(r);
  else if (tps_ptx_is_word(r, "file")) tps_ptx_read_file(r);
  else if (tps_ptx_is_word(r, "loc")) tps_ptx_read_loc(r);
  else if (tps_ptx_is_word(r, "pragma")) tps_ptx_skip_pragma(r);
  else if (tps_ptx_accept_word(r, "section")) read_section(r);
  else if (tps_ptx_accept_word(r, "alias")) read_alias(r);
  else read_declaration(r);
}

static void read_module(reader *r) {
  tps_ptx_next(r);
  if (!tps_ptx_is_word(r, "version"))
    tps_ptx_stop_code(r, TPS_INVALID_IMAGE,
                      "not PTX: the text does not begin with .version");
  while (!tps_ptx_is(r, T_END)) {
    if (tps_ptx_is(r, T_WORD)) {
      read_directive(r);
    } else if (tps_ptx_is(r, '@') &&
               strncmp(r->text + r->tok.at, "@@DWARF", 7) == 0) {
      tps_ptx_skip_line(r); /* debug data of version 2 */
      tps_ptx_next(r);
    } else if (!tps_ptx_accept(r, ';')) {
      tps_ptx_unexpected(r, "a directive");
    }
  }
  resolve_aliases(r);
}

/* --- begin and end */

static void take_text(reader *r, const char *text, size_t size) {
  while (size > 0 && text[size - 1] == '\0') size--;
  if (size >= 0x7fffffff)
    tps_ptx_stop_code(r, TPS_INVALID_PTX, "PTX of %zu bytes (limit %d)", size,
                      0x7fffffff - 1);
  char *copy = tps_ptx_take(r, size + 1);
  if (size > 0) memcpy(copy, text, size);
  r->text = r->module.text = copy;
  r->size = (uint32_t)size;
  r->module.text_size = size;
  const char *nul = memchr(copy, '\0', size);
  if (nul == NULL) return;
  uint32_t line = 1;
  for (const char *p = copy; p < nul; p++) line += *p == '\n';
  if (strstr(copy, ".version") == NULL)
    tps_ptx_stop_code(r, TPS_INVALID_IMAGE,
                      "not PTX: the text does not begin with .version");
  tps_ptx_stop(r, line, "NUL byte in the text");
}

static void keep(reader *r) {
  tps_ptx_module *m = &r->module;
  m->vars = tps_ptx_copy(r, r->vars.data, r->vars.used);
  m->var_count = COUNT(r->vars, tps_ptx_var);
  m->functions = tps_ptx_copy(r, r->functions.data, r->functions.used);
  m->function_count = COUNT(r->functions, tps_ptx_function);
  m->locs = tps_ptx_copy(r, r->locs.data, r->locs.used);
  m->loc_count = COUNT(r->locs, tps_ptx_loc);
  m->files = tps_ptx_copy(r, r->files.data, r->files.used);
  m->file_count = COUNT(r->files, const char *);
}

static void free_buffers(reader *r) {
  /* clang-format off */
  buffer *all[] = {&r->names, &r->symbols, &r->labels, &r->fixups, &r->scopes,
                   &r->splits, &r->vars, &r->functions, &r->locs, &r->files,
                   &r->aliases, &r->registers, &r->locals, &r->instructions,
                   &r->parts, &r->tables, &r->operand_stack, &r->after,
                   &r->reg_params, &r->scratch, &r->bytes, &r->relocations};
  /* clang-format on */
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]->data);
  free(r->name_slots);
  free(r->split_slots);
}

static void parse(reader *r, const char *text, size_t size) {
  take_text(r, text, size);
  read_module(r);
  keep(r);
}

int tps_ptx_parse(const char *text, size_t size, tps_ptx_module **out,
                  tps_error *err) {
  reader *r = calloc(1, sizeof *r);
  *out = NULL;
  if (r == NULL) return tps_fail(err, TPS_NO_HOST_MEMORY, "out of host memory");
  r->err = err;
  r->line = 1;
  r->loc = -1;
  r->module.address_size = 64;
  if (setjmp(r->stop) == 0) {
    tps_ptx_owner *own = tps_ptx_take(r, sizeof *own);
    parse(r, text, size);
    own->module = r->module;
    own->memory = r->memory;
    *out = &own->module;
  } else {
    tps_arena_free(&r->memory);
  }
  int code = r->code;
  free_buffers(r);
  free(r);
  return code;
}

/* --- places */

static const char *file_of(const tps_ptx_module *module,
                           const tps_ptx_loc *loc) {
  return loc != NULL && loc->file < module->file_count
             ? module->files[loc->file]
             : NULL;
}

/* What follows the last "/include/" in the path of a header; NULL where there is
 * none. */
static const char *header_name(const char *file) {
  static const char folder[] = "/include/";
  const char *name = NULL;
  for (const char *p = file; p != NULL && (p = strstr(p, folder)) != NULL;) {
    p += sizeof folder - 1;
    name = p;
  }
  return name;
}

static bool is_builtin(const char *file) {
  return file != NULL && strstr(file, "__nv_nvrtc_builtin_header") != NULL;
}

/* What a library's header defines is where the program calls it, if it was
 * inlined there. */
static const tps_ptx_loc *program_loc(const tps_ptx_module *module,
                                      const tps_ptx_loc *loc) {
  const tps_ptx_loc *outer = loc;
  for (int depth = 0; depth < 100 && outer != NULL; depth++) {
    const char *file = file_of(module, outer);
    if (file == NULL) return loc;
    if (!is_builtin(file) && header_name(file) == NULL) return outer;
    outer = outer->inlined_at >= 0 ? &module->locs[outer->inlined_at] : NULL;
  }
  return loc;
}

const char *tps_ptx_where(const tps_ptx_module *module,
                          const tps_ptx_instruction *instruction, char *buffer,
                          size_t size) {
  const tps_ptx_loc *own =
      instruction->loc >= 0 ? &module->locs[instruction->loc] : NULL;
  const tps_ptx_loc *loc = program_loc(module, own);
  const char *file = file_of(module, loc), *inner = file_of(module, own);
  if (file == NULL || loc->line == 0)
    snprintf(buffer, size, "PTX line %u", instruction->line);
  else if (own == loc || is_builtin(inner))
    snprintf(buffer, size, "%s:%u", file, loc->line);
  else
    snprintf(buffer, size, "%s:%u via %s:%u", file, loc->line,
             header_name(inner), own->line);
  return buffer;
}
