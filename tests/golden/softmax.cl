#pragma OPENCL FP_CONTRACT OFF

typedef float16 fc_loose_float32_16 __attribute__((aligned(4)));

typedef float8 fc_loose_float32_8 __attribute__((aligned(4)));

static inline float16 fc_load_first_8_float32_16(const __global float *w) {
    return (float16)(*(const __global fc_loose_float32_8 *)(w + 0), 0, 0, 0, 0, 0, 0, 0, 0);
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

static inline void fc_store_first_8_float32_16(float16 all, __global float *w) {
    *(__global fc_loose_float32_8 *)(w + 0) = all.s01234567;
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
    float16 row0[3];
    long start = gid * chunk;
    long stop = min(n, start + chunk);
    for (long r = start; r < stop; r++) {
        long record = r;
        long i1 = record * 40;
        float16 v4 = *(const __global fc_loose_float32_16 *)(in0 + (i1));
        float16 v5 = v4;
        float16 v6 = fc_load_first_8_float32_16(in0 + (i1 + 32));
        float16 v7 = (v5 == v6 ? as_float16(as_int16(v5) & as_int16(v6)) : ((v5 > v6) | (v5 != v5) ? v5 : v6));
        int16 v8 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(8)));
        float16 v9 = (v8 ? v7 : v5);
        v5 = v9;
        float16 v10 = *(const __global fc_loose_float32_16 *)(in0 + (i1 + 16));
        float16 v11 = (v5 == v10 ? as_float16(as_int16(v5) & as_int16(v10)) : ((v5 > v10) | (v5 != v5) ? v5 : v10));
        float8 v12 = v11.lo;
        float8 v13 = v11.hi;
        float8 v14 = (v12 == v13 ? as_float8(as_int8(v12) & as_int8(v13)) : ((v12 > v13) | (v12 != v12) ? v12 : v13));
        float4 v15 = v14.lo;
        float4 v16 = v14.hi;
        float4 v17 = (v15 == v16 ? as_float4(as_int4(v15) & as_int4(v16)) : ((v15 > v16) | (v15 != v15) ? v15 : v16));
        float2 v18 = v17.lo;
        float2 v19 = v17.hi;
        float2 v20 = (v18 == v19 ? as_float2(as_int2(v18) & as_int2(v19)) : ((v18 > v19) | (v18 != v18) ? v18 : v19));
        float v21 = v20.lo;
        float v22 = v20.hi;
        float v23 = (v21 == v22 ? as_float(as_int(v21) & as_int(v22)) : ((v21 > v22) | (v21 != v21) ? v21 : v22));
        float4 v24 = (float4)(v23);
        for (long c = 0; c < 32; c += 16) {
            float16 v25 = *(const __global fc_loose_float32_16 *)(in0 + (i1 + c));
            float16 v26 = (float16)(v24.s0);
            float16 v27 = (v25 - v26);
            float16 v28 = fc_exp_float16(v27);
            row0[c / 16] = v28;
        }
        {
            float16 v29 = fc_load_first_8_float32_16(in0 + (i1 + 32));
            float16 v30 = (float16)(v24.s0);
            float16 v31 = (v29 - v30);
            float16 v32 = fc_exp_float16(v31);
            row0[2] = v32;
        }
        float16 v36 = row0[0];
        float16 v37 = v36;
        float16 v38 = row0[2];
        float16 v39 = (v37 + v38);
        int16 v40 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(8)));
        float16 v41 = (v40 ? v39 : v37);
        v37 = v41;
        float16 v42 = row0[1];
        float16 v43 = (v37 + v42);
        float8 v44 = v43.lo;
        float8 v45 = v43.hi;
        float8 v46 = (v44 + v45);
        float4 v47 = v46.lo;
        float4 v48 = v46.hi;
        float4 v49 = (v47 + v48);
        float2 v50 = v49.lo;
        float2 v51 = v49.hi;
        float2 v52 = (v50 + v51);
        float v53 = v52.lo;
        float v54 = v52.hi;
        float v55 = (v53 + v54);
        float4 v56 = (float4)(v55);
        long i57 = record * 40;
        for (long c = 0; c < 32; c += 16) {
            float16 v58 = row0[c / 16];
            float16 v59 = (float16)(v56.s0);
            float16 v60 = (v58 / v59);
            *(__global fc_loose_float32_16 *)(out0 + (i57 + c)) = (v60 == v60 ? v60 : (float16)(as_float(0x7fc00000U)));
        }
        {
            float16 v61 = row0[2];
            float16 v62 = (float16)(v56.s0);
            float16 v63 = (v61 / v62);
            fc_store_first_8_float32_16((v63 == v63 ? v63 : (float16)(as_float(0x7fc00000U))), out0 + (i57 + 32));
        }
    }
}
