#pragma OPENCL FP_CONTRACT OFF

static inline float fc_round_float16_1(float x) {
    uint bits = as_uint(x), sign = bits & (uint)(0x80000000), size = bits ^ sign;
    uint near = (size + (uint)(0xfff) + ((size >> (uint)(13)) & (uint)(1))) & (uint)(0xffffe000);
    float tiny = (as_float(size) + (float)(0.5f)) - (float)(0.5f);
    uint result = size < (uint)(0x38800000) ? as_uint(tiny) : near;
    result = near >= (uint)(0x47800000) ? (uint)(0x7f800000) : result;
    result = size > (uint)(0x7f800000) ? (uint)(0x7fc00000) : result;
    return as_float(result | sign);
}

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
        long i0 = t / 16;
        long i1 = i0 / 208;
        long i2 = i0 % 208;
        long i3 = t % 16;
        float v4 = (float)(0x0.0p+0f);
        long i5 = i2 / 26 % 8;
        long i6 = i2 % 26;
        if (i5 - 1 >= 0 && i5 - 1 < 6 && i6 - 1 >= 0 && i6 - 1 < 24) {
            long i7 = i1 * 2304 + (i5 - 1) * 24 + (i6 - 1);
            float v8 = vload_half(i7 + i3 * 144, in0);
            v4 = v8;
        }
        float v9 = fc_round_float16_1(v4);
        vstore_half((v9 == v9 ? v9 : (float)(as_float(0x7fc00000U))), i1 * 3328 + i2 / 26 % 8 * 416 + i2 % 26 * 16 + i3, out0);
        if (v9 != v9) ((__global ushort *)out0)[i1 * 3328 + i2 / 26 % 8 * 416 + i2 % 26 * 16 + i3] = 0x7e00;
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

static inline float4 fc_round_float16_4(float4 x) {
    float y0, y1, y2, y3;
    asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(y0) : "f"(x.s0));
    asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(y1) : "f"(x.s1));
    asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(y2) : "f"(x.s2));
    asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(y3) : "f"(x.s3));
    uint4 quiet = as_uint4(x) & (uint4)(0x80000000) | (uint4)(0x7fc00000);
    return x == x ? (float4)(y0, y1, y2, y3) : as_float4(quiet);
}

