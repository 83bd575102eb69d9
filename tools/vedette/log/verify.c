/* vedette verify: checks the watch guarantees of an etcd or a Kubernetes endpoint until it is stopped. An
 * etcd is one run of verify_run.h over all keys; a Kubernetes endpoint has one run per kind, because each of
 * its watches covers one kind. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <vedette/vedette.h>

#include "buffer.h"
#include "command_line.h"
#include "command_process.h"
#include "env.h"
#include "etcd_options.h"
#include "kube_options.h"
#include "lock.h"
#include "verify_run.h"
#include "wait.h"

/* Prefix of the objects written to a Kubernetes endpoint. */
#define CONFIG_MAPS "/registry/configmaps/"

struct one_run {
	struct vdi_verify_run	  *run;
	struct vdi_verify_progress progress; /* after it is closed */
	struct vdi_wait		   closed;
};

struct verify {
	const struct vdi_command *command;
	struct vdi_etcd_settings  etcd;
	struct vdi_kube_settings  kube;
	const char		 *output;
	char			  key_prefix[VDI_ETCD_KEY_PREFIX_MAX];
	bool			  drive, keep_going, quiet;
	unsigned		  writers;
	vd_dur			  duration;
	char			  write_prefix[160];
	char namespace_name[64]; /* on a Kubernetes endpoint, created for the writers; "": none */

	struct vd_env	*env;
	struct vd_store *store;
	struct one_run	*runs;
	size_t		 run_count;

	/* Owned by the actors until the runs are closed; under lock. */
	struct vdi_lock	     lock;
	uint64_t	     violations;
	struct vdi_violation first;
	struct vd_error	     failure;
};

/* ---- Violations and failures ---- */

static void end_soon(void)
{
	(void) kill(getpid(), SIGTERM); /* the main thread waits for signals */
}

static void append_string(struct vdi_buffer *line, const char *name, const char *text)
{
	vdi_buffer_printf(line, ",\"%s\":", name);
	vdi_buffer_append_json_string(line, vd_bytes_of(text));
}

static void print_violation(const struct verify *verify, const struct vdi_violation *violation)
{
	struct vdi_buffer line;

	if (strcmp(verify->output, "json") != 0) {
		printf("violated: %s: %s%s%s%s%s%s\n", vdi_guarantee_name(violation->guarantee),
		       violation->text, *violation->key ? " (key " : "", violation->key,
		       *violation->key ? ")" : "", *violation->stream ? ", watch: " : "", violation->stream);
		(void) fflush(stdout);
		return;
	}
	vdi_buffer_init(&line, 1 << 16);
	vdi_buffer_printf(&line, "{\"violation\":\"%s\",\"revision\":%lld,\"other\":%lld",
			  vdi_guarantee_name(violation->guarantee), (long long) violation->revision,
			  (long long) violation->other);
	append_string(&line, "key", violation->key);
	append_string(&line, "watch", violation->stream);
	append_string(&line, "text", violation->text);
	vdi_buffer_append_text(&line, "}\n");
	if (vdi_buffer_status(&line) == VD_OK)
		(void) fwrite(line.data, 1, line.size, stdout);
	(void) fflush(stdout);
	vdi_buffer_fini(&line);
}

static void on_violation(void *arg, const struct vdi_violation *violation)
{
	struct verify *verify = arg;
	bool	       is_first;

	vdi_lock_acquire(&verify->lock);
	is_first = verify->violations++ == 0;
	if (is_first)
		verify->first = *violation;
	if (is_first || verify->keep_going)
		print_violation(verify, violation);
	vdi_lock_release(&verify->lock);
	if (!verify->keep_going)
		end_soon();
}

static void on_failure(void *arg, const struct vd_error *error)
{
	struct verify *verify = arg;

	vdi_lock_acquire(&verify->lock);
	verify->failure = *error;
	vdi_lock_release(&verify->lock);
	end_soon();
}

