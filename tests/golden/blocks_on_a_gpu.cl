#pragma OPENCL FP_CONTRACT OFF

static inline float fc_float_of_half(int bits) {
    ushort half_bits = bits;
    return vload_half(0, (const half *)&half_bits);
}

static inline float fc_q8_0_of_block(const __global uchar *block, int place) {
#pragma OPENCL FP_CONTRACT OFF
    return (fc_float_of_half(((int)block[0] | ((int)block[(0 + 1)] << 8))) * (float)((((int)block[(2 + place)] ^ 128) - 128)));
}

static inline float fc_q8_0(const __global uchar *p, long n) {
    return fc_q8_0_of_block(p + (ulong)n / 32 * 34, (int)((ulong)n % 32));
}

static inline float2 fc_q8_0_spread2(const __global uchar *p, long n) {
    const __global uchar *block = p + (ulong)n / 32 * 34;
    int place = (int)((ulong)n % 16);
    return (float2)(fc_q8_0_of_block(block, place + 0), fc_q8_0_of_block(block, place + 16));
}

static inline float fc_q4_k_of_block(const __global uchar *block, int place) {
#pragma OPENCL FP_CONTRACT OFF
    int v0 = (place >> 5);
    int v1 = (v0 < 4);
    int v2 = (v0 & 3);
    int v3 = (int)block[(4 + v2)];
    int v4 = (int)block[(12 + v2)];
    int v5 = (int)block[(8 + v2)];
    return (((fc_float_of_half(((int)block[0] | ((int)block[(0 + 1)] << 8))) * (float)((v1 ? (v3 & 63) : ((v4 & 15) | ((v3 >> 2) & 48))))) * (float)((((int)block[((16 + (32 * (v0 >> 1))) + (place & 31))] >> (4 * (v0 & 1))) & 15))) - (fc_float_of_half(((int)block[2] | ((int)block[(2 + 1)] << 8))) * (float)((v1 ? (v5 & 63) : ((v4 >> 4) | ((v5 >> 2) & 48))))));
}

