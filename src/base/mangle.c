/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * A recursive-descent reader of the Itanium C++ ABI's mangling grammar and a
 * printer of the trees it makes. Every function that reads returns NULL (or
 * false) for text outside the grammar and the caller passes that on: one way to
 * fail. Nodes come from one fixed block; a counter of steps bounds the work,
 * since substitutions let a short text stand for a tree of any size. */
#include "base/mangle.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NODES 20000 /* the most parameters there can be, twice */
#define MAX_SUBSTITUTIONS 512
#define MAX_DEPTH 128
#define MAX_STEPS 60000
#define MAX_TEXT 8192

struct tps_mangle {
  const char *at;
  tps_node nodes[MAX_NODES];
  uint32_t node_count;
  tps_node *substitutions[MAX_SUBSTITUTIONS];
  uint32_t substitution_count;
  tps_node *arguments; /* list that T_, T0_, … look into */
  bool have_arguments;
  int depth;
  int steps;
  char out[MAX_TEXT];
  size_t size;
  bool overflow;
};

typedef struct tps_mangle mangle;
typedef tps_node node;

static node *read_type(mangle *m);
static node *read_name(mangle *m, bool encoding);
static node *read_encoding(mangle *m, node **params, bool *is_function);
static node *read_expression(mangle *m);

mangle *tps_mangle_new(void) { return malloc(sizeof(mangle)); }

void tps_mangle_free(mangle *m) { free(m); }

static void start(mangle *m, const char *text) {
  m->at = text;
  m->node_count = m->substitution_count = 0;
  m->arguments = NULL;
  m->have_arguments = false;
  m->depth = 0;
  m->steps = MAX_STEPS;
}

/* ---- nodes --------------------------------------------------------------- */

static node *make(mangle *m, tps_node_kind kind, node *a, node *b) {
  if (m->node_count == MAX_NODES) return NULL;
  node *n = &m->nodes[m->node_count++];
  memset(n, 0, sizeof *n);
  n->kind = (uint8_t)kind;
  n->a = a;
  n->b = b;
  return n;
}

static node *make_text(mangle *m, tps_node_kind kind, const char *text,
                       size_t size) {
  node *n = make(m, kind, NULL, NULL);
  if (n == NULL) return NULL;
  n->text = text;
  n->size = (uint32_t)size;
  return n;
}

static node *make_word(mangle *m, tps_node_kind kind, const char *text) {
  return make_text(m, kind, text, strlen(text));
}

/* A node over `a`, which must be there. */
static node *wrap(mangle *m, tps_node_kind kind, node *a) {
  return a != NULL ? make(m, kind, a, NULL) : NULL;
}

/* Notes `n` as a candidate for later S_ references and passes it on. */
static node *remember(mangle *m, node *n) {
  if (n == NULL || m->substitution_count == MAX_SUBSTITUTIONS) return NULL;
  m->substitutions[m->substitution_count++] = n;
  return n;
}

static bool enter(mangle *m) {
  if (m->depth >= MAX_DEPTH || m->steps <= 0) return false;
  m->depth++;
  m->steps--;
  return true;
}

/* ---- tokens -------------------------------------------------------------- */

