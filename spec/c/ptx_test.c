/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * The PTX reader: what it makes of each construct of the language, what it
 * says of broken text, and that no text, however cut, harms it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/ptx.h"

/* --- small helpers */

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

typedef const tps_ptx_instruction instruction;
typedef const tps_ptx_function function;

static tps_ptx_module *read_text(const char *text) {
  tps_error err;
  tps_ptx_module *module = NULL;
  int code = tps_ptx_parse(text, strlen(text), &module, &err);
  if (code != 0) fail_msg("%s", err.message);
  return module;
}

/* HEAD and the text. */
static tps_ptx_module *read_module(const char *text) {
  char *all = malloc(strlen(HEAD) + strlen(text) + 1);
  strcpy(all, HEAD);
  strcat(all, text);
  tps_ptx_module *module = read_text(all);
  free(all);
  return module;
}

#define REGISTERS                                                              \
  ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<20>; .reg .b64 %d<20>; "    \
  ".reg .f32 %f<8>; .reg .f64 %g<8>; .reg .b128 %q<2>;\n"

static char *kernel_text(const char *body) {
  static const char *const head =
      HEAD ".visible .entry k(.param .u64 a, .param .u64 b)\n{ " REGISTERS;
  char *all = malloc(strlen(head) + strlen(body) + 8);
  strcpy(all, head);
  strcat(all, body);
  strcat(all, "\n}\n");
  return all;
}

/* A kernel k(a, b) with this body, which begins on line 6. */
static tps_ptx_module *read_body(const char *body) {
  char *all = kernel_text(body);
  tps_ptx_module *module = read_text(all);
  free(all);
  return module;
}

static function *find(const tps_ptx_module *m, const char *name) {
  for (uint32_t i = 0; i < m->function_count; i++)
    if (strcmp(m->functions[i].name, name) == 0) return &m->functions[i];
  fail_msg("no function %s", name);
  return NULL;
}

static const tps_ptx_var *find_var(const tps_ptx_module *m, const char *name) {
  for (uint32_t i = 0; i < m->var_count; i++)
    if (strcmp(m->vars[i].name, name) == 0) return &m->vars[i];
  fail_msg("no variable %s", name);
  return NULL;
}

static void check_message(const char *text, int code, const char *message) {
  tps_error err;
  tps_ptx_module *module;
  int got = tps_ptx_parse(text, strlen(text), &module, &err);
  if (got == 0) {
    tps_ptx_free(module);
    fail_msg("accepted, but should say: %s", message);
  }
  assert_null(module);
  assert_string_equal(err.message, message);
  assert_int_equal(got, code);
}

static void body_fails(const char *body, const char *message) {
  char *all = kernel_text(body);
  check_message(all, TPS_INVALID_PTX, message);
  free(all);
}

static void module_fails(const char *text, const char *message) {
  char *all = malloc(strlen(HEAD) + strlen(text) + 1);
  strcpy(all, HEAD);
  strcat(all, text);
  check_message(all, TPS_INVALID_PTX, message);
  free(all);
}

static const char *reg_name(function *f, const tps_ptx_operand *o) {
  assert_int_equal(o->kind, TPS_PTX_OPD_REG);
  return f->registers[o->index].name;
}

/* --- version, target, size of addresses */

static void version_and_target(void **state) {
  (void)state;
  tps_ptx_module *m = read_text(".version 9.0\n.target sm_90a, debug\n"
                                ".address_size 64\n");
  assert_int_equal(m->version, 90);
  assert_int_equal(m->target, 90);
  assert_true(m->target_specific);
  assert_int_equal(m->address_size, 64);
  tps_ptx_free(m);
}

static void old_version(void **state) {
  (void)state;
  tps_ptx_module *m = read_text(".version 1.4\n.target sm_13, map_f64_to_f32\n"
                                ".entry k { ret; }");
  assert_int_equal(m->version, 14);
  assert_int_equal(m->address_size, 64);
  assert_true(m->functions[0].entry);
  tps_ptx_free(m);
}

static void versions_refused(void **state) {
  (void)state;
  check_message(".version 10.0\n.target sm_80\n", TPS_UNSUPPORTED_PTX_VERSION,
                "PTX version 10.0 (this reader knows 1.0 to 9.9)");
  check_message(".version 0.9\n", TPS_UNSUPPORTED_PTX_VERSION,
                "PTX version 0.9 (this reader knows 1.0 to 9.9)");
  check_message(".version 7.x\n", TPS_INVALID_PTX,
                "line 1: expected a version such as 8.0, found '7'");
  check_message(".version;\n", TPS_INVALID_PTX,
                "line 1: expected a version such as 8.0, found ';'");
}

static void no_ptx(void **state) {
  (void)state;
  const char *said = "not PTX: the text does not begin with .version";
  check_message("", TPS_INVALID_IMAGE, said);
  check_message("// nothing\n", TPS_INVALID_IMAGE, said);
  check_message("\177ELF", TPS_INVALID_PTX, "line 1: unexpected byte 0x7f");
  check_message("int main() {}", TPS_INVALID_IMAGE, said);
}

static void targets_refused(void **state) {
  (void)state;
  check_message(".version 8.0\n.target fermi\n", TPS_INVALID_PTX,
                "line 2: '.target' names no architecture");
  check_message(".version 8.0\n.target sm_8x\n", TPS_INVALID_PTX,
                "line 2: expected a target such as sm_80, found 'sm_8x'");
  check_message(".version 8.0\n.entry k() { ret; }\n", TPS_INVALID_PTX,
                "line 2: '.target' is missing");
  check_message(".version 8.0\n.target sm_80\n.address_size 16\n",
                TPS_INVALID_PTX,
                "line 3: '.address_size 16': programs of 64 bits are all "
                "there is");
}

static void nul_bytes(void **state) {
  (void)state;
  tps_error err;
  tps_ptx_module *m;
  static const char inside[] = HEAD ".entry\0k() { ret; }";
  static const char trailing[] = HEAD ".entry k() { ret; }\0\0";
  assert_int_equal(tps_ptx_parse(inside, sizeof inside, &m, &err),
                   TPS_INVALID_PTX);
  assert_string_equal(err.message, "line 4: NUL byte in the text");
  assert_int_equal(tps_ptx_parse(trailing, sizeof trailing, &m, &err), 0);
  tps_ptx_free(m);
}

/* --- blanks and comments */

static void blanks(void **state) {
  (void)state;
  tps_ptx_module *m = read_text(
      "// begin\r\n/* two\r\n lines */ .version 8.0\r\n.target sm_80\r\n"
      "# 1 \"a.cu\"\r\n.entry k()\r\n{\r\n\tret ;\r\n}\r\n// end");
  instruction *i = &m->functions[0].instructions[0];
  assert_int_equal(i->op, TPS_PTX_OP_RET);
  assert_int_equal(i->line, 8);
  tps_ptx_free(m);
}

static void words_apart(void **state) {
  (void)state;
  tps_ptx_module *m =
      read_body("add .s32 %r1, %r2, %r3; ld.const[2].f32 %f1, [%d1]; "
                "ld .const .f32%f1,[%d1];ret;");
  instruction *i = m->functions[0].instructions;
  assert_int_equal(i[0].op, TPS_PTX_OP_ADD);
  assert_int_equal(i[0].types[0], TPS_PTX_S32);
  assert_int_equal(i[1].space, TPS_PTX_CONST);
  assert_int_equal(i[1].types[0], TPS_PTX_F32);
  tps_ptx_free(m);
}

/* Two users of a text share what was read of it, until both have freed it. */
static void shared(void **state) {
  (void)state;
  tps_error err;
  tps_ptx_module *a, *b, *other, *own;
  static const char text[] = HEAD ".entry k() { ret; }\0";
  static const char longer[] = HEAD ".entry k() { ret; } ";
  assert_int_equal(tps_ptx_parse_shared(text, sizeof text, &a, &err), 0);
  assert_int_equal(tps_ptx_parse_shared(text, strlen(text), &b, &err), 0);
  assert_ptr_equal(a, b);
  assert_int_equal(tps_ptx_parse_shared(longer, strlen(longer), &other, &err),
                   0);
  assert_ptr_not_equal(a, other);
  assert_int_equal(tps_ptx_parse(text, strlen(text), &own, &err), 0);
  assert_ptr_not_equal(a, own);
  tps_ptx_free(own);
  tps_ptx_free(a);
  assert_string_equal(b->functions[0].name, "k");
  tps_ptx_free(b);
  tps_ptx_free(other);
}

static void unclosed(void **state) {
  (void)state;
  module_fails("/* never", "line 4: comment without an end");
  module_fails(".file 1 \"a.cu\n\"", "line 4: string without an end");
  module_fails(".entry k() {\nret;\n", "line 4: 'k' has no closing brace");
  module_fails(".section .debug_x {\n.b8 1",
               "line 4: section without a closing brace");
}

/* --- kernels and functions */

static void kernel_params(void **state) {
  (void)state;
  tps_ptx_module *m =
      read_module(".visible .entry k(.param .u8 a, .param .align 8 .b8 s[12],\n"
                  " .param .u64 .ptr .global .align 16 p, .param .f32 x, "
                  ".param .align 16 .v4 .f32 v) { ret; }");
  function *f = find(m, "k");
  assert_int_equal(f->input_count, 5);
  const uint64_t offsets[] = {0, 8, 24, 32, 48};
  for (int i = 0; i < 5; i++) {
    assert_int_equal(f->vars[i].offset, offsets[i]);
    assert_int_equal(f->vars[i].role, TPS_PTX_INPUT_PARAM);
  }
  assert_int_equal(f->input_bytes, 64);
  assert_int_equal(f->vars[1].size, 12);
  assert_true(f->vars[2].pointer);
  assert_int_equal(f->vars[2].align, 8);
  assert_int_equal(f->vars[4].count, 4);
  assert_int_equal(f->linkage, 1);
  tps_ptx_free(m);
}

