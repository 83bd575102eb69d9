/* An etcd server without a network: the embedded store and the services in the simulator, and calls with
 * messages of protobuf-c, which also checks our own codec. One thread. */
#ifndef ETCD_SERVER_FIXTURE_H
#define ETCD_SERVER_FIXTURE_H

#include "auth.pb-c.h"
#include "etcdserver.h"
#include "kv.pb-c.h"
#include "rpc.pb-c.h"

struct etcd_server_fixture {
	struct vd_env	      *env;
	struct vd_store	      *store;
	struct vdi_etcdserver *server;
};

/* options may be NULL; its store is filled in. Memory only. */
void etcd_server_fixture_open(struct etcd_server_fixture	  *fixture,
			      const struct vdi_etcdserver_options *options);
void etcd_server_fixture_close(struct etcd_server_fixture *fixture);

/* One call and its results. */
struct etcd_server_call {
	struct vdi_serve_call base; /* first */
	struct vd_env	     *env;
	const char	     *token;	      /* metadata; NULL: none */
	const char	     *client_version; /* likewise */
	const char	     *has_leader;     /* likewise */
	const char	     *common_name;
	const char	     *peer;    /* NULL: "" */
	size_t		      room;    /* messages accepted before send returns VD_FULL; SIZE_MAX: all */
	vd_status	      failure; /* not VD_OK: send returns it and accepts nothing */

	char   **messages;
	size_t	*sizes;
	size_t	 count;
	size_t	 capacity;
	size_t	 taken; /* by etcd_server_call_next */
	bool	 is_finished;
	int	 code;
	char	 text[512];
	bool	 is_freed;
	unsigned wanted; /* receive calls not yet served */
};

void etcd_server_call_init(struct etcd_server_call *call, struct etcd_server_fixture *fixture);
/* Opens a stream: accept only. */
void etcd_server_call_open(struct etcd_server_call *call, struct etcd_server_fixture *fixture,
			   const char *method);
/* Gives it one message and runs until nothing is ready. NULL: half-close. */
void etcd_server_call_send(struct etcd_server_call *call, const ProtobufCMessage *message);
void etcd_server_call_send_bytes(struct etcd_server_call *call, const void *bytes, size_t size);
/* Room for so many more messages. */
void etcd_server_call_make_room(struct etcd_server_call *call, size_t room);
/* Opens a call with its one request; nothing has run yet. */
void etcd_server_call_post(struct etcd_server_call *call, struct etcd_server_fixture *fixture,
			   const char *method, const ProtobufCMessage *request);
/* The same for a client at that address, with that token; either may be NULL. */
void etcd_server_call_post_as(struct etcd_server_call *call, struct etcd_server_fixture *fixture,
			      const char *peer, const char *token, const char *method,
			      const ProtobufCMessage *request);
/* The transport ends it; its memory is given back. */
void etcd_server_call_end(struct etcd_server_call *call);

/* Makes a whole unary call. Returns the unpacked answer (free it with protobuf_c_message_free_unpacked), or
 * NULL if the call failed: see call. */
void *etcd_server_ask(struct etcd_server_fixture *fixture, struct etcd_server_call *call, const char *method,
		      const ProtobufCMessage *request, const ProtobufCMessageDescriptor *answer);
/* The same, which must fail with that message of the table. */
void etcd_server_ask_fails(struct etcd_server_fixture *fixture, const char *method,
			   const ProtobufCMessage *request, enum vd_etcd_code code);
/* The next message of a stream, NULL: none. */
Etcdserverpb__WatchResponse *etcd_server_call_next(struct etcd_server_call *call);

/* Makes a unary call and returns its answer; free it with ETCD_FREE. method without its package, answer as
 * protobuf-c names it. */
#define ETCD_ASK(fixture, method, request, answer)                                                           \
	etcd_server_ask(fixture, NULL, "/etcdserverpb." method, &(request)->base,                            \
			&etcdserverpb__##answer##__descriptor)
#define ETCD_FREE(answer) protobuf_c_message_free_unpacked((ProtobufCMessage *) (answer), NULL)

/* Setup for cmocka: *state is a fixture without options. The teardown checks for leaks. */
int etcd_server_setup(void **state);
int etcd_server_teardown(void **state);

/* Short ways. */
ProtobufCBinaryData etcd_bytes(const char *text);
void		    etcd_server_put(struct etcd_server_fixture *fixture, const char *key, const char *value);
void		    etcd_server_delete(struct etcd_server_fixture *fixture, const char *key);
Etcdserverpb__RangeResponse *etcd_server_range(struct etcd_server_fixture	*fixture,
					       const Etcdserverpb__RangeRequest *request);
/* lease 0: none. Answers the revision of the header. */
int64_t etcd_server_put_leased(struct etcd_server_fixture *fixture, const char *key, const char *value,
			       int64_t lease);
/* Raises or clears an alarm of the member; returns the number of alarms in the answer. */
size_t etcd_server_alarm(struct etcd_server_fixture *fixture, Etcdserverpb__AlarmRequest__AlarmAction action,
			 Etcdserverpb__AlarmType alarm);
void   etcd_server_grant(struct etcd_server_fixture *fixture, int64_t id, int64_t ttl, int64_t ttl_wanted);
void   etcd_server_compact(struct etcd_server_fixture *fixture,
			   int64_t		       revision); /* and waits until the records are gone */

#endif
