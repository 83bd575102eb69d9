/* A copy of a member's backend file.
 *
 * The file is followed by its SHA-256, whose start is not marked. So the last 32 bytes received are not added
 * to the digest until more arrive. They are passed to the user like all others: etcd's own tools expect them
 * in the file.
 */
#include "etcd_call.h"

#include <openssl/evp.h>
#include <rpc.pb-c.h>

#define DIGEST_SIZE 32

struct digest {
	EVP_MD_CTX   *context;
	unsigned char tail[DIGEST_SIZE]; /* not yet in the digest */
	size_t	      tail_size;
};

static bool feed(struct digest *digest, struct vd_bytes bytes)
{
	const unsigned char *data = bytes.data;
	size_t		     old; /* bytes of the tail that are certainly not the checksum */
	size_t		     from_data;

	if (bytes.size >= DIGEST_SIZE) {
		old = digest->tail_size;
		from_data = bytes.size - DIGEST_SIZE;
	} else {
		old = digest->tail_size + bytes.size > DIGEST_SIZE ?
			      digest->tail_size + bytes.size - DIGEST_SIZE :
			      0;
		from_data = 0;
	}
	if (EVP_DigestUpdate(digest->context, digest->tail, old) != 1 ||
	    EVP_DigestUpdate(digest->context, data, from_data) != 1)
		return false;
	digest->tail_size -= old;
	memmove(digest->tail, digest->tail + old, digest->tail_size);
	if (bytes.size > from_data)
		memcpy(digest->tail + digest->tail_size, data + from_data, bytes.size - from_data);
	digest->tail_size += bytes.size - from_data;
	return true;
}

static bool matches(struct digest *digest)
{
	unsigned char computed[EVP_MAX_MD_SIZE];
	unsigned      size;

	return EVP_DigestFinal_ex(digest->context, computed, &size) == 1 && size == DIGEST_SIZE &&
	       digest->tail_size == DIGEST_SIZE && memcmp(computed, digest->tail, DIGEST_SIZE) == 0;
}

static struct digest *digest_free(struct digest *digest)
{
	if (digest) {
		EVP_MD_CTX_free(digest->context);
		vdi_free(digest);
	}
	return NULL;
}

static struct digest *digest_new(void)
{
	struct digest *digest = VDI_NEW(struct digest);

	if (digest == NULL)
		return NULL;
	digest->context = EVP_MD_CTX_new();
	if (digest->context == NULL || EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL) != 1)
		return digest_free(digest);
	return digest;
}

static bool snapshot_part(struct vdi_etcd_call *call, struct vd_bytes message, struct vd_etcd_error *error)
{
	vd_etcd_snapshot_fn		done = (vd_etcd_snapshot_fn) call->done;
	ProtobufCMessage	       *unpacked;
	Etcdserverpb__SnapshotResponse *answer;
	struct vd_bytes			part;
	bool				is_fed;
	vd_status status = vdi_etcd_proto_unpack(&etcdserverpb__snapshot_response__descriptor, message,
						 &unpacked, error);

	if (status != VD_OK) {
		(void) vdi_etcd_call_unreadable(call, status, error);
		return false;
	}
	answer = (Etcdserverpb__SnapshotResponse *) unpacked;
	part = (struct vd_bytes) { answer->blob.data, answer->blob.len };
	is_fed = feed(call->extra.pointer, part);
	if (is_fed)
		done(call->arg, NULL, part, answer->remaining_bytes, false);
	else
		(void) vdi_etcd_error_set(error, VD_NOMEM, VDI_ETCD_NO_MEMORY_TEXT);
	vdi_etcd_proto_free(unpacked);
	return is_fed;
}

static void snapshot_finished(struct vdi_etcd_call *call, struct vd_etcd_error *error,
			      struct vd_bytes message)
{
	struct vd_etcd_error damaged;

	if (error == NULL && !matches(call->extra.pointer)) {
		(void) vdi_etcd_call_unreadable(
			call,
			vdi_etcd_error_set(&damaged, VD_CORRUPT,
					   "etcdclient: the snapshot's checksum does not match"),
			&damaged);
		error = &damaged;
	}
	digest_free(call->extra.pointer);
	((vd_etcd_snapshot_fn) call->done)(call->arg, error, VD_BYTES_NONE, 0, true);
}

vd_status vd_etcd_snapshot(struct vd_etcd *client, const struct vd_etcd_call *call, vd_etcd_snapshot_fn done,
			   void *arg)
{
	Etcdserverpb__SnapshotRequest request = ETCDSERVERPB__SNAPSHOT_REQUEST__INIT;
	struct vdi_etcd_call	     *started;
	struct digest		     *digest;
	vd_status		      status;

	VDI_TRY(vdi_etcd_call_new(client, call, VDI_ETCD_METHOD_SNAPSHOT, snapshot_finished,
				  (vdi_etcd_any_fn) done, arg, &started));
	digest = digest_new();
	started->part = snapshot_part;
	started->extra.pointer = digest;
	status = digest ? vdi_etcd_proto_pack(&request.base, &started->request) : VD_NOMEM;
	status = vdi_etcd_call_start(started, status, call ? call->ret_id : NULL);
	if (status != VD_OK)
		digest_free(digest);
	return status;
}
