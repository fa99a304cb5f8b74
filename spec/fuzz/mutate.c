/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Changes of PTX that leave most of it valid: a register for another of the
 * text, a number for an odd one, a modifier or a mnemonic for another,
 * statements deleted, doubled, moved, guarded. Works on tokens, so that what is
 * changed is a word and not half of one.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/words.h"

enum { MOST_TOKENS = 4096 };

typedef enum kind { NAME, MODIFIER, REGISTER, NUMBER, END, OTHER } kind;

typedef struct token {
  uint32_t at, size;
  kind kind;
} token;

typedef struct text {
  char *data;
  size_t size, room;
  token tokens[MOST_TOKENS];
  uint32_t count;
  uint64_t random;
} text;

static uint32_t below(text *t, uint32_t limit) {
  uint64_t x = t->random;
  x ^= x << 13, x ^= x >> 7, x ^= x << 17;
  t->random = x;
  return limit ? (uint32_t)((x >> 16) % limit) : 0;
}

/* --- tokens */

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$' || c == '%' || c == ':';
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static kind kind_of(char c) {
  if (c == '%') return REGISTER;
  if (c == '.') return MODIFIER;
  if (is_digit(c)) return NUMBER;
  if (is_letter(c) && c != ':') return NAME;
  return c == ';' || c == '{' || c == '}' ? END : OTHER;
}

static void split(text *t) {
  t->count = 0;
  for (size_t i = 0; i < t->size && t->count < MOST_TOKENS;) {
    size_t begin = i++;
    char c = t->data[begin];
    kind kind = kind_of(c);
    if (kind < END)
      while (i < t->size && (is_letter(t->data[i]) || is_digit(t->data[i])))
        i++;
    if (c == '/' && i < t->size && t->data[i] == '/')
      while (i < t->size && t->data[i] != '\n') i++;
    if (c <= ' ' || c == '/') continue;
    t->tokens[t->count++] =
        (token){(uint32_t)begin, (uint32_t)(i - begin), kind};
  }
}

/* A token of the kind, at random; NULL when there is none. */
static const token *any(text *t, kind kind) {
  uint32_t start = below(t, t->count);
  for (uint32_t n = 0; n < t->count; n++) {
    const token *k = &t->tokens[(start + n) % t->count];
    if (k->kind == kind) return k;
  }
  return NULL;
}

/* --- edits */

static void replace(text *t, size_t at, size_t size, const char *by,
                    size_t by_size) {
  char copy[1024];
  if (by_size > sizeof copy || t->size - size + by_size > t->room) return;
  memcpy(copy, by, by_size);
  memmove(t->data + at + by_size, t->data + at + size, t->size - at - size);
  memcpy(t->data + at, copy, by_size);
  t->size = t->size - size + by_size;
}

static void replace_token(text *t, const token *k, const char *by) {
  replace(t, k->at, k->size, by, strlen(by));
}

static void copy_token(text *t, const token *to, const token *from) {
  replace(t, to->at, to->size, t->data + from->at, from->size);
}

static void change_number(text *t) {
  static const char *const odd[] = {"0",
                                    "1",
                                    "-1",
                                    "2",
                                    "3",
                                    "7",
                                    "8",
                                    "15",
                                    "16",
                                    "31",
                                    "32",
                                    "33",
                                    "63",
                                    "64",
                                    "65",
                                    "127",
                                    "128",
                                    "255",
                                    "256",
                                    "1023",
                                    "1024",
                                    "4096",
                                    "65535",
                                    "0x7fffffff",
                                    "0x80000000",
                                    "0xffffffff",
                                    "4294967296",
                                    "0x7fffffffffffffff",
                                    "0x8000000000000000",
                                    "0xffffffffffffffff",
                                    "0f7f800000",
                                    "0fff800000",
                                    "0f7fc00000",
                                    "0f80000000",
                                    "0f00000001",
                                    "0f3f800000",
                                    "0d7ff0000000000000",
                                    "0d8000000000000000",
                                    "0d0000000000000001",
                                    "0d43e0000000000000",
                                    "1.5",
                                    "WARP_SZ"};
  char made[24];
  const token *k = any(t, NUMBER);
  if (!k) return;
  uint32_t dice = below(t, 8);
  if (k->at > 0 && t->data[k->at - 1] == '<') { /* many registers are slow */
    snprintf(made, sizeof made, "%u", below(t, 64));
    replace_token(t, k, made);
    return;
  }
  if (dice < 5) {
    replace_token(t, k, odd[below(t, sizeof odd / sizeof *odd)]);
    return;
  }
  snprintf(made, sizeof made, "%.*s", k->size > 20 ? 20 : (int)k->size,
           t->data + k->at);
  uint64_t n = (uint64_t)strtoll(made, NULL, 0) + below(t, 9) - 4;
  if (dice == 5) n = t->random;
  snprintf(made, sizeof made, "%lld", (long long)n);
  replace_token(t, k, made);
}

/* Mostly by one whose name begins alike: then its type is the same. */
static void change_register(text *t) {
  const token *k = any(t, REGISTER), *by = k;
  for (int tries = 0; k && tries < 8; tries++) {
    by = any(t, REGISTER);
    bool alike = by->size > 2 && k->size > 2 &&
                 t->data[by->at + 1] == t->data[k->at + 1] &&
                 is_digit(t->data[by->at + 2]) == is_digit(t->data[k->at + 2]);
    if (alike || below(t, 16) == 0) break;
  }
  if (k) copy_token(t, k, by);
}

