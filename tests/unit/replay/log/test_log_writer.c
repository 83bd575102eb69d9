/* Unit tests of replay/log/log_writer.c: what is written can be read, and written on after any cut. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "log_steps.h"
#include "log_writer.h"
#include "rand.h"
#include "vdtest.h"

static char path[80];

static void new_path(const char *suffix)
{
	int fd;

	/* Where a sync costs nothing. */
	snprintf(path, sizeof path, "%s/vedette-log-writer-XXXXXX%s",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", suffix);
	fd = mkstemps(path, (int) strlen(suffix));
	assert_true(fd >= 0);
	close(fd);
}

static struct vdi_log_writer *open_writer(bool resume, vd_rev *ret_last)
{
	struct vdi_log_writer_options options = { .path = path, .resume = resume, .source = "a \"test\"" };
	struct vdi_log_writer	     *writer = NULL;
	struct vd_error		      error = { 0 };

	if (vdi_log_writer_open(&options, &writer, ret_last, &error) != VD_OK)
		fail_msg("%s", error.message);
	return writer;
}

static struct vd_kv *new_kv(vd_rev revision, const char *key, struct vd_bytes value)
{
	struct vd_kv *kv;

	assert_status(vd_kv_new(vd_bytes_of(key), value, &kv), VD_OK);
	kv->mod_rev = revision;
	return kv;
}

static void change(struct vdi_log_writer *writer, vd_rev revision, const char *key, const char *value)
{
	struct vd_kv *kv = new_kv(revision, key, value ? vd_bytes_of(value) : VD_BYTES_NONE);

	assert_status(vdi_log_writer_change(writer, value == NULL, kv, (vd_wall) { 1000000 }, NULL), VD_OK);
	vd_kv_unref(kv);
}

static char *file_text(void)
{
	static char text[4096];
	FILE	   *file = fopen(path, "r");

	text[fread(text, 1, sizeof text - 1, file)] = 0;
	fclose(file);
	return text;
}

static void lines(void **state)
{
	struct vdi_log_writer	    *writer;
	struct vdi_log_writer_totals totals;
	struct vd_kv		    *kv;
	struct stat		     stat_of;

	(void) state;
	new_path(".ndjson");
	unlink(path);
	writer = open_writer(false, NULL);
	assert_status(vdi_log_writer_snapshot_begin(writer, 9, NULL), VD_OK);
	kv = new_kv(7, "a/\"b\"", vd_bytes_of(" { \"x\" : 1.50 } "));
	kv->create_rev = 3;
	kv->version = 2;
	kv->lease = -5;
	assert_status(vdi_log_writer_change(writer, false, kv, (vd_wall) { 0 }, NULL), VD_OK);
	vd_kv_unref(kv);
	assert_status(vdi_log_writer_snapshot_end(writer, 9, NULL), VD_OK);
	change(writer, 10, "a", "17");
	change(writer, 10, "b", NULL);
	assert_status(vdi_log_writer_commit(writer, 10, NULL), VD_OK);
	change(writer, 11, "a", "k8s");
	change(writer, 11, "c", "");
	assert_status(vdi_log_writer_commit(writer, 11, NULL), VD_OK);
	assert_status(vdi_log_writer_mark(writer, VDI_LOG_COMPACT, 8, NULL, NULL), VD_OK);
	assert_status(vdi_log_writer_mark(writer, VDI_LOG_PROGRESS, 12, NULL, NULL), VD_OK);
	assert_status(vdi_log_writer_mark(writer, VDI_LOG_DISCONNECT, 0, NULL, NULL), VD_OK);
	assert_status(vdi_log_writer_mark(writer, VDI_LOG_FAILURE, 0, "no \"way\"", NULL), VD_OK);
	change(writer, 13, "torn", "1");
	vdi_log_writer_totals_get(writer, &totals);
	assert_int_equal(totals.transactions, 2);
	assert_int_equal(totals.records, 5);
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	assert_string_equal(
		file_text(),
		"{\"vedetteLog\":1,\"checksums\":\"xxh64\",\"source\":\"a \\\"test\\\"\"}\n"
		"{\"snapshot\":9,\"sum\":\"d27f9af617cf258c\"}\n"
		"{\"rev\":7,\"type\":\"PUT\",\"key\":\"a/"
		"\\\"b\\\"\",\"createRev\":3,\"version\":2,\"lease\":-5,\"value\":{\"x\":1.50}}\n"
		"{\"snapshotEnd\":9,\"records\":1,\"sum\":\"06e85157d93da3b0\"}\n"
		"{\"rev\":10,\"type\":\"PUT\",\"key\":\"a\",\"time\":\"1970-01-01T00:00:00.001Z\",\"value\":"
		"17}\n"
		"{\"rev\":10,\"type\":\"DELETE\",\"key\":\"b\",\"time\":\"1970-01-01T00:00:00.001Z\"}\n"
		"{\"commit\":10,\"records\":2,\"sum\":\"121c6f199222f29d\"}\n"
		"{\"rev\":11,\"type\":\"PUT\",\"key\":\"a\",\"time\":\"1970-01-01T00:00:00.001Z\","
		"\"valueBase64\":\"azhz\"}\n"
		"{\"rev\":11,\"type\":\"PUT\",\"key\":\"c\",\"time\":\"1970-01-01T00:00:00.001Z\","
		"\"valueBase64\":\"\"}\n"
		"{\"commit\":11,\"records\":2,\"sum\":\"1a687d97253336e1\"}\n"
		"{\"compact\":8,\"sum\":\"69b6fe0943500f53\"}\n{\"progress\":12,\"sum\":\"68c8ceaeaf73d563\"}"
		"\n"
		"{\"disconnect\":true,\"sum\":\"130ed572ce66bd26\"}\n{\"error\":\"no "
		"\\\"way\\\"\",\"sum\":\"7cf33dc08dd17751\"}\n"
		"{\"progress\":12,\"end\":true,\"synced\":848,\"sum\":\"ecfe20f1a019118a\"}\n");
	assert_int_equal(stat(path, &stat_of), 0);
	assert_int_equal(stat_of.st_mode & 0777, 0600); /* there may be secrets in it */
	unlink(path);
}

