#undef _FILE_OFFSET_BITS /* the names of the calls are defined here */
/* Power cuts and changed sectors.
 *
 * A loaded store's system calls are recorded, and disks are laid out as a power cut could have left them. On each of them the store must open with everything that was
 * acknowledged before the cut. Then sectors of the stopped store are changed (one bit, zeros, another sector, a file cut short): the store refuses to open and
 * names the directory, or everything is there.
 *
 *   test_power_cut [LAYOUTS [SEED]]     the long run: test_power_cut 2000 7
 *
 * This program defines the calls by which lib/disk.c and LMDB change files, so that they are recorded on their way. A write belongs to its file until the file is
 * synced, a name to the directory until that is synced. A layout takes a moment, and from what was not synced then, for each file: writes in order, each kept, lost, or
 * kept in part (512-byte sectors); for names: each change kept or lost. Sizes count as writes.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <vedette/env.h>
#include <vedette/store.h>

#include "rand.h"
#include "vdtest.h"
#include "wait.h"

#define SECTOR 512
#define FDS_MAX 1024
#define FILES_MAX 512
#define OPS_MAX 400000
#define KEYS 64
#define WRITERS 4

static uint64_t layouts = 25;
static uint64_t first_seed = 1;
static char	top[] = "/tmp/vedette-test-power-XXXXXX";

/* ---- The record ---- */

enum kind { OP_WRITE, OP_SIZE, OP_SYNC, OP_CREATE, OP_RENAME, OP_UNLINK, OP_DIR_SYNC, OP_ACK };

struct op {
	enum kind kind;
	int	  file;	 /* number of a file, not of a name */
	int64_t	  offset; /* OP_WRITE; OP_SIZE: the size */
	size_t	  size;
	char	 *data;
	char	  name[64], to[64];
	vd_rev	  revision; /* OP_ACK */
	unsigned  key;
};

struct named {
	char name[64];
	int  file;
};

static struct {
	pthread_mutex_t lock;
	bool		is_on;
	char		dir[128];
	struct op      *ops;
	size_t		count;
	int		files;
	int		fd_file[FDS_MAX]; /* 0: none; -1: the directory */
	struct named	names[FILES_MAX];
	size_t		name_count;
} trace = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void note(struct op op)
{
	assert_true(trace.count < OPS_MAX);
	trace.ops[trace.count++] = op;
}

/* LMDB writes its meta pages through a descriptor that syncs each write. */
static void note_data(int fd, int file, int64_t offset, const void *data, size_t size)
{
	struct op op = { .kind = OP_WRITE, .file = file, .offset = offset, .size = size, .data = malloc(size) };

	memcpy(op.data, data, size);
	note(op);
	if (fcntl(fd, F_GETFL) & O_DSYNC)
		note((struct op) { .kind = OP_SYNC, .file = file });
}

static struct named *find_name(struct named *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i].name, name) == 0)
			return &names[i];
	return NULL;
}

static int file_of(int fd)
{
	return trace.is_on && fd >= 0 && fd < FDS_MAX ? trace.fd_file[fd] : 0;
}

#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

static void opened(int fd, const char *path, int flags)
{
	const char   *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	struct named *named;

	if (!trace.is_on || fd < 0 || fd >= FDS_MAX)
		return;
	trace.fd_file[fd] = 0;
	if (strcmp(path, trace.dir) == 0) {
		trace.fd_file[fd] = -1;
		return;
	}
	if (path[0] == '/' && strncmp(path, trace.dir, strlen(trace.dir)) != 0)
		return;
	named = find_name(trace.names, trace.name_count, base);
	if (named == NULL) {
		if (!(flags & O_CREAT))
			return; /* the directory above */
		assert_true(trace.name_count < FILES_MAX);
		named = &trace.names[trace.name_count++];
		snprintf(named->name, sizeof named->name, "%s", base);
		named->file = ++trace.files;
		note((struct op) { .kind = OP_CREATE, .file = named->file });
		snprintf(trace.ops[trace.count - 1].name, 64, "%s", base);
	}
	trace.fd_file[fd] = named->file;
}

