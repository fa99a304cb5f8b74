/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * What a video instruction does, in the 64 bits of an instruction's `imm`:
 * written by engine_decode_video.c, read by engine_video.c. `count` of the
 * instruction is 1, 2 or 4: how many elements a word has.
 */
#ifndef TPS_SIM_ENGINE_VIDEO_H
#define TPS_SIM_ENGINE_VIDEO_H

#include "sim/engine_core.h"

enum {
  VIDEO_ADD,
  VIDEO_SUB,
  VIDEO_ABSDIFF,
  VIDEO_MIN,
  VIDEO_MAX,
  VIDEO_AVRG,
  VIDEO_SET,
  VIDEO_SHL,
  VIDEO_SHR,
  VIDEO_MAD
};
enum { VIDEO_EQ, VIDEO_NE, VIDEO_LT, VIDEO_LE, VIDEO_GT, VIDEO_GE };
enum { VIDEO_THEN_NOTHING, VIDEO_THEN_ADD, VIDEO_THEN_MIN, VIDEO_THEN_MAX };

/* Selectors of scalar instructions: 0 the word, byte n, half n. */
enum { VIDEO_BYTE = 1, VIDEO_HALF = 5 };

#define VIDEO_OP(imm) ((imm)&15)
#define VIDEO_SAT UINT64_C(0x10)
#define VIDEO_D_SIGNED UINT64_C(0x20)
#define VIDEO_A_SIGNED UINT64_C(0x40)
#define VIDEO_B_SIGNED UINT64_C(0x80)
#define VIDEO_THEN(imm) ((imm) >> 8 & 3)
#define VIDEO_CMP(imm) ((imm) >> 10 & 7)
#define VIDEO_WRAP UINT64_C(0x2000)
#define VIDEO_PLUS_ONE UINT64_C(0x4000)
/* Of packed forms four bits an element, the lowest first. */
#define VIDEO_ASEL(imm) ((unsigned)((imm) >> 16 & 0xffff))
#define VIDEO_BSEL(imm) ((unsigned)((imm) >> 32 & 0xffff))
/* Which elements of d; of scalar forms its selector. */
#define VIDEO_MASK(imm) ((unsigned)((imm) >> 48 & 15))
#define VIDEO_SHIFT(imm) ((unsigned)((imm) >> 52 & 15))
#define VIDEO_NEGATE_AB (UINT64_C(1) << 56)
#define VIDEO_NEGATE_C (UINT64_C(1) << 57)

#endif
