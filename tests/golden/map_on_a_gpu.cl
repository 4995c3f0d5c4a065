#pragma OPENCL FP_CONTRACT OFF

static inline float4 fc_sigmoid_float4(float4 a) {
    float4 e = exp(-fabs(a)), d = (float4)(1) + e, r = native_recip(d);
    return (a < (float4)(0) ? e : (float4)(1)) * r;
}

static inline float4 fc_gather_float32_4(const __global float *p, long stride, long count) {
    float all[4];
    for (int lane = 0; lane < 4; lane++) all[lane] = lane < count ? p[lane * stride] : 0;
    return vload4(0, all);
}

static inline void fc_scatter_float32_4(float4 value, __global float *p, long stride, long count) {
    float all[4];
    vstore4(value, 0, all);
    for (int lane = 0; lane < 4; lane++) if (lane < count) p[lane * stride] = all[lane];
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long i = wid * 4; i < n; i += wsize * 4) {
        if (i + 4 <= n) {
            float4 v0 = (float4)(0x1.0000000000000p+1f);
            float4 v1 = *(const __global float4 *)(in0 + (i));
            float4 v2 = (v0 * v1);
            float4 v3 = (float4)(0x1.0000000000000p+0f);
            float4 v4 = (v2 + v3);
            float4 v5 = fc_sigmoid_float4(v4);
            float4 v6 = tanh(v1);
            float4 v7 = (v5 * v6);
            *(__global float4 *)(out0 + (i)) = (v7 == v7 ? v7 : (float4)(as_float(0x7fc00000U)));
        } else {
            long left = n - i;
            float4 v8 = (float4)(0x1.0000000000000p+1f);
            float4 v9 = fc_gather_float32_4(in0 + (i), 1, left);
            float4 v10 = (v8 * v9);
            float4 v11 = (float4)(0x1.0000000000000p+0f);
            float4 v12 = (v10 + v11);
            float4 v13 = fc_sigmoid_float4(v12);
            float4 v14 = tanh(v9);
            float4 v15 = (v13 * v14);
            fc_scatter_float32_4((v15 == v15 ? v15 : (float4)(as_float(0x7fc00000U))), out0 + (i), 1, left);
        }
    }
}
