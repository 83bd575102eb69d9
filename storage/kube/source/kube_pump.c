/* The pump: one attempt after the other, each of which ends in FOLLOW, until it fails.
 *
 *   OFF -> WAIT -> IDENTIFY -> FILL (-> FILL_PAGES) -> FOLLOW     first attempt, and after 410
 *          WAIT -> IDENTIFY -> CHECK --------------->  FOLLOW     later: same server as before?
 *
 * A server that is restarted ends its watches as if their time had passed, so the server is verified after
 * each end.
 *
 * A failure (cut, 429, 5xx, silence, 401) goes back to WAIT with a growing delay; readers notice nothing.
 * Lost history (410) and a restored server also end the watches with VD_EXPIRED. */
#include <inttypes.h>
#include <stdio.h>

#include "kube_source.h"

/* Validity of a check while watches are refused: less than a restore of a server takes. */
#define CHECK_VALID VD_SECONDS(1)
#define TIMEOUT_MIN_S 300
#define STABLE_AFTER VD_SECONDS(5)
/* A cacher lists 0.8 s to 1.6 s after the end of its watch. */
#define READER_WAIT VD_SECONDS(2)
#define TOO_BIG_RETRY_S 30u

static vd_mono now_of(const struct vdi_kube_source *source)
{
	return vdi_kube_now(source->member.kube);
}

/* ---- Steps ---- */

static void wait_until(struct vdi_kube_source *source, vd_mono at)
{
	source->pump.step = VDI_KUBE_WAIT;
	source->pump.backoff.retry_at = at;
	vdi_kube_member_wake(&source->member);
}

static void follow(struct vdi_kube_source *source)
{
	source->pump.step = VDI_KUBE_FOLLOW;
	vdi_kube_member_wake(&source->member);
}

void vdi_kube_pump_open(struct vdi_kube_source *source, const char *query)
{
	struct vdi_kube_pump *pump = &source->pump;
	unsigned	      timeout_s;
	struct vd_error	      error = { 0 };
	vd_status	      status = VD_NOMEM;
	char		     *url;

	timeout_s = TIMEOUT_MIN_S + (unsigned) vd_env_random_below(source->env, TIMEOUT_MIN_S);
	url = vdi_kube_source_url(source, source->path,
				  "watch=true&allowWatchBookmarks=true&timeoutSeconds=%u&%s", timeout_s,
				  query);
	if (url)
		status = vdi_kube_feed_start(&pump->feed, url, &error);
	vdi_free(url);
	if (status == VD_AGAIN)
		return; /* run is called when the identity is there */
	if (status != VD_OK) {
		vdi_kube_pump_failed(source, 0, status, &error);
		return;
	}
	pump->opened = now_of(source);
	vdi_lock_acquire(&source->lock);
	source->health.watches++;
	vdi_lock_release(&source->lock);
}

static void open_follow(struct vdi_kube_source *source)
{
	char query[64];

	snprintf(query, sizeof query, "resourceVersion=%" PRId64, (int64_t) vdi_kube_pump_position(source));
	vdi_kube_pump_open(source, query);
}

static void on_check(struct vdi_kube_ask *ask, vd_status status, vd_rev revision,
		     const struct vd_error *error)
{
	struct vdi_kube_source *source = VDI_CONTAINER_OF(ask, struct vdi_kube_source, pump.check);
	struct vdi_kube_pump   *pump = &source->pump;

	if (status != VD_OK)
		vdi_kube_pump_failed(source, source->ask.code, status, error);
	else if (revision < VDI_MAX(pump->mirror.applied, pump->covered))
		vdi_kube_pump_restored(source, "its revision went back");
	else {
		pump->checked_at = now_of(source);
		follow(source);
	}
}

static void set_uid(struct vdi_kube_source *source, const char *uid)
{
	uint64_t id = 14695981039346656037u;

	memcpy(source->pump.uid, uid, sizeof source->pump.uid);
	for (size_t i = 0; uid[i]; i++)
		id = (id ^ (unsigned char) uid[i]) * 1099511628211u;
	vdi_lock_acquire(&source->lock);
	source->id = id ? id : 1;
	vdi_lock_release(&source->lock);
}

