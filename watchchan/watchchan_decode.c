/* Decodes raw events into typed events: which records are decoded, and which event the predicate makes of
 * them. Workers claim slots one by one; the numbers of the slots keep the order. */
#include <stdio.h>

#include "undecodable.h"
#include "watchchan_state.h"

static bool passes(const struct vdi_watchchan *watchchan, const struct vd_object *object)
{
	return object && (watchchan->options.predicate == NULL ||
			  watchchan->options.predicate(watchchan->options.predicate_arg, object));
}

static vd_status decode(struct vdi_watchchan *watchchan, struct vd_kv *kv, bool is_deleted,
			struct vd_object **ret_object, struct vd_error *error)
{
	struct vd_object *decoded = watchchan->options.decoded ?
					    watchchan->options.decoded(watchchan->options.decoded_arg, kv) :
					    NULL;
	vd_status	  status;

	if (decoded) {
		*ret_object = decoded;
		return VD_OK;
	}
	status = vd_object_new(watchchan->options.codec, kv, ret_object, error);
	if (status == VD_OK)
		return VD_OK;
	if (status == VD_NOMEM)
		return vd_error_set(error, VD_NOMEM, "out of memory while decoding revision %lld",
				    (long long) kv->mod_rev);
	return is_deleted ? vdi_undecodable_deleted(error, kv) : vdi_undecodable(error, kv);
}

/* Derives the event type from the predicate's results for both objects: ADDED if only the new one passes,
 * MODIFIED if both pass, DELETED if only the old one passes. Takes over both references. */
static bool classify(struct vdi_watchchan *watchchan, bool is_delete, struct vd_object *object,
		     struct vd_object *old_object, struct vdi_watchchan_event *event)
{
	bool now = !is_delete && passes(watchchan, object);
	bool before = passes(watchchan, old_object);

	if (watchchan->options.predicate == NULL && !is_delete && object)
		before = event->type == VD_WATCH_MODIFIED;
	if (now) {
		event->type = before ? VD_WATCH_MODIFIED : VD_WATCH_ADDED;
		event->object = object;
		event->old_object = before ? old_object : vd_object_unref(old_object);
	} else if (before) {
		event->type = VD_WATCH_DELETED;
		event->object = old_object;
		vd_object_unref(object);
	} else {
		vd_object_unref(object);
		vd_object_unref(old_object);
	}
	return now || before;
}

static vd_status decode_change(struct vdi_watchchan *watchchan, const struct vdi_raw_event *raw,
			       struct vdi_slot *slot, struct vd_error *error)
{
	bool		  is_create = !raw->is_delete && raw->kv->create_rev == raw->kv->mod_rev;
	struct vd_object *object = NULL, *old_object = NULL;

	if (!is_create && !raw->has_previous) {
		char text[256];

		snprintf(text, sizeof text,
			 "etcd event received with PrevKv=nil (key=\"%.*s\", modRevision=%lld, type=%s)",
			 (int) VDI_MIN(raw->kv->key_size, 150u), raw->kv->data, (long long) raw->revision,
			 raw->is_delete ? "DELETE" : "PUT");
		/* The previous revision was compacted. A reflector that resumed from here would get this
		 * event again, so the watch must end as expired. */
		return vd_error_set(error, VD_EXPIRED,
				    "The resourceVersion for the provided watch is too old: %.300s", text);
	}
	if (!raw->is_delete)
		VDI_TRY(decode(watchchan, raw->kv, false, &object, error));
	if (raw->previous) {
		vd_status status = decode(watchchan, raw->previous, raw->is_delete, &old_object, error);

		/* With skip_undecodable no receiver has seen this previous state, so it is ignored if the
		 * object still exists. */
		if (status != VD_OK &&
		    (raw->is_delete || status == VD_NOMEM || !watchchan->options.skip_undecodable)) {
			vd_object_unref(object);
			return status;
		}
	}
	slot->event.type = is_create ? VD_WATCH_ADDED : VD_WATCH_MODIFIED;
	slot->emit = classify(watchchan, raw->is_delete, object, old_object, &slot->event);
	return VD_OK;
}

