/* Each file is an inode with two contents, the visible and the durable one, and a list of changes that lead
 * from the durable to the visible one. A sync applies all of them to the durable content; a crash a random
 * part. The directory works the same way, with name changes. There is one directory, whatever its path.
 * Inodes live as long as the disk, because a crash may restore a removed name.
 */
#include "disk_sim.h"

#include "rand.h"

#define FILES_MAX 256

struct content {
	uint8_t *bytes;
	size_t	 capacity;
	int64_t	 size;
};

/* One write, or (data NULL) a change of the size to offset. */
struct change {
	int64_t	 offset;
	size_t	 size;
	uint8_t *data;
};

#define DIR_MODE 0700
#define FILE_MODE 0600

struct modes {
	unsigned now;
	unsigned durable;
};

struct inode {
	struct inode  *next;
	struct content now;
	struct content durable;
	struct change *changes;
	size_t	       change_count;
	size_t	       change_capacity;
	struct modes   modes;
};

struct name {
	char	      text[VDI_DISK_NAME_MAX];
	struct inode *inode;
};

struct name_table {
	struct name names[FILES_MAX];
	size_t	    count;
};

/* Removes the name `removed` and adds `set` atomically; either may be empty. */
struct name_change {
	char	      removed[VDI_DISK_NAME_MAX];
	char	      set[VDI_DISK_NAME_MAX];
	struct inode *inode;
};

struct disk_sim {
	struct vdi_disk		base;
	struct vdi_rand		rand;
	struct inode	       *inodes;
	struct name_table	now;
	struct name_table	durable;
	struct name_change     *changes;
	size_t			change_count;
	size_t			change_capacity;
	struct modes		modes; /* of the directory */
	bool			is_locked;
	bool			is_off; /* power is off */
	int64_t			capacity_bytes;
	uint64_t		operations;
	uint64_t		fault_at;
	enum vdi_disk_sim_fault fault;
	bool			is_fault_delivered;
	uint64_t		reads_to_fault; /* 0: no read fails */
};

struct dir_sim {
	struct vdi_dir	 base;
	struct disk_sim *disk;
};

struct file_sim {
	struct vdi_file	 base;
	struct disk_sim *disk;
	struct inode	*inode;
};

static struct disk_sim *sim_of(const struct vdi_disk *disk)
{
	return VDI_CONTAINER_OF(disk, struct disk_sim, base);
}

static struct dir_sim *dir_of(struct vdi_dir *dir)
{
	return VDI_CONTAINER_OF(dir, struct dir_sim, base);
}

static struct file_sim *file_of(struct vdi_file *file)
{
	return VDI_CONTAINER_OF(file, struct file_sim, base);
}

/* ---- Contents ---- */

static bool set_size(struct content *content, int64_t size)
{
	if (!vdi_grow((void **) &content->bytes, &content->capacity, (size_t) size + 1, 1))
		return false;
	if (size > content->size)
		memset(content->bytes + content->size, 0, (size_t) (size - content->size));
	content->size = size;
	return true;
}

static bool put(struct content *content, int64_t offset, const uint8_t *data, size_t size)
{
	if (offset + (int64_t) size > content->size && !set_size(content, offset + (int64_t) size))
		return false;
	if (size)
		memcpy(content->bytes + offset, data, size);
	return true;
}

static void drop_changes(struct inode *inode)
{
	for (size_t i = 0; i < inode->change_count; i++)
		vdi_free(inode->changes[i].data);
	inode->change_count = 0;
}

static bool apply(struct content *content, const struct change *change)
{
	return change->data ? put(content, change->offset, change->data, change->size) :
			      set_size(content, change->offset);
}

