#include "verify_writers.h"

#include <inttypes.h>
#include <stdio.h>

#include "key_range.h"

#define KEYS 64
#define BACKOFF_MIN VD_MS(20)
#define BACKOFF_MAX VD_SECONDS(2)

static void on_written(void *arg, vd_status status, const struct vd_txn_result *result,
		       const struct vd_error *error)
{
	struct vdi_verify_writer       *writer = arg;
	struct vdi_verify_writers      *writers = writer->writers;
	struct vdi_verify_writer_answer answer = { .status = status };

	if (error)
		answer.error = *error;
	if (result) {
		answer.revision = result->revision;
		for (size_t i = 0; i < result->result_count; i++)
			answer.changed |=
				result->results[i].kind == VD_OP_PUT || result->results[i].deleted > 0;
	}
	vdi_lock_acquire(&writers->lock);
	writer->has_answer = true;
	writer->answer = answer;
	vdi_lock_release(&writers->lock);
	writers->host.call_ended(writers->host.arg); /* may free the writers */
}

static vd_status submit(struct vdi_verify_writers *writers, struct vdi_verify_writer *writer,
			const struct vd_op *ops, size_t count)
{
	struct vd_txn_request request = { .success = ops, .success_count = count };
	vd_status	      status;

	writer->is_busy = true;
	writers->host.call_begins(writers->host.arg);
	status = vd_store_txn(writers->host.store, &request, on_written, writer);
	if (status == VD_OK)
		return VD_OK;
	writer->is_busy = false;
	vdi_store_backoff_note(&writer->backoff, vd_env_now(writers->env), BACKOFF_MIN, BACKOFF_MAX);
	writers->host.call_ended(writers->host.arg);
	return status;
}

static void make_value(struct vdi_verify_writers *writers, const struct vdi_verify_writer *writer,
		       const char *key, char *value, size_t size)
{
	uint64_t random = vdi_rand_next(&writers->rand);

	if (writers->host.make_value)
		writers->host.make_value(writers->host.make_value_arg, key, writer->number, random, value,
					 size);
	else
		snprintf(value, size, "{\"writer\":%u,\"random\":%" PRIu64 "}", writer->number, random);
}

static void name_key(const struct vdi_verify_writers *writers, struct vdi_verify_writer *writer, unsigned i,
		     unsigned number)
{
	snprintf(writer->key[i], sizeof writer->key[i], "%skey-%03u", writers->host.prefix, number);
}

/* Puts or deletes one or two keys. */
static void write_something(struct vdi_verify_writers *writers, struct vdi_verify_writer *writer)
{
	struct vd_op ops[2] = { { 0 }, { 0 } };
	char	     values[2][512];
	unsigned     first = (unsigned) vdi_rand_below(&writers->rand, KEYS / 2);
	vd_status    status;

	writer->key_count = vdi_rand_once_in(&writers->rand, 4) && !writers->host.one_by_one ? 2 : 1;
	for (unsigned i = 0; i < writer->key_count; i++) {
		name_key(writers, writer, i, first + i * KEYS / 2);
		make_value(writers, writer, writer->key[i], values[i], sizeof values[i]);
		ops[i].kind = vdi_rand_once_in(&writers->rand, 5) ? VD_OP_DELETE : VD_OP_PUT;
		ops[i].key = vd_bytes_of(writer->key[i]);
		if (ops[i].kind == VD_OP_PUT)
			ops[i].value = vd_bytes_of(values[i]);
	}
	writers->has_written = true;
	status = submit(writers, writer, ops, writer->key_count);
	if (status != VD_OK && !vdi_store_failure_passes(status))
		writers->host.failed(writers->host.arg, status);
}

/* Deletes the writers' keys, in one revision that all streams must deliver. */
static void clean(struct vdi_verify_writers *writers, struct vdi_verify_writer *writer)
{
	struct vd_op op = { .kind = VD_OP_DELETE, .key = vd_bytes_of(writers->host.prefix) };
	char	     end[sizeof writer->key[0]];

	writers->is_cleaned = true;
	if (op.key.size == 0 || op.key.size >= sizeof end)
		return;
	op.range_end = vdi_bytes_prefix_end(op.key, end);
	snprintf(writer->key[0], sizeof writer->key[0], "%s", writers->host.prefix);
	(void) submit(writers, writer, &op, 1); /* if it cannot be submitted, the keys remain */
}

