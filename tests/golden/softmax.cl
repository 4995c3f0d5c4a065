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
        long i0 = record * 40;
        float16 v1 = *(const __global fc_loose_float32_16 *)(in0 + (i0));
        float16 v2 = v1;
        float16 v3 = *(const __global fc_loose_float32_16 *)(in0 + (i0 + 16));
        float16 v4 = v3;
        float16 v11 = fc_load_first_8_float32_16(in0 + (i0 + 32));
        float16 v12 = (v2 == v11 ? as_float16(as_int16(v2) & as_int16(v11)) : ((v2 > v11) | (v2 != v2) ? v2 : v11));
        int16 v13 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(8)));
        float16 v14 = (v13 ? v12 : v2);
        v2 = v14;
        float16 v15 = (v2 == v4 ? as_float16(as_int16(v2) & as_int16(v4)) : ((v2 > v4) | (v2 != v2) ? v2 : v4));
        float8 v16 = v15.lo;
        float8 v17 = v15.hi;
        float8 v18 = (v16 == v17 ? as_float8(as_int8(v16) & as_int8(v17)) : ((v16 > v17) | (v16 != v16) ? v16 : v17));
        float4 v19 = v18.lo;
        float4 v20 = v18.hi;
        float4 v21 = (v19 == v20 ? as_float4(as_int4(v19) & as_int4(v20)) : ((v19 > v20) | (v19 != v19) ? v19 : v20));
        float2 v22 = v21.lo;
        float2 v23 = v21.hi;
        float2 v24 = (v22 == v23 ? as_float2(as_int2(v22) & as_int2(v23)) : ((v22 > v23) | (v22 != v22) ? v22 : v23));
        float v25 = v24.lo;
        float v26 = v24.hi;
        float v27 = (v25 == v26 ? as_float(as_int(v25) & as_int(v26)) : ((v25 > v26) | (v25 != v25) ? v25 : v26));
        float4 v28 = (float4)(v27);
        for (long c = 0; c < 32; c += 16) {
            float16 v29 = *(const __global fc_loose_float32_16 *)(in0 + (i0 + c));
            float16 v30 = (float16)(v28.s0);
            float16 v31 = (v29 - v30);
            float16 v32 = fc_exp_float16(v31);
            row0[c / 16] = v32;
        }
        {
            float16 v33 = fc_load_first_8_float32_16(in0 + (i0 + 32));
            float16 v34 = (float16)(v28.s0);
            float16 v35 = (v33 - v34);
            float16 v36 = fc_exp_float16(v35);
            row0[2] = v36;
        }
        float16 v40 = row0[0];
        float16 v41 = v40;
        float16 v42 = row0[2];
        float16 v43 = (v41 + v42);
        int16 v44 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(8)));
        float16 v45 = (v44 ? v43 : v41);
        v41 = v45;
        float16 v46 = row0[1];
        float16 v47 = (v41 + v46);
        float8 v48 = v47.lo;
        float8 v49 = v47.hi;
        float8 v50 = (v48 + v49);
        float4 v51 = v50.lo;
        float4 v52 = v50.hi;
        float4 v53 = (v51 + v52);
        float2 v54 = v53.lo;
        float2 v55 = v53.hi;
        float2 v56 = (v54 + v55);
        float v57 = v56.lo;
        float v58 = v56.hi;
        float v59 = (v57 + v58);
        float4 v60 = (float4)(v59);
        long i61 = record * 40;
        for (long c = 0; c < 32; c += 16) {
            float16 v62 = row0[c / 16];
            float16 v63 = (float16)(v60.s0);
            float16 v64 = (v62 / v63);
            *(__global fc_loose_float32_16 *)(out0 + (i61 + c)) = (v64 == v64 ? v64 : (float16)(as_float(0x7fc00000U)));
        }
        {
            float16 v65 = row0[2];
            float16 v66 = (float16)(v60.s0);
            float16 v67 = (v65 / v66);
            fc_store_first_8_float32_16((v67 == v67 ? v67 : (float16)(as_float(0x7fc00000U))), out0 + (i61 + 32));
        }
    }
}
