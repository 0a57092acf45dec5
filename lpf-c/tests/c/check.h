/* Checks, and the table of cases, of the acceptance programs. */
#ifndef CHECK_H
#define CHECK_H

#include <lpf/collectives.h>
#include <lpf/core.h>
#include <lpf/pthread.h>
#include <talpf.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ends the program unless the condition holds. */
#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);        \
            fflush(NULL);                                                                  \
            _exit(1);                                                                      \
        }                                                                                  \
    } while (0)

/* Expects a call to succeed. */
#define OK(call) CHECK((call) == LPF_SUCCESS)

/* Expects a call to fail for good. */
#define FATAL(call) CHECK((call) == LPF_ERR_FATAL)

#define SYNC(ctx) OK(lpf_sync(ctx, LPF_SYNC_DEFAULT))

/* Case of a program. */
struct test {
    const char *name;
    void (*run)(void);
};

extern const struct test core_cases[], collective_cases[], start_cases[], immediate_cases[], misuse_cases[];
extern const struct test bsplib_cases[];

/* Makes room for slots and messages. */
static inline void make_room(lpf_t ctx, size_t slots, size_t messages)
{
    OK(lpf_resize_memory_register(ctx, slots));
    OK(lpf_resize_message_queue(ctx, messages));
    SYNC(ctx);
}

static inline lpf_memslot_t local(lpf_t ctx, void *memory, size_t size)
{
    lpf_memslot_t slot = LPF_INVALID_MEMSLOT;
    OK(lpf_register_local(ctx, memory, size, &slot));
    CHECK(slot != LPF_INVALID_MEMSLOT);
    return slot;
}

static inline lpf_memslot_t global(lpf_t ctx, void *memory, size_t size)
{
    lpf_memslot_t slot = LPF_INVALID_MEMSLOT;
    OK(lpf_register_global(ctx, memory, size, &slot));
    CHECK(slot != LPF_INVALID_MEMSLOT);
    return slot;
}

/* Runs a program on all processors. */
static inline void run_all(lpf_spmd_t spmd)
{
    OK(lpf_exec(LPF_ROOT, LPF_MAX_P, spmd, LPF_NO_ARGS));
}

#define UNUSED_ARGS (void)ctx, (void)pid, (void)processes, (void)args
#define SPMD(name) static void name(lpf_t ctx, lpf_pid_t pid, lpf_pid_t processes, lpf_args_t args)

#endif
