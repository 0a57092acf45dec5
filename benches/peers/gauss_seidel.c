// Gauss-Seidel on a square in OpenMP: the peer of `talpf-bench apps`. It follows `heat.h`.
//
//   gauss_seidel wavefront SIZE STEPS BORDER
//
// Row `r` of step `t` belongs to front `r + 2 t`. The rows of a front do not depend on each other, so
// threads share the steps of a front. A row is one chain of additions and multiplications; four of
// them are computed at a time, to keep four chains under way. As many steps are under way as a thread
// can have rows in CACHE bytes.

enum { ROWS = 4, CACHE = 640 << 10 };

static double mean(double up, double down, double right, double left) {
    return 0.25 * (((up + down) + right) + left);
}

static void one(double *row, size_t width) {
    const double *up = row - width, *down = row + width;
    double left = row[0];
    for (size_t col = 1; col < width - 1; col++)
        row[col] = left = mean(up[col], down[col], row[col + 1], left);
}

// Rows `row`, `row - 2 width` and so on: those of four steps that follow each other.
static void four(double *row, size_t width) {
    double *a = row, *b = a - 2 * width, *c = b - 2 * width, *d = c - 2 * width;
    double p = a[0], q = b[0], r = c[0], s = d[0];
    for (size_t col = 1; col < width - 1; col++) {
        a[col] = p = mean((a - width)[col], (a + width)[col], a[col + 1], p);
        b[col] = q = mean((b - width)[col], (b + width)[col], b[col + 1], q);
        c[col] = r = mean((c - width)[col], (c + width)[col], c[col + 1], r);
        d[col] = s = mean((d - width)[col], (d + width)[col], d[col + 1], s);
    }
}

static void steps_of(double *cells, size_t size, long steps) {
    size_t width = size + 2;
    long rows = (long)size, fronts = rows + 2 * (steps - 1);
#pragma omp parallel
    for (long front = 1; front <= fronts; front++) {
        // Steps whose row of this front is inside the matrix.
        long first = front > rows ? (front - rows + 1) / 2 : 0;
        long last = (front - 1) / 2 < steps - 1 ? (front - 1) / 2 : steps - 1;
        long groups = (last - first + ROWS) / ROWS;
#pragma omp for schedule(static)
        for (long group = 0; group < groups; group++) {
            long step = first + group * ROWS;
            if (step + ROWS <= last + 1) {
                four(cells + (size_t)(front - 2 * step) * width, width);
            } else {
                for (; step <= last; step++) one(cells + (size_t)(front - 2 * step) * width, width);
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 5) fail("usage: gauss_seidel wavefront SIZE STEPS BORDER");
    size_t size = strtoul(argv[2], NULL, 10);
    long steps = atol(argv[3]);
    double *cells = matrix_of(size, argv[4]);
    double begin = omp_get_wtime();
    size_t of_group = (2 * ROWS + 1) * sizeof(double) * (size + 2);
    long groups = of_group < CACHE ? (long)(CACHE / of_group) : 1;
    long depth = groups * ROWS * omp_get_max_threads();
    for (long step = 0; step < steps; step += depth)
        steps_of(cells, size, steps - step < depth ? steps - step : depth);
    print_result(omp_get_wtime() - begin, cells, size);
    return 0;
}
