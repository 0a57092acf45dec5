/* Operations that are started at once. */
#include "check.h"

SPMD(modes)
{
    UNUSED_ARGS;
    enum { STEPS = 40 };
    unsigned from[2] = {0}, to[2][2] = {{0}}, got = 0;
    OK(lpf_resize_memory_register(ctx, 4));
    OK(talpf_sync(ctx, TALPF_SYNC_DEFAULT));
    lpf_memslot_t from_slot = global(ctx, from, sizeof from), to_slot = global(ctx, to, sizeof to);
    lpf_memslot_t got_slot = local(ctx, &got, sizeof got);
    OK(talpf_sync(ctx, TALPF_SYNC_DEFAULT));
    const unsigned next = (pid + 1) % processes, previous = (pid + processes - 1) % processes;
    const int attributes[] = {TALPF_SYNC_DEFAULT, TALPF_SYNC_CACHED, TALPF_SYNC_MSG(2),
                              TALPF_SYNC_CACHED | TALPF_SYNC_BARRIER, TALPF_SYNC_MSG(2) | TALPF_SYNC_BARRIER};
    for (unsigned step = 1; step < 5 * STEPS; ++step) {
        /* Both neighbours hear of each other, so that none is ahead by more than one step: two buffers do. */
        unsigned *in = to[step % 2];
        from[0] = pid * 10000 + step, from[1] = pid * 10000 + step + 5000;
        const size_t place = step % 2 * sizeof *to;
        OK(talpf_put(ctx, from_slot, 0, next, to_slot, place, 4, LPF_MSG_DEFAULT));
        OK(talpf_put(ctx, from_slot, 4, previous, to_slot, place + 4, 4, LPF_MSG_DEFAULT));
        OK(talpf_sync(ctx, attributes[step / STEPS]));
        CHECK(in[0] == previous * 10000 + step && in[1] == next * 10000 + step + 5000);
    }
    OK(talpf_sync(ctx, TALPF_SYNC_DEFAULT));
    from[0] = 7 + pid;
    OK(talpf_sync(ctx, TALPF_SYNC_DEFAULT));
    OK(talpf_get(ctx, next, from_slot, 0, got_slot, 0, sizeof got, LPF_MSG_DEFAULT));
    CHECK(got == 7 + next);
    OK(talpf_sync(ctx, TALPF_SYNC_MSG(1) | TALPF_SYNC_BARRIER));
}

static void sync_modes(void) { run_all(modes); }

SPMD(atomics)
{
    UNUSED_ARGS;
    enum { TIMES = 1000 };
    uint64_t counter = 0, before = 0, highest = 0;
    make_room(ctx, 3, 0);
    lpf_memslot_t counter_slot = global(ctx, &counter, 8), highest_slot = global(ctx, &highest, 8);
    lpf_memslot_t before_slot = local(ctx, &before, 8);
    SYNC(ctx);
    uint64_t last = 0;
    for (unsigned i = 0; i < TIMES; ++i) {
        OK(talpf_atomic_fetch_and_add(ctx, before_slot, 0, 0, counter_slot, 0, 1));
        CHECK(i == 0 || before > last);
        last = before;
        uint64_t seen = 0;
        do {
            OK(talpf_atomic_cmp_and_swp(ctx, before_slot, 0, 0, highest_slot, 0, seen, last));
            if (before == seen)
                break;
            seen = before;
        } while (seen < last);
    }
    OK(talpf_sync(ctx, TALPF_SYNC_DEFAULT));
    CHECK(pid != 0 || (counter == TIMES * processes && highest == TIMES * processes - 1));
    OK(talpf_atomic_cmp_and_swap(ctx, before_slot, 0, pid, counter_slot, 0, 12345678, 1));
    CHECK(before == counter);
}

static void atomic_operations(void) { run_all(atomics); }

SPMD(deserted)
{
    UNUSED_ARGS;
    SYNC(ctx);
    if (pid > 0)
        return;
    FATAL(talpf_sync(ctx, TALPF_SYNC_MSG(1)));
}

static void nobody_left(void) { FATAL(lpf_exec(LPF_ROOT, LPF_MAX_P, deserted, LPF_NO_ARGS)); }

const struct test immediate_cases[] = {
    {"sync_modes", sync_modes},
    {"atomic_operations", atomic_operations},
    {"nobody_left", nobody_left},
    {NULL, NULL},
};
