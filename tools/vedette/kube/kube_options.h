/* The options for a Kubernetes API server and its credentials, the same for all commands; and those of
 * commands that read all kinds of a server as a store. */
#ifndef VDI_KUBE_OPTIONS_H
#define VDI_KUBE_OPTIONS_H

#include "command_line.h"
#include "endpoint_store.h"
#include "kube_session.h"

#define VDI_KUBE_WANTED_MAX 128

struct vdi_kube_settings {
	struct vd_kube_options client;
	const char	      *wanted[VDI_KUBE_WANTED_MAX];
	struct vdi_texts       kinds;
	vd_dur		       watch_timeout;
	/* Set by vdi_kube_settings_open; valid until vdi_kube_settings_fini. */
	struct vdi_kube_session	 *session;
	struct vdi_endpoint_kinds loaded;
};

/* The formatter breaks rows of a table within a macro. */
/* clang-format off */
#define VDI_KUBE_OPTION_TABLE(settings) \
	{ 's', "server", VDI_OPTION_TEXT, "URL", \
	  "address of the Kubernetes API server: http:// or https://", &(settings)->client.server }, \
	{ 0, "kubeconfig", VDI_OPTION_TEXT, "FILE", \
	  "kubeconfig with server and credentials, as for kubectl", &(settings)->client.kubeconfig }, \
	{ 0, "context", VDI_OPTION_TEXT, "NAME", \
	  "with --kubeconfig: context to use (default: the current one)", &(settings)->client.context }, \
	{ 0, "token", VDI_OPTION_TEXT, "TOKEN", \
	  "bearer token for the server", &(settings)->client.token }, \
	{ 0, "token-file", VDI_OPTION_TEXT, "FILE", \
	  "file with the bearer token; read again when it changes", &(settings)->client.token_path }, \
	{ 0, "cacert", VDI_OPTION_TEXT, "FILE", \
	  "CA bundle for verifying the server's certificate", &(settings)->client.ca_path }, \
	{ 0, "cert", VDI_OPTION_TEXT, "FILE", \
	  "client certificate for the server", &(settings)->client.cert_path }, \
	{ 0, "key", VDI_OPTION_TEXT, "FILE", \
	  "private key of the client certificate", &(settings)->client.key_path }, \
	{ 0, "insecure", VDI_OPTION_FLAG, NULL, \
	  "do not verify the server's certificate; send tokens over http://", &(settings)->client.insecure }
#define VDI_KUBE_KINDS_OPTION_TABLE(settings) \
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
/* Closes the session; call it before the env is freed and after the store was closed. */
void vdi_kube_settings_fini(struct vdi_kube_settings *settings);
bool vdi_kube_settings_given(const struct vdi_kube_settings *settings);
/* Validates the combination of options. false: the error was reported, *ret_exit is the exit status. */
bool vdi_kube_settings_check(const struct vdi_command *command, const struct vdi_kube_settings *settings,
			     int *ret_exit);
/* Opens the session, reads the server's kinds and creates the store. Blocks. */
VDI_MUST_USE vd_status vdi_kube_settings_open(const struct vdi_command *command,
					      struct vdi_kube_settings *settings, const struct vd_env *env,
					      bool whole_revisions, struct vd_store **ret_store,
					      struct vd_error *reterr);

/* Returns the exit status for an error of vdi_kube_settings_open: of usage if an option is wrong. */
int vdi_kube_settings_exit(const struct vdi_kube_settings *settings, vd_status status);

#endif
