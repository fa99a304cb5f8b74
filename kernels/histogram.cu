// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
//
// How many elements of type ELEMENT fall into each of equal bins. Each block counts in
// shared memory of its own (LOCAL), where the bins fit, and adds that to the result
// at the end.
#include "common.cuh"

using T = ELEMENT;

#define N (16 / (int)sizeof(T))
#define THREADS 512

// Integers are told apart exactly, halves and f32 in f32, f64 in f64.
using A = arithmetic<T>;

// offset * bins / width
inline __device__ __noinline__ u64 place(u64 offset, u64 bins, u64 width) {
  u64 rest = __umul64hi(offset, bins), low = offset * bins, quotient = 0;
  if (rest == 0) return low / width;
  for (int k = 63; k >= 0; k--) {
    bool carry = rest >> 63;
    rest = rest << 1 | (low >> k & 1);
    if (!carry && rest < width) continue;
    rest -= width;
    quotient |= 1ull << k;
  }
  return quotient;
}

// The bin of x, a number of type B, or -1. `scale`: bins / (high - low), of floats.
template <class B> struct bins_of {
  A low, high, scale;
  u64 width; // high - low, of integers
  B bins;
  bool closed; // high belongs to the last bin

  __device__ i64 operator()(A x) const {
    if (!(x >= low && (x < high || (closed && x == high)))) return -1;
    B bin;
    if constexpr (is_float<T>) bin = (B)((x - low) * scale);
    else if (width == bins) bin = (B)((u64)x - (u64)low);
    else bin = (B)place((u64)x - (u64)low, bins, width);
    return bin < bins ? bin : bins - 1;
  }
};

extern __shared__ u32 local[];

template <bool LOCAL, class B>
__device__ void count(const T *x, i64 n, u64 *counts, const bins_of<B> &bin_of) {
  if (LOCAL) {
    for (u32 b = threadIdx.x; b < bin_of.bins; b += THREADS) local[b] = 0;
    __syncthreads();
  }
  bool whole = aligned(x, 16);
  i64 stride = (i64)gridDim.x * THREADS * N;
  for (i64 i = ((i64)blockIdx.x * THREADS + threadIdx.x) * N; i < n;
       i += stride) {
    vec<T, N> v = load<N>(x, i, n, whole, T(0));
#pragma unroll
    for (int k = 0; k < N; k++) {
      i64 bin = i + k < n ? bin_of(A(v.at[k])) : -1;
      if (bin < 0) continue;
      if (LOCAL) atomicAdd(&local[bin], 1u);
      else atomicAdd(&counts[bin], 1ull);
    }
  }
  if (!LOCAL) return;
  __syncthreads();
  for (u32 b = threadIdx.x; b < bin_of.bins; b += THREADS)
    if (local[b] != 0) atomicAdd(&counts[b], (u64)local[b]);
}

// A block must be given less than 2^32 elements.
extern "C" __global__ void __launch_bounds__(THREADS)
    histogram_local(const T *x, i64 n, void *counts, A low, A high, A scale,
                    u64 width, u64 bins, bool closed) {
  count<true>(x, n, (u64 *)counts,
              bins_of<u32>{low, high, scale, width, (u32)bins, closed});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    histogram_global(const T *x, i64 n, void *counts, A low, A high, A scale,
                     u64 width, u64 bins, bool closed) {
  count<false>(x, n, (u64 *)counts,
               bins_of<u64>{low, high, scale, width, bins, closed});
}

// The counts as 32-bit numbers.
extern "C" __global__ void
    histogram_narrow(const u64 *counts, void *out, i64 bins) {
  i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < bins) ((u32 *)out)[i] = (u32)counts[i];
}