/* Adds b to a; is_running: at least one is. */
static void add_position(struct vdi_verify_progress *a, const struct vdi_verify_progress *b)
{
	a->totals.events += b->totals.events;
	a->totals.revisions += b->totals.revisions;
	a->totals.progresses += b->totals.progresses;
	a->totals.lists += b->totals.lists;
	a->totals.resumes += b->totals.resumes;
	a->totals.acknowledgements += b->totals.acknowledgements;
	a->totals.violations += b->totals.violations;
	a->totals.keys += b->totals.keys;
	a->totals.newest = VDI_MAX(a->totals.newest, b->totals.newest);
	a->writes += b->writes;
	a->unknown_writes += b->unknown_writes;
	a->reconnects += b->reconnects;
	a->restarts += b->restarts;
	a->is_running |= b->is_running;
}

static void say(const struct verify *verify)
{
	struct vdi_verify_progress progress = { 0 }, one;

	if (verify->quiet || !isatty(STDERR_FILENO))
		return;
	for (size_t i = 0; i < verify->run_count; i++) {
		vdi_verify_run_progress_get(verify->runs[i].run, &one);
		add_position(&progress, &one);
	}
	(void) fprintf(stderr,
		       "\rvedette verify: revision %lld, %llu events, %llu lists, %llu watches from the "
		       "past, %llu writes, %llu connections lost ",
		       (long long) progress.totals.newest, (unsigned long long) progress.totals.events,
		       (unsigned long long) progress.totals.lists,
		       (unsigned long long) progress.totals.resumes, (unsigned long long) progress.writes,
		       (unsigned long long) progress.reconnects);
	(void) fflush(stderr);
}

static void print_result(const struct verify *verify, const struct vdi_verify_progress *progress)
{
	const struct vdi_verifier_totals *totals = &progress->totals;

	if (isatty(STDERR_FILENO) && !verify->quiet)
		(void) fputc('\n', stderr);
	if (strcmp(verify->output, "json") == 0)
		printf("{\"result\":\"%s\",\"violations\":%llu,\"events\":%llu,\"revisions\":%llu,"
		       "\"bookmarks\":%llu,\"lists\":%llu,\"resumes\":%llu,"
		       "\"writes\":%llu,\"writesUnknown\":%llu,\"writesSeen\":%llu,\"reconnects\":%llu,"
		       "\"restarts\":%llu,\"keys\":%zu,\"newest\":%lld}\n",
		       verify->violations ? "violated" : "ok", (unsigned long long) totals->violations,
		       (unsigned long long) totals->events, (unsigned long long) totals->revisions,
		       (unsigned long long) totals->progresses, (unsigned long long) totals->lists,
		       (unsigned long long) totals->resumes, (unsigned long long) progress->writes,
		       (unsigned long long) progress->unknown_writes,
		       (unsigned long long) totals->acknowledgements,
		       (unsigned long long) progress->reconnects, (unsigned long long) progress->restarts,
		       totals->keys, (long long) totals->newest);
	else
		printf("%s: %llu events of %llu revisions, %llu bookmarks, %llu lists, %llu watches from the "
		       "past, %llu writes (%llu unanswered), %llu connections lost, "
		       "history lost to compaction %llu times\n",
		       verify->violations ? "violated" : "all guarantees held",
		       (unsigned long long) totals->events, (unsigned long long) totals->revisions,
		       (unsigned long long) totals->progresses, (unsigned long long) totals->lists,
		       (unsigned long long) totals->resumes, (unsigned long long) progress->writes,
		       (unsigned long long) progress->unknown_writes,
		       (unsigned long long) progress->reconnects, (unsigned long long) progress->restarts);
	(void) fflush(stdout);
}

/* ---- The writers' namespace ---- */

static void make_config_map(void *arg, const char *key, unsigned writer, uint64_t random, char *value,
			    size_t size)
{
	struct verify *verify = arg;
	const char    *slash = strrchr(key, '/');

	snprintf(value, size,
		 "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
		 "\"%s\"},\"data\":{\"writer\":\"%u\",\"random\":\"%llu\"}}",
		 slash ? slash + 1 : key, verify->namespace_name, writer, (unsigned long long) random);
}

