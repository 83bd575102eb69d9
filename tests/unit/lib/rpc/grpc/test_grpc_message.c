/* Messages and texts between our memory and core's: what comes out is what went in, and the memory is given
 * back. */
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>

#include "grpc_message.h"
#include "rpc_blob.h"
#include "vdtest.h"

#define INLINED GRPC_SLICE_INLINED_SIZE

static char pattern[100000];

static int start_core(void **state)
{
	(void) state;
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (char) (i * 7 + i / 256);
	grpc_init();
	return 0;
}

static int stop_core(void **state)
{
	(void) state;
	grpc_shutdown_blocking();
	return 0;
}

static void expect_pattern(const struct vdi_rpc_message *message, size_t size)
{
	assert_int_equal(message->bytes.size, size);
	assert_memory_equal(message->bytes.data, pattern, size);
	assert_int_equal(((const char *) message->bytes.data)[size], 0); /* decoders of text need it */
}

static void what_is_packed_is_unpacked(void **state)
{
	static const size_t sizes[] = { 0, 1, INLINED - 1, INLINED, INLINED + 1, 1000, sizeof pattern };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(sizes); i++) {
		int64_t		       before = vdi_alloc_live();
		struct vd_bytes	       bytes = { sizes[i] ? pattern : NULL, sizes[i] };
		grpc_byte_buffer      *buffer = vdi_grpc_message_pack(bytes);
		struct vdi_rpc_message message;

		assert_non_null(buffer);
		assert_int_equal(grpc_byte_buffer_length(buffer), sizes[i]);
		/* A copy of our own, but for those that core keeps in its slice. */
		assert_int_equal(vdi_alloc_live() > before, sizes[i] > INLINED);
		assert_status(vdi_grpc_message_unpack(buffer, &message), VD_OK);
		expect_pattern(&message, sizes[i]);
		vdi_rpc_message_release(&message);
		assert_int_equal(vdi_alloc_live(), before);
	}
}

/* A received message comes in pieces. */
static void pieces_become_one(void **state)
{
	static const size_t cuts[][3] = { { 1, 1, 1 }, { 0, 5, 100 }, { 5000, 0, 3 }, { 20, 23, 24 } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cuts); i++) {
		grpc_slice	       slices[3];
		grpc_byte_buffer      *buffer;
		struct vdi_rpc_message message;
		size_t		       size = 0;

		for (int k = 0; k < 3; k++) {
			slices[k] = grpc_slice_from_copied_buffer(pattern + size, cuts[i][k]);
			size += cuts[i][k];
		}
		buffer = grpc_raw_byte_buffer_create(slices, 3);
		for (int k = 0; k < 3; k++)
			grpc_slice_unref(slices[k]);
		assert_status(vdi_grpc_message_unpack(buffer, &message), VD_OK);
		expect_pattern(&message, size);
		vdi_rpc_message_release(&message);
	}
}

static void without_memory_nothing_is_lost(void **state)
{
	int64_t		       before = vdi_alloc_live();
	struct vd_bytes	       bytes = { pattern, INLINED + 1 };
	struct vdi_rpc_message message = { 0 };
	grpc_byte_buffer      *buffer;

	(void) state;
	vdi_alloc_fail_nth(1, 1);
	assert_null(vdi_grpc_message_pack(bytes));
	assert_true(vdi_alloc_failed());
	vdi_alloc_fail_nth(0, 0);
	assert_int_equal(vdi_alloc_live(), before);
	/* The buffer goes even if it cannot be unpacked. */
	buffer = vdi_grpc_message_pack(bytes);
	assert_non_null(buffer);
	vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_grpc_message_unpack(buffer, &message), VD_NOMEM);
	vdi_alloc_fail_nth(0, 0);
	assert_null(message.bytes.data);
	assert_int_equal(vdi_alloc_live(), before);
}

