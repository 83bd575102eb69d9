/* There are two text buffers: "open" has the current transaction (or snapshot), "ready" has committed text
 * that is not written yet. Plain logs write ready as it is; compressed ones make a frame of it when it is
 * large enough, or at a flush. A frame contains whole transactions, so after a crash it is enough to cut off
 * a torn frame.
 *
 * A snapshot may be large, so its records are moved from open to ready at once, and are cut off by a resume
 * if the snapshot was not completed. */
#include "log_writer_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base64.h"

#define WRITE_SIZE ((size_t) 256 << 10)
#define TRANSACTION_SIZE_MAX ((size_t) 1 << 30)
#define COMPRESSION_LEVEL 3
#define SEEK_TABLE_MAGIC 0x184D2A5Eu
#define SEEK_TABLE_FOOTER 0x8F92EAB1u

/* ---- File ---- */

vd_status vdi_log_writer_io_error(struct vdi_log_writer *writer, const char *what, struct vd_error *reterr)
{
	int saved = errno;

	writer->has_failed = true;
	return vd_error_set(reterr, saved == ENOSPC || saved == EDQUOT ? VD_NO_SPACE : VD_IO,
			    "cannot %s %s: %s", what, writer->path, strerror(saved));
}

static vd_status write_all(struct vdi_log_writer *writer, const char *data, size_t size,
			   struct vd_error *reterr)
{
	while (size) {
		ssize_t written = write(writer->fd, data, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return vdi_log_writer_io_error(writer, "write to", reterr);
		data += written;
		size -= (size_t) written;
	}
	return VD_OK;
}

vd_status vdi_log_writer_no_memory(struct vdi_log_writer *writer, struct vd_error *reterr)
{
	writer->has_failed = true;
	return vd_error_set(reterr, VD_NOMEM, "out of memory while writing %s", writer->path);
}

/* Each frame has a checksum, so that a torn frame is detected. */
static vd_status prepare_frames(struct vdi_log_writer *writer, struct vd_error *reterr)
{
	writer->zstd = ZSTD_createCCtx();
	if (writer->zstd == NULL ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, COMPRESSION_LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_checksumFlag, 1)))
		return vdi_log_writer_no_memory(writer, reterr);
	return VD_OK;
}

static vd_status write_frame(struct vdi_log_writer *writer, struct vd_error *reterr)
{
	size_t bound = ZSTD_compressBound(writer->ready.size), size;
	char  *room;

	if (!vdi_grow((void **) &writer->frames, &writer->frame_capacity, writer->frame_count + 1,
		      sizeof *writer->frames))
		return vdi_log_writer_no_memory(writer, reterr);
	vdi_buffer_clear(&writer->compressed);
	room = vdi_buffer_reserve(&writer->compressed, bound);
	if (room == NULL)
		return vdi_log_writer_no_memory(writer, reterr);
	size = ZSTD_compress2(writer->zstd, room, bound, writer->ready.data, writer->ready.size);
	if (ZSTD_isError(size))
		return vdi_log_writer_no_memory(writer, reterr);
	VDI_TRY(write_all(writer, room, size, reterr));
	writer->frames[writer->frame_count++] =
		(struct vdi_log_frame) { (uint32_t) size, (uint32_t) writer->ready.size };
	return VD_OK;
}

static vd_status write_ready(struct vdi_log_writer *writer, struct vd_error *reterr)
{
	if (writer->ready.size == 0)
		return VD_OK;
	if (writer->is_compressed)
		VDI_TRY(write_frame(writer, reterr));
	else
		VDI_TRY(write_all(writer, writer->ready.data, writer->ready.size, reterr));
	vdi_buffer_clear(&writer->ready);
	return VD_OK;
}

