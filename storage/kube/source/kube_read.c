/* Ranges, which are sent to the server.
 *
 *   one key of the source    GET of the object
 *   another single key       the current revision (callers ask so with a key outside the records)
 *   an interval              pages of the collection, or of one namespace, filtered by the interval
 *
 *   count of an interval     not supported: it would be a list of everything
 *
 * A list continues where an earlier answer ended, because its continue token is remembered by the last key;
 * without a token the pages are read from the start of the revision. */
#include <inttypes.h>

#include "key_range.h"
#include "kube_source.h"

/* ---- The current revision ---- */

static void answer_asks(struct vdi_kube_source *source, vd_status status, vd_rev revision,
			const struct vd_error *error)
{
	struct vdi_kube_ask *ask;

	/* What is asked meanwhile waits in asks_next. */
	while ((ask = TAILQ_FIRST(&source->asks_sent)) != NULL) {
		TAILQ_REMOVE(&source->asks_sent, ask, node);
		ask->is_asked = false;
		ask->answer(ask, status, revision, error);
	}
}

static void on_revision(struct vdi_kube_fetch *fetch, vd_status status, const struct vd_error *error)
{
	struct vdi_kube_source *source = fetch->source;
	struct vdi_kube_page	page = { 0 };
	struct vd_error		wrong = { 0 };

	if (status == VD_OK) {
		status = vdi_kube_page_read(&source->pages, vdi_buffer_bytes(&fetch->body), &page, &wrong);
		if (status == VD_OK && page.revision == 0)
			status = vd_error_set(&wrong, VD_BAD_REQUEST, "the list has no resourceVersion");
		error = &wrong;
	}
	vdi_buffer_fini(&fetch->body);
	if (status == VD_OK)
		vdi_kube_source_raise(source, page.revision);
	answer_asks(source, status, page.revision, error);
	vdi_kube_member_wake(&source->member);
}

void vdi_kube_asks_run(struct vdi_kube_source *source)
{
	struct vdi_kube_fetch *fetch = &source->ask;

	if (TAILQ_EMPTY(&source->asks_next) || fetch->is_begun || !TAILQ_EMPTY(&source->asks_sent))
		return;
	TAILQ_CONCAT(&source->asks_sent, &source->asks_next, node);
	fetch->source = source;
	fetch->method = "GET";
	fetch->repeat = true;
	fetch->done = on_revision;
	if (vdi_kube_fetch_begin(fetch, vdi_kube_source_url(source, source->path, "limit=1"), NULL, 0) !=
	    VD_OK)
		answer_asks(source, VD_NOMEM, 0, NULL);
}

void vdi_kube_ask(struct vdi_kube_source *source, struct vdi_kube_ask *ask)
{
	ask->is_asked = true;
	TAILQ_INSERT_TAIL(&source->asks_next, ask, node);
	vdi_kube_member_wake(&source->member); /* one request for all that ask in this run */
}

void vdi_kube_ask_end(struct vdi_kube_source *source, struct vdi_kube_ask *ask)
{
	struct vdi_kube_ask *sent;

	if (!ask->is_asked)
		return;
	ask->is_asked = false;
	TAILQ_FOREACH(sent, &source->asks_sent, node)
	{
		if (sent == ask)
			break;
	}
	if (sent)
		TAILQ_REMOVE(&source->asks_sent, ask, node);
	else
		TAILQ_REMOVE(&source->asks_next, ask, node);
}

/* ---- Calls ---- */

struct read {
	struct vdi_kube_call  call;
	vd_range_fn	      done;
	void		     *arg;
	char		     *key, *range_end; /* owned */
	size_t		      key_size, end_size;
	int64_t		      limit;
	vd_rev		      revision;
	uint64_t	      epoch;	/* of the source, at the start */
	vd_rev		      begun_at; /* of one object: known before the request was sent */
	bool		      count_only;
	struct vd_kv	    **kvs;
	size_t		      count, capacity;
	uint64_t	      bytes;   /* of kvs */
	bool		      is_full; /* limit reached: further objects are only noticed */
	bool		      more;
	char		     *path;
	struct vdi_kube_ask   ask;
	struct vdi_kube_fetch fetch;
	struct vdi_kube_pages pages;
};

static struct vd_bytes key_of(const struct read *read)
{
	return (struct vd_bytes) { read->key, read->key_size };
}

static void free_read(struct vdi_kube_call *call)
{
	struct read *read = VDI_CONTAINER_OF(call, struct read, call);

	if (call->source) {
		vdi_kube_ask_end(call->source, &read->ask);
		vdi_kube_fetch_end(&read->fetch);
		vdi_kube_pages_end(&read->pages);
	}
	for (size_t i = 0; i < read->count; i++)
		vd_kv_unref(read->kvs[i]);
	vdi_free(read->kvs);
	vdi_free(read->path);
	vdi_free(read->key);
	vdi_free(read->range_end);
	vdi_free(read);
}

