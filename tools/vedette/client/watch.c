/* vedette watch: prints events as they arrive, until it is stopped.
 *
 *   find the resource -> list (versions of all names) -> WATCHING from its revision
 *   WATCHING --stream ends--> WATCHING after the last revision seen
 *   WATCHING --410--> list again; the difference is printed as events
 *
 * A request that failed is repeated, with growing delays and as the server advises, after lost connections,
 * silence, 429, 5xx, and after 401 if the server has accepted this client before, because its credentials
 * may be renewed. It is not repeated if the server has never answered. The first of such failures in a row
 * is reported.
 *
 * The versions of all names are kept, so that after a loss of history the objects that were added, changed
 * and removed meanwhile can be printed. Without a list (--resource-version) the names are learned from
 * events.
 */
#include "alloc.h"
#include "hash.h"

/* Names are untrusted input, so the hash is seeded. */
#define HASH_FUNCTION(key, size, hash)                                                                       \
	((hash) = (unsigned) vdi_hash_bytes((struct vd_bytes) { key, size }, vdi_hash_seed()))
#define HASH_NONFATAL_OOM 1
#define uthash_malloc(size) vdi_alloc(size)
#define uthash_free(memory, size) vdi_free(memory)

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <uthash.h>

#include "etcd_source.h"
#include "json_scan.h"
#include "json_stream.h"
#include "object_options.h"
#include "table_print.h"

#define REVISION_SIZE 64
#define BACKOFF_MS_MIN 100
#define BACKOFF_MS_MAX 10000
#define RETRY_AFTER_MS_MAX 60000
/* A stream that lasted so long worked, even if it delivered nothing. */
#define LASTED VD_SECONDS(5)
#define FIND_TIMEOUT VD_SECONDS(5)
/* Number of answers 504 in a row after which the server may have lost the last revision. */
#define FUTURE_MAX 5

/* An object that exists, as far as this program has seen. */
struct known {
	UT_hash_handle hh;
	uint64_t       round; /* of the last list that contained it */
	char	       revision[REVISION_SIZE];
	size_t	       key_size;
	char	       key[]; /* namespace, '/', name */
};

