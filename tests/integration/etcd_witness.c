/* A program on vedette/etcd.h that follows commands and reports its events and answers, for
 * `peers etcd-faults` (tests/peers/etcd_faults.go), which compares the reports with those of etcd's own
 * client, and for measurements.
 *
 * The endpoints come from $ETCD_ENDPOINTS (ETCD_CACERT, ETCD_CERT, ETCD_KEY with TLS). Commands are read from
 * stdin, one per line; reports are written to stdout, one JSON object per line:
 *
 * 	open ID REVISION FLAGS KEY [END]	a watch; FLAGS: p progress, v previous records,
 * 						f fragments, l require leader, u no puts,
 * 						d no deletes, c created, - none
 * 	close ID, progress ID			ends it; requests progress
 * 	hold ID, flow ID			stops reading it, and continues: back-pressure
 * 	writers COUNT INTERVAL_MS KEYS SEED PREFIX
 * 						so many writers, each with one operation at a time,
 * 						then a pause
 * 	stop					no further writes; reports when all are answered
 * 	put KEY VALUE, get KEY [END]		one call
 * 	lease TTL				grants one and keeps it alive until it ends
 * 	usage					memory and processor time of this process
 * 	quit					closes everything; exit 0
 *
 * 	{"watch":1,"open":"ok"}  {"watch":1,"created":true,"header":5}
 * 	{"watch":1,"header":9,"events":[{"rev":7,"op":"put","key":"a","create":7,"version":1,"value":"b",
 * 		"prev":6}]}
 * 	{"watch":1,"progress":9}  {"watch":1,"closed":true}
 * 	{"watch":1,"end":"expired","compacted":20,"message":"..."}
 * 	{"writer":0,"op":"put","key":"a","value":"w0-1","rev":7}
 * 	{"writer":0,"op":"put","key":"a","value":"w0-1","error":"unavailable","maybe":true,"message":"..."}
 *
 * One actor for each watch and each writer; a line is written at once, under a lock. With --quiet events are
 * only counted ("usage" reports how many). */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vedette/etcd.h>

#include "base.h"
#include "buffer.h"
#include "lock.h"
#include "rand.h"
#include "wait.h"

#define WATCH_COUNT_MAX 20000
#define WRITER_COUNT_MAX 64
#define LINE_SIZE_MAX (512u << 20)

static struct vd_env	   *env;
static struct vd_etcd	   *client;
static struct vdi_lock	    print_lock;
static struct vdi_lock	    close_lock; /* a run that has seen `closing` frees the actor under this lock */
static struct vdi_condition all_gone;
static unsigned		    watch_count; /* existing ones; under close_lock */
static bool		    quiet;
static atomic_ullong	    event_count;

static void die(const char *what, vd_status status, const struct vd_error *error)
{
	fprintf(stderr, "etcd_witness: %s: %s %s\n", what, vd_status_name(status),
		error != NULL ? error->message : "");
	exit(1);
}

/* ---- Facts ---- */

static void line_begin(struct vdi_buffer *line)
{
	vdi_buffer_init(line, LINE_SIZE_MAX);
	vdi_buffer_append_char(line, '{');
}

static void line_text(struct vdi_buffer *line, const char *name, struct vd_bytes text)
{
	vdi_buffer_printf(line, "%s\"%s\":", line->size > 1 ? "," : "", name);
	vdi_buffer_append_json_string(line, text);
}

static void line_number(struct vdi_buffer *line, const char *name, int64_t number)
{
	vdi_buffer_printf(line, "%s\"%s\":%" PRId64, line->size > 1 ? "," : "", name, number);
}

static void line_true(struct vdi_buffer *line, const char *name)
{
	vdi_buffer_printf(line, "%s\"%s\":true", line->size > 1 ? "," : "", name);
}

static void line_error(struct vdi_buffer *line, const char *name, const struct vd_etcd_error *error)
{
	line_text(line, name, vd_bytes_of(vd_status_name(error->error.code)));
	if (error->maybe_applied)
		line_true(line, "maybe");
	line_text(line, "message", vd_bytes_of(error->error.message));
}

