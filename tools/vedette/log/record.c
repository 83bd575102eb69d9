/* vedette record: records an etcd or a Kubernetes endpoint into an event log, until a signal. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <vedette/vedette.h>

#include "command_line.h"
#include "command_process.h"
#include "env.h"
#include "etcd_options.h"
#include "import_command.h"
#include "kube_options.h"
#include "recorder.h"
#include "wait.h"

#define REDACT_MAX 64

struct record {
	const struct vdi_command  *command;
	struct vdi_etcd_settings   etcd;
	struct vdi_kube_settings   kube;
	struct vdi_import_settings import;
	const char		  *output;
	char			   key_prefix[VDI_ETCD_KEY_PREFIX_MAX];
	struct vdi_texts	   redact;
	int64_t			   until;
	bool			   resume, relist, quiet, strict;

	struct vd_env	      *env;
	struct vd_store	      *store;
	struct vdi_log_writer *writer;
	struct vdi_recorder   *recorder;
	vd_rev		       after;
	struct vd_error	       end; /* written before the signal */
	_Atomic bool	       has_ended;
};

/* On the recorder's actor: sends a signal, because the main thread waits for one. */
static void on_end(void *arg, const struct vd_error *error)
{
	struct record *record = arg;

	record->end = *error;
	atomic_store(&record->has_ended, true);
	(void) kill(getpid(), SIGTERM);
}

static int fail(const struct record *record, const struct vd_error *error)
{
	return vdi_command_failed(record->command, "%s",
				  error->message[0] ? error->message : vd_status_sentence(error->code));
}

static void say(const struct record *record, bool last)
{
	struct vdi_recorder_progress progress;

	vdi_recorder_progress_get(record->recorder, &progress);
	if (record->quiet || (!last && !isatty(STDERR_FILENO)))
		return;
	(void) fprintf(stderr, "%svedette record: %s revision %lld, %llu records%s%s%s",
		       isatty(STDERR_FILENO) ? "\r" : "", progress.is_watching ? "at" : "the state at",
		       (long long) progress.revision, (unsigned long long) progress.records,
		       progress.reconnects ? ", reconnected" : "",
		       progress.relists ? ", listed again after a gap" : "", last ? "\n" : " ");
	(void) fflush(stderr);
}

/* Waits for a signal; shows the position once per second. */
static void wait_for_the_end(const struct record *record, const sigset_t *signals)
{
	struct timespec second = { 1, 0 };

	while (sigtimedwait(signals, NULL, &second) < 0 && (errno == EAGAIN || errno == EINTR))
		say(record, false);
}

static vd_status open_log(struct record *record, struct vd_error *error)
{
	struct vdi_log_writer_options options = {
		.path = record->output,
		.resume = record->resume,
		.strict = record->strict,
		.source = record->etcd.urls ? record->etcd.endpoints[0] :
			  record->kube.session ?
					      vd_kube_server(vdi_kube_session_client(record->kube.session)) :
					      vdi_import_settings_source(&record->import),
		.redact = record->redact.items,
		.redact_count = record->redact.count
	};
	struct vdi_log_writer_totals totals = { 0 };
	vd_status status = vdi_log_writer_open(&options, &record->writer, &record->after, error);

	if (status == VD_EXISTS)
		return vd_error_set(error, VD_EXISTS, "%s already exists: --resume continues it",
				    record->output);
	if (status == VD_OK)
		vdi_log_writer_totals_get(record->writer, &totals);
	if (totals.cut)
		(void) fprintf(stderr,
			       "vedette record: warning: cut %llu bytes of an incomplete transaction off the "
			       "end of %s\n",
			       (unsigned long long) totals.cut, record->output);
	return status;
}

