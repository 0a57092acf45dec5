/* Sums the numbers of all processes by passing them round a ring: one superstep for each step.
 *
 *     lpf-c/bin/lpfcc lpf-c/examples/ring.c -o target/ring
 *     lpf-c/bin/lpfrun -n 4 target/ring
 */
#include <lpf/core.h>

#include <stdio.h>
#include <stdlib.h>

static void check(lpf_err_t code)
{
    if (code != LPF_SUCCESS) {
        fprintf(stderr, "ring: error %d\n", code);
        exit(1);
    }
}

static void ring(lpf_t ctx, lpf_pid_t pid, lpf_pid_t processes, lpf_args_t args)
{
    unsigned passed = pid, arrived = 0, sum = pid;
    lpf_memslot_t from, to;

    check(lpf_resize_memory_register(ctx, 2));
    check(lpf_resize_message_queue(ctx, 2));
    check(lpf_sync(ctx, LPF_SYNC_DEFAULT));
    check(lpf_register_local(ctx, &passed, sizeof passed, &from));
    check(lpf_register_global(ctx, &arrived, sizeof arrived, &to));
    check(lpf_sync(ctx, LPF_SYNC_DEFAULT));

    for (lpf_pid_t step = 1; step < processes; ++step) {
        check(lpf_put(ctx, from, 0, (pid + 1) % processes, to, 0, sizeof passed, LPF_MSG_DEFAULT));
        check(lpf_sync(ctx, LPF_SYNC_DEFAULT));
        sum += arrived;
        passed = arrived;
    }
    if (pid == 0)
        *(unsigned *)args.output = sum;
    check(lpf_deregister(ctx, from));
    check(lpf_deregister(ctx, to));
}

int main(void)
{
    unsigned sum = 0;
    lpf_machine_t machine;
    lpf_args_t args = {NULL, 0, &sum, sizeof sum, NULL, 0};

    check(lpf_probe(LPF_ROOT, &machine));
    check(lpf_exec(LPF_ROOT, LPF_MAX_P, ring, args));
    printf("%u processes: the sum is %u\n", machine.p, sum);
    return sum == machine.p * (machine.p - 1) / 2 ? 0 : 1;
}
