#pragma OPENCL FP_CONTRACT OFF

typedef float16 fc_loose_float32_16 __attribute__((aligned(4)));

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
    long start = gid * chunk;
    long stop = min(n, start + chunk);
    long whole = stop - (stop - start) % 16;
    for (long i = start; i < whole; i += 16) {
        float16 v0 = *(const __global fc_loose_float32_16 *)(in0 + (i));
        float16 v1 = (float16)(0x0.0p+0f);
        int16 v2 = (v0 > v1);
        float16 v3 = as_float16(as_int16(v0) & (int16)(0x7fffffff));
        float16 v4 = (v3 == v3 ? v3 : as_float16((uint16)(32 == 64 ? 0x7ff8000000000000UL : 0x7fc00000UL)));
        float16 v5 = (v2 ? v0 : v4);
        *(__global fc_loose_float32_16 *)(out0 + (i)) = v5;
    }
    long i = whole;
    if (i < stop) {
        long left = stop - i;
        float16 v6 = fc_gather_float32_16(in0 + (i), 1, left);
        float16 v7 = (float16)(0x0.0p+0f);
        int16 v8 = (v6 > v7);
        float16 v9 = as_float16(as_int16(v6) & (int16)(0x7fffffff));
        float16 v10 = (v9 == v9 ? v9 : as_float16((uint16)(32 == 64 ? 0x7ff8000000000000UL : 0x7fc00000UL)));
        float16 v11 = (v8 ? v6 : v10);
        fc_scatter_float32_16(v11, out0 + (i), 1, left);
    }
}
