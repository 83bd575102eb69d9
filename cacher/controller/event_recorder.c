/* Callers append events to a queue under a lock. The recorder's actor takes one at a time, correlates it, and
 * sends it: POST for a new Event, PATCH of the count for a known one; if that one is gone, POST again. While
 * an event is being sent or waits for its next attempt, the others wait behind it.
 *
 *   record --> queue --actor--> correlate --> POST | PATCH --answer--> next
 *                                  | limited      \--failed--> wait, again
 *                                  v filtered */
#include <stdarg.h>
#include <stdio.h>

#include "env.h"
#include "event_sender.h"
#include "lock.h"
#include "metrics.h"
#include "usage.h"
#include "wait.h"

#define REASON_SIZE_MAX 128
#define FIELD_SIZE_MAX 1024

enum outcome { WRITTEN, FILTERED, DROPPED, REJECTED, FAILED, OUTCOMES };

struct vd_event_recorder {
	/* Fixed. */
	const struct vd_env		*env;
	struct vd_event_recorder_options options;
	struct vdi_event_sender		 sender; /* component and host are owned */
	struct vd_actor			*actor;
	struct vdi_usage		 usage;
	struct vdi_metric		*metrics[OUTCOMES];

	/* Actor. */
	struct vdi_event_correlator correlator;
	struct vdi_event	   *current; /* being sent */
	bool			    is_outstanding;
	bool			    is_create; /* the current event is created although it was counted */
	unsigned		    attempts;  /* of the current event */
	vd_mono			    attempt_at;
	vd_mono			    flush_until; /* 0: not closing */
	bool			    is_gone;	 /* the actor was closed */

	struct vdi_lock lock;
	/* Under lock. */
	struct vdi_event *first, *last;
	size_t		  count;
	int64_t		  name_ns; /* in the name of the newest event; names are unique */
	uint64_t	  counts[OUTCOMES];
	bool		  is_answered;
	vd_status	  answer; /* of the outstanding request */
	struct vd_error	  answer_error;
	bool		  is_closed;
	void (*closed)(void *arg);
	void *closed_arg;
};

static struct vdi_log_limit drop_limit = VDI_LOG_LIMIT(VD_SECONDS(10));

static void count_locked(struct vd_event_recorder *recorder, enum outcome outcome)
{
	recorder->counts[outcome]++;
	vdi_metric_add(recorder->metrics[outcome], 1);
}

static void count(struct vd_event_recorder *recorder, enum outcome outcome)
{
	vdi_lock_acquire(&recorder->lock);
	count_locked(recorder, outcome);
	vdi_lock_release(&recorder->lock);
}

/* ---- Recording ---- */

static vd_status check_object(const struct vd_event_object *object, const char *reason)
{
	const struct vd_bytes fields[] = { object->api_version, object->kind, object->namespace_name,
					   object->name,	object->uid,  object->resource_version,
					   object->field_path };

	for (unsigned i = 0; i < VDI_ARRAY_SIZE(fields); i++)
		if (fields[i].size > FIELD_SIZE_MAX || (fields[i].size && fields[i].data == NULL))
			return VD_INVALID_ARGUMENT;
	if (object->kind.size == 0 || object->name.size == 0 || reason[0] == 0 ||
	    strlen(reason) > REASON_SIZE_MAX)
		return VD_INVALID_ARGUMENT;
	return VD_OK;
}

/* The size of a message that is cut between characters. */
static size_t cut_message(const char *message, size_t size)
{
	if (size <= VD_EVENT_MESSAGE_SIZE_MAX)
		return size;
	size = VD_EVENT_MESSAGE_SIZE_MAX;
	while (size && ((unsigned char) message[size] & 0xc0) == 0x80)
		size--;
	return size;
}

