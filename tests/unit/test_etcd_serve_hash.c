/* Unit tests of storage/etcdserver/serve_hash.c: which hash is answered when. That the numbers are etcd's is in test_etcd_serve_kv.c. */
#include "actor_sim.h"
#include "etcd_server_fixture.h"

#include "vdtest.h"

static Etcdserverpb__HashKVResponse *hash_kv(struct etcd_server_fixture *fixture, int64_t revision)
{
	Etcdserverpb__HashKVRequest request = ETCDSERVERPB__HASH_KVREQUEST__INIT;

	request.revision = revision;
	return ETCD_ASK(fixture, "Maintenance/HashKV", &request, hash_kvresponse);
}

static uint32_t hash_of(struct etcd_server_fixture *fixture, int64_t revision, int64_t compacted)
{
	Etcdserverpb__HashKVResponse *response = hash_kv(fixture, revision);
	uint32_t		      hash = response->hash;

	assert_int_equal(response->compact_revision, compacted);
	if (revision)
		assert_int_equal(response->hash_revision, revision);
	ETCD_FREE(response);
	return hash;
}

static void is_compacted(struct etcd_server_fixture *fixture, int64_t revision)
{
	Etcdserverpb__HashKVRequest request = ETCDSERVERPB__HASH_KVREQUEST__INIT;

	request.revision = revision;
	etcd_server_ask_fails(fixture, "/etcdserverpb.Maintenance/HashKV", &request.base, VD_ETCD_COMPACTED);
}

static void e471_a_hash_is_of_what_there_is(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	uint32_t		    first;

	etcd_server_compact(fixture, 0);
	(void) etcd_server_put_leased(fixture, "k", "1", 0);
	first = hash_of(fixture, 0, 0);
	(void) etcd_server_put_leased(fixture, "k", "2", 0);
	assert_int_not_equal(hash_of(fixture, 0, 0), first);
	assert_int_equal(hash_of(fixture, 2, 0), first);
	etcd_server_compact(fixture, 3);
	is_compacted(fixture, 2);
}

/* What upstream's TestVerifyHashKVAfterCompactAndDefrag requires: the compaction takes records away, and the hash at its revision is still that of before. At revision 0 it is that of now. */
static void e471_the_hash_of_before_a_compaction_stays(void **state)
{
	struct etcd_server_fixture     *fixture = *state;
	Etcdserverpb__DefragmentRequest defragment = ETCDSERVERPB__DEFRAGMENT_REQUEST__INIT;
	uint32_t			before, now;

	for (int i = 0; i < 9; i++)
		(void) etcd_server_put_leased(fixture, "k", "v", 0);
	etcd_server_delete(fixture, "k");
	before = hash_of(fixture, 11, -1);
	etcd_server_compact(fixture, 11);
	ETCD_FREE(ETCD_ASK(fixture, "Maintenance/Defragment", &defragment, defragment_response));
	assert_int_equal(hash_of(fixture, 11, -1), before);
	now = hash_of(fixture, 0, 11);
	assert_int_not_equal(now, before);
	/* That this was asked does not replace it. */
	assert_int_equal(hash_of(fixture, 11, -1), before);
	/* The next compaction ends it. */
	(void) etcd_server_put_leased(fixture, "k", "v", 0);
	etcd_server_compact(fixture, 12);
	is_compacted(fixture, 11);
	/* Nobody asked at 12 before. */
	assert_int_equal(hash_of(fixture, 12, 12), hash_of(fixture, 0, 12));
}

/* Ten are remembered, the newest answers. */
static void e471_old_hashes_are_forgotten(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	uint32_t		    before[13];

	for (int64_t revision = 2; revision < 13; revision++) {
		(void) etcd_server_put_leased(fixture, "k", "v", 0);
		before[revision] = hash_of(fixture, revision, -1);
	}
	etcd_server_compact(fixture, 2); /* the eleventh */
	assert_int_equal(hash_of(fixture, 2, 2), before[2]);
	etcd_server_compact(fixture, 4);
	assert_int_equal(hash_of(fixture, 4, -1), before[4]);
}

static struct etcd_server_call *post(struct etcd_server_fixture *fixture, const char *method, const ProtobufCMessage *request)
{
	struct etcd_server_call *call = calloc(1, sizeof *call);

	etcd_server_call_post(call, fixture, method, request);
	return call;
}

/* While writes go on, a hash is that of the revision that its answer names: asked for that revision afterwards, it is the same. */
static void e1022_a_hash_and_its_revision_belong_together(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__HashRequest   hash = ETCDSERVERPB__HASH_REQUEST__INIT;
	Etcdserverpb__HashKVRequest hash_kv_request = ETCDSERVERPB__HASH_KVREQUEST__INIT;
	struct etcd_server_call	   *calls[64];
	unsigned		    revisions_seen = 0;
	int64_t			    last = 0;

	etcd_server_put(fixture, "k", "first");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(calls); i++) {
		Etcdserverpb__PutRequest put = ETCDSERVERPB__PUT_REQUEST__INIT;
		char			 value[16];

		(void) snprintf(value, sizeof value, "%zu", i);
		put.key = etcd_bytes("k");
		put.value = etcd_bytes(value);
		calls[i] = i % 3 == 0	? post(fixture, "/etcdserverpb.KV/Put", &put.base)
			   : i % 3 == 1 ? post(fixture, "/etcdserverpb.Maintenance/Hash", &hash.base)
					: post(fixture, "/etcdserverpb.Maintenance/HashKV", &hash_kv_request.base);
		for (size_t step = 0; step < i % 7; step++)
			(void) vdi_sim_step(fixture->env);
	}
	(void) vdi_sim_run_until_idle(fixture->env);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(calls); i++) {
		assert_true(calls[i]->is_finished && calls[i]->code == 0);
		if (i % 3 == 1) {
			Etcdserverpb__HashResponse *answer =
				etcdserverpb__hash_response__unpack(NULL, calls[i]->sizes[0], (const uint8_t *) calls[i]->messages[0]);

			assert_int_equal(hash_of(fixture, answer->header->revision, -1), answer->hash);
			revisions_seen += answer->header->revision != last;
			last = answer->header->revision;
			ETCD_FREE(answer);
		} else if (i % 3 == 2) {
			Etcdserverpb__HashKVResponse *answer =
				etcdserverpb__hash_kvresponse__unpack(NULL, calls[i]->sizes[0], (const uint8_t *) calls[i]->messages[0]);

			assert_int_equal(answer->header->revision, answer->hash_revision);
			assert_int_equal(hash_of(fixture, answer->hash_revision, -1), answer->hash);
			ETCD_FREE(answer);
		}
		etcd_server_call_end(calls[i]);
		free(calls[i]);
	}
	assert_true(revisions_seen > 3); /* they did go on */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)
		CASE(e471_a_hash_is_of_what_there_is),
		CASE(e471_the_hash_of_before_a_compaction_stays),
		CASE(e471_old_hashes_are_forgotten),
		CASE(e1022_a_hash_and_its_revision_belong_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
