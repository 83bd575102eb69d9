/* Unit tests of lib/net/h2_resolve.c: numbers, paths, and names that this machine knows or that cannot be. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <vedette/vedette.h>

#include "h2_resolve.h"
#include "vdtest.h"
#include "wait.h"

static void numbers_are_addresses_at_once(void **state)
{
	struct vdi_h2_addresses	  *addresses;
	const struct sockaddr_in  *four;
	const struct sockaddr_in6 *six;

	(void) state;
	assert_status(vdi_h2_address_of_number("127.0.0.1", "2379", &addresses), VD_OK);
	assert_int_equal(addresses->count, 1);
	four = (const struct sockaddr_in *) &addresses->list[0].at;
	assert_int_equal(addresses->list[0].size, sizeof *four);
	assert_int_equal(four->sin_family, AF_INET);
	assert_int_equal(ntohs(four->sin_port), 2379);
	assert_int_equal(ntohl(four->sin_addr.s_addr), INADDR_LOOPBACK);
	vdi_free(addresses);
	assert_status(vdi_h2_address_of_number("::1", "1", &addresses), VD_OK);
	assert_int_equal(addresses->count, 1);
	six = (const struct sockaddr_in6 *) &addresses->list[0].at;
	assert_int_equal(addresses->list[0].size, sizeof *six);
	assert_int_equal(six->sin6_family, AF_INET6);
	assert_memory_equal(&six->sin6_addr, &in6addr_loopback, sizeof in6addr_loopback);
	vdi_free(addresses);
	assert_status(vdi_h2_address_of_number("localhost", "1", &addresses), VD_AGAIN);
	assert_null(addresses);
}

static void a_path_is_an_address_at_once(void **state)
{
	struct vdi_h2_addresses	 *addresses;
	const struct sockaddr_un *at;

	(void) state;
	assert_status(vdi_h2_address_of_path("/run/some.sock", &addresses), VD_OK);
	assert_int_equal(addresses->count, 1);
	at = (const struct sockaddr_un *) &addresses->list[0].at;
	assert_int_equal(at->sun_family, AF_UNIX);
	assert_string_equal(at->sun_path, "/run/some.sock");
	assert_int_equal(addresses->list[0].size, offsetof(struct sockaddr_un, sun_path) + 15);
	vdi_free(addresses);
}

struct answer {
	struct vdi_wait		 wait;
	struct vdi_h2_addresses *addresses;
	char			 why[200];
	unsigned		 count;
};

static void on_answer(void *arg, struct vdi_h2_addresses *addresses, const char *why)
{
	struct answer *answer = arg;

	answer->addresses = addresses;
	snprintf(answer->why, sizeof answer->why, "%s", why);
	answer->count++;
	vdi_wait_signal(&answer->wait);
}

static void resolve(const struct vd_env *env, const char *host, struct answer *answer)
{
	struct vdi_h2_resolve *question;

	memset(answer, 0, sizeof *answer);
	vdi_wait_init(&answer->wait, env);
	assert_status(vdi_h2_resolve_start(env, host, "2379", on_answer, answer, &question), VD_OK);
	vdi_wait_wait(&answer->wait);
	assert_null(vdi_h2_resolve_end(question));
	vdi_wait_fini(&answer->wait);
	assert_int_equal(answer->count, 1);
}

/* No name server is asked for either. */
static void names_are_told_by_the_system(void **state)
{
	struct vd_env *env;
	struct answer  answer;

	(void) state;
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	resolve(env, "127.0.0.1", &answer);
	assert_non_null(answer.addresses);
	assert_int_equal(answer.addresses->count, 1);
	assert_int_equal(ntohs(((const struct sockaddr_in *) &answer.addresses->list[0].at)->sin_port), 2379);
	vdi_free(answer.addresses);
	/* A label of 64 letters. */
	resolve(env, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.invalid", &answer);
	assert_null(answer.addresses);
	assert_true(strcmp(answer.why, "unknown host") == 0 ||
		    strncmp(answer.why, "the host name could not be resolved: ", 37) == 0);
	assert_null(vdi_h2_resolve_end(NULL));
	vd_env_free(env);
}

static void every_allocation_may_fail(void **state)
{
	int64_t live = vdi_alloc_live();
	bool	was_hit = true;

	(void) state;
	for (uint64_t nth = 1; was_hit; nth++) {
		struct vdi_h2_addresses *number = NULL, *path = NULL;
		vd_status		 status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_h2_address_of_number("127.0.0.1", "1", &number);
		if (status == VD_OK)
			status = vdi_h2_address_of_path("/a", &path);
		was_hit = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, was_hit ? VD_NOMEM : VD_OK);
		vdi_free(number);
		vdi_free(path);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_addresses_at_once),
		cmocka_unit_test(a_path_is_an_address_at_once),
		cmocka_unit_test(names_are_told_by_the_system),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