/* Applies what a crash leaves of one change: all, nothing, or some sectors. */
static void apply_in_part(struct disk_sim *disk, struct content *content, const struct change *change)
{
	uint64_t choice = vdi_rand_below(&disk->rand, 4);
	bool	 is_done = true;

	if (choice == 0)
		return;
	if (choice == 1 || change->data == NULL) {
		is_done = apply(content, change);
	} else {
		for (int64_t at = change->offset, end = at + (int64_t) change->size, next; at < end;
		     at = next) {
			next = VDI_MIN(end, (at / VDI_DISK_SIM_SECTOR_SIZE + 1) * VDI_DISK_SIM_SECTOR_SIZE);
			if (vdi_rand_once_in(&disk->rand, 2))
				is_done &= put(content, at, change->data + (at - change->offset),
					       (size_t) (next - at));
		}
	}
	VDI_CHECK(is_done);
}

static vd_status add_change(struct inode *inode, int64_t offset, const uint8_t *data, size_t size)
{
	uint8_t *copy = NULL;

	if (!vdi_grow((void **) &inode->changes, &inode->change_capacity, inode->change_count + 1,
		      sizeof *inode->changes))
		return VD_NOMEM;
	if (data) {
		copy = vdi_alloc(size);
		if (copy == NULL)
			return VD_NOMEM;
		memcpy(copy, data, size);
	}
	if (!(data ? put(&inode->now, offset, data, size) : set_size(&inode->now, offset))) {
		vdi_free(copy);
		return VD_NOMEM;
	}
	inode->changes[inode->change_count++] = (struct change) { offset, size, copy };
	return VD_OK;
}

/* ---- Names ---- */

static struct name *find_name(struct name_table *table, const char *text)
{
	for (size_t i = 0; i < table->count; i++)
		if (strcmp(table->names[i].text, text) == 0)
			return &table->names[i];
	return NULL;
}

static void change_names(struct name_table *table, const struct name_change *change)
{
	struct name *name = change->removed[0] ? find_name(table, change->removed) : NULL;

	if (name)
		*name = table->names[--table->count];
	if (change->set[0] == 0)
		return;
	name = find_name(table, change->set);
	if (name == NULL) {
		VDI_CHECK(table->count < FILES_MAX);
		name = &table->names[table->count++];
		strcpy(name->text, change->set);
	}
	name->inode = change->inode;
}

static vd_status add_name_change(struct disk_sim *disk, const char *removed, const char *set,
				 struct inode *inode)
{
	struct name_change *change;

	if (!vdi_grow((void **) &disk->changes, &disk->change_capacity, disk->change_count + 1,
		      sizeof *disk->changes))
		return VD_NOMEM;
	change = &disk->changes[disk->change_count++];
	memset(change, 0, sizeof *change);
	strcpy(change->removed, removed);
	strcpy(change->set, set);
	change->inode = inode;
	change_names(&disk->now, change);
	return VD_OK;
}

/* ---- Faults ---- */

/* Counts an operation. VD_OK: do it. VD_AGAIN: do a part of it, power is off. Else: fail with this status. */
static vd_status begin(struct disk_sim *disk, bool *ret_in_part)
{
	*ret_in_part = false;
	if (disk->is_off)
		return VD_IO;
	if (++disk->operations != disk->fault_at)
		return VD_OK;
	disk->is_fault_delivered = true;
	disk->fault_at = 0;
	switch (disk->fault) {
	case VDI_DISK_SIM_CRASH:
		disk->is_off = true;
		*ret_in_part = true;
		return VD_IO;
	case VDI_DISK_SIM_IO: return VD_IO;
	case VDI_DISK_SIM_SHORT_WRITE: *ret_in_part = true; return VD_NO_SPACE;
	case VDI_DISK_SIM_NO_SPACE: return VD_NO_SPACE;
	}
	return VD_OK;
}

static vd_status fail(struct vd_error *reterr, vd_status status, const char *verb, const char *name)
{
	return vd_error_set(reterr, status, "cannot %s %s: %s", verb, name, vd_status_sentence(status));
}

static bool has_room(struct disk_sim *disk, const struct inode *inode, int64_t size)
{
	int64_t used = VDI_MAX(size, inode->now.size) - inode->now.size;

	for (size_t i = 0; i < disk->now.count; i++)
		used += disk->now.names[i].inode->now.size;
	return used <= disk->capacity_bytes;
}

