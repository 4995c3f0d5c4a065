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

static inline float16 fc_q8_0_32_behind16(const __global uchar *p, long n, int behind) {
    return fc_q8_0_run16_of_block(p + (ulong)n / 32 * 34, (int)((ulong)n / 32 % (32 / 32)) * 32 + behind);
}

static inline float8 fc_fma_float8(float8 a, float8 b, float8 c) {
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
}

typedef float4 fc_loose_float32_4 __attribute__((aligned(4)));

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
                    for (long d = 0; d < 4; d++) {
                        long i4 = min(j + (c + d), 18L) * 512;
                        for (long r = begin; r < end; r++) {
                            long i5 = (r - begin) * 512;
                            float16 v6 = (float16)(-0x0.0p+0f);
                            #pragma unroll 2
                            for (long k = 0; k < 512; k += 32) {
                                float8 v7 = *(fc_loose_float32_8 *)(left + i5 + k / 2);
                                float8 v8 = *(fc_loose_float32_8 *)(left + i5 + 256 + k / 2);
                                float16 v9 = (float16)(v7.s0, v7.s1, v7.s2, v7.s3, v7.s4, v7.s5, v7.s6, v7.s7, v8.s0, v8.s1, v8.s2, v8.s3, v8.s4, v8.s5, v8.s6, v8.s7);
                                float16 v10 = fc_q8_0_32_behind16(in1, i4 + k, 0);
                                float16 v11 = fc_fma_float16(v9, v10, v6);
                                v6 = v11;
                                float8 v12 = *(fc_loose_float32_8 *)(left + i5 + (k + 16) / 2);
                                float8 v13 = *(fc_loose_float32_8 *)(left + i5 + 256 + (k + 16) / 2);
                                float16 v14 = (float16)(v12.s0, v12.s1, v12.s2, v12.s3, v12.s4, v12.s5, v12.s6, v12.s7, v13.s0, v13.s1, v13.s2, v13.s3, v13.s4, v13.s5, v13.s6, v13.s7);
                                float16 v15 = fc_q8_0_32_behind16(in1, i4 + k, 16);
                                float16 v16 = fc_fma_float16(v14, v15, v6);
                                v6 = v16;
                            }
                            float8 v17 = v6.lo;
                            float8 v18 = v6.hi;
                            float8 v19 = (v17 + v18);
                            float4 v20 = v19.lo;
                            float4 v21 = v19.hi;
                            float4 v22 = (v20 + v21);
                            float2 v23 = v22.lo;
                            float2 v24 = v22.hi;
                            float2 v25 = (v23 + v24);
                            float v26 = v25.lo;
                            float v27 = v25.hi;
                            float v28 = (v26 + v27);
                            sums[(r - begin) * 16 + c + d] = v28;
                        }
                    }
                } else {
                    for (long d = 0; d < 4; d++) {
                        long i29 = min(j + (c + d), 18L) * 512;
                        #pragma unroll 2
                        for (long k = 0; k < 512; k += 32) {
                            float16 v30 = fc_q8_0_32_behind16(in1, i29 + k, 0);
                            float8 v31 = v30.lo;
                            *(fc_loose_float32_8 *)(decoded + d * 512 + k / 2) = v31;
                            float8 v32 = v30.hi;
                            *(fc_loose_float32_8 *)(decoded + d * 512 + 256 + k / 2) = v32;
                            float16 v33 = fc_q8_0_32_behind16(in1, i29 + k, 16);
                            float8 v34 = v33.lo;
                            *(fc_loose_float32_8 *)(decoded + d * 512 + (k + 16) / 2) = v34;
                            float8 v35 = v33.hi;
                            *(fc_loose_float32_8 *)(decoded + d * 512 + 256 + (k + 16) / 2) = v35;
                        }
                    }
                    long tiled = begin + (end - begin) / 2 * 2;
                    for (long r = begin; r < tiled; r += 2) {
                        long i36 = r + 1;
                        long i37 = (r - begin) * 512;
                        long i38 = (i36 - begin) * 512;
                        float8 v39 = (float8)(-0x0.0p+0f);
                        float8 v40 = (float8)(-0x0.0p+0f);
                        float8 v41 = (float8)(-0x0.0p+0f);
                        float8 v42 = (float8)(-0x0.0p+0f);
                        float8 v43 = (float8)(-0x0.0p+0f);
                        float8 v44 = (float8)(-0x0.0p+0f);
                        float8 v45 = (float8)(-0x0.0p+0f);
                        float8 v46 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v47 = *(fc_loose_float32_8 *)(left + i37 + k);
                            float8 v48 = *(fc_loose_float32_8 *)(left + i38 + k);
                            float8 v49 = *(fc_loose_float32_8 *)(decoded + k);
                            float8 v50 = fc_fma_float8(v47, v49, v39);
                            v39 = v50;
                            float8 v51 = fc_fma_float8(v48, v49, v43);
                            v43 = v51;
                            float8 v52 = *(fc_loose_float32_8 *)(decoded + 512 + k);
                            float8 v53 = fc_fma_float8(v47, v52, v40);
                            v40 = v53;
                            float8 v54 = fc_fma_float8(v48, v52, v44);
                            v44 = v54;
                            float8 v55 = *(fc_loose_float32_8 *)(decoded + 1024 + k);
                            float8 v56 = fc_fma_float8(v47, v55, v41);
                            v41 = v56;
                            float8 v57 = fc_fma_float8(v48, v55, v45);
                            v45 = v57;
                            float8 v58 = *(fc_loose_float32_8 *)(decoded + 1536 + k);
                            float8 v59 = fc_fma_float8(v47, v58, v42);
                            v42 = v59;
                            float8 v60 = fc_fma_float8(v48, v58, v46);
                            v46 = v60;
                        }
                        float8 v61 = (float8)(-0x0.0p+0f);
                        float8 v62 = (float8)(-0x0.0p+0f);
                        float8 v63 = (float8)(-0x0.0p+0f);
                        float8 v64 = (float8)(-0x0.0p+0f);
                        float8 v65 = (float8)(-0x0.0p+0f);
                        float8 v66 = (float8)(-0x0.0p+0f);
                        float8 v67 = (float8)(-0x0.0p+0f);
                        float8 v68 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v69 = *(fc_loose_float32_8 *)(left + i37 + 256 + k);
                            float8 v70 = *(fc_loose_float32_8 *)(left + i38 + 256 + k);
                            float8 v71 = *(fc_loose_float32_8 *)(decoded + 256 + k);
                            float8 v72 = fc_fma_float8(v69, v71, v61);
                            v61 = v72;
                            float8 v73 = fc_fma_float8(v70, v71, v65);
                            v65 = v73;
                            float8 v74 = *(fc_loose_float32_8 *)(decoded + 768 + k);
                            float8 v75 = fc_fma_float8(v69, v74, v62);
                            v62 = v75;
                            float8 v76 = fc_fma_float8(v70, v74, v66);
                            v66 = v76;
                            float8 v77 = *(fc_loose_float32_8 *)(decoded + 1280 + k);
                            float8 v78 = fc_fma_float8(v69, v77, v63);
                            v63 = v78;
                            float8 v79 = fc_fma_float8(v70, v77, v67);
                            v67 = v79;
                            float8 v80 = *(fc_loose_float32_8 *)(decoded + 1792 + k);
                            float8 v81 = fc_fma_float8(v69, v80, v64);
                            v64 = v81;
                            float8 v82 = fc_fma_float8(v70, v80, v68);
                            v68 = v82;
                        }
                        float8 v83 = (v39 + v61);
                        float8 v84 = (v40 + v62);
                        float8 v85 = (v41 + v63);
                        float8 v86 = (v42 + v64);
                        float8 v87 = (v43 + v65);
                        float8 v88 = (v44 + v66);
                        float8 v89 = (v45 + v67);
                        float8 v90 = (v46 + v68);
                        float8 v91 = (float8)(v83.s0, v83.s1, v83.s2, v83.s3, v84.s0, v84.s1, v84.s2, v84.s3);
                        float8 v92 = (float8)(v83.s4, v83.s5, v83.s6, v83.s7, v84.s4, v84.s5, v84.s6, v84.s7);
                        float8 v93 = (v91 + v92);
                        float8 v94 = (float8)(v85.s0, v85.s1, v85.s2, v85.s3, v86.s0, v86.s1, v86.s2, v86.s3);
                        float8 v95 = (float8)(v85.s4, v85.s5, v85.s6, v85.s7, v86.s4, v86.s5, v86.s6, v86.s7);
                        float8 v96 = (v94 + v95);
                        float8 v97 = (float8)(v87.s0, v87.s1, v87.s2, v87.s3, v88.s0, v88.s1, v88.s2, v88.s3);
                        float8 v98 = (float8)(v87.s4, v87.s5, v87.s6, v87.s7, v88.s4, v88.s5, v88.s6, v88.s7);
                        float8 v99 = (v97 + v98);
                        float8 v100 = (float8)(v89.s0, v89.s1, v89.s2, v89.s3, v90.s0, v90.s1, v90.s2, v90.s3);
                        float8 v101 = (float8)(v89.s4, v89.s5, v89.s6, v89.s7, v90.s4, v90.s5, v90.s6, v90.s7);
                        float8 v102 = (v100 + v101);
                        float8 v103 = (float8)(v93.s0, v93.s1, v93.s4, v93.s5, v96.s0, v96.s1, v96.s4, v96.s5);
                        float8 v104 = (float8)(v93.s2, v93.s3, v93.s6, v93.s7, v96.s2, v96.s3, v96.s6, v96.s7);
                        float8 v105 = (v103 + v104);
                        float8 v106 = (float8)(v99.s0, v99.s1, v99.s4, v99.s5, v102.s0, v102.s1, v102.s4, v102.s5);
                        float8 v107 = (float8)(v99.s2, v99.s3, v99.s6, v99.s7, v102.s2, v102.s3, v102.s6, v102.s7);
                        float8 v108 = (v106 + v107);
                        float8 v109 = (float8)(v105.s0, v105.s2, v105.s4, v105.s6, v108.s0, v108.s2, v108.s4, v108.s6);
                        float8 v110 = (float8)(v105.s1, v105.s3, v105.s5, v105.s7, v108.s1, v108.s3, v108.s5, v108.s7);
                        float8 v111 = (v109 + v110);
                        float4 v112 = v111.lo;
                        float4 v113 = v111.hi;
                        *(fc_loose_float32_4 *)(sums + (r - begin) * 16 + c) = v112;
                        *(fc_loose_float32_4 *)(sums + (r + 1 - begin) * 16 + c) = v113;
                    }
                    for (long r = tiled; r < end; r++) {
                        long i114 = (r - begin) * 512;
                        float8 v115 = (float8)(-0x0.0p+0f);
                        float8 v116 = (float8)(-0x0.0p+0f);
                        float8 v117 = (float8)(-0x0.0p+0f);
                        float8 v118 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v119 = *(fc_loose_float32_8 *)(left + i114 + k);
                            float8 v120 = *(fc_loose_float32_8 *)(decoded + k);
                            float8 v121 = fc_fma_float8(v119, v120, v115);
                            v115 = v121;
                            float8 v122 = *(fc_loose_float32_8 *)(decoded + 512 + k);
                            float8 v123 = fc_fma_float8(v119, v122, v116);
                            v116 = v123;
                            float8 v124 = *(fc_loose_float32_8 *)(decoded + 1024 + k);
                            float8 v125 = fc_fma_float8(v119, v124, v117);
                            v117 = v125;
                            float8 v126 = *(fc_loose_float32_8 *)(decoded + 1536 + k);
                            float8 v127 = fc_fma_float8(v119, v126, v118);
                            v118 = v127;
                        }
                        float8 v128 = (float8)(-0x0.0p+0f);
                        float8 v129 = (float8)(-0x0.0p+0f);
                        float8 v130 = (float8)(-0x0.0p+0f);
                        float8 v131 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v132 = *(fc_loose_float32_8 *)(left + i114 + 256 + k);
                            float8 v133 = *(fc_loose_float32_8 *)(decoded + 256 + k);
                            float8 v134 = fc_fma_float8(v132, v133, v128);
                            v128 = v134;
                            float8 v135 = *(fc_loose_float32_8 *)(decoded + 768 + k);
                            float8 v136 = fc_fma_float8(v132, v135, v129);
                            v129 = v136;
                            float8 v137 = *(fc_loose_float32_8 *)(decoded + 1280 + k);
                            float8 v138 = fc_fma_float8(v132, v137, v130);
                            v130 = v138;
                            float8 v139 = *(fc_loose_float32_8 *)(decoded + 1792 + k);
                            float8 v140 = fc_fma_float8(v132, v139, v131);
                            v131 = v140;
                        }
                        float8 v141 = (v115 + v128);
                        float8 v142 = (v116 + v129);
                        float8 v143 = (v117 + v130);
                        float8 v144 = (v118 + v131);
                        float8 v145 = (float8)(v141.s0, v141.s1, v141.s2, v141.s3, v142.s0, v142.s1, v142.s2, v142.s3);
                        float8 v146 = (float8)(v141.s4, v141.s5, v141.s6, v141.s7, v142.s4, v142.s5, v142.s6, v142.s7);
                        float8 v147 = (v145 + v146);
                        float8 v148 = (float8)(v143.s0, v143.s1, v143.s2, v143.s3, v144.s0, v144.s1, v144.s2, v144.s3);
                        float8 v149 = (float8)(v143.s4, v143.s5, v143.s6, v143.s7, v144.s4, v144.s5, v144.s6, v144.s7);
                        float8 v150 = (v148 + v149);
                        float8 v151 = (float8)(v147.s0, v147.s1, v147.s4, v147.s5, v150.s0, v150.s1, v150.s4, v150.s5);
                        float8 v152 = (float8)(v147.s2, v147.s3, v147.s6, v147.s7, v150.s2, v150.s3, v150.s6, v150.s7);
                        float8 v153 = (v151 + v152);
                        float4 v154 = (float4)(v153.s0, v153.s2, v153.s4, v153.s6);
                        float4 v155 = (float4)(v153.s1, v153.s3, v153.s5, v153.s7);
                        float4 v156 = (v154 + v155);
                        *(fc_loose_float32_4 *)(sums + (r - begin) * 16 + c) = v156;
                    }
                }
            }
            if (j + 16 <= 19) {
                for (long r = begin; r < end; r++) {
                    float16 v157 = *(fc_loose_float32_16 *)(sums + (r - begin) * 16);
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v157 == v157 ? v157 : (float16)(as_float(0x7fc00000U)));
                }
            } else {
                for (long r = begin; r < end; r++) {
                    float16 v158 = *(fc_loose_float32_16 *)(sums + (r - begin) * 16);
                    fc_store_first_3_float32_16((v158 == v158 ? v158 : (float16)(as_float(0x7fc00000U))), out0 + (r * 19 + j));
                }
            }
        }
    }
}
