/* Compares lists and acknowledged writes with the streams. */
#include "verifier_state.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Lists ---- */

void vdi_verifier_list_begin(struct vdi_verifier *verifier, vd_rev revision, vd_rev minimum)
{
	verifier->list = (struct vdi_verifier_list) {
		.is_open = true, .is_first = !verifier->is_started, .revision = revision, .minimum = minimum
	};
	if (revision < minimum)
		vdi_verifier_violate(verifier, NULL, VDI_LIST, revision, minimum, VD_BYTES_NONE,
				     "a list at %" PRId64 ", but %" PRId64
				     " had been delivered before it was requested",
				     revision, minimum);
}

/* Checks an item at once: reports a revision that the streams have passed without delivering it, or delivered
 * differently. */
static void check_item(struct vdi_verifier *verifier, struct vd_bytes key, vd_rev revision,
		       uint64_t value_hash)
{
	const struct vdi_verifier_key *state = vdi_verifier_find(verifier, key);

	if (state == NULL || revision > vdi_verifier_newest(verifier))
		return; /* possibly deleted since; the digest is compared later */
	if (state->revision < revision)
		vdi_verifier_violate(verifier, NULL, VDI_LIST, revision, state->revision, key,
				     "a list has the key at %" PRId64 ", the streams only at %" PRId64,
				     revision, state->revision);
	else if (state->revision == revision && state->value_hash != value_hash)
		vdi_verifier_violate(verifier, NULL, VDI_LIST, revision, 0, key,
				     "a list has another value of revision %" PRId64 " than the streams",
				     revision);
}

vd_status vdi_verifier_list_item(struct vdi_verifier *verifier, struct vd_bytes key, vd_rev revision,
				 int64_t version, uint64_t value_hash)
{
	struct vdi_verifier_list *list = &verifier->list;

	if (list->is_first) {
		struct vdi_seen seen = {
			.key = key, .revision = revision, .version = version, .value_hash = value_hash
		};

		VDI_TRY(vdi_verifier_remember(verifier, &seen));
	} else {
		check_item(verifier, key, revision, value_hash);
	}
	if (revision > list->revision)
		vdi_verifier_violate(verifier, NULL, VDI_LIST, revision, list->revision, key,
				     "a list at %" PRId64 " contains revision %" PRId64, list->revision,
				     revision);
	list->digest ^= vdi_verifier_digest(vdi_verifier_hash(key), revision);
	list->keys++;
	return VD_OK;
}

void vdi_verifier_check_list(struct vdi_verifier *verifier)
{
	struct vdi_verifier_list	 *list = &verifier->list;
	struct vdi_verifier_stream	 *stream;
	const struct vdi_verifier_moment *state;
	bool				  is_passed = false;

	if (!list->is_pending)
		return;
	state = vdi_verifier_state_at(verifier, list->revision);
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
		vdi_verifier_violate(verifier, NULL, VDI_LIST, list->revision, state->revision, VD_BYTES_NONE,
				     "a list at %" PRId64 " (%" PRIu64
				     " keys) differs from the state of the streams (%" PRIu64 " keys)",
				     list->revision, list->keys, state->keys);
}

void vdi_verifier_list_end(struct vdi_verifier *verifier)
{
	struct vdi_verifier_list *list = &verifier->list;

	list->is_open = false;
	if (list->is_first) {
		verifier->is_started = true;
		verifier->base = (struct vdi_verifier_moment) { list->revision, 0, verifier->digest,
								verifier->keys.count };
		return;
	}
	list->is_pending = true;
	vdi_verifier_check_list(verifier);
}

bool vdi_verifier_list_is_pending(const struct vdi_verifier *verifier)
{
	return verifier->list.is_pending;
}

/* ---- Writers ---- */

vd_status vdi_verifier_acknowledged(struct vdi_verifier *verifier, vd_rev revision, struct vd_bytes key)
{
	struct vdi_verifier_ack *ack;

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
		struct vdi_verifier_ack *ack = &verifier->acks[i];
		uint64_t		 number = vdi_verifier_first_behind(verifier, ack->revision - 1);

		if (ack->revision > passed) {
			verifier->acks[left++] = *ack;
			continue;
		}
		verifier->totals.acknowledgements++;
		if (ack->revision <= verifier->base.revision)
			continue; /* no longer in the ring */
		if (number == verifier->end ||
		    vdi_verifier_moment_at(verifier, number)->revision != ack->revision)
			vdi_verifier_violate(
				verifier, NULL, VDI_RELIABLE, ack->revision, passed, vd_bytes_of(ack->key),
				"a write was acknowledged at %" PRId64 ", but no stream delivered it",
				ack->revision);
	}
	verifier->ack_count = left;
}
