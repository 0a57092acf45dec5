/* Supersteps: registers, queues, puts and gets. */
#include "check.h"

static void constants(void)
{
    CHECK(LPF_SUCCESS == 0);
    CHECK(LPF_ERR_OUT_OF_MEMORY != LPF_SUCCESS && LPF_ERR_FATAL != LPF_SUCCESS);
    CHECK(LPF_ERR_OUT_OF_MEMORY != LPF_ERR_FATAL);
    CHECK(LPF_ROOT != LPF_NONE && LPF_ROOT != NULL && LPF_INIT_NONE == NULL);
    CHECK(LPF_MAX_P == (lpf_pid_t)-1 && LPF_INVALID_MEMSLOT == (lpf_memslot_t)-1);
    CHECK(LPF_SYNC_DEFAULT == 0 && LPF_MSG_DEFAULT == 0 && LPF_HAS_ABORT != 0);
    CHECK(LPF_NO_ARGS.input == NULL && LPF_NO_ARGS.input_size == 0 && LPF_NO_ARGS.output == NULL);
    CHECK(LPF_NO_ARGS.output_size == 0 && LPF_NO_ARGS.f_symbols == NULL && LPF_NO_ARGS.f_size == 0);
    CHECK(LPF_INVALID_MACHINE.p == 0 && LPF_INVALID_MACHINE.free_p == 0 && LPF_INVALID_MACHINE.g == NULL);
    CHECK(LPF_INVALID_COLL.ctx == NULL && LPF_INVALID_COLL.P == 0);
    CHECK(sizeof(lpf_args_t) == 48 && sizeof(lpf_coll_t) == 48 && sizeof(lpf_machine_t) == 24);
    CHECK(_LPF_VERSION == 202000L && _LPF_INCLUSIVE_MEMORY == 202000L);
}

static void root_puts_to_itself(void)
{
    char to = 'a', from[2] = {'b', 'c'};
    OK(lpf_resize_message_queue(LPF_ROOT, 2));
    OK(lpf_resize_memory_register(LPF_ROOT, 2));
    SYNC(LPF_ROOT);
    lpf_memslot_t to_slot = global(LPF_ROOT, &to, 1), from_slot = local(LPF_ROOT, from, 2);
    SYNC(LPF_ROOT);
    OK(lpf_put(LPF_ROOT, from_slot, 1, 0, to_slot, 0, 1, LPF_MSG_DEFAULT));
    CHECK(to == 'a');
    SYNC(LPF_ROOT);
    CHECK(to == 'c');
    OK(lpf_deregister(LPF_ROOT, to_slot));
    OK(lpf_deregister(LPF_ROOT, from_slot));
}

static void sizes_that_cannot_be_had(void)
{
    const size_t sizes[] = {(size_t)-1, (size_t)-1 / 10, (size_t)1 << 40};
    make_room(LPF_ROOT, 1, 0);
    for (int i = 0; i < 3; ++i) {
        CHECK(lpf_resize_message_queue(LPF_ROOT, sizes[i]) == LPF_ERR_OUT_OF_MEMORY);
        CHECK(lpf_resize_memory_register(LPF_ROOT, sizes[i]) == LPF_ERR_OUT_OF_MEMORY);
    }
    SYNC(LPF_ROOT);
    /* The room for one slot is still there. */
    int x = 0;
    OK(lpf_deregister(LPF_ROOT, local(LPF_ROOT, &x, sizeof x)));
    make_room(LPF_ROOT, 0, 0);
}

