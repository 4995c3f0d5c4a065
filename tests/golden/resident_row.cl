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
    __global const float *restrict in1,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    long start = gid * chunk;
    long stop = min(n, start + chunk);
    long p0 = start % 96;
    long whole = stop - (stop - start) % 16;
    for (long i = start; i < whole; i += 16) {
        float16 v0 = *(const __global fc_loose_float32_16 *)(in0 + (i));
        float16 v1 = *(const __global fc_loose_float32_16 *)(in1 + (p0));
        float16 v2 = (v0 * v1);
        *(__global fc_loose_float32_16 *)(out0 + (i)) = (v2 == v2 ? v2 : (float16)(as_float(0x7fc00000U)));
        p0 = p0 + 16 - (p0 + 16 >= 96 ? 96 : 0);
    }
    long i = whole;
    if (i < stop) {
        long left = stop - i;
        float16 v3 = fc_gather_float32_16(in0 + (i), 1, left);
        float16 v4 = *(const __global fc_loose_float32_16 *)(in1 + (p0));
        float16 v5 = (v3 * v4);
        fc_scatter_float32_16((v5 == v5 ? v5 : (float16)(as_float(0x7fc00000U))), out0 + (i), 1, left);
    }
}
