#include "verifier_world.h"

#include "rand.h"

struct verifier_entry verifier_history[VERIFIER_FIRST + VERIFIER_REVISIONS];

void verifier_make_history(uint64_t seed)
{
	struct vdi_rand rand;

	vdi_rand_init(&rand, seed);
	memset(verifier_history, 0, sizeof verifier_history);
	for (vd_rev revision = VERIFIER_FIRST; revision < VERIFIER_FIRST + VERIFIER_REVISIONS; revision++) {
		struct verifier_entry *entry = &verifier_history[revision];
		int		       key = (int) vdi_rand_below(&rand, 5);

		if (revision > VERIFIER_FIRST)
			memcpy(entry->state, verifier_history[revision - 1].state, sizeof entry->state);
		if (revision > VERIFIER_FIRST && vdi_rand_once_in(&rand, 5))
			continue; /* a revision of other keys */
		entry->count = 1 + (unsigned) vdi_rand_below(&rand, 2);
		for (unsigned i = 0; i < entry->count; i++, key += 5) {
			struct verifier_change *change = &entry->changes[i];
			bool			is_there = entry->state[key].revision > 0;

			*change = (struct verifier_change) { .key = key,
							     .is_delete =
								     is_there && vdi_rand_once_in(&rand, 4),
							     .has_previous = is_there,
							     .previous_revision = entry->state[key].revision,
							     .previous_hash = entry->state[key].hash };
			if (change->is_delete) {
				memset(&entry->state[key], 0, sizeof entry->state[key]);
				continue;
			}
			change->create_rev = is_there ? entry->state[key].create_rev : revision;
			change->version = is_there ? entry->state[key].version + 1 : 1;
			change->hash = vdi_rand_next(&rand);
			entry->state[key].revision = revision;
			entry->state[key].create_rev = change->create_rev;
			entry->state[key].version = change->version;
			entry->state[key].hash = change->hash;
		}
	}
}

void verifier_violated(void *arg, const struct vdi_violation *violation)
{
	struct verifier_world *world = arg;

	if (world->count++ == 0)
		world->first = *violation;
}

const char *verifier_key_name(int key)
{
	static char names[10][4];

	snprintf(names[key], sizeof names[key], "k%d", key);
	return names[key];
}

void verifier_list_at(struct verifier_world *world, vd_rev revision, vd_rev minimum)
{
	vdi_verifier_list_begin(world->verifier, revision, minimum);
	for (int key = 0; key < 10; key++)
		if (verifier_history[revision].state[key].revision)
			assert_status(vdi_verifier_list_item(world->verifier,
							     vd_bytes_of(verifier_key_name(key)),
							     verifier_history[revision].state[key].revision,
							     verifier_history[revision].state[key].version,
							     verifier_history[revision].state[key].hash),
				      VD_OK);
	vdi_verifier_list_end(world->verifier);
}

void verifier_world_init(struct verifier_world *world, uint32_t history_max)
{
	struct vdi_verifier_options options = { .history_max = history_max,
						.violated = verifier_violated,
						.arg = world };

	memset(world, 0, sizeof *world);
	assert_status(vdi_verifier_new(&options, &world->verifier), VD_OK);
	verifier_list_at(world, VERIFIER_FIRST, 0);
}

struct vdi_verifier_stream *verifier_open_stream(struct verifier_world *world, const char *name, vd_rev after)
{
	struct vdi_verifier_stream *stream;

	assert_status(
		vdi_verifier_stream_open(world->verifier, name, after, after != VERIFIER_FIRST, &stream),
		VD_OK);
	return stream;
}

unsigned verifier_seen_of(vd_rev revision, struct vdi_seen seen[2])
{
	const struct verifier_entry *entry = &verifier_history[revision];

	for (unsigned i = 0; i < entry->count; i++) {
		const struct verifier_change *change = &entry->changes[i];

		seen[i] = (struct vdi_seen) { .key = vd_bytes_of(verifier_key_name(change->key)),
					      .revision = revision,
					      .is_delete = change->is_delete,
					      .create_rev = change->create_rev,
					      .version = change->version,
					      .value_hash = change->hash,
					      .has_previous = change->has_previous,
					      .previous_revision = change->previous_revision,
					      .previous_hash = change->previous_hash };
	}
	return entry->count;
}

void verifier_show(struct vdi_verifier_stream *stream, vd_rev revision)
{
	struct vdi_seen seen[2];
	unsigned	count = verifier_seen_of(revision, seen);

	if (count)
		assert_status(vdi_verifier_revision(stream, seen, count), VD_OK);
}

void verifier_show_range(struct vdi_verifier_stream *stream, vd_rev from, vd_rev to)
{
	for (vd_rev revision = from; revision <= to; revision++)
		verifier_show(stream, revision);
}

vd_rev verifier_some(vd_rev from)
{
	while (verifier_history[from].count == 0)
		from++;
	return from;
}

void verifier_assert_first(struct verifier_world *world, enum vdi_guarantee guarantee, vd_rev revision)
{
	if (world->count == 0)
		fail_msg("nothing was found; %s at %lld was expected", vdi_guarantee_name(guarantee),
			 (long long) revision);
	if (world->first.guarantee != guarantee || world->first.revision != revision)
		fail_msg("%s at %lld was expected, not %s at %lld: %s", vdi_guarantee_name(guarantee),
			 (long long) revision, vdi_guarantee_name(world->first.guarantee),
			 (long long) world->first.revision, world->first.text);
}

void verifier_fault_init(struct verifier_fault *fault)
{
	verifier_make_history(7);
	verifier_world_init(&fault->world, 0);
	fault->a = verifier_open_stream(&fault->world, "a", VERIFIER_FIRST);
	fault->b = verifier_open_stream(&fault->world, "b", VERIFIER_FIRST);
	fault->middle = verifier_some(VERIFIER_FIRST + 50);
	verifier_show_range(fault->a, VERIFIER_FIRST + 1, fault->middle);
	verifier_show_range(fault->b, VERIFIER_FIRST + 1, fault->middle);
	assert_int_equal(fault->world.count, 0);
}

void verifier_fault_fini(struct verifier_fault *fault)
{
	vdi_verifier_stream_close(fault->a);
	vdi_verifier_stream_close(fault->b);
	vdi_verifier_free(fault->world.verifier);
}
