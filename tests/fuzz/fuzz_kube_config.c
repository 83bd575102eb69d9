/* What identifies a client. The first byte chooses the reader of the rest, which is a file:
 *
 *   c  a kubeconfig; its first line is the name of a context, empty: the current one
 *   k  a kubeconfig in the options of a client, with those options that override it
 *   e  the output of an exec plugin
 *   t  a token file, p  a certificate and its key, a  a CA
 *
 * Each is refused with a message, or it yields an identity that can be sent. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "actor_sim.h"
#include "fuzz.h"
#include "kube_config.h"
#include "kube_identity.h"

static char path[64];
static int  file;

static void write_file(struct vd_bytes bytes)
{
	file = memfd_create("fuzz", 0);
	VDI_CHECK(file >= 0 && write(file, bytes.data, bytes.size) == (ssize_t) bytes.size);
	VDI_CHECK(lseek(file, 0, SEEK_SET) == 0);
	(void) snprintf(path, sizeof path, "/proc/self/fd/%d", file);
}

/* ---- Kubeconfigs ---- */

/* Files that a kubeconfig names are read too: no input may lead to an endless file, or to a terminal. */
static bool names_a_file(struct vd_bytes bytes)
{
	return memmem(bytes.data, bytes.size, "okenFile", 8) || memchr(bytes.data, '\\', bytes.size);
}

static void read_context(struct vd_bytes input)
{
	const char	     *end = input.size ? memchr(input.data, '\n', input.size) : NULL;
	size_t		      size = end ? (size_t) (end - (const char *) input.data) : 0;
	struct vdi_kubeconfig config = { 0 };
	struct vd_error	      error = { 0 };
	char		      context[256];
	vd_status	      status;

	(void) snprintf(context, sizeof context, "%.*s", (int) VDI_MIN(size, sizeof context - 1),
			size ? (const char *) input.data : "");
	if (end)
		input = (struct vd_bytes) { end + 1, input.size - size - 1 };
	write_file(input);
	status = vdi_kubeconfig_read(path, *context ? context : NULL, &config, &error);
	VDI_CHECK(status == VD_OK ? config.server != NULL : error.message[0] && config.server == NULL);
	vdi_kubeconfig_fini(&config);
}

static void read_options(struct vd_bytes input)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vdi_kubeconfig  config = { 0 };
	struct vd_error	       error = { 0 };
	vd_status	       status;

	write_file(input);
	options.kubeconfig = path;
	options.no_exec = true;
	options.proxy_url = "http://proxy";
	status = vdi_kube_config_find(&options, "/nowhere", &config, &error);
	VDI_CHECK(status == VD_OK || error.message[0]);
	if (status == VD_OK) {
		VDI_CHECK(strncmp(config.server, "http", 4) == 0 && config.namespace_name);
		VDI_CHECK(config.exec.command == NULL && config.server[strlen(config.server) - 1] != '/');
		vdi_kubeconfig_fini(&config);
	}
}

/* ---- Credentials ---- */

static void check_token(const char *token)
{
	VDI_CHECK(*token);
	for (; *token; token++)
		VDI_CHECK((unsigned char) *token > ' ' && *token != 0x7f);
}

static void run_plugin(struct vd_bytes input)
{
	static char api[] = "client.authentication.k8s.io/v1", command[] = "/bin/cat", *text = path;
	const struct vdi_exec_plan plan = {
		.api_version = api, .command = command, .arguments = { command, text }, .timeout_ms = 20000
	};
	struct vdi_exec_cluster	    cluster = { .server = "https://a" };
	struct vdi_exec_credential *credential;
	struct vdi_exec_answer	    answer = { 0 };
	struct vd_error		    error = { 0 };
	vd_status		    status;

	write_file(input);
	if (vdi_exec_credential_new(&plan, &cluster, &credential) != VD_OK)
		abort();
	status = vdi_exec_credential_fetch(credential, &answer, &error);
	VDI_CHECK(status == VD_OK || error.message[0]);
	VDI_CHECK(status != VD_TIMEOUT);
	if (status == VD_OK) {
		VDI_CHECK(answer.token || answer.certificate.size);
		VDI_CHECK((answer.certificate.size == 0) == (answer.key.size == 0));
		if (answer.token)
			check_token(answer.token);
	}
	vdi_exec_credential_free(credential);
}

static void read_identity(char kind, struct vd_bytes input)
{
	struct vdi_kubeconfig	   config = { .server = vdi_strdup("https://a") };
	struct vdi_kube_identity  *identity;
	struct vdi_kube_credential credential;
	struct vd_error		   error = { 0 };
	struct vd_env		  *env;
	vd_status		   status;

	write_file(input);
	if (vdi_env_new_sim(1, NULL, NULL, &env) != VD_OK)
		abort();
	if (kind == 't')
		config.token_file = vdi_strdup(path);
	else if (kind == 'a')
		config.ca_file = vdi_strdup(path);
	else {
		config.cert_file = vdi_strdup(path);
		config.key_file = vdi_strdup(path);
	}
	status = vdi_kube_identity_new(env, &config, NULL, NULL, &identity, &error);
	VDI_CHECK(status == VD_OK || error.message[0]);
	if (status == VD_OK) {
		vdi_sim_advance(env, VD_SECONDS(11));
		VDI_CHECK(ftruncate(file, (off_t) input.size / 2) == 0); /* a writer is at work */
		VDI_CHECK(vdi_kube_identity_take(identity, &credential, &error) == VD_OK);
		if (kind == 't')
			check_token(credential.token);
		vdi_kube_identity_close(identity, NULL, NULL);
	}
	env = vd_env_free(env);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vd_bytes input = { data + 1, size - 1 };
	int64_t		live = vdi_alloc_live();

	file = -1;
	if (size == 0)
		return 0;
	switch (data[0]) {
	case 'c':
	case 'k':
		if (names_a_file(input))
			return 0;
		if (data[0] == 'c')
			read_context(input);
		else
			read_options(input);
		break;
	case 'e': run_plugin(input); break;
	case 't':
	case 'p':
	case 'a': read_identity((char) data[0], input); break;
	default: return 0;
	}
	(void) close(file);
	VDI_CHECK(vdi_alloc_live() == live);
	return 0;
}
