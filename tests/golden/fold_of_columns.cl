#pragma OPENCL FP_CONTRACT OFF

typedef float16 fc_loose_float32_16 __attribute__((aligned(4)));

typedef float4 fc_loose_float32_4 __attribute__((aligned(4)));

static inline float16 fc_load_first_4_float32_16(const __global float *w) {
    return (float16)(*(const __global fc_loose_float32_4 *)(w + 0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static inline void fc_store_first_4_float32_16(float16 all, __global float *w) {
    *(__global fc_loose_float32_4 *)(w + 0) = all.s0123;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global float *restrict out0,
    __global float *restrict part0,
    __global const float *restrict carry0,
    const float s0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    long limit = (gid + 1) * chunk < blocks ? (gid + 1) * chunk : blocks;
    for (long unit = gid * chunk; unit < limit; unit++) {
        long block = unit;
        long lo = max(0L, block * 2048 - phase);
        long hi = min(n, (block + 1) * 2048 - phase);
        if (block > 0 || phase == 0) {
            for (long j = 0; j < 20; j++) {
                float v13 = (float)(-0x0.0p+0f);
                part0[block * 20 + j] = v13;
            }
        } else {
            for (long j = 0; j < 20; j++) {
                float v14 = carry0[j];
                part0[block * 20 + j] = v14;
            }
        }
        for (long record = lo; record < hi; record++) {
            long i0 = record * 20;
            long i1 = record * 20;
            float4 v3 = (float4)(s0);
            for (long c = 0; c < 16; c += 16) {
                float16 v2 = *(const __global fc_loose_float32_16 *)(in0 + (i1 + c));
                float16 v4 = (float16)(v3.s0);
                float16 v5 = (v2 * v4);
                *(__global fc_loose_float32_16 *)(out0 + (i0 + c)) = (v5 == v5 ? v5 : (float16)(as_float(0x7fc00000U)));
                float16 v6 = *(const __global fc_loose_float32_16 *)(part0 + (block * 20 + c));
                float16 v7 = (v6 + v2);
                *(__global fc_loose_float32_16 *)(part0 + (block * 20 + c)) = v7;
                __builtin_prefetch((const void *)(size_t)(in0 + (i1 + c + 2040)), 0, 3);
                __builtin_prefetch((const void *)(size_t)(out0 + (i0 + c + 2040)), 1, 3);
            }
            {
                float16 v8 = fc_load_first_4_float32_16(in0 + (i1 + 16));
                float16 v9 = (float16)(v3.s0);
                float16 v10 = (v8 * v9);
                fc_store_first_4_float32_16((v10 == v10 ? v10 : (float16)(as_float(0x7fc00000U))), out0 + (i0 + 16));
                float16 v11 = fc_load_first_4_float32_16(part0 + (block * 20 + 16));
                float16 v12 = (v11 + v8);
                fc_store_first_4_float32_16(v12, part0 + (block * 20 + 16));
            }
        }
    }
}
