/* Files are compared by content: they are small, and a projected volume changes no file but a link. */
#include "kube_identity.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "env.h"
#include "kube_exec.h"
#include "yaml_tree.h"

#define READ_AGAIN VD_SECONDS(10)
#define TOKEN_SIZE_MAX ((size_t) 65536)
#define PEM_SIZE_MAX ((size_t) 4 << 20)

struct vdi_kube_identity {
	const struct vd_env  *env;
	struct vdi_kubeconfig config;
	struct vdi_kube_exec *exec; /* NULL: no program */
	char		     *token;
	struct vd_bytes	      ca, cert, key;
	uint64_t	      generation;
	vd_mono		      read_at;
	unsigned	      exec_number;	   /* whose certificate is in use */
	struct vd_bytes	      exec_cert, exec_key; /* borrowed from exec */
	bool		      was_refused, tls_changed;
	struct vdi_log_limit  log_limit;
	void (*done)(void *arg);
	void *done_arg;
};

/* ---- Certificates ---- */

static void ignore_errors(void)
{
	ERR_clear_error();
}

static X509 *cert_of(struct vd_bytes pem)
{
	BIO  *bio = BIO_new_mem_buf(pem.data, (int) pem.size);
	X509 *cert = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

	BIO_free(bio);
	return cert;
}

static int no_passphrase(char *text, int size, int is_write, void *arg)
{
	(void) text;
	(void) size;
	(void) is_write;
	(void) arg;
	return -1;
}

/* Returns the fault, or NULL. */
static const char *pair_fault(struct vd_bytes cert_pem, struct vd_bytes key_pem)
{
	BIO	   *bio = BIO_new_mem_buf(key_pem.data, (int) key_pem.size);
	EVP_PKEY   *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
	X509	   *cert = cert_of(cert_pem);
	const char *fault = cert == NULL ? "has no PEM certificate" :
			    key == NULL	 ? "has a key that cannot be read (PEM without a passphrase)" :
			    X509_check_private_key(cert, key) != 1 ? "does not match its key" :
								     NULL;

	X509_free(cert);
	EVP_PKEY_free(key);
	BIO_free(bio);
	ignore_errors();
	return fault;
}

static bool is_ca(struct vd_bytes pem)
{
	X509 *cert = cert_of(pem);

	X509_free(cert);
	ignore_errors();
	return cert != NULL;
}

/* ---- Files ---- */

static void bytes_fini(struct vd_bytes *bytes)
{
	vdi_free((char *) (uintptr_t) bytes->data);
	*bytes = VD_BYTES_NONE;
}

/* Reads a file, or copies data; neither: empty. */
static vd_status read_pem(const char *path, struct vd_bytes data, struct vd_bytes *ret_pem,
			  struct vd_error *reterr)
{
	char  *text;
	size_t size = data.size;

	if (data.size == 0 && path == NULL) {
		*ret_pem = VD_BYTES_NONE;
		return VD_OK;
	}
	if (data.size) {
		text = vdi_strndup(data.data, data.size);
		if (text == NULL)
			return vd_error_set(reterr, VD_NOMEM, "out of memory");
	} else
		VDI_TRY(vdi_yaml_read_file(path, PEM_SIZE_MAX, &text, &size, reterr));
	*ret_pem = (struct vd_bytes) { text, size };
	return VD_OK;
}

static bool is_token(const char *text)
{
	for (; *text; text++)
		if (*text < '!' || *text > '~')
			return false;
	return true;
}

static vd_status read_token(const struct vdi_kubeconfig *config, char **ret_token, struct vd_error *reterr)
{
	char *token = NULL;

	if (config->token_file)
		VDI_TRY(vdi_yaml_read_word(config->token_file, TOKEN_SIZE_MAX, &token, reterr));
	else if (config->token && (token = vdi_strdup(config->token)) == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	if (token && (*token == 0 || !is_token(token))) {
		vdi_free(token);
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "%.200s: %s",
				    config->token_file ? config->token_file : "the token",
				    config->token_file ? "the file is empty or has no valid token" :
							 "it is empty or has invalid characters");
	}
	*ret_token = token;
	return VD_OK;
}

/* What one reading gave. */
struct reading {
	char	       *token;
	struct vd_bytes ca, cert, key;
};

static void reading_fini(struct reading *reading)
{
	vdi_free(reading->token);
	bytes_fini(&reading->ca);
	bytes_fini(&reading->cert);
	bytes_fini(&reading->key);
}

static const char *name_of(const char *path, const char *entry)
{
	return path ? path : entry;
}

