/* Constant memory: the current line of each side, and the last few equal lines. */
#include "replay_expect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CONTEXT 3
#define SHOWN_MAX 400

struct vdi_replay_expect {
	FILE	*file;
	char	*path;
	char	*line; /* getline's buffer */
	size_t	 capacity;
	uint64_t equal;
	char	*before[CONTEXT]; /* a ring by line number */
	char	*expected, *seen; /* the first difference; NULL: that side has ended */
	bool	 differs;
};

vd_status vdi_replay_expect_open(const char *path, struct vdi_replay_expect **ret_expect,
				 struct vd_error *reterr)
{
	struct vdi_replay_expect *expect = VDI_NEW(struct vdi_replay_expect);

	if (expect == NULL || (expect->path = vdi_strdup(path)) == NULL) {
		vdi_free(expect);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	expect->file = fopen(path, "re");
	if (expect->file == NULL) {
		vd_status status = vd_error_set(reterr, errno == ENOENT ? VD_NOT_FOUND : VD_IO,
						"cannot open %s: %s", path, strerror(errno));

		vdi_replay_expect_close(expect);
		return status;
	}
	*ret_expect = expect;
	return VD_OK;
}

/* Returns at most SHOWN_MAX bytes of a line, without its newline, around the byte at. */
static char *shown(const char *line, size_t size, size_t at)
{
	size_t start = at > SHOWN_MAX / 2 ? at - SHOWN_MAX / 2 : 0;
	size_t length;
	char  *text = vdi_alloc(SHOWN_MAX + 8);

	while (size && (line[size - 1] == '\n' || line[size - 1] == '\r'))
		size--;
	start = VDI_MIN(start, size);
	length = VDI_MIN(size - start, (size_t) SHOWN_MAX);
	if (text)
		snprintf(text, SHOWN_MAX + 8, "%s%.*s%s", start ? "..." : "", (int) length, line + start,
			 start + length < size ? "..." : "");
	return text;
}

static size_t first_difference(const char *a, size_t a_size, const char *b, size_t b_size)
{
	size_t i = 0;

	while (i < a_size && i < b_size && a[i] == b[i])
		i++;
	return i;
}

static void remember(struct vdi_replay_expect *expect, struct vd_bytes line)
{
	char **slot = &expect->before[expect->equal % CONTEXT];

	vdi_free(*slot);
	*slot = shown(line.data, line.size, 0);
	expect->equal++;
}

bool vdi_replay_expect_line(struct vdi_replay_expect *expect, struct vd_bytes line)
{
	ssize_t size;
	size_t	at = 0;

	if (expect->differs)
		return false;
	size = getline(&expect->line, &expect->capacity, expect->file);
	if (size > 0 && (size_t) size == line.size && memcmp(expect->line, line.data, line.size) == 0) {
		remember(expect, line);
		return true;
	}
	expect->differs = true;
	if (size > 0) {
		at = first_difference(expect->line, (size_t) size, line.data, line.size);
		expect->expected = shown(expect->line, (size_t) size, at);
	}
	expect->seen = shown(line.data, line.size, at);
	return false;
}

static void print_difference(const struct vdi_replay_expect *expect)
{
	uint64_t first = expect->equal > CONTEXT ? expect->equal - CONTEXT : 0;

	fprintf(stderr, "vedette replay: differs from %s at line %llu\n", expect->path,
		(unsigned long long) expect->equal + 1);
	for (uint64_t i = first; i < expect->equal; i++)
		fprintf(stderr, "  %s\n", expect->before[i % CONTEXT] ? expect->before[i % CONTEXT] : "");
	fprintf(stderr, "- %s\n", expect->expected ? expect->expected : "(the file ends here)");
	fprintf(stderr, "+ %s\n", expect->seen ? expect->seen : "(the replay ends here)");
}

bool vdi_replay_expect_finish(struct vdi_replay_expect *expect, uint64_t *ret_lines)
{
	ssize_t size;

	if (!expect->differs && (size = getline(&expect->line, &expect->capacity, expect->file)) > 0) {
		expect->differs = true;
		expect->expected = shown(expect->line, (size_t) size, 0);
	}
	if (expect->differs)
		print_difference(expect);
	*ret_lines = expect->equal;
	return !expect->differs;
}

struct vdi_replay_expect *vdi_replay_expect_close(struct vdi_replay_expect *expect)
{
	if (expect) {
		if (expect->file)
			fclose(expect->file);
		free(expect->line);
		for (size_t i = 0; i < CONTEXT; i++)
			vdi_free(expect->before[i]);
		vdi_free(expect->expected);
		vdi_free(expect->seen);
		vdi_free(expect->path);
		vdi_free(expect);
	}
	return NULL;
}
