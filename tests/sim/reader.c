/* A call remembers its request and the time; its answer is compared with the log's state at the answer's
 * revision. Some lists are kept and walked later, after further changes. */
#include "reader.h"

#include <stdio.h>
#include <stdlib.h>

#include "cacher.h"

#define KEPT_MAX 8
#define OUTSTANDING_MAX 24

struct read {
	struct world	      *world;
	struct sim_filter      filter;
	int		       cacher;
	vd_rev		       revision;
	enum vd_revision_match match;
	int64_t		       limit;
	vd_rev		       token_revision;
	char		       start[64];    /* the page begins after this key; empty: at the beginning */
	vd_rev		       acknowledged; /* at the time of the request */
	vd_rev		       cache_revision;
	vd_rev		       known;
	bool		       was_ready;
	uint64_t	       generation;
	uint64_t	       relists;
	bool		       is_get;
	int		       key;
	void (*relisted)(void *arg, vd_rev revision, vd_status status);
	void	       *relisted_arg;
	struct vd_list *list; /* kept */
};

struct readers {
	unsigned     outstanding;
	struct read *kept[KEPT_MAX];
};

struct readers *readers_new(struct world *world)
{
	return calloc(1, sizeof(struct readers));
}

void readers_free(struct readers *readers)
{
	free(readers);
}

unsigned readers_outstanding(const struct world *world)
{
	return world->readers->outstanding;
}

