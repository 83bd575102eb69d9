/* The file is first written completely, without a name, in the directory of the persistent state (in memory
 * if there is none), then sent in pieces as the client reads. It contains one state of the store, whatever is
 * written meanwhile; the store's writer is not delayed. */
#include "serve_snapshot.h"

#include <openssl/evp.h>
#include <stdio.h>

#include "auth.h"
#include "bolt_write.h"
#include "disk.h"
#include "env.h"
#include "mvcc_walk.h"
#include "serve_counts.h"
#include "serve_state.h"

#define PIECE_SIZE ((size_t) 32 << 10)
#define PIECES_PER_RUN 32
#define MEMORY_SIZE_MAX ((int64_t) 4 << 30)

struct snapshot {
	struct vdi_file	    *file; /* NULL: in memory */
	char		    *memory;
	size_t		     memory_capacity;
	int64_t		     size;
	int64_t		     sent;
	EVP_MD_CTX	    *digest;
	char		    *piece;
	struct vdi_rpc_blob *waiting; /* encoded, but not accepted by the transport */
	bool		     digest_is_sent;
	atomic_bool	     is_blocked;
};

/* ---- Making the file ---- */

static vd_status write_out(void *arg, int64_t offset, const void *bytes, size_t size)
{
	struct snapshot *snapshot = arg;

	if (snapshot->file)
		return vdi_file_write(snapshot->file, offset, bytes, size, NULL);
	if (offset + (int64_t) size > MEMORY_SIZE_MAX)
		return VD_TOO_BIG;
	if (!vdi_grow((void **) &snapshot->memory, &snapshot->memory_capacity, (size_t) offset + size, 1))
		return VD_NOMEM;
	memcpy(snapshot->memory + offset, bytes, size);
	return VD_OK;
}

struct content {
	struct vdi_etcdserver  *server;
	struct vdi_bolt_writer *writer;
	char		       *scratch;
	size_t			scratch_capacity;
	vd_rev			compacted;
	vd_rev			revision;
	vd_status		status;
};

/* Writes a pair whose value is a message. */
static vd_status put_message(struct content *content, struct vd_bytes key, vdi_wire_write_fn write,
			     const void *arg)
{
	struct vdi_wire_out out = { 0 };

	write(&out, arg);
	if (!vdi_grow((void **) &content->scratch, &content->scratch_capacity, out.size + 1, 1))
		return VD_NOMEM;
	out = (struct vdi_wire_out) { (uint8_t *) content->scratch, 0 };
	write(&out, arg);
	return vdi_bolt_put(content->writer, key, (struct vd_bytes) { content->scratch, out.size });
}

static void write_record(struct vdi_wire_out *out, const void *arg)
{
	const struct vd_kv *kv = arg;

	if (kv->version)
		vdi_wire_kv_body(out, kv, false, true);
	else
		vdi_wire_bytes(out, 1, vd_kv_key(kv));
}

static vd_status put_record(void *arg, const struct vd_kv *kv, bool is_delete)
{
	unsigned char key[18];

	vdi_put_big_endian(key, (uint64_t) kv->mod_rev);
	key[8] = '_';
	vdi_put_big_endian(key + 9, kv->sub);
	key[17] = 't';
	return put_message(arg, (struct vd_bytes) { key, is_delete ? 18 : 17 }, write_record, kv);
}

static vd_status put_keys(struct content *content)
{
	struct vdi_mvcc_walk walk = { .each = put_record, .arg = content };

	VDI_TRY(vdi_bolt_bucket_begin(content->writer, "key"));
	VDI_TRY(vdi_mvcc_walk(content->server->store, VDI_MVCC_WALK_SNAPSHOT, 0, &walk));
	content->compacted = walk.compacted;
	content->revision = walk.revision;
	return vdi_bolt_bucket_end(content->writer);
}

/* Writes a leasepb.Lease: ID 1, TTL 2, RemainingTTL 3. */
static void write_lease(struct vdi_wire_out *out, const void *arg)
{
	const struct vd_lease_result *lease = arg;

	vdi_wire_number(out, 1, (uint64_t) lease->id);
	vdi_wire_number(out, 2, (uint64_t) lease->granted_ttl_s);
	vdi_wire_number(out, 3, (uint64_t) VDI_MAX(lease->ttl_s, 1));
}

