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
    float left[4096];
    float16 packed[20];
    long start = gid * chunk;
    long stop = min(n, start + chunk);
    long begin = start;
    while (begin < stop) {
        long end = min(stop, begin + 128);
        for (long r = begin; r < end; r++) {
            long i72 = r * 20;
            for (long k = 0; k < 16; k += 16) {
                float16 v73 = *(const __global fc_loose_float32_16 *)(in1 + ((i72 + k)));
                float16 v74 = (float16)(0x1.0000000000000p+1f);
                float16 v75 = (v73 * v74);
                float16 v76 = (float16)(0x0.0p+0f);
                float16 v77 = (v75 == v76 ? as_float16(as_int16(v75) & as_int16(v76)) : ((v75 > v76) | (v75 != v75) ? v75 : v76));
                *(fc_loose_float32_16 *)(left + (r - begin) * 32 + k) = v77;
            }
            {
                float16 v78 = fc_load_first_4_float32_16(in1 + ((i72 + 16)));
                float16 v79 = (float16)(0x1.0000000000000p+1f);
                float16 v80 = (v78 * v79);
                float16 v81 = (float16)(0x0.0p+0f);
                float16 v82 = (v80 == v81 ? as_float16(as_int16(v80) & as_int16(v81)) : ((v80 > v81) | (v80 != v80) ? v80 : v81));
                *(fc_loose_float32_16 *)(left + (r - begin) * 32 + 16) = v82;
            }
        }
        for (long j = 0; j < 16; j += 16) {
            for (long k = 0; k < 20; k++) {
                float16 v0 = *(const __global fc_loose_float32_16 *)(in0 + (0 + (k * 19) + (j)));
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
                    long i8 = (r - begin) * 32;
                    long i9 = i8 + 0;
                    long i10 = (i1 - begin) * 32;
                    long i11 = i10 + 0;
                    long i12 = (i2 - begin) * 32;
                    long i13 = i12 + 0;
                    long i14 = (i3 - begin) * 32;
                    long i15 = i14 + 0;
                    #pragma unroll
                    for (long k = 0; k < 20; k++) {
                        float16 v16 = packed[k * 1 + 0];
                        float v17 = left[i9 + k];
                        float16 v18 = (float16)(v17);
                        float16 v19 = fc_fma_float16(v18, v16, v4);
                        v4 = v19;
                        float v20 = left[i11 + k];
                        float16 v21 = (float16)(v20);
                        float16 v22 = fc_fma_float16(v21, v16, v5);
                        v5 = v22;
                        float v23 = left[i13 + k];
                        float16 v24 = (float16)(v23);
                        float16 v25 = fc_fma_float16(v24, v16, v6);
                        v6 = v25;
                        float v26 = left[i15 + k];
                        float16 v27 = (float16)(v26);
                        float16 v28 = fc_fma_float16(v27, v16, v7);
                        v7 = v28;
                    }
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v4 == v4 ? v4 : (float16)(as_float(0x7fc00000U)));
                    *(__global fc_loose_float32_16 *)(out0 + (i1 * 19 + j)) = (v5 == v5 ? v5 : (float16)(as_float(0x7fc00000U)));
                    *(__global fc_loose_float32_16 *)(out0 + (i2 * 19 + j)) = (v6 == v6 ? v6 : (float16)(as_float(0x7fc00000U)));
                    *(__global fc_loose_float32_16 *)(out0 + (i3 * 19 + j)) = (v7 == v7 ? v7 : (float16)(as_float(0x7fc00000U)));
                }
                for (long r = tiled; r < end; r++) {
                    float16 v29 = (float16)(-0x0.0p+0f);
                    long i30 = (r - begin) * 32;
                    long i31 = i30 + 0;
                    #pragma unroll
                    for (long k = 0; k < 20; k++) {
                        float16 v32 = packed[k * 1 + 0];
                        float v33 = left[i31 + k];
                        float16 v34 = (float16)(v33);
                        float16 v35 = fc_fma_float16(v34, v32, v29);
                        v29 = v35;
                    }
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v29 == v29 ? v29 : (float16)(as_float(0x7fc00000U)));
                }
            }
        }
        {
            long j = 3;
            for (long k = 0; k < 20; k++) {
                float16 v36 = *(const __global fc_loose_float32_16 *)(in0 + (0 + (k * 19) + (j)));
                packed[k * 1 + 0] = v36;
            }
            {
                long tiled = begin + (end - begin) / 4 * 4;
                for (long r = begin; r < tiled; r += 4) {
                    long i37 = r + 1;
                    long i38 = r + 2;
                    long i39 = r + 3;
                    float16 v40 = (float16)(-0x0.0p+0f);
                    float16 v41 = (float16)(-0x0.0p+0f);
                    float16 v42 = (float16)(-0x0.0p+0f);
                    float16 v43 = (float16)(-0x0.0p+0f);
                    long i44 = (r - begin) * 32;
                    long i45 = i44 + 0;
                    long i46 = (i37 - begin) * 32;
                    long i47 = i46 + 0;
                    long i48 = (i38 - begin) * 32;
                    long i49 = i48 + 0;
                    long i50 = (i39 - begin) * 32;
                    long i51 = i50 + 0;
                    #pragma unroll
                    for (long k = 0; k < 20; k++) {
                        float16 v52 = packed[k * 1 + 0];
                        float v53 = left[i45 + k];
                        float16 v54 = (float16)(v53);
                        float16 v55 = fc_fma_float16(v54, v52, v40);
                        v40 = v55;
                        float v56 = left[i47 + k];
                        float16 v57 = (float16)(v56);
                        float16 v58 = fc_fma_float16(v57, v52, v41);
                        v41 = v58;
                        float v59 = left[i49 + k];
                        float16 v60 = (float16)(v59);
                        float16 v61 = fc_fma_float16(v60, v52, v42);
                        v42 = v61;
                        float v62 = left[i51 + k];
                        float16 v63 = (float16)(v62);
                        float16 v64 = fc_fma_float16(v63, v52, v43);
                        v43 = v64;
                    }
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v40 == v40 ? v40 : (float16)(as_float(0x7fc00000U)));
                    *(__global fc_loose_float32_16 *)(out0 + (i37 * 19 + j)) = (v41 == v41 ? v41 : (float16)(as_float(0x7fc00000U)));
                    *(__global fc_loose_float32_16 *)(out0 + (i38 * 19 + j)) = (v42 == v42 ? v42 : (float16)(as_float(0x7fc00000U)));
                    *(__global fc_loose_float32_16 *)(out0 + (i39 * 19 + j)) = (v43 == v43 ? v43 : (float16)(as_float(0x7fc00000U)));
                }
                for (long r = tiled; r < end; r++) {
                    float16 v65 = (float16)(-0x0.0p+0f);
                    long i66 = (r - begin) * 32;
                    long i67 = i66 + 0;
                    #pragma unroll
                    for (long k = 0; k < 20; k++) {
                        float16 v68 = packed[k * 1 + 0];
                        float v69 = left[i67 + k];
                        float16 v70 = (float16)(v69);
                        float16 v71 = fc_fma_float16(v70, v68, v65);
                        v65 = v71;
                    }
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v65 == v65 ? v65 : (float16)(as_float(0x7fc00000U)));
                }
            }
        }
        begin = end;
    }
}
