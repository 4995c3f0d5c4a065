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

static inline uint4 fc_leading(uint4 x) {
    return (x + (uint4)(0x1000)) & (uint4)(0xffffe000);
}

static inline ulong fc_operand(const __local void *from, ulong step) {
    return (ulong)(((uint)(size_t)from & 0x3ffff) >> 4) | step >> 4 << 16 | (ulong)(1024 >> 4) << 32 | (ulong)1 << 62;
}

static inline void fc_store_float32_4(__global float *to, float4 x) {
    if ((ulong)to % 16 == 0) *(__global float4 *)to = x;
    else vstore4(x, 0, to);
}

__kernel __attribute__((reqd_work_group_size(384, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global const float *restrict in1,
    __global float *restrict out0,
    __global uchar *maps0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local float tiles[49152] __attribute__((aligned(1024)));
    __local ulong barriers[12] __attribute__((aligned(64)));
    __local uint fields[64] __attribute__((aligned(128)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    const uint ring_full = (uint)(size_t)&barriers[0], ring_empty = ring_full + 32;
    uint ring_turn = 0;
    const uint ring_subgroup = fc_uniform((uint)lid / 32);
    const long ring_group = ring_subgroup / 4;
    const uint ring_ready = ring_empty + 32;
    const ulong ring_map0 = (ulong)(maps0 + (gid * 2 + 0) * 128);
    const ulong ring_map1 = (ulong)(maps0 + (gid * 2 + 1) * 128);
    if (lid < 32) {
        if (lid == 0) {
            for (int i = 0; i < 64; i++) fields[i] = 0;
            const ulong ring_fields0 = (ulong)(size_t)&fields[0];
            asm volatile("//sm_90a tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" :: "l"(ring_fields0), "l"((ulong)(in0 + 0)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(32) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"(128) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"((uint)(n)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" :: "l"(ring_fields0), "l"((ulong)256) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 7;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields0) : "memory");
            const ulong ring_fields1 = (ulong)(size_t)&fields[32];
            asm volatile("//sm_90a tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" :: "l"(ring_fields1), "l"((ulong)(in1 + 0)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(32) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"(32) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(128) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"((uint)(64)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" :: "l"(ring_fields1), "l"((ulong)512) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 7;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields1) : "memory");
            for (int i = 0; i < 4; i++)
                asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(ring_full + 8 * i), "r"(1) : "memory");
            for (int i = 0; i < 4; i++)
                asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(ring_empty + 8 * i), "r"(8) : "memory");
            for (int i = 0; i < 4; i++)
                asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(ring_ready + 8 * i), "r"(4) : "memory");
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
        int i6 = (int)(lid % 32 / 4);
        int i7 = (int)(lid % 4);
        int i8 = (int)(i6 / 2 % 2 * 4 + i6 / 4 + lid / 32 % 2 * 2);
        int i9 = (int)(i6 % 2 * 2);
        int i10 = (int)(lid / 32 / 2);
        int i11 = (int)(i10 * 32 + i8 * 4 + i9);
        int i12 = (int)(i10 * 1024 + i7 * 32 + i9);
        int i13 = (int)(i8 ^ i7);
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
        float4 v28 = (float4)(-0x0.0p+0f);
        float4 v29 = (float4)(-0x0.0p+0f);
        asm volatile("//sm_90a fence.proxy.async.shared::cta;" ::  : "memory");
        barrier(CLK_LOCAL_MEM_FENCE);
        if (ring_subgroup >= 8) {
            for (long s = 0; s <= 2; s++) {
                if (lid == 256 && s < 2) {
                    const uint at = ring_turn + (uint)s;
                    const long stage = at % 4;
                    if (at >= 4) fc_await(ring_empty + 8 * (uint)stage, at / 4 - 1 & 1);
                    fc_expect(ring_full + 8 * (uint)stage, 32768);
                    fc_copy_box((uint)(size_t)((__local uint *)tiles + (stage * 12288)), ring_map0, (int)(s * 32), (int)(i4), ring_full + 8 * (uint)stage);
                    fc_copy_box((uint)(size_t)((__local uint *)tiles + (stage * 12288 + 8192)), ring_map1, (int)(i5), (int)(s * 32), ring_full + 8 * (uint)stage);
                    fc_copy_box((uint)(size_t)((__local uint *)tiles + (stage * 12288 + 8192 + 1024)), ring_map1, (int)(i5 + 32), (int)(s * 32), ring_full + 8 * (uint)stage);
                    fc_copy_box((uint)(size_t)((__local uint *)tiles + (stage * 12288 + 8192 + 2048)), ring_map1, (int)(i5 + 64), (int)(s * 32), ring_full + 8 * (uint)stage);
                    fc_copy_box((uint)(size_t)((__local uint *)tiles + (stage * 12288 + 8192 + 3072)), ring_map1, (int)(i5 + 96), (int)(s * 32), ring_full + 8 * (uint)stage);
                }
                if (s == 0) continue;
                const uint at = ring_turn + (uint)s - 1;
                const long stage = at % 4;
                fc_await(ring_full + 8 * (uint)stage, at / 4 & 1);
            #pragma unroll 8
            for (long u = 0; u < 8; u++) {
                int i82 = (int)(stage * 12288 + (lid - 256 + u * 128) * 4);
                uint4 v83 = *(__local uint4 *)(tiles + i82);
                uint4 v84 = fc_leading(v83);
                uint4 v85 = as_uint4(as_float4(v83) - as_float4(v84));
                *(__local uint4 *)(tiles + i82) = v84;
                *(__local uint4 *)(tiles + i82 + 4096) = v85;
            }
                asm volatile("//sm_90a fence.proxy.async.shared::cta;" ::  : "memory");
                asm volatile("//sm_90a bar.warp.sync -1;" ::  : "memory");
                if (lid % 32 == 0) fc_arrive(ring_ready + 8 * (uint)stage);
            }
        } else {
            for (long s = 0; s < 2; s++) {
                float4 v30 = (float4)(-0x0.0p+0f);
                float4 v31 = (float4)(-0x0.0p+0f);
                float4 v32 = (float4)(-0x0.0p+0f);
                float4 v33 = (float4)(-0x0.0p+0f);
                float4 v34 = (float4)(-0x0.0p+0f);
                float4 v35 = (float4)(-0x0.0p+0f);
                float4 v36 = (float4)(-0x0.0p+0f);
                float4 v37 = (float4)(-0x0.0p+0f);
                float4 v38 = (float4)(-0x0.0p+0f);
                float4 v39 = (float4)(-0x0.0p+0f);
                float4 v40 = (float4)(-0x0.0p+0f);
                float4 v41 = (float4)(-0x0.0p+0f);
                float4 v42 = (float4)(-0x0.0p+0f);
                float4 v43 = (float4)(-0x0.0p+0f);
                float4 v44 = (float4)(-0x0.0p+0f);
                float4 v45 = (float4)(-0x0.0p+0f);
                const long stage = (ring_turn + (uint)(s)) % 4;
                fc_await(ring_full + 8 * (uint)stage, (ring_turn + (uint)(s)) / 4 & 1);
                fc_await(ring_ready + 8 * (uint)stage, (ring_turn + (uint)(s)) / 4 & 1);
                uint2 v46 = *(__local uint2 *)(tiles + stage * 12288 + 8192 + i12 + i13 * 4);
                uint2 v47 = *(__local uint2 *)(tiles + stage * 12288 + 8192 + i12 + 128 + (i13 ^ 4) * 4);
                uint4 v48 = (uint4)(v46, v47);
                uint2 v49 = *(__local uint2 *)(tiles + stage * 12288 + 8192 + i12 + 256 + i13 * 4);
                uint2 v50 = *(__local uint2 *)(tiles + stage * 12288 + 8192 + i12 + 384 + (i13 ^ 4) * 4);
                uint4 v51 = (uint4)(v49, v50);
                uint4 v52 = fc_leading(v48);
                uint4 v53 = fc_leading(v51);
                uint4 v54 = as_uint4(as_float4(v48) - as_float4(v52));
                uint4 v55 = as_uint4(as_float4(v51) - as_float4(v53));
                {
                    const ulong right = fc_operand((const __local uint *)tiles + (stage * 12288 + 4096), 16);
                    const ulong right1 = fc_operand((const __local uint *)tiles + (stage * 12288), 16);
                    const ulong right2 = fc_operand((const __local uint *)tiles + (stage * 12288), 16);
                    float v30_0, v30_1, v30_2, v30_3, v31_0, v31_1, v31_2, v31_3, v32_0, v32_1, v32_2, v32_3, v33_0, v33_1, v33_2, v33_3, v34_0, v34_1, v34_2, v34_3, v35_0, v35_1, v35_2, v35_3, v36_0, v36_1, v36_2, v36_3, v37_0, v37_1, v37_2, v37_3, v38_0, v38_1, v38_2, v38_3, v39_0, v39_1, v39_2, v39_3, v40_0, v40_1, v40_2, v40_3, v41_0, v41_1, v41_2, v41_3, v42_0, v42_1, v42_2, v42_3, v43_0, v43_1, v43_2, v43_3, v44_0, v44_1, v44_2, v44_3, v45_0, v45_1, v45_2, v45_3;
                    asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; .reg .pred no; setp.eq.b32 no, 1, 0; wgmma.fence.sync.aligned; add.s64 b, %80, 0; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, b, no, 1, 1; add.s64 b, %81, 0; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%72, %73, %74, %75}, b, yes, 1, 1; add.s64 b, %82, 0; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, b, yes, 1, 1; add.s64 b, %80, 2; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%68, %69, %70, %71}, b, yes, 1, 1; add.s64 b, %81, 2; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%76, %77, %78, %79}, b, yes, 1, 1; add.s64 b, %82, 2; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%68, %69, %70, %71}, b, yes, 1, 1; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                                 : "=f"(v30_0), "=f"(v30_1), "=f"(v30_2), "=f"(v30_3), "=f"(v31_0), "=f"(v31_1), "=f"(v31_2), "=f"(v31_3), "=f"(v32_0), "=f"(v32_1), "=f"(v32_2), "=f"(v32_3), "=f"(v33_0), "=f"(v33_1), "=f"(v33_2), "=f"(v33_3), "=f"(v34_0), "=f"(v34_1), "=f"(v34_2), "=f"(v34_3), "=f"(v35_0), "=f"(v35_1), "=f"(v35_2), "=f"(v35_3), "=f"(v36_0), "=f"(v36_1), "=f"(v36_2), "=f"(v36_3), "=f"(v37_0), "=f"(v37_1), "=f"(v37_2), "=f"(v37_3), "=f"(v38_0), "=f"(v38_1), "=f"(v38_2), "=f"(v38_3), "=f"(v39_0), "=f"(v39_1), "=f"(v39_2), "=f"(v39_3), "=f"(v40_0), "=f"(v40_1), "=f"(v40_2), "=f"(v40_3), "=f"(v41_0), "=f"(v41_1), "=f"(v41_2), "=f"(v41_3), "=f"(v42_0), "=f"(v42_1), "=f"(v42_2), "=f"(v42_3), "=f"(v43_0), "=f"(v43_1), "=f"(v43_2), "=f"(v43_3), "=f"(v44_0), "=f"(v44_1), "=f"(v44_2), "=f"(v44_3), "=f"(v45_0), "=f"(v45_1), "=f"(v45_2), "=f"(v45_3)
                                 : "r"(v52.s0), "r"(v52.s1), "r"(v52.s2), "r"(v52.s3), "r"(v53.s0), "r"(v53.s1), "r"(v53.s2), "r"(v53.s3), "r"(v54.s0), "r"(v54.s1), "r"(v54.s2), "r"(v54.s3), "r"(v55.s0), "r"(v55.s1), "r"(v55.s2), "r"(v55.s3), "l"(right), "l"(right1), "l"(right2) : "memory");
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
                    v42 = (float4)(v42_0, v42_1, v42_2, v42_3);
                    v43 = (float4)(v43_0, v43_1, v43_2, v43_3);
                    v44 = (float4)(v44_0, v44_1, v44_2, v44_3);
                    v45 = (float4)(v45_0, v45_1, v45_2, v45_3);
                }
                uint2 v56 = *(__local uint2 *)(tiles + stage * 12288 + 8192 + i12 + 512 + i13 * 4);
                uint2 v57 = *(__local uint2 *)(tiles + stage * 12288 + 8192 + i12 + 640 + (i13 ^ 4) * 4);
                uint4 v58 = (uint4)(v56, v57);
                uint2 v59 = *(__local uint2 *)(tiles + stage * 12288 + 8192 + i12 + 768 + i13 * 4);
                uint2 v60 = *(__local uint2 *)(tiles + stage * 12288 + 8192 + i12 + 896 + (i13 ^ 4) * 4);
                uint4 v61 = (uint4)(v59, v60);
                uint4 v62 = fc_leading(v58);
                uint4 v63 = fc_leading(v61);
                uint4 v64 = as_uint4(as_float4(v58) - as_float4(v62));
                uint4 v65 = as_uint4(as_float4(v61) - as_float4(v63));
                {
                    const ulong right = fc_operand((const __local uint *)tiles + (stage * 12288 + 16 + 4096), 16);
                    const ulong right1 = fc_operand((const __local uint *)tiles + (stage * 12288 + 16), 16);
                    const ulong right2 = fc_operand((const __local uint *)tiles + (stage * 12288 + 16), 16);
                    float v30_0 = v30.s0, v30_1 = v30.s1, v30_2 = v30.s2, v30_3 = v30.s3, v31_0 = v31.s0, v31_1 = v31.s1, v31_2 = v31.s2, v31_3 = v31.s3, v32_0 = v32.s0, v32_1 = v32.s1, v32_2 = v32.s2, v32_3 = v32.s3, v33_0 = v33.s0, v33_1 = v33.s1, v33_2 = v33.s2, v33_3 = v33.s3, v34_0 = v34.s0, v34_1 = v34.s1, v34_2 = v34.s2, v34_3 = v34.s3, v35_0 = v35.s0, v35_1 = v35.s1, v35_2 = v35.s2, v35_3 = v35.s3, v36_0 = v36.s0, v36_1 = v36.s1, v36_2 = v36.s2, v36_3 = v36.s3, v37_0 = v37.s0, v37_1 = v37.s1, v37_2 = v37.s2, v37_3 = v37.s3, v38_0 = v38.s0, v38_1 = v38.s1, v38_2 = v38.s2, v38_3 = v38.s3, v39_0 = v39.s0, v39_1 = v39.s1, v39_2 = v39.s2, v39_3 = v39.s3, v40_0 = v40.s0, v40_1 = v40.s1, v40_2 = v40.s2, v40_3 = v40.s3, v41_0 = v41.s0, v41_1 = v41.s1, v41_2 = v41.s2, v41_3 = v41.s3, v42_0 = v42.s0, v42_1 = v42.s1, v42_2 = v42.s2, v42_3 = v42.s3, v43_0 = v43.s0, v43_1 = v43.s1, v43_2 = v43.s2, v43_3 = v43.s3, v44_0 = v44.s0, v44_1 = v44.s1, v44_2 = v44.s2, v44_3 = v44.s3, v45_0 = v45.s0, v45_1 = v45.s1, v45_2 = v45.s2, v45_3 = v45.s3;
                    asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned; add.s64 b, %80, 0; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, b, yes, 1, 1; add.s64 b, %81, 0; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%72, %73, %74, %75}, b, yes, 1, 1; add.s64 b, %82, 0; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, b, yes, 1, 1; add.s64 b, %80, 2; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%68, %69, %70, %71}, b, yes, 1, 1; add.s64 b, %81, 2; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%76, %77, %78, %79}, b, yes, 1, 1; add.s64 b, %82, 2; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%68, %69, %70, %71}, b, yes, 1, 1; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                                 : "+f"(v30_0), "+f"(v30_1), "+f"(v30_2), "+f"(v30_3), "+f"(v31_0), "+f"(v31_1), "+f"(v31_2), "+f"(v31_3), "+f"(v32_0), "+f"(v32_1), "+f"(v32_2), "+f"(v32_3), "+f"(v33_0), "+f"(v33_1), "+f"(v33_2), "+f"(v33_3), "+f"(v34_0), "+f"(v34_1), "+f"(v34_2), "+f"(v34_3), "+f"(v35_0), "+f"(v35_1), "+f"(v35_2), "+f"(v35_3), "+f"(v36_0), "+f"(v36_1), "+f"(v36_2), "+f"(v36_3), "+f"(v37_0), "+f"(v37_1), "+f"(v37_2), "+f"(v37_3), "+f"(v38_0), "+f"(v38_1), "+f"(v38_2), "+f"(v38_3), "+f"(v39_0), "+f"(v39_1), "+f"(v39_2), "+f"(v39_3), "+f"(v40_0), "+f"(v40_1), "+f"(v40_2), "+f"(v40_3), "+f"(v41_0), "+f"(v41_1), "+f"(v41_2), "+f"(v41_3), "+f"(v42_0), "+f"(v42_1), "+f"(v42_2), "+f"(v42_3), "+f"(v43_0), "+f"(v43_1), "+f"(v43_2), "+f"(v43_3), "+f"(v44_0), "+f"(v44_1), "+f"(v44_2), "+f"(v44_3), "+f"(v45_0), "+f"(v45_1), "+f"(v45_2), "+f"(v45_3)
                                 : "r"(v62.s0), "r"(v62.s1), "r"(v62.s2), "r"(v62.s3), "r"(v63.s0), "r"(v63.s1), "r"(v63.s2), "r"(v63.s3), "r"(v64.s0), "r"(v64.s1), "r"(v64.s2), "r"(v64.s3), "r"(v65.s0), "r"(v65.s1), "r"(v65.s2), "r"(v65.s3), "l"(right), "l"(right1), "l"(right2) : "memory");
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
                    v42 = (float4)(v42_0, v42_1, v42_2, v42_3);
                    v43 = (float4)(v43_0, v43_1, v43_2, v43_3);
                    v44 = (float4)(v44_0, v44_1, v44_2, v44_3);
                    v45 = (float4)(v45_0, v45_1, v45_2, v45_3);
                }
                if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)stage);
                float4 v66 = (v14 + v30);
                v14 = v66;
                float4 v67 = (v15 + v31);
                v15 = v67;
                float4 v68 = (v16 + v32);
                v16 = v68;
                float4 v69 = (v17 + v33);
                v17 = v69;
                float4 v70 = (v18 + v34);
                v18 = v70;
                float4 v71 = (v19 + v35);
                v19 = v71;
                float4 v72 = (v20 + v36);
                v20 = v72;
                float4 v73 = (v21 + v37);
                v21 = v73;
                float4 v74 = (v22 + v38);
                v22 = v74;
                float4 v75 = (v23 + v39);
                v23 = v75;
                float4 v76 = (v24 + v40);
                v24 = v76;
                float4 v77 = (v25 + v41);
                v25 = v77;
                float4 v78 = (v26 + v42);
                v26 = v78;
                float4 v79 = (v27 + v43);
                v27 = v79;
                float4 v80 = (v28 + v44);
                v28 = v80;
                float4 v81 = (v29 + v45);
                v29 = v81;
            }
        }
        ring_turn += (uint)(2);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 256) {
            int i86 = (int)(lid % 4 * 2 * 136 + i11);
            float2 v87 = (float2)(v14.s0, v14.s2);
            *(__local float2 *)(tiles + i86) = v87;
            float2 v88 = (float2)(v14.s1, v14.s3);
            *(__local float2 *)(tiles + i86 + 136) = v88;
            float2 v89 = (float2)(v15.s0, v15.s2);
            *(__local float2 *)(tiles + i86 + 1088) = v89;
            float2 v90 = (float2)(v15.s1, v15.s3);
            *(__local float2 *)(tiles + i86 + 1224) = v90;
            float2 v91 = (float2)(v16.s0, v16.s2);
            *(__local float2 *)(tiles + i86 + 2176) = v91;
            float2 v92 = (float2)(v16.s1, v16.s3);
            *(__local float2 *)(tiles + i86 + 2312) = v92;
            float2 v93 = (float2)(v17.s0, v17.s2);
            *(__local float2 *)(tiles + i86 + 3264) = v93;
            float2 v94 = (float2)(v17.s1, v17.s3);
            *(__local float2 *)(tiles + i86 + 3400) = v94;
            float2 v95 = (float2)(v18.s0, v18.s2);
            *(__local float2 *)(tiles + i86 + 4352) = v95;
            float2 v96 = (float2)(v18.s1, v18.s3);
            *(__local float2 *)(tiles + i86 + 4488) = v96;
            float2 v97 = (float2)(v19.s0, v19.s2);
            *(__local float2 *)(tiles + i86 + 5440) = v97;
            float2 v98 = (float2)(v19.s1, v19.s3);
            *(__local float2 *)(tiles + i86 + 5576) = v98;
            float2 v99 = (float2)(v20.s0, v20.s2);
            *(__local float2 *)(tiles + i86 + 6528) = v99;
            float2 v100 = (float2)(v20.s1, v20.s3);
            *(__local float2 *)(tiles + i86 + 6664) = v100;
            float2 v101 = (float2)(v21.s0, v21.s2);
            *(__local float2 *)(tiles + i86 + 7616) = v101;
            float2 v102 = (float2)(v21.s1, v21.s3);
            *(__local float2 *)(tiles + i86 + 7752) = v102;
            float2 v103 = (float2)(v22.s0, v22.s2);
            *(__local float2 *)(tiles + i86 + 8704) = v103;
            float2 v104 = (float2)(v22.s1, v22.s3);
            *(__local float2 *)(tiles + i86 + 8840) = v104;
            float2 v105 = (float2)(v23.s0, v23.s2);
            *(__local float2 *)(tiles + i86 + 9792) = v105;
            float2 v106 = (float2)(v23.s1, v23.s3);
            *(__local float2 *)(tiles + i86 + 9928) = v106;
            float2 v107 = (float2)(v24.s0, v24.s2);
            *(__local float2 *)(tiles + i86 + 10880) = v107;
            float2 v108 = (float2)(v24.s1, v24.s3);
            *(__local float2 *)(tiles + i86 + 11016) = v108;
            float2 v109 = (float2)(v25.s0, v25.s2);
            *(__local float2 *)(tiles + i86 + 11968) = v109;
            float2 v110 = (float2)(v25.s1, v25.s3);
            *(__local float2 *)(tiles + i86 + 12104) = v110;
            float2 v111 = (float2)(v26.s0, v26.s2);
            *(__local float2 *)(tiles + i86 + 13056) = v111;
            float2 v112 = (float2)(v26.s1, v26.s3);
            *(__local float2 *)(tiles + i86 + 13192) = v112;
            float2 v113 = (float2)(v27.s0, v27.s2);
            *(__local float2 *)(tiles + i86 + 14144) = v113;
            float2 v114 = (float2)(v27.s1, v27.s3);
            *(__local float2 *)(tiles + i86 + 14280) = v114;
            float2 v115 = (float2)(v28.s0, v28.s2);
            *(__local float2 *)(tiles + i86 + 15232) = v115;
            float2 v116 = (float2)(v28.s1, v28.s3);
            *(__local float2 *)(tiles + i86 + 15368) = v116;
            float2 v117 = (float2)(v29.s0, v29.s2);
            *(__local float2 *)(tiles + i86 + 16320) = v117;
            float2 v118 = (float2)(v29.s1, v29.s3);
            *(__local float2 *)(tiles + i86 + 16456) = v118;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        #pragma unroll 4
        for (long e = lid; e < 4096; e += 384) {
            int i119 = (int)((int)e / 32);
            int i120 = (int)((int)e % 32 * 4);
            if (i4 + i119 < n) {
                float4 v121 = *(__local float4 *)(tiles + i119 * 136 + i120);
                long i122 = i5 + i120;
                long i123 = i4 + i119;
                fc_store_float32_4(out0 + (i123 * 128 + i122), (v121 == v121 ? v121 : (float4)(as_float(0x7fc00000U))));
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
