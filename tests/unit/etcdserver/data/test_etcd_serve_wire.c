/* Unit tests of etcdserver/data/serve_wire.c: messages by the byte. */
#include "serve_wire.h"

#include "alloc.h"
#include "vdtest.h"

/* The fields of a message: "1:5" a varint, "2='x'" bytes, "9/3" another type; then "!" if it is bad. */
static const char *fields_of(const char *bytes, size_t size)
{
	static char	       text[256];
	struct vdi_wire_reader reader;
	size_t		       at = 0;

	text[0] = 0;
	vdi_wire_reader_init(&reader, (struct vd_bytes) { bytes, size });
	while (vdi_wire_next(&reader)) {
		unsigned field = reader.tag >> 3;

		if (reader.tag == VDI_WIRE_VARINT(field))
			at += (size_t) snprintf(text + at, sizeof text - at, "%u:%lld ", field,
						(long long) reader.number);
		else if (reader.tag == VDI_WIRE_BYTES(field))
			at += (size_t) snprintf(text + at, sizeof text - at, "%u='%.*s' ", field,
						(int) reader.bytes.size, (const char *) reader.bytes.data);
		else
			at += (size_t) snprintf(text + at, sizeof text - at, "%u/%u ", field, reader.tag & 7);
	}
	if (reader.is_bad)
		(void) snprintf(text + at, sizeof text - at, "!");
	assert_false(vdi_wire_next(&reader)); /* the end stays one */
	return text;
}
#define FIELDS(bytes) fields_of(bytes, sizeof(bytes) - 1)

static void fields_of_all_types_are_read(void **state)
{
	(void) state;
	assert_string_equal(FIELDS(""), "");
	assert_string_equal(FIELDS("\x08\5\x12\1x"), "1:5 2='x' ");
	assert_string_equal(FIELDS("\x12\0\x08\0"), "2='' 1:0 ");
	assert_string_equal(FIELDS("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"), "1:-1 ");
	assert_string_equal(FIELDS("\x09"
				   "12345678\x08\5"),
			    "1/1 1:5 ");
	assert_string_equal(FIELDS("\x0d"
				   "1234\x08\5"),
			    "1/5 1:5 ");
	assert_string_equal(FIELDS("\xf8\xff\xff\xff\x0f\1"), "536870911:1 "); /* the highest number */
}

static void bytes_that_are_no_message_are_noticed(void **state)
{
	(void) state;
	assert_string_equal(FIELDS("\x08"), "!");
	assert_string_equal(FIELDS("\x08\x80"), "!");
	assert_string_equal(FIELDS("\x12\2x"), "!");
	assert_string_equal(FIELDS("\x08\5\x12"), "1:5 !");
	assert_string_equal(FIELDS("\x09"
				   "1234567"),
			    "!");
	assert_string_equal(FIELDS("\x0d"
				   "123"),
			    "!");
	assert_string_equal(FIELDS("\0\1"), "!");   /* field 0 */
	assert_string_equal(FIELDS("\x0e\1"), "!"); /* types 6 and 7 do not exist */
	assert_string_equal(FIELDS("\x0f\1"), "!");
	assert_string_equal(FIELDS("\x0c\1"), "!");		    /* the end of no group */
	assert_string_equal(FIELDS("\x80\x80\x80\x80\x10\1"), "!"); /* a tag of more than 32 bits */
	assert_string_equal(FIELDS("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\1x"), "!");
}

/* Groups are of older protobuf: skipped to their own end with all that is in them. */
static void groups_are_skipped(void **state)
{
	(void) state;
	assert_string_equal(FIELDS("\x1b\x1c\x08\5"), "3/3 1:5 ");
	assert_string_equal(FIELDS("\x1b\x08\1\x1c\x08\5"), "3/3 1:5 ");
	assert_string_equal(FIELDS("\x1b\x09"
				   "12345678\x1c\x08\5"),
			    "3/3 1:5 ");
	assert_string_equal(FIELDS("\x1b\x12\1x\x1c\x08\5"), "3/3 1:5 ");
	assert_string_equal(FIELDS("\x1b\x0d"
				   "1234\x1c\x08\5"),
			    "3/3 1:5 ");
	assert_string_equal(FIELDS("\x1b\x23\x08\1\x24\x08\1\x1c\x08\5"), "3/3 1:5 ");
	assert_string_equal(FIELDS("\x1b"), "!");
	assert_string_equal(FIELDS("\x1b\x08\1"), "!");
	assert_string_equal(FIELDS("\x1b\x23\x24"), "!");
	assert_string_equal(FIELDS("\x1b\x08"), "!");
	assert_string_equal(FIELDS("\x1b\x09"
				   "1234567"),
			    "!");
	assert_string_equal(FIELDS("\x1b\x12\3xy"), "!");
	assert_string_equal(FIELDS("\x1b\x0d"
				   "123"),
			    "!");
	assert_string_equal(FIELDS("\x1b\x0e\x1c"), "!");
	assert_string_equal(FIELDS("\x1b\0\x1c"), "!");
	assert_string_equal(FIELDS("\x1b\x80\x80\x80\x80\x10\1\x1c"), "!");
}