static void fail_read(struct vdi_kube_call *call, vd_status status, const struct vd_error *error)
{
	struct read    *read = VDI_CONTAINER_OF(call, struct read, call);
	struct vd_error copy = vdi_kube_source_error(status, error);

	read->done(read->arg, status, NULL, &copy);
}

/* Statuses of HTTP become those of a store. */
static vd_status status_of(const struct read *read, int code, vd_status status)
{
	if (code == 404)
		return VD_UNAVAILABLE; /* the collection, so the resource */
	if (code == 504 && read->revision)
		return VD_TOO_LARGE_REVISION;
	return status == VD_FULL || status == VD_BAD_REQUEST ? VD_UNAVAILABLE : status;
}

static void fail(struct read *read, int code, vd_status status, const struct vd_error *error)
{
	struct vdi_kube_call *call = &read->call;

	TAILQ_REMOVE(&call->source->started, call, node);
	fail_read(call, status_of(read, code, status), error);
	free_read(call);
}

static void answer(struct read *read, vd_rev revision)
{
	struct vd_error error = { 0 };

	struct vdi_kube_call  *call = &read->call;
	struct vd_range_result result = { .store_revision = revision,
					  .kvs = read->kvs,
					  .kv_count = read->count_only ? 0 : read->count,
					  .count = (int64_t) read->count + read->more,
					  .more = read->more };

	if (read->epoch != call->source->epoch) {
		(void) vd_error_set(&error, VD_UNAVAILABLE, "the server was restored during the read");
		fail(read, 0, VD_UNAVAILABLE, &error);
		return;
	}
	vdi_lock_acquire(&call->source->lock);
	vdi_kube_ring_give(&call->source->ring, revision);
	vdi_lock_release(&call->source->lock);
	TAILQ_REMOVE(&call->source->started, call, node);
	read->done(read->arg, VD_OK, &result, NULL);
	free_read(call);
}

static void on_ask(struct vdi_kube_ask *ask, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct read		   *read = VDI_CONTAINER_OF(ask, struct read, ask);
	const struct vdi_kube_pump *pump = &read->call.source->pump;

	/* A resource that was removed has an empty state, in which readers can begin. */
	if (status != VD_OK && pump->is_removed && read->call.source->ask.code == 404)
		answer(read, VDI_MAX(pump->covered, pump->mirror.applied));
	else if (status == VD_OK)
		answer(read, revision);
	else
		fail(read, read->call.source->ask.code, status, error);
}

/* Takes over kv. */
static vd_status add(struct read *read, struct vd_kv *kv, struct vd_error *reterr)
{
	uint64_t  bytes_max = vdi_kube_options(read->call.source->member.kube)->source_bytes_max;
	vd_status status = VD_OK;

	read->bytes += vdi_kube_mirror_size(kv);
	if (read->bytes > bytes_max)
		status = vd_error_set(reterr, VD_TOO_BIG,
				      "the objects of the range have more than %" PRIu64
				      " bytes (source_bytes_max): read it in parts, with a limit",
				      bytes_max);
	else if (!vdi_grow((void **) &read->kvs, &read->capacity, read->count + 1, sizeof *read->kvs))
		status = vd_error_set(reterr, VD_NOMEM, "out of memory for a list");
	if (status == VD_OK)
		read->kvs[read->count++] = kv;
	else
		vd_kv_unref(kv);
	return status;
}

/* ---- One object ---- */

vd_status vdi_kube_read_object(struct vdi_kube_source *source, struct vd_bytes key, struct vd_bytes json,
			       struct vd_kv **ret_kv, struct vd_error *reterr)
{
	struct vdi_kube_object object;
	struct vd_kv	      *known;

	VDI_TRY(vdi_kube_object_read(&source->objects, json, source->kind, source->api_version, &object,
				     reterr));
	VDI_TRY(vdi_kube_source_check_key(source, &object, key, reterr));
	VDI_TRY(vdi_kube_object_kv(&object, source->prefix, false, ret_kv, reterr));
	known = source->pump.is_filled ? vdi_kube_mirror_get(&source->pump.mirror, vd_kv_key(*ret_kv)) : NULL;
	if (known && known->mod_rev == (*ret_kv)->mod_rev) {
		vd_kv_unref(*ret_kv);
		*ret_kv = vd_kv_ref(known);
	} else {
		/* The mirror knows the beginning of a record that has changed since; not of one that was
		 * deleted and created again, which the pump has not seen yet. */
		(*ret_kv)->create_rev = (*ret_kv)->mod_rev;
		(*ret_kv)->version = 1;
	}
	return VD_OK;
}