SPMD(all_to_all)
{
    UNUSED_ARGS;
    unsigned *from = malloc(processes * sizeof *from), *to = malloc(processes * sizeof *to);
    unsigned *got = malloc(processes * sizeof *got);
    for (unsigned i = 0; i < processes; ++i)
        from[i] = pid * 1000 + i, to[i] = got[i] = 77;
    make_room(ctx, 3, 2 * processes);
    lpf_memslot_t from_slot = global(ctx, from, processes * sizeof *from);
    lpf_memslot_t to_slot = global(ctx, to, processes * sizeof *to);
    lpf_memslot_t got_slot = local(ctx, got, processes * sizeof *got);
    SYNC(ctx);
    for (unsigned i = 0; i < processes; ++i)
        OK(lpf_put(ctx, from_slot, i * 4, i, to_slot, pid * 4, 4, LPF_MSG_DEFAULT));
    SYNC(ctx);
    for (unsigned i = 0; i < processes; ++i)
        CHECK(to[i] == i * 1000 + pid);
    for (unsigned i = 0; i < processes; ++i)
        OK(lpf_get(ctx, i, from_slot, pid * 4, got_slot, i * 4, 4, LPF_MSG_DEFAULT));
    SYNC(ctx);
    for (unsigned i = 0; i < processes; ++i)
        CHECK(got[i] == i * 1000 + pid && from[i] == pid * 1000 + i);
    OK(lpf_deregister(ctx, got_slot));
    OK(lpf_deregister(ctx, from_slot));
    OK(lpf_deregister(ctx, to_slot));
    free(from), free(to), free(got);
}

static void puts_and_gets_to_all(void) { run_all(all_to_all); }

SPMD(long_messages)
{
    UNUSED_ARGS;
    const size_t size = 3u << 20;
    unsigned char *from = malloc(size), *to = malloc(size), *got = malloc(size);
    memset(from, pid + 1, size), memset(to, 0, size), memset(got, 0, size);
    make_room(ctx, 3, 4);
    lpf_memslot_t from_slot = global(ctx, from, size), to_slot = global(ctx, to, size);
    lpf_memslot_t got_slot = local(ctx, got, size);
    SYNC(ctx);
    unsigned next = (pid + 1) % processes, previous = (pid + processes - 1) % processes;
    for (int step = 0; step < 3; ++step) {
        OK(lpf_put(ctx, from_slot, 0, next, to_slot, 0, size, LPF_MSG_DEFAULT));
        OK(lpf_get(ctx, next, from_slot, 0, got_slot, 0, size, LPF_MSG_DEFAULT));
        SYNC(ctx);
        CHECK(to[0] == previous + 1 && to[size - 1] == previous + 1 && !memcmp(to, to + 1, size - 1));
        CHECK(got[0] == next + 1 && got[size - 1] == next + 1 && !memcmp(got, got + 1, size - 1));
        /* The source is the program's again. */
        memset(from, pid + 1, size);
    }
    free(from), free(to), free(got);
}

static void long_puts_and_gets(void) { run_all(long_messages); }

SPMD(gets_first)
{
    UNUSED_ARGS;
    enum { LONG = 1000 };
    for (size_t size = 4; size <= LONG; size += LONG - 4) {
        char old[LONG], new[LONG], got[LONG];
        memset(old, pid + 1, LONG), memset(new, pid + 101, LONG), memset(got, 0, LONG);
        make_room(ctx, 3, 4);
        lpf_memslot_t old_slot = global(ctx, old, size);
        lpf_memslot_t new_slot = local(ctx, new, size), got_slot = local(ctx, got, size);
        SYNC(ctx);
        unsigned next = (pid + 1) % processes, previous = (pid + processes - 1) % processes;
        OK(lpf_put(ctx, new_slot, 0, next, old_slot, 0, size, LPF_MSG_DEFAULT));
        OK(lpf_get(ctx, next, old_slot, 0, got_slot, 0, size, LPF_MSG_DEFAULT));
        SYNC(ctx);
        CHECK(got[0] == (char)(next + 1) && got[size - 1] == (char)(next + 1));
        CHECK(old[0] == (char)(previous + 101) && old[size - 1] == (char)(previous + 101));
        OK(lpf_deregister(ctx, old_slot));
        OK(lpf_deregister(ctx, new_slot));
        OK(lpf_deregister(ctx, got_slot));
    }
}

static void gets_read_before_puts_write(void) { run_all(gets_first); }

