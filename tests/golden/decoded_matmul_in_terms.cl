#pragma OPENCL FP_CONTRACT OFF

static inline void fc_copy_8(__local void *to, const __global void *from, int exists) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
                 :: "r"((uint)(size_t)to), "l"(from), "r"(exists ? 8 : 0) : "memory");
}

static inline uint2 fc_upper_halves(float4 x) {
    uint a, b;
    asm("prmt.b32 %0, %1, %2, 0x7632;" : "=r"(a) : "r"(as_uint(x.s0)), "r"(as_uint(x.s2)));
    asm("prmt.b32 %0, %1, %2, 0x7632;" : "=r"(b) : "r"(as_uint(x.s1)), "r"(as_uint(x.s3)));
    return (uint2)(a, b);
}

static inline float4 fc_lower_rest(float4 x) {
    return x - as_float4(as_uint4(x) & (uint4)(0xffff0000));
}

static inline uint fc_word(const __local uchar *p) {
    const __local ushort *halves = (const __local ushort *)p;
    return halves[0] | (uint)halves[1] << 16;
}

static inline uint fc_less_halves(uint a, uint b) {
    uint c;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(c) : "r"(a), "r"(0x3f803f80u), "r"(b));
    return c;
}

static inline uint2 fc_q4_0_whole_halves_0_0_4(const __local uchar *block, int place) {
    int v0 = (place + 2);
    uint v1 = fc_word(block + v0);
    uint v2 = (v1 >> 0 & 16843009u * (255u >> 0));
    uint v3 = (v2 & 252645135u);
    uint v4 = v3 & 0xff00ffu;
    uint v5 = v3 >> 8 & 0xff00ffu;
    return (uint2)(fc_less_halves(v4 & 0x7f007fu | 0x43004300u, 0xc308c308u), fc_less_halves(v5 & 0x7f007fu | 0x43004300u, 0xc308c308u));
}

static inline uint2 fc_q4_0_whole_halves_16_0_4(const __local uchar *block, int place) {
    int v0 = (place + 2);
    uint v1 = fc_word(block + v0);
    uint v2 = (v1 >> 4 & 16843009u * (255u >> 4));
    uint v3 = (v2 & 252645135u);
    uint v4 = v3 & 0xff00ffu;
    uint v5 = v3 >> 8 & 0xff00ffu;
    return (uint2)(fc_less_halves(v4 & 0x7f007fu | 0x43004300u, 0xc308c308u), fc_less_halves(v5 & 0x7f007fu | 0x43004300u, 0xc308c308u));
}

static inline float4 fc_floats_of_bytes(uint word) {
    uint4 bits;
    asm("prmt.b32 %0, %1, %2, 0x7440;" : "=r"(bits.x) : "r"(word), "r"(0x4b000000));
    asm("prmt.b32 %0, %1, %2, 0x7441;" : "=r"(bits.y) : "r"(word), "r"(0x4b000000));
    asm("prmt.b32 %0, %1, %2, 0x7442;" : "=r"(bits.z) : "r"(word), "r"(0x4b000000));
    asm("prmt.b32 %0, %1, %2, 0x7443;" : "=r"(bits.w) : "r"(word), "r"(0x4b000000));
    return as_float4(bits);
}

static inline float fc_float_of_half(int bits) {
    ushort half_bits = bits;
    return vload_half(0, (const half *)&half_bits);
}

static inline float2 fc_q4_0_scale_runs2_0_0_4(const __local uchar *block, int place) {
#pragma OPENCL FP_CONTRACT OFF
    int v0 = *(const __local ushort *)(block + 0);
    float v1 = fc_float_of_half(v0);
    return (float2)(v1);
}

static inline float4 fc_multiply_bf16(uint4 a, uint2 b, float4 c) {
    float p = c.s0, q = c.s1, r = c.s2, s = c.s3;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(p), "+f"(q), "+f"(r), "+f"(s)
        : "r"(a.s0), "r"(a.s1), "r"(a.s2), "r"(a.s3), "r"(b.s0), "r"(b.s1));
    return (float4)(p, q, r, s);
}

static inline uint2 fc_q4_0_whole_halves_0_2_4(const __local uchar *block, int place) {
    int v0 = (place + 2);
    uint v1 = *(const __local uint *)(block + v0);
    uint v2 = (v1 >> 0 & 16843009u * (255u >> 0));
    uint v3 = (v2 & 252645135u);
    uint v4 = v3 & 0xff00ffu;
    uint v5 = v3 >> 8 & 0xff00ffu;
    return (uint2)(fc_less_halves(v4 & 0x7f007fu | 0x43004300u, 0xc308c308u), fc_less_halves(v5 & 0x7f007fu | 0x43004300u, 0xc308c308u));
}

static inline uint2 fc_q4_0_whole_halves_16_2_4(const __local uchar *block, int place) {
    int v0 = (place + 2);
    uint v1 = *(const __local uint *)(block + v0);
    uint v2 = (v1 >> 4 & 16843009u * (255u >> 4));
    uint v3 = (v2 & 252645135u);
    uint v4 = v3 & 0xff00ffu;
    uint v5 = v3 >> 8 & 0xff00ffu;
    return (uint2)(fc_less_halves(v4 & 0x7f007fu | 0x43004300u, 0xc308c308u), fc_less_halves(v5 & 0x7f007fu | 0x43004300u, 0xc308c308u));
}

static inline float2 fc_q4_0_scale_runs2_0_2_4(const __local uchar *block, int place) {
#pragma OPENCL FP_CONTRACT OFF
    int v0 = *(const __local ushort *)(block + 0);
    float v1 = fc_float_of_half(v0);
    return (float2)(v1);
}