static void packed_numbers_and_small_messages(void **state)
{
	struct vdi_wire_reader reader;
	uint64_t	       number = 9;
	int64_t		       id = 9;
	bool		       flag = true;

	(void) state;
	vdi_wire_reader_init(&reader, (struct vd_bytes) { "\1\xac\2", 3 });
	assert_true(vdi_wire_next_packed(&reader, &number));
	assert_int_equal(number, 1);
	assert_true(vdi_wire_next_packed(&reader, &number));
	assert_int_equal(number, 300);
	assert_false(vdi_wire_next_packed(&reader, &number));
	assert_false(reader.is_bad);
	vdi_wire_reader_init(&reader, (struct vd_bytes) { "\x80", 1 });
	assert_false(vdi_wire_next_packed(&reader, &number));
	assert_true(reader.is_bad);
	assert_false(vdi_wire_next_packed(&reader, &number));

	assert_true(vdi_wire_read_number((struct vd_bytes) { "", 0 }, &id, &flag));
	assert_int_equal(id, 0);
	assert_false(flag);
	assert_true(vdi_wire_read_number((struct vd_bytes) { "\x08\7\x10\2\x18\1", 6 }, &id, &flag));
	assert_int_equal(id, 7);
	assert_true(flag);
	assert_true(vdi_wire_read_number((struct vd_bytes) { "\x10\1\x10\0\x08\3", 6 }, &id, NULL));
	assert_int_equal(id, 3);
	assert_false(vdi_wire_read_number((struct vd_bytes) { "\x08\7\x10", 3 }, &id, &flag));
}

static void nothing(struct vdi_wire_out *out, const void *arg)
{
	(void) out;
	(void) arg;
}

static void write_fields(struct vdi_wire_out *out, const void *arg)
{
	(void) arg;
	vdi_wire_number(out, 1, 0);
	vdi_wire_number(out, 1, 300);
	vdi_wire_number_always(out, 2, 0);
	vdi_wire_bytes(out, 3, VD_BYTES_NONE);
	vdi_wire_bytes(out, 3, vd_bytes_of("xy"));
	vdi_wire_bytes_always(out, 4, VD_BYTES_NONE);
	vdi_wire_number(out, 64, 1);
}

static void write_nested(struct vdi_wire_out *out, const void *arg)
{
	vdi_wire_message(out, 1, write_fields, arg);
	vdi_wire_message(out, 2, nothing, arg);
	vdi_wire_number(out, 3, 1);
}

static void expect_encoded(vdi_wire_write_fn write, const void *arg, const char *bytes, size_t size)
{
	struct vdi_rpc_blob *blob;

	assert_status(vdi_wire_encode(write, arg, &blob), VD_OK);
	assert_int_equal(vdi_rpc_blob_bytes(blob).size, size);
	assert_memory_equal(vdi_rpc_blob_bytes(blob).data, bytes, size);
	vdi_rpc_blob_unref(blob);
	vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_wire_encode(write, arg, &blob), VD_NOMEM);
	vdi_alloc_fail_nth(0, 0);
}

/* Values 0 are left out as in proto3, unless they must be told. */
static void fields_and_messages_are_written(void **state)
{
	static const char fields[] = "\x08\xac\2\x10\0\x1a\2xy\x22\0\x80\4\1";
	static const char nested[] = "\x0a\x0e\x08\xac\2\x10\0\x1a\2xy\x22\0\x80\4\1\x12\0\x18\1";

	(void) state;
	expect_encoded(write_fields, NULL, fields, sizeof fields - 1);
	expect_encoded(write_nested, NULL, nested, sizeof nested - 1);
	expect_encoded(nothing, NULL, "", 0);
}

struct huge {
	size_t size;
};

static void write_huge(struct vdi_wire_out *out, const void *arg)
{
	assert_null(out->at); /* it is never written */
	out->size += ((const struct huge *) arg)->size;
}

static void a_message_has_at_most_2_gib(void **state)
{
	struct huge	     huge = { (size_t) INT32_MAX + 1 };
	struct vdi_rpc_blob *blob = NULL;

	(void) state;
	assert_status(vdi_wire_encode(write_huge, &huge, &blob), VD_TOO_BIG);
	assert_null(blob);
	huge.size = (size_t) INT32_MAX; /* allowed, but there is no memory */
	vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_wire_encode(write_huge, &huge, &blob), VD_NOMEM);
	vdi_alloc_fail_nth(0, 0);
}

static void numbers_of_eight_bytes(void **state)
{
	unsigned char bytes[8];

	(void) state;
	vdi_put_big_endian(bytes, 0x0102030405060708);
	assert_memory_equal(bytes, "\1\2\3\4\5\6\7\x08", 8);
	assert_true(vdi_big_endian(bytes) == 0x0102030405060708);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_of_all_types_are_read),
		cmocka_unit_test(bytes_that_are_no_message_are_noticed),
		cmocka_unit_test(groups_are_skipped),
		cmocka_unit_test(packed_numbers_and_small_messages),
		cmocka_unit_test(fields_and_messages_are_written),
		cmocka_unit_test(a_message_has_at_most_2_gib),
		cmocka_unit_test(numbers_of_eight_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
