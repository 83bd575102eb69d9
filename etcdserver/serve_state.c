/* save_lock serializes saving and is held during the write; lock protects the data. An alarm raised by the
 * quota is saved by an actor, so that no put waits for it. */
#include "serve_state.h"

#include <stdio.h>

#include "buffer.h"
#include "disk.h"
#include "env.h"
#include "hash.h"
#include "wait.h"

#define MAGIC "VDETCD1\n"
#define MAGIC_SIZE 8
#define HEAD_SIZE 16
#define TEMPORARY_NAME "state.tmp"
#define SPARE_NAME "state.spare" /* space for the next state when the disk is full */
#define SPARE_STEP ((int64_t) 4096)

struct vdi_serve_state {
	struct vdi_etcdserver *server;
	struct vdi_dir	      *dir; /* NULL: memory only */
	struct vd_actor	      *actor;

	struct vdi_lock save_lock; /* "store"; held while the file is written */
	struct vdi_lock lock;	   /* "leaf" */

	/* Under lock. */
	struct vdi_serve_alarm *alarms;
	size_t			alarm_count;
	bool			is_dirty;
	struct vdi_buffer	auth;
	struct vdi_buffer	peer_urls;
};

/* ---- The stored form ---- */

static void write_alarm(struct vdi_wire_out *out, const void *arg)
{
	const struct vdi_serve_alarm *alarm = arg;

	vdi_wire_number(out, 1, alarm->member_id);
	vdi_wire_number(out, 2, (uint64_t) alarm->kind);
}

static void write_state(struct vdi_wire_out *out, const void *arg)
{
	const struct vdi_serve_state *state = arg;

	vdi_wire_number(out, 1, state->server->cluster_id);
	vdi_wire_number(out, 2, state->server->member_id);
	vdi_wire_number(out, 3, state->server->term);
	for (size_t i = 0; i < state->alarm_count; i++)
		vdi_wire_message(out, 4, write_alarm, &state->alarms[i]);
	vdi_wire_bytes(out, 5, vdi_buffer_bytes(&state->auth));
	for (size_t at = 0; at < state->peer_urls.size; at += strlen(state->peer_urls.data + at) + 1)
		vdi_wire_bytes_always(out, 6, vd_bytes_of(state->peer_urls.data + at));
}

static void put_u64(char *at, uint64_t number)
{
	for (int i = 0; i < 8; i++)
		at[i] = (char) (number >> (8 * i));
}

static vd_status encode(struct vdi_serve_state *state, char **ret_bytes, size_t *ret_size)
{
	struct vdi_wire_out out = { 0 };
	char		   *bytes = NULL;
	size_t		    size;

	vdi_lock_acquire(&state->lock);
	write_state(&out, state);
	size = HEAD_SIZE + out.size;
	bytes = vdi_alloc(size);
	if (bytes) {
		out = (struct vdi_wire_out) { (uint8_t *) bytes + HEAD_SIZE, 0 };
		write_state(&out, state);
		state->is_dirty = false;
	}
	vdi_lock_release(&state->lock);
	if (bytes == NULL)
		return VD_NOMEM;
	memcpy(bytes, MAGIC, MAGIC_SIZE);
	put_u64(bytes + MAGIC_SIZE,
		vdi_hash_bytes((struct vd_bytes) { bytes + HEAD_SIZE, size - HEAD_SIZE }, 0));
	*ret_bytes = bytes;
	*ret_size = size;
	return VD_OK;
}

/* Writes a new file, or with SPARE_NAME one that already has its space. On failure the file is removed. */
static vd_status fill_file(struct vdi_dir *dir, const char *existing, const void *bytes, size_t size,
			   struct vd_error *reterr)
{
	struct vdi_file *file;
	vd_status	 status = vdi_dir_unlink(dir, TEMPORARY_NAME, NULL);

