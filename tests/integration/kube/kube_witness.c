/* A program on vedette/kube.h that opens informers as told and reports their events, for kube_informers.py,
 * which compares the reports with the changes in etcd and with the lists of the server.
 *
 * Usage: kube_witness [--kubeconfig FILE] [--context NAME] [--server URL] [--token-path FILE]
 * [--ca-path FILE] [--silence SECONDS] [--quiet]
 * Commands are read from stdin, one a line; reports are written to stdout, one a line:
 *
 * 	open ID RESOURCE NAMESPACE LABELS FIELDS  an informer; "-" for an empty member
 * 	close ID			ends it
 * 	dump ID				its local store: "O ID JSON" for each object, then
 * 					"o ID COUNT REVISION"
 * 	request METHOD PATH		sends a request: "R STATUS CODE SIZE MESSAGE"
 * 	health				"H RESOURCE NAMESPACE STATE REVISION ATTEMPTS LISTS WATCHES
 * 					EVENTS STATUS MESSAGE" for the cluster (resource "-") and
 * 					each source, then "h"
 * 	usage				"u RSS-BYTES CPU-US EVENTS"
 * 	quit				closes everything; exit 0
 *
 * 	ready SERVER NAMESPACE			at the start
 * 	I ID NAMESPACE/NAME REVISION		initial state       (an empty namespace: /NAME)
 * 	A ID NAMESPACE/NAME REVISION		added
 * 	U ID NAMESPACE/NAME REVISION OLD-REVISION	updated
 * 	D ID NAMESPACE/NAME REVISION		removed
 * 	X ID NAMESPACE/NAME REVISION		removed, final state unknown
 * 	S ID					synced
 * 	C RESOURCE NAMESPACE STATE STATUS MESSAGE	change of a state
 *
 * --quiet: events are only counted. Handlers run on any thread; stdio writes each line at once. */
#include <inttypes.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vedette/kube.h>

#define INFORMER_COUNT_MAX 20000
#define WORD_COUNT_MAX 6

struct witness {
	int			 id;
	struct vd_kube_informer *informer;
};

static const char *const state_names[] = { "connecting", "listing", "watching", "retrying", "removed" };

static struct vd_env  *env;
static struct vd_kube *kube;
static struct witness  witnesses[INFORMER_COUNT_MAX];
static bool	       quiet;
static atomic_ullong   event_count;

static void die(const char *what, vd_status status, const struct vd_error *error)
{
	fprintf(stderr, "kube_witness: %s: %s %s\n", what, vd_status_name(status),
		error != NULL ? error->message : "");
	exit(1);
}

/* ---- Events ---- */

static void print_event(char type, const struct witness *witness, const struct vd_object *object,
			const struct vd_object *old_object)
{
	struct vd_bytes namespace_name = vd_object_namespace(object), name = vd_object_name(object);
	char		old_revision[32] = "";

	atomic_fetch_add(&event_count, 1);
	if (quiet)
		return;
	if (old_object != NULL)
		snprintf(old_revision, sizeof(old_revision), " %" PRId64, vd_object_revision(old_object));
	printf("%c %d %.*s/%.*s %" PRId64 "%s\n", type, witness->id, (int) namespace_name.size,
	       (const char *) namespace_name.data, (int) name.size, (const char *) name.data,
	       vd_object_revision(object), old_revision);
}

static void on_add(void *arg, struct vd_object *object, bool initial)
{
	print_event(initial ? 'I' : 'A', arg, object, NULL);
}

static void on_update(void *arg, struct vd_object *old_object, struct vd_object *object)
{
	print_event('U', arg, object, old_object);
}

static void on_remove(void *arg, struct vd_object *last_state, bool unknown_final_state)
{
	print_event(unknown_final_state ? 'X' : 'D', arg, last_state, NULL);
}

static void on_synced(void *arg)
{
	const struct witness *witness = arg;

	printf("S %d\n", witness->id);
}

static const char *text_of(const char *text)
{
	return text != NULL && text[0] != 0 ? text : "-";
}

