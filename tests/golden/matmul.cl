#pragma OPENCL FP_CONTRACT OFF

typedef float16 fc_loose_float32_16 __attribute__((aligned(4)));

static inline float16 fc_fma_float16(float16 a, float16 b, float16 c) {
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
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
    float16 packed[20];
    long start = gid * chunk;
    long stop = min(n, start + chunk);
    long begin = start;
    long end = stop;
    for (long j = 0; j < 16; j += 16) {
        for (long k = 0; k < 20; k++) {
            float16 v0 = *(const __global fc_loose_float32_16 *)(in1 + (k * 19 + j));
            packed[k] = v0;
        }
        {
            long tiled = begin + (end - begin) / 4 * 4;
            for (long r = begin; r < tiled; r += 4) {
                long i1 = r + 1;
                long i2 = r + 2;
                long i3 = r + 3;
                float16 v4 = (float16)(-0x0.0p+0f);
                float16 v5 = (float16)(-0x0.0p+0f);
                float16 v6 = (float16)(-0x0.0p+0f);
                float16 v7 = (float16)(-0x0.0p+0f);
                long i8 = r * 20;
                long i9 = i1 * 20;
                long i10 = i2 * 20;
                long i11 = i3 * 20;
                #pragma unroll
                for (long k = 0; k < 20; k++) {
                    float16 v12 = packed[k];
                    float16 v13 = (float16)((in0 + i8)[k]);
                    float16 v14 = fc_fma_float16(v13, v12, v4);
                    v4 = v14;
                    float16 v15 = (float16)((in0 + i9)[k]);
                    float16 v16 = fc_fma_float16(v15, v12, v5);
                    v5 = v16;
                    float16 v17 = (float16)((in0 + i10)[k]);
                    float16 v18 = fc_fma_float16(v17, v12, v6);
                    v6 = v18;
                    float16 v19 = (float16)((in0 + i11)[k]);
                    float16 v20 = fc_fma_float16(v19, v12, v7);
                    v7 = v20;
                }
                *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v4 == v4 ? v4 : (float16)(as_float(0x7fc00000U)));
                *(__global fc_loose_float32_16 *)(out0 + (i1 * 19 + j)) = (v5 == v5 ? v5 : (float16)(as_float(0x7fc00000U)));
                *(__global fc_loose_float32_16 *)(out0 + (i2 * 19 + j)) = (v6 == v6 ? v6 : (float16)(as_float(0x7fc00000U)));
                *(__global fc_loose_float32_16 *)(out0 + (i3 * 19 + j)) = (v7 == v7 ? v7 : (float16)(as_float(0x7fc00000U)));
            }
            for (long r = tiled; r < end; r++) {
                float16 v21 = (float16)(-0x0.0p+0f);
                long i22 = r * 20;
                #pragma unroll
                for (long k = 0; k < 20; k++) {
                    float16 v23 = packed[k];
                    float16 v24 = (float16)((in0 + i22)[k]);
                    float16 v25 = fc_fma_float16(v24, v23, v21);
                    v21 = v25;
                }
                *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v21 == v21 ? v21 : (float16)(as_float(0x7fc00000U)));
            }
        }
    }
    {
        long j = 3;
        for (long k = 0; k < 20; k++) {
            float16 v26 = *(const __global fc_loose_float32_16 *)(in1 + (k * 19 + j));
            packed[k] = v26;
        }
        {
            long tiled = begin + (end - begin) / 4 * 4;
            for (long r = begin; r < tiled; r += 4) {
                long i27 = r + 1;
                long i28 = r + 2;
                long i29 = r + 3;
                float16 v30 = (float16)(-0x0.0p+0f);
                float16 v31 = (float16)(-0x0.0p+0f);
                float16 v32 = (float16)(-0x0.0p+0f);
                float16 v33 = (float16)(-0x0.0p+0f);
                long i34 = r * 20;
                long i35 = i27 * 20;
                long i36 = i28 * 20;
                long i37 = i29 * 20;
                #pragma unroll
                for (long k = 0; k < 20; k++) {
                    float16 v38 = packed[k];
                    float16 v39 = (float16)((in0 + i34)[k]);
                    float16 v40 = fc_fma_float16(v39, v38, v30);
                    v30 = v40;
                    float16 v41 = (float16)((in0 + i35)[k]);
                    float16 v42 = fc_fma_float16(v41, v38, v31);
                    v31 = v42;
                    float16 v43 = (float16)((in0 + i36)[k]);
                    float16 v44 = fc_fma_float16(v43, v38, v32);
                    v32 = v44;
                    float16 v45 = (float16)((in0 + i37)[k]);
                    float16 v46 = fc_fma_float16(v45, v38, v33);
                    v33 = v46;
                }
                *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v30 == v30 ? v30 : (float16)(as_float(0x7fc00000U)));
                *(__global fc_loose_float32_16 *)(out0 + (i27 * 19 + j)) = (v31 == v31 ? v31 : (float16)(as_float(0x7fc00000U)));
                *(__global fc_loose_float32_16 *)(out0 + (i28 * 19 + j)) = (v32 == v32 ? v32 : (float16)(as_float(0x7fc00000U)));
                *(__global fc_loose_float32_16 *)(out0 + (i29 * 19 + j)) = (v33 == v33 ? v33 : (float16)(as_float(0x7fc00000U)));
            }
            for (long r = tiled; r < end; r++) {
                float16 v47 = (float16)(-0x0.0p+0f);
                long i48 = r * 20;
                #pragma unroll
                for (long k = 0; k < 20; k++) {
                    float16 v49 = packed[k];
                    float16 v50 = (float16)((in0 + i48)[k]);
                    float16 v51 = fc_fma_float16(v50, v49, v47);
                    v47 = v51;
                }
                *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v47 == v47 ? v47 : (float16)(as_float(0x7fc00000U)));
            }
        }
    }
}
