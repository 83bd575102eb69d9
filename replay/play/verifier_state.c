/* The state of a verifier: live keys, the ring of revisions, reported violations. */
#include "verifier_state.h"

#include <stdarg.h>
#include <stdio.h>

#define HISTORY_MAX 65536
#define SEED 0x7665726966790a01u

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

void vdi_verifier_report(struct vdi_verifier *verifier, struct vdi_violation *violation, struct vd_bytes key,
			 const char *stream)
{
	snprintf(violation->key, sizeof violation->key, "%.*s", (int) VDI_MIN(key.size, (size_t) 255),
		 key.size ? (const char *) key.data : "");
	snprintf(violation->stream, sizeof violation->stream, "%s", stream);
	verifier->totals.violations++;
	if (verifier->options.violated)
		verifier->options.violated(verifier->options.arg, violation);
}

void vdi_verifier_violate(struct vdi_verifier *verifier, const struct vdi_verifier_stream *stream,
			  enum vdi_guarantee guarantee, vd_rev revision, vd_rev other, struct vd_bytes key,
			  const char *format, ...)
{
	struct vdi_violation violation = { .guarantee = guarantee, .revision = revision, .other = other };
	va_list		     arguments;

	va_start(arguments, format);
	vsnprintf(violation.text, sizeof violation.text, format, arguments);
	va_end(arguments);
	vdi_verifier_report(verifier, &violation, key, stream ? stream->name : "");
}

/* ---- States of keys ---- */

static bool is_key(const void *entry, const void *key)
{
	const struct vdi_verifier_key *state = entry;
	struct vd_bytes		       mine = { state->key, state->size };

	return vd_bytes_equal(mine, *(const struct vd_bytes *) key);
}

struct vdi_verifier_key *vdi_verifier_find(const struct vdi_verifier *verifier, struct vd_bytes key)
{
	return vdi_hash_get(&verifier->keys, vdi_verifier_hash(key), &key);
}

uint64_t vdi_verifier_digest(uint64_t key_hash, vd_rev revision)
{
	struct {
		uint64_t key;
		int64_t	 revision;
	} mixed = { key_hash, revision };

	return vdi_verifier_hash((struct vd_bytes) { (const char *) &mixed, sizeof mixed });
}

void vdi_verifier_forget(struct vdi_verifier *verifier, struct vd_bytes key)
{
	struct vdi_verifier_key *state = vdi_hash_remove(&verifier->keys, vdi_verifier_hash(key), &key);

	if (state)
		verifier->digest ^= state->digest;
	vdi_free(state);
}

vd_status vdi_verifier_remember(struct vdi_verifier *verifier, const struct vdi_seen *seen)
{
	uint64_t		 hash = vdi_verifier_hash(seen->key);
	struct vdi_verifier_key *state = vdi_hash_get(&verifier->keys, hash, &seen->key);
	vd_status		 status;

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
	state->digest = vdi_verifier_digest(hash, seen->revision);
	verifier->digest ^= state->digest;
	return VD_OK;
}

/* ---- The ring ---- */

uint64_t vdi_verifier_first_behind(const struct vdi_verifier *verifier, vd_rev revision)
{
	uint64_t low = verifier->begin, high = verifier->end;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (vdi_verifier_moment_at(verifier, middle)->revision <= revision)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

vd_rev vdi_verifier_newest(const struct vdi_verifier *verifier)
{
	return verifier->end > verifier->begin ?
		       vdi_verifier_moment_at(verifier, verifier->end - 1)->revision :
		       verifier->base.revision;
}

const struct vdi_verifier_moment *vdi_verifier_state_at(const struct vdi_verifier *verifier, vd_rev revision)
{
	uint64_t behind = vdi_verifier_first_behind(verifier, revision);

	if (behind > verifier->begin)
		return vdi_verifier_moment_at(verifier, behind - 1);
	return revision >= verifier->base.revision ? &verifier->base : NULL;
}

void vdi_verifier_append(struct vdi_verifier *verifier, vd_rev revision, uint64_t hash)
{
	if (verifier->end - verifier->begin == verifier->options.history_max)
		verifier->base = *vdi_verifier_moment_at(verifier, verifier->begin++);
	*vdi_verifier_moment_at(verifier, verifier->end++) =
		(struct vdi_verifier_moment) { revision, hash, verifier->digest, verifier->keys.count };
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
	ret_totals->newest = vdi_verifier_newest(verifier);
	ret_totals->keys = verifier->keys.count;
}
