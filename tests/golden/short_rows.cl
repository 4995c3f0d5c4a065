#pragma OPENCL FP_CONTRACT OFF

typedef float16 fc_loose_float32_16 __attribute__((aligned(4)));

static inline float16 fc_load_every_3_float32_16(const __global float *w) {
    const float16 v0 = *(const __global fc_loose_float32_16 *)(w + 0);
    const float16 v1 = *(const __global fc_loose_float32_16 *)(w + 16);
    const float16 v2 = *(const __global fc_loose_float32_16 *)(w + 30);
    return (float16)(v0.s0, v0.s3, v0.s6, v0.s9, v0.sc, v0.sf, v1.s2, v1.s5, v1.s8, v1.sb, v2.s0, v2.s3, v2.s6, v2.s9, v2.sc, v2.sf);
}

static __attribute__((noinline)) void fc_store_every_3_float32_16(float16 all, __global float *w) {
    w[0] = all.s0;
    w[3] = all.s1;
    w[6] = all.s2;
    w[9] = all.s3;
    w[12] = all.s4;
    w[15] = all.s5;
    w[18] = all.s6;
    w[21] = all.s7;
    w[24] = all.s8;
    w[27] = all.s9;
    w[30] = all.sa;
    w[33] = all.sb;
    w[36] = all.sc;
    w[39] = all.sd;
    w[42] = all.se;
    w[45] = all.sf;
}

typedef float2 fc_loose_float32_2 __attribute__((aligned(4)));

static inline float16 fc_load_first_3_float32_16(const __global float *w) {
    return (float16)(*(const __global fc_loose_float32_2 *)(w + 0), w[2], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static inline void fc_store_first_3_float32_16(float16 all, __global float *w) {
    *(__global fc_loose_float32_2 *)(w + 0) = all.s01;
    w[2] = all.s2;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    long start = min(n, (gid * chunk + 15) / 16 * 16);
    long stop = min(n, ((gid + 1) * chunk + 15) / 16 * 16);
    long whole = stop - (stop - start) % 16;
    for (long r = start; r < whole; r += 16) {
        float16 v0 = fc_load_every_3_float32_16(in0 + (r * 3));
        float16 v1 = (v0 * v0);
        float16 v2 = fc_load_every_3_float32_16(in0 + (r * 3 + 2));
        float16 v3 = (v2 * v2);
        float16 v4 = (v1 + v3);
        float16 v5 = fc_load_every_3_float32_16(in0 + (r * 3 + 1));
        float16 v6 = (v5 * v5);
        float16 v7 = (v4 + v6);
        float16 v8 = sqrt(v7);
        float16 v9 = (v0 / v8);
        fc_store_every_3_float32_16((v9 == v9 ? v9 : (float16)(as_float(0x7fc00000U))), out0 + (r * 3));
        float16 v10 = (v5 / v8);
        fc_store_every_3_float32_16((v10 == v10 ? v10 : (float16)(as_float(0x7fc00000U))), out0 + (r * 3 + 1));
        float16 v11 = (v2 / v8);
        fc_store_every_3_float32_16((v11 == v11 ? v11 : (float16)(as_float(0x7fc00000U))), out0 + (r * 3 + 2));
    }
    for (long r = whole; r < stop; r++) {
        long record = r;
        long i13 = record * 3;
        float16 v12 = (float16)(-0x0.0p+0f);
        float16 v14 = fc_load_first_3_float32_16(in0 + (i13));
        float16 v15 = (v14 * v14);
        float16 v16 = (v12 + v15);
        int16 v17 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(3)));
        float16 v18 = (v17 ? v16 : v12);
        v12 = v18;
        float8 v19 = v12.lo;
        float8 v20 = v12.hi;
        float8 v21 = (v19 + v20);
        float4 v22 = v21.lo;
        float4 v23 = v21.hi;
        float4 v24 = (v22 + v23);
        float2 v25 = v24.lo;
        float2 v26 = v24.hi;
        float2 v27 = (v25 + v26);
        float v28 = v27.lo;
        float v29 = v27.hi;
        float v30 = (v28 + v29);
        float4 v31 = (float4)(v30);
        long i32 = record * 3;
        float4 v34 = sqrt(v31);
        {
            float16 v33 = fc_load_first_3_float32_16(in0 + (i13));
            float16 v35 = (float16)(v34.s0);
            float16 v36 = (v33 / v35);
            fc_store_first_3_float32_16((v36 == v36 ? v36 : (float16)(as_float(0x7fc00000U))), out0 + (i32));
        }
    }
}