static void a_head_and_a_blob_are_one_message(void **state)
{
	static const size_t sizes[] = { 0, 1, 32 }, blob_sizes[] = { 0, 1, 23, 5000 };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(sizes); i++)
		for (size_t k = 0; k <= VDI_ARRAY_SIZE(blob_sizes); k++) {
			int64_t		       before = vdi_alloc_live();
			size_t		       blob_size = 0;
			struct vdi_rpc_blob   *blob = NULL;
			struct vdi_rpc_message message;
			grpc_byte_buffer      *buffer;
			char		      *room;

			if (k < VDI_ARRAY_SIZE(blob_sizes)) {
				blob_size = blob_sizes[k];
				assert_status(vdi_rpc_blob_new(blob_size, &blob, &room), VD_OK);
				memcpy(room, pattern + sizes[i], blob_size);
			}
			buffer = vdi_grpc_blob_pack((struct vd_bytes) { pattern, sizes[i] }, blob);
			vdi_rpc_blob_unref(blob); /* core has a reference of its own */
			assert_int_equal(vdi_alloc_live() > before, blob_size > 0);
			assert_status(vdi_grpc_message_unpack(buffer, &message), VD_OK);
			expect_pattern(&message, sizes[i] + blob_size);
			vdi_rpc_message_release(&message);
			assert_int_equal(vdi_alloc_live(), before);
		}
}

static void pairs_that_core_takes(void **state)
{
	static const struct {
		const char *key;
		const char *value;
		bool	    legal;
	} cases[] = {
		{ "token", "abc", true },	   { "token", "", true },
		{ "x-y_z.0", "a b~", true },	   { "token", "a\nb", false },
		{ "token", "\x7f", false },	   { "token", "\x80", false },
		{ "token-bin", "a\nb\x80", true }, { "token-bin", "", true },
		{ "Token", "abc", false },	   { "", "abc", false },
		{ ":path", "abc", false },	   { "to ken", "abc", false },
		{ "Token-bin", "abc", false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++)
		if (vdi_grpc_metadata_is_legal(cases[i].key, vd_bytes_of(cases[i].value)) != cases[i].legal)
			fail_msg("case %zu", i);
	assert_true(vdi_grpc_metadata_is_legal("token", VD_BYTES_NONE));
	assert_false(vdi_grpc_metadata_is_legal("token", (struct vd_bytes) { "a\0b", 3 }));
	assert_true(vdi_grpc_metadata_is_legal("token-bin", (struct vd_bytes) { "a\0b", 3 }));
}

/* A text is as long as it is; without memory it is cut to 511 bytes. */
static void texts_of_any_length(void **state)
{
	static const size_t sizes[] = { 0, 1, 510, 511, 512, 513, 5000 };
	char		    letters[5000];

	(void) state;
	memset(letters, 'x', sizeof letters);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(sizes); i++)
		for (int fails = 0; fails < 2; fails++) {
			int64_t		     before = vdi_alloc_live();
			grpc_slice	     slice = grpc_slice_from_copied_buffer(letters, sizes[i]);
			struct vdi_grpc_text text;

			memset(&text, 'y', sizeof text);
			vdi_alloc_fail_nth(fails, 1);
			vdi_grpc_text_init(&text, slice);
			assert_int_equal(vdi_alloc_failed(), fails && sizes[i] > 511);
			vdi_alloc_fail_nth(0, 0);
			assert_int_equal(strlen(text.text),
					 fails ? VDI_MIN(sizes[i], (size_t) 511) : sizes[i]);
			assert_int_equal(strspn(text.text, "x"), strlen(text.text));
			vdi_grpc_text_fini(&text);
			grpc_slice_unref(slice);
			assert_int_equal(vdi_alloc_live(), before);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_packed_is_unpacked),
		cmocka_unit_test(pieces_become_one),
		cmocka_unit_test(without_memory_nothing_is_lost),
		cmocka_unit_test(a_head_and_a_blob_are_one_message),
		cmocka_unit_test(pairs_that_core_takes),
		cmocka_unit_test(texts_of_any_length),
	};

	return cmocka_run_group_tests(tests, start_core, stop_core);
}
