/* vedette replay: prints what watches see of a recorded log, or serves the recorded cluster to real clients.
 *
 * Printing runs in the simulator: one thread, a simulated clock, an order drawn from the seed. So the same
 * log, seed and options print the same bytes on every machine, and recorded delays take no time. Serving runs
 * on real threads at the recorded pace, or as fast as clients read.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <vedette/vedette.h>

#include "actor_sim.h"
#include "alloc_slab.h"
#include "codec_json.h"
#include "command_line.h"
#include "command_process.h"
#include "fault_plan.h"
#include "player.h"
#include "replay_expect.h"
#include "replay_watch.h"
#include "sanitizer.h"
#include "selector.h"
#include "viewer.h"
#include "wait.h"

#define WATCHES_MAX 256
/* Lead of the log over the slowest watch when printing, in transactions: few, so that data written by the
 * writer is still in the CPU cache when it is read. */
#define LEAD_MAX 256
#define DRAIN_TIMEOUT VD_SECONDS(8)
/* Maximum simulated time for watches to recover and catch up after the end of the log: a reflector backs off
 * for at most half a minute. */
#define SETTLE_LIMIT VD_SECONDS(300)

struct replay {
	const struct vdi_command *command;
	const char		 *path;
	struct vdi_texts	  specs;
	const char		 *expect_path, *listen, *resources_path, *faults, *speed_text;
	int64_t			  seed, start_revision, until_revision, history_bytes, rounds;
	unsigned		  threads;
	bool			  resume, read_only, quiet, paused, strict;
	double			  speed;
	struct vdi_log_settings	  log;

	/* Printing. */
	struct vd_env		  *env;
	struct vd_player	  *player;
	struct vdi_resources	   resources;
	struct vdi_replay_watch	  *watches;
	const struct vdi_resource *resource_last; /* of codec_of */
	struct vdi_viewer	 **viewers;
	size_t			   watch_count, viewer_count;
	struct vdi_replay_expect  *expect;
	bool			   output_failed;
	struct timespec		   reported_at;
};

static int fail(const struct vd_error *error)
{
	return vdi_command_error(&vdi_command_replay, "", error);
}

static void player_options(const struct replay *replay, struct vd_player_options *ret_options)
{
	struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;

	options.path = replay->path;
	options.speed = replay->speed;
	options.start_revision = replay->start_revision;
	options.seed = (uint64_t) replay->seed;
	options.faults = replay->faults;
	options.rounds = (uint64_t) replay->rounds;
	options.strict = replay->strict;
	if (replay->history_bytes)
		options.history_bytes = replay->history_bytes;
	*ret_options = options;
}

/* ---- Printing ---- */

static void take_line(void *arg, struct vd_bytes line)
{
	struct replay *replay = arg;

	if (replay->expect)
		(void) vdi_replay_expect_line(replay->expect, line);
	else if (fwrite(line.data, 1, line.size, stdout) != line.size)
		replay->output_failed = true;
}

static vd_status load_resources(struct replay *replay, struct vd_error *reterr)
{
	char	 *text = NULL;
	size_t	  capacity = 0;
	ssize_t	  size;
	FILE	 *file;
	vd_status status;

	if (vdi_resources_init(&replay->resources) != VD_OK)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	if (replay->resources_path == NULL)
		return VD_OK;
	file = fopen(replay->resources_path, "re");
	if (file == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "cannot open %s: %s", replay->resources_path,
				    strerror(errno));
	size = getdelim(&text, &capacity, '\0', file);
	status = vdi_resources_load(&replay->resources,
				    (struct vd_bytes) { text, size > 0 ? (size_t) size : 0 }, reterr);
	free(text);
	(void) fclose(file);
	return status;
}

static bool selects_by(const struct vdi_replay_watch *watch, const char *field)
{
	struct vdi_field_selector *selector;
	bool			   found = false;

	if (watch->options.field_selector.size == 0 ||
	    vdi_field_selector_parse(watch->options.field_selector, &selector, NULL) != VD_OK)
		return false;
	for (size_t i = 0; i < vdi_field_selector_count(selector) && !found; i++)
		found = vd_bytes_equal(vdi_field_selector_term(selector, i).field, vd_bytes_of(field));
	vdi_field_selector_free(selector);
	return found;
}

/* Returns the fields that a watch selects by. Further declared fields would be extracted from every object
 * and indexed for lists, which are not used here. */
