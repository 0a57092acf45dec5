/* BSPlib on LPF: memory is registered by address, puts and gets are buffered, and messages are queued at their
 * destination. All processes of a context create, sync and destroy together.
 */
#ifndef TALPF_LPF_BSPLIB_H
#define TALPF_LPF_BSPLIB_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct BSPlib *bsplib_t;

typedef enum bsplib_err {
    BSPLIB_SUCCESS,
    BSPLIB_ERR_OUT_OF_MEMORY,
    /* No active registration has this address. */
    BSPLIB_ERR_MEMORY_NOT_REGISTERED,
    /* Found by a sync: the processes have not registered, or given up, the same. Nothing is registered or given up. */
    BSPLIB_ERR_PUSHREG_MISMATCH,
    BSPLIB_ERR_POPREG_MISMATCH,
    /* Found by a sync: the processes have set different sizes of tags. The size stays. */
    BSPLIB_ERR_TAGSIZE_MISMATCH,
    BSPLIB_ERR_NULL_POINTER,
    BSPLIB_ERR_PID_OUT_OF_RANGE,
    /* Bytes past the end of what the other process has registered. */
    BSPLIB_ERR_MEMORY_ACCESS_OUT_OF_RANGE,
    BSPLIB_ERR_EMPTY_MESSAGE_QUEUE,
    /* The processes cannot go on together. */
    BSPLIB_ERR_FATAL
} bsplib_err_t;

/* Begins BSPlib in a context. All mistakes are found in either mode, and unbuffered operations are not limited. */
extern bsplib_err_t bsplib_create(lpf_t ctx, lpf_pid_t pid, lpf_pid_t nprocs, int safemode, size_t max_hp_regs,
                                  bsplib_t *bsplib);
extern bsplib_err_t bsplib_destroy(bsplib_t bsplib);

/* Seconds since bsplib_create. */
extern double bsplib_time(bsplib_t bsplib);
extern lpf_pid_t bsplib_nprocs(bsplib_t bsplib);
extern lpf_pid_t bsplib_pid(bsplib_t bsplib);

/* Ends a superstep: gets read, what was got is written, what was put is written, messages are delivered. */
extern bsplib_err_t bsplib_sync(bsplib_t bsplib);

/* Registers memory, and gives up the latest registration of an address, from the next superstep on. NULL with
 * size 0 is a place that only the others have. */
extern bsplib_err_t bsplib_push_reg(bsplib_t bsplib, const void *ident, size_t size);
extern bsplib_err_t bsplib_pop_reg(bsplib_t bsplib, const void *ident);

/* Queues a copy to what process dst_pid has registered together with dst here. The source is read at once, or by
 * hpput in the sync. Zero bytes may go anywhere. */
extern bsplib_err_t bsplib_put(bsplib_t bsplib, lpf_pid_t dst_pid, const void *src, void *dst, size_t offset,
                               size_t nbytes);
extern bsplib_err_t bsplib_hpput(bsplib_t bsplib, lpf_pid_t dst_pid, const void *src, void *dst, size_t offset,
                                 size_t nbytes);

/* Queues a copy of what process src_pid has registered together with src here. */
extern bsplib_err_t bsplib_get(bsplib_t bsplib, lpf_pid_t src_pid, const void *src, size_t offset, void *dst,
                               size_t nbytes);
extern bsplib_err_t bsplib_hpget(bsplib_t bsplib, lpf_pid_t src_pid, const void *src, size_t offset, void *dst,
                                 size_t nbytes);

/* Sets the size of tags from the next superstep on, and returns that of this one. */
extern size_t bsplib_set_tagsize(bsplib_t bsplib, size_t tagsize);

/* Queues a message, whose payload is read at once, or by hpsend in the sync. */
extern bsplib_err_t bsplib_send(bsplib_t bsplib, lpf_pid_t dst_pid, const void *tag, const void *payload,
                                size_t nbytes);
extern bsplib_err_t bsplib_hpsend(bsplib_t bsplib, lpf_pid_t dst_pid, const void *tag, const void *payload,
                                  size_t nbytes);

/* Messages of the superstep before that were not taken, and the bytes of their payloads. */
extern bsplib_err_t bsplib_qsize(bsplib_t bsplib, size_t *nmessages, size_t *accum_bytes);

/* Copies the tag of the first message; status is the size of its payload, or (size_t)-1 if there is none. */
extern bsplib_err_t bsplib_get_tag(bsplib_t bsplib, size_t *status, void *tag);

/* Takes the first message, and copies at most so many bytes of its payload. */
extern bsplib_err_t bsplib_move(bsplib_t bsplib, void *payload, size_t reception_bytes);

/* Takes the first message and returns the size of its payload, or (size_t)-1 if there is none. Tag and payload
 * stay until the next sync. */
extern size_t bsplib_hpmove(bsplib_t bsplib, const void **tag_ptr, const void **payload_ptr);

#ifdef __cplusplus
}
#endif

#endif
