#pragma OPENCL FP_CONTRACT OFF

static inline int16 fc_gather_int32_16(const __global int *p, long stride, long count) {
    int all[16];
    for (int lane = 0; lane < 16; lane++) all[lane] = lane < count ? p[lane * stride] : 0;
    return vload16(0, all);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void k0(
    __global const int *restrict in0,
    __global long *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    long start = gid * chunk;
    long stop = min(n, start + chunk);
    for (long r = start; r < stop; r++) {
        long record = r;
        long i2 = record * 12;
        int16 v0 = (int16)((int)(-2147483648L));
        long16 v1 = (long16)((long)(9223372036854775807L));
        int16 v3 = fc_gather_int32_16(in0 + (i2 + 0), 1, 12);
        long16 v4 = (long16)((long)(0)) + (long16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        int16 v5 = (((v3 > v0) | ((v0 == v3) & convert_int16((v4 < v1)))) ? v3 : v0);
        long16 v6 = ((convert_long16((v3 > v0)) | (convert_long16((v0 == v3)) & (v4 < v1))) ? v4 : v1);
        int16 v7 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(12)));
        int16 v8 = (v7 ? v5 : v0);
        long16 v9 = (convert_long16(v7) ? v6 : v1);
        v0 = v8;
        v1 = v9;
        int8 v10 = v0.lo;
        long8 v11 = v1.lo;
        int8 v12 = v0.hi;
        long8 v13 = v1.hi;
        int8 v14 = (((v12 > v10) | ((v10 == v12) & convert_int8((v13 < v11)))) ? v12 : v10);
        long8 v15 = ((convert_long8((v12 > v10)) | (convert_long8((v10 == v12)) & (v13 < v11))) ? v13 : v11);
        int4 v16 = v14.lo;
        long4 v17 = v15.lo;
        int4 v18 = v14.hi;
        long4 v19 = v15.hi;
        int4 v20 = (((v18 > v16) | ((v16 == v18) & convert_int4((v19 < v17)))) ? v18 : v16);
        long4 v21 = ((convert_long4((v18 > v16)) | (convert_long4((v16 == v18)) & (v19 < v17))) ? v19 : v17);
        int2 v22 = v20.lo;
        long2 v23 = v21.lo;
        int2 v24 = v20.hi;
        long2 v25 = v21.hi;
        int2 v26 = (((v24 > v22) | ((v22 == v24) & convert_int2((v25 < v23)))) ? v24 : v22);
        long2 v27 = ((convert_long2((v24 > v22)) | (convert_long2((v22 == v24)) & (v25 < v23))) ? v25 : v23);
        int v28 = v26.lo;
        long v29 = v27.lo;
        int v30 = v26.hi;
        long v31 = v27.hi;
        int v32 = (((v30 > v28) | ((v28 == v30) & (v31 < v29))) ? v30 : v28);
        long v33 = (((v30 > v28) | ((v28 == v30) & (v31 < v29))) ? v31 : v29);
        long4 v34 = (long4)(v33);
        long i35 = record * 1;
        out0[i35] = (v34).s0;
    }
}
