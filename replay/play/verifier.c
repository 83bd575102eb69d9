/* The first stream that delivers a revision defines it: its changes are checked against the state of the keys
 * and applied to it, and their hash is put into a ring. Every other stream must deliver the same hash, and
 * exactly the revisions in the ring. A state is identified by a digest (the exclusive or over its live keys),
 * which the ring has for each revision, so a list at a recent revision is compared in constant time, whatever
 * happened since. */
#include "verifier.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/queue.h>

#include "hash.h"

#define HISTORY_MAX 65536
#define SEED 0x7665726966790a01u

struct key_state {
	vd_rev	 revision;
	vd_rev	 create_rev;
	int64_t	 version;
	uint64_t value_hash;
	uint64_t digest;
	uint32_t size;
	char	 key[];
};

struct moment {
	vd_rev	 revision;
	uint64_t hash;
	uint64_t digest;   /* of the state after it */
	uint64_t keys;	   /* number of live keys */
	uint64_t previous; /* hash of the previous records that were delivered; their number */
	uint32_t previous_count;
};

struct acknowledgement {
	vd_rev revision;
	char   key[96];
};

struct list {
	bool	 is_open, is_pending, is_first;
	vd_rev	 revision, minimum;
	uint64_t digest, keys;
};

struct vdi_verifier {
	struct vdi_verifier_options options;
	struct vdi_hash		    keys; /* of struct key_state */
	uint64_t		    digest;
	struct moment		   *ring; /* by number modulo capacity */
	uint64_t		    begin, end;
	struct moment		    base; /* before the oldest one in the ring */
	bool			    is_started;
	struct acknowledgement	   *acks;
	size_t			    ack_count, ack_capacity;
	struct list		    list;
	LIST_HEAD(, vdi_verifier_stream) streams;
	struct vdi_verifier_totals totals;
};

struct vdi_verifier_stream {
	LIST_ENTRY(vdi_verifier_stream) node;
	struct vdi_verifier *verifier;
	char		     name[64];
	vd_rev		     position;
	vd_rev		     bookmark; /* newest progress; 0: none */
	vd_rev		     last;     /* last delivered revision; 0: none */
	uint64_t	     next;     /* number of the moment that must come next, if the ring has it */
	uint64_t	     last_key; /* hash of the last delivered key */
	bool		     resumes;
};

const char *vdi_guarantee_name(enum vdi_guarantee guarantee)
{
	static const char *const names[VDI_GUARANTEE_COUNT] = { "unique",   "ordered",	 "atomic",
								"reliable", "resumable", "bookmarkable",
								"previous", "list",	 "protocol" };

	return names[guarantee];
}

uint64_t vdi_verifier_hash(struct vd_bytes bytes)
{
	return vdi_hash_bytes(bytes, SEED);
}

static void violate(struct vdi_verifier *verifier, const struct vdi_verifier_stream *stream,
		    enum vdi_guarantee guarantee, vd_rev revision, vd_rev other, struct vd_bytes key,
		    const char *format, ...) __attribute__((format(printf, 7, 8)));

static void report(struct vdi_verifier *verifier, struct vdi_violation *violation, struct vd_bytes key,
		   const char *stream)
{
	snprintf(violation->key, sizeof violation->key, "%.*s", (int) VDI_MIN(key.size, (size_t) 255),
		 key.size ? (const char *) key.data : "");
	snprintf(violation->stream, sizeof violation->stream, "%s", stream);
	verifier->totals.violations++;
	if (verifier->options.violated)
		verifier->options.violated(verifier->options.arg, violation);
}

static void violate(struct vdi_verifier *verifier, const struct vdi_verifier_stream *stream,
		    enum vdi_guarantee guarantee, vd_rev revision, vd_rev other, struct vd_bytes key,
		    const char *format, ...)
{
	struct vdi_violation violation = { .guarantee = guarantee, .revision = revision, .other = other };
	va_list		     arguments;

	va_start(arguments, format);
	vsnprintf(violation.text, sizeof violation.text, format, arguments);
	va_end(arguments);
	report(verifier, &violation, key, stream ? stream->name : "");
}

/* ---- States of keys ---- */

static bool is_key(const void *entry, const void *key)
{
	const struct key_state *state = entry;
	struct vd_bytes		mine = { state->key, state->size };

	return vd_bytes_equal(mine, *(const struct vd_bytes *) key);
}

