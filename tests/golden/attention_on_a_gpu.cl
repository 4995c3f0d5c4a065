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
        long i2 = (1 - b / i0) * 64;
        long i3 = min(i2 + 64, 70L) - 1;
        int i4 = (int)(lid / 2 % 16);
        int i5 = (int)(lid / 32 * 2 + lid % 2);
        long i6 = i2 + i5;
        long i7 = min(i6, i3);
        long i8 = min(i6 + 8, i3);
        long i9 = min(i6 + 16, i3);
        long i10 = min(i6 + 24, i3);
        long i11 = min(i6 + 32, i3);
        long i12 = min(i6 + 40, i3);
        long i13 = min(i6 + 48, i3);
        long i14 = min(i6 + 56, i3);
        long i15 = i7 + 1;
        long i16 = i8 + 1;
        long i17 = i9 + 1;
        long i18 = i10 + 1;
        long i19 = i11 + 1;
        long i20 = i12 + 1;
        long i21 = i13 + 1;
        long i22 = i14 + 1;
        long i23 = i1 * 1120;
        long i24 = i1 * 1120;
        long i25 = i1 * 1120;
        int i26 = (int)(i5 * 8);
        float v27 = (float)(-0x1.fffffe0000000p+127f);
        float v28 = (float)(-0x1.fffffe0000000p+127f);
        float v29 = (float)(-0x1.fffffe0000000p+127f);
        float v30 = (float)(-0x1.fffffe0000000p+127f);
        float v31 = (float)(-0x1.fffffe0000000p+127f);
        float v32 = (float)(-0x1.fffffe0000000p+127f);
        float v33 = (float)(-0x1.fffffe0000000p+127f);
        float v34 = (float)(-0x1.fffffe0000000p+127f);
        float v35 = (float)(0x0.0p+0f);
        float v36 = (float)(0x0.0p+0f);
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
        long i51 = i3 + 1;
        float v52 = (float)(0x1.0000000000000p-2f);
        #pragma unroll 4
        for (long u = 0; u < 2; u++) {
            int i53 = (int)((lid + u * 128) / 4);
            int i54 = (int)((lid + u * 128) % 4 * 4);
            int i55 = (int)(i53 * 20 + i54);
            float4 v56 = *(const __global float4 *)(in0 + (i23 + min(i2 + i53, i3) * 16 + i54));
            float4 v57 = (float4)(v52);
            float4 v58 = (v56 * v57);
            *(__local float4 *)(tiles + i55) = v58;
        }
        int i59 = (int)(lid / 4);
        int i60 = (int)(lid % 4 * 4);
        int i61 = (int)(i59 * 16 + i60);
        int i62 = (int)(lid / 4);
        int i63 = (int)(lid % 4 * 4);
        int i64 = (int)(i62 * 20 + i63);
        float4 v65 = (float4)(0x0.0p+0f);
        float4 v66 = (float4)(0x0.0p+0f);
        if (i51 > 0) {
            float4 v67 = *(const __global float4 *)(in0 + (i24 + min((long)i62, 69L) * 16 + i63));
            v65 = v67;
            float4 v68 = *(const __global float4 *)(in0 + (i24 + min((long)(i62 + 32), 69L) * 16 + i63));
            v66 = v68;
            *(__local float4 *)(tiles + 1280 + i64) = v65;
            *(__local float4 *)(tiles + 1280 + (i64 + 640)) = v66;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long t = 0; t < i51; t += 64) {
            float4 v69 = (float4)(-0x0.0p+0f);
            float4 v70 = (float4)(-0x0.0p+0f);
            float4 v71 = (float4)(-0x0.0p+0f);
            float4 v72 = (float4)(-0x0.0p+0f);
            float4 v73 = (float4)(-0x0.0p+0f);
            float4 v74 = (float4)(-0x0.0p+0f);
            float4 v75 = (float4)(-0x0.0p+0f);
            float4 v76 = (float4)(-0x0.0p+0f);
            for (long s = 0; s < 1; s++) {
                if (s + 1 < 1) {
                    float4 v77 = *(const __global float4 *)(in0 + (i24 + min(t + i62, 69L) * 16 + ((s + 1) * 16 + i63)));
                    v65 = v77;
                    float4 v78 = *(const __global float4 *)(in0 + (i24 + min(t + (i62 + 32), 69L) * 16 + ((s + 1) * 16 + i63)));
                    v66 = v78;
                } else {
                    float4 v79 = *(const __global float4 *)(in0 + (i25 + min(t + i59, 69L) * 16 + min(i60, 0)));
                    v65 = v79;
                }
                int i80 = (int)((s + t / 64) % 2 * 1280);
                int i81 = (int)(1280 + i80 + i4 * 20);
                int i82 = (int)(s * 16 + i5 * 20);
                #pragma unroll 8
                for (long k = 0; k < 16; k += 4) {
                    float4 v83 = *(__local float4 *)(tiles + i81 + k);
                    float4 v84 = *(__local float4 *)(tiles + i81 + 320 + k);
                    float4 v85 = *(__local float4 *)(tiles + i81 + 640 + k);
                    float4 v86 = *(__local float4 *)(tiles + i81 + 960 + k);
                    float4 v87 = (float4)(v83.s0, v84.s0, v85.s0, v86.s0);
                    float4 v88 = (float4)(v83.s1, v84.s1, v85.s1, v86.s1);
                    float4 v89 = (float4)(v83.s2, v84.s2, v85.s2, v86.s2);
                    float4 v90 = (float4)(v83.s3, v84.s3, v85.s3, v86.s3);
                    float4 v91 = *(__local float4 *)(tiles + i82 + k);
                    float4 v92 = (float4)(v91.s0);
                    float4 v93 = fma(v92, v87, v69);
                    float4 v94 = (float4)(v91.s1);
                    float4 v95 = fma(v94, v88, v93);
                    float4 v96 = (float4)(v91.s2);
                    float4 v97 = fma(v96, v89, v95);
                    float4 v98 = (float4)(v91.s3);
                    float4 v99 = fma(v98, v90, v97);
                    v69 = v99;
                    float4 v100 = *(__local float4 *)(tiles + i82 + 160 + k);
                    float4 v101 = (float4)(v100.s0);
                    float4 v102 = fma(v101, v87, v70);
                    float4 v103 = (float4)(v100.s1);
                    float4 v104 = fma(v103, v88, v102);
                    float4 v105 = (float4)(v100.s2);
                    float4 v106 = fma(v105, v89, v104);
                    float4 v107 = (float4)(v100.s3);
                    float4 v108 = fma(v107, v90, v106);
                    v70 = v108;
                    float4 v109 = *(__local float4 *)(tiles + i82 + 320 + k);
                    float4 v110 = (float4)(v109.s0);
                    float4 v111 = fma(v110, v87, v71);
                    float4 v112 = (float4)(v109.s1);
                    float4 v113 = fma(v112, v88, v111);
                    float4 v114 = (float4)(v109.s2);
                    float4 v115 = fma(v114, v89, v113);
                    float4 v116 = (float4)(v109.s3);
                    float4 v117 = fma(v116, v90, v115);
                    v71 = v117;
                    float4 v118 = *(__local float4 *)(tiles + i82 + 480 + k);
                    float4 v119 = (float4)(v118.s0);
                    float4 v120 = fma(v119, v87, v72);
                    float4 v121 = (float4)(v118.s1);
                    float4 v122 = fma(v121, v88, v120);
                    float4 v123 = (float4)(v118.s2);
                    float4 v124 = fma(v123, v89, v122);
                    float4 v125 = (float4)(v118.s3);
                    float4 v126 = fma(v125, v90, v124);
                    v72 = v126;
                    float4 v127 = *(__local float4 *)(tiles + i82 + 640 + k);
                    float4 v128 = (float4)(v127.s0);
                    float4 v129 = fma(v128, v87, v73);
                    float4 v130 = (float4)(v127.s1);
                    float4 v131 = fma(v130, v88, v129);
                    float4 v132 = (float4)(v127.s2);
                    float4 v133 = fma(v132, v89, v131);
                    float4 v134 = (float4)(v127.s3);
                    float4 v135 = fma(v134, v90, v133);
                    v73 = v135;
                    float4 v136 = *(__local float4 *)(tiles + i82 + 800 + k);
                    float4 v137 = (float4)(v136.s0);
                    float4 v138 = fma(v137, v87, v74);
                    float4 v139 = (float4)(v136.s1);
                    float4 v140 = fma(v139, v88, v138);
                    float4 v141 = (float4)(v136.s2);
                    float4 v142 = fma(v141, v89, v140);
                    float4 v143 = (float4)(v136.s3);
                    float4 v144 = fma(v143, v90, v142);
                    v74 = v144;
                    float4 v145 = *(__local float4 *)(tiles + i82 + 960 + k);
                    float4 v146 = (float4)(v145.s0);
                    float4 v147 = fma(v146, v87, v75);
                    float4 v148 = (float4)(v145.s1);
                    float4 v149 = fma(v148, v88, v147);
                    float4 v150 = (float4)(v145.s2);
                    float4 v151 = fma(v150, v89, v149);
                    float4 v152 = (float4)(v145.s3);
                    float4 v153 = fma(v152, v90, v151);
                    v75 = v153;
                    float4 v154 = *(__local float4 *)(tiles + i82 + 1120 + k);
                    float4 v155 = (float4)(v154.s0);
                    float4 v156 = fma(v155, v87, v76);
                    float4 v157 = (float4)(v154.s1);
                    float4 v158 = fma(v157, v88, v156);
                    float4 v159 = (float4)(v154.s2);
                    float4 v160 = fma(v159, v89, v158);
                    float4 v161 = (float4)(v154.s3);
                    float4 v162 = fma(v161, v90, v160);
                    v76 = v162;
                }
                if (s + 1 < 1) {
                    *(__local float4 *)(tiles + 1280 + (s + 1 + t / 64) % 2 * 1280 + i64) = v65;
                    *(__local float4 *)(tiles + 1280 + (s + 1 + t / 64) % 2 * 1280 + (i64 + 640)) = v66;
                } else {
                    *(__local float4 *)(tiles + 1280 + (s + 1 + t / 64) % 2 * 1280 + i61) = v65;
                }
                barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            }
            long i163 = t + i4;
            float4 v164 = (float4)(-INFINITY);
            int4 v165 = ((int4)(0, 1, 2, 3) < (int4)((int)((i15 - i163 + 15) / 16)));
            float4 v166 = (v165 ? v69 : v164);
            float4 v167 = (float4)(-INFINITY);
            int4 v168 = ((int4)(0, 1, 2, 3) < (int4)((int)((i16 - i163 + 15) / 16)));
            float4 v169 = (v168 ? v70 : v167);
            float4 v170 = (float4)(-INFINITY);
            int4 v171 = ((int4)(0, 1, 2, 3) < (int4)((int)((i17 - i163 + 15) / 16)));
            float4 v172 = (v171 ? v71 : v170);
            float4 v173 = (float4)(-INFINITY);
            int4 v174 = ((int4)(0, 1, 2, 3) < (int4)((int)((i18 - i163 + 15) / 16)));
            float4 v175 = (v174 ? v72 : v173);
            float4 v176 = (float4)(-INFINITY);
            int4 v177 = ((int4)(0, 1, 2, 3) < (int4)((int)((i19 - i163 + 15) / 16)));
            float4 v178 = (v177 ? v73 : v176);
            float4 v179 = (float4)(-INFINITY);
            int4 v180 = ((int4)(0, 1, 2, 3) < (int4)((int)((i20 - i163 + 15) / 16)));
            float4 v181 = (v180 ? v74 : v179);
            float4 v182 = (float4)(-INFINITY);
            int4 v183 = ((int4)(0, 1, 2, 3) < (int4)((int)((i21 - i163 + 15) / 16)));
            float4 v184 = (v183 ? v75 : v182);
            float4 v185 = (float4)(-INFINITY);
            int4 v186 = ((int4)(0, 1, 2, 3) < (int4)((int)((i22 - i163 + 15) / 16)));
            float4 v187 = (v186 ? v76 : v185);
            float2 v188 = v166.lo;
            float2 v189 = v166.hi;
            float2 v190 = fmax(v188, v189);
            float v191 = v190.lo;
            float v192 = v190.hi;
            float v193 = fmax(v191, v192);
            float2 v194 = v169.lo;
            float2 v195 = v169.hi;
            float2 v196 = fmax(v194, v195);
            float v197 = v196.lo;
            float v198 = v196.hi;
            float v199 = fmax(v197, v198);
            float2 v200 = v172.lo;
            float2 v201 = v172.hi;
            float2 v202 = fmax(v200, v201);
            float v203 = v202.lo;
            float v204 = v202.hi;
            float v205 = fmax(v203, v204);
            float2 v206 = v175.lo;
            float2 v207 = v175.hi;
            float2 v208 = fmax(v206, v207);
            float v209 = v208.lo;
            float v210 = v208.hi;
            float v211 = fmax(v209, v210);
            float2 v212 = v178.lo;
            float2 v213 = v178.hi;
            float2 v214 = fmax(v212, v213);
            float v215 = v214.lo;
            float v216 = v214.hi;
            float v217 = fmax(v215, v216);
            float2 v218 = v181.lo;
            float2 v219 = v181.hi;
            float2 v220 = fmax(v218, v219);
            float v221 = v220.lo;
            float v222 = v220.hi;
            float v223 = fmax(v221, v222);
            float2 v224 = v184.lo;
            float2 v225 = v184.hi;
            float2 v226 = fmax(v224, v225);
            float v227 = v226.lo;
            float v228 = v226.hi;
            float v229 = fmax(v227, v228);
            float2 v230 = v187.lo;
            float2 v231 = v187.hi;
            float2 v232 = fmax(v230, v231);
            float v233 = v232.lo;
            float v234 = v232.hi;
            float v235 = fmax(v233, v234);
            exchange[i26 * 16 + i4] = v193;
            exchange[(i26 + 1) * 16 + i4] = v199;
            exchange[(i26 + 2) * 16 + i4] = v205;
            exchange[(i26 + 3) * 16 + i4] = v211;
            exchange[(i26 + 4) * 16 + i4] = v217;
            exchange[(i26 + 5) * 16 + i4] = v223;
            exchange[(i26 + 6) * 16 + i4] = v229;
            exchange[(i26 + 7) * 16 + i4] = v235;
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            float4 v236 = *(__local float4 *)(exchange + i26 * 16);
            float4 v237 = *(__local float4 *)(exchange + i26 * 16 + 4);
            float4 v238 = *(__local float4 *)(exchange + i26 * 16 + 8);
            float4 v239 = *(__local float4 *)(exchange + i26 * 16 + 12);
            float4 v240 = fmax(v236, v238);
            float4 v241 = fmax(v237, v239);
            float4 v242 = fmax(v240, v241);
            float2 v243 = v242.lo;
            float2 v244 = v242.hi;
            float2 v245 = fmax(v243, v244);
            float v246 = v245.lo;
            float v247 = v245.hi;
            float v248 = fmax(v246, v247);
            float4 v249 = *(__local float4 *)(exchange + (i26 + 1) * 16);
            float4 v250 = *(__local float4 *)(exchange + (i26 + 1) * 16 + 4);
            float4 v251 = *(__local float4 *)(exchange + (i26 + 1) * 16 + 8);
            float4 v252 = *(__local float4 *)(exchange + (i26 + 1) * 16 + 12);
            float4 v253 = fmax(v249, v251);
            float4 v254 = fmax(v250, v252);
            float4 v255 = fmax(v253, v254);
            float2 v256 = v255.lo;
            float2 v257 = v255.hi;
            float2 v258 = fmax(v256, v257);
            float v259 = v258.lo;
            float v260 = v258.hi;
            float v261 = fmax(v259, v260);
            float4 v262 = *(__local float4 *)(exchange + (i26 + 2) * 16);
            float4 v263 = *(__local float4 *)(exchange + (i26 + 2) * 16 + 4);
            float4 v264 = *(__local float4 *)(exchange + (i26 + 2) * 16 + 8);
            float4 v265 = *(__local float4 *)(exchange + (i26 + 2) * 16 + 12);
            float4 v266 = fmax(v262, v264);
            float4 v267 = fmax(v263, v265);
            float4 v268 = fmax(v266, v267);
            float2 v269 = v268.lo;
            float2 v270 = v268.hi;
            float2 v271 = fmax(v269, v270);
            float v272 = v271.lo;
            float v273 = v271.hi;
            float v274 = fmax(v272, v273);
            float4 v275 = *(__local float4 *)(exchange + (i26 + 3) * 16);
            float4 v276 = *(__local float4 *)(exchange + (i26 + 3) * 16 + 4);
            float4 v277 = *(__local float4 *)(exchange + (i26 + 3) * 16 + 8);
            float4 v278 = *(__local float4 *)(exchange + (i26 + 3) * 16 + 12);
            float4 v279 = fmax(v275, v277);
            float4 v280 = fmax(v276, v278);
            float4 v281 = fmax(v279, v280);
            float2 v282 = v281.lo;
            float2 v283 = v281.hi;
            float2 v284 = fmax(v282, v283);
            float v285 = v284.lo;
            float v286 = v284.hi;
            float v287 = fmax(v285, v286);
            float4 v288 = *(__local float4 *)(exchange + (i26 + 4) * 16);
            float4 v289 = *(__local float4 *)(exchange + (i26 + 4) * 16 + 4);
            float4 v290 = *(__local float4 *)(exchange + (i26 + 4) * 16 + 8);
            float4 v291 = *(__local float4 *)(exchange + (i26 + 4) * 16 + 12);
            float4 v292 = fmax(v288, v290);
            float4 v293 = fmax(v289, v291);
            float4 v294 = fmax(v292, v293);
            float2 v295 = v294.lo;
            float2 v296 = v294.hi;
            float2 v297 = fmax(v295, v296);
            float v298 = v297.lo;
            float v299 = v297.hi;
            float v300 = fmax(v298, v299);
            float4 v301 = *(__local float4 *)(exchange + (i26 + 5) * 16);
            float4 v302 = *(__local float4 *)(exchange + (i26 + 5) * 16 + 4);
            float4 v303 = *(__local float4 *)(exchange + (i26 + 5) * 16 + 8);
            float4 v304 = *(__local float4 *)(exchange + (i26 + 5) * 16 + 12);
            float4 v305 = fmax(v301, v303);
            float4 v306 = fmax(v302, v304);
            float4 v307 = fmax(v305, v306);
            float2 v308 = v307.lo;
            float2 v309 = v307.hi;
            float2 v310 = fmax(v308, v309);
            float v311 = v310.lo;
            float v312 = v310.hi;
            float v313 = fmax(v311, v312);
            float4 v314 = *(__local float4 *)(exchange + (i26 + 6) * 16);
            float4 v315 = *(__local float4 *)(exchange + (i26 + 6) * 16 + 4);
            float4 v316 = *(__local float4 *)(exchange + (i26 + 6) * 16 + 8);
            float4 v317 = *(__local float4 *)(exchange + (i26 + 6) * 16 + 12);
            float4 v318 = fmax(v314, v316);
            float4 v319 = fmax(v315, v317);
            float4 v320 = fmax(v318, v319);
            float2 v321 = v320.lo;
            float2 v322 = v320.hi;
            float2 v323 = fmax(v321, v322);
            float v324 = v323.lo;
            float v325 = v323.hi;
            float v326 = fmax(v324, v325);
            float4 v327 = *(__local float4 *)(exchange + (i26 + 7) * 16);
            float4 v328 = *(__local float4 *)(exchange + (i26 + 7) * 16 + 4);
            float4 v329 = *(__local float4 *)(exchange + (i26 + 7) * 16 + 8);
            float4 v330 = *(__local float4 *)(exchange + (i26 + 7) * 16 + 12);
            float4 v331 = fmax(v327, v329);
            float4 v332 = fmax(v328, v330);
            float4 v333 = fmax(v331, v332);
            float2 v334 = v333.lo;
            float2 v335 = v333.hi;
            float2 v336 = fmax(v334, v335);
            float v337 = v336.lo;
            float v338 = v336.hi;
            float v339 = fmax(v337, v338);
            float v340 = fmax(v248, v27);
            float v341 = (v27 - v340);
            float v342 = exp(v341);
            float4 v343 = (float4)(v340);
            float4 v344 = (v166 - v343);
            float4 v345 = exp(v344);
            float v346 = v342;
            float v347 = (v35 * v346);
            float v348 = (float)(v345.s0);
            float v349 = (v347 + v348);
            float v350 = (float)(v345.s1);
            float v351 = (v349 + v350);
            float v352 = (float)(v345.s2);
            float v353 = (v351 + v352);
            float v354 = (float)(v345.s3);
            float v355 = (v353 + v354);
            v35 = v355;
            v27 = v340;
            float v356 = fmax(v261, v28);
            float v357 = (v28 - v356);
            float v358 = exp(v357);
            float4 v359 = (float4)(v356);
            float4 v360 = (v169 - v359);
            float4 v361 = exp(v360);
            float v362 = v358;
            float v363 = (v36 * v362);
            float v364 = (float)(v361.s0);
            float v365 = (v363 + v364);
            float v366 = (float)(v361.s1);
            float v367 = (v365 + v366);
            float v368 = (float)(v361.s2);
            float v369 = (v367 + v368);
            float v370 = (float)(v361.s3);
            float v371 = (v369 + v370);
            v36 = v371;
            v28 = v356;
            float v372 = fmax(v274, v29);
            float v373 = (v29 - v372);
            float v374 = exp(v373);
            float4 v375 = (float4)(v372);
            float4 v376 = (v172 - v375);
            float4 v377 = exp(v376);
            float v378 = v374;
            float v379 = (v37 * v378);
            float v380 = (float)(v377.s0);
            float v381 = (v379 + v380);
            float v382 = (float)(v377.s1);
            float v383 = (v381 + v382);
            float v384 = (float)(v377.s2);
            float v385 = (v383 + v384);
            float v386 = (float)(v377.s3);
            float v387 = (v385 + v386);
            v37 = v387;
            v29 = v372;
            float v388 = fmax(v287, v30);
            float v389 = (v30 - v388);
            float v390 = exp(v389);
            float4 v391 = (float4)(v388);
            float4 v392 = (v175 - v391);
            float4 v393 = exp(v392);
            float v394 = v390;
            float v395 = (v38 * v394);
            float v396 = (float)(v393.s0);
            float v397 = (v395 + v396);
            float v398 = (float)(v393.s1);
            float v399 = (v397 + v398);
            float v400 = (float)(v393.s2);
            float v401 = (v399 + v400);
            float v402 = (float)(v393.s3);
            float v403 = (v401 + v402);
            v38 = v403;
            v30 = v388;
            float v404 = fmax(v300, v31);
            float v405 = (v31 - v404);
            float v406 = exp(v405);
            float4 v407 = (float4)(v404);
            float4 v408 = (v178 - v407);
            float4 v409 = exp(v408);
            float v410 = v406;
            float v411 = (v39 * v410);
            float v412 = (float)(v409.s0);
            float v413 = (v411 + v412);
            float v414 = (float)(v409.s1);
            float v415 = (v413 + v414);
            float v416 = (float)(v409.s2);
            float v417 = (v415 + v416);
            float v418 = (float)(v409.s3);
            float v419 = (v417 + v418);
            v39 = v419;
            v31 = v404;
            float v420 = fmax(v313, v32);
            float v421 = (v32 - v420);
            float v422 = exp(v421);
            float4 v423 = (float4)(v420);
            float4 v424 = (v181 - v423);
            float4 v425 = exp(v424);
            float v426 = v422;
            float v427 = (v40 * v426);
            float v428 = (float)(v425.s0);
            float v429 = (v427 + v428);
            float v430 = (float)(v425.s1);
            float v431 = (v429 + v430);
            float v432 = (float)(v425.s2);
            float v433 = (v431 + v432);
            float v434 = (float)(v425.s3);
            float v435 = (v433 + v434);
            v40 = v435;
            v32 = v420;
            float v436 = fmax(v326, v33);
            float v437 = (v33 - v436);
            float v438 = exp(v437);
            float4 v439 = (float4)(v436);
            float4 v440 = (v184 - v439);
            float4 v441 = exp(v440);
            float v442 = v438;
            float v443 = (v41 * v442);
            float v444 = (float)(v441.s0);
            float v445 = (v443 + v444);
            float v446 = (float)(v441.s1);
            float v447 = (v445 + v446);
            float v448 = (float)(v441.s2);
            float v449 = (v447 + v448);
            float v450 = (float)(v441.s3);
            float v451 = (v449 + v450);
            v41 = v451;
            v33 = v436;
            float v452 = fmax(v339, v34);
            float v453 = (v34 - v452);
            float v454 = exp(v453);
            float4 v455 = (float4)(v452);
            float4 v456 = (v187 - v455);
            float4 v457 = exp(v456);
            float v458 = v454;
            float v459 = (v42 * v458);
            float v460 = (float)(v457.s0);
            float v461 = (v459 + v460);
            float v462 = (float)(v457.s1);
            float v463 = (v461 + v462);
            float v464 = (float)(v457.s2);
            float v465 = (v463 + v464);
            float v466 = (float)(v457.s3);
            float v467 = (v465 + v466);
            v42 = v467;
            v34 = v452;
            float4 v468 = (float4)(v345.s0, v361.s0, v377.s0, v393.s0);
            *(__local float4 *)(weights + i4 * 68 + i26) = v468;
            float4 v469 = (float4)(v409.s0, v425.s0, v441.s0, v457.s0);
            *(__local float4 *)(weights + i4 * 68 + i26 + 4) = v469;
            float4 v470 = (float4)(v345.s1, v361.s1, v377.s1, v393.s1);
            *(__local float4 *)(weights + (i4 + 16) * 68 + i26) = v470;
            float4 v471 = (float4)(v409.s1, v425.s1, v441.s1, v457.s1);
            *(__local float4 *)(weights + (i4 + 16) * 68 + i26 + 4) = v471;
            float4 v472 = (float4)(v345.s2, v361.s2, v377.s2, v393.s2);
            *(__local float4 *)(weights + (i4 + 32) * 68 + i26) = v472;
            float4 v473 = (float4)(v409.s2, v425.s2, v441.s2, v457.s2);
            *(__local float4 *)(weights + (i4 + 32) * 68 + i26 + 4) = v473;
            float4 v474 = (float4)(v345.s3, v361.s3, v377.s3, v393.s3);
            *(__local float4 *)(weights + (i4 + 48) * 68 + i26) = v474;
            float4 v475 = (float4)(v409.s3, v425.s3, v441.s3, v457.s3);
            *(__local float4 *)(weights + (i4 + 48) * 68 + i26 + 4) = v475;
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            float v476 = v342;
            float v477 = (v43 * v476);
            v43 = v477;
            float v478 = v358;
            float v479 = (v44 * v478);
            v44 = v479;
            float v480 = v374;
            float v481 = (v45 * v480);
            v45 = v481;
            float v482 = v390;
            float v483 = (v46 * v482);
            v46 = v483;
            float v484 = v406;
            float v485 = (v47 * v484);
            v47 = v485;
            float v486 = v422;
            float v487 = (v48 * v486);
            v48 = v487;
            float v488 = v438;
            float v489 = (v49 * v488);
            v49 = v489;
            float v490 = v454;
            float v491 = (v50 * v490);
            v50 = v491;
            for (long s = 0; s < 2; s++) {
                if (s + 1 < 2) {
                    float4 v492 = *(const __global float4 *)(in0 + (i25 + min(t + (s + 1) * 32 + i59, 69L) * 16 + min(i60, 0)));
                    v65 = v492;
                } else {
                    if (t + 64 < i51) {
                        float4 v493 = *(const __global float4 *)(in0 + (i24 + min(t + 64 + i62, 69L) * 16 + i63));
                        v65 = v493;
                        float4 v494 = *(const __global float4 *)(in0 + (i24 + min(t + 64 + (i62 + 32), 69L) * 16 + i63));
                        v66 = v494;
                    }
                }
                long i514 = i2 + 1;
                if (t >= 0 && t + 64 <= i514) {
                    #pragma unroll 128
                    for (long k = 0; k < 32; k++) {
                        float v495 = tiles[1280 + (s + 1 + t / 64) % 2 * 1280 + k * 16 + i4];
                        float4 v496 = *(__local float4 *)(weights + (s * 32 + k) * 68 + i5 * 8);
                        float4 v497 = *(__local float4 *)(weights + (s * 32 + k) * 68 + i5 * 8 + 4);
                        float v498 = (float)(v496.s0);
                        float v499 = fma(v498, v495, v43);
                        v43 = v499;
                        float v500 = (float)(v496.s1);
                        float v501 = fma(v500, v495, v44);
                        v44 = v501;
                        float v502 = (float)(v496.s2);
                        float v503 = fma(v502, v495, v45);
                        v45 = v503;
                        float v504 = (float)(v496.s3);
                        float v505 = fma(v504, v495, v46);
                        v46 = v505;
                        float v506 = (float)(v497.s0);
                        float v507 = fma(v506, v495, v47);
                        v47 = v507;
                        float v508 = (float)(v497.s1);
                        float v509 = fma(v508, v495, v48);
                        v48 = v509;
                        float v510 = (float)(v497.s2);
                        float v511 = fma(v510, v495, v49);
                        v49 = v511;
                        float v512 = (float)(v497.s3);
                        float v513 = fma(v512, v495, v50);
                        v50 = v513;
                    }
                } else {
                    long i519 = 0 - t - s * 32;
                    long i520 = i15 - t - s * 32;
                    long i521 = min(32L, i520);
                    for (long k = max(0L, i519); k < i521; k++) {
                        float v515 = weights[(s * 32 + k) * 68 + i5 * 8];
                        float v516 = v515;
                        float v517 = tiles[1280 + (s + 1 + t / 64) % 2 * 1280 + k * 16 + i4];
                        float v518 = fma(v516, v517, v43);
                        v43 = v518;
                    }
                    long i526 = 0 - t - s * 32;
                    long i527 = i16 - t - s * 32;
                    long i528 = min(32L, i527);
                    for (long k = max(0L, i526); k < i528; k++) {
                        float v522 = weights[(s * 32 + k) * 68 + i5 * 8 + 1];
                        float v523 = v522;
                        float v524 = tiles[1280 + (s + 1 + t / 64) % 2 * 1280 + k * 16 + i4];
                        float v525 = fma(v523, v524, v44);
                        v44 = v525;
                    }
                    long i533 = 0 - t - s * 32;
                    long i534 = i17 - t - s * 32;
                    long i535 = min(32L, i534);
                    for (long k = max(0L, i533); k < i535; k++) {
                        float v529 = weights[(s * 32 + k) * 68 + i5 * 8 + 2];
                        float v530 = v529;
                        float v531 = tiles[1280 + (s + 1 + t / 64) % 2 * 1280 + k * 16 + i4];
                        float v532 = fma(v530, v531, v45);
                        v45 = v532;
                    }
                    long i540 = 0 - t - s * 32;
                    long i541 = i18 - t - s * 32;
                    long i542 = min(32L, i541);
                    for (long k = max(0L, i540); k < i542; k++) {
                        float v536 = weights[(s * 32 + k) * 68 + i5 * 8 + 3];
                        float v537 = v536;
                        float v538 = tiles[1280 + (s + 1 + t / 64) % 2 * 1280 + k * 16 + i4];
                        float v539 = fma(v537, v538, v46);
                        v46 = v539;
                    }
                    long i547 = 0 - t - s * 32;
                    long i548 = i19 - t - s * 32;
                    long i549 = min(32L, i548);
                    for (long k = max(0L, i547); k < i549; k++) {
                        float v543 = weights[(s * 32 + k) * 68 + i5 * 8 + 4];
                        float v544 = v543;
                        float v545 = tiles[1280 + (s + 1 + t / 64) % 2 * 1280 + k * 16 + i4];
                        float v546 = fma(v544, v545, v47);
                        v47 = v546;
                    }
                    long i554 = 0 - t - s * 32;
                    long i555 = i20 - t - s * 32;
                    long i556 = min(32L, i555);
                    for (long k = max(0L, i554); k < i556; k++) {
                        float v550 = weights[(s * 32 + k) * 68 + i5 * 8 + 5];
                        float v551 = v550;
                        float v552 = tiles[1280 + (s + 1 + t / 64) % 2 * 1280 + k * 16 + i4];
                        float v553 = fma(v551, v552, v48);
                        v48 = v553;
                    }
                    long i561 = 0 - t - s * 32;
                    long i562 = i21 - t - s * 32;
                    long i563 = min(32L, i562);
                    for (long k = max(0L, i561); k < i563; k++) {
                        float v557 = weights[(s * 32 + k) * 68 + i5 * 8 + 6];
                        float v558 = v557;
                        float v559 = tiles[1280 + (s + 1 + t / 64) % 2 * 1280 + k * 16 + i4];
                        float v560 = fma(v558, v559, v49);
                        v49 = v560;
                    }
                    long i568 = 0 - t - s * 32;
                    long i569 = i22 - t - s * 32;
                    long i570 = min(32L, i569);
                    for (long k = max(0L, i568); k < i570; k++) {
                        float v564 = weights[(s * 32 + k) * 68 + i5 * 8 + 7];
                        float v565 = v564;
                        float v566 = tiles[1280 + (s + 1 + t / 64) % 2 * 1280 + k * 16 + i4];
                        float v567 = fma(v565, v566, v50);
                        v50 = v567;
                    }
                }
                if (s + 1 < 2) {
                    *(__local float4 *)(tiles + 1280 + (s + 2 + t / 64) % 2 * 1280 + i61) = v65;
                } else {
                    if (t + 64 < i51) {
                        *(__local float4 *)(tiles + 1280 + (t + 64) / 64 % 2 * 1280 + i64) = v65;
                        *(__local float4 *)(tiles + 1280 + (t + 64) / 64 % 2 * 1280 + (i64 + 640)) = v66;
                    }
                }
                barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            }
        }
        float v571 = v35;
        exchange[i26 * 16 + i4] = v571;
        float v572 = v36;
        exchange[(i26 + 1) * 16 + i4] = v572;
        float v573 = v37;
        exchange[(i26 + 2) * 16 + i4] = v573;
        float v574 = v38;
        exchange[(i26 + 3) * 16 + i4] = v574;
        float v575 = v39;
        exchange[(i26 + 4) * 16 + i4] = v575;
        float v576 = v40;
        exchange[(i26 + 5) * 16 + i4] = v576;
        float v577 = v41;
        exchange[(i26 + 6) * 16 + i4] = v577;
        float v578 = v42;
        exchange[(i26 + 7) * 16 + i4] = v578;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        float4 v579 = *(__local float4 *)(exchange + i26 * 16);
        float4 v580 = *(__local float4 *)(exchange + i26 * 16 + 4);
        float4 v581 = *(__local float4 *)(exchange + i26 * 16 + 8);
        float4 v582 = *(__local float4 *)(exchange + i26 * 16 + 12);
        float4 v583 = (v579 + v581);
        float4 v584 = (v580 + v582);
        float4 v585 = (v583 + v584);
        float2 v586 = v585.lo;
        float2 v587 = v585.hi;
        float2 v588 = (v586 + v587);
        float v589 = v588.lo;
        float v590 = v588.hi;
        float v591 = (v589 + v590);
        if (i6 < 70) {
            long i592 = (long)i4;
            if (i592 < 4) {
                float v593 = (float)(0x0.0p+0f);
                float v594 = v591;
                int v595 = (v594 == v593);
                float v596 = (v43 / v594);
                float v597 = (v595 ? v593 : v596);
                out0[i1 * 280 + i6 * 4 + i592] = (v597 == v597 ? v597 : (float)(as_float(0x7fc00000U)));
            }
        }
        float4 v598 = *(__local float4 *)(exchange + (i26 + 1) * 16);
        float4 v599 = *(__local float4 *)(exchange + (i26 + 1) * 16 + 4);
        float4 v600 = *(__local float4 *)(exchange + (i26 + 1) * 16 + 8);
        float4 v601 = *(__local float4 *)(exchange + (i26 + 1) * 16 + 12);
        float4 v602 = (v598 + v600);
        float4 v603 = (v599 + v601);
        float4 v604 = (v602 + v603);
        float2 v605 = v604.lo;
        float2 v606 = v604.hi;
        float2 v607 = (v605 + v606);
        float v608 = v607.lo;
        float v609 = v607.hi;
        float v610 = (v608 + v609);
        if (i6 + 8 < 70) {
            long i611 = i6 + 8;
            long i612 = (long)i4;
            if (i612 < 4) {
                float v613 = (float)(0x0.0p+0f);
                float v614 = v610;
                int v615 = (v614 == v613);
                float v616 = (v44 / v614);
                float v617 = (v615 ? v613 : v616);
                out0[i1 * 280 + i611 * 4 + i612] = (v617 == v617 ? v617 : (float)(as_float(0x7fc00000U)));
            }
        }
        float4 v618 = *(__local float4 *)(exchange + (i26 + 2) * 16);
        float4 v619 = *(__local float4 *)(exchange + (i26 + 2) * 16 + 4);
        float4 v620 = *(__local float4 *)(exchange + (i26 + 2) * 16 + 8);
        float4 v621 = *(__local float4 *)(exchange + (i26 + 2) * 16 + 12);
        float4 v622 = (v618 + v620);
        float4 v623 = (v619 + v621);
        float4 v624 = (v622 + v623);
        float2 v625 = v624.lo;
        float2 v626 = v624.hi;
        float2 v627 = (v625 + v626);
        float v628 = v627.lo;
        float v629 = v627.hi;
        float v630 = (v628 + v629);
        if (i6 + 16 < 70) {
            long i631 = i6 + 16;
            long i632 = (long)i4;
            if (i632 < 4) {
                float v633 = (float)(0x0.0p+0f);
                float v634 = v630;
                int v635 = (v634 == v633);
                float v636 = (v45 / v634);
                float v637 = (v635 ? v633 : v636);
                out0[i1 * 280 + i631 * 4 + i632] = (v637 == v637 ? v637 : (float)(as_float(0x7fc00000U)));
            }
        }
        float4 v638 = *(__local float4 *)(exchange + (i26 + 3) * 16);
        float4 v639 = *(__local float4 *)(exchange + (i26 + 3) * 16 + 4);
        float4 v640 = *(__local float4 *)(exchange + (i26 + 3) * 16 + 8);
        float4 v641 = *(__local float4 *)(exchange + (i26 + 3) * 16 + 12);
        float4 v642 = (v638 + v640);
        float4 v643 = (v639 + v641);
        float4 v644 = (v642 + v643);
        float2 v645 = v644.lo;
        float2 v646 = v644.hi;
        float2 v647 = (v645 + v646);
        float v648 = v647.lo;
        float v649 = v647.hi;
        float v650 = (v648 + v649);
        if (i6 + 24 < 70) {
            long i651 = i6 + 24;
            long i652 = (long)i4;
            if (i652 < 4) {
                float v653 = (float)(0x0.0p+0f);
                float v654 = v650;
                int v655 = (v654 == v653);
                float v656 = (v46 / v654);
                float v657 = (v655 ? v653 : v656);
                out0[i1 * 280 + i651 * 4 + i652] = (v657 == v657 ? v657 : (float)(as_float(0x7fc00000U)));
            }
        }
        float4 v658 = *(__local float4 *)(exchange + (i26 + 4) * 16);
        float4 v659 = *(__local float4 *)(exchange + (i26 + 4) * 16 + 4);
        float4 v660 = *(__local float4 *)(exchange + (i26 + 4) * 16 + 8);
        float4 v661 = *(__local float4 *)(exchange + (i26 + 4) * 16 + 12);
        float4 v662 = (v658 + v660);
        float4 v663 = (v659 + v661);
        float4 v664 = (v662 + v663);
        float2 v665 = v664.lo;
        float2 v666 = v664.hi;
        float2 v667 = (v665 + v666);
        float v668 = v667.lo;
        float v669 = v667.hi;
        float v670 = (v668 + v669);
        if (i6 + 32 < 70) {
            long i671 = i6 + 32;
            long i672 = (long)i4;
            if (i672 < 4) {
                float v673 = (float)(0x0.0p+0f);
                float v674 = v670;
                int v675 = (v674 == v673);
                float v676 = (v47 / v674);
                float v677 = (v675 ? v673 : v676);
                out0[i1 * 280 + i671 * 4 + i672] = (v677 == v677 ? v677 : (float)(as_float(0x7fc00000U)));
            }
        }
        float4 v678 = *(__local float4 *)(exchange + (i26 + 5) * 16);
        float4 v679 = *(__local float4 *)(exchange + (i26 + 5) * 16 + 4);
        float4 v680 = *(__local float4 *)(exchange + (i26 + 5) * 16 + 8);
        float4 v681 = *(__local float4 *)(exchange + (i26 + 5) * 16 + 12);
        float4 v682 = (v678 + v680);
        float4 v683 = (v679 + v681);
        float4 v684 = (v682 + v683);
        float2 v685 = v684.lo;
        float2 v686 = v684.hi;
        float2 v687 = (v685 + v686);
        float v688 = v687.lo;
        float v689 = v687.hi;
        float v690 = (v688 + v689);
        if (i6 + 40 < 70) {
            long i691 = i6 + 40;
            long i692 = (long)i4;
            if (i692 < 4) {
                float v693 = (float)(0x0.0p+0f);
                float v694 = v690;
                int v695 = (v694 == v693);
                float v696 = (v48 / v694);
                float v697 = (v695 ? v693 : v696);
                out0[i1 * 280 + i691 * 4 + i692] = (v697 == v697 ? v697 : (float)(as_float(0x7fc00000U)));
            }
        }
        float4 v698 = *(__local float4 *)(exchange + (i26 + 6) * 16);
        float4 v699 = *(__local float4 *)(exchange + (i26 + 6) * 16 + 4);
        float4 v700 = *(__local float4 *)(exchange + (i26 + 6) * 16 + 8);
        float4 v701 = *(__local float4 *)(exchange + (i26 + 6) * 16 + 12);
        float4 v702 = (v698 + v700);
        float4 v703 = (v699 + v701);
        float4 v704 = (v702 + v703);
        float2 v705 = v704.lo;
        float2 v706 = v704.hi;
        float2 v707 = (v705 + v706);
        float v708 = v707.lo;
        float v709 = v707.hi;
        float v710 = (v708 + v709);
        if (i6 + 48 < 70) {
            long i711 = i6 + 48;
            long i712 = (long)i4;
            if (i712 < 4) {
                float v713 = (float)(0x0.0p+0f);
                float v714 = v710;
                int v715 = (v714 == v713);
                float v716 = (v49 / v714);
                float v717 = (v715 ? v713 : v716);
                out0[i1 * 280 + i711 * 4 + i712] = (v717 == v717 ? v717 : (float)(as_float(0x7fc00000U)));
            }
        }
        float4 v718 = *(__local float4 *)(exchange + (i26 + 7) * 16);
        float4 v719 = *(__local float4 *)(exchange + (i26 + 7) * 16 + 4);
        float4 v720 = *(__local float4 *)(exchange + (i26 + 7) * 16 + 8);
        float4 v721 = *(__local float4 *)(exchange + (i26 + 7) * 16 + 12);
        float4 v722 = (v718 + v720);
        float4 v723 = (v719 + v721);
        float4 v724 = (v722 + v723);
        float2 v725 = v724.lo;
        float2 v726 = v724.hi;
        float2 v727 = (v725 + v726);
        float v728 = v727.lo;
        float v729 = v727.hi;
        float v730 = (v728 + v729);
        if (i6 + 56 < 70) {
            long i731 = i6 + 56;
            long i732 = (long)i4;
            if (i732 < 4) {
                float v733 = (float)(0x0.0p+0f);
                float v734 = v730;
                int v735 = (v734 == v733);
                float v736 = (v50 / v734);
                float v737 = (v735 ? v733 : v736);
                out0[i1 * 280 + i731 * 4 + i732] = (v737 == v737 ? v737 : (float)(as_float(0x7fc00000U)));
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
