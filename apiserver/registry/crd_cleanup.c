/* Deletes run concurrently, one per slot. A call completes on a thread of the store, which only stores the
 * result in the slot and sets its state; the actor reads it in its next run. */
#include "crd_cleanup.h"

#include "cacher_state.h"
#include "env.h"
#include "object_call.h"

enum { SLOT_FREE, SLOT_BUSY, SLOT_ANSWERED };

struct slot {
	struct vdi_crd_cleanup *cleanup;
	struct vdi_object_call	call; /* its names are borrowed from the list */
	_Atomic int		state;
};

struct vdi_crd_cleanup {
	struct vdi_crd_cleanup_host host;
	struct vdi_resource	   *resource; /* one reference */
	struct vd_list		   *list;
	vd_status		    list_status;
	_Atomic int		    list_state; /* SLOT_*, as in a slot */
	size_t			    found, stayed;
	struct slot		    slots[VDI_CRD_CLEANUP_CALLS];
};

struct vdi_crd_cleanup *vdi_crd_cleanup_new(const struct vdi_crd_cleanup_host *host,
					    struct vdi_resource		      *resource)
{
	struct vdi_crd_cleanup *cleanup = VDI_NEW(struct vdi_crd_cleanup);

	if (cleanup == NULL)
		return NULL;
	cleanup->host = *host;
	cleanup->resource = vdi_resource_ref(resource);
	for (size_t i = 0; i < VDI_CRD_CLEANUP_CALLS; i++)
		cleanup->slots[i].cleanup = cleanup;
	return cleanup;
}

struct vdi_crd_cleanup *vdi_crd_cleanup_free(struct vdi_crd_cleanup *cleanup)
{
	if (cleanup == NULL)
		return NULL;
	for (size_t i = 0; i < VDI_CRD_CLEANUP_CALLS; i++)
		vdi_object_call_fini(&cleanup->slots[i].call);
	(void) vd_list_free(cleanup->list);
	(void) vdi_resource_unref(cleanup->resource);
	vdi_free(cleanup);
	return NULL;
}

bool vdi_crd_cleanup_is_idle(const struct vdi_crd_cleanup *cleanup)
{
	if (atomic_load(&cleanup->list_state) == SLOT_BUSY)
		return false;
	for (size_t i = 0; i < VDI_CRD_CLEANUP_CALLS; i++)
		if (atomic_load(&cleanup->slots[i].state) == SLOT_BUSY)
			return false;
	return true;
}

/* ---- One object ---- */

static void answered(struct vdi_object_call *call)
{
	struct slot		   *slot = call->arg;
	struct vdi_crd_cleanup_host host = slot->cleanup->host;

	atomic_store(&slot->state, SLOT_ANSWERED);
	host.end(host.arg); /* the slot may be freed by now */
}

static void start(struct slot *slot, struct vd_object *object)
{
	static const struct vdi_delete_options options;
	struct vdi_crd_cleanup		      *cleanup = slot->cleanup;

	vdi_object_call_fini(&slot->call);
	slot->call = (struct vdi_object_call) { .resource = cleanup->resource,
						.namespace_name = vd_object_namespace(object),
						.name = vd_object_name(object),
						.options = &options,
						.now = vd_env_wall(cleanup->host.env),
						.done = answered,
						.arg = slot };
	cleanup->host.begin(cleanup->host.arg);
	atomic_store(&slot->state, SLOT_BUSY);
	vdi_object_call_delete(&slot->call);
}

static void take_answer(struct slot *slot)
{
	atomic_store(&slot->state, SLOT_FREE);
	if (slot->call.result != VD_NOT_FOUND && !(slot->call.result == VD_OK && slot->call.is_removed))
		slot->cleanup->stayed++;
}

/* ---- A pass over all objects ---- */

static void listed(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	struct vdi_crd_cleanup	   *cleanup = arg;
	struct vdi_crd_cleanup_host host = cleanup->host;

	(void) error;
	cleanup->list = list;
	cleanup->list_status = status;
	atomic_store(&cleanup->list_state, SLOT_ANSWERED);
	host.end(host.arg);
}

static void start_list(struct vdi_crd_cleanup *cleanup)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	vd_status	       status;

	cleanup->found = cleanup->stayed = 0;
	cleanup->host.begin(cleanup->host.arg);
	atomic_store(&cleanup->list_state, SLOT_BUSY);
	status = vd_cacher_list(cleanup->resource->cacher, &options, listed, cleanup, NULL);
	if (status != VD_OK)
		listed(cleanup, status, NULL, NULL);
}

static bool work(struct vdi_crd_cleanup *cleanup)
{
	bool is_busy = false;

	for (size_t i = 0; i < VDI_CRD_CLEANUP_CALLS; i++) {
		struct slot	 *slot = &cleanup->slots[i];
		struct vd_object *object;

		if (atomic_load(&slot->state) == SLOT_ANSWERED)
			take_answer(slot);
		if (atomic_load(&slot->state) == SLOT_FREE &&
		    (object = vd_list_next(cleanup->list)) != NULL) {
			cleanup->found++;
			start(slot, object);
		}
		is_busy |= atomic_load(&slot->state) != SLOT_FREE;
	}
	return is_busy;
}

vd_status vdi_crd_cleanup_run(struct vdi_crd_cleanup *cleanup, size_t *ret_left)
{
	*ret_left = 0;
	if (atomic_load(&cleanup->list_state) == SLOT_FREE) {
		start_list(cleanup);
		return VD_AGAIN;
	}
	if (atomic_load(&cleanup->list_state) == SLOT_BUSY)
		return VD_AGAIN;
	if (cleanup->list && work(cleanup))
		return VD_AGAIN;
	cleanup->list = vd_list_free(cleanup->list);
	atomic_store(&cleanup->list_state, SLOT_FREE);
	/* Undecodable objects are in no list, but must not stay behind. */
	*ret_left = cleanup->stayed + vdi_quarantine_count(&cleanup->resource->cacher->quarantine);
	if (cleanup->list_status != VD_OK || *ret_left)
		return VD_NOT_READY;
	if (cleanup->found == 0)
		return VD_OK;
	start_list(cleanup);
	return VD_AGAIN;
}
