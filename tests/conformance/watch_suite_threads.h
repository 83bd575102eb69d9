/* The watch suite over the Cacher on any store, with real threads and the real clock. */
#ifndef WATCH_SUITE_THREADS_H
#define WATCH_SUITE_THREADS_H

#include <vedette/store.h>

#include "watch_suite.h"

/* Opens the store for one test. It may contain data of other tests, but no one else writes meanwhile. If this
 * fails, the suite fails. */
typedef vd_status (*watch_suite_open_fn)(const struct vd_env *env, struct vd_store **ret_store);

int watch_suite_run_threads(const char *name, watch_suite_open_fn open,
			    const struct watch_suite_exception *exceptions);

#endif
