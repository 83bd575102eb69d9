/* Where the server is and what identifies the client, from the options, a kubeconfig or the pod.
 *
 * Any thread; blocks only to read files. */
#ifndef VDI_KUBE_CONFIG_H
#define VDI_KUBE_CONFIG_H

#include <vedette/kube.h>

#include "kubeconfig_read.h"

/* Where Kubernetes mounts token, ca.crt and namespace of a pod. */
#define VDI_KUBE_POD_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

/* Finds the configuration as struct vd_kube_options describes it, with the options' overrides. server has
 * no trailing slash, namespace_name is set. pod_folder: VDI_KUBE_POD_FOLDER, or another one in tests.
 * VD_NOT_FOUND: none, the message lists the places; VD_INVALID_ARGUMENT: the message names the file and
 * the entry; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_kube_config_find(const struct vd_kube_options *options, const char *pod_folder,
					    struct vdi_kubeconfig *ret_config, struct vd_error *reterr);

#endif