static bool take(mangle *m, const char *text) {
  size_t n = strlen(text);
  if (strncmp(m->at, text, n) != 0) return false;
  m->at += n;
  return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* A decimal number; false when there is none or it is absurd. */
static bool read_number(mangle *m, unsigned *out) {
  if (!is_digit(*m->at)) return false;
  unsigned n = 0;
  while (is_digit(*m->at)) {
    n = n * 10 + (unsigned)(*m->at++ - '0');
    if (n > 100000) return false;
  }
  *out = n;
  return true;
}

/* What follows S or T: "_" is 0, "0_" is 1, … in base 36 or 10. */
static bool read_index(mangle *m, unsigned base, unsigned *out) {
  unsigned n = 0;
  if (take(m, "_")) {
    *out = 0;
    return true;
  }
  for (; *m->at != '_'; m->at++) {
    unsigned digit;
    if (is_digit(*m->at)) digit = (unsigned)(*m->at - '0');
    else if (*m->at >= 'A' && *m->at <= 'Z')
      digit = (unsigned)(*m->at - 'A') + 10;
    else return false;
    if (digit >= base) return false;
    n = n * base + digit;
    if (n > 100000) return false;
  }
  m->at++;
  *out = n + 1;
  return true;
}

static bool begins(const char *text, size_t size, const char *with) {
  size_t n = strlen(with);
  return size >= n && memcmp(text, with, n) == 0;
}

/* <length><identifier>. Names that the compiler makes for internal linkage and
 * anonymous namespaces become empty: nobody writes them. */
static node *read_source_name(mangle *m) {
  unsigned n;
  if (!read_number(m, &n) || n == 0 || strnlen(m->at, n) < n) return NULL;
  const char *text = m->at;
  m->at += n;
  if (begins(text, n, "_GLOBAL__N_") || begins(text, n, "_INTERNAL_")) n = 0;
  return make_text(m, TPS_NODE_NAME, text, n);
}

/* ---- names --------------------------------------------------------------- */

typedef struct operator_row {
  char code[3];
  char arity; /* 1, 2, 3; 0: none that an expression uses */
  const char *text;
} operator_row;

/* clang-format off */
static const operator_row operators[] = {
    {"nw", 0, "new"},  {"na", 0, "new[]"}, {"dl", 0, "delete"},
    {"da", 0, "delete[]"}, {"ps", 1, "+"}, {"ng", 1, "-"},
    {"ad", 1, "&"},    {"de", 1, "*"},     {"co", 1, "~"},
    {"pl", 2, "+"},    {"mi", 2, "-"},     {"ml", 2, "*"},
    {"dv", 2, "/"},    {"rm", 2, "%"},     {"an", 2, "&"},
    {"or", 2, "|"},    {"eo", 2, "^"},     {"aS", 2, "="},
    {"pL", 2, "+="},   {"mI", 2, "-="},    {"mL", 2, "*="},
    {"dV", 2, "/="},   {"rM", 2, "%="},    {"aN", 2, "&="},
    {"oR", 2, "|="},   {"eO", 2, "^="},    {"ls", 2, "<<"},
    {"rs", 2, ">>"},   {"lS", 2, "<<="},   {"rS", 2, ">>="},
    {"eq", 2, "=="},   {"ne", 2, "!="},    {"lt", 2, "<"},
    {"gt", 2, ">"},    {"le", 2, "<="},    {"ge", 2, ">="},
    {"ss", 2, "<=>"},  {"nt", 1, "!"},     {"aa", 2, "&&"},
    {"oo", 2, "||"},   {"pp", 1, "++"},    {"mm", 1, "--"},
    {"cm", 2, ","},    {"pm", 2, "->*"},   {"pt", 2, "->"},
    {"cl", 0, "()"},   {"ix", 2, "[]"},    {"qu", 3, "?"}};
/* clang-format on */

static const operator_row *find_operator(const char *at) {
  for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
    if (at[0] == operators[i].code[0] && at[0] != '\0' &&
        at[1] == operators[i].code[1])
      return &operators[i];
  return NULL;
}

static node *read_operator_name(mangle *m) {
  if (take(m, "cv")) {
    node *type = read_type(m);
    node *n = type != NULL ? make(m, TPS_NODE_PREFIX, type, NULL) : NULL;
    if (n == NULL) return NULL;
    n->text = "operator ";
    n->size = 9;
    return n;
  }
  const operator_row *row = find_operator(m->at);
  if (row == NULL) return NULL;
  m->at += 2;
  node *n =
      make(m, TPS_NODE_PREFIX, make_word(m, TPS_NODE_NAME, row->text), NULL);
  if (n == NULL || n->a == NULL) return NULL;
  n->text = "operator";
  n->size = 8;
  return n;
}

/* A list of types up to E (or the text's end); *ok tells an empty one from
 * failure. A lone void is empty. */
static node *read_types(mangle *m, bool *ok) {
  node *first = NULL, **tail = &first;
  *ok = false;
  while (*m->at != '\0' && *m->at != 'E' && *m->at != '.') {
    node *type = read_type(m);
    if (type == NULL) return NULL;
    node *cell = make(m, TPS_NODE_LIST, type, NULL);
    if (cell == NULL) return NULL;
    *tail = cell;
    tail = &cell->b;
  }
  *ok = true;
  if (first != NULL && first->b == NULL && first->a->kind == TPS_NODE_BUILTIN &&
      first->a->code == 'v')
    return NULL;
  return first;
}

/* Ut_, Ut0_: a type without a name; UlvE_: a lambda. EDG also writes the
 * parameters; they say nothing to a reader. */
static node *read_unnamed(mangle *m) {
  unsigned index;
  bool lambda = m->at[1] == 'l', ok;
  m->at += 2;
  if (lambda) {
    read_types(m, &ok);
    if (!ok || !take(m, "E")) return NULL;
  }
  if (!read_index(m, 10, &index)) return NULL;
  return make_word(m, TPS_NODE_NAME, lambda ? "{lambda}" : "{unnamed}");
}

/* C1, D0 …: a constructor or destructor: never a kernel, but a kernel's lambda
 * may live in one. */
static node *read_structor(mangle *m) {
  bool destructor = m->at[0] == 'D';
  if (!is_digit(m->at[1])) return NULL;
  m->at += 2;
  return make_word(m, TPS_NODE_NAME,
                   destructor ? "{destructor}" : "{constructor}");
}

static node *read_unqualified(mangle *m) {
  node *n;
  if (*m->at == 'L') m->at++; /* internal linkage */
  if (is_digit(*m->at)) n = read_source_name(m);
  else if (m->at[0] == 'U' && (m->at[1] == 't' || m->at[1] == 'l'))
    n = read_unnamed(m);
  else if (*m->at == 'C' || *m->at == 'D') n = read_structor(m);
  else n = read_operator_name(m);
  while (n != NULL && take(m, "B")) /* ABI tags */
    if (read_source_name(m) == NULL) return NULL;
  return n;
}

static bool is_hidden(const node *n) {
  return n->kind == TPS_NODE_NAME && n->size == 0;
}

/* scope::n, or n alone; scopes without a name leave no trace. */
static node *join(mangle *m, node *scope, node *n) {
  if (n == NULL || scope == NULL || is_hidden(scope)) return n;
  return is_hidden(n) ? scope : make(m, TPS_NODE_NESTED, scope, n);
}

static const char *standard_name(char c) {
  switch (c) {
  case 'a': return "std::allocator";
  case 'b': return "std::basic_string";
  case 's': return "std::string";
  case 'i': return "std::istream";
  case 'o': return "std::ostream";
  case 'd': return "std::iostream";
  default: return NULL;
  }
}

/* S_, S0_, Sa …; not St. */
static node *read_substitution(mangle *m) {
  unsigned index;
  if (!take(m, "S")) return NULL;
  const char *name = standard_name(*m->at);
  if (name != NULL) {
    m->at++;
    return make_word(m, TPS_NODE_NAME, name);
  }
  if (!read_index(m, 36, &index) || index >= m->substitution_count) return NULL;
  return m->substitutions[index];
}

/* T_, T0_ …: the argument itself where it is known. Inside a generic lambda
 * (and in TL0__ …) it is not: a name. */
static node *read_template_param(mangle *m) {
  unsigned index;
  if (!take(m, "T")) return NULL;
  if (take(m, "L")) {
    if (!read_index(m, 10, &index)) return NULL;
    return read_index(m, 10, &index) ? make_word(m, TPS_NODE_NAME, "auto")
                                     : NULL;
  }
  if (!read_index(m, 10, &index)) return NULL;
  if (!m->have_arguments) return make_word(m, TPS_NODE_NAME, "auto");
  for (node *cell = m->arguments; cell != NULL; cell = cell->b)
    if (index-- == 0) return cell->a;
  return NULL;
}

/* ---- template arguments -------------------------------------------------- */

static node *read_number_literal(mangle *m, node *type) {
  const char *text = m->at;
  size_t size = strcspn(text, "E");
  if (text[size] == '\0') return NULL;
  m->at += size + 1;
  int code = type->kind == TPS_NODE_BUILTIN ? type->code : 0;
  if (code == 'b' && size == 1)
    return make_word(m, TPS_NODE_TEXT, *text == '1' ? "true" : "false");
  bool negative = size > 0 && *text == 'n';
  node *n = make_text(m, TPS_NODE_TEXT, text + negative, size - negative);
  if (n != NULL && negative) {
    n = wrap(m, TPS_NODE_PREFIX, n);
    if (n != NULL) n->text = "-", n->size = 1;
  }
  if (n == NULL || (code != 0 && strchr("ijlmxyst", code) != NULL)) return n;
  node *cast = make(m, TPS_NODE_BINARY, type, n); /* (Kind)2 */
  if (cast != NULL) cast->text = ")", cast->size = 1;
  return cast;
}

/* An encoding inside another one, which has template arguments of its own. */
static node *read_inner_encoding(mangle *m) {
  node *params, *arguments = m->arguments;
  bool is_function, have_arguments = m->have_arguments;
  node *n = read_encoding(m, &params, &is_function);
  m->arguments = arguments;
  m->have_arguments = have_arguments;
  return take(m, "E") ? n : NULL;
}

/* L…E: a literal, or the address of something. */
static node *read_literal(mangle *m) {
  m->at++;
  if (take(m, "_Z") || take(m, "Z")) return read_inner_encoding(m);
  node *type = read_type(m);
  if (type == NULL) return NULL;
  if (type->kind == TPS_NODE_BUILTIN && type->code == 'n' + 'D') {
    (void)take(m, "0");
    return take(m, "E") ? make_word(m, TPS_NODE_TEXT, "nullptr") : NULL;
  }
  return read_number_literal(m, type);
}

static node *read_arguments(mangle *m, bool *ok);

static node *read_argument(mangle *m) {
  bool ok;
  if (*m->at == 'L') return read_literal(m);
  if (take(m, "J")) {
    node *list = read_arguments(m, &ok);
    return ok ? make(m, TPS_NODE_PACK, list, NULL) : NULL;
  }
  if (take(m, "X")) {
    node *n = read_expression(m);
    return take(m, "E") ? n : NULL;
  }
  return read_type(m);
}

/* Arguments up to E, which is taken. */
static node *read_arguments(mangle *m, bool *ok) {
  node *first = NULL, **tail = &first;
  *ok = false;
  if (!enter(m)) return NULL;
  while (*m->at != '\0' && *m->at != 'E') {
    node *argument = read_argument(m);
    if (argument == NULL) return NULL;
    node *cell = make(m, TPS_NODE_LIST, argument, NULL);
    if (cell == NULL) return NULL;
    *tail = cell;
    tail = &cell->b;
  }
  m->depth--;
  *ok = take(m, "E");
  return first;
}

/* `n` with the template arguments that follow. Those of the encoding's own name
 * are what T_ means in the rest of it. */
static node *with_arguments(mangle *m, node *n, bool encoding) {
  bool ok;
  if (n == NULL || !take(m, "I")) return NULL;
  node *list = read_arguments(m, &ok);
  if (!ok) return NULL;
  if (encoding) {
    m->arguments = list;
    m->have_arguments = true;
  }
  return make(m, TPS_NODE_TEMPLATE, n, list);
}

/* ---- composed names ------------------------------------------------------ */

/* One step of a nested name. *fresh: it is a new candidate for substitution. */
static node *read_component(mangle *m, node *scope, bool encoding,
                            bool *fresh) {
  *fresh = true;
  if (*m->at == 'S' && m->at[1] != 't') {
    *fresh = false;
    return scope == NULL ? read_substitution(m) : NULL;
  }
  if (take(m, "St")) {
    *fresh = false;
    return make_word(m, TPS_NODE_NAME, "std");
  }
  if (*m->at == 'T') return scope == NULL ? read_template_param(m) : NULL;
  if (*m->at == 'I')
    return scope != NULL ? with_arguments(m, scope, encoding) : NULL;
  if (*m->at == 'D' && (m->at[1] == 't' || m->at[1] == 'T')) {
    *fresh = false; /* the type has noted itself */
    return scope == NULL ? read_type(m) : NULL;
  }
  return join(m, scope, read_unqualified(m));
}

static node *read_nested(mangle *m, bool encoding) {
  node *n = NULL;
  bool fresh = false;
  while (*m->at == 'r' || *m->at == 'V' || *m->at == 'K') m->at++;
  if (*m->at == 'R' || *m->at == 'O') m->at++;
  while (!take(m, "E")) {
    if (--m->steps <= 0) return NULL;
    if (n != NULL && take(m, "M")) continue; /* initialiser of a data member */
    if (fresh && remember(m, n) == NULL) return NULL;
    n = read_component(m, n, encoding, &fresh);
    if (n == NULL) return NULL;
  }
  return n; /* the whole is a candidate only as a type: the caller's business */
}

static void read_discriminator(mangle *m) {
  unsigned n;
  if (*m->at != '_') return;
  const char *back = m->at++;
  bool two = take(m, "_");
  if (!read_number(m, &n) || (two && !take(m, "_"))) m->at = back;
}

/* Z <function> E <entity>: something inside a function. */
static node *read_local(mangle *m, bool encoding) {
  unsigned n;
  node *scope = read_inner_encoding(m);
  if (scope == NULL) return NULL;
  if (take(m, "s")) {
    read_discriminator(m);
    return scope;
  }
  if (take(m, "d") && !(take(m, "_") || (read_number(m, &n) && take(m, "_"))))
    return NULL;
  node *inner = read_name(m, encoding);
  read_discriminator(m);
  return inner != NULL ? make(m, TPS_NODE_NESTED, scope, inner) : NULL;
}

static node *read_name_inner(mangle *m, bool encoding) {
  if (take(m, "N")) return read_nested(m, encoding);
  if (take(m, "Z")) return read_local(m, encoding);
  if (*m->at == 'S' && m->at[1] != 't')
    return with_arguments(m, read_substitution(m), encoding);
  node *n;
  if (take(m, "St"))
    n = join(m, make_word(m, TPS_NODE_NAME, "std"), read_unqualified(m));
  else n = read_unqualified(m);
  if (n == NULL || *m->at != 'I') return n;
  return with_arguments(m, remember(m, n), encoding);
}

/* `encoding`: the name of the function or variable itself. */
static node *read_name(mangle *m, bool encoding) {
  if (!enter(m)) return NULL;
  node *n = read_name_inner(m, encoding);
  m->depth--;
  return n;
}

static const node *last_component(const node *n) {
  while (n->kind == TPS_NODE_NESTED) n = n->b;
  return n;
}

/* What follows _Z. Templates carry their result first. */
static node *read_encoding(mangle *m, node **params, bool *is_function) {
  bool ok;
  *params = NULL;
  *is_function = false;
  if (!enter(m)) return NULL;
  node *name = read_name(m, true);
  if (name == NULL) return NULL;
  m->depth--;
  if (*m->at == '\0' || *m->at == 'E' || *m->at == '.') return name;
  *is_function = true;
  if (last_component(name)->kind == TPS_NODE_TEMPLATE && read_type(m) == NULL)
    return NULL;
  *params = read_types(m, &ok);
  return ok ? name : NULL;
}

/* ---- types --------------------------------------------------------------- */

typedef struct builtin_row {
  char code;
  const char *text;
} builtin_row;

/* clang-format off */
static const builtin_row builtins[] = {
    {'v', "void"},        {'w', "wchar_t"},     {'b', "bool"},
    {'c', "char"},        {'a', "signed char"}, {'h', "unsigned char"},
    {'s', "short"},       {'t', "unsigned short"}, {'i', "int"},
    {'j', "unsigned int"}, {'l', "long"},       {'m', "unsigned long"},
    {'x', "long long"},   {'y', "unsigned long long"}, {'n', "__int128"},
    {'o', "unsigned __int128"}, {'f', "float"}, {'d', "double"},
    {'e', "long double"}, {'g', "__float128"},  {'z', "..."}};
/* clang-format on */

static const builtin_row d_builtins[] = {
    {'h', "_Float16"},      {'i', "char32_t"}, {'s', "char16_t"},
    {'u', "char8_t"},       {'a', "auto"},     {'c', "decltype(auto)"},
    {'n', "std::nullptr_t"}};

static node *make_builtin(mangle *m, const char *text, int code) {
  node *n = make_word(m, TPS_NODE_BUILTIN, text);
  if (n != NULL) n->code = (uint8_t)code;
  return n;
}

static node *read_builtin(mangle *m) {
  for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++)
    if (*m->at == builtins[i].code) {
      m->at++;
      return make_builtin(m, builtins[i].text, builtins[i].code);
    }
  return NULL;
}