/* Moves the completed transaction from open to ready. */
vd_status vdi_log_writer_settle(struct vdi_log_writer *writer, struct vd_error *reterr)
{
	if (writer->has_failed)
		return vd_error_set(reterr, VD_CLOSED, "%s cannot be written after an earlier error",
				    writer->path);
	vdi_buffer_append(&writer->ready, (struct vd_bytes) { writer->open.data, writer->open.size });
	if (vdi_buffer_status(&writer->open) != VD_OK || vdi_buffer_status(&writer->ready) != VD_OK)
		return vdi_log_writer_no_memory(writer, reterr);
	writer->totals.bytes += writer->open.size;
	writer->settled += writer->open.size;
	writer->totals.records += writer->open_records;
	writer->open_records = 0;
	writer->settled_sum = writer->sum;
	vdi_buffer_clear(&writer->open);
	return writer->ready.size >= (writer->is_compressed ? VDI_LOG_FRAME_SIZE : WRITE_SIZE) ?
		       write_ready(writer, reterr) :
		       VD_OK;
}

/* ---- Lines ---- */

struct vd_bytes vdi_log_writer_line_from(const struct vdi_log_writer *writer, size_t start)
{
	return (struct vd_bytes) { writer->open.data + start, writer->open.size - start };
}

/* Ends the line of a change that begins at start. */
static void end_change(struct vdi_log_writer *writer, size_t start)
{
	vdi_buffer_append_char(&writer->open, '}');
	if (vdi_buffer_status(&writer->open) == VD_OK)
		writer->sum = vdi_event_log_sum_add(writer->sum, vdi_log_writer_line_from(writer, start));
	vdi_buffer_append_char(&writer->open, '\n');
	writer->open_records++;
	writer->records++;
}

/* Ends any other line, with its checksum. The transaction or snapshot is complete. */
static vd_status end_line(struct vdi_log_writer *writer, size_t start, vd_rev revision,
			  struct vd_error *reterr)
{
	if (writer->is_sealed && writer->has_synced_line)
		vdi_buffer_printf(&writer->open, VDI_EVENT_LOG_SYNCED_NAME "%llu",
				  (unsigned long long) writer->synced);
	writer->has_synced_line = false;
	if (writer->is_sealed && vdi_buffer_status(&writer->open) == VD_OK) {
		writer->sum = vdi_event_log_sum_add(writer->sum, vdi_log_writer_line_from(writer, start));
		vdi_buffer_printf(&writer->open, VDI_EVENT_LOG_SUM_NAME "%016llx\"",
				  (unsigned long long) writer->sum);
	}
	vdi_buffer_append_text(&writer->open, "}\n");
	writer->last = VDI_MAX(writer->last, revision);
	return vdi_log_writer_settle(writer, reterr);
}

/* The same for a line that counts records. */
static vd_status end_records(struct vdi_log_writer *writer, size_t start, vd_rev revision,
			     struct vd_error *reterr)
{
	if (writer->is_sealed)
		vdi_buffer_printf(&writer->open, ",\"records\":%llu", (unsigned long long) writer->records);
	writer->records = 0;
	return end_line(writer, start, revision, reterr);
}

void vdi_log_time_format(vd_wall wall, char text[VDI_LOG_TIME_SIZE])
{
	time_t	  seconds = (time_t) (wall.ns / 1000000000);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	snprintf(text, VDI_LOG_TIME_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		 (unsigned) (tm.tm_year + 1900) % 10000, (unsigned) (tm.tm_mon + 1) % 100,
		 (unsigned) tm.tm_mday % 100, (unsigned) tm.tm_hour % 100, (unsigned) tm.tm_min % 100,
		 (unsigned) tm.tm_sec % 100, (unsigned) (wall.ns / 1000000 % 1000) % 1000);
}

/* Returns an empty value of the same type. */
static const char *emptied(const struct vdi_json_value *value)
{
	switch (value->type) {
	case VDI_JSON_STRING: return "\"\"";
	case VDI_JSON_NUMBER: return "0";
	case VDI_JSON_TRUE:
	case VDI_JSON_FALSE: return "false";
	case VDI_JSON_OBJECT: return "{}";
	case VDI_JSON_ARRAY: return "[]";
	default: return "null";
	}
}

/* Appends the value without its redacted members. Repeatedly searches the first remaining one, because paths
 * may be nested. */
