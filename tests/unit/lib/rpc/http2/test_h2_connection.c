/* One connection on a loop of the test's own, over a pair of sockets. */
#include <sys/ioctl.h>

#include "h2_pair.h"

static void expect_end(struct fixture *f, const char *why)
{
	vdi_loop_run(f->loop);
	assert_int_equal(f->ended, 1);
	assert_string_equal(f->why, why);
	tear_down(f);
}

static void a_peer_that_does_not_answer_pings_is_left(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f);
	assert_status(
		connect_client(&f, (struct vdi_h2_connection_options) { .keepalive_time = VD_MS(1),
									.keepalive_timeout = VD_MS(1),
									.keepalive_without_streams = true }),
		VD_OK);
	say(&f, settings, sizeof settings);
	expect_end(&f, "keepalive ping failed to receive ACK within timeout");
	assert_int_equal(f.ready, 1);
}

static void a_peer_that_says_nothing_is_left(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f);
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { .settle_timeout = VD_MS(1) }),
		      VD_OK);
	expect_end(&f, "no HTTP/2 settings received (not an HTTP/2 server, or TLS is expected)");
	assert_int_equal(f.ready, 0);
	set_up(&f);
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { .is_server = true,
									      .settle_timeout = VD_MS(1) }),
		      VD_OK);
	expect_end(&f, "no HTTP/2 settings received");
}

static void a_peer_that_goes_is_seen(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f);
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { 0 }), VD_OK);
	assert_int_equal(shutdown(f.fds[1], SHUT_WR), 0);
	expect_end(&f, "the server closed the connection before HTTP/2 began (TLS or a client certificate "
		       "may be expected)");
	set_up(&f);
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { 0 }), VD_OK);
	say(&f, settings, sizeof settings);
	assert_int_equal(shutdown(f.fds[1], SHUT_WR), 0);
	expect_end(&f, "the connection was closed");
	assert_int_equal(f.ready, 1);
	set_up(&f);
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { .is_server = true }), VD_OK);
	say(&f, "GET / HTTP/1.1\r\n\r\n", 18);
	expect_end(&f, "not an HTTP/2 client");
}

/* GOAWAY is written, and the end told in no words. */
static void a_connection_that_is_closed_says_goodbye(void **state)
{
	struct fixture f;
	uint8_t	       got[4096];
	ssize_t	       size;
	bool	       found = false;

	(void) state;
	set_up(&f);
	f.closes_when_ready = true;
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { 0 }), VD_OK);
	say(&f, settings, sizeof settings);
	vdi_loop_run(f.loop);
	assert_string_equal(f.why, "");
	size = read(f.fds[1], got, sizeof got);
	for (ssize_t at = 24; at + 9 <= size; at += 9 + got[at + 2])
		found |= got[at + 3] == NGHTTP2_GOAWAY;
	assert_true(found);
	tear_down(&f);
}

static void without_memory_the_socket_stays_the_callers(void **state)
{
	struct fixture f;
	bool	       failed = true;

	(void) state;
	set_up(&f);
	for (uint64_t n = 1; failed; n++) {
		int64_t	  before = vdi_alloc_live();
		vd_status status;

		vdi_alloc_fail_nth(n, 1);
		status = connect_client(
			&f, (struct vdi_h2_connection_options) { .settle_timeout = VD_SECONDS(300),
								 .connection_window = 1 << 20,
								 .stream_window = 1 << 20 });
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		if (failed)
			assert_int_equal(vdi_alloc_live(), before);
	}
	vdi_h2_connection_abort(f.connection, "enough");
	expect_end(&f, "enough");
}

/* ---- What is said, frame by frame ---- */