/* A log of every kind of line. */
static void write_all_kinds(void)
{
	struct vdi_log_writer *writer = open_writer(false, NULL);

	assert_status(vdi_log_writer_snapshot_begin(writer, 9, NULL), VD_OK);
	change(writer, 7, "a", "{\"x\":1}");
	change(writer, 8, "b", "2");
	assert_status(vdi_log_writer_snapshot_end(writer, 9, NULL), VD_OK);
	for (vd_rev revision = 10; revision < 14; revision++) {
		change(writer, revision, "a", "17");
		change(writer, revision, "b", revision % 2 ? "k8s" : NULL);
		assert_status(vdi_log_writer_commit(writer, revision, NULL), VD_OK);
	}
	assert_status(vdi_log_writer_mark(writer, VDI_LOG_COMPACT, 8, NULL, NULL), VD_OK);
	assert_status(vdi_log_writer_mark(writer, VDI_LOG_PROGRESS, 20, NULL, NULL), VD_OK);
	assert_status(vdi_log_writer_mark(writer, VDI_LOG_DISCONNECT, 0, NULL, NULL), VD_OK);
	assert_status(vdi_log_writer_mark(writer, VDI_LOG_FAILURE, 0, "lost", NULL), VD_OK);
	change(writer, 21, "c", "1");
	assert_status(vdi_log_writer_commit(writer, 21, NULL), VD_OK);
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
}

/* Reads a log of this text. VD_CLOSED: complete; VD_AGAIN: complete as far as it goes, but its end is
 * missing. */
static vd_status read_text(const char *text, size_t size, struct vd_error *ret_error)
{
	struct vdi_log_steps *steps;
	struct vdi_log_step   step;
	struct vdi_log_tail   tail;
	FILE		     *file = fopen(path, "w");
	vd_status	      status;

	assert_int_equal(fwrite(text, 1, size, file), size);
	fclose(file);
	status = vdi_log_steps_open(path, &steps, ret_error);
	if (status != VD_OK)
		return status;
	while ((status = vdi_log_steps_next(steps, &step, ret_error)) == VD_OK)
		;
	tail = vdi_log_steps_tail(steps);
	vdi_log_steps_close(steps);
	return status == VD_CLOSED && (tail.is_torn || tail.is_unclosed) ? VD_AGAIN : status;
}