static void append_redacted(struct vdi_log_writer *writer, struct vd_bytes json)
{
	const char *data = json.data;
	size_t	    at = 0;

	for (;;) {
		const struct vdi_json_value *next = NULL;
		size_t			     start = 0, size = 0;

		for (size_t i = 0; i < writer->redact_count; i++) {
			const struct vdi_json_value *value = vdi_json_field(&writer->object, i);
			size_t			     quote = value->type == VDI_JSON_STRING;

			if (value->type == VDI_JSON_ABSENT || value->offset - quote < at ||
			    (next && value->offset - quote >= start))
				continue;
			next = value;
			start = value->offset - quote;
			size = value->length + 2 * quote;
		}
		if (next == NULL)
			break;
		vdi_buffer_append(&writer->open, (struct vd_bytes) { data + at, start - at });
		vdi_buffer_append_text(&writer->open, emptied(next));
		at = start + size;
	}
	vdi_buffer_append(&writer->open, (struct vd_bytes) { data + at, json.size - at });
}

static void append_base64(struct vdi_log_writer *writer, struct vd_bytes value)
{
	char *room;

	vdi_buffer_append_text(&writer->open, ",\"valueBase64\":\"");
	room = vdi_buffer_reserve(&writer->open, VDI_BASE64_ENCODED_MAX(value.size) + 1);
	if (room)
		vdi_buffer_commit(&writer->open, vdi_base64_encode(VDI_BASE64_STANDARD, value, room));
	vdi_buffer_append_char(&writer->open, '"');
}

/* A redacted log never contains base64, which could include redacted members. */
static void append_value(struct vdi_log_writer *writer, struct vd_bytes value)
{
	static const struct vdi_json_limits limits = { VDI_EVENT_LOG_LINE_MAX / 2, VDI_JSON_DEPTH_MAX };
	size_t				    start;
	bool				    redacts = writer->redact_count > 0;

	if (value.size == 0 || (redacts ? vdi_json_scan(value, &limits, &writer->object, NULL) :
					  vdi_json_validate(value, &limits, NULL)) != VD_OK) {
		append_base64(writer, redacts ? VD_BYTES_NONE : value);
		return;
	}
	vdi_buffer_append_text(&writer->open, ",\"value\":");
	start = writer->open.size;
	if (redacts)
		append_redacted(writer, value);
	else
		vdi_buffer_append(&writer->open, value);
	if (vdi_buffer_status(&writer->open) == VD_OK)
		writer->open.size = start + vdi_json_minify((struct vd_bytes) { writer->open.data + start,
										writer->open.size - start },
							    writer->open.data + start);
}

vd_status vdi_log_writer_change(struct vdi_log_writer *writer, bool is_delete, const struct vd_kv *kv,
				vd_wall wall, struct vd_error *reterr)
{
	struct vdi_buffer *open = &writer->open;
	size_t		   start = open->size;
	char		   text[VDI_LOG_TIME_SIZE];

	vdi_buffer_printf(open, "{\"rev\":%lld,\"type\":\"%s\",\"key\":", (long long) kv->mod_rev,
			  is_delete ? "DELETE" : "PUT");
	vdi_buffer_append_json_string(open, vd_kv_key(kv));
	if (wall.ns > 0) {
		vdi_log_time_format(wall, text);
		vdi_buffer_printf(open, ",\"time\":\"%s\"", text);
	}
	if (!is_delete) {
		if (kv->create_rev > 0)
			vdi_buffer_printf(open, ",\"createRev\":%lld", (long long) kv->create_rev);
		if (kv->version > 0)
			vdi_buffer_printf(open, ",\"version\":%lld", (long long) kv->version);
		if (kv->lease)
			vdi_buffer_printf(open, ",\"lease\":%lld", (long long) kv->lease);
		append_value(writer, vd_kv_value(kv));
	}
	end_change(writer, start);
	if (vdi_buffer_status(open) != VD_OK)
		return vdi_log_writer_no_memory(writer, reterr);
	return writer->in_snapshot ? vdi_log_writer_settle(writer, reterr) : VD_OK;
}

vd_status vdi_log_writer_commit(struct vdi_log_writer *writer, vd_rev revision, struct vd_error *reterr)
{
	size_t start = writer->open.size;

	vdi_buffer_printf(&writer->open, "{\"commit\":%lld", (long long) revision);
	writer->totals.transactions++;
	return end_records(writer, start, revision, reterr);
}

vd_status vdi_log_writer_snapshot_begin(struct vdi_log_writer *writer, vd_rev revision,
					struct vd_error *reterr)
{
	size_t start = writer->open.size;

