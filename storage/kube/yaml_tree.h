/* A YAML (or JSON) file as a jansson tree, in which every scalar is a string. One thread; blocks in reads. */
#ifndef VDI_YAML_TREE_H
#define VDI_YAML_TREE_H

#include <jansson.h>

#include "base.h"

/* VD_NOT_FOUND, VD_IO: the file; VD_BAD_REQUEST: not YAML, too deep or large, or with a NUL in a scalar;
 * VD_NOMEM. The message names the file. The caller owns the tree (json_decref). */
VDI_MUST_USE vd_status vdi_yaml_tree_read(const char *path, json_t **ret_tree, struct vd_error *reterr);
/* Reads a file; adds a NUL. The caller frees the text with vdi_free. VD_NOT_FOUND, VD_IO (also if too large),
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_yaml_read_file(const char *path, size_t size_max, char **ret_text,
					  size_t *ret_size, struct vd_error *reterr);
/* Likewise, without the white space around the text: a token, a name. VD_BAD_REQUEST: it has a NUL. */
VDI_MUST_USE vd_status vdi_yaml_read_word(const char *path, size_t size_max, char **ret_text,
					  struct vd_error *reterr);

#endif
