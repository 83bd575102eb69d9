/* Controls of a replay, and waits for a revision. */
#include "player.h"

#include <math.h>

#define CONTROL(player, change)                                                                              \
	do {                                                                                                 \
		vdi_lock_acquire(&(player)->lock);                                                           \
		change;                                                                                      \
		(player)->progress.resting = false;                                                          \
		if (!(player)->is_closing)                                                                   \
			vd_actor_wake((player)->actor);                                                      \
		vdi_lock_release(&(player)->lock);                                                           \
	} while (0)

void vd_player_pause(struct vd_player *player)
{
	CONTROL(player, player->is_paused = true; player->steps_allowed = 0);
}

void vd_player_resume(struct vd_player *player)
{
	CONTROL(player, player->is_paused = false; player->stop_revision = 0);
}

void vdi_player_play_until(struct vd_player *player, vd_rev revision)
{
	CONTROL(player, player->is_paused = false; player->stop_revision = revision);
}

/* The pace restarts with the next record. */
void vd_player_set_speed(struct vd_player *player, double speed)
{
	CONTROL(player, player->speed = isfinite(speed) && speed > 0 ? speed : 0;
		player->pace_recorded.ns = 0);
}

void vd_player_step(struct vd_player *player, uint64_t count)
{
	CONTROL(player, player->steps_allowed += count);
}

void vd_player_seek(struct vd_player *player, vd_rev revision)
{
	CONTROL(player, player->seek_revision = revision);
}

void vd_player_seek_time(struct vd_player *player, vd_wall time)
{
	CONTROL(player, player->seek_time = time);
}

void vd_player_progress_get(const struct vd_player *player, struct vd_player_progress *ret_progress)
{
	struct vd_player *mine = (struct vd_player *) (uintptr_t) player; /* only its lock is modified */

	vdi_lock_acquire(&mine->lock);
	*ret_progress = player->progress;
	ret_progress->paused = player->is_paused;
	vdi_lock_release(&mine->lock);
}

/* ---- Waiters ---- */

static bool is_satisfied_locked(const struct vd_player *player, vd_rev revision)
{
	return player->progress.ended || player->is_closing ||
	       (revision != VD_PLAYER_END && player->progress.revision >= revision);
}

void vdi_player_wake_waiters_locked(struct vd_player *player)
{
	struct vdi_player_waiter *waiter, *next;
	SLIST_HEAD(, vdi_player_waiter) left = SLIST_HEAD_INITIALIZER(left);

	for (waiter = SLIST_FIRST(&player->waiters); waiter; waiter = next) {
		next = SLIST_NEXT(waiter, node);
		if (is_satisfied_locked(player, waiter->revision))
			vdi_wait_signal(&waiter->wait); /* it may be freed now */
		else
			SLIST_INSERT_HEAD(&left, waiter, node);
	}
	SLIST_FIRST(&player->waiters) = SLIST_FIRST(&left);
}

static vd_status wait_result_locked(const struct vd_player *player, vd_rev revision, struct vd_error *reterr)
{
	if (revision != VD_PLAYER_END && player->progress.revision >= revision)
		return VD_OK;
	if (player->error.code != VD_OK) {
		if (reterr)
			*reterr = player->error;
		return player->error.code;
	}
	if (player->progress.ended)
		return revision == VD_PLAYER_END ?
			       VD_OK :
			       vd_error_set(reterr, VD_NOT_FOUND,
					    "the log ends at revision %lld, before %lld",
					    (long long) player->progress.revision, (long long) revision);
	if (player->is_closing)
		return vd_error_set(reterr, VD_CLOSED, "the player was closed");
	return vd_error_set(reterr, VD_TIMEOUT, "the player is at revision %lld",
			    (long long) player->progress.revision);
}

vd_status vd_player_wait(struct vd_player *player, vd_rev revision, vd_dur timeout, struct vd_error *reterr)
{
	struct vdi_player_waiter waiter = { .revision = revision };
	vd_status		 status;
	bool			 signalled = true;

	VDI_REQUIRE(player, reterr);
	VDI_TRY(vdi_wait_check(player->env, __func__, reterr));
	vdi_wait_init(&waiter.wait, player->env);
	vdi_lock_acquire(&player->lock);
	if (is_satisfied_locked(player, revision))
		vdi_wait_signal(&waiter.wait);
	else
		SLIST_INSERT_HEAD(&player->waiters, &waiter, node);
	vdi_lock_release(&player->lock);
	if (timeout.ns < 0)
		vdi_wait_wait(&waiter.wait);
	else
		signalled = vdi_wait_until(&waiter.wait, vd_mono_add(vd_env_now(player->env), timeout));
	vdi_lock_acquire(&player->lock);
	if (!signalled && !vdi_wait_is_done(&waiter.wait))
		SLIST_REMOVE(&player->waiters, &waiter, vdi_player_waiter, node);
	status = wait_result_locked(player, revision, reterr);
	vdi_lock_release(&player->lock);
	vdi_wait_fini(&waiter.wait);
	return status;
}
