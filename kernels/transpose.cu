// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
//
// out[j][i] = x[i][j], of elements of SIZE bytes. Tiles go through shared memory, so
// that both sides move whole lines; a column more than needed keeps the columns in
// different banks.
#include "common.cuh"

template <int size> struct unsigned_of { using type = u8; };
template <> struct unsigned_of<2> { using type = u16; };
template <> struct unsigned_of<4> { using type = u32; };
template <> struct unsigned_of<8> { using type = u64; };
using T = unsigned_of<SIZE>::type;

#define SIDE (SIZE == 8 ? 32 : 64)
#define THREADS 256
#define STEP (THREADS / WARP)

// One block a tile, as a line: the grid's y is too short for tall matrices.
extern "C" __global__ void __launch_bounds__(THREADS)
    transpose(const void *from, void *to, i64 rows, i64 columns) {
  const T *x = (const T *)from;
  T *out = (T *)to;
  __shared__ T tile[SIDE][SIDE + (SIZE < 4 ? 4 / SIZE : 1)];
  i64 across = (columns + SIDE - 1) / SIDE;
  i64 down = (rows + SIDE - 1) / SIDE;
  u32 lane = lane_id(), line = threadIdx.x / WARP;
  for (i64 t = blockIdx.x; t < across * down; t += gridDim.x) {
    i64 top = t / across * SIDE, left = t % across * SIDE;
#pragma unroll
    for (u32 r = line; r < SIDE; r += STEP)
#pragma unroll
      for (u32 c = lane; c < SIDE; c += WARP)
        if (top + r < rows && left + c < columns)
          tile[r][c] = x[(top + r) * columns + left + c];
    __syncthreads();
#pragma unroll
    for (u32 r = line; r < SIDE; r += STEP)
#pragma unroll
      for (u32 c = lane; c < SIDE; c += WARP)
        if (left + r < columns && top + c < rows)
          out[(left + r) * rows + top + c] = tile[c][r];
    __syncthreads();
  }
}
