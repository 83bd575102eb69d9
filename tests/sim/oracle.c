/* One array of records in log order; each key has the indices of its own. A state at a revision is a binary
 * search per key. */
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>

#include "world.h"
#include "writer.h"

void oracle_init(struct oracle *oracle, struct world *world)
{
	memset(oracle, 0, sizeof *oracle);
	oracle->world = world;
	oracle->revision = 1;
	oracle->keys = calloc(ORACLE_KEYS_MAX, sizeof *oracle->keys);
}

void oracle_fini(struct oracle *oracle)
{
	oracle_close(oracle);
	for (int i = 0; i < oracle->record_count; i++)
		free(oracle->records[i].value);
	for (int i = 0; i < oracle->key_count; i++)
		free(oracle->keys[i].records);
	free(oracle->keys);
	free(oracle->records);
}

static void note_news(void *arg)
{
	((struct oracle *) arg)->has_news = true;
}

void oracle_open(struct oracle *oracle, struct vd_store *store)
{
	struct vd_store_watch_request request = { .key = { "\0", 1 },
						  .range_end = { "\0", 1 },
						  .start_revision = oracle->revision + 1,
						  .previous = true,
						  .ready = note_news,
						  .ready_arg = oracle };
	struct vd_error		      error;

	if (vd_store_watch_open(store, &request, &oracle->watch, &error) != VD_OK)
		sim_fail(oracle->world, "harness", "the oracle cannot watch: %s", error.message);
	oracle->has_news = true;
}

void oracle_close(struct oracle *oracle)
{
	vd_store_watch_close(oracle->watch);
	oracle->watch = NULL;
}

/* ---- Keys and values ---- */

static void split_key(struct oracle_key *key)
{
	const char *rest;

	key->resource = ORACLE_OTHER;
	if (strncmp(key->text, SIM_PODS, strlen(SIM_PODS)) == 0) {
		rest = key->text + strlen(SIM_PODS);
		if (sscanf(rest, "%15[^/]/%23s", key->namespace_name, key->name) == 2)
			key->resource = ORACLE_PODS;
	} else if (strncmp(key->text, SIM_WIDGETS, strlen(SIM_WIDGETS)) == 0) {
		snprintf(key->name, sizeof key->name, "%s", key->text + strlen(SIM_WIDGETS));
		key->resource = ORACLE_WIDGETS;
	}
}

int oracle_key(struct oracle *oracle, struct vd_bytes key)
{
	struct oracle_key *made;

	for (int i = 0; i < oracle->key_count; i++)
		if (vd_bytes_equal(vd_bytes_of(oracle->keys[i].text), key))
			return i;
	if (oracle->key_count == ORACLE_KEYS_MAX || key.size >= sizeof made->text)
		sim_fail(oracle->world, "harness", "too many keys");
	made = &oracle->keys[oracle->key_count];
	memcpy(made->text, key.data, key.size);
	split_key(made);
	return oracle->key_count++;
}

static void find_word(const char *value, const char *name, char *ret_word, size_t size)
{
	char	    pattern[32];
	const char *at;
	size_t	    n = 0;

	ret_word[0] = 0;
	snprintf(pattern, sizeof pattern, "\"%s\":\"", name);
	at = strstr(value, pattern);
	if (at == NULL)
		return;
	for (at += strlen(pattern); *at && *at != '"' && n + 1 < size; at++)
		ret_word[n++] = *at;
	ret_word[n] = 0;
}

static struct oracle_facts facts_of(const char *value)
{
	struct oracle_facts facts;
	char		    seq[24];

	find_word(value, "app", facts.app, sizeof facts.app);
	find_word(value, "tier", facts.tier, sizeof facts.tier);
	find_word(value, "nodeName", facts.node, sizeof facts.node);
	find_word(value, "phase", facts.phase, sizeof facts.phase);
	find_word(value, "seq", seq, sizeof seq);
	facts.seq = strtoull(seq, NULL, 10);
	return facts;
}

/* ---- The log ---- */

static void check_previous(struct oracle *oracle, const struct vd_store_event *event,
			   const struct oracle_record *record)
{
	const struct oracle_record *previous =
		record->previous < 0 ? NULL : &oracle->records[record->previous];
	const struct vd_kv *kv = event->kv;

	if (previous == NULL && event->previous)
		sim_fail(oracle->world, "right previous value",
			 "revision %lld has a previous value, but there was none",
			 (long long) record->revision);
	if (previous && event->previous && !oracle_same(oracle, previous, event->previous))
		sim_fail(oracle->world, "right previous value",
			 "revision %lld: the store's previous record is not the one before",
			 (long long) record->revision);
	/* A compaction may have removed it. */
	if (previous && event->previous == NULL && previous->revision > oracle->world->compacted_max)
		sim_fail(oracle->world, "right previous value", "revision %lld lacks its previous record",
			 (long long) record->revision);
	if (event->is_delete) {
		if (previous == NULL)
			sim_fail(oracle->world, "right previous value",
				 "revision %lld deletes what is not there", (long long) record->revision);
		return;
	}
	if (kv->create_rev != (previous ? previous->create_rev : record->revision) ||
	    kv->version != (previous ? previous->version + 1 : 1))
		sim_fail(oracle->world, "right object", "revision %lld: create revision %lld, version %lld",
			 (long long) record->revision, (long long) kv->create_rev, (long long) kv->version);
}