static void kernel_directives(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".entry k() .maxntid 256, 2 .minnctapersm 2 .maxnreg 64\n"
      ".reqnctapercluster 2, 1, 1 .explicitcluster .pragma \"nounroll\";\n"
      ".maxclusterrank 8 { ret; }\n.entry l() .reqntid 8, 4, 2 { ret; }");
  function *k = find(m, "k"), *l = find(m, "l");
  assert_int_equal(k->maxntid[0], 256);
  assert_int_equal(k->maxntid[1], 2);
  assert_int_equal(k->maxntid[2], 1);
  assert_int_equal(k->minnctapersm, 2);
  assert_int_equal(k->maxnreg, 64);
  assert_int_equal(k->reqnctapercluster[0], 2);
  assert_int_equal(k->reqntid[0], 0);
  assert_int_equal(l->reqntid[2], 2);
  tps_ptx_free(m);
}

static void param_limit(void **state) {
  (void)state;
  module_fails(".entry k(.param .b8 s[4353]) { ret; }",
               "line 4: 's' goes beyond 4352 bytes of .param memory");
  check_message(".version 8.1\n.target sm_60\n.address_size 64\n"
                ".entry k(.param .b8 s[4353]) { ret; }",
                TPS_INVALID_PTX,
                "line 4: 's' goes beyond 4352 bytes of .param memory");
  check_message(".version 8.1\n.target sm_70\n.address_size 64\n"
                ".entry k(.param .b8 s[32765]) { ret; }",
                TPS_INVALID_PTX,
                "line 4: 's' goes beyond 32764 bytes of .param memory");
  tps_ptx_free(read_text(".version 8.1\n.target sm_70\n.address_size 64\n"
                         ".entry k(.param .b8 s[32764]) { ret; }"));
}

static void forward_declarations(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".func (.param .b32 r) f(.param .b32 x);\n"
      ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
      ".extern .func stop() .noreturn;\n"
      ".entry k() { .reg .b32 %r1; { .param .b32 x; .param .b32 y;\n"
      " st.param.b32 [x+0], 3; call.uni (y), f, (x); "
      "ld.param.b32 %r1, [y+0]; } call stop, (); ret; }\n"
      ".func (.param .b32 r) f(.param .b32 x) { ret; }\n");
  function *f = find(m, "f");
  assert_int_equal(m->function_count, 4);
  assert_false(f->declared_only);
  assert_int_equal(f->return_count, 1);
  assert_true(find(m, "vprintf")->declared_only);
  assert_int_equal(find(m, "vprintf")->var_count, 3);
  assert_true(find(m, "stop")->noreturn);
  instruction *call = &find(m, "k")->instructions[1];
  assert_int_equal(call->op, TPS_PTX_OP_CALL);
  assert_int_equal(call->operand_count, 3);
  assert_int_equal(call->operands[1].kind, TPS_PTX_OPD_FUNC);
  assert_ptr_equal(&m->functions[call->operands[1].index], f);
  assert_int_equal(call->operands[0].count, 1);
  assert_int_equal(call->operands[2].count, 1);
  tps_ptx_free(m);
}

static void declarations_differ(void **state) {
  (void)state;
  module_fails(".func f(.param .b32 x);\n.func f(.param .b64 x) { ret; }",
               "line 5: 'f' differs from its declaration on line 4");
  module_fails(".func f() { ret; }\n.func f() { ret; }",
               "line 5: 'f' is already defined on line 4");
  module_fails(".global .b32 f;\n.func f() { ret; }",
               "line 5: 'f' is already defined");
}

static void aliases(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".weak .func (.param .b32 r) g(.param .b64 x);\n"
      ".func (.param .b32 r) f(.param .b64 x) { ret; }\n.alias g, f;");
  function *g = find(m, "g");
  assert_string_equal(g->alias_of, "f");
  assert_false(g->declared_only);
  assert_ptr_equal(g->instructions, find(m, "f")->instructions);
  tps_ptx_free(m);
  module_fails(".func g();\n.func f();\n.alias g, f;",
               "line 6: alias 'g' of 'f': the latter has no body");
}

static void falls_off(void **state) {
  (void)state;
  tps_ptx_module *m = read_body("bra E;\nE:");
  function *f = &m->functions[0];
  assert_int_equal(f->instruction_count, 2);
  assert_int_equal(f->instructions[1].op, TPS_PTX_OP_RET);
  assert_int_equal(f->instructions[0].operands[0].index, 1);
  tps_ptx_free(m);
  m = read_body("@%p1 ret;");
  assert_int_equal(m->functions[0].instruction_count, 2);
  tps_ptx_free(m);
  m = read_body("L: bra.uni L;");
  assert_int_equal(m->functions[0].instruction_count, 1);
  tps_ptx_free(m);
}

/* --- registers and scopes */

static void register_ranges(void **state) {
  (void)state;
  tps_ptx_module *m =
      read_module(".entry k() { .reg .b32 %r<3>, x, %s<2>; .reg .pred %p<2>;\n"
                  "mov.u32 %r2, x; @!%p1 mov.u32 %s1, %r0; ret; }");
  function *f = &m->functions[0];
  const char *const names[] = {"%r0", "%r1", "%r2", "x", "%s0", "%s1", "%p0"};
  assert_int_equal(f->register_count, 8);
  for (int i = 0; i < 7; i++)
    assert_string_equal(f->registers[i].name, names[i]);
  assert_int_equal(f->instructions[1].guard, 7);
  assert_true(f->instructions[1].guard_negated);
  assert_int_equal(f->instructions[0].guard, -1);
  tps_ptx_free(m);
}

static void scopes_shadow(void **state) {
  (void)state;
  tps_ptx_module *m =
      read_body("setp.eq.s32 %p1, %r1, 0; { .reg .pred %p1; .reg .b64 %r1;\n"
                " setp.eq.s64 %p1, %r1, 0; { setp.ne.s64 %p1, %r1, 1; } }\n"
                "@%p1 mov.u32 %r1, 5; ret;");
  function *f = &m->functions[0];
  instruction *i = f->instructions;
  assert_int_not_equal(i[0].operands[0].index, i[1].operands[0].index);
  assert_int_equal(i[1].operands[0].index, i[2].operands[0].index);
  assert_int_equal(i[3].guard, i[0].operands[0].index);
  assert_int_equal(i[3].operands[0].type, TPS_PTX_B32);
  assert_int_equal(i[1].operands[1].type, TPS_PTX_B64);
  tps_ptx_free(m);
}

static void scopes_end(void **state) {
  (void)state;
  body_fails("{ .reg .b32 inner; }\nmov.u32 inner, 1;",
             "line 7: 'inner' is not defined");
  body_fails(".reg .b32 %r1;", "line 6: '%r1' is already defined");
}

static void vector_registers(void **state) {
  (void)state;
  tps_ptx_module *m =
      read_body(".reg .v4 .f32 q; ld.global.v4.f32 q, [%d1];\n"
                "add.f32 q.y, q.x, q.w; add.f32 q.r, q.g, q.a; ret;");
  function *f = &m->functions[0];
  instruction *i = f->instructions;
  assert_int_equal(i[0].operands[0].kind, TPS_PTX_OPD_VEC);
  assert_int_equal(i[0].operands[0].count, 4);
  assert_string_equal(reg_name(f, &i[1].operands[0]), "q.y");
  assert_string_equal(reg_name(f, &i[2].operands[0]), "q.x");
  assert_string_equal(reg_name(f, &i[2].operands[2]), "q.w");
  tps_ptx_free(m);
}

static void reg_parameters(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".func (.reg .b32 out) f(.reg .b32 in, .reg .f64 x)\n"
      "{ add.s32 out, in, 1; ret; }\n"
      ".entry k() { .reg .b32 %r<3>; .reg .f64 %g; .reg .pred %p;\n"
      "@%p call (%r1), f, (%r2, %g); call (_), f, (7, 0d3ff0000000000000);"
      " ret; }");
  function *f = find(m, "f"), *k = find(m, "k");
  static const uint16_t ops[] = {TPS_PTX_OP_LD, TPS_PTX_OP_LD, TPS_PTX_OP_ADD,
                                 TPS_PTX_OP_ST, TPS_PTX_OP_RET};
  assert_int_equal(f->instruction_count, 5);
  for (int i = 0; i < 5; i++) assert_int_equal(f->instructions[i].op, ops[i]);
  assert_int_equal(f->vars[0].space, TPS_PTX_PARAM);
  assert_int_equal(f->input_bytes, 16);
  static const uint16_t calls[] = {
      TPS_PTX_OP_ST, TPS_PTX_OP_ST, TPS_PTX_OP_CALL, TPS_PTX_OP_LD,
      TPS_PTX_OP_ST, TPS_PTX_OP_ST, TPS_PTX_OP_CALL, TPS_PTX_OP_RET};
  assert_int_equal(k->instruction_count, 8);
  for (int i = 0; i < 8; i++) {
    assert_int_equal(k->instructions[i].op, calls[i]);
    assert_int_equal(k->instructions[i].guard >= 0, i < 4);
  }
  instruction *load = &k->instructions[3];
  assert_string_equal(reg_name(k, &load->operands[0]), "%r1");
  assert_true(load->operands[1].local);
  assert_int_equal(k->parts[k->instructions[2].operands[0].first].kind,
                   TPS_PTX_OPD_VAR);
  tps_ptx_free(m);
}

static void register_limits(void **state) {
  (void)state;
  body_fails(".reg .b32 %x<4000000000>;",
             "line 6: range of registers of 4000000000 (limit 1048576)");
  body_fails(".reg .b32 %x<-1>;",
             "line 6: range of registers of -1 (limit 1048576)");
}

/* --- labels */

