/* The request parser: what it takes apart, what it refuses, and that the way bytes arrive makes no
 * difference. */
#include "vdtest.h"

#include "http_parser.h"

#define OK_HEAD "GET /api/v1/pods?limit=5 HTTP/1.1\r\nHost: localhost\r\nAccept: a, b\r\n\r\n"

static vd_status parse(const char *text, struct vdi_http_head *head, struct vdi_http_refusal *refusal)
{
	struct vdi_http_scan scan = { 0 };
	size_t		     size;

	memset(refusal, 0, sizeof *refusal);
	VDI_TRY(vdi_http_scan(&scan, vd_bytes_of(text), &size, refusal));
	return vdi_http_head_parse((struct vd_bytes) { text, size }, head, refusal);
}

static void h604_takes_a_plain_head_apart(void **state)
{
	struct vdi_http_head	head;
	struct vdi_http_refusal refusal;
	struct vd_bytes		value;

	assert_status(parse(OK_HEAD, &head, &refusal), VD_OK);
	assert_int_equal(head.method, VDI_HTTP_GET);
	assert_true(vd_bytes_equal(head.path, vd_bytes_of("/api/v1/pods")));
	assert_true(vd_bytes_equal(head.query, vd_bytes_of("limit=5")));
	assert_true(head.keep_alive);
	assert_int_equal(head.content_length, -1);
	assert_true(vdi_http_header_get(&head, "aCCEPT", &value));
	assert_true(vd_bytes_equal(value, vd_bytes_of("a, b")));
	assert_false(vdi_http_header_get(&head, "Accept-Encoding", &value));
}

