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
        long v324 = (long)(drawn_first);
        taken[0] = v324;
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
                int i7 = (int)(k + lid + k / 64 + lid / 64);
                int i8 = (int)(k / 64 + lid / 64);
                long i9 = base + i6;
                float v10 = in0[i9];
                float v11 = in0[i9 + 256];
                float v12 = in0[i9 + 512];
                float v13 = in0[i9 + 768];
                float v14 = in0[i9 + 1024];
                float v15 = in0[i9 + 1280];
                float v16 = in0[i9 + 1536];
                float v17 = in0[i9 + 1792];
                float v18 = in0[i9 + 2048];
                float v19 = in0[i9 + 2304];
                float v20 = in0[i9 + 2560];
                float v21 = in0[i9 + 2816];
                float v22 = in0[i9 + 3072];
                float v23 = in0[i9 + 3328];
                float v24 = in0[i9 + 3584];
                float v25 = in0[i9 + 3840];
                stage[i7] = v10;
                stage[i7 + 260] = v11;
                stage[i7 + 520] = v12;
                stage[i7 + 780] = v13;
                stage[i7 + 1040] = v14;
                stage[i7 + 1300] = v15;
                stage[i7 + 1560] = v16;
                stage[i7 + 1820] = v17;
                stage[i7 + 2080] = v18;
                stage[i7 + 2340] = v19;
                stage[i7 + 2600] = v20;
                stage[i7 + 2860] = v21;
                stage[i7 + 3120] = v22;
                stage[i7 + 3380] = v23;
                stage[i7 + 3640] = v24;
                stage[i7 + 3900] = v25;
            }
            long k = 12288;
            int i26 = (int)(k + lid);
            int i27 = (int)(k + lid + k / 64 + lid / 64);
            int i28 = (int)(k / 64 + lid / 64);
            long i29 = base + i26;
            long i30 = base + min(i26 + 3840, 16382);
            float v31 = in0[i29];
            float v32 = in0[i29 + 256];
            float v33 = in0[i29 + 512];
            float v34 = in0[i29 + 768];
            float v35 = in0[i29 + 1024];
            float v36 = in0[i29 + 1280];
            float v37 = in0[i29 + 1536];
            float v38 = in0[i29 + 1792];
            float v39 = in0[i29 + 2048];
            float v40 = in0[i29 + 2304];
            float v41 = in0[i29 + 2560];
            float v42 = in0[i29 + 2816];
            float v43 = in0[i29 + 3072];
            float v44 = in0[i29 + 3328];
            float v45 = in0[i29 + 3584];
            float v46 = in0[i30];
            stage[i27] = v31;
            stage[i27 + 260] = v32;
            stage[i27 + 520] = v33;
            stage[i27 + 780] = v34;
            stage[i27 + 1040] = v35;
            stage[i27 + 1300] = v36;
            stage[i27 + 1560] = v37;
            stage[i27 + 1820] = v38;
            stage[i27 + 2080] = v39;
            stage[i27 + 2340] = v40;
            stage[i27 + 2600] = v41;
            stage[i27 + 2860] = v42;
            stage[i27 + 3120] = v43;
            stage[i27 + 3380] = v44;
            stage[i27 + 3640] = v45;
            if (i26 + 3840 < 16383) {
                stage[i27 + 3900] = v46;
            }
        } else {
            for (long k = 0; k < 64; k++) {
                int p = (int)(k * 256 + lid);
                if (p >= lo * 3 && p < hi * 3) {
                    int i4 = (int)(p + p / 64);
                    float v5 = in0[base + p];
                    stage[i4] = v5;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long s = lid; s < ((q1 - q0) * 3); s += 256) {
            int i47 = (int)(q0 + s / 3);
            int i48 = (int)(s % 3);
            float v49 = (float)(-INFINITY);
            if (i47 == q0) {
                float v50 = last[i48];
                v49 = v50;
            }
            int i51 = (int)(max(i47 * 64, lo));
            int i52 = (int)(min(i47 * 64 + 64, hi));
            if (i52 - i51 == 64) {
                int i53 = (int)(i47 * 195 + i48);
                for (long j = 0; j < 64; j += 16) {
                    int i54 = (int)(j * 3);
                    int i55 = (int)((j + 1) * 3);
                    int i56 = (int)((j + 2) * 3);
                    int i57 = (int)((j + 3) * 3);
                    int i58 = (int)((j + 4) * 3);
                    int i59 = (int)((j + 5) * 3);
                    int i60 = (int)((j + 6) * 3);
                    int i61 = (int)((j + 7) * 3);
                    int i62 = (int)((j + 8) * 3);
                    int i63 = (int)((j + 9) * 3);
                    int i64 = (int)((j + 10) * 3);
                    int i65 = (int)((j + 11) * 3);
                    int i66 = (int)((j + 12) * 3);
                    int i67 = (int)((j + 13) * 3);
                    int i68 = (int)((j + 14) * 3);
                    int i69 = (int)((j + 15) * 3);
                    float v70 = stage[i53 + i54 + (i54 + i48) / 64];
                    float v71 = stage[i53 + i55 + (i55 + i48) / 64];
                    float v72 = stage[i53 + i56 + (i56 + i48) / 64];
                    float v73 = stage[i53 + i57 + (i57 + i48) / 64];
                    float v74 = stage[i53 + i58 + (i58 + i48) / 64];
                    float v75 = stage[i53 + i59 + (i59 + i48) / 64];
                    float v76 = stage[i53 + i60 + (i60 + i48) / 64];
                    float v77 = stage[i53 + i61 + (i61 + i48) / 64];
                    float v78 = stage[i53 + i62 + (i62 + i48) / 64];
                    float v79 = stage[i53 + i63 + (i63 + i48) / 64];
                    float v80 = stage[i53 + i64 + (i64 + i48) / 64];
                    float v81 = stage[i53 + i65 + (i65 + i48) / 64];
                    float v82 = stage[i53 + i66 + (i66 + i48) / 64];
                    float v83 = stage[i53 + i67 + (i67 + i48) / 64];
                    float v84 = stage[i53 + i68 + (i68 + i48) / 64];
                    float v85 = stage[i53 + i69 + (i69 + i48) / 64];
                    float v86 = (v49 == v70 ? as_float(as_int(v49) & as_int(v70)) : ((v49 > v70) | (v49 != v49) ? v49 : v70));
                    float v87 = (v86 == v71 ? as_float(as_int(v86) & as_int(v71)) : ((v86 > v71) | (v86 != v86) ? v86 : v71));
                    float v88 = (v87 == v72 ? as_float(as_int(v87) & as_int(v72)) : ((v87 > v72) | (v87 != v87) ? v87 : v72));
                    float v89 = (v88 == v73 ? as_float(as_int(v88) & as_int(v73)) : ((v88 > v73) | (v88 != v88) ? v88 : v73));
                    float v90 = (v89 == v74 ? as_float(as_int(v89) & as_int(v74)) : ((v89 > v74) | (v89 != v89) ? v89 : v74));
                    float v91 = (v90 == v75 ? as_float(as_int(v90) & as_int(v75)) : ((v90 > v75) | (v90 != v90) ? v90 : v75));
                    float v92 = (v91 == v76 ? as_float(as_int(v91) & as_int(v76)) : ((v91 > v76) | (v91 != v91) ? v91 : v76));
                    float v93 = (v92 == v77 ? as_float(as_int(v92) & as_int(v77)) : ((v92 > v77) | (v92 != v92) ? v92 : v77));
                    float v94 = (v93 == v78 ? as_float(as_int(v93) & as_int(v78)) : ((v93 > v78) | (v93 != v93) ? v93 : v78));
                    float v95 = (v94 == v79 ? as_float(as_int(v94) & as_int(v79)) : ((v94 > v79) | (v94 != v94) ? v94 : v79));
                    float v96 = (v95 == v80 ? as_float(as_int(v95) & as_int(v80)) : ((v95 > v80) | (v95 != v95) ? v95 : v80));
                    float v97 = (v96 == v81 ? as_float(as_int(v96) & as_int(v81)) : ((v96 > v81) | (v96 != v96) ? v96 : v81));
                    float v98 = (v97 == v82 ? as_float(as_int(v97) & as_int(v82)) : ((v97 > v82) | (v97 != v97) ? v97 : v82));
                    float v99 = (v98 == v83 ? as_float(as_int(v98) & as_int(v83)) : ((v98 > v83) | (v98 != v98) ? v98 : v83));
                    float v100 = (v99 == v84 ? as_float(as_int(v99) & as_int(v84)) : ((v99 > v84) | (v99 != v99) ? v99 : v84));
                    float v101 = (v100 == v85 ? as_float(as_int(v100) & as_int(v85)) : ((v100 > v85) | (v100 != v100) ? v100 : v85));
                    stage[i53 + i54 + (i54 + i48) / 64] = v86;
                    stage[i53 + i55 + (i55 + i48) / 64] = v87;
                    stage[i53 + i56 + (i56 + i48) / 64] = v88;
                    stage[i53 + i57 + (i57 + i48) / 64] = v89;
                    stage[i53 + i58 + (i58 + i48) / 64] = v90;
                    stage[i53 + i59 + (i59 + i48) / 64] = v91;
                    stage[i53 + i60 + (i60 + i48) / 64] = v92;
                    stage[i53 + i61 + (i61 + i48) / 64] = v93;
                    stage[i53 + i62 + (i62 + i48) / 64] = v94;
                    stage[i53 + i63 + (i63 + i48) / 64] = v95;
                    stage[i53 + i64 + (i64 + i48) / 64] = v96;
                    stage[i53 + i65 + (i65 + i48) / 64] = v97;
                    stage[i53 + i66 + (i66 + i48) / 64] = v98;
                    stage[i53 + i67 + (i67 + i48) / 64] = v99;
                    stage[i53 + i68 + (i68 + i48) / 64] = v100;
                    stage[i53 + i69 + (i69 + i48) / 64] = v101;
                    v49 = v101;
                }
            } else {
                for (long j = i51; j < i52; j++) {
                    int i102 = (int)(j * 3 + i48);
                    int i103 = (int)(i102 + i102 / 64);
                    float v104 = stage[i103];
                    float v105 = (v49 == v104 ? as_float(as_int(v49) & as_int(v104)) : ((v49 > v104) | (v49 != v49) ? v49 : v104));
                    v49 = v105;
                    stage[i103] = v49;
                }
            }
            totals[i47 * 3 + i48] = v49;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 3) {
            int c = (int)(lid);
            float v106 = sums[c];
            #pragma unroll 8
            for (long q = q0; q < ended; q++) {
                float v107 = totals[q * 3 + c];
                float v108 = (v106 == v107 ? as_float(as_int(v106) & as_int(v107)) : ((v106 > v107) | (v106 != v106) ? v106 : v107));
                totals[q * 3 + c] = v106;
                v106 = v108;
            }
            if (ended < q1) {
                float v109 = totals[ended * 3 + c];
                last[c] = v109;
                totals[ended * 3 + c] = v106;
            }
            sums[c] = v106;
            if (t > 0 && t + 1 < blocks) {
                fc_publish(words0 + 2 + 2 * (t * 3 + c), (ulong)as_uint(v106), (ulong)chunk << 1 | 0);
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
            float v110 = carries[c];
            float v111 = sums[c];
            float v112 = (v110 == v111 ? as_float(as_int(v110) & as_int(v111)) : ((v110 > v111) | (v110 != v110) ? v110 : v111));
            if (t + 1 < blocks) {
                fc_publish(words0 + 2 + 2 * (t * 3 + c), (ulong)as_uint(v112), (ulong)chunk << 1 | 1);
            } else {
                float v113 = (float)(-INFINITY);
                if (hi == 5461) {
                    state0[c] = v112;
                    state0[3 + c] = v113;
                    state0[6 + c] = v113;
                } else {
                    state0[c] = v110;
                    state0[3 + c] = v111;
                    if (ended < q1) {
                        float v114 = last[c];
                        state0[6 + c] = v114;
                    } else {
                        state0[6 + c] = v113;
                    }
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (hi - lo == 5461) {
            for (long k = 0; k < 12288; k += 4096) {
                int i122 = (int)(k + lid);
                int i123 = (int)(k + lid + k / 64 + lid / 64);
                int i124 = (int)(k / 64 + lid / 64);
                long i125 = base + i122;
                float v126 = stage[i123];
                int i127 = (int)(i122 % 3);
                float v128 = totals[i122 / 192 * 3 + i127];
                float v129 = (v128 == v126 ? as_float(as_int(v128) & as_int(v126)) : ((v128 > v126) | (v128 != v128) ? v128 : v126));
                float v130 = carries[i127];
                float v131 = (v130 == v129 ? as_float(as_int(v130) & as_int(v129)) : ((v130 > v129) | (v130 != v130) ? v130 : v129));
                out0[i125] = (v131 == v131 ? v131 : (float)(as_float(0x7fc00000U)));
                float v132 = stage[i123 + 260];
                int i133 = (int)((i122 + 256) % 3);
                float v134 = totals[(i122 + 256) / 192 * 3 + i133];
                float v135 = (v134 == v132 ? as_float(as_int(v134) & as_int(v132)) : ((v134 > v132) | (v134 != v134) ? v134 : v132));
                float v136 = carries[i133];
                float v137 = (v136 == v135 ? as_float(as_int(v136) & as_int(v135)) : ((v136 > v135) | (v136 != v136) ? v136 : v135));
                out0[i125 + 256] = (v137 == v137 ? v137 : (float)(as_float(0x7fc00000U)));
                float v138 = stage[i123 + 520];
                int i139 = (int)((i122 + 512) % 3);
                float v140 = totals[(i122 + 512) / 192 * 3 + i139];
                float v141 = (v140 == v138 ? as_float(as_int(v140) & as_int(v138)) : ((v140 > v138) | (v140 != v140) ? v140 : v138));
                float v142 = carries[i139];
                float v143 = (v142 == v141 ? as_float(as_int(v142) & as_int(v141)) : ((v142 > v141) | (v142 != v142) ? v142 : v141));
                out0[i125 + 512] = (v143 == v143 ? v143 : (float)(as_float(0x7fc00000U)));
                float v144 = stage[i123 + 780];
                int i145 = (int)((i122 + 768) % 3);
                float v146 = totals[(i122 + 768) / 192 * 3 + i145];
                float v147 = (v146 == v144 ? as_float(as_int(v146) & as_int(v144)) : ((v146 > v144) | (v146 != v146) ? v146 : v144));
                float v148 = carries[i145];
                float v149 = (v148 == v147 ? as_float(as_int(v148) & as_int(v147)) : ((v148 > v147) | (v148 != v148) ? v148 : v147));
                out0[i125 + 768] = (v149 == v149 ? v149 : (float)(as_float(0x7fc00000U)));
                float v150 = stage[i123 + 1040];
                int i151 = (int)((i122 + 1024) % 3);
                float v152 = totals[(i122 + 1024) / 192 * 3 + i151];
                float v153 = (v152 == v150 ? as_float(as_int(v152) & as_int(v150)) : ((v152 > v150) | (v152 != v152) ? v152 : v150));
                float v154 = carries[i151];
                float v155 = (v154 == v153 ? as_float(as_int(v154) & as_int(v153)) : ((v154 > v153) | (v154 != v154) ? v154 : v153));
                out0[i125 + 1024] = (v155 == v155 ? v155 : (float)(as_float(0x7fc00000U)));
                float v156 = stage[i123 + 1300];
                int i157 = (int)((i122 + 1280) % 3);
                float v158 = totals[(i122 + 1280) / 192 * 3 + i157];
                float v159 = (v158 == v156 ? as_float(as_int(v158) & as_int(v156)) : ((v158 > v156) | (v158 != v158) ? v158 : v156));
                float v160 = carries[i157];
                float v161 = (v160 == v159 ? as_float(as_int(v160) & as_int(v159)) : ((v160 > v159) | (v160 != v160) ? v160 : v159));
                out0[i125 + 1280] = (v161 == v161 ? v161 : (float)(as_float(0x7fc00000U)));
                float v162 = stage[i123 + 1560];
                int i163 = (int)((i122 + 1536) % 3);
                float v164 = totals[(i122 + 1536) / 192 * 3 + i163];
                float v165 = (v164 == v162 ? as_float(as_int(v164) & as_int(v162)) : ((v164 > v162) | (v164 != v164) ? v164 : v162));
                float v166 = carries[i163];
                float v167 = (v166 == v165 ? as_float(as_int(v166) & as_int(v165)) : ((v166 > v165) | (v166 != v166) ? v166 : v165));
                out0[i125 + 1536] = (v167 == v167 ? v167 : (float)(as_float(0x7fc00000U)));
                float v168 = stage[i123 + 1820];
                int i169 = (int)((i122 + 1792) % 3);
                float v170 = totals[(i122 + 1792) / 192 * 3 + i169];
                float v171 = (v170 == v168 ? as_float(as_int(v170) & as_int(v168)) : ((v170 > v168) | (v170 != v170) ? v170 : v168));
                float v172 = carries[i169];
                float v173 = (v172 == v171 ? as_float(as_int(v172) & as_int(v171)) : ((v172 > v171) | (v172 != v172) ? v172 : v171));
                out0[i125 + 1792] = (v173 == v173 ? v173 : (float)(as_float(0x7fc00000U)));
                float v174 = stage[i123 + 2080];
                int i175 = (int)((i122 + 2048) % 3);
                float v176 = totals[(i122 + 2048) / 192 * 3 + i175];
                float v177 = (v176 == v174 ? as_float(as_int(v176) & as_int(v174)) : ((v176 > v174) | (v176 != v176) ? v176 : v174));
                float v178 = carries[i175];
                float v179 = (v178 == v177 ? as_float(as_int(v178) & as_int(v177)) : ((v178 > v177) | (v178 != v178) ? v178 : v177));
                out0[i125 + 2048] = (v179 == v179 ? v179 : (float)(as_float(0x7fc00000U)));
                float v180 = stage[i123 + 2340];
                int i181 = (int)((i122 + 2304) % 3);
                float v182 = totals[(i122 + 2304) / 192 * 3 + i181];
                float v183 = (v182 == v180 ? as_float(as_int(v182) & as_int(v180)) : ((v182 > v180) | (v182 != v182) ? v182 : v180));
                float v184 = carries[i181];
                float v185 = (v184 == v183 ? as_float(as_int(v184) & as_int(v183)) : ((v184 > v183) | (v184 != v184) ? v184 : v183));
                out0[i125 + 2304] = (v185 == v185 ? v185 : (float)(as_float(0x7fc00000U)));
                float v186 = stage[i123 + 2600];
                int i187 = (int)((i122 + 2560) % 3);
                float v188 = totals[(i122 + 2560) / 192 * 3 + i187];
                float v189 = (v188 == v186 ? as_float(as_int(v188) & as_int(v186)) : ((v188 > v186) | (v188 != v188) ? v188 : v186));
                float v190 = carries[i187];
                float v191 = (v190 == v189 ? as_float(as_int(v190) & as_int(v189)) : ((v190 > v189) | (v190 != v190) ? v190 : v189));
                out0[i125 + 2560] = (v191 == v191 ? v191 : (float)(as_float(0x7fc00000U)));
                float v192 = stage[i123 + 2860];
                int i193 = (int)((i122 + 2816) % 3);
                float v194 = totals[(i122 + 2816) / 192 * 3 + i193];
                float v195 = (v194 == v192 ? as_float(as_int(v194) & as_int(v192)) : ((v194 > v192) | (v194 != v194) ? v194 : v192));
                float v196 = carries[i193];
                float v197 = (v196 == v195 ? as_float(as_int(v196) & as_int(v195)) : ((v196 > v195) | (v196 != v196) ? v196 : v195));
                out0[i125 + 2816] = (v197 == v197 ? v197 : (float)(as_float(0x7fc00000U)));
                float v198 = stage[i123 + 3120];
                int i199 = (int)((i122 + 3072) % 3);
                float v200 = totals[(i122 + 3072) / 192 * 3 + i199];
                float v201 = (v200 == v198 ? as_float(as_int(v200) & as_int(v198)) : ((v200 > v198) | (v200 != v200) ? v200 : v198));
                float v202 = carries[i199];
                float v203 = (v202 == v201 ? as_float(as_int(v202) & as_int(v201)) : ((v202 > v201) | (v202 != v202) ? v202 : v201));
                out0[i125 + 3072] = (v203 == v203 ? v203 : (float)(as_float(0x7fc00000U)));
                float v204 = stage[i123 + 3380];
                int i205 = (int)((i122 + 3328) % 3);
                float v206 = totals[(i122 + 3328) / 192 * 3 + i205];
                float v207 = (v206 == v204 ? as_float(as_int(v206) & as_int(v204)) : ((v206 > v204) | (v206 != v206) ? v206 : v204));
                float v208 = carries[i205];
                float v209 = (v208 == v207 ? as_float(as_int(v208) & as_int(v207)) : ((v208 > v207) | (v208 != v208) ? v208 : v207));
                out0[i125 + 3328] = (v209 == v209 ? v209 : (float)(as_float(0x7fc00000U)));
                float v210 = stage[i123 + 3640];
                int i211 = (int)((i122 + 3584) % 3);
                float v212 = totals[(i122 + 3584) / 192 * 3 + i211];
                float v213 = (v212 == v210 ? as_float(as_int(v212) & as_int(v210)) : ((v212 > v210) | (v212 != v212) ? v212 : v210));
                float v214 = carries[i211];
                float v215 = (v214 == v213 ? as_float(as_int(v214) & as_int(v213)) : ((v214 > v213) | (v214 != v214) ? v214 : v213));
                out0[i125 + 3584] = (v215 == v215 ? v215 : (float)(as_float(0x7fc00000U)));
                float v216 = stage[i123 + 3900];
                int i217 = (int)((i122 + 3840) % 3);
                float v218 = totals[(i122 + 3840) / 192 * 3 + i217];
                float v219 = (v218 == v216 ? as_float(as_int(v218) & as_int(v216)) : ((v218 > v216) | (v218 != v218) ? v218 : v216));
                float v220 = carries[i217];
                float v221 = (v220 == v219 ? as_float(as_int(v220) & as_int(v219)) : ((v220 > v219) | (v220 != v220) ? v220 : v219));
                out0[i125 + 3840] = (v221 == v221 ? v221 : (float)(as_float(0x7fc00000U)));
            }
            long k = 12288;
            int i222 = (int)(k + lid);
            int i223 = (int)(k + lid + k / 64 + lid / 64);
            int i224 = (int)(k / 64 + lid / 64);
            long i225 = base + i222;
            long i226 = base + min(i222 + 3840, 16382);
            float v227 = stage[i223];
            int i228 = (int)(i222 % 3);
            float v229 = totals[i222 / 192 * 3 + i228];
            float v230 = (v229 == v227 ? as_float(as_int(v229) & as_int(v227)) : ((v229 > v227) | (v229 != v229) ? v229 : v227));
            float v231 = carries[i228];
            float v232 = (v231 == v230 ? as_float(as_int(v231) & as_int(v230)) : ((v231 > v230) | (v231 != v231) ? v231 : v230));
            out0[i225] = (v232 == v232 ? v232 : (float)(as_float(0x7fc00000U)));
            float v233 = stage[i223 + 260];
            int i234 = (int)((i222 + 256) % 3);
            float v235 = totals[(i222 + 256) / 192 * 3 + i234];
            float v236 = (v235 == v233 ? as_float(as_int(v235) & as_int(v233)) : ((v235 > v233) | (v235 != v235) ? v235 : v233));
            float v237 = carries[i234];
            float v238 = (v237 == v236 ? as_float(as_int(v237) & as_int(v236)) : ((v237 > v236) | (v237 != v237) ? v237 : v236));
            out0[i225 + 256] = (v238 == v238 ? v238 : (float)(as_float(0x7fc00000U)));
            float v239 = stage[i223 + 520];
            int i240 = (int)((i222 + 512) % 3);
            float v241 = totals[(i222 + 512) / 192 * 3 + i240];
            float v242 = (v241 == v239 ? as_float(as_int(v241) & as_int(v239)) : ((v241 > v239) | (v241 != v241) ? v241 : v239));
            float v243 = carries[i240];
            float v244 = (v243 == v242 ? as_float(as_int(v243) & as_int(v242)) : ((v243 > v242) | (v243 != v243) ? v243 : v242));
            out0[i225 + 512] = (v244 == v244 ? v244 : (float)(as_float(0x7fc00000U)));
            float v245 = stage[i223 + 780];
            int i246 = (int)((i222 + 768) % 3);
            float v247 = totals[(i222 + 768) / 192 * 3 + i246];
            float v248 = (v247 == v245 ? as_float(as_int(v247) & as_int(v245)) : ((v247 > v245) | (v247 != v247) ? v247 : v245));
            float v249 = carries[i246];
            float v250 = (v249 == v248 ? as_float(as_int(v249) & as_int(v248)) : ((v249 > v248) | (v249 != v249) ? v249 : v248));
            out0[i225 + 768] = (v250 == v250 ? v250 : (float)(as_float(0x7fc00000U)));
            float v251 = stage[i223 + 1040];
            int i252 = (int)((i222 + 1024) % 3);
            float v253 = totals[(i222 + 1024) / 192 * 3 + i252];
            float v254 = (v253 == v251 ? as_float(as_int(v253) & as_int(v251)) : ((v253 > v251) | (v253 != v253) ? v253 : v251));
            float v255 = carries[i252];
            float v256 = (v255 == v254 ? as_float(as_int(v255) & as_int(v254)) : ((v255 > v254) | (v255 != v255) ? v255 : v254));
            out0[i225 + 1024] = (v256 == v256 ? v256 : (float)(as_float(0x7fc00000U)));
            float v257 = stage[i223 + 1300];
            int i258 = (int)((i222 + 1280) % 3);
            float v259 = totals[(i222 + 1280) / 192 * 3 + i258];
            float v260 = (v259 == v257 ? as_float(as_int(v259) & as_int(v257)) : ((v259 > v257) | (v259 != v259) ? v259 : v257));
            float v261 = carries[i258];
            float v262 = (v261 == v260 ? as_float(as_int(v261) & as_int(v260)) : ((v261 > v260) | (v261 != v261) ? v261 : v260));
            out0[i225 + 1280] = (v262 == v262 ? v262 : (float)(as_float(0x7fc00000U)));
            float v263 = stage[i223 + 1560];
            int i264 = (int)((i222 + 1536) % 3);
            float v265 = totals[(i222 + 1536) / 192 * 3 + i264];
            float v266 = (v265 == v263 ? as_float(as_int(v265) & as_int(v263)) : ((v265 > v263) | (v265 != v265) ? v265 : v263));
            float v267 = carries[i264];
            float v268 = (v267 == v266 ? as_float(as_int(v267) & as_int(v266)) : ((v267 > v266) | (v267 != v267) ? v267 : v266));
            out0[i225 + 1536] = (v268 == v268 ? v268 : (float)(as_float(0x7fc00000U)));
            float v269 = stage[i223 + 1820];
            int i270 = (int)((i222 + 1792) % 3);
            float v271 = totals[(i222 + 1792) / 192 * 3 + i270];
            float v272 = (v271 == v269 ? as_float(as_int(v271) & as_int(v269)) : ((v271 > v269) | (v271 != v271) ? v271 : v269));
            float v273 = carries[i270];
            float v274 = (v273 == v272 ? as_float(as_int(v273) & as_int(v272)) : ((v273 > v272) | (v273 != v273) ? v273 : v272));
            out0[i225 + 1792] = (v274 == v274 ? v274 : (float)(as_float(0x7fc00000U)));
            float v275 = stage[i223 + 2080];
            int i276 = (int)((i222 + 2048) % 3);
            float v277 = totals[(i222 + 2048) / 192 * 3 + i276];
            float v278 = (v277 == v275 ? as_float(as_int(v277) & as_int(v275)) : ((v277 > v275) | (v277 != v277) ? v277 : v275));
            float v279 = carries[i276];
            float v280 = (v279 == v278 ? as_float(as_int(v279) & as_int(v278)) : ((v279 > v278) | (v279 != v279) ? v279 : v278));
            out0[i225 + 2048] = (v280 == v280 ? v280 : (float)(as_float(0x7fc00000U)));
            float v281 = stage[i223 + 2340];
            int i282 = (int)((i222 + 2304) % 3);
            float v283 = totals[(i222 + 2304) / 192 * 3 + i282];
            float v284 = (v283 == v281 ? as_float(as_int(v283) & as_int(v281)) : ((v283 > v281) | (v283 != v283) ? v283 : v281));
            float v285 = carries[i282];
            float v286 = (v285 == v284 ? as_float(as_int(v285) & as_int(v284)) : ((v285 > v284) | (v285 != v285) ? v285 : v284));
            out0[i225 + 2304] = (v286 == v286 ? v286 : (float)(as_float(0x7fc00000U)));
            float v287 = stage[i223 + 2600];
            int i288 = (int)((i222 + 2560) % 3);
            float v289 = totals[(i222 + 2560) / 192 * 3 + i288];
            float v290 = (v289 == v287 ? as_float(as_int(v289) & as_int(v287)) : ((v289 > v287) | (v289 != v289) ? v289 : v287));
            float v291 = carries[i288];
            float v292 = (v291 == v290 ? as_float(as_int(v291) & as_int(v290)) : ((v291 > v290) | (v291 != v291) ? v291 : v290));
            out0[i225 + 2560] = (v292 == v292 ? v292 : (float)(as_float(0x7fc00000U)));
            float v293 = stage[i223 + 2860];
            int i294 = (int)((i222 + 2816) % 3);
            float v295 = totals[(i222 + 2816) / 192 * 3 + i294];
            float v296 = (v295 == v293 ? as_float(as_int(v295) & as_int(v293)) : ((v295 > v293) | (v295 != v295) ? v295 : v293));
            float v297 = carries[i294];
            float v298 = (v297 == v296 ? as_float(as_int(v297) & as_int(v296)) : ((v297 > v296) | (v297 != v297) ? v297 : v296));
            out0[i225 + 2816] = (v298 == v298 ? v298 : (float)(as_float(0x7fc00000U)));
            float v299 = stage[i223 + 3120];
            int i300 = (int)((i222 + 3072) % 3);
            float v301 = totals[(i222 + 3072) / 192 * 3 + i300];
            float v302 = (v301 == v299 ? as_float(as_int(v301) & as_int(v299)) : ((v301 > v299) | (v301 != v301) ? v301 : v299));
            float v303 = carries[i300];
            float v304 = (v303 == v302 ? as_float(as_int(v303) & as_int(v302)) : ((v303 > v302) | (v303 != v303) ? v303 : v302));
            out0[i225 + 3072] = (v304 == v304 ? v304 : (float)(as_float(0x7fc00000U)));
            float v305 = stage[i223 + 3380];
            int i306 = (int)((i222 + 3328) % 3);
            float v307 = totals[(i222 + 3328) / 192 * 3 + i306];
            float v308 = (v307 == v305 ? as_float(as_int(v307) & as_int(v305)) : ((v307 > v305) | (v307 != v307) ? v307 : v305));
            float v309 = carries[i306];
            float v310 = (v309 == v308 ? as_float(as_int(v309) & as_int(v308)) : ((v309 > v308) | (v309 != v309) ? v309 : v308));
            out0[i225 + 3328] = (v310 == v310 ? v310 : (float)(as_float(0x7fc00000U)));
            float v311 = stage[i223 + 3640];
            int i312 = (int)((i222 + 3584) % 3);
            float v313 = totals[(i222 + 3584) / 192 * 3 + i312];
            float v314 = (v313 == v311 ? as_float(as_int(v313) & as_int(v311)) : ((v313 > v311) | (v313 != v313) ? v313 : v311));
            float v315 = carries[i312];
            float v316 = (v315 == v314 ? as_float(as_int(v315) & as_int(v314)) : ((v315 > v314) | (v315 != v315) ? v315 : v314));
            out0[i225 + 3584] = (v316 == v316 ? v316 : (float)(as_float(0x7fc00000U)));
            if (i222 + 3840 < 16383) {
                float v317 = stage[i223 + 3900];
                int i318 = (int)((i222 + 3840) % 3);
                float v319 = totals[(i222 + 3840) / 192 * 3 + i318];
                float v320 = (v319 == v317 ? as_float(as_int(v319) & as_int(v317)) : ((v319 > v317) | (v319 != v319) ? v319 : v317));
                float v321 = carries[i318];
                float v322 = (v321 == v320 ? as_float(as_int(v321) & as_int(v320)) : ((v321 > v320) | (v321 != v321) ? v321 : v320));
                out0[i226] = (v322 == v322 ? v322 : (float)(as_float(0x7fc00000U)));
            }
        } else {
            for (long k = 0; k < 64; k++) {
                int p = (int)(k * 256 + lid);
                if (p >= lo * 3 && p < hi * 3) {
                    int i115 = (int)(p + p / 64);
                    float v116 = stage[i115];
                    int i117 = (int)(p % 3);
                    float v118 = totals[p / 192 * 3 + i117];
                    float v119 = (v118 == v116 ? as_float(as_int(v118) & as_int(v116)) : ((v118 > v116) | (v118 != v118) ? v118 : v116));
                    float v120 = carries[i117];
                    float v121 = (v120 == v119 ? as_float(as_int(v120) & as_int(v119)) : ((v120 > v119) | (v120 != v120) ? v120 : v119));
                    out0[base + p] = (v121 == v121 ? v121 : (float)(as_float(0x7fc00000U)));
                }
            }
        }
        long drawn = lid == 0 ? fc_take(words0, blocks + gsize - 1) : 0;
        if (lid == 0) {
            long v323 = (long)(drawn);
            taken[0] = v323;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        t = taken[0];
    }
}