/* Copies the fields into a new event. */
static struct vdi_event *new_event(const struct vd_event_object *object, enum vd_event_type type,
				   const char *reason, struct vd_bytes message)
{
	const struct vd_bytes fields[VDI_EVENT_FIELDS] = {
		[VDI_EVENT_API_VERSION] = object->api_version,
		[VDI_EVENT_KIND] = object->kind,
		[VDI_EVENT_NAMESPACE] = object->namespace_name,
		[VDI_EVENT_NAME] = object->name,
		[VDI_EVENT_UID] = object->uid,
		[VDI_EVENT_RESOURCE_VERSION] = object->resource_version,
		[VDI_EVENT_FIELD_PATH] = object->field_path,
		[VDI_EVENT_TYPE] = vd_bytes_of(type == VD_EVENT_WARNING ? "Warning" : "Normal"),
		[VDI_EVENT_REASON] = vd_bytes_of(reason),
		[VDI_EVENT_MESSAGE] = message,
	};
	struct vdi_event *event;
	size_t		  size = 0;
	char		 *at;

	for (unsigned i = 0; i < VDI_EVENT_FIELDS; i++)
		size += fields[i].size;
	event = vdi_calloc(1, sizeof *event + size);
	if (event == NULL)
		return NULL;
	at = event->data;
	for (unsigned i = 0; i < VDI_EVENT_FIELDS; i++) {
		if (fields[i].size)
			memcpy(at, fields[i].data, fields[i].size);
		event->fields[i] = (struct vd_bytes) { at, fields[i].size };
		at += fields[i].size;
	}
	event->count = 1;
	return event;
}

static vd_status enqueue_locked(struct vd_event_recorder *recorder, struct vdi_event *event)
{
	int64_t now_ns = vd_env_wall(recorder->env).ns;

	if (recorder->is_closed)
		return VD_CLOSED;
	if (event == NULL)
		return VD_NOMEM;
	if (recorder->count >= recorder->options.queue_max)
		return VD_FULL;
	event->first = event->last = (vd_wall) { now_ns };
	recorder->name_ns = VDI_MAX(now_ns, recorder->name_ns + 1);
	vdi_event_name(event, recorder->name_ns);
	if (recorder->last)
		recorder->last->next = event;
	else
		recorder->first = event;
	recorder->last = event;
	recorder->count++;
	vd_actor_wake(recorder->actor);
	return VD_OK;
}

vd_status vd_event_record(struct vd_event_recorder *recorder, const struct vd_event_object *object,
			  enum vd_event_type type, const char *reason, const char *format, ...)
{
	char		  message[VD_EVENT_MESSAGE_SIZE_MAX + 8];
	struct vdi_event *event;
	va_list		  arguments;
	int		  size;
	vd_status	  status;

	VDI_REQUIRE(recorder, NULL);
	VDI_REQUIRE(object, NULL);
	VDI_REQUIRE(reason, NULL);
	VDI_REQUIRE(format, NULL);
	if (type != VD_EVENT_NORMAL && type != VD_EVENT_WARNING)
		return VD_INVALID_ARGUMENT;
	VDI_TRY(check_object(object, reason));
	va_start(arguments, format);
	size = vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	if (size < 0)
		return VD_INVALID_ARGUMENT;
	size = VDI_MIN(size, (int) sizeof message - 1);
	event = new_event(object, type, reason,
			  (struct vd_bytes) { message, cut_message(message, (size_t) size) });
	vdi_lock_acquire(&recorder->lock);
	status = enqueue_locked(recorder, event);
	if (status != VD_OK)
		count_locked(recorder, DROPPED);
	vdi_lock_release(&recorder->lock);
	if (status != VD_OK) {
		vdi_log_limited(recorder->env, &drop_limit, VD_LOG_WARNING, "event_recorder",
				"an event was dropped (%s): %s", reason, vd_status_sentence(status));
		vdi_free(event);
	}
	return status;
}

/* ---- Sending ---- */

static void answered(void *arg, vd_status status, const struct vd_kube_answer *answer,
		     const struct vd_error *error)
{
	struct vd_event_recorder *recorder = arg;

	vdi_lock_acquire(&recorder->lock);
	recorder->is_answered = true;
	recorder->answer = status;
	recorder->answer_error = error ? *error : (struct vd_error) { 0 };
	vd_actor_wake(recorder->actor);
	vdi_lock_release(&recorder->lock);
}

