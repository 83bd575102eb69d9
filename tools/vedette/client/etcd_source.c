/* The kind is looked up among those that a server would serve, so that the server in the process reads only
 * its objects. */
#include "etcd_source.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <vedette/server.h>

#include "resources.h"

struct vdi_etcd_source {
	struct vd_env		*env;
	struct vd_store		*store;
	struct vd_server	*server;
	char			 directory[64];
	char			 listen[96]; /* "unix:..." in the directory */
	struct vdi_log_settings *log;
	atomic_bool		 is_open;
};

static const char scheme[] = "unix:";

/* While the source is opened, the messages of connections give the reason that the command reports. */
static void note_log(void *arg, const struct vd_log_record *record)
{
	struct vdi_etcd_source *source = arg;

	if (record->level == VD_LOG_WARNING && vdi_command_log_level(source->log) != VD_LOG_DEBUG &&
	    !atomic_load(&source->is_open) && strcmp(record->module, "grpc") == 0)
		return;
	vdi_command_log(source->log, record);
}

/* Removed at Ctrl-C, which ends these commands. */
static char doomed_socket[96], doomed_directory[64];

static void on_signal(int number)
{
	(void) unlink(doomed_socket);
	(void) rmdir(doomed_directory);
	(void) signal(number, SIG_DFL);
	(void) raise(number);
}

static void clean_up_on_signals(const char *socket_path, const char *directory)
{
	struct sigaction action = { .sa_handler = on_signal };

	(void) snprintf(doomed_socket, sizeof doomed_socket, "%s", socket_path);
	(void) snprintf(doomed_directory, sizeof doomed_directory, "%s", directory);
	(void) sigaction(SIGINT, &action, NULL);
	(void) sigaction(SIGTERM, &action, NULL);
	(void) sigaction(SIGHUP, &action, NULL);
}

/* Returns the part of text up to separator, or all of it. */
static struct vd_bytes cut(struct vd_bytes *text, char separator)
{
	const char     *found = text->size ? memchr(text->data, separator, text->size) : NULL;
	struct vd_bytes part = { text->data,
				 found ? (size_t) (found - (const char *) text->data) : text->size };

	text->data = (const char *) text->data + part.size + (found != NULL);
	text->size -= part.size + (found != NULL);
	return part;
}

static bool same(const char *name, struct vd_bytes text)
{
	return name && strlen(name) == text.size && strncasecmp(name, text.data, text.size) == 0;
}

static bool is_called(const struct vdi_resource *resource, struct vd_bytes name)
{
	bool is_it =
		same(resource->plural, name) || same(resource->singular, name) || same(resource->kind, name);

	for (size_t i = 0; i < VDI_ARRAY_SIZE(resource->short_names) && !is_it; i++)
		is_it = same(resource->short_names[i], name);
	return is_it;
}

/* typed: "deployments", "deployments.apps", "deployments.v1.apps", each optionally with "/web". */
static const struct vdi_resource *find(const struct vdi_resources *resources, const char *typed)
{
	struct vd_bytes rest = vd_bytes_of(typed), all = cut(&rest, '/'), group = all,
			name = cut(&group, '.');

	for (size_t i = 0; i < resources->count; i++) {
		const struct vdi_resource *resource = resources->items[i];
		struct vd_bytes		   behind = group, version = cut(&behind, '.');

		if (!is_called(resource, name))
			continue;
		if (group.size == 0 || same(resource->group, group) ||
		    (same(resource->version, version) && same(resource->group, behind)))
			return resource;
	}
	return NULL;
}

static vd_status read_resources(struct vdi_resources *resources, const char *path, struct vd_error *reterr)
{
	FILE	 *file;
	char	 *text = NULL;
	size_t	  size = 0, capacity = 0, got = 0;
	vd_status status = vdi_resources_init(resources);

	if (status != VD_OK || path == NULL)
		return status;
	file = fopen(path, "re");
	if (file == NULL)
		return vd_error_set(reterr, VD_INVALID, "resources: cannot read %s", path);
	do {
		size += got;
		if (!vdi_grow((void **) &text, &capacity, size + 65536, 1)) {
			status = VD_NOMEM;
			break;
		}
		got = fread(text + size, 1, 65536, file);
	} while (got > 0 && size < (16u << 20));
	(void) fclose(file);
	if (status == VD_OK)
		status = vdi_resources_load(resources, (struct vd_bytes) { text, size }, reterr);
	vdi_free(text);
	return status;
}

