/* Per-client accounts: requests, watches, unsent bytes and response bytes of each client, checked against
 * limits per client; and budgets: concurrent requests of all clients, checked against limits per request kind
 * (kube-apiserver's --max-requests-inflight and --max-mutating-requests-inflight), shared so that one client
 * cannot take a whole budget.
 *
 * A client is an authenticated user; without authentication, the pair of remote address and User-Agent. That
 * keeps a faulty program from starving the others, but does not stop an attacker. Callers count only while a
 * limit is set. Any thread: the table has a lock, the counters are atomic.
 */
#ifndef VDI_ACCOUNTS_H
#define VDI_ACCOUNTS_H

#include <stdatomic.h>

#include "base.h"
#include "lock.h"

#define VDI_ACCOUNT_KEY_MAX 256
#define VDI_ACCOUNT_BUCKETS 1024

enum vdi_request_kind { VDI_REQUEST_READING, VDI_REQUEST_MUTATING, VDI_REQUEST_KINDS };

/* Concurrent requests of one kind, of all clients. */
struct vdi_budget {
	int64_t		max; /* fixed; 0: no limit */
	_Atomic int64_t taken;
	_Atomic int64_t clients; /* clients with at least one */
};

struct vdi_account {
	struct vdi_account *next; /* guarded by the table's lock, as users is */
	uint64_t	    users;
	_Atomic int64_t	    requests;
	/* requests by kind, counted while a budget has a limit */
	_Atomic int64_t kinds[VDI_REQUEST_KINDS];
	_Atomic int64_t watches;
	_Atomic int64_t unsent_bytes; /* of watches */
	_Atomic int64_t answer_bytes; /* of responses buffered for the client */
	size_t		key_size;
	char		key[];
};

struct vdi_accounts {
	struct vdi_lock	    lock; /* VDI_LOCK_LEAF */
	struct vdi_account *buckets[VDI_ACCOUNT_BUCKETS];
	size_t		    count;
	struct vdi_budget   budgets[VDI_REQUEST_KINDS]; /* max: set before the first use */
};

void vdi_accounts_init(struct vdi_accounts *accounts);
/* No account may be in use. */
void vdi_accounts_fini(struct vdi_accounts *accounts);
/* Returns the account of a client, with one reference for the caller. VD_NOMEM. The key is truncated at
 * VDI_ACCOUNT_KEY_MAX. */
VDI_MUST_USE vd_status vdi_account_get(struct vdi_accounts *accounts, struct vd_bytes address,
				       struct vd_bytes agent, struct vdi_account **ret_account);
/* Adds a reference. Returns account. */
struct vdi_account *vdi_account_use(struct vdi_accounts *accounts, struct vdi_account *account);
/* Drops a reference; the last one frees the account. NULL is fine. */
void vdi_account_put(struct vdi_accounts *accounts, struct vdi_account *account);

/* Counts one more request of the kind for account if the budget has room and the client stays within its
 * share: while n clients have requests in flight, each may have 1/(n + 1) of the budget, so that one share is
 * free for the next client. Returns false, and counts nothing, otherwise. Never waits. */
bool vdi_budget_take(struct vdi_accounts *accounts, struct vdi_account *account, enum vdi_request_kind kind);
/* Ends a request that vdi_budget_take counted. */
void vdi_budget_give_back(struct vdi_accounts *accounts, struct vdi_account *account,
			  enum vdi_request_kind kind);
/* Calls each for every account, under the table's lock. */
void vdi_accounts_each(struct vdi_accounts *accounts,
		       void (*each)(void *arg, const struct vdi_account *account), void *arg);

/* Counts one more unless that would exceed max (0: no limit). */
static inline bool vdi_account_admit(_Atomic int64_t *counter, int64_t max)
{
	if (atomic_fetch_add_explicit(counter, 1, memory_order_relaxed) < max || max == 0)
		return true;
	atomic_fetch_sub_explicit(counter, 1, memory_order_relaxed);
	return false;
}

#endif