static size_t line_end(const char *text, size_t at)
{
	return (size_t) (strchr(text + at, '\n') + 1 - text);
}

/* Whatever is changed in a written log, reading notices: a line removed, doubled or out of order, any bit,
 * any cut. */
static void a_changed_log_is_refused(void **state)
{
	struct vd_error error;
	char		text[4096], other[8192];
	size_t		size, end, next;

	(void) state;
	new_path(".ndjson");
	unlink(path);
	write_all_kinds();
	strcpy(text, file_text());
	size = strlen(text);
	assert_status(read_text(text, size, &error), VD_CLOSED);
	for (size_t at = 0; at < size; at = end) {
		end = line_end(text, at);
		memcpy(other, text, at);
		memcpy(other + at, text + end, size - end);
		if (read_text(other, size - (end - at), &error) != (end == size ? VD_AGAIN : VD_BAD_REQUEST))
			fail_msg("without %.*s", (int) (end - at), text + at);
		if (end != size)
			assert_non_null(strchr(error.message + strlen(path), at == 0 ? ' ' : ':'));
		memcpy(other, text, end);
		memcpy(other + end, text + at, size - at);
		if (read_text(other, size + (end - at), &error) != VD_BAD_REQUEST)
			fail_msg("twice: %.*s", (int) (end - at), text + at);
		if (end == size)
			break;
		next = line_end(text, end);
		memcpy(other, text, at);
		memcpy(other + at, text + end, next - end);
		memcpy(other + at + (next - end), text + at, end - at);
		memcpy(other + next, text + next, size - next);
		if (read_text(other, size, &error) == VD_CLOSED)
			fail_msg("out of order: %.*s", (int) (next - at), text + at);
	}
	for (size_t i = 0; i < size * 8; i++) {
		memcpy(other, text, size);
		other[i / 8] = (char) (other[i / 8] ^ 1 << i % 8);
		if (read_text(other, size, &error) == VD_CLOSED)
			fail_msg("bit %zu of byte %zu", i % 8, i / 8);
	}
	for (size_t cut = 0; cut < size; cut++)
		if (read_text(text, cut, &error) == VD_CLOSED)
			fail_msg("cut to %zu bytes", cut);
	unlink(path);
}

static void resume_refuses_a_changed_log(void **state)
{
	struct vdi_log_writer_options options = { .path = path, .resume = true };
	struct vdi_log_writer_totals  totals;
	struct vdi_log_writer	     *writer;
	struct vd_error		      error = { 0 };
	char			      text[4096], *at;
	FILE			     *file;

	(void) state;
	new_path(".ndjson");
	unlink(path);
	write_all_kinds();
	strcpy(text, file_text());
	at = strstr(text, "k8s") ? strstr(text, "k8s") : strstr(text, "azhz");
	at[0] = at[0] == 'a' ? 'b' : 'l';
	assert_status(read_text(text, strlen(text), &error), VD_BAD_REQUEST);
	assert_status(vdi_log_writer_open(&options, &writer, NULL, &error), VD_BAD_REQUEST);
	assert_non_null(
		strstr(error.message,
		       "the checksum does not match: lines 9 to 11 were changed after they were written"));
	/* A torn tail is cut off, unless the caller is strict. */
	unlink(path);
	write_all_kinds();
	file = fopen(path, "a");
	assert_true(fputs("{\"rev\":22,\"type\":\"DELETE\",\"key\":\"a\"}\n{\"com", file) > 0);
	fclose(file);
	options.strict = true;
	assert_status(vdi_log_writer_open(&options, &writer, NULL, &error), VD_BAD_REQUEST);
	options.strict = false;
	assert_status(vdi_log_writer_open(&options, &writer, NULL, &error), VD_OK);
	vdi_log_writer_totals_get(writer, &totals);
	assert_int_equal(totals.cut, 42);
	change(writer, 22, "z", "1");
	assert_status(vdi_log_writer_commit(writer, 22, NULL), VD_OK);
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	strcpy(text, file_text());
	assert_status(read_text(text, strlen(text), &error), VD_CLOSED);
	unlink(path);
}

