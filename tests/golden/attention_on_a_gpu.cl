#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local float tiles[3840] __attribute__((aligned(64)));
    __local float weights[4352] __attribute__((aligned(64)));
    __local float exchange[1024] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long b = gid; b < n; b += gsize) {
        long i0 = n / 2;
        long i1 = b % i0;
        long i2 = i1 / 1;
        long i3 = i1 % 1;
        long i4 = (1 - b / i0) * 64;
        long i5 = min(i4 + 64, (long)70) - 1;
        int i6 = (int)(lid / 2 % 16);
        int i7 = (int)(lid / 32 * 2 + lid % 2);
        long i8 = i4 + i7;
        long i9 = min(i8 + 0, i5);
        long i10 = min(i8 + 8, i5);
        long i11 = min(i8 + 16, i5);
        long i12 = min(i8 + 24, i5);
        long i13 = min(i8 + 32, i5);
        long i14 = min(i8 + 40, i5);
        long i15 = min(i8 + 48, i5);
        long i16 = min(i8 + 56, i5);
        long i17 = i9 + 1;
        long i18 = i10 + 1;
        long i19 = i11 + 1;
        long i20 = i12 + 1;
        long i21 = i13 + 1;
        long i22 = i14 + 1;
        long i23 = i15 + 1;
        long i24 = i16 + 1;
        long i25 = i2 * 1120;
        long i26 = i2 * 1120;
        long i27 = i2 * 1120;
        int i28 = (int)(i7 * 8);
        float v29 = (float)(-0x1.fffffe0000000p+127f);
        float v30 = (float)(-0x1.fffffe0000000p+127f);
        float v31 = (float)(-0x1.fffffe0000000p+127f);
        float v32 = (float)(-0x1.fffffe0000000p+127f);
        float v33 = (float)(-0x1.fffffe0000000p+127f);
        float v34 = (float)(-0x1.fffffe0000000p+127f);
        float v35 = (float)(-0x1.fffffe0000000p+127f);
        float v36 = (float)(-0x1.fffffe0000000p+127f);
        float v37 = (float)(0x0.0p+0f);
        float v38 = (float)(0x0.0p+0f);
        float v39 = (float)(0x0.0p+0f);
        float v40 = (float)(0x0.0p+0f);
        float v41 = (float)(0x0.0p+0f);
        float v42 = (float)(0x0.0p+0f);
        float v43 = (float)(0x0.0p+0f);
        float v44 = (float)(0x0.0p+0f);
        float v45 = (float)(0x0.0p+0f);
        float v46 = (float)(0x0.0p+0f);
        float v47 = (float)(0x0.0p+0f);
        float v48 = (float)(0x0.0p+0f);
        float v49 = (float)(0x0.0p+0f);
        float v50 = (float)(0x0.0p+0f);
        float v51 = (float)(0x0.0p+0f);
        float v52 = (float)(0x0.0p+0f);
        long i53 = i5 + 1;
        float v54 = (float)(0x1.0000000000000p-2f);
        #pragma unroll 4
        for (long u = 0; u < 2; u++) {
            int i55 = (int)((lid + u * 128) / 4);
            int i56 = (int)((lid + u * 128) % 4 * 4);
            int i57 = (int)(i55 * 20 + i56);
            float4 v58 = *(const __global float4 *)(in0 + (i25 + min((long)(i4 + i55), i5) * 16 + i56));
            float4 v59 = (float4)(v54);
            float4 v60 = (v58 * v59);
            *(__local float4 *)(tiles + 0 + i57) = v60;
        }
        int i61 = (int)(lid / 4);
        int i62 = (int)(lid % 4 * 4);
        int i63 = (int)(i61 * 16 + i62);
        int i64 = (int)(lid / 4);
        int i65 = (int)(lid % 4 * 4);
        int i66 = (int)(i64 * 20 + i65);
        float4 v67 = (float4)(0x0.0p+0f);
        float4 v68 = (float4)(0x0.0p+0f);
        if (0 < i53) {
            float4 v69 = *(const __global float4 *)(in0 + (i26 + min((long)(0 + i64), (long)69) * 16 + i65));
            v67 = v69;
            float4 v70 = *(const __global float4 *)(in0 + (i26 + min((long)(0 + (i64 + 32)), (long)69) * 16 + i65));
            v68 = v70;
            *(__local float4 *)(tiles + 1280 + ((0 + 0 / 64) % 2) * 1280 + i66) = v67;
            *(__local float4 *)(tiles + 1280 + ((0 + 0 / 64) % 2) * 1280 + i66 + 640) = v68;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long t = 0; t < i53; t += 64) {
            float4 v71 = (float4)(-0x0.0p+0f);
            float4 v72 = (float4)(-0x0.0p+0f);
            float4 v73 = (float4)(-0x0.0p+0f);
            float4 v74 = (float4)(-0x0.0p+0f);
            float4 v75 = (float4)(-0x0.0p+0f);
            float4 v76 = (float4)(-0x0.0p+0f);
            float4 v77 = (float4)(-0x0.0p+0f);
            float4 v78 = (float4)(-0x0.0p+0f);
            for (long s = 0; s < 1; s++) {
                if (s + 1 < 1) {
                    float4 v79 = *(const __global float4 *)(in0 + (i26 + min((long)(t + i64), (long)69) * 16 + ((s + 1) * 16 + i65)));
                    v67 = v79;
                    float4 v80 = *(const __global float4 *)(in0 + (i26 + min((long)(t + (i64 + 32)), (long)69) * 16 + ((s + 1) * 16 + i65)));
                    v68 = v80;
                } else {
                    float4 v81 = *(const __global float4 *)(in0 + (i27 + min((long)(t + 0 * 32 + i61), (long)69) * 16 + min(i62, 0)));
                    v67 = v81;
                }
                int i82 = (int)(((s + t / 64) % 2) * 1280);
                int i83 = (int)(1280 + i82 + i6 * 20);
                int i84 = (int)(s * 16 + i7 * 20);
                #pragma unroll 8
                for (long k = 0; k < 16; k += 4) {
                    float4 v85 = *(__local float4 *)(tiles + i83 + 0 + k);
                    float4 v86 = *(__local float4 *)(tiles + i83 + 320 + k);
                    float4 v87 = *(__local float4 *)(tiles + i83 + 640 + k);
                    float4 v88 = *(__local float4 *)(tiles + i83 + 960 + k);
                    float4 v89 = (float4)(v85.s0, v86.s0, v87.s0, v88.s0);
                    float4 v90 = (float4)(v85.s1, v86.s1, v87.s1, v88.s1);
                    float4 v91 = (float4)(v85.s2, v86.s2, v87.s2, v88.s2);
                    float4 v92 = (float4)(v85.s3, v86.s3, v87.s3, v88.s3);
                    float4 v93 = *(__local float4 *)(tiles + i84 + 0 + k);
                    float4 v94 = (float4)(v93.s0);
                    float4 v95 = fma(v94, v89, v71);
                    float4 v96 = (float4)(v93.s1);
                    float4 v97 = fma(v96, v90, v95);
                    float4 v98 = (float4)(v93.s2);
                    float4 v99 = fma(v98, v91, v97);
                    float4 v100 = (float4)(v93.s3);
                    float4 v101 = fma(v100, v92, v99);
                    v71 = v101;
                    float4 v102 = *(__local float4 *)(tiles + i84 + 160 + k);
                    float4 v103 = (float4)(v102.s0);
                    float4 v104 = fma(v103, v89, v72);
                    float4 v105 = (float4)(v102.s1);
                    float4 v106 = fma(v105, v90, v104);
                    float4 v107 = (float4)(v102.s2);
                    float4 v108 = fma(v107, v91, v106);
                    float4 v109 = (float4)(v102.s3);
                    float4 v110 = fma(v109, v92, v108);
                    v72 = v110;
                    float4 v111 = *(__local float4 *)(tiles + i84 + 320 + k);
                    float4 v112 = (float4)(v111.s0);
                    float4 v113 = fma(v112, v89, v73);
                    float4 v114 = (float4)(v111.s1);
                    float4 v115 = fma(v114, v90, v113);
                    float4 v116 = (float4)(v111.s2);
                    float4 v117 = fma(v116, v91, v115);
                    float4 v118 = (float4)(v111.s3);
                    float4 v119 = fma(v118, v92, v117);
                    v73 = v119;
                    float4 v120 = *(__local float4 *)(tiles + i84 + 480 + k);
                    float4 v121 = (float4)(v120.s0);
                    float4 v122 = fma(v121, v89, v74);
                    float4 v123 = (float4)(v120.s1);
                    float4 v124 = fma(v123, v90, v122);
                    float4 v125 = (float4)(v120.s2);
                    float4 v126 = fma(v125, v91, v124);
                    float4 v127 = (float4)(v120.s3);
                    float4 v128 = fma(v127, v92, v126);
                    v74 = v128;
                    float4 v129 = *(__local float4 *)(tiles + i84 + 640 + k);
                    float4 v130 = (float4)(v129.s0);
                    float4 v131 = fma(v130, v89, v75);
                    float4 v132 = (float4)(v129.s1);
                    float4 v133 = fma(v132, v90, v131);
                    float4 v134 = (float4)(v129.s2);
                    float4 v135 = fma(v134, v91, v133);
                    float4 v136 = (float4)(v129.s3);
                    float4 v137 = fma(v136, v92, v135);
                    v75 = v137;
                    float4 v138 = *(__local float4 *)(tiles + i84 + 800 + k);
                    float4 v139 = (float4)(v138.s0);
                    float4 v140 = fma(v139, v89, v76);
                    float4 v141 = (float4)(v138.s1);
                    float4 v142 = fma(v141, v90, v140);
                    float4 v143 = (float4)(v138.s2);
                    float4 v144 = fma(v143, v91, v142);
                    float4 v145 = (float4)(v138.s3);
                    float4 v146 = fma(v145, v92, v144);
                    v76 = v146;
                    float4 v147 = *(__local float4 *)(tiles + i84 + 960 + k);
                    float4 v148 = (float4)(v147.s0);
                    float4 v149 = fma(v148, v89, v77);
                    float4 v150 = (float4)(v147.s1);
                    float4 v151 = fma(v150, v90, v149);
                    float4 v152 = (float4)(v147.s2);
                    float4 v153 = fma(v152, v91, v151);
                    float4 v154 = (float4)(v147.s3);
                    float4 v155 = fma(v154, v92, v153);
                    v77 = v155;
                    float4 v156 = *(__local float4 *)(tiles + i84 + 1120 + k);
                    float4 v157 = (float4)(v156.s0);
                    float4 v158 = fma(v157, v89, v78);
                    float4 v159 = (float4)(v156.s1);
                    float4 v160 = fma(v159, v90, v158);
                    float4 v161 = (float4)(v156.s2);
                    float4 v162 = fma(v161, v91, v160);
                    float4 v163 = (float4)(v156.s3);
                    float4 v164 = fma(v163, v92, v162);
                    v78 = v164;
                }
                if (s + 1 < 1) {
                    *(__local float4 *)(tiles + 1280 + (((s + 1) + t / 64) % 2) * 1280 + i66) = v67;
                    *(__local float4 *)(tiles + 1280 + (((s + 1) + t / 64) % 2) * 1280 + i66 + 640) = v68;
                } else {
                    *(__local float4 *)(tiles + 1280 + (((s + 1) + t / 64) % 2) * 1280 + i63) = v67;
                }
                barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            }
            long i165 = t + i6;
            float4 v166 = (float4)(-INFINITY);
            int4 v167 = ((int4)(0, 1, 2, 3) < (int4)((int)((i17 - i165 + 15) / 16)));
            float4 v168 = (v167 ? v71 : v166);
            float4 v169 = (float4)(-INFINITY);
            int4 v170 = ((int4)(0, 1, 2, 3) < (int4)((int)((i18 - i165 + 15) / 16)));
            float4 v171 = (v170 ? v72 : v169);
            float4 v172 = (float4)(-INFINITY);
            int4 v173 = ((int4)(0, 1, 2, 3) < (int4)((int)((i19 - i165 + 15) / 16)));
            float4 v174 = (v173 ? v73 : v172);
            float4 v175 = (float4)(-INFINITY);
            int4 v176 = ((int4)(0, 1, 2, 3) < (int4)((int)((i20 - i165 + 15) / 16)));
            float4 v177 = (v176 ? v74 : v175);
            float4 v178 = (float4)(-INFINITY);
            int4 v179 = ((int4)(0, 1, 2, 3) < (int4)((int)((i21 - i165 + 15) / 16)));
            float4 v180 = (v179 ? v75 : v178);
            float4 v181 = (float4)(-INFINITY);
            int4 v182 = ((int4)(0, 1, 2, 3) < (int4)((int)((i22 - i165 + 15) / 16)));
            float4 v183 = (v182 ? v76 : v181);
            float4 v184 = (float4)(-INFINITY);
            int4 v185 = ((int4)(0, 1, 2, 3) < (int4)((int)((i23 - i165 + 15) / 16)));
            float4 v186 = (v185 ? v77 : v184);
            float4 v187 = (float4)(-INFINITY);
            int4 v188 = ((int4)(0, 1, 2, 3) < (int4)((int)((i24 - i165 + 15) / 16)));
            float4 v189 = (v188 ? v78 : v187);
            float2 v190 = v168.lo;
            float2 v191 = v168.hi;
            float2 v192 = fmax(v190, v191);
            float v193 = v192.lo;
            float v194 = v192.hi;
            float v195 = fmax(v193, v194);
            float2 v196 = v171.lo;
            float2 v197 = v171.hi;
            float2 v198 = fmax(v196, v197);
            float v199 = v198.lo;
            float v200 = v198.hi;
            float v201 = fmax(v199, v200);
            float2 v202 = v174.lo;
            float2 v203 = v174.hi;
            float2 v204 = fmax(v202, v203);
            float v205 = v204.lo;
            float v206 = v204.hi;
            float v207 = fmax(v205, v206);
            float2 v208 = v177.lo;
            float2 v209 = v177.hi;
            float2 v210 = fmax(v208, v209);
            float v211 = v210.lo;
            float v212 = v210.hi;
            float v213 = fmax(v211, v212);
            float2 v214 = v180.lo;
            float2 v215 = v180.hi;
            float2 v216 = fmax(v214, v215);
            float v217 = v216.lo;
            float v218 = v216.hi;
            float v219 = fmax(v217, v218);
            float2 v220 = v183.lo;
            float2 v221 = v183.hi;
            float2 v222 = fmax(v220, v221);
            float v223 = v222.lo;
            float v224 = v222.hi;
            float v225 = fmax(v223, v224);
            float2 v226 = v186.lo;
            float2 v227 = v186.hi;
            float2 v228 = fmax(v226, v227);
            float v229 = v228.lo;
            float v230 = v228.hi;
            float v231 = fmax(v229, v230);
            float2 v232 = v189.lo;
            float2 v233 = v189.hi;
            float2 v234 = fmax(v232, v233);
            float v235 = v234.lo;
            float v236 = v234.hi;
            float v237 = fmax(v235, v236);
            exchange[(i28 + 0) * 16 + i6] = v195;
            exchange[(i28 + 1) * 16 + i6] = v201;
            exchange[(i28 + 2) * 16 + i6] = v207;
            exchange[(i28 + 3) * 16 + i6] = v213;
            exchange[(i28 + 4) * 16 + i6] = v219;
            exchange[(i28 + 5) * 16 + i6] = v225;
            exchange[(i28 + 6) * 16 + i6] = v231;
            exchange[(i28 + 7) * 16 + i6] = v237;
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            float4 v238 = *(__local float4 *)(exchange + (i28 + 0) * 16 + 0);
            float4 v239 = *(__local float4 *)(exchange + (i28 + 0) * 16 + 4);
            float4 v240 = *(__local float4 *)(exchange + (i28 + 0) * 16 + 8);
            float4 v241 = *(__local float4 *)(exchange + (i28 + 0) * 16 + 12);
            float4 v242 = fmax(v238, v240);
            float4 v243 = fmax(v239, v241);
            float4 v244 = fmax(v242, v243);
            float2 v245 = v244.lo;
            float2 v246 = v244.hi;
            float2 v247 = fmax(v245, v246);
            float v248 = v247.lo;
            float v249 = v247.hi;
            float v250 = fmax(v248, v249);
            float4 v251 = *(__local float4 *)(exchange + (i28 + 1) * 16 + 0);
            float4 v252 = *(__local float4 *)(exchange + (i28 + 1) * 16 + 4);
            float4 v253 = *(__local float4 *)(exchange + (i28 + 1) * 16 + 8);
            float4 v254 = *(__local float4 *)(exchange + (i28 + 1) * 16 + 12);
            float4 v255 = fmax(v251, v253);
            float4 v256 = fmax(v252, v254);
            float4 v257 = fmax(v255, v256);
            float2 v258 = v257.lo;
            float2 v259 = v257.hi;
            float2 v260 = fmax(v258, v259);
            float v261 = v260.lo;
            float v262 = v260.hi;
            float v263 = fmax(v261, v262);
            float4 v264 = *(__local float4 *)(exchange + (i28 + 2) * 16 + 0);
            float4 v265 = *(__local float4 *)(exchange + (i28 + 2) * 16 + 4);
            float4 v266 = *(__local float4 *)(exchange + (i28 + 2) * 16 + 8);
            float4 v267 = *(__local float4 *)(exchange + (i28 + 2) * 16 + 12);
            float4 v268 = fmax(v264, v266);
            float4 v269 = fmax(v265, v267);
            float4 v270 = fmax(v268, v269);
            float2 v271 = v270.lo;
            float2 v272 = v270.hi;
            float2 v273 = fmax(v271, v272);
            float v274 = v273.lo;
            float v275 = v273.hi;
            float v276 = fmax(v274, v275);
            float4 v277 = *(__local float4 *)(exchange + (i28 + 3) * 16 + 0);
            float4 v278 = *(__local float4 *)(exchange + (i28 + 3) * 16 + 4);
            float4 v279 = *(__local float4 *)(exchange + (i28 + 3) * 16 + 8);
            float4 v280 = *(__local float4 *)(exchange + (i28 + 3) * 16 + 12);
            float4 v281 = fmax(v277, v279);
            float4 v282 = fmax(v278, v280);
            float4 v283 = fmax(v281, v282);
            float2 v284 = v283.lo;
            float2 v285 = v283.hi;
            float2 v286 = fmax(v284, v285);
            float v287 = v286.lo;
            float v288 = v286.hi;
            float v289 = fmax(v287, v288);
            float4 v290 = *(__local float4 *)(exchange + (i28 + 4) * 16 + 0);
            float4 v291 = *(__local float4 *)(exchange + (i28 + 4) * 16 + 4);
            float4 v292 = *(__local float4 *)(exchange + (i28 + 4) * 16 + 8);
            float4 v293 = *(__local float4 *)(exchange + (i28 + 4) * 16 + 12);
            float4 v294 = fmax(v290, v292);
            float4 v295 = fmax(v291, v293);
            float4 v296 = fmax(v294, v295);
            float2 v297 = v296.lo;
            float2 v298 = v296.hi;
            float2 v299 = fmax(v297, v298);
            float v300 = v299.lo;
            float v301 = v299.hi;
            float v302 = fmax(v300, v301);
            float4 v303 = *(__local float4 *)(exchange + (i28 + 5) * 16 + 0);
            float4 v304 = *(__local float4 *)(exchange + (i28 + 5) * 16 + 4);
            float4 v305 = *(__local float4 *)(exchange + (i28 + 5) * 16 + 8);
            float4 v306 = *(__local float4 *)(exchange + (i28 + 5) * 16 + 12);
            float4 v307 = fmax(v303, v305);
            float4 v308 = fmax(v304, v306);
            float4 v309 = fmax(v307, v308);
            float2 v310 = v309.lo;
            float2 v311 = v309.hi;
            float2 v312 = fmax(v310, v311);
            float v313 = v312.lo;
            float v314 = v312.hi;
            float v315 = fmax(v313, v314);
            float4 v316 = *(__local float4 *)(exchange + (i28 + 6) * 16 + 0);
            float4 v317 = *(__local float4 *)(exchange + (i28 + 6) * 16 + 4);
            float4 v318 = *(__local float4 *)(exchange + (i28 + 6) * 16 + 8);
            float4 v319 = *(__local float4 *)(exchange + (i28 + 6) * 16 + 12);
            float4 v320 = fmax(v316, v318);
            float4 v321 = fmax(v317, v319);
            float4 v322 = fmax(v320, v321);
            float2 v323 = v322.lo;
            float2 v324 = v322.hi;
            float2 v325 = fmax(v323, v324);
            float v326 = v325.lo;
            float v327 = v325.hi;
            float v328 = fmax(v326, v327);
            float4 v329 = *(__local float4 *)(exchange + (i28 + 7) * 16 + 0);
            float4 v330 = *(__local float4 *)(exchange + (i28 + 7) * 16 + 4);
            float4 v331 = *(__local float4 *)(exchange + (i28 + 7) * 16 + 8);
            float4 v332 = *(__local float4 *)(exchange + (i28 + 7) * 16 + 12);
            float4 v333 = fmax(v329, v331);
            float4 v334 = fmax(v330, v332);
            float4 v335 = fmax(v333, v334);
            float2 v336 = v335.lo;
            float2 v337 = v335.hi;
            float2 v338 = fmax(v336, v337);
            float v339 = v338.lo;
            float v340 = v338.hi;
            float v341 = fmax(v339, v340);
            float v342 = fmax(v250, v29);
            float v343 = (v29 - v342);
            float v344 = exp(v343);
            float4 v345 = (float4)(v342);
            float4 v346 = (v168 - v345);
            float4 v347 = exp(v346);
            float v348 = v344;
            float v349 = (v37 * v348);
            float v350 = (float)(v347.s0);
            float v351 = (v349 + v350);
            float v352 = (float)(v347.s1);
            float v353 = (v351 + v352);
            float v354 = (float)(v347.s2);
            float v355 = (v353 + v354);
            float v356 = (float)(v347.s3);
            float v357 = (v355 + v356);
            v37 = v357;
            v29 = v342;
            float v358 = fmax(v263, v30);
            float v359 = (v30 - v358);
            float v360 = exp(v359);
            float4 v361 = (float4)(v358);
            float4 v362 = (v171 - v361);
            float4 v363 = exp(v362);
            float v364 = v360;
            float v365 = (v38 * v364);
            float v366 = (float)(v363.s0);
            float v367 = (v365 + v366);
            float v368 = (float)(v363.s1);
            float v369 = (v367 + v368);
            float v370 = (float)(v363.s2);
            float v371 = (v369 + v370);
            float v372 = (float)(v363.s3);
            float v373 = (v371 + v372);
            v38 = v373;
            v30 = v358;
            float v374 = fmax(v276, v31);
            float v375 = (v31 - v374);
            float v376 = exp(v375);
            float4 v377 = (float4)(v374);
            float4 v378 = (v174 - v377);
            float4 v379 = exp(v378);
            float v380 = v376;
            float v381 = (v39 * v380);
            float v382 = (float)(v379.s0);
            float v383 = (v381 + v382);
            float v384 = (float)(v379.s1);
            float v385 = (v383 + v384);
            float v386 = (float)(v379.s2);
            float v387 = (v385 + v386);
            float v388 = (float)(v379.s3);
            float v389 = (v387 + v388);
            v39 = v389;
            v31 = v374;
            float v390 = fmax(v289, v32);
            float v391 = (v32 - v390);
            float v392 = exp(v391);
            float4 v393 = (float4)(v390);
            float4 v394 = (v177 - v393);
            float4 v395 = exp(v394);
            float v396 = v392;
            float v397 = (v40 * v396);
            float v398 = (float)(v395.s0);
            float v399 = (v397 + v398);
            float v400 = (float)(v395.s1);
            float v401 = (v399 + v400);
            float v402 = (float)(v395.s2);
            float v403 = (v401 + v402);
            float v404 = (float)(v395.s3);
            float v405 = (v403 + v404);
            v40 = v405;
            v32 = v390;
            float v406 = fmax(v302, v33);
            float v407 = (v33 - v406);
            float v408 = exp(v407);
            float4 v409 = (float4)(v406);
            float4 v410 = (v180 - v409);
            float4 v411 = exp(v410);
            float v412 = v408;
            float v413 = (v41 * v412);
            float v414 = (float)(v411.s0);
            float v415 = (v413 + v414);
            float v416 = (float)(v411.s1);
            float v417 = (v415 + v416);
            float v418 = (float)(v411.s2);
            float v419 = (v417 + v418);
            float v420 = (float)(v411.s3);
            float v421 = (v419 + v420);
            v41 = v421;
            v33 = v406;
            float v422 = fmax(v315, v34);
            float v423 = (v34 - v422);
            float v424 = exp(v423);
            float4 v425 = (float4)(v422);
            float4 v426 = (v183 - v425);
            float4 v427 = exp(v426);
            float v428 = v424;
            float v429 = (v42 * v428);
            float v430 = (float)(v427.s0);
            float v431 = (v429 + v430);
            float v432 = (float)(v427.s1);
            float v433 = (v431 + v432);
            float v434 = (float)(v427.s2);
            float v435 = (v433 + v434);
            float v436 = (float)(v427.s3);
            float v437 = (v435 + v436);
            v42 = v437;
            v34 = v422;
            float v438 = fmax(v328, v35);
            float v439 = (v35 - v438);
            float v440 = exp(v439);
            float4 v441 = (float4)(v438);
            float4 v442 = (v186 - v441);
            float4 v443 = exp(v442);
            float v444 = v440;
            float v445 = (v43 * v444);
            float v446 = (float)(v443.s0);
            float v447 = (v445 + v446);
            float v448 = (float)(v443.s1);
            float v449 = (v447 + v448);
            float v450 = (float)(v443.s2);
            float v451 = (v449 + v450);
            float v452 = (float)(v443.s3);
            float v453 = (v451 + v452);
            v43 = v453;
            v35 = v438;
            float v454 = fmax(v341, v36);
            float v455 = (v36 - v454);
            float v456 = exp(v455);
            float4 v457 = (float4)(v454);
            float4 v458 = (v189 - v457);
            float4 v459 = exp(v458);
            float v460 = v456;
            float v461 = (v44 * v460);
            float v462 = (float)(v459.s0);
            float v463 = (v461 + v462);
            float v464 = (float)(v459.s1);
            float v465 = (v463 + v464);
            float v466 = (float)(v459.s2);
            float v467 = (v465 + v466);
            float v468 = (float)(v459.s3);
            float v469 = (v467 + v468);
            v44 = v469;
            v36 = v454;
            float4 v470 = (float4)(v347.s0, v363.s0, v379.s0, v395.s0);
            *(__local float4 *)(weights + (i6 + 0) * 68 + i28 + 0) = v470;
            float4 v471 = (float4)(v411.s0, v427.s0, v443.s0, v459.s0);
            *(__local float4 *)(weights + (i6 + 0) * 68 + i28 + 4) = v471;
            float4 v472 = (float4)(v347.s1, v363.s1, v379.s1, v395.s1);
            *(__local float4 *)(weights + (i6 + 16) * 68 + i28 + 0) = v472;
            float4 v473 = (float4)(v411.s1, v427.s1, v443.s1, v459.s1);
            *(__local float4 *)(weights + (i6 + 16) * 68 + i28 + 4) = v473;
            float4 v474 = (float4)(v347.s2, v363.s2, v379.s2, v395.s2);
            *(__local float4 *)(weights + (i6 + 32) * 68 + i28 + 0) = v474;
            float4 v475 = (float4)(v411.s2, v427.s2, v443.s2, v459.s2);
            *(__local float4 *)(weights + (i6 + 32) * 68 + i28 + 4) = v475;
            float4 v476 = (float4)(v347.s3, v363.s3, v379.s3, v395.s3);
            *(__local float4 *)(weights + (i6 + 48) * 68 + i28 + 0) = v476;
            float4 v477 = (float4)(v411.s3, v427.s3, v443.s3, v459.s3);
            *(__local float4 *)(weights + (i6 + 48) * 68 + i28 + 4) = v477;
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            float v478 = v344;
            float v479 = (v45 * v478);
            v45 = v479;
            float v480 = v360;
            float v481 = (v46 * v480);
            v46 = v481;
            float v482 = v376;
            float v483 = (v47 * v482);
            v47 = v483;
            float v484 = v392;
            float v485 = (v48 * v484);
            v48 = v485;
            float v486 = v408;
            float v487 = (v49 * v486);
            v49 = v487;
            float v488 = v424;
            float v489 = (v50 * v488);
            v50 = v489;
            float v490 = v440;
            float v491 = (v51 * v490);
            v51 = v491;
            float v492 = v456;
            float v493 = (v52 * v492);
            v52 = v493;
            for (long s = 0; s < 2; s++) {
                if (s + 1 < 2) {
                    float4 v494 = *(const __global float4 *)(in0 + (i27 + min((long)(t + (s + 1) * 32 + i61), (long)69) * 16 + min(i62, 0)));
                    v67 = v494;
                } else {
                    if ((t + 64) < i53) {
                        float4 v495 = *(const __global float4 *)(in0 + (i26 + min((long)((t + 64) + i64), (long)69) * 16 + i65));
                        v67 = v495;
                        float4 v496 = *(const __global float4 *)(in0 + (i26 + min((long)((t + 64) + (i64 + 32)), (long)69) * 16 + i65));
                        v68 = v496;
                    }
                }
                long i516 = i4 + 1;
                if (t >= 0 && t + 64 <= i516) {
                    #pragma unroll 128
                    for (long k = 0; k < 32; k++) {
                        float v497 = tiles[1280 + (((s + 1) + t / 64) % 2) * 1280 + k * 16 + i6 * 1 + 0];
                        float4 v498 = *(__local float4 *)(weights + (s * 32 + k) * 68 + i7 * 8 + 0);
                        float4 v499 = *(__local float4 *)(weights + (s * 32 + k) * 68 + i7 * 8 + 4);
                        float v500 = (float)(v498.s0);
                        float v501 = fma(v500, v497, v45);
                        v45 = v501;
                        float v502 = (float)(v498.s1);
                        float v503 = fma(v502, v497, v46);
                        v46 = v503;
                        float v504 = (float)(v498.s2);
                        float v505 = fma(v504, v497, v47);
                        v47 = v505;
                        float v506 = (float)(v498.s3);
                        float v507 = fma(v506, v497, v48);
                        v48 = v507;
                        float v508 = (float)(v499.s0);
                        float v509 = fma(v508, v497, v49);
                        v49 = v509;
                        float v510 = (float)(v499.s1);
                        float v511 = fma(v510, v497, v50);
                        v50 = v511;
                        float v512 = (float)(v499.s2);
                        float v513 = fma(v512, v497, v51);
                        v51 = v513;
                        float v514 = (float)(v499.s3);
                        float v515 = fma(v514, v497, v52);
                        v52 = v515;
                    }
                } else {
                    long i521 = 0 - t - s * 32;
                    long i522 = i17 - t - s * 32;
                    long i523 = min(32L, i522);
                    for (long k = max(0L, i521); k < i523; k++) {
                        float v517 = weights[(s * 32 + k) * 68 + i7 * 8 + 0];
                        float v518 = v517;
                        float v519 = tiles[1280 + (((s + 1) + t / 64) % 2) * 1280 + k * 16 + i6 * 1 + 0];
                        float v520 = fma(v518, v519, v45);
                        v45 = v520;
                    }
                    long i528 = 0 - t - s * 32;
                    long i529 = i18 - t - s * 32;
                    long i530 = min(32L, i529);
                    for (long k = max(0L, i528); k < i530; k++) {
                        float v524 = weights[(s * 32 + k) * 68 + i7 * 8 + 1];
                        float v525 = v524;
                        float v526 = tiles[1280 + (((s + 1) + t / 64) % 2) * 1280 + k * 16 + i6 * 1 + 0];
                        float v527 = fma(v525, v526, v46);
                        v46 = v527;
                    }
                    long i535 = 0 - t - s * 32;
                    long i536 = i19 - t - s * 32;
                    long i537 = min(32L, i536);
                    for (long k = max(0L, i535); k < i537; k++) {
                        float v531 = weights[(s * 32 + k) * 68 + i7 * 8 + 2];
                        float v532 = v531;
                        float v533 = tiles[1280 + (((s + 1) + t / 64) % 2) * 1280 + k * 16 + i6 * 1 + 0];
                        float v534 = fma(v532, v533, v47);
                        v47 = v534;
                    }
                    long i542 = 0 - t - s * 32;
                    long i543 = i20 - t - s * 32;
                    long i544 = min(32L, i543);
                    for (long k = max(0L, i542); k < i544; k++) {
                        float v538 = weights[(s * 32 + k) * 68 + i7 * 8 + 3];
                        float v539 = v538;
                        float v540 = tiles[1280 + (((s + 1) + t / 64) % 2) * 1280 + k * 16 + i6 * 1 + 0];
                        float v541 = fma(v539, v540, v48);
                        v48 = v541;
                    }
                    long i549 = 0 - t - s * 32;
                    long i550 = i21 - t - s * 32;
                    long i551 = min(32L, i550);
                    for (long k = max(0L, i549); k < i551; k++) {
                        float v545 = weights[(s * 32 + k) * 68 + i7 * 8 + 4];
                        float v546 = v545;
                        float v547 = tiles[1280 + (((s + 1) + t / 64) % 2) * 1280 + k * 16 + i6 * 1 + 0];
                        float v548 = fma(v546, v547, v49);
                        v49 = v548;
                    }
                    long i556 = 0 - t - s * 32;
                    long i557 = i22 - t - s * 32;
                    long i558 = min(32L, i557);
                    for (long k = max(0L, i556); k < i558; k++) {
                        float v552 = weights[(s * 32 + k) * 68 + i7 * 8 + 5];
                        float v553 = v552;
                        float v554 = tiles[1280 + (((s + 1) + t / 64) % 2) * 1280 + k * 16 + i6 * 1 + 0];
                        float v555 = fma(v553, v554, v50);
                        v50 = v555;
                    }
                    long i563 = 0 - t - s * 32;
                    long i564 = i23 - t - s * 32;
                    long i565 = min(32L, i564);
                    for (long k = max(0L, i563); k < i565; k++) {
                        float v559 = weights[(s * 32 + k) * 68 + i7 * 8 + 6];
                        float v560 = v559;
                        float v561 = tiles[1280 + (((s + 1) + t / 64) % 2) * 1280 + k * 16 + i6 * 1 + 0];
                        float v562 = fma(v560, v561, v51);
                        v51 = v562;
                    }
                    long i570 = 0 - t - s * 32;
                    long i571 = i24 - t - s * 32;
                    long i572 = min(32L, i571);
                    for (long k = max(0L, i570); k < i572; k++) {
                        float v566 = weights[(s * 32 + k) * 68 + i7 * 8 + 7];
                        float v567 = v566;
                        float v568 = tiles[1280 + (((s + 1) + t / 64) % 2) * 1280 + k * 16 + i6 * 1 + 0];
                        float v569 = fma(v567, v568, v52);
                        v52 = v569;
                    }
                }
                if (s + 1 < 2) {
                    *(__local float4 *)(tiles + 1280 + (((s + 2) + t / 64) % 2) * 1280 + i63) = v67;
                } else {
                    if ((t + 64) < i53) {
                        *(__local float4 *)(tiles + 1280 + ((0 + (t + 64) / 64) % 2) * 1280 + i66) = v67;
                        *(__local float4 *)(tiles + 1280 + ((0 + (t + 64) / 64) % 2) * 1280 + i66 + 640) = v68;
                    }
                }
                barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            }
        }
        float v573 = v37;
        exchange[(i28 + 0) * 16 + i6 + 0] = v573;
        float v574 = v38;
        exchange[(i28 + 1) * 16 + i6 + 0] = v574;
        float v575 = v39;
        exchange[(i28 + 2) * 16 + i6 + 0] = v575;
        float v576 = v40;
        exchange[(i28 + 3) * 16 + i6 + 0] = v576;
        float v577 = v41;
        exchange[(i28 + 4) * 16 + i6 + 0] = v577;
        float v578 = v42;
        exchange[(i28 + 5) * 16 + i6 + 0] = v578;
        float v579 = v43;
        exchange[(i28 + 6) * 16 + i6 + 0] = v579;
        float v580 = v44;
        exchange[(i28 + 7) * 16 + i6 + 0] = v580;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        float4 v581 = *(__local float4 *)(exchange + (i28 + 0) * 16 + 0);
        float4 v582 = *(__local float4 *)(exchange + (i28 + 0) * 16 + 4);
        float4 v583 = *(__local float4 *)(exchange + (i28 + 0) * 16 + 8);
        float4 v584 = *(__local float4 *)(exchange + (i28 + 0) * 16 + 12);
        float4 v585 = (v581 + v583);
        float4 v586 = (v582 + v584);
        float4 v587 = (v585 + v586);
        float2 v588 = v587.lo;
        float2 v589 = v587.hi;
        float2 v590 = (v588 + v589);
        float v591 = v590.lo;
        float v592 = v590.hi;
        float v593 = (v591 + v592);
        if (i8 + 0 < 70) {
            long i594 = i8 + 0;
            long i595 = i6 * 1 + 0;
            if (i595 < 4) {
                float v596 = (float)(0x0.0p+0f);
                float v597 = v593;
                int v598 = (v597 == v596);
                float v599 = (v45 / v597);
                float v600 = (v598 ? v596 : v599);
                out0[i2 * 280 + i594 * 4 + i595] = (v600 == v600 ? v600 : (float)(as_float(0x7fc00000U)));
            }
        }
        float4 v601 = *(__local float4 *)(exchange + (i28 + 1) * 16 + 0);
        float4 v602 = *(__local float4 *)(exchange + (i28 + 1) * 16 + 4);
        float4 v603 = *(__local float4 *)(exchange + (i28 + 1) * 16 + 8);
        float4 v604 = *(__local float4 *)(exchange + (i28 + 1) * 16 + 12);
        float4 v605 = (v601 + v603);
        float4 v606 = (v602 + v604);
        float4 v607 = (v605 + v606);
        float2 v608 = v607.lo;
        float2 v609 = v607.hi;
        float2 v610 = (v608 + v609);
        float v611 = v610.lo;
        float v612 = v610.hi;
        float v613 = (v611 + v612);
        if (i8 + 8 < 70) {
            long i614 = i8 + 8;
            long i615 = i6 * 1 + 0;
            if (i615 < 4) {
                float v616 = (float)(0x0.0p+0f);
                float v617 = v613;
                int v618 = (v617 == v616);
                float v619 = (v46 / v617);
                float v620 = (v618 ? v616 : v619);
                out0[i2 * 280 + i614 * 4 + i615] = (v620 == v620 ? v620 : (float)(as_float(0x7fc00000U)));
            }
        }
        float4 v621 = *(__local float4 *)(exchange + (i28 + 2) * 16 + 0);
        float4 v622 = *(__local float4 *)(exchange + (i28 + 2) * 16 + 4);
        float4 v623 = *(__local float4 *)(exchange + (i28 + 2) * 16 + 8);
        float4 v624 = *(__local float4 *)(exchange + (i28 + 2) * 16 + 12);
        float4 v625 = (v621 + v623);
        float4 v626 = (v622 + v624);
        float4 v627 = (v625 + v626);
        float2 v628 = v627.lo;
        float2 v629 = v627.hi;
        float2 v630 = (v628 + v629);
        float v631 = v630.lo;
        float v632 = v630.hi;
        float v633 = (v631 + v632);
        if (i8 + 16 < 70) {
            long i634 = i8 + 16;
            long i635 = i6 * 1 + 0;
            if (i635 < 4) {
                float v636 = (float)(0x0.0p+0f);
                float v637 = v633;
                int v638 = (v637 == v636);
                float v639 = (v47 / v637);
                float v640 = (v638 ? v636 : v639);
                out0[i2 * 280 + i634 * 4 + i635] = (v640 == v640 ? v640 : (float)(as_float(0x7fc00000U)));
            }
        }
        float4 v641 = *(__local float4 *)(exchange + (i28 + 3) * 16 + 0);
        float4 v642 = *(__local float4 *)(exchange + (i28 + 3) * 16 + 4);
        float4 v643 = *(__local float4 *)(exchange + (i28 + 3) * 16 + 8);
        float4 v644 = *(__local float4 *)(exchange + (i28 + 3) * 16 + 12);
        float4 v645 = (v641 + v643);
        float4 v646 = (v642 + v644);
        float4 v647 = (v645 + v646);
        float2 v648 = v647.lo;
        float2 v649 = v647.hi;
        float2 v650 = (v648 + v649);
        float v651 = v650.lo;
        float v652 = v650.hi;
        float v653 = (v651 + v652);
        if (i8 + 24 < 70) {
            long i654 = i8 + 24;
            long i655 = i6 * 1 + 0;
            if (i655 < 4) {
                float v656 = (float)(0x0.0p+0f);
                float v657 = v653;
                int v658 = (v657 == v656);
                float v659 = (v48 / v657);
                float v660 = (v658 ? v656 : v659);
                out0[i2 * 280 + i654 * 4 + i655] = (v660 == v660 ? v660 : (float)(as_float(0x7fc00000U)));
            }
        }
        float4 v661 = *(__local float4 *)(exchange + (i28 + 4) * 16 + 0);
        float4 v662 = *(__local float4 *)(exchange + (i28 + 4) * 16 + 4);
        float4 v663 = *(__local float4 *)(exchange + (i28 + 4) * 16 + 8);
        float4 v664 = *(__local float4 *)(exchange + (i28 + 4) * 16 + 12);
        float4 v665 = (v661 + v663);
        float4 v666 = (v662 + v664);
        float4 v667 = (v665 + v666);
        float2 v668 = v667.lo;
        float2 v669 = v667.hi;
        float2 v670 = (v668 + v669);
        float v671 = v670.lo;
        float v672 = v670.hi;
        float v673 = (v671 + v672);
        if (i8 + 32 < 70) {
            long i674 = i8 + 32;
            long i675 = i6 * 1 + 0;
            if (i675 < 4) {
                float v676 = (float)(0x0.0p+0f);
                float v677 = v673;
                int v678 = (v677 == v676);
                float v679 = (v49 / v677);
                float v680 = (v678 ? v676 : v679);
                out0[i2 * 280 + i674 * 4 + i675] = (v680 == v680 ? v680 : (float)(as_float(0x7fc00000U)));
            }
        }
        float4 v681 = *(__local float4 *)(exchange + (i28 + 5) * 16 + 0);
        float4 v682 = *(__local float4 *)(exchange + (i28 + 5) * 16 + 4);
        float4 v683 = *(__local float4 *)(exchange + (i28 + 5) * 16 + 8);
        float4 v684 = *(__local float4 *)(exchange + (i28 + 5) * 16 + 12);
        float4 v685 = (v681 + v683);
        float4 v686 = (v682 + v684);
        float4 v687 = (v685 + v686);
        float2 v688 = v687.lo;
        float2 v689 = v687.hi;
        float2 v690 = (v688 + v689);
        float v691 = v690.lo;
        float v692 = v690.hi;
        float v693 = (v691 + v692);
        if (i8 + 40 < 70) {
            long i694 = i8 + 40;
            long i695 = i6 * 1 + 0;
            if (i695 < 4) {
                float v696 = (float)(0x0.0p+0f);
                float v697 = v693;
                int v698 = (v697 == v696);
                float v699 = (v50 / v697);
                float v700 = (v698 ? v696 : v699);
                out0[i2 * 280 + i694 * 4 + i695] = (v700 == v700 ? v700 : (float)(as_float(0x7fc00000U)));
            }
        }
        float4 v701 = *(__local float4 *)(exchange + (i28 + 6) * 16 + 0);
        float4 v702 = *(__local float4 *)(exchange + (i28 + 6) * 16 + 4);
        float4 v703 = *(__local float4 *)(exchange + (i28 + 6) * 16 + 8);
        float4 v704 = *(__local float4 *)(exchange + (i28 + 6) * 16 + 12);
        float4 v705 = (v701 + v703);
        float4 v706 = (v702 + v704);
        float4 v707 = (v705 + v706);
        float2 v708 = v707.lo;
        float2 v709 = v707.hi;
        float2 v710 = (v708 + v709);
        float v711 = v710.lo;
        float v712 = v710.hi;
        float v713 = (v711 + v712);
        if (i8 + 48 < 70) {
            long i714 = i8 + 48;
            long i715 = i6 * 1 + 0;
            if (i715 < 4) {
                float v716 = (float)(0x0.0p+0f);
                float v717 = v713;
                int v718 = (v717 == v716);
                float v719 = (v51 / v717);
                float v720 = (v718 ? v716 : v719);
                out0[i2 * 280 + i714 * 4 + i715] = (v720 == v720 ? v720 : (float)(as_float(0x7fc00000U)));
            }
        }
        float4 v721 = *(__local float4 *)(exchange + (i28 + 7) * 16 + 0);
        float4 v722 = *(__local float4 *)(exchange + (i28 + 7) * 16 + 4);
        float4 v723 = *(__local float4 *)(exchange + (i28 + 7) * 16 + 8);
        float4 v724 = *(__local float4 *)(exchange + (i28 + 7) * 16 + 12);
        float4 v725 = (v721 + v723);
        float4 v726 = (v722 + v724);
        float4 v727 = (v725 + v726);
        float2 v728 = v727.lo;
        float2 v729 = v727.hi;
        float2 v730 = (v728 + v729);
        float v731 = v730.lo;
        float v732 = v730.hi;
        float v733 = (v731 + v732);
        if (i8 + 56 < 70) {
            long i734 = i8 + 56;
            long i735 = i6 * 1 + 0;
            if (i735 < 4) {
                float v736 = (float)(0x0.0p+0f);
                float v737 = v733;
                int v738 = (v737 == v736);
                float v739 = (v52 / v737);
                float v740 = (v738 ? v736 : v739);
                out0[i2 * 280 + i734 * 4 + i735] = (v740 == v740 ? v740 : (float)(as_float(0x7fc00000U)));
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
