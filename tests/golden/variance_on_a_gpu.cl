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
    for (long unit = gid; unit < blocks; unit += gsize) {
        long block = unit;
        long c = lid;
        long lo = max(0L, block * 2048 - phase);
        long hi = min(n, (block + 1) * 2048 - phase);
        if (c < 20) {
            float v9 = (float)(-0x0.0p+0f);
            float v10 = (float)(-0x0.0p+0f);
            float v11 = (float)(-0x0.0p+0f);
            if (block > 0 || phase == 0) {
                long record = lo;
                long i15 = record * 20;
                float v16 = in0[i15 + c];
                v9 = v16;
            } else {
                float v12 = carry0[c];
                v9 = v12;
                float v13 = carry1[c];
                v10 = v13;
                float v14 = carry2[c];
                v11 = v14;
            }
            #pragma unroll 8
            for (long record = lo; record < hi; record++) {
                long i17 = record * 20;
                float v18 = in0[i17 + c];
                float v19 = (v18 - v9);
                float v20 = (v19 * v19);
                float v21 = (v10 + v19);
                float v22 = (v11 + v20);
                v10 = v21;
                v11 = v22;
            }
            part0[block * 20 + c] = v9;
            part1[block * 20 + c] = v10;
            part2[block * 20 + c] = v11;
        }
    }
}
