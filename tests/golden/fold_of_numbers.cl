#pragma OPENCL FP_CONTRACT OFF

typedef float16 fc_loose_float32_16 __attribute__((aligned(4)));

static inline float16 fc_gather_float32_16(const __global float *p, long stride, long count) {
    float all[16];
    for (int lane = 0; lane < 16; lane++) all[lane] = lane < count ? p[lane * stride] : 0;
    return vload16(0, all);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global float *restrict part0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    long limit = (gid + 1) * chunk < blocks ? (gid + 1) * chunk : blocks;
    for (long block = gid * chunk; block < limit; block++) {
        long base = block * 1024;
        if (base + 1024 <= n) {
            float16 a0[16];
            for (long g1 = 0; g1 < 16; g1++) {
                float16 v3 = (float16)(-0x0.0p+0f);
                a0[g1] = v3;
            }
            #pragma unroll 1
            for (long t2 = 0; t2 < 4; t2++) {
                #pragma unroll 1
                for (long g1 = 0; g1 < 16; g1++) {
                    float16 v4 = a0[g1];
                    long i5 = base + (t2 * 16 + g1) * 16;
                    float16 v6 = *(const __global fc_loose_float32_16 *)(in0 + (i5));
                    float16 v7 = (v4 + v6);
                    v4 = v7;
                    a0[g1] = v4;
                }
            }
            for (long g8 = 0; g8 < 8; g8++) {
                float16 v9 = a0[g8];
                float16 v10 = a0[g8 + 8];
                float16 v11 = (v9 + v10);
                a0[g8] = v11;
            }
            for (long g12 = 0; g12 < 4; g12++) {
                float16 v13 = a0[g12];
                float16 v14 = a0[g12 + 4];
                float16 v15 = (v13 + v14);
                a0[g12] = v15;
            }
            for (long g16 = 0; g16 < 2; g16++) {
                float16 v17 = a0[g16];
                float16 v18 = a0[g16 + 2];
                float16 v19 = (v17 + v18);
                a0[g16] = v19;
            }
            for (long g20 = 0; g20 < 1; g20++) {
                float16 v21 = a0[g20];
                float16 v22 = a0[g20 + 1];
                float16 v23 = (v21 + v22);
                a0[g20] = v23;
            }
            float16 v24 = a0[0];
            float8 v25 = v24.lo;
            float8 v26 = v24.hi;
            float8 v27 = (v25 + v26);
            float4 v28 = v27.lo;
            float4 v29 = v27.hi;
            float4 v30 = (v28 + v29);
            float2 v31 = v30.lo;
            float2 v32 = v30.hi;
            float2 v33 = (v31 + v32);
            float v34 = v33.lo;
            float v35 = v33.hi;
            float v36 = (v34 + v35);
            part0[block] = v36;
        } else {
            float16 a37[16];
            for (long g38 = 0; g38 < 16; g38++) {
                float16 v39 = (float16)(-0x0.0p+0f);
                for (long t40 = 0; t40 < 4; t40++) {
                    if (t40 * 256 + g38 * 16 < n - base) {
                        long i41 = t40 * 256 + g38 * 16;
                        long i42 = base + i41;
                        float16 v43 = fc_gather_float32_16(in0 + (i42), 1, min(16L, n - base - i41));
                        float16 v44 = (v39 + v43);
                        int16 v45 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(min(16L, n - base - i41))));
                        float16 v46 = (v45 ? v44 : v39);
                        v39 = v46;
                    }
                }
                a37[g38] = v39;
            }
            for (long g47 = 0; g47 < 8; g47++) {
                float16 v48 = a37[g47];
                float16 v49 = a37[g47 + 8];
                float16 v50 = (v48 + v49);
                a37[g47] = v50;
            }
            for (long g51 = 0; g51 < 4; g51++) {
                float16 v52 = a37[g51];
                float16 v53 = a37[g51 + 4];
                float16 v54 = (v52 + v53);
                a37[g51] = v54;
            }
            for (long g55 = 0; g55 < 2; g55++) {
                float16 v56 = a37[g55];
                float16 v57 = a37[g55 + 2];
                float16 v58 = (v56 + v57);
                a37[g55] = v58;
            }
            for (long g59 = 0; g59 < 1; g59++) {
                float16 v60 = a37[g59];
                float16 v61 = a37[g59 + 1];
                float16 v62 = (v60 + v61);
                a37[g59] = v62;
            }
            float16 v63 = a37[0];
            float8 v64 = v63.lo;
            float8 v65 = v63.hi;
            float8 v66 = (v64 + v65);
            float4 v67 = v66.lo;
            float4 v68 = v66.hi;
            float4 v69 = (v67 + v68);
            float2 v70 = v69.lo;
            float2 v71 = v69.hi;
            float2 v72 = (v70 + v71);
            float v73 = v72.lo;
            float v74 = v72.hi;
            float v75 = (v73 + v74);
            part0[block] = v75;
        }
    }
}
