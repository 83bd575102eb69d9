/* The timers of one connection, to the nanosecond: time moves when the test says so. */
#include "h2_pair.h"

#define JUST_BEFORE(duration) ((vd_dur) { (duration).ns - 1 })
#define AN_INSTANT ((vd_dur) { 1 })
#define TIME VD_SECONDS(10)
#define TIMEOUT VD_SECONDS(3)

static unsigned count_of(struct fixture *f, uint8_t type)
{
	struct told told;
	unsigned    count = 0;
	size_t	    size;

	hear(f, &told);
	while (next_of(&told, type, 0, &size))
		count++;
	return count;
}

static unsigned pings(struct fixture *f)
{
	return count_of(f, NGHTTP2_PING);
}

static void start(struct fixture *f, struct vdi_h2_connection_options options)
{
	set_up_with_clock(f);
	assert_status(connect_client(f, options), VD_OK);
	settle(f);
	if (options.is_server)
		say(f, preface, 24);
	say(f, settings, sizeof settings);
	settle(f);
	assert_int_equal(f->ready, 1);
	assert_int_equal(pings(f), 0);
}

static void start_keepalive(struct fixture *f, bool without_streams)
{
	start(f, (struct vdi_h2_connection_options) { .keepalive_time = TIME,
						      .keepalive_timeout = TIMEOUT,
						      .keepalive_without_streams = without_streams });
}

static void expect_end(struct fixture *f, const char *why)
{
	assert_int_equal(f->ended, 1);
	assert_string_equal(f->why, why);
	tear_down(f);
}

/* ---- Keepalive ---- */

static void a_silent_peer_is_asked_once_and_then_left(void **state)
{
	struct fixture f;

	(void) state;
	start_keepalive(&f, true);
	advance(&f, JUST_BEFORE(TIME));
	assert_int_equal(pings(&f), 0);
	advance(&f, AN_INSTANT);
	assert_int_equal(pings(&f), 1);
	advance(&f, JUST_BEFORE(TIMEOUT));
	assert_int_equal(pings(&f), 0);
	assert_int_equal(f.ended, 0);
	advance(&f, AN_INSTANT);
	expect_end(&f, "keepalive ping failed to receive ACK within timeout");
}

static void whatever_the_peer_says_is_a_sign_of_life(void **state)
{
	struct fixture f;

	(void) state;
	start_keepalive(&f, true);
	for (int i = 0; i < 3; i++) {
		/* In the time between pings: the next one is asked for so much later. */
		advance(&f, VD_SECONDS(4));
		say_ping(&f, 0, 1);
		settle(&f);
		(void) pings(&f);
		advance(&f, JUST_BEFORE(TIME));
		assert_int_equal(pings(&f), 0);
		advance(&f, AN_INSTANT);
		assert_int_equal(pings(&f), 1);
		/* And after one: any frame is as good as the answer. */
		advance(&f, JUST_BEFORE(TIMEOUT));
		say_ping(&f, i % 2 ? NGHTTP2_FLAG_ACK : 0, 0);
		settle(&f);
		(void) pings(&f);
		advance(&f, TIMEOUT);
		assert_int_equal(f.ended, 0);
		assert_int_equal(pings(&f), 0);
	}
	end_test(&f);
}

static void without_keepalive_silence_is_nothing(void **state)
{
	struct fixture f;

	(void) state;
	start(&f, (struct vdi_h2_connection_options) { .settle_timeout = VD_SECONDS(5),
						       .keepalive_timeout = TIMEOUT,
						       .keepalive_without_streams = true });
	advance(&f, VD_SECONDS(100000));
	assert_int_equal(pings(&f), 0);
	assert_int_equal(f.ended, 0);
	end_test(&f);
}

static void the_answer_has_twenty_seconds_if_nothing_else_is_said(void **state)
{
	struct fixture f;

	(void) state;
	start(&f, (struct vdi_h2_connection_options) { .keepalive_time = TIME,
						       .keepalive_without_streams = true });
	advance(&f, TIME);
	advance(&f, JUST_BEFORE(VD_SECONDS(20)));
	assert_int_equal(f.ended, 0);
	advance(&f, AN_INSTANT);
	expect_end(&f, "keepalive ping failed to receive ACK within timeout");
}

/* ---- Only while there are streams ---- */

static int32_t open_stream(struct fixture *f)
{
	static const char *const words[][2] = {
		{ ":method", "POST" }, { ":scheme", "http" }, { ":path", "/a/b" }, { ":authority", "x" }
	};
	nghttp2_nv pairs[VDI_ARRAY_SIZE(words)];
	int32_t	   id;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(words); i++)
		pairs[i] = (nghttp2_nv) { .name = (uint8_t *) (uintptr_t) words[i][0],
					  .value = (uint8_t *) (uintptr_t) words[i][1],
					  .namelen = strlen(words[i][0]),
					  .valuelen = strlen(words[i][1]) };
	id = nghttp2_submit_request(vdi_h2_connection_session(f->connection), NULL, pairs,
				    VDI_ARRAY_SIZE(pairs), NULL, NULL);
	assert_true(id > 0);
	vdi_h2_connection_touch(f->connection);
	settle(f);
	return id;
}

