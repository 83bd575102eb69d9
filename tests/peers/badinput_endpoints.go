package main

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// Every endpoint with what it must refuse: request -> code, reason and, where upstream's words are known, message. The rows were tried on a kube-apiserver
// 1.36 (--upstream); those marked ours differ on purpose, mostly because a path or a method leads nowhere there and is answered in plain text, or
// because Go's decoder lets something pass.

// endpointRow is one request that must be refused.
type endpointRow struct {
	rule   string
	method string
	target string
	body   string
	kind   string // Content-Type; "" is JSON, "-" none
	accept string
	want   refusal
	ours   bool
}

var reasonOf = map[int]string{400: "BadRequest", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 406: "NotAcceptable", 409: "Conflict", 410: "Expired",
	415: "UnsupportedMediaType", 422: "Invalid"}

func row(rule string, code int, method, target, body string) endpointRow {
	return endpointRow{rule: rule, method: method, target: target, body: body, want: refusal{code: code, reason: reasonOf[code]}}
}

func (r endpointRow) as(contentType string) endpointRow   { r.kind = contentType; return r }
func (r endpointRow) accepting(accept string) endpointRow { r.accept = accept; return r }
func (r endpointRow) says(message string) endpointRow     { r.want.message = message; return r }
func (r endpointRow) has(part string) endpointRow         { r.want.contains = part; return r }
func (r endpointRow) only() endpointRow                   { r.ours = true; return r }
func (r endpointRow) reason(reason string) endpointRow    { r.want.reason = reason; return r }

// either: also these codes, which is upstream's; ours is the first.
func (r endpointRow) either(codes ...int) endpointRow {
	r.want.codes, r.want.code, r.want.reason = append(codes, r.want.code), 0, ""
	return r
}

const (
	mergePatch     = "application/merge-patch+json"
	jsonPatch      = "application/json-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
	protobufType   = "application/vnd.kubernetes.protobuf"
)

const (
	thingsPath      = "/apis/bad.example.com/v1/namespaces/" + badNamespace + "/things"
	thingPath       = thingsPath + "/t"
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	definitionPath  = definitionsPath + "/things.bad.example.com"
	namespacePath   = "/api/v1/namespaces/" + badNamespace
	deploymentsPath = "/apis/apps/v1/namespaces/" + badNamespace + "/deployments"
	deploymentPath  = deploymentsPath + "/d"
)

func (b *badInput) try(rows []endpointRow) {
	for _, r := range rows {
		if r.ours && b.upstream {
			continue
		}
		headers := []string{}
		if r.kind == "" && r.body != "" {
			headers = append(headers, jsonType)
		} else if r.kind != "" && r.kind != "-" {
			headers = append(headers, "Content-Type: "+r.kind)
		}
		if r.accept != "" {
			headers = append(headers, "Accept: "+r.accept)
		}
		if !b.upstream && len(r.want.codes) > 1 { // what stands last is ours
			r.want.code = r.want.codes[len(r.want.codes)-1]
			r.want.reason = reasonOf[r.want.code]
		}
		b.refused(r.rule, r.want, r.method, r.target, r.body, headers...)
		b.rowCount++
	}
}

// definition is one version of a kind, with more in its spec.
func definition(plural, kind, group, scope, versions, more string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.%s"},`+
		`"spec":{"group":"%s","scope":"%s","names":{"plural":"%s","kind":"%s"},"versions":%s%s}}`, plural, group, group, scope, plural, kind, versions, more)
}

func oneVersion(schema, more string) string {
	return `[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + schema + `}` + more + `}]`
}

func thing(name, metadata, more string) string {
	return fmt.Sprintf(`{"apiVersion":"bad.example.com/v1","kind":"Thing","metadata":{"name":"%s"%s}%s}`, name, metadata, more)
}

// prepareEndpoints makes what the rows are about: a kind with a schema, a status and a scale, an object of it, and a deployment. False: it did not work.
func (b *badInput) prepareEndpoints() bool {
	schema := `{"type":"object","properties":{"spec":{"type":"object","properties":{"replicas":{"type":"integer","minimum":0},"text":{"type":"string","maxLength":5},` +
		`"list":{"type":"array","items":{"type":"string"}}}},"status":{"type":"object","properties":{"replicas":{"type":"integer"},"phase":{"type":"string"}}}}}`
	versions := oneVersion(schema, `,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}}`)
	versions = strings.TrimSuffix(versions, "]") + `,{"name":"v2","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]`
	b.wants(201, "POST", definitionsPath, definition("things", "Thing", "bad.example.com", "Namespaced", versions, ""), jsonType)
	made := 0
	pollUntil(2*time.Minute, func() bool { // until the new kind is served
		response, err := b.client.do(rawRequest{method: "POST", target: thingsPath, headers: []string{jsonType}, body: []byte(thing("t", "", `,"spec":{"replicas":1}`))})
		if !b.report.check(err == nil, "setup", "%v", err) {
			return true
		}
		made = response.status
		return made == 201
	})
	if b.report.violated() {
		return false
	}
	b.wants(201, "POST", deploymentsPath, `{"metadata":{"name":"d"},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},`+
		`"spec":{"containers":[{"name":"c","image":"i"}]}}}}`, jsonType)
	return b.report.check(made == 201, "setup", "an object of a new kind: %d", made)
}

// endpoints are refused what is wrong, and nothing of it has changed anything.
func (b *badInput) endpoints() {
	if !b.prepareEndpoints() {
		return
	}
	uids := func() (text string) {
		for _, path := range []string{badPath + "/w", thingPath, definitionPath, namespacePath, deploymentPath} {
			decoded := b.wants(200, "GET", path, "")
			text += path + " " + digString(decoded, "metadata", "uid")
			text += fmt.Sprint(" ", dig(decoded, "metadata", "generation"), dig(decoded, "metadata", "deletionTimestamp"), dig(decoded, "metadata", "labels"), dig(decoded, "data"), "\n")
		}
		return text
	}
	before := uids()
	for _, rows := range []struct {
		name string
		rows []endpointRow
	}{
		{"namespaces", b.namespaceRows()}, {"definitions", b.definitionRows()}, {"custom kinds", b.customRows()}, {"status and scale", b.subresourceRows()},
		{"delete options", b.deleteRows()}, {"reviews", b.reviewRows()}, {"documents", b.documentRows()}, {"options of lists and watches", b.optionRows()},
		{"pages", b.pageRows()}, {"names", b.nameRows()}, {"methods", b.methodRows()}, {"media types", b.mediaRows()}, {"patches", b.patchRows()},
		{"options of writes", b.writeOptionRows()},
	} {
		b.try(rows.rows)
		after := uids()
		b.report.check(after == before, "R-610", "after refused requests on %s:\n%s instead of\n%s", rows.name, after, before)
	}
	b.report.figure("endpointRows", b.rowCount)
	b.wants(200, "DELETE", thingPath, "")
	b.wants(200, "DELETE", deploymentPath, `{"propagationPolicy":"Background"}`, jsonType)
	b.wants(200, "DELETE", definitionPath, "")
}

