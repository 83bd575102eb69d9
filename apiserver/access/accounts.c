/* A chained hash table. An account lives while a request or a watch of its client does. */
#include "accounts.h"

#include "hash.h"

void vdi_accounts_init(struct vdi_accounts *accounts)
{
	*accounts = (struct vdi_accounts) { 0 };
	vdi_lock_init(&accounts->lock, VDI_LOCK_LEAF);
}

void vdi_accounts_fini(struct vdi_accounts *accounts)
{
	VDI_CHECK(accounts->count == 0);
	vdi_lock_fini(&accounts->lock);
}

static size_t write_key(char key[VDI_ACCOUNT_KEY_MAX], struct vd_bytes address, struct vd_bytes agent)
{
	size_t address_size = VDI_MIN(address.size, (size_t) 63),
	       agent_size = VDI_MIN(agent.size, VDI_ACCOUNT_KEY_MAX - address_size - 1);

	if (address_size)
		memcpy(key, address.data, address_size);
	key[address_size] = '\n';
	if (agent_size)
		memcpy(key + address_size + 1, agent.data, agent_size);
	return address_size + 1 + agent_size;
}

static struct vdi_account **find_locked(struct vdi_accounts *accounts, const char *key, size_t size)
{
	struct vdi_account **place =
		&accounts->buckets[vdi_hash_bytes((struct vd_bytes) { key, size }, vdi_hash_seed()) %
				   VDI_ACCOUNT_BUCKETS];

	while (*place && ((*place)->key_size != size || memcmp((*place)->key, key, size) != 0))
		place = &(*place)->next;
	return place;
}

vd_status vdi_account_get(struct vdi_accounts *accounts, struct vd_bytes address, struct vd_bytes agent,
			  struct vdi_account **ret_account)
{
	char		     key[VDI_ACCOUNT_KEY_MAX];
	size_t		     size = write_key(key, address, agent);
	struct vdi_account **place, *account;

	vdi_lock_acquire(&accounts->lock);
	place = find_locked(accounts, key, size);
	account = *place;
	if (account == NULL && (account = vdi_calloc(1, sizeof *account + size))) {
		account->key_size = size;
		memcpy(account->key, key, size);
		*place = account;
		accounts->count++;
	}
	if (account)
		account->users++;
	vdi_lock_release(&accounts->lock);
	if (account == NULL)
		return VD_NOMEM;
	*ret_account = account;
	return VD_OK;
}

struct vdi_account *vdi_account_use(struct vdi_accounts *accounts, struct vdi_account *account)
{
	vdi_lock_acquire(&accounts->lock);
	account->users++;
	vdi_lock_release(&accounts->lock);
	return account;
}

void vdi_account_put(struct vdi_accounts *accounts, struct vdi_account *account)
{
	struct vdi_account *gone = NULL;

	if (account == NULL)
		return;
	vdi_lock_acquire(&accounts->lock);
	if (--account->users == 0) {
		*find_locked(accounts, account->key, account->key_size) = account->next;
		accounts->count--;
		gone = account;
	}
	vdi_lock_release(&accounts->lock);
	vdi_free(gone);
}

void vdi_accounts_each(struct vdi_accounts *accounts,
		       void (*each)(void *arg, const struct vdi_account *account), void *arg)
{
	vdi_lock_acquire(&accounts->lock);
	for (size_t i = 0; i < VDI_ACCOUNT_BUCKETS; i++)
		for (const struct vdi_account *account = accounts->buckets[i]; account;
		     account = account->next)
			each(arg, account);
	vdi_lock_release(&accounts->lock);
}

/* ---- Budgets of all clients ---- */

bool vdi_budget_take(struct vdi_accounts *accounts, struct vdi_account *account, enum vdi_request_kind kind)
{
	struct vdi_budget *budget = &accounts->budgets[kind];
	int64_t		   own = atomic_fetch_add(&account->kinds[kind], 1);
	int64_t		   clients =
		   own == 0 ? atomic_fetch_add(&budget->clients, 1) + 1 : atomic_load(&budget->clients);
	int64_t share = budget->max / (VDI_MAX(clients, (int64_t) 1) + 1);
	bool	is_taken = (budget->max == 0 || own < VDI_MAX(share, (int64_t) 1)) &&
			vdi_account_admit(&budget->taken, budget->max);

	if (!is_taken && atomic_fetch_sub(&account->kinds[kind], 1) == 1)
		atomic_fetch_sub(&budget->clients, 1);
	return is_taken;
}

void vdi_budget_give_back(struct vdi_accounts *accounts, struct vdi_account *account,
			  enum vdi_request_kind kind)
{
	struct vdi_budget *budget = &accounts->budgets[kind];

	atomic_fetch_sub(&budget->taken, 1);
	if (atomic_fetch_sub(&account->kinds[kind], 1) == 1)
		atomic_fetch_sub(&budget->clients, 1);
}