SPMD(overlapping)
{
    UNUSED_ARGS;
    const size_t size = 200000, step = 50000;
    unsigned char *from = malloc(size), *to = calloc(1, size + step * processes);
    memset(from, pid + 1, size);
    make_room(ctx, 2, 2 * processes + 2);
    lpf_memslot_t from_slot = local(ctx, from, size), to_slot = global(ctx, to, size + step * processes);
    SYNC(ctx);
    OK(lpf_put(ctx, from_slot, 0, 0, to_slot, pid * step, size, LPF_MSG_DEFAULT));
    SYNC(ctx);
    /* Between two ends of puts all bytes are those of one put that covers them. */
    for (size_t part = 0; pid == 0 && part < size / step + processes - 1; ++part) {
        unsigned char winner = to[part * step];
        CHECK(winner >= 1 && winner <= processes);
        CHECK((winner - 1) * step <= part * step && part * step < (winner - 1) * step + size);
        for (size_t i = 0; i < step; ++i)
            CHECK(to[part * step + i] == winner);
    }
    free(from), free(to);
}

static void puts_that_overlap_have_an_order(void) { run_all(overlapping); }

SPMD(nothing)
{
    UNUSED_ARGS;
    int x = 5;
    make_room(ctx, 3, 8);
    lpf_memslot_t slot = global(ctx, &x, sizeof x), empty = global(ctx, NULL, 0), none = local(ctx, NULL, 0);
    SYNC(ctx);
    OK(lpf_put(ctx, slot, 4, (pid + 1) % processes, slot, 0, 0, LPF_MSG_DEFAULT));
    OK(lpf_put(ctx, none, 0, (pid + 1) % processes, empty, 0, 0, LPF_MSG_DEFAULT));
    OK(lpf_get(ctx, (pid + 1) % processes, empty, 0, slot, 0, 0, LPF_MSG_DEFAULT));
    SYNC(ctx);
    CHECK(x == 5);
}

static void messages_of_zero_bytes(void) { run_all(nothing); }

SPMD(sized)
{
    UNUSED_ARGS;
    unsigned char from[64], to[66];
    for (unsigned i = 0; i < sizeof from; ++i)
        from[i] = pid + i + 1;
    make_room(ctx, 2, 4);
    lpf_memslot_t from_slot = local(ctx, from, sizeof from), to_slot = global(ctx, to, sizeof to);
    SYNC(ctx);
    unsigned previous = (pid + processes - 1) % processes;
    for (unsigned size = 0; size <= sizeof from; ++size) {
        memset(to, 0, sizeof to);
        SYNC(ctx);
        OK(lpf_put(ctx, from_slot, sizeof from - size, (pid + 1) % processes, to_slot, 1, size, LPF_MSG_DEFAULT));
        SYNC(ctx);
        CHECK(to[0] == 0 && to[size + 1] == 0);
        for (unsigned i = 0; i < size; ++i)
            CHECK(to[i + 1] == (unsigned char)(previous + sizeof from - size + i + 1));
    }
}

static void puts_of_every_short_size(void) { run_all(sized); }

SPMD(many)
{
    UNUSED_ARGS;
    enum { COUNT = 1000, ROUNDS = 50 };
    static _Thread_local unsigned long from[COUNT], to[COUNT];
    make_room(ctx, 2, COUNT);
    lpf_memslot_t from_slot = local(ctx, from, sizeof from), to_slot = global(ctx, to, sizeof to);
    SYNC(ctx);
    unsigned previous = (pid + processes - 1) % processes;
    for (unsigned round = 0; processes > 1 && round < ROUNDS; ++round) {
        for (unsigned i = 0; i < COUNT; ++i) {
            from[i] = pid * COUNT * ROUNDS + round * COUNT + i;
            OK(lpf_put(ctx, from_slot, i * 8, (pid + 1) % processes, to_slot, (COUNT - 1 - i) * 8, 8, LPF_MSG_DEFAULT));
        }
        SYNC(ctx);
        for (unsigned i = 0; i < COUNT; ++i)
            CHECK(to[COUNT - 1 - i] == previous * COUNT * ROUNDS + round * COUNT + i);
    }
}

static void many_short_puts(void) { run_all(many); }

