/* Three tables, as in client-go: the messages seen for events that agree in all but the message; the Event
 * that counts equal events; and a token bucket for each object and type. A recorder has one source, so the
 * source is not part of the keys. */
#include "event_correlator.h"
#include "rate_limiter.h"

#define RECORDS_MAX 4096

struct similar {
	bool	 is_used;
	vd_mono	 last;
	uint32_t count;
	uint64_t messages[VDI_EVENT_SIMILAR_MAX]; /* hashes of different messages */
};

struct seen {
	uint32_t count;
	vd_wall	 first;
	char	 name[VDI_EVENT_NAME_SIZE];
};

struct source {
	bool			is_used;
	struct vdi_token_bucket bucket;
};

#define BIT(field) (1u << (field))
#define OBJECT                                                                                               \
	(BIT(VDI_EVENT_API_VERSION) | BIT(VDI_EVENT_KIND) | BIT(VDI_EVENT_NAMESPACE) | BIT(VDI_EVENT_NAME) | \
	 BIT(VDI_EVENT_UID))
#define SOURCE_KEY (OBJECT | BIT(VDI_EVENT_TYPE))
#define SIMILAR_KEY (SOURCE_KEY | BIT(VDI_EVENT_REASON))
#define EQUAL_KEY (SIMILAR_KEY | BIT(VDI_EVENT_FIELD_PATH) | BIT(VDI_EVENT_MESSAGE))

void vdi_event_correlator_init(struct vdi_event_correlator *correlator, const struct vdi_event_limits *limits)
{
	correlator->limits = *limits;
	correlator->seeds[0] = vdi_hash_seed();
	correlator->seeds[1] = ~correlator->seeds[0];
	vdi_event_cache_init(&correlator->similar, sizeof(struct similar), RECORDS_MAX);
	vdi_event_cache_init(&correlator->seen, sizeof(struct seen), RECORDS_MAX);
	vdi_event_cache_init(&correlator->sources, sizeof(struct source), RECORDS_MAX);
}

void vdi_event_correlator_fini(struct vdi_event_correlator *correlator)
{
	vdi_event_cache_fini(&correlator->similar);
	vdi_event_cache_fini(&correlator->seen);
	vdi_event_cache_fini(&correlator->sources);
}

/* The hash of each field is the seed of the next, so that fields cannot be confused. */
static uint64_t hash_fields(const struct vdi_event *event, unsigned fields, uint64_t seed)
{
	uint64_t hash = seed ^ fields;

	for (unsigned i = 0; i < VDI_EVENT_FIELDS; i++)
		if (fields & BIT(i))
			hash = vdi_hash_bytes(event->fields[i], hash);
	return hash;
}

static struct vdi_event_key key_of(const struct vdi_event_correlator *correlator,
				   const struct vdi_event *event, unsigned fields)
{
	return (struct vdi_event_key) { hash_fields(event, fields, correlator->seeds[0]),
					hash_fields(event, fields, correlator->seeds[1]) };
}

/* Returns true if so many different messages were seen that the event is combined with them. */
static bool is_combined(struct vdi_event_correlator *correlator, const struct vdi_event *event, vd_mono now)
{
	uint64_t	message = vdi_hash_bytes(event->fields[VDI_EVENT_MESSAGE], correlator->seeds[0]);
	struct similar *similar =
		vdi_event_cache_at(&correlator->similar, key_of(correlator, event, SIMILAR_KEY));
	uint32_t at = 0;

	if (similar == NULL)
		return false;
	if (!similar->is_used ||
	    vd_mono_since(now, similar->last).ns > correlator->limits.similar_interval.ns)
		similar->count = 0;
	similar->is_used = true;
	similar->last = now;
	while (at < similar->count && similar->messages[at] != message)
		at++;
	if (at < similar->count || similar->count + 1 < correlator->limits.similar_max) {
		if (at == similar->count)
			similar->messages[similar->count++] = message;
		return false;
	}
	/* The set of messages stays one below the limit, so the next different one is combined, too. */
	return true;
}

/* Counts the event if an equal one, or one that it is combined with, was seen. */
static void count_event(struct vdi_event_correlator *correlator, struct vdi_event *event)
{
	struct seen *seen = vdi_event_cache_at(
		&correlator->seen, key_of(correlator, event, event->is_combined ? SIMILAR_KEY : EQUAL_KEY));

	if (seen == NULL)
		return;
	if (seen->count) {
		memcpy(event->name, seen->name, sizeof event->name);
		event->first = seen->first;
		event->count = seen->count < INT32_MAX ? seen->count + 1 : seen->count;
	}
	memcpy(seen->name, event->name, sizeof seen->name);
	seen->first = event->first;
	seen->count = event->count;
}

static bool is_limited(struct vdi_event_correlator *correlator, const struct vdi_event *event, vd_mono now)
{
	const struct vdi_event_limits *limits = &correlator->limits;
	struct source		      *source =
		vdi_event_cache_at(&correlator->sources, key_of(correlator, event, SOURCE_KEY));

	if (source == NULL)
		return false;
	if (!source->is_used)
		vdi_token_bucket_init(&source->bucket, 1e9 / (double) limits->refill.ns, limits->burst, now);
	source->is_used = true;
	return !vdi_token_bucket_take(&source->bucket, now);
}

vd_status vdi_event_correlate(struct vdi_event_correlator *correlator, struct vdi_event *event, vd_mono now)
{
	event->is_combined = is_combined(correlator, event, now);
	if (event->is_combined)
		event->first = event->last;
	count_event(correlator, event);
	return is_limited(correlator, event, now) ? VD_FULL : VD_OK;
}
