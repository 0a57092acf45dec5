/* Measures what a superstep costs in which every process puts 8 bytes to the next one: one put, and each of a
 * thousand.
 *
 *     cargo build --release -p lpf-c
 *     lpf-c/bin/lpfcc -O2 lpf-c/examples/superstep.c -o target/superstep
 *     lpf-c/bin/lpfrun -n 2 target/superstep
 */
#define _POSIX_C_SOURCE 199309L
#include <lpf/core.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PUTS = 1000, REPETITIONS = 11 };

static void check(lpf_err_t code)
{
    if (code != LPF_SUCCESS) {
        fprintf(stderr, "superstep: error %d\n", code);
        exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Prints the median of what a superstep with so many puts costs, divided among them. */
static void measure(lpf_t ctx, lpf_pid_t pid, lpf_pid_t next, const lpf_memslot_t slots[2], int puts, int steps)
{
    double samples[REPETITIONS];
    for (int sample = -1; sample < REPETITIONS; ++sample) {
        check(lpf_sync(ctx, LPF_SYNC_DEFAULT));
        double start = now();
        for (int step = 0; step < steps; ++step) {
            for (int put = 0; put < puts; ++put)
                check(lpf_put(ctx, slots[0], 8 * put, next, slots[1], 8 * put, 8, LPF_MSG_DEFAULT));
            check(lpf_sync(ctx, LPF_SYNC_DEFAULT));
        }
        /* The first one warms up. */
        if (sample >= 0)
            samples[sample] = (now() - start) * 1e9 / steps / puts;
    }
    qsort(samples, REPETITIONS, sizeof *samples, compare);
    if (pid == 0)
        printf("%4d put%s of 8 bytes and a sync: %.1f ns a put [%.1f .. %.1f]\n", puts, puts == 1 ? " " : "s",
               samples[REPETITIONS / 2], samples[0], samples[REPETITIONS - 1]);
}

static void supersteps(lpf_t ctx, lpf_pid_t pid, lpf_pid_t processes, lpf_args_t args)
{
    static const size_t bytes = 8 * PUTS;
    lpf_memslot_t slots[2];
    char *from = calloc(2, bytes), *to = from + bytes;
    (void)args;

    if (from == NULL)
        exit(1);
    check(lpf_resize_memory_register(ctx, 2));
    check(lpf_resize_message_queue(ctx, 2 * PUTS));
    check(lpf_sync(ctx, LPF_SYNC_DEFAULT));
    check(lpf_register_local(ctx, from, bytes, &slots[0]));
    check(lpf_register_global(ctx, to, bytes, &slots[1]));
    check(lpf_sync(ctx, LPF_SYNC_DEFAULT));

    if (pid == 0)
        printf("%u processes, median [min .. max] of %d\n", processes, REPETITIONS);
    measure(ctx, pid, (pid + 1) % processes, slots, 1, 100000);
    measure(ctx, pid, (pid + 1) % processes, slots, PUTS, 1000);
    check(lpf_deregister(ctx, slots[0]));
    check(lpf_deregister(ctx, slots[1]));
    free(from);
}

int main(void)
{
    check(lpf_exec(LPF_ROOT, LPF_MAX_P, supersteps, LPF_NO_ARGS));
    return 0;
}