static void put_lease(void *arg, vd_status status, const struct vd_lease_result *result,
		      const struct vd_error *error)
{
	struct content *content = arg;
	unsigned char	key[8];

	(void) error;
	if (status != VD_OK || result->ttl_s < 0)
		return; /* expired meanwhile */
	vdi_put_big_endian(key, (uint64_t) result->id);
	content->status = put_message(content, (struct vd_bytes) { key, sizeof key }, write_lease, result);
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t left = (uint64_t) * (const int64_t *) a;
	uint64_t right = (uint64_t) * (const int64_t *) b;

	return VDI_ORDER(left, right);
}

struct id_list {
	int64_t *ids;
	size_t	 count;
};

static void take_ids(void *arg, vd_status status, const int64_t *ids, size_t count, vd_rev revision)
{
	struct id_list *list = arg;

	(void) revision;
	list->ids = status == VD_OK ? vdi_alloc((count + 1) * sizeof *ids) : NULL;
	if (list->ids) {
		memcpy(list->ids, ids, count * sizeof *ids);
		list->count = count;
	}
}

static vd_status put_leases(struct content *content)
{
	struct id_list list = { 0 };

	VDI_TRY(vdi_bolt_bucket_begin(content->writer, "lease"));
	VDI_TRY(vd_store_lease_list(content->server->store, take_ids, &list));
	if (list.ids == NULL)
		return VD_NOMEM;
	qsort(list.ids, list.count, sizeof list.ids[0], compare_ids);
	content->status = VD_OK;
	for (size_t i = 0; content->status == VD_OK && i < list.count; i++)
		if (vd_store_lease_time_to_live(content->server->store, list.ids[i], false, put_lease,
						content) != VD_OK)
			content->status = VD_UNAVAILABLE;
	vdi_free(list.ids);
	return content->status == VD_OK ? vdi_bolt_bucket_end(content->writer) : content->status;
}

static vd_status put_empty(struct content *content, const char *name)
{
	VDI_TRY(vdi_bolt_bucket_begin(content->writer, name));
	return vdi_bolt_bucket_end(content->writer);
}

static vd_status put_auth(struct content *content, const struct vdi_auth_data *data)
{
	unsigned char revision[8];
	unsigned char enabled = data->is_enabled;

	vdi_put_big_endian(revision, data->revision);
	VDI_TRY(vdi_bolt_bucket_begin(content->writer, "auth"));
	VDI_TRY(vdi_bolt_put(content->writer, vd_bytes_of("authEnabled"), (struct vd_bytes) { &enabled, 1 }));
	VDI_TRY(vdi_bolt_put(content->writer, vd_bytes_of("authRevision"),
			     (struct vd_bytes) { revision, sizeof revision }));
	VDI_TRY(vdi_bolt_bucket_end(content->writer));
	VDI_TRY(vdi_bolt_bucket_begin(content->writer, "authRoles"));
	for (size_t i = 0; i < data->role_count; i++)
		VDI_TRY(put_message(content, vdi_auth_name_bytes(&data->roles[i].name), vdi_auth_role_write,
				    &data->roles[i]));
	VDI_TRY(vdi_bolt_bucket_end(content->writer));
	VDI_TRY(vdi_bolt_bucket_begin(content->writer, "authUsers"));
	for (size_t i = 0; i < data->account_count; i++)
		VDI_TRY(put_message(content, vdi_auth_name_bytes(&data->accounts[i].name),
				    vdi_auth_account_write, &data->accounts[i]));
	return vdi_bolt_bucket_end(content->writer);
}

static vd_status put_all_auth(struct content *content)
{
	struct vdi_auth_data *data;
	vd_status	      status;
	void		     *bytes;
	size_t		      size;

	/* A copy, because the lock of the original must not be held while writing to disk. */
	VDI_TRY(vdi_auth_encode(content->server->auth, &bytes, &size));
	status = vdi_auth_data_read((struct vd_bytes) { bytes, size }, &data);
	vdi_free(bytes);
	VDI_TRY(status);
	status = put_auth(content, data);
	vdi_auth_data_free(data);
	return status;
}

static vd_status put_cluster(struct content *content)
{
	const struct vdi_etcdserver *server = content->server;
	char			     id[24];
	char			     member[512];

	VDI_TRY(vdi_bolt_bucket_begin(content->writer, "cluster"));
	VDI_TRY(vdi_bolt_put(content->writer, vd_bytes_of("clusterVersion"),
			     vd_bytes_of(VDI_ETCD_CLUSTER_VERSION ".0")));
	VDI_TRY(vdi_bolt_bucket_end(content->writer));
	VDI_TRY(put_keys(content));
	VDI_TRY(put_leases(content));
	(void) snprintf(id, sizeof id, "%llx", (unsigned long long) server->member_id);
	(void) snprintf(member, sizeof member,
			"{\"id\":%llu,\"peerURLs\":[\"http://localhost:2380\"],\"name\":\"default\"}",
			(unsigned long long) server->member_id);
	VDI_TRY(vdi_bolt_bucket_begin(content->writer, "members"));
	VDI_TRY(vdi_bolt_put(content->writer, vd_bytes_of(id), vd_bytes_of(member)));
	VDI_TRY(vdi_bolt_bucket_end(content->writer));
	return put_empty(content, "members_removed");
}

