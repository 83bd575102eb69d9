/* One record per definition is updated from the informer's store. A record has the newest state of the
 * definition (crd) and the resources served for it (served), which follow once the names are accepted and the
 * cache is ready.
 *
 * A cache is kept if only columns, subresources, schemas or versions change; other selectable fields or other
 * defaults need a new cache. A retired cache ends when all loops have taken a set without it and its watches
 * have received the last deletions.
 */
#include "definitions_state.h"

#include <stdio.h>

#include "crd_cleanup.h"
#include "env.h"
#include "kind_cache.h"
#include "read_defaults.h"

vd_status vdi_definitions_new(struct vdi_kinds *kinds, struct vdi_definitions **ret_definitions)
{
	static const char	   rest[] = "apiextensions.k8s.io/customresourcedefinitions/";
	const struct vdi_resource *resource =
		vdi_resources_find(&kinds->declared, vd_bytes_of("apiextensions.k8s.io"), vd_bytes_of("v1"),
				   vd_bytes_of("customresourcedefinitions"));
	size_t			size = resource ? strlen(resource->key_prefix) : 0;
	struct vdi_definitions *definitions;

	*ret_definitions = NULL;
	/* A kind of that name from the resources file, or one with its own key prefix, is not handled
	 * here. */
	if (resource == NULL || !vdi_crd_is(resource) || size < sizeof rest ||
	    size - sizeof rest + 1 >= sizeof definitions->root ||
	    strcmp(resource->key_prefix + size - sizeof rest + 1, rest) != 0)
		return VD_OK;
	definitions = VDI_NEW(struct vdi_definitions);
	if (definitions == NULL)
		return VD_NOMEM;
	definitions->kinds = kinds;
	definitions->cacher = resource->cacher;
	(void) snprintf(definitions->root, sizeof definitions->root, "%.*s", (int) (size - sizeof rest + 1),
			resource->key_prefix);
	*ret_definitions = definitions;
	return VD_OK;
}

/* ---- Retired caches ---- */

/* Takes over the reference. Before its watches end they receive the events up to revision (0: those that the
 * cache has). */
static void retire(struct vdi_definitions *definitions, struct vdi_kind_cache *cache, vd_rev revision)
{
	if (cache == NULL)
		return;
	cache->last_revision = revision;
	cache->retired_next = definitions->retired;
	definitions->retired = cache;
}

void vdi_definitions_drain_retired(struct vdi_definitions *definitions)
{
	for (struct vdi_kind_cache **place = &definitions->retired; *place;) {
		struct vdi_kind_cache *cache = *place;

		if (!cache->is_draining) {
			cache->is_draining = true;
			vdi_kind_cache_drain(cache);
		}
		if (!atomic_load(&cache->is_ended)) {
			place = &cache->retired_next;
			continue;
		}
		*place = cache->retired_next;
		(void) vdi_kind_cache_unref(cache);
	}
}

void vdi_definitions_end_retired(struct vdi_definitions *definitions)
{
	for (struct vdi_kind_cache *cache = definitions ? definitions->retired : NULL; cache;
	     cache = cache->retired_next)
		vdi_kind_cache_end(cache);
}

static void drop_caches(struct vdi_definition *definition, vd_rev revision)
{
	if (definition->served_cache != definition->cache)
		retire(definition->owner, definition->served_cache, revision);
	else
		(void) vdi_kind_cache_unref(definition->served_cache);
	retire(definition->owner, definition->cache, revision);
	definition->cache = definition->served_cache = NULL;
}

static void free_definition(struct vdi_definition *definition)
{
	vdi_crd_fini(&definition->crd);
	vdi_resources_fini(&definition->served);
	(void) vdi_crd_cleanup_free(definition->cleanup);
	drop_caches(definition, 0);
	vdi_out_fini(&definition->status.current);
	vdi_out_fini(&definition->status.text);
	(void) vd_object_unref(definition->object);
	vdi_free(definition);
}