/* ---- The directory ---- */

static vd_status sim_dir_open(struct vdi_disk *base, const char *path, struct vdi_dir **ret_dir,
			      struct vd_error *reterr)
{
	struct disk_sim *disk = sim_of(base);
	struct dir_sim	*dir;

	if (disk->is_off)
		return fail(reterr, VD_IO, "open", path);
	if (disk->is_locked)
		return vd_error_set(reterr, VD_LOCKED, "%s is in use by process 1", path);
	dir = VDI_NEW(struct dir_sim);
	if (dir)
		dir->base.path = vdi_strdup(path);
	if (dir == NULL || dir->base.path == NULL) {
		vdi_free(dir);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	dir->base.ops = base->ops;
	dir->disk = disk;
	dir->base.mode_found = disk->modes.now & 077 ? disk->modes.now : 0;
	disk->modes.now = DIR_MODE;
	disk->is_locked = true;
	*ret_dir = &dir->base;
	return VD_OK;
}

static void sim_dir_close(struct vdi_dir *base)
{
	struct dir_sim *dir = dir_of(base);

	dir->disk->is_locked = false;
	vdi_free(dir->base.path);
	vdi_free(dir);
}

static vd_status sim_dir_list(struct vdi_dir *base, vdi_dir_list_fn each, void *arg, struct vd_error *reterr)
{
	struct disk_sim *disk = dir_of(base)->disk;

	if (disk->is_off)
		return fail(reterr, VD_IO, "list", base->path);
	for (size_t i = 0; i < disk->now.count; i++)
		VDI_TRY(each(arg, disk->now.names[i].text, disk->now.names[i].inode->now.size));
	return VD_OK;
}

static vd_status sim_dir_sync(struct vdi_dir *base, struct vd_error *reterr)
{
	struct disk_sim *disk = dir_of(base)->disk;
	bool		 is_in_part;
	vd_status	 status = begin(disk, &is_in_part);

	if (status != VD_OK)
		return fail(reterr, status, "sync", base->path);
	for (size_t i = 0; i < disk->change_count; i++)
		change_names(&disk->durable, &disk->changes[i]);
	disk->change_count = 0;
	return VD_OK;
}

static vd_status sim_dir_rename(struct vdi_dir *base, const char *from, const char *to,
				struct vd_error *reterr)
{
	struct disk_sim *disk = dir_of(base)->disk;
	struct name	*name;
	bool		 is_in_part;
	vd_status	 status = begin(disk, &is_in_part);

	name = find_name(&disk->now, from);
	if (status == VD_OK && name == NULL)
		status = VD_NOT_FOUND;
	if (status == VD_OK || (is_in_part && name && status == VD_IO)) {
		vd_status added = add_name_change(disk, from, to, name->inode);

		status = status == VD_OK ? added : status;
	}
	return status == VD_OK ? VD_OK : fail(reterr, status, "rename", from);
}

static vd_status sim_dir_unlink(struct vdi_dir *base, const char *name, struct vd_error *reterr)
{
	struct disk_sim *disk = dir_of(base)->disk;
	bool		 is_in_part;
	vd_status	 status = VD_IO;

	if (!disk->is_off && find_name(&disk->now, name) == NULL)
		return fail(reterr, VD_NOT_FOUND, "remove", name);
	status = begin(disk, &is_in_part);
	if (status == VD_OK)
		status = add_name_change(disk, name, "", NULL);
	return status == VD_OK ? VD_OK : fail(reterr, status, "remove", name);
}

static vd_status sim_dir_free_bytes(struct vdi_dir *base, int64_t *ret_bytes, struct vd_error *reterr)
{
	struct disk_sim *disk = dir_of(base)->disk;
	int64_t		 used = 0;

	(void) reterr;
	for (size_t i = 0; i < disk->now.count; i++)
		used += disk->now.names[i].inode->now.size;
	*ret_bytes = VDI_MAX(0, disk->capacity_bytes - used);
	return VD_OK;
}

/* ---- Files ---- */

static vd_status create_file(struct disk_sim *disk, const char *name, struct inode **ret_inode)
{
	struct inode *inode;
	bool	      is_in_part;

	VDI_TRY(begin(disk, &is_in_part));
	inode = VDI_NEW(struct inode);
	if (inode == NULL)
		return VD_NOMEM;
	inode->next = disk->inodes;
	disk->inodes = inode;
	inode->modes = (struct modes) { FILE_MODE, FILE_MODE };
	if (!set_size(&inode->now, 0) || !set_size(&inode->durable, 0))
		return VD_NOMEM;
	*ret_inode = inode;
	return add_name_change(disk, "", name, inode);
}

static vd_status sim_file_open(struct vdi_dir *base, const char *text, enum vdi_file_mode mode,
			       struct vdi_file **ret_file, struct vd_error *reterr)
{
	struct disk_sim *disk = dir_of(base)->disk;
	struct name	*name = find_name(&disk->now, text);
	struct inode	*inode = name ? name->inode : NULL;
	struct file_sim *file;
	vd_status	 status = VD_OK;

