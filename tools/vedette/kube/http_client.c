/* One easy handle is kept, so that connections are reused. Time-outs: 10 s to connect; 60 s without a byte of
 * the response, except for streams, which may be silent indefinitely: there TCP keep-alive detects a dead
 * peer. */
#include "http_client.h"

#include <jansson.h>
#include <stdio.h>

#include "curl_library.h"
#include "exec_credential.h"

#define BODY_SIZE_MAX ((size_t) 1 << 30)

struct vdi_http_client {
	CURL		  *curl;
	struct curl_slist *headers;
	char		  *base; /* without trailing slash */
	char		  *token;
	char		   reason[CURL_ERROR_SIZE];
};

struct transfer {
	struct vdi_http_client *client;
	struct vdi_http_answer *answer;
	size_t			capacity;
	const char	       *method, *upload; /* NULL: GET; no body */
	vdi_http_chunk_fn	chunk;		 /* NULL: the body is gathered */
	void		       *arg;
	vd_status		status; /* reason if this client ended the transfer */
	bool			began;
};

static void set_blob(CURL *curl, CURLoption option, struct vd_bytes data)
{
	struct curl_blob blob = { (void *) (uintptr_t) data.data, data.size, CURL_BLOB_COPY };

	if (data.size)
		curl_easy_setopt(curl, option, &blob);
}

vd_status vdi_http_options_apply(const struct vdi_http_client_options *options, void *curl,
				 struct vdi_http_identity *ret_identity, struct vd_error *reterr)
{
	struct vdi_exec_answer said = { 0 };

	if (options->exec)
		VDI_TRY(vdi_exec_credential_get(options->exec, &said, reterr));
	*ret_identity =
		(struct vdi_http_identity) { options->token ? options->token : said.token, said.number };
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "vedette");
	curl_easy_setopt(curl, CURLOPT_CAINFO, options->ca_file);
	curl_easy_setopt(curl, CURLOPT_SSLCERT, options->cert_file);
	curl_easy_setopt(curl, CURLOPT_SSLKEY, options->key_file);
	set_blob(curl, CURLOPT_CAINFO_BLOB, options->ca_data);
	set_blob(curl, CURLOPT_SSLCERT_BLOB, said.certificate.size ? said.certificate : options->cert_data);
	set_blob(curl, CURLOPT_SSLKEY_BLOB, said.certificate.size ? said.key : options->key_data);
	if (options->insecure) {
		curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (options->socket_path) {
		curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, options->socket_path);
		curl_easy_setopt(curl, CURLOPT_PROXY, "");
	}
	return VD_OK;
}

vd_status vdi_http_options_base(const struct vdi_http_client_options *options, char **ret_base,
				struct vd_error *reterr)
{
	size_t size = strlen(options->server);

	if (strncmp(options->server, "http://", 7) != 0 && strncmp(options->server, "https://", 8) != 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "the server must be a URL such as %s, not \"%s\"", VDI_DEFAULT_SERVER,
				    options->server);
	while (size && options->server[size - 1] == '/')
		size--;
	*ret_base = vdi_strndup(options->server, size);
	return *ret_base ? VD_OK : vd_error_set(reterr, VD_NOMEM, "out of memory");
}

vd_status vdi_http_client_new(const struct vdi_http_client_options *options,
			      struct vdi_http_client **ret_client, struct vd_error *reterr)
{
	struct vdi_http_client	*client;
	struct vdi_http_identity identity = { 0 };
	char			*base;
	vd_status		 status;

