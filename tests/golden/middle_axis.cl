#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    long start = gid * chunk;
    long stop = min(n, start + chunk);
    for (long r = start; r < stop; r++) {
        long record = r / 5;
        long outer = r % 5;
        long i1 = record * 30 + outer * 2;
        float16 v0 = (float16)(-0x0.0p+0f);
        float16 v2 = (float16)((0 < 6 ? in0[i1] : 0), (1 < 6 ? in0[i1 + 1] : 0), (2 < 6 ? in0[i1 + 10] : 0), (3 < 6 ? in0[i1 + 10 + 1] : 0), (4 < 6 ? in0[i1 + 20] : 0), (5 < 6 ? in0[i1 + 20 + 1] : 0), (6 < 6 ? in0[i1] : 0), (7 < 6 ? in0[i1 + 1] : 0), (8 < 6 ? in0[i1 + 10] : 0), (9 < 6 ? in0[i1 + 10 + 1] : 0), (10 < 6 ? in0[i1 + 20] : 0), (11 < 6 ? in0[i1 + 20 + 1] : 0), (12 < 6 ? in0[i1] : 0), (13 < 6 ? in0[i1 + 1] : 0), (14 < 6 ? in0[i1 + 10] : 0), (15 < 6 ? in0[i1 + 10 + 1] : 0));
        float16 v3 = (v0 + v2);
        int16 v4 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(6)));
        float16 v5 = (v4 ? v3 : v0);
        v0 = v5;
        float8 v6 = v0.lo;
        float8 v7 = v0.hi;
        float8 v8 = (v6 + v7);
        float4 v9 = v8.lo;
        float4 v10 = v8.hi;
        float4 v11 = (v9 + v10);
        float2 v12 = v11.lo;
        float2 v13 = v11.hi;
        float2 v14 = (v12 + v13);
        float v15 = v14.lo;
        float v16 = v14.hi;
        float v17 = (v15 + v16);
        float4 v18 = (float4)(v17);
        long i19 = record * 5 + outer;
        out0[i19] = ((v18 == v18 ? v18 : (float4)(as_float(0x7fc00000U)))).s0;
    }
}