static int record_all(struct record *record, const sigset_t *signals)
{
	struct vdi_recorder_options options = { .store = record->store,
						.writer = record->writer,
						.prefix = vd_bytes_of(record->key_prefix),
						.after = record->after,
						.until = record->until,
						.relist_path = record->relist ? record->output : NULL,
						.ended = on_end,
						.arg = record };
	struct vdi_wait		    wait;
	bool			    has_ended;

	if (vdi_recorder_new(record->env, &options, &record->recorder) != VD_OK)
		return vdi_command_failed(record->command, "out of memory");
	wait_for_the_end(record, signals);
	has_ended = atomic_load(&record->has_ended);
	say(record, true);
	vdi_wait_init(&wait, record->env);
	vdi_recorder_close(record->recorder, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	return has_ended && record->end.code != VD_OK ? fail(record, &record->end) : VDI_EXIT_OK;
}

static int run_record(struct record *record, const sigset_t *signals)
{
	struct vd_error error = { 0 };
	int		result;

	if (record->etcd.urls)
		error.code = vdi_etcd_settings_open(&record->etcd, record->env, &record->store, &error);
	else
		error.code = vdi_kube_settings_open(record->command, &record->kube, record->env, true,
						    &record->store, &error);
	if (error.code != VD_OK) {
		(void) fail(record, &error);
		return record->etcd.urls ? vdi_etcd_settings_exit(error.code) :
					   vdi_kube_settings_exit(&record->kube, error.code);
	}
	error.code = open_log(record, &error);
	result = error.code == VD_OK ? record_all(record, signals) : fail(record, &error);
	if (record->writer) {
		error.code = vdi_log_writer_close(record->writer, &error);
		if (error.code != VD_OK && result == VDI_EXIT_OK)
			result = fail(record, &error);
	}
	(void) vd_store_close_wait(record->store);
	return result;
}

/* Imports a file at once. */
static int import(struct record *record)
{
	struct vd_error		 error = { 0 }, closing = { 0 };
	struct vdi_import_totals totals = { 0 };

	error.code = open_log(record, &error);
	if (error.code != VD_OK)
		return fail(record, &error);
	error.code = vdi_import_run(&record->import, record->writer, &totals, &error);
	closing.code = vdi_log_writer_close(record->writer, &closing);
	if (error.code != VD_OK)
		return fail(record, &error);
	if (closing.code != VD_OK)
		return fail(record, &closing);
	if (!record->quiet)
		(void) fprintf(stderr,
			       "vedette record: %llu of %llu imported, %llu ignored, up to revision %lld\n",
			       (unsigned long long) totals.taken, (unsigned long long) totals.read,
			       (unsigned long long) totals.skipped, (long long) totals.revision);
	return VDI_EXIT_OK;
}

static int check_import(const struct record *record)
{
	if (record->resume || record->relist || record->until || record->strict)
		return vdi_command_usage_error(record->command,
					       "--resume, --strict, --relist and --until exclude --from-...");
	if (record->import.watch && strcmp(record->import.watch, "-") == 0)
		return vdi_command_usage_error(
			record->command, "--from-watch reads its file twice, so it cannot be standard input");
	return VDI_EXIT_OK;
}

static int run(const struct vdi_command *command, int argc, char **argv)
{
	const char	       *redact[REDACT_MAX];
	struct record		record = { .command = command,
					   .etcd = VDI_ETCD_SETTINGS_INIT,
					   .redact = { redact, 0, REDACT_MAX } };
	struct vdi_log_settings log = VDI_LOG_SETTINGS_INIT;
	sigset_t		signals;
	size_t			operand_count;
	int			result;
	unsigned		sources;
	const struct vdi_option table[] = {
		VDI_ETCD_OPTION_TABLE(&record.etcd),
		VDI_KUBE_OPTION_TABLE(&record.kube),
		VDI_KUBE_KINDS_OPTION_TABLE(&record.kube),
		VDI_IMPORT_OPTION_TABLE(&record.import),
		{ 'o', "output", VDI_OPTION_TEXT, "FILE",
		  "event log to write; compressed if the name ends in .zst", &record.output },
		{ 0, "resume", VDI_OPTION_FLAG, NULL,
		  "append to an existing log; an incomplete transaction at its end is removed, with a "
		  "warning",
		  &record.resume },
		{ 0, "strict", VDI_OPTION_FLAG, NULL,
		  "with --resume: fail if the log ends in an incomplete transaction", &record.strict },
		{ 0, "relist", VDI_OPTION_FLAG, NULL,
		  "if the next revision was compacted: continue with a new list instead of ending; the log "
		  "marks the place",
		  &record.relist },
		{ 0, "redact", VDI_OPTION_TEXTS, "PATH",
		  "clear this path in every value, such as .data (may be repeated)", &record.redact },
		{ 0, "until", VDI_OPTION_NUMBER, "REV", "end after recording this revision", &record.until },
		{ 'q', "quiet", VDI_OPTION_FLAG, NULL, "do not report progress", &record.quiet },
	};

	vdi_kube_settings_init(&record.kube);
	if (!vdi_command_parse(command, table, VDI_ARRAY_SIZE(table), argc, argv, NULL, 0, &operand_count,
			       &log, &result))
		return result;
	if (!vdi_etcd_settings_check(command, &record.etcd, &result))
		return result;
	sources = !!record.etcd.urls + vdi_kube_settings_given(&record.kube) +
		  vdi_import_settings_count(&record.import);
	if (sources != 1)
		return vdi_command_usage_error(
			command,
			sources ? "--etcd, --server (or --kubeconfig) and --from-... exclude each other" :
				  "no source: give --etcd URL, --server URL, --kubeconfig FILE, "
				  "--from-audit, --from-watch, --from-kine or --from-snapshot");
	if (record.import.resources && record.import.watch == NULL)
		return vdi_command_usage_error(command, "--resources requires --from-watch");
	if (record.output == NULL)
		return vdi_command_usage_error(command, "--output FILE is required");
	if (vdi_import_settings_count(&record.import)) {
		result = check_import(&record);
		return result == VDI_EXIT_OK ? import(&record) : result;
	}
	vdi_etcd_settings_key_prefix(&record.etcd, record.key_prefix);
	if (!vdi_kube_settings_check(command, &record.kube, &result))
		return result;
	if (vdi_command_process_init(&log, NULL, &signals, &record.env) != VD_OK)
		return vdi_command_failed(command, "cannot start threads");
	record.etcd.compaction_interval = (vd_dur) { 0 }; /* recording must not compact */
	result = run_record(&record, &signals);
	vdi_kube_settings_fini(&record.kube);
	(void) vd_env_free(record.env);
	return result;
}

const struct vdi_command vdi_command_record = {
	.name = "record",
	.summary = "Record an etcd or a Kubernetes endpoint into an event log.",
	.usage = "vedette record (--etcd URL[,URL...] | --server URL | --kubeconfig FILE | --from-... FILE) "
		 "--output FILE [options]",
	.details = "Records the current state, then every revision once, until Ctrl-C, SIGTERM or\n"
		   "--until. --resume continues a recording that was stopped or killed. If the next\n"
		   "revision was compacted, recording ends with an error, because a log must not\n"
		   "have a gap (see --relist). A change of a Kubernetes endpoint is written when\n"
		   "all kinds have passed its revision, after 10 to 15 s.\n"
		   "\n"
		   "--from-... converts a file into a log; docs/EVENT-LOG.md describes each\n"
		   "conversion and its limits. Logs are input of `vedette replay` and `vedette\n"
		   "serve --load`.\n"
		   "Exit status: 0 complete or ended by a signal, 1 failure, 2 usage error.\n",
	.examples = "  vedette record --etcd http://127.0.0.1:2379 --output cluster.ndjson.zst\n"
		    "  vedette record --kubeconfig ~/.kube/config --kind pods --kind deployments.apps "
		    "--output cluster.ndjson.zst --relist\n"
		    "  kubectl get pods -A --watch -o json --output-watch-events >watch.json; vedette record "
		    "--from-watch watch.json --output pods.ndjson\n"
		    "  vedette record --from-snapshot backup.db --output cluster.ndjson.zst\n"
		    "  vedette record --etcd https://a:2379,https://b:2379 --etcd-cacert ca.pem "
		    "--etcd-prefix /registry --redact .data -o cluster.ndjson --resume\n",
	.run = run,
};