	vdi_buffer_printf(&writer->open, "{\"snapshot\":%lld", (long long) revision);
	writer->in_snapshot = true;
	return end_line(writer, start, 0, reterr);
}

vd_status vdi_log_writer_snapshot_end(struct vdi_log_writer *writer, vd_rev revision, struct vd_error *reterr)
{
	size_t start = writer->open.size;

	vdi_buffer_printf(&writer->open, "{\"snapshotEnd\":%lld", (long long) revision);
	writer->in_snapshot = false;
	return end_records(writer, start, revision, reterr);
}

vd_status vdi_log_writer_mark(struct vdi_log_writer *writer, enum vdi_log_kind kind, vd_rev revision,
			      const char *text, struct vd_error *reterr)
{
	size_t start = writer->open.size;

	switch (kind) {
	case VDI_LOG_COMPACT:
		vdi_buffer_printf(&writer->open, "{\"compact\":%lld", (long long) revision);
		break;
	case VDI_LOG_PROGRESS:
		vdi_buffer_printf(&writer->open, "{\"progress\":%lld", (long long) revision);
		break;
	case VDI_LOG_FAILURE:
		vdi_buffer_append_text(&writer->open, "{\"error\":");
		vdi_buffer_append_json_string(&writer->open, vd_bytes_of(text));
		break;
	default: vdi_buffer_append_text(&writer->open, "{\"disconnect\":true");
	}
	return end_line(writer, start, kind == VDI_LOG_PROGRESS ? revision : 0, reterr);
}

vd_status vdi_log_writer_flush(struct vdi_log_writer *writer, struct vd_error *reterr)
{
	if (writer->has_failed)
		return vd_error_set(reterr, VD_CLOSED, "%s cannot be written after an earlier error",
				    writer->path);
	VDI_TRY(write_ready(writer, reterr));
	if (fdatasync(writer->fd) != 0 && errno != EINVAL)
		return vdi_log_writer_io_error(writer, "flush", reterr);
	/* Within a snapshot there is no line that could state it. */
	if (writer->settled > writer->synced && !writer->in_snapshot) {
		writer->synced = writer->settled;
		writer->has_synced_line = true;
	}
	return VD_OK;
}

void vdi_log_writer_totals_get(const struct vdi_log_writer *writer, struct vdi_log_writer_totals *ret_totals)
{
	*ret_totals = writer->totals;
}

/* ---- The index ---- */

static void append_u32(struct vdi_buffer *buffer, uint32_t value)
{
	unsigned char bytes[4] = { (unsigned char) value, (unsigned char) (value >> 8),
				   (unsigned char) (value >> 16), (unsigned char) (value >> 24) };

	vdi_buffer_append(buffer, (struct vd_bytes) { (const char *) bytes, 4 });
}

/* Writes the index of zstd's seekable format: a frame that readers skip, with the sizes of all others. */
static vd_status write_index(struct vdi_log_writer *writer, struct vd_error *reterr)
{
	struct vdi_buffer *buffer = &writer->compressed;

	vdi_buffer_clear(buffer);
	append_u32(buffer, SEEK_TABLE_MAGIC);
	append_u32(buffer, (uint32_t) (writer->frame_count * 8 + 9));
	for (size_t i = 0; i < writer->frame_count; i++) {
		append_u32(buffer, writer->frames[i].compressed_size);
		append_u32(buffer, writer->frames[i].size);
	}
	append_u32(buffer, (uint32_t) writer->frame_count);
	vdi_buffer_append_char(buffer, 0);
	append_u32(buffer, SEEK_TABLE_FOOTER);
	if (vdi_buffer_status(buffer) != VD_OK)
		return vdi_log_writer_no_memory(writer, reterr);
	return write_all(writer, buffer->data, buffer->size, reterr);
}

/* ---- Lifetime ---- */

static vd_status plan_redaction(struct vdi_log_writer *writer, const struct vdi_log_writer_options *options,
				struct vd_error *reterr)
{
	struct vd_bytes paths[VDI_JSON_PATHS_MAX];

