/* A list under a lock of its own, newest first, so that a server is named before the caches that it
 * created. */
#include "usage.h"

#include <stdarg.h>
#include <stdio.h>

#include "lock.h"

#define NAMED_MAX 6

static struct vdi_lock	 list_lock = VDI_LOCK_STATIC(VDI_LOCK_LEAF);
static struct vdi_usage *first;

void vdi_usage_begin(struct vdi_usage *usage)
{
	vdi_lock_acquire(&list_lock);
	usage->next = first;
	usage->place = &first;
	if (first)
		first->place = &usage->next;
	first = usage;
	vdi_lock_release(&list_lock);
}

void vdi_usage_release(struct vdi_usage *usage)
{
	vdi_lock_acquire(&list_lock);
	memset(usage->uses, 0, sizeof usage->uses);
	vdi_lock_release(&list_lock);
}

void vdi_usage_end(struct vdi_usage *usage)
{
	vdi_lock_acquire(&list_lock);
	if (usage->place) {
		*usage->place = usage->next;
		if (usage->next)
			usage->next->place = usage->place;
		usage->place = NULL;
	}
	vdi_lock_release(&list_lock);
}

/* ---- Usages in a block of their own ---- */

struct shared {
	struct vdi_usage usage;
	_Atomic uint32_t references;
};

static struct shared *shared_of(struct vdi_usage *usage)
{
	return VDI_CONTAINER_OF(usage, struct shared, usage);
}

struct vdi_usage *vdi_usage_new(const struct vdi_usage *usage)
{
	struct shared *shared = VDI_NEW(struct shared);

	if (shared == NULL)
		return NULL;
	shared->usage = *usage;
	atomic_init(&shared->references, 1);
	vdi_usage_begin(&shared->usage);
	return &shared->usage;
}

struct vdi_usage *vdi_usage_unref(struct vdi_usage *usage)
{
	if (usage && atomic_fetch_sub_explicit(&shared_of(usage)->references, 1, memory_order_acq_rel) == 1) {
		vdi_usage_end(usage);
		vdi_free(shared_of(usage));
	}
	return NULL;
}

struct vdi_usage *vdi_usage_watch_opened(struct vdi_usage *usage)
{
	if (usage) {
		atomic_fetch_add_explicit(&shared_of(usage)->references, 1, memory_order_relaxed);
		atomic_fetch_add(&usage->watchers, 1);
	}
	return usage;
}

void vdi_usage_watch_closed(struct vdi_usage *usage)
{
	if (usage)
		atomic_fetch_sub(&usage->watchers, 1);
	(void) vdi_usage_unref(usage);
}

/* ---- Messages ---- */

struct sentence {
	char	 text[1024];
	size_t	 size;
	unsigned count;
};

static void add(struct sentence *sentence, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct sentence *sentence, const char *format, ...)
{
	size_t	room = sizeof sentence->text - sentence->size;
	int	size;
	va_list arguments;

	if (++sentence->count > NAMED_MAX)
		return;
	va_start(arguments, format);
	size = vsnprintf(sentence->text + sentence->size, room, format, arguments);
	va_end(arguments);
	sentence->size += size < 0 ? 0 : VDI_MIN((size_t) size, room - 1);
}

static void describe_locked(const struct vdi_usage *usage, bool is_going_enough, struct sentence *sentence)
{
	const char *separator = usage->name ? " " : "", *name = usage->name ? usage->name : "";
	uint32_t    watchers = atomic_load(&usage->watchers);
	bool	    is_closing = atomic_load(&usage->is_closing);

	/* A cacher closes its watches of the store itself, so while it is open its own line is enough. */
	if (watchers && (is_closing || usage->watch_closed_by == NULL))
		add(sentence, "%s%u %s%s of %s%s%s %s open: close with %s", sentence->count ? "; " : "",
		    watchers, usage->watch_closed_by ? "watch" : "watcher",
		    watchers == 1	   ? "" :
		    usage->watch_closed_by ? "es" :
					     "s",
		    usage->kind, separator, name, watchers == 1 ? "is" : "are",
		    usage->watch_closed_by ? usage->watch_closed_by : "vd_watcher_close");
	if (!is_closing)
		add(sentence, "%s%s%s%s is open: close with %s", sentence->count ? "; " : "", usage->kind,
		    separator, name, usage->closed_by);
	else if (!is_going_enough)
		add(sentence, "%s%s%s%s is still closing: wait for the done callback of %s",
		    sentence->count ? "; " : "", usage->kind, separator, name, usage->closed_by);
}

static void stop(const char *call, const struct sentence *sentence)
{
	if (sentence->count > NAMED_MAX)
		vdi_misuse("%s: %s; and %u more", call, sentence->text, sentence->count - NAMED_MAX);
	else if (sentence->count)
		vdi_misuse("%s: %s", call, sentence->text);
}

void vdi_usage_check_env(const char *call, const struct vd_env *env)
{
	struct sentence sentence = { { 0 }, 0, 0 };

	vdi_lock_acquire(&list_lock);
	for (const struct vdi_usage *usage = first; usage; usage = usage->next)
		if (usage->env == env)
			describe_locked(usage, true, &sentence);
	vdi_lock_release(&list_lock);
	stop(call, &sentence);
}

void vdi_usage_check(const char *call, const void *used)
{
	struct sentence sentence = { { 0 }, 0, 0 };

	vdi_lock_acquire(&list_lock);
	for (const struct vdi_usage *usage = first; usage; usage = usage->next)
		if (usage->uses[0] == used || usage->uses[1] == used)
			describe_locked(usage, false, &sentence);
	vdi_lock_release(&list_lock);
	stop(call, &sentence);
}
