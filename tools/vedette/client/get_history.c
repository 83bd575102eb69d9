/* The history of an object is a watch of its name, from as far back as the server's history reaches (the
 * error 410 names that revision: "too old resource version: 1 (123)"), up to the revision of a list made
 * before. The difference is computed from two lists at exact revisions, matched by name. */
#include "get_history.h"

#include <stdio.h>
#include <stdlib.h>

#include "json_stream.h"
#include "object_diff.h"

#define VALUE_WIDTH 60
#define REVISION_SIZE 64

struct history {
	const struct vdi_object_query *query;
	bool			       as_json;
	char			       until[REVISION_SIZE];
	json_t			      *last; /* previous object; NULL: unknown or none */
	int64_t			       count;
	struct vdi_json_stream	       stream;
	bool			       is_complete;
	long long		       oldest; /* from the error 410; 0: unknown */
	struct vd_error		       failure;
};

/* Rejects numbers that do not fit 64 bits. NULL: not JSON, or out of memory. */
static json_t *parse(struct vd_bytes text)
{
	json_t *value = json_loadb(text.data, text.size, 0, NULL);

	return value ? value : json_loadb(text.data, text.size, JSON_DECODE_INT_AS_REAL, NULL);
}

/* ---- Printing ---- */

static void print_value(const json_t *value)
{
	char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;

	if (text && strlen(text) > VALUE_WIDTH)
		printf("%.*s...", VALUE_WIDTH - 3, text);
	else
		printf("%s", text ? text : "(none)");
	free(text);
}

static void print_difference(void *arg, const char *path, const json_t *from, const json_t *to)
{
	printf("%*s%s: ", *(const int *) arg, "", path);
	print_value(from);
	printf(" -> ");
	print_value(to);
	putchar('\n');
}

static void add_difference(void *arg, const char *path, const json_t *from, const json_t *to)
{
	json_t *difference = json_pack("{s:s, s:O?, s:O?}", "path", path, "from", from, "to", to);

	if (difference)
		(void) json_array_append_new(arg, difference);
}

static const char *string_at(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(json_object_get(object, "metadata"), name));

	return text ? text : "";
}

/* Prints one JSON document per line. */
static void print_change_json(const char *type, const char *revision, const json_t *object,
			      const json_t *from, const json_t *to)
{
	json_t *changes = json_array();
	json_t *line;
	char   *text;

	if (from && to)
		vdi_object_diff(from, to, add_difference, changes);
	line = json_pack("{s:s, s:s, s:s, s:s, s:o, s:O?}", "type", type, "namespace",
			 string_at(object, "namespace"), "name", string_at(object, "name"), "resourceVersion",
			 revision, "changes", changes, "object", object);
	text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	if (text)
		puts(text);
	free(text);
	json_decref(line);
}

/* ---- History ---- */

static void show_event(struct history *history, const char *type, json_t *object)
{
	static const int indent = 12;
	bool		 is_deleted = strcmp(type, "DELETED") == 0;
	const char	*revision = string_at(object, "resourceVersion");

	history->count++;
	if (history->as_json) {
		print_change_json(type, revision, object, is_deleted ? NULL : history->last,
				  is_deleted ? NULL : object);
	} else {
		printf("%-12s%s\n", revision,
		       strcmp(type, "ADDED") == 0 ? "created" :
		       is_deleted		  ? "deleted" :
						    "changed");
		if (!is_deleted && history->last)
			vdi_object_diff(history->last, object, print_difference,
					(void *) (uintptr_t) &indent);
	}
	json_decref(history->last);
	history->last = is_deleted ? NULL : json_incref(object);
}

/* "too old resource version: 1 (123)" */
static long long oldest_in(const char *message)
{
	const char *paren = message ? strrchr(message, '(') : NULL;

	return paren ? atoll(paren + 1) : 0;
}

static vd_status take_event(void *arg, struct vd_bytes text)
{
	struct history	    *history = arg;
	json_t		    *event = parse(text);
	json_t		    *object = json_object_get(event, "object");
	const char	    *type = json_string_value(json_object_get(event, "type"));
	vd_status	     status = VD_OK;
	struct vdi_kube_head head = { 0 };

	if (type == NULL || !json_is_object(object)) {
		json_decref(event);
		return vd_error_set(&history->failure, VD_BAD_REQUEST,
				    "the server sent something that is not an event");
	}
	if (strcmp(type, "ERROR") == 0) {
		history->oldest = oldest_in(json_string_value(json_object_get(object, "message")));
		head.code = (int) json_integer_value(json_object_get(object, "code"));
		status = vdi_kube_session_error_of(&head, text, &history->failure);
		(void) vd_error_set(&history->failure, status, "%s",
				    json_string_value(json_object_get(object, "message")));
	} else {
		if (strcmp(type, "BOOKMARK") != 0)
			show_event(history, type, object);
		history->is_complete |= atoll(string_at(object, "resourceVersion")) >= atoll(history->until);
		if (history->is_complete)
			status = VD_CANCELED;
	}
	json_decref(event);
	return status;
}