static vd_status read_ca(const struct vdi_kubeconfig *config, struct reading *reading,
			 struct vd_error *reterr)
{
	VDI_TRY(read_pem(config->ca_file, config->ca_data, &reading->ca, reterr));
	if (reading->ca.size && !is_ca(reading->ca))
		return vd_error_set(
			reterr, VD_INVALID_ARGUMENT, "%.200s has no PEM certificate",
			name_of(config->ca_data.size ? NULL : config->ca_file, "certificate-authority-data"));
	return VD_OK;
}

static vd_status read_pair(const struct vdi_kubeconfig *config, struct reading *reading,
			   struct vd_error *reterr)
{
	const char *fault;

	VDI_TRY(read_pem(config->cert_file, config->cert_data, &reading->cert, reterr));
	VDI_TRY(read_pem(config->key_file, config->key_data, &reading->key, reterr));
	fault = reading->cert.size ? pair_fault(reading->cert, reading->key) : NULL;
	if (fault)
		return vd_error_set(
			reterr, VD_INVALID_ARGUMENT, "%.200s %s",
			name_of(config->cert_data.size ? NULL : config->cert_file, "client-certificate-data"),
			fault);
	return VD_OK;
}

static bool take_bytes(struct vd_bytes *place, struct vd_bytes *read)
{
	struct vd_bytes old = *place;

	if (vd_bytes_equal(*place, *read))
		return false;
	*place = *read;
	*read = old;
	return true;
}

static void adopt_token(struct vdi_kube_identity *identity, struct reading *reading)
{
	char *old = identity->token;

	identity->generation +=
		(old == NULL) != (reading->token == NULL) || (old && strcmp(old, reading->token) != 0);
	identity->token = reading->token;
	reading->token = old;
}

static void adopt_pair(struct vdi_kube_identity *identity, struct reading *reading)
{
	bool is_new = take_bytes(&identity->key, &reading->key);

	is_new |= take_bytes(&identity->cert, &reading->cert);
	identity->tls_changed |= is_new;
	identity->generation += is_new;
}

static bool has_files(const struct vdi_kubeconfig *config)
{
	return config->token_file || config->ca_file || config->cert_file || config->key_file;
}

/* Token, CA, and certificate with key are taken each by itself, so that one that cannot be read does not stop
 * the renewal of the others. Returns the first failure. */
static vd_status read_all(struct vdi_kube_identity *identity, struct vd_error *reterr)
{
	const struct vdi_kubeconfig *config = &identity->config;
	struct reading		     reading = { 0 };
	struct vd_error		     error = { 0 };
	vd_status		     token = read_token(config, &reading.token, &error), ca, pair, status;

	if (token == VD_OK)
		adopt_token(identity, &reading);
	ca = read_ca(config, &reading, token == VD_OK ? &error : NULL);
	if (ca == VD_OK)
		identity->tls_changed |= take_bytes(&identity->ca, &reading.ca);
	status = token != VD_OK ? token : ca;
	pair = read_pair(config, &reading, status == VD_OK ? &error : NULL);
	if (pair == VD_OK)
		adopt_pair(identity, &reading);
	status = status != VD_OK ? status : pair;
	reading_fini(&reading);
	if (status != VD_OK && reterr)
		*reterr = error;
	return status;
}

static void read_again(struct vdi_kube_identity *identity)
{
	struct vd_error error = { 0 };

	identity->read_at = vd_env_now(identity->env);
	identity->was_refused = false;
	if (read_all(identity, &error) != VD_OK)
		vdi_log_limited(identity->env, &identity->log_limit, VD_LOG_WARNING, "kube",
				"a part of the identity cannot be read again, the last one is kept: %s",
				error.message);
}

/* ---- Use ---- */

static vd_status take_exec(struct vdi_kube_identity *identity, const char **ret_token,
			   struct vd_error *reterr)
{
	struct vdi_exec_answer answer;

	VDI_TRY(vdi_kube_exec_get(identity->exec, &answer, reterr));
	if (answer.number != identity->exec_number) {
		identity->tls_changed |= answer.certificate.size || identity->exec_cert.size;
		identity->exec_number = answer.number;
		identity->generation++;
	}
	identity->exec_cert = answer.certificate;
	identity->exec_key = answer.key;
	*ret_token = answer.token;
	return VD_OK;
}

vd_status vdi_kube_identity_take(struct vdi_kube_identity   *identity,
				 struct vdi_kube_credential *ret_credential, struct vd_error *reterr)
{
	vd_mono	    now = vd_env_now(identity->env);
	const char *token;

	if (has_files(&identity->config) &&
	    (identity->was_refused || now.ns - identity->read_at.ns >= READ_AGAIN.ns))
		read_again(identity);
	token = identity->token;
	if (identity->exec)
		VDI_TRY(take_exec(identity, &token, reterr));
	*ret_credential = (struct vdi_kube_credential) { token, identity->generation, identity->tls_changed };
	return VD_OK;
}

