/* Unit tests of lib/json/json_stream.c: the end of each value of a stream, for chunks of each size. */
#include "json_stream.h"

#include "vdtest.h"

struct found {
	char			text[400];
	vd_status		answer; /* of the callback */
	struct vdi_json_stream *stream;
};

static vd_status note(void *arg, struct vd_bytes value)
{
	struct found *found = arg;
	size_t	      size = strlen(found->text);

	(void) snprintf(found->text + size, sizeof found->text - size, "%llu:%.*s|",
			(unsigned long long) found->stream->line, (int) value.size,
			(const char *) value.data);
	return found->answer;
}

/* Feeds text in chunks of the given size. */
static vd_status feed(struct vdi_json_stream *stream, const char *text, size_t chunk, struct found *found)
{
	size_t size = strlen(text);

	*found = (struct found) { .stream = stream };
	for (size_t at = 0; at < size; at += chunk)
		VDI_TRY(vdi_json_stream_feed(
			stream, (struct vd_bytes) { text + at, VDI_MIN(chunk, size - at) }, note, found));
	return VD_OK;
}

static void values_end_with_their_bracket(void **state)
{
	static const struct {
		const char *text, *values;
		bool	    is_open;
	} rows[] = {
		{ "", "", false },
		{ " \t\r\n,\n", "", false },
		{ "{}", "1:{}|", false },
		{ "[]", "1:[]|", false },
		{ "{}{}\n[1]", "1:{}|1:{}|2:[1]|", false },
		{ " {\"a\":[{},{}]} , {\"b\":{}}\n", "1:{\"a\":[{},{}]}|1:{\"b\":{}}|", false },
		{ "\n\n{\n\"a\"\n:1}\n\n{}", "3:{\n\"a\"\n:1}|7:{}|", false },
		{ "{\"}\":\"{[\"}{}", "1:{\"}\":\"{[\"}|1:{}|", false },
		{ "{\"\\\"}\":1}[]", "1:{\"\\\"}\":1}|1:[]|", false },
		{ "{\"\\\\\":1}[]", "1:{\"\\\\\":1}|1:[]|", false },
		{ "{\"a\":\"\\\\\\\"]}\"}[]", "1:{\"a\":\"\\\\\\\"]}\"}|1:[]|", false },
		{ "{}{", "1:{}|", true },
		{ "{}[{}", "1:{}|", true },
		{ "{}{\"a", "1:{}|", true },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (size_t chunk = 1; chunk <= 40; chunk++) {
			struct vdi_json_stream stream = { 0 };
			struct found	       found;

			assert_status(feed(&stream, rows[i].text, chunk, &found), VD_OK);
			if (strcmp(found.text, rows[i].values) != 0)
				fail_msg("%s in chunks of %zu: %s", rows[i].text, chunk, found.text);
			assert_int_equal(vdi_json_stream_is_open(&stream), rows[i].is_open);
			vdi_json_stream_reset(&stream);
			assert_false(vdi_json_stream_is_open(&stream));
			assert_status(feed(&stream, "{\"a\":[]}", chunk, &found), VD_OK);
			assert_non_null(strstr(found.text, ":{\"a\":[]}|"));
			vdi_json_stream_fini(&stream);
			assert_null(stream.data);
		}
}

static void other_values_at_the_top_are_refused(void **state)
{
	static const char *const rows[] = { "1", "\"a\"", "null", "}", "]", "{} x", ":", "\v{}" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_json_stream stream = { 0 };
		struct found	       found;

		assert_status(feed(&stream, rows[i], 100, &found), VD_BAD_REQUEST);
		vdi_json_stream_fini(&stream);
	}
}

static void the_callback_may_end_the_feed(void **state)
{
	struct vdi_json_stream stream = { 0 };
	struct found	       found = { .answer = VD_CANCELED, .stream = &stream };

	assert_status(vdi_json_stream_feed(&stream, vd_bytes_of("{}{}"), note, &found), VD_CANCELED);
	assert_string_equal(found.text, "1:{}|");
	vdi_json_stream_fini(&stream);
}

static void a_value_has_a_largest_size(void **state)
{
	struct vdi_json_stream stream = { 0 };
	struct found	       found = { .stream = &stream };
	char		      *blank = malloc(VDI_JSON_STREAM_VALUE_MAX + 1);

	memset(blank, ' ', VDI_JSON_STREAM_VALUE_MAX + 1);
	assert_status(vdi_json_stream_feed(&stream,
					   (struct vd_bytes) { blank, VDI_JSON_STREAM_VALUE_MAX + 1 }, note,
					   &found),
		      VD_TOO_BIG);
	blank[0] = '{';
	assert_status(vdi_json_stream_feed(&stream, (struct vd_bytes) { blank, VDI_JSON_STREAM_VALUE_MAX },
					   note, &found),
		      VD_OK);
	assert_status(vdi_json_stream_feed(&stream, vd_bytes_of("}"), note, &found), VD_TOO_BIG);
	vdi_json_stream_fini(&stream);
	free(blank);
}

static void without_memory_nothing_is_taken(void **state)
{
	struct vdi_json_stream stream = { 0 };
	struct found	       found = { .stream = &stream };

	(void) vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_json_stream_feed(&stream, vd_bytes_of("{}"), note, &found), VD_NOMEM);
	(void) vdi_alloc_fail_nth(0, 0);
	assert_string_equal(found.text, "");
	assert_status(vdi_json_stream_feed(&stream, VD_BYTES_NONE, note, &found), VD_OK);
	assert_status(vdi_json_stream_feed(&stream, vd_bytes_of("{}"), note, &found), VD_OK);
	assert_string_equal(found.text, "1:{}|");
	vdi_json_stream_fini(&stream);
}

