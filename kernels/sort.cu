// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
//
// Radix sort, stable, of keys of KEY bytes, with values of VALUE bytes (0: none), by
// eight bits a pass. One reading counts the digits of all passes; each pass then
// reads and writes everything once: a block sorts its tile by the digit in shared
// memory, and learns from the blocks before where each of its digits goes.
#include "common.cuh"

template <int size> struct unsigned_of { using type = u8; };
template <> struct unsigned_of<2> { using type = u16; };
template <> struct unsigned_of<4> { using type = u32; };
template <> struct unsigned_of<8> { using type = u64; };
using K = unsigned_of<KEY>::type;
using V = unsigned_of<VALUE>::type;

// Counts of the blocks before, with two bits of state: 30 bits do for most.
#ifdef LARGE
using C = u64;
#else
using C = u32;
#endif
#define BITS (8 * (int)sizeof(C) - 2)
enum { NOTHING, ALONE, WITH_ALL };

#define DIGITS 256
#define PASSES KEY
#define THREADS 256
#define WARPS (THREADS / WARP)
#define ITEMS 16
#define TILE (THREADS * ITEMS)

// ---- the order of keys --------------------------------------------------------

// 0 unsigned, 1 signed, 2 floats of KEY bytes, 3 bfloat16; + 4: descending.
enum { UNSIGNED, SIGNED, FLOAT, BFLOAT, DESCENDING };

// Makes numbers whose unsigned order is the one wanted, and undoes it. `bias`: NaN
// with a sign come last, not first.
struct ordering {
  K negative, positive, bias, all;

  __device__ explicit ordering(u32 order) {
    constexpr K sign = K(K(1) << (8 * KEY - 1));
    u32 type = order & 3;
    K infinity = KEY == 2   ? (type == BFLOAT ? K(0x7f80) : K(0x7c00))
                 : KEY == 4 ? K(0x7f800000)
                            : K(0x7ff0000000000000ull);
    negative = type == UNSIGNED ? K(0) : type == SIGNED ? sign : K(~K(0));
    positive = type == UNSIGNED ? K(0) : sign;
    bias = type >= FLOAT ? K(K(K(~K(0)) >> 1) - infinity) : K(0);
    all = order & DESCENDING ? K(~K(0)) : K(0);
  }
  static __device__ bool high(K k) { return k >> (8 * KEY - 1) & 1; }
  __device__ K into(K k) const {
    return K(K((k ^ (high(k) ? negative : positive)) - bias) ^ all);
  }
  __device__ K out_of(K k) const {
    k = K((k ^ all) + bias);
    return K(k ^ (high(k) ? positive : negative));
  }
};

__device__ inline u32 digit_of(K k, u32 shift) { return (u32)(k >> shift) & 255; }

// ---- counting -----------------------------------------------------------------

// result[pass][digit], cleared before. A block gets less than 2^32 keys.
extern "C" __global__ void __launch_bounds__(THREADS)
    sort_count(const void *data, i64 n, void *result, u32 order) {
  const K *keys = (const K *)data;
  u64 *counts = (u64 *)result;
  __shared__ u32 local[PASSES * DIGITS];
  for (u32 i = threadIdx.x; i < PASSES * DIGITS; i += THREADS) local[i] = 0;
  __syncthreads();
  constexpr int N = 16 / KEY;
  ordering ordered(order);
  bool whole = aligned(keys, 16);
  i64 stride = (i64)gridDim.x * THREADS * N;
  for (i64 i = ((i64)blockIdx.x * THREADS + threadIdx.x) * N; i < n;
       i += stride) {
    vec<K, N> v = load<N>(keys, i, n, whole, K(0));
#pragma unroll
    for (int j = 0; j < N; j++) {
      if (i + j >= n) break;
      K k = ordered.into(v.at[j]);
#pragma unroll
      for (int p = 0; p < PASSES; p++)
        atomicAdd(&local[p * DIGITS + digit_of(k, 8 * p)], 1u);
    }
  }
  __syncthreads();
  for (u32 i = threadIdx.x; i < PASSES * DIGITS; i += THREADS)
    if (local[i] != 0) atomicAdd(&counts[i], (u64)local[i]);
}

// What comes before each thread's x in the block.
template <class X> __device__ X before_me(X x) {
  __shared__ X totals[WARPS];
  X sum = x;
#pragma unroll
  for (u32 by = 1; by < WARP; by *= 2) {
    X other = __shfl_up_sync(ALL, sum, by);
    if (lane_id() >= by) sum += other;
  }
  if (lane_id() == WARP - 1) totals[threadIdx.x / WARP] = sum;
  __syncthreads();
  X before = sum - x;
  for (u32 w = 0; w < threadIdx.x / WARP; w++) before += totals[w];
  __syncthreads();
  return before;
}

// Counts → where each digit begins: one block a pass, one thread a digit.
extern "C" __global__ void __launch_bounds__(DIGITS) sort_begin(void *counts) {
  u64 *mine = (u64 *)counts + blockIdx.x * DIGITS + threadIdx.x;
  *mine = before_me(*mine);
}