	if (disk->is_off)
		return fail(reterr, VD_IO, "open", text);
	if (mode == VDI_FILE_CREATE)
		status = inode ? VD_EXISTS : create_file(disk, text, &inode);
	else if (inode == NULL)
		status = VD_NOT_FOUND;
	if (status != VD_OK)
		return fail(reterr, status, mode == VDI_FILE_CREATE ? "create" : "open", text);
	file = VDI_NEW(struct file_sim);
	if (file == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	file->base.ops = base->ops;
	file->base.dir = base;
	strcpy(file->base.name, text);
	file->disk = disk;
	file->inode = inode;
	inode->modes.now = FILE_MODE;
	*ret_file = &file->base;
	return VD_OK;
}

static void sim_file_close(struct vdi_file *base)
{
	vdi_free(file_of(base));
}

static vd_status sim_file_read(struct vdi_file *base, int64_t offset, void *buffer, size_t size,
			       size_t *ret_size, struct vd_error *reterr)
{
	struct file_sim *file = file_of(base);
	struct content	*now = &file->inode->now;

	if (file->disk->reads_to_fault && --file->disk->reads_to_fault == 0) {
		file->disk->is_fault_delivered = true;
		return fail(reterr, VD_IO, "read", base->name);
	}
	if (file->disk->is_off)
		return fail(reterr, VD_IO, "read", base->name);
	*ret_size = offset >= now->size ? 0 : VDI_MIN(size, (size_t) (now->size - offset));
	if (*ret_size)
		memcpy(buffer, now->bytes + offset, *ret_size);
	return VD_OK;
}

static vd_status sim_file_write(struct vdi_file *base, int64_t offset, const void *data, size_t size,
				struct vd_error *reterr)
{
	struct file_sim *file = file_of(base);
	bool		 is_in_part;
	vd_status	 status = begin(file->disk, &is_in_part);
	vd_status	 added;