static void line_end(struct vdi_buffer *line)
{
	vdi_buffer_append_text(line, "}\n");
	if (vdi_buffer_status(line) != VD_OK)
		die("a line", vdi_buffer_status(line), NULL);
	vdi_lock_acquire(&print_lock);
	fwrite(line->data, 1, line->size, stdout);
	fflush(stdout);
	vdi_lock_release(&print_lock);
	vdi_buffer_fini(line);
}

/* ---- Watches ---- */

struct witness_watch {
	int		      id;
	struct vd_actor	     *actor;
	struct vd_etcd_watch *watch;   /* the actor's */
	bool		      closing; /* under close_lock */
	atomic_bool	      held;
	atomic_bool	      gone;
};

static struct witness_watch *watches[WATCH_COUNT_MAX];

static void watch_tell(struct witness_watch *watch, const struct vd_etcd_watch_response *response)
{
	struct vdi_buffer line;

	atomic_fetch_add(&event_count, response->event_count);
	if (quiet)
		return;
	line_begin(&line);
	line_number(&line, "watch", watch->id);
	if (response->created)
		line_true(&line, "created");
	if (vd_etcd_watch_is_progress(response))
		line_number(&line, "progress", response->header.revision);
	else
		line_number(&line, "header", response->header.revision);
	if (response->event_count > 0)
		vdi_buffer_append_text(&line, ",\"events\":[");
	for (size_t i = 0; i < response->event_count; i++) {
		const struct vd_store_event *event = &response->events[i];

		vdi_buffer_printf(&line, "%s{\"rev\":%" PRId64 ",\"op\":\"%s\",\"key\":", i > 0 ? "," : "",
				  event->kv->mod_rev, event->is_delete ? "delete" : "put");
		vdi_buffer_append_json_string(&line, vd_kv_key(event->kv));
		if (!event->is_delete) {
			vdi_buffer_printf(&line,
					  ",\"create\":%" PRId64 ",\"version\":%" PRId64 ",\"lease\":%" PRId64
					  ",\"value\":",
					  event->kv->create_rev, event->kv->version, event->kv->lease);
			vdi_buffer_append_json_string(&line, vd_kv_value(event->kv));
		}
		if (event->previous != NULL)
			vdi_buffer_printf(&line, ",\"prev\":%" PRId64, event->previous->mod_rev);
		vdi_buffer_append_char(&line, '}');
	}
	if (response->event_count > 0)
		vdi_buffer_append_char(&line, ']');
	line_end(&line);
}

static void watch_gone(void *arg)
{
	struct witness_watch *watch = arg;
	struct vdi_buffer     line;

	if (!quiet) {
		line_begin(&line);
		line_number(&line, "watch", watch->id);
		line_true(&line, "closed");
		line_end(&line);
	}
	vdi_lock_acquire(&close_lock);
	atomic_store(&watch->gone, true); /* the slot may be used again */
	if (--watch_count == 0)
		vdi_condition_signal(&all_gone);
	vdi_lock_release(&close_lock);
}

static bool is_closing(const struct witness_watch *watch)
{
	bool closing;

	vdi_lock_acquire(&close_lock);
	closing = watch->closing;
	vdi_lock_release(&close_lock);
	return closing;
}

static void watch_ask_to_close(struct witness_watch *watch)
{
	vdi_lock_acquire(&close_lock);
	watch->closing = true;
	vd_actor_wake(watch->actor);
	vdi_lock_release(&close_lock);
}

static void watches_await_gone(void)
{
	vdi_lock_acquire(&close_lock);
	while (watch_count)
		vdi_condition_wait(&all_gone, &close_lock);
	vdi_lock_release(&close_lock);
}

