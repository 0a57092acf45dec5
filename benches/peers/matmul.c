// Repeated multiplication of square matrices over a BLAS: the peer of `talpf-bench apps`.
//
//   matmul blas SIZE STEPS FILE    FILE has A and B, row by row, as doubles
//
// `A` becomes `A B` modulo a prime in each step. All sums are whole numbers that a double holds.

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define MODULUS 65521.0

// As `cblas.h` has it, which need not be installed where the library is.
enum { ROW_MAJOR = 101, AS_IT_IS = 111 };
void cblas_dgemm(int order, int a_is, int b_is, int m, int n, int k, double alpha, const double *a,
                 int a_stride, const double *b, int b_stride, double beta, double *c, int c_stride);

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static double *matrix_of(size_t cells, FILE *file) {
    double *to = aligned_alloc(64, (sizeof(double) * cells + 63) / 64 * 64);
    if (to == NULL) fail("out of memory");
    for (size_t i = 0; i < cells; i++) to[i] = 0;
    if (file != NULL && fread(to, sizeof(double), cells, file) != cells) fail("the file ends early");
    return to;
}

int main(int argc, char **argv) {
    if (argc != 5) fail("usage: matmul blas SIZE STEPS FILE");
    int size = atoi(argv[2]), steps = atoi(argv[3]);
    size_t cells = (size_t)size * (size_t)size;
    FILE *file = fopen(argv[4], "rb");
    if (file == NULL) fail("cannot open the matrices");
    double *a = matrix_of(cells, file), *b = matrix_of(cells, file), *c = matrix_of(cells, NULL);
    fclose(file);
    // Starts the threads, and has the library allocate its buffers.
    cblas_dgemm(ROW_MAJOR, AS_IT_IS, AS_IT_IS, size, size, size, 1, a, size, b, size, 0, c, size);
    double begin = omp_get_wtime();
    for (int step = 0; step < steps; step++) {
        cblas_dgemm(ROW_MAJOR, AS_IT_IS, AS_IT_IS, size, size, size, 1, a, size, b, size, 0, c, size);
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < cells; i++) c[i] -= rint(c[i] * (1 / MODULUS)) * MODULUS;
        double *other = a;
        a = c;
        c = other;
    }
    double seconds = omp_get_wtime() - begin, sum = 0;
    for (int row = 0; row < size; row++) {
        double of_row = 0;
        for (int col = 0; col < size; col++) of_row += a[(size_t)row * (size_t)size + (size_t)col];
        sum += of_row;
    }
    printf("seconds %.9g\nchecksum %.17g\n", seconds, sum);
    return 0;
}
