/* Threads of a program that become processes. */
#ifndef TALPF_LPF_PTHREAD_H
#define TALPF_LPF_PTHREAD_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the calling thread number pid of nprocs threads that will call lpf_hook together. It waits for none. */
extern lpf_err_t lpf_pthread_initialize(lpf_pid_t pid, lpf_pid_t nprocs, lpf_init_t *init);

/* Gives up what lpf_pthread_initialize has made. */
extern lpf_err_t lpf_pthread_finalize(lpf_init_t init);

#ifdef __cplusplus
}
#endif

#endif