	VDI_TRY(vdi_http_options_base(options, &base, reterr));
	status = vdi_curl_load(reterr);
	if (status != VD_OK) {
		vdi_free(base);
		return status;
	}
	client = VDI_NEW(struct vdi_http_client);
	if (client == NULL) {
		vdi_free(base);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	client->base = base;
	client->curl = curl_easy_init();
	status = client->curl ? vdi_http_options_apply(options, client->curl, &identity, reterr) :
				vd_error_set(reterr, VD_NOMEM, "out of memory");
	if (status == VD_OK && identity.token && (client->token = vdi_strdup(identity.token)) == NULL)
		status = vd_error_set(reterr, VD_NOMEM, "out of memory");
	if (status != VD_OK) {
		vdi_http_client_free(client);
		return status;
	}
	curl_easy_setopt(client->curl, CURLOPT_ERRORBUFFER, client->reason);
	*ret_client = client;
	return VD_OK;
}

struct vdi_http_client *vdi_http_client_free(struct vdi_http_client *client)
{
	if (client) {
		if (client->curl)
			curl_easy_cleanup(client->curl);
		vdi_free(client->token);
		vdi_free(client->base);
		vdi_free(client);
	}
	return NULL;
}

void vdi_http_answer_fini(struct vdi_http_answer *answer)
{
	vdi_free(answer->body);
	memset(answer, 0, sizeof *answer);
}

static size_t take_body(char *data, size_t one, size_t size, void *arg)
{
	struct transfer *transfer = arg;
	long		 code = 0;

	(void) one;
	curl_easy_getinfo(transfer->client->curl, CURLINFO_RESPONSE_CODE, &code);
	if (transfer->chunk && code >= 200 && code < 300) {
		transfer->status = transfer->chunk(transfer->arg, (struct vd_bytes) { data, size });
		return transfer->status == VD_OK ? size : 0;
	}
	if (transfer->answer->size + size > BODY_SIZE_MAX)
		transfer->status = VD_TOO_BIG;
	else if (!vdi_grow((void **) &transfer->answer->body, &transfer->capacity,
			   transfer->answer->size + size + 1, 1))
		transfer->status = VD_NOMEM;
	if (transfer->status != VD_OK)
		return 0;
	memcpy(transfer->answer->body + transfer->answer->size, data, size);
	transfer->answer->size += size;
	transfer->answer->body[transfer->answer->size] = 0;
	return size;
}

static size_t take_header(char *data, size_t one, size_t size, void *arg)
{
	struct transfer *transfer = arg;
	long		 code = 0;

	(void) data;
	curl_easy_getinfo(transfer->client->curl, CURLINFO_RESPONSE_CODE, &code);
	transfer->began = code >= 200 && code < 300;
	return one * size;
}

static vd_status header(struct curl_slist **headers, const char *name, const char *value)
{
	size_t		   size = strlen(name) + (value ? strlen(value) : 0) + 1;
	char		  *line;
	struct curl_slist *longer;

	if (value == NULL)
		return VD_OK;
	line = vdi_alloc(size);
	if (line == NULL)
		return VD_NOMEM;
	snprintf(line, size, "%s%s", name, value);
	longer = curl_slist_append(*headers, line);
	vdi_free(line);
	if (longer == NULL)
		return VD_NOMEM;
	*headers = longer;
	return VD_OK;
}

static vd_status perform(struct vdi_http_client *client, const char *path, const char *accept,
			 struct transfer *transfer, struct vd_error *reterr)
{
	struct curl_slist *headers = NULL;
	size_t		   size = strlen(client->base) + strlen(path) + 1;
	char		  *url = vdi_alloc(size);
	vd_status	   status = url ? VD_OK : VD_NOMEM;
	CURLcode	   result = CURLE_OK;
	long		   code = 0;

