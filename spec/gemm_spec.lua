-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- A matrix product as libraries write it: tiles come by cp.async, one while the other
-- is worked on, fragments by ldmatrix, products by mma. Values are small whole numbers,
-- so that every sum is exact.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local program = require "spec.support.program"

local SOURCE = [=[
#include <cuda_fp16.h>
constexpr int ROWS = 64, COLS = 32, STEP = 16, PAD = 8, STAGES = 2;
struct stage {
  half a[ROWS][STEP + PAD]; // rows of A
  half b[COLS][STEP + PAD]; // columns of B
};
__device__ unsigned shared_address(const void *p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ void copy16(half *to, const half *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
    :: "r"(shared_address(to)), "l"(from) : "memory");
}
__device__ void fetch(stage *s, const half *a, const half *b, int k, int kn) {
  int t = threadIdx.x, line = t >> 1, part = (t & 1) * 8;
  copy16(&s->a[line][part], a + line * kn + k + part);
  if (line < COLS) copy16(&s->b[line][part], b + line * kn + k + part);
  asm volatile("cp.async.commit_group;" ::: "memory");
}
__device__ void load4(unsigned *r, const half *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
    : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)));
}
__device__ void multiply(float *c, const unsigned *a, const unsigned *b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
    "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// c = a x b, b by columns. A block of four warps makes 64 x 32.
extern "C" __global__ void gemm(const half *a, const half *b, float *c, int n, int kn) {
  __shared__ __align__(16) stage stages[STAGES];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  a += blockIdx.y * ROWS * kn;
  b += blockIdx.x * COLS * kn;
  float sum[4][4] = {};
  fetch(&stages[0], a, b, 0, kn);
  for (int k = 0; k < kn; k += STEP) {
    stage *now = &stages[k / STEP % STAGES];
    if (k + STEP < kn) {
      fetch(&stages[(k / STEP + 1) % STAGES], a, b, k + STEP, kn);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    unsigned fa[4], fb[4];
    load4(fa, &now->a[warp * 16 + (lane & 15)][(lane >> 4) * 8]);
    for (int x = 0; x < 4; x += 2) {
      load4(fb, &now->b[x * 8 + (lane >> 4) * 8 + (lane & 7)][(lane >> 3 & 1) * 8]);
      multiply(sum[x], fa, fb);
      multiply(sum[x + 1], fa, fb + 2);
    }
    __syncthreads();
  }
  int row = blockIdx.y * ROWS + warp * 16 + (lane >> 2);
  for (int x = 0; x < 4; x++)
    for (int i = 0; i < 4; i++) {
      int col = blockIdx.x * COLS + x * 8 + (lane & 3) * 2 + (i & 1);
      c[(row + (i >> 1) * 8) * n + col] = sum[x][i];
    }
}
]=]

describe("a product by cp.async, ldmatrix and mma", function()
  local module
  setup(function() module = program("gemm", SOURCE, { stored = true }) end)
  teardown(function() module:close() end)

  for _, size in ipairs { { 64, 32, 16 }, { 64, 64, 80 }, { 128, 96, 48 } } do
    local m, n, k = table.unpack(size)
    it(("is right for %d x %d x %d"):format(m, n, k), function()
      local g = numbers.generator(m + n + k)
      local as, bs = g.ints(m * k, -4, 4), g.ints(n * k, -4, 4)
      local a <close> = tp.buffer("f16", as)
      local b <close> = tp.buffer("f16", bs)
      local c <close> = tp.zeros("f32", m * n)
      module:kernel "gemm":launch({ grid = { n // 32, m // 64 }, block = 128 }, a, b, c,
        n, k)
      local r = c:read()
      for row = 0, m - 1 do
        for col = 0, n - 1 do
          local sum = 0
          for x = 1, k do sum = sum + as[row * k + x] * bs[col * k + x] end
          if r[row * n + col + 1] ~= sum then
            error(("row %d, column %d is %g, not %d"):format(row, col,
              r[row * n + col + 1], sum))
          end
        end
      end
    end)
  end
end)
