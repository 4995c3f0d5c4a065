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
    __local float exchange0_float_0[256];
    __local float exchange1_float_0[256];
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long turn = gid; turn < n; turn += gsize) {
        long r = min(turn + lid / 256, n - 1);
        long record = r;
        int i0 = (int)(lid % 256);
        int i1 = (int)(i0 + 256);
        int i2 = (int)(i0 + 512);
        int i3 = (int)(i0 + 768);
        float v4 = (float)(-INFINITY);
        long i5 = record * 1024;
        float v6 = in0[i5 + i0];
        float v7 = (v4 == v6 ? as_float(as_int(v4) & as_int(v6)) : ((v4 > v6) | (v4 != v4) ? v4 : v6));
        v4 = v7;
        float v8 = in0[i5 + i1];
        float v9 = (v4 == v8 ? as_float(as_int(v4) & as_int(v8)) : ((v4 > v8) | (v4 != v4) ? v4 : v8));
        v4 = v9;
        float v10 = in0[i5 + i2];
        float v11 = (v4 == v10 ? as_float(as_int(v4) & as_int(v10)) : ((v4 > v10) | (v4 != v4) ? v4 : v10));
        v4 = v11;
        float v12 = in0[i5 + i3];
        float v13 = (v4 == v12 ? as_float(as_int(v4) & as_int(v12)) : ((v4 > v12) | (v4 != v4) ? v4 : v12));
        v4 = v13;
        exchange0_float_0[lid] = v4;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v14 = exchange0_float_0[(lid & ~255) + ((lid + 128) & 255)];
        float v15 = (v4 == v14 ? as_float(as_int(v4) & as_int(v14)) : ((v4 > v14) | (v4 != v4) ? v4 : v14));
        exchange1_float_0[lid] = v15;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v16 = exchange1_float_0[(lid & ~255) + ((lid + 64) & 255)];
        float v17 = (v15 == v16 ? as_float(as_int(v15) & as_int(v16)) : ((v15 > v16) | (v15 != v15) ? v15 : v16));
        exchange0_float_0[lid] = v17;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v18 = exchange0_float_0[(lid & ~255) + ((lid + 32) & 255)];
        float v19 = (v17 == v18 ? as_float(as_int(v17) & as_int(v18)) : ((v17 > v18) | (v17 != v17) ? v17 : v18));
        exchange1_float_0[lid] = v19;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v20 = exchange1_float_0[(lid & ~255) + ((lid + 16) & 255)];
        float v21 = (v19 == v20 ? as_float(as_int(v19) & as_int(v20)) : ((v19 > v20) | (v19 != v19) ? v19 : v20));
        exchange0_float_0[lid] = v21;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v22 = exchange0_float_0[(lid & ~255) + ((lid + 8) & 255)];
        float v23 = (v21 == v22 ? as_float(as_int(v21) & as_int(v22)) : ((v21 > v22) | (v21 != v21) ? v21 : v22));
        exchange1_float_0[lid] = v23;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v24 = exchange1_float_0[(lid & ~255) + ((lid + 4) & 255)];
        float v25 = (v23 == v24 ? as_float(as_int(v23) & as_int(v24)) : ((v23 > v24) | (v23 != v23) ? v23 : v24));
        exchange0_float_0[lid] = v25;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v26 = exchange0_float_0[(lid & ~255) + ((lid + 2) & 255)];
        float v27 = (v25 == v26 ? as_float(as_int(v25) & as_int(v26)) : ((v25 > v26) | (v25 != v25) ? v25 : v26));
        exchange1_float_0[lid] = v27;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v28 = exchange1_float_0[(lid & ~255) + ((lid + 1) & 255)];
        float v29 = (v27 == v28 ? as_float(as_int(v27) & as_int(v28)) : ((v27 > v28) | (v27 != v27) ? v27 : v28));
        exchange0_float_0[lid] = v29;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v30 = exchange0_float_0[lid & ~255];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        float v31 = v30;
        float v32 = (float)(-0x0.0p+0f);
        float v33 = (v6 - v31);
        float v34 = exp(v33);
        float v35 = (v32 + v34);
        v32 = v35;
        float v36 = (v8 - v31);
        float v37 = exp(v36);
        float v38 = (v32 + v37);
        v32 = v38;
        float v39 = (v10 - v31);
        float v40 = exp(v39);
        float v41 = (v32 + v40);
        v32 = v41;
        float v42 = (v12 - v31);
        float v43 = exp(v42);
        float v44 = (v32 + v43);
        v32 = v44;
        exchange0_float_0[lid] = v32;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v45 = exchange0_float_0[(lid & ~255) + ((lid + 128) & 255)];
        float v46 = (v32 + v45);
        exchange1_float_0[lid] = v46;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v47 = exchange1_float_0[(lid & ~255) + ((lid + 64) & 255)];
        float v48 = (v46 + v47);
        exchange0_float_0[lid] = v48;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v49 = exchange0_float_0[(lid & ~255) + ((lid + 32) & 255)];
        float v50 = (v48 + v49);
        exchange1_float_0[lid] = v50;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v51 = exchange1_float_0[(lid & ~255) + ((lid + 16) & 255)];
        float v52 = (v50 + v51);
        exchange0_float_0[lid] = v52;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v53 = exchange0_float_0[(lid & ~255) + ((lid + 8) & 255)];
        float v54 = (v52 + v53);
        exchange1_float_0[lid] = v54;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v55 = exchange1_float_0[(lid & ~255) + ((lid + 4) & 255)];
        float v56 = (v54 + v55);
        exchange0_float_0[lid] = v56;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v57 = exchange0_float_0[(lid & ~255) + ((lid + 2) & 255)];
        float v58 = (v56 + v57);
        exchange1_float_0[lid] = v58;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v59 = exchange1_float_0[(lid & ~255) + ((lid + 1) & 255)];
        float v60 = (v58 + v59);
        exchange0_float_0[lid] = v60;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v61 = exchange0_float_0[lid & ~255];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        float v62 = v61;
        long i63 = record * 1024;
        if (turn + lid / 256 < n) {
            float v64 = (v34 / v62);
            out0[i63 + i0] = (v64 == v64 ? v64 : (float)(as_float(0x7fc00000U)));
            float v65 = (v37 / v62);
            out0[i63 + i1] = (v65 == v65 ? v65 : (float)(as_float(0x7fc00000U)));
            float v66 = (v40 / v62);
            out0[i63 + i2] = (v66 == v66 ? v66 : (float)(as_float(0x7fc00000U)));
            float v67 = (v43 / v62);
            out0[i63 + i3] = (v67 == v67 ? v67 : (float)(as_float(0x7fc00000U)));
        }
    }
}
