/* Authorization policy: a file of rules, each of which allows something.
 *
 *   {"rules": [{"users": ["ann"], "groups": ["dev"],
 *               "verbs": ["get", "list", "watch"], "apiGroups": ["", "apps"],
 *               "resources": ["pods", "deployments/scale"], "resourceNames": ["a"],
 *               "namespaces": ["team-a"], "nonResourceURLs": ["/metrics", "/page*"]}]}
 *
 * The members mean the same as in RBAC rules; "*" matches everything. A rule applies to the users and groups
 * that it lists (at least one), and allows its verbs on resources, on paths (nonResourceURLs), or on both.
 * Without apiGroups, resourceNames or namespaces it covers all of them. A request that no rule allows is
 * forbidden. A list or watch of all namespaces needs a rule for all namespaces; so do cluster-scoped kinds.
 * Immutable once parsed: any thread.
 */
#ifndef VDI_POLICY_H
#define VDI_POLICY_H

#include "base.h"
#include "identity.h"
#include "out.h"

struct vdi_policy;

/* Attributes of a request, for authorization. Slices are borrowed. */
struct vdi_access {
	struct vd_bytes verb;
	bool		is_path; /* if set, only verb and path count */
	struct vd_bytes path;
	struct vd_bytes group;
	struct vd_bytes resource;
	struct vd_bytes subresource;
	struct vd_bytes name; /* empty: a collection */
	struct vd_bytes namespace_name;
};

/* VD_INVALID: the message names the rule and the member. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_policy_parse(struct vd_bytes json, struct vdi_policy **ret_policy,
					struct vd_error *reterr);
/* NULL is fine; returns NULL. */
struct vdi_policy *vdi_policy_free(struct vdi_policy *policy);
/* Returns true if identity may make the request. policy NULL: every authenticated identity may do everything.
 * system:masters always may. Every identity may get health and version, as upstream. */
bool vdi_policy_allows(const struct vdi_policy *policy, const struct vdi_identity *identity,
		       const struct vdi_access *access);
/* Writes the members resourceRules and nonResourceRules of a SelfSubjectRulesReview's status, for one
 * namespace. */
void vdi_policy_write_rules(struct vdi_out *out, const struct vdi_policy *policy,
			    const struct vdi_identity *identity, struct vd_bytes namespace_name);

/* Writes upstream's sentence: `User "ann" cannot list resource "pods" in API group "" in the namespace
 * "a"`. */
void vdi_access_explain(const struct vdi_access *access, const char *user, char *buffer, size_t size);

#endif