	if (status == VD_OK && !has_room(file->disk, file->inode, offset + (int64_t) size))
		status = VD_NO_SPACE;
	if (is_in_part)
		size = (size_t) vdi_rand_below(&file->disk->rand, size + 1);
	if ((status == VD_OK || is_in_part) && size) {
		added = add_change(file->inode, offset, data, size);
		status = status == VD_OK ? added : status;
	}
	return status == VD_OK ? VD_OK : fail(reterr, status, "write", base->name);
}

static vd_status sim_file_sync(struct vdi_file *base, struct vd_error *reterr)
{
	struct file_sim *file = file_of(base);
	struct inode	*inode = file->inode;
	bool		 is_in_part;
	vd_status	 status = begin(file->disk, &is_in_part);

	if (status == VD_IO && !file->disk->is_off) {
		for (size_t i = 0; i < inode->change_count; i++)
			apply_in_part(file->disk, &inode->durable, &inode->changes[i]);
		drop_changes(inode);
	}
	if (status != VD_OK)
		return fail(reterr, status, "sync", base->name);
	for (size_t i = 0; i < inode->change_count; i++)
		if (!apply(&inode->durable, &inode->changes[i]))
			return vd_error_set(reterr, VD_NOMEM, "out of memory");
	drop_changes(inode);
	return VD_OK;
}

static vd_status resize(struct vdi_file *base, int64_t size, const char *verb, struct vd_error *reterr)
{
	struct file_sim *file = file_of(base);
	bool		 is_in_part;
	vd_status	 status = begin(file->disk, &is_in_part);

	if (status == VD_OK && !has_room(file->disk, file->inode, size))
		status = VD_NO_SPACE;
	if (status == VD_OK && size != file->inode->now.size)
		status = add_change(file->inode, size, NULL, 0);
	return status == VD_OK ? VD_OK : fail(reterr, status, verb, base->name);
}

static vd_status sim_file_allocate(struct vdi_file *base, int64_t size, struct vd_error *reterr)
{
	return resize(base, VDI_MAX(size, file_of(base)->inode->now.size), "reserve room for", reterr);
}

static vd_status sim_file_truncate(struct vdi_file *base, int64_t size, struct vd_error *reterr)
{
	return resize(base, size, "truncate", reterr);
}

static vd_status sim_file_size(struct vdi_file *base, int64_t *ret_size, struct vd_error *reterr)
{
	(void) reterr;
	*ret_size = file_of(base)->inode->now.size;
	return VD_OK;
}

static const struct vdi_disk_ops sim_ops = {
	.dir_open = sim_dir_open,
	.dir_close = sim_dir_close,
	.dir_list = sim_dir_list,
	.dir_sync = sim_dir_sync,
	.dir_rename = sim_dir_rename,
	.dir_unlink = sim_dir_unlink,
	.dir_free_bytes = sim_dir_free_bytes,
	.file_open = sim_file_open,
	.file_close = sim_file_close,
	.file_read = sim_file_read,
	.file_write = sim_file_write,
	.file_sync = sim_file_sync,
	.file_allocate = sim_file_allocate,
	.file_truncate = sim_file_truncate,
	.file_size = sim_file_size,
};

/* ---- The disk ---- */

vd_status vdi_disk_sim_new(uint64_t seed, struct vdi_disk **ret_disk)
{
	struct disk_sim *disk = VDI_NEW(struct disk_sim);

	if (disk == NULL)
		return VD_NOMEM;
	disk->base.ops = &sim_ops;
	disk->capacity_bytes = INT64_MAX;
	disk->modes = (struct modes) { DIR_MODE, DIR_MODE };
	vdi_rand_init(&disk->rand, seed);
	*ret_disk = &disk->base;
	return VD_OK;
}

struct vdi_disk *vdi_disk_sim_free(struct vdi_disk *base)
{
	struct disk_sim *disk;

