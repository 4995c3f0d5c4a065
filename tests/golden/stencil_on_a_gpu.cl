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
        long i0 = t / 20;
        long i1 = t % 20;
        float v2 = in0[i0 * 20 + min(((i1 + 1) % 38 + 38) % 38, 38 - ((i1 + 1) % 38 + 38) % 38)];
        float v3 = in0[i0 * 20 + min(((i1 + (-1)) % 38 + 38) % 38, 38 - ((i1 + (-1)) % 38 + 38) % 38)];
        float v4 = (v2 - v3);
        out0[i0 * 20 + i1] = (v4 == v4 ? v4 : (float)(as_float(0x7fc00000U)));
    }
}
