/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Inside the reader: the state of one parse and what its files offer each
 * other. Every function here that meets an error leaves the parse through
 * tps_ptx_stop (a longjmp to tps_ptx_parse): nothing the parse owns outside its
 * reader, so nothing leaks and no caller has a code to pass on.
 *
 * parser.c the module; lexer.c tokens; names.c names, scopes, labels;
 * constant.c constant expressions; variable.c, initialiser.c variables;
 * function.c heads; body.c, directive.c statements; operand.c, instruction.c,
 * call.c instructions; checks.c what an opcode demands of its operands;
 * uses.c, liveness.c registers.
 */
#ifndef TPS_PTX_READER_H
#define TPS_PTX_READER_H

#include <setjmp.h>

#include "ptx/arena.h"
#include "ptx/ptx.h"
#include "ptx/words.h"

/* A growing array of the parse; freed at its end, so never kept. */
typedef struct buffer {
  char *data;
  size_t used, room; /* bytes */
} buffer;

/* One character of punctuation is its own kind. */
typedef enum token_kind {
  T_END = 0,
  T_NAME = 256, /* foo, %r1, $L_2, _ */
  T_WORD,       /* .global, without the dot */
  T_INTEGER,
  T_FLOAT,
  T_STRING, /* without the quotes */
  T_LEFT,
  T_RIGHT,
  T_LE,
  T_GE,
  T_EQ,
  T_NE,
  T_AND,
  T_OR /* << >> <= … */
} token_kind;

typedef struct token {
  int kind;
  uint8_t type; /* of numbers: U64, S64, F32, F64 */
  uint32_t line;
  uint32_t at, size; /* in the text */
  uint64_t value;    /* bits of a number */
} token;

/* A name that occurs in the text, once for each spelling. */
typedef struct name {
  const char *text; /* NUL-terminated, in the arena */
  uint32_t size, hash;
  int32_t symbol; /* innermost meaning, or -1 */
  int32_t label;  /* label of the scope being closed, or -1 */
} name;

typedef enum symbol_kind {
  SYM_REGISTER,
  SYM_VECTOR,    /* `count` registers from `index` */
  SYM_LOCAL_VAR, /* of the function */
  SYM_MODULE_VAR,
  SYM_FUNCTION
} symbol_kind;

typedef struct symbol {
  uint8_t kind;
  int32_t index, count;
  int32_t name, outer; /* the meaning it hides */
  int32_t scope;       /* depth */
} symbol;

typedef struct label {
  int32_t name;
  int32_t index; /* instruction, or table */
  bool table;
  uint32_t line;
} label;

/* A label or table used before it was seen. */
typedef struct fixup {
  int32_t name;
  uint32_t line;
  bool table;
  int32_t *slot;                 /* where its number goes, or NULL for … */
  uint32_t instruction, operand; /* … an operand of the function */
} fixup;

typedef struct scope {
  uint32_t symbols, labels, fixups; /* counts when it was opened */
  uint64_t call_bytes;
} scope;

/* The splitting of an opcode, kept for the next time it is met. */
typedef struct split {
  const char *text;
  uint32_t size, hash;
  tps_ptx_instruction instruction;
} split;

/* A .reg parameter of the function: a variable and a register. */
typedef struct reg_param {
  int32_t var, reg;
  bool result;
} reg_param;

