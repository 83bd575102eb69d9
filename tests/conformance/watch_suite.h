/* The watch suite: the guarantees of a watch of Kubernetes objects, over any store (kubernetes/apiserver
 * pkg/storage/testing/watcher_tests.go).
 *
 * A target makes a cacher and writes; events arrive as in vedette/watch.h. One env per test: simulated, where
 * time passes when the test says so, or real, where the test waits for conditions.
 */
#ifndef WATCH_SUITE_H
#define WATCH_SUITE_H

#include <vedette/cacher.h>

#include "vdtest.h"

/* The env and the cacher of a test's watches. */
struct watch_place {
	const struct vd_env *env;
	struct vd_store	    *store;
	struct vd_cacher    *cacher;
};

struct watch_target {
	const char *name;
	/* Makes a fresh, ready cacher for Pods with the field spec.nodeName. seed: for a simulated env. */
	void *(*open)(uint64_t seed, struct watch_place *ret_place);
	/* Checks for leaks. All watches are closed before. */
	void (*close)(void *target);
	/* The label app and the node may be NULL. */
	vd_rev (*put)(void *target, const char *namespace_name, const char *name, const char *app,
		      const char *node);
	vd_rev (*remove)(void *target, const char *namespace_name, const char *name);
	/* NULL: the env is simulated. Otherwise it is real; returns when all writes have been offered to all
	 * watches, sinks with room have accepted them, and new watches are open. */
	void (*settle)(void *target);
	/* Tests that this implementation does not pass, with reasons; terminated by NULL. May be NULL. */
	const struct watch_suite_exception {
		const char *test, *why;
	} * exceptions;
};

/* Runs all tests over one target. Returns the number of failures. */
int watch_suite_run(const struct watch_target *target);

#endif
