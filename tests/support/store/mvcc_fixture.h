/* An embedded store in memory, in the simulator, and calls that record their answers. Every error fails the
 * test. */
#ifndef MVCC_FIXTURE_H
#define MVCC_FIXTURE_H

#include <vedette/store.h>

#include "mvcc_read.h"
#include "mvcc_store.h"
#include "vdtest.h"

#define K(text) vd_bytes_of(text)
#define ZERO_END ((struct vd_bytes) { "", 1 })

struct vd_env	*mvcc_env_new(void);
struct vd_store *mvcc_store_new(struct vd_env *env, const struct vd_mvcc_options *options);

struct mvcc_call {
	int	  answers;
	vd_status status;
	vd_rev	  revision;
	bool	  succeeded;
};

void	  mvcc_got_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		       const struct vd_error *error);
void	  mvcc_got_done(void *arg, vd_status status, vd_rev revision, const struct vd_error *error);
void	  mvcc_got_lease(void *arg, vd_status status, const struct vd_lease_result *result,
			 const struct vd_error *error);
vd_status mvcc_submit_put(struct vd_store *store, const char *key, const char *value, struct mvcc_call *call);
void	  mvcc_put(struct vd_store *store, const char *key, const char *value);

/* All records as text. */
struct mvcc_text {
	char   bytes[2048];
	size_t size;
	vd_rev revision;
};

void		       mvcc_got_text(void *arg, vd_status status, const struct vd_range_result *result,
				     const struct vd_error *error);
struct mvcc_text       mvcc_all_text(struct vd_store *store, vd_rev revision);
struct vd_store_status mvcc_status_of(struct vd_store *store);
void		       mvcc_count_ready(void *arg);

#endif