func (b *badInput) namespaceRows() (rows []endpointRow) {
	finalize := namespacePath + "/finalize"
	body := func(metadata, more string) string {
		return `{"apiVersion":"v1","kind":"Namespace","metadata":{` + metadata + `}` + more + `}`
	}
	named := `"name":"` + badNamespace + `"`
	for _, method := range []string{"GET", "POST", "PATCH", "DELETE"} {
		rows = append(rows, row("H-102", 405, method, finalize, "{}").as(mergePatch).says("the server does not allow this method on the requested resource"))
	}
	for _, method := range []string{"POST", "DELETE"} {
		rows = append(rows, row("H-102", 405, method, namespacePath+"/status", "{}").says("the server does not allow this method on the requested resource"))
	}
	for _, target := range []string{finalize, namespacePath, namespacePath + "/status"} {
		for _, broken := range []string{"{", "[]", "5", `"x"`, "nonsense", body(named, "") + "x"} {
			rows = append(rows, row("H-101", 400, "PUT", target, broken).has("the object provided is unrecognized (must be of type Namespace): "))
		}
		rows = append(rows,
			row("R-661", 400, "PUT", target, "{}").says("the name of the object ("+badNamespace+" based on URL) was undeterminable: name must be provided"),
			row("R-661", 400, "PUT", target, body("", "")).says("the name of the object ("+badNamespace+" based on URL) was undeterminable: name must be provided"),
			row("R-661", 400, "PUT", target, body(`"name":"other"`, "")).says("the name of the object (other) does not match the name on the URL ("+badNamespace+")"),
			row("R-661", 400, "PUT", target, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{`+named+`}}`).has(`ConfigMap in version "v1" cannot be handled as a Namespace`),
			row("R-662", 409, "PUT", target, body(named+`,"resourceVersion":"1"`, "")).
				says(`Operation cannot be fulfilled on namespaces "`+badNamespace+`": the object has been modified; please apply your changes to the latest version and try again`),
			row("R-663", 409, "PUT", target, body(named+`,"uid":"00000000-0000-4000-8000-000000000000"`, "")).either(422, 409),
			row("H-102", 415, "PUT", target, "{}").as("text/plain").has("the body of the request was in an unknown format - accepted media types include: application/json, application/yaml"),
			row("R-610", 422, "PUT", target+"?dryRun=Some", body(named, "")).says(`UpdateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"`),
			row("R-612", 422, "PUT", target+"?fieldValidation=Maybe", body(named, "")).
				says(`UpdateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn"`),
		)
	}
	invalid := `Namespace "` + badNamespace + `" is invalid: spec.finalizers[0]: Invalid value: `
	rows = append(rows,
		row("R-667", 422, "PUT", finalize, body(named, `,"spec":{"finalizers":["nope"]}`)).says(invalid+`"nope": name is neither a standard finalizer name nor is it fully qualified`),
		row("R-667", 422, "PUT", finalize, body(named, `,"spec":{"finalizers":["a/b/c"]}`)).has(invalid+`"a/b/c": `),
		row("R-667", 422, "PUT", finalize, body(named, `,"spec":{"finalizers":["kubernetes",""]}`)).has(`spec.finalizers[1]: Invalid value: "": name part must be non-empty`),
		row("R-667", 422, "PUT", finalize, body(named, `,"spec":{"finalizers":["UPPER_/x"]}`)).has(invalid),
		row("R-667", 400, "PUT", finalize, body(named, `,"spec":{"finalizers":"x"}`)).has(`Namespace in version "v1" cannot be handled as a Namespace: `),
		row("R-667", 400, "PUT", finalize, body(named, `,"spec":{"finalizers":[5]}`)).has(`Namespace in version "v1" cannot be handled as a Namespace: `),
		row("R-113", 404, "PUT", "/api/v1/namespaces/nope/finalize", body(`"name":"nope"`, "")).says(`namespaces "nope" not found`),
		row("R-113", 404, "GET", "/api/v1/namespaces/nope/status", "").says(`namespaces "nope" not found`),
		row("H-103", 404, "PUT", badPath+"/w/finalize", "{}").says("the server could not find the requested resource"),
		row("H-103", 404, "PUT", "/api/v1/nodes/x/finalize", "{}").says("the server could not find the requested resource"),
		row("H-103", 404, "GET", "/api/v1/namespaces/finalize/x", "").says("the server could not find the requested resource"),
		row("H-103", 404, "GET", namespacePath+"/nosuch", "").says("the server could not find the requested resource"),
		row("H-102", 405, "DELETE", "/api/v1/namespaces", "").says("the server does not allow this method on the requested resource"),
		row("R-113", 404, "DELETE", "/api/v1/namespaces/nope", "").says(`namespaces "nope" not found`),
		row("R-661", 422, "POST", "/api/v1/namespaces", body("", "")).has("metadata.name: Required value: name or generateName is required"),
		row("R-114", 409, "POST", "/api/v1/namespaces", body(named, "")).says(`namespaces "`+badNamespace+`" already exists`).reason("AlreadyExists"),
	)
	for _, name := range []string{"default", "kube-system", "kube-public"} {
		rows = append(rows, row("R-667", 403, "DELETE", "/api/v1/namespaces/"+name, "").says(`namespaces "`+name+`" is forbidden: this namespace may not be deleted`))
	}
	for _, name := range []string{"UP", "a.b", "-a", "a-", "a_b", strings.Repeat("a", 64), "a b", "ä", "a/b"} {
		rows = append(rows, row("H-349", 422, "POST", "/api/v1/namespaces", body(`"name":"`+name+`"`, "")).has("metadata.name: Invalid value: "))
	}
	return rows
}

