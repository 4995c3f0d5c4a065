#pragma OPENCL FP_CONTRACT OFF

static inline void fc_await(uint barrier, uint parity) {
    asm volatile("{.reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1; @!done bra again;}"
                 :: "r"(barrier), "r"(parity) : "memory");
}

static inline void fc_arrive(uint barrier) {
    asm volatile("{.reg .b64 state; mbarrier.arrive.shared.b64 state, [%0];}" :: "r"(barrier) : "memory");
}

static inline void fc_expect(uint barrier, uint bytes) {
    asm volatile("{.reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1;}"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

static inline uint fc_uniform(uint x) {
    uint first;
    asm volatile("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;" : "=r"(first) : "r"(x));
    return first;
}

static inline void fc_copy_box_of(uint to, ulong map, int column, int row, int matrix, uint barrier) {
    asm volatile("//sm_90a cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(map), "r"(column), "r"(row), "r"(matrix), "r"(barrier) : "memory");
}

static inline ulong fc_operand(const __local void *from, ulong step) {
    return (ulong)(((uint)(size_t)from & 0x3ffff) >> 4) | step >> 4 << 16 | (ulong)(1024 >> 4) << 32 | (ulong)1 << 62;
}

static inline float fc_across(float a, uint bit) {
    float b;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(b) : "f"(a), "r"(bit));
    return b;
}

static inline float fc_normal_power(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static inline uint4 fc_pack_f16(float4 low, float4 high) {
    uint a, b, c, d;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(a) : "f"(low.s1), "f"(low.s0));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(b) : "f"(low.s3), "f"(low.s2));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(c) : "f"(high.s1), "f"(high.s0));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high.s3), "f"(high.s2));
    return (uint4)(a, b, c, d);
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

