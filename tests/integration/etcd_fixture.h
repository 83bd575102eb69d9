/* Shared by the tests of the etcd client over real connections: commands to their peer, watches with blocking
 * helpers, single calls. Under `peers etcd-fake` (the test plays the server) or `peers etcd-run` (a real
 * one). Every wait is bounded: a test fails, it never hangs. */
#ifndef ETCD_FIXTURE_H
#define ETCD_FIXTURE_H

#include <vedette/etcd.h>

#include "env.h" /* before the variable env */
#include "lock.h"
#include "vdtest.h"

/* Valid from fixture_begin to fixture_end, cmocka's setup and teardown of a group. Real threads. */
extern struct vd_env *env;
int		      fixture_begin(void **state);
int		      fixture_end(void **state);

/* Sends a command to $CONTROL, which must not refuse it; the answer is valid until the next call. */
const char *ask(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Opens a client of these endpoints (separated by commas; NULL: $ETCD_ENDPOINTS). options: other options, or
 * NULL. */
struct vd_etcd *fixture_open(const char *endpoints, const struct vd_etcd_options *change);

/* ---- The server's side, with `peers etcd-fake` ---- */

/* Waits for a call of that method that no one has taken yet; returns its number. metadata, if wanted: JSON,
 * valid until the next ask. */
int expect_call(const char *method, const char **ret_metadata);
/* Waits for the next message of the call, which must be this JSON ("half-closed" and "canceled" are actions
 * of the client). */
void expect_message(int call, const char *wanted);

/* ---- A watch and its reader ---- */

struct watcher {
	struct vd_etcd_watch	     *watch;
	struct vdi_lock		      lock;
	struct vdi_condition	      changed;
	bool			      is_ready; /* under lock */
	struct vd_etcd_watch_response response; /* of the last next */
	struct vd_etcd_error	      error;
};

/* request: its ready is set here. */
void watcher_open(struct watcher *watcher, struct vd_etcd *client, struct vd_etcd_watch_request request);
void watcher_close(struct watcher *watcher);
/* Waits for the next response, or the end. */
vd_status watcher_next(struct watcher *watcher);
/* Checks that there is nothing now; does not wait. */
void watcher_expect_nothing(struct watcher *watcher);
/* The next response has exactly the events of these revisions, terminated by 0. */
void watcher_expect_events(struct watcher *watcher, const vd_rev *revisions);
#define WATCHER_EXPECT_EVENTS(watcher, ...)                                                                  \
	watcher_expect_events(watcher, (const vd_rev[]) { __VA_ARGS__, 0 })
void watcher_expect_progress(struct watcher *watcher, vd_rev revision);
void watcher_expect_end(struct watcher *watcher, vd_status status);

/* ---- Single calls with waits ---- */

struct call_result {
	vd_status	     status;
	struct vd_etcd_error error;
	vd_rev		     revision;
	int64_t		     count;
};

struct pending_call {
	struct vdi_lock	     lock;
	struct vdi_condition changed;
	bool		     is_done; /* under lock */
	struct call_result   result;
};

void pending_range(struct pending_call *pending, struct vd_etcd *client, const char *key, vd_dur timeout);
struct call_result pending_wait(struct pending_call *pending);
struct call_result call_range(struct vd_etcd *client, const char *key, vd_dur timeout);

#endif
