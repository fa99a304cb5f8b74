# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: 2026 The tpstream authors
#
# The works of bench/kernels.lua with CuPy, under the same names, with the same
# counts, seeds apart, and measured the same way. Needs CuPy and a GPU.
import os
import statistics

import cupy as cp

N = 1 << int(os.environ.get("BENCH_LOG2", 26))
SIDE = int(os.environ.get("BENCH_SIDE", 4096))
CALLS = int(os.environ.get("BENCH_CALLS", 20))
SAMPLES = 9
ONLY = os.environ.get("BENCH_ONLY", "")

GB = GKEYS = 1e6
TFLOP = 1e9


def median(fn):
    start, stop = cp.cuda.Event(), cp.cuda.Event()
    times = []
    fn()
    for _ in range(SAMPLES):
        start.record()
        for _ in range(CALLS):
            fn()
        stop.record()
        stop.synchronize()
        times.append(cp.cuda.get_elapsed_time(start, stop) / CALLS)
    return statistics.median(times)


def report(name, fn, amount, unit):
    if ONLY not in name:
        return
    ms = median(fn)
    print(f"{name:<28} {ms:10.4f} ms {amount / ms:10.2f} {unit}", flush=True)


def vectors():
    x = cp.random.random(N, dtype=cp.float32)
    y = cp.zeros(N, cp.float32)
    keys = cp.random.randint(0, (1 << 32) - 1, N, dtype=cp.uint32)
    axpy = cp.ElementwiseKernel(
        "float32 a, float32 x", "float32 y", "y = a * x + y", "axpy")
    report("axpy f32", lambda: axpy(cp.float32(0.5), x, y), 12 * N / GB, "GB/s")
    report("sum f32", lambda: cp.sum(x), 4 * N / GB, "GB/s")
    report("max f32", lambda: cp.max(x), 4 * N / GB, "GB/s")
    report("argmax f32", lambda: cp.argmax(x), 4 * N / GB, "GB/s")
    report("dot f32", lambda: cp.dot(x, y), 8 * N / GB, "GB/s")
    report("scan f32", lambda: cp.cumsum(x, out=y), 8 * N / GB, "GB/s")
    report("histogram f32, 256 bins",
           lambda: cp.histogram(x, 256, (0.0, 1.0)), 4 * N / GB, "GB/s")
    rows = 1 << ((N.bit_length() - 1) // 2)
    m = x.reshape(rows, N // rows)
    report("transpose f32", lambda: cp.ascontiguousarray(m.T), 8 * N / GB, "GB/s")
    report("random_uniform f32",
           lambda: cp.random.random(N, dtype=cp.float32), 4 * N / GB, "GB/s")
    report("random_normal f32",
           lambda: cp.random.standard_normal(N, dtype=cp.float32), 4 * N / GB,
           "GB/s")
    report("copy and sort u32", lambda: cp.sort(keys), N / GKEYS, "Gkeys/s")
    # CuPy has no sort of pairs: argsort is the nearest.
    report("copy and sort_pairs u32, f32", lambda: cp.argsort(keys), N / GKEYS,
           "Gkeys/s")


def products():
    for name, dtype in (("f32", cp.float32), ("f16", cp.float16)):
        a = cp.random.random((SIDE, SIDE), dtype=cp.float32).astype(dtype)
        b = cp.random.random((SIDE, SIDE), dtype=cp.float32).astype(dtype)
        c = cp.empty((SIDE, SIDE), dtype)
        report(f"matmul {name}", lambda: cp.matmul(a, b, out=c),
               2 * SIDE ** 3 / TFLOP, "Tflop/s")


vectors()
products()