enum event_type { EVENT_ADDED, EVENT_MODIFIED, EVENT_DELETED, EVENT_BOOKMARK, EVENT_ERROR, EVENT_UNKNOWN };
static const char *const event_names[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR" };

struct watch {
	const struct vdi_command      *command;
	const struct vdi_log_settings *log;
	const struct vd_env	      *env;
	struct vdi_kube_session	      *session;
	struct vdi_object_query	       query;
	struct vdi_table_printer       table;
	bool			       show_bookmarks;
	bool			       initial; /* print what exists at the start */
	int64_t			       count_max, count;

	char			  revision[REVISION_SIZE]; /* of the last event or list; resumes here */
	struct known		 *known;
	uint64_t		  round;
	struct vdi_object_reader *reader;
	struct vdi_json_plan	 *event_plan;
	struct vdi_json_object	  event;
	struct vdi_json_stream	  stream;
	bool			  is_first_list;
	bool			  is_accepted; /* the server has accepted a request */
	bool			  was_lost;    /* a failure was reported, and nothing has arrived since */
	int			  backoff_ms;
	unsigned		  future_count; /* answers 504 to watches in a row */
	bool			  progressed;	/* the stream delivered something */
	bool			  expired;	/* the stream reported 410 */
	struct vd_error		  failure;	/* another error from the stream */
};

/* ---- Existing objects ---- */

static int compare_revisions(const char *a, const char *b)
{
	size_t a_size = strlen(a), b_size = strlen(b);

	return a_size != b_size ? (a_size < b_size ? -1 : 1) : strcmp(a, b);
}

static void copy_revision(char *place, struct vd_bytes revision)
{
	if (revision.size && revision.size < REVISION_SIZE) {
		memcpy(place, revision.data, revision.size);
		place[revision.size] = 0;
	}
}

static struct known *find_known(struct watch *watch, const struct vdi_listed *listed, bool make)
{
	size_t	      size = listed->namespace_name.size + 1 + listed->name.size;
	char	      key[1024];
	struct known *known;

	if (size > sizeof key)
		return NULL;
	if (listed->namespace_name.size)
		memcpy(key, listed->namespace_name.data, listed->namespace_name.size);
	key[listed->namespace_name.size] = '/';
	if (listed->name.size)
		memcpy(key + listed->namespace_name.size + 1, listed->name.data, listed->name.size);
	HASH_FIND(hh, watch->known, key, size, known);
	if (known || !make)
		return known;
	known = vdi_calloc(1, sizeof *known + size);
	if (known) {
		memcpy(known->key, key, size);
		known->key_size = size;
		HASH_ADD(hh, watch->known, key, size, known);
	}
	return known;
}

static void forget(struct watch *watch, struct known *known)
{
	HASH_DEL(watch->known, known);
	vdi_free(known);
}

/* ---- Printing ---- */

static vd_status print_event(struct watch *watch, enum event_type type, const struct vdi_listed *listed,
			     struct vd_bytes columns, struct vd_bytes text)
{
	switch (watch->query.output_format) {
	case VDI_AS_JSON:
		if (text.size)
			printf("%.*s\n", (int) text.size, (const char *) text.data);
		else
			printf("{\"type\":\"%s\",\"object\":%.*s}\n", event_names[type],
			       (int) listed->text.size, (const char *) listed->text.data);
		break;
	case VDI_AS_NAMES:
		printf("%-8s ", event_names[type]);
		vdi_resource_print_name(&watch->query.resource, listed->name);
		printf(" %.*s\n", (int) listed->revision.size,
		       listed->revision.size ? (const char *) listed->revision.data : "");
		break;
	default:
		if (columns.size)
			VDI_TRY(vdi_table_printer_columns(&watch->table, columns));
		VDI_TRY(vdi_table_printer_row(&watch->table, event_names[type], listed->namespace_name,
					      listed->name, listed->cells));
		vdi_table_printer_flush(&watch->table);
	}
	if (fflush(stdout) != 0)
		return VD_CANCELED; /* the reader has closed the output */
	return watch->count_max && ++watch->count >= watch->count_max ? VD_CANCELED : VD_OK;
}

/* ---- Lists ---- */

static vd_status list_page(void *arg, const struct vdi_page *page)
{
	struct watch *watch = arg;

	return watch->query.output_format == VDI_AS_TABLE && page->columns.size ?
		       vdi_table_printer_columns(&watch->table, page->columns) :
		       VD_OK;
}

static vd_status list_object(void *arg, const struct vdi_listed *listed)
{
	struct watch *watch = arg;
	struct known *known = find_known(watch, listed, false);
	bool	      is_new = known == NULL;
	char	      revision[REVISION_SIZE] = "";
	bool	      is_changed;

	copy_revision(revision, listed->revision);
	/* An unknown object that is older than the last seen revision existed before. A list that failed and
	 * is repeated contains objects that were printed. */
	is_changed = is_new ? watch->is_first_list || compare_revisions(revision, watch->revision) > 0 :
			      strcmp(known->revision, revision) != 0;
	known = find_known(watch, listed, true);
	if (known == NULL)
		return VD_NOMEM;
	known->round = watch->round;
	strcpy(known->revision, revision);
	if ((watch->is_first_list && !watch->initial) || !is_changed)
		return VD_OK;
	return print_event(watch, is_new ? EVENT_ADDED : EVENT_MODIFIED, listed, VD_BYTES_NONE,
			   VD_BYTES_NONE);
}

/* Prints DELETED for an object that the list no longer contains. Only its name is known. */
static vd_status print_removed(struct watch *watch, struct known *known)
{
	char		 *slash = memchr(known->key, '/', known->key_size);
	size_t		  namespace_size = (size_t) (slash - known->key);
	char		  text[4096];
	struct vdi_listed listed = { .namespace_name = { known->key, namespace_size },
				     .name = { slash + 1, known->key_size - namespace_size - 1 },
				     .revision = vd_bytes_of(watch->revision) };
	int		  size;

	size = snprintf(
		text, sizeof text,
		"{\"metadata\":{\"name\":\"%.*s\",\"namespace\":\"%.*s\",\"resourceVersion\":\"%s\"}}",
		(int) listed.name.size, (const char *) listed.name.data, (int) namespace_size, known->key,
		watch->revision);
	listed.text = (struct vd_bytes) { text, (size_t) size };
	return print_event(watch, EVENT_DELETED, &listed, VD_BYTES_NONE, VD_BYTES_NONE);
}

static vd_status list(struct watch *watch, struct vd_error *reterr)
{
	struct vdi_object_query query = watch->query;
	struct vdi_list_sink	sink = { list_page, list_object, NULL, watch };
	char			revision[REVISION_SIZE], name_selector[512];
	struct known	       *known, *next;

	query.revision = NULL;
	if (query.name) {
		/* A list with one name, so that a missing object is not an error. */
		snprintf(name_selector, sizeof name_selector, "metadata.name=%s", query.name);
		query.field_selector = name_selector;
		query.name = NULL;
	}
	watch->round++;
	VDI_TRY(vdi_object_list(watch->session, &query, &sink, revision, reterr));
	if (*revision == 0)
		return vd_error_set(reterr, VD_UNAVAILABLE, "the server's list has no resourceVersion");
	strcpy(watch->revision, revision);
	HASH_ITER(hh, watch->known, known, next)
	{
		vd_status status = VD_OK;

		if (known->round == watch->round)
			continue;
		status = print_removed(watch, known);
		forget(watch, known);
		VDI_TRY(status);
	}
	watch->is_first_list = false;
	return VD_OK;
}

/* ---- The stream ---- */

static enum event_type type_of(struct vd_bytes text)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(event_names); i++)
		if (vd_bytes_equal(text, vd_bytes_of(event_names[i])))
			return (enum event_type) i;
	return EVENT_UNKNOWN;
}

