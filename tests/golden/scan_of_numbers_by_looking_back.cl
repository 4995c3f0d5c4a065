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
    __local float stage[17408] __attribute__((aligned(64)));
    __local float totals[256] __attribute__((aligned(64)));
    __local float ahead[48] __attribute__((aligned(64)));
    __local int nearest[1] __attribute__((aligned(64)));
    __local long taken[1] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    long drawn_first = lid == 0 ? fc_take(words0, blocks + gsize - 1) : 0;
    if (lid == 0) {
        long v104 = (long)(drawn_first);
        taken[0] = v104;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    long t = taken[0];
    while (t < blocks) {
        int lo = (int)(t == 0 ? phase : 0);
        int hi = (int)(min(16384L, phase + n - t * 16384));
        long base = t * 16384 - phase;
        int q0 = (int)(lo / 64);
        int q1 = (int)((hi + 63) / 64);
        int ended = (int)(hi == 16384 ? q1 : hi / 64);
        int whole = (int)(hi - lo == 16384 && phase % 4 == 0);
        float v0 = (float)(-INFINITY);
        float v1 = (float)(-INFINITY);
        if (lid == 32 && phase % 4 == 0 && t + 33 < blocks) {
            asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"((ulong)(in0 + (base + 524288))), "r"(65536u) : "memory");
        }
        if (whole) {
            for (long k = 0; k < 16384; k += 4096) {
                int i2 = (int)(k + lid * 4);
                int i3 = (int)(i2 + i2 / 64 * 4);
                int i4 = (int)(i2 / 64);
                long i5 = base + i2;
                float4 v6 = *(const __global float4 *)(in0 + (i5));
                float4 v7 = *(const __global float4 *)(in0 + (i5 + 1024));
                float4 v8 = *(const __global float4 *)(in0 + (i5 + 2048));
                float4 v9 = *(const __global float4 *)(in0 + (i5 + 3072));
                *(__local float4 *)(stage + i3) = v6;
                *(__local float4 *)(stage + i3 + 1088) = v7;
                *(__local float4 *)(stage + i3 + 2176) = v8;
                *(__local float4 *)(stage + i3 + 3264) = v9;
            }
        } else {
            #pragma unroll 8
            for (long k = 0; k < 64; k++) {
                int p = (int)(k * 256 + lid);
                if (p >= lo && p < hi) {
                    int i10 = (int)(p + p / 64 * 4);
                    float v11 = in0[base + p];
                    stage[i10] = v11;
                }
            }
        }
        if (lid == 0) {
            int v12 = (long)(48);
            nearest[0] = v12;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid >= q0 && lid < q1) {
            float v13 = (float)(-INFINITY);
            if (t == 0 && lid == q0) {
                float v14 = state0[2];
                v13 = v14;
            }
            int i15 = (int)(max((int)lid * 64, lo));
            int i16 = (int)(min((int)lid * 64 + 64, hi));
            if (i16 - i15 == 64) {
                #pragma unroll
                for (long j = 0; j < 64; j += 4) {
                    int i17 = (int)((int)lid * 68 + j);
                    float4 v18 = *(__local float4 *)(stage + i17);
                    float v19 = (float)(v18.s0);
                    float v20 = (v13 == v19 ? as_float(as_int(v13) & as_int(v19)) : ((v13 > v19) | (v13 != v13) ? v13 : v19));
                    float v21 = (float)(v18.s1);
                    float v22 = (v20 == v21 ? as_float(as_int(v20) & as_int(v21)) : ((v20 > v21) | (v20 != v20) ? v20 : v21));
                    float v23 = (float)(v18.s2);
                    float v24 = (v22 == v23 ? as_float(as_int(v22) & as_int(v23)) : ((v22 > v23) | (v22 != v22) ? v22 : v23));
                    float v25 = (float)(v18.s3);
                    float v26 = (v24 == v25 ? as_float(as_int(v24) & as_int(v25)) : ((v24 > v25) | (v24 != v24) ? v24 : v25));
                    float4 v27 = (float4)(v20, v22, v24, v26);
                    *(__local float4 *)(stage + i17) = v27;
                    v13 = v26;
                }
            } else {
                for (long j = i15; j < i16; j++) {
                    int i28 = (int)(j + j / 64 * 4);
                    float v29 = stage[i28];
                    float v30 = (v13 == v29 ? as_float(as_int(v13) & as_int(v29)) : ((v13 > v29) | (v13 != v13) ? v13 : v29));
                    v13 = v30;
                    stage[i28] = v13;
                }
            }
            totals[lid] = v13;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid == 0) {
            if (t == 0) {
                v0 = state0[1];
            }
            if (ended - q0 == 256) {
                for (long q = 0; q < 256; q += 16) {
                    float v31 = totals[q];
                    float v32 = totals[q + 1];
                    float v33 = totals[q + 2];
                    float v34 = totals[q + 3];
                    float v35 = totals[q + 4];
                    float v36 = totals[q + 5];
                    float v37 = totals[q + 6];
                    float v38 = totals[q + 7];
                    float v39 = totals[q + 8];
                    float v40 = totals[q + 9];
                    float v41 = totals[q + 10];
                    float v42 = totals[q + 11];
                    float v43 = totals[q + 12];
                    float v44 = totals[q + 13];
                    float v45 = totals[q + 14];
                    float v46 = totals[q + 15];
                    totals[q] = v0;
                    float v47 = (v0 == v31 ? as_float(as_int(v0) & as_int(v31)) : ((v0 > v31) | (v0 != v0) ? v0 : v31));
                    totals[q + 1] = v47;
                    float v48 = (v47 == v32 ? as_float(as_int(v47) & as_int(v32)) : ((v47 > v32) | (v47 != v47) ? v47 : v32));
                    totals[q + 2] = v48;
                    float v49 = (v48 == v33 ? as_float(as_int(v48) & as_int(v33)) : ((v48 > v33) | (v48 != v48) ? v48 : v33));
                    totals[q + 3] = v49;
                    float v50 = (v49 == v34 ? as_float(as_int(v49) & as_int(v34)) : ((v49 > v34) | (v49 != v49) ? v49 : v34));
                    totals[q + 4] = v50;
                    float v51 = (v50 == v35 ? as_float(as_int(v50) & as_int(v35)) : ((v50 > v35) | (v50 != v50) ? v50 : v35));
                    totals[q + 5] = v51;
                    float v52 = (v51 == v36 ? as_float(as_int(v51) & as_int(v36)) : ((v51 > v36) | (v51 != v51) ? v51 : v36));
                    totals[q + 6] = v52;
                    float v53 = (v52 == v37 ? as_float(as_int(v52) & as_int(v37)) : ((v52 > v37) | (v52 != v52) ? v52 : v37));
                    totals[q + 7] = v53;
                    float v54 = (v53 == v38 ? as_float(as_int(v53) & as_int(v38)) : ((v53 > v38) | (v53 != v53) ? v53 : v38));
                    totals[q + 8] = v54;
                    float v55 = (v54 == v39 ? as_float(as_int(v54) & as_int(v39)) : ((v54 > v39) | (v54 != v54) ? v54 : v39));
                    totals[q + 9] = v55;
                    float v56 = (v55 == v40 ? as_float(as_int(v55) & as_int(v40)) : ((v55 > v40) | (v55 != v55) ? v55 : v40));
                    totals[q + 10] = v56;
                    float v57 = (v56 == v41 ? as_float(as_int(v56) & as_int(v41)) : ((v56 > v41) | (v56 != v56) ? v56 : v41));
                    totals[q + 11] = v57;
                    float v58 = (v57 == v42 ? as_float(as_int(v57) & as_int(v42)) : ((v57 > v42) | (v57 != v57) ? v57 : v42));
                    totals[q + 12] = v58;
                    float v59 = (v58 == v43 ? as_float(as_int(v58) & as_int(v43)) : ((v58 > v43) | (v58 != v58) ? v58 : v43));
                    totals[q + 13] = v59;
                    float v60 = (v59 == v44 ? as_float(as_int(v59) & as_int(v44)) : ((v59 > v44) | (v59 != v59) ? v59 : v44));
                    totals[q + 14] = v60;
                    float v61 = (v60 == v45 ? as_float(as_int(v60) & as_int(v45)) : ((v60 > v45) | (v60 != v60) ? v60 : v45));
                    totals[q + 15] = v61;
                    float v62 = (v61 == v46 ? as_float(as_int(v61) & as_int(v46)) : ((v61 > v46) | (v61 != v61) ? v61 : v46));
                    v0 = v62;
                }
            } else {
                for (long q = q0; q < ended; q++) {
                    float v63 = totals[q];
                    totals[q] = v0;
                    float v64 = (v0 == v63 ? as_float(as_int(v0) & as_int(v63)) : ((v0 > v63) | (v0 != v0) ? v0 : v63));
                    v0 = v64;
                }
            }
            if (ended < q1) {
                v1 = totals[ended];
                totals[ended] = v0;
            }
            if (t > 0 && t + 1 < blocks) {
                fc_publish(words0 + 2 + 2 * (t), (ulong)as_uint(v0), (ulong)chunk << 1 | 0);
            }
        }
        if (lid >= 32 && lid < 80) {
            const int back = lid - 32;
            int known = 0;
            if (back < t) {
                ulong bits;
                do {
                    const ulong2 word = *(volatile __global ulong2 *)(words0 + 2 + 2 * (t - 1 - back));
                    known = fc_known(word.x, word.y, (uint)chunk, &bits);
                } while (known < (back == 47 || back == t - 1 ? 2 : 1));
                ahead[back] = as_float((uint)(bits));
            } else if (back == 0 && t == 0) {
                ahead[back] = state0[0];
                known = 2;
            }
            if (known == 2) atomic_min(nearest, back);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        int v65_back = nearest[0];
        float v65 = ahead[v65_back];
        for (; v65_back >= 8; v65_back -= 8) {
            const float v65_0 = ahead[v65_back - 1];
            const float v65_1 = ahead[v65_back - 2];
            const float v65_2 = ahead[v65_back - 3];
            const float v65_3 = ahead[v65_back - 4];
            const float v65_4 = ahead[v65_back - 5];
            const float v65_5 = ahead[v65_back - 6];
            const float v65_6 = ahead[v65_back - 7];
            const float v65_7 = ahead[v65_back - 8];
            v65 = (v65 == v65_0 ? as_float(as_int(v65) & as_int(v65_0)) : ((v65 > v65_0) | (v65 != v65) ? v65 : v65_0));
            v65 = (v65 == v65_1 ? as_float(as_int(v65) & as_int(v65_1)) : ((v65 > v65_1) | (v65 != v65) ? v65 : v65_1));
            v65 = (v65 == v65_2 ? as_float(as_int(v65) & as_int(v65_2)) : ((v65 > v65_2) | (v65 != v65) ? v65 : v65_2));
            v65 = (v65 == v65_3 ? as_float(as_int(v65) & as_int(v65_3)) : ((v65 > v65_3) | (v65 != v65) ? v65 : v65_3));
            v65 = (v65 == v65_4 ? as_float(as_int(v65) & as_int(v65_4)) : ((v65 > v65_4) | (v65 != v65) ? v65 : v65_4));
            v65 = (v65 == v65_5 ? as_float(as_int(v65) & as_int(v65_5)) : ((v65 > v65_5) | (v65 != v65) ? v65 : v65_5));
            v65 = (v65 == v65_6 ? as_float(as_int(v65) & as_int(v65_6)) : ((v65 > v65_6) | (v65 != v65) ? v65 : v65_6));
            v65 = (v65 == v65_7 ? as_float(as_int(v65) & as_int(v65_7)) : ((v65 > v65_7) | (v65 != v65) ? v65 : v65_7));
        }
        for (; v65_back > 0; v65_back--) {
            const float v65_0 = ahead[v65_back - 1];
            v65 = (v65 == v65_0 ? as_float(as_int(v65) & as_int(v65_0)) : ((v65 > v65_0) | (v65 != v65) ? v65 : v65_0));
        }
        if (lid == 0) {
            float v66 = (v65 == v0 ? as_float(as_int(v65) & as_int(v0)) : ((v65 > v0) | (v65 != v65) ? v65 : v0));
            float v67 = (float)(-INFINITY);
            if (t + 1 < blocks) {
                fc_publish(words0 + 2 + 2 * (t), (ulong)as_uint(v66), (ulong)chunk << 1 | 1);
            } else {
                if (hi == 16384) {
                    state0[0] = v66;
                    state0[1] = v67;
                    state0[2] = v67;
                } else {
                    state0[0] = v65;
                    state0[1] = v0;
                    state0[2] = v1;
                }
            }
        }
        if (whole) {
            for (long k = 0; k < 16384; k += 4096) {
                int i68 = (int)(k + lid * 4);
                int i69 = (int)(i68 + i68 / 64 * 4);
                int i70 = (int)(i68 / 64);
                long i71 = base + i68;
                float4 v72 = *(__local float4 *)(stage + i69);
                float v73 = totals[i70];
                float4 v74 = (float4)(v73);
                float4 v75 = (v74 == v72 ? as_float4(as_int4(v74) & as_int4(v72)) : ((v74 > v72) | (v74 != v74) ? v74 : v72));
                float4 v76 = (float4)(v65);
                float4 v77 = (v76 == v75 ? as_float4(as_int4(v76) & as_int4(v75)) : ((v76 > v75) | (v76 != v76) ? v76 : v75));
                *(__global float4 *)(out0 + (i71)) = (v77 == v77 ? v77 : (float4)(as_float(0x7fc00000U)));
                float4 v78 = *(__local float4 *)(stage + i69 + 1088);
                float v79 = totals[i70 + 16];
                float4 v80 = (float4)(v79);
                float4 v81 = (v80 == v78 ? as_float4(as_int4(v80) & as_int4(v78)) : ((v80 > v78) | (v80 != v80) ? v80 : v78));
                float4 v82 = (float4)(v65);
                float4 v83 = (v82 == v81 ? as_float4(as_int4(v82) & as_int4(v81)) : ((v82 > v81) | (v82 != v82) ? v82 : v81));
                *(__global float4 *)(out0 + (i71 + 1024)) = (v83 == v83 ? v83 : (float4)(as_float(0x7fc00000U)));
                float4 v84 = *(__local float4 *)(stage + i69 + 2176);
                float v85 = totals[i70 + 32];
                float4 v86 = (float4)(v85);
                float4 v87 = (v86 == v84 ? as_float4(as_int4(v86) & as_int4(v84)) : ((v86 > v84) | (v86 != v86) ? v86 : v84));
                float4 v88 = (float4)(v65);
                float4 v89 = (v88 == v87 ? as_float4(as_int4(v88) & as_int4(v87)) : ((v88 > v87) | (v88 != v88) ? v88 : v87));
                *(__global float4 *)(out0 + (i71 + 2048)) = (v89 == v89 ? v89 : (float4)(as_float(0x7fc00000U)));
                float4 v90 = *(__local float4 *)(stage + i69 + 3264);
                float v91 = totals[i70 + 48];
                float4 v92 = (float4)(v91);
                float4 v93 = (v92 == v90 ? as_float4(as_int4(v92) & as_int4(v90)) : ((v92 > v90) | (v92 != v92) ? v92 : v90));
                float4 v94 = (float4)(v65);
                float4 v95 = (v94 == v93 ? as_float4(as_int4(v94) & as_int4(v93)) : ((v94 > v93) | (v94 != v94) ? v94 : v93));
                *(__global float4 *)(out0 + (i71 + 3072)) = (v95 == v95 ? v95 : (float4)(as_float(0x7fc00000U)));
            }
        } else {
            #pragma unroll 8
            for (long k = 0; k < 64; k++) {
                int p = (int)(k * 256 + lid);
                if (p >= lo && p < hi) {
                    int i96 = (int)(p + p / 64 * 4);
                    float v97 = stage[i96];
                    float v98 = totals[p / 64];
                    float v99 = v98;
                    float v100 = (v99 == v97 ? as_float(as_int(v99) & as_int(v97)) : ((v99 > v97) | (v99 != v99) ? v99 : v97));
                    float v101 = v65;
                    float v102 = (v101 == v100 ? as_float(as_int(v101) & as_int(v100)) : ((v101 > v100) | (v101 != v101) ? v101 : v100));
                    out0[base + p] = (v102 == v102 ? v102 : (float)(as_float(0x7fc00000U)));
                }
            }
        }
        long drawn = lid == 0 ? fc_take(words0, blocks + gsize - 1) : 0;
        if (lid == 0) {
            long v103 = (long)(drawn);
            taken[0] = v103;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        t = taken[0];
    }
}
