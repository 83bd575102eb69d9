/* The client: members, the exchanges that they start, and its end.
 *
 *   any thread                     actor of the transport
 *   member_add  --+
 *   member_wake --+-> inbox -----> vdi_kube_run: members to wake, then members that are due
 *   close --------+                  |
 *                                    +-> start -> exchange (ours) -> exchange of the transport
 *
 * The inbox is a list of members under a lock of its own, so that a wake costs a flag for a member that
 * is in it already. An exchange is wrapped, so that the client sees the head and the end of each one:
 * that gives the health of the cluster, and tells the identity about a 401.
 *
 * Close: no member can be added; each member with a function close ends itself; after the last member,
 * the transport is closed, and after that the client is freed. */
#include "kube_state.h"

#define BACKOFF_MIN_NS ((int64_t) 100 * 1000000)
#define BACKOFF_MAX_NS ((int64_t) 30 * 1000000000)
#define BACKOFF_DOUBLED_MAX 9
#define RETRY_AFTER_S_MAX 600

const struct vd_env *vdi_kube_env(const struct vd_kube *kube)
{
	return kube->env;
}

const struct vd_kube_options *vdi_kube_options(const struct vd_kube *kube)
{
	return &kube->options;
}

vd_mono vdi_kube_now(const struct vd_kube *kube)
{
	return vd_env_now(kube->env);
}

const char *vd_kube_server(const struct vd_kube *kube)
{
	return kube ? kube->server : "";
}

const char *vd_kube_namespace(const struct vd_kube *kube)
{
	return kube ? kube->namespace_name : "";
}

struct vdi_kube_parts *vdi_kube_parts_of(struct vd_kube *kube)
{
	return &kube->parts;
}

/* ---- Members ---- */

static void wake_locked(struct vd_kube *kube, struct vdi_kube_member *member)
{
	if (member->is_woken)
		return;
	member->is_woken = true;
	TAILQ_INSERT_TAIL(&kube->woken, member, wake_node);
	if (kube->woken_count++ == 0)
		kube->transport->ops->wake(kube->transport);
}

vd_status vdi_kube_member_add(struct vd_kube *kube, struct vdi_kube_member *member)
{
	vd_status status = VD_CLOSED;

	member->kube = kube;
	member->is_listed = member->is_woken = false;
	memset(&member->timer, 0, sizeof member->timer);
	vdi_lock_acquire(&kube->inbox_lock);
	if (!kube->is_closing) {
		kube->member_count++;
		wake_locked(kube, member);
		status = VD_OK;
	}
	vdi_lock_release(&kube->inbox_lock);
	return status;
}

void vdi_kube_member_wake(struct vdi_kube_member *member)
{
	struct vd_kube *kube = member->kube;

	vdi_lock_acquire(&kube->inbox_lock);
	wake_locked(kube, member);
	vdi_lock_release(&kube->inbox_lock);
}

void vdi_kube_member_remove(struct vdi_kube_member *member)
{
	struct vd_kube *kube = member->kube;

	if (member->is_listed) {
		vdi_lock_acquire(&kube->lock);
		if (kube->next == member)
			kube->next = LIST_NEXT(member, node);
		LIST_REMOVE(member, node);
		vdi_lock_release(&kube->lock);
		vdi_timer_heap_remove(&kube->timers, &member->timer);
	}
	vdi_lock_acquire(&kube->inbox_lock);
	if (member->is_woken) {
		TAILQ_REMOVE(&kube->woken, member, wake_node);
		kube->woken_count--;
	}
	kube->member_count--;
	vdi_lock_release(&kube->inbox_lock);
	if (kube->running == member)
		kube->running = NULL;
}

/* Takes a member that was woken; NULL: none. */
static struct vdi_kube_member *take_woken(struct vd_kube *kube)
{
	struct vdi_kube_member *member;

	vdi_lock_acquire(&kube->inbox_lock);
	member = TAILQ_FIRST(&kube->woken);
	if (member) {
		TAILQ_REMOVE(&kube->woken, member, wake_node);
		kube->woken_count--;
		member->is_woken = false;
	}
	vdi_lock_release(&kube->inbox_lock);
	if (member && !member->is_listed) {
		member->is_listed = true;
		vdi_lock_acquire(&kube->lock);
		LIST_INSERT_HEAD(&kube->members, member, node);
		vdi_lock_release(&kube->lock);
	}
	return member;
}

