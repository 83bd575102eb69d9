/* Objects are texts in an array. A write parses the body, checks and replaces metadata.resourceVersion, and
 * stores the text. */
#include "requests_peer.h"

#include "out.h"
#include "tree.h"
#include "tree_patch.h"
#include "vdtest.h"

struct requests_peer_answer {
	struct requests_peer_answer *next;
	vd_status		     status;
	vd_kube_answer_fn	     done;
	void			    *arg;
	char			    *body; /* NULL: no answer */
};

static struct requests_peer_object *find(struct requests_peer *peer, const char *path)
{
	for (unsigned i = 0; i < peer->count; i++)
		if (peer->objects[i].text && strcmp(peer->objects[i].path, path) == 0)
			return &peer->objects[i];
	return NULL;
}

const char *requests_peer_get(struct requests_peer *peer, const char *path)
{
	struct requests_peer_object *object = find(peer, path);

	return object ? object->text : NULL;
}

void requests_peer_delete(struct requests_peer *peer, const char *path)
{
	struct requests_peer_object *object = find(peer, path);

	assert_non_null(object);
	free(object->text);
	object->text = NULL;
}

/* Stores the tree with a new resourceVersion. */
static void store(struct requests_peer *peer, const char *path, struct vdi_tree *tree, struct vdi_node *root)
{
	struct requests_peer_object *object = find(peer, path);
	struct vdi_out		     out = VDI_OUT_INIT;
	char			     version[16];

	if (object == NULL) {
		assert_in_range(peer->count, 0, REQUESTS_PEER_OBJECTS - 1);
		object = &peer->objects[peer->count++];
		object->path = strdup(path);
	}
	object->version = ++peer->version;
	(void) snprintf(version, sizeof version, "%u", object->version);
	assert_true(vdi_tree_set(tree, vdi_tree_object_at(tree, root, "metadata"),
				 vd_bytes_of("resourceVersion"),
				 vdi_tree_new_string(tree, vd_bytes_of(version))));
	vdi_tree_write(&out, root);
	free(object->text);
	object->text = malloc(out.size + 1);
	assert_non_null(object->text);
	memcpy(object->text, out.data, out.size);
	object->text[out.size] = 0;
	vdi_out_fini(&out);
}

void requests_peer_put(struct requests_peer *peer, const char *path, const char *text)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;

	assert_status(vdi_tree_parse(&tree, vd_bytes_of(text), &root, NULL), VD_OK);
	store(peer, path, &tree, root);
	vdi_tree_fini(&tree);
}

static vd_status post(struct requests_peer *peer, char *path, struct vdi_tree *tree, struct vdi_node *root)
{
	struct vd_bytes name = vdi_tree_string_of(vdi_tree_find(tree, root, "metadata.name"));
	size_t		size = strlen(path);

	(void) snprintf(path + size, 512 - size, "/%.*s", (int) name.size, (const char *) name.data);
	if (find(peer, path))
		return VD_EXISTS;
	store(peer, path, tree, root);
	return VD_OK;
}

static vd_status put(struct requests_peer *peer, const char *path, struct vdi_tree *tree,
		     struct vdi_node *root)
{
	struct requests_peer_object *object = find(peer, path);
	struct vd_bytes version = vdi_tree_string_of(vdi_tree_find(tree, root, "metadata.resourceVersion"));

	if (object == NULL)
		return VD_NOT_FOUND;
	if (version.size && (unsigned) strtoul(version.data, NULL, 10) != object->version)
		return VD_CONFLICT;
	store(peer, path, tree, root);
	return VD_OK;
}

static vd_status patch(struct requests_peer *peer, const char *path, struct vdi_tree *tree,
		       struct vdi_node *root)
{
	struct requests_peer_object *object = find(peer, path);
	struct vdi_node		    *target;

	if (object == NULL)
		return VD_NOT_FOUND;
	assert_status(vdi_tree_parse(tree, vd_bytes_of(object->text), &target, NULL), VD_OK);
	assert_status(vdi_patch_merge(tree, &target, root, NULL), VD_OK);
	store(peer, path, tree, target);
	return VD_OK;
}

