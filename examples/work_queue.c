/* A work queue without a cluster. A worker processes keys; one key fails twice and is tried again after a
 * growing delay. Finished keys go to a second queue, from which the main thread takes them. */
#include <stdio.h>
#include <vedette/work_queue.h>

static void reconcile(void *arg, struct vd_work *work, struct vd_bytes key)
{
	struct vd_work_queue *finished = arg;
	bool fails = vd_bytes_equal(key, vd_bytes_of("default/flaky")) && vd_work_num_requeues(work) < 2;

	/* A controller that waits for an answer of a server calls vd_work_finish later, in its callback. */
	if (fails || vd_work_queue_add(finished, key) != VD_OK)
		vd_work_finish(work, VD_WORK_RETRY, VD_MS(0));
	else
		vd_work_finish(work, VD_WORK_DONE, VD_MS(0));
}

/* Adds keys, one of them twice before a worker takes it, and starts the workers. */
static vd_status start(struct vd_work_queue *queue, struct vd_work_queue *finished, struct vd_error *error)
{
	static const char *const keys[] = { "default/a", "default/flaky", "default/a", "kube-system/b" };
	struct vd_worker_options options = VD_WORKER_OPTIONS_INIT;
	unsigned		 i;
	vd_status		 status;

	for (i = 0; i < sizeof keys / sizeof *keys; i++) {
		status = vd_work_queue_add(queue, vd_bytes_of(keys[i]));
		if (status != VD_OK)
			return vd_error_set(error, status, "%s: %s", keys[i], vd_status_sentence(status));
	}
	options.concurrency = 1;
	options.work = reconcile;
	options.arg = finished;
	return vd_work_queue_run(queue, &options, error);
}

int main(void)
{
	struct vd_work_queue *queue = NULL, *finished = NULL;
	struct vd_env	     *env;
	struct vd_error	      error;
	struct vd_bytes	      key;
	unsigned	      count = 0;

	if (vd_env_new_threads(NULL, &env) != VD_OK)
		return 1;
	if (vd_work_queue_new(env, NULL, &queue, &error) != VD_OK ||
	    vd_work_queue_new(env, NULL, &finished, &error) != VD_OK ||
	    start(queue, finished, &error) != VD_OK) {
		fprintf(stderr, "work_queue: %s\n", error.message);
	} else {
		while (count < 3 && vd_work_queue_get_wait(finished, VD_SECONDS(10), &key) == VD_OK) {
			printf("%.*s is done\n", (int) key.size, (const char *) key.data);
			vd_work_queue_done(finished, key);
			count++;
		}
	}
	vd_work_queue_close_wait(queue);
	vd_work_queue_close_wait(finished);
	vd_env_free(env);
	return count == 3 ? 0 : 1;
}
