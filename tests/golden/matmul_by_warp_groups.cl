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

static inline float fc_across(float a, uint bit) {
    float b;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(b) : "f"(a), "r"(bit));
    return b;
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
    asm volatile("//sm_90a fence.proxy.async.shared::cta;" ::  : "memory");
    barrier(CLK_LOCAL_MEM_FENCE);
    if (ring_subgroup >= 8) {
        if (lid == 256) {
            for (long t = gid; t < ((n + 127) / 128); t += gsize) {
                long i0 = (n + 127) / 128;
                long i1 = t / 8;
                long i2 = t % 8;
                long i3 = min(8L, i0 - i1 * 8);
                long i4 = (i1 * 8 + i2 % i3) * 128;
                long i5 = i2 / i3 * 128;
                for (long s = 0; s < 1; s++) {
                    const uint at = ring_turn + (uint)s;
                    const long stage = at % 4;
                    if (at >= 4) fc_await(ring_empty + 8 * (uint)stage, at / 4 - 1 & 1);
                    fc_expect(ring_full + 8 * (uint)stage, 32768);
                    fc_copy_box((uint)(size_t)((__local ushort *)tiles + (stage * 16384)), ring_map0, (int)(s * 64), (int)(i4), ring_full + 8 * (uint)stage);
                    fc_copy_box((uint)(size_t)((__local ushort *)tiles + (stage * 16384 + 8192)), ring_map1, (int)(i5), (int)(s * 64), ring_full + 8 * (uint)stage);
                    fc_copy_box((uint)(size_t)((__local ushort *)tiles + (stage * 16384 + 8192 + 4096)), ring_map1, (int)(i5 + 64), (int)(s * 64), ring_full + 8 * (uint)stage);
                }
                ring_turn += (uint)(1);
            }
        }
    } else {
        for (long t = gid; t < ((n + 127) / 128); t += gsize) {
            long i6 = (n + 127) / 128;
            long i7 = t / 8;
            long i8 = t % 8;
            long i9 = min(8L, i6 - i7 * 8);
            long i10 = (i7 * 8 + i8 % i9) * 128;
            long i11 = i8 / i9 * 128;
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
            float4 v22 = (float4)(-0x0.0p+0f);
            float4 v23 = (float4)(-0x0.0p+0f);
            float4 v24 = (float4)(-0x0.0p+0f);
            float4 v25 = (float4)(-0x0.0p+0f);
            float4 v26 = (float4)(-0x0.0p+0f);
            float4 v27 = (float4)(-0x0.0p+0f);
            for (long s = 0; s < 1; s++) {
                const long stage = (ring_turn + (uint)(s)) % 4;
                fc_await(ring_full + 8 * (uint)stage, (ring_turn + (uint)(s)) / 4 & 1);
                {
                    const ulong left = fc_operand((const __local ushort *)tiles + (stage * 16384 + ring_group * 4096), 16);
                    const ulong right = fc_operand((const __local ushort *)tiles + (stage * 16384 + 8192), 8192);
                    float v12_0 = v12.s0, v12_1 = v12.s1, v12_2 = v12.s2, v12_3 = v12.s3, v13_0 = v13.s0, v13_1 = v13.s1, v13_2 = v13.s2, v13_3 = v13.s3, v14_0 = v14.s0, v14_1 = v14.s1, v14_2 = v14.s2, v14_3 = v14.s3, v15_0 = v15.s0, v15_1 = v15.s1, v15_2 = v15.s2, v15_3 = v15.s3, v16_0 = v16.s0, v16_1 = v16.s1, v16_2 = v16.s2, v16_3 = v16.s3, v17_0 = v17.s0, v17_1 = v17.s1, v17_2 = v17.s2, v17_3 = v17.s3, v18_0 = v18.s0, v18_1 = v18.s1, v18_2 = v18.s2, v18_3 = v18.s3, v19_0 = v19.s0, v19_1 = v19.s1, v19_2 = v19.s2, v19_3 = v19.s3, v20_0 = v20.s0, v20_1 = v20.s1, v20_2 = v20.s2, v20_3 = v20.s3, v21_0 = v21.s0, v21_1 = v21.s1, v21_2 = v21.s2, v21_3 = v21.s3, v22_0 = v22.s0, v22_1 = v22.s1, v22_2 = v22.s2, v22_3 = v22.s3, v23_0 = v23.s0, v23_1 = v23.s1, v23_2 = v23.s2, v23_3 = v23.s3, v24_0 = v24.s0, v24_1 = v24.s1, v24_2 = v24.s2, v24_3 = v24.s3, v25_0 = v25.s0, v25_1 = v25.s1, v25_2 = v25.s2, v25_3 = v25.s3, v26_0 = v26.s0, v26_1 = v26.s1, v26_2 = v26.s2, v26_3 = v26.s3, v27_0 = v27.s0, v27_1 = v27.s1, v27_2 = v27.s2, v27_3 = v27.s3;
                    asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned; add.s64 a, %64, 0; add.s64 b, %65, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, yes, 1, 1, 0, 1; add.s64 a, %64, 2; add.s64 b, %65, 128; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, yes, 1, 1, 0, 1; add.s64 a, %64, 4; add.s64 b, %65, 256; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, yes, 1, 1, 0, 1; add.s64 a, %64, 6; add.s64 b, %65, 384; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, yes, 1, 1, 0, 1; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                                 : "+f"(v12_0), "+f"(v12_1), "+f"(v12_2), "+f"(v12_3), "+f"(v13_0), "+f"(v13_1), "+f"(v13_2), "+f"(v13_3), "+f"(v14_0), "+f"(v14_1), "+f"(v14_2), "+f"(v14_3), "+f"(v15_0), "+f"(v15_1), "+f"(v15_2), "+f"(v15_3), "+f"(v16_0), "+f"(v16_1), "+f"(v16_2), "+f"(v16_3), "+f"(v17_0), "+f"(v17_1), "+f"(v17_2), "+f"(v17_3), "+f"(v18_0), "+f"(v18_1), "+f"(v18_2), "+f"(v18_3), "+f"(v19_0), "+f"(v19_1), "+f"(v19_2), "+f"(v19_3), "+f"(v20_0), "+f"(v20_1), "+f"(v20_2), "+f"(v20_3), "+f"(v21_0), "+f"(v21_1), "+f"(v21_2), "+f"(v21_3), "+f"(v22_0), "+f"(v22_1), "+f"(v22_2), "+f"(v22_3), "+f"(v23_0), "+f"(v23_1), "+f"(v23_2), "+f"(v23_3), "+f"(v24_0), "+f"(v24_1), "+f"(v24_2), "+f"(v24_3), "+f"(v25_0), "+f"(v25_1), "+f"(v25_2), "+f"(v25_3), "+f"(v26_0), "+f"(v26_1), "+f"(v26_2), "+f"(v26_3), "+f"(v27_0), "+f"(v27_1), "+f"(v27_2), "+f"(v27_3)
                                 : "l"(left), "l"(right) : "memory");
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
                    v22 = (float4)(v22_0, v22_1, v22_2, v22_3);
                    v23 = (float4)(v23_0, v23_1, v23_2, v23_3);
                    v24 = (float4)(v24_0, v24_1, v24_2, v24_3);
                    v25 = (float4)(v25_0, v25_1, v25_2, v25_3);
                    v26 = (float4)(v26_0, v26_1, v26_2, v26_3);
                    v27 = (float4)(v27_0, v27_1, v27_2, v27_3);
                }
                if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)stage);
            }
            ring_turn += (uint)(1);
            int v28 = (long)(lid % 2);
            int i29 = (int)(lid / 32 * 16 + lid % 32 / 4);
            int i30 = (int)(lid % 2 * 8 + lid % 4 / 2 * 4);
            float2 v31 = v12.lo;
            float2 v32 = v13.lo;
            float2 v33 = (v28 ? v31 : v32);
            float2 v34 = (float2)(fc_across(v33.s0, 1), fc_across(v33.s1, 1));
            float2 v35 = (v28 ? v34 : v31);
            float2 v36 = (v28 ? v32 : v34);
            float2 v37 = v14.lo;
            float2 v38 = v15.lo;
            float2 v39 = (v28 ? v37 : v38);
            float2 v40 = (float2)(fc_across(v39.s0, 1), fc_across(v39.s1, 1));
            float2 v41 = (v28 ? v40 : v37);
            float2 v42 = (v28 ? v38 : v40);
            float2 v43 = v16.lo;
            float2 v44 = v17.lo;
            float2 v45 = (v28 ? v43 : v44);
            float2 v46 = (float2)(fc_across(v45.s0, 1), fc_across(v45.s1, 1));
            float2 v47 = (v28 ? v46 : v43);
            float2 v48 = (v28 ? v44 : v46);
            float2 v49 = v18.lo;
            float2 v50 = v19.lo;
            float2 v51 = (v28 ? v49 : v50);
            float2 v52 = (float2)(fc_across(v51.s0, 1), fc_across(v51.s1, 1));
            float2 v53 = (v28 ? v52 : v49);
            float2 v54 = (v28 ? v50 : v52);
            if (i10 + i29 < n) {
                float4 v55 = (float4)(v35.s0, v35.s1, v36.s0, v36.s1);
                float4 v56 = (float4)(v41.s0, v41.s1, v42.s0, v42.s1);
                float4 v57 = (float4)(v47.s0, v47.s1, v48.s0, v48.s1);
                float4 v58 = (float4)(v53.s0, v53.s1, v54.s0, v54.s1);
                long i59 = i10 + i29;
                long i60 = i11 + i30;
                long i61 = i11 + (i30 + 16);
                long i62 = i11 + (i30 + 32);
                long i63 = i11 + (i30 + 48);
                float4 v64 = fc_round_float16_4(v55);
                fc_store_float16_4(out0 + (i59 * 128 + i60), v55);
                float4 v65 = fc_round_float16_4(v56);
                fc_store_float16_4(out0 + (i59 * 128 + i61), v56);
                float4 v66 = fc_round_float16_4(v57);
                fc_store_float16_4(out0 + (i59 * 128 + i62), v57);
                float4 v67 = fc_round_float16_4(v58);
                fc_store_float16_4(out0 + (i59 * 128 + i63), v58);
            }
            float2 v68 = v12.hi;
            float2 v69 = v13.hi;
            float2 v70 = (v28 ? v68 : v69);
            float2 v71 = (float2)(fc_across(v70.s0, 1), fc_across(v70.s1, 1));
            float2 v72 = (v28 ? v71 : v68);
            float2 v73 = (v28 ? v69 : v71);
            float2 v74 = v14.hi;
            float2 v75 = v15.hi;
            float2 v76 = (v28 ? v74 : v75);
            float2 v77 = (float2)(fc_across(v76.s0, 1), fc_across(v76.s1, 1));
            float2 v78 = (v28 ? v77 : v74);
            float2 v79 = (v28 ? v75 : v77);
            float2 v80 = v16.hi;
            float2 v81 = v17.hi;
            float2 v82 = (v28 ? v80 : v81);
            float2 v83 = (float2)(fc_across(v82.s0, 1), fc_across(v82.s1, 1));
            float2 v84 = (v28 ? v83 : v80);
            float2 v85 = (v28 ? v81 : v83);
            float2 v86 = v18.hi;
            float2 v87 = v19.hi;
            float2 v88 = (v28 ? v86 : v87);
            float2 v89 = (float2)(fc_across(v88.s0, 1), fc_across(v88.s1, 1));
            float2 v90 = (v28 ? v89 : v86);
            float2 v91 = (v28 ? v87 : v89);
            if (i10 + (i29 + 8) < n) {
                float4 v92 = (float4)(v72.s0, v72.s1, v73.s0, v73.s1);
                float4 v93 = (float4)(v78.s0, v78.s1, v79.s0, v79.s1);
                float4 v94 = (float4)(v84.s0, v84.s1, v85.s0, v85.s1);
                float4 v95 = (float4)(v90.s0, v90.s1, v91.s0, v91.s1);
                long i96 = i10 + (i29 + 8);
                long i97 = i11 + i30;
                long i98 = i11 + (i30 + 16);
                long i99 = i11 + (i30 + 32);
                long i100 = i11 + (i30 + 48);
                float4 v101 = fc_round_float16_4(v92);
                fc_store_float16_4(out0 + (i96 * 128 + i97), v92);
                float4 v102 = fc_round_float16_4(v93);
                fc_store_float16_4(out0 + (i96 * 128 + i98), v93);
                float4 v103 = fc_round_float16_4(v94);
                fc_store_float16_4(out0 + (i96 * 128 + i99), v94);
                float4 v104 = fc_round_float16_4(v95);
                fc_store_float16_4(out0 + (i96 * 128 + i100), v95);
            }
            float2 v105 = v20.lo;
            float2 v106 = v21.lo;
            float2 v107 = (v28 ? v105 : v106);
            float2 v108 = (float2)(fc_across(v107.s0, 1), fc_across(v107.s1, 1));
            float2 v109 = (v28 ? v108 : v105);
            float2 v110 = (v28 ? v106 : v108);
            float2 v111 = v22.lo;
            float2 v112 = v23.lo;
            float2 v113 = (v28 ? v111 : v112);
            float2 v114 = (float2)(fc_across(v113.s0, 1), fc_across(v113.s1, 1));
            float2 v115 = (v28 ? v114 : v111);
            float2 v116 = (v28 ? v112 : v114);
            float2 v117 = v24.lo;
            float2 v118 = v25.lo;
            float2 v119 = (v28 ? v117 : v118);
            float2 v120 = (float2)(fc_across(v119.s0, 1), fc_across(v119.s1, 1));
            float2 v121 = (v28 ? v120 : v117);
            float2 v122 = (v28 ? v118 : v120);
            float2 v123 = v26.lo;
            float2 v124 = v27.lo;
            float2 v125 = (v28 ? v123 : v124);
            float2 v126 = (float2)(fc_across(v125.s0, 1), fc_across(v125.s1, 1));
            float2 v127 = (v28 ? v126 : v123);
            float2 v128 = (v28 ? v124 : v126);
            if (i10 + i29 < n) {
                float4 v129 = (float4)(v109.s0, v109.s1, v110.s0, v110.s1);
                float4 v130 = (float4)(v115.s0, v115.s1, v116.s0, v116.s1);
                float4 v131 = (float4)(v121.s0, v121.s1, v122.s0, v122.s1);
                float4 v132 = (float4)(v127.s0, v127.s1, v128.s0, v128.s1);
                long i133 = i10 + i29;
                long i134 = i11 + (i30 + 64);
                long i135 = i11 + (i30 + 80);
                long i136 = i11 + (i30 + 96);
                long i137 = i11 + (i30 + 112);
                float4 v138 = fc_round_float16_4(v129);
                fc_store_float16_4(out0 + (i133 * 128 + i134), v129);
                float4 v139 = fc_round_float16_4(v130);
                fc_store_float16_4(out0 + (i133 * 128 + i135), v130);
                float4 v140 = fc_round_float16_4(v131);
                fc_store_float16_4(out0 + (i133 * 128 + i136), v131);
                float4 v141 = fc_round_float16_4(v132);
                fc_store_float16_4(out0 + (i133 * 128 + i137), v132);
            }
            float2 v142 = v20.hi;
            float2 v143 = v21.hi;
            float2 v144 = (v28 ? v142 : v143);
            float2 v145 = (float2)(fc_across(v144.s0, 1), fc_across(v144.s1, 1));
            float2 v146 = (v28 ? v145 : v142);
            float2 v147 = (v28 ? v143 : v145);
            float2 v148 = v22.hi;
            float2 v149 = v23.hi;
            float2 v150 = (v28 ? v148 : v149);
            float2 v151 = (float2)(fc_across(v150.s0, 1), fc_across(v150.s1, 1));
            float2 v152 = (v28 ? v151 : v148);
            float2 v153 = (v28 ? v149 : v151);
            float2 v154 = v24.hi;
            float2 v155 = v25.hi;
            float2 v156 = (v28 ? v154 : v155);
            float2 v157 = (float2)(fc_across(v156.s0, 1), fc_across(v156.s1, 1));
            float2 v158 = (v28 ? v157 : v154);
            float2 v159 = (v28 ? v155 : v157);
            float2 v160 = v26.hi;
            float2 v161 = v27.hi;
            float2 v162 = (v28 ? v160 : v161);
            float2 v163 = (float2)(fc_across(v162.s0, 1), fc_across(v162.s1, 1));
            float2 v164 = (v28 ? v163 : v160);
            float2 v165 = (v28 ? v161 : v163);
            if (i10 + (i29 + 8) < n) {
                float4 v166 = (float4)(v146.s0, v146.s1, v147.s0, v147.s1);
                float4 v167 = (float4)(v152.s0, v152.s1, v153.s0, v153.s1);
                float4 v168 = (float4)(v158.s0, v158.s1, v159.s0, v159.s1);
                float4 v169 = (float4)(v164.s0, v164.s1, v165.s0, v165.s1);
                long i170 = i10 + (i29 + 8);
                long i171 = i11 + (i30 + 64);
                long i172 = i11 + (i30 + 80);
                long i173 = i11 + (i30 + 96);
                long i174 = i11 + (i30 + 112);
                float4 v175 = fc_round_float16_4(v166);
                fc_store_float16_4(out0 + (i170 * 128 + i171), v166);
                float4 v176 = fc_round_float16_4(v167);
                fc_store_float16_4(out0 + (i170 * 128 + i172), v167);
                float4 v177 = fc_round_float16_4(v168);
                fc_store_float16_4(out0 + (i170 * 128 + i173), v168);
                float4 v178 = fc_round_float16_4(v169);
                fc_store_float16_4(out0 + (i170 * 128 + i174), v169);
            }
        }
    }
}