	if (status != VD_OK && status != VD_NOT_FOUND)
		return status;
	if (existing)
		VDI_TRY(vdi_dir_rename(dir, existing, TEMPORARY_NAME, reterr));
	VDI_TRY(vdi_file_open(dir, TEMPORARY_NAME, existing ? VDI_FILE_WRITE : VDI_FILE_CREATE, &file,
			      reterr));
	status = vdi_file_write(file, 0, bytes, size, reterr);
	if (status == VD_OK && existing)
		status = vdi_file_truncate(file, (int64_t) size, reterr);
	if (status == VD_OK)
		status = vdi_file_sync(file, reterr);
	vdi_file_close(file);
	if (status != VD_OK)
		(void) !vdi_dir_unlink(dir, TEMPORARY_NAME, NULL);
	return status;
}

/* Without a spare file, only the next change on a full disk is refused. */
static void make_spare(struct vdi_dir *dir, size_t size)
{
	int64_t		 wanted = ((int64_t) size / SPARE_STEP + 2) * SPARE_STEP;
	struct vdi_file *file;
	vd_status	 status = vdi_file_open(dir, SPARE_NAME, VDI_FILE_CREATE, &file, NULL);

	if (status == VD_EXISTS)
		status = vdi_file_open(dir, SPARE_NAME, VDI_FILE_WRITE, &file, NULL);
	if (status != VD_OK)
		return;
	status = vdi_file_allocate(file, wanted, NULL);
	vdi_file_close(file);
	if (status != VD_OK)
		(void) !vdi_dir_unlink(dir, SPARE_NAME, NULL);
}

static vd_status write_file(struct vdi_dir *dir, const void *bytes, size_t size, struct vd_error *reterr)
{
	vd_status status = fill_file(dir, NULL, bytes, size, reterr);

	if (status == VD_NO_SPACE && fill_file(dir, SPARE_NAME, bytes, size, NULL) == VD_OK)
		status = VD_OK;
	VDI_TRY(status);
	VDI_TRY(vdi_dir_rename(dir, TEMPORARY_NAME, VDI_SERVE_STATE_NAME, reterr));
	VDI_TRY(vdi_dir_sync(dir, reterr));
	make_spare(dir, size);
	return VD_OK;
}

static vd_status save(struct vdi_serve_state *state, struct vd_error *reterr)
{
	vd_status status;
	char	 *bytes;
	size_t	  size;

	if (state->dir == NULL)
		return VD_OK;
	vdi_lock_acquire(&state->save_lock);
	status = encode(state, &bytes, &size);
	if (status == VD_OK) {
		status = write_file(state->dir, bytes, size, reterr);
		vdi_free(bytes);
	}
	vdi_lock_release(&state->save_lock);
	if (status != VD_OK) {
		vdi_lock_acquire(&state->lock);
		state->is_dirty = true;
		vdi_lock_release(&state->lock);
	}
	return status;
}

/* ---- Reading ---- */

static vd_status add_alarm(struct vdi_serve_state *state, const struct vdi_serve_alarm *alarm)
{
	if (state->alarm_count == VDI_SERVE_ALARMS_MAX)
		return VD_FULL;
	state->alarms[state->alarm_count++] = *alarm;
	return VD_OK;
}

static vd_status read_alarm(struct vdi_serve_state *state, struct vd_bytes bytes)
{
	struct vdi_serve_alarm alarm = { 0 };
	struct vdi_wire_reader reader;

	vdi_wire_reader_init(&reader, bytes);
	while (vdi_wire_next(&reader)) {
		if (reader.tag == VDI_WIRE_VARINT(1))
			alarm.member_id = reader.number;
		else if (reader.tag == VDI_WIRE_VARINT(2))
			alarm.kind = (int64_t) reader.number;
	}
	return reader.is_bad ? VD_CORRUPT : add_alarm(state, &alarm);
}

