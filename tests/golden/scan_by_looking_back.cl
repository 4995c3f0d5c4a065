#pragma OPENCL FP_CONTRACT OFF

static inline long fc_take(volatile __global ulong *words, long last) {
    const long ticket = atomic_inc((volatile __global uint *)words);
    if (ticket == last) atomic_xchg((volatile __global uint *)words, 0u);
    return ticket;
}

static inline void fc_publish(volatile __global ulong *slot, ulong bits, ulong flag) {
    slot[0] = bits << 32 | flag;
    slot[1] = (bits & 0xffffffff00000000UL) | flag;
}

static inline int fc_known(ulong low, ulong high, uint launch, ulong *bits) {
    *bits = low >> 32 | (high & 0xffffffff00000000UL);
    return (uint)low == (uint)high && (uint)low >> 1 == launch ? 1 + ((int)low & 1) : 0;
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global float *restrict out0,
    __global float *restrict state0,
    volatile __global ulong *restrict words0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local float stage[16638] __attribute__((aligned(64)));
    __local float last[3] __attribute__((aligned(64)));
    __local float totals[258] __attribute__((aligned(64)));
    __local float sums[3] __attribute__((aligned(64)));
    __local float carries[3] __attribute__((aligned(64)));
    __local long taken[1] __attribute__((aligned(64)));
    __local float ahead[256] __attribute__((aligned(64)));
    __local int marks[3] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    long drawn_first = lid == 0 ? fc_take(words0, blocks + gsize - 1) : 0;
    if (lid == 0) {
        long v216 = (long)(drawn_first);
        taken[0] = v216;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    long t = taken[0];
    while (t < blocks) {
        int lo = (int)(t == 0 ? phase : 0);
        int hi = (int)(min(5461L, phase + n - t * 5461));
        long base = (t * 5461 - phase) * 3;
        int q0 = (int)(lo / 64);
        int q1 = (int)((hi + 63) / 64);
        int ended = (int)(hi == 5461 ? q1 : hi / 64);
        if (lid < 3) {
            int c = (int)(lid);
            if (t == 0) {
                float v0 = state0[6 + c];
                last[c] = v0;
                float v1 = state0[3 + c];
                sums[c] = v1;
            } else {
                float v2 = (float)(-INFINITY);
                last[c] = v2;
                float v3 = (float)(-INFINITY);
                sums[c] = v3;
            }
        }
        if (hi - lo == 5461) {
            for (long k = 0; k < 12288; k += 4096) {
                int i6 = (int)(k + lid);
                long i7 = base + k + lid;
                int i8 = (int)(i6 / 192 * 3);
                int i9 = (int)(i6 / 192 * 3);
                int i10 = (int)((i6 + 256) / 192 * 3);
                int i11 = (int)((i6 + 512) / 192 * 3);
                int i12 = (int)((i6 + 768) / 192 * 3);
                int i13 = (int)((i6 + 1024) / 192 * 3);
                int i14 = (int)((i6 + 1280) / 192 * 3);
                int i15 = (int)((i6 + 1536) / 192 * 3);
                int i16 = (int)((i6 + 1792) / 192 * 3);
                int i17 = (int)((i6 + 2048) / 192 * 3);
                int i18 = (int)((i6 + 2304) / 192 * 3);
                int i19 = (int)((i6 + 2560) / 192 * 3);
                int i20 = (int)((i6 + 2816) / 192 * 3);
                int i21 = (int)((i6 + 3072) / 192 * 3);
                int i22 = (int)((i6 + 3328) / 192 * 3);
                int i23 = (int)((i6 + 3584) / 192 * 3);
                int i24 = (int)((i6 + 3840) / 192 * 3);
                float v25 = in0[i7];
                float v26 = in0[i7 + 256];
                float v27 = in0[i7 + 512];
                float v28 = in0[i7 + 768];
                float v29 = in0[i7 + 1024];
                float v30 = in0[i7 + 1280];
                float v31 = in0[i7 + 1536];
                float v32 = in0[i7 + 1792];
                float v33 = in0[i7 + 2048];
                float v34 = in0[i7 + 2304];
                float v35 = in0[i7 + 2560];
                float v36 = in0[i7 + 2816];
                float v37 = in0[i7 + 3072];
                float v38 = in0[i7 + 3328];
                float v39 = in0[i7 + 3584];
                float v40 = in0[i7 + 3840];
                stage[i6 + i9] = v25;
                stage[i6 + i10 + 256] = v26;
                stage[i6 + i11 + 512] = v27;
                stage[i6 + i12 + 768] = v28;
                stage[i6 + i13 + 1024] = v29;
                stage[i6 + i14 + 1280] = v30;
                stage[i6 + i15 + 1536] = v31;
                stage[i6 + i16 + 1792] = v32;
                stage[i6 + i17 + 2048] = v33;
                stage[i6 + i18 + 2304] = v34;
                stage[i6 + i19 + 2560] = v35;
                stage[i6 + i20 + 2816] = v36;
                stage[i6 + i21 + 3072] = v37;
                stage[i6 + i22 + 3328] = v38;
                stage[i6 + i23 + 3584] = v39;
                stage[i6 + i24 + 3840] = v40;
            }
            long k = 12288;
            int i41 = (int)(k + lid);
            long i42 = base + k + lid;
            int i43 = (int)(i41 / 192 * 3);
            int i44 = (int)(i41 / 192 * 3);
            int i45 = (int)((i41 + 256) / 192 * 3);
            int i46 = (int)((i41 + 512) / 192 * 3);
            int i47 = (int)((i41 + 768) / 192 * 3);
            int i48 = (int)((i41 + 1024) / 192 * 3);
            int i49 = (int)((i41 + 1280) / 192 * 3);
            int i50 = (int)((i41 + 1536) / 192 * 3);
            int i51 = (int)((i41 + 1792) / 192 * 3);
            int i52 = (int)((i41 + 2048) / 192 * 3);
            int i53 = (int)((i41 + 2304) / 192 * 3);
            int i54 = (int)((i41 + 2560) / 192 * 3);
            int i55 = (int)((i41 + 2816) / 192 * 3);
            int i56 = (int)((i41 + 3072) / 192 * 3);
            int i57 = (int)((i41 + 3328) / 192 * 3);
            int i58 = (int)((i41 + 3584) / 192 * 3);
            int i59 = (int)((i41 + 3840) / 192 * 3);
            long i60 = base + min(i41 + 3840, 16382);
            float v61 = in0[i42];
            float v62 = in0[i42 + 256];
            float v63 = in0[i42 + 512];
            float v64 = in0[i42 + 768];
            float v65 = in0[i42 + 1024];
            float v66 = in0[i42 + 1280];
            float v67 = in0[i42 + 1536];
            float v68 = in0[i42 + 1792];
            float v69 = in0[i42 + 2048];
            float v70 = in0[i42 + 2304];
            float v71 = in0[i42 + 2560];
            float v72 = in0[i42 + 2816];
            float v73 = in0[i42 + 3072];
            float v74 = in0[i42 + 3328];
            float v75 = in0[i42 + 3584];
            float v76 = in0[i60];
            stage[i41 + i44] = v61;
            stage[i41 + i45 + 256] = v62;
            stage[i41 + i46 + 512] = v63;
            stage[i41 + i47 + 768] = v64;
            stage[i41 + i48 + 1024] = v65;
            stage[i41 + i49 + 1280] = v66;
            stage[i41 + i50 + 1536] = v67;
            stage[i41 + i51 + 1792] = v68;
            stage[i41 + i52 + 2048] = v69;
            stage[i41 + i53 + 2304] = v70;
            stage[i41 + i54 + 2560] = v71;
            stage[i41 + i55 + 2816] = v72;
            stage[i41 + i56 + 3072] = v73;
            stage[i41 + i57 + 3328] = v74;
            stage[i41 + i58 + 3584] = v75;
            if (i41 + 3840 < 16383) {
                stage[i41 + i59 + 3840] = v76;
            }
        } else {
            for (long k = 0; k < 64; k++) {
                int p = (int)(k * 256 + lid);
                if (p >= lo * 3 && p < hi * 3) {
                    int i4 = (int)(p + p / 192 * 3);
                    float v5 = in0[base + p];
                    stage[i4] = v5;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long s = lid; s < ((q1 - q0) * 3); s += 256) {
            int i77 = (int)(q0 + s / 3);
            int i78 = (int)(s % 3);
            float v79 = (float)(-INFINITY);
            if (i77 == q0) {
                float v80 = last[i78];
                v79 = v80;
            }
            int i81 = (int)(max(i77 * 64, lo));
            int i82 = (int)(min(i77 * 64 + 64, hi));
            if (i82 - i81 == 64) {
                int i83 = (int)(i77 * 195 + i78);
                for (long j = 0; j < 64; j += 16) {
                    int i84 = (int)(j * 3);
                    int i85 = (int)((j + 1) * 3);
                    int i86 = (int)((j + 2) * 3);
                    int i87 = (int)((j + 3) * 3);
                    int i88 = (int)((j + 4) * 3);
                    int i89 = (int)((j + 5) * 3);
                    int i90 = (int)((j + 6) * 3);
                    int i91 = (int)((j + 7) * 3);
                    int i92 = (int)((j + 8) * 3);
                    int i93 = (int)((j + 9) * 3);
                    int i94 = (int)((j + 10) * 3);
                    int i95 = (int)((j + 11) * 3);
                    int i96 = (int)((j + 12) * 3);
                    int i97 = (int)((j + 13) * 3);
                    int i98 = (int)((j + 14) * 3);
                    int i99 = (int)((j + 15) * 3);
                    float v100 = stage[i83 + i84];
                    float v101 = stage[i83 + i85];
                    float v102 = stage[i83 + i86];
                    float v103 = stage[i83 + i87];
                    float v104 = stage[i83 + i88];
                    float v105 = stage[i83 + i89];
                    float v106 = stage[i83 + i90];
                    float v107 = stage[i83 + i91];
                    float v108 = stage[i83 + i92];
                    float v109 = stage[i83 + i93];
                    float v110 = stage[i83 + i94];
                    float v111 = stage[i83 + i95];
                    float v112 = stage[i83 + i96];
                    float v113 = stage[i83 + i97];
                    float v114 = stage[i83 + i98];
                    float v115 = stage[i83 + i99];
                    float v116 = (v79 == v100 ? as_float(as_int(v79) & as_int(v100)) : ((v79 > v100) | (v79 != v79) ? v79 : v100));
                    float v117 = (v116 == v101 ? as_float(as_int(v116) & as_int(v101)) : ((v116 > v101) | (v116 != v116) ? v116 : v101));
                    float v118 = (v117 == v102 ? as_float(as_int(v117) & as_int(v102)) : ((v117 > v102) | (v117 != v117) ? v117 : v102));
                    float v119 = (v118 == v103 ? as_float(as_int(v118) & as_int(v103)) : ((v118 > v103) | (v118 != v118) ? v118 : v103));
                    float v120 = (v119 == v104 ? as_float(as_int(v119) & as_int(v104)) : ((v119 > v104) | (v119 != v119) ? v119 : v104));
                    float v121 = (v120 == v105 ? as_float(as_int(v120) & as_int(v105)) : ((v120 > v105) | (v120 != v120) ? v120 : v105));
                    float v122 = (v121 == v106 ? as_float(as_int(v121) & as_int(v106)) : ((v121 > v106) | (v121 != v121) ? v121 : v106));
                    float v123 = (v122 == v107 ? as_float(as_int(v122) & as_int(v107)) : ((v122 > v107) | (v122 != v122) ? v122 : v107));
                    float v124 = (v123 == v108 ? as_float(as_int(v123) & as_int(v108)) : ((v123 > v108) | (v123 != v123) ? v123 : v108));
                    float v125 = (v124 == v109 ? as_float(as_int(v124) & as_int(v109)) : ((v124 > v109) | (v124 != v124) ? v124 : v109));
                    float v126 = (v125 == v110 ? as_float(as_int(v125) & as_int(v110)) : ((v125 > v110) | (v125 != v125) ? v125 : v110));
                    float v127 = (v126 == v111 ? as_float(as_int(v126) & as_int(v111)) : ((v126 > v111) | (v126 != v126) ? v126 : v111));
                    float v128 = (v127 == v112 ? as_float(as_int(v127) & as_int(v112)) : ((v127 > v112) | (v127 != v127) ? v127 : v112));
                    float v129 = (v128 == v113 ? as_float(as_int(v128) & as_int(v113)) : ((v128 > v113) | (v128 != v128) ? v128 : v113));
                    float v130 = (v129 == v114 ? as_float(as_int(v129) & as_int(v114)) : ((v129 > v114) | (v129 != v129) ? v129 : v114));
                    float v131 = (v130 == v115 ? as_float(as_int(v130) & as_int(v115)) : ((v130 > v115) | (v130 != v130) ? v130 : v115));
                    stage[i83 + i84] = v116;
                    stage[i83 + i85] = v117;
                    stage[i83 + i86] = v118;
                    stage[i83 + i87] = v119;
                    stage[i83 + i88] = v120;
                    stage[i83 + i89] = v121;
                    stage[i83 + i90] = v122;
                    stage[i83 + i91] = v123;
                    stage[i83 + i92] = v124;
                    stage[i83 + i93] = v125;
                    stage[i83 + i94] = v126;
                    stage[i83 + i95] = v127;
                    stage[i83 + i96] = v128;
                    stage[i83 + i97] = v129;
                    stage[i83 + i98] = v130;
                    stage[i83 + i99] = v131;
                    v79 = v131;
                }
            } else {
                for (long j = i81; j < i82; j++) {
                    int i132 = (int)(j * 3 + i78);
                    int i133 = (int)(i132 + i132 / 192 * 3);
                    float v134 = stage[i133];
                    float v135 = (v79 == v134 ? as_float(as_int(v79) & as_int(v134)) : ((v79 > v134) | (v79 != v79) ? v79 : v134));
                    v79 = v135;
                    stage[i133] = v79;
                }
            }
            totals[i77 * 3 + i78] = v79;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 3) {
            int c = (int)(lid);
            float v136 = sums[c];
            #pragma unroll 8
            for (long q = q0; q < ended; q++) {
                float v137 = totals[q * 3 + c];
                float v138 = (v136 == v137 ? as_float(as_int(v136) & as_int(v137)) : ((v136 > v137) | (v136 != v136) ? v136 : v137));
                totals[q * 3 + c] = v136;
                v136 = v138;
            }
            if (ended < q1) {
                float v139 = totals[ended * 3 + c];
                last[c] = v139;
                totals[ended * 3 + c] = v136;
            }
            sums[c] = v136;
            if (t > 0 && t + 1 < blocks) {
                fc_publish(words0 + 2 + 2 * (t * 3 + c), (ulong)as_uint(v136), (ulong)chunk << 1 | 0);
            }
        }
        {
            const long tile = t;
            const int last = (int)min(48L, tile) - 1;
            for (int i = lid; i < 3; i += 256) marks[i] = 48;
            barrier(CLK_LOCAL_MEM_FENCE);
            ulong2 word[1];
            ulong bits[1];
            int known[1], open = 1;
            #pragma unroll
            for (int i = 0; i < 1; i++) {
                const int entry = lid + i * 256, back = entry / 3, column = entry % 3;
                known[i] = entry < 144 && back < tile ? 0 : 2;
                bits[i] = 0;
            }
            while (open) {
                open = 0;
                #pragma unroll
                for (int i = 0; i < 1; i++) {
                    const int entry = lid + i * 256, back = entry / 3, column = entry % 3;
                    if (known[i] < (back == last ? 2 : 1)) word[i] = *(volatile __global ulong2 *)(words0 + 2 + 2 * ((tile - 1 - back) * 3 + 0 + column));
                }
                #pragma unroll
                for (int i = 0; i < 1; i++) {
                    const int entry = lid + i * 256, back = entry / 3, column = entry % 3;
                    if (known[i] < (back == last ? 2 : 1)) known[i] = fc_known(word[i].x, word[i].y, (uint)chunk, &bits[i]);
                    if (known[i] < (back == last ? 2 : 1)) open = 1;
                }
            }
            #pragma unroll
            for (int i = 0; i < 1; i++) {
                const int entry = lid + i * 256, back = entry / 3, column = entry % 3;
                if (tile == 0 && entry < 3) {
                    ahead[entry] = state0[0 + column];
                    marks[column] = 0;
                } else if (entry < 144 && back < tile) {
                    ahead[entry] = as_float((uint)(bits[i]));
                    if (known[i] == 2) atomic_min(&marks[column], back);
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = lid; i < 3; i += 256) {
                int back = marks[i];
                float total = ahead[back * 3 + i];
                for (; back >= 8; back -= 8) {
                    const float other_0 = ahead[(back - 1) * 3 + i];
                    const float other_1 = ahead[(back - 2) * 3 + i];
                    const float other_2 = ahead[(back - 3) * 3 + i];
                    const float other_3 = ahead[(back - 4) * 3 + i];
                    const float other_4 = ahead[(back - 5) * 3 + i];
                    const float other_5 = ahead[(back - 6) * 3 + i];
                    const float other_6 = ahead[(back - 7) * 3 + i];
                    const float other_7 = ahead[(back - 8) * 3 + i];
                    total = (total == other_0 ? as_float(as_int(total) & as_int(other_0)) : ((total > other_0) | (total != total) ? total : other_0));
                    total = (total == other_1 ? as_float(as_int(total) & as_int(other_1)) : ((total > other_1) | (total != total) ? total : other_1));
                    total = (total == other_2 ? as_float(as_int(total) & as_int(other_2)) : ((total > other_2) | (total != total) ? total : other_2));
                    total = (total == other_3 ? as_float(as_int(total) & as_int(other_3)) : ((total > other_3) | (total != total) ? total : other_3));
                    total = (total == other_4 ? as_float(as_int(total) & as_int(other_4)) : ((total > other_4) | (total != total) ? total : other_4));
                    total = (total == other_5 ? as_float(as_int(total) & as_int(other_5)) : ((total > other_5) | (total != total) ? total : other_5));
                    total = (total == other_6 ? as_float(as_int(total) & as_int(other_6)) : ((total > other_6) | (total != total) ? total : other_6));
                    total = (total == other_7 ? as_float(as_int(total) & as_int(other_7)) : ((total > other_7) | (total != total) ? total : other_7));
                }
                for (; back > 0; back--) {
                    const float other_0 = ahead[(back - 1) * 3 + i];
                    total = (total == other_0 ? as_float(as_int(total) & as_int(other_0)) : ((total > other_0) | (total != total) ? total : other_0));
                }
                carries[0 + i] = total;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (lid < 3) {
            int c = (int)(lid);
            float v140 = carries[c];
            float v141 = sums[c];
            float v142 = (v140 == v141 ? as_float(as_int(v140) & as_int(v141)) : ((v140 > v141) | (v140 != v140) ? v140 : v141));
            if (t + 1 < blocks) {
                fc_publish(words0 + 2 + 2 * (t * 3 + c), (ulong)as_uint(v142), (ulong)chunk << 1 | 1);
            } else {
                float v143 = (float)(-INFINITY);
                if (hi == 5461) {
                    state0[c] = v142;
                    state0[3 + c] = v143;
                    state0[6 + c] = v143;
                } else {
                    state0[c] = v140;
                    state0[3 + c] = v141;
                    if (ended < q1) {
                        float v144 = last[c];
                        state0[6 + c] = v144;
                    } else {
                        state0[6 + c] = v143;
                    }
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (hi - lo == 5461) {
            for (long k = 0; k < 15360; k += 1024) {
                int i152 = (int)(k + lid);
                long i153 = base + k + lid;
                int i154 = (int)(i152 / 192 * 3);
                int i155 = (int)(i152 / 192 * 3);
                int i156 = (int)((i152 + 256) / 192 * 3);
                int i157 = (int)((i152 + 512) / 192 * 3);
                int i158 = (int)((i152 + 768) / 192 * 3);
                float v159 = stage[i152 + i155];
                int i160 = (int)(i152 % 3);
                float v161 = totals[i155 + i160];
                float v162 = (v161 == v159 ? as_float(as_int(v161) & as_int(v159)) : ((v161 > v159) | (v161 != v161) ? v161 : v159));
                float v163 = carries[i160];
                float v164 = (v163 == v162 ? as_float(as_int(v163) & as_int(v162)) : ((v163 > v162) | (v163 != v163) ? v163 : v162));
                out0[i153] = (v164 == v164 ? v164 : (float)(as_float(0x7fc00000U)));
                float v165 = stage[i152 + i156 + 256];
                int i166 = (int)((i152 + 256) % 3);
                float v167 = totals[i156 + i166];
                float v168 = (v167 == v165 ? as_float(as_int(v167) & as_int(v165)) : ((v167 > v165) | (v167 != v167) ? v167 : v165));
                float v169 = carries[i166];
                float v170 = (v169 == v168 ? as_float(as_int(v169) & as_int(v168)) : ((v169 > v168) | (v169 != v169) ? v169 : v168));
                out0[i153 + 256] = (v170 == v170 ? v170 : (float)(as_float(0x7fc00000U)));
                float v171 = stage[i152 + i157 + 512];
                int i172 = (int)((i152 + 512) % 3);
                float v173 = totals[i157 + i172];
                float v174 = (v173 == v171 ? as_float(as_int(v173) & as_int(v171)) : ((v173 > v171) | (v173 != v173) ? v173 : v171));
                float v175 = carries[i172];
                float v176 = (v175 == v174 ? as_float(as_int(v175) & as_int(v174)) : ((v175 > v174) | (v175 != v175) ? v175 : v174));
                out0[i153 + 512] = (v176 == v176 ? v176 : (float)(as_float(0x7fc00000U)));
                float v177 = stage[i152 + i158 + 768];
                int i178 = (int)((i152 + 768) % 3);
                float v179 = totals[i158 + i178];
                float v180 = (v179 == v177 ? as_float(as_int(v179) & as_int(v177)) : ((v179 > v177) | (v179 != v179) ? v179 : v177));
                float v181 = carries[i178];
                float v182 = (v181 == v180 ? as_float(as_int(v181) & as_int(v180)) : ((v181 > v180) | (v181 != v181) ? v181 : v180));
                out0[i153 + 768] = (v182 == v182 ? v182 : (float)(as_float(0x7fc00000U)));
            }
            long k = 15360;
            int i183 = (int)(k + lid);
            long i184 = base + k + lid;
            int i185 = (int)(i183 / 192 * 3);
            int i186 = (int)(i183 / 192 * 3);
            int i187 = (int)((i183 + 256) / 192 * 3);
            int i188 = (int)((i183 + 512) / 192 * 3);
            int i189 = (int)((i183 + 768) / 192 * 3);
            long i190 = base + min(i183 + 768, 16382);
            float v191 = stage[i183 + i186];
            int i192 = (int)(i183 % 3);
            float v193 = totals[i186 + i192];
            float v194 = (v193 == v191 ? as_float(as_int(v193) & as_int(v191)) : ((v193 > v191) | (v193 != v193) ? v193 : v191));
            float v195 = carries[i192];
            float v196 = (v195 == v194 ? as_float(as_int(v195) & as_int(v194)) : ((v195 > v194) | (v195 != v195) ? v195 : v194));
            out0[i184] = (v196 == v196 ? v196 : (float)(as_float(0x7fc00000U)));
            float v197 = stage[i183 + i187 + 256];
            int i198 = (int)((i183 + 256) % 3);
            float v199 = totals[i187 + i198];
            float v200 = (v199 == v197 ? as_float(as_int(v199) & as_int(v197)) : ((v199 > v197) | (v199 != v199) ? v199 : v197));
            float v201 = carries[i198];
            float v202 = (v201 == v200 ? as_float(as_int(v201) & as_int(v200)) : ((v201 > v200) | (v201 != v201) ? v201 : v200));
            out0[i184 + 256] = (v202 == v202 ? v202 : (float)(as_float(0x7fc00000U)));
            float v203 = stage[i183 + i188 + 512];
            int i204 = (int)((i183 + 512) % 3);
            float v205 = totals[i188 + i204];
            float v206 = (v205 == v203 ? as_float(as_int(v205) & as_int(v203)) : ((v205 > v203) | (v205 != v205) ? v205 : v203));
            float v207 = carries[i204];
            float v208 = (v207 == v206 ? as_float(as_int(v207) & as_int(v206)) : ((v207 > v206) | (v207 != v207) ? v207 : v206));
            out0[i184 + 512] = (v208 == v208 ? v208 : (float)(as_float(0x7fc00000U)));
            if (i183 + 768 < 16383) {
                float v209 = stage[i183 + i189 + 768];
                int i210 = (int)((i183 + 768) % 3);
                float v211 = totals[i189 + i210];
                float v212 = (v211 == v209 ? as_float(as_int(v211) & as_int(v209)) : ((v211 > v209) | (v211 != v211) ? v211 : v209));
                float v213 = carries[i210];
                float v214 = (v213 == v212 ? as_float(as_int(v213) & as_int(v212)) : ((v213 > v212) | (v213 != v213) ? v213 : v212));
                out0[i190] = (v214 == v214 ? v214 : (float)(as_float(0x7fc00000U)));
            }
        } else {
            for (long k = 0; k < 64; k++) {
                int p = (int)(k * 256 + lid);
                if (p >= lo * 3 && p < hi * 3) {
                    int i145 = (int)(p + p / 192 * 3);
                    float v146 = stage[i145];
                    int i147 = (int)(p % 3);
                    float v148 = totals[p / 192 * 3 + i147];
                    float v149 = (v148 == v146 ? as_float(as_int(v148) & as_int(v146)) : ((v148 > v146) | (v148 != v148) ? v148 : v146));
                    float v150 = carries[i147];
                    float v151 = (v150 == v149 ? as_float(as_int(v150) & as_int(v149)) : ((v150 > v149) | (v150 != v150) ? v150 : v149));
                    out0[base + p] = (v151 == v151 ? v151 : (float)(as_float(0x7fc00000U)));
                }
            }
        }
        long drawn = lid == 0 ? fc_take(words0, blocks + gsize - 1) : 0;
        if (lid == 0) {
            long v215 = (long)(drawn);
            taken[0] = v215;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        t = taken[0];
    }
}
