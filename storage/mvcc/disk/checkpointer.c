/* Each run of the handler does one group: up to `bytes` of journal records, or one step of compaction, in one
 * LMDB transaction, which waits for the disk twice. So records are taken when there are enough of them, or
 * when the first has waited for the interval; what came while a group was taken waits for its own turn.
 * (Taking it at once made hundreds of small groups a second under load, and every put waited behind their
 * syncs.)
 *
 *   IDLE --notify--> ARMED (timer) --due, or enough bytes--> a group --nothing left--> IDLE
 *                      ^                                       |   ^
 *                      '----less than enough is left-----------'   '--enough is left
 *
 * Compaction goes on between groups, step by step.
 *
 * On a full disk (is_pressed) records are taken at once, so that journal files become free; free pages of the
 * file are counted; and a group or a step that does not fit is tried again in smaller parts, because a small
 * one needs only a few pages. Pages that a group frees can be used by the group after the next one, so two
 * empty groups follow when a commit is refused, after the last group, and when not even the smallest group
 * fits.
 */
#include <stdatomic.h>

#include "checkpointer.h"
#include "env.h"
#include "metrics.h"

#define COMPACT_RECORDS ((size_t) 1000)
#define SETTLE_GROUPS 2
/* Bytes of the file for each byte of a journal record, at least. Records lie in pages that are at least half
 * full. */
#define ROOM_FACTOR 2
/* Bytes of the file for each change, beside those that the journal has too: node, key, checksum. More than
 * the change itself if its key is short. */
#define CHANGE_BYTES 40
/* Reserved for compaction. */
#define COMPACT_RESERVE ((int64_t) 512 << 10)
/* Reserved for commits that free space: a 32nd of the store within these bounds. */
#define RESERVE_MIN ((int64_t) 2 << 20)
#define RESERVE_MAX ((int64_t) 32 << 20)
#define GROWTH_MIN ((int64_t) 64 << 10)
#define GROWTH_MAX ((int64_t) 64 << 20)
#define RETRY VD_SECONDS(1)

/* The place in the journal at which the last committed group ended. */
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
	vd_mono			  retry_at; /* time of the next attempt after a failure */
	struct vdi_log_limit	  log_limit;
	int64_t			  group_bytes;	 /* at most `bytes`; less if the disk is full */
	size_t			  step_records;	 /* at most COMPACT_RECORDS; less when the disk is full */
	unsigned		  settle_groups; /* empty groups to come */

	/* The journal's writer. */
	int64_t file_size;   /* of the checkpoint, at least */
	int64_t value_pages; /* of the largest record that is not in the checkpoint yet */
	/* of the commit with the shortest changes that is not in the checkpoint yet; ROOM_FACTOR or more */
	int64_t room_factor;

	/* Any thread. */
	atomic_bool	 is_stopped;
	atomic_bool	 is_failing;	  /* the last attempt failed */
	atomic_bool	 is_pressed;	  /* a commit was refused because the disk is full */
	atomic_bool	 is_settling_due; /* since is_pressed was set no empty group was planned */
	atomic_bool	 has_more;	  /* work is in progress */
	_Atomic int64_t	 end_bytes;	  /* struct vdi_checkpoint_room; 0: there is no checkpoint */
	_Atomic int64_t	 free_bytes[VDI_CHECKPOINT_ROOM_CLASSES];
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
	VDI_TRY(vdi_segment_reader_open(&checkpointer->reader, checkpointer->dir, VDI_SEGMENT_JOURNAL,
					place->sequence, reterr));
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

/* Reads the next record, which is on disk: in this file, or the first one of the next file. */
static vd_status next_record(struct vdi_checkpointer *checkpointer, struct vdi_segment_record *ret_record,
			     struct vd_error *reterr)
{
	struct vdi_segment_reader *reader = &checkpointer->reader;
	struct vdi_segment_reader  next;
	vd_status		   status = vdi_segment_reader_next(reader, ret_record, reterr);

	if (status != VD_NOT_FOUND)
		return status;
	status = vdi_segment_reader_open(&next, checkpointer->dir, VDI_SEGMENT_JOURNAL,
					 reader->header.sequence + 1, reterr);
	if (status == VD_OK &&
	    (next.header.first_index != reader->next_index || next.header.previous != reader->previous)) {
		vdi_segment_reader_fini(&next);
		status = VD_NOT_FOUND;
	}
	if (status == VD_NOT_FOUND)
		return vd_error_set(
			reterr, VD_CORRUPT,
			"%s/%s is damaged at offset %lld: record %llu was written and is unreadable",
			checkpointer->dir->path, reader->file->name, (long long) reader->offset,
			(unsigned long long) reader->next_index);
	VDI_TRY(status);
	vdi_segment_reader_fini(reader);
	*reader = next;
	return vdi_segment_reader_next(reader, ret_record, reterr);
}

