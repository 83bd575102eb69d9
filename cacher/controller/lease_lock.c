/* The record of a leader in the spec of a Lease. The lock keeps the text of the Lease that it read or wrote
 * last. A write edits that text, so members that the lock does not use are kept, and its resourceVersion
 * makes the server refuse the write if another candidate wrote meanwhile. Used by one thread at a time, as
 * elections do. */
#include <stdio.h>

#include "k8s_time.h"
#include "kube_requests.h"
#include "tree.h"
#include "usage.h"

#define NS_PER_S 1000000000

struct lease_lock {
	struct vd_leader_lock	 lock; /* first */
	struct vdi_kube_requests requests;
	struct vdi_usage	 usage;
	char			*namespace_name, *name;
	char			*lease; /* text of the Lease seen last; NULL: none */
	size_t			 lease_size;

	/* The outstanding call. */
	vd_leader_lock_fn done;
	void		 *done_arg;
};

static const struct vd_kube_resource leases = {
	.group = "coordination.k8s.io", .version = "v1", .plural = "leases", .kind = "Lease"
};

/* ---- The record and the Lease ---- */

static bool set_text(struct vdi_tree *tree, struct vdi_node *object, const char *key, const char *text)
{
	return vdi_tree_set(tree, object, vd_bytes_of(key), vdi_tree_new_string(tree, vd_bytes_of(text)));
}

static bool set_int(struct vdi_tree *tree, struct vdi_node *object, const char *key, int64_t number)
{
	return vdi_tree_set(tree, object, vd_bytes_of(key), vdi_tree_new_int(tree, number));
}

static bool set_time(struct vdi_tree *tree, struct vdi_node *object, const char *key, vd_wall time)
{
	char   text[VDI_K8S_TIME_SIZE];
	size_t size = vdi_k8s_time_write(time.ns / NS_PER_S, (int32_t) (time.ns % NS_PER_S / 1000), text);

	return vdi_tree_set(tree, object, vd_bytes_of(key),
			    vdi_tree_new_string(tree, (struct vd_bytes) { text, size }));
}

static bool write_record(struct vdi_tree *tree, struct vdi_node *root, const struct vd_leader_record *record)
{
	struct vdi_node *spec = vdi_tree_object_at(tree, root, "spec");

	return spec && set_text(tree, spec, "holderIdentity", record->holder) &&
	       set_int(tree, spec, "leaseDurationSeconds", record->lease_duration_s) &&
	       set_time(tree, spec, "acquireTime", record->acquire_time) &&
	       set_time(tree, spec, "renewTime", record->renew_time) &&
	       set_int(tree, spec, "leaseTransitions", record->leader_transitions);
}

static vd_wall time_of(struct vdi_tree *tree, const struct vdi_node *root, const char *path)
{
	int64_t seconds;
	int32_t nanoseconds;

	if (!vdi_k8s_time_parse(vdi_tree_string_of(vdi_tree_find(tree, root, path)), &seconds,
				&nanoseconds) ||
	    seconds > INT64_MAX / NS_PER_S - 1 || seconds < INT64_MIN / NS_PER_S + 1)
		return (vd_wall) { 0 };
	return (vd_wall) { seconds * NS_PER_S + nanoseconds };
}

static int32_t int_of(struct vdi_tree *tree, const struct vdi_node *root, const char *path)
{
	int64_t number = vdi_tree_int_of(vdi_tree_find(tree, root, path), 0);

	return (int32_t) VDI_MAX(0, VDI_MIN(number, INT32_MAX));
}

/* A NUL inside the server's text becomes the byte 0xff, which no JSON text contains: otherwise the holder
 * would equal a candidate whose identity is its first part, and two candidates would lead. */
static void take_holder(struct vd_bytes text, char holder[VD_LEADER_IDENTITY_SIZE_MAX])
{
	for (size_t i = 0; i < text.size; i++) {
		holder[i] = ((const char *) text.data)[i];
		if (holder[i] == 0)
			holder[i] = (char) 0xff;
	}
}

static vd_status read_record(struct vd_bytes text, struct vd_leader_record *ret_record,
			     struct vd_error *reterr)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	struct vd_bytes	 holder;
	vd_status	 status = vdi_tree_parse(&tree, text, &root, reterr);

	*ret_record = (struct vd_leader_record) { 0 };
	if (status == VD_OK) {
		holder = vdi_tree_string_of(vdi_tree_find(&tree, root, "spec.holderIdentity"));
		if (holder.size >= VD_LEADER_IDENTITY_SIZE_MAX)
			status = vd_error_set(reterr, VD_TOO_BIG, "the holder of the Lease has %zu bytes",
					      holder.size);
		else
			take_holder(holder, ret_record->holder);
		ret_record->lease_duration_s = int_of(&tree, root, "spec.leaseDurationSeconds");
		ret_record->leader_transitions = int_of(&tree, root, "spec.leaseTransitions");
		ret_record->acquire_time = time_of(&tree, root, "spec.acquireTime");
		ret_record->renew_time = time_of(&tree, root, "spec.renewTime");
	}
	vdi_tree_fini(&tree);
	return status;
}

/* ---- Calls ---- */

