/* Accounts of clients: found again while in use, gone afterwards; limits that are met exactly. */
#include "accounts.h"

#include "vdtest.h"

static struct vdi_account *get(struct vdi_accounts *accounts, const char *address, const char *agent)
{
	struct vdi_account *account = NULL;

	assert_status(vdi_account_get(accounts, vd_bytes_of(address), vd_bytes_of(agent), &account), VD_OK);
	return account;
}

static void one_account_for_one_client(void **state)
{
	struct vdi_accounts accounts;
	struct vdi_account *a, *b, *c, *long_one;
	char		    agent[600];

	vdi_accounts_init(&accounts);
	a = get(&accounts, "127.0.0.1", "kubectl/v1");
	b = get(&accounts, "127.0.0.1", "kubectl/v1");
	assert_ptr_equal(a, b);
	c = get(&accounts, "127.0.0.1", "other");
	assert_ptr_not_equal(a, c);
	vdi_account_put(&accounts, c);
	c = get(&accounts, "::1", "kubectl/v1");
	assert_ptr_not_equal(a, c);
	vdi_account_put(&accounts, c);
	c = get(&accounts, "127.0.0.2", "kubectl/v1");
	assert_ptr_not_equal(a, c);
	vdi_account_put(&accounts, c);
	c = get(&accounts, "127.0.0.1", "kubectl/v2");
	assert_ptr_not_equal(a, c);
	vdi_account_put(&accounts, c);
	/* The border between the two is one. */
	c = get(&accounts, "127.0.0.1k", "ubectl/v1");
	assert_ptr_not_equal(a, c);
	vdi_account_put(&accounts, c);
	memset(agent, 'x', sizeof agent - 1);
	agent[sizeof agent - 1] = 0;
	long_one = get(&accounts, "127.0.0.1", agent);
	assert_int_equal(long_one->key_size, VDI_ACCOUNT_KEY_MAX);
	vdi_account_put(&accounts, long_one);
	assert_int_equal(accounts.count, 1);
	vdi_account_put(&accounts, a);
	assert_int_equal(accounts.count, 1);
	vdi_account_put(&accounts, b);
	vdi_account_put(&accounts, NULL);
	assert_int_equal(accounts.count, 0);
	vdi_accounts_fini(&accounts);
}

static void note_client(void *arg, const struct vdi_account *account)
{
	const struct vdi_account **noted = arg;

	assert_null(noted[account->key_size % 3]);
	noted[account->key_size % 3] = account;
}

static void each_client_is_shown_once(void **state)
{
	struct vdi_accounts	  accounts;
	struct vdi_account	 *mine[3];
	const struct vdi_account *noted[3] = { NULL };

	(void) state;
	vdi_accounts_init(&accounts);
	mine[0] = get(&accounts, "a", "1");
	mine[1] = get(&accounts, "a", "12");
	mine[2] = get(&accounts, "a", "123");
	vdi_accounts_each(&accounts, note_client, noted);
	for (size_t i = 0; i < 3; i++) {
		assert_ptr_equal(noted[mine[i]->key_size % 3], mine[i]);
		vdi_account_put(&accounts, mine[i]);
	}
	vdi_accounts_each(&accounts, note_client, noted); /* nobody */
	vdi_accounts_fini(&accounts);
}

static void many_clients(void **state)
{
	struct vdi_accounts accounts;
	struct vdi_account *found[3000];
	char		    agent[16];

	vdi_accounts_init(&accounts);
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(agent, sizeof agent, "a%u", i);
		found[i] = get(&accounts, "127.0.0.1", agent);
	}
	assert_int_equal(accounts.count, 3000);
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(agent, sizeof agent, "a%u", i);
		assert_ptr_equal(get(&accounts, "127.0.0.1", agent), found[i]);
		vdi_account_put(&accounts, found[i]);
		vdi_account_put(&accounts, found[i]);
	}
	assert_int_equal(accounts.count, 0);
	vdi_accounts_fini(&accounts);
}

static void limits_are_met_exactly(void **state)
{
	_Atomic int64_t counter = 0;

	for (int i = 0; i < 3; i++)
		assert_true(vdi_account_admit(&counter, 3));
	assert_false(vdi_account_admit(&counter, 3));
	assert_int_equal(counter, 3);
	counter--;
	assert_true(vdi_account_admit(&counter, 3));
	assert_true(vdi_account_admit(&counter, 0)); /* none */
	assert_int_equal(counter, 4);
}