static void special_register(text *t) {
  static const char *const names[] = {"%tid.x",          "%ntid.x",
                                      "%ctaid.x",        "%laneid",
                                      "%clock",          "%clock64",
                                      "%lanemask_lt",    "%warpid",
                                      "%nctaid.y",       "%gridid",
                                      "%envreg2",        "%smid",
                                      "%globaltimer",    "%dynamic_smem_size",
                                      "%cluster_ctarank"};
  const token *k = any(t, REGISTER);
  if (k) replace_token(t, k, names[below(t, sizeof names / sizeof *names)]);
}

static void some_modifier(text *t, char out[64]) {
  const char *word =
      below(t, 3) == 0 ? tps_ptx_type_name(1 + below(t, TPS_PTX_TYPE_COUNT - 1))
                       : tps_ptx_mod_names[below(t, TPS_PTX_M_COUNT)];
  snprintf(out, 64, ".%s", word);
}

static void change_modifier(text *t) {
  char word[64];
  const token *k = any(t, MODIFIER);
  if (!k) return;
  some_modifier(t, word);
  switch (below(t, 8)) {
  case 0: replace(t, k->at, k->size, "", 0); break;
  case 1: replace(t, k->at, 0, word, strlen(word)); break;
  case 2: replace_token(t, k, word); break;
  default: copy_token(t, k, any(t, MODIFIER));
  }
}

static void change_name(text *t) {
  const token *k = any(t, NAME);
  if (!k) return;
  if (below(t, 3) == 0)
    replace_token(t, k, tps_ptx_op_names[below(t, TPS_PTX_OP_COUNT)]);
  else copy_token(t, k, any(t, NAME));
}

static void change_kind(text *t) {
  const token *k = any(t, REGISTER), *n = any(t, NUMBER);
  if (k && n && below(t, 2)) copy_token(t, n, k);
  else if (k && n) copy_token(t, k, n);
}

/* --- statements */

/* From behind a ';' or brace to the next one, both places of a statement. */
static bool statement(text *t, size_t *at, size_t *size) {
  uint32_t first = below(t, t->count);
  while (first > 0 && t->tokens[first - 1].kind != END) first--;
  uint32_t last = first;
  while (last < t->count && t->tokens[last].kind != END) last++;
  if (last >= t->count || t->data[t->tokens[last].at] != ';') return false;
  *at = t->tokens[first].at;
  *size = t->tokens[last].at + 1 - *at;
  return *size <= 500;
}

static void delete_statement(text *t) {
  size_t at, size;
  if (statement(t, &at, &size)) replace(t, at, size, "", 0);
}

static void copy_statement(text *t) {
  size_t at, size, to, unused;
  char made[502];
  if (!statement(t, &at, &size) || !statement(t, &to, &unused)) return;
  memcpy(made, t->data + at, size);
  made[size] = '\n';
  replace(t, to, 0, made, size + 1);
}

static void move_statement(text *t) {
  size_t at, size, to, unused;
  char made[502];
  if (!statement(t, &at, &size) || !statement(t, &to, &unused)) return;
  memcpy(made, t->data + at, size);
  made[size] = '\n';
  replace(t, at, size, "", 0);
  if (to > at) to -= size;
  replace(t, to, 0, made, size + 1);
}

static void guard_statement(text *t) {
  size_t at, size;
  char made[80];
  const token *k = any(t, REGISTER);
  if (!k || !statement(t, &at, &size)) return;
  for (int tries = 0; tries < 8 && t->data[k->at + 1] != 'p'; tries++)
    k = any(t, REGISTER);
  if (t->data[at] == '@') {
    size_t end = at;
    while (t->data[end] > ' ') end++;
    replace(t, at, end - at, "", 0);
    return;
  }
  int n = snprintf(made, sizeof made, "@%s%.*s ", below(t, 2) ? "!" : "",
                   k->size > 60 ? 60 : (int)k->size, t->data + k->at);
  replace(t, at, 0, made, (size_t)n);
}

static void add_label(text *t) {
  size_t at, size, from;
  char made[40];
  if (!statement(t, &at, &size)) return;
  unsigned n = below(t, 1000);
  int length = snprintf(made, sizeof made, "F%u: ", n);
  replace(t, at, 0, made, (size_t)length);
  split(t);
  if (!statement(t, &from, &size)) return;
  length = snprintf(made, sizeof made, "bra F%u;\n", n);
  replace(t, from, 0, made, (size_t)length);
}

static void flip_byte(text *t) {
  if (t->size) t->data[below(t, (uint32_t)t->size)] = (char)below(t, 256);
}

size_t tps_fuzz_mutate(uint8_t *data, size_t size, size_t room, unsigned seed) {
  typedef void change(text *);
  static change *const changes[] = {
      change_number,    change_number,   change_register, change_register,
      change_register,  change_modifier, change_modifier, change_modifier,
      change_name,      change_name,     change_kind,     special_register,
      delete_statement, copy_statement,  copy_statement,  move_statement,
      guard_statement,  add_label};
  static _Thread_local text t;
  t.data = (char *)data;
  t.size = size;
  t.room = room;
  t.random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
  for (uint32_t n = 1 + below(&t, 4); n > 0; n--) {
    split(&t);
    if (t.count == 0 || below(&t, 400) == 0) flip_byte(&t);
    else changes[below(&t, sizeof changes / sizeof *changes)](&t);
  }
  return t.size;
}
