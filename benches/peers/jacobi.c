// Jacobi on a square in OpenMP: the peer of `talpf-bench apps`. It follows `heat.h`.
//
//   jacobi plain SIZE STEPS BORDER   a loop over all rows in each step, on two matrices in turn
//   jacobi tiled SIZE STEPS BORDER   up to 8 steps at a time on bands of columns that stay in cache

enum { DEPTH = 8, TILE = 1024, KEPT = 4 };

static void row_of(double *restrict to, const double *restrict up, const double *restrict middle,
                   const double *restrict down, size_t first, size_t last) {
    for (size_t col = first; col < last; col++)
        to[col] = 0.25 * ((up[col] + down[col]) + (middle[col - 1] + middle[col + 1]));
}

static void plain(const double *old, double *new, size_t size) {
    size_t width = size + 2;
#pragma omp parallel for schedule(static)
    for (size_t row = 1; row <= size; row++) {
        const double *middle = old + row * width;
        row_of(new + row * width, middle - width, middle, middle + width, 1, size + 1);
    }
}

// `steps` steps of rows `first..last` and columns `left..right`, and before them of what these need
// around them. Level `s` is the matrix after `s` steps. A row of a level is computed as soon as the
// one below it is there in the level before; of levels between, KEPT rows are kept.
static void tile(const double *old, double *new, size_t size, int steps, size_t first, size_t last,
                 size_t left, size_t right, double *kept) {
    size_t width = size + 2, stride = TILE + 2 * DEPTH + 2;
    size_t origin = left > DEPTH ? left - DEPTH - 1 : 0;  // column of the first cell that is kept
#define ROW(level, row)                                                                    \
    ((level) == 0 || (row) == 0 || (row) == size + 1                                       \
         ? (double *)(uintptr_t)old + (row) * width                                        \
         : kept + (((size_t)(level) - 1) * KEPT + (row) % KEPT) * stride - origin)
    size_t margin = (size_t)steps - 1;
    size_t begin = first > margin ? first - margin : 1, end = last + 2 * margin;
    for (size_t front = begin; front < end; front++) {
        for (int level = 1; level <= steps; level++) {
            size_t around = (size_t)(steps - level), behind = (size_t)level - 1;
            if (front < behind + 1) break;
            size_t row = front - behind;
            size_t top = first > around ? first - around : 1;
            size_t bottom = last + around < size + 1 ? last + around : size + 1;
            if (row < top || row >= bottom) continue;
            size_t from = left > around ? left - around : 1;
            size_t to = right + around < size + 1 ? right + around : size + 1;
            double *here = level == steps ? new + row * width : ROW(level, row);
            if (from == 1) here[0] = old[row * width];
            if (to == size + 1) here[size + 1] = old[row * width + size + 1];
            row_of(here, ROW(level - 1, row - 1), ROW(level - 1, row), ROW(level - 1, row + 1), from,
                   to);
        }
    }
#undef ROW
}

static void tiled(const double *old, double *new, size_t size, int steps) {
#pragma omp parallel
    {
        size_t thread = (size_t)omp_get_thread_num(), threads = (size_t)omp_get_num_threads();
        size_t first = 1 + size * thread / threads, last = 1 + size * (thread + 1) / threads;
        double *kept = allocate(sizeof(double) * DEPTH * KEPT * (TILE + 2 * DEPTH + 2));
        for (size_t left = 1; left <= size; left += TILE) {
            size_t right = left + TILE < size + 1 ? left + TILE : size + 1;
            tile(old, new, size, steps, first, last, left, right, kept);
        }
        free(kept);
    }
}

int main(int argc, char **argv) {
    if (argc != 5) fail("usage: jacobi plain|tiled SIZE STEPS BORDER");
    size_t size = strtoul(argv[2], NULL, 10);
    int steps = atoi(argv[3]), is_tiled = strcmp(argv[1], "tiled") == 0;
    double *old = matrix_of(size, argv[4]), *new = matrix_of(size, argv[4]);
    double begin = omp_get_wtime();
    for (int step = 0; step < steps;) {
        int count = !is_tiled ? 1 : steps - step < DEPTH ? steps - step : DEPTH;
        if (is_tiled)
            tiled(old, new, size, count);
        else
            plain(old, new, size);
        double *other = old;
        old = new;
        new = other;
        step += count;
    }
    print_result(omp_get_wtime() - begin, old, size);
    return 0;
}
