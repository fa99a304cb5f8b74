// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
//
// As matmul.cu, for halves (ELEMENT f16 or bf16) on tensor cores, which add up in
// f32; c is of RESULT, the same or f32. Needs compute capability 8.0.
#include "common.cuh"

using T = ELEMENT;
using U = RESULT;

#define THREADS 256
#define SIDE 128  // of a tile of c; each of 2 by 4 warps has 64 by 32 of it
#define DEPTH 32
#define LOADS 2   // vectors of eight for each thread, matrix and step
#define BAND 8
#define A_ROW (DEPTH + 8) // eight more, so that eight rows lie in different banks
#define B_ROW (SIDE + 8)

struct alignas(16) eight {
  u16 at[8];
};

// Element (i, k) is at i * row + k, or i + k * row if `by_column`.
struct operand {
  const u16 *at;
  i64 row, rows, depth;
  bool by_column, whole; // whole: vectors of eight are aligned

  // Eight neighbours in memory from (i, k) on.
  __device__ eight get(i64 i, i64 k) const {
    eight v;
    i64 first = by_column ? i + k * row : i * row + k;
    i64 last = by_column ? i + 8 : k + 8, end = by_column ? rows : depth;
    bool inside = by_column ? k < depth : i < rows;
    if (whole && inside && last <= end) return *(const eight *)(at + first);
#pragma unroll
    for (int j = 0; j < 8; j++)
      v.at[j] = inside && last - 8 + j < end ? at[first + j] : (u16)0;
    return v;
  }
  // Where load l of this thread begins in the tile.
  __device__ void place(int l, int *i, int *k) const {
    int e = threadIdx.x + l * THREADS;
    *i = by_column ? e % (SIDE / 8) * 8 : e / (DEPTH / 8);
    *k = by_column ? e / (SIDE / 8) : e % (DEPTH / 8) * 8;
  }
  __device__ void fetch(eight (&to)[LOADS], i64 i0, i64 k0) const {
#pragma unroll
    for (int l = 0; l < LOADS; l++) {
      int i, k;
      place(l, &i, &k);
      to[l] = get(i0 + i, k0 + k);
    }
  }
  // Into shared memory, (i, k) at i * i_step + k * k_step.
  __device__ void put(u16 *to, int i_step, int k_step,
                      const eight (&from)[LOADS]) const {
    int step = by_column ? i_step : k_step;
#pragma unroll
    for (int l = 0; l < LOADS; l++) {
      int i, k;
      place(l, &i, &k);
      u16 *first = to + i * i_step + k * k_step;
      if (step == 1) {
        *(eight *)first = from[l];
        continue;
      }
#pragma unroll
      for (int j = 0; j < 8; j++) first[j * step] = from[l].at[j];
    }
  }
};

__device__ inline u32 shared_address(const void *p) {
  return (u32)__cvta_generic_to_shared(p);
}
__device__ inline void load_a(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_b(u32 (&r)[4], u32 address) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(address)
      : "memory");
}

__device__ inline void multiply(f16, f32 (&c)[4], const u32 (&a)[4], u32 b0,
                                u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline void multiply(bf16, f32 (&c)[4], const u32 (&a)[4], u32 b0,
                                u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// One step of the warp's 64 by 32.
__device__ inline void step(f32 (&c)[4][4][4], const u16 *left, const u16 *top,
                            u32 i0, u32 j0) {
  u32 line = lane_id() % 16, half = lane_id() / 16 * 8;
#pragma unroll
  for (int k = 0; k < DEPTH; k += 16) {
    u32 a[4][4], b[2][4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      load_a(a[i], shared_address(&left[(i0 + 16 * i + line) * A_ROW + k + half]));
#pragma unroll
    for (int j = 0; j < 2; j++)
      load_b(b[j], shared_address(&top[(k + line) * B_ROW + j0 + 16 * j + half]));
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 4; j++)
        multiply(T(0.0f), c[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    matmul(const T *a, const T *b, U *c, i64 m, i64 n, i64 depth, i64 a_row,
           i64 b_row, i64 c_row, i64 a_step, i64 b_step, i64 c_step, f32 alpha,
           f32 beta, bool a_transposed, bool b_transposed) {
  __shared__ __align__(16) u16 left[2][SIDE * A_ROW], top[2][DEPTH * B_ROW];
  i64 down = (m + SIDE - 1) / SIDE, across = (n + SIDE - 1) / SIDE;
  i64 of = blockIdx.x / (down * across), t = blockIdx.x % (down * across);
  i64 band = t / (BAND * across) * BAND;
  i64 high = down - band < BAND ? down - band : BAND;
  i64 in_band = t - band * across;
  i64 i0 = (band + in_band % high) * SIDE, j0 = in_band / high * SIDE;
  const u16 *pa = (const u16 *)(a + of * a_step);
  const u16 *pb = (const u16 *)(b + of * b_step);
  operand x{pa, a_row, m, depth, a_transposed, aligned(pa, 16) && a_row % 8 == 0};
  operand y{pb, b_row, n, depth, !b_transposed, aligned(pb, 16) && b_row % 8 == 0};
  c += of * c_step;

  f32 sum[4][4][4] = {};
  u32 warp = threadIdx.x / WARP;
  u32 wi = warp / 4 * 64, wj = warp % 4 * 32;
  eight next_x[LOADS], next_y[LOADS];
  x.fetch(next_x, i0, 0);
  y.fetch(next_y, j0, 0);
  int now = 0;
  for (i64 k = 0; k < depth; k += DEPTH, now ^= 1) {
    x.put(left[now], A_ROW, 1, next_x);
    y.put(top[now], 1, B_ROW, next_y);
    __syncthreads();
    if (k + DEPTH < depth) {
      x.fetch(next_x, i0, k + DEPTH);
      y.fetch(next_y, j0, k + DEPTH);
    }
    step(sum, left[now], top[now], wi, wj);
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        i64 row = i0 + wi + 16 * i + lane_id() / 4 + e / 2 * 8;
        i64 column = j0 + wj + 8 * j + lane_id() % 4 * 2 + e % 2;
        if (row >= m || column >= n) continue;
        U *to = &c[row * c_row + column];
        f32 result = alpha * sum[i][j][e];
        *to = U(beta == 0 ? result : result + beta * f32(*to));
      }
}
