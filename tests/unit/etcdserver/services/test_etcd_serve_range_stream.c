/* Long ranges and RangeStream of the etcd server, without a network: one range in chunks, and what ends it.
 * */
#include "etcd_server_fixture.h"

#include "actor_sim.h"
#include "vdtest.h"

/* k0000, k0001, ... */
static void put_many(struct etcd_server_fixture *fixture, int count)
{
	char key[16];

	for (int i = 0; i < count; i++) {
		(void) snprintf(key, sizeof key, "k%04d", i);
		(void) etcd_server_put_leased(fixture, key, "v", 0);
	}
}

static void e424_long_ranges_are_answered_by_a_worker(void **state)
{
	struct etcd_server_fixture  *fixture = *state;
	Etcdserverpb__RangeRequest   request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__RangeResponse *response;
	char			     key[16];

	put_many(fixture, 600);
	request.key = etcd_bytes("k");
	request.range_end = etcd_bytes("l");
	response = etcd_server_range(fixture, &request);
	assert_int_equal(response->n_kvs, 600);
	for (int i = 0; i < 600; i++) {
		(void) snprintf(key, sizeof key, "k%04d", i);
		assert_memory_equal(response->kvs[i]->key.data, key, 5);
	}
	ETCD_FREE(response);
}

/* The thread of the transport answers short ranges itself. */
static void e424_short_ranges_are_answered_at_once(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	static const struct {
		int64_t limit;
		int	keys;
		bool	count_only, is_at_once;
	} rows[] = {
		{ 0, 64, false, true },	   { 0, 65, false, false }, { 64, 600, false, true },
		{ 65, 600, false, false }, { 1, 600, false, true }, { 0, 600, true, true },
	};
	int there = 0;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;
		struct etcd_server_call	   call;
		char			   key[16];

		for (; there < rows[i].keys; there++) {
			(void) snprintf(key, sizeof key, "k%04d", there);
			(void) etcd_server_put_leased(fixture, key, "v", 0);
		}
		request.key = etcd_bytes("k");
		request.range_end = etcd_bytes("l");
		request.limit = rows[i].limit;
		request.count_only = rows[i].count_only;
		etcd_server_call_post(&call, fixture, "/etcdserverpb.KV/Range", &request.base);
		if (call.is_finished != rows[i].is_at_once)
			fail_msg("row %zu", i);
		(void) vdi_sim_run_until_idle(fixture->env);
		assert_true(call.is_finished);
		assert_int_equal(call.code, 0);
		etcd_server_call_end(&call);
	}
}

/* The half-close that follows a request, or a second request, changes nothing for a call in progress. */
static void a_call_has_one_request(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__RangeRequest  request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	struct etcd_server_call	    call;
	char			    bytes[] = "\x0a\x01z";

	put_many(fixture, 100);
	request.key = etcd_bytes("k");
	request.range_end = etcd_bytes("l");
	for (int is_half_close = 0; is_half_close < 2; is_half_close++) {
		struct vdi_rpc_message	     second = { .bytes = { is_half_close ? NULL : bytes,
								   is_half_close ? 0 : 3 } };
		Etcdserverpb__RangeResponse *response;

		etcd_server_call_post(&call, fixture, "/etcdserverpb.KV/Range", &request.base);
		assert_false(call.is_finished);
		vdi_etcdserver_message(&call.base, &second);
		(void) vdi_sim_run_until_idle(fixture->env);
		assert_true(call.is_finished);
		assert_int_equal(call.code, 0);
		assert_int_equal(call.count, 1);
		response = etcdserverpb__range_response__unpack(NULL, call.sizes[0],
								(const uint8_t *) call.messages[0]);
		assert_int_equal(response->n_kvs, 100);
		ETCD_FREE(response);
		etcd_server_call_end(&call);
		assert_int_equal(fixture->server->unary_count, 0);
	}
	/* Without a request there is nothing to answer. */
	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, "/etcdserverpb.KV/Range");
	etcd_server_call_send(&call, NULL);
	assert_true(call.is_finished);
	assert_int_equal(call.code, VDI_RPC_INTERNAL);
	assert_string_equal(call.text, "grpc: the call ended before its request");
	etcd_server_call_end(&call);
}