static void watch_run(void *arg)
{
	struct witness_watch	     *watch = arg;
	struct vd_etcd_watch_response response;
	struct vd_etcd_error	      error;
	struct vdi_buffer	      line;
	vd_status		      status = VD_OK;

	for (int i = 0; i < 100 && watch->watch != NULL && !atomic_load(&watch->held) && !is_closing(watch);
	     i++) {
		status = vd_etcd_watch_next(watch->watch, &response, &error);
		if (status == VD_AGAIN)
			return;
		if (status == VD_OK) {
			watch_tell(watch, &response);
			continue;
		}
		line_begin(&line);
		line_number(&line, "watch", watch->id);
		line_error(&line, "end", &error);
		if (status == VD_EXPIRED)
			line_number(&line, "compacted", error.error.compacted);
		line_end(&line);
		vd_etcd_watch_close(watch->watch);
		watch->watch = NULL;
		return;
	}
	if (is_closing(watch)) {
		vd_etcd_watch_close(watch->watch);
		watch->watch = NULL;
		vd_actor_close(watch->actor, watch_gone, watch);
	} else if (watch->watch != NULL && !atomic_load(&watch->held)) {
		vd_actor_wake(watch->actor);
	}
}

static void watch_ready(void *arg)
{
	vd_actor_wake(((struct witness_watch *) arg)->actor);
}

/* A slot is used again after its watch has ended. */
static void watch_open(int id, vd_rev revision, const char *flags, const char *key, const char *end)
{
	struct witness_watch	     *watch = watches[id];
	struct vd_etcd_watch_request  request = { .key = vd_bytes_of(key), .revision = revision };
	const struct vd_actor_options options = { .name = "witness_watch", .run = watch_run, .arg = NULL };
	struct vd_actor_options	      actor_options = options;
	struct vd_error		      error = { 0 };
	struct vdi_buffer	      line;
	vd_status		      status;

	if (watch != NULL && !atomic_load(&watch->gone))
		die("that watch exists", VD_EXISTS, NULL);
	vdi_free(watch);
	watch = watches[id] = VDI_NEW(struct witness_watch);
	if (watch == NULL)
		die("open", VD_NOMEM, NULL);
	watch->id = id;
	actor_options.arg = watch;
	status = vd_actor_new(env, &actor_options, &watch->actor);
	if (status != VD_OK)
		die("open", status, NULL);
	vdi_lock_acquire(&close_lock);
	watch_count++;
	vdi_lock_release(&close_lock);
	/* In the shell, \0 stands for the end of the key space. */
	request.range_end = end == NULL		    ? VD_BYTES_NONE :
			    strcmp(end, "\\0") == 0 ? (struct vd_bytes) { "", 1 } :
						      vd_bytes_of(end);
	if (strcmp(key, "\\0") == 0)
		request.key = (struct vd_bytes) { "", 1 };
	request.progress = strchr(flags, 'p') != NULL;
	request.previous = strchr(flags, 'v') != NULL;
	request.fragment = strchr(flags, 'f') != NULL;
	request.require_leader = strchr(flags, 'l') != NULL;
	request.no_put = strchr(flags, 'u') != NULL;
	request.no_delete = strchr(flags, 'd') != NULL;
	request.created_notify = strchr(flags, 'c') != NULL;
	request.ready = watch_ready;
	request.ready_arg = watch;
	status = vd_etcd_watch_open(client, &request, &watch->watch, &error);
	if (!quiet || status != VD_OK) {
		line_begin(&line);
		line_number(&line, "watch", id);
		line_text(&line, "open", vd_bytes_of(vd_status_name(status)));
		line_end(&line);
	}
	vd_actor_wake(watch->actor);
}

static struct witness_watch *watch_named(const char *word)
{
	int id = word != NULL ? atoi(word) : -1;

	if (id < 0 || id >= WATCH_COUNT_MAX || watches[id] == NULL)
		die("no such watch", VD_NOT_FOUND, NULL);
	return watches[id];
}

/* ---- Writers ---- */

enum write_kind { WRITE_PUT, WRITE_DELETE, WRITE_TXN, WRITE_MANY, WRITE_GUARDED };

