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
    float y0, y1, y2, y3;
    asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(y0) : "f"(x.s0));
    asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(y1) : "f"(x.s1));
    asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(y2) : "f"(x.s2));
    asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(y3) : "f"(x.s3));
    uint4 quiet = as_uint4(x) & (uint4)(0x80000000) | (uint4)(0x7fc00000);
    return x == x ? (float4)(y0, y1, y2, y3) : as_float4(quiet);
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
    for (long t = gid; t < ((n + 63) / 64); t += gsize) {
        long i0 = (n + 63) / 64;
        long i1 = t / 8;
        long i2 = t % 8;
        long i3 = min(8L, i0 - i1 * 8);
        long i4 = (i1 * 8 + i2 % i3) * 64;
        long i5 = i2 / i3 * 64;
        long i6 = i4 * 200;
        int i7 = (int)(lid / 8);
        int i8 = (int)(lid % 8);
        int i9 = (int)(i8 * 8);
        int i10 = (int)(i7 * 64 + (i9 / 8 ^ i7 % 8) * 8);
        long i11 = i6 + (long)i7 * 200 + i9;
        int i12 = (int)(i4 + i7 < n);
        int i13 = (int)(i4 + (i7 + 16) < n);
        int i14 = (int)(i4 + (i7 + 32) < n);
        int i15 = (int)(i4 + (i7 + 48) < n);
        int i16 = (int)(lid / 32);
        int i17 = (int)(lid % 32);
        int i18 = (int)(i17 * 2);
        int i19 = (int)(i16 * 64 + (i18 / 8 ^ i16 % 8) * 8 + i18 % 8);
        long i20 = i5 + (long)i16 * 50 + i18;
        int i21 = (int)(i5 + i18 < 50);
        int i22 = (int)((lid + 128) / 32);
        int i23 = (int)((lid + 128) % 32);
        int i24 = (int)(i23 * 2);
        int i25 = (int)(i22 * 64 + (i24 / 8 ^ i22 % 8) * 8 + i24 % 8);
        long i26 = i5 + (long)i22 * 50 + i24;
        int i27 = (int)(i5 + i24 < 50);
        int i28 = (int)((lid + 256) / 32);
        int i29 = (int)((lid + 256) % 32);
        int i30 = (int)(i29 * 2);
        int i31 = (int)(i28 * 64 + (i30 / 8 ^ i28 % 8) * 8 + i30 % 8);
        long i32 = i5 + (long)i28 * 50 + i30;
        int i33 = (int)(i5 + i30 < 50);
        int i34 = (int)((lid + 384) / 32);
        int i35 = (int)((lid + 384) % 32);
        int i36 = (int)(i35 * 2);
        int i37 = (int)(i34 * 64 + (i36 / 8 ^ i34 % 8) * 8 + i36 % 8);
        long i38 = i5 + (long)i34 * 50 + i36;
        int i39 = (int)(i5 + i36 < 50);
        int i40 = (int)((lid + 512) / 32);
        int i41 = (int)((lid + 512) % 32);
        int i42 = (int)(i41 * 2);
        int i43 = (int)(i40 * 64 + (i42 / 8 ^ i40 % 8) * 8 + i42 % 8);
        long i44 = i5 + (long)i40 * 50 + i42;
        int i45 = (int)(i5 + i42 < 50);
        int i46 = (int)((lid + 640) / 32);
        int i47 = (int)((lid + 640) % 32);
        int i48 = (int)(i47 * 2);
        int i49 = (int)(i46 * 64 + (i48 / 8 ^ i46 % 8) * 8 + i48 % 8);
        long i50 = i5 + (long)i46 * 50 + i48;
        int i51 = (int)(i5 + i48 < 50);
        int i52 = (int)((lid + 768) / 32);
        int i53 = (int)((lid + 768) % 32);
        int i54 = (int)(i53 * 2);
        int i55 = (int)(i52 * 64 + (i54 / 8 ^ i52 % 8) * 8 + i54 % 8);
        long i56 = i5 + (long)i52 * 50 + i54;
        int i57 = (int)(i5 + i54 < 50);
        int i58 = (int)((lid + 896) / 32);
        int i59 = (int)((lid + 896) % 32);
        int i60 = (int)(i59 * 2);
        int i61 = (int)(i58 * 64 + (i60 / 8 ^ i58 % 8) * 8 + i60 % 8);
        long i62 = i5 + (long)i58 * 50 + i60;
        int i63 = (int)(i5 + i60 < 50);
        int i64 = (int)((lid + 1024) / 32);
        int i65 = (int)((lid + 1024) % 32);
        int i66 = (int)(i65 * 2);
        int i67 = (int)(i64 * 64 + (i66 / 8 ^ i64 % 8) * 8 + i66 % 8);
        long i68 = i5 + (long)i64 * 50 + i66;
        int i69 = (int)(i5 + i66 < 50);
        int i70 = (int)((lid + 1152) / 32);
        int i71 = (int)((lid + 1152) % 32);
        int i72 = (int)(i71 * 2);
        int i73 = (int)(i70 * 64 + (i72 / 8 ^ i70 % 8) * 8 + i72 % 8);
        long i74 = i5 + (long)i70 * 50 + i72;
        int i75 = (int)(i5 + i72 < 50);
        int i76 = (int)((lid + 1280) / 32);
        int i77 = (int)((lid + 1280) % 32);
        int i78 = (int)(i77 * 2);
        int i79 = (int)(i76 * 64 + (i78 / 8 ^ i76 % 8) * 8 + i78 % 8);
        long i80 = i5 + (long)i76 * 50 + i78;
        int i81 = (int)(i5 + i78 < 50);
        int i82 = (int)((lid + 1408) / 32);
        int i83 = (int)((lid + 1408) % 32);
        int i84 = (int)(i83 * 2);
        int i85 = (int)(i82 * 64 + (i84 / 8 ^ i82 % 8) * 8 + i84 % 8);
        long i86 = i5 + (long)i82 * 50 + i84;
        int i87 = (int)(i5 + i84 < 50);
        int i88 = (int)((lid + 1536) / 32);
        int i89 = (int)((lid + 1536) % 32);
        int i90 = (int)(i89 * 2);
        int i91 = (int)(i88 * 64 + (i90 / 8 ^ i88 % 8) * 8 + i90 % 8);
        long i92 = i5 + (long)i88 * 50 + i90;
        int i93 = (int)(i5 + i90 < 50);
        int i94 = (int)((lid + 1664) / 32);
        int i95 = (int)((lid + 1664) % 32);
        int i96 = (int)(i95 * 2);
        int i97 = (int)(i94 * 64 + (i96 / 8 ^ i94 % 8) * 8 + i96 % 8);
        long i98 = i5 + (long)i94 * 50 + i96;
        int i99 = (int)(i5 + i96 < 50);
        int i100 = (int)((lid + 1792) / 32);
        int i101 = (int)((lid + 1792) % 32);
        int i102 = (int)(i101 * 2);
        int i103 = (int)(i100 * 64 + (i102 / 8 ^ i100 % 8) * 8 + i102 % 8);
        long i104 = i5 + (long)i100 * 50 + i102;
        int i105 = (int)(i5 + i102 < 50);
        int i106 = (int)((lid + 1920) / 32);
        int i107 = (int)((lid + 1920) % 32);
        int i108 = (int)(i107 * 2);
        int i109 = (int)(i106 * 64 + (i108 / 8 ^ i106 % 8) * 8 + i108 % 8);
        long i110 = i5 + (long)i106 * 50 + i108;
        int i111 = (int)(i5 + i108 < 50);
        int i112 = (int)(lid / 32);
        int i113 = (int)(i112 % 2 * 32);
        int i114 = (int)(i112 / 2 * 32);
        int i115 = (int)(lid % 16);
        int i116 = (int)(lid / 16 % 2);
        int i117 = (int)((i113 + i115) * 64);
        int i118 = (int)((i116 ^ i115 % 8) * 8);
        int i119 = (int)(lid % 16);
        int i120 = (int)(lid / 16 % 2);
        int i121 = (int)(i119 * 64 + 12288);
        int i122 = (int)((i114 / 8 + i120 ^ i119 % 8) * 8);
        float4 v123 = (float4)(-0x0.0p+0f);
        float4 v124 = (float4)(-0x0.0p+0f);
        float4 v125 = (float4)(-0x0.0p+0f);
        float4 v126 = (float4)(-0x0.0p+0f);
        float4 v127 = (float4)(-0x0.0p+0f);
        float4 v128 = (float4)(-0x0.0p+0f);
        float4 v129 = (float4)(-0x0.0p+0f);
        float4 v130 = (float4)(-0x0.0p+0f);
        fc_copy_16((__local ushort *)tiles + (i10), in0 + (i11), i12 && i9 < 200);
        fc_copy_16((__local ushort *)tiles + (i10 + 1024), in0 + (i11 + 3200), i13 && i9 < 200);
        fc_copy_16((__local ushort *)tiles + (i10 + 2048), in0 + (i11 + 6400), i14 && i9 < 200);
        fc_copy_16((__local ushort *)tiles + (i10 + 3072), in0 + (i11 + 9600), i15 && i9 < 200);
        fc_copy_4((__local ushort *)tiles + (i19 + 12288), in1 + (i20), i21 && i16 < 200);
        fc_copy_4((__local ushort *)tiles + (i25 + 12288), in1 + (i26), i27 && i22 < 200);
        fc_copy_4((__local ushort *)tiles + (i31 + 12288), in1 + (i32), i33 && i28 < 200);
        fc_copy_4((__local ushort *)tiles + (i37 + 12288), in1 + (i38), i39 && i34 < 200);
        fc_copy_4((__local ushort *)tiles + (i43 + 12288), in1 + (i44), i45 && i40 < 200);
        fc_copy_4((__local ushort *)tiles + (i49 + 12288), in1 + (i50), i51 && i46 < 200);
        fc_copy_4((__local ushort *)tiles + (i55 + 12288), in1 + (i56), i57 && i52 < 200);
        fc_copy_4((__local ushort *)tiles + (i61 + 12288), in1 + (i62), i63 && i58 < 200);
        fc_copy_4((__local ushort *)tiles + (i67 + 12288), in1 + (i68), i69 && i64 < 200);
        fc_copy_4((__local ushort *)tiles + (i73 + 12288), in1 + (i74), i75 && i70 < 200);
        fc_copy_4((__local ushort *)tiles + (i79 + 12288), in1 + (i80), i81 && i76 < 200);
        fc_copy_4((__local ushort *)tiles + (i85 + 12288), in1 + (i86), i87 && i82 < 200);
        fc_copy_4((__local ushort *)tiles + (i91 + 12288), in1 + (i92), i93 && i88 < 200);
        fc_copy_4((__local ushort *)tiles + (i97 + 12288), in1 + (i98), i99 && i94 < 200);
        fc_copy_4((__local ushort *)tiles + (i103 + 12288), in1 + (i104), i105 && i100 < 200);
        fc_copy_4((__local ushort *)tiles + (i109 + 12288), in1 + (i110), i111 && i106 < 200);
        asm volatile("cp.async.commit_group;" ::: "memory");
        fc_copy_16((__local ushort *)tiles + (4096 + i10), in0 + (i11 + 64), i12 && 64 + i9 < 200);
        fc_copy_16((__local ushort *)tiles + (4096 + (i10 + 1024)), in0 + (i11 + 3200 + 64), i13 && 64 + i9 < 200);
        fc_copy_16((__local ushort *)tiles + (4096 + (i10 + 2048)), in0 + (i11 + 6400 + 64), i14 && 64 + i9 < 200);
        fc_copy_16((__local ushort *)tiles + (4096 + (i10 + 3072)), in0 + (i11 + 9600 + 64), i15 && 64 + i9 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i19 + 12288), in1 + (i20 + 3200), i21 && 64 + i16 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i25 + 12288), in1 + (i26 + 3200), i27 && 64 + i22 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i31 + 12288), in1 + (i32 + 3200), i33 && 64 + i28 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i37 + 12288), in1 + (i38 + 3200), i39 && 64 + i34 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i43 + 12288), in1 + (i44 + 3200), i45 && 64 + i40 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i49 + 12288), in1 + (i50 + 3200), i51 && 64 + i46 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i55 + 12288), in1 + (i56 + 3200), i57 && 64 + i52 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i61 + 12288), in1 + (i62 + 3200), i63 && 64 + i58 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i67 + 12288), in1 + (i68 + 3200), i69 && 64 + i64 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i73 + 12288), in1 + (i74 + 3200), i75 && 64 + i70 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i79 + 12288), in1 + (i80 + 3200), i81 && 64 + i76 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i85 + 12288), in1 + (i86 + 3200), i87 && 64 + i82 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i91 + 12288), in1 + (i92 + 3200), i93 && 64 + i88 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i97 + 12288), in1 + (i98 + 3200), i99 && 64 + i94 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i103 + 12288), in1 + (i104 + 3200), i105 && 64 + i100 < 200);
        fc_copy_4((__local ushort *)tiles + (4096 + i109 + 12288), in1 + (i110 + 3200), i111 && 64 + i106 < 200);
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        uint4 v131 = fc_fragment((__local ushort *)tiles + (i117 + i118));
        uint4 v132 = fc_fragment((__local ushort *)tiles + (i117 + i118 + 1024));
        uint4 v133 = fc_fragment_transposed((__local ushort *)tiles + (i121 + i122));
        uint4 v134 = fc_fragment_transposed((__local ushort *)tiles + (i121 + (i122 ^ 16)));
        for (long s = 0; s < 4; s++) {
            int i135 = (int)((int)s % 3);
            int i136 = (int)((int)(s + 1) % 3);
            uint4 v137 = fc_fragment((__local ushort *)tiles + (i135 * 4096 + i117 + (i118 ^ 16)));
            uint4 v138 = fc_fragment((__local ushort *)tiles + (i135 * 4096 + i117 + (i118 ^ 16) + 1024));
            uint4 v139 = fc_fragment_transposed((__local ushort *)tiles + (i135 * 4096 + i121 + i122 + 1024));
            uint4 v140 = fc_fragment_transposed((__local ushort *)tiles + (i135 * 4096 + i121 + (i122 ^ 16) + 1024));
            int i141 = (int)((int)(s + 2) % 3);
            if (s + 2 < 4) {
                long i142 = (s + 2) * 64;
                fc_copy_16((__local ushort *)tiles + (i141 * 4096 + i10), in0 + (i11 + i142), i12 && i142 + i9 < 200);
                fc_copy_16((__local ushort *)tiles + (i141 * 4096 + (i10 + 1024)), in0 + (i11 + 3200 + i142), i13 && i142 + i9 < 200);
                fc_copy_16((__local ushort *)tiles + (i141 * 4096 + (i10 + 2048)), in0 + (i11 + 6400 + i142), i14 && i142 + i9 < 200);
                fc_copy_16((__local ushort *)tiles + (i141 * 4096 + (i10 + 3072)), in0 + (i11 + 9600 + i142), i15 && i142 + i9 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i19 + 12288), in1 + (i20 + i142 * 50), i21 && i142 + i16 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i25 + 12288), in1 + (i26 + i142 * 50), i27 && i142 + i22 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i31 + 12288), in1 + (i32 + i142 * 50), i33 && i142 + i28 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i37 + 12288), in1 + (i38 + i142 * 50), i39 && i142 + i34 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i43 + 12288), in1 + (i44 + i142 * 50), i45 && i142 + i40 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i49 + 12288), in1 + (i50 + i142 * 50), i51 && i142 + i46 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i55 + 12288), in1 + (i56 + i142 * 50), i57 && i142 + i52 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i61 + 12288), in1 + (i62 + i142 * 50), i63 && i142 + i58 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i67 + 12288), in1 + (i68 + i142 * 50), i69 && i142 + i64 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i73 + 12288), in1 + (i74 + i142 * 50), i75 && i142 + i70 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i79 + 12288), in1 + (i80 + i142 * 50), i81 && i142 + i76 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i85 + 12288), in1 + (i86 + i142 * 50), i87 && i142 + i82 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i91 + 12288), in1 + (i92 + i142 * 50), i93 && i142 + i88 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i97 + 12288), in1 + (i98 + i142 * 50), i99 && i142 + i94 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i103 + 12288), in1 + (i104 + i142 * 50), i105 && i142 + i100 < 200);
                fc_copy_4((__local ushort *)tiles + (i141 * 4096 + i109 + 12288), in1 + (i110 + i142 * 50), i111 && i142 + i106 < 200);
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
            v123 = fc_multiply_f16(v131, v133.lo, v123);
            v124 = fc_multiply_f16(v131, v133.hi, v124);
            v125 = fc_multiply_f16(v131, v134.lo, v125);
            v126 = fc_multiply_f16(v131, v134.hi, v126);
            v127 = fc_multiply_f16(v132, v133.lo, v127);
            v128 = fc_multiply_f16(v132, v133.hi, v128);
            v129 = fc_multiply_f16(v132, v134.lo, v129);
            v130 = fc_multiply_f16(v132, v134.hi, v130);
            uint4 v143 = fc_fragment((__local ushort *)tiles + (i135 * 4096 + i117 + (i118 ^ 32)));
            uint4 v144 = fc_fragment((__local ushort *)tiles + (i135 * 4096 + i117 + (i118 ^ 32) + 1024));
            uint4 v145 = fc_fragment_transposed((__local ushort *)tiles + (i135 * 4096 + i121 + i122 + 2048));
            uint4 v146 = fc_fragment_transposed((__local ushort *)tiles + (i135 * 4096 + i121 + (i122 ^ 16) + 2048));
            v123 = fc_multiply_f16(v137, v139.lo, v123);
            v124 = fc_multiply_f16(v137, v139.hi, v124);
            v125 = fc_multiply_f16(v137, v140.lo, v125);
            v126 = fc_multiply_f16(v137, v140.hi, v126);
            v127 = fc_multiply_f16(v138, v139.lo, v127);
            v128 = fc_multiply_f16(v138, v139.hi, v128);
            v129 = fc_multiply_f16(v138, v140.lo, v129);
            v130 = fc_multiply_f16(v138, v140.hi, v130);
            uint4 v147 = fc_fragment((__local ushort *)tiles + (i135 * 4096 + i117 + (i118 ^ 48)));
            uint4 v148 = fc_fragment((__local ushort *)tiles + (i135 * 4096 + i117 + (i118 ^ 48) + 1024));
            uint4 v149 = fc_fragment_transposed((__local ushort *)tiles + (i135 * 4096 + i121 + i122 + 3072));
            uint4 v150 = fc_fragment_transposed((__local ushort *)tiles + (i135 * 4096 + i121 + (i122 ^ 16) + 3072));
            v123 = fc_multiply_f16(v143, v145.lo, v123);
            v124 = fc_multiply_f16(v143, v145.hi, v124);
            v125 = fc_multiply_f16(v143, v146.lo, v125);
            v126 = fc_multiply_f16(v143, v146.hi, v126);
            v127 = fc_multiply_f16(v144, v145.lo, v127);
            v128 = fc_multiply_f16(v144, v145.hi, v128);
            v129 = fc_multiply_f16(v144, v146.lo, v129);
            v130 = fc_multiply_f16(v144, v146.hi, v130);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            uint4 v151 = fc_fragment((__local ushort *)tiles + (i136 * 4096 + i117 + i118));
            uint4 v152 = fc_fragment((__local ushort *)tiles + (i136 * 4096 + i117 + i118 + 1024));
            uint4 v153 = fc_fragment_transposed((__local ushort *)tiles + (i136 * 4096 + i121 + i122));
            uint4 v154 = fc_fragment_transposed((__local ushort *)tiles + (i136 * 4096 + i121 + (i122 ^ 16)));
            v123 = fc_multiply_f16(v147, v149.lo, v123);
            v124 = fc_multiply_f16(v147, v149.hi, v124);
            v125 = fc_multiply_f16(v147, v150.lo, v125);
            v126 = fc_multiply_f16(v147, v150.hi, v126);
            v127 = fc_multiply_f16(v148, v149.lo, v127);
            v128 = fc_multiply_f16(v148, v149.hi, v128);
            v129 = fc_multiply_f16(v148, v150.lo, v129);
            v130 = fc_multiply_f16(v148, v150.hi, v130);
            v131 = v151;
            v132 = v152;
            v133 = v153;
            v134 = v154;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        int i155 = (int)((i113 + lid % 32 / 4) * 72 + i114 + lid % 4 * 2);
        float2 v156 = v123.lo;
        *(__local float2 *)(tiles + i155) = v156;
        float2 v157 = v123.hi;
        *(__local float2 *)(tiles + i155 + 576) = v157;
        float2 v158 = v124.lo;
        *(__local float2 *)(tiles + i155 + 8) = v158;
        float2 v159 = v124.hi;
        *(__local float2 *)(tiles + i155 + 584) = v159;
        float2 v160 = v125.lo;
        *(__local float2 *)(tiles + i155 + 16) = v160;
        float2 v161 = v125.hi;
        *(__local float2 *)(tiles + i155 + 592) = v161;
        float2 v162 = v126.lo;
        *(__local float2 *)(tiles + i155 + 24) = v162;
        float2 v163 = v126.hi;
        *(__local float2 *)(tiles + i155 + 600) = v163;
        float2 v164 = v127.lo;
        *(__local float2 *)(tiles + i155 + 1152) = v164;
        float2 v165 = v127.hi;
        *(__local float2 *)(tiles + i155 + 1728) = v165;
        float2 v166 = v128.lo;
        *(__local float2 *)(tiles + i155 + 1160) = v166;
        float2 v167 = v128.hi;
        *(__local float2 *)(tiles + i155 + 1736) = v167;
        float2 v168 = v129.lo;
        *(__local float2 *)(tiles + i155 + 1168) = v168;
        float2 v169 = v129.hi;
        *(__local float2 *)(tiles + i155 + 1744) = v169;
        float2 v170 = v130.lo;
        *(__local float2 *)(tiles + i155 + 1176) = v170;
        float2 v171 = v130.hi;
        *(__local float2 *)(tiles + i155 + 1752) = v171;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        #pragma unroll 4
        for (long e = lid; e < 1024; e += 128) {
            int i172 = (int)((int)e / 16);
            int i173 = (int)((int)e % 16 * 4);
            if (i4 + i172 < n && i5 + i173 < 50) {
                float4 v174 = *(__local float4 *)(tiles + i172 * 72 + i173);
                long i175 = i5 + i173;
                long i176 = min(4L, 50 - i175);
                long i177 = i4 + i172;
                float4 v178 = fc_round_float16_4(v174);
                fc_scatter_float16_4((v178 == v178 ? v178 : (float4)(as_float(0x7fc00000U))), out0 + (i177 * 50 + i175), 1, i176);
                if (any(v178 != v178)) {
                    if (0 < i176 && v178.s0 != v178.s0) ((__global ushort *)out0)[i177 * 50 + i175] = 0x7e00;
                    if (1 < i176 && v178.s1 != v178.s1) ((__global ushort *)out0)[i177 * 50 + i175 + 1] = 0x7e00;
                    if (2 < i176 && v178.s2 != v178.s2) ((__global ushort *)out0)[i177 * 50 + i175 + 2] = 0x7e00;
                    if (3 < i176 && v178.s3 != v178.s3) ((__global ushort *)out0)[i177 * 50 + i175 + 3] = 0x7e00;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