/* All changes and their records happen under one lock: the order of the record is the order on the disk. */
#define RECORDED(call, record)                     \
	do {                                       \
		pthread_mutex_lock(&trace.lock);   \
		result = call;                     \
		if (result >= 0) {                 \
			record;                    \
		}                                  \
		pthread_mutex_unlock(&trace.lock); \
	} while (false)

#pragma GCC visibility push(default) /* LMDB's calls come here too */

int open(const char *path, int flags, ...)
{
	va_list list;
	mode_t	mode;
	int	result;

	va_start(list, flags);
	mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
	va_end(list);
	RECORDED(REAL(open)(path, flags, mode), opened(result, path, flags));
	return result;
}
int openat(int dir, const char *path, int flags, ...)
{
	va_list list;
	mode_t	mode;
	int	result;

	va_start(list, flags);
	mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
	va_end(list);
	RECORDED(REAL(openat)(dir, path, flags, mode), if (file_of(dir) == -1 || path[0] == '/') opened(result, path, flags));
	return result;
}
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int dir, const char *path, int flags, ...) __attribute__((alias("openat")));

int close(int fd)
{
	int result;

	RECORDED(REAL(close)(fd), if (fd < FDS_MAX) trace.fd_file[fd] = 0);
	return result;
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
	ssize_t result;

	RECORDED(REAL(pwrite)(fd, data, size, offset), if (file_of(fd) > 0) note_data(fd, file_of(fd), offset, data, (size_t) result));
	return result;
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset) __attribute__((alias("pwrite")));
ssize_t pwritev(int fd, const struct iovec *vectors, int count, off_t offset)
{
	ssize_t result = 0;

	for (int i = 0; i < count; i++) {
		if (pwrite(fd, vectors[i].iov_base, vectors[i].iov_len, offset + result) != (ssize_t) vectors[i].iov_len)
			return -1;
		result += (ssize_t) vectors[i].iov_len;
	}
	return result;
}
ssize_t pwritev64(int fd, const struct iovec *vectors, int count, off_t offset) __attribute__((alias("pwritev")));
ssize_t write(int fd, const void *data, size_t size)
{
	ssize_t result;

	RECORDED(REAL(write)(fd, data, size), if (file_of(fd) > 0) note_data(fd, file_of(fd), lseek(fd, 0, SEEK_CUR) - result, data, (size_t) result));
	return result;
}
ssize_t writev(int fd, const struct iovec *vectors, int count)
{
	ssize_t result = 0;

	for (int i = 0; i < count; i++) {
		if (write(fd, vectors[i].iov_base, vectors[i].iov_len) != (ssize_t) vectors[i].iov_len)
			return -1;
		result += (ssize_t) vectors[i].iov_len;
	}
	return result;
}
int ftruncate(int fd, off_t size)
{
	int result;

	RECORDED(REAL(ftruncate)(fd, size), if (file_of(fd) > 0) note((struct op) { .kind = OP_SIZE, .file = file_of(fd), .offset = size }));
	return result;
}
int ftruncate64(int fd, off_t size) __attribute__((alias("ftruncate")));
int fallocate(int fd, int mode, off_t offset, off_t size)
{
	struct stat info;
	int	    result;

	RECORDED(REAL(fallocate)(fd, mode, offset, size),
		 if (file_of(fd) > 0 && fstat(fd, &info) == 0) note((struct op) { .kind = OP_SIZE, .file = file_of(fd), .offset = info.st_size }));
	return result;
}
int fallocate64(int fd, int mode, off_t offset, off_t size) __attribute__((alias("fallocate")));

static int sync_with(int (*real)(int), int fd)
{
	int result;

	RECORDED(real(fd), if (file_of(fd)) note((struct op) { .kind = file_of(fd) < 0 ? OP_DIR_SYNC : OP_SYNC, .file = file_of(fd) }));
	return result;
}
int fdatasync(int fd)
{
	return sync_with(REAL(fdatasync), fd);
}
int fsync(int fd)
{
	return sync_with(REAL(fsync), fd);
}

