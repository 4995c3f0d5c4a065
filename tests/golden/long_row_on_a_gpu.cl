#pragma OPENCL EXTENSION cl_khr_fp64 : enable
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
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long r = gid; r < n; r += gsize) {
        long record = r;
        long i8 = record * 2500;
        long top1 = 0;
        double m2[40];
        for (long b3 = 0; b3 < 3; b3++) {
            long i4 = min((long)1024, 2500 - b3 * 1024);
            float v5 = (float)(-0x0.0p+0f);
            if (lid < 256) {
                for (long t6 = lid; t6 < i4; t6 += 256) {
                    long i7 = b3 * 1024 + t6;
                    float v9 = in0[i8 + i7];
                    float v10 = (v5 + v9);
                    v5 = v10;
                }
            }
            l0[lid] = v5;
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (lid < 128) {
                float v11 = l0[lid];
                float v12 = l0[lid + 128];
                float v13 = (v11 + v12);
                l0[lid] = v13;
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (lid < 64) {
                float v14 = l0[lid];
                float v15 = l0[lid + 64];
                float v16 = (v14 + v15);
                l0[lid] = v16;
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (lid < 32) {
                float v17 = l0[lid];
                float v18 = l0[lid + 32];
                float v19 = (v17 + v18);
                l0[lid] = v19;
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (lid < 16) {
                float v20 = l0[lid];
                float v21 = l0[lid + 16];
                float v22 = (v20 + v21);
                l0[lid] = v22;
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (lid < 8) {
                float v23 = l0[lid];
                float v24 = l0[lid + 8];
                float v25 = (v23 + v24);
                l0[lid] = v25;
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (lid < 4) {
                float v26 = l0[lid];
                float v27 = l0[lid + 4];
                float v28 = (v26 + v27);
                l0[lid] = v28;
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (lid < 2) {
                float v29 = l0[lid];
                float v30 = l0[lid + 2];
                float v31 = (v29 + v30);
                l0[lid] = v31;
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (lid < 1) {
                float v32 = l0[lid];
                float v33 = l0[lid + 1];
                float v34 = (v32 + v33);
                l0[lid] = v34;
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            float v35 = l0[0];
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            double v37 = convert_double(v35);
            long c36 = b3;
            while (c36 & 1) {
                top1 = top1 - 1;
                double v38 = m2[top1];
                double v39 = (v38 + v37);
                v37 = v39;
                c36 = c36 >> 1;
            }
            m2[top1] = v37;
            top1 = top1 + 1;
        }
        top1 = top1 - 1;
        double v40 = m2[top1];
        while (top1 > 0) {
            top1 = top1 - 1;
            double v41 = m2[top1];
            double v42 = (v41 + v40);
            v40 = v42;
        }
        float v43 = convert_float(v40);
        float v44 = v43;
        long i45 = record * 1;
        if (lid == 0) {
            out0[i45] = (v44 == v44 ? v44 : (float)(NAN));
        }
    }
}
