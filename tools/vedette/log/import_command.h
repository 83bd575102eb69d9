/* vedette record --from-...: converts a file of another format into an event log. */
#ifndef VDI_IMPORT_COMMAND_H
#define VDI_IMPORT_COMMAND_H

#include "command_line.h"
#include "import.h"

struct vdi_import_settings {
	const char *audit, *watch, *kine, *snapshot; /* at most one is set */
	const char *resources;
};

/* The formatter breaks rows of a table within a macro. */
/* clang-format off */
#define VDI_IMPORT_OPTION_TABLE(settings) \
	{ 0, "from-audit", VDI_OPTION_TEXT, "FILE", \
	  "a Kubernetes audit log at level RequestResponse; \"-\": standard input", \
	  &(settings)->audit }, \
	{ 0, "from-watch", VDI_OPTION_TEXT, "FILE", \
	  "output of kubectl get --watch -o json, preferably with --output-watch-events", \
	  &(settings)->watch }, \
	{ 0, "from-kine", VDI_OPTION_TEXT, "FILE", \
	  "an SQLite database of kine", &(settings)->kine }, \
	{ 0, "from-snapshot", VDI_OPTION_TEXT, "FILE", \
	  "an etcd snapshot, or the db file of a stopped etcd", &(settings)->snapshot }, \
	{ 0, "resources", VDI_OPTION_TEXT, "FILE", \
	  "with --from-watch: additional kinds (JSON), as for serve", &(settings)->resources }
/* clang-format on */

/* Returns the number of sources given. */
unsigned    vdi_import_settings_count(const struct vdi_import_settings *settings);
const char *vdi_import_settings_source(const struct vdi_import_settings *settings);
/* Imports the source. Blocks. The message names the file, and the line, row or revision. */
VDI_MUST_USE vd_status vdi_import_run(const struct vdi_import_settings *settings,
				      struct vdi_log_writer *writer, struct vdi_import_totals *ret_totals,
				      struct vd_error *reterr);

/* Importers with libraries of their own. VD_UNSUPPORTED: built without. */
VDI_MUST_USE vd_status vdi_import_kine(const char *path, const struct vdi_import_sink *sink,
				       struct vdi_import_totals *totals, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_import_snapshot(const char *path, const struct vdi_import_sink *sink,
					   struct vdi_import_totals *totals, struct vd_error *reterr);

#endif