func (b *badInput) definitionRows() (rows []endpointRow) {
	type faulty struct{ versions, more, has string }
	for _, f := range []faulty{
		{"[]", "", "spec.versions"},
		{`[{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]`, "", "must have exactly one version marked as storage version"},
		{`[{"name":"v1","served":true,"storage":true}]`, "", "schema"},
		{`[{"name":"V1_","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]`, "", "spec.versions[0].name"},
		{oneVersion("{}", ""), "", "type: Required value: must not be empty at the root"},
		{oneVersion(`{"type":"array","items":{"type":"string"}}`, ""), "", `must be object at the root`},
		{oneVersion(`{"type":"object","properties":{"a":{"type":"thing"}}}`, ""), "", `properties[a].type`},
		{oneVersion(`{"type":"object","properties":{"a":{"$ref":"#/x"}}}`, ""), "", "$ref: Forbidden"},
		{oneVersion(`{"type":"object","properties":{"a":{"type":"string","pattern":"("}}}`, ""), "", "pattern"},
		{oneVersion(`{"type":"object","properties":{"a":{"type":"array","uniqueItems":true,"items":{"type":"string"}}}}`, ""), "", "uniqueItems"},
		{oneVersion(`{"type":"object","properties":{"a":{"type":"array"}}}`, ""), "", "properties[a].items: Required value"},
		{oneVersion(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"}}`, ""), "", "additionalProperties"},
		{oneVersion(`{"type":"object","properties":{"a":{"type":"string","default":5}}}`, ""), "", "properties[a].default"},
		{oneVersion(`{"type":"object","properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object"}}}}}`, ""), "", "properties[metadata]"},
		{oneVersion(`{"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"map","items":{"type":"object"}}}}`, ""), "", "list-map-keys"},
		{oneVersion(`{"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"bag","items":{"type":"object"}}}}`, ""), "", "list-type"},
		{oneVersion(`{"type":"object"}`, `,"additionalPrinterColumns":[{"name":"a","type":"thing","jsonPath":".a"}]`), "", "additionalPrinterColumns[0].type"},
		{oneVersion(`{"type":"object"}`, `,"additionalPrinterColumns":[{"type":"string","jsonPath":".a"}]`), "", "additionalPrinterColumns[0].name"},
		{oneVersion(`{"type":"object"}`, `,"subresources":{"scale":{}}`), "", "subresources.scale"},
		{oneVersion(`{"type":"object"}`, `,"subresources":{"scale":{"specReplicasPath":".a.b","statusReplicasPath":".status.r"}}`), "", "specReplicasPath"},
		{oneVersion(`{"type":"object"}`, ""), `,"conversion":{"strategy":"Webhook"}`, "spec.conversion"},
		{oneVersion(`{"type":"object"}`, ""), `,"conversion":{"strategy":"Magic"}`, "spec.conversion.strategy"},
		{oneVersion(`{"type":"object"}`, ""), `,"preserveUnknownFields":true`, "spec.preserveUnknownFields"},
	} {
		rows = append(rows, row("R-691", 422, "POST", definitionsPath, definition("gears", "Gear", "bad.example.com", "Namespaced", f.versions, f.more)).has(f.has))
	}
	good := oneVersion(`{"type":"object"}`, "")
	const unfit = `CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: `
	for _, f := range []faulty{
		{good, `,"nosuch":1`, "spec.nosuch"},
		{strings.Replace(good, `"served"`, `"nosuch":1,"served"`, 1), "", "spec.versions[0].nosuch"},
		{oneVersion(`{"type":"object"}`, `,"subresources":{"nosuch":1}`), "", "spec.versions[0].subresources.nosuch"},
		{oneVersion(`{"type":"object"}`, `,"subresources":{"status":{"nosuch":1}}`), "", "spec.versions[0].subresources.status.nosuch"},
		{oneVersion(`{"type":"object"}`, `,"additionalPrinterColumns":[{"name":"a","type":"string","jsonPath":".a","nosuch":1}]`), "", "spec.versions[0].additionalPrinterColumns[0].nosuch"},
		{good, `,"conversion":{"strategy":"None","nosuch":1}`, "spec.conversion.nosuch"},
	} {
		text := definition("gears", "Gear", "bad.example.com", "Namespaced", f.versions, f.more)
		rows = append(rows, row("R-612", 400, "POST", definitionsPath+"?fieldValidation=Strict", text).has(unfit+`strict decoding error: unknown field "`+f.has+`"`))
	}
	rows = append(rows,
		row("R-612", 400, "POST", definitionsPath+"?fieldValidation=Strict", strings.Replace(definition("gears", "Gear", "bad.example.com", "Namespaced", good, ""), `"names":{`, `"names":{"nosuch":1,`, 1)).
			has(unfit+`strict decoding error: unknown field "spec.names.nosuch"`),
		row("R-612", 422, "PATCH", definitionPath+"?fieldValidation=Strict", `{"spec":{"nosuch":1}}`).as(mergePatch).has(`strict decoding error: unknown field "spec.nosuch"`),
		row("R-612", 422, "PATCH", definitionPath+"/status?fieldValidation=Strict", `{"status":{"nosuch":1}}`).as(mergePatch).has(`strict decoding error: unknown field "status.nosuch"`))
	for _, f := range [][2]string{
		{`".spec.nope"`, "is an invalid path: does not refer to a valid field"}, {`".spec.a.b"`, "is an invalid path: does not refer to a valid field"},
		{`".spec."`, "is an invalid path: unexpected end of JSON path"}, {`"spec.a"`, "is an invalid path: expected [ or . but got: spec"},
		{`".spec['a']"`, "is an invalid path: array notation is not allowed"}, {`".metadata.name"`, "must not point to fields in metadata"},
		{`".spec"`, "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."},
		{`".spec.a"},{"jsonPath":".spec.a"`, "selectableFields[1].jsonPath: Duplicate value: "}, {`""`, "selectableFields[0].jsonPath: Required value"},
	} {
		fields := `,"selectableFields":[{"jsonPath":` + f[0] + `}]`
		schema := `{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string"}}},"spec":{"type":"object","properties":{"a":{"type":"string"}}}}}`
		rows = append(rows, row("R-691", 422, "POST", definitionsPath, definition("gears", "Gear", "bad.example.com", "Namespaced", oneVersion(schema, fields), "")).has(f[1]))
	}
	for _, patch := range []string{`{"spec":"x"}`, `{"spec":{"versions":"x"}}`, `{"spec":{"names":[]}}`, `{"spec":{"scope":5}}`} {
		rows = append(rows, row("R-612", 422, "PATCH", definitionPath, patch).as(mergePatch).has(` "" is invalid: patch: Invalid value: `))
	}
	for _, patch := range []string{`{"status":"x"}`, `{"status":{"storedVersions":"x"}}`, `{"status":{"storedVersions":[5]}}`, `{"status":{"conditions":"x"}}`, `{"status":{"conditions":[{"type":5}]}}`,
		`{"status":{"conditions":[{"type":"A","status":"True","lastTransitionTime":"now"}]}}`} {
		rows = append(rows, row("R-612", 422, "PATCH", definitionPath+"/status", patch).as(mergePatch).has(` "" is invalid: patch: Invalid value: `))
	}
	for _, text := range []string{
		definition("gears", "Gear", "bad.example.com", "Somewhere", good, ""), definition("gears", "Gear", "bad.example.com", "", good, ""),
		definition("Gears", "Gear", "bad.example.com", "Namespaced", good, ""), definition("gears", "", "bad.example.com", "Namespaced", good, ""),
		definition("gears", "Ge ar", "bad.example.com", "Namespaced", good, ""), definition("gears", "Gear", "bad", "Namespaced", good, ""),
		definition("gears", "Gear", "bad_x.example.com", "Namespaced", good, ""), definition("gears", "Gear", "x.k8s.io", "Namespaced", good, ""),
		definition("gears", "Gear", "bad.example.com", "Namespaced", "null", ""),
		strings.Replace(definition("gears", "Gear", "bad.example.com", "Namespaced", good, ""), "gears.bad.example.com", "other.bad.example.com", 1),
		strings.Replace(definition("gears", "Gear", "bad.example.com", "Namespaced", good, ""), `"kind":"Gear"`, `"kind":"Gear","shortNames":["UP"]`, 1),
		strings.Replace(definition("gears", "Gear", "bad.example.com", "Namespaced", good, ""), `"kind":"Gear"`, `"kind":"Gear","listKind":"Gear"`, 1),
		strings.Replace(definition("gears", "Gear", "bad.example.com", "Namespaced", good, ""), `"kind":"Gear"`, `"kind":"Gear","categories":["A B"]`, 1),
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gears.bad.example.com"}}`,
	} {
		rows = append(rows, row("R-691", 422, "POST", definitionsPath, text).has("CustomResourceDefinition.apiextensions.k8s.io "))
	}
	for _, text := range []string{"{", "[]", "null", "nonsense", "5"} {
		rows = append(rows, row("H-101", 400, "POST", definitionsPath, text).either(400, 422, 400))
	}
	rows = append(rows,
		row("R-612", 400, "POST", definitionsPath, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gears.bad.example.com"},"spec":"x"}`).has(unfit),
		row("R-612", 400, "POST", definitionsPath, definition("gears", "Gear", "bad.example.com", "Namespaced", `"x"`, "")).has(unfit),
		row("R-661", 400, "POST", definitionsPath, strings.Replace(definition("gears", "Gear", "bad.example.com", "Namespaced", good, ""), "k8s.io/v1", "k8s.io/v1beta1", 1)).
			has("does not match the expected API version (apiextensions.k8s.io/v1)"),
		row("R-661", 400, "POST", definitionsPath, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`),
		row("R-114", 409, "POST", definitionsPath, definition("things", "Thing", "bad.example.com", "Namespaced", good, "")).
			says(`customresourcedefinitions.apiextensions.k8s.io "things.bad.example.com" already exists`).reason("AlreadyExists"),
		row("H-103", 404, "POST", "/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions", "{}").only(),
		row("H-102", 415, "POST", definitionsPath, "{}").as("text/plain"),
		row("R-113", 404, "GET", definitionsPath+"/nope.bad.example.com", "").says(`customresourcedefinitions.apiextensions.k8s.io "nope.bad.example.com" not found`),
		row("R-113", 404, "GET", definitionsPath+"/nope.bad.example.com/status", "").says(`customresourcedefinitions.apiextensions.k8s.io "nope.bad.example.com" not found`),
		row("R-113", 404, "DELETE", definitionsPath+"/nope.bad.example.com", "").says(`customresourcedefinitions.apiextensions.k8s.io "nope.bad.example.com" not found`),
		row("R-663", 404, "PUT", definitionsPath+"/nope.bad.example.com", definition("nope", "Nope", "bad.example.com", "Namespaced", good, "")).either(404),
		row("R-663", 404, "PATCH", definitionsPath+"/nope.bad.example.com", "{}").as(mergePatch),
		row("H-103", 404, "GET", definitionPath+"/scale", ""), row("H-103", 404, "GET", definitionPath+"/nosuch", ""), row("H-103", 404, "PUT", definitionPath+"/finalize", "{}"),
		row("H-102", 405, "POST", definitionPath, "{}"), row("H-102", 405, "PUT", definitionsPath, "{}"), row("H-102", 405, "PATCH", definitionsPath, "{}").as(mergePatch),
		row("H-102", 405, "POST", definitionPath+"/status", "{}"), row("H-102", 405, "DELETE", definitionPath+"/status", ""),
	)
	for _, patch := range []string{`{"spec":{"group":"other.example.com"}}`, `{"spec":{"scope":"Cluster"}}`, `{"spec":{"names":{"plural":"others"}}}`, `{"spec":{"versions":[]}}`,
		`{"spec":{"versions":[{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, `{"metadata":{"labels":{"a b":"c"}}}`} {
		rows = append(rows, row("R-691", 422, "PATCH", definitionPath, patch).as(mergePatch).has(`CustomResourceDefinition.apiextensions.k8s.io "things.bad.example.com" is invalid: `))
	}
	for _, target := range []string{definitionPath, definitionPath + "/status"} {
		rows = append(rows,
			row("R-661", 400, "PUT", target, "{}").either(400, 422, 400),
			row("R-661", 400, "PUT", target, definition("other", "Other", "bad.example.com", "Namespaced", good, "")).has("does not match the name on the URL"),
			row("R-662", 422, "PUT", target, definition("things", "Thing", "bad.example.com", "Namespaced", good, "")).has("metadata.resourceVersion: Invalid value: 0: must be specified for an update"),
			row("R-661", 400, "PATCH", target, `{"metadata":{"name":"x"}}`).as(mergePatch).has("does not match the name on the URL"),
			row("R-662", 409, "PATCH", target, `{"metadata":{"resourceVersion":"1"}}`).as(mergePatch).has("the object has been modified"),
			row("R-665", 400, "PATCH", target, "[]").as(mergePatch), row("R-665", 400, "PATCH", target, "{").as(mergePatch), row("R-665", 400, "PATCH", target, "{").as(jsonPatch),
			row("R-665", 415, "PATCH", target, "{}").as("application/json"), row("R-665", 415, "PATCH", target, "{}").as("text/plain"),
		)
	}
	return rows
}

func (b *badInput) customRows() (rows []endpointRow) {
	invalid := `Thing.bad.example.com "x" is invalid: `
	for _, f := range [][2]string{
		{`{"replicas":-1}`, `spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0`},
		{`{"replicas":"1"}`, `spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"`},
		{`{"replicas":1.5}`, `spec.replicas: Invalid value: "number": spec.replicas in body must be of type integer: "number"`},
		{`{"replicas":true}`, `spec.replicas: Invalid value: "boolean": spec.replicas in body must be of type integer: "boolean"`},
		{`{"text":"toolong"}`, `spec.text: Too long: may not be more than 5 bytes`},
		{`{"text":5}`, `spec.text: Invalid value: "integer": spec.text in body must be of type string: "integer"`},
		{`{"list":{}}`, `spec.list: Invalid value: "object": spec.list in body must be of type array: "object"`},
		{`{"list":[1]}`, `spec.list[0]: Invalid value: "integer": spec.list[0] in body must be of type string: "integer"`},
		{`[]`, `spec: Invalid value: "array": spec in body must be of type object: "array"`},
		{`"x"`, `spec: Invalid value: "string": spec in body must be of type object: "string"`},
	} {
		rows = append(rows, row("R-691", 422, "POST", thingsPath, thing("x", "", `,"spec":`+f[0])).has(f[1]).has(invalid))
		rows = append(rows, row("R-691", 422, "POST", thingsPath+"?dryRun=All", thing("x", "", `,"spec":`+f[0])).has(f[1]))
		rows = append(rows, row("R-691", 422, "PATCH", thingPath, `{"spec":`+f[0]+`}`).as(mergePatch).has(f[1]))
	}
	for _, text := range []string{"{", "[]", "null", "5", "nonsense", `"x"`, "{}", `{"apiVersion":"bad.example.com/v1","metadata":{"name":"x"}}`, `{"kind":"Thing","metadata":{"name":"x"}}`,
		`{"apiVersion":"bad.example.com/v2","kind":"Thing","metadata":{"name":"x"}}`, `{"apiVersion":"v1","kind":"Thing","metadata":{"name":"x"}}`, thing("x", `,"namespace":"other"`, ""),
		thing("x", `,"labels":{"a":1}`, ""), thing("x", `,"labels":[]`, ""), thing("x", `,"annotations":{"a":{}}`, ""), thing("x", `,"finalizers":"x"`, ""),
		`{"apiVersion":"bad.example.com/v1","kind":"Thing","metadata":"x"}`, `{"apiVersion":"bad.example.com/v1","kind":"Thing","metadata":{"name":5}}`} {
		rows = append(rows, row("R-661", 400, "POST", thingsPath, text), row("R-661", 400, "PUT", thingPath, text))
	}
	for _, metadata := range []string{`,"labels":{"a b":"c"}`, `,"labels":{"a":"b c"}`, `,"labels":{"a":"` + strings.Repeat("v", 64) + `"}`, `,"annotations":{"a b":"c"}`, `,"finalizers":["a/b/c"]`, `,"finalizers":[""]`,
		`,"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x"}]`, `,"ownerReferences":[{}]`,
		`,"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"1","controller":true},{"apiVersion":"v1","kind":"X","name":"y","uid":"2","controller":true}]`} {
		rows = append(rows, row("R-691", 422, "POST", thingsPath, thing("x", metadata, "")).has("metadata."))
	}
	for _, name := range []string{"UP", "a_b", "-a", "a.", "a..b", strings.Repeat("n", 254), "ä", "a b"} {
		rows = append(rows, row("H-349", 422, "POST", thingsPath, thing(name, "", "")).has("metadata.name: Invalid value: "))
	}
	rows = append(rows,
		row("R-661", 422, "POST", thingsPath, `{"apiVersion":"bad.example.com/v1","kind":"Thing"}`).has("metadata.name: Required value: name or generateName is required"),
		row("R-661", 400, "POST", thingsPath, `{"apiVersion":"bad.example.com/v1","kind":"Other","metadata":{"name":"x"}}`).either(422, 400),
		row("R-612", 400, "POST", thingsPath+"?fieldValidation=Strict", thing("x", "", `,"spec":{"nosuch":1}`)).has(`strict decoding error: unknown field "spec.nosuch"`),
		row("R-612", 400, "POST", thingsPath+"?fieldValidation=Strict", thing("x", `,"nosuch":1`, "")).has(`strict decoding error: unknown field "metadata.nosuch"`),
		row("R-612", 400, "POST", thingsPath+"?fieldValidation=Strict", thing("x", "", `,"spec":{"replicas":1,"replicas":2}`)).has("duplicate "),
		row("R-612", 422, "PATCH", thingPath+"?fieldValidation=Strict", `{"spec":{"nosuch":1}}`).as(mergePatch).either(400, 422, 400),
		row("H-320", 415, "POST", thingsPath, "k8s\x00junk").as(protobufType).only(),
		row("H-102", 415, "POST", thingsPath, thing("x", "", "")).as("text/plain"),
		row("H-102", 405, "POST", thingPath, thing("t", "", "")).only(), row("H-102", 405, "PUT", thingsPath, thing("t", "", "")).only(), row("H-102", 405, "PATCH", thingsPath, "{}").as(mergePatch).only(),
		row("H-102", 405, "POST", "/apis/bad.example.com/v1/things", thing("x", "", "")).only(), row("H-102", 405, "DELETE", "/apis/bad.example.com/v1/things", "").only(),
		row("R-662", 422, "PUT", thingPath, thing("t", "", "")).has(`metadata.resourceVersion: Invalid value: 0: must be specified for an update`),
		row("R-662", 422, "PUT", thingPath, thing("t", `,"resourceVersion":""`, "")).says(`things.bad.example.com "t" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`),
		row("R-662", 409, "PUT", thingPath, thing("t", `,"resourceVersion":"1"`, "")).
			says(`Operation cannot be fulfilled on things.bad.example.com "t": the object has been modified; please apply your changes to the latest version and try again`),
		row("R-663", 409, "PUT", thingPath, thing("t", `,"resourceVersion":"1","uid":"00000000-0000-4000-8000-000000000000"`, "")),
		row("R-661", 400, "PUT", thingPath, thing("u", "", "")).says("the name of the object (u) does not match the name on the URL (t)"),
		row("R-661", 400, "PUT", thingPath, `{"apiVersion":"bad.example.com/v1","kind":"Thing"}`).says("the name of the object (t based on URL) was undeterminable: name must be provided"),
		row("R-663", 404, "PUT", thingsPath+"/nope", thing("nope", `,"resourceVersion":"1"`, "")).says(`things.bad.example.com "nope" not found`).either(404, 409, 404),
		row("R-663", 404, "PATCH", thingsPath+"/nope", "{}").as(mergePatch).says(`things.bad.example.com "nope" not found`),
		row("R-113", 404, "GET", thingsPath+"/nope", "").says(`things.bad.example.com "nope" not found`), row("R-113", 404, "DELETE", thingsPath+"/nope", "").says(`things.bad.example.com "nope" not found`),
		row("H-342", 415, "PATCH", thingPath, "{}").as(strategicPatch), row("H-342", 415, "PATCH", thingPath, "{}"), row("H-343", 415, "PATCH", thingPath, "{}").as(applyPatch).only(),
	)
	for _, path := range []string{"/apis/bad.example.com/v2", "/apis/bad.example.com/v3", "/apis/bad.example.com/v2/namespaces/" + badNamespace + "/things", "/apis/bad.example.com/v1/things/t",
		"/apis/bad.example.com/v1/namespaces/" + badNamespace + "/nosuch", thingPath + "/nosuch", "/apis/other.example.com/v1/things"} {
		rows = append(rows, row("H-103", 404, "GET", path, "").says("the server could not find the requested resource").only())
	}
	return rows
}

func (b *badInput) subresourceRows() (rows []endpointRow) {
	for _, sub := range []string{"status", "scale"} {
		target := thingPath + "/" + sub
		for _, method := range []string{"POST", "DELETE"} {
			rows = append(rows, row("H-102", 405, method, target, "{}"))
		}
		for _, text := range []string{"{", "[]", "null", "5", "nonsense", "{}"} {
			rows = append(rows, row("H-348", 400, "PUT", target, text))
		}
		rows = append(rows,
			row("R-113", 404, "GET", thingsPath+"/nope/"+sub, "").says(`things.bad.example.com "nope" not found`),
			row("R-663", 404, "PATCH", thingsPath+"/nope/"+sub, "{}").as(mergePatch).says(`things.bad.example.com "nope" not found`),
			row("R-661", 400, "PATCH", target, `{"metadata":{"name":"x"}}`).as(mergePatch).says("the name of the object (x) does not match the name on the URL (t)"),
			row("R-662", 409, "PATCH", target, `{"metadata":{"resourceVersion":"1"}}`).as(mergePatch).has("the object has been modified"),
			row("R-665", 400, "PATCH", target, "{").as(mergePatch).has("error decoding patch: "), row("R-665", 400, "PATCH", target, "[]").as(mergePatch).has("error decoding patch: "),
			row("R-665", 400, "PATCH", target, `[{"op":"nope","path":"/a"}]`).as(jsonPatch).either(422, 400),
			row("H-342", 415, "PATCH", target, "{}").as(strategicPatch), row("H-342", 415, "PATCH", target, "{}"), row("H-102", 415, "PUT", target, thing("t", "", "")).as("text/plain"),
			row("R-610", 422, "PUT", target+"?dryRun=None", thing("t", "", "")).says(`UpdateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["None"]: supported values: "All"`),
			row("R-610", 422, "PATCH", target+"?dryRun=None", "{}").as(mergePatch).says(`PatchOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["None"]: supported values: "All"`),
			row("R-611", 422, "PUT", target+"?fieldManager="+strings.Repeat("m", 129), thing("t", "", "")).has("fieldManager: Too long: may not be more than 128 bytes"),
			row("R-613", 422, "PATCH", target+"?force=true", "{}").as(mergePatch).says(`PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch`),
		)
	}
	status := thingPath + "/status"
	rows = append(rows,
		row("R-662", 422, "PUT", status, thing("t", "", `,"status":{"replicas":1}`)).has("metadata.resourceVersion: Invalid value: 0: must be specified for an update"),
		row("R-661", 400, "PUT", status, `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"t"},"spec":{"replicas":2}}`).
			says("the API version in the data (autoscaling/v1) does not match the expected API version (bad.example.com/v1)"),
		row("R-661", 400, "PUT", status, `{"apiVersion":"bad.example.com/v1","kind":"Other","metadata":{"name":"t","resourceVersion":"1"}}`).either(409, 400),
		row("R-691", 422, "PATCH", status, `{"status":{"replicas":"x"}}`).as(mergePatch).has(`status.replicas: Invalid value: "string": `),
		row("R-691", 422, "PATCH", status, `{"status":[]}`).as(mergePatch).has(`status: Invalid value: "array": `),
	)
	scaleBody := func(more string) string {
		return `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"t"}` + more + `}`
	}
	unmarshal := `Scale in version "v1" cannot be handled as a Scale: `
	for _, target := range []string{thingPath + "/scale", deploymentPath + "/scale"} {
		name := "t"
		if target != thingPath+"/scale" {
			name = "d"
		}
		body := func(more string) string {
			return strings.Replace(scaleBody(more), `"name":"t"`, `"name":"`+name+`"`, 1)
		}
		rows = append(rows,
			row("H-347", 422, "PUT", target, body(`,"spec":{"replicas":-2}`)).has("spec.replicas: Invalid value: -2: "),
			row("H-347", 422, "PATCH", target, `{"spec":{"replicas":-3}}`).as(mergePatch).has("spec.replicas: Invalid value: -3: "),
			row("H-347", 400, "PATCH", target, `{"spec":{"replicas":"x"}}`).as(mergePatch).either(422, 400),
			row("H-347", 400, "PATCH", target, `{"spec":{"replicas":1.5}}`).as(mergePatch).either(422, 400),
			row("H-347", 400, "PATCH", target, `{"spec":[]}`).as(mergePatch).either(422, 400),
			row("R-661", 400, "PUT", target, `{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":1}}`).
				says("the name of the object ("+name+" based on URL) was undeterminable: name must be provided"),
			row("R-661", 400, "PUT", target, strings.Replace(body(`,"spec":{"replicas":2}`), `"name":"`+name+`"`, `"name":"u"`, 1)).
				says("the name of the object (u) does not match the name on the URL ("+name+")"),
			row("R-661", 400, "PUT", target, strings.Replace(body(`,"spec":{"replicas":2}`), "autoscaling/v1", "v1", 1)),
			row("R-661", 400, "PUT", target, strings.Replace(body(`,"spec":{"replicas":2}`), `"Scale"`, `"Pod"`, 1)),
			row("R-662", 409, "PUT", target, strings.Replace(body(`,"spec":{"replicas":2}`), `"name"`, `"resourceVersion":"1","name"`, 1)).has("the object has been modified"),
			row("R-663", 409, "PUT", target, strings.Replace(body(`,"spec":{"replicas":2}`), `"name"`, `"uid":"00000000-0000-4000-8000-000000000000","name"`, 1)).has("UID in precondition"),
		)
		for _, wrong := range []string{`,"spec":{"replicas":"x"}`, `,"spec":{"replicas":1.5}`, `,"spec":{"replicas":99999999999}`, `,"spec":"x"`, `,"spec":[]`} {
			r := row("H-347", 400, "PUT", target, body(wrong))
			if name == "d" { // of custom kinds upstream names its own source there
				r = r.has(unmarshal)
			}
			rows = append(rows, r)
		}
	}
	for _, target := range []string{badPath + "/w/status", badPath + "/w/scale", thingPath + "/nosuch", deploymentPath + "/nosuch", "/api/v1/namespaces/default/services/x/scale"} {
		r := row("H-103", 404, "GET", target, "")
		rows = append(rows, r)
	}
	rows = append(rows, row("R-663", 404, "PUT", deploymentsPath+"/nope/scale", strings.Replace(scaleBody(`,"spec":{"replicas":1}`), `"t"`, `"nope"`, 1)).either(404))
	return rows
}

func (b *badInput) deleteRows() (rows []endpointRow) {
	policy := `DeleteOptions.meta.k8s.io "" is invalid: `
	for _, target := range []string{badPath + "/w", badPath, thingPath, thingsPath, definitionPath, namespacePath, badPath + "/nope", deploymentPath, definitionsPath} {
		for _, body := range []string{"{", "[]", "nonsense", "5", `"x"`, `{"propagationPolicy":5}`, `{"orphanDependents":"x"}`, `{"gracePeriodSeconds":"soon"}`, `{"gracePeriodSeconds":1.5}`, `{"dryRun":"All"}`,
			`{"dryRun":[5]}`, `{"dryRun":{}}`, `{"preconditions":"x"}`, `{"preconditions":[]}`, `{"preconditions":{"uid":5}}`, `{"preconditions":{"resourceVersion":5}}`, `{"kind":"ConfigMap","apiVersion":"v1"}`,
			`{"kind":5}`} {
			rows = append(rows, row("R-614", 400, "DELETE", target, body))
		}
		rows = append(rows,
			row("R-614", 422, "DELETE", target, `{"propagationPolicy":"Sideways"}`).says(policy+`propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"`),
			row("R-614", 422, "DELETE", target, `{"propagationPolicy":"Orphan","orphanDependents":true}`).
				has(policy+`propagationPolicy: Invalid value: `).has("orphanDependents and deletionPropagation cannot be both set"),
			row("R-610", 422, "DELETE", target, `{"dryRun":["Some"]}`).says(policy+`dryRun: Unsupported value: ["Some"]: supported values: "All"`),
			row("R-610", 422, "DELETE", target, `{"dryRun":["All","None"]}`).has(policy+`dryRun: Unsupported value: [`),
			row("H-102", 415, "DELETE", target, `{"dryRun":["All"]}`).as("text/plain"), row("H-102", 415, "DELETE", target, `{"dryRun":["All"]}`).as(mergePatch),
			row("H-323", 400, "DELETE", target, "k8s\x00\x0a\xff\xff\xff\xff\x0f").as(protobufType), row("H-323", 400, "DELETE", target, "x").as(protobufType),
			row("H-323", 400, "DELETE", target, "k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x00").as(protobufType),
			row("R-614", 422, "DELETE", target+"?propagationPolicy=Sideways", "").has(policy+"propagationPolicy: Unsupported value: "),
			row("R-614", 422, "DELETE", target+"?dryRun=All&propagationPolicy=Orphan&orphanDependents=true", ""),
			row("R-614", 400, "DELETE", target+"?gracePeriodSeconds=soon", ""), row("R-614", 400, "DELETE", target+"?gracePeriodSeconds=1.5", ""),
			row("R-610", 422, "DELETE", target+"?dryRun=Some", "").has("dryRun: Unsupported value: "), row("R-651", 400, "DELETE", target+"?timeout=soon", ""),
			row("R-648", 406, "DELETE", target+"?dryRun=All", "").accepting("image/png"),
		)
		if target == badPath+"/nope" || target == definitionsPath {
			continue
		}
		rows = append(rows, row("R-126", 409, "DELETE", target, `{"preconditions":{"uid":"0000"},"dryRun":["All"]}`).has("UID"),
			row("R-126", 409, "DELETE", target, `{"preconditions":{"resourceVersion":"1"},"dryRun":["All"]}`).has("ResourceVersion"))
		if target == badPath || target == thingsPath { // nothing may be gone before it is refused
			continue
		}
		rows = append(rows, row("R-126", 409, "DELETE", target, `{"preconditions":{"uid":"0000"}}`).has("UID"), row("R-126", 409, "DELETE", target, `{"preconditions":{"resourceVersion":"1"}}`).has("ResourceVersion"))
	}
	for _, collection := range []string{badPath, thingsPath, definitionsPath} {
		for q, code := range map[string]int{"labelSelector=a%20in": 400, "fieldSelector=nosuch%3Dx": 400, "fieldSelector=metadata.name": 400, "limit=abc": 400, "timeoutSeconds=abc": 400, "continue=garbage": 400,
			"resourceVersion=1&resourceVersionMatch=Foo": 422, "resourceVersionMatch=Exact": 422, "sendInitialEvents=true": 422} {
			rows = append(rows, row("R-669", code, "DELETE", collection+"?dryRun=All&"+q, ""))
		}
	}
	return rows
}

func (b *badInput) reviewRows() (rows []endpointRow) {
	const access, rules, who = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	good := `{"spec":{"namespace":"default","nonResourceAttributes":{"path":"/x","verb":"get"}}}`
	for target, kind := range map[string]string{access: "SelfSubjectAccessReview", rules: "SelfSubjectRulesReview", who: "SelfSubjectReview"} {
		for _, method := range []string{"GET", "PUT", "DELETE", "PATCH"} {
			rows = append(rows, row("H-102", 405, method, target, "{}").as(mergePatch))
		}
		for _, body := range []string{"{", "[]", `"x"`, "5", "nonsense", `{"kind":"ConfigMap","apiVersion":"v1"}`, `{"kind":"` + kind + `","apiVersion":"v1"}`} {
			rows = append(rows, row("H-101", 400, "POST", target, body))
		}
		rows = append(rows,
			row("H-102", 415, "POST", target, "{}").as("text/plain"), row("H-320", 400, "POST", target, "junk").as(protobufType),
			row("H-320", 400, "POST", target, "k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x00").as(protobufType),
			row("H-103", 404, "GET", target+"/x", ""), row("H-103", 404, "POST", target+"/x/status", "{}"),
			row("R-610", 422, "POST", target+"?dryRun=Some", good).says(`CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"`),
			row("R-612", 422, "POST", target+"?fieldValidation=Maybe", good).has(`CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Maybe": supported values: `),
			row("R-611", 422, "POST", target+"?fieldManager="+strings.Repeat("m", 129), good).has("fieldManager: Too long: "),
			row("R-648", 406, "POST", target, good).accepting("image/png"),
		)
	}
	rows = append(rows, row("R-691", 422, "POST", access, `{"spec":{"resourceAttributes":{"verb":"get"},"nonResourceAttributes":{"path":"/","verb":"get"}}}`).
		has("cannot be specified in combination with resourceAttributes"))
	for _, body := range []string{"{}", `{"spec":{}}`} {
		rows = append(rows, row("R-691", 422, "POST", access, body).has("spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"),
			row("R-691", 400, "POST", rules, body).says("no namespace on request"))
	}
	for _, body := range []string{`{"spec":"x"}`, `{"spec":{"resourceAttributes":"x"}}`, `{"spec":{"resourceAttributes":{"verb":5}}}`, `{"spec":{"nonResourceAttributes":[]}}`} {
		rows = append(rows, row("R-691", 400, "POST", access, body).has("cannot be handled as a SelfSubjectAccessReview: "))
	}
	for _, body := range []string{`{"spec":"x"}`, `{"spec":{"namespace":5}}`} {
		rows = append(rows, row("R-691", 400, "POST", rules, body).has("cannot be handled as a SelfSubjectRulesReview: "))
	}
	for _, path := range []string{"/apis/authorization.k8s.io/v1/subjectaccessreviews", "/apis/authentication.k8s.io/v1/tokenreviews",
		"/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews", "/apis/authentication.k8s.io/v1alpha1/selfsubjectreviews"} {
		rows = append(rows, row("H-103", 404, "POST", path, "{}").only()) // not served
	}
	return rows
}

// documentRows: discovery, OpenAPI, health, metrics and debugging are to be read, and nothing else.
func (b *badInput) documentRows() (rows []endpointRow) {
	for _, path := range []string{"/", "/version", "/healthz", "/livez", "/readyz", "/metrics", "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/debug/vedette", "/api", "/apis", "/api/v1", "/apis/apps",
		"/apis/apps/v1", "/apis/bad.example.com/v1"} {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
			rows = append(rows, row("H-102", 405, method, path, "").says("the server does not allow this method on the requested resource").only())
		}
	}
	for _, path := range []string{"/healthz/nosuch", "/livez/nosuch", "/readyz/nosuch", "/version/x", "/metrics/x", "/openapi", "/openapi/v1", "/openapi/v3/nosuch", "/openapi/v3/apis/nosuch/v1",
		"/openapi/v3/api/v9", "/openapi/v2/x", "/debug", "/debug/pprof", "/debug/nosuch", "/nosuch", "/logs", "/apis/apps/v9", "/apis/nosuch", "/api/v2", "/ui", "/index.html", "/robots.txt", "/swagger.json"} {
		rows = append(rows, row("H-103", 404, "GET", path, "").says("the server could not find the requested resource").only())
	}
	for _, path := range []string{"/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1"} {
		for _, accept := range []string{"image/png", "application/xml", "text/plain", "application/cbor", "text/*"} {
			rows = append(rows, row("R-648", 406, "GET", path, "").accepting(accept))
		}
	}
	return rows
}

// optionRows: what R-607 forbids, on lists and watches of every sort of path, from the rule itself.
func (b *badInput) optionRows() (rows []endpointRow) {
	for _, path := range []string{badPath, "/api/v1/configmaps", thingsPath, definitionsPath, "/api/v1/namespaces", "/api/v1/watch/namespaces/" + badNamespace + "/configmaps"} {
		for _, watch := range []bool{false, true} {
			if strings.Contains(path, "/watch/") && !watch {
				continue
			}
			for _, initial := range []string{"", "true", "false"} {
				for _, match := range []string{"", "NotOlderThan", "Exact", "Foo"} {
					for _, revision := range []string{"", "0", "1", "abc"} {
						for _, bookmarks := range []string{"", "true"} {
							code := 0
							switch {
							case watch && initial != "" && match != "NotOlderThan", watch && initial == "" && match != "":
								code = 422
							case !watch && (initial != "" || (match != "" && revision == "") || match == "Foo" || (match == "Exact" && revision == "0")):
								code = 422
							case revision == "abc":
								code = 400
							default:
								continue
							}
							pairs := []string{}
							for _, pair := range [][2]string{{"sendInitialEvents", initial}, {"resourceVersionMatch", match}, {"resourceVersion", revision}, {"allowWatchBookmarks", bookmarks}} {
								if pair[1] != "" {
									pairs = append(pairs, pair[0], pair[1])
								}
							}
							if watch {
								pairs = append(pairs, "watch", "1", "timeoutSeconds", "1")
							}
							r := row("R-607", code, "GET", path+query(pairs...), "")
							if code == 422 {
								r = r.has(`ListOptions.meta.k8s.io "" is invalid: `)
							} else {
								r = r.has(`Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`).only()
							}
							rows = append(rows, r)
						}
					}
				}
			}
		}
		for _, q := range []string{"labelSelector=a%20in", "fieldSelector=metadata.name", "fieldSelector=nosuch%3Dx", "timeoutSeconds=abc", "timeoutSeconds=1.5"} {
			rows = append(rows, row("R-601", 400, "GET", path+"?watch=1&"+q, ""))
		}
	}
	return rows
}

func (b *badInput) pageRows() (rows []endpointRow) {
	token := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, path := range []string{badPath, "/api/v1/configmaps", thingsPath, definitionsPath, "/api/v1/namespaces"} {
		for _, limit := range []string{"abc", "1.5", "0x5", "9223372036854775808", "1e3", "+-1"} {
			rows = append(rows, row("R-604", 400, "GET", path+query("limit", limit), ""), row("R-604", 400, "GET", path+query("limit", limit, "watch", "1", "timeoutSeconds", "1"), ""))
		}
		for _, text := range []string{"garbage", "%", "=", token("{}"), token("[]"), token("5"), token("nonsense"), token(`{"v":"meta.k8s.io/v1","rv":1,"start":""}`), token(`{"v":"meta.k8s.io/v1","rv":0,"start":"a"}`),
			token(`{"v":"meta.k8s.io/v2","rv":1,"start":"a"}`), token(`{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}`), token(`{"v":"meta.k8s.io/v1","rv":"x","start":"a"}`),
			base64.StdEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":1,"start":"a?>"}`)) + "=="} {
			rows = append(rows, row("R-124", 400, "GET", path+query("continue", text), "").has("continue key is not valid"))
		}
		rows = append(rows, row("R-604", 400, "GET", path+query("continue", token(`{"v":"meta.k8s.io/v1","rv":5,"start":"a"}`), "resourceVersion", "5"), ""))
	}
	return rows
}

func (b *badInput) nameRows() (rows []endpointRow) {
	for _, name := range []string{"UP", "a_b", "-a", "a-", strings.Repeat("a", 64), strings.Repeat("a", 254), "a.b", "a%20b", "%E2%82%AC", "a:b", "a~b", "a+b", "'", "*"} {
		for _, method := range []string{"GET", "DELETE", "PATCH"} {
			body := map[string]string{"PATCH": "{}"}[method]
			rows = append(rows, row("H-349", 404, method, badPath+"/"+name, body).as(mergePatch).has(`configmaps "`).either(404))
			rows = append(rows, row("H-349", 404, method, "/api/v1/namespaces/"+name+"/configmaps/w", body).as(mergePatch).has(`configmaps "w" not found`).either(404))
			rows = append(rows, row("H-349", 404, method, "/api/v1/namespaces/"+name, body).as(mergePatch).has(`namespaces "`).either(404))
			rows = append(rows, row("H-349", 404, method, thingsPath+"/"+name, body).as(mergePatch).has(`things.bad.example.com "`).either(404))
			rows = append(rows, row("H-349", 404, method, definitionsPath+"/"+name, body).as(mergePatch).has(`customresourcedefinitions.apiextensions.k8s.io "`).either(404))
		}
		rows = append(rows, row("R-113", 404, "POST", "/api/v1/namespaces/"+name+"/configmaps", `{"metadata":{"name":"x"}}`).has(`namespaces "`).either(404))
	}
	for _, target := range []string{badPath, "/api/v1/namespaces", thingsPath, definitionsPath} {
		for _, method := range []string{"GET", "DELETE", "PATCH"} {
			body := map[string]string{"PATCH": "{}"}[method]
			rows = append(rows, row("H-349", 400, method, target+"/a%25b", body).as(mergePatch).says(`Name parameter invalid: "a%b": may not contain '%'`))
		}
	}
	for i := range rows { // a body is for writes only, and so is its type
		if rows[i].body == "" {
			rows[i].kind = "-"
		}
	}
	for _, key := range []string{"a/b/c", "/a", "a/", "-a", "a b", strings.Repeat("a", 254) + "/b", "a/" + strings.Repeat("b", 64), "ä", ""} {
		rows = append(rows,
			row("R-691", 422, "POST", badPath, `{"metadata":{"name":"l","labels":{"`+key+`":"v"}}}`).has("metadata.labels: Invalid value: "),
			row("R-691", 422, "POST", badPath, `{"metadata":{"name":"l","annotations":{"`+key+`":"v"}}}`).has("metadata.annotations: Invalid value: "),
			row("R-691", 422, "PATCH", badPath+"/w", `{"metadata":{"labels":{"`+key+`":"v"}}}`).as(mergePatch).has("metadata.labels: Invalid value: "),
			row("R-691", 422, "POST", badPath, `{"metadata":{"name":"l","finalizers":["`+key+`"]}}`).has("metadata.finalizers"))
	}
	for _, value := range []string{"a/b", "-a", "a-", "a b", strings.Repeat("v", 64), "ä", "a:b"} {
		rows = append(rows, row("R-691", 422, "POST", badPath, `{"metadata":{"name":"l","labels":{"k":"`+value+`"}}}`).has("metadata.labels: Invalid value: "))
	}
	return append(rows,
		row("R-691", 422, "POST", badPath, `{"metadata":{"name":"l","annotations":{"k":"`+strings.Repeat("v", 262145)+`"}}}`).has("metadata.annotations: Too long: may not be more than 262144 bytes"),
		row("H-349", 422, "POST", badPath, `{"metadata":{"generateName":"UP"}}`).has("is invalid: "),
		row("H-349", 422, "POST", badPath, `{"metadata":{"generateName":"a.-"}}`).has("is invalid: "))
}

func (b *badInput) methodRows() (rows []endpointRow) {
	for _, target := range []string{badPath, badPath + "/w", "/api/v1/namespaces", namespacePath, "/api/v1/configmaps", deploymentsPath, deploymentPath} {
		for _, method := range []string{"OPTIONS", "TRACE", "BREW"} {
			rows = append(rows, row("H-604", 405, method, target, "").either(400, 501, 405).only())
		}
	}
	for _, target := range []string{badPath, "/api/v1/namespaces", deploymentsPath, definitionsPath} {
		rows = append(rows, row("H-102", 405, "PUT", target, "{}"), row("H-102", 405, "PATCH", target, "{}").as(mergePatch))
	}
	for _, target := range []string{badPath + "/w", namespacePath, deploymentPath} {
		rows = append(rows, row("H-102", 405, "POST", target, "{}"))
	}
	for _, target := range []string{"/api/v1/configmaps", "/apis/apps/v1/deployments"} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			rows = append(rows, row("H-102", 405, method, target, "{}").as(mergePatch).either(404, 405))
		}
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} { // the old form of a watch only reads
		rows = append(rows, row("H-102", 405, method, "/api/v1/watch/namespaces/"+badNamespace+"/configmaps", "{}").as(mergePatch).either(404, 405))
		rows = append(rows, row("H-102", 405, method, "/api/v1/watch/namespaces/"+badNamespace+"/configmaps/w", "{}").as(mergePatch).either(404, 405))
	}
	return rows
}

func (b *badInput) mediaRows() (rows []endpointRow) {
	for _, target := range []string{badPath, badPath + "/w", "/api/v1/namespaces", namespacePath + "/status", thingsPath, thingPath, thingPath + "/scale", definitionPath} {
		for _, accept := range []string{"image/png", "application/cbor", "text/html", "application/xml;q=1", "text/*", "application/json;as=Nosuch;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v9",
			"application/json;as=Table;g=other;v=v1", "a/b/c", ";;;"} {
			r := row("R-648", 406, "GET", target, "").accepting(accept)
			if strings.HasPrefix(accept, "application/json;as=") && strings.HasSuffix(target, "/scale") {
				continue
			}
			rows = append(rows, r)
		}
	}
	for _, accept := range []string{"image/png", "application/json;as=Nosuch;g=meta.k8s.io;v=v1", "text/*", "application/cbor"} {
		for _, target := range []string{badPath, thingsPath, definitionsPath} {
			rows = append(rows, row("R-648", 406, "GET", target+"?watch=1&timeoutSeconds=1&resourceVersion=1", "").accepting(accept))
		}
		rows = append(rows, row("R-648", 406, "POST", badPath, `{"metadata":{"name":"never"}}`).accepting(accept), row("R-648", 406, "PATCH", badPath+"/w", `{"data":{"k":"never"}}`).as(mergePatch).accepting(accept),
			row("R-648", 406, "PUT", badPath+"/w", configMapJSON("w", "", `"k":"never"`)).accepting(accept), row("R-648", 406, "DELETE", badPath+"/w", "").accepting(accept))
	}
	for _, target := range []string{badPath, badPath + "/w"} {
		rows = append(rows, row("H-302", 400, "GET", target+"?includeObject=Nosuch", "").accepting("application/json;as=Table;g=meta.k8s.io;v=v1").has(`Invalid value: "Nosuch": `))
	}
	for _, kind := range []string{"text/json", "application/*", "*/*", "text/yaml", "application/json+x", "multipart/form-data; boundary=x", "application/x-protobuf", "application/json, text/plain", "json"} {
		rows = append(rows, row("H-102", 415, "POST", badPath, `{"metadata":{"name":"never"}}`).as(kind), row("R-665", 415, "PATCH", badPath+"/w", `{"data":{"k":"never"}}`).as(kind),
			row("H-102", 415, "PUT", badPath+"/w", configMapJSON("w", "", "")).as(kind), row("H-102", 415, "POST", thingsPath, thing("never", "", "")).as(kind))
	}
	// Protobuf that is none, or of another kind.
	for _, target := range []string{badPath, deploymentsPath, "/api/v1/namespaces"} {
		for _, garbage := range []string{"k8s\x00", "k8s\x00\x0a\xff\xff\xff\xff\x0f", "k8s\x00\x0a\x0b\x0a\x02v1\x12\x05Event\x12\x00", "not protobuf at all", "k8s\x01", "{}",
			"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\xff\xff\xff\xff\x7f"} {
			rows = append(rows, row("H-320", 400, "POST", target, garbage).as(protobufType))
		}
	}
	return rows
}

func (b *badInput) patchRows() (rows []endpointRow) {
	target := badPath + "/w"
	for _, kind := range []string{mergePatch, strategicPatch} {
		for _, body := range []string{"{", "[]", `"x"`, "5", "nonsense", "{}{}"} {
			rows = append(rows, row("R-665", 400, "PATCH", target, body).as(kind))
		}
		rows = append(rows,
			row("R-661", 400, "PATCH", target, `{"metadata":{"name":"other"}}`).as(kind).has("does not match the name on the URL (w)"),
			row("R-661", 400, "PATCH", target, `{"metadata":{"name":null}}`).as(kind).says("the name of the object (w based on URL) was undeterminable: name must be provided"),
			row("R-661", 400, "PATCH", target, `{"metadata":{"namespace":"other"}}`).as(kind).either(400, 422, 400),
			row("R-662", 409, "PATCH", target, `{"metadata":{"resourceVersion":"1"},"data":{"k":"never"}}`).as(kind).has("the object has been modified"),
			row("R-663", 409, "PATCH", target, `{"metadata":{"uid":"x"}}`).as(kind).either(422, 409),
		)
		for _, body := range []string{`{"kind":"Secret"}`, `{"apiVersion":"v2"}`} {
			r := row("R-665", 400, "PATCH", target, body).as(kind).either(422, 400)
			r.ours = kind == strategicPatch // there, it is lost on the way and nothing changes
			rows = append(rows, r)
		}
		for _, body := range []string{`{"metadata":{"labels":{"a":5}}}`, `{"metadata":{"finalizers":"x"}}`, `{"metadata":{"generateName":5}}`, `{"data":"x"}`, `{"data":{"k":5}}`} {
			rows = append(rows, row("R-665", 422, "PATCH", target, body).as(kind))
		}
		rows = append(rows, row("R-663", 404, "PATCH", badPath+"/nope", "{}").as(kind).says(`configmaps "nope" not found`))
	}
	rows = append(rows, row("R-661", 400, "PATCH", target, `{"metadata":null}`).as(mergePatch).says("the name of the object (w based on URL) was undeterminable: name must be provided"))
	for _, body := range []string{"{", "{}", "[1]", "nonsense"} {
		rows = append(rows, row("R-665", 400, "PATCH", target, body).as(jsonPatch))
	}
	for _, body := range []string{"[{}]", `[{"op":"add"}]`, `[{"op":"nope","path":"/a"}]`, `[{"op":"move","path":"/data/z"}]`, `[{"op":"replace","path":"","value":[]}]`, `[{"op":"replace","path":"/kind","value":"Secret"}]`,
		`[{"op":"remove","path":"/metadata/name"}]`} {
		rows = append(rows, row("R-665", 400, "PATCH", target, body).as(jsonPatch).either(400, 422, 400))
	}
	rows = append(rows, row("R-665", 422, "PATCH", target, `[{"op":"replace","path":"/metadata","value":"x"}]`).as(jsonPatch))
	for _, body := range []string{`[{"op":"test","path":"/data/k","value":"other"}]`, `[{"op":"move","from":"/nosuch","path":"/data/z"}]`, `[{"op":"replace","path":"/nosuch/deep","value":"x"}]`,
		`[{"op":"replace","path":"/data/k","value":"half"},{"op":"test","path":"/data/k","value":"no"}]`} {
		rows = append(rows, row("R-665", 422, "PATCH", target, body).as(jsonPatch).has("the server rejected our request due to an error in our request"))
	}
	for _, body := range []string{`[{"op":"add","path":"/data/x"}]`, `[{"op":"add","path":"data/x","value":"1"}]`} { // the library used upstream is content
		rows = append(rows, row("R-665", 400, "PATCH", target, body).as(jsonPatch).only())
	}
	for _, body := range []string{`{"$patch":"nope"}`, `{"data":{"$patch":"nope"}}`, `{"metadata":{"ownerReferences":[{"name":"x"}]}}`} {
		rows = append(rows, row("R-665", 400, "PATCH", target, body).as(strategicPatch).either(422, 500, 400))
	}
	return append(rows, row("R-665", 415, "PATCH", target, "{}").as("-").either(415), row("H-343", 415, "PATCH", target+"?fieldManager=x", "{").as(applyPatch).only(), row("R-665", 415, "PATCH", target, "{}").as("application/json"))
}

func (b *badInput) writeOptionRows() (rows []endpointRow) {
	for _, w := range []struct{ method, target, body, kind, options string }{
		{"POST", badPath, configMapJSON("never", "", ""), "", "CreateOptions"}, {"PUT", badPath + "/w", configMapJSON("w", "", ""), "", "UpdateOptions"}, {"PATCH", badPath + "/w", "{}", mergePatch, "PatchOptions"},
		{"POST", thingsPath, thing("never", "", ""), "", "CreateOptions"}, {"PUT", thingPath, thing("t", "", ""), "", "UpdateOptions"}, {"PATCH", thingPath, "{}", mergePatch, "PatchOptions"},
		{"POST", definitionsPath, "{}", "", "CreateOptions"}, {"PATCH", definitionPath, "{}", mergePatch, "PatchOptions"}, {"PATCH", definitionPath + "/status", "{}", mergePatch, "PatchOptions"},
		{"POST", "/api/v1/namespaces", "{}", "", "CreateOptions"}, {"PATCH", namespacePath, "{}", mergePatch, "PatchOptions"}, {"PATCH", namespacePath + "/status", "{}", mergePatch, "PatchOptions"},
		{"PATCH", deploymentPath + "/scale", "{}", mergePatch, "PatchOptions"},
	} {
		invalid := w.options + `.meta.k8s.io "" is invalid: `
		rows = append(rows,
			row("R-610", 422, w.method, w.target+"?dryRun=Some", w.body).as(w.kind).says(invalid+`dryRun: Unsupported value: ["Some"]: supported values: "All"`),
			row("R-610", 422, w.method, w.target+"?dryRun=", w.body).as(w.kind).has(invalid+"dryRun: Unsupported value: "),
			row("R-610", 422, w.method, w.target+"?dryRun=All&dryRun=None", w.body).as(w.kind).has(invalid+"dryRun: Unsupported value: "),
			row("R-612", 422, w.method, w.target+"?fieldValidation=Maybe", w.body).as(w.kind).
				says(invalid+`fieldValidation: Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn"`),
			row("R-612", 422, w.method, w.target+"?fieldValidation=strict", w.body).as(w.kind).has(invalid+"fieldValidation: Unsupported value: "),
			row("R-611", 422, w.method, w.target+"?fieldManager="+strings.Repeat("m", 129), w.body).as(w.kind).says(invalid+"fieldManager: Too long: may not be more than 128 bytes"),
			row("R-611", 422, w.method, w.target+"?fieldManager=a%01b", w.body).as(w.kind).has(invalid+"fieldManager: Invalid value: "),
			row("R-651", 400, w.method, w.target+"?timeout=soon", w.body).as(w.kind).has("invalid timeout specified in the request URL"),
		)
		if w.method == "PATCH" {
			rows = append(rows, row("R-613", 422, w.method, w.target+"?force=true", w.body).as(w.kind).says(invalid+"force: Forbidden: may not be specified for non-apply patch"),
				row("R-613", 422, w.method, w.target+"?force=false", w.body).as(w.kind).has(invalid+"force: Forbidden: "))
		}
	}
	return rows
}