#define fail(read, property, format, ...)                                                                    \
	sim_fail((read)->world, property,                                                                    \
		 "list ('%s' '%s' ns '%s' name '%s' rv %lld match %d limit %lld token %lld behind "          \
		 "'%s'): " format,                                                                           \
		 (read)->filter.label_text, (read)->filter.field_text, (read)->filter.namespace_name,        \
		 (read)->filter.name, (long long) (read)->revision, (int) (read)->match,                     \
		 (long long) (read)->limit, (long long) (read)->token_revision, (read)->start,               \
		 ##__VA_ARGS__)

/* Legacy: a limit and a revision without a match mean exactly that revision. */
static bool is_exact(const struct read *read)
{
	bool is_single =
		read->filter.name[0] || (read->filter.field == FIELD_NAME &&
					 (read->filter.cacher == 1 || read->filter.namespace_name[0]));

	return read->token_revision > 0 || read->match == VD_MATCH_EXACT ||
	       (read->match == VD_MATCH_UNSET && read->limit > 0 && read->revision > 0 && !is_single);
}

static vd_rev exact_revision(const struct read *read)
{
	return read->token_revision > 0 ? read->token_revision : read->revision;
}

/* ---- Errors ---- */

static void check_error(struct read *read, vd_status status)
{
	struct world *world = read->world;
	bool	      is_calm =
		world->is_calm && vd_mono_since(world_now(world), world->calm_since).ns > VD_SECONDS(30).ns;
	vd_rev wanted = is_exact(read) ? exact_revision(read) : read->revision;

	world_note_compaction(world);
	switch (status) {
	case VD_EXPIRED:
		/* Other lists are read from the store in pages of one revision, which may be compacted before
		 * the last page. */
		if ((is_exact(read) ? exact_revision(read) : read->known) >= world->compacted_max)
			fail(read, "errors are true", "expired, but only %lld is compacted",
			     (long long) world->compacted_max);
		world->marks.list_expired++;
		break;
	case VD_TOO_LARGE_REVISION:
		if (wanted <= read->cache_revision && !world->restarts &&
		    read->relists == world->cachers[read->cacher].relists)
			fail(read, "errors are true", "too large, but the cache had %lld",
			     (long long) read->cache_revision);
		if (is_calm && wanted <= read->known)
			fail(read, "errors are true", "too large in calm waters");
		world->marks.list_too_large++;
		break;
	case VD_NOT_READY:
		if (read->was_ready && vd_cacher_ready(world->cachers[read->cacher].cacher, NULL) == VD_OK &&
		    world->cachers[read->cacher].cacher->ready.generation == read->generation)
			fail(read, "errors are true", "not ready, but it was");
		world->marks.list_not_ready++;
		break;
	case VD_UNAVAILABLE:
	case VD_CLOSED:
		if (is_calm)
			fail(read, "errors are true", "%s in calm waters", vd_status_name(status));
		world->marks.list_unavailable++;
		break;
	default: fail(read, "errors are true", "%s", vd_status_name(status));
	}
}

/* ---- Results ---- */

static void check_revision(struct read *read, vd_rev revision)
{
	struct world *world = read->world;

	oracle_reach(&world->oracle, revision, "a list");
	if (revision <= 0)
		fail(read, "a list at revision R", "no revision");
	if (is_exact(read) && revision != exact_revision(read))
		fail(read, "a list at revision R", "the answer is of %lld", (long long) revision);
	if (!is_exact(read) && read->revision > 0 && revision < read->revision)
		fail(read, "a list at revision R", "the answer is of %lld, older than asked",
		     (long long) revision);
	if (!is_exact(read) && read->revision == VD_REVISION_UNSET && revision < read->acknowledged)
		fail(read, "consistent reads", "the answer is of %lld, but %lld was acknowledged before",
		     (long long) revision, (long long) read->acknowledged);
}

/* Checks the whole list; continues with its token or ends. */
static void check_list(struct read *read, struct vd_list *list)
{
	struct world		   *world = read->world;
	struct oracle		   *oracle = &world->oracle;
	const struct oracle_record *records[ORACLE_KEYS_MAX];
	vd_rev			    revision = vd_list_revision(list);
	size_t			    count = filter_state(oracle, &read->filter, revision, records);
	size_t			    at = 0, taken = 0;
	struct vd_object	   *object;
	bool ignores_limit = read->revision == VD_REVISION_ANY && !read->token_revision;

	while (at < count && read->start[0] && strcmp(oracle->keys[records[at]->key].text, read->start) <= 0)
		at++;
	for (; (object = vd_list_next(list)); at++, taken++) {
		if (at >= count || !oracle_same(oracle, records[at], vd_object_kv(object)))
			fail(read, "a list at revision R",
			     "at %lld it has %.*s of %lld, the store has %s of %lld", (long long) revision,
			     (int) vd_object_key(object).size, (const char *) vd_object_key(object).data,
			     (long long) vd_object_revision(object),
			     at < count ? oracle->keys[records[at]->key].text : "nothing",
			     at < count ? (long long) records[at]->revision : 0);
	}
	if (read->limit && !ignores_limit && taken > (size_t) read->limit)
		fail(read, "nothing exceeds its maximum", "%zu objects", taken);
	if (at < count &&
	    (vd_list_continue(list).size == 0 || read->limit == 0 || (taken != (size_t) read->limit)))
		fail(read, "a list at revision R", "at %lld it ends before %s", (long long) revision,
		     oracle->keys[records[at]->key].text);
	if (vd_list_remaining(list) >= 0 && vd_list_remaining(list) != (int64_t) (count - at))
		fail(read, "a list at revision R", "at %lld %lld should remain, not %lld",
		     (long long) revision, (long long) (count - at), (long long) vd_list_remaining(list));
	if (taken)
		snprintf(read->start, sizeof read->start, "%s", oracle->keys[records[at - 1]->key].text);
}

static void start(struct read *read, struct vd_bytes token);

/* Takes over both arguments. */
static void walk(struct read *read, struct vd_list *list)
{
	struct world *world = read->world;
	vd_rev	      revision = vd_list_revision(list);
	char	      token[512];
	size_t	      token_size = vd_list_continue(list).size;

	check_list(read, list);
	if (token_size && token_size < sizeof token && !world->is_closing &&
	    world->cachers[read->cacher].cacher && chance(world, 800)) {
		memcpy(token, vd_list_continue(list).data, token_size);
		vd_list_free(list);
		read->token_revision = revision;
		read->revision = VD_REVISION_UNSET;
		read->match = VD_MATCH_UNSET;
		world->marks.list_continued++;
		world->marks.list_continued_over_write += world->oracle.revision > revision;
		start(read, (struct vd_bytes) { token, token_size });
		return;
	}
	vd_list_free(list);
	if (read->relisted)
		read->relisted(read->relisted_arg, revision, VD_OK);
	free(read);
}

static void listed(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	struct read    *read = arg;
	struct world   *world = read->world;
	struct readers *readers = world->readers;

	SIM_ATOMIC(world);
	readers->outstanding--;
	sim_trace(world, "list: %s at %lld", vd_status_name(status),
		  list ? (long long) vd_list_revision(list) : 0);
	if (status != VD_OK) {
		if (list)
			fail(read, "one answer", "a list and an error");
		check_error(read, status);
		if (read->relisted)
			read->relisted(read->relisted_arg, 0, status);
		free(read);
		return;
	}
	check_revision(read, vd_list_revision(list));
	world->marks.list_from_cache += read->was_ready;
	world->marks.list_exact += is_exact(read) && exact_revision(read) < read->cache_revision;
	if (read->relisted == NULL && !world->is_calm && chance(world, 300))
		for (unsigned i = 0; i < KEPT_MAX; i++)
			if (readers->kept[i] == NULL) {
				readers->kept[i] = read;
				read->list = list;
				return;
			}
	walk(read, list);
}

void readers_walk(struct world *world, bool all)
{
	for (unsigned i = 0; i < KEPT_MAX; i++) {
		struct read *read = world->readers->kept[i];

		if (read == NULL || !(all || chance(world, 50)))
			continue;
		world->readers->kept[i] = NULL;
		world->marks.list_walked_late += vd_list_revision(read->list) < world->oracle.revision;
		walk(read, read->list);
	}
}

/* ---- Requests ---- */

static void start(struct read *read, struct vd_bytes token)
{
	struct world	      *world = read->world;
	struct vd_cacher      *cacher = world->cachers[read->cacher].cacher;
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_error	       error = { 0 };
	vd_status	       status;

	options.namespace_name = vd_bytes_of(read->filter.namespace_name);
	options.name = vd_bytes_of(read->filter.name);
	options.label_selector = vd_bytes_of(read->filter.label_text);
	options.field_selector = vd_bytes_of(read->filter.field_text);
	options.revision = read->revision;
	options.match = read->match;
	options.limit = read->limit;
	options.continue_token = token;
	oracle_drain(&world->oracle);
	read->acknowledged = world->acknowledged;
	read->known = world->oracle.revision;
	read->cache_revision = vd_cacher_revision(cacher);
	read->was_ready = vd_cacher_ready(cacher, NULL) == VD_OK;
	read->generation = cacher->ready.generation;
	read->relists = world->cachers[read->cacher].relists;
	world->readers->outstanding++;
	SIM_PREEMPTIBLE(world, status = vd_cacher_list(cacher, &options, listed, read, &error));
	if (status == VD_OK)
		return;
	world->readers->outstanding--;
	check_error(read, status);
	if (read->relisted)
		read->relisted(read->relisted_arg, 0, status);
	free(read);
}

static vd_rev some_revision(struct world *world)
{
	vd_rev back = (vd_rev) roll(world, chance(world, 500) ? 20 : 400);

	if (chance(world, 30))
		return world->oracle.revision + 1 + (vd_rev) roll(world, 3);
	return VDI_MAX(world->oracle.revision - back, 1);
}

static void choose_row(struct read *read)
{
	struct world *world = read->world;

	read->revision = VD_REVISION_UNSET;
	switch (roll(world, 5)) {
	case 0: break;
	case 1:
		read->revision = VD_REVISION_ANY;
		if (chance(world, 300))
			read->match = VD_MATCH_NOT_OLDER_THAN;
		break;
	case 2: /* not older than, or by the legacy rule exactly */
		read->revision = some_revision(world);
		break;
	case 3:
		read->revision = some_revision(world);
		read->match = VD_MATCH_NOT_OLDER_THAN;
		break;
	default: read->revision = some_revision(world); read->match = VD_MATCH_EXACT;
	}
	if (chance(world, 500))
		read->limit = 1 + (int64_t) roll(world, 12);
}

/* ---- Gets ---- */

static void got(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		const struct vd_error *error)
{
	struct read   *read = arg;
	struct world  *world = read->world;
	struct oracle *oracle = &world->oracle;

	SIM_ATOMIC(world);
	world->readers->outstanding--;
	if (status != VD_OK && status != VD_NOT_FOUND) {
		check_error(read, status);
		free(read);
		return;
	}
	if (object)
		oracle_reach(oracle, vd_object_revision(object), "a get");
	oracle_reach(oracle, revision, "a get");
	if (revision > 0 && status == VD_OK) {
		const struct oracle_record *record = oracle_at(oracle, read->key, revision);

		if (record == NULL || !oracle_same(oracle, record, vd_object_kv(object)))
			fail(read, "a list at revision R", "a get at %lld has %lld instead of %lld",
			     (long long) revision, (long long) vd_object_revision(object),
			     record ? (long long) record->revision : 0);
		if (read->revision == VD_REVISION_UNSET ? revision < read->acknowledged :
							  revision < read->revision)
			fail(read, "consistent reads", "a get is of %lld, acknowledged were %lld",
			     (long long) revision, (long long) read->acknowledged);
	}
	if (status == VD_NOT_FOUND) {
		vd_rev from =
			read->revision == VD_REVISION_UNSET ? read->acknowledged : VDI_MAX(read->revision, 1);

		world->marks.get_not_found++;
		if (read->revision == VD_REVISION_ANY)
			from = 1;
		oracle_drain(oracle);
		if (revision > 0 ? oracle_at(oracle, read->key, revision) != NULL :
				   !oracle_existed(oracle, read->key, from, oracle->revision, false))
			fail(read, "a list at revision R", "a get at %lld does not find what is there",
			     (long long) revision);
	}
	free(read);
}

static void start_get(struct read *read)
{
	struct world		*world = read->world;
	struct vd_cacher	*cacher = world->cachers[read->cacher].cacher;
	const struct oracle_key *key;
	char			 text[64];
	vd_status		 status;

	if (read->cacher == 0)
		snprintf(text, sizeof text, SIM_PODS "ns%u/p%02u",
			 (unsigned) roll(world, world->swarm.namespaces),
			 (unsigned) roll(world, world->swarm.names));
	else
		snprintf(text, sizeof text, SIM_WIDGETS "w%02u", (unsigned) roll(world, world->swarm.names));
	read->is_get = true;
	read->key = oracle_key(&world->oracle, vd_bytes_of(text));
	key = &world->oracle.keys[read->key];
	read->revision = chance(world, 400) ? VD_REVISION_UNSET :
			 chance(world, 500) ? VD_REVISION_ANY :
					      some_revision(world);
	oracle_drain(&world->oracle);
	read->acknowledged = world->acknowledged;
	read->known = world->oracle.revision;
	read->cache_revision = vd_cacher_revision(cacher);
	read->was_ready = vd_cacher_ready(cacher, NULL) == VD_OK;
	read->generation = cacher->ready.generation;
	read->relists = world->cachers[read->cacher].relists;
	world->readers->outstanding++;
	SIM_PREEMPTIBLE(world, status = vd_cacher_get(cacher, vd_bytes_of(key->namespace_name),
						      vd_bytes_of(key->name), read->revision, got, read));
	if (status != VD_OK) {
		world->readers->outstanding--;
		check_error(read, status);
		free(read);
	}
}

/* ---- Public functions ---- */

void readers_start_one(struct world *world)
{
	struct read *read;

	if (world->is_closing || world->readers->outstanding >= OUTSTANDING_MAX)
		return;
	read = calloc(1, sizeof *read);
	read->world = world;
	filter_random(world, &read->filter);
	read->cacher = read->filter.cacher;
	if (world->cachers[read->cacher].cacher == NULL) {
		free(read);
	} else if (chance(world, 300)) {
		start_get(read);
	} else {
		choose_row(read);
		start(read, VD_BYTES_NONE);
	}
}

void readers_relist(struct world *world, const struct sim_filter		     *filter,
		    void (*done)(void *arg, vd_rev revision, vd_status status), void *arg)
{
	struct read *read = calloc(1, sizeof *read);

	read->world = world;
	read->filter = *filter;
	read->cacher = filter->cacher;
	read->revision = chance(world, 500) ? VD_REVISION_UNSET : VD_REVISION_ANY;
	read->relisted = done;
	read->relisted_arg = arg;
	start(read, VD_BYTES_NONE);
}