static vd_status take_error(struct watch *watch, struct vd_bytes text, const struct vdi_json_value *code,
			    struct vd_bytes object)
{
	struct vdi_kube_head head = { 0 };
	char		     digits[8] = "";

	snprintf(digits, sizeof digits, "%.*s", (int) VDI_MIN(code->length, 7),
		 (const char *) text.data + code->offset);
	head.code = atoi(digits);
	watch->expired = head.code == 410;
	return vdi_kube_session_error_of(&head, object, &watch->failure);
}

static vd_status take_event(void *arg, struct vd_bytes text)
{
	static const struct vdi_json_limits limits = { (size_t) UINT32_MAX - 1, VDI_JSON_DEPTH_MAX };
	struct watch			   *watch = arg;
	const struct vdi_json_value	   *object;
	struct vd_bytes			    object_text, columns;
	struct vdi_listed		    listed;
	struct known			   *known;
	enum event_type			    type;

	if (vdi_json_scan(text, &limits, &watch->event, &watch->failure) != VD_OK)
		return VD_BAD_REQUEST;
	type = type_of(vdi_json_value_bytes(text, vdi_json_field(&watch->event, 0)));
	object = vdi_json_field(&watch->event, 1);
	if (type == EVENT_UNKNOWN || object->type != VDI_JSON_OBJECT)
		return vd_error_set(&watch->failure, VD_BAD_REQUEST, "not a watch event: %.*s",
				    (int) VDI_MIN(text.size, 100), (const char *) text.data);
	object_text = vdi_json_value_bytes(text, object);
	if (type == EVENT_ERROR)
		return take_error(watch, text, vdi_json_field(&watch->event, 2), object_text);
	VDI_TRY(vdi_object_read(watch->reader, object_text, &listed, &columns, &watch->failure));
	watch->progressed = true;
	copy_revision(watch->revision, listed.revision);
	if (type == EVENT_BOOKMARK)
		return watch->show_bookmarks ? print_event(watch, type, &listed, VD_BYTES_NONE, text) : VD_OK;
	known = find_known(watch, &listed, type != EVENT_DELETED);
	if (known && type == EVENT_DELETED)
		forget(watch, known);
	else if (known)
		copy_revision(known->revision, listed.revision);
	return print_event(watch, type, &listed, columns, text);
}