static vd_status decode(struct vdi_serve_state *state, struct vd_bytes bytes)
{
	struct vdi_wire_reader reader;

	vdi_wire_reader_init(&reader, bytes);
	while (vdi_wire_next(&reader)) {
		switch (reader.tag) {
		case VDI_WIRE_VARINT(1): state->server->cluster_id = reader.number; break;
		case VDI_WIRE_VARINT(2): state->server->member_id = reader.number; break;
		case VDI_WIRE_VARINT(3): state->server->term = reader.number; break;
		case VDI_WIRE_BYTES(4): VDI_TRY(read_alarm(state, reader.bytes)); break;
		case VDI_WIRE_BYTES(5): vdi_buffer_append(&state->auth, reader.bytes); break;
		case VDI_WIRE_BYTES(6):
			vdi_buffer_append(&state->peer_urls, reader.bytes);
			vdi_buffer_append_char(&state->peer_urls, 0);
			break;
		default: break;
		}
	}
	VDI_TRY(vdi_buffer_status(&state->auth));
	VDI_TRY(vdi_buffer_status(&state->peer_urls));
	return reader.is_bad || state->server->cluster_id == 0 || state->server->member_id == 0 ? VD_CORRUPT :
												  VD_OK;
}

static vd_status check_and_decode(struct vdi_serve_state *state, const char *bytes, size_t size)
{
	char checksum[8];

	if (size < HEAD_SIZE || memcmp(bytes, MAGIC, MAGIC_SIZE) != 0)
		return VD_CORRUPT;
	put_u64(checksum, vdi_hash_bytes((struct vd_bytes) { bytes + HEAD_SIZE, size - HEAD_SIZE }, 0));
	if (memcmp(checksum, bytes + MAGIC_SIZE, sizeof checksum) != 0)
		return VD_CORRUPT;
	return decode(state, (struct vd_bytes) { bytes + HEAD_SIZE, size - HEAD_SIZE });
}

/* VD_NOT_FOUND: none yet. */
static vd_status read_file(struct vdi_serve_state *state, struct vd_error *reterr)
{
	struct vdi_file *file;
	int64_t		 size = 0;
	size_t		 got = 0;
	char		*bytes = NULL;
	vd_status	 status;

	VDI_TRY(vdi_file_open(state->dir, VDI_SERVE_STATE_NAME, VDI_FILE_READ, &file, reterr));
	status = vdi_file_size(file, &size, reterr);
	if (status == VD_OK && (uint64_t) size > VDI_SERVE_STATE_SIZE_MAX)
		status = VD_CORRUPT;
	if (status == VD_OK) {
		bytes = vdi_alloc((size_t) size + 1);
		status = bytes ? vdi_file_read(file, 0, bytes, (size_t) size, &got, reterr) : VD_NOMEM;
	}
	if (status == VD_OK)
		status = check_and_decode(state, bytes, got);
	if (status == VD_CORRUPT)
		(void) vd_error_set(reterr, VD_CORRUPT, "%s/%s is damaged", state->dir->path,
				    VDI_SERVE_STATE_NAME);
	vdi_free(bytes);
	vdi_file_close(file);
	return status;
}

/* ---- Life ---- */

static void state_run(void *arg)
{
	struct vdi_serve_state *state = arg;
	struct vd_error		error = { .code = VD_OK };
	bool			is_dirty;

	vdi_lock_acquire(&state->lock);
	is_dirty = state->is_dirty;
	vdi_lock_release(&state->lock);
	if (!is_dirty)
		return;
	error.code = save(state, &error);
	if (error.code != VD_OK) {
		vdi_log(state->server->env, VD_LOG_ERROR, "etcd",
			"the state of the etcd server could not be saved: %s", error.message);
		vd_actor_set_timer(state->actor, vd_mono_add(vd_env_now(state->server->env), VD_SECONDS(5)));
	}
}

static uint64_t random_id(const struct vd_env *env)
{
	uint64_t id;

	do
		id = vd_env_random(env);
	while (id == 0);
	return id;
}

static void set_alarm_bits(struct vdi_serve_state *state)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < state->alarm_count; i++)
		if (state->alarms[i].kind > 0 && state->alarms[i].kind < 32)
			bits |= 1u << state->alarms[i].kind;
	atomic_store_explicit(&state->server->alarms, bits, memory_order_relaxed);
}

