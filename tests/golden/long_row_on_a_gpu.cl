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
    __local float l0[3] __attribute__((aligned(64)));
    __local float exchange0_float_0[256];
    __local float exchange1_float_0[256];
    __local double exchange0_double_0[256];
    __local double exchange1_double_0[256];
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long r = gid; r < n; r += gsize) {
        long record = r;
        long i13 = record * 2500;
        for (long b1 = 0; b1 < 2; b1++) {
            long i2 = min(b1 + lid / 256, 1L);
            long i3 = i2 * 1024;
            int i4 = (int)(lid % 256);
            float v5 = (float)(-0x0.0p+0f);
            long i6 = i3 + i4;
            int i7 = (int)(i4 + 256);
            long i8 = i3 + i7;
            int i9 = (int)(i4 + 512);
            long i10 = i3 + i9;
            int i11 = (int)(i4 + 768);
            long i12 = i3 + i11;
            float v14 = in0[i13 + i6];
            float v15 = (v5 + v14);
            v5 = v15;
            float v16 = in0[i13 + i8];
            float v17 = (v5 + v16);
            v5 = v17;
            float v18 = in0[i13 + i10];
            float v19 = (v5 + v18);
            v5 = v19;
            float v20 = in0[i13 + i12];
            float v21 = (v5 + v20);
            v5 = v21;
            exchange0_float_0[lid] = v5;
            barrier(CLK_LOCAL_MEM_FENCE);
            float v22 = exchange0_float_0[(lid & ~255) + ((lid + 128) & 255)];
            float v23 = (v5 + v22);
            exchange1_float_0[lid] = v23;
            barrier(CLK_LOCAL_MEM_FENCE);
            float v24 = exchange1_float_0[(lid & ~255) + ((lid + 64) & 255)];
            float v25 = (v23 + v24);
            exchange0_float_0[lid] = v25;
            barrier(CLK_LOCAL_MEM_FENCE);
            float v26 = exchange0_float_0[(lid & ~255) + ((lid + 32) & 255)];
            float v27 = (v25 + v26);
            exchange1_float_0[lid] = v27;
            barrier(CLK_LOCAL_MEM_FENCE);
            float v28 = exchange1_float_0[(lid & ~255) + ((lid + 16) & 255)];
            float v29 = (v27 + v28);
            exchange0_float_0[lid] = v29;
            barrier(CLK_LOCAL_MEM_FENCE);
            float v30 = exchange0_float_0[(lid & ~255) + ((lid + 8) & 255)];
            float v31 = (v29 + v30);
            exchange1_float_0[lid] = v31;
            barrier(CLK_LOCAL_MEM_FENCE);
            float v32 = exchange1_float_0[(lid & ~255) + ((lid + 4) & 255)];
            float v33 = (v31 + v32);
            exchange0_float_0[lid] = v33;
            barrier(CLK_LOCAL_MEM_FENCE);
            float v34 = exchange0_float_0[(lid & ~255) + ((lid + 2) & 255)];
            float v35 = (v33 + v34);
            exchange1_float_0[lid] = v35;
            barrier(CLK_LOCAL_MEM_FENCE);
            float v36 = exchange1_float_0[(lid & ~255) + ((lid + 1) & 255)];
            float v37 = (v35 + v36);
            if (lid % 256 == 0 && b1 + lid / 256 < 2) {
                l0[i2] = v37;
            }
        }
        int i38 = (int)(lid % 256);
        float v39 = (float)(-0x0.0p+0f);
        long i40 = 2048 + i38;
        int i41 = (int)(i38 + 256);
        int i42 = (int)(i41 < 452);
        int i43 = (int)(min(i41, 451));
        long i44 = 2048 + i43;
        float v45 = in0[i13 + i40];
        float v46 = (v39 + v45);
        v39 = v46;
        float v47 = in0[i13 + i44];
        float v48 = (v39 + v47);
        int v49 = (0 < (i42));
        float v50 = (v49 ? v48 : v39);
        v39 = v50;
        exchange0_float_0[lid] = v39;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v51 = exchange0_float_0[(lid & ~255) + ((lid + 128) & 255)];
        float v52 = (v39 + v51);
        exchange1_float_0[lid] = v52;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v53 = exchange1_float_0[(lid & ~255) + ((lid + 64) & 255)];
        float v54 = (v52 + v53);
        exchange0_float_0[lid] = v54;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v55 = exchange0_float_0[(lid & ~255) + ((lid + 32) & 255)];
        float v56 = (v54 + v55);
        exchange1_float_0[lid] = v56;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v57 = exchange1_float_0[(lid & ~255) + ((lid + 16) & 255)];
        float v58 = (v56 + v57);
        exchange0_float_0[lid] = v58;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v59 = exchange0_float_0[(lid & ~255) + ((lid + 8) & 255)];
        float v60 = (v58 + v59);
        exchange1_float_0[lid] = v60;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v61 = exchange1_float_0[(lid & ~255) + ((lid + 4) & 255)];
        float v62 = (v60 + v61);
        exchange0_float_0[lid] = v62;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v63 = exchange0_float_0[(lid & ~255) + ((lid + 2) & 255)];
        float v64 = (v62 + v63);
        exchange1_float_0[lid] = v64;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v65 = exchange1_float_0[(lid & ~255) + ((lid + 1) & 255)];
        float v66 = (v64 + v65);
        if (lid == 0) {
            l0[2] = v66;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        int i67 = (int)(lid % 32);
        int i68 = (int)(min(i67, 2));
        float v69 = l0[i68];
        double v70 = convert_double(v69);
        exchange0_double_0[lid] = v70;
        barrier(CLK_LOCAL_MEM_FENCE);
        double v71 = exchange0_double_0[(lid & ~31) + ((lid + 1) & 31)];
        int v72 = (0 < (2 - i67));
        double v73 = (v70 + v71);
        double v74 = (v72 ? v73 : v70);
        exchange1_double_0[lid] = v74;
        barrier(CLK_LOCAL_MEM_FENCE);
        double v75 = exchange1_double_0[(lid & ~31) + ((lid + 2) & 31)];
        int v76 = (0 < (1 - i67));
        double v77 = (v74 + v75);
        double v78 = (v76 ? v77 : v74);
        exchange0_double_0[lid] = v78;
        barrier(CLK_LOCAL_MEM_FENCE);
        double v79 = exchange0_double_0[lid & ~31];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        float v80 = convert_float(v79);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        float v81 = v80;
        if (lid == 0) {
            out0[record] = (v81 == v81 ? v81 : (float)(as_float(0x7fc00000U)));
        }
    }
}
