/* Reads each source and feeds its importer. */
#include "import_command.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "import_audit.h"
#include "import_watch.h"
#include "resources.h"

#define CHUNK 65536
#define RESOURCES_SIZE_MAX ((size_t) 16 << 20)

unsigned vdi_import_settings_count(const struct vdi_import_settings *settings)
{
	return !!settings->audit + !!settings->watch + !!settings->kine + !!settings->snapshot;
}

const char *vdi_import_settings_source(const struct vdi_import_settings *settings)
{
	return settings->audit ? settings->audit :
	       settings->watch ? settings->watch :
	       settings->kine  ? settings->kine :
				 settings->snapshot;
}

static vd_status name_file(const char *path, vd_status status, struct vd_error *reterr)
{
	char text[200];

	snprintf(text, sizeof text, "%.199s",
		 reterr->message[0] ? reterr->message : vd_status_sentence(status));
	return vd_error_set(reterr, status, "%.120s: %s", path, text);
}

/* ---- Bytes ---- */

typedef vd_status (*feed_fn)(void *arg, struct vd_bytes bytes, struct vd_error *reterr);

static vd_status feed_file(const char *path, feed_fn feed, void *arg, struct vd_error *reterr)
{
	int	  file = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	char	 *chunk = vdi_alloc(CHUNK);
	ssize_t	  size = 0;
	vd_status status = chunk ? VD_OK : VD_NOMEM;

	if (file < 0)
		status = vd_error_set(reterr, VD_NOT_FOUND, "%s", strerror(errno));
	while (status == VD_OK && (size = read(file, chunk, CHUNK)) != 0) {
		if (size < 0 && errno == EINTR)
			continue;
		status = size < 0 ? vd_error_set(reterr, VD_IO, "%s", strerror(errno)) :
				    feed(arg, (struct vd_bytes) { chunk, (size_t) size }, reterr);
	}
	vdi_free(chunk);
	if (file > STDIN_FILENO)
		(void) close(file);
	return status;
}

/* ---- Audit logs ---- */

static vd_status feed_audit(void *arg, struct vd_bytes bytes, struct vd_error *reterr)
{
	return vdi_import_audit_feed(arg, bytes, reterr);
}

static vd_status run_audit(const char *path, const struct vdi_import_sink *sink,
			   struct vdi_import_totals *totals, struct vd_error *reterr)
{
	struct vdi_import_audit *import;
	vd_status		 status = vdi_import_audit_new(sink, &import);

	if (status != VD_OK)
		return status;
	status = feed_file(path, feed_audit, import, reterr);
	if (status == VD_OK)
		status = vdi_import_audit_end(import, totals, reterr);
	vdi_import_audit_free(import);
	return status;
}

/* ---- Watches ---- */

static vd_status feed_watch(void *arg, struct vd_bytes bytes, struct vd_error *reterr)
{
	return vdi_import_watch_feed(arg, bytes, reterr);
}

/* Guesses the plural as client-go does; a vowel before a y keeps it. */
static void guess_plural(struct vd_bytes kind, char plural[256])
{
	size_t size = VDI_MIN(kind.size, (size_t) 250);
	char   last, before;

	for (size_t i = 0; i < size; i++)
		plural[i] = (char) tolower(((const unsigned char *) kind.data)[i]);
	plural[size] = 0;
	last = size ? plural[size - 1] : 0;
	before = size > 1 ? plural[size - 2] : 0;
	if (last == 's' || last == 'x' || (last == 'h' && (before == 'c' || before == 's')))
		strcpy(plural + size, "es");
	else if (last == 'y' && strchr("aeiou", before) == NULL)
		strcpy(plural + size - 1, "ies");
	else
		strcpy(plural + size, "s");
}

