/* Calls wait in a list per address, and addresses in a list in the order of their turns. A run of the actor
 * takes one call of the first address. */
#include "serve_logins.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/queue.h>

#include "env.h"
#include "wait.h"

struct address {
	TAILQ_ENTRY(address) node;
	TAILQ_HEAD(, login) logins; /* never empty */
	size_t count;
	char   text[VDI_SERVE_ADDRESS_SIZE];
};

/* State of a call. */
struct login {
	struct vdi_serve_logins *logins;
	struct vdi_serve_call	*call;
	void (*work)(struct vdi_serve_call *call);

	/* Under the lock. */
	TAILQ_ENTRY(login) node;
	struct address *address; /* NULL: not waiting */
};

struct vdi_serve_logins {
	/* Fixed at creation. */
	const struct vd_env *env;
	struct vd_actor	    *actor;

	struct vdi_lock lock; /* "queue" */

	/* Under the lock. */
	TAILQ_HEAD(, address) addresses; /* the first one is served next */
	struct vdi_serve_login_counts counts;
	bool			      is_stopping;
};

void vdi_serve_logins_address(const char *peer, char text[VDI_SERVE_ADDRESS_SIZE])
{
	const char     *colon = strrchr(peer, ':');
	size_t		size = colon ? (size_t) (colon - peer) : strlen(peer);
	bool		is_v6 = size > 2 && peer[0] == '[' && peer[size - 1] == ']';
	struct in6_addr number;

	(void) snprintf(text, VDI_SERVE_ADDRESS_SIZE, "%.*s", (int) size - 2 * is_v6, peer + is_v6);
	if (!is_v6 || inet_pton(AF_INET6, text, &number) != 1)
		return;
	memset(number.s6_addr + 8, 0, 8);
	(void) inet_ntop(AF_INET6, &number, text, INET6_ADDRSTRLEN);
	strcat(text, "/64");
}

/* ---- Under the lock ---- */

static struct address *find_locked(struct vdi_serve_logins *logins, const char *text)
{
	struct address *address;

	TAILQ_FOREACH(address, &logins->addresses, node)
	{
		if (strcmp(address->text, text) == 0)
			return address;
	}
	return NULL;
}

/* Returns NULL if a limit is reached. A failed allocation also returns NULL, but is not counted. */
static struct address *find_place_locked(struct vdi_serve_logins *logins, const char *text)
{
	struct address *address = find_locked(logins, text);

	if (address && address->count == VDI_SERVE_LOGINS_ADDRESS_MAX) {
		logins->counts.rejected_address++;
		return NULL;
	}
	if (logins->counts.waiting == VDI_SERVE_LOGINS_MAX) {
		logins->counts.rejected_total++;
		return NULL;
	}
	if (address)
		return address;
	address = VDI_NEW(struct address);
	if (address == NULL)
		return NULL;
	TAILQ_INIT(&address->logins);
	strcpy(address->text, text);
	TAILQ_INSERT_TAIL(&logins->addresses, address, node);
	return address;
}

static void remove_locked(struct vdi_serve_logins *logins, struct login *login)
{
	struct address *address = login->address;

	login->address = NULL;
	TAILQ_REMOVE(&address->logins, login, node);
	address->count--;
	logins->counts.waiting--;
	if (address->count)
		return;
	TAILQ_REMOVE(&logins->addresses, address, node);
	vdi_free(address);
}

static struct login *take_locked(struct vdi_serve_logins *logins)
{
	struct address *address = TAILQ_FIRST(&logins->addresses);
	struct login   *login;

	if (address == NULL)
		return NULL;
	login = TAILQ_FIRST(&address->logins);
	TAILQ_REMOVE(&logins->addresses, address, node);
	TAILQ_INSERT_TAIL(&logins->addresses, address, node);
	remove_locked(logins, login);
	return login;
}

/* ---- The actor ---- */

static void run(void *arg)
{
	struct vdi_serve_logins *logins = arg;
	struct login		*login;
	bool			 has_more;

	vdi_lock_acquire(&logins->lock);
	login = take_locked(logins);
	has_more = logins->counts.waiting > 0;
	vdi_lock_release(&logins->lock);
	if (has_more)
		vd_actor_wake(logins->actor);
	if (login == NULL)
		return;
	login->work(login->call);
	vdi_serve_call_unref(login->call);
}

