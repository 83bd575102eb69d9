package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// matrixRule is a rule of the policy as this file reads it, not as the server does.
type matrixRule struct {
	Users, Groups, Verbs, APIGroups, Resources, Namespaces, ResourceNames []string
}

func (r matrixRule) covers(user string, groups []string, a matrixAccess) bool {
	who := slices.Contains(r.Users, user)
	for _, group := range groups {
		who = who || slices.Contains(r.Groups, group)
	}
	has := func(list []string, word string) bool {
		return slices.Contains(list, word) || slices.Contains(list, "*")
	}
	resource := a.resource
	if a.subresource != "" {
		resource += "/" + a.subresource
	}
	return who && has(r.Verbs, a.verb) && has(r.Resources, resource) && (len(r.APIGroups) == 0 || has(r.APIGroups, a.group)) &&
		(len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, a.namespace)) && (len(r.ResourceNames) == 0 || (a.name != "" && slices.Contains(r.ResourceNames, a.name)))
}

type matrixAccess struct{ verb, group, resource, subresource, namespace, name string }

// everyEndpoint: verbs x resources x subresources x namespaces x subjects, against a second reading of the policy. What is allowed may fail for another
// reason (there is no such object); what is not allowed is 403 and names user, verb and resource; who shows nothing is 401.
func (t *securityTest) everyEndpoint() {
	var policy struct{ Rules []matrixRule }
	if err := json.Unmarshal([]byte(securityPolicy), &policy); !t.report.check(err == nil, "setup", "%v", err) {
		return
	}
	call := t.caller()
	definition := definition("things", "Thing", "matrix.example.com", "Namespaced", oneVersion(`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`,
		`,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}}`), "")
	code, body := call("token-root", "POST", definitionsPath, definition, "application/json", nil)
	t.report.check(code == 201, "setup", "%d %s", code, body)
	pollUntil(securityPatience, func() bool {
		code, _ = call("token-root", "GET", "/apis/matrix.example.com/v1/things", "", "", nil)
		return code == 200
	})
	t.report.check(code == 200, "setup", "the new kind: %d", code)
	resources := []struct {
		path, group, plural string
		namespaced          bool
	}{
		{"/api/v1", "", "configmaps", true}, {"/api/v1", "", "secrets", true}, {"/api/v1", "", "pods", true}, {"/api/v1", "", "nodes", false}, {"/api/v1", "", "namespaces", false},
		{"/apis/apps/v1", "apps", "deployments", true}, {"/apis/coordination.k8s.io/v1", "coordination.k8s.io", "leases", true},
		{"/apis/apiextensions.k8s.io/v1", "apiextensions.k8s.io", "customresourcedefinitions", false}, {"/apis/matrix.example.com/v1", "matrix.example.com", "things", true},
	}
	subjects := []struct {
		token, user string
		groups      []string
	}{
		{"token-root", "root", nil}, {"token-ann", "ann", []string{"dev", "ops"}}, {"token-bob", "bob", nil}, {"token-kim", "kim", nil}, {"", "", nil},
	}
	verbs := []struct {
		verb, method string
		one          bool
		query        string
	}{
		{"get", "GET", true, ""}, {"list", "GET", false, ""}, {"watch", "GET", false, "?watch=1&timeoutSeconds=1&resourceVersion=abc"}, {"create", "POST", false, "?dryRun=All"}, {"update", "PUT", true, "?dryRun=All"},
		{"patch", "PATCH", true, "?dryRun=All"}, {"delete", "DELETE", true, "?dryRun=All"}, {"deletecollection", "DELETE", false, "?dryRun=All"},
	}
	rows, allowed := 0, 0
	for _, resource := range resources {
		for _, namespace := range []string{"default", "kube-system", ""} {
			if !resource.namespaced && namespace != "" {
				continue
			}
			for _, subresource := range []string{"", "status", "scale", "finalize"} {
				for _, name := range []string{"mine", "other"} {
					for _, v := range verbs {
						if resource.plural == "namespaces" && subresource == "scale" { // that is a collection "scale" in a namespace
							continue
						}
						if (!v.one && (subresource != "" || name == "other")) || (v.one && resource.namespaced && namespace == "") {
							continue
						}
						access := matrixAccess{verb: v.verb, group: resource.group, resource: resource.plural, subresource: subresource, namespace: namespace}
						path := resource.path
						if namespace != "" {
							path += "/namespaces/" + namespace
						}
						path += "/" + resource.plural
						if v.one {
							path += "/" + name
							access.name = name
							if resource.plural == "namespaces" { // a namespace is in itself
								access.namespace = name
							}
							if subresource != "" {
								path += "/" + subresource
							}
						}
						for _, subject := range subjects {
							may := subject.user == "root"
							for _, rule := range policy.Rules {
								may = may || rule.covers(subject.user, subject.groups, access)
							}
							code, body := call(subject.token, v.method, path+v.query, "{}", "application/merge-patch+json", nil)
							said := fmt.Sprintf(`User \"%s\" cannot %s resource \"%s`, subject.user, v.verb, resource.plural)
							refused := code == 403 && strings.Contains(string(body), said)
							what := fmt.Sprintf("%s %s %s", subject.user, v.method, path+v.query)
							rows++
							switch {
							case subject.token == "":
								t.report.check(code == 401, "401", "%s: %d", what, code)
							case may:
								allowed++
								t.report.check(!refused && code != 401, "policy", "%s is refused: %d %.300s", what, code, body)
							default:
								t.report.check(refused, "policy", "%s is not refused: %d %.300s", what, code, body)
							}
						}
					}
				}
			}
		}
	}
	t.report.figure("matrixRows", rows)
	t.report.figure("matrixAllowed", allowed)
	code, _ = call("token-root", "DELETE", definitionsPath+"/things.matrix.example.com", "", "", nil)
	t.report.check(code == 200, "setup", "%d", code)
}

