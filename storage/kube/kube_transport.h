/* The seam between the Kubernetes client and HTTP. Two implementations: libcurl (kube_curl.h), and the
 * scripted peer of the tests (tests/support/kube/kube_peer.h) for the simulator.
 *
 * A transport has one thread at a time, its actor. It calls run and all functions of the handlers
 * there, one at a time, so the client's state belongs to that actor and needs no lock. start, cancel,
 * resume, configure and close are called on that actor only; wake from any thread, until close. */
#ifndef VDI_KUBE_TRANSPORT_H
#define VDI_KUBE_TRANSPORT_H

#include <vedette/env.h>

#include "base.h"

struct vdi_kube_transport;
struct vdi_kube_exchange; /* one request and its response */

/* TLS and where to connect. Borrowed for the call. Files were read already: PEM texts; empty: none. */
struct vdi_kube_tls {
	struct vd_bytes ca, cert, key;
	const char     *server_name; /* NULL: the URL's host */
	bool		insecure;
};

struct vdi_kube_http_request {
	const char     *method; /* "GET", ... */
	const char     *path;	/* with query */
	const char     *accept;
	const char     *content_type; /* NULL: no body */
	const char     *token;	      /* sent as a bearer token; NULL: none */
	struct vd_bytes body;
	vd_dur		timeout;     /* of the whole exchange; 0: none */
	vd_dur		silence_max; /* without a byte of the response; 0: none */
};

#define VDI_KUBE_LOCATION_SIZE 200

struct vdi_kube_head {
	int		code;
	unsigned	retry_after_s;	       /* 0: none */
	struct vd_bytes content_type, warning; /* warning: values, one a line */
	/* The address of a redirect (3xx) for messages: printable, without query, cut; "": none. */
	char location[VDI_KUBE_LOCATION_SIZE];
};

/* Functions of one exchange. After ended, or after cancel, none is called any more. None may be called
 * inside start. */
struct vdi_kube_handler {
	/* The head of the final response. */
	void (*head)(void *arg, const struct vdi_kube_head *head);
	/* Bytes of the body, decoded (gzip). Returns false to pause: the same bytes come again after
	 * resume. */
	bool (*body)(void *arg, struct vd_bytes bytes);
	/* VD_OK: the response is complete. VD_UNAVAILABLE: connection failed or cut; VD_TIMEOUT:
	 * timeout or silence_max; VD_TOO_BIG: the head is too long; VD_NOMEM. error has the cause in
	 * words. The exchange is freed after the call. */
	void (*ended)(void *arg, vd_status status, const struct vd_error *error);
	void *arg;
};

struct vdi_kube_transport_options {
	const struct vd_env *env;
	const char	    *server;	 /* base URL without trailing slash; copied */
	const char	    *proxy_url;	 /* NULL: from the environment */
	const char	    *user_agent; /* copied */
	/* Called on the transport's actor: once after it was created, after each wake, and when the
	 * time that it returned last has come (VD_NEVER: not by time). */
	vd_mono (*run)(void *arg);
	void *arg;
};

struct vdi_kube_transport_ops {
	/* VD_NOMEM, VD_INVALID_ARGUMENT: not started, no function of the handler is called. request and
	 * handler are copied. */
	vd_status (*start)(struct vdi_kube_transport *transport, const struct vdi_kube_http_request *request,
			   const struct vdi_kube_handler *handler, struct vdi_kube_exchange **ret_exchange,
			   struct vd_error *reterr);
	/* Gives up the exchange and frees it. Also inside a function of its handler, except ended. */
	void (*cancel)(struct vdi_kube_exchange *exchange);
	void (*resume)(struct vdi_kube_exchange *exchange);
	/* For connections that are opened from now on; later connections do not reuse older ones. */
	vd_status (*configure)(struct vdi_kube_transport *transport, const struct vdi_kube_tls *tls,
			       struct vd_error *reterr);
	void (*wake)(struct vdi_kube_transport *transport);
	/* On the actor, inside run. Exchanges must have ended or been canceled. run is not called any
	 * more; done is called later, on another thread or actor. */
	void (*close)(struct vdi_kube_transport *transport, void (*done)(void *arg), void *arg);
};

struct vdi_kube_transport {
	const struct vdi_kube_transport_ops *ops;
};
struct vdi_kube_exchange {
	struct vdi_kube_transport *transport;
};

/* Creates a transport. */
typedef vd_status (*vdi_kube_transport_new_fn)(const struct vdi_kube_transport_options *options,
					       struct vdi_kube_transport	      **ret_transport,
					       struct vd_error			       *reterr);

#endif
