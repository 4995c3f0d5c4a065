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
    __local int l13[640] __attribute__((aligned(64)));
    __local int l94[640] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long t = gid; t < ((n + 15) / 16); t += gsize) {
        long i0 = (n + 15) / 16;
        long i1 = t / 8;
        long i2 = t % 8;
        long i3 = min(8L, i0 - i1 * 8);
        long i4 = (i1 * 8 + i2 % i3) * 16;
        long i5 = i2 / i3 * 16;
        int i6 = (int)(min(16L, n - i4) - 1);
        int i7 = (int)(min(16L, 9 - i5) - 1);
        long i8 = i4 / 9;
        long i9 = i4 % 9;
        long i10 = i4 / 9;
        long i11 = i4 % 9;
        long i12 = i11 * 24;
        int i14 = (int)(lid % 16);
        int i15 = (int)(lid / 16);
        int i16 = (int)(i14 * 20 + i15);
        int i17 = (int)(min(i15, i6) * 24 + i14 * 4);
        int v18 = (int)((int)(0L));
        int i19 = (int)(lid % 16);
        int i20 = (int)(lid / 16 + 1);
        int i21 = (int)(i19 * 20 + i20);
        int i22 = (int)(min(i20, i6) * 24 + i19 * 4);
        int v23 = (int)((int)(0L));
        int i24 = (int)(lid % 16);
        int i25 = (int)(lid / 16 + 2);
        int i26 = (int)(i24 * 20 + i25);
        int i27 = (int)(min(i25, i6) * 24 + i24 * 4);
        int v28 = (int)((int)(0L));
        int i29 = (int)(lid % 16);
        int i30 = (int)(lid / 16 + 3);
        int i31 = (int)(i29 * 20 + i30);
        int i32 = (int)(min(i30, i6) * 24 + i29 * 4);
        int v33 = (int)((int)(0L));
        int i34 = (int)(lid % 16);
        int i35 = (int)(lid / 16 + 4);
        int i36 = (int)(i34 * 20 + i35);
        int i37 = (int)(min(i35, i6) * 24 + i34 * 4);
        int v38 = (int)((int)(0L));
        int i39 = (int)(lid % 16);
        int i40 = (int)(lid / 16 + 5);
        int i41 = (int)(i39 * 20 + i40);
        int i42 = (int)(min(i40, i6) * 24 + i39 * 4);
        int v43 = (int)((int)(0L));
        int i44 = (int)(lid % 16);
        int i45 = (int)(lid / 16 + 6);
        int i46 = (int)(i44 * 20 + i45);
        int i47 = (int)(min(i45, i6) * 24 + i44 * 4);
        int v48 = (int)((int)(0L));
        int i49 = (int)(lid % 16);
        int i50 = (int)(lid / 16 + 7);
        int i51 = (int)(i49 * 20 + i50);
        int i52 = (int)(min(i50, i6) * 24 + i49 * 4);
        int v53 = (int)((int)(0L));
        int i54 = (int)(lid % 16);
        int i55 = (int)(lid / 16 + 8);
        int i56 = (int)(i54 * 20 + i55);
        int i57 = (int)(min(i55, i6) * 24 + i54 * 4);
        int v58 = (int)((int)(0L));
        int i59 = (int)(lid % 16);
        int i60 = (int)(lid / 16 + 9);
        int i61 = (int)(i59 * 20 + i60);
        int i62 = (int)(min(i60, i6) * 24 + i59 * 4);
        int v63 = (int)((int)(0L));
        int i64 = (int)(lid % 16);
        int i65 = (int)(lid / 16 + 10);
        int i66 = (int)(i64 * 20 + i65);
        int i67 = (int)(min(i65, i6) * 24 + i64 * 4);
        int v68 = (int)((int)(0L));
        int i69 = (int)(lid % 16);
        int i70 = (int)(lid / 16 + 11);
        int i71 = (int)(i69 * 20 + i70);
        int i72 = (int)(min(i70, i6) * 24 + i69 * 4);
        int v73 = (int)((int)(0L));
        int i74 = (int)(lid % 16);
        int i75 = (int)(lid / 16 + 12);
        int i76 = (int)(i74 * 20 + i75);
        int i77 = (int)(min(i75, i6) * 24 + i74 * 4);
        int v78 = (int)((int)(0L));
        int i79 = (int)(lid % 16);
        int i80 = (int)(lid / 16 + 13);
        int i81 = (int)(i79 * 20 + i80);
        int i82 = (int)(min(i80, i6) * 24 + i79 * 4);
        int v83 = (int)((int)(0L));
        int i84 = (int)(lid % 16);
        int i85 = (int)(lid / 16 + 14);
        int i86 = (int)(i84 * 20 + i85);
        int i87 = (int)(min(i85, i6) * 24 + i84 * 4);
        int v88 = (int)((int)(0L));
        int i89 = (int)(lid % 16);
        int i90 = (int)(lid / 16 + 15);
        int i91 = (int)(i89 * 20 + i90);
        int i92 = (int)(min(i90, i6) * 24 + i89 * 4);
        int v93 = (int)((int)(0L));
        int i95 = (int)(lid / 16);
        int i96 = (int)(lid % 16);
        int i97 = (int)(i95 * 20 + i96);
        int i98 = (int)(min(i96, i7) + i95 * 36);
        int v99 = (int)((int)(0L));
        int i100 = (int)(lid / 16 + 1);
        int i101 = (int)(lid % 16);
        int i102 = (int)(i100 * 20 + i101);
        int i103 = (int)(min(i101, i7) + i100 * 36);
        int v104 = (int)((int)(0L));
        int i105 = (int)(lid / 16 + 2);
        int i106 = (int)(lid % 16);
        int i107 = (int)(i105 * 20 + i106);
        int i108 = (int)(min(i106, i7) + i105 * 36);
        int v109 = (int)((int)(0L));
        int i110 = (int)(lid / 16 + 3);
        int i111 = (int)(lid % 16);
        int i112 = (int)(i110 * 20 + i111);
        int i113 = (int)(min(i111, i7) + i110 * 36);
        int v114 = (int)((int)(0L));
        int i115 = (int)(lid / 16 + 4);
        int i116 = (int)(lid % 16);
        int i117 = (int)(i115 * 20 + i116);
        int i118 = (int)(min(i116, i7) + i115 * 36);
        int v119 = (int)((int)(0L));
        int i120 = (int)(lid / 16 + 5);
        int i121 = (int)(lid % 16);
        int i122 = (int)(i120 * 20 + i121);
        int i123 = (int)(min(i121, i7) + i120 * 36);
        int v124 = (int)((int)(0L));
        int i125 = (int)(lid / 16 + 6);
        int i126 = (int)(lid % 16);
        int i127 = (int)(i125 * 20 + i126);
        int i128 = (int)(min(i126, i7) + i125 * 36);
        int v129 = (int)((int)(0L));
        int i130 = (int)(lid / 16 + 7);
        int i131 = (int)(lid % 16);
        int i132 = (int)(i130 * 20 + i131);
        int i133 = (int)(min(i131, i7) + i130 * 36);
        int v134 = (int)((int)(0L));
        int i135 = (int)(lid / 16 + 8);
        int i136 = (int)(lid % 16);
        int i137 = (int)(i135 * 20 + i136);
        int i138 = (int)(min(i136, i7) + i135 * 36);
        int v139 = (int)((int)(0L));
        int i140 = (int)(lid / 16 + 9);
        int i141 = (int)(lid % 16);
        int i142 = (int)(i140 * 20 + i141);
        int i143 = (int)(min(i141, i7) + i140 * 36);
        int v144 = (int)((int)(0L));
        int i145 = (int)(lid / 16 + 10);
        int i146 = (int)(lid % 16);
        int i147 = (int)(i145 * 20 + i146);
        int i148 = (int)(min(i146, i7) + i145 * 36);
        int v149 = (int)((int)(0L));
        int i150 = (int)(lid / 16 + 11);
        int i151 = (int)(lid % 16);
        int i152 = (int)(i150 * 20 + i151);
        int i153 = (int)(min(i151, i7) + i150 * 36);
        int v154 = (int)((int)(0L));
        int i155 = (int)(lid / 16 + 12);
        int i156 = (int)(lid % 16);
        int i157 = (int)(i155 * 20 + i156);
        int i158 = (int)(min(i156, i7) + i155 * 36);
        int v159 = (int)((int)(0L));
        int i160 = (int)(lid / 16 + 13);
        int i161 = (int)(lid % 16);
        int i162 = (int)(i160 * 20 + i161);
        int i163 = (int)(min(i161, i7) + i160 * 36);
        int v164 = (int)((int)(0L));
        int i165 = (int)(lid / 16 + 14);
        int i166 = (int)(lid % 16);
        int i167 = (int)(i165 * 20 + i166);
        int i168 = (int)(min(i166, i7) + i165 * 36);
        int v169 = (int)((int)(0L));
        int i170 = (int)(lid / 16 + 15);
        int i171 = (int)(lid % 16);
        int i172 = (int)(i170 * 20 + i171);
        int i173 = (int)(min(i171, i7) + i170 * 36);
        int v174 = (int)((int)(0L));
        int4 v175 = (int4)((int)(0L));
        int4 v176 = (int4)((int)(0L));
        int4 v177 = (int4)((int)(0L));
        int4 v178 = (int4)((int)(0L));
        if (i14 < 6) {
            char4 v179 = vload4(0, in0 + (i12 + i17));
            int v180 = as_int(v179);
            v18 = v180;
        } else {
            v18 = (int)((int)(0L));
        }
        if (i19 < 6) {
            char4 v181 = vload4(0, in0 + (i12 + i22));
            int v182 = as_int(v181);
            v23 = v182;
        } else {
            v23 = (int)((int)(0L));
        }
        if (i24 < 6) {
            char4 v183 = vload4(0, in0 + (i12 + i27));
            int v184 = as_int(v183);
            v28 = v184;
        } else {
            v28 = (int)((int)(0L));
        }
        if (i29 < 6) {
            char4 v185 = vload4(0, in0 + (i12 + i32));
            int v186 = as_int(v185);
            v33 = v186;
        } else {
            v33 = (int)((int)(0L));
        }
        if (i34 < 6) {
            char4 v187 = vload4(0, in0 + (i12 + i37));
            int v188 = as_int(v187);
            v38 = v188;
        } else {
            v38 = (int)((int)(0L));
        }
        if (i39 < 6) {
            char4 v189 = vload4(0, in0 + (i12 + i42));
            int v190 = as_int(v189);
            v43 = v190;
        } else {
            v43 = (int)((int)(0L));
        }
        if (i44 < 6) {
            char4 v191 = vload4(0, in0 + (i12 + i47));
            int v192 = as_int(v191);
            v48 = v192;
        } else {
            v48 = (int)((int)(0L));
        }
        if (i49 < 6) {
            char4 v193 = vload4(0, in0 + (i12 + i52));
            int v194 = as_int(v193);
            v53 = v194;
        } else {
            v53 = (int)((int)(0L));
        }
        if (i54 < 6) {
            char4 v195 = vload4(0, in0 + (i12 + i57));
            int v196 = as_int(v195);
            v58 = v196;
        } else {
            v58 = (int)((int)(0L));
        }
        if (i59 < 6) {
            char4 v197 = vload4(0, in0 + (i12 + i62));
            int v198 = as_int(v197);
            v63 = v198;
        } else {
            v63 = (int)((int)(0L));
        }
        if (i64 < 6) {
            char4 v199 = vload4(0, in0 + (i12 + i67));
            int v200 = as_int(v199);
            v68 = v200;
        } else {
            v68 = (int)((int)(0L));
        }
        if (i69 < 6) {
            char4 v201 = vload4(0, in0 + (i12 + i72));
            int v202 = as_int(v201);
            v73 = v202;
        } else {
            v73 = (int)((int)(0L));
        }
        if (i74 < 6) {
            char4 v203 = vload4(0, in0 + (i12 + i77));
            int v204 = as_int(v203);
            v78 = v204;
        } else {
            v78 = (int)((int)(0L));
        }
        if (i79 < 6) {
            char4 v205 = vload4(0, in0 + (i12 + i82));
            int v206 = as_int(v205);
            v83 = v206;
        } else {
            v83 = (int)((int)(0L));
        }
        if (i84 < 6) {
            char4 v207 = vload4(0, in0 + (i12 + i87));
            int v208 = as_int(v207);
            v88 = v208;
        } else {
            v88 = (int)((int)(0L));
        }
        if (i89 < 6) {
            char4 v209 = vload4(0, in0 + (i12 + i92));
            int v210 = as_int(v209);
            v93 = v210;
        } else {
            v93 = (int)((int)(0L));
        }
        l13[i16] = v18;
        l13[i21] = v23;
        l13[i26] = v28;
        l13[i31] = v33;
        l13[i36] = v38;
        l13[i41] = v43;
        l13[i46] = v48;
        l13[i51] = v53;
        l13[i56] = v58;
        l13[i61] = v63;
        l13[i66] = v68;
        l13[i71] = v73;
        l13[i76] = v78;
        l13[i81] = v83;
        l13[i86] = v88;
        l13[i91] = v93;
        if (i95 < 6) {
            long i211 = i5 + i98;
            uchar v212 = in1[i211];
            uchar v213 = in1[i211 + 9];
            uchar v214 = in1[i211 + 18];
            uchar v215 = in1[i211 + 27];
            int v216 = as_int((uchar4)(v212, v213, v214, v215));
            v99 = v216;
        } else {
            v99 = (int)((int)(0L));
        }
        if (i100 < 6) {
            long i217 = i5 + i103;
            uchar v218 = in1[i217];
            uchar v219 = in1[i217 + 9];
            uchar v220 = in1[i217 + 18];
            uchar v221 = in1[i217 + 27];
            int v222 = as_int((uchar4)(v218, v219, v220, v221));
            v104 = v222;
        } else {
            v104 = (int)((int)(0L));
        }
        if (i105 < 6) {
            long i223 = i5 + i108;
            uchar v224 = in1[i223];
            uchar v225 = in1[i223 + 9];
            uchar v226 = in1[i223 + 18];
            uchar v227 = in1[i223 + 27];
            int v228 = as_int((uchar4)(v224, v225, v226, v227));
            v109 = v228;
        } else {
            v109 = (int)((int)(0L));
        }
        if (i110 < 6) {
            long i229 = i5 + i113;
            uchar v230 = in1[i229];
            uchar v231 = in1[i229 + 9];
            uchar v232 = in1[i229 + 18];
            uchar v233 = in1[i229 + 27];
            int v234 = as_int((uchar4)(v230, v231, v232, v233));
            v114 = v234;
        } else {
            v114 = (int)((int)(0L));
        }
        if (i115 < 6) {
            long i235 = i5 + i118;
            uchar v236 = in1[i235];
            uchar v237 = in1[i235 + 9];
            uchar v238 = in1[i235 + 18];
            uchar v239 = in1[i235 + 27];
            int v240 = as_int((uchar4)(v236, v237, v238, v239));
            v119 = v240;
        } else {
            v119 = (int)((int)(0L));
        }
        if (i120 < 6) {
            long i241 = i5 + i123;
            uchar v242 = in1[i241];
            uchar v243 = in1[i241 + 9];
            uchar v244 = in1[i241 + 18];
            uchar v245 = in1[i241 + 27];
            int v246 = as_int((uchar4)(v242, v243, v244, v245));
            v124 = v246;
        } else {
            v124 = (int)((int)(0L));
        }
        if (i125 < 6) {
            long i247 = i5 + i128;
            uchar v248 = in1[i247];
            uchar v249 = in1[i247 + 9];
            uchar v250 = in1[i247 + 18];
            uchar v251 = in1[i247 + 27];
            int v252 = as_int((uchar4)(v248, v249, v250, v251));
            v129 = v252;
        } else {
            v129 = (int)((int)(0L));
        }
        if (i130 < 6) {
            long i253 = i5 + i133;
            uchar v254 = in1[i253];
            uchar v255 = in1[i253 + 9];
            uchar v256 = in1[i253 + 18];
            uchar v257 = in1[i253 + 27];
            int v258 = as_int((uchar4)(v254, v255, v256, v257));
            v134 = v258;
        } else {
            v134 = (int)((int)(0L));
        }
        if (i135 < 6) {
            long i259 = i5 + i138;
            uchar v260 = in1[i259];
            uchar v261 = in1[i259 + 9];
            uchar v262 = in1[i259 + 18];
            uchar v263 = in1[i259 + 27];
            int v264 = as_int((uchar4)(v260, v261, v262, v263));
            v139 = v264;
        } else {
            v139 = (int)((int)(0L));
        }
        if (i140 < 6) {
            long i265 = i5 + i143;
            uchar v266 = in1[i265];
            uchar v267 = in1[i265 + 9];
            uchar v268 = in1[i265 + 18];
            uchar v269 = in1[i265 + 27];
            int v270 = as_int((uchar4)(v266, v267, v268, v269));
            v144 = v270;
        } else {
            v144 = (int)((int)(0L));
        }
        if (i145 < 6) {
            long i271 = i5 + i148;
            uchar v272 = in1[i271];
            uchar v273 = in1[i271 + 9];
            uchar v274 = in1[i271 + 18];
            uchar v275 = in1[i271 + 27];
            int v276 = as_int((uchar4)(v272, v273, v274, v275));
            v149 = v276;
        } else {
            v149 = (int)((int)(0L));
        }
        if (i150 < 6) {
            long i277 = i5 + i153;
            uchar v278 = in1[i277];
            uchar v279 = in1[i277 + 9];
            uchar v280 = in1[i277 + 18];
            uchar v281 = in1[i277 + 27];
            int v282 = as_int((uchar4)(v278, v279, v280, v281));
            v154 = v282;
        } else {
            v154 = (int)((int)(0L));
        }
        if (i155 < 6) {
            long i283 = i5 + i158;
            uchar v284 = in1[i283];
            uchar v285 = in1[i283 + 9];
            uchar v286 = in1[i283 + 18];
            uchar v287 = in1[i283 + 27];
            int v288 = as_int((uchar4)(v284, v285, v286, v287));
            v159 = v288;
        } else {
            v159 = (int)((int)(0L));
        }
        if (i160 < 6) {
            long i289 = i5 + i163;
            uchar v290 = in1[i289];
            uchar v291 = in1[i289 + 9];
            uchar v292 = in1[i289 + 18];
            uchar v293 = in1[i289 + 27];
            int v294 = as_int((uchar4)(v290, v291, v292, v293));
            v164 = v294;
        } else {
            v164 = (int)((int)(0L));
        }
        if (i165 < 6) {
            long i295 = i5 + i168;
            uchar v296 = in1[i295];
            uchar v297 = in1[i295 + 9];
            uchar v298 = in1[i295 + 18];
            uchar v299 = in1[i295 + 27];
            int v300 = as_int((uchar4)(v296, v297, v298, v299));
            v169 = v300;
        } else {
            v169 = (int)((int)(0L));
        }
        if (i170 < 6) {
            long i301 = i5 + i173;
            uchar v302 = in1[i301];
            uchar v303 = in1[i301 + 9];
            uchar v304 = in1[i301 + 18];
            uchar v305 = in1[i301 + 27];
            int v306 = as_int((uchar4)(v302, v303, v304, v305));
            v174 = v306;
        } else {
            v174 = (int)((int)(0L));
        }
        l94[i97] = v99;
        l94[i102] = v104;
        l94[i107] = v109;
        l94[i112] = v114;
        l94[i117] = v119;
        l94[i122] = v124;
        l94[i127] = v129;
        l94[i132] = v134;
        l94[i137] = v139;
        l94[i142] = v144;
        l94[i147] = v149;
        l94[i152] = v154;
        l94[i157] = v159;
        l94[i162] = v164;
        l94[i167] = v169;
        l94[i172] = v174;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long s = 0; s < 1; s++) {
            long i307 = (s + 1) * 16;
            if (s + 1 < 1) {
                long i308 = i12 + i307 * 4;
                if (i307 + i14 < 6) {
                    char4 v309 = vload4(0, in0 + (i308 + i17));
                    int v310 = as_int(v309);
                    v18 = v310;
                } else {
                    v18 = (int)((int)(0L));
                }
                if (i307 + i19 < 6) {
                    char4 v311 = vload4(0, in0 + (i308 + i22));
                    int v312 = as_int(v311);
                    v23 = v312;
                } else {
                    v23 = (int)((int)(0L));
                }
                if (i307 + i24 < 6) {
                    char4 v313 = vload4(0, in0 + (i308 + i27));
                    int v314 = as_int(v313);
                    v28 = v314;
                } else {
                    v28 = (int)((int)(0L));
                }
                if (i307 + i29 < 6) {
                    char4 v315 = vload4(0, in0 + (i308 + i32));
                    int v316 = as_int(v315);
                    v33 = v316;
                } else {
                    v33 = (int)((int)(0L));
                }
                if (i307 + i34 < 6) {
                    char4 v317 = vload4(0, in0 + (i308 + i37));
                    int v318 = as_int(v317);
                    v38 = v318;
                } else {
                    v38 = (int)((int)(0L));
                }
                if (i307 + i39 < 6) {
                    char4 v319 = vload4(0, in0 + (i308 + i42));
                    int v320 = as_int(v319);
                    v43 = v320;
                } else {
                    v43 = (int)((int)(0L));
                }
                if (i307 + i44 < 6) {
                    char4 v321 = vload4(0, in0 + (i308 + i47));
                    int v322 = as_int(v321);
                    v48 = v322;
                } else {
                    v48 = (int)((int)(0L));
                }
                if (i307 + i49 < 6) {
                    char4 v323 = vload4(0, in0 + (i308 + i52));
                    int v324 = as_int(v323);
                    v53 = v324;
                } else {
                    v53 = (int)((int)(0L));
                }
                if (i307 + i54 < 6) {
                    char4 v325 = vload4(0, in0 + (i308 + i57));
                    int v326 = as_int(v325);
                    v58 = v326;
                } else {
                    v58 = (int)((int)(0L));
                }
                if (i307 + i59 < 6) {
                    char4 v327 = vload4(0, in0 + (i308 + i62));
                    int v328 = as_int(v327);
                    v63 = v328;
                } else {
                    v63 = (int)((int)(0L));
                }
                if (i307 + i64 < 6) {
                    char4 v329 = vload4(0, in0 + (i308 + i67));
                    int v330 = as_int(v329);
                    v68 = v330;
                } else {
                    v68 = (int)((int)(0L));
                }
                if (i307 + i69 < 6) {
                    char4 v331 = vload4(0, in0 + (i308 + i72));
                    int v332 = as_int(v331);
                    v73 = v332;
                } else {
                    v73 = (int)((int)(0L));
                }
                if (i307 + i74 < 6) {
                    char4 v333 = vload4(0, in0 + (i308 + i77));
                    int v334 = as_int(v333);
                    v78 = v334;
                } else {
                    v78 = (int)((int)(0L));
                }
                if (i307 + i79 < 6) {
                    char4 v335 = vload4(0, in0 + (i308 + i82));
                    int v336 = as_int(v335);
                    v83 = v336;
                } else {
                    v83 = (int)((int)(0L));
                }
                if (i307 + i84 < 6) {
                    char4 v337 = vload4(0, in0 + (i308 + i87));
                    int v338 = as_int(v337);
                    v88 = v338;
                } else {
                    v88 = (int)((int)(0L));
                }
                if (i307 + i89 < 6) {
                    char4 v339 = vload4(0, in0 + (i308 + i92));
                    int v340 = as_int(v339);
                    v93 = v340;
                } else {
                    v93 = (int)((int)(0L));
                }
                long i341 = i5 + i307 * 36;
                if (i307 + i95 < 6) {
                    long i342 = i341 + i98;
                    uchar v343 = in1[i342];
                    uchar v344 = in1[i342 + 9];
                    uchar v345 = in1[i342 + 18];
                    uchar v346 = in1[i342 + 27];
                    int v347 = as_int((uchar4)(v343, v344, v345, v346));
                    v99 = v347;
                } else {
                    v99 = (int)((int)(0L));
                }
                if (i307 + i100 < 6) {
                    long i348 = i341 + i103;
                    uchar v349 = in1[i348];
                    uchar v350 = in1[i348 + 9];
                    uchar v351 = in1[i348 + 18];
                    uchar v352 = in1[i348 + 27];
                    int v353 = as_int((uchar4)(v349, v350, v351, v352));
                    v104 = v353;
                } else {
                    v104 = (int)((int)(0L));
                }
                if (i307 + i105 < 6) {
                    long i354 = i341 + i108;
                    uchar v355 = in1[i354];
                    uchar v356 = in1[i354 + 9];
                    uchar v357 = in1[i354 + 18];
                    uchar v358 = in1[i354 + 27];
                    int v359 = as_int((uchar4)(v355, v356, v357, v358));
                    v109 = v359;
                } else {
                    v109 = (int)((int)(0L));
                }
                if (i307 + i110 < 6) {
                    long i360 = i341 + i113;
                    uchar v361 = in1[i360];
                    uchar v362 = in1[i360 + 9];
                    uchar v363 = in1[i360 + 18];
                    uchar v364 = in1[i360 + 27];
                    int v365 = as_int((uchar4)(v361, v362, v363, v364));
                    v114 = v365;
                } else {
                    v114 = (int)((int)(0L));
                }
                if (i307 + i115 < 6) {
                    long i366 = i341 + i118;
                    uchar v367 = in1[i366];
                    uchar v368 = in1[i366 + 9];
                    uchar v369 = in1[i366 + 18];
                    uchar v370 = in1[i366 + 27];
                    int v371 = as_int((uchar4)(v367, v368, v369, v370));
                    v119 = v371;
                } else {
                    v119 = (int)((int)(0L));
                }
                if (i307 + i120 < 6) {
                    long i372 = i341 + i123;
                    uchar v373 = in1[i372];
                    uchar v374 = in1[i372 + 9];
                    uchar v375 = in1[i372 + 18];
                    uchar v376 = in1[i372 + 27];
                    int v377 = as_int((uchar4)(v373, v374, v375, v376));
                    v124 = v377;
                } else {
                    v124 = (int)((int)(0L));
                }
                if (i307 + i125 < 6) {
                    long i378 = i341 + i128;
                    uchar v379 = in1[i378];
                    uchar v380 = in1[i378 + 9];
                    uchar v381 = in1[i378 + 18];
                    uchar v382 = in1[i378 + 27];
                    int v383 = as_int((uchar4)(v379, v380, v381, v382));
                    v129 = v383;
                } else {
                    v129 = (int)((int)(0L));
                }
                if (i307 + i130 < 6) {
                    long i384 = i341 + i133;
                    uchar v385 = in1[i384];
                    uchar v386 = in1[i384 + 9];
                    uchar v387 = in1[i384 + 18];
                    uchar v388 = in1[i384 + 27];
                    int v389 = as_int((uchar4)(v385, v386, v387, v388));
                    v134 = v389;
                } else {
                    v134 = (int)((int)(0L));
                }
                if (i307 + i135 < 6) {
                    long i390 = i341 + i138;
                    uchar v391 = in1[i390];
                    uchar v392 = in1[i390 + 9];
                    uchar v393 = in1[i390 + 18];
                    uchar v394 = in1[i390 + 27];
                    int v395 = as_int((uchar4)(v391, v392, v393, v394));
                    v139 = v395;
                } else {
                    v139 = (int)((int)(0L));
                }
                if (i307 + i140 < 6) {
                    long i396 = i341 + i143;
                    uchar v397 = in1[i396];
                    uchar v398 = in1[i396 + 9];
                    uchar v399 = in1[i396 + 18];
                    uchar v400 = in1[i396 + 27];
                    int v401 = as_int((uchar4)(v397, v398, v399, v400));
                    v144 = v401;
                } else {
                    v144 = (int)((int)(0L));
                }
                if (i307 + i145 < 6) {
                    long i402 = i341 + i148;
                    uchar v403 = in1[i402];
                    uchar v404 = in1[i402 + 9];
                    uchar v405 = in1[i402 + 18];
                    uchar v406 = in1[i402 + 27];
                    int v407 = as_int((uchar4)(v403, v404, v405, v406));
                    v149 = v407;
                } else {
                    v149 = (int)((int)(0L));
                }
                if (i307 + i150 < 6) {
                    long i408 = i341 + i153;
                    uchar v409 = in1[i408];
                    uchar v410 = in1[i408 + 9];
                    uchar v411 = in1[i408 + 18];
                    uchar v412 = in1[i408 + 27];
                    int v413 = as_int((uchar4)(v409, v410, v411, v412));
                    v154 = v413;
                } else {
                    v154 = (int)((int)(0L));
                }
                if (i307 + i155 < 6) {
                    long i414 = i341 + i158;
                    uchar v415 = in1[i414];
                    uchar v416 = in1[i414 + 9];
                    uchar v417 = in1[i414 + 18];
                    uchar v418 = in1[i414 + 27];
                    int v419 = as_int((uchar4)(v415, v416, v417, v418));
                    v159 = v419;
                } else {
                    v159 = (int)((int)(0L));
                }
                if (i307 + i160 < 6) {
                    long i420 = i341 + i163;
                    uchar v421 = in1[i420];
                    uchar v422 = in1[i420 + 9];
                    uchar v423 = in1[i420 + 18];
                    uchar v424 = in1[i420 + 27];
                    int v425 = as_int((uchar4)(v421, v422, v423, v424));
                    v164 = v425;
                } else {
                    v164 = (int)((int)(0L));
                }
                if (i307 + i165 < 6) {
                    long i426 = i341 + i168;
                    uchar v427 = in1[i426];
                    uchar v428 = in1[i426 + 9];
                    uchar v429 = in1[i426 + 18];
                    uchar v430 = in1[i426 + 27];
                    int v431 = as_int((uchar4)(v427, v428, v429, v430));
                    v169 = v431;
                } else {
                    v169 = (int)((int)(0L));
                }
                if (i307 + i170 < 6) {
                    long i432 = i341 + i173;
                    uchar v433 = in1[i432];
                    uchar v434 = in1[i432 + 9];
                    uchar v435 = in1[i432 + 18];
                    uchar v436 = in1[i432 + 27];
                    int v437 = as_int((uchar4)(v433, v434, v435, v436));
                    v174 = v437;
                } else {
                    v174 = (int)((int)(0L));
                }
            }
            long i438 = s % 2 * 320;
            long i439 = s % 2 * 320;
            long i440 = lid / 4;
            long i441 = lid % 4;
            #pragma unroll
            for (long k = 0; k < 16; k++) {
                int4 v442 = *(__local int4 *)(l13 + i438 + k * 20 + i440 * 4);
                int4 v443 = *(__local int4 *)(l94 + i439 + k * 20 + i441 * 4);
                int4 v444 = (int4)(v442.s0);
                int4 v445 = (int4)(fc_dot_char_uchar(v444.s0, v443.s0, v175.s0), fc_dot_char_uchar(v444.s1, v443.s1, v175.s1), fc_dot_char_uchar(v444.s2, v443.s2, v175.s2), fc_dot_char_uchar(v444.s3, v443.s3, v175.s3));
                v175 = v445;
                int4 v446 = (int4)(v442.s1);
                int4 v447 = (int4)(fc_dot_char_uchar(v446.s0, v443.s0, v176.s0), fc_dot_char_uchar(v446.s1, v443.s1, v176.s1), fc_dot_char_uchar(v446.s2, v443.s2, v176.s2), fc_dot_char_uchar(v446.s3, v443.s3, v176.s3));
                v176 = v447;
                int4 v448 = (int4)(v442.s2);
                int4 v449 = (int4)(fc_dot_char_uchar(v448.s0, v443.s0, v177.s0), fc_dot_char_uchar(v448.s1, v443.s1, v177.s1), fc_dot_char_uchar(v448.s2, v443.s2, v177.s2), fc_dot_char_uchar(v448.s3, v443.s3, v177.s3));
                v177 = v449;
                int4 v450 = (int4)(v442.s3);
                int4 v451 = (int4)(fc_dot_char_uchar(v450.s0, v443.s0, v178.s0), fc_dot_char_uchar(v450.s1, v443.s1, v178.s1), fc_dot_char_uchar(v450.s2, v443.s2, v178.s2), fc_dot_char_uchar(v450.s3, v443.s3, v178.s3));
                v178 = v451;
            }
            if (s + 1 < 1) {
                l13[(s + 1) % 2 * 320 + i16] = v18;
                l13[(s + 1) % 2 * 320 + i21] = v23;
                l13[(s + 1) % 2 * 320 + i26] = v28;
                l13[(s + 1) % 2 * 320 + i31] = v33;
                l13[(s + 1) % 2 * 320 + i36] = v38;
                l13[(s + 1) % 2 * 320 + i41] = v43;
                l13[(s + 1) % 2 * 320 + i46] = v48;
                l13[(s + 1) % 2 * 320 + i51] = v53;
                l13[(s + 1) % 2 * 320 + i56] = v58;
                l13[(s + 1) % 2 * 320 + i61] = v63;
                l13[(s + 1) % 2 * 320 + i66] = v68;
                l13[(s + 1) % 2 * 320 + i71] = v73;
                l13[(s + 1) % 2 * 320 + i76] = v78;
                l13[(s + 1) % 2 * 320 + i81] = v83;
                l13[(s + 1) % 2 * 320 + i86] = v88;
                l13[(s + 1) % 2 * 320 + i91] = v93;
                l94[(s + 1) % 2 * 320 + i97] = v99;
                l94[(s + 1) % 2 * 320 + i102] = v104;
                l94[(s + 1) % 2 * 320 + i107] = v109;
                l94[(s + 1) % 2 * 320 + i112] = v114;
                l94[(s + 1) % 2 * 320 + i117] = v119;
                l94[(s + 1) % 2 * 320 + i122] = v124;
                l94[(s + 1) % 2 * 320 + i127] = v129;
                l94[(s + 1) % 2 * 320 + i132] = v134;
                l94[(s + 1) % 2 * 320 + i137] = v139;
                l94[(s + 1) % 2 * 320 + i142] = v144;
                l94[(s + 1) % 2 * 320 + i147] = v149;
                l94[(s + 1) % 2 * 320 + i152] = v154;
                l94[(s + 1) % 2 * 320 + i157] = v159;
                l94[(s + 1) % 2 * 320 + i162] = v164;
                l94[(s + 1) % 2 * 320 + i167] = v169;
                l94[(s + 1) % 2 * 320 + i172] = v174;
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        }
        long i452 = lid / 4;
        long i453 = lid % 4;
        long i454 = i4 + i452 * 4;
        if (i454 < n) {
            long i455 = i5 + i453 * 4;
            long i456 = min(4L, 9 - i455);
            if (i455 < 9) {
                long i457 = i454 / 9;
                long i458 = i454 % 9;
                fc_scatter_int32_4(v175, out0 + (i457 * 81 + i458 * 9 + i455), 1, i456);
            }
        }
        long i459 = i4 + i452 * 4 + 1;
        if (i459 < n) {
            long i460 = i5 + i453 * 4;
            long i461 = min(4L, 9 - i460);
            if (i460 < 9) {
                long i462 = i459 / 9;
                long i463 = i459 % 9;
                fc_scatter_int32_4(v176, out0 + (i462 * 81 + i463 * 9 + i460), 1, i461);
            }
        }
        long i464 = i4 + i452 * 4 + 2;
        if (i464 < n) {
            long i465 = i5 + i453 * 4;
            long i466 = min(4L, 9 - i465);
            if (i465 < 9) {
                long i467 = i464 / 9;
                long i468 = i464 % 9;
                fc_scatter_int32_4(v177, out0 + (i467 * 81 + i468 * 9 + i465), 1, i466);
            }
        }
        long i469 = i4 + i452 * 4 + 3;
        if (i469 < n) {
            long i470 = i5 + i453 * 4;
            long i471 = min(4L, 9 - i470);
            if (i470 < 9) {
                long i472 = i469 / 9;
                long i473 = i469 % 9;
                fc_scatter_int32_4(v178, out0 + (i472 * 81 + i473 * 9 + i470), 1, i471);
            }
        }
    }
}