/* The revisions of all answers so far are those of another server. */
static void lose_states(struct vdi_kube_source *source)
{
	source->epoch++;
	vdi_lock_acquire(&source->lock);
	source->known = 0;
	vdi_kube_ring_lose(&source->ring);
	vdi_lock_release(&source->lock);
}

static void identified(struct vdi_kube_source *source)
{
	struct vdi_kube_pump *pump = &source->pump;

	if (!pump->is_filled) {
		vdi_kube_fill_begin(source);
		return;
	}
	pump->step = VDI_KUBE_CHECK;
	pump->check.answer = on_check;
	vdi_kube_ask(source, &pump->check);
}

static void on_identity(struct vdi_kube_cluster_ask *ask, const struct vdi_kube_cluster_answer *answer)
{
	struct vdi_kube_source *source = VDI_CONTAINER_OF(ask, struct vdi_kube_source, pump.identity);
	struct vdi_kube_pump   *pump = &source->pump;
	bool			is_other;

	if (answer->status != VD_OK) {
		vdi_kube_pump_failed(source, answer->code, answer->status, answer->error);
		return;
	}
	is_other = *answer->uid && *pump->uid && strcmp(answer->uid, pump->uid) != 0;
	if (*answer->uid)
		set_uid(source, answer->uid);
	if (is_other)
		lose_states(source); /* also if nothing is filled: readers may have listed */
	if (pump->step == VDI_KUBE_FILL_PAGES)
		vdi_kube_fill_identified(source, is_other);
	else if (is_other && pump->is_filled)
		vdi_kube_pump_restored(source, "the uid of its namespace kube-system changed");
	else
		identified(source);
}

/* Pages and positions are of the server that answers after their end; the first attempt takes any answer. */
void vdi_kube_pump_identify(struct vdi_kube_source *source)
{
	struct vdi_kube_pump *pump = &source->pump;
	vd_mono		      not_before;
	vd_status	      status;

	if (pump->step == VDI_KUBE_FILL_PAGES)
		not_before = now_of(source);
	else
		not_before = pump->ended; /* also if nothing is filled: readers may have listed */
	if (pump->step != VDI_KUBE_FILL_PAGES)
		pump->step = VDI_KUBE_IDENTIFY;
	pump->identity.answer = on_identity;
	status = vdi_kube_cluster_ask(source->member.kube, &pump->identity, not_before);
	if (status != VD_OK)
		vdi_kube_pump_failed(source, 0, status, NULL);
}

/* True: a watch that is refused again and again does not cause a check each time. */
static bool is_checked(const struct vdi_kube_source *source)
{
	vd_mono checked_at = source->pump.checked_at;

	return checked_at.ns != 0 && vd_mono_since(now_of(source), checked_at).ns < CHECK_VALID.ns;
}

static void attempt(struct vdi_kube_source *source)
{
	source->pump.awaits_reader = false;
	if (source->pump.is_filled && is_checked(source))
		follow(source);
	else
		vdi_kube_pump_identify(source);
}

/* ---- Ends ---- */

static void forget(struct vdi_kube_source *source, vd_status cause, const char *why)
{
	struct vdi_kube_pump *pump = &source->pump;

	pump->is_filled = false;
	pump->hold_at = VD_NEVER;
	vdi_kube_progress_stop(source);
	vdi_lock_acquire(&source->lock);
	source->is_filled = false;
	vdi_kube_watches_relist_locked(source, INT64_MAX, cause, why);
	vdi_lock_release(&source->lock);
}

/* Fills again after forget. On a server that proves no progress, a fill answers only lists that were opened
 * before it began; readers that have just lost their watch list soon, so the fill waits for them. */
