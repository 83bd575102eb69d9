/* Rounds: repeated replays of a log.
 *
 * 	recorded	snapshot 10	11 12 15 |
 * 	played		snapshot 10	11 12 15   16 (restores the snapshot)   17 18 21   22 ...
 *
 * The first step of a further round is a transaction of the player: it deletes keys that are not in the
 * snapshot and restores missing or different ones. Then the recorded transactions follow, at revisions offset
 * by those that were used. In a writable player, keys written by clients are deleted too, so every round
 * starts with the same state.
 */
#include <stdlib.h>

#include "player.h"

struct listing {
	struct vd_player *player;
	struct vd_kv	**kvs; /* references */
	size_t		  count;
	vd_status	  status;
	bool		  is_answered;
};

static void drop_reset(struct vd_player *player)
{
	for (size_t i = 0; i < player->reset_count; i++)
		vd_kv_unref(player->reset[i].kv);
	player->reset_count = 0;
}

void vdi_player_rounds_fini(struct vd_player *player)
{
	drop_reset(player);
	vdi_free(player->reset);
	vdi_free(player->path);
	vdi_log_steps_close(player->steps);
}

static void on_listed(void *arg, vd_status status, const struct vd_range_result *result,
		      const struct vd_error *error)
{
	struct listing *listing = arg;

	(void) error;
	listing->is_answered = true;
	listing->status = status;
	if (status != VD_OK || result->kv_count == 0)
		return;
	listing->kvs = vdi_calloc(result->kv_count, sizeof *listing->kvs);
	if (listing->kvs == NULL) {
		listing->status = VD_NOMEM;
		return;
	}
	for (; listing->count < result->kv_count; listing->count++)
		listing->kvs[listing->count] = vd_kv_ref(result->kvs[listing->count]);
}

/* Lists the inner store, which has everything in memory and answers at once. */
static vd_status list(struct vd_player *player, struct listing *ret_listing)
{
	struct vd_range_request request = { .key = { "", 1 }, .range_end = { "", 1 } };
	vd_status status = vd_store_range(player->front.inner, &request, on_listed, ret_listing);

	if (status != VD_OK)
		return status;
	VDI_CHECK(ret_listing->is_answered);
	return ret_listing->status;
}

/* Appends a change. Takes over kv, also on failure. */
static vd_status add(struct vd_player *player, bool is_delete, struct vd_kv *kv, vd_rev revision)
{
	if (!vdi_grow((void **) &player->reset, &player->reset_capacity, player->reset_count + 1,
		      sizeof *player->reset)) {
		vd_kv_unref(kv);
		return VD_NOMEM;
	}
	kv->mod_rev = revision;
	kv->create_rev = kv->version = kv->lease = 0;
	player->reset[player->reset_count++] = (struct vdi_log_change) { .is_delete = is_delete, .kv = kv };
	return VD_OK;
}

static int by_key(const void *a, const void *b)
{
	return vd_bytes_compare(vd_kv_key(((const struct vdi_log_change *) a)->kv),
				vd_kv_key(((const struct vdi_log_change *) b)->kv));
}

static vd_status add_copy(struct vd_player *player, bool is_delete, const struct vd_kv *kv, vd_rev revision)
{
	struct vd_kv *copy;

	VDI_TRY(vd_kv_new(vd_kv_key(kv), is_delete ? VD_BYTES_NONE : vd_kv_value(kv), &copy));
	return add(player, is_delete, copy, revision);
}

/* Computes the changes from the current state to the snapshot; both are in key order. */
static vd_status difference(struct vd_player *player, const struct listing *now,
			    const struct vdi_log_change *then, size_t then_count, vd_rev revision)
{
	size_t i = 0, j = 0;

	while (i < now->count || j < then_count) {
		int order = i == now->count ? 1 :
			    j == then_count ? -1 :
					      vd_bytes_compare(vd_kv_key(now->kvs[i]), vd_kv_key(then[j].kv));

		if (order < 0)
			VDI_TRY(add_copy(player, true, now->kvs[i], revision));
		else if (order > 0 || !vd_bytes_equal(vd_kv_value(now->kvs[i]), vd_kv_value(then[j].kv)))
			VDI_TRY(add_copy(player, false, then[j].kv, revision));
		i += order <= 0;
		j += order >= 0;
	}
	return VD_OK;
}

/* Offsets the step's revisions. */
static void move(struct vd_player *player, struct vdi_log_step *step)
{
	if (player->offset == 0)
		return;
	if (step->revision)
		step->revision += player->offset;
	for (size_t i = 0; i < step->count; i++) {
		step->changes[i].kv->mod_rev += player->offset;
		step->changes[i].kv->create_rev = step->changes[i].kv->version = 0;
	}
}

static vd_status reset(struct vd_player *player, const struct vdi_log_step *snapshot)
{
	struct listing now = { .player = player };
	vd_rev	       revision = player->progress.revision + 1; /* not shared: everything is applied */
	struct vd_store_status status_now;
	vd_status	       status = vd_store_status_get(player->front.inner, &status_now);

	if (status == VD_OK) {
		revision = status_now.current + 1;
		status = list(player, &now);
	}
	if (snapshot && snapshot->count)
		qsort(snapshot->changes, snapshot->count, sizeof *snapshot->changes, by_key);
	drop_reset(player);
	if (status == VD_OK)
		status = difference(player, &now, snapshot ? snapshot->changes : NULL,
				    snapshot ? snapshot->count : 0, revision);
	for (size_t i = 0; i < now.count; i++)
		vd_kv_unref(now.kvs[i]);
	vdi_free(now.kvs);
	if (status != VD_OK)
		return status;
	player->offset = revision - (player->reset_count == 0) - (snapshot ? snapshot->revision : 0);
	player->step = (struct vdi_log_step) { .kind = VDI_STEP_TXN,
					       .revision = revision,
					       .changes = player->reset,
					       .count = player->reset_count,
					       .text = "" };
	for (size_t i = 0; i < player->reset_count; i++)
		player->step.bytes += player->reset[i].kv->key_size + player->reset[i].kv->value_size;
	player->has_step = player->reset_count > 0;
	return VD_OK;
}

vd_status vdi_player_begin_round(struct vd_player *player, struct vd_error *reterr)
{
	struct vdi_log_step first;
	vd_status	    status;

	player->rounds_left -= player->rounds_left != UINT64_MAX;
	player->round_transactions = 0;
	player->steps = vdi_log_steps_close(player->steps);
	VDI_TRY(vdi_log_steps_open(player->path, &player->steps, reterr));
	vdi_log_steps_prepare(player->steps, player->codec_of, player->codec_of_arg);
	status = vdi_log_steps_next(player->steps, &first, reterr);
	if (status != VD_OK && status != VD_CLOSED)
		return status;
	player->has_held = status == VD_OK && first.kind != VDI_STEP_SNAPSHOT;
	status = reset(player, status == VD_OK && !player->has_held ? &first : NULL);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	player->held = first;
	if (player->has_held)
		move(player, &player->held);
	return VD_OK;
}

vd_status vdi_player_next_step(struct vd_player *player, struct vd_error *reterr)
{
	if (player->has_held) {
		player->has_held = false;
		player->step = player->held;
		return VD_OK;
	}
	VDI_TRY(vdi_log_steps_next(player->steps, &player->step, reterr));
	move(player, &player->step);
	return VD_OK;
}
