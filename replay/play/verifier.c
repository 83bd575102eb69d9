/* The first stream that delivers a revision defines it: its changes are checked against the state of the keys
 * and applied to it, and their hash is put into a ring. Every other stream must deliver the same hash, and
 * exactly the revisions in the ring. A state is identified by a digest (the exclusive or over its live keys),
 * which the ring has for each revision, so a list at a recent revision is compared in constant time, whatever
 * happened since. */
#include "verifier_state.h"

#include <inttypes.h>
#include <stdio.h>

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
		      const struct vdi_verifier_key *state)
{
	struct vdi_verifier *verifier = stream->verifier;
	bool		     knows_create = seen->create_rev > 0;

	if (seen->hint == VDI_HINT_ADDED && state)
		vdi_verifier_violate(verifier, stream, VDI_RELIABLE, seen->revision, state->revision,
				     seen->key,
				     "ADDED at %" PRId64 ", but the key has existed since %" PRId64
				     ": its deletion is missing",
				     seen->revision, state->revision);
	if (seen->hint == VDI_HINT_MODIFIED && state == NULL)
		vdi_verifier_violate(verifier, stream, VDI_RELIABLE, seen->revision, 0, seen->key,
				     "MODIFIED at %" PRId64 ", but the key's creation is missing",
				     seen->revision);
	if (!knows_create || seen->version <= 0)
		return;
	if (seen->create_rev == seen->revision) {
		if (state)
			vdi_verifier_violate(verifier, stream, VDI_RELIABLE, seen->revision, state->revision,
					     seen->key,
					     "created at %" PRId64 ", but the key has existed since %" PRId64
					     ": its deletion is missing",
					     seen->revision, state->revision);
		else if (seen->version != 1)
			vdi_verifier_violate(verifier, stream, VDI_RELIABLE, seen->revision, 0, seen->key,
					     "created at %" PRId64 " with version %" PRId64, seen->revision,
					     seen->version);
	} else if (state == NULL) {
		vdi_verifier_violate(verifier, stream, VDI_RELIABLE, seen->revision, seen->create_rev,
				     seen->key,
				     "changed at %" PRId64 ", but its creation at %" PRId64 " is missing",
				     seen->revision, seen->create_rev);
	} else if (state->version > 0 && seen->version != state->version + 1) {
		vdi_verifier_violate(verifier, stream, VDI_RELIABLE, seen->revision, state->revision,
				     seen->key,
				     "version %" PRId64 " at %" PRId64 " follows version %" PRId64
				     " at %" PRId64 ": the versions between are missing",
				     seen->version, seen->revision, state->version, state->revision);
	}
}

static void check_previous(struct vdi_verifier_stream *stream, const struct vdi_seen *seen,
			   const struct vdi_verifier_key *state)
{
	struct vdi_verifier *verifier = stream->verifier;

	if (!seen->has_previous)
		return;
	if (state == NULL)
		vdi_verifier_violate(verifier, stream, VDI_PREVIOUS, seen->revision, seen->previous_revision,
				     seen->key, "a previous value at %" PRId64 ", but there was none",
				     seen->revision);
	else if (seen->previous_revision > 0 && seen->previous_revision != state->revision)
		vdi_verifier_violate(
			verifier, stream, VDI_PREVIOUS, seen->revision, seen->previous_revision, seen->key,
			"the previous value at %" PRId64 " is of %" PRId64 ", but should be of %" PRId64,
			seen->revision, seen->previous_revision, state->revision);
	else if (seen->previous_hash != state->value_hash)
		vdi_verifier_violate(verifier, stream, VDI_PREVIOUS, seen->revision, state->revision,
				     seen->key, "the previous value at %" PRId64 " is not that of %" PRId64,
				     seen->revision, state->revision);
}