static vd_status open_file(struct vdi_serve_state *state, struct vd_error *reterr)
{
	struct vdi_etcdserver *server = state->server;
	struct vdi_disk	      *disk = vdi_env_disk(server->env);
	vd_status	       status = VD_NOT_FOUND;

	if (server->options.state_path) {
		VDI_TRY(vdi_dir_open(disk ? disk : vdi_disk_os(), server->options.state_path, &state->dir,
				     reterr));
		vdi_dir_warn(state->dir, server->env);
		status = read_file(state, reterr);
	}
	if (status == VD_NOT_FOUND) {
		server->cluster_id = random_id(server->env);
		server->member_id = random_id(server->env);
		server->term = 1;
		status = VD_OK;
	}
	VDI_TRY(status);
	server->term++; /* as after an election */
	set_alarm_bits(state);
	status = save(state, reterr);
	if (status != VD_NO_SPACE)
		return status;
	/* The server must start, because deletes free space. The term is saved as soon as there is some. */
	vdi_log(server->env, VD_LOG_WARNING, "etcd",
		"the disk is full, the state of the etcd server will be saved later: %s",
		reterr ? reterr->message : "");
	return VD_OK;
}

vd_status vdi_serve_state_open(struct vdi_etcdserver *server, struct vdi_serve_state **ret_state,
			       struct vd_error *reterr)
{
	struct vdi_serve_state *state = VDI_NEW(struct vdi_serve_state);
	struct vd_actor_options options = {
		.name = "etcd state", .run = state_run, .arg = state, .blocking = true
	};
	vd_status status;

	if (state == NULL)
		return vd_error_set(reterr, VD_NOMEM, "etcd: out of memory");
	state->server = server;
	vdi_lock_init(&state->save_lock, VDI_LOCK_STORE);
	vdi_lock_init(&state->lock, VDI_LOCK_LEAF);
	vdi_buffer_init(&state->auth, VDI_SERVE_STATE_SIZE_MAX / 2);
	vdi_buffer_init(&state->peer_urls, VDI_SERVE_PEER_URLS_SIZE_MAX);
	state->alarms = vdi_alloc(VDI_SERVE_ALARMS_MAX * sizeof state->alarms[0]);
	status = state->alarms ? open_file(state, reterr) :
				 vd_error_set(reterr, VD_NOMEM, "etcd: out of memory");
	if (status == VD_OK)
		status = vd_actor_new(server->env, &options, &state->actor);
	if (status == VD_OK && state->is_dirty)
		vd_actor_wake(state->actor);
	if (status == VD_OK)
		*ret_state = state;
	else
		vdi_serve_state_close(state);
	return status;
}

struct vdi_serve_state *vdi_serve_state_close(struct vdi_serve_state *state)
{
	if (state == NULL)
		return NULL;
	if (state->actor) {
		vdi_wait_for_actor_close(state->server->env, state->actor);
		if (state->is_dirty)
			(void) save(state, NULL); /* only an alarm, which would be raised again */
	}
	vdi_dir_close(state->dir);
	vdi_buffer_fini(&state->auth);
	vdi_buffer_fini(&state->peer_urls);
	vdi_free(state->alarms);
	vdi_lock_fini(&state->lock);
	vdi_lock_fini(&state->save_lock);
	vdi_free(state);
	return NULL;
}

/* ---- Alarms ---- */

static struct vdi_serve_alarm *find_alarm(struct vdi_serve_state *state, const struct vdi_serve_alarm *alarm)
{
	for (size_t i = 0; i < state->alarm_count; i++)
		if (state->alarms[i].member_id == alarm->member_id && state->alarms[i].kind == alarm->kind)
			return &state->alarms[i];
	return NULL;
}

