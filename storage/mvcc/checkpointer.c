/* How: each run of the handler does one group: up to `bytes` of journal records, or one step of compaction, in one LMDB transaction, which waits for the disk
 * twice. So records are taken when there are enough of them, or when the first has waited for the interval; what came while a group was taken waits for its
 * own turn. (Taking it at once made hundreds of small groups a second under load, and every put waited behind their syncs.)
 *
 *   IDLE --notify--> ARMED (timer) --due, or enough bytes--> a group --nothing left--> IDLE
 *                      ^                                       |   ^
 *                      '----less than enough is left-----------'   '--enough is left
 *
 * Compaction goes on between groups, step by step.
 */
#include <stdatomic.h>

#include "checkpointer.h"
#include "env.h"

#define COMPACT_RECORDS 1000
#define RETRY VD_SECONDS(1)

/* Where in the journal the last committed group ended. */
struct place {
	uint64_t sequence;
	int64_t	 offset;
	uint64_t next_index;
	uint64_t previous;
	int64_t	 bytes; /* of records passed, in the count of vdi_journal_bytes() */
};

struct vdi_checkpointer {
	/* Fixed. */
	const struct vd_env *env;
	struct vdi_dir	    *dir;
	struct vdi_journal  *journal;
	struct vd_actor	    *actor;
	int64_t		     bytes;
	vd_dur		     interval;
	bool		     no_sync;
	void (*done)(void *arg);
	void *done_arg;

	/* The actor. */
	struct vdi_checkpoint	 *checkpoint;
	struct vdi_segment_reader reader;
	bool			  is_reading; /* reader is open */
	struct place		  place;
	vd_mono			  due;
	vd_mono			  retry_at; /* after a failure: not before */
	bool			  is_stopped;
	struct vdi_log_limit	  log_limit;

	/* Any thread. */
	atomic_bool	 is_armed;
	atomic_bool	 is_urgent;
	_Atomic int64_t	 size_bytes;
	_Atomic int64_t	 covered_bytes;
	_Atomic uint64_t covered;
};

/* ---- Following the journal ---- */

static vd_status open_reader(struct vdi_checkpointer *checkpointer, struct vd_error *reterr)
{
	struct place *place = &checkpointer->place;

	if (checkpointer->is_reading)
		return VD_OK;
	VDI_TRY(vdi_segment_reader_open(&checkpointer->reader, checkpointer->dir, VDI_SEGMENT_JOURNAL, place->sequence, reterr));
	checkpointer->is_reading = true;
	if (place->offset) {
		checkpointer->reader.offset = place->offset;
		checkpointer->reader.next_index = place->next_index;
		checkpointer->reader.previous = place->previous;
	}
	return VD_OK;
}

static void close_reader(struct vdi_checkpointer *checkpointer)
{
	if (checkpointer->is_reading)
		vdi_segment_reader_fini(&checkpointer->reader);
	checkpointer->is_reading = false;
}

/* The next record, which is on disk: here, or first in the next file. */
static vd_status next_record(struct vdi_checkpointer *checkpointer, struct vdi_segment_record *ret_record, struct vd_error *reterr)
{
	struct vdi_segment_reader *reader = &checkpointer->reader;
	struct vdi_segment_reader  next;
	vd_status		   status = vdi_segment_reader_next(reader, ret_record, reterr);

	if (status != VD_NOT_FOUND)
		return status;
	status = vdi_segment_reader_open(&next, checkpointer->dir, VDI_SEGMENT_JOURNAL, reader->header.sequence + 1, reterr);
	if (status == VD_OK && (next.header.first_index != reader->next_index || next.header.previous != reader->previous)) {
		vdi_segment_reader_fini(&next);
		status = VD_NOT_FOUND;
	}
	if (status == VD_NOT_FOUND)
		return vd_error_set(reterr, VD_CORRUPT, "%s/%s is damaged at offset %lld: record %llu was written and is unreadable",
				    checkpointer->dir->path, reader->file->name, (long long) reader->offset, (unsigned long long) reader->next_index);
	VDI_TRY(status);
	vdi_segment_reader_fini(reader);
	*reader = next;
	return vdi_segment_reader_next(reader, ret_record, reterr);
}

/* Applies what is on disk, up to `bytes`. The group is open. */
static vd_status apply_records(struct vdi_checkpointer *checkpointer, uint64_t durable, int64_t *ret_bytes, struct vd_error *reterr)
{
	uint64_t covered = vdi_checkpoint_meta(checkpointer->checkpoint)->covered;
	int64_t	 bytes = 0;

	while (checkpointer->reader.next_index <= durable && bytes < checkpointer->bytes) {
		struct vdi_segment_record record;

		VDI_TRY(next_record(checkpointer, &record, reterr));
		if (record.index <= covered)
			continue;
		bytes += (int64_t) vdi_segment_record_size(record.payload.size);
		VDI_TRY(vdi_checkpoint_apply(checkpointer->checkpoint, &record, reterr));
	}
	*ret_bytes = bytes;
	return VD_OK;
}

