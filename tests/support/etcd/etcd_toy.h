/* A toy etcd over rpc_script.h, in the simulator: it has one real key (the compactor's), counts revisions,
 * and answers as the test says. For the layers above the client; the client's own tests script single
 * messages. Messages are encoded and decoded by the generated protobuf code. */
#ifndef ETCD_TOY_H
#define ETCD_TOY_H

#include <vedette/etcd.h>

#include "rpc_script.h"

#define TOY_ENDPOINTS_MAX 4
#define TOY_WATCHES_MAX 32
#define TOY_TIMES_MAX 64

struct toy_watch {
	struct rpc_script_call *call;
	char			key[64];
	vd_rev			start;
	bool			is_open;
	bool			require_leader;
};

struct etcd_toy {
	struct vd_env	  *env;
	struct rpc_script *script;
	const char	  *endpoints[TOY_ENDPOINTS_MAX];
	size_t		   endpoint_count;

	/* Its answers; the test may change them at any time. */
	vd_rev	    revision;
	vd_rev	    compacted;
	const char *versions[TOY_ENDPOINTS_MAX]; /* NULL: the call fails for good with code and words below */
	int64_t	    size_bytes;
	int	    fail_code; /* of every call but Status; 0: none */
	const char *fail_text;
	bool	    is_silent; /* calls are left unanswered */
	bool	    has_stream;
	size_t	    stream_parts, stream_part_len; /* keys k000000, k000001, ... */
	bool	    stream_more;		   /* told with the last part */
	bool	    stream_gaps;		   /* an empty part precedes each part but the first */
	bool	    stream_trailer;		   /* an empty part follows, which alone has more */
	int	    stream_end_code;
	const char *stream_end_text;
	bool	    has_progress; /* answers progress requests */

	/* Version of the compactor's key; 0: absent. */
	int64_t key_version;
	vd_rev	key_mod;
	char	key_value[32];

	/* Numbers of requests received. */
	unsigned		ranges, txns, compactions, streams, progress_requests;
	unsigned		parts_sent;
	struct rpc_script_call *progress_call; /* of the last progress request */
	vd_mono			status_times[TOY_ENDPOINTS_MAX][TOY_TIMES_MAX];
	unsigned		statuses[TOY_ENDPOINTS_MAX];
	struct toy_watch	watches[TOY_WATCHES_MAX];
	size_t			watch_count;
};

/* Stands at revision 1, runs 3.6.1 everywhere. count endpoints: "http://e0:2379", ... */
void etcd_toy_init(struct etcd_toy *toy, struct vd_env *env, uint64_t seed, size_t endpoint_count);
/* After the client was closed. */
void etcd_toy_fini(struct etcd_toy *toy);
/* A client of it, closed by its owner. Fails the test when it cannot be made; NULL only with
 * vdi_alloc_fail_nth. */
struct vd_etcd *etcd_toy_client(struct etcd_toy *toy);

/* Simulates a write by another client: the next revision. */
vd_rev etcd_toy_write(struct etcd_toy *toy);
/* Simulates that another client claims a round of compaction: the key's version increases, its value becomes
 * text, and watches of the key get the event. */
void etcd_toy_claim(struct etcd_toy *toy, const char *text);

/* The newest open watch of that key. */
struct toy_watch *etcd_toy_watch(struct etcd_toy *toy, const char *key);
/* Sends one response with a put of "key" at each of the revisions (equal ones: one transaction); the header
 * has the newest. */
void etcd_toy_send(struct etcd_toy *toy, struct toy_watch *watch, const vd_rev *revisions, size_t count);
/* Progress for every watch of the stream. */
void etcd_toy_progress(struct etcd_toy *toy, struct toy_watch *watch, vd_rev revision);
void etcd_toy_expire(struct etcd_toy *toy, struct toy_watch *watch, vd_rev compacted);

#endif
