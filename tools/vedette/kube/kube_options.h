/* The options for a Kubernetes endpoint and its credentials, for commands that read all of it; and the
 * endpoint as a store. */
#ifndef VDI_KUBE_OPTIONS_H
#define VDI_KUBE_OPTIONS_H

#include "command_line.h"
#include "kube_store.h"
#include "kubeconfig_read.h"

#define VDI_KUBE_WANTED_MAX 128

struct vdi_kube_settings {
	struct vdi_http_client_options http; /* server NULL: no endpoint */
	const char		      *kubeconfig, *context;
	const char		      *wanted[VDI_KUBE_WANTED_MAX];
	struct vdi_texts	       kinds;
	vd_dur			       watch_timeout;
	/* Derived from the options; valid until vdi_kube_settings_fini. */
	struct vdi_kubeconfig	    config;
	struct vdi_kube_kinds	    loaded;
	struct vdi_exec_credential *exec; /* NULL: no credential program */
};

/* The formatter breaks rows of a table within a macro. */
/* clang-format off */
#define VDI_KUBE_OPTION_TABLE(settings) \
	{ 's', "server", VDI_OPTION_TEXT, "URL", \
	  "address of the Kubernetes API server: http:// or https://", &(settings)->http.server }, \
	{ 0, "kubeconfig", VDI_OPTION_TEXT, "FILE", \
	  "kubeconfig with server and credentials, as for kubectl", &(settings)->kubeconfig }, \
	{ 0, "context", VDI_OPTION_TEXT, "NAME", \
	  "with --kubeconfig: context to use (default: the current one)", &(settings)->context }, \
	{ 0, "token", VDI_OPTION_TEXT, "TOKEN", \
	  "bearer token for the server", &(settings)->http.token }, \
	{ 0, "cacert", VDI_OPTION_TEXT, "FILE", \
	  "CA bundle for verifying the server's certificate", &(settings)->http.ca_file }, \
	{ 0, "cert", VDI_OPTION_TEXT, "FILE", \
	  "client certificate for the server", &(settings)->http.cert_file }, \
	{ 0, "key", VDI_OPTION_TEXT, "FILE", \
	  "private key of the client certificate", &(settings)->http.key_file }, \
	{ 0, "insecure", VDI_OPTION_FLAG, NULL, \
	  "do not verify the server's certificate", &(settings)->http.insecure }, \
	{ 0, "watch-timeout", VDI_OPTION_DURATION, "DURATION", \
	  "duration of each watch request before it is reopened (default 10s)", \
	  &(settings)->watch_timeout }, \
	{ 0, "kind", VDI_OPTION_TEXTS, "KIND", \
	  "with --server or --kubeconfig: only this kind, such as pods or deployments.apps " \
	  "(may be repeated; default: all kinds)", \
	  &(settings)->kinds }
/* clang-format on */

/* Call before the options are parsed. */
void vdi_kube_settings_init(struct vdi_kube_settings *settings);
void vdi_kube_settings_fini(struct vdi_kube_settings *settings);
bool vdi_kube_settings_given(const struct vdi_kube_settings *settings);
/* Reads the kubeconfig and validates the combination of options. false: the error was reported, *ret_exit is
 * the exit status. */
bool vdi_kube_settings_check(const struct vdi_command *command, struct vdi_kube_settings *settings,
			     int *ret_exit);
/* Reads the server's kinds and creates the store. Blocks. */
VDI_MUST_USE vd_status vdi_kube_settings_open(const struct vdi_command *command,
					      struct vdi_kube_settings *settings, const struct vd_env *env,
					      bool whole_revisions, struct vd_store **ret_store,
					      struct vd_error *reterr);

#endif
