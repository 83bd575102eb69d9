/* An etcd client over the scripted peer, in the simulator, and callbacks that record their arguments. For
 * tests of storage/etcd. */
#ifndef ETCD_CLIENT_FIXTURE_H
#define ETCD_CLIENT_FIXTURE_H

#include <vedette/etcd.h>

#include "actor_sim.h"
#include "etcd_client.h"
#include "rpc_script.h"
#include "wait.h"

#define ETCD_CLIENT_FIXTURE_ENDPOINTS_MAX 5

struct etcd_client_fixture {
	struct vd_env	      *env;
	struct rpc_script     *script;
	struct vd_etcd	      *client;	/* NULL when it was closed */
	struct vd_etcd_options options; /* the test may change them before etcd_client_fixture_open */
	const char	      *endpoints[ETCD_CLIENT_FIXTURE_ENDPOINTS_MAX];
	int64_t		       live; /* blocks before */
};

/* endpoint_count endpoints "e1:2379", "e2:2379", ... */
void etcd_client_fixture_init(struct etcd_client_fixture *fixture, uint64_t seed, size_t endpoint_count);
void etcd_client_fixture_open(struct etcd_client_fixture *fixture);
/* init and open with one endpoint and the default options. */
void etcd_client_fixture_start(struct etcd_client_fixture *fixture, uint64_t seed);
/* Closes the client when it is open; checks that nothing leaked. */
void etcd_client_fixture_fini(struct etcd_client_fixture *fixture);
/* Closes the client only. */
void etcd_client_fixture_close(struct etcd_client_fixture *fixture);

/* The arguments of any callback. */
struct etcd_result {
	unsigned	      calls;
	bool		      is_error; /* of the last call */
	struct vd_etcd_error  error;
	struct vd_etcd_header header;
	bool		      has_header;

	/* ranges; previous records of puts and deletes; results of transactions; ids, members, alarms */
	size_t		 kv_count;
	unsigned	 parts;	   /* streams: calls with last false */
	int64_t		 number;   /* count, deleted, TTL, hash, ... */
	int64_t		 second;   /* id, granted TTL, compacted revision, ... */
	bool		 flag;	   /* more, succeeded, enabled */
	char		 text[64]; /* first key, version, name */
	struct vd_env	*env;	   /* set by the test: then at_ns is filled */
	int64_t		 at_ns;
	struct vdi_wait *wait; /* set by the test: signalled by the last call of a callback */
};
void etcd_note_range(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		     const struct vd_range_result *result);
bool etcd_note_range_stream(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			    const struct vd_range_result *result, bool last);
void etcd_note_op(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		  const struct vd_op_result *result);
void etcd_note_txn(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		   const struct vd_txn_result *result);
void etcd_note_done(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header);
void etcd_note_lease(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		     const struct vd_lease_result *result);
void etcd_note_leases(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		      const int64_t *ids, size_t count);
void etcd_note_status(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		      const struct vd_etcd_status *status);
void etcd_note_alarms(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		      const struct vd_etcd_alarm *alarms, size_t count);
void etcd_note_hash(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		    uint32_t hash, vd_rev compacted, vd_rev hashed);
void etcd_note_snapshot(void *arg, const struct vd_etcd_error *error, struct vd_bytes part,
			uint64_t remaining_bytes, bool last);
void etcd_note_members(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		       const struct vd_etcd_member *members, size_t count);
void etcd_note_auth_status(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			   bool enabled, uint64_t revision);

/* A protobuf-c message as bytes, good until the next but seven calls. */
struct vd_bytes etcd_pack(const void *message);
/* Returns an answer that consists of a header with that revision; valid as the answer to any call. */
struct vd_bytes etcd_header_answer(vd_rev revision);

/* Starts a small range, or a put, of key "k". */
vd_status etcd_start_range(struct etcd_client_fixture *fixture, const struct vd_etcd_call *call,
			   struct etcd_result *result);
vd_status etcd_start_put(struct etcd_client_fixture *fixture, const struct vd_etcd_call *call,
			 struct etcd_result *result);
/* Runs the simulator until the callback was called so often; fails the test after a simulated hour. */
void etcd_expect_calls(struct etcd_client_fixture *fixture, struct etcd_result *result, unsigned calls);

/* Assertions about a result. */
#define assert_etcd_ok(result)                                                                               \
	do {                                                                                                 \
		if ((result)->is_error)                                                                      \
			fail_msg("error: %s: %s", vd_status_name((result)->error.error.code),                \
				 (result)->error.error.message);                                             \
	} while (0)
#define assert_etcd_error(result, status_, text_)                                                            \
	do {                                                                                                 \
		assert_true((result)->is_error);                                                             \
		assert_string_equal((result)->error.error.message, text_);                                   \
		assert_string_equal(vd_status_name((result)->error.error.code), vd_status_name(status_));    \
	} while (0)

#endif
