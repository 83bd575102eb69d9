/* Finds the end of a log that another process has written, and cuts off what is incomplete. */
#include "log_writer_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_SIZE_MAX 4096

static bool is_skippable(const char *frame)
{
	const unsigned char *bytes = (const unsigned char *) frame;

	return (bytes[0] & 0xf0) == 0x50 && bytes[1] == 0x2a && bytes[2] == 0x4d && bytes[3] == 0x18;
}

/* Cuts the file at size, because the rest is incomplete. */
static vd_status cut(struct vdi_log_writer *writer, off_t size, struct vd_error *reterr)
{
	struct stat stat;

	if (fstat(writer->fd, &stat) != 0)
		return vdi_log_writer_io_error(writer, "read", reterr);
	if (stat.st_size > size && writer->strict)
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "%s: the last %lld bytes are an incomplete transaction", writer->path,
				    (long long) (stat.st_size - size));
	writer->totals.cut = (uint64_t) (stat.st_size - size);
	return ftruncate(writer->fd, size) == 0 && lseek(writer->fd, size, SEEK_SET) >= 0 ?
		       VD_OK :
		       vdi_log_writer_io_error(writer, "cut", reterr);
}

/* Finds the whole frames up to the index or an invalid frame. Reads one frame at a time. */
static vd_status find_frames(struct vdi_log_writer *writer, bool *ret_has_index, struct vd_error *reterr)
{
	struct stat stat;
	off_t	    at = 0;
	size_t	    size = 0, capacity = 0, compressed;
	char	   *data = NULL;
	vd_status   status = VD_OK;

	if (fstat(writer->fd, &stat) != 0)
		return vdi_log_writer_io_error(writer, "read", reterr);
	while (status == VD_OK && at < stat.st_size) {
		ssize_t got;

		/* Double the size until it holds a whole frame, or the file ends. */
		size = size ? size * 2 : 2 * VDI_LOG_FRAME_SIZE;
		if (!vdi_grow((void **) &data, &capacity, size, 1)) {
			status = vdi_log_writer_no_memory(writer, reterr);
			break;
		}
		got = pread(writer->fd, data, size, at);
		if (got < 0) {
			status = vdi_log_writer_io_error(writer, "read", reterr);
			break;
		}
		compressed = ZSTD_findFrameCompressedSize(data, (size_t) got);
		if (ZSTD_isError(compressed)) {
			if ((size_t) got < size)
				break;
			continue;
		}
		if (is_skippable(data)) {
			*ret_has_index = true;
			break;
		}
		if (!vdi_grow((void **) &writer->frames, &writer->frame_capacity, writer->frame_count + 1,
			      sizeof *writer->frames)) {
			status = vdi_log_writer_no_memory(writer, reterr);
			break;
		}
		writer->frames[writer->frame_count++] =
			(struct vdi_log_frame) { (uint32_t) compressed,
						 (uint32_t) ZSTD_getFrameContentSize(data, (size_t) got) };
		at += (off_t) compressed;
		size = 0;
	}
	vdi_free(data);
	return status;
}

/* Syncs the folder, so that a new file's name is on disk. */
static vd_status sync_name(struct vdi_log_writer *writer, struct vd_error *reterr)
{
	const char *slash = strrchr(writer->path, '/');
	char	   *folder = slash ? vdi_strndup(writer->path, VDI_MAX((size_t) (slash - writer->path), 1)) :
				     vdi_strdup(".");
	int	    fd, result;

	if (folder == NULL)
		return vdi_log_writer_no_memory(writer, reterr);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	vdi_free(folder);
	if (fd < 0)
		return VD_OK; /* the folder is not readable */
	result = fsync(fd);
	(void) close(fd);
	return result == 0 || errno == EINVAL ? VD_OK :
						vdi_log_writer_io_error(writer, "sync the folder of", reterr);
}

vd_status vdi_log_writer_write_header(struct vdi_log_writer *writer, const char *source,
				      struct vd_error *reterr)
{
	vdi_buffer_printf(&writer->open, "{\"vedetteLog\":%d,\"checksums\":\"" VDI_EVENT_LOG_CHECKSUMS "\"",
			  VDI_EVENT_LOG_VERSION);
	if (source) {
		vdi_buffer_append_text(&writer->open, ",\"source\":");
		vdi_buffer_append_json_string(&writer->open, vd_bytes_of(source));
	}
	vdi_buffer_append_char(&writer->open, '}');
	if (vdi_buffer_status(&writer->open) == VD_OK)
		writer->sum = vdi_event_log_sum_add(0, vdi_log_writer_line_from(writer, 0));
	vdi_buffer_append_char(&writer->open, '\n');
	writer->is_sealed = true;
	VDI_TRY(vdi_log_writer_settle(writer, reterr));
	VDI_TRY(vdi_log_writer_flush(writer, reterr));
	writer->has_synced_line = false; /* not needed for the header alone */
	return sync_name(writer, reterr);
}

