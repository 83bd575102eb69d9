/* The log is played at its recorded pace under a simulated clock. After each stretch caches are brought up to
 * the store's revision (an idle cache asks its store only if a reader needs a newer revision), the code under
 * test gets time to run, and the state delivered by each watch is compared with lists and the store. */
#include "simulation.h"

#include <math.h>
#include <stdio.h>

#include "actor_sim.h"
#include "player.h"

/* Maximum simulated time for caches and watches to recover and catch up. */
#define PATIENCE VD_SECONDS(3600)
#define CODEC_FIELDS_NONE NULL, 0

/* ---- Running ---- */

static void ask_rules(struct vd_simulation *simulation)
{
	struct vd_store	      *store = simulation->player->front.inner;
	struct vd_store_status status;

	if (simulation->rule_count == 0 || vd_store_status_get(store, &status) != VD_OK ||
	    status.current == simulation->asked_at)
		return;
	simulation->asked_at = status.current;
	for (size_t i = 0; i < simulation->rule_count; i++)
		if (!simulation->rules[i].holds(simulation->rules[i].arg, store) &&
		    simulation->violation[0] == 0)
			(void) snprintf(simulation->violation, sizeof simulation->violation,
					"always: \"%s\" does not hold at revision %lld",
					simulation->rules[i].name, (long long) status.current);
}

/* Called between two steps of the simulator. */
static bool look(void *arg)
{
	struct vd_simulation *simulation = arg;

	ask_rules(simulation);
	return simulation->condition && simulation->condition(simulation->condition_arg);
}

bool vd_simulation_until(struct vd_simulation *simulation, bool (*condition)(void *arg), void *arg,
			 vd_dur limit)
{
	bool held;

	simulation->condition = condition;
	simulation->condition_arg = arg;
	held = vdi_sim_run_until(simulation->env, look, simulation, limit);
	simulation->condition = NULL;
	return held;
}

void vd_simulation_pass(struct vd_simulation *simulation, vd_dur time)
{
	(void) vd_simulation_until(simulation, NULL, NULL, time);
}

static bool is_at_rest(void *arg)
{
	struct vd_simulation	 *simulation = arg;
	struct vd_player_progress progress;

	vd_player_progress_get(simulation->player, &progress);
	return progress.ended || (progress.paused && progress.resting);
}

static bool has_caught_up(void *arg)
{
	struct vd_simulation  *simulation = arg;
	struct vd_store_status status;

	if (vd_store_status_get(simulation->player->front.inner, &status) != VD_OK)
		return true;
	for (size_t i = 0; i < simulation->cache_count; i++)
		if (vd_cacher_ready(simulation->caches[i].cacher, NULL) != VD_OK ||
		    vd_cacher_revision(simulation->caches[i].cacher) < status.current)
			return false;
	for (size_t i = 0; i < simulation->part_count; i++)
		if (!vdi_viewer_is_open(simulation->parts[i]->viewer) ||
		    !vdi_viewer_is_idle(simulation->parts[i]->viewer))
			return false;
	return true;
}

static void listed(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	bool *answered = arg;

	(void) status;
	(void) error;
	if (list)
		vd_list_free(list);
	*answered = true;
}

static bool is_true(void *flag)
{
	return *(bool *) flag;
}

/* Requests a consistent list, so that an idle cache asks for the store's revision. Its result is ignored. */
static void nudge(struct vd_simulation *simulation, struct vd_cacher *cacher, vd_rev revision)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	bool		       answered = false;

	options.revision = revision;
	options.match = VD_MATCH_NOT_OLDER_THAN;
	options.limit = 1;
	if (vd_cacher_list(cacher, &options, listed, &answered, NULL) == VD_OK)
		(void) vd_simulation_until(simulation, is_true, &answered, PATIENCE);
}