static void renamed(const char *from, const char *to)
{
	struct named *target = find_name(trace.names, trace.name_count, to);
	struct named *named;
	struct op     op = { .kind = OP_RENAME };

	snprintf(op.name, sizeof op.name, "%s", from);
	snprintf(op.to, sizeof op.to, "%s", to);
	if (target)
		*target = trace.names[--trace.name_count];
	named = find_name(trace.names, trace.name_count, from);
	assert_non_null(named);
	snprintf(named->name, sizeof named->name, "%s", to);
	op.file = named->file;
	note(op);
}
int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	int result;

	RECORDED(REAL(renameat)(from_dir, from, to_dir, to), if (file_of(from_dir) == -1) renamed(from, to));
	return result;
}

static void unlinked(const char *name)
{
	struct named *named = find_name(trace.names, trace.name_count, name);
	struct op     op = { .kind = OP_UNLINK };

	assert_non_null(named);
	snprintf(op.name, sizeof op.name, "%s", name);
	*named = trace.names[--trace.name_count];
	note(op);
}
int unlinkat(int dir, const char *name, int flags)
{
	int result;

	RECORDED(REAL(unlinkat)(dir, name, flags), if (file_of(dir) == -1) unlinked(name));
	return result;
}

#pragma GCC visibility pop

/* ---- The load ---- */

struct writer {
	pthread_t	 thread;
	struct vd_env	*env;
	struct vd_store *store;
	unsigned	 number;
	unsigned	 rounds;
};

static void note_ack(vd_rev revision, unsigned key, size_t size)
{
	pthread_mutex_lock(&trace.lock);
	note((struct op) { .kind = OP_ACK, .revision = revision, .key = key, .size = size });
	pthread_mutex_unlock(&trace.lock);
}

/* Each key has one writer. The value says at which step it was written. */
static void *write_some(void *arg)
{
	struct writer *writer = arg;
	struct vdi_rand rand;
	char		filler[6000];
	char		key[32];
	vd_rev		revision = 0;
	int64_t		count;
	size_t		size;

	vdi_rand_init(&rand, first_seed * 100 + writer->number);
	for (unsigned i = 0; i < writer->rounds; i++) {
		unsigned number = (unsigned) vdi_rand_below(&rand, KEYS / WRITERS) * WRITERS + writer->number;

		snprintf(key, sizeof key, "/key/%03u", number);
		size = vdi_rand_once_in(&rand, 4) ? 0 : 1 + vdi_rand_below(&rand, sizeof filler);
		if (size == 0)
			assert_status(vd_store_delete_wait(writer->store, vd_bytes_of(key), VD_BYTES_NONE, &count, &revision, NULL), VD_OK);
		else
			assert_status(vd_store_put_wait(writer->store, vd_bytes_of(key), (struct vd_bytes) { memset(filler, (int) (size % 251), size), size }, &revision, NULL),
				      VD_OK);
		note_ack(revision, number, size);
	}
	return NULL;
}

static void ignore_done(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	(void) status;
	(void) revision;
	(void) error;
	vdi_wait_signal(arg);
}

static void compact_now(struct writer *writer)
{
	struct vd_store_status status;
	struct vdi_wait	       wait;

	assert_status(vd_store_status_get(writer->store, &status), VD_OK);
	vdi_wait_init(&wait, writer->env);
	if (vd_store_compact(writer->store, status.current, false, ignore_done, &wait) == VD_OK)
		vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
}

static vd_status open_store(const char *dir, struct vd_env *env, struct vd_store **ret_store, struct vd_error *error)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	options.data_dir = dir;
	options.history_window = (vd_dur) { 0 };
	return vd_store_open_mvcc(env, &options, ret_store, error);
}

