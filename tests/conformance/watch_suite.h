/* The watch suite: what a watch of Kubernetes objects means, whoever implements it (kubernetes/apiserver pkg/storage/testing/watcher_tests.go).
 *
 * A target says how to open a watch and how to write; events arrive as in vedette/watch.h. One simulated env per test.
 */
#ifndef WATCH_SUITE_H
#define WATCH_SUITE_H

#include <vedette/watch.h>

#include "vdtest.h"

struct watch_target {
	const char *name;
	/* A fresh, ready implementation for Pods with the field spec.nodeName, in a simulated env of this seed. */
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
};

/* All tests over one target; the number of failures. */
int watch_suite_run(const struct watch_target *target);

#endif
