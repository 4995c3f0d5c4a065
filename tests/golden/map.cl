#pragma OPENCL FP_CONTRACT OFF

typedef float16 fc_loose_float32_16 __attribute__((aligned(4)));

static inline float16 fc_fma_float16(float16 a, float16 b, float16 c) {
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
}

static inline float16 fc_exp_float16(float16 a) {
    float16 z = a > (float16)(104.0f) ? (float16)(104.0f) : a;
    z = z < (float16)(-104.0f) ? (float16)(-104.0f) : z;
    float16 k = fc_fma_float16(z, (float16)(1.44269504088896341f), (float16)(12582912.0f));
    int16 n = as_int16(k) - (int16)(0x4b400000);
    k = k - (float16)(12582912.0f);
    float16 r = fc_fma_float16(k, (float16)(-0.693359375f), z);
    r = fc_fma_float16(k, (float16)(2.12194440e-4f), r);
    float16 p = (float16)(1.9875691500e-4f);
    p = fc_fma_float16(p, r, (float16)(1.3981999507e-3f));
    p = fc_fma_float16(p, r, (float16)(8.3334519073e-3f));
    p = fc_fma_float16(p, r, (float16)(4.1665795894e-2f));
    p = fc_fma_float16(p, r, (float16)(1.6666665459e-1f));
    p = fc_fma_float16(p, r, (float16)(5.0000001201e-1f));
    p = fc_fma_float16(p, r * r, r);
    p = p + (float16)(1.0f);
    int16 half_n = n >> 1;
    return p * as_float16((half_n + 127) << 23) * as_float16((n - half_n + 127) << 23);
}

static inline float16 fc_sigmoid_float16(float16 a) {
    float16 e = fc_exp_float16(-as_float16(as_int16(a) & (int16)(0x7fffffff)));
    return (a < (float16)(0) ? e : (float16)(1)) / ((float16)(1) + e);
}

static inline float16 fc_tanh_float16(float16 a) {
    float16 size = as_float16(as_int16(a) & 0x7fffffff);
    float16 z = size > (float16)(10.0f) ? (float16)(20.0f) : size + size;
    float16 k = fc_fma_float16(z, (float16)(1.44269504088896341f), (float16)(12582912.0f));
    int16 n = as_int16(k) - (int16)(0x4b400000);
    k = k - (float16)(12582912.0f);
    float16 r = fc_fma_float16(k, (float16)(-0.693359375f), z);
    r = fc_fma_float16(k, (float16)(2.12194440e-4f), r);
    float16 p = (float16)(1.9875691500e-4f);
    p = fc_fma_float16(p, r, (float16)(1.3981999507e-3f));
    p = fc_fma_float16(p, r, (float16)(8.3334519073e-3f));
    p = fc_fma_float16(p, r, (float16)(4.1665795894e-2f));
    p = fc_fma_float16(p, r, (float16)(1.6666665459e-1f));
    p = fc_fma_float16(p, r, (float16)(5.0000001201e-1f));
    p = fc_fma_float16(p, r * r, r);
    float16 s = as_float16((n + 127) << 23);
    float16 e = fc_fma_float16(p, s, s - (float16)(1.0f));
    float16 t = e / (e + (float16)(2.0f));
    return as_float16(as_int16(t) | (as_int16(a) & (int16)(0x80000000)));
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
    long start = gid * chunk;
    long stop = min(n, start + chunk);
    long whole = stop - (stop - start) % 16;
    for (long i = start; i < whole; i += 16) {
        float16 v0 = (float16)(0x1.0000000000000p+1f);
        float16 v1 = *(const __global fc_loose_float32_16 *)(in0 + (i));
        float16 v2 = (v0 * v1);
        float16 v3 = (float16)(0x1.0000000000000p+0f);
        float16 v4 = (v2 + v3);
        float16 v5 = fc_sigmoid_float16(v4);
        float16 v6 = fc_tanh_float16(v1);
        float16 v7 = (v5 * v6);
        *(__global fc_loose_float32_16 *)(out0 + (i)) = (v7 == v7 ? v7 : (float16)(as_float(0x7fc00000U)));
    }
    long i = whole;
    if (i < stop) {
        long left = stop - i;
        float16 v8 = (float16)(0x1.0000000000000p+1f);
        float16 v9 = fc_gather_float32_16(in0 + (i), 1, left);
        float16 v10 = (v8 * v9);
        float16 v11 = (float16)(0x1.0000000000000p+0f);
        float16 v12 = (v10 + v11);
        float16 v13 = fc_sigmoid_float16(v12);
        float16 v14 = fc_tanh_float16(v9);
        float16 v15 = (v13 * v14);
        fc_scatter_float32_16((v15 == v15 ? v15 : (float16)(as_float(0x7fc00000U))), out0 + (i), 1, left);
    }
}
