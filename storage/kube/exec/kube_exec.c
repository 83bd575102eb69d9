/* The client's actor asks, the plugin's actor runs the program, and the result is handed back under a lock.
 * Failures, rejected credentials and those that expired before they arrived are retried with a growing
 * delay. */
#include "kube_exec.h"

#include "env.h"
#include "lock.h"

#define DELAY_MIN_NS ((int64_t) 1000000000)
#define DELAY_DOUBLED_MAX 6
#define LIFE_MIN_NS DELAY_MIN_NS
#define AT_ONCE_INTERVAL VD_SECONDS(10)
/* A credential is replaced when this part of its life is left, at most EARLY_MAX. */
#define EARLY_PART 10
#define EARLY_MAX VD_SECONDS(60)

struct credential {
	char	       *token;
	struct vd_bytes certificate, key;
	vd_wall		expires; /* 0: never */
};

struct vdi_kube_exec {
	/* Fixed at creation. */
	const struct vd_env *env;
	struct vd_actor	    *actor;
	void (*changed)(void *arg);
	void *arg;

	struct vdi_exec_credential *program; /* the plugin's actor */

	/* Under lock. */
	struct vdi_lock	  lock;
	bool		  is_wanted, is_running, has_result;
	vd_status	  result;
	struct vd_error	  result_error;
	struct credential fetched;

	/* The client's actor. */
	struct credential current;
	bool		  is_there;
	unsigned	  number, failures;
	unsigned	  short_lives; /* credentials in a row that lived less than LIFE_MIN */
	vd_mono		  retry_at;    /* the program is not run before */
	vd_mono		  at_once_at;  /* a rejection does not run the program at once before */
	vd_mono		  renew_at;    /* VD_NEVER: the credential does not expire */
	struct vd_error	  error;       /* of the last run, or the rejection */

	/* vdi_kube_exec_close. */
	void (*done)(void *arg);
	void *done_arg;
};

static void credential_fini(struct credential *credential)
{
	vdi_free(credential->token);
	vdi_free((char *) (uintptr_t) credential->certificate.data);
	vdi_free((char *) (uintptr_t) credential->key.data);
	memset(credential, 0, sizeof *credential);
}

/* ---- The plugin's actor ---- */

static bool copy_data(struct vd_bytes data, struct vd_bytes *place)
{
	if (data.size == 0)
		return true;
	*place = (struct vd_bytes) { vdi_strndup(data.data, data.size), data.size };
	return place->data != NULL;
}

static vd_status fetch(struct vdi_kube_exec *exec, struct credential *fetched, struct vd_error *reterr)
{
	struct vdi_exec_answer answer;

	VDI_TRY(vdi_exec_credential_fetch(exec->program, &answer, reterr));
	if (answer.printed[0])
		vdi_log(exec->env, VD_LOG_INFO, "kube", "the credential program printed: %s", answer.printed);
	fetched->expires = answer.expires;
	if ((answer.token == NULL || (fetched->token = vdi_strdup(answer.token)) != NULL) &&
	    copy_data(answer.certificate, &fetched->certificate) && copy_data(answer.key, &fetched->key))
		return VD_OK;
	credential_fini(fetched);
	return vd_error_set(reterr, VD_NOMEM, "out of memory");
}

static void exec_run(void *arg)
{
	struct vdi_kube_exec *exec = arg;
	struct credential     fetched = { 0 };
	struct vd_error	      error = { 0 };
	vd_status	      status;
	bool		      is_wanted;

	vdi_lock_acquire(&exec->lock);
	is_wanted = exec->is_wanted;
	exec->is_wanted = false;
	vdi_lock_release(&exec->lock);
	if (!is_wanted)
		return;
	status = fetch(exec, &fetched, &error);
	vdi_lock_acquire(&exec->lock);
	exec->is_running = false;
	exec->has_result = true;
	exec->result = status;
	exec->result_error = error;
	credential_fini(&exec->fetched);
	exec->fetched = fetched;
	vdi_lock_release(&exec->lock);
	exec->changed(exec->arg);
}

/* ---- The client's actor ---- */

static void delay(struct vdi_kube_exec *exec, unsigned count)
{
	vd_dur wait = { DELAY_MIN_NS << VDI_MIN(count, DELAY_DOUBLED_MAX) };

	exec->retry_at = vd_mono_add(vd_env_now(exec->env), wait);
}

/* The server decides about a credential that has expired already, but the program is not run without a
 * pause. */
static void set_renewal(struct vdi_kube_exec *exec)
{
	int64_t left = exec->current.expires.ns - vd_env_wall(exec->env).ns;
	int64_t early = VDI_MIN(left / EARLY_PART, EARLY_MAX.ns);
	bool	is_short = exec->current.expires.ns != 0 && left < LIFE_MIN_NS;

	delay(exec, is_short ? exec->short_lives : 0);
	exec->short_lives = is_short ? exec->short_lives + 1 : 0;
	exec->renew_at = exec->current.expires.ns == 0 ?
				 VD_NEVER :
				 vd_mono_add(vd_env_now(exec->env), (vd_dur) { left - early });
}

static bool is_expired(const struct vdi_kube_exec *exec)
{
	return exec->current.expires.ns && vd_env_wall(exec->env).ns >= exec->current.expires.ns;
}

