#pragma OPENCL FP_CONTRACT OFF

typedef float16 fc_loose_float32_16 __attribute__((aligned(4)));

static inline float fc_float_of_half(int bits) {
    ushort half_bits = bits;
#ifdef __F16C__
    return __builtin_load_halff((const half *)&half_bits);
#else
    return vload_half(0, (const half *)&half_bits);
#endif
}

static inline float fc_q4_1_of_block(const __global uchar *block, int place) {
#pragma OPENCL FP_CONTRACT OFF
    int v0 = (place >> 4);
    return ((fc_float_of_half(((int)block[0] | ((int)block[(0 + 1)] << 8))) * (float)((((int)block[((4 + (16 * (v0 >> 1))) + (place & 15))] >> (4 * (v0 & 1))) & 15))) + fc_float_of_half(((int)block[2] | ((int)block[(2 + 1)] << 8))));
}

static inline float fc_q4_1(const __global uchar *p, long n) {
    return fc_q4_1_of_block(p + (ulong)n / 32 * 20, (int)((ulong)n % 32));
}

typedef uchar16 fc_loose_uint8_16 __attribute__((aligned(1)));

static inline float16 fc_fma_float16(float16 a, float16 b, float16 c) {
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
}

static inline float16 fc_q4_1_run16_of_block(const __global uchar *block, int place) {
#pragma OPENCL FP_CONTRACT OFF
    int v0 = (place >> 4);
    int16 v1 = __builtin_convertvector(*(const __global fc_loose_uint8_16 *)(block + ((16 * (v0 >> 1)) + 4)), int16);
    int16 v2 = v1 >> (int16)((4 * (v0 & 1)));
    int16 v3 = v2 & (int16)(15);
    float16 v4 = __builtin_convertvector(v3, float16);
    float16 v5 = fc_fma_float16((float16)(fc_float_of_half(((int)block[0] | ((int)block[1] << 8)))), v4, (float16)(fc_float_of_half(((int)block[2] | ((int)block[3] << 8)))));
    return v5;
}

static inline float16 fc_q4_1_32_behind16(const __global uchar *p, long n, long along, int behind) {
    const __global uchar *block = p + (ulong)n / 32 * 20 + (ulong)along / 32 * 20;
    int place = (int)((ulong)along / 32 % (32 / 32)) * 32;
    if (behind == 0) __builtin_prefetch((const void *)(size_t)(block + place * 20 / 32 + 1024), 0, 3);
    return fc_q4_1_run16_of_block(block, place + behind);
}

typedef float2 fc_loose_float32_2 __attribute__((aligned(4)));

static inline void fc_store_first_3_float32_16(float16 all, __global float *w) {
    *(__global fc_loose_float32_2 *)(w + 0) = all.s01;
    w[2] = all.s2;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global const uchar *restrict in1,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    float sums[16] __attribute__((aligned(64)));
    long tasks = (n + 1 - 1) * 2;
    long t = (tasks + gsize - 1) / gsize * gid;
    long after = min(tasks, t + (tasks + gsize - 1) / gsize);
    while (t < after) {
        long first_strip = t % 2;
        long last_strip = min(2L, first_strip + after - t);
        long height = 1;
        long begin = t / 2 * height;
        long end = min(n, begin + height);
        t = t + last_strip - first_strip;
        for (long strip = first_strip; strip < last_strip; strip++) {
            long j = strip * 16;
            for (long c = 0; c < min(16L, 19 - j); c += 4) {
                for (long d = 0; d < 4; d += 2) {
                    long i0 = min(j + (c + d), 18L) * 64;
                    long i1 = min(j + (c + d + 1), 18L) * 64;
                    for (long r = begin; r < end; r++) {
                        float16 v2 = (float16)(-0x0.0p+0f);
                        float16 v3 = (float16)(-0x0.0p+0f);
                        #pragma unroll 2
                        for (long k = 0; k < 64; k += 32) {
                            float16 v4 = *(const __global fc_loose_float32_16 *)(in0 + (k));
                            float16 v5 = fc_q4_1_32_behind16(in1, i0, k, 0);
                            float16 v6 = fc_fma_float16(v4, v5, v2);
                            v2 = v6;
                            float16 v7 = fc_q4_1_32_behind16(in1, i1, k, 0);
                            float16 v8 = fc_fma_float16(v4, v7, v3);
                            v3 = v8;
                            float16 v9 = *(const __global fc_loose_float32_16 *)(in0 + (k + 16));
                            float16 v10 = fc_q4_1_32_behind16(in1, i0, k, 16);
                            float16 v11 = fc_fma_float16(v9, v10, v2);
                            v2 = v11;
                            float16 v12 = fc_q4_1_32_behind16(in1, i1, k, 16);
                            float16 v13 = fc_fma_float16(v9, v12, v3);
                            v3 = v13;
                        }
                        float8 v14 = v2.lo;
                        float8 v15 = v2.hi;
                        float8 v16 = (v14 + v15);
                        float8 v17 = v3.lo;
                        float8 v18 = v3.hi;
                        float8 v19 = (v17 + v18);
                        float8 v20 = (float8)(v16.s0, v16.s1, v16.s2, v16.s3, v19.s0, v19.s1, v19.s2, v19.s3);
                        float8 v21 = (float8)(v16.s4, v16.s5, v16.s6, v16.s7, v19.s4, v19.s5, v19.s6, v19.s7);
                        float8 v22 = (v20 + v21);
                        float4 v23 = (float4)(v22.s0, v22.s1, v22.s4, v22.s5);
                        float4 v24 = (float4)(v22.s2, v22.s3, v22.s6, v22.s7);
                        float4 v25 = (v23 + v24);
                        float2 v26 = (float2)(v25.s0, v25.s2);
                        float2 v27 = (float2)(v25.s1, v25.s3);
                        float2 v28 = (v26 + v27);
                        *(fc_loose_float32_2 *)(sums + (r - begin) * 16 + c + d) = v28;
                    }
                }
            }
            if (j + 16 <= 19) {
                for (long r = begin; r < end; r++) {
                    float16 v29 = *(fc_loose_float32_16 *)(sums + (r - begin) * 16);
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v29 == v29 ? v29 : (float16)(as_float(0x7fc00000U)));
                }
            } else {
                for (long r = begin; r < end; r++) {
                    float16 v30 = *(fc_loose_float32_16 *)(sums + (r - begin) * 16);
                    fc_store_first_3_float32_16((v30 == v30 ? v30 : (float16)(as_float(0x7fc00000U))), out0 + (r * 19 + j));
                }
            }
        }
    }
}