static struct key_state *find(const struct vdi_verifier *verifier, struct vd_bytes key)
{
	return vdi_hash_get(&verifier->keys, vdi_verifier_hash(key), &key);
}

static uint64_t digest_of(uint64_t key_hash, vd_rev revision)
{
	struct {
		uint64_t key;
		int64_t	 revision;
	} mixed = { key_hash, revision };

	return vdi_verifier_hash((struct vd_bytes) { (const char *) &mixed, sizeof mixed });
}

static void forget(struct vdi_verifier *verifier, struct vd_bytes key)
{
	struct key_state *state = vdi_hash_remove(&verifier->keys, vdi_verifier_hash(key), &key);

	if (state)
		verifier->digest ^= state->digest;
	vdi_free(state);
}

static vd_status remember(struct vdi_verifier *verifier, const struct vdi_seen *seen)
{
	uint64_t	  hash = vdi_verifier_hash(seen->key);
	struct key_state *state = vdi_hash_get(&verifier->keys, hash, &seen->key);
	vd_status	  status;

	if (state == NULL) {
		state = vdi_calloc(1, sizeof *state + seen->key.size);
		if (state == NULL)
			return VD_NOMEM;
		state->size = (uint32_t) seen->key.size;
		memcpy(state->key, seen->key.data, seen->key.size);
		status = vdi_hash_put(&verifier->keys, hash, &seen->key, state, NULL);
		if (status != VD_OK) {
			vdi_free(state);
			return status;
		}
	}
	verifier->digest ^= state->digest;
	state->revision = seen->revision;
	state->create_rev = seen->create_rev;
	state->version = seen->version;
	state->value_hash = seen->value_hash;
	state->digest = digest_of(hash, seen->revision);
	verifier->digest ^= state->digest;
	return VD_OK;
}

/* ---- The ring ---- */

static struct moment *moment_at(const struct vdi_verifier *verifier, uint64_t number)
{
	return &verifier->ring[number % verifier->options.history_max];
}

