#pragma OPENCL FP_CONTRACT OFF

static inline float fc_float_of_half(int bits) {
    ushort half_bits = bits;
#ifdef __F16C__
    return __builtin_load_halff((const half *)&half_bits);
#else
    return vload_half(0, (const half *)&half_bits);
#endif
}

static inline float fc_q4_k_of_block(const __global uchar *block, int place) {
#pragma OPENCL FP_CONTRACT OFF
    int v0 = (place >> 5);
    int v1 = (v0 < 4);
    int v2 = (v0 & 3);
    int v3 = (int)block[(4 + v2)];
    int v4 = (int)block[(12 + v2)];
    int v5 = (int)block[(8 + v2)];
    return (((fc_float_of_half(((int)block[0] | ((int)block[(0 + 1)] << 8))) * (float)((v1 ? (v3 & 63) : ((v4 & 15) | ((v3 >> 2) & 48))))) * (float)((((int)block[((16 + (32 * (v0 >> 1))) + (place & 31))] >> (4 * (v0 & 1))) & 15))) - (fc_float_of_half(((int)block[2] | ((int)block[(2 + 1)] << 8))) * (float)((v1 ? (v5 & 63) : ((v4 >> 4) | ((v5 >> 2) & 48))))));
}

static inline float fc_q4_k(const __global uchar *p, long n) {
    return fc_q4_k_of_block(p + (ulong)n / 256 * 144, (int)((ulong)n % 256));
}

typedef uchar16 fc_loose_uint8_16 __attribute__((aligned(1)));

static inline float16 fc_q4_k_run16_of_block(const __global uchar *block, int place) {
#pragma OPENCL FP_CONTRACT OFF
    int v0 = (place >> 5);
    int v1 = (v0 < 4);
    int v2 = (v0 & 3);
    int v3 = (int)block[(v2 + 4)];
    int v4 = (int)block[(v2 + 12)];
    uchar16 v5 = *(const __global fc_loose_uint8_16 *)(block + (((32 * (v0 >> 1)) + (place & 31)) + 16));
    uchar16 v6 = v5 >> (uchar16)((4 * (v0 & 1)));
    uchar16 v7 = v6 & (uchar16)(15);
    float16 v8 = __builtin_convertvector(v7, float16);
    float16 v9 = (fc_float_of_half(((int)block[0] | ((int)block[1] << 8))) * (float)((v1 ? (v3 & 63) : ((v4 & 15) | ((v3 >> 2) & 48))))) * v8;
    int v10 = (int)block[(v2 + 8)];
    float16 v11 = v9 - (fc_float_of_half(((int)block[2] | ((int)block[3] << 8))) * (float)((v1 ? (v10 & 63) : ((v4 >> 4) | ((v10 >> 2) & 48)))));
    return v11;
}

typedef float16 fc_loose_float32_16 __attribute__((aligned(4)));

static inline float16 fc_q4_k_aligned16(const __global uchar *p, long n) {
    return fc_q4_k_run16_of_block(p + (ulong)n / 256 * 144, (int)((ulong)n % 256));
}

static inline float16 fc_q4_k_run16(const __global uchar *p, long n) {
    if (n % 16 == 0) return fc_q4_k_aligned16(p, n);
    float all[16];
    for (int lane = 0; lane < 16; lane++) all[lane] = fc_q4_k(p, n + lane);
    return *(fc_loose_float32_16 *)all;
}

static inline float fc_q8_0_of_block(const __global uchar *block, int place) {
#pragma OPENCL FP_CONTRACT OFF
    return (fc_float_of_half(((int)block[0] | ((int)block[(0 + 1)] << 8))) * (float)((((int)block[(2 + place)] ^ 128) - 128)));
}

static inline float fc_q8_0(const __global uchar *p, long n) {
    return fc_q8_0_of_block(p + (ulong)n / 32 * 34, (int)((ulong)n % 32));
}

static inline float16 fc_q8_0_run16_of_block(const __global uchar *block, int place) {
#pragma OPENCL FP_CONTRACT OFF
    uchar16 v0 = *(const __global fc_loose_uint8_16 *)(block + (place + 2));
    uchar16 v1 = v0 ^ (uchar16)(128);
    short16 v2 = __builtin_convertvector(v1, short16) - (short16)(128);
    float16 v3 = __builtin_convertvector(v2, float16);
    float16 v4 = fc_float_of_half(((int)block[0] | ((int)block[1] << 8))) * v3;
    return v4;
}

static inline float16 fc_q8_0_aligned16(const __global uchar *p, long n) {
    return fc_q8_0_run16_of_block(p + (ulong)n / 32 * 34, (int)((ulong)n % 32));
}

