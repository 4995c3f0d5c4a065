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
    float lower[4096] __attribute__((aligned(64)));
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
                *(fc_loose_float32_8 *)(left + (r - begin) * 256 + k / 2) = v2;
                float8 v3 = v1.hi;
                *(fc_loose_float32_8 *)(left + (r - begin) * 256 + 32768 + k / 2) = v3;
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
                            long i6 = (r - begin) * 256;
                            float16 v7 = (float16)(-0x0.0p+0f);
                            float16 v8 = (float16)(-0x0.0p+0f);
                            #pragma unroll 2
                            for (long k = 0; k < 512; k += 32) {
                                float8 v9 = *(fc_loose_float32_8 *)(left + i6 + k / 2);
                                float8 v10 = *(fc_loose_float32_8 *)(left + i6 + 32768 + k / 2);
                                float16 v11 = (float16)(v9.s0, v9.s1, v9.s2, v9.s3, v9.s4, v9.s5, v9.s6, v9.s7, v10.s0, v10.s1, v10.s2, v10.s3, v10.s4, v10.s5, v10.s6, v10.s7);
                                float16 v12 = fc_q8_0_32_behind16(in1, i4, k, 0);
                                float16 v13 = fc_fma_float16(v11, v12, v7);
                                v7 = v13;
                                float16 v14 = fc_q8_0_32_behind16(in1, i5, k, 0);
                                float16 v15 = fc_fma_float16(v11, v14, v8);
                                v8 = v15;
                                float8 v16 = *(fc_loose_float32_8 *)(left + i6 + (k + 16) / 2);
                                float8 v17 = *(fc_loose_float32_8 *)(left + i6 + 32768 + (k + 16) / 2);
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
                            *(fc_loose_float32_8 *)(decoded + d * 256 + k / 2) = v40;
                            float8 v41 = v39.hi;
                            *(fc_loose_float32_8 *)(decoded + d * 256 + 1024 + k / 2) = v41;
                            float16 v42 = fc_q8_0_32_behind16(in1, i38, k, 16);
                            float8 v43 = v42.lo;
                            *(fc_loose_float32_8 *)(decoded + d * 256 + (k + 16) / 2) = v43;
                            float8 v44 = v42.hi;
                            *(fc_loose_float32_8 *)(decoded + d * 256 + 1024 + (k + 16) / 2) = v44;
                        }
                    }
                    long tiled = end - (end - begin) * 2 % 3 * 2;
                    for (long r = begin; r < tiled; r += 3) {
                        long i45 = r + 1;
                        long i46 = r + 2;
                        long i47 = (r - begin) * 256;
                        long i48 = (i45 - begin) * 256;
                        long i49 = (i46 - begin) * 256;
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
                            float8 v69 = *(fc_loose_float32_8 *)(decoded + 256 + k);
                            float8 v70 = fc_fma_float8(v62, v69, v51);
                            v51 = v70;
                            float8 v71 = fc_fma_float8(v63, v69, v55);
                            v55 = v71;
                            float8 v72 = fc_fma_float8(v64, v69, v59);
                            v59 = v72;
                            float8 v73 = *(fc_loose_float32_8 *)(decoded + 512 + k);
                            float8 v74 = fc_fma_float8(v62, v73, v52);
                            v52 = v74;
                            float8 v75 = fc_fma_float8(v63, v73, v56);
                            v56 = v75;
                            float8 v76 = fc_fma_float8(v64, v73, v60);
                            v60 = v76;
                            float8 v77 = *(fc_loose_float32_8 *)(decoded + 768 + k);
                            float8 v78 = fc_fma_float8(v62, v77, v53);
                            v53 = v78;
                            float8 v79 = fc_fma_float8(v63, v77, v57);
                            v57 = v79;
                            float8 v80 = fc_fma_float8(v64, v77, v61);
                            v61 = v80;
                        }
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8) = v50;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 8) = v51;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 16) = v52;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 24) = v53;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 32) = v54;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 40) = v55;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 48) = v56;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 56) = v57;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 64) = v58;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 72) = v59;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 80) = v60;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 88) = v61;
                    }
                    for (long r = tiled; r < end; r += 2) {
                        long i81 = r + 1;
                        long i82 = (r - begin) * 256;
                        long i83 = (i81 - begin) * 256;
                        float8 v84 = (float8)(-0x0.0p+0f);
                        float8 v85 = (float8)(-0x0.0p+0f);
                        float8 v86 = (float8)(-0x0.0p+0f);
                        float8 v87 = (float8)(-0x0.0p+0f);
                        float8 v88 = (float8)(-0x0.0p+0f);
                        float8 v89 = (float8)(-0x0.0p+0f);
                        float8 v90 = (float8)(-0x0.0p+0f);
                        float8 v91 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v92 = *(fc_loose_float32_8 *)(left + i82 + k);
                            float8 v93 = *(fc_loose_float32_8 *)(left + i83 + k);
                            float8 v94 = *(fc_loose_float32_8 *)(decoded + k);
                            float8 v95 = fc_fma_float8(v92, v94, v84);
                            v84 = v95;
                            float8 v96 = fc_fma_float8(v93, v94, v88);
                            v88 = v96;
                            float8 v97 = *(fc_loose_float32_8 *)(decoded + 256 + k);
                            float8 v98 = fc_fma_float8(v92, v97, v85);
                            v85 = v98;
                            float8 v99 = fc_fma_float8(v93, v97, v89);
                            v89 = v99;
                            float8 v100 = *(fc_loose_float32_8 *)(decoded + 512 + k);
                            float8 v101 = fc_fma_float8(v92, v100, v86);
                            v86 = v101;
                            float8 v102 = fc_fma_float8(v93, v100, v90);
                            v90 = v102;
                            float8 v103 = *(fc_loose_float32_8 *)(decoded + 768 + k);
                            float8 v104 = fc_fma_float8(v92, v103, v87);
                            v87 = v104;
                            float8 v105 = fc_fma_float8(v93, v103, v91);
                            v91 = v105;
                        }
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8) = v84;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 8) = v85;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 16) = v86;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 24) = v87;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 32) = v88;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 40) = v89;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 48) = v90;
                        *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 56) = v91;
                    }
                    for (long r = begin; r < tiled; r += 3) {
                        long i106 = r + 1;
                        long i107 = r + 2;
                        long i108 = (r - begin) * 256;
                        long i109 = (i106 - begin) * 256;
                        long i110 = (i107 - begin) * 256;
                        float8 v111 = (float8)(-0x0.0p+0f);
                        float8 v112 = (float8)(-0x0.0p+0f);
                        float8 v113 = (float8)(-0x0.0p+0f);
                        float8 v114 = (float8)(-0x0.0p+0f);
                        float8 v115 = (float8)(-0x0.0p+0f);
                        float8 v116 = (float8)(-0x0.0p+0f);
                        float8 v117 = (float8)(-0x0.0p+0f);
                        float8 v118 = (float8)(-0x0.0p+0f);
                        float8 v119 = (float8)(-0x0.0p+0f);
                        float8 v120 = (float8)(-0x0.0p+0f);
                        float8 v121 = (float8)(-0x0.0p+0f);
                        float8 v122 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v123 = *(fc_loose_float32_8 *)(left + i108 + 32768 + k);
                            float8 v124 = *(fc_loose_float32_8 *)(left + i109 + 32768 + k);
                            float8 v125 = *(fc_loose_float32_8 *)(left + i110 + 32768 + k);
                            float8 v126 = *(fc_loose_float32_8 *)(decoded + 1024 + k);
                            float8 v127 = fc_fma_float8(v123, v126, v111);
                            v111 = v127;
                            float8 v128 = fc_fma_float8(v124, v126, v115);
                            v115 = v128;
                            float8 v129 = fc_fma_float8(v125, v126, v119);
                            v119 = v129;
                            float8 v130 = *(fc_loose_float32_8 *)(decoded + 1280 + k);
                            float8 v131 = fc_fma_float8(v123, v130, v112);
                            v112 = v131;
                            float8 v132 = fc_fma_float8(v124, v130, v116);
                            v116 = v132;
                            float8 v133 = fc_fma_float8(v125, v130, v120);
                            v120 = v133;
                            float8 v134 = *(fc_loose_float32_8 *)(decoded + 1536 + k);
                            float8 v135 = fc_fma_float8(v123, v134, v113);
                            v113 = v135;
                            float8 v136 = fc_fma_float8(v124, v134, v117);
                            v117 = v136;
                            float8 v137 = fc_fma_float8(v125, v134, v121);
                            v121 = v137;
                            float8 v138 = *(fc_loose_float32_8 *)(decoded + 1792 + k);
                            float8 v139 = fc_fma_float8(v123, v138, v114);
                            v114 = v139;
                            float8 v140 = fc_fma_float8(v124, v138, v118);
                            v118 = v140;
                            float8 v141 = fc_fma_float8(v125, v138, v122);
                            v122 = v141;
                        }
                        float8 v142 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8);
                        float8 v143 = (v142 + v111);
                        float8 v144 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 8);
                        float8 v145 = (v144 + v112);
                        float8 v146 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 16);
                        float8 v147 = (v146 + v113);
                        float8 v148 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 24);
                        float8 v149 = (v148 + v114);
                        float8 v150 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 32);
                        float8 v151 = (v150 + v115);
                        float8 v152 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 40);
                        float8 v153 = (v152 + v116);
                        float8 v154 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 48);
                        float8 v155 = (v154 + v117);
                        float8 v156 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 56);
                        float8 v157 = (v156 + v118);
                        float8 v158 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 64);
                        float8 v159 = (v158 + v119);
                        float8 v160 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 72);
                        float8 v161 = (v160 + v120);
                        float8 v162 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 80);
                        float8 v163 = (v162 + v121);
                        float8 v164 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 88);
                        float8 v165 = (v164 + v122);
                        float8 v166 = (float8)(v159.s0, v159.s1, v159.s2, v159.s3, v161.s0, v161.s1, v161.s2, v161.s3);
                        float8 v167 = (float8)(v159.s4, v159.s5, v159.s6, v159.s7, v161.s4, v161.s5, v161.s6, v161.s7);
                        float8 v168 = (v166 + v167);
                        float8 v169 = (float8)(v163.s0, v163.s1, v163.s2, v163.s3, v165.s0, v165.s1, v165.s2, v165.s3);
                        float8 v170 = (float8)(v163.s4, v163.s5, v163.s6, v163.s7, v165.s4, v165.s5, v165.s6, v165.s7);
                        float8 v171 = (v169 + v170);
                        float8 v172 = (float8)(v168.s0, v168.s1, v168.s4, v168.s5, v171.s0, v171.s1, v171.s4, v171.s5);
                        float8 v173 = (float8)(v168.s2, v168.s3, v168.s6, v168.s7, v171.s2, v171.s3, v171.s6, v171.s7);
                        float8 v174 = (v172 + v173);
                        float4 v175 = (float4)(v174.s0, v174.s2, v174.s4, v174.s6);
                        float4 v176 = (float4)(v174.s1, v174.s3, v174.s5, v174.s7);
                        float4 v177 = (v175 + v176);
                        float8 v178 = (float8)(v143.s0, v143.s1, v143.s2, v143.s3, v145.s0, v145.s1, v145.s2, v145.s3);
                        float8 v179 = (float8)(v143.s4, v143.s5, v143.s6, v143.s7, v145.s4, v145.s5, v145.s6, v145.s7);
                        float8 v180 = (v178 + v179);
                        float8 v181 = (float8)(v147.s0, v147.s1, v147.s2, v147.s3, v149.s0, v149.s1, v149.s2, v149.s3);
                        float8 v182 = (float8)(v147.s4, v147.s5, v147.s6, v147.s7, v149.s4, v149.s5, v149.s6, v149.s7);
                        float8 v183 = (v181 + v182);
                        float8 v184 = (float8)(v151.s0, v151.s1, v151.s2, v151.s3, v153.s0, v153.s1, v153.s2, v153.s3);
                        float8 v185 = (float8)(v151.s4, v151.s5, v151.s6, v151.s7, v153.s4, v153.s5, v153.s6, v153.s7);
                        float8 v186 = (v184 + v185);
                        float8 v187 = (float8)(v155.s0, v155.s1, v155.s2, v155.s3, v157.s0, v157.s1, v157.s2, v157.s3);
                        float8 v188 = (float8)(v155.s4, v155.s5, v155.s6, v155.s7, v157.s4, v157.s5, v157.s6, v157.s7);
                        float8 v189 = (v187 + v188);
                        float8 v190 = (float8)(v180.s0, v180.s1, v180.s4, v180.s5, v183.s0, v183.s1, v183.s4, v183.s5);
                        float8 v191 = (float8)(v180.s2, v180.s3, v180.s6, v180.s7, v183.s2, v183.s3, v183.s6, v183.s7);
                        float8 v192 = (v190 + v191);
                        float8 v193 = (float8)(v186.s0, v186.s1, v186.s4, v186.s5, v189.s0, v189.s1, v189.s4, v189.s5);
                        float8 v194 = (float8)(v186.s2, v186.s3, v186.s6, v186.s7, v189.s2, v189.s3, v189.s6, v189.s7);
                        float8 v195 = (v193 + v194);
                        float8 v196 = (float8)(v192.s0, v192.s2, v192.s4, v192.s6, v195.s0, v195.s2, v195.s4, v195.s6);
                        float8 v197 = (float8)(v192.s1, v192.s3, v192.s5, v192.s7, v195.s1, v195.s3, v195.s5, v195.s7);
                        float8 v198 = (v196 + v197);
                        float4 v199 = v198.lo;
                        float4 v200 = v198.hi;
                        *(fc_loose_float32_4 *)(sums + (r - begin) * 16 + c) = v199;
                        *(fc_loose_float32_4 *)(sums + (r + 1 - begin) * 16 + c) = v200;
                        *(fc_loose_float32_4 *)(sums + (r + 2 - begin) * 16 + c) = v177;
                    }
                    for (long r = tiled; r < end; r += 2) {
                        long i201 = r + 1;
                        long i202 = (r - begin) * 256;
                        long i203 = (i201 - begin) * 256;
                        float8 v204 = (float8)(-0x0.0p+0f);
                        float8 v205 = (float8)(-0x0.0p+0f);
                        float8 v206 = (float8)(-0x0.0p+0f);
                        float8 v207 = (float8)(-0x0.0p+0f);
                        float8 v208 = (float8)(-0x0.0p+0f);
                        float8 v209 = (float8)(-0x0.0p+0f);
                        float8 v210 = (float8)(-0x0.0p+0f);
                        float8 v211 = (float8)(-0x0.0p+0f);
                        #pragma unroll 1
                        for (long k = 0; k < 256; k += 8) {
                            float8 v212 = *(fc_loose_float32_8 *)(left + i202 + 32768 + k);
                            float8 v213 = *(fc_loose_float32_8 *)(left + i203 + 32768 + k);
                            float8 v214 = *(fc_loose_float32_8 *)(decoded + 1024 + k);
                            float8 v215 = fc_fma_float8(v212, v214, v204);
                            v204 = v215;
                            float8 v216 = fc_fma_float8(v213, v214, v208);
                            v208 = v216;
                            float8 v217 = *(fc_loose_float32_8 *)(decoded + 1280 + k);
                            float8 v218 = fc_fma_float8(v212, v217, v205);
                            v205 = v218;
                            float8 v219 = fc_fma_float8(v213, v217, v209);
                            v209 = v219;
                            float8 v220 = *(fc_loose_float32_8 *)(decoded + 1536 + k);
                            float8 v221 = fc_fma_float8(v212, v220, v206);
                            v206 = v221;
                            float8 v222 = fc_fma_float8(v213, v220, v210);
                            v210 = v222;
                            float8 v223 = *(fc_loose_float32_8 *)(decoded + 1792 + k);
                            float8 v224 = fc_fma_float8(v212, v223, v207);
                            v207 = v224;
                            float8 v225 = fc_fma_float8(v213, v223, v211);
                            v211 = v225;
                        }
                        float8 v226 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8);
                        float8 v227 = (v226 + v204);
                        float8 v228 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 8);
                        float8 v229 = (v228 + v205);
                        float8 v230 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 16);
                        float8 v231 = (v230 + v206);
                        float8 v232 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 24);
                        float8 v233 = (v232 + v207);
                        float8 v234 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 32);
                        float8 v235 = (v234 + v208);
                        float8 v236 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 40);
                        float8 v237 = (v236 + v209);
                        float8 v238 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 48);
                        float8 v239 = (v238 + v210);
                        float8 v240 = *(fc_loose_float32_8 *)(lower + (r - begin) * 4 * 8 + 56);
                        float8 v241 = (v240 + v211);
                        float8 v242 = (float8)(v227.s0, v227.s1, v227.s2, v227.s3, v229.s0, v229.s1, v229.s2, v229.s3);
                        float8 v243 = (float8)(v227.s4, v227.s5, v227.s6, v227.s7, v229.s4, v229.s5, v229.s6, v229.s7);
                        float8 v244 = (v242 + v243);
                        float8 v245 = (float8)(v231.s0, v231.s1, v231.s2, v231.s3, v233.s0, v233.s1, v233.s2, v233.s3);
                        float8 v246 = (float8)(v231.s4, v231.s5, v231.s6, v231.s7, v233.s4, v233.s5, v233.s6, v233.s7);
                        float8 v247 = (v245 + v246);
                        float8 v248 = (float8)(v235.s0, v235.s1, v235.s2, v235.s3, v237.s0, v237.s1, v237.s2, v237.s3);
                        float8 v249 = (float8)(v235.s4, v235.s5, v235.s6, v235.s7, v237.s4, v237.s5, v237.s6, v237.s7);
                        float8 v250 = (v248 + v249);
                        float8 v251 = (float8)(v239.s0, v239.s1, v239.s2, v239.s3, v241.s0, v241.s1, v241.s2, v241.s3);
                        float8 v252 = (float8)(v239.s4, v239.s5, v239.s6, v239.s7, v241.s4, v241.s5, v241.s6, v241.s7);
                        float8 v253 = (v251 + v252);
                        float8 v254 = (float8)(v244.s0, v244.s1, v244.s4, v244.s5, v247.s0, v247.s1, v247.s4, v247.s5);
                        float8 v255 = (float8)(v244.s2, v244.s3, v244.s6, v244.s7, v247.s2, v247.s3, v247.s6, v247.s7);
                        float8 v256 = (v254 + v255);
                        float8 v257 = (float8)(v250.s0, v250.s1, v250.s4, v250.s5, v253.s0, v253.s1, v253.s4, v253.s5);
                        float8 v258 = (float8)(v250.s2, v250.s3, v250.s6, v250.s7, v253.s2, v253.s3, v253.s6, v253.s7);
                        float8 v259 = (v257 + v258);
                        float8 v260 = (float8)(v256.s0, v256.s2, v256.s4, v256.s6, v259.s0, v259.s2, v259.s4, v259.s6);
                        float8 v261 = (float8)(v256.s1, v256.s3, v256.s5, v256.s7, v259.s1, v259.s3, v259.s5, v259.s7);
                        float8 v262 = (v260 + v261);
                        float4 v263 = v262.lo;
                        float4 v264 = v262.hi;
                        *(fc_loose_float32_4 *)(sums + (r - begin) * 16 + c) = v263;
                        *(fc_loose_float32_4 *)(sums + (r + 1 - begin) * 16 + c) = v264;
                    }
                }
            }
            if (j + 16 <= 19) {
                for (long r = begin; r < end; r++) {
                    float16 v265 = *(fc_loose_float32_16 *)(sums + (r - begin) * 16);
                    *(__global fc_loose_float32_16 *)(out0 + (r * 19 + j)) = (v265 == v265 ? v265 : (float16)(as_float(0x7fc00000U)));
                }
            } else {
                for (long r = begin; r < end; r++) {
                    float16 v266 = *(fc_loose_float32_16 *)(sums + (r - begin) * 16);
                    fc_store_first_3_float32_16((v266 == v266 ? v266 : (float16)(as_float(0x7fc00000U))), out0 + (r * 19 + j));
                }
            }
        }
    }
}
