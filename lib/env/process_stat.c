/* Linux: reads /proc/self/stat, the boot time from /proc/stat, /proc/self/fd, and the limits. */
#include "process_stat.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t limit_of(int resource)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t) resource, &limit) != 0)
		return -1;
	return limit.rlim_cur > INT64_MAX ? INT64_MAX : (int64_t) limit.rlim_cur;
}

static int64_t count_files(void)
{
	DIR *files = opendir("/proc/self/fd");
	/* not counted: ".", "..", and the descriptor that reads the directory */
	int64_t count = files ? -3 : -1;

	while (files && readdir(files))
		count++;
	if (files)
		(void) closedir(files);
	return count;
}

static int64_t boot_time(void)
{
	FILE	 *file = fopen("/proc/stat", "re");
	char	  line[256];
	long long seconds = -1;

	while (file && seconds < 0 && fgets(line, sizeof line, file))
		if (strncmp(line, "btime ", 6) == 0)
			seconds = strtoll(line + 6, NULL, 10);
	if (file)
		(void) fclose(file);
	return seconds;
}

/* The fields of /proc/self/stat after the second one. */
#define STAT_FORMAT                                                                                          \
	" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu %llu %lld"

/* Reads fields 14, 15, 22, 23 and 24. The second field is a name in parentheses with arbitrary content. */
static bool read_stat(unsigned long long *ticks, unsigned long long *start, unsigned long long *bytes,
		      long long *pages)
{
	FILE		  *file = fopen("/proc/self/stat", "re");
	char		   line[1024];
	unsigned long long user = 0, system = 0;
	const char	  *at = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
	bool		   fine = at && sscanf(at + 1, STAT_FORMAT, &user, &system, start, bytes, pages) == 5;

	*ticks = user + system;
	if (file)
		(void) fclose(file);
	return fine;
}

void vdi_process_stat_read(struct vdi_process_stat *ret_stat)
{
	int64_t		   hertz = sysconf(_SC_CLK_TCK), boot = boot_time();
	unsigned long long ticks, start, bytes;
	long long	   pages;

	*ret_stat = (struct vdi_process_stat) { .cpu_seconds = -1,
						.resident_bytes = -1,
						.virtual_bytes = -1,
						.start_time_s = -1,
						.virtual_bytes_max = limit_of(RLIMIT_AS),
						.open_files = count_files(),
						.open_files_max = limit_of(RLIMIT_NOFILE) };
	if (hertz <= 0 || !read_stat(&ticks, &start, &bytes, &pages))
		return;
	ret_stat->cpu_seconds = (double) ticks / (double) hertz;
	ret_stat->resident_bytes = pages * sysconf(_SC_PAGESIZE);
	ret_stat->virtual_bytes = (int64_t) bytes;
	if (boot > 0)
		ret_stat->start_time_s = boot + (int64_t) start / hertz;
}
