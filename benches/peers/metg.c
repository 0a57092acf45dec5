// A task graph in OpenMP tasks with `depend`: the peer of `talpf-bench metg`.
//
//   metg peak KERNEL              prints `peak ITERATIONS_PER_SECOND`, on all threads together
//   metg run GRAPH KERNEL N       prints `seconds S` and `checksum C` of one run, N iterations a task
//
// KERNEL is `compute` or `memory`. GRAPH is a file of numbers: width, steps, sets; for each step its
// first point, its number of points and its set; for each set and point the number of its
// dependences and these in ascending order. All of it is one benchmark with `benches/src/metg`:
// kernels, checksums and graphs are those of `kernel.rs`, `checksum.rs` and `graph.rs`.

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 256, HALF = 16 << 20, PEAK_SAMPLES = 20 };

typedef struct { _Alignas(64) uint64_t checksum; } Cell;
typedef struct { int first, count, set; } Step;
typedef struct { int count, *points; } Dependences;
typedef struct {
    int width, steps, sets;
    Step *step;
    Dependences *dependences;  // sets x width
} Graph;

static int is_memory;
static char *scratch;  // of this thread: what is copied from, then what is copied to
static size_t at;
#pragma omp threadprivate(scratch, at)

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void *allocate(size_t size) {
    void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    if (memory == NULL) fail("out of memory");
    return memory;
}

static int number(FILE *file) {
    int value;
    if (fscanf(file, "%d", &value) != 1) fail("the graph ends early");
    return value;
}

static Graph read_graph(const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) fail("cannot open the graph");
    Graph graph = {.width = number(file), .steps = number(file), .sets = number(file)};
    graph.step = allocate(sizeof(Step) * (size_t)graph.steps);
    for (Step *step = graph.step; step < graph.step + graph.steps; step++) {
        step->first = number(file);
        step->count = number(file);
        step->set = number(file);
    }
    size_t lists = (size_t)graph.sets * (size_t)graph.width;
    graph.dependences = allocate(sizeof(Dependences) * lists);
    for (size_t i = 0; i < lists; i++) {
        Dependences *list = &graph.dependences[i];
        list->count = number(file);
        list->points = allocate(sizeof(int) * (size_t)list->count);
        for (int j = 0; j < list->count; j++) list->points[j] = number(file);
    }
    fclose(file);
    return graph;
}

static void compute(long iterations) {
    typedef double Lanes __attribute__((vector_size(32)));
    Lanes a[16];
    for (int i = 0; i < 16; i++) a[i] = (Lanes){1.25, 1.25, 1.25, 1.25};
    for (long n = 0; n < iterations; n++) {
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) a[i] = a[i] * a[i] + a[i];
    }
    for (int i = 0; i < 16; i++) __asm__ volatile("" ::"x"(a[i]));
}

static void copy(long iterations) {
    if (scratch == NULL) {
        scratch = allocate(2 * HALF);
        memset(scratch, 1, 2 * HALF);
    }
    for (long n = 0; n < iterations; n++) {
        memcpy(scratch + HALF + at, scratch + at, CHUNK);
        at = (at + CHUNK) % HALF;
    }
    __asm__ volatile("" ::: "memory");
}

static void kernel(long iterations) {
    if (is_memory)
        copy(iterations);
    else
        compute(iterations);
}

static uint64_t fold(uint64_t sum, uint64_t value) {
    sum = (sum ^ value) * 0x9E3779B97F4A7C15;
    return sum ^ sum >> 32;
}

static void point(Cell *to, const Cell *from, const Step *last, const Dependences *list, int step,
                  int point, long iterations) {
    uint64_t sum = fold(to->checksum, (uint64_t)step << 32 | (uint64_t)point);
    for (int i = 0; last != NULL && i < list->count; i++) {
        int source = list->points[i] - last->first;
        if (source >= 0 && source < last->count) sum = fold(sum, from[list->points[i]].checksum);
    }
    kernel(iterations);
    to->checksum = sum;
}

// Creates the tasks, from one thread. A step writes one of two rows and reads the other.
static void create(const Graph *graph, Cell *rows[2], long iterations) {
    for (int t = 0; t < graph->steps; t++) {
        const Step *step = &graph->step[t], *last = t > 0 ? step - 1 : NULL;
        Cell *to = rows[t % 2], *from = rows[(t + 1) % 2];
        for (int p = step->first; p < step->first + step->count; p++) {
            const Dependences *list = &graph->dependences[step->set * graph->width + p];
            int *on = list->points, count = last == NULL ? 0 : list->count;
            // A dependence on a point that the last step does not have is satisfied at once.
#pragma omp task depend(iterator(i = 0 : count), in : from[on[i]]) depend(inout : to[p])
            point(to + p, from, last, list, t, p, iterations);
        }
    }
}

static double run(const Graph *graph, Cell *rows[2], long iterations) {
    for (int row = 0; row < 2; row++) memset(rows[row], 0, sizeof(Cell) * (size_t)graph->width);
    double begin = 0;
#pragma omp parallel
#pragma omp single
    {
        begin = omp_get_wtime();
        create(graph, rows, iterations);
#pragma omp taskwait
        begin = omp_get_wtime() - begin;
    }
    return begin;
}

// Iterations a second of all threads together: the best of some samples.
static double peak(long iterations) {
    double best = 0;
    for (int i = 0; i < PEAK_SAMPLES; i++) {
        double begin = 0;
        int threads = 0;
#pragma omp parallel
        {
            kernel(1);  // The scratch of this thread is there from here on.
#pragma omp single
            {
                threads = omp_get_num_threads();
                begin = omp_get_wtime();
            }
            kernel(iterations);
        }
        double rate = (double)iterations * threads / (omp_get_wtime() - begin);
        best = rate > best ? rate : best;
    }
    return best;
}

int main(int argc, char **argv) {
    int is_run = argc == 5 && strcmp(argv[1], "run") == 0;
    if (!is_run && (argc != 3 || strcmp(argv[1], "peak") != 0))
        fail("usage: metg peak KERNEL | metg run GRAPH KERNEL N");
    is_memory = strcmp(argv[is_run ? 3 : 2], "memory") == 0;
    if (!is_run) {
        printf("peak %.6g\n", peak(is_memory ? 1 << 17 : 1 << 20));
        return 0;
    }
    Graph graph = read_graph(argv[2]);
    Cell *rows[2];
    for (int row = 0; row < 2; row++) rows[row] = allocate(sizeof(Cell) * (size_t)graph.width);
#pragma omp parallel
    kernel(1);  // Starts the threads; the scratch is there from here on.
    run(&graph, rows, 1);
    double seconds = run(&graph, rows, atol(argv[4]));
    uint64_t sum = 0;
    for (int row = 0; row < 2; row++)
        for (int p = 0; p < graph.width; p++) sum = fold(sum, rows[row][p].checksum);
    printf("seconds %.9g\nchecksum %llu\n", seconds, (unsigned long long)sum);
    return 0;
}
