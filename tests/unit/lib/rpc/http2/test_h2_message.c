#include "h2_message.h"
#include "vdtest.h"

static const char two[] = "\0\0\0\0\5hello\0\0\0\0\0";

static void expect_message(struct vdi_rpc_message *message, const char *text)
{
	assert_true(vd_bytes_equal(message->bytes, vd_bytes_of(text)));
	vdi_rpc_message_release(message);
}

static void messages_in_pieces_of_every_size(void **state)
{
	(void) state;
	for (size_t piece = 1; piece < sizeof two; piece++) {
		struct vdi_h2_inbox    inbox;
		struct vdi_rpc_message messages[2];
		unsigned	       count = 0;
		size_t		       settled = 0;

		vdi_h2_inbox_init(&inbox, 5);
		for (size_t at = 0; at < sizeof two - 1;) {
			size_t	  used, left = VDI_MIN(piece - at % piece, sizeof two - 1 - at);
			vd_status status = vdi_h2_inbox_take(&inbox, (struct vd_bytes) { two + at, left },
							     &used, &messages[count]);

			assert_true(used > 0 && used <= left);
			assert_true(status == VD_AGAIN ? used == left : status == VD_OK);
			count += status == VD_OK;
			at += used;
			settled += vdi_h2_inbox_settle(&inbox);
		}
		assert_int_equal(count, 2);
		assert_int_equal(settled, sizeof two - 1);
		assert_false(vdi_h2_inbox_is_torn(&inbox));
		expect_message(&messages[0], "hello");
		expect_message(&messages[1], "");
		vdi_h2_inbox_fini(&inbox);
	}
}

static void what_was_not_asked_for_is_kept_and_not_settled(void **state)
{
	struct vdi_h2_inbox    inbox;
	struct vdi_rpc_message message;

	(void) state;
	vdi_h2_inbox_init(&inbox, 5);
	assert_status(vdi_h2_inbox_keep(&inbox, (struct vd_bytes) { two, 7 }), VD_OK);
	assert_status(vdi_h2_inbox_keep(&inbox, (struct vd_bytes) { two + 7, sizeof two - 8 }), VD_OK);
	assert_int_equal(vdi_h2_inbox_settle(&inbox), 0);
	assert_status(vdi_h2_inbox_next(&inbox, &message), VD_OK);
	expect_message(&message, "hello");
	assert_int_equal(vdi_h2_inbox_settle(&inbox), 10);
	assert_true(vdi_h2_inbox_has_kept(&inbox));
	assert_status(vdi_h2_inbox_next(&inbox, &message), VD_OK);
	expect_message(&message, "");
	assert_status(vdi_h2_inbox_next(&inbox, &message), VD_AGAIN);
	assert_int_equal(vdi_h2_inbox_settle(&inbox), 5);
	vdi_h2_inbox_fini(&inbox);
}

/* A body of HTTP has no frame of gRPC around it: the bytes as they are, copied. */
static void a_plain_body_is_copied(void **state)
{
	char			bytes[] = "healthy";
	struct vdi_h2_outgoing *outgoing;

	(void) state;
	assert_status(vdi_h2_outgoing_new_plain((struct vd_bytes) { bytes, 7 }, &outgoing), VD_OK);
	memset(bytes, 0, sizeof bytes);
	assert_int_equal(outgoing->size, 7);
	assert_int_equal(outgoing->head_size, 7);
	assert_memory_equal(outgoing->head, "healthy", 7);
	(void) vdi_h2_outgoing_free(outgoing);
	assert_status(vdi_h2_outgoing_new_plain(VD_BYTES_NONE, &outgoing), VD_OK);
	assert_int_equal(outgoing->size, 0);
	(void) vdi_h2_outgoing_free(outgoing);
}

static void what_is_no_message(void **state)
{
	struct vdi_h2_inbox    inbox;
	struct vdi_rpc_message message;
	size_t		       used;

	(void) state;
	vdi_h2_inbox_init(&inbox, 5);
	assert_status(vdi_h2_inbox_take(&inbox, (struct vd_bytes) { "\0\0\0\0\6", 5 }, &used, &message),
		      VD_TOO_BIG);
	assert_int_equal(inbox.size, 6);
	vdi_h2_inbox_fini(&inbox);
	vdi_h2_inbox_init(&inbox, 5);
	assert_status(vdi_h2_inbox_take(&inbox, (struct vd_bytes) { "\1\0\0\0\1", 5 }, &used, &message),
		      VD_BAD_REQUEST);
	vdi_h2_inbox_fini(&inbox);
}