static vd_status take_chunk(void *arg, struct vd_bytes chunk)
{
	struct watch *watch = arg;

	return vdi_json_stream_feed(&watch->stream, chunk, take_event, watch);
}

static vd_status watch_path(const struct watch *watch, struct vdi_text *path)
{
	char name_selector[512];

	VDI_TRY(vdi_object_path(&watch->query, false, path));
	VDI_TRY(vdi_text_add_parameter(path, "watch", "true"));
	VDI_TRY(vdi_text_add_parameter(path, "allowWatchBookmarks", "true"));
	VDI_TRY(vdi_text_add_parameter(path, "resourceVersion", watch->revision));
	VDI_TRY(vdi_text_add_parameter(path, "labelSelector", watch->query.label_selector));
	if (watch->query.name == NULL)
		return vdi_text_add_parameter(path, "fieldSelector", watch->query.field_selector);
	snprintf(name_selector, sizeof name_selector, "metadata.name=%s", watch->query.name);
	return vdi_text_add_parameter(path, "fieldSelector", name_selector);
}

/* Makes one watch request. VD_OK: it ended normally. *ret_code: HTTP status; 0: no response. */
static vd_status stream_once(struct watch *watch, int *ret_code, struct vd_error *reterr)
{
	struct vdi_text path = { 0 };
	vd_status	status = watch_path(watch, &path);

	watch->expired = false;
	watch->progressed = false;
	watch->failure = (struct vd_error) { 0 };
	vdi_json_stream_reset(&watch->stream);
	*ret_code = 0;
	if (status == VD_OK)
		status = vdi_kube_session_stream(watch->session, path.data,
						 vdi_object_accept(watch->query.output_format), take_chunk,
						 watch, ret_code, reterr);
	vdi_text_fini(&path);
	if (status != VD_OK && watch->failure.message[0])
		*reterr = watch->failure;
	if (status == VD_EXPIRED)
		watch->expired = true;
	if (status == VD_OK && vdi_json_stream_is_open(&watch->stream))
		status = vd_error_set(reterr, VD_UNAVAILABLE, "the stream ended within an event");
	return status;
}

/* ---- The loop ---- */

/* Returns true if a later retry may succeed. */
static bool is_passing(const struct watch *watch, vd_status status)
{
	if (!vdi_kube_session_has_answered(watch->session))
		return false;
	return status == VD_UNAVAILABLE || status == VD_FULL || status == VD_TOO_BIG ||
	       status == VD_TIMEOUT || (status == VD_FORBIDDEN && watch->is_accepted);
}

/* Notes the first failure in a row. */
static void note_loss(struct watch *watch, const struct vd_error *error)
{
	if (watch->was_lost)
		vdi_command_note(watch->log, VD_LOG_DEBUG, "%s", error->message);
	else if (*watch->revision)
		fprintf(stderr, "vedette watch: %s; resuming after revision %s\n", error->message,
			watch->revision);
	else
		fprintf(stderr, "vedette watch: %s; retrying\n", error->message);
	watch->was_lost = true;
}

static void note_success(struct watch *watch)
{
	watch->is_accepted = true;
	watch->was_lost = false;
	watch->backoff_ms = BACKOFF_MS_MIN;
}

/* Waits before the next attempt. */
static void pause_after(struct watch *watch, const struct vd_error *error)
{
	int advised_ms = (int) VDI_MIN((uint64_t) error->retry_after_s * 1000, (uint64_t) RETRY_AFTER_MS_MAX);

	(void) poll(NULL, 0, VDI_MAX(watch->backoff_ms, advised_ms));
	watch->backoff_ms = VDI_MIN(2 * watch->backoff_ms, BACKOFF_MS_MAX);
}

