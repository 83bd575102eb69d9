/* An informer looks for its resource, attaches its handler to what is shared, and detaches it at the end:
 *
 *   NEW -> FINDING -> ATTACHED -> DETACHING -> ENDING (the last user: what was shared is closed)
 *             ^                                   |
 *             +-----------------------------------+-> freed, if it is closed
 *
 * vdi_kube_informer_step makes each transition, on the client's actor. A find cannot be given up; an informer
 * that is closed meanwhile is freed by the answer, after its done was called. */
#include "kube_informer_state.h"

#include "env.h"
#include "informer_state.h"
#include "kube_discovery.h"
#include "kube_names.h"
#include "selector.h"

/* ---- The handler, on the shared informer's actor ---- */

/* Adds that are initial for a later informer of the same resource are not initial for a handler that was
 * synced before. */
static void on_add(void *arg, struct vd_object *object, bool initial)
{
	struct vd_kube_informer *informer = arg;

	informer->handler.add(informer->handler.arg, object, initial && !informer->is_synced);
}

static void on_update(void *arg, struct vd_object *old_object, struct vd_object *object)
{
	struct vd_kube_informer *informer = arg;

	informer->handler.update(informer->handler.arg, old_object, object);
}

static void on_remove(void *arg, struct vd_object *last_state, bool unknown_final_state)
{
	struct vd_kube_informer *informer = arg;

	informer->handler.remove(informer->handler.arg, last_state, unknown_final_state);
}

static void wake_waiters_locked(struct vd_kube_informer *informer)
{
	struct vdi_kube_informer_waiter *waiter;

	while ((waiter = informer->waiters) != NULL) {
		informer->waiters = waiter->next;
		vdi_wait_signal(waiter->wait);
	}
}

static void on_synced(void *arg)
{
	struct vd_kube_informer *informer = arg;

	if (informer->is_synced)
		return;
	if (informer->handler.synced)
		informer->handler.synced(informer->handler.arg);
	vdi_lock_acquire(&informer->lock);
	informer->is_synced = true;
	wake_waiters_locked(informer);
	vdi_lock_release(&informer->lock);
}

/* ---- Health ---- */

static void report(struct vd_kube_informer *informer, enum vd_kube_state state, vd_mono retry_at,
		   const struct vd_error *error)
{
	const struct vd_env *env = vdi_kube_env(informer->informers->kube);
	bool		     is_change;

	vdi_lock_acquire(&informer->health_lock);
	is_change = informer->state != state;
	informer->state = state;
	informer->retry_at = retry_at;
	informer->attempts++;
	informer->error = *error;
	vdi_lock_release(&informer->health_lock);
	if (!is_change)
		return;
	vdi_log(env, VD_LOG_WARNING, "kube", "informer of %s: %s", informer->name, error->message);
	vdi_kube_health_changed(informer->informers->kube, &informer->member);
}

static void on_health(struct vdi_kube_member *member, struct vd_kube_health *ret_health)
{
	struct vd_kube_informer *informer = VDI_CONTAINER_OF(member, struct vd_kube_informer, member);

	ret_health->resource = informer->name;
	ret_health->namespace_name = informer->scope.namespace_name;
	ret_health->label_selector = informer->scope.label_selector;
	ret_health->field_selector = informer->scope.field_selector;
	vdi_lock_acquire(&informer->health_lock);
	ret_health->state = informer->state;
	ret_health->attempts = informer->attempts;
	ret_health->retry_at = informer->retry_at;
	ret_health->error = informer->error;
	vdi_lock_release(&informer->health_lock);
}

/* ---- The end ---- */

static void informer_free(struct vd_kube_informer *informer)
{
	vdi_free(informer->name);
	vdi_kube_scope_fini(&informer->scope);
	vdi_lock_fini(&informer->lock);
	vdi_lock_fini(&informer->health_lock);
	vdi_free(informer);
}

