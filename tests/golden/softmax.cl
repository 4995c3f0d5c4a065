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
        long i4 = 0 + 0;
        float16 v5 = *(const __global fc_loose_float32_16 *)(in0 + (i1 + i4));
        long i6 = 0 + 32;
        float16 v7 = v5;
        float16 v8 = fc_load_first_8_float32_16(in0 + (i1 + i6));
        float16 v9 = (v7 == v8 ? as_float16(as_int16(v7) & as_int16(v8)) : ((v7 > v8) | (v7 != v7) ? v7 : v8));
        int16 v10 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(8)));
        float16 v11 = (v10 ? v9 : v7);
        v7 = v11;
        long i12 = 0 + 16;
        float16 v13 = *(const __global fc_loose_float32_16 *)(in0 + (i1 + i12));
        float16 v14 = (v7 == v13 ? as_float16(as_int16(v7) & as_int16(v13)) : ((v7 > v13) | (v7 != v7) ? v7 : v13));
        float8 v15 = v14.lo;
        float8 v16 = v14.hi;
        float8 v17 = (v15 == v16 ? as_float8(as_int8(v15) & as_int8(v16)) : ((v15 > v16) | (v15 != v15) ? v15 : v16));
        float4 v18 = v17.lo;
        float4 v19 = v17.hi;
        float4 v20 = (v18 == v19 ? as_float4(as_int4(v18) & as_int4(v19)) : ((v18 > v19) | (v18 != v18) ? v18 : v19));
        float2 v21 = v20.lo;
        float2 v22 = v20.hi;
        float2 v23 = (v21 == v22 ? as_float2(as_int2(v21) & as_int2(v22)) : ((v21 > v22) | (v21 != v21) ? v21 : v22));
        float v24 = v23.lo;
        float v25 = v23.hi;
        float v26 = (v24 == v25 ? as_float(as_int(v24) & as_int(v25)) : ((v24 > v25) | (v24 != v24) ? v24 : v25));
        float4 v27 = (float4)(v26);
        for (long c = 0; c < 32; c += 16) {
            float16 v28 = *(const __global fc_loose_float32_16 *)(in0 + (i1 + c));
            float16 v29 = (float16)(v27.s0);
            float16 v30 = (v28 - v29);
            float16 v31 = fc_exp_float16(v30);
            row0[(c) / 16] = v31;
        }
        {
            float16 v32 = fc_load_first_8_float32_16(in0 + (i1 + 32));
            float16 v33 = (float16)(v27.s0);
            float16 v34 = (v32 - v33);
            float16 v35 = fc_exp_float16(v34);
            row0[(32) / 16] = v35;
        }
        long i39 = 0 + 0;
        float16 v40 = row0[(i39) / 16];
        long i41 = 0 + 32;
        float16 v42 = v40;
        float16 v43 = row0[(i41) / 16];
        float16 v44 = (v42 + v43);
        int16 v45 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(8)));
        float16 v46 = (v45 ? v44 : v42);
        v42 = v46;
        long i47 = 0 + 16;
        float16 v48 = row0[(i47) / 16];
        float16 v49 = (v42 + v48);
        float8 v50 = v49.lo;
        float8 v51 = v49.hi;
        float8 v52 = (v50 + v51);
        float4 v53 = v52.lo;
        float4 v54 = v52.hi;
        float4 v55 = (v53 + v54);
        float2 v56 = v55.lo;
        float2 v57 = v55.hi;
        float2 v58 = (v56 + v57);
        float v59 = v58.lo;
        float v60 = v58.hi;
        float v61 = (v59 + v60);
        float4 v62 = (float4)(v61);
        long i63 = record * 40;
        for (long c = 0; c < 32; c += 16) {
            float16 v64 = row0[(c) / 16];
            float16 v65 = (float16)(v62.s0);
            float16 v66 = (v64 / v65);
            *(__global fc_loose_float32_16 *)(out0 + (i63 + c)) = (v66 == v66 ? v66 : (float16)(as_float(0x7fc00000U)));
        }
        {
            float16 v67 = row0[(32) / 16];
            float16 v68 = (float16)(v62.s0);
            float16 v69 = (v67 / v68);
            fc_store_first_8_float32_16((v69 == v69 ? v69 : (float16)(as_float(0x7fc00000U))), out0 + (i63 + 32));
        }
    }
}