static void labels(void **state) {
  (void)state;
  tps_ptx_module *m =
      read_body("A: mov.u32 %r1, 1;\n{ L: @%p1 bra L; @%p2 bra A; bra B; }\n"
                "{ L: @%p1 bra L; }\nB: ret;");
  instruction *i = m->functions[0].instructions;
  assert_int_equal(i[1].operands[0].kind, TPS_PTX_OPD_LABEL);
  assert_int_equal(i[1].operands[0].index, 1);
  assert_int_equal(i[2].operands[0].index, 0);
  assert_int_equal(i[3].operands[0].index, 5);
  assert_int_equal(i[4].operands[0].index, 4);
  tps_ptx_free(m);
}

static void labels_refused(void **state) {
  (void)state;
  body_fails("bra nowhere;", "line 6: label 'nowhere' is not defined");
  body_fails("bra L;\n{ L: }", "line 6: label 'L' is not defined");
  body_fails("L:\nL: ret;", "line 7: label 'L' is already defined");
  body_fails("bra 5;", "line 6: expected a label, found '5'");
}

static void branch_targets(void **state) {
  (void)state;
  tps_ptx_module *m =
      read_body("ts: .branchtargets L0, L2, L1;\nrs: .branchtargets L<3>;\n"
                "brx.idx %r1, ts; @%p1 brx.idx.uni %r2, rs;\n"
                "L0: ret; L1: exit; L2: trap;");
  function *f = &m->functions[0];
  assert_int_equal(f->table_count, 2);
  assert_int_equal(f->tables[0].kind, TPS_PTX_BRANCH_TARGETS);
  const int32_t first[] = {2, 4, 3}, second[] = {2, 3, 4};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(f->tables[0].targets[i], first[i]);
    assert_int_equal(f->tables[1].targets[i], second[i]);
  }
  assert_int_equal(f->instructions[1].operands[1].kind, TPS_PTX_OPD_TABLE);
  assert_int_equal(f->instructions[1].operands[1].index, 1);
  tps_ptx_free(m);
  body_fails("L: brx.idx %r1, L;",
             "line 6: 'L' is a label, not a table of targets or a prototype");
  body_fails("t: .callprototype _; brx.idx %r1, t;",
             "line 6: 't' is no table for 'brx'");
}

/* --- variables */

static void spaces_and_linkage(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".visible .global .align 16 .b8 g[3];\n.const .f32 c;\n"
      ".extern .shared .align 128 .b8 dynamic[];\n.weak .global .u32 w;\n"
      ".common .global .u32 cc;\n.global .attribute(.managed) .u32 man;\n"
      ".shared .b64 s[2][3];\n.const[1] .u16 bank, bank2;\n"
      ".global .attribute(.managed, .unified(1, 2)) .v2 .f64 v;\n");
  assert_int_equal(find_var(m, "g")->align, 16);
  assert_int_equal(find_var(m, "g")->size, 3);
  assert_int_equal(find_var(m, "g")->linkage, 1);
  assert_int_equal(find_var(m, "c")->space, TPS_PTX_CONST);
  assert_true(find_var(m, "dynamic")->unsized);
  assert_int_equal(find_var(m, "dynamic")->size, 0);
  assert_int_equal(find_var(m, "dynamic")->linkage, 2);
  assert_int_equal(find_var(m, "w")->linkage, 3);
  assert_int_equal(find_var(m, "cc")->linkage, 4);
  assert_true(find_var(m, "man")->managed);
  assert_int_equal(find_var(m, "s")->count, 6);
  assert_int_equal(find_var(m, "s")->size, 48);
  assert_int_equal(find_var(m, "bank2")->size, 2);
  assert_int_equal(find_var(m, "v")->align, 16);
  assert_int_equal(find_var(m, "v")->size, 16);
  tps_ptx_free(m);
}

static void redeclared_variables(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(".extern .global .u32 x;\n"
                                  ".visible .global .u32 x = 4;\n"
                                  ".extern .shared .b8 d[];\n"
                                  ".extern .shared .b8 d[];\n");
  assert_int_equal(m->var_count, 2);
  assert_non_null(find_var(m, "x")->init);
  assert_int_equal(find_var(m, "x")->linkage, 1);
  tps_ptx_free(m);
  module_fails(".global .u32 x;\n.global .u32 x;",
               "line 5: 'x' is already defined");
}

static void function_variables(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".func f() { .local .align 8 .b8 depot[12]; .shared .b32 s;\n"
      ".local .b64 l; { .shared .align 16 .b8 t[4]; .local .b8 u; }\n"
      "{ .param .b32 p; .param .b64 q; } { .param .b8 p[24]; } ret; }");
  function *f = find(m, "f");
  const uint64_t offsets[] = {0, 0, 16, 16, 24, 0, 8, 0};
  assert_int_equal(f->var_count, 8);
  for (int i = 0; i < 8; i++) assert_int_equal(f->vars[i].offset, offsets[i]);
  assert_int_equal(f->local_bytes, 25);
  assert_int_equal(f->shared_bytes, 20);
  assert_int_equal(f->call_bytes, 24);
  assert_int_equal(f->vars[5].role, TPS_PTX_CALL_PARAM);
  assert_int_equal(f->vars[0].role, TPS_PTX_FUNCTION_VAR);
  tps_ptx_free(m);
}

static void variables_refused(void **state) {
  (void)state;
  module_fails(".global .b8 x[];", "line 4: array 'x' has no size");
  module_fails(".global .align 3 .b8 x;",
               "line 4: alignment of 3 is not a power of 2");
  module_fails(".global x;", "line 4: expected a type, found 'x'");
  module_fails(".global .b33 x;", "line 4: unknown directive or type '.b33'");
  module_fails(".global .pred p;",
               "line 4: a predicate can only be a register");
  module_fails(".reg .b32 r;", "line 4: a register outside a function");
  module_fails(".local .b32 r;",
               "line 4: 'r' is in .local memory outside a function");
  module_fails(".global .b64 x[1099511627776][1099511627776];",
               "line 4: variable 'x' of more than 1099511627776 bytes");
  module_fails(".foo x;", "line 4: unknown directive '.foo'");
  module_fails(".shared .b32 x = 5;", "line 4: .shared variable 'x' has a "
                                      "value");
}

/* --- initialisers */

static const uint8_t *bytes(const tps_ptx_module *m, const char *name) {
  const tps_ptx_var *var = find_var(m, name);
  assert_non_null(var->init);
  return var->init;
}

static void initialise_numbers(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".global .u32 a = 3;\n.global .s16 b[4] = {-1, 0x10, 017, 0b101};\n"
      ".global .f32 f[3] = {1.5, 0f40490FDB, 2};\n"
      ".global .f64 d = 0d400921FB54442D18;\n.global .b8 z[8] = {1, 2};\n"
      ".global .u64 big = 18446744073709551615U;\n.global .f32 nan = "
      "0f7FC00001;\n.global .b32 bits = 0f3F800000;\n");
  const uint8_t *b = bytes(m, "b");
  int16_t s[4];
  float f[3];
  double d;
  memcpy(s, b, sizeof s);
  memcpy(f, bytes(m, "f"), sizeof f);
  memcpy(&d, bytes(m, "d"), sizeof d);
  assert_int_equal(bytes(m, "a")[0], 3);
  assert_true(s[0] == -1 && s[1] == 16 && s[2] == 15 && s[3] == 5);
  assert_true(f[0] == 1.5f && f[1] > 3.14159f && f[1] < 3.1416f && f[2] == 2);
  assert_true(d > 3.14159265 && d < 3.14159266);
  assert_memory_equal(bytes(m, "z"), "\1\2\0\0\0\0\0\0", 8);
  assert_memory_equal(bytes(m, "big"), "\377\377\377\377\377\377\377\377", 8);
  assert_memory_equal(bytes(m, "nan"), "\1\0\300\177", 4);
  assert_memory_equal(bytes(m, "bits"), "\0\0\200\77", 4);
  tps_ptx_free(m);
}

static void initialise_nested(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".global .u8 n[2][3] = {{1, 2}, {4, 5, 6}};\n"
      ".global .u8 open[][2] = {{1}, {3, 4}, {5}};\n"
      ".global .u8 flat[2][2] = {1, 2, 3, 4};\n"
      ".global .u8 len[] = {9, 8, 7};\n"
      ".global .v2 .u8 v[2] = {{1, 2}, {3}};\n.global .u8 one = {7};\n");
  assert_memory_equal(bytes(m, "n"), "\1\2\0\4\5\6", 6);
  assert_int_equal(find_var(m, "open")->size, 6);
  assert_memory_equal(bytes(m, "open"), "\1\0\3\4\5\0", 6);
  assert_memory_equal(bytes(m, "flat"), "\1\2\3\4", 4);
  assert_int_equal(find_var(m, "len")->count, 3);
  assert_memory_equal(bytes(m, "v"), "\1\2\3\0", 4);
  assert_memory_equal(bytes(m, "one"), "\7", 1);
  tps_ptx_free(m);
}

static void initialise_strings(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".global .b8 s[8] = \"a\\n\\101\\\"\";\n.global .b8 t[] = \"hi\";\n"
      ".global .b8 two[] = {\"ab\", 7};\n");
  assert_memory_equal(bytes(m, "s"), "a\nA\"\0\0\0\0", 8);
  assert_int_equal(find_var(m, "t")->size, 3);
  assert_memory_equal(bytes(m, "two"), "ab\0\7", 4);
  tps_ptx_free(m);
}