static void finish(struct vd_kube_informer *informer)
{
	struct vdi_kube_informers *informers = informer->informers;
	void (*closed)(void *arg);
	void *closed_arg;

	vdi_lock_acquire(&informers->lock);
	if (informer->is_queued)
		STAILQ_REMOVE(&informers->queue, informer, vd_kube_informer, queue_node);
	informer->is_queued = false;
	closed = informer->closed;
	closed_arg = informer->closed_arg;
	vdi_lock_release(&informers->lock);
	informer->step = VDI_KUBE_INFORMER_ENDED;
	vdi_usage_end(&informer->usage);
	if (informer->finds == 0)
		informer_free(informer);
	if (closed)
		closed(closed_arg);
}

/* ---- Attach and detach ---- */

static bool is_closing(struct vd_kube_informer *informer)
{
	bool result;

	vdi_lock_acquire(&informer->informers->lock);
	result = informer->is_closing;
	vdi_lock_release(&informer->informers->lock);
	return result;
}

static void begin_finding(struct vd_kube_informer *informer);

/* Returns true if a call of the informer has not returned; the last one queues it. The call that closes it
 * holds the lock until it needs the informer no more. */
static bool has_callers(struct vd_kube_informer *informer)
{
	bool result;

	vdi_lock_acquire(&informer->lock);
	result = informer->readers > 0 || informer->waiting > 0;
	vdi_lock_release(&informer->lock);
	return result;
}

/* Detaches from the shared informer, which has ended or has other users. */
static void leave(struct vd_kube_informer *informer)
{
	bool is_closed = is_closing(informer), has_to_wait = is_closed && has_callers(informer);

	informer->step = VDI_KUBE_INFORMER_ENDING;
	vdi_lock_acquire(&informer->informers->lock);
	informer->is_moving = informer->is_detached = false;
	informer->has_ended = has_to_wait;
	vdi_lock_release(&informer->informers->lock);
	informer->is_removing = false;
	if (!is_closed)
		begin_finding(informer);
	else if (!has_to_wait)
		finish(informer);
}

static void drop_shared(struct vd_kube_informer *informer, struct vdi_kube_shared *shared)
{
	informer->shared = NULL;
	informer->step = VDI_KUBE_INFORMER_ENDING;
	if (!vdi_kube_shared_close(shared, informer))
		leave(informer);
}

static void retry(struct vd_kube_informer *informer, vd_status status, struct vd_error *error)
{
	error->code = status;
	if (error->message[0] == 0)
		(void) vd_error_set(error, status, "%s", vd_status_sentence(status));
	vdi_kube_backoff_fail(informer->informers->kube, &informer->backoff, error->retry_after_s);
	informer->find_at = informer->backoff.retry_at;
	report(informer, VD_KUBE_RETRYING, informer->find_at, error);
	vdi_kube_member_wake(&informer->member);
}

static vd_status add_handler(struct vd_kube_informer *informer, struct vdi_kube_shared *shared,
			     struct vd_error *reterr)
{
	const struct vd_informer_handler *own = &informer->handler;
	struct vd_informer_handler	  handler = {
		       .add = own->add ? on_add : NULL,
		       .update = own->update ? on_update : NULL,
		       .remove = own->remove ? on_remove : NULL,
		       .synced = on_synced,
		       .arg = informer,
		       .resync_period = own->resync_period,
	};

	return vd_informer_add_handler(shared->informer, &handler, &informer->registration, reterr);
}

static void attach(struct vd_kube_informer *informer, const struct vd_kube_resource *resource)
{
	struct vdi_kube_shared *shared;
	struct vd_error		error = { 0 };
	vd_status		status =
		vdi_kube_shared_get(informer->informers, resource, &informer->scope, &shared, &error);

	if (status == VD_OK)
		status = add_handler(informer, shared, &error);
	if (status != VD_OK) {
		retry(informer, status, &error);
		if (shared && LIST_EMPTY(&shared->users)) {
			vdi_kube_member_remove(&informer->member);
			drop_shared(informer, shared);
		}
		return;
	}
	vdi_kube_member_remove(&informer->member);
	vdi_kube_backoff_reset(&informer->backoff);
	informer->misses = 0;
	LIST_INSERT_HEAD(&shared->users, informer, user_node);
	informer->shared = shared;
	informer->step = VDI_KUBE_INFORMER_ATTACHED;
	vdi_lock_acquire(&informer->lock);
	informer->reading = shared->informer;
	vdi_lock_release(&informer->lock);
	vdi_kube_informers_wake(informer->informers);
}

