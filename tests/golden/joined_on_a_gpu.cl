#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long t = wid; t < n; t += wsize) {
        long i0 = t / 5;
        long i1 = t % 5;
        float v2 = (float)(0x0.0p+0f);
        if (i1 < 3) {
            long i5 = i0 * 3;
            float v6 = in0[i5 + i1];
            float v7 = (float)(0x1.0000000000000p+1f);
            float v8 = (v6 * v7);
            v2 = v8;
        } else {
            long i3 = 1 + i0 * 3;
            float v4 = in0[i3 + (i1 - 3)];
            v2 = v4;
        }
        float v9 = (float)(0x1.0000000000000p+0f);
        float v10 = (v2 + v9);
        out0[i0 * 5 + i1] = (v10 == v10 ? v10 : (float)(as_float(0x7fc00000U)));
    }
}
