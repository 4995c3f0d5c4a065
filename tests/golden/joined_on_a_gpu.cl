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
        int i1 = (int)(t - i0 * 5);
        int i2 = (int)(i1 / 5);
        int i3 = (int)(i1 % 5);
        float v4 = (float)(0x0.0p+0f);
        if (i3 < 3) {
            long i7 = i0 * 3;
            float v8 = in0[i7 + i3];
            float v9 = (float)(0x1.0000000000000p+1f);
            float v10 = (v8 * v9);
            v4 = v10;
        } else {
            long i5 = 1 + i0 * 3;
            float v6 = in0[i5 + (i3 - 3)];
            v4 = v6;
        }
        float v11 = (float)(0x1.0000000000000p+0f);
        float v12 = (v4 + v11);
        out0[i0 * 5 + i3] = (v12 == v12 ? v12 : (float)(as_float(0x7fc00000U)));
    }
}