static void fill_again(struct vdi_kube_source *source)
{
	struct vdi_kube_pump *pump = &source->pump;

	pump->awaits_reader = source->has_no_progress; /* changed by this actor only */
	wait_until(source, pump->awaits_reader ? vd_mono_add(now_of(source), READER_WAIT) : (vd_mono) { 0 });
}

void vdi_kube_pump_restored(struct vdi_kube_source *source, const char *why)
{
	char text[160];

	vdi_log(source->env, VD_LOG_WARNING, "kube",
		"%s: the server was restored or replaced (%s): list again", source->name, why);
	snprintf(text, sizeof text, "the server was restored or replaced: %s", why);
	lose_states(source);
	vdi_kube_pump_end(source); /* a list may have found it while the pump was busy */
	forget(source, VD_EXPIRED, text);
	fill_again(source);
}

/* All objects of a resource that the server no longer has are gone. */
static void take_removal(struct vdi_kube_source *source)
{
	struct vdi_kube_pump *pump = &source->pump;
	/* One more than the newest state with objects, from which the empty one must differ. */
	vd_rev revision = VDI_MAX(pump->covered, pump->mirror.applied) + 1;

	vdi_kube_mirror_fini(&pump->mirror);
	vdi_kube_source_mirror(source, &pump->mirror);
	pump->mirror.applied = revision;
	forget(source, VD_NOT_FOUND, "the server no longer has the resource");
	vdi_lock_acquire(&source->lock);
	vdi_kube_ring_reset(&source->ring, revision);
	source->known = VDI_MAX(source->known, revision);
	source->removed = revision;
	vdi_kube_watches_expire_locked(source, revision, VD_EXPIRED, "the server no longer has the resource");
	vdi_lock_release(&source->lock);
	pump->is_removed = true;
}

/* The answers that show a removal arrive within 10 s, the interval of discovery. */
static vd_dur removed_retry(unsigned answers)
{
	switch (answers) {
	case 1: return VD_SECONDS(1);
	case 2: return VD_SECONDS(8);
	default: return VDI_KUBE_REMOVED_RETRY;
	}
}

static void not_there(struct vdi_kube_source *source, const struct vd_error *error)
{
	struct vdi_kube_pump *pump = &source->pump;
	struct vd_error	      ended = { 0 };

	pump->removed_answers++;
	if (pump->removed_answers == VDI_KUBE_REMOVED_ANSWERS && pump->is_filled)
		take_removal(source);
	vdi_kube_source_state(source, VD_KUBE_REMOVED, error);
	if (!pump->is_filled && !pump->is_removed) {
		(void) vd_error_set(&ended, VD_UNAVAILABLE, "the server has no resource %s", source->name);
		vdi_kube_streams_end(source, &ended);
	}
	if (pump->backoff.attempts < UINT32_MAX)
		pump->backoff.attempts++;
	wait_until(source, vd_mono_add(now_of(source), removed_retry(pump->removed_answers)));
}

/* Readers that wait for the initial state get errors that do not pass without a change; all that wait, if the
 * source is full. */
static void tell_streams(struct vdi_kube_source *source, int code, const struct vd_error *error)
{
	bool is_refused = code >= 400 && code < 500 && code != 429 && code != 410 && code != 408;

	if (error->code == VD_TOO_BIG || (!source->pump.is_filled && is_refused))
		vdi_kube_streams_end(source, error);
}

