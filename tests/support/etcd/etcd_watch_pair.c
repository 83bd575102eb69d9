#include "etcd_watch_pair.h"

void watch_pair_open(struct watch_pair *t, vd_rev revision)
{
	t->world = watch_world_new(1, 0);
	watch_reader_open(&t->world, &t->reader, "k", revision);
	t->stream = watch_world_stream(&t->world);
	watch_expect(t->stream, WATCH_CREATE);
	watch_created(t->stream, 0, 5);
	watch_world_run(&t->world);
	watch_reader_open(&t->world, &t->sibling, "s", 0);
	watch_expect(t->stream, WATCH_CREATE);
	watch_created(t->stream, 1, 5);
	watch_world_run(&t->world);
}

void watch_pair_close(struct watch_pair *t)
{
	watch_reader_close(&t->reader);
	watch_reader_close(&t->sibling);
	watch_world_free(&t->world);
}

vd_rev watch_pair_resume(struct watch_pair *t)
{
	vd_rev start = -1;

	watch_world_run(&t->world);
	rpc_script_cut(t->world.script, 0);
	t->stream = watch_world_stream(&t->world);
	for (int64_t id = 0; id < 2; id++) {
		struct watch_request request = watch_expect(t->stream, WATCH_CREATE);

		if (strcmp(request.key, "k") == 0)
			start = request.start_revision;
		watch_created(t->stream, id, 50);
	}
	watch_world_run(&t->world);
	return start;
}

void watch_pair_fragment(struct watch_pair *t, int64_t id, vd_rev header, vd_rev mod_rev, bool more)
{
	struct watch_event event = { .key = "k", .mod_rev = mod_rev };

	watch_answer(
		t->stream,
		&(struct watch_answer) {
			.id = id, .revision = header, .fragment = more, .events = &event, .event_count = 1 });
}