static vd_status send_namespace(struct verify *verify, const char *method, const char *path, const char *body,
				struct vd_error *reterr)
{
	return vdi_kube_session_request(verify->kube.session, method, path, "application/json", body, NULL,
					reterr);
}

static vd_status make_namespace(struct verify *verify, struct vd_error *reterr)
{
	char body[200];

	snprintf(verify->namespace_name, sizeof verify->namespace_name, "vedette-verify-%016llx",
		 (unsigned long long) vd_env_random(verify->env));
	snprintf(verify->write_prefix, sizeof verify->write_prefix, CONFIG_MAPS "%s/",
		 verify->namespace_name);
	snprintf(body, sizeof body,
		 "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"%s\"}}",
		 verify->namespace_name);
	return send_namespace(verify, "POST", "/api/v1/namespaces", body, reterr);
}

/* Removes the namespace after the writers have deleted their objects. Reports a failure. */
static void remove_namespace(struct verify *verify)
{
	char		path[128];
	struct vd_error error = { 0 };

	snprintf(path, sizeof path, "/api/v1/namespaces/%s", verify->namespace_name);
	if (send_namespace(verify, "DELETE", path, NULL, &error) != VD_OK)
		(void) fprintf(stderr, "vedette verify: cannot remove the namespace %s: %s\n",
			       verify->namespace_name, error.message);
}

/* ---- Running ---- */

static void wait_for_the_end(const struct verify *verify, const sigset_t *signals)
{
	struct timespec tick = { 0, 200000000 };
	vd_mono due = verify->duration.ns ? vd_mono_add(vd_env_now(verify->env), verify->duration) : VD_NEVER;

	while (vd_env_now(verify->env).ns < due.ns && sigtimedwait(signals, NULL, &tick) < 0 &&
	       (errno == EAGAIN || errno == EINTR))
		say(verify);
}

static vd_status start_run(struct verify *verify, struct vd_bytes prefix, size_t of)
{
	bool is_kube = verify->etcd.urls == NULL;
	bool writes = verify->drive && (!is_kube || vd_bytes_equal(prefix, vd_bytes_of(CONFIG_MAPS)));
	/* Many kinds share one server, so each is checked less often. */
	int64_t			  pace = (int64_t) (of / 8 + 1);
	struct vdi_verify_options options = { .store = verify->store,
					      .prefix = prefix,
					      .write_prefix = vd_bytes_of(verify->write_prefix),
					      .writers = writes ? verify->writers : 0,
					      .one_by_one = is_kube,
					      .make_value = is_kube ? make_config_map : NULL,
					      .list_interval = VD_SECONDS(2 * pace),
					      .resume_interval = VD_SECONDS(pace),
					      .settle_time = VD_SECONDS(is_kube && !writes ? 3 : 10),
					      .in_parts = is_kube,
					      .violated = on_violation,
					      .failed = on_failure,
					      .arg = verify };
	vd_status status = vdi_verify_run_new(verify->env, &options, &verify->runs[verify->run_count].run);

	verify->run_count += status == VD_OK;
	return status;
}

static vd_status start_runs(struct verify *verify)
{
	const struct vdi_endpoint_kinds *kinds = &verify->kube.loaded;
	vd_status			 status = VD_OK;

	verify->runs = vdi_calloc(kinds->count + 1, sizeof *verify->runs);
	if (verify->runs == NULL)
		return VD_NOMEM;
	if (verify->etcd.urls)
		return start_run(verify, vd_bytes_of(verify->key_prefix), 1);
	for (size_t i = 0; i < kinds->count && status == VD_OK; i++)
		status = start_run(verify, vd_bytes_of(kinds->items[i].prefix), kinds->count);
	return status;
}