static void run_member(struct vd_kube *kube, struct vdi_kube_member *member)
{
	vd_mono now = vd_env_now(kube->env), due;

	kube->running = member;
	due = member->run(member, now);
	if (due.ns <= now.ns)
		due.ns = now.ns + 1; /* in the next run */
	if (kube->running == member)
		vdi_timer_heap_set(&kube->timers, &member->timer, due);
	kube->running = NULL;
}

static size_t woken_count(struct vd_kube *kube)
{
	size_t count;

	vdi_lock_acquire(&kube->inbox_lock);
	count = kube->woken_count;
	vdi_lock_release(&kube->inbox_lock);
	return count;
}

/* Members that are woken meanwhile are left to the next run, so that the network has its turn. */
static void run_members(struct vd_kube *kube)
{
	struct vdi_kube_member *member;
	struct vdi_timer       *timer;
	vd_mono			now = vd_env_now(kube->env);
	size_t			left;

	for (left = woken_count(kube); left && (member = take_woken(kube)) != NULL; left--)
		run_member(kube, member);
	while ((timer = vdi_timer_heap_pop_due(&kube->timers, now)) != NULL)
		run_member(kube, VDI_CONTAINER_OF(timer, struct vdi_kube_member, timer));
}

/* ---- Exchanges ---- */

void vdi_kube_backoff_fail(struct vd_kube *kube, struct vdi_kube_backoff *backoff, unsigned retry_after_s)
{
	unsigned doubled = VDI_MIN(backoff->attempts, BACKOFF_DOUBLED_MAX);
	int64_t	 delay = VDI_MIN(BACKOFF_MIN_NS << doubled, BACKOFF_MAX_NS);
	int64_t	 asked = (int64_t) VDI_MIN(retry_after_s, RETRY_AFTER_S_MAX) * 1000000000;

	if (backoff->attempts < UINT32_MAX)
		backoff->attempts++;
	delay = delay / 2 + (int64_t) vd_env_random_below(kube->env, (uint64_t) delay / 2 + 1);
	if (asked > 0)
		delay = VDI_MAX(delay,
				asked + (int64_t) vd_env_random_below(kube->env, (uint64_t) asked / 4 + 1));
	backoff->retry_at = vd_mono_add(vd_env_now(kube->env), (vd_dur) { delay });
	vdi_lock_acquire(&kube->lock);
	if (kube->health.state == VD_KUBE_RETRYING && backoff->retry_at.ns < kube->health.retry_at.ns)
		kube->health.retry_at = backoff->retry_at;
	vdi_lock_release(&kube->lock);
}

void vdi_kube_backoff_reset(struct vdi_kube_backoff *backoff)
{
	backoff->attempts = 0;
	backoff->retry_at = (vd_mono) { 0 };
}

/* Calls options.changed with the cluster's health. */
static void report(struct vd_kube *kube)
{
	struct vd_kube_health health;

	if (kube->options.changed == NULL)
		return;
	vdi_lock_acquire(&kube->lock);
	health = kube->health;
	vdi_lock_release(&kube->lock);
	kube->options.changed(kube->options.changed_arg, &health);
}

static void note_answer(struct vd_kube *kube)
{
	struct vd_kube_health *health = &kube->health;
	bool		       is_change;

	vdi_lock_acquire(&kube->lock);
	is_change = health->state != VD_KUBE_WATCHING;
	health->state = VD_KUBE_WATCHING;
	health->heard = vd_env_now(kube->env);
	health->retry_at = (vd_mono) { 0 };
	health->attempts = 0;
	vdi_lock_release(&kube->lock);
	if (is_change)
		report(kube);
}

static void note_failure(struct vd_kube *kube, const struct vd_error *error)
{
	struct vd_kube_health *health = &kube->health;
	bool		       is_change;

	vdi_lock_acquire(&kube->lock);
	is_change = health->state != VD_KUBE_RETRYING;
	health->state = VD_KUBE_RETRYING;
	if (is_change)
		health->retry_at = VD_NEVER; /* set by vdi_kube_backoff_fail */
	health->attempts++;
	health->error = *error;
	vdi_lock_release(&kube->lock);
	if (is_change)
		report(kube);
}

/* One exchange of a member, around that of the transport. */
struct exchange {
	struct vdi_kube_exchange  exchange;
	struct vd_kube		 *kube;
	struct vdi_kube_exchange *inner;
	struct vdi_kube_handler	  handler; /* the member's */
	uint64_t		  identity;
	bool			  has_head;
};

