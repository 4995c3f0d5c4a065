#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF

static inline void fc_copy_4(__local void *to, const __global void *from, int exists) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"((uint)(size_t)to), "l"(from), "r"(exists ? 4 : 0) : "memory");
}

static inline uint fc_shuffle_down(uint bits, uint place, uint segment) {
    uint other;
    asm volatile("shfl.sync.down.b32 %0, %1, %2, %3, 0xffffffff;"
                 : "=r"(other) : "r"(bits), "r"(place), "r"(segment));
    return other;
}

static inline uint fc_shuffle_idx(uint bits, uint place, uint segment) {
    uint other;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, %3, 0xffffffff;"
                 : "=r"(other) : "r"(bits), "r"(place), "r"(segment));
    return other;
}

__kernel __attribute__((reqd_work_group_size(320, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local float held0[10240] __attribute__((aligned(64)));
    __local float l263[20] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    int i0 = (int)(lid % 32);
    int i1 = (int)(lid / 32 * 1024);
    long i2 = i1 + i0;
    int i3 = (int)(i0 + 32);
    long i4 = i1 + i3;
    int i5 = (int)(i0 + 64);
    long i6 = i1 + i5;
    int i7 = (int)(i0 + 96);
    long i8 = i1 + i7;
    int i9 = (int)(i0 + 128);
    long i10 = i1 + i9;
    int i11 = (int)(i0 + 160);
    long i12 = i1 + i11;
    int i13 = (int)(i0 + 192);
    long i14 = i1 + i13;
    int i15 = (int)(i0 + 224);
    long i16 = i1 + i15;
    int i17 = (int)(i0 + 256);
    long i18 = i1 + i17;
    int i19 = (int)(i0 + 288);
    long i20 = i1 + i19;
    int i21 = (int)(i0 + 320);
    long i22 = i1 + i21;
    int i23 = (int)(i0 + 352);
    long i24 = i1 + i23;
    int i25 = (int)(i0 + 384);
    long i26 = i1 + i25;
    int i27 = (int)(i0 + 416);
    long i28 = i1 + i27;
    int i29 = (int)(i0 + 448);
    long i30 = i1 + i29;
    int i31 = (int)(i0 + 480);
    long i32 = i1 + i31;
    int i33 = (int)(i0 + 512);
    long i34 = i1 + i33;
    int i35 = (int)(i0 + 544);
    long i36 = i1 + i35;
    int i37 = (int)(i0 + 576);
    long i38 = i1 + i37;
    int i39 = (int)(i0 + 608);
    long i40 = i1 + i39;
    int i41 = (int)(i0 + 640);
    long i42 = i1 + i41;
    int i43 = (int)(i0 + 672);
    long i44 = i1 + i43;
    int i45 = (int)(i0 + 704);
    long i46 = i1 + i45;
    int i47 = (int)(i0 + 736);
    long i48 = i1 + i47;
    int i49 = (int)(i0 + 768);
    long i50 = i1 + i49;
    int i51 = (int)(i0 + 800);
    long i52 = i1 + i51;
    int i53 = (int)(i0 + 832);
    long i54 = i1 + i53;
    int i55 = (int)(i0 + 864);
    long i56 = i1 + i55;
    int i57 = (int)(i0 + 896);
    long i58 = i1 + i57;
    int i59 = (int)(i0 + 928);
    long i60 = i1 + i59;
    int i61 = (int)(i0 + 960);
    long i62 = i1 + i61;
    int i63 = (int)(i0 + 992);
    long i64 = i1 + i63;
    long i65 = i1 + 10240 + i0;
    for (long r = gid; r < n; r += gsize) {
        long record = r;
        long i91 = record * 20000;
        #pragma unroll
        for (long t66 = 0; t66 < 4; t66++) {
            long i67 = i65 + t66 * 256;
            int i68 = (int)(i67 < 20000);
            long i69 = min(i67, 19999L);
            long i70 = i65 + t66 * 256 + 32;
            int i71 = (int)(i70 < 20000);
            long i72 = min(i70, 19999L);
            long i73 = i65 + t66 * 256 + 64;
            int i74 = (int)(i73 < 20000);
            long i75 = min(i73, 19999L);
            long i76 = i65 + t66 * 256 + 96;
            int i77 = (int)(i76 < 20000);
            long i78 = min(i76, 19999L);
            long i79 = i65 + t66 * 256 + 128;
            int i80 = (int)(i79 < 20000);
            long i81 = min(i79, 19999L);
            long i82 = i65 + t66 * 256 + 160;
            int i83 = (int)(i82 < 20000);
            long i84 = min(i82, 19999L);
            long i85 = i65 + t66 * 256 + 192;
            int i86 = (int)(i85 < 20000);
            long i87 = min(i85, 19999L);
            long i88 = i65 + t66 * 256 + 224;
            int i89 = (int)(i88 < 20000);
            long i90 = min(i88, 19999L);
            fc_copy_4((__local uint *)held0 + (t66 * 8 * 320 + lid), in0 + (i91 + i69), 1);
            fc_copy_4((__local uint *)held0 + ((t66 * 8 + 1) * 320 + lid), in0 + (i91 + i72), 1);
            fc_copy_4((__local uint *)held0 + ((t66 * 8 + 2) * 320 + lid), in0 + (i91 + i75), 1);
            fc_copy_4((__local uint *)held0 + ((t66 * 8 + 3) * 320 + lid), in0 + (i91 + i78), 1);
            fc_copy_4((__local uint *)held0 + ((t66 * 8 + 4) * 320 + lid), in0 + (i91 + i81), 1);
            fc_copy_4((__local uint *)held0 + ((t66 * 8 + 5) * 320 + lid), in0 + (i91 + i84), 1);
            fc_copy_4((__local uint *)held0 + ((t66 * 8 + 6) * 320 + lid), in0 + (i91 + i87), 1);
            fc_copy_4((__local uint *)held0 + ((t66 * 8 + 7) * 320 + lid), in0 + (i91 + i90), 1);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        float v92 = (float)(-INFINITY);
        float v93 = (float)(-INFINITY);
        float v94 = (float)(-INFINITY);
        float v95 = (float)(-INFINITY);
        float v96 = (float)(-INFINITY);
        float v97 = (float)(-INFINITY);
        float v98 = (float)(-INFINITY);
        float v99 = (float)(-INFINITY);
        float v100 = in0[i91 + i2];
        float v101 = (v92 == v100 ? as_float(as_int(v92) & as_int(v100)) : ((v92 > v100) | (v92 != v92) ? v92 : v100));
        v92 = v101;
        float v102 = in0[i91 + i4];
        float v103 = (v93 == v102 ? as_float(as_int(v93) & as_int(v102)) : ((v93 > v102) | (v93 != v93) ? v93 : v102));
        v93 = v103;
        float v104 = in0[i91 + i6];
        float v105 = (v94 == v104 ? as_float(as_int(v94) & as_int(v104)) : ((v94 > v104) | (v94 != v94) ? v94 : v104));
        v94 = v105;
        float v106 = in0[i91 + i8];
        float v107 = (v95 == v106 ? as_float(as_int(v95) & as_int(v106)) : ((v95 > v106) | (v95 != v95) ? v95 : v106));
        v95 = v107;
        float v108 = in0[i91 + i10];
        float v109 = (v96 == v108 ? as_float(as_int(v96) & as_int(v108)) : ((v96 > v108) | (v96 != v96) ? v96 : v108));
        v96 = v109;
        float v110 = in0[i91 + i12];
        float v111 = (v97 == v110 ? as_float(as_int(v97) & as_int(v110)) : ((v97 > v110) | (v97 != v97) ? v97 : v110));
        v97 = v111;
        float v112 = in0[i91 + i14];
        float v113 = (v98 == v112 ? as_float(as_int(v98) & as_int(v112)) : ((v98 > v112) | (v98 != v98) ? v98 : v112));
        v98 = v113;
        float v114 = in0[i91 + i16];
        float v115 = (v99 == v114 ? as_float(as_int(v99) & as_int(v114)) : ((v99 > v114) | (v99 != v99) ? v99 : v114));
        v99 = v115;
        float v116 = in0[i91 + i18];
        float v117 = (v92 == v116 ? as_float(as_int(v92) & as_int(v116)) : ((v92 > v116) | (v92 != v92) ? v92 : v116));
        v92 = v117;
        float v118 = in0[i91 + i20];
        float v119 = (v93 == v118 ? as_float(as_int(v93) & as_int(v118)) : ((v93 > v118) | (v93 != v93) ? v93 : v118));
        v93 = v119;
        float v120 = in0[i91 + i22];
        float v121 = (v94 == v120 ? as_float(as_int(v94) & as_int(v120)) : ((v94 > v120) | (v94 != v94) ? v94 : v120));
        v94 = v121;
        float v122 = in0[i91 + i24];
        float v123 = (v95 == v122 ? as_float(as_int(v95) & as_int(v122)) : ((v95 > v122) | (v95 != v95) ? v95 : v122));
        v95 = v123;
        float v124 = in0[i91 + i26];
        float v125 = (v96 == v124 ? as_float(as_int(v96) & as_int(v124)) : ((v96 > v124) | (v96 != v96) ? v96 : v124));
        v96 = v125;
        float v126 = in0[i91 + i28];
        float v127 = (v97 == v126 ? as_float(as_int(v97) & as_int(v126)) : ((v97 > v126) | (v97 != v97) ? v97 : v126));
        v97 = v127;
        float v128 = in0[i91 + i30];
        float v129 = (v98 == v128 ? as_float(as_int(v98) & as_int(v128)) : ((v98 > v128) | (v98 != v98) ? v98 : v128));
        v98 = v129;
        float v130 = in0[i91 + i32];
        float v131 = (v99 == v130 ? as_float(as_int(v99) & as_int(v130)) : ((v99 > v130) | (v99 != v99) ? v99 : v130));
        v99 = v131;
        float v132 = in0[i91 + i34];
        float v133 = (v92 == v132 ? as_float(as_int(v92) & as_int(v132)) : ((v92 > v132) | (v92 != v92) ? v92 : v132));
        v92 = v133;
        float v134 = in0[i91 + i36];
        float v135 = (v93 == v134 ? as_float(as_int(v93) & as_int(v134)) : ((v93 > v134) | (v93 != v93) ? v93 : v134));
        v93 = v135;
        float v136 = in0[i91 + i38];
        float v137 = (v94 == v136 ? as_float(as_int(v94) & as_int(v136)) : ((v94 > v136) | (v94 != v94) ? v94 : v136));
        v94 = v137;
        float v138 = in0[i91 + i40];
        float v139 = (v95 == v138 ? as_float(as_int(v95) & as_int(v138)) : ((v95 > v138) | (v95 != v95) ? v95 : v138));
        v95 = v139;
        float v140 = in0[i91 + i42];
        float v141 = (v96 == v140 ? as_float(as_int(v96) & as_int(v140)) : ((v96 > v140) | (v96 != v96) ? v96 : v140));
        v96 = v141;
        float v142 = in0[i91 + i44];
        float v143 = (v97 == v142 ? as_float(as_int(v97) & as_int(v142)) : ((v97 > v142) | (v97 != v97) ? v97 : v142));
        v97 = v143;
        float v144 = in0[i91 + i46];
        float v145 = (v98 == v144 ? as_float(as_int(v98) & as_int(v144)) : ((v98 > v144) | (v98 != v98) ? v98 : v144));
        v98 = v145;
        float v146 = in0[i91 + i48];
        float v147 = (v99 == v146 ? as_float(as_int(v99) & as_int(v146)) : ((v99 > v146) | (v99 != v99) ? v99 : v146));
        v99 = v147;
        float v148 = in0[i91 + i50];
        float v149 = (v92 == v148 ? as_float(as_int(v92) & as_int(v148)) : ((v92 > v148) | (v92 != v92) ? v92 : v148));
        v92 = v149;
        float v150 = in0[i91 + i52];
        float v151 = (v93 == v150 ? as_float(as_int(v93) & as_int(v150)) : ((v93 > v150) | (v93 != v93) ? v93 : v150));
        v93 = v151;
        float v152 = in0[i91 + i54];
        float v153 = (v94 == v152 ? as_float(as_int(v94) & as_int(v152)) : ((v94 > v152) | (v94 != v94) ? v94 : v152));
        v94 = v153;
        float v154 = in0[i91 + i56];
        float v155 = (v95 == v154 ? as_float(as_int(v95) & as_int(v154)) : ((v95 > v154) | (v95 != v95) ? v95 : v154));
        v95 = v155;
        float v156 = in0[i91 + i58];
        float v157 = (v96 == v156 ? as_float(as_int(v96) & as_int(v156)) : ((v96 > v156) | (v96 != v96) ? v96 : v156));
        v96 = v157;
        float v158 = in0[i91 + i60];
        float v159 = (v97 == v158 ? as_float(as_int(v97) & as_int(v158)) : ((v97 > v158) | (v97 != v97) ? v97 : v158));
        v97 = v159;
        float v160 = in0[i91 + i62];
        float v161 = (v98 == v160 ? as_float(as_int(v98) & as_int(v160)) : ((v98 > v160) | (v98 != v98) ? v98 : v160));
        v98 = v161;
        float v162 = in0[i91 + i64];
        float v163 = (v99 == v162 ? as_float(as_int(v99) & as_int(v162)) : ((v99 > v162) | (v99 != v99) ? v99 : v162));
        v99 = v163;
        float v164 = (v92 == v96 ? as_float(as_int(v92) & as_int(v96)) : ((v92 > v96) | (v92 != v92) ? v92 : v96));
        float v165 = (v93 == v97 ? as_float(as_int(v93) & as_int(v97)) : ((v93 > v97) | (v93 != v93) ? v93 : v97));
        float v166 = (v94 == v98 ? as_float(as_int(v94) & as_int(v98)) : ((v94 > v98) | (v94 != v94) ? v94 : v98));
        float v167 = (v95 == v99 ? as_float(as_int(v95) & as_int(v99)) : ((v95 > v99) | (v95 != v95) ? v95 : v99));
        float v168 = (v164 == v166 ? as_float(as_int(v164) & as_int(v166)) : ((v164 > v166) | (v164 != v164) ? v164 : v166));
        float v169 = (v165 == v167 ? as_float(as_int(v165) & as_int(v167)) : ((v165 > v167) | (v165 != v165) ? v165 : v167));
        float v170 = (v168 == v169 ? as_float(as_int(v168) & as_int(v169)) : ((v168 > v169) | (v168 != v168) ? v168 : v169));
        float v171 = as_float(fc_shuffle_down(as_uint(v170), 16, 31));
        float v172 = (v170 == v171 ? as_float(as_int(v170) & as_int(v171)) : ((v170 > v171) | (v170 != v170) ? v170 : v171));
        float v173 = as_float(fc_shuffle_down(as_uint(v172), 8, 31));
        float v174 = (v172 == v173 ? as_float(as_int(v172) & as_int(v173)) : ((v172 > v173) | (v172 != v172) ? v172 : v173));
        float v175 = as_float(fc_shuffle_down(as_uint(v174), 4, 31));
        float v176 = (v174 == v175 ? as_float(as_int(v174) & as_int(v175)) : ((v174 > v175) | (v174 != v174) ? v174 : v175));
        float v177 = as_float(fc_shuffle_down(as_uint(v176), 2, 31));
        float v178 = (v176 == v177 ? as_float(as_int(v176) & as_int(v177)) : ((v176 > v177) | (v176 != v176) ? v176 : v177));
        float v179 = as_float(fc_shuffle_down(as_uint(v178), 1, 31));
        float v180 = (v178 == v179 ? as_float(as_int(v178) & as_int(v179)) : ((v178 > v179) | (v178 != v178) ? v178 : v179));
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        float v181 = (float)(-INFINITY);
        float v182 = (float)(-INFINITY);
        float v183 = (float)(-INFINITY);
        float v184 = (float)(-INFINITY);
        float v185 = (float)(-INFINITY);
        float v186 = (float)(-INFINITY);
        float v187 = (float)(-INFINITY);
        float v188 = (float)(-INFINITY);
        #pragma unroll 1
        for (long t189 = 0; t189 < 4; t189++) {
            long i190 = i65 + t189 * 256;
            int i191 = (int)(i190 < 20000);
            long i192 = min(i190, 19999L);
            long i193 = i65 + t189 * 256 + 32;
            int i194 = (int)(i193 < 20000);
            long i195 = min(i193, 19999L);
            long i196 = i65 + t189 * 256 + 64;
            int i197 = (int)(i196 < 20000);
            long i198 = min(i196, 19999L);
            long i199 = i65 + t189 * 256 + 96;
            int i200 = (int)(i199 < 20000);
            long i201 = min(i199, 19999L);
            long i202 = i65 + t189 * 256 + 128;
            int i203 = (int)(i202 < 20000);
            long i204 = min(i202, 19999L);
            long i205 = i65 + t189 * 256 + 160;
            int i206 = (int)(i205 < 20000);
            long i207 = min(i205, 19999L);
            long i208 = i65 + t189 * 256 + 192;
            int i209 = (int)(i208 < 20000);
            long i210 = min(i208, 19999L);
            long i211 = i65 + t189 * 256 + 224;
            int i212 = (int)(i211 < 20000);
            long i213 = min(i211, 19999L);
            float v214 = held0[t189 * 8 * 320 + lid];
            float v215 = (v181 == v214 ? as_float(as_int(v181) & as_int(v214)) : ((v181 > v214) | (v181 != v181) ? v181 : v214));
            int v216 = (0 < (i191));
            float v217 = (v216 ? v215 : v181);
            v181 = v217;
            float v218 = held0[(t189 * 8 + 1) * 320 + lid];
            float v219 = (v182 == v218 ? as_float(as_int(v182) & as_int(v218)) : ((v182 > v218) | (v182 != v182) ? v182 : v218));
            int v220 = (0 < (i194));
            float v221 = (v220 ? v219 : v182);
            v182 = v221;
            float v222 = held0[(t189 * 8 + 2) * 320 + lid];
            float v223 = (v183 == v222 ? as_float(as_int(v183) & as_int(v222)) : ((v183 > v222) | (v183 != v183) ? v183 : v222));
            int v224 = (0 < (i197));
            float v225 = (v224 ? v223 : v183);
            v183 = v225;
            float v226 = held0[(t189 * 8 + 3) * 320 + lid];
            float v227 = (v184 == v226 ? as_float(as_int(v184) & as_int(v226)) : ((v184 > v226) | (v184 != v184) ? v184 : v226));
            int v228 = (0 < (i200));
            float v229 = (v228 ? v227 : v184);
            v184 = v229;
            float v230 = held0[(t189 * 8 + 4) * 320 + lid];
            float v231 = (v185 == v230 ? as_float(as_int(v185) & as_int(v230)) : ((v185 > v230) | (v185 != v185) ? v185 : v230));
            int v232 = (0 < (i203));
            float v233 = (v232 ? v231 : v185);
            v185 = v233;
            float v234 = held0[(t189 * 8 + 5) * 320 + lid];
            float v235 = (v186 == v234 ? as_float(as_int(v186) & as_int(v234)) : ((v186 > v234) | (v186 != v186) ? v186 : v234));
            int v236 = (0 < (i206));
            float v237 = (v236 ? v235 : v186);
            v186 = v237;
            float v238 = held0[(t189 * 8 + 6) * 320 + lid];
            float v239 = (v187 == v238 ? as_float(as_int(v187) & as_int(v238)) : ((v187 > v238) | (v187 != v187) ? v187 : v238));
            int v240 = (0 < (i209));
            float v241 = (v240 ? v239 : v187);
            v187 = v241;
            float v242 = held0[(t189 * 8 + 7) * 320 + lid];
            float v243 = (v188 == v242 ? as_float(as_int(v188) & as_int(v242)) : ((v188 > v242) | (v188 != v188) ? v188 : v242));
            int v244 = (0 < (i212));
            float v245 = (v244 ? v243 : v188);
            v188 = v245;
        }
        float v246 = (v181 == v185 ? as_float(as_int(v181) & as_int(v185)) : ((v181 > v185) | (v181 != v181) ? v181 : v185));
        float v247 = (v182 == v186 ? as_float(as_int(v182) & as_int(v186)) : ((v182 > v186) | (v182 != v182) ? v182 : v186));
        float v248 = (v183 == v187 ? as_float(as_int(v183) & as_int(v187)) : ((v183 > v187) | (v183 != v183) ? v183 : v187));
        float v249 = (v184 == v188 ? as_float(as_int(v184) & as_int(v188)) : ((v184 > v188) | (v184 != v184) ? v184 : v188));
        float v250 = (v246 == v248 ? as_float(as_int(v246) & as_int(v248)) : ((v246 > v248) | (v246 != v246) ? v246 : v248));
        float v251 = (v247 == v249 ? as_float(as_int(v247) & as_int(v249)) : ((v247 > v249) | (v247 != v247) ? v247 : v249));
        float v252 = (v250 == v251 ? as_float(as_int(v250) & as_int(v251)) : ((v250 > v251) | (v250 != v250) ? v250 : v251));
        float v253 = as_float(fc_shuffle_down(as_uint(v252), 16, 31));
        float v254 = (v252 == v253 ? as_float(as_int(v252) & as_int(v253)) : ((v252 > v253) | (v252 != v252) ? v252 : v253));
        float v255 = as_float(fc_shuffle_down(as_uint(v254), 8, 31));
        float v256 = (v254 == v255 ? as_float(as_int(v254) & as_int(v255)) : ((v254 > v255) | (v254 != v254) ? v254 : v255));
        float v257 = as_float(fc_shuffle_down(as_uint(v256), 4, 31));
        float v258 = (v256 == v257 ? as_float(as_int(v256) & as_int(v257)) : ((v256 > v257) | (v256 != v256) ? v256 : v257));
        float v259 = as_float(fc_shuffle_down(as_uint(v258), 2, 31));
        float v260 = (v258 == v259 ? as_float(as_int(v258) & as_int(v259)) : ((v258 > v259) | (v258 != v258) ? v258 : v259));
        float v261 = as_float(fc_shuffle_down(as_uint(v260), 1, 31));
        float v262 = (v260 == v261 ? as_float(as_int(v260) & as_int(v261)) : ((v260 > v261) | (v260 != v260) ? v260 : v261));
        if (lid % 32 == 0) {
            l263[lid / 32] = v180;
        }
        if (lid % 32 == 0) {
            l263[lid / 32 + 10] = v262;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        int i264 = (int)(lid % 32);
        int i265 = (int)(min(i264, 19));
        float v266 = l263[i265];
        double v267 = convert_double(v266);
        double v268 = as_double((uint2)(fc_shuffle_down(as_uint2(v267).x, 1, 31), fc_shuffle_down(as_uint2(v267).y, 1, 31)));
        int v269 = (0 < (19 - i264));
        double v270 = (v267 == v268 ? as_double(as_long(v267) & as_long(v268)) : ((v267 > v268) | (v267 != v267) ? v267 : v268));
        double v271 = (v269 ? v270 : v267);
        double v272 = as_double((uint2)(fc_shuffle_down(as_uint2(v271).x, 2, 31), fc_shuffle_down(as_uint2(v271).y, 2, 31)));
        int v273 = (0 < (18 - i264));
        double v274 = (v271 == v272 ? as_double(as_long(v271) & as_long(v272)) : ((v271 > v272) | (v271 != v271) ? v271 : v272));
        double v275 = (v273 ? v274 : v271);
        double v276 = as_double((uint2)(fc_shuffle_down(as_uint2(v275).x, 4, 31), fc_shuffle_down(as_uint2(v275).y, 4, 31)));
        int v277 = (0 < (16 - i264));
        double v278 = (v275 == v276 ? as_double(as_long(v275) & as_long(v276)) : ((v275 > v276) | (v275 != v275) ? v275 : v276));
        double v279 = (v277 ? v278 : v275);
        double v280 = as_double((uint2)(fc_shuffle_down(as_uint2(v279).x, 8, 31), fc_shuffle_down(as_uint2(v279).y, 8, 31)));
        int v281 = (0 < (12 - i264));
        double v282 = (v279 == v280 ? as_double(as_long(v279) & as_long(v280)) : ((v279 > v280) | (v279 != v279) ? v279 : v280));
        double v283 = (v281 ? v282 : v279);
        double v284 = as_double((uint2)(fc_shuffle_down(as_uint2(v283).x, 16, 31), fc_shuffle_down(as_uint2(v283).y, 16, 31)));
        int v285 = (0 < (4 - i264));
        double v286 = (v283 == v284 ? as_double(as_long(v283) & as_long(v284)) : ((v283 > v284) | (v283 != v283) ? v283 : v284));
        double v287 = (v285 ? v286 : v283);
        double v288 = as_double((uint2)(fc_shuffle_idx(as_uint2(v287).x, 0, 31), fc_shuffle_idx(as_uint2(v287).y, 0, 31)));
        float v289 = convert_float(v288);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        float v290 = v289;
        long i291 = record * 20000;
        float v292 = (v100 - v290);
        out0[i291 + i2] = (v292 == v292 ? v292 : (float)(as_float(0x7fc00000U)));
        float v293 = (v102 - v290);
        out0[i291 + i4] = (v293 == v293 ? v293 : (float)(as_float(0x7fc00000U)));
        float v294 = (v104 - v290);
        out0[i291 + i6] = (v294 == v294 ? v294 : (float)(as_float(0x7fc00000U)));
        float v295 = (v106 - v290);
        out0[i291 + i8] = (v295 == v295 ? v295 : (float)(as_float(0x7fc00000U)));
        float v296 = (v108 - v290);
        out0[i291 + i10] = (v296 == v296 ? v296 : (float)(as_float(0x7fc00000U)));
        float v297 = (v110 - v290);
        out0[i291 + i12] = (v297 == v297 ? v297 : (float)(as_float(0x7fc00000U)));
        float v298 = (v112 - v290);
        out0[i291 + i14] = (v298 == v298 ? v298 : (float)(as_float(0x7fc00000U)));
        float v299 = (v114 - v290);
        out0[i291 + i16] = (v299 == v299 ? v299 : (float)(as_float(0x7fc00000U)));
        float v300 = (v116 - v290);
        out0[i291 + i18] = (v300 == v300 ? v300 : (float)(as_float(0x7fc00000U)));
        float v301 = (v118 - v290);
        out0[i291 + i20] = (v301 == v301 ? v301 : (float)(as_float(0x7fc00000U)));
        float v302 = (v120 - v290);
        out0[i291 + i22] = (v302 == v302 ? v302 : (float)(as_float(0x7fc00000U)));
        float v303 = (v122 - v290);
        out0[i291 + i24] = (v303 == v303 ? v303 : (float)(as_float(0x7fc00000U)));
        float v304 = (v124 - v290);
        out0[i291 + i26] = (v304 == v304 ? v304 : (float)(as_float(0x7fc00000U)));
        float v305 = (v126 - v290);
        out0[i291 + i28] = (v305 == v305 ? v305 : (float)(as_float(0x7fc00000U)));
        float v306 = (v128 - v290);
        out0[i291 + i30] = (v306 == v306 ? v306 : (float)(as_float(0x7fc00000U)));
        float v307 = (v130 - v290);
        out0[i291 + i32] = (v307 == v307 ? v307 : (float)(as_float(0x7fc00000U)));
        float v308 = (v132 - v290);
        out0[i291 + i34] = (v308 == v308 ? v308 : (float)(as_float(0x7fc00000U)));
        float v309 = (v134 - v290);
        out0[i291 + i36] = (v309 == v309 ? v309 : (float)(as_float(0x7fc00000U)));
        float v310 = (v136 - v290);
        out0[i291 + i38] = (v310 == v310 ? v310 : (float)(as_float(0x7fc00000U)));
        float v311 = (v138 - v290);
        out0[i291 + i40] = (v311 == v311 ? v311 : (float)(as_float(0x7fc00000U)));
        float v312 = (v140 - v290);
        out0[i291 + i42] = (v312 == v312 ? v312 : (float)(as_float(0x7fc00000U)));
        float v313 = (v142 - v290);
        out0[i291 + i44] = (v313 == v313 ? v313 : (float)(as_float(0x7fc00000U)));
        float v314 = (v144 - v290);
        out0[i291 + i46] = (v314 == v314 ? v314 : (float)(as_float(0x7fc00000U)));
        float v315 = (v146 - v290);
        out0[i291 + i48] = (v315 == v315 ? v315 : (float)(as_float(0x7fc00000U)));
        float v316 = (v148 - v290);
        out0[i291 + i50] = (v316 == v316 ? v316 : (float)(as_float(0x7fc00000U)));
        float v317 = (v150 - v290);
        out0[i291 + i52] = (v317 == v317 ? v317 : (float)(as_float(0x7fc00000U)));
        float v318 = (v152 - v290);
        out0[i291 + i54] = (v318 == v318 ? v318 : (float)(as_float(0x7fc00000U)));
        float v319 = (v154 - v290);
        out0[i291 + i56] = (v319 == v319 ? v319 : (float)(as_float(0x7fc00000U)));
        float v320 = (v156 - v290);
        out0[i291 + i58] = (v320 == v320 ? v320 : (float)(as_float(0x7fc00000U)));
        float v321 = (v158 - v290);
        out0[i291 + i60] = (v321 == v321 ? v321 : (float)(as_float(0x7fc00000U)));
        float v322 = (v160 - v290);
        out0[i291 + i62] = (v322 == v322 ? v322 : (float)(as_float(0x7fc00000U)));
        float v323 = (v162 - v290);
        out0[i291 + i64] = (v323 == v323 ? v323 : (float)(as_float(0x7fc00000U)));
        #pragma unroll 1
        for (long t324 = 0; t324 < 4; t324++) {
            long i325 = i65 + t324 * 256;
            int i326 = (int)(i325 < 20000);
            long i327 = min(i325, 19999L);
            long i328 = i65 + t324 * 256 + 32;
            int i329 = (int)(i328 < 20000);
            long i330 = min(i328, 19999L);
            long i331 = i65 + t324 * 256 + 64;
            int i332 = (int)(i331 < 20000);
            long i333 = min(i331, 19999L);
            long i334 = i65 + t324 * 256 + 96;
            int i335 = (int)(i334 < 20000);
            long i336 = min(i334, 19999L);
            long i337 = i65 + t324 * 256 + 128;
            int i338 = (int)(i337 < 20000);
            long i339 = min(i337, 19999L);
            long i340 = i65 + t324 * 256 + 160;
            int i341 = (int)(i340 < 20000);
            long i342 = min(i340, 19999L);
            long i343 = i65 + t324 * 256 + 192;
            int i344 = (int)(i343 < 20000);
            long i345 = min(i343, 19999L);
            long i346 = i65 + t324 * 256 + 224;
            int i347 = (int)(i346 < 20000);
            long i348 = min(i346, 19999L);
            if (i326) {
                float v349 = held0[t324 * 8 * 320 + lid];
                float v350 = (v349 - v290);
                out0[i291 + i327] = (v350 == v350 ? v350 : (float)(as_float(0x7fc00000U)));
            }
            if (i329) {
                float v351 = held0[(t324 * 8 + 1) * 320 + lid];
                float v352 = (v351 - v290);
                out0[i291 + i330] = (v352 == v352 ? v352 : (float)(as_float(0x7fc00000U)));
            }
            if (i332) {
                float v353 = held0[(t324 * 8 + 2) * 320 + lid];
                float v354 = (v353 - v290);
                out0[i291 + i333] = (v354 == v354 ? v354 : (float)(as_float(0x7fc00000U)));
            }
            if (i335) {
                float v355 = held0[(t324 * 8 + 3) * 320 + lid];
                float v356 = (v355 - v290);
                out0[i291 + i336] = (v356 == v356 ? v356 : (float)(as_float(0x7fc00000U)));
            }
            if (i338) {
                float v357 = held0[(t324 * 8 + 4) * 320 + lid];
                float v358 = (v357 - v290);
                out0[i291 + i339] = (v358 == v358 ? v358 : (float)(as_float(0x7fc00000U)));
            }
            if (i341) {
                float v359 = held0[(t324 * 8 + 5) * 320 + lid];
                float v360 = (v359 - v290);
                out0[i291 + i342] = (v360 == v360 ? v360 : (float)(as_float(0x7fc00000U)));
            }
            if (i344) {
                float v361 = held0[(t324 * 8 + 6) * 320 + lid];
                float v362 = (v361 - v290);
                out0[i291 + i345] = (v362 == v362 ? v362 : (float)(as_float(0x7fc00000U)));
            }
            if (i347) {
                float v363 = held0[(t324 * 8 + 7) * 320 + lid];
                float v364 = (v363 - v290);
                out0[i291 + i348] = (v364 == v364 ? v364 : (float)(as_float(0x7fc00000U)));
            }
        }
    }
}