__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global const uint *restrict in1,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local uint right[4608] __attribute__((aligned(16)));
    __local uint left[15360] __attribute__((aligned(16)));
    __local float sums[6272] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long t = gid; t < ((n + 15) / 16 * 2); t += gsize) {
        long i0 = (n + 15) / 16;
        long i1 = t / 16;
        long i2 = t % 16;
        long i3 = min(8L, i0 - i1 * 8);
        long i4 = (i1 * 8 + i2 % i3) * 16;
        long i5 = i2 / i3 * 32;
        int i6 = (int)(lid / 32 % 4 * 256);
        int i7 = (int)(min(256, i6 + 256));
        int i8 = (int)(lid / 32 * 1152);
        int i9 = (int)(lid % 32);
        long i10 = (min(63L, i5 + lid / 32 / 4 * 32 + i9 * 2 / 18) * 256 + i6) / 32 * 18 / 4 + i9 * 2 % 18;
        int i11 = (int)(lid % 32 + 32);
        long i12 = (min(63L, i5 + lid / 32 / 4 * 32 + i11 * 2 / 18) * 256 + i6) / 32 * 18 / 4 + i11 * 2 % 18;
        int i13 = (int)(lid % 32 + 64);
        long i14 = (min(63L, i5 + lid / 32 / 4 * 32 + i13 * 2 / 18) * 256 + i6) / 32 * 18 / 4 + i13 * 2 % 18;
        int i15 = (int)(lid % 32 + 96);
        long i16 = (min(63L, i5 + lid / 32 / 4 * 32 + i15 * 2 / 18) * 256 + i6) / 32 * 18 / 4 + i15 * 2 % 18;
        int i17 = (int)(lid % 32 + 128);
        long i18 = (min(63L, i5 + lid / 32 / 4 * 32 + i17 * 2 / 18) * 256 + i6) / 32 * 18 / 4 + i17 * 2 % 18;
        int i19 = (int)(lid % 32 + 160);
        long i20 = (min(63L, i5 + lid / 32 / 4 * 32 + i19 * 2 / 18) * 256 + i6) / 32 * 18 / 4 + i19 * 2 % 18;
        int i21 = (int)(lid % 32 + 192);
        long i22 = (min(63L, i5 + lid / 32 / 4 * 32 + i21 * 2 / 18) * 256 + i6) / 32 * 18 / 4 + i21 * 2 % 18;
        int i23 = (int)(lid % 32 + 224);
        long i24 = (min(63L, i5 + lid / 32 / 4 * 32 + i23 * 2 / 18) * 256 + i6) / 32 * 18 / 4 + i23 * 2 % 18;
        int i25 = (int)(lid % 32 + 256);
        long i26 = (min(63L, i5 + lid / 32 / 4 * 32 + i25 * 2 / 18) * 256 + i6) / 32 * 18 / 4 + i25 * 2 % 18;
        if (i6 < i7) {
            fc_copy_8((__local uint *)right + (i8 + i6 / 128 % 2 * 576 + i9 * 2), in1 + (i10), 1);
            fc_copy_8((__local uint *)right + (i8 + i6 / 128 % 2 * 576 + i11 * 2), in1 + (i12), 1);
            fc_copy_8((__local uint *)right + (i8 + i6 / 128 % 2 * 576 + i13 * 2), in1 + (i14), 1);
            fc_copy_8((__local uint *)right + (i8 + i6 / 128 % 2 * 576 + i15 * 2), in1 + (i16), 1);
            fc_copy_8((__local uint *)right + (i8 + i6 / 128 % 2 * 576 + i17 * 2), in1 + (i18), 1);
            fc_copy_8((__local uint *)right + (i8 + i6 / 128 % 2 * 576 + i19 * 2), in1 + (i20), 1);
            fc_copy_8((__local uint *)right + (i8 + i6 / 128 % 2 * 576 + i21 * 2), in1 + (i22), 1);
            fc_copy_8((__local uint *)right + (i8 + i6 / 128 % 2 * 576 + i23 * 2), in1 + (i24), 1);
            fc_copy_8((__local uint *)right + (i8 + i6 / 128 % 2 * 576 + i25 * 2), in1 + (i26), 1);
            i10 = i10 + 18;
            i12 = i12 + 18;
            i14 = i14 + 18;
            i16 = i16 + 18;
            i18 = i18 + 18;
            i20 = i20 + 18;
            i22 = i22 + 18;
            i24 = i24 + 18;
            i26 = i26 + 18;
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        long i27 = min(n - 1, i4);
        long i28 = i27 * 256;
        int i29 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i30 = min(n - 1, i4 + 1);
        long i31 = i30 * 256;
        int i32 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i33 = min(n - 1, i4 + 2);
        long i34 = i33 * 256;
        int i35 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i36 = min(n - 1, i4 + 3);
        long i37 = i36 * 256;
        int i38 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i39 = min(n - 1, i4 + 4);
        long i40 = i39 * 256;
        int i41 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i42 = min(n - 1, i4 + 5);
        long i43 = i42 * 256;
        int i44 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i45 = min(n - 1, i4 + 6);
        long i46 = i45 * 256;
        int i47 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i48 = min(n - 1, i4 + 7);
        long i49 = i48 * 256;
        int i50 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i51 = min(n - 1, i4 + 8);
        long i52 = i51 * 256;
        int i53 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i54 = min(n - 1, i4 + 9);
        long i55 = i54 * 256;
        int i56 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i57 = min(n - 1, i4 + 10);
        long i58 = i57 * 256;
        int i59 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i60 = min(n - 1, i4 + 11);
        long i61 = i60 * 256;
        int i62 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i63 = min(n - 1, i4 + 12);
        long i64 = i63 * 256;
        int i65 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i66 = min(n - 1, i4 + 13);
        long i67 = i66 * 256;
        int i68 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i69 = min(n - 1, i4 + 14);
        long i70 = i69 * 256;
        int i71 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        long i72 = min(n - 1, i4 + 15);
        long i73 = i72 * 256;
        int i74 = (int)((lid / 32 / 4 * 32 + lid % 32) * 4);
        float4 v75 = *(const __global float4 *)(in0 + (i28 + (min(i6, 128) + i29)));
        float4 v76 = *(const __global float4 *)(in0 + (i31 + (min(i6, 128) + i32)));
        float4 v77 = *(const __global float4 *)(in0 + (i34 + (min(i6, 128) + i35)));
        float4 v78 = *(const __global float4 *)(in0 + (i37 + (min(i6, 128) + i38)));
        float4 v79 = *(const __global float4 *)(in0 + (i40 + (min(i6, 128) + i41)));
        float4 v80 = *(const __global float4 *)(in0 + (i43 + (min(i6, 128) + i44)));
        float4 v81 = *(const __global float4 *)(in0 + (i46 + (min(i6, 128) + i47)));
        float4 v82 = *(const __global float4 *)(in0 + (i49 + (min(i6, 128) + i50)));
        float4 v83 = *(const __global float4 *)(in0 + (i52 + (min(i6, 128) + i53)));
        float4 v84 = *(const __global float4 *)(in0 + (i55 + (min(i6, 128) + i56)));
        float4 v85 = *(const __global float4 *)(in0 + (i58 + (min(i6, 128) + i59)));
        float4 v86 = *(const __global float4 *)(in0 + (i61 + (min(i6, 128) + i62)));
        float4 v87 = *(const __global float4 *)(in0 + (i64 + (min(i6, 128) + i65)));
        float4 v88 = *(const __global float4 *)(in0 + (i67 + (min(i6, 128) + i68)));
        float4 v89 = *(const __global float4 *)(in0 + (i70 + (min(i6, 128) + i71)));
        float4 v90 = *(const __global float4 *)(in0 + (i73 + (min(i6, 128) + i74)));
        #pragma unroll 1
        for (long p = 0; p < 1; p++) {
            float4 v91 = (float4)(-0x0.0p+0f);
            float4 v92 = (float4)(-0x0.0p+0f);
            float4 v93 = (float4)(-0x0.0p+0f);
            float4 v94 = (float4)(-0x0.0p+0f);
            float4 v95 = (float4)(-0x0.0p+0f);
            float4 v96 = (float4)(-0x0.0p+0f);
            float4 v97 = (float4)(-0x0.0p+0f);
            float4 v98 = (float4)(-0x0.0p+0f);
            float4 v99 = (float4)(-0x0.0p+0f);
            float4 v100 = (float4)(-0x0.0p+0f);
            float4 v101 = (float4)(-0x0.0p+0f);
            float4 v102 = (float4)(-0x0.0p+0f);
            int i103 = (int)(i6 + p * 256);
            #pragma unroll 1
            for (long k = i103; k < min(i7, i103 + 256); k += 128) {
                asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
                uint2 v104 = fc_upper_halves(v75);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + (i29 / 32 * 16 + i29 % 16 / 4 * 4 + i29 % 32 / 16 * 2)) = v104;
                float4 v105 = fc_lower_rest(v75);
                uint2 v106 = fc_upper_halves(v105);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + (i29 / 32 * 16 + i29 % 16 / 4 * 4 + i29 % 32 / 16 * 2) + 80) = v106;
                float4 v107 = fc_lower_rest(v105);
                uint2 v108 = fc_upper_halves(v107);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + (i29 / 32 * 16 + i29 % 16 / 4 * 4 + i29 % 32 / 16 * 2) + 160) = v108;
                uint2 v109 = fc_upper_halves(v76);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 240 + (i32 / 32 * 16 + i32 % 16 / 4 * 4 + i32 % 32 / 16 * 2)) = v109;
                float4 v110 = fc_lower_rest(v76);
                uint2 v111 = fc_upper_halves(v110);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 240 + (i32 / 32 * 16 + i32 % 16 / 4 * 4 + i32 % 32 / 16 * 2) + 80) = v111;
                float4 v112 = fc_lower_rest(v110);
                uint2 v113 = fc_upper_halves(v112);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 240 + (i32 / 32 * 16 + i32 % 16 / 4 * 4 + i32 % 32 / 16 * 2) + 160) = v113;
                uint2 v114 = fc_upper_halves(v77);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 480 + (i35 / 32 * 16 + i35 % 16 / 4 * 4 + i35 % 32 / 16 * 2)) = v114;
                float4 v115 = fc_lower_rest(v77);
                uint2 v116 = fc_upper_halves(v115);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 480 + (i35 / 32 * 16 + i35 % 16 / 4 * 4 + i35 % 32 / 16 * 2) + 80) = v116;
                float4 v117 = fc_lower_rest(v115);
                uint2 v118 = fc_upper_halves(v117);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 480 + (i35 / 32 * 16 + i35 % 16 / 4 * 4 + i35 % 32 / 16 * 2) + 160) = v118;
                uint2 v119 = fc_upper_halves(v78);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 720 + (i38 / 32 * 16 + i38 % 16 / 4 * 4 + i38 % 32 / 16 * 2)) = v119;
                float4 v120 = fc_lower_rest(v78);
                uint2 v121 = fc_upper_halves(v120);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 720 + (i38 / 32 * 16 + i38 % 16 / 4 * 4 + i38 % 32 / 16 * 2) + 80) = v121;
                float4 v122 = fc_lower_rest(v120);
                uint2 v123 = fc_upper_halves(v122);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 720 + (i38 / 32 * 16 + i38 % 16 / 4 * 4 + i38 % 32 / 16 * 2) + 160) = v123;
                uint2 v124 = fc_upper_halves(v79);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 960 + (i41 / 32 * 16 + i41 % 16 / 4 * 4 + i41 % 32 / 16 * 2)) = v124;
                float4 v125 = fc_lower_rest(v79);
                uint2 v126 = fc_upper_halves(v125);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 960 + (i41 / 32 * 16 + i41 % 16 / 4 * 4 + i41 % 32 / 16 * 2) + 80) = v126;
                float4 v127 = fc_lower_rest(v125);
                uint2 v128 = fc_upper_halves(v127);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 960 + (i41 / 32 * 16 + i41 % 16 / 4 * 4 + i41 % 32 / 16 * 2) + 160) = v128;
                uint2 v129 = fc_upper_halves(v80);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 1200 + (i44 / 32 * 16 + i44 % 16 / 4 * 4 + i44 % 32 / 16 * 2)) = v129;
                float4 v130 = fc_lower_rest(v80);
                uint2 v131 = fc_upper_halves(v130);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 1200 + (i44 / 32 * 16 + i44 % 16 / 4 * 4 + i44 % 32 / 16 * 2) + 80) = v131;
                float4 v132 = fc_lower_rest(v130);
                uint2 v133 = fc_upper_halves(v132);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 1200 + (i44 / 32 * 16 + i44 % 16 / 4 * 4 + i44 % 32 / 16 * 2) + 160) = v133;
                uint2 v134 = fc_upper_halves(v81);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 1440 + (i47 / 32 * 16 + i47 % 16 / 4 * 4 + i47 % 32 / 16 * 2)) = v134;
                float4 v135 = fc_lower_rest(v81);
                uint2 v136 = fc_upper_halves(v135);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 1440 + (i47 / 32 * 16 + i47 % 16 / 4 * 4 + i47 % 32 / 16 * 2) + 80) = v136;
                float4 v137 = fc_lower_rest(v135);
                uint2 v138 = fc_upper_halves(v137);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 1440 + (i47 / 32 * 16 + i47 % 16 / 4 * 4 + i47 % 32 / 16 * 2) + 160) = v138;
                uint2 v139 = fc_upper_halves(v82);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 1680 + (i50 / 32 * 16 + i50 % 16 / 4 * 4 + i50 % 32 / 16 * 2)) = v139;
                float4 v140 = fc_lower_rest(v82);
                uint2 v141 = fc_upper_halves(v140);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 1680 + (i50 / 32 * 16 + i50 % 16 / 4 * 4 + i50 % 32 / 16 * 2) + 80) = v141;
                float4 v142 = fc_lower_rest(v140);
                uint2 v143 = fc_upper_halves(v142);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 1680 + (i50 / 32 * 16 + i50 % 16 / 4 * 4 + i50 % 32 / 16 * 2) + 160) = v143;
                uint2 v144 = fc_upper_halves(v83);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 1920 + (i53 / 32 * 16 + i53 % 16 / 4 * 4 + i53 % 32 / 16 * 2)) = v144;
                float4 v145 = fc_lower_rest(v83);
                uint2 v146 = fc_upper_halves(v145);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 1920 + (i53 / 32 * 16 + i53 % 16 / 4 * 4 + i53 % 32 / 16 * 2) + 80) = v146;
                float4 v147 = fc_lower_rest(v145);
                uint2 v148 = fc_upper_halves(v147);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 1920 + (i53 / 32 * 16 + i53 % 16 / 4 * 4 + i53 % 32 / 16 * 2) + 160) = v148;
                uint2 v149 = fc_upper_halves(v84);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 2160 + (i56 / 32 * 16 + i56 % 16 / 4 * 4 + i56 % 32 / 16 * 2)) = v149;
                float4 v150 = fc_lower_rest(v84);
                uint2 v151 = fc_upper_halves(v150);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 2160 + (i56 / 32 * 16 + i56 % 16 / 4 * 4 + i56 % 32 / 16 * 2) + 80) = v151;
                float4 v152 = fc_lower_rest(v150);
                uint2 v153 = fc_upper_halves(v152);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 2160 + (i56 / 32 * 16 + i56 % 16 / 4 * 4 + i56 % 32 / 16 * 2) + 160) = v153;
                uint2 v154 = fc_upper_halves(v85);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 2400 + (i59 / 32 * 16 + i59 % 16 / 4 * 4 + i59 % 32 / 16 * 2)) = v154;
                float4 v155 = fc_lower_rest(v85);
                uint2 v156 = fc_upper_halves(v155);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 2400 + (i59 / 32 * 16 + i59 % 16 / 4 * 4 + i59 % 32 / 16 * 2) + 80) = v156;
                float4 v157 = fc_lower_rest(v155);
                uint2 v158 = fc_upper_halves(v157);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 2400 + (i59 / 32 * 16 + i59 % 16 / 4 * 4 + i59 % 32 / 16 * 2) + 160) = v158;
                uint2 v159 = fc_upper_halves(v86);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 2640 + (i62 / 32 * 16 + i62 % 16 / 4 * 4 + i62 % 32 / 16 * 2)) = v159;
                float4 v160 = fc_lower_rest(v86);
                uint2 v161 = fc_upper_halves(v160);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 2640 + (i62 / 32 * 16 + i62 % 16 / 4 * 4 + i62 % 32 / 16 * 2) + 80) = v161;
                float4 v162 = fc_lower_rest(v160);
                uint2 v163 = fc_upper_halves(v162);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 2640 + (i62 / 32 * 16 + i62 % 16 / 4 * 4 + i62 % 32 / 16 * 2) + 160) = v163;
                uint2 v164 = fc_upper_halves(v87);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 2880 + (i65 / 32 * 16 + i65 % 16 / 4 * 4 + i65 % 32 / 16 * 2)) = v164;
                float4 v165 = fc_lower_rest(v87);
                uint2 v166 = fc_upper_halves(v165);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 2880 + (i65 / 32 * 16 + i65 % 16 / 4 * 4 + i65 % 32 / 16 * 2) + 80) = v166;
                float4 v167 = fc_lower_rest(v165);
                uint2 v168 = fc_upper_halves(v167);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 2880 + (i65 / 32 * 16 + i65 % 16 / 4 * 4 + i65 % 32 / 16 * 2) + 160) = v168;
                uint2 v169 = fc_upper_halves(v88);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 3120 + (i68 / 32 * 16 + i68 % 16 / 4 * 4 + i68 % 32 / 16 * 2)) = v169;
                float4 v170 = fc_lower_rest(v88);
                uint2 v171 = fc_upper_halves(v170);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 3120 + (i68 / 32 * 16 + i68 % 16 / 4 * 4 + i68 % 32 / 16 * 2) + 80) = v171;
                float4 v172 = fc_lower_rest(v170);
                uint2 v173 = fc_upper_halves(v172);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 3120 + (i68 / 32 * 16 + i68 % 16 / 4 * 4 + i68 % 32 / 16 * 2) + 160) = v173;
                uint2 v174 = fc_upper_halves(v89);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 3360 + (i71 / 32 * 16 + i71 % 16 / 4 * 4 + i71 % 32 / 16 * 2)) = v174;
                float4 v175 = fc_lower_rest(v89);
                uint2 v176 = fc_upper_halves(v175);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 3360 + (i71 / 32 * 16 + i71 % 16 / 4 * 4 + i71 % 32 / 16 * 2) + 80) = v176;
                float4 v177 = fc_lower_rest(v175);
                uint2 v178 = fc_upper_halves(v177);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 3360 + (i71 / 32 * 16 + i71 % 16 / 4 * 4 + i71 % 32 / 16 * 2) + 160) = v178;
                uint2 v179 = fc_upper_halves(v90);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 3600 + (i74 / 32 * 16 + i74 % 16 / 4 * 4 + i74 % 32 / 16 * 2)) = v179;
                float4 v180 = fc_lower_rest(v90);
                uint2 v181 = fc_upper_halves(v180);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 3600 + (i74 / 32 * 16 + i74 % 16 / 4 * 4 + i74 % 32 / 16 * 2) + 80) = v181;
                float4 v182 = fc_lower_rest(v180);
                uint2 v183 = fc_upper_halves(v182);
                *(__local uint2 *)(left + lid / 32 % 4 * 3840 + 3600 + (i74 / 32 * 16 + i74 % 16 / 4 * 4 + i74 % 32 / 16 * 2) + 160) = v183;
                asm volatile("cp.async.wait_group 0;" ::: "memory");
                asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
                if (k + 128 < i7) {
                    fc_copy_8((__local uint *)right + (i8 + (k + 128) / 128 % 2 * 576 + i9 * 2), in1 + (i10), 1);
                    fc_copy_8((__local uint *)right + (i8 + (k + 128) / 128 % 2 * 576 + i11 * 2), in1 + (i12), 1);
                    fc_copy_8((__local uint *)right + (i8 + (k + 128) / 128 % 2 * 576 + i13 * 2), in1 + (i14), 1);
                    fc_copy_8((__local uint *)right + (i8 + (k + 128) / 128 % 2 * 576 + i15 * 2), in1 + (i16), 1);
                    fc_copy_8((__local uint *)right + (i8 + (k + 128) / 128 % 2 * 576 + i17 * 2), in1 + (i18), 1);
                    fc_copy_8((__local uint *)right + (i8 + (k + 128) / 128 % 2 * 576 + i19 * 2), in1 + (i20), 1);
                    fc_copy_8((__local uint *)right + (i8 + (k + 128) / 128 % 2 * 576 + i21 * 2), in1 + (i22), 1);
                    fc_copy_8((__local uint *)right + (i8 + (k + 128) / 128 % 2 * 576 + i23 * 2), in1 + (i24), 1);
                    fc_copy_8((__local uint *)right + (i8 + (k + 128) / 128 % 2 * 576 + i25 * 2), in1 + (i26), 1);
                    i10 = i10 + 18;
                    i12 = i12 + 18;
                    i14 = i14 + 18;
                    i16 = i16 + 18;
                    i18 = i18 + 18;
                    i20 = i20 + 18;
                    i22 = i22 + 18;
                    i24 = i24 + 18;
                    i26 = i26 + 18;
                }
                asm volatile("cp.async.commit_group;" ::: "memory");
                if (k + 128 < i7) {
                    float4 v184 = *(const __global float4 *)(in0 + (i28 + (k + 128 + i29)));
                    float4 v185 = *(const __global float4 *)(in0 + (i31 + (k + 128 + i32)));
                    float4 v186 = *(const __global float4 *)(in0 + (i34 + (k + 128 + i35)));
                    float4 v187 = *(const __global float4 *)(in0 + (i37 + (k + 128 + i38)));
                    float4 v188 = *(const __global float4 *)(in0 + (i40 + (k + 128 + i41)));
                    float4 v189 = *(const __global float4 *)(in0 + (i43 + (k + 128 + i44)));
                    float4 v190 = *(const __global float4 *)(in0 + (i46 + (k + 128 + i47)));
                    float4 v191 = *(const __global float4 *)(in0 + (i49 + (k + 128 + i50)));
                    float4 v192 = *(const __global float4 *)(in0 + (i52 + (k + 128 + i53)));
                    float4 v193 = *(const __global float4 *)(in0 + (i55 + (k + 128 + i56)));
                    float4 v194 = *(const __global float4 *)(in0 + (i58 + (k + 128 + i59)));
                    float4 v195 = *(const __global float4 *)(in0 + (i61 + (k + 128 + i62)));
                    float4 v196 = *(const __global float4 *)(in0 + (i64 + (k + 128 + i65)));
                    float4 v197 = *(const __global float4 *)(in0 + (i67 + (k + 128 + i68)));
                    float4 v198 = *(const __global float4 *)(in0 + (i70 + (k + 128 + i71)));
                    float4 v199 = *(const __global float4 *)(in0 + (i73 + (k + 128 + i74)));
                    v75 = v184;
                    v76 = v185;
                    v77 = v186;
                    v78 = v187;
                    v79 = v188;
                    v80 = v189;
                    v81 = v190;
                    v82 = v191;
                    v83 = v192;
                    v84 = v193;
                    v85 = v194;
                    v86 = v195;
                    v87 = v196;
                    v88 = v197;
                    v89 = v198;
                    v90 = v199;
                }
                int i200 = (int)(i8 * 4 + k / 128 % 2 * 2304);
                int i201 = (int)(lid / 32 % 4 * 3840);
                #pragma unroll
                for (long b = 0; b < 4; b += 2) {
                    uint2 v202 = fc_q4_0_whole_halves_0_0_4((const __local uchar *)right + (i200 + lid % 32 / 4 * 72 + b * 18), (int)(lid % 4 * 4));
                    uint2 v203 = fc_q4_0_whole_halves_0_0_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 8) * 72 + b * 18), (int)(lid % 4 * 4));
                    uint4 v204 = (uint4)(v202.s0, v203.s0, v202.s1, v203.s1);
                    uint2 v205 = fc_q4_0_whole_halves_16_0_4((const __local uchar *)right + (i200 + lid % 32 / 4 * 72 + b * 18), (int)(lid % 4 * 4));
                    uint2 v206 = fc_q4_0_whole_halves_16_0_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 8) * 72 + b * 18), (int)(lid % 4 * 4));
                    uint4 v207 = (uint4)(v205.s0, v206.s0, v205.s1, v206.s1);
                    float2 v208 = fc_q4_0_scale_runs2_0_0_4((const __local uchar *)right + (i200 + lid % 32 / 4 * 72 + b * 18), (int)(0));
                    float2 v209 = fc_q4_0_scale_runs2_0_0_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 8) * 72 + b * 18), (int)(0));
                    float4 v210 = (float4)(v208.s0, v208.s1, v209.s0, v209.s1);
                    uint2 v211 = fc_q4_0_whole_halves_0_0_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 16) * 72 + b * 18), (int)(lid % 4 * 4));
                    uint2 v212 = fc_q4_0_whole_halves_0_0_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 24) * 72 + b * 18), (int)(lid % 4 * 4));
                    uint4 v213 = (uint4)(v211.s0, v212.s0, v211.s1, v212.s1);
                    uint2 v214 = fc_q4_0_whole_halves_16_0_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 16) * 72 + b * 18), (int)(lid % 4 * 4));
                    uint2 v215 = fc_q4_0_whole_halves_16_0_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 24) * 72 + b * 18), (int)(lid % 4 * 4));
                    uint4 v216 = (uint4)(v214.s0, v215.s0, v214.s1, v215.s1);
                    float2 v217 = fc_q4_0_scale_runs2_0_0_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 16) * 72 + b * 18), (int)(0));
                    float2 v218 = fc_q4_0_scale_runs2_0_0_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 24) * 72 + b * 18), (int)(0));
                    float4 v219 = (float4)(v217.s0, v217.s1, v218.s0, v218.s1);
                    uint4 v220 = *(__local uint4 *)(left + i201 + lid % 32 / 4 * 80 + b * 16 + lid % 4 * 4);
                    float4 v221 = (float4)(0x0.0p+0f);
                    float4 v222 = fc_multiply_bf16(v204, v220.lo, v221);
                    float4 v223 = fc_multiply_bf16(v207, v220.hi, v222);
                    float4 v224 = fma(v223, v210, v91);
                    v91 = v224;
                    float4 v225 = (float4)(0x0.0p+0f);
                    float4 v226 = fc_multiply_bf16(v213, v220.lo, v225);
                    float4 v227 = fc_multiply_bf16(v216, v220.hi, v226);
                    float4 v228 = fma(v227, v219, v97);
                    v97 = v228;
                    uint4 v229 = *(__local uint4 *)(left + i201 + (lid % 32 / 4 + 8) * 80 + b * 16 + lid % 4 * 4);
                    float4 v230 = (float4)(0x0.0p+0f);
                    float4 v231 = fc_multiply_bf16(v204, v229.lo, v230);
                    float4 v232 = fc_multiply_bf16(v207, v229.hi, v231);
                    float4 v233 = fma(v232, v210, v92);
                    v92 = v233;
                    float4 v234 = (float4)(0x0.0p+0f);
                    float4 v235 = fc_multiply_bf16(v213, v229.lo, v234);
                    float4 v236 = fc_multiply_bf16(v216, v229.hi, v235);
                    float4 v237 = fma(v236, v219, v98);
                    v98 = v237;
                    uint4 v238 = *(__local uint4 *)(left + i201 + (lid % 32 / 4 + 16) * 80 + b * 16 + lid % 4 * 4);
                    float4 v239 = (float4)(0x0.0p+0f);
                    float4 v240 = fc_multiply_bf16(v204, v238.lo, v239);
                    float4 v241 = fc_multiply_bf16(v207, v238.hi, v240);
                    float4 v242 = fma(v241, v210, v93);
                    v93 = v242;
                    float4 v243 = (float4)(0x0.0p+0f);
                    float4 v244 = fc_multiply_bf16(v213, v238.lo, v243);
                    float4 v245 = fc_multiply_bf16(v216, v238.hi, v244);
                    float4 v246 = fma(v245, v219, v99);
                    v99 = v246;
                    uint4 v247 = *(__local uint4 *)(left + i201 + (lid % 32 / 4 + 24) * 80 + b * 16 + lid % 4 * 4);
                    float4 v248 = (float4)(0x0.0p+0f);
                    float4 v249 = fc_multiply_bf16(v204, v247.lo, v248);
                    float4 v250 = fc_multiply_bf16(v207, v247.hi, v249);
                    float4 v251 = fma(v250, v210, v94);
                    v94 = v251;
                    float4 v252 = (float4)(0x0.0p+0f);
                    float4 v253 = fc_multiply_bf16(v213, v247.lo, v252);
                    float4 v254 = fc_multiply_bf16(v216, v247.hi, v253);
                    float4 v255 = fma(v254, v219, v100);
                    v100 = v255;
                    uint4 v256 = *(__local uint4 *)(left + i201 + (lid % 32 / 4 + 32) * 80 + b * 16 + lid % 4 * 4);
                    float4 v257 = (float4)(0x0.0p+0f);
                    float4 v258 = fc_multiply_bf16(v204, v256.lo, v257);
                    float4 v259 = fc_multiply_bf16(v207, v256.hi, v258);
                    float4 v260 = fma(v259, v210, v95);
                    v95 = v260;
                    float4 v261 = (float4)(0x0.0p+0f);
                    float4 v262 = fc_multiply_bf16(v213, v256.lo, v261);
                    float4 v263 = fc_multiply_bf16(v216, v256.hi, v262);
                    float4 v264 = fma(v263, v219, v101);
                    v101 = v264;
                    uint4 v265 = *(__local uint4 *)(left + i201 + (lid % 32 / 4 + 40) * 80 + b * 16 + lid % 4 * 4);
                    float4 v266 = (float4)(0x0.0p+0f);
                    float4 v267 = fc_multiply_bf16(v204, v265.lo, v266);
                    float4 v268 = fc_multiply_bf16(v207, v265.hi, v267);
                    float4 v269 = fma(v268, v210, v96);
                    v96 = v269;
                    float4 v270 = (float4)(0x0.0p+0f);
                    float4 v271 = fc_multiply_bf16(v213, v265.lo, v270);
                    float4 v272 = fc_multiply_bf16(v216, v265.hi, v271);
                    float4 v273 = fma(v272, v219, v102);
                    v102 = v273;
                    uint2 v274 = fc_q4_0_whole_halves_0_2_4((const __local uchar *)right + (i200 + lid % 32 / 4 * 72 + b * 18 + 18), (int)(lid % 4 * 4));
                    uint2 v275 = fc_q4_0_whole_halves_0_2_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 8) * 72 + b * 18 + 18), (int)(lid % 4 * 4));
                    uint4 v276 = (uint4)(v274.s0, v275.s0, v274.s1, v275.s1);
                    uint2 v277 = fc_q4_0_whole_halves_16_2_4((const __local uchar *)right + (i200 + lid % 32 / 4 * 72 + b * 18 + 18), (int)(lid % 4 * 4));
                    uint2 v278 = fc_q4_0_whole_halves_16_2_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 8) * 72 + b * 18 + 18), (int)(lid % 4 * 4));
                    uint4 v279 = (uint4)(v277.s0, v278.s0, v277.s1, v278.s1);
                    float2 v280 = fc_q4_0_scale_runs2_0_2_4((const __local uchar *)right + (i200 + lid % 32 / 4 * 72 + b * 18 + 18), (int)(0));
                    float2 v281 = fc_q4_0_scale_runs2_0_2_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 8) * 72 + b * 18 + 18), (int)(0));
                    float4 v282 = (float4)(v280.s0, v280.s1, v281.s0, v281.s1);
                    uint2 v283 = fc_q4_0_whole_halves_0_2_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 16) * 72 + b * 18 + 18), (int)(lid % 4 * 4));
                    uint2 v284 = fc_q4_0_whole_halves_0_2_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 24) * 72 + b * 18 + 18), (int)(lid % 4 * 4));
                    uint4 v285 = (uint4)(v283.s0, v284.s0, v283.s1, v284.s1);
                    uint2 v286 = fc_q4_0_whole_halves_16_2_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 16) * 72 + b * 18 + 18), (int)(lid % 4 * 4));
                    uint2 v287 = fc_q4_0_whole_halves_16_2_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 24) * 72 + b * 18 + 18), (int)(lid % 4 * 4));
                    uint4 v288 = (uint4)(v286.s0, v287.s0, v286.s1, v287.s1);
                    float2 v289 = fc_q4_0_scale_runs2_0_2_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 16) * 72 + b * 18 + 18), (int)(0));
                    float2 v290 = fc_q4_0_scale_runs2_0_2_4((const __local uchar *)right + (i200 + (lid % 32 / 4 + 24) * 72 + b * 18 + 18), (int)(0));
                    float4 v291 = (float4)(v289.s0, v289.s1, v290.s0, v290.s1);
                    uint4 v292 = *(__local uint4 *)(left + i201 + lid % 32 / 4 * 80 + (b + 1) * 16 + lid % 4 * 4);
                    float4 v293 = (float4)(0x0.0p+0f);
                    float4 v294 = fc_multiply_bf16(v276, v292.lo, v293);
                    float4 v295 = fc_multiply_bf16(v279, v292.hi, v294);
                    float4 v296 = fma(v295, v282, v91);
                    v91 = v296;
                    float4 v297 = (float4)(0x0.0p+0f);
                    float4 v298 = fc_multiply_bf16(v285, v292.lo, v297);
                    float4 v299 = fc_multiply_bf16(v288, v292.hi, v298);
                    float4 v300 = fma(v299, v291, v97);
                    v97 = v300;
                    uint4 v301 = *(__local uint4 *)(left + i201 + (lid % 32 / 4 + 8) * 80 + (b + 1) * 16 + lid % 4 * 4);
                    float4 v302 = (float4)(0x0.0p+0f);
                    float4 v303 = fc_multiply_bf16(v276, v301.lo, v302);
                    float4 v304 = fc_multiply_bf16(v279, v301.hi, v303);
                    float4 v305 = fma(v304, v282, v92);
                    v92 = v305;
                    float4 v306 = (float4)(0x0.0p+0f);
                    float4 v307 = fc_multiply_bf16(v285, v301.lo, v306);
                    float4 v308 = fc_multiply_bf16(v288, v301.hi, v307);
                    float4 v309 = fma(v308, v291, v98);
                    v98 = v309;
                    uint4 v310 = *(__local uint4 *)(left + i201 + (lid % 32 / 4 + 16) * 80 + (b + 1) * 16 + lid % 4 * 4);
                    float4 v311 = (float4)(0x0.0p+0f);
                    float4 v312 = fc_multiply_bf16(v276, v310.lo, v311);
                    float4 v313 = fc_multiply_bf16(v279, v310.hi, v312);
                    float4 v314 = fma(v313, v282, v93);
                    v93 = v314;
                    float4 v315 = (float4)(0x0.0p+0f);
                    float4 v316 = fc_multiply_bf16(v285, v310.lo, v315);
                    float4 v317 = fc_multiply_bf16(v288, v310.hi, v316);
                    float4 v318 = fma(v317, v291, v99);
                    v99 = v318;
                    uint4 v319 = *(__local uint4 *)(left + i201 + (lid % 32 / 4 + 24) * 80 + (b + 1) * 16 + lid % 4 * 4);
                    float4 v320 = (float4)(0x0.0p+0f);
                    float4 v321 = fc_multiply_bf16(v276, v319.lo, v320);
                    float4 v322 = fc_multiply_bf16(v279, v319.hi, v321);
                    float4 v323 = fma(v322, v282, v94);
                    v94 = v323;
                    float4 v324 = (float4)(0x0.0p+0f);
                    float4 v325 = fc_multiply_bf16(v285, v319.lo, v324);
                    float4 v326 = fc_multiply_bf16(v288, v319.hi, v325);
                    float4 v327 = fma(v326, v291, v100);
                    v100 = v327;
                    uint4 v328 = *(__local uint4 *)(left + i201 + (lid % 32 / 4 + 32) * 80 + (b + 1) * 16 + lid % 4 * 4);
                    float4 v329 = (float4)(0x0.0p+0f);
                    float4 v330 = fc_multiply_bf16(v276, v328.lo, v329);
                    float4 v331 = fc_multiply_bf16(v279, v328.hi, v330);
                    float4 v332 = fma(v331, v282, v95);
                    v95 = v332;
                    float4 v333 = (float4)(0x0.0p+0f);
                    float4 v334 = fc_multiply_bf16(v285, v328.lo, v333);
                    float4 v335 = fc_multiply_bf16(v288, v328.hi, v334);
                    float4 v336 = fma(v335, v291, v101);
                    v101 = v336;
                    uint4 v337 = *(__local uint4 *)(left + i201 + (lid % 32 / 4 + 40) * 80 + (b + 1) * 16 + lid % 4 * 4);
                    float4 v338 = (float4)(0x0.0p+0f);
                    float4 v339 = fc_multiply_bf16(v276, v337.lo, v338);
                    float4 v340 = fc_multiply_bf16(v279, v337.hi, v339);
                    float4 v341 = fma(v340, v282, v96);
                    v96 = v341;
                    float4 v342 = (float4)(0x0.0p+0f);
                    float4 v343 = fc_multiply_bf16(v285, v337.lo, v342);
                    float4 v344 = fc_multiply_bf16(v288, v337.hi, v343);
                    float4 v345 = fma(v344, v291, v102);
                    v102 = v345;
                }
            }
            int i346 = (int)(((lid / 32 % 4 + p) * 32 + lid / 32 / 4 * 32 + lid % 32 / 4) * 49 + lid % 4 * 2);
            float v347 = (float)(v91.s0);
            sums[i346] = v347;
            float v348 = (float)(v91.s1);
            sums[i346 + 1] = v348;
            float v349 = (float)(v91.s2);
            sums[i346 + 392] = v349;
            float v350 = (float)(v91.s3);
            sums[i346 + 393] = v350;
            float v351 = (float)(v92.s0);
            sums[i346 + 8] = v351;
            float v352 = (float)(v92.s1);
            sums[i346 + 9] = v352;
            float v353 = (float)(v92.s2);
            sums[i346 + 400] = v353;
            float v354 = (float)(v92.s3);
            sums[i346 + 401] = v354;
            float v355 = (float)(v93.s0);
            sums[i346 + 16] = v355;
            float v356 = (float)(v93.s1);
            sums[i346 + 17] = v356;
            float v357 = (float)(v93.s2);
            sums[i346 + 408] = v357;
            float v358 = (float)(v93.s3);
            sums[i346 + 409] = v358;
            float v359 = (float)(v94.s0);
            sums[i346 + 24] = v359;
            float v360 = (float)(v94.s1);
            sums[i346 + 25] = v360;
            float v361 = (float)(v94.s2);
            sums[i346 + 416] = v361;
            float v362 = (float)(v94.s3);
            sums[i346 + 417] = v362;
            float v363 = (float)(v95.s0);
            sums[i346 + 32] = v363;
            float v364 = (float)(v95.s1);
            sums[i346 + 33] = v364;
            float v365 = (float)(v95.s2);
            sums[i346 + 424] = v365;
            float v366 = (float)(v95.s3);
            sums[i346 + 425] = v366;
            float v367 = (float)(v96.s0);
            sums[i346 + 40] = v367;
            float v368 = (float)(v96.s1);
            sums[i346 + 41] = v368;
            float v369 = (float)(v96.s2);
            sums[i346 + 432] = v369;
            float v370 = (float)(v96.s3);
            sums[i346 + 433] = v370;
            float v371 = (float)(v97.s0);
            sums[i346 + 784] = v371;
            float v372 = (float)(v97.s1);
            sums[i346 + 785] = v372;
            float v373 = (float)(v97.s2);
            sums[i346 + 1176] = v373;
            float v374 = (float)(v97.s3);
            sums[i346 + 1177] = v374;
            float v375 = (float)(v98.s0);
            sums[i346 + 792] = v375;
            float v376 = (float)(v98.s1);
            sums[i346 + 793] = v376;
            float v377 = (float)(v98.s2);
            sums[i346 + 1184] = v377;
            float v378 = (float)(v98.s3);
            sums[i346 + 1185] = v378;
            float v379 = (float)(v99.s0);
            sums[i346 + 800] = v379;
            float v380 = (float)(v99.s1);
            sums[i346 + 801] = v380;
            float v381 = (float)(v99.s2);
            sums[i346 + 1192] = v381;
            float v382 = (float)(v99.s3);
            sums[i346 + 1193] = v382;
            float v383 = (float)(v100.s0);
            sums[i346 + 808] = v383;
            float v384 = (float)(v100.s1);
            sums[i346 + 809] = v384;
            float v385 = (float)(v100.s2);
            sums[i346 + 1200] = v385;
            float v386 = (float)(v100.s3);
            sums[i346 + 1201] = v386;
            float v387 = (float)(v101.s0);
            sums[i346 + 816] = v387;
            float v388 = (float)(v101.s1);
            sums[i346 + 817] = v388;
            float v389 = (float)(v101.s2);
            sums[i346 + 1208] = v389;
            float v390 = (float)(v101.s3);
            sums[i346 + 1209] = v390;
            float v391 = (float)(v102.s0);
            sums[i346 + 824] = v391;
            float v392 = (float)(v102.s1);
            sums[i346 + 825] = v392;
            float v393 = (float)(v102.s2);
            sums[i346 + 1216] = v393;
            float v394 = (float)(v102.s3);
            sums[i346 + 1217] = v394;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        #pragma unroll 2
        for (int r = lid; r < 512; r += 128) {
            long i395 = i4 + r / 32;
            long i396 = i5 + r % 32;
            int i397 = (int)(r % 32 * 49 + r / 32 * 3);
            float v398 = sums[i397 + 2];
            float v399 = sums[i397 + 1568 + 2];
            float v400 = sums[i397 + 3136 + 2];
            float v401 = sums[i397 + 4704 + 2];
            float v402 = (v398 + v399);
            float v403 = (v402 + v400);
            float v404 = (v403 + v401);
            float v405 = sums[i397 + 1];
            float v406 = sums[i397 + 1568 + 1];
            float v407 = sums[i397 + 3136 + 1];
            float v408 = sums[i397 + 4704 + 1];
            float v409 = (v405 + v406);
            float v410 = (v409 + v407);
            float v411 = (v410 + v408);
            float v412 = sums[i397];
            float v413 = sums[i397 + 1568];
            float v414 = sums[i397 + 3136];
            float v415 = sums[i397 + 4704];
            float v416 = (v412 + v413);
            float v417 = (v416 + v414);
            float v418 = (v417 + v415);
            float v419 = (v404 + v411);
            float v420 = (v419 + v418);
            if (i395 < n && i396 < 64) {
                out0[i395 * 64 + i396] = (v420 == v420 ? v420 : (float)(as_float(0x7fc00000U)));
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
