/* The conformance suite of struct vd_store: each implementation runs it with a factory, with real threads and
 * in the simulator. Test names begin with the rules that they test (etcd semantics, E-3xx to E-7xx). */
#ifndef STORE_SUITE_H
#define STORE_SUITE_H

#include "actor_sim.h"
#include "lock.h"
#include "vdtest.h"
#include "wait.h"

#include <vedette/store.h>

struct store_suite_factory {
	const char *name;
	/* Opens an empty store at revision 1 that does not compact by itself. */
	vd_status (*open)(void *arg, const struct vd_env *env, struct vd_store **ret_store);
	/* Closes the store and opens it again with its durable data; NULL: the store is not durable. */
	vd_status (*reopen)(void *arg, const struct vd_env *env, struct vd_store **store);
	/* Removes the data of a closed store. NULL: nothing to remove. */
	void (*clean)(void *arg);
	void *arg;

	/* A remote store: its answers take a moment, and a watch may receive several revisions in one batch
	 * or in several. */
	bool is_remote;
	/* Values are encrypted: the store cannot compare them. */
	bool no_value_compares;
	/* Only with threads, or only in the simulator. */
	bool no_simulator, no_threads;
	/* Closes the store and what is behind it. NULL: vd_store_close_wait. */
	void (*close)(void *arg, struct vd_store *store);
	/* It cannot prove progress, and reports so. */
	bool no_progress;
	/* Tests that this store cannot pass, with the reasons, which are printed; terminated by a NULL name.
	 * NULL: none. */
	const struct store_suite_exception *exceptions;
};

struct store_suite_exception {
	const char *test;
	const char *why;
};

/* The fixture of one test. */
struct store_fixture {
	const struct store_suite_factory *factory;
	struct vd_env			 *env;
	bool				  simulated;
	uint64_t			  seed;
	struct vd_store			 *store;
	int64_t				  alloc_live;
};

/* Runs all suites over the factory: with threads, and in the simulator with a few seeds. Returns the number
 * of failed tests. */
int store_suite_run(const struct store_suite_factory *factory);

/* Parts of the suite; used by store_suite_run. */
extern const struct CMUnitTest store_suite_kv_tests[];
extern const size_t	       store_suite_kv_test_count;
extern const struct CMUnitTest store_suite_watch_tests[];
extern const size_t	       store_suite_watch_test_count;
extern const struct CMUnitTest store_suite_lease_tests[];
extern const size_t	       store_suite_lease_test_count;
extern const struct CMUnitTest store_suite_model_tests[];
extern const size_t	       store_suite_model_test_count;

/* ---- For tests: each function waits for its result and checks only what its name says ---- */

#define K(text) vd_bytes_of(text)
#define ZERO_END ((struct vd_bytes) { "", 1 })

/* Puts a key, which must succeed. Returns the revision. */
vd_rev put(struct store_fixture *f, const char *key, const char *value);
/* Repeats a put, with many calls in flight, for tests that need revisions but not each answer; so threads
 * need not switch for each put. */
void	  put_many(struct store_fixture *f, const char *key, const char *value, unsigned count);
vd_rev	  delete_range(struct store_fixture *f, const char *key, const char *end, int64_t *ret_deleted);
vd_status compact(struct store_fixture *f, vd_rev revision);
vd_rev	  current(struct store_fixture *f);

/* A copy of a range's answer; holds references. */
struct range_answer {
	vd_status	status;
	struct vd_error error;
	vd_rev		revision;
	int64_t		count;
	bool		more;
	struct vd_kv   *kvs[64];
	size_t		kv_count; /* all; only the first 64 are kept */
};
void range(struct store_fixture *f, const struct vd_range_request *request, struct range_answer *ret_answer);
void range_answer_fini(struct range_answer *answer);
/* Returns the records of [key, end) at revision as text, "a=1 b=2", in a static buffer. Fails the test on an
 * error. */
const char *text_at(struct store_fixture *f, const char *key, const char *end, vd_rev revision);
/* Returns the status of such a range. */
vd_status   status_at(struct store_fixture *f, const char *key, vd_rev revision);
const char *kvs_text(struct vd_kv *const *kvs, size_t count);

/* The answer of a transaction, flattened depth first (a nested transaction, then its results). */
struct op_answer {
	enum vd_op_kind kind;
	vd_rev		revision;
	int64_t		deleted;
	bool		succeeded; /* TXN */
	int64_t		count;
	bool		more;
	char		text[256]; /* previous records, or those of the range */
};
struct txn_answer {
	vd_status	 status;
	struct vd_error	 error;
	vd_rev		 revision;
	bool		 succeeded;
	struct op_answer ops[32];
	size_t		 op_count;
};
void txn(struct store_fixture *f, const struct vd_txn_request *request, struct txn_answer *ret_answer);
/* Sends one list of operations without compares. */
void txn_ops(struct store_fixture *f, const struct vd_op *ops, size_t count, struct txn_answer *ret_answer);

struct lease_answer {
	vd_status status;
	int64_t	  id;
	int64_t	  ttl_s;
	int64_t	  granted_ttl_s;
	vd_rev	  revision;
	size_t	  key_count;
	char	  keys[256];
};
void	  lease_grant(struct store_fixture *f, int64_t id, int64_t ttl_s, struct lease_answer *ret_answer);
void	  lease_keep_alive(struct store_fixture *f, int64_t id, struct lease_answer *ret_answer);
void	  lease_time_to_live(struct store_fixture *f, int64_t id, bool keys, struct lease_answer *ret_answer);
vd_status lease_revoke(struct store_fixture *f, int64_t id, vd_rev *ret_revision);

/* A watch with blocking helpers. */
struct watcher {
	struct store_fixture  *f;
	struct vd_store_watch *watch;
	struct vdi_lock	       lock;
	struct vdi_condition   changed;
	bool		       is_ready;    /* under lock */
	unsigned	       ready_count; /* under lock */
	struct vd_store_batch  batch;
	struct vd_error	       error;
};
void watch_open(struct store_fixture *f, struct watcher *watcher,
		const struct vd_store_watch_request *request);
/* Watches [key, end) from start, with previous records. */
void watch_range(struct store_fixture *f, struct watcher *watcher, const char *key, const char *end,
		 vd_rev start);
void watch_close(struct watcher *watcher);
/* Calls vd_store_watch_next until it returns another status than VD_AGAIN. */
vd_status watch_wait(struct watcher *watcher, size_t event_count_max);
/* Returns the next batch as text: "5: +a=1 a=2(1) -b(7)" for a create, an update with its previous value, and
 * a delete; "progress 5"; or the name of the status. */
const char *watch_text(struct watcher *watcher, size_t event_count_max);
/* Expects this next batch; for a remote store, the next batches together. */
void expect_watch(struct watcher *watcher, size_t event_count_max, const char *expected);
/* Calls vd_store_watch_progress. Returns false if the store does not support it, which is then the status
 * that it must return. */
bool ask_progress(struct watcher *watcher);
/* Returns true if the watch has nothing to deliver now. */
bool watch_is_quiet(struct watcher *watcher);

/* Runs the simulator, or lets the threads run, until the condition holds. */
void wait_until(struct store_fixture *f, bool (*condition)(void *arg), void *arg);

#endif
