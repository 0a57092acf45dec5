/* BSPlib. */
#include "check.h"

#include <lpf/bsplib.h>

#define IS(error, call) CHECK((call) == BSPLIB_##error)
#define GOOD(call) IS(SUCCESS, call)

#define BSP_SPMD(name)                                                                       \
    static void name##_in(bsplib_t bsp, lpf_pid_t pid, lpf_pid_t processes);                 \
    SPMD(name##_spmd)                                                                        \
    {                                                                                        \
        UNUSED_ARGS;                                                                         \
        bsplib_t bsp = NULL;                                                                 \
        GOOD(bsplib_create(ctx, pid, processes, 1, 10, &bsp));                               \
        CHECK(bsplib_pid(bsp) == pid && bsplib_nprocs(bsp) == processes);                    \
        name##_in(bsp, pid, processes);                                                      \
        GOOD(bsplib_destroy(bsp));                                                           \
    }                                                                                        \
    static void name(void) { run_all(name##_spmd); }                                         \
    static void name##_in(bsplib_t bsp, lpf_pid_t pid, lpf_pid_t processes)

BSP_SPMD(bsp_puts_and_gets)
{
    const unsigned next = (pid + 1) % processes, previous = (pid + processes - 1) % processes;
    for (int unbuffered = 0; unbuffered < 2; ++unbuffered) {
        unsigned x = pid, y = 100 + pid, z = 77, in[2] = {0, 0};
        GOOD(bsplib_push_reg(bsp, &x, sizeof x));
        GOOD(bsplib_push_reg(bsp, in, sizeof in));
        GOOD(bsplib_sync(bsp));
        if (unbuffered) {
            GOOD(bsplib_hpput(bsp, next, &y, in, 4, 4));
            GOOD(bsplib_hpget(bsp, next, &x, 0, &z, 4));
        } else {
            GOOD(bsplib_put(bsp, next, &y, in, 4, 4));
            GOOD(bsplib_get(bsp, next, &x, 0, &z, 4));
            y = 0;
            /* A put to what is got: gets read first. */
            GOOD(bsplib_put(bsp, next, &y, &x, 0, 4));
        }
        CHECK(in[1] == 0 && z == 77);
        GOOD(bsplib_pop_reg(bsp, &x));
        GOOD(bsplib_pop_reg(bsp, in));
        GOOD(bsplib_sync(bsp));
        CHECK(in[0] == 0 && in[1] == 100 + previous && z == next && x == (unbuffered ? pid : 0));
        IS(ERR_MEMORY_NOT_REGISTERED, bsplib_put(bsp, 0, &y, &x, 0, 4));
    }
    CHECK(bsplib_time(bsp) >= 0);
}

BSP_SPMD(bsp_put_after_get)
{
    char x = 'x', y = 'y', z = 'z';
    (void)processes;
    GOOD(bsplib_push_reg(bsp, &x, 1));
    GOOD(bsplib_push_reg(bsp, &z, 1));
    GOOD(bsplib_sync(bsp));
    GOOD(bsplib_get(bsp, 0, &x, 0, &z, 1));
    GOOD(bsplib_put(bsp, 0, &y, &z, 0, 1));
    GOOD(bsplib_sync(bsp));
    CHECK(z == (pid == 0 ? 'y' : 'x'));
}

BSP_SPMD(bsp_registrations)
{
    char memory[10] = {0}, x = 'x';
    const unsigned next = (pid + 1) % processes;
    IS(ERR_MEMORY_NOT_REGISTERED, bsplib_put(bsp, 0, &x, memory, 0, 1));
    GOOD(bsplib_push_reg(bsp, memory, 3));
    IS(ERR_MEMORY_NOT_REGISTERED, bsplib_put(bsp, 0, &x, memory, 0, 1));
    GOOD(bsplib_sync(bsp));
    IS(ERR_PID_OUT_OF_RANGE, bsplib_put(bsp, processes, &x, memory, 0, 1));
    IS(ERR_PID_OUT_OF_RANGE, bsplib_get(bsp, (lpf_pid_t)-1, memory, 0, &x, 1));
    IS(ERR_MEMORY_ACCESS_OUT_OF_RANGE, bsplib_put(bsp, next, &x, memory, 3, 1));
    IS(ERR_MEMORY_ACCESS_OUT_OF_RANGE, bsplib_get(bsp, next, memory, 0, &x, 4));
    IS(ERR_MEMORY_ACCESS_OUT_OF_RANGE, bsplib_hpget(bsp, next, memory, (size_t)-1, &x, 1));
    /* Nothing goes anywhere. */
    GOOD(bsplib_put(bsp, processes, &x, NULL, 10, 0));
    GOOD(bsplib_get(bsp, 0, &x, 10, NULL, 0));
    /* The latest registration counts until the next superstep. */
    GOOD(bsplib_push_reg(bsp, memory, 5));
    GOOD(bsplib_sync(bsp));
    GOOD(bsplib_pop_reg(bsp, memory));
    GOOD(bsplib_pop_reg(bsp, memory));
    IS(ERR_MEMORY_NOT_REGISTERED, bsplib_pop_reg(bsp, memory));
    GOOD(bsplib_put(bsp, next, &x, memory, 4, 1));
    GOOD(bsplib_sync(bsp));
    CHECK(memory[4] == 'x');
    IS(ERR_MEMORY_NOT_REGISTERED, bsplib_put(bsp, next, &x, memory, 0, 1));
    IS(ERR_NULL_POINTER, bsplib_push_reg(bsp, NULL, 1));
    /* A place that the first process only has. */
    char *place = pid == 0 ? memory : NULL;
    GOOD(bsplib_push_reg(bsp, place, pid == 0 ? 10 : 0));
    GOOD(bsplib_sync(bsp));
    if (pid == 0)
        GOOD(bsplib_put(bsp, 0, &x, place, 9, 1));
    else
        IS(ERR_NULL_POINTER, bsplib_put(bsp, 0, &x, place, 9, 1));
    GOOD(bsplib_sync(bsp));
    CHECK(pid != 0 || memory[9] == 'x');
    GOOD(bsplib_pop_reg(bsp, place));
    /* Given up in the superstep in which it was registered. */
    GOOD(bsplib_push_reg(bsp, &x, 1));
    GOOD(bsplib_pop_reg(bsp, &x));
    GOOD(bsplib_sync(bsp));
    IS(ERR_MEMORY_NOT_REGISTERED, bsplib_pop_reg(bsp, &x));
}

BSP_SPMD(bsp_mismatches)
{
    int a, b;
    if (processes < 2)
        return;
    if (pid == 0)
        GOOD(bsplib_push_reg(bsp, &a, sizeof a));
    IS(ERR_PUSHREG_MISMATCH, bsplib_sync(bsp));
    GOOD(bsplib_push_reg(bsp, &a, sizeof a));
    GOOD(bsplib_push_reg(bsp, pid == 0 ? &a : &b, sizeof a));
    GOOD(bsplib_sync(bsp));
    GOOD(bsplib_pop_reg(bsp, &a));
    IS(ERR_POPREG_MISMATCH, bsplib_sync(bsp));
    if (pid > 0)
        GOOD(bsplib_pop_reg(bsp, &a));
    IS(ERR_POPREG_MISMATCH, bsplib_sync(bsp));
    CHECK(bsplib_set_tagsize(bsp, pid) == 0);
    IS(ERR_TAGSIZE_MISMATCH, bsplib_sync(bsp));
    GOOD(bsplib_pop_reg(bsp, pid == 0 ? &a : &b));
    GOOD(bsplib_pop_reg(bsp, &a));
    GOOD(bsplib_sync(bsp));
    CHECK(bsplib_set_tagsize(bsp, 0) == 0);
}

BSP_SPMD(bsp_messages)
{
    size_t count = 9, bytes = 9, status = 9;
    const int tag = 1000 + (int)pid, payload = 2000 + (int)pid;
    int seen = -1, moved = -1;
    CHECK(bsplib_set_tagsize(bsp, 10) == 0 && bsplib_set_tagsize(bsp, sizeof tag) == 0);
    GOOD(bsplib_send(bsp, 0, NULL, &payload, sizeof payload));
    GOOD(bsplib_sync(bsp));
    CHECK(bsplib_set_tagsize(bsp, sizeof tag) == sizeof tag);
    GOOD(bsplib_qsize(bsp, &count, &bytes));
    CHECK(count == (pid == 0 ? processes : 0) && bytes == count * sizeof payload);
    GOOD(bsplib_send(bsp, 0, &tag, &payload, sizeof payload));
    GOOD(bsplib_hpsend(bsp, 0, &tag, &payload, 0));
    IS(ERR_NULL_POINTER, bsplib_send(bsp, 0, NULL, &payload, 4));
    IS(ERR_NULL_POINTER, bsplib_send(bsp, 0, &tag, NULL, 4));
    IS(ERR_PID_OUT_OF_RANGE, bsplib_send(bsp, processes, &tag, &payload, 4));
    GOOD(bsplib_sync(bsp));
    GOOD(bsplib_qsize(bsp, &count, &bytes));
    CHECK(count == (pid == 0 ? 2 * processes : 0) && bytes == count / 2 * sizeof payload);
    for (size_t i = 0; i < count; ++i) {
        GOOD(bsplib_get_tag(bsp, &status, &seen));
        const int from = seen - 1000;
        CHECK(from >= 0 && from < (int)processes && (status == 0 || status == sizeof payload));
        if (from % 2) {
            const void *tag_at, *payload_at;
            CHECK(bsplib_hpmove(bsp, &tag_at, &payload_at) == status);
            CHECK(memcmp(tag_at, &seen, sizeof seen) == 0);
            CHECK(status == 0 || *(const int *)payload_at == 2000 + from);
        } else {
            moved = -1;
            GOOD(bsplib_move(bsp, &moved, sizeof moved));
            CHECK(moved == (status == 0 ? -1 : 2000 + from));
        }
    }
    GOOD(bsplib_get_tag(bsp, &status, &seen));
    CHECK(status == (size_t)-1);
    IS(ERR_EMPTY_MESSAGE_QUEUE, bsplib_move(bsp, &moved, sizeof moved));
    const void *nowhere;
    CHECK(bsplib_hpmove(bsp, &nowhere, &nowhere) == (size_t)-1);
}

SPMD(first_syncs)
{
    UNUSED_ARGS;
    bsplib_t bsp;
    GOOD(bsplib_create(ctx, pid, processes, 0, (size_t)-1, &bsp));
    if (pid == 0)
        IS(ERR_FATAL, bsplib_sync(bsp));
    IS(ERR_FATAL, bsplib_destroy(bsp));
}

static void bsp_one_syncs(void)
{
    lpf_machine_t machine;
    OK(lpf_probe(LPF_ROOT, &machine));
    if (machine.p > 1)
        run_all(first_syncs);
}

const struct test bsplib_cases[] = {
    {"bsp_puts_and_gets", bsp_puts_and_gets}, {"bsp_put_after_get", bsp_put_after_get},
    {"bsp_registrations", bsp_registrations}, {"bsp_mismatches", bsp_mismatches},
    {"bsp_messages", bsp_messages},           {"bsp_one_syncs", bsp_one_syncs},
    {NULL, NULL},
};
