// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
//
// c = alpha * op(a) * op(b) + beta * c, of matrices whose rows lie one behind the
// other: a and b of ELEMENT, c of RESULT. Each product sums up in the order of k,
// whatever the device. (Halves have tensor cores: matmul_half.cu.)
#include "common.cuh"

using T = ELEMENT;
using U = RESULT;
using A = arithmetic<U>;

#define THREADS 256
#define LINE 16                         // threads along one side of a tile
#define QUADS (sizeof(A) == 8 ? 1 : 2)  // times four rows (columns) for each
#define SIDE (LINE * 4 * (int)QUADS)    // of a tile of c
#define DEPTH 8
#define LOADS (SIDE * DEPTH / THREADS)
#define BAND 8 // tiles of rows that take turns: they share columns of b in the cache

// A matrix whose element (i, k) is at i * row + k, or i + k * row if transposed.
struct operand {
  const T *at;
  i64 row, rows, depth;
  bool transposed;

  // For load `l` of this thread: which element of the tile. Neighbours in memory go
  // to neighbouring threads.
  __device__ void place(int l, int *i, int *k) const {
    int e = threadIdx.x + l * THREADS;
    *i = transposed ? e % SIDE : e / DEPTH;
    *k = transposed ? e / SIDE : e % DEPTH;
  }
  __device__ T get(i64 i, i64 k) const {
    if (i >= rows || k >= depth) return T(0);
    return at[transposed ? i + k * row : i * row + k];
  }
};

struct tile {
  A at[DEPTH][SIDE + 4];
};

__device__ inline void fetch(T (&to)[LOADS], const operand &m, i64 first, i64 k) {
#pragma unroll
  for (int l = 0; l < LOADS; l++) {
    int i, d;
    m.place(l, &i, &d);
    to[l] = m.get(first + i, k + d);
  }
}
__device__ inline void put(tile &to, const operand &m, const T (&from)[LOADS]) {
#pragma unroll
  for (int l = 0; l < LOADS; l++) {
    int i, d;
    m.place(l, &i, &d);
    to.at[d][i] = A(from[l]);
  }
}

// Four neighbours out of each of a tile's QUADS parts.
__device__ inline void take(A (&to)[4 * QUADS], const A *line, u32 which) {
#pragma unroll
  for (int q = 0; q < (int)QUADS; q++)
#pragma unroll
    for (int j = 0; j < 4; j++) to[4 * q + j] = line[q * 4 * LINE + which * 4 + j];
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    matmul(const T *a, const T *b, U *c, i64 m, i64 n, i64 depth, i64 a_row,
           i64 b_row, i64 c_row, i64 a_step, i64 b_step, i64 c_step, A alpha,
           A beta, bool a_transposed, bool b_transposed) {
  __shared__ tile left[2], top[2];
  i64 down = (m + SIDE - 1) / SIDE, across = (n + SIDE - 1) / SIDE;
  i64 of = blockIdx.x / (down * across), t = blockIdx.x % (down * across);
  i64 band = t / (BAND * across) * BAND;
  i64 high = down - band < BAND ? down - band : BAND;
  i64 in_band = t - band * across;
  i64 i0 = (band + in_band % high) * SIDE, j0 = in_band / high * SIDE;
  operand x{a + of * a_step, a_row, m, depth, a_transposed};
  // b's "rows" are columns of the product.
  operand y{b + of * b_step, b_row, n, depth, !b_transposed};
  c += of * c_step;

  u32 tx = threadIdx.x % LINE, ty = threadIdx.x / LINE;
  constexpr int M = 4 * (int)QUADS;
  A sum[M][M];
#pragma unroll
  for (int i = 0; i < M; i++)
#pragma unroll
    for (int j = 0; j < M; j++) sum[i][j] = A(0);

  T next_x[LOADS], next_y[LOADS];
  fetch(next_x, x, i0, 0);
  fetch(next_y, y, j0, 0);
  int now = 0;
  for (i64 k = 0; k < depth; k += DEPTH, now ^= 1) {
    put(left[now], x, next_x);
    put(top[now], y, next_y);
    __syncthreads();
    if (k + DEPTH < depth) {
      fetch(next_x, x, i0, k + DEPTH);
      fetch(next_y, y, j0, k + DEPTH);
    }
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
      A u[M], v[M];
      take(u, left[now].at[d], ty);
      take(v, top[now].at[d], tx);
#pragma unroll
      for (int i = 0; i < M; i++)
#pragma unroll
        for (int j = 0; j < M; j++) sum[i][j] += u[i] * v[j];
    }
  }
#pragma unroll
  for (int i = 0; i < M; i++) {
    i64 row = i0 + i / 4 * 4 * LINE + ty * 4 + i % 4;
#pragma unroll
    for (int j = 0; j < M; j++) {
      i64 column = j0 + j / 4 * 4 * LINE + tx * 4 + j % 4;
      if (row >= m || column >= n) continue;
      U *to = &c[row * c_row + column];
      A result = alpha * sum[i][j];
      *to = U(beta == A(0) ? result : result + beta * A(*to));
    }
  }
}
