#include "kube_reply.h"

#include "vdtest.h"

void kube_reply_begin(struct kube_reply *reply, struct vd_env *env)
{
	memset(reply, 0, sizeof *reply);
	vdi_wait_init(&reply->wait, env);
	vdi_buffer_init(&reply->body, SIZE_MAX / 2);
	vdi_buffer_init(&reply->type, SIZE_MAX / 2);
	vdi_buffer_init(&reply->warning, SIZE_MAX / 2);
}

void kube_reply_fini(struct kube_reply *reply)
{
	vdi_wait_fini(&reply->wait);
	vdi_buffer_fini(&reply->body);
	vdi_buffer_fini(&reply->type);
	vdi_buffer_fini(&reply->warning);
}

void kube_reply_on_answer(void *arg, vd_status status, const struct vd_kube_answer *answer,
			  const struct vd_error *error)
{
	struct kube_reply *reply = arg;

	reply->status = status;
	reply->error = *error;
	if (answer) {
		reply->code = answer->code;
		vdi_buffer_append(&reply->body, answer->body);
		vdi_buffer_append(&reply->type, answer->content_type);
		vdi_buffer_append(&reply->warning, answer->warning);
		vdi_buffer_append_char(&reply->body, 0);
		vdi_buffer_append_char(&reply->type, 0);
		vdi_buffer_append_char(&reply->warning, 0);
	}
	vdi_wait_signal(&reply->wait);
}

void kube_reply_await(struct kube_reply *reply, struct vd_env *env, struct vd_kube *kube,
		      const struct vd_kube_call *call)
{
	kube_reply_begin(reply, env);
	assert_status(vd_kube_request(kube, call, kube_reply_on_answer, reply), VD_OK);
	vdi_wait_wait(&reply->wait);
}