static void initialise_addresses(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".func f();\n.global .u32 x;\n.global .u64 t[4] = {f, generic(x), "
      "x+4, generic(x)-8};\n.global .u8 low[2] = {0xff(x), 0xff00(x)};\n"
      ".global .u64 mix[2] = {7, x};\n.const .u32 half = x;\n");
  const tps_ptx_relocation *r = find_var(m, "t")->relocations;
  assert_int_equal(find_var(m, "t")->relocation_count, 4);
  assert_true(r[0].function && !r[0].generic && r[0].size == 8);
  assert_true(r[1].generic && r[1].offset == 8 && !r[1].function);
  assert_int_equal(r[2].addend, 4);
  assert_int_equal(r[3].addend, -8);
  assert_int_equal(r[3].offset, 24);
  r = find_var(m, "low")->relocations;
  assert_true(r[0].size == 1 && r[0].shift == 0);
  assert_true(r[1].size == 1 && r[1].shift == 8 && r[1].offset == 1);
  assert_int_equal(find_var(m, "mix")->relocations[0].offset, 8);
  assert_memory_equal(bytes(m, "mix"), "\7\0\0\0\0\0\0\0", 8);
  assert_int_equal(find_var(m, "half")->relocations[0].size, 4);
  tps_ptx_free(m);
}

static void initialisers_refused(void **state) {
  (void)state;
  module_fails(".global .u8 x[2] = {1, 2, 3};",
               "line 4: 'x' has more values than its 2 elements");
  module_fails(".global .u8 x[2][2] = {{1, 2, 3}};",
               "line 4: 'x' has more values than its 2 elements");
  module_fails(".global .u8 x[2] = {{1}};", "line 4: too many braces for 'x'");
  module_fails(".global .u64 x = nothing;", "line 4: 'nothing' is not defined");
  module_fails(".global .u32 y;\n.global .u16 x = y;",
               "line 5: an address needs 4 or 8 bytes, elements of 'x' have 2");
  module_fails(".global .b32 x[2] = \"ab\";",
               "line 4: a string needs elements of a byte");
  module_fails(".extern .global .b32 x = 1;",
               "line 4: .extern variable 'x' has a value");
  module_fails(".global .b8 x[2000000000] = {1};",
               "line 4: initialisers of more than 268435456 bytes");
  module_fails(".global .u32 y;\n.global .u64 x = y * 2;",
               "line 5: an address can only have a number added or "
               "subtracted");
}

static void opaque_types(void **state) {
  (void)state;
  tps_ptx_module *m =
      read_module(".global .texref t;\n.global .samplerref s = { addr_mode_0 = "
                  "clamp_to_border, filter_mode = nearest };\n.tex .u32 old;\n"
                  ".entry k(.param .surfref p) { ret; }");
  assert_int_equal(find_var(m, "t")->type, TPS_PTX_TEXREF);
  assert_int_equal(find_var(m, "s")->size, 8);
  assert_int_equal(find_var(m, "old")->space, TPS_PTX_GLOBAL);
  tps_ptx_free(m);
}

/* --- constant expressions */

static int64_t value_of(const char *expression) {
  char text[400];
  snprintf(text, sizeof text, HEAD ".global .s64 x = %s;", expression);
  tps_ptx_module *m = read_text(text);
  int64_t value;
  memcpy(&value, m->vars[0].init, sizeof value);
  tps_ptx_free(m);
  return value;
}

static void expressions(void **state) {
  (void)state;
  assert_int_equal(value_of("1 + 2 * 3"), 7);
  assert_int_equal(value_of("(1 + 2) * 3"), 9);
  assert_int_equal(value_of("10 - 4 - 3"), 3);
  assert_int_equal(value_of("-7 / 2"), -3);
  assert_int_equal(value_of("-7 % 3"), -1);
  assert_int_equal(value_of("1 << 4 | 3"), 19);
  assert_int_equal(value_of("~0 ^ 5"), -6);
  assert_int_equal(value_of("-16 >> 2"), -4);
  assert_int_equal(value_of("(.u64)-1 > 5"), 1);
  assert_int_equal(value_of("-1 > 5"), 0);
  assert_int_equal(value_of("3 == 3 && 2 != 2 || !0"), 1);
  assert_int_equal(value_of("1 ? 2 : 3"), 2);
  assert_int_equal(value_of("0 ? 2 : 0 ? 4 : 5"), 5);
  assert_int_equal(value_of("WARP_SZ * 2"), 64);
  assert_int_equal(value_of("1 << 70"), 0);
  assert_int_equal(value_of("0x7FFFFFFFFFFFFFFF + 0"), INT64_MAX);
  assert_int_equal(value_of("(-9223372036854775807 - 1) / -1"), INT64_MIN);
}

static void expressions_refused(void **state) {
  (void)state;
  module_fails(".global .u32 x = 1 / 0;", "line 4: division by zero");
  module_fails(".global .u32 x = 1 +;",
               "line 4: expected a number or an expression, found ';'");
  module_fails(".global .u32 x = 99999999999999999999;",
               "line 4: integer of more than 64 bits");
  module_fails(".global .f32 x = 0f12;",
               "line 4: 0f needs 8 hexadecimal digits");
  module_fails(".global .f32 x = 12abc;", "line 4: malformed number");
  char deep[1200] = ".global .u32 x = ";
  for (int i = 0; i < 500; i++) strcat(deep, "(-");
  module_fails(deep, "line 4: expression nested deeper than 100");
}

/* --- operands */

static void immediates(void **state) {
  (void)state;
  tps_ptx_module *m = read_body(
      "mov.u32 %r1, -5; mov.u64 %d1, 0xFFFFFFFFFFFFFFFF;\n"
      "mov.f32 %f1, 0f3F800000; mov.f64 %g1, 0d3FF0000000000000;\n"
      "mov.f64 %g1, 2.5e1; mov.u32 %r1, WARP_SZ; mov.u32 %r1, (3+4)*2;\n"
      "mov.f32 %f1, -0f3F800000; mov.b32 %r1, 7U; ret;");
  instruction *i = m->functions[0].instructions;
  static const struct {
    int type;
    uint64_t bits;
  } wanted[] = {{TPS_PTX_S64, (uint64_t)-5},
                {TPS_PTX_U64, UINT64_MAX},
                {TPS_PTX_F32, 0x3f800000},
                {TPS_PTX_F64, 0x3ff0000000000000},
                {TPS_PTX_F64, 0x4039000000000000},
                {TPS_PTX_S64, 32},
                {TPS_PTX_S64, 14},
                {TPS_PTX_F32, 0xbf800000},
                {TPS_PTX_U64, 7}};
  for (int k = 0; k < 9; k++) {
    assert_int_equal(i[k].operands[1].kind, TPS_PTX_OPD_IMM);
    assert_int_equal(i[k].operands[1].type, wanted[k].type);
    assert_true((uint64_t)i[k].operands[1].value == wanted[k].bits);
  }
  tps_ptx_free(m);
}

static void special_registers(void **state) {
  (void)state;
  tps_ptx_module *m = read_body(
      "mov.u32 %r1, %tid.x; mad.lo.u32 %r1, %ctaid.z, %ntid.y, %tid.w;\n"
      "mov.u64 %d1, %clock64; mov.u32 %r1, %envreg31; mov.u32 %r1, %pm3;\n"
      "mov.u32 %r1, %lanemask_lt; mov.u32 %r1, %cluster_ctarank;\n"
      "mov.u64 %d1, %globaltimer; ret;");
  instruction *i = m->functions[0].instructions;
  assert_int_equal(i[0].operands[1].kind, TPS_PTX_OPD_SREG);
  assert_int_equal(i[0].operands[1].index, TPS_PTX_TID);
  assert_int_equal(i[1].operands[1].index, TPS_PTX_CTAID + 2);
  assert_int_equal(i[1].operands[2].index, TPS_PTX_NTID + 1);
  assert_int_equal(i[1].operands[3].index, TPS_PTX_TID + 3);
  assert_int_equal(i[2].operands[1].index, TPS_PTX_CLOCK64);
  assert_int_equal(i[2].operands[1].type, TPS_PTX_U64);
  assert_int_equal(i[3].operands[1].index, TPS_PTX_ENVREG + 31);
  assert_int_equal(i[4].operands[1].index, TPS_PTX_PM);
  assert_int_equal(i[5].operands[1].index, TPS_PTX_LANEMASK_LT);
  assert_int_equal(i[6].operands[1].index, TPS_PTX_CLUSTER_CTARANK);
  assert_int_equal(i[7].operands[1].index, TPS_PTX_GLOBALTIMER);
  tps_ptx_free(m);
  body_fails("mov.u32 %r1, %envreg32;", "line 6: '%envreg32' is not defined");
}

static void addresses(void **state) {
  (void)state;
  tps_ptx_module *m = read_body(
      ".local .b32 l[8]; ld.param.u64 %d1, [b]; ld.global.u32 %r1, [%d1];\n"
      "ld.u32 %r1, [%d1+8]; ld.u32 %r1, [%d1+-8]; ld.u32 %r1, [%d1-12];\n"
      "ld.local.u32 %r1, [l+4]; ld.global.u32 %r1, [4096];\n"
      "st.local.u32 [l+2*4], 5; ld.local.u32 %r1, l[3]; mov.u64 %d1, l+12;\n"
      "mov.u64 %d1, l[1]; ret;");
  function *f = &m->functions[0];
  instruction *i = f->instructions;
  static const int64_t offsets[] = {0, 0, 8, -8, -12, 4, 4096, 8, 12, 12, 4};
  static const uint8_t bases[] = {
      TPS_PTX_OPD_VAR, TPS_PTX_OPD_REG, TPS_PTX_OPD_REG,
      TPS_PTX_OPD_REG, TPS_PTX_OPD_REG, TPS_PTX_OPD_VAR,
      TPS_PTX_OPD_IMM, TPS_PTX_OPD_VAR, TPS_PTX_OPD_VAR};
  for (int k = 0; k < 11; k++) {
    const tps_ptx_operand *o = &i[k].operands[k == 7 ? 0 : 1];
    assert_int_equal(o->kind, k < 9 ? TPS_PTX_OPD_ADDR : TPS_PTX_OPD_VAR);
    assert_int_equal(o->value, offsets[k]);
    if (k < 9) assert_int_equal(o->base_kind, bases[k]);
  }
  assert_string_equal(f->vars[i[0].operands[1].index].name, "b");
  assert_true(i[5].operands[1].local);
  tps_ptx_free(m);
}

