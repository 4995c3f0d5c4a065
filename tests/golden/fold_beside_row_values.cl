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

static inline void fc_store_first_4_float32_16(float16 all, __global float *w) {
    *(__global fc_loose_float32_4 *)(w + 0) = all.s0123;
}

static inline float4 fc_fma_float4(float4 a, float4 b, float4 c) {
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
}

static inline float4 fc_exp_float4(float4 a) {
    float4 z = a > (float4)(104.0f) ? (float4)(104.0f) : a;
    z = z < (float4)(-104.0f) ? (float4)(-104.0f) : z;
    float4 k = fc_fma_float4(z, (float4)(1.44269504088896341f), (float4)(12582912.0f));
    int4 n = as_int4(k) - (int4)(0x4b400000);
    k = k - (float4)(12582912.0f);
    float4 r = fc_fma_float4(k, (float4)(-0.693359375f), z);
    r = fc_fma_float4(k, (float4)(2.12194440e-4f), r);
    float4 p = (float4)(1.9875691500e-4f);
    p = fc_fma_float4(p, r, (float4)(1.3981999507e-3f));
    p = fc_fma_float4(p, r, (float4)(8.3334519073e-3f));
    p = fc_fma_float4(p, r, (float4)(4.1665795894e-2f));
    p = fc_fma_float4(p, r, (float4)(1.6666665459e-1f));
    p = fc_fma_float4(p, r, (float4)(5.0000001201e-1f));
    p = fc_fma_float4(p, r * r, r);
    p = p + (float4)(1.0f);
    int4 half_n = n >> 1;
    return p * as_float4((half_n + 127) << 23) * as_float4((n - half_n + 127) << 23);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global float *restrict part0,
    __global const float *restrict carry0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    long limit = (gid + 1) * chunk < blocks ? (gid + 1) * chunk : blocks;
    for (long unit = gid * chunk; unit < limit; unit++) {
        long block = unit;
        long lo = max(0L, block * 2048 - phase);
        long hi = min(n, (block + 1) * 2048 - phase);
        if (block > 0 || phase == 0) {
            for (long j = 0; j < 20; j++) {
                float v35 = (float)(-0x0.0p+0f);
                part0[block * 20 + j] = v35;
            }
        } else {
            for (long j = 0; j < 20; j++) {
                float v36 = carry0[j];
                part0[block * 20 + j] = v36;
            }
        }
        long tiled = hi - (hi - lo) % 16;
        for (long tile = lo; tile < tiled; tile += 16) {
            float rows0[16] __attribute__((aligned(64)));
            float rows1[16] __attribute__((aligned(64)));
            for (long record = tile; record < (tile + 16); record++) {
                long i38 = record * 20;
                float16 v41 = *(const __global fc_loose_float32_16 *)(in0 + (i38));
                float16 v42 = v41;
                float16 v43 = fc_load_first_4_float32_16(in0 + (i38 + 16));
                float16 v44 = (v42 + v43);
                int16 v45 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(4)));
                float16 v46 = (v45 ? v44 : v42);
                v42 = v46;
                float8 v47 = v42.lo;
                float8 v48 = v42.hi;
                float8 v49 = (v47 + v48);
                float4 v50 = v49.lo;
                float4 v51 = v49.hi;
                float4 v52 = (v50 + v51);
                float2 v53 = v52.lo;
                float2 v54 = v52.hi;
                float2 v55 = (v53 + v54);
                float v56 = v55.lo;
                float v57 = v55.hi;
                float v58 = (v56 + v57);
                __builtin_prefetch((const void *)(size_t)(in0 + (i38 + 2040)), 0, 3);
                __builtin_prefetch((const void *)(size_t)(in0 + (i38 + 16 + 2040)), 0, 3);
                rows0[record - tile] = v58;
            }
            {
                long record = tile;
                float16 v59 = *(fc_loose_float32_16 *)(rows0 + 0);
                float16 v60 = sqrt(v59);
                float16 v61 = fc_exp_float16(v60);
                *(fc_loose_float32_16 *)(rows1 + 0) = v61;
            }
            {
                float16 v63 = *(const __global fc_loose_float32_16 *)(part0 + (block * 20));
                float16 v69 = fc_load_first_4_float32_16(part0 + (block * 20 + 16));
                for (long record = tile; record < (tile + 16); record++) {
                    float v62 = rows1[record - tile];
                    long i64 = record * 20;
                    float16 v65 = *(const __global fc_loose_float32_16 *)(in0 + (i64));
                    float16 v66 = (float16)(v62);
                    float16 v67 = (v65 * v66);
                    float16 v68 = (v63 + v67);
                    v63 = v68;
                    float16 v70 = fc_load_first_4_float32_16(in0 + (i64 + 16));
                    float16 v71 = (float16)(v62);
                    float16 v72 = (v70 * v71);
                    float16 v73 = (v69 + v72);
                    v69 = v73;
                }
                *(__global fc_loose_float32_16 *)(part0 + (block * 20)) = v63;
                fc_store_first_4_float32_16(v69, part0 + (block * 20 + 16));
            }
        }
        for (long record = tiled; record < hi; record++) {
            long i1 = record * 20;
            float16 v4 = *(const __global fc_loose_float32_16 *)(in0 + (i1));
            float16 v5 = v4;
            float16 v6 = fc_load_first_4_float32_16(in0 + (i1 + 16));
            float16 v7 = (v5 + v6);
            int16 v8 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(4)));
            float16 v9 = (v8 ? v7 : v5);
            v5 = v9;
            float8 v10 = v5.lo;
            float8 v11 = v5.hi;
            float8 v12 = (v10 + v11);
            float4 v13 = v12.lo;
            float4 v14 = v12.hi;
            float4 v15 = (v13 + v14);
            float2 v16 = v15.lo;
            float2 v17 = v15.hi;
            float2 v18 = (v16 + v17);
            float v19 = v18.lo;
            float v20 = v18.hi;
            float v21 = (v19 + v20);
            float4 v22 = (float4)(v21);
            float4 v24 = sqrt(v22);
            float4 v25 = fc_exp_float4(v24);
            for (long c = 0; c < 16; c += 16) {
                float16 v23 = *(const __global fc_loose_float32_16 *)(in0 + (i1 + c));
                float16 v26 = (float16)(v25.s0);
                float16 v27 = (v23 * v26);
                float16 v28 = *(const __global fc_loose_float32_16 *)(part0 + (block * 20 + c));
                float16 v29 = (v28 + v27);
                *(__global fc_loose_float32_16 *)(part0 + (block * 20 + c)) = v29;
            }
            {
                float16 v30 = fc_load_first_4_float32_16(in0 + (i1 + 16));
                float16 v31 = (float16)(v25.s0);
                float16 v32 = (v30 * v31);
                float16 v33 = fc_load_first_4_float32_16(part0 + (block * 20 + 16));
                float16 v34 = (v33 + v32);
                fc_store_first_4_float32_16(v34, part0 + (block * 20 + 16));
            }
        }
    }
}
