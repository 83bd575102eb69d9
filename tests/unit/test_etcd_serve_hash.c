/* Unit tests of storage/etcdserver/serve_hash.c: which hash is answered when. That the numbers are etcd's is in test_etcd_serve_kv.c. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)
		CASE(e471_a_hash_is_of_what_there_is),
		CASE(e471_the_hash_of_before_a_compaction_stays),
		CASE(e471_old_hashes_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