/* Closes all runs concurrently, because each may wait for its last events. */
static void close_runs(struct verify *verify, struct vdi_verify_progress *ret_progress)
{
	for (size_t i = 0; i < verify->run_count; i++) {
		vdi_wait_init(&verify->runs[i].closed, verify->env);
		vdi_verify_run_close(verify->runs[i].run, &verify->runs[i].progress, vdi_wait_signal_arg,
				     &verify->runs[i].closed);
	}
	*ret_progress = (struct vdi_verify_progress) { 0 };
	for (size_t i = 0; i < verify->run_count; i++) {
		vdi_wait_wait(&verify->runs[i].closed);
		vdi_wait_fini(&verify->runs[i].closed);
		add_position(ret_progress, &verify->runs[i].progress);
	}
	vdi_free(verify->runs);
}

static int verify_store(struct verify *verify, const sigset_t *signals)
{
	struct vdi_verify_progress progress;
	vd_status		   status = start_runs(verify);

	if (status == VD_OK)
		wait_for_the_end(verify, signals);
	close_runs(verify, &progress);
	if (status != VD_OK)
		return vdi_command_failed(verify->command, "%s", vd_status_sentence(status));
	print_result(verify, &progress);
	if (verify->failure.code != VD_OK)
		return vdi_command_failed(verify->command, "%s", verify->failure.message);
	if (!progress.is_running)
		return vdi_command_failed(verify->command,
					  "ended before the first list was complete: nothing was checked");
	return verify->violations ? VDI_EXIT_FAILED : VDI_EXIT_OK;
}

/* Creates the writers' namespace; fails if configmaps are not verified. */
static vd_status drive_kube(struct verify *verify, struct vd_error *reterr)
{
	const struct vdi_endpoint_kinds *kinds = &verify->kube.loaded;

	for (size_t i = 0; i < kinds->count; i++)
		if (strcmp(kinds->items[i].prefix, CONFIG_MAPS) == 0)
			return make_namespace(verify, reterr);
	return vd_error_set(reterr, VD_INVALID_ARGUMENT,
			    "--drive writes configmaps, but --kind excludes them");
}

static int run_verify(struct verify *verify, const sigset_t *signals)
{
	struct vd_error error = { 0 };
	int		result;

	if (verify->etcd.urls)
		error.code = vdi_etcd_settings_open(&verify->etcd, verify->env, &verify->store, &error);
	else
		error.code = vdi_kube_settings_open(verify->command, &verify->kube, verify->env, false,
						    &verify->store, &error);
	if (error.code != VD_OK) {
		(void) vdi_command_failed(verify->command, "%s",
					  error.message[0] ? error.message : vd_status_sentence(error.code));
		return verify->etcd.urls ? vdi_etcd_settings_exit(error.code) :
					   vdi_kube_settings_exit(&verify->kube, error.code);
	}
	if (verify->drive && verify->etcd.urls == NULL && (error.code = drive_kube(verify, &error)) != VD_OK)
		result = vdi_command_failed(verify->command, "cannot drive: %s", error.message);
	else
		result = verify_store(verify, signals);
	(void) vd_store_close_wait(verify->store);
	if (*verify->namespace_name && error.code == VD_OK)
		remove_namespace(verify);
	return result;
}

