#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global float *restrict part0,
    __global float *restrict part1,
    __global float *restrict part2,
    __global const float *restrict carry0,
    __global const float *restrict carry1,
    __global const float *restrict carry2,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long unit = gid; unit < (blocks * 1); unit += gsize) {
        long block = unit;
        long lo = max((long)0, block * 2048 - phase);
        long hi = min(n, (block + 1) * 2048 - phase);
        if ((block > 0) | (phase == 0)) {
            for (long j = lid; j < 20; j += 256) {
                float v10 = (float)(-0x0.0p+0f);
                part0[block * 20 + j] = v10;
            }
        } else {
            for (long j = lid; j < 20; j += 256) {
                float v11 = carry0[j];
                part0[block * 20 + j] = v11;
            }
        }
        if ((block > 0) | (phase == 0)) {
            for (long j = lid; j < 20; j += 256) {
                float v12 = (float)(-0x0.0p+0f);
                part1[block * 20 + j] = v12;
            }
        } else {
            for (long j = lid; j < 20; j += 256) {
                float v13 = carry1[j];
                part1[block * 20 + j] = v13;
            }
        }
        if ((block > 0) | (phase == 0)) {
            for (long j = lid; j < 20; j += 256) {
                float v14 = (float)(-0x0.0p+0f);
                part2[block * 20 + j] = v14;
            }
        } else {
            for (long j = lid; j < 20; j += 256) {
                float v15 = carry2[j];
                part2[block * 20 + j] = v15;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        {
            long record = lo;
            long i16 = (0);
            long i17 = record * 20;
            if ((block > 0) | (phase == 0)) {
                for (long c = lid; c < 20; c += 256) {
                    float v18 = in0[i17 + c];
                    part0[block * 20 + i16 + c] = v18;
                }
            }
        }
        for (long record = lo; record < hi; record++) {
            long i0 = (0);
            long i1 = record * 20;
            for (long c = lid; c < 20; c += 256) {
                float v2 = in0[i1 + c];
                float v3 = part0[block * 20 + i0 + c];
                float v4 = part1[block * 20 + i0 + c];
                float v5 = part2[block * 20 + i0 + c];
                float v6 = (v2 - v3);
                float v7 = (v6 * v6);
                float v8 = (v4 + v6);
                float v9 = (v5 + v7);
                part1[block * 20 + i0 + c] = v8;
                part2[block * 20 + i0 + c] = v9;
            }
        }
    }
}