static void take_result(struct vdi_kube_exec *exec)
{
	struct credential fetched = { 0 };
	struct vd_error	  error = { 0 };
	vd_status	  status = VD_OK;
	bool		  has_result;

	vdi_lock_acquire(&exec->lock);
	has_result = exec->has_result;
	exec->has_result = false;
	if (has_result) {
		status = exec->result;
		error = exec->result_error;
		fetched = exec->fetched;
		memset(&exec->fetched, 0, sizeof exec->fetched);
	}
	vdi_lock_release(&exec->lock);
	if (!has_result)
		return;
	if (status != VD_OK) {
		exec->error = error;
		delay(exec, exec->failures++);
		vdi_log(exec->env, VD_LOG_WARNING, "kube", "%s", error.message);
		return;
	}
	credential_fini(&exec->current);
	exec->current = fetched;
	exec->is_there = true;
	exec->number++;
	set_renewal(exec);
}

/* Returns true if the program runs. */
static bool want(struct vdi_kube_exec *exec)
{
	bool is_running;

	vdi_lock_acquire(&exec->lock);
	is_running = exec->is_running || exec->has_result;
	if (!is_running && vd_env_now(exec->env).ns >= exec->retry_at.ns) {
		exec->is_wanted = exec->is_running = is_running = true;
		vd_actor_wake(exec->actor);
	}
	vdi_lock_release(&exec->lock);
	return is_running;
}

vd_status vdi_kube_exec_get(struct vdi_kube_exec *exec, struct vdi_exec_answer *ret_answer,
			    struct vd_error *reterr)
{
	vd_mono now = vd_env_now(exec->env);
	bool	is_running = false;

	take_result(exec);
	if (!exec->is_there || now.ns >= exec->renew_at.ns)
		is_running = want(exec);
	if (exec->is_there && (!is_expired(exec) || !is_running)) {
		*ret_answer =
			(struct vdi_exec_answer) { exec->current.token, exec->current.certificate,
						   exec->current.key, exec->number, exec->current.expires };
		return VD_OK;
	}
	if (is_running)
		return VD_AGAIN;
	(void) vd_error_set(reterr, VD_FORBIDDEN, "%s", exec->error.message);
	if (reterr)
		reterr->retry_after_s = (uint32_t) ((exec->retry_at.ns - now.ns) / 1000000000 + 1);
	return VD_FORBIDDEN;
}

vd_mono vdi_kube_exec_due(const struct vdi_kube_exec *exec)
{
	vd_mono due = exec->is_there ? exec->renew_at : VD_NEVER;

	return due.ns < exec->retry_at.ns ? exec->retry_at : due;
}

void vdi_kube_exec_refused(struct vdi_kube_exec *exec, unsigned number)
{
	vd_mono now = vd_env_now(exec->env);

	if (!exec->is_there || number != exec->number)
		return; /* another one is used already */
	exec->is_there = false;
	(void) vd_error_set(&exec->error, VD_FORBIDDEN,
			    "the server rejected the credential of the kubeconfig's program (401)");
	if (exec->failures)
		delay(exec, exec->failures);
	else if (exec->short_lives == 0 && now.ns >= exec->at_once_at.ns) {
		exec->retry_at = now; /* it may have been revoked: run the program at once */
		exec->at_once_at = vd_mono_add(now, AT_ONCE_INTERVAL);
	}
	exec->failures++;
}

void vdi_kube_exec_accepted(struct vdi_kube_exec *exec)
{
	exec->failures = 0;
}

/* ---- Lifetime ---- */

static void exec_free(struct vdi_kube_exec *exec)
{
	vdi_exec_credential_free(exec->program);
	credential_fini(&exec->fetched);
	credential_fini(&exec->current);
	vdi_lock_fini(&exec->lock);
	vdi_free(exec);
}

vd_status vdi_kube_exec_new(const struct vd_env *env, const struct vdi_exec_plan *plan,
			    const struct vdi_exec_cluster *cluster, void (*changed)(void *arg), void *arg,
			    struct vdi_kube_exec **ret_exec)
{
	struct vdi_kube_exec   *exec = VDI_NEW(struct vdi_kube_exec);
	struct vd_actor_options actor = {
		.name = "kube_exec", .run = exec_run, .arg = exec, .blocking = true
	};
	vd_status status;

	if (exec == NULL)
		return VD_NOMEM;
	exec->env = env;
	exec->changed = changed;
	exec->arg = arg;
	exec->renew_at = VD_NEVER;
	vdi_lock_init(&exec->lock, VDI_LOCK_WAIT);
	status = vdi_exec_credential_new(plan, cluster, &exec->program);
	if (status == VD_OK)
		status = vd_actor_new(env, &actor, &exec->actor);
	if (status != VD_OK) {
		exec_free(exec);
		return status;
	}
	*ret_exec = exec;
	return VD_OK;
}

static void on_closed(void *arg)
{
	struct vdi_kube_exec *exec = arg;
	void (*done)(void *done_arg) = exec->done;
	void *done_arg = exec->done_arg;

	exec_free(exec);
	done(done_arg);
}

void vdi_kube_exec_close(struct vdi_kube_exec *exec, void (*done)(void *arg), void *arg)
{
	exec->done = done;
	exec->done_arg = arg;
	vdi_exec_credential_stop(exec->program);
	vd_actor_close(exec->actor, on_closed, exec);
}