static vd_status put_meta(struct content *content)
{
	unsigned char compacted[17] = { [8] = '_' };
	unsigned char index[8];
	unsigned char term[8];

	vdi_put_big_endian(compacted, (uint64_t) content->compacted);
	vdi_put_big_endian(index, (uint64_t) content->revision + 3);
	vdi_put_big_endian(term, content->server->term);
	VDI_TRY(vdi_bolt_bucket_begin(content->writer, "meta"));
	VDI_TRY(vdi_bolt_put(content->writer, vd_bytes_of("consistent_index"),
			     (struct vd_bytes) { index, sizeof index }));
	if (content->compacted > 0) {
		VDI_TRY(vdi_bolt_put(content->writer, vd_bytes_of("finishedCompactRev"),
				     (struct vd_bytes) { compacted, sizeof compacted }));
		VDI_TRY(vdi_bolt_put(content->writer, vd_bytes_of("scheduledCompactRev"),
				     (struct vd_bytes) { compacted, sizeof compacted }));
	}
	VDI_TRY(vdi_bolt_put(content->writer, vd_bytes_of("storageVersion"),
			     vd_bytes_of(VDI_ETCD_STORAGE_VERSION)));
	VDI_TRY(vdi_bolt_put(content->writer, vd_bytes_of("term"), (struct vd_bytes) { term, sizeof term }));
	return vdi_bolt_bucket_end(content->writer);
}

static vd_status put_everything(struct content *content, struct snapshot *snapshot)
{
	VDI_TRY(put_empty(content, "alarm"));
	VDI_TRY(put_all_auth(content));
	VDI_TRY(put_cluster(content));
	VDI_TRY(put_meta(content));
	return vdi_bolt_finish(content->writer, &snapshot->size);
}

static vd_status open_file(struct vdi_etcdserver *server, struct snapshot *snapshot)
{
	struct vdi_dir *dir = vdi_serve_state_dir(server->state);
	char		name[VDI_DISK_NAME_MAX];

	if (dir == NULL)
		return VD_OK;
	(void) snprintf(name, sizeof name, "snapshot-%016llx.tmp",
			(unsigned long long) vd_env_random(server->env));
	VDI_TRY(vdi_file_open(dir, name, VDI_FILE_CREATE, &snapshot->file, NULL));
	/* Without a name, the file disappears with this process. */
	return vdi_dir_unlink(dir, name, NULL);
}

static vd_status make(struct vdi_etcdserver *server, struct snapshot *snapshot)
{
	struct vdi_bolt_sink sink = { write_out, snapshot };
	struct content	     content = { .server = server };
	vd_status	     status = open_file(server, snapshot);

	snapshot->piece = vdi_alloc(PIECE_SIZE);
	snapshot->digest = EVP_MD_CTX_new();
	if (status == VD_OK && (snapshot->piece == NULL || snapshot->digest == NULL ||
				EVP_DigestInit_ex(snapshot->digest, EVP_sha256(), NULL) != 1))
		status = VD_NOMEM;
	if (status == VD_OK)
		status = vdi_bolt_writer_new(&sink, &content.writer);
	if (status == VD_OK)
		status = put_everything(&content, snapshot);
	(void) vdi_bolt_writer_free(content.writer);
	vdi_free(content.scratch);
	return status;
}

/* ---- Sending it ---- */

struct piece {
	struct vd_bytes bytes;
	uint64_t	remaining;
};

static void write_piece(struct vdi_wire_out *out, const void *arg)
{
	const struct piece *piece = arg;

	vdi_wire_number(out, 2, piece->remaining);
	vdi_wire_bytes(out, 3, piece->bytes);
	vdi_wire_bytes(out, 4, vd_bytes_of(VDI_ETCD_STORAGE_VERSION));
}