/* R-655, and more: of what all may have together nobody has everything. */
static void r655_nobody_has_all_there_is(void **state)
{
	struct vdi_accounts accounts;
	struct vdi_account *a, *b, *c;
	int		    had[3] = { 0 };

	vdi_accounts_init(&accounts);
	accounts.budgets[VDI_REQUEST_READING].max = 12;
	a = get(&accounts, "127.0.0.1", "a");
	b = get(&accounts, "127.0.0.1", "b");
	c = get(&accounts, "127.0.0.1", "c");
	/* Alone: half; with one more: a third of all, and what is left. */
	while (vdi_budget_take(&accounts, a, VDI_REQUEST_READING))
		had[0]++;
	assert_int_equal(had[0], 6);
	while (vdi_budget_take(&accounts, b, VDI_REQUEST_READING))
		had[1]++;
	assert_int_equal(had[1], 4);
	while (vdi_budget_take(&accounts, c, VDI_REQUEST_READING))
		had[2]++;
	assert_int_equal(had[2], 2);
	assert_int_equal(accounts.budgets[VDI_REQUEST_READING].taken, 12);
	assert_int_equal(accounts.budgets[VDI_REQUEST_READING].clients, 3);
	/* The greedy one gets nothing back while it has more than its part now is. */
	for (int i = 0; i < 3; i++)
		vdi_budget_give_back(&accounts, a, VDI_REQUEST_READING);
	assert_false(vdi_budget_take(&accounts, a, VDI_REQUEST_READING));
	assert_true(vdi_budget_take(&accounts, c, VDI_REQUEST_READING));
	assert_false(vdi_budget_take(&accounts, c, VDI_REQUEST_READING));
	/* Writes are counted apart, and without a limit there is none. */
	for (int i = 0; i < 100; i++)
		assert_true(vdi_budget_take(&accounts, a, VDI_REQUEST_MUTATING));
	for (int i = 0; i < 100; i++)
		vdi_budget_give_back(&accounts, a, VDI_REQUEST_MUTATING);
	accounts.budgets[VDI_REQUEST_MUTATING].max = 1;
	assert_true(vdi_budget_take(&accounts, b, VDI_REQUEST_MUTATING));
	assert_false(vdi_budget_take(&accounts, a, VDI_REQUEST_MUTATING));
	vdi_budget_give_back(&accounts, b, VDI_REQUEST_MUTATING);
	for (int i = 0; i < 3; i++)
		vdi_budget_give_back(&accounts, a, VDI_REQUEST_READING);
	for (int i = 0; i < 4; i++)
		vdi_budget_give_back(&accounts, b, VDI_REQUEST_READING);
	for (int i = 0; i < 3; i++)
		vdi_budget_give_back(&accounts, c, VDI_REQUEST_READING);
	for (int kind = 0; kind < VDI_REQUEST_KINDS; kind++) {
		assert_int_equal(accounts.budgets[kind].taken, 0);
		assert_int_equal(accounts.budgets[kind].clients, 0);
	}
	assert_ptr_equal(vdi_account_use(&accounts, a), a);
	vdi_account_put(&accounts, a);
	assert_int_equal(accounts.count, 3); /* the other reference keeps it */
	vdi_account_put(&accounts, a);
	assert_int_equal(accounts.count, 2);
	vdi_account_put(&accounts, b);
	vdi_account_put(&accounts, c);
	assert_int_equal(accounts.count, 0);
	vdi_accounts_fini(&accounts);
}

static void without_memory_there_is_none(void **state)
{
	struct vdi_accounts accounts;
	struct vdi_account *account = NULL;

	vdi_accounts_init(&accounts);
	(void) vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_account_get(&accounts, vd_bytes_of("a"), vd_bytes_of("b"), &account), VD_NOMEM);
	(void) vdi_alloc_fail_nth(0, 0);
	assert_int_equal(accounts.count, 0);
	vdi_accounts_fini(&accounts);
}

/* The key holds up to 63 bytes of the address and as much of the agent as there is room for. */
static void keys_have_a_size(void **state)
{
	static const struct {
		size_t address, agent, key;
	} rows[] = {
		{ 0, 0, 1 },
		{ 9, 0, 10 },
		{ 0, 5, 6 },
		{ 62, 5, 68 },
		{ 63, 5, 69 },
		{ 64, 5, 69 },
		{ 9, VDI_ACCOUNT_KEY_MAX - 11, VDI_ACCOUNT_KEY_MAX - 1 },
		{ 9, VDI_ACCOUNT_KEY_MAX - 10, VDI_ACCOUNT_KEY_MAX },
		{ 9, VDI_ACCOUNT_KEY_MAX - 9, VDI_ACCOUNT_KEY_MAX },
		{ 64, VDI_ACCOUNT_KEY_MAX, VDI_ACCOUNT_KEY_MAX },
	};
	char		    text[VDI_ACCOUNT_KEY_MAX];
	struct vdi_accounts accounts;

	memset(text, 'x', sizeof text);
	vdi_accounts_init(&accounts);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_account *account = NULL;

		assert_status(vdi_account_get(&accounts, (struct vd_bytes) { text, rows[i].address },
					      (struct vd_bytes) { text, rows[i].agent }, &account),
			      VD_OK);
		assert_int_equal(account->key_size, rows[i].key);
		for (size_t at = 0; at < rows[i].key; at++)
			assert_int_equal(account->key[at],
					 at == VDI_MIN(rows[i].address, (size_t) 63) ? '\n' : 'x');
		assert_int_equal(accounts.count, 1);
		vdi_account_put(&accounts, account);
	}
	vdi_accounts_fini(&accounts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_have_a_size),
		cmocka_unit_test(one_account_for_one_client),
		cmocka_unit_test(each_client_is_shown_once),
		cmocka_unit_test(many_clients),
		cmocka_unit_test(limits_are_met_exactly),
		cmocka_unit_test(r655_nobody_has_all_there_is),
		cmocka_unit_test(without_memory_there_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