/* Applies records that are on disk, up to `bytes`. The group is open. */
static vd_status apply_records(struct vdi_checkpointer *checkpointer, uint64_t durable, int64_t *ret_bytes,
			       struct vd_error *reterr)
{
	uint64_t covered = vdi_checkpoint_meta(checkpointer->checkpoint)->covered;
	int64_t	 bytes = 0;

	while (checkpointer->reader.next_index <= durable && bytes < checkpointer->group_bytes) {
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

/* The writer reads covered_bytes first: it may count a record twice, in the journal and as used room, but
 * never not at all. */
static void publish(struct vdi_checkpointer *checkpointer)
{
	struct vdi_checkpoint_room room;

	if (vdi_checkpoint_measure_room(checkpointer->checkpoint, atomic_load(&checkpointer->is_pressed),
					&room, NULL) == VD_OK) {
		for (unsigned i = 0; i < VDI_CHECKPOINT_ROOM_CLASSES; i++)
			atomic_store(&checkpointer->free_bytes[i], room.free_bytes[i]);
		atomic_store(&checkpointer->end_bytes, room.end_bytes);
	}
	atomic_store_explicit(&checkpointer->size_bytes, vdi_checkpoint_size_bytes(checkpointer->checkpoint),
			      memory_order_relaxed);
	atomic_store(&checkpointer->covered_bytes, checkpointer->place.bytes);
	atomic_store(&checkpointer->covered, vdi_checkpoint_meta(checkpointer->checkpoint)->covered);
}

static vd_status commit_measured(struct vdi_checkpointer *checkpointer, struct vd_error *reterr)
{
	vd_mono		   begun = vd_env_now(checkpointer->env);
	vd_status	   status = vdi_checkpoint_commit(checkpointer->checkpoint, reterr);
	struct vdi_metric *histogram;

	if (vdi_metric_get(vdi_env_metrics(checkpointer->env),
			   VDI_METRIC_ETCD_DISK_BACKEND_COMMIT_DURATION_SECONDS, NULL, &histogram) == VD_OK) {
		vdi_metric_observe_duration(histogram, vd_mono_since(vd_env_now(checkpointer->env), begun));
		vdi_metric_release(histogram);
	}
	return status;
}

static vd_status take_group(struct vdi_checkpointer *checkpointer, uint64_t durable, struct vd_error *reterr)
{
	struct vdi_segment_reader *reader = &checkpointer->reader;
	int64_t			   bytes = 0;
	vd_status		   status;

	VDI_TRY(open_reader(checkpointer, reterr));
	status = vdi_checkpoint_begin(
		checkpointer->checkpoint,
		VDI_MIN(checkpointer->group_bytes,
			vdi_journal_bytes(checkpointer->journal) - checkpointer->place.bytes),
		reterr);
	if (status == VD_OK)
		status = apply_records(checkpointer, durable, &bytes, reterr);
	if (status == VD_OK)
		status = commit_measured(checkpointer, reterr);
	else
		vdi_checkpoint_abort(checkpointer->checkpoint);
	if (status != VD_OK) {
		close_reader(checkpointer); /* back to the place of the last group */
		return status;
	}
	checkpointer->place = (struct place) { reader->header.sequence, reader->offset, reader->next_index,
					       reader->previous, checkpointer->place.bytes + bytes };
	publish(checkpointer);
	vdi_journal_release(checkpointer->journal, reader->header.sequence);
	return VD_OK;
}

/* ---- The handler ---- */

static vd_status make_checkpoint(struct vdi_checkpointer *checkpointer, struct vd_error *reterr)
{
	if (checkpointer->checkpoint)
		return VD_OK;
	return vdi_checkpoint_create(checkpointer->dir, checkpointer->no_sync,
				     vdi_journal_store_id(checkpointer->journal), &checkpointer->checkpoint,
				     reterr);
}

static void set_due(struct vdi_checkpointer *checkpointer, vd_mono due)
{
	checkpointer->due = due;
	vd_actor_set_timer(checkpointer->actor, due);
}

static bool has_records(const struct vdi_checkpointer *checkpointer)
{
	return vdi_checkpoint_meta(checkpointer->checkpoint)->covered <
	       vdi_journal_durable_index(checkpointer->journal);
}

/* Any thread. */
static bool is_enough(const struct vdi_checkpointer *checkpointer)
{
	return vdi_journal_bytes(checkpointer->journal) - vdi_checkpointer_covered_bytes(checkpointer) >=
		       checkpointer->bytes ||
	       (atomic_load(&checkpointer->is_pressed) &&
		vdi_journal_durable_index(checkpointer->journal) > vdi_checkpointer_covered(checkpointer));
}

/* Runs a group of the current size. VD_FULL: try again; the group is smaller now, or the file is larger. */
static vd_status try_group(struct vdi_checkpointer *checkpointer, uint64_t durable, struct vd_error *reterr)
{
	vd_status status = take_group(checkpointer, durable, reterr);

	if (status == VD_NO_SPACE && checkpointer->group_bytes > 1) {
		checkpointer->group_bytes = VDI_MAX(checkpointer->group_bytes / 8, 1);
		return VD_FULL;
	}
	if (status == VD_OK)
		checkpointer->group_bytes = VDI_MIN(checkpointer->group_bytes * 2, checkpointer->bytes);
	return status;
}

static vd_status try_compaction(struct vdi_checkpointer *checkpointer, struct vd_error *reterr)
{
	vd_status status =
		vdi_checkpoint_compact_step(checkpointer->checkpoint, checkpointer->step_records, reterr);

	if (status == VD_NO_SPACE && checkpointer->step_records > 1) {
		checkpointer->step_records = VDI_MAX(checkpointer->step_records / 8, 1);
		return VD_FULL;
	}
	if (status == VD_OK) {
		checkpointer->step_records = VDI_MIN(checkpointer->step_records * 2, COMPACT_RECORDS);
		publish(checkpointer);
	}
	return status;
}

static vd_status settle(struct vdi_checkpointer *checkpointer, struct vd_error *reterr)
{
	VDI_TRY(vdi_checkpoint_begin(checkpointer->checkpoint, 0, reterr));
	VDI_TRY(vdi_checkpoint_commit(checkpointer->checkpoint, reterr));
	checkpointer->settle_groups -= checkpointer->settle_groups > 0;
	publish(checkpointer);
	return VD_OK;
}

/* Runs one group of work. VD_NOT_FOUND: there is no work now. */
static vd_status work(struct vdi_checkpointer *checkpointer, vd_mono now, struct vd_error *reterr)
{
	uint64_t  durable = vdi_journal_durable_index(checkpointer->journal);
	vd_status status = VD_NOT_FOUND;

	VDI_TRY(make_checkpoint(checkpointer, reterr));
	if (has_records(checkpointer) && (checkpointer->due.ns <= now.ns || is_enough(checkpointer))) {
		status = try_group(checkpointer, durable, reterr);
		if (status == VD_OK)
			checkpointer->due = vd_mono_add(now, checkpointer->interval);
	}
	/* Compaction may make room for the group. */
	if ((status == VD_NOT_FOUND || status == VD_NO_SPACE) &&
	    vdi_checkpoint_compact_pending(checkpointer->checkpoint))
		status = try_compaction(checkpointer, reterr);
	if (status == VD_OK)
		checkpointer->settle_groups = atomic_load(&checkpointer->is_pressed) ? SETTLE_GROUPS : 0;
	else if (status == VD_NOT_FOUND && checkpointer->settle_groups)
		status = settle(checkpointer, reterr);
	/* The next attempt may need the pages that the last groups freed. */
	for (unsigned i = 0; i < SETTLE_GROUPS && status == VD_NO_SPACE; i++)
		(void) !settle(checkpointer, NULL);
	return status;
}

static void handle_failure(struct vdi_checkpointer *checkpointer, vd_status status,
			   const struct vd_error *error)
{
	vdi_log_limited(checkpointer->env, &checkpointer->log_limit, VD_LOG_ERROR, "checkpoint",
			"%s: %s; the journal keeps everything", vd_status_name(status), error->message);
	atomic_store(&checkpointer->is_stopped,
		     status == VD_IO || status == VD_CORRUPT || status == VD_NEWER_FORMAT);
	atomic_store(&checkpointer->is_failing, true);
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

/* Plans the next run. */
static void plan(struct vdi_checkpointer *checkpointer)
{
	bool has_more = is_compacting(checkpointer) ||
			(has_records(checkpointer) && is_enough(checkpointer)) || checkpointer->settle_groups;

	atomic_store(&checkpointer->has_more, has_more);
	if (has_more) {
		vd_actor_wake(checkpointer->actor);
		return;
	}
	if (has_records(checkpointer)) {
		set_due(checkpointer, checkpointer->due);
		return;
	}
	set_due(checkpointer, VD_NEVER);
	atomic_store(&checkpointer->is_armed, false);
	/* Records that became durable before is_armed was cleared have not woken the actor. */
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
	if (checkpointer->due.ns == VD_NEVER.ns && !is_enough(checkpointer) &&
	    !atomic_load(&checkpointer->has_more)) {
		set_due(checkpointer, vd_mono_add(now, checkpointer->interval));
		return;
	}
	if (now.ns < checkpointer->due.ns && !is_enough(checkpointer) && !is_compacting(checkpointer) &&
	    !atomic_load(&checkpointer->has_more))
		return;
	if (checkpointer->checkpoint && atomic_load(&checkpointer->is_pressed))
		publish(checkpointer);
	if (atomic_exchange(&checkpointer->is_settling_due, false))
		checkpointer->settle_groups = SETTLE_GROUPS;
	status = work(checkpointer, now, &error);
	if (status == VD_FULL) {
		/* There is more room now: try again. */
		checkpointer->due = now;
		vd_actor_wake(checkpointer->actor);
	} else if (status != VD_OK && status != VD_NOT_FOUND) {
		handle_failure(checkpointer, status, &error);
	} else {
		atomic_store(&checkpointer->is_failing, false);
		plan(checkpointer);
	}
}

void vdi_checkpointer_notify(struct vdi_checkpointer *checkpointer)
{
	if (is_enough(checkpointer) && !atomic_exchange(&checkpointer->is_urgent, true))
		vd_actor_wake(checkpointer->actor);
	if (!atomic_load_explicit(&checkpointer->is_armed, memory_order_relaxed) &&
	    !atomic_exchange(&checkpointer->is_armed, true))
		vd_actor_wake(checkpointer->actor);
}

/* ---- Room, for the journal's writer ---- */

static int64_t reserve_of(const struct vdi_checkpointer *checkpointer)
{
	return VDI_MAX(RESERVE_MIN, VDI_MIN(vdi_checkpointer_size_bytes(checkpointer) / 32, RESERVE_MAX));
}

/* Adds a commit of this size to the estimates. Returns the room in the file, in bytes, that all records that
 * are not in the checkpoint may need. */
static int64_t weigh(struct vdi_checkpointer *checkpointer, size_t size, size_t change_count)
{
	int64_t waiting =
		vdi_journal_bytes(checkpointer->journal) - atomic_load(&checkpointer->covered_bytes);

	if (waiting == 0) {
		checkpointer->value_pages = 1;
		checkpointer->room_factor = ROOM_FACTOR;
	}
	checkpointer->room_factor = VDI_MAX(checkpointer->room_factor,
					    (int64_t) ((2 * size - 1 + change_count * CHANGE_BYTES) / size));
	return checkpointer->room_factor * (waiting + (int64_t) size);
}

/* Returns the room for values of at most this many pages. */
static int64_t room_for(const struct vdi_checkpointer *checkpointer, int64_t pages)
{
	int64_t tail = checkpointer->file_size - atomic_load(&checkpointer->end_bytes) -
		       (pages - 1) * VDI_CHECKPOINT_PAGE_SIZE;
	unsigned i = 0;

	while (i < VDI_CHECKPOINT_ROOM_CLASSES && (1 << i) < pages)
		i++;
	return VDI_MAX(tail, 0) +
	       (i < VDI_CHECKPOINT_ROOM_CLASSES ? atomic_load(&checkpointer->free_bytes[i]) : 0);
}

static int64_t round_up(int64_t size)
{
	return (size + GROWTH_MIN - 1) / GROWTH_MIN * GROWTH_MIN;
}

/* Enlarges the file, by more than is needed now if the disk has room. Asks for the free space first, because
 * a failed attempt may use all of it. */
static vd_status grow_file(struct vdi_checkpointer *checkpointer, int64_t size, struct vd_error *reterr)
{
	int64_t	  free_bytes = 0;
	int64_t	  wanted = round_up(size + VDI_MIN(checkpointer->file_size / 8, GROWTH_MAX));
	vd_status status;

	VDI_TRY(vdi_checkpoint_file_size(checkpointer->dir, &checkpointer->file_size, reterr));
	if (checkpointer->file_size >= size)
		return VD_OK;
	VDI_TRY(vdi_dir_free_bytes(checkpointer->dir, &free_bytes, reterr));
	if (wanted - checkpointer->file_size > free_bytes)
		wanted = round_up(size);
	if (wanted - checkpointer->file_size > free_bytes)
		return vd_error_set(reterr, VD_NO_SPACE,
				    "cannot reserve room for %s/%s: %lld bytes are needed and %lld are free",
				    checkpointer->dir->path, VDI_CHECKPOINT_NAME,
				    (long long) (wanted - checkpointer->file_size), (long long) free_bytes);
	status = vdi_checkpoint_reserve(checkpointer->dir, wanted, reterr);
	if (status == VD_OK)
		checkpointer->file_size = wanted;
	return status;
}

static void press(struct vdi_checkpointer *checkpointer)
{
	if (!atomic_exchange(&checkpointer->is_pressed, true)) {
		atomic_store(&checkpointer->is_settling_due, true);
		atomic_store(&checkpointer->has_more, true); /* free pages are to be counted */
	}
	vd_actor_wake(checkpointer->actor);
}

vd_status vdi_checkpointer_make_room(struct vdi_checkpointer *checkpointer, size_t size, size_t change_count,
				     bool is_freeing, struct vd_error *reterr)
{
	int64_t needed = weigh(checkpointer, size, change_count) + COMPACT_RESERVE +
			 (is_freeing ? 0 : reserve_of(checkpointer));
	int64_t	  pages = 1;
	vd_status status;

	if (atomic_load(&checkpointer->is_stopped))
		return VD_OK;
	if (atomic_load(&checkpointer->end_bytes) == 0)
		return is_freeing || !atomic_load(&checkpointer->is_failing) ?
			       VD_OK :
			       vd_error_set(reterr, VD_NO_SPACE, "there is no room for %s/%s",
					    checkpointer->dir->path, VDI_CHECKPOINT_NAME);
	if (!is_freeing)
		pages = checkpointer->value_pages =
			VDI_MAX(checkpointer->value_pages, (int64_t) size / VDI_CHECKPOINT_PAGE_SIZE + 1);
	if (room_for(checkpointer, pages) >= needed)
		return VD_OK;
	status = grow_file(checkpointer,
			   atomic_load(&checkpointer->end_bytes) + needed +
				   (pages - 1) * VDI_CHECKPOINT_PAGE_SIZE,
			   reterr);
	if (status == VD_NO_SPACE)
		press(checkpointer);
	else
		atomic_store(&checkpointer->is_pressed, false);
	return status;
}

bool vdi_checkpointer_may_make_room(const struct vdi_checkpointer *checkpointer)
{
	return !atomic_load(&checkpointer->is_stopped) && !atomic_load(&checkpointer->is_failing) &&
	       (atomic_load(&checkpointer->has_more) ||
		vdi_journal_durable_index(checkpointer->journal) > vdi_checkpointer_covered(checkpointer));
}

int64_t vdi_checkpointer_reserve_bytes(const struct vdi_checkpointer *checkpointer)
{
	return atomic_load(&checkpointer->end_bytes) ? reserve_of(checkpointer) + COMPACT_RESERVE : 0;
}

/* ---- Life ---- */

vd_status vdi_checkpointer_new(const struct vdi_checkpointer_options *options,
			       struct vdi_checkpointer **ret_checkpointer, struct vd_error *reterr)
{
	struct vdi_checkpointer *checkpointer = VDI_NEW(struct vdi_checkpointer);
	struct vd_actor_options	 actor_options = {
		 .name = "checkpoint", .run = run, .arg = checkpointer, .blocking = true
	};
	vd_status status;

	if (checkpointer == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	checkpointer->env = options->env;
	checkpointer->dir = options->dir;
	checkpointer->journal = options->journal;
	checkpointer->bytes = checkpointer->group_bytes = options->bytes;
	checkpointer->step_records = COMPACT_RECORDS;
	checkpointer->value_pages = 1;
	checkpointer->room_factor = ROOM_FACTOR;
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
		return vd_error_set(reterr, status, "no actor for the checkpoint: %s",
				    vd_status_sentence(status));
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