static void publish(struct vdi_checkpointer *checkpointer)
{
	atomic_store_explicit(&checkpointer->size_bytes, vdi_checkpoint_size_bytes(checkpointer->checkpoint), memory_order_relaxed);
	atomic_store_explicit(&checkpointer->covered_bytes, checkpointer->place.bytes, memory_order_relaxed);
	atomic_store(&checkpointer->covered, vdi_checkpoint_meta(checkpointer->checkpoint)->covered);
}

static vd_status take_group(struct vdi_checkpointer *checkpointer, uint64_t durable, struct vd_error *reterr)
{
	struct vdi_segment_reader *reader = &checkpointer->reader;
	int64_t			   bytes = 0;
	vd_status		   status;

	VDI_TRY(open_reader(checkpointer, reterr));
	status = vdi_checkpoint_begin(checkpointer->checkpoint, VDI_MIN(checkpointer->bytes, vdi_journal_bytes(checkpointer->journal)), reterr);
	if (status == VD_OK)
		status = apply_records(checkpointer, durable, &bytes, reterr);
	if (status == VD_OK)
		status = vdi_checkpoint_commit(checkpointer->checkpoint, reterr);
	else
		vdi_checkpoint_abort(checkpointer->checkpoint);
	if (status != VD_OK) {
		close_reader(checkpointer); /* back to the place of the last group */
		return status;
	}
	checkpointer->place = (struct place) { reader->header.sequence, reader->offset, reader->next_index, reader->previous,
					       checkpointer->place.bytes + bytes };
	publish(checkpointer);
	vdi_journal_release(checkpointer->journal, reader->header.sequence);
	return VD_OK;
}

/* ---- The handler ---- */

static vd_status make_checkpoint(struct vdi_checkpointer *checkpointer, struct vd_error *reterr)
{
	if (checkpointer->checkpoint)
		return VD_OK;
	return vdi_checkpoint_create(checkpointer->dir, checkpointer->no_sync, vdi_journal_store_id(checkpointer->journal), &checkpointer->checkpoint,
				     reterr);
}

static void set_due(struct vdi_checkpointer *checkpointer, vd_mono due)
{
	checkpointer->due = due;
	vd_actor_set_timer(checkpointer->actor, due);
}

static bool has_records(const struct vdi_checkpointer *checkpointer)
{
	return vdi_checkpoint_meta(checkpointer->checkpoint)->covered < vdi_journal_durable_index(checkpointer->journal);
}

static bool is_enough(const struct vdi_checkpointer *checkpointer)
{
	return vdi_journal_bytes(checkpointer->journal) - vdi_checkpointer_covered_bytes(checkpointer) >= checkpointer->bytes;
}

/* One group of work. VD_NOT_FOUND: there is none now. */
static vd_status work(struct vdi_checkpointer *checkpointer, vd_mono now, struct vd_error *reterr)
{
	uint64_t durable = vdi_journal_durable_index(checkpointer->journal);

	VDI_TRY(make_checkpoint(checkpointer, reterr));
	if (has_records(checkpointer) && (checkpointer->due.ns <= now.ns || is_enough(checkpointer))) {
		VDI_TRY(take_group(checkpointer, durable, reterr));
		checkpointer->due = vd_mono_add(now, checkpointer->interval);
		return VD_OK;
	}
	if (!vdi_checkpoint_compact_pending(checkpointer->checkpoint))
		return VD_NOT_FOUND;
	VDI_TRY(vdi_checkpoint_compact_step(checkpointer->checkpoint, COMPACT_RECORDS, reterr));
	publish(checkpointer);
	return VD_OK;
}

static void handle_failure(struct vdi_checkpointer *checkpointer, vd_status status, const struct vd_error *error)
{
	vdi_log_limited(checkpointer->env, &checkpointer->log_limit, VD_LOG_ERROR, "checkpoint", "%s: %s; the journal keeps everything",
			vd_status_name(status), error->message);
	checkpointer->is_stopped = status == VD_IO || status == VD_CORRUPT || status == VD_NEWER_FORMAT;
	checkpointer->retry_at = vd_mono_add(vd_env_now(checkpointer->env), RETRY);
	set_due(checkpointer, checkpointer->is_stopped ? VD_NEVER : checkpointer->retry_at);
}

static bool is_compacting(const struct vdi_checkpointer *checkpointer)
{
	return checkpointer->checkpoint && vdi_checkpoint_compact_pending(checkpointer->checkpoint);
}

static bool has_work(const struct vdi_checkpointer *checkpointer)
{
	return checkpointer->checkpoint == NULL || is_compacting(checkpointer) || has_records(checkpointer);
}

