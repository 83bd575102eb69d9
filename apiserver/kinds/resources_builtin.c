/* The built-in kinds: names, storage prefixes, selectable fields and the columns that kubectl prints.
 *
 * Mirrors kubernetes pkg/printers/internalversion/printers.go (columns), pkg/apis/core/v1/conversion.go
 * (field labels) and the storage prefixes of pkg/registry, three of which are historic: minions,
 * services/specs, services/endpoints. Object names are DNS subdomains unless a name_rule says otherwise
 * (pkg/apis, Validate<Kind>Name).
 */
#include "resources.h"

#define NAME_COLUMN                                                                                          \
	{                                                                                                    \
		"Name", "string", "name",                                                                    \
			"Name must be unique within a namespace. Is required when creating resources, "      \
			"although some resources may allow a "                                               \
			"client to request the generation of an appropriate name automatically.",            \
			0, VDI_CELL_PATH, ".metadata.name"                                                   \
	}
#define AGE_COLUMN                                                                                           \
	{                                                                                                    \
		"Age", "string", "",                                                                         \
			"CreationTimestamp is a timestamp representing the server time when this object "    \
			"was created.",                                                                      \
			0, VDI_CELL_AGE, ".metadata.creationTimestamp"                                       \
	}
#define COLUMN(name, type, priority, cell, path)                                                             \
	{                                                                                                    \
		name, type, "", "", priority, cell, path                                                     \
	}

