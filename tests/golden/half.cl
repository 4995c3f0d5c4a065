#pragma OPENCL FP_CONTRACT OFF

static inline float16 fc_round_float16_16(float16 x) {
    uint16 bits = as_uint16(x), sign = bits & (uint16)(0x80000000), size = bits ^ sign;
    uint16 near = (size + (uint16)(0xfff) + ((size >> (uint16)(13)) & (uint16)(1))) & (uint16)(0xffffe000);
    float16 tiny = (as_float16(size) + (float16)(0.5f)) - (float16)(0.5f);
    uint16 result = size < (uint16)(0x38800000) ? as_uint16(tiny) : near;
    result = near >= (uint16)(0x47800000) ? (uint16)(0x7f800000) : result;
    result = size > (uint16)(0x7f800000) ? (uint16)(0x7fc00000) : result;
    return as_float16(result | sign);
}

static inline float16 fc_gather_float16_16(const __global half *p, long stride, long count) {
    float all[16];
    for (int lane = 0; lane < 16; lane++) all[lane] = lane < count ? vload_half(lane * stride, p) : 0;
    return vload16(0, all);
}

static inline void fc_scatter_float16_16(float16 value, __global half *p, long stride, long count) {
    float all[16];
    vstore16(value, 0, all);
    for (int lane = 0; lane < 16; lane++) if (lane < count) vstore_half(all[lane], lane * stride, p);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void k0(
    __global const half *restrict in0,
    __global half *restrict out0,
    const float s0,
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
        float16 v0 = vload_half16(0, in0 + (i));
        float16 v1 = (float16)(s0);
        float16 v2 = fc_round_float16_16((v0 * v1));
        vstore_half16((v2 == v2 ? v2 : (float16)(as_float(0x7fc00000U))), 0, out0 + (i));
        if (any(v2 != v2)) {
            if (v2.s0 != v2.s0) ((__global ushort *)out0)[i] = 0x7e00;
            if (v2.s1 != v2.s1) ((__global ushort *)out0)[i + 1] = 0x7e00;
            if (v2.s2 != v2.s2) ((__global ushort *)out0)[i + 2] = 0x7e00;
            if (v2.s3 != v2.s3) ((__global ushort *)out0)[i + 3] = 0x7e00;
            if (v2.s4 != v2.s4) ((__global ushort *)out0)[i + 4] = 0x7e00;
            if (v2.s5 != v2.s5) ((__global ushort *)out0)[i + 5] = 0x7e00;
            if (v2.s6 != v2.s6) ((__global ushort *)out0)[i + 6] = 0x7e00;
            if (v2.s7 != v2.s7) ((__global ushort *)out0)[i + 7] = 0x7e00;
            if (v2.s8 != v2.s8) ((__global ushort *)out0)[i + 8] = 0x7e00;
            if (v2.s9 != v2.s9) ((__global ushort *)out0)[i + 9] = 0x7e00;
            if (v2.sa != v2.sa) ((__global ushort *)out0)[i + 10] = 0x7e00;
            if (v2.sb != v2.sb) ((__global ushort *)out0)[i + 11] = 0x7e00;
            if (v2.sc != v2.sc) ((__global ushort *)out0)[i + 12] = 0x7e00;
            if (v2.sd != v2.sd) ((__global ushort *)out0)[i + 13] = 0x7e00;
            if (v2.se != v2.se) ((__global ushort *)out0)[i + 14] = 0x7e00;
            if (v2.sf != v2.sf) ((__global ushort *)out0)[i + 15] = 0x7e00;
        }
    }
    long i = whole;
    if (i < stop) {
        long left = stop - i;
        float16 v3 = fc_gather_float16_16(in0 + (i), 1, left);
        float16 v4 = (float16)(s0);
        float16 v5 = fc_round_float16_16((v3 * v4));
        fc_scatter_float16_16((v5 == v5 ? v5 : (float16)(as_float(0x7fc00000U))), out0 + (i), 1, left);
        if (any(v5 != v5)) {
            if (0 < left && v5.s0 != v5.s0) ((__global ushort *)out0)[i] = 0x7e00;
            if (1 < left && v5.s1 != v5.s1) ((__global ushort *)out0)[i + 1] = 0x7e00;
            if (2 < left && v5.s2 != v5.s2) ((__global ushort *)out0)[i + 2] = 0x7e00;
            if (3 < left && v5.s3 != v5.s3) ((__global ushort *)out0)[i + 3] = 0x7e00;
            if (4 < left && v5.s4 != v5.s4) ((__global ushort *)out0)[i + 4] = 0x7e00;
            if (5 < left && v5.s5 != v5.s5) ((__global ushort *)out0)[i + 5] = 0x7e00;
            if (6 < left && v5.s6 != v5.s6) ((__global ushort *)out0)[i + 6] = 0x7e00;
            if (7 < left && v5.s7 != v5.s7) ((__global ushort *)out0)[i + 7] = 0x7e00;
            if (8 < left && v5.s8 != v5.s8) ((__global ushort *)out0)[i + 8] = 0x7e00;
            if (9 < left && v5.s9 != v5.s9) ((__global ushort *)out0)[i + 9] = 0x7e00;
            if (10 < left && v5.sa != v5.sa) ((__global ushort *)out0)[i + 10] = 0x7e00;
            if (11 < left && v5.sb != v5.sb) ((__global ushort *)out0)[i + 11] = 0x7e00;
            if (12 < left && v5.sc != v5.sc) ((__global ushort *)out0)[i + 12] = 0x7e00;
            if (13 < left && v5.sd != v5.sd) ((__global ushort *)out0)[i + 13] = 0x7e00;
            if (14 < left && v5.se != v5.se) ((__global ushort *)out0)[i + 14] = 0x7e00;
            if (15 < left && v5.sf != v5.sf) ((__global ushort *)out0)[i + 15] = 0x7e00;
        }
    }
}