/* ---- Blocks ---- */

/* Notes the values' places and lines instead of their text. */
static vd_status note_place(void *arg, struct vd_bytes value)
{
	struct found *found = arg;
	size_t	      size = strlen(found->text);

	if (size + 40 < sizeof found->text)
		(void) snprintf(found->text + size, sizeof found->text - size, "%llu:%zu:%02x|",
				(unsigned long long) found->stream->line, value.size,
				((const unsigned char *) value.data)[value.size / 2]);
	return VD_OK;
}

static vd_status feed_places(const char *text, size_t size, size_t chunk, struct found *found)
{
	struct vdi_json_stream stream = { 0 };
	vd_status	       status = VD_OK;

	*found = (struct found) { .stream = &stream };
	for (size_t at = 0; at < size && status == VD_OK; at += chunk)
		status = vdi_json_stream_feed(&stream,
					      (struct vd_bytes) { text + at, VDI_MIN(chunk, size - at) },
					      note_place, found);
	(void) snprintf(found->text + strlen(found->text), 20, "%u%u%u", stream.depth, stream.in_string,
			stream.escaped);
	vdi_json_stream_fini(&stream);
	return status;
}

/* Random text of the characters that matter, with long runs of the others. */
static size_t make_text(char *text, size_t max)
{
	static const char letters[] = "{}[]{}[]\"\"\"\\\\\n ,:a\x5c\x7b\xdb\xdd\xa2";
	size_t		  size = 1 + (size_t) rand() % max;

	text[0] = '{';
	for (size_t at = 1; at < size; at++) {
		size_t run = rand() % 8 == 0 ? (size_t) rand() % 150 : 0;

		for (; run > 0 && at < size; run--)
			text[at++] = 'x';
		if (at < size)
			text[at] = letters[(size_t) rand() % (sizeof letters - 1)];
	}
	return size;
}

/* Chunks of one byte are too short for blocks. */
static void blocks_find_what_single_characters_find(void **state)
{
	char	     text[2000];
	struct found found, expected;

	for (unsigned i = 0; i < 20000; i++) {
		size_t	  size = make_text(text, i % 2 ? sizeof text : 200);
		vd_status status = feed_places(text, size, 1, &expected);

		for (size_t chunk = 64; chunk < size + 64; chunk = chunk * 3 + 7) {
			assert_status(feed_places(text, size, chunk, &found), status);
			if (status == VD_OK)
				assert_string_equal(found.text, expected.text);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_end_with_their_bracket),
		cmocka_unit_test(other_values_at_the_top_are_refused),
		cmocka_unit_test(the_callback_may_end_the_feed),
		cmocka_unit_test(a_value_has_a_largest_size),
		cmocka_unit_test(without_memory_nothing_is_taken),
		cmocka_unit_test(blocks_find_what_single_characters_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
