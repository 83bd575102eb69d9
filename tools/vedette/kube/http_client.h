/* HTTP for the command line: requests to one server, as a whole or as a stream, through libcurl.
 *
 * One thread; every call blocks. An error message is one sentence for the user: that of the Status object if
 * the server sent one.
 */
#ifndef VDI_HTTP_CLIENT_H
#define VDI_HTTP_CLIENT_H

#include "base.h"

struct vdi_exec_credential; /* exec_credential.h */

/* The credentials of one request. */
struct vdi_http_identity {
	const char *token;	/* borrowed; NULL: none is sent */
	unsigned    credential; /* its number in exec_credential.h */
};

#define VDI_DEFAULT_SERVER "http://127.0.0.1:8080"

struct vdi_http_client;

struct vdi_http_client_options {
	const char     *server; /* base URL */
	const char     *token;	/* bearer token, or NULL */
	const char     *ca_file, *cert_file, *key_file;
	struct vd_bytes ca_data, cert_data, key_data; /* PEM, instead of the files; empty: none */
	bool		insecure;		      /* accept any certificate */
	struct vdi_exec_credential
		*exec; /* not NULL: provides credentials, unless a token or a certificate is set */
	/* not NULL: connect to this Unix socket; server is only a name */
	const char *socket_path;
};

struct vdi_http_answer {
	int    code; /* 0: no response */
	char  *body; /* NUL-terminated after size bytes; NULL for a stream that delivered */
	size_t size;
};

/* Configures another module's libcurl handle (CURL *): protocols, connect time-out, keep-alive, certificates.
 * *ret_identity is valid until the next such call. Blocks while a credential program runs. Errors as of
 * vdi_exec_credential_get. */
VDI_MUST_USE vd_status vdi_http_options_apply(const struct vdi_http_client_options *options, void *curl,
					      struct vdi_http_identity *ret_identity,
					      struct vd_error	       *reterr);
/* Returns the URL without trailing slashes; free with vdi_free. VD_INVALID_ARGUMENT: not a URL; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_http_options_base(const struct vdi_http_client_options *options, char **ret_base,
					     struct vd_error *reterr);

/* VD_INVALID_ARGUMENT: not a URL; VD_NOMEM. The texts are borrowed for the client's lifetime. */
VDI_MUST_USE vd_status	vdi_http_client_new(const struct vdi_http_client_options *options,
					    struct vdi_http_client **ret_client, struct vd_error *reterr);
struct vdi_http_client *vdi_http_client_free(struct vdi_http_client *client);

/* path starts with '/' and may include a query. VD_OK: a complete response, whatever its code.
 * VD_UNAVAILABLE: none; the message gives the reason. */
VDI_MUST_USE vd_status vdi_http_get(struct vdi_http_client *client, const char *path, const char *accept,
				    struct vdi_http_answer *ret_answer, struct vd_error *reterr);
void		       vdi_http_answer_fini(struct vdi_http_answer *answer);
/* As get, but a response that is not 2xx becomes its error: VD_NOT_FOUND, VD_EXPIRED (410), VD_FORBIDDEN,
 * VD_FULL (429), otherwise VD_UNAVAILABLE, with the server's message. ret_answer is set then too if there is
 * a response; the caller always calls _fini. */
VDI_MUST_USE vd_status vdi_http_get_ok(struct vdi_http_client *client, const char *path, const char *accept,
				       struct vdi_http_answer *ret_answer, struct vd_error *reterr);

/* As get_ok with another method, and with a JSON body (NULL: none). */
VDI_MUST_USE vd_status vdi_http_send_ok(struct vdi_http_client *client, const char *method, const char *path,
					const char *body, struct vdi_http_answer *ret_answer,
					struct vd_error *reterr);

typedef vd_status (*vdi_http_chunk_fn)(void *arg, struct vd_bytes chunk);

/* Passes a 2xx response to chunk as it arrives; returns at its end. VD_OK: it ended normally. An error of
 * chunk is returned. Other responses as above. *ret_began: the head of a 2xx response was received. */
VDI_MUST_USE vd_status vdi_http_stream(struct vdi_http_client *client, const char *path, const char *accept,
				       vdi_http_chunk_fn chunk, void *arg, bool *ret_began,
				       struct vd_error *reterr);

/* Converts a Status object to an error; for other bodies composes a message of code, reason and short
 * body. */
vd_status vdi_http_error_of(int code, struct vd_bytes body, struct vd_error *reterr);

#endif