static vd_status catch_up(struct vd_simulation *simulation, struct vd_error *reterr)
{
	vd_mono last = vd_mono_add(vd_env_now(simulation->env), PATIENCE);

	while (!has_caught_up(simulation)) {
		struct vd_store_status status;

		if (vd_env_now(simulation->env).ns >= last.ns)
			return vd_error_set(reterr, VD_TIMEOUT,
					    "a cache or a watch did not catch up within an hour");
		VDI_TRY(vd_store_status_get(simulation->player->front.inner, &status));
		for (size_t i = 0; i < simulation->cache_count; i++)
			if (vd_cacher_ready(simulation->caches[i].cacher, NULL) == VD_OK &&
			    vd_cacher_revision(simulation->caches[i].cacher) < status.current)
				nudge(simulation, simulation->caches[i].cacher, status.current);
		(void) vd_simulation_until(simulation, has_caught_up, simulation, VD_SECONDS(5));
	}
	return VD_OK;
}

vd_status vd_simulation_run(struct vd_simulation *simulation, vd_rev revision, struct vd_error *reterr)
{
	vd_status status;

	VDI_REQUIRE(simulation, reterr);
	if (revision <= 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "simulation: revision must be greater than 0");
	vdi_player_play_until(simulation->player, revision);
	while (!vd_simulation_until(simulation, is_at_rest, simulation, PATIENCE)) {
		/* records may be hours apart */
	}
	/* Answers at once, because the player is idle. */
	status = vd_player_wait(simulation->player, revision == VD_PLAYER_END ? VD_PLAYER_END : 1, VD_MS(0),
				reterr);
	if (status == VD_OK && revision != VD_PLAYER_END)
		status = vd_player_wait(simulation->player, simulation->player->progress.ended ? revision : 1,
					VD_MS(0), reterr);
	VDI_TRY(status);
	VDI_TRY(catch_up(simulation, reterr));
	vd_simulation_pass(simulation, simulation->settle);
	VDI_TRY(catch_up(simulation, reterr));
	(void) vdi_sim_run_until_idle(simulation->env);
	vdi_simulation_compare(simulation);
	return VD_OK;
}

/* ---- Caches, watches, rules ---- */

vd_status vd_simulation_cacher(struct vd_simulation *simulation, const char *key_prefix, bool cluster_scoped,
			       struct vd_cacher **ret_cacher, struct vd_error *reterr)
{
	struct vd_cacher_options    options = VD_CACHER_OPTIONS_INIT;
	struct vdi_simulation_cache cache = { 0 };
	vd_status		    status;

	VDI_REQUIRE(simulation, reterr);
	VDI_REQUIRE(key_prefix, reterr);
	VDI_REQUIRE(ret_cacher, reterr);
	for (size_t i = 0; i < simulation->cache_count; i++)
		if (strcmp(simulation->caches[i].prefix, key_prefix) == 0) {
			*ret_cacher = simulation->caches[i].cacher;
			return VD_OK;
		}
	if (!vdi_grow((void **) &simulation->caches, &simulation->cache_capacity, simulation->cache_count + 1,
		      sizeof cache) ||
	    (cache.prefix = vdi_strdup(key_prefix)) == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	options.resource = options.key_prefix = cache.prefix;
	options.cluster_scoped = cluster_scoped;
	options.codec = simulation->codec;
	options.skip_undecodable = true;
	status = vd_cacher_new(simulation->env, &simulation->player->front.base, &options, &cache.cacher,
			       reterr);
	if (status == VD_OK) {
		status = vd_cacher_ready_wait(cache.cacher, PATIENCE, reterr);
		if (status != VD_OK)
			vd_cacher_close_wait(cache.cacher);
	}
	if (status != VD_OK) {
		vdi_free(cache.prefix);
		return status;
	}
	simulation->caches[simulation->cache_count++] = cache;
	*ret_cacher = cache.cacher;
	return VD_OK;
}

static void take_event(void *arg, const struct vd_watch_event *event)
{
	vdi_simulation_watch_take(&((struct vdi_simulation_part *) arg)->watch, event);
}

static void take_end(void *arg, vd_status reason, bool starts_over)
{
	vdi_simulation_watch_ended(&((struct vdi_simulation_part *) arg)->watch, reason, starts_over);
}

static struct vd_bytes copy_to(char **at, struct vd_bytes slice)
{
	struct vd_bytes copy = { *at, slice.size };

