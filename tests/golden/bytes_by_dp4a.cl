#pragma OPENCL FP_CONTRACT OFF

static inline int fc_dot_char_uchar(int a, int b, int c) {
    int d;
    asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

static inline void fc_scatter_int32_4(int4 value, __global int *p, long stride, long count) {
    int all[4];
    vstore4(value, 0, all);
    for (int lane = 0; lane < 4; lane++) if (lane < count) p[lane * stride] = all[lane];
}

__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void k0(
    __global const char *restrict in0,
    __global const uchar *restrict in1,
    __global int *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local int l14[640] __attribute__((aligned(64)));
    __local int l95[640] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long t = gid; t < ((n + 15) / 16) * 1; t += gsize) {
        long i0 = (n + 15) / 16;
        long i1 = t / 8;
        long i2 = t % 8;
        long i3 = min((long)8, i0 - i1 * 8);
        long i4 = 0 + (i1 * 8 + i2 % i3) * 16;
        long i5 = i2 / i3 * 16;
        int i6 = (int)(min((long)16, n - i4) - 1);
        int i7 = (int)(min((long)16, 9 - i5) - 1);
        long i8 = i4 / 9;
        long i9 = i4 % 9;
        long i10 = 0 + i5;
        long i11 = i4 / 9;
        long i12 = i4 % 9;
        long i13 = i12 * 24;
        int i15 = (int)(lid % 16);
        int i16 = (int)(lid / 16);
        int i17 = (int)(i15 * 20 + i16);
        int i18 = (int)(min(i16, i6) * 24 + i15 * 4);
        int v19 = (int)((int)(0L));
        int i20 = (int)(lid % 16);
        int i21 = (int)(lid / 16 + 1);
        int i22 = (int)(i20 * 20 + i21);
        int i23 = (int)(min(i21, i6) * 24 + i20 * 4);
        int v24 = (int)((int)(0L));
        int i25 = (int)(lid % 16);
        int i26 = (int)(lid / 16 + 2);
        int i27 = (int)(i25 * 20 + i26);
        int i28 = (int)(min(i26, i6) * 24 + i25 * 4);
        int v29 = (int)((int)(0L));
        int i30 = (int)(lid % 16);
        int i31 = (int)(lid / 16 + 3);
        int i32 = (int)(i30 * 20 + i31);
        int i33 = (int)(min(i31, i6) * 24 + i30 * 4);
        int v34 = (int)((int)(0L));
        int i35 = (int)(lid % 16);
        int i36 = (int)(lid / 16 + 4);
        int i37 = (int)(i35 * 20 + i36);
        int i38 = (int)(min(i36, i6) * 24 + i35 * 4);
        int v39 = (int)((int)(0L));
        int i40 = (int)(lid % 16);
        int i41 = (int)(lid / 16 + 5);
        int i42 = (int)(i40 * 20 + i41);
        int i43 = (int)(min(i41, i6) * 24 + i40 * 4);
        int v44 = (int)((int)(0L));
        int i45 = (int)(lid % 16);
        int i46 = (int)(lid / 16 + 6);
        int i47 = (int)(i45 * 20 + i46);
        int i48 = (int)(min(i46, i6) * 24 + i45 * 4);
        int v49 = (int)((int)(0L));
        int i50 = (int)(lid % 16);
        int i51 = (int)(lid / 16 + 7);
        int i52 = (int)(i50 * 20 + i51);
        int i53 = (int)(min(i51, i6) * 24 + i50 * 4);
        int v54 = (int)((int)(0L));
        int i55 = (int)(lid % 16);
        int i56 = (int)(lid / 16 + 8);
        int i57 = (int)(i55 * 20 + i56);
        int i58 = (int)(min(i56, i6) * 24 + i55 * 4);
        int v59 = (int)((int)(0L));
        int i60 = (int)(lid % 16);
        int i61 = (int)(lid / 16 + 9);
        int i62 = (int)(i60 * 20 + i61);
        int i63 = (int)(min(i61, i6) * 24 + i60 * 4);
        int v64 = (int)((int)(0L));
        int i65 = (int)(lid % 16);
        int i66 = (int)(lid / 16 + 10);
        int i67 = (int)(i65 * 20 + i66);
        int i68 = (int)(min(i66, i6) * 24 + i65 * 4);
        int v69 = (int)((int)(0L));
        int i70 = (int)(lid % 16);
        int i71 = (int)(lid / 16 + 11);
        int i72 = (int)(i70 * 20 + i71);
        int i73 = (int)(min(i71, i6) * 24 + i70 * 4);
        int v74 = (int)((int)(0L));
        int i75 = (int)(lid % 16);
        int i76 = (int)(lid / 16 + 12);
        int i77 = (int)(i75 * 20 + i76);
        int i78 = (int)(min(i76, i6) * 24 + i75 * 4);
        int v79 = (int)((int)(0L));
        int i80 = (int)(lid % 16);
        int i81 = (int)(lid / 16 + 13);
        int i82 = (int)(i80 * 20 + i81);
        int i83 = (int)(min(i81, i6) * 24 + i80 * 4);
        int v84 = (int)((int)(0L));
        int i85 = (int)(lid % 16);
        int i86 = (int)(lid / 16 + 14);
        int i87 = (int)(i85 * 20 + i86);
        int i88 = (int)(min(i86, i6) * 24 + i85 * 4);
        int v89 = (int)((int)(0L));
        int i90 = (int)(lid % 16);
        int i91 = (int)(lid / 16 + 15);
        int i92 = (int)(i90 * 20 + i91);
        int i93 = (int)(min(i91, i6) * 24 + i90 * 4);
        int v94 = (int)((int)(0L));
        int i96 = (int)(lid / 16);
        int i97 = (int)(lid % 16);
        int i98 = (int)(i96 * 20 + i97);
        int i99 = (int)(min(i97, i7) + i96 * 36);
        int v100 = (int)((int)(0L));
        int i101 = (int)(lid / 16 + 1);
        int i102 = (int)(lid % 16);
        int i103 = (int)(i101 * 20 + i102);
        int i104 = (int)(min(i102, i7) + i101 * 36);
        int v105 = (int)((int)(0L));
        int i106 = (int)(lid / 16 + 2);
        int i107 = (int)(lid % 16);
        int i108 = (int)(i106 * 20 + i107);
        int i109 = (int)(min(i107, i7) + i106 * 36);
        int v110 = (int)((int)(0L));
        int i111 = (int)(lid / 16 + 3);
        int i112 = (int)(lid % 16);
        int i113 = (int)(i111 * 20 + i112);
        int i114 = (int)(min(i112, i7) + i111 * 36);
        int v115 = (int)((int)(0L));
        int i116 = (int)(lid / 16 + 4);
        int i117 = (int)(lid % 16);
        int i118 = (int)(i116 * 20 + i117);
        int i119 = (int)(min(i117, i7) + i116 * 36);
        int v120 = (int)((int)(0L));
        int i121 = (int)(lid / 16 + 5);
        int i122 = (int)(lid % 16);
        int i123 = (int)(i121 * 20 + i122);
        int i124 = (int)(min(i122, i7) + i121 * 36);
        int v125 = (int)((int)(0L));
        int i126 = (int)(lid / 16 + 6);
        int i127 = (int)(lid % 16);
        int i128 = (int)(i126 * 20 + i127);
        int i129 = (int)(min(i127, i7) + i126 * 36);
        int v130 = (int)((int)(0L));
        int i131 = (int)(lid / 16 + 7);
        int i132 = (int)(lid % 16);
        int i133 = (int)(i131 * 20 + i132);
        int i134 = (int)(min(i132, i7) + i131 * 36);
        int v135 = (int)((int)(0L));
        int i136 = (int)(lid / 16 + 8);
        int i137 = (int)(lid % 16);
        int i138 = (int)(i136 * 20 + i137);
        int i139 = (int)(min(i137, i7) + i136 * 36);
        int v140 = (int)((int)(0L));
        int i141 = (int)(lid / 16 + 9);
        int i142 = (int)(lid % 16);
        int i143 = (int)(i141 * 20 + i142);
        int i144 = (int)(min(i142, i7) + i141 * 36);
        int v145 = (int)((int)(0L));
        int i146 = (int)(lid / 16 + 10);
        int i147 = (int)(lid % 16);
        int i148 = (int)(i146 * 20 + i147);
        int i149 = (int)(min(i147, i7) + i146 * 36);
        int v150 = (int)((int)(0L));
        int i151 = (int)(lid / 16 + 11);
        int i152 = (int)(lid % 16);
        int i153 = (int)(i151 * 20 + i152);
        int i154 = (int)(min(i152, i7) + i151 * 36);
        int v155 = (int)((int)(0L));
        int i156 = (int)(lid / 16 + 12);
        int i157 = (int)(lid % 16);
        int i158 = (int)(i156 * 20 + i157);
        int i159 = (int)(min(i157, i7) + i156 * 36);
        int v160 = (int)((int)(0L));
        int i161 = (int)(lid / 16 + 13);
        int i162 = (int)(lid % 16);
        int i163 = (int)(i161 * 20 + i162);
        int i164 = (int)(min(i162, i7) + i161 * 36);
        int v165 = (int)((int)(0L));
        int i166 = (int)(lid / 16 + 14);
        int i167 = (int)(lid % 16);
        int i168 = (int)(i166 * 20 + i167);
        int i169 = (int)(min(i167, i7) + i166 * 36);
        int v170 = (int)((int)(0L));
        int i171 = (int)(lid / 16 + 15);
        int i172 = (int)(lid % 16);
        int i173 = (int)(i171 * 20 + i172);
        int i174 = (int)(min(i172, i7) + i171 * 36);
        int v175 = (int)((int)(0L));
        int4 v176 = (int4)((int)(0L));
        int4 v177 = (int4)((int)(0L));
        int4 v178 = (int4)((int)(0L));
        int4 v179 = (int4)((int)(0L));
        long i180 = i13 + 0 * 4;
        if (0 + i15 < 6) {
            char4 v181 = vload4(0, in0 + (i180 + i18));
            int v182 = as_int(v181);
            v19 = v182;
        } else {
            v19 = (int)((int)(0L));
        }
        if (0 + i20 < 6) {
            char4 v183 = vload4(0, in0 + (i180 + i23));
            int v184 = as_int(v183);
            v24 = v184;
        } else {
            v24 = (int)((int)(0L));
        }
        if (0 + i25 < 6) {
            char4 v185 = vload4(0, in0 + (i180 + i28));
            int v186 = as_int(v185);
            v29 = v186;
        } else {
            v29 = (int)((int)(0L));
        }
        if (0 + i30 < 6) {
            char4 v187 = vload4(0, in0 + (i180 + i33));
            int v188 = as_int(v187);
            v34 = v188;
        } else {
            v34 = (int)((int)(0L));
        }
        if (0 + i35 < 6) {
            char4 v189 = vload4(0, in0 + (i180 + i38));
            int v190 = as_int(v189);
            v39 = v190;
        } else {
            v39 = (int)((int)(0L));
        }
        if (0 + i40 < 6) {
            char4 v191 = vload4(0, in0 + (i180 + i43));
            int v192 = as_int(v191);
            v44 = v192;
        } else {
            v44 = (int)((int)(0L));
        }
        if (0 + i45 < 6) {
            char4 v193 = vload4(0, in0 + (i180 + i48));
            int v194 = as_int(v193);
            v49 = v194;
        } else {
            v49 = (int)((int)(0L));
        }
        if (0 + i50 < 6) {
            char4 v195 = vload4(0, in0 + (i180 + i53));
            int v196 = as_int(v195);
            v54 = v196;
        } else {
            v54 = (int)((int)(0L));
        }
        if (0 + i55 < 6) {
            char4 v197 = vload4(0, in0 + (i180 + i58));
            int v198 = as_int(v197);
            v59 = v198;
        } else {
            v59 = (int)((int)(0L));
        }
        if (0 + i60 < 6) {
            char4 v199 = vload4(0, in0 + (i180 + i63));
            int v200 = as_int(v199);
            v64 = v200;
        } else {
            v64 = (int)((int)(0L));
        }
        if (0 + i65 < 6) {
            char4 v201 = vload4(0, in0 + (i180 + i68));
            int v202 = as_int(v201);
            v69 = v202;
        } else {
            v69 = (int)((int)(0L));
        }
        if (0 + i70 < 6) {
            char4 v203 = vload4(0, in0 + (i180 + i73));
            int v204 = as_int(v203);
            v74 = v204;
        } else {
            v74 = (int)((int)(0L));
        }
        if (0 + i75 < 6) {
            char4 v205 = vload4(0, in0 + (i180 + i78));
            int v206 = as_int(v205);
            v79 = v206;
        } else {
            v79 = (int)((int)(0L));
        }
        if (0 + i80 < 6) {
            char4 v207 = vload4(0, in0 + (i180 + i83));
            int v208 = as_int(v207);
            v84 = v208;
        } else {
            v84 = (int)((int)(0L));
        }
        if (0 + i85 < 6) {
            char4 v209 = vload4(0, in0 + (i180 + i88));
            int v210 = as_int(v209);
            v89 = v210;
        } else {
            v89 = (int)((int)(0L));
        }
        if (0 + i90 < 6) {
            char4 v211 = vload4(0, in0 + (i180 + i93));
            int v212 = as_int(v211);
            v94 = v212;
        } else {
            v94 = (int)((int)(0L));
        }
        l14[(0) * 320 + i17] = v19;
        l14[(0) * 320 + i22] = v24;
        l14[(0) * 320 + i27] = v29;
        l14[(0) * 320 + i32] = v34;
        l14[(0) * 320 + i37] = v39;
        l14[(0) * 320 + i42] = v44;
        l14[(0) * 320 + i47] = v49;
        l14[(0) * 320 + i52] = v54;
        l14[(0) * 320 + i57] = v59;
        l14[(0) * 320 + i62] = v64;
        l14[(0) * 320 + i67] = v69;
        l14[(0) * 320 + i72] = v74;
        l14[(0) * 320 + i77] = v79;
        l14[(0) * 320 + i82] = v84;
        l14[(0) * 320 + i87] = v89;
        l14[(0) * 320 + i92] = v94;
        long i213 = i10 + 0 * 36;
        if (0 + i96 < 6) {
            long i214 = i213 + i99;
            uchar v215 = in1[i214 + 0];
            uchar v216 = in1[i214 + 9];
            uchar v217 = in1[i214 + 18];
            uchar v218 = in1[i214 + 27];
            int v219 = as_int((uchar4)(v215, v216, v217, v218));
            v100 = v219;
        } else {
            v100 = (int)((int)(0L));
        }
        if (0 + i101 < 6) {
            long i220 = i213 + i104;
            uchar v221 = in1[i220 + 0];
            uchar v222 = in1[i220 + 9];
            uchar v223 = in1[i220 + 18];
            uchar v224 = in1[i220 + 27];
            int v225 = as_int((uchar4)(v221, v222, v223, v224));
            v105 = v225;
        } else {
            v105 = (int)((int)(0L));
        }
        if (0 + i106 < 6) {
            long i226 = i213 + i109;
            uchar v227 = in1[i226 + 0];
            uchar v228 = in1[i226 + 9];
            uchar v229 = in1[i226 + 18];
            uchar v230 = in1[i226 + 27];
            int v231 = as_int((uchar4)(v227, v228, v229, v230));
            v110 = v231;
        } else {
            v110 = (int)((int)(0L));
        }
        if (0 + i111 < 6) {
            long i232 = i213 + i114;
            uchar v233 = in1[i232 + 0];
            uchar v234 = in1[i232 + 9];
            uchar v235 = in1[i232 + 18];
            uchar v236 = in1[i232 + 27];
            int v237 = as_int((uchar4)(v233, v234, v235, v236));
            v115 = v237;
        } else {
            v115 = (int)((int)(0L));
        }
        if (0 + i116 < 6) {
            long i238 = i213 + i119;
            uchar v239 = in1[i238 + 0];
            uchar v240 = in1[i238 + 9];
            uchar v241 = in1[i238 + 18];
            uchar v242 = in1[i238 + 27];
            int v243 = as_int((uchar4)(v239, v240, v241, v242));
            v120 = v243;
        } else {
            v120 = (int)((int)(0L));
        }
        if (0 + i121 < 6) {
            long i244 = i213 + i124;
            uchar v245 = in1[i244 + 0];
            uchar v246 = in1[i244 + 9];
            uchar v247 = in1[i244 + 18];
            uchar v248 = in1[i244 + 27];
            int v249 = as_int((uchar4)(v245, v246, v247, v248));
            v125 = v249;
        } else {
            v125 = (int)((int)(0L));
        }
        if (0 + i126 < 6) {
            long i250 = i213 + i129;
            uchar v251 = in1[i250 + 0];
            uchar v252 = in1[i250 + 9];
            uchar v253 = in1[i250 + 18];
            uchar v254 = in1[i250 + 27];
            int v255 = as_int((uchar4)(v251, v252, v253, v254));
            v130 = v255;
        } else {
            v130 = (int)((int)(0L));
        }
        if (0 + i131 < 6) {
            long i256 = i213 + i134;
            uchar v257 = in1[i256 + 0];
            uchar v258 = in1[i256 + 9];
            uchar v259 = in1[i256 + 18];
            uchar v260 = in1[i256 + 27];
            int v261 = as_int((uchar4)(v257, v258, v259, v260));
            v135 = v261;
        } else {
            v135 = (int)((int)(0L));
        }
        if (0 + i136 < 6) {
            long i262 = i213 + i139;
            uchar v263 = in1[i262 + 0];
            uchar v264 = in1[i262 + 9];
            uchar v265 = in1[i262 + 18];
            uchar v266 = in1[i262 + 27];
            int v267 = as_int((uchar4)(v263, v264, v265, v266));
            v140 = v267;
        } else {
            v140 = (int)((int)(0L));
        }
        if (0 + i141 < 6) {
            long i268 = i213 + i144;
            uchar v269 = in1[i268 + 0];
            uchar v270 = in1[i268 + 9];
            uchar v271 = in1[i268 + 18];
            uchar v272 = in1[i268 + 27];
            int v273 = as_int((uchar4)(v269, v270, v271, v272));
            v145 = v273;
        } else {
            v145 = (int)((int)(0L));
        }
        if (0 + i146 < 6) {
            long i274 = i213 + i149;
            uchar v275 = in1[i274 + 0];
            uchar v276 = in1[i274 + 9];
            uchar v277 = in1[i274 + 18];
            uchar v278 = in1[i274 + 27];
            int v279 = as_int((uchar4)(v275, v276, v277, v278));
            v150 = v279;
        } else {
            v150 = (int)((int)(0L));
        }
        if (0 + i151 < 6) {
            long i280 = i213 + i154;
            uchar v281 = in1[i280 + 0];
            uchar v282 = in1[i280 + 9];
            uchar v283 = in1[i280 + 18];
            uchar v284 = in1[i280 + 27];
            int v285 = as_int((uchar4)(v281, v282, v283, v284));
            v155 = v285;
        } else {
            v155 = (int)((int)(0L));
        }
        if (0 + i156 < 6) {
            long i286 = i213 + i159;
            uchar v287 = in1[i286 + 0];
            uchar v288 = in1[i286 + 9];
            uchar v289 = in1[i286 + 18];
            uchar v290 = in1[i286 + 27];
            int v291 = as_int((uchar4)(v287, v288, v289, v290));
            v160 = v291;
        } else {
            v160 = (int)((int)(0L));
        }
        if (0 + i161 < 6) {
            long i292 = i213 + i164;
            uchar v293 = in1[i292 + 0];
            uchar v294 = in1[i292 + 9];
            uchar v295 = in1[i292 + 18];
            uchar v296 = in1[i292 + 27];
            int v297 = as_int((uchar4)(v293, v294, v295, v296));
            v165 = v297;
        } else {
            v165 = (int)((int)(0L));
        }
        if (0 + i166 < 6) {
            long i298 = i213 + i169;
            uchar v299 = in1[i298 + 0];
            uchar v300 = in1[i298 + 9];
            uchar v301 = in1[i298 + 18];
            uchar v302 = in1[i298 + 27];
            int v303 = as_int((uchar4)(v299, v300, v301, v302));
            v170 = v303;
        } else {
            v170 = (int)((int)(0L));
        }
        if (0 + i171 < 6) {
            long i304 = i213 + i174;
            uchar v305 = in1[i304 + 0];
            uchar v306 = in1[i304 + 9];
            uchar v307 = in1[i304 + 18];
            uchar v308 = in1[i304 + 27];
            int v309 = as_int((uchar4)(v305, v306, v307, v308));
            v175 = v309;
        } else {
            v175 = (int)((int)(0L));
        }
        l95[(0) * 320 + i98] = v100;
        l95[(0) * 320 + i103] = v105;
        l95[(0) * 320 + i108] = v110;
        l95[(0) * 320 + i113] = v115;
        l95[(0) * 320 + i118] = v120;
        l95[(0) * 320 + i123] = v125;
        l95[(0) * 320 + i128] = v130;
        l95[(0) * 320 + i133] = v135;
        l95[(0) * 320 + i138] = v140;
        l95[(0) * 320 + i143] = v145;
        l95[(0) * 320 + i148] = v150;
        l95[(0) * 320 + i153] = v155;
        l95[(0) * 320 + i158] = v160;
        l95[(0) * 320 + i163] = v165;
        l95[(0) * 320 + i168] = v170;
        l95[(0) * 320 + i173] = v175;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long s = 0; s < 1; s++) {
            long i310 = (s + 1) * 16;
            if (s + 1 < 1) {
                long i311 = i13 + i310 * 4;
                if (i310 + i15 < 6) {
                    char4 v312 = vload4(0, in0 + (i311 + i18));
                    int v313 = as_int(v312);
                    v19 = v313;
                } else {
                    v19 = (int)((int)(0L));
                }
                if (i310 + i20 < 6) {
                    char4 v314 = vload4(0, in0 + (i311 + i23));
                    int v315 = as_int(v314);
                    v24 = v315;
                } else {
                    v24 = (int)((int)(0L));
                }
                if (i310 + i25 < 6) {
                    char4 v316 = vload4(0, in0 + (i311 + i28));
                    int v317 = as_int(v316);
                    v29 = v317;
                } else {
                    v29 = (int)((int)(0L));
                }
                if (i310 + i30 < 6) {
                    char4 v318 = vload4(0, in0 + (i311 + i33));
                    int v319 = as_int(v318);
                    v34 = v319;
                } else {
                    v34 = (int)((int)(0L));
                }
                if (i310 + i35 < 6) {
                    char4 v320 = vload4(0, in0 + (i311 + i38));
                    int v321 = as_int(v320);
                    v39 = v321;
                } else {
                    v39 = (int)((int)(0L));
                }
                if (i310 + i40 < 6) {
                    char4 v322 = vload4(0, in0 + (i311 + i43));
                    int v323 = as_int(v322);
                    v44 = v323;
                } else {
                    v44 = (int)((int)(0L));
                }
                if (i310 + i45 < 6) {
                    char4 v324 = vload4(0, in0 + (i311 + i48));
                    int v325 = as_int(v324);
                    v49 = v325;
                } else {
                    v49 = (int)((int)(0L));
                }
                if (i310 + i50 < 6) {
                    char4 v326 = vload4(0, in0 + (i311 + i53));
                    int v327 = as_int(v326);
                    v54 = v327;
                } else {
                    v54 = (int)((int)(0L));
                }
                if (i310 + i55 < 6) {
                    char4 v328 = vload4(0, in0 + (i311 + i58));
                    int v329 = as_int(v328);
                    v59 = v329;
                } else {
                    v59 = (int)((int)(0L));
                }
                if (i310 + i60 < 6) {
                    char4 v330 = vload4(0, in0 + (i311 + i63));
                    int v331 = as_int(v330);
                    v64 = v331;
                } else {
                    v64 = (int)((int)(0L));
                }
                if (i310 + i65 < 6) {
                    char4 v332 = vload4(0, in0 + (i311 + i68));
                    int v333 = as_int(v332);
                    v69 = v333;
                } else {
                    v69 = (int)((int)(0L));
                }
                if (i310 + i70 < 6) {
                    char4 v334 = vload4(0, in0 + (i311 + i73));
                    int v335 = as_int(v334);
                    v74 = v335;
                } else {
                    v74 = (int)((int)(0L));
                }
                if (i310 + i75 < 6) {
                    char4 v336 = vload4(0, in0 + (i311 + i78));
                    int v337 = as_int(v336);
                    v79 = v337;
                } else {
                    v79 = (int)((int)(0L));
                }
                if (i310 + i80 < 6) {
                    char4 v338 = vload4(0, in0 + (i311 + i83));
                    int v339 = as_int(v338);
                    v84 = v339;
                } else {
                    v84 = (int)((int)(0L));
                }
                if (i310 + i85 < 6) {
                    char4 v340 = vload4(0, in0 + (i311 + i88));
                    int v341 = as_int(v340);
                    v89 = v341;
                } else {
                    v89 = (int)((int)(0L));
                }
                if (i310 + i90 < 6) {
                    char4 v342 = vload4(0, in0 + (i311 + i93));
                    int v343 = as_int(v342);
                    v94 = v343;
                } else {
                    v94 = (int)((int)(0L));
                }
                long i344 = i10 + i310 * 36;
                if (i310 + i96 < 6) {
                    long i345 = i344 + i99;
                    uchar v346 = in1[i345 + 0];
                    uchar v347 = in1[i345 + 9];
                    uchar v348 = in1[i345 + 18];
                    uchar v349 = in1[i345 + 27];
                    int v350 = as_int((uchar4)(v346, v347, v348, v349));
                    v100 = v350;
                } else {
                    v100 = (int)((int)(0L));
                }
                if (i310 + i101 < 6) {
                    long i351 = i344 + i104;
                    uchar v352 = in1[i351 + 0];
                    uchar v353 = in1[i351 + 9];
                    uchar v354 = in1[i351 + 18];
                    uchar v355 = in1[i351 + 27];
                    int v356 = as_int((uchar4)(v352, v353, v354, v355));
                    v105 = v356;
                } else {
                    v105 = (int)((int)(0L));
                }
                if (i310 + i106 < 6) {
                    long i357 = i344 + i109;
                    uchar v358 = in1[i357 + 0];
                    uchar v359 = in1[i357 + 9];
                    uchar v360 = in1[i357 + 18];
                    uchar v361 = in1[i357 + 27];
                    int v362 = as_int((uchar4)(v358, v359, v360, v361));
                    v110 = v362;
                } else {
                    v110 = (int)((int)(0L));
                }
                if (i310 + i111 < 6) {
                    long i363 = i344 + i114;
                    uchar v364 = in1[i363 + 0];
                    uchar v365 = in1[i363 + 9];
                    uchar v366 = in1[i363 + 18];
                    uchar v367 = in1[i363 + 27];
                    int v368 = as_int((uchar4)(v364, v365, v366, v367));
                    v115 = v368;
                } else {
                    v115 = (int)((int)(0L));
                }
                if (i310 + i116 < 6) {
                    long i369 = i344 + i119;
                    uchar v370 = in1[i369 + 0];
                    uchar v371 = in1[i369 + 9];
                    uchar v372 = in1[i369 + 18];
                    uchar v373 = in1[i369 + 27];
                    int v374 = as_int((uchar4)(v370, v371, v372, v373));
                    v120 = v374;
                } else {
                    v120 = (int)((int)(0L));
                }
                if (i310 + i121 < 6) {
                    long i375 = i344 + i124;
                    uchar v376 = in1[i375 + 0];
                    uchar v377 = in1[i375 + 9];
                    uchar v378 = in1[i375 + 18];
                    uchar v379 = in1[i375 + 27];
                    int v380 = as_int((uchar4)(v376, v377, v378, v379));
                    v125 = v380;
                } else {
                    v125 = (int)((int)(0L));
                }
                if (i310 + i126 < 6) {
                    long i381 = i344 + i129;
                    uchar v382 = in1[i381 + 0];
                    uchar v383 = in1[i381 + 9];
                    uchar v384 = in1[i381 + 18];
                    uchar v385 = in1[i381 + 27];
                    int v386 = as_int((uchar4)(v382, v383, v384, v385));
                    v130 = v386;
                } else {
                    v130 = (int)((int)(0L));
                }
                if (i310 + i131 < 6) {
                    long i387 = i344 + i134;
                    uchar v388 = in1[i387 + 0];
                    uchar v389 = in1[i387 + 9];
                    uchar v390 = in1[i387 + 18];
                    uchar v391 = in1[i387 + 27];
                    int v392 = as_int((uchar4)(v388, v389, v390, v391));
                    v135 = v392;
                } else {
                    v135 = (int)((int)(0L));
                }
                if (i310 + i136 < 6) {
                    long i393 = i344 + i139;
                    uchar v394 = in1[i393 + 0];
                    uchar v395 = in1[i393 + 9];
                    uchar v396 = in1[i393 + 18];
                    uchar v397 = in1[i393 + 27];
                    int v398 = as_int((uchar4)(v394, v395, v396, v397));
                    v140 = v398;
                } else {
                    v140 = (int)((int)(0L));
                }
                if (i310 + i141 < 6) {
                    long i399 = i344 + i144;
                    uchar v400 = in1[i399 + 0];
                    uchar v401 = in1[i399 + 9];
                    uchar v402 = in1[i399 + 18];
                    uchar v403 = in1[i399 + 27];
                    int v404 = as_int((uchar4)(v400, v401, v402, v403));
                    v145 = v404;
                } else {
                    v145 = (int)((int)(0L));
                }
                if (i310 + i146 < 6) {
                    long i405 = i344 + i149;
                    uchar v406 = in1[i405 + 0];
                    uchar v407 = in1[i405 + 9];
                    uchar v408 = in1[i405 + 18];
                    uchar v409 = in1[i405 + 27];
                    int v410 = as_int((uchar4)(v406, v407, v408, v409));
                    v150 = v410;
                } else {
                    v150 = (int)((int)(0L));
                }
                if (i310 + i151 < 6) {
                    long i411 = i344 + i154;
                    uchar v412 = in1[i411 + 0];
                    uchar v413 = in1[i411 + 9];
                    uchar v414 = in1[i411 + 18];
                    uchar v415 = in1[i411 + 27];
                    int v416 = as_int((uchar4)(v412, v413, v414, v415));
                    v155 = v416;
                } else {
                    v155 = (int)((int)(0L));
                }
                if (i310 + i156 < 6) {
                    long i417 = i344 + i159;
                    uchar v418 = in1[i417 + 0];
                    uchar v419 = in1[i417 + 9];
                    uchar v420 = in1[i417 + 18];
                    uchar v421 = in1[i417 + 27];
                    int v422 = as_int((uchar4)(v418, v419, v420, v421));
                    v160 = v422;
                } else {
                    v160 = (int)((int)(0L));
                }
                if (i310 + i161 < 6) {
                    long i423 = i344 + i164;
                    uchar v424 = in1[i423 + 0];
                    uchar v425 = in1[i423 + 9];
                    uchar v426 = in1[i423 + 18];
                    uchar v427 = in1[i423 + 27];
                    int v428 = as_int((uchar4)(v424, v425, v426, v427));
                    v165 = v428;
                } else {
                    v165 = (int)((int)(0L));
                }
                if (i310 + i166 < 6) {
                    long i429 = i344 + i169;
                    uchar v430 = in1[i429 + 0];
                    uchar v431 = in1[i429 + 9];
                    uchar v432 = in1[i429 + 18];
                    uchar v433 = in1[i429 + 27];
                    int v434 = as_int((uchar4)(v430, v431, v432, v433));
                    v170 = v434;
                } else {
                    v170 = (int)((int)(0L));
                }
                if (i310 + i171 < 6) {
                    long i435 = i344 + i174;
                    uchar v436 = in1[i435 + 0];
                    uchar v437 = in1[i435 + 9];
                    uchar v438 = in1[i435 + 18];
                    uchar v439 = in1[i435 + 27];
                    int v440 = as_int((uchar4)(v436, v437, v438, v439));
                    v175 = v440;
                } else {
                    v175 = (int)((int)(0L));
                }
            }
            long i441 = s % 2 * 320;
            long i442 = s % 2 * 320;
            long i443 = lid / 4;
            long i444 = lid % 4;
            #pragma unroll
            for (long k = 0; k < 16; k++) {
                int4 v445 = *(__local int4 *)(l14 + i441 + k * 20 + i443 * 4);
                int4 v446 = *(__local int4 *)(l95 + i442 + k * 20 + i444 * 4);
                int4 v447 = (int4)(v445.s0);
                int4 v448 = (int4)(fc_dot_char_uchar(v447.s0, v446.s0, v176.s0), fc_dot_char_uchar(v447.s1, v446.s1, v176.s1), fc_dot_char_uchar(v447.s2, v446.s2, v176.s2), fc_dot_char_uchar(v447.s3, v446.s3, v176.s3));
                v176 = v448;
                int4 v449 = (int4)(v445.s1);
                int4 v450 = (int4)(fc_dot_char_uchar(v449.s0, v446.s0, v177.s0), fc_dot_char_uchar(v449.s1, v446.s1, v177.s1), fc_dot_char_uchar(v449.s2, v446.s2, v177.s2), fc_dot_char_uchar(v449.s3, v446.s3, v177.s3));
                v177 = v450;
                int4 v451 = (int4)(v445.s2);
                int4 v452 = (int4)(fc_dot_char_uchar(v451.s0, v446.s0, v178.s0), fc_dot_char_uchar(v451.s1, v446.s1, v178.s1), fc_dot_char_uchar(v451.s2, v446.s2, v178.s2), fc_dot_char_uchar(v451.s3, v446.s3, v178.s3));
                v178 = v452;
                int4 v453 = (int4)(v445.s3);
                int4 v454 = (int4)(fc_dot_char_uchar(v453.s0, v446.s0, v179.s0), fc_dot_char_uchar(v453.s1, v446.s1, v179.s1), fc_dot_char_uchar(v453.s2, v446.s2, v179.s2), fc_dot_char_uchar(v453.s3, v446.s3, v179.s3));
                v179 = v454;
            }
            if (s + 1 < 1) {
                l14[((s + 1) % 2) * 320 + i17] = v19;
                l14[((s + 1) % 2) * 320 + i22] = v24;
                l14[((s + 1) % 2) * 320 + i27] = v29;
                l14[((s + 1) % 2) * 320 + i32] = v34;
                l14[((s + 1) % 2) * 320 + i37] = v39;
                l14[((s + 1) % 2) * 320 + i42] = v44;
                l14[((s + 1) % 2) * 320 + i47] = v49;
                l14[((s + 1) % 2) * 320 + i52] = v54;
                l14[((s + 1) % 2) * 320 + i57] = v59;
                l14[((s + 1) % 2) * 320 + i62] = v64;
                l14[((s + 1) % 2) * 320 + i67] = v69;
                l14[((s + 1) % 2) * 320 + i72] = v74;
                l14[((s + 1) % 2) * 320 + i77] = v79;
                l14[((s + 1) % 2) * 320 + i82] = v84;
                l14[((s + 1) % 2) * 320 + i87] = v89;
                l14[((s + 1) % 2) * 320 + i92] = v94;
                l95[((s + 1) % 2) * 320 + i98] = v100;
                l95[((s + 1) % 2) * 320 + i103] = v105;
                l95[((s + 1) % 2) * 320 + i108] = v110;
                l95[((s + 1) % 2) * 320 + i113] = v115;
                l95[((s + 1) % 2) * 320 + i118] = v120;
                l95[((s + 1) % 2) * 320 + i123] = v125;
                l95[((s + 1) % 2) * 320 + i128] = v130;
                l95[((s + 1) % 2) * 320 + i133] = v135;
                l95[((s + 1) % 2) * 320 + i138] = v140;
                l95[((s + 1) % 2) * 320 + i143] = v145;
                l95[((s + 1) % 2) * 320 + i148] = v150;
                l95[((s + 1) % 2) * 320 + i153] = v155;
                l95[((s + 1) % 2) * 320 + i158] = v160;
                l95[((s + 1) % 2) * 320 + i163] = v165;
                l95[((s + 1) % 2) * 320 + i168] = v170;
                l95[((s + 1) % 2) * 320 + i173] = v175;
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        }
        long i455 = lid / 4;
        long i456 = lid % 4;
        long i457 = i4 + i455 * 4 + 0;
        if (i457 < n) {
            long i458 = i5 + i456 * 4;
            long i459 = min((long)4, 9 - i458);
            if (i458 < 9) {
                long i460 = i457 / 9;
                long i461 = i457 % 9;
                fc_scatter_int32_4(v176, out0 + (i460 * 81 + i461 * 9 + i458), 1, i459);
            }
        }
        long i462 = i4 + i455 * 4 + 1;
        if (i462 < n) {
            long i463 = i5 + i456 * 4;
            long i464 = min((long)4, 9 - i463);
            if (i463 < 9) {
                long i465 = i462 / 9;
                long i466 = i462 % 9;
                fc_scatter_int32_4(v177, out0 + (i465 * 81 + i466 * 9 + i463), 1, i464);
            }
        }
        long i467 = i4 + i455 * 4 + 2;
        if (i467 < n) {
            long i468 = i5 + i456 * 4;
            long i469 = min((long)4, 9 - i468);
            if (i468 < 9) {
                long i470 = i467 / 9;
                long i471 = i467 % 9;
                fc_scatter_int32_4(v178, out0 + (i470 * 81 + i471 * 9 + i468), 1, i469);
            }
        }
        long i472 = i4 + i455 * 4 + 3;
        if (i472 < n) {
            long i473 = i5 + i456 * 4;
            long i474 = min((long)4, 9 - i473);
            if (i473 < 9) {
                long i475 = i472 / 9;
                long i476 = i472 % 9;
                fc_scatter_int32_4(v179, out0 + (i475 * 81 + i476 * 9 + i473), 1, i474);
            }
        }
    }
}
