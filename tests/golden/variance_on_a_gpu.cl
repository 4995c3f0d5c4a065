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
    for (long unit = gid; unit < blocks * 1; unit += gsize) {
        long block = unit / 1;
        long c = (unit % 1) * 256 + lid;
        long lo = max((long)0, block * 2048 - phase);
        long hi = min(n, (block + 1) * 2048 - phase);
        if (c < 20) {
            float v10 = (float)(-0x0.0p+0f);
            float v11 = (float)(-0x0.0p+0f);
            float v12 = (float)(-0x0.0p+0f);
            long i13 = (0);
            long i14 = i13 + c;
            if ((block > 0) | (phase == 0)) {
                long record = lo;
                long i18 = record * 20;
                float v19 = in0[i18 + c];
                v10 = v19;
            } else {
                float v15 = carry0[i14];
                v10 = v15;
                float v16 = carry1[i14];
                v11 = v16;
                float v17 = carry2[i14];
                v12 = v17;
            }
            #pragma unroll 8
            for (long record = lo; record < hi; record++) {
                long i20 = record * 20;
                float v21 = in0[i20 + c];
                float v22 = (v21 - v10);
                float v23 = (v22 * v22);
                float v24 = (v11 + v22);
                float v25 = (v12 + v23);
                v11 = v24;
                v12 = v25;
            }
            long i26 = i13 + c;
            part0[block * 20 + i26] = v10;
            part1[block * 20 + i26] = v11;
            part2[block * 20 + i26] = v12;
        }
    }
}