// ---- a pass -------------------------------------------------------------------

// The lanes whose digit is the same.
__device__ inline u32 peers_of(u32 digit) {
  u32 peers = ALL;
#pragma unroll
  for (int b = 0; b < 8; b++) {
    u32 bit = digit >> b & 1;
    u32 votes = __ballot_sync(ALL, bit);
    peers &= bit ? votes : ~votes;
  }
  return peers;
}

// How many elements with this digit the tiles before have: the nearest tile that
// knows of all before it ends the search.
__device__ inline u64 look_back(C *states, i64 tile, u32 digit) {
  u64 sum = 0;
  for (i64 t = tile - 1; t >= 0;) {
    C word = load_relaxed(&states[t * DIGITS + digit]);
    u32 state = (u32)(word >> BITS);
    if (state == NOTHING) continue;
    sum += word & ((C(1) << BITS) - 1);
    if (state == WITH_ALL) break;
    t--;
  }
  return sum;
}

__device__ inline void tell(C *states, i64 tile, u32 digit, u32 state, u64 count) {
  store_relaxed(&states[tile * DIGITS + digit], (C)state << BITS | (C)count);
}

struct shared_room {
  union {
    K keys[TILE];
    V values[TILE];
    u32 counts[WARPS][DIGITS]; // until the keys come
  };
  u32 begin[DIGITS]; // of each digit in the tile
  u64 to[DIGITS];    // and where that goes
  i64 tile;
};

// What the blocks of a pass share; cleared before it.
struct turn {
  u64 ticket;
  C states[1]; // DIGITS of each tile
};

// begins: of this pass. `first` and `last`: this is the pass that makes keys from
// what the user has, or that again. A single tile needs neither begins nor room: both
// are null then.
extern "C" __global__ void __launch_bounds__(THREADS)
    sort_pass(const void *keys_from, void *keys_to, const void *values_from,
              void *values_to, i64 n, const void *begins, void *room, u32 shift,
              u32 order, bool first, bool last) {
  const K *from = (const K *)keys_from;
  K *to = (K *)keys_to;
  const u64 *begin = (const u64 *)begins;
  __shared__ shared_room s;
  u32 warp = threadIdx.x / WARP, lane = lane_id();
  turn *t = (turn *)room;
  bool alone = room == nullptr;
  if (threadIdx.x == 0) s.tile = alone ? 0 : atomicAdd(&t->ticket, 1ull);
  for (u32 w = 0; w < WARPS; w++) s.counts[w][threadIdx.x] = 0;
  __syncthreads();
  i64 tile = s.tile, base = tile * TILE;
  u32 there = n - base < TILE ? (u32)(n - base) : TILE;
  u32 at = warp * WARP * ITEMS + lane; // of this thread's first key in the tile

  // What is not there sorts last.
  ordering ordered(order);
  K keys[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    u32 j = at + i * WARP;
    keys[i] = K(~K(0));
    if (j < there) keys[i] = first ? ordered.into(from[base + j]) : from[base + j];
  }

  // Each key's place among the warp's keys of its digit.
  u32 ranks[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    u32 digit = digit_of(keys[i], shift);
    u32 peers = peers_of(digit);
    u32 before = __popc(peers & ((1u << lane) - 1));
    u32 count = s.counts[warp][digit];
    __syncwarp();
    if (before == 0) s.counts[warp][digit] = count + __popc(peers);
    __syncwarp();
    ranks[i] = count + before;
  }
  __syncthreads();

  // One thread a digit: the warps one after the other, then the tiles.
  u32 digit = threadIdx.x, total = 0;
  for (u32 w = 0; w < WARPS; w++) {
    u32 count = s.counts[w][digit];
    s.counts[w][digit] = total;
    total += count;
  }
  if (!alone) tell(t->states, tile, digit, tile == 0 ? WITH_ALL : ALONE, total);
  u32 start = before_me(total);
  s.begin[digit] = start;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    u32 d = digit_of(keys[i], shift);
    ranks[i] += s.begin[d] + s.counts[warp][d];
  }
  if (alone) {
    s.to[digit] = 0;
  } else {
    u64 before = look_back(t->states, tile, digit);
    if (tile != 0) tell(t->states, tile, digit, WITH_ALL, before + total);
    s.to[digit] = begin[digit] + before - start;
  }
  __syncthreads();

#pragma unroll
  for (int i = 0; i < ITEMS; i++) s.keys[ranks[i]] = keys[i];
  __syncthreads();
  u64 places[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    u32 j = threadIdx.x + i * THREADS;
    if (j >= there) continue;
    K k = s.keys[j];
    places[i] = s.to[digit_of(k, shift)] + j;
    to[places[i]] = last ? ordered.out_of(k) : k;
  }
  if (VALUE == 0) return;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < ITEMS; i++)
    if (at + i * WARP < there) s.values[ranks[i]] =
          ((const V *)values_from)[base + at + i * WARP];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < ITEMS; i++)
    if (threadIdx.x + i * THREADS < there)
      ((V *)values_to)[places[i]] = s.values[threadIdx.x + i * THREADS];
}
