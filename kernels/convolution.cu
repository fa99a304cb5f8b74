// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The tpstream authors
//
// Convolution in two dimensions, and with a height of 1 in one: out[b][f][y][x] is
// the sum over channels and places of x and weight, both in the order of memory.
// Each thread has one place of FILTERS filters, which share what it reads.
#include "common.cuh"

using T = ELEMENT;
using A = arithmetic<T>;

#define FILTERS 4

struct shape {
  i64 batch, channels, height, width, filters, kernel_height, kernel_width;
  i64 stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x;
  i64 groups, out_height, out_width;
};

// `flip`: the weights run backwards, as in mathematics. bias may be null.
extern "C" __global__ void convolve(const T *x, const T *weight, const T *bias,
                                    T *out, shape s, bool flip) {
  i64 channels = s.channels / s.groups, filters = s.filters / s.groups;
  i64 sets = (filters + FILTERS - 1) / FILTERS;
  i64 t = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  i64 ox = t % s.out_width;
  i64 oy = (t /= s.out_width) % s.out_height;
  i64 set = (t /= s.out_height) % sets;
  i64 group = (t /= sets) % s.groups;
  i64 b = t / s.groups;
  if (b >= s.batch) return;
  i64 area = s.kernel_height * s.kernel_width;
  i64 f0 = group * filters + set * FILTERS; // the first filter
  i64 there = filters - set * FILTERS;
  const T *w = weight + f0 * channels * area;
  const T *plane = x + (b * s.channels + group * channels) * s.height * s.width;

  A sum[FILTERS];
#pragma unroll
  for (int f = 0; f < FILTERS; f++)
    sum[f] = bias && f < there ? A(bias[f0 + f]) : A(0);
  for (i64 c = 0; c < channels; c++, plane += s.height * s.width)
    for (i64 ky = 0; ky < s.kernel_height; ky++) {
      i64 y = oy * s.stride_y - s.padding_y + ky * s.dilation_y;
      if (y < 0 || y >= s.height) continue;
      for (i64 kx = 0; kx < s.kernel_width; kx++) {
        i64 at = ox * s.stride_x - s.padding_x + kx * s.dilation_x;
        if (at < 0 || at >= s.width) continue;
        A value = A(plane[y * s.width + at]);
        i64 k = ky * s.kernel_width + kx;
        i64 from = c * area + (flip ? area - 1 - k : k);
#pragma unroll
        for (int f = 0; f < FILTERS; f++)
          if (f < there) sum[f] += value * A(w[f * channels * area + from]);
      }
    }
#pragma unroll
  for (int f = 0; f < FILTERS; f++)
    if (f < there)
      out[((b * s.filters + f0 + f) * s.out_height + oy) * s.out_width + ox] =
          T(sum[f]);
}
