/* The bytes are cut into values (json_stream.h) wherever chunks begin and end; each value is an event. */
#include "kube_feed.h"

#include "kube_source.h"

#define REFUSAL_MAX ((size_t) 1 << 20)

void vdi_kube_feed_end(struct vdi_kube_feed *feed)
{
	if (feed->exchange)
		vdi_kube_cancel(feed->exchange);
	feed->exchange = NULL;
	vdi_json_stream_fini(&feed->frames);
	vdi_buffer_fini(&feed->refusal);
}

static bool is_future(struct vd_bytes message)
{
	static const char text[] = "Too large resource version";

	return message.size && memmem(message.data, message.size, text, sizeof text - 1) != NULL;
}

/* The end of the feed; the exchange exists no more. */
static void finish(struct vdi_kube_feed *feed, vd_status status, const struct vd_error *error)
{
	struct vd_error copy = { 0 };

	if (error)
		copy = *error;
	if (status == VD_TIMEOUT && feed->code && is_future(vd_bytes_of(copy.message)))
		status = copy.code = VD_TOO_LARGE_REVISION;
	vdi_kube_feed_end(feed);
	feed->ended(feed, status, &copy);
}

static void on_head(void *arg, const struct vdi_kube_head *head)
{
	struct vdi_kube_feed *feed = arg;

	feed->code = head->code;
	feed->head = *head;
	feed->has_progressed = true;
	if (feed->code == 200 && feed->opened)
		feed->opened(feed);
}

/* Reads an event as Go's encoding/json writes it, without a scan of the object, which its reader scans
 * anyway. False: another form, or not one of these types. */
static bool read_plain(struct vd_bytes json, struct vdi_kube_event *ret_event)
{
	static const struct {
		const char		*text;
		enum vdi_kube_event_type type;
	} starts[] = {
		{ "{\"type\":\"ADDED\",\"object\":{", VDI_KUBE_ADDED },
		{ "{\"type\":\"MODIFIED\",\"object\":{", VDI_KUBE_MODIFIED },
		{ "{\"type\":\"DELETED\",\"object\":{", VDI_KUBE_DELETED },
		{ "{\"type\":\"BOOKMARK\",\"object\":{", VDI_KUBE_BOOKMARK },
	};
	const char *text = json.data;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(starts); i++) {
		size_t size = strlen(starts[i].text);

		if (json.size < size + 2 || memcmp(text, starts[i].text, size) != 0 ||
		    text[json.size - 2] != '}')
			continue;
		*ret_event =
			(struct vdi_kube_event) { starts[i].type, { text + size - 1, json.size - size } };
		return true;
	}
	return false;
}

static vd_status take(void *arg, struct vd_bytes json)
{
	struct vdi_kube_feed *feed = arg;
	struct vdi_kube_event event;

	if (read_plain(json, &event))
		return feed->event(feed, &event, &feed->error);
	VDI_TRY(vdi_kube_event_read(&feed->source->events, json, &event, &feed->error));
	if (event.type == VDI_KUBE_ERROR)
		return vdi_kube_status_error(event.object, &feed->error);
	return feed->event(feed, &event, &feed->error);
}

static bool on_body(void *arg, struct vd_bytes bytes)
{
	struct vdi_kube_feed *feed = arg;
	vd_status	      status;

	feed->source->heard = vdi_kube_now(feed->source->member.kube);
	if (feed->code != 200) {
		vdi_buffer_append(&feed->refusal, bytes);
		return true;
	}
	status = vdi_json_stream_feed(&feed->frames, bytes, take, feed);
	if (status != VD_OK) {
		if (feed->error.code != status)
			(void) vd_error_set(&feed->error, status, "the server's watch is not readable: %s",
					    vd_status_sentence(status));
		vdi_kube_cancel(feed->exchange);
		feed->exchange = NULL;
		finish(feed, status, &feed->error);
	}
	return true;
}

static void on_ended(void *arg, vd_status status, const struct vd_error *error)
{
	struct vdi_kube_feed *feed = arg;
	struct vd_error	      refused = { 0 };

	feed->exchange = NULL;
	if (status == VD_OK && feed->code != 200) {
		status = vdi_kube_error_of(&feed->head, vdi_buffer_bytes(&feed->refusal), &refused);
		error = &refused;
	} else if (status == VD_OK && vdi_json_stream_is_open(&feed->frames)) {
		status = vd_error_set(&refused, VD_UNAVAILABLE, "the watch ended in the middle of an event");
		error = &refused;
	}
	finish(feed, status, error);
}

vd_status vdi_kube_feed_start(struct vdi_kube_feed *feed, const char *path, struct vd_error *reterr)
{
	const struct vdi_kube_handler handler = { on_head, on_body, on_ended, feed };
	struct vd_kube		     *kube = feed->source->member.kube;
	struct vdi_kube_http_request  request = {
		 .method = "GET",
		 .path = path,
		 .accept = "application/json",
		 .silence_max = vdi_kube_options(kube)->silence_max,
	};

	vdi_kube_feed_end(feed);
	vdi_buffer_init(&feed->refusal, REFUSAL_MAX);
	feed->code = 0;
	feed->has_progressed = false;
	memset(&feed->error, 0, sizeof feed->error);
	feed->source->watches_opened++;
	return vdi_kube_start(kube, &request, &handler, &feed->exchange, reterr);
}
