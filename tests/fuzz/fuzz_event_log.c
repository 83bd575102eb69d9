/* Event logs, plain or compressed: any input is read to its end or refused with the line; what was read,
 * written and read again is equal. Also fault specifications: '#' as the first byte selects these, anything
 * else begins a log. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codec_json.h"
#include "event_log.h"
#include "fault_plan.h"
#include "fuzz.h"
#include "json_scan.h"
#include "log_steps.h"
#include "log_writer.h"

/* Makes a log in memory; its path is valid until it is closed. */
static int make_log(const void *data, size_t size, char path[64])
{
	int file = memfd_create("log", MFD_CLOEXEC);

	VDI_CHECK(file >= 0 && write(file, data, size) == (ssize_t) size);
	(void) snprintf(path, 64, "/proc/self/fd/%d", file);
	return file;
}

static void check_record(const struct vdi_log_record *record, uint64_t *line)
{
	VDI_CHECK(record->line > *line);
	*line = record->line;
	switch (record->kind) {
	case VDI_LOG_PUT:
	case VDI_LOG_DELETE:
		VDI_CHECK(record->revision > 0 && record->key.size > 0 &&
			  record->key.size <= VD_KEY_SIZE_MAX);
		VDI_CHECK(record->create_rev >= 0 && record->version >= 0);
		break;
	case VDI_LOG_DISCONNECT:
	case VDI_LOG_FAILURE: break;
	default: VDI_CHECK(record->revision > 0);
	}
}

static uint64_t mix(uint64_t hash, struct vd_bytes bytes)
{
	for (size_t i = 0; i < bytes.size; i++)
		hash = (hash ^ ((const unsigned char *) bytes.data)[i]) * 0x100000001b3;
	return hash * 31 + bytes.size;
}

static uint64_t mix_record(uint64_t hash, const struct vdi_log_record *record)
{
	const uint64_t numbers[] = { record->kind,
				     (uint64_t) record->revision,
				     (uint64_t) record->create_rev,
				     (uint64_t) record->version,
				     (uint64_t) record->lease,
				     record->line };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(numbers); i++)
		hash = hash * 31 + numbers[i];
	return mix(mix(mix(mix(hash, record->key), record->value), record->time), record->text);
}

/* Hashes the content and the status at the end. */
static uint64_t read_records(const char *path)
{
	struct vdi_event_log *log;
	struct vdi_log_record record;
	struct vd_error	      error = { 0 };
	uint64_t	      line = 0, hash = 0;
	vd_status	      status = vdi_event_log_open(path, &log, &error);

	if (status != VD_OK) {
		VDI_CHECK(error.message[0]);
		return (uint64_t) status;
	}
	while ((status = vdi_event_log_next(log, &record, &error)) == VD_OK) {
		check_record(&record, &line);
		hash = mix_record(hash, &record);
	}
	VDI_CHECK(status == VD_CLOSED || (status == VD_BAD_REQUEST && error.message[0]));
	if (status == VD_BAD_REQUEST && vdi_event_log_was_cut_off(log))
		VDI_CHECK(vdi_event_log_is_torn(log) && vdi_event_log_is_sealed(log));
	vdi_event_log_close(log);
	return hash * 31 + (uint64_t) status;
}

/* The same log with a space behind the bracket at the start of a line: no line is plain then, and all must
 * read the same. Not for logs with checksums, which cover that space. */
static void check_spaced(const uint8_t *data, size_t size, uint64_t hash)
{
	uint8_t *spaced = malloc(size * 2 + 1);
	size_t	 spaced_size = 0;
	char	 path[64];
	int	 file;

	VDI_CHECK(spaced != NULL);
	if (memmem(data, size, "\"checksums", strlen("\"checksums"))) {
		free(spaced);
		return;
	}
	for (size_t i = 0; i < size; i++) {
		spaced[spaced_size++] = data[i];
		if (data[i] == '{' && (i == 0 || data[i - 1] == '\n'))
			spaced[spaced_size++] = ' ';
	}
	file = make_log(spaced, spaced_size, path);
	VDI_CHECK(read_records(path) == hash);
	(void) close(file);
	free(spaced);
}

/* ---- Steps, and writing them again ---- */

static uint64_t mix_step(uint64_t hash, const struct vdi_log_step *step)
{
	hash = hash * 31 + step->kind;
	hash = hash * 31 + (uint64_t) step->revision;
	for (size_t i = 0; i < step->count; i++) {
		hash = mix(hash * 31 + step->changes[i].is_delete, vd_kv_key(step->changes[i].kv));
		hash = mix(hash, vd_kv_value(step->changes[i].kv));
		hash = hash * 31 + (uint64_t) step->changes[i].kv->mod_rev;
		hash = hash * 31 + (uint64_t) step->changes[i].kv->create_rev;
		hash = hash * 31 + (uint64_t) step->changes[i].kv->version;
	}
	return mix(hash, vd_bytes_of(step->kind == VDI_STEP_FAILURE ? step->text : ""));
}