/* A transport that says at any moment that there is room disturbs nothing: each key comes once. */
static void e431_room_that_nobody_waits_for(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__RangeRequest  request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	struct etcd_server_call	    call;
	size_t			    keys = 0;

	put_many(fixture, 100);
	request.key = etcd_bytes("k");
	request.range_end = etcd_bytes("l");
	etcd_server_call_post(&call, fixture, "/etcdserverpb.KV/RangeStream", &request.base);
	do
		vdi_etcdserver_writable(&call.base);
	while (vdi_sim_step(fixture->env));
	assert_true(call.is_finished);
	assert_int_equal(call.code, 0);
	for (size_t i = 0; i < call.count; i++) {
		Etcdserverpb__RangeStreamResponse *part = etcdserverpb__range_stream_response__unpack(
			NULL, call.sizes[i], (const uint8_t *) call.messages[i]);

		keys += part->range_response->n_kvs;
		etcdserverpb__range_stream_response__free_unpacked(part, NULL);
	}
	assert_int_equal(keys, 100);
	etcd_server_call_end(&call);
}

/* Each report of room that was waited for continues the stream once, and others not at all. */
static void e431_a_stream_is_continued_once(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__RangeRequest  request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	struct etcd_server_call	    call;

	put_many(fixture, 100);
	request.key = etcd_bytes("k");
	request.range_end = etcd_bytes("l");
	etcd_server_call_init(&call, fixture);
	call.room = 0;
	etcd_server_call_open(&call, fixture, "/etcdserverpb.KV/RangeStream");
	etcd_server_call_send(&call, &request.base);
	for (size_t count = 0; !call.is_finished; count++) {
		unsigned turns = fixture->server->next_worker;

		assert_int_equal(call.count, count);
		call.room = 1;
		for (int i = 0; i < 3; i++)
			vdi_etcdserver_writable(&call.base);
		assert_int_equal(fixture->server->next_worker, turns + 1);
		(void) vdi_sim_run_until_idle(fixture->env);
	}
	assert_true(call.count >= 2);
	etcd_server_call_end(&call);
}

/* Chunks double while they are small and are halved while they are large. */
static void e431_chunks_follow_the_size_of_the_records(void **state)
{
	struct vdi_etcdserver_options options = { .request_bytes_max = 4000 };
	struct etcd_server_fixture    fixture;
	Etcdserverpb__RangeRequest    request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	struct etcd_server_call	      call;
	char			      key[16];
	static char		      value[2001];
	size_t			      keys = 0, counts[200];

	(void) state;
	etcd_server_fixture_open(&fixture, &options);
	memset(value, 'v', sizeof value - 1);
	for (int i = 0; i < 500; i++) {
		(void) snprintf(key, sizeof key, "k%04d", i);
		(void) etcd_server_put_leased(&fixture, key, i < 300 ? "v" : value, 0);
	}
	request.key = etcd_bytes("k");
	request.range_end = etcd_bytes("l");
	etcd_server_call_init(&call, &fixture);
	etcd_server_call_open(&call, &fixture, "/etcdserverpb.KV/RangeStream");
	etcd_server_call_send(&call, &request.base);
	assert_true(call.is_finished);
	assert_int_equal(call.code, 0);
	assert_in_range(call.count, 10, VDI_ARRAY_SIZE(counts));
	for (size_t i = 0; i < call.count; i++) {
		Etcdserverpb__RangeStreamResponse *part = etcdserverpb__range_stream_response__unpack(
			NULL, call.sizes[i], (const uint8_t *) call.messages[i]);

		counts[i] = part->range_response->n_kvs;
		keys += counts[i];
		etcdserverpb__range_stream_response__free_unpacked(part, NULL);
	}
	assert_int_equal(keys, 500);
	assert_true(counts[1] > counts[0]);
	/* Four records of 2,000 bytes are twice the size of a request. */
	assert_in_range(counts[call.count - 2], 1, 4);
	assert_in_range(call.sizes[call.count - 2], 1, 9000);
	etcd_server_call_end(&call);
	etcd_server_fixture_close(&fixture);
}