struct writer {
	int		 id;
	struct vd_actor *actor;
	struct vdi_rand	 rand;
	uint64_t	 sequence;
	vd_rev		 known; /* revision for the compare of guarded writes */
	char		 key[128];
	char		 value[64];
	const char	*what;
	bool		 waiting; /* for an answer; under writing.lock */
	vd_mono		 due;	  /* of the next operation; the actor's */
};

static struct {
	struct writer	    *writers[WRITER_COUNT_MAX];
	int		     count;
	int		     key_count;
	vd_dur		     interval;
	char		     prefix[64];
	struct vdi_condition changed;

	/* Under lock; a run that has seen `stopping` frees its actor under this lock. */
	struct vdi_lock lock;
	bool		stopping;
	int		busy; /* writers that may still write */
} writing;

static void writer_tell(struct writer *writer, const struct vd_etcd_error *error, vd_rev revision,
			const char *extra)
{
	struct vdi_buffer line;

	if (!quiet || error != NULL) {
		line_begin(&line);
		line_number(&line, "writer", writer->id);
		line_text(&line, "op", vd_bytes_of(writer->what));
		line_text(&line, "key", vd_bytes_of(writer->key));
		line_text(&line, "value", vd_bytes_of(writer->value));
		if (extra != NULL)
			line_true(&line, extra);
		if (error != NULL)
			line_error(&line, "error", error);
		else
			line_number(&line, "rev", revision);
		line_end(&line);
	}
	if (revision > 0)
		writer->known = revision;
	vdi_lock_acquire(&writing.lock);
	writer->waiting = false;
	vd_actor_wake(writer->actor);
	vdi_lock_release(&writing.lock);
}

static void writer_op_done(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			   const struct vd_op_result *result)
{
	(void) result;
	writer_tell(arg, error, error == NULL ? header->revision : 0,
		    error == NULL && result->kind == VD_OP_DELETE && result->deleted == 0 ? "nothing" : NULL);
}

static void writer_txn_done(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			    const struct vd_txn_result *result)
{
	writer_tell(arg, error, error == NULL ? header->revision : 0,
		    error == NULL && !result->succeeded ? "nothing" : NULL);
}

static vd_status writer_write(struct writer *writer)
{
	char		  second[160], third[160];
	uint64_t	  kind = vdi_rand_below(&writer->rand, 20);
	struct vd_op	  ops[3] = { { .kind = VD_OP_PUT }, { .kind = VD_OP_PUT }, { .kind = VD_OP_DELETE } };
	struct vd_compare compare = { .target = VD_COMPARE_MOD, .result = VD_COMPARE_LESS };
	struct vd_txn_request txn = { .success = ops, .success_count = 1 };

	snprintf(writer->key, sizeof(writer->key), "%s%03d", writing.prefix,
		 (int) vdi_rand_below(&writer->rand, (uint64_t) writing.key_count));
	snprintf(writer->value, sizeof(writer->value), "w%d-%" PRIu64, writer->id, ++writer->sequence);
	ops[0].key = vd_bytes_of(writer->key);
	ops[0].value = vd_bytes_of(writer->value);
	if (kind < 3) {
		writer->what = "delete";
		ops[0].kind = VD_OP_DELETE;
		return vd_etcd_delete(client, NULL, &ops[0], writer_op_done, writer);
	}
	if (kind < 6) { /* one revision, three keys, one of them deleted */
		writer->what = "many";
		snprintf(second, sizeof(second), "%s-second", writer->key);
		snprintf(third, sizeof(third), "%s-third%d", writer->key, (int) (writer->sequence % 2));
		ops[1].key = vd_bytes_of(second);
		ops[1].value = ops[0].value;
		ops[2].key = vd_bytes_of(third);
		if (writer->sequence % 4 < 2) {
			ops[2].kind = VD_OP_PUT;
			ops[2].value = ops[0].value;
		}
		txn.success_count = 3;
		return vd_etcd_txn(client, NULL, &txn, writer_txn_done, writer);
	}
	if (kind < 9) { /* only if the key is unchanged */
		writer->what = "guarded";
		compare.key = ops[0].key;
		compare.number = writer->known + 1;
		txn.compares = &compare;
		txn.compare_count = 1;
		return vd_etcd_txn(client, NULL, &txn, writer_txn_done, writer);
	}
	writer->what = "put";
	return vd_etcd_put(client, NULL, &ops[0], writer_op_done, writer);
}

