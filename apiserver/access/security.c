#include "security.h"

#include <errno.h>
#include <stdio.h>

#define FILE_MAX (16u << 20)

struct vdi_security *vdi_security_ref(struct vdi_security *security)
{
	if (security)
		atomic_fetch_add_explicit(&security->users, 1, memory_order_relaxed);
	return security;
}

struct vdi_security *vdi_security_unref(struct vdi_security *security)
{
	if (security == NULL || atomic_fetch_sub_explicit(&security->users, 1, memory_order_acq_rel) != 1)
		return NULL;
	(void) vdi_tls_free(security->tls);
	(void) vdi_tokens_free(security->tokens);
	(void) vdi_policy_free(security->policy);
	(void) vdi_identity_unref(security->anonymous);
	vdi_free(security);
	return NULL;
}

/* Prefixes the error of a file's content with the file's name. */
static vd_status name_file(const char *path, vd_status status, struct vd_error *reterr)
{
	struct vd_error inner;

	if (status == VD_OK || status == VD_NOMEM || reterr == NULL)
		return status;
	inner = *reterr;
	return vd_error_set(reterr, status, "%s: %s", path, inner.message);
}

static vd_status load_tokens(struct vdi_security *security, struct vd_bytes text, struct vd_error *reterr)
{
	return vdi_tokens_parse(text, &security->tokens, reterr);
}

static vd_status load_policy(struct vdi_security *security, struct vd_bytes text, struct vd_error *reterr)
{
	return vdi_policy_parse(text, &security->policy, reterr);
}

static vd_status load_file(struct vdi_security *security, const char *path,
			   vd_status (*load)(struct vdi_security *security, struct vd_bytes text,
					     struct vd_error *reterr),
			   struct vd_error *reterr)
{
	struct vdi_out text = VDI_OUT_INIT;
	vd_status      status;

	if (path == NULL)
		return VD_OK;
	status = vdi_out_read_file(&text, path, FILE_MAX, reterr);
	if (status == VD_OK)
		status = name_file(path, load(security, vdi_out_slice(&text), reterr), reterr);
	if (text.size)
		explicit_bzero(text.data, text.size);
	vdi_out_fini(&text);
	return status;
}

static vd_status check(const struct vdi_security_files *files, struct vd_error *reterr)
{
	if ((files->cert == NULL) != (files->key == NULL))
		return vd_error_set(reterr, VD_INVALID,
				    "the server's certificate and key must be given together");
	if (files->client_ca && files->cert == NULL)
		return vd_error_set(
			reterr, VD_INVALID,
			"verifying client certificates needs TLS: give the server a certificate and a key");
	if (files->policy && files->client_ca == NULL && files->tokens == NULL)
		return vd_error_set(reterr, VD_INVALID,
				    "a policy needs authenticated clients: give a CA bundle for client "
				    "certificates, or tokens");
	return VD_OK;
}

vd_status vdi_security_load(const struct vdi_security_files *files, struct vdi_security **ret_security,
			    struct vd_error *reterr)
{
	struct vdi_security *security;
	vd_status	     status;

	VDI_TRY(check(files, reterr));
	security = VDI_NEW(struct vdi_security);
	if (security == NULL)
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	atomic_init(&security->users, 1);
	security->authenticates = files->client_ca || files->tokens;
	status = vdi_identity_new(vd_bytes_of(VDI_USER_ANONYMOUS), VD_BYTES_NONE, NULL, 0,
				  VDI_GROUP_UNAUTHENTICATED, &security->anonymous);
	if (status != VD_OK)
		(void) vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	if (status == VD_OK && files->cert)
		status = vdi_tls_new(files->cert, files->key, files->client_ca, &security->tls, reterr);
	if (status == VD_OK)
		status = load_file(security, files->tokens, load_tokens, reterr);
	if (status == VD_OK)
		status = load_file(security, files->policy, load_policy, reterr);
	if (status != VD_OK) {
		(void) vdi_security_unref(security);
		return status;
	}
	*ret_security = security;
	return VD_OK;
}
