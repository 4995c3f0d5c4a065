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
            float16 v0 = *(const __global fc_loose_float32_16 *)(in1 + (0 + (k * 19) + (j)));
            packed[k * 1 + 0] = v0;
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
                long i9 = i8 + 0;
                long i10 = i1 * 20;
                long i11 = i10 + 0;
                long i12 = i2 * 20;
                long i13 = i12 + 0;
                long i14 = i3 * 20;
                long i15 = i14 + 0;
                #pragma unroll
                for (long k = 0; k < 20; k++) {
                    float16 v16 = packed[k * 1 + 0];
                    float16 v17 = (float16)(in0[i9 + k]);
                    float16 v18 = fc_fma_float16(v17, v16, v4);
                    v4 = v18;
                    float16 v19 = (float16)(in0[i11 + k]);
                    float16 v20 = fc_fma_float16(v19, v16, v5);
                    v5 = v20;
                    float16 v21 = (float16)(in0[i13 + k]);
                    float16 v22 = fc_fma_float16(v21, v16, v6);
                    v6 = v22;
                    float16 v23 = (float16)(in0[i15 + k]);
                    float16 v24 = fc_fma_float16(v23, v16, v7);
                    v7 = v24;
                }
                *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v4 == v4 ? v4 : (float16)(as_float(0x7fc00000U)));
                *(__global fc_loose_float32_16 *)(out0 + (i1 * 19 + j)) = (v5 == v5 ? v5 : (float16)(as_float(0x7fc00000U)));
                *(__global fc_loose_float32_16 *)(out0 + (i2 * 19 + j)) = (v6 == v6 ? v6 : (float16)(as_float(0x7fc00000U)));
                *(__global fc_loose_float32_16 *)(out0 + (i3 * 19 + j)) = (v7 == v7 ? v7 : (float16)(as_float(0x7fc00000U)));
            }
            for (long r = tiled; r < end; r++) {
                float16 v25 = (float16)(-0x0.0p+0f);
                long i26 = r * 20;
                long i27 = i26 + 0;
                #pragma unroll
                for (long k = 0; k < 20; k++) {
                    float16 v28 = packed[k * 1 + 0];
                    float16 v29 = (float16)(in0[i27 + k]);
                    float16 v30 = fc_fma_float16(v29, v28, v25);
                    v25 = v30;
                }
                *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v25 == v25 ? v25 : (float16)(as_float(0x7fc00000U)));
            }
        }
    }
    {
        long j = 3;
        for (long k = 0; k < 20; k++) {
            float16 v31 = *(const __global fc_loose_float32_16 *)(in1 + (0 + (k * 19) + (j)));
            packed[k * 1 + 0] = v31;
        }
        {
            long tiled = begin + (end - begin) / 4 * 4;
            for (long r = begin; r < tiled; r += 4) {
                long i32 = r + 1;
                long i33 = r + 2;
                long i34 = r + 3;
                float16 v35 = (float16)(-0x0.0p+0f);
                float16 v36 = (float16)(-0x0.0p+0f);
                float16 v37 = (float16)(-0x0.0p+0f);
                float16 v38 = (float16)(-0x0.0p+0f);
                long i39 = r * 20;
                long i40 = i39 + 0;
                long i41 = i32 * 20;
                long i42 = i41 + 0;
                long i43 = i33 * 20;
                long i44 = i43 + 0;
                long i45 = i34 * 20;
                long i46 = i45 + 0;
                #pragma unroll
                for (long k = 0; k < 20; k++) {
                    float16 v47 = packed[k * 1 + 0];
                    float16 v48 = (float16)(in0[i40 + k]);
                    float16 v49 = fc_fma_float16(v48, v47, v35);
                    v35 = v49;
                    float16 v50 = (float16)(in0[i42 + k]);
                    float16 v51 = fc_fma_float16(v50, v47, v36);
                    v36 = v51;
                    float16 v52 = (float16)(in0[i44 + k]);
                    float16 v53 = fc_fma_float16(v52, v47, v37);
                    v37 = v53;
                    float16 v54 = (float16)(in0[i46 + k]);
                    float16 v55 = fc_fma_float16(v54, v47, v38);
                    v38 = v55;
                }
                *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v35 == v35 ? v35 : (float16)(as_float(0x7fc00000U)));
                *(__global fc_loose_float32_16 *)(out0 + (i32 * 19 + j)) = (v36 == v36 ? v36 : (float16)(as_float(0x7fc00000U)));
                *(__global fc_loose_float32_16 *)(out0 + (i33 * 19 + j)) = (v37 == v37 ? v37 : (float16)(as_float(0x7fc00000U)));
                *(__global fc_loose_float32_16 *)(out0 + (i34 * 19 + j)) = (v38 == v38 ? v38 : (float16)(as_float(0x7fc00000U)));
            }
            for (long r = tiled; r < end; r++) {
                float16 v56 = (float16)(-0x0.0p+0f);
                long i57 = r * 20;
                long i58 = i57 + 0;
                #pragma unroll
                for (long k = 0; k < 20; k++) {
                    float16 v59 = packed[k * 1 + 0];
                    float16 v60 = (float16)(in0[i58 + k]);
                    float16 v61 = fc_fma_float16(v60, v59, v56);
                    v56 = v61;
                }
                *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v56 == v56 ? v56 : (float16)(as_float(0x7fc00000U)));
            }
        }
    }
}