static vd_rev known_of(struct vdi_kube_source *source)
{
	vd_rev known;

	vdi_lock_acquire(&source->lock);
	known = source->known;
	vdi_lock_release(&source->lock);
	return known;
}

static void on_object(struct vdi_kube_fetch *fetch, vd_status status, const struct vd_error *error)
{
	struct read	       *read = VDI_CONTAINER_OF(fetch, struct read, fetch);
	struct vdi_kube_source *source = fetch->source;
	struct vd_error		wrong = { 0 };
	struct vd_kv	       *kv;

	if (status == VD_OK) {
		error = &wrong;
		status = vdi_kube_read_object(source, key_of(read), vdi_buffer_bytes(&fetch->body), &kv,
					      &wrong);
		if (status == VD_OK) {
			vdi_kube_source_raise(source, kv->mod_rev);
			read->begun_at = VDI_MAX(read->begun_at, kv->mod_rev);
			status = add(read, kv, &wrong);
		}
	} else if (fetch->code == 404) {
		status = VD_OK;
	}
	if (status == VD_OK)
		answer(read, VDI_MAX(read->begun_at, (vd_rev) 1));
	else
		fail(read, fetch->code, status, error);
}

static void start_get(struct read *read, struct vd_bytes namespace_name, struct vd_bytes name)
{
	struct vdi_kube_source *source = read->call.source;

	read->begun_at = known_of(source);
	read->fetch.source = source;
	read->fetch.method = "GET";
	read->fetch.repeat = true;
	read->fetch.done = on_object;
	if (vdi_kube_fetch_begin(&read->fetch, vdi_kube_source_path(source, namespace_name, name), NULL, 0) !=
	    VD_OK)
		fail(read, 0, VD_NOMEM, NULL);
}

/* ---- Lists ---- */

static void forget_cursor(struct vdi_kube_cursor *cursor)
{
	vd_kv_unref(cursor->last);
	vdi_free(cursor->path);
	vdi_free(cursor->token);
	memset(cursor, 0, sizeof *cursor);
}

/* Remembers where the next range continues; gives away the token. */
static void remember(struct read *read)
{
	struct vdi_kube_source *source = read->call.source;
	struct vdi_kube_cursor *cursor = &source->cursors[source->cursor_next++ % VDI_KUBE_CURSORS];

	forget_cursor(cursor);
	cursor->path = vdi_strdup(read->pages.path);
	if (cursor->path == NULL)
		return; /* the next range reads from the start */
	cursor->last = vd_kv_ref(read->kvs[read->count - 1]);
	cursor->revision = read->pages.read_revision;
	cursor->token = read->pages.token;
	read->pages.token = NULL;
}

/* True: the list continues after an earlier answer. */
static bool resume(struct read *read)
{
	struct vdi_kube_source *source = read->call.source;

	for (size_t i = 0; i < VDI_KUBE_CURSORS; i++) {
		struct vdi_kube_cursor *cursor = &source->cursors[i];
		struct vd_bytes		last;

		if (cursor->last == NULL || cursor->revision != read->revision ||
		    strcmp(cursor->path, read->pages.path) != 0)
			continue;
		last = vd_kv_key(cursor->last);
		if (read->key_size != last.size + 1 || memcmp(read->key, last.data, last.size) != 0 ||
		    read->key[last.size] != 0)
			continue;
		read->pages.token = vdi_strdup(cursor->token);
		read->pages.read_revision = cursor->revision;
		return read->pages.token != NULL;
	}
	return false;
}

static vd_status on_item(struct vdi_kube_pages *pages, struct vd_kv *kv, struct vd_error *reterr)
{
	struct read	    *read = VDI_CONTAINER_OF(pages, struct read, pages);
	struct vdi_key_range range =
		vdi_key_range_from_etcd(key_of(read), (struct vd_bytes) { read->range_end, read->end_size });

	if (!vdi_key_range_contains(&range, vd_kv_key(kv))) {
		vd_kv_unref(kv);
		return VD_OK;
	}
	if (read->is_full) {
		read->more = true;
		vd_kv_unref(kv);
		return VD_OK;
	}
	kv->create_rev = kv->mod_rev;
	kv->version = 1;
	VDI_TRY(add(read, kv, reterr));
	read->is_full = read->limit > 0 && (int64_t) read->count >= read->limit;
	return VD_OK;
}

static void on_page(struct vdi_kube_pages *pages, vd_status status, const struct vd_error *error)
{
	struct read *read = VDI_CONTAINER_OF(pages, struct read, pages);

	if (status == VD_OK && pages->token && !read->is_full)
		status = vdi_kube_pages_next(pages);
	else if (status == VD_OK) {
		/* A full page that ends with the interval may be followed by other keys only; the next range
		 * is then empty. */
		bool is_exact = pages->token && !read->more && read->count;

		read->more |= pages->token != NULL;
		if (is_exact)
			remember(read);
		answer(read, pages->read_revision);
		return;
	}
	if (status != VD_OK)
		fail(read, pages->fetch.code, status, error);
}

