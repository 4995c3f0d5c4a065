#pragma OPENCL FP_CONTRACT OFF

static __attribute__((noinline)) float16 fc_load_every_20_float32_16(const __global float *w) {
    return (float16)(w[0], w[20], w[40], w[60], w[80], w[100], w[120], w[140], w[160], w[180], w[200], w[220], w[240], w[260], w[280], w[300]);
}

static inline float16 fc_fma_float16(float16 a, float16 b, float16 c) {
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
}

static __attribute__((noinline)) void fc_store_every_20_float32_16(float16 all, __global float *w) {
    w[0] = all.s0;
    w[20] = all.s1;
    w[40] = all.s2;
    w[60] = all.s3;
    w[80] = all.s4;
    w[100] = all.s5;
    w[120] = all.s6;
    w[140] = all.s7;
    w[160] = all.s8;
    w[180] = all.s9;
    w[200] = all.sa;
    w[220] = all.sb;
    w[240] = all.sc;
    w[260] = all.sd;
    w[280] = all.se;
    w[300] = all.sf;
}

static inline float16 fc_gather_float32_16(const __global float *p, long stride, long count) {
    float all[16];
    for (int lane = 0; lane < 16; lane++) all[lane] = lane < count ? p[lane * stride] : 0;
    return vload16(0, all);
}

static inline void fc_scatter_float32_16(float16 value, __global float *p, long stride, long count) {
    float all[16];
    vstore16(value, 0, all);
    for (int lane = 0; lane < 16; lane++) if (lane < count) p[lane * stride] = all[lane];
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
    long count = n;
    for (long u = gid * 16; u < count; u += gsize * 16) {
        if (u + 16 <= count) {
            float16 v0 = (float16)(0x0.0p+0f);
            for (long j = 0; j < 20; j++) {
                float16 v1 = fc_load_every_20_float32_16(in0 + (u * 20 + j));
                float16 v2 = (float16)(0x1.0000000000000p+0f);
                float16 v3 = fc_fma_float16(v1, v0, v2);
                v0 = v3;
                float16 v4 = v0;
                fc_store_every_20_float32_16((v4 == v4 ? v4 : (float16)(as_float(0x7fc00000U))), out0 + (u * 20 + j));
            }
        } else {
            long left = count - u;
            float16 v5 = (float16)(0x0.0p+0f);
            for (long j = 0; j < 20; j++) {
                float16 v6 = fc_gather_float32_16(in0 + (u * 20 + j), 20, left);
                float16 v7 = (float16)(0x1.0000000000000p+0f);
                float16 v8 = fc_fma_float16(v6, v5, v7);
                v5 = v8;
                float16 v9 = v5;
                fc_scatter_float32_16((v9 == v9 ? v9 : (float16)(as_float(0x7fc00000U))), out0 + (u * 20 + j), 20, left);
            }
        }
    }
}