static void a_load_is_recorded(void **state)
{
	struct writer	 writers[WRITERS];
	struct vd_store *store;
	struct vd_env	*env;
	struct vd_error	 error = { 0 };

	(void) state;
	trace.ops = calloc(OPS_MAX, sizeof *trace.ops);
	snprintf(trace.dir, sizeof trace.dir, "%s/data", top);
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	trace.is_on = true;
	for (unsigned part = 0; part < 4; part++) {
		assert_status(open_store(trace.dir, env, &store, &error), VD_OK);
		for (unsigned i = 0; i < WRITERS; i++) {
			writers[i] = (struct writer) { .env = env, .store = store, .number = i, .rounds = 150 };
			assert_int_equal(pthread_create(&writers[i].thread, NULL, write_some, &writers[i]), 0);
		}
		for (unsigned i = 0; i < WRITERS; i++)
			pthread_join(writers[i].thread, NULL);
		compact_now(&writers[0]);
		vd_store_close_wait(store);
	}
	trace.is_on = false;
	vd_env_free(env);
}

/* ---- Layouts ---- */

/* A file as it may be on the disk, and what has not been synced. */
struct image {
	char   *bytes;
	int64_t size;
	size_t *pending; /* numbers of operations */
	size_t	pending_count;
	size_t	pending_capacity;
};

static void set_size(struct image *image, int64_t size)
{
	image->bytes = realloc(image->bytes, (size_t) size + 1);
	if (size > image->size)
		memset(image->bytes + image->size, 0, (size_t) (size - image->size));
	image->size = size;
}

static void put_bytes(struct image *image, int64_t offset, const char *data, size_t size)
{
	if (offset + (int64_t) size > image->size)
		set_size(image, offset + (int64_t) size);
	memcpy(image->bytes + offset, data, size);
}

static void apply(struct image *image, const struct op *op)
{
	if (op->kind == OP_SIZE)
		set_size(image, op->offset);
	else
		put_bytes(image, op->offset, op->data, op->size);
}

/* mode 0: everything that is not synced is lost; 1: all is there; else as chance has it. */
static bool is_kept(struct vdi_rand *rand, unsigned mode)
{
	return mode == 1 || (mode > 1 && vdi_rand_once_in(rand, 2));
}

static void apply_in_part(struct image *image, const struct op *op, struct vdi_rand *rand, unsigned mode)
{
	if (mode < 3 || op->kind == OP_SIZE) {
		if (is_kept(rand, mode))
			apply(image, op);
		return;
	}
	for (int64_t at = op->offset, end = at + (int64_t) op->size, next; at < end; at = next) {
		next = VDI_MIN(end, (at / SECTOR + 1) * SECTOR);
		if (is_kept(rand, mode))
			put_bytes(image, at, op->data + (at - op->offset), (size_t) (next - at));
	}
}

static void change_names(struct named *names, size_t *count, const struct op *op)
{
	struct named *named;

	if (op->kind != OP_CREATE && (named = find_name(names, *count, op->name)) != NULL)
		*named = names[--*count];
	if (op->kind == OP_UNLINK)
		return;
	named = find_name(names, *count, op->kind == OP_RENAME ? op->to : op->name);
	if (named == NULL) {
		named = &names[(*count)++];
		snprintf(named->name, sizeof named->name, "%s", op->kind == OP_RENAME ? op->to : op->name);
	}
	named->file = op->file;
}

static void write_out(const char *dir, const struct named *named, const struct image *image)
{
	char  path[300];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", dir, named->name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(image->size == 0 || fwrite(image->bytes, (size_t) image->size, 1, file) == 1);
	assert_int_equal(fclose(file), 0);
}