	if (options->redact_count > VDI_JSON_PATHS_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "more than %d paths to redact",
				    VDI_JSON_PATHS_MAX);
	for (size_t i = 0; i < options->redact_count; i++)
		paths[i] = vd_bytes_of(options->redact[i]);
	writer->redact_count = options->redact_count;
	VDI_TRY(vdi_json_plan_new(paths, options->redact_count, &writer->plan, reterr));
	return vdi_json_object_init(&writer->object, writer->plan);
}

static vd_status begin(struct vdi_log_writer *writer, const struct vdi_log_writer_options *options,
		       vd_rev *ret_last, struct vd_error *reterr)
{
	struct stat stat;

	VDI_TRY(plan_redaction(writer, options, reterr));
	writer->fd = open(writer->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (writer->fd < 0)
		return vdi_log_writer_io_error(writer, "open", reterr);
	if (fstat(writer->fd, &stat) != 0)
		return vdi_log_writer_io_error(writer, "open", reterr);
	if (ret_last)
		*ret_last = 0;
	if (stat.st_size == 0)
		return vdi_log_writer_write_header(writer, options->source, reterr);
	if (!options->resume)
		return vd_error_set(reterr, VD_EXISTS, "%s already exists", writer->path);
	return vdi_log_writer_resume(writer, options->source, ret_last, reterr);
}

static void release(struct vdi_log_writer *writer)
{
	if (writer->fd >= 0)
		close(writer->fd);
	vdi_json_object_fini(&writer->object);
	vdi_json_plan_free(writer->plan);
	vdi_buffer_fini(&writer->open);
	vdi_buffer_fini(&writer->ready);
	vdi_buffer_fini(&writer->compressed);
	ZSTD_freeCCtx(writer->zstd);
	vdi_free(writer->frames);
	vdi_free(writer->path);
	vdi_free(writer);
}

vd_status vdi_log_writer_open(const struct vdi_log_writer_options *options,
			      struct vdi_log_writer **ret_writer, vd_rev *ret_last, struct vd_error *reterr)
{
	struct vdi_log_writer *writer = VDI_NEW(struct vdi_log_writer);
	size_t		       length = strlen(options->path);
	vd_status	       status;

	if (writer == NULL || (writer->path = vdi_strdup(options->path)) == NULL) {
		vdi_free(writer);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	writer->fd = -1;
	writer->strict = options->strict;
	writer->is_compressed = length > 4 && strcmp(options->path + length - 4, ".zst") == 0;
	vdi_buffer_init(&writer->open, TRANSACTION_SIZE_MAX);
	vdi_buffer_init(&writer->ready, 2 * TRANSACTION_SIZE_MAX);
	vdi_buffer_init(&writer->compressed, 2 * TRANSACTION_SIZE_MAX);
	status = writer->is_compressed ? prepare_frames(writer, reterr) : VD_OK;
	if (status == VD_OK)
		status = begin(writer, options, ret_last, reterr);
	if (status != VD_OK) {
		release(writer);
		return status;
	}
	*ret_writer = writer;
	return VD_OK;
}

/* Writes the end line. Drops uncommitted changes. */
static vd_status close_log(struct vdi_log_writer *writer, struct vd_error *reterr)
{
	if (!writer->is_sealed || writer->last == 0 || writer->in_snapshot)
		return VD_OK;
	vdi_buffer_clear(&writer->open);
	writer->open_records = 0;
	writer->sum = writer->settled_sum;
	VDI_TRY(vdi_log_writer_flush(writer, reterr)); /* the line states the flush */
	vdi_buffer_printf(&writer->open, "{\"progress\":%lld,\"end\":true", (long long) writer->last);
	return end_line(writer, 0, 0, reterr);
}

vd_status vdi_log_writer_close(struct vdi_log_writer *writer, struct vd_error *reterr)
{
	vd_status status = VD_OK;

	if (writer == NULL)
		return VD_OK;
	if (!writer->has_failed) {
		status = close_log(writer, reterr);
		if (status == VD_OK)
			status = write_ready(writer, reterr);
		if (status == VD_OK && writer->is_compressed)
			status = write_index(writer, reterr);
		if (status == VD_OK)
			status = vdi_log_writer_flush(writer, reterr);
	}
	release(writer);
	return status;
}