static const struct vdi_column namespace_columns[] = {
	NAME_COLUMN,
	COLUMN("Status", "string", 0, VDI_CELL_PATH, ".status.phase"),
	AGE_COLUMN,
};
static const struct vdi_column node_columns[] = {
	NAME_COLUMN,
	COLUMN("Status", "string", 0, VDI_CELL_NODE_STATUS, ""),
	COLUMN("Roles", "string", 0, VDI_CELL_NODE_ROLES, ""),
	AGE_COLUMN,
	COLUMN("Version", "string", 0, VDI_CELL_PATH, ".status.nodeInfo.kubeletVersion"),
	COLUMN("Internal-IP", "string", 1, VDI_CELL_NODE_ADDRESS, "InternalIP"),
	COLUMN("External-IP", "string", 1, VDI_CELL_NODE_ADDRESS, "ExternalIP"),
	COLUMN("OS-Image", "string", 1, VDI_CELL_DEFAULT, ".status.nodeInfo.osImage|<unknown>"),
	COLUMN("Kernel-Version", "string", 1, VDI_CELL_DEFAULT, ".status.nodeInfo.kernelVersion|<unknown>"),
	COLUMN("Container-Runtime", "string", 1, VDI_CELL_DEFAULT,
	       ".status.nodeInfo.containerRuntimeVersion|<unknown>"),
};
static const struct vdi_column pod_columns[] = {
	NAME_COLUMN,
	COLUMN("Ready", "string", 0, VDI_CELL_POD_READY, ""),
	COLUMN("Status", "string", 0, VDI_CELL_POD_STATUS, ""),
	COLUMN("Restarts", "string", 0, VDI_CELL_POD_RESTARTS, ""),
	AGE_COLUMN,
	COLUMN("IP", "string", 1, VDI_CELL_POD_IP, ""),
	COLUMN("Node", "string", 1, VDI_CELL_DEFAULT, ".spec.nodeName|<none>"),
	COLUMN("Nominated Node", "string", 1, VDI_CELL_DEFAULT, ".status.nominatedNodeName|<none>"),
	COLUMN("Readiness Gates", "string", 1, VDI_CELL_POD_READINESS_GATES, ""),
};
static const struct vdi_column service_columns[] = {
	NAME_COLUMN,
	COLUMN("Type", "string", 0, VDI_CELL_PATH, ".spec.type"),
	COLUMN("Cluster-IP", "string", 0, VDI_CELL_DEFAULT, ".spec.clusterIP|<none>"),
	COLUMN("External-IP", "string", 0, VDI_CELL_SERVICE_EXTERNAL_IP, ""),
	COLUMN("Port(s)", "string", 0, VDI_CELL_SERVICE_PORTS, ""),
	AGE_COLUMN,
	COLUMN("Selector", "string", 1, VDI_CELL_SELECTOR, ".spec.selector"),
};
static const struct vdi_column endpoints_columns[] = {
	NAME_COLUMN,
	COLUMN("Endpoints", "string", 0, VDI_CELL_ENDPOINTS, ""),
	AGE_COLUMN,
};
static const struct vdi_column config_map_columns[] = {
	NAME_COLUMN,
	COLUMN("Data", "string", 0, VDI_CELL_COUNT, ".data+.binaryData"),
	AGE_COLUMN,
};
static const struct vdi_column secret_columns[] = {
	NAME_COLUMN,
	COLUMN("Type", "string", 0, VDI_CELL_DEFAULT, ".type|Opaque"),
	COLUMN("Data", "string", 0, VDI_CELL_COUNT, ".data"),
	AGE_COLUMN,
};
static const struct vdi_column service_account_columns[] = {
	NAME_COLUMN,
	COLUMN("Secrets", "string", 0, VDI_CELL_COUNT, ".secrets"),
	AGE_COLUMN,
};
static const struct vdi_column event_columns[] = {
	COLUMN("Last Seen", "string", 0, VDI_CELL_EVENT_LAST_SEEN, ""),
	COLUMN("Type", "string", 0, VDI_CELL_PATH, ".type"),
	COLUMN("Reason", "string", 0, VDI_CELL_PATH, ".reason"),
	COLUMN("Object", "string", 0, VDI_CELL_EVENT_OBJECT, ""),
	COLUMN("Subobject", "string", 1, VDI_CELL_PATH, ".involvedObject.fieldPath"),
	COLUMN("Source", "string", 1, VDI_CELL_EVENT_SOURCE, ""),
	COLUMN("Message", "string", 0, VDI_CELL_PATH, ".message"),
	COLUMN("First Seen", "string", 1, VDI_CELL_AGE, ".firstTimestamp"),
	COLUMN("Count", "string", 1, VDI_CELL_DEFAULT, ".count|1"),
	{ "Name", "string", "name", "", 1, VDI_CELL_PATH, ".metadata.name" },
};
static const struct vdi_column volume_columns[] = {
	NAME_COLUMN,
	COLUMN("Capacity", "string", 0, VDI_CELL_PATH, ".spec.capacity.storage"),
	COLUMN("Access Modes", "string", 0, VDI_CELL_ACCESS_MODES, ".spec.accessModes"),
	COLUMN("Reclaim Policy", "string", 0, VDI_CELL_PATH, ".spec.persistentVolumeReclaimPolicy"),
	COLUMN("Status", "string", 0, VDI_CELL_PATH, ".status.phase"),
	COLUMN("Claim", "string", 0, VDI_CELL_CLAIM, ""),
	COLUMN("StorageClass", "string", 0, VDI_CELL_PATH, ".spec.storageClassName"),
	COLUMN("VolumeAttributesClass", "string", 0, VDI_CELL_DEFAULT,
	       ".spec.volumeAttributesClassName|<unset>"),
	COLUMN("Reason", "string", 0, VDI_CELL_PATH, ".status.reason"),
	AGE_COLUMN,
	COLUMN("VolumeMode", "string", 1, VDI_CELL_DEFAULT, ".spec.volumeMode|<unset>"),
};
static const struct vdi_column claim_columns[] = {
	NAME_COLUMN,
	COLUMN("Status", "string", 0, VDI_CELL_PATH, ".status.phase"),
	COLUMN("Volume", "string", 0, VDI_CELL_PATH, ".spec.volumeName"),
	COLUMN("Capacity", "string", 0, VDI_CELL_PATH, ".status.capacity.storage"),
	COLUMN("Access Modes", "string", 0, VDI_CELL_ACCESS_MODES, ".status.accessModes"),
	COLUMN("StorageClass", "string", 0, VDI_CELL_PATH, ".spec.storageClassName"),
	COLUMN("VolumeAttributesClass", "string", 0, VDI_CELL_DEFAULT,
	       ".spec.volumeAttributesClassName|<unset>"),
	AGE_COLUMN,
	COLUMN("VolumeMode", "string", 1, VDI_CELL_DEFAULT, ".spec.volumeMode|<unset>"),
};
static const struct vdi_column deployment_columns[] = {
	NAME_COLUMN,
	COLUMN("Ready", "string", 0, VDI_CELL_READY_OF, ".status.readyReplicas/.spec.replicas"),
	COLUMN("Up-to-date", "string", 0, VDI_CELL_DEFAULT, ".status.updatedReplicas|0"),
	COLUMN("Available", "string", 0, VDI_CELL_DEFAULT, ".status.availableReplicas|0"),
	AGE_COLUMN,
	COLUMN("Containers", "string", 1, VDI_CELL_CONTAINERS, ".spec.template.spec"),
	COLUMN("Images", "string", 1, VDI_CELL_IMAGES, ".spec.template.spec"),
	COLUMN("Selector", "string", 1, VDI_CELL_SELECTOR, ".spec.selector"),
};
static const struct vdi_column replica_set_columns[] = {
	NAME_COLUMN,
	COLUMN("Desired", "integer", 0, VDI_CELL_DEFAULT, ".spec.replicas|1"),
	COLUMN("Current", "integer", 0, VDI_CELL_DEFAULT, ".status.replicas|0"),
	COLUMN("Ready", "integer", 0, VDI_CELL_DEFAULT, ".status.readyReplicas|0"),
	AGE_COLUMN,
	COLUMN("Containers", "string", 1, VDI_CELL_CONTAINERS, ".spec.template.spec"),
	COLUMN("Images", "string", 1, VDI_CELL_IMAGES, ".spec.template.spec"),
	COLUMN("Selector", "string", 1, VDI_CELL_SELECTOR, ".spec.selector"),
};
static const struct vdi_column stateful_set_columns[] = {
	NAME_COLUMN,
	COLUMN("Ready", "string", 0, VDI_CELL_READY_OF, ".status.readyReplicas/.spec.replicas"),
	AGE_COLUMN,
	COLUMN("Containers", "string", 1, VDI_CELL_CONTAINERS, ".spec.template.spec"),
	COLUMN("Images", "string", 1, VDI_CELL_IMAGES, ".spec.template.spec"),
};
static const struct vdi_column daemon_set_columns[] = {
	NAME_COLUMN,
	COLUMN("Desired", "integer", 0, VDI_CELL_DEFAULT, ".status.desiredNumberScheduled|0"),
	COLUMN("Current", "integer", 0, VDI_CELL_DEFAULT, ".status.currentNumberScheduled|0"),
	COLUMN("Ready", "integer", 0, VDI_CELL_DEFAULT, ".status.numberReady|0"),
	COLUMN("Up-to-date", "integer", 0, VDI_CELL_DEFAULT, ".status.updatedNumberScheduled|0"),
	COLUMN("Available", "integer", 0, VDI_CELL_DEFAULT, ".status.numberAvailable|0"),
	COLUMN("Node Selector", "string", 0, VDI_CELL_SELECTOR, ".spec.template.spec.nodeSelector"),
	AGE_COLUMN,
	COLUMN("Containers", "string", 1, VDI_CELL_CONTAINERS, ".spec.template.spec"),
	COLUMN("Images", "string", 1, VDI_CELL_IMAGES, ".spec.template.spec"),
	COLUMN("Selector", "string", 1, VDI_CELL_SELECTOR, ".spec.selector"),
};
static const struct vdi_column job_columns[] = {
	NAME_COLUMN,
	COLUMN("Status", "string", 0, VDI_CELL_JOB_STATUS, ""),
	COLUMN("Completions", "string", 0, VDI_CELL_JOB_COMPLETIONS, ""),
	COLUMN("Duration", "string", 0, VDI_CELL_JOB_DURATION, ""),
	AGE_COLUMN,
	COLUMN("Containers", "string", 1, VDI_CELL_CONTAINERS, ".spec.template.spec"),
	COLUMN("Images", "string", 1, VDI_CELL_IMAGES, ".spec.template.spec"),
	COLUMN("Selector", "string", 1, VDI_CELL_SELECTOR, ".spec.selector"),
};
static const struct vdi_column cron_job_columns[] = {
	NAME_COLUMN,
	COLUMN("Schedule", "string", 0, VDI_CELL_PATH, ".spec.schedule"),
	COLUMN("Timezone", "string", 0, VDI_CELL_DEFAULT, ".spec.timeZone|<none>"),
	COLUMN("Suspend", "string", 0, VDI_CELL_DEFAULT, ".spec.suspend|False"),
	COLUMN("Active", "integer", 0, VDI_CELL_COUNT, ".status.active"),
	COLUMN("Last Schedule", "string", 0, VDI_CELL_AGE, ".status.lastScheduleTime"),
	AGE_COLUMN,
	COLUMN("Containers", "string", 1, VDI_CELL_CONTAINERS, ".spec.jobTemplate.spec.template.spec"),
	COLUMN("Images", "string", 1, VDI_CELL_IMAGES, ".spec.jobTemplate.spec.template.spec"),
	COLUMN("Selector", "string", 1, VDI_CELL_SELECTOR, ".spec.jobTemplate.spec.selector"),
};
static const struct vdi_column lease_columns[] = {
	NAME_COLUMN,
	COLUMN("Holder", "string", 0, VDI_CELL_PATH, ".spec.holderIdentity"),
	AGE_COLUMN,
};
static const struct vdi_column endpoint_slice_columns[] = {
	NAME_COLUMN,
	COLUMN("AddressType", "string", 0, VDI_CELL_PATH, ".addressType"),
	COLUMN("Ports", "string", 0, VDI_CELL_ENDPOINT_SLICE_PORTS, ""),
	COLUMN("Endpoints", "string", 0, VDI_CELL_ENDPOINT_SLICE_ADDRESSES, ""),
	AGE_COLUMN,
};
static const struct vdi_column crd_columns[] = {
	NAME_COLUMN,
	{ "Created At", "date", "", "", 0, VDI_CELL_PATH, ".metadata.creationTimestamp" },
};

