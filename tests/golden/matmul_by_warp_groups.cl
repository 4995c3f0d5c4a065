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

static inline void fc_copy_box(uint to, ulong map, int column, int row, uint barrier) {
    asm volatile("//sm_90a cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(map), "r"(column), "r"(row), "r"(barrier) : "memory");
}

static inline ulong fc_operand(const __local void *from, ulong step) {
    return (ulong)(((uint)(size_t)from & 0x3ffff) >> 4) | step >> 4 << 16 | (ulong)(1024 >> 4) << 32 | (ulong)1 << 62;
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

__kernel __attribute__((reqd_work_group_size(384, 1, 1)))
void k0(
    __global const half *restrict in0,
    __global const half *restrict in1,
    __global half *restrict out0,
    __global uchar *maps0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local float tiles[32768] __attribute__((aligned(1024)));
    __local ulong barriers[8] __attribute__((aligned(64)));
    __local uint fields[64] __attribute__((aligned(128)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    const uint ring_full = (uint)(size_t)&barriers[0], ring_empty = ring_full + 32;
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
            asm volatile("//sm_90a tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"(128) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"((uint)(n)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" :: "l"(ring_fields0), "l"((ulong)128) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 6;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields0) : "memory");
            const ulong ring_fields1 = (ulong)(size_t)&fields[32];
            asm volatile("//sm_90a tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" :: "l"(ring_fields1), "l"((ulong)(in1 + 0)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"(64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(128) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"((uint)(64)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" :: "l"(ring_fields1), "l"((ulong)256) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 6;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields1) : "memory");
            for (int i = 0; i < 4; i++)
                asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(ring_full + 8 * i), "r"(1) : "memory");
            for (int i = 0; i < 4; i++)
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
    for (long t = gid; t < ((n + 127) / 128); t += gsize) {
        long i0 = (n + 127) / 128;
        long i1 = t / 8;
        long i2 = t % 8;
        long i3 = min(8L, i0 - i1 * 8);
        long i4 = (i1 * 8 + i2 % i3) * 128;
        long i5 = i2 / i3 * 128;
        float4 v6 = (float4)(-0x0.0p+0f);
        float4 v7 = (float4)(-0x0.0p+0f);
        float4 v8 = (float4)(-0x0.0p+0f);
        float4 v9 = (float4)(-0x0.0p+0f);
        float4 v10 = (float4)(-0x0.0p+0f);
        float4 v11 = (float4)(-0x0.0p+0f);
        float4 v12 = (float4)(-0x0.0p+0f);
        float4 v13 = (float4)(-0x0.0p+0f);
        float4 v14 = (float4)(-0x0.0p+0f);
        float4 v15 = (float4)(-0x0.0p+0f);
        float4 v16 = (float4)(-0x0.0p+0f);
        float4 v17 = (float4)(-0x0.0p+0f);
        float4 v18 = (float4)(-0x0.0p+0f);
        float4 v19 = (float4)(-0x0.0p+0f);
        float4 v20 = (float4)(-0x0.0p+0f);
        float4 v21 = (float4)(-0x0.0p+0f);
        asm volatile("//sm_90a fence.proxy.async.shared::cta;" ::  : "memory");
        barrier(CLK_LOCAL_MEM_FENCE);
        if (ring_subgroup >= 8) {
            for (long s = 0; lid == 256 && s < 1; s++) {
                const uint at = ring_turn + (uint)s;
                const long stage = at % 4;
                if (at >= 4) fc_await(ring_empty + 8 * (uint)stage, at / 4 - 1 & 1);
                fc_expect(ring_full + 8 * (uint)stage, 32768);
                fc_copy_box((uint)(size_t)((__local ushort *)tiles + (stage * 16384)), ring_map0, (int)(s * 64), (int)(i4), ring_full + 8 * (uint)stage);
                fc_copy_box((uint)(size_t)((__local ushort *)tiles + (stage * 16384 + 8192)), ring_map1, (int)(i5), (int)(s * 64), ring_full + 8 * (uint)stage);
                fc_copy_box((uint)(size_t)((__local ushort *)tiles + (stage * 16384 + 8192 + 4096)), ring_map1, (int)(i5 + 64), (int)(s * 64), ring_full + 8 * (uint)stage);
            }
        } else {
            for (long s = 0; s < 1; s++) {
                const long stage = (ring_turn + (uint)(s)) % 4;
                fc_await(ring_full + 8 * (uint)stage, (ring_turn + (uint)(s)) / 4 & 1);
                {
                    const ulong left = fc_operand((const __local ushort *)tiles + (stage * 16384 + ring_group * 4096), 16);
                    const ulong right = fc_operand((const __local ushort *)tiles + (stage * 16384 + 8192), 8192);
                    float v6_0 = v6.s0, v6_1 = v6.s1, v6_2 = v6.s2, v6_3 = v6.s3, v7_0 = v7.s0, v7_1 = v7.s1, v7_2 = v7.s2, v7_3 = v7.s3, v8_0 = v8.s0, v8_1 = v8.s1, v8_2 = v8.s2, v8_3 = v8.s3, v9_0 = v9.s0, v9_1 = v9.s1, v9_2 = v9.s2, v9_3 = v9.s3, v10_0 = v10.s0, v10_1 = v10.s1, v10_2 = v10.s2, v10_3 = v10.s3, v11_0 = v11.s0, v11_1 = v11.s1, v11_2 = v11.s2, v11_3 = v11.s3, v12_0 = v12.s0, v12_1 = v12.s1, v12_2 = v12.s2, v12_3 = v12.s3, v13_0 = v13.s0, v13_1 = v13.s1, v13_2 = v13.s2, v13_3 = v13.s3, v14_0 = v14.s0, v14_1 = v14.s1, v14_2 = v14.s2, v14_3 = v14.s3, v15_0 = v15.s0, v15_1 = v15.s1, v15_2 = v15.s2, v15_3 = v15.s3, v16_0 = v16.s0, v16_1 = v16.s1, v16_2 = v16.s2, v16_3 = v16.s3, v17_0 = v17.s0, v17_1 = v17.s1, v17_2 = v17.s2, v17_3 = v17.s3, v18_0 = v18.s0, v18_1 = v18.s1, v18_2 = v18.s2, v18_3 = v18.s3, v19_0 = v19.s0, v19_1 = v19.s1, v19_2 = v19.s2, v19_3 = v19.s3, v20_0 = v20.s0, v20_1 = v20.s1, v20_2 = v20.s2, v20_3 = v20.s3, v21_0 = v21.s0, v21_1 = v21.s1, v21_2 = v21.s2, v21_3 = v21.s3;
                    asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned; add.s64 a, %64, 0; add.s64 b, %65, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, yes, 1, 1, 0, 1; add.s64 a, %64, 2; add.s64 b, %65, 128; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, yes, 1, 1, 0, 1; add.s64 a, %64, 4; add.s64 b, %65, 256; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, yes, 1, 1, 0, 1; add.s64 a, %64, 6; add.s64 b, %65, 384; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, yes, 1, 1, 0, 1; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                                 : "+f"(v6_0), "+f"(v6_1), "+f"(v6_2), "+f"(v6_3), "+f"(v7_0), "+f"(v7_1), "+f"(v7_2), "+f"(v7_3), "+f"(v8_0), "+f"(v8_1), "+f"(v8_2), "+f"(v8_3), "+f"(v9_0), "+f"(v9_1), "+f"(v9_2), "+f"(v9_3), "+f"(v10_0), "+f"(v10_1), "+f"(v10_2), "+f"(v10_3), "+f"(v11_0), "+f"(v11_1), "+f"(v11_2), "+f"(v11_3), "+f"(v12_0), "+f"(v12_1), "+f"(v12_2), "+f"(v12_3), "+f"(v13_0), "+f"(v13_1), "+f"(v13_2), "+f"(v13_3), "+f"(v14_0), "+f"(v14_1), "+f"(v14_2), "+f"(v14_3), "+f"(v15_0), "+f"(v15_1), "+f"(v15_2), "+f"(v15_3), "+f"(v16_0), "+f"(v16_1), "+f"(v16_2), "+f"(v16_3), "+f"(v17_0), "+f"(v17_1), "+f"(v17_2), "+f"(v17_3), "+f"(v18_0), "+f"(v18_1), "+f"(v18_2), "+f"(v18_3), "+f"(v19_0), "+f"(v19_1), "+f"(v19_2), "+f"(v19_3), "+f"(v20_0), "+f"(v20_1), "+f"(v20_2), "+f"(v20_3), "+f"(v21_0), "+f"(v21_1), "+f"(v21_2), "+f"(v21_3)
                                 : "l"(left), "l"(right) : "memory");
                    v6 = (float4)(v6_0, v6_1, v6_2, v6_3);
                    v7 = (float4)(v7_0, v7_1, v7_2, v7_3);
                    v8 = (float4)(v8_0, v8_1, v8_2, v8_3);
                    v9 = (float4)(v9_0, v9_1, v9_2, v9_3);
                    v10 = (float4)(v10_0, v10_1, v10_2, v10_3);
                    v11 = (float4)(v11_0, v11_1, v11_2, v11_3);
                    v12 = (float4)(v12_0, v12_1, v12_2, v12_3);
                    v13 = (float4)(v13_0, v13_1, v13_2, v13_3);
                    v14 = (float4)(v14_0, v14_1, v14_2, v14_3);
                    v15 = (float4)(v15_0, v15_1, v15_2, v15_3);
                    v16 = (float4)(v16_0, v16_1, v16_2, v16_3);
                    v17 = (float4)(v17_0, v17_1, v17_2, v17_3);
                    v18 = (float4)(v18_0, v18_1, v18_2, v18_3);
                    v19 = (float4)(v19_0, v19_1, v19_2, v19_3);
                    v20 = (float4)(v20_0, v20_1, v20_2, v20_3);
                    v21 = (float4)(v21_0, v21_1, v21_2, v21_3);
                }
                if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)stage);
            }
        }
        ring_turn += (uint)(1);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 256) {
            int i22 = (int)((lid / 32 * 16 + lid % 32 / 4) * 136 + lid % 4 * 2);
            float2 v23 = v6.lo;
            *(__local float2 *)(tiles + i22) = v23;
            float2 v24 = v6.hi;
            *(__local float2 *)(tiles + i22 + 1088) = v24;
            float2 v25 = v7.lo;
            *(__local float2 *)(tiles + i22 + 8) = v25;
            float2 v26 = v7.hi;
            *(__local float2 *)(tiles + i22 + 1096) = v26;
            float2 v27 = v8.lo;
            *(__local float2 *)(tiles + i22 + 16) = v27;
            float2 v28 = v8.hi;
            *(__local float2 *)(tiles + i22 + 1104) = v28;
            float2 v29 = v9.lo;
            *(__local float2 *)(tiles + i22 + 24) = v29;
            float2 v30 = v9.hi;
            *(__local float2 *)(tiles + i22 + 1112) = v30;
            float2 v31 = v10.lo;
            *(__local float2 *)(tiles + i22 + 32) = v31;
            float2 v32 = v10.hi;
            *(__local float2 *)(tiles + i22 + 1120) = v32;
            float2 v33 = v11.lo;
            *(__local float2 *)(tiles + i22 + 40) = v33;
            float2 v34 = v11.hi;
            *(__local float2 *)(tiles + i22 + 1128) = v34;
            float2 v35 = v12.lo;
            *(__local float2 *)(tiles + i22 + 48) = v35;
            float2 v36 = v12.hi;
            *(__local float2 *)(tiles + i22 + 1136) = v36;
            float2 v37 = v13.lo;
            *(__local float2 *)(tiles + i22 + 56) = v37;
            float2 v38 = v13.hi;
            *(__local float2 *)(tiles + i22 + 1144) = v38;
            float2 v39 = v14.lo;
            *(__local float2 *)(tiles + i22 + 64) = v39;
            float2 v40 = v14.hi;
            *(__local float2 *)(tiles + i22 + 1152) = v40;
            float2 v41 = v15.lo;
            *(__local float2 *)(tiles + i22 + 72) = v41;
            float2 v42 = v15.hi;
            *(__local float2 *)(tiles + i22 + 1160) = v42;
            float2 v43 = v16.lo;
            *(__local float2 *)(tiles + i22 + 80) = v43;
            float2 v44 = v16.hi;
            *(__local float2 *)(tiles + i22 + 1168) = v44;
            float2 v45 = v17.lo;
            *(__local float2 *)(tiles + i22 + 88) = v45;
            float2 v46 = v17.hi;
            *(__local float2 *)(tiles + i22 + 1176) = v46;
            float2 v47 = v18.lo;
            *(__local float2 *)(tiles + i22 + 96) = v47;
            float2 v48 = v18.hi;
            *(__local float2 *)(tiles + i22 + 1184) = v48;
            float2 v49 = v19.lo;
            *(__local float2 *)(tiles + i22 + 104) = v49;
            float2 v50 = v19.hi;
            *(__local float2 *)(tiles + i22 + 1192) = v50;
            float2 v51 = v20.lo;
            *(__local float2 *)(tiles + i22 + 112) = v51;
            float2 v52 = v20.hi;
            *(__local float2 *)(tiles + i22 + 1200) = v52;
            float2 v53 = v21.lo;
            *(__local float2 *)(tiles + i22 + 120) = v53;
            float2 v54 = v21.hi;
            *(__local float2 *)(tiles + i22 + 1208) = v54;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        #pragma unroll 4
        for (long e = lid; e < 4096; e += 384) {
            int i55 = (int)((int)e / 32);
            int i56 = (int)((int)e % 32 * 4);
            if (i4 + i55 < n && i5 + i56 < 128) {
                float4 v57 = *(__local float4 *)(tiles + i55 * 136 + i56);
                long i58 = i5 + i56;
                long i59 = i4 + i55;
                float4 v60 = fc_round_float16_4(v57);
                vstore_half4((v60 == v60 ? v60 : (float4)(as_float(0x7fc00000U))), 0, out0 + (i59 * 128 + i58));
                if (any(v60 != v60)) {
                    if (v60.s0 != v60.s0) ((__global ushort *)out0)[i59 * 128 + i58] = 0x7e00;
                    if (v60.s1 != v60.s1) ((__global ushort *)out0)[i59 * 128 + i58 + 1] = 0x7e00;
                    if (v60.s2 != v60.s2) ((__global ushort *)out0)[i59 * 128 + i58 + 2] = 0x7e00;
                    if (v60.s3 != v60.s3) ((__global ushort *)out0)[i59 * 128 + i58 + 3] = 0x7e00;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
