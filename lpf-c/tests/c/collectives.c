/* Collectives. */
#include "check.h"

/* Sizes of elements: shorter and longer than what a message carries itself. */
static const size_t sizes[] = {1, 8, 100, 50000};
enum { SIZES = 4, LONGEST = 50000 };

static void fill(unsigned char *memory, size_t size, unsigned value)
{
    for (size_t i = 0; i < size; ++i)
        memory[i] = (unsigned char)(value + i % 7);
}

static void expect(const unsigned char *memory, size_t size, unsigned value)
{
    for (size_t i = 0; i < size; ++i)
        CHECK(memory[i] == (unsigned char)(value + i % 7));
}

static void add(size_t n, const void *array, void *value)
{
    for (size_t i = 0; i < n; ++i)
        *(double *)value += ((const double *)array)[i];
}

static void add_each(size_t n, const void *combine, void *into)
{
    for (size_t i = 0; i < n; ++i)
        ((double *)into)[i] += ((const double *)combine)[i];
}

/* Runs all collectives of index s among P processes. */
static void all_of(lpf_t ctx, lpf_coll_t coll)
{
    const unsigned P = coll.P, s = coll.s;
    unsigned char *from = malloc(P * LONGEST), *to = malloc(P * LONGEST);
    lpf_memslot_t from_slot = global(ctx, from, P * LONGEST), to_slot = global(ctx, to, P * LONGEST);
    SYNC(ctx);
    for (int i = 0; i < SIZES; ++i) {
        const size_t size = sizes[i];
        for (unsigned root = 0; root < P; root += P > 1 ? P - 1 : 1) {
            fill(from, size, 10 + s), fill(to, size, 90);
            SYNC(ctx);
            OK(lpf_broadcast(coll, from_slot, to_slot, size, root));
            SYNC(ctx);
            expect(to, size, s == root ? 90 : 10 + root), expect(from, size, 10 + s);

            for (unsigned k = 0; k < P; ++k)
                fill(to + k * size, size, 90);
            SYNC(ctx);
            OK(lpf_gather(coll, from_slot, to_slot, size, root));
            SYNC(ctx);
            for (unsigned k = 0; k < P; ++k)
                expect(to + k * size, size, s == root && k != root ? 10 + k : 90);

            for (unsigned k = 0; k < P; ++k)
                fill(from + k * size, size, 20 + k);
            fill(to, size, 90);
            SYNC(ctx);
            OK(lpf_scatter(coll, from_slot, to_slot, size, root));
            SYNC(ctx);
            expect(to, size, s == root ? 90 : 20 + s);
        }
        for (int excluded = 0; excluded < 2; ++excluded) {
            fill(from, size, 10 + s);
            for (unsigned k = 0; k < P; ++k)
                fill(to + k * size, size, 90);
            SYNC(ctx);
            OK(lpf_allgather(coll, from_slot, to_slot, size, excluded));
            SYNC(ctx);
            for (unsigned k = 0; k < P; ++k)
                expect(to + k * size, size, k == s && excluded ? 90 : 10 + k);
        }
        for (unsigned k = 0; k < P; ++k)
            fill(from + k * size, size, 10 * s + k), fill(to + k * size, size, 90);
        SYNC(ctx);
        OK(lpf_alltoall(coll, from_slot, to_slot, size));
        SYNC(ctx);
        for (unsigned k = 0; k < P; ++k)
            expect(to + k * size, size, k == s ? 90 : 10 * k + s);
    }
    OK(lpf_deregister(ctx, from_slot));
    OK(lpf_deregister(ctx, to_slot));

    enum { LENGTH = 1000 };
    double element, array[LENGTH], sum = 0;
    for (unsigned k = 0; k < P; ++k)
        sum += k + 1;
    lpf_memslot_t element_slot = global(ctx, &element, sizeof element);
    lpf_memslot_t array_slot = global(ctx, array, sizeof array);
    for (unsigned root = 0; root < P; ++root) {
        element = s + 1;
        OK(lpf_reduce(coll, &element, element_slot, sizeof element, add, root));
        SYNC(ctx);
        CHECK(element == (s == root ? sum : s + 1));
        for (unsigned i = 0; i < LENGTH; ++i)
            array[i] = (s + 1.0) * i;
        OK(lpf_combine(coll, array, array_slot, LENGTH, sizeof(double), add_each, root));
        SYNC(ctx);
        for (unsigned i = 0; s == root && i < LENGTH; ++i)
            CHECK(array[i] == sum * i);
    }
    /* Two at a time, and others in the same superstep. */
    element = s + 1;
    for (unsigned i = 0; i < LENGTH; ++i)
        array[i] = (s + 1.0) * i;
    OK(lpf_allreduce(coll, &element, element_slot, sizeof element, add));
    OK(lpf_allcombine(coll, array, array_slot, LENGTH, sizeof(double), add_each));
    SYNC(ctx);
    CHECK(element == sum);
    for (unsigned i = 0; i < LENGTH; ++i)
        CHECK(array[i] == sum * i);
    OK(lpf_deregister(ctx, element_slot));
    OK(lpf_deregister(ctx, array_slot));
}

