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
    float16 v8 = convert_float16(v7);
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

static inline float16 fc_q8_0_apart16(const __global uchar *p, long n, long stride, long count) {
    float all[16];
    for (int lane = 0; lane < 16; lane++) all[lane] = lane < count ? fc_q8_0(p, n + lane * stride) : 0;
    return *(fc_loose_float32_16 *)all;
}

static inline float16 fc_fma_float16(float16 a, float16 b, float16 c) {
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
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
    float left[65536];
    float16 packed[512];
    long start = gid * chunk;
    long stop = min(n, start + chunk);
    long begin = start;
    while (begin < stop) {
        long end = min(stop, begin + 128);
        for (long r = begin; r < end; r++) {
            long i62 = r * 512;
            for (long k = 0; k < 512; k += 16) {
                float16 v63 = fc_q4_k_run16(in1, i62 + k);
                *(fc_loose_float32_16 *)(left + (r - begin) * 512 + k) = v63;
            }
        }
        for (long j = 0; j < 16; j += 16) {
            for (long k = 0; k < 512; k++) {
                float16 v0 = fc_q8_0_apart16(in0, k + j * 512, 512, 16);
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
                    long i8 = (r - begin) * 512;
                    long i9 = (i1 - begin) * 512;
                    long i10 = (i2 - begin) * 512;
                    long i11 = (i3 - begin) * 512;
                    #pragma unroll 4
                    for (long k = 0; k < 512; k++) {
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
                    long i26 = (r - begin) * 512;
                    #pragma unroll 4
                    for (long k = 0; k < 512; k++) {
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
            for (long k = 0; k < 512; k++) {
                float16 v31 = fc_q8_0_apart16(in0, k + j * 512, 512, 16);
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
                    long i39 = (r - begin) * 512;
                    long i40 = (i32 - begin) * 512;
                    long i41 = (i33 - begin) * 512;
                    long i42 = (i34 - begin) * 512;
                    #pragma unroll 4
                    for (long k = 0; k < 512; k++) {
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
                    long i57 = (r - begin) * 512;
                    #pragma unroll 4
                    for (long k = 0; k < 512; k++) {
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
