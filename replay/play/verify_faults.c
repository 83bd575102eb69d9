#include "verify_faults.h"

#include <inttypes.h>
#include <stdio.h>

#include "store_read.h"

void vdi_verify_faults_init(struct vdi_verify_faults *faults)
{
	memset(faults, 0, sizeof *faults);
	vdi_lock_init(&faults->lock, VDI_LOCK_WAIT);
	STAILQ_INIT(&faults->waiting);
	STAILQ_INIT(&faults->missing);
}

static void free_all(struct vdi_verify_fault_list *list)
{
	struct vdi_verify_fault *fault;

	while ((fault = STAILQ_FIRST(list)) != NULL) {
		STAILQ_REMOVE_HEAD(list, node);
		vdi_free(fault);
	}
}

void vdi_verify_faults_fini(struct vdi_verify_faults *faults)
{
	free_all(&faults->waiting);
	free_all(&faults->missing);
	vdi_lock_fini(&faults->lock);
}

void vdi_verify_faults_put(struct vdi_verify_faults *faults, const char *stream,
			   const struct vd_watch_fault *fault)
{
	struct vdi_verify_fault *copy = vdi_alloc(sizeof *copy + fault->key.size);

	if (copy) {
		*copy = (struct vdi_verify_fault) { .stream = stream,
						    .kind = fault->kind,
						    .revision = fault->revision,
						    .key_size = (uint32_t) fault->key.size };
		snprintf(copy->text, sizeof copy->text, "%s", fault->text);
		if (fault->key.size)
			memcpy(copy->key, fault->key.data, fault->key.size);
	}
	vdi_lock_acquire(&faults->lock);
	if (copy && faults->count < VDI_VERIFY_FAULTS_MAX) {
		faults->count++;
		STAILQ_INSERT_TAIL(&faults->waiting, copy, node);
		copy = NULL;
	} else {
		faults->lost++;
	}
	vdi_lock_release(&faults->lock);
	vdi_free(copy);
}

static void report_fault(struct vdi_verifier *verifier, const struct vdi_verify_fault *fault)
{
	vdi_verifier_fault(
		verifier, fault->stream,
		&(struct vd_watch_fault) {
			fault->kind, fault->revision, { fault->key, fault->key_size }, fault->text });
}

/* Processes a read's answer. A read that failed with a transient error is repeated. */
static void decide_read(struct vdi_verify_faults *faults, struct vdi_verifier *verifier, vd_status status,
			bool exists)
{
	struct vdi_verify_fault *fault = STAILQ_FIRST(&faults->missing);

	faults->is_reading = false;
	if (status != VD_OK && status != VD_EXPIRED && vdi_store_failure_passes(status))
		return;
	if (status == VD_OK && exists)
		report_fault(verifier, fault);
	STAILQ_REMOVE_HEAD(&faults->missing, node);
	faults->missing_count--;
	vdi_free(fault);
}

void vdi_verify_faults_decide(struct vdi_verify_faults *faults, struct vdi_verifier *verifier)
{
	struct vdi_verify_fault_list waiting = STAILQ_HEAD_INITIALIZER(waiting);
	struct vdi_verify_fault	    *fault;
	bool			     has_answer, exists;
	vd_status		     status;
	uint64_t		     lost;
	char			     text[96];

	vdi_lock_acquire(&faults->lock);
	STAILQ_CONCAT(&waiting, &faults->waiting);
	faults->count = 0;
	lost = faults->lost;
	faults->lost = 0;
	has_answer = faults->has_answer;
	faults->has_answer = false;
	status = faults->status;
	exists = faults->exists;
	vdi_lock_release(&faults->lock);
	if (has_answer)
		decide_read(faults, verifier, status, exists);
	while ((fault = STAILQ_FIRST(&waiting)) != NULL) {
		STAILQ_REMOVE_HEAD(&waiting, node);
		if (fault->kind == VD_FAULT_PREVIOUS && faults->missing_count < VDI_VERIFY_FAULTS_MAX) {
			faults->missing_count++;
			STAILQ_INSERT_TAIL(&faults->missing, fault, node);
			continue;
		}
		if (fault->kind != VD_FAULT_PREVIOUS) /* the earlier faults decide */
			report_fault(verifier, fault);
		vdi_free(fault);
	}
	if (lost) {
		snprintf(text, sizeof text, "%" PRIu64 " more faults of the source were not kept", lost);
		vdi_verifier_fault(verifier, "",
				   &(struct vd_watch_fault) { .kind = VD_FAULT_PROTOCOL, .text = text });
	}
}

bool vdi_verify_faults_next_read(struct vdi_verify_faults *faults, struct vd_range_request *ret_request)
{
	const struct vdi_verify_fault *fault = STAILQ_FIRST(&faults->missing);

	if (fault == NULL || faults->is_reading)
		return false;
	faults->is_reading = true;
	*ret_request = (struct vd_range_request) { .key = { fault->key, fault->key_size },
						   .revision = fault->revision - 1,
						   .limit = 1 };
	return true;
}

void vdi_verify_faults_answer(struct vdi_verify_faults *faults, vd_status status,
			      const struct vd_range_result *result)
{
	vdi_lock_acquire(&faults->lock);
	faults->has_answer = true;
	faults->status = status;
	faults->exists = status == VD_OK && result->kv_count > 0;
	vdi_lock_release(&faults->lock);
}

bool vdi_verify_faults_is_idle(struct vdi_verify_faults *faults)
{
	bool is_idle;

	vdi_lock_acquire(&faults->lock);
	is_idle = STAILQ_EMPTY(&faults->waiting) && faults->lost == 0 && !faults->has_answer;
	vdi_lock_release(&faults->lock);
	return is_idle && STAILQ_EMPTY(&faults->missing);
}