static void addresses_of_module_variables(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".global .u32 g[4];\n.func f() { ret; }\n.entry k() { .reg .b64 %d;\n"
      ".reg .b32 %r; mov.u64 %d, g+8; ld.global.u32 %r, [g+4];\n"
      "mov.u64 %d, f; mov.u64 %d, generic(g); cvta.global.u64 %d, g; ret; }");
  instruction *i = find(m, "k")->instructions;
  assert_int_equal(i[0].operands[1].kind, TPS_PTX_OPD_VAR);
  assert_false(i[0].operands[1].local);
  assert_int_equal(i[0].operands[1].value, 8);
  assert_int_equal(i[2].operands[1].kind, TPS_PTX_OPD_FUNC);
  assert_true(i[3].operands[1].generic);
  assert_int_equal(i[4].operands[1].kind, TPS_PTX_OPD_VAR);
  tps_ptx_free(m);
}

static void vectors_and_packs(void **state) {
  (void)state;
  tps_ptx_module *m = read_body(
      "ld.global.v2.u32 {%r1, _}, [%d1]; st.global.v4.f32 [%d1], {%f1, "
      "0f00000000, %f2, %f3};\nmov.b64 {%r1, %r2}, %d1; mov.b64 %d1, {%r1, "
      "%r2};\nmov.b32 {%h1, _}, %r1; mov.b128 %q1, {%d1, %d2};\n"
      "ld.global.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%d1];\nret;");
  function *f = &m->functions[0];
  instruction *i = f->instructions;
  assert_int_equal(i[0].vector, 2);
  assert_int_equal(f->parts[i[0].operands[0].first + 1].kind, TPS_PTX_OPD_SINK);
  assert_int_equal(i[1].operands[1].count, 4);
  assert_int_equal(f->parts[i[1].operands[1].first + 1].kind, TPS_PTX_OPD_IMM);
  assert_int_equal(i[2].operands[0].kind, TPS_PTX_OPD_VEC);
  assert_int_equal(i[3].operands[1].kind, TPS_PTX_OPD_VEC);
  assert_int_equal(i[6].vector, 8);
  assert_int_equal(i[6].operands[0].count, 8);
  tps_ptx_free(m);
}

static void pairs_and_negation(void **state) {
  (void)state;
  tps_ptx_module *m = read_body(
      "setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;\n"
      "shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1; setp.gt.s32 _|%p1, %r1, 0;\n"
      "vote.sync.any.pred %p1, !%p2, 0xffffffff; elect.sync _|%p1, -1;\n"
      "lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0x80, %p2; ret;");
  function *f = &m->functions[0];
  instruction *i = f->instructions;
  assert_int_equal(i[0].operands[0].kind, TPS_PTX_OPD_PAIR);
  assert_int_equal(i[0].operands[0].count, 2);
  assert_string_equal(reg_name(f, &f->parts[i[0].operands[0].first + 1]),
                      "%p2");
  assert_true(i[0].operands[3].negated);
  assert_int_equal(i[1].operands[0].kind, TPS_PTX_OPD_PAIR);
  assert_int_equal(f->parts[i[2].operands[0].first].kind, TPS_PTX_OPD_SINK);
  assert_true(i[3].operands[1].negated);
  tps_ptx_free(m);
}

static void brackets_flattened(void **state) {
  (void)state;
  tps_ptx_module *m = read_body(
      "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%d1, {%f5, %f6}];\n"
      "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}|%p1, [%d1, %d2, {%f5, %f6}];\n"
      "suld.b.2d.b32.trap %r1, [%d1, {%r2, %r3}];\n"
      "sust.b.1d.b32.trap [%d1, {%r2}], %r1;\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx"
      "::bytes [%r1], [%d1, {%r2, %r3}], [%r4]; ret;");
  instruction *i = m->functions[0].instructions;
  assert_int_equal(i[0].operand_count, 3);
  assert_int_equal(i[0].operands[1].kind, TPS_PTX_OPD_ADDR);
  assert_int_equal(i[0].operands[2].kind, TPS_PTX_OPD_VEC);
  assert_int_equal(i[1].operand_count, 4);
  assert_int_equal(i[1].operands[0].kind, TPS_PTX_OPD_PAIR);
  assert_int_equal(i[2].operand_count, 3);
  assert_int_equal(i[3].operands[0].kind, TPS_PTX_OPD_ADDR);
  assert_int_equal(i[4].operand_count, 4);
  assert_int_equal(i[4].space, TPS_PTX_SHARED_CLUSTER);
  assert_int_equal(i[4].space2, TPS_PTX_GLOBAL);
  tps_ptx_free(m);
}

static void video_selectors(void **state) {
  (void)state;
  tps_ptx_module *m =
      read_body("vadd.u32.u32.u32.sat %r1.b0, %r2.h1, %r3, %r4;\n"
                "vabsdiff4.u32.u32.u32.add %r1, %r2.b3210, %r3, %r4; ret;");
  instruction *i = m->functions[0].instructions;
  assert_int_equal(i[0].operands[0].value, 0x80);
  assert_int_equal(i[0].operands[1].value, 0xc1);
  assert_int_equal(i[0].operands[2].value, 0);
  assert_true(i[1].operands[1].value == 0x83828180);
  tps_ptx_free(m);
}

static void wide_destinations(void **state) {
  (void)state;
  tps_ptx_module *m = read_body(
      "ld.shared.u32 %d3, [%d1]; ld.global.s8 %r1, [%d1]; st.global.u8 [%d1], "
      "%r1;\ncvt.u32.u16 %d1, %r1; ld.param.u64 %d1, [a]; ret;");
  assert_int_equal(m->functions[0].instruction_count, 6);
  tps_ptx_free(m);
}

static void operands_refused(void **state) {
  (void)state;
  body_fails("add.s32 %r1, %r2;",
             "line 6: 'add.s32' takes 3 operands (2 given)");
  body_fails("setp.eq.s32 %p1, %r1;",
             "line 6: 'setp.eq.s32' takes 3 to 4 operands (2 given)");
  body_fails("add.s32 5, %r1, %r2;",
             "line 6: operand 1 of 'add.s32' must be a register");
  body_fails("add.s32 %r1, %d1, %r2;",
             "line 6: operand 2 of 'add.s32': "
             "register '%d1' is .b64, not a 32-bit integer");
  body_fails("and.pred %p1, %p2, %r1;", "line 6: operand 3 of 'and.pred': "
                                        "register '%r1' is .b32, not .pred");
  body_fails("ld.global.u64 %r1, [%d1];",
             "line 6: operand 1 of "
             "'ld.global.u64': register '%r1' is .b32, not a 64-bit integer");
  body_fails("ld.global.u32 %r1, %d1;",
             "line 6: operand 2 of "
             "'ld.global.u32' must be an address in brackets");
  body_fails("setp.eq.s32 %r1, %r1, 0;",
             "line 6: operand 1 of 'setp.eq.s32' must be a predicate");
  body_fails("selp.b32 %r1, %r1, 0, %r2;",
             "line 6: operand 4 of 'selp.b32' must be a predicate");
  body_fails("ld.global.v2.u32 %r1, [%d1];",
             "line 6: operand 1 of 'ld.global.v2.u32' has 1 elements, not 2");
  body_fails("mov.b64 {%r1, %h1}, %d1;", "line 6: operand 1 of 'mov.b64': the "
                                         "elements have 48 bits, not 64");
  body_fails("mul.wide.s32 %r1, %r2, %r3;",
             "line 6: operand 1 of "
             "'mul.wide.s32': register '%r1' is .b32, not a 64-bit integer");
  body_fails("add %r1, %r2, %r3;", "line 6: 'add' lacks a type");
  body_fails("@%r1 ret;", "line 6: guard '%r1' is not a predicate register");
  body_fails("mov.u32 %r1, %r2", "line 7: expected ';' after 'mov.u32', "
                                 "found '}'");
  body_fails("ld.u32 %r1, [%r2+%r3];", "line 6: register '%r3' in a constant "
                                       "expression");
  body_fails("mov.u32 %r1, [;", "line 6: expected an operand, found ';'");
  body_fails("atom.global.cas.b32 %r1, [%d1], %r2;",
             "line 6: 'atom.global.cas.b32' takes 4 operands (3 given)");
}

static void sorts_of_operands(void **state) {
  (void)state;
  tps_ptx_free(read_body(
      "mov.b32 %r1, %f1; add.f32 %r1, %r2, %r3; and.b32 %f1, %f2, 0f3F800000;\n"
      "mov.f32 %f1, 0d3FF0000000000000; st.global.b32 [%d1], %f1; "
      "ld.global.b8 %f1, [%d1];\nshfl.sync.idx.b32 %f1, %f2, %f3, 31, -1; "
      "mov.u16 %h1, %tid.x; mov.u32 %r1, %gridid; ret;"));
  body_fails("add.s32 %r1, %f1, 1;",
             "line 6: operand 2 of 'add.s32': "
             "register '%f1' is .f32, not a 32-bit integer");
  body_fails("ld.global.f32 %g1, [%d1];",
             "line 6: operand 1 of "
             "'ld.global.f32': register '%g1' is .f64, not a 32-bit float");
  body_fails("mov.b64 %d1, %f1;", "line 6: operand 2 of 'mov.b64': register "
                                  "'%f1' is .f32, not a 64-bit register");
  body_fails("mov.f32 %f1, 1;", "line 6: operand 2 of 'mov.f32' must be a "
                                "float");
  body_fails("min.s32 %r1, %r2, 1.0;", "line 6: operand 3 of 'min.s32' must "
                                       "be an integer");
  body_fails("mov.b32 %r1, 1.0;", "line 6: operand 2 of 'mov.b32' must be of "
                                  "the instruction's width");
  body_fails("mov.u64 %d1, %tid.x;", "line 6: operand 2 of 'mov.u64' must be "
                                     "of the instruction's width");
  body_fails("add.s64 %d1, %d2, a;", "line 6: operand 3 of 'add.s64' must be "
                                     "a register or a number");
  body_fails("add.s32 %r1, %r2, -%r3;",
             "line 6: operand 3 of 'add.s32' can't be negated");
  body_fails("ld.global.u32 %r1, [%r2];",
             "line 6: operand 2 of "
             "'ld.global.u32': register '%r2' is .b32, not a 64-bit address");
  body_fails("ld.shared.u32 %r1, [%f2];",
             "line 6: operand 2 of "
             "'ld.shared.u32': register '%f2' is .f32, not a 32-bit address");
}

