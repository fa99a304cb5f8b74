// The kernel of smooth.lua. smooth.ptx beside it is what it compiles to, for machines
// without the run-time compiler.

// Each element of out becomes the mean of its neighbours within `reach` in in.
extern "C" __global__ void smooth(const float *in, float *out, int n,
                                  int reach) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  int first = max(i - reach, 0), last = min(i + reach, n - 1);
  for (int j = first; j <= last; j++) sum += in[j];
  out[i] = sum / (last - first + 1);
}