/* VD_FULL only if it is added. */
static vd_status change_alarm(struct vdi_serve_state *state, const struct vdi_serve_alarm *alarm, bool active,
			      bool *ret_changed)
{
	struct vdi_serve_alarm *found;
	vd_status		status = VD_OK;

	*ret_changed = false;
	vdi_lock_acquire(&state->lock);
	found = find_alarm(state, alarm);
	if (active && found == NULL) {
		status = add_alarm(state, alarm);
		*ret_changed = status == VD_OK;
	} else if (!active && found) {
		state->alarm_count--;
		memmove(found, found + 1,
			(size_t) (state->alarms + state->alarm_count - found) * sizeof *found);
		*ret_changed = true;
	}
	if (*ret_changed) {
		state->is_dirty = true;
		set_alarm_bits(state);
	}
	vdi_lock_release(&state->lock);
	return status;
}

void vdi_serve_state_raise(struct vdi_serve_state *state, uint64_t member_id, enum vdi_alarm kind)
{
	struct vdi_serve_alarm alarm = { member_id, kind };
	bool		       changed;

	if (change_alarm(state, &alarm, true, &changed) != VD_OK || !changed)
		return;
	vdi_log(state->server->env, VD_LOG_WARNING, "etcd",
		"alarm %s raised: writes are refused until it is disarmed",
		kind == VDI_ALARM_NOSPACE ? "NOSPACE" : "CORRUPT");
	vd_actor_wake(state->actor);
}

size_t vdi_serve_state_alarms(struct vdi_serve_state *state, int64_t kind, struct vdi_serve_alarm *ret_alarms,
			      size_t max)
{
	size_t count = 0;

	vdi_lock_acquire(&state->lock);
	for (size_t i = 0; i < state->alarm_count; i++) {
		if (kind != VDI_ALARM_NONE && state->alarms[i].kind != kind)
			continue;
		if (count < max)
			ret_alarms[count] = state->alarms[i];
		count++;
	}
	vdi_lock_release(&state->lock);
	return count;
}

vd_status vdi_serve_state_set_alarm(struct vdi_serve_state *state, const struct vdi_serve_alarm *alarm,
				    bool active, bool *ret_changed)
{
	bool ignored;

	VDI_TRY(change_alarm(state, alarm, active, ret_changed));
	if (!*ret_changed || save(state, NULL) == VD_OK)
		return VD_OK;
	(void) change_alarm(state, alarm, !active,
			    &ignored); /* there is room: it existed before, or the list was not full */
	return VD_IO;
}

/* ---- Authentication ---- */

struct vdi_dir *vdi_serve_state_dir(const struct vdi_serve_state *state)
{
	return state->dir;
}

struct vd_bytes vdi_serve_state_auth(const struct vdi_serve_state *state)
{
	return vdi_buffer_bytes(&state->auth);
}

/* Replaces a byte string of the state. Undone if it cannot be saved. */
static vd_status replace(struct vdi_serve_state *state, struct vdi_buffer *part, struct vd_bytes bytes)
{
	struct vdi_buffer changed;
	struct vdi_buffer old;
	vd_status	  status;

	vdi_buffer_init(&changed, part->size_max);
	vdi_buffer_append(&changed, bytes);
	status = vdi_buffer_status(&changed);
	if (status != VD_OK) {
		vdi_buffer_fini(&changed);
		return status;
	}
	vdi_lock_acquire(&state->lock);
	old = *part;
	*part = changed;
	vdi_lock_release(&state->lock);
	status = save(state, NULL);
	if (status != VD_OK) {
		vdi_lock_acquire(&state->lock);
		changed = *part;
		*part = old;
		vdi_lock_release(&state->lock);
		old = changed;
	}
	vdi_buffer_fini(&old);
	return status;
}

vd_status vdi_serve_state_set_auth(struct vdi_serve_state *state, struct vd_bytes auth)
{
	return replace(state, &state->auth, auth);
}

/* ---- Peer URLs ---- */

vd_status vdi_serve_state_set_peer_urls(struct vdi_serve_state *state, struct vd_bytes urls)
{
	return replace(state, &state->peer_urls, urls);
}

void vdi_serve_state_peer_urls(struct vdi_serve_state *state, struct vdi_buffer *urls)
{
	vdi_lock_acquire(&state->lock);
	vdi_buffer_append(urls, vdi_buffer_bytes(&state->peer_urls));
	vdi_lock_release(&state->lock);
}