static void writer_gone(void *arg)
{
	(void) arg;
	vdi_lock_acquire(&writing.lock);
	writing.busy--;
	vdi_condition_broadcast(&writing.changed);
	vdi_lock_release(&writing.lock);
}

static void writer_look(const struct writer *writer, bool *ret_waiting, bool *ret_stopping)
{
	vdi_lock_acquire(&writing.lock);
	*ret_waiting = writer->waiting;
	*ret_stopping = writing.stopping;
	vdi_lock_release(&writing.lock);
}

/* Writes at its rate, with one call in flight at a time. */
static void writer_run(void *arg)
{
	struct writer	    *writer = arg;
	vd_mono		     now = vd_env_now(env);
	struct vd_etcd_error error = { 0 };
	bool		     waiting, stopping;
	vd_status	     status;

	writer_look(writer, &waiting, &stopping);
	if (waiting)
		return;
	if (stopping) {
		vd_actor_close(writer->actor, writer_gone, writer);
		return;
	}
	if (now.ns < writer->due.ns) {
		vd_actor_set_timer(writer->actor, writer->due);
		return;
	}
	writer->due = (vd_mono) { now.ns + writing.interval.ns };
	vdi_lock_acquire(&writing.lock);
	writer->waiting = true;
	vdi_lock_release(&writing.lock);
	status = writer_write(writer);
	if (status != VD_OK) {
		error.error.code = status;
		writer_tell(writer, &error, 0, NULL);
	}
}

static void writers_start(int count, int64_t interval_ms, int key_count, uint64_t seed, const char *prefix)
{
	if (writing.count > 0 || count > WRITER_COUNT_MAX)
		die("writers", VD_EXISTS, NULL);
	writing.key_count = key_count;
	writing.interval = (vd_dur) { interval_ms * 1000000 };
	snprintf(writing.prefix, sizeof(writing.prefix), "%s", prefix);
	vdi_lock_acquire(&writing.lock);
	writing.stopping = false;
	writing.busy = writing.count = count;
	vdi_lock_release(&writing.lock);
	for (int i = 0; i < count; i++) {
		struct writer		     *writer = VDI_NEW(struct writer);
		const struct vd_actor_options options = { .name = "witness_writer",
							  .run = writer_run,
							  .arg = writer };

		if (writer == NULL || vd_actor_new(env, &options, &writer->actor) != VD_OK)
			die("writers", VD_NOMEM, NULL);
		writer->id = i;
		writer->sequence = seed << 32; /* no value occurs twice, also with writers started later */
		vdi_rand_init(&writer->rand, seed * 1000 + (uint64_t) i);
		writing.writers[i] = writer;
		vd_actor_wake(writer->actor);
	}
}

static void writers_stop(void)
{
	struct vdi_buffer line;

	vdi_lock_acquire(&writing.lock);
	writing.stopping = true;
	for (int i = 0; i < writing.count; i++)
		vd_actor_wake(writing.writers[i]->actor);
	while (writing.busy > 0)
		vdi_condition_wait(&writing.changed, &writing.lock);
	vdi_lock_release(&writing.lock);
	for (int i = 0; i < writing.count; i++)
		vdi_free(writing.writers[i]);
	writing.count = 0;
	line_begin(&line);
	line_true(&line, "stopped");
	line_end(&line);
}

/* ---- Single calls ---- */