static void on_changed(void *arg, const struct vd_kube_health *health)
{
	(void) arg;
	printf("C %s %.*s %s %s %s\n", text_of(health->resource),
	       health->namespace_name.size > 0 ? (int) health->namespace_name.size : 1,
	       health->namespace_name.size > 0 ? (const char *) health->namespace_name.data : "-",
	       state_names[health->state], vd_status_name(health->error.code), health->error.message);
}

/* ---- Commands ---- */

static struct witness *witness_of(const char *id)
{
	int number = atoi(id);

	if (number < 0 || number >= INFORMER_COUNT_MAX) {
		fprintf(stderr, "kube_witness: no such informer: %s\n", id);
		exit(2);
	}
	return &witnesses[number];
}

static struct vd_bytes member_of(const char *word)
{
	return strcmp(word, "-") == 0 ? VD_BYTES_NONE : vd_bytes_of(word);
}

static void open_informer(char *words[])
{
	struct witness		  *witness = witness_of(words[1]);
	struct vd_kube_scope	   scope = { member_of(words[3]), member_of(words[4]), member_of(words[5]) };
	struct vd_informer_handler handler = {
		.add = on_add, .update = on_update, .remove = on_remove, .synced = on_synced, .arg = witness
	};
	struct vd_error error = { 0 };
	vd_status	status;

	witness->id = atoi(words[1]);
	status = vd_kube_informer_open(kube, words[2], &scope, &handler, &witness->informer, &error);

	if (status != VD_OK)
		die("open", status, &error);
}

static bool print_object(void *arg, struct vd_object *object)
{
	const struct witness *witness = arg;
	struct vd_object_json json;

	vd_object_json(object, vd_object_revision(object), &json);
	flockfile(stdout);
	printf("O %d ", witness->id);
	for (int i = 0; i < 3; i++)
		fwrite(json.piece[i].data, 1, json.piece[i].size, stdout);
	putchar('\n');
	funlockfile(stdout);
	return true;
}

static void dump(struct witness *witness)
{
	size_t count = vd_kube_informer_visit(witness->informer, print_object, witness);

	printf("o %d %zu %" PRId64 "\n", witness->id, count, vd_kube_informer_revision(witness->informer));
}

static void on_answer(void *arg, vd_status status, const struct vd_kube_answer *answer,
		      const struct vd_error *error)
{
	(void) arg;
	printf("R %s %d %zu %s\n", vd_status_name(status), answer != NULL ? answer->code : 0,
	       answer != NULL ? answer->body.size : 0, error != NULL ? error->message : "");
}

static void send_request(const char *method, const char *path)
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	vd_status	    status;

	call.method = method;
	call.path = path;
	call.repeat = strcmp(method, "GET") == 0;
	status = vd_kube_request(kube, &call, on_answer, NULL);
	if (status != VD_OK)
		die("request", status, NULL);
}

static void print_health(void *arg, const struct vd_kube_health *health)
{
	(void) arg;
	printf("H %s %.*s %s %" PRId64 " %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %s %s\n",
	       text_of(health->resource),
	       health->namespace_name.size > 0 ? (int) health->namespace_name.size : 1,
	       health->namespace_name.size > 0 ? (const char *) health->namespace_name.data : "-",
	       state_names[health->state], health->revision, health->attempts, health->lists, health->watches,
	       health->events, vd_status_name(health->error.code), health->error.message);
}

static void print_usage(void)
{
	struct rusage usage;
	long	      pages = 0;
	FILE	     *file = fopen("/proc/self/statm", "r");

	if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1)
		die("usage", VD_IO, NULL);
	fclose(file);
	getrusage(RUSAGE_SELF, &usage);
	printf("u %ld %" PRId64 " %llu\n", pages * sysconf(_SC_PAGESIZE),
	       (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000) + usage.ru_utime.tv_usec +
		       usage.ru_stime.tv_usec,
	       atomic_load(&event_count));
}

