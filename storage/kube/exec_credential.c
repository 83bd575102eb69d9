/* The program runs in its own process group, so that its children end with it. */
#include "exec_credential.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base64.h"
#include "clock.h"
#include "k8s_time.h"

#define TIMEOUT_MS 60000
#define OUTPUT_SIZE_MAX ((size_t) 1 << 20)
#define TOKEN_SIZE_MAX 65536
#define STEP_MS ((int64_t) 100) /* between looks at is_stopped */
#define INFO_NAME "KUBERNETES_EXEC_INFO="

extern char **environ;

struct vdi_exec_credential {
	const struct vdi_exec_plan *plan;
	char			   *info; /* KUBERNETES_EXEC_INFO=... */
	char			  **environment;
	/* The program's last credential. */
	bool		is_there;
	unsigned	number; /* of the credential */
	char	       *token;
	struct vd_bytes certificate, key;
	vd_wall		expires; /* 0: never */
	_Atomic bool	is_stopped;
};

/* ---- Plans ---- */

void vdi_exec_plan_fini(struct vdi_exec_plan *plan)
{
	vdi_free(plan->api_version);
	vdi_free(plan->command);
	vdi_free(plan->hint);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(plan->arguments); i++)
		vdi_free(plan->arguments[i]);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(plan->environment); i++)
		vdi_free(plan->environment[i]);
	memset(plan, 0, sizeof *plan);
}

static json_t *cluster_json(const struct vdi_exec_cluster *cluster)
{
	char   *text = vdi_alloc(VDI_BASE64_ENCODED_MAX(cluster->ca.size) + 1);
	json_t *json = NULL;

	if (text) {
		text[vdi_base64_encode(VDI_BASE64_STANDARD, cluster->ca, text)] = 0;
		json = json_pack("{s:s, s:s, s:b}", "server", cluster->server, "certificate-authority-data",
				 text, "insecure-skip-tls-verify", cluster->insecure);
		vdi_free(text);
	}
	return json;
}

static char *make_info(const struct vdi_exec_plan *plan, const struct vdi_exec_cluster *cluster)
{
	json_t *spec = json_pack("{s:b}", "interactive", 0), *root;
	char   *text, *info = NULL;
	size_t	size;

	if (plan->gives_cluster && json_object_set_new(spec, "cluster", cluster_json(cluster)) != 0) {
		json_decref(spec);
		return NULL;
	}
	root = json_pack("{s:s, s:s, s:o}", "apiVersion", plan->api_version, "kind", "ExecCredential", "spec",
			 spec);
	text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	if (text) {
		size = strlen(text) + sizeof INFO_NAME;
		info = vdi_alloc(size);
		if (info)
			snprintf(info, size, INFO_NAME "%s", text);
		free(text);
	}
	return info;
}

/* Returns true if the plan, or this module, replaces this variable. */
static bool is_replaced(const struct vdi_exec_plan *plan, const char *variable)
{
	size_t size = strcspn(variable, "=") + 1;

	if (strncmp(variable, INFO_NAME, size) == 0)
		return true;
	for (size_t i = 0; plan->environment[i]; i++)
		if (strncmp(variable, plan->environment[i], size) == 0)
			return true;
	return false;
}