	if (slice.size)
		memcpy(*at, slice.data, slice.size);
	*at += slice.size;
	return copy;
}

/* Copies the watch's scope to a list that must show the same objects. */
static bool copy_scope(struct vdi_simulation_part *part, const struct vd_watch_options *watch)
{
	char *at = part->text =
		vdi_alloc(watch->namespace_name.size + watch->name.size + watch->label_selector.size +
			  watch->field_selector.size + watch->shard_selector.size + 1);

	if (at == NULL)
		return false;
	part->list = (struct vd_list_options) VD_LIST_OPTIONS_INIT;
	part->list.revision = VD_REVISION_ANY;
	part->list.namespace_name = copy_to(&at, watch->namespace_name);
	part->list.name = copy_to(&at, watch->name);
	part->list.label_selector = copy_to(&at, watch->label_selector);
	part->list.field_selector = copy_to(&at, watch->field_selector);
	part->list.shard_selector = copy_to(&at, watch->shard_selector);
	return true;
}

static bool is_open(void *viewer)
{
	return vdi_viewer_is_open(viewer);
}

static void close_part(struct vd_simulation *simulation, struct vdi_simulation_part *part)
{
	struct vdi_wait wait;

	if (part->viewer) {
		vdi_wait_init(&wait, simulation->env);
		vdi_viewer_close(part->viewer, vdi_wait_signal_arg, &wait);
		vdi_wait_wait(&wait);
		vdi_wait_fini(&wait);
	}
	vdi_simulation_watch_fini(&part->watch);
	vdi_free(part->text);
	vdi_free(part);
}

/* Opens and closes a watch to get the cacher's error for the options; a viewer would only print it. */
static vd_status try_options(struct vd_cacher *cacher, const struct vd_watch_options *options,
			     struct vd_error *reterr)
{
	struct vd_watcher *watcher;
	vd_status	   status = vd_cacher_watch(cacher, options, NULL, &watcher, reterr);

	if (status == VD_OK)
		vd_watcher_close(watcher, NULL, NULL);
	return status == VD_NOT_READY ? VD_OK : status;
}

vd_status vd_simulation_watch(struct vd_simulation *simulation, struct vd_cacher *cacher,
			      const struct vd_watch_options *options, unsigned *ret_watch,
			      struct vd_error *reterr)
{
	struct vdi_viewer_options viewer = {
		.watch = options, .resume = true, .event = take_event, .ended = take_end
	};
	struct vdi_simulation_part *part;