/* Dh, Dn …: their codes are told from the one-letter ones by adding 'D'. */
static node *read_d_builtin(mangle *m) {
  if (take(m, "DF16b")) return make_builtin(m, "__bf16", 'b' + 'D');
  if (take(m, "DF16_")) return make_builtin(m, "_Float16", 'h' + 'D');
  for (size_t i = 0; i < sizeof d_builtins / sizeof d_builtins[0]; i++)
    if (m->at[1] == d_builtins[i].code) {
      m->at += 2;
      return make_builtin(m, d_builtins[i].text, d_builtins[i].code + 'D');
    }
  return NULL;
}

/* [Do] F [Y] <result> <parameters> [R|O] E */
static node *read_function(mangle *m) {
  bool ok;
  (void)take(m, "Y");
  node *result = read_type(m);
  if (result == NULL) return NULL;
  node *n = make(m, TPS_NODE_FUNCTION, result, NULL);
  if (n == NULL) return NULL;
  if (*m->at == 'v' && m->at[1] == 'E') m->at++;
  else {
    n->b = read_types(m, &ok);
    if (!ok) return NULL;
  }
  return take(m, "E") ? n : NULL;
}

/* A <bound> _ <element> */
static node *read_array(mangle *m) {
  const char *text = m->at;
  unsigned n;
  size_t size = 0;
  if (is_digit(*m->at)) {
    if (!read_number(m, &n)) return NULL;
    size = (size_t)(m->at - text);
  } else if (*m->at != '_' && read_expression(m) == NULL) return NULL;
  if (!take(m, "_")) return NULL;
  node *array = wrap(m, TPS_NODE_ARRAY, read_type(m));
  if (array != NULL) array->text = text, array->size = (uint32_t)size;
  return array;
}

