/* Who may do what: a file of rules, each of which allows something.
 *
 *   {"rules": [{"users": ["ann"], "groups": ["dev"],
 *               "verbs": ["get", "list", "watch"], "apiGroups": ["", "apps"], "resources": ["pods", "deployments/scale"],
 *               "resourceNames": ["a"], "namespaces": ["team-a"], "nonResourceURLs": ["/metrics", "/page*"]}]}
 *
 * The words are those of Kubernetes' roles, and mean the same; "*" is everything. A rule is for the users or
 * groups that it names (at least one), and covers resources (with verbs; apiGroups, resourceNames and
 * namespaces left out: all), paths, or both. What no rule allows is forbidden. A list or watch of all
 * namespaces needs a rule for all namespaces; so do kinds without namespaces. Never changed once made: any
 * thread.
 */
#ifndef VDI_POLICY_H
#define VDI_POLICY_H

#include "base.h"
#include "identity.h"
#include "out.h"

struct vdi_policy;

/* What a request wants. Slices are lent. */
struct vdi_access {
	struct vd_bytes verb;
	bool		is_path; /* then only path counts */
	struct vd_bytes path;
	struct vd_bytes group;
	struct vd_bytes resource;
	struct vd_bytes subresource;
	struct vd_bytes name; /* empty: of a collection */
	struct vd_bytes namespace_name;
};

/* VD_INVALID: the message says where. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_policy_parse(struct vd_bytes json, struct vdi_policy **ret_policy,
					struct vd_error *reterr);
/* NULL is fine; returns NULL. */
struct vdi_policy *vdi_policy_free(struct vdi_policy *policy);
/* policy NULL: who was authenticated may do everything. system:masters always may. Everybody may ask for
 * health and version, as upstream. */
bool vdi_policy_allows(const struct vdi_policy *policy, const struct vdi_identity *identity,
		       const struct vdi_access *access);
/* The members resourceRules and nonResourceRules of a SelfSubjectRulesReview's status, for one namespace. */
void vdi_policy_write_rules(struct vdi_out *out, const struct vdi_policy *policy,
			    const struct vdi_identity *identity, struct vd_bytes namespace_name);

/* `User "ann" cannot list resource "pods" in API group "" in the namespace "a"`, as upstream. */
void vdi_access_say(const struct vdi_access *access, const char *user, char *buffer, size_t size);

#endif
