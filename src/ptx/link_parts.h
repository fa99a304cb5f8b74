/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What linking has in common: the statements that the texts are taken apart into
 * (link_read.c), joined by name (link.c) and put together of (link_write.c). */
#ifndef TPS_PTX_LINK_PARTS_H
#define TPS_PTX_LINK_PARTS_H

#include <stdbool.h>

#include "ptx/link.h"

typedef enum tps_linkage {
  TPS_LINK_LOCAL,
  TPS_LINK_VISIBLE,
  TPS_LINK_WEAK,
  TPS_LINK_EXTERN
} tps_linkage;

typedef enum tps_link_kind {
  TPS_LINK_VARIABLE,
  TPS_LINK_FUNCTION,
  TPS_LINK_OTHER
} tps_link_kind;

/* One of a text's top level. All pointers lead into that text. */
typedef struct tps_statement {
  const char *begin, *end;
  const char *after;    /* the word of the linkage, if there is one */
  const char *head_end; /* of a function: before its body */
  const char *name;
  size_t name_size;
  size_t module;
  tps_linkage linkage;
  tps_link_kind kind;
  bool shared, body;     /* in shared memory; a function with one */
  bool dropped, renamed; /* what comes of it */
} tps_statement;

typedef struct tps_link {
  const tps_ptx_input *inputs;
  tps_statement *list;
  size_t count, room;
  tps_statement **names; /* those that have one, by name, then in order */
  size_t name_count;
  char *out;
  size_t size, space;
  char target[64], version[16];
  unsigned file_base; /* numbers of files given before this module */
  bool failed;        /* out of memory */
} tps_link;

/* Appends the statements of one input; fails where its target is another one than
 * that of those before. */
int tps_link_read(tps_link *l, size_t module, tps_error *err);
/* Writes what is not dropped to l->out. */
void tps_link_write(tps_link *l, size_t modules);

/* Behind blanks and comments. */
const char *tps_link_skip(const char *p);
/* Behind one token, which p stands at. */
const char *tps_link_token(const char *p);
/* Whether a character is one of a word's. */
bool tps_link_is_part(char c);
/* Whether p up to end is that word. */
bool tps_link_is_word(const char *p, const char *end, const char *word);

/* All statements of that name, whatever their module; how many. */
size_t tps_link_find(const tps_link *l, const char *name, size_t size,
                     tps_statement *const **first);
/* A declaration has neither body nor memory. */
bool tps_link_defines(const tps_statement *s);

#endif
