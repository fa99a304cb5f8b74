/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Layouts of fragments. A warp is eight rows of four lanes: lane l is the
 * (l & 3)rd of row l >> 2. Of A each lane holds pieces of a row of its own, of
 * B pieces of a column; of the accumulator two neighbours of a row. Larger
 * matrices are blocks of that, one after the other in the registers. The
 * layouts of mma are the manual's; those of wmma, which it leaves open, were
 * read from an H200: blocks of mma, m8n32k16 being the transpose of m32n8k16.
 */
#include "sim/engine_fragment.h"

unsigned tps_sim_element_bits(uint8_t type) {
  switch (type) {
  case TPS_PTX_B1: return 1;
  case TPS_PTX_S4:
  case TPS_PTX_U4: return 4;
  case TPS_PTX_TF32: return 32;
  default: return 8 * tps_ptx_type_size((tps_ptx_type)type);
  }
}

static unsigned per_register(uint8_t type) {
  unsigned bits = tps_sim_element_bits(type);
  if (type == TPS_PTX_B1) return 1; /* kept as words */
  return bits >= 32 ? 1 : 32 / bits;
}

static void begin(fragment *f, uint8_t type, unsigned rows, unsigned cols) {
  memset(f, 0, sizeof *f);
  f->type = type;
  f->rows = (uint16_t)rows, f->cols = (uint16_t)cols;
  f->per = (uint8_t)per_register(type);
}

/* Steps from a row of lanes to the next, from lane to lane in it, and from
 * element to element in a register. */
static void lanes(fragment *f, unsigned row, unsigned lane, unsigned element) {
  for (unsigned l = 0; l < LANES; l++)
    f->lane[l] = (uint16_t)((l >> 2) * row + (l & 3) * lane);
  f->step = (uint16_t)element;
}

static void add_register(fragment *f, unsigned offset) {
  if (f->regs < FRAGMENT_REGS) f->reg[f->regs++] = (uint16_t)offset;
  f->all = f->regs;
}

static unsigned words_of(uint8_t type, unsigned k) {
  return type == TPS_PTX_B1 ? k / 32 : k;
}

void tps_sim_fragment_a(fragment *f, uint8_t type, unsigned m, unsigned k) {
  k = words_of(type, k);
  begin(f, type, m, k);
  unsigned piece = 4u * f->per, high = m < 16 ? m : 16;
  lanes(f, k, f->per, 1);
  for (unsigned block = 0; block < m; block += high)
    for (unsigned at = 0; at < k; at += piece)
      for (unsigned row = 0; row < high; row += 8)
        add_register(f, (block + row) * k + at);
}

void tps_sim_fragment_b(fragment *f, uint8_t type, unsigned n, unsigned k,
                        bool swapped) {
  k = words_of(type, k);
  begin(f, type, k, n);
  unsigned piece = 4u * f->per, wide = swapped ? 16 : 8;
  lanes(f, 1, f->per * n, n);
  for (unsigned block = 0; block < n; block += wide)
    for (unsigned at = 0; at < k; at += piece)
      for (unsigned col = 0; col < wide; col += 8)
        add_register(f, at * n + block + col);
}

void tps_sim_fragment_c(fragment *f, uint8_t type, unsigned m, unsigned n) {
  begin(f, type, m, n);
  bool swapped = n == 32;
  unsigned step = swapped ? n : 1, high = m < 16 ? m : 16;
  if (swapped) lanes(f, 1, 2 * n, n);
  else lanes(f, n, 2, 1);
  for (unsigned block = 0; block < m; block += high)
    for (unsigned col = 0; col < n; col += 8)
      for (unsigned row = 0; row < high; row += 8)
        for (unsigned j = 0; j < 2; j += f->per)
          add_register(f, (block + row) * n + col + j * step);
}

void tps_sim_fragment_repeat(fragment *f, unsigned all) {
  for (unsigned k = f->regs; k < all && k < FRAGMENT_REGS; k++)
    f->reg[k] = f->reg[k % f->regs];
  f->all = (uint8_t)all;
}

/* Lanes 4q … 4q+3 and 16+4q … 16+4q+3 make the q-th matrix. Whole rows (or
 * columns) of four elements are in a lane's two registers. */
static void quad(fragment *f, unsigned rows, unsigned cols, unsigned lane,
                 unsigned half, unsigned step) {
  begin(f, TPS_PTX_F16, rows, cols);
  for (unsigned l = 0; l < LANES; l++)
    f->lane[l] = (uint16_t)((l >> 2 & 3) * rows * cols + (l & 3) * lane +
                            (l >> 4) * half);
  f->step = (uint16_t)step;
}

static void quad_accumulator(fragment *f, uint8_t type) {
  quad(f, 8, 8, 8, 32, 1);
  f->type = type;
  f->per = (uint8_t)per_register(type);
  if (type == TPS_PTX_F16) {
    for (unsigned r = 0; r < 4; r++) add_register(f, 2 * r);
    return;
  }
  for (unsigned l = 0; l < LANES; l++)
    f->lane[l] =
        (uint16_t)((l >> 2 & 3) * 64 + (l & 1) * 8 + (l & 2) + (l >> 4) * 32);
  for (unsigned r = 0; r < 8; r++)
    add_register(f, (r & 2) * 8 + (r & 4) + (r & 1));
}

void tps_sim_fragment_quad(matrix_site *s, bool a_by_column, bool b_by_column) {
  if (a_by_column) quad(&s->a, 8, 4, 1, 16, 4);
  else quad(&s->a, 8, 4, 4, 16, 1);
  if (b_by_column) quad(&s->b, 4, 8, 1, 4, 8);
  else quad(&s->b, 4, 8, 8, 4, 1);
  for (unsigned r = 0; r < 4; r += 2) {
    add_register(&s->a, r * s->a.step);
    add_register(&s->b, r * s->b.step);
  }
  quad_accumulator(&s->c, s->c.type);
  quad_accumulator(&s->d, s->d.type);
}
