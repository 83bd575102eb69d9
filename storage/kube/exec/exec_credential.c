/* The plan's program gets its environment once; each run replaces the credential. */
#include "exec_credential.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base64.h"
#include "exec_program.h"
#include "k8s_time.h"

#define TIMEOUT_MS 60000
#define TOKEN_SIZE_MAX 65536
#define INFO_NAME "KUBERNETES_EXEC_INFO="

extern char **environ;

struct vdi_exec_credential {
	const struct vdi_exec_plan *plan;
	char			   *info; /* KUBERNETES_EXEC_INFO=... */
	char			  **environment;
	/* The program's last credential. */
	char		       *token;
	struct vd_bytes		certificate, key;
	vd_wall			expires; /* 0: never */
	struct vdi_exec_program program;
	_Atomic bool		is_stopped;
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

/* ---- The credential ---- */

static void forget(struct vdi_exec_credential *credential)
{
	vdi_free(credential->token);
	vdi_free((void *) (uintptr_t) credential->certificate.data);
	vdi_free((void *) (uintptr_t) credential->key.data);
	credential->token = NULL;
	credential->certificate = credential->key = VD_BYTES_NONE;
	credential->expires.ns = 0;
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
	if (status == VD_NOMEM)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	return vd_error_set(reterr, VD_FORBIDDEN, "invalid credential from \"%s\": %s%s%s",
			    credential->program.name, why, credential->program.printed[0] ? ". " : "",
			    credential->program.printed);
}

vd_status vdi_exec_credential_fetch(struct vdi_exec_credential *credential,
				    struct vdi_exec_answer *ret_answer, struct vd_error *reterr)
{
	char	 *output = vdi_alloc(VDI_EXEC_OUTPUT_SIZE_MAX + 1);
	size_t	  size = 0;
	vd_status status;

	if (output == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	status = vdi_exec_program_run(&credential->program, output, &size, reterr);
	if (status == VD_OK)
		status = take_output(credential, (struct vd_bytes) { output, size }, reterr);
	vdi_free(output);
	if (status == VD_OK)
		*ret_answer = (struct vdi_exec_answer) { .token = credential->token,
							 .certificate = credential->certificate,
							 .key = credential->key,
							 .expires = credential->expires,
							 .printed = credential->program.printed };
	return status;
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
	credential->program =
		(struct vdi_exec_program) { .command = plan->command,
					    .arguments = plan->arguments,
					    .environment = credential->environment,
					    .hint = plan->hint,
					    .timeout_ms = plan->timeout_ms ? plan->timeout_ms : TIMEOUT_MS,
					    .is_stopped = &credential->is_stopped };
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