static void end_current(struct vd_event_recorder *recorder, enum outcome outcome)
{
	count(recorder, outcome);
	vdi_free(recorder->current);
	recorder->current = NULL;
}

static void retry_current(struct vd_event_recorder *recorder, vd_mono now, const char *cause)
{
	vd_dur delay = recorder->options.retry_delay;

	recorder->attempts++;
	if (recorder->attempts >= recorder->options.attempts) {
		vdi_log(recorder->env, VD_LOG_ERROR, "event_recorder",
			"an event could not be written in %u attempts: %s", recorder->attempts, cause);
		end_current(recorder, FAILED);
		return;
	}
	/* After an outage clients must not all send at the same time. */
	if (recorder->attempts == 1)
		delay.ns = (int64_t) vd_env_random_below(recorder->env, (uint64_t) delay.ns + 1);
	recorder->attempt_at = vd_mono_add(now, delay);
}

static void send_current(struct vd_event_recorder *recorder, vd_mono now)
{
	bool	  is_create = recorder->is_create || recorder->current->count == 1;
	vd_status status =
		vdi_event_send(&recorder->sender, recorder->current, is_create, answered, recorder);

	if (status == VD_OK)
		recorder->is_outstanding = true;
	else
		retry_current(recorder, now, vd_status_sentence(status));
}

static bool can_repeat(vd_status status)
{
	return status == VD_UNAVAILABLE || status == VD_TIMEOUT || status == VD_FULL || status == VD_NOMEM;
}

static void take_answer(struct vd_event_recorder *recorder, vd_mono now)
{
	struct vd_error error;
	vd_status	status;
	bool		is_answered;

	vdi_lock_acquire(&recorder->lock);
	is_answered = recorder->is_answered;
	status = recorder->answer;
	error = recorder->answer_error;
	recorder->is_answered = false;
	vdi_lock_release(&recorder->lock);
	if (!is_answered)
		return;
	recorder->is_outstanding = false;
	if (status == VD_OK) {
		end_current(recorder, WRITTEN);
	} else if (status == VD_NOT_FOUND && recorder->current->count > 1 && !recorder->is_create) {
		recorder->is_create = true; /* the Event expired */
		recorder->attempt_at = now;
	} else if (can_repeat(status)) {
		retry_current(recorder, now, error.message);
	} else {
		vdi_log(recorder->env, status == VD_EXISTS ? VD_LOG_DEBUG : VD_LOG_WARNING, "event_recorder",
			"the server rejected an event: %s", error.message);
		end_current(recorder, REJECTED);
	}
}

static struct vdi_event *take_queued(struct vd_event_recorder *recorder)
{
	struct vdi_event *event;

	vdi_lock_acquire(&recorder->lock);
	event = recorder->first;
	if (event) {
		recorder->first = event->next;
		if (recorder->first == NULL)
			recorder->last = NULL;
		recorder->count--;
	}
	vdi_lock_release(&recorder->lock);
	return event;
}

/* Correlates the next queued event. False: none is queued. */
static bool begin_next(struct vd_event_recorder *recorder, vd_mono now)
{
	recorder->current = take_queued(recorder);
	if (recorder->current == NULL)
		return false;
	recorder->attempts = 0;
	recorder->is_create = false;
	recorder->attempt_at = now;
	if (vdi_event_correlate(&recorder->correlator, recorder->current, now) != VD_OK)
		end_current(recorder, FILTERED);
	return true;
}

/* Drops what was not sent in time. */
static void drop_all(struct vd_event_recorder *recorder)
{
	unsigned dropped = 0;

	if (recorder->current && !recorder->is_outstanding) {
		end_current(recorder, DROPPED);
		dropped++;
	}
	for (; (recorder->current == NULL) && (recorder->current = take_queued(recorder)); dropped++)
		end_current(recorder, DROPPED);
	if (dropped)
		vdi_log(recorder->env, VD_LOG_WARNING, "event_recorder",
			"%u events were not sent before the recorder was closed", dropped);
}

