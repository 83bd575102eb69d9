/* One change of a recorded transaction (mvcc_replay.h). */
#ifndef VDI_REPLAY_CHANGE_H
#define VDI_REPLAY_CHANGE_H

#include <vedette/store.h>

#include "base.h"

struct vdi_replay_change {
	bool is_delete;
	struct vd_kv
		*kv; /* key, for a put also the value; not shared with anybody yet; taken over with VD_OK */
	vd_rev	 create_rev; /* as recorded; 0: derived from the key's previous record */
	int64_t	 version;
};

#endif