/* Restarts with an empty file. */
static vd_status start_over(struct vdi_log_writer *writer, const char *source, struct vd_error *reterr)
{
	VDI_TRY(cut(writer, 0, reterr));
	writer->frame_count = 0;
	return vdi_log_writer_write_header(writer, source, reterr);
}

/* Returns true if a power cut left only the beginning of a header, zeros, or both. */
static bool has_torn_header(const struct vdi_log_writer *writer)
{
	static const char start[] = "{\"vedetteLog\":";
	char		  bytes[HEADER_SIZE_MAX];
	ssize_t		  size = pread(writer->fd, bytes, sizeof bytes, 0);
	const char	 *zero;
	size_t		  text;

	if (size <= 0 || size == (ssize_t) sizeof bytes || memchr(bytes, '\n', (size_t) size))
		return false;
	zero = memchr(bytes, 0, (size_t) size);
	text = zero ? (size_t) (zero - bytes) : (size_t) size;
	return memcmp(bytes, start, VDI_MIN(text, sizeof start - 1)) == 0;
}

struct found {
	vd_rev	 last;
	uint64_t size; /* bytes of text up to the end of the last whole step */
	uint64_t sum;  /* over that text */
	bool	 is_sealed;
	bool	 in_snapshot;
	bool	 is_whole;
};

static vd_status find_end(struct vdi_log_writer *writer, struct found *ret_found, struct vd_error *reterr)
{
	struct vdi_event_log *log;
	struct vdi_log_record record;
	struct found	      found = { .is_whole = true };
	vd_status	      status;

	VDI_TRY(vdi_event_log_open(writer->path, &log, reterr));
	found.is_sealed = vdi_event_log_is_sealed(log);
	found.size = vdi_event_log_offset(log);
	found.sum = vdi_event_log_sum(log);
	while ((status = vdi_event_log_next(log, &record, reterr)) == VD_OK) {
		bool is_change = record.kind == VDI_LOG_PUT || record.kind == VDI_LOG_DELETE;

		if (record.kind == VDI_LOG_SNAPSHOT)
			found.in_snapshot = true;
		else if (record.kind == VDI_LOG_SNAPSHOT_END)
			found.in_snapshot = false;
		found.is_whole = !is_change && !found.in_snapshot;
		if (!found.is_whole)
			continue;
		found.size = vdi_event_log_offset(log);
		found.sum = vdi_event_log_sum(log);
		if (record.kind == VDI_LOG_COMMIT || record.kind == VDI_LOG_SNAPSHOT_END)
			found.last = VDI_MAX(found.last, record.revision);
	}
	if (status == VD_CLOSED || (status == VD_BAD_REQUEST && vdi_event_log_was_cut_off(log)))
		status = VD_OK;
	vdi_event_log_close(log);
	if (status == VD_OK)
		*ret_found = found;
	return status;
}

/* Keeps the frames that were readable; cuts off what follows (the index, torn frames). */
static vd_status keep_frames(struct vdi_log_writer *writer, struct found *found, bool has_index,
			     struct vd_error *reterr)
{
	uint64_t text = 0;
	off_t	 end = 0;
	size_t	 count = 0;

	for (; count < writer->frame_count && text + writer->frames[count].size <= found->size; count++) {
		text += writer->frames[count].size;
		end += (off_t) writer->frames[count].compressed_size;
	}
	has_index = has_index && count == writer->frame_count;
	writer->frame_count = count;
	if (!has_index)
		VDI_TRY(cut(writer, end, reterr));
	else if (ftruncate(writer->fd, end) != 0 ||
		 lseek(writer->fd, end, SEEK_SET) < 0) /* the index is rewritten at the end */
		return vdi_log_writer_io_error(writer, "cut", reterr);
	return text < found->size ? find_end(writer, found, reterr) : VD_OK;
}

vd_status vdi_log_writer_resume(struct vdi_log_writer *writer, const char *source, vd_rev *ret_last,
				struct vd_error *reterr)
{
	struct found found = { 0 };
	bool	     has_index = false;

	if (writer->is_compressed)
		VDI_TRY(find_frames(writer, &has_index, reterr));
	if (writer->is_compressed ? writer->frame_count == 0 : has_torn_header(writer))
		return start_over(writer, source, reterr);
	VDI_TRY(find_end(writer, &found, reterr));
	if (writer->is_compressed)
		VDI_TRY(keep_frames(writer, &found, has_index, reterr));
	else
		VDI_TRY(cut(writer, (off_t) found.size, reterr));
	if (writer->is_compressed && found.in_snapshot)
		return start_over(writer, source, reterr);
	/* Sync, so that new text is not mixed with the old end after a power cut. */
	if (fdatasync(writer->fd) != 0 && errno != EINVAL)
		return vdi_log_writer_io_error(writer, "flush", reterr);
	writer->settled = writer->synced = found.size;
	writer->is_sealed = found.is_sealed;
	writer->sum = writer->settled_sum = found.sum;
	writer->last = found.last;
	if (ret_last)
		*ret_last = found.last;
	return VD_OK;
}
