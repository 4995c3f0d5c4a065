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
    float scaled[1152];
    float16 turned[64];
    float16 packed[64];
    float16 totals[72];
    float16 sums[72];
    float highest[72];
    float weights[256];
    float shrink[4];
    for (long b = gid; b < n; b += gsize) {
        long i0 = b / 1;
        long i1 = b % 1 / 1;
        long i2 = b % 1 * 72;
        long i3 = min(i2 + 72, (long)70) - 1;
        long i4 = i0 * 1120;
        for (long r = 0; r < 72; r++) {
            long i5 = i4 + min(i2 + r, i3) * 16;
            float16 v6 = (float16)(0x1.0000000000000p-2f);
            float16 v7 = *(const __global fc_loose_float32_16 *)(in0 + (i5 + 0));
            float16 v8 = (v7 * v6);
            *(fc_loose_float32_16 *)(scaled + r * 16 + 0) = v8;
            float v9 = (float)(-0x1.fffffe0000000p+127f);
            highest[r] = v9;
            float16 v10 = (float16)(0x0.0p+0f);
            for (long c = 0; c < 1; c++) {
                sums[r * 1 + c] = v10;
            }
            for (long c = 0; c < 1; c++) {
                totals[r * 1 + c] = v10;
            }
        }
        long i11 = i3 + 1;
        long i12 = i0 * 1120;
        long i13 = i0 * 1120;
        for (long t = 0; t < i11; t += 64) {
            long i14 = min((long)64, 70 - t);
            for (long j = 0; j < 4; j++) {
                for (long d = 0; d < 16; d++) {
                    float16 v15 = (float16)(in0[i12 + (min(t + j * 16 + 0, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 1, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 2, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 3, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 4, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 5, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 6, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 7, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 8, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 9, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 10, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 11, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 12, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 13, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 14, 69L)) * 16 + d], in0[i12 + (min(t + j * 16 + 15, 69L)) * 16 + d]);
                    turned[j * 16 + d] = v15;
                }
            }
            for (long j = 0; j < i14; j++) {
                long i16 = i13 + (t + j) * 16;
                float16 v17 = fc_load_first_4_float32_16(in0 + (i16 + 0));
                packed[0 + j] = v17;
            }
            for (long r = 0; r < i3 - i2 + 1; r += 4) {
                long i18 = min(i2 + r + 0, i3);
                long i19 = min(i2 + r + 1, i3);
                long i20 = min(i2 + r + 2, i3);
                long i21 = min(i2 + r + 3, i3);
                long i22 = i18 + 1;
                long i23 = i19 + 1;
                long i24 = i20 + 1;
                long i25 = i21 + 1;
                if (t < i25 && t + 64 > 0) {
                    for (long j = 0; j < 4; j++) {
                        float16 v26 = (float16)(-0x0.0p+0f);
                        float16 v27 = (float16)(-0x0.0p+0f);
                        float16 v28 = (float16)(-0x0.0p+0f);
                        float16 v29 = (float16)(-0x0.0p+0f);
                        for (long d = 0; d < 16; d++) {
                            float16 v30 = turned[j * 16 + d];
                            float v31 = scaled[(r + 0) * 16 + d];
                            float16 v32 = (float16)(v31);
                            float16 v33 = fc_fma_float16(v32, v30, v26);
                            v26 = v33;
                            float v34 = scaled[(r + 1) * 16 + d];
                            float16 v35 = (float16)(v34);
                            float16 v36 = fc_fma_float16(v35, v30, v27);
                            v27 = v36;
                            float v37 = scaled[(r + 2) * 16 + d];
                            float16 v38 = (float16)(v37);
                            float16 v39 = fc_fma_float16(v38, v30, v28);
                            v28 = v39;
                            float v40 = scaled[(r + 3) * 16 + d];
                            float16 v41 = (float16)(v40);
                            float16 v42 = fc_fma_float16(v41, v30, v29);
                            v29 = v42;
                        }
                        long i43 = t + j * 16;
                        float16 v44 = (float16)(-INFINITY);
                        int16 v45 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(i22 - i43)));
                        float16 v46 = (v45 ? v26 : v44);
                        *(fc_loose_float32_16 *)(weights + 0 + j * 16) = v46;
                        float16 v47 = (float16)(-INFINITY);
                        int16 v48 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(i23 - i43)));
                        float16 v49 = (v48 ? v27 : v47);
                        *(fc_loose_float32_16 *)(weights + 64 + j * 16) = v49;
                        float16 v50 = (float16)(-INFINITY);
                        int16 v51 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(i24 - i43)));
                        float16 v52 = (v51 ? v28 : v50);
                        *(fc_loose_float32_16 *)(weights + 128 + j * 16) = v52;
                        float16 v53 = (float16)(-INFINITY);
                        int16 v54 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(i25 - i43)));
                        float16 v55 = (v54 ? v29 : v53);
                        *(fc_loose_float32_16 *)(weights + 192 + j * 16) = v55;
                    }
                    for (long i = 0; i < 4; i++) {
                        float16 v56 = *(fc_loose_float32_16 *)(weights + i * 64 + 0);
                        float16 v57 = *(fc_loose_float32_16 *)(weights + i * 64 + 16);
                        float16 v58 = *(fc_loose_float32_16 *)(weights + i * 64 + 32);
                        float16 v59 = *(fc_loose_float32_16 *)(weights + i * 64 + 48);
                        float16 v60 = (v56 == v57 ? as_float16(as_int16(v56) & as_int16(v57)) : ((v56 > v57) | (v56 != v56) ? v56 : v57));
                        float16 v61 = (v60 == v58 ? as_float16(as_int16(v60) & as_int16(v58)) : ((v60 > v58) | (v60 != v60) ? v60 : v58));
                        float16 v62 = (v61 == v59 ? as_float16(as_int16(v61) & as_int16(v59)) : ((v61 > v59) | (v61 != v61) ? v61 : v59));
                        float v63 = highest[r + i];
                        float8 v64 = v62.lo;
                        float8 v65 = v62.hi;
                        float8 v66 = (v64 == v65 ? as_float8(as_int8(v64) & as_int8(v65)) : ((v64 > v65) | (v64 != v64) ? v64 : v65));
                        float4 v67 = v66.lo;
                        float4 v68 = v66.hi;
                        float4 v69 = (v67 == v68 ? as_float4(as_int4(v67) & as_int4(v68)) : ((v67 > v68) | (v67 != v67) ? v67 : v68));
                        float2 v70 = v69.lo;
                        float2 v71 = v69.hi;
                        float2 v72 = (v70 == v71 ? as_float2(as_int2(v70) & as_int2(v71)) : ((v70 > v71) | (v70 != v70) ? v70 : v71));
                        float v73 = v72.lo;
                        float v74 = v72.hi;
                        float v75 = (v73 == v74 ? as_float(as_int(v73) & as_int(v74)) : ((v73 > v74) | (v73 != v73) ? v73 : v74));
                        float v76 = (v75 == v63 ? as_float(as_int(v75) & as_int(v63)) : ((v75 > v63) | (v75 != v75) ? v75 : v63));
                        float v77 = (v63 - v76);
                        float v78 = fc_exp_float(v77);
                        highest[r + i] = v76;
                        shrink[i] = v78;
                        float16 v79 = (float16)(v76);
                        float16 v80 = (float16)(v78);
                        float16 v81 = (v56 - v79);
                        float16 v82 = fc_exp_float16(v81);
                        float16 v83 = (v57 - v79);
                        float16 v84 = fc_exp_float16(v83);
                        float16 v85 = (v58 - v79);
                        float16 v86 = fc_exp_float16(v85);
                        float16 v87 = (v59 - v79);
                        float16 v88 = fc_exp_float16(v87);
                        float16 v89 = sums[(r + i) * 1 + 0];
                        float16 v90 = (v89 * v80);
                        float16 v91 = (v90 + v82);
                        float16 v92 = (v91 + v84);
                        float16 v93 = (v92 + v86);
                        float16 v94 = (v93 + v88);
                        sums[(r + i) * 1 + 0] = v94;
                        *(fc_loose_float32_16 *)(weights + i * 64 + 0) = v82;
                        *(fc_loose_float32_16 *)(weights + i * 64 + 16) = v84;
                        *(fc_loose_float32_16 *)(weights + i * 64 + 32) = v86;
                        *(fc_loose_float32_16 *)(weights + i * 64 + 48) = v88;
                    }
                    for (long c = 0; c < 1; c++) {
                        float16 v95 = totals[(r + 0) * 1 + c];
                        float v96 = shrink[0];
                        float16 v97 = (float16)(v96);
                        float16 v98 = (v95 * v97);
                        float16 v99 = totals[(r + 1) * 1 + c];
                        float v100 = shrink[1];
                        float16 v101 = (float16)(v100);
                        float16 v102 = (v99 * v101);
                        float16 v103 = totals[(r + 2) * 1 + c];
                        float v104 = shrink[2];
                        float16 v105 = (float16)(v104);
                        float16 v106 = (v103 * v105);
                        float16 v107 = totals[(r + 3) * 1 + c];
                        float v108 = shrink[3];
                        float16 v109 = (float16)(v108);
                        float16 v110 = (v107 * v109);
                        if (t >= 0 && t + 64 <= i22) {
                            for (long j = 0; j < 64; j++) {
                                float16 v124 = packed[c * 64 + j];
                                float v125 = weights[0 + j];
                                float16 v126 = (float16)(v125);
                                float16 v127 = fc_fma_float16(v126, v124, v98);
                                v98 = v127;
                                float v128 = weights[64 + j];
                                float16 v129 = (float16)(v128);
                                float16 v130 = fc_fma_float16(v129, v124, v102);
                                v102 = v130;
                                float v131 = weights[128 + j];
                                float16 v132 = (float16)(v131);
                                float16 v133 = fc_fma_float16(v132, v124, v106);
                                v106 = v133;
                                float v134 = weights[192 + j];
                                float16 v135 = (float16)(v134);
                                float16 v136 = fc_fma_float16(v135, v124, v110);
                                v110 = v136;
                            }
                        } else {
                            for (long j = 0; j < i14; j++) {
                                float16 v111 = packed[c * 64 + j];
                                if (t + j >= 0 && t + j < i22) {
                                    float v112 = weights[0 + j];
                                    float16 v113 = (float16)(v112);
                                    float16 v114 = fc_fma_float16(v113, v111, v98);
                                    v98 = v114;
                                }
                                if (t + j >= 0 && t + j < i23) {
                                    float v115 = weights[64 + j];
                                    float16 v116 = (float16)(v115);
                                    float16 v117 = fc_fma_float16(v116, v111, v102);
                                    v102 = v117;
                                }
                                if (t + j >= 0 && t + j < i24) {
                                    float v118 = weights[128 + j];
                                    float16 v119 = (float16)(v118);
                                    float16 v120 = fc_fma_float16(v119, v111, v106);
                                    v106 = v120;
                                }
                                if (t + j >= 0 && t + j < i25) {
                                    float v121 = weights[192 + j];
                                    float16 v122 = (float16)(v121);
                                    float16 v123 = fc_fma_float16(v122, v111, v110);
                                    v110 = v123;
                                }
                            }
                        }
                        totals[(r + 0) * 1 + c] = v98;
                        totals[(r + 1) * 1 + c] = v102;
                        totals[(r + 2) * 1 + c] = v106;
                        totals[(r + 3) * 1 + c] = v110;
                    }
                }
            }
        }
        for (long r = 0; r < i3 - i2 + 1; r++) {
            float16 v137 = sums[r * 1 + 0];
            float8 v138 = v137.lo;
            float8 v139 = v137.hi;
            float8 v140 = (v138 + v139);
            float4 v141 = v140.lo;
            float4 v142 = v140.hi;
            float4 v143 = (v141 + v142);
            float2 v144 = v143.lo;
            float2 v145 = v143.hi;
            float2 v146 = (v144 + v145);
            float v147 = v146.lo;
            float v148 = v146.hi;
            float v149 = (v147 + v148);
            long i150 = i2 + r;
            for (long c = 0; c < 0; c++) {
                float16 v151 = totals[r * 1 + c];
                float16 v152 = (float16)(0x0.0p+0f);
                float16 v153 = (float16)(v149);
                int16 v154 = (v153 == v152);
                float16 v155 = (v151 / v153);
                float16 v156 = (v154 ? v152 : v155);
                *(__global fc_loose_float32_16 *)(out0 + (i0 * 280 + i150 * 4 + (c * 16))) = (v156 == v156 ? v156 : (float16)(as_float(0x7fc00000U)));
            }
            float16 v157 = totals[r * 1 + 0];
            float16 v158 = (float16)(0x0.0p+0f);
            float16 v159 = (float16)(v149);
            int16 v160 = (v159 == v158);
            float16 v161 = (v157 / v159);
            float16 v162 = (v160 ? v158 : v161);
            fc_store_first_4_float32_16((v162 == v162 ? v162 : (float16)(as_float(0x7fc00000U))), out0 + (i0 * 280 + i150 * 4));
        }
    }
}