/* --- instructions */

static void opcode_parts(void **state) {
  (void)state;
  tps_ptx_instruction i;
  assert_true(
      tps_ptx_split_opcode("ld.global.nc.L1::no_allocate.L2::128B.v4.f32", &i));
  assert_int_equal(i.op, TPS_PTX_OP_LD);
  assert_int_equal(i.space, TPS_PTX_GLOBAL);
  assert_int_equal(i.vector, 4);
  assert_int_equal(i.type_count, 1);
  assert_int_equal(i.types[0], TPS_PTX_F32);
  assert_int_equal(i.mod_count, 3);
  assert_int_equal(i.mods[1], TPS_PTX_M_L1__NO_ALLOCATE);
  assert_true(tps_ptx_has(&i, TPS_PTX_M_NC));
  assert_false(tps_ptx_has(&i, TPS_PTX_M_SYNC));
  assert_true(tps_ptx_split_opcode("min.NaN.f32", &i));
  assert_int_equal(i.mods[0], TPS_PTX_M_NAN);
  assert_true(tps_ptx_split_opcode("cp.async.cg.shared.global", &i));
  assert_int_equal(i.space2, TPS_PTX_GLOBAL);
  assert_true(tps_ptx_split_opcode(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", &i));
  assert_true(tps_ptx_has(&i, TPS_PTX_M_M64NK));
  assert_false(tps_ptx_split_opcode("wgmma.mma_async.m64n7k16", &i));
  assert_false(tps_ptx_split_opcode("add.", &i));
  assert_false(tps_ptx_split_opcode("", &i));
  assert_false(tps_ptx_split_opcode("add.global.shared.local", &i));
}

static void words_in_order(void **state) {
  (void)state;
  for (int i = 1; i < TPS_PTX_OP_COUNT; i++)
    assert_true(strcmp(tps_ptx_op_names[i - 1], tps_ptx_op_names[i]) < 0);
  for (int i = 1; i < TPS_PTX_M_COUNT; i++)
    assert_true(strcmp(tps_ptx_mod_names[i - 1], tps_ptx_mod_names[i]) < 0);
}

static void every_opcode_of_the_census(void **state) {
  (void)state;
  char path[1024], line[400], opcode[200];
  const char *source = getenv("TPS_SOURCE");
  snprintf(path, sizeof path, "%s/spec/c/opcodes.tsv", source ? source : ".");
  FILE *file = fopen(path, "r");
  if (file == NULL) fail_msg("can't read %s", path);
  unsigned count = 0;
  while (fgets(line, sizeof line, file) != NULL) {
    tps_ptx_instruction i;
    if (sscanf(line, "S%*[^\t]\t%199[^\t]", opcode) != 1) continue;
    char *indirect = strstr(opcode, "(indirect)"); /* a remark of the census */
    if (indirect != NULL) *indirect = '\0';
    if (!tps_ptx_split_opcode(opcode, &i)) fail_msg("unknown: %s", opcode);
    count++;
  }
  fclose(file);
  assert_true(count >= 870);
}

static void unknown_instructions(void **state) {
  (void)state;
  body_fails("foo.bar %r1;", "line 6: unknown instruction 'foo.bar'");
  body_fails("add.quick.s32 %r1, %r2, %r3;",
             "line 6: unknown instruction 'add.quick.s32'");
  body_fails("add.s32.s32.s32.s32.s32.s32 %r1, %r2, %r3;",
             "line 6: unknown instruction 'add.s32.s32.s32.s32.s32.s32'");
}

static void many_forms(void **state) {
  (void)state;
  tps_ptx_module *m = read_body(
      "vote.ballot.sync.b32 %r1, %p1, 0xffffffff; vote.sync.ballot.b32 %r1, "
      "%p1, -1; vote.ballot.b32 %r1, %p1;\n"
      "barrier.cta.sync.aligned 0; barrier.sync 1, 64; bar.sync 0; bar.arrive "
      "1, 64; bar.warp.sync -1;\nbar.red.or.pred %p1, 0, %p2; "
      "bar.red.popc.u32 %r1, 1, 32, !%p1; barrier.cta.red.popc.aligned.u32 "
      "%r1, 0, %p1;\nbarrier.cluster.arrive.release.aligned; "
      "barrier.cluster.wait;\nmembar.gl; fence.acq_rel.gpu; "
      "fence.proxy.async.shared::cta; fence.mbarrier_init.release.cluster;\n"
      "match.all.sync.b64 %r1|%p1, %d1, -1; redux.sync.add.s32 %r1, %r2, -1; "
      "activemask.b32 %r1;\natom.global.add.f32 %f1, [%d1], %f2; "
      "atom.cas.b64 %d1, [%d2], %d3, %d4; red.global.add.noftz.f16x2 [%d1], "
      "%r1;\natom.global.v2.f32.add {%f1, %f2}, [%d1], {%f3, %f4};\n"
      "mul.wide.u32 %d1, %r1, %r2; mad.wide.s32 %d1, %r1, 4, %d2; madc.hi.cc."
      "u32 %r1, %r2, %r3, %r4;\nbfe.u64 %d1, %d2, %r1, 5; bfi.b64 %d1, %d2, "
      "%d3, %r1, 8; popc.b64 %r1, %d1; shf.l.wrap.b32 %r1, %r2, %r3, 7;\n"
      "prmt.b32.f4e %r1, %r2, %r3, 0x3210; slct.u32.s32 %r1, %r2, %r3, %r4; "
      "set.lt.f32.s32 %f1, %r1, %r2;\ncvt.rn.f16x2.f32 %r1, %f1, %f2; "
      "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; cvt.rzi.s64.f64 %d1, %g1;\n"
      "mbarrier.init.shared.b64 [%d1], 5; mbarrier.arrive.shared.b64 _, "
      "[%d1]; mbarrier.try_wait.parity.shared.b64 %p1, [%d1], %r1;\n"
      "st.bulk.weak.shared::cta [%d1], 64, 0; prefetch.param.tensormap [%d1]; "
      "tensormap.replace.tile.global_address.global.b1024.b64 [%d1], %d2; "
      "cvt.rs.satfinite.e2m1x4.f32 %h1, {%f1, %f2, %f3, %f4}, %r1;\n"
      "mapa.shared::cluster.u32 %r1, %r2, 0; isspacep.shared %p1, %d1; "
      "nanosleep.u32 20; setmaxnreg.inc.sync.aligned.u32 240;\n"
      "createpolicy.fractional.L2::evict_last.b64 %d1, 1.0; "
      "prefetch.global.L2 [%d1]; ld.global.L2::cache_hint.b32 %r1, [%d1], "
      "%d2;\nst.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], "
      "%r2, [%r3]; griddepcontrol.wait; trap; brkpt; exit;");
  assert_true(m->functions[0].instruction_count > 50);
  tps_ptx_free(m);
}

static void destinations(void **state) {
  (void)state;
  tps_ptx_module *m =
      read_body("add.s32 %r1, %r2, %r3; st.global.u32 [%d1], %r1; bar.sync 0;\n"
                "bar.red.or.pred %p1, 0, %p2; mbarrier.arrive.b64 %d1, [%d2];\n"
                "mbarrier.init.b64 [%d2], 1; atom.add.u32 %r1, [%d1], 1; "
                "red.add.u32 [%d1], 1; bra L; L: ret;");
  static const unsigned wanted[] = {1, 0, 0, 1, 1, 0, 1, 0, 0, 0};
  for (int i = 0; i < 10; i++)
    assert_int_equal(tps_ptx_destinations(&m->functions[0].instructions[i]),
                     wanted[i]);
  tps_ptx_free(m);
}

/* --- calls */

static void indirect_calls(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".func (.param .b32 r) f(.param .b32 x) { ret; }\n"
      ".entry k() { .reg .b64 %d; .reg .b32 %r; mov.u64 %d, f;\n"
      "{ .param .b32 x; .param .b32 y; prototype_0 : .callprototype (.param "
      ".b32 _) _ (.param .b32 _) ;\n"
      "call (y), %d, (x), prototype_0; }\n"
      "ts: .calltargets f; call (%r), %d, (%r), ts;\n"
      "p: .callprototype ()_ () .noreturn; call %d, p; call.uni %d, (), p; "
      "ret; }");
  function *k = find(m, "k");
  instruction *i = &k->instructions[1];
  assert_int_equal(i->operand_count, 4);
  assert_int_equal(i->operands[1].kind, TPS_PTX_OPD_REG);
  assert_int_equal(i->operands[3].kind, TPS_PTX_OPD_TABLE);
  assert_int_equal(i->operands[3].index, 0);
  assert_int_equal(k->tables[0].return_count, 1);
  assert_int_equal(k->tables[0].input_count, 1);
  assert_int_equal(k->tables[0].kind, TPS_PTX_CALL_PROTOTYPE);
  assert_int_equal(k->tables[1].kind, TPS_PTX_CALL_TARGETS);
  assert_ptr_equal(&m->functions[k->tables[1].targets[0]], find(m, "f"));
  assert_int_equal(k->instructions[2].op, TPS_PTX_OP_ST);
  assert_int_equal(k->instructions[3].operands[3].index, 1);
  assert_int_equal(k->instructions[4].op, TPS_PTX_OP_LD);
  assert_int_equal(k->instructions[5].operands[3].index, 2);
  assert_int_equal(k->instructions[5].operands[2].count, 0);
  tps_ptx_free(m);
}

static void recursion(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".func (.param .b32 r) fib(.param .b32 n) { .reg .b32 %r<9>;\n"
      "call (%r1), fib, (%r2); call (%r3), fib, (5); ret; }");
  assert_int_equal(find(m, "fib")->instruction_count, 7);
  tps_ptx_free(m);
}

