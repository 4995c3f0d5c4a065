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

static inline uint4 fc_pack_f16(float4 low, float4 high) {
    uint a, b, c, d;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(a) : "f"(low.s1), "f"(low.s0));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(b) : "f"(low.s3), "f"(low.s2));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(c) : "f"(high.s1), "f"(high.s0));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high.s3), "f"(high.s2));
    return (uint4)(a, b, c, d);
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
    __local float whole[128] __attribute__((aligned(64)));
    __local ulong barriers[16] __attribute__((aligned(64)));
    __local uint fields[96] __attribute__((aligned(128)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    const uint ring_full = (uint)(size_t)&barriers[0], ring_empty = ring_full + 64;
    uint ring_turn = 0;
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
    for (long round = 0; round < ((n + gsize - 1) / gsize); round++) {
        long b = round * gsize + (round % 2 < 1 ? gid : gsize - 1 - gid);
        if (b < n) {
            long i0 = n / 2;
            long i1 = b % i0;
            long i2 = (1 - b / i0) * 128;
            long i3 = min(i2 + 128, 130L) - 1;
            int i4 = (int)(lid / 32 * 16);
            long i5 = i2 + i4 + lid % 32 / 4;
            float v6 = (float)(-0x1.fffffe0000000p+127f);
            float v7 = (float)(-0x1.fffffe0000000p+127f);
            float4 v8 = (float4)(0x0.0p+0f);
            float4 v9 = (float4)(0x1.71547652b82fep-2f);
            float4 v10 = (float4)(0x0.0p+0f);
            float4 v11 = (float4)(0x0.0p+0f);
            long i12 = i3 + 1;
            long i13 = (i12 + 64 - 1) / 64;
            asm volatile("//sm_90a fence.proxy.async.shared::cta;" ::  : "memory");
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lid >= 256) {
                for (long s = 0; lid == 256 && s < 2 * i13; s++) {
                    const uint at = ring_turn + (uint)s;
                    const long stage = at % 8;
                    if (at >= 8) fc_await(ring_empty + 8 * (uint)stage, at / 8 - 1 & 1);
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
            } else {
                if (i12 > 0) {
                    float4 v14 = (float4)(0x0.0p+0f);
                    float4 v15 = (float4)(0x0.0p+0f);
                    float4 v16 = (float4)(0x0.0p+0f);
                    float4 v17 = (float4)(0x0.0p+0f);
                    float4 v18 = (float4)(0x0.0p+0f);
                    float4 v19 = (float4)(0x0.0p+0f);
                    float4 v20 = (float4)(0x0.0p+0f);
                    float4 v21 = (float4)(0x0.0p+0f);
                    uint4 v22 = (uint4)((uint)(0UL));
                    uint4 v23 = (uint4)((uint)(0UL));
                    uint4 v24 = (uint4)((uint)(0UL));
                    uint4 v25 = (uint4)((uint)(0UL));
                    const long of_keys = (ring_turn + (uint)(0)) % 8;
                    fc_await(ring_full + 8 * (uint)of_keys, (ring_turn + (uint)(0)) / 8 & 1);
                    {
                        const ulong left = fc_operand((const __local ushort *)tiles + (lid / 128 * 4096), 16);
                        const ulong right = fc_operand((const __local ushort *)tiles + (8192 + of_keys * 4096), 16);
                        float v14_0, v14_1, v14_2, v14_3, v15_0, v15_1, v15_2, v15_3, v16_0, v16_1, v16_2, v16_3, v17_0, v17_1, v17_2, v17_3, v18_0, v18_1, v18_2, v18_3, v19_0, v19_1, v19_2, v19_3, v20_0, v20_1, v20_2, v20_3, v21_0, v21_1, v21_2, v21_3;
                        asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; .reg .pred no; setp.eq.b32 no, 1, 0; wgmma.fence.sync.aligned; add.s64 a, %32, 0; add.s64 b, %33, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, a, b, no, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                                     : "=f"(v14_0), "=f"(v14_1), "=f"(v14_2), "=f"(v14_3), "=f"(v15_0), "=f"(v15_1), "=f"(v15_2), "=f"(v15_3), "=f"(v16_0), "=f"(v16_1), "=f"(v16_2), "=f"(v16_3), "=f"(v17_0), "=f"(v17_1), "=f"(v17_2), "=f"(v17_3), "=f"(v18_0), "=f"(v18_1), "=f"(v18_2), "=f"(v18_3), "=f"(v19_0), "=f"(v19_1), "=f"(v19_2), "=f"(v19_3), "=f"(v20_0), "=f"(v20_1), "=f"(v20_2), "=f"(v20_3), "=f"(v21_0), "=f"(v21_1), "=f"(v21_2), "=f"(v21_3)
                                     : "l"(left), "l"(right) : "memory");
                        v14 = (float4)(v14_0, v14_1, v14_2, v14_3);
                        v15 = (float4)(v15_0, v15_1, v15_2, v15_3);
                        v16 = (float4)(v16_0, v16_1, v16_2, v16_3);
                        v17 = (float4)(v17_0, v17_1, v17_2, v17_3);
                        v18 = (float4)(v18_0, v18_1, v18_2, v18_3);
                        v19 = (float4)(v19_0, v19_1, v19_2, v19_3);
                        v20 = (float4)(v20_0, v20_1, v20_2, v20_3);
                        v21 = (float4)(v21_0, v21_1, v21_2, v21_3);
                    }
                    if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)of_keys);
                    long i79 = i2 + 1;
                    if (i79 < 64) {
                        float2 v26 = (float2)(-INFINITY);
                        int i27 = (int)(0 - lid % 4 * 2);
                        int i28 = (int)(i5 + 1 - lid % 4 * 2);
                        int i29 = (int)(0 - lid % 4 * 2);
                        int i30 = (int)(i5 + 8 + 1 - lid % 4 * 2);
                        float2 v31 = v14.lo;
                        int2 v32 = ((int2)(0, 1) < (int2)((int)(i28)));
                        float2 v33 = (v32 ? v31 : v26);
                        float2 v34 = v14.hi;
                        int2 v35 = ((int2)(0, 1) < (int2)((int)(i30)));
                        float2 v36 = (v35 ? v34 : v26);
                        v14 = (float4)(v33, v36);
                        float2 v37 = v15.lo;
                        int2 v38 = ((int2)(0, 1) < (int2)((int)(i28 - 8)));
                        float2 v39 = (v38 ? v37 : v26);
                        float2 v40 = v15.hi;
                        int2 v41 = ((int2)(0, 1) < (int2)((int)(i30 - 8)));
                        float2 v42 = (v41 ? v40 : v26);
                        v15 = (float4)(v39, v42);
                        float2 v43 = v16.lo;
                        int2 v44 = ((int2)(0, 1) < (int2)((int)(i28 - 16)));
                        float2 v45 = (v44 ? v43 : v26);
                        float2 v46 = v16.hi;
                        int2 v47 = ((int2)(0, 1) < (int2)((int)(i30 - 16)));
                        float2 v48 = (v47 ? v46 : v26);
                        v16 = (float4)(v45, v48);
                        float2 v49 = v17.lo;
                        int2 v50 = ((int2)(0, 1) < (int2)((int)(i28 - 24)));
                        float2 v51 = (v50 ? v49 : v26);
                        float2 v52 = v17.hi;
                        int2 v53 = ((int2)(0, 1) < (int2)((int)(i30 - 24)));
                        float2 v54 = (v53 ? v52 : v26);
                        v17 = (float4)(v51, v54);
                        float2 v55 = v18.lo;
                        int2 v56 = ((int2)(0, 1) < (int2)((int)(i28 - 32)));
                        float2 v57 = (v56 ? v55 : v26);
                        float2 v58 = v18.hi;
                        int2 v59 = ((int2)(0, 1) < (int2)((int)(i30 - 32)));
                        float2 v60 = (v59 ? v58 : v26);
                        v18 = (float4)(v57, v60);
                        float2 v61 = v19.lo;
                        int2 v62 = ((int2)(0, 1) < (int2)((int)(i28 - 40)));
                        float2 v63 = (v62 ? v61 : v26);
                        float2 v64 = v19.hi;
                        int2 v65 = ((int2)(0, 1) < (int2)((int)(i30 - 40)));
                        float2 v66 = (v65 ? v64 : v26);
                        v19 = (float4)(v63, v66);
                        float2 v67 = v20.lo;
                        int2 v68 = ((int2)(0, 1) < (int2)((int)(i28 - 48)));
                        float2 v69 = (v68 ? v67 : v26);
                        float2 v70 = v20.hi;
                        int2 v71 = ((int2)(0, 1) < (int2)((int)(i30 - 48)));
                        float2 v72 = (v71 ? v70 : v26);
                        v20 = (float4)(v69, v72);
                        float2 v73 = v21.lo;
                        int2 v74 = ((int2)(0, 1) < (int2)((int)(i28 - 56)));
                        float2 v75 = (v74 ? v73 : v26);
                        float2 v76 = v21.hi;
                        int2 v77 = ((int2)(0, 1) < (int2)((int)(i30 - 56)));
                        float2 v78 = (v77 ? v76 : v26);
                        v21 = (float4)(v75, v78);
                    }
                    float2 v80 = v14.lo;
                    float2 v81 = v15.lo;
                    float2 v82 = fmax(v80, v81);
                    float2 v83 = v16.lo;
                    float2 v84 = fmax(v82, v83);
                    float2 v85 = v17.lo;
                    float2 v86 = fmax(v84, v85);
                    float2 v87 = v18.lo;
                    float2 v88 = fmax(v86, v87);
                    float2 v89 = v19.lo;
                    float2 v90 = fmax(v88, v89);
                    float2 v91 = v20.lo;
                    float2 v92 = fmax(v90, v91);
                    float2 v93 = v21.lo;
                    float2 v94 = fmax(v92, v93);
                    float v95 = v94.lo;
                    float v96 = v94.hi;
                    float v97 = fmax(v95, v96);
                    float v98 = fc_across(v97, 1);
                    float v99 = fmax(v97, v98);
                    float v100 = fc_across(v99, 2);
                    float v101 = fmax(v99, v100);
                    float v102 = fmax(v101, v6);
                    float2 v103 = v14.hi;
                    float2 v104 = v15.hi;
                    float2 v105 = fmax(v103, v104);
                    float2 v106 = v16.hi;
                    float2 v107 = fmax(v105, v106);
                    float2 v108 = v17.hi;
                    float2 v109 = fmax(v107, v108);
                    float2 v110 = v18.hi;
                    float2 v111 = fmax(v109, v110);
                    float2 v112 = v19.hi;
                    float2 v113 = fmax(v111, v112);
                    float2 v114 = v20.hi;
                    float2 v115 = fmax(v113, v114);
                    float2 v116 = v21.hi;
                    float2 v117 = fmax(v115, v116);
                    float v118 = v117.lo;
                    float v119 = v117.hi;
                    float v120 = fmax(v118, v119);
                    float v121 = fc_across(v120, 1);
                    float v122 = fmax(v120, v121);
                    float v123 = fc_across(v122, 2);
                    float v124 = fmax(v122, v123);
                    float v125 = fmax(v124, v7);
                    float v126 = v9.s0;
                    float v127 = (float)(-0x1.fffffe0000000p+127f);
                    float v128 = (v102 * v126);
                    float v129 = fmax(v128, v127);
                    float v130 = (float)(-0x1.0000000000000p+0f);
                    float v131 = (v129 * v130);
                    float v132 = v9.s0;
                    float v133 = (float)(-0x1.fffffe0000000p+127f);
                    float v134 = (v125 * v132);
                    float v135 = fmax(v134, v133);
                    float v136 = (float)(-0x1.0000000000000p+0f);
                    float v137 = (v135 * v136);
                    float v138 = v9.s0;
                    float v139 = fma(v6, v138, v131);
                    float v140 = native_exp2(v139);
                    float v141 = v9.s0;
                    float v142 = fma(v7, v141, v137);
                    float v143 = native_exp2(v142);
                    float2 v144 = (float2)(v140);
                    float2 v145 = (float2)(v143);
                    float4 v146 = (float4)(v144, v145);
                    float2 v147 = (float2)(v131);
                    float2 v148 = (float2)(v137);
                    float4 v149 = (float4)(v147, v148);
                    float4 v150 = v9;
                    float4 v151 = fma(v14, v150, v149);
                    float4 v152 = native_exp2(v151);
                    float4 v153 = v9;
                    float4 v154 = fma(v15, v153, v149);
                    float4 v155 = native_exp2(v154);
                    float4 v156 = v9;
                    float4 v157 = fma(v16, v156, v149);
                    float4 v158 = native_exp2(v157);
                    float4 v159 = v9;
                    float4 v160 = fma(v17, v159, v149);
                    float4 v161 = native_exp2(v160);
                    float4 v162 = v9;
                    float4 v163 = fma(v18, v162, v149);
                    float4 v164 = native_exp2(v163);
                    float4 v165 = v9;
                    float4 v166 = fma(v19, v165, v149);
                    float4 v167 = native_exp2(v166);
                    float4 v168 = v9;
                    float4 v169 = fma(v20, v168, v149);
                    float4 v170 = native_exp2(v169);
                    float4 v171 = v9;
                    float4 v172 = fma(v21, v171, v149);
                    float4 v173 = native_exp2(v172);
                    float4 v174 = (v8 * v146);
                    float4 v175 = (v174 + v152);
                    float4 v176 = (v175 + v155);
                    float4 v177 = (v176 + v158);
                    float4 v178 = (v177 + v161);
                    float4 v179 = (v178 + v164);
                    float4 v180 = (v179 + v167);
                    float4 v181 = (v180 + v170);
                    float4 v182 = (v181 + v173);
                    v8 = v182;
                    v6 = v102;
                    v7 = v125;
                    v22 = fc_pack_f16(v152, v155);
                    v23 = fc_pack_f16(v158, v161);
                    v24 = fc_pack_f16(v164, v167);
                    v25 = fc_pack_f16(v170, v173);
                    for (long t = 64; t < i12; t += 64) {
                        long i183 = t / 64;
                        const long of_keys = (ring_turn + (uint)(2 * i183)) % 8;
                        fc_await(ring_full + 8 * (uint)of_keys, (ring_turn + (uint)(2 * i183)) / 8 & 1);
                        const long of_values = (ring_turn + (uint)(2 * i183 - 1)) % 8;
                        fc_await(ring_full + 8 * (uint)of_values, (ring_turn + (uint)(2 * i183 - 1)) / 8 & 1);
                        const ulong first_left = fc_operand((const __local ushort *)tiles + (lid / 128 * 4096), 16);
                        const ulong first_right = fc_operand((const __local ushort *)tiles + (8192 + of_keys * 4096), 16);
                        float v14_0, v14_1, v14_2, v14_3, v15_0, v15_1, v15_2, v15_3, v16_0, v16_1, v16_2, v16_3, v17_0, v17_1, v17_2, v17_3, v18_0, v18_1, v18_2, v18_3, v19_0, v19_1, v19_2, v19_3, v20_0, v20_1, v20_2, v20_3, v21_0, v21_1, v21_2, v21_3;
                        asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; .reg .pred no; setp.eq.b32 no, 1, 0; wgmma.fence.sync.aligned; add.s64 a, %32, 0; add.s64 b, %33, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, a, b, no, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;}"
                                     : "=f"(v14_0), "=f"(v14_1), "=f"(v14_2), "=f"(v14_3), "=f"(v15_0), "=f"(v15_1), "=f"(v15_2), "=f"(v15_3), "=f"(v16_0), "=f"(v16_1), "=f"(v16_2), "=f"(v16_3), "=f"(v17_0), "=f"(v17_1), "=f"(v17_2), "=f"(v17_3), "=f"(v18_0), "=f"(v18_1), "=f"(v18_2), "=f"(v18_3), "=f"(v19_0), "=f"(v19_1), "=f"(v19_2), "=f"(v19_3), "=f"(v20_0), "=f"(v20_1), "=f"(v20_2), "=f"(v20_3), "=f"(v21_0), "=f"(v21_1), "=f"(v21_2), "=f"(v21_3)
                                     : "l"(first_left), "l"(first_right) : "memory");
                        const ulong second_right = fc_operand((const __local ushort *)tiles + (8192 + of_values * 4096), 8192);
                        float v10_0 = v10.s0, v10_1 = v10.s1, v10_2 = v10.s2, v10_3 = v10.s3, v11_0 = v11.s0, v11_1 = v11.s1, v11_2 = v11.s2, v11_3 = v11.s3;
                        asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned; add.s64 b, %24, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, b, yes, 1, 1, 1; add.s64 b, %24, 128; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%12, %13, %14, %15}, b, yes, 1, 1, 1; add.s64 b, %24, 256; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%16, %17, %18, %19}, b, yes, 1, 1, 1; add.s64 b, %24, 384; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%20, %21, %22, %23}, b, yes, 1, 1, 1; wgmma.commit_group.sync.aligned;}"
                                     : "+f"(v10_0), "+f"(v10_1), "+f"(v10_2), "+f"(v10_3), "+f"(v11_0), "+f"(v11_1), "+f"(v11_2), "+f"(v11_3)
                                     : "r"(v22.s0), "r"(v22.s1), "r"(v22.s2), "r"(v22.s3), "r"(v23.s0), "r"(v23.s1), "r"(v23.s2), "r"(v23.s3), "r"(v24.s0), "r"(v24.s1), "r"(v24.s2), "r"(v24.s3), "r"(v25.s0), "r"(v25.s1), "r"(v25.s2), "r"(v25.s3), "l"(second_right) : "memory");
                        asm volatile("//sm_90a wgmma.wait_group.sync.aligned 1;" : "+f"(v14_0), "+f"(v14_1), "+f"(v14_2), "+f"(v14_3), "+f"(v15_0), "+f"(v15_1), "+f"(v15_2), "+f"(v15_3), "+f"(v16_0), "+f"(v16_1), "+f"(v16_2), "+f"(v16_3), "+f"(v17_0), "+f"(v17_1), "+f"(v17_2), "+f"(v17_3), "+f"(v18_0), "+f"(v18_1), "+f"(v18_2), "+f"(v18_3), "+f"(v19_0), "+f"(v19_1), "+f"(v19_2), "+f"(v19_3), "+f"(v20_0), "+f"(v20_1), "+f"(v20_2), "+f"(v20_3), "+f"(v21_0), "+f"(v21_1), "+f"(v21_2), "+f"(v21_3) :  : "memory");
                        v14 = (float4)(v14_0, v14_1, v14_2, v14_3);
                        v15 = (float4)(v15_0, v15_1, v15_2, v15_3);
                        v16 = (float4)(v16_0, v16_1, v16_2, v16_3);
                        v17 = (float4)(v17_0, v17_1, v17_2, v17_3);
                        v18 = (float4)(v18_0, v18_1, v18_2, v18_3);
                        v19 = (float4)(v19_0, v19_1, v19_2, v19_3);
                        v20 = (float4)(v20_0, v20_1, v20_2, v20_3);
                        v21 = (float4)(v21_0, v21_1, v21_2, v21_3);
                        if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)of_keys);
                        long i237 = i2 + 1;
                        if (t < 0 || t + 64 > i237) {
                            float2 v184 = (float2)(-INFINITY);
                            int i185 = (int)(0 - (t + lid % 4 * 2));
                            int i186 = (int)(i5 + 1 - (t + lid % 4 * 2));
                            int i187 = (int)(0 - (t + lid % 4 * 2));
                            int i188 = (int)(i5 + 8 + 1 - (t + lid % 4 * 2));
                            float2 v189 = v14.lo;
                            int2 v190 = ((int2)(0, 1) < (int2)((int)(i186)));
                            float2 v191 = (v190 ? v189 : v184);
                            float2 v192 = v14.hi;
                            int2 v193 = ((int2)(0, 1) < (int2)((int)(i188)));
                            float2 v194 = (v193 ? v192 : v184);
                            v14 = (float4)(v191, v194);
                            float2 v195 = v15.lo;
                            int2 v196 = ((int2)(0, 1) < (int2)((int)(i186 - 8)));
                            float2 v197 = (v196 ? v195 : v184);
                            float2 v198 = v15.hi;
                            int2 v199 = ((int2)(0, 1) < (int2)((int)(i188 - 8)));
                            float2 v200 = (v199 ? v198 : v184);
                            v15 = (float4)(v197, v200);
                            float2 v201 = v16.lo;
                            int2 v202 = ((int2)(0, 1) < (int2)((int)(i186 - 16)));
                            float2 v203 = (v202 ? v201 : v184);
                            float2 v204 = v16.hi;
                            int2 v205 = ((int2)(0, 1) < (int2)((int)(i188 - 16)));
                            float2 v206 = (v205 ? v204 : v184);
                            v16 = (float4)(v203, v206);
                            float2 v207 = v17.lo;
                            int2 v208 = ((int2)(0, 1) < (int2)((int)(i186 - 24)));
                            float2 v209 = (v208 ? v207 : v184);
                            float2 v210 = v17.hi;
                            int2 v211 = ((int2)(0, 1) < (int2)((int)(i188 - 24)));
                            float2 v212 = (v211 ? v210 : v184);
                            v17 = (float4)(v209, v212);
                            float2 v213 = v18.lo;
                            int2 v214 = ((int2)(0, 1) < (int2)((int)(i186 - 32)));
                            float2 v215 = (v214 ? v213 : v184);
                            float2 v216 = v18.hi;
                            int2 v217 = ((int2)(0, 1) < (int2)((int)(i188 - 32)));
                            float2 v218 = (v217 ? v216 : v184);
                            v18 = (float4)(v215, v218);
                            float2 v219 = v19.lo;
                            int2 v220 = ((int2)(0, 1) < (int2)((int)(i186 - 40)));
                            float2 v221 = (v220 ? v219 : v184);
                            float2 v222 = v19.hi;
                            int2 v223 = ((int2)(0, 1) < (int2)((int)(i188 - 40)));
                            float2 v224 = (v223 ? v222 : v184);
                            v19 = (float4)(v221, v224);
                            float2 v225 = v20.lo;
                            int2 v226 = ((int2)(0, 1) < (int2)((int)(i186 - 48)));
                            float2 v227 = (v226 ? v225 : v184);
                            float2 v228 = v20.hi;
                            int2 v229 = ((int2)(0, 1) < (int2)((int)(i188 - 48)));
                            float2 v230 = (v229 ? v228 : v184);
                            v20 = (float4)(v227, v230);
                            float2 v231 = v21.lo;
                            int2 v232 = ((int2)(0, 1) < (int2)((int)(i186 - 56)));
                            float2 v233 = (v232 ? v231 : v184);
                            float2 v234 = v21.hi;
                            int2 v235 = ((int2)(0, 1) < (int2)((int)(i188 - 56)));
                            float2 v236 = (v235 ? v234 : v184);
                            v21 = (float4)(v233, v236);
                        }
                        float2 v238 = v14.lo;
                        float2 v239 = v15.lo;
                        float2 v240 = fmax(v238, v239);
                        float2 v241 = v16.lo;
                        float2 v242 = fmax(v240, v241);
                        float2 v243 = v17.lo;
                        float2 v244 = fmax(v242, v243);
                        float2 v245 = v18.lo;
                        float2 v246 = fmax(v244, v245);
                        float2 v247 = v19.lo;
                        float2 v248 = fmax(v246, v247);
                        float2 v249 = v20.lo;
                        float2 v250 = fmax(v248, v249);
                        float2 v251 = v21.lo;
                        float2 v252 = fmax(v250, v251);
                        float v253 = v252.lo;
                        float v254 = v252.hi;
                        float v255 = fmax(v253, v254);
                        float v256 = fc_across(v255, 1);
                        float v257 = fmax(v255, v256);
                        float v258 = fc_across(v257, 2);
                        float v259 = fmax(v257, v258);
                        float v260 = fmax(v259, v6);
                        float2 v261 = v14.hi;
                        float2 v262 = v15.hi;
                        float2 v263 = fmax(v261, v262);
                        float2 v264 = v16.hi;
                        float2 v265 = fmax(v263, v264);
                        float2 v266 = v17.hi;
                        float2 v267 = fmax(v265, v266);
                        float2 v268 = v18.hi;
                        float2 v269 = fmax(v267, v268);
                        float2 v270 = v19.hi;
                        float2 v271 = fmax(v269, v270);
                        float2 v272 = v20.hi;
                        float2 v273 = fmax(v271, v272);
                        float2 v274 = v21.hi;
                        float2 v275 = fmax(v273, v274);
                        float v276 = v275.lo;
                        float v277 = v275.hi;
                        float v278 = fmax(v276, v277);
                        float v279 = fc_across(v278, 1);
                        float v280 = fmax(v278, v279);
                        float v281 = fc_across(v280, 2);
                        float v282 = fmax(v280, v281);
                        float v283 = fmax(v282, v7);
                        float v284 = v9.s0;
                        float v285 = (float)(-0x1.fffffe0000000p+127f);
                        float v286 = (v260 * v284);
                        float v287 = fmax(v286, v285);
                        float v288 = (float)(-0x1.0000000000000p+0f);
                        float v289 = (v287 * v288);
                        float v290 = v9.s0;
                        float v291 = (float)(-0x1.fffffe0000000p+127f);
                        float v292 = (v283 * v290);
                        float v293 = fmax(v292, v291);
                        float v294 = (float)(-0x1.0000000000000p+0f);
                        float v295 = (v293 * v294);
                        float v296 = v9.s0;
                        float v297 = fma(v6, v296, v289);
                        float v298 = native_exp2(v297);
                        float v299 = v9.s0;
                        float v300 = fma(v7, v299, v295);
                        float v301 = native_exp2(v300);
                        float2 v302 = (float2)(v298);
                        float2 v303 = (float2)(v301);
                        float4 v304 = (float4)(v302, v303);
                        float2 v305 = (float2)(v289);
                        float2 v306 = (float2)(v295);
                        float4 v307 = (float4)(v305, v306);
                        float4 v308 = v9;
                        float4 v309 = fma(v14, v308, v307);
                        float4 v310 = native_exp2(v309);
                        float4 v311 = v9;
                        float4 v312 = fma(v15, v311, v307);
                        float4 v313 = native_exp2(v312);
                        float4 v314 = v9;
                        float4 v315 = fma(v16, v314, v307);
                        float4 v316 = native_exp2(v315);
                        float4 v317 = v9;
                        float4 v318 = fma(v17, v317, v307);
                        float4 v319 = native_exp2(v318);
                        float4 v320 = v9;
                        float4 v321 = fma(v18, v320, v307);
                        float4 v322 = native_exp2(v321);
                        float4 v323 = v9;
                        float4 v324 = fma(v19, v323, v307);
                        float4 v325 = native_exp2(v324);
                        float4 v326 = v9;
                        float4 v327 = fma(v20, v326, v307);
                        float4 v328 = native_exp2(v327);
                        float4 v329 = v9;
                        float4 v330 = fma(v21, v329, v307);
                        float4 v331 = native_exp2(v330);
                        float4 v332 = (v8 * v304);
                        float4 v333 = (v332 + v310);
                        float4 v334 = (v333 + v313);
                        float4 v335 = (v334 + v316);
                        float4 v336 = (v335 + v319);
                        float4 v337 = (v336 + v322);
                        float4 v338 = (v337 + v325);
                        float4 v339 = (v338 + v328);
                        float4 v340 = (v339 + v331);
                        v8 = v340;
                        v6 = v260;
                        v7 = v283;
                        asm volatile("//sm_90a wgmma.wait_group.sync.aligned 0;" : "+f"(v10_0), "+f"(v10_1), "+f"(v10_2), "+f"(v10_3), "+f"(v11_0), "+f"(v11_1), "+f"(v11_2), "+f"(v11_3) : "r"(v22.s0), "r"(v22.s1), "r"(v22.s2), "r"(v22.s3), "r"(v23.s0), "r"(v23.s1), "r"(v23.s2), "r"(v23.s3), "r"(v24.s0), "r"(v24.s1), "r"(v24.s2), "r"(v24.s3), "r"(v25.s0), "r"(v25.s1), "r"(v25.s2), "r"(v25.s3) : "memory");
                        v10 = (float4)(v10_0, v10_1, v10_2, v10_3);
                        v11 = (float4)(v11_0, v11_1, v11_2, v11_3);
                        if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)of_values);
                        float4 v341 = (v10 * v304);
                        v10 = v341;
                        float4 v342 = (v11 * v304);
                        v11 = v342;
                        v22 = fc_pack_f16(v310, v313);
                        v23 = fc_pack_f16(v316, v319);
                        v24 = fc_pack_f16(v322, v325);
                        v25 = fc_pack_f16(v328, v331);
                    }
                    const long of_values = (ring_turn + (uint)(2 * i13 - 1)) % 8;
                    fc_await(ring_full + 8 * (uint)of_values, (ring_turn + (uint)(2 * i13 - 1)) / 8 & 1);
                    {
                        const ulong right = fc_operand((const __local ushort *)tiles + (8192 + of_values * 4096), 8192);
                        float v10_0 = v10.s0, v10_1 = v10.s1, v10_2 = v10.s2, v10_3 = v10.s3, v11_0 = v11.s0, v11_1 = v11.s1, v11_2 = v11.s2, v11_3 = v11.s3;
                        asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned; add.s64 b, %24, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, b, yes, 1, 1, 1; add.s64 b, %24, 128; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%12, %13, %14, %15}, b, yes, 1, 1, 1; add.s64 b, %24, 256; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%16, %17, %18, %19}, b, yes, 1, 1, 1; add.s64 b, %24, 384; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%20, %21, %22, %23}, b, yes, 1, 1, 1; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                                     : "+f"(v10_0), "+f"(v10_1), "+f"(v10_2), "+f"(v10_3), "+f"(v11_0), "+f"(v11_1), "+f"(v11_2), "+f"(v11_3)
                                     : "r"(v22.s0), "r"(v22.s1), "r"(v22.s2), "r"(v22.s3), "r"(v23.s0), "r"(v23.s1), "r"(v23.s2), "r"(v23.s3), "r"(v24.s0), "r"(v24.s1), "r"(v24.s2), "r"(v24.s3), "r"(v25.s0), "r"(v25.s1), "r"(v25.s2), "r"(v25.s3), "l"(right) : "memory");
                        v10 = (float4)(v10_0, v10_1, v10_2, v10_3);
                        v11 = (float4)(v11_0, v11_1, v11_2, v11_3);
                    }
                    if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)of_values);
                }
            }
            ring_turn += (uint)(2 * i13);
            int i343 = (int)(i4 + (int)lid % 32 / 4);
            if (lid < 256) {
                float2 v344 = v8.lo;
                float v345 = v344.lo;
                float v346 = v344.hi;
                float v347 = (v345 + v346);
                float v348 = fc_across(v347, 1);
                float v349 = (v347 + v348);
                float v350 = fc_across(v349, 2);
                float v351 = (v349 + v350);
                whole[i343] = v351;
                float2 v352 = v8.hi;
                float v353 = v352.lo;
                float v354 = v352.hi;
                float v355 = (v353 + v354);
                float v356 = fc_across(v355, 1);
                float v357 = (v355 + v356);
                float v358 = fc_across(v357, 2);
                float v359 = (v357 + v358);
                whole[i343 + 8] = v359;
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (lid < 256) {
                int i360 = (int)((i4 + lid % 32 / 4) * 24 + lid % 4 * 2);
                float2 v361 = v10.lo;
                *(__local float2 *)(tiles + i360) = v361;
                float2 v362 = v10.hi;
                *(__local float2 *)(tiles + i360 + 192) = v362;
                float2 v363 = v11.lo;
                *(__local float2 *)(tiles + i360 + 8) = v363;
                float2 v364 = v11.hi;
                *(__local float2 *)(tiles + i360 + 200) = v364;
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            #pragma unroll 4
            for (long e = lid; e < 512; e += 288) {
                int i365 = (int)((int)e / 4);
                int i366 = (int)((int)e % 4 * 4);
                if (i2 + i365 <= i3 && i366 < 16) {
                    float4 v367 = *(__local float4 *)(tiles + i365 * 24 + i366);
                    long i368 = i2 + i365;
                    long i369 = (long)i366;
                    float v370 = whole[i365];
                    float4 v371 = (float4)(0x0.0p+0f);
                    float4 v372 = (float4)(v370);
                    int4 v373 = (v372 == v371);
                    float4 v374 = (v367 / v372);
                    float4 v375 = (v373 ? v371 : v374);
                    float2 v376 = v375.lo;
                    float2 v377 = v375.hi;
                    float2 v378 = (v376 + v377);
                    float v379 = v378.lo;
                    float v380 = v378.hi;
                    float v381 = (v379 + v380);
                    if (isnan(v381) && isfinite(v370)) {
                        float v382 = (float)(-0x1.fffffe0000000p+127f);
                        float v383 = (float)(0x0.0p+0f);
                        float4 v384 = (float4)(0x0.0p+0f);
                        long i385 = i1 + (n >> 62);
                        long i386 = i385 * 2080;
                        long i387 = i385 * 2080;
                        long i388 = i385 * 2080;
                        for (long u = 0; u < (i368 + 1); u++) {
                            float v389 = (float)(0x0.0p+0f);
                            for (long c = 0; c < 16; c++) {
                                float v390 = vload_half(i386 + i368 * 16 + c, in0);
                                float v391 = vload_half(i387 + u * 16 + c, in0);
                                v389 = fma(v390, v391, v389);
                            }
                            float v392 = (float)(0x1.71547652b82fep-2f);
                            float v393 = (v389 * v392);
                            float v394 = fmax(v382, v393);
                            float v395 = (v382 - v394);
                            float v396 = native_exp2(v395);
                            float v397 = (v393 - v394);
                            float v398 = native_exp2(v397);
                            v383 = fma(v383, v396, v398);
                            v382 = v394;
                            float4 v399 = vload_half4(0, in0 + (i388 + u * 16 + i369));
                            float4 v400 = (float4)(v396);
                            float4 v401 = (v384 * v400);
                            float4 v402 = (float4)(v398);
                            v384 = fma(v402, v399, v401);
                        }
                        float4 v403 = (float4)(0x0.0p+0f);
                        float4 v404 = (float4)(v383);
                        int4 v405 = (v404 == v403);
                        float4 v406 = (v384 / v404);
                        float4 v407 = (v405 ? v403 : v406);
                        v375 = v407;
                    }
                    float4 v408 = fc_round_float16_4(v375);
                    vstore_half4((v408 == v408 ? v408 : (float4)(as_float(0x7fc00000U))), 0, out0 + (i1 * 2080 + i368 * 16 + i369));
                    if (any(v408 != v408)) {
                        if (v408.s0 != v408.s0) ((__global ushort *)out0)[i1 * 2080 + i368 * 16 + i369] = 0x7e00;
                        if (v408.s1 != v408.s1) ((__global ushort *)out0)[i1 * 2080 + i368 * 16 + i369 + 1] = 0x7e00;
                        if (v408.s2 != v408.s2) ((__global ushort *)out0)[i1 * 2080 + i368 * 16 + i369 + 2] = 0x7e00;
                        if (v408.s3 != v408.s3) ((__global ushort *)out0)[i1 * 2080 + i368 * 16 + i369 + 3] = 0x7e00;
                    }
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        }
    }
}