static void on_detached(void *arg)
{
	struct vd_kube_informer *informer = arg;

	vdi_kube_informers_queue(informer, &informer->is_detached);
}

static void detach(struct vd_kube_informer *informer, bool is_detached)
{
	bool has_readers;

	if (is_detached) {
		LIST_REMOVE(informer, user_node);
		drop_shared(informer, informer->shared);
		return;
	}
	vdi_lock_acquire(&informer->lock);
	informer->reading = NULL;
	has_readers = informer->readers > 0;
	vdi_lock_release(&informer->lock);
	if (has_readers || informer->is_removing)
		return;
	informer->is_removing = true;
	vd_informer_remove_handler(informer->shared->informer, informer->registration, on_detached, informer);
}

/* ---- Finding ---- */

static void on_found(void *arg, vd_status status, const struct vd_kube_resource *resource,
		     const struct vd_error *error)
{
	struct vd_kube_informer *informer = arg;
	struct vd_error		 copy;
	vd_mono			 now;

	informer->finds--;
	if (informer->step == VDI_KUBE_INFORMER_ENDED)
		informer_free(informer);
	else if (informer->step != VDI_KUBE_INFORMER_FINDING)
		return;
	else if (status == VD_OK)
		attach(informer, resource);
	else if (status == VD_NOT_FOUND) {
		now = vdi_kube_now(informer->informers->kube);
		informer->misses++;
		informer->find_at = vd_mono_add(now, VDI_KUBE_INFORMER_FIND_EVERY);
		report(informer, VD_KUBE_REMOVED, informer->find_at, error);
		vdi_kube_member_wake(&informer->member);
	} else {
		copy = *error;
		retry(informer, status, &copy);
	}
}

static vd_mono on_run(struct vdi_kube_member *member, vd_mono now)
{
	struct vd_kube_informer *informer = VDI_CONTAINER_OF(member, struct vd_kube_informer, member);
	const unsigned		 looks = VDI_KUBE_INFORMER_READ_EACH;
	struct vd_error		 error = { 0 };
	vd_status		 status;

	if (informer->finds)
		return VD_NEVER;
	if (now.ns < informer->find_at.ns)
		return informer->find_at;
	informer->finds++;
	status = vdi_kube_find(informer->informers->kube, informer->name,
			       informer->misses % looks ? VDI_KUBE_FIND_KNOWN : VDI_KUBE_FIND, on_found,
			       informer);
	if (status == VD_OK)
		return VD_NEVER;
	informer->finds--;
	retry(informer, status, &error);
	return informer->find_at;
}

static void begin_finding(struct vd_kube_informer *informer)
{
	informer->member.run = on_run;
	informer->member.health = on_health;
	informer->member.close = NULL;
	informer->step = VDI_KUBE_INFORMER_FINDING;
	/* The client cannot be closing, because it is not closed before its informers. */
	VDI_CHECK(vdi_kube_member_add(informer->informers->kube, &informer->member) == VD_OK);
}

void vdi_kube_informer_step(struct vd_kube_informer *informer)
{
	struct vdi_kube_informers *informers = informer->informers;
	bool			   is_closed, is_moving, is_detached, has_ended;

	vdi_lock_acquire(&informers->lock);
	is_closed = informer->is_closing;
	is_moving = informer->is_moving;
	is_detached = informer->is_detached;
	has_ended = informer->has_ended;
	vdi_lock_release(&informers->lock);
	switch (informer->step) {
	case VDI_KUBE_INFORMER_NEW:
		if (is_closed)
			leave(informer);
		else
			begin_finding(informer);
		break;
	case VDI_KUBE_INFORMER_FINDING:
		if (is_closed && !has_callers(informer)) {
			vdi_kube_member_remove(&informer->member);
			finish(informer);
		}
		break;
	case VDI_KUBE_INFORMER_ATTACHED:
		if (!is_closed && !is_moving)
			break;
		informer->step = VDI_KUBE_INFORMER_DETACHING;
		detach(informer, false);
		break;
	case VDI_KUBE_INFORMER_DETACHING: detach(informer, is_detached); break;
	case VDI_KUBE_INFORMER_ENDING:
		if (has_ended)
			leave(informer);
		break;
	case VDI_KUBE_INFORMER_ENDED: break;
	}
}

