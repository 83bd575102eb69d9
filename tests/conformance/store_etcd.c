/* The store suite over a real etcd (one member, under with-etcd.sh), which is emptied and restarted for each
 * test.
 *
 * The table below lists the differences of etcd 3.4 as in Debian (3.4.23) from 3.7; docs/SEMANTICS.md has the
 * same table. The simulator cannot run a process, so tests that need its clock (expiring leases) run over the
 * embedded store only; the integration tests cover etcd's own clock.
 */
#include "control.h"
#include "rpc_etcd_options.h"
#include "store_suite.h"

#include <vedette/etcd.h>

#define NO_PROGRESS                                                                                          \
	"progress on demand cannot be relied on before 3.4.31, so the store does not offer it (R-173)"

static void ask(const char *command)
{
	char answer[512];

	if (!test_control(command, answer, sizeof answer))
		print_message("%s: %s\n", command, answer);
}

static vd_status connect_etcd(const struct vd_env *env, struct vd_store **ret_store)
{
	struct vd_etcd_options	     etcd = etcd_options_under_test();
	struct vd_etcd_store_options options = VD_ETCD_STORE_OPTIONS_INIT;
	const char		    *endpoint = getenv("ETCD_ENDPOINTS");
	struct vd_error		     error = { 0 };
	vd_status		     status;

	etcd.endpoints = &endpoint;
	etcd.endpoint_count = 1;
	options.etcd = &etcd;
	options.compaction_interval = (vd_dur) { 0 };
	status = vd_store_open_etcd(env, &options, ret_store, &error);
	if (status != VD_OK)
		print_message("%s\n", error.message);
	return status;
}

static vd_status open_empty(void *arg, const struct vd_env *env, struct vd_store **ret_store)
{
	(void) arg;
	ask("kill 0");
	ask("wipe 0");
	ask("start 0");
	ask("wait");
	return connect_etcd(env, ret_store);
}

/* Restarts etcd. */
static vd_status reopen(void *arg, const struct vd_env *env, struct vd_store **store)
{
	(void) arg;
	*store = vd_store_close_wait(*store);
	ask("restart 0");
	ask("wait");
	return connect_etcd(env, store);
}

int main(int argc, char **argv)
{
	const char				 *version = getenv("ETCD_VERSION");
	static const struct store_suite_exception of_37[] = {
		{ NULL, NULL },
	};
	/* Debian's 3.4.23. */
	static const struct store_suite_exception of_34[] = {
		{ "e406_compaction_keeps_what_it_must",
		  "a delete at the compacted revision is not delivered (etcd bug 18089, mended in 3.4.36)" },
		{ "e335_a_start_at_the_compaction_works", "the same bug" },
		{ "e343_no_previous_record_at_the_compaction", "the same bug" },
		{ "e440_put_is_checked_in_order",
		  "a put that ignores the value looks for its key before its lease" },
		{ "e317_progress_when_caught_up", NO_PROGRESS },
		{ "e334_an_idle_watch_gets_progress_beyond_the_compaction", NO_PROGRESS },
		{ "e340_progress_for_a_future_start_waits", NO_PROGRESS },
		{ "e355_a_progress_follows_all_events", NO_PROGRESS },
		{ NULL, NULL },
	};
	struct store_suite_factory factory = {
		.open = open_empty, .reopen = reopen, .is_remote = true, .no_simulator = true
	};
	char name[64];

	if (version == NULL || getenv("CONTROL") == NULL) {
		(void) fprintf(stderr, "run it under tests/integration/with-etcd.sh\n");
		return 77;
	}
	(void) snprintf(name, sizeof name, "etcd %s", version);
	factory.name = name;
	if (argc > 1) /* a pattern: only those tests */
		cmocka_set_test_filter(argv[1]);
	factory.no_progress = strcmp(version, "3.4") == 0;
	factory.exceptions = factory.no_progress ? of_34 : of_37;
	return store_suite_run(&factory);
}
