/* Core of Lightweight Parallel Foundations, version 202000: processes that work in supersteps.
 *
 * A program of processes runs as an SPMD function, which gets a context, its number and the number of processes.
 * It registers memory as slots, queues puts and gets between slots, and ends a superstep with a sync, which
 * carries them out. A context begins without room for slots and messages: resize both, and sync.
 *
 * Every function returns LPF_SUCCESS, LPF_ERR_OUT_OF_MEMORY if it has changed nothing for want of memory or room,
 * or LPF_ERR_FATAL if the processes cannot go on together. Mistakes that the library sees end the program with one
 * line on the error stream and status 6; with LPF_CHECK=off in the environment they are returned as errors.
 */
#ifndef TALPF_LPF_CORE_H
#define TALPF_LPF_CORE_H

#include <stddef.h>

#define _LPF_VERSION 202000L

/* Processes are threads: process 0 runs on the thread, and in the memory, of the caller. */
#define _LPF_INCLUSIVE_MEMORY 202000L

#ifdef __cplusplus
extern "C" {
#endif

/* Context of a process. */
typedef void *lpf_t;

/* Number of a process, or of processes. */
typedef unsigned int lpf_pid_t;

/* Result of a function. */
typedef int lpf_err_t;

/* Number of a memory slot. */
typedef size_t lpf_memslot_t;

/* Attribute of an operation, and of a sync. */
typedef int lpf_msg_attr_t;
typedef int lpf_sync_attr_t;

/* Thread or process that will hook. */
typedef void *lpf_init_t;

/* Function of unspecified parameters. */
typedef void (*lpf_func_t)();

/* Passed to processes. Input and output are those of process 0, or of each process with lpf_hook and lpf_rehook;
 * functions are for all. */
typedef struct lpf_args {
    const void *input;
    size_t input_size;
    void *output;
    size_t output_size;
    const lpf_func_t *f_symbols;
    size_t f_size;
} lpf_args_t;

/* Machine of a context. */
typedef struct lpf_machine {
    /* Number of processors of the machine. */
    lpf_pid_t p;
    /* Number of processors that lpf_exec can use; at least 1. */
    lpf_pid_t free_p;
    /* Seconds of a byte, for p processes that send messages of at least so many bytes. Measured when first
     * asked for; above 0. */
    double (*g)(lpf_pid_t p, size_t min_msg_size, lpf_sync_attr_t attr);
    /* Seconds of a superstep. */
    double (*l)(lpf_pid_t p, size_t min_msg_size, lpf_sync_attr_t attr);
} lpf_machine_t;

/* Program of a process. */
typedef void (*lpf_spmd_t)(const lpf_t ctx, const lpf_pid_t pid, const lpf_pid_t nprocs, const lpf_args_t args);

extern const lpf_err_t LPF_SUCCESS;
extern const lpf_err_t LPF_ERR_OUT_OF_MEMORY;
extern const lpf_err_t LPF_ERR_FATAL;

/* No context, and the context of the program itself: one process, which can register memory and put to itself. */
extern const lpf_t LPF_NONE;
extern const lpf_t LPF_ROOT;

extern const lpf_init_t LPF_INIT_NONE;
extern const lpf_args_t LPF_NO_ARGS;
extern const lpf_sync_attr_t LPF_SYNC_DEFAULT;
extern const lpf_msg_attr_t LPF_MSG_DEFAULT;

/* As many processes as there are. */
extern const lpf_pid_t LPF_MAX_P;

extern const lpf_machine_t LPF_INVALID_MACHINE;
extern const lpf_memslot_t LPF_INVALID_MEMSLOT;

/* Runs spmd on P processes, or on as many as the context has processors, and at least on one. The processors are
 * shared out among them. Their number is that of the environment variable LPF_MAX_PROCS, or that of the cores.
 * LPF_ERR_FATAL: the processes did not end in the same superstep. */
extern lpf_err_t lpf_exec(lpf_t ctx, lpf_pid_t P, lpf_spmd_t spmd, lpf_args_t args);

/* Runs spmd on threads that the program has started itself; init is made by lpf_pthread_initialize. */
extern lpf_err_t lpf_hook(lpf_init_t init, lpf_spmd_t spmd, lpf_args_t args);

/* Runs spmd on the processes of a context, in a fresh context without slots and messages. All call it. */
extern lpf_err_t lpf_rehook(lpf_t ctx, lpf_spmd_t spmd, lpf_args_t args);

/* Registers memory that other processes can reach, from the next sync on. All register and deregister global
 * slots in the same order. */
extern lpf_err_t lpf_register_global(lpf_t ctx, void *pointer, size_t size, lpf_memslot_t *memslot);

/* Registers memory for the near ends of the operations of this process. */
extern lpf_err_t lpf_register_local(lpf_t ctx, void *pointer, size_t size, lpf_memslot_t *memslot);

/* Frees a slot, which no message of this superstep uses. */
extern lpf_err_t lpf_deregister(lpf_t ctx, lpf_memslot_t memslot);

/* Queues a copy from a slot of this process to a global slot of process dst_pid. The source is read, and the
 * destination written, until the next sync has ended. */
extern lpf_err_t lpf_put(lpf_t ctx, lpf_memslot_t src_slot, size_t src_offset, lpf_pid_t dst_pid,
                         lpf_memslot_t dst_slot, size_t dst_offset, size_t size, lpf_msg_attr_t attr);

/* Queues a copy from a global slot of process src_pid to a slot of this process. */
extern lpf_err_t lpf_get(lpf_t ctx, lpf_pid_t src_pid, lpf_memslot_t src_slot, size_t src_offset,
                         lpf_memslot_t dst_slot, size_t dst_offset, size_t size, lpf_msg_attr_t attr);

/* Ends a superstep, with all processes. Gets read what was there before any put; puts that overlap leave what
 * some order of them leaves.
 * LPF_ERR_FATAL: some process has returned from its function, or has failed. */
extern lpf_err_t lpf_sync(lpf_t ctx, lpf_sync_attr_t attr);

/* Describes the machine. */
extern lpf_err_t lpf_probe(lpf_t ctx, lpf_machine_t *params);

/* Sets the number of slots, global and local, from the next sync on. */
extern lpf_err_t lpf_resize_memory_register(lpf_t ctx, size_t max_regs);

/* Sets the number of messages that a process queues, and of those that others queue for it, in one superstep,
 * from the next sync on. A message to itself takes two places. */
extern lpf_err_t lpf_resize_message_queue(lpf_t ctx, size_t max_msgs);

/* Not 0: lpf_abort ends the program, with status 6. */
extern const int LPF_HAS_ABORT;
extern lpf_err_t lpf_abort(lpf_t ctx);

#ifdef __cplusplus
}
#endif

#include "talpf.h"

#endif