/* ---- Public ---- */

static vd_status check_scope(const struct vd_kube_scope *scope, struct vd_error *reterr)
{
	struct vdi_label_selector *selector;

	VDI_REQUIRE_BYTES(scope->namespace_name, reterr);
	VDI_REQUIRE_BYTES(scope->label_selector, reterr);
	VDI_REQUIRE_BYTES(scope->field_selector, reterr);
	VDI_TRY(vdi_label_selector_parse(scope->label_selector, &selector, reterr));
	vdi_label_selector_free(selector);
	return VD_OK;
}

static vd_status informer_new(struct vdi_kube_informers *informers, const char *resource,
			      const struct vd_kube_scope *scope, const struct vd_informer_handler *handler,
			      struct vd_kube_informer **ret_informer)
{
	struct vd_kube_informer *informer = VDI_NEW(struct vd_kube_informer);

	if (informer == NULL)
		return VD_NOMEM;
	informer->informers = informers;
	informer->handler = *handler;
	informer->name = vdi_strdup(resource);
	if (informer->name == NULL || vdi_kube_scope_copy(&informer->scope, scope) != VD_OK) {
		vdi_free(informer->name);
		vdi_free(informer);
		return VD_NOMEM;
	}
	vdi_lock_init(&informer->lock, VDI_LOCK_KUBE_INFORMER);
	vdi_lock_init(&informer->health_lock, VDI_LOCK_LEAF);
	informer->usage = (struct vdi_usage) { .kind = "kube informer",
					       .name = informer->name,
					       .closed_by = "vd_kube_informer_close",
					       .env = vdi_kube_env(informers->kube),
					       .uses = { informers->kube, NULL } };
	vdi_usage_begin(&informer->usage);
	*ret_informer = informer;
	return VD_OK;
}

vd_status vd_kube_informer_open(struct vd_kube *kube, const char *resource, const struct vd_kube_scope *scope,
				const struct vd_informer_handler *handler,
				struct vd_kube_informer **ret_informer, struct vd_error *reterr)
{
	static const struct vd_kube_scope everything;
	struct vdi_kube_informers	 *informers;
	vd_status			  status;

	VDI_REQUIRE(kube, reterr);
	VDI_REQUIRE(resource, reterr);
	VDI_REQUIRE(ret_informer, reterr);
	scope = scope ? scope : &everything;
	VDI_TRY(vdi_informer_check_handler(handler, reterr));
	VDI_TRY(vdi_kube_names_check(resource, reterr));
	VDI_TRY(check_scope(scope, reterr));
	status = vdi_kube_informers_of(kube, &informers);
	if (status == VD_OK)
		status = informer_new(informers, resource, scope, handler, ret_informer);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "informer of %s: %s", resource,
				    vd_status_sentence(status));
	vdi_kube_informers_queue(*ret_informer, NULL);
	return VD_OK;
}

static void remove_waiter_locked(struct vd_kube_informer *informer, struct vdi_kube_informer_waiter *waiter)
{
	for (struct vdi_kube_informer_waiter **place = &informer->waiters; *place; place = &(*place)->next)
		if (*place == waiter) {
			*place = waiter->next;
			return;
		}
}