	VDI_REQUIRE(simulation, reterr);
	VDI_REQUIRE(cacher, reterr);
	VDI_REQUIRE(ret_watch, reterr);
	VDI_REQUIRE_OPTIONS(options, reterr);
	VDI_TRY(try_options(cacher, options, reterr));
	part = VDI_NEW(struct vdi_simulation_part);
	if (part == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	vdi_simulation_watch_init(&part->watch, VDI_MAX(options->revision, 0));
	part->cacher = cacher;
	viewer.event_arg = part;
	if (!vdi_grow((void **) &simulation->parts, &simulation->part_capacity, simulation->part_count + 1,
		      sizeof *simulation->parts) ||
	    !copy_scope(part, options) ||
	    vdi_viewer_new(simulation->env, cacher, &viewer, &part->viewer) != VD_OK) {
		close_part(simulation, part);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	simulation->parts[simulation->part_count++] = part;
	(void) vd_simulation_until(simulation, is_open, part->viewer, PATIENCE);
	(void) vdi_sim_run_until_idle(simulation->env); /* delivers the initial state */
	*ret_watch = (unsigned) simulation->part_count - 1;
	return VD_OK;
}

vd_status vd_simulation_always(struct vd_simulation *simulation, const char	      *name,
			       bool (*holds)(void *arg, struct vd_store *store), void *arg)
{
	struct vdi_simulation_rule rule = { .holds = holds, .arg = arg };

	VDI_REQUIRE(simulation, NULL);
	VDI_REQUIRE(name, NULL);
	VDI_REQUIRE(holds, NULL);
	rule.name = vdi_strdup(name);
	if (rule.name == NULL || !vdi_grow((void **) &simulation->rules, &simulation->rule_capacity,
					   simulation->rule_count + 1, sizeof rule)) {
		vdi_free(rule.name);
		return VD_NOMEM;
	}
	simulation->rules[simulation->rule_count++] = rule;
	return VD_OK;
}

/* ---- Lifetime ---- */

struct vd_env *vd_simulation_env(struct vd_simulation *simulation)
{
	return simulation->env;
}

struct vd_store *vd_simulation_store(struct vd_simulation *simulation)
{
	return vd_player_store(simulation->player);
}

struct vd_player *vd_simulation_player(struct vd_simulation *simulation)
{
	return simulation->player;
}

static vd_status prepare(struct vd_simulation *simulation, const struct vd_simulation_options *options,
			 struct vd_error *reterr)
{
	struct vd_player_options player = VD_PLAYER_OPTIONS_INIT;

	if (vdi_env_new_sim(options->seed, options->log, options->log_arg, &simulation->env) != VD_OK)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	VDI_TRY(vd_codec_json_new(CODEC_FIELDS_NONE, &simulation->codec, reterr));
	player.path = options->path;
	player.speed = options->speed;
	player.paused = true;
	player.start_revision = options->start_revision;
	player.writable = !options->read_only;
	player.seed = options->seed;
	player.faults = options->faults;
	player.history_bytes = options->history_bytes;
	VDI_TRY(vd_player_open(simulation->env, &player, &simulation->player, reterr));
	vdi_sim_set_step_delay(simulation->env, options->step_delay_max);
	return VD_OK;
}

vd_status vd_simulation_open(const struct vd_simulation_options *options,
			     struct vd_simulation **ret_simulation, struct vd_error *reterr)
{
	struct vd_simulation *simulation;
	vd_status	      status;

	VDI_REQUIRE(ret_simulation, reterr);
	VDI_REQUIRE_OPTIONS(options, reterr);
	if (options->step_delay_max.ns < 0 || options->settle.ns < 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "simulation: step_delay_max and settle must not be negative");
	simulation = VDI_NEW(struct vd_simulation);
	if (simulation == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	simulation->settle = options->settle;
	simulation->failed = options->failed;
	simulation->failed_arg = options->failed_arg;
	status = prepare(simulation, options, reterr);
	if (status != VD_OK) {
		vd_simulation_close(simulation);
		return status;
	}
	*ret_simulation = simulation;
	return VD_OK;
}

struct vd_simulation *vd_simulation_close(struct vd_simulation *simulation)
{
	if (simulation == NULL)
		return NULL;
	for (size_t i = 0; i < simulation->part_count; i++)
		close_part(simulation, simulation->parts[i]);
	for (size_t i = 0; i < simulation->cache_count; i++) {
		vd_cacher_close_wait(simulation->caches[i].cacher);
		vdi_free(simulation->caches[i].prefix);
	}
	vd_player_close_wait(simulation->player);
	vd_codec_free(simulation->codec);
	(void) vd_env_free(simulation->env);
	for (size_t i = 0; i < simulation->rule_count; i++)
		vdi_free(simulation->rules[i].name);
	vdi_free(simulation->rules);
	vdi_free(simulation->parts);
	vdi_free(simulation->caches);
	vdi_free(simulation);
	return NULL;
}
