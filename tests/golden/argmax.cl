#pragma OPENCL FP_CONTRACT OFF

typedef int16 fc_loose_int32_16 __attribute__((aligned(4)));

typedef int4 fc_loose_int32_4 __attribute__((aligned(4)));

static inline int16 fc_load_first_4_int32_16(const __global int *w) {
    return (int16)(*(const __global fc_loose_int32_4 *)(w + 0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
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
        long i2 = record * 20;
        long i7 = 0 + 0;
        int16 v8 = *(const __global fc_loose_int32_16 *)(in0 + (i2 + i7));
        long16 v9 = (long16)((long)(i7)) + (long16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        long i10 = 0 + 16;
        int16 v11 = v8;
        long16 v12 = v9;
        int16 v13 = fc_load_first_4_int32_16(in0 + (i2 + i10));
        long16 v14 = (long16)((long)(i10)) + (long16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        int16 v15 = (((v13 > v11) | ((v11 == v13) & convert_int16((v14 < v12)))) ? v13 : v11);
        long16 v16 = ((convert_long16((v13 > v11)) | (convert_long16((v11 == v13)) & (v14 < v12))) ? v14 : v12);
        int16 v17 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(4)));
        int16 v18 = (v17 ? v15 : v11);
        long16 v19 = (convert_long16(v17) ? v16 : v12);
        v11 = v18;
        v12 = v19;
        int8 v20 = v11.lo;
        long8 v21 = v12.lo;
        int8 v22 = v11.hi;
        long8 v23 = v12.hi;
        int8 v24 = (((v22 > v20) | ((v20 == v22) & convert_int8((v23 < v21)))) ? v22 : v20);
        long8 v25 = ((convert_long8((v22 > v20)) | (convert_long8((v20 == v22)) & (v23 < v21))) ? v23 : v21);
        int4 v26 = v24.lo;
        long4 v27 = v25.lo;
        int4 v28 = v24.hi;
        long4 v29 = v25.hi;
        int4 v30 = (((v28 > v26) | ((v26 == v28) & convert_int4((v29 < v27)))) ? v28 : v26);
        long4 v31 = ((convert_long4((v28 > v26)) | (convert_long4((v26 == v28)) & (v29 < v27))) ? v29 : v27);
        int2 v32 = v30.lo;
        long2 v33 = v31.lo;
        int2 v34 = v30.hi;
        long2 v35 = v31.hi;
        int2 v36 = (((v34 > v32) | ((v32 == v34) & convert_int2((v35 < v33)))) ? v34 : v32);
        long2 v37 = ((convert_long2((v34 > v32)) | (convert_long2((v32 == v34)) & (v35 < v33))) ? v35 : v33);
        int v38 = v36.lo;
        long v39 = v37.lo;
        int v40 = v36.hi;
        long v41 = v37.hi;
        int v42 = (((v40 > v38) | ((v38 == v40) & (v41 < v39))) ? v40 : v38);
        long v43 = (((v40 > v38) | ((v38 == v40) & (v41 < v39))) ? v41 : v39);
        long4 v44 = (long4)(v43);
        long i45 = record * 1;
        out0[i45] = (v44).s0;
    }
}