static node *read_member_pointer(mangle *m) {
  node *class = read_type(m);
  node *member = class != NULL ? read_type(m) : NULL;
  return member != NULL ? make(m, TPS_NODE_MEMBER, class, member) : NULL;
}

/* r V K in that order, taken as one. */
static node *read_qualified(mangle *m) {
  static const char *const texts[] = {" const", " volatile", " volatile const"};
  (void)take(m, "r"); /* __restrict__ matters to nobody here */
  int is_volatile = take(m, "V"), is_const = take(m, "K");
  node *type = read_type(m);
  if (type == NULL || !(is_volatile || is_const)) return remember(m, type);
  node *n = wrap(m, TPS_NODE_QUALIFIED, type);
  if (n == NULL) return NULL;
  n->text = texts[is_volatile * 2 + is_const - 1];
  n->size = (uint32_t)strlen(n->text);
  n->code = (uint8_t)is_const;
  return remember(m, n);
}

/* D…: what is no builtin of two letters. */
static node *read_d_type(mangle *m) {
  unsigned bits;
  if (take(m, "Dp"))
    return remember(m, wrap(m, TPS_NODE_EXPANSION, read_type(m)));
  if (take(m, "Dt") || take(m, "DT")) {
    node *n = wrap(m, TPS_NODE_CALL, read_expression(m));
    if (n == NULL || !take(m, "E")) return NULL;
    n->text = "decltype", n->size = 8;
    return remember(m, n);
  }
  if (take(m, "Dv")) { /* GNU vector */
    if (!read_number(m, &bits) || !take(m, "_")) return NULL;
    node *n = wrap(m, TPS_NODE_CALL, read_type(m));
    if (n != NULL) n->text = "vector", n->size = 6;
    return remember(m, n);
  }
  if (take(m, "Do")) { /* noexcept */
    if (!take(m, "F")) return NULL;
    return remember(m, read_function(m));
  }
  return read_d_builtin(m);
}

