/* Faults that a verified store reports about its source, queued from the store's threads for the actor.
 *
 * A missing previous record is a fault only if the key existed before and its version was not compacted, so
 * the key is read again at the previous revision, one read at a time. All other faults are violations at
 * once. At most VDI_VERIFY_FAULTS_MAX faults are queued; further ones are counted.
 */
#ifndef VDI_VERIFY_FAULTS_H
#define VDI_VERIFY_FAULTS_H

#include <sys/queue.h>

#include "base.h"
#include "lock.h"
#include "verifier.h"

#define VDI_VERIFY_FAULTS_MAX 64

struct vdi_verify_fault {
	STAILQ_ENTRY(vdi_verify_fault) node;
	const char		*stream; /* name */
	enum vd_watch_fault_kind kind;
	vd_rev			 revision;
	char			 text[160];
	uint32_t		 key_size;
	char			 key[];
};
STAILQ_HEAD(vdi_verify_fault_list, vdi_verify_fault);

struct vdi_verify_faults {
	struct vdi_lock		     lock;
	struct vdi_verify_fault_list waiting; /* under lock, like the next two */
	unsigned		     count;
	uint64_t		     lost;

	struct vdi_verify_fault_list missing; /* owned by the actor: previous records to read */
	unsigned		     missing_count;
	bool			     is_reading;
	/* Under lock: the answer of the read. */
	bool	  has_answer;
	vd_status status;
	bool	  exists;
};

void vdi_verify_faults_init(struct vdi_verify_faults *faults);
/* No read may be outstanding. */
void vdi_verify_faults_fini(struct vdi_verify_faults *faults);
/* Any thread; never blocks. stream: the name, which must stay valid. */
void vdi_verify_faults_put(struct vdi_verify_faults *faults, const char *stream,
			   const struct vd_watch_fault *fault);
/* The actor: reports all queued faults, and the result of an answered read, to the verifier. */
void vdi_verify_faults_decide(struct vdi_verify_faults *faults, struct vdi_verifier *verifier);
/* The actor: returns the next read. false: none, or one is outstanding. The slice is valid until its answer
 * was processed. */
bool vdi_verify_faults_next_read(struct vdi_verify_faults *faults, struct vd_range_request *ret_request);
/* Any thread: takes the answer. result is NULL unless status is VD_OK. */
void vdi_verify_faults_answer(struct vdi_verify_faults *faults, vd_status status,
			      const struct vd_range_result *result);
/* The actor: returns true if no fault is queued and no read is outstanding. */
bool vdi_verify_faults_is_idle(struct vdi_verify_faults *faults);

#endif