static void e431_range_stream_is_one_range_in_chunks(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__RangeRequest  request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	struct etcd_server_call	    call;
	size_t			    keys = 0;

	put_many(fixture, 100);
	request.key = etcd_bytes("k");
	request.range_end = etcd_bytes("l");
	request.limit = 95;
	etcd_server_call_init(&call, fixture);
	call.room = 2;
	etcd_server_call_open(&call, fixture, "/etcdserverpb.KV/RangeStream");
	etcd_server_call_send(&call, &request.base);
	assert_int_equal(call.count, 2); /* no room for more: it waits */
	assert_false(call.is_finished);
	(void) etcd_server_put_leased(fixture, "k0000x", "later", 0);
	etcd_server_call_make_room(&call, SIZE_MAX);
	assert_true(call.is_finished);
	assert_int_equal(call.code, 0);
	for (size_t i = 0; i < call.count; i++) {
		Etcdserverpb__RangeStreamResponse *part = etcdserverpb__range_stream_response__unpack(
			NULL, call.sizes[i], (const uint8_t *) call.messages[i]);
		bool is_last = i + 1 == call.count;

		assert_int_equal(part->range_response->header != NULL, is_last);
		assert_int_equal(part->range_response->more, is_last);
		if (i == 0)
			assert_int_equal(part->range_response->n_kvs, 10);
		keys += part->range_response->n_kvs;
		if (is_last) {
			assert_int_equal(part->range_response->header->revision, 101);
			assert_true(part->range_response->more);
			assert_int_equal(part->range_response->count, 100);
		}
		etcdserverpb__range_stream_response__free_unpacked(part, NULL);
	}
	assert_int_equal(keys, 95);
	etcd_server_call_end(&call);
	/* And one whose client goes away in the middle. */
	etcd_server_call_init(&call, fixture);
	call.room = 1;
	etcd_server_call_open(&call, fixture, "/etcdserverpb.KV/RangeStream");
	etcd_server_call_send(&call, &request.base);
	etcd_server_call_end(&call);
	request.sort_order = ETCDSERVERPB__RANGE_REQUEST__SORT_ORDER__DESCEND;
	etcd_server_call_init(&call, fixture);
	assert_null(etcd_server_ask(fixture, &call, "/etcdserverpb.KV/RangeStream", &request.base,
				    &etcdserverpb__range_response__descriptor));
	assert_string_equal(call.text, "RangeStream does not support custom sort orders");
}

/* Order NONE and a target other than the key: the parts together are what a Range answers, sorted as one. */
static void e431_a_sorted_stream_is_sorted_as_one(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__RangeRequest  request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	static const int	    limits[] = { 0, 25, 40, 100 };
	char			    key[16], value[16];

	etcd_server_grant(fixture, 7, 100, 100);
	for (int i = 0; i < 40; i++) {
		(void) snprintf(key, sizeof key, "k%04d", i);
		(void) snprintf(value, sizeof value, "v%04d", (i * 17) % 40);
		(void) etcd_server_put_leased(fixture, key, value, 7);
		if (i % 3 == 0)
			(void) etcd_server_put_leased(fixture, key, value, 7);
	}
	request.key = etcd_bytes("k");
	request.range_end = etcd_bytes("l");
	for (int i = 0; i < 4 * (int) VDI_ARRAY_SIZE(limits) * 2; i++) {
		Etcdserverpb__RangeResponse *whole;
		struct etcd_server_call	     call;
		size_t			     next = 0;

		request.sort_target = ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__VERSION + i % 4;
		request.limit = limits[i / 4 % 4];
		request.keys_only = i >= 16;
		whole = ETCD_ASK(fixture, "KV/Range", &request, range_response);
		etcd_server_call_init(&call, fixture);
		call.room = 1;
		etcd_server_call_open(&call, fixture, "/etcdserverpb.KV/RangeStream");
		etcd_server_call_send(&call, &request.base);
		if (call.count == 1 && !call.is_finished)
			(void) etcd_server_put_leased(fixture, "k0000x", "later", 0);
		etcd_server_call_make_room(&call, SIZE_MAX);
		assert_true(call.is_finished);
		assert_int_equal(call.code, 0);
		assert_true(call.count > 1);
		for (size_t part_at = 0; part_at < call.count; part_at++) {
			Etcdserverpb__RangeStreamResponse *part = etcdserverpb__range_stream_response__unpack(
				NULL, call.sizes[part_at], (const uint8_t *) call.messages[part_at]);
			const Etcdserverpb__RangeResponse *range = part->range_response;
			bool				   is_last = part_at + 1 == call.count;

			for (size_t j = 0; j < range->n_kvs; j++, next++) {
				assert_true(next < whole->n_kvs);
				assert_int_equal(range->kvs[j]->key.len, whole->kvs[next]->key.len);
				assert_memory_equal(range->kvs[j]->key.data, whole->kvs[next]->key.data,
						    whole->kvs[next]->key.len);
				assert_int_equal(range->kvs[j]->value.len, whole->kvs[next]->value.len);
				assert_int_equal(range->kvs[j]->mod_revision, whole->kvs[next]->mod_revision);
				assert_int_equal(range->kvs[j]->create_revision,
						 whole->kvs[next]->create_revision);
				assert_int_equal(range->kvs[j]->version, whole->kvs[next]->version);
				assert_int_equal(range->kvs[j]->lease, whole->kvs[next]->lease);
			}
			assert_int_equal(range->header != NULL, is_last);
			assert_int_equal(range->more, is_last && whole->more);
			assert_int_equal(range->count, is_last ? whole->count : 0);
			if (is_last)
				assert_int_equal(range->header->revision, whole->header->revision);
			etcdserverpb__range_stream_response__free_unpacked(part, NULL);
		}
		assert_int_equal(next, whole->n_kvs);
		ETCD_FREE(whole);
		etcd_server_call_end(&call);
	}
}