/* Logs written by hand have no checksums, and stay so. */
static void a_log_without_checksums_is_resumed_without(void **state)
{
	struct vdi_log_writer *writer;
	struct vd_error	       error;
	const char	      *text =
		"{\"vedetteLog\":1}\n{\"rev\":2,\"type\":\"DELETE\",\"key\":\"a\"}\n{\"commit\":2}\n";

	(void) state;
	new_path(".ndjson");
	assert_status(read_text(text, strlen(text), &error), VD_CLOSED);
	writer = open_writer(true, NULL);
	change(writer, 3, "z", "1");
	assert_status(vdi_log_writer_commit(writer, 3, NULL), VD_OK);
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	assert_non_null(strstr(file_text(), "\n{\"commit\":3}\n"));
	/* A checksum that the first line does not announce: that line was changed. */
	text = "{\"vedetteLog\":1}\n{\"commit\":2,\"sum\":\"0123456789abcdef\"}\n";
	assert_status(read_text(text, strlen(text), &error), VD_BAD_REQUEST);
	text = "{\"vedetteLog\":1}\n{\"rev\":2,\"type\":\"DELETE\",\"key\":\"a\"}\n{\"commit\":2,\"records\":"
	       "2}\n";
	assert_status(read_text(text, strlen(text), &error), VD_BAD_REQUEST);
	assert_non_null(strstr(error.message, ":3: the line closes 2 records, but there are 1"));
	text = "{\"vedetteLog\":1,\"checksums\":\"sha3\"}\n";
	assert_status(read_text(text, strlen(text), &error), VD_NEWER_FORMAT);
	unlink(path);
}

static void redaction_keeps_types_and_loses_content(void **state)
{
	const char *paths[] = { ".data",     "metadata.labels.secret", "spec.tokens", "spec.count", "spec.on",
				"data.inner" };
	struct vdi_log_writer_options options = { .path = path,
						  .redact = paths,
						  .redact_count = VDI_ARRAY_SIZE(paths) };
	struct vdi_log_writer	     *writer;

	(void) state;
	new_path("");
	assert_status(vdi_log_writer_open(&options, &writer, NULL, NULL), VD_OK);
	change(writer, 2, "a",
	       "{\"metadata\":{\"labels\":{\"secret\":\"pa\\\"ss\",\"b\":\"c\"}},\"data\":{\"inner\":\"x\"},"
	       "\"spec\":{\"on\":true,\"tokens\":[1,2], \"count\":7,\"z\":null}}");
	change(writer, 2, "b", "not json, and perhaps secret");
	change(writer, 2, "c", "{\"kind\":\"Pod\"}");
	assert_status(vdi_log_writer_commit(writer, 2, NULL), VD_OK);
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	assert_non_null(strstr(file_text(),
			       "\"value\":{\"metadata\":{\"labels\":{\"secret\":\"\",\"b\":\"c\"}},\"data\":{"
			       "},\"spec\":{\"on\":false,\"tokens\":[],\"count\":0,\"z\":null}}}\n"));
	assert_non_null(strstr(file_text(),
			       "\"key\":\"b\",\"time\":\"1970-01-01T00:00:00.001Z\",\"valueBase64\":\"\"}"));
	assert_non_null(strstr(file_text(), "\"value\":{\"kind\":\"Pod\"}}"));
	unlink(path);
	paths[0] = "[";
	assert_status(vdi_log_writer_open(&options, &writer, NULL, NULL), VD_INVALID_ARGUMENT);
	unlink(path);
}

/* Reads it all; the last revision of a whole transaction, and that nothing is missing before it. */
static vd_rev check_log(vd_rev first)
{
	struct vdi_log_steps *steps;
	struct vdi_log_step   step;
	struct vd_error	      error = { 0 };
	vd_rev		      next = first;
	vd_status	      status = vdi_log_steps_open(path, &steps, &error);

	if (status != VD_OK)
		fail_msg("%s", error.message);
	while ((status = vdi_log_steps_next(steps, &step, &error)) == VD_OK) {
		assert_int_equal(step.kind, VDI_STEP_TXN);
		assert_int_equal(step.revision, next);
		assert_int_equal(step.count, next % 3 + 1);
		next++;
	}
	if (status != VD_CLOSED)
		fail_msg("%s", error.message);
	vdi_log_steps_close(steps);
	return next - 1;
}

