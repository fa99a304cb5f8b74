// Kernels of bench/engine.lua that no spec has: a scan in three steps, option prices,
// a Fourier transform, and a matrix product of f16. The others come from spec/corpus.
#include <mma.h>

// Each block's inclusive sums; the block's total to totals (if there are any).
extern "C" __global__ void scan_blocks(const int* in, int* out, int* totals, int n) {
  __shared__ int sums[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int v = i < n ? in[i] : 0;
  for (int o = 1; o < 32; o <<= 1) {
    int u = __shfl_up_sync(0xffffffffu, v, o);
    if (lane >= o) v += u;
  }
  if (lane == 31) sums[warp] = v;
  __syncthreads();
  if (warp == 0) {
    int s = lane < (int)blockDim.x / 32 ? sums[lane] : 0;
    for (int o = 1; o < 32; o <<= 1) {
      int u = __shfl_up_sync(0xffffffffu, s, o);
      if (lane >= o) s += u;
    }
    sums[lane] = s;
  }
  __syncthreads();
  if (warp > 0) v += sums[warp - 1];
  if (i < n) out[i] = v;
  if (totals && threadIdx.x == blockDim.x - 1) totals[blockIdx.x] = v;
}

// Adds to each block what lies before it.
extern "C" __global__ void scan_add(int* out, const int* totals, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x > 0 && i < n) out[i] += totals[blockIdx.x - 1];
}

__device__ float normal(float x) {
  float k = 1.0f / (1.0f + 0.2316419f * fabsf(x));
  float p = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f +
            k * (-1.821255978f + k * 1.330274429f))));
  float c = 0.39894228f * __expf(-0.5f * x * x) * p;
  return x > 0 ? 1.0f - c : c;
}

// European options: price of call and put.
extern "C" __global__ void black_scholes(const float* price, const float* strike,
    const float* years, float* call, float* put, float rate, float volatility, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s = price[i], x = strike[i], t = years[i];
  float root = sqrtf(t);
  float d1 = (__logf(s / x) + (rate + 0.5f * volatility * volatility) * t)
             / (volatility * root);
  float d2 = d1 - volatility * root;
  float n1 = normal(d1), n2 = normal(d2), discount = __expf(-rate * t);
  call[i] = s * n1 - x * discount * n2;
  put[i] = x * discount * (1.0f - n2) - s * (1.0f - n1);
}

// A transform of 1024 points in each block of 512 threads, radix 2, in shared memory.
extern "C" __global__ void fft1024(const float2* in, float2* out, const float2* turn) {
  __shared__ float2 a[1024];
  int t = threadIdx.x;
  const float2* from = in + blockIdx.x * 1024;
  a[__brev(t) >> 22] = from[t];
  a[__brev(t + 512) >> 22] = from[t + 512];
  __syncthreads();
  for (int half = 1, step = 512; half < 1024; half <<= 1, step >>= 1) {
    int k = t & (half - 1), i = 2 * t - k;
    float2 w = turn[k * step], x = a[i], y = a[i + half];
    float re = y.x * w.x - y.y * w.y, im = y.x * w.y + y.y * w.x;
    a[i] = make_float2(x.x + re, x.y + im);
    a[i + half] = make_float2(x.x - re, x.y - im);
    __syncthreads();
  }
  out[blockIdx.x * 1024 + t] = a[t];
  out[blockIdx.x * 1024 + t + 512] = a[t + 512];
}

// Floats multiplied as f16, with sums of f32: a block of four warps makes 32 x 32
// elements, a warp 16 x 16 of them.
extern "C" __global__ void matmul_wmma(const float* a, const float* b, float* c, int n) {
  using namespace nvcuda::wmma;
  __shared__ __align__(32) half as[32][16], bs[16][32];
  int row = blockIdx.y * 32, col = blockIdx.x * 32, t = threadIdx.x;
  int y = t >> 6 << 4, x = t >> 5 << 4 & 16;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  for (int k = 0; k < n; k += 16) {
    for (int i = t; i < 512; i += 128) {
      as[i >> 4][i & 15] = __float2half(a[(row + (i >> 4)) * n + k + (i & 15)]);
      bs[i >> 5][i & 31] = __float2half(b[(k + (i >> 5)) * n + col + (i & 31)]);
    }
    __syncthreads();
    fragment<matrix_a, 16, 16, 16, half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, half, row_major> fb;
    load_matrix_sync(fa, &as[y][0], 16);
    load_matrix_sync(fb, &bs[0][x], 32);
    mma_sync(sum, fa, fb, sum);
    __syncthreads();
  }
  store_matrix_sync(c + (row + y) * n + col + x, sum, n, mem_row_major);
}
