/* The handlers of an informer are notified of changes, of all present objects when they are registered, and
 * of all objects again after each resync period. */
#include "informer_state.h"

#include "env.h"

static bool may_call(struct vd_informer *informer, const struct vd_informer_registration *registration)
{
	bool may;

	vdi_lock_acquire(&informer->lock);
	may = !registration->is_removed && !informer->is_closed;
	vdi_lock_release(&informer->lock);
	return may;
}

void vdi_informer_notify_add(struct vd_informer *informer, struct vd_object *object)
{
	for (struct vd_informer_registration *to = informer->registrations; to; to = to->next)
		if (to->handler.add && may_call(informer, to))
			to->handler.add(to->handler.arg, object, !to->is_synced);
}

void vdi_informer_notify_update(struct vd_informer *informer, struct vd_object *old_object,
				struct vd_object *object)
{
	for (struct vd_informer_registration *to = informer->registrations; to; to = to->next)
		if (to->handler.update && may_call(informer, to))
			to->handler.update(to->handler.arg, old_object, object);
}

void vdi_informer_notify_remove(struct vd_informer *informer, struct vd_object *object,
				bool unknown_final_state)
{
	for (struct vd_informer_registration *to = informer->registrations; to; to = to->next)
		if (to->handler.remove && may_call(informer, to))
			to->handler.remove(to->handler.arg, object, unknown_final_state);
}

void vdi_informer_notify_synced(struct vd_informer *informer, struct vd_informer_registration *to)
{
	if (to->is_synced)
		return;
	to->is_synced = true;
	if (to->handler.synced && may_call(informer, to))
		to->handler.synced(to->handler.arg);
}

static void notify_everything(struct vd_informer *informer, struct vd_informer_registration *to,
			      bool as_update)
{
	struct vdi_btree_snapshot snapshot;
	struct vdi_btree_cursor	  cursor;
	struct vd_object	 *object;

	vdi_informer_snapshot(informer, &snapshot, &cursor);
	while ((object = vdi_btree_cursor_range_next(&cursor)) && may_call(informer, to)) {
		if (as_update && to->handler.update)
			to->handler.update(to->handler.arg, object, object);
		else if (!as_update && to->handler.add)
			to->handler.add(to->handler.arg, object, true);
	}
	vdi_btree_snapshot_release(&snapshot);
}

void vdi_informer_take_arrivals(struct vd_informer *informer)
{
	struct vd_informer_registration **end = &informer->registrations, *arrivals, *in_order = NULL;

	vdi_lock_acquire(&informer->lock);
	arrivals = informer->arrivals;
	informer->arrivals = NULL;
	vdi_lock_release(&informer->lock);
	while (arrivals) {
		struct vd_informer_registration *next = arrivals->next;

		arrivals->next = in_order;
		in_order = arrivals;
		arrivals = next;
	}
	while (*end)
		end = &(*end)->next;
	*end = in_order;
	for (struct vd_informer_registration *to = in_order; to; to = to->next) {
		to->resync_due = to->handler.resync_period.ns ?
					 vd_mono_add(vd_env_now(informer->env), to->handler.resync_period) :
					 VD_NEVER;
		notify_everything(informer, to, false);
		if (informer->was_filled)
			vdi_informer_notify_synced(informer, to);
	}
}

void vdi_informer_drop_removed(struct vd_informer *informer)
{
	for (struct vd_informer_registration **place = &informer->registrations; *place;) {
		struct vd_informer_registration *registration = *place;
		bool				 is_removed;

		vdi_lock_acquire(&informer->lock);
		is_removed = registration->is_removed;
		vdi_lock_release(&informer->lock);
		if (!is_removed) {
			place = &registration->next;
			continue;
		}
		*place = registration->next;
		if (registration->removed)
			registration->removed(registration->removed_arg);
		vdi_free(registration);
	}
}

/* Returns when the next one is due. */
vd_mono vdi_informer_resync(struct vd_informer *informer)
{
	vd_mono now = vd_env_now(informer->env), due = VD_NEVER;

	for (struct vd_informer_registration *to = informer->registrations; to; to = to->next) {
		if (to->resync_due.ns <= now.ns) {
			if (informer->was_filled)
				notify_everything(informer, to, true);
			to->resync_due = vd_mono_add(now, to->handler.resync_period);
		}
		due.ns = VDI_MIN(due.ns, to->resync_due.ns);
	}
	return due;
}

/* ---- Any thread ---- */

vd_status vdi_informer_check_handler(const struct vd_informer_handler *handler, struct vd_error *reterr)
{
	VDI_REQUIRE(handler, reterr);
	if (handler->resync_period.ns && handler->resync_period.ns < VD_SECONDS(1).ns)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "informer: resync_period must be 0 or at least 1 s");
	return VD_OK;
}

vd_status vd_informer_add_handler(struct vd_informer *informer, const struct vd_informer_handler *handler,
				  struct vd_informer_registration **ret_registration, struct vd_error *reterr)
{
	struct vd_informer_registration *registration;
	bool				 is_closed;

	VDI_REQUIRE(informer, reterr);
	VDI_TRY(vdi_informer_check_handler(handler, reterr));
	registration = VDI_NEW(struct vd_informer_registration);
	if (registration == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a handler");
	registration->handler = *handler;
	vdi_lock_acquire(&informer->lock);
	is_closed = informer->is_closed;
	if (!is_closed) {
		registration->next = informer->arrivals;
		informer->arrivals = registration;
		vd_actor_wake(informer->actor);
	}
	vdi_lock_release(&informer->lock);
	if (is_closed) {
		vdi_free(registration);
		return vd_error_set(reterr, VD_CLOSED, "the informer is closed");
	}
	if (ret_registration)
		*ret_registration = registration;
	return VD_OK;
}

void vd_informer_remove_handler(struct vd_informer *informer, struct vd_informer_registration *registration,
				void (*done)(void *arg), void				      *arg)
{
	vdi_lock_acquire(&informer->lock);
	registration->is_removed = true;
	registration->removed = done;
	registration->removed_arg = arg;
	vd_actor_wake(informer->actor);
	vdi_lock_release(&informer->lock);
}