void vdi_kube_pump_failed(struct vdi_kube_source *source, int code, vd_status status,
			  const struct vd_error *error)
{
	struct vdi_kube_pump *pump = &source->pump;
	struct vd_error	      copy = vdi_kube_source_error(status, error);

	vdi_kube_pages_end(&pump->pages);
	vdi_kube_mirror_fini(&pump->filling);
	if (code == 0) { /* the next server may be another one */
		pump->checked_at = (vd_mono) { 0 };
		pump->ended = now_of(source);
	}
	if (code == 404) {
		not_there(source, &copy);
		return;
	}
	if (status == VD_EXPIRED && pump->is_filled) {
		vdi_log_limited(source->env, &source->log_limit, VD_LOG_WARNING, "kube",
				"%s: the server lost history (%s): list again", source->name, copy.message);
		forget(source, VD_EXPIRED, copy.message);
		if (vd_mono_since(now_of(source), pump->filled_at).ns > VD_SECONDS(1).ns) {
			fill_again(source);
			return;
		}
	}
	if (status == VD_TOO_BIG) /* it does not pass soon, and each attempt may be a list */
		copy.retry_after_s = VDI_MAX(copy.retry_after_s, TOO_BIG_RETRY_S);
	vdi_log_limited(source->env, &source->log_limit, VD_LOG_WARNING, "kube", "%s: %s; trying again",
			source->name, copy.message);
	vdi_kube_backoff_fail(source->member.kube, &pump->backoff, copy.retry_after_s);
	vdi_kube_source_state(source, VD_KUBE_RETRYING, &copy);
	tell_streams(source, code, &copy);
	wait_until(source, pump->backoff.retry_at);
}

/* True: the watch has lasted long enough to be a success, also without events. */
static bool is_stable(const struct vdi_kube_source *source)
{
	return source->pump.step == VDI_KUBE_FOLLOW &&
	       vd_mono_since(now_of(source), source->pump.opened).ns > STABLE_AFTER.ns;
}

static void on_ended(struct vdi_kube_feed *feed, vd_status status, const struct vd_error *error)
{
	struct vdi_kube_source *source = feed->source;
	struct vdi_kube_pump   *pump = &source->pump;
	bool			was_stable = is_stable(source);

	pump->ended = now_of(source);
	if (vdi_kube_pump_holds(source))
		pump->hold_at = VD_NEVER; /* companions may have been cut off; the next watch repeats all */
	if (pump->step == VDI_KUBE_FILL) {
		if (vdi_kube_fill_refused(source, status))
			return;
		if (status == VD_OK) {
			status = VD_UNAVAILABLE;
			error = NULL;
		}
	}
	if (was_stable)
		vdi_kube_backoff_reset(&pump->backoff);
	if (status == VD_OK && (was_stable || feed->has_progressed))
		wait_until(source, was_stable ? (vd_mono) { 0 } : vd_mono_add(now_of(source), VD_SECONDS(1)));
	else
		vdi_kube_pump_failed(source, feed->code, status, error);
}

static void on_opened(struct vdi_kube_feed *feed)
{
	struct vdi_kube_source *source = feed->source;

	source->pump.checked_at = (vd_mono) { 0 };
	source->pump.removed_answers = 0;
	if (source->pump.step == VDI_KUBE_FOLLOW)
		vdi_kube_source_state(source, VD_KUBE_WATCHING, NULL);
}

static vd_status on_event(struct vdi_kube_feed *feed, const struct vdi_kube_event *event,
			  struct vd_error *reterr)
{
	struct vdi_kube_source *source = feed->source;
	struct vdi_kube_pump   *pump = &source->pump;
	vd_rev			newest = VDI_MAX(pump->covered, pump->mirror.applied);

	if (pump->step == VDI_KUBE_FILL)
		return vdi_kube_fill_event(source, event, reterr);
	VDI_TRY(vdi_kube_pump_apply(source, event, reterr));
	/* A server that repeats an event and cuts, over and over, is not a success. */
	if (VDI_MAX(pump->covered, pump->mirror.applied) > newest || is_stable(source)) {
		vdi_kube_backoff_reset(&pump->backoff);
		vdi_kube_source_state(source, VD_KUBE_WATCHING, NULL);
	}
	return VD_OK;
}