/* Executes the call; path becomes that of the object. */
static vd_status execute(struct requests_peer *peer, const struct vd_kube_call *call, char *path)
{
	const char	*method = call->method ? call->method : "GET";
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	vd_status	 status;

	if (strchr(path, '?'))
		*strchr(path, '?') = 0;
	if (strcmp(method, "GET") == 0)
		return find(peer, path) ? VD_OK : VD_NOT_FOUND;
	assert_status(vdi_tree_parse(&tree, call->body, &root, NULL), VD_OK);
	status = strcmp(method, "POST") == 0 ? post(peer, path, &tree, root) :
		 strcmp(method, "PUT") == 0  ? put(peer, path, &tree, root) :
					       patch(peer, path, &tree, root);
	vdi_tree_fini(&tree);
	return status;
}

static void note_call(struct requests_peer *peer, const struct vd_kube_call *call)
{
	size_t size = strlen(peer->log);

	peer->calls++;
	peer->timeout = call->timeout;
	(void) snprintf(peer->log + size, sizeof peer->log - size, "%s %s\n",
			call->method ? call->method : "GET", call->path);
	if (call->body.size)
		(void) snprintf(peer->body, sizeof peer->body, "%.*s", (int) call->body.size,
				(const char *) call->body.data);
	(void) snprintf(peer->content_type, sizeof peer->content_type, "%s",
			call->content_type ? call->content_type : "");
}

static vd_status send(void *arg, const struct vd_kube_call *call, vd_kube_answer_fn done, void *done_arg)
{
	struct requests_peer	    *peer = arg;
	struct requests_peer_answer *answer;
	char			     path[512];
	vd_status		     status = VD_OK;

	if (peer->is_refusing)
		return VD_CLOSED;
	note_call(peer, call);
	(void) snprintf(path, sizeof path, "%s", call->path);
	if (peer->is_down) {
		status = VD_UNAVAILABLE;
	} else if (peer->failure_count) {
		status = peer->failures[0];
		memmove(peer->failures, peer->failures + 1, --peer->failure_count * sizeof *peer->failures);
	}
	if (status == VD_OK)
		status = execute(peer, call, path);
	answer = calloc(1, sizeof *answer);
	assert_non_null(answer);
	answer->status = status;
	answer->done = done;
	answer->arg = done_arg;
	answer->body =
		status == VD_UNAVAILABLE ? NULL : strdup(status == VD_OK ? find(peer, path)->text : "{}");
	if (peer->last)
		peer->last->next = answer;
	else
		peer->first = answer;
	peer->last = answer;
	if (!peer->is_held)
		vd_actor_wake(peer->actor);
	return VD_OK;
}

static void run(void *arg)
{
	struct requests_peer	    *peer = arg;
	struct requests_peer_answer *answer;

	while (!peer->is_held && (answer = peer->first)) {
		struct vd_kube_answer response = { .code = vd_status_http(answer->status),
						   .body = vd_bytes_of(answer->body) };
		struct vd_error	      error = { 0 };

		peer->first = answer->next;
		if (peer->first == NULL)
			peer->last = NULL;
		if (answer->status != VD_OK)
			(void) vd_error_set(&error, answer->status, "scripted: %s",
					    vd_status_sentence(answer->status));
		answer->done(answer->arg, answer->status, answer->body ? &response : NULL,
			     answer->status == VD_OK ? NULL : &error);
		free(answer->body);
		free(answer);
	}
}

void requests_peer_init(struct requests_peer *peer, struct vd_env *env)
{
	struct vd_actor_options actor = { .name = "requests_peer", .run = run, .arg = peer };

	*peer = (struct requests_peer) { .env = env };
	assert_status(vd_actor_new(env, &actor, &peer->actor), VD_OK);
}

void requests_peer_fini(struct requests_peer *peer)
{
	assert_null(peer->first);
	vd_actor_close(peer->actor, NULL, NULL);
	for (unsigned i = 0; i < peer->count; i++) {
		free(peer->objects[i].path);
		free(peer->objects[i].text);
	}
}

struct vdi_kube_requests requests_peer_of(struct requests_peer *peer)
{
	return (struct vdi_kube_requests) { peer->env, send, peer };
}

void requests_peer_fail(struct requests_peer *peer, vd_status status)
{
	assert_in_range(peer->failure_count, 0, REQUESTS_PEER_FAILURES - 1);
	peer->failures[peer->failure_count++] = status;
}

void requests_peer_release(struct requests_peer *peer)
{
	peer->is_held = false;
	vd_actor_wake(peer->actor);
}
