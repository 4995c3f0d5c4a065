#pragma OPENCL FP_CONTRACT OFF

typedef float16 fc_loose_float32_16 __attribute__((aligned(4)));

typedef float4 fc_loose_float32_4 __attribute__((aligned(4)));

static inline float16 fc_load_first_4_float32_16(const __global float *w) {
    return (float16)(*(const __global fc_loose_float32_4 *)(w + 0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static inline float16 fc_fma_float16(float16 a, float16 b, float16 c) {
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
}

static inline float fc_fma_float(float a, float b, float c) {
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
}

static inline float fc_exp_float(float a) {
    float z = a > (float)(104.0f) ? (float)(104.0f) : a;
    z = z < (float)(-104.0f) ? (float)(-104.0f) : z;
    float k = fc_fma_float(z, (float)(1.44269504088896341f), (float)(12582912.0f));
    int n = as_int(k) - (int)(0x4b400000);
    k = k - (float)(12582912.0f);
    float r = fc_fma_float(k, (float)(-0.693359375f), z);
    r = fc_fma_float(k, (float)(2.12194440e-4f), r);
    float p = (float)(1.9875691500e-4f);
    p = fc_fma_float(p, r, (float)(1.3981999507e-3f));
    p = fc_fma_float(p, r, (float)(8.3334519073e-3f));
    p = fc_fma_float(p, r, (float)(4.1665795894e-2f));
    p = fc_fma_float(p, r, (float)(1.6666665459e-1f));
    p = fc_fma_float(p, r, (float)(5.0000001201e-1f));
    p = fc_fma_float(p, r * r, r);
    p = p + (float)(1.0f);
    int half_n = n >> 1;
    return p * as_float((half_n + 127) << 23) * as_float((n - half_n + 127) << 23);
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

static inline void fc_store_first_4_float32_16(float16 all, __global float *w) {
    *(__global fc_loose_float32_4 *)(w + 0) = all.s0123;
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
    float scaled[1152] __attribute__((aligned(64)));
    float16 turned[64];
    float16 packed[64];
    float16 totals[72];
    float16 sums[72];
    float highest[72] __attribute__((aligned(64)));
    float weights[256] __attribute__((aligned(64)));
    float shrink[4] __attribute__((aligned(64)));
    for (long b = gid; b < n; b += gsize) {
        long i0 = b * 1120;
        for (long r = 0; r < 72; r++) {
            long i1 = i0 + min(r, 69L) * 16;
            float16 v2 = (float16)(0x1.0000000000000p-2f);
            float16 v3 = *(const __global fc_loose_float32_16 *)(in0 + (i1));
            float16 v4 = (v3 * v2);
            *(fc_loose_float32_16 *)(scaled + r * 16) = v4;
            float v5 = (float)(-0x1.fffffe0000000p+127f);
            highest[r] = v5;
            float16 v6 = (float16)(0x0.0p+0f);
            for (long c = 0; c < 1; c++) {
                sums[r + c] = v6;
            }
            for (long c = 0; c < 1; c++) {
                totals[r + c] = v6;
            }
        }
        long i7 = b * 1120;
        long i8 = b * 1120;
        for (long t = 0; t < 70; t += 64) {
            long i9 = min(64L, 70 - t);
            for (long j = 0; j < 4; j++) {
                for (long d = 0; d < 16; d++) {
                    float16 v10 = (float16)(in0[i7 + min(t + j * 16, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 1, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 2, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 3, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 4, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 5, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 6, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 7, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 8, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 9, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 10, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 11, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 12, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 13, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 14, 69L) * 16 + d], in0[i7 + min(t + j * 16 + 15, 69L) * 16 + d]);
                    turned[j * 16 + d] = v10;
                }
            }
            for (long j = 0; j < i9; j++) {
                long i11 = i8 + (t + j) * 16;
                float16 v12 = fc_load_first_4_float32_16(in0 + (i11));
                packed[j] = v12;
            }
            for (long r = 0; r < 70; r += 4) {
                long i13 = min(r, 69L);
                long i14 = min(r + 1, 69L);
                long i15 = min(r + 2, 69L);
                long i16 = min(r + 3, 69L);
                long i17 = i13 + 1;
                long i18 = i14 + 1;
                long i19 = i15 + 1;
                long i20 = i16 + 1;
                if (t < i20 && t + 64 > 0) {
                    for (long j = 0; j < 4; j++) {
                        float16 v21 = (float16)(-0x0.0p+0f);
                        float16 v22 = (float16)(-0x0.0p+0f);
                        float16 v23 = (float16)(-0x0.0p+0f);
                        float16 v24 = (float16)(-0x0.0p+0f);
                        for (long d = 0; d < 16; d++) {
                            float16 v25 = turned[j * 16 + d];
                            float v26 = scaled[r * 16 + d];
                            float16 v27 = (float16)(v26);
                            float16 v28 = fc_fma_float16(v27, v25, v21);
                            v21 = v28;
                            float v29 = scaled[(r + 1) * 16 + d];
                            float16 v30 = (float16)(v29);
                            float16 v31 = fc_fma_float16(v30, v25, v22);
                            v22 = v31;
                            float v32 = scaled[(r + 2) * 16 + d];
                            float16 v33 = (float16)(v32);
                            float16 v34 = fc_fma_float16(v33, v25, v23);
                            v23 = v34;
                            float v35 = scaled[(r + 3) * 16 + d];
                            float16 v36 = (float16)(v35);
                            float16 v37 = fc_fma_float16(v36, v25, v24);
                            v24 = v37;
                        }
                        long i38 = t + j * 16;
                        float16 v39 = (float16)(-INFINITY);
                        int16 v40 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(i17 - i38)));
                        float16 v41 = (v40 ? v21 : v39);
                        *(fc_loose_float32_16 *)(weights + j * 16) = v41;
                        float16 v42 = (float16)(-INFINITY);
                        int16 v43 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(i18 - i38)));
                        float16 v44 = (v43 ? v22 : v42);
                        *(fc_loose_float32_16 *)(weights + 64 + j * 16) = v44;
                        float16 v45 = (float16)(-INFINITY);
                        int16 v46 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(i19 - i38)));
                        float16 v47 = (v46 ? v23 : v45);
                        *(fc_loose_float32_16 *)(weights + 128 + j * 16) = v47;
                        float16 v48 = (float16)(-INFINITY);
                        int16 v49 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(i20 - i38)));
                        float16 v50 = (v49 ? v24 : v48);
                        *(fc_loose_float32_16 *)(weights + 192 + j * 16) = v50;
                    }
                    for (long i = 0; i < 4; i++) {
                        float16 v51 = *(fc_loose_float32_16 *)(weights + i * 64);
                        float16 v52 = *(fc_loose_float32_16 *)(weights + i * 64 + 16);
                        float16 v53 = *(fc_loose_float32_16 *)(weights + i * 64 + 32);
                        float16 v54 = *(fc_loose_float32_16 *)(weights + i * 64 + 48);
                        float16 v55 = (v51 == v52 ? as_float16(as_int16(v51) & as_int16(v52)) : ((v51 > v52) | (v51 != v51) ? v51 : v52));
                        float16 v56 = (v55 == v53 ? as_float16(as_int16(v55) & as_int16(v53)) : ((v55 > v53) | (v55 != v55) ? v55 : v53));
                        float16 v57 = (v56 == v54 ? as_float16(as_int16(v56) & as_int16(v54)) : ((v56 > v54) | (v56 != v56) ? v56 : v54));
                        float v58 = highest[r + i];
                        float8 v59 = v57.lo;
                        float8 v60 = v57.hi;
                        float8 v61 = (v59 == v60 ? as_float8(as_int8(v59) & as_int8(v60)) : ((v59 > v60) | (v59 != v59) ? v59 : v60));
                        float4 v62 = v61.lo;
                        float4 v63 = v61.hi;
                        float4 v64 = (v62 == v63 ? as_float4(as_int4(v62) & as_int4(v63)) : ((v62 > v63) | (v62 != v62) ? v62 : v63));
                        float2 v65 = v64.lo;
                        float2 v66 = v64.hi;
                        float2 v67 = (v65 == v66 ? as_float2(as_int2(v65) & as_int2(v66)) : ((v65 > v66) | (v65 != v65) ? v65 : v66));
                        float v68 = v67.lo;
                        float v69 = v67.hi;
                        float v70 = (v68 == v69 ? as_float(as_int(v68) & as_int(v69)) : ((v68 > v69) | (v68 != v68) ? v68 : v69));
                        float v71 = (v70 == v58 ? as_float(as_int(v70) & as_int(v58)) : ((v70 > v58) | (v70 != v70) ? v70 : v58));
                        float v72 = (v58 - v71);
                        float v73 = fc_exp_float(v72);
                        highest[r + i] = v71;
                        shrink[i] = v73;
                        float16 v74 = (float16)(v71);
                        float16 v75 = (float16)(v73);
                        float16 v76 = (v51 - v74);
                        float16 v77 = fc_exp_float16(v76);
                        float16 v78 = (v52 - v74);
                        float16 v79 = fc_exp_float16(v78);
                        float16 v80 = (v53 - v74);
                        float16 v81 = fc_exp_float16(v80);
                        float16 v82 = (v54 - v74);
                        float16 v83 = fc_exp_float16(v82);
                        float16 v84 = sums[r + i];
                        float16 v85 = (v84 * v75);
                        float16 v86 = (v85 + v77);
                        float16 v87 = (v86 + v79);
                        float16 v88 = (v87 + v81);
                        float16 v89 = (v88 + v83);
                        sums[r + i] = v89;
                        *(fc_loose_float32_16 *)(weights + i * 64) = v77;
                        *(fc_loose_float32_16 *)(weights + i * 64 + 16) = v79;
                        *(fc_loose_float32_16 *)(weights + i * 64 + 32) = v81;
                        *(fc_loose_float32_16 *)(weights + i * 64 + 48) = v83;
                    }
                    for (long c = 0; c < 1; c++) {
                        float16 v90 = totals[r + c];
                        float v91 = shrink[0];
                        float16 v92 = (float16)(v91);
                        float16 v93 = (v90 * v92);
                        float16 v94 = totals[r + 1 + c];
                        float v95 = shrink[1];
                        float16 v96 = (float16)(v95);
                        float16 v97 = (v94 * v96);
                        float16 v98 = totals[r + 2 + c];
                        float v99 = shrink[2];
                        float16 v100 = (float16)(v99);
                        float16 v101 = (v98 * v100);
                        float16 v102 = totals[r + 3 + c];
                        float v103 = shrink[3];
                        float16 v104 = (float16)(v103);
                        float16 v105 = (v102 * v104);
                        if (t >= 0 && t + 64 <= i17) {
                            for (long j = 0; j < 64; j++) {
                                float16 v119 = packed[c * 64 + j];
                                float v120 = weights[j];
                                float16 v121 = (float16)(v120);
                                float16 v122 = fc_fma_float16(v121, v119, v93);
                                v93 = v122;
                                float v123 = weights[64 + j];
                                float16 v124 = (float16)(v123);
                                float16 v125 = fc_fma_float16(v124, v119, v97);
                                v97 = v125;
                                float v126 = weights[128 + j];
                                float16 v127 = (float16)(v126);
                                float16 v128 = fc_fma_float16(v127, v119, v101);
                                v101 = v128;
                                float v129 = weights[192 + j];
                                float16 v130 = (float16)(v129);
                                float16 v131 = fc_fma_float16(v130, v119, v105);
                                v105 = v131;
                            }
                        } else {
                            for (long j = 0; j < i9; j++) {
                                float16 v106 = packed[c * 64 + j];
                                if (t + j >= 0 && t + j < i17) {
                                    float v107 = weights[j];
                                    float16 v108 = (float16)(v107);
                                    float16 v109 = fc_fma_float16(v108, v106, v93);
                                    v93 = v109;
                                }
                                if (t + j >= 0 && t + j < i18) {
                                    float v110 = weights[64 + j];
                                    float16 v111 = (float16)(v110);
                                    float16 v112 = fc_fma_float16(v111, v106, v97);
                                    v97 = v112;
                                }
                                if (t + j >= 0 && t + j < i19) {
                                    float v113 = weights[128 + j];
                                    float16 v114 = (float16)(v113);
                                    float16 v115 = fc_fma_float16(v114, v106, v101);
                                    v101 = v115;
                                }
                                if (t + j >= 0 && t + j < i20) {
                                    float v116 = weights[192 + j];
                                    float16 v117 = (float16)(v116);
                                    float16 v118 = fc_fma_float16(v117, v106, v105);
                                    v105 = v118;
                                }
                            }
                        }
                        totals[r + c] = v93;
                        totals[r + 1 + c] = v97;
                        totals[r + 2 + c] = v101;
                        totals[r + 3 + c] = v105;
                    }
                }
            }
        }
        for (long r = 0; r < 70; r++) {
            float16 v132 = sums[r];
            float8 v133 = v132.lo;
            float8 v134 = v132.hi;
            float8 v135 = (v133 + v134);
            float4 v136 = v135.lo;
            float4 v137 = v135.hi;
            float4 v138 = (v136 + v137);
            float2 v139 = v138.lo;
            float2 v140 = v138.hi;
            float2 v141 = (v139 + v140);
            float v142 = v141.lo;
            float v143 = v141.hi;
            float v144 = (v142 + v143);
            for (long c = 0; c < 0; c++) {
                float16 v145 = totals[r + c];
                float16 v146 = (float16)(0x0.0p+0f);
                float16 v147 = (float16)(v144);
                int16 v148 = (v147 == v146);
                float16 v149 = (v145 / v147);
                float16 v150 = (v148 ? v146 : v149);
                *(__global fc_loose_float32_16 *)(out0 + (b * 280 + r * 4 + c * 16)) = (v150 == v150 ? v150 : (float16)(as_float(0x7fc00000U)));
            }
            float16 v151 = totals[r];
            float16 v152 = (float16)(0x0.0p+0f);
            float16 v153 = (float16)(v144);
            int16 v154 = (v153 == v152);
            float16 v155 = (v151 / v153);
            float16 v156 = (v154 ? v152 : v155);
            fc_store_first_4_float32_16((v156 == v156 ? v156 : (float16)(as_float(0x7fc00000U))), out0 + (b * 280 + r * 4));
        }
    }
}