/* Returns the number of the first moment after revision. */
static uint64_t first_behind(const struct vdi_verifier *verifier, vd_rev revision)
{
	uint64_t low = verifier->begin, high = verifier->end;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (moment_at(verifier, middle)->revision <= revision)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static vd_rev newest(const struct vdi_verifier *verifier)
{
	return verifier->end > verifier->begin ? moment_at(verifier, verifier->end - 1)->revision :
						 verifier->base.revision;
}

/* Returns the state at revision; NULL: no longer in the ring. */
static const struct moment *state_at(const struct vdi_verifier *verifier, vd_rev revision)
{
	uint64_t behind = first_behind(verifier, revision);

	if (behind > verifier->begin)
		return moment_at(verifier, behind - 1);
	return revision >= verifier->base.revision ? &verifier->base : NULL;
}

static void append_moment(struct vdi_verifier *verifier, vd_rev revision, uint64_t hash)
{
	if (verifier->end - verifier->begin == verifier->options.history_max)
		verifier->base = *moment_at(verifier, verifier->begin++);
	*moment_at(verifier, verifier->end++) =
		(struct moment) { revision, hash, verifier->digest, verifier->keys.count };
}

/* ---- Changes ---- */

static uint64_t hash_changes(const struct vdi_seen *changes, size_t count)
{
	uint64_t hash = count;

	for (size_t i = 0; i < count; i++) {
		struct {
			uint64_t before, key, value;
			int64_t	 is_delete;
		} mixed = { hash, vdi_verifier_hash(changes[i].key),
			    changes[i].is_delete ? 0 : changes[i].value_hash, changes[i].is_delete };

		hash = vdi_verifier_hash((struct vd_bytes) { (const char *) &mixed, sizeof mixed });
	}
	return hash;
}

static void check_put(struct vdi_verifier_stream *stream, const struct vdi_seen *seen,
		      const struct key_state *state)
{
	struct vdi_verifier *verifier = stream->verifier;
	bool		     knows_create = seen->create_rev > 0;

	if (seen->hint == VDI_HINT_ADDED && state)
		violate(verifier, stream, VDI_RELIABLE, seen->revision, state->revision, seen->key,
			"ADDED at %" PRId64 ", but the key has existed since %" PRId64
			": its deletion is missing",
			seen->revision, state->revision);
	if (seen->hint == VDI_HINT_MODIFIED && state == NULL)
		violate(verifier, stream, VDI_RELIABLE, seen->revision, 0, seen->key,
			"MODIFIED at %" PRId64 ", but the key's creation is missing", seen->revision);
	if (!knows_create || seen->version <= 0)
		return;
	if (seen->create_rev == seen->revision) {
		if (state)
			violate(verifier, stream, VDI_RELIABLE, seen->revision, state->revision, seen->key,
				"created at %" PRId64 ", but the key has existed since %" PRId64
				": its deletion is missing",
				seen->revision, state->revision);
		else if (seen->version != 1)
			violate(verifier, stream, VDI_RELIABLE, seen->revision, 0, seen->key,
				"created at %" PRId64 " with version %" PRId64, seen->revision,
				seen->version);
	} else if (state == NULL) {
		violate(verifier, stream, VDI_RELIABLE, seen->revision, seen->create_rev, seen->key,
			"changed at %" PRId64 ", but its creation at %" PRId64 " is missing", seen->revision,
			seen->create_rev);
	} else if (state->version > 0 && seen->version != state->version + 1) {
		violate(verifier, stream, VDI_RELIABLE, seen->revision, state->revision, seen->key,
			"version %" PRId64 " at %" PRId64 " follows version %" PRId64 " at %" PRId64
			": the versions between are missing",
			seen->version, seen->revision, state->version, state->revision);
	}
}

static void check_previous(struct vdi_verifier_stream *stream, const struct vdi_seen *seen,
			   const struct key_state *state)
{
	struct vdi_verifier *verifier = stream->verifier;

	if (!seen->has_previous)
		return;
	if (state == NULL)
		violate(verifier, stream, VDI_PREVIOUS, seen->revision, seen->previous_revision, seen->key,
			"a previous value at %" PRId64 ", but there was none", seen->revision);
	else if (seen->previous_revision > 0 && seen->previous_revision != state->revision)
		violate(verifier, stream, VDI_PREVIOUS, seen->revision, seen->previous_revision, seen->key,
			"the previous value at %" PRId64 " is of %" PRId64 ", but should be of %" PRId64,
			seen->revision, seen->previous_revision, state->revision);
	else if (seen->previous_hash != state->value_hash)
		violate(verifier, stream, VDI_PREVIOUS, seen->revision, state->revision, seen->key,
			"the previous value at %" PRId64 " is not that of %" PRId64, seen->revision,
			state->revision);
}

static vd_status apply(struct vdi_verifier_stream *stream, const struct vdi_seen *seen)
{
	struct vdi_verifier    *verifier = stream->verifier;
	const struct key_state *state = find(verifier, seen->key);

	check_previous(stream, seen, state);
	if (seen->is_delete) {
		if (state == NULL)
			violate(verifier, stream, VDI_RELIABLE, seen->revision, 0, seen->key,
				"deleted at %" PRId64 ", but the key did not exist: its creation is missing",
				seen->revision);
		forget(verifier, seen->key);
		return VD_OK;
	}
	check_put(stream, seen, state);
	return remember(verifier, seen);
}

/* ---- Streams ---- */

static enum vdi_guarantee missing_kind(const struct vdi_verifier_stream *stream)
{
	return stream->resumes ? VDI_RESUMABLE : VDI_RELIABLE;
}

/* Moves the stream to number: all moments between are missing. Reports only the first. */
static void skip_to(struct vdi_verifier_stream *stream, uint64_t number, vd_rev revision)
{
	struct vdi_verifier *verifier = stream->verifier;

	stream->next = VDI_MAX(stream->next, verifier->begin);
	if (stream->next < number) {
		const struct moment *missed = moment_at(verifier, stream->next);

		violate(verifier, stream, missing_kind(stream), missed->revision, revision, VD_BYTES_NONE,
			"revision %" PRId64 " is missing: %" PRId64 " came after %" PRId64 " (%" PRIu64
			" missing in all)",
			missed->revision, revision, stream->position, number - stream->next);
	}
	stream->next = VDI_MAX(stream->next, number);
}

/* Reports a revision that is older than the stream's last one. */
static void blame_order(struct vdi_verifier_stream *stream, const struct vdi_seen *seen)
{
	struct vdi_verifier *verifier = stream->verifier;
	vd_rev		     revision = seen->revision;

	if (revision <= stream->bookmark && stream->bookmark > stream->last)
		violate(verifier, stream, VDI_BOOKMARKABLE, revision, stream->bookmark, seen->key,
			"revision %" PRId64 " came after a bookmark at %" PRId64, revision, stream->bookmark);
	else if (revision == stream->last)
		violate(verifier, stream, VDI_ATOMIC, revision, 0, seen->key,
			"revision %" PRId64 " came in two parts, or twice", revision);
	else if (first_behind(verifier, revision) > verifier->begin &&
		 moment_at(verifier, first_behind(verifier, revision) - 1)->revision == revision)
		violate(verifier, stream, VDI_UNIQUE, revision, stream->last, seen->key,
			"revision %" PRId64 " came again, after %" PRId64, revision, stream->last);
	else
		violate(verifier, stream, VDI_ORDERED, revision, stream->last, seen->key,
			"revision %" PRId64 " came after %" PRId64, revision, stream->last);
}

/* Reports streams at `from` or later, because a revision that belongs before their position is delivered for
 * the first time now. */
static void blame_passed(struct vdi_verifier_stream *stream, vd_rev revision, vd_rev from,
			 struct vd_bytes key)
{
	struct vdi_verifier	   *verifier = stream->verifier;
	struct vdi_verifier_stream *other;

	LIST_FOREACH(other, &verifier->streams, node)
	if (other != stream && other->position >= from) {
		violate(verifier, other, VDI_BOOKMARKABLE, revision, other->position, key,
			"revision %" PRId64 " was not delivered, but the stream has reached %" PRId64,
			revision, other->position);
		other->next = verifier->end;
	}
}

static uint64_t hash_previous(const struct vdi_seen *changes, size_t count, uint32_t *ret_count)
{
	uint64_t sum = 0;

	*ret_count = 0;
	for (size_t i = 0; i < count; i++)
		if (changes[i].has_previous) {
			uint64_t words[2] = { (uint64_t) changes[i].previous_revision,
					      changes[i].previous_hash };

			sum = sum * 31 +
			      vdi_verifier_hash((struct vd_bytes) { (const char *) words, sizeof words });
			++*ret_count;
		}
	return sum;
}

/* Previous records may be missing because of compaction, but all streams that deliver one must deliver the
 * same. */
static void compare_previous(struct vdi_verifier_stream *stream, const struct moment *moment,
			     const struct vdi_seen *changes, size_t count)
{
	uint32_t shown;
	uint64_t previous = hash_previous(changes, count, &shown);

	if (shown == moment->previous_count && previous != moment->previous)
		violate(stream->verifier, stream, VDI_PREVIOUS, moment->revision, 0, changes[0].key,
			"the previous values at %" PRId64 " differ from those in another stream",
			moment->revision);
}

static void note_previous(struct vdi_verifier *verifier, const struct vdi_seen *changes, size_t count)
{
	struct moment *moment = moment_at(verifier, verifier->end - 1);

	moment->previous = hash_previous(changes, count, &moment->previous_count);
}

/* Handles a revision that no stream has delivered before. */
static vd_status take_new(struct vdi_verifier_stream *stream, const struct vdi_seen *changes, size_t count,
			  uint64_t hash)
{
	struct vdi_verifier *verifier = stream->verifier;
	vd_rev		     revision = changes[0].revision;

	skip_to(stream, verifier->end, revision);
	for (size_t i = 0; i < count; i++)
		VDI_TRY(apply(stream, &changes[i]));
	append_moment(verifier, revision, hash);
	note_previous(verifier, changes, count);
	stream->next = verifier->end;
	blame_passed(stream, revision, revision, changes[0].key);
	verifier->totals.revisions++;
	return VD_OK;
}

/* Handles a revision that another stream has delivered. */
static void take_known(struct vdi_verifier_stream *stream, const struct vdi_seen *changes, size_t count,
		       uint64_t hash)
{
	struct vdi_verifier *verifier = stream->verifier;
	vd_rev		     revision = changes[0].revision;
	uint64_t	     number = first_behind(verifier, revision - 1);

	if (revision <= verifier->base.revision)
		return; /* no longer in the ring */
	skip_to(stream, number, revision);
	if (moment_at(verifier, number)->revision != revision) {
		violate(verifier, stream, VDI_RELIABLE, revision, 0, changes[0].key,
			"revision %" PRId64 " was not delivered by the streams that passed it", revision);
		return;
	}
	if (moment_at(verifier, number)->hash != hash)
		violate(verifier, stream, missing_kind(stream), revision, 0, changes[0].key,
			"revision %" PRId64 " has other changes than in another stream", revision);
	else
		compare_previous(stream, moment_at(verifier, number), changes, count);
	stream->next = number + 1;
}

static void judge_list(struct vdi_verifier *verifier);

/* ---- Revisions in parts: each part is a moment of its own, with the same revision ---- */

/* Returns true for another change of the stream's last revision. A repeated change is not a part. */
static bool is_next_part(const struct vdi_verifier_stream *stream, const struct vdi_seen *change)
{
	return stream->verifier->options.in_parts && change->revision == stream->last &&
	       stream->position == stream->last && vdi_verifier_hash(change->key) != stream->last_key;
}

static vd_status take_part(struct vdi_verifier_stream *stream, const struct vdi_seen *changes, size_t count,
			   uint64_t hash)
{
	struct vdi_verifier *verifier = stream->verifier;
	vd_rev		     revision = changes[0].revision;

	stream->last_key = vdi_verifier_hash(changes[0].key);
	if (revision <= verifier->base.revision && stream->next == verifier->begin)
		return VD_OK; /* no longer in the ring */
	if (stream->next < verifier->end) {
		const struct moment *moment = moment_at(verifier, stream->next);

		if (moment->revision != revision || moment->hash != hash)
			violate(verifier, stream, missing_kind(stream), revision, 0, changes[0].key,
				"revision %" PRId64 " has other changes than in another stream", revision);
		stream->next += moment->revision == revision;
	} else {
		for (size_t i = 0; i < count; i++)
			VDI_TRY(apply(stream, &changes[i]));
		append_moment(verifier, revision, hash);
		stream->next = verifier->end;
		blame_passed(stream, revision, revision + 1, changes[0].key);
	}
	judge_list(verifier);
	return VD_OK;
}

vd_status vdi_verifier_revision(struct vdi_verifier_stream *stream, const struct vdi_seen *changes,
				size_t count)
{
	struct vdi_verifier *verifier = stream->verifier;
	vd_rev		     revision = changes[0].revision;
	uint64_t	     hash = hash_changes(changes, count);

	verifier->totals.events += count;
	if (is_next_part(stream, changes))
		return take_part(stream, changes, count, hash);
	if (revision <= stream->position) {
		blame_order(stream, &changes[0]);
		return VD_OK;
	}
	if (revision > newest(verifier))
		VDI_TRY(take_new(stream, changes, count, hash));
	else
		take_known(stream, changes, count, hash);
	stream->position = stream->last = revision;
	stream->last_key = vdi_verifier_hash(changes[0].key);
	judge_list(verifier);
	return VD_OK;
}

void vdi_verifier_fault(struct vdi_verifier *verifier, const char *stream, const struct vd_watch_fault *fault)
{
	static const enum vdi_guarantee guarantees[] = { [VD_FAULT_REPEATED] = VDI_UNIQUE,
							 [VD_FAULT_ORDER] = VDI_ORDERED,
							 [VD_FAULT_PREVIOUS] = VDI_PREVIOUS,
							 [VD_FAULT_PROGRESS] = VDI_BOOKMARKABLE,
							 [VD_FAULT_PROTOCOL] = VDI_PROTOCOL };

	struct vdi_violation violation = { .guarantee = guarantees[fault->kind],
					   .revision = fault->revision };

	if (fault->revision > 0)
		snprintf(violation.text, sizeof violation.text, "revision %" PRId64 ": %s", fault->revision,
			 fault->text);
	else
		snprintf(violation.text, sizeof violation.text, "%s", fault->text);
	report(verifier, &violation, fault->key, stream);
}

void vdi_verifier_progress(struct vdi_verifier_stream *stream, vd_rev revision)
{
	struct vdi_verifier *verifier = stream->verifier;

	verifier->totals.progresses++;
	if (revision < stream->position) {
		/* A bookmark may be late, but not less than an earlier one. */
		if (revision < stream->bookmark)
			violate(verifier, stream, VDI_BOOKMARKABLE, revision, stream->bookmark, VD_BYTES_NONE,
				"a bookmark at %" PRId64 " came after one at %" PRId64, revision,
				stream->bookmark);
		return;
	}
	stream->next = VDI_MAX(stream->next, verifier->begin);
	if (stream->next < verifier->end && moment_at(verifier, stream->next)->revision <= revision) {
		violate(verifier, stream, VDI_BOOKMARKABLE, moment_at(verifier, stream->next)->revision,
			revision, VD_BYTES_NONE,
			"a bookmark at %" PRId64 ", but %" PRId64 " was not delivered", revision,
			moment_at(verifier, stream->next)->revision);
		stream->next = first_behind(verifier, revision);
	}
	stream->position = stream->bookmark = revision;
	judge_list(verifier);
}

vd_status vdi_verifier_stream_open(struct vdi_verifier *verifier, const char *name, vd_rev after,
				   bool resumes, struct vdi_verifier_stream **ret_stream)
{
	struct vdi_verifier_stream *stream = VDI_NEW(struct vdi_verifier_stream);

	if (stream == NULL)
		return VD_NOMEM;
	stream->verifier = verifier;
	stream->position = after;
	stream->resumes = resumes;
	stream->next = first_behind(verifier, after);
	snprintf(stream->name, sizeof stream->name, "%s", name);
	LIST_INSERT_HEAD(&verifier->streams, stream, node);
	verifier->totals.resumes += resumes;
	*ret_stream = stream;
	return VD_OK;
}

void vdi_verifier_stream_close(struct vdi_verifier_stream *stream)
{
	if (stream)
		LIST_REMOVE(stream, node);
	vdi_free(stream);
}

vd_rev vdi_verifier_stream_position(const struct vdi_verifier_stream *stream)
{
	return stream->position;
}

/* ---- Lists ---- */

void vdi_verifier_list_begin(struct vdi_verifier *verifier, vd_rev revision, vd_rev minimum)
{
	verifier->list = (struct list) {
		.is_open = true, .is_first = !verifier->is_started, .revision = revision, .minimum = minimum
	};
	if (revision < minimum)
		violate(verifier, NULL, VDI_LIST, revision, minimum, VD_BYTES_NONE,
			"a list at %" PRId64 ", but %" PRId64 " had been delivered before it was requested",
			revision, minimum);
}

/* Checks an item at once: reports a revision that the streams have passed without delivering it, or delivered
 * differently. */
static void check_item(struct vdi_verifier *verifier, struct vd_bytes key, vd_rev revision,
		       uint64_t value_hash)
{
	const struct key_state *state = find(verifier, key);

	if (state == NULL || revision > newest(verifier))
		return; /* possibly deleted since; the digest is compared later */
	if (state->revision < revision)
		violate(verifier, NULL, VDI_LIST, revision, state->revision, key,
			"a list has the key at %" PRId64 ", the streams only at %" PRId64, revision,
			state->revision);
	else if (state->revision == revision && state->value_hash != value_hash)
		violate(verifier, NULL, VDI_LIST, revision, 0, key,
			"a list has another value of revision %" PRId64 " than the streams", revision);
}

vd_status vdi_verifier_list_item(struct vdi_verifier *verifier, struct vd_bytes key, vd_rev revision,
				 int64_t version, uint64_t value_hash)
{
	struct list *list = &verifier->list;

	if (list->is_first) {
		struct vdi_seen seen = {
			.key = key, .revision = revision, .version = version, .value_hash = value_hash
		};

		VDI_TRY(remember(verifier, &seen));
	} else {
		check_item(verifier, key, revision, value_hash);
	}
	if (revision > list->revision)
		violate(verifier, NULL, VDI_LIST, revision, list->revision, key,
			"a list at %" PRId64 " contains revision %" PRId64, list->revision, revision);
	list->digest ^= digest_of(vdi_verifier_hash(key), revision);
	list->keys++;
	return VD_OK;
}

/* Checks a list when a stream has reached its revision: both must show the same state. */
static void judge_list(struct vdi_verifier *verifier)
{
	struct list		   *list = &verifier->list;
	struct vdi_verifier_stream *stream;
	const struct moment	   *state;
	bool			    is_passed = false;

	if (!list->is_pending)
		return;
	state = state_at(verifier, list->revision);
	/* A revision in parts may have more parts to come, unless the list is correct already. */
	LIST_FOREACH(stream, &verifier->streams, node)
	is_passed |= stream->position > list->revision ||
		     (stream->position == list->revision &&
		      (!verifier->options.in_parts || stream->bookmark == list->revision ||
		       (state && state->digest == list->digest && state->keys == list->keys)));
	if (!is_passed)
		return;
	list->is_pending = false;
	if (state == NULL)
		return; /* no longer in the ring */
	verifier->totals.lists++;
	if (state->digest != list->digest || state->keys != list->keys)
		violate(verifier, NULL, VDI_LIST, list->revision, state->revision, VD_BYTES_NONE,
			"a list at %" PRId64 " (%" PRIu64
			" keys) differs from the state of the streams (%" PRIu64 " keys)",
			list->revision, list->keys, state->keys);
}

void vdi_verifier_list_end(struct vdi_verifier *verifier)
{
	struct list *list = &verifier->list;

	list->is_open = false;
	if (list->is_first) {
		verifier->is_started = true;
		verifier->base =
			(struct moment) { list->revision, 0, verifier->digest, verifier->keys.count };
		return;
	}
	list->is_pending = true;
	judge_list(verifier);
}

bool vdi_verifier_list_is_pending(const struct vdi_verifier *verifier)
{
	return verifier->list.is_pending;
}

/* ---- Writers ---- */

vd_status vdi_verifier_acknowledged(struct vdi_verifier *verifier, vd_rev revision, struct vd_bytes key)
{
	struct acknowledgement *ack;

	if (!vdi_grow((void **) &verifier->acks, &verifier->ack_capacity, verifier->ack_count + 1,
		      sizeof *verifier->acks))
		return VD_NOMEM;
	ack = &verifier->acks[verifier->ack_count++];
	ack->revision = revision;
	snprintf(ack->key, sizeof ack->key, "%.*s", (int) VDI_MIN(key.size, sizeof ack->key - 1),
		 (const char *) key.data);
	return VD_OK;
}

void vdi_verifier_settle(struct vdi_verifier *verifier)
{
	struct vdi_verifier_stream *stream;
	vd_rev			    passed = INT64_MAX;
	size_t			    left = 0;

	if (LIST_EMPTY(&verifier->streams))
		return;
	LIST_FOREACH(stream, &verifier->streams, node)
	passed = VDI_MIN(passed, stream->position);
	for (size_t i = 0; i < verifier->ack_count; i++) {
		struct acknowledgement *ack = &verifier->acks[i];
		uint64_t		number = first_behind(verifier, ack->revision - 1);

		if (ack->revision > passed) {
			verifier->acks[left++] = *ack;
			continue;
		}
		verifier->totals.acknowledgements++;
		if (ack->revision <= verifier->base.revision)
			continue; /* no longer in the ring */
		if (number == verifier->end || moment_at(verifier, number)->revision != ack->revision)
			violate(verifier, NULL, VDI_RELIABLE, ack->revision, passed, vd_bytes_of(ack->key),
				"a write was acknowledged at %" PRId64 ", but no stream delivered it",
				ack->revision);
	}
	verifier->ack_count = left;
}

/* ---- Lifetime ---- */

vd_status vdi_verifier_new(const struct vdi_verifier_options *options, struct vdi_verifier **ret_verifier)
{
	struct vdi_verifier *verifier = VDI_NEW(struct vdi_verifier);

	if (verifier == NULL)
		return VD_NOMEM;
	verifier->options = *options;
	if (verifier->options.history_max == 0)
		verifier->options.history_max = HISTORY_MAX;
	verifier->ring = vdi_calloc(verifier->options.history_max, sizeof *verifier->ring);
	if (verifier->ring == NULL) {
		vdi_free(verifier);
		return VD_NOMEM;
	}
	vdi_hash_init(&verifier->keys, is_key, 0);
	LIST_INIT(&verifier->streams);
	*ret_verifier = verifier;
	return VD_OK;
}

struct vdi_verifier *vdi_verifier_free(struct vdi_verifier *verifier)
{
	size_t position = 0;
	void  *state;

	if (verifier == NULL)
		return NULL;
	VDI_CHECK(LIST_EMPTY(&verifier->streams));
	while ((state = vdi_hash_next(&verifier->keys, &position)) != NULL)
		vdi_free(state);
	vdi_hash_fini(&verifier->keys);
	vdi_free(verifier->ring);
	vdi_free(verifier->acks);
	vdi_free(verifier);
	return NULL;
}

void vdi_verifier_totals_get(const struct vdi_verifier *verifier, struct vdi_verifier_totals *ret_totals)
{
	*ret_totals = verifier->totals;
	ret_totals->newest = newest(verifier);
	ret_totals->keys = verifier->keys.count;
}
