-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: 2026 The tpstream authors
--
-- The C++ standard library as the toolkit has it for devices, and Thrust's function
-- objects: each header does something real with random inputs.
local tp = require "tpstream"
local numbers = require "spec.support.numbers"
local near = numbers.assert_near
local SOURCE = [=[
#include <cfloat>
#include <cstdint>
#include <cuda/std/array>
#include <cuda/std/atomic>
#include <cuda/std/bit>
#include <cuda/std/cassert>
#include <cuda/std/cfloat>
#include <cuda/std/chrono>
#include <cuda/std/climits>
#include <cuda/std/cmath>
#include <cuda/std/complex>
#include <cuda/std/concepts>
#include <cuda/std/cstddef>
#include <cuda/std/cstdint>
#include <cuda/std/cstring>
#include <cuda/std/expected>
#include <cuda/std/functional>
#include <cuda/std/initializer_list>
#include <cuda/std/iterator>
#include <cuda/std/limits>
#include <cuda/std/mdspan>
#include <cuda/std/numeric>
#include <cuda/std/optional>
#include <cuda/std/ratio>
#include <cuda/std/span>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>
#include <cuda/std/variant>
#include <thrust/functional.h>
#include <thrust/pair.h>
#include <thrust/tuple.h>
namespace std_ = cuda::std;
struct Circle {
  float r;
};
struct Square {
  float a;
};
struct SizeOf {
  template <class S> __device__ float operator()(S s) { return sizeof s; }
};
extern "C" {
__global__ void bits(const unsigned *x, unsigned *o, int n) {
  int i = threadIdx.x;
  unsigned v = x[i];
  o[i] = std_::popcount(v);
  o[n + i] = std_::countl_zero(v) * 100 + std_::countr_one(v);
  o[2 * n + i] = std_::rotl(v, 7);
  o[3 * n + i] = std_::bit_width(v);
  o[4 * n + i] = std_::has_single_bit(v);
  o[5 * n + i] = std_::bit_floor(v);
  o[6 * n + i] = std_::bit_cast<unsigned>((float)(v >> 8));
}
__global__ void complexes(const double2 *x, double2 *o, int n) {
  int i = threadIdx.x;
  std_::complex<double> a(x[i].x, x[i].y),
      b(x[(i + 1) % n].x, x[(i + 1) % n].y);
  std_::complex<double> r[6] = {a * b,
                                a / b,
                                std_::exp(a),
                                std_::sqrt(a),
                                std_::conj(a) + std_::norm(b),
                                std_::polar(2.0, a.real())};
  for (int k = 0; k < 6; k++)
    o[k * n + i] = make_double2(r[k].real(), r[k].imag());
}
__global__ void vocabulary(const float *x, float *o, int n) {
  int i = threadIdx.x;
  float v = x[i];
  // array, span, numeric: a sum of eight neighbours
  std_::array<float, 8> near;
  for (int k = 0; k < 8; k++) near[k] = x[(i + k) % n];
  std_::span<float> all(near);
  o[i] = std_::accumulate(all.begin(), all.end(), 0.f);
  // optional, expected, variant
  std_::optional<float> maybe;
  if (v > 0) maybe = v;
  o[n + i] = maybe.value_or(-1.f);
  std_::expected<float, int> result = v;
  if (v < 0) result = std_::unexpected<int>(i);
  o[2 * n + i] = result ? *result : (float)result.error();
  std_::variant<Circle, Square> shape;
  if (i & 1) shape = Circle{v};
  else shape = Square{v};
  o[3 * n + i] = std_::holds_alternative<Circle>(shape)
                     ? 3 * std_::get<Circle>(shape).r * v
                     : std_::get<Square>(shape).a * v;
  o[4 * n + i] = std_::visit(SizeOf(), shape);
  // tuple, pair, utility, functional
  std_::tuple<int, float, char> t{i, v, 'x'};
  auto [number, value, letter] = t;
  std_::swap(number, std_::get<0>(t));
  o[5 * n + i] =
      std_::apply([](int a, float b, char c) { return a + b + c; }, t);
  o[6 * n + i] = std_::invoke(std_::plus<>{}, v, 1.f) +
                 std_::multiplies<float>{}(v, 2.f) +
                 std_::get<0>(std_::make_pair(number, letter));
  // mdspan: a transposed walk
  std_::mdspan<const float, std_::extents<int, 4, 2>> m(near.data());
  float sum = 0;
  for (int c = 0; c < 2; c++)
    for (int r = 0; r < 4; r++) sum = sum * 0.5f + m(r, c);
  o[7 * n + i] = sum;
  // cmath
  o[8 * n + i] = std_::hypot(v, 2.f) + std_::fabs(v) + std_::floor(v);
  o[9 * n + i] = std_::isfinite(v) + std_::signbit(v) * 2 +
                 std_::isnan(std_::sqrt(-1.f - v * v)) * 4;
}
__global__ void constants(long long *o) {
  static_assert(
      std_::is_same_v<std_::common_type_t<int, long long>, long long>);
  static_assert(std_::integral<std_::uint8_t> &&
                !std_::is_trivially_copyable_v<void>);
  o[0] = std_::numeric_limits<long long>::min();
  o[1] = std_::numeric_limits<unsigned short>::max();
  o[2] = std_::numeric_limits<double>::digits;
  o[3] = INT_MAX;
  o[4] = std_::gcd(84, 36) * 1000 + std_::lcm(4, 6);
  o[5] = std_::chrono::duration_cast<std_::chrono::milliseconds>(
             std_::chrono::minutes(3) + std_::chrono::seconds(5))
             .count();
  o[6] = std_::ratio_multiply<std_::ratio<3, 4>, std_::ratio<8, 9>>::num;
  o[7] = FLT_DIG + DBL_MANT_DIG;
  auto before = std_::chrono::system_clock::now(), start = before;
  for (int k = 0; k < 1000 && before == start; k++) {
    __nanosleep(1000);
    start = std_::chrono::system_clock::now();
  }
  o[8] = start > before && before.time_since_epoch().count() > 0;
  auto h0 = std_::chrono::high_resolution_clock::now();
  o[9] = std_::chrono::high_resolution_clock::now() >= h0;
  char text[16];
  std_::memset(text, 'a', 15);
  text[15] = 0;
  std_::memcpy(text + 3, "xyz", 3);
  int length = 0;
  while (text[length]) length++;
  o[10] = length * 1000 + std_::memcmp(text + 3, "xyz", 3) + text[4];
}
__global__ void thrusts(const int *x, int *o, int n) {
  int i = threadIdx.x, v = x[i];
  thrust::pair<int, int> p(v, i);
  auto t = thrust::make_tuple(v, 2.5f, i);
  o[i] = thrust::plus<int>()(v, 3) * thrust::maximum<int>()(v, 10);
  o[n + i] = thrust::get<0>(t) + thrust::get<2>(t) + p.second;
  o[2 * n + i] = thrust::logical_not<bool>()(v > 50) +
                 thrust::greater<int>()(v, i) * 2 +
                 thrust::modulus<int>()(v, 7) * 4;
  o[3 * n + i] = cuda::std::identity()(v) ^ thrust::bit_or<int>()(v, 1);
}
}
]=]

