// Gravity between all pairs of particles in OpenMP: the peer of `talpf-bench apps`.
//
//   nbody sqrt COUNT STEPS FILE    distances by square root and division
//   nbody rsqrt COUNT STEPS FILE   by an estimate that is refined twice, where the machine has AVX-512
//
// FILE has all x, all y, all z, all masses and the velocities in the same order, as doubles.

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define SOFTENING 1e-4
#define TIME_STEP 1e-3
enum { WIDTH = 16 };

static double *place[3], *mass, *velocity[3], *force[3];

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static double *numbers(FILE *file, size_t count, size_t filled) {
    double *to = aligned_alloc(64, sizeof(double) * filled);
    if (to == NULL) fail("out of memory");
    memset(to, 0, sizeof(double) * filled);
    if (file != NULL && fread(to, sizeof(double), count, file) != count) fail("the file ends early");
    return to;
}

// The forces on WIDTH targets.
static void pull(size_t first, size_t count) {
    double sum[3][WIDTH] = {0};
    const double *x = place[0] + first, *y = place[1] + first, *z = place[2] + first;
    for (size_t j = 0; j < count; j++) {
        for (size_t i = 0; i < WIDTH; i++) {
            double dx = place[0][j] - x[i], dy = place[1][j] - y[i], dz = place[2][j] - z[i];
            double square = dx * dx + dy * dy + dz * dz + SOFTENING;
            double weight = mass[j] / (square * sqrt(square));
            sum[0][i] += dx * weight;
            sum[1][i] += dy * weight;
            sum[2][i] += dz * weight;
        }
    }
    for (int axis = 0; axis < 3; axis++)
        memcpy(force[axis] + first, sum[axis], sizeof(sum[axis]));
}

#ifdef __AVX512F__
static void pull_estimated(size_t first, size_t count) {
    enum { VECTORS = WIDTH / 8 };
    __m512d here[3][VECTORS], sum[3][VECTORS];
    const __m512d half = _mm512_set1_pd(0.5), three = _mm512_set1_pd(3);
    for (int axis = 0; axis < 3; axis++)
        for (int v = 0; v < VECTORS; v++) {
            here[axis][v] = _mm512_loadu_pd(place[axis] + first + 8 * v);
            sum[axis][v] = _mm512_setzero_pd();
        }
    for (size_t j = 0; j < count; j++)
        for (int v = 0; v < VECTORS; v++) {
            __m512d d[3], square = _mm512_set1_pd(SOFTENING);
            for (int axis = 0; axis < 3; axis++) {
                d[axis] = _mm512_sub_pd(_mm512_set1_pd(place[axis][j]), here[axis][v]);
                square = _mm512_fmadd_pd(d[axis], d[axis], square);
            }
            __m512d root = _mm512_rsqrt14_pd(square);
            for (int turn = 0; turn < 2; turn++) {
                __m512d error = _mm512_fnmadd_pd(_mm512_mul_pd(square, root), root, three);
                root = _mm512_mul_pd(_mm512_mul_pd(half, root), error);
            }
            __m512d cube = _mm512_mul_pd(_mm512_mul_pd(root, root), root);
            __m512d weight = _mm512_mul_pd(_mm512_set1_pd(mass[j]), cube);
            for (int axis = 0; axis < 3; axis++)
                sum[axis][v] = _mm512_fmadd_pd(d[axis], weight, sum[axis][v]);
        }
    for (int axis = 0; axis < 3; axis++)
        for (int v = 0; v < VECTORS; v++)
            _mm512_storeu_pd(force[axis] + first + 8 * v, sum[axis][v]);
}
#else
static void pull_estimated(size_t first, size_t count) { pull(first, count); }
#endif

int main(int argc, char **argv) {
    if (argc != 5) fail("usage: nbody sqrt|rsqrt COUNT STEPS FILE");
    int is_estimated = strcmp(argv[1], "rsqrt") == 0, steps = atoi(argv[3]);
    size_t count = strtoul(argv[2], NULL, 10), filled = (count + WIDTH - 1) / WIDTH * WIDTH;
    FILE *file = fopen(argv[4], "rb");
    if (file == NULL) fail("cannot open the particles");
    for (int axis = 0; axis < 3; axis++) place[axis] = numbers(file, count, filled);
    mass = numbers(file, count, filled);
    for (int axis = 0; axis < 3; axis++) velocity[axis] = numbers(file, count, filled);
    for (int axis = 0; axis < 3; axis++) force[axis] = numbers(NULL, count, filled);
    fclose(file);
#pragma omp parallel
    {
    }
    double begin = omp_get_wtime();
#pragma omp parallel
    for (int step = 0; step < steps; step++) {
#pragma omp for schedule(static)
        for (size_t first = 0; first < filled; first += WIDTH)
            if (is_estimated)
                pull_estimated(first, count);
            else
                pull(first, count);
#pragma omp for schedule(static)
        for (size_t i = 0; i < filled; i++)
            for (int axis = 0; axis < 3; axis++) {
                velocity[axis][i] += force[axis][i] * TIME_STEP;
                place[axis][i] += velocity[axis][i] * TIME_STEP;
            }
    }
    double seconds = omp_get_wtime() - begin, sum = 0;
    for (size_t i = 0; i < count; i++) sum += place[0][i] + place[1][i] + place[2][i];
    printf("seconds %.9g\nchecksum %.17g\n", seconds, sum);
    return 0;
}
