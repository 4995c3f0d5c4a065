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

static inline float16 fc_fma_float16(float16 a, float16 b, float16 c) {
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
}

static inline float16 fc_q4_k_run16_of_block(const __global uchar *block, int place) {
#pragma OPENCL FP_CONTRACT OFF
    int v0 = (place >> 5);
    int v1 = (v0 < 4);
    int v2 = (v0 & 3);
    int v3 = (int)block[(v2 + 4)];
    int v4 = (int)block[(v2 + 12)];
    int16 v5 = __builtin_convertvector(*(const __global fc_loose_uint8_16 *)(block + (((32 * (v0 >> 1)) + (place & 31)) + 16)), int16);
    int16 v6 = v5 >> (int16)((4 * (v0 & 1)));
    int16 v7 = v6 & (int16)(15);
    float16 v8 = __builtin_convertvector(v7, float16);
    int v9 = (int)block[(v2 + 8)];
    float16 v10 = fc_fma_float16((float16)((fc_float_of_half(((int)block[0] | ((int)block[1] << 8))) * (float)((v1 ? (v3 & 63) : ((v4 & 15) | ((v3 >> 2) & 48)))))), v8, -(float16)((fc_float_of_half(((int)block[2] | ((int)block[3] << 8))) * (float)((v1 ? (v9 & 63) : ((v4 >> 4) | ((v9 >> 2) & 48)))))));
    return v10;
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
    int16 v0 = __builtin_convertvector(*(const __global fc_loose_uint8_16 *)(block + (place + 2)), int16);
    int16 v1 = v0 ^ (int16)(128);
    int16 v2 = v1 - (int16)(128);
    float16 v3 = __builtin_convertvector(v2, float16);
    float16 v4 = fc_float_of_half(((int)block[0] | ((int)block[1] << 8))) * v3;
    return v4;
}