	if (base == NULL)
		return NULL;
	disk = sim_of(base);
	VDI_CHECK(!disk->is_locked);
	while (disk->inodes) {
		struct inode *inode = disk->inodes;

		disk->inodes = inode->next;
		drop_changes(inode);
		vdi_free(inode->changes);
		vdi_free(inode->now.bytes);
		vdi_free(inode->durable.bytes);
		vdi_free(inode);
	}
	vdi_free(disk->changes);
	vdi_free(disk);
	return NULL;
}

void vdi_disk_sim_fail_nth(struct vdi_disk *base, uint64_t nth, enum vdi_disk_sim_fault fault)
{
	struct disk_sim *disk = sim_of(base);

	disk->fault_at = nth ? disk->operations + nth : 0;
	disk->fault = fault;
	disk->is_fault_delivered = false;
}

void vdi_disk_sim_fail_read(struct vdi_disk *base, uint64_t nth)
{
	struct disk_sim *disk = sim_of(base);

	disk->reads_to_fault = nth;
	disk->is_fault_delivered = false;
}

bool vdi_disk_sim_failed(const struct vdi_disk *base)
{
	return sim_of(base)->is_fault_delivered;
}

uint64_t vdi_disk_sim_operations(const struct vdi_disk *base)
{
	return sim_of(base)->operations;
}

void vdi_disk_sim_set_capacity(struct vdi_disk *base, int64_t bytes)
{
	sim_of(base)->capacity_bytes = bytes;
}

/* Mode changes are never synced. */
static void crash_modes(struct disk_sim *disk, struct modes *modes)
{
	if (modes->now != modes->durable && vdi_rand_once_in(&disk->rand, 2))
		modes->durable = modes->now;
	modes->now = modes->durable;
}

void vdi_disk_sim_crash(struct vdi_disk *base)
{
	struct disk_sim *disk = sim_of(base);

	VDI_CHECK(!disk->is_locked);
	for (size_t i = 0; i < disk->change_count; i++)
		if (vdi_rand_once_in(&disk->rand, 2))
			change_names(&disk->durable, &disk->changes[i]);
	disk->change_count = 0;
	disk->now = disk->durable;
	for (struct inode *inode = disk->inodes; inode; inode = inode->next) {
		for (size_t i = 0; i < inode->change_count; i++)
			apply_in_part(disk, &inode->durable, &inode->changes[i]);
		drop_changes(inode);
		VDI_CHECK(set_size(&inode->now, inode->durable.size));
		memcpy(inode->now.bytes, inode->durable.bytes, (size_t) inode->durable.size);
		crash_modes(disk, &inode->modes);
	}
	crash_modes(disk, &disk->modes);
	disk->is_off = false;
	disk->fault_at = 0;
	disk->is_fault_delivered = false;
}

static const uint8_t *content_of(struct name_table *table, bool is_durable, const char *text,
				 int64_t *ret_size)
{
	struct name    *name = find_name(table, text);
	struct content *content;

	if (name == NULL)
		return NULL;
	content = is_durable ? &name->inode->durable : &name->inode->now;
	*ret_size = content->size;
	return content->bytes;
}

const uint8_t *vdi_disk_sim_content(struct vdi_disk *disk, const char *name, int64_t *ret_size)
{
	return content_of(&sim_of(disk)->now, false, name, ret_size);
}

const uint8_t *vdi_disk_sim_durable(struct vdi_disk *disk, const char *name, int64_t *ret_size)
{
	return content_of(&sim_of(disk)->durable, true, name, ret_size);
}

void vdi_disk_sim_flip(struct vdi_disk *disk, const char *text, int64_t offset, uint8_t bits)
{
	struct inode *inode = find_name(&sim_of(disk)->now, text)->inode;

	VDI_CHECK(inode->change_count == 0 && offset < inode->now.size && offset < inode->durable.size);
	inode->now.bytes[offset] ^= bits;
	inode->durable.bytes[offset] = inode->now.bytes[offset];
}

void vdi_disk_sim_cut(struct vdi_disk *disk, const char *text, int64_t size)
{
	struct inode *inode = find_name(&sim_of(disk)->now, text)->inode;

	VDI_CHECK(inode->change_count == 0 && set_size(&inode->now, size) && set_size(&inode->durable, size));
}

static struct modes *modes_of(struct disk_sim *disk, const char *text)
{
	struct name *name = text ? find_name(&disk->now, text) : NULL;

	VDI_CHECK(text == NULL || name);
	return name ? &name->inode->modes : &disk->modes;
}

unsigned vdi_disk_sim_mode(struct vdi_disk *disk, const char *name)
{
	return modes_of(sim_of(disk), name)->now;
}

void vdi_disk_sim_set_mode(struct vdi_disk *disk, const char *name, unsigned mode)
{
	*modes_of(sim_of(disk), name) = (struct modes) { mode, mode };
}