static int run(const struct vdi_command *command, int argc, char **argv)
{
	struct verify verify = {
		.command = command, .etcd = VDI_ETCD_SETTINGS_INIT, .output = "text", .writers = 8
	};
	struct vdi_log_settings log = VDI_LOG_SETTINGS_INIT;
	sigset_t		signals;
	size_t			operand_count;
	int			result;
	const struct vdi_option table[] = {
		VDI_ETCD_OPTION_TABLE(&verify.etcd),
		VDI_KUBE_OPTION_TABLE(&verify.kube),
		VDI_KUBE_KINDS_OPTION_TABLE(&verify.kube),
		{ 0, "drive", VDI_OPTION_FLAG, NULL,
		  "also write keys below PREFIX/vedette-verify-..., or configmaps in a namespace of that "
		  "name; removed at the end",
		  &verify.drive },
		{ 0, "writers", VDI_OPTION_COUNT, "N", "number of concurrent writers (default 8)",
		  &verify.writers },
		{ 0, "duration", VDI_OPTION_DURATION, "DURATION", "end after this time (default: at Ctrl-C)",
		  &verify.duration },
		{ 0, "keep-going", VDI_OPTION_FLAG, NULL, "continue after the first violation",
		  &verify.keep_going },
		{ 'o', "output", VDI_OPTION_CHOICE, "FORM", "output format: text or json (default text)",
		  &verify.output, "text|json" },
		{ 'q', "quiet", VDI_OPTION_FLAG, NULL, "do not report progress", &verify.quiet },
	};

	vdi_kube_settings_init(&verify.kube);
	vdi_lock_init(&verify.lock, VDI_LOCK_LEAF);
	if (!vdi_command_parse(command, table, VDI_ARRAY_SIZE(table), argc, argv, NULL, 0, &operand_count,
			       &log, &result))
		return result;
	if (!vdi_etcd_settings_check(command, &verify.etcd, &result))
		return result;
	if (!verify.etcd.urls == !vdi_kube_settings_given(&verify.kube))
		return vdi_command_usage_error(
			command, verify.etcd.urls ?
					 "either --etcd or --server, not both" :
					 "no endpoint: give --etcd URL, --server URL or --kubeconfig FILE");
	if (verify.writers == 0 || verify.writers > 256)
		return vdi_command_usage_error(command, "--writers must be 1 to 256");
	vdi_etcd_settings_key_prefix(&verify.etcd, verify.key_prefix);
	if (strlen(verify.key_prefix) > 100)
		return vdi_command_usage_error(command, "--etcd-prefix must not exceed 100 bytes");
	if (!vdi_kube_settings_check(command, &verify.kube, &result))
		return result;
	if (vdi_command_process_init(&log, NULL, &signals, &verify.env) != VD_OK)
		return vdi_command_failed(command, "cannot start threads");
	(void) snprintf(verify.write_prefix, sizeof verify.write_prefix, "%svedette-verify-%016llx/",
			*verify.key_prefix ? verify.key_prefix : "/",
			(unsigned long long) vd_env_random(verify.env));
	verify.etcd.compaction_interval = (vd_dur) { 0 }; /* verification must not compact */
	result = run_verify(&verify, &signals);
	vdi_kube_settings_fini(&verify.kube);
	(void) vd_env_free(verify.env);
	vdi_lock_fini(&verify.lock);
	return result;
}

const struct vdi_command vdi_command_verify = {
	.name = "verify",
	.summary = "Check the watch guarantees of an etcd or a Kubernetes endpoint.",
	.usage =
		"vedette verify (--etcd URL[,URL...] | --server URL | --kubeconfig FILE) [--drive] [options]",
	.details = "Runs watches, watches from past revisions, lists and (with --drive) writers,\n"
		   "and compares them while they run: unique, ordered, atomic, reliable, resumable,\n"
		   "bookmarkable, right previous values, right lists. Server faults that clients\n"
		   "ignore are violations, too: a repeated response, a missing previous value,\n"
		   "progress that goes back. The first violation is printed with its revisions and\n"
		   "keys, and ends the run.\n"
		   "\n"
		   "With --drive, a Kubernetes endpoint gets configmaps in a namespace that is\n"
		   "created for them and removed. Kubernetes watches have neither transactions nor\n"
		   "previous values: there atomic and previous are not checked, and each kind is\n"
		   "checked separately.\n"
		   "Exit status: 0 all guarantees held, 1 a violation or a failure, 2 usage error.\n",
	.examples = "  vedette verify --etcd http://127.0.0.1:2379 --drive --duration 1m\n"
		    "  vedette verify --server http://127.0.0.1:8080 --drive --duration 1m\n"
		    "  vedette verify --etcd https://a:2379,https://b:2379 --etcd-cacert ca.pem "
		    "--etcd-prefix /registry -o json\n",
	.run = run,
};