static void append(struct oracle *oracle, const struct vd_store_event *event)
{
	const struct vd_kv   *kv = event->kv;
	int		      number = oracle_key(oracle, vd_kv_key(kv));
	struct oracle_key    *key = &oracle->keys[number];
	struct oracle_record *record;
	int		      newest = key->record_count ? key->records[key->record_count - 1] : -1;

	if ((size_t) oracle->record_count == oracle->record_capacity) {
		oracle->record_capacity = oracle->record_capacity ? oracle->record_capacity * 2 : 1024;
		oracle->records = realloc(oracle->records, oracle->record_capacity * sizeof *oracle->records);
	}
	if (key->record_count == key->record_capacity) {
		key->record_capacity = key->record_capacity ? key->record_capacity * 2 : 64;
		key->records = realloc(key->records, key->record_capacity * sizeof *key->records);
	}
	record = &oracle->records[oracle->record_count];
	*record = (struct oracle_record) {
		.revision = kv->mod_rev, .key = number, .previous = newest, .is_delete = event->is_delete
	};
	if (newest >= 0 && oracle->records[newest].is_delete)
		record->previous = -1;
	if (newest >= 0 && oracle->records[newest].revision == kv->mod_rev)
		sim_fail(oracle->world, "unique", "revision %lld changes %s twice", (long long) kv->mod_rev,
			 key->text);
	record->create_rev = kv->create_rev;
	record->version = kv->version;
	record->lease = kv->lease;
	record->value_size = kv->value_size;
	record->value = calloc(1, kv->value_size + 1);
	memcpy(record->value, vd_kv_value(kv).data, kv->value_size);
	check_previous(oracle, event, record);
	record->facts = facts_of(record->value);
	key->records[key->record_count++] = oracle->record_count++;
	writers_saw(oracle->world, record);
}

static void drain(struct oracle *oracle)
{
	struct vd_store_batch batch;
	struct vd_error	      error = { 0 };
	vd_status	      status;

	if (oracle->watch == NULL)
		return;
	oracle->has_news = false;
	while ((status = vd_store_watch_next(oracle->watch, 64, &batch, &error)) == VD_OK) {
		for (size_t i = 0; i < batch.event_count; i++) {
			vd_rev revision = batch.events[i].kv->mod_rev;

			/* Revisions are consecutive, and all events of one are in one batch. */
			if (i > 0 && revision == batch.events[i - 1].kv->mod_rev)
				continue;
			if (revision <= oracle->revision)
				sim_fail(oracle->world, revision == oracle->revision ? "atomic" : "ordered",
					 "the store delivers %lld after %lld", (long long) revision,
					 (long long) oracle->revision);
			if (revision != oracle->revision + 1)
				sim_fail(oracle->world, "reliable", "the store delivers %lld after %lld",
					 (long long) revision, (long long) oracle->revision);
			oracle->revision = revision;
			for (size_t j = i; j < batch.event_count && batch.events[j].kv->mod_rev == revision;
			     j++)
				append(oracle, &batch.events[j]);
		}
		if (batch.event_count == 0 && batch.revision > oracle->revision)
			sim_fail(oracle->world, "bookmarkable", "the store's progress %lld is ahead of %lld",
				 (long long) batch.revision, (long long) oracle->revision);
	}
	if (status != VD_AGAIN && status != VD_CLOSED && !oracle->world->is_down)
		sim_fail(oracle->world, "reliable", "the oracle's own watch ended: %s %s",
			 vd_status_name(status), error.message);
}

/* Publishing and notifying are two steps, and the writer may be suspended between them: then an existing
 * watch has no events yet. A new watch finds everything that is published. */
static void catch_up(struct oracle *oracle)
{
	struct vd_store_status status;

	if (oracle->watch == NULL || vd_store_status_get(oracle->world->store, &status) != VD_OK ||
	    status.current <= oracle->revision)
		return;
	oracle_close(oracle);
	oracle_open(oracle, oracle->world->store);
	drain(oracle);
}

void oracle_drain(struct oracle *oracle)
{
	drain(oracle);
	if (oracle->world->preemptions)
		catch_up(oracle);
}