static void put_done(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		     const struct vd_op_result *result)
{
	struct vdi_buffer line;

	(void) arg;
	(void) result;
	line_begin(&line);
	line_true(&line, "put");
	if (error != NULL)
		line_error(&line, "error", error);
	else
		line_number(&line, "rev", header->revision);
	line_end(&line);
}

static void get_done(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		     const struct vd_range_result *result)
{
	struct vdi_buffer line;

	(void) arg;
	line_begin(&line);
	line_true(&line, "get");
	if (error != NULL) {
		line_error(&line, "error", error);
	} else {
		line_number(&line, "rev", header->revision);
		line_number(&line, "count", result->count);
		if (result->kv_count > 0) {
			line_text(&line, "value", vd_kv_value(result->kvs[0]));
			line_number(&line, "mod", result->kvs[0]->mod_rev);
		}
	}
	line_end(&line);
}

static void lease_said(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		       const struct vd_lease_result *result)
{
	struct vdi_buffer line;

	(void) arg;
	(void) header;
	line_begin(&line);
	line_true(&line, "lease");
	if (error != NULL) {
		line_error(&line, "end", error);
	} else {
		line_number(&line, "id", result->id);
		line_number(&line, "ttl", result->ttl_s);
	}
	line_end(&line);
}

static struct vd_etcd_keep_alive *keep_alive;

static void lease_granted(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			  const struct vd_lease_result *result)
{
	struct vd_etcd_call call = { .require_leader = false };

	lease_said(arg, error, header, result);
	if (error == NULL &&
	    vd_etcd_keep_alive_start(client, &call, result->id, lease_said, NULL, &keep_alive) != VD_OK)
		die("keep alive", VD_INTERNAL, NULL);
}

static void tell_usage(void)
{
	struct rusage	  usage;
	struct vdi_buffer line;
	long		  pages = 0;
	FILE		 *file = fopen("/proc/self/statm", "r");

	if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1)
		die("usage", VD_IO, NULL);
	fclose(file);
	getrusage(RUSAGE_SELF, &usage);
	line_begin(&line);
	line_true(&line, "usage");
	line_number(&line, "rss", pages * sysconf(_SC_PAGESIZE));
	line_number(&line, "cpu_us",
		    (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000) +
			    usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	line_number(&line, "events", (int64_t) atomic_load(&event_count));
	line_end(&line);
}

/* ---- Commands ---- */

static void obey(char *line)
{
	char	    *words[8] = { NULL };
	int	     count = 0;
	char	    *rest = NULL;
	struct vd_op op = { .kind = VD_OP_PUT };
	vd_status    status = VD_OK;

	for (char *word = strtok_r(line, " \n", &rest); word != NULL && count < 8;
	     word = strtok_r(NULL, " \n", &rest))
		words[count++] = word;
	if (count == 0)
		return;
	if (strcmp(words[0], "open") == 0 && count >= 5 && atoi(words[1]) >= 0 &&
	    atoi(words[1]) < WATCH_COUNT_MAX) {
		watch_open(atoi(words[1]), strtoll(words[2], NULL, 10), words[3], words[4], words[5]);
	} else if (strcmp(words[0], "close") == 0) {
		watch_ask_to_close(watch_named(words[1]));
	} else if (strcmp(words[0], "progress") == 0) {
		status = vd_etcd_request_progress(client, NULL, NULL);
	} else if (strcmp(words[0], "hold") == 0 || strcmp(words[0], "flow") == 0) {
		atomic_store(&watch_named(words[1])->held, words[0][0] == 'h');
		vd_actor_wake(watch_named(words[1])->actor);
	} else if (strcmp(words[0], "writers") == 0 && count == 6) {
		writers_start(atoi(words[1]), atoll(words[2]), atoi(words[3]), strtoull(words[4], NULL, 10),
			      words[5]);
	} else if (strcmp(words[0], "stop") == 0) {
		writers_stop();
	} else if (strcmp(words[0], "put") == 0 && count == 3) {
		op.key = vd_bytes_of(words[1]);
		op.value = vd_bytes_of(words[2]);
		status = vd_etcd_put(client, NULL, &op, put_done, NULL);
	} else if (strcmp(words[0], "get") == 0 && count >= 2) {
		struct vd_etcd_range_request request = {
			.range = { .key = vd_bytes_of(words[1]),
				   .range_end = vd_bytes_of(words[2] != NULL ? words[2] : "") }
		};

		status = vd_etcd_range(client, NULL, &request, get_done, NULL);
	} else if (strcmp(words[0], "lease") == 0 && count == 2) {
		status = vd_etcd_lease_grant(client, NULL, 0, atoll(words[1]), lease_granted, NULL);
	} else if (strcmp(words[0], "usage") == 0) {
		tell_usage();
	} else {
		fprintf(stderr, "etcd_witness: no such command: %s\n", words[0]);
		exit(2);
	}
	if (status != VD_OK)
		die(words[0], status, NULL);
}

