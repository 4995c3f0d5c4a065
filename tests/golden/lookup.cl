#pragma OPENCL FP_CONTRACT OFF

typedef float16 fc_loose_float32_16 __attribute__((aligned(4)));

typedef float4 fc_loose_float32_4 __attribute__((aligned(4)));

static inline float16 fc_load_first_5_float32_16(const __global float *w) {
    return (float16)(*(const __global fc_loose_float32_4 *)(w + 0), w[4], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static inline void fc_store_first_5_float32_16(float16 all, __global float *w) {
    *(__global fc_loose_float32_4 *)(w + 0) = all.s0123;
    w[4] = all.s4;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global const int *restrict in1,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    long start = gid * chunk;
    long stop = min(n, start + chunk);
    for (long r = start; r < stop; r++) {
        long i0 = r / 3;
        long i1 = r % 3;
        long i2 = i1 % 3;
        for (long j = 0; j < 16; j += 16) {
            long i3 = in1[i0 * 3 + i2] * 21;
            float16 v4 = *(const __global fc_loose_float32_16 *)(in0 + (i3 + j));
            float16 v5 = (float16)(0x1.0000000000000p+1f);
            float16 v6 = (v4 * v5);
            *(__global fc_loose_float32_16 *)(out0 + (i0 * 63 + i1 % 3 * 21 + j)) = (v6 == v6 ? v6 : (float16)(as_float(0x7fc00000U)));
        }
        {
            long i7 = in1[i0 * 3 + i2] * 21;
            float16 v8 = fc_load_first_5_float32_16(in0 + (i7 + 16));
            float16 v9 = (float16)(0x1.0000000000000p+1f);
            float16 v10 = (v8 * v9);
            fc_store_first_5_float32_16((v10 == v10 ? v10 : (float16)(as_float(0x7fc00000U))), out0 + (i0 * 63 + i1 % 3 * 21 + 16));
        }
    }
}