	if (status == VD_OK)
		status = header(&headers, "Accept: ", accept);
	if (status == VD_OK)
		status = header(&headers, "Authorization: Bearer ", client->token);
	if (status == VD_OK && transfer->upload)
		status = header(&headers, "Content-Type: ", "application/json");
	if (status == VD_OK) {
		snprintf(url, size, "%s%s", client->base, path);
		client->reason[0] = 0;
		curl_easy_setopt(client->curl, CURLOPT_URL, url);
		curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, headers);
		curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, take_body);
		curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, transfer);
		curl_easy_setopt(client->curl, CURLOPT_HEADERFUNCTION, take_header);
		curl_easy_setopt(client->curl, CURLOPT_HEADERDATA, transfer);
		curl_easy_setopt(client->curl, CURLOPT_LOW_SPEED_LIMIT, transfer->chunk ? 0L : 1L);
		curl_easy_setopt(client->curl, CURLOPT_LOW_SPEED_TIME, transfer->chunk ? 0L : 60L);
		curl_easy_setopt(client->curl, CURLOPT_HTTPGET, 1L); /* resets the previous method */
		curl_easy_setopt(client->curl, CURLOPT_CUSTOMREQUEST, transfer->method);
		if (transfer->upload)
			curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, transfer->upload);
		result = curl_easy_perform(client->curl);
		curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &code);
		transfer->answer->code = (int) code;
	}
	curl_slist_free_all(headers);
	vdi_free(url);
	if (status != VD_OK || transfer->status != VD_OK) {
		status = status != VD_OK ? status : transfer->status;
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	}
	if (result != CURLE_OK)
		return vd_error_set(reterr, VD_UNAVAILABLE, "%s: %s", client->base,
				    client->reason[0] ? client->reason : curl_easy_strerror(result));
	return VD_OK;
}

vd_status vdi_http_get(struct vdi_http_client *client, const char *path, const char *accept,
		       struct vdi_http_answer *ret_answer, struct vd_error *reterr)
{
	struct transfer transfer = { .client = client, .answer = ret_answer };

	memset(ret_answer, 0, sizeof *ret_answer);
	return perform(client, path, accept, &transfer, reterr);
}

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

vd_status vdi_http_error_of(int code, struct vd_bytes body, struct vd_error *reterr)
{
	vd_status   status = code == 404		? VD_NOT_FOUND :
			     code == 410		? VD_EXPIRED :
			     code == 403 || code == 401 ? VD_FORBIDDEN :
			     code == 429		? VD_FULL :
			     code == 400 || code == 422 ? VD_BAD_REQUEST :
							  VD_UNAVAILABLE;
	json_t	   *root = body.size ? json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const char *message = text_of(root, "message");
	size_t	    shown = 0;

	if (*message) {
		const char *reason = text_of(root, "reason");

		(void) vd_error_set(reterr, status, "%s%s%s%s", message, *reason ? " (" : "", reason,
				    *reason ? ")" : "");
	} else {
		while (shown < body.size && shown < 200 && ((const char *) body.data)[shown] != '\n')
			shown++;
		(void) vd_error_set(reterr, status, "the server answered %d%s%.*s", code, shown ? ": " : "",
				    (int) shown, shown ? (const char *) body.data : "");
	}
	json_decref(root);
	return status;
}

static vd_status judge(const struct vdi_http_answer *answer, struct vd_error *reterr)
{
	if (answer->code >= 200 && answer->code < 300)
		return VD_OK;
	return vdi_http_error_of(answer->code, (struct vd_bytes) { answer->body, answer->size }, reterr);
}

vd_status vdi_http_get_ok(struct vdi_http_client *client, const char *path, const char *accept,
			  struct vdi_http_answer *ret_answer, struct vd_error *reterr)
{
	VDI_TRY(vdi_http_get(client, path, accept, ret_answer, reterr));
	return judge(ret_answer, reterr);
}

vd_status vdi_http_send_ok(struct vdi_http_client *client, const char *method, const char *path,
			   const char *body, struct vdi_http_answer *ret_answer, struct vd_error *reterr)
{
	struct transfer transfer = {
		.client = client, .answer = ret_answer, .method = method, .upload = body
	};

	memset(ret_answer, 0, sizeof *ret_answer);
	VDI_TRY(perform(client, path, "application/json", &transfer, reterr));
	return judge(ret_answer, reterr);
}

vd_status vdi_http_stream(struct vdi_http_client *client, const char *path, const char *accept,
			  vdi_http_chunk_fn chunk, void *arg, bool *ret_began, struct vd_error *reterr)
{
	struct vdi_http_answer answer = { 0 };
	struct transfer	       transfer = { .client = client, .answer = &answer, .chunk = chunk, .arg = arg };
	vd_status	       status = perform(client, path, accept, &transfer, reterr);

	*ret_began = transfer.began;
	if (status == VD_OK)
		status = judge(&answer, reterr);
	vdi_http_answer_fini(&answer);
	return status;
}
