// What two-sided messages cost over an installed MPI: the peer of `talpf-bench two-sided`.
//
//   two_sided version       prints `library NAME`
//   two_sided BUDGET_MS [multiple]
//
// Every figure is measured for at least BUDGET_MS; rank 0 prints one `name value` a line. Two ranks
// measure one-way times, the message rate and matching; any number measures barrier and allreduce.
// With `multiple`, all threads may call MPI (MPI_THREAD_MULTIPLE), though one does.

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, PAYLOAD_TAG = 0, FILLER_TAG = 1, LARGEST = 4 << 20, DEEPEST = 10000 };

static int rank, ranks, other;
static double budget;
static char *outgoing, *incoming;

static void fail(const char *what) {
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *pages(size_t size) {
    void *memory = aligned_alloc(4096, size);
    if (memory == NULL) fail("out of memory");
    return memory;
}

static void exchange(long repetitions, int size) {
    MPI_Comm world = MPI_COMM_WORLD;
    for (long i = 0; i < repetitions; i++) {
        if (rank == 0) MPI_Send(outgoing, size, MPI_BYTE, other, PAYLOAD_TAG, world);
        MPI_Recv(incoming, size, MPI_BYTE, other, PAYLOAD_TAG, world, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(outgoing, size, MPI_BYTE, other, PAYLOAD_TAG, world);
    }
}

// Rank 0 sends a window of messages and waits until rank 1 says that all have arrived.
static void stream(long repetitions, int size) {
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request requests[WINDOW];
    for (long i = 0; i < repetitions; i++) {
        for (int slot = 0; slot < WINDOW; slot++) {
            if (rank == 0)
                MPI_Isend(outgoing, size, MPI_BYTE, 1, PAYLOAD_TAG, world, &requests[slot]);
            else
                MPI_Irecv(incoming + slot * size, size, MPI_BYTE, 0, PAYLOAD_TAG, world,
                          &requests[slot]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank == 0)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, PAYLOAD_TAG, world, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, 0, PAYLOAD_TAG, world);
    }
}

static void barrier(long repetitions, int unused) {
    (void)unused;
    for (long i = 0; i < repetitions; i++) MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(long repetitions, int unused) {
    (void)unused;
    for (long i = 0; i < repetitions; i++) {
        int64_t mine = rank + i, sum = 0;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        if (sum != ranks * i + (int64_t)ranks * (ranks - 1) / 2) fail("wrong sum");
    }
}

// Seconds that one repetition of `loop` takes: more and more of them, until they last the budget.
static double time_of(void (*loop)(long, int), int size) {
    for (long repetitions = 1;;) {
        double begin = MPI_Wtime();
        loop(repetitions, size);
        double spent = MPI_Wtime() - begin;
        MPI_Bcast(&spent, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (spent >= budget && repetitions > 1) return spent / (double)repetitions;
        double missing = spent > 0 ? 1.2 * budget / spent : 10;
        repetitions *= missing > 10 ? 10 : missing < 2 ? 2 : (long)missing;
    }
}

static void print(const char *name, double value) {
    if (rank == 0) printf("%s %.6g\n", name, value);
}

static void one_way_times(void) {
    static const struct { int size; const char *name; } sizes[] = {
        {8, "8B"}, {64, "64B"}, {512, "512B"}, {4 << 10, "4KiB"}, {32 << 10, "32KiB"},
        {64 << 10, "64KiB"}, {256 << 10, "256KiB"}, {1 << 20, "1MiB"}, {4 << 20, "4MiB"},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int size = sizes[i].size;
        char name[64];
        memset(incoming, 0, (size_t)size);
        double seconds = time_of(exchange, size) / 2;
        for (int at = 0; at < size; at++)
            if (incoming[at] != other + 1) fail("wrong data");
        snprintf(name, sizeof name, "latency_%s_ns", sizes[i].name);
        print(name, seconds * 1e9);
        if (size < 64 << 10) continue;
        snprintf(name, sizeof name, "bandwidth_%s_gbs", sizes[i].name);
        print(name, size / seconds * 1e-9);
    }
}

// One-way times while receives of other tags are posted that the message does not match.
static void matching(void) {
    static MPI_Request posted[DEEPEST];
    for (int depth = 1; depth <= DEEPEST; depth *= 10) {
        MPI_Comm world = MPI_COMM_WORLD;
        for (int i = 0; i < depth; i++)
            MPI_Irecv(NULL, 0, MPI_BYTE, other, FILLER_TAG + i, world, &posted[i]);
        MPI_Barrier(world);
        double seconds = time_of(exchange, 8) / 2;
        for (int i = 0; i < depth; i++) MPI_Send(NULL, 0, MPI_BYTE, other, FILLER_TAG + i, world);
        MPI_Waitall(depth, posted, MPI_STATUSES_IGNORE);
        char name[64];
        snprintf(name, sizeof name, "match_%d_ns", depth);
        print(name, seconds * 1e9);
    }
}

static void version(void) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    printf("library %s\n", text);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "version") == 0) {
        version();
        return 0;
    }
    int multiple = argc == 3 && strcmp(argv[2], "multiple") == 0;
    int level = multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, granted;
    MPI_Init_thread(&argc, &argv, level, &granted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    other = 1 - rank;
    budget = argc == 2 || multiple ? atof(argv[1]) / 1e3 : 0;
    if (ranks < 2 || budget <= 0) fail("usage: two_sided BUDGET_MS [multiple], two ranks or more");
    if (granted < level) fail("this MPI has no MPI_THREAD_MULTIPLE");
    if (ranks == 2) {
        outgoing = pages(LARGEST);
        incoming = pages(LARGEST);
        memset(outgoing, rank + 1, LARGEST);
        one_way_times();
        print("rate_8B_mops", WINDOW / time_of(stream, 8) * 1e-6);
        matching();
    }
    char name[64];
    snprintf(name, sizeof name, "barrier_%d_us", ranks);
    print(name, time_of(barrier, 0) * 1e6);
    snprintf(name, sizeof name, "allreduce_%d_us", ranks);
    print(name, time_of(allreduce, 0) * 1e6);
    MPI_Finalize();
    return 0;
}