/* What each side offers is what it was told to, and nothing else. */
static void each_side_says_its_settings_first(void **state)
{
	for (unsigned flags = 0; flags < 16; flags++) {
		struct fixture f;
		struct told    told;
		const uint8_t *payload;
		size_t	       size;
		bool	       is_server = flags & 1;

		(void) state;
		set_up(&f);
		assert_status(connect_client(&f,
					     (struct vdi_h2_connection_options) {
						     .is_server = is_server,
						     .stream_window = flags & 2 ? 100000 : 0,
						     .connection_window = flags & 4 ? 200000 : 0,
						     .streams_max = flags & 8 ? 7 : 0 }),
			      VD_OK);
		settle(&f);
		hear(&f, &told);
		assert_int_equal(told.at, is_server ? 0 : 24);
		payload = next_of(&told, NGHTTP2_SETTINGS, 0, &size);
		assert_non_null(payload);
		assert_int_equal(setting_of(payload, size, NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE), 65536);
		assert_int_equal(setting_of(payload, size, NGHTTP2_SETTINGS_ENABLE_PUSH), is_server ? -1 : 0);
		assert_int_equal(setting_of(payload, size, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE),
				 flags & 2 ? 100000 : -1);
		assert_int_equal(setting_of(payload, size, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS),
				 is_server && flags & 8 ? 7 : -1);
		payload = next_of(&told, NGHTTP2_WINDOW_UPDATE, 0, &size);
		assert_int_equal(payload != NULL, !!(flags & 4));
		if (payload)
			assert_int_equal(payload[1] << 16 | payload[2] << 8 | payload[3], 200000 - 65535);
		assert_false(vdi_h2_connection_is_ready(f.connection));
		assert_int_equal(vdi_h2_connection_kept(f.connection), 0);
		end_test(&f);
	}
}

static void the_first_reason_counts(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f);
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { 0 }), VD_OK);
	assert_false(vdi_h2_connection_is_over(f.connection));
	vdi_h2_connection_abort(f.connection, "one");
	vdi_h2_connection_abort(f.connection, "two");
	assert_true(vdi_h2_connection_is_over(f.connection));
	vdi_h2_connection_close(f.connection, VD_SECONDS(300));
	settle(&f);
	assert_string_equal(f.why, "one");
	end_test(&f);
}

/* A peer that goes with what was said to it unread. */
static void a_connection_that_is_reset_is_said_to_be(void **state)
{
	struct fixture f;

	(void) state;
	for (int is_ready = 0; is_ready < 2; is_ready++) {
		set_up(&f);
		assert_status(connect_client(&f, (struct vdi_h2_connection_options) { 0 }), VD_OK);
		if (is_ready)
			say(&f, settings, sizeof settings);
		settle(&f);
		assert_int_equal(f.ready, is_ready);
		assert_int_equal(vdi_h2_connection_is_ready(f.connection), is_ready);
		close(f.fds[1]);
		f.fds[1] = dup(f.fds[0]);
		settle(&f);
		assert_string_equal(f.why, is_ready ? "connection reset by peer" :
						      "the server closed the connection before HTTP/2 began "
						      "(TLS or a client certificate may be expected)");
		end_test(&f);
	}
}

static void a_peer_says_why_it_goes(void **state)
{
	static const struct {
		uint8_t	    code;
		const char *words, *why;
	} cases[] = { { NGHTTP2_NO_ERROR, "", "the connection was closed" },
		      { NGHTTP2_NO_ERROR, "bye", "the connection was closed" },
		      { NGHTTP2_ENHANCE_YOUR_CALM, "", "the peer ended the connection: ENHANCE_YOUR_CALM" },
		      { NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings",
			"the peer ended the connection: ENHANCE_YOUR_CALM, too_many_pings" },
		      { NGHTTP2_INTERNAL_ERROR, "", "the peer ended the connection: INTERNAL_ERROR" } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct fixture f;
		uint8_t	       frame[64] = { 0, 0, (uint8_t) (8 + strlen(cases[i].words)), NGHTTP2_GOAWAY };

		set_up(&f);
		assert_status(connect_client(&f, (struct vdi_h2_connection_options) { 0 }), VD_OK);
		say(&f, settings, sizeof settings);
		settle(&f);
		assert_true(vdi_h2_connection_is_ready(f.connection));
		frame[9 + 7] = cases[i].code;
		memcpy(frame + 17, cases[i].words, strlen(cases[i].words));
		say(&f, frame, 17 + strlen(cases[i].words));
		settle(&f);
		if (f.connection) { /* there are no streams that it would wait for */
			assert_false(vdi_h2_connection_is_ready(f.connection));
			assert_int_equal(shutdown(f.fds[1], SHUT_WR), 0);
			settle(&f);
		}
		assert_string_equal(f.why, cases[i].why);
		end_test(&f);
	}
}