static vd_status read_piece(struct snapshot *snapshot, size_t size, struct vd_bytes *ret_bytes)
{
	size_t got = 0;

	if (snapshot->file == NULL) {
		*ret_bytes = (struct vd_bytes) { snapshot->memory + snapshot->sent, size };
		return VD_OK;
	}
	VDI_TRY(vdi_file_read(snapshot->file, snapshot->sent, snapshot->piece, size, &got, NULL));
	*ret_bytes = (struct vd_bytes) { snapshot->piece, got };
	return got == size ? VD_OK : VD_IO;
}

/* Makes the next message: a piece, or the digest of all. */
static vd_status next_piece(struct snapshot *snapshot)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int  digest_size = 0;
	size_t	      size = (size_t) VDI_MIN((int64_t) PIECE_SIZE, snapshot->size - snapshot->sent);
	struct piece  piece = { .remaining = (uint64_t) (snapshot->size - snapshot->sent) - size };

	if (size) {
		VDI_TRY(read_piece(snapshot, size, &piece.bytes));
		if (EVP_DigestUpdate(snapshot->digest, piece.bytes.data, size) != 1)
			return VD_INTERNAL;
		snapshot->sent += (int64_t) size;
	} else {
		if (EVP_DigestFinal_ex(snapshot->digest, digest, &digest_size) != 1)
			return VD_INTERNAL;
		piece.bytes = (struct vd_bytes) { digest, digest_size };
		snapshot->digest_is_sent = true;
	}
	return vdi_wire_encode(write_piece, &piece, &snapshot->waiting);
}

/* False: the call has ended, or waits for the transport. */
static bool send_waiting(struct vdi_serve_call *call, struct snapshot *snapshot)
{
	vd_status status;

	atomic_store(&snapshot->is_blocked, true);
	status = vdi_serve_send(call, VD_BYTES_NONE, snapshot->waiting);
	if (status == VD_FULL)
		return false; /* from here on writable may run concurrently */
	atomic_store(&snapshot->is_blocked, false);
	snapshot->waiting = vdi_rpc_blob_unref(snapshot->waiting);
	if (status == VD_OK && snapshot->digest_is_sent)
		vdi_serve_finish(call, VDI_RPC_OK, "");
	return status == VD_OK && !snapshot->digest_is_sent;
}

static void turn(struct vdi_serve_call *call)
{
	struct snapshot *snapshot = call->state;
	vd_status	 status;

	for (unsigned pieces = 0;
	     pieces < PIECES_PER_RUN && !atomic_load_explicit(&call->is_ended, memory_order_acquire);
	     pieces++) {
		status = snapshot->waiting ? VD_OK : next_piece(snapshot);
		if (status != VD_OK) {
			vdi_serve_fail_status(call, status);
			return;
		}
		if (!send_waiting(call, snapshot))
			return;
	}
	if (!atomic_load_explicit(&call->is_ended, memory_order_acquire))
		vdi_serve_defer(call, vdi_serve_any_range_worker(call->server), turn);
}

static void snapshot_writable(struct vdi_serve_call *call)
{
	struct snapshot *snapshot = call->state;

	if (atomic_exchange(&snapshot->is_blocked, false))
		vdi_serve_defer(call, vdi_serve_any_range_worker(call->server), turn);
}

static void snapshot_free(struct vdi_serve_call *call)
{
	struct snapshot *snapshot = call->state;

	vdi_rpc_blob_unref(snapshot->waiting);
	EVP_MD_CTX_free(snapshot->digest);
	vdi_file_close(snapshot->file);
	vdi_free(snapshot->memory);
	vdi_free(snapshot->piece);
	vdi_free(snapshot);
}

static void work_snapshot(struct vdi_serve_call *call)
{
	vd_mono	  begun = vd_env_now(call->server->env);
	vd_status status = make(call->server, call->state);

	vdi_serve_observe(call->server, VDI_METRIC_ETCD_DISK_BACKEND_SNAPSHOT_DURATION_SECONDS, begun);
	if (status == VD_OK)
		vdi_serve_defer(call, vdi_serve_any_range_worker(call->server), turn);
	else
		vdi_serve_fail_status(call, status == VD_EXPIRED ? VD_UNAVAILABLE :
								   status); /* compaction overtook the walk */
}

void vdi_serve_snapshot_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	(void) message;
	if (!vdi_auth_require_admin(call))
		return;
	call->state = VDI_NEW(struct snapshot);
	if (call->state == NULL) {
		vdi_serve_fail_status(call, VD_NOMEM);
		return;
	}
	call->on_free = snapshot_free;
	call->on_writable = snapshot_writable;
	vdi_serve_defer(call, VDI_SERVE_WORKER_SLOW, work_snapshot);
}
