/* Progress on demand. A server sends a bookmark each minute; a reader that asks cannot wait so long.
 *
 *   watches that ask -> current revision T of the server -> reached by the pump?   yes: progress
 *                                                           no: proof watch -> bookmark >= T: progress
 *
 * A proof watch is a second watch from the pump's position that lasts 3 s; a kube-apiserver sends a bookmark
 * before the end of such a watch. Its events go through the mirror like those of the pump, and whichever
 * comes second is dropped. A server without a watch cache for the resource sends no bookmark; after two
 * such proof watches the store offers no progress. */
#include <inttypes.h>

#include "kube_source.h"

#define PROOF_S 3
#define MISSES_MAX 2
#define RETRY VD_SECONDS(1)

/* True: a watch or stream asked since the last round; all that asked take part in the next one. */
static bool begin_round(struct vdi_kube_source *source)
{
	struct vdi_kube_source_stream *stream;
	struct vdi_kube_source_watch  *watch;
	bool			       is_wanted = false;

	vdi_lock_acquire(&source->lock);
	LIST_FOREACH(watch, &source->watches, node)
	{
		if (watch->wants_progress && watch->is_placed) {
			watch->wants_progress = false;
			watch->in_round = true;
		}
		is_wanted |= watch->in_round;
	}
	LIST_FOREACH(stream, &source->streams, node)
	{
		stream->in_round |= stream->wants_progress;
		stream->wants_progress = false;
		is_wanted |= stream->in_round;
	}
	vdi_lock_release(&source->lock);
	return is_wanted;
}

/* revision 0: the server proves none. */
static void end_round(struct vdi_kube_source *source, vd_rev revision)
{
	struct vdi_kube_source_stream *stream;
	struct vdi_kube_source_watch  *watch;

	source->progress.target = 0;
	vdi_lock_acquire(&source->lock);
	LIST_FOREACH(watch, &source->watches, node)
	{
		if (!watch->in_round)
			continue;
		watch->in_round = false;
		watch->progress = VDI_MAX(watch->progress, revision);
	}
	LIST_FOREACH(stream, &source->streams, node)
	{
		stream->is_proven |= stream->in_round && revision;
		stream->in_round = false;
	}
	vdi_kube_member_wake(&source->member); /* for the streams */
	vdi_kube_watches_wake_locked(source);
	vdi_lock_release(&source->lock);
}

/* Newest revision up to which the readers can be given everything. */
static vd_rev reached(const struct vdi_kube_source *source)
{
	return VDI_MAX(source->covered, vdi_kube_ring_shown(&source->ring));
}

void vdi_kube_progress_delay(struct vdi_kube_source *source)
{
	source->progress.retry_at = vd_mono_add(vdi_kube_now(source->member.kube), RETRY);
	vdi_kube_member_wake(&source->member);
}

static void give_up(struct vdi_kube_source *source)
{
	source->progress.target = 0;
	vdi_kube_progress_delay(source);
}

static void check(struct vdi_kube_source *source)
{
	if (source->progress.target && reached(source) >= source->progress.target) {
		vdi_kube_feed_end(&source->progress.proof);
		source->progress.misses = 0;
		end_round(source, reached(source));
	}
}

static vd_status on_event(struct vdi_kube_feed *feed, const struct vdi_kube_event *event,
			  struct vd_error *reterr)
{
	struct vdi_kube_source *source = feed->source;

	/* The pump may have lost its place meanwhile. */
	if (!source->pump.is_filled)
		return VD_CANCELED;
	VDI_TRY(vdi_kube_pump_apply(source, event, reterr));
	if (event->type == VDI_KUBE_BOOKMARK && reached(source) >= source->progress.target)
		return VD_CANCELED; /* the proof is complete */
	return VD_OK;
}

/* There is a target: whatever clears it closes the proof watch. */
static void on_ended(struct vdi_kube_feed *feed, vd_status status, const struct vd_error *error)
{
	struct vdi_kube_source *source = feed->source;

	if (source->pump.is_filled && reached(source) >= source->progress.target) {
		check(source);
		return;
	}
	if (status == VD_OK && ++source->progress.misses == MISSES_MAX) {
		vdi_log(source->env, VD_LOG_WARNING, "kube",
			"%s: the server sends no bookmarks: consistent reads are sent to it", source->name);
		vdi_lock_acquire(&source->lock);
		source->has_no_progress = true;
		vdi_lock_release(&source->lock);
		end_round(source, 0);
		return;
	}
	give_up(source);
}

static void prove(struct vdi_kube_source *source)
{
	struct vdi_kube_progress *progress = &source->progress;
	struct vd_error		  error = { 0 };
	vd_status		  status = VD_NOMEM;
	char			 *url;

	progress->proof.source = source;
	progress->proof.event = on_event;
	progress->proof.ended = on_ended;
	url = vdi_kube_source_url(source, source->path,
				  "watch=true&allowWatchBookmarks=true&timeoutSeconds=%u"
				  "&resourceVersion=%" PRId64,
				  PROOF_S, (int64_t) vdi_kube_pump_position(source));
	if (url)
		status = vdi_kube_feed_start(&progress->proof, url, &error);
	vdi_free(url);
	if (status != VD_OK && status != VD_AGAIN)
		give_up(source);
}

static void on_revision(struct vdi_kube_ask *ask, vd_status status, vd_rev revision,
			const struct vd_error *error)
{
	struct vdi_kube_source *source = VDI_CONTAINER_OF(ask, struct vdi_kube_source, progress.ask);

	source->progress.is_asking = false;
	if (status != VD_OK) {
		give_up(source);
		return;
	}
	source->progress.target = revision;
	vdi_kube_member_wake(&source->member);
}

vd_mono vdi_kube_progress_run(struct vdi_kube_source *source, vd_mono now)
{
	struct vdi_kube_progress *progress = &source->progress;

	if (progress->target)
		check(source);
	if (progress->is_asking || progress->proof.exchange || source->pump.step != VDI_KUBE_FOLLOW)
		return VD_NEVER;
	if (progress->retry_at.ns > now.ns)
		return progress->retry_at;
	if (progress->target) {
		prove(source);
	} else if (begin_round(source)) {
		progress->is_asking = true;
		progress->ask.answer = on_revision;
		vdi_kube_ask(source, &progress->ask);
	}
	return VD_NEVER;
}

void vdi_kube_progress_stop(struct vdi_kube_source *source)
{
	vdi_kube_feed_end(&source->progress.proof);
	source->progress.target = 0;
}

void vdi_kube_progress_end(struct vdi_kube_source *source)
{
	vdi_kube_feed_end(&source->progress.proof);
	vdi_kube_ask_end(source, &source->progress.ask);
}