static size_t fields_of(const struct replay *replay, const struct vdi_resource *resource,
			struct vd_field_spec *ret_fields)
{
	size_t count = 0;

	for (size_t i = 0; i < resource->field_count && count < VD_FIELDS_MAX; i++)
		for (size_t j = 0; j < replay->watch_count; j++)
			if (replay->watches[j].resource == resource &&
			    selects_by(&replay->watches[j], resource->fields[i].name)) {
				ret_fields[count++] = resource->fields[i];
				break;
			}
	return count;
}

static vd_status make_cacher(struct replay *replay, struct vdi_resource *resource, struct vd_error *reterr)
{
	struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
	struct vd_field_spec	 fields[VD_FIELDS_MAX];
	size_t			 field_count = fields_of(replay, resource, fields);
	char			 name[VDI_RESOURCE_NAME_MAX];

	if (resource->cacher)
		return VD_OK;
	VDI_TRY(vdi_resource_cacher_options(resource, fields, field_count, name, &options, reterr));
	if (vdi_codec_json_prepare_init(resource->codec) != VD_OK)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	return vd_cacher_new(replay->env, vd_player_store(replay->player), &options, &resource->cacher,
			     reterr);
}

/* Returns the codec of a watched resource; mostly it is the same as last time. */
static const struct vd_codec *codec_of(void *arg, struct vd_bytes key)
{
	struct replay *replay = arg;

	if (replay->resource_last && vd_bytes_has_prefix(key, vd_bytes_of(replay->resource_last->key_prefix)))
		return replay->resource_last->codec;
	for (size_t i = 0; i < replay->watch_count; i++)
		if (vd_bytes_has_prefix(key, vd_bytes_of(replay->watches[i].resource->key_prefix))) {
			replay->resource_last = replay->watches[i].resource;
			return replay->resource_last->codec;
		}
	return NULL;
}

