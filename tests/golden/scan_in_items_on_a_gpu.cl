#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void k0(
    __global const float *restrict in0,
    __global float *restrict out0,
    const long n,
    const long chunk,
    const long blocks,
    const long first,
    const long phase) {
    __local float stage0[288] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    long rows = n;
    int row = (int)(lid / 8);
    int column = (int)(lid % 8);
    for (long g = gid; g < ((rows + 31) / 32); g += gsize) {
        long row0 = g * 32;
        int left = (int)(min(32L, rows - row0) - 1);
        float v0 = (float)(-0x0.0p+0f);
        float v1 = (float)(0x0.0p+0f);
        float v2 = (float)(0x0.0p+0f);
        float v3 = (float)(0x0.0p+0f);
        float v4 = (float)(0x0.0p+0f);
        float v5 = (float)(0x0.0p+0f);
        float v6 = (float)(0x0.0p+0f);
        float v7 = (float)(0x0.0p+0f);
        float v8 = (float)(0x0.0p+0f);
        if (left == 31) {
            long i9 = (row0 + row) * 8 + column;
            float v10 = in0[i9];
            v1 = v10;
            float v11 = in0[i9 + 32];
            v2 = v11;
            float v12 = in0[i9 + 64];
            v3 = v12;
            float v13 = in0[i9 + 96];
            v4 = v13;
            float v14 = in0[i9 + 128];
            v5 = v14;
            float v15 = in0[i9 + 160];
            v6 = v15;
            float v16 = in0[i9 + 192];
            v7 = v16;
            float v17 = in0[i9 + 224];
            v8 = v17;
        }
        for (long j0 = 0; j0 < 8; j0 += 8) {
            if (left == 31) {
                stage0[row * 9 + column] = v1;
                stage0[(row + 4) * 9 + column] = v2;
                stage0[(row + 8) * 9 + column] = v3;
                stage0[(row + 12) * 9 + column] = v4;
                stage0[(row + 16) * 9 + column] = v5;
                stage0[(row + 20) * 9 + column] = v6;
                stage0[(row + 24) * 9 + column] = v7;
                stage0[(row + 28) * 9 + column] = v8;
            } else {
                for (long k = 0; k < (left + 1 - row); k += 4) {
                    long i18 = (row0 + row + k) * 8 + (j0 + column);
                    float v19 = in0[i18];
                    stage0[(row + k) * 9 + column] = v19;
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            int stop = (int)(min(8L, 8 - j0));
            if (lid <= left) {
                int i29 = (int)(lid * 9);
                for (long j = 0; j < 8; j += 8) {
                    float v35 = stage0[i29 + j];
                    float v36 = stage0[i29 + (j + 1)];
                    float v37 = stage0[i29 + (j + 2)];
                    float v38 = stage0[i29 + (j + 3)];
                    float v39 = stage0[i29 + (j + 4)];
                    float v40 = stage0[i29 + (j + 5)];
                    float v41 = stage0[i29 + (j + 6)];
                    float v42 = stage0[i29 + (j + 7)];
                    float v43 = (v0 + v35);
                    v0 = v43;
                    float v44 = v0;
                    double v45 = convert_double(v44);
                    float v46 = convert_float(v45);
                    stage0[i29 + j] = v46;
                    float v47 = (v0 + v36);
                    v0 = v47;
                    float v48 = v0;
                    double v49 = convert_double(v48);
                    float v50 = convert_float(v49);
                    stage0[i29 + (j + 1)] = v50;
                    float v51 = (v0 + v37);
                    v0 = v51;
                    float v52 = v0;
                    double v53 = convert_double(v52);
                    float v54 = convert_float(v53);
                    stage0[i29 + (j + 2)] = v54;
                    float v55 = (v0 + v38);
                    v0 = v55;
                    float v56 = v0;
                    double v57 = convert_double(v56);
                    float v58 = convert_float(v57);
                    stage0[i29 + (j + 3)] = v58;
                    float v59 = (v0 + v39);
                    v0 = v59;
                    float v60 = v0;
                    double v61 = convert_double(v60);
                    float v62 = convert_float(v61);
                    stage0[i29 + (j + 4)] = v62;
                    float v63 = (v0 + v40);
                    v0 = v63;
                    float v64 = v0;
                    double v65 = convert_double(v64);
                    float v66 = convert_float(v65);
                    stage0[i29 + (j + 5)] = v66;
                    float v67 = (v0 + v41);
                    v0 = v67;
                    float v68 = v0;
                    double v69 = convert_double(v68);
                    float v70 = convert_float(v69);
                    stage0[i29 + (j + 6)] = v70;
                    float v71 = (v0 + v42);
                    v0 = v71;
                    float v72 = v0;
                    double v73 = convert_double(v72);
                    float v74 = convert_float(v73);
                    stage0[i29 + (j + 7)] = v74;
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (column < stop) {
                if (left == 31) {
                    long i77 = (row0 + row) * 8 + (j0 + column);
                    float v78 = stage0[row * 9 + column];
                    out0[i77] = (v78 == v78 ? v78 : (float)(as_float(0x7fc00000U)));
                    float v79 = stage0[(row + 4) * 9 + column];
                    out0[i77 + 32] = (v79 == v79 ? v79 : (float)(as_float(0x7fc00000U)));
                    float v80 = stage0[(row + 8) * 9 + column];
                    out0[i77 + 64] = (v80 == v80 ? v80 : (float)(as_float(0x7fc00000U)));
                    float v81 = stage0[(row + 12) * 9 + column];
                    out0[i77 + 96] = (v81 == v81 ? v81 : (float)(as_float(0x7fc00000U)));
                    float v82 = stage0[(row + 16) * 9 + column];
                    out0[i77 + 128] = (v82 == v82 ? v82 : (float)(as_float(0x7fc00000U)));
                    float v83 = stage0[(row + 20) * 9 + column];
                    out0[i77 + 160] = (v83 == v83 ? v83 : (float)(as_float(0x7fc00000U)));
                    float v84 = stage0[(row + 24) * 9 + column];
                    out0[i77 + 192] = (v84 == v84 ? v84 : (float)(as_float(0x7fc00000U)));
                    float v85 = stage0[(row + 28) * 9 + column];
                    out0[i77 + 224] = (v85 == v85 ? v85 : (float)(as_float(0x7fc00000U)));
                } else {
                    for (long k = 0; k < (left + 1 - row); k += 4) {
                        long i75 = (row0 + row + k) * 8 + (j0 + column);
                        float v76 = stage0[(row + k) * 9 + column];
                        out0[i75] = (v76 == v76 ? v76 : (float)(as_float(0x7fc00000U)));
                    }
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        }
    }
}
