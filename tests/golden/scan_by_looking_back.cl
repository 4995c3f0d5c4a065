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
        long v82 = (long)(drawn_first);
        taken[0] = v82;
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
        for (long k = 0; k < 64; k++) {
            int p = (int)(k * 256 + lid);
            if (p >= lo * 3 && p < hi * 3) {
                int i4 = (int)(p + p / 64);
                float v5 = in0[base + p];
                stage[i4] = v5;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long s = lid; s < ((q1 - q0) * 3); s += 256) {
            int i6 = (int)(q0 + s / 3);
            int i7 = (int)(s % 3);
            float v8 = (float)(-INFINITY);
            if (i6 == q0) {
                float v9 = last[i7];
                v8 = v9;
            }
            int i10 = (int)(max(i6 * 64, lo));
            int i11 = (int)(min(i6 * 64 + 64, hi));
            if (i11 - i10 == 64) {
                int i12 = (int)(i6 * 195 + i7);
                for (long j = 0; j < 64; j += 16) {
                    int i13 = (int)(j * 3);
                    int i14 = (int)((j + 1) * 3);
                    int i15 = (int)((j + 2) * 3);
                    int i16 = (int)((j + 3) * 3);
                    int i17 = (int)((j + 4) * 3);
                    int i18 = (int)((j + 5) * 3);
                    int i19 = (int)((j + 6) * 3);
                    int i20 = (int)((j + 7) * 3);
                    int i21 = (int)((j + 8) * 3);
                    int i22 = (int)((j + 9) * 3);
                    int i23 = (int)((j + 10) * 3);
                    int i24 = (int)((j + 11) * 3);
                    int i25 = (int)((j + 12) * 3);
                    int i26 = (int)((j + 13) * 3);
                    int i27 = (int)((j + 14) * 3);
                    int i28 = (int)((j + 15) * 3);
                    float v29 = stage[i12 + i13 + (i13 + i7) / 64];
                    float v30 = stage[i12 + i14 + (i14 + i7) / 64];
                    float v31 = stage[i12 + i15 + (i15 + i7) / 64];
                    float v32 = stage[i12 + i16 + (i16 + i7) / 64];
                    float v33 = stage[i12 + i17 + (i17 + i7) / 64];
                    float v34 = stage[i12 + i18 + (i18 + i7) / 64];
                    float v35 = stage[i12 + i19 + (i19 + i7) / 64];
                    float v36 = stage[i12 + i20 + (i20 + i7) / 64];
                    float v37 = stage[i12 + i21 + (i21 + i7) / 64];
                    float v38 = stage[i12 + i22 + (i22 + i7) / 64];
                    float v39 = stage[i12 + i23 + (i23 + i7) / 64];
                    float v40 = stage[i12 + i24 + (i24 + i7) / 64];
                    float v41 = stage[i12 + i25 + (i25 + i7) / 64];
                    float v42 = stage[i12 + i26 + (i26 + i7) / 64];
                    float v43 = stage[i12 + i27 + (i27 + i7) / 64];
                    float v44 = stage[i12 + i28 + (i28 + i7) / 64];
                    float v45 = (v8 == v29 ? as_float(as_int(v8) & as_int(v29)) : ((v8 > v29) | (v8 != v8) ? v8 : v29));
                    float v46 = (v45 == v30 ? as_float(as_int(v45) & as_int(v30)) : ((v45 > v30) | (v45 != v45) ? v45 : v30));
                    float v47 = (v46 == v31 ? as_float(as_int(v46) & as_int(v31)) : ((v46 > v31) | (v46 != v46) ? v46 : v31));
                    float v48 = (v47 == v32 ? as_float(as_int(v47) & as_int(v32)) : ((v47 > v32) | (v47 != v47) ? v47 : v32));
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
                    stage[i12 + i13 + (i13 + i7) / 64] = v45;
                    stage[i12 + i14 + (i14 + i7) / 64] = v46;
                    stage[i12 + i15 + (i15 + i7) / 64] = v47;
                    stage[i12 + i16 + (i16 + i7) / 64] = v48;
                    stage[i12 + i17 + (i17 + i7) / 64] = v49;
                    stage[i12 + i18 + (i18 + i7) / 64] = v50;
                    stage[i12 + i19 + (i19 + i7) / 64] = v51;
                    stage[i12 + i20 + (i20 + i7) / 64] = v52;
                    stage[i12 + i21 + (i21 + i7) / 64] = v53;
                    stage[i12 + i22 + (i22 + i7) / 64] = v54;
                    stage[i12 + i23 + (i23 + i7) / 64] = v55;
                    stage[i12 + i24 + (i24 + i7) / 64] = v56;
                    stage[i12 + i25 + (i25 + i7) / 64] = v57;
                    stage[i12 + i26 + (i26 + i7) / 64] = v58;
                    stage[i12 + i27 + (i27 + i7) / 64] = v59;
                    stage[i12 + i28 + (i28 + i7) / 64] = v60;
                    v8 = v60;
                }
            } else {
                for (long j = i10; j < i11; j++) {
                    int i61 = (int)(j * 3 + i7);
                    int i62 = (int)(i61 + i61 / 64);
                    float v63 = stage[i62];
                    float v64 = (v8 == v63 ? as_float(as_int(v8) & as_int(v63)) : ((v8 > v63) | (v8 != v8) ? v8 : v63));
                    v8 = v64;
                    stage[i62] = v8;
                }
            }
            totals[i6 * 3 + i7] = v8;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 3) {
            int c = (int)(lid);
            float v65 = sums[c];
            #pragma unroll 8
            for (long q = q0; q < ended; q++) {
                float v66 = totals[q * 3 + c];
                float v67 = (v65 == v66 ? as_float(as_int(v65) & as_int(v66)) : ((v65 > v66) | (v65 != v65) ? v65 : v66));
                totals[q * 3 + c] = v65;
                v65 = v67;
            }
            if (ended < q1) {
                float v68 = totals[ended * 3 + c];
                last[c] = v68;
                totals[ended * 3 + c] = v65;
            }
            sums[c] = v65;
            if (t > 0 && t + 1 < blocks) {
                fc_publish(words0 + 2 + 2 * (t * 3 + c), (ulong)as_uint(v65), (ulong)chunk << 1 | 0);
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
            float v69 = carries[c];
            float v70 = sums[c];
            float v71 = (v69 == v70 ? as_float(as_int(v69) & as_int(v70)) : ((v69 > v70) | (v69 != v69) ? v69 : v70));
            if (t + 1 < blocks) {
                fc_publish(words0 + 2 + 2 * (t * 3 + c), (ulong)as_uint(v71), (ulong)chunk << 1 | 1);
            } else {
                float v72 = (float)(-INFINITY);
                if (hi == 5461) {
                    state0[c] = v71;
                    state0[3 + c] = v72;
                    state0[6 + c] = v72;
                } else {
                    state0[c] = v69;
                    state0[3 + c] = v70;
                    if (ended < q1) {
                        float v73 = last[c];
                        state0[6 + c] = v73;
                    } else {
                        state0[6 + c] = v72;
                    }
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long k = 0; k < 64; k++) {
            int p = (int)(k * 256 + lid);
            if (p >= lo * 3 && p < hi * 3) {
                int i74 = (int)(p + p / 64);
                float v75 = stage[i74];
                int i76 = (int)(p % 3);
                float v77 = totals[p / 192 * 3 + i76];
                float v78 = (v77 == v75 ? as_float(as_int(v77) & as_int(v75)) : ((v77 > v75) | (v77 != v77) ? v77 : v75));
                float v79 = carries[i76];
                float v80 = (v79 == v78 ? as_float(as_int(v79) & as_int(v78)) : ((v79 > v78) | (v79 != v79) ? v79 : v78));
                out0[base + p] = (v80 == v80 ? v80 : (float)(as_float(0x7fc00000U)));
            }
        }
        long drawn = lid == 0 ? fc_take(words0, blocks + gsize - 1) : 0;
        if (lid == 0) {
            long v81 = (long)(drawn);
            taken[0] = v81;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        t = taken[0];
    }
}