struct vdi_definitions *vdi_definitions_free(struct vdi_definitions *definitions)
{
	struct vdi_definition *definition;

	if (definitions == NULL)
		return NULL;
	while ((definition = definitions->first) != NULL) {
		definitions->first = definition->next;
		free_definition(definition);
	}
	while (definitions->retired) {
		struct vdi_kind_cache *cache = definitions->retired;

		definitions->retired = cache->retired_next;
		vdi_kind_cache_end(cache);
		(void) vdi_kind_cache_unref(cache);
	}
	vdi_free(definitions);
	return NULL;
}

void vdi_definitions_end(struct vdi_definitions *definitions)
{
	for (struct vdi_definition *definition = definitions ? definitions->first : NULL; definition;
	     definition = definition->next) {
		vdi_kind_cache_end(definition->cache);
		vdi_kind_cache_end(definition->served_cache);
	}
	vdi_definitions_end_retired(definitions);
}

/* ---- Updating the records ---- */

struct loading {
	struct vdi_definitions *definitions;
	vd_status		status;
};

/* Finds or adds a record; records keep the order of creation. */
static struct vdi_definition *find(struct vdi_definitions *definitions, struct vd_object *object)
{
	struct vd_bytes		name = vd_object_name(object);
	struct vdi_definition **place = &definitions->first, *fresh;

	for (struct vdi_definition *definition = definitions->first; definition;
	     definition = definition->next)
		if (vd_bytes_equal(vd_bytes_of(definition->name), name))
			return definition;
	fresh = name.size < sizeof fresh->name ? VDI_NEW(struct vdi_definition) : NULL;
	if (fresh == NULL)
		return NULL;
	memcpy(fresh->name, name.data, name.size);
	fresh->owner = definitions;
	while (*place && ((*place)->object == NULL ||
			  vd_object_kv((*place)->object)->create_rev < vd_object_kv(object)->create_rev))
		place = &(*place)->next;
	fresh->next = *place;
	*place = fresh;
	return fresh;
}

static void forget_edition(struct vdi_definition *definition)
{
	vdi_crd_fini(&definition->crd);
	memset(&definition->crd, 0, sizeof definition->crd);
	definition->is_new_edition = false;
}

/* Resets the record for another definition of the same name (another UID). At revision the last object of the
 * old one was deleted; 0: its objects stay. */
static void begin_anew(struct vdi_definition *definition, vd_rev revision)
{
	forget_edition(definition);
	definition->owner->is_changed |= definition->served.count > 0;
	vdi_resources_fini(&definition->served);
	drop_caches(definition, revision);
	definition->is_accepted = definition->is_served = definition->is_cleaned = false;
	definition->cleaning[0] = 0;
}

static vd_status take_state(struct vdi_definition *definition, struct vd_object *object)
{
	struct vdi_out	      text = VDI_OUT_INIT;
	struct vd_object_json json;
	struct vdi_crd	      crd = { 0 };
	struct vd_error	      error = { 0 };
	vd_status	      status;

	vd_object_json(object, vd_object_revision(object), &json);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(json.piece); i++)
		vdi_out_bytes(&text, json.piece[i]);
	status = text.failed ? VD_NOMEM :
			       vdi_crd_read(vdi_out_slice(&text), definition->owner->root, &crd, &error);
	vdi_out_fini(&text);
	if (status == VD_NOMEM)
		return VD_NOMEM;
	definition->fault[0] = 0;
	if (status != VD_OK)
		(void) snprintf(definition->fault, sizeof definition->fault, "%.250s", error.message);
	if (status != VD_OK || strcmp(crd.uid, definition->crd.uid) != 0) {
		begin_anew(definition, status == VD_OK ? vd_cacher_revision(definition->owner->cacher) : 0);
		definition->crd = crd;
		definition->is_new_edition = status == VD_OK;
		if (status != VD_OK)
			vdi_log(definition->owner->kinds->host.env, VD_LOG_WARNING, "definitions",
				"%s is not served: %s", definition->name, definition->fault);
	} else if (crd.generation != definition->crd.generation ||
		   crd.is_terminating != definition->crd.is_terminating) {
		forget_edition(definition);
		definition->crd = crd;
		definition->is_new_edition = true;
	} else {
		definition->crd.was_accepted = crd.was_accepted;
		definition->crd.is_kept = crd.is_kept;
		vdi_crd_fini(&crd);
	}
	definition->owner->has_checked_names = false;
	definition->is_status_due = true;
	return VD_OK;
}

