/* Collectives over LPF.
 *
 * All processes that a collective was made for make the same calls. Each is complete after the next lpf_sync, and
 * none synchronises by itself. They need no room in the message queue. Collectives take one slot of the register.
 */
#ifndef TALPF_LPF_COLLECTIVES_H
#define TALPF_LPF_COLLECTIVES_H

#include "core.h"

#include <stdbool.h>

#define _LPF_COLLECTIVES_VERSION 201500L

#if defined __STDC_VERSION__ && __STDC_VERSION__ >= 199901L
#define LPF_RESTRICT restrict
#else
#define LPF_RESTRICT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Collectives of some processes. P is the number of those, and s the number of this one among them, or P if it
 * does not take part. */
typedef struct lpf_coll {
    lpf_t ctx;
    lpf_pid_t *inv_translate;
    lpf_pid_t *translate;
    void *buffer;
    lpf_memslot_t slot;
    lpf_pid_t P;
    lpf_pid_t s;
} lpf_coll_t;

/* Folds n elements into a value. */
typedef void (*lpf_reducer_t)(size_t n, const void *array, void *value);

/* Combines each of n elements with one of as many others. */
typedef void (*lpf_combiner_t)(size_t n, const void *combine, void *into);

extern const lpf_coll_t LPF_INVALID_COLL;

/* Makes collectives of processes 0 to p - 1, of which the caller is s. Elements of lpf_reduce and lpf_allreduce
 * have at most max_elem_size bytes. Numbers of calls and other sizes are not limited.
 * LPF_ERR_OUT_OF_MEMORY: there is no memory for an element of each process. */
extern lpf_err_t lpf_collectives_init(lpf_t ctx, lpf_pid_t s, lpf_pid_t p, size_t max_calls,
                                      size_t max_elem_size, size_t max_byte_size, lpf_coll_t *coll);

/* Makes collectives of processes lo, lo + str, and so on, below hi. */
extern lpf_err_t lpf_collectives_init_strided(lpf_t ctx, lpf_pid_t s, lpf_pid_t p, lpf_pid_t lo, lpf_pid_t hi,
                                              lpf_pid_t str, size_t max_calls, size_t max_elem_size,
                                              size_t max_byte_size, lpf_coll_t *coll);

extern lpf_t lpf_collectives_get_context(lpf_coll_t coll);
extern lpf_err_t lpf_collectives_destroy(lpf_coll_t coll);

/* In the following a root is a number among the processes of the collectives, and part k of memory are the bytes
 * from k * size to (k + 1) * size. */

/* Copies size bytes of slot src of the root, which is global, to slot dst of all others. */
extern lpf_err_t lpf_broadcast(lpf_coll_t coll, lpf_memslot_t src, lpf_memslot_t dst, size_t size,
                               lpf_pid_t root);

/* Copies size bytes of slot src of each process k but the root into part k of slot dst of the root, which is
 * global. */
extern lpf_err_t lpf_gather(lpf_coll_t coll, lpf_memslot_t src, lpf_memslot_t dst, size_t size, lpf_pid_t root);

/* Copies part k of slot src of the root, which is global, to slot dst of each process k but the root. */
extern lpf_err_t lpf_scatter(lpf_coll_t coll, lpf_memslot_t src, lpf_memslot_t dst, size_t size, lpf_pid_t root);

/* Copies size bytes of slot src of each process k into part k of slot dst of all, which is global; of the process
 * itself only if exclude_myself is false. */
extern lpf_err_t lpf_allgather(lpf_coll_t coll, lpf_memslot_t src, lpf_memslot_t dst, size_t size,
                               bool exclude_myself);

/* Copies part s of slot src of each process k into part k of slot dst of each other process s. Both are global. */
extern lpf_err_t lpf_alltoall(lpf_coll_t coll, lpf_memslot_t src, lpf_memslot_t dst, size_t size);

/* Folds the elements of all into that of the root, in the order of the processes. */
extern lpf_err_t lpf_reduce(lpf_coll_t coll, void *LPF_RESTRICT element, lpf_memslot_t element_slot, size_t size,
                            lpf_reducer_t reducer, lpf_pid_t root);

/* Folds the elements of all into that of each; all get the same bits. */
extern lpf_err_t lpf_allreduce(lpf_coll_t coll, void *LPF_RESTRICT element, lpf_memslot_t element_slot,
                               size_t size, lpf_reducer_t reducer);

/* Combines the arrays of all, of num elements of size bytes, into that of the root, in the order of the
 * processes. */
extern lpf_err_t lpf_combine(lpf_coll_t coll, void *LPF_RESTRICT array, lpf_memslot_t slot, size_t num,
                             size_t size, lpf_combiner_t combiner, lpf_pid_t root);

/* Combines the arrays of all into that of each; all get the same bits. */
extern lpf_err_t lpf_allcombine(lpf_coll_t coll, void *LPF_RESTRICT array, lpf_memslot_t slot, size_t num,
                                size_t size, lpf_combiner_t combiner);

#ifdef __cplusplus
}
#endif

#undef LPF_RESTRICT

#endif