static inline float16 fc_fma_float16(float16 a, float16 b, float16 c) {
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
}

typedef float2 fc_loose_float32_2 __attribute__((aligned(4)));

static inline void fc_store_first_3_float32_16(float16 all, __global float *w) {
    *(__global fc_loose_float32_2 *)(w + 0) = all.s01;
    w[2] = all.s2;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void k0(
    __global const uchar *restrict in0,
    __global const uchar *restrict in1,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    float sums[2048];
    float left[65536];
    float decoded[2048];
    long tasks = (n + 128 - 1) / 128 * 2;
    long t = (tasks + gsize - 1) / gsize * gid;
    long after = min(tasks, t + (tasks + gsize - 1) / gsize);
    while (t < after) {
        long first_strip = t % 2;
        long last_strip = min(2L, first_strip + after - t);
        long begin = t / 2 * 128;
        long end = min(n, begin + 128);
        t = t + last_strip - first_strip;
        for (long r = begin; r < end; r++) {
            long i0 = r * 512;
            #pragma unroll 2
            for (long k = 0; k < 512; k += 16) {
                float16 v1 = fc_q4_k_run16(in0, i0 + k);
                *(fc_loose_float32_16 *)(left + (r - begin) * 512 + k) = v1;
            }
        }
        for (long strip = first_strip; strip < last_strip; strip++) {
            long j = strip * 16;
            for (long c = 0; c < min(16L, 19 - j); c += 4) {
                if (end - begin < 2) {
                    for (long d = 0; d < 4; d++) {
                        long i2 = min(j + (c + d), 18L) * 512;
                        for (long r = begin; r < end; r++) {
                            long i3 = (r - begin) * 512;
                            float16 v4 = (float16)(-0x0.0p+0f);
                            #pragma unroll 2
                            for (long k = 0; k < 512; k += 16) {
                                float16 v5 = *(fc_loose_float32_16 *)(left + i3 + k);
                                float16 v6 = fc_q8_0_aligned16(in1, i2 + k);
                                float16 v7 = fc_fma_float16(v5, v6, v4);
                                v4 = v7;
                            }
                            float8 v8 = v4.lo;
                            float8 v9 = v4.hi;
                            float8 v10 = (v8 + v9);
                            float4 v11 = v10.lo;
                            float4 v12 = v10.hi;
                            float4 v13 = (v11 + v12);
                            float2 v14 = v13.lo;
                            float2 v15 = v13.hi;
                            float2 v16 = (v14 + v15);
                            float v17 = v16.lo;
                            float v18 = v16.hi;
                            float v19 = (v17 + v18);
                            sums[(r - begin) * 16 + c + d] = v19;
                        }
                    }
                } else {
                    for (long d = 0; d < 4; d++) {
                        long i20 = min(j + (c + d), 18L) * 512;
                        #pragma unroll 2
                        for (long k = 0; k < 512; k += 16) {
                            float16 v21 = fc_q8_0_aligned16(in1, i20 + k);
                            *(fc_loose_float32_16 *)(decoded + d * 512 + k) = v21;
                        }
                    }
                    long tiled = begin + (end - begin) / 2 * 2;
                    for (long r = begin; r < tiled; r += 2) {
                        for (long d = 0; d < 4; d += 2) {
                            long i22 = (r - begin) * 512;
                            long i23 = r + 1;
                            long i24 = (i23 - begin) * 512;
                            float16 v25 = (float16)(-0x0.0p+0f);
                            float16 v26 = (float16)(-0x0.0p+0f);
                            float16 v27 = (float16)(-0x0.0p+0f);
                            float16 v28 = (float16)(-0x0.0p+0f);
                            #pragma unroll 2
                            for (long k = 0; k < 512; k += 16) {
                                float16 v29 = *(fc_loose_float32_16 *)(left + i22 + k);
                                float16 v30 = *(fc_loose_float32_16 *)(left + i24 + k);
                                float16 v31 = *(fc_loose_float32_16 *)(decoded + d * 512 + k);
                                float16 v32 = fc_fma_float16(v29, v31, v25);
                                v25 = v32;
                                float16 v33 = fc_fma_float16(v30, v31, v27);
                                v27 = v33;
                                float16 v34 = *(fc_loose_float32_16 *)(decoded + (d + 1) * 512 + k);
                                float16 v35 = fc_fma_float16(v29, v34, v26);
                                v26 = v35;
                                float16 v36 = fc_fma_float16(v30, v34, v28);
                                v28 = v36;
                            }
                            float8 v37 = v25.lo;
                            float8 v38 = v25.hi;
                            float8 v39 = (v37 + v38);
                            float8 v40 = v26.lo;
                            float8 v41 = v26.hi;
                            float8 v42 = (v40 + v41);
                            float8 v43 = v27.lo;
                            float8 v44 = v27.hi;
                            float8 v45 = (v43 + v44);
                            float8 v46 = v28.lo;
                            float8 v47 = v28.hi;
                            float8 v48 = (v46 + v47);
                            float8 v49 = (float8)(v39.s0, v39.s1, v39.s2, v39.s3, v42.s0, v42.s1, v42.s2, v42.s3);
                            float8 v50 = (float8)(v39.s4, v39.s5, v39.s6, v39.s7, v42.s4, v42.s5, v42.s6, v42.s7);
                            float8 v51 = (v49 + v50);
                            float8 v52 = (float8)(v45.s0, v45.s1, v45.s2, v45.s3, v48.s0, v48.s1, v48.s2, v48.s3);
                            float8 v53 = (float8)(v45.s4, v45.s5, v45.s6, v45.s7, v48.s4, v48.s5, v48.s6, v48.s7);
                            float8 v54 = (v52 + v53);
                            float8 v55 = (float8)(v51.s0, v51.s1, v51.s4, v51.s5, v54.s0, v54.s1, v54.s4, v54.s5);
                            float8 v56 = (float8)(v51.s2, v51.s3, v51.s6, v51.s7, v54.s2, v54.s3, v54.s6, v54.s7);
                            float8 v57 = (v55 + v56);
                            float4 v58 = (float4)(v57.s0, v57.s2, v57.s4, v57.s6);
                            float4 v59 = (float4)(v57.s1, v57.s3, v57.s5, v57.s7);
                            float4 v60 = (v58 + v59);
                            float2 v61 = v60.lo;
                            float2 v62 = v60.hi;
                            *(fc_loose_float32_2 *)(sums + (r - begin) * 16 + c + d) = v61;
                            *(fc_loose_float32_2 *)(sums + (r + 1 - begin) * 16 + c + d) = v62;
                        }
                    }
                    for (long r = tiled; r < end; r++) {
                        for (long d = 0; d < 4; d += 2) {
                            long i63 = (r - begin) * 512;
                            float16 v64 = (float16)(-0x0.0p+0f);
                            float16 v65 = (float16)(-0x0.0p+0f);
                            #pragma unroll 2
                            for (long k = 0; k < 512; k += 16) {
                                float16 v66 = *(fc_loose_float32_16 *)(left + i63 + k);
                                float16 v67 = *(fc_loose_float32_16 *)(decoded + d * 512 + k);
                                float16 v68 = fc_fma_float16(v66, v67, v64);
                                v64 = v68;
                                float16 v69 = *(fc_loose_float32_16 *)(decoded + (d + 1) * 512 + k);
                                float16 v70 = fc_fma_float16(v66, v69, v65);
                                v65 = v70;
                            }
                            float8 v71 = v64.lo;
                            float8 v72 = v64.hi;
                            float8 v73 = (v71 + v72);
                            float8 v74 = v65.lo;
                            float8 v75 = v65.hi;
                            float8 v76 = (v74 + v75);
                            float8 v77 = (float8)(v73.s0, v73.s1, v73.s2, v73.s3, v76.s0, v76.s1, v76.s2, v76.s3);
                            float8 v78 = (float8)(v73.s4, v73.s5, v73.s6, v73.s7, v76.s4, v76.s5, v76.s6, v76.s7);
                            float8 v79 = (v77 + v78);
                            float4 v80 = (float4)(v79.s0, v79.s1, v79.s4, v79.s5);
                            float4 v81 = (float4)(v79.s2, v79.s3, v79.s6, v79.s7);
                            float4 v82 = (v80 + v81);
                            float2 v83 = (float2)(v82.s0, v82.s2);
                            float2 v84 = (float2)(v82.s1, v82.s3);
                            float2 v85 = (v83 + v84);
                            *(fc_loose_float32_2 *)(sums + (r - begin) * 16 + c + d) = v85;
                        }
                    }
                }
            }
            if (j + 16 <= 19) {
                for (long r = begin; r < end; r++) {
                    float16 v86 = *(fc_loose_float32_16 *)(sums + (r - begin) * 16);
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v86 == v86 ? v86 : (float16)(as_float(0x7fc00000U)));
                }
            } else {
                for (long r = begin; r < end; r++) {
                    float16 v87 = *(fc_loose_float32_16 *)(sums + (r - begin) * 16);
                    fc_store_first_3_float32_16((v87 == v87 ? v87 : (float16)(as_float(0x7fc00000U))), out0 + (r * 19 + j));
                }
            }
        }
    }
}