static node *read_template_type(mangle *m) {
  if (m->at[1] == 's' || m->at[1] == 'u' || m->at[1] == 'e') { /* struct X */
    m->at += 2;
    return remember(m, read_name(m, false));
  }
  node *n = remember(m, read_template_param(m));
  if (n == NULL || *m->at != 'I') return n;
  return remember(m, with_arguments(m, n, false));
}

static node *read_s_type(mangle *m) {
  if (m->at[1] == 't') return remember(m, read_name(m, false));
  node *n = read_substitution(m);
  if (n == NULL || *m->at != 'I') return n;
  return remember(m, with_arguments(m, n, false));
}

/* u <name>: a builtin of the vendor; U <name> <type>: its qualifier. */
static node *read_vendor(mangle *m) {
  bool qualifier = *m->at++ == 'U', ok;
  node *n = read_source_name(m);
  if (n == NULL) return NULL;
  if (take(m, "I")) {
    read_arguments(m, &ok);
    if (!ok) return NULL;
  }
  return remember(m, qualifier ? read_type(m) : n);
}

static node *read_indirection(mangle *m, tps_node_kind kind) {
  m->at++;
  return remember(m, wrap(m, kind, read_type(m)));
}

static node *read_type_inner(mangle *m) {
  char c = *m->at;
  if (c == 'U' && (m->at[1] == 'l' || m->at[1] == 't'))
    return remember(m, read_name(m, false));
  switch (c) {
  case 'r':
  case 'V':
  case 'K': return read_qualified(m);
  case 'P': return read_indirection(m, TPS_NODE_POINTER);
  case 'R': return read_indirection(m, TPS_NODE_LVALUE);
  case 'O': return read_indirection(m, TPS_NODE_RVALUE);
  case 'F': m->at++; return remember(m, read_function(m));
  case 'A': m->at++; return remember(m, read_array(m));
  case 'M': m->at++; return remember(m, read_member_pointer(m));
  case 'D': return read_d_type(m);
  case 'T': return read_template_type(m);
  case 'S': return read_s_type(m);
  case 'u':
  case 'U': return read_vendor(m);
  case 'N':
  case 'Z': return remember(m, read_name(m, false));
  default: break;
  }
  if (is_digit(c)) return remember(m, read_name(m, false));
  return read_builtin(m);
}

