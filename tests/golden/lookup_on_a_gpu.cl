#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global const int *restrict in1,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long t = wid; t < n; t += wsize) {
        long i0 = t / 63;
        int i1 = (int)(t - i0 * 63);
        int i2 = (int)(i1 / 21);
        int i3 = (int)(i1 % 21);
        float v4 = (float)(0x0.0p+0f);
        int i5 = (int)(i2 % 3);
        long i6 = in1[i0 * 3 + i5] * 21;
        float v7 = in0[i6 + i3];
        v4 = v7;
        float v8 = (float)(0x1.0000000000000p+1f);
        float v9 = (v4 * v8);
        out0[i0 * 63 + i2 % 3 * 21 + i3] = (v9 == v9 ? v9 : (float)(as_float(0x7fc00000U)));
    }
}