static Etcdserverpb__RangeStreamResponse *part_of(const struct etcd_server_call *call, size_t index)
{
	return etcdserverpb__range_stream_response__unpack(NULL, call->sizes[index],
							   (const uint8_t *) call->messages[index]);
}

/* Keys, values, limit, count, more and header are those of a Range at the time when the stream began,
 * whatever is written meanwhile. */
static void e431_a_stream_is_the_range_of_its_begin(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__RangeRequest  request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	static const struct {
		int64_t limit, revision;
	} rows[] = { { 0, 0 }, { 60, 0 }, { 100, 0 }, { 101, 0 }, { -1, 0 }, { 60, 51 }, { 0, 51 } };

	put_many(fixture, 100);
	for (size_t i = 0; i < 2 * VDI_ARRAY_SIZE(rows); i++) {
		bool			     is_count = i >= VDI_ARRAY_SIZE(rows);
		Etcdserverpb__RangeResponse *whole;
		struct etcd_server_call	     call;
		size_t			     next = 0;
		char			     value[16];

		request.key = etcd_bytes("k");
		request.range_end = etcd_bytes("l");
		request.limit = rows[i % VDI_ARRAY_SIZE(rows)].limit;
		request.revision = rows[i % VDI_ARRAY_SIZE(rows)].revision;
		request.count_only = is_count;
		whole = ETCD_ASK(fixture, "KV/Range", &request, range_response);
		etcd_server_call_init(&call, fixture);
		call.room = 1;
		etcd_server_call_open(&call, fixture, "/etcdserverpb.KV/RangeStream");
		etcd_server_call_send(&call, &request.base);
		assert_int_equal(call.count, 1);
		assert_int_equal(call.is_finished, is_count);
		(void) snprintf(value, sizeof value, "v%zu", i);
		etcd_server_put(fixture, "k0040", value);
		etcd_server_delete(fixture, "k0041");
		etcd_server_put(fixture, "k0041", value);
		etcd_server_put(fixture, "k0042x", value);
		etcd_server_call_make_room(&call, SIZE_MAX);
		assert_true(call.is_finished);
		assert_int_equal(call.code, 0);
		for (size_t at = 0; at < call.count; at++) {
			Etcdserverpb__RangeStreamResponse *part = part_of(&call, at);
			const Etcdserverpb__RangeResponse *range = part->range_response;
			bool				   is_last = at + 1 == call.count;

			for (size_t j = 0; j < range->n_kvs; j++, next++) {
				assert_true(next < whole->n_kvs);
				assert_int_equal(range->kvs[j]->key.len, 5);
				assert_memory_equal(range->kvs[j]->key.data, whole->kvs[next]->key.data, 5);
				assert_int_equal(range->kvs[j]->mod_revision, whole->kvs[next]->mod_revision);
				assert_int_equal(range->kvs[j]->value.len, whole->kvs[next]->value.len);
				assert_memory_equal(range->kvs[j]->value.data, whole->kvs[next]->value.data,
						    whole->kvs[next]->value.len);
			}
			assert_int_equal(range->header != NULL, is_last);
			assert_int_equal(range->more, is_last && whole->more);
			assert_int_equal(range->count, is_last ? whole->count : 0);
			if (is_last)
				assert_int_equal(range->header->revision, whole->header->revision);
			etcdserverpb__range_stream_response__free_unpacked(part, NULL);
		}
		assert_int_equal(next, whole->n_kvs);
		ETCD_FREE(whole);
		etcd_server_call_end(&call);
		etcd_server_delete(fixture, "k0042x");
	}
}