static node *read_type(mangle *m) {
  if (!enter(m)) return NULL;
  node *n = read_type_inner(m);
  m->depth--;
  return n;
}

/* ---- expressions --------------------------------------------------------- */

/* They occur in the types of constrained templates; only their extent and a
 * rough text matter. */

static node *make_call(mangle *m, const char *text, node *list) {
  node *n = make_word(m, TPS_NODE_CALL, text);
  if (n != NULL) n->b = list;
  return n;
}

/* Expressions up to E. */
static node *read_expressions(mangle *m, const char *text) {
  node *first = NULL, **tail = &first;
  while (!take(m, "E")) {
    node *item = read_expression(m);
    node *cell = item != NULL ? make(m, TPS_NODE_LIST, item, NULL) : NULL;
    if (cell == NULL) return NULL;
    *tail = cell;
    tail = &cell->b;
  }
  return make_call(m, text, first);
}

/* sr <type> <name> [<args>]: a member of a dependent type. */
static node *read_member_of(mangle *m) {
  node *scope = read_type(m);
  if (scope == NULL) return NULL;
  node *n = join(m, scope, read_unqualified(m));
  if (n != NULL && *m->at == 'I') n = with_arguments(m, n, false);
  return n;
}

/* fp_, fp0_, fL0p_ …: a parameter of the function. */
static node *read_function_param(mangle *m) {
  unsigned n;
  if (take(m, "T")) return make_word(m, TPS_NODE_NAME, "this");
  while (*m->at == 'r' || *m->at == 'V' || *m->at == 'K') m->at++;
  return read_index(m, 10, &n) ? make_word(m, TPS_NODE_NAME, "parameter")
                               : NULL;
}

static node *read_cast(mangle *m) {
  node *type = read_type(m);
  if (type == NULL) return NULL;
  if (take(m, "_")) return read_expressions(m, "cast");
  node *n = read_expression(m);
  return n != NULL ? make_call(m, "cast", make(m, TPS_NODE_LIST, n, NULL))
                   : NULL;
}

static node *read_operation(mangle *m) {
  const operator_row *row = find_operator(m->at);
  if (row == NULL || row->arity == 0) return NULL;
  m->at += 2;
  if (row->arity == 1) (void)take(m, "_"); /* pp_ and mm_: prefix forms */
  node *a = read_expression(m);
  if (a == NULL) return NULL;
  if (row->arity == 1) {
    node *n = make(m, TPS_NODE_PREFIX, a, NULL);
    if (n != NULL) n->text = row->text, n->size = (uint32_t)strlen(row->text);
    return n;
  }
  node *b = read_expression(m);
  if (b == NULL || (row->arity == 3 && read_expression(m) == NULL)) return NULL;
  node *n = make(m, TPS_NODE_BINARY, a, b);
  if (n != NULL) n->text = row->text, n->size = (uint32_t)strlen(row->text);
  return n;
}

