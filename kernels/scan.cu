// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
//
// Running sums, products, least and greatest of elements of type ELEMENT, into
// elements of type RESULT. OP is one of the operations below.
//
// One pass: each block scans one tile and learns from the blocks before what
// precedes it. What makes the result the same on every run, although blocks finish
// in any order: tiles are combined in groups of 32 by a tree that never changes, and
// groups from the first to the last, one after the other. A group's prefix may be
// found at whatever distance, the sums that follow are added in that same order.
#include "common.cuh"

using T = ELEMENT;
using U = RESULT;

#define THREADS 256
#define WARPS (THREADS / WARP)
#define N (16 / (int)(sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U)))
#define ROWS (N >= 16 ? 1 : N >= 8 ? 2 : 4)
#define ROW (WARP * N)             // elements that a warp moves at once
#define TILE (WARPS * ROWS * ROW)
#define GROUP 32

using A = arithmetic<U>;

namespace op {
struct sum {
  static __device__ A none() { return A(0); }
  static __device__ A of(A a, A b) { return a + b; }
};
struct product {
  static __device__ A none() { return A(1); }
  static __device__ A of(A a, A b) { return a * b; }
};
// NaN beats all.
template <bool greatest> struct extreme {
  static __device__ A none() { return end_of<A>(!greatest); }
  static __device__ A of(A a, A b) {
    bool better = greatest ? b > a : b < a;
    return a == a && (better || b != b) ? b : a;
  }
};
using min = extreme<false>;
using max = extreme<true>;
} // namespace op
using Op = op::OP;

// ---- what blocks tell one another ---------------------------------------------

enum { NOTHING, ALONE, WITH_ALL };

// A value and what it stands for. Four bytes go with their state in one word;
// eight are written before it.
template <int size> struct slot {
  A value[2];
  u32 state, unused;

  __device__ void set(u32 to, A a) {
    value[to == WITH_ALL] = a;
    store_release(&state, to);
  }
  __device__ u32 get(A *a) {
    u32 now = load_acquire(&state);
    if (now != NOTHING) *a = value[now == WITH_ALL];
    return now;
  }
};
template <> struct slot<4> {
  u64 word;

  __device__ void set(u32 to, A a) {
    u32 bits;
    memcpy(&bits, &a, 4);
    store_relaxed(&word, (u64)to << 32 | bits);
  }
  __device__ u32 get(A *a) {
    u64 now = load_relaxed(&word);
    u32 bits = (u32)now;
    memcpy(a, &bits, 4);
    return now >> 32;
  }
};
using S = slot<sizeof(A)>;

// Of all lanes, in the order of the lanes; in every lane.
__device__ inline A warp_total(A a) {
#pragma unroll
  for (u32 by = 1; by < WARP; by *= 2) {
    A other = from_lane(a, lane_id() ^ by);
    a = lane_id() & by ? Op::of(other, a) : Op::of(a, other);
  }
  return a;
}

// The tiles of this group before this one.
__device__ inline A within_group(S *tiles, i64 tile, u32 place) {
  A a = Op::none();
  if (lane_id() < place)
    while (tiles[tile - place + lane_id()].get(&a) == NOTHING) {}
  __syncwarp();
  return warp_total(a);
}

// Everything before the group, `init` included.
__device__ inline A before_group(S *groups, i64 group, A init) {
  if (group == 0) return init;
  i64 mine = group - 1 - lane_id(); // the nearest group in lane 0
  for (;;) {
    A a = Op::none();
    u32 state = mine < 0 ? NOTHING : groups[mine].get(&a);
    u32 complete = __ballot_sync(ALL, state == WITH_ALL);
    u32 missing = __ballot_sync(ALL, state == NOTHING);
    if (complete == 0) continue;
    u32 k = __ffs(complete) - 1;
    if (missing & ((1u << k) - 1)) continue;
    A sum = from_lane(a, k);
    while (k > 0) sum = Op::of(sum, from_lane(a, --k));
    return sum;
  }
}

// What precedes the tile, given what is in it; for all lanes of one warp.
__device__ inline A before_tile(S *tiles, S *groups, i64 tile, A total, A init) {
  u32 place = tile % GROUP;
  i64 group = tile / GROUP;
  if (lane_id() == 0) tiles[tile].set(ALONE, total);
  A inside = within_group(tiles, tile, place);
  A all = Op::of(inside, total);
  if (place == GROUP - 1 && lane_id() == 0 && group > 0)
    groups[group].set(ALONE, all);
  A before = before_group(groups, group, init);
  if (place == GROUP - 1 && lane_id() == 0)
    groups[group].set(WITH_ALL, Op::of(before, all));
  return place == 0 ? before : Op::of(before, inside);
}

// ---- the tile -----------------------------------------------------------------

// a[r]: what this lane has in row r. Makes it what precedes the lane in the warp,
// and returns what the warp has.
__device__ inline A scan_rows(A (&a)[ROWS]) {
  A carry = Op::none();
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    A x = a[r];
#pragma unroll
    for (u32 by = 1; by < WARP; by *= 2) {
      A other = from_lane(x, lane_id() - by);
      if (lane_id() >= by) x = Op::of(other, x);
    }
    A previous = from_lane(x, lane_id() - 1);
    A row = from_lane(x, WARP - 1);
    a[r] = lane_id() == 0 ? carry : Op::of(carry, previous);
    carry = Op::of(carry, row);
  }
  return carry;
}

struct scratch {
  u64 ticket, unused;
  S slots[1]; // of all tiles, then of all groups
};

// `room`: cleared; tiles + groups slots; null where there is but one tile. out may be
// x. `exclusive`: out[i] leaves x[i] out.
extern "C" __global__ void __launch_bounds__(THREADS)
    scan(const T *x, U *out, i64 n, void *room, A init, bool exclusive) {
  __shared__ i64 ticket;
  __shared__ A totals[WARPS], prefix;
  scratch *s = (scratch *)room;
  if (threadIdx.x == 0) ticket = s ? atomicAdd(&s->ticket, 1ull) : 0;
  __syncthreads();
  i64 tile = ticket;
  i64 tiles = (n + TILE - 1) / TILE;
  u32 warp = threadIdx.x / WARP;
  i64 at = tile * TILE + warp * ROWS * ROW + lane_id() * N;
  bool whole = aligned(x, sizeof(T) * N) && aligned(out, sizeof(U) * N);

  vec<T, N> v[ROWS];
  A sums[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    v[r] = load<N>(x, at + r * ROW, n, whole, T(0));
    sums[r] = A(v[r].at[0]);
#pragma unroll
    for (int k = 1; k < N; k++) sums[r] = Op::of(sums[r], A(v[r].at[k]));
  }
  A total = scan_rows(sums);
  if (lane_id() == 0) totals[warp] = total;
  __syncthreads();
  if (warp == 0) {
    A all = totals[0];
    for (int w = 1; w < WARPS; w++) all = Op::of(all, totals[w]);
    A before = init;
    if (s) before = before_tile(s->slots, s->slots + tiles, tile, all, init);
    if (lane_id() == 0) prefix = before;
  }
  __syncthreads();
  A before = prefix;
  for (u32 w = 0; w < warp; w++) before = Op::of(before, totals[w]);
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    A a = Op::of(before, sums[r]);
    vec<U, N> result;
#pragma unroll
    for (int k = 0; k < N; k++) {
      A next = Op::of(a, A(v[r].at[k]));
      result.at[k] = U(exclusive ? a : next);
      a = next;
    }
    store<N>(out, at + r * ROW, n, whole, result);
  }
}