static bool prefix_of(void *arg, struct vd_bytes api_version, struct vd_bytes kind,
		      char prefix[VDI_KUBE_PREFIX_MAX])
{
	const struct vdi_resources *resources = arg;
	const char		   *slash = memchr(api_version.data, '/', api_version.size);
	size_t			    size = slash ? (size_t) (slash - (const char *) api_version.data) : 0;
	char			    group[256], plural[256];

	if (size >= sizeof group || kind.size == 0 || memchr(kind.data, '/', kind.size) ||
	    memchr(kind.data, '.', kind.size))
		return false;
	if (size)
		memcpy(group, api_version.data, size);
	group[size] = 0;
	for (size_t i = 0; i < resources->count; i++)
		if (strcmp(resources->items[i]->group, group) == 0 &&
		    vd_bytes_equal(vd_bytes_of(resources->items[i]->kind), kind))
			return snprintf(prefix, VDI_KUBE_PREFIX_MAX, "%s", resources->items[i]->key_prefix) <
			       VDI_KUBE_PREFIX_MAX;
	guess_plural(kind, plural);
	return vdi_kube_prefix(group, plural, prefix);
}

static vd_status pass_watch(const char *path, const struct vdi_import_watch_scan *scan,
			    struct vdi_resources *resources, const struct vdi_import_sink *sink,
			    struct vdi_import_watch_scan *ret_scan, struct vdi_import_totals *totals,
			    struct vd_error *reterr)
{
	struct vdi_import_watch *import;
	vd_status		 status = vdi_import_watch_new(scan, prefix_of, resources, sink, &import);

	if (status != VD_OK)
		return status;
	status = feed_file(path, feed_watch, import, reterr);
	if (status == VD_OK)
		status = vdi_import_watch_end(import, ret_scan, totals, reterr);
	vdi_import_watch_free(import);
	return status;
}

struct text {
	char  *data;
	size_t size, capacity;
};

static vd_status keep_text(void *arg, struct vd_bytes bytes, struct vd_error *reterr)
{
	struct text *text = arg;

	if (text->size + bytes.size > RESOURCES_SIZE_MAX)
		return vd_error_set(reterr, VD_TOO_BIG, "too large for a resources file");
	if (!vdi_grow((void **) &text->data, &text->capacity, text->size + bytes.size, 1))
		return VD_NOMEM;
	memcpy(text->data + text->size, bytes.data, bytes.size);
	text->size += bytes.size;
	return VD_OK;
}

static vd_status load_resources(struct vdi_resources *resources, const char *path, struct vd_error *reterr)
{
	struct text text = { 0 };
	vd_status   status;

	if (path == NULL)
		return VD_OK;
	status = feed_file(path, keep_text, &text, reterr);
	if (status == VD_OK)
		status = vdi_resources_load(resources, (struct vd_bytes) { text.data, text.size }, reterr);
	vdi_free(text.data);
	return status == VD_OK ? VD_OK : name_file(path, status, reterr);
}

static vd_status run_watch(const struct vdi_import_settings *settings, const struct vdi_import_sink *sink,
			   struct vdi_import_totals *totals, struct vd_error *reterr)
{
	struct vdi_resources	     resources;
	struct vdi_import_watch_scan scan = { 0 };
	vd_status		     status = vdi_resources_init(&resources);

	if (status != VD_OK)
		return status;
	status = load_resources(&resources, settings->resources, reterr);
	if (status == VD_OK)
		status = pass_watch(settings->watch, NULL, &resources, sink, &scan, NULL, reterr);
	if (status == VD_OK)
		status = pass_watch(settings->watch, &scan, &resources, sink, NULL, totals, reterr);
	vdi_resources_fini(&resources);
	return status;
}

/* ---- All sources ---- */

vd_status vdi_import_run(const struct vdi_import_settings *settings, struct vdi_log_writer *writer,
			 struct vdi_import_totals *ret_totals, struct vd_error *reterr)
{
	struct vdi_import_sink	 sink = vdi_import_sink_of(writer);
	struct vdi_import_totals totals = { 0 };
	vd_status		 status;

	if (settings->audit)
		status = run_audit(settings->audit, &sink, &totals, reterr);
	else if (settings->watch)
		status = run_watch(settings, &sink, &totals, reterr);
	else if (settings->kine)
		status = vdi_import_kine(settings->kine, &sink, &totals, reterr);
	else
		status = vdi_import_snapshot(settings->snapshot, &sink, &totals, reterr);
	if (status != VD_OK)
		return name_file(vdi_import_settings_source(settings), status, reterr);
	*ret_totals = totals;
	return VD_OK;
}