/* Lists until it succeeds or cannot. Reports the latter. */
static vd_status list_all(struct watch *watch)
{
	for (;;) {
		struct vd_error error = { 0 };
		vd_status	status = list(watch, &error);

		if (status == VD_OK)
			note_success(watch);
		if (status == VD_OK || status == VD_CANCELED)
			return status;
		if (!is_passing(watch, status)) {
			(void) vdi_command_failed(watch->command, "%s", error.message);
			return status;
		}
		note_loss(watch, &error);
		pause_after(watch, &error);
	}
}

static vd_status list_again(struct watch *watch)
{
	fprintf(stderr, "vedette watch: revision %s is no longer in the server's history; listing again\n",
		watch->revision);
	return list_all(watch);
}

/* The server answers 504 to a watch from a revision that it has not reached. If it was restored from a
 * backup, it will not reach it soon, so its state is compared. */
static bool is_from_future(struct watch *watch, vd_status status, int code)
{
	watch->future_count = status == VD_TIMEOUT && code == 504 ? watch->future_count + 1 : 0;
	if (watch->future_count < FUTURE_MAX)
		return false;
	watch->future_count = 0;
	return true;
}

static int follow(struct watch *watch)
{
	for (;;) {
		struct vd_error error = { 0 };
		vd_mono		began = vd_env_now(watch->env);
		int		code;
		vd_status	status = stream_once(watch, &code, &error);

		if (status == VD_CANCELED)
			return VDI_EXIT_OK;
		watch->is_accepted |= code >= 200 && code < 300;
		if (watch->progressed)
			note_success(watch);
		if (vd_mono_since(vd_env_now(watch->env), began).ns >= LASTED.ns)
			watch->backoff_ms = BACKOFF_MS_MIN;
		if (watch->expired || is_from_future(watch, status, code)) {
			status = list_again(watch);
			if (status != VD_OK)
				return status == VD_CANCELED ? VDI_EXIT_OK : VDI_EXIT_FAILED;
		} else if (status != VD_OK && !is_passing(watch, status)) {
			return vdi_command_failed(watch->command, "%s", error.message);
		} else if (status != VD_OK) {
			note_loss(watch, &error);
		} else {
			vdi_command_note(watch->log, VD_LOG_DEBUG,
					 "the stream ended; resuming after revision %s", watch->revision);
		}
		if (!watch->progressed || error.retry_after_s)
			pause_after(watch, &error);
	}
}

/* Finds the resource, as list_all. */
static vd_status find(struct watch *watch, const struct vdi_object_options *options, const char *type)
{
	for (;;) {
		struct vd_error error = { 0 };
		vd_status status = vdi_object_options_resolve(options, watch->session, type, FIND_TIMEOUT,
							      &watch->query, &error);

		if (status == VD_OK)
			note_success(watch);
		if (status == VD_OK)
			return status;
		if (status != VD_TIMEOUT && !is_passing(watch, status)) {
			(void) vdi_command_failed(watch->command, "%s", error.message);
			return status;
		}
		note_loss(watch, &error);
		if (status != VD_TIMEOUT)
			pause_after(watch, &error);
	}
}

static int start(struct watch *watch)
{
	vd_status status = VD_OK;

	if (watch->query.revision)
		copy_revision(watch->revision, vd_bytes_of(watch->query.revision));
	else
		status = list_all(watch);
	if (status != VD_OK)
		return status == VD_CANCELED ? VDI_EXIT_OK : VDI_EXIT_FAILED;
	return follow(watch);
}

static vd_status prepare(struct watch *watch)
{
	struct vd_bytes paths[] = { vd_bytes_of("type"), vd_bytes_of("object"), vd_bytes_of("object.code") };

	VDI_TRY(vdi_object_reader_new(&watch->reader));
	VDI_TRY(vdi_json_plan_new(paths, VDI_ARRAY_SIZE(paths), &watch->event_plan, NULL));
	return vdi_json_object_init(&watch->event, watch->event_plan);
}