static bool load_definition(void *arg, struct vd_object *object)
{
	struct loading	      *loading = arg;
	struct vdi_definition *definition = find(loading->definitions, object);

	if (definition == NULL) {
		loading->status = VD_NOMEM;
		return false;
	}
	definition->is_seen = true;
	if (definition->object == object)
		return true;
	loading->status = take_state(definition, object);
	if (loading->status != VD_OK)
		return false;
	(void) vd_object_unref(definition->object);
	definition->object = vd_object_ref(object);
	return true;
}

static bool is_idle(const struct vdi_definition *definition)
{
	return atomic_load(&definition->status.call) != VDI_DEFINITION_CALL_BUSY &&
	       (definition->cleanup == NULL || vdi_crd_cleanup_is_idle(definition->cleanup));
}

vd_status vdi_definitions_update(struct vdi_definitions *definitions, struct vd_informer *informer)
{
	struct loading loading = { definitions, VD_OK };

	for (struct vdi_definition *definition = definitions->first; definition;
	     definition = definition->next)
		definition->is_seen = false;
	(void) vd_informer_visit(informer, load_definition, &loading);
	if (loading.status != VD_OK)
		return loading.status;
	for (struct vdi_definition *definition = definitions->first; definition;
	     definition = definition->next) {
		if (definition->is_seen || definition->object == NULL)
			continue;
		definition->object = vd_object_unref(definition->object);
		begin_anew(definition, vd_cacher_revision(definitions->cacher));
		definitions->has_checked_names = false;
	}
	return VD_OK;
}

/* ---- Names ---- */

void vdi_definitions_validate_again(struct vdi_definitions *definitions)
{
	definitions->has_checked_names = false;
}

static bool has_word(const struct vdi_resource *resource, const char *word)
{
	if (strcmp(resource->plural, word) == 0 || strcmp(resource->singular, word) == 0)
		return true;
	for (size_t i = 0; i < VDI_RESOURCE_WORDS_MAX && resource->short_names[i]; i++)
		if (strcmp(resource->short_names[i], word) == 0)
			return true;
	return false;
}

static bool has_kind(const struct vdi_resource *resource, const char *kind)
{
	return strcmp(resource->kind, kind) == 0 || strcmp(resource->list_kind, kind) == 0;
}

/* Returns why mine cannot have its names beside other; NULL: no conflict. */
static const char *conflict_of(const struct vdi_resource *mine, const struct vdi_resource *other,
			       const char **ret_word)
{
	if (strcmp(mine->group, other->group) != 0) {
		*ret_word = mine->key_prefix;
		return strcmp(mine->key_prefix, other->key_prefix) == 0 ? "StorageConflict" : NULL;
	}
	if (has_word(other, *ret_word = mine->plural))
		return "PluralConflict";
	if (has_word(other, *ret_word = mine->singular))
		return "SingularConflict";
	for (size_t i = 0; i < VDI_RESOURCE_WORDS_MAX && mine->short_names[i]; i++)
		if (has_word(other, *ret_word = mine->short_names[i]))
			return "ShortNamesConflict";
	if (has_kind(other, *ret_word = mine->kind))
		return "KindConflict";
	return has_kind(other, *ret_word = mine->list_kind) ? "ListKindConflict" : NULL;
}

