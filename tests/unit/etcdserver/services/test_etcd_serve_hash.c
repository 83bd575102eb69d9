/* etcdserver/services/serve_hash.c: which hash is answered when, and that the numbers are etcd's (the vectors
 * of upstream's hash_test.go). */
#include "etcd_server_fixture.h"

#include "actor_sim.h"
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

/* What upstream's TestVerifyHashKVAfterCompactAndDefrag requires: the compaction takes records away, and the
 * hash at its revision is still that of before. At revision 0 it is that of now. */
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

/* The compaction to 3 takes away what the hash at 3 was of. The hash of before is the answer while at most
 * nine others were asked for since; with ten it is made anew. */
static void e471_ten_hashes_are_remembered(void **state)
{
	for (int64_t others = 9; others <= 10; others++) {
		struct etcd_server_fixture *fixture;
		uint32_t		    before = 0;

		assert_int_equal(etcd_server_setup(state), 0);
		fixture = *state;
		for (int64_t revision = 2; revision <= 3 + others; revision++) {
			(void) etcd_server_put_leased(fixture, "k", "v", 0);
			if (revision == 3)
				before = hash_of(fixture, 3, -1);
			else if (revision > 3)
				(void) hash_of(fixture, revision, -1);
		}
		etcd_server_compact(fixture, 3);
		if (others == 9)
			assert_int_equal(hash_of(fixture, 3, -1), before);
		else
			assert_int_not_equal(hash_of(fixture, 3, 3), before);
		assert_int_equal(etcd_server_teardown(state), 0);
	}
}

/* Asking again and again at one revision takes no place of the others. */
static void e471_a_revision_is_remembered_once(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	uint32_t		    before;

	(void) etcd_server_put_leased(fixture, "k", "1", 0);
	(void) etcd_server_put_leased(fixture, "k", "2", 0);
	before = hash_of(fixture, 3, -1);
	(void) etcd_server_put_leased(fixture, "k", "3", 0);
	for (int i = 0; i < 20; i++)
		(void) hash_of(fixture, 4, -1);
	etcd_server_compact(fixture, 3);
	assert_int_equal(hash_of(fixture, 3, -1), before);
}

static struct etcd_server_call *post(struct etcd_server_fixture *fixture, const char *method,
				     const ProtobufCMessage *request)
{
	struct etcd_server_call *call = calloc(1, sizeof *call);

	etcd_server_call_post(call, fixture, method, request);
	return call;
}

/* While writes go on, a hash is that of the revision that its answer names: asked for that revision
 * afterwards, it is the same. */
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
		calls[i] =
			i % 3 == 0 ? post(fixture, "/etcdserverpb.KV/Put", &put.base) :
			i % 3 == 1 ? post(fixture, "/etcdserverpb.Maintenance/Hash", &hash.base) :
				     post(fixture, "/etcdserverpb.Maintenance/HashKV", &hash_kv_request.base);
		for (size_t step = 0; step < i % 7; step++)
			(void) vdi_sim_step(fixture->env);
	}
	(void) vdi_sim_run_until_idle(fixture->env);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(calls); i++) {
		assert_true(calls[i]->is_finished && calls[i]->code == 0);
		if (i % 3 == 1) {
			Etcdserverpb__HashResponse *answer = etcdserverpb__hash_response__unpack(
				NULL, calls[i]->sizes[0], (const uint8_t *) calls[i]->messages[0]);

			assert_int_equal(hash_of(fixture, answer->header->revision, -1), answer->hash);
			revisions_seen += answer->header->revision != last;
			last = answer->header->revision;
			ETCD_FREE(answer);
		} else if (i % 3 == 2) {
			Etcdserverpb__HashKVResponse *answer = etcdserverpb__hash_kvresponse__unpack(
				NULL, calls[i]->sizes[0], (const uint8_t *) calls[i]->messages[0]);

			assert_int_equal(answer->header->revision, answer->hash_revision);
			assert_int_equal(hash_of(fixture, answer->hash_revision, -1), answer->hash);
			ETCD_FREE(answer);
		}
		etcd_server_call_end(calls[i]);
		free(calls[i]);
	}
	assert_true(revisions_seen > 3); /* they did go on */
}