static void fini(struct watch *watch)
{
	struct known *known, *next;

	HASH_ITER(hh, watch->known, known, next)
	forget(watch, known);
	vdi_json_stream_fini(&watch->stream);
	vdi_json_object_fini(&watch->event);
	vdi_json_plan_free(watch->event_plan);
	vdi_object_reader_free(watch->reader);
	vdi_table_printer_fini(&watch->table);
}

static int run(const struct vdi_command *command, int argc, char **argv)
{
	struct vdi_object_options    options;
	struct vdi_log_settings	     log = VDI_LOG_SETTINGS_INIT;
	struct watch		     watch = { .command = command, .log = &log, .is_first_list = true };
	struct vdi_object_connection connection;
	const char		    *operands[2], *type;
	size_t			     operand_count;
	int			     status;
	const struct vdi_option	     table[] = {
		     VDI_OBJECT_OPTION_TABLE(&options),
		     { 0, "resource-version", VDI_OPTION_TEXT, "N",
		       "events after this resourceVersion (default: from now on)", &options.revision },
		     { 0, "initial", VDI_OPTION_FLAG, NULL, "print existing objects first, as ADDED",
		       &watch.initial },
		     { 0, "bookmarks", VDI_OPTION_FLAG, NULL, "also print bookmarks", &watch.show_bookmarks },
		     { 0, "count", VDI_OPTION_NUMBER, "N", "end after N events", &watch.count_max },
	};

	vdi_object_options_init(&options);
	if (!vdi_command_parse(command, table, VDI_ARRAY_SIZE(table), argc, argv, operands,
			       VDI_ARRAY_SIZE(operands), &operand_count, &log, &status))
		return status;
	if (operand_count == 0)
		return vdi_command_usage_error(command,
					       "RESOURCE is missing, for example: vedette watch pods");
	if (watch.initial && options.revision)
		return vdi_command_usage_error(command,
					       "--initial and --resource-version exclude each other");
	if (options.revision && strlen(options.revision) >= REVISION_SIZE)
		return vdi_command_usage_error(command, "--resource-version is too long");
	if (!vdi_object_options_query(command, &options, operands, operand_count, &watch.query, &type,
				      &status) ||
	    !vdi_object_connect(command, &options, &log, operands[0], &connection, &status))
		return status;
	(void) signal(SIGPIPE, SIG_IGN); /* of a connection; that of the output is noticed by fflush */
	watch.env = connection.env;
	watch.backoff_ms = BACKOFF_MS_MIN;
	watch.session = connection.session;
	status = VDI_EXIT_FAILED;
	if (find(&watch, &options, type) == VD_OK) {
		watch.table.with_event = true;
		watch.table.wide = strcmp(options.output, "wide") == 0;
		watch.table.no_header = options.no_headers;
		watch.table.with_namespace = options.all_namespaces && watch.query.resource.namespaced;
		status = prepare(&watch) == VD_OK ? start(&watch) :
						    vdi_command_failed(command, "out of memory");
	}
	fini(&watch);
	vdi_object_disconnect(&connection);
	return status;
}

const struct vdi_command vdi_command_watch = {
	.name = "watch",
	.summary = "Print changes of objects as they happen.",
	.usage = "vedette watch [options] RESOURCE [NAME]",
	.details =
		"Runs until Ctrl-C or --count. If the connection is lost or silent, or the server\n"
		"refuses requests for a while, it resumes after the last revision that it\n"
		"received. If that revision has expired, it lists again and prints the\n"
		"difference. Both are reported on standard error. The default server is\n" VDI_DEFAULT_SERVER
		". With --etcd URL it needs no server: it reads the changes\n"
		"from etcd, through its own cache.\n"
		"Exit status: 0 after --count events, 1 failure, 2 usage error.\n",
	.examples = "  vedette watch pods -n shop\n"
		    "  vedette watch pods -A -l app=web -o name\n"
		    "  vedette watch configmap web-config -n shop --initial -o json\n"
		    "  vedette watch --etcd http://127.0.0.1:2379 pods -A\n"
		    "  vedette watch pods -A --resource-version 120 -o json --count 10\n",
	.run = run,
};
