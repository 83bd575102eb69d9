/* The state of the transport on libcurl, for kube_curl.c and kube_curl_setup.c. */
#ifndef VDI_KUBE_CURL_STATE_H
#define VDI_KUBE_CURL_STATE_H

#include <sys/queue.h>

#include "buffer.h"
#include "curl_library.h"
#include "kube_curl.h"
#include "timer.h"

/* Sockets that are remembered, so that a dead connection can be shut down; others are only closed by
 * libcurl. */
#define VDI_KUBE_SOCKETS_MAX 256
/* Beyond this number of exchanges they connect one at a time. */
#define VDI_KUBE_CONNECT_AT_ONCE 64

struct vdi_curl_exchange;

struct vdi_curl_transport {
	struct vdi_kube_transport transport;

	/* Fixed at creation. */
	const struct vd_env *env;
	char		    *server, *proxy_url, *user_agent;
	char		    *socket_path; /* NULL: server is connected to */
	bool		     is_loopback; /* the server is on this machine: no proxy of the environment */
	vd_mono (*run)(void *arg);
	void		*arg;
	CURLM		*multi;
	struct vd_actor *actor;

	/* Any thread. */
	_Atomic bool is_woken, is_waiting;

	/* Actor. */
	struct vd_bytes ca, cert, key; /* owned */
	char	       *server_name;   /* NULL: the URL's host */
	bool		insecure;
	LIST_HEAD(, vdi_curl_exchange) exchanges;
	TAILQ_HEAD(, vdi_curl_exchange) todo;	 /* to resume or to free */
	TAILQ_HEAD(, vdi_curl_exchange) waiting; /* to be added to libcurl */
	size_t		      todo_count, paused_count, connecting_count, connected_count;
	struct vdi_timer_heap timers;
	vd_mono		      due; /* of run */
	int		      sockets[VDI_KUBE_SOCKETS_MAX];
	size_t		      socket_count;
	bool		      has_slept, is_closed;
	void (*closed)(void *arg);
	void *closed_arg;
};

struct vdi_curl_exchange {
	struct vdi_kube_exchange   exchange;
	struct vdi_curl_transport *owner;
	struct vdi_kube_handler	   handler;
	CURL			  *easy;
	struct curl_slist	  *headers, *connect_to;
	LIST_ENTRY(vdi_curl_exchange) node;
	TAILQ_ENTRY(vdi_curl_exchange) todo_node, waiting_node;
	struct vdi_timer  timer;
	vd_dur		  timeout, silence_max;
	vd_mono		  deadline, heard;
	size_t		  head_size;
	struct vdi_buffer content_type, warning, location;
	struct vdi_buffer held;	   /* bytes that the handler refused */
	vd_status	  failure; /* why a function of libcurl was told to stop */
	CURLcode	  result;
	bool		  is_in_todo, is_waiting, is_added, is_connected, has_head, is_canceled, is_resumed;
	bool		  is_paused; /* libcurl does not read it */
	bool		  is_ended;  /* result is known; held is not empty */
	char		  reason[CURL_ERROR_SIZE];
};

/* ---- kube_curl_setup.c ---- */

/* Copies the options and checks the URL. */
VDI_MUST_USE vd_status vdi_curl_configure_server(struct vdi_curl_transport		 *transport,
						 const struct vdi_kube_transport_options *options,
						 struct vd_error			 *reterr);
/* The transport's function configure. */
vd_status vdi_curl_configure_tls(struct vdi_kube_transport *base, const struct vdi_kube_tls *tls,
				 struct vd_error *reterr);
/* Sets all options of the exchange's handle but its functions. */
VDI_MUST_USE vd_status vdi_curl_set_up(struct vdi_curl_exchange		  *exchange,
				       const struct vdi_kube_http_request *request, struct vd_error *reterr);
/* Returns true if a paused exchange may stop this one, because both have the same connection. */
bool vdi_curl_is_stopped(const struct vdi_curl_exchange *exchange);
/* Shuts the exchange's connection down if none of its exchanges received anything since `since`. */
void vdi_curl_drop_dead(struct vdi_curl_exchange *exchange, vd_mono since);
/* Writes the Location of a redirect for messages: printable, and without its query, which may have
 * secrets. */
void vdi_curl_set_location(char location[VDI_KUBE_LOCATION_SIZE], struct vd_bytes value);

#endif
