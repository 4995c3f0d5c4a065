/* The yardstick: what a patient C programmer writes. Every thread reads a chunk that fits its L2 cache,
   computes in place and writes it. Files are .npy: numbers begin at `from` in the input and `to` in the output. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef float vec8 __attribute__((vector_size(32)));

enum { ROW = 1024, COLUMNS = 512, OUT = 256, PANEL = 16, CHUNK = 512 * 1024, NUMBERS = CHUNK / 4 };

static float *scratch(void) {
    float *memory = aligned_alloc(4096, CHUNK);
    if (!memory) abort();
    return memory;
}

static void get(int file, void *to, long bytes, long at) {
    for (long done = 0; done < bytes;) {
        long count = pread(file, (char *)to + done, bytes - done, at + done);
        if (count <= 0) abort();
        done += count;
    }
}

static void put(int file, const void *from, long bytes, long at) {
    for (long done = 0; done < bytes;) {
        long count = pwrite(file, (const char *)from + done, bytes - done, at + done);
        if (count <= 0) abort();
        done += count;
    }
}

static long least(long a, long b) { return a < b ? a : b; }

static void chain(const float *restrict x, float *restrict y, long n) {
    for (long i = 0; i < n; i++) {
        float gate = 1.0f / (1.0f + expf(0.25f - 1.5f * x[i]));
        float hyper = 1.0f - 2.0f / (1.0f + expf(2.0f * x[i]));
        y[i] = gate * hyper + x[i] * x[i];
    }
}

static void softmax(const float *restrict x, float *restrict y, long n) {
    for (long r = 0; r < n; r += ROW) {
        float top = x[r], sum = 0.0f;
        for (long i = r; i < r + ROW; i++) top = x[i] > top ? x[i] : top;
        for (long i = r; i < r + ROW; i++) sum += y[i] = expf(x[i] - top);
        float scale = 1.0f / sum;
        for (long i = r; i < r + ROW; i++) y[i] *= scale;
    }
}

/* kind: 0 copies, 1 is W1, 3 is W3 */
void map_file(int in, long from, int out, long to, long bytes, int kind) {
    #pragma omp parallel
    {
        float *x = scratch(), *y = scratch();
        #pragma omp for schedule(dynamic)
        for (long at = 0; at < bytes; at += CHUNK) {
            long part = least(CHUNK, bytes - at);
            get(in, x, part, from + at);
            if (kind == 1) chain(x, y, part / 4);
            if (kind == 3) softmax(x, y, part / 4);
            put(out, kind ? y : x, part, to + at);
        }
        free(x);
        free(y);
    }
}

void read_file(int in, long from, long bytes) {
    #pragma omp parallel
    {
        float *x = scratch();
        #pragma omp for schedule(dynamic)
        for (long at = 0; at < bytes; at += CHUNK) get(in, x, least(CHUNK, bytes - at), from + at);
        free(x);
    }
}

void copy_memory(const char *from, char *to, long bytes) {
    #pragma omp parallel for schedule(static)
    for (long at = 0; at < bytes; at += CHUNK) memcpy(to + at, from + at, least(CHUNK, bytes - at));
}

/* float32 in runs of 4096, float64 above them */
double dot_files(int first, long first_from, int second, long second_from, long bytes) {
    double total = 0.0;
    #pragma omp parallel reduction(+ : total)
    {
        float *x = scratch(), *y = scratch();
        #pragma omp for schedule(dynamic)
        for (long at = 0; at < bytes; at += CHUNK) {
            long part = least(CHUNK, bytes - at), n = part / 4;
            get(first, x, part, first_from + at);
            get(second, y, part, second_from + at);
            for (long i = 0; i < n; i += 4096) {
                float run = 0.0f;
                for (long j = i; j < least(i + 4096, n); j++) run += x[j] * y[j];
                total += run;
            }
        }
        free(x);
        free(y);
    }
    return total;
}

