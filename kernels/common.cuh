// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
//
// What the kernels of tp.kernels share: the types that results are computed in,
// loads of whole vectors, exchange between blocks and within a warp.
//
// Every index is 64 bits wide. What a kernel computes never depends on how the
// memory is aligned or how many multiprocessors there are: both only choose how
// fast it is done. Blocks that wait for others take their numbers from a counter,
// so that whoever is waited for has begun.
#pragma once

#include "types.cuh"

#define WARP 32
#define ALL 0xffffffffu

// ---- types to compute in ------------------------------------------------------

// arithmetic: what products and sums of elements are computed in; a sum of many
// goes into `sum`.
template <class T> struct types_of { using arithmetic = i32; using sum = i64; };
template <> struct types_of<u8> { using arithmetic = u32; using sum = u64; };
template <> struct types_of<u16> { using arithmetic = u32; using sum = u64; };
template <> struct types_of<u32> { using arithmetic = u32; using sum = u64; };
template <> struct types_of<i64> { using arithmetic = i64; using sum = i64; };
template <> struct types_of<u64> { using arithmetic = u64; using sum = u64; };
template <> struct types_of<f16> { using arithmetic = f32; using sum = f32; };
template <> struct types_of<bf16> { using arithmetic = f32; using sum = f32; };
template <> struct types_of<f32> { using arithmetic = f32; using sum = f32; };
template <> struct types_of<f64> { using arithmetic = f64; using sum = f64; };
template <class T> using arithmetic = typename types_of<T>::arithmetic;
template <class T> using sum_type = typename types_of<T>::sum;

template <class T> constexpr bool is_float = T(1) / T(2) != T(0);
template <> constexpr bool is_float<f16> = true;
template <> constexpr bool is_float<bf16> = true;

// The greatest or the least value of a type of types_of.
template <class A> __device__ A end_of(bool greatest) {
  if constexpr (is_float<A>) {
    A infinity = A(__int_as_float(0x7f800000));
    return greatest ? infinity : -infinity;
  } else if constexpr (A(-1) > A(0)) {
    return greatest ? ~A(0) : A(0);
  } else {
    constexpr A top = A(~0ull >> (65 - 8 * sizeof(A)));
    return greatest ? top : -top - 1;
  }
}

// ---- vectors ------------------------------------------------------------------

// N elements that one instruction moves where the address allows it.
template <class T, int N> struct alignas(sizeof(T) * N) vec { T at[N]; };

template <class T> __device__ bool aligned(const T *p, u64 bytes) {
  return ((u64)p & (bytes - 1)) == 0;
}

// Elements [i, i + N) of x, of which `n` there are; `rest` beyond them. `whole`: x is
// aligned for vectors, and so is i.
template <int N, class T>
__device__ vec<T, N> load(const T *x, i64 i, i64 n, bool whole, T rest) {
  vec<T, N> v;
  if (whole && i + N <= n) return *(const vec<T, N> *)(x + i);
#pragma unroll
  for (int k = 0; k < N; k++) v.at[k] = i + k < n ? x[i + k] : rest;
  return v;
}

template <int N, class T>
__device__ void store(T *x, i64 i, i64 n, bool whole, const vec<T, N> &v) {
  if (whole && i + N <= n) {
    *(vec<T, N> *)(x + i) = v;
    return;
  }
#pragma unroll
  for (int k = 0; k < N; k++)
    if (i + k < n) x[i + k] = v.at[k];
}

// ---- between blocks -----------------------------------------------------------

// What blocks tell one another. A word that says all goes relaxed; one that says that
// other memory is ready is released, and acquired by whoever then reads that.
__device__ inline u32 load_relaxed(const u32 *p) {
  u32 x;
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
  return x;
}
__device__ inline u64 load_relaxed(const u64 *p) {
  u64 x;
  asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(x) : "l"(p) : "memory");
  return x;
}
__device__ inline void store_relaxed(u32 *p, u32 x) {
  asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}
__device__ inline void store_relaxed(u64 *p, u64 x) {
  asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(p), "l"(x) : "memory");
}
__device__ inline u32 load_acquire(const u32 *p) {
  u32 x;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
  return x;
}
__device__ inline void store_release(u32 *p, u32 x) {
  asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}

// ---- within a warp ------------------------------------------------------------

__device__ inline u32 lane_id() { return threadIdx.x % WARP; }

// The value of lane `from`, word by word, for any type of whole words.
template <class A> __device__ A from_lane(const A &a, u32 from) {
  constexpr int words = sizeof(A) / 4;
  static_assert(sizeof(A) % 4 == 0, "whole words");
  u32 w[words];
  A result;
  memcpy(w, &a, sizeof a);
#pragma unroll
  for (int k = 0; k < words; k++) w[k] = __shfl_sync(ALL, w[k], from);
  memcpy(&result, w, sizeof a);
  return result;
}
