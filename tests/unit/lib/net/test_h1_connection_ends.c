/* When connections with plain requests end: time, answers that nobody reads, drains, and no memory. */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "env.h"
#include "h1_peer.h"
#include "lock.h"
#include "rpc_fixture.h"
#include "wait.h"

static void h1_release(void)
{
	struct vdi_rpc_http *http;

	vdi_lock_acquire(&h1_service.lock);
	http = h1_service.held;
	h1_service.held = NULL;
	vdi_lock_release(&h1_service.lock);
	assert_non_null(http);
	vdi_buffer_append_text(&http->body, "released");
	http->answer(http);
}

static int start_hasty(void **state)
{
	(void) state;
	h1_start_with(
		(struct vdi_rpc_server_options) { .settle_timeout = VD_MS(150), .idle_timeout = VD_MS(150) });
	return 0;
}

static int start_poor(void **state)
{
	(void) state;
	h1_start_with((struct vdi_rpc_server_options) { .memory_max = 64 << 10 });
	return 0;
}

/* ---- Time ---- */

static void nobody_waits_for_ever(void **state)
{
	static const char *const texts[] = {
		"",
		"P",
		"PRI * HTTP/2.0\r\n",
		"GET /hello HT",
		"GET /hello HTTP/1.1\r\nHost: x\r\n",
		"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc",
		H1_HELLO,
		(H1_HELLO "GET /hel")
	};
	struct h1_client client;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		h1_join(&client);
		assert_true(h1_say(&client, texts[i]));
		if (strncmp(texts[i], H1_HELLO, sizeof H1_HELLO - 1) == 0)
			h1_expect_hello(&client);
		h1_expect_end(&client);
		h1_leave(&client);
	}
	h1_expect_service();
}

/* The limit is of the whole head, not of its bytes. */
static void a_byte_now_and_then_buys_no_time(void **state)
{
	struct h1_client client;
	struct pollfd	 wait;
	vd_mono		 due = vd_mono_add(vd_env_now(env), VD_SECONDS(100));

	(void) state;
	h1_join(&client);
	assert_true(h1_say(&client, "GET /hello HTTP/1.1\r\nHost: x\r\nX: "));
	wait = (struct pollfd) { .fd = client.fd, .events = POLLIN };
	while (poll(&wait, 1, 20) == 0 && vd_env_now(env).ns < due.ns)
		(void) h1_say(&client, "a");
	assert_true(vd_env_now(env).ns < due.ns);
	h1_leave(&client);
	h1_expect_service();
}

/* ---- Answers ---- */

