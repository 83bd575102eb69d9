/* Shared by the files of test_etcd_calls: the environment, and calls that wait for their result. */
#ifndef ETCD_CALLS_H
#define ETCD_CALLS_H

#include "etcd_client_fixture.h"
#include "vdtest.h"

extern struct vd_env  *calls_env;
extern struct vd_etcd *calls_client;
extern const char     *calls_endpoints[8];
extern size_t	       calls_endpoint_count;
extern bool	       calls_is_old; /* 3.4 */
extern bool	       calls_is_tls;

/* Fails the test if the call was not started, or has no result within a minute. */
void calls_wait_for(struct etcd_result *result, vd_status started);

/* Makes one call and waits for its end. */
#define CALL(result, start)                                                                                  \
	do {                                                                                                 \
		struct vdi_wait call_wait_;                                                                  \
		vdi_wait_init(&call_wait_, calls_env);                                                       \
		(result) = (struct etcd_result) { .wait = &call_wait_ };                                     \
		calls_wait_for(&(result), start);                                                            \
	} while (0)
#define CALL_OK(result, start)                                                                               \
	do {                                                                                                 \
		CALL(result, start);                                                                         \
		assert_etcd_ok(&(result));                                                                   \
	} while (0)

/* Options for the servers under test. */
struct vd_etcd_options calls_options(void);
struct vd_etcd	      *calls_open(const struct vd_etcd_options *options);
struct etcd_result     calls_put_value(struct vd_etcd *by, const char *key, struct vd_bytes value);
/* Returns the revision. */
vd_rev calls_put(const char *key, const char *value);
/* Deletes all keys. */
void calls_clear(void);

/* ---- Tests of etcd_calls_members.c ---- */

void e210_nobody_there(void **state);
void bad_files_and_certificates(void **state);
void e143_e168_e209_users(void **state);
void e205_a_member_dies(void **state);
void e201_a_member_freezes(void **state);
void e203_reject_old_cluster(void **state);

#endif