/* Lays out the disk as it may be after a cut before operation `end`. */
static void lay_out(const char *dir, size_t end, struct vdi_rand *rand)
{
	static struct named names[FILES_MAX];
	struct image	   *images = calloc((size_t) trace.files + 1, sizeof *images);
	size_t		    name_count = 0, unsynced_from = 0;
	unsigned	    mode = (unsigned) vdi_rand_below(rand, 5);

	assert_int_equal(mkdir(dir, 0700), 0);
	for (size_t i = 0; i < end; i++) {
		const struct op *op = &trace.ops[i];
		struct image	*image = op->file > 0 ? &images[op->file] : NULL;

		if (op->kind == OP_WRITE || op->kind == OP_SIZE) {
			assert_true(vdi_grow((void **) &image->pending, &image->pending_capacity, image->pending_count + 1, sizeof *image->pending));
			image->pending[image->pending_count++] = i;
		} else if (op->kind == OP_SYNC) {
			for (size_t j = 0; j < image->pending_count; j++)
				apply(image, &trace.ops[image->pending[j]]);
			image->pending_count = 0;
		} else if (op->kind == OP_DIR_SYNC) {
			for (; unsynced_from < i; unsynced_from++)
				if (trace.ops[unsynced_from].kind >= OP_CREATE && trace.ops[unsynced_from].kind <= OP_UNLINK)
					change_names(names, &name_count, &trace.ops[unsynced_from]);
		}
	}
	for (; unsynced_from < end; unsynced_from++)
		if (trace.ops[unsynced_from].kind >= OP_CREATE && trace.ops[unsynced_from].kind <= OP_UNLINK && is_kept(rand, mode))
			change_names(names, &name_count, &trace.ops[unsynced_from]);
	for (int i = 1; i <= trace.files; i++)
		for (size_t j = 0; j < images[i].pending_count; j++)
			apply_in_part(&images[i], &trace.ops[images[i].pending[j]], rand, mode);
	for (size_t i = 0; i < name_count; i++)
		write_out(dir, &names[i], &images[names[i].file]);
	for (int i = 1; i <= trace.files; i++) {
		free(images[i].bytes);
		vdi_free(images[i].pending);
	}
	free(images);
}

/* ---- What must be there ---- */

/* The change of a key at a revision; NULL: nobody was told of it. */
static const struct op *change_at(unsigned key, vd_rev revision)
{
	for (size_t i = 0; i < trace.count; i++)
		if (trace.ops[i].kind == OP_ACK && trace.ops[i].key == key && trace.ops[i].revision == revision)
			return &trace.ops[i];
	return NULL;
}

static bool is_removed_after(unsigned key, vd_rev from, vd_rev to)
{
	for (size_t i = 0; i < trace.count; i++)
		if (trace.ops[i].kind == OP_ACK && trace.ops[i].key == key && trace.ops[i].size == 0 && trace.ops[i].revision > from && trace.ops[i].revision <= to)
			return true;
	return false;
}

/* What was acknowledged before `end` is there, and what is newer is what a writer wrote. A key that is deleted without being there keeps the revision of the store. */
static void check(struct vd_store *store, size_t end)
{
	const struct op	      *acked[KEYS] = { NULL };
	struct vd_store_status status;
	char		       name[32];

	for (size_t i = 0; i < end; i++)
		if (trace.ops[i].kind == OP_ACK)
			acked[trace.ops[i].key] = &trace.ops[i];
	assert_status(vd_store_status_get(store, &status), VD_OK);
	for (unsigned key = 0; key < KEYS; key++) {
		vd_rev		 last = acked[key] ? acked[key]->revision : 0;
		struct vd_kv	*kv = NULL;
		const struct op *change;
		vd_status	 found;

		snprintf(name, sizeof name, "/key/%03u", key);
		found = vd_store_get_wait(store, vd_bytes_of(name), &kv, NULL);
		assert_true(status.current >= last);
		if (found == VD_NOT_FOUND) {
			assert_true(last == 0 || acked[key]->size == 0 || is_removed_after(key, last, status.current));
			continue;
		}
		assert_status(found, VD_OK);
		assert_true(kv->mod_rev > last || (kv->mod_rev == last && acked[key]->size));
		change = change_at(key, kv->mod_rev);
		assert_non_null(change);
		assert_int_equal(vd_kv_value(kv).size, change->size);
		for (size_t i = 0; i < change->size; i++)
			assert_int_equal(((const uint8_t *) vd_kv_value(kv).data)[i], change->size % 251);
		vd_kv_unref(kv);
	}
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
	(void) info;
	(void) type;
	(void) place;
	return remove(path);
}

