/* Records the changes of a program to the files of one folder, and lays out disks as a power cut or damage
 * could have left them.
 *
 * disk_trace.c defines the calls by which lib/env/disk.c, LMDB and the writer of event logs change files, so
 * a program that links it is recorded. A write is pending until its file is synced, a name until its folder
 * is synced. A layout chooses a moment, and then, from the pending operations of each file: writes in order,
 * each kept, lost, or kept in part (512-byte sectors); of names: each change kept or lost. Changes of a size
 * count as writes.
 *
 * For one test program at a time; calls may come from any thread.
 */
#ifndef DISK_TRACE_H
#define DISK_TRACE_H

#include <pthread.h>

#include <vedette/store.h>

#include "rand.h"
#include "vdtest.h"

#define FDS_MAX 1024
#define FILES_MAX 512
#define OPS_MAX 400000

enum kind { OP_WRITE, OP_SIZE, OP_SYNC, OP_CREATE, OP_RENAME, OP_UNLINK, OP_DIR_SYNC, OP_ACK };

struct op {
	enum kind kind;
	int	  file;	  /* number of a file, not of a name */
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

extern struct disk_trace {
	pthread_mutex_t lock;
	bool		is_on;
	char		dir[128];
	struct op      *ops;
	size_t		count;
	int		files;
	int		fd_file[FDS_MAX]; /* 0: none; -1: the directory */
	struct named	names[FILES_MAX];
	size_t		name_count;
} trace;

/* Records the changes to the files of dir from now on; drops the previous record. */
void trace_begin(const char *dir);
void trace_end(void);
/* Adds an OP_ACK of the test to the record. */
void trace_ack(struct op op);
/* Frees the record. */
void trace_free(void);

/* Makes dir a possible state after a cut before operation `end`. */
void lay_out(const char *dir, size_t end, struct vdi_rand *rand);
/* Makes dir a copy of the present recorded folder, with one sector or the length of one file changed. */
void lay_out_changed(const char *dir, struct vdi_rand *rand);

/* Begin of a test program's main. Parses [LAYOUTS [FIRST-SEED]], which keep their values if absent; makes
 * top, a template of mkdtemp. Returns false if that failed. */
bool trace_arguments(int argc, char **argv, uint64_t *layouts, uint64_t *first_seed, char *top);
/* End of main: frees the record, removes top, and returns failed. */
int trace_end_tests(int failed, const char *top);

#endif
