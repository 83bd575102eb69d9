/* A request of a client, and the copied response to it. */
#ifndef KUBE_REPLY_H
#define KUBE_REPLY_H

#include <vedette/kube.h>

#include "buffer.h"
#include "wait.h"

struct kube_reply {
	struct vdi_wait	  wait;
	vd_status	  status;
	struct vd_error	  error;
	int		  code;
	struct vdi_buffer body, type, warning; /* NUL-terminated; empty without a response */
};

void kube_reply_begin(struct kube_reply *reply, struct vd_env *env);
void kube_reply_fini(struct kube_reply *reply);
/* vd_kube_answer_fn: copies the response to the struct kube_reply arg and wakes its waiter. */
void kube_reply_on_answer(void *arg, vd_status status, const struct vd_kube_answer *answer,
			  const struct vd_error *error);
/* Begins reply, sends call and waits for the response. */
void kube_reply_await(struct kube_reply *reply, struct vd_env *env, struct vd_kube *kube,
		      const struct vd_kube_call *call);

#endif
