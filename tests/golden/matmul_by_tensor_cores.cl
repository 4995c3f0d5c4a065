#pragma OPENCL FP_CONTRACT OFF

static inline void fc_copy_16(__local void *to, const __global void *from, int exists) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"((uint)(size_t)to), "l"(from), "r"(exists ? 16 : 0) : "memory");
}

static inline void fc_copy_4(__local void *to, const __global void *from, int exists) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"((uint)(size_t)to), "l"(from), "r"(exists ? 4 : 0) : "memory");
}

static inline uint4 fc_fragment(const __local void *from) {
    uint a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"((uint)(size_t)from) : "memory");
    return (uint4)(a, b, c, d);
}

static inline uint4 fc_fragment_transposed(const __local void *from) {
    uint a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"((uint)(size_t)from) : "memory");
    return (uint4)(a, b, c, d);
}

static inline float4 fc_multiply_f16(uint4 a, uint2 b, float4 c) {
    float p = c.s0, q = c.s1, r = c.s2, s = c.s3;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(p), "+f"(q), "+f"(r), "+f"(s)
        : "r"(a.s0), "r"(a.s1), "r"(a.s2), "r"(a.s3), "r"(b.s0), "r"(b.s1));
    return (float4)(p, q, r, s);
}

static inline float4 fc_round_float16_4(float4 x) {
    uint4 bits = as_uint4(x), sign = bits & (uint4)(0x80000000), size = bits ^ sign;
    uint4 near = (size + (uint4)(0xfff) + ((size >> (uint4)(13)) & (uint4)(1))) & (uint4)(0xffffe000);
    float4 tiny = (as_float4(size) + (float4)(0.5f)) - (float4)(0.5f);
    uint4 result = size < (uint4)(0x38800000) ? as_uint4(tiny) : near;
    result = near >= (uint4)(0x47800000) ? (uint4)(0x7f800000) : result;
    result = size > (uint4)(0x7f800000) ? (uint4)(0x7fc00000) : result;
    return as_float4(result | sign);
}

static inline void fc_scatter_float16_4(float4 value, __global half *p, long stride, long count) {
    float all[4];
    vstore4(value, 0, all);
    for (int lane = 0; lane < 4; lane++) if (lane < count) vstore_half(all[lane], lane * stride, p);
}

