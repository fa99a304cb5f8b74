-- The first program: y = a*x + y on a GPU, or on the simulated device.
local tp = require "tpstream"
local module = tp.compile [[
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}]]
local stream <close> = tp.Stream()
tp.with_stream(stream, function()
  local x <close> = tp.buffer("float32", { 1, 2, 3, 4 })
  local y <close> = tp.buffer("float32", { 10, 20, 30, 40 })
  module:kernel("saxpy"):forall(#x, 2.0, x, y, #x)
  print(tp.current_device():name(), table.concat(y:read(), " "))
end)