/* GOAWAY, then the end of what it writes; it is over when the peer has closed, too. */
static void a_close_with_time_waits_for_the_peer(void **state)
{
	for (int is_late = 0; is_late < 2; is_late++) {
		struct fixture f;
		struct told    told;
		size_t	       size;

		(void) state;
		set_up(&f);
		assert_status(connect_client(&f, (struct vdi_h2_connection_options) { 0 }), VD_OK);
		say(&f, settings, sizeof settings);
		settle(&f);
		vdi_h2_connection_close(f.connection, is_late ? VD_MS(1) : VD_SECONDS(300));
		vdi_h2_connection_close(f.connection, VD_SECONDS(300)); /* the first one counts */
		assert_false(vdi_h2_connection_is_ready(f.connection));
		if (is_late) {
			vdi_loop_run(f.loop);
		} else {
			settle(&f);
			hear(&f, &told);
			assert_non_null(next_of(&told, NGHTTP2_GOAWAY, 0, &size));
			assert_int_equal(size, 8);
			assert_null(next_of(&told, NGHTTP2_GOAWAY, 0, &size));
			hear(&f, &told);
			assert_int_equal(told.size, 0); /* its end */
			say_ping(&f, 0, 1);		/* nobody answers */
			settle(&f);
			assert_int_equal(f.ended, 0);
			assert_int_equal(shutdown(f.fds[1], SHUT_WR), 0);
			settle(&f);
		}
		assert_int_equal(f.ended, 1);
		assert_string_equal(f.why, "");
		end_test(&f);
	}
}

/* Nothing was said yet that a goodbye could follow. */
static void a_close_before_it_began_says_nothing(void **state)
{
	struct fixture f;
	struct told    told;

	(void) state;
	set_up(&f);
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { 0 }), VD_OK);
	vdi_h2_connection_close(f.connection, VD_SECONDS(300));
	settle(&f);
	assert_int_equal(f.ended, 1);
	assert_string_equal(f.why, "");
	hear(&f, &told);
	assert_int_equal(told.size, 0);
	end_test(&f);
}

/* Twice too soon is forgiven; a peer that was sent something may begin anew, and without an interval there
 * is nothing to forgive. */
static void a_peer_that_pings_too_often_is_told_so(void **state)
{
	for (int has_interval = 0; has_interval < 2; has_interval++) {
		struct fixture f;
		struct told    told;
		const uint8_t *payload;
		size_t	       size;

		(void) state;
		set_up(&f);
		assert_status(
			connect_client(&f,
				       (struct vdi_h2_connection_options) {
					       .is_server = true,
					       .ping_interval_min = VD_SECONDS(has_interval ? 3600 : 0) }),
			VD_OK);
		say(&f, preface, 24);
		say(&f, settings, sizeof settings);
		for (uint8_t i = 0; i < 3; i++) {
			say_ping(&f, 0, i);
			settle(&f);
			assert_true(vdi_h2_connection_is_ready(f.connection));
		}
		say_ping(&f, NGHTTP2_FLAG_ACK, 9); /* an answer is no question */
		settle(&f);
		assert_true(vdi_h2_connection_is_ready(f.connection));
		hear(&f, &told);
		for (uint8_t i = 0; i < 3; i++) {
			payload = next_of(&told, NGHTTP2_PING, NGHTTP2_FLAG_ACK, &size);
			assert_non_null(payload);
			assert_int_equal(payload[7], i);
		}
		assert_null(next_of(&told, NGHTTP2_GOAWAY, 0, &size));
		say_ping(&f, 0, 4);
		settle(&f);
		hear(&f, &told);
		payload = next_of(&told, NGHTTP2_GOAWAY, 0, &size);
		assert_int_equal(payload != NULL, has_interval);
		if (payload) {
			assert_int_equal(payload[7], NGHTTP2_ENHANCE_YOUR_CALM);
			assert_int_equal(size, 8 + 14);
			assert_memory_equal(payload + 8, "too_many_pings", 14);
			assert_false(vdi_h2_connection_is_ready(f.connection));
		}
		end_test(&f);
	}
}