static vd_status read_watches(struct replay *replay, struct vd_error *reterr)
{
	replay->watches = vdi_calloc(replay->specs.count, sizeof *replay->watches);
	replay->viewers = vdi_calloc(replay->specs.count, sizeof *replay->viewers);
	if (replay->watches == NULL || replay->viewers == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	for (; replay->watch_count < replay->specs.count; replay->watch_count++)
		VDI_TRY(vdi_replay_watch_parse(replay->specs.items[replay->watch_count], &replay->resources,
					       &replay->watches[replay->watch_count], reterr));
	return VD_OK;
}

static vd_status open_viewers(struct replay *replay, struct vd_error *reterr)
{
	struct vdi_fault_plan faults;

	VDI_TRY(vdi_fault_plan_init(&faults, replay->faults, reterr));
	for (size_t i = 0; i < replay->watch_count; i++) {
		struct vdi_replay_watch	 *watch = &replay->watches[i];
		struct vdi_viewer_options options = { .number = (unsigned) i,
						      .watch = &watch->options,
						      .resume = replay->resume,
						      .pause = faults.slow,
						      .line = take_line,
						      .line_arg = replay };

		if (replay->quiet && replay->expect == NULL)
			options.line = NULL; /* then no line is formatted */
		if (faults.slow.ns > 0)
			watch->options.lag_events_max = 100; /* as upstream's buffers */
		if (watch->timeout_s > 0)
			watch->options.deadline =
				vd_mono_add(vd_env_now(replay->env), VD_SECONDS(watch->timeout_s));
		VDI_TRY(vd_cacher_ready_wait(watch->resource->cacher, SETTLE_LIMIT, reterr));
		if (vdi_viewer_new(replay->env, watch->resource->cacher, &options, &replay->viewers[i]) !=
		    VD_OK)
			return vd_error_set(reterr, VD_NOMEM, "out of memory");
		replay->viewer_count++;
	}
	vdi_fault_plan_fini(&faults);
	return VD_OK;
}

static bool all_open(void *arg)
{
	struct replay *replay = arg;

	for (size_t i = 0; i < replay->viewer_count; i++)
		if (!vdi_viewer_is_open(replay->viewers[i]))
			return false;
	return true;
}

/* Makes an idle cache ask the store for its revision, with a consistent read. The result is ignored:
 * all_caught_up checks it. */
static void refresh(struct replay *replay)
{
	struct vd_player_progress progress;

	vd_player_progress_get(replay->player, &progress);
	for (size_t i = 0; i < replay->watch_count; i++) {
		struct vd_list_options options = VD_LIST_OPTIONS_INIT;
		struct vd_cacher      *cacher = replay->watches[i].resource->cacher;
		struct vd_list	      *list = NULL;

		options.revision = progress.revision;
		options.match = VD_MATCH_NOT_OLDER_THAN;
		options.limit = 1;
		if (vd_cacher_revision(cacher) < progress.revision &&
		    vd_cacher_ready_wait(cacher, SETTLE_LIMIT, NULL) == VD_OK &&
		    vd_cacher_list_wait(cacher, &options, &list, NULL) == VD_OK)
			vd_list_free(list);
	}
}

/* Returns true if every cache has reached the end of the log, and every watch has delivered its events. */
static bool all_caught_up(void *arg)
{
	struct replay		 *replay = arg;
	struct vd_player_progress progress;

	vd_player_progress_get(replay->player, &progress);
	for (size_t i = 0; i < replay->watch_count; i++)
		if (vd_cacher_ready(replay->watches[i].resource->cacher, NULL) != VD_OK ||
		    vd_cacher_revision(replay->watches[i].resource->cacher) < progress.revision)
			return false;
	for (size_t i = 0; i < replay->viewer_count; i++)
		if (!vdi_viewer_is_open(replay->viewers[i]) || !vdi_viewer_is_idle(replay->viewers[i]))
			return false;
	return true;
}

/* Prints progress at most once per second, on a terminal. */
static void report_progress(struct replay *replay, const struct vd_player_progress *progress)
{
	struct timespec now;

	if (!isatty(STDERR_FILENO) || clock_gettime(CLOCK_MONOTONIC, &now) != 0 ||
	    now.tv_sec == replay->reported_at.tv_sec)
		return;
	replay->reported_at = now;
	(void) fprintf(stderr, "\rvedette replay: revision %lld, %llu records ",
		       (long long) progress->revision, (unsigned long long) progress->records);
}

static bool has_ended(void *arg)
{
	struct replay		 *replay = arg;
	struct vd_player_progress progress;

	vd_player_progress_get(replay->player, &progress);
	report_progress(replay, &progress);
	return progress.ended || progress.resting || replay->output_failed;
}

/* Runs the simulator in chunks, so that the end is not checked at every step. */
static void run_to_the_end(struct replay *replay)
{
	while (!has_ended(replay)) {
		bool ran = false;

		for (int i = 0; i < 4096 && vdi_sim_step(replay->env); i++)
			ran = true;
		if (!ran && !vdi_sim_advance_to_next_timer(replay->env))
			return;
	}
}

static void warn_of_tail(const struct replay *replay, const struct vd_player_progress *progress)
{
	if (progress->was_torn)
		(void) fprintf(stderr,
			       "vedette replay: warning: %s is torn at line %llu: %llu whole records and "
			       "%llu bytes at its end were left out\n",
			       replay->path, (unsigned long long) progress->torn_line,
			       (unsigned long long) progress->torn_records,
			       (unsigned long long) progress->torn_bytes);
	else if (progress->was_unclosed)
		(void) fprintf(stderr,
			       "vedette replay: warning: %s has no closing line: its writer was killed, "
			       "or lines at its end are missing\n",
			       replay->path);
}

static int finish(struct replay *replay)
{
	struct vd_player_progress progress;
	struct vd_error		  error = { 0 };
	uint64_t		  equal = 0;
	vd_status		  status = VD_OK;

	if (replay->until_revision == 0)
		status = vd_player_wait(replay->player, VD_PLAYER_END, VD_MS(1), &error);
	vd_player_progress_get(replay->player, &progress);
	if (isatty(STDERR_FILENO) && replay->reported_at.tv_sec)
		(void) fputs("\r", stderr);
	if (status != VD_OK)
		return fail(&error);
	if (fflush(stdout) != 0 || replay->output_failed)
		return vdi_command_failed(replay->command, "cannot write the output: %s", strerror(errno));
	warn_of_tail(replay, &progress);
	if (replay->expect == NULL)
		return VDI_EXIT_OK;
	if (!vdi_replay_expect_finish(replay->expect, &equal))
		return VDI_EXIT_FAILED;
	(void) fprintf(stderr, "vedette replay: %llu lines, all as expected\n", (unsigned long long) equal);
	return VDI_EXIT_OK;
}

static vd_status prepare(struct replay *replay, struct vd_error *reterr)
{
	struct vd_player_options options;

	VDI_TRY(load_resources(replay, reterr));
	VDI_TRY(read_watches(replay, reterr));
	if (replay->expect_path)
		VDI_TRY(vdi_replay_expect_open(replay->expect_path, &replay->expect, reterr));
	player_options(replay, &options);
	options.paused = true;
	options.lead_max = LEAD_MAX;
	VDI_TRY(vd_player_open(replay->env, &options, &replay->player, reterr));
	for (size_t i = 0; i < replay->watch_count; i++)
		VDI_TRY(make_cacher(replay, replay->watches[i].resource, reterr));
	vdi_player_prepare(replay->player, codec_of, replay);
	return open_viewers(replay, reterr);
}

static void release(struct replay *replay)
{
	struct vdi_wait wait;

	for (size_t i = 0; i < replay->viewer_count; i++) {
		vdi_wait_init(&wait, replay->env);
		vdi_viewer_close(replay->viewers[i], vdi_wait_signal_arg, &wait);
		vdi_wait_wait(&wait);
		vdi_wait_fini(&wait);
	}
	if (replay->player)
		vdi_player_prepare(replay->player, NULL, NULL);
	for (size_t i = 0; i < replay->resources.count; i++) {
		vd_cacher_close_wait(replay->resources.items[i]->cacher);
		vd_codec_free(replay->resources.items[i]->codec);
	}
	vd_player_close_wait(replay->player);
	for (size_t i = 0; i < replay->watch_count; i++)
		vdi_replay_watch_fini(&replay->watches[i]);
	vdi_replay_expect_close(replay->expect);
	vdi_free(replay->watches);
	vdi_free(replay->viewers);
	vdi_resources_fini(&replay->resources);
}

/* Installs the slab allocator, which is faster for the simulator's single thread. Optional. */
static void use_slab(void)
{
#if !VDI_ADDRESS_SANITIZED && !VDI_THREAD_SANITIZED
	struct vdi_slab	   *slab;
	struct vd_allocator allocator;

	if (vdi_slab_new(VDI_SLAB_RANGE_DEFAULT, &slab) != VD_OK)
		return;
	allocator = vdi_slab_allocator(slab);
	if (vd_allocator_install(&allocator) != VD_OK) /* otherwise it lives as long as the process */
		(void) vdi_slab_free(slab);
#endif
}

static int print(struct replay *replay)
{
	struct vd_error error = { 0 };
	int		result;

	use_slab();
	if (vdi_env_new_sim((uint64_t) replay->seed, vdi_command_log, &replay->log, &replay->env) != VD_OK)
		return vdi_command_failed(replay->command, "out of memory");
	error.code = prepare(replay, &error);
	if (error.code == VD_OK) {
		(void) vdi_sim_run_until(replay->env, all_open, replay, SETTLE_LIMIT);
		(void) vdi_sim_run_until_idle(replay->env); /* prints the initial state */
		if (replay->until_revision)
			vd_player_seek(replay->player, replay->until_revision); /* stays paused */
		else
			vd_player_resume(replay->player);
		run_to_the_end(replay);
		refresh(replay);
		(void) vdi_sim_run_until(replay->env, all_caught_up, replay, SETTLE_LIMIT);
		(void) vdi_sim_run_until_idle(replay->env);
		result = finish(replay);
	} else {
		result = fail(&error);
	}
	release(replay);
	(void) vd_env_free(replay->env);
	return result;
}

/* ---- Serving ---- */

static void toggle_pause(struct vd_player *player)
{
	struct vd_player_progress progress;

	vd_player_progress_get(player, &progress);
	if (progress.paused)
		vd_player_resume(player);
	else
		vd_player_pause(player);
}

static int serve_player(struct replay *replay, const sigset_t *signals)
{
	struct vd_server_options  options = VD_SERVER_OPTIONS_INIT;
	struct vd_player_progress progress;
	struct vdi_fault_plan	  faults;
	struct vd_server	 *server;
	struct vd_error		  error = { 0 };
	int			  result = VDI_EXIT_OK;

	options.listen = replay->listen;
	options.threads = replay->threads;
	options.resources_path = replay->resources_path;
	options.no_namespaces = true; /* the log has them */
	options.no_garbage_collector = true;
	error.code = vdi_fault_plan_init(&faults, replay->faults, &error);
	if (error.code != VD_OK)
		return fail(&error);
	options.cut_frames = faults.cut;
	options.cut_seed = (uint64_t) replay->seed;
	vdi_fault_plan_fini(&faults);
	error.code = vd_server_new(replay->env, vd_player_store(replay->player), &options, &server, &error);
	if (error.code != VD_OK)
		return fail(&error);
	error.code = vd_server_start(server, VD_SECONDS(600), &error);
	if (error.code == VD_OK) {
		(void) fprintf(stderr, "vedette: ready %s\n", vd_server_address(server));
		(void) fflush(stderr);
		if (!replay->paused)
			vd_player_resume(replay->player);
		while (vdi_command_wait_for_signal(signals) == SIGUSR1)
			toggle_pause(replay->player);
		vd_player_pause(replay->player);
		(void) vd_server_drain(server, DRAIN_TIMEOUT); /* remaining requests are canceled */
		error.code = vd_player_wait(replay->player, VD_PLAYER_END, VD_MS(0), &error);
		if (error.code != VD_OK && error.code != VD_TIMEOUT)
			result = fail(&error);
		vd_player_progress_get(replay->player, &progress);
		warn_of_tail(replay, &progress);
	} else {
		result = fail(&error);
	}
	(void) vd_server_free(server);
	return result;
}

static int serve(struct replay *replay)
{
	struct vd_player_options options;
	static const int	 also_heard[] = { SIGUSR1, 0 };
	struct vd_error		 error = { 0 };
	sigset_t		 signals;
	int			 result;

	if (vdi_command_process_init(&replay->log, also_heard, &signals, &replay->env) != VD_OK)
		return vdi_command_failed(replay->command, "cannot start threads");
	player_options(replay, &options);
	options.paused = true;
	options.writable = !replay->read_only;
	error.code = vd_player_open(replay->env, &options, &replay->player, &error);
	result = error.code == VD_OK ? serve_player(replay, &signals) : fail(&error);
	vd_player_close_wait(replay->player);
	(void) vd_env_free(replay->env);
	return result;
}

/* ---- Options ---- */

static int check(struct replay *replay)
{
	char *end;

	if (replay->speed_text && strcmp(replay->speed_text, "max") != 0) {
		replay->speed = strtod(replay->speed_text, &end);
		if (*end || end == replay->speed_text || !(replay->speed > 0) || replay->speed > 1e9)
			return vdi_command_usage_error(
				replay->command, "--speed must be \"max\" or a number above 0, not \"%s\"",
				replay->speed_text);
	}
	if (replay->listen && (replay->specs.count || replay->expect_path || replay->resume ||
			       replay->quiet || replay->until_revision))
		return vdi_command_usage_error(
			replay->command,
			"--listen excludes --watch, --expect, --resume, --quiet and --until");
	if (replay->listen == NULL && (replay->read_only || replay->threads || replay->paused))
		return vdi_command_usage_error(replay->command,
					       "--read-only, --paused and --threads require --listen");
	if (replay->rounds == 0 && replay->listen == NULL && replay->until_revision == 0)
		return vdi_command_usage_error(replay->command, "--loop 0 requires --listen or --until");
	if (replay->rounds != 1 && strcmp(replay->path, "-") == 0)
		return vdi_command_usage_error(
			replay->command, "--loop requires a file: standard input can be read only once");
	if (replay->listen == NULL && replay->specs.count == 0)
		return vdi_command_usage_error(
			replay->command,
			"no output: give --watch KIND (may be repeated) or --listen ADDR:PORT");
	return VDI_EXIT_OK;
}

static int run(const struct vdi_command *command, int argc, char **argv)
{
	const char	       *specs[WATCHES_MAX];
	const char	       *operands[1];
	size_t			operand_count;
	int			result;
	struct replay		replay = { .command = command,
					   .specs = { specs, 0, WATCHES_MAX },
					   .log = { "warning", "text" },
					   .rounds = 1 };
	const struct vdi_option table[] = {
		{ 0, "watch", VDI_OPTION_TEXTS, "SPEC",
		  "print the events of this watch: 'pods?namespace=a&labelSelector=x%3Dy&resourceVersion=5'",
		  &replay.specs },
		{ 0, "strict", VDI_OPTION_FLAG, NULL,
		  "fail if the log has a torn end or no closing line (default: warn)", &replay.strict },
		{ 0, "resume", VDI_OPTION_FLAG, NULL, "reopen a watch that ended, as clients do",
		  &replay.resume },
		{ 0, "expect", VDI_OPTION_TEXT, "FILE",
		  "compare the events with the lines of this file and print the first difference",
		  &replay.expect_path },
		{ 0, "quiet", VDI_OPTION_FLAG, NULL, "print nothing", &replay.quiet },
		{ 0, "listen", VDI_OPTION_TEXT, "ADDR:PORT",
		  "serve the recorded cluster to Kubernetes clients; port 0: chosen by the system",
		  &replay.listen },
		{ 0, "read-only", VDI_OPTION_FLAG, NULL, "reject writes of clients", &replay.read_only },
		{ 0, "paused", VDI_OPTION_FLAG, NULL, "start paused; SIGUSR1 resumes and pauses",
		  &replay.paused },
		{ 0, "threads", VDI_OPTION_COUNT, "N",
		  "number of event-loop threads (default: number of processors)", &replay.threads },
		{ 0, "resources", VDI_OPTION_TEXT, "FILE", "additional kinds (JSON)",
		  &replay.resources_path },
		{ 0, "speed", VDI_OPTION_TEXT, "N|max",
		  "multiple of the recorded speed, or max: as fast as watches read (default max)",
		  &replay.speed_text },
		{ 0, "start", VDI_OPTION_NUMBER, "REV", "apply the log up to this revision before starting",
		  &replay.start_revision },
		{ 0, "until", VDI_OPTION_NUMBER, "REV", "stop at this revision", &replay.until_revision },
		{ 0, "seed", VDI_OPTION_NUMBER, "N",
		  "seed of the faults and of the order of concurrent work (default 0)", &replay.seed },
		{ 0, "faults", VDI_OPTION_TEXT, "SPEC",
		  "faults, separated by commas: disconnect=P, compact=P, error=P, delay=D, delay-rate=P, "
		  "stale=D, refuse=P, lose=P, too-large=P, slow=D, "
		  "cut=P, disconnect@REV, compact@REV, error@REV; P: probability, D: duration "
		  "(see man vedette)",
		  &replay.faults },
		{ 0, "loop", VDI_OPTION_NUMBER, "N",
		  "number of times to play the log, at increasing revisions; 0: for ever, with --listen or "
		  "--until (default 1)",
		  &replay.rounds },
		{ 0, "history-bytes", VDI_OPTION_BYTES, "SIZE",
		  "maximum size of retained older revisions (default 64MiB)", &replay.history_bytes },
	};

	if (!vdi_command_parse(command, table, VDI_ARRAY_SIZE(table), argc, argv, operands, 1, &operand_count,
			       &replay.log, &result))
		return result;
	if (operand_count != 1)
		return vdi_command_usage_error(command, "LOG is missing");
	replay.path = operands[0];
	result = check(&replay);
	if (result != VDI_EXIT_OK)
		return result;
	return replay.listen ? serve(&replay) : print(&replay);
}

const struct vdi_command vdi_command_replay = {
	.name = "replay",
	.summary = "Replay a recorded event log: print watch events, or serve it.",
	.usage = "vedette replay [options] LOG",
	.details = "Applies the log to the watch cache as it was recorded. Prints one line of JSON\n"
		   "for each watch event:\n"
		   "  "
		   "{\"watch\":0,\"type\":\"ADDED\",\"rev\":12,\"key\":\"/registry/pods/a/"
		   "b\",\"object\":{...}},\n"
		   "also BOOKMARK and ERROR, and {\"watch\":0,\"end\":\"reason\"}. The same log, seed\n"
		   "and options print the same bytes.\n"
		   "Exit status: 0 success, 1 failure or a difference to --expect, 2 usage error.\n",
	.examples = "  vedette replay examples/small-cluster.ndjson --watch 'pods?namespace=web'\n"
		    "  vedette replay log.ndjson.zst --watch pods --watch deployments.apps --resume --faults "
		    "disconnect=0.01,delay=50ms --seed 7\n"
		    "  vedette replay log.ndjson --watch pods --expect pods.expected\n"
		    "  vedette replay log.ndjson --listen 127.0.0.1:8080 --speed 10\n",
	.run = run,
};