static void calls_refused(void **state) {
  (void)state;
  static const char head[] =
      ".func (.param .b32 r) f(.param .b32 x, .param .b8 s[8]) { ret; }\n"
      ".entry k() { .reg .b32 %%r<4>; .reg .b64 %%d; .param .b8 s[8], t[4];\n"
      "%s ret; }";
  static const struct {
    const char *body, *message;
  } cases[] = {
      {"call (%r1), f, (%r2);",
       "line 6: call of 'f' with 1 arguments (it has 2)"},
      {"call f, (%r2, s);", "line 6: call of 'f' with 0 results (it has 1)"},
      {"call (%r1), f, (%r2, %d);",
       "line 6: parameter 's' needs a .param variable"},
      {"call (%r1), f, (%r2, t);",
       "line 6: argument 2 of 'f' has 4 bytes (its parameter has 8)"},
      {"call (%r1), f, (%d, s);", "line 6: register '%d' is .b64, the "
                                  "parameter of the call .b32"},
      {"call g;", "line 6: 'g' is not defined"},
      {"call k;", "line 6: call of kernel 'k'"},
      {"call %d;", "line 6: call through a register without targets or a "
                   "prototype"},
      {"call %d, nothing;",
       "line 6: table or prototype 'nothing' is not defined"},
      {"call 5;", "line 6: call of what is not a function"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[600];
    snprintf(text, sizeof text, head, cases[i].body);
    module_fails(text, cases[i].message);
  }
}

/* --- source lines */

static void source_lines(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".entry k() { .reg .b32 %r<3>; .pragma \"nounroll\";\nmov.u32 %r0, 0;\n"
      ".loc 1 12 3\n.loc 1 13 5\nmov.u32 %r1, 1;\n"
      ".loc 2 40 1, function_name $L__info_string0, inlined_at 1 13 5\n"
      "mov.u32 %r2, 2;\n"
      ".loc 3 50 1, function_name .debug_str+12, inlined_at 2 40 1\nret; }\n"
      ".file 1 \"a.cu\"\n.file 2 \"dir/b.h\", 1600000000, 4096\n");
  instruction *i = find(m, "k")->instructions;
  char where[64];
  assert_int_equal(i[0].loc, -1);
  assert_string_equal(tps_ptx_where(m, &i[0], where, sizeof where),
                      "PTX line 5");
  assert_string_equal(tps_ptx_where(m, &i[1], where, sizeof where), "a.cu:13");
  assert_string_equal(tps_ptx_where(m, &i[2], where, sizeof where),
                      "dir/b.h:40");
  assert_string_equal(tps_ptx_where(m, &i[3], where, sizeof where),
                      "PTX line 12");
  const tps_ptx_loc *loc = &m->locs[i[3].loc];
  assert_int_equal(loc->inlined_at, i[2].loc);
  assert_int_equal(m->locs[loc->inlined_at].inlined_at, i[1].loc);
  assert_int_equal(m->file_count, 3);
  assert_null(m->files[0]);
  tps_ptx_free(m);
}

static void debug_sections(void **state) {
  (void)state;
  tps_ptx_module *m = read_module(
      ".entry k() { $L__func_begin0:\n$L__tmp0: ret; $L__func_end0: }\n"
      ".section .debug_abbrev\n{\n.b8 1 // Abbreviation }\n.b8 17\n}\n"
      ".section .debug_info\n{\n.b32 650\n.b64 .debug_line\n"
      ".b64 $L__func_begin0\n.b32 $L__info_string3+4, -2\nlab:\n}\n"
      ".section .debug_macinfo { .b8 0 }\n@@DWARF .byte 1, 2\n"
      ".func after() { ret; }");
  assert_int_equal(m->function_count, 2);
  tps_ptx_free(m);
}

/* --- register demand */

static uint32_t demand(const char *body) {
  tps_ptx_module *m = read_body(body);
  uint32_t n = m->functions[0].register_demand;
  tps_ptx_free(m);
  return n;
}

static void register_demand(void **state) {
  (void)state;
  assert_int_equal(demand("ret;"), 0);
  assert_int_equal(demand("mov.u32 %r1, 1; st.global.u32 [0], %r1; ret;"), 1);
  assert_int_equal(demand("ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b];\n"
                          "ld.global.u32 %r1, [%d1]; st.global.u32 [%d2], %r1;"
                          " ret;"),
                   4);
  /* live around the loop: the counter, the sum, the address */
  assert_int_equal(demand("ld.param.u64 %d1, [a]; mov.u32 %r1, 0; mov.u32 %r2,"
                          " 0;\nL: add.s32 %r2, %r2, %r1; add.s32 %r1, %r1, 1;"
                          "\nsetp.lt.s32 %p1, %r1, 9; @%p1 bra L;\n"
                          "st.global.u32 [%d1], %r2; ret;"),
                   4);
  /* a guarded write does not end the range of the old value */
  assert_int_equal(demand("mov.u32 %r1, 0; mov.u32 %r2, 1;\n"
                          "@%p1 mov.u32 %r1, %r2; st.global.u32 [0], %r1; "
                          "ret;"),
                   2);
}

/* --- descriptions */

static void describe(const char *text, tps_image_desc *desc) {
  tps_error err;
  tps_ptx_module *m = read_module(text);
  int code = tps_ptx_describe(m, desc, &err);
  tps_ptx_free(m); /* the description must not need the module */
  if (code != 0) fail_msg("%s", err.message);
}

static void described_kernel(void **state) {
  (void)state;
  tps_image_desc d;
  describe(".const .align 4 .b8 coef[64];\n.visible .global .f32 scale = 2.0;\n"
           ".global .u64 n;\n.global .b8 $str[4] = {1};\n"
           ".extern .shared .b8 dyn[];\n.shared .align 8 .b8 used[20];\n"
           ".shared .b8 unused[100];\n"
           ".func f() { .shared .b32 s[4]; ret; }\n"
           ".visible .entry _Z5saxpyfPKfPf(.param .f32 a, .param .u64 x,\n"
           " .param .u64 y) .maxntid 128, 2 { .reg .b64 %d; .local .b8 l[24];\n"
           "mov.u64 %d, used; call f; ret; }\n"
           ".entry plain(.param .s16 h, .param .align 4 .b8 s[12]) { ret; }",
           &d);
  assert_int_equal(d.version, 80);
  assert_int_equal(d.target, 80);
  assert_int_equal(d.kernel_count, 2);
  const tps_kernel_desc *k = &d.kernels[0];
  assert_string_equal(k->name, "_Z5saxpyfPKfPf");
  assert_string_equal(k->plain, "saxpy");
  assert_int_equal(k->max_threads, 256);
  assert_int_equal(k->param_bytes, 24);
  assert_int_equal(k->static_shared, 48);
  assert_int_equal(k->local_bytes, 24);
  assert_true(k->registers >= 8 && k->registers <= 255);
  assert_int_equal(k->params[1].certainty, TPS_BY_SIGNATURE);
  assert_int_equal(k->params[2].offset, 16);
  k = &d.kernels[1];
  assert_string_equal(k->params[0].type, ".s16");
  assert_int_equal(k->params[0].dtype, TPS_INT16);
  assert_string_equal(k->params[1].type, ".b8[12]");
  assert_true(k->params[1].is_struct);
  assert_int_equal(k->params[1].certainty, TPS_BY_PTX);
  assert_int_equal(k->static_shared, 0);
  assert_int_equal(d.global_count, 3);
  assert_string_equal(d.globals[0].name, "coef");
  assert_int_equal(d.globals[0].dtype, TPS_OPAQUE);
  assert_true(d.globals[0].is_const);
  assert_int_equal(d.globals[1].dtype, TPS_FLOAT32);
  assert_int_equal(d.globals[2].size, 8);
  tps_image_desc_free(&d);
}

/* A kernel with parameters a and b and that body. */
static void describe_body(const char *functions, const char *body,
                          tps_image_desc *d) {
  char text[2000] = "";
  strcat(text, functions);
  strcat(text, " .entry k(.param .u64 a, .param .u64 b) {\n" REGISTERS
               "ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b];\n"
               "cvta.to.global.u64 %d1, %d1;\n");
  strcat(text, body);
  strcat(text, " ret; }");
  describe(text, d);
}

/* What a body does through them. */
static void check_access(const char *functions, const char *body, int a,
                         int b) {
  tps_image_desc d;
  describe_body(functions, body, &d);
  assert_int_equal(d.kernels[0].params[0].access, a);
  assert_int_equal(d.kernels[0].params[1].access, b);
  tps_image_desc_free(&d);
}

enum {
  N = TPS_ACCESS_NONE,
  R = TPS_ACCESS_READ,
  W = TPS_ACCESS_WRITE,
  B = TPS_ACCESS_BOTH,
  U = TPS_ACCESS_UNKNOWN
};

