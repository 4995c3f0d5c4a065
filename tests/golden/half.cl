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
        vstore_half16((v2 == v2 ? v2 : (float16)(NAN)), 0, out0 + (i));
    }
    long i = whole;
    if (i < stop) {
        long left = stop - i;
        float16 v3 = fc_gather_float16_16(in0 + (i), 1, left);
        float16 v4 = (float16)(s0);
        float16 v5 = fc_round_float16_16((v3 * v4));
        fc_scatter_float16_16((v5 == v5 ? v5 : (float16)(NAN)), out0 + (i), 1, left);
    }
}