static void close_everything(void)
{
	if (writing.count > 0)
		writers_stop();
	vd_etcd_keep_alive_stop(keep_alive);
	for (int i = 0; i < WATCH_COUNT_MAX; i++) {
		if (watches[i] == NULL || atomic_load(&watches[i]->gone))
			continue;
		watch_ask_to_close(watches[i]);
	}
	watches_await_gone();
	client = vd_etcd_close_wait(client);
	env = vd_env_free(env);
	for (int i = 0; i < WATCH_COUNT_MAX; i++)
		vdi_free(watches[i]);
}

/* Splits the list in place. */
static size_t split_endpoints(char *text, const char **endpoints, size_t max)
{
	size_t count = 0;
	char  *rest = NULL;

	for (char *word = strtok_r(text, ",", &rest); word != NULL && count < max;
	     word = strtok_r(NULL, ",", &rest))
		endpoints[count++] = word;
	return count;
}

int main(int argc, char **argv)
{
	struct vd_etcd_options options = VD_ETCD_OPTIONS_INIT;
	const char	      *endpoints[16];
	char		      *list = getenv("ETCD_ENDPOINTS");
	struct vd_error	       error = { 0 };
	char		      *line = NULL;
	size_t		       capacity = 0;
	vd_status	       status;

	quiet = argc > 1 && strcmp(argv[1], "--quiet") == 0;
	if (list == NULL) {
		fprintf(stderr, "etcd_witness: $ETCD_ENDPOINTS is not set\n");
		return 2;
	}
	options.endpoints = endpoints;
	options.endpoint_count = split_endpoints(list, endpoints, VDI_ARRAY_SIZE(endpoints));
	options.ca_path = getenv("ETCD_CACERT");
	options.cert_path = getenv("ETCD_CERT");
	options.key_path = getenv("ETCD_KEY");
	options.keepalive_time = (vd_dur) { INT64_C(5) * 1000000000 };
	options.keepalive_timeout = (vd_dur) { INT64_C(3) * 1000000000 };
	/* A call to a frozen member must end some time. */
	options.call_timeout = (vd_dur) { INT64_C(5) * 1000000000 };
	vdi_lock_init(&print_lock, VDI_LOCK_LEAF);
	vdi_lock_init(&close_lock, VDI_LOCK_CONTROLLER);
	vdi_condition_init(&all_gone);
	vdi_lock_init(&writing.lock, VDI_LOCK_CONTROLLER);
	vdi_condition_init(&writing.changed);
	status = vd_env_new_threads(NULL, &env);
	if (status != VD_OK)
		die("no env", status, NULL);
	status = vd_etcd_open(env, &options, &client, &error);
	if (status != VD_OK)
		die("no client", status, &error);
	while (getline(&line, &capacity, stdin) > 0 && strcmp(line, "quit\n") != 0)
		obey(line);
	free(line);
	close_everything();
	vdi_condition_fini(&writing.changed);
	vdi_lock_fini(&writing.lock);
	vdi_condition_fini(&all_gone);
	vdi_lock_fini(&close_lock);
	vdi_lock_fini(&print_lock);
	return 0;
}