static const char *hash_key(int i)
{
	static const char *const names[] = {
		"alice", "bob", "celine", "dominik", "eve", "frederica", "gorge"
	};

	return i % 142 == 30 ? "zenek" : i % 71 == 30 ? "xavery" : names[i % 7];
}

static void put_for_hash(struct etcd_server_fixture *fixture, int i)
{
	char value[16];

	(void) snprintf(value, sizeof value, "%d", i);
	(void) etcd_server_put_leased(fixture, hash_key(i), value, 0);
}

static void e472_golden_hashes_with_compactions_behind(void **state)
{
	static const struct {
		int64_t	 revision;
		uint32_t hash;
		int64_t	 compacted;
	} wanted[] = { { 35, 4082599214, -1 },
		       { 106, 2279933401, 35 },
		       { 177, 3284231217, 106 },
		       { 248, 126286495, 177 } };

	for (int round = 0; round < 4; round++) {
		Etcdserverpb__HashKVResponse *response;

		for (int i = round * 71; i <= round * 71 + 71; i++)
			put_for_hash(*state, i);
		response = hash_kv(*state, wanted[round].revision);
		assert_int_equal(response->hash, wanted[round].hash);
		assert_int_equal(response->compact_revision, wanted[round].compacted);
		assert_int_equal(response->hash_revision, wanted[round].revision);
		assert_int_equal(response->header->revision, 73 + round * 72);
		ETCD_FREE(response);
		etcd_server_compact(*state, wanted[round].revision);
	}
}

static void e472_golden_hashes_of_the_newest_revision(void **state)
{
	static const uint32_t wanted[] = { 1913897190, 224860069, 1565167519 };

	for (int round = 0; round < 3; round++) {
		Etcdserverpb__HashKVResponse *response;

		for (int i = round * 71; i <= round * 71 + 71; i++)
			put_for_hash(*state, i);
		response = hash_kv(*state, 0);
		assert_int_equal(response->hash, wanted[round]);
		assert_int_equal(response->hash_revision, 73 + round * 72);
		ETCD_FREE(response);
		etcd_server_compact(*state, 73 + round * 72);
	}
}

static void expect_hash(struct etcd_server_fixture *fixture, int64_t revision, uint32_t wanted)
{
	Etcdserverpb__HashKVResponse *response = hash_kv(fixture, revision);

	assert_int_equal(response->hash, wanted);
	ETCD_FREE(response);
}

static void delete_everything(struct etcd_server_fixture *fixture)
{
	Etcdserverpb__DeleteRangeRequest request = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;

	request.key = request.range_end = (ProtobufCBinaryData) { 1, (uint8_t *) (uintptr_t) "" };
	ETCD_FREE(ETCD_ASK(fixture, "KV/DeleteRange", &request, delete_range_response));
}

