#undef _FILE_OFFSET_BITS /* the calls are defined here under their plain names */
#include "disk_trace.h"
#include "temp_folder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SECTOR 512

struct disk_trace trace = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- The record ---- */

static void note(struct op op)
{
	assert_true(trace.count < OPS_MAX);
	trace.ops[trace.count++] = op;
}

/* LMDB writes its meta pages through a descriptor that syncs each write. */
static void note_data(int fd, int file, int64_t offset, const void *data, size_t size)
{
	struct op op = {
		.kind = OP_WRITE, .file = file, .offset = offset, .size = size, .data = malloc(size)
	};

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
			return; /* the parent directory */
		assert_true(trace.name_count < FILES_MAX);
		named = &trace.names[trace.name_count++];
		snprintf(named->name, sizeof named->name, "%s", base);
		named->file = ++trace.files;
		note((struct op) { .kind = OP_CREATE, .file = named->file });
		snprintf(trace.ops[trace.count - 1].name, 64, "%s", base);
	}
	trace.fd_file[fd] = named->file;
}

/* A change and its record are made under one lock, so the order of the record is the order on the disk. */
#define RECORDED(call, record)                                                                               \
	do {                                                                                                 \
		pthread_mutex_lock(&trace.lock);                                                             \
		result = call;                                                                               \
		if (result >= 0) {                                                                           \
			record;                                                                              \
		}                                                                                            \
		pthread_mutex_unlock(&trace.lock);                                                           \
	} while (false)

#pragma GCC visibility push(default) /* LMDB's calls use these definitions, too */

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
	RECORDED(REAL(openat)(dir, path, flags, mode),
		 if (file_of(dir) == -1 || path[0] == '/') opened(result, path, flags));
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

	RECORDED(REAL(pwrite)(fd, data, size, offset),
		 if (file_of(fd) > 0) note_data(fd, file_of(fd), offset, data, (size_t) result));
	return result;
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset) __attribute__((alias("pwrite")));
ssize_t pwritev(int fd, const struct iovec *vectors, int count, off_t offset)
{
	ssize_t result = 0;

	for (int i = 0; i < count; i++) {
		if (pwrite(fd, vectors[i].iov_base, vectors[i].iov_len, offset + result) !=
		    (ssize_t) vectors[i].iov_len)
			return -1;
		result += (ssize_t) vectors[i].iov_len;
	}
	return result;
}
ssize_t pwritev64(int fd, const struct iovec *vectors, int count, off_t offset)
	__attribute__((alias("pwritev")));
ssize_t write(int fd, const void *data, size_t size)
{
	ssize_t result;

	RECORDED(REAL(write)(fd, data, size),
		 if (file_of(fd) > 0)
			 note_data(fd, file_of(fd), lseek(fd, 0, SEEK_CUR) - result, data, (size_t) result));
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

	RECORDED(REAL(ftruncate)(fd, size),
		 if (file_of(fd) > 0)
			 note((struct op) { .kind = OP_SIZE, .file = file_of(fd), .offset = size }));
	return result;
}
int ftruncate64(int fd, off_t size) __attribute__((alias("ftruncate")));
int fallocate(int fd, int mode, off_t offset, off_t size)
{
	struct stat info;
	int	    result;

	RECORDED(REAL(fallocate)(fd, mode, offset, size),
		 if (file_of(fd) > 0 && fstat(fd, &info) == 0)
			 note((struct op) { .kind = OP_SIZE, .file = file_of(fd), .offset = info.st_size }));
	return result;
}
int fallocate64(int fd, int mode, off_t offset, off_t size) __attribute__((alias("fallocate")));

static int sync_with(int (*real)(int), int fd)
{
	int result;

	RECORDED(real(fd), if (file_of(fd)) note((struct op) {
				   .kind = file_of(fd) < 0 ? OP_DIR_SYNC : OP_SYNC, .file = file_of(fd) }));
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
	VDI_CHECK(named);
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

void trace_begin(const char *dir)
{
	trace_free();
	trace.ops = calloc(OPS_MAX, sizeof *trace.ops);
	snprintf(trace.dir, sizeof trace.dir, "%s", dir);
	trace.is_on = true;
}

void trace_end(void)
{
	trace.is_on = false;
}

void trace_ack(struct op op)
{
	pthread_mutex_lock(&trace.lock);
	if (trace.is_on)
		note(op);
	pthread_mutex_unlock(&trace.lock);
}

void trace_free(void)
{
	for (size_t i = 0; i < trace.count; i++)
		free(trace.ops[i].data);
	free(trace.ops);
	trace.ops = NULL;
	trace.count = trace.name_count = 0;
	trace.files = 0;
	memset(trace.fd_file, 0, sizeof trace.fd_file);
}

/* ---- Layouts ---- */

/* A possible state of a file on the disk, and its unsynced operations. */
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

/* mode 0: all unsynced data is lost; 1: all is kept; otherwise random. */
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

void lay_out(const char *dir, size_t end, struct vdi_rand *rand)
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
			assert_true(vdi_grow((void **) &image->pending, &image->pending_capacity,
					     image->pending_count + 1, sizeof *image->pending));
			image->pending[image->pending_count++] = i;
		} else if (op->kind == OP_SYNC) {
			for (size_t j = 0; j < image->pending_count; j++)
				apply(image, &trace.ops[image->pending[j]]);
			image->pending_count = 0;
		} else if (op->kind == OP_DIR_SYNC) {
			for (; unsynced_from < i; unsynced_from++)
				if (trace.ops[unsynced_from].kind >= OP_CREATE &&
				    trace.ops[unsynced_from].kind <= OP_UNLINK)
					change_names(names, &name_count, &trace.ops[unsynced_from]);
		}
	}
	for (; unsynced_from < end; unsynced_from++)
		if (trace.ops[unsynced_from].kind >= OP_CREATE &&
		    trace.ops[unsynced_from].kind <= OP_UNLINK && is_kept(rand, mode))
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

/* ---- Damage ---- */

/* Changes one sector, or the length, of the present file. */
static void damage(struct image *image, struct vdi_rand *rand)
{
	int64_t at = (int64_t) vdi_rand_below(rand, (uint64_t) image->size / SECTOR) * SECTOR;
	int64_t from = (int64_t) vdi_rand_below(rand, (uint64_t) image->size / SECTOR) * SECTOR;

	switch (vdi_rand_below(rand, 4)) {
	case 0:
		image->bytes[at + (int64_t) vdi_rand_below(rand, SECTOR)] ^=
			(char) (1 << vdi_rand_below(rand, 8));
		break;
	case 1: memset(image->bytes + at, 0, SECTOR); break;
	case 2: memmove(image->bytes + at, image->bytes + from, SECTOR); break;
	default: image->size = at; break;
	}
}

void lay_out_changed(const char *dir, struct vdi_rand *rand)
{
	size_t victim = vdi_rand_below(rand, trace.name_count);
	char   path[256];

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
			damage(&image, rand);
		write_out(dir, &trace.names[j], &image);
		free(image.bytes);
	}
}

bool trace_arguments(int argc, char **argv, uint64_t *layouts, uint64_t *first_seed, char *top)
{
	if (argc > 1)
		*layouts = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		*first_seed = strtoull(argv[2], NULL, 10);
	return mkdtemp(top) != NULL;
}

int trace_end_tests(int failed, const char *top)
{
	trace_free();
	temp_folder_remove(top);
	return failed;
}
