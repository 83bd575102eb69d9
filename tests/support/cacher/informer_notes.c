#include "informer_notes.h"

/* Checks that the informer's store already has the change of a handler's call, or a newer one. */
static void check_store(const struct informer_notes *seen, const struct vd_object *object, bool is_gone)
{
	struct vd_object *kept;

	if (seen->informer == NULL)
		return;
	kept = vd_informer_get(seen->informer, vd_object_namespace(object), vd_object_name(object));
	if (is_gone)
		assert_null(kept);
	else
		assert_true(kept && vd_object_revision(kept) >= vd_object_revision(object));
	vd_object_unref(kept);
}

static void informer_note(struct informer_notes *seen, char what, const struct vd_object *object)
{
	size_t size = strlen(seen->text);

	assert_false(seen->is_closed);
	snprintf(seen->text + size, sizeof seen->text - size, "%c%.*s ", what,
		 (int) vd_object_name(object).size, (const char *) vd_object_name(object).data);
}

static void on_add(void *arg, struct vd_object *object, bool initial)
{
	check_store(arg, object, false);
	informer_note(arg, initial ? '*' : '+', object);
}

static void on_update(void *arg, struct vd_object *old_object, struct vd_object *object)
{
	if (old_object == object) {
		informer_note(arg, '=', object);
		return;
	}
	assert_true(vd_object_revision(old_object) < vd_object_revision(object));
	check_store(arg, object, false);
	informer_note(arg, '~', object);
}

static void on_remove(void *arg, struct vd_object *last_state, bool unknown_final_state)
{
	check_store(arg, last_state, true);
	informer_note(arg, unknown_final_state ? '?' : '-', last_state);
}

void informer_note_synced(void *arg)
{
	((struct informer_notes *) arg)->synced++;
}

struct vd_informer_handler informer_noting(struct informer_notes *seen)
{
	return (struct vd_informer_handler) {
		on_add, on_update, on_remove, informer_note_synced, seen, { 0 }
	};
}

void informer_by_node(void *arg, const struct vd_object *object, vd_index_emit_fn emit, void *emit_arg)
{
	emit(emit_arg, vd_object_field(object, 0));
}

void informer_by_letter(void *arg, const struct vd_object *object, vd_index_emit_fn emit, void *emit_arg)
{
	struct vd_bytes app;

	if (!vd_object_label_get(object, vd_bytes_of("app"), &app))
		return;
	for (size_t i = 0; i < app.size; i++)
		emit(emit_arg, (struct vd_bytes) { (const char *) app.data + i, 1 });
}

bool informer_note_visited(void *arg, struct vd_object *object)
{
	informer_note(arg, ' ', object);
	return strlen(((struct informer_notes *) arg)->text) < 12;
}

const char *informer_indexed(struct vd_informer *informer, const char *index, const char *value)
{
	static struct informer_notes seen;

	seen = (struct informer_notes) { 0 };
	(void) vd_informer_visit_index(informer, index, vd_bytes_of(value), informer_note_visited, &seen);
	return seen.text;
}
