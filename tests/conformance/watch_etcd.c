/* The watch suite over the Cacher on a real etcd (under with-etcd.sh): one member or more, 3.7 or 3.4. Each
 * test uses a prefix of its own. */
#include <vedette/etcd.h>

#include "rpc_etcd_options.h"
#include "watch_suite_threads.h"

#define ENDPOINTS_MAX 16
#define NO_STREAMED_LISTS                                                                                    \
	"a watch with initial events and a bookmark behind them needs progress on demand, which cannot be "  \
	"relied on before 3.4.31 (R-173)"

static char  *endpoints[ENDPOINTS_MAX];
static size_t endpoint_count;

static vd_status open_etcd(const struct vd_env *env, struct vd_store **ret_store)
{
	struct vd_etcd_options	     etcd = etcd_options_under_test();
	struct vd_etcd_store_options options = VD_ETCD_STORE_OPTIONS_INIT;
	struct vd_error		     error = { 0 };
	vd_status		     status;

	etcd.endpoints = (const char *const *) endpoints;
	etcd.endpoint_count = endpoint_count;
	options.etcd = &etcd;
	options.compaction_interval = (vd_dur) { 0 };
	/* The machine may be busy. */
	options.call_timeout = options.start_timeout = VD_SECONDS(300);
	status = vd_store_open_etcd(env, &options, ret_store, &error);
	if (status != VD_OK)
		print_message("%s\n", error.message);
	return status;
}

int main(int argc, char **argv)
{
	static const struct watch_suite_exception of_34[] = {
		{ "t066_t067_t123_t132_initial_events", NO_STREAMED_LISTS },
		{ "t068_r524_the_end_bookmark_knows_of_writes_elsewhere", NO_STREAMED_LISTS },
		{ "t069_r481_one_name", NO_STREAMED_LISTS },
		{ NULL, NULL },
	};
	const char *version = getenv("ETCD_VERSION");
	char	   *list = getenv("ETCD_ENDPOINTS");
	char	    name[64];

	if (version == NULL || list == NULL) {
		(void) fprintf(stderr, "run it under tests/integration/with-etcd.sh\n");
		return 77;
	}
	for (char *rest = NULL, *one = strtok_r(list, ",", &rest); one && endpoint_count < ENDPOINTS_MAX;
	     one = strtok_r(NULL, ",", &rest))
		endpoints[endpoint_count++] = one;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	(void) snprintf(name, sizeof name, "cacher on etcd %s, %zu endpoints", version, endpoint_count);
	return watch_suite_run_threads(name, open_etcd, strcmp(version, "3.4") == 0 ? of_34 : NULL);
}
