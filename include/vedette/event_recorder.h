/* Records Kubernetes Events (v1) about objects, as client-go's tools/record does.
 *
 * Recording never blocks: events are queued and sent one after another. Events that differ only in their
 * message are combined. A repeated event only increments the count of the first one (a patch). The rate of
 * events about one object is limited. The default limits are those of client-go. An event that cannot be sent
 * is tried again; meanwhile the queue fills up to its bound, and further events are dropped and counted.
 *
 * All functions may be called from any thread; only functions named _wait block. They exist only in a library
 * built with -Dkube=enabled. */
#ifndef VEDETTE_EVENT_RECORDER_H
#define VEDETTE_EVENT_RECORDER_H

#include <vedette/kube.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_event_recorder;

struct vd_event_recorder_options {
	size_t	    size;      /* sizeof(struct vd_event_recorder_options) */
	const char *component; /* source of the events, such as "my-controller" */
	const char *host;      /* node or pod; NULL: none */
	size_t	    queue_max; /* maximum number of queued events; default 1,000 */
	/* After similar_max different messages, events that differ only in their message are combined into
	 * one. The count starts again after similar_interval without such an event. Defaults: 10 and 10
	 * min. */
	uint32_t similar_max; /* 1 to 64 */
	vd_dur	 similar_interval;
	/* Limit of the events of one type about one object: burst at once, then one every refill. Defaults:
	 * 25 and 5 min. */
	uint32_t burst;
	vd_dur	 refill;
	uint32_t attempts;    /* maximum attempts to send one event; default 12 */
	vd_dur	 retry_delay; /* between attempts; the first delay is a random part of it; default 10 s */
	vd_dur	 flush;	      /* maximum time to send queued events on close; default 5 s */
};
#define VD_EVENT_RECORDER_OPTIONS_INIT                                                                       \
	{                                                                                                    \
		sizeof(struct vd_event_recorder_options), 0, 0, 1000, 10, { (int64_t) 600 * 1000000000 },    \
			25, { (int64_t) 300 * 1000000000 }, 12, { (int64_t) 10 * 1000000000 },               \
		{                                                                                            \
			(int64_t) 5 * 1000000000                                                             \
		}                                                                                            \
	}

/* Opens a recorder; does not contact the server. The caller owns it and closes it before the client. options
 * are copied. Errors: VD_INVALID_ARGUMENT (the message names the option), VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_event_recorder_open(struct vd_kube			   *kube,
						    const struct vd_event_recorder_options *options,
						    struct vd_event_recorder		  **ret_recorder,
						    struct vd_error			   *reterr);

/* The object that an event is about; kind and name are required. */
struct vd_event_object {
	struct vd_bytes api_version, kind;
	struct vd_bytes namespace_name; /* empty: cluster-scoped; the event is then in "default" */
	struct vd_bytes name, uid, resource_version;
	struct vd_bytes field_path; /* such as "spec.containers{app}" */
};

enum vd_event_type { VD_EVENT_NORMAL, VD_EVENT_WARNING };

#define VD_EVENT_MESSAGE_SIZE_MAX 1024

/* Queues an event; never blocks. reason is one word in UpperCamelCase, at most 128 bytes; the message is
 * cut after VD_EVENT_MESSAGE_SIZE_MAX bytes. The result may be ignored: events that are not recorded are
 * counted and logged. Errors: VD_FULL, VD_CLOSED, VD_INVALID_ARGUMENT, VD_NOMEM. */
VD_API vd_status vd_event_record(struct vd_event_recorder *recorder, const struct vd_event_object *object,
				 enum vd_event_type type, const char *reason, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Numbers of events since the recorder was opened. */
struct vd_event_recorder_counts {
	uint64_t written;  /* created on the server, or added to the count of an earlier event */
	uint64_t filtered; /* not sent: above the limit of one object */
	uint64_t dropped;  /* not sent: the queue was full, memory was short, or flush had passed */
	uint64_t rejected; /* refused by the server */
	uint64_t failed;   /* not sent by any attempt */
};
/* Reads the counts. */
VD_API void vd_event_recorder_counts(struct vd_event_recorder	     *recorder,
				     struct vd_event_recorder_counts *ret_counts);

/* Sends the queued events, at most for flush, and frees the recorder; then calls done (may be NULL).
 * recorder NULL: done is called at once. The _wait form blocks until then and returns NULL. */
VD_API void vd_event_recorder_close(struct vd_event_recorder *recorder, void (*done)(void *arg), void *arg);
VD_API struct vd_event_recorder *vd_event_recorder_close_wait(struct vd_event_recorder *recorder);

#ifdef __cplusplus
}
#endif
#endif
