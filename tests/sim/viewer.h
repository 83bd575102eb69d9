/* Those who watch: each is compared, event by event, with what the log says it must see next. */
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

/* What a watch or list wants, as we understand it and as text. */
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
/* Keys that the filter wants at revision, in key order; returns how many. */
size_t filter_state(const struct oracle *oracle, const struct sim_filter *filter, vd_rev revision,
		    const struct oracle_record *ret_records[]);

struct viewers *viewers_new(struct world *world);
/* All are closed. */
void viewers_free(struct viewers *viewers);
/* One of them does something: opens, resumes, pulls, closes, stalls. */
void viewers_nudge(struct world *world);
/* One that is open takes nothing for a while. */
void viewers_stall_one(struct world *world);
/* All that must be done for things to go on: pulls, closes what ended, opens again. */
void viewers_tend(struct world *world);
/* Called now and then: nobody healthy waits for what the cache has had for a second. */
void viewers_check_progress(struct world *world);
/* Everyone is open and has seen everything. *ret_why: who has not. */
bool   viewers_caught_up(struct world *world, char *ret_why, size_t size);
void   viewers_close_all(struct world *world, bool all_at_once);
size_t viewers_open(const struct world *world);

#endif