/* A message below half of the maximum size of requests doubles the next chunk, one above twice of it halves
 * it; a chunk has at least one key. */
static void e431_chunks_adapt_to_the_size(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__RangeRequest  request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	struct etcd_server_call	    call;
	const size_t		    target = 1000;
	size_t			    keys = 10;
	unsigned		    doubled = 0, kept = 0, halved = 0, single = 0;
	char			   *value = malloc(4001);
	char			    key[16];

	put_many(fixture, 150);
	memset(value, 'v', 4000);
	for (int i = 150; i < 270; i++) {
		value[4000] = 0;
		value[i < 250 ? 300 : 4000] = 0;
		(void) snprintf(key, sizeof key, "k%04d", i);
		etcd_server_put(fixture, key, value);
		value[300] = 'v';
	}
	free(value);
	fixture->server->options.request_bytes_max = target;
	request.key = etcd_bytes("k");
	request.range_end = etcd_bytes("l");
	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, "/etcdserverpb.KV/RangeStream");
	etcd_server_call_send(&call, &request.base);
	assert_true(call.is_finished);
	assert_int_equal(call.code, 0);
	for (size_t i = 0; i + 1 < call.count; i++) {
		Etcdserverpb__RangeStreamResponse *part = part_of(&call, i);

		assert_int_equal(part->range_response->n_kvs, keys);
		etcdserverpb__range_stream_response__free_unpacked(part, NULL);
		if (call.sizes[i] < target / 2)
			doubled++, keys *= 2;
		else if (call.sizes[i] <= target * 2)
			kept++;
		else if (keys > 1)
			halved++, keys /= 2;
		else
			single++;
	}
	assert_true(doubled > 0 && kept > 0 && halved > 2 && single > 0);
	etcd_server_call_end(&call);
}

/* Keys of the second chunk; *ret_size: size of the first one. */
static size_t second_chunk(struct etcd_server_fixture *fixture, size_t target, size_t *ret_size)
{
	Etcdserverpb__RangeRequest	   request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	Etcdserverpb__RangeStreamResponse *part;
	struct etcd_server_call		   call;
	size_t				   keys;

	fixture->server->options.request_bytes_max = target;
	request.key = etcd_bytes("k");
	request.range_end = etcd_bytes("l");
	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, "/etcdserverpb.KV/RangeStream");
	etcd_server_call_send(&call, &request.base);
	assert_true(call.is_finished);
	assert_int_equal(call.code, 0);
	assert_true(call.count > 2);
	part = part_of(&call, 1);
	keys = part->range_response->n_kvs;
	*ret_size = call.sizes[0];
	etcdserverpb__range_stream_response__free_unpacked(part, NULL);
	etcd_server_call_end(&call);
	return keys;
}

/* Exactly half of the maximum, and exactly twice of it, change nothing. */
static void e431_chunks_stay_at_both_borders(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	size_t			    size, again;
	bool			    was_exact = false;

	put_many(fixture, 100);
	for (int i = 0; i < 2; i++) { /* one of the sizes is even */
		etcd_server_put(fixture, "k0000", i ? "vv" : "v");
		(void) second_chunk(fixture, 1000, &size);
		was_exact |= size % 2 == 0;
		assert_int_equal(second_chunk(fixture, 2 * size + 2, &again), 20);
		assert_int_equal(second_chunk(fixture, 2 * size + 1, &again), 10);
		assert_int_equal(second_chunk(fixture, 2 * size, &again), 10);
		assert_int_equal(second_chunk(fixture, (size + 1) / 2, &again), 10);
		assert_int_equal(second_chunk(fixture, (size + 1) / 2 - 1, &again), 5);
		assert_int_equal(again, size);
	}
	assert_true(was_exact);
}

/* A limit of one key, and a negative one, which is none. */
static void e431_the_smallest_limit_of_a_stream(void **state)
{
	struct etcd_server_fixture *fixture = *state;

	put_many(fixture, 5);
	for (int limit = -1; limit <= 1; limit++) {
		Etcdserverpb__RangeRequest	   request = ETCDSERVERPB__RANGE_REQUEST__INIT;
		Etcdserverpb__RangeStreamResponse *part;
		struct etcd_server_call		   call;

		request.key = etcd_bytes("k");
		request.range_end = etcd_bytes("l");
		request.limit = limit;
		etcd_server_call_init(&call, fixture);
		etcd_server_call_open(&call, fixture, "/etcdserverpb.KV/RangeStream");
		etcd_server_call_send(&call, &request.base);
		assert_true(call.is_finished);
		assert_int_equal(call.code, 0);
		assert_int_equal(call.count, 1);
		part = part_of(&call, 0);
		assert_int_equal(part->range_response->n_kvs, limit > 0 ? limit : 5);
		assert_int_equal(part->range_response->more, limit > 0);
		assert_int_equal(part->range_response->count, 5);
		etcdserverpb__range_stream_response__free_unpacked(part, NULL);
		etcd_server_call_end(&call);
	}
}