void oracle_reach(struct oracle *oracle, vd_rev revision, const char *who)
{
	if (revision > oracle->revision)
		oracle_drain(oracle);
	if (revision > oracle->revision && oracle->watch)
		sim_fail(oracle->world, "nothing visible before it is durable",
			 "%s shows revision %lld, the store has shown %lld", who, (long long) revision,
			 (long long) oracle->revision);
}

/* ---- Queries ---- */

/* Returns the number of the key's records up to revision. */
static size_t count_until(const struct oracle *oracle, const struct oracle_key *key, vd_rev revision)
{
	size_t low = 0, high = key->record_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (oracle->records[key->records[middle]].revision <= revision)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct oracle_record *oracle_at(const struct oracle *oracle, int number, vd_rev revision)
{
	const struct oracle_key	   *key = &oracle->keys[number];
	size_t			    count = count_until(oracle, key, revision);
	const struct oracle_record *record = count ? &oracle->records[key->records[count - 1]] : NULL;

	return record && !record->is_delete ? record : NULL;
}

const struct oracle_record *oracle_exactly(const struct oracle *oracle, int number, vd_rev revision)
{
	const struct oracle_key	   *key = &oracle->keys[number];
	size_t			    count = count_until(oracle, key, revision);
	const struct oracle_record *record = count ? &oracle->records[key->records[count - 1]] : NULL;

	return record && record->revision == revision ? record : NULL;
}

int oracle_after(const struct oracle *oracle, vd_rev revision)
{
	int low = 0, high = oracle->record_count;

	while (low < high) {
		int middle = (low + high) / 2;

		if (oracle->records[middle].revision <= revision)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool oracle_existed(const struct oracle *oracle, int number, vd_rev from, vd_rev to, bool wanted)
{
	const struct oracle_key *key = &oracle->keys[number];

	if ((oracle_at(oracle, number, from) != NULL) == wanted)
		return true;
	for (size_t i = count_until(oracle, key, from);
	     i < key->record_count && oracle->records[key->records[i]].revision <= to; i++)
		if (oracle->records[key->records[i]].is_delete != wanted)
			return true;
	return false;
}

bool oracle_same(const struct oracle *oracle, const struct oracle_record *record, const struct vd_kv *kv)
{
	return kv->mod_rev == record->revision &&
	       vd_bytes_equal(vd_kv_key(kv), vd_bytes_of(oracle->keys[record->key].text)) &&
	       vd_bytes_equal(vd_kv_value(kv), (struct vd_bytes) { record->value, record->value_size }) &&
	       kv->create_rev == record->create_rev && kv->version == record->version &&
	       kv->lease == record->lease;
}

/* ---- The whole store ---- */

struct comparison {
	struct oracle *oracle;
	vd_rev	       revision;
	vd_status      status;
	bool	       is_done;
};

static void compare(void *arg, vd_status status, const struct vd_range_result *result,
		    const struct vd_error *error)
{
	struct comparison *comparison = arg;
	struct oracle	  *oracle = comparison->oracle;
	size_t		   expected = 0;

	comparison->is_done = true;
	comparison->status = status;
	if (status != VD_OK)
		return;
	for (int i = 0; i < oracle->key_count; i++)
		expected += oracle_at(oracle, i, comparison->revision) != NULL;
	for (size_t i = 0; i < result->kv_count; i++) {
		const struct oracle_record *record = oracle_at(
			oracle, oracle_key(oracle, vd_kv_key(result->kvs[i])), comparison->revision);

		if (record == NULL || !oracle_same(oracle, record, result->kvs[i]))
			sim_fail(oracle->world, "nothing visible before it is durable",
				 "at revision %lld the store has another %.*s than it showed",
				 (long long) comparison->revision, (int) result->kvs[i]->key_size,
				 result->kvs[i]->data);
	}
	if (result->kv_count != expected)
		sim_fail(oracle->world, "nothing visible before it is durable",
			 "at revision %lld the store has %zu keys, it showed %zu",
			 (long long) comparison->revision, result->kv_count, expected);
}

void oracle_compare_store(struct oracle *oracle, struct vd_store *store, vd_rev revision)
{
	struct vd_range_request request = { .key = { "\0", 1 },
					    .range_end = { "\0", 1 },
					    .revision = revision };
	struct comparison	comparison = { .oracle = oracle, .revision = revision };

	if (vd_store_range(store, &request, compare, &comparison) != VD_OK || !comparison.is_done)
		sim_fail(oracle->world, "harness", "the store does not answer at once");
	if (comparison.status == VD_EXPIRED)
		world_note_compaction(oracle->world); /* the store compacts by itself too */
	if (comparison.status != VD_OK &&
	    !(comparison.status == VD_EXPIRED && revision < oracle->world->compacted_max))
		sim_fail(oracle->world, "a list at revision R", "the store cannot be read at %lld: %s",
			 (long long) revision, vd_status_name(comparison.status));
}