static void h604_refuses_what_two_readers_could_understand_differently(void **state)
{
	static const struct {
		const char *text;
		int	    code;
	} rows[] = {
		{ "GET / HTTP/1.1\r\n\r\n", 400 }, /* no Host */
		{ "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nauthorization: Bearer a\r\n\r\n",
		  400 },
		{ "GET / HTTP/1.1\nHost: a\n\n", 400 },		 /* bare LF */
		{ "GET / HTTP/1.1\rX\r\nHost: a\r\n\r\n", 400 }, /* bare CR */
		{ "GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400 },	 /* blank before the colon */
		{ "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400 },
		{ "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400 }, /* blank in the target */
		{ "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
		{ "GET /# HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
		{ "GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
		{ "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505 },
		{ "GET / http/1.1\r\nHost: a\r\n\r\n", 400 },
		{ "G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		  400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400 },
		{ "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3145729\r\n\r\n", 413 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
		  "chunked\r\n\r\n",
		  400 },
		{ "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n\r\n", 417 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nnocolon\r\n\r\n", 400 },
	};
	struct vdi_http_head	head;
	struct vdi_http_refusal refusal;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		assert_status(parse(rows[i].text, &head, &refusal), VD_BAD_REQUEST);
		assert_int_equal(refusal.code, rows[i].code);
		assert_non_null(refusal.message);
	}
}

static void keep_alive_follows_version_and_connection(void **state)
{
	struct vdi_http_head	head;
	struct vdi_http_refusal refusal;

	assert_status(parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n", &head, &refusal),
		      VD_OK);
	assert_false(head.keep_alive);
	assert_status(parse("GET / HTTP/1.0\r\n\r\n", &head, &refusal), VD_OK);
	assert_false(head.keep_alive);
	assert_status(parse("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &head, &refusal), VD_OK);
	assert_true(head.keep_alive);
	assert_status(parse("GET http://host:80/x HTTP/1.1\r\nHost: host\r\n\r\n", &head, &refusal), VD_OK);
	assert_true(vd_bytes_equal(head.path, vd_bytes_of("/x")));
	assert_status(parse("OPTIONS * HTTP/1.1\r\nHost: host\r\n\r\n", &head, &refusal), VD_OK);
}

/* Byte by byte the end is found at the same place, and an error at the byte that makes it one. */
static void splitting_the_head_changes_nothing(void **state)
{
	struct vdi_http_refusal refusal;
	struct vdi_http_scan	scan = { 0 };
	size_t			size = 0, total = strlen(OK_HEAD);

	for (size_t i = 1; i < total; i++)
		assert_status(vdi_http_scan(&scan, (struct vd_bytes) { OK_HEAD, i }, &size, &refusal),
			      VD_AGAIN);
	assert_status(vdi_http_scan(&scan, vd_bytes_of(OK_HEAD), &size, &refusal), VD_OK);
	assert_int_equal(size, total);

	memset(&scan, 0, sizeof scan);
	assert_status(vdi_http_scan(&scan, vd_bytes_of("GET /\n"), &size, &refusal), VD_BAD_REQUEST);
}

static void h601_long_lines_and_heads_are_refused(void **state)
{
	static char		text[VDI_HTTP_HEAD_MAX + 2];
	struct vdi_http_refusal refusal;
	struct vdi_http_scan	scan = { 0 };
	size_t			size;

	memset(text, 'a', sizeof text);
	assert_status(vdi_http_scan(&scan, (struct vd_bytes) { text, VDI_HTTP_LINE_MAX }, &size, &refusal),
		      VD_AGAIN);
	assert_status(
		vdi_http_scan(&scan, (struct vd_bytes) { text, VDI_HTTP_LINE_MAX + 1 }, &size, &refusal),
		VD_BAD_REQUEST);
	assert_int_equal(refusal.code, 414);
	memset(&scan, 0, sizeof scan);
	text[10] = '\r';
	text[11] = '\n';
	assert_status(vdi_http_scan(&scan, (struct vd_bytes) { text, sizeof text }, &size, &refusal),
		      VD_BAD_REQUEST);
	assert_int_equal(refusal.code, 431);
}

static vd_status decode(const char *text, size_t step, char *to, size_t *ret_size, size_t *ret_used)
{
	struct vdi_http_chunked chunked = { 0 };
	struct vdi_http_refusal refusal;
	size_t			at = 0, available = 0, total = strlen(text);

	*ret_size = 0;
	while (at < total) {
		struct vd_bytes data;
		size_t		taken;
		vd_status	status;

		available = VDI_MIN(total, VDI_MAX(available, at) + (available > at ? 0 : step));
		status = vdi_http_chunked_take(&chunked, (struct vd_bytes) { text + at, available - at },
					       &taken, &data, &refusal);
		if (status == VD_BAD_REQUEST)
			return status;
		if (data.size)
			memcpy(to + *ret_size, data.data, data.size);
		*ret_size += data.size;
		at += taken;
		*ret_used = at;
		if (status == VD_OK)
			return VD_OK;
	}
	return VD_AGAIN;
}

static void h506_chunked_bodies_are_decoded_however_they_arrive(void **state)
{
	static const char text[] =
		"5;x=y\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\nTrailer: z\r\n\r\nNEXT";
	char   body[64];
	size_t size, used;

	for (size_t step = 1; step <= sizeof text; step++) {
		assert_status(decode(text, step, body, &size, &used), VD_OK);
		assert_int_equal(size, 16);
		assert_memory_equal(body, "hello 0123456789", 16);
		assert_int_equal(used, strlen(text) - 4);
	}
}

static void malformed_chunks_are_refused(void **state)
{
	static const char *const rows[] = { "\r\n",   "g\r\n",	       "5\nhello", "5\r\nhelloX",
					    "-1\r\n", "123456789\r\n", "0\r\n\n",  "5 \r\nhello\r\n" };
	char			 body[64];
	size_t			 size, used;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		assert_status(decode(rows[i], 100, body, &size, &used), VD_BAD_REQUEST);
}

static void percent_encoding_keeps_only_unreserved_characters(void **state)
{
	static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	unsigned char	  all[256];
	char		  encoded[3 * 256], decoded[3 * 256];
	size_t		  size, decoded_size, i;

	for (i = 0; i < sizeof all; i++)
		all[i] = (unsigned char) i;
	size = vdi_percent_encode((struct vd_bytes) { all, sizeof all }, encoded);
	assert_int_equal(size, strlen(unreserved) + 3 * (sizeof all - strlen(unreserved)));
	for (i = 0; i < size; i++)
		assert_true(encoded[i] == '%' || memchr(unreserved, encoded[i], strlen(unreserved)) != NULL);
	assert_true(vdi_percent_decode((struct vd_bytes) { encoded, size }, false, decoded, &decoded_size));
	assert_int_equal(decoded_size, sizeof all);
	assert_memory_equal(decoded, all, sizeof all);
	assert_int_equal(vdi_percent_encode(VD_BYTES_NONE, encoded), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h604_takes_a_plain_head_apart),
		cmocka_unit_test(h604_refuses_what_two_readers_could_understand_differently),
		cmocka_unit_test(keep_alive_follows_version_and_connection),
		cmocka_unit_test(splitting_the_head_changes_nothing),
		cmocka_unit_test(h601_long_lines_and_heads_are_refused),
		cmocka_unit_test(h506_chunked_bodies_are_decoded_however_they_arrive),
		cmocka_unit_test(malformed_chunks_are_refused),
		cmocka_unit_test(percent_encoding_keeps_only_unreserved_characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
