#include "vdtest.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#include "alloc.h"

/* Counts files, sockets and pipes; libraries keep descriptors for event notification. */
static size_t descriptors(void)
{
	DIR	      *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	size_t	       count = 0;
	char	       path[64];

	while (folder && (entry = readdir(folder)) != NULL)
		count += readlinkat(dirfd(folder), entry->d_name, path, sizeof path) > 0 &&
			 strncmp(path, "anon_inode:", 11) != 0;
	if (folder)
		closedir(folder);
	return count;
}

int vdtest_run_group(const char *name, const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
		     CMFixtureFunction teardown)
{
	int64_t blocks = vdi_alloc_live();
	size_t	open = descriptors();
	int	failed = _cmocka_run_group_tests(name, tests, count, setup, teardown);

	if (failed)
		return failed;
	if (vdi_alloc_live() != blocks)
		print_error("%s: %lld blocks of memory are left\n", name,
			    (long long) (vdi_alloc_live() - blocks));
	if (strstr(program_invocation_short_name,
		   "grpc")) /* gRPC C core closes its sockets when it likes, also after its end */
		return vdi_alloc_live() != blocks;
	if (descriptors() != open)
		print_error("%s: %lld descriptors are left\n", name,
			    (long long) descriptors() - (long long) open);
	return vdi_alloc_live() != blocks || descriptors() != open;
}
