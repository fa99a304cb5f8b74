// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
//
// Random numbers by counting: Philox with four words and ten rounds (Salmon, Moraes,
// Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3). Counter c of a seed gives
// 128 bits; the sequence of a seed is that of the counters 0, 1, 2, …, EACH numbers
// of each. Number i is the same whoever computes it.
#include "common.cuh"

using T = ELEMENT;

// Numbers of a counter: integers take eight bytes each, lest some are likelier.
#ifdef INTEGER
#define EACH 2
#else
#define EACH (sizeof(T) == 8 ? 2 : 4)
#endif

struct words {
  u32 at[4];
};

__device__ inline words philox(u64 counter, u64 seed) {
  u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = 0, c3 = 0;
  u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    u32 h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
    u32 h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
    c0 = h1 ^ c1 ^ k0;
    c1 = l1;
    c2 = h0 ^ c3 ^ k1;
    c3 = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return words{{c0, c1, c2, c3}};
}

__device__ inline u64 wide(const words &w, int j) {
  return (u64)w.at[2 * j + 1] << 32 | w.at[2 * j];
}

// x[i] = number(words, j), for the numbers from `offset` on of the sequence; j: which
// of the counter's.
template <class F>
__device__ void generate(T *x, i64 n, u64 offset, u64 seed, F number) {
  u64 first = offset / EACH, last = (offset + n + EACH - 1) / EACH;
  u64 stride = (u64)gridDim.x * blockDim.x;
  bool whole = offset % EACH == 0 && aligned(x, sizeof(T) * EACH);
  for (u64 c = first + (u64)blockIdx.x * blockDim.x + threadIdx.x; c < last;
       c += stride) {
    words w = philox(c, seed);
    vec<T, EACH> v;
#pragma unroll
    for (int j = 0; j < (int)EACH; j++) v.at[j] = number(w, j);
    i64 i = (i64)(c * EACH - offset); // negative: the first begin before x
    if (i >= 0) {
      store<EACH>(x, i, n, whole, v);
      continue;
    }
#pragma unroll
    for (int j = 0; j < (int)EACH; j++)
      if (i + j >= 0 && i + j < n) x[i + j] = v.at[j];
  }
}

#ifdef INTEGER

// low + one of `range` numbers (0: all there are), by the high part of a product: odds
// differ by less than range / 2^64.
extern "C" __global__ void uniform(T *x, i64 n, u64 seed, u64 offset, u64 low,
                                   u64 range) {
  generate(x, n, offset, seed, [=](const words &w, int j) {
    u64 r = range == 0 ? wide(w, j) : __umul64hi(wide(w, j), range);
    return (T)(low + r);
  });
}

#else

// Of [0, 1): 53 bits, 24, or as many as the type has.
__device__ inline f64 unit(f64, const words &w, int j) {
  return (f64)(wide(w, j) >> 11) * 0x1p-53;
}
__device__ inline f32 unit(f32, const words &w, int j) {
  return (f32)(w.at[j] >> 8) * 0x1p-24f;
}
__device__ inline f32 unit(f16, const words &w, int j) {
  return (f32)(w.at[j] >> 21) * 0x1p-11f;
}
__device__ inline f32 unit(bf16, const words &w, int j) {
  return (f32)(w.at[j] >> 24) * 0x1p-8f;
}

using A = arithmetic<T>;

// The number next to x, towards minus infinity.
template <class B> __device__ T below(T x) {
  constexpr B sign = B(B(1) << (8 * sizeof(B) - 1));
  B bits;
  memcpy(&bits, &x, sizeof x);
  if ((bits & ~sign) == 0) bits = sign | 1;
  else bits = bits & sign ? bits + 1 : bits - 1;
  memcpy(&x, &bits, sizeof x);
  return x;
}
template <int size> struct bits_of { using type = u16; };
template <> struct bits_of<4> { using type = u32; };
template <> struct bits_of<8> { using type = u64; };

// low + unit * (high - low), never `high` itself.
extern "C" __global__ void uniform(T *x, i64 n, u64 seed, u64 offset, A low,
                                   A width, A high) {
  generate(x, n, offset, seed, [=](const words &w, int j) {
    T value = T(low + unit(T(0.0f), w, j) * width);
    return A(value) < high ? value : below<bits_of<sizeof(T)>::type>(T(high));
  });
}

// Pairs of independent numbers, by Box and Muller: the angle from the second unit,
// the radius from the first, which is of (0, 1].
__device__ inline f32 radius(f32 u) { return sqrtf(-2 * logf(1 - u)); }
__device__ inline f64 radius(f64 u) { return sqrt(-2 * log(1 - u)); }
__device__ inline void turn(f32 u, f32 *s, f32 *c) { sincospif(2 * u, s, c); }
__device__ inline void turn(f64 u, f64 *s, f64 *c) { sincospi(2 * u, s, c); }

extern "C" __global__ void normal(T *x, i64 n, u64 seed, u64 offset, A mean,
                                  A deviation) {
  generate(x, n, offset, seed, [=](const words &w, int j) {
    A r = radius(unit(A(0), w, j & ~1)), s, c;
    turn(unit(A(0), w, j | 1), &s, &c);
    return T(mean + deviation * (r * (j & 1 ? s : c)));
  });
}

#endif
