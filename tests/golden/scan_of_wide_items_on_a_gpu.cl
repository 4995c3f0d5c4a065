#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF

static inline long fc_take(volatile __global ulong *words, long last) {
    const long ticket = atomic_inc((volatile __global uint *)words);
    if (ticket == last) atomic_xchg((volatile __global uint *)words, 0u);
    return ticket;
}

static inline int fc_known(ulong low, ulong high, uint launch, ulong *bits) {
    *bits = low >> 32 | (high & 0xffffffff00000000UL);
    return (uint)low == (uint)high && (uint)low >> 1 == launch ? 1 + ((int)low & 1) : 0;
}

static inline ulong fc_await(volatile __global ulong *slot, uint launch) {
    ulong bits;
    while (fc_known(slot[0], slot[1], launch, &bits) != 2) {}
    return bits;
}

static inline void fc_publish(volatile __global ulong *slot, ulong bits, ulong flag) {
    slot[0] = bits << 32 | flag;
    slot[1] = (bits & 0xffffffff00000000UL) | flag;
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global float *restrict out0,
    __global double *restrict state0,
    volatile __global ulong *restrict words0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local double adds[256] __attribute__((aligned(64)));
    __local double before[256] __attribute__((aligned(64)));
    __local long taken[1] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    long tasks = (blocks + 15) / 16 * 64;
    long drawn_first = lid == 0 ? fc_take(words0, tasks + gsize - 1) : 0;
    if (lid == 0) {
        long v139 = (long)(drawn_first);
        taken[0] = v139;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    long task = taken[0];
    while (task < tasks) {
        long stretch = task / 64;
        int c = (int)(task % 64 * 16 + lid % 16);
        long t = stretch * 16 + lid / 16;
        int lo = (int)(t == 0 ? phase : 0);
        int hi = (int)(c < 1009 ? max(0L, min(16L, phase + n - t * 16)) : 0);
        long base = (t * 16 - phase) * 1009 + c;
        float v0 = (float)(0x0.0p+0f);
        float v1 = (float)(0x0.0p+0f);
        float v2 = (float)(0x0.0p+0f);
        float v3 = (float)(0x0.0p+0f);
        float v4 = (float)(0x0.0p+0f);
        float v5 = (float)(0x0.0p+0f);
        float v6 = (float)(0x0.0p+0f);
        float v7 = (float)(0x0.0p+0f);
        float v8 = (float)(0x0.0p+0f);
        float v9 = (float)(0x0.0p+0f);
        float v10 = (float)(0x0.0p+0f);
        float v11 = (float)(0x0.0p+0f);
        float v12 = (float)(0x0.0p+0f);
        float v13 = (float)(0x0.0p+0f);
        float v14 = (float)(0x0.0p+0f);
        float v15 = (float)(0x0.0p+0f);
        float v16 = (float)(-0x0.0p+0f);
        double v17 = (double)(-0x0.0p+0);
        if (t == 0 && hi > 0) {
            double v18 = state0[2018 + c];
            float v19 = convert_float(v18);
            v16 = v19;
            v17 = state0[1009 + c];
        }
        float v20 = v16;
        if (hi - lo == 16) {
            float v21 = in0[base];
            float v22 = in0[base + 1009];
            float v23 = in0[base + 2018];
            float v24 = in0[base + 3027];
            float v25 = in0[base + 4036];
            float v26 = in0[base + 5045];
            float v27 = in0[base + 6054];
            float v28 = in0[base + 7063];
            float v29 = in0[base + 8072];
            float v30 = in0[base + 9081];
            float v31 = in0[base + 10090];
            float v32 = in0[base + 11099];
            float v33 = in0[base + 12108];
            float v34 = in0[base + 13117];
            float v35 = in0[base + 14126];
            float v36 = in0[base + 15135];
            float v37 = (v16 + v21);
            v16 = v37;
            v0 = v37;
            float v38 = (v16 + v22);
            v16 = v38;
            v1 = v38;
            float v39 = (v16 + v23);
            v16 = v39;
            v2 = v39;
            float v40 = (v16 + v24);
            v16 = v40;
            v3 = v40;
            float v41 = (v16 + v25);
            v16 = v41;
            v4 = v41;
            float v42 = (v16 + v26);
            v16 = v42;
            v5 = v42;
            float v43 = (v16 + v27);
            v16 = v43;
            v6 = v43;
            float v44 = (v16 + v28);
            v16 = v44;
            v7 = v44;
            float v45 = (v16 + v29);
            v16 = v45;
            v8 = v45;
            float v46 = (v16 + v30);
            v16 = v46;
            v9 = v46;
            float v47 = (v16 + v31);
            v16 = v47;
            v10 = v47;
            float v48 = (v16 + v32);
            v16 = v48;
            v11 = v48;
            float v49 = (v16 + v33);
            v16 = v49;
            v12 = v49;
            float v50 = (v16 + v34);
            v16 = v50;
            v13 = v50;
            float v51 = (v16 + v35);
            v16 = v51;
            v14 = v51;
            float v52 = (v16 + v36);
            v16 = v52;
            v15 = v52;
        } else {
            for (long j = lo; j < hi; j++) {
                long i53 = base + j * 1009;
                float v54 = in0[i53];
                float v55 = (v16 + v54);
                v16 = v55;
            }
        }
        double v56 = convert_double(v16);
        double v57 = (v17 + v56);
        adds[lid] = v57;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 16 && c < 1009) {
            double v58 = (double)(-0x0.0p+0);
            if (stretch == 0) {
                v58 = state0[c];
            } else {
                const double v59 = as_double(fc_await(words0 + 2 + 2 * ((stretch - 1) * 1009 + c), (uint)chunk));
                v58 = v59;
            }
            #pragma unroll 8
            for (long w = 0; w < min(16L, blocks - t); w++) {
                double v60 = adds[w * 16 + lid];
                double v61 = (v58 + v60);
                before[w * 16 + lid] = v58;
                v58 = v61;
            }
            if (t + 16 < blocks) {
                fc_publish(words0 + 2 + 2 * (stretch * 1009 + c), as_ulong(v58), (ulong)chunk << 1 | 1);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        double v62 = before[lid];
        long drawn = lid == 0 ? fc_take(words0, tasks + gsize - 1) : 0;
        if (hi - lo == 16) {
            double v63 = (double)(-0x0.0p+0);
            double v64 = convert_double(v0);
            double v65 = (v63 + v64);
            double v66 = (v62 + v65);
            float v67 = convert_float(v66);
            out0[base] = (v67 == v67 ? v67 : (float)(as_float(0x7fc00000U)));
            double v68 = convert_double(v1);
            double v69 = (v63 + v68);
            double v70 = (v62 + v69);
            float v71 = convert_float(v70);
            out0[base + 1009] = (v71 == v71 ? v71 : (float)(as_float(0x7fc00000U)));
            double v72 = convert_double(v2);
            double v73 = (v63 + v72);
            double v74 = (v62 + v73);
            float v75 = convert_float(v74);
            out0[base + 2018] = (v75 == v75 ? v75 : (float)(as_float(0x7fc00000U)));
            double v76 = convert_double(v3);
            double v77 = (v63 + v76);
            double v78 = (v62 + v77);
            float v79 = convert_float(v78);
            out0[base + 3027] = (v79 == v79 ? v79 : (float)(as_float(0x7fc00000U)));
            double v80 = convert_double(v4);
            double v81 = (v63 + v80);
            double v82 = (v62 + v81);
            float v83 = convert_float(v82);
            out0[base + 4036] = (v83 == v83 ? v83 : (float)(as_float(0x7fc00000U)));
            double v84 = convert_double(v5);
            double v85 = (v63 + v84);
            double v86 = (v62 + v85);
            float v87 = convert_float(v86);
            out0[base + 5045] = (v87 == v87 ? v87 : (float)(as_float(0x7fc00000U)));
            double v88 = convert_double(v6);
            double v89 = (v63 + v88);
            double v90 = (v62 + v89);
            float v91 = convert_float(v90);
            out0[base + 6054] = (v91 == v91 ? v91 : (float)(as_float(0x7fc00000U)));
            double v92 = convert_double(v7);
            double v93 = (v63 + v92);
            double v94 = (v62 + v93);
            float v95 = convert_float(v94);
            out0[base + 7063] = (v95 == v95 ? v95 : (float)(as_float(0x7fc00000U)));
            double v96 = convert_double(v8);
            double v97 = (v63 + v96);
            double v98 = (v62 + v97);
            float v99 = convert_float(v98);
            out0[base + 8072] = (v99 == v99 ? v99 : (float)(as_float(0x7fc00000U)));
            double v100 = convert_double(v9);
            double v101 = (v63 + v100);
            double v102 = (v62 + v101);
            float v103 = convert_float(v102);
            out0[base + 9081] = (v103 == v103 ? v103 : (float)(as_float(0x7fc00000U)));
            double v104 = convert_double(v10);
            double v105 = (v63 + v104);
            double v106 = (v62 + v105);
            float v107 = convert_float(v106);
            out0[base + 10090] = (v107 == v107 ? v107 : (float)(as_float(0x7fc00000U)));
            double v108 = convert_double(v11);
            double v109 = (v63 + v108);
            double v110 = (v62 + v109);
            float v111 = convert_float(v110);
            out0[base + 11099] = (v111 == v111 ? v111 : (float)(as_float(0x7fc00000U)));
            double v112 = convert_double(v12);
            double v113 = (v63 + v112);
            double v114 = (v62 + v113);
            float v115 = convert_float(v114);
            out0[base + 12108] = (v115 == v115 ? v115 : (float)(as_float(0x7fc00000U)));
            double v116 = convert_double(v13);
            double v117 = (v63 + v116);
            double v118 = (v62 + v117);
            float v119 = convert_float(v118);
            out0[base + 13117] = (v119 == v119 ? v119 : (float)(as_float(0x7fc00000U)));
            double v120 = convert_double(v14);
            double v121 = (v63 + v120);
            double v122 = (v62 + v121);
            float v123 = convert_float(v122);
            out0[base + 14126] = (v123 == v123 ? v123 : (float)(as_float(0x7fc00000U)));
            double v124 = convert_double(v15);
            double v125 = (v63 + v124);
            double v126 = (v62 + v125);
            float v127 = convert_float(v126);
            out0[base + 15135] = (v127 == v127 ? v127 : (float)(as_float(0x7fc00000U)));
        } else {
            for (long j = lo; j < hi; j++) {
                long i128 = base + j * 1009;
                float v129 = in0[i128];
                float v130 = (v20 + v129);
                v20 = v130;
                double v131 = convert_double(v130);
                double v132 = (v17 + v131);
                double v133 = (v62 + v132);
                float v134 = convert_float(v133);
                out0[i128] = (v134 == v134 ? v134 : (float)(as_float(0x7fc00000U)));
            }
        }
        if (t + 1 == blocks && hi > 0) {
            if (hi == 16) {
                double v135 = (double)(-0x0.0p+0);
                double v136 = (v62 + v57);
                state0[c] = v136;
                state0[1009 + c] = v135;
                state0[2018 + c] = v135;
            } else {
                double v137 = convert_double(v16);
                state0[c] = v62;
                state0[1009 + c] = v17;
                state0[2018 + c] = v137;
            }
        }
        if (lid == 0) {
            long v138 = (long)(drawn);
            taken[0] = v138;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        task = taken[0];
    }
}
