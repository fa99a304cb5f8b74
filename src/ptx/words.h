/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Look-up of the words of the language, without their dot. A word is given by
 * its bytes: it need not end in NUL.
 */
#ifndef TPS_PTX_WORDS_H
#define TPS_PTX_WORDS_H

#include "ptx/ptx.h"

int tps_ptx_find_op(const char *word, size_t size);    /* or -1 */
int tps_ptx_find_mod(const char *word, size_t size);   /* or -1 */
int tps_ptx_find_type(const char *word, size_t size);  /* or NOTYPE */
int tps_ptx_find_space(const char *word, size_t size); /* or GENERIC */

const char *tps_ptx_type_name(tps_ptx_type type);
const char *tps_ptx_space_name(tps_ptx_space space);
bool tps_ptx_type_is_float(tps_ptx_type type); /* one IEEE-like number */

/* tps_ptx_split_opcode for bytes. */
bool tps_ptx_split(const char *opcode, size_t size, tps_ptx_instruction *out);

typedef struct tps_ptx_sreg_found {
  int sreg;
  int components; /* 4 of %tid and its like, else 0 */
  uint8_t type;   /* U32 or U64 */
} tps_ptx_sreg_found;

bool tps_ptx_find_sreg(const char *name, size_t size, tps_ptx_sreg_found *out);

#endif