/* Each answered ping is followed by another. */
static void pings_go_on_as_long_as_they_are_answered(void **state)
{
	struct fixture f;
	unsigned       pings = 0;

	(void) state;
	set_up(&f);
	assert_status(
		connect_client(&f, (struct vdi_h2_connection_options) { .keepalive_time = VD_MS(1),
									.keepalive_timeout = VD_SECONDS(300),
									.keepalive_without_streams = true }),
		VD_OK);
	say(&f, settings, sizeof settings);
	while (pings < 4) {
		struct told told;
		size_t	    size;

		(void) event_base_loop(vdi_loop_base(f.loop), EVLOOP_ONCE);
		hear(&f, &told);
		if (next_of(&told, NGHTTP2_PING, 0, &size)) {
			pings++;
			assert_null(next_of(&told, NGHTTP2_PING, 0,
					    &size)); /* not another one before the answer */
			say_ping(&f, NGHTTP2_FLAG_ACK, 0);
		}
	}
	assert_int_equal(f.ended, 0);
	end_test(&f);
}

/* Who asks without reading is not read from any more, and goes on when it reads: every question is
 * answered, once and in order. */
static void a_peer_that_does_not_read_is_not_read_from(void **state)
{
	struct fixture f;
	unsigned       asked = 0, answered = 0;
	int	       unread = 0;
	uint8_t	       ping[17] = { 0, 0, 8, NGHTTP2_PING };
	struct told    told = { .size = 0 };
	size_t	       have = 0;

	(void) state;
	set_up(&f);
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { .is_server = true }), VD_OK);
	say(&f, preface, 24);
	say(&f, settings, sizeof settings);
	/* Until the last hundred questions stay where they are. */
	while (unread == 0) {
		for (unsigned i = 0; i < 100; i++, asked++) {
			ping[15] = (uint8_t) (asked >> 8);
			ping[16] = (uint8_t) asked;
			say(&f, ping, sizeof ping);
		}
		settle(&f);
		assert_int_equal(ioctl(f.fds[0], FIONREAD, &unread), 0);
	}
	assert_int_equal(unread, 100 * sizeof ping);
	assert_int_equal(f.ended, 0);
	assert_true(vdi_h2_connection_kept(f.connection) > 0);
	while (answered < asked) {
		ssize_t got = recv(f.fds[1], told.bytes + have, sizeof told.bytes - have, MSG_DONTWAIT);
		size_t	at = 0;

		settle(&f);
		assert_int_equal(f.ended, 0);
		if (got <= 0)
			continue;
		for (have += (size_t) got; at + 9 <= have && at + 9 + told.bytes[at + 2] <= have;
		     at += 9u + told.bytes[at + 2])
			if (told.bytes[at + 3] == NGHTTP2_PING) {
				assert_int_equal(told.bytes[at + 4], NGHTTP2_FLAG_ACK);
				assert_int_equal(told.bytes[at + 15] << 8 | told.bytes[at + 16],
						 answered & 0xffff);
				answered++;
			}
		memmove(told.bytes, told.bytes + at, have - at);
		have -= at;
	}
	assert_true(asked > 1000);
	settle(&f);
	assert_int_equal(vdi_h2_connection_kept(f.connection), 0);
	end_test(&f);
}

/* ---- Bounds ---- */

static size_t put_field(uint8_t *at, uint8_t value_size)
{
	at[0] = 0; /* literal, in no table */
	at[1] = 1;
	at[2] = 'x';
	at[3] = value_size;
	memset(at + 4, 'v', value_size);
	return 4u + value_size;
}

static void say_frame(struct fixture *f, uint8_t type, uint8_t flags, const uint8_t *payload, size_t size)
{
	uint8_t frame[9 + 16384] = {
		(uint8_t) (size >> 16), (uint8_t) (size >> 8), (uint8_t) size, type, flags, 0, 0, 0, 1
	};

	memcpy(frame + 9, payload, size);
	say(f, frame, 9 + size);
	settle(f);
}

