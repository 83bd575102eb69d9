/* The store suite over a store that encrypts the values of some keys, around the embedded store.
 * rules: R-145 */
#include "store_suite.h"

#include <vedette/encryption.h>

static vd_status open_with(const struct vd_env *env, struct vd_bytes prefix, struct vd_store **ret_store)
{
	struct vd_mvcc_options	  options = VD_MVCC_OPTIONS_INIT;
	struct vd_encryption_key  keys[] = { { K("new"), K("0123456789abcdef0123456789abcdef") },
					     { K("old"), K("fedcba9876543210") } };
	struct vd_encryption_rule rule = { .prefix = prefix, .keys = keys, .key_count = 2 };
	struct vd_store		 *inner;
	vd_status		  status;

	options.history_window = (vd_dur) { 0 };
	options.progress_interval = VD_SECONDS(1);
	VDI_TRY(vd_store_open_mvcc(env, &options, &inner, NULL));
	status = vd_store_open_encrypted(env, inner, &rule, 1, ret_store, NULL);
	if (status != VD_OK)
		vd_store_close_wait(inner);
	return status;
}

static vd_status open_all(void *arg, const struct vd_env *env, struct vd_store **ret_store)
{
	(void) arg;
	return open_with(env, VD_BYTES_NONE, ret_store);
}

static vd_status open_some(void *arg, const struct vd_env *env, struct vd_store **ret_store)
{
	(void) arg;
	return open_with(env, K("b"), ret_store);
}

int main(void)
{
	static const struct store_suite_factory all = { .name = "every value encrypted",
							.open = open_all,
							.no_value_compares = true };
	static const struct store_suite_factory some = { .name = "some values encrypted",
							 .open = open_some,
							 .no_value_compares = true };

	return store_suite_run(&all) + store_suite_run(&some);
}
