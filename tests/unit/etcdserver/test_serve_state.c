/* Unit tests of etcdserver/serve_state.c on the simulated disk: crashes, a full disk, damage. */
#include "serve_state.h"

#include "actor_sim.h"
#include "disk_sim.h"
#include "env.h"
#include "vdtest.h"

struct world {
	struct vd_env	       *env;
	struct vdi_disk	       *disk;
	struct vdi_etcdserver	server;
	struct vdi_serve_state *state;
	struct vd_error		error;
};

static vd_status world_open(struct world *world)
{
	memset(&world->server, 0, sizeof world->server);
	world->server.env = world->env;
	world->server.options.state_path = "etcd";
	world->state = NULL;
	return vdi_serve_state_open(&world->server, &world->state, &world->error);
}

static void world_init(struct world *world, uint64_t seed)
{
	memset(world, 0, sizeof *world);
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world->env), VD_OK);
	assert_status(vdi_disk_sim_new(seed, &world->disk), VD_OK);
	vdi_env_set_disk(world->env, world->disk);
}

static void world_close(struct world *world)
{
	world->state = vdi_serve_state_close(world->state);
}

static void world_fini(struct world *world)
{
	world_close(world);
	vdi_disk_sim_free(world->disk);
	vd_env_free(world->env);
}

static bool has_auth(struct world *world, const char *text)
{
	return vd_bytes_equal(vdi_serve_state_auth(world->state), vd_bytes_of(text));
}

static int64_t size_of(struct world *world, const char *name)
{
	int64_t size = 0;

	(void) vdi_disk_sim_content(world->disk, name, &size);
	return size;
}

/* Not a byte is free: changes use the room of the spare file, one after the other. */
static void a_full_disk_takes_changes(void **state)
{
	struct world world;
	char	     text[32];

	(void) state;
	world_init(&world, 1);
	assert_status(world_open(&world), VD_OK);
	assert_status(vdi_serve_state_set_auth(world.state, vd_bytes_of("auth 0")), VD_OK);
	vdi_disk_sim_set_capacity(world.disk,
				  size_of(&world, VDI_SERVE_STATE_NAME) + size_of(&world, "state.spare"));
	for (int i = 1; i < 10; i++) {
		snprintf(text, sizeof text, "auth %d", i);
		assert_status(vdi_serve_state_set_auth(world.state, vd_bytes_of(text)), VD_OK);
		world_close(&world);
		vdi_disk_sim_crash(world.disk);
		assert_status(world_open(&world), VD_OK);
		assert_true(has_auth(&world, text));
	}
	world_fini(&world);
}

/* Nothing can be written at all: a start goes on with what it has read, and saves its term when there is
 * room. */
static void a_full_disk_does_not_stop_a_start(void **state)
{
	struct world world;
	uint64_t     cluster_id, term;
	uint8_t	     before[32];
	int64_t	     size;

	(void) state;
	world_init(&world, 2);
	assert_status(world_open(&world), VD_OK);
	cluster_id = world.server.cluster_id;
	term = world.server.term;
	assert_status(vdi_serve_state_set_auth(world.state, vd_bytes_of("two")), VD_OK);
	vdi_disk_sim_set_capacity(world.disk, 0);
	assert_int_not_equal(vdi_serve_state_set_auth(world.state, vd_bytes_of("three")), VD_OK);
	assert_null(vdi_disk_sim_content(world.disk, "state.tmp", &(int64_t) { 0 }));
	for (int i = 0; i < 3; i++) {
		world_close(&world);
		vdi_disk_sim_crash(world.disk);
		assert_status(world_open(&world), VD_OK);
		assert_true(has_auth(&world, "two"));
		assert_int_equal(world.server.cluster_id, cluster_id);
		assert_int_equal(world.server.term, term + 1);
		vdi_sim_advance(world.env, VD_SECONDS(7));
	}
	/* It is tried again every five seconds, not only at the end. */
	memcpy(before, vdi_disk_sim_content(world.disk, VDI_SERVE_STATE_NAME, &size), sizeof before);
	assert_true(size >= (int64_t) sizeof before);
	vdi_disk_sim_set_capacity(world.disk, INT64_MAX);
	vdi_sim_advance(world.env, VD_SECONDS(5));
	assert_memory_not_equal(vdi_disk_sim_durable(world.disk, VDI_SERVE_STATE_NAME, &size), before,
				sizeof before);
	world_close(&world);
	vdi_disk_sim_crash(world.disk);
	assert_status(world_open(&world), VD_OK);
	assert_int_equal(world.server.term, term + 2);
	world_fini(&world);
}

/* A power cut at every operation, torn and forgetful: what was answered is there, and nothing else but what
 * was under way. */
static void a_power_cut_keeps_what_was_answered(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		bool was_hit = true;

		for (uint64_t at = 1; was_hit; at++) {
			struct world world;
			unsigned     answered = 0, asked = 0;
			char	     text[32], next[32];
			uint64_t     cluster_id = 0;

			world_init(&world, seed * 1000 + at);
			vdi_disk_sim_fail_nth(world.disk, at, VDI_DISK_SIM_CRASH);
			if (world_open(&world) == VD_OK) {
				cluster_id = world.server.cluster_id;
				for (asked = 1; asked < 6; asked++) {
					snprintf(text, sizeof text, "auth %u", asked);
					if (vdi_serve_state_set_auth(world.state, vd_bytes_of(text)) != VD_OK)
						break;
					answered = asked;
				}
			}
			was_hit = vdi_disk_sim_failed(world.disk);
			world_close(&world);
			vdi_disk_sim_crash(world.disk);
			assert_status(world_open(&world), VD_OK);
			assert_true(cluster_id == 0 || world.server.cluster_id == cluster_id);
			snprintf(text, sizeof text, "auth %u", answered);
			snprintf(next, sizeof next, "auth %u", asked);
			assert_true(has_auth(&world, answered ? text : "") || has_auth(&world, next));
			world_fini(&world);
		}
	}
}

