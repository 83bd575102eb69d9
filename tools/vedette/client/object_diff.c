/* Compares member by member, and arrays by position. Scalars and values of different types are reported as a
 * whole. */
#include "object_diff.h"

#include <stdio.h>

#define PATH_SIZE 1024

struct walk {
	vdi_difference_fn each;
	void		 *arg;
	char		  path[PATH_SIZE];
	size_t		  size;
};

static void compare(struct walk *walk, const json_t *from, const json_t *to);

static size_t push(struct walk *walk, const char *format, const char *name, size_t index)
{
	size_t before = walk->size;
	int    added = name ? snprintf(walk->path + before, PATH_SIZE - before, format, name) :
			      snprintf(walk->path + before, PATH_SIZE - before, format, index);

	walk->size = VDI_MIN(before + (size_t) VDI_MAX(added, 0), (size_t) PATH_SIZE - 1);
	return before;
}

static void pop(struct walk *walk, size_t before)
{
	walk->size = before;
	walk->path[before] = 0;
}

static void compare_member(struct walk *walk, const char *name, const json_t *from, const json_t *to)
{
	size_t before;

	if (strcmp(walk->path, "metadata") == 0 &&
	    (strcmp(name, "resourceVersion") == 0 || strcmp(name, "managedFields") == 0))
		return;
	before = push(walk, strpbrk(name, ".[]\"") ? "[\"%s\"]" : walk->size ? ".%s" : "%s", name, 0);
	compare(walk, from, to);
	pop(walk, before);
}

static void compare_objects(struct walk *walk, const json_t *from, const json_t *to)
{
	const char *name;
	json_t	   *value;

	json_object_foreach ((json_t *) (uintptr_t) to, name, value)
		compare_member(walk, name, json_object_get(from, name), value);
	json_object_foreach ((json_t *) (uintptr_t) from, name, value)
		if (json_object_get(to, name) == NULL)
			compare_member(walk, name, value, NULL);
}

static void compare_arrays(struct walk *walk, const json_t *from, const json_t *to)
{
	size_t count = VDI_MAX(json_array_size(from), json_array_size(to));

	for (size_t i = 0; i < count; i++) {
		size_t before = push(walk, "[%zu]", NULL, i);

		compare(walk, json_array_get(from, i), json_array_get(to, i));
		pop(walk, before);
	}
}

static void compare(struct walk *walk, const json_t *from, const json_t *to)
{
	if (json_is_object(from) && json_is_object(to))
		compare_objects(walk, from, to);
	else if (json_is_array(from) && json_is_array(to))
		compare_arrays(walk, from, to);
	else if (from == NULL || to == NULL || !json_equal(from, to))
		walk->each(walk->arg, walk->path, from, to);
}

void vdi_object_diff(const json_t *from, const json_t *to, vdi_difference_fn each, void *arg)
{
	struct walk walk = { .each = each, .arg = arg };

	compare(&walk, from, to);
}
