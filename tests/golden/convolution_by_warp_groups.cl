#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void k0(
    __global const half *restrict in0,
    __global half *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long t = wid; t < n; t += wsize) {
        long i0 = t / 3328;
        int i1 = (int)(t - i0 * 3328);
        int i2 = (int)(i1 / 16);
        int i3 = (int)(i1 % 16);
        float v4 = (float)(0x0.0p+0f);
        int i5 = (int)(i2 / 26 % 8);
        int i6 = (int)(i2 % 26);
        if (i5 - 1 >= 0 && i5 - 1 < 6 && i6 - 1 >= 0 && i6 - 1 < 24) {
            long i7 = i0 * 2304 + (i5 - 1) * 24 + (i6 - 1);
            float v8 = vload_half(i7 + i3 * 144, in0);
            v4 = v8;
        }
        vstore_half((v4 == v4 ? v4 : (float)(as_float(0x7fc00000U))), i0 * 3328 + i2 / 26 % 8 * 416 + i2 % 26 * 16 + i3, out0);
        if (v4 != v4) ((__global ushort *)out0)[i0 * 3328 + i2 / 26 % 8 * 416 + i2 % 26 * 16 + i3] = 0x7e00;
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

static inline void fc_copy_box_of(uint to, ulong map, int column, int row, int matrix, uint barrier) {
    asm volatile("//sm_90a cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(map), "r"(column), "r"(row), "r"(matrix), "r"(barrier) : "memory");
}

static inline void fc_copy_box_in_of(uint to, ulong map, int column, int row, int plane, int matrix, uint barrier) {
    asm volatile("//sm_90a cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(to), "l"(map), "r"(column), "r"(row), "r"(plane), "r"(matrix), "r"(barrier) : "memory");
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
void k1(
    __global const half *restrict in0,
    __global const half *restrict in1,
    __global half *restrict out0,
    __global uchar *maps0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local float tiles[40960] __attribute__((aligned(1024)));
    __local ulong barriers[10] __attribute__((aligned(64)));
    __local uint fields[64] __attribute__((aligned(128)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    const uint ring_full = (uint)(size_t)&barriers[0], ring_empty = ring_full + 40;
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
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"(64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 2, %1;" :: "l"(ring_fields0), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(16) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"((uint)(16)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 2, %1;" :: "l"(ring_fields0), "r"(2147483647) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" :: "l"(ring_fields0), "l"((ulong)288) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 1, %1;" :: "l"(ring_fields0), "l"((ulong)32) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 2, %1;" :: "l"(ring_fields0), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 6;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields0) : "memory");
            const ulong ring_fields1 = (ulong)(size_t)&fields[32];
            asm volatile("//sm_90a tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" :: "l"(ring_fields1), "l"((ulong)(in1 + 0)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 3;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"(24) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 2, %1;" :: "l"(ring_fields1), "r"(2) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 3, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(16) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"((uint)(26)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 2, %1;" :: "l"(ring_fields1), "r"(8) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 3, %1;" :: "l"(ring_fields1), "r"((uint)(n / 16)) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" :: "l"(ring_fields1), "l"((ulong)32) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 1, %1;" :: "l"(ring_fields1), "l"((ulong)832) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 2, %1;" :: "l"(ring_fields1), "l"((ulong)6656) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 2, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 3, %1;" :: "l"(ring_fields1), "r"(1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 6;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" :: "l"(ring_fields1) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" :: "l"(ring_fields1) : "memory");
            for (int i = 0; i < 5; i++)
                asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(ring_full + 8 * i), "r"(1) : "memory");
            for (int i = 0; i < 5; i++)
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
            for (long t = gid; t < ((n / 16 * 3 + 3) / 4); t += gsize) {
                long i0 = n / 16;
                long i1 = t * 4;
                long i2 = i1 / 3;
                int i3 = (int)((int)(i1 - i2 * 3));
                long i4 = i2 + i3 / 3;
                long i5 = i3 % 3 * 2;
                long i6 = i2 + (i3 + 1) / 3;
                long i7 = (i3 + 1) % 3 * 2;
                long i8 = i2 + (i3 + 2) / 3;
                long i9 = (i3 + 2) % 3 * 2;
                long i10 = i2 + (i3 + 3) / 3;
                long i11 = (i3 + 3) % 3 * 2;
                for (long s = 0; s < 9; s++) {
                    const uint at = ring_turn + (uint)s;
                    const long stage = at % 5;
                    if (at >= 5) fc_await(ring_empty + 8 * (uint)stage, at / 5 - 1 & 1);
                    fc_expect(ring_full + 8 * (uint)stage, 32768);
                    fc_copy_box_of((uint)(size_t)((__local ushort *)tiles + (stage * 16384)), ring_map0, (int)(0), (int)(0), (int)(s), ring_full + 8 * (uint)stage);
                    fc_copy_box_in_of((uint)(size_t)((__local ushort *)tiles + (stage * 16384 + 4096)), ring_map1, (int)(0), (int)(s % 3), (int)(i5 + s / 3), (int)(i4), ring_full + 8 * (uint)stage);
                    fc_copy_box_in_of((uint)(size_t)((__local ushort *)tiles + (stage * 16384 + 4096 + 3072)), ring_map1, (int)(0), (int)(s % 3), (int)(i7 + s / 3), (int)(i6), ring_full + 8 * (uint)stage);
                    fc_copy_box_in_of((uint)(size_t)((__local ushort *)tiles + (stage * 16384 + 4096 + 6144)), ring_map1, (int)(0), (int)(s % 3), (int)(i9 + s / 3), (int)(i8), ring_full + 8 * (uint)stage);
                    fc_copy_box_in_of((uint)(size_t)((__local ushort *)tiles + (stage * 16384 + 4096 + 9216)), ring_map1, (int)(0), (int)(s % 3), (int)(i11 + s / 3), (int)(i10), ring_full + 8 * (uint)stage);
                }
                ring_turn += (uint)(9);
            }
        }
    } else {
        asm volatile("//sm_90a setmaxnreg.inc.sync.aligned.u32 232;" ::  : "memory");
        for (long t = gid; t < ((n / 16 * 3 + 3) / 4); t += gsize) {
            long i12 = n / 16;
            long i13 = t * 4;
            long i14 = i13 / 3;
            int i15 = (int)((int)(i13 - i14 * 3));
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
            for (long s = 0; s < 9; s++) {
                const long stage = (ring_turn + (uint)(s)) % 5;
                fc_await(ring_full + 8 * (uint)stage, (ring_turn + (uint)(s)) / 5 & 1);
                {
                    const ulong left = fc_operand((const __local ushort *)tiles + (stage * 16384), 16);
                    const ulong right = fc_operand((const __local ushort *)tiles + (stage * 16384 + 4096 + ring_group * 6144), 16);
                    float v16_0 = v16.s0, v16_1 = v16.s1, v16_2 = v16.s2, v16_3 = v16.s3, v17_0 = v17.s0, v17_1 = v17.s1, v17_2 = v17.s2, v17_3 = v17.s3, v18_0 = v18.s0, v18_1 = v18.s1, v18_2 = v18.s2, v18_3 = v18.s3, v19_0 = v19.s0, v19_1 = v19.s1, v19_2 = v19.s2, v19_3 = v19.s3, v20_0 = v20.s0, v20_1 = v20.s1, v20_2 = v20.s2, v20_3 = v20.s3, v21_0 = v21.s0, v21_1 = v21.s1, v21_2 = v21.s2, v21_3 = v21.s3, v22_0 = v22.s0, v22_1 = v22.s1, v22_2 = v22.s2, v22_3 = v22.s3, v23_0 = v23.s0, v23_1 = v23.s1, v23_2 = v23.s2, v23_3 = v23.s3, v24_0 = v24.s0, v24_1 = v24.s1, v24_2 = v24.s2, v24_3 = v24.s3, v25_0 = v25.s0, v25_1 = v25.s1, v25_2 = v25.s2, v25_3 = v25.s3, v26_0 = v26.s0, v26_1 = v26.s1, v26_2 = v26.s2, v26_3 = v26.s3, v27_0 = v27.s0, v27_1 = v27.s1, v27_2 = v27.s2, v27_3 = v27.s3;
                    asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned; add.s64 a, %48, 0; add.s64 b, %49, 0; wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47}, a, b, yes, 1, 1, 0, 0; add.s64 a, %48, 2; add.s64 b, %49, 2; wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47}, a, b, yes, 1, 1, 0, 0; add.s64 a, %48, 4; add.s64 b, %49, 4; wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47}, a, b, yes, 1, 1, 0, 0; add.s64 a, %48, 6; add.s64 b, %49, 6; wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47}, a, b, yes, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                                 : "+f"(v16_0), "+f"(v16_1), "+f"(v16_2), "+f"(v16_3), "+f"(v17_0), "+f"(v17_1), "+f"(v17_2), "+f"(v17_3), "+f"(v18_0), "+f"(v18_1), "+f"(v18_2), "+f"(v18_3), "+f"(v19_0), "+f"(v19_1), "+f"(v19_2), "+f"(v19_3), "+f"(v20_0), "+f"(v20_1), "+f"(v20_2), "+f"(v20_3), "+f"(v21_0), "+f"(v21_1), "+f"(v21_2), "+f"(v21_3), "+f"(v22_0), "+f"(v22_1), "+f"(v22_2), "+f"(v22_3), "+f"(v23_0), "+f"(v23_1), "+f"(v23_2), "+f"(v23_3), "+f"(v24_0), "+f"(v24_1), "+f"(v24_2), "+f"(v24_3), "+f"(v25_0), "+f"(v25_1), "+f"(v25_2), "+f"(v25_3), "+f"(v26_0), "+f"(v26_1), "+f"(v26_2), "+f"(v26_3), "+f"(v27_0), "+f"(v27_1), "+f"(v27_2), "+f"(v27_3)
                                 : "l"(left), "l"(right) : "memory");
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
            ring_turn += (uint)(9);
            int v28 = (long)(lid % 2);
            int i29 = (int)(lid / 32 % 4 * 16 + lid % 32 / 4);
            int i30 = (int)(ring_group * 96 + lid % 2 * 8 + lid % 4 / 2 * 4);
            float2 v31 = v16.lo;
            float2 v32 = v17.lo;
            float2 v33 = (v28 ? v31 : v32);
            float2 v34 = (float2)(fc_across(v33.s0, 1), fc_across(v33.s1, 1));
            float2 v35 = (v28 ? v34 : v31);
            float2 v36 = (v28 ? v32 : v34);
            if (i29 < 16 && i14 + (i15 + i30 / 48) / 3 < i12) {
                float4 v37 = (float4)(v35.s0, v35.s1, v36.s0, v36.s1);
                long i38 = i30 % 48 % 24;
                long i39 = (i14 + (i15 + i30 / 48) / 3) * 16 + i29;
                long i40 = i39 / 16;
                long i41 = i39 % 16;
                long i42 = ((i15 + i30 / 48) % 3 * 2 + i30 % 48 / 24) * 24 + i38;
                float4 v43 = fc_round_float16_4(v37);
                fc_store_float16_4(out0 + (i40 * 2304 + i41 * 144 + i42), v37);
            }
            float2 v44 = v16.hi;
            float2 v45 = v17.hi;
            float2 v46 = (v28 ? v44 : v45);
            float2 v47 = (float2)(fc_across(v46.s0, 1), fc_across(v46.s1, 1));
            float2 v48 = (v28 ? v47 : v44);
            float2 v49 = (v28 ? v45 : v47);
            if (i29 + 8 < 16 && i14 + (i15 + i30 / 48) / 3 < i12) {
                float4 v50 = (float4)(v48.s0, v48.s1, v49.s0, v49.s1);
                long i51 = i30 % 48 % 24;
                long i52 = (i14 + (i15 + i30 / 48) / 3) * 16 + (i29 + 8);
                long i53 = i52 / 16;
                long i54 = i52 % 16;
                long i55 = ((i15 + i30 / 48) % 3 * 2 + i30 % 48 / 24) * 24 + i51;
                float4 v56 = fc_round_float16_4(v50);
                fc_store_float16_4(out0 + (i53 * 2304 + i54 * 144 + i55), v50);
            }
            float2 v57 = v18.lo;
            float2 v58 = v19.lo;
            float2 v59 = (v28 ? v57 : v58);
            float2 v60 = (float2)(fc_across(v59.s0, 1), fc_across(v59.s1, 1));
            float2 v61 = (v28 ? v60 : v57);
            float2 v62 = (v28 ? v58 : v60);
            if (i29 < 16 && i14 + (i15 + (i30 + 16) / 48) / 3 < i12) {
                float4 v63 = (float4)(v61.s0, v61.s1, v62.s0, v62.s1);
                long i64 = (i30 + 16) % 48 % 24;
                long i65 = (i14 + (i15 + (i30 + 16) / 48) / 3) * 16 + i29;
                long i66 = i65 / 16;
                long i67 = i65 % 16;
                long i68 = ((i15 + (i30 + 16) / 48) % 3 * 2 + (i30 + 16) % 48 / 24) * 24 + i64;
                float4 v69 = fc_round_float16_4(v63);
                fc_store_float16_4(out0 + (i66 * 2304 + i67 * 144 + i68), v63);
            }
            float2 v70 = v18.hi;
            float2 v71 = v19.hi;
            float2 v72 = (v28 ? v70 : v71);
            float2 v73 = (float2)(fc_across(v72.s0, 1), fc_across(v72.s1, 1));
            float2 v74 = (v28 ? v73 : v70);
            float2 v75 = (v28 ? v71 : v73);
            if (i29 + 8 < 16 && i14 + (i15 + (i30 + 16) / 48) / 3 < i12) {
                float4 v76 = (float4)(v74.s0, v74.s1, v75.s0, v75.s1);
                long i77 = (i30 + 16) % 48 % 24;
                long i78 = (i14 + (i15 + (i30 + 16) / 48) / 3) * 16 + (i29 + 8);
                long i79 = i78 / 16;
                long i80 = i78 % 16;
                long i81 = ((i15 + (i30 + 16) / 48) % 3 * 2 + (i30 + 16) % 48 / 24) * 24 + i77;
                float4 v82 = fc_round_float16_4(v76);
                fc_store_float16_4(out0 + (i79 * 2304 + i80 * 144 + i81), v76);
            }
            float2 v83 = v20.lo;
            float2 v84 = v21.lo;
            float2 v85 = (v28 ? v83 : v84);
            float2 v86 = (float2)(fc_across(v85.s0, 1), fc_across(v85.s1, 1));
            float2 v87 = (v28 ? v86 : v83);
            float2 v88 = (v28 ? v84 : v86);
            if (i29 < 16 && i14 + (i15 + (i30 + 32) / 48) / 3 < i12) {
                float4 v89 = (float4)(v87.s0, v87.s1, v88.s0, v88.s1);
                long i90 = (i30 + 32) % 48 % 24;
                long i91 = (i14 + (i15 + (i30 + 32) / 48) / 3) * 16 + i29;
                long i92 = i91 / 16;
                long i93 = i91 % 16;
                long i94 = ((i15 + (i30 + 32) / 48) % 3 * 2 + (i30 + 32) % 48 / 24) * 24 + i90;
                float4 v95 = fc_round_float16_4(v89);
                fc_store_float16_4(out0 + (i92 * 2304 + i93 * 144 + i94), v89);
            }
            float2 v96 = v20.hi;
            float2 v97 = v21.hi;
            float2 v98 = (v28 ? v96 : v97);
            float2 v99 = (float2)(fc_across(v98.s0, 1), fc_across(v98.s1, 1));
            float2 v100 = (v28 ? v99 : v96);
            float2 v101 = (v28 ? v97 : v99);
            if (i29 + 8 < 16 && i14 + (i15 + (i30 + 32) / 48) / 3 < i12) {
                float4 v102 = (float4)(v100.s0, v100.s1, v101.s0, v101.s1);
                long i103 = (i30 + 32) % 48 % 24;
                long i104 = (i14 + (i15 + (i30 + 32) / 48) / 3) * 16 + (i29 + 8);
                long i105 = i104 / 16;
                long i106 = i104 % 16;
                long i107 = ((i15 + (i30 + 32) / 48) % 3 * 2 + (i30 + 32) % 48 / 24) * 24 + i103;
                float4 v108 = fc_round_float16_4(v102);
                fc_store_float16_4(out0 + (i105 * 2304 + i106 * 144 + i107), v102);
            }
            float2 v109 = v22.lo;
            float2 v110 = v23.lo;
            float2 v111 = (v28 ? v109 : v110);
            float2 v112 = (float2)(fc_across(v111.s0, 1), fc_across(v111.s1, 1));
            float2 v113 = (v28 ? v112 : v109);
            float2 v114 = (v28 ? v110 : v112);
            if (i29 < 16 && i14 + (i15 + (i30 + 48) / 48) / 3 < i12) {
                float4 v115 = (float4)(v113.s0, v113.s1, v114.s0, v114.s1);
                long i116 = (i30 + 48) % 48 % 24;
                long i117 = (i14 + (i15 + (i30 + 48) / 48) / 3) * 16 + i29;
                long i118 = i117 / 16;
                long i119 = i117 % 16;
                long i120 = ((i15 + (i30 + 48) / 48) % 3 * 2 + (i30 + 48) % 48 / 24) * 24 + i116;
                float4 v121 = fc_round_float16_4(v115);
                fc_store_float16_4(out0 + (i118 * 2304 + i119 * 144 + i120), v115);
            }
            float2 v122 = v22.hi;
            float2 v123 = v23.hi;
            float2 v124 = (v28 ? v122 : v123);
            float2 v125 = (float2)(fc_across(v124.s0, 1), fc_across(v124.s1, 1));
            float2 v126 = (v28 ? v125 : v122);
            float2 v127 = (v28 ? v123 : v125);
            if (i29 + 8 < 16 && i14 + (i15 + (i30 + 48) / 48) / 3 < i12) {
                float4 v128 = (float4)(v126.s0, v126.s1, v127.s0, v127.s1);
                long i129 = (i30 + 48) % 48 % 24;
                long i130 = (i14 + (i15 + (i30 + 48) / 48) / 3) * 16 + (i29 + 8);
                long i131 = i130 / 16;
                long i132 = i130 % 16;
                long i133 = ((i15 + (i30 + 48) / 48) % 3 * 2 + (i30 + 48) % 48 / 24) * 24 + i129;
                float4 v134 = fc_round_float16_4(v128);
                fc_store_float16_4(out0 + (i131 * 2304 + i132 * 144 + i133), v128);
            }
            float2 v135 = v24.lo;
            float2 v136 = v25.lo;
            float2 v137 = (v28 ? v135 : v136);
            float2 v138 = (float2)(fc_across(v137.s0, 1), fc_across(v137.s1, 1));
            float2 v139 = (v28 ? v138 : v135);
            float2 v140 = (v28 ? v136 : v138);
            if (i29 < 16 && i14 + (i15 + (i30 + 64) / 48) / 3 < i12) {
                float4 v141 = (float4)(v139.s0, v139.s1, v140.s0, v140.s1);
                long i142 = (i30 + 64) % 48 % 24;
                long i143 = (i14 + (i15 + (i30 + 64) / 48) / 3) * 16 + i29;
                long i144 = i143 / 16;
                long i145 = i143 % 16;
                long i146 = ((i15 + (i30 + 64) / 48) % 3 * 2 + (i30 + 64) % 48 / 24) * 24 + i142;
                float4 v147 = fc_round_float16_4(v141);
                fc_store_float16_4(out0 + (i144 * 2304 + i145 * 144 + i146), v141);
            }
            float2 v148 = v24.hi;
            float2 v149 = v25.hi;
            float2 v150 = (v28 ? v148 : v149);
            float2 v151 = (float2)(fc_across(v150.s0, 1), fc_across(v150.s1, 1));
            float2 v152 = (v28 ? v151 : v148);
            float2 v153 = (v28 ? v149 : v151);
            if (i29 + 8 < 16 && i14 + (i15 + (i30 + 64) / 48) / 3 < i12) {
                float4 v154 = (float4)(v152.s0, v152.s1, v153.s0, v153.s1);
                long i155 = (i30 + 64) % 48 % 24;
                long i156 = (i14 + (i15 + (i30 + 64) / 48) / 3) * 16 + (i29 + 8);
                long i157 = i156 / 16;
                long i158 = i156 % 16;
                long i159 = ((i15 + (i30 + 64) / 48) % 3 * 2 + (i30 + 64) % 48 / 24) * 24 + i155;
                float4 v160 = fc_round_float16_4(v154);
                fc_store_float16_4(out0 + (i157 * 2304 + i158 * 144 + i159), v154);
            }
            float2 v161 = v26.lo;
            float2 v162 = v27.lo;
            float2 v163 = (v28 ? v161 : v162);
            float2 v164 = (float2)(fc_across(v163.s0, 1), fc_across(v163.s1, 1));
            float2 v165 = (v28 ? v164 : v161);
            float2 v166 = (v28 ? v162 : v164);
            if (i29 < 16 && i14 + (i15 + (i30 + 80) / 48) / 3 < i12) {
                float4 v167 = (float4)(v165.s0, v165.s1, v166.s0, v166.s1);
                long i168 = (i30 + 80) % 48 % 24;
                long i169 = (i14 + (i15 + (i30 + 80) / 48) / 3) * 16 + i29;
                long i170 = i169 / 16;
                long i171 = i169 % 16;
                long i172 = ((i15 + (i30 + 80) / 48) % 3 * 2 + (i30 + 80) % 48 / 24) * 24 + i168;
                float4 v173 = fc_round_float16_4(v167);
                fc_store_float16_4(out0 + (i170 * 2304 + i171 * 144 + i172), v167);
            }
            float2 v174 = v26.hi;
            float2 v175 = v27.hi;
            float2 v176 = (v28 ? v174 : v175);
            float2 v177 = (float2)(fc_across(v176.s0, 1), fc_across(v176.s1, 1));
            float2 v178 = (v28 ? v177 : v174);
            float2 v179 = (v28 ? v175 : v177);
            if (i29 + 8 < 16 && i14 + (i15 + (i30 + 80) / 48) / 3 < i12) {
                float4 v180 = (float4)(v178.s0, v178.s1, v179.s0, v179.s1);
                long i181 = (i30 + 80) % 48 % 24;
                long i182 = (i14 + (i15 + (i30 + 80) / 48) / 3) * 16 + (i29 + 8);
                long i183 = i182 / 16;
                long i184 = i182 % 16;
                long i185 = ((i15 + (i30 + 80) / 48) % 3 * 2 + (i30 + 80) % 48 / 24) * 24 + i181;
                float4 v186 = fc_round_float16_4(v180);
                fc_store_float16_4(out0 + (i183 * 2304 + i184 * 144 + i185), v180);
            }
        }
    }
}