static vd_status write_step(struct vdi_log_writer *writer, const struct vdi_log_step *step)
{
	static const enum vdi_log_kind marks[] = { [VDI_STEP_COMPACT] = VDI_LOG_COMPACT,
						   [VDI_STEP_PROGRESS] = VDI_LOG_PROGRESS,
						   [VDI_STEP_DISCONNECT] = VDI_LOG_DISCONNECT,
						   [VDI_STEP_FAILURE] = VDI_LOG_FAILURE };

	if (step->kind != VDI_STEP_TXN && step->kind != VDI_STEP_SNAPSHOT)
		return vdi_log_writer_mark(writer, marks[step->kind], step->revision, step->text, NULL);
	if (step->kind == VDI_STEP_SNAPSHOT)
		VDI_TRY(vdi_log_writer_snapshot_begin(writer, step->revision, NULL));
	for (size_t i = 0; i < step->count; i++)
		VDI_TRY(vdi_log_writer_change(writer, step->changes[i].is_delete, step->changes[i].kv,
					      (vd_wall) { 0 }, NULL));
	if (step->kind == VDI_STEP_SNAPSHOT)
		return vdi_log_writer_snapshot_end(writer, step->revision, NULL);
	return vdi_log_writer_commit(writer, step->revision, NULL);
}

static const struct vd_codec *codec_of(void *arg, struct vd_bytes key)
{
	return key.size % 2 ? arg : NULL;
}

/* Reads up to the first step that is invalid or that a writer refuses; *ret_count: number of valid steps.
 * writer may be NULL; codec NULL: objects are not decoded in advance. */
static uint64_t read_steps(const char *path, struct vdi_log_writer *writer, uint64_t count_max,
			   struct vd_codec *codec, uint64_t *ret_count)
{
	struct vdi_log_steps *steps;
	struct vdi_log_step   step;
	struct vd_error	      error = { 0 };
	uint64_t	      hash = 0;

	*ret_count = 0;
	if (vdi_log_steps_open(path, &steps, &error) != VD_OK)
		return 0;
	if (codec)
		vdi_log_steps_prepare(steps, codec_of, codec);
	while (*ret_count < count_max && vdi_log_steps_next(steps, &step, &error) == VD_OK) {
		if (writer && write_step(writer, &step) != VD_OK)
			break;
		hash = mix_step(hash, &step);
		++*ret_count;
	}
	vdi_log_steps_close(steps);
	return mix(hash, vd_bytes_of(error.message));
}

/* Decoding objects in advance does not change the steps of a log. */
static void check_prepared(const char *path)
{
	struct vd_codec *codec;
	uint64_t	 one, other, one_count, other_count;

	VDI_CHECK(vd_codec_json_new(NULL, 0, &codec, NULL) == VD_OK &&
		  vdi_codec_json_prepare_init(codec) == VD_OK);
	one = read_steps(path, NULL, UINT64_MAX, NULL, &one_count);
	other = read_steps(path, NULL, UINT64_MAX, codec, &other_count);
	VDI_CHECK(one == other && one_count == other_count);
	(void) vd_codec_free(codec);
}

static void check_steps(const char *path)
{
	static char		      copy[64];
	struct vdi_log_writer_options options = { .path = copy };
	struct vdi_log_writer	     *writer = NULL;
	struct vd_error		      error = { 0 };
	uint64_t		      written, count, again, again_count;
	int			      file = make_log("", 0, copy);

	VDI_CHECK(vdi_log_writer_open(&options, &writer, NULL, &error) == VD_OK);
	(void) read_steps(path, writer, UINT64_MAX, NULL, &count);
	if (vdi_log_writer_close(writer, &error) == VD_OK) {
		written = read_steps(path, NULL, count, NULL, &count);
		again = read_steps(copy, NULL, count, NULL, &again_count);
		VDI_CHECK(count == again_count && written == again);
	}
	(void) close(file);
	check_prepared(path);
}

/* ---- Faults ---- */

static void read_faults(const uint8_t *data, size_t size)
{
	struct vdi_fault_plan	  plan;
	struct vd_error		  error = { 0 };
	enum vdi_fault_point_kind kind;
	vd_rev			  last = 0;
	char			 *words = malloc(size + 1);

	VDI_CHECK(words != NULL);
	memcpy(words, data, size);
	words[size] = 0;
	if (vdi_fault_plan_init(&plan, words, &error) != VD_OK) {
		VDI_CHECK(error.message[0]);
	} else {
		VDI_CHECK(plan.delay_rate >= 0 && plan.delay_rate <= 1 && plan.refuse >= 0 &&
			  plan.refuse <= 1 && plan.delay_max.ns >= 0 && plan.stale.ns >= 0 &&
			  plan.slow.ns >= 0);
		for (size_t i = 0; i < plan.point_count; i++) {
			VDI_CHECK(plan.points[i].revision >= last);
			last = plan.points[i].revision;
		}
		while (vdi_fault_plan_point(&plan, INT64_MAX, &kind))
			VDI_CHECK(kind < VDI_FAULT_POINT_KINDS);
		vdi_fault_plan_fini(&plan);
	}
	free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t	 live = vdi_alloc_live();
	uint64_t hash;
	char	 path[64];
	int	 file;

	if (size && data[0] == '#') {
		read_faults(data + 1, size - 1);
	} else {
		file = make_log(data, size, path);
		hash = read_records(path);
		if (size && data[0] == '{')
			check_spaced(data, size, hash);
		check_steps(path);
		(void) close(file);
	}
	VDI_CHECK(vdi_alloc_live() == live);
	return 0;
}