static inline float fc_q4_k(const __global uchar *p, long n) {
    return fc_q4_k_of_block(p + (ulong)n / 256 * 144, (int)((ulong)n % 256));
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void k0(
    __global const uchar *restrict in0,
    __global const uchar *restrict in1,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local float sums[4352] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long t = gid; t < ((n + 15) / 16 * 2); t += gsize) {
        long i0 = (n + 15) / 16;
        long i1 = t / 16;
        long i2 = t % 16;
        long i3 = min(8L, i0 - i1 * 8);
        long i4 = (i1 * 8 + i2 % i3) * 16;
        long i5 = i2 / i3 * 16;
        if (n - i4 < 2) {
            long i6 = min(n - 1, i4 + lid / 16 / 16);
            long i7 = i6 * 512;
            long i8 = min(18L, i5 + lid / 16 % 16) * 512;
            float v9 = (float)(-0x0.0p+0f);
            #pragma unroll 4
            for (long k = 0; k < 512; k += 32) {
                float2 v10 = fc_q8_0_spread2(in0, i8 + (k + lid % 16));
                float v11 = (float)(v10.s0);
                float v12 = fc_q4_k(in1, i7 + (k + lid % 16));
                float v13 = fma(v12, v11, v9);
                v9 = v13;
                float v14 = (float)(v10.s1);
                float v15 = fc_q4_k(in1, i7 + (k + lid % 16 + 16));
                float v16 = fma(v15, v14, v9);
                v9 = v16;
            }
            sums[(lid / 16 / 16 * 16 + lid / 16 % 16) * 17 + lid % 16] = v9;
        } else {
            if (i4 + lid / 16 / 4 * 4 < n) {
                long i17 = min(n - 1, i4 + lid / 16 / 4 * 4);
                long i18 = i17 * 512;
                long i19 = min(n - 1, i4 + lid / 16 / 4 * 4 + 1);
                long i20 = i19 * 512;
                long i21 = min(n - 1, i4 + lid / 16 / 4 * 4 + 2);
                long i22 = i21 * 512;
                long i23 = min(n - 1, i4 + lid / 16 / 4 * 4 + 3);
                long i24 = i23 * 512;
                long i25 = min(18L, i5 + lid / 16 % 4 * 4) * 512;
                long i26 = min(18L, i5 + lid / 16 % 4 * 4 + 1) * 512;
                long i27 = min(18L, i5 + lid / 16 % 4 * 4 + 2) * 512;
                long i28 = min(18L, i5 + lid / 16 % 4 * 4 + 3) * 512;
                float v29 = (float)(-0x0.0p+0f);
                float v30 = (float)(-0x0.0p+0f);
                float v31 = (float)(-0x0.0p+0f);
                float v32 = (float)(-0x0.0p+0f);
                float v33 = (float)(-0x0.0p+0f);
                float v34 = (float)(-0x0.0p+0f);
                float v35 = (float)(-0x0.0p+0f);
                float v36 = (float)(-0x0.0p+0f);
                float v37 = (float)(-0x0.0p+0f);
                float v38 = (float)(-0x0.0p+0f);
                float v39 = (float)(-0x0.0p+0f);
                float v40 = (float)(-0x0.0p+0f);
                float v41 = (float)(-0x0.0p+0f);
                float v42 = (float)(-0x0.0p+0f);
                float v43 = (float)(-0x0.0p+0f);
                float v44 = (float)(-0x0.0p+0f);
                #pragma unroll
                for (long k = 0; k < 512; k += 16) {
                    float v45 = fc_q8_0(in0, i25 + (k + lid % 16));
                    float v46 = fc_q8_0(in0, i26 + (k + lid % 16));
                    float v47 = fc_q8_0(in0, i27 + (k + lid % 16));
                    float v48 = fc_q8_0(in0, i28 + (k + lid % 16));
                    float v49 = fc_q4_k(in1, i18 + (k + lid % 16));
                    float v50 = fma(v49, v45, v29);
                    v29 = v50;
                    float v51 = fma(v49, v46, v30);
                    v30 = v51;
                    float v52 = fma(v49, v47, v31);
                    v31 = v52;
                    float v53 = fma(v49, v48, v32);
                    v32 = v53;
                    float v54 = fc_q4_k(in1, i20 + (k + lid % 16));
                    float v55 = fma(v54, v45, v33);
                    v33 = v55;
                    float v56 = fma(v54, v46, v34);
                    v34 = v56;
                    float v57 = fma(v54, v47, v35);
                    v35 = v57;
                    float v58 = fma(v54, v48, v36);
                    v36 = v58;
                    float v59 = fc_q4_k(in1, i22 + (k + lid % 16));
                    float v60 = fma(v59, v45, v37);
                    v37 = v60;
                    float v61 = fma(v59, v46, v38);
                    v38 = v61;
                    float v62 = fma(v59, v47, v39);
                    v39 = v62;
                    float v63 = fma(v59, v48, v40);
                    v40 = v63;
                    float v64 = fc_q4_k(in1, i24 + (k + lid % 16));
                    float v65 = fma(v64, v45, v41);
                    v41 = v65;
                    float v66 = fma(v64, v46, v42);
                    v42 = v66;
                    float v67 = fma(v64, v47, v43);
                    v43 = v67;
                    float v68 = fma(v64, v48, v44);
                    v44 = v68;
                }
                sums[(lid / 16 / 4 * 4 * 16 + lid / 16 % 4 * 4) * 17 + lid % 16] = v29;
                sums[(lid / 16 / 4 * 4 * 16 + lid / 16 % 4 * 4 + 1) * 17 + lid % 16] = v30;
                sums[(lid / 16 / 4 * 4 * 16 + lid / 16 % 4 * 4 + 2) * 17 + lid % 16] = v31;
                sums[(lid / 16 / 4 * 4 * 16 + lid / 16 % 4 * 4 + 3) * 17 + lid % 16] = v32;
                sums[((lid / 16 / 4 * 4 + 1) * 16 + lid / 16 % 4 * 4) * 17 + lid % 16] = v33;
                sums[((lid / 16 / 4 * 4 + 1) * 16 + lid / 16 % 4 * 4 + 1) * 17 + lid % 16] = v34;
                sums[((lid / 16 / 4 * 4 + 1) * 16 + lid / 16 % 4 * 4 + 2) * 17 + lid % 16] = v35;
                sums[((lid / 16 / 4 * 4 + 1) * 16 + lid / 16 % 4 * 4 + 3) * 17 + lid % 16] = v36;
                sums[((lid / 16 / 4 * 4 + 2) * 16 + lid / 16 % 4 * 4) * 17 + lid % 16] = v37;
                sums[((lid / 16 / 4 * 4 + 2) * 16 + lid / 16 % 4 * 4 + 1) * 17 + lid % 16] = v38;
                sums[((lid / 16 / 4 * 4 + 2) * 16 + lid / 16 % 4 * 4 + 2) * 17 + lid % 16] = v39;
                sums[((lid / 16 / 4 * 4 + 2) * 16 + lid / 16 % 4 * 4 + 3) * 17 + lid % 16] = v40;
                sums[((lid / 16 / 4 * 4 + 3) * 16 + lid / 16 % 4 * 4) * 17 + lid % 16] = v41;
                sums[((lid / 16 / 4 * 4 + 3) * 16 + lid / 16 % 4 * 4 + 1) * 17 + lid % 16] = v42;
                sums[((lid / 16 / 4 * 4 + 3) * 16 + lid / 16 % 4 * 4 + 2) * 17 + lid % 16] = v43;
                sums[((lid / 16 / 4 * 4 + 3) * 16 + lid / 16 % 4 * 4 + 3) * 17 + lid % 16] = v44;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long r = lid; r < (min(16L, n - i4) * 16); r += 256) {
            if (i5 + r % 16 < 19) {
                float v69 = sums[r * 17];
                float v70 = sums[r * 17 + 1];
                float v71 = sums[r * 17 + 2];
                float v72 = sums[r * 17 + 3];
                float v73 = sums[r * 17 + 4];
                float v74 = sums[r * 17 + 5];
                float v75 = sums[r * 17 + 6];
                float v76 = sums[r * 17 + 7];
                float v77 = sums[r * 17 + 8];
                float v78 = sums[r * 17 + 9];
                float v79 = sums[r * 17 + 10];
                float v80 = sums[r * 17 + 11];
                float v81 = sums[r * 17 + 12];
                float v82 = sums[r * 17 + 13];
                float v83 = sums[r * 17 + 14];
                float v84 = sums[r * 17 + 15];
                float v85 = (v69 + v77);
                float v86 = (v70 + v78);
                float v87 = (v71 + v79);
                float v88 = (v72 + v80);
                float v89 = (v73 + v81);
                float v90 = (v74 + v82);
                float v91 = (v75 + v83);
                float v92 = (v76 + v84);
                float v93 = (v85 + v89);
                float v94 = (v86 + v90);
                float v95 = (v87 + v91);
                float v96 = (v88 + v92);
                float v97 = (v93 + v95);
                float v98 = (v94 + v96);
                float v99 = (v97 + v98);
                long i100 = i4 + r / 16;
                long i101 = i5 + r % 16;
                out0[i100 * 19 + i101] = (v99 == v99 ? v99 : (float)(as_float(0x7fc00000U)));
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
