// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
//
// iota, axpy. ELEMENT is the element type.
#include "common.cuh"

using T = ELEMENT;

#define N (16 / sizeof(T))
#define THREADS 256

using A = arithmetic<T>;
// Counting is exact as long as the numbers are: in 64 bits, or in doubles.
template <bool> struct counting { using type = i64; };
template <> struct counting<true> { using type = f64; };
using C = counting<is_float<T>>::type;

// x[i] = first + i * step, wrapping around in integers.
extern "C" __global__ void __launch_bounds__(THREADS)
    iota(T *x, C first, C step, i64 n) {
  bool whole = aligned(x, 16);
  i64 stride = (i64)gridDim.x * THREADS * N;
  for (i64 i = ((i64)blockIdx.x * THREADS + threadIdx.x) * N; i < n;
       i += stride) {
    vec<T, N> v;
#pragma unroll
    for (int k = 0; k < (int)N; k++) {
      if constexpr (is_float<T>) v.at[k] = T(first + (f64)(i + k) * step);
      else v.at[k] = (T)((u64)first + (u64)(i + k) * (u64)step);
    }
    store<N>(x, i, n, whole, v);
  }
}

// y = a * x + y. x may be y.
extern "C" __global__ void __launch_bounds__(THREADS)
    axpy(A a, const T *x, T *y, i64 n) {
  bool whole = aligned(x, 16) && aligned(y, 16);
  i64 stride = (i64)gridDim.x * THREADS * N;
  for (i64 i = ((i64)blockIdx.x * THREADS + threadIdx.x) * N; i < n;
       i += stride) {
    vec<T, N> u = load<N>(x, i, n, whole, T(0));
    vec<T, N> v = load<N>(y, i, n, whole, T(0));
#pragma unroll
    for (int k = 0; k < (int)N; k++) v.at[k] = T(a * A(u.at[k]) + A(v.at[k]));
    store<N>(y, i, n, whole, v);
  }
}