SPMD(slots)
{
    UNUSED_ARGS;
    enum { COUNT = 16 };
    char memory[COUNT + 1] = "abcdefghijklmnop", other[COUNT] = {0};
    lpf_memslot_t of[COUNT], seen[COUNT];
    make_room(ctx, COUNT, 4);
    for (int i = 0; i < COUNT; ++i)
        of[i] = global(ctx, memory + i, 1);
    SYNC(ctx);
    /* Less room from the next sync on; the slots can still be freed, in any order. */
    OK(lpf_resize_memory_register(ctx, 2));
    for (int i = 0; i < COUNT - 1; ++i)
        OK(lpf_deregister(ctx, of[i]));
    SYNC(ctx);
    OK(lpf_put(ctx, of[COUNT - 1], 0, pid, of[COUNT - 1], 0, 0, LPF_MSG_DEFAULT));
    SYNC(ctx);
    OK(lpf_deregister(ctx, of[COUNT - 1]));
    OK(lpf_resize_memory_register(ctx, 2 * COUNT));
    SYNC(ctx);
    /* Numbers differ, also from those that were used before. */
    memcpy(seen, of, sizeof of);
    for (int i = 0; i < COUNT; ++i) {
        of[i] = global(ctx, other + i, 1);
        lpf_memslot_t near = local(ctx, memory + i, 1);
        for (int j = 0; j < COUNT; ++j)
            CHECK(seen[j] != of[i] && (j >= i || of[j] != of[i]) && near != of[j]);
        seen[i] = near;
    }
    SYNC(ctx);
    for (int i = 0; i < COUNT; ++i) {
        OK(lpf_put(ctx, seen[i], 0, (pid + 1) % processes, of[COUNT - 1 - i], 0, 1, LPF_MSG_DEFAULT));
        SYNC(ctx);
        CHECK(other[COUNT - 1 - i] == memory[i]);
    }
}

static void slots_are_used_again(void) { run_all(slots); }

SPMD(resized)
{
    UNUSED_ARGS;
    char from[17] = "abcdefghijklmnop", to[17] = "0123456789------";
    make_room(ctx, 2, 32);
    lpf_memslot_t from_slot = global(ctx, from, 16), to_slot = global(ctx, to, 16);
    SYNC(ctx);
    /* Takes effect at the sync. */
    OK(lpf_resize_message_queue(ctx, 0));
    for (int i = 0; i < 16; ++i)
        OK(lpf_put(ctx, from_slot, i, (pid + 1) % processes, to_slot, i, 1, LPF_MSG_DEFAULT));
    SYNC(ctx);
    CHECK(!strcmp(from, to));
    /* A queue that grows keeps what is in it. */
    OK(lpf_resize_message_queue(ctx, 2));
    SYNC(ctx);
    memset(to, 0, sizeof to);
    SYNC(ctx);
    OK(lpf_put(ctx, from_slot, 0, pid, to_slot, 3, 5, LPF_MSG_DEFAULT));
    OK(lpf_resize_message_queue(ctx, 5000));
    OK(lpf_resize_memory_register(ctx, 500));
    SYNC(ctx);
    CHECK(!memcmp(to, "\0\0\0abcde\0", 9));
    OK(lpf_get(ctx, pid, from_slot, 0, to_slot, 8, 2, LPF_MSG_DEFAULT));
    SYNC(ctx);
    CHECK(!memcmp(to, "\0\0\0abcdeab\0", 11));
}

static void resizes_take_effect_at_the_sync(void) { run_all(resized); }

