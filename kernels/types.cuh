// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
//
// Element types by their short names, all that tp.map's kernels include; halves
// without their headers, which cost more to compile than those kernels.
#pragma once

using i8 = signed char;
using u8 = unsigned char;
using i16 = short;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned;
using i64 = long long;
using u64 = unsigned long long;
using f32 = float;
using f64 = double;

// ---- halves: under the names by which a signature tells them ------------------

struct __half {
  u16 bits;
  __half() = default;
  __device__ explicit __half(f32 x) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  }
  __device__ operator f32() const {
    f32 x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};

struct __nv_bfloat16 {
  u16 bits;
  __nv_bfloat16() = default;
  __device__ explicit __nv_bfloat16(f32 x) {
    u32 u = __float_as_uint(x);
    u32 rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    bits = x != x ? 0x7fff : (u16)rounded;
  }
  __device__ operator f32() const { return __uint_as_float((u32)bits << 16); }
};

using f16 = __half;
using bf16 = __nv_bfloat16;