/* The namespace that contains the whole interval, or empty. */
static struct vd_bytes namespace_of(const struct read *read)
{
	const struct vdi_kube_source *source = read->call.source;
	const char		     *text, *slash;
	size_t			      size;

	if (*source->namespace_name)
		return vd_bytes_of(source->namespace_name);
	if (source->is_cluster_scoped || read->key_size <= source->prefix_size ||
	    read->end_size <= source->prefix_size ||
	    memcmp(read->key, source->prefix, source->prefix_size) != 0)
		return VD_BYTES_NONE;
	text = read->key + source->prefix_size;
	slash = memchr(text, '/', read->key_size - source->prefix_size);
	if (slash == NULL || slash == text)
		return VD_BYTES_NONE;
	size = (size_t) (slash - read->key);
	/* "ns/" up to "ns0": '0' follows '/'. */
	if (read->end_size != size + 1 || memcmp(read->key, read->range_end, size) != 0 ||
	    read->range_end[size] != '0')
		return VD_BYTES_NONE;
	return (struct vd_bytes) { text, (size_t) (slash - text) };
}

static void start_list(struct read *read)
{
	struct vdi_kube_source *source = read->call.source;

	read->path = vdi_kube_source_path(source, namespace_of(read), VD_BYTES_NONE);
	read->pages.source = source;
	read->pages.path = read->path;
	read->pages.revision = read->revision;
	read->pages.item = on_item;
	read->pages.page = on_page;
	if (read->limit > 0 && read->limit < VDI_KUBE_PAGE_LEN)
		read->pages.limit = (unsigned) read->limit;
	if (read->path)
		(void) resume(read);
	if (read->path == NULL || vdi_kube_pages_next(&read->pages) != VD_OK)
		fail(read, 0, VD_NOMEM, NULL);
}

static void start_read(struct vdi_kube_call *call)
{
	struct read    *read = VDI_CONTAINER_OF(call, struct read, call);
	struct vd_bytes namespace_name, name;

	read->epoch = call->source->epoch;
	if (read->revision && vdi_kube_ring_is_lost(&call->source->ring, read->revision)) {
		fail(read, 410, VD_EXPIRED, NULL);
	} else if (read->end_size) {
		start_list(read);
	} else if (vdi_kube_source_split(call->source, key_of(read), &namespace_name, &name) &&
		   read->revision == 0) {
		start_get(read, namespace_name, name);
	} else if (vdi_kube_source_split(call->source, key_of(read), &namespace_name, &name)) {
		/* A key at a revision: only a list can name one. The interval [key, key + 0). */
		read->range_end = vdi_realloc(read->range_end, read->key_size + 1);
		if (read->range_end == NULL) {
			fail(read, 0, VD_NOMEM, NULL);
			return;
		}
		memcpy(read->range_end, read->key, read->key_size);
		read->range_end[read->key_size] = 0;
		read->end_size = read->key_size + 1;
		start_list(read);
	} else {
		read->ask.answer = on_ask;
		vdi_kube_ask(call->source, &read->ask);
	}
}

vd_status vdi_kube_source_range(struct vd_store *store, const struct vd_range_request *request,
				vd_range_fn done, void *arg)
{
	struct read *read;
	vd_status    status;

	if (request->count_only && request->range_end.size)
		return VD_UNSUPPORTED;
	read = VDI_NEW(struct read);
	if (read == NULL)
		return VD_NOMEM;
	read->call = (struct vdi_kube_call) { .start = start_read, .free = free_read, .fail = fail_read };
	read->done = done;
	read->arg = arg;
	read->limit = request->limit;
	read->revision = request->revision;
	read->count_only = request->count_only;
	read->key_size = request->key.size;
	read->end_size = request->range_end.size;
	read->key = vdi_strndup(request->key.data, request->key.size);
	read->range_end =
		vdi_strndup(request->range_end.size ? request->range_end.data : "", request->range_end.size);
	if (read->key == NULL || read->range_end == NULL) {
		free_read(&read->call);
		return VD_NOMEM;
	}
	read->call.source = vdi_kube_source_of(store);
	status = vdi_kube_source_call(read->call.source, &read->call);
	if (status != VD_OK) {
		read->call.source = NULL;
		free_read(&read->call);
	}
	return status;
}

void vdi_kube_reads_end(struct vdi_kube_source *source)
{
	for (size_t i = 0; i < VDI_KUBE_CURSORS; i++)
		forget_cursor(&source->cursors[i]);
	vdi_kube_fetch_end(&source->ask);
}
