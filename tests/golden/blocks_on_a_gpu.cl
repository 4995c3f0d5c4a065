#pragma OPENCL FP_CONTRACT OFF

static inline float fc_float_of_half(int bits) {
    ushort half_bits = bits;
    return vload_half(0, (const half *)&half_bits);
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

static inline float fc_q8_0_of_block(const __global uchar *block, int place) {
#pragma OPENCL FP_CONTRACT OFF
    return (fc_float_of_half(((int)block[0] | ((int)block[(0 + 1)] << 8))) * (float)((((int)block[(2 + place)] ^ 128) - 128)));
}

static inline float fc_q8_0(const __global uchar *p, long n) {
    return fc_q8_0_of_block(p + (ulong)n / 32 * 34, (int)((ulong)n % 32));
}

static inline void fc_scatter_float32_4(float4 value, __global float *p, long stride, long count) {
    float all[4];
    vstore4(value, 0, all);
    for (int lane = 0; lane < 4; lane++) if (lane < count) p[lane * stride] = all[lane];
}

__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void k0(
    __global const uchar *restrict in0,
    __global const uchar *restrict in1,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local float l10[4224] __attribute__((aligned(64)));
    __local float l91[1152] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long t = gid; t < ((n + 127) / 128); t += gsize) {
        long i0 = (n + 127) / 128;
        long i1 = t / 8;
        long i2 = t % 8;
        long i3 = min(8L, i0 - i1 * 8);
        long i4 = (i1 * 8 + i2 % i3) * 128;
        long i5 = i2 / i3 * 32;
        int i6 = (int)(min(128L, n - i4) - 1);
        int i7 = (int)(min(32L, 19 - i5) - 1);
        long i8 = i5 * 512;
        long i9 = i4 * 512;
        int i11 = (int)(lid % 16);
        int i12 = (int)(lid / 16);
        int i13 = (int)(i11 * 132 + i12);
        int i14 = (int)(min(i12, i6) * 512 + i11);
        float v15 = (float)(-0x0.0p+0f);
        int i16 = (int)(lid % 16);
        int i17 = (int)(lid / 16 + 8);
        int i18 = (int)(i16 * 132 + i17);
        int i19 = (int)(min(i17, i6) * 512 + i16);
        float v20 = (float)(-0x0.0p+0f);
        int i21 = (int)(lid % 16);
        int i22 = (int)(lid / 16 + 16);
        int i23 = (int)(i21 * 132 + i22);
        int i24 = (int)(min(i22, i6) * 512 + i21);
        float v25 = (float)(-0x0.0p+0f);
        int i26 = (int)(lid % 16);
        int i27 = (int)(lid / 16 + 24);
        int i28 = (int)(i26 * 132 + i27);
        int i29 = (int)(min(i27, i6) * 512 + i26);
        float v30 = (float)(-0x0.0p+0f);
        int i31 = (int)(lid % 16);
        int i32 = (int)(lid / 16 + 32);
        int i33 = (int)(i31 * 132 + i32);
        int i34 = (int)(min(i32, i6) * 512 + i31);
        float v35 = (float)(-0x0.0p+0f);
        int i36 = (int)(lid % 16);
        int i37 = (int)(lid / 16 + 40);
        int i38 = (int)(i36 * 132 + i37);
        int i39 = (int)(min(i37, i6) * 512 + i36);
        float v40 = (float)(-0x0.0p+0f);
        int i41 = (int)(lid % 16);
        int i42 = (int)(lid / 16 + 48);
        int i43 = (int)(i41 * 132 + i42);
        int i44 = (int)(min(i42, i6) * 512 + i41);
        float v45 = (float)(-0x0.0p+0f);
        int i46 = (int)(lid % 16);
        int i47 = (int)(lid / 16 + 56);
        int i48 = (int)(i46 * 132 + i47);
        int i49 = (int)(min(i47, i6) * 512 + i46);
        float v50 = (float)(-0x0.0p+0f);
        int i51 = (int)(lid % 16);
        int i52 = (int)(lid / 16 + 64);
        int i53 = (int)(i51 * 132 + i52);
        int i54 = (int)(min(i52, i6) * 512 + i51);
        float v55 = (float)(-0x0.0p+0f);
        int i56 = (int)(lid % 16);
        int i57 = (int)(lid / 16 + 72);
        int i58 = (int)(i56 * 132 + i57);
        int i59 = (int)(min(i57, i6) * 512 + i56);
        float v60 = (float)(-0x0.0p+0f);
        int i61 = (int)(lid % 16);
        int i62 = (int)(lid / 16 + 80);
        int i63 = (int)(i61 * 132 + i62);
        int i64 = (int)(min(i62, i6) * 512 + i61);
        float v65 = (float)(-0x0.0p+0f);
        int i66 = (int)(lid % 16);
        int i67 = (int)(lid / 16 + 88);
        int i68 = (int)(i66 * 132 + i67);
        int i69 = (int)(min(i67, i6) * 512 + i66);
        float v70 = (float)(-0x0.0p+0f);
        int i71 = (int)(lid % 16);
        int i72 = (int)(lid / 16 + 96);
        int i73 = (int)(i71 * 132 + i72);
        int i74 = (int)(min(i72, i6) * 512 + i71);
        float v75 = (float)(-0x0.0p+0f);
        int i76 = (int)(lid % 16);
        int i77 = (int)(lid / 16 + 104);
        int i78 = (int)(i76 * 132 + i77);
        int i79 = (int)(min(i77, i6) * 512 + i76);
        float v80 = (float)(-0x0.0p+0f);
        int i81 = (int)(lid % 16);
        int i82 = (int)(lid / 16 + 112);
        int i83 = (int)(i81 * 132 + i82);
        int i84 = (int)(min(i82, i6) * 512 + i81);
        float v85 = (float)(-0x0.0p+0f);
        int i86 = (int)(lid % 16);
        int i87 = (int)(lid / 16 + 120);
        int i88 = (int)(i86 * 132 + i87);
        int i89 = (int)(min(i87, i6) * 512 + i86);
        float v90 = (float)(-0x0.0p+0f);
        int i92 = (int)(lid % 16);
        int i93 = (int)(lid / 16);
        int i94 = (int)(i92 * 36 + i93);
        int i95 = (int)(min(i93, i7) * 512 + i92);
        float v96 = (float)(-0x0.0p+0f);
        int i97 = (int)(lid % 16);
        int i98 = (int)(lid / 16 + 8);
        int i99 = (int)(i97 * 36 + i98);
        int i100 = (int)(min(i98, i7) * 512 + i97);
        float v101 = (float)(-0x0.0p+0f);
        int i102 = (int)(lid % 16);
        int i103 = (int)(lid / 16 + 16);
        int i104 = (int)(i102 * 36 + i103);
        int i105 = (int)(min(i103, i7) * 512 + i102);
        float v106 = (float)(-0x0.0p+0f);
        int i107 = (int)(lid % 16);
        int i108 = (int)(lid / 16 + 24);
        int i109 = (int)(i107 * 36 + i108);
        int i110 = (int)(min(i108, i7) * 512 + i107);
        float v111 = (float)(-0x0.0p+0f);
        float4 v112 = (float4)(-0x0.0p+0f);
        float4 v113 = (float4)(-0x0.0p+0f);
        float4 v114 = (float4)(-0x0.0p+0f);
        float4 v115 = (float4)(-0x0.0p+0f);
        float4 v116 = (float4)(-0x0.0p+0f);
        float4 v117 = (float4)(-0x0.0p+0f);
        float4 v118 = (float4)(-0x0.0p+0f);
        float4 v119 = (float4)(-0x0.0p+0f);
        float v120 = fc_q4_k(in0, i9 + i14);
        v15 = v120;
        float v121 = fc_q4_k(in0, i9 + i19);
        v20 = v121;
        float v122 = fc_q4_k(in0, i9 + i24);
        v25 = v122;
        float v123 = fc_q4_k(in0, i9 + i29);
        v30 = v123;
        float v124 = fc_q4_k(in0, i9 + i34);
        v35 = v124;
        float v125 = fc_q4_k(in0, i9 + i39);
        v40 = v125;
        float v126 = fc_q4_k(in0, i9 + i44);
        v45 = v126;
        float v127 = fc_q4_k(in0, i9 + i49);
        v50 = v127;
        float v128 = fc_q4_k(in0, i9 + i54);
        v55 = v128;
        float v129 = fc_q4_k(in0, i9 + i59);
        v60 = v129;
        float v130 = fc_q4_k(in0, i9 + i64);
        v65 = v130;
        float v131 = fc_q4_k(in0, i9 + i69);
        v70 = v131;
        float v132 = fc_q4_k(in0, i9 + i74);
        v75 = v132;
        float v133 = fc_q4_k(in0, i9 + i79);
        v80 = v133;
        float v134 = fc_q4_k(in0, i9 + i84);
        v85 = v134;
        float v135 = fc_q4_k(in0, i9 + i89);
        v90 = v135;
        l10[i13] = v15;
        l10[i18] = v20;
        l10[i23] = v25;
        l10[i28] = v30;
        l10[i33] = v35;
        l10[i38] = v40;
        l10[i43] = v45;
        l10[i48] = v50;
        l10[i53] = v55;
        l10[i58] = v60;
        l10[i63] = v65;
        l10[i68] = v70;
        l10[i73] = v75;
        l10[i78] = v80;
        l10[i83] = v85;
        l10[i88] = v90;
        float v136 = fc_q8_0(in1, i8 + i95);
        v96 = v136;
        float v137 = fc_q8_0(in1, i8 + i100);
        v101 = v137;
        float v138 = fc_q8_0(in1, i8 + i105);
        v106 = v138;
        float v139 = fc_q8_0(in1, i8 + i110);
        v111 = v139;
        l91[i94] = v96;
        l91[i99] = v101;
        l91[i104] = v106;
        l91[i109] = v111;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long s = 0; s < 32; s++) {
            long i140 = (s + 1) * 16;
            if (s + 1 < 32) {
                long i141 = i9 + i140;
                float v142 = fc_q4_k(in0, i141 + i14);
                v15 = v142;
                float v143 = fc_q4_k(in0, i141 + i19);
                v20 = v143;
                float v144 = fc_q4_k(in0, i141 + i24);
                v25 = v144;
                float v145 = fc_q4_k(in0, i141 + i29);
                v30 = v145;
                float v146 = fc_q4_k(in0, i141 + i34);
                v35 = v146;
                float v147 = fc_q4_k(in0, i141 + i39);
                v40 = v147;
                float v148 = fc_q4_k(in0, i141 + i44);
                v45 = v148;
                float v149 = fc_q4_k(in0, i141 + i49);
                v50 = v149;
                float v150 = fc_q4_k(in0, i141 + i54);
                v55 = v150;
                float v151 = fc_q4_k(in0, i141 + i59);
                v60 = v151;
                float v152 = fc_q4_k(in0, i141 + i64);
                v65 = v152;
                float v153 = fc_q4_k(in0, i141 + i69);
                v70 = v153;
                float v154 = fc_q4_k(in0, i141 + i74);
                v75 = v154;
                float v155 = fc_q4_k(in0, i141 + i79);
                v80 = v155;
                float v156 = fc_q4_k(in0, i141 + i84);
                v85 = v156;
                float v157 = fc_q4_k(in0, i141 + i89);
                v90 = v157;
                long i158 = i8 + i140;
                float v159 = fc_q8_0(in1, i158 + i95);
                v96 = v159;
                float v160 = fc_q8_0(in1, i158 + i100);
                v101 = v160;
                float v161 = fc_q8_0(in1, i158 + i105);
                v106 = v161;
                float v162 = fc_q8_0(in1, i158 + i110);
                v111 = v162;
            }
            long i163 = s % 2 * 2112;
            long i164 = s % 2 * 576;
            long i165 = lid / 8;
            long i166 = lid % 8;
            #pragma unroll
            for (long k = 0; k < 16; k++) {
                float4 v167 = *(__local float4 *)(l10 + i163 + k * 132 + i165 * 4);
                float4 v168 = *(__local float4 *)(l10 + i163 + k * 132 + (i165 * 4 + 64));
                float4 v169 = *(__local float4 *)(l91 + i164 + k * 36 + i166 * 4);
                float4 v170 = (float4)(v167.s0);
                float4 v171 = fma(v170, v169, v112);
                v112 = v171;
                float4 v172 = (float4)(v167.s1);
                float4 v173 = fma(v172, v169, v113);
                v113 = v173;
                float4 v174 = (float4)(v167.s2);
                float4 v175 = fma(v174, v169, v114);
                v114 = v175;
                float4 v176 = (float4)(v167.s3);
                float4 v177 = fma(v176, v169, v115);
                v115 = v177;
                float4 v178 = (float4)(v168.s0);
                float4 v179 = fma(v178, v169, v116);
                v116 = v179;
                float4 v180 = (float4)(v168.s1);
                float4 v181 = fma(v180, v169, v117);
                v117 = v181;
                float4 v182 = (float4)(v168.s2);
                float4 v183 = fma(v182, v169, v118);
                v118 = v183;
                float4 v184 = (float4)(v168.s3);
                float4 v185 = fma(v184, v169, v119);
                v119 = v185;
            }
            if (s + 1 < 32) {
                l10[(s + 1) % 2 * 2112 + i13] = v15;
                l10[(s + 1) % 2 * 2112 + i18] = v20;
                l10[(s + 1) % 2 * 2112 + i23] = v25;
                l10[(s + 1) % 2 * 2112 + i28] = v30;
                l10[(s + 1) % 2 * 2112 + i33] = v35;
                l10[(s + 1) % 2 * 2112 + i38] = v40;
                l10[(s + 1) % 2 * 2112 + i43] = v45;
                l10[(s + 1) % 2 * 2112 + i48] = v50;
                l10[(s + 1) % 2 * 2112 + i53] = v55;
                l10[(s + 1) % 2 * 2112 + i58] = v60;
                l10[(s + 1) % 2 * 2112 + i63] = v65;
                l10[(s + 1) % 2 * 2112 + i68] = v70;
                l10[(s + 1) % 2 * 2112 + i73] = v75;
                l10[(s + 1) % 2 * 2112 + i78] = v80;
                l10[(s + 1) % 2 * 2112 + i83] = v85;
                l10[(s + 1) % 2 * 2112 + i88] = v90;
                l91[(s + 1) % 2 * 576 + i94] = v96;
                l91[(s + 1) % 2 * 576 + i99] = v101;
                l91[(s + 1) % 2 * 576 + i104] = v106;
                l91[(s + 1) % 2 * 576 + i109] = v111;
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        }
        long i186 = lid / 8;
        long i187 = lid % 8;
        long i188 = i4 + i186 * 4;
        if (i188 < n) {
            long i189 = i5 + i187 * 4;
            long i190 = min(4L, 19 - i189);
            if (i189 < 19) {
                fc_scatter_float32_4((v112 == v112 ? v112 : (float4)(as_float(0x7fc00000U))), out0 + (i188 * 19 + i189), 1, i190);
            }
        }
        long i191 = i4 + i186 * 4 + 1;
        if (i191 < n) {
            long i192 = i5 + i187 * 4;
            long i193 = min(4L, 19 - i192);
            if (i192 < 19) {
                fc_scatter_float32_4((v113 == v113 ? v113 : (float4)(as_float(0x7fc00000U))), out0 + (i191 * 19 + i192), 1, i193);
            }
        }
        long i194 = i4 + i186 * 4 + 2;
        if (i194 < n) {
            long i195 = i5 + i187 * 4;
            long i196 = min(4L, 19 - i195);
            if (i195 < 19) {
                fc_scatter_float32_4((v114 == v114 ? v114 : (float4)(as_float(0x7fc00000U))), out0 + (i194 * 19 + i195), 1, i196);
            }
        }
        long i197 = i4 + i186 * 4 + 3;
        if (i197 < n) {
            long i198 = i5 + i187 * 4;
            long i199 = min(4L, 19 - i198);
            if (i198 < 19) {
                fc_scatter_float32_4((v115 == v115 ? v115 : (float4)(as_float(0x7fc00000U))), out0 + (i197 * 19 + i198), 1, i199);
            }
        }
        long i200 = i4 + (i186 * 4 + 64);
        if (i200 < n) {
            long i201 = i5 + i187 * 4;
            long i202 = min(4L, 19 - i201);
            if (i201 < 19) {
                fc_scatter_float32_4((v116 == v116 ? v116 : (float4)(as_float(0x7fc00000U))), out0 + (i200 * 19 + i201), 1, i202);
            }
        }
        long i203 = i4 + (i186 * 4 + 64) + 1;
        if (i203 < n) {
            long i204 = i5 + i187 * 4;
            long i205 = min(4L, 19 - i204);
            if (i204 < 19) {
                fc_scatter_float32_4((v117 == v117 ? v117 : (float4)(as_float(0x7fc00000U))), out0 + (i203 * 19 + i204), 1, i205);
            }
        }
        long i206 = i4 + (i186 * 4 + 64) + 2;
        if (i206 < n) {
            long i207 = i5 + i187 * 4;
            long i208 = min(4L, 19 - i207);
            if (i207 < 19) {
                fc_scatter_float32_4((v118 == v118 ? v118 : (float4)(as_float(0x7fc00000U))), out0 + (i206 * 19 + i207), 1, i208);
            }
        }
        long i209 = i4 + (i186 * 4 + 64) + 3;
        if (i209 < n) {
            long i210 = i5 + i187 * 4;
            long i211 = min(4L, 19 - i210);
            if (i210 < 19) {
                fc_scatter_float32_4((v119 == v119 ? v119 : (float4)(as_float(0x7fc00000U))), out0 + (i209 * 19 + i210), 1, i211);
            }
        }
    }
}