static const char *conflict_with(const struct vdi_definition *definition, const struct vdi_resource *other,
				 const char *owner, char message[256])
{
	const char *word, *conflict = conflict_of(definition->crd.stored, other, &word);

	if (conflict)
		(void) snprintf(message, 256, "\"%.120s\" is already in use%s", word, owner);
	return conflict;
}

static void check_names(struct vdi_definitions *definitions, struct vdi_definition *definition,
			const struct vdi_resources *declared)
{
	const char *conflict = NULL;
	char	    message[256] = "";

	if (definition->crd.stored == NULL) {
		conflict = definition->object ? "NotServable" : NULL;
		(void) snprintf(message, sizeof message, "%s", definition->fault);
	}
	for (size_t i = 0; i < declared->count && conflict == NULL && definition->crd.stored; i++)
		conflict = conflict_with(definition, declared->items[i],
					 " by a kind that was declared at the start of this server", message);
	definition->is_conflict_ours = conflict != NULL;
	for (struct vdi_definition *other = definitions->first;
	     other && conflict == NULL && definition->crd.stored; other = other->next)
		if (other != definition && other->is_accepted && other->crd.stored)
			conflict = conflict_with(definition, other->crd.stored, "", message);
	definition->is_accepted = conflict == NULL && definition->crd.stored;
	if (conflict != definition->conflict || strcmp(message, definition->conflict_message) != 0)
		definition->is_status_due = true;
	definition->conflict = conflict;
	memcpy(definition->conflict_message, message, sizeof message);
}

/* Accepted definitions keep their names. Of the others, those that had been accepted before this server
 * started come first, then the older ones. */
static void check_all_names(struct vdi_definitions *definitions, const struct vdi_resources *declared)
{
	bool was_accepted;

	for (struct vdi_definition *definition = definitions->first; definition;
	     definition = definition->next)
		if (definition->is_accepted)
			check_names(definitions, definition, declared);
	for (int pass = 0; pass < 2; pass++)
		for (struct vdi_definition *definition = definitions->first; definition;
		     definition = definition->next) {
			was_accepted = definition->is_accepted;
			if (!was_accepted && definition->crd.was_accepted == (pass == 0))
				check_names(definitions, definition, declared);
		}
	definitions->has_checked_names = true;
}

/* ---- Caches and sets ---- */

static uint64_t add_text(uint64_t key, const char *text)
{
	while (*text)
		key = (key ^ (unsigned char) *text++) * 0x100000001B3u;
	return (key ^ 0xFF) * 0x100000001B3u;
}

/* Key of everything that a cache is built from. */
static uint64_t key_of(const struct vdi_crd *crd)
{
	uint64_t key = add_text(0xCBF29CE484222325u, crd->stored->key_prefix);

	key = add_text(key, crd->stored->namespaced ? "n" : "c");
	for (size_t i = 0; i < crd->field_count; i++)
		key = add_text(key, crd->fields[i].name);
	return (key ^ vdi_read_defaults_key(crd->defaults)) * 0x100000001B3u;
}

static vd_status bind_one(struct vdi_definition *definition, struct vdi_resource *resource, bool is_first)
{
	VDI_TRY(definition->owner->kinds->host.counts(definition->owner->kinds->host.arg, resource,
						      &resource->counts));
	resource->has_own_frames = strcmp(resource->version, definition->frame_version) != 0;
	resource->has_own_tables = !is_first || resource->has_own_frames;
	if (resource->cache == NULL)
		vdi_kind_cache_bind(definition->cache, resource);
	return VD_OK;
}