/* 64 KiB of names and values, with 32 bytes for each; one more byte is too much for the stream, and for no
 * other. */
static void headers_are_taken_up_to_their_bound(void **state)
{
	for (int is_more = 0; is_more < 2; is_more++) {
		/* POST, http, /, and a literal authority: 43 + 43 + 38 + 43. */
		static uint8_t block[65536] = { 0x83, 0x86, 0x84, 0x01, 1, 'x' };
		size_t	       size = 6, at = 0, told_size;
		struct fixture f;
		struct told    told;

		(void) state;
		for (int i = 0; i < 427; i++)
			size += put_field(block + size, 120); /* 153 each */
		size += put_field(block + size, (uint8_t) (65536 - 167 - 427 * 153 - 33 + is_more));
		set_up(&f);
		assert_status(connect_client(&f, (struct vdi_h2_connection_options) { .is_server = true }),
			      VD_OK);
		say(&f, preface, 24);
		say(&f, settings, sizeof settings);
		settle(&f);
		hear(&f, &told);
		for (; at < size; at += 16000)
			say_frame(&f, at ? NGHTTP2_CONTINUATION : NGHTTP2_HEADERS,
				  at + 16000 >= size ? NGHTTP2_FLAG_END_HEADERS : 0, block + at,
				  VDI_MIN(size - at, (size_t) 16000));
		hear(&f, &told);
		assert_int_equal(next_of(&told, NGHTTP2_RST_STREAM, 0, &told_size) != NULL, is_more);
		assert_true(vdi_h2_connection_is_ready(f.connection));
		end_test(&f);
	}
}

/* Of what a peer says when it goes, a hundred bytes are told. */
static void the_last_words_are_cut(void **state)
{
	static const size_t sizes[] = { 99, 100, 101, 1000 };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(sizes); i++) {
		uint8_t payload[8 + 1000] = { 0, 0, 0, 0, 0, 0, 0, NGHTTP2_INTERNAL_ERROR }, frame[9 + 1008];
		size_t	size = 8 + sizes[i];
		struct fixture f;

		memset(payload + 8, 'w', 1000);
		memcpy(frame,
		       ((uint8_t[]) { 0, (uint8_t) (size >> 8), (uint8_t) size, NGHTTP2_GOAWAY, 0, 0, 0, 0,
				      0 }),
		       9);
		memcpy(frame + 9, payload, size);
		set_up(&f);
		assert_status(connect_client(&f, (struct vdi_h2_connection_options) { 0 }), VD_OK);
		say(&f, settings, sizeof settings);
		say(&f, frame, 9 + size);
		settle(&f);
		assert_int_equal(shutdown(f.fds[1], SHUT_WR), 0);
		settle(&f);
		assert_int_equal(strlen(f.why), strlen("the peer ended the connection: INTERNAL_ERROR, ") +
							VDI_MIN(sizes[i], (size_t) 100));
		end_test(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_that_does_not_answer_pings_is_left),
		cmocka_unit_test(a_peer_that_says_nothing_is_left),
		cmocka_unit_test(a_peer_that_goes_is_seen),
		cmocka_unit_test(a_connection_that_is_closed_says_goodbye),
		cmocka_unit_test(without_memory_the_socket_stays_the_callers),
		cmocka_unit_test(each_side_says_its_settings_first),
		cmocka_unit_test(the_first_reason_counts),
		cmocka_unit_test(a_connection_that_is_reset_is_said_to_be),
		cmocka_unit_test(a_peer_says_why_it_goes),
		cmocka_unit_test(a_close_with_time_waits_for_the_peer),
		cmocka_unit_test(a_close_before_it_began_says_nothing),
		cmocka_unit_test(a_peer_that_pings_too_often_is_told_so),
		cmocka_unit_test(pings_go_on_as_long_as_they_are_answered),
		cmocka_unit_test(a_peer_that_does_not_read_is_not_read_from),
		cmocka_unit_test(headers_are_taken_up_to_their_bound),
		cmocka_unit_test(the_last_words_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