static void write_some(struct vdi_log_writer *writer, vd_rev from, vd_rev to, struct vdi_rand *rand)
{
	char value[4100];

	for (vd_rev revision = from; revision <= to; revision++) {
		for (vd_rev i = 0; i < revision % 3 + 1; i++) {
			size_t size = (size_t) vdi_rand_below(rand, 4000);
			char   key[16];

			value[0] = '"';
			for (size_t j = 1; j <= size; j++)
				value[j] = (char) ('a' + vdi_rand_below(rand, 26));
			strcpy(value + size + 1, "\"");
			snprintf(key, sizeof key, "k%lld", (long long) i);
			change(writer, revision, key, value);
		}
		assert_status(vdi_log_writer_commit(writer, revision, NULL), VD_OK);
		if (vdi_rand_once_in(rand, 40))
			assert_status(vdi_log_writer_flush(writer, NULL), VD_OK);
	}
}

static void after_a_cut_anywhere_it_is_written_on(void **state)
{
	static const char *const suffixes[] = { ".ndjson", ".ndjson.zst" };

	(void) state;
	for (uint64_t seed = 0; seed < 30; seed++) {
		struct vdi_log_writer *writer;
		struct vdi_rand	       rand;
		struct stat	       stat_of;
		vd_rev		       last = 1, found;

		vdi_rand_init(&rand, seed);
		new_path(suffixes[seed % 2]);
		writer = open_writer(false, NULL);
		for (int round = 0; round < 4; round++) {
			write_some(writer, last + 1, last + 300, &rand);
			last += 300;
			assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
			assert_int_equal(check_log(2), last);
			assert_int_equal(stat(path, &stat_of), 0);
			/* Only the part behind the header: a log without one is none. */
			if (round % 2 == 0)
				assert_int_equal(
					truncate(path,
						 stat_of.st_size -
							 (off_t) vdi_rand_below(
								 &rand, (uint64_t) stat_of.st_size / 2)),
					0);
			writer = open_writer(true, &found);
			assert_true(found <= last && found >= last / 4);
			if (round % 2)
				assert_int_equal(found, last);
			last = found;
		}
		assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
		assert_int_equal(check_log(2), last);
		unlink(path);
	}
}

static void a_torn_snapshot_is_begun_again(void **state)
{
	struct vdi_log_writer *writer;
	vd_rev		       last = 7;

	(void) state;
	new_path("");
	writer = open_writer(false, NULL);
	assert_status(vdi_log_writer_snapshot_begin(writer, 9, NULL), VD_OK);
	change(writer, 7, "a", "1");
	assert_status(vdi_log_writer_flush(writer, NULL), VD_OK);
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	writer = open_writer(true, &last);
	assert_int_equal(last, 0);
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	assert_string_equal(file_text(),
			    "{\"vedetteLog\":1,\"checksums\":\"xxh64\",\"source\":\"a \\\"test\\\"\"}\n");
	unlink(path);
}

/* The records of a snapshot stay together: none of its lines can say what is on disk, and a log that ends in
 * one is not closed. */
static void a_snapshot_is_not_divided(void **state)
{
	struct vdi_log_writer *writer;
	const char	      *text;
	vd_rev		       last;

	new_path("");
	writer = open_writer(false, NULL);
	change(writer, 5, "a", "1");
	assert_status(vdi_log_writer_commit(writer, 5, NULL), VD_OK);
	assert_status(vdi_log_writer_snapshot_begin(writer, 9, NULL), VD_OK);
	for (int part = 0; part < 2; part++) {
		assert_status(vdi_log_writer_flush(writer, NULL), VD_OK);
		change(writer, 7, part ? "c" : "b", "1");
	}
	assert_status(vdi_log_writer_flush(writer, NULL), VD_OK);
	text = strstr(file_text(), "{\"snapshot\":9");
	assert_non_null(text);
	assert_non_null(strstr(text, "\"key\":\"b\""));
	assert_null(strstr(text, "synced"));
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	assert_null(strstr(file_text(), "\"end\":true"));
	writer = open_writer(true, &last);
	assert_int_equal(last, 5);
	assert_status(vdi_log_writer_snapshot_begin(writer, 9, NULL), VD_OK);
	change(writer, 7, "b", "1");
	assert_status(vdi_log_writer_snapshot_end(writer, 9, NULL), VD_OK);
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	assert_non_null(strstr(file_text(), "\"end\":true"));
	unlink(path);
}

