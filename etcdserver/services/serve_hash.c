/* HashKV and Hash. A hash is computed over one state of the store, on the worker for slow work.
 *
 * A compaction removes records, so the hash at its revision would differ from the one before. etcd computes
 * that hash while it compacts, and keeps the ten newest; this server keeps the results of requests, which
 * costs nothing if there are none.
 */
#include "serve_hash.h"

#include "auth.h"
#include "crc32c.h"
#include "mvcc_walk.h"
#include "serve_counts.h"

struct hash {
	struct vdi_crc32c      crc;
	struct vdi_etcdserver *server;
	struct vdi_mvcc_walk   walk;
	char		      *scratch;
	size_t		       scratch_size;
};

static void begin_hash(void *arg, const struct vdi_mvcc_walk *walk)
{
	struct hash *hash = arg;

	(void) walk;
	vdi_crc32c_init(&hash->crc);
	vdi_crc32c_add(&hash->crc, "key", 3);
}

/* Hashes the record's key and value as they would be in etcd's backend. */
static vd_status hash_record(void *arg, const struct vd_kv *kv, bool is_delete)
{
	struct hash	   *hash = arg;
	struct vdi_wire_out out = { 0 };
	unsigned char	    key[18];

	vdi_put_big_endian(key, (uint64_t) kv->mod_rev);
	key[8] = '_';
	vdi_put_big_endian(key + 9, kv->sub);
	key[17] = 't';
	vdi_crc32c_add(&hash->crc, key, is_delete ? 18 : 17);
	if (is_delete) {
		vdi_wire_bytes(&out, 1, vd_kv_key(kv));
	} else {
		vdi_wire_kv_body(&out, kv, false, true);
	}
	if (!vdi_grow((void **) &hash->scratch, &hash->scratch_size, out.size, 1))
		return VD_NOMEM;
	out = (struct vdi_wire_out) { (uint8_t *) hash->scratch, 0 };
	if (is_delete)
		vdi_wire_bytes(&out, 1, vd_kv_key(kv));
	else
		vdi_wire_kv_body(&out, kv, false, true);
	vdi_crc32c_add(&hash->crc, hash->scratch, out.size);
	return VD_OK;
}

static vd_status compute(struct vdi_serve_call *call, vd_rev revision, struct hash *hash)
{
	vd_status status = VD_OK;

	hash->server = call->server;
	hash->walk = (struct vdi_mvcc_walk) { .begin = begin_hash, .each = hash_record, .arg = hash };
	for (int tries = 0; tries < 3; tries++) {
		status = vdi_mvcc_walk(call->server->store, VDI_MVCC_WALK_HASH, revision, &hash->walk);
		if (status != VD_EXPIRED || revision > 0)
			break; /* compaction overtook the walk; the current revision cannot be too old */
	}
	vdi_free(hash->scratch);
	return status;
}

static void write_hash_kv(struct vdi_wire_out *out, const void *arg)
{
	const struct hash *hash = arg;

	vdi_serve_write_header(out, hash->server, hash->walk.current); /* the walk's, as etcd */
	vdi_wire_number(out, 2, vdi_crc32c_value(&hash->crc));
	vdi_wire_number(out, 3, (uint64_t) hash->walk.compacted);
	vdi_wire_number(out, 4, (uint64_t) hash->walk.revision);
}

static void write_hash(struct vdi_wire_out *out, const void *arg)
{
	const struct hash *hash = arg;

	vdi_serve_write_header(out, hash->server, hash->walk.current);
	vdi_wire_number(out, 2, vdi_crc32c_value(&hash->crc));
}

/* ---- Hashes of before a compaction ---- */

/* Returns the result of HashKV at the revision to which the store has since been compacted; NULL: none, or no
 * longer kept. */
