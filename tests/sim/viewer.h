/* Clients that watch: each event is compared with the one that the log predicts. */
#ifndef SIM_VIEWER_H
#define SIM_VIEWER_H

#include "world.h"

#define VIEWERS_MIN 20

enum sim_label {
	LABEL_NONE,
	LABEL_EQUAL,
	LABEL_NOT_EQUAL,
	LABEL_IN,
	LABEL_NOT_IN,
	LABEL_EXISTS,
	LABEL_NOT_EXISTS,
	LABEL_BOTH,
	LABEL_KINDS
};
enum sim_field {
	FIELD_NONE,
	FIELD_NODE,
	FIELD_NOT_NODE,
	FIELD_PHASE,
	FIELD_NAME,
	FIELD_NAMESPACE,
	FIELD_NODE_PHASE,
	FIELD_KINDS
};

/* The scope and selectors of a watch or list, for the oracle and as text. */
struct sim_filter {
	int	       cacher;
	char	       namespace_name[16]; /* empty: all */
	char	       name[24];
	enum sim_label label;
	enum sim_field field;
	char	       app[8], tier[8], node[8], phase[12];
	char	       field_name[24];
	char	       label_text[64];
	char	       field_text[96];
};

void filter_random(struct world *world, struct sim_filter *filter);
bool filter_wants(const struct oracle *oracle, const struct sim_filter *filter,
		  const struct oracle_record *record);
/* Lists the keys that match the filter at revision, in key order; returns their number. */
size_t filter_state(const struct oracle *oracle, const struct sim_filter *filter, vd_rev revision,
		    const struct oracle_record *ret_records[]);

struct viewers *viewers_new(struct world *world);
/* All watches are closed before. */
void viewers_free(struct viewers *viewers);
/* One viewer acts: opens, resumes, pulls, closes, stalls. */
void viewers_nudge(struct world *world);
/* One open viewer accepts nothing for a while. */
void viewers_stall_one(struct world *world);
/* Does what is needed for progress: pulls, closes ended watches, opens them again. */
void viewers_tend(struct world *world);
/* Called now and then: no healthy viewer may lack an event that the cache has had for a second. */
void viewers_check_progress(struct world *world);
/* Returns true if all viewers are open and have received everything. *ret_why: the one that has not. */
bool   viewers_caught_up(struct world *world, char *ret_why, size_t size);
void   viewers_close_all(struct world *world, bool all_at_once);
size_t viewers_open(const struct world *world);

#endif
