#pragma OPENCL FP_CONTRACT OFF

typedef float16 fc_loose_float32_16 __attribute__((aligned(4)));

static inline float16 fc_fma_float16(float16 a, float16 b, float16 c) {
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
}

typedef float2 fc_loose_float32_2 __attribute__((aligned(4)));

static inline float16 fc_load_first_3_float32_16(const __global float *w) {
    return (float16)(*(const __global fc_loose_float32_2 *)(w + 0), w[2], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static inline void fc_store_first_3_float32_16(float16 all, __global float *w) {
    *(__global fc_loose_float32_2 *)(w + 0) = all.s01;
    w[2] = all.s2;
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
    for (long j = 0; j < 16; j += 16) {
        for (long panel = 0; panel < 20; panel += 512) {
            long until = min((long)20, panel + 512);
            long tiled = start + (stop - start) / 4 * 4;
            for (long r = start; r < tiled; r += 4) {
                long record = r;
                long within = 0;
                long row = within % 1;
                long matrix = 0;
                long at_a = record * 20 + row * 20;
                long at_b = 0;
                long at_c = r * 19;
                float16 v0 = (float16)(-0x0.0p+0f);
                float16 v1 = (float16)(-0x0.0p+0f);
                float16 v2 = (float16)(-0x0.0p+0f);
                float16 v3 = (float16)(-0x0.0p+0f);
                for (long k = panel; k < until; k++) {
                    float16 v4 = *(const __global fc_loose_float32_16 *)(in1 + (at_b + k * 19 + j));
                    float16 v5 = (float16)(in0[at_a + 0 + k]);
                    float16 v6 = fc_fma_float16(v5, v4, v0);
                    v0 = v6;
                    float16 v7 = (float16)(in0[at_a + 20 + k]);
                    float16 v8 = fc_fma_float16(v7, v4, v1);
                    v1 = v8;
                    float16 v9 = (float16)(in0[at_a + 40 + k]);
                    float16 v10 = fc_fma_float16(v9, v4, v2);
                    v2 = v10;
                    float16 v11 = (float16)(in0[at_a + 60 + k]);
                    float16 v12 = fc_fma_float16(v11, v4, v3);
                    v3 = v12;
                }
                if (panel == 0) {
                    *(__global fc_loose_float32_16 *)(out0 + (at_c + 0 + j)) = (v0 == v0 ? v0 : (float16)(NAN));
                } else {
                    float16 v13 = *(const __global fc_loose_float32_16 *)(out0 + (at_c + 0 + j));
                    float16 v14 = (v13 + v0);
                    *(__global fc_loose_float32_16 *)(out0 + (at_c + 0 + j)) = (v14 == v14 ? v14 : (float16)(NAN));
                }
                if (panel == 0) {
                    *(__global fc_loose_float32_16 *)(out0 + (at_c + 19 + j)) = (v1 == v1 ? v1 : (float16)(NAN));
                } else {
                    float16 v15 = *(const __global fc_loose_float32_16 *)(out0 + (at_c + 19 + j));
                    float16 v16 = (v15 + v1);
                    *(__global fc_loose_float32_16 *)(out0 + (at_c + 19 + j)) = (v16 == v16 ? v16 : (float16)(NAN));
                }
                if (panel == 0) {
                    *(__global fc_loose_float32_16 *)(out0 + (at_c + 38 + j)) = (v2 == v2 ? v2 : (float16)(NAN));
                } else {
                    float16 v17 = *(const __global fc_loose_float32_16 *)(out0 + (at_c + 38 + j));
                    float16 v18 = (v17 + v2);
                    *(__global fc_loose_float32_16 *)(out0 + (at_c + 38 + j)) = (v18 == v18 ? v18 : (float16)(NAN));
                }
                if (panel == 0) {
                    *(__global fc_loose_float32_16 *)(out0 + (at_c + 57 + j)) = (v3 == v3 ? v3 : (float16)(NAN));
                } else {
                    float16 v19 = *(const __global fc_loose_float32_16 *)(out0 + (at_c + 57 + j));
                    float16 v20 = (v19 + v3);
                    *(__global fc_loose_float32_16 *)(out0 + (at_c + 57 + j)) = (v20 == v20 ? v20 : (float16)(NAN));
                }
            }
            for (long r = tiled; r < stop; r++) {
                long record = r;
                long within = 0;
                long row = within % 1;
                long matrix = 0;
                long at_a = record * 20 + row * 20;
                long at_b = 0;
                long at_c = r * 19;
                float16 v21 = (float16)(-0x0.0p+0f);
                for (long k = panel; k < until; k++) {
                    float16 v22 = *(const __global fc_loose_float32_16 *)(in1 + (at_b + k * 19 + j));
                    float16 v23 = (float16)(in0[at_a + 0 + k]);
                    float16 v24 = fc_fma_float16(v23, v22, v21);
                    v21 = v24;
                }
                if (panel == 0) {
                    *(__global fc_loose_float32_16 *)(out0 + (at_c + 0 + j)) = (v21 == v21 ? v21 : (float16)(NAN));
                } else {
                    float16 v25 = *(const __global fc_loose_float32_16 *)(out0 + (at_c + 0 + j));
                    float16 v26 = (v25 + v21);
                    *(__global fc_loose_float32_16 *)(out0 + (at_c + 0 + j)) = (v26 == v26 ? v26 : (float16)(NAN));
                }
            }
        }
    }
    {
        long j = 16;
        for (long panel = 0; panel < 20; panel += 512) {
            long until = min((long)20, panel + 512);
            long tiled = start + (stop - start) / 4 * 4;
            for (long r = start; r < tiled; r += 4) {
                long record = r;
                long within = 0;
                long row = within % 1;
                long matrix = 0;
                long at_a = record * 20 + row * 20;
                long at_b = 0;
                long at_c = r * 19;
                float16 v27 = (float16)(-0x0.0p+0f);
                float16 v28 = (float16)(-0x0.0p+0f);
                float16 v29 = (float16)(-0x0.0p+0f);
                float16 v30 = (float16)(-0x0.0p+0f);
                for (long k = panel; k < until; k++) {
                    float16 v31 = fc_load_first_3_float32_16(in1 + (at_b + k * 19 + j));
                    float16 v32 = (float16)(in0[at_a + 0 + k]);
                    float16 v33 = fc_fma_float16(v32, v31, v27);
                    v27 = v33;
                    float16 v34 = (float16)(in0[at_a + 20 + k]);
                    float16 v35 = fc_fma_float16(v34, v31, v28);
                    v28 = v35;
                    float16 v36 = (float16)(in0[at_a + 40 + k]);
                    float16 v37 = fc_fma_float16(v36, v31, v29);
                    v29 = v37;
                    float16 v38 = (float16)(in0[at_a + 60 + k]);
                    float16 v39 = fc_fma_float16(v38, v31, v30);
                    v30 = v39;
                }
                if (panel == 0) {
                    fc_store_first_3_float32_16((v27 == v27 ? v27 : (float16)(NAN)), out0 + (at_c + 0 + j));
                } else {
                    float16 v40 = fc_load_first_3_float32_16(out0 + (at_c + 0 + j));
                    float16 v41 = (v40 + v27);
                    fc_store_first_3_float32_16((v41 == v41 ? v41 : (float16)(NAN)), out0 + (at_c + 0 + j));
                }
                if (panel == 0) {
                    fc_store_first_3_float32_16((v28 == v28 ? v28 : (float16)(NAN)), out0 + (at_c + 19 + j));
                } else {
                    float16 v42 = fc_load_first_3_float32_16(out0 + (at_c + 19 + j));
                    float16 v43 = (v42 + v28);
                    fc_store_first_3_float32_16((v43 == v43 ? v43 : (float16)(NAN)), out0 + (at_c + 19 + j));
                }
                if (panel == 0) {
                    fc_store_first_3_float32_16((v29 == v29 ? v29 : (float16)(NAN)), out0 + (at_c + 38 + j));
                } else {
                    float16 v44 = fc_load_first_3_float32_16(out0 + (at_c + 38 + j));
                    float16 v45 = (v44 + v29);
                    fc_store_first_3_float32_16((v45 == v45 ? v45 : (float16)(NAN)), out0 + (at_c + 38 + j));
                }
                if (panel == 0) {
                    fc_store_first_3_float32_16((v30 == v30 ? v30 : (float16)(NAN)), out0 + (at_c + 57 + j));
                } else {
                    float16 v46 = fc_load_first_3_float32_16(out0 + (at_c + 57 + j));
                    float16 v47 = (v46 + v30);
                    fc_store_first_3_float32_16((v47 == v47 ? v47 : (float16)(NAN)), out0 + (at_c + 57 + j));
                }
            }
            for (long r = tiled; r < stop; r++) {
                long record = r;
                long within = 0;
                long row = within % 1;
                long matrix = 0;
                long at_a = record * 20 + row * 20;
                long at_b = 0;
                long at_c = r * 19;
                float16 v48 = (float16)(-0x0.0p+0f);
                for (long k = panel; k < until; k++) {
                    float16 v49 = fc_load_first_3_float32_16(in1 + (at_b + k * 19 + j));
                    float16 v50 = (float16)(in0[at_a + 0 + k]);
                    float16 v51 = fc_fma_float16(v50, v49, v48);
                    v48 = v51;
                }
                if (panel == 0) {
                    fc_store_first_3_float32_16((v48 == v48 ? v48 : (float16)(NAN)), out0 + (at_c + 0 + j));
                } else {
                    float16 v52 = fc_load_first_3_float32_16(out0 + (at_c + 0 + j));
                    float16 v53 = (v52 + v48);
                    fc_store_first_3_float32_16((v53 == v53 ? v53 : (float16)(NAN)), out0 + (at_c + 0 + j));
                }
            }
        }
    }
}