static vd_status take_chunk(void *arg, struct vd_bytes chunk)
{
	struct history *history = arg;

	return vdi_json_stream_feed(&history->stream, chunk, take_event, history);
}

static vd_status ignore_object(void *arg, const struct vdi_listed *listed)
{
	(void) arg;
	(void) listed;
	return VD_OK;
}

/* Returns the server's current revision. */
static vd_status current_revision(struct vdi_kube_session *session, const struct vdi_object_query *query,
				  char *ret_revision, struct vd_error *reterr)
{
	struct vdi_object_query any = *query;
	struct vdi_list_sink	sink = { NULL, ignore_object, NULL, NULL };

	any.name = NULL;
	any.limit = any.chunk_size = 1;
	any.output_format = VDI_AS_JSON;
	any.revision = any.revision_match = NULL;
	any.label_selector = any.field_selector = NULL;
	VDI_TRY(vdi_object_list(session, &any, &sink, ret_revision, reterr));
	return *ret_revision ?
		       VD_OK :
		       vd_error_set(reterr, VD_UNAVAILABLE, "the server's list has no resourceVersion");
}

static vd_status note_state(void *arg, const struct vdi_listed *listed)
{
	struct history *history = arg;

	json_decref(history->last);
	history->last = parse(listed->text);
	return VD_OK;
}

/* Reads the object at the start of the history, to show what the first change changed. */
static void read_first_state(struct vdi_kube_session *session, struct history *history, const char *from)
{
	struct vdi_object_query query = *history->query;
	struct vdi_list_sink	sink = { NULL, note_state, NULL, history };
	struct vd_error		error;
	char			selector[512];

	(void) snprintf(selector, sizeof selector, "metadata.name=%s", query.name);
	query.name = NULL;
	query.field_selector = selector;
	query.revision = from;
	query.revision_match = "Exact";
	query.output_format = VDI_AS_JSON;
	/* If the server no longer has it, the first change is printed without details. */
	if (vdi_object_list(session, &query, &sink, NULL, &error) != VD_OK)
		history->last = NULL;
}

static vd_status watch_from(struct vdi_kube_session *session, struct history *history, const char *from,
			    struct vd_error *reterr)
{
	struct vdi_text path = { 0 };
	char		selector[512];
	int		code;
	vd_status	status;

	(void) snprintf(selector, sizeof selector, "metadata.name=%s", history->query->name);
	history->failure = (struct vd_error) { 0 };
	history->oldest = 0;
	status = vdi_object_path(history->query, false, &path);
	if (status == VD_OK)
		status = vdi_text_add_parameter(&path, "watch", "true");
	if (status == VD_OK)
		status = vdi_text_add_parameter(&path, "allowWatchBookmarks", "true");
	/* The server sends a bookmark two seconds before the end of the watch; it ends the output unless the
	 * last change did. */
	if (status == VD_OK)
		status = vdi_text_add_parameter(&path, "timeoutSeconds", "3");
	if (status == VD_OK)
		status = vdi_text_add_parameter(&path, "resourceVersion", from);
	if (status == VD_OK)
		status = vdi_text_add_parameter(&path, "fieldSelector", selector);
	if (status == VD_OK)
		status = vdi_kube_session_stream(session, path.data, vdi_object_accept(VDI_AS_JSON),
						 take_chunk, history, &code, reterr);
	vdi_text_fini(&path);
	vdi_json_stream_fini(&history->stream);
	history->stream = (struct vdi_json_stream) { 0 };
	if (history->is_complete)
		return VD_OK;
	if (history->failure.message[0])
		*reterr = history->failure;
	if (status == VD_EXPIRED && history->oldest == 0)
		history->oldest = oldest_in(reterr->message);
	return status == VD_CANCELED ? VD_OK : status;
}

int vdi_get_history(const struct vdi_command *command, struct vdi_kube_session *session,
		    const struct vdi_object_query *query, const char *since)
{
	struct history	history = { .query = query, .as_json = query->output_format == VDI_AS_JSON };
	struct vd_error error = { 0 };
	char		from[REVISION_SIZE];
	vd_status	status;

	(void) snprintf(from, sizeof from, "%s", since ? since : "1");
	status = current_revision(session, query, history.until, &error);
	if (status == VD_OK && since)
		read_first_state(session, &history, from);
	if (status == VD_OK)
		status = watch_from(session, &history, from, &error);
	if (status == VD_EXPIRED && since == NULL && history.oldest > 0) {
		(void) snprintf(from, sizeof from, "%lld", history.oldest);
		read_first_state(session, &history, from);
		if (history.last && !history.as_json)
			printf("%-12s%s\n", string_at(history.last, "resourceVersion"),
			       "existed; earlier changes are not in the history");
		status = watch_from(session, &history, from, &error);
	}
	if (status == VD_OK && history.count == 0 && history.last == NULL && !history.as_json)
		fprintf(stderr, "No changes of %s in the history.\n", query->name);
	json_decref(history.last);
	if (status != VD_OK)
		return vdi_command_failed(command, "%s",
					  *error.message ? error.message : vd_status_sentence(status));
	return fflush(stdout) == 0 && !ferror(stdout) ? VDI_EXIT_OK : VDI_EXIT_FAILED;
}

