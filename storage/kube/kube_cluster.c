/* A part of the client that is made at the first ask. Its request is one of vdi_kube_request_bounded, so it
 * ends with the client; the part itself lives until the client's memory is freed.
 *
 *   ask --> asks ---- sent_at >= not_before? ----> answered by the request in flight
 *                            |
 *                            no: by the next one, which is sent when that one has ended */
#include "kube_cluster.h"

#include "kube_parts.h"
#include "tree.h"

#define BODY_SIZE_MAX ((size_t) 1 << 20)
#define PATH "/api/v1/namespaces/kube-system"

TAILQ_HEAD(ask_list, vdi_kube_cluster_ask);

struct cluster {
	struct vd_kube *kube;
	struct ask_list asks; /* in the order of their numbers */
	uint64_t	number;
	bool		is_sent;
	vd_mono		sent_at;
	/* The last answer. */
	int	code;	  /* 0: none */
	vd_mono asked_at; /* its request was sent */
	char	uid[VDI_KUBE_UID_SIZE];
};

static vd_status cluster_new(struct vd_kube *kube, void **ret_part)
{
	struct cluster *cluster = VDI_NEW(struct cluster);

	if (cluster == NULL)
		return VD_NOMEM;
	cluster->kube = kube;
	TAILQ_INIT(&cluster->asks);
	*ret_part = cluster;
	return VD_OK;
}

static void cluster_free(void *part)
{
	vdi_free(part);
}

static vd_status cluster_of(struct vd_kube *kube, struct cluster **ret_cluster)
{
	void *part;

	VDI_TRY(vdi_kube_parts_get(kube, VDI_KUBE_PART_CLUSTER, cluster_new, cluster_free, &part));
	*ret_cluster = part;
	return VD_OK;
}

/* ---- Answers ---- */

/* The first of those that came before number limit and that a request sent at sent_at serves; NULL: none. */
static struct vdi_kube_cluster_ask *next_served(struct cluster *cluster, vd_mono sent_at, uint64_t limit)
{
	struct vdi_kube_cluster_ask *ask;

	TAILQ_FOREACH(ask, &cluster->asks, node)
	{
		if (ask->number >= limit)
			return NULL;
		if (ask->not_before.ns <= sent_at.ns)
			return ask;
	}
	return NULL;
}

/* An answer function may end other asks and ask again; what is asked meanwhile waits for the next request. */
static void answer_sent(struct cluster *cluster, vd_mono sent_at,
			const struct vdi_kube_cluster_answer *answer)
{
	uint64_t		     limit = cluster->number;
	struct vdi_kube_cluster_ask *ask;

	while ((ask = next_served(cluster, sent_at, limit)) != NULL) {
		TAILQ_REMOVE(&cluster->asks, ask, node);
		ask->is_waiting = false;
		ask->answer(ask, answer);
	}
}

static struct vdi_kube_cluster_answer known(const struct cluster *cluster)
{
	return (struct vdi_kube_cluster_answer) { .status = VD_OK,
						  .code = cluster->code,
						  .uid = cluster->uid };
}

/* A uid is copied only as a whole and without a NUL, so that different ones stay different. */
static void read_uid(struct vd_bytes body, char uid[VDI_KUBE_UID_SIZE])
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root = NULL;
	struct vd_bytes	 text = VD_BYTES_NONE;

	if (vdi_tree_parse(&tree, body, &root, NULL) == VD_OK)
		text = vdi_tree_string_of(vdi_tree_find(&tree, root, "metadata.uid"));
	uid[0] = 0;
	if (text.size && text.size < VDI_KUBE_UID_SIZE && memchr(text.data, 0, text.size) == NULL) {
		memcpy(uid, text.data, text.size);
		uid[text.size] = 0;
	}
	vdi_tree_fini(&tree);
}

/* ---- The request ---- */

static vd_status send(struct cluster *cluster);

/* Those that wait for the next request. */
static void send_next(struct cluster *cluster)
{
	struct vd_error error = { 0 };
	vd_status	status;

	if (cluster->is_sent || TAILQ_EMPTY(&cluster->asks))
		return;
	status = send(cluster);
	if (status == VD_OK)
		return;
	(void) vd_error_set(&error, status, "%s", vd_status_sentence(status));
	answer_sent(cluster, VD_NEVER,
		    &(struct vdi_kube_cluster_answer) { .status = status, .uid = "", .error = &error });
}

static void on_answer(void *arg, vd_status status, const struct vd_kube_answer *answer,
		      const struct vd_error *error)
{
	struct cluster		      *cluster = arg;
	int			       code = answer ? answer->code : 0;
	vd_mono			       sent_at = cluster->sent_at;
	struct vdi_kube_cluster_answer answered = { status, code, "", error };

	cluster->is_sent = false;
	if (status == VD_OK || code == 403 || code == 404) {
		cluster->code = code;
		cluster->asked_at = sent_at;
		cluster->uid[0] = 0;
		if (status == VD_OK)
			read_uid(answer->body, cluster->uid);
		answered = known(cluster);
	}
	answer_sent(cluster, sent_at, &answered);
	send_next(cluster);
}

static vd_status send(struct cluster *cluster)
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;

	call.path = PATH;
	call.repeat = true;
	VDI_TRY(vdi_kube_request_bounded(cluster->kube, &call, BODY_SIZE_MAX, on_answer, cluster));
	cluster->sent_at = vdi_kube_now(cluster->kube);
	cluster->is_sent = true;
	return VD_OK;
}

/* ---- Asks ---- */

/* Returns true if the last answer is good for an ask. */
static bool is_good(const struct cluster *cluster, vd_mono not_before)
{
	int64_t age = vd_mono_since(vdi_kube_now(cluster->kube), cluster->asked_at).ns;

	if (cluster->code == 403)
		return age < VDI_KUBE_CLUSTER_REFUSED.ns;
	return cluster->code && cluster->asked_at.ns >= not_before.ns && age < VDI_KUBE_CLUSTER_VALID.ns;
}

vd_status vdi_kube_cluster_ask(struct vd_kube *kube, struct vdi_kube_cluster_ask *ask, vd_mono not_before)
{
	struct vdi_kube_cluster_answer answer;
	struct cluster		      *cluster;

	VDI_TRY(cluster_of(kube, &cluster));
	if (is_good(cluster, not_before)) {
		answer = known(cluster);
		ask->answer(ask, &answer);
		return VD_OK;
	}
	if (!cluster->is_sent)
		VDI_TRY(send(cluster));
	ask->not_before = not_before;
	ask->number = cluster->number++;
	ask->is_waiting = true;
	TAILQ_INSERT_TAIL(&cluster->asks, ask, node);
	return VD_OK;
}

void vdi_kube_cluster_ask_end(struct vd_kube *kube, struct vdi_kube_cluster_ask *ask)
{
	struct cluster *cluster;

	if (!ask->is_waiting || cluster_of(kube, &cluster) != VD_OK)
		return;
	TAILQ_REMOVE(&cluster->asks, ask, node);
	ask->is_waiting = false;
}
