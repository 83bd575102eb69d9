/* Cost of unavoidable steps on this machine: the limits with which other figures are compared.
 *
 *   - limit-write: one write of 1 or 8 KB to each of 1,000 loopback sockets in turn; CPU of the writing
 *     thread, while another process reads
 *   - limit-sync: append 4 KB to a preallocated file and fdatasync: the median
 *   - limit-copy: 1 KB of cold memory copied
 *   - limit-push: a pointer into each of 10,000 rings and out again, on one thread
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "measure.h"

#define SOCKETS 1000
#define RINGS 10000
#define RING 16
#define COLD (256u << 20)

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- Sockets ---- */

static void read_all(int *sockets)
{
	static char text[1 << 18];
	int	    epoll = epoll_create1(0);

	for (int i = 0; i < SOCKETS; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.fd = sockets[i] };

		epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[i], &event);
	}
	for (;;) {
		struct epoll_event events[256];
		int		   count = epoll_wait(epoll, events, 256, -1);

		for (int i = 0; i < count; i++)
			if (read(events[i].data.fd, text, sizeof text) <= 0)
				_exit(0);
	}
}

static void connect_pairs(int *near, int *far)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t	   length = sizeof address;
	int		   listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (bind(listener, (struct sockaddr *) &address, length) != 0 || listen(listener, SOCKETS) != 0 ||
	    getsockname(listener, (struct sockaddr *) &address, &length) != 0)
		die("listen");
	for (int i = 0; i < SOCKETS; i++) {
		far[i] = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(far[i], (struct sockaddr *) &address, sizeof address) != 0 ||
		    (near[i] = accept(listener, NULL, NULL)) < 0)
			die("connect");
		setsockopt(near[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	}
	close(listener);
}

static void bench_write(size_t size)
{
	struct measure_rounds rounds = { .count = 0 };
	static int	      near[SOCKETS], far[SOCKETS];
	static char	      text[8192];
	size_t		      turns = measure_scaled(40);
	char		      parameters[64];
	pid_t		      reader;

	connect_pairs(near, far);
	fflush(stdout);
	reader = fork();
	if (reader == 0)
		read_all(far);
	for (int i = 0; i < SOCKETS; i++)
		close(far[i]);
	for (unsigned round = 0; round < measure_options.rounds; round++) {
		int64_t cpu = 0, wall = measure_wall_ns();

		for (size_t turn = 0; turn < turns; turn++) {
			int64_t begin = measure_cpu_ns();

			for (int i = 0; i < SOCKETS; i++)
				if (write(near[i], text, size) != (ssize_t) size)
					die("write");
			cpu += measure_cpu_ns() - begin;
			measure_nap_ns(10000000); /* the reader keeps up */
		}
		measure_add(&rounds, (double) cpu / 1e3 / (double) turns / SOCKETS, (double) cpu / 1e9,
			    (double) (measure_wall_ns() - wall) / 1e9);
	}
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	for (int i = 0; i < SOCKETS; i++)
		close(near[i]);
	snprintf(parameters, sizeof parameters, "\"what\":\"%zu\"", size);
	measure_report("limit-write", parameters, &rounds, "us");
}

/* ---- Disk and memory ---- */

static void bench_sync(void)
{
	static char text[4096];
	const char *temporary = getenv("TMPDIR");
	size_t	    count = measure_scaled(1000);
	int64_t	   *times = calloc(count, sizeof *times);
	char	    path[300], parameters[64];
	int	    file;

	snprintf(path, sizeof path, "%s/vedette-bench-limits-XXXXXX", temporary ? temporary : "/tmp");
	file = mkstemp(path);
	(void) unlink(path);
	if (file < 0 || posix_fallocate(file, 0, (off_t) (count * sizeof text)) != 0)
		die(path);
	for (size_t i = 0; i < count; i++) {
		int64_t begin = measure_wall_ns();

		if (write(file, text, sizeof text) != (ssize_t) sizeof text || fdatasync(file) != 0)
			die("fdatasync");
		times[i] = measure_wall_ns() - begin;
	}
	qsort(times, count, sizeof *times, measure_compare);
	snprintf(parameters, sizeof parameters, "\"p99_us\":%.0f", (double) times[count * 99 / 100] / 1e3);
	measure_report_value("limit-sync", parameters, (double) times[count / 2] / 1e3, "us", 0, 0);
	close(file);
	free(times);
}

static void bench_copy(void)
{
	struct measure_rounds rounds = { .count = 0 };
	char		     *cold = malloc(COLD), copy[1024];
	uint64_t	      seed = 1, sum = 0;
	size_t		      count = measure_scaled(200000);

	memset(cold, 1, COLD);
	for (unsigned round = 0; round < measure_options.rounds; round++) {
		int64_t cpu = measure_cpu_ns();

		for (size_t i = 0; i < count; i++) {
			memcpy(copy, cold + measure_random(&seed) % (COLD / 1024) * 1024, sizeof copy);
			sum += (unsigned char) copy[measure_random(&seed) % sizeof copy];
		}
		cpu = measure_cpu_ns() - cpu;
		measure_add(&rounds, (double) cpu / (double) count, (double) cpu / 1e9, (double) cpu / 1e9);
	}
	measure_report("limit-copy", sum ? "\"bytes\":1024" : "", &rounds, "ns");
	free(cold);
}

static void bench_push(void)
{
	struct measure_rounds rounds = { .count = 0 };
	struct ring {
		void	*slots[RING];
		unsigned head, tail;
	} *rings = calloc(RINGS, sizeof *rings);
	size_t events = measure_scaled(200);
	size_t seen = 0;

	for (unsigned round = 0; round < measure_options.rounds; round++) {
		int64_t cpu = measure_cpu_ns();

		for (size_t i = 0; i < events; i++) {
			for (size_t j = 0; j < RINGS; j++)
				rings[j].slots[rings[j].head++ % RING] = &rings[j];
			for (size_t j = 0; j < RINGS; j++)
				seen += rings[j].slots[rings[j].tail++ % RING] == &rings[j];
		}
		cpu = measure_cpu_ns() - cpu;
		measure_add(&rounds, (double) cpu / (double) events / RINGS, (double) cpu / 1e9,
			    (double) cpu / 1e9);
	}
	measure_report("limit-push", seen ? "\"rings\":10000" : "", &rounds, "ns");
	free(rings);
}

int main(int argc, char **argv)
{
	struct rlimit limit;

	measure_begin("limits", argc, argv);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void) setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (measure_wanted("limit-write")) {
		bench_write(1024);
		bench_write(8192);
	}
	if (measure_wanted("limit-sync"))
		bench_sync();
	if (measure_wanted("limit-copy"))
		bench_copy();
	if (measure_wanted("limit-push"))
		bench_push();
	return 0;
}
