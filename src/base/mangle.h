/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Mangled C++ names (Itanium ABI) → a tree, and trees → readable text. Covers
 * what CUDA kernels and device variables carry; a text outside of it is
 * refused, never guessed at. Every input is safe: memory, depth and work are
 * bounded.
 */
#ifndef TPS_BASE_MANGLE_H
#define TPS_BASE_MANGLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tps_node_kind {
  TPS_NODE_NAME,     /* text: an identifier */
  TPS_NODE_TEXT,     /* text: a literal or an expression, as it is */
  TPS_NODE_NESTED,   /* a::b */
  TPS_NODE_TEMPLATE, /* a<b>, b a list */
  TPS_NODE_BUILTIN,  /* text; code: the mangled letter, or 0 */
  TPS_NODE_POINTER,
  TPS_NODE_LVALUE,    /* a& */
  TPS_NODE_RVALUE,    /* a&& */
  TPS_NODE_MEMBER,    /* pointer to member b of class a */
  TPS_NODE_QUALIFIED, /* a, text " const", code: bit 0 says const */
  TPS_NODE_ARRAY,     /* of a, text the bound */
  TPS_NODE_FUNCTION,  /* a the result or NULL, b the parameters' list */
  TPS_NODE_PREFIX,    /* text then a: "&f", "-1" */
  TPS_NODE_BINARY,    /* a text b */
  TPS_NODE_CALL, /* text(b…): sizeof, casts, decltype, unknown functions */
  TPS_NODE_PACK, /* a: list of what it stands for */
  TPS_NODE_EXPANSION, /* a... */
  TPS_NODE_LIST       /* a, then b the rest */
} tps_node_kind;

typedef struct tps_node {
  uint8_t kind;
  uint8_t code;
  uint32_t size;    /* of text */
  const char *text; /* into the mangled text or static */
  struct tps_node *a, *b;
} tps_node;

typedef struct tps_mangle tps_mangle;

/* Room for one name; NULL when out of memory. The mangled text must outlive
 * it. */
tps_mangle *tps_mangle_new(void);
void tps_mangle_free(tps_mangle *m);

/* "_Z…" → its name, and for a function the parameter list: *is_function tells a
 * function without parameters from a variable. False: not mangled or
 * malformed. */
bool tps_mangle_name(tps_mangle *m, const char *mangled, tps_node **name,
                     tps_node **params, bool *is_function);

/* The mangled text of a type as the first argument of a template, whose own
 * name takes the first place among the substitutions. NULL: malformed. */
tps_node *tps_mangle_type(tps_mangle *m, const char *mangled);
/* The same, for a function's type. */
bool tps_mangle_function_type(tps_mangle *m, const char *mangled,
                              tps_node **params);

/* Readable text of a tree (name, type or parameter list), owned by the caller.
 * `plain` leaves out the template arguments of the outermost name. NULL when it
 * is longer than 8 KiB or memory is out. */
char *tps_mangle_text(tps_mangle *m, const tps_node *node, bool plain);

/* The last component's identifier of a (possibly nested, template) class name,
 * or NULL; *size is its length. */
const char *tps_mangle_identifier(const tps_node *node, size_t *size);

#endif