SPMD(no_room)
{
    UNUSED_ARGS;
    int x = 0;
    lpf_memslot_t slot = 1234;
    CHECK(lpf_register_local(ctx, &x, sizeof x, &slot) == LPF_ERR_OUT_OF_MEMORY && slot == 1234);
    OK(lpf_resize_memory_register(ctx, 1));
    CHECK(lpf_register_local(ctx, &x, sizeof x, &slot) == LPF_ERR_OUT_OF_MEMORY);
    SYNC(ctx);
    slot = global(ctx, &x, sizeof x);
    CHECK(lpf_register_global(ctx, &x, sizeof x, &slot) == LPF_ERR_OUT_OF_MEMORY);
    SYNC(ctx);
    CHECK(lpf_put(ctx, slot, 0, 0, slot, 0, 0, LPF_MSG_DEFAULT) == LPF_ERR_OUT_OF_MEMORY);
    OK(lpf_resize_message_queue(ctx, 8));
    SYNC(ctx);
    OK(lpf_get(ctx, pid, slot, 0, slot, 0, 0, LPF_MSG_DEFAULT));
    FATAL(lpf_get(ctx, processes, slot, 0, slot, 0, 0, LPF_MSG_DEFAULT));
    FATAL(lpf_get(ctx, pid, slot, 1, slot, 0, 4, LPF_MSG_DEFAULT));
    FATAL(lpf_get(ctx, pid, slot, 0, slot, 1, 4, LPF_MSG_DEFAULT));
    FATAL(lpf_deregister(ctx, slot + 2));
    /* The calls that failed had no effect. */
    SYNC(ctx);
    CHECK(x == 0);
    OK(lpf_deregister(ctx, slot));
    /* A collective with a slot that the root does not have: that comes to light in the sync, for all. */
    lpf_coll_t coll;
    OK(lpf_collectives_init(ctx, pid, processes, 1, 0, 0, &coll));
    OK(lpf_resize_memory_register(ctx, 2));
    SYNC(ctx);
    OK(lpf_broadcast(coll, slot, local(ctx, &x, sizeof x), sizeof x, 0));
    if (processes == 1)
        return;
    FATAL(lpf_sync(ctx, LPF_SYNC_DEFAULT));
    FATAL(lpf_sync(ctx, LPF_SYNC_DEFAULT));
}

/* With LPF_CHECK=off. */
static void errors_without_checks(void)
{
    lpf_machine_t machine;
    OK(lpf_probe(LPF_ROOT, &machine));
    CHECK(lpf_exec(LPF_ROOT, LPF_MAX_P, no_room, LPF_NO_ARGS) == (machine.p > 1 ? LPF_ERR_FATAL : LPF_SUCCESS));
    FATAL(lpf_exec(LPF_NONE, 1, no_room, LPF_NO_ARGS));
    FATAL(lpf_exec(LPF_ROOT, 1, NULL, LPF_NO_ARGS));
    OK(lpf_sync(LPF_ROOT, LPF_SYNC_DEFAULT));
}

SPMD(probe_inner)
{
    UNUSED_ARGS;
    lpf_machine_t machine;
    OK(lpf_probe(ctx, &machine));
    CHECK(machine.free_p >= 1 && machine.free_p <= machine.p);
    const lpf_pid_t numbers[] = {1, machine.p};
    const size_t sizes[] = {0, 1, 1000, (size_t)-1};
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j) {
            CHECK(machine.g(numbers[i], sizes[j], LPF_SYNC_DEFAULT) > 0);
            CHECK(machine.l(numbers[i], sizes[j], LPF_SYNC_DEFAULT) > 0);
        }
    double g = machine.g(machine.p, 8, LPF_SYNC_DEFAULT), theirs = 0;
    make_room(ctx, 2, 2 * processes);
    lpf_memslot_t own = global(ctx, &g, sizeof g), other = local(ctx, &theirs, sizeof theirs);
    SYNC(ctx);
    OK(lpf_get(ctx, 0, own, 0, other, 0, sizeof g, LPF_MSG_DEFAULT));
    SYNC(ctx);
    CHECK(memcmp(&g, &theirs, sizeof g) == 0);
}

static void probe(void)
{
    lpf_machine_t machine = LPF_INVALID_MACHINE;
    OK(lpf_probe(LPF_ROOT, &machine));
    CHECK(machine.p >= 1 && machine.p == machine.free_p);
    run_all(probe_inner);
}

const struct test core_cases[] = {
    {"constants", constants},
    {"root_puts_to_itself", root_puts_to_itself},
    {"sizes_that_cannot_be_had", sizes_that_cannot_be_had},
    {"puts_and_gets_to_all", puts_and_gets_to_all},
    {"long_puts_and_gets", long_puts_and_gets},
    {"gets_read_before_puts_write", gets_read_before_puts_write},
    {"puts_that_overlap_have_an_order", puts_that_overlap_have_an_order},
    {"messages_of_zero_bytes", messages_of_zero_bytes},
    {"puts_of_every_short_size", puts_of_every_short_size},
    {"many_short_puts", many_short_puts},
    {"slots_are_used_again", slots_are_used_again},
    {"resizes_take_effect_at_the_sync", resizes_take_effect_at_the_sync},
    {"probe", probe},
    {"unchecked_errors", errors_without_checks},
    {NULL, NULL},
};