static inline float16 fc_q8_0_32_behind16(const __global uchar *p, long n, int behind) {
    return fc_q8_0_run16_of_block(p + (ulong)n / 32 * 34, (int)((ulong)n / 32 % (32 / 32)) * 32 + behind);
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
                            for (long k = 0; k < 512; k += 32) {
                                float16 v5 = *(fc_loose_float32_16 *)(left + i3 + k);
                                float16 v6 = fc_q8_0_32_behind16(in1, i2 + k, 0);
                                float16 v7 = fc_fma_float16(v5, v6, v4);
                                v4 = v7;
                                float16 v8 = *(fc_loose_float32_16 *)(left + i3 + (k + 16));
                                float16 v9 = fc_q8_0_32_behind16(in1, i2 + k, 16);
                                float16 v10 = fc_fma_float16(v8, v9, v4);
                                v4 = v10;
                            }
                            float8 v11 = v4.lo;
                            float8 v12 = v4.hi;
                            float8 v13 = (v11 + v12);
                            float4 v14 = v13.lo;
                            float4 v15 = v13.hi;
                            float4 v16 = (v14 + v15);
                            float2 v17 = v16.lo;
                            float2 v18 = v16.hi;
                            float2 v19 = (v17 + v18);
                            float v20 = v19.lo;
                            float v21 = v19.hi;
                            float v22 = (v20 + v21);
                            sums[(r - begin) * 16 + c + d] = v22;
                        }
                    }
                } else {
                    for (long d = 0; d < 4; d++) {
                        long i23 = min(j + (c + d), 18L) * 512;
                        #pragma unroll 2
                        for (long k = 0; k < 512; k += 32) {
                            float16 v24 = fc_q8_0_32_behind16(in1, i23 + k, 0);
                            *(fc_loose_float32_16 *)(decoded + d * 512 + k) = v24;
                            float16 v25 = fc_q8_0_32_behind16(in1, i23 + k, 16);
                            *(fc_loose_float32_16 *)(decoded + d * 512 + (k + 16)) = v25;
                        }
                    }
                    long tiled = begin + (end - begin) / 2 * 2;
                    for (long r = begin; r < tiled; r += 2) {
                        for (long d = 0; d < 4; d += 2) {
                            long i26 = (r - begin) * 512;
                            long i27 = r + 1;
                            long i28 = (i27 - begin) * 512;
                            float16 v29 = (float16)(-0x0.0p+0f);
                            float16 v30 = (float16)(-0x0.0p+0f);
                            float16 v31 = (float16)(-0x0.0p+0f);
                            float16 v32 = (float16)(-0x0.0p+0f);
                            #pragma unroll 2
                            for (long k = 0; k < 512; k += 16) {
                                float16 v33 = *(fc_loose_float32_16 *)(left + i26 + k);
                                float16 v34 = *(fc_loose_float32_16 *)(left + i28 + k);
                                float16 v35 = *(fc_loose_float32_16 *)(decoded + d * 512 + k);
                                float16 v36 = fc_fma_float16(v33, v35, v29);
                                v29 = v36;
                                float16 v37 = fc_fma_float16(v34, v35, v31);
                                v31 = v37;
                                float16 v38 = *(fc_loose_float32_16 *)(decoded + (d + 1) * 512 + k);
                                float16 v39 = fc_fma_float16(v33, v38, v30);
                                v30 = v39;
                                float16 v40 = fc_fma_float16(v34, v38, v32);
                                v32 = v40;
                            }
                            float8 v41 = v29.lo;
                            float8 v42 = v29.hi;
                            float8 v43 = (v41 + v42);
                            float8 v44 = v30.lo;
                            float8 v45 = v30.hi;
                            float8 v46 = (v44 + v45);
                            float8 v47 = v31.lo;
                            float8 v48 = v31.hi;
                            float8 v49 = (v47 + v48);
                            float8 v50 = v32.lo;
                            float8 v51 = v32.hi;
                            float8 v52 = (v50 + v51);
                            float8 v53 = (float8)(v43.s0, v43.s1, v43.s2, v43.s3, v46.s0, v46.s1, v46.s2, v46.s3);
                            float8 v54 = (float8)(v43.s4, v43.s5, v43.s6, v43.s7, v46.s4, v46.s5, v46.s6, v46.s7);
                            float8 v55 = (v53 + v54);
                            float8 v56 = (float8)(v49.s0, v49.s1, v49.s2, v49.s3, v52.s0, v52.s1, v52.s2, v52.s3);
                            float8 v57 = (float8)(v49.s4, v49.s5, v49.s6, v49.s7, v52.s4, v52.s5, v52.s6, v52.s7);
                            float8 v58 = (v56 + v57);
                            float8 v59 = (float8)(v55.s0, v55.s1, v55.s4, v55.s5, v58.s0, v58.s1, v58.s4, v58.s5);
                            float8 v60 = (float8)(v55.s2, v55.s3, v55.s6, v55.s7, v58.s2, v58.s3, v58.s6, v58.s7);
                            float8 v61 = (v59 + v60);
                            float4 v62 = (float4)(v61.s0, v61.s2, v61.s4, v61.s6);
                            float4 v63 = (float4)(v61.s1, v61.s3, v61.s5, v61.s7);
                            float4 v64 = (v62 + v63);
                            float2 v65 = v64.lo;
                            float2 v66 = v64.hi;
                            *(fc_loose_float32_2 *)(sums + (r - begin) * 16 + c + d) = v65;
                            *(fc_loose_float32_2 *)(sums + (r + 1 - begin) * 16 + c + d) = v66;
                        }
                    }
                    for (long r = tiled; r < end; r++) {
                        for (long d = 0; d < 4; d += 2) {
                            long i67 = (r - begin) * 512;
                            float16 v68 = (float16)(-0x0.0p+0f);
                            float16 v69 = (float16)(-0x0.0p+0f);
                            #pragma unroll 2
                            for (long k = 0; k < 512; k += 16) {
                                float16 v70 = *(fc_loose_float32_16 *)(left + i67 + k);
                                float16 v71 = *(fc_loose_float32_16 *)(decoded + d * 512 + k);
                                float16 v72 = fc_fma_float16(v70, v71, v68);
                                v68 = v72;
                                float16 v73 = *(fc_loose_float32_16 *)(decoded + (d + 1) * 512 + k);
                                float16 v74 = fc_fma_float16(v70, v73, v69);
                                v69 = v74;
                            }
                            float8 v75 = v68.lo;
                            float8 v76 = v68.hi;
                            float8 v77 = (v75 + v76);
                            float8 v78 = v69.lo;
                            float8 v79 = v69.hi;
                            float8 v80 = (v78 + v79);
                            float8 v81 = (float8)(v77.s0, v77.s1, v77.s2, v77.s3, v80.s0, v80.s1, v80.s2, v80.s3);
                            float8 v82 = (float8)(v77.s4, v77.s5, v77.s6, v77.s7, v80.s4, v80.s5, v80.s6, v80.s7);
                            float8 v83 = (v81 + v82);
                            float4 v84 = (float4)(v83.s0, v83.s1, v83.s4, v83.s5);
                            float4 v85 = (float4)(v83.s2, v83.s3, v83.s6, v83.s7);
                            float4 v86 = (v84 + v85);
                            float2 v87 = (float2)(v86.s0, v86.s2);
                            float2 v88 = (float2)(v86.s1, v86.s3);
                            float2 v89 = (v87 + v88);
                            *(fc_loose_float32_2 *)(sums + (r - begin) * 16 + c + d) = v89;
                        }
                    }
                }
            }
            if (j + 16 <= 19) {
                for (long r = begin; r < end; r++) {
                    float16 v90 = *(fc_loose_float32_16 *)(sums + (r - begin) * 16);
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v90 == v90 ? v90 : (float16)(as_float(0x7fc00000U)));
                }
            } else {
                for (long r = begin; r < end; r++) {
                    float16 v91 = *(fc_loose_float32_16 *)(sums + (r - begin) * 16);
                    fc_store_first_3_float32_16((v91 == v91 ? v91 : (float16)(as_float(0x7fc00000U))), out0 + (r * 19 + j));
                }
            }
        }
    }
}
