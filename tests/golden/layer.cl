#pragma OPENCL FP_CONTRACT OFF

typedef float16 fc_loose_float32_16 __attribute__((aligned(4)));

typedef float4 fc_loose_float32_4 __attribute__((aligned(4)));

static inline float16 fc_load_first_4_float32_16(const __global float *w) {
    return (float16)(*(const __global fc_loose_float32_4 *)(w + 0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

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
    float left[4096] __attribute__((aligned(64)));
    float16 packed[20];
    long start = gid * chunk;
    long stop = min(n, start + chunk);
    long begin = start;
    while (begin < stop) {
        long end = min(stop, begin + 128);
        for (long r = begin; r < end; r++) {
            long i62 = r * 20;
            for (long k = 0; k < 16; k += 16) {
                float16 v63 = *(const __global fc_loose_float32_16 *)(in1 + (i62 + k));
                float16 v64 = (float16)(0x1.0000000000000p+1f);
                float16 v65 = (v63 * v64);
                float16 v66 = (float16)(0x0.0p+0f);
                float16 v67 = (v65 == v66 ? as_float16(as_int16(v65) & as_int16(v66)) : ((v65 > v66) | (v65 != v65) ? v65 : v66));
                *(fc_loose_float32_16 *)(left + (r - begin) * 32 + k) = v67;
            }
            {
                float16 v68 = fc_load_first_4_float32_16(in1 + (i62 + 16));
                float16 v69 = (float16)(0x1.0000000000000p+1f);
                float16 v70 = (v68 * v69);
                float16 v71 = (float16)(0x0.0p+0f);
                float16 v72 = (v70 == v71 ? as_float16(as_int16(v70) & as_int16(v71)) : ((v70 > v71) | (v70 != v70) ? v70 : v71));
                *(fc_loose_float32_16 *)(left + (r - begin) * 32 + 16) = v72;
            }
        }
        for (long j = 0; j < 16; j += 16) {
            for (long k = 0; k < 20; k++) {
                float16 v0 = *(const __global fc_loose_float32_16 *)(in0 + (k * 19 + j));
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
                    long i8 = (r - begin) * 32;
                    long i9 = (i1 - begin) * 32;
                    long i10 = (i2 - begin) * 32;
                    long i11 = (i3 - begin) * 32;
                    #pragma unroll
                    for (long k = 0; k < 20; k++) {
                        float16 v12 = packed[k];
                        float v13 = left[i8 + k];
                        float16 v14 = (float16)(v13);
                        float16 v15 = fc_fma_float16(v14, v12, v4);
                        v4 = v15;
                        float v16 = left[i9 + k];
                        float16 v17 = (float16)(v16);
                        float16 v18 = fc_fma_float16(v17, v12, v5);
                        v5 = v18;
                        float v19 = left[i10 + k];
                        float16 v20 = (float16)(v19);
                        float16 v21 = fc_fma_float16(v20, v12, v6);
                        v6 = v21;
                        float v22 = left[i11 + k];
                        float16 v23 = (float16)(v22);
                        float16 v24 = fc_fma_float16(v23, v12, v7);
                        v7 = v24;
                    }
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v4 == v4 ? v4 : (float16)(as_float(0x7fc00000U)));
                    *(__global fc_loose_float32_16 *)(out0 + (i1 * 19 + j)) = (v5 == v5 ? v5 : (float16)(as_float(0x7fc00000U)));
                    *(__global fc_loose_float32_16 *)(out0 + (i2 * 19 + j)) = (v6 == v6 ? v6 : (float16)(as_float(0x7fc00000U)));
                    *(__global fc_loose_float32_16 *)(out0 + (i3 * 19 + j)) = (v7 == v7 ? v7 : (float16)(as_float(0x7fc00000U)));
                }
                for (long r = tiled; r < end; r++) {
                    float16 v25 = (float16)(-0x0.0p+0f);
                    long i26 = (r - begin) * 32;
                    #pragma unroll
                    for (long k = 0; k < 20; k++) {
                        float16 v27 = packed[k];
                        float v28 = left[i26 + k];
                        float16 v29 = (float16)(v28);
                        float16 v30 = fc_fma_float16(v29, v27, v25);
                        v25 = v30;
                    }
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v25 == v25 ? v25 : (float16)(as_float(0x7fc00000U)));
                }
            }
        }
        {
            long j = 3;
            for (long k = 0; k < 20; k++) {
                float16 v31 = *(const __global fc_loose_float32_16 *)(in0 + (k * 19 + j));
                packed[k] = v31;
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
                    long i39 = (r - begin) * 32;
                    long i40 = (i32 - begin) * 32;
                    long i41 = (i33 - begin) * 32;
                    long i42 = (i34 - begin) * 32;
                    #pragma unroll
                    for (long k = 0; k < 20; k++) {
                        float16 v43 = packed[k];
                        float v44 = left[i39 + k];
                        float16 v45 = (float16)(v44);
                        float16 v46 = fc_fma_float16(v45, v43, v35);
                        v35 = v46;
                        float v47 = left[i40 + k];
                        float16 v48 = (float16)(v47);
                        float16 v49 = fc_fma_float16(v48, v43, v36);
                        v36 = v49;
                        float v50 = left[i41 + k];
                        float16 v51 = (float16)(v50);
                        float16 v52 = fc_fma_float16(v51, v43, v37);
                        v37 = v52;
                        float v53 = left[i42 + k];
                        float16 v54 = (float16)(v53);
                        float16 v55 = fc_fma_float16(v54, v43, v38);
                        v38 = v55;
                    }
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v35 == v35 ? v35 : (float16)(as_float(0x7fc00000U)));
                    *(__global fc_loose_float32_16 *)(out0 + (i32 * 19 + j)) = (v36 == v36 ? v36 : (float16)(as_float(0x7fc00000U)));
                    *(__global fc_loose_float32_16 *)(out0 + (i33 * 19 + j)) = (v37 == v37 ? v37 : (float16)(as_float(0x7fc00000U)));
                    *(__global fc_loose_float32_16 *)(out0 + (i34 * 19 + j)) = (v38 == v38 ? v38 : (float16)(as_float(0x7fc00000U)));
                }
                for (long r = tiled; r < end; r++) {
                    float16 v56 = (float16)(-0x0.0p+0f);
                    long i57 = (r - begin) * 32;
                    #pragma unroll
                    for (long k = 0; k < 20; k++) {
                        float16 v58 = packed[k];
                        float v59 = left[i57 + k];
                        float16 v60 = (float16)(v59);
                        float16 v61 = fc_fma_float16(v60, v58, v56);
                        v56 = v61;
                    }
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v56 == v56 ? v56 : (float16)(as_float(0x7fc00000U)));
                }
            }
        }
        begin = end;
    }
}
