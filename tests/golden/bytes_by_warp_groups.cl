#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void k0(
    __global const uchar *restrict in0,
    __global uchar *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local uchar tile0[4352] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    int lane = (int)((int)lid % 64);
    int part = (int)((int)lid / 64);
    for (long t = gid; t < (n * 2); t += gsize) {
        long i0 = t / 2;
        int i1 = (int)((int)(t % 2));
        int i2 = (int)(i1 % 2 * 64);
        int i3 = (int)(i2 + lane);
        #pragma unroll
        for (long turn = 0; turn < 16; turn++) {
            int i4 = (int)(part + (int)turn * 4);
            int i5 = (int)(i4 * 128);
            uchar v6 = in0[i3 + i5];
            tile0[i4 * 68 + lane] = v6;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        long i7 = i0 * 8192 + lane;
        #pragma unroll
        for (long turn = 0; turn < 16; turn++) {
            int i8 = (int)(part + (int)turn * 4);
            int i9 = (int)(i2 + i8);
            {
                uchar v10 = tile0[lane * 68 + i8];
                uchar v11 = v10;
                out0[i7 + i9 * 64] = v11;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

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

static inline int fc_across_int(int a, uint bit) {
    int b;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(b) : "r"(a), "r"(bit));
    return b;
}

static inline void fc_store_int32_4(__global int *to, int4 x) {
    if ((ulong)to % 16 == 0) *(__global int4 *)to = x;
    else vstore4(x, 0, to);
}

__kernel __attribute__((reqd_work_group_size(384, 1, 1)))
void k1(
    __global const char *restrict in0,
    __global const uchar *restrict in1,
    __global int *restrict out0,
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
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(128) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"(128) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"((uint)(n)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" :: "l"(ring_fields0), "l"((ulong)64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields0) : "memory");
            const ulong ring_fields1 = (ulong)(size_t)&fields[32];
            asm volatile("//sm_90a tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" :: "l"(ring_fields1), "l"((ulong)(in1 + 0)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(128) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"(128) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"((uint)(128)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" :: "l"(ring_fields1), "l"((ulong)64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields1) : "memory");
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
                    fc_copy_box((uint)(size_t)((__local uchar *)tiles + (stage * 32768)), ring_map0, (int)(s * 128), (int)(i4), ring_full + 8 * (uint)stage);
                    fc_copy_box((uint)(size_t)((__local uchar *)tiles + (stage * 32768 + 16384)), ring_map1, (int)(s * 128), (int)(i5), ring_full + 8 * (uint)stage);
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
            int4 v12 = (int4)((int)(0L));
            int4 v13 = (int4)((int)(0L));
            int4 v14 = (int4)((int)(0L));
            int4 v15 = (int4)((int)(0L));
            int4 v16 = (int4)((int)(0L));
            int4 v17 = (int4)((int)(0L));
            int4 v18 = (int4)((int)(0L));
            int4 v19 = (int4)((int)(0L));
            int4 v20 = (int4)((int)(0L));
            int4 v21 = (int4)((int)(0L));
            int4 v22 = (int4)((int)(0L));
            int4 v23 = (int4)((int)(0L));
            int4 v24 = (int4)((int)(0L));
            int4 v25 = (int4)((int)(0L));
            int4 v26 = (int4)((int)(0L));
            int4 v27 = (int4)((int)(0L));
            for (long s = 0; s < 1; s++) {
                const long stage = (ring_turn + (uint)(s)) % 4;
                fc_await(ring_full + 8 * (uint)stage, (ring_turn + (uint)(s)) / 4 & 1);
                {
                    const ulong left = fc_operand((const __local uchar *)tiles + (stage * 32768 + ring_group * 8192), 16);
                    const ulong right = fc_operand((const __local uchar *)tiles + (stage * 32768 + 16384), 16);
                    int v12_0 = v12.s0, v12_1 = v12.s1, v12_2 = v12.s2, v12_3 = v12.s3, v13_0 = v13.s0, v13_1 = v13.s1, v13_2 = v13.s2, v13_3 = v13.s3, v14_0 = v14.s0, v14_1 = v14.s1, v14_2 = v14.s2, v14_3 = v14.s3, v15_0 = v15.s0, v15_1 = v15.s1, v15_2 = v15.s2, v15_3 = v15.s3, v16_0 = v16.s0, v16_1 = v16.s1, v16_2 = v16.s2, v16_3 = v16.s3, v17_0 = v17.s0, v17_1 = v17.s1, v17_2 = v17.s2, v17_3 = v17.s3, v18_0 = v18.s0, v18_1 = v18.s1, v18_2 = v18.s2, v18_3 = v18.s3, v19_0 = v19.s0, v19_1 = v19.s1, v19_2 = v19.s2, v19_3 = v19.s3, v20_0 = v20.s0, v20_1 = v20.s1, v20_2 = v20.s2, v20_3 = v20.s3, v21_0 = v21.s0, v21_1 = v21.s1, v21_2 = v21.s2, v21_3 = v21.s3, v22_0 = v22.s0, v22_1 = v22.s1, v22_2 = v22.s2, v22_3 = v22.s3, v23_0 = v23.s0, v23_1 = v23.s1, v23_2 = v23.s2, v23_3 = v23.s3, v24_0 = v24.s0, v24_1 = v24.s1, v24_2 = v24.s2, v24_3 = v24.s3, v25_0 = v25.s0, v25_1 = v25.s1, v25_2 = v25.s2, v25_3 = v25.s3, v26_0 = v26.s0, v26_1 = v26.s1, v26_2 = v26.s2, v26_3 = v26.s3, v27_0 = v27.s0, v27_1 = v27.s1, v27_2 = v27.s2, v27_3 = v27.s3;
                    asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned; add.s64 a, %64, 0; add.s64 b, %65, 0; wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.u8 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, yes; add.s64 a, %64, 2; add.s64 b, %65, 2; wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.u8 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, yes; add.s64 a, %64, 4; add.s64 b, %65, 4; wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.u8 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, yes; add.s64 a, %64, 6; add.s64 b, %65, 6; wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.u8 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, a, b, yes; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                                 : "+r"(v12_0), "+r"(v12_1), "+r"(v12_2), "+r"(v12_3), "+r"(v13_0), "+r"(v13_1), "+r"(v13_2), "+r"(v13_3), "+r"(v14_0), "+r"(v14_1), "+r"(v14_2), "+r"(v14_3), "+r"(v15_0), "+r"(v15_1), "+r"(v15_2), "+r"(v15_3), "+r"(v16_0), "+r"(v16_1), "+r"(v16_2), "+r"(v16_3), "+r"(v17_0), "+r"(v17_1), "+r"(v17_2), "+r"(v17_3), "+r"(v18_0), "+r"(v18_1), "+r"(v18_2), "+r"(v18_3), "+r"(v19_0), "+r"(v19_1), "+r"(v19_2), "+r"(v19_3), "+r"(v20_0), "+r"(v20_1), "+r"(v20_2), "+r"(v20_3), "+r"(v21_0), "+r"(v21_1), "+r"(v21_2), "+r"(v21_3), "+r"(v22_0), "+r"(v22_1), "+r"(v22_2), "+r"(v22_3), "+r"(v23_0), "+r"(v23_1), "+r"(v23_2), "+r"(v23_3), "+r"(v24_0), "+r"(v24_1), "+r"(v24_2), "+r"(v24_3), "+r"(v25_0), "+r"(v25_1), "+r"(v25_2), "+r"(v25_3), "+r"(v26_0), "+r"(v26_1), "+r"(v26_2), "+r"(v26_3), "+r"(v27_0), "+r"(v27_1), "+r"(v27_2), "+r"(v27_3)
                                 : "l"(left), "l"(right) : "memory");
                    v12 = (int4)(v12_0, v12_1, v12_2, v12_3);
                    v13 = (int4)(v13_0, v13_1, v13_2, v13_3);
                    v14 = (int4)(v14_0, v14_1, v14_2, v14_3);
                    v15 = (int4)(v15_0, v15_1, v15_2, v15_3);
                    v16 = (int4)(v16_0, v16_1, v16_2, v16_3);
                    v17 = (int4)(v17_0, v17_1, v17_2, v17_3);
                    v18 = (int4)(v18_0, v18_1, v18_2, v18_3);
                    v19 = (int4)(v19_0, v19_1, v19_2, v19_3);
                    v20 = (int4)(v20_0, v20_1, v20_2, v20_3);
                    v21 = (int4)(v21_0, v21_1, v21_2, v21_3);
                    v22 = (int4)(v22_0, v22_1, v22_2, v22_3);
                    v23 = (int4)(v23_0, v23_1, v23_2, v23_3);
                    v24 = (int4)(v24_0, v24_1, v24_2, v24_3);
                    v25 = (int4)(v25_0, v25_1, v25_2, v25_3);
                    v26 = (int4)(v26_0, v26_1, v26_2, v26_3);
                    v27 = (int4)(v27_0, v27_1, v27_2, v27_3);
                }
                if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)stage);
            }
            ring_turn += (uint)(1);
            int v28 = (long)(lid % 2);
            int i29 = (int)(lid / 32 * 16 + lid % 32 / 4);
            int i30 = (int)(lid % 2 * 8 + lid % 4 / 2 * 4);
            int2 v31 = v12.lo;
            int2 v32 = v13.lo;
            int2 v33 = (v28 ? v31 : v32);
            int2 v34 = (int2)(fc_across_int(v33.s0, 1), fc_across_int(v33.s1, 1));
            int2 v35 = (v28 ? v34 : v31);
            int2 v36 = (v28 ? v32 : v34);
            int2 v37 = v14.lo;
            int2 v38 = v15.lo;
            int2 v39 = (v28 ? v37 : v38);
            int2 v40 = (int2)(fc_across_int(v39.s0, 1), fc_across_int(v39.s1, 1));
            int2 v41 = (v28 ? v40 : v37);
            int2 v42 = (v28 ? v38 : v40);
            int2 v43 = v16.lo;
            int2 v44 = v17.lo;
            int2 v45 = (v28 ? v43 : v44);
            int2 v46 = (int2)(fc_across_int(v45.s0, 1), fc_across_int(v45.s1, 1));
            int2 v47 = (v28 ? v46 : v43);
            int2 v48 = (v28 ? v44 : v46);
            int2 v49 = v18.lo;
            int2 v50 = v19.lo;
            int2 v51 = (v28 ? v49 : v50);
            int2 v52 = (int2)(fc_across_int(v51.s0, 1), fc_across_int(v51.s1, 1));
            int2 v53 = (v28 ? v52 : v49);
            int2 v54 = (v28 ? v50 : v52);
            if (i10 + i29 < n) {
                int4 v55 = (int4)(v35.s0, v35.s1, v36.s0, v36.s1);
                int4 v56 = (int4)(v41.s0, v41.s1, v42.s0, v42.s1);
                int4 v57 = (int4)(v47.s0, v47.s1, v48.s0, v48.s1);
                int4 v58 = (int4)(v53.s0, v53.s1, v54.s0, v54.s1);
                long i59 = i10 + i29;
                long i60 = i11 + i30;
                long i61 = i11 + (i30 + 16);
                long i62 = i11 + (i30 + 32);
                long i63 = i11 + (i30 + 48);
                fc_store_int32_4(out0 + (i59 * 128 + i60), v55);
                fc_store_int32_4(out0 + (i59 * 128 + i61), v56);
                fc_store_int32_4(out0 + (i59 * 128 + i62), v57);
                fc_store_int32_4(out0 + (i59 * 128 + i63), v58);
            }
            int2 v64 = v12.hi;
            int2 v65 = v13.hi;
            int2 v66 = (v28 ? v64 : v65);
            int2 v67 = (int2)(fc_across_int(v66.s0, 1), fc_across_int(v66.s1, 1));
            int2 v68 = (v28 ? v67 : v64);
            int2 v69 = (v28 ? v65 : v67);
            int2 v70 = v14.hi;
            int2 v71 = v15.hi;
            int2 v72 = (v28 ? v70 : v71);
            int2 v73 = (int2)(fc_across_int(v72.s0, 1), fc_across_int(v72.s1, 1));
            int2 v74 = (v28 ? v73 : v70);
            int2 v75 = (v28 ? v71 : v73);
            int2 v76 = v16.hi;
            int2 v77 = v17.hi;
            int2 v78 = (v28 ? v76 : v77);
            int2 v79 = (int2)(fc_across_int(v78.s0, 1), fc_across_int(v78.s1, 1));
            int2 v80 = (v28 ? v79 : v76);
            int2 v81 = (v28 ? v77 : v79);
            int2 v82 = v18.hi;
            int2 v83 = v19.hi;
            int2 v84 = (v28 ? v82 : v83);
            int2 v85 = (int2)(fc_across_int(v84.s0, 1), fc_across_int(v84.s1, 1));
            int2 v86 = (v28 ? v85 : v82);
            int2 v87 = (v28 ? v83 : v85);
            if (i10 + (i29 + 8) < n) {
                int4 v88 = (int4)(v68.s0, v68.s1, v69.s0, v69.s1);
                int4 v89 = (int4)(v74.s0, v74.s1, v75.s0, v75.s1);
                int4 v90 = (int4)(v80.s0, v80.s1, v81.s0, v81.s1);
                int4 v91 = (int4)(v86.s0, v86.s1, v87.s0, v87.s1);
                long i92 = i10 + (i29 + 8);
                long i93 = i11 + i30;
                long i94 = i11 + (i30 + 16);
                long i95 = i11 + (i30 + 32);
                long i96 = i11 + (i30 + 48);
                fc_store_int32_4(out0 + (i92 * 128 + i93), v88);
                fc_store_int32_4(out0 + (i92 * 128 + i94), v89);
                fc_store_int32_4(out0 + (i92 * 128 + i95), v90);
                fc_store_int32_4(out0 + (i92 * 128 + i96), v91);
            }
            int2 v97 = v20.lo;
            int2 v98 = v21.lo;
            int2 v99 = (v28 ? v97 : v98);
            int2 v100 = (int2)(fc_across_int(v99.s0, 1), fc_across_int(v99.s1, 1));
            int2 v101 = (v28 ? v100 : v97);
            int2 v102 = (v28 ? v98 : v100);
            int2 v103 = v22.lo;
            int2 v104 = v23.lo;
            int2 v105 = (v28 ? v103 : v104);
            int2 v106 = (int2)(fc_across_int(v105.s0, 1), fc_across_int(v105.s1, 1));
            int2 v107 = (v28 ? v106 : v103);
            int2 v108 = (v28 ? v104 : v106);
            int2 v109 = v24.lo;
            int2 v110 = v25.lo;
            int2 v111 = (v28 ? v109 : v110);
            int2 v112 = (int2)(fc_across_int(v111.s0, 1), fc_across_int(v111.s1, 1));
            int2 v113 = (v28 ? v112 : v109);
            int2 v114 = (v28 ? v110 : v112);
            int2 v115 = v26.lo;
            int2 v116 = v27.lo;
            int2 v117 = (v28 ? v115 : v116);
            int2 v118 = (int2)(fc_across_int(v117.s0, 1), fc_across_int(v117.s1, 1));
            int2 v119 = (v28 ? v118 : v115);
            int2 v120 = (v28 ? v116 : v118);
            if (i10 + i29 < n) {
                int4 v121 = (int4)(v101.s0, v101.s1, v102.s0, v102.s1);
                int4 v122 = (int4)(v107.s0, v107.s1, v108.s0, v108.s1);
                int4 v123 = (int4)(v113.s0, v113.s1, v114.s0, v114.s1);
                int4 v124 = (int4)(v119.s0, v119.s1, v120.s0, v120.s1);
                long i125 = i10 + i29;
                long i126 = i11 + (i30 + 64);
                long i127 = i11 + (i30 + 80);
                long i128 = i11 + (i30 + 96);
                long i129 = i11 + (i30 + 112);
                fc_store_int32_4(out0 + (i125 * 128 + i126), v121);
                fc_store_int32_4(out0 + (i125 * 128 + i127), v122);
                fc_store_int32_4(out0 + (i125 * 128 + i128), v123);
                fc_store_int32_4(out0 + (i125 * 128 + i129), v124);
            }
            int2 v130 = v20.hi;
            int2 v131 = v21.hi;
            int2 v132 = (v28 ? v130 : v131);
            int2 v133 = (int2)(fc_across_int(v132.s0, 1), fc_across_int(v132.s1, 1));
            int2 v134 = (v28 ? v133 : v130);
            int2 v135 = (v28 ? v131 : v133);
            int2 v136 = v22.hi;
            int2 v137 = v23.hi;
            int2 v138 = (v28 ? v136 : v137);
            int2 v139 = (int2)(fc_across_int(v138.s0, 1), fc_across_int(v138.s1, 1));
            int2 v140 = (v28 ? v139 : v136);
            int2 v141 = (v28 ? v137 : v139);
            int2 v142 = v24.hi;
            int2 v143 = v25.hi;
            int2 v144 = (v28 ? v142 : v143);
            int2 v145 = (int2)(fc_across_int(v144.s0, 1), fc_across_int(v144.s1, 1));
            int2 v146 = (v28 ? v145 : v142);
            int2 v147 = (v28 ? v143 : v145);
            int2 v148 = v26.hi;
            int2 v149 = v27.hi;
            int2 v150 = (v28 ? v148 : v149);
            int2 v151 = (int2)(fc_across_int(v150.s0, 1), fc_across_int(v150.s1, 1));
            int2 v152 = (v28 ? v151 : v148);
            int2 v153 = (v28 ? v149 : v151);
            if (i10 + (i29 + 8) < n) {
                int4 v154 = (int4)(v134.s0, v134.s1, v135.s0, v135.s1);
                int4 v155 = (int4)(v140.s0, v140.s1, v141.s0, v141.s1);
                int4 v156 = (int4)(v146.s0, v146.s1, v147.s0, v147.s1);
                int4 v157 = (int4)(v152.s0, v152.s1, v153.s0, v153.s1);
                long i158 = i10 + (i29 + 8);
                long i159 = i11 + (i30 + 64);
                long i160 = i11 + (i30 + 80);
                long i161 = i11 + (i30 + 96);
                long i162 = i11 + (i30 + 112);
                fc_store_int32_4(out0 + (i158 * 128 + i159), v154);
                fc_store_int32_4(out0 + (i158 * 128 + i160), v155);
                fc_store_int32_4(out0 + (i158 * 128 + i161), v156);
                fc_store_int32_4(out0 + (i158 * 128 + i162), v157);
            }
        }
    }
}