static void say_reset(struct fixture *f, int32_t stream)
{
	const uint8_t frame[] = { 0, 0, 4, NGHTTP2_RST_STREAM, 0, 0, 0, 0, (uint8_t) stream,
				  0, 0, 0, NGHTTP2_CANCEL };

	say(f, frame, sizeof frame);
	settle(f);
}

/* A look finds the peer silent for so long, or not. Answers whether it was asked; then it has answered. */
static bool is_asked(struct fixture *f)
{
	unsigned count;

	advance(f, TIME);
	count = pings(f);
	assert_true(count <= 1);
	say_ping(f, NGHTTP2_FLAG_ACK, 0);
	settle(f);
	return count == 1;
}

static void a_client_asks_only_while_it_has_streams(void **state)
{
	struct fixture f;
	int32_t	       one, two;

	(void) state;
	start_keepalive(&f, false);
	assert_false(is_asked(&f));
	assert_false(is_asked(&f));
	one = open_stream(&f);
	assert_true(is_asked(&f));
	two = open_stream(&f);
	assert_true(is_asked(&f));
	say_reset(&f, one);
	assert_true(is_asked(&f));
	say_reset(&f, two);
	assert_false(is_asked(&f));
	/* As long as it has none, it looks again after the same time. */
	advance(&f, JUST_BEFORE(TIME));
	(void) open_stream(&f);
	assert_int_equal(pings(&f), 0);
	advance(&f, AN_INSTANT);
	assert_int_equal(pings(&f), 1);
	end_test(&f);
}

static void say_goaway(struct fixture *f, uint8_t last)
{
	const uint8_t frame[] = { 0, 0, 8, NGHTTP2_GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, last, 0, 0, 0, 0 };

	say(f, frame, sizeof frame);
	settle(f);
}

/* A request that nghttp2 could not send any more was never a stream. */
static void a_request_that_was_not_sent_is_no_stream(void **state)
{
	struct fixture f;
	int32_t	       one;

	(void) state;
	start_keepalive(&f, false);
	one = open_stream(&f);
	say_goaway(&f, (uint8_t) one);
	(void) open_stream(&f);
	assert_true(is_asked(&f));
	assert_true(is_asked(&f));
	end_test(&f);
}

static void say_request(struct fixture *f, uint8_t stream)
{
	/* Of the static table: POST, http, "/"; a literal authority. */
	const uint8_t frame[] = {
		0,    0, 6,  NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 0, 0, 0, stream, 0x83, 0x86, 0x84,
		0x01, 1, 'x'
	};

	say(f, frame, sizeof frame);
	settle(f);
}

static void a_server_counts_the_streams_of_its_client(void **state)
{
	struct fixture f;

	(void) state;
	start(&f, (struct vdi_h2_connection_options) {
			  .is_server = true, .keepalive_time = TIME, .keepalive_timeout = TIMEOUT });
	assert_false(is_asked(&f));
	say_request(&f, 1);
	assert_true(is_asked(&f));
	say_request(&f, 3);
	say_reset(&f, 1);
	assert_true(is_asked(&f));
	say_reset(&f, 3);
	assert_false(is_asked(&f));
	end_test(&f);
}

/* ---- The first settings, and closing ---- */

static void settings_have_until_their_time(void **state)
{
	for (int is_server = 0; is_server < 2; is_server++) {
		struct fixture f;

		(void) state;
		set_up_with_clock(&f);
		assert_status(
			connect_client(
				&f, (struct vdi_h2_connection_options) { .is_server = is_server,
									 .settle_timeout = VD_SECONDS(5),
									 .keepalive_time = VD_SECONDS(1) }),
			VD_OK);
		settle(&f);
		advance(&f, JUST_BEFORE(VD_SECONDS(5)));
		assert_int_equal(f.ended, 0);
		assert_int_equal(pings(&f), 0);
		advance(&f, AN_INSTANT);
		expect_end(&f,
			   is_server ?
				   "no HTTP/2 settings received" :
				   "no HTTP/2 settings received (not an HTTP/2 server, or TLS is expected)");
	}
}

static void a_close_has_until_its_time(void **state)
{
	struct fixture f;

	(void) state;
	start_keepalive(&f, true);
	advance(&f, VD_SECONDS(9));
	vdi_h2_connection_close(f.connection, VD_SECONDS(2));
	settle(&f);
	assert_int_equal(count_of(&f, NGHTTP2_GOAWAY), 1);
	advance(&f, JUST_BEFORE(VD_SECONDS(2)));
	assert_int_equal(f.ended, 0);
	advance(&f, AN_INSTANT);
	expect_end(&f, "");
}