__kernel __attribute__((reqd_work_group_size(288, 1, 1)))
void k0(
    __global const half *restrict in0,
    __global half *restrict out0,
    __global uchar *maps0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local float tiles[20480] __attribute__((aligned(1024)));
    __local float results[3072] __attribute__((aligned(64)));
    __local float whole[128] __attribute__((aligned(64)));
    __local ulong barriers[16] __attribute__((aligned(64)));
    __local uint fields[96] __attribute__((aligned(128)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    const uint ring_full = (uint)(size_t)&barriers[0], ring_empty = ring_full + 64;
    uint ring_turn = 0;
    const uint ring_subgroup = fc_uniform((uint)lid / 32);
    const long ring_group = ring_subgroup / 4;
    const ulong ring_map0 = (ulong)(maps0 + (gid * 2 + 0) * 128);
    const ulong ring_map1 = (ulong)(maps0 + (gid * 2 + 1) * 128);
    if (lid < 32) {
        if (lid == 0) {
            for (int i = 0; i < 64; i++) fields[i] = 0;
            const ulong ring_fields0 = (ulong)(size_t)&fields[0];
            asm volatile("//sm_90a tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" :: "l"(ring_fields0), "l"((ulong)(in0 + 0)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 2;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"(128) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 2, %1;" :: "l"(ring_fields0), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(16) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"((uint)(130)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 2, %1;" :: "l"(ring_fields0), "r"(2147483647) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" :: "l"(ring_fields0), "l"((ulong)32) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 1, %1;" :: "l"(ring_fields0), "l"((ulong)4160) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 2, %1;" :: "l"(ring_fields0), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 6;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields0) : "memory");
            const ulong ring_fields1 = (ulong)(size_t)&fields[32];
            asm volatile("//sm_90a tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" :: "l"(ring_fields1), "l"((ulong)(in0 + 0)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 2;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"(64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 2, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(16) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"((uint)(130)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 2, %1;" :: "l"(ring_fields1), "r"(2147483647) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" :: "l"(ring_fields1), "l"((ulong)32) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 1, %1;" :: "l"(ring_fields1), "l"((ulong)4160) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 2, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 6;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields1) : "memory");
            for (int i = 0; i < 8; i++)
                asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(ring_full + 8 * i), "r"(1) : "memory");
            for (int i = 0; i < 8; i++)
                asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(ring_empty + 8 * i), "r"(8) : "memory");
            asm volatile("//sm_90a fence.mbarrier_init.release.cluster;" ::  : "memory");
        }
        asm volatile("//sm_90a bar.warp.sync -1;" ::  : "memory");
        asm volatile("//sm_90a tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" :: "l"(ring_map0), "l"((ulong)(size_t)&fields[0]) : "memory");
        asm volatile("//sm_90a tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" :: "l"(ring_map1), "l"((ulong)(size_t)&fields[32]) : "memory");
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (lid == 256) {
        asm volatile("//sm_90a fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(ring_map0) : "memory");
        asm volatile("//sm_90a fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(ring_map1) : "memory");
    }
    asm volatile("//sm_90a fence.proxy.async.shared::cta;" ::  : "memory");
    barrier(CLK_LOCAL_MEM_FENCE);
    if (ring_subgroup >= 8) {
        if (lid == 256) {
            for (long round = 0; round < ((n + gsize - 1) / gsize); round++) {
                long b = round * gsize + (round % 2 < 1 ? gid : gsize - 1 - gid);
                if (b < n) {
                    long i0 = n / 2;
                    long i1 = b % i0;
                    long i2 = (1 - b / i0) * 128;
                    long i3 = min(i2 + 128, 130L) - 1;
                    long i4 = i3 + 1;
                    long i5 = (i4 + 64 - 1) / 64;
                    for (long s = 0; s < 2 * i5; s++) {
                        const uint at = ring_turn + (uint)s;
                        const long stage = at % 8;
                        if (at >= 8) fc_await(ring_empty + 8 * (uint)stage, at / 8 - 1 & 1);
                        if (s == 0 && at >= 2) fc_await(ring_empty + 8 * ((at - 2) % 8), (at - 2) / 8 & 1);
                        if (s % 2 == 0) {
                            fc_expect(ring_full + 8 * (uint)stage, 8192 + (s == 0 ? 16384 : 0));
                            if (s == 0) fc_copy_box_of((uint)(size_t)((__local ushort *)tiles + (0)), ring_map0, (int)(0), (int)(i2), (int)(i1), ring_full + 8 * (uint)stage);
                            fc_copy_box_of((uint)(size_t)((__local ushort *)tiles + (8192 + stage * 4096)), ring_map1, (int)(0), (int)(s / 2 * 64), (int)(i1), ring_full + 8 * (uint)stage);
                        }
                        if (s % 2 == 1) {
                            fc_expect(ring_full + 8 * (uint)stage, 8192);
                            fc_copy_box_of((uint)(size_t)((__local ushort *)tiles + (8192 + stage * 4096)), ring_map1, (int)(0), (int)(s / 2 * 64), (int)(i1), ring_full + 8 * (uint)stage);
                        }
                    }
                    ring_turn += (uint)(2 * i5);
                }
            }
        }
    } else {
        for (long round = 0; round < ((n + gsize - 1) / gsize); round++) {
            long b = round * gsize + (round % 2 < 1 ? gid : gsize - 1 - gid);
            if (b < n) {
                long i6 = n / 2;
                long i7 = b % i6;
                long i8 = (1 - b / i6) * 128;
                long i9 = min(i8 + 128, 130L) - 1;
                int i10 = (int)(lid / 32 * 16);
                long i11 = i8 + i10 + lid % 32 / 4;
                float v12 = (float)(-0x1.fffffe0000000p+127f);
                float v13 = (float)(-0x1.fffffe0000000p+127f);
                float4 v14 = (float4)(0x0.0p+0f);
                float4 v15 = (float4)(0x1.71547652b82fep-2f);
                float4 v16 = (float4)(0x0.0p+0f);
                float4 v17 = (float4)(0x0.0p+0f);
                long i18 = i9 + 1;
                long i19 = (i18 + 64 - 1) / 64;
                if (i18 > 0) {
                    float4 v20 = (float4)(0x0.0p+0f);
                    float4 v21 = (float4)(0x0.0p+0f);
                    float4 v22 = (float4)(0x0.0p+0f);
                    float4 v23 = (float4)(0x0.0p+0f);
                    float4 v24 = (float4)(0x0.0p+0f);
                    float4 v25 = (float4)(0x0.0p+0f);
                    float4 v26 = (float4)(0x0.0p+0f);
                    float4 v27 = (float4)(0x0.0p+0f);
                    uint4 v28 = (uint4)((uint)(0UL));
                    uint4 v29 = (uint4)((uint)(0UL));
                    uint4 v30 = (uint4)((uint)(0UL));
                    uint4 v31 = (uint4)((uint)(0UL));
                    const long of_keys = (ring_turn + (uint)(0)) % 8;
                    fc_await(ring_full + 8 * (uint)of_keys, (ring_turn + (uint)(0)) / 8 & 1);
                    {
                        const ulong left = fc_operand((const __local ushort *)tiles + (ring_group * 4096), 16);
                        const ulong right = fc_operand((const __local ushort *)tiles + (8192 + of_keys * 4096), 16);
                        float v20_0, v20_1, v20_2, v20_3, v21_0, v21_1, v21_2, v21_3, v22_0, v22_1, v22_2, v22_3, v23_0, v23_1, v23_2, v23_3, v24_0, v24_1, v24_2, v24_3, v25_0, v25_1, v25_2, v25_3, v26_0, v26_1, v26_2, v26_3, v27_0, v27_1, v27_2, v27_3;
                        asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; .reg .pred no; setp.eq.b32 no, 1, 0; wgmma.fence.sync.aligned; add.s64 a, %32, 0; add.s64 b, %33, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, a, b, no, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                                     : "=f"(v20_0), "=f"(v20_1), "=f"(v20_2), "=f"(v20_3), "=f"(v21_0), "=f"(v21_1), "=f"(v21_2), "=f"(v21_3), "=f"(v22_0), "=f"(v22_1), "=f"(v22_2), "=f"(v22_3), "=f"(v23_0), "=f"(v23_1), "=f"(v23_2), "=f"(v23_3), "=f"(v24_0), "=f"(v24_1), "=f"(v24_2), "=f"(v24_3), "=f"(v25_0), "=f"(v25_1), "=f"(v25_2), "=f"(v25_3), "=f"(v26_0), "=f"(v26_1), "=f"(v26_2), "=f"(v26_3), "=f"(v27_0), "=f"(v27_1), "=f"(v27_2), "=f"(v27_3)
                                     : "l"(left), "l"(right) : "memory");
                        v20 = (float4)(v20_0, v20_1, v20_2, v20_3);
                        v21 = (float4)(v21_0, v21_1, v21_2, v21_3);
                        v22 = (float4)(v22_0, v22_1, v22_2, v22_3);
                        v23 = (float4)(v23_0, v23_1, v23_2, v23_3);
                        v24 = (float4)(v24_0, v24_1, v24_2, v24_3);
                        v25 = (float4)(v25_0, v25_1, v25_2, v25_3);
                        v26 = (float4)(v26_0, v26_1, v26_2, v26_3);
                        v27 = (float4)(v27_0, v27_1, v27_2, v27_3);
                    }
                    if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)of_keys);
                    long i85 = i8 + 1;
                    if (i85 < 64) {
                        float2 v32 = (float2)(-INFINITY);
                        int i33 = (int)(0 - lid % 4 * 2);
                        int i34 = (int)(i11 + 1 - lid % 4 * 2);
                        int i35 = (int)(0 - lid % 4 * 2);
                        int i36 = (int)(i11 + 8 + 1 - lid % 4 * 2);
                        float2 v37 = v20.lo;
                        int2 v38 = ((int2)(0, 1) < (int2)((int)(i34)));
                        float2 v39 = (v38 ? v37 : v32);
                        float2 v40 = v20.hi;
                        int2 v41 = ((int2)(0, 1) < (int2)((int)(i36)));
                        float2 v42 = (v41 ? v40 : v32);
                        v20 = (float4)(v39, v42);
                        float2 v43 = v21.lo;
                        int2 v44 = ((int2)(0, 1) < (int2)((int)(i34 - 8)));
                        float2 v45 = (v44 ? v43 : v32);
                        float2 v46 = v21.hi;
                        int2 v47 = ((int2)(0, 1) < (int2)((int)(i36 - 8)));
                        float2 v48 = (v47 ? v46 : v32);
                        v21 = (float4)(v45, v48);
                        float2 v49 = v22.lo;
                        int2 v50 = ((int2)(0, 1) < (int2)((int)(i34 - 16)));
                        float2 v51 = (v50 ? v49 : v32);
                        float2 v52 = v22.hi;
                        int2 v53 = ((int2)(0, 1) < (int2)((int)(i36 - 16)));
                        float2 v54 = (v53 ? v52 : v32);
                        v22 = (float4)(v51, v54);
                        float2 v55 = v23.lo;
                        int2 v56 = ((int2)(0, 1) < (int2)((int)(i34 - 24)));
                        float2 v57 = (v56 ? v55 : v32);
                        float2 v58 = v23.hi;
                        int2 v59 = ((int2)(0, 1) < (int2)((int)(i36 - 24)));
                        float2 v60 = (v59 ? v58 : v32);
                        v23 = (float4)(v57, v60);
                        float2 v61 = v24.lo;
                        int2 v62 = ((int2)(0, 1) < (int2)((int)(i34 - 32)));
                        float2 v63 = (v62 ? v61 : v32);
                        float2 v64 = v24.hi;
                        int2 v65 = ((int2)(0, 1) < (int2)((int)(i36 - 32)));
                        float2 v66 = (v65 ? v64 : v32);
                        v24 = (float4)(v63, v66);
                        float2 v67 = v25.lo;
                        int2 v68 = ((int2)(0, 1) < (int2)((int)(i34 - 40)));
                        float2 v69 = (v68 ? v67 : v32);
                        float2 v70 = v25.hi;
                        int2 v71 = ((int2)(0, 1) < (int2)((int)(i36 - 40)));
                        float2 v72 = (v71 ? v70 : v32);
                        v25 = (float4)(v69, v72);
                        float2 v73 = v26.lo;
                        int2 v74 = ((int2)(0, 1) < (int2)((int)(i34 - 48)));
                        float2 v75 = (v74 ? v73 : v32);
                        float2 v76 = v26.hi;
                        int2 v77 = ((int2)(0, 1) < (int2)((int)(i36 - 48)));
                        float2 v78 = (v77 ? v76 : v32);
                        v26 = (float4)(v75, v78);
                        float2 v79 = v27.lo;
                        int2 v80 = ((int2)(0, 1) < (int2)((int)(i34 - 56)));
                        float2 v81 = (v80 ? v79 : v32);
                        float2 v82 = v27.hi;
                        int2 v83 = ((int2)(0, 1) < (int2)((int)(i36 - 56)));
                        float2 v84 = (v83 ? v82 : v32);
                        v27 = (float4)(v81, v84);
                    }
                    float2 v86 = v20.lo;
                    float2 v87 = v21.lo;
                    float2 v88 = fmax(v86, v87);
                    float2 v89 = v22.lo;
                    float2 v90 = fmax(v88, v89);
                    float2 v91 = v23.lo;
                    float2 v92 = fmax(v90, v91);
                    float2 v93 = v24.lo;
                    float2 v94 = fmax(v92, v93);
                    float2 v95 = v25.lo;
                    float2 v96 = fmax(v94, v95);
                    float2 v97 = v26.lo;
                    float2 v98 = fmax(v96, v97);
                    float2 v99 = v27.lo;
                    float2 v100 = fmax(v98, v99);
                    float v101 = v100.lo;
                    float v102 = v100.hi;
                    float v103 = fmax(v101, v102);
                    float v104 = fc_across(v103, 1);
                    float v105 = fmax(v103, v104);
                    float v106 = fc_across(v105, 2);
                    float v107 = fmax(v105, v106);
                    float v108 = fmax(v107, v12);
                    float2 v109 = v20.hi;
                    float2 v110 = v21.hi;
                    float2 v111 = fmax(v109, v110);
                    float2 v112 = v22.hi;
                    float2 v113 = fmax(v111, v112);
                    float2 v114 = v23.hi;
                    float2 v115 = fmax(v113, v114);
                    float2 v116 = v24.hi;
                    float2 v117 = fmax(v115, v116);
                    float2 v118 = v25.hi;
                    float2 v119 = fmax(v117, v118);
                    float2 v120 = v26.hi;
                    float2 v121 = fmax(v119, v120);
                    float2 v122 = v27.hi;
                    float2 v123 = fmax(v121, v122);
                    float v124 = v123.lo;
                    float v125 = v123.hi;
                    float v126 = fmax(v124, v125);
                    float v127 = fc_across(v126, 1);
                    float v128 = fmax(v126, v127);
                    float v129 = fc_across(v128, 2);
                    float v130 = fmax(v128, v129);
                    float v131 = fmax(v130, v13);
                    float v132 = v15.s0;
                    float v133 = (float)(-0x1.fffffe0000000p+127f);
                    float v134 = (v108 * v132);
                    float v135 = fmax(v134, v133);
                    float v136 = (float)(-0x1.0000000000000p+0f);
                    float v137 = (v135 * v136);
                    float v138 = v15.s0;
                    float v139 = (float)(-0x1.fffffe0000000p+127f);
                    float v140 = (v131 * v138);
                    float v141 = fmax(v140, v139);
                    float v142 = (float)(-0x1.0000000000000p+0f);
                    float v143 = (v141 * v142);
                    float v144 = v15.s0;
                    float v145 = fma(v12, v144, v137);
                    float v146 = native_exp2(v145);
                    float v147 = v15.s0;
                    float v148 = fma(v13, v147, v143);
                    float v149 = native_exp2(v148);
                    float2 v150 = (float2)(v146);
                    float2 v151 = (float2)(v149);
                    float4 v152 = (float4)(v150, v151);
                    float2 v153 = (float2)(v137);
                    float2 v154 = (float2)(v143);
                    float4 v155 = (float4)(v153, v154);
                    float4 v156 = v15;
                    float4 v157 = fma(v20, v156, v155);
                    float4 v158 = (float4)(fc_normal_power(v157.s0), fc_normal_power(v157.s1), fc_normal_power(v157.s2), fc_normal_power(v157.s3));
                    float4 v159 = v15;
                    float4 v160 = fma(v21, v159, v155);
                    float4 v161 = (float4)(fc_normal_power(v160.s0), fc_normal_power(v160.s1), fc_normal_power(v160.s2), fc_normal_power(v160.s3));
                    float4 v162 = v15;
                    float4 v163 = fma(v22, v162, v155);
                    float4 v164 = (float4)(fc_normal_power(v163.s0), fc_normal_power(v163.s1), fc_normal_power(v163.s2), fc_normal_power(v163.s3));
                    float4 v165 = v15;
                    float4 v166 = fma(v23, v165, v155);
                    float4 v167 = (float4)(fc_normal_power(v166.s0), fc_normal_power(v166.s1), fc_normal_power(v166.s2), fc_normal_power(v166.s3));
                    float4 v168 = v15;
                    float4 v169 = fma(v24, v168, v155);
                    float4 v170 = (float4)(fc_normal_power(v169.s0), fc_normal_power(v169.s1), fc_normal_power(v169.s2), fc_normal_power(v169.s3));
                    float4 v171 = v15;
                    float4 v172 = fma(v25, v171, v155);
                    float4 v173 = (float4)(fc_normal_power(v172.s0), fc_normal_power(v172.s1), fc_normal_power(v172.s2), fc_normal_power(v172.s3));
                    float4 v174 = v15;
                    float4 v175 = fma(v26, v174, v155);
                    float4 v176 = (float4)(fc_normal_power(v175.s0), fc_normal_power(v175.s1), fc_normal_power(v175.s2), fc_normal_power(v175.s3));
                    float4 v177 = v15;
                    float4 v178 = fma(v27, v177, v155);
                    float4 v179 = (float4)(fc_normal_power(v178.s0), fc_normal_power(v178.s1), fc_normal_power(v178.s2), fc_normal_power(v178.s3));
                    float4 v180 = (v14 * v152);
                    float4 v181 = (v180 + v158);
                    float4 v182 = (v181 + v161);
                    float4 v183 = (v182 + v164);
                    float4 v184 = (v183 + v167);
                    float4 v185 = (v184 + v170);
                    float4 v186 = (v185 + v173);
                    float4 v187 = (v186 + v176);
                    float4 v188 = (v187 + v179);
                    v14 = v188;
                    v12 = v108;
                    v13 = v131;
                    v28 = fc_pack_f16(v158, v161);
                    v29 = fc_pack_f16(v164, v167);
                    v30 = fc_pack_f16(v170, v173);
                    v31 = fc_pack_f16(v176, v179);
                    for (long t = 64; t < i18; t += 64) {
                        long i189 = t / 64;
                        const long of_keys = (ring_turn + (uint)(2 * i189)) % 8;
                        fc_await(ring_full + 8 * (uint)of_keys, (ring_turn + (uint)(2 * i189)) / 8 & 1);
                        const long of_values = (ring_turn + (uint)(2 * i189 - 1)) % 8;
                        fc_await(ring_full + 8 * (uint)of_values, (ring_turn + (uint)(2 * i189 - 1)) / 8 & 1);
                        const ulong first_left = fc_operand((const __local ushort *)tiles + (ring_group * 4096), 16);
                        const ulong first_right = fc_operand((const __local ushort *)tiles + (8192 + of_keys * 4096), 16);
                        float v20_0, v20_1, v20_2, v20_3, v21_0, v21_1, v21_2, v21_3, v22_0, v22_1, v22_2, v22_3, v23_0, v23_1, v23_2, v23_3, v24_0, v24_1, v24_2, v24_3, v25_0, v25_1, v25_2, v25_3, v26_0, v26_1, v26_2, v26_3, v27_0, v27_1, v27_2, v27_3;
                        asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; .reg .pred no; setp.eq.b32 no, 1, 0; wgmma.fence.sync.aligned; add.s64 a, %32, 0; add.s64 b, %33, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, a, b, no, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;}"
                                     : "=f"(v20_0), "=f"(v20_1), "=f"(v20_2), "=f"(v20_3), "=f"(v21_0), "=f"(v21_1), "=f"(v21_2), "=f"(v21_3), "=f"(v22_0), "=f"(v22_1), "=f"(v22_2), "=f"(v22_3), "=f"(v23_0), "=f"(v23_1), "=f"(v23_2), "=f"(v23_3), "=f"(v24_0), "=f"(v24_1), "=f"(v24_2), "=f"(v24_3), "=f"(v25_0), "=f"(v25_1), "=f"(v25_2), "=f"(v25_3), "=f"(v26_0), "=f"(v26_1), "=f"(v26_2), "=f"(v26_3), "=f"(v27_0), "=f"(v27_1), "=f"(v27_2), "=f"(v27_3)
                                     : "l"(first_left), "l"(first_right) : "memory");
                        const ulong second_right = fc_operand((const __local ushort *)tiles + (8192 + of_values * 4096), 8192);
                        float v16_0 = v16.s0, v16_1 = v16.s1, v16_2 = v16.s2, v16_3 = v16.s3, v17_0 = v17.s0, v17_1 = v17.s1, v17_2 = v17.s2, v17_3 = v17.s3;
                        asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned; add.s64 b, %24, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, b, yes, 1, 1, 1; add.s64 b, %24, 128; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%12, %13, %14, %15}, b, yes, 1, 1, 1; add.s64 b, %24, 256; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%16, %17, %18, %19}, b, yes, 1, 1, 1; add.s64 b, %24, 384; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%20, %21, %22, %23}, b, yes, 1, 1, 1; wgmma.commit_group.sync.aligned;}"
                                     : "+f"(v16_0), "+f"(v16_1), "+f"(v16_2), "+f"(v16_3), "+f"(v17_0), "+f"(v17_1), "+f"(v17_2), "+f"(v17_3)
                                     : "r"(v28.s0), "r"(v28.s1), "r"(v28.s2), "r"(v28.s3), "r"(v29.s0), "r"(v29.s1), "r"(v29.s2), "r"(v29.s3), "r"(v30.s0), "r"(v30.s1), "r"(v30.s2), "r"(v30.s3), "r"(v31.s0), "r"(v31.s1), "r"(v31.s2), "r"(v31.s3), "l"(second_right) : "memory");
                        asm volatile("//sm_90a wgmma.wait_group.sync.aligned 1;" : "+f"(v20_0), "+f"(v20_1), "+f"(v20_2), "+f"(v20_3), "+f"(v21_0), "+f"(v21_1), "+f"(v21_2), "+f"(v21_3), "+f"(v22_0), "+f"(v22_1), "+f"(v22_2), "+f"(v22_3), "+f"(v23_0), "+f"(v23_1), "+f"(v23_2), "+f"(v23_3), "+f"(v24_0), "+f"(v24_1), "+f"(v24_2), "+f"(v24_3), "+f"(v25_0), "+f"(v25_1), "+f"(v25_2), "+f"(v25_3), "+f"(v26_0), "+f"(v26_1), "+f"(v26_2), "+f"(v26_3), "+f"(v27_0), "+f"(v27_1), "+f"(v27_2), "+f"(v27_3) :  : "memory");
                        v20 = (float4)(v20_0, v20_1, v20_2, v20_3);
                        v21 = (float4)(v21_0, v21_1, v21_2, v21_3);
                        v22 = (float4)(v22_0, v22_1, v22_2, v22_3);
                        v23 = (float4)(v23_0, v23_1, v23_2, v23_3);
                        v24 = (float4)(v24_0, v24_1, v24_2, v24_3);
                        v25 = (float4)(v25_0, v25_1, v25_2, v25_3);
                        v26 = (float4)(v26_0, v26_1, v26_2, v26_3);
                        v27 = (float4)(v27_0, v27_1, v27_2, v27_3);
                        if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)of_keys);
                        long i243 = i8 + 1;
                        if (t < 0 || t + 64 > i243) {
                            float2 v190 = (float2)(-INFINITY);
                            int i191 = (int)(0 - (t + lid % 4 * 2));
                            int i192 = (int)(i11 + 1 - (t + lid % 4 * 2));
                            int i193 = (int)(0 - (t + lid % 4 * 2));
                            int i194 = (int)(i11 + 8 + 1 - (t + lid % 4 * 2));
                            float2 v195 = v20.lo;
                            int2 v196 = ((int2)(0, 1) < (int2)((int)(i192)));
                            float2 v197 = (v196 ? v195 : v190);
                            float2 v198 = v20.hi;
                            int2 v199 = ((int2)(0, 1) < (int2)((int)(i194)));
                            float2 v200 = (v199 ? v198 : v190);
                            v20 = (float4)(v197, v200);
                            float2 v201 = v21.lo;
                            int2 v202 = ((int2)(0, 1) < (int2)((int)(i192 - 8)));
                            float2 v203 = (v202 ? v201 : v190);
                            float2 v204 = v21.hi;
                            int2 v205 = ((int2)(0, 1) < (int2)((int)(i194 - 8)));
                            float2 v206 = (v205 ? v204 : v190);
                            v21 = (float4)(v203, v206);
                            float2 v207 = v22.lo;
                            int2 v208 = ((int2)(0, 1) < (int2)((int)(i192 - 16)));
                            float2 v209 = (v208 ? v207 : v190);
                            float2 v210 = v22.hi;
                            int2 v211 = ((int2)(0, 1) < (int2)((int)(i194 - 16)));
                            float2 v212 = (v211 ? v210 : v190);
                            v22 = (float4)(v209, v212);
                            float2 v213 = v23.lo;
                            int2 v214 = ((int2)(0, 1) < (int2)((int)(i192 - 24)));
                            float2 v215 = (v214 ? v213 : v190);
                            float2 v216 = v23.hi;
                            int2 v217 = ((int2)(0, 1) < (int2)((int)(i194 - 24)));
                            float2 v218 = (v217 ? v216 : v190);
                            v23 = (float4)(v215, v218);
                            float2 v219 = v24.lo;
                            int2 v220 = ((int2)(0, 1) < (int2)((int)(i192 - 32)));
                            float2 v221 = (v220 ? v219 : v190);
                            float2 v222 = v24.hi;
                            int2 v223 = ((int2)(0, 1) < (int2)((int)(i194 - 32)));
                            float2 v224 = (v223 ? v222 : v190);
                            v24 = (float4)(v221, v224);
                            float2 v225 = v25.lo;
                            int2 v226 = ((int2)(0, 1) < (int2)((int)(i192 - 40)));
                            float2 v227 = (v226 ? v225 : v190);
                            float2 v228 = v25.hi;
                            int2 v229 = ((int2)(0, 1) < (int2)((int)(i194 - 40)));
                            float2 v230 = (v229 ? v228 : v190);
                            v25 = (float4)(v227, v230);
                            float2 v231 = v26.lo;
                            int2 v232 = ((int2)(0, 1) < (int2)((int)(i192 - 48)));
                            float2 v233 = (v232 ? v231 : v190);
                            float2 v234 = v26.hi;
                            int2 v235 = ((int2)(0, 1) < (int2)((int)(i194 - 48)));
                            float2 v236 = (v235 ? v234 : v190);
                            v26 = (float4)(v233, v236);
                            float2 v237 = v27.lo;
                            int2 v238 = ((int2)(0, 1) < (int2)((int)(i192 - 56)));
                            float2 v239 = (v238 ? v237 : v190);
                            float2 v240 = v27.hi;
                            int2 v241 = ((int2)(0, 1) < (int2)((int)(i194 - 56)));
                            float2 v242 = (v241 ? v240 : v190);
                            v27 = (float4)(v239, v242);
                        }
                        float2 v244 = v20.lo;
                        float2 v245 = v21.lo;
                        float2 v246 = fmax(v244, v245);
                        float2 v247 = v22.lo;
                        float2 v248 = fmax(v246, v247);
                        float2 v249 = v23.lo;
                        float2 v250 = fmax(v248, v249);
                        float2 v251 = v24.lo;
                        float2 v252 = fmax(v250, v251);
                        float2 v253 = v25.lo;
                        float2 v254 = fmax(v252, v253);
                        float2 v255 = v26.lo;
                        float2 v256 = fmax(v254, v255);
                        float2 v257 = v27.lo;
                        float2 v258 = fmax(v256, v257);
                        float v259 = v258.lo;
                        float v260 = v258.hi;
                        float v261 = fmax(v259, v260);
                        float v262 = fc_across(v261, 1);
                        float v263 = fmax(v261, v262);
                        float v264 = fc_across(v263, 2);
                        float v265 = fmax(v263, v264);
                        float v266 = fmax(v265, v12);
                        float2 v267 = v20.hi;
                        float2 v268 = v21.hi;
                        float2 v269 = fmax(v267, v268);
                        float2 v270 = v22.hi;
                        float2 v271 = fmax(v269, v270);
                        float2 v272 = v23.hi;
                        float2 v273 = fmax(v271, v272);
                        float2 v274 = v24.hi;
                        float2 v275 = fmax(v273, v274);
                        float2 v276 = v25.hi;
                        float2 v277 = fmax(v275, v276);
                        float2 v278 = v26.hi;
                        float2 v279 = fmax(v277, v278);
                        float2 v280 = v27.hi;
                        float2 v281 = fmax(v279, v280);
                        float v282 = v281.lo;
                        float v283 = v281.hi;
                        float v284 = fmax(v282, v283);
                        float v285 = fc_across(v284, 1);
                        float v286 = fmax(v284, v285);
                        float v287 = fc_across(v286, 2);
                        float v288 = fmax(v286, v287);
                        float v289 = fmax(v288, v13);
                        float v290 = v15.s0;
                        float v291 = (float)(-0x1.fffffe0000000p+127f);
                        float v292 = (v266 * v290);
                        float v293 = fmax(v292, v291);
                        float v294 = (float)(-0x1.0000000000000p+0f);
                        float v295 = (v293 * v294);
                        float v296 = v15.s0;
                        float v297 = (float)(-0x1.fffffe0000000p+127f);
                        float v298 = (v289 * v296);
                        float v299 = fmax(v298, v297);
                        float v300 = (float)(-0x1.0000000000000p+0f);
                        float v301 = (v299 * v300);
                        float v302 = v15.s0;
                        float v303 = fma(v12, v302, v295);
                        float v304 = native_exp2(v303);
                        float v305 = v15.s0;
                        float v306 = fma(v13, v305, v301);
                        float v307 = native_exp2(v306);
                        float2 v308 = (float2)(v304);
                        float2 v309 = (float2)(v307);
                        float4 v310 = (float4)(v308, v309);
                        float2 v311 = (float2)(v295);
                        float2 v312 = (float2)(v301);
                        float4 v313 = (float4)(v311, v312);
                        float4 v314 = v15;
                        float4 v315 = fma(v20, v314, v313);
                        float4 v316 = (float4)(fc_normal_power(v315.s0), fc_normal_power(v315.s1), fc_normal_power(v315.s2), fc_normal_power(v315.s3));
                        float4 v317 = v15;
                        float4 v318 = fma(v21, v317, v313);
                        float4 v319 = (float4)(fc_normal_power(v318.s0), fc_normal_power(v318.s1), fc_normal_power(v318.s2), fc_normal_power(v318.s3));
                        float4 v320 = v15;
                        float4 v321 = fma(v22, v320, v313);
                        float4 v322 = (float4)(fc_normal_power(v321.s0), fc_normal_power(v321.s1), fc_normal_power(v321.s2), fc_normal_power(v321.s3));
                        float4 v323 = v15;
                        float4 v324 = fma(v23, v323, v313);
                        float4 v325 = (float4)(fc_normal_power(v324.s0), fc_normal_power(v324.s1), fc_normal_power(v324.s2), fc_normal_power(v324.s3));
                        float4 v326 = v15;
                        float4 v327 = fma(v24, v326, v313);
                        float4 v328 = (float4)(fc_normal_power(v327.s0), fc_normal_power(v327.s1), fc_normal_power(v327.s2), fc_normal_power(v327.s3));
                        float4 v329 = v15;
                        float4 v330 = fma(v25, v329, v313);
                        float4 v331 = (float4)(fc_normal_power(v330.s0), fc_normal_power(v330.s1), fc_normal_power(v330.s2), fc_normal_power(v330.s3));
                        float4 v332 = v15;
                        float4 v333 = fma(v26, v332, v313);
                        float4 v334 = (float4)(fc_normal_power(v333.s0), fc_normal_power(v333.s1), fc_normal_power(v333.s2), fc_normal_power(v333.s3));
                        float4 v335 = v15;
                        float4 v336 = fma(v27, v335, v313);
                        float4 v337 = (float4)(fc_normal_power(v336.s0), fc_normal_power(v336.s1), fc_normal_power(v336.s2), fc_normal_power(v336.s3));
                        float4 v338 = (v14 * v310);
                        float4 v339 = (v338 + v316);
                        float4 v340 = (v339 + v319);
                        float4 v341 = (v340 + v322);
                        float4 v342 = (v341 + v325);
                        float4 v343 = (v342 + v328);
                        float4 v344 = (v343 + v331);
                        float4 v345 = (v344 + v334);
                        float4 v346 = (v345 + v337);
                        v14 = v346;
                        v12 = v266;
                        v13 = v289;
                        asm volatile("//sm_90a wgmma.wait_group.sync.aligned 0;" : "+f"(v16_0), "+f"(v16_1), "+f"(v16_2), "+f"(v16_3), "+f"(v17_0), "+f"(v17_1), "+f"(v17_2), "+f"(v17_3) : "r"(v28.s0), "r"(v28.s1), "r"(v28.s2), "r"(v28.s3), "r"(v29.s0), "r"(v29.s1), "r"(v29.s2), "r"(v29.s3), "r"(v30.s0), "r"(v30.s1), "r"(v30.s2), "r"(v30.s3), "r"(v31.s0), "r"(v31.s1), "r"(v31.s2), "r"(v31.s3) : "memory");
                        v16 = (float4)(v16_0, v16_1, v16_2, v16_3);
                        v17 = (float4)(v17_0, v17_1, v17_2, v17_3);
                        if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)of_values);
                        float4 v347 = (v16 * v310);
                        v16 = v347;
                        float4 v348 = (v17 * v310);
                        v17 = v348;
                        v28 = fc_pack_f16(v316, v319);
                        v29 = fc_pack_f16(v322, v325);
                        v30 = fc_pack_f16(v328, v331);
                        v31 = fc_pack_f16(v334, v337);
                    }
                    const long of_values = (ring_turn + (uint)(2 * i19 - 1)) % 8;
                    fc_await(ring_full + 8 * (uint)of_values, (ring_turn + (uint)(2 * i19 - 1)) / 8 & 1);
                    {
                        const ulong right = fc_operand((const __local ushort *)tiles + (8192 + of_values * 4096), 8192);
                        float v16_0 = v16.s0, v16_1 = v16.s1, v16_2 = v16.s2, v16_3 = v16.s3, v17_0 = v17.s0, v17_1 = v17.s1, v17_2 = v17.s2, v17_3 = v17.s3;
                        asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned; add.s64 b, %24, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, b, yes, 1, 1, 1; add.s64 b, %24, 128; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%12, %13, %14, %15}, b, yes, 1, 1, 1; add.s64 b, %24, 256; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%16, %17, %18, %19}, b, yes, 1, 1, 1; add.s64 b, %24, 384; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%20, %21, %22, %23}, b, yes, 1, 1, 1; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                                     : "+f"(v16_0), "+f"(v16_1), "+f"(v16_2), "+f"(v16_3), "+f"(v17_0), "+f"(v17_1), "+f"(v17_2), "+f"(v17_3)
                                     : "r"(v28.s0), "r"(v28.s1), "r"(v28.s2), "r"(v28.s3), "r"(v29.s0), "r"(v29.s1), "r"(v29.s2), "r"(v29.s3), "r"(v30.s0), "r"(v30.s1), "r"(v30.s2), "r"(v30.s3), "r"(v31.s0), "r"(v31.s1), "r"(v31.s2), "r"(v31.s3), "l"(right) : "memory");
                        v16 = (float4)(v16_0, v16_1, v16_2, v16_3);
                        v17 = (float4)(v17_0, v17_1, v17_2, v17_3);
                    }
                    if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)of_values);
                }
                ring_turn += (uint)(2 * i19);
                int i349 = (int)(i10 + (int)lid % 32 / 4);
                asm volatile("bar.sync %0, 128;" :: "r"((uint)ring_group + 1) : "memory");
                float2 v350 = v14.lo;
                float v351 = v350.lo;
                float v352 = v350.hi;
                float v353 = (v351 + v352);
                float v354 = fc_across(v353, 1);
                float v355 = (v353 + v354);
                float v356 = fc_across(v355, 2);
                float v357 = (v355 + v356);
                whole[i349] = v357;
                float2 v358 = v14.hi;
                float v359 = v358.lo;
                float v360 = v358.hi;
                float v361 = (v359 + v360);
                float v362 = fc_across(v361, 1);
                float v363 = (v361 + v362);
                float v364 = fc_across(v363, 2);
                float v365 = (v363 + v364);
                whole[i349 + 8] = v365;
                asm volatile("bar.sync %0, 128;" :: "r"((uint)ring_group + 1) : "memory");
                int i366 = (int)((i10 + lid % 32 / 4) * 24 + lid % 4 * 2);
                float2 v367 = v16.lo;
                *(__local float2 *)(results + i366) = v367;
                float2 v368 = v16.hi;
                *(__local float2 *)(results + i366 + 192) = v368;
                float2 v369 = v17.lo;
                *(__local float2 *)(results + i366 + 8) = v369;
                float2 v370 = v17.hi;
                *(__local float2 *)(results + i366 + 200) = v370;
                asm volatile("bar.sync %0, 128;" :: "r"((uint)ring_group + 1) : "memory");
                #pragma unroll 4
                for (long e = ring_group * 256 + lid % 128; e < ((ring_group + 1) * 256); e += 128) {
                    int i371 = (int)((int)e / 4);
                    int i372 = (int)((int)e % 4 * 4);
                    if (i8 + i371 <= i9 && i372 < 16) {
                        float4 v373 = *(__local float4 *)(results + i371 * 24 + i372);
                        long i374 = i8 + i371;
                        long i375 = (long)i372;
                        float v376 = whole[i371];
                        float4 v377 = (float4)(0x0.0p+0f);
                        float4 v378 = (float4)(v376);
                        int4 v379 = (v378 == v377);
                        float4 v380 = (v373 / v378);
                        float4 v381 = (v379 ? v377 : v380);
                        float2 v382 = v381.lo;
                        float2 v383 = v381.hi;
                        float2 v384 = (v382 + v383);
                        float v385 = v384.lo;
                        float v386 = v384.hi;
                        float v387 = (v385 + v386);
                        if (isnan(v387) && isfinite(v376)) {
                            float v388 = (float)(-0x1.fffffe0000000p+127f);
                            float v389 = (float)(0x0.0p+0f);
                            float4 v390 = (float4)(0x0.0p+0f);
                            long i391 = i7 + (n >> 62);
                            long i392 = i391 * 2080;
                            long i393 = i391 * 2080;
                            long i394 = i391 * 2080;
                            for (long u = 0; u < (i374 + 1); u++) {
                                float v395 = (float)(0x0.0p+0f);
                                for (long c = 0; c < 16; c++) {
                                    float v396 = vload_half(i392 + i374 * 16 + c, in0);
                                    float v397 = vload_half(i393 + u * 16 + c, in0);
                                    v395 = fma(v396, v397, v395);
                                }
                                float v398 = (float)(0x1.71547652b82fep-2f);
                                float v399 = (v395 * v398);
                                float v400 = fmax(v388, v399);
                                float v401 = (v388 - v400);
                                float v402 = native_exp2(v401);
                                float v403 = (v399 - v400);
                                float v404 = native_exp2(v403);
                                v389 = fma(v389, v402, v404);
                                v388 = v400;
                                float4 v405 = vload_half4(0, in0 + (i394 + u * 16 + i375));
                                float4 v406 = (float4)(v402);
                                float4 v407 = (v390 * v406);
                                float4 v408 = (float4)(v404);
                                v390 = fma(v408, v405, v407);
                            }
                            float4 v409 = (float4)(0x0.0p+0f);
                            float4 v410 = (float4)(v389);
                            int4 v411 = (v410 == v409);
                            float4 v412 = (v390 / v410);
                            float4 v413 = (v411 ? v409 : v412);
                            v381 = v413;
                        }
                        float4 v414 = fc_round_float16_4(v381);
                        vstore_half4((v414 == v414 ? v414 : (float4)(as_float(0x7fc00000U))), 0, out0 + (i7 * 2080 + i374 * 16 + i375));
                        if (any(v414 != v414)) {
                            if (v414.s0 != v414.s0) ((__global ushort *)out0)[i7 * 2080 + i374 * 16 + i375] = 0x7e00;
                            if (v414.s1 != v414.s1) ((__global ushort *)out0)[i7 * 2080 + i374 * 16 + i375 + 1] = 0x7e00;
                            if (v414.s2 != v414.s2) ((__global ushort *)out0)[i7 * 2080 + i374 * 16 + i375 + 2] = 0x7e00;
                            if (v414.s3 != v414.s3) ((__global ushort *)out0)[i7 * 2080 + i374 * 16 + i375 + 3] = 0x7e00;
                        }
                    }
                }
            }
        }
    }
}