static inline void fc_store_float16_4(__global half *to, float4 x) {
    uint2 both;
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(both.s0) : "f"(x.s0), "f"(x.s1));
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(both.s1) : "f"(x.s2), "f"(x.s3));
    // Platforms give NaNs different bits.
    const ushort4 bits = convert_short4(x == x) ? as_ushort4(both) : (ushort4)(0x7e00);
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
    __local float tiles[49152] __attribute__((aligned(1024)));
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
            asm volatile("//sm_90a tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 2;" :: "l"(ring_fields0) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "l"(ring_fields0), "r"(64) : "memory");
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields0), "r"(128) : "memory");
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
            asm volatile("//sm_90a tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "l"(ring_fields1), "r"(32) : "memory");
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
    for (long t = gid; t < ((n / 16 * 3 + 3) / 4); t += gsize) {
        long i0 = n / 16;
        long i1 = i0 * 3;
        long i2 = t * 4;
        float4 v3 = (float4)(-0x0.0p+0f);
        float4 v4 = (float4)(-0x0.0p+0f);
        float4 v5 = (float4)(-0x0.0p+0f);
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
        float4 v22 = (float4)(-0x0.0p+0f);
        float4 v23 = (float4)(-0x0.0p+0f);
        float4 v24 = (float4)(-0x0.0p+0f);
        float4 v25 = (float4)(-0x0.0p+0f);
        float4 v26 = (float4)(-0x0.0p+0f);
        float4 v27 = (float4)(-0x0.0p+0f);
        float4 v28 = (float4)(-0x0.0p+0f);
        float4 v29 = (float4)(-0x0.0p+0f);
        float4 v30 = (float4)(-0x0.0p+0f);
        float4 v31 = (float4)(-0x0.0p+0f);
        float4 v32 = (float4)(-0x0.0p+0f);
        float4 v33 = (float4)(-0x0.0p+0f);
        float4 v34 = (float4)(-0x0.0p+0f);
        long i35 = i2 / 3;
        long i36 = i2 % 3 * 2;
        long i37 = i2 + 1;
        long i38 = i37 / 3;
        long i39 = i37 % 3 * 2;
        long i40 = i2 + 2;
        long i41 = i40 / 3;
        long i42 = i40 % 3 * 2;
        long i43 = i2 + 3;
        long i44 = i43 / 3;
        long i45 = i43 % 3 * 2;
        asm volatile("//sm_90a fence.proxy.async.shared::cta;" ::  : "memory");
        barrier(CLK_LOCAL_MEM_FENCE);
        if (ring_subgroup >= 8) {
            for (long s = 0; lid == 256 && s < 9; s++) {
                const uint at = ring_turn + (uint)s;
                const long stage = at % 4;
                if (at >= 4) fc_await(ring_empty + 8 * (uint)stage, at / 4 - 1 & 1);
                fc_expect(ring_full + 8 * (uint)stage, 49152);
                fc_copy_box_of((uint)(size_t)((__local ushort *)tiles + (stage * 24576)), ring_map0, (int)(0), (int)(0), (int)(s), ring_full + 8 * (uint)stage);
                fc_copy_box_in_of((uint)(size_t)((__local ushort *)tiles + (stage * 24576 + 8192)), ring_map1, (int)(0), (int)(s % 3), (int)(i36 + s / 3), (int)(i35), ring_full + 8 * (uint)stage);
                fc_copy_box_in_of((uint)(size_t)((__local ushort *)tiles + (stage * 24576 + 8192 + 4096)), ring_map1, (int)(0), (int)(s % 3), (int)(i39 + s / 3), (int)(i38), ring_full + 8 * (uint)stage);
                fc_copy_box_in_of((uint)(size_t)((__local ushort *)tiles + (stage * 24576 + 8192 + 8192)), ring_map1, (int)(0), (int)(s % 3), (int)(i42 + s / 3), (int)(i41), ring_full + 8 * (uint)stage);
                fc_copy_box_in_of((uint)(size_t)((__local ushort *)tiles + (stage * 24576 + 8192 + 12288)), ring_map1, (int)(0), (int)(s % 3), (int)(i45 + s / 3), (int)(i44), ring_full + 8 * (uint)stage);
            }
        } else {
            for (long s = 0; s < 9; s++) {
                const long stage = (ring_turn + (uint)(s)) % 4;
                fc_await(ring_full + 8 * (uint)stage, (ring_turn + (uint)(s)) / 4 & 1);
                {
                    const ulong left = fc_operand((const __local ushort *)tiles + (stage * 24576 + ring_group * 4096), 16);
                    const ulong right = fc_operand((const __local ushort *)tiles + (stage * 24576 + 8192), 16);
                    float v3_0 = v3.s0, v3_1 = v3.s1, v3_2 = v3.s2, v3_3 = v3.s3, v4_0 = v4.s0, v4_1 = v4.s1, v4_2 = v4.s2, v4_3 = v4.s3, v5_0 = v5.s0, v5_1 = v5.s1, v5_2 = v5.s2, v5_3 = v5.s3, v6_0 = v6.s0, v6_1 = v6.s1, v6_2 = v6.s2, v6_3 = v6.s3, v7_0 = v7.s0, v7_1 = v7.s1, v7_2 = v7.s2, v7_3 = v7.s3, v8_0 = v8.s0, v8_1 = v8.s1, v8_2 = v8.s2, v8_3 = v8.s3, v9_0 = v9.s0, v9_1 = v9.s1, v9_2 = v9.s2, v9_3 = v9.s3, v10_0 = v10.s0, v10_1 = v10.s1, v10_2 = v10.s2, v10_3 = v10.s3, v11_0 = v11.s0, v11_1 = v11.s1, v11_2 = v11.s2, v11_3 = v11.s3, v12_0 = v12.s0, v12_1 = v12.s1, v12_2 = v12.s2, v12_3 = v12.s3, v13_0 = v13.s0, v13_1 = v13.s1, v13_2 = v13.s2, v13_3 = v13.s3, v14_0 = v14.s0, v14_1 = v14.s1, v14_2 = v14.s2, v14_3 = v14.s3, v15_0 = v15.s0, v15_1 = v15.s1, v15_2 = v15.s2, v15_3 = v15.s3, v16_0 = v16.s0, v16_1 = v16.s1, v16_2 = v16.s2, v16_3 = v16.s3, v17_0 = v17.s0, v17_1 = v17.s1, v17_2 = v17.s2, v17_3 = v17.s3, v18_0 = v18.s0, v18_1 = v18.s1, v18_2 = v18.s2, v18_3 = v18.s3, v19_0 = v19.s0, v19_1 = v19.s1, v19_2 = v19.s2, v19_3 = v19.s3, v20_0 = v20.s0, v20_1 = v20.s1, v20_2 = v20.s2, v20_3 = v20.s3, v21_0 = v21.s0, v21_1 = v21.s1, v21_2 = v21.s2, v21_3 = v21.s3, v22_0 = v22.s0, v22_1 = v22.s1, v22_2 = v22.s2, v22_3 = v22.s3, v23_0 = v23.s0, v23_1 = v23.s1, v23_2 = v23.s2, v23_3 = v23.s3, v24_0 = v24.s0, v24_1 = v24.s1, v24_2 = v24.s2, v24_3 = v24.s3, v25_0 = v25.s0, v25_1 = v25.s1, v25_2 = v25.s2, v25_3 = v25.s3, v26_0 = v26.s0, v26_1 = v26.s1, v26_2 = v26.s2, v26_3 = v26.s3, v27_0 = v27.s0, v27_1 = v27.s1, v27_2 = v27.s2, v27_3 = v27.s3, v28_0 = v28.s0, v28_1 = v28.s1, v28_2 = v28.s2, v28_3 = v28.s3, v29_0 = v29.s0, v29_1 = v29.s1, v29_2 = v29.s2, v29_3 = v29.s3, v30_0 = v30.s0, v30_1 = v30.s1, v30_2 = v30.s2, v30_3 = v30.s3, v31_0 = v31.s0, v31_1 = v31.s1, v31_2 = v31.s2, v31_3 = v31.s3, v32_0 = v32.s0, v32_1 = v32.s1, v32_2 = v32.s2, v32_3 = v32.s3, v33_0 = v33.s0, v33_1 = v33.s1, v33_2 = v33.s2, v33_3 = v33.s3, v34_0 = v34.s0, v34_1 = v34.s1, v34_2 = v34.s2, v34_3 = v34.s3;
                    asm volatile("//sm_90a {.reg .pred yes; .reg .b64 a, b; setp.ne.b32 yes, 1, 0; wgmma.fence.sync.aligned; add.s64 a, %128, 0; add.s64 b, %129, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, a, b, yes, 1, 1, 0, 0; add.s64 a, %128, 2; add.s64 b, %129, 2; wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, a, b, yes, 1, 1, 0, 0; add.s64 a, %128, 4; add.s64 b, %129, 4; wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, a, b, yes, 1, 1, 0, 0; add.s64 a, %128, 6; add.s64 b, %129, 6; wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, a, b, yes, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                                 : "+f"(v3_0), "+f"(v3_1), "+f"(v3_2), "+f"(v3_3), "+f"(v4_0), "+f"(v4_1), "+f"(v4_2), "+f"(v4_3), "+f"(v5_0), "+f"(v5_1), "+f"(v5_2), "+f"(v5_3), "+f"(v6_0), "+f"(v6_1), "+f"(v6_2), "+f"(v6_3), "+f"(v7_0), "+f"(v7_1), "+f"(v7_2), "+f"(v7_3), "+f"(v8_0), "+f"(v8_1), "+f"(v8_2), "+f"(v8_3), "+f"(v9_0), "+f"(v9_1), "+f"(v9_2), "+f"(v9_3), "+f"(v10_0), "+f"(v10_1), "+f"(v10_2), "+f"(v10_3), "+f"(v11_0), "+f"(v11_1), "+f"(v11_2), "+f"(v11_3), "+f"(v12_0), "+f"(v12_1), "+f"(v12_2), "+f"(v12_3), "+f"(v13_0), "+f"(v13_1), "+f"(v13_2), "+f"(v13_3), "+f"(v14_0), "+f"(v14_1), "+f"(v14_2), "+f"(v14_3), "+f"(v15_0), "+f"(v15_1), "+f"(v15_2), "+f"(v15_3), "+f"(v16_0), "+f"(v16_1), "+f"(v16_2), "+f"(v16_3), "+f"(v17_0), "+f"(v17_1), "+f"(v17_2), "+f"(v17_3), "+f"(v18_0), "+f"(v18_1), "+f"(v18_2), "+f"(v18_3), "+f"(v19_0), "+f"(v19_1), "+f"(v19_2), "+f"(v19_3), "+f"(v20_0), "+f"(v20_1), "+f"(v20_2), "+f"(v20_3), "+f"(v21_0), "+f"(v21_1), "+f"(v21_2), "+f"(v21_3), "+f"(v22_0), "+f"(v22_1), "+f"(v22_2), "+f"(v22_3), "+f"(v23_0), "+f"(v23_1), "+f"(v23_2), "+f"(v23_3), "+f"(v24_0), "+f"(v24_1), "+f"(v24_2), "+f"(v24_3), "+f"(v25_0), "+f"(v25_1), "+f"(v25_2), "+f"(v25_3), "+f"(v26_0), "+f"(v26_1), "+f"(v26_2), "+f"(v26_3), "+f"(v27_0), "+f"(v27_1), "+f"(v27_2), "+f"(v27_3), "+f"(v28_0), "+f"(v28_1), "+f"(v28_2), "+f"(v28_3), "+f"(v29_0), "+f"(v29_1), "+f"(v29_2), "+f"(v29_3), "+f"(v30_0), "+f"(v30_1), "+f"(v30_2), "+f"(v30_3), "+f"(v31_0), "+f"(v31_1), "+f"(v31_2), "+f"(v31_3), "+f"(v32_0), "+f"(v32_1), "+f"(v32_2), "+f"(v32_3), "+f"(v33_0), "+f"(v33_1), "+f"(v33_2), "+f"(v33_3), "+f"(v34_0), "+f"(v34_1), "+f"(v34_2), "+f"(v34_3)
                                 : "l"(left), "l"(right) : "memory");
                    v3 = (float4)(v3_0, v3_1, v3_2, v3_3);
                    v4 = (float4)(v4_0, v4_1, v4_2, v4_3);
                    v5 = (float4)(v5_0, v5_1, v5_2, v5_3);
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
                    v22 = (float4)(v22_0, v22_1, v22_2, v22_3);
                    v23 = (float4)(v23_0, v23_1, v23_2, v23_3);
                    v24 = (float4)(v24_0, v24_1, v24_2, v24_3);
                    v25 = (float4)(v25_0, v25_1, v25_2, v25_3);
                    v26 = (float4)(v26_0, v26_1, v26_2, v26_3);
                    v27 = (float4)(v27_0, v27_1, v27_2, v27_3);
                    v28 = (float4)(v28_0, v28_1, v28_2, v28_3);
                    v29 = (float4)(v29_0, v29_1, v29_2, v29_3);
                    v30 = (float4)(v30_0, v30_1, v30_2, v30_3);
                    v31 = (float4)(v31_0, v31_1, v31_2, v31_3);
                    v32 = (float4)(v32_0, v32_1, v32_2, v32_3);
                    v33 = (float4)(v33_0, v33_1, v33_2, v33_3);
                    v34 = (float4)(v34_0, v34_1, v34_2, v34_3);
                }
                if (lid % 32 == 0) fc_arrive(ring_empty + 8 * (uint)stage);
            }
        }
        ring_turn += (uint)(9);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 256) {
            int i46 = (int)((lid / 32 * 16 + lid % 32 / 4) * 264 + lid % 4 * 2);
            float2 v47 = v3.lo;
            *(__local float2 *)(tiles + i46) = v47;
            float2 v48 = v3.hi;
            *(__local float2 *)(tiles + i46 + 2112) = v48;
            float2 v49 = v4.lo;
            *(__local float2 *)(tiles + i46 + 8) = v49;
            float2 v50 = v4.hi;
            *(__local float2 *)(tiles + i46 + 2120) = v50;
            float2 v51 = v5.lo;
            *(__local float2 *)(tiles + i46 + 16) = v51;
            float2 v52 = v5.hi;
            *(__local float2 *)(tiles + i46 + 2128) = v52;
            float2 v53 = v6.lo;
            *(__local float2 *)(tiles + i46 + 24) = v53;
            float2 v54 = v6.hi;
            *(__local float2 *)(tiles + i46 + 2136) = v54;
            float2 v55 = v7.lo;
            *(__local float2 *)(tiles + i46 + 32) = v55;
            float2 v56 = v7.hi;
            *(__local float2 *)(tiles + i46 + 2144) = v56;
            float2 v57 = v8.lo;
            *(__local float2 *)(tiles + i46 + 40) = v57;
            float2 v58 = v8.hi;
            *(__local float2 *)(tiles + i46 + 2152) = v58;
            float2 v59 = v9.lo;
            *(__local float2 *)(tiles + i46 + 48) = v59;
            float2 v60 = v9.hi;
            *(__local float2 *)(tiles + i46 + 2160) = v60;
            float2 v61 = v10.lo;
            *(__local float2 *)(tiles + i46 + 56) = v61;
            float2 v62 = v10.hi;
            *(__local float2 *)(tiles + i46 + 2168) = v62;
            float2 v63 = v11.lo;
            *(__local float2 *)(tiles + i46 + 64) = v63;
            float2 v64 = v11.hi;
            *(__local float2 *)(tiles + i46 + 2176) = v64;
            float2 v65 = v12.lo;
            *(__local float2 *)(tiles + i46 + 72) = v65;
            float2 v66 = v12.hi;
            *(__local float2 *)(tiles + i46 + 2184) = v66;
            float2 v67 = v13.lo;
            *(__local float2 *)(tiles + i46 + 80) = v67;
            float2 v68 = v13.hi;
            *(__local float2 *)(tiles + i46 + 2192) = v68;
            float2 v69 = v14.lo;
            *(__local float2 *)(tiles + i46 + 88) = v69;
            float2 v70 = v14.hi;
            *(__local float2 *)(tiles + i46 + 2200) = v70;
            float2 v71 = v15.lo;
            *(__local float2 *)(tiles + i46 + 96) = v71;
            float2 v72 = v15.hi;
            *(__local float2 *)(tiles + i46 + 2208) = v72;
            float2 v73 = v16.lo;
            *(__local float2 *)(tiles + i46 + 104) = v73;
            float2 v74 = v16.hi;
            *(__local float2 *)(tiles + i46 + 2216) = v74;
            float2 v75 = v17.lo;
            *(__local float2 *)(tiles + i46 + 112) = v75;
            float2 v76 = v17.hi;
            *(__local float2 *)(tiles + i46 + 2224) = v76;
            float2 v77 = v18.lo;
            *(__local float2 *)(tiles + i46 + 120) = v77;
            float2 v78 = v18.hi;
            *(__local float2 *)(tiles + i46 + 2232) = v78;
            float2 v79 = v19.lo;
            *(__local float2 *)(tiles + i46 + 128) = v79;
            float2 v80 = v19.hi;
            *(__local float2 *)(tiles + i46 + 2240) = v80;
            float2 v81 = v20.lo;
            *(__local float2 *)(tiles + i46 + 136) = v81;
            float2 v82 = v20.hi;
            *(__local float2 *)(tiles + i46 + 2248) = v82;
            float2 v83 = v21.lo;
            *(__local float2 *)(tiles + i46 + 144) = v83;
            float2 v84 = v21.hi;
            *(__local float2 *)(tiles + i46 + 2256) = v84;
            float2 v85 = v22.lo;
            *(__local float2 *)(tiles + i46 + 152) = v85;
            float2 v86 = v22.hi;
            *(__local float2 *)(tiles + i46 + 2264) = v86;
            float2 v87 = v23.lo;
            *(__local float2 *)(tiles + i46 + 160) = v87;
            float2 v88 = v23.hi;
            *(__local float2 *)(tiles + i46 + 2272) = v88;
            float2 v89 = v24.lo;
            *(__local float2 *)(tiles + i46 + 168) = v89;
            float2 v90 = v24.hi;
            *(__local float2 *)(tiles + i46 + 2280) = v90;
            float2 v91 = v25.lo;
            *(__local float2 *)(tiles + i46 + 176) = v91;
            float2 v92 = v25.hi;
            *(__local float2 *)(tiles + i46 + 2288) = v92;
            float2 v93 = v26.lo;
            *(__local float2 *)(tiles + i46 + 184) = v93;
            float2 v94 = v26.hi;
            *(__local float2 *)(tiles + i46 + 2296) = v94;
            float2 v95 = v27.lo;
            *(__local float2 *)(tiles + i46 + 192) = v95;
            float2 v96 = v27.hi;
            *(__local float2 *)(tiles + i46 + 2304) = v96;
            float2 v97 = v28.lo;
            *(__local float2 *)(tiles + i46 + 200) = v97;
            float2 v98 = v28.hi;
            *(__local float2 *)(tiles + i46 + 2312) = v98;
            float2 v99 = v29.lo;
            *(__local float2 *)(tiles + i46 + 208) = v99;
            float2 v100 = v29.hi;
            *(__local float2 *)(tiles + i46 + 2320) = v100;
            float2 v101 = v30.lo;
            *(__local float2 *)(tiles + i46 + 216) = v101;
            float2 v102 = v30.hi;
            *(__local float2 *)(tiles + i46 + 2328) = v102;
            float2 v103 = v31.lo;
            *(__local float2 *)(tiles + i46 + 224) = v103;
            float2 v104 = v31.hi;
            *(__local float2 *)(tiles + i46 + 2336) = v104;
            float2 v105 = v32.lo;
            *(__local float2 *)(tiles + i46 + 232) = v105;
            float2 v106 = v32.hi;
            *(__local float2 *)(tiles + i46 + 2344) = v106;
            float2 v107 = v33.lo;
            *(__local float2 *)(tiles + i46 + 240) = v107;
            float2 v108 = v33.hi;
            *(__local float2 *)(tiles + i46 + 2352) = v108;
            float2 v109 = v34.lo;
            *(__local float2 *)(tiles + i46 + 248) = v109;
            float2 v110 = v34.hi;
            *(__local float2 *)(tiles + i46 + 2360) = v110;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        #pragma unroll 4
        for (long e = lid; e < 8192; e += 384) {
            int i111 = (int)((int)e / 64);
            int i112 = (int)((int)e % 64 * 4);
            if (i111 < 16 && i2 + i112 / 64 < i1 && (i2 + i112 / 64) % 3 * 2 + i112 % 64 / 32 < 6 && i112 % 32 < 24) {
                float4 v113 = *(__local float4 *)(tiles + i111 * 264 + i112);
                long i114 = i112 % 32;
                long i115 = (i2 + i112 / 64) / 3 * 16 + i111;
                long i116 = i115 / 16;
                long i117 = i115 % 16;
                long i118 = ((i2 + i112 / 64) % 3 * 2 + i112 % 64 / 32) * 24 + i114;
                float4 v119 = fc_round_float16_4(v113);
                fc_store_float16_4(out0 + (i116 * 2304 + i117 * 144 + i118), v113);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