static void obey(char *line)
{
	char *words[WORD_COUNT_MAX] = { NULL };
	char *rest = NULL;
	int   count = 0;

	for (char *word = strtok_r(line, " \n", &rest); word != NULL && count < WORD_COUNT_MAX;
	     word = strtok_r(NULL, " \n", &rest))
		words[count++] = word;
	if (count == 0)
		return;
	if (strcmp(words[0], "open") == 0 && count == 6) {
		open_informer(words);
	} else if (strcmp(words[0], "close") == 0 && count == 2) {
		witness_of(words[1])->informer = vd_kube_informer_close_wait(witness_of(words[1])->informer);
		printf("closed %s\n", words[1]);
	} else if (strcmp(words[0], "dump") == 0 && count == 2) {
		dump(witness_of(words[1]));
	} else if (strcmp(words[0], "request") == 0 && count == 3) {
		send_request(words[1], words[2]);
	} else if (strcmp(words[0], "health") == 0) {
		vd_kube_health(kube, print_health, NULL);
		printf("h\n");
	} else if (strcmp(words[0], "usage") == 0) {
		print_usage();
	} else {
		fprintf(stderr, "kube_witness: no such command: %s\n", words[0]);
		exit(2);
	}
	fflush(stdout);
}

static void on_closed(void *arg)
{
	sem_post(arg);
}

/* All at once; those with an even number one after the other. */
static void close_everything(void)
{
	sem_t closed;
	int   count = 0;

	sem_init(&closed, 0, 0);
	for (int i = 1; i < INFORMER_COUNT_MAX; i += 2) {
		if (witnesses[i].informer == NULL)
			continue;
		vd_kube_informer_close(witnesses[i].informer, on_closed, &closed);
		count++;
	}
	for (int i = 0; i < INFORMER_COUNT_MAX; i += 2)
		vd_kube_informer_close_wait(witnesses[i].informer);
	while (count > 0)
		if (sem_wait(&closed) == 0)
			count--;
	sem_destroy(&closed);
	kube = vd_kube_close_wait(kube);
	env = vd_env_free(env);
}

static void read_options(int argc, char **argv, struct vd_kube_options *options)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(argv[i], "--quiet") == 0) {
			quiet = true;
			continue;
		}
		if (strcmp(argv[i], "--kubeconfig") == 0) {
			options->kubeconfig = value;
		} else if (strcmp(argv[i], "--context") == 0) {
			options->context = value;
		} else if (strcmp(argv[i], "--server") == 0) {
			options->server = value;
		} else if (strcmp(argv[i], "--token-path") == 0) {
			options->token_path = value;
		} else if (strcmp(argv[i], "--ca-path") == 0) {
			options->ca_path = value;
		} else if (strcmp(argv[i], "--silence") == 0) {
			options->silence_max.ns = atoll(value) * INT64_C(1000000000);
		} else {
			fprintf(stderr, "kube_witness: no such option: %s\n", argv[i]);
			exit(2);
		}
		i++;
	}
}

static void log_record(void *arg, const struct vd_log_record *record)
{
	(void) arg;
	fprintf(stderr, "log %d %s\n", (int) record->level, record->message);
}

int main(int argc, char **argv)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_env_options  env_options = VD_ENV_OPTIONS_INIT;
	struct vd_error	       error = { 0 };
	char		      *line = NULL;
	size_t		       capacity = 0;
	vd_status	       status;

	setvbuf(stdout, NULL, _IOLBF, 1 << 16);
	options.changed = on_changed;
	read_options(argc, argv, &options);
	env_options.log = log_record;
	env_options.log_level = VD_LOG_WARNING;
	status = vd_env_new_threads(&env_options, &env);
	if (status != VD_OK)
		die("env", status, NULL);
	status = vd_kube_open(env, &options, &kube, &error);
	if (status != VD_OK)
		die("client", status, &error);
	printf("ready %s %s\n", vd_kube_server(kube), vd_kube_namespace(kube));
	while (getline(&line, &capacity, stdin) > 0 && strcmp(line, "quit\n") != 0)
		obey(line);
	free(line);
	close_everything();
	printf("bye\n");
	return 0;
}
