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
    __local float keys[8] __attribute__((aligned(64)));
    __local long places[8] __attribute__((aligned(64)));
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long r = gid; r < n; r += gsize) {
        long i0 = r * 5;
        for (long t = lid; t < 8; t += 32) {
            if (t < 5) {
                float v1 = in0[i0 + (4 - t)];
                float v2 = (float)(0x1.0000000000000p+1f);
                float v3 = (v1 * v2);
                keys[t] = v3;
            } else {
                float v4 = (float)(-INFINITY);
                keys[t] = v4;
            }
            long v5 = (long)(t);
            places[t] = v5;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long t = lid; t < 4; t += 32) {
            long i6 = t * 2;
            long i7 = t * 2 + 1;
            float v8 = keys[i6];
            long v9 = places[i6];
            float v10 = keys[i7];
            long v11 = places[i7];
            long i12 = places[i6];
            long v13 = ((((!(v10 <= v8)) & (v8 == v8)) | (((v8 == v10) | ((v8 != v8) & (v10 != v10))) & (v11 < v9))) ? v11 : v9);
            places[i6] = v13;
            if (places[i6] != i12) {
                keys[i6] = v10;
                keys[i7] = v8;
                places[i7] = v9;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long t = lid; t < 4; t += 32) {
            long i14 = t / 2 * 4 + t % 2;
            long i15 = t / 2 * 4 + 3 - t % 2;
            float v16 = keys[i14];
            long v17 = places[i14];
            float v18 = keys[i15];
            long v19 = places[i15];
            long i20 = places[i14];
            long v21 = ((((!(v18 <= v16)) & (v16 == v16)) | (((v16 == v18) | ((v16 != v16) & (v18 != v18))) & (v19 < v17))) ? v19 : v17);
            places[i14] = v21;
            if (places[i14] != i20) {
                keys[i14] = v18;
                keys[i15] = v16;
                places[i15] = v17;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long t = lid; t < 4; t += 32) {
            long i22 = t * 2;
            long i23 = t * 2 + 1;
            float v24 = keys[i22];
            long v25 = places[i22];
            float v26 = keys[i23];
            long v27 = places[i23];
            long i28 = places[i22];
            long v29 = ((((!(v26 <= v24)) & (v24 == v24)) | (((v24 == v26) | ((v24 != v24) & (v26 != v26))) & (v27 < v25))) ? v27 : v25);
            places[i22] = v29;
            if (places[i22] != i28) {
                keys[i22] = v26;
                keys[i23] = v24;
                places[i23] = v25;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long t = lid; t < 4; t += 32) {
            long i30 = t / 4 * 8 + t % 4;
            long i31 = t / 4 * 8 + 7 - t % 4;
            float v32 = keys[i30];
            long v33 = places[i30];
            float v34 = keys[i31];
            long v35 = places[i31];
            long i36 = places[i30];
            long v37 = ((((!(v34 <= v32)) & (v32 == v32)) | (((v32 == v34) | ((v32 != v32) & (v34 != v34))) & (v35 < v33))) ? v35 : v33);
            places[i30] = v37;
            if (places[i30] != i36) {
                keys[i30] = v34;
                keys[i31] = v32;
                places[i31] = v33;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long t = lid; t < 4; t += 32) {
            long i38 = t / 2 * 4 + t % 2;
            long i39 = t / 2 * 4 + t % 2 + 2;
            float v40 = keys[i38];
            long v41 = places[i38];
            float v42 = keys[i39];
            long v43 = places[i39];
            long i44 = places[i38];
            long v45 = ((((!(v42 <= v40)) & (v40 == v40)) | (((v40 == v42) | ((v40 != v40) & (v42 != v42))) & (v43 < v41))) ? v43 : v41);
            places[i38] = v45;
            if (places[i38] != i44) {
                keys[i38] = v42;
                keys[i39] = v40;
                places[i39] = v41;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long t = lid; t < 4; t += 32) {
            long i46 = t * 2;
            long i47 = t * 2 + 1;
            float v48 = keys[i46];
            long v49 = places[i46];
            float v50 = keys[i47];
            long v51 = places[i47];
            long i52 = places[i46];
            long v53 = ((((!(v50 <= v48)) & (v48 == v48)) | (((v48 == v50) | ((v48 != v48) & (v50 != v50))) & (v51 < v49))) ? v51 : v49);
            places[i46] = v53;
            if (places[i46] != i52) {
                keys[i46] = v50;
                keys[i47] = v48;
                places[i47] = v49;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long t = lid; t < 5; t += 32) {
            long i54 = 4 - t;
            float v55 = keys[i54];
            float v56 = (float)(0x1.0000000000000p+0f);
            float v57 = (v55 + v56);
            out0[r * 5 + t] = (v57 == v57 ? v57 : (float)(as_float(0x7fc00000U)));
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