// impersonation is not served, and never passed over: whoever asks for it, wherever, is refused.
func (t *securityTest) impersonation() {
	call := t.caller()
	for _, header := range [][2]string{{"Impersonate-User", "bob"}, {"impersonate-user", "bob"}, {"Impersonate-Group", "system:masters"}, {"Impersonate-Uid", "1"}, {"Impersonate-Extra-Scopes", "view"}} {
		for token, user := range map[string]string{"token-root": "root", "token-ann": "ann", "token-bob": "bob"} {
			for _, path := range []string{"/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets/s", "/version", "/api", "/metrics", "/openapi/v3"} {
				code, body := call(token, "GET", path, "", "", header[:])
				t.report.check(code == 403 && strings.Contains(string(body), fmt.Sprintf(`User \"%s\" cannot `, user)), "impersonation", "%s %v %s: %d %.200s", token, header, path, code, body)
			}
			code, body := call(token, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`, "application/json", header[:])
			t.report.check(code == 403 && strings.Contains(string(body), "cannot impersonate"), "impersonation", "can-i of %s with %v: %d %.200s", token, header, code, body)
		}
		code, _ := call("", "GET", "/api/v1/namespaces/default/configmaps", "", "", header[:])
		t.report.check(code == 401, "impersonation", "of nobody: %d", code)
	}
}

// caller sends single requests over kept connections.
func (t *securityTest) caller() func(token, method, path, body, contentType string, header []string) (int, []byte) {
	config := t.certificates.client.Clone()
	config.ServerName, config.Certificates = "localhost", nil
	client := &http.Client{Timeout: securityPatience, Transport: &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 4}}
	return func(token, method, path, body, contentType string, header []string) (int, []byte) {
		request, err := http.NewRequest(method, t.server.url+path, bytes.NewReader([]byte(body)))
		if err != nil {
			t.report.violation("setup", "%v", err)
			return 0, nil
		}
		if method == "GET" {
			request.Body = nil
			request.ContentLength = 0
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		if contentType != "" && method != "GET" {
			request.Header.Set("Content-Type", map[bool]string{true: contentType, false: "application/json"}[method == "PATCH"])
		}
		if header != nil {
			request.Header[header[0]] = []string{header[1]}
		}
		response, err := client.Do(request)
		if !t.report.check(err == nil, "answer", "%s %s: %v", method, path, err) {
			return 0, nil
		}
		defer response.Body.Close()
		answer, _ := io.ReadAll(response.Body)
		return response.StatusCode, answer
	}
}
