/* A file of YAML (or JSON) as a tree of jansson's, in which everything that is no mapping or sequence is a
 * string. One thread; blocks in reads. */
#ifndef VDI_YAML_TREE_H
#define VDI_YAML_TREE_H

#include <jansson.h>

#include "base.h"

/* VD_NOT_FOUND, VD_IO: the file; VD_BAD_REQUEST: no YAML, or too deep or large; VD_UNSUPPORTED: built without
 * libyaml, and the file is no JSON; VD_NOMEM. The message names the file. The caller owns the tree
 * (json_decref). */
VDI_MUST_USE vd_status vdi_yaml_tree_read(const char *path, json_t **ret_tree, struct vd_error *reterr);
/* The text of a file with a NUL behind it (vdi_free). VD_NOT_FOUND, VD_IO (too large, too), VD_NOMEM. */
VDI_MUST_USE vd_status vdi_yaml_read_file(const char *path, size_t size_max, char **ret_text,
					  size_t *ret_size, struct vd_error *reterr);

#endif