static vd_status apply(struct vdi_verifier_stream *stream, const struct vdi_seen *seen)
{
	struct vdi_verifier	      *verifier = stream->verifier;
	const struct vdi_verifier_key *state = vdi_verifier_find(verifier, seen->key);

	check_previous(stream, seen, state);
	if (seen->is_delete) {
		if (state == NULL)
			vdi_verifier_violate(verifier, stream, VDI_RELIABLE, seen->revision, 0, seen->key,
					     "deleted at %" PRId64
					     ", but the key did not exist: its creation is missing",
					     seen->revision);
		vdi_verifier_forget(verifier, seen->key);
		return VD_OK;
	}
	check_put(stream, seen, state);
	return vdi_verifier_remember(verifier, seen);
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
		const struct vdi_verifier_moment *missed = vdi_verifier_moment_at(verifier, stream->next);

		vdi_verifier_violate(verifier, stream, missing_kind(stream), missed->revision, revision,
				     VD_BYTES_NONE,
				     "revision %" PRId64 " is missing: %" PRId64 " came after %" PRId64
				     " (%" PRIu64 " missing in all)",
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
		vdi_verifier_violate(verifier, stream, VDI_BOOKMARKABLE, revision, stream->bookmark,
				     seen->key, "revision %" PRId64 " came after a bookmark at %" PRId64,
				     revision, stream->bookmark);
	else if (revision == stream->last)
		vdi_verifier_violate(verifier, stream, VDI_ATOMIC, revision, 0, seen->key,
				     "revision %" PRId64 " came in two parts, or twice", revision);
	else if (vdi_verifier_first_behind(verifier, revision) > verifier->begin &&
		 vdi_verifier_moment_at(verifier, vdi_verifier_first_behind(verifier, revision) - 1)
				 ->revision == revision)
		vdi_verifier_violate(verifier, stream, VDI_UNIQUE, revision, stream->last, seen->key,
				     "revision %" PRId64 " came again, after %" PRId64, revision,
				     stream->last);
	else
		vdi_verifier_violate(verifier, stream, VDI_ORDERED, revision, stream->last, seen->key,
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
		vdi_verifier_violate(verifier, other, VDI_BOOKMARKABLE, revision, other->position, key,
				     "revision %" PRId64
				     " was not delivered, but the stream has reached %" PRId64,
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
static void compare_previous(struct vdi_verifier_stream *stream, const struct vdi_verifier_moment *moment,
			     const struct vdi_seen *changes, size_t count)
{
	uint32_t shown;
	uint64_t previous = hash_previous(changes, count, &shown);

	if (shown == moment->previous_count && previous != moment->previous)
		vdi_verifier_violate(stream->verifier, stream, VDI_PREVIOUS, moment->revision, 0,
				     changes[0].key,
				     "the previous values at %" PRId64 " differ from those in another stream",
				     moment->revision);
}

static void note_previous(struct vdi_verifier *verifier, const struct vdi_seen *changes, size_t count)
{
	struct vdi_verifier_moment *moment = vdi_verifier_moment_at(verifier, verifier->end - 1);

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
	vdi_verifier_append(verifier, revision, hash);
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
	uint64_t	     number = vdi_verifier_first_behind(verifier, revision - 1);

	if (revision <= verifier->base.revision)
		return; /* no longer in the ring */
	skip_to(stream, number, revision);
	if (vdi_verifier_moment_at(verifier, number)->revision != revision) {
		vdi_verifier_violate(verifier, stream, VDI_RELIABLE, revision, 0, changes[0].key,
				     "revision %" PRId64 " was not delivered by the streams that passed it",
				     revision);
		return;
	}
	if (vdi_verifier_moment_at(verifier, number)->hash != hash)
		vdi_verifier_violate(verifier, stream, missing_kind(stream), revision, 0, changes[0].key,
				     "revision %" PRId64 " has other changes than in another stream",
				     revision);
	else
		compare_previous(stream, vdi_verifier_moment_at(verifier, number), changes, count);
	stream->next = number + 1;
}

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
		const struct vdi_verifier_moment *moment = vdi_verifier_moment_at(verifier, stream->next);

		if (moment->revision != revision || moment->hash != hash)
			vdi_verifier_violate(
				verifier, stream, missing_kind(stream), revision, 0, changes[0].key,
				"revision %" PRId64 " has other changes than in another stream", revision);
		stream->next += moment->revision == revision;
	} else {
		for (size_t i = 0; i < count; i++)
			VDI_TRY(apply(stream, &changes[i]));
		vdi_verifier_append(verifier, revision, hash);
		stream->next = verifier->end;
		blame_passed(stream, revision, revision + 1, changes[0].key);
	}
	vdi_verifier_check_list(verifier);
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
	if (revision > vdi_verifier_newest(verifier))
		VDI_TRY(take_new(stream, changes, count, hash));
	else
		take_known(stream, changes, count, hash);
	stream->position = stream->last = revision;
	stream->last_key = vdi_verifier_hash(changes[0].key);
	vdi_verifier_check_list(verifier);
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
	vdi_verifier_report(verifier, &violation, fault->key, stream);
}

void vdi_verifier_progress(struct vdi_verifier_stream *stream, vd_rev revision)
{
	struct vdi_verifier *verifier = stream->verifier;

	verifier->totals.progresses++;
	if (revision < stream->position) {
		/* A bookmark may be late, but not less than an earlier one. */
		if (revision < stream->bookmark)
			vdi_verifier_violate(verifier, stream, VDI_BOOKMARKABLE, revision, stream->bookmark,
					     VD_BYTES_NONE,
					     "a bookmark at %" PRId64 " came after one at %" PRId64, revision,
					     stream->bookmark);
		return;
	}
	stream->next = VDI_MAX(stream->next, verifier->begin);
	if (stream->next < verifier->end &&
	    vdi_verifier_moment_at(verifier, stream->next)->revision <= revision) {
		vdi_verifier_violate(verifier, stream, VDI_BOOKMARKABLE,
				     vdi_verifier_moment_at(verifier, stream->next)->revision, revision,
				     VD_BYTES_NONE,
				     "a bookmark at %" PRId64 ", but %" PRId64 " was not delivered", revision,
				     vdi_verifier_moment_at(verifier, stream->next)->revision);
		stream->next = vdi_verifier_first_behind(verifier, revision);
	}
	stream->position = stream->bookmark = revision;
	vdi_verifier_check_list(verifier);
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
	stream->next = vdi_verifier_first_behind(verifier, after);
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