/* ---- The actor ---- */

static void free_recorder(struct vd_event_recorder *recorder)
{
	vdi_usage_end(&recorder->usage);
	for (unsigned i = 0; i < OUTCOMES; i++)
		vdi_metric_release(recorder->metrics[i]);
	vdi_event_correlator_fini(&recorder->correlator);
	vdi_lock_fini(&recorder->lock);
	vdi_free(recorder->sender.component);
	vdi_free(recorder->sender.host);
	vdi_free(recorder);
}

static void on_recorder_closed(void *arg)
{
	struct vd_event_recorder *recorder = arg;
	void (*closed)(void *) = recorder->closed;
	void *closed_arg = recorder->closed_arg;

	free_recorder(recorder);
	if (closed)
		closed(closed_arg);
}

/* Sends as far as possible without an answer; returns when to run again. */
static vd_mono send_queued(struct vd_event_recorder *recorder, vd_mono now)
{
	for (unsigned i = 0; i < 64; i++) {
		if (recorder->is_outstanding)
			return VD_NEVER;
		if (recorder->current == NULL) {
			if (!begin_next(recorder, now))
				return VD_NEVER;
		} else if (recorder->attempt_at.ns <= now.ns) {
			send_current(recorder, now);
		} else {
			return recorder->attempt_at;
		}
	}
	return now; /* many were filtered */
}

static void run(void *arg)
{
	struct vd_event_recorder *recorder = arg;
	vd_mono			  now = vd_env_now(recorder->env);
	vd_mono			  due;
	bool			  is_closed;

	if (recorder->is_gone)
		return;
	vdi_lock_acquire(&recorder->lock);
	is_closed = recorder->is_closed;
	vdi_lock_release(&recorder->lock);
	take_answer(recorder, now);
	if (is_closed && recorder->flush_until.ns == 0)
		recorder->flush_until = vd_mono_add(now, recorder->options.flush);
	if (is_closed && now.ns >= recorder->flush_until.ns)
		drop_all(recorder);
	due = send_queued(recorder, now);
	if (is_closed && recorder->current == NULL) {
		recorder->is_gone = true;
		vd_actor_close(recorder->actor, on_recorder_closed, recorder);
		return;
	}
	if (is_closed && now.ns < recorder->flush_until.ns)
		due.ns = VDI_MIN(due.ns, recorder->flush_until.ns);
	vd_actor_set_timer(recorder->actor, due);
}

/* ---- Construction ---- */

static vd_status check_options(const struct vd_event_recorder_options *options, struct vd_error *reterr)
{
	if (options->component == NULL || options->component[0] == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "component is empty");
	if (options->queue_max == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "queue_max is 0, must be 1 or more");
	if (options->similar_max == 0 || options->similar_max > VDI_EVENT_SIMILAR_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "similar_max is %u, must be 1 to %d",
				    options->similar_max, VDI_EVENT_SIMILAR_MAX);
	if (options->burst == 0 || options->refill.ns <= 0 || options->similar_interval.ns <= 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "burst, refill and similar_interval must be above 0");
	if (options->attempts == 0 || options->retry_delay.ns < 0 || options->flush.ns < 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "attempts must be above 0, retry_delay and flush 0 or more");
	return VD_OK;
}

static vd_status build(struct vd_event_recorder *recorder)
{
	static const char *const outcomes[OUTCOMES] = { "written", "filtered", "dropped", "rejected",
							"failed" };
	struct vd_actor_options	 actor = { .name = "event_recorder", .run = run, .arg = recorder };

	recorder->sender.component = vdi_strdup(recorder->options.component);
	recorder->sender.host = vdi_strdup(recorder->options.host ? recorder->options.host : "");
	if (recorder->sender.component == NULL || recorder->sender.host == NULL)
		return VD_NOMEM;
	for (unsigned i = 0; i < OUTCOMES; i++) {
		const char *values[] = { recorder->sender.component, outcomes[i] };

		VDI_TRY(vdi_metric_get(vdi_env_metrics(recorder->env), VDI_METRIC_EVENT_RECORDER_EVENTS_TOTAL,
				       values, &recorder->metrics[i]));
	}
	return vd_actor_new(recorder->env, &actor, &recorder->actor);
}