/* The same, key by key: each idle writer takes the next key, and retries until it is deleted. */
static void clean_key(struct vdi_verify_writers *writers, struct vdi_verify_writer *writer)
{
	struct vd_op op = { .kind = VD_OP_DELETE };

	if (!writer->has_rest) {
		if (writers->cleaned == KEYS)
			return;
		name_key(writers, writer, 0, writers->cleaned++);
		writer->has_rest = true;
	}
	op.key = vd_bytes_of(writer->key[0]);
	(void) submit(writers, writer, &op, 1);
}

/* Returns true if a write that began before the cleaning is not answered yet: a put that the store applies
 * late would restore a deleted key. */
static bool is_writing(const struct vdi_verify_writers *writers)
{
	for (unsigned i = 0; i < writers->host.count; i++)
		if (writers->writers[i].is_busy && !writers->writers[i].has_rest)
			return true;
	return false;
}

static void take_answer(struct vdi_verify_writers *writers, struct vdi_verify_writer *writer, vd_mono now)
{
	struct vdi_verify_writer_answer answer;
	bool				has_answer;

	vdi_lock_acquire(&writers->lock);
	has_answer = writer->has_answer;
	writer->has_answer = false;
	answer = writer->answer;
	vdi_lock_release(&writers->lock);
	if (!has_answer)
		return;
	writer->is_busy = false;
	if (answer.status == VD_OK)
		writer->backoff.wait.ns = 0;
	else
		vdi_store_backoff_note(&writer->backoff, now, BACKOFF_MIN, BACKOFF_MAX);
	writer->has_rest &= answer.status != VD_OK;
	writers->host.answered(writers->host.arg, writer->key[0], &answer);
}

bool vdi_verify_writers_run(struct vdi_verify_writers *writers, vd_mono now,
			    enum vdi_verify_writers_mode mode)
{
	bool is_cleaning = mode == VDI_VERIFY_WRITERS_CLEAN;
	bool by_key = is_cleaning && writers->host.one_by_one && writers->has_written;
	bool busy = by_key && writers->cleaned < KEYS;

	for (unsigned i = 0; i < writers->host.count; i++) {
		struct vdi_verify_writer *writer = &writers->writers[i];

		take_answer(writers, writer, now);
		if (!writer->is_busy && !writers->is_stopped && now.ns >= writer->backoff.retry_at.ns) {
			if (mode == VDI_VERIFY_WRITERS_WRITE)
				write_something(writers, writer);
			else if (by_key && !is_writing(writers))
				clean_key(writers, writer);
		}
		busy |= writer->is_busy || writer->has_rest;
	}
	if (is_cleaning && !busy && !writers->host.one_by_one && writers->host.count &&
	    !writers->is_cleaned && !writers->is_stopped) {
		clean(writers, &writers->writers[0]);
		busy = writers->writers[0].is_busy;
	}
	return busy;
}

void vdi_verify_writers_stop(struct vdi_verify_writers *writers)
{
	writers->is_stopped = true;
}

void vdi_verify_writers_init(struct vdi_verify_writers *writers, const struct vd_env *env,
			     const struct vdi_verify_writers_host *host)
{
	writers->env = env;
	writers->host = *host;
	writers->host.count = VDI_MIN(host->count, VDI_VERIFY_WRITERS_MAX);
	vdi_rand_init(&writers->rand, vd_env_random(env));
	vdi_lock_init(&writers->lock, VDI_LOCK_WAIT);
	for (unsigned i = 0; i < VDI_VERIFY_WRITERS_MAX; i++) {
		writers->writers[i].writers = writers;
		writers->writers[i].number = i;
	}
}

void vdi_verify_writers_fini(struct vdi_verify_writers *writers)
{
	vdi_lock_fini(&writers->lock);
}