typedef struct reader {
  jmp_buf stop;
  tps_error *err;
  int code;
  arena memory;
  tps_ptx_module module;

  const char *text; /* of the module, NUL-terminated */
  uint32_t pos, size, line;
  token tok;

  buffer names; /* name */
  uint32_t *name_slots;
  uint32_t name_slot_count;
  buffer symbols; /* symbol */
  buffer labels;  /* label, of the open scopes */
  buffer fixups;  /* fixup, likewise */
  buffer scopes;  /* scope */
  buffer splits;  /* split */
  uint32_t *split_slots;
  uint32_t split_slot_count;

  bool address_size_given; /* else 64 is only likely */
  buffer vars;             /* tps_ptx_var of the module */
  buffer functions;        /* tps_ptx_function */
  buffer locs;             /* tps_ptx_loc */
  buffer files;            /* const char * */
  buffer aliases;          /* alias (parser.c) */
  uint64_t register_total, instruction_total, initialised_total, target_total;

  /* the function being read */
  tps_ptx_function *function;
  buffer registers;     /* tps_ptx_register */
  buffer locals;        /* tps_ptx_var */
  buffer instructions;  /* tps_ptx_instruction */
  buffer parts;         /* tps_ptx_operand */
  buffer tables;        /* tps_ptx_table */
  buffer operand_stack; /* tps_ptx_operand: elements of open braces */
  buffer after;         /* tps_ptx_instruction: to follow a call */
  buffer reg_params;    /* reg_param */
  uint32_t label_end;   /* instructions before the last label */
  uint64_t call_bytes;  /* in use at this point */
  int32_t loc;
  int depth; /* of nested expressions, operands */

  tps_ptx_instruction now; /* being read */
  buffer scratch;          /* bytes */
  buffer bytes;            /* of an initialiser */
  buffer relocations;      /* tps_ptx_relocation, of an initialiser */
} reader;

/* --- parser.c: errors and memory */

