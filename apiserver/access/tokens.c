/* CSV with quoted fields, one row per line. */
#include "tokens.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#define FIELDS 4

struct token {
	unsigned char	     digest[SHA256_DIGEST_LENGTH];
	struct vdi_identity *identity;
};

struct vdi_tokens {
	struct token *items;
	size_t	      count;
	size_t	      capacity;
};

struct vdi_tokens *vdi_tokens_free(struct vdi_tokens *tokens)
{
	if (tokens == NULL)
		return NULL;
	for (size_t i = 0; i < tokens->count; i++)
		(void) vdi_identity_unref(tokens->items[i].identity);
	vdi_free(tokens->items);
	vdi_free(tokens);
	return NULL;
}

static struct vd_bytes trimmed(struct vd_bytes text)
{
	const char *data = text.data;

	while (text.size &&
	       (data[text.size - 1] == ' ' || data[text.size - 1] == '\t' || data[text.size - 1] == '\r'))
		text.size--;
	while (text.size && (*data == ' ' || *data == '\t')) {
		data++;
		text.size--;
	}
	text.data = data;
	return text;
}

/* Takes the next field of line: up to a comma, or quoted. Returns false if a quote is not closed or text
 * follows it. */
static bool take_field(struct vd_bytes *line, struct vd_bytes *ret_field, bool *ret_more)
{
	struct vd_bytes rest = trimmed(*line);
	const char     *data = rest.data, *end;

	if (rest.size && *data == '"') {
		end = memchr(data + 1, '"', rest.size - 1);
		if (end == NULL)
			return false;
		*ret_field = (struct vd_bytes) { data + 1, (size_t) (end - data) - 1 };
		rest = trimmed((struct vd_bytes) { end + 1, rest.size - (size_t) (end + 1 - data) });
		if (rest.size && *(const char *) rest.data != ',')
			return false;
		end = rest.data;
		*ret_more = rest.size > 0;
	} else {
		end = rest.size ? memchr(data, ',', rest.size) : NULL;
		*ret_more = end != NULL;
		*ret_field = trimmed((struct vd_bytes) { data, end ? (size_t) (end - data) : rest.size });
	}
	if (*ret_more)
		*line = (struct vd_bytes) { end + 1,
					    (size_t) ((const char *) rest.data + rest.size - (end + 1)) };
	return true;
}

static vd_status split_groups(struct vd_bytes text, struct vd_bytes groups[VDI_IDENTITY_GROUPS_MAX],
			      size_t *ret_count)
{
	size_t count = 0;

	while (text.size) {
		const char     *comma = memchr(text.data, ',', text.size);
		size_t		size = comma ? (size_t) (comma - (const char *) text.data) : text.size;
		struct vd_bytes group = trimmed((struct vd_bytes) { text.data, size });

		if (group.size && count == VDI_IDENTITY_GROUPS_MAX)
			return VD_INVALID;
		if (group.size)
			groups[count++] = group;
		text = comma ? (struct vd_bytes) { comma + 1, text.size - size - 1 } : VD_BYTES_NONE;
	}
	*ret_count = count;
	return VD_OK;
}

static vd_status add(struct vdi_tokens *tokens, const struct vd_bytes *fields, size_t number,
		     struct vd_error *reterr)
{
	struct vd_bytes groups[VDI_IDENTITY_GROUPS_MAX];
	struct token	token;
	size_t		count;

	if (fields[0].size == 0 || fields[1].size == 0)
		return vd_error_set(reterr, VD_INVALID, "line %zu: needs token, user and uid", number);
	if (fields[0].size > VDI_TOKEN_SIZE_MAX)
		return vd_error_set(reterr, VD_INVALID, "line %zu: the token is longer than %d bytes", number,
				    VDI_TOKEN_SIZE_MAX);
	if (tokens->count == VDI_TOKENS_MAX)
		return vd_error_set(reterr, VD_INVALID, "line %zu: more than %d tokens", number,
				    VDI_TOKENS_MAX);
	if (split_groups(fields[3], groups, &count) != VD_OK)
		return vd_error_set(reterr, VD_INVALID, "line %zu: more than %d groups", number,
				    VDI_IDENTITY_GROUPS_MAX);
	(void) SHA256(fields[0].data, fields[0].size, token.digest);
	for (size_t i = 0; i < tokens->count; i++)
		if (memcmp(tokens->items[i].digest, token.digest, sizeof token.digest) == 0)
			return vd_error_set(reterr, VD_INVALID,
					    "line %zu: an earlier line has the same token", number);
	if (!vdi_grow((void **) &tokens->items, &tokens->capacity, tokens->count + 1,
		      sizeof *tokens->items) ||
	    vdi_identity_new(fields[1], fields[2], groups, count, VDI_GROUP_AUTHENTICATED, &token.identity) !=
		    VD_OK)
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	tokens->items[tokens->count++] = token;
	return VD_OK;
}

static vd_status parse_line(struct vdi_tokens *tokens, struct vd_bytes line, size_t number,
			    struct vd_error *reterr)
{
	struct vd_bytes fields[FIELDS] = { VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE };
	size_t		count = 0;
	bool		more = true;

	line = trimmed(line);
	if (line.size == 0 || *(const char *) line.data == '#')
		return VD_OK;
	if (memchr(line.data, 0, line.size))
		return vd_error_set(reterr, VD_INVALID, "line %zu: contains a NUL byte", number);
	while (more && count < FIELDS)
		if (!take_field(&line, &fields[count++], &more))
			return vd_error_set(
				reterr, VD_INVALID,
				"line %zu: a quote is not closed, or text follows a closing quote", number);
	if (more)
		return vd_error_set(reterr, VD_INVALID,
				    "line %zu: more than %d fields; put several groups into one quoted field",
				    number, FIELDS);
	if (count < 3)
		return vd_error_set(reterr, VD_INVALID, "line %zu: needs token, user and uid", number);
	return add(tokens, fields, number, reterr);
}

vd_status vdi_tokens_parse(struct vd_bytes text, struct vdi_tokens **ret_tokens, struct vd_error *reterr)
{
	struct vdi_tokens *tokens = VDI_NEW(struct vdi_tokens);
	vd_status	   status =
		 tokens ? VD_OK : vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));

	for (size_t number = 1; status == VD_OK && text.size; number++) {
		const char *end = memchr(text.data, '\n', text.size);
		size_t	    size = end ? (size_t) (end - (const char *) text.data) : text.size;

		status = parse_line(tokens, (struct vd_bytes) { text.data, size }, number, reterr);
		text = end ? (struct vd_bytes) { end + 1, text.size - size - 1 } : VD_BYTES_NONE;
	}
	if (status != VD_OK) {
		(void) vdi_tokens_free(tokens);
		return status;
	}
	*ret_tokens = tokens;
	return VD_OK;
}

struct vdi_identity *vdi_tokens_find(const struct vdi_tokens *tokens, struct vd_bytes token)
{
	unsigned char	     digest[SHA256_DIGEST_LENGTH];
	struct vdi_identity *found = NULL;

	if (token.size == 0 || token.size > VDI_TOKEN_SIZE_MAX)
		return NULL;
	(void) SHA256(token.data, token.size, digest);
	for (size_t i = 0; i < tokens->count; i++)
		if (CRYPTO_memcmp(tokens->items[i].digest, digest, sizeof digest) == 0)
			found = tokens->items[i].identity;
	return found;
}
