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
        long height = min(128L, ((n + (n + 128 - 1) / 128 - 1) / ((n + 128 - 1) / 128) + 3 - 1) / 3 * 3);
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
                    long tiled = end - (end - begin) * 2 % 3 * 2;
                    for (long r = begin; r < tiled; r += 3) {
                        long i45 = r + 1;
                        long i46 = r + 2;
                        long i47 = (r - begin) * 512;
                        long i48 = (i45 - begin) * 512;
                        long i49 = (i46 - begin) * 512;
                        float8 v50 = (float8)(-0x0.0p+0f);
                        float8 v51 = (float8)(-0x0.0p+0f);
                        float8 v52 = (float8)(-0x0.0p+0f);
                        float8 v53 = (float8)(-0x0.0p+0f);
                        float8 v54 = (float8)(-0x0.0p+0f);
                        float8 v55 = (float8)(-0x0.0p+0f);
                        float8 v56 = (float8)(-0x0.0p+0f);
                        float8 v57 = (float8)(-0x0.0p+0f);
                        float8 v58 = (float8)(-0x0.0p+0f);
                        float8 v59 = (float8)(-0x0.0p+0f);
                        float8 v60 = (float8)(-0x0.0p+0f);
                        float8 v61 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v62 = *(fc_loose_float32_8 *)(left + i47 + k);
                            float8 v63 = *(fc_loose_float32_8 *)(left + i48 + k);
                            float8 v64 = *(fc_loose_float32_8 *)(left + i49 + k);
                            float8 v65 = *(fc_loose_float32_8 *)(decoded + k);
                            float8 v66 = fc_fma_float8(v62, v65, v50);
                            v50 = v66;
                            float8 v67 = fc_fma_float8(v63, v65, v54);
                            v54 = v67;
                            float8 v68 = fc_fma_float8(v64, v65, v58);
                            v58 = v68;
                            float8 v69 = *(fc_loose_float32_8 *)(decoded + 512 + k);
                            float8 v70 = fc_fma_float8(v62, v69, v51);
                            v51 = v70;
                            float8 v71 = fc_fma_float8(v63, v69, v55);
                            v55 = v71;
                            float8 v72 = fc_fma_float8(v64, v69, v59);
                            v59 = v72;
                            float8 v73 = *(fc_loose_float32_8 *)(decoded + 1024 + k);
                            float8 v74 = fc_fma_float8(v62, v73, v52);
                            v52 = v74;
                            float8 v75 = fc_fma_float8(v63, v73, v56);
                            v56 = v75;
                            float8 v76 = fc_fma_float8(v64, v73, v60);
                            v60 = v76;
                            float8 v77 = *(fc_loose_float32_8 *)(decoded + 1536 + k);
                            float8 v78 = fc_fma_float8(v62, v77, v53);
                            v53 = v78;
                            float8 v79 = fc_fma_float8(v63, v77, v57);
                            v57 = v79;
                            float8 v80 = fc_fma_float8(v64, v77, v61);
                            v61 = v80;
                        }
                        float8 v81 = (float8)(-0x0.0p+0f);
                        float8 v82 = (float8)(-0x0.0p+0f);
                        float8 v83 = (float8)(-0x0.0p+0f);
                        float8 v84 = (float8)(-0x0.0p+0f);
                        float8 v85 = (float8)(-0x0.0p+0f);
                        float8 v86 = (float8)(-0x0.0p+0f);
                        float8 v87 = (float8)(-0x0.0p+0f);
                        float8 v88 = (float8)(-0x0.0p+0f);
                        float8 v89 = (float8)(-0x0.0p+0f);
                        float8 v90 = (float8)(-0x0.0p+0f);
                        float8 v91 = (float8)(-0x0.0p+0f);
                        float8 v92 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v93 = *(fc_loose_float32_8 *)(left + i47 + 256 + k);
                            float8 v94 = *(fc_loose_float32_8 *)(left + i48 + 256 + k);
                            float8 v95 = *(fc_loose_float32_8 *)(left + i49 + 256 + k);
                            float8 v96 = *(fc_loose_float32_8 *)(decoded + 256 + k);
                            float8 v97 = fc_fma_float8(v93, v96, v81);
                            v81 = v97;
                            float8 v98 = fc_fma_float8(v94, v96, v85);
                            v85 = v98;
                            float8 v99 = fc_fma_float8(v95, v96, v89);
                            v89 = v99;
                            float8 v100 = *(fc_loose_float32_8 *)(decoded + 768 + k);
                            float8 v101 = fc_fma_float8(v93, v100, v82);
                            v82 = v101;
                            float8 v102 = fc_fma_float8(v94, v100, v86);
                            v86 = v102;
                            float8 v103 = fc_fma_float8(v95, v100, v90);
                            v90 = v103;
                            float8 v104 = *(fc_loose_float32_8 *)(decoded + 1280 + k);
                            float8 v105 = fc_fma_float8(v93, v104, v83);
                            v83 = v105;
                            float8 v106 = fc_fma_float8(v94, v104, v87);
                            v87 = v106;
                            float8 v107 = fc_fma_float8(v95, v104, v91);
                            v91 = v107;
                            float8 v108 = *(fc_loose_float32_8 *)(decoded + 1792 + k);
                            float8 v109 = fc_fma_float8(v93, v108, v84);
                            v84 = v109;
                            float8 v110 = fc_fma_float8(v94, v108, v88);
                            v88 = v110;
                            float8 v111 = fc_fma_float8(v95, v108, v92);
                            v92 = v111;
                        }
                        float8 v112 = (v50 + v81);
                        float8 v113 = (v51 + v82);
                        float8 v114 = (v52 + v83);
                        float8 v115 = (v53 + v84);
                        float8 v116 = (v54 + v85);
                        float8 v117 = (v55 + v86);
                        float8 v118 = (v56 + v87);
                        float8 v119 = (v57 + v88);
                        float8 v120 = (v58 + v89);
                        float8 v121 = (v59 + v90);
                        float8 v122 = (v60 + v91);
                        float8 v123 = (v61 + v92);
                        float8 v124 = (float8)(v120.s0, v120.s1, v120.s2, v120.s3, v121.s0, v121.s1, v121.s2, v121.s3);
                        float8 v125 = (float8)(v120.s4, v120.s5, v120.s6, v120.s7, v121.s4, v121.s5, v121.s6, v121.s7);
                        float8 v126 = (v124 + v125);
                        float8 v127 = (float8)(v122.s0, v122.s1, v122.s2, v122.s3, v123.s0, v123.s1, v123.s2, v123.s3);
                        float8 v128 = (float8)(v122.s4, v122.s5, v122.s6, v122.s7, v123.s4, v123.s5, v123.s6, v123.s7);
                        float8 v129 = (v127 + v128);
                        float8 v130 = (float8)(v126.s0, v126.s1, v126.s4, v126.s5, v129.s0, v129.s1, v129.s4, v129.s5);
                        float8 v131 = (float8)(v126.s2, v126.s3, v126.s6, v126.s7, v129.s2, v129.s3, v129.s6, v129.s7);
                        float8 v132 = (v130 + v131);
                        float4 v133 = (float4)(v132.s0, v132.s2, v132.s4, v132.s6);
                        float4 v134 = (float4)(v132.s1, v132.s3, v132.s5, v132.s7);
                        float4 v135 = (v133 + v134);
                        float8 v136 = (float8)(v112.s0, v112.s1, v112.s2, v112.s3, v113.s0, v113.s1, v113.s2, v113.s3);
                        float8 v137 = (float8)(v112.s4, v112.s5, v112.s6, v112.s7, v113.s4, v113.s5, v113.s6, v113.s7);
                        float8 v138 = (v136 + v137);
                        float8 v139 = (float8)(v114.s0, v114.s1, v114.s2, v114.s3, v115.s0, v115.s1, v115.s2, v115.s3);
                        float8 v140 = (float8)(v114.s4, v114.s5, v114.s6, v114.s7, v115.s4, v115.s5, v115.s6, v115.s7);
                        float8 v141 = (v139 + v140);
                        float8 v142 = (float8)(v116.s0, v116.s1, v116.s2, v116.s3, v117.s0, v117.s1, v117.s2, v117.s3);
                        float8 v143 = (float8)(v116.s4, v116.s5, v116.s6, v116.s7, v117.s4, v117.s5, v117.s6, v117.s7);
                        float8 v144 = (v142 + v143);
                        float8 v145 = (float8)(v118.s0, v118.s1, v118.s2, v118.s3, v119.s0, v119.s1, v119.s2, v119.s3);
                        float8 v146 = (float8)(v118.s4, v118.s5, v118.s6, v118.s7, v119.s4, v119.s5, v119.s6, v119.s7);
                        float8 v147 = (v145 + v146);
                        float8 v148 = (float8)(v138.s0, v138.s1, v138.s4, v138.s5, v141.s0, v141.s1, v141.s4, v141.s5);
                        float8 v149 = (float8)(v138.s2, v138.s3, v138.s6, v138.s7, v141.s2, v141.s3, v141.s6, v141.s7);
                        float8 v150 = (v148 + v149);
                        float8 v151 = (float8)(v144.s0, v144.s1, v144.s4, v144.s5, v147.s0, v147.s1, v147.s4, v147.s5);
                        float8 v152 = (float8)(v144.s2, v144.s3, v144.s6, v144.s7, v147.s2, v147.s3, v147.s6, v147.s7);
                        float8 v153 = (v151 + v152);
                        float8 v154 = (float8)(v150.s0, v150.s2, v150.s4, v150.s6, v153.s0, v153.s2, v153.s4, v153.s6);
                        float8 v155 = (float8)(v150.s1, v150.s3, v150.s5, v150.s7, v153.s1, v153.s3, v153.s5, v153.s7);
                        float8 v156 = (v154 + v155);
                        float4 v157 = v156.lo;
                        float4 v158 = v156.hi;
                        *(fc_loose_float32_4 *)(sums + (r - begin) * 16 + c) = v157;
                        *(fc_loose_float32_4 *)(sums + (r + 1 - begin) * 16 + c) = v158;
                        *(fc_loose_float32_4 *)(sums + (r + 2 - begin) * 16 + c) = v135;
                    }
                    for (long r = tiled; r < end; r += 2) {
                        long i159 = r + 1;
                        long i160 = (r - begin) * 512;
                        long i161 = (i159 - begin) * 512;
                        float8 v162 = (float8)(-0x0.0p+0f);
                        float8 v163 = (float8)(-0x0.0p+0f);
                        float8 v164 = (float8)(-0x0.0p+0f);
                        float8 v165 = (float8)(-0x0.0p+0f);
                        float8 v166 = (float8)(-0x0.0p+0f);
                        float8 v167 = (float8)(-0x0.0p+0f);
                        float8 v168 = (float8)(-0x0.0p+0f);
                        float8 v169 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v170 = *(fc_loose_float32_8 *)(left + i160 + k);
                            float8 v171 = *(fc_loose_float32_8 *)(left + i161 + k);
                            float8 v172 = *(fc_loose_float32_8 *)(decoded + k);
                            float8 v173 = fc_fma_float8(v170, v172, v162);
                            v162 = v173;
                            float8 v174 = fc_fma_float8(v171, v172, v166);
                            v166 = v174;
                            float8 v175 = *(fc_loose_float32_8 *)(decoded + 512 + k);
                            float8 v176 = fc_fma_float8(v170, v175, v163);
                            v163 = v176;
                            float8 v177 = fc_fma_float8(v171, v175, v167);
                            v167 = v177;
                            float8 v178 = *(fc_loose_float32_8 *)(decoded + 1024 + k);
                            float8 v179 = fc_fma_float8(v170, v178, v164);
                            v164 = v179;
                            float8 v180 = fc_fma_float8(v171, v178, v168);
                            v168 = v180;
                            float8 v181 = *(fc_loose_float32_8 *)(decoded + 1536 + k);
                            float8 v182 = fc_fma_float8(v170, v181, v165);
                            v165 = v182;
                            float8 v183 = fc_fma_float8(v171, v181, v169);
                            v169 = v183;
                        }
                        float8 v184 = (float8)(-0x0.0p+0f);
                        float8 v185 = (float8)(-0x0.0p+0f);
                        float8 v186 = (float8)(-0x0.0p+0f);
                        float8 v187 = (float8)(-0x0.0p+0f);
                        float8 v188 = (float8)(-0x0.0p+0f);
                        float8 v189 = (float8)(-0x0.0p+0f);
                        float8 v190 = (float8)(-0x0.0p+0f);
                        float8 v191 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v192 = *(fc_loose_float32_8 *)(left + i160 + 256 + k);
                            float8 v193 = *(fc_loose_float32_8 *)(left + i161 + 256 + k);
                            float8 v194 = *(fc_loose_float32_8 *)(decoded + 256 + k);
                            float8 v195 = fc_fma_float8(v192, v194, v184);
                            v184 = v195;
                            float8 v196 = fc_fma_float8(v193, v194, v188);
                            v188 = v196;
                            float8 v197 = *(fc_loose_float32_8 *)(decoded + 768 + k);
                            float8 v198 = fc_fma_float8(v192, v197, v185);
                            v185 = v198;
                            float8 v199 = fc_fma_float8(v193, v197, v189);
                            v189 = v199;
                            float8 v200 = *(fc_loose_float32_8 *)(decoded + 1280 + k);
                            float8 v201 = fc_fma_float8(v192, v200, v186);
                            v186 = v201;
                            float8 v202 = fc_fma_float8(v193, v200, v190);
                            v190 = v202;
                            float8 v203 = *(fc_loose_float32_8 *)(decoded + 1792 + k);
                            float8 v204 = fc_fma_float8(v192, v203, v187);
                            v187 = v204;
                            float8 v205 = fc_fma_float8(v193, v203, v191);
                            v191 = v205;
                        }
                        float8 v206 = (v162 + v184);
                        float8 v207 = (v163 + v185);
                        float8 v208 = (v164 + v186);
                        float8 v209 = (v165 + v187);
                        float8 v210 = (v166 + v188);
                        float8 v211 = (v167 + v189);
                        float8 v212 = (v168 + v190);
                        float8 v213 = (v169 + v191);
                        float8 v214 = (float8)(v206.s0, v206.s1, v206.s2, v206.s3, v207.s0, v207.s1, v207.s2, v207.s3);
                        float8 v215 = (float8)(v206.s4, v206.s5, v206.s6, v206.s7, v207.s4, v207.s5, v207.s6, v207.s7);
                        float8 v216 = (v214 + v215);
                        float8 v217 = (float8)(v208.s0, v208.s1, v208.s2, v208.s3, v209.s0, v209.s1, v209.s2, v209.s3);
                        float8 v218 = (float8)(v208.s4, v208.s5, v208.s6, v208.s7, v209.s4, v209.s5, v209.s6, v209.s7);
                        float8 v219 = (v217 + v218);
                        float8 v220 = (float8)(v210.s0, v210.s1, v210.s2, v210.s3, v211.s0, v211.s1, v211.s2, v211.s3);
                        float8 v221 = (float8)(v210.s4, v210.s5, v210.s6, v210.s7, v211.s4, v211.s5, v211.s6, v211.s7);
                        float8 v222 = (v220 + v221);
                        float8 v223 = (float8)(v212.s0, v212.s1, v212.s2, v212.s3, v213.s0, v213.s1, v213.s2, v213.s3);
                        float8 v224 = (float8)(v212.s4, v212.s5, v212.s6, v212.s7, v213.s4, v213.s5, v213.s6, v213.s7);
                        float8 v225 = (v223 + v224);
                        float8 v226 = (float8)(v216.s0, v216.s1, v216.s4, v216.s5, v219.s0, v219.s1, v219.s4, v219.s5);
                        float8 v227 = (float8)(v216.s2, v216.s3, v216.s6, v216.s7, v219.s2, v219.s3, v219.s6, v219.s7);
                        float8 v228 = (v226 + v227);
                        float8 v229 = (float8)(v222.s0, v222.s1, v222.s4, v222.s5, v225.s0, v225.s1, v225.s4, v225.s5);
                        float8 v230 = (float8)(v222.s2, v222.s3, v222.s6, v222.s7, v225.s2, v225.s3, v225.s6, v225.s7);
                        float8 v231 = (v229 + v230);
                        float8 v232 = (float8)(v228.s0, v228.s2, v228.s4, v228.s6, v231.s0, v231.s2, v231.s4, v231.s6);
                        float8 v233 = (float8)(v228.s1, v228.s3, v228.s5, v228.s7, v231.s1, v231.s3, v231.s5, v231.s7);
                        float8 v234 = (v232 + v233);
                        float4 v235 = v234.lo;
                        float4 v236 = v234.hi;
                        *(fc_loose_float32_4 *)(sums + (r - begin) * 16 + c) = v235;
                        *(fc_loose_float32_4 *)(sums + (r + 1 - begin) * 16 + c) = v236;
                    }
                }
            }
            if (j + 16 <= 19) {
                for (long r = begin; r < end; r++) {
                    float16 v237 = *(fc_loose_float32_16 *)(sums + (r - begin) * 16);
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v237 == v237 ? v237 : (float16)(as_float(0x7fc00000U)));
                }
            } else {
                for (long r = begin; r < end; r++) {
                    float16 v238 = *(fc_loose_float32_16 *)(sums + (r - begin) * 16);
                    fc_store_first_3_float32_16((v238 == v238 ? v238 : (float16)(as_float(0x7fc00000U))), out0 + (r * 19 + j));
                }
            }
        }
    }
}