static const struct vd_field_spec namespace_fields[] = { { "status.phase", ".status.phase", NULL } };
static const struct vd_field_spec node_fields[] = { { "spec.unschedulable", ".spec.unschedulable",
						      "false" } };
static const struct vd_field_spec pod_fields[] = {
	{ "spec.nodeName", ".spec.nodeName", NULL },
	{ "status.phase", ".status.phase", NULL },
	{ "spec.serviceAccountName", ".spec.serviceAccountName", NULL },
	{ "spec.restartPolicy", ".spec.restartPolicy", NULL },
	{ "spec.schedulerName", ".spec.schedulerName", NULL },
	{ "spec.hostNetwork", ".spec.hostNetwork", "false" },
	{ "status.podIP", ".status.podIP", NULL },
	{ "status.nominatedNodeName", ".status.nominatedNodeName", NULL },
};
static const struct vd_field_spec service_fields[] = {
	{ "spec.clusterIP", ".spec.clusterIP", NULL },
	{ "spec.type", ".spec.type", NULL },
};
static const struct vd_field_spec secret_fields[] = { { "type", ".type", "Opaque" } };
static const struct vd_field_spec event_fields[] = {
	{ "involvedObject.kind", ".involvedObject.kind", NULL },
	{ "involvedObject.namespace", ".involvedObject.namespace", NULL },
	{ "involvedObject.name", ".involvedObject.name", NULL },
	{ "involvedObject.uid", ".involvedObject.uid", NULL },
	{ "involvedObject.apiVersion", ".involvedObject.apiVersion", NULL },
	{ "involvedObject.resourceVersion", ".involvedObject.resourceVersion", NULL },
	{ "involvedObject.fieldPath", ".involvedObject.fieldPath", NULL },
	{ "reason", ".reason", NULL },
	{ "reportingComponent", ".reportingComponent", NULL },
	{ "source", ".source.component", NULL },
	{ "type", ".type", NULL },
};
static const struct vd_field_spec replica_set_fields[] = { { "status.replicas", ".status.replicas", "0" } };
static const struct vd_field_spec job_fields[] = { { "status.successful", ".status.succeeded", "0" } };

