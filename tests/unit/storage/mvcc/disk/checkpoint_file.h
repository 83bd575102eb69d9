/* A checkpoint without a store: commits are applied to it one by one. Real files. */
#ifndef CHECKPOINT_FILE_H
#define CHECKPOINT_FILE_H

#include <unistd.h>

#include "checkpoint.h"
#include "temp_folder.h"
#include "vdtest.h"

struct checkpoint_file {
	char		       path[TEMP_FOLDER_SIZE];
	struct vdi_dir	      *dir;
	struct vdi_checkpoint *checkpoint;
	vd_rev		       revision;
	uint64_t	       index;
	uint8_t		       store_id[VDI_STORE_ID_SIZE];
};

static inline void checkpoint_file_reopen(struct checkpoint_file *f)
{
	struct vdi_checkpoint_content content = { .part_count = 1 };

	f->checkpoint = vdi_checkpoint_close(f->checkpoint);
	assert_status(vdi_checkpoint_open(f->dir, true, &content, &f->checkpoint, NULL), VD_OK);
	vdi_checkpoint_content_fini(&content);
}

static inline void checkpoint_file_init(struct checkpoint_file *f)
{
	memset(f, 0, sizeof *f);
	temp_folder_make(f->path);
	assert_status(vdi_dir_open(vdi_disk_os(), f->path, &f->dir, NULL), VD_OK);
	assert_status(vdi_checkpoint_create(f->dir, true, f->store_id, &f->checkpoint, NULL), VD_OK);
	f->revision = 1;
}

static inline void checkpoint_file_fini(struct checkpoint_file *f)
{
	vdi_checkpoint_close(f->checkpoint);
	assert_status(vdi_dir_unlink(f->dir, VDI_CHECKPOINT_NAME, NULL), VD_OK);
	assert_status(vdi_dir_unlink(f->dir, "LOCK", NULL), VD_OK);
	vdi_dir_close(f->dir);
	assert_int_equal(rmdir(f->path), 0);
}

/* One group of one commit. */
static inline vd_status checkpoint_file_try(struct checkpoint_file *f, const struct vdi_commit *commit,
					    struct vd_error *reterr)
{
	struct vdi_segment_record record = {
		VDI_SEGMENT_COMMIT, f->index + 1, commit->revision, { NULL, vdi_commit_size(commit) }, 0
	};
	void	 *payload = vdi_alloc(record.payload.size);
	vd_status status = vdi_checkpoint_begin(f->checkpoint, (int64_t) record.payload.size, reterr);

	vdi_commit_encode(commit, payload);
	record.payload.data = payload;
	if (status == VD_OK)
		status = vdi_checkpoint_apply(f->checkpoint, &record, reterr);
	if (status == VD_OK)
		status = vdi_checkpoint_commit(f->checkpoint, reterr);
	vdi_free(payload);
	f->index += status == VD_OK;
	return status;
}

static inline vd_status checkpoint_file_commit(struct checkpoint_file *f, const struct vdi_commit *commit)
{
	return checkpoint_file_try(f, commit, NULL);
}

static inline struct vd_kv *checkpoint_file_kv(vd_rev revision, uint32_t sub, size_t size)
{
	static const char value[1 << 16];
	struct vd_kv	 *kv;

	assert_status(vd_kv_new(vd_bytes_of("/k"), (struct vd_bytes) { value, size }, &kv), VD_OK);
	kv->mod_rev = kv->create_rev = revision;
	kv->sub = sub;
	kv->version = 1;
	return kv;
}

/* One commit of the next revision. previous: for each change the revision of the record that it supersedes, 0
 * for none; a change that supersedes one is a delete. */
static inline vd_status checkpoint_file_change(struct checkpoint_file *f, const vd_rev *previous,
					       unsigned count, size_t size)
{
	struct vdi_change *changes = vdi_calloc(count, sizeof *changes);
	vd_status	   status;

	for (unsigned i = 0; i < count; i++) {
		changes[i].kv = checkpoint_file_kv(f->revision + 1, i, previous[i] ? 0 : size);
		changes[i].is_delete = previous[i] != 0;
		changes[i].previous = previous[i] ? checkpoint_file_kv(previous[i], 0, 0) : NULL;
	}
	status = checkpoint_file_commit(f, &(struct vdi_commit) { .revision = f->revision + 1,
								  .changes = changes,
								  .change_count = count });
	f->revision += status == VD_OK;
	for (unsigned i = 0; i < count; i++) {
		vd_kv_unref(changes[i].kv);
		vd_kv_unref((struct vd_kv *) changes[i].previous);
	}
	vdi_free(changes);
	return status;
}

static inline void checkpoint_file_put(struct checkpoint_file *f, size_t size)
{
	assert_status(checkpoint_file_change(f, &(vd_rev) { 0 }, 1, size), VD_OK);
}

static inline void checkpoint_file_compact(struct checkpoint_file *f, vd_rev revision)
{
	assert_status(checkpoint_file_commit(f, &(struct vdi_commit) { .compact = revision }), VD_OK);
}

#endif