SPMD(of_all)
{
    UNUSED_ARGS;
    lpf_coll_t coll = LPF_INVALID_COLL;
    make_room(ctx, 5, 2 * processes);
    OK(lpf_collectives_init(ctx, pid, processes, 3, sizeof(double), LONGEST, &coll));
    CHECK(coll.P == processes && coll.s == pid && lpf_collectives_get_context(coll) == ctx);
    all_of(ctx, coll);
    OK(lpf_collectives_destroy(coll));
}

static void collectives(void) { run_all(of_all); }

SPMD(of_some)
{
    UNUSED_ARGS;
    lpf_coll_t coll = LPF_INVALID_COLL;
    make_room(ctx, 5, 2 * processes);
    /* Each process is in the half of its parity. */
    lpf_pid_t lo = pid % 2;
    OK(lpf_collectives_init_strided(ctx, pid, processes, lo, processes, 2, 3, sizeof(double), LONGEST, &coll));
    CHECK(coll.P == (processes - lo + 1) / 2 && coll.s == pid / 2);
    unsigned char from[100], to[100 * 64];
    lpf_memslot_t from_slot = local(ctx, from, sizeof from), to_slot = global(ctx, to, sizeof to);
    fill(from, sizeof from, pid);
    OK(lpf_allgather(coll, from_slot, to_slot, sizeof from, false));
    double element = pid, sum = 0;
    lpf_memslot_t element_slot = global(ctx, &element, sizeof element);
    OK(lpf_allreduce(coll, &element, element_slot, sizeof element, add));
    SYNC(ctx);
    for (unsigned k = 0; k < coll.P; ++k)
        expect(to + k * sizeof from, sizeof from, lo + 2 * k), sum += lo + 2 * k;
    CHECK(element == sum);
    OK(lpf_collectives_destroy(coll));
    /* Process 0 alone; the others call it without effect. */
    OK(lpf_collectives_init_strided(ctx, pid, processes, 0, 1, 1, 1, sizeof(double), 0, &coll));
    CHECK(coll.P == 1 && coll.s == (pid == 0 ? 0 : 1));
    OK(lpf_allreduce(coll, &element, element_slot, sizeof element, add));
    OK(lpf_broadcast(coll, to_slot, to_slot, sizeof to, 0));
    SYNC(ctx);
    CHECK(element == sum);
    OK(lpf_collectives_destroy(coll));
}

static void strided(void) { run_all(of_some); }

SPMD(too_large)
{
    UNUSED_ARGS;
    const size_t most = (size_t)-1;
    lpf_coll_t coll;
    make_room(ctx, 2, 0);
    CHECK(lpf_collectives_init(ctx, pid, processes, 1, most, 0, &coll) == LPF_ERR_OUT_OF_MEMORY);
    if (processes > 1) {
        const size_t size = most / processes + 1;
        CHECK(lpf_collectives_init(ctx, pid, processes, 1, size, 0, &coll) == LPF_ERR_OUT_OF_MEMORY);
    }
    /* The room for two is still there. */
    lpf_coll_t other;
    OK(lpf_collectives_init(ctx, pid, processes, 1 << 7, 0, 1 << 25, &coll));
    OK(lpf_collectives_init(ctx, pid, processes, 1 << 7, 8, 1 << 25, &other));
    OK(lpf_collectives_destroy(coll));
    OK(lpf_collectives_destroy(other));
}

static void elements_that_do_not_fit(void) { run_all(too_large); }

SPMD(in_place)
{
    UNUSED_ARGS;
    enum { SIZE = 5000 };
    unsigned char *memory = malloc(processes * SIZE);
    lpf_coll_t coll;
    make_room(ctx, 3, 2 * processes);
    fill(memory + pid * SIZE, SIZE, pid);
    lpf_memslot_t whole = global(ctx, memory, processes * SIZE), part = global(ctx, memory + pid * SIZE, SIZE);
    OK(lpf_collectives_init(ctx, pid, processes, 1, 0, SIZE, &coll));
    OK(lpf_allgather(coll, part, whole, SIZE, true));
    SYNC(ctx);
    for (unsigned k = 0; k < processes; ++k)
        expect(memory + k * SIZE, SIZE, k);
    free(memory);
}

static void allgather_in_place(void) { run_all(in_place); }

const struct test collective_cases[] = {
    {"collectives", collectives},
    {"strided", strided},
    {"elements_that_do_not_fit", elements_that_do_not_fit},
    {"allgather_in_place", allgather_in_place},
    {NULL, NULL},
};
