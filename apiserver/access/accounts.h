/* Who takes how much: the requests, watches and unsent bytes of each client, against limits for one client;
 * and the requests of all clients, against limits for all of which nobody gets everything.
 *
 * A client is a user; where nobody is authenticated, an address with a User-Agent: enough to keep one
 * program's mistake from being everybody's, no protection against malice. Counted only while a limit is set.
 * Any thread; the table has a lock, the counters none.
 */
#ifndef VDI_ACCOUNTS_H
#define VDI_ACCOUNTS_H

#include <stdatomic.h>

#include "base.h"
#include "lock.h"

#define VDI_ACCOUNT_KEY_MAX 256
#define VDI_ACCOUNT_BUCKETS 1024

enum vdi_request_kind { VDI_REQUEST_READING, VDI_REQUEST_MUTATING, VDI_REQUEST_KINDS };

/* Requests of one kind under way, of all clients. */
struct vdi_budget {
	int64_t		max; /* fixed; 0: no limit */
	_Atomic int64_t taken;
	_Atomic int64_t clients; /* who have some */
};

struct vdi_account {
	struct vdi_account *next; /* the table's lock, as users */
	uint64_t	    users;
	_Atomic int64_t	    requests;
	_Atomic int64_t	    kinds[VDI_REQUEST_KINDS]; /* the same, by kind; counted while there is a budget */
	_Atomic int64_t	    watches;
	_Atomic int64_t	    unsent_bytes; /* of watches */
	_Atomic int64_t	    answer_bytes; /* of answers that are kept for it */
	size_t		    key_size;
	char		    key[];
};

struct vdi_accounts {
	struct vdi_lock	    lock; /* VDI_LOCK_LEAF */
	struct vdi_account *buckets[VDI_ACCOUNT_BUCKETS];
	size_t		    count;
	struct vdi_budget   budgets[VDI_REQUEST_KINDS]; /* max: set before the first use */
};

void vdi_accounts_init(struct vdi_accounts *accounts);
/* Nobody uses one any more. */
void vdi_accounts_fini(struct vdi_accounts *accounts);
/* The account of a client; the caller is one of its users. VD_NOMEM. The key is cut at
 * VDI_ACCOUNT_KEY_MAX. */
VDI_MUST_USE vd_status vdi_account_get(struct vdi_accounts *accounts, struct vd_bytes address,
				       struct vd_bytes agent, struct vdi_account **ret_account);
/* One user more. Returns account. */
struct vdi_account *vdi_account_use(struct vdi_accounts *accounts, struct vdi_account *account);
/* One user fewer; the last one takes it along. NULL is fine. */
void vdi_account_put(struct vdi_accounts *accounts, struct vdi_account *account);

/* One more request of the kind for account, if all clients together have room for it, and it leaves others
 * theirs: while n clients have requests under way, each may have one part of n + 1, so that one part is there
 * for the next to come. False: nothing was counted. Never waits. */
bool vdi_budget_take(struct vdi_accounts *accounts, struct vdi_account *account, enum vdi_request_kind kind);
/* What was taken is over. */
void vdi_budget_give_back(struct vdi_accounts *accounts, struct vdi_account *account,
			  enum vdi_request_kind kind);
/* Calls each with every account, under the table's lock. */
void vdi_accounts_each(struct vdi_accounts *accounts,
		       void (*each)(void *arg, const struct vdi_account *account), void *arg);

/* Counts one more unless that would pass max (0: no limit). */
static inline bool vdi_account_admit(_Atomic int64_t *counter, int64_t max)
{
	if (atomic_fetch_add_explicit(counter, 1, memory_order_relaxed) < max || max == 0)
		return true;
	atomic_fetch_sub_explicit(counter, 1, memory_order_relaxed);
	return false;
}

#endif