void vdi_kube_pump_filled(struct vdi_kube_source *source, vd_rev revision)
{
	struct vdi_kube_pump *pump = &source->pump;
	vd_rev		      needed = revision;

	vdi_kube_mirror_fini(&pump->mirror);
	pump->mirror = pump->filling;
	memset(&pump->filling, 0, sizeof pump->filling);
	pump->mirror.applied = pump->covered = revision;
	pump->is_filled = true;
	pump->is_removed = pump->may_grow = false;
	pump->removed_answers = 0;
	pump->filled_at = now_of(source);
	pump->hold_at = VD_NEVER;
	vdi_kube_backoff_reset(&pump->backoff);
	vdi_lock_acquire(&source->lock);
	vdi_kube_ring_reset(&source->ring, revision);
	source->is_filled = true;
	source->filled = source->fills;
	source->covered = revision;
	source->known = VDI_MAX(source->known, revision);
	source->health.revision = revision;
	source->health.lists++;
	if (source->removed) { /* the objects that came back are no events */
		needed = VDI_MAX(revision, source->removed + 1);
		vdi_kube_watches_relist_locked(source, needed, VD_EXPIRED,
					       "the server has the resource again");
	} else {
		vdi_kube_watches_expire_locked(source, needed, VD_EXPIRED,
					       "the events since its start are not available; list again");
	}
	source->removed = 0;
	vdi_lock_release(&source->lock);
	vdi_kube_source_state(source, VD_KUBE_WATCHING, NULL);
	(void) vdi_kube_streams_run(source, pump->filled_at);
}

/* ---- Run ---- */

static bool has_streams(struct vdi_kube_source *source)
{
	bool has_any;

	vdi_lock_acquire(&source->lock);
	has_any = !LIST_EMPTY(&source->streams);
	vdi_lock_release(&source->lock);
	return has_any;
}

static void run_step(struct vdi_kube_source *source, vd_mono now)
{
	struct vdi_kube_pump *pump = &source->pump;

	switch (pump->step) {
	case VDI_KUBE_OFF:
		pump->feed.source = source;
		pump->feed.event = on_event;
		pump->feed.ended = on_ended;
		pump->feed.opened = on_opened;
		pump->hold_at = VD_NEVER;
		attempt(source);
		break;
	case VDI_KUBE_WAIT:
		if (pump->backoff.retry_at.ns <= now.ns || (pump->awaits_reader && has_streams(source)))
			attempt(source);
		break;
	case VDI_KUBE_FILL:
	case VDI_KUBE_FILL_PAGES: vdi_kube_fill_run(source); break;
	case VDI_KUBE_FOLLOW:
		if (pump->feed.exchange == NULL)
			open_follow(source);
		break;
	case VDI_KUBE_IDENTIFY:
	case VDI_KUBE_CHECK: break;
	}
}

vd_mono vdi_kube_pump_run(struct vdi_kube_source *source, vd_mono now)
{
	struct vdi_kube_pump *pump = &source->pump;
	bool		      is_wanted;
	vd_mono		      due = VD_NEVER;

	vdi_lock_acquire(&source->lock);
	is_wanted = source->is_wanted;
	vdi_lock_release(&source->lock);
	if (pump->step == VDI_KUBE_OFF && !is_wanted)
		return VD_NEVER;
	run_step(source, now);
	if (pump->step == VDI_KUBE_WAIT)
		due = pump->backoff.retry_at;
	if (vdi_kube_pump_holds(source) && pump->hold_at.ns <= now.ns) {
		/* A companion has arrived in part; if the rest does not arrive, silence ends the watch. */
		if (vdi_json_stream_is_open(&pump->feed.frames) ||
		    vdi_json_stream_is_open(&source->progress.proof.frames))
			pump->hold_at = vd_mono_add(now, VDI_KUBE_HOLD);
		else
			vdi_kube_pump_show(source);
	}
	if (vdi_kube_pump_holds(source))
		due.ns = VDI_MIN(due.ns, pump->hold_at.ns);
	return due;
}

void vdi_kube_pump_end(struct vdi_kube_source *source)
{
	struct vdi_kube_pump *pump = &source->pump;

	vdi_kube_feed_end(&pump->feed);
	vdi_kube_cluster_ask_end(source->member.kube, &pump->identity);
	vdi_kube_pages_end(&pump->pages);
	vdi_kube_ask_end(source, &pump->check);
	vdi_kube_mirror_fini(&pump->filling);
}