describe("cuda::std:", function()
  local module
  setup(function() module = tp.compile(SOURCE, { name = "std.cu" }) end)
  teardown(function() module:close() end)
  local g = numbers.generator(4601)
  local n = 64

  local function run(name, in_type, xs, out_type, count)
    local kernel <close> = module:kernel(name)
    local x <close> = tp.buffer(in_type, xs)
    local o <close> = tp.zeros(out_type, count)
    kernel:launch({ grid = 1, block = n }, x, o, n)
    return o:read()
  end

  it("bit", function()
    local xs = {}
    for i = 1, n do xs[i] = (g.bits() & 0xffffffff) >> g.int(0, 31) end
    xs[1], xs[2], xs[3], xs[4] = 0, 0xffffffff, 0x80000000, 1
    local r = run("bits", "u32", xs, "u32", 7 * n)
    for i, v in ipairs(xs) do
      local count, width, ones = 0, 0, 0
      for k = 0, 31 do
        if v >> k & 1 == 1 then count, width = count + 1, k + 1 end
      end
      while v >> ones & 1 == 1 do ones = ones + 1 end
      assert.equal(count, r[i])
      assert.equal((32 - width) * 100 + ones, r[n + i])
      assert.equal((v << 7 | v >> 25) & 0xffffffff, r[2 * n + i])
      assert.equal(width, r[3 * n + i])
      assert.equal(count == 1 and 1 or 0, r[4 * n + i])
      assert.equal(v == 0 and 0 or 1 << width - 1, r[5 * n + i])
      assert.equal(numbers.bits32(v >> 8), r[6 * n + i])
    end
  end)

  it("complex", function()
    local xs, expected = g.reals(2 * n, -3, 3), {}
    for i = 0, n - 1 do
      local k = (i + 1) % n
      local a, b = xs[2 * i + 1], xs[2 * i + 2]
      local c, d = xs[2 * k + 1], xs[2 * k + 2]
      local norm, e = c * c + d * d, math.exp(a)
      local size = math.sqrt(a * a + b * b)
      local re = math.sqrt((size + a) / 2)
      local im = math.sqrt((size - a) / 2) * (b < 0 and -1 or 1)
      for row, z in ipairs {
        { a * c - b * d, a * d + b * c },
        { (a * c + b * d) / norm, (b * c - a * d) / norm },
        { e * math.cos(b), e * math.sin(b) }, { re, im }, { a + norm, -b },
        { 2 * math.cos(a), 2 * math.sin(a) },
      } do
        expected[(row - 1) * 2 * n + 2 * i + 1] = z[1]
        expected[(row - 1) * 2 * n + 2 * i + 2] = z[2]
      end
    end
    near(expected, run("complexes", "f64", xs, "f64", 12 * n), 1e-12, 1e-12)
  end)

  it("array to variant", function()
    local xs = g.floats(n, -5, 5)
    local r = run("vocabulary", "f32", xs, "f32", 10 * n)
    local expected = {}
    for i = 0, n - 1 do
      local v, sum, walk, near_ = xs[i + 1], 0, 0, {}
      for k = 0, 7 do
        near_[k] = xs[(i + k) % n + 1]
        sum = sum + near_[k]
      end
      for c = 0, 1 do
        for row = 0, 3 do walk = walk * 0.5 + near_[row * 2 + c] end
      end
      for row, e in ipairs { sum, v > 0 and v or -1, v < 0 and i or v,
        i % 2 == 1 and 3 * v * v or v * v, 4, i + v + 120, v + 1 + v * 2 + i, walk,
        math.sqrt(v * v + 4) + math.abs(v) + v // 1,
        1 + (v < 0 and 2 or 0) + 4 } do
        expected[(row - 1) * n + i + 1] = e
      end
    end
    near(expected, r, 1e-6, 1e-5)
  end)

  it("limits, ratio, chrono, cstring", function()
    local kernel <close> = module:kernel "constants"
    local o <close> = tp.zeros("i64", 11)
    kernel:launch({ grid = 1, block = 1 }, o)
    assert.same({ math.mininteger, 65535, 53, 2147483647, 12012, 185000, 2, 59, 1, 1,
      15000 + ("y"):byte() }, o:read())
  end)

  it("Thrust's function objects", function()
    local xs = g.ints(n, 0, 100)
    local r = run("thrusts", "i32", xs, "i32", 4 * n)
    for i = 0, n - 1 do
      local v = xs[i + 1]
      assert.equal((v + 3) * math.max(v, 10), r[i + 1])
      assert.equal(v + 2 * i, r[n + i + 1])
      assert.equal((v > 50 and 0 or 1) + (v > i and 2 or 0) + v % 7 * 4,
        r[2 * n + i + 1])
      assert.equal(v ~ (v | 1), r[3 * n + i + 1])
    end
  end)
end)