/* ---- Difference ---- */

static vd_status keep_object(void *arg, const struct vdi_listed *listed)
{
	json_t *objects = arg;
	char	key[1024];
	json_t *object = parse(listed->text);

	(void) snprintf(key, sizeof key, "%.*s%s%.*s", (int) listed->namespace_name.size,
			(const char *) listed->namespace_name.data, listed->namespace_name.size ? "/" : "",
			(int) listed->name.size, (const char *) listed->name.data);
	if (object == NULL || json_object_set_new(objects, key, object) != 0)
		return VD_NOMEM;
	return VD_OK;
}

static vd_status list_at(struct vdi_kube_session *session, const struct vdi_object_query *query,
			 const char *revision, json_t **ret_objects, struct vd_error *reterr)
{
	struct vdi_object_query at = *query;
	json_t		       *objects = json_object();
	struct vdi_list_sink	sink = { NULL, keep_object, NULL, objects };
	char			selector[512];
	vd_status		status;

	if (at.name) {
		(void) snprintf(selector, sizeof selector, "metadata.name=%s", at.name);
		at.name = NULL;
		at.field_selector = selector;
	}
	at.revision = revision;
	at.revision_match = "Exact";
	at.output_format = VDI_AS_JSON;
	status = objects ? vdi_object_list(session, &at, &sink, NULL, reterr) : VD_NOMEM;
	if (status != VD_OK)
		json_decref(objects);
	else
		*ret_objects = objects;
	return status;
}

static void print_pair(const char *key, const json_t *from, const json_t *to, bool as_json)
{
	static const int indent = 4;
	bool		 is_same = from && to &&
		       strcmp(string_at(from, "resourceVersion"), string_at(to, "resourceVersion")) == 0;

	if (is_same)
		return;
	if (as_json) {
		print_change_json(from == NULL ? "ADDED" :
				  to == NULL   ? "DELETED" :
						 "MODIFIED",
				  string_at(to ? to : from, "resourceVersion"), to ? to : from, from, to);
		return;
	}
	printf("%c %s\n", from == NULL ? '+' : to == NULL ? '-' : '~', key);
	if (from && to)
		vdi_object_diff(from, to, print_difference, (void *) (uintptr_t) &indent);
}

/* Prints the differences by name; both lists are ordered by name. */
static void print_all(json_t *before, json_t *after, bool as_json)
{
	void *old = json_object_iter(before), *new = json_object_iter(after);

	while (old || new) {
		int order = old == NULL ? 1 :
			    new == NULL ? -1 :
					  strcmp(json_object_iter_key(old), json_object_iter_key(new));

		print_pair(json_object_iter_key(order > 0 ? new : old),
			   order <= 0 ? json_object_iter_value(old) : NULL,
			   order >= 0 ? json_object_iter_value(new) : NULL, as_json);
		if (order <= 0)
			old = json_object_iter_next(before, old);
		if (order >= 0)
			new = json_object_iter_next(after, new);
	}
}

static bool is_revision(const char *text)
{
	return *text && strlen(text) < 20 && strspn(text, "0123456789") == strlen(text) && *text != '0';
}

int vdi_get_diff(const struct vdi_command *command, struct vdi_kube_session *session,
		 const struct vdi_object_query *query, const char *span)
{
	char		from[REVISION_SIZE], to[REVISION_SIZE] = "";
	const char     *dots = strstr(span, "..");
	size_t		size;
	json_t	       *before = NULL, *after = NULL;
	struct vd_error error = { 0 };
	vd_status	status = VD_OK;

	size = dots ? (size_t) (dots - span) : strlen(span);
	size = VDI_MIN(size, sizeof from - 1);
	memcpy(from, span, size);
	from[size] = '\0';
	if (dots)
		(void) snprintf(to, sizeof to, "%s", dots + 2);
	if (!is_revision(from) || (*to && !is_revision(to)))
		return vdi_command_usage_error(
			command,
			"--diff must be two revisions such as 120..135, or one, which is "
			"compared with now: %s",
			span);
	if (*to == 0)
		status = current_revision(session, query, to, &error);
	if (status == VD_OK)
		status = list_at(session, query, from, &before, &error);
	if (status == VD_OK)
		status = list_at(session, query, to, &after, &error);
	if (status == VD_OK)
		print_all(before, after, query->output_format == VDI_AS_JSON);
	json_decref(before);
	json_decref(after);
	if (status != VD_OK)
		return vdi_command_failed(command, "%s",
					  *error.message ? error.message : vd_status_sentence(status));
	return fflush(stdout) == 0 && !ferror(stdout) ? VDI_EXIT_OK : VDI_EXIT_FAILED;
}
