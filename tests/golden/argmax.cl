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
        long i0 = record * 20;
        int16 v1 = *(const __global fc_loose_int32_16 *)(in0 + (i0));
        int16 v2 = (int16)((long)(0));
        int16 v3 = v1;
        int16 v4 = v2;
        int16 v10 = fc_load_first_4_int32_16(in0 + (i0 + 16));
        int16 v11 = (int16)((long)(16));
        int16 v12 = ((v10 > v3) ? v10 : v3);
        int16 v13 = ((v10 > v3) ? v11 : v4);
        int16 v14 = ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < (int16)((int)(4)));
        int16 v15 = (v14 ? v12 : v3);
        int16 v16 = (v14 ? v13 : v4);
        v3 = v15;
        v4 = v16;
        int16 v17 = (int16)((long)(0)) + (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        int16 v18 = as_int16((uint16)(as_uint16(v4) + as_uint16(v17)));
        int8 v19 = v3.lo;
        int8 v20 = v18.lo;
        int8 v21 = v3.hi;
        int8 v22 = v18.hi;
        int8 v23 = (((v21 > v19) | ((v19 == v21) & (v22 < v20))) ? v21 : v19);
        int8 v24 = (((v21 > v19) | ((v19 == v21) & (v22 < v20))) ? v22 : v20);
        int4 v25 = v23.lo;
        int4 v26 = v24.lo;
        int4 v27 = v23.hi;
        int4 v28 = v24.hi;
        int4 v29 = (((v27 > v25) | ((v25 == v27) & (v28 < v26))) ? v27 : v25);
        int4 v30 = (((v27 > v25) | ((v25 == v27) & (v28 < v26))) ? v28 : v26);
        int2 v31 = v29.lo;
        int2 v32 = v30.lo;
        int2 v33 = v29.hi;
        int2 v34 = v30.hi;
        int2 v35 = (((v33 > v31) | ((v31 == v33) & (v34 < v32))) ? v33 : v31);
        int2 v36 = (((v33 > v31) | ((v31 == v33) & (v34 < v32))) ? v34 : v32);
        int v37 = v35.lo;
        int v38 = v36.lo;
        int v39 = v35.hi;
        int v40 = v36.hi;
        int v41 = (((v39 > v37) | ((v37 == v39) & (v40 < v38))) ? v39 : v37);
        int v42 = (((v39 > v37) | ((v37 == v39) & (v40 < v38))) ? v40 : v38);
        long v43 = convert_long(v42);
        long v44 = (long)(0);
        long v45 = as_long((ulong)(as_ulong(v44) + as_ulong(v43)));
        long4 v46 = (long4)(v45);
        out0[record] = (v46).s0;
    }
}