static vd_status decode_initial(struct vdi_watchchan *watchchan, const struct vdi_raw_event *raw,
				struct vdi_slot *slot, struct vd_error *error)
{
	VDI_TRY(decode(watchchan, raw->kv, false, &slot->event.object, error));
	slot->event.type = VD_WATCH_ADDED;
	slot->event.initial = true;
	slot->emit = passes(watchchan, slot->event.object);
	if (!slot->emit)
		slot->event.object = vd_object_unref(slot->event.object);
	return VD_OK;
}

void vdi_watchchan_decode_slot(struct vdi_watchchan *watchchan, struct vdi_slot *slot)
{
	const struct vdi_raw_event *raw = &slot->raw;

	memset(&slot->event, 0, sizeof slot->event);
	slot->error.message[0] = 0;
	slot->event.revision = raw->revision;
	slot->event.more_in_revision = raw->more_in_revision;
	slot->event.received = raw->received;
	slot->emit = true;
	slot->status = VD_OK;
	switch (raw->kind) {
	case VDI_RAW_INITIAL: slot->status = decode_initial(watchchan, raw, slot, &slot->error); break;
	case VDI_RAW_CHANGE: slot->status = decode_change(watchchan, raw, slot, &slot->error); break;
	case VDI_RAW_BOOKMARK:
		slot->event.type = VD_WATCH_BOOKMARK;
		slot->event.initial_events_end = raw->initial_events_end;
		break;
	case VDI_RAW_ERROR: slot->event.type = VD_WATCH_ERROR; break;
	}
}

/* ---- Workers ---- */

static void worker_run(void *arg)
{
	struct vdi_decode_worker *worker = arg;
	struct vdi_watchchan	 *watchchan = worker->watchchan;
	bool			  decoded = false;

	vdi_lock_acquire(&watchchan->lock);
	while (watchchan->slot_claim < watchchan->slot_claim_end) {
		struct vdi_slot *slot = vdi_slot_at(watchchan, watchchan->slot_claim++);

		slot->state = VDI_SLOT_DECODING;
		vdi_lock_release(&watchchan->lock);
		vdi_watchchan_decode_slot(watchchan, slot);
		vdi_lock_acquire(&watchchan->lock);
		slot->state = VDI_SLOT_DONE;
		decoded = true;
	}
	vdi_lock_release(&watchchan->lock);
	if (decoded)
		vd_actor_wake(watchchan->actor);
}

static void on_worker_closed(void *arg)
{
	struct vdi_decode_worker *worker = arg;
	struct vdi_watchchan	 *watchchan = worker->watchchan;

	vdi_lock_acquire(&watchchan->lock);
	watchchan->workers_open--;
	/* under the lock: the actor does not end before it sees workers_open == 0 */
	vd_actor_wake(watchchan->actor);
	vdi_lock_release(&watchchan->lock);
}

vd_status vdi_watchchan_workers_open(struct vdi_watchchan *watchchan)
{
	for (unsigned i = 0; i < watchchan->options.decode_workers; i++) {
		struct vdi_decode_worker *worker = &watchchan->workers[i];
		struct vd_actor_options	  options = { .name = "decode", .run = worker_run, .arg = worker };

		worker->watchchan = watchchan;
		VDI_TRY(vd_actor_new(watchchan->env, &options, &worker->actor));
		watchchan->workers_open++;
	}
	return VD_OK;
}

void vdi_watchchan_workers_wake(struct vdi_watchchan *watchchan)
{
	uint64_t waiting;
	unsigned count;

	vdi_lock_acquire(&watchchan->lock);
	watchchan->slot_claim_end = watchchan->slot_tail;
	waiting = watchchan->slot_claim_end - watchchan->slot_claim;
	vdi_lock_release(&watchchan->lock);
	count = (unsigned) VDI_MIN(waiting, (uint64_t) watchchan->options.decode_workers);
	for (unsigned i = 0; i < count; i++)
		vd_actor_wake(watchchan->workers[i].actor);
}

void vdi_watchchan_workers_close(struct vdi_watchchan *watchchan)
{
	for (unsigned i = 0; i < watchchan->options.decode_workers; i++)
		if (watchchan->workers[i].actor) {
			struct vd_actor *actor = watchchan->workers[i].actor;

			watchchan->workers[i].actor = NULL;
			vd_actor_close(actor, on_worker_closed, &watchchan->workers[i]);
		}
}
