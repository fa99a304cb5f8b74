// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
//
// Reductions of elements of type ELEMENT: sum, min, max, argmin, argmax, dot, norms. OP is
// one of the operations below.
//
// The order of every sum follows from the count alone: tiles of THREADS threads
// times UNROLL vectors of 16 bytes; block b takes the tiles b, b + blocks, …, in
// order; each thread adds up its elements, a block its threads, the last launch the
// blocks. So the result is the same, bit by bit, on every device and every run.
#include "common.cuh"

using T = ELEMENT;

#define N (16 / (int)sizeof(T))
#define THREADS 256
#define UNROLL 4
#define TILE (THREADS * UNROLL * N)

// ---- operations ---------------------------------------------------------------
// A: what is carried along. first(x): A before any element (x has at least one,
// where that matters). of(x, y, i): A of element i. result: what is asked for.

namespace op {

struct sum {
  using A = sum_type<T>;
  static constexpr bool two = false;
  static __device__ A first(const T *) { return A(0); }
  static __device__ A of(T x, T, i64) { return A(x); }
  static __device__ A merge(A a, A b) { return a + b; }
  static __device__ A result(A a) { return a; }
};

struct dot : sum {
  static constexpr bool two = true;
  static __device__ A of(T x, T y, i64) { return A(x) * A(y); }
};

// The least or the greatest; NaN beats all.
template <bool greatest> struct extreme {
  using A = arithmetic<T>;
  static constexpr bool two = false;
  static __device__ A first(const T *x) { return A(x[0]); }
  static __device__ A of(T x, T, i64) { return A(x); }
  static __device__ A merge(A a, A b) {
    bool better = greatest ? b > a : b < a;
    return better || b != b ? b : a;
  }
  static __device__ T result(A a) { return T(a); }
};
using min = extreme<false>;
using max = extreme<true>;

// The first place of the extreme. Of a whole tile the extreme alone is compared: a
// thread remembers in which one it met the best, where its own elements begin there,
// and looks for the place when all is done.
template <bool greatest> struct place {
  using V = arithmetic<T>;
  struct A {
    i64 at;
    V x;
    i32 in_tile; // the place is one of the thread's in the tile, from `at` on
  };
  static constexpr bool two = false;
  static __device__ A first(const T *x) { return A{0, V(x[0]), 0}; }
  static __device__ A of(T x, T, i64 i) { return A{i, V(x), 0}; }
  static __device__ bool better(V a, V b) {
    return (greatest ? b > a : b < a) || (b != b && a == a);
  }
  static __device__ bool same(V a, V b) { return a == b || (a != a && b != b); }
  static __device__ A merge(A a, A b) {
    return better(a.x, b.x) || same(a.x, b.x) && b.at < a.at ? b : a;
  }
  static __device__ A add(A a, const vec<T, N> *u, i64 i) {
    V x = V(u[0].at[0]);
#pragma unroll
    for (int k = 1; k < UNROLL * N; k++)
      x = extreme<greatest>::merge(x, V(u[k / N].at[k % N]));
    return better(a.x, x) ? A{i, x, 1} : a;
  }
  static __device__ A settle(A a, const T *x) {
    if (!a.in_tile) return a;
    x += a.at;
    int k = 0;
#pragma unroll 1
    while (!same(V(x[k]), a.x)) k += k % N < N - 1 ? 1 : (THREADS - 1) * N + 1;
    return A{a.at + k, a.x, 0};
  }
  static __device__ i64 result(A a) { return a.at + 1; }
};
using argmin = place<false>;
using argmax = place<true>;
template <class Op> constexpr bool is_place = false;
template <bool greatest> constexpr bool is_place<place<greatest>> = true;

// Norms are computed in doubles.
template <class U> struct norm_of { using type = f64; };
template <> struct norm_of<f32> { using type = f32; };
using norm_type = norm_of<sum_type<T>>::type;

__device__ inline f64 magnitude(f64 x) { return x < 0 ? -x : x; }

// The sum of squares. Doubles whose squares would overflow or vanish are scaled
// and summed apart; all else fits a double as it is.
struct norm2 {
  struct A {
    f64 middle, big, small;
  };
  static constexpr bool two = false;
  static __device__ A first(const T *) { return A{0, 0, 0}; }
  static __device__ A of(T t, T, i64) {
    f64 x = (f64)t;
    if constexpr (sizeof(T) == 8 && is_float<T>) {
      f64 m = magnitude(x);
      if (m > 0x1p500) return A{0, x * 0x1p-600 * (x * 0x1p-600), 0};
      if (m < 0x1p-480) return A{0, 0, x * 0x1p600 * (x * 0x1p600)};
    }
    return A{x * x, 0, 0};
  }
  static __device__ A merge(A a, A b) {
    return A{a.middle + b.middle, a.big + b.big, a.small + b.small};
  }
  static __device__ norm_type result(A a) {
    if (a.big > 0 || a.big != a.big)
      return norm_type(sqrt(a.big + a.middle * 0x1p-600 * 0x1p-600) * 0x1p600);
    if (a.middle > 0 || a.middle != a.middle)
      return norm_type(sqrt(a.middle + a.small * 0x1p-600 * 0x1p-600));
    return norm_type(sqrt(a.small) * 0x1p-600);
  }
};

struct norm1 {
  using A = f64;
  static constexpr bool two = false;
  static __device__ A first(const T *) { return 0; }
  static __device__ A of(T x, T, i64) { return magnitude((f64)x); }
  static __device__ A merge(A a, A b) { return a + b; }
  static __device__ norm_type result(A a) { return norm_type(a); }
};

struct norm_inf : norm1 {
  static __device__ A merge(A a, A b) { return b > a || b != b ? b : a; }
};

} // namespace op
using Op = op::OP;
using A = Op::A;