static void open_and_check(const char *dir, size_t end, bool may_refuse, unsigned *refused)
{
	struct vd_error	 error = { 0 };
	struct vd_store *store;
	struct vd_env	*env;
	vd_status	 status;

	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	status = open_store(dir, env, &store, &error);
	if (status == VD_OK) {
		check(store, end);
		assert_status(vd_store_put_wait(store, vd_bytes_of("/after"), vd_bytes_of("x"), NULL, NULL), VD_OK);
		vd_store_close_wait(store);
	} else {
		if (!may_refuse)
			print_message("%s: %s\n", vd_status_name(status), error.message);
		assert_true(may_refuse);
		assert_non_null(strstr(error.message, dir));
		++*refused;
	}
	vd_env_free(env);
}

static void e469_any_layout_after_a_power_cut_has_everything_acknowledged(void **state)
{
	char	 dir[128];
	unsigned refused = 0;

	(void) state;
	for (uint64_t i = 0; i < layouts; i++) {
		struct vdi_rand rand;
		size_t		end;

		vdi_rand_init(&rand, first_seed * 1000003 + i);
		end = vdi_rand_below(&rand, trace.count + 1);
		snprintf(dir, sizeof dir, "%s/cut-%llu", top, (unsigned long long) i);
		lay_out(dir, end, &rand);
		open_and_check(dir, end, false, &refused);
		nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	}
	print_message("%zu calls, %llu layouts\n", trace.count, (unsigned long long) layouts);
}

/* Changes one sector, or the length, of the file as it is. */
static void damage(struct image *image, struct vdi_rand *rand)
{
	int64_t at = (int64_t) vdi_rand_below(rand, (uint64_t) image->size / SECTOR) * SECTOR;
	int64_t from = (int64_t) vdi_rand_below(rand, (uint64_t) image->size / SECTOR) * SECTOR;

	switch (vdi_rand_below(rand, 4)) {
	case 0:
		image->bytes[at + (int64_t) vdi_rand_below(rand, SECTOR)] ^= (char) (1 << vdi_rand_below(rand, 8));
		break;
	case 1:
		memset(image->bytes + at, 0, SECTOR);
		break;
	case 2:
		memmove(image->bytes + at, image->bytes + from, SECTOR);
		break;
	default:
		image->size = at;
		break;
	}
}

static void a_changed_sector_is_refused_or_harmless(void **state)
{
	char	 dir[128], path[256];
	unsigned refused = 0;

	(void) state;
	for (uint64_t i = 0; i < layouts * 3; i++) {
		struct vdi_rand rand;
		size_t		victim;

		vdi_rand_init(&rand, first_seed * 2000003 + i);
		victim = vdi_rand_below(&rand, trace.name_count);
		snprintf(dir, sizeof dir, "%s/changed-%llu", top, (unsigned long long) i);
		assert_int_equal(mkdir(dir, 0700), 0);
		for (size_t j = 0; j < trace.name_count; j++) {
			struct image image = { 0 };
			FILE	    *file;
			struct stat  info;

			snprintf(path, sizeof path, "%s/%s", trace.dir, trace.names[j].name);
			assert_int_equal(stat(path, &info), 0);
			set_size(&image, info.st_size);
			file = fopen(path, "r");
			assert_true(file && fread(image.bytes, 1, (size_t) image.size, file) == (size_t) image.size);
			fclose(file);
			if (j == victim && image.size >= SECTOR)
				damage(&image, &rand);
			write_out(dir, &trace.names[j], &image);
			free(image.bytes);
		}
		open_and_check(dir, trace.count, true, &refused);
		nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	}
	print_message("%llu changed, %u of them refused by name\n", (unsigned long long) layouts * 3, refused);
	assert_true(refused > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_load_is_recorded),
		cmocka_unit_test(e469_any_layout_after_a_power_cut_has_everything_acknowledged),
		cmocka_unit_test(a_changed_sector_is_refused_or_harmless),
	};
	int failed;

	if (argc > 1)
		layouts = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		first_seed = strtoull(argv[2], NULL, 10);
	if (mkdtemp(top) == NULL)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	for (size_t i = 0; i < trace.count; i++)
		free(trace.ops[i].data);
	free(trace.ops);
	nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return failed;
}
