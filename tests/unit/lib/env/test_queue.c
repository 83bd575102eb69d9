/* Unit tests of lib/env/queue.c. */
#include <pthread.h>

#include "await.h"
#include "queue.h"
#include "vdtest.h"

static const struct vdi_queue_options options = { .name = "raw_events",
						  .when_full = "the stream is not read",
						  .resource = "pods",
						  .capacity = 3,
						  .item_size = sizeof(int) };

static void first_in_first_out_and_never_more_than_the_capacity(void **state)
{
	struct vdi_queue queue;
	int		 next_in = 0;
	int		 next_out = 0;

	(void) state;
	assert_status(vdi_queue_init(&queue, &options, NULL), VD_OK);
	for (int round = 0; round < 50; round++) {
		int item = -1;

		for (int i = 0; i < round % 3 + 1; i++)
			if (!vdi_queue_is_full(&queue)) {
				assert_status(vdi_queue_put(&queue, &next_in), VD_OK);
				next_in++;
			} else
				assert_status(vdi_queue_put(&queue, &next_in), VD_FULL);
		assert_int_equal(queue.count, next_in - next_out);
		assert_int_equal(*(int *) vdi_queue_peek(&queue), next_out);
		assert_true(vdi_queue_take(&queue, &item));
		assert_int_equal(item, next_out++);
	}
	while (queue.count)
		assert_true(vdi_queue_take(&queue, &next_out));
	next_out = -1;
	assert_false(vdi_queue_take(&queue, &next_out));
	assert_int_equal(next_out, -1);
	assert_null(vdi_queue_peek(&queue));
	assert_int_equal(queue.count_max, 3);
	vdi_queue_fini(&queue);
}

static void pointers_are_items(void **state)
{
	struct vdi_queue_options pointer_options = options;
	struct vdi_queue	 queue;
	int			 thing;

	(void) state;
	pointer_options.item_size = sizeof(void *);
	assert_status(vdi_queue_init(&queue, &pointer_options, NULL), VD_OK);
	assert_null(vdi_queue_take_pointer(&queue));
	assert_status(vdi_queue_put_pointer(&queue, &thing), VD_OK);
	assert_ptr_equal(vdi_queue_take_pointer(&queue), &thing);
	vdi_queue_fini(&queue);
}

static void depth_and_refusals_are_metrics(void **state)
{
	struct vdi_metrics *registry;
	struct vdi_queue    a;
	struct vdi_queue    b;
	int		    item = 1;

	(void) state;
	assert_status(vdi_metrics_new(&registry), VD_OK);
	assert_status(vdi_queue_init(&a, &options, registry), VD_OK);
	assert_status(vdi_queue_init(&b, &options, registry), VD_OK);
	for (int i = 0; i < 3; i++)
		assert_status(vdi_queue_put(&a, &item), VD_OK);
	assert_status(vdi_queue_put(&a, &item), VD_FULL);
	assert_status(vdi_queue_put(&b, &item), VD_OK);
	assert_int_equal(vdi_metric_value(a.depth), 4); /* of both */
	assert_true(vdi_queue_take(&a, &item));
	assert_int_equal(vdi_metric_value(a.depth), 3);
	assert_int_equal(vdi_metric_value(a.depth_max), 3);
	assert_int_equal(vdi_metric_value(a.puts_total), 4);
	assert_int_equal(vdi_metric_value(a.fulls_total), 1);
	assert_int_equal(vdi_metric_value(a.capacity_total), 6);
	vdi_queue_fini(&a);
	assert_int_equal(vdi_metric_value(b.depth), 1);
	assert_int_equal(vdi_metric_value(b.capacity_total), 3);
	vdi_queue_fini(&b);
	vdi_metrics_free(registry);
}

struct producer {
	struct vdi_queue_shared *queue;
	int			 id;
	int			 count;
};

static void *produce(void *arg)
{
	struct producer *producer = arg;

	for (int i = 0; i < producer->count;) {
		int item = producer->id * 1000000 + i;

		if (vdi_queue_shared_put(producer->queue, &item) == VD_OK)
			i++;
		else
			sched_yield();
	}
	return NULL;
}

static void many_producers_keep_their_own_order(void **state)
{
	struct vdi_queue_options shared_options = options;
	struct vdi_queue_shared	 queue;
	struct producer		 producers[3];
	pthread_t		 threads[3];
	int			 next[3] = { 0 };
	int			 total = 0;

	(void) state;
	shared_options.capacity = 16;
	assert_status(vdi_queue_shared_init(&queue, &shared_options, NULL), VD_OK);
	for (int i = 0; i < 3; i++) {
		producers[i] = (struct producer) { &queue, i, 2000 };
		assert_int_equal(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
	}
	for (struct await await = { 0 }; total < 6000;) {
		int    items[8];
		size_t count = vdi_queue_shared_take(&queue, items, VDI_ARRAY_SIZE(items));

		for (size_t i = 0; i < count; i++)
			assert_int_equal(items[i] % 1000000, next[items[i] / 1000000]++);
		total += (int) count;
		if (count == 0)
			await_turn(&await, "6000 items", __FILE__, __LINE__);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(vdi_queue_shared_count(&queue), 0);
	assert_true(queue.queue.count_max <= 16);
	vdi_queue_shared_fini(&queue);
}

static void a_failed_allocation_leaves_nothing_behind(void **state)
{
	struct vdi_metrics *registry;
	bool		    failed = true;

	(void) state;
	assert_status(vdi_metrics_new(&registry), VD_OK);
	for (uint64_t nth = 1; failed; nth++) {
		struct vdi_queue  queue;
		struct vdi_buffer buffer;
		int64_t		  live = vdi_alloc_live();
		vd_status	  status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_queue_init(&queue, &options, registry);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		if (status == VD_OK) {
			vdi_queue_fini(&queue);
			continue;
		}
		assert_int_equal(vdi_alloc_live(), live);
		vdi_buffer_init(&buffer, 1000);
		assert_status(vdi_metrics_render(registry, &buffer), VD_OK);
		assert_int_equal(buffer.size, 0);
		vdi_buffer_fini(&buffer);
	}
	vdi_metrics_free(registry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_in_first_out_and_never_more_than_the_capacity),
		cmocka_unit_test(pointers_are_items),
		cmocka_unit_test(depth_and_refusals_are_metrics),
		cmocka_unit_test(many_producers_keep_their_own_order),
		cmocka_unit_test(a_failed_allocation_leaves_nothing_behind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
