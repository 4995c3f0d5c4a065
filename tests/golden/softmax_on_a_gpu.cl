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
    __local float l0[256] __attribute__((aligned(64)));
    __local float l33[256] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long r = gid; r < n; r += gsize) {
        long record = r;
        long i4 = record * 1024;
        float v1 = (float)(-INFINITY);
        if (lid < 256) {
            for (long t2 = lid; t2 < 1024; t2 += 256) {
                long i3 = 0 + t2;
                float v5 = in0[i4 + i3];
                float v6 = (v1 == v5 ? as_float(as_int(v1) & as_int(v5)) : ((v1 > v5) | (v1 != v1) ? v1 : v5));
                v1 = v6;
            }
        }
        l0[lid] = v1;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 128) {
            float v7 = l0[lid];
            float v8 = l0[lid + 128];
            float v9 = (v7 == v8 ? as_float(as_int(v7) & as_int(v8)) : ((v7 > v8) | (v7 != v7) ? v7 : v8));
            l0[lid] = v9;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 64) {
            float v10 = l0[lid];
            float v11 = l0[lid + 64];
            float v12 = (v10 == v11 ? as_float(as_int(v10) & as_int(v11)) : ((v10 > v11) | (v10 != v10) ? v10 : v11));
            l0[lid] = v12;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 32) {
            float v13 = l0[lid];
            float v14 = l0[lid + 32];
            float v15 = (v13 == v14 ? as_float(as_int(v13) & as_int(v14)) : ((v13 > v14) | (v13 != v13) ? v13 : v14));
            l0[lid] = v15;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 16) {
            float v16 = l0[lid];
            float v17 = l0[lid + 16];
            float v18 = (v16 == v17 ? as_float(as_int(v16) & as_int(v17)) : ((v16 > v17) | (v16 != v16) ? v16 : v17));
            l0[lid] = v18;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 8) {
            float v19 = l0[lid];
            float v20 = l0[lid + 8];
            float v21 = (v19 == v20 ? as_float(as_int(v19) & as_int(v20)) : ((v19 > v20) | (v19 != v19) ? v19 : v20));
            l0[lid] = v21;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 4) {
            float v22 = l0[lid];
            float v23 = l0[lid + 4];
            float v24 = (v22 == v23 ? as_float(as_int(v22) & as_int(v23)) : ((v22 > v23) | (v22 != v22) ? v22 : v23));
            l0[lid] = v24;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 2) {
            float v25 = l0[lid];
            float v26 = l0[lid + 2];
            float v27 = (v25 == v26 ? as_float(as_int(v25) & as_int(v26)) : ((v25 > v26) | (v25 != v25) ? v25 : v26));
            l0[lid] = v27;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 1) {
            float v28 = l0[lid];
            float v29 = l0[lid + 1];
            float v30 = (v28 == v29 ? as_float(as_int(v28) & as_int(v29)) : ((v28 > v29) | (v28 != v28) ? v28 : v29));
            l0[lid] = v30;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        float v31 = l0[0];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        float v32 = v31;
        float v34 = (float)(-0x0.0p+0f);
        if (lid < 256) {
            for (long t35 = lid; t35 < 1024; t35 += 256) {
                long i36 = 0 + t35;
                float v37 = in0[i4 + i36];
                float v38 = (v37 - v32);
                float v39 = exp(v38);
                float v40 = (v34 + v39);
                v34 = v40;
            }
        }
        l33[lid] = v34;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 128) {
            float v41 = l33[lid];
            float v42 = l33[lid + 128];
            float v43 = (v41 + v42);
            l33[lid] = v43;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 64) {
            float v44 = l33[lid];
            float v45 = l33[lid + 64];
            float v46 = (v44 + v45);
            l33[lid] = v46;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 32) {
            float v47 = l33[lid];
            float v48 = l33[lid + 32];
            float v49 = (v47 + v48);
            l33[lid] = v49;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 16) {
            float v50 = l33[lid];
            float v51 = l33[lid + 16];
            float v52 = (v50 + v51);
            l33[lid] = v52;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 8) {
            float v53 = l33[lid];
            float v54 = l33[lid + 8];
            float v55 = (v53 + v54);
            l33[lid] = v55;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 4) {
            float v56 = l33[lid];
            float v57 = l33[lid + 4];
            float v58 = (v56 + v57);
            l33[lid] = v58;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 2) {
            float v59 = l33[lid];
            float v60 = l33[lid + 2];
            float v61 = (v59 + v60);
            l33[lid] = v61;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid < 1) {
            float v62 = l33[lid];
            float v63 = l33[lid + 1];
            float v64 = (v62 + v63);
            l33[lid] = v64;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        float v65 = l33[0];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        float v66 = v65;
        long i67 = record * 1024;
        for (long c = lid; c < 1024; c += 256) {
            float v68 = in0[i4 + c];
            float v69 = (v68 - v32);
            float v70 = exp(v69);
            float v71 = (v70 / v66);
            out0[i67 + c] = (v71 == v71 ? v71 : (float)(NAN));
        }
    }
}