static node *read_expression_inner(mangle *m) {
  const char *at = m->at;
  if (*at == 'L') return read_literal(m);
  if (*at == 'T') return read_template_param(m);
  if (take(m, "cl")) return read_expressions(m, "call");
  if (take(m, "cv")) return read_cast(m);
  if (take(m, "sr")) return read_member_of(m);
  if (take(m, "st") || take(m, "at")) {
    node *type = read_type(m);
    return type != NULL
               ? make_call(m, "sizeof", make(m, TPS_NODE_LIST, type, NULL))
               : NULL;
  }
  if (take(m, "sz") || take(m, "az") || take(m, "nx"))
    return wrap(m, TPS_NODE_CALL, read_expression(m));
  if (take(m, "sp")) return wrap(m, TPS_NODE_EXPANSION, read_expression(m));
  if (take(m, "sZ")) {
    node *n = *m->at == 'T' ? read_template_param(m) : read_expression(m);
    if (n == NULL) return NULL;
    return make_call(m, "sizeof...", make(m, TPS_NODE_LIST, n, NULL));
  }
  if (take(m, "fp")) return read_function_param(m);
  if (take(m, "il")) return read_expressions(m, "");
  if (take(m, "tl")) return read_type(m) ? read_expressions(m, "") : NULL;
  if (take(m, "on")) return read_unqualified(m);
  if (is_digit(*at)) {
    node *n = read_source_name(m);
    return n != NULL && *m->at == 'I' ? with_arguments(m, n, false) : n;
  }
  return read_operation(m);
}

static node *read_expression(mangle *m) {
  if (!enter(m)) return NULL;
  node *n = read_expression_inner(m);
  m->depth--;
  return n;
}

/* ---- packs --------------------------------------------------------------- */

/* The first pack that `n` mentions. */
static node *find_pack(mangle *m, node *n) {
  if (n == NULL || !enter(m)) return NULL;
  node *found = n->kind == TPS_NODE_PACK ? n : find_pack(m, n->a);
  if (found == NULL && n->kind != TPS_NODE_PACK) found = find_pack(m, n->b);
  m->depth--;
  return found;
}

/* A copy of `n` with element `index` in the place of each pack. */
static node *instance(mangle *m, node *n, unsigned index) {
  if (!enter(m)) return NULL;
  node *copy = NULL;
  if (n->kind == TPS_NODE_PACK) {
    node *cell = n->a;
    while (cell != NULL && index-- > 0) cell = cell->b;
    copy = cell != NULL ? cell->a : NULL;
  } else {
    node *a = n->a != NULL ? instance(m, n->a, index) : NULL;
    node *b = n->b != NULL ? instance(m, n->b, index) : NULL;
    bool whole = (a != NULL) == (n->a != NULL) && (b != NULL) == (n->b != NULL);
    copy = whole ? make(m, (tps_node_kind)n->kind, a, b) : NULL;
    if (copy != NULL)
      copy->code = n->code, copy->text = n->text, copy->size = n->size;
  }
  m->depth--;
  return copy;
}

/* Puts what an expansion stands for in its place, in a list of parameters. */
static bool expand(mangle *m, node **list) {
  while (*list != NULL) {
    node *cell = *list;
    node *pack =
        cell->a->kind == TPS_NODE_EXPANSION ? find_pack(m, cell->a->a) : NULL;
    if (pack == NULL) {
      list = &cell->b;
      continue;
    }
    node **tail = list;
    unsigned index = 0;
    for (node *e = pack->a; e != NULL; e = e->b) {
      node *type = instance(m, cell->a->a, index++);
      node *made = type != NULL ? make(m, TPS_NODE_LIST, type, NULL) : NULL;
      if (made == NULL) return false;
      *tail = made;
      tail = &made->b;
    }
    *tail = cell->b;
    list = tail;
  }
  return true;
}

bool tps_mangle_name(mangle *m, const char *mangled, node **name, node **params,
                     bool *is_function) {
  if (strncmp(mangled, "_Z", 2) != 0) return false;
  start(m, mangled + 2);
  *name = read_encoding(m, params, is_function);
  if (*name == NULL || (*m->at != '\0' && *m->at != '.')) return false;
  return expand(m, params);
}

node *tps_mangle_type(mangle *m, const char *mangled) {
  start(m, mangled);
  remember(m, make_word(m, TPS_NODE_NAME, "sig"));
  return read_type(m);
}

bool tps_mangle_function_type(mangle *m, const char *mangled, node **params) {
  node *type = tps_mangle_type(m, mangled);
  if (type == NULL || type->kind != TPS_NODE_FUNCTION) return false;
  *params = type->b;
  return true;
}

/* ---- text ---------------------------------------------------------------- */

static void put(mangle *m, const char *text, size_t size) {
  if (m->overflow || size >= MAX_TEXT - m->size) {
    m->overflow = true;
    return;
  }
  memcpy(m->out + m->size, text, size);
  m->size += size;
}

static void put_word(mangle *m, const char *text) {
  put(m, text, strlen(text));
}

static void put_left(mangle *m, const node *n);
static void put_right(mangle *m, const node *n);

static void put_node(mangle *m, const node *n) {
  if (n == NULL) return;
  put_left(m, n);
  put_right(m, n);
}

static void put_list(mangle *m, const node *list) {
  size_t from = m->size;
  for (; list != NULL && !m->overflow; list = list->b) {
    size_t before = m->size;
    if (before != from) put_word(m, ", ");
    size_t after = m->size;
    put_node(m, list->a);
    if (m->size == after && !m->overflow) m->size = before; /* empty pack */
  }
}

static bool needs_parens(const node *n) {
  return n->kind == TPS_NODE_FUNCTION || n->kind == TPS_NODE_ARRAY;
}