/* As a torn header of a log that is not compressed: without one whole frame there is nothing to keep. */
static void a_torn_first_frame_is_begun_again(void **state)
{
	struct vdi_log_writer *writer;
	char		       bytes[4096];
	size_t		       size;
	vd_rev		       last;
	FILE		      *file;

	new_path(".ndjson.zst");
	unlink(path);
	writer = open_writer(false, NULL);
	change(writer, 5, "a", "1");
	assert_status(vdi_log_writer_commit(writer, 5, NULL), VD_OK);
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	file = fopen(path, "r");
	size = ZSTD_findFrameCompressedSize(bytes, fread(bytes, 1, sizeof bytes, file));
	fclose(file);
	assert_false(ZSTD_isError(size));
	for (size_t kept = 1; kept < size; kept++) {
		file = fopen(path, "w");
		assert_int_equal(fwrite(bytes, 1, kept, file), kept);
		fclose(file);
		writer = open_writer(true, &last);
		assert_int_equal(last, 0);
		change(writer, 6, "b", "1");
		assert_status(vdi_log_writer_commit(writer, 6, NULL), VD_OK);
		assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
		writer = open_writer(true, &last);
		assert_int_equal(last, 6);
		assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	}
	unlink(path);
}

/* What a power cut left of the first line, zeros behind it or not, is begun anew; anything else is
 * somebody's. */
static void a_torn_header_is_begun_again(void **state)
{
	static const char	      header[] = "{\"vedetteLog\":1,\"checksums\":\"xxh64\"";
	struct vdi_log_writer_options options = { .path = path, .resume = true };

	(void) state;
	for (size_t size = 0; size < sizeof header; size++)
		for (int kind = 0; kind < 3; kind++) { /* torn; zeros behind; a byte is another one */
			struct vdi_log_writer *writer = NULL;
			struct vd_error	       error;
			char		       bytes[100] = { 0 };
			FILE		      *file;
			bool		       is_torn = kind < 2 || size == 0;
			vd_status	       status;

			new_path("");
			memcpy(bytes, header, size);
			if (kind == 2 && size)
				bytes[VDI_MIN(size, 14) - 1] ^= 1;
			file = fopen(path, "w");
			assert_int_equal(fwrite(bytes, 1, kind == 1 ? sizeof bytes : size, file),
					 kind == 1 ? sizeof bytes : size);
			fclose(file);
			status = vdi_log_writer_open(&options, &writer, NULL, &error);
			if (is_torn != (status == VD_OK))
				fail_msg("%zu bytes, kind %d: %s", size, kind, vd_status_name(status));
			if (writer)
				assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
			unlink(path);
		}
}

static struct vdi_log_tail read_tail(void)
{
	struct vdi_log_steps *steps;
	struct vdi_log_step   step;
	struct vdi_log_tail   tail;
	vd_status	      status;

	assert_status(vdi_log_steps_open(path, &steps, NULL), VD_OK);
	while ((status = vdi_log_steps_next(steps, &step, NULL)) == VD_OK)
		;
	assert_status(status, VD_CLOSED);
	tail = vdi_log_steps_tail(steps);
	vdi_log_steps_close(steps);
	return tail;
}

/* A log that was closed says so; one that is written, or was given up, does not, also behind an earlier
 * end. */
static void a_log_says_whether_it_was_closed(void **state)
{
	struct vdi_log_writer *writer;

	(void) state;
	new_path("");
	unlink(path);
	writer = open_writer(false, NULL);
	change(writer, 2, "a", "1");
	assert_status(vdi_log_writer_commit(writer, 2, NULL), VD_OK);
	assert_status(vdi_log_writer_flush(writer, NULL), VD_OK);
	assert_true(read_tail().is_unclosed);
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	assert_false(read_tail().is_unclosed);
	assert_false(read_tail().is_torn);
	writer = open_writer(true, NULL);
	change(writer, 3, "a", "2");
	assert_status(vdi_log_writer_commit(writer, 3, NULL), VD_OK);
	assert_status(vdi_log_writer_flush(writer, NULL), VD_OK);
	assert_true(read_tail().is_unclosed);
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	assert_false(read_tail().is_unclosed);
	unlink(path);
}

