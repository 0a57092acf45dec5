/* Starts and ends of processes. */
#include "check.h"

#include <pthread.h>

static void function_a(void) {}
static void function_b(void) {}

static const lpf_func_t functions[] = {(lpf_func_t)function_a, (lpf_func_t)function_b};

static int input = 3, output;

static lpf_args_t given(void)
{
    lpf_args_t args = {&input, sizeof input, &output, sizeof output, functions, 2};
    output = -1;
    return args;
}

SPMD(with_args)
{
    UNUSED_ARGS;
    CHECK(processes >= 1 && pid < processes && ctx != LPF_NONE && ctx != LPF_ROOT);
    CHECK(args.f_size == 2 && args.f_symbols[0] == functions[0] && args.f_symbols[1] == functions[1]);
    if (pid == 0) {
        CHECK(args.input_size == sizeof input && *(const int *)args.input == 3);
        CHECK(args.output_size == sizeof output);
        *(int *)args.output = (int)processes;
    } else {
        CHECK(args.input == NULL && args.input_size == 0 && args.output == NULL && args.output_size == 0);
    }
}

static void arguments(void)
{
    lpf_machine_t machine;
    OK(lpf_probe(LPF_ROOT, &machine));
    for (int times = 0; times < 3; ++times) {
        OK(lpf_exec(LPF_ROOT, LPF_MAX_P, with_args, given()));
        CHECK(output == (int)machine.p);
        OK(lpf_exec(LPF_ROOT, 1, with_args, given()));
        CHECK(output == 1);
        OK(lpf_exec(LPF_ROOT, 2, with_args, given()));
        CHECK(output == (machine.p >= 2 ? 2 : 1));
        OK(lpf_exec(LPF_ROOT, 0, with_args, given()));
        CHECK(output == 1);
    }
}

SPMD(inner)
{
    UNUSED_ARGS;
    lpf_machine_t machine;
    OK(lpf_probe(ctx, &machine));
    int x = (int)pid, y = -1;
    make_room(ctx, 2, 4);
    lpf_memslot_t from = local(ctx, &x, sizeof x), to = global(ctx, &y, sizeof y);
    SYNC(ctx);
    OK(lpf_put(ctx, from, 0, (pid + 1) % processes, to, 0, sizeof x, LPF_MSG_DEFAULT));
    SYNC(ctx);
    CHECK(y == (int)((pid + processes - 1) % processes));
    if (pid == 0)
        *(int *)args.output = (int)processes;
}

SPMD(outer)
{
    UNUSED_ARGS;
    lpf_machine_t machine;
    OK(lpf_probe(ctx, &machine));
    make_room(ctx, 2, 2 * processes);
    unsigned free_p = machine.free_p, all[64] = {0}, sum = 0;
    lpf_memslot_t from = local(ctx, &free_p, sizeof free_p), to = global(ctx, all, sizeof all);
    SYNC(ctx);
    for (unsigned i = 0; i < processes; ++i)
        OK(lpf_put(ctx, from, 0, i, to, pid * sizeof free_p, sizeof free_p, LPF_MSG_DEFAULT));
    SYNC(ctx);
    for (unsigned i = 0; i < processes; ++i)
        sum += all[i];
    CHECK(sum == machine.p);
    int count = -1;
    lpf_args_t nested = {NULL, 0, &count, sizeof count, NULL, 0};
    OK(lpf_exec(ctx, pid + 3, inner, nested));
    CHECK(count == (int)(pid + 3 < free_p ? pid + 3 : free_p));
}

static void nested(void)
{
    lpf_machine_t machine;
    OK(lpf_probe(LPF_ROOT, &machine));
    OK(lpf_exec(LPF_ROOT, (machine.p + 1) / 2, outer, LPF_NO_ARGS));
}

SPMD(first_leaves)
{
    UNUSED_ARGS;
    if (pid == 0) {
        *(int *)args.output = 2;
        return;
    }
    FATAL(lpf_sync(ctx, LPF_SYNC_DEFAULT));
    FATAL(lpf_sync(ctx, LPF_SYNC_DEFAULT));
    FATAL(lpf_rehook(ctx, with_args, LPF_NO_ARGS));
    FATAL(lpf_exec(ctx, 1, with_args, LPF_NO_ARGS));
    int x;
    lpf_memslot_t slot;
    FATAL(lpf_register_local(ctx, &x, sizeof x, &slot));
}

SPMD(last_leaves)
{
    UNUSED_ARGS;
    SYNC(ctx);
    if (pid + 1 == processes)
        return;
    FATAL(lpf_sync(ctx, LPF_SYNC_DEFAULT));
}

static void early_return(void)
{
    lpf_machine_t machine;
    OK(lpf_probe(LPF_ROOT, &machine));
    if (machine.p < 2)
        return;
    FATAL(lpf_exec(LPF_ROOT, LPF_MAX_P, first_leaves, given()));
    CHECK(output == 2);
    FATAL(lpf_exec(LPF_ROOT, LPF_MAX_P, last_leaves, LPF_NO_ARGS));
    /* The next program is not affected. */
    OK(lpf_exec(LPF_ROOT, LPF_MAX_P, with_args, given()));
}