/* One bit, zeros, a copy of another sector, or a file cut short, in a stopped server: refused by name, or
 * without effect. */
static void damage_is_refused_by_name(void **state)
{
	static char    long_auth[3000];
	struct world   world;
	const uint8_t *bytes;
	int64_t	       size;

	(void) state;
	memset(long_auth, 'a', sizeof long_auth - 1);
	world_init(&world, 3);
	assert_status(world_open(&world), VD_OK);
	assert_status(vdi_serve_state_set_auth(world.state, vd_bytes_of(long_auth)), VD_OK);
	world_close(&world);
	vdi_disk_sim_crash(world.disk);
	bytes = vdi_disk_sim_content(world.disk, VDI_SERVE_STATE_NAME, &size);
	assert_non_null(bytes);
	for (int64_t at = 0; at < size; at += 7) {
		vdi_disk_sim_flip(world.disk, VDI_SERVE_STATE_NAME, at, (uint8_t) (1 << at % 8));
		assert_status(world_open(&world), VD_CORRUPT);
		assert_non_null(strstr(world.error.message, "etcd/state is damaged"));
		vdi_disk_sim_flip(world.disk, VDI_SERVE_STATE_NAME, at, (uint8_t) (1 << at % 8));
	}
	for (int64_t cut = size - 1; cut > 0; cut -= 200) {
		vdi_disk_sim_cut(world.disk, VDI_SERVE_STATE_NAME, cut);
		assert_status(world_open(&world), VD_CORRUPT);
	}
	world_fini(&world);
}

/* Where a member says that its peers find it: the last list that was given, also after a restart. */
static void peer_urls_are_kept(void **state)
{
	static const char one[] = "http://127.0.0.1:1\0", two[] = "http://a:1\0unixs:///tmp/peer\0";
	struct world	  world;

	(void) state;
	world_init(&world, 6);
	assert_status(world_open(&world), VD_OK);
	for (int i = 0; i < 3; i++) {
		struct vd_bytes	  urls = i == 1 ? (struct vd_bytes) { two, sizeof two - 1 } :
						  (struct vd_bytes) { one, sizeof one - 1 };
		struct vdi_buffer found;

		assert_status(vdi_serve_state_set_peer_urls(world.state, urls), VD_OK);
		world_close(&world);
		vdi_disk_sim_crash(world.disk);
		assert_status(world_open(&world), VD_OK);
		vdi_buffer_init(&found, VDI_SERVE_PEER_URLS_SIZE_MAX);
		vdi_serve_state_peer_urls(world.state, &found);
		assert_true(vd_bytes_equal(vdi_buffer_bytes(&found), urls));
		vdi_buffer_fini(&found);
	}
	world_fini(&world);
}

/* Alarms are of a member and of a kind: each is there once, and is there after a restart. */
static void alarms_are_kept(void **state)
{
	static const struct vdi_serve_alarm alarms[] = { { 7, VDI_ALARM_NOSPACE },
							 { 7, VDI_ALARM_CORRUPT },
							 { 1234567890123u, VDI_ALARM_NOSPACE } };
	struct vdi_serve_alarm		    found[8];
	struct world			    world;
	bool				    is_changed;

	(void) state;
	world_init(&world, 5);
	assert_status(world_open(&world), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(alarms); i++)
		for (int again = 0; again < 2; again++) {
			assert_status(vdi_serve_state_set_alarm(world.state, &alarms[i], true, &is_changed),
				      VD_OK);
			assert_int_equal(is_changed, !again);
		}
	for (size_t gone = 0; gone <= VDI_ARRAY_SIZE(alarms); gone++) {
		world_close(&world);
		assert_status(world_open(&world), VD_OK);
		memset(found, 0, sizeof found);
		assert_int_equal(vdi_serve_state_alarms(world.state, VDI_ALARM_NONE, found, 8),
				 VDI_ARRAY_SIZE(alarms) - gone);
		for (size_t i = gone; i < VDI_ARRAY_SIZE(alarms); i++) {
			bool is_there = false;

			for (size_t j = 0; j < VDI_ARRAY_SIZE(alarms) - gone; j++)
				is_there |= found[j].member_id == alarms[i].member_id &&
					    found[j].kind == alarms[i].kind;
			assert_true(is_there);
		}
		if (gone == VDI_ARRAY_SIZE(alarms))
			break;
		for (int again = 0; again < 2; again++) {
			assert_status(
				vdi_serve_state_set_alarm(world.state, &alarms[gone], false, &is_changed),
				VD_OK);
			assert_int_equal(is_changed, !again);
		}
	}
	world_fini(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_disk_takes_changes),
		cmocka_unit_test(a_full_disk_does_not_stop_a_start),
		cmocka_unit_test(a_power_cut_keeps_what_was_answered),
		cmocka_unit_test(damage_is_refused_by_name),
		cmocka_unit_test(alarms_are_kept),
		cmocka_unit_test(peer_urls_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