/* Ends the parse: "line N: " and the message. */
_Noreturn void tps_ptx_stop(reader *r, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void tps_ptx_stop_code(reader *r, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void *tps_ptx_take(reader *r, size_t size); /* zeroed, of the arena */
/* Room for one more element of `size` bytes, zeroed. */
void *tps_ptx_push(reader *r, buffer *b, size_t size);
void *tps_ptx_copy(reader *r, const void *data, size_t size); /* or NULL */

#define COUNT(b, type) ((uint32_t)((b).used / sizeof(type)))
#define AT(b, type, i) (&((type *)(void *)(b).data)[i])

/* --- lexer.c */

void tps_ptx_next(reader *r); /* reads the next token into r->tok */
bool tps_ptx_is(const reader *r, int kind);
bool tps_ptx_is_word(const reader *r, const char *word); /* .word */
bool tps_ptx_is_name(const reader *r, const char *text);
bool tps_ptx_accept(reader *r, int kind); /* and go on if so */
bool tps_ptx_accept_word(reader *r, const char *word);
/* Stops unless the token is of the kind: "expected ';' after X, found Y". */
void tps_ptx_expect(reader *r, int kind, const char *after);
_Noreturn void tps_ptx_unexpected(reader *r, const char *wanted);
/* The token at hand as text for messages, cut, in a buffer of 80 bytes. */
const char *tps_ptx_token_text(const reader *r, char *into);
/* The rest of an opcode whose mnemonic is the token at hand; sets tok to the
 * token after it. Gives its place in the text, or a copy without blanks. */
const char *tps_ptx_opcode_rest(reader *r, uint32_t start, uint32_t *size);
void tps_ptx_skip_line(reader *r);
/* To behind the closing brace of a section that began on that line. */
void tps_ptx_skip_section(reader *r, uint32_t line);

/* --- names.c */

int32_t tps_ptx_intern(reader *r, const char *text, uint32_t size);
int32_t tps_ptx_token_name(reader *r); /* interns the token at hand */
const char *tps_ptx_name_text(const reader *r, int32_t name);
uint32_t tps_ptx_hash(const char *text, uint32_t size);
/* Gives a name a meaning in the innermost scope. */
void tps_ptx_declare(reader *r, int32_t name, symbol_kind kind, int32_t index,
                     int32_t count);
const symbol *tps_ptx_lookup(const reader *r, int32_t name); /* or NULL */
bool tps_ptx_declared_here(const reader *r, int32_t name);
void tps_ptx_open_scope(reader *r);
/* Resolves the labels used in the scope; those it lacks pass to the outer one,
 * or are an error when there is none in the function. */
void tps_ptx_close_scope(reader *r);
void tps_ptx_add_label(reader *r, int32_t name, int32_t index, bool table,
                       uint32_t line);

/* --- constant.c */

typedef struct constant {
  uint8_t type; /* U64, S64, F32 or F64 */
  uint64_t bits;
  const symbol *symbol; /* then bits is the addend; NULL for a number */
  bool generic;
  int mask; /* byte of the address, or -1 */
} constant;

constant tps_ptx_constant(reader *r);
/* Goes on with an expression that begins with -number (the minus is read). */
constant tps_ptx_constant_negative(reader *r);
uint64_t tps_ptx_unsigned(reader *r, const char *what, uint64_t limit);
double tps_ptx_constant_double(constant c);

/* --- variable.c */

typedef struct declaration { /* what stands before the names */
  uint8_t space, type, linkage, vector;
  bool managed, pointer;
  uint32_t align;
} declaration;

/* From the token after the space to the one before the first name. */
declaration tps_ptx_declaration(reader *r, tps_ptx_space space,
                                uint8_t linkage);
/* Name, dimensions, initialiser; r->tok is the name. */
tps_ptx_var tps_ptx_declarator(reader *r, const declaration *d, int32_t *name);
/* A declaration of the module or of a body, the space word being at hand. */
void tps_ptx_variables(reader *r, tps_ptx_space space, uint8_t linkage);
uint64_t tps_ptx_place(reader *r, uint64_t *bytes, const tps_ptx_var *var,
                       uint64_t limit);

/* --- function.c */

void tps_ptx_function_read(reader *r, bool entry, uint8_t linkage);
/* A parameter list in parentheses, pushed to `list`; gives their number. */
uint32_t tps_ptx_params(reader *r, buffer *list, tps_ptx_role role);
/* A variable of the body: places it in its area and gives its number. */
int32_t tps_ptx_add_local(reader *r, tps_ptx_var *var);

/* --- body.c, directive.c */

void tps_ptx_body(reader *r); /* from '{' to behind its '}' */
int32_t tps_ptx_add_register(reader *r, const char *name, uint8_t type);
void tps_ptx_registers(reader *r); /* .reg …; */
void tps_ptx_read_loc(reader *r);
void tps_ptx_read_file(reader *r);
void tps_ptx_skip_pragma(reader *r);
/* .branchtargets, .calltargets or .callprototype behind a label. */
bool tps_ptx_read_table(reader *r, int32_t name, uint32_t line);

/* --- operand.c */

/* One operand into r->now (more for [a, {b}]). */
void tps_ptx_operand_read(reader *r);
tps_ptx_operand tps_ptx_operand_value(reader *r); /* one, not in brackets */
void tps_ptx_add_operand(reader *r, tps_ptx_operand operand);
void tps_ptx_label_operand(reader *r, bool table);
/* Moves operands `from` and up of the operand stack to the function's parts. */
tps_ptx_operand tps_ptx_group(reader *r, uint8_t kind, uint32_t from);

/* --- instruction.c, call.c */

typedef struct opcode_at { /* of the text; r->tok is what follows it */
  const char *text;
  uint32_t size, at, line;
} opcode_at;

void tps_ptx_instruction_read(reader *r, opcode_at opcode, int32_t guard,
                              bool negated);
void tps_ptx_emit(reader *r, const tps_ptx_instruction *instruction);
void tps_ptx_call_read(reader *r); /* into r->now, and what goes around it */
/* st.param or ld.param between a register or number and a variable, guarded
 * and placed as `like`. */
tps_ptx_instruction tps_ptx_param_move(reader *r,
                                       const tps_ptx_instruction *like,
                                       bool store, int32_t var,
                                       tps_ptx_operand value);

/* --- checks.c */

/* Stops at operands that the opcode does not take. */
void tps_ptx_check(reader *r, const tps_ptx_instruction *instruction);

#endif