static void on_head(void *arg, const struct vdi_kube_head *head)
{
	struct exchange *exchange = arg;
	struct vd_kube	*kube = exchange->kube;

	exchange->has_head = true;
	if (kube->identity && head->code == 401)
		vdi_kube_identity_refused(kube->identity, exchange->identity);
	else if (kube->identity && head->code < 500)
		vdi_kube_identity_accepted(kube->identity);
	note_answer(kube);
	exchange->handler.head(exchange->handler.arg, head);
}

static bool on_body(void *arg, struct vd_bytes bytes)
{
	struct exchange *exchange = arg;

	return exchange->handler.body(exchange->handler.arg, bytes);
}

static void on_ended(void *arg, vd_status status, const struct vd_error *error)
{
	struct exchange *exchange = arg, ended = *exchange;

	vdi_free(exchange);
	ended.kube->exchange_count--;
	if (status != VD_OK && !ended.has_head)
		note_failure(ended.kube, error);
	ended.handler.ended(ended.handler.arg, status, error);
}

static vd_status identify(struct vd_kube *kube, struct vdi_kube_credential *ret_credential,
			  struct vd_error *reterr)
{
	struct vd_error	    error = { 0 };
	struct vdi_kube_tls tls;
	vd_status	    status;

	if (kube->is_closed_to_members)
		return vd_error_set(reterr, VD_CLOSED, "the client is being closed");
	status = vdi_kube_identity_take(kube->identity, ret_credential, &error);
	if (status == VD_FORBIDDEN)
		note_failure(kube, &error);
	if (status != VD_OK) {
		if (reterr)
			*reterr = error;
		return status;
	}
	if (!ret_credential->tls_changed)
		return VD_OK;
	vdi_kube_identity_tls(kube->identity, &tls);
	VDI_TRY(kube->transport->ops->configure(kube->transport, &tls, reterr));
	vdi_kube_identity_configured(kube->identity);
	return VD_OK;
}

vd_status vdi_kube_start(struct vd_kube *kube, const struct vdi_kube_http_request *request,
			 const struct vdi_kube_handler *handler, struct vdi_kube_exchange **ret_exchange,
			 struct vd_error *reterr)
{
	struct exchange		    *exchange;
	struct vdi_kube_handler	     own = { on_head, on_body, on_ended, NULL };
	struct vdi_kube_http_request identified = *request;
	struct vdi_kube_credential   credential;
	vd_status		     status;

