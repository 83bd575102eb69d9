/* Errors from responses of the server. The message is that of the Status object; other bodies, such as
 * the page of a proxy, are quoted with unprintable characters replaced. */
#include <stdio.h>

#include "kube_client.h"
#include "tree.h"

#define STATUS_SIZE_MAX ((size_t) 1 << 20)
#define QUOTE_MAX 200

static vd_status status_of(int code, struct vd_bytes reason)
{
	switch (code) {
	case 400:
	case 422: return VD_INVALID;
	case 401:
	case 403: return VD_FORBIDDEN;
	case 404: return VD_NOT_FOUND;
	case 409: return vd_bytes_equal(reason, vd_bytes_of("AlreadyExists")) ? VD_EXISTS : VD_CONFLICT;
	case 410: return VD_EXPIRED;
	case 413: return VD_TOO_BIG;
	case 429: return VD_FULL;
	case 504: return VD_TIMEOUT;
	default: return VD_UNAVAILABLE;
	}
}

static void quote(struct vd_bytes body, char text[QUOTE_MAX + 1])
{
	const unsigned char *bytes = body.data;
	size_t		     i, size = VDI_MIN(body.size, (size_t) QUOTE_MAX);

	while (size && (bytes[size - 1] == '\n' || bytes[size - 1] == '\r' || bytes[size - 1] == ' '))
		size--;
	for (i = 0; i < size; i++)
		text[i] = bytes[i] < 0x20 || bytes[i] >= 0x7f ? ' ' : (char) bytes[i];
	text[size] = 0;
}

/* The server's text goes into logs and to terminals. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char) *text < 0x20 || *text == 0x7f)
			*text = ' ';
}

vd_status vdi_kube_error_of(const struct vdi_kube_head *head, struct vd_bytes body, struct vd_error *reterr)
{
	unsigned	 retry_after_s = head->retry_after_s;
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root = NULL;
	struct vd_bytes	 message, reason;
	char		 text[QUOTE_MAX + 1];
	int64_t		 seconds;
	vd_status	 status;

	if (body.size > STATUS_SIZE_MAX || vdi_tree_parse(&tree, body, &root, NULL) != VD_OK)
		root = NULL;
	message = vdi_tree_string_of(vdi_tree_find(&tree, root, "message"));
	reason = vdi_tree_string_of(vdi_tree_find(&tree, root, "reason"));
	seconds = vdi_tree_int_of(vdi_tree_find(&tree, root, "details.retryAfterSeconds"), 0);
	status = status_of(head->code, reason);
	if (head->location[0])
		(void) vd_error_set(
			reterr, status,
			"the server answered with HTTP status %d, a redirect to %s: redirects are not "
			"followed",
			head->code, head->location);
	else if (message.size)
		(void) vd_error_set(reterr, status, "%.*s",
				    (int) VDI_MIN(message.size, (size_t) VD_ERROR_MESSAGE_SIZE),
				    (const char *) message.data);
	else {
		quote(body, text);
		(void) vd_error_set(reterr, status, "the server answered with HTTP status %d%s%s", head->code,
				    *text ? ": " : "", text);
	}
	if (reterr && retry_after_s == 0 && seconds > 0)
		retry_after_s = (unsigned) VDI_MIN(seconds, (int64_t) 86400);
	if (reterr) {
		reterr->retry_after_s = retry_after_s;
		make_printable(reterr->message);
	}
	vdi_tree_fini(&tree);
	return status;
}