__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void k0(
    __global const half *restrict in0,
    __global const half *restrict in1,
    __global half *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local float tiles[12288] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long t = gid; t < ((n + 63) / 64) * 1; t += gsize) {
        long i0 = (n + 63) / 64;
        long i1 = t / 8;
        long i2 = t % 8;
        long i3 = min((long)8, i0 - i1 * 8);
        long i4 = 0 + (i1 * 8 + i2 % i3) * 64;
        long i5 = i2 / i3 * 64;
        long i6 = i4 * 200;
        int i7 = (int)(lid / 8);
        int i8 = (int)(lid % 8);
        int i9 = (int)(i8 * 8);
        int i10 = (int)(i7 * 64 + ((i9 / 8) ^ (i7 % 8)) * 8);
        long i11 = i6 + (long)i7 * 200 + i9;
        int i12 = (int)(i4 + i7 < n);
        int i13 = (int)(i4 + i7 + 16 < n);
        int i14 = (int)(i4 + i7 + 32 < n);
        int i15 = (int)(i4 + i7 + 48 < n);
        long i16 = 0 + i5;
        int i17 = (int)(lid / 32);
        int i18 = (int)(lid % 32);
        int i19 = (int)(i18 * 2);
        int i20 = (int)(i17 * 64 + ((i19 / 8) ^ (i17 % 8)) * 8 + i19 % 8);
        long i21 = i16 + (long)i17 * 50 + i19;
        int i22 = (int)(i5 + i19 < 50);
        int i23 = (int)((lid + 128) / 32);
        int i24 = (int)((lid + 128) % 32);
        int i25 = (int)(i24 * 2);
        int i26 = (int)(i23 * 64 + ((i25 / 8) ^ (i23 % 8)) * 8 + i25 % 8);
        long i27 = i16 + (long)i23 * 50 + i25;
        int i28 = (int)(i5 + i25 < 50);
        int i29 = (int)((lid + 256) / 32);
        int i30 = (int)((lid + 256) % 32);
        int i31 = (int)(i30 * 2);
        int i32 = (int)(i29 * 64 + ((i31 / 8) ^ (i29 % 8)) * 8 + i31 % 8);
        long i33 = i16 + (long)i29 * 50 + i31;
        int i34 = (int)(i5 + i31 < 50);
        int i35 = (int)((lid + 384) / 32);
        int i36 = (int)((lid + 384) % 32);
        int i37 = (int)(i36 * 2);
        int i38 = (int)(i35 * 64 + ((i37 / 8) ^ (i35 % 8)) * 8 + i37 % 8);
        long i39 = i16 + (long)i35 * 50 + i37;
        int i40 = (int)(i5 + i37 < 50);
        int i41 = (int)((lid + 512) / 32);
        int i42 = (int)((lid + 512) % 32);
        int i43 = (int)(i42 * 2);
        int i44 = (int)(i41 * 64 + ((i43 / 8) ^ (i41 % 8)) * 8 + i43 % 8);
        long i45 = i16 + (long)i41 * 50 + i43;
        int i46 = (int)(i5 + i43 < 50);
        int i47 = (int)((lid + 640) / 32);
        int i48 = (int)((lid + 640) % 32);
        int i49 = (int)(i48 * 2);
        int i50 = (int)(i47 * 64 + ((i49 / 8) ^ (i47 % 8)) * 8 + i49 % 8);
        long i51 = i16 + (long)i47 * 50 + i49;
        int i52 = (int)(i5 + i49 < 50);
        int i53 = (int)((lid + 768) / 32);
        int i54 = (int)((lid + 768) % 32);
        int i55 = (int)(i54 * 2);
        int i56 = (int)(i53 * 64 + ((i55 / 8) ^ (i53 % 8)) * 8 + i55 % 8);
        long i57 = i16 + (long)i53 * 50 + i55;
        int i58 = (int)(i5 + i55 < 50);
        int i59 = (int)((lid + 896) / 32);
        int i60 = (int)((lid + 896) % 32);
        int i61 = (int)(i60 * 2);
        int i62 = (int)(i59 * 64 + ((i61 / 8) ^ (i59 % 8)) * 8 + i61 % 8);
        long i63 = i16 + (long)i59 * 50 + i61;
        int i64 = (int)(i5 + i61 < 50);
        int i65 = (int)((lid + 1024) / 32);
        int i66 = (int)((lid + 1024) % 32);
        int i67 = (int)(i66 * 2);
        int i68 = (int)(i65 * 64 + ((i67 / 8) ^ (i65 % 8)) * 8 + i67 % 8);
        long i69 = i16 + (long)i65 * 50 + i67;
        int i70 = (int)(i5 + i67 < 50);
        int i71 = (int)((lid + 1152) / 32);
        int i72 = (int)((lid + 1152) % 32);
        int i73 = (int)(i72 * 2);
        int i74 = (int)(i71 * 64 + ((i73 / 8) ^ (i71 % 8)) * 8 + i73 % 8);
        long i75 = i16 + (long)i71 * 50 + i73;
        int i76 = (int)(i5 + i73 < 50);
        int i77 = (int)((lid + 1280) / 32);
        int i78 = (int)((lid + 1280) % 32);
        int i79 = (int)(i78 * 2);
        int i80 = (int)(i77 * 64 + ((i79 / 8) ^ (i77 % 8)) * 8 + i79 % 8);
        long i81 = i16 + (long)i77 * 50 + i79;
        int i82 = (int)(i5 + i79 < 50);
        int i83 = (int)((lid + 1408) / 32);
        int i84 = (int)((lid + 1408) % 32);
        int i85 = (int)(i84 * 2);
        int i86 = (int)(i83 * 64 + ((i85 / 8) ^ (i83 % 8)) * 8 + i85 % 8);
        long i87 = i16 + (long)i83 * 50 + i85;
        int i88 = (int)(i5 + i85 < 50);
        int i89 = (int)((lid + 1536) / 32);
        int i90 = (int)((lid + 1536) % 32);
        int i91 = (int)(i90 * 2);
        int i92 = (int)(i89 * 64 + ((i91 / 8) ^ (i89 % 8)) * 8 + i91 % 8);
        long i93 = i16 + (long)i89 * 50 + i91;
        int i94 = (int)(i5 + i91 < 50);
        int i95 = (int)((lid + 1664) / 32);
        int i96 = (int)((lid + 1664) % 32);
        int i97 = (int)(i96 * 2);
        int i98 = (int)(i95 * 64 + ((i97 / 8) ^ (i95 % 8)) * 8 + i97 % 8);
        long i99 = i16 + (long)i95 * 50 + i97;
        int i100 = (int)(i5 + i97 < 50);
        int i101 = (int)((lid + 1792) / 32);
        int i102 = (int)((lid + 1792) % 32);
        int i103 = (int)(i102 * 2);
        int i104 = (int)(i101 * 64 + ((i103 / 8) ^ (i101 % 8)) * 8 + i103 % 8);
        long i105 = i16 + (long)i101 * 50 + i103;
        int i106 = (int)(i5 + i103 < 50);
        int i107 = (int)((lid + 1920) / 32);
        int i108 = (int)((lid + 1920) % 32);
        int i109 = (int)(i108 * 2);
        int i110 = (int)(i107 * 64 + ((i109 / 8) ^ (i107 % 8)) * 8 + i109 % 8);
        long i111 = i16 + (long)i107 * 50 + i109;
        int i112 = (int)(i5 + i109 < 50);
        int i113 = (int)(lid / 32);
        int i114 = (int)(i113 % 2 * 32);
        int i115 = (int)(i113 / 2 * 32);
        int i116 = (int)(lid % 16);
        int i117 = (int)(lid / 16 % 2);
        int i118 = (int)((i114 + i116) * 64);
        int i119 = (int)(((0 / 8 + i117) ^ (i116 % 8)) * 8);
        int i120 = (int)(lid % 16);
        int i121 = (int)(lid / 16 % 2);
        int i122 = (int)((0 + i120) * 64 + 12288);
        int i123 = (int)(((i115 / 8 + i121) ^ (i120 % 8)) * 8);
        float4 v124 = (float4)(-0x0.0p+0f);
        float4 v125 = (float4)(-0x0.0p+0f);
        float4 v126 = (float4)(-0x0.0p+0f);
        float4 v127 = (float4)(-0x0.0p+0f);
        float4 v128 = (float4)(-0x0.0p+0f);
        float4 v129 = (float4)(-0x0.0p+0f);
        float4 v130 = (float4)(-0x0.0p+0f);
        float4 v131 = (float4)(-0x0.0p+0f);
        long i132 = 0 * 64;
        fc_copy_16((__local ushort *)tiles + (i10), in0 + (i11 + i132), i12 && i132 + i9 < 200);
        fc_copy_16((__local ushort *)tiles + (i10 + 1024), in0 + (i11 + 3200 + i132), i13 && i132 + i9 < 200);
        fc_copy_16((__local ushort *)tiles + (i10 + 2048), in0 + (i11 + 6400 + i132), i14 && i132 + i9 < 200);
        fc_copy_16((__local ushort *)tiles + (i10 + 3072), in0 + (i11 + 9600 + i132), i15 && i132 + i9 < 200);
        fc_copy_4((__local ushort *)tiles + (i20 + 12288), in1 + (i21 + i132 * 50), i22 && i132 + i17 < 200);
        fc_copy_4((__local ushort *)tiles + (i26 + 12288), in1 + (i27 + i132 * 50), i28 && i132 + i23 < 200);
        fc_copy_4((__local ushort *)tiles + (i32 + 12288), in1 + (i33 + i132 * 50), i34 && i132 + i29 < 200);
        fc_copy_4((__local ushort *)tiles + (i38 + 12288), in1 + (i39 + i132 * 50), i40 && i132 + i35 < 200);
        fc_copy_4((__local ushort *)tiles + (i44 + 12288), in1 + (i45 + i132 * 50), i46 && i132 + i41 < 200);
        fc_copy_4((__local ushort *)tiles + (i50 + 12288), in1 + (i51 + i132 * 50), i52 && i132 + i47 < 200);
        fc_copy_4((__local ushort *)tiles + (i56 + 12288), in1 + (i57 + i132 * 50), i58 && i132 + i53 < 200);
        fc_copy_4((__local ushort *)tiles + (i62 + 12288), in1 + (i63 + i132 * 50), i64 && i132 + i59 < 200);
        fc_copy_4((__local ushort *)tiles + (i68 + 12288), in1 + (i69 + i132 * 50), i70 && i132 + i65 < 200);
        fc_copy_4((__local ushort *)tiles + (i74 + 12288), in1 + (i75 + i132 * 50), i76 && i132 + i71 < 200);
        fc_copy_4((__local ushort *)tiles + (i80 + 12288), in1 + (i81 + i132 * 50), i82 && i132 + i77 < 200);
        fc_copy_4((__local ushort *)tiles + (i86 + 12288), in1 + (i87 + i132 * 50), i88 && i132 + i83 < 200);
        fc_copy_4((__local ushort *)tiles + (i92 + 12288), in1 + (i93 + i132 * 50), i94 && i132 + i89 < 200);
        fc_copy_4((__local ushort *)tiles + (i98 + 12288), in1 + (i99 + i132 * 50), i100 && i132 + i95 < 200);
        fc_copy_4((__local ushort *)tiles + (i104 + 12288), in1 + (i105 + i132 * 50), i106 && i132 + i101 < 200);
        fc_copy_4((__local ushort *)tiles + (i110 + 12288), in1 + (i111 + i132 * 50), i112 && i132 + i107 < 200);
        asm volatile("cp.async.commit_group;" ::: "memory");
        long i133 = 1 * 64;
        fc_copy_16((__local ushort *)tiles + (1 * 4096 + i10), in0 + (i11 + i133), i12 && i133 + i9 < 200);
        fc_copy_16((__local ushort *)tiles + (1 * 4096 + i10 + 1024), in0 + (i11 + 3200 + i133), i13 && i133 + i9 < 200);
        fc_copy_16((__local ushort *)tiles + (1 * 4096 + i10 + 2048), in0 + (i11 + 6400 + i133), i14 && i133 + i9 < 200);
        fc_copy_16((__local ushort *)tiles + (1 * 4096 + i10 + 3072), in0 + (i11 + 9600 + i133), i15 && i133 + i9 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i20 + 12288), in1 + (i21 + i133 * 50), i22 && i133 + i17 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i26 + 12288), in1 + (i27 + i133 * 50), i28 && i133 + i23 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i32 + 12288), in1 + (i33 + i133 * 50), i34 && i133 + i29 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i38 + 12288), in1 + (i39 + i133 * 50), i40 && i133 + i35 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i44 + 12288), in1 + (i45 + i133 * 50), i46 && i133 + i41 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i50 + 12288), in1 + (i51 + i133 * 50), i52 && i133 + i47 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i56 + 12288), in1 + (i57 + i133 * 50), i58 && i133 + i53 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i62 + 12288), in1 + (i63 + i133 * 50), i64 && i133 + i59 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i68 + 12288), in1 + (i69 + i133 * 50), i70 && i133 + i65 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i74 + 12288), in1 + (i75 + i133 * 50), i76 && i133 + i71 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i80 + 12288), in1 + (i81 + i133 * 50), i82 && i133 + i77 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i86 + 12288), in1 + (i87 + i133 * 50), i88 && i133 + i83 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i92 + 12288), in1 + (i93 + i133 * 50), i94 && i133 + i89 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i98 + 12288), in1 + (i99 + i133 * 50), i100 && i133 + i95 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i104 + 12288), in1 + (i105 + i133 * 50), i106 && i133 + i101 < 200);
        fc_copy_4((__local ushort *)tiles + (1 * 4096 + i110 + 12288), in1 + (i111 + i133 * 50), i112 && i133 + i107 < 200);
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        uint4 v134 = fc_fragment((__local ushort *)tiles + (i118 + i119));
        uint4 v135 = fc_fragment((__local ushort *)tiles + (i118 + i119 + 1024));
        uint4 v136 = fc_fragment_transposed((__local ushort *)tiles + (i122 + i123));
        uint4 v137 = fc_fragment_transposed((__local ushort *)tiles + (i122 + (i123 ^ 16)));
        for (long s = 0; s < 4; s++) {
            int i138 = (int)((int)(s + 0) % 3);
            int i139 = (int)((int)(s + 1) % 3);
            uint4 v140 = fc_fragment((__local ushort *)tiles + (i138 * 4096 + i118 + (i119 ^ 16)));
            uint4 v141 = fc_fragment((__local ushort *)tiles + (i138 * 4096 + i118 + (i119 ^ 16) + 1024));
            uint4 v142 = fc_fragment_transposed((__local ushort *)tiles + (i138 * 4096 + i122 + i123 + 1024));
            uint4 v143 = fc_fragment_transposed((__local ushort *)tiles + (i138 * 4096 + i122 + (i123 ^ 16) + 1024));
            int i144 = (int)((int)(s + 2) % 3);
            if (s + 2 < 4) {
                long i145 = (s + 2) * 64;
                fc_copy_16((__local ushort *)tiles + (i144 * 4096 + i10), in0 + (i11 + i145), i12 && i145 + i9 < 200);
                fc_copy_16((__local ushort *)tiles + (i144 * 4096 + i10 + 1024), in0 + (i11 + 3200 + i145), i13 && i145 + i9 < 200);
                fc_copy_16((__local ushort *)tiles + (i144 * 4096 + i10 + 2048), in0 + (i11 + 6400 + i145), i14 && i145 + i9 < 200);
                fc_copy_16((__local ushort *)tiles + (i144 * 4096 + i10 + 3072), in0 + (i11 + 9600 + i145), i15 && i145 + i9 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i20 + 12288), in1 + (i21 + i145 * 50), i22 && i145 + i17 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i26 + 12288), in1 + (i27 + i145 * 50), i28 && i145 + i23 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i32 + 12288), in1 + (i33 + i145 * 50), i34 && i145 + i29 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i38 + 12288), in1 + (i39 + i145 * 50), i40 && i145 + i35 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i44 + 12288), in1 + (i45 + i145 * 50), i46 && i145 + i41 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i50 + 12288), in1 + (i51 + i145 * 50), i52 && i145 + i47 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i56 + 12288), in1 + (i57 + i145 * 50), i58 && i145 + i53 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i62 + 12288), in1 + (i63 + i145 * 50), i64 && i145 + i59 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i68 + 12288), in1 + (i69 + i145 * 50), i70 && i145 + i65 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i74 + 12288), in1 + (i75 + i145 * 50), i76 && i145 + i71 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i80 + 12288), in1 + (i81 + i145 * 50), i82 && i145 + i77 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i86 + 12288), in1 + (i87 + i145 * 50), i88 && i145 + i83 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i92 + 12288), in1 + (i93 + i145 * 50), i94 && i145 + i89 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i98 + 12288), in1 + (i99 + i145 * 50), i100 && i145 + i95 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i104 + 12288), in1 + (i105 + i145 * 50), i106 && i145 + i101 < 200);
                fc_copy_4((__local ushort *)tiles + (i144 * 4096 + i110 + 12288), in1 + (i111 + i145 * 50), i112 && i145 + i107 < 200);
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
            v124 = fc_multiply_f16(v134, v136.lo, v124);
            v125 = fc_multiply_f16(v134, v136.hi, v125);
            v126 = fc_multiply_f16(v134, v137.lo, v126);
            v127 = fc_multiply_f16(v134, v137.hi, v127);
            v128 = fc_multiply_f16(v135, v136.lo, v128);
            v129 = fc_multiply_f16(v135, v136.hi, v129);
            v130 = fc_multiply_f16(v135, v137.lo, v130);
            v131 = fc_multiply_f16(v135, v137.hi, v131);
            uint4 v146 = fc_fragment((__local ushort *)tiles + (i138 * 4096 + i118 + (i119 ^ 32)));
            uint4 v147 = fc_fragment((__local ushort *)tiles + (i138 * 4096 + i118 + (i119 ^ 32) + 1024));
            uint4 v148 = fc_fragment_transposed((__local ushort *)tiles + (i138 * 4096 + i122 + i123 + 2048));
            uint4 v149 = fc_fragment_transposed((__local ushort *)tiles + (i138 * 4096 + i122 + (i123 ^ 16) + 2048));
            v124 = fc_multiply_f16(v140, v142.lo, v124);
            v125 = fc_multiply_f16(v140, v142.hi, v125);
            v126 = fc_multiply_f16(v140, v143.lo, v126);
            v127 = fc_multiply_f16(v140, v143.hi, v127);
            v128 = fc_multiply_f16(v141, v142.lo, v128);
            v129 = fc_multiply_f16(v141, v142.hi, v129);
            v130 = fc_multiply_f16(v141, v143.lo, v130);
            v131 = fc_multiply_f16(v141, v143.hi, v131);
            uint4 v150 = fc_fragment((__local ushort *)tiles + (i138 * 4096 + i118 + (i119 ^ 48)));
            uint4 v151 = fc_fragment((__local ushort *)tiles + (i138 * 4096 + i118 + (i119 ^ 48) + 1024));
            uint4 v152 = fc_fragment_transposed((__local ushort *)tiles + (i138 * 4096 + i122 + i123 + 3072));
            uint4 v153 = fc_fragment_transposed((__local ushort *)tiles + (i138 * 4096 + i122 + (i123 ^ 16) + 3072));
            v124 = fc_multiply_f16(v146, v148.lo, v124);
            v125 = fc_multiply_f16(v146, v148.hi, v125);
            v126 = fc_multiply_f16(v146, v149.lo, v126);
            v127 = fc_multiply_f16(v146, v149.hi, v127);
            v128 = fc_multiply_f16(v147, v148.lo, v128);
            v129 = fc_multiply_f16(v147, v148.hi, v129);
            v130 = fc_multiply_f16(v147, v149.lo, v130);
            v131 = fc_multiply_f16(v147, v149.hi, v131);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            uint4 v154 = fc_fragment((__local ushort *)tiles + (i139 * 4096 + i118 + i119));
            uint4 v155 = fc_fragment((__local ushort *)tiles + (i139 * 4096 + i118 + i119 + 1024));
            uint4 v156 = fc_fragment_transposed((__local ushort *)tiles + (i139 * 4096 + i122 + i123));
            uint4 v157 = fc_fragment_transposed((__local ushort *)tiles + (i139 * 4096 + i122 + (i123 ^ 16)));
            v124 = fc_multiply_f16(v150, v152.lo, v124);
            v125 = fc_multiply_f16(v150, v152.hi, v125);
            v126 = fc_multiply_f16(v150, v153.lo, v126);
            v127 = fc_multiply_f16(v150, v153.hi, v127);
            v128 = fc_multiply_f16(v151, v152.lo, v128);
            v129 = fc_multiply_f16(v151, v152.hi, v129);
            v130 = fc_multiply_f16(v151, v153.lo, v130);
            v131 = fc_multiply_f16(v151, v153.hi, v131);
            v134 = v154;
            v135 = v155;
            v136 = v156;
            v137 = v157;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        int i158 = (int)((i114 + lid % 32 / 4) * 72 + i115 + lid % 4 * 2);
        float2 v159 = v124.lo;
        *(__local float2 *)(tiles + i158 + 0) = v159;
        float2 v160 = v124.hi;
        *(__local float2 *)(tiles + i158 + 576) = v160;
        float2 v161 = v125.lo;
        *(__local float2 *)(tiles + i158 + 8) = v161;
        float2 v162 = v125.hi;
        *(__local float2 *)(tiles + i158 + 584) = v162;
        float2 v163 = v126.lo;
        *(__local float2 *)(tiles + i158 + 16) = v163;
        float2 v164 = v126.hi;
        *(__local float2 *)(tiles + i158 + 592) = v164;
        float2 v165 = v127.lo;
        *(__local float2 *)(tiles + i158 + 24) = v165;
        float2 v166 = v127.hi;
        *(__local float2 *)(tiles + i158 + 600) = v166;
        float2 v167 = v128.lo;
        *(__local float2 *)(tiles + i158 + 1152) = v167;
        float2 v168 = v128.hi;
        *(__local float2 *)(tiles + i158 + 1728) = v168;
        float2 v169 = v129.lo;
        *(__local float2 *)(tiles + i158 + 1160) = v169;
        float2 v170 = v129.hi;
        *(__local float2 *)(tiles + i158 + 1736) = v170;
        float2 v171 = v130.lo;
        *(__local float2 *)(tiles + i158 + 1168) = v171;
        float2 v172 = v130.hi;
        *(__local float2 *)(tiles + i158 + 1744) = v172;
        float2 v173 = v131.lo;
        *(__local float2 *)(tiles + i158 + 1176) = v173;
        float2 v174 = v131.hi;
        *(__local float2 *)(tiles + i158 + 1752) = v174;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        #pragma unroll 4
        for (long e = lid; e < 1024; e += 128) {
            int i175 = (int)((int)e / 16);
            int i176 = (int)((int)e % 16 * 4);
            if (i4 + i175 < n && i5 + i176 < 50) {
                float4 v177 = *(__local float4 *)(tiles + (i175 + 0) * 72 + i176);
                long i178 = i5 + i176;
                long i179 = min((long)4, 50 - i178);
                long i180 = i4 + i175;
                float4 v181 = fc_round_float16_4(v177);
                fc_scatter_float16_4((v181 == v181 ? v181 : (float4)(as_float(0x7fc00000U))), out0 + (i180 * 50 + i178), 1, i179);
                if (any(v181 != v181)) {
                    if (0 < i179 && v181.s0 != v181.s0) ((__global ushort *)out0)[i180 * 50 + i178] = 0x7e00;
                    if (1 < i179 && v181.s1 != v181.s1) ((__global ushort *)out0)[i180 * 50 + i178 + 1] = 0x7e00;
                    if (2 < i179 && v181.s2 != v181.s2) ((__global ushort *)out0)[i180 * 50 + i178 + 2] = 0x7e00;
                    if (3 < i179 && v181.s3 != v181.s3) ((__global ushort *)out0)[i180 * 50 + i178 + 3] = 0x7e00;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