static void what_is_there_is_not_overwritten(void **state)
{
	struct vdi_log_writer_options options = { .path = path };
	struct vdi_log_writer	     *writer;
	struct vd_error		      error;
	FILE			     *file;

	(void) state;
	new_path("");
	vdi_log_writer_close(open_writer(false, NULL), NULL);
	assert_status(vdi_log_writer_open(&options, &writer, NULL, &error), VD_EXISTS);
	file = fopen(path, "w");
	fputs("dear diary\n", file);
	fclose(file);
	options.resume = true;
	assert_status(vdi_log_writer_open(&options, &writer, NULL, &error), VD_BAD_REQUEST);
	assert_string_equal(file_text(), "dear diary\n");
	unlink(path);
	options.path = "/nowhere/at/all";
	assert_status(vdi_log_writer_open(&options, &writer, NULL, &error), VD_IO);
	options.path = "/dev/full";
	options.resume = false;
	assert_status(vdi_log_writer_open(&options, &writer, NULL, &error), VD_NO_SPACE);
}

static void every_allocation_may_fail(void **state)
{
	(void) state;
	for (int packed = 0; packed < 2; packed++)
		for (uint64_t nth = 1;; nth++) {
			struct vdi_log_writer_options options = { .path = path, .resume = true };
			struct vdi_log_writer	     *writer = NULL;
			struct vd_kv		     *kv = new_kv(2, "a", vd_bytes_of("{\"x\":1}"));
			int64_t			      live = vdi_alloc_live();
			vd_status		      status, closed = VD_OK;
			bool			      failed;

			new_path(packed ? ".zst" : "");
			vdi_log_writer_close(open_writer(false, NULL), NULL);
			(void) vdi_alloc_fail_nth(nth, 1);
			status = vdi_log_writer_open(&options, &writer, NULL, NULL);
			if (status == VD_OK)
				status = vdi_log_writer_change(writer, false, kv, (vd_wall) { 0 }, NULL);
			if (status == VD_OK)
				status = vdi_log_writer_commit(writer, 2, NULL);
			closed = vdi_log_writer_close(writer, NULL);
			failed = vdi_alloc_failed();
			(void) vdi_alloc_fail_nth(0, 0);
			assert_true(!failed == (status == VD_OK && closed == VD_OK));
			assert_int_equal(vdi_alloc_live(), live);
			vd_kv_unref(kv);
			unlink(path);
			if (!failed)
				break;
		}
}

static uint32_t u32_at(const unsigned char *bytes)
{
	return (uint32_t) bytes[0] | (uint32_t) bytes[1] << 8 | (uint32_t) bytes[2] << 16 |
	       (uint32_t) bytes[3] << 24;
}

/* Whoever jumps by the index of zstd's seekable format (contrib/seekable_format) finds whole transactions:
 * each frame alone is text that begins and ends with a line. */
