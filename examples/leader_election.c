/* Elects a leader among the processes that run this program with the same Lease:
 *
 *   example-leader-election NAMESPACE LEASE IDENTITY
 *
 * Interrupt it to hand over to another process at once; kill it, and the others wait for 15 s. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <vedette/kube_helpers.h>

static void started_leading(void *arg)
{
	printf("%s leads\n", (const char *) arg);
	fflush(stdout);
}

/* Also called if this process never led. What the lease protects must have ended when this returns. */
static void stopped_leading(void *arg)
{
	printf("%s stops\n", (const char *) arg);
	fflush(stdout);
	kill(getpid(), SIGTERM);
}

static void new_leader(void *arg, const char *identity)
{
	printf("the leader is %s\n", identity[0] ? identity : "nobody");
	fflush(stdout);
}

static vd_status run(struct vd_env *env, struct vd_kube *kube, char **words, const sigset_t *signals,
		     struct vd_error *error)
{
	struct vd_leader_election_options options = VD_LEADER_ELECTION_OPTIONS_INIT;
	struct vd_leader_election	 *election;
	struct vd_leader_lock		 *lock;
	vd_status			  status = vd_lease_lock_new(kube, words[1], words[2], &lock, error);
	int				  number;

	if (status != VD_OK)
		return status;
	options.identity = words[3];
	options.release_on_stop = true;
	options.started_leading = started_leading;
	options.stopped_leading = stopped_leading;
	options.new_leader = new_leader;
	options.arg = words[3];
	status = vd_leader_election_start(env, lock, &options, &election, error);
	if (status != VD_OK) {
		vd_leader_lock_free(lock);
		return status;
	}
	sigwait(signals, &number);
	vd_leader_election_close_wait(election);
	return VD_OK;
}

int main(int argc, char **argv)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_env	      *env;
	struct vd_kube	      *kube;
	struct vd_error	       error;
	sigset_t	       signals;
	vd_status	       status;

	if (argc != 4) {
		fprintf(stderr, "usage: %s NAMESPACE LEASE IDENTITY\n", argv[0]);
		return 2;
	}
	/* Before any thread exists, so that all threads inherit it. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (vd_env_new_threads(NULL, &env) != VD_OK)
		return 1;
	status = vd_kube_open(env, &options, &kube, &error);
	if (status == VD_OK) {
		status = run(env, kube, argv, &signals, &error);
		vd_kube_close_wait(kube);
	}
	if (status != VD_OK)
		fprintf(stderr, "%s: %s\n", argv[0], error.message);
	vd_env_free(env);
	return status == VD_OK ? 0 : 1;
}