/* Rows to unit length times a (1024, 256) matrix packed in panels of 16 columns: tiles of 4 rows by 16 columns. */
static void unit_rows_times(const float *x, float *y, long rows, const float *panels) {
    float scale[NUMBERS / ROW];
    for (long r = 0; r < rows; r++) {
        float sum = 0.0f;
        for (long i = 0; i < ROW; i++) sum += x[r * ROW + i] * x[r * ROW + i];
        scale[r] = 1.0f / sqrtf(sum);
    }
    for (long p = 0; p < OUT / PANEL; p++) {
        const vec8 *b = (const vec8 *)(panels + p * ROW * PANEL);
        for (long r = 0; r < rows; r += 4) {
            const float *a = x + r * ROW;
            vec8 tile[4][2] = {0};
            for (long k = 0; k < ROW; k++)
                for (int i = 0; i < 4; i++) {
                    tile[i][0] += b[2 * k] * a[i * ROW + k];
                    tile[i][1] += b[2 * k + 1] * a[i * ROW + k];
                }
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 2; j++)
                    *(vec8 *)(y + (r + i) * OUT + p * PANEL + j * 8) = tile[i][j] * scale[r + i];
        }
    }
}

void normalise_matmul(int in, long from, int out, long to, long bytes, const float *panels) {
    #pragma omp parallel
    {
        float *x = scratch(), *y = scratch();
        #pragma omp for schedule(dynamic)
        for (long at = 0; at < bytes; at += CHUNK) {
            long part = least(CHUNK, bytes - at);
            get(in, x, part, from + at);
            unit_rows_times(x, y, part / 4 / ROW, panels);
            put(out, y, part * OUT / ROW, to + at * OUT / ROW);
        }
        free(x);
        free(y);
    }
}

/* float32 in blocks of 64 rows, float64 above them */
static void add_rows(const float *x, long rows, double *total, double *total_squares) {
    for (long block = 0; block < rows; block += 64) {
        float s[COLUMNS] = {0}, q[COLUMNS] = {0};
        for (long r = block; r < least(block + 64, rows); r++)
            for (int i = 0; i < COLUMNS; i++) {
                float v = x[r * COLUMNS + i];
                s[i] += v;
                q[i] += v * v;
            }
        for (int i = 0; i < COLUMNS; i++) {
            total[i] += s[i];
            total_squares[i] += q[i];
        }
    }
}

/* from a file, or with memory from there */
void column_sums(int in, const float *memory, long from, long bytes, double *sums, double *squares) {
    #pragma omp parallel
    {
        float *x = scratch();
        double total[COLUMNS] = {0}, total_squares[COLUMNS] = {0};
        #pragma omp for schedule(dynamic)
        for (long at = 0; at < bytes; at += CHUNK) {
            long part = least(CHUNK, bytes - at);
            if (!memory) get(in, x, part, from + at);
            add_rows(memory ? memory + at / 4 : x, part / 4 / COLUMNS, total, total_squares);
        }
        #pragma omp critical
        for (int i = 0; i < COLUMNS; i++) {
            sums[i] += total[i];
            squares[i] += total_squares[i];
        }
        free(x);
    }
}

/* kind: 1 is W1, 3 is W3, 4 is W4, from memory to memory */
void map_memory(const float *x, float *y, long bytes, int kind, const float *panels) {
    #pragma omp parallel for schedule(dynamic)
    for (long at = 0; at < bytes; at += CHUNK) {
        long i = at / 4, n = least(CHUNK, bytes - at) / 4;
        if (kind == 1) chain(x + i, y + i, n);
        if (kind == 3) softmax(x + i, y + i, n);
        if (kind == 4) unit_rows_times(x + i, y + i / ROW * OUT, n / ROW, panels);
    }
}

static void tiny(const float *restrict x, float *restrict y) {
    for (int i = 0; i < 16; i++) y[i] = x[i] * 2.0f + 1.0f;
}

/* static, because libc has a function of that name; volatile, so that a batch stays a call and the loop is not made into one */
static void (*volatile step)(const float *, float *) = tiny;

void tiny_batches(const float *x, float *y, long batches) {
    for (long i = 0; i < batches; i++) step(x + i * 16, y + i * 16);
}
