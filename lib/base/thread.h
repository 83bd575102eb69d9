/* Creates all threads of vedette. They block all signals, which belong to the program, except those of faults
 * (SIGSEGV and related ones): they are delivered to the thread that caused them. */
#ifndef VDI_THREAD_H
#define VDI_THREAD_H

#include <pthread.h>

#include "base.h"

struct vdi_thread {
	pthread_t id;
};

/* name (cut to 15 bytes) appears in ps and gdb. VD_FULL: the operating system allows no further thread. */
VDI_MUST_USE vd_status vdi_thread_start(struct vdi_thread *thread, const char *name, void *(*run)(void *arg),
					void *arg);
void		       vdi_thread_join(struct vdi_thread *thread);
/* CPU time of the calling thread. */
vd_dur vdi_thread_cpu(void);
/* Number of processors that this process may use; at least 1. */
VDI_SHARED unsigned vdi_thread_processors(void);

#endif