// ---- the tree -----------------------------------------------------------------

// Of all threads of the block, in thread 0.
__device__ inline A block_reduce(A a) {
  __shared__ __align__(16) unsigned char bytes[sizeof(A) * (THREADS / WARP)];
  A *shared = (A *)bytes;
#pragma unroll
  for (u32 by = 1; by < WARP; by *= 2) {
    A other = from_lane(a, lane_id() + by);
    if ((lane_id() & (2 * by - 1)) == 0) a = Op::merge(a, other);
  }
  if (lane_id() == 0) shared[threadIdx.x / WARP] = a;
  __syncthreads();
  if (threadIdx.x == 0)
#pragma unroll 1
    for (int k = 1; k < THREADS / WARP; k++) a = Op::merge(a, shared[k]);
  return a;
}

// As the type of the result, or as that of the elements.
__device__ inline void put(void *out, bool as_element, A a) {
  auto r = Op::result(a);
  if (as_element) *(T *)out = T(r);
  else *(decltype(r) *)out = r;
}

// A tile that is there as a whole, and aligned. O is Op.
template <class O>
__device__ inline A add_tile(A a, const T *x, const T *y, i64 i) {
  vec<T, N> u[UNROLL], v[UNROLL];
#pragma unroll
  for (int k = 0; k < UNROLL; k++) {
    u[k] = *(const vec<T, N> *)(x + i + k * THREADS * N);
    v[k] = Op::two ? *(const vec<T, N> *)(y + i + k * THREADS * N) : u[k];
  }
  if constexpr (op::is_place<O>) return O::add(a, u, i);
  else {
#pragma unroll
    for (int k = 0; k < UNROLL; k++)
#pragma unroll
      for (int j = 0; j < N; j++)
        a = Op::merge(a, Op::of(u[k].at[j], v[k].at[j], i + k * THREADS * N + j));
    return a;
  }
}

// The same element by element.
__device__ inline A add_rest(A a, const T *x, const T *y, i64 i, i64 n) {
#pragma unroll 1
  for (int k = 0; k < UNROLL; k++)
#pragma unroll 1
    for (int j = 0; j < N; j++) {
      i64 at = i + k * THREADS * N + j;
      if (at < n) a = Op::merge(a, Op::of(x[at], Op::two ? y[at] : x[at], at));
    }
  return a;
}

// All tiles are done.
template <class O> __device__ inline A settle(A a, const T *x) {
  if constexpr (op::is_place<O>) return O::settle(a, x);
  else return a;
}

// With one block the result goes to `out`, else one A a block to `partial`.
extern "C" __global__ void __launch_bounds__(THREADS)
    reduce(const T *x, const T *y, i64 n, void *partial, void *out,
           bool as_element) {
  bool whole = aligned(x, 16) && (!Op::two || aligned(y, 16));
  A a = Op::first(x);
  for (i64 tile = (i64)blockIdx.x * TILE; tile < n;
       tile += (i64)gridDim.x * TILE) {
    i64 i = tile + threadIdx.x * N;
    a = whole && tile + TILE <= n ? add_tile<Op>(a, x, y, i)
                                  : add_rest(a, x, y, i, n);
  }
  a = block_reduce(settle<Op>(a, x));
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1) put(out, as_element, a);
  else ((A *)partial)[blockIdx.x] = a;
}

// One block for the `count` partial results.
extern "C" __global__ void __launch_bounds__(THREADS)
    reduce_rest(const void *partial, i32 count, const T *x, void *out,
                bool as_element) {
  const A *from = (const A *)partial;
  A a = Op::first(x);
#pragma unroll 1
  for (i32 i = threadIdx.x; i < count; i += THREADS) a = Op::merge(a, from[i]);
  a = block_reduce(a);
  if (threadIdx.x == 0) put(out, as_element, a);
}