/* ---- Calls ---- */

/* The client has disconnected. */
static void on_ended(struct vdi_serve_call *call)
{
	struct login		*login = call->state;
	struct vdi_serve_logins *logins = login->logins;
	bool			 was_waiting;

	vdi_lock_acquire(&logins->lock);
	was_waiting = login->address != NULL;
	if (was_waiting)
		remove_locked(logins, login);
	vdi_lock_release(&logins->lock);
	if (was_waiting)
		vdi_serve_call_unref(call);
}

static void on_free(struct vdi_serve_call *call)
{
	vdi_free(call->state);
}

static bool enqueue(struct vdi_serve_logins *logins, struct login *login, const char *text,
		    bool *ret_is_stopping)
{
	struct address *address;

	vdi_lock_acquire(&logins->lock);
	*ret_is_stopping = logins->is_stopping;
	address = logins->is_stopping ? NULL : find_place_locked(logins, text);
	if (address) {
		login->address = address;
		address->count++;
		logins->counts.waiting++;
		TAILQ_INSERT_TAIL(&address->logins, login, node);
	}
	vdi_lock_release(&logins->lock);
	return address != NULL;
}

void vdi_serve_logins_put(struct vdi_serve_logins *logins, struct vdi_serve_call *call,
			  void (*work)(struct vdi_serve_call *call))
{
	struct login *login = VDI_NEW(struct login);
	char	      text[VDI_SERVE_ADDRESS_SIZE];
	bool	      is_stopping;

	if (login == NULL) {
		vdi_serve_fail_status(call, VD_NOMEM);
		return;
	}
	*login = (struct login) { .logins = logins, .call = call, .work = work };
	call->state = login;
	call->on_ended = on_ended;
	call->on_free = on_free;
	vdi_serve_logins_address(call->ops->peer ? call->ops->peer(call) : "", text);
	vdi_serve_call_ref(call);
	if (enqueue(logins, login, text, &is_stopping)) {
		vd_actor_wake(logins->actor);
		return;
	}
	if (is_stopping)
		vdi_serve_fail(call, VD_ETCD_STOPPED);
	else
		vdi_serve_finish(call, VDI_RPC_RESOURCE_EXHAUSTED,
				 vdi_serve_code_message(VD_ETCD_TOO_MANY_REQUESTS));
	vdi_serve_call_unref(call);
}

void vdi_serve_logins_counts(struct vdi_serve_logins *logins, struct vdi_serve_login_counts *ret_counts)
{
	vdi_lock_acquire(&logins->lock);
	*ret_counts = logins->counts;
	vdi_lock_release(&logins->lock);
}

/* ---- Life ---- */

vd_status vdi_serve_logins_new(struct vdi_etcdserver *server, struct vdi_serve_logins **ret_logins)
{
	struct vdi_serve_logins *logins = VDI_NEW(struct vdi_serve_logins);
	struct vd_actor_options	 options = {
		 .name = "etcd logins", .run = run, .arg = logins, .blocking = true
	};
	vd_status status;

	if (logins == NULL)
		return VD_NOMEM;
	logins->env = server->env;
	vdi_lock_init(&logins->lock, VDI_LOCK_QUEUE);
	TAILQ_INIT(&logins->addresses);
	status = vd_actor_new(server->env, &options, &logins->actor);
	if (status == VD_OK)
		*ret_logins = logins;
	else
		(void) vdi_serve_logins_free(logins);
	return status;
}

void vdi_serve_logins_stop(struct vdi_serve_logins *logins)
{
	struct login *login;

	do {
		vdi_lock_acquire(&logins->lock);
		logins->is_stopping = true;
		login = take_locked(logins);
		vdi_lock_release(&logins->lock);
		if (login) {
			vdi_serve_fail(login->call, VD_ETCD_STOPPED);
			vdi_serve_call_unref(login->call);
		}
	} while (login);
}

struct vdi_serve_logins *vdi_serve_logins_free(struct vdi_serve_logins *logins)
{
	if (logins == NULL)
		return NULL;
	vdi_wait_for_actor_close(logins->env, logins->actor);
	vdi_lock_fini(&logins->lock);
	vdi_free(logins);
	return NULL;
}