/* After a group, or a step, or nothing. */
static void plan(struct vdi_checkpointer *checkpointer)
{
	if (is_compacting(checkpointer) || (has_records(checkpointer) && is_enough(checkpointer))) {
		vd_actor_wake(checkpointer->actor);
		return;
	}
	if (has_records(checkpointer)) {
		set_due(checkpointer, checkpointer->due);
		return;
	}
	set_due(checkpointer, VD_NEVER);
	atomic_store(&checkpointer->is_armed, false);
	/* What became durable before is_armed fell had nobody to tell. */
	if (has_work(checkpointer))
		vdi_checkpointer_notify(checkpointer);
}

static void run(void *arg)
{
	struct vdi_checkpointer *checkpointer = arg;
	struct vd_error		 error = { 0 };
	vd_status		 status;
	vd_mono			 now = vd_env_now(checkpointer->env);

	atomic_store(&checkpointer->is_urgent, false);
	if (checkpointer->is_stopped || now.ns < checkpointer->retry_at.ns)
		return;
	if (checkpointer->due.ns == VD_NEVER.ns && !is_enough(checkpointer)) {
		set_due(checkpointer, vd_mono_add(now, checkpointer->interval));
		return;
	}
	if (now.ns < checkpointer->due.ns && !is_enough(checkpointer) && !is_compacting(checkpointer))
		return;
	status = work(checkpointer, now, &error);
	if (status == VD_FULL) {
		/* There is more room now: again. */
		checkpointer->due = now;
		vd_actor_wake(checkpointer->actor);
	} else if (status != VD_OK && status != VD_NOT_FOUND) {
		handle_failure(checkpointer, status, &error);
	} else {
		plan(checkpointer);
	}
}

void vdi_checkpointer_notify(struct vdi_checkpointer *checkpointer)
{
	if (is_enough(checkpointer) && !atomic_exchange(&checkpointer->is_urgent, true))
		vd_actor_wake(checkpointer->actor);
	if (!atomic_load_explicit(&checkpointer->is_armed, memory_order_relaxed) && !atomic_exchange(&checkpointer->is_armed, true))
		vd_actor_wake(checkpointer->actor);
}

/* ---- Life ---- */

vd_status vdi_checkpointer_new(const struct vdi_checkpointer_options *options, struct vdi_checkpointer **ret_checkpointer, struct vd_error *reterr)
{
	struct vdi_checkpointer *checkpointer = VDI_NEW(struct vdi_checkpointer);
	struct vd_actor_options	 actor_options = { .name = "checkpoint", .run = run, .arg = checkpointer, .blocking = true };
	vd_status		 status;

	if (checkpointer == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	checkpointer->env = options->env;
	checkpointer->dir = options->dir;
	checkpointer->journal = options->journal;
	checkpointer->bytes = options->bytes;
	checkpointer->interval = options->interval;
	checkpointer->no_sync = options->no_sync;
	checkpointer->checkpoint = options->checkpoint;
	checkpointer->place.sequence = vdi_journal_first_sequence(options->journal);
	checkpointer->place.bytes = vdi_journal_covered_bytes(options->journal);
	checkpointer->due = VD_NEVER;
	checkpointer->log_limit.interval = VD_SECONDS(10);
	status = vd_actor_new(options->env, &actor_options, &checkpointer->actor);
	if (status != VD_OK) {
		vdi_free(checkpointer);
		return vd_error_set(reterr, status, "no actor for the checkpoint: %s", vd_status_sentence(status));
	}
	if (checkpointer->checkpoint)
		publish(checkpointer);
	*ret_checkpointer = checkpointer;
	if (has_work(checkpointer))
		vdi_checkpointer_notify(checkpointer);
	return VD_OK;
}

int64_t vdi_checkpointer_size_bytes(const struct vdi_checkpointer *checkpointer)
{
	return atomic_load_explicit(&checkpointer->size_bytes, memory_order_relaxed);
}

int64_t vdi_checkpointer_covered_bytes(const struct vdi_checkpointer *checkpointer)
{
	return atomic_load_explicit(&checkpointer->covered_bytes, memory_order_relaxed);
}

uint64_t vdi_checkpointer_covered(const struct vdi_checkpointer *checkpointer)
{
	return atomic_load(&checkpointer->covered);
}

static void finish(void *arg)
{
	struct vdi_checkpointer *checkpointer = arg;
	void (*done)(void *done_arg) = checkpointer->done;
	void *done_arg = checkpointer->done_arg;

	close_reader(checkpointer);
	vdi_checkpoint_close(checkpointer->checkpoint);
	vdi_free(checkpointer);
	done(done_arg);
}

void vdi_checkpointer_close(struct vdi_checkpointer *checkpointer, void (*done)(void *arg), void *arg)
{
	if (checkpointer == NULL) {
		done(arg);
		return;
	}
	checkpointer->done = done;
	checkpointer->done_arg = arg;
	vd_actor_close(checkpointer->actor, finish, checkpointer);
}
