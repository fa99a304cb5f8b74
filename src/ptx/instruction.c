/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Instructions. A text has few distinct opcodes, so each is split once and
 * looked up afterwards.
 */
#include "ptx/reader.h"

#include <stdlib.h>
#include <string.h>

/* --- opcodes */

static void grow_slots(reader *r) {
  uint32_t count = r->split_slot_count ? r->split_slot_count * 2 : 256;
  uint32_t *slots = calloc(count, sizeof *slots);
  if (slots == NULL)
    tps_ptx_stop_code(r, TPS_NO_HOST_MEMORY, "out of host memory");
  for (uint32_t i = 0; i < COUNT(r->splits, split); i++) {
    uint32_t at = AT(r->splits, split, i)->hash & (count - 1);
    while (slots[at] != 0) at = (at + 1) & (count - 1);
    slots[at] = i + 1;
  }
  free(r->split_slots);
  r->split_slots = slots;
  r->split_slot_count = count;
}

static const split *find_split(reader *r, const opcode_at *o) {
  if (COUNT(r->splits, split) * 2 >= r->split_slot_count) grow_slots(r);
  uint32_t mask = r->split_slot_count - 1;
  uint32_t hash = tps_ptx_hash(o->text, o->size);
  uint32_t at = hash & mask;
  for (; r->split_slots[at] != 0; at = (at + 1) & mask) {
    const split *s = AT(r->splits, split, r->split_slots[at] - 1);
    if (s->hash == hash && s->size == o->size &&
        memcmp(s->text, o->text, o->size) == 0)
      return s;
  }
  split new = {.size = o->size, .hash = hash};
  if (!tps_ptx_split(o->text, o->size, &new.instruction))
    tps_ptx_stop(r, o->line, "unknown instruction '%.*s'",
                 o->size > 100 ? 100 : (int)o->size, o->text);
  new.text = tps_ptx_copy(r, o->text, o->size);
  split *s = tps_ptx_push(r, &r->splits, sizeof *s);
  *s = new;
  r->split_slots[at] = COUNT(r->splits, split);
  return s;
}

/* --- emission */

static void append(reader *r, const tps_ptx_instruction *instruction) {
  /* "ret;" is the shortest; but a return or a call may need several */
  uint32_t limit = r->size / 4 + (1u << 14);
  if (r->instruction_total++ >= limit)
    tps_ptx_stop(r, instruction->line,
                 "more than %u instructions in a text of %u bytes", limit,
                 r->size);
  *(tps_ptx_instruction *)tps_ptx_push(r, &r->instructions,
                                       sizeof *instruction) = *instruction;
}

/* Before a return, the results that are registers go to their variables. */
static void store_results(reader *r, const tps_ptx_instruction *ret) {
  for (uint32_t i = 0; i < COUNT(r->reg_params, reg_param); i++) {
    const reg_param *p = AT(r->reg_params, reg_param, i);
    if (!p->result) continue;
    tps_ptx_operand value = {
        .kind = TPS_PTX_OPD_REG,
        .index = p->reg,
        .type = AT(r->registers, tps_ptx_register, p->reg)->type,
    };
    tps_ptx_instruction store = tps_ptx_param_move(r, ret, true, p->var, value);
    append(r, &store);
  }
}

void tps_ptx_emit(reader *r, const tps_ptx_instruction *instruction) {
  if (instruction->op == TPS_PTX_OP_RET) store_results(r, instruction);
  append(r, instruction);
}

tps_ptx_instruction tps_ptx_param_move(reader *r,
                                       const tps_ptx_instruction *like,
                                       bool store, int32_t var,
                                       tps_ptx_operand value) {
  const tps_ptx_var *v = AT(r->locals, tps_ptx_var, var);
  tps_ptx_operand address = {
      .kind = TPS_PTX_OPD_ADDR,
      .base_kind = TPS_PTX_OPD_VAR,
      .local = true,
      .index = var,
  };
  tps_ptx_instruction move = {
      .op = store ? TPS_PTX_OP_ST : TPS_PTX_OP_LD,
      .space = TPS_PTX_PARAM,
      .vector = 1,
      .type_count = 1,
      .types = {v->type},
      .operand_count = 2,
      .guard = like->guard,
      .guard_negated = like->guard_negated,
      .text = like->text,
      .text_size = like->text_size,
      .line = like->line,
      .loc = like->loc,
      .scope = like->scope,
  };
  move.operands[0] = store ? address : value;
  move.operands[1] = store ? value : address;
  tps_ptx_check(r, &move);
  return move;
}

/* --- one instruction */

static void read_operands(reader *r) {
  switch (r->now.op) {
  case TPS_PTX_OP_BRA: tps_ptx_label_operand(r, false); return;
  case TPS_PTX_OP_BRX:
    tps_ptx_operand_read(r);
    tps_ptx_expect(r, ',', "the index of 'brx'");
    tps_ptx_label_operand(r, true);
    return;
  case TPS_PTX_OP_CALL: tps_ptx_call_read(r); return;
  default:
    if (tps_ptx_is(r, ';')) return;
    do tps_ptx_operand_read(r);
    while (tps_ptx_accept(r, ','));
  }
}

static void expect_end(reader *r, const opcode_at *o) {
  char after[140];
  if (tps_ptx_is(r, ';')) {
    tps_ptx_next(r);
    return;
  }
  after[0] = '\'';
  uint32_t size = o->size > 100 ? 100 : o->size;
  memcpy(after + 1, r->text + o->at, size);
  strcpy(after + 1 + size, "'");
  tps_ptx_expect(r, ';', after);
}

void tps_ptx_instruction_read(reader *r, opcode_at o, int32_t guard,
                              bool negated) {
  r->now = find_split(r, &o)->instruction;
  r->now.guard = guard;
  r->now.guard_negated = negated;
  r->now.text = o.at;
  r->now.text_size = o.size;
  r->now.line = o.line;
  r->now.loc = r->loc;
  r->now.scope = (int32_t)COUNT(r->scopes, scope);
  r->after.used = 0;
  read_operands(r);
  expect_end(r, &o);
  tps_ptx_check(r, &r->now);
  tps_ptx_emit(r, &r->now);
  for (uint32_t i = 0; i < COUNT(r->after, tps_ptx_instruction); i++)
    tps_ptx_emit(r, AT(r->after, tps_ptx_instruction, i));
}