static const struct vdi_known_hash *find_known(const struct vdi_etcdserver *server, vd_rev revision)
{
	const struct vdi_serve_hashes *hashes = &server->hashes;
	struct vd_store_status	       store;

	if (revision <= 0 || vd_store_status_get(server->store, &store) != VD_OK ||
	    store.compacted != revision)
		return NULL;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(hashes->known); i++)
		if (hashes->known[i].revision == revision)
			return &hashes->known[i];
	return NULL;
}

/* Keeps a result; replaces that of the same revision, or the oldest one. */
static void remember(struct vdi_etcdserver *server, struct hash *hash)
{
	struct vdi_serve_hashes *hashes = &server->hashes;
	struct vdi_known_hash	*place = &hashes->known[0];

	if (hash->walk.revision <= hash->walk.compacted)
		return; /* compacted before */
	for (size_t i = 0; i < VDI_ARRAY_SIZE(hashes->known); i++) {
		struct vdi_known_hash *known = &hashes->known[i];

		if (known->revision == hash->walk.revision) {
			place = known;
			break;
		}
		if (known->number < place->number)
			place = known;
	}
	*place = (struct vdi_known_hash) { hash->walk.revision, hash->walk.compacted,
					   vdi_crc32c_value(&hash->crc), ++hashes->last_number };
}

struct known_answer {
	const struct vdi_etcdserver *server;
	struct vdi_known_hash	     known;
};

static void write_known(struct vdi_wire_out *out, const void *arg)
{
	const struct known_answer *answer = arg;

	vdi_serve_write_header(out, answer->server,
			       vdi_serve_revision((struct vdi_etcdserver *) (uintptr_t) answer->server));
	vdi_wire_number(out, 2, answer->known.hash);
	vdi_wire_number(out, 3, (uint64_t) answer->known.compacted);
	vdi_wire_number(out, 4, (uint64_t) answer->known.revision);
}

static void answer_known(struct vdi_serve_call *call, const struct vdi_known_hash *known)
{
	struct known_answer answer = { call->server, *known };

	vdi_serve_reply(call, write_known, &answer);
}

/* ---- Calls ---- */

static void work_hash_kv(struct vdi_serve_call *call)
{
	struct vdi_wire_reader	     reader;
	struct hash		     hash = { 0 };
	const struct vdi_known_hash *known;
	vd_rev			     revision = 0;
	vd_mono			     begun = vd_env_now(call->server->env);
	vd_status		     status;

	vdi_wire_reader_init(&reader, call->request.bytes);
	while (vdi_wire_next(&reader))
		if (reader.tag == VDI_WIRE_VARINT(1))
			revision = (int64_t) reader.number;
	known = find_known(call->server, revision);
	if (known) {
		answer_known(call, known);
		return;
	}
	status = compute(call, revision, &hash);
	vdi_serve_observe(call->server, VDI_METRIC_ETCD_MVCC_HASH_REV_DURATION_SECONDS, begun);
	if (status == VD_OK) {
		remember(call->server, &hash);
		vdi_serve_reply(call, write_hash_kv, &hash);
	} else {
		vdi_serve_fail_status(call, status);
	}
}

static void work_hash(struct vdi_serve_call *call)
{
	vd_mono	    begun = vd_env_now(call->server->env);
	struct hash hash = { 0 };
	vd_status   status = compute(call, 0, &hash);

	vdi_serve_observe(call->server, VDI_METRIC_ETCD_MVCC_HASH_DURATION_SECONDS, begun);
	if (status == VD_OK)
		vdi_serve_reply(call, write_hash, &hash);
	else
		vdi_serve_fail_status(call, status);
}

void vdi_serve_hash_kv_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	(void) message;
	if (vdi_auth_require_admin(call))
		vdi_serve_defer(call, VDI_SERVE_WORKER_SLOW, work_hash_kv);
}

void vdi_serve_hash_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	(void) message;
	if (vdi_auth_require_admin(call))
		vdi_serve_defer(call, VDI_SERVE_WORKER_SLOW, work_hash);
}