void vdi_kube_identity_tls(const struct vdi_kube_identity *identity, struct vdi_kube_tls *ret_tls)
{
	bool is_program = identity->cert.size == 0 && identity->exec_cert.size;

	*ret_tls = (struct vdi_kube_tls) { .ca = identity->ca,
					   .cert = is_program ? identity->exec_cert : identity->cert,
					   .key = is_program ? identity->exec_key : identity->key,
					   .server_name = identity->config.server_name,
					   .insecure = identity->config.insecure };
}

void vdi_kube_identity_configured(struct vdi_kube_identity *identity)
{
	identity->tls_changed = false;
}

vd_mono vdi_kube_identity_due(const struct vdi_kube_identity *identity)
{
	return identity->exec ? vdi_kube_exec_due(identity->exec) : VD_NEVER;
}

void vdi_kube_identity_refused(struct vdi_kube_identity *identity, uint64_t generation)
{
	if (generation != identity->generation)
		return; /* a newer one is in use already */
	identity->was_refused = true;
	if (identity->exec)
		vdi_kube_exec_refused(identity->exec, identity->exec_number);
}

void vdi_kube_identity_accepted(struct vdi_kube_identity *identity)
{
	if (identity->exec)
		vdi_kube_exec_accepted(identity->exec);
}

bool vdi_kube_identity_can_change(const struct vdi_kube_identity *identity)
{
	return identity->exec || identity->config.token_file || identity->config.cert_file;
}

bool vdi_kube_identity_has_program(const struct vdi_kube_identity *identity)
{
	return identity->exec != NULL;
}

const struct vdi_kubeconfig *vdi_kube_identity_config(const struct vdi_kube_identity *identity)
{
	return &identity->config;
}

/* ---- Lifetime ---- */

static void identity_free(struct vdi_kube_identity *identity)
{
	vdi_free(identity->token);
	bytes_fini(&identity->ca);
	bytes_fini(&identity->cert);
	bytes_fini(&identity->key);
	vdi_kubeconfig_fini(&identity->config);
	vdi_free(identity);
}

/* A token or certificate of the configuration is used instead of the program. */
static bool needs_program(const struct vdi_kube_identity *identity)
{
	return identity->config.exec.command && identity->token == NULL && identity->cert.size == 0;
}

static vd_status prepare(struct vdi_kube_identity *identity, void (*changed)(void *arg), void *arg,
			 struct vd_error *reterr)
{
	vd_status		status = read_all(identity, reterr);
	struct vdi_exec_cluster cluster;

	if (status == VD_OK && needs_program(identity)) {
		cluster = (struct vdi_exec_cluster) { identity->config.server, identity->ca,
						      identity->config.insecure };
		status = vdi_kube_exec_new(identity->env, &identity->config.exec, &cluster, changed, arg,
					   &identity->exec);
	}
	if (status == VD_NOMEM || status == VD_FULL)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	if (status != VD_OK && reterr)
		reterr->code = VD_INVALID_ARGUMENT;
	return status == VD_OK ? VD_OK : VD_INVALID_ARGUMENT;
}

vd_status vdi_kube_identity_new(const struct vd_env *env, struct vdi_kubeconfig *config,
				void (*changed)(void *arg), void		*arg,
				struct vdi_kube_identity **ret_identity, struct vd_error *reterr)
{
	struct vdi_kube_identity *identity = VDI_NEW(struct vdi_kube_identity);
	vd_status		  status;

	if (identity == NULL) {
		vdi_kubeconfig_fini(config);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	identity->env = env;
	identity->config = *config;
	memset(config, 0, sizeof *config);
	identity->tls_changed = true;
	identity->read_at = vd_env_now(env);
	identity->log_limit.interval = VD_SECONDS(60);
	status = prepare(identity, changed, arg, reterr);
	if (status != VD_OK) {
		identity_free(identity);
		return status;
	}
	*ret_identity = identity;
	return VD_OK;
}

static void on_exec_closed(void *arg)
{
	struct vdi_kube_identity *identity = arg;
	void (*done)(void *done_arg) = identity->done;
	void *done_arg = identity->done_arg;

	identity_free(identity);
	if (done)
		done(done_arg);
}

void vdi_kube_identity_close(struct vdi_kube_identity *identity, void (*done)(void *arg), void *arg)
{
	identity->done = done;
	identity->done_arg = arg;
	if (identity->exec)
		vdi_kube_exec_close(identity->exec, on_exec_closed, identity);
	else
		on_exec_closed(identity);
}
