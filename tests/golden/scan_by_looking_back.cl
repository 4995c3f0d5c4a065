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
    __local float stage[16640] __attribute__((aligned(64)));
    __local float last[1] __attribute__((aligned(64)));
    __local float totals[256] __attribute__((aligned(64)));
    __local float sums[1] __attribute__((aligned(64)));
    __local float carries[1] __attribute__((aligned(64)));
    __local long taken[1] __attribute__((aligned(64)));
    __local float ahead[256] __attribute__((aligned(64)));
    __local int marks[3] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    long drawn_first = lid == 0 ? fc_take(words0, blocks + gsize - 1) : 0;
    if (lid == 0) {
        long v151 = (long)(drawn_first);
        taken[0] = v151;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    long t = taken[0];
    while (t < blocks) {
        int lo = (int)(t == 0 ? phase : 0);
        int hi = (int)(min((long)16384, phase + n - t * 16384));
        long base = (t * 16384 - phase);
        int q0 = (int)(lo / 64);
        int q1 = (int)((hi + 63) / 64);
        int ended = (int)(hi == 16384 ? q1 : hi / 64);
        if (lid < 1) {
            int c = (int)(lid);
            if (t == 0) {
                float v0 = state0[2 + c];
                last[c] = v0;
                float v1 = state0[1 + c];
                sums[c] = v1;
            } else {
                float v2 = (float)(-INFINITY);
                last[c] = v2;
                float v3 = (float)(-INFINITY);
                sums[c] = v3;
            }
        }
        if (hi - lo == 16384) {
            for (long k = 0; k < 16384; k += 4096) {
                int i6 = (int)(k + lid);
                int i7 = (int)(k + lid + k / 64 + lid / 64);
                int i8 = (int)(k / 64 + lid / 64);
                long i9 = base + i6;
                float v10 = in0[(i9 + 0)];
                float v11 = in0[(i9 + 256)];
                float v12 = in0[(i9 + 512)];
                float v13 = in0[(i9 + 768)];
                float v14 = in0[(i9 + 1024)];
                float v15 = in0[(i9 + 1280)];
                float v16 = in0[(i9 + 1536)];
                float v17 = in0[(i9 + 1792)];
                float v18 = in0[(i9 + 2048)];
                float v19 = in0[(i9 + 2304)];
                float v20 = in0[(i9 + 2560)];
                float v21 = in0[(i9 + 2816)];
                float v22 = in0[(i9 + 3072)];
                float v23 = in0[(i9 + 3328)];
                float v24 = in0[(i9 + 3584)];
                float v25 = in0[(i9 + 3840)];
                stage[i7 + 0] = v10;
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
        } else {
            for (long k = 0; k < 64; k++) {
                int p = (int)(k * 256 + lid);
                if (p >= lo && p < hi) {
                    int i4 = (int)(p + (p) / 64);
                    float v5 = in0[(base + p)];
                    stage[i4] = v5;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long s = lid; s < (q1 - q0) * 1; s += 256) {
            int i26 = (int)(q0 + s);
            float v27 = (float)(-INFINITY);
            if (i26 == q0) {
                float v28 = last[0];
                v27 = v28;
            }
            int i29 = (int)(max(i26 * 64, lo));
            int i30 = (int)(min(i26 * 64 + 64, hi));
            if (i30 - i29 == 64) {
                int i31 = (int)(i26 * 65 + 0);
                for (long j = 0; j < 64; j += 16) {
                    float v32 = stage[i31 + j + 0];
                    float v33 = stage[i31 + j + 1];
                    float v34 = stage[i31 + j + 2];
                    float v35 = stage[i31 + j + 3];
                    float v36 = stage[i31 + j + 4];
                    float v37 = stage[i31 + j + 5];
                    float v38 = stage[i31 + j + 6];
                    float v39 = stage[i31 + j + 7];
                    float v40 = stage[i31 + j + 8];
                    float v41 = stage[i31 + j + 9];
                    float v42 = stage[i31 + j + 10];
                    float v43 = stage[i31 + j + 11];
                    float v44 = stage[i31 + j + 12];
                    float v45 = stage[i31 + j + 13];
                    float v46 = stage[i31 + j + 14];
                    float v47 = stage[i31 + j + 15];
                    float v48 = (v27 == v32 ? as_float(as_int(v27) & as_int(v32)) : ((v27 > v32) | (v27 != v27) ? v27 : v32));
                    float v49 = (v48 == v33 ? as_float(as_int(v48) & as_int(v33)) : ((v48 > v33) | (v48 != v48) ? v48 : v33));
                    float v50 = (v49 == v34 ? as_float(as_int(v49) & as_int(v34)) : ((v49 > v34) | (v49 != v49) ? v49 : v34));
                    float v51 = (v50 == v35 ? as_float(as_int(v50) & as_int(v35)) : ((v50 > v35) | (v50 != v50) ? v50 : v35));
                    float v52 = (v51 == v36 ? as_float(as_int(v51) & as_int(v36)) : ((v51 > v36) | (v51 != v51) ? v51 : v36));
                    float v53 = (v52 == v37 ? as_float(as_int(v52) & as_int(v37)) : ((v52 > v37) | (v52 != v52) ? v52 : v37));
                    float v54 = (v53 == v38 ? as_float(as_int(v53) & as_int(v38)) : ((v53 > v38) | (v53 != v53) ? v53 : v38));
                    float v55 = (v54 == v39 ? as_float(as_int(v54) & as_int(v39)) : ((v54 > v39) | (v54 != v54) ? v54 : v39));
                    float v56 = (v55 == v40 ? as_float(as_int(v55) & as_int(v40)) : ((v55 > v40) | (v55 != v55) ? v55 : v40));
                    float v57 = (v56 == v41 ? as_float(as_int(v56) & as_int(v41)) : ((v56 > v41) | (v56 != v56) ? v56 : v41));
                    float v58 = (v57 == v42 ? as_float(as_int(v57) & as_int(v42)) : ((v57 > v42) | (v57 != v57) ? v57 : v42));
                    float v59 = (v58 == v43 ? as_float(as_int(v58) & as_int(v43)) : ((v58 > v43) | (v58 != v58) ? v58 : v43));
                    float v60 = (v59 == v44 ? as_float(as_int(v59) & as_int(v44)) : ((v59 > v44) | (v59 != v59) ? v59 : v44));
                    float v61 = (v60 == v45 ? as_float(as_int(v60) & as_int(v45)) : ((v60 > v45) | (v60 != v60) ? v60 : v45));
                    float v62 = (v61 == v46 ? as_float(as_int(v61) & as_int(v46)) : ((v61 > v46) | (v61 != v61) ? v61 : v46));
                    float v63 = (v62 == v47 ? as_float(as_int(v62) & as_int(v47)) : ((v62 > v47) | (v62 != v62) ? v62 : v47));
                    stage[i31 + j + 0] = v48;
                    stage[i31 + j + 1] = v49;
                    stage[i31 + j + 2] = v50;
                    stage[i31 + j + 3] = v51;
                    stage[i31 + j + 4] = v52;
                    stage[i31 + j + 5] = v53;
                    stage[i31 + j + 6] = v54;
                    stage[i31 + j + 7] = v55;
                    stage[i31 + j + 8] = v56;
                    stage[i31 + j + 9] = v57;
                    stage[i31 + j + 10] = v58;
                    stage[i31 + j + 11] = v59;
                    stage[i31 + j + 12] = v60;
                    stage[i31 + j + 13] = v61;
                    stage[i31 + j + 14] = v62;
                    stage[i31 + j + 15] = v63;
                    v27 = v63;
                }
            } else {
                for (long j = i29; j < i30; j++) {
                    int i64 = (int)(j + (j) / 64);
                    float v65 = stage[i64];
                    float v66 = (v27 == v65 ? as_float(as_int(v27) & as_int(v65)) : ((v27 > v65) | (v27 != v27) ? v27 : v65));
                    v27 = v66;
                    stage[i64] = v27;
                }
            }
            totals[i26 * 1 + 0] = v27;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 1) {
            int c = (int)(lid);
            float v67 = sums[c];
            #pragma unroll 8
            for (long q = q0; q < ended; q++) {
                float v68 = totals[q * 1 + c];
                float v69 = (v67 == v68 ? as_float(as_int(v67) & as_int(v68)) : ((v67 > v68) | (v67 != v67) ? v67 : v68));
                totals[q * 1 + c] = v67;
                v67 = v69;
            }
            if (ended < q1) {
                float v70 = totals[ended * 1 + c];
                last[c] = v70;
                totals[ended * 1 + c] = v67;
            }
            sums[c] = v67;
            if (t > 0 && t + 1 < blocks) {
                fc_publish(words0 + 2 + 2 * (t * 1 + c), (ulong)as_uint(v67), (ulong)chunk << 1 | 0);
            }
        }
        {
            const long tile = t;
            int waiting;
            do {
                for (int i = lid; i < 2; i += 256) marks[i] = 256;
                if (lid == 0) marks[2] = 0;
                barrier(CLK_LOCAL_MEM_FENCE);
                const long before = max(tile, 1L) - 1;
                ulong low[1], high[1];
                #pragma unroll
                for (int i = 0; i < 1; i++) {
                    const int entry = lid + i * 256, back = entry / 1, column = entry % 1;
                    low[i] = (words0 + 2 + 2 * ((before - min((long)back, before)) * 1 + 0 + column))[0];
                    high[i] = (words0 + 2 + 2 * ((before - min((long)back, before)) * 1 + 0 + column))[1];
                }
                #pragma unroll
                for (int i = 0; i < 1; i++) {
                    const int entry = lid + i * 256, back = entry / 1, column = entry % 1;
                    ulong bits;
                    int known = fc_known(low[i], high[i], (uint)chunk, &bits);
                    if (back >= tile) known = 0;
                    ahead[entry] = as_float((uint)(bits));
                    if (tile == 0 && back == 0) {
                        ahead[entry] = state0[0 + column];
                        known = 2;
                    }
                    if (known == 2) atomic_min(&marks[column], back);
                    if (known == 0) atomic_min(&marks[1 + column], back);
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int i = lid; i < 1; i += 256)
                    if (marks[i] >= marks[1 + i]) marks[2] = 1;
                barrier(CLK_LOCAL_MEM_FENCE);
                waiting = marks[2];
                barrier(CLK_LOCAL_MEM_FENCE);
            } while (waiting);
            for (int i = lid; i < 1; i += 256) {
                int back = marks[i];
                float total = ahead[back * 1 + i];
                while (back-- > 0) {
                    const float other = ahead[back * 1 + i];
                    total = (total == other ? as_float(as_int(total) & as_int(other)) : ((total > other) | (total != total) ? total : other));
                }
                carries[0 + i] = total;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (lid < 1) {
            int c = (int)(lid);
            float v71 = carries[c];
            float v72 = sums[c];
            float v73 = (v71 == v72 ? as_float(as_int(v71) & as_int(v72)) : ((v71 > v72) | (v71 != v71) ? v71 : v72));
            if (t + 1 < blocks) {
                fc_publish(words0 + 2 + 2 * (t * 1 + c), (ulong)as_uint(v73), (ulong)chunk << 1 | 1);
            } else {
                float v74 = (float)(-INFINITY);
                if (hi == 16384) {
                    state0[0 + c] = v73;
                    state0[1 + c] = v74;
                    state0[2 + c] = v74;
                } else {
                    state0[c] = v71;
                    state0[1 + c] = v72;
                    if (ended < q1) {
                        float v75 = last[c];
                        state0[2 + c] = v75;
                    } else {
                        state0[2 + c] = v74;
                    }
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        long drawn = lid == 0 ? fc_take(words0, blocks + gsize - 1) : 0;
        float v76 = carries[0];
        if (hi - lo == 16384) {
            for (long k = 0; k < 16384; k += 4096) {
                int i82 = (int)(k + lid);
                int i83 = (int)(k + lid + k / 64 + lid / 64);
                int i84 = (int)(k / 64 + lid / 64);
                long i85 = base + i82;
                float v86 = stage[i83 + 0];
                float v87 = totals[i84 + 0];
                float v88 = (v87 == v86 ? as_float(as_int(v87) & as_int(v86)) : ((v87 > v86) | (v87 != v87) ? v87 : v86));
                float v89 = (v76 == v88 ? as_float(as_int(v76) & as_int(v88)) : ((v76 > v88) | (v76 != v76) ? v76 : v88));
                out0[i85 + 0] = (v89 == v89 ? v89 : (float)(as_float(0x7fc00000U)));
                float v90 = stage[i83 + 260];
                float v91 = totals[i84 + 4];
                float v92 = (v91 == v90 ? as_float(as_int(v91) & as_int(v90)) : ((v91 > v90) | (v91 != v91) ? v91 : v90));
                float v93 = (v76 == v92 ? as_float(as_int(v76) & as_int(v92)) : ((v76 > v92) | (v76 != v76) ? v76 : v92));
                out0[i85 + 256] = (v93 == v93 ? v93 : (float)(as_float(0x7fc00000U)));
                float v94 = stage[i83 + 520];
                float v95 = totals[i84 + 8];
                float v96 = (v95 == v94 ? as_float(as_int(v95) & as_int(v94)) : ((v95 > v94) | (v95 != v95) ? v95 : v94));
                float v97 = (v76 == v96 ? as_float(as_int(v76) & as_int(v96)) : ((v76 > v96) | (v76 != v76) ? v76 : v96));
                out0[i85 + 512] = (v97 == v97 ? v97 : (float)(as_float(0x7fc00000U)));
                float v98 = stage[i83 + 780];
                float v99 = totals[i84 + 12];
                float v100 = (v99 == v98 ? as_float(as_int(v99) & as_int(v98)) : ((v99 > v98) | (v99 != v99) ? v99 : v98));
                float v101 = (v76 == v100 ? as_float(as_int(v76) & as_int(v100)) : ((v76 > v100) | (v76 != v76) ? v76 : v100));
                out0[i85 + 768] = (v101 == v101 ? v101 : (float)(as_float(0x7fc00000U)));
                float v102 = stage[i83 + 1040];
                float v103 = totals[i84 + 16];
                float v104 = (v103 == v102 ? as_float(as_int(v103) & as_int(v102)) : ((v103 > v102) | (v103 != v103) ? v103 : v102));
                float v105 = (v76 == v104 ? as_float(as_int(v76) & as_int(v104)) : ((v76 > v104) | (v76 != v76) ? v76 : v104));
                out0[i85 + 1024] = (v105 == v105 ? v105 : (float)(as_float(0x7fc00000U)));
                float v106 = stage[i83 + 1300];
                float v107 = totals[i84 + 20];
                float v108 = (v107 == v106 ? as_float(as_int(v107) & as_int(v106)) : ((v107 > v106) | (v107 != v107) ? v107 : v106));
                float v109 = (v76 == v108 ? as_float(as_int(v76) & as_int(v108)) : ((v76 > v108) | (v76 != v76) ? v76 : v108));
                out0[i85 + 1280] = (v109 == v109 ? v109 : (float)(as_float(0x7fc00000U)));
                float v110 = stage[i83 + 1560];
                float v111 = totals[i84 + 24];
                float v112 = (v111 == v110 ? as_float(as_int(v111) & as_int(v110)) : ((v111 > v110) | (v111 != v111) ? v111 : v110));
                float v113 = (v76 == v112 ? as_float(as_int(v76) & as_int(v112)) : ((v76 > v112) | (v76 != v76) ? v76 : v112));
                out0[i85 + 1536] = (v113 == v113 ? v113 : (float)(as_float(0x7fc00000U)));
                float v114 = stage[i83 + 1820];
                float v115 = totals[i84 + 28];
                float v116 = (v115 == v114 ? as_float(as_int(v115) & as_int(v114)) : ((v115 > v114) | (v115 != v115) ? v115 : v114));
                float v117 = (v76 == v116 ? as_float(as_int(v76) & as_int(v116)) : ((v76 > v116) | (v76 != v76) ? v76 : v116));
                out0[i85 + 1792] = (v117 == v117 ? v117 : (float)(as_float(0x7fc00000U)));
                float v118 = stage[i83 + 2080];
                float v119 = totals[i84 + 32];
                float v120 = (v119 == v118 ? as_float(as_int(v119) & as_int(v118)) : ((v119 > v118) | (v119 != v119) ? v119 : v118));
                float v121 = (v76 == v120 ? as_float(as_int(v76) & as_int(v120)) : ((v76 > v120) | (v76 != v76) ? v76 : v120));
                out0[i85 + 2048] = (v121 == v121 ? v121 : (float)(as_float(0x7fc00000U)));
                float v122 = stage[i83 + 2340];
                float v123 = totals[i84 + 36];
                float v124 = (v123 == v122 ? as_float(as_int(v123) & as_int(v122)) : ((v123 > v122) | (v123 != v123) ? v123 : v122));
                float v125 = (v76 == v124 ? as_float(as_int(v76) & as_int(v124)) : ((v76 > v124) | (v76 != v76) ? v76 : v124));
                out0[i85 + 2304] = (v125 == v125 ? v125 : (float)(as_float(0x7fc00000U)));
                float v126 = stage[i83 + 2600];
                float v127 = totals[i84 + 40];
                float v128 = (v127 == v126 ? as_float(as_int(v127) & as_int(v126)) : ((v127 > v126) | (v127 != v127) ? v127 : v126));
                float v129 = (v76 == v128 ? as_float(as_int(v76) & as_int(v128)) : ((v76 > v128) | (v76 != v76) ? v76 : v128));
                out0[i85 + 2560] = (v129 == v129 ? v129 : (float)(as_float(0x7fc00000U)));
                float v130 = stage[i83 + 2860];
                float v131 = totals[i84 + 44];
                float v132 = (v131 == v130 ? as_float(as_int(v131) & as_int(v130)) : ((v131 > v130) | (v131 != v131) ? v131 : v130));
                float v133 = (v76 == v132 ? as_float(as_int(v76) & as_int(v132)) : ((v76 > v132) | (v76 != v76) ? v76 : v132));
                out0[i85 + 2816] = (v133 == v133 ? v133 : (float)(as_float(0x7fc00000U)));
                float v134 = stage[i83 + 3120];
                float v135 = totals[i84 + 48];
                float v136 = (v135 == v134 ? as_float(as_int(v135) & as_int(v134)) : ((v135 > v134) | (v135 != v135) ? v135 : v134));
                float v137 = (v76 == v136 ? as_float(as_int(v76) & as_int(v136)) : ((v76 > v136) | (v76 != v76) ? v76 : v136));
                out0[i85 + 3072] = (v137 == v137 ? v137 : (float)(as_float(0x7fc00000U)));
                float v138 = stage[i83 + 3380];
                float v139 = totals[i84 + 52];
                float v140 = (v139 == v138 ? as_float(as_int(v139) & as_int(v138)) : ((v139 > v138) | (v139 != v139) ? v139 : v138));
                float v141 = (v76 == v140 ? as_float(as_int(v76) & as_int(v140)) : ((v76 > v140) | (v76 != v76) ? v76 : v140));
                out0[i85 + 3328] = (v141 == v141 ? v141 : (float)(as_float(0x7fc00000U)));
                float v142 = stage[i83 + 3640];
                float v143 = totals[i84 + 56];
                float v144 = (v143 == v142 ? as_float(as_int(v143) & as_int(v142)) : ((v143 > v142) | (v143 != v143) ? v143 : v142));
                float v145 = (v76 == v144 ? as_float(as_int(v76) & as_int(v144)) : ((v76 > v144) | (v76 != v76) ? v76 : v144));
                out0[i85 + 3584] = (v145 == v145 ? v145 : (float)(as_float(0x7fc00000U)));
                float v146 = stage[i83 + 3900];
                float v147 = totals[i84 + 60];
                float v148 = (v147 == v146 ? as_float(as_int(v147) & as_int(v146)) : ((v147 > v146) | (v147 != v147) ? v147 : v146));
                float v149 = (v76 == v148 ? as_float(as_int(v76) & as_int(v148)) : ((v76 > v148) | (v76 != v76) ? v76 : v148));
                out0[i85 + 3840] = (v149 == v149 ? v149 : (float)(as_float(0x7fc00000U)));
            }
        } else {
            for (long k = 0; k < 64; k++) {
                int p = (int)(k * 256 + lid);
                if (p >= lo && p < hi) {
                    int i77 = (int)(p + (p) / 64);
                    float v78 = stage[i77];
                    float v79 = totals[(p) / 64];
                    float v80 = (v79 == v78 ? as_float(as_int(v79) & as_int(v78)) : ((v79 > v78) | (v79 != v79) ? v79 : v78));
                    float v81 = (v76 == v80 ? as_float(as_int(v76) & as_int(v80)) : ((v76 > v80) | (v76 != v76) ? v76 : v80));
                    out0[base + p] = (v81 == v81 ? v81 : (float)(as_float(0x7fc00000U)));
                }
            }
        }
        if (lid == 0) {
            long v150 = (long)(drawn);
            taken[0] = v150;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        t = taken[0];
    }
}