/* A stream reads each chunk at its revision, so a compaction above that revision ends it, and the keys sent
 * so far are no answer. */
static void e431_a_compaction_ends_the_stream(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__RangeRequest  request = ETCDSERVERPB__RANGE_REQUEST__INIT;
	struct etcd_server_call	    call;

	put_many(fixture, 100);
	request.key = etcd_bytes("k");
	request.range_end = etcd_bytes("l");
	etcd_server_call_init(&call, fixture);
	call.room = 1;
	etcd_server_call_open(&call, fixture, "/etcdserverpb.KV/RangeStream");
	etcd_server_call_send(&call, &request.base);
	assert_false(call.is_finished);
	etcd_server_compact(fixture, etcd_server_put_leased(fixture, "other", "later", 0));
	etcd_server_call_make_room(&call, SIZE_MAX);
	assert_true(call.is_finished);
	assert_int_equal(call.code, VDI_RPC_OUT_OF_RANGE);
	assert_string_equal(call.text, vdi_serve_code_message(VD_ETCD_COMPACTED));
	etcd_server_call_end(&call);
}

/* The faults of any range are told first. */
static void e431_a_range_is_checked_before_the_stream(void **state)
{
	Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;

	request.sort_order = ETCDSERVERPB__RANGE_REQUEST__SORT_ORDER__DESCEND;
	request.min_mod_revision = 1;
	etcd_server_ask_fails(*state, "/etcdserverpb.KV/RangeStream", &request.base, VD_ETCD_EMPTY_KEY);
	request.key = etcd_bytes("k");
	request.sort_target = 5;
	etcd_server_ask_fails(*state, "/etcdserverpb.KV/RangeStream", &request.base,
			      VD_ETCD_INVALID_SORT_OPTION);
}

static void e135_a_stream_is_neither_sorted_nor_filtered(void **state)
{
	static const char *const texts[] = { "RangeStream does not support custom sort orders",
					     "RangeStream does not support revision filters" };

	for (int i = 0; i < 6; i++) {
		Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;
		struct etcd_server_call	   call;

		request.key = etcd_bytes("k");
		request.sort_target = ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__MOD;
		if (i < 2)
			request.sort_order = i ? ETCDSERVERPB__RANGE_REQUEST__SORT_ORDER__DESCEND :
						 ETCDSERVERPB__RANGE_REQUEST__SORT_ORDER__ASCEND;
		else
			*(int64_t *const[]) { &request.min_mod_revision, &request.max_mod_revision,
					      &request.min_create_revision,
					      &request.max_create_revision }[i - 2] = 1;
		etcd_server_call_init(&call, *state);
		assert_null(etcd_server_ask(*state, &call, "/etcdserverpb.KV/RangeStream", &request.base,
					    &etcdserverpb__range_response__descriptor));
		assert_int_equal(call.code, VDI_RPC_UNIMPLEMENTED);
		assert_string_equal(call.text, texts[i >= 2]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)
		CASE(e424_long_ranges_are_answered_by_a_worker),
		CASE(e424_short_ranges_are_answered_at_once),
		CASE(a_call_has_one_request),
		CASE(e431_room_that_nobody_waits_for),
		CASE(e431_a_stream_is_continued_once),
		cmocka_unit_test(e431_chunks_follow_the_size_of_the_records),
		CASE(e431_range_stream_is_one_range_in_chunks),
		CASE(e431_a_sorted_stream_is_sorted_as_one),
		CASE(e431_a_compaction_ends_the_stream),
		CASE(e431_a_stream_is_the_range_of_its_begin),
		CASE(e431_chunks_adapt_to_the_size),
		CASE(e431_chunks_stay_at_both_borders),
		CASE(e431_the_smallest_limit_of_a_stream),
		CASE(e431_a_range_is_checked_before_the_stream),
		CASE(e135_a_stream_is_neither_sorted_nor_filtered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
