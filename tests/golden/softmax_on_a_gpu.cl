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
    __local float4 exchange0_float4_0[256];
    __local float4 exchange1_float4_0[256];
    __local float exchange0_float_0[256];
    const long gid = get_group_id(0), gsize = get_num_groups(0);
    const long lid = get_local_id(0), wid = get_global_id(0), wsize = get_global_size(0);
    for (long turn = gid * 4; turn < n; turn += gsize * 4) {
        long r = min(turn + lid / 64, n - 1);
        long record = r;
        int i0 = (int)(lid % 64);
        int i1 = (int)(i0 * 4);
        int i2 = (int)(i0 * 4 + 256);
        int i3 = (int)(i0 * 4 + 512);
        int i4 = (int)(i0 * 4 + 768);
        long i5 = record * 1024;
        float4 v6 = *(const __global float4 *)(in0 + (i5 + i1));
        float4 v7 = *(const __global float4 *)(in0 + (i5 + i2));
        float4 v8 = *(const __global float4 *)(in0 + (i5 + i3));
        float4 v9 = *(const __global float4 *)(in0 + (i5 + i4));
        float4 v10 = (float4)(-INFINITY);
        float4 v11 = (v10 == v6 ? as_float4(as_int4(v10) & as_int4(v6)) : ((v10 > v6) | (v10 != v10) ? v10 : v6));
        v10 = v11;
        float4 v12 = (v10 == v7 ? as_float4(as_int4(v10) & as_int4(v7)) : ((v10 > v7) | (v10 != v10) ? v10 : v7));
        v10 = v12;
        float4 v13 = (v10 == v8 ? as_float4(as_int4(v10) & as_int4(v8)) : ((v10 > v8) | (v10 != v10) ? v10 : v8));
        v10 = v13;
        float4 v14 = (v10 == v9 ? as_float4(as_int4(v10) & as_int4(v9)) : ((v10 > v9) | (v10 != v10) ? v10 : v9));
        v10 = v14;
        exchange0_float4_0[lid] = v10;
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 v15 = exchange0_float4_0[(lid & ~63) + ((lid + 32) & 63)];
        float4 v16 = (v10 == v15 ? as_float4(as_int4(v10) & as_int4(v15)) : ((v10 > v15) | (v10 != v10) ? v10 : v15));
        exchange1_float4_0[lid] = v16;
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 v17 = exchange1_float4_0[(lid & ~63) + ((lid + 16) & 63)];
        float4 v18 = (v16 == v17 ? as_float4(as_int4(v16) & as_int4(v17)) : ((v16 > v17) | (v16 != v16) ? v16 : v17));
        exchange0_float4_0[lid] = v18;
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 v19 = exchange0_float4_0[(lid & ~63) + ((lid + 8) & 63)];
        float4 v20 = (v18 == v19 ? as_float4(as_int4(v18) & as_int4(v19)) : ((v18 > v19) | (v18 != v18) ? v18 : v19));
        exchange1_float4_0[lid] = v20;
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 v21 = exchange1_float4_0[(lid & ~63) + ((lid + 4) & 63)];
        float4 v22 = (v20 == v21 ? as_float4(as_int4(v20) & as_int4(v21)) : ((v20 > v21) | (v20 != v20) ? v20 : v21));
        exchange0_float4_0[lid] = v22;
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 v23 = exchange0_float4_0[(lid & ~63) + ((lid + 2) & 63)];
        float4 v24 = (v22 == v23 ? as_float4(as_int4(v22) & as_int4(v23)) : ((v22 > v23) | (v22 != v22) ? v22 : v23));
        exchange1_float4_0[lid] = v24;
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 v25 = exchange1_float4_0[(lid & ~63) + ((lid + 1) & 63)];
        float4 v26 = (v24 == v25 ? as_float4(as_int4(v24) & as_int4(v25)) : ((v24 > v25) | (v24 != v24) ? v24 : v25));
        float2 v27 = v26.lo;
        float2 v28 = v26.hi;
        float2 v29 = (v27 == v28 ? as_float2(as_int2(v27) & as_int2(v28)) : ((v27 > v28) | (v27 != v27) ? v27 : v28));
        float v30 = v29.lo;
        float v31 = v29.hi;
        float v32 = (v30 == v31 ? as_float(as_int(v30) & as_int(v31)) : ((v30 > v31) | (v30 != v30) ? v30 : v31));
        exchange0_float_0[lid] = v32;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v33 = exchange0_float_0[lid & ~63];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        float v34 = v33;
        float4 v35 = (float4)(-0x0.0p+0f);
        float4 v36 = (float4)(v34);
        float4 v37 = (v6 - v36);
        float4 v38 = exp(v37);
        float4 v39 = (v35 + v38);
        v35 = v39;
        float4 v40 = (float4)(v34);
        float4 v41 = (v7 - v40);
        float4 v42 = exp(v41);
        float4 v43 = (v35 + v42);
        v35 = v43;
        float4 v44 = (float4)(v34);
        float4 v45 = (v8 - v44);
        float4 v46 = exp(v45);
        float4 v47 = (v35 + v46);
        v35 = v47;
        float4 v48 = (float4)(v34);
        float4 v49 = (v9 - v48);
        float4 v50 = exp(v49);
        float4 v51 = (v35 + v50);
        v35 = v51;
        exchange0_float4_0[lid] = v35;
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 v52 = exchange0_float4_0[(lid & ~63) + ((lid + 32) & 63)];
        float4 v53 = (v35 + v52);
        exchange1_float4_0[lid] = v53;
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 v54 = exchange1_float4_0[(lid & ~63) + ((lid + 16) & 63)];
        float4 v55 = (v53 + v54);
        exchange0_float4_0[lid] = v55;
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 v56 = exchange0_float4_0[(lid & ~63) + ((lid + 8) & 63)];
        float4 v57 = (v55 + v56);
        exchange1_float4_0[lid] = v57;
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 v58 = exchange1_float4_0[(lid & ~63) + ((lid + 4) & 63)];
        float4 v59 = (v57 + v58);
        exchange0_float4_0[lid] = v59;
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 v60 = exchange0_float4_0[(lid & ~63) + ((lid + 2) & 63)];
        float4 v61 = (v59 + v60);
        exchange1_float4_0[lid] = v61;
        barrier(CLK_LOCAL_MEM_FENCE);
        float4 v62 = exchange1_float4_0[(lid & ~63) + ((lid + 1) & 63)];
        float4 v63 = (v61 + v62);
        float2 v64 = v63.lo;
        float2 v65 = v63.hi;
        float2 v66 = (v64 + v65);
        float v67 = v66.lo;
        float v68 = v66.hi;
        float v69 = (v67 + v68);
        exchange0_float_0[lid] = v69;
        barrier(CLK_LOCAL_MEM_FENCE);
        float v70 = exchange0_float_0[lid & ~63];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        float v71 = v70;
        long i72 = record * 1024;
        if (turn + lid / 64 < n) {
            float4 v73 = (float4)(v71);
            float4 v74 = (v38 / v73);
            *(__global float4 *)(out0 + (i72 + i1)) = (v74 == v74 ? v74 : (float4)(as_float(0x7fc00000U)));
            float4 v75 = (float4)(v71);
            float4 v76 = (v42 / v75);
            *(__global float4 *)(out0 + (i72 + i2)) = (v76 == v76 ? v76 : (float4)(as_float(0x7fc00000U)));
            float4 v77 = (float4)(v71);
            float4 v78 = (v46 / v77);
            *(__global float4 *)(out0 + (i72 + i3)) = (v78 == v78 ? v78 : (float4)(as_float(0x7fc00000U)));
            float4 v79 = (float4)(v71);
            float4 v80 = (v50 / v79);
            *(__global float4 *)(out0 + (i72 + i4)) = (v80 == v80 ? v80 : (float4)(as_float(0x7fc00000U)));
        }
    }
}
