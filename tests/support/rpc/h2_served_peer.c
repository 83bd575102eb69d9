#include "h2_served_peer.h"

struct peer peer;

int h2_served_start_with(const struct vdi_rpc_server_options *options)
{
	rpc_fixture_start(NULL);
	assert_status(rpc_echo_start(&echo, env, NULL, options, NULL), VD_OK);
	peer_connect(&peer, rpc_echo_address(&echo));
	return 0;
}

int h2_served_start(void **state)
{
	(void) state;
	h2_served_start_with(NULL);
	peer_begin(&peer, -1);
	return 0;
}

int h2_served_stop(void **state)
{
	(void) state;
	peer_close(&peer);
	rpc_echo_stop(&echo, env);
	assert_int_equal(echo.accepted, echo.ended);
	return rpc_fixture_stop(state);
}

void h2_served_expect(struct heard heard, int status, const char *message)
{
	assert_string_equal(heard.message, message);
	assert_int_equal(heard.status, status);
	assert_true(heard.is_whole);
}

struct heard h2_served_ask(uint32_t stream, const char *const *extra)
{
	assert_true(peer_request(&peer, stream, "/test.Echo/Echo", 0, extra));
	(void) peer_message(&peer, stream, "x", NGHTTP2_FLAG_END_STREAM);
	return peer_hear(&peer, stream);
}