#define COLUMNS(array) .columns = array, .column_count = VDI_ARRAY_SIZE(array)
#define FIELDS(array) .fields = array, .field_count = VDI_ARRAY_SIZE(array)
#define KIND(group_, kind_, plural_, singular_, prefix_)                                                     \
	.group = group_, .version = "v1", .kind = kind_, .list_kind = kind_ "List", .plural = plural_,       \
	.singular = singular_, .key_prefix = "/registry/" prefix_ "/", .built_in = true

const struct vdi_resource vdi_resources_built_in[] = {
	{ KIND("", "ConfigMap", "configmaps", "configmap", "configmaps"), .short_names = { "cm" },
	  .namespaced = true, COLUMNS(config_map_columns) },
	{ KIND("", "Endpoints", "endpoints", "endpoints", "services/endpoints"), .short_names = { "ep" },
	  .namespaced = true, COLUMNS(endpoints_columns) },
	{ KIND("", "Event", "events", "event", "events"), .short_names = { "ev" }, .namespaced = true,
	  .name_rule = VDI_NAME_PATH_SEGMENT, .ttl_s = 3600, COLUMNS(event_columns), FIELDS(event_fields) },
	{ KIND("", "Namespace", "namespaces", "namespace", "namespaces"), .short_names = { "ns" },
	  .name_rule = VDI_NAME_LABEL, .has_status = true, .initial_phase = "Active",
	  COLUMNS(namespace_columns), FIELDS(namespace_fields) },
	{ KIND("", "Node", "nodes", "node", "minions"), .short_names = { "no" }, .has_status = true,
	  .keeps_status = true, COLUMNS(node_columns), FIELDS(node_fields) },
	{ KIND("", "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim",
	       "persistentvolumeclaims"),
	  .short_names = { "pvc" }, .namespaced = true, .has_status = true, .initial_phase = "Pending",
	  COLUMNS(claim_columns) },
	{ KIND("", "PersistentVolume", "persistentvolumes", "persistentvolume", "persistentvolumes"),
	  .short_names = { "pv" }, .has_status = true, .initial_phase = "Pending", COLUMNS(volume_columns) },
	{ KIND("", "Pod", "pods", "pod", "pods"), .short_names = { "po" }, .categories = { "all" },
	  .namespaced = true, .has_status = true, .has_generation = true, .initial_phase = "Pending",
	  .trigger = "spec.nodeName", COLUMNS(pod_columns), FIELDS(pod_fields) },
	{ KIND("", "Secret", "secrets", "secret", "secrets"), .namespaced = true, COLUMNS(secret_columns),
	  FIELDS(secret_fields) },
	{ KIND("", "ServiceAccount", "serviceaccounts", "serviceaccount", "serviceaccounts"),
	  .short_names = { "sa" }, .namespaced = true, COLUMNS(service_account_columns) },
	{ KIND("", "Service", "services", "service", "services/specs"), .short_names = { "svc" },
	  .categories = { "all" }, .namespaced = true, .name_rule = VDI_NAME_LABEL, .has_status = true,
	  COLUMNS(service_columns), FIELDS(service_fields) },
	{ KIND("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions",
	       "customresourcedefinition", "apiextensions.k8s.io/customresourcedefinitions"),
	  .short_names = { "crd", "crds" }, .categories = { "api-extensions" }, .has_status = true,
	  .has_generation = true, COLUMNS(crd_columns) },
	{ KIND("apps", "DaemonSet", "daemonsets", "daemonset", "daemonsets"), .short_names = { "ds" },
	  .categories = { "all" }, .namespaced = true, .has_status = true, .has_generation = true,
	  COLUMNS(daemon_set_columns) },
	{ KIND("apps", "Deployment", "deployments", "deployment", "deployments"), .short_names = { "deploy" },
	  .categories = { "all" }, .namespaced = true, .has_status = true, .has_generation = true,
	  .has_scale = true, COLUMNS(deployment_columns) },
	{ KIND("apps", "ReplicaSet", "replicasets", "replicaset", "replicasets"), .short_names = { "rs" },
	  .categories = { "all" }, .namespaced = true, .has_status = true, .has_generation = true,
	  .has_scale = true, COLUMNS(replica_set_columns), FIELDS(replica_set_fields) },
	{ KIND("apps", "StatefulSet", "statefulsets", "statefulset", "statefulsets"),
	  .short_names = { "sts" }, .categories = { "all" }, .namespaced = true, .name_rule = VDI_NAME_LABEL,
	  .has_status = true, .has_generation = true, .has_scale = true, COLUMNS(stateful_set_columns) },
	{ KIND("batch", "CronJob", "cronjobs", "cronjob", "cronjobs"), .short_names = { "cj" },
	  .categories = { "all" }, .namespaced = true, .name_rule = VDI_NAME_CRON_JOB, .has_status = true,
	  .has_generation = true, COLUMNS(cron_job_columns) },
	{ KIND("batch", "Job", "jobs", "job", "jobs"), .categories = { "all" }, .namespaced = true,
	  .has_status = true, .has_generation = true, COLUMNS(job_columns), FIELDS(job_fields) },
	{ KIND("coordination.k8s.io", "Lease", "leases", "lease", "leases"), .namespaced = true,
	  .needs_version = true, COLUMNS(lease_columns) },
	{ KIND("discovery.k8s.io", "EndpointSlice", "endpointslices", "endpointslice", "endpointslices"),
	  .namespaced = true, .has_generation = true, COLUMNS(endpoint_slice_columns) },
};
const size_t vdi_resources_built_in_count = VDI_ARRAY_SIZE(vdi_resources_built_in);
