/* The truth: every change the store ever showed, in order, read from a watch of the store's own from revision
 * 1 on and across restarts.
 *
 * What anybody was told (an answer, an event, a list, a bookmark) must be in it, and must still be in the
 * store after every crash. Records are copies: nothing here shares memory with the code under test.
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

/* What selectors look at; read from the value by searching for words, not by the code under test. Empty:
 * absent. */
struct oracle_facts {
	char	 app[8], tier[8], node[8], phase[12];
	uint64_t seq; /* the write it came from */
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
	vd_rev		       revision; /* everything up to here is known */
	struct oracle_key     *keys;
	int		       key_count;
	struct oracle_record  *records;
	int		       record_count;
	size_t		       record_capacity;
};

#define ORACLE_KEYS_MAX 256

void oracle_init(struct oracle *oracle, struct world *world);
void oracle_fini(struct oracle *oracle);
/* Watches store from what is known on. */
void oracle_open(struct oracle *oracle, struct vd_store *store);
void oracle_close(struct oracle *oracle);
/* Takes what there is. */
void oracle_drain(struct oracle *oracle);
/* Somebody saw revision: it must be known by now. */
void oracle_reach(struct oracle *oracle, vd_rev revision, const char *who);

int oracle_key(struct oracle *oracle, struct vd_bytes key);
/* The record that is the key's state at revision; NULL: absent. */
const struct oracle_record *oracle_at(const struct oracle *oracle, int key, vd_rev revision);
/* The record of this key at exactly this revision; NULL: none. */
const struct oracle_record *oracle_exactly(const struct oracle *oracle, int key, vd_rev revision);
/* Index of the first record with a greater revision. */
int oracle_after(const struct oracle *oracle, vd_rev revision);
/* Was the key there, or was it absent, at any revision in [from, to]? */
bool oracle_existed(const struct oracle *oracle, int key, vd_rev from, vd_rev to, bool wanted);
/* The kv is exactly what the record says. */
bool oracle_same(const struct oracle *oracle, const struct oracle_record *record, const struct vd_kv *kv);
/* The store holds at `revision` exactly what the log says. Only while nobody writes. */
void oracle_compare_store(struct oracle *oracle, struct vd_store *store, vd_rev revision);

#endif