SPMD(fresh)
{
    UNUSED_ARGS;
    CHECK(args.input_size == sizeof(int) && *(const int *)args.input == (int)pid);
    *(int *)args.output = (int)(pid + processes);
    unsigned x = pid, y = 77;
    make_room(ctx, 2, 2);
    lpf_memslot_t from = local(ctx, &x, sizeof x), to = global(ctx, &y, sizeof y);
    SYNC(ctx);
    OK(lpf_put(ctx, from, 0, (pid + 1) % processes, to, 0, sizeof x, LPF_MSG_DEFAULT));
    SYNC(ctx);
    CHECK(y == (pid + processes - 1) % processes);
}

SPMD(rehooks)
{
    UNUSED_ARGS;
    unsigned x = 10 + pid, y = 0;
    make_room(ctx, 2, 2);
    lpf_memslot_t from = local(ctx, &x, sizeof x), to = global(ctx, &y, sizeof y);
    SYNC(ctx);
    OK(lpf_put(ctx, from, 0, (pid + 1) % processes, to, 0, sizeof x, LPF_MSG_DEFAULT));
    for (int times = 0; times < 3; ++times) {
        int in = (int)pid, out = -1;
        lpf_args_t own = {&in, sizeof in, &out, sizeof out, NULL, 0};
        OK(lpf_rehook(ctx, fresh, own));
        CHECK(out == (int)(pid + processes));
    }
    CHECK(y == 0);
    SYNC(ctx);
    CHECK(y == 10 + (pid + processes - 1) % processes);
}

SPMD(rehooks_alone)
{
    UNUSED_ARGS;
    if (pid == 0)
        FATAL(lpf_rehook(ctx, with_args, LPF_NO_ARGS));
    else
        FATAL(lpf_sync(ctx, LPF_SYNC_DEFAULT));
}

SPMD(leaves_fresh)
{
    UNUSED_ARGS;
    if (pid > 0)
        FATAL(lpf_sync(ctx, LPF_SYNC_DEFAULT));
}

SPMD(rehooks_and_fails)
{
    UNUSED_ARGS;
    FATAL(lpf_rehook(ctx, leaves_fresh, LPF_NO_ARGS));
    FATAL(lpf_sync(ctx, LPF_SYNC_DEFAULT));
}

static void rehook(void)
{
    lpf_machine_t machine;
    OK(lpf_probe(LPF_ROOT, &machine));
    run_all(rehooks);
    if (machine.p < 2)
        return;
    FATAL(lpf_exec(LPF_ROOT, LPF_MAX_P, rehooks_alone, LPF_NO_ARGS));
    FATAL(lpf_exec(LPF_ROOT, LPF_MAX_P, rehooks_and_fails, LPF_NO_ARGS));
}

enum { THREADS = 3 };

SPMD(hooked)
{
    UNUSED_ARGS;
    CHECK(processes == THREADS && args.input_size == sizeof(long) && *(const long *)args.input == (long)pid);
    unsigned x = pid, y = 77;
    make_room(ctx, 2, 2);
    lpf_memslot_t from = local(ctx, &x, sizeof x), to = global(ctx, &y, sizeof y);
    SYNC(ctx);
    OK(lpf_put(ctx, from, 0, (pid + 1) % processes, to, 0, sizeof x, LPF_MSG_DEFAULT));
    SYNC(ctx);
    CHECK(y == (pid + processes - 1) % processes);
}

static void *hook_thread(void *number)
{
    long pid = (long)number % THREADS;
    lpf_init_t init = LPF_INIT_NONE;
    OK(lpf_pthread_initialize((lpf_pid_t)pid, THREADS, &init));
    lpf_args_t args = {&pid, sizeof pid, NULL, 0, NULL, 0};
    for (int times = 0; times < 20; ++times)
        OK(lpf_hook(init, hooked, args));
    OK(lpf_pthread_finalize(init));
    return NULL;
}

static void hook(void)
{
    /* Two groups at a time. */
    pthread_t threads[2 * THREADS];
    for (long i = 0; i < 2 * THREADS; ++i)
        CHECK(pthread_create(&threads[i], NULL, hook_thread, (void *)i) == 0);
    for (int i = 0; i < 2 * THREADS; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

SPMD(deep)
{
    UNUSED_ARGS;
    volatile char stack[4 << 20];
    for (size_t i = 0; i < sizeof stack; i += 4096)
        stack[i] = (char)i;
    CHECK(stack[8192] == 0);
}

static void large_stack(void) { run_all(deep); }

const struct test start_cases[] = {
    {"arguments", arguments},       {"nested", nested},           {"early_return", early_return},
    {"rehook", rehook},             {"hook", hook},               {"large_stack", large_stack},
    {NULL, NULL},
};
