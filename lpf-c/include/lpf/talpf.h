/* TALPF on the types of LPF: operations that are started at once, and syncs that wait for no more than they must.
 *
 * An operation is counted in the round that is open at the process that starts it, and at the process at its far
 * end, in the round of that number. talpf_sync ends a round. There are no windows: a program whose processes run
 * ahead of each other alternates between two buffers, or uses TALPF_SYNC_BARRIER.
 */
#ifndef TALPF_LPF_TALPF_H
#define TALPF_LPF_TALPF_H

#include <stdint.h>

#include "core.h"

/* Waits for all processes. Also carries out what lpf_put and lpf_get have queued, makes slots active and applies
 * resizes, as lpf_sync does. */
#define TALPF_SYNC_DEFAULT 0
/* Waits for n operations of others. */
#define TALPF_SYNC_MSG(n) ((int)((0x2u << 28) | (unsigned)(n)))
/* The first time as TALPF_SYNC_DEFAULT, and then waits for as many operations as came in that round. */
#define TALPF_SYNC_CACHED ((int)(0x4u << 28))
/* Or-ed to the others: then also waits for all processes. */
#define TALPF_SYNC_BARRIER ((int)(0x8u << 28))

#define LPF_SYNC_MSG(n) TALPF_SYNC_MSG(n)
#define LPF_SYNC_CACHED TALPF_SYNC_CACHED
#define LPF_SYNC_BARRIER TALPF_SYNC_BARRIER

#ifdef __cplusplus
extern "C" {
#endif

/* Copies at once from a slot of this process to a global slot of process dst_pid. */
extern lpf_err_t talpf_put(lpf_t ctx, lpf_memslot_t src_slot, size_t src_offset, lpf_pid_t dst_pid,
                           lpf_memslot_t dst_slot, size_t dst_offset, size_t size, lpf_msg_attr_t attr);

/* Copies at once from a global slot of process src_pid to a slot of this process. */
extern lpf_err_t talpf_get(lpf_t ctx, lpf_pid_t src_pid, lpf_memslot_t src_slot, size_t src_offset,
                           lpf_memslot_t dst_slot, size_t dst_offset, size_t size, lpf_msg_attr_t attr);

/* Adds to the 64-bit integer at the destination, and leaves in the source what was there before. */
extern lpf_err_t talpf_atomic_fetch_and_add(lpf_t ctx, lpf_memslot_t src_slot, size_t src_offset,
                                            lpf_pid_t dst_pid, lpf_memslot_t dst_slot, size_t dst_offset,
                                            uint64_t value);

/* Sets the 64-bit integer at the destination to swp if it is cmp, and leaves in the source what was there before.
 * Both names are the same function. */
extern lpf_err_t talpf_atomic_cmp_and_swp(lpf_t ctx, lpf_memslot_t src_slot, size_t src_offset,
                                          lpf_pid_t dst_pid, lpf_memslot_t dst_slot, size_t dst_offset,
                                          uint64_t cmp, uint64_t swp);
extern lpf_err_t talpf_atomic_cmp_and_swap(lpf_t ctx, lpf_memslot_t src_slot, size_t src_offset,
                                           lpf_pid_t dst_pid, lpf_memslot_t dst_slot, size_t dst_offset,
                                           uint64_t cmp, uint64_t swp);

/* Ends a round.
 * LPF_ERR_FATAL: a process has left or failed, or more operations have arrived than were expected. */
extern lpf_err_t talpf_sync(lpf_t ctx, lpf_sync_attr_t attr);

#ifdef __cplusplus
}
#endif

#endif
