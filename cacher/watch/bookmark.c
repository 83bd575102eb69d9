/* A watcher is in the bucket of the second of its next bookmark, or of the time two seconds before its
 * deadline, at most 60 s ahead; a later deadline is filed again after 60 s. */
#include "bookmark.h"

#include "cache_watcher.h"

static int64_t second_of(vd_mono time)
{
	return time.ns / 1000000000;
}

void vdi_bookmark_init(struct vdi_bookmark_wheel *wheel, const struct vd_env *env)
{
	*wheel = (struct vdi_bookmark_wheel) { .env = env, .soon_next = VD_NEVER, .tick_next = VD_NEVER };
}

static void put(struct vdi_bookmark_wheel *wheel, struct vd_watcher **first, struct vd_watcher *watcher)
{
	watcher->wheel_next = *first;
	watcher->wheel_place = first;
	if (*first)
		(*first)->wheel_place = &watcher->wheel_next;
	*first = watcher;
	watcher->in_wheel = true;
	wheel->count++;
}

void vdi_bookmark_remove(struct vdi_bookmark_wheel *wheel, struct vd_watcher *watcher)
{
	if (!watcher->in_wheel)
		return;
	*watcher->wheel_place = watcher->wheel_next;
	if (watcher->wheel_next)
		watcher->wheel_next->wheel_place = watcher->wheel_place;
	watcher->in_wheel = false;
	wheel->count--;
}

static void schedule_tick(struct vdi_bookmark_wheel *wheel, vd_mono now)
{
	wheel->tick_next = vd_mono_add(
		now, (vd_dur) { 1000000000 + (int64_t) vd_env_random_below(wheel->env, 250000000) });
}

/* Files the watcher under its next due time: in 60 s, or 2 s before the deadline if that is earlier. After
 * that it moves to the list of exact deadlines, in time because ticks are up to 1.25 s apart. */
static void file(struct vdi_bookmark_wheel *wheel, struct vd_watcher *watcher, vd_mono now)
{
	vd_mono regular = watcher->allow_bookmarks ? vd_mono_add(now, VDI_BOOKMARK_PERIOD) : VD_NEVER;
	vd_mono last = watcher->deadline.ns == INT64_MAX ?
			       VD_NEVER :
			       (vd_mono) { watcher->deadline.ns - VDI_BOOKMARK_BEFORE_DEADLINE.ns };
	int64_t due_ns = VDI_MIN(regular.ns, last.ns), second;

	if (due_ns == INT64_MAX)
		return;
	if (last.ns <= now.ns) {
		put(wheel, &wheel->soon, watcher);
		wheel->soon_next.ns = VDI_MIN(wheel->soon_next.ns, watcher->deadline.ns);
		return;
	}
	second = VDI_MAX(second_of((vd_mono) { due_ns }), wheel->second + 1);
	second = VDI_MIN(second, wheel->second + VDI_BOOKMARK_BUCKETS - 1);
	put(wheel, &wheel->buckets[second % VDI_BOOKMARK_BUCKETS], watcher);
}

void vdi_bookmark_add(struct vdi_bookmark_wheel *wheel, struct vd_watcher *watcher)
{
	vd_mono now = vd_env_now(wheel->env);

	if (wheel->tick_next.ns == INT64_MAX) {
		wheel->second = second_of(now);
		schedule_tick(wheel, now);
	}
	file(wheel, watcher, now);
}

static void run_bucket(struct vdi_bookmark_wheel *wheel, struct vd_watcher **bucket, vd_mono now)
{
	struct vd_watcher *watcher = *bucket;

	while (watcher) {
		struct vd_watcher *next = watcher->wheel_next;
		vd_mono		   last = { watcher->deadline.ns - VDI_BOOKMARK_BEFORE_DEADLINE.ns };

		vdi_bookmark_remove(wheel, watcher);
		/* Between the last bookmark and the deadline nothing is due. A tick may visit the watcher up
		 * to a second early, or late. */
		if (watcher->allow_bookmarks && !watcher->had_last_bookmark &&
		    (now.ns < vd_mono_add(last, VD_MS(1250)).ns || watcher->deadline.ns == INT64_MAX)) {
			(void) vdi_delivery_worker_post(watcher, VDI_MESSAGE_BOOKMARK);
			watcher->had_last_bookmark = watcher->deadline.ns != INT64_MAX &&
						     vd_mono_add(now, VD_SECONDS(1)).ns > last.ns;
		}
		file(wheel, watcher, now);
		watcher = next;
	}
}

static void run_soon(struct vdi_bookmark_wheel *wheel, vd_mono now)
{
	struct vd_watcher *watcher = wheel->soon;

	wheel->soon_next = VD_NEVER;
	while (watcher) {
		struct vd_watcher *next = watcher->wheel_next;

		if (watcher->deadline.ns <= now.ns) {
			vdi_bookmark_remove(wheel, watcher);
			(void) vdi_delivery_worker_post(watcher, VDI_MESSAGE_DEADLINE);
		} else if (watcher->deadline.ns < wheel->soon_next.ns) {
			wheel->soon_next = watcher->deadline;
		}
		watcher = next;
	}
}

vd_mono vdi_bookmark_run(struct vdi_bookmark_wheel *wheel)
{
	vd_mono now = vd_env_now(wheel->env);

	if (wheel->tick_next.ns <= now.ns) {
		int64_t end = second_of(now);

		/* After a long pause every bucket is due once. */
		if (end - wheel->second > VDI_BOOKMARK_BUCKETS)
			wheel->second = end - VDI_BOOKMARK_BUCKETS;
		while (wheel->second < end) {
			wheel->second++;
			run_bucket(wheel, &wheel->buckets[wheel->second % VDI_BOOKMARK_BUCKETS], now);
		}
		schedule_tick(wheel, now);
	}
	/* After the buckets, which may have added watchers whose deadline has already passed. */
	if (wheel->soon_next.ns <= now.ns)
		run_soon(wheel, now);
	if (wheel->count == 0)
		wheel->tick_next = VD_NEVER;
	return wheel->soon_next.ns < wheel->tick_next.ns ? wheel->soon_next : wheel->tick_next;
}

bool vdi_bookmark_is_near(struct vdi_bookmark_wheel *wheel)
{
	int64_t second = wheel->second;

	if (wheel->count == 0 || wheel->asked == second)
		return false;
	wheel->asked = second;
	return wheel->buckets[(second + 1) % VDI_BOOKMARK_BUCKETS] ||
	       wheel->buckets[(second + 2) % VDI_BOOKMARK_BUCKETS];
}