/* Returns the resource's name ("pods", "deployments.apps") for vd_server_options.only. */
static vd_status look_up(const char *resources_path, const char *typed, char name[VDI_RESOURCE_NAME_MAX],
			 struct vd_error *reterr)
{
	struct vdi_resources	   resources = { 0 };
	const struct vdi_resource *found;
	vd_status		   status = read_resources(&resources, resources_path, reterr);

	if (status == VD_OK) {
		found = find(&resources, typed);
		if (found)
			(void) vdi_resource_name(found, name);
		else
			status = vd_error_set(
				reterr, VD_INVALID,
				"unknown kind \"%s\"; define custom kinds with --resources FILE", typed);
	}
	vdi_resources_fini(&resources);
	return status;
}

/* Creates the directory in the user's runtime directory, otherwise in /tmp. */
static vd_status make_directory(struct vdi_etcd_source *source, struct vd_error *reterr)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (runtime == NULL || *runtime != '/' || strlen(runtime) > 32)
		runtime = "/tmp";
	(void) snprintf(source->directory, sizeof source->directory, "%s/vedette-XXXXXX", runtime);
	if (mkdtemp(source->directory) == NULL) {
		vd_error_set(reterr, VD_IO, "%s: %s", source->directory, strerror(errno));
		source->directory[0] = 0;
		return VD_IO;
	}
	(void) snprintf(source->listen, sizeof source->listen, "%s%s/socket", scheme, source->directory);
	clean_up_on_signals(source->listen + sizeof scheme - 1, source->directory);
	return VD_OK;
}

static vd_status start(struct vdi_etcd_source *source, const struct vdi_etcd_settings *settings,
		       const char *resources_path, const char *only, struct vd_error *reterr)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;

	VDI_TRY(vdi_etcd_settings_open(settings, source->env, &source->store, reterr));
	options.listen = source->listen;
	options.threads = 1;
	options.resources_path = resources_path;
	options.key_prefix = settings->prefix;
	options.consistency_interval = (vd_dur) { 0 };
	options.only = only;
	options.read_only = true;
	VDI_TRY(vd_server_new(source->env, source->store, &options, &source->server, reterr));
	return vd_server_start(source->server, settings->timeout, reterr);
}

vd_status vdi_etcd_source_open(const struct vdi_etcd_settings *settings, const char *resources_path,
			       const char *typed, struct vdi_log_settings *log,
			       struct vdi_etcd_source **ret_source, struct vd_error *reterr)
{
	struct vd_env_options	options = VD_ENV_OPTIONS_INIT;
	char			only[VDI_RESOURCE_NAME_MAX];
	struct vdi_etcd_source *source;
	vd_status		status;

	VDI_TRY(look_up(resources_path, typed, only, reterr));
	source = VDI_NEW(struct vdi_etcd_source);
	if (source == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	source->log = log;
	options.log = note_log;
	options.log_arg = source;
	/* A server's info messages are not useful here. */
	options.log_level =
		vdi_command_log_level(log) == VD_LOG_INFO ? VD_LOG_WARNING : vdi_command_log_level(log);
	options.threads = 2;
	status = make_directory(source, reterr);
	if (status == VD_OK)
		status = vd_env_new_threads(&options, &source->env);
	if (status == VD_OK)
		status = start(source, settings, resources_path, only, reterr);
	if (status != VD_OK) {
		vdi_etcd_source_close(source);
		return status;
	}
	atomic_store(&source->is_open, true);
	*ret_source = source;
	return VD_OK;
}

const char *vdi_etcd_source_url(const struct vdi_etcd_source *source)
{
	return source->listen;
}

void vdi_etcd_source_close(struct vdi_etcd_source *source)
{
	if (source == NULL)
		return;
	vd_store_shutdown(source->store);
	(void) vd_server_free(source->server);
	(void) vd_store_close_wait(source->store);
	(void) vd_env_free(source->env);
	if (source->directory[0])
		(void) rmdir(source->directory);
	vdi_free(source);
}