/* What comes meanwhile does not set it back, neither pings nor the first settings. */
static void nothing_prolongs_a_close(void **state)
{
	for (int is_ready = 0; is_ready < 2; is_ready++) {
		struct fixture f;

		(void) state;
		set_up_with_clock(&f);
		assert_status(
			connect_client(
				&f, (struct vdi_h2_connection_options) { .is_server = true,
									 .keepalive_time = TIME,
									 .keepalive_timeout = TIMEOUT,
									 .keepalive_without_streams = true }),
			VD_OK);
		settle(&f);
		say(&f, preface, 24);
		if (is_ready)
			say(&f, settings, sizeof settings);
		settle(&f);
		advance(&f, TIME);
		assert_int_equal(pings(&f), is_ready);
		vdi_h2_connection_close(f.connection, VD_SECONDS(2));
		say(&f, settings, sizeof settings);
		say_ping(&f, NGHTTP2_FLAG_ACK, 0);
		settle(&f);
		assert_int_equal(f.ready, is_ready);
		advance(&f, VD_SECONDS(1));
		say_ping(&f, NGHTTP2_FLAG_ACK, 0);
		settle(&f);
		advance(&f, VD_SECONDS(1));
		expect_end(&f, "");
	}
}

/* ---- A client that pings ---- */

static void expect_calm(struct fixture *f, bool calm)
{
	struct told told;
	size_t	    size;

	settle(f);
	hear(f, &told);
	assert_int_equal(next_of(&told, NGHTTP2_GOAWAY, 0, &size) == NULL, calm);
}

static void pings_in_their_interval_are_no_strikes(void **state)
{
	struct fixture f;

	(void) state;
	start(&f, (struct vdi_h2_connection_options) { .is_server = true, .ping_interval_min = TIME });
	for (uint8_t i = 0; i < 10; i++) {
		say_ping(&f, 0, i);
		expect_calm(&f, true);
		advance(&f, TIME);
	}
	/* The first one too soon is measured from the last one, and strikes add up over any time. */
	for (uint8_t i = 0; i < 3; i++) {
		say_ping(&f, 0, i);
		expect_calm(&f, true);
		advance(&f, JUST_BEFORE(TIME));
		say_ping(&f, 0, i);
		expect_calm(&f, i < 2);
		advance(&f, VD_SECONDS(1000));
	}
	assert_int_equal(f.ended, 1);
	tear_down(&f);
}

/* Whoever is sent an answer may ask anew whether the connection lives; settings are no answer. */
static void an_answer_forgives_all_strikes(void **state)
{
	for (int answers = 0; answers < 2; answers++) {
		struct fixture f;

		(void) state;
		start(&f,
		      (struct vdi_h2_connection_options) { .is_server = true, .ping_interval_min = TIME });
		say_request(&f, 1);
		for (uint8_t i = 0; i < 3; i++)
			say_ping(&f, 0, i);
		expect_calm(&f, true);
		if (answers) {
			const nghttp2_nv status = { (uint8_t *) (uintptr_t) ":status",
						    (uint8_t *) (uintptr_t) "200", 7, 3,
						    NGHTTP2_NV_FLAG_NONE };

			assert_int_equal(nghttp2_submit_response(vdi_h2_connection_session(f.connection), 1,
								 &status, 1, NULL),
					 0);
		} else
			assert_int_equal(nghttp2_submit_settings(vdi_h2_connection_session(f.connection),
								 NGHTTP2_FLAG_NONE, NULL, 0),
					 0);
		vdi_h2_connection_touch(f.connection);
		settle(&f);
		for (uint8_t i = 0; i < 3; i++) {
			say_ping(&f, 0, i);
			if (!answers)
				break;
		}
		expect_calm(&f, answers);
		if (answers) { /* and from there on they count as before */
			say_ping(&f, 0, 9);
			expect_calm(&f, false);
		}
		end_test(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_peer_is_asked_once_and_then_left),
		cmocka_unit_test(whatever_the_peer_says_is_a_sign_of_life),
		cmocka_unit_test(without_keepalive_silence_is_nothing),
		cmocka_unit_test(the_answer_has_twenty_seconds_if_nothing_else_is_said),
		cmocka_unit_test(a_client_asks_only_while_it_has_streams),
		cmocka_unit_test(a_request_that_was_not_sent_is_no_stream),
		cmocka_unit_test(a_server_counts_the_streams_of_its_client),
		cmocka_unit_test(settings_have_until_their_time),
		cmocka_unit_test(a_close_has_until_its_time),
		cmocka_unit_test(nothing_prolongs_a_close),
		cmocka_unit_test(pings_in_their_interval_are_no_strikes),
		cmocka_unit_test(an_answer_forgives_all_strikes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
