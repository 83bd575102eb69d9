/* A watch server that a test scripts message by message, and a reader of watches: over rpc_script.h, in the
 * simulator.
 *
 * Messages are encoded and decoded by the generated protobuf code, not by the client's own.
 */
#ifndef ETCD_WATCH_PEER_H
#define ETCD_WATCH_PEER_H

#include <vedette/etcd.h>

#include "rpc_script.h"

#define WATCH_METHOD "/etcdserverpb.Watch/Watch"

/* ---- Client, network, env ---- */

struct watch_world {
	struct vd_env	  *env;
	struct rpc_script *script;
	struct vd_etcd	  *client;
};

/* One endpoint. buffer_bytes 0: the default. */
struct watch_world watch_world_new(uint64_t seed, size_t buffer_bytes);
/* With a user, whose tokens the test hands out. */
struct watch_world watch_world_new_for(uint64_t seed, size_t buffer_bytes, const char *user,
				       const char *password);
/* Closes the client unless it was closed (client NULL). */
void watch_world_free(struct watch_world *world);
void watch_world_run(struct watch_world *world);
/* The next stream that reached the peer. */
struct rpc_script_call *watch_world_stream(struct watch_world *world);
/* Checks that no stream is opened within a simulated minute. */
void watch_world_no_stream(struct watch_world *world);

/* ---- Requests ---- */

enum watch_request_kind { WATCH_CREATE = 1, WATCH_CANCEL, WATCH_PROGRESS };

struct watch_request {
	enum watch_request_kind kind;
	char			key[128];
	char			range_end[128];
	size_t			range_end_size;
	vd_rev			start_revision;
	int64_t			watch_id;
	bool			previous, progress, fragment, no_put, no_delete;
};
/* Fails the test when it is none. */
struct watch_request watch_request_read(struct vd_bytes message);
/* The next one on the stream, which must be of that kind. */
struct watch_request watch_expect(struct rpc_script_call *stream, enum watch_request_kind kind);
/* Checks that nothing more was sent. */
void watch_expect_nothing(struct watch_world *world, struct rpc_script_call *stream);

/* ---- Answers ---- */

struct watch_event {
	const char *key;
	vd_rev	    mod_rev;
	vd_rev	    create_rev; /* 0: mod_rev, a create */
	bool	    is_delete;
	size_t	    value_size;	  /* of 'v's; 0: the value is "v<mod_rev>" */
	bool	    has_previous; /* value "p" at mod_rev - 1 */
};

struct watch_answer {
	int64_t			  id;
	vd_rev			  revision; /* of the header; 0: no header at all */
	bool			  created, canceled, fragment;
	vd_rev			  compact_revision;
	const char		 *reason;
	const struct watch_event *events;
	size_t			  event_count;
};
void watch_answer(struct rpc_script_call *stream, const struct watch_answer *answer);
void watch_created(struct rpc_script_call *stream, int64_t id, vd_rev revision);
void watch_put(struct rpc_script_call *stream, int64_t id, const char *key, vd_rev mod_rev);
void watch_progress(struct rpc_script_call *stream, int64_t id, vd_rev revision);
void watch_canceled(struct rpc_script_call *stream, int64_t id, vd_rev revision, const char *reason);
void watch_compacted(struct rpc_script_call *stream, int64_t id, vd_rev compacted);

/* ---- Readers ---- */

struct watch_reader {
	struct vd_etcd_watch *watch;
	unsigned	      ready; /* calls */
};

/* On key, from revision. More: fill request and use watch_reader_open_request. */
void watch_reader_open(struct watch_world *world, struct watch_reader *reader, const char *key,
		       vd_rev revision);
void watch_reader_open_request(struct watch_world *world, struct watch_reader *reader,
			       struct vd_etcd_watch_request request);
void watch_reader_close(struct watch_reader *reader);
/* Everything that can be read now, as text: "+5" created, "7" and "7,8" events of one response by mod_rev
 * ("-7" a delete), "~9" progress, "!expired" the end; blanks between. */
const char *watch_reader_text(struct watch_world *world, struct watch_reader *reader);
/* The end that the watch must have reached. */
struct vd_etcd_error watch_reader_end(struct watch_world *world, struct watch_reader *reader);

#define watch_reader_expect(world, reader, text) assert_string_equal(watch_reader_text(world, reader), text)

#endif