static void put_pointer(mangle *m, const node *n) {
  put_left(m, n->a);
  if (needs_parens(n->a)) put_word(m, "(");
  put_word(m, n->kind == TPS_NODE_POINTER  ? "*"
              : n->kind == TPS_NODE_LVALUE ? "&"
                                           : "&&");
}

static void put_member(mangle *m, const node *n) {
  put_left(m, n->b);
  put_word(m, needs_parens(n->b) ? "(" : " ");
  put_node(m, n->a);
  put_word(m, "::*");
}

static void put_binary(mangle *m, const node *n) {
  put_word(m, "(");
  put_node(m, n->a);
  if (n->text[0] != ')') put_word(m, " ");
  put(m, n->text, n->size);
  if (n->text[0] != ')') put_word(m, " ");
  put_node(m, n->b);
  if (n->text[0] != ')') put_word(m, ")");
}

static void put_template(mangle *m, const node *n) {
  put_node(m, n->a);
  put_word(m, "<");
  put_list(m, n->b);
  put_word(m, ">");
}

static void put_left_inner(mangle *m, const node *n) {
  switch (n->kind) {
  case TPS_NODE_NESTED:
    put_node(m, n->a);
    put_word(m, "::");
    put_node(m, n->b);
    break;
  case TPS_NODE_TEMPLATE: put_template(m, n); break;
  case TPS_NODE_POINTER:
  case TPS_NODE_LVALUE:
  case TPS_NODE_RVALUE: put_pointer(m, n); break;
  case TPS_NODE_MEMBER: put_member(m, n); break;
  case TPS_NODE_QUALIFIED:
    put_left(m, n->a);
    put(m, n->text, n->size);
    break;
  case TPS_NODE_ARRAY:
  case TPS_NODE_FUNCTION:
    if (n->a != NULL) put_left(m, n->a);
    put_word(m, " ");
    break;
  case TPS_NODE_PREFIX:
    put(m, n->text, n->size);
    put_node(m, n->a);
    break;
  case TPS_NODE_BINARY: put_binary(m, n); break;
  case TPS_NODE_CALL:
    put(m, n->text != NULL ? n->text : "", n->size);
    put_word(m, "(");
    put_node(m, n->a);
    put_list(m, n->b);
    put_word(m, ")");
    break;
  case TPS_NODE_PACK: put_list(m, n->a); break;
  case TPS_NODE_EXPANSION:
    put_node(m, n->a);
    if (n->a->kind != TPS_NODE_PACK) put_word(m, "...");
    break;
  case TPS_NODE_LIST: put_list(m, n); break;
  default: put(m, n->text, n->size); break;
  }
}

/* What stands before the declared thing, and below what stands after it. */
static void put_left(mangle *m, const node *n) {
  if (m->overflow || !enter(m)) {
    m->overflow = true;
    return;
  }
  put_left_inner(m, n);
  m->depth--;
}

static void put_right_inner(mangle *m, const node *n) {
  switch (n->kind) {
  case TPS_NODE_POINTER:
  case TPS_NODE_LVALUE:
  case TPS_NODE_RVALUE:
    if (needs_parens(n->a)) put_word(m, ")");
    put_right(m, n->a);
    break;
  case TPS_NODE_MEMBER:
    if (needs_parens(n->b)) put_word(m, ")");
    put_right(m, n->b);
    break;
  case TPS_NODE_QUALIFIED: put_right(m, n->a); break;
  case TPS_NODE_ARRAY:
    put_word(m, "[");
    put(m, n->text, n->size);
    put_word(m, "]");
    put_right(m, n->a);
    break;
  case TPS_NODE_FUNCTION:
    put_word(m, "(");
    put_list(m, n->b);
    put_word(m, ")");
    if (n->a != NULL) put_right(m, n->a);
    break;
  default: break;
  }
}

static void put_right(mangle *m, const node *n) {
  if (m->overflow || !enter(m)) {
    m->overflow = true;
    return;
  }
  put_right_inner(m, n);
  m->depth--;
}

static void put_plain(mangle *m, const node *n) {
  if (n->kind == TPS_NODE_NESTED) {
    put_node(m, n->a);
    put_word(m, "::");
    n = n->b;
  }
  if (n->kind == TPS_NODE_TEMPLATE) n = n->a;
  if (n->kind == TPS_NODE_NESTED) put_plain(m, n);
  else put_node(m, n);
}

char *tps_mangle_text(mangle *m, const node *n, bool plain) {
  m->size = 0;
  m->overflow = false;
  m->depth = 0;
  m->steps = MAX_STEPS;
  if (n != NULL && plain) put_plain(m, n);
  else if (n != NULL) put_node(m, n);
  if (m->overflow) return NULL;
  return strndup(m->out, m->size);
}

const char *tps_mangle_identifier(const node *n, size_t *size) {
  while (n->kind == TPS_NODE_NESTED || n->kind == TPS_NODE_TEMPLATE)
    n = n->kind == TPS_NODE_NESTED ? n->b : n->a;
  if (n->kind != TPS_NODE_NAME) return NULL;
  *size = n->size;
  return n->text;
}
