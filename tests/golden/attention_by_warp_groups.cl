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

static inline ushort4 fc_packed(float4 x) {
    uint2 both;
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(both.s0) : "f"(x.s0), "f"(x.s1));
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(both.s1) : "f"(x.s2), "f"(x.s3));
    // Platforms give NaNs different bits.
    return convert_short4(x == x) ? as_ushort4(both) : (ushort4)(0x7e00);
}

static inline void fc_store_float16_4(__global half *to, float4 x) {
    const ushort4 bits = fc_packed(x);
    if ((ulong)to % 8 == 0) *(__global ushort4 *)to = bits;
    else vstore4(bits, 0, (__global ushort *)to);
}

__kernel __attribute__((reqd_work_group_size(384, 1, 1)))
void k0(
    __global const half *restrict in0,
    __global half *restrict out0,
    __global uchar *maps0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local float tiles[36864] __attribute__((aligned(1024)));
    __local float results[3072] __attribute__((aligned(64)));
    __local float whole[1152] __attribute__((aligned(64)));
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
        asm volatile("//sm_90a setmaxnreg.dec.sync.aligned.u32 40;" ::  : "memory");
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
                    long i6 = i5 % 2;
                    long i7 = 0 - i6 * 64;
                    long i8 = (i5 + 1) / 2;
                    for (long s = 0; s < 2 * i8; s++) {
                        const uint at = ring_turn + (uint)s;
                        const long stage = at % 8;
                        if (at >= 8) fc_await(ring_empty + 8 * (uint)stage, at / 8 - 1 & 1);
                        if (s == 0 && at >= 2) fc_await(ring_empty + 8 * ((at - 2) % 8), (at - 2) / 8 & 1);
                        if (s % 2 == 0) {
                            fc_expect(ring_full + 8 * (uint)stage, 16384 + (s == 0 ? 16384 : 0));
                            if (s == 0) fc_copy_box_of((uint)(size_t)((__local ushort *)tiles + (0)), ring_map0, (int)(0), (int)(i2), (int)(i1), ring_full + 8 * (uint)stage);
                            fc_copy_box_of((uint)(size_t)((__local ushort *)tiles + (8192 + stage * 8192)), ring_map1, (int)(0), (int)(i7 + s / 2 * 128), (int)(i1), ring_full + 8 * (uint)stage);
                            fc_copy_box_of((uint)(size_t)((__local ushort *)tiles + (8192 + stage * 8192 + 4096)), ring_map1, (int)(0), (int)(i7 + s / 2 * 128 + 64), (int)(i1), ring_full + 8 * (uint)stage);
                        }
                        if (s % 2 == 1) {
                            fc_expect(ring_full + 8 * (uint)stage, 16384);
                            fc_copy_box_of((uint)(size_t)((__local ushort *)tiles + (8192 + stage * 8192)), ring_map1, (int)(0), (int)(i7 + s / 2 * 128), (int)(i1), ring_full + 8 * (uint)stage);
                            fc_copy_box_of((uint)(size_t)((__local ushort *)tiles + (8192 + stage * 8192 + 4096)), ring_map1, (int)(0), (int)(i7 + s / 2 * 128 + 64), (int)(i1), ring_full + 8 * (uint)stage);
                        }
                    }
                    ring_turn += (uint)(2 * i8);
                }
            }
        }
    } else {
        asm volatile("//sm_90a setmaxnreg.inc.sync.aligned.u32 232;" ::  : "memory");
        for (long round = 0; round < ((n + gsize - 1) / gsize); round++) {
            long b = round * gsize + (round % 2 < 1 ? gid : gsize - 1 - gid);
            if (b < n) {
                long i9 = n / 2;
                long i10 = b % i9;
                long i11 = (1 - b / i9) * 128;
                long i12 = min(i11 + 128, 130L) - 1;
                int i13 = (int)(lid / 32 * 16);
                long i14 = i11 + i13 + lid % 32 / 4;
                float v15 = (float)(-0x1.fffffe0000000p+127f);
                float v16 = (float)(-0x1.fffffe0000000p+127f);
                float4 v17 = (float4)(0x0.0p+0f);
                float4 v18 = (float4)(0x1.71547652b82fep-2f);
                float4 v19 = (float4)(0x0.0p+0f);
                float4 v20 = (float4)(0x0.0p+0f);
                long i21 = i12 + 1;
                long i22 = (i21 + 64 - 1) / 64;
                long i23 = i22 % 2;
                long i24 = 0 - i23 * 64;
                long i25 = (i22 + 1) / 2;
                if (i21 > 0) {
                    float4 v26 = (float4)(0x0.0p+0f);
                    float4 v27 = (float4)(0x0.0p+0f);
                    float4 v28 = (float4)(0x0.0p+0f);
                    float4 v29 = (float4)(0x0.0p+0f);
                    float4 v30 = (float4)(0x0.0p+0f);
                    float4 v31 = (float4)(0x0.0p+0f);
                    float4 v32 = (float4)(0x0.0p+0f);
                    float4 v33 = (float4)(0x0.0p+0f);
                    float4 v34 = (float4)(0x0.0p+0f);
                    float4 v35 = (float4)(0x0.0p+0f);
                    float4 v36 = (float4)(0x0.0p+0f);
                    float4 v37 = (float4)(0x0.0p+0f);
                    float4 v38 = (float4)(0x0.0p+0f);
                    float4 v39 = (float4)(0x0.0p+0f);
                    float4 v40 = (float4)(0x0.0p+0f);
                    float4 v41 = (float4)(0x0.0p+0f);
                    uint4 v42 = (uint4)((uint)(0UL));
                    uint4 v43 = (uint4)((uint)(0UL));
                    uint4 v44 = (uint4)((uint)(0UL));
                    uint4 v45 = (uint4)((uint)(0UL));
                    uint4 v46 = (uint4)((uint)(0UL));
                    uint4 v47 = (uint4)((uint)(0UL));
                    uint4 v48 = (uint4)((uint)(0UL));
                    uint4 v49 = (uint4)((uint)(0UL));
                    float4 v50 = (float4)(0x0.0p+0f);
                    const long of_keys = (ring_turn + (uint)(0)) % 8;
                    fc_await(ring_full + 8 * (uint)of_keys, (ring_turn + (uint)(0)) / 8 & 1);
                    {
                        const ulong left = fc_operand((const __local ushort *)tiles + (ring_group * 4096), 16);
                        const ulong right = fc_operand((const __local ushort *)tiles + (8192 + of_keys * 8192), 16);
                        float v26_0, v26_1, v26_2, v26_3, v27_0, v27_1, v27_2, v27_3, v28_0, v28_1, v28_2, v28_3, v29_0, v29_1, v29_2, v29_3, v30_0, v30_1, v30_2, v30_3, v31_0, v31_1, v31_2, v31_3, v32_0, v32_1, v32_2, v32_3, v33_0, v33_1, v33_2, v33_3, v34_0, v34_1, v34_2, v34_3, v35_0, v35_1, v35_2, v35_3, v36_0, v36_1, v36_2, v36_3, v37_0, v37_1, v37_2, v37_3, v38_0, v38_1, v38_2, v38_3, v39_0, v39_1, v39_2, v39_3, v40_0, v40_1, v40_2, v40_3, v41_0, v41_1, v41_2, v41_3;
                        asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; .reg .pred no; setp.eq.b32 no, 1, 0; wgmma.fence.sync.aligned; add.s64 a, %64, 0; add.s64 b, %65, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, no, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                                     : "=f"(v26_0), "=f"(v26_1), "=f"(v26_2), "=f"(v26_3), "=f"(v27_0), "=f"(v27_1), "=f"(v27_2), "=f"(v27_3), "=f"(v28_0), "=f"(v28_1), "=f"(v28_2), "=f"(v28_3), "=f"(v29_0), "=f"(v29_1), "=f"(v29_2), "=f"(v29_3), "=f"(v30_0), "=f"(v30_1), "=f"(v30_2), "=f"(v30_3), "=f"(v31_0), "=f"(v31_1), "=f"(v31_2), "=f"(v31_3), "=f"(v32_0), "=f"(v32_1), "=f"(v32_2), "=f"(v32_3), "=f"(v33_0), "=f"(v33_1), "=f"(v33_2), "=f"(v33_3), "=f"(v34_0), "=f"(v34_1), "=f"(v34_2), "=f"(v34_3), "=f"(v35_0), "=f"(v35_1), "=f"(v35_2), "=f"(v35_3), "=f"(v36_0), "=f"(v36_1), "=f"(v36_2), "=f"(v36_3), "=f"(v37_0), "=f"(v37_1), "=f"(v37_2), "=f"(v37_3), "=f"(v38_0), "=f"(v38_1), "=f"(v38_2), "=f"(v38_3), "=f"(v39_0), "=f"(v39_1), "=f"(v39_2), "=f"(v39_3), "=f"(v40_0), "=f"(v40_1), "=f"(v40_2), "=f"(v40_3), "=f"(v41_0), "=f"(v41_1), "=f"(v41_2), "=f"(v41_3)
                                     : "l"(left), "l"(right) : "memory");
                        v26 = (float4)(v26_0, v26_1, v26_2, v26_3);
                        v27 = (float4)(v27_0, v27_1, v27_2, v27_3);
                        v28 = (float4)(v28_0, v28_1, v28_2, v28_3);
                        v29 = (float4)(v29_0, v29_1, v29_2, v29_3);
                        v30 = (float4)(v30_0, v30_1, v30_2, v30_3);
                        v31 = (float4)(v31_0, v31_1, v31_2, v31_3);
                        v32 = (float4)(v32_0, v32_1, v32_2, v32_3);
                        v33 = (float4)(v33_0, v33_1, v33_2, v33_3);
                        v34 = (float4)(v34_0, v34_1, v34_2, v34_3);
                        v35 = (float4)(v35_0, v35_1, v35_2, v35_3);
                        v36 = (float4)(v36_0, v36_1, v36_2, v36_3);
                        v37 = (float4)(v37_0, v37_1, v37_2, v37_3);
                        v38 = (float4)(v38_0, v38_1, v38_2, v38_3);
                        v39 = (float4)(v39_0, v39_1, v39_2, v39_3);
                        v40 = (float4)(v40_0, v40_1, v40_2, v40_3);
                        v41 = (float4)(v41_0, v41_1, v41_2, v41_3);
                    }
                    if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)of_keys);
                    if (i23 < 1) {
                        long i104 = i11 + 1;
                        if (i24 < 0 || i24 + 64 > i104) {
                            float2 v51 = (float2)(-INFINITY);
                            int i52 = (int)(0 - (i24 + lid % 4 * 2));
                            int i53 = (int)(i14 + 1 - (i24 + lid % 4 * 2));
                            int i54 = (int)(0 - (i24 + lid % 4 * 2));
                            int i55 = (int)(i14 + 8 + 1 - (i24 + lid % 4 * 2));
                            float2 v56 = v26.lo;
                            int2 v57 = ((int2)(0, 1) < (int2)((int)(i53)));
                            float2 v58 = (v57 ? v56 : v51);
                            float2 v59 = v26.hi;
                            int2 v60 = ((int2)(0, 1) < (int2)((int)(i55)));
                            float2 v61 = (v60 ? v59 : v51);
                            v26 = (float4)(v58, v61);
                            float2 v62 = v27.lo;
                            int2 v63 = ((int2)(0, 1) < (int2)((int)(i53 - 8)));
                            float2 v64 = (v63 ? v62 : v51);
                            float2 v65 = v27.hi;
                            int2 v66 = ((int2)(0, 1) < (int2)((int)(i55 - 8)));
                            float2 v67 = (v66 ? v65 : v51);
                            v27 = (float4)(v64, v67);
                            float2 v68 = v28.lo;
                            int2 v69 = ((int2)(0, 1) < (int2)((int)(i53 - 16)));
                            float2 v70 = (v69 ? v68 : v51);
                            float2 v71 = v28.hi;
                            int2 v72 = ((int2)(0, 1) < (int2)((int)(i55 - 16)));
                            float2 v73 = (v72 ? v71 : v51);
                            v28 = (float4)(v70, v73);
                            float2 v74 = v29.lo;
                            int2 v75 = ((int2)(0, 1) < (int2)((int)(i53 - 24)));
                            float2 v76 = (v75 ? v74 : v51);
                            float2 v77 = v29.hi;
                            int2 v78 = ((int2)(0, 1) < (int2)((int)(i55 - 24)));
                            float2 v79 = (v78 ? v77 : v51);
                            v29 = (float4)(v76, v79);
                            float2 v80 = v30.lo;
                            int2 v81 = ((int2)(0, 1) < (int2)((int)(i53 - 32)));
                            float2 v82 = (v81 ? v80 : v51);
                            float2 v83 = v30.hi;
                            int2 v84 = ((int2)(0, 1) < (int2)((int)(i55 - 32)));
                            float2 v85 = (v84 ? v83 : v51);
                            v30 = (float4)(v82, v85);
                            float2 v86 = v31.lo;
                            int2 v87 = ((int2)(0, 1) < (int2)((int)(i53 - 40)));
                            float2 v88 = (v87 ? v86 : v51);
                            float2 v89 = v31.hi;
                            int2 v90 = ((int2)(0, 1) < (int2)((int)(i55 - 40)));
                            float2 v91 = (v90 ? v89 : v51);
                            v31 = (float4)(v88, v91);
                            float2 v92 = v32.lo;
                            int2 v93 = ((int2)(0, 1) < (int2)((int)(i53 - 48)));
                            float2 v94 = (v93 ? v92 : v51);
                            float2 v95 = v32.hi;
                            int2 v96 = ((int2)(0, 1) < (int2)((int)(i55 - 48)));
                            float2 v97 = (v96 ? v95 : v51);
                            v32 = (float4)(v94, v97);
                            float2 v98 = v33.lo;
                            int2 v99 = ((int2)(0, 1) < (int2)((int)(i53 - 56)));
                            float2 v100 = (v99 ? v98 : v51);
                            float2 v101 = v33.hi;
                            int2 v102 = ((int2)(0, 1) < (int2)((int)(i55 - 56)));
                            float2 v103 = (v102 ? v101 : v51);
                            v33 = (float4)(v100, v103);
                        }
                        float2 v105 = v26.lo;
                        float2 v106 = v27.lo;
                        float2 v107 = fmax(v105, v106);
                        float2 v108 = v28.lo;
                        float2 v109 = fmax(v107, v108);
                        float2 v110 = v29.lo;
                        float2 v111 = fmax(v109, v110);
                        float2 v112 = v30.lo;
                        float2 v113 = fmax(v111, v112);
                        float2 v114 = v31.lo;
                        float2 v115 = fmax(v113, v114);
                        float2 v116 = v32.lo;
                        float2 v117 = fmax(v115, v116);
                        float2 v118 = v33.lo;
                        float2 v119 = fmax(v117, v118);
                        float v120 = v119.lo;
                        float v121 = v119.hi;
                        float v122 = fmax(v120, v121);
                        float v123 = fc_across(v122, 1);
                        float v124 = fmax(v122, v123);
                        float v125 = fc_across(v124, 2);
                        float v126 = fmax(v124, v125);
                        float v127 = fmax(v126, v15);
                        float2 v128 = v26.hi;
                        float2 v129 = v27.hi;
                        float2 v130 = fmax(v128, v129);
                        float2 v131 = v28.hi;
                        float2 v132 = fmax(v130, v131);
                        float2 v133 = v29.hi;
                        float2 v134 = fmax(v132, v133);
                        float2 v135 = v30.hi;
                        float2 v136 = fmax(v134, v135);
                        float2 v137 = v31.hi;
                        float2 v138 = fmax(v136, v137);
                        float2 v139 = v32.hi;
                        float2 v140 = fmax(v138, v139);
                        float2 v141 = v33.hi;
                        float2 v142 = fmax(v140, v141);
                        float v143 = v142.lo;
                        float v144 = v142.hi;
                        float v145 = fmax(v143, v144);
                        float v146 = fc_across(v145, 1);
                        float v147 = fmax(v145, v146);
                        float v148 = fc_across(v147, 2);
                        float v149 = fmax(v147, v148);
                        float v150 = fmax(v149, v16);
                        float v151 = v18.s0;
                        float v152 = (float)(-0x1.fffffe0000000p+127f);
                        float v153 = (v127 * v151);
                        float v154 = fmax(v153, v152);
                        float v155 = (float)(-0x1.0000000000000p+0f);
                        float v156 = (v154 * v155);
                        float v157 = v18.s0;
                        float v158 = (float)(-0x1.fffffe0000000p+127f);
                        float v159 = (v150 * v157);
                        float v160 = fmax(v159, v158);
                        float v161 = (float)(-0x1.0000000000000p+0f);
                        float v162 = (v160 * v161);
                        float v163 = v18.s0;
                        float v164 = fma(v15, v163, v156);
                        float v165 = native_exp2(v164);
                        float v166 = v18.s0;
                        float v167 = fma(v16, v166, v162);
                        float v168 = native_exp2(v167);
                        float2 v169 = (float2)(v165);
                        float2 v170 = (float2)(v168);
                        float4 v171 = (float4)(v169, v170);
                        float2 v172 = (float2)(v156);
                        float2 v173 = (float2)(v162);
                        float4 v174 = (float4)(v172, v173);
                        float4 v175 = v18;
                        float4 v176 = fma(v26, v175, v174);
                        float4 v177 = (float4)(fc_normal_power(v176.s0), fc_normal_power(v176.s1), fc_normal_power(v176.s2), fc_normal_power(v176.s3));
                        float4 v178 = v18;
                        float4 v179 = fma(v27, v178, v174);
                        float4 v180 = (float4)(fc_normal_power(v179.s0), fc_normal_power(v179.s1), fc_normal_power(v179.s2), fc_normal_power(v179.s3));
                        float4 v181 = v18;
                        float4 v182 = fma(v28, v181, v174);
                        float4 v183 = (float4)(fc_normal_power(v182.s0), fc_normal_power(v182.s1), fc_normal_power(v182.s2), fc_normal_power(v182.s3));
                        float4 v184 = v18;
                        float4 v185 = fma(v29, v184, v174);
                        float4 v186 = (float4)(fc_normal_power(v185.s0), fc_normal_power(v185.s1), fc_normal_power(v185.s2), fc_normal_power(v185.s3));
                        float4 v187 = v18;
                        float4 v188 = fma(v30, v187, v174);
                        float4 v189 = (float4)(fc_normal_power(v188.s0), fc_normal_power(v188.s1), fc_normal_power(v188.s2), fc_normal_power(v188.s3));
                        float4 v190 = v18;
                        float4 v191 = fma(v31, v190, v174);
                        float4 v192 = (float4)(fc_normal_power(v191.s0), fc_normal_power(v191.s1), fc_normal_power(v191.s2), fc_normal_power(v191.s3));
                        float4 v193 = v18;
                        float4 v194 = fma(v32, v193, v174);
                        float4 v195 = (float4)(fc_normal_power(v194.s0), fc_normal_power(v194.s1), fc_normal_power(v194.s2), fc_normal_power(v194.s3));
                        float4 v196 = v18;
                        float4 v197 = fma(v33, v196, v174);
                        float4 v198 = (float4)(fc_normal_power(v197.s0), fc_normal_power(v197.s1), fc_normal_power(v197.s2), fc_normal_power(v197.s3));
                        float4 v199 = (v17 * v171);
                        float4 v200 = (v199 + v177);
                        float4 v201 = (v200 + v180);
                        float4 v202 = (v201 + v183);
                        float4 v203 = (v202 + v186);
                        float4 v204 = (v203 + v189);
                        float4 v205 = (v204 + v192);
                        float4 v206 = (v205 + v195);
                        float4 v207 = (v206 + v198);
                        v17 = v207;
                        v15 = v127;
                        v16 = v150;
                        v42 = fc_pack_f16(v177, v180);
                        v43 = fc_pack_f16(v183, v186);
                        v44 = fc_pack_f16(v189, v192);
                        v45 = fc_pack_f16(v195, v198);
                        v50 = v171;
                    }
                    long i261 = i11 + 1;
                    if (i24 + 64 < 0 || i24 + 64 + 64 > i261) {
                        float2 v208 = (float2)(-INFINITY);
                        int i209 = (int)(0 - (i24 + 64 + lid % 4 * 2));
                        int i210 = (int)(i14 + 1 - (i24 + 64 + lid % 4 * 2));
                        int i211 = (int)(0 - (i24 + 64 + lid % 4 * 2));
                        int i212 = (int)(i14 + 8 + 1 - (i24 + 64 + lid % 4 * 2));
                        float2 v213 = v34.lo;
                        int2 v214 = ((int2)(0, 1) < (int2)((int)(i210)));
                        float2 v215 = (v214 ? v213 : v208);
                        float2 v216 = v34.hi;
                        int2 v217 = ((int2)(0, 1) < (int2)((int)(i212)));
                        float2 v218 = (v217 ? v216 : v208);
                        v34 = (float4)(v215, v218);
                        float2 v219 = v35.lo;
                        int2 v220 = ((int2)(0, 1) < (int2)((int)(i210 - 8)));
                        float2 v221 = (v220 ? v219 : v208);
                        float2 v222 = v35.hi;
                        int2 v223 = ((int2)(0, 1) < (int2)((int)(i212 - 8)));
                        float2 v224 = (v223 ? v222 : v208);
                        v35 = (float4)(v221, v224);
                        float2 v225 = v36.lo;
                        int2 v226 = ((int2)(0, 1) < (int2)((int)(i210 - 16)));
                        float2 v227 = (v226 ? v225 : v208);
                        float2 v228 = v36.hi;
                        int2 v229 = ((int2)(0, 1) < (int2)((int)(i212 - 16)));
                        float2 v230 = (v229 ? v228 : v208);
                        v36 = (float4)(v227, v230);
                        float2 v231 = v37.lo;
                        int2 v232 = ((int2)(0, 1) < (int2)((int)(i210 - 24)));
                        float2 v233 = (v232 ? v231 : v208);
                        float2 v234 = v37.hi;
                        int2 v235 = ((int2)(0, 1) < (int2)((int)(i212 - 24)));
                        float2 v236 = (v235 ? v234 : v208);
                        v37 = (float4)(v233, v236);
                        float2 v237 = v38.lo;
                        int2 v238 = ((int2)(0, 1) < (int2)((int)(i210 - 32)));
                        float2 v239 = (v238 ? v237 : v208);
                        float2 v240 = v38.hi;
                        int2 v241 = ((int2)(0, 1) < (int2)((int)(i212 - 32)));
                        float2 v242 = (v241 ? v240 : v208);
                        v38 = (float4)(v239, v242);
                        float2 v243 = v39.lo;
                        int2 v244 = ((int2)(0, 1) < (int2)((int)(i210 - 40)));
                        float2 v245 = (v244 ? v243 : v208);
                        float2 v246 = v39.hi;
                        int2 v247 = ((int2)(0, 1) < (int2)((int)(i212 - 40)));
                        float2 v248 = (v247 ? v246 : v208);
                        v39 = (float4)(v245, v248);
                        float2 v249 = v40.lo;
                        int2 v250 = ((int2)(0, 1) < (int2)((int)(i210 - 48)));
                        float2 v251 = (v250 ? v249 : v208);
                        float2 v252 = v40.hi;
                        int2 v253 = ((int2)(0, 1) < (int2)((int)(i212 - 48)));
                        float2 v254 = (v253 ? v252 : v208);
                        v40 = (float4)(v251, v254);
                        float2 v255 = v41.lo;
                        int2 v256 = ((int2)(0, 1) < (int2)((int)(i210 - 56)));
                        float2 v257 = (v256 ? v255 : v208);
                        float2 v258 = v41.hi;
                        int2 v259 = ((int2)(0, 1) < (int2)((int)(i212 - 56)));
                        float2 v260 = (v259 ? v258 : v208);
                        v41 = (float4)(v257, v260);
                    }
                    float2 v262 = v34.lo;
                    float2 v263 = v35.lo;
                    float2 v264 = fmax(v262, v263);
                    float2 v265 = v36.lo;
                    float2 v266 = fmax(v264, v265);
                    float2 v267 = v37.lo;
                    float2 v268 = fmax(v266, v267);
                    float2 v269 = v38.lo;
                    float2 v270 = fmax(v268, v269);
                    float2 v271 = v39.lo;
                    float2 v272 = fmax(v270, v271);
                    float2 v273 = v40.lo;
                    float2 v274 = fmax(v272, v273);
                    float2 v275 = v41.lo;
                    float2 v276 = fmax(v274, v275);
                    float v277 = v276.lo;
                    float v278 = v276.hi;
                    float v279 = fmax(v277, v278);
                    float v280 = fc_across(v279, 1);
                    float v281 = fmax(v279, v280);
                    float v282 = fc_across(v281, 2);
                    float v283 = fmax(v281, v282);
                    float v284 = fmax(v283, v15);
                    float2 v285 = v34.hi;
                    float2 v286 = v35.hi;
                    float2 v287 = fmax(v285, v286);
                    float2 v288 = v36.hi;
                    float2 v289 = fmax(v287, v288);
                    float2 v290 = v37.hi;
                    float2 v291 = fmax(v289, v290);
                    float2 v292 = v38.hi;
                    float2 v293 = fmax(v291, v292);
                    float2 v294 = v39.hi;
                    float2 v295 = fmax(v293, v294);
                    float2 v296 = v40.hi;
                    float2 v297 = fmax(v295, v296);
                    float2 v298 = v41.hi;
                    float2 v299 = fmax(v297, v298);
                    float v300 = v299.lo;
                    float v301 = v299.hi;
                    float v302 = fmax(v300, v301);
                    float v303 = fc_across(v302, 1);
                    float v304 = fmax(v302, v303);
                    float v305 = fc_across(v304, 2);
                    float v306 = fmax(v304, v305);
                    float v307 = fmax(v306, v16);
                    float v308 = v18.s0;
                    float v309 = (float)(-0x1.fffffe0000000p+127f);
                    float v310 = (v284 * v308);
                    float v311 = fmax(v310, v309);
                    float v312 = (float)(-0x1.0000000000000p+0f);
                    float v313 = (v311 * v312);
                    float v314 = v18.s0;
                    float v315 = (float)(-0x1.fffffe0000000p+127f);
                    float v316 = (v307 * v314);
                    float v317 = fmax(v316, v315);
                    float v318 = (float)(-0x1.0000000000000p+0f);
                    float v319 = (v317 * v318);
                    float v320 = v18.s0;
                    float v321 = fma(v15, v320, v313);
                    float v322 = native_exp2(v321);
                    float v323 = v18.s0;
                    float v324 = fma(v16, v323, v319);
                    float v325 = native_exp2(v324);
                    float2 v326 = (float2)(v322);
                    float2 v327 = (float2)(v325);
                    float4 v328 = (float4)(v326, v327);
                    float2 v329 = (float2)(v313);
                    float2 v330 = (float2)(v319);
                    float4 v331 = (float4)(v329, v330);
                    float4 v332 = v18;
                    float4 v333 = fma(v34, v332, v331);
                    float4 v334 = (float4)(fc_normal_power(v333.s0), fc_normal_power(v333.s1), fc_normal_power(v333.s2), fc_normal_power(v333.s3));
                    float4 v335 = v18;
                    float4 v336 = fma(v35, v335, v331);
                    float4 v337 = (float4)(fc_normal_power(v336.s0), fc_normal_power(v336.s1), fc_normal_power(v336.s2), fc_normal_power(v336.s3));
                    float4 v338 = v18;
                    float4 v339 = fma(v36, v338, v331);
                    float4 v340 = (float4)(fc_normal_power(v339.s0), fc_normal_power(v339.s1), fc_normal_power(v339.s2), fc_normal_power(v339.s3));
                    float4 v341 = v18;
                    float4 v342 = fma(v37, v341, v331);
                    float4 v343 = (float4)(fc_normal_power(v342.s0), fc_normal_power(v342.s1), fc_normal_power(v342.s2), fc_normal_power(v342.s3));
                    float4 v344 = v18;
                    float4 v345 = fma(v38, v344, v331);
                    float4 v346 = (float4)(fc_normal_power(v345.s0), fc_normal_power(v345.s1), fc_normal_power(v345.s2), fc_normal_power(v345.s3));
                    float4 v347 = v18;
                    float4 v348 = fma(v39, v347, v331);
                    float4 v349 = (float4)(fc_normal_power(v348.s0), fc_normal_power(v348.s1), fc_normal_power(v348.s2), fc_normal_power(v348.s3));
                    float4 v350 = v18;
                    float4 v351 = fma(v40, v350, v331);
                    float4 v352 = (float4)(fc_normal_power(v351.s0), fc_normal_power(v351.s1), fc_normal_power(v351.s2), fc_normal_power(v351.s3));
                    float4 v353 = v18;
                    float4 v354 = fma(v41, v353, v331);
                    float4 v355 = (float4)(fc_normal_power(v354.s0), fc_normal_power(v354.s1), fc_normal_power(v354.s2), fc_normal_power(v354.s3));
                    float4 v356 = (v17 * v328);
                    float4 v357 = (v356 + v334);
                    float4 v358 = (v357 + v337);
                    float4 v359 = (v358 + v340);
                    float4 v360 = (v359 + v343);
                    float4 v361 = (v360 + v346);
                    float4 v362 = (v361 + v349);
                    float4 v363 = (v362 + v352);
                    float4 v364 = (v363 + v355);
                    v17 = v364;
                    v15 = v284;
                    v16 = v307;
                    v46 = fc_pack_f16(v334, v337);
                    v47 = fc_pack_f16(v340, v343);
                    v48 = fc_pack_f16(v346, v349);
                    v49 = fc_pack_f16(v352, v355);
                    v50 = v328;
                    for (long t = i24 + 128; t < i21; t += 128) {
                        long i365 = (t - i24) / 128;
                        const long of_keys = (ring_turn + (uint)(2 * i365)) % 8;
                        fc_await(ring_full + 8 * (uint)of_keys, (ring_turn + (uint)(2 * i365)) / 8 & 1);
                        const long of_values = (ring_turn + (uint)(2 * i365 - 1)) % 8;
                        fc_await(ring_full + 8 * (uint)of_values, (ring_turn + (uint)(2 * i365 - 1)) / 8 & 1);
                        const ulong p0_right = fc_operand((const __local ushort *)tiles + (8192 + of_values * 8192), 16384);
                        float v19_0 = v19.s0, v19_1 = v19.s1, v19_2 = v19.s2, v19_3 = v19.s3, v20_0 = v20.s0, v20_1 = v20.s1, v20_2 = v20.s2, v20_3 = v20.s3;
                        asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned; add.s64 b, %24, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, b, yes, 1, 1, 1; add.s64 b, %24, 128; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%12, %13, %14, %15}, b, yes, 1, 1, 1; add.s64 b, %24, 256; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%16, %17, %18, %19}, b, yes, 1, 1, 1; add.s64 b, %24, 384; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%20, %21, %22, %23}, b, yes, 1, 1, 1; wgmma.commit_group.sync.aligned;}"
                                     : "+f"(v19_0), "+f"(v19_1), "+f"(v19_2), "+f"(v19_3), "+f"(v20_0), "+f"(v20_1), "+f"(v20_2), "+f"(v20_3)
                                     : "r"(v42.s0), "r"(v42.s1), "r"(v42.s2), "r"(v42.s3), "r"(v43.s0), "r"(v43.s1), "r"(v43.s2), "r"(v43.s3), "r"(v44.s0), "r"(v44.s1), "r"(v44.s2), "r"(v44.s3), "r"(v45.s0), "r"(v45.s1), "r"(v45.s2), "r"(v45.s3), "l"(p0_right) : "memory");
                        const ulong p1_left = fc_operand((const __local ushort *)tiles + (ring_group * 4096), 16);
                        const ulong p1_right = fc_operand((const __local ushort *)tiles + (8192 + of_keys * 8192), 16);
                        float v26_0, v26_1, v26_2, v26_3, v27_0, v27_1, v27_2, v27_3, v28_0, v28_1, v28_2, v28_3, v29_0, v29_1, v29_2, v29_3, v30_0, v30_1, v30_2, v30_3, v31_0, v31_1, v31_2, v31_3, v32_0, v32_1, v32_2, v32_3, v33_0, v33_1, v33_2, v33_3, v34_0, v34_1, v34_2, v34_3, v35_0, v35_1, v35_2, v35_3, v36_0, v36_1, v36_2, v36_3, v37_0, v37_1, v37_2, v37_3, v38_0, v38_1, v38_2, v38_3, v39_0, v39_1, v39_2, v39_3, v40_0, v40_1, v40_2, v40_3, v41_0, v41_1, v41_2, v41_3;
                        asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; .reg .pred no; setp.eq.b32 no, 1, 0; wgmma.fence.sync.aligned; add.s64 a, %64, 0; add.s64 b, %65, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, no, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;}"
                                     : "=f"(v26_0), "=f"(v26_1), "=f"(v26_2), "=f"(v26_3), "=f"(v27_0), "=f"(v27_1), "=f"(v27_2), "=f"(v27_3), "=f"(v28_0), "=f"(v28_1), "=f"(v28_2), "=f"(v28_3), "=f"(v29_0), "=f"(v29_1), "=f"(v29_2), "=f"(v29_3), "=f"(v30_0), "=f"(v30_1), "=f"(v30_2), "=f"(v30_3), "=f"(v31_0), "=f"(v31_1), "=f"(v31_2), "=f"(v31_3), "=f"(v32_0), "=f"(v32_1), "=f"(v32_2), "=f"(v32_3), "=f"(v33_0), "=f"(v33_1), "=f"(v33_2), "=f"(v33_3), "=f"(v34_0), "=f"(v34_1), "=f"(v34_2), "=f"(v34_3), "=f"(v35_0), "=f"(v35_1), "=f"(v35_2), "=f"(v35_3), "=f"(v36_0), "=f"(v36_1), "=f"(v36_2), "=f"(v36_3), "=f"(v37_0), "=f"(v37_1), "=f"(v37_2), "=f"(v37_3), "=f"(v38_0), "=f"(v38_1), "=f"(v38_2), "=f"(v38_3), "=f"(v39_0), "=f"(v39_1), "=f"(v39_2), "=f"(v39_3), "=f"(v40_0), "=f"(v40_1), "=f"(v40_2), "=f"(v40_3), "=f"(v41_0), "=f"(v41_1), "=f"(v41_2), "=f"(v41_3)
                                     : "l"(p1_left), "l"(p1_right) : "memory");
                        asm volatile("//sm_90a wgmma.wait_group.sync.aligned 1;" : "+f"(v19_0), "+f"(v19_1), "+f"(v19_2), "+f"(v19_3), "+f"(v20_0), "+f"(v20_1), "+f"(v20_2), "+f"(v20_3) : "r"(v42.s0), "r"(v42.s1), "r"(v42.s2), "r"(v42.s3), "r"(v43.s0), "r"(v43.s1), "r"(v43.s2), "r"(v43.s3), "r"(v44.s0), "r"(v44.s1), "r"(v44.s2), "r"(v44.s3), "r"(v45.s0), "r"(v45.s1), "r"(v45.s2), "r"(v45.s3) : "memory");
                        v19 = (float4)(v19_0, v19_1, v19_2, v19_3);
                        v20 = (float4)(v20_0, v20_1, v20_2, v20_3);
                        float4 v366 = (v19 * v50);
                        v19 = v366;
                        float4 v367 = (v20 * v50);
                        v20 = v367;
                        const ulong p2_right = fc_operand((const __local ushort *)tiles + (8192 + of_values * 8192 + 4096), 16384);
                        v19_0 = v19.s0, v19_1 = v19.s1, v19_2 = v19.s2, v19_3 = v19.s3, v20_0 = v20.s0, v20_1 = v20.s1, v20_2 = v20.s2, v20_3 = v20.s3;
                        asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned; add.s64 b, %24, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, b, yes, 1, 1, 1; add.s64 b, %24, 128; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%12, %13, %14, %15}, b, yes, 1, 1, 1; add.s64 b, %24, 256; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%16, %17, %18, %19}, b, yes, 1, 1, 1; add.s64 b, %24, 384; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%20, %21, %22, %23}, b, yes, 1, 1, 1; wgmma.commit_group.sync.aligned;}"
                                     : "+f"(v19_0), "+f"(v19_1), "+f"(v19_2), "+f"(v19_3), "+f"(v20_0), "+f"(v20_1), "+f"(v20_2), "+f"(v20_3)
                                     : "r"(v46.s0), "r"(v46.s1), "r"(v46.s2), "r"(v46.s3), "r"(v47.s0), "r"(v47.s1), "r"(v47.s2), "r"(v47.s3), "r"(v48.s0), "r"(v48.s1), "r"(v48.s2), "r"(v48.s3), "r"(v49.s0), "r"(v49.s1), "r"(v49.s2), "r"(v49.s3), "l"(p2_right) : "memory");
                        asm volatile("//sm_90a wgmma.wait_group.sync.aligned 1;" : "+f"(v26_0), "+f"(v26_1), "+f"(v26_2), "+f"(v26_3), "+f"(v27_0), "+f"(v27_1), "+f"(v27_2), "+f"(v27_3), "+f"(v28_0), "+f"(v28_1), "+f"(v28_2), "+f"(v28_3), "+f"(v29_0), "+f"(v29_1), "+f"(v29_2), "+f"(v29_3), "+f"(v30_0), "+f"(v30_1), "+f"(v30_2), "+f"(v30_3), "+f"(v31_0), "+f"(v31_1), "+f"(v31_2), "+f"(v31_3), "+f"(v32_0), "+f"(v32_1), "+f"(v32_2), "+f"(v32_3), "+f"(v33_0), "+f"(v33_1), "+f"(v33_2), "+f"(v33_3), "+f"(v34_0), "+f"(v34_1), "+f"(v34_2), "+f"(v34_3), "+f"(v35_0), "+f"(v35_1), "+f"(v35_2), "+f"(v35_3), "+f"(v36_0), "+f"(v36_1), "+f"(v36_2), "+f"(v36_3), "+f"(v37_0), "+f"(v37_1), "+f"(v37_2), "+f"(v37_3), "+f"(v38_0), "+f"(v38_1), "+f"(v38_2), "+f"(v38_3), "+f"(v39_0), "+f"(v39_1), "+f"(v39_2), "+f"(v39_3), "+f"(v40_0), "+f"(v40_1), "+f"(v40_2), "+f"(v40_3), "+f"(v41_0), "+f"(v41_1), "+f"(v41_2), "+f"(v41_3) :  : "memory");
                        v26 = (float4)(v26_0, v26_1, v26_2, v26_3);
                        v27 = (float4)(v27_0, v27_1, v27_2, v27_3);
                        v28 = (float4)(v28_0, v28_1, v28_2, v28_3);
                        v29 = (float4)(v29_0, v29_1, v29_2, v29_3);
                        v30 = (float4)(v30_0, v30_1, v30_2, v30_3);
                        v31 = (float4)(v31_0, v31_1, v31_2, v31_3);
                        v32 = (float4)(v32_0, v32_1, v32_2, v32_3);
                        v33 = (float4)(v33_0, v33_1, v33_2, v33_3);
                        v34 = (float4)(v34_0, v34_1, v34_2, v34_3);
                        v35 = (float4)(v35_0, v35_1, v35_2, v35_3);
                        v36 = (float4)(v36_0, v36_1, v36_2, v36_3);
                        v37 = (float4)(v37_0, v37_1, v37_2, v37_3);
                        v38 = (float4)(v38_0, v38_1, v38_2, v38_3);
                        v39 = (float4)(v39_0, v39_1, v39_2, v39_3);
                        v40 = (float4)(v40_0, v40_1, v40_2, v40_3);
                        v41 = (float4)(v41_0, v41_1, v41_2, v41_3);
                        if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)of_keys);
                        long i421 = i11 + 1;
                        if (t < 0 || t + 64 > i421) {
                            float2 v368 = (float2)(-INFINITY);
                            int i369 = (int)(0 - (t + lid % 4 * 2));
                            int i370 = (int)(i14 + 1 - (t + lid % 4 * 2));
                            int i371 = (int)(0 - (t + lid % 4 * 2));
                            int i372 = (int)(i14 + 8 + 1 - (t + lid % 4 * 2));
                            float2 v373 = v26.lo;
                            int2 v374 = ((int2)(0, 1) < (int2)((int)(i370)));
                            float2 v375 = (v374 ? v373 : v368);
                            float2 v376 = v26.hi;
                            int2 v377 = ((int2)(0, 1) < (int2)((int)(i372)));
                            float2 v378 = (v377 ? v376 : v368);
                            v26 = (float4)(v375, v378);
                            float2 v379 = v27.lo;
                            int2 v380 = ((int2)(0, 1) < (int2)((int)(i370 - 8)));
                            float2 v381 = (v380 ? v379 : v368);
                            float2 v382 = v27.hi;
                            int2 v383 = ((int2)(0, 1) < (int2)((int)(i372 - 8)));
                            float2 v384 = (v383 ? v382 : v368);
                            v27 = (float4)(v381, v384);
                            float2 v385 = v28.lo;
                            int2 v386 = ((int2)(0, 1) < (int2)((int)(i370 - 16)));
                            float2 v387 = (v386 ? v385 : v368);
                            float2 v388 = v28.hi;
                            int2 v389 = ((int2)(0, 1) < (int2)((int)(i372 - 16)));
                            float2 v390 = (v389 ? v388 : v368);
                            v28 = (float4)(v387, v390);
                            float2 v391 = v29.lo;
                            int2 v392 = ((int2)(0, 1) < (int2)((int)(i370 - 24)));
                            float2 v393 = (v392 ? v391 : v368);
                            float2 v394 = v29.hi;
                            int2 v395 = ((int2)(0, 1) < (int2)((int)(i372 - 24)));
                            float2 v396 = (v395 ? v394 : v368);
                            v29 = (float4)(v393, v396);
                            float2 v397 = v30.lo;
                            int2 v398 = ((int2)(0, 1) < (int2)((int)(i370 - 32)));
                            float2 v399 = (v398 ? v397 : v368);
                            float2 v400 = v30.hi;
                            int2 v401 = ((int2)(0, 1) < (int2)((int)(i372 - 32)));
                            float2 v402 = (v401 ? v400 : v368);
                            v30 = (float4)(v399, v402);
                            float2 v403 = v31.lo;
                            int2 v404 = ((int2)(0, 1) < (int2)((int)(i370 - 40)));
                            float2 v405 = (v404 ? v403 : v368);
                            float2 v406 = v31.hi;
                            int2 v407 = ((int2)(0, 1) < (int2)((int)(i372 - 40)));
                            float2 v408 = (v407 ? v406 : v368);
                            v31 = (float4)(v405, v408);
                            float2 v409 = v32.lo;
                            int2 v410 = ((int2)(0, 1) < (int2)((int)(i370 - 48)));
                            float2 v411 = (v410 ? v409 : v368);
                            float2 v412 = v32.hi;
                            int2 v413 = ((int2)(0, 1) < (int2)((int)(i372 - 48)));
                            float2 v414 = (v413 ? v412 : v368);
                            v32 = (float4)(v411, v414);
                            float2 v415 = v33.lo;
                            int2 v416 = ((int2)(0, 1) < (int2)((int)(i370 - 56)));
                            float2 v417 = (v416 ? v415 : v368);
                            float2 v418 = v33.hi;
                            int2 v419 = ((int2)(0, 1) < (int2)((int)(i372 - 56)));
                            float2 v420 = (v419 ? v418 : v368);
                            v33 = (float4)(v417, v420);
                        }
                        long i475 = i11 + 1;
                        if (t + 64 < 0 || t + 64 + 64 > i475) {
                            float2 v422 = (float2)(-INFINITY);
                            int i423 = (int)(0 - (t + 64 + lid % 4 * 2));
                            int i424 = (int)(i14 + 1 - (t + 64 + lid % 4 * 2));
                            int i425 = (int)(0 - (t + 64 + lid % 4 * 2));
                            int i426 = (int)(i14 + 8 + 1 - (t + 64 + lid % 4 * 2));
                            float2 v427 = v34.lo;
                            int2 v428 = ((int2)(0, 1) < (int2)((int)(i424)));
                            float2 v429 = (v428 ? v427 : v422);
                            float2 v430 = v34.hi;
                            int2 v431 = ((int2)(0, 1) < (int2)((int)(i426)));
                            float2 v432 = (v431 ? v430 : v422);
                            v34 = (float4)(v429, v432);
                            float2 v433 = v35.lo;
                            int2 v434 = ((int2)(0, 1) < (int2)((int)(i424 - 8)));
                            float2 v435 = (v434 ? v433 : v422);
                            float2 v436 = v35.hi;
                            int2 v437 = ((int2)(0, 1) < (int2)((int)(i426 - 8)));
                            float2 v438 = (v437 ? v436 : v422);
                            v35 = (float4)(v435, v438);
                            float2 v439 = v36.lo;
                            int2 v440 = ((int2)(0, 1) < (int2)((int)(i424 - 16)));
                            float2 v441 = (v440 ? v439 : v422);
                            float2 v442 = v36.hi;
                            int2 v443 = ((int2)(0, 1) < (int2)((int)(i426 - 16)));
                            float2 v444 = (v443 ? v442 : v422);
                            v36 = (float4)(v441, v444);
                            float2 v445 = v37.lo;
                            int2 v446 = ((int2)(0, 1) < (int2)((int)(i424 - 24)));
                            float2 v447 = (v446 ? v445 : v422);
                            float2 v448 = v37.hi;
                            int2 v449 = ((int2)(0, 1) < (int2)((int)(i426 - 24)));
                            float2 v450 = (v449 ? v448 : v422);
                            v37 = (float4)(v447, v450);
                            float2 v451 = v38.lo;
                            int2 v452 = ((int2)(0, 1) < (int2)((int)(i424 - 32)));
                            float2 v453 = (v452 ? v451 : v422);
                            float2 v454 = v38.hi;
                            int2 v455 = ((int2)(0, 1) < (int2)((int)(i426 - 32)));
                            float2 v456 = (v455 ? v454 : v422);
                            v38 = (float4)(v453, v456);
                            float2 v457 = v39.lo;
                            int2 v458 = ((int2)(0, 1) < (int2)((int)(i424 - 40)));
                            float2 v459 = (v458 ? v457 : v422);
                            float2 v460 = v39.hi;
                            int2 v461 = ((int2)(0, 1) < (int2)((int)(i426 - 40)));
                            float2 v462 = (v461 ? v460 : v422);
                            v39 = (float4)(v459, v462);
                            float2 v463 = v40.lo;
                            int2 v464 = ((int2)(0, 1) < (int2)((int)(i424 - 48)));
                            float2 v465 = (v464 ? v463 : v422);
                            float2 v466 = v40.hi;
                            int2 v467 = ((int2)(0, 1) < (int2)((int)(i426 - 48)));
                            float2 v468 = (v467 ? v466 : v422);
                            v40 = (float4)(v465, v468);
                            float2 v469 = v41.lo;
                            int2 v470 = ((int2)(0, 1) < (int2)((int)(i424 - 56)));
                            float2 v471 = (v470 ? v469 : v422);
                            float2 v472 = v41.hi;
                            int2 v473 = ((int2)(0, 1) < (int2)((int)(i426 - 56)));
                            float2 v474 = (v473 ? v472 : v422);
                            v41 = (float4)(v471, v474);
                        }
                        float2 v476 = v26.lo;
                        float2 v477 = v27.lo;
                        float2 v478 = fmax(v476, v477);
                        float2 v479 = v28.lo;
                        float2 v480 = fmax(v478, v479);
                        float2 v481 = v29.lo;
                        float2 v482 = fmax(v480, v481);
                        float2 v483 = v30.lo;
                        float2 v484 = fmax(v482, v483);
                        float2 v485 = v31.lo;
                        float2 v486 = fmax(v484, v485);
                        float2 v487 = v32.lo;
                        float2 v488 = fmax(v486, v487);
                        float2 v489 = v33.lo;
                        float2 v490 = fmax(v488, v489);
                        float v491 = v490.lo;
                        float v492 = v490.hi;
                        float v493 = fmax(v491, v492);
                        float v494 = fc_across(v493, 1);
                        float v495 = fmax(v493, v494);
                        float v496 = fc_across(v495, 2);
                        float v497 = fmax(v495, v496);
                        float v498 = fmax(v497, v15);
                        float2 v499 = v26.hi;
                        float2 v500 = v27.hi;
                        float2 v501 = fmax(v499, v500);
                        float2 v502 = v28.hi;
                        float2 v503 = fmax(v501, v502);
                        float2 v504 = v29.hi;
                        float2 v505 = fmax(v503, v504);
                        float2 v506 = v30.hi;
                        float2 v507 = fmax(v505, v506);
                        float2 v508 = v31.hi;
                        float2 v509 = fmax(v507, v508);
                        float2 v510 = v32.hi;
                        float2 v511 = fmax(v509, v510);
                        float2 v512 = v33.hi;
                        float2 v513 = fmax(v511, v512);
                        float v514 = v513.lo;
                        float v515 = v513.hi;
                        float v516 = fmax(v514, v515);
                        float v517 = fc_across(v516, 1);
                        float v518 = fmax(v516, v517);
                        float v519 = fc_across(v518, 2);
                        float v520 = fmax(v518, v519);
                        float v521 = fmax(v520, v16);
                        float v522 = v18.s0;
                        float v523 = (float)(-0x1.fffffe0000000p+127f);
                        float v524 = (v498 * v522);
                        float v525 = fmax(v524, v523);
                        float v526 = (float)(-0x1.0000000000000p+0f);
                        float v527 = (v525 * v526);
                        float v528 = v18.s0;
                        float v529 = (float)(-0x1.fffffe0000000p+127f);
                        float v530 = (v521 * v528);
                        float v531 = fmax(v530, v529);
                        float v532 = (float)(-0x1.0000000000000p+0f);
                        float v533 = (v531 * v532);
                        float v534 = v18.s0;
                        float v535 = fma(v15, v534, v527);
                        float v536 = native_exp2(v535);
                        float v537 = v18.s0;
                        float v538 = fma(v16, v537, v533);
                        float v539 = native_exp2(v538);
                        float2 v540 = (float2)(v536);
                        float2 v541 = (float2)(v539);
                        float4 v542 = (float4)(v540, v541);
                        float2 v543 = (float2)(v527);
                        float2 v544 = (float2)(v533);
                        float4 v545 = (float4)(v543, v544);
                        float4 v546 = v18;
                        float4 v547 = fma(v26, v546, v545);
                        float4 v548 = (float4)(fc_normal_power(v547.s0), fc_normal_power(v547.s1), fc_normal_power(v547.s2), fc_normal_power(v547.s3));
                        float4 v549 = v18;
                        float4 v550 = fma(v27, v549, v545);
                        float4 v551 = (float4)(fc_normal_power(v550.s0), fc_normal_power(v550.s1), fc_normal_power(v550.s2), fc_normal_power(v550.s3));
                        float4 v552 = v18;
                        float4 v553 = fma(v28, v552, v545);
                        float4 v554 = (float4)(fc_normal_power(v553.s0), fc_normal_power(v553.s1), fc_normal_power(v553.s2), fc_normal_power(v553.s3));
                        float4 v555 = v18;
                        float4 v556 = fma(v29, v555, v545);
                        float4 v557 = (float4)(fc_normal_power(v556.s0), fc_normal_power(v556.s1), fc_normal_power(v556.s2), fc_normal_power(v556.s3));
                        float4 v558 = v18;
                        float4 v559 = fma(v30, v558, v545);
                        float4 v560 = (float4)(fc_normal_power(v559.s0), fc_normal_power(v559.s1), fc_normal_power(v559.s2), fc_normal_power(v559.s3));
                        float4 v561 = v18;
                        float4 v562 = fma(v31, v561, v545);
                        float4 v563 = (float4)(fc_normal_power(v562.s0), fc_normal_power(v562.s1), fc_normal_power(v562.s2), fc_normal_power(v562.s3));
                        float4 v564 = v18;
                        float4 v565 = fma(v32, v564, v545);
                        float4 v566 = (float4)(fc_normal_power(v565.s0), fc_normal_power(v565.s1), fc_normal_power(v565.s2), fc_normal_power(v565.s3));
                        float4 v567 = v18;
                        float4 v568 = fma(v33, v567, v545);
                        float4 v569 = (float4)(fc_normal_power(v568.s0), fc_normal_power(v568.s1), fc_normal_power(v568.s2), fc_normal_power(v568.s3));
                        float4 v570 = (v17 * v542);
                        float4 v571 = (v570 + v548);
                        float4 v572 = (v571 + v551);
                        float4 v573 = (v572 + v554);
                        float4 v574 = (v573 + v557);
                        float4 v575 = (v574 + v560);
                        float4 v576 = (v575 + v563);
                        float4 v577 = (v576 + v566);
                        float4 v578 = (v577 + v569);
                        v17 = v578;
                        v15 = v498;
                        v16 = v521;
                        float2 v579 = v34.lo;
                        float2 v580 = v35.lo;
                        float2 v581 = fmax(v579, v580);
                        float2 v582 = v36.lo;
                        float2 v583 = fmax(v581, v582);
                        float2 v584 = v37.lo;
                        float2 v585 = fmax(v583, v584);
                        float2 v586 = v38.lo;
                        float2 v587 = fmax(v585, v586);
                        float2 v588 = v39.lo;
                        float2 v589 = fmax(v587, v588);
                        float2 v590 = v40.lo;
                        float2 v591 = fmax(v589, v590);
                        float2 v592 = v41.lo;
                        float2 v593 = fmax(v591, v592);
                        float v594 = v593.lo;
                        float v595 = v593.hi;
                        float v596 = fmax(v594, v595);
                        float v597 = fc_across(v596, 1);
                        float v598 = fmax(v596, v597);
                        float v599 = fc_across(v598, 2);
                        float v600 = fmax(v598, v599);
                        float v601 = fmax(v600, v15);
                        float2 v602 = v34.hi;
                        float2 v603 = v35.hi;
                        float2 v604 = fmax(v602, v603);
                        float2 v605 = v36.hi;
                        float2 v606 = fmax(v604, v605);
                        float2 v607 = v37.hi;
                        float2 v608 = fmax(v606, v607);
                        float2 v609 = v38.hi;
                        float2 v610 = fmax(v608, v609);
                        float2 v611 = v39.hi;
                        float2 v612 = fmax(v610, v611);
                        float2 v613 = v40.hi;
                        float2 v614 = fmax(v612, v613);
                        float2 v615 = v41.hi;
                        float2 v616 = fmax(v614, v615);
                        float v617 = v616.lo;
                        float v618 = v616.hi;
                        float v619 = fmax(v617, v618);
                        float v620 = fc_across(v619, 1);
                        float v621 = fmax(v619, v620);
                        float v622 = fc_across(v621, 2);
                        float v623 = fmax(v621, v622);
                        float v624 = fmax(v623, v16);
                        float v625 = v18.s0;
                        float v626 = (float)(-0x1.fffffe0000000p+127f);
                        float v627 = (v601 * v625);
                        float v628 = fmax(v627, v626);
                        float v629 = (float)(-0x1.0000000000000p+0f);
                        float v630 = (v628 * v629);
                        float v631 = v18.s0;
                        float v632 = (float)(-0x1.fffffe0000000p+127f);
                        float v633 = (v624 * v631);
                        float v634 = fmax(v633, v632);
                        float v635 = (float)(-0x1.0000000000000p+0f);
                        float v636 = (v634 * v635);
                        float v637 = v18.s0;
                        float v638 = fma(v15, v637, v630);
                        float v639 = native_exp2(v638);
                        float v640 = v18.s0;
                        float v641 = fma(v16, v640, v636);
                        float v642 = native_exp2(v641);
                        float2 v643 = (float2)(v639);
                        float2 v644 = (float2)(v642);
                        float4 v645 = (float4)(v643, v644);
                        float2 v646 = (float2)(v630);
                        float2 v647 = (float2)(v636);
                        float4 v648 = (float4)(v646, v647);
                        float4 v649 = v18;
                        float4 v650 = fma(v34, v649, v648);
                        float4 v651 = (float4)(fc_normal_power(v650.s0), fc_normal_power(v650.s1), fc_normal_power(v650.s2), fc_normal_power(v650.s3));
                        float4 v652 = v18;
                        float4 v653 = fma(v35, v652, v648);
                        float4 v654 = (float4)(fc_normal_power(v653.s0), fc_normal_power(v653.s1), fc_normal_power(v653.s2), fc_normal_power(v653.s3));
                        float4 v655 = v18;
                        float4 v656 = fma(v36, v655, v648);
                        float4 v657 = (float4)(fc_normal_power(v656.s0), fc_normal_power(v656.s1), fc_normal_power(v656.s2), fc_normal_power(v656.s3));
                        float4 v658 = v18;
                        float4 v659 = fma(v37, v658, v648);
                        float4 v660 = (float4)(fc_normal_power(v659.s0), fc_normal_power(v659.s1), fc_normal_power(v659.s2), fc_normal_power(v659.s3));
                        float4 v661 = v18;
                        float4 v662 = fma(v38, v661, v648);
                        float4 v663 = (float4)(fc_normal_power(v662.s0), fc_normal_power(v662.s1), fc_normal_power(v662.s2), fc_normal_power(v662.s3));
                        float4 v664 = v18;
                        float4 v665 = fma(v39, v664, v648);
                        float4 v666 = (float4)(fc_normal_power(v665.s0), fc_normal_power(v665.s1), fc_normal_power(v665.s2), fc_normal_power(v665.s3));
                        float4 v667 = v18;
                        float4 v668 = fma(v40, v667, v648);
                        float4 v669 = (float4)(fc_normal_power(v668.s0), fc_normal_power(v668.s1), fc_normal_power(v668.s2), fc_normal_power(v668.s3));
                        float4 v670 = v18;
                        float4 v671 = fma(v41, v670, v648);
                        float4 v672 = (float4)(fc_normal_power(v671.s0), fc_normal_power(v671.s1), fc_normal_power(v671.s2), fc_normal_power(v671.s3));
                        float4 v673 = (v17 * v645);
                        float4 v674 = (v673 + v651);
                        float4 v675 = (v674 + v654);
                        float4 v676 = (v675 + v657);
                        float4 v677 = (v676 + v660);
                        float4 v678 = (v677 + v663);
                        float4 v679 = (v678 + v666);
                        float4 v680 = (v679 + v669);
                        float4 v681 = (v680 + v672);
                        v17 = v681;
                        v15 = v601;
                        v16 = v624;
                        v50 = v645;
                        *(__local float4 *)(whole + 128 + 4 * lid) = v17;
                        asm volatile("//sm_90a wgmma.wait_group.sync.aligned 0;" : "+f"(v19_0), "+f"(v19_1), "+f"(v19_2), "+f"(v19_3), "+f"(v20_0), "+f"(v20_1), "+f"(v20_2), "+f"(v20_3) : "r"(v46.s0), "r"(v46.s1), "r"(v46.s2), "r"(v46.s3), "r"(v47.s0), "r"(v47.s1), "r"(v47.s2), "r"(v47.s3), "r"(v48.s0), "r"(v48.s1), "r"(v48.s2), "r"(v48.s3), "r"(v49.s0), "r"(v49.s1), "r"(v49.s2), "r"(v49.s3) : "memory");
                        v19 = (float4)(v19_0, v19_1, v19_2, v19_3);
                        v20 = (float4)(v20_0, v20_1, v20_2, v20_3);
                        if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)of_values);
                        float4 v682 = (v19 * v542);
                        v19 = v682;
                        float4 v683 = (v20 * v542);
                        v20 = v683;
                        v42 = fc_pack_f16(v548, v551);
                        v43 = fc_pack_f16(v554, v557);
                        v44 = fc_pack_f16(v560, v563);
                        v45 = fc_pack_f16(v566, v569);
                        v46 = fc_pack_f16(v651, v654);
                        v47 = fc_pack_f16(v657, v660);
                        v48 = fc_pack_f16(v663, v666);
                        v49 = fc_pack_f16(v669, v672);
                    }
                    const long of_values = (ring_turn + (uint)(2 * i25 - 1)) % 8;
                    fc_await(ring_full + 8 * (uint)of_values, (ring_turn + (uint)(2 * i25 - 1)) / 8 & 1);
                    {
                        const ulong right = fc_operand((const __local ushort *)tiles + (8192 + of_values * 8192), 16384);
                        float v19_0 = v19.s0, v19_1 = v19.s1, v19_2 = v19.s2, v19_3 = v19.s3, v20_0 = v20.s0, v20_1 = v20.s1, v20_2 = v20.s2, v20_3 = v20.s3;
                        asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned; add.s64 b, %24, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, b, yes, 1, 1, 1; add.s64 b, %24, 128; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%12, %13, %14, %15}, b, yes, 1, 1, 1; add.s64 b, %24, 256; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%16, %17, %18, %19}, b, yes, 1, 1, 1; add.s64 b, %24, 384; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%20, %21, %22, %23}, b, yes, 1, 1, 1; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                                     : "+f"(v19_0), "+f"(v19_1), "+f"(v19_2), "+f"(v19_3), "+f"(v20_0), "+f"(v20_1), "+f"(v20_2), "+f"(v20_3)
                                     : "r"(v42.s0), "r"(v42.s1), "r"(v42.s2), "r"(v42.s3), "r"(v43.s0), "r"(v43.s1), "r"(v43.s2), "r"(v43.s3), "r"(v44.s0), "r"(v44.s1), "r"(v44.s2), "r"(v44.s3), "r"(v45.s0), "r"(v45.s1), "r"(v45.s2), "r"(v45.s3), "l"(right) : "memory");
                        v19 = (float4)(v19_0, v19_1, v19_2, v19_3);
                        v20 = (float4)(v20_0, v20_1, v20_2, v20_3);
                    }
                    float4 v684 = (v19 * v50);
                    v19 = v684;
                    float4 v685 = (v20 * v50);
                    v20 = v685;
                    {
                        const ulong right = fc_operand((const __local ushort *)tiles + (8192 + of_values * 8192 + 4096), 16384);
                        float v19_0 = v19.s0, v19_1 = v19.s1, v19_2 = v19.s2, v19_3 = v19.s3, v20_0 = v20.s0, v20_1 = v20.s1, v20_2 = v20.s2, v20_3 = v20.s3;
                        asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned; add.s64 b, %24, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, b, yes, 1, 1, 1; add.s64 b, %24, 128; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%12, %13, %14, %15}, b, yes, 1, 1, 1; add.s64 b, %24, 256; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%16, %17, %18, %19}, b, yes, 1, 1, 1; add.s64 b, %24, 384; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%20, %21, %22, %23}, b, yes, 1, 1, 1; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                                     : "+f"(v19_0), "+f"(v19_1), "+f"(v19_2), "+f"(v19_3), "+f"(v20_0), "+f"(v20_1), "+f"(v20_2), "+f"(v20_3)
                                     : "r"(v46.s0), "r"(v46.s1), "r"(v46.s2), "r"(v46.s3), "r"(v47.s0), "r"(v47.s1), "r"(v47.s2), "r"(v47.s3), "r"(v48.s0), "r"(v48.s1), "r"(v48.s2), "r"(v48.s3), "r"(v49.s0), "r"(v49.s1), "r"(v49.s2), "r"(v49.s3), "l"(right) : "memory");
                        v19 = (float4)(v19_0, v19_1, v19_2, v19_3);
                        v20 = (float4)(v20_0, v20_1, v20_2, v20_3);
                    }
                    if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)of_values);
                }
                ring_turn += (uint)(2 * i25);
                int i686 = (int)(i13 + (int)lid % 32 / 4);
                asm volatile("bar.sync %0, 128;" :: "r"((uint)ring_group + 1) : "memory");
                float2 v687 = v17.lo;
                float v688 = v687.lo;
                float v689 = v687.hi;
                float v690 = (v688 + v689);
                float v691 = fc_across(v690, 1);
                float v692 = (v690 + v691);
                float v693 = fc_across(v692, 2);
                float v694 = (v692 + v693);
                whole[i686] = v694;
                float2 v695 = v17.hi;
                float v696 = v695.lo;
                float v697 = v695.hi;
                float v698 = (v696 + v697);
                float v699 = fc_across(v698, 1);
                float v700 = (v698 + v699);
                float v701 = fc_across(v700, 2);
                float v702 = (v700 + v701);
                whole[i686 + 8] = v702;
                asm volatile("bar.sync %0, 128;" :: "r"((uint)ring_group + 1) : "memory");
                int i703 = (int)((i13 + lid % 32 / 4) * 24 + lid % 4 * 2);
                float2 v704 = v19.lo;
                *(__local float2 *)(results + i703) = v704;
                float2 v705 = v19.hi;
                *(__local float2 *)(results + i703 + 192) = v705;
                float2 v706 = v20.lo;
                *(__local float2 *)(results + i703 + 8) = v706;
                float2 v707 = v20.hi;
                *(__local float2 *)(results + i703 + 200) = v707;
                asm volatile("bar.sync %0, 128;" :: "r"((uint)ring_group + 1) : "memory");
                #pragma unroll 4
                for (long e = ring_group * 256 + lid % 128; e < ((ring_group + 1) * 256); e += 128) {
                    int i708 = (int)((int)e / 4);
                    int i709 = (int)((int)e % 4 * 4);
                    if (i11 + i708 <= i12 && i709 < 16) {
                        float4 v710 = *(__local float4 *)(results + i708 * 24 + i709);
                        long i711 = i11 + i708;
                        long i712 = (long)i709;
                        float v713 = whole[i708];
                        float4 v714 = (float4)(0x0.0p+0f);
                        float4 v715 = (float4)(v713);
                        int4 v716 = (v715 == v714);
                        float4 v717 = (v710 / v715);
                        float4 v718 = (v716 ? v714 : v717);
                        float2 v719 = v718.lo;
                        float2 v720 = v718.hi;
                        float2 v721 = (v719 + v720);
                        float v722 = v721.lo;
                        float v723 = v721.hi;
                        float v724 = (v722 + v723);
                        if (isnan(v724) && isfinite(v713)) {
                            float v725 = (float)(-0x1.fffffe0000000p+127f);
                            float v726 = (float)(0x0.0p+0f);
                            float4 v727 = (float4)(0x0.0p+0f);
                            long i728 = i10 + (n >> 62);
                            long i729 = i728 * 2080;
                            long i730 = i728 * 2080;
                            long i731 = i728 * 2080;
                            for (long u = 0; u < (i711 + 1); u++) {
                                float v732 = (float)(0x0.0p+0f);
                                for (long c = 0; c < 16; c++) {
                                    float v733 = vload_half(i729 + i711 * 16 + c, in0);
                                    float v734 = vload_half(i730 + u * 16 + c, in0);
                                    v732 = fma(v733, v734, v732);
                                }
                                float v735 = (float)(0x1.71547652b82fep-2f);
                                float v736 = (v732 * v735);
                                float v737 = fmax(v725, v736);
                                float v738 = (v725 - v737);
                                float v739 = native_exp2(v738);
                                float v740 = (v736 - v737);
                                float v741 = native_exp2(v740);
                                v726 = fma(v726, v739, v741);
                                v725 = v737;
                                float4 v742 = vload_half4(0, in0 + (i731 + u * 16 + i712));
                                float4 v743 = (float4)(v739);
                                float4 v744 = (v727 * v743);
                                float4 v745 = (float4)(v741);
                                v727 = fma(v745, v742, v744);
                            }
                            float4 v746 = (float4)(0x0.0p+0f);
                            float4 v747 = (float4)(v726);
                            int4 v748 = (v747 == v746);
                            float4 v749 = (v727 / v747);
                            float4 v750 = (v748 ? v746 : v749);
                            v718 = v750;
                        }
                        float4 v751 = fc_round_float16_4(v718);
                        fc_store_float16_4(out0 + (i10 * 2080 + i711 * 16 + i712), v718);
                    }
                }
            }
        }
    }
}
