#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF

static inline long fc_take(volatile __global ulong *words, long last) {
    const long ticket = atomic_inc((volatile __global uint *)words);
    if (ticket == last) atomic_xchg((volatile __global uint *)words, 0u);
    return ticket;
}

typedef float16 fc_loose_float32_16 __attribute__((aligned(4)));

static inline float16 fc_gather_float32_16(const __global float *p, long stride, long count) {
    float all[16];
    for (int lane = 0; lane < 16; lane++) all[lane] = lane < count ? p[lane * stride] : 0;
    return vload16(0, all);
}

static inline void fc_publish(volatile __global ulong *slot, ulong bits, ulong flag) {
    slot[0] = bits << 32 | flag;
    slot[1] = (bits & 0xffffffff00000000UL) | flag;
}

static inline int fc_known(ulong low, ulong high, uint launch, ulong *bits) {
    *bits = low >> 32 | (high & 0xffffffff00000000UL);
    return (uint)low == (uint)high && (uint)low >> 1 == launch ? 1 + ((int)low & 1) : 0;
}

static inline int fc_seen(volatile __global ulong *slot, uint launch, ulong *bits) {
    int known;
    do known = fc_known(slot[0], slot[1], launch, bits); while (known == 0);
    return known;
}

static inline void fc_scatter_float32_16(float16 value, __global float *p, long stride, long count) {
    float all[16];
    vstore16(value, 0, all);
    for (int lane = 0; lane < 16; lane++) if (lane < count) p[lane * stride] = all[lane];
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
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
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    float stage[16400] __attribute__((aligned(64)));
    float last[1] __attribute__((aligned(64)));
    double totals[256] __attribute__((aligned(64)));
    double sums[1] __attribute__((aligned(64)));
    double carries[1] __attribute__((aligned(64)));
    long t = fc_take(words0, blocks + gsize - 1);
    while (t < blocks) {
        long lo = t == 0 ? phase : 0;
        long hi = min(16384L, phase + n - t * 16384);
        long base = t * 16384 - phase;
        long q0 = lo / 64;
        long q1 = (hi + 63) / 64;
        long ended = hi == 16384 ? q1 : hi / 64;
        for (long c = 0; c < 1; c++) {
            if (t == 0) {
                double v0 = state0[2 + c];
                float v1 = convert_float(v0);
                last[c] = v1;
                double v2 = state0[1 + c];
                sums[c] = v2;
            } else {
                float v3 = (float)(-0x0.0p+0f);
                last[c] = v3;
                double v4 = (double)(-0x0.0p+0);
                sums[c] = v4;
            }
        }
        {
            long p = lo;
            while (p + 16 <= hi) {
                float16 v5 = *(const __global fc_loose_float32_16 *)(in0 + (base + p));
                float16 v6 = (float16)(0x1.0000000000000p+1f);
                float16 v7 = (v5 * v6);
                *(fc_loose_float32_16 *)(stage + p) = v7;
                p = p + 16;
            }
            if (p < hi) {
                long left = hi - p;
                float16 v8 = fc_gather_float32_16(in0 + (base + p), 1, left);
                float16 v9 = (float16)(0x1.0000000000000p+1f);
                float16 v10 = (v8 * v9);
                *(fc_loose_float32_16 *)(stage + p) = v10;
            }
        }
        for (long c = 0; c < 1; c++) {
            long q = q0;
            while (q < q1) {
                if (q * 64 >= lo && (q + 8) * 64 <= hi) {
                    float v17 = (float)(-0x0.0p+0f);
                    float v18 = (float)(-0x0.0p+0f);
                    float v19 = (float)(-0x0.0p+0f);
                    float v20 = (float)(-0x0.0p+0f);
                    float v21 = (float)(-0x0.0p+0f);
                    float v22 = (float)(-0x0.0p+0f);
                    float v23 = (float)(-0x0.0p+0f);
                    float v24 = (float)(-0x0.0p+0f);
                    for (long j = 0; j < 64; j++) {
                        long i25 = q * 64 + j + c;
                        float v26 = stage[i25];
                        float v27 = (v17 + v26);
                        v17 = v27;
                        stage[i25] = v17;
                        long i28 = (q + 1) * 64 + j + c;
                        float v29 = stage[i28];
                        float v30 = (v18 + v29);
                        v18 = v30;
                        stage[i28] = v18;
                        long i31 = (q + 2) * 64 + j + c;
                        float v32 = stage[i31];
                        float v33 = (v19 + v32);
                        v19 = v33;
                        stage[i31] = v19;
                        long i34 = (q + 3) * 64 + j + c;
                        float v35 = stage[i34];
                        float v36 = (v20 + v35);
                        v20 = v36;
                        stage[i34] = v20;
                        long i37 = (q + 4) * 64 + j + c;
                        float v38 = stage[i37];
                        float v39 = (v21 + v38);
                        v21 = v39;
                        stage[i37] = v21;
                        long i40 = (q + 5) * 64 + j + c;
                        float v41 = stage[i40];
                        float v42 = (v22 + v41);
                        v22 = v42;
                        stage[i40] = v22;
                        long i43 = (q + 6) * 64 + j + c;
                        float v44 = stage[i43];
                        float v45 = (v23 + v44);
                        v23 = v45;
                        stage[i43] = v23;
                        long i46 = (q + 7) * 64 + j + c;
                        float v47 = stage[i46];
                        float v48 = (v24 + v47);
                        v24 = v48;
                        stage[i46] = v24;
                    }
                    double v49 = convert_double(v17);
                    totals[q + c] = v49;
                    double v50 = convert_double(v18);
                    totals[q + 1 + c] = v50;
                    double v51 = convert_double(v19);
                    totals[q + 2 + c] = v51;
                    double v52 = convert_double(v20);
                    totals[q + 3 + c] = v52;
                    double v53 = convert_double(v21);
                    totals[q + 4 + c] = v53;
                    double v54 = convert_double(v22);
                    totals[q + 5 + c] = v54;
                    double v55 = convert_double(v23);
                    totals[q + 6 + c] = v55;
                    double v56 = convert_double(v24);
                    totals[q + 7 + c] = v56;
                    q = q + 8;
                } else {
                    float v11 = (float)(-0x0.0p+0f);
                    if (q == q0) {
                        float v12 = last[c];
                        v11 = v12;
                    }
                    for (long j = max(q * 64, lo); j < min(q * 64 + 64, hi); j++) {
                        long i13 = j + c;
                        float v14 = stage[i13];
                        float v15 = (v11 + v14);
                        v11 = v15;
                        stage[i13] = v11;
                    }
                    double v16 = convert_double(v11);
                    totals[q + c] = v16;
                    q = q + 1;
                }
            }
        }
        for (long q = q0; q < q1; q++) {
            for (long c = 0; c < 1; c++) {
                double v57 = totals[q + c];
                double v58 = sums[c];
                double v59 = (v58 + v57);
                totals[q + c] = v58;
                if (q < ended) {
                    sums[c] = v59;
                } else {
                    float v60 = convert_float(v57);
                    last[c] = v60;
                }
            }
        }
        if (t > 0 && t + 1 < blocks) {
            for (long c = 0; c < 1; c++) {
                double v61 = sums[c];
                fc_publish(words0 + 2 + 2 * (t + c), as_ulong(v61), (ulong)chunk << 1 | 0);
            }
        }
        for (long c = 0; c < 1; c++) {
            if (t == 0) {
                double v62 = state0[c];
                carries[c] = v62;
            } else {
                long back = t - 1;
                ulong v63_bits;
                int kind = fc_seen(words0 + 2 + 2 * (back + c), (uint)chunk, &v63_bits);
                const double v63 = as_double(v63_bits);
                double v66 = v63;
                while (kind != 2) {
                    back = back - 1;
                    ulong v64_bits;
                    int other = fc_seen(words0 + 2 + 2 * (back + c), (uint)chunk, &v64_bits);
                    const double v64 = as_double(v64_bits);
                    v66 = v64;
                    kind = other;
                }
                while (back + 1 < t) {
                    back = back + 1;
                    ulong v65_bits;
                    int known = fc_seen(words0 + 2 + 2 * (back + c), (uint)chunk, &v65_bits);
                    const double v65 = as_double(v65_bits);
                    if (known == 2) {
                        v66 = v65;
                    } else {
                        double v67 = (v66 + v65);
                        v66 = v67;
                    }
                }
                carries[c] = v66;
            }
            double v68 = carries[c];
            double v69 = sums[c];
            double v70 = (v68 + v69);
            if (t + 1 < blocks) {
                fc_publish(words0 + 2 + 2 * (t + c), as_ulong(v70), (ulong)chunk << 1 | 1);
            } else {
                double v71 = (double)(-0x0.0p+0);
                if (hi == 16384) {
                    state0[c] = v70;
                    state0[1 + c] = v71;
                    state0[2 + c] = v71;
                } else {
                    state0[c] = v68;
                    state0[1 + c] = v69;
                    if (ended < q1) {
                        float v72 = last[c];
                        double v73 = convert_double(v72);
                        state0[2 + c] = v73;
                    } else {
                        state0[2 + c] = v71;
                    }
                }
            }
        }
        for (long q = q0; q < q1; q++) {
            double v74 = totals[q];
            double v75 = carries[0];
            long p = max(q * 64, lo);
            while (p + 16 <= min(q * 64 + 64, hi)) {
                float16 v76 = *(fc_loose_float32_16 *)(stage + p);
                double16 v77 = convert_double16(v76);
                double16 v78 = (double16)(v74);
                double16 v79 = (v78 + v77);
                double16 v80 = (double16)(v75);
                double16 v81 = (v80 + v79);
                float16 v82 = convert_float16(v81);
                float16 v83 = (float16)(0x1.0000000000000p+0f);
                float16 v84 = (v82 + v83);
                *(__global fc_loose_float32_16 *)(out0 + (base + p)) = (v84 == v84 ? v84 : (float16)(as_float(0x7fc00000U)));
                p = p + 16;
            }
            if (p < min(q * 64 + 64, hi)) {
                long left = min(q * 64 + 64, hi) - p;
                float16 v85 = *(fc_loose_float32_16 *)(stage + p);
                double16 v86 = convert_double16(v85);
                double16 v87 = (double16)(v74);
                double16 v88 = (v87 + v86);
                double16 v89 = (double16)(v75);
                double16 v90 = (v89 + v88);
                float16 v91 = convert_float16(v90);
                float16 v92 = (float16)(0x1.0000000000000p+0f);
                float16 v93 = (v91 + v92);
                fc_scatter_float32_16((v93 == v93 ? v93 : (float16)(as_float(0x7fc00000U))), out0 + (base + p), 1, left);
            }
        }
        t = fc_take(words0, blocks + gsize - 1);
    }
}