	VDI_TRY(identify(kube, &credential, reterr));
	exchange = VDI_NEW(struct exchange);
	if (exchange == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	exchange->kube = kube;
	exchange->handler = *handler;
	exchange->exchange.transport = kube->transport;
	exchange->identity = credential.generation;
	own.arg = exchange;
	identified.token = credential.token;
	status = kube->transport->ops->start(kube->transport, &identified, &own, &exchange->inner, reterr);
	if (status != VD_OK) {
		vdi_free(exchange);
		return status;
	}
	kube->exchange_count++;
	*ret_exchange = &exchange->exchange;
	return VD_OK;
}

void vdi_kube_cancel(struct vdi_kube_exchange *base)
{
	struct exchange *exchange = VDI_CONTAINER_OF(base, struct exchange, exchange);

	exchange->kube->exchange_count--;
	base->transport->ops->cancel(exchange->inner);
	vdi_free(exchange);
}

void vdi_kube_resume(struct vdi_kube_exchange *base)
{
	base->transport->ops->resume(VDI_CONTAINER_OF(base, struct exchange, exchange)->inner);
}

/* ---- Identity ---- */

bool vdi_kube_has_next_identity(const struct vd_kube *kube)
{
	return kube->identity && vdi_kube_identity_can_change(kube->identity);
}

/* On the actor of the credential program. */
void vdi_kube_on_identity(void *arg)
{
	struct vd_kube *kube = arg;

	atomic_store(&kube->identity_changed, true);
	vdi_kube_member_wake(&kube->identity_member);
}

static void on_identity_closed(void *arg)
{
	struct vd_kube *kube = arg;

	/* Under the lock: the actor, which may run already, cannot remove the member before it is woken. */
	vdi_lock_acquire(&kube->inbox_lock);
	atomic_store(&kube->identity_closed, true);
	wake_locked(kube, &kube->identity_member);
	vdi_lock_release(&kube->inbox_lock);
}

/* Wakes all members when a credential came, or failed to; runs the program in time. */
vd_mono vdi_kube_run_identity(struct vdi_kube_member *own, vd_mono now)
{
	struct vd_kube		  *kube = own->kube;
	struct vdi_kube_credential credential;
	struct vdi_kube_member	  *member;
	bool			   is_changed = atomic_exchange(&kube->identity_changed, false);
	vd_status		   status = VD_OK;

	if (atomic_load(&kube->identity_closed))
		vdi_kube_member_remove(own);
	if (kube->identity == NULL)
		return VD_NEVER;
	if (is_changed || vdi_kube_identity_due(kube->identity).ns <= now.ns)
		status = vdi_kube_identity_take(kube->identity, &credential, NULL);
	(void) status; /* each member that needs it asks again and gets the error */
	LIST_FOREACH(member, &kube->members, node)
	if (is_changed && member != own)
		vdi_kube_member_wake(member);
	return vdi_kube_identity_due(kube->identity);
}

void vdi_kube_close_identity(struct vdi_kube_member *own)
{
	struct vd_kube		 *kube = own->kube;
	struct vdi_kube_identity *identity = kube->identity;

	kube->identity = NULL;
	vdi_kube_identity_close(identity, on_identity_closed, kube);
}

/* ---- Health ---- */

void vdi_kube_health_changed(struct vd_kube *kube, struct vdi_kube_member *member)
{
	struct vd_kube_health health = { 0 };

	if (kube->options.changed == NULL || member->health == NULL)
		return;
	vdi_lock_acquire(&kube->lock);
	member->health(member, &health);
	vdi_lock_release(&kube->lock);
	kube->options.changed(kube->options.changed_arg, &health);
}

void vd_kube_health(struct vd_kube *kube, vd_kube_health_fn visit, void *arg)
{
	struct vdi_kube_member *member;

	if (kube == NULL || visit == NULL)
		return;
	vdi_lock_acquire(&kube->lock);
	visit(arg, &kube->health);
	LIST_FOREACH(member, &kube->members, node)
	{
		struct vd_kube_health health = { 0 };

		if (member->health == NULL)
			continue;
		member->health(member, &health);
		visit(arg, &health);
	}
	vdi_lock_release(&kube->lock);
}

/* ---- The actor ---- */

static void on_transport_closed(void *arg)
{
	struct vd_kube *kube = arg;
	void (*done)(void *done_arg) = kube->close_done;
	void *done_arg = kube->close_done_arg;

	vdi_usage_end(&kube->usage);
	vdi_kube_free(kube);
	if (done)
		done(done_arg);
}

static void close_members(struct vd_kube *kube)
{
	struct vdi_kube_member *member;

	for (member = LIST_FIRST(&kube->members); member; member = kube->next) {
		kube->next = LIST_NEXT(member, node);
		if (member->close)
			member->close(member);
	}
	kube->next = NULL;
}

/* True: nothing is left to run. */
static bool run_close(struct vd_kube *kube)
{
	size_t member_count;

	if (!kube->is_closed_to_members) {
		kube->is_closed_to_members = true; /* the run before listed all members */
		close_members(kube);
	}
	vdi_lock_acquire(&kube->inbox_lock);
	member_count = kube->member_count;
	vdi_lock_release(&kube->inbox_lock);
	if (member_count)
		return false;
	VDI_CHECK(kube->exchange_count == 0);
	kube->is_transport_closed = true;
	kube->transport->ops->close(kube->transport, on_transport_closed, kube);
	return true;
}

vd_mono vdi_kube_run(void *arg)
{
	struct vd_kube *kube = arg;
	bool		is_closing, is_open;

	if (kube->is_transport_closed)
		return VD_NEVER;
	vdi_lock_acquire(&kube->inbox_lock);
	is_open = kube->is_open;
	is_closing = kube->is_closing;
	vdi_lock_release(&kube->inbox_lock);
	if (!is_open)
		return VD_NEVER; /* vdi_kube_open_over wakes when it is done */
	run_members(kube);
	if (is_closing && run_close(kube))
		return VD_NEVER;
	return woken_count(kube) ? vd_env_now(kube->env) : vdi_timer_heap_next_due(&kube->timers);
}