static vd_status make_cache(struct vdi_definition *definition)
{
	struct vdi_crd	      *crd = &definition->crd;
	uint64_t	       key = key_of(crd);
	bool		       is_first = definition->cache == NULL || definition->cache_key != key;
	struct vdi_kind_cache *cache;

	if (is_first) {
		VDI_TRY(vdi_kind_cache_new(definition->owner->kinds, crd->stored, crd->fields,
					   crd->field_count, &cache, NULL));
		if (definition->cache != definition->served_cache)
			retire(definition->owner, definition->cache, 0);
		else
			(void) vdi_kind_cache_unref(definition->cache); /* served_cache has a reference */
		definition->cache = cache;
		definition->cache_key = key;
		(void) snprintf(definition->frame_version, sizeof definition->frame_version, "%s",
				crd->stored->version);
	}
	VDI_TRY(bind_one(definition, crd->stored, is_first));
	for (size_t i = 0; i < crd->resources.count; i++)
		VDI_TRY(bind_one(definition, crd->resources.items[i], is_first));
	definition->is_new_edition = false;
	return VD_OK;
}

bool vdi_definition_is_current(const struct vdi_definition *definition)
{
	const struct vdi_resources *wanted = &definition->crd.resources;

	if (definition->served.count != (definition->is_accepted ? wanted->count : 0))
		return false;
	for (size_t i = 0; i < definition->served.count; i++)
		if (definition->served.items[i] != wanted->items[i])
			return false;
	return true;
}

static vd_status switch_over(struct vdi_definition *definition)
{
	struct vdi_resources fresh = { 0 };

	if (vdi_definition_is_current(definition))
		return VD_OK;
	VDI_TRY(vdi_resources_copy(&fresh, &definition->crd.resources));
	vdi_resources_fini(&definition->served);
	definition->served = fresh;
	if (definition->served_cache != definition->cache) {
		retire(definition->owner, definition->served_cache, 0);
		definition->served_cache = vdi_kind_cache_ref(definition->cache);
	}
	definition->is_served = false;
	definition->owner->is_changed = true;
	return VD_OK;
}

/* The definition has lost its names: end its watches. If it gets the names back, it starts with a new
 * cache. */
static vd_status give_up(struct vdi_definition *definition)
{
	if (definition->cache == NULL && definition->served.count == 0)
		return VD_OK;
	begin_anew(definition, 0);
	return take_state(definition, definition->object);
}

static vd_status prepare(struct vdi_definition *definition)
{
	if (!definition->is_accepted)
		return definition->object ? give_up(definition) : VD_OK;
	if (definition->is_new_edition)
		VDI_TRY(make_cache(definition));
	if (vd_cacher_ready(definition->cache->cacher, NULL) != VD_OK)
		return VD_NOT_READY;
	return switch_over(definition);
}

vd_status vdi_definitions_prepare(struct vdi_definitions *definitions, const struct vdi_resources *declared,
				  bool *ret_changed)
{
	vd_status result = VD_OK;

	if (!definitions->has_checked_names)
		check_all_names(definitions, declared);
	for (struct vdi_definition **place = &definitions->first; *place;) {
		struct vdi_definition *definition = *place;
		vd_status	       status;

		if (definition->object == NULL && is_idle(definition)) {
			*place = definition->next;
			free_definition(definition);
			continue;
		}
		status = prepare(definition);
		if (status != VD_OK && result != VD_NOMEM)
			result = status == VD_NOT_READY ? VD_NOT_READY : VD_NOMEM;
		place = &definition->next;
	}
	*ret_changed |= definitions->is_changed;
	definitions->is_changed = false;
	return result;
}

vd_status vdi_definitions_collect(const struct vdi_definitions *definitions, struct vdi_resources *resources)
{
	for (const struct vdi_definition *definition = definitions->first; definition;
	     definition = definition->next)
		for (size_t i = 0; i < definition->served.count; i++)
			VDI_TRY(vdi_resources_add(resources, definition->served.items[i]));
	return VD_OK;
}

bool vdi_definitions_are_served(const struct vdi_definitions *definitions, const char *name)
{
	for (const struct vdi_definition *definition = definitions->first; definition;
	     definition = definition->next)
		if (strcmp(definition->name, name) == 0)
			return vdi_definition_is_current(definition);
	return true;
}
