/* The watch suite: what a watch of Kubernetes objects means, whoever implements it (kubernetes/apiserver pkg/storage/testing/watcher_tests.go).
 *
 * A target says how to open a watch and how to write; events arrive as in vedette/watch.h. One env per test: simulated, where time passes when the
 * test says so, or real, where it waits for conditions.
 */
#ifndef WATCH_SUITE_H
#define WATCH_SUITE_H

#include <vedette/watch.h>

#include "vdtest.h"

struct watch_target {
	const char *name;
	/* A fresh, ready implementation for Pods with the field spec.nodeName. Its env is of this seed when it is simulated. */
	void *(*open)(uint64_t seed, const struct vd_env **ret_env);
	/* Checks that nothing leaks. All watches were closed. */
	void (*close)(void *target);
	/* Labels app and a node may be NULL. */
	vd_rev (*put)(void *target, const char *namespace_name, const char *name, const char *app, const char *node);
	vd_rev (*remove)(void *target, const char *namespace_name, const char *name);
	/* Something changes that is not of this resource. */
	vd_rev (*write_elsewhere)(void *target);
	vd_rev (*revision)(void *target);
	vd_status (*watch)(void *target, const struct vd_watch_options *options, const struct vd_watch_sink *sink, struct vd_watcher **ret_watcher);
	/* NULL: the env is simulated. Else it is real, and this returns when all that was written has been offered to all who watch, and those who have room
	 * have taken it; watches that were opened are open. */
	void (*settle)(void *target);
	/* Tests that this implementation does not pass, and why; ended by NULL. May be NULL. */
	const struct watch_suite_exception {
		const char *test, *why;
	} *exceptions;
};

/* All tests over one target; the number of failures. */
int watch_suite_run(const struct watch_target *target);

#endif
