// The kernels of pipeline.lua. pipeline.ptx beside it is what they compile to, for
// machines without the run-time compiler; `tpstream examples/pipeline.lua --ptx` makes
// it anew.

// Samples as they stand in the file (1 or 2 bytes, big-endian) to brightness.
extern "C" __global__ void luma(const unsigned char *raw, float *gray,
                                int pixels, int channels, int wide,
                                float scale) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pixels) return;
  float v[3];
  for (int c = 0; c < channels; c++) {
    int at = i * channels + c;
    v[c] = wide ? raw[2 * at] * 256 + raw[2 * at + 1] : raw[at];
  }
  float y = channels == 1 ? v[0] : 0.299f * v[0] + 0.587f * v[1] + 0.114f * v[2];
  gray[i] = y * scale;
}

// Bilateral filter, 5 x 5: smooths noise and keeps edges.
extern "C" __global__ void denoise(const float *in, float *out, int w, int h,
                                   float range) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  float centre = in[y * w + x], sum = 0, weight = 0;
  for (int dy = -2; dy <= 2; dy++)
    for (int dx = -2; dx <= 2; dx++) {
      int sx = min(max(x + dx, 0), w - 1), sy = min(max(y + dy, 0), h - 1);
      float v = in[sy * w + sx], d = (v - centre) / range;
      float k = __expf(-0.5f * d * d - 0.18f * (dx * dx + dy * dy));
      sum += k * v;
      weight += k;
    }
  out[y * w + x] = sum / weight;
}

__device__ unsigned char byte(float v) {
  return (unsigned char)(fminf(fmaxf(v, 0.f), 255.f) + 0.5f);
}

// Sobel's gradient of a smoothed picture; also packs that picture to bytes.
extern "C" __global__ void edges(const float *in, unsigned char *smooth,
                                 unsigned char *edge, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  int l = max(x - 1, 0), r = min(x + 1, w - 1);
  int u = max(y - 1, 0) * w, d = min(y + 1, h - 1) * w, m = y * w;
  float gx = in[u + r] + 2 * in[m + r] + in[d + r]
           - in[u + l] - 2 * in[m + l] - in[d + l];
  float gy = in[d + l] + 2 * in[d + x] + in[d + r]
           - in[u + l] - 2 * in[u + x] - in[u + r];
  smooth[m + x] = byte(in[m + x]);
  edge[m + x] = byte(0.5f * sqrtf(gx * gx + gy * gy));
}

extern "C" __global__ void histogram(const unsigned char *in, unsigned *bins,
                                     int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    atomicAdd(&local[in[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (local[i]) atomicAdd(&bins[i], local[i]);
}