/* Its memory grows with what comes of it. */
static void a_large_message(void **state)
{
	enum { SIZE = 5000000 };
	struct vdi_h2_inbox    inbox;
	struct vdi_rpc_message message;
	char		      *bytes = vdi_calloc(1, SIZE + 5);
	vd_status	       status = VD_AGAIN;
	size_t		       used;

	(void) state;
	bytes[1] = (char) (SIZE >> 24);
	bytes[2] = (char) (SIZE >> 16);
	bytes[3] = (char) (SIZE >> 8);
	bytes[4] = (char) (SIZE & 0xff);
	bytes[SIZE + 4] = 'z';
	vdi_h2_inbox_init(&inbox, SIZE_MAX);
	assert_status(vdi_h2_inbox_take(&inbox, (struct vd_bytes) { bytes, 6 }, &used, &message), VD_AGAIN);
	assert_true(inbox.capacity < SIZE);
	for (size_t at = 6; at < SIZE + 5; at += used)
		status = vdi_h2_inbox_take(&inbox,
					   (struct vd_bytes) { bytes + at, VDI_MIN(16384, SIZE + 5 - at) },
					   &used, &message);
	assert_status(status, VD_OK);
	assert_int_equal(message.bytes.size, SIZE);
	assert_memory_equal(message.bytes.data, bytes + 5, SIZE);
	vdi_rpc_message_release(&message);
	vdi_h2_inbox_fini(&inbox);
	vdi_free(bytes);
}

static void no_memory_for_a_message(void **state)
{
	struct vdi_h2_inbox    inbox;
	struct vdi_rpc_message message;
	size_t		       used;

	(void) state;
	vdi_h2_inbox_init(&inbox, 5);
	vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_h2_inbox_take(&inbox, (struct vd_bytes) { two, sizeof two - 1 }, &used, &message),
		      VD_NOMEM);
	vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_h2_inbox_keep(&inbox, vd_bytes_of("x")), VD_NOMEM);
	vdi_alloc_fail_nth(0, 0);
	vdi_h2_inbox_fini(&inbox);
}

/* The memory of a large message grows with what arrives of it. If it cannot, the message fails, and its
 * bytes so far are freed with the inbox. */
static void no_memory_for_the_rest_of_a_message(void **state)
{
	enum { SIZE = 3 << 20 };
	struct vdi_h2_inbox    inbox;
	struct vdi_rpc_message message;
	char		      *bytes = vdi_calloc(1, SIZE + 5);
	size_t		       used;

	(void) state;
	bytes[1] = (char) (SIZE >> 24);
	bytes[2] = (char) (SIZE >> 16);
	vdi_h2_inbox_init(&inbox, SIZE_MAX);
	assert_status(vdi_h2_inbox_take(&inbox, (struct vd_bytes) { bytes, 1000 }, &used, &message),
		      VD_AGAIN);
	vdi_alloc_fail_nth(1, 1);
	assert_status(
		vdi_h2_inbox_take(&inbox, (struct vd_bytes) { bytes + 1000, SIZE - 1000 }, &used, &message),
		VD_NOMEM);
	assert_true(vdi_alloc_failed());
	vdi_alloc_fail_nth(0, 0);
	vdi_h2_inbox_fini(&inbox);
	vdi_free(bytes);
}

/* ---- Out ---- */

static void push(struct vdi_h2_outbox *outbox, const char *head, struct vdi_rpc_blob *blob)
{
	struct vdi_h2_outgoing *outgoing;

	assert_status(vdi_h2_outgoing_new(vd_bytes_of(head), blob, &outgoing), VD_OK);
	vdi_h2_outbox_push(outbox, outgoing);
}

static void the_outbox_in_pieces_of_every_size(void **state)
{
	static const char    expected[] = "\0\0\0\0\7a blob!\0\0\0\0\0\0\0\0\0\2hi";
	size_t		     size = sizeof expected - 1;
	struct vdi_rpc_blob *blob;
	char		    *room;

	(void) state;
	assert_status(vdi_rpc_blob_new(5, &blob, &room), VD_OK);
	memcpy(room, "blob!", 5);
	for (size_t piece = 1; piece <= size; piece++) {
		struct vdi_h2_outbox outbox;
		char		     got[64];

		vdi_h2_outbox_init(&outbox);
		push(&outbox, "a ", blob);
		push(&outbox, "", NULL);
		push(&outbox, "hi", NULL);
		assert_int_equal(outbox.size, size);
		for (size_t at = 0; at < size; at += piece)
			vdi_h2_outbox_write(&outbox, got + at, VDI_MIN(piece, size - at));
		assert_memory_equal(got, expected, size);
		assert_int_equal(outbox.size, 0);
		assert_null(outbox.first);
		push(&outbox, "left", NULL);
		vdi_h2_outbox_fini(&outbox);
	}
	vdi_rpc_blob_unref(blob);
}