vd_status vd_kube_informer_synced_wait(struct vd_kube_informer *informer, vd_dur timeout)
{
	const struct vd_env	       *env;
	struct vdi_wait			wait;
	struct vdi_kube_informer_waiter waiter = { .wait = &wait };
	bool				is_decided, in_time = true, is_synced;
	vd_mono				due;

	VDI_REQUIRE(informer, NULL);
	env = vdi_kube_env(informer->informers->kube);
	VDI_TRY(vdi_wait_check(env, __func__, NULL));
	due = timeout.ns < 0 ? VD_NEVER : vd_mono_add(vd_env_now(env), timeout);
	vdi_wait_init(&wait, env);
	vdi_lock_acquire(&informer->lock);
	is_decided = informer->is_synced || informer->is_shut;
	informer->waiting++;
	if (!is_decided) {
		waiter.next = informer->waiters;
		informer->waiters = &waiter;
	}
	vdi_lock_release(&informer->lock);
	if (!is_decided)
		in_time = vdi_wait_until(&wait, due);
	vdi_lock_acquire(&informer->lock);
	remove_waiter_locked(informer, &waiter);
	is_synced = informer->is_synced;
	if (--informer->waiting == 0 && informer->is_shut)
		vdi_kube_informers_queue(informer, NULL);
	vdi_lock_release(&informer->lock);
	vdi_wait_fini(&wait);
	return is_synced ? VD_OK : in_time ? VD_CLOSED : VD_TIMEOUT;
}

struct vd_object *vd_kube_informer_get(struct vd_kube_informer *informer, struct vd_bytes namespace_name,
				       struct vd_bytes name)
{
	struct vd_object *object = NULL;

	if (informer == NULL || (name.size && name.data == NULL) ||
	    (namespace_name.size && namespace_name.data == NULL))
		return NULL;
	vdi_lock_acquire(&informer->lock);
	if (informer->reading)
		object = vd_informer_get(informer->reading, namespace_name, name);
	vdi_lock_release(&informer->lock);
	return object;
}

size_t vd_kube_informer_count(struct vd_kube_informer *informer)
{
	size_t count;

	if (informer == NULL)
		return 0;
	vdi_lock_acquire(&informer->lock);
	count = informer->reading ? vd_informer_count(informer->reading) : 0;
	vdi_lock_release(&informer->lock);
	return count;
}

vd_rev vd_kube_informer_revision(struct vd_kube_informer *informer)
{
	vd_rev revision;

	if (informer == NULL)
		return 0;
	vdi_lock_acquire(&informer->lock);
	revision = informer->reading ? vd_informer_revision(informer->reading) : 0;
	vdi_lock_release(&informer->lock);
	return revision;
}

/* Without the lock, because visit may call the informer. The reader keeps what is shared open. */
size_t vd_kube_informer_visit(struct vd_kube_informer *informer, vd_object_visit_fn visit, void *arg)
{
	struct vd_informer *shared;
	size_t		    count = 0;

	if (informer == NULL || visit == NULL)
		return 0;
	vdi_lock_acquire(&informer->lock);
	shared = informer->reading;
	informer->readers += shared != NULL;
	vdi_lock_release(&informer->lock);
	if (shared == NULL)
		return 0;
	count = vd_informer_visit(shared, visit, arg);
	vdi_lock_acquire(&informer->lock);
	if (--informer->readers == 0 && informer->reading == NULL)
		vdi_kube_informers_queue(informer, NULL);
	vdi_lock_release(&informer->lock);
	return count;
}

void vd_kube_informer_close(struct vd_kube_informer *informer, void (*done)(void *arg), void *arg)
{
	if (informer == NULL) {
		if (done)
			done(arg);
		return;
	}
	vdi_lock_acquire(&informer->lock);
	if (informer->is_shut)
		vdi_misuse("vd_kube_informer_close: the informer of %s is closing already", informer->name);
	informer->is_shut = true;
	informer->closed = done;
	informer->closed_arg = arg;
	atomic_store(&informer->usage.is_closing, true);
	wake_waiters_locked(informer);
	vdi_kube_informers_queue(informer, &informer->is_closing);
	vdi_lock_release(&informer->lock);
}

struct vd_kube_informer *vd_kube_informer_close_wait(struct vd_kube_informer *informer)
{
	struct vdi_wait wait;

	if (informer == NULL)
		return NULL;
	vdi_wait_check_close("vd_kube_informer_close_wait", "vd_kube_informer_close");
	vdi_wait_init(&wait, vdi_kube_env(informer->informers->kube));
	vd_kube_informer_close(informer, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	return NULL;
}