vd_status vdi_event_recorder_open(const struct vdi_kube_requests	 *requests,
				  const struct vd_event_recorder_options *options,
				  struct vd_event_recorder **ret_recorder, struct vd_error *reterr)
{
	struct vd_event_recorder *recorder;
	struct vdi_event_limits	  limits;
	vd_status		  status;

	VDI_REQUIRE_OPTIONS(options, reterr);
	VDI_REQUIRE(ret_recorder, reterr);
	VDI_TRY(check_options(options, reterr));
	recorder = VDI_NEW(struct vd_event_recorder);
	if (recorder == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for an event recorder");
	limits = (struct vdi_event_limits) { options->similar_max, options->similar_interval, options->burst,
					     options->refill };
	recorder->env = requests->env;
	recorder->options = *options;
	recorder->sender.requests = *requests;
	vdi_event_correlator_init(&recorder->correlator, &limits);
	vdi_lock_init(&recorder->lock, VDI_LOCK_CONTROLLER);
	status = build(recorder);
	if (status != VD_OK) {
		free_recorder(recorder);
		return vd_error_set(reterr, status, "%s for an event recorder", vd_status_sentence(status));
	}
	recorder->usage = (struct vdi_usage) { .kind = "event recorder of",
					       .name = recorder->sender.component,
					       .closed_by = "vd_event_recorder_close",
					       .env = requests->env,
					       .uses = { requests->peer } };
	vdi_usage_begin(&recorder->usage);
	*ret_recorder = recorder;
	return VD_OK;
}

vd_status vd_event_recorder_open(struct vd_kube *kube, const struct vd_event_recorder_options *options,
				 struct vd_event_recorder **ret_recorder, struct vd_error *reterr)
{
	struct vdi_kube_requests requests;

	VDI_REQUIRE(kube, reterr);
	requests = vdi_kube_requests_of(kube);
	return vdi_event_recorder_open(&requests, options, ret_recorder, reterr);
}

void vd_event_recorder_counts(struct vd_event_recorder *recorder, struct vd_event_recorder_counts *ret_counts)
{
	if (recorder == NULL || ret_counts == NULL)
		return;
	vdi_lock_acquire(&recorder->lock);
	*ret_counts = (struct vd_event_recorder_counts) {
		.written = recorder->counts[WRITTEN],
		.filtered = recorder->counts[FILTERED],
		.dropped = recorder->counts[DROPPED],
		.rejected = recorder->counts[REJECTED],
		.failed = recorder->counts[FAILED],
	};
	vdi_lock_release(&recorder->lock);
}

void vd_event_recorder_close(struct vd_event_recorder *recorder, void (*done)(void *arg), void *arg)
{
	if (recorder == NULL) {
		if (done)
			done(arg);
		return;
	}
	if (atomic_exchange(&recorder->usage.is_closing, true))
		vdi_misuse("vd_event_recorder_close: the recorder of %s is closing already",
			   recorder->usage.name);
	vdi_lock_acquire(&recorder->lock);
	recorder->is_closed = true;
	recorder->closed = done;
	recorder->closed_arg = arg;
	vd_actor_wake(recorder->actor);
	vdi_lock_release(&recorder->lock);
}

struct vd_event_recorder *vd_event_recorder_close_wait(struct vd_event_recorder *recorder)
{
	struct vdi_wait wait;

	if (recorder == NULL)
		return NULL;
	vdi_wait_check_close(__func__, "vd_event_recorder_close");
	vdi_wait_init(&wait, recorder->env);
	vd_event_recorder_close(recorder, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	return NULL;
}