static void large_answers_wait_for_their_reader(void **state)
{
	struct h1_client client;
	int		 little = 65536;
	struct h1_answer answer;

	(void) state;
	h1_join(&client);
	assert_int_equal(setsockopt(client.fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
	assert_true(h1_say(&client, "GET /big?8000000 HTTP/1.1\r\nHost: x\r\n\r\n" H1_HELLO));
	rpc_wait_for(env, &h1_service.requests, 1);
	h1_expect_service(); /* nobody waits for that one */
	answer = h1_hear(&client, true);
	assert_int_equal(answer.body_size, 8000000);
	assert_memory_equal(answer.body, "ihgfedcb", 8);
	h1_expect_hello(&client);
	h1_leave(&client);
}

static void an_answer_that_is_too_large_for_the_server_is_none(void **state)
{
	struct h1_client client;

	(void) state;
	h1_join(&client);
	assert_true(h1_say(&client, "GET /big?200000 HTTP/1.1\r\nHost: x\r\n\r\n"));
	h1_expect_end(&client);
	h1_leave(&client);
	h1_expect_service();
}

static void answers_come_from_anywhere_and_in_their_time(void **state)
{
	struct h1_client client;

	(void) state;
	h1_join(&client);
	assert_true(h1_say(&client, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n" H1_HELLO));
	rpc_wait_for(env, &h1_service.holds, 1);
	h1_expect_service();
	h1_release();
	assert_string_equal(h1_hear(&client, true).body, "released");
	h1_expect_hello(&client);
	/* Nobody is there any more. */
	assert_true(h1_say(&client, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
	rpc_wait_for(env, &h1_service.holds, 2);
	h1_leave(&client);
	h1_expect_service();
	h1_release();
	h1_expect_service();
}

static void draining_waits_for_what_was_asked(void **state)
{
	struct h1_client idle, busy, half;

	(void) state;
	h1_join(&idle);
	assert_true(h1_say(&idle, H1_HELLO));
	h1_expect_hello(&idle);
	h1_join(&half);
	assert_true(h1_say(&half, H1_HELLO "GET /hello?a=b&c HTTP/1.1\r\n"));
	h1_expect_hello(&half);
	h1_join(&busy);
	assert_true(h1_say(&busy, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n" H1_HELLO));
	rpc_wait_for(env, &h1_service.holds, 1);
	vdi_rpc_server_drain(echo.server);
	h1_expect_end(&idle);
	assert_true(h1_say(&half, "Host: x\r\n\r\n"));
	h1_expect_hello(&half);
	h1_expect_end(&half);
	h1_release();
	assert_non_null(strstr(h1_hear(&busy, true).head, "\r\nConnection: close\r\n"));
	h1_expect_end(&busy);
	h1_leave(&idle);
	h1_leave(&busy);
	h1_leave(&half);
}

/* Closing cuts, but does not end before the service has answered. */
static void closing_cuts_and_waits_for_the_service(void **state)
{
	struct h1_client silent, busy;
	struct vdi_wait	 closed;

	(void) state;
	h1_join(&silent);
	assert_true(h1_say(&silent, "PRI"));
	h1_join(&busy);
	assert_true(h1_say(&busy, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
	rpc_wait_for(env, &h1_service.holds, 1);
	vdi_wait_init(&closed, env);
	vdi_rpc_server_close(echo.server, vdi_wait_signal_arg, &closed);
	h1_expect_end(&silent);
	h1_expect_end(&busy);
	assert_false(vdi_wait_is_done(&closed));
	h1_release();
	vdi_wait_wait(&closed);
	vdi_wait_fini(&closed);
	h1_leave(&silent);
	h1_leave(&busy);
	(void) rpc_echo_start(&echo, env, NULL, &(struct vdi_rpc_server_options) { .http = h1_serve }, NULL);
}

/* ---- Without memory ---- */

static void try_all(void)
{
	struct h1_client client;

	h1_join(&client);
	if (h1_say(&client, H1_HELLO "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET "
				     "/big?100000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
		while (h1_hear_more(&client))
			client.used = client.size;
	h1_leave(&client);
}

static void allocation_failures_end_a_connection_and_no_more(void **state)
{
	bool was_reached = true;

	(void) state;
	h1_expect_service();
	for (uint64_t n = 1; was_reached && n < 500; n++) {
		vdi_alloc_fail_nth(n, 1);
		try_all();
		was_reached = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
	}
	assert_false(was_reached);
	h1_expect_service();
}

/* ---- TLS ---- */

#define WITH(test, before, after) cmocka_unit_test_setup_teardown(test, before, after)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(nobody_waits_for_ever, start_hasty, h1_stop),
		WITH(a_byte_now_and_then_buys_no_time, start_hasty, h1_stop),
		WITH(large_answers_wait_for_their_reader, h1_start, h1_stop),
		WITH(an_answer_that_is_too_large_for_the_server_is_none, start_poor, h1_stop),
		WITH(answers_come_from_anywhere_and_in_their_time, h1_start, h1_stop),
		WITH(draining_waits_for_what_was_asked, h1_start, h1_stop),
		WITH(closing_cuts_and_waits_for_the_service, h1_start, h1_stop),
		WITH(allocation_failures_end_a_connection_and_no_more, h1_start, h1_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