static void answered(void *arg, vd_status status, const struct vd_kube_answer *answer,
		     const struct vd_error *error)
{
	struct lease_lock      *lock = arg;
	struct vd_leader_record record;
	struct vd_error		local;
	char		       *lease;

	if (status == VD_OK) {
		status = read_record(answer->body, &record, &local);
		error = &local;
	}
	if (status == VD_OK) {
		lease = vdi_strndup(answer->body.data, answer->body.size);
		if (lease) {
			vdi_free(lock->lease);
			lock->lease = lease;
			lock->lease_size = answer->body.size;
		} else {
			status = vd_error_set(&local, VD_NOMEM, "out of memory for a Lease");
		}
	}
	lock->done(lock->done_arg, status, status == VD_OK ? &record : NULL, status == VD_OK ? NULL : error);
}

static vd_status send(struct lease_lock *lock, const char *method, bool has_name, struct vd_bytes body,
		      vd_dur timeout, vd_leader_lock_fn done, void *arg)
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	char		    path[VDI_KUBE_PATH_MAX];

	VDI_TRY(vdi_kube_object_path(&leases, vd_bytes_of(lock->namespace_name),
				     has_name ? vd_bytes_of(lock->name) : VD_BYTES_NONE, NULL, path));
	call.method = method;
	call.path = path;
	call.body = body;
	call.timeout = timeout;
	lock->done = done;
	lock->done_arg = arg;
	return lock->requests.send(lock->requests.peer, &call, answered, lock);
}

static vd_status get(struct vd_leader_lock *base, vd_dur timeout, vd_leader_lock_fn done, void *arg)
{
	struct lease_lock *lock = VDI_CONTAINER_OF(base, struct lease_lock, lock);

	return send(lock, "GET", true, VD_BYTES_NONE, timeout, done, arg);
}

/* Sends the Lease with the record; a new one if it is created. */
static vd_status write(struct lease_lock *lock, const char *method, const struct vd_leader_record *record,
		       vd_dur timeout, vd_leader_lock_fn done, void *arg)
{
	bool		 is_new = lock->lease == NULL || strcmp(method, "POST") == 0;
	struct vd_bytes	 text = { lock->lease, lock->lease_size };
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_out	 out = VDI_OUT_INIT;
	struct vdi_node *root;
	struct vdi_node *metadata;
	vd_status	 status = vdi_tree_parse(&tree, is_new ? vd_bytes_of("{}") : text, &root, NULL);

	if (status == VD_OK && is_new) {
		metadata = vdi_tree_object_at(&tree, root, "metadata");
		if (metadata == NULL || !set_text(&tree, root, "apiVersion", "coordination.k8s.io/v1") ||
		    !set_text(&tree, root, "kind", "Lease") ||
		    !set_text(&tree, metadata, "name", lock->name) ||
		    !set_text(&tree, metadata, "namespace", lock->namespace_name))
			status = VD_NOMEM;
	}
	if (status == VD_OK && !write_record(&tree, root, record))
		status = VD_NOMEM;
	if (status == VD_OK) {
		vdi_tree_write(&out, root);
		status = out.failed ? VD_NOMEM :
				      send(lock, method, strcmp(method, "PUT") == 0, vdi_out_slice(&out),
					   timeout, done, arg);
	}
	vdi_out_fini(&out);
	vdi_tree_fini(&tree);
	return status;
}

static vd_status create(struct vd_leader_lock *base, const struct vd_leader_record *record, vd_dur timeout,
			vd_leader_lock_fn done, void *arg)
{
	return write(VDI_CONTAINER_OF(base, struct lease_lock, lock), "POST", record, timeout, done, arg);
}

static vd_status update(struct vd_leader_lock *base, const struct vd_leader_record *record, vd_dur timeout,
			vd_leader_lock_fn done, void *arg)
{
	struct lease_lock *lock = VDI_CONTAINER_OF(base, struct lease_lock, lock);

	if (lock->lease == NULL)
		return VD_CONFLICT; /* no version was seen */
	return write(lock, "PUT", record, timeout, done, arg);
}

static void free_lock(struct vd_leader_lock *base)
{
	struct lease_lock *lock = VDI_CONTAINER_OF(base, struct lease_lock, lock);

	vdi_usage_end(&lock->usage);
	vdi_free(lock->namespace_name);
	vdi_free(lock->name);
	vdi_free(lock->lease);
	vdi_free(lock);
}

vd_status vdi_lease_lock_new(const struct vdi_kube_requests *requests, const char *namespace_name,
			     const char *name, struct vd_leader_lock **ret_lock, struct vd_error *reterr)
{
	static const struct vd_leader_lock_ops ops = { get, create, update, free_lock };
	struct lease_lock		      *lock;

	VDI_REQUIRE(namespace_name, reterr);
	VDI_REQUIRE(name, reterr);
	VDI_REQUIRE(ret_lock, reterr);
	if (namespace_name[0] == 0 || name[0] == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "a Lease needs a namespace and a name");
	lock = VDI_NEW(struct lease_lock);
	if (lock) {
		lock->lock.ops = &ops;
		lock->requests = *requests;
		lock->namespace_name = vdi_strdup(namespace_name);
		lock->name = vdi_strdup(name);
	}
	if (lock == NULL || lock->namespace_name == NULL || lock->name == NULL) {
		if (lock)
			free_lock(&lock->lock);
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a lock on a Lease");
	}
	lock->usage = (struct vdi_usage) { .kind = "lock on the Lease",
					   .name = lock->name,
					   .closed_by = "vd_leader_election_close or vd_leader_lock_free",
					   .env = requests->env,
					   .uses = { requests->peer } };
	vdi_usage_begin(&lock->usage);
	*ret_lock = &lock->lock;
	return VD_OK;
}
