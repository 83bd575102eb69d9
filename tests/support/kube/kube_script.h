/* A transport of the Kubernetes client (kube_transport.h) that gives prepared answers, for the simulator:
 * the requests are recorded, and answered in the order of the script. After its end, exchanges stay open
 * until they time out or are canceled. */
#ifndef KUBE_SCRIPT_H
#define KUBE_SCRIPT_H

#include "kube_transport.h"

#define KUBE_SCRIPT_REQUESTS_MAX 64

struct kube_script_answer {
	int	    code; /* 0: no head */
	unsigned    retry_after_s;
	const char *body;
	vd_status   status; /* of the end */
	vd_dur	    delay;  /* before the head */
	bool	    holds;  /* no end */
};

struct kube_script_request {
	char	method[32], path[256], token[128], body[128], accept[64], content_type[64];
	vd_dur	timeout;
	vd_mono at;
};

struct kube_script {
	struct vd_env			*env;
	const struct kube_script_answer *answers;
	size_t				 count, next;
	struct kube_script_request	 requests[KUBE_SCRIPT_REQUESTS_MAX];
	size_t				 request_count;
	unsigned			 configured, open;
	char				 ca[8192], cert[8192], server_name[64];
	vd_status			 start_status; /* not VD_OK: start fails with it, once */
};

/* The next transports follow this script. */
void kube_script_use(struct kube_script *script);
/* Has the type vdi_kube_transport_new_fn. */
vd_status kube_script_transport_new(const struct vdi_kube_transport_options *options,
				    struct vdi_kube_transport **ret_transport, struct vd_error *reterr);

#endif
