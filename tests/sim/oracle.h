/* The truth: every change that the store ever published, in order, read from a watch of the store from
 * revision 1 on and across restarts.
 *
 * Everything that a client received (an answer, an event, a list, a bookmark) must be in it, and must still
 * be in the store after every crash. Records are copies that share no memory with the code under test.
 */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include <vedette/store.h>

#include "base.h"

struct world;

enum oracle_resource { ORACLE_PODS, ORACLE_WIDGETS, ORACLE_OTHER };

struct oracle_key {
	char		     text[64];
	enum oracle_resource resource;
	char		     namespace_name[16];
	char		     name[24];
	int		    *records; /* of this key, oldest first */
	size_t		     record_count;
	size_t		     record_capacity;
};

/* The attributes that selectors use, found by searching the value for words instead of by the code under
 * test. Empty: absent. */
struct oracle_facts {
	char	 app[8], tier[8], node[8], phase[12];
	uint64_t seq; /* the write that made it */
};

struct oracle_record {
	vd_rev		    revision;
	int		    key;
	int		    previous; /* record that this one replaces or deletes; -1: none */
	bool		    is_delete;
	vd_rev		    create_rev;
	int64_t		    version;
	int64_t		    lease;
	char		   *value;
	size_t		    value_size;
	struct oracle_facts facts;
};

struct oracle {
	struct world	      *world;
	struct vd_store_watch *watch; /* NULL while the store is away */
	bool		       has_news;
	vd_rev		       revision; /* all revisions up to here are known */
	struct oracle_key     *keys;
	int		       key_count;
	struct oracle_record  *records;
	int		       record_count;
	size_t		       record_capacity;
};

#define ORACLE_KEYS_MAX 256

void oracle_init(struct oracle *oracle, struct world *world);
void oracle_fini(struct oracle *oracle);
/* Watches the store after the last known revision. */
void oracle_open(struct oracle *oracle, struct vd_store *store);
void oracle_close(struct oracle *oracle);
/* Reads all available events. */
void oracle_drain(struct oracle *oracle);
/* A client received this revision, so it must be known by now. */
void oracle_reach(struct oracle *oracle, vd_rev revision, const char *who);

int oracle_key(struct oracle *oracle, struct vd_bytes key);
/* Returns the record that is the key's state at revision; NULL: absent. */
const struct oracle_record *oracle_at(const struct oracle *oracle, int key, vd_rev revision);
/* Returns the record of this key at exactly this revision; NULL: none. */
const struct oracle_record *oracle_exactly(const struct oracle *oracle, int key, vd_rev revision);
/* Returns the index of the first record with a greater revision. */
int oracle_after(const struct oracle *oracle, vd_rev revision);
/* Returns true if the key existed (or was absent) at any revision in [from, to]. */
bool oracle_existed(const struct oracle *oracle, int key, vd_rev from, vd_rev to, bool wanted);
/* Returns true if the kv is exactly the record's. */
bool oracle_same(const struct oracle *oracle, const struct oracle_record *record, const struct vd_kv *kv);
/* Checks that the store has at `revision` exactly the state of the log. Only while there are no writes. */
void oracle_compare_store(struct oracle *oracle, struct vd_store *store, vd_rev revision);

#endif