static void what_has_begun_to_leave_is_not_cut(void **state)
{
	struct vdi_h2_outbox outbox;
	char		     got[16];

	(void) state;
	vdi_h2_outbox_init(&outbox);
	vdi_h2_outbox_cut(&outbox);
	push(&outbox, "one", NULL);
	push(&outbox, "two", NULL);
	vdi_h2_outbox_write(&outbox, got, 6);
	vdi_h2_outbox_cut(&outbox);
	assert_int_equal(outbox.size, 2);
	vdi_h2_outbox_write(&outbox, got, 2);
	assert_memory_equal(got, "ne", 2);
	assert_null(outbox.first);
	push(&outbox, "three", NULL);
	vdi_h2_outbox_cut(&outbox);
	assert_null(outbox.first);
	push(&outbox, "four", NULL);
	assert_int_equal(outbox.size, 9);
	vdi_h2_outbox_fini(&outbox);
}

static void what_is_retained_can_be_written_again(void **state)
{
	struct vdi_h2_outbox outbox;
	char		     first[64], second[64];

	(void) state;
	vdi_h2_outbox_init(&outbox);
	outbox.retains = true;
	push(&outbox, "one", NULL);
	push(&outbox, "two", NULL);
	push(&outbox, "three", NULL);
	vdi_h2_outbox_write(&outbox, first, 26);
	for (size_t written = 0; written <= 26; written++) {
		outbox.is_deferred = written % 2; /* the stream that waited is gone */
		vdi_h2_outbox_rewind(&outbox);
		assert_false(outbox.is_deferred);
		assert_int_equal(outbox.size, 26);
		vdi_h2_outbox_write(&outbox, second, written);
		assert_memory_equal(first, second, written);
	}
	vdi_h2_outbox_forget(&outbox);
	assert_null(outbox.written);
	push(&outbox, "more", NULL);
	vdi_h2_outbox_write(&outbox, second, 9);
	assert_memory_equal(second, "\0\0\0\0\4more", 9);
	vdi_h2_outbox_fini(&outbox);
}

/* What nghttp2 is told when it asks: how much there is, whether that is all, and that it must wait. The
 * last frame says that it is the last one, also if it is full. */
static unsigned ends;
static int	end_error;

static int count_end(struct vdi_h2_outbox *outbox)
{
	assert_true(outbox->is_ending);
	ends++;
	return end_error;
}

static void nghttp2_hears_how_much_there_is(void **state)
{
	(void) state;
	for (size_t room = 1; room <= 12; room++) {
		for (int flags_of_case = 0; flags_of_case < 8; flags_of_case++) {
			bool		      is_ending = flags_of_case & 1, has_end = flags_of_case & 2;
			bool		      is_empty = flags_of_case & 4;
			size_t		      size = is_empty ? 0 : 10;
			bool		      is_last = is_ending && size <= room;
			struct vdi_h2_outbox  outbox;
			nghttp2_data_provider provider;
			uint32_t	      flags = 0;
			ssize_t		      answer;

			ends = 0;
			end_error = 0;
			vdi_h2_outbox_init(&outbox);
			outbox.is_ending = is_ending;
			outbox.end = has_end ? count_end : NULL;
			if (!is_empty)
				push(&outbox, "hello", NULL);
			provider = vdi_h2_outbox_provider(&outbox);
			answer = provider.read_callback(NULL, 1, NULL, room, &flags, &provider.source, NULL);
			if (is_empty && !is_ending) {
				assert_int_equal(answer, NGHTTP2_ERR_DEFERRED);
				assert_int_equal(flags, 0);
			} else {
				assert_int_equal(answer, VDI_MIN(size, room));
				assert_int_equal(
					flags,
					NGHTTP2_DATA_FLAG_NO_COPY | (is_last ? NGHTTP2_DATA_FLAG_EOF : 0) |
						(is_last && has_end ? NGHTTP2_DATA_FLAG_NO_END_STREAM : 0));
			}
			assert_int_equal(outbox.is_deferred, is_empty && !is_ending);
			assert_int_equal(ends, is_last && has_end);
			if (is_last && has_end) {
				end_error = NGHTTP2_ERR_NOMEM;
				assert_int_equal(provider.read_callback(NULL, 1, NULL, room, &flags,
									&provider.source, NULL),
						 NGHTTP2_ERR_NOMEM);
			}
			vdi_h2_outbox_fini(&outbox);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_in_pieces_of_every_size),
		cmocka_unit_test(what_was_not_asked_for_is_kept_and_not_settled),
		cmocka_unit_test(a_plain_body_is_copied),
		cmocka_unit_test(what_is_no_message),
		cmocka_unit_test(a_large_message),
		cmocka_unit_test(no_memory_for_a_message),
		cmocka_unit_test(no_memory_for_the_rest_of_a_message),
		cmocka_unit_test(the_outbox_in_pieces_of_every_size),
		cmocka_unit_test(what_has_begun_to_leave_is_not_cut),
		cmocka_unit_test(nghttp2_hears_how_much_there_is),
		cmocka_unit_test(what_is_retained_can_be_written_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
