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

typedef float8 fc_loose_float32_8 __attribute__((aligned(4)));

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

static inline float16 fc_q8_0_32_behind16(const __global uchar *p, long n, long along, int behind) {
    const __global uchar *block = p + (ulong)n / 32 * 34 + (ulong)along / 32 * 34;
    int place = (int)((ulong)along / 32 % (32 / 32)) * 32;
    if (behind == 0) __builtin_prefetch((const void *)(size_t)(block + place * 34 / 32 + 1024), 0, 3);
    return fc_q8_0_run16_of_block(block, place + behind);
}

typedef float2 fc_loose_float32_2 __attribute__((aligned(4)));

static inline float8 fc_fma_float8(float8 a, float8 b, float8 c) {
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
}

typedef float4 fc_loose_float32_4 __attribute__((aligned(4)));

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
    float sums[2048] __attribute__((aligned(64)));
    float left[65536] __attribute__((aligned(64)));
    float decoded[2048] __attribute__((aligned(64)));
    long tasks = (n + 128 - 1) / 128 * 2;
    long t = (tasks + gsize - 1) / gsize * gid;
    long after = min(tasks, t + (tasks + gsize - 1) / gsize);
    while (t < after) {
        long first_strip = t % 2;
        long last_strip = min(2L, first_strip + after - t);
        long height = min(128L, ((n + (n + 128 - 1) / 128 - 1) / ((n + 128 - 1) / 128) + 2 - 1) / 2 * 2);
        long begin = t / 2 * height;
        long end = min(n, begin + height);
        t = t + last_strip - first_strip;
        for (long r = begin; r < end; r++) {
            long i0 = r * 512;
            #pragma unroll 2
            for (long k = 0; k < 512; k += 16) {
                float16 v1 = fc_q4_k_run16(in0, i0 + k);
                float8 v2 = v1.lo;
                *(fc_loose_float32_8 *)(left + (r - begin) * 512 + k / 2) = v2;
                float8 v3 = v1.hi;
                *(fc_loose_float32_8 *)(left + (r - begin) * 512 + 256 + k / 2) = v3;
            }
        }
        for (long strip = first_strip; strip < last_strip; strip++) {
            long j = strip * 16;
            for (long c = 0; c < min(16L, 19 - j); c += 4) {
                if (end - begin < 2) {
                    for (long d = 0; d < 4; d += 2) {
                        long i4 = min(j + (c + d), 18L) * 512;
                        long i5 = min(j + (c + d + 1), 18L) * 512;
                        for (long r = begin; r < end; r++) {
                            long i6 = (r - begin) * 512;
                            float16 v7 = (float16)(-0x0.0p+0f);
                            float16 v8 = (float16)(-0x0.0p+0f);
                            #pragma unroll 2
                            for (long k = 0; k < 512; k += 32) {
                                float8 v9 = *(fc_loose_float32_8 *)(left + i6 + k / 2);
                                float8 v10 = *(fc_loose_float32_8 *)(left + i6 + 256 + k / 2);
                                float16 v11 = (float16)(v9.s0, v9.s1, v9.s2, v9.s3, v9.s4, v9.s5, v9.s6, v9.s7, v10.s0, v10.s1, v10.s2, v10.s3, v10.s4, v10.s5, v10.s6, v10.s7);
                                float16 v12 = fc_q8_0_32_behind16(in1, i4, k, 0);
                                float16 v13 = fc_fma_float16(v11, v12, v7);
                                v7 = v13;
                                float16 v14 = fc_q8_0_32_behind16(in1, i5, k, 0);
                                float16 v15 = fc_fma_float16(v11, v14, v8);
                                v8 = v15;
                                float8 v16 = *(fc_loose_float32_8 *)(left + i6 + (k + 16) / 2);
                                float8 v17 = *(fc_loose_float32_8 *)(left + i6 + 256 + (k + 16) / 2);
                                float16 v18 = (float16)(v16.s0, v16.s1, v16.s2, v16.s3, v16.s4, v16.s5, v16.s6, v16.s7, v17.s0, v17.s1, v17.s2, v17.s3, v17.s4, v17.s5, v17.s6, v17.s7);
                                float16 v19 = fc_q8_0_32_behind16(in1, i4, k, 16);
                                float16 v20 = fc_fma_float16(v18, v19, v7);
                                v7 = v20;
                                float16 v21 = fc_q8_0_32_behind16(in1, i5, k, 16);
                                float16 v22 = fc_fma_float16(v18, v21, v8);
                                v8 = v22;
                            }
                            float8 v23 = v7.lo;
                            float8 v24 = v7.hi;
                            float8 v25 = (v23 + v24);
                            float8 v26 = v8.lo;
                            float8 v27 = v8.hi;
                            float8 v28 = (v26 + v27);
                            float8 v29 = (float8)(v25.s0, v25.s1, v25.s2, v25.s3, v28.s0, v28.s1, v28.s2, v28.s3);
                            float8 v30 = (float8)(v25.s4, v25.s5, v25.s6, v25.s7, v28.s4, v28.s5, v28.s6, v28.s7);
                            float8 v31 = (v29 + v30);
                            float4 v32 = (float4)(v31.s0, v31.s1, v31.s4, v31.s5);
                            float4 v33 = (float4)(v31.s2, v31.s3, v31.s6, v31.s7);
                            float4 v34 = (v32 + v33);
                            float2 v35 = (float2)(v34.s0, v34.s2);
                            float2 v36 = (float2)(v34.s1, v34.s3);
                            float2 v37 = (v35 + v36);
                            *(fc_loose_float32_2 *)(sums + (r - begin) * 16 + c + d) = v37;
                        }
                    }
                } else {
                    for (long d = 0; d < 4; d++) {
                        long i38 = min(j + (c + d), 18L) * 512;
                        #pragma unroll 2
                        for (long k = 0; k < 512; k += 32) {
                            float16 v39 = fc_q8_0_32_behind16(in1, i38, k, 0);
                            float8 v40 = v39.lo;
                            *(fc_loose_float32_8 *)(decoded + d * 512 + k / 2) = v40;
                            float8 v41 = v39.hi;
                            *(fc_loose_float32_8 *)(decoded + d * 512 + 256 + k / 2) = v41;
                            float16 v42 = fc_q8_0_32_behind16(in1, i38, k, 16);
                            float8 v43 = v42.lo;
                            *(fc_loose_float32_8 *)(decoded + d * 512 + (k + 16) / 2) = v43;
                            float8 v44 = v42.hi;
                            *(fc_loose_float32_8 *)(decoded + d * 512 + 256 + (k + 16) / 2) = v44;
                        }
                    }
                    long tiled = begin + (end - begin) / 2 * 2;
                    for (long r = begin; r < tiled; r += 2) {
                        long i45 = r + 1;
                        long i46 = (r - begin) * 512;
                        long i47 = (i45 - begin) * 512;
                        float8 v48 = (float8)(-0x0.0p+0f);
                        float8 v49 = (float8)(-0x0.0p+0f);
                        float8 v50 = (float8)(-0x0.0p+0f);
                        float8 v51 = (float8)(-0x0.0p+0f);
                        float8 v52 = (float8)(-0x0.0p+0f);
                        float8 v53 = (float8)(-0x0.0p+0f);
                        float8 v54 = (float8)(-0x0.0p+0f);
                        float8 v55 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v56 = *(fc_loose_float32_8 *)(left + i46 + k);
                            float8 v57 = *(fc_loose_float32_8 *)(left + i47 + k);
                            float8 v58 = *(fc_loose_float32_8 *)(decoded + k);
                            float8 v59 = fc_fma_float8(v56, v58, v48);
                            v48 = v59;
                            float8 v60 = fc_fma_float8(v57, v58, v52);
                            v52 = v60;
                            float8 v61 = *(fc_loose_float32_8 *)(decoded + 512 + k);
                            float8 v62 = fc_fma_float8(v56, v61, v49);
                            v49 = v62;
                            float8 v63 = fc_fma_float8(v57, v61, v53);
                            v53 = v63;
                            float8 v64 = *(fc_loose_float32_8 *)(decoded + 1024 + k);
                            float8 v65 = fc_fma_float8(v56, v64, v50);
                            v50 = v65;
                            float8 v66 = fc_fma_float8(v57, v64, v54);
                            v54 = v66;
                            float8 v67 = *(fc_loose_float32_8 *)(decoded + 1536 + k);
                            float8 v68 = fc_fma_float8(v56, v67, v51);
                            v51 = v68;
                            float8 v69 = fc_fma_float8(v57, v67, v55);
                            v55 = v69;
                        }
                        float8 v70 = (float8)(-0x0.0p+0f);
                        float8 v71 = (float8)(-0x0.0p+0f);
                        float8 v72 = (float8)(-0x0.0p+0f);
                        float8 v73 = (float8)(-0x0.0p+0f);
                        float8 v74 = (float8)(-0x0.0p+0f);
                        float8 v75 = (float8)(-0x0.0p+0f);
                        float8 v76 = (float8)(-0x0.0p+0f);
                        float8 v77 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v78 = *(fc_loose_float32_8 *)(left + i46 + 256 + k);
                            float8 v79 = *(fc_loose_float32_8 *)(left + i47 + 256 + k);
                            float8 v80 = *(fc_loose_float32_8 *)(decoded + 256 + k);
                            float8 v81 = fc_fma_float8(v78, v80, v70);
                            v70 = v81;
                            float8 v82 = fc_fma_float8(v79, v80, v74);
                            v74 = v82;
                            float8 v83 = *(fc_loose_float32_8 *)(decoded + 768 + k);
                            float8 v84 = fc_fma_float8(v78, v83, v71);
                            v71 = v84;
                            float8 v85 = fc_fma_float8(v79, v83, v75);
                            v75 = v85;
                            float8 v86 = *(fc_loose_float32_8 *)(decoded + 1280 + k);
                            float8 v87 = fc_fma_float8(v78, v86, v72);
                            v72 = v87;
                            float8 v88 = fc_fma_float8(v79, v86, v76);
                            v76 = v88;
                            float8 v89 = *(fc_loose_float32_8 *)(decoded + 1792 + k);
                            float8 v90 = fc_fma_float8(v78, v89, v73);
                            v73 = v90;
                            float8 v91 = fc_fma_float8(v79, v89, v77);
                            v77 = v91;
                        }
                        float8 v92 = (v48 + v70);
                        float8 v93 = (v49 + v71);
                        float8 v94 = (v50 + v72);
                        float8 v95 = (v51 + v73);
                        float8 v96 = (v52 + v74);
                        float8 v97 = (v53 + v75);
                        float8 v98 = (v54 + v76);
                        float8 v99 = (v55 + v77);
                        float8 v100 = (float8)(v92.s0, v92.s1, v92.s2, v92.s3, v93.s0, v93.s1, v93.s2, v93.s3);
                        float8 v101 = (float8)(v92.s4, v92.s5, v92.s6, v92.s7, v93.s4, v93.s5, v93.s6, v93.s7);
                        float8 v102 = (v100 + v101);
                        float8 v103 = (float8)(v94.s0, v94.s1, v94.s2, v94.s3, v95.s0, v95.s1, v95.s2, v95.s3);
                        float8 v104 = (float8)(v94.s4, v94.s5, v94.s6, v94.s7, v95.s4, v95.s5, v95.s6, v95.s7);
                        float8 v105 = (v103 + v104);
                        float8 v106 = (float8)(v96.s0, v96.s1, v96.s2, v96.s3, v97.s0, v97.s1, v97.s2, v97.s3);
                        float8 v107 = (float8)(v96.s4, v96.s5, v96.s6, v96.s7, v97.s4, v97.s5, v97.s6, v97.s7);
                        float8 v108 = (v106 + v107);
                        float8 v109 = (float8)(v98.s0, v98.s1, v98.s2, v98.s3, v99.s0, v99.s1, v99.s2, v99.s3);
                        float8 v110 = (float8)(v98.s4, v98.s5, v98.s6, v98.s7, v99.s4, v99.s5, v99.s6, v99.s7);
                        float8 v111 = (v109 + v110);
                        float8 v112 = (float8)(v102.s0, v102.s1, v102.s4, v102.s5, v105.s0, v105.s1, v105.s4, v105.s5);
                        float8 v113 = (float8)(v102.s2, v102.s3, v102.s6, v102.s7, v105.s2, v105.s3, v105.s6, v105.s7);
                        float8 v114 = (v112 + v113);
                        float8 v115 = (float8)(v108.s0, v108.s1, v108.s4, v108.s5, v111.s0, v111.s1, v111.s4, v111.s5);
                        float8 v116 = (float8)(v108.s2, v108.s3, v108.s6, v108.s7, v111.s2, v111.s3, v111.s6, v111.s7);
                        float8 v117 = (v115 + v116);
                        float8 v118 = (float8)(v114.s0, v114.s2, v114.s4, v114.s6, v117.s0, v117.s2, v117.s4, v117.s6);
                        float8 v119 = (float8)(v114.s1, v114.s3, v114.s5, v114.s7, v117.s1, v117.s3, v117.s5, v117.s7);
                        float8 v120 = (v118 + v119);
                        float4 v121 = v120.lo;
                        float4 v122 = v120.hi;
                        *(fc_loose_float32_4 *)(sums + (r - begin) * 16 + c) = v121;
                        *(fc_loose_float32_4 *)(sums + (r + 1 - begin) * 16 + c) = v122;
                    }
                    for (long r = tiled; r < end; r++) {
                        long i123 = (r - begin) * 512;
                        float8 v124 = (float8)(-0x0.0p+0f);
                        float8 v125 = (float8)(-0x0.0p+0f);
                        float8 v126 = (float8)(-0x0.0p+0f);
                        float8 v127 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v128 = *(fc_loose_float32_8 *)(left + i123 + k);
                            float8 v129 = *(fc_loose_float32_8 *)(decoded + k);
                            float8 v130 = fc_fma_float8(v128, v129, v124);
                            v124 = v130;
                            float8 v131 = *(fc_loose_float32_8 *)(decoded + 512 + k);
                            float8 v132 = fc_fma_float8(v128, v131, v125);
                            v125 = v132;
                            float8 v133 = *(fc_loose_float32_8 *)(decoded + 1024 + k);
                            float8 v134 = fc_fma_float8(v128, v133, v126);
                            v126 = v134;
                            float8 v135 = *(fc_loose_float32_8 *)(decoded + 1536 + k);
                            float8 v136 = fc_fma_float8(v128, v135, v127);
                            v127 = v136;
                        }
                        float8 v137 = (float8)(-0x0.0p+0f);
                        float8 v138 = (float8)(-0x0.0p+0f);
                        float8 v139 = (float8)(-0x0.0p+0f);
                        float8 v140 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v141 = *(fc_loose_float32_8 *)(left + i123 + 256 + k);
                            float8 v142 = *(fc_loose_float32_8 *)(decoded + 256 + k);
                            float8 v143 = fc_fma_float8(v141, v142, v137);
                            v137 = v143;
                            float8 v144 = *(fc_loose_float32_8 *)(decoded + 768 + k);
                            float8 v145 = fc_fma_float8(v141, v144, v138);
                            v138 = v145;
                            float8 v146 = *(fc_loose_float32_8 *)(decoded + 1280 + k);
                            float8 v147 = fc_fma_float8(v141, v146, v139);
                            v139 = v147;
                            float8 v148 = *(fc_loose_float32_8 *)(decoded + 1792 + k);
                            float8 v149 = fc_fma_float8(v141, v148, v140);
                            v140 = v149;
                        }
                        float8 v150 = (v124 + v137);
                        float8 v151 = (v125 + v138);
                        float8 v152 = (v126 + v139);
                        float8 v153 = (v127 + v140);
                        float8 v154 = (float8)(v150.s0, v150.s1, v150.s2, v150.s3, v151.s0, v151.s1, v151.s2, v151.s3);
                        float8 v155 = (float8)(v150.s4, v150.s5, v150.s6, v150.s7, v151.s4, v151.s5, v151.s6, v151.s7);
                        float8 v156 = (v154 + v155);
                        float8 v157 = (float8)(v152.s0, v152.s1, v152.s2, v152.s3, v153.s0, v153.s1, v153.s2, v153.s3);
                        float8 v158 = (float8)(v152.s4, v152.s5, v152.s6, v152.s7, v153.s4, v153.s5, v153.s6, v153.s7);
                        float8 v159 = (v157 + v158);
                        float8 v160 = (float8)(v156.s0, v156.s1, v156.s4, v156.s5, v159.s0, v159.s1, v159.s4, v159.s5);
                        float8 v161 = (float8)(v156.s2, v156.s3, v156.s6, v156.s7, v159.s2, v159.s3, v159.s6, v159.s7);
                        float8 v162 = (v160 + v161);
                        float4 v163 = (float4)(v162.s0, v162.s2, v162.s4, v162.s6);
                        float4 v164 = (float4)(v162.s1, v162.s3, v162.s5, v162.s7);
                        float4 v165 = (v163 + v164);
                        *(fc_loose_float32_4 *)(sums + (r - begin) * 16 + c) = v165;
                    }
                }
            }
            if (j + 16 <= 19) {
                for (long r = begin; r < end; r++) {
                    float16 v166 = *(fc_loose_float32_16 *)(sums + (r - begin) * 16);
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v166 == v166 ? v166 : (float16)(as_float(0x7fc00000U)));
                }
            } else {
                for (long r = begin; r < end; r++) {
                    float16 v167 = *(fc_loose_float32_16 *)(sums + (r - begin) * 16);
                    fc_store_first_3_float32_16((v167 == v167 ? v167 : (float16)(as_float(0x7fc00000U))), out0 + (r * 19 + j));
                }
            }
        }
    }
}