static void access_in_kernels(void **state) {
  (void)state;
  check_access("", "", N, N);
  check_access("", "ld.global.f32 %f1, [%d1+4]; st.global.f32 [%d2], %f1;", R,
               W);
  check_access("",
               "mul.wide.s32 %d3, %r1, 4; add.s64 %d4, %d1, %d3;\n"
               "ld.global.f32 %f1, [%d4]; st.global.f32 [%d4], %f1;",
               B, N);
  check_access("",
               "mad.wide.s32 %d3, %r1, 4, %d2; atom.global.add.u32 %r1, "
               "[%d3], 1;",
               N, B);
  check_access("", "red.global.add.u32 [%d1], 1; ld.global.u32 %r1, [%d2];", B,
               R);
  check_access("", "selp.b64 %d3, %d1, %d2, %p1; st.global.u32 [%d3], 0;", W,
               W);
  check_access("", "st.global.u64 [%d1], %d2;", W, U);
  check_access("", "and.b64 %d3, %d2, -16; ld.global.u32 %r1, [%d3];", N, R);
  check_access("", "setp.eq.s64 %p1, %d1, 0; prefetch.global.L2 [%d2];", N, N);
  check_access("", "cp.async.ca.shared.global [%d5], [%d2], 16;", N, R);
  check_access("",
               "ld.global.v2.u64 {%d3, %d4}, [%d1]; ld.global.u32 %r1, "
               "[%d3];",
               R, N);
  check_access("",
               "mov.b64 {%r1, %r2}, %d2; mov.b64 %d3, {%r1, %r2}; "
               "ld.u32 %r3, [%d3];",
               N, R);
  check_access("",
               "L: add.s64 %d3, %d4, 4; mov.u64 %d4, %d2; "
               "st.global.u32 [%d3], 1; bra L;",
               N, W);
  check_access("",
               "mov.b64 %d3, a; ld.param.u64 %d4, [%d3]; "
               "ld.global.u32 %r1, [%d4];",
               R, N);
}

/* Whether b is followed by atomic and volatile operations alone. */
static void check_strong(const char *body, bool strong) {
  tps_image_desc d;
  describe_body("", body, &d);
  assert_int_equal(d.kernels[0].params[1].strong, strong);
  tps_image_desc_free(&d);
}

static void strong_access(void **state) {
  (void)state;
  check_strong("red.global.add.u32 [%d2], 1;", true);
  check_strong("atom.global.add.u32 %r1, [%d2], 1;", true);
  check_strong("ld.volatile.global.u32 %r1, [%d2];", true);
  check_strong("ld.acquire.gpu.global.u32 %r1, [%d2];", true);
  check_strong("st.relaxed.gpu.global.u32 [%d2], 1;", true);
  check_strong(
      "ld.volatile.global.u32 %r1, [%d2]; red.global.add.u32 [%d2], 1;", true);
  check_strong("", false);
  check_strong("ld.global.u32 %r1, [%d2];", false);
  check_strong("st.global.u32 [%d2], 1;", false);
  check_strong("red.global.add.u32 [%d2], 1; ld.global.u32 %r1, [%d2+4];",
               false);
  check_strong("cp.async.ca.shared.global [%d5], [%d2], 16;", false);
  check_strong("st.global.u64 [%d1], %d2;", false);
}

static void access_in_calls(void **state) {
  (void)state;
  check_access(".func put(.param .b64 x, .param .b32 v) { .reg .b64 %d;\n"
               "ld.param.b64 %d, [x]; st.u32 [%d], 1; ret; }",
               "{ .param .b64 p; .param .b32 v; st.param.b64 [p+0], %d2;\n"
               "call put, (p, v); }",
               N, W);
  check_access(".func (.param .b64 r) next(.param .b64 x) { .reg .b64 %d;\n"
               "ld.param.b64 %d, [x]; add.s64 %d, %d, 8; "
               "st.param.b64 [r], %d; ret; }",
               "call (%d3), next, (%d1); ld.u32 %r1, [%d3];", R, N);
  check_access(".extern .func take(.param .b64 x);", "call take, (%d1);", U, N);
  check_access("", "p: .callprototype _ (.param .b64 _); call %d3, (%d2), p;",
               N, U);
  check_access(".func f(.param .b64 x, .param .b64 y) { .reg .b64 %d<3>;\n"
               "ld.param.b64 %d1, [x]; ld.param.b64 %d2, [y]; "
               "st.u32 [%d1], 1; call f, (%d2, %d1); ret; }",
               "call f, (%d1, %d2);", W, W);
}

/* --- damaged text */

static const char whole[] =
    "// comment\n.version 8.0\n.target sm_80, debug\n.address_size 64\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
    ".global .u32 u;\n.global .align 8 .u64 t[2] = {generic(u)+4, 0xff};\n"
    ".const .f32 c[2][2] = {{1.5, 0f3F800000}, {-2e3}};\n"
    ".visible .entry k(.param .u64 .ptr .global .align 4 a, .param .f32 x)\n"
    ".maxntid 64, 1, 1\n{\n.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 "
    "%d<3>;\n.loc 1 3 4, function_name $s, inlined_at 1 2 3\n"
    "ld.param.u64 %d1, [a+0];\n{ .reg .pred %p1; setp.lt.and.s32 %p1|_, %r1, "
    "-7, !%p1;\n@!%p1 bra.uni $L_1; }\n{ .param .b64 q; .param .b32 v;\n"
    "st.param.b64 [q+0], %d1; call.uni (v), vprintf, (q, %d2); }\n"
    "ts: .branchtargets $L_1, $L_2; brx.idx %r1, ts;\n"
    "pr: .callprototype (.param .b32 _) _ (.param .b64 _);\n"
    "call (%r2), %d1, (%d2), pr;\n"
    "$L_1: ld.global.nc.L1::no_allocate.v2.b32 {%r1, _}, [%d1+-8];\n"
    "$L_2: mov.b64 %d2, {%r1, %r2}; mov.u32 %r3, %tid.x; ret;\n}\n"
    ".section .debug_x { .b8 1, 2\n.b64 $L_1 }\n.file 1 \"a.cu\"\n";

static void try_text(const char *text, size_t size) {
  tps_error err;
  tps_ptx_module *m;
  char *copy = malloc(size + 1); /* of its very size, for the sanitizer */
  memcpy(copy, text, size);
  char *exact = realloc(copy, size ? size : 1);
  if (tps_ptx_parse(exact, size, &m, &err) == 0) {
    tps_image_desc d;
    assert_int_equal(tps_ptx_describe(m, &d, &err), 0);
    tps_image_desc_free(&d);
    tps_ptx_free(m);
  } else {
    assert_true(strlen(err.message) > 0);
  }
  free(exact);
}

static void truncated(void **state) {
  (void)state;
  tps_ptx_free(read_text(whole));
  for (size_t size = 0; size < sizeof whole; size++) try_text(whole, size);
}

static void mutated(void **state) {
  (void)state;
  static const char alphabet[] = "{}[]();,.:%<>@!|-+=09\"afx_\\/*#\n";
  char text[sizeof whole];
  for (size_t at = 0; at + 1 < sizeof whole; at++)
    for (size_t c = at % 3; c + 1 < sizeof alphabet; c += 3) {
      memcpy(text, whole, sizeof whole);
      text[at] = alphabet[c];
      try_text(text, sizeof whole - 1);
    }
}

static void lines_missing(void **state) {
  (void)state;
  const char *line = whole;
  while (*line != '\0') {
    char text[sizeof whole];
    size_t before = (size_t)(line - whole), length = strcspn(line, "\n") + 1;
    memcpy(text, whole, before);
    strcpy(text + before, line + length);
    try_text(text, strlen(text));
    line += length;
  }
}

static void nesting(void **state) {
  (void)state;
  char text[2000];
  strcpy(text, ".entry k()");
  for (int i = 0; i < 1000; i++) strcat(text, "{");
  module_fails(text, "line 4: braces nested deeper than 200");
}

static void long_words(void **state) {
  (void)state;
  size_t size = 200000;
  char *text = malloc(size + 200);
  strcpy(text, HEAD ".entry ");
  size_t at = strlen(text);
  memset(text + at, 'x', size);
  strcpy(text + at + size, "() { ret; }");
  tps_ptx_free(read_text(text));
  strcpy(text + at + size, "() { yyy; }");
  check_message(text, TPS_INVALID_PTX, "line 4: unknown instruction 'yyy'");
  text[at] = '?';
  check_message(text, TPS_INVALID_PTX,
                "line 4: expected the name of a kernel, found '?'");
  free(text);
}

#define T(name) cmocka_unit_test(name)

int main(void) {
  /* clang-format off */
  const struct CMUnitTest tests[] = {
      T(version_and_target), T(old_version), T(versions_refused), T(no_ptx),
      T(targets_refused), T(nul_bytes), T(blanks), T(words_apart), T(shared),
      T(unclosed),
      T(kernel_params), T(kernel_directives), T(param_limit),
      T(forward_declarations), T(declarations_differ), T(aliases),
      T(falls_off), T(register_ranges), T(scopes_shadow), T(scopes_end),
      T(vector_registers), T(reg_parameters), T(register_limits), T(labels),
      T(labels_refused), T(branch_targets), T(spaces_and_linkage),
      T(redeclared_variables), T(function_variables), T(variables_refused),
      T(initialise_numbers), T(initialise_nested), T(initialise_strings),
      T(initialise_addresses), T(initialisers_refused), T(opaque_types),
      T(expressions), T(expressions_refused), T(immediates),
      T(special_registers), T(addresses), T(addresses_of_module_variables),
      T(vectors_and_packs), T(pairs_and_negation), T(brackets_flattened),
      T(video_selectors), T(wide_destinations), T(operands_refused),
      T(sorts_of_operands),
      T(opcode_parts), T(words_in_order), T(every_opcode_of_the_census),
      T(unknown_instructions), T(many_forms), T(destinations),
      T(indirect_calls), T(recursion), T(calls_refused), T(source_lines),
      T(debug_sections), T(register_demand), T(described_kernel),
      T(access_in_kernels), T(strong_access), T(access_in_calls), T(truncated), T(mutated),
      T(lines_missing), T(nesting), T(long_words),
  };
  /* clang-format on */
  return cmocka_run_group_tests_name("ptx", tests, NULL, NULL);
}
