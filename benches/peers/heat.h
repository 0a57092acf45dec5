// What the peers of Jacobi and of Gauss-Seidel share: matrices inside a border that a file gives.
// The file has the first and the last row (SIZE + 2 numbers each), then the first and the last column
// between them (SIZE each), as doubles of this machine.

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void *allocate(size_t size) {
    void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    if (memory == NULL) fail("out of memory");
    return memory;
}

static void read_numbers(FILE *file, double *to, size_t count) {
    if (fread(to, sizeof(double), count, file) != count) fail("the border ends early");
}

// A matrix (size + 2) x (size + 2) of zeros inside its border; each thread touches the rows that a
// static schedule gives it.
static double *matrix_of(size_t size, const char *path) {
    size_t width = size + 2;
    double *cells = allocate(sizeof(double) * width * width);
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < width; row++) memset(cells + row * width, 0, sizeof(double) * width);
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail("cannot open the border");
    double *sides = allocate(sizeof(double) * 2 * size);
    read_numbers(file, cells, width);
    read_numbers(file, cells + (size + 1) * width, width);
    read_numbers(file, sides, 2 * size);
    fclose(file);
    for (size_t row = 1; row <= size; row++) {
        cells[row * width] = sides[row - 1];
        cells[row * width + size + 1] = sides[size + row - 1];
    }
    free(sides);
    return cells;
}

// Prints the time, and the sum of all cells: each row, then the rows.
static void print_result(double seconds, const double *cells, size_t size) {
    double sum = 0;
    for (size_t row = 0; row < size + 2; row++) {
        double of_row = 0;
        for (size_t col = 0; col < size + 2; col++) of_row += cells[row * (size + 2) + col];
        sum += of_row;
    }
    printf("seconds %.9g\nchecksum %.17g\n", seconds, sum);
}
