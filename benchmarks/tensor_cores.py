"""What half-precision matrix products reach from OpenCL on NVIDIA GPUs: `mma.sync` by inline PTX, beside PyTorch.

    python -m benchmarks.tensor_cores [--size 8192] [--reps 7]

An experiment for the kernel compiler, which does not make such kernels yet: float16 factors,
float32 sums, tiles of 128 x 256 by 64 brought by `cp.async` into swizzled local memory. Rows of
the first and last 64 results are checked against NumPy in float64.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np

from benchmarks.interleaved import interleaved
from benchmarks.products import torch_product
from flowcompute.gpu._cl import cl

ROWS, COLUMNS, DEPTH, STAGES, WARP_TILE = 128, 256, 64, 3, 64
WORK_GROUP = (ROWS // WARP_TILE) * (COLUMNS // WARP_TILE) * 32

TEXT = """
#define STAGE (ROWS * DEPTH + DEPTH * COLUMNS)
#define COPY(to, from, bytes) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" \\
    :: "r"(to), "l"(from), "r"(bytes) : "memory")
#define LOAD(trans, a, b, c, d, at) asm volatile( \\
    "ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0,%1,%2,%3}, [%4];" \\
    : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory")
#define MULTIPLY(d, a, b) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " \\
    "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \\
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \\
    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
// Chunks of 8 numbers in another order in each row, so that a column of them lies in different banks.
#define PLACE(row, chunk, width) ((row) * (width) + (((chunk) ^ ((row) & 7)) * 8))

__kernel __attribute__((reqd_work_group_size(WORK_GROUP, 1, 1)))
void product(__global const ushort *restrict A, __global const ushort *restrict B, __global float *restrict C,
             const long n, const long inner, const long columns) {
    __local ushort memory[STAGES * STAGE] __attribute__((aligned(128)));
    const uint base = (uint)(size_t)memory;
    const int lid = get_local_id(0), warp = lid / 32, lane = lid % 32;
    const int top = warp % (ROWS / 64) * 64, left = warp / (ROWS / 64) * 64;
    const long across = (columns + COLUMNS - 1) / COLUMNS, down = (n + ROWS - 1) / ROWS;
    const int steps = (int)((inner + DEPTH - 1) / DEPTH);
    const long band = get_group_id(0) / (8 * across), inside = get_group_id(0) % (8 * across);
    const long high = min(8L, down - band * 8);
    const long row0 = (band * 8 + inside % high) * ROWS, column0 = inside / high * COLUMNS;
    float sums[4][8][4];
    #pragma unroll
    for (int i = 0; i < 4 * 8 * 4; i++) sums[i / 32][i / 4 % 8][i % 4] = -0.0f;
#define BRING(step, stage) { \\
    _Pragma("unroll") for (int u = 0; u < ROWS * DEPTH / 8 / WORK_GROUP; u++) { \\
        int e = lid + u * WORK_GROUP, r = e / (DEPTH / 8), c = e % (DEPTH / 8); \\
        long k = (long)(step) * DEPTH + c * 8; int bytes = row0 + r < n && k < inner ? 16 : 0; \\
        COPY(base + 2 * ((stage) * STAGE + PLACE(r, c, DEPTH)), A + (bytes ? (row0 + r) * inner + k : 0), bytes); } \\
    _Pragma("unroll") for (int u = 0; u < DEPTH * COLUMNS / 8 / WORK_GROUP; u++) { \\
        int e = lid + u * WORK_GROUP, r = e / (COLUMNS / 8), c = e % (COLUMNS / 8); \\
        long k = (long)(step) * DEPTH + r; int bytes = column0 + c * 8 < columns && k < inner ? 16 : 0; \\
        COPY(base + 2 * ((stage) * STAGE + ROWS * DEPTH + PLACE(r, c, COLUMNS)), \\
             B + (bytes ? k * columns + column0 + c * 8 : 0), bytes); } }
    #pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps) BRING(s, s);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
        barrier(CLK_LOCAL_MEM_FENCE);
        if (step + STAGES - 1 < steps) BRING(step + STAGES - 1, (step + STAGES - 1) % STAGES);
        asm volatile("cp.async.commit_group;" ::: "memory");
        const uint of_a = base + 2 * (step % STAGES * STAGE), of_b = of_a + 2 * ROWS * DEPTH;
        #pragma unroll
        for (int k = 0; k < DEPTH / 16; k++) {
            uint a[4][4], b[8][2];
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                int r = top + i * 16 + lane % 16;
                LOAD("", a[i][0], a[i][1], a[i][2], a[i][3], of_a + 2 * PLACE(r, k * 2 + lane / 16, DEPTH));
            }
            #pragma unroll
            for (int j = 0; j < 8; j += 2) {
                int r = k * 16 + lane % 16, c = left / 8 + j + lane / 16;
                LOAD(".trans", b[j][0], b[j][1], b[j + 1][0], b[j + 1][1], of_b + 2 * PLACE(r, c, COLUMNS));
            }
            #pragma unroll
            for (int i = 0; i < 32; i++) MULTIPLY(sums[i / 8][i % 8], a[i / 8], b[i % 8]);
        }
    }
    #pragma unroll
    for (int i = 0; i < 32; i++) {
        long r = row0 + top + i / 8 * 16 + lane / 4, c = column0 + left + i % 8 * 8 + lane % 4 * 2;
        if (r < n && c < columns)
            vstore2((float2)(sums[i / 8][i % 8][0], sums[i / 8][i % 8][1]), 0, C + r * columns + c);
        if (r + 8 < n && c < columns)
            vstore2((float2)(sums[i / 8][i % 8][2], sums[i / 8][i % 8][3]), 0, C + (r + 8) * columns + c);
    }
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--reps", type=int, default=7)
    options = parser.parse_args()
    (platform,) = [one for one in cl.get_platforms() if one.name == "NVIDIA CUDA"]
    context = cl.Context(platform.get_devices()[:1])
    queue, size = cl.CommandQueue(context), options.size
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((size, size), dtype=np.float32).astype(np.float16) for _ in range(2))
    flags = cl.mem_flags
    of_a, of_b = (cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=array) for array in (a, b))
    of_c = cl.Buffer(context, flags.READ_WRITE, 4 * size * size)
    names = {"ROWS": ROWS, "COLUMNS": COLUMNS, "DEPTH": DEPTH, "STAGES": STAGES, "WORK_GROUP": WORK_GROUP}
    kernel = cl.Program(context, TEXT).build([f"-D{name}={value}" for name, value in names.items()]).product
    kernel.set_args(of_a, of_b, of_c, *(np.int64(size) for _ in range(3)))
    groups = -(-size // ROWS) * -(-size // COLUMNS)

    def run() -> None:
        cl.enqueue_nd_range_kernel(queue, kernel, (groups * WORK_GROUP,), (WORK_GROUP,))
        queue.finish()

    calls = {"mma.sync from OpenCL": run}
    peer = torch_product(a, b)
    calls |= {} if peer is None else {"torch": peer}
    for name, times in interleaved(calls, options.reps, untimed=2).items():
        print(f"{name:24} {2 * size**3 / statistics.median(times) / 1e12:7.0f} TFLOP/s")
    c = np.empty((size, size), np.float32)
    cl.enqueue_copy(queue, c, of_c)
    for part in (slice(None, 64), slice(-64, None)):
        exact = a[part].astype("f8") @ b.astype("f8")
        np.testing.assert_allclose(c[part], exact, rtol=0, atol=1e-4 * np.abs(exact).max())
    print("the first and last rows agree with NumPy in float64")


if __name__ == "__main__":
    main()
