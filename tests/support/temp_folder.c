#include "temp_folder.h"

#include <ftw.h>

#include "vdtest.h"

void temp_folder_make(char path[TEMP_FOLDER_SIZE])
{
	(void) snprintf(path, TEMP_FOLDER_SIZE, "/tmp/vedette-test-XXXXXX");
	assert_non_null(mkdtemp(path));
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void) status;
	(void) type;
	(void) place;
	return remove(path);
}

void temp_folder_remove(const char *path)
{
	assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}