/* Builds an array of pointers: the texts belong to the plan, this module, and the process. */
static char **make_environment(const struct vdi_exec_plan *plan, char *info)
{
	size_t count = 0, at = 0;
	char **made;

	while (environ[count])
		count++;
	made = vdi_calloc(count + VDI_EXEC_WORDS_MAX + 2, sizeof *made);
	if (made == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (!is_replaced(plan, environ[i]))
			made[at++] = environ[i];
	for (size_t i = 0; plan->environment[i]; i++)
		made[at++] = plan->environment[i];
	made[at] = info;
	return made;
}

/* ---- Running the program ---- */

static int64_t now_ms(void)
{
	return vdi_clock_mono(&vdi_clock_os).ns / 1000000; /* of the program, also in a simulation */
}

static vd_status spawn(const struct vdi_exec_credential *credential, int output, pid_t *ret_pid,
		       struct vd_error *reterr)
{
	const struct vdi_exec_plan *plan = credential->plan;
	posix_spawn_file_actions_t  actions;
	posix_spawnattr_t	    attributes;
	sigset_t		    none, pipe_only;
	int			    result;

	sigemptyset(&none);
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	if (posix_spawn_file_actions_init(&actions) != 0)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	if (posix_spawnattr_init(&attributes) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	posix_spawnattr_setsigmask(&attributes, &none); /* this process has blocked signals */
	posix_spawnattr_setsigdefault(&attributes, &pipe_only);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes,
				 POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	result = posix_spawnp(ret_pid, plan->command, &actions, &attributes, plan->arguments,
			      credential->environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (result == 0)
		return VD_OK;
	return vd_error_set(reterr, VD_FORBIDDEN, "cannot run the credential program \"%.80s\": %s%s%.200s",
			    plan->command, strerror(result), plan->hint ? ". " : "",
			    plan->hint ? plan->hint : "");
}

static int64_t timeout_of(const struct vdi_exec_plan *plan)
{
	return plan->timeout_ms ? plan->timeout_ms : TIMEOUT_MS;
}

/* Reads the output to its end. */
static vd_status read_output(const struct vdi_exec_credential *credential, int input, int64_t deadline_ms,
			     char *output, size_t *ret_size, struct vd_error *reterr)
{
	const struct vdi_exec_plan *plan = credential->plan;
	struct pollfd		    waiting = { .fd = input, .events = POLLIN };
	size_t			    size = 0;

	for (;;) {
		int64_t left = deadline_ms - now_ms();
		int	ready = left > 0 ? poll(&waiting, 1, (int) VDI_MIN(left, STEP_MS)) : 0;
		ssize_t got;

		if (atomic_load(&credential->is_stopped))
			return vd_error_set(reterr, VD_CLOSED, "the credential program \"%.80s\" was ended",
					    plan->command);
		if (ready == 0 && left > STEP_MS)
			continue;
		if (ready == 0)
			return vd_error_set(reterr, VD_TIMEOUT,
					    "the credential program \"%.80s\" took longer than %lld s",
					    plan->command, (long long) (timeout_of(plan) / 1000));
		got = ready > 0 ? read(input, output + size, OUTPUT_SIZE_MAX + 1 - size) : -1;
		if (got < 0 && errno != EINTR)
			return vd_error_set(reterr, VD_FORBIDDEN, "cannot read the output of \"%.80s\": %s",
					    plan->command, strerror(errno));
		if (got == 0)
			break;
		size += got > 0 ? (size_t) got : 0;
		if (size > OUTPUT_SIZE_MAX)
			return vd_error_set(reterr, VD_FORBIDDEN,
					    "the output of \"%.80s\" is larger than 1 MiB", plan->command);
	}
	*ret_size = size;
	return VD_OK;
}

/* Waits for the end of the program, or kills it. */
static vd_status reap(const struct vdi_exec_credential *credential, pid_t pid, int64_t deadline_ms,
		      bool is_over, struct vd_error *reterr)
{
	const struct vdi_exec_plan *plan = credential->plan;
	int			    status = 0;
	pid_t			    ended = 0;

	while (!is_over && !atomic_load(&credential->is_stopped) &&
	       (ended = waitpid(pid, &status, WNOHANG)) == 0 && now_ms() < deadline_ms)
		(void) poll(NULL, 0, 5);
	(void) kill(-pid, SIGKILL); /* kills it, or processes that it left */
	if (ended != pid)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	if (is_over || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return VD_OK;
	if (WIFEXITED(status))
		return vd_error_set(reterr, VD_FORBIDDEN,
				    "the credential program \"%.80s\" failed with status %d", plan->command,
				    WEXITSTATUS(status));
	return vd_error_set(reterr, VD_FORBIDDEN, "the credential program \"%.80s\" was ended by signal %d",
			    plan->command, WTERMSIG(status));
}

static vd_status run_program(const struct vdi_exec_credential *credential, char *output, size_t *ret_size,
			     struct vd_error *reterr)
{
	int64_t	  deadline_ms = now_ms() + timeout_of(credential->plan);
	int	  pipes[2];
	pid_t	  pid;
	vd_status status;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		return vd_error_set(reterr, VD_FORBIDDEN, "cannot make a pipe: %s", strerror(errno));
	status = spawn(credential, pipes[1], &pid, reterr);
	(void) close(pipes[1]);
	if (status == VD_OK) {
		status = read_output(credential, pipes[0], deadline_ms, output, ret_size, reterr);
		if (status == VD_OK)
			status = reap(credential, pid, deadline_ms, false, reterr);
		else
			(void) reap(credential, pid, deadline_ms, true,
				    NULL); /* the first error is reported */
	}
	(void) close(pipes[0]);
	return status;
}

/* ---- The credential ---- */

static void forget(struct vdi_exec_credential *credential)
{
	vdi_free(credential->token);
	vdi_free((void *) (uintptr_t) credential->certificate.data);
	vdi_free((void *) (uintptr_t) credential->key.data);
	credential->token = NULL;
	credential->certificate = credential->key = VD_BYTES_NONE;
	credential->expires.ns = 0;
	credential->is_there = false;
}

static const char *text_of(json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* Returns true if the text can be sent in a header. */
static bool is_token(const char *text)
{
	size_t size = 0;

	for (; text[size]; size++)
		if (text[size] < '!' || text[size] > '~')
			return false;
	return size <= TOKEN_SIZE_MAX;
}

static vd_status copy(const char *text, struct vd_bytes *ret_copy)
{
	char *copied = vdi_strdup(text);

	if (copied == NULL)
		return VD_NOMEM;
	*ret_copy = (struct vd_bytes) { copied, strlen(text) };
	return VD_OK;
}

/* Times beyond the range are set to its end. */
static bool take_expiry(const char *text, vd_wall *ret_expires)
{
	static const char last_year[] = "2261";
	char		  near[64];
	int64_t		  seconds;
	int32_t		  nanoseconds;

	if (snprintf(near, sizeof near, "%s", text) >= (int) sizeof near)
		return false;
	if (strspn(near, "0123456789") == 4 && strncmp(near, last_year, 4) > 0)
		memcpy(near, last_year, 4);
	if (!vdi_k8s_time_parse(vd_bytes_of(near), &seconds, &nanoseconds))
		return false;
	ret_expires->ns = seconds > 0 ? seconds * 1000000000 + nanoseconds : 1; /* 0 would be never */
	return true;
}

static vd_status take_status(struct vdi_exec_credential *credential, json_t *status, const char **ret_why)
{
	const char *token = text_of(status, "token"), *certificate = text_of(status, "clientCertificateData"),
		   *key = text_of(status, "clientKeyData");
	const char *expires = text_of(status, "expirationTimestamp");

	*ret_why = *token == 0 && *certificate == 0 ? "it has neither a token nor a certificate" :
		   !*certificate != !*key	    ? "a certificate and its key must be given together" :
		   !is_token(token)		    ? "its token has invalid characters" :
		   *expires && !take_expiry(expires, &credential->expires) ?
				      "its expirationTimestamp is not a time" :
				      NULL;
	if (*ret_why)
		return VD_FORBIDDEN;
	if (*token && (credential->token = vdi_strdup(token)) == NULL)
		return VD_NOMEM;
	if (*certificate) {
		VDI_TRY(copy(certificate, &credential->certificate));
		VDI_TRY(copy(key, &credential->key));
	}
	credential->is_there = true;
	credential->number++;
	return VD_OK;
}

static vd_status take_output(struct vdi_exec_credential *credential, struct vd_bytes output,
			     struct vd_error *reterr)
{
	json_t	   *root = json_loadb(output.data, output.size, JSON_REJECT_DUPLICATES, NULL);
	const char *why = NULL;
	vd_status   status = VD_FORBIDDEN;

	forget(credential);
	if (strcmp(text_of(root, "kind"), "ExecCredential") != 0)
		why = "it is not an ExecCredential";
	else if (strcmp(text_of(root, "apiVersion"), credential->plan->api_version) != 0)
		why = "its apiVersion differs from that in the kubeconfig";
	else
		status = take_status(credential, json_object_get(root, "status"), &why);
	json_decref(root);
	if (status == VD_OK)
		return VD_OK;
	forget(credential);
	return status == VD_NOMEM ?
		       vd_error_set(reterr, VD_NOMEM, "out of memory") :
		       vd_error_set(reterr, VD_FORBIDDEN, "invalid credential from \"%.80s\": %s",
				    credential->plan->command, why);
}

static bool is_good(const struct vdi_exec_credential *credential)
{
	return credential->is_there &&
	       (credential->expires.ns == 0 || vdi_clock_wall(&vdi_clock_os).ns < credential->expires.ns);
}

vd_status vdi_exec_credential_get(struct vdi_exec_credential *credential, struct vdi_exec_answer *ret_answer,
				  struct vd_error *reterr)
{
	if (!is_good(credential)) {
		char	 *output = vdi_alloc(OUTPUT_SIZE_MAX + 1);
		size_t	  size = 0;
		vd_status status;

		if (output == NULL)
			return vd_error_set(reterr, VD_NOMEM, "out of memory");
		status = run_program(credential, output, &size, reterr);
		if (status == VD_OK)
			status = take_output(credential, (struct vd_bytes) { output, size }, reterr);
		vdi_free(output);
		if (status != VD_OK)
			return status;
	}
	*ret_answer = (struct vdi_exec_answer) { credential->token, credential->certificate, credential->key,
						 credential->number, credential->expires };
	return VD_OK;
}

void vdi_exec_credential_forget(struct vdi_exec_credential *credential)
{
	forget(credential);
}

void vdi_exec_credential_stop(struct vdi_exec_credential *credential)
{
	atomic_store(&credential->is_stopped, true);
}

/* ---- Lifetime ---- */

vd_status vdi_exec_credential_new(const struct vdi_exec_plan *plan, const struct vdi_exec_cluster *cluster,
				  struct vdi_exec_credential **ret_credential)
{
	struct vdi_exec_credential *credential = VDI_NEW(struct vdi_exec_credential);

	if (credential == NULL)
		return VD_NOMEM;
	credential->plan = plan;
	credential->info = make_info(plan, cluster);
	credential->environment = credential->info ? make_environment(plan, credential->info) : NULL;
	if (credential->environment == NULL) {
		vdi_exec_credential_free(credential);
		return VD_NOMEM;
	}
	*ret_credential = credential;
	return VD_OK;
}

struct vdi_exec_credential *vdi_exec_credential_free(struct vdi_exec_credential *credential)
{
	if (credential) {
		forget(credential);
		vdi_free(credential->environment);
		vdi_free(credential->info);
		vdi_free(credential);
	}
	return NULL;
}