/* CRC-32C, bit by bit. */
static uint32_t checksum(uint32_t crc, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	for (crc = ~crc; size; size--) {
		crc ^= *at++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

/* A record as etcd has it on disk: its revision in 17 bytes, 18 of a deletion, and a KeyValue; of a deletion
 * the key alone. */
static uint32_t checksum_record(uint32_t crc, uint8_t main, uint8_t sub, Mvccpb__KeyValue *kv, bool is_delete)
{
	const uint8_t place[18] = { [7] = main, [8] = '_', [16] = sub, [17] = 't' };
	uint8_t	      body[256];
	size_t	      size = mvccpb__key_value__get_packed_size(kv);

	assert_true(size <= sizeof body);
	(void) mvccpb__key_value__pack(kv, body);
	crc = checksum(crc, place, is_delete ? 18 : 17);
	return checksum(crc, body, size);
}

/* HashKV is the checksum of what would lie on the disk of an etcd. */
static void e402_records_are_hashed_as_etcd_writes_them(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Mvccpb__KeyValue	    kv = MVCCPB__KEY_VALUE__INIT, deleted = MVCCPB__KEY_VALUE__INIT;
	uint32_t		    crc = checksum(0, "key", 3);

	etcd_server_grant(fixture, 77, 100, 100);
	(void) etcd_server_put_leased(fixture, "k", "value", 77);
	(void) etcd_server_put_leased(fixture, "k", "", 0);
	(void) etcd_server_put_leased(fixture, "l", "x", 0);
	kv.key = etcd_bytes("k");
	kv.value = etcd_bytes("value");
	kv.create_revision = kv.mod_revision = 2;
	kv.version = 1;
	kv.lease = 77;
	crc = checksum_record(crc, 2, 0, &kv, false);
	expect_hash(fixture, 2, crc);
	kv.value = etcd_bytes("");
	kv.mod_revision = 3;
	kv.version = 2;
	kv.lease = 0;
	crc = checksum_record(crc, 3, 0, &kv, false);
	expect_hash(fixture, 3, crc);
	kv.key = etcd_bytes("l");
	kv.value = etcd_bytes("x");
	kv.create_revision = kv.mod_revision = 4;
	kv.version = 1;
	crc = checksum_record(crc, 4, 0, &kv, false);
	delete_everything(fixture); /* two records of one revision */
	deleted.key = etcd_bytes("k");
	crc = checksum_record(crc, 5, 0, &deleted, true);
	deleted.key = etcd_bytes("l");
	crc = checksum_record(crc, 5, 1, &deleted, true);
	expect_hash(fixture, 5, crc);
	expect_hash(fixture, 0, crc);
}

/* Upstream remembers the hashes of the last compactions, and of revision 0 once Compact(0) was done, and says
 * those for ever after. */
/* What etcd 3.7.3 says. At a revision whose transaction deleted all there was and made some of it again,
 * nothing counts as kept, so nothing old is left out; one revision on, all is as usual. */
static void e124_a_hash_says_of_which_revision_and_when(void **state)
{
	Etcdserverpb__HashKVResponse *response;

	for (int i = 0; i < 3; i++)
		(void) etcd_server_put_leased(*state, "k", "v", 0);
	for (int64_t revision = 0; revision <= 4; revision += 2) {
		response = hash_kv(*state, revision);
		assert_int_equal(response->header->revision, 4);
		assert_int_equal(response->hash_revision, revision ? revision : 4);
		ETCD_FREE(response);
	}
}

static void e470_a_revision_that_makes_everything_again_keeps_nothing(void **state)
{
	struct etcd_server_fixture	*fixture = *state;
	Etcdserverpb__TxnRequest	 txn = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__TxnResponse	*response;
	Etcdserverpb__PutRequest	 put_a = ETCDSERVERPB__PUT_REQUEST__INIT;
	Etcdserverpb__DeleteRangeRequest delete_all = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
	Etcdserverpb__RequestOp	 ops[2] = { ETCDSERVERPB__REQUEST_OP__INIT, ETCDSERVERPB__REQUEST_OP__INIT };
	Etcdserverpb__RequestOp *list[2] = { &ops[0], &ops[1] };

	etcd_server_put_leased(fixture, "a", "1", 0);
	etcd_server_put_leased(fixture, "b", "2", 0);
	etcd_server_compact(fixture, 3);
	delete_all.key = (ProtobufCBinaryData) { 1, (uint8_t *) "" };
	delete_all.range_end = (ProtobufCBinaryData) { 1, (uint8_t *) "" };
	put_a.key = etcd_bytes("a");
	put_a.value = etcd_bytes("3");
	ops[0].request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE;
	ops[0].request_delete_range = &delete_all;
	ops[1].request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
	ops[1].request_put = &put_a;
	txn.success = list;
	txn.n_success = 2;
	response = ETCD_ASK(fixture, "KV/Txn", &txn, txn_response);
	assert_int_equal(response->header->revision, 4);
	ETCD_FREE(response);
	expect_hash(fixture, 4, 2469020438);
	etcd_server_put_leased(fixture, "b", "4", 0);
	expect_hash(fixture, 4, 2469020438);
	expect_hash(fixture, 5, 1823821643);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)
		CASE(e471_a_hash_is_of_what_there_is),
		CASE(e471_the_hash_of_before_a_compaction_stays),
		CASE(e471_old_hashes_are_forgotten),
		CASE(e471_a_revision_is_remembered_once),
		cmocka_unit_test(e471_ten_hashes_are_remembered),
		CASE(e1022_a_hash_and_its_revision_belong_together),
		CASE(e402_records_are_hashed_as_etcd_writes_them),
		CASE(e124_a_hash_says_of_which_revision_and_when),
		CASE(e472_golden_hashes_with_compactions_behind),
		CASE(e472_golden_hashes_of_the_newest_revision),
		CASE(e470_a_revision_that_makes_everything_again_keeps_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
