/* Proof that rare paths are taken: named counters, printed and asserted over many seeds. */
#ifndef SIM_MARKS_H
#define SIM_MARKS_H

#include <stdint.h>

/* X(name, meaning) */
#define SIM_MARKS(X)                                                                                         \
	X(crash_in_operation, "the power went during a disk operation")                                      \
	X(crash_at_rest, "the power went between two operations")                                            \
	X(crash_in_recovery, "the power went again while the store recovered")                               \
	X(clean_restart, "the store was closed and opened")                                                  \
	X(restart_under_cachers, "the store came back under living caches, as a remote one does")            \
	X(restart_with_cachers, "store and caches died together")                                            \
	X(torn_write, "a crash left some sectors of a write in the journal and not others")                  \
	X(unpublished_survived, "a commit that nobody had seen survived a crash")                            \
	X(resumed_after_restart, "a cache went on after a restart without listing again")                    \
	X(compaction, "the history was compacted by request")                                                \
	X(own_compaction, "the store compacted itself")                                                      \
	X(lost_answer, "the answer of a transaction that was made got lost")                                 \
	X(lost_answer_applied, "what was written behind a lost answer was found in the log")                 \
	X(refused_call, "a call was refused before it was made")                                             \
	X(late_call, "a call was delayed")                                                                   \
	X(cut_feed, "a watch on the store was cut")                                                          \
	X(cut_initial_sync, "a cache's list was cut")                                                        \
	X(stalled_feed, "news of the store came late")                                                       \
	X(refused_watch, "a watch on the store was refused")                                                 \
	X(relist, "a cache had to list again")                                                               \
	X(watch_expired, "a watch ended with 410")                                                           \
	X(watch_too_slow, "a watch ended because it lagged too far")                                         \
	X(watch_timeout, "a watch reached its deadline")                                                     \
	X(watch_closed, "a watch was ended by a new generation or the end of the cache")                     \
	X(watch_full, "a watch was refused because there were too many")                                     \
	X(watch_not_ready, "a watch was refused because the cache was not ready")                            \
	X(watch_unavailable, "a watch failed while it was opened because the store was away")                \
	X(watch_resumed, "a watch went on from its last revision")                                           \
	X(watch_relisted, "a client listed again and watched from there")                                    \
	X(closed_in_deliver, "a sink closed its watch while it was called")                                  \
	X(closed_by_client, "a client closed its watch at a random moment")                                  \
	X(took_less, "a sink took less than it was offered")                                                 \
	X(stalled_client, "a client took nothing for long")                                                  \
	X(lagging_rescan, "a watch was so far behind that it had to look through the history itself")        \
	X(filter_entered, "a change made an object match: ADDED of something old")                           \
	X(filter_left, "a change made an object stop matching: DELETED of something that lives")             \
	X(multi_key_revision, "one revision with several events of one watch")                               \
	X(bookmark, "a bookmark came")                                                                       \
	X(end_bookmark, "the end of initial events was marked")                                              \
	X(future_watch, "a watch from a revision of the future")                                             \
	X(conflict_retry, "an update was decided more than once")                                            \
	X(no_op_update, "an update that changed nothing wrote nothing")                                      \
	X(precondition_failed, "a precondition refused a write")                                             \
	X(lease_expired, "a lease took its keys along")                                                      \
	X(store_full, "the store had too many submissions in flight")                                        \
	X(list_from_cache, "a list came while the cache was ready")                                          \
	X(list_exact, "a list of an exact older revision")                                                   \
	X(list_continued, "a list was continued by its token")                                               \
	X(list_continued_over_write, "between two pages something was written")                              \
	X(list_expired, "a list's revision had been compacted")                                              \
	X(list_too_large, "a list wanted a revision that did not come in time")                              \
	X(list_not_ready, "a list was refused because the cache was not ready")                              \
	X(list_unavailable, "a list failed because the store was away")                                      \
	X(list_walked_late, "a list was walked after further writes")                                        \
	X(get_not_found, "a get of something absent")                                                        \
	X(cache_compared, "a cache was compared with its store and found equal")                             \
	X(cache_not_compared, "a cache could not be compared: not ready, no answer, or compacted")           \
	X(disk_full, "the disk had no room and the store went on afterwards")                                \
	X(disk_error, "the disk failed and the store was opened anew")                                       \
	X(preemption, "a handler or a call was suspended in the middle")

struct sim_marks {
#define SIM_MARK_FIELD(name, text) uint64_t name;
	SIM_MARKS(SIM_MARK_FIELD)
#undef SIM_MARK_FIELD
};

#endif