static void the_index_leads_to_every_frame(void **state)
{
	struct vdi_log_writer *writer;
	unsigned char	      *file = NULL, *table;
	struct stat	       stat_of;
	FILE		      *stream;
	size_t		       size, at = 0, lines_read = 0;
	uint32_t	       frames;
	char		       value[3000];

	(void) state;
	new_path(".zst");
	unlink(path);
	writer = open_writer(false, NULL);
	value[0] = '"';
	for (vd_rev revision = 2; revision < 1502; revision++) {
		for (size_t i = 1; i < sizeof value - 2; i++)
			value[i] = (char) ('a' + (i * (size_t) revision) % 26);
		strcpy(value + sizeof value - 2, "\"");
		change(writer, revision, "k", value);
		assert_status(vdi_log_writer_commit(writer, revision, NULL), VD_OK);
	}
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	assert_int_equal(stat(path, &stat_of), 0);
	size = (size_t) stat_of.st_size;
	file = malloc(size);
	assert_non_null(file);
	stream = fopen(path, "re");
	assert_non_null(stream);
	assert_int_equal(fread(file, 1, size, stream), size);
	(void) fclose(stream);
	assert_int_equal(u32_at(file + size - 4), 0x8F92EAB1);
	assert_int_equal(file[size - 5], 0); /* no checksums in the table */
	frames = u32_at(file + size - 9);
	assert_in_range(frames, 3, 50);
	table = file + size - 9 - frames * 8;
	assert_int_equal(u32_at(table - 8), 0x184D2A5E);
	assert_int_equal(u32_at(table - 4), frames * 8 + 9);
	for (uint32_t i = 0; i < frames; i++) {
		uint32_t packed = u32_at(table + i * 8), plain = u32_at(table + i * 8 + 4);
		char	*text = malloc(plain);

		assert_non_null(text);
		assert_int_equal(ZSTD_decompress(text, plain, file + at, packed), plain);
		assert_true(text[0] == '{' && text[plain - 1] == '\n');
		if (i) /* a transaction begins here, or the closing line is alone */
			assert_memory_equal(text, i + 1 < frames ? "{\"rev\":" : "{\"progr", 7);
		for (uint32_t j = 0; j < plain; j++)
			lines_read += text[j] == '\n';
		at += packed;
		free(text);
	}
	assert_int_equal(at, (size_t) (table - 8 - file));
	assert_int_equal(lines_read, 1 + 2 * 1500 + 1);
	free(file);
	unlink(path);
}

/* What a power cut leaves are zeros. Where the log says that there was text on disk they are damage; behind
 * that, a torn tail. */
static void zeros_behind_what_was_synced_are_a_torn_tail(void **state)
{
	struct vdi_log_writer *writer;
	struct vd_error	       error = { 0 };
	char		       text[4096], other[4096];
	size_t		       size, synced, mark;
	vd_rev		       last;

	(void) state;
	new_path(".ndjson");
	unlink(path);
	writer = open_writer(false, NULL);
	for (vd_rev revision = 2; revision <= 3; revision++) {
		change(writer, revision, "a", "{\"n\":1}");
		change(writer, revision, "b", NULL);
		assert_status(vdi_log_writer_commit(writer, revision, NULL), VD_OK);
		assert_status(vdi_log_writer_flush(writer, NULL), VD_OK);
	}
	strcpy(text, file_text());
	assert_status(vdi_log_writer_close(writer, NULL), VD_OK);
	size = strlen(text);
	mark = (size_t) (strstr(text, "{\"commit\":3") - text);
	synced = strtoul(strstr(text + mark, ",\"synced\":") + strlen(",\"synced\":"), NULL, 10);
	assert_int_equal(synced, line_end(text, (size_t) (strstr(text, "{\"commit\":2") - text)));
	for (size_t at = 0; at < size; at += 11) {
		vd_status expected = at < synced && at + 16 <= mark ? VD_BAD_REQUEST : VD_AGAIN;

		memcpy(other, text, size);
		memset(other + at, 0, VDI_MIN(16, size - at));
		if (read_text(other, size, &error) != expected)
			fail_msg("zeros at %zu of %zu, %zu synced", at, size, synced);
		if (expected == VD_BAD_REQUEST)
			continue;
		vdi_log_writer_close(open_writer(true, &last), NULL);
		assert_int_equal(last, at < synced ? 0 : 2);
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(a_changed_log_is_refused),
		cmocka_unit_test(resume_refuses_a_changed_log),
		cmocka_unit_test(a_log_without_checksums_is_resumed_without),
		cmocka_unit_test(the_index_leads_to_every_frame),
		cmocka_unit_test(redaction_keeps_types_and_loses_content),
		cmocka_unit_test(after_a_cut_anywhere_it_is_written_on),
		cmocka_unit_test(zeros_behind_what_was_synced_are_a_torn_tail),
		cmocka_unit_test(a_torn_snapshot_is_begun_again),
		cmocka_unit_test(a_torn_header_is_begun_again),
		cmocka_unit_test(a_torn_first_frame_is_begun_again),
		cmocka_unit_test(a_snapshot_is_not_divided),
		cmocka_unit_test(a_log_says_whether_it_was_closed),
		cmocka_unit_test(what_is_there_is_not_overwritten),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
