package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sort"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// wireTest speaks raw HTTP to one server and checks what the specification pins.
type wireTest struct {
	report  *report
	address string
	client  *rawClient
	custom  *workload
	short   time.Duration // how long "nothing comes" is waited for
	prompt  time.Duration // how long something may take to come
}

const (
	wireNamespace = "peers-wire"
	wirePath      = "/api/v1/namespaces/" + wireNamespace + "/configmaps"
	tableAccept   = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
	partialAccept = "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	partialList   = "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	jsonType      = "Content-Type: application/json"
	mergeType     = "Content-Type: application/merge-patch+json"
)

func newWireTest(report *report, server string) (*wireTest, error) {
	address, err := addressOf(server)
	if err != nil {
		return nil, err
	}
	return &wireTest{report: report, address: address, client: &rawClient{address: address}, short: 300 * time.Millisecond, prompt: 2 * time.Minute}, nil
}

// ask sends a request and decodes the JSON answer; a nil object means there was none (reported).
func (t *wireTest) ask(method, target, body string, headers ...string) (*rawResponse, object) {
	request := rawRequest{method: method, target: target, headers: headers}
	if body != "" {
		request.body = []byte(body)
	}
	response, err := t.client.do(request)
	if !t.report.check(err == nil, "answer", "%s %s: %v", method, target, err) {
		return &rawResponse{}, nil
	}
	decoded, err := response.decode()
	if !t.report.check(err == nil, "H-101", "%s %s: %d: %v", method, target, response.status, err) {
		return response, nil
	}
	return response, decoded
}

// wants checks the status code of a request that must succeed.
func (t *wireTest) wants(code int, method, target, body string, headers ...string) object {
	response, decoded := t.ask(method, target, body, headers...)
	t.report.check(response.status == code, "status", "%s %s: %d instead of %d: %.300s", method, target, response.status, code, response.body)
	return decoded
}

// refusal is what a refused request must answer. Empty fields are not compared.
type refusal struct {
	code     int
	codes    []int // any of these, when code is 0
	reason   string
	message  string // exact
	contains string // part of the message
}

// isStatus checks the shape of a Status (H-101, R-680).
func (t *wireTest) isStatus(rule, what string, response *rawResponse, decoded object, want refusal) {
	if decoded == nil {
		return
	}
	code := response.status
	if want.code != 0 {
		want.codes = []int{want.code}
	}
	found := false
	for _, c := range want.codes {
		found = found || c == code
	}
	if !t.report.check(found, rule, "%s: %d instead of %v: %.300s", what, code, want.codes, response.body) {
		return // what it says does not matter then
	}
	if !t.report.check(digString(decoded, "kind") == "Status" && digString(decoded, "apiVersion") == "v1", "H-101", "%s: answer is %s %s, no Status: %.200s",
		what, digString(decoded, "apiVersion"), digString(decoded, "kind"), response.body) {
		return
	}
	t.report.check(digString(decoded, "status") == "Failure" && digNumber(decoded, "code") == int64(code), "R-680",
		"%s: HTTP %d with status %q, code %v", what, code, digString(decoded, "status"), decoded["code"])
	_, hasMetadata := decoded["metadata"].(map[string]any)
	t.report.check(hasMetadata, "R-679", "%s: Status without metadata: %.200s", what, response.body)
	t.report.check(strings.HasPrefix(response.header.Get("Content-Type"), "application/json"), "H-101", "%s: Content-Type is %q", what, response.header.Get("Content-Type"))
	message := digString(decoded, "message")
	t.report.check(message != "", "H-101", "%s: Status without message", what)
	if want.reason != "" {
		t.report.check(digString(decoded, "reason") == want.reason, "H-102", "%s: reason %q instead of %q (message %q)", what, digString(decoded, "reason"), want.reason, message)
	}
	if want.message != "" {
		t.report.check(message == want.message, rule, "%s: message\n    %q instead of\n    %q", what, message, want.message)
	}
	t.report.check(strings.Contains(message, want.contains), rule, "%s: message %q does not contain %q", what, message, want.contains)
	if retry := digNumber(decoded, "details", "retryAfterSeconds"); retry > 0 {
		t.report.check(response.header.Get("Retry-After") == fmt.Sprint(retry), "R-657", "%s: retryAfterSeconds %d, but Retry-After is %q",
			what, retry, response.header.Get("Retry-After"))
	}
}

// refused sends a request that must be refused.
func (t *wireTest) refused(rule string, want refusal, method, target, body string, headers ...string) object {
	response, decoded := t.ask(method, target, body, headers...)
	what := fmt.Sprintf("%s %.160s", method, target)
	if body != "" {
		what += fmt.Sprintf(" %.80q", body)
	}
	t.isStatus(rule, what, response, decoded, want)
	return decoded
}

func configMapJSON(name, labels, data string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","labels":{%s}},"data":{%s}}`, name, labels, data)
}

func (t *wireTest) createConfigMap(name, labels string) uint64 {
	return revisionOf(t.wants(201, "POST", wirePath, configMapJSON(name, labels, `"value":"0"`), jsonType))
}

func (t *wireTest) patchConfigMap(name, patch string) uint64 {
	return revisionOf(t.wants(200, "PATCH", wirePath+"/"+name, patch, mergeType))
}

func (t *wireTest) deleteConfigMap(name string) {
	t.wants(200, "DELETE", wirePath+"/"+name, "")
}

func namesOf(list object) []string {
	names := []string{}
	for _, item := range digItems(list, "items") {
		names = append(names, digString(item, "metadata", "name"))
	}
	return names
}

func query(pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return "?" + values.Encode()
}

func text(revision uint64) string { return fmt.Sprint(revision) }

func runWatchList(args []string) int {
	flags, verbose, _ := newFlags("watchlist")
	server := flags.String("server", "", "URL of the server")
	custom := flags.String("custom", "example.com/v1/widgets/Widget", "custom resource with the selectable field spec.colour: GROUP/VERSION/PLURAL/KIND")
	only := flags.String("only", "", "run only this part, such as watch-starts")
	repeat := flags.Int("repeat", 1, "run that often, until a check fails")
	expire := flags.Bool("expire", false, "only check what happens to revisions that history no longer holds; the server must keep little of it")
	expireLimit := flags.Duration("expire-limit", 90*time.Second, "write at most this long until the revision is gone")
	upstream := flags.Bool("upstream", false, "the server is a kube-apiserver: leave out where vedette differs on purpose")
	_ = flags.Parse(args)
	setVerbose(*verbose)
	report := newReport("watchlist")
	t, err := newWireTest(report, *server)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers watchlist:", err)
		return 2
	}
	if t.custom, err = customWorkload(*custom); err != nil {
		fmt.Fprintln(os.Stderr, "peers watchlist:", err)
		return 2
	}
	response, _ := t.ask("POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+wireNamespace+`"}}`, jsonType)
	report.check(response.status == 201 || response.status == 409, "setup", "creating the namespace: %d %.200s", response.status, response.body)
	response, _ = t.ask("DELETE", wirePath, "")
	report.check(response.status == 200, "R-669", "deletecollection: %d %.200s", response.status, response.body)
	if report.violated() {
		return report.finish()
	}
	if *expire {
		t.expiry(*expireLimit)
		return report.finish()
	}
	for round := 0; round < *repeat && !report.violated(); round++ {
		for _, part := range []struct {
			name string
			run  func()
		}{
			{"gets-and-lists", func() { t.getsAndLists(*upstream) }}, {"list-modes", func() { t.listModes(*upstream) }}, {"tokens", func() { t.tokens(*upstream) }},
			{"representations", t.representations}, {"compression", t.compression}, {"watch-compression", func() { t.watchCompression(*upstream) }}, {"watch-starts", func() { t.watchStarts(*upstream) }}, {"watch-selectors", t.watchSelectors},
			{"watch-representations", t.watchRepresentations}, {"watch-ends", func() { t.watchEnds(*upstream) }}, {"watch-writes", t.watchWrites},
			{"custom-fields", t.customFields},
		} {
			if *only == "" || *only == part.name {
				part.run()
			}
		}
	}
	t.client.close()
	return report.finish()
}

// makeSeven leaves exactly the config maps a..g; returns the revision of each creation.
func (t *wireTest) makeSeven() []uint64 {
	t.wants(200, "DELETE", wirePath, "")
	revisions := []uint64{}
	for i, name := range strings.Split("abcdefg", "") {
		colour := "red"
		if i%2 == 1 {
			colour = "blue"
		}
		revisions = append(revisions, t.createConfigMap(name, `"colour":"`+colour+`","n":"`+fmt.Sprint(i)+`"`))
	}
	for i := 1; i < len(revisions); i++ {
		t.report.check(revisions[i] > revisions[i-1], "H-419", "creations got the revisions %v", revisions)
	}
	// Revision 0 takes the cache as it is: make sure that it is not behind us.
	t.wants(200, "GET", wirePath+"?resourceVersionMatch=NotOlderThan&resourceVersion="+text(revisions[6]), "")
	return revisions
}

func (t *wireTest) getsAndLists(upstream bool) {
	revisions := t.makeSeven()
	now := revisions[6]

	// GET
	for _, q := range []string{"", "?resourceVersion=0", "?resourceVersion=" + text(now)} {
		got := t.wants(200, "GET", wirePath+"/c"+q, "")
		t.report.check(revisionOf(got) == revisions[2] && digString(got, "kind") == "ConfigMap" && digString(got, "apiVersion") == "v1" &&
			digString(got, "metadata", "uid") != "" && digString(got, "data", "value") == "0", "R-582", "GET c%s: %v", q, got)
		created := digString(got, "metadata", "creationTimestamp")
		_, err := time.Parse("2006-01-02T15:04:05Z", created)
		t.report.check(err == nil, "H-350", "creationTimestamp is %q", created)
	}
	started := time.Now()
	decoded := t.refused("R-124", refusal{code: 504, reason: "Timeout", contains: fmt.Sprintf("Too large resource version: %d, current: ", now+1000000)},
		"GET", wirePath+"/c?resourceVersion="+text(now+1000000), "")
	t.report.check(digString(decoded, "details", "causes", 0, "reason") == "ResourceVersionTooLarge", "H-412", "cause of a future revision: %v", dig(decoded, "details"))
	t.report.check(time.Since(started) < 8*time.Second, "R-460", "a future revision took %v to be refused", time.Since(started))

	// The exact text of a Status.
	response, _ := t.ask("GET", wirePath+"/nope", "")
	want := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps \"nope\" not found","reason":"NotFound",` +
		`"details":{"name":"nope","kind":"configmaps"},"code":404}` + "\n"
	t.report.check(string(response.body) == want, "R-679", "404 is\n    %q, not\n    %q", response.body, want)
	response, decoded = t.ask("GET", fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s/nope", t.custom.resource.Group, t.custom.resource.Version, wireNamespace, t.custom.resource.Resource), "")
	t.isStatus("R-113", "GET of a missing custom object", response, decoded, refusal{code: 404, reason: "NotFound",
		message: fmt.Sprintf(`%s.%s "nope" not found`, t.custom.resource.Resource, t.custom.resource.Group)})
	t.report.check(digString(decoded, "details", "group") == t.custom.resource.Group && digString(decoded, "details", "kind") == t.custom.resource.Resource,
		"R-680", "details of a missing custom object: %v", dig(decoded, "details"))

	// LIST: shape, order, empty.
	list := t.wants(200, "GET", wirePath, "")
	t.report.check(digString(list, "kind") == "ConfigMapList" && digString(list, "apiVersion") == "v1", "H-305", "list is %v %v", list["apiVersion"], list["kind"])
	t.report.check(fmt.Sprint(namesOf(list)) == "[a b c d e f g]", "R-154", "list holds %v", namesOf(list))
	t.report.check(revisionOf(list) >= now, "R-473", "list has revision %d, the last write %d", revisionOf(list), now)
	if !upstream { // typed lists of kube-apiserver leave kind out of the items
		for _, item := range digItems(list, "items") {
			t.report.check(digString(item, "kind") == "ConfigMap" && digString(item, "apiVersion") == "v1", "H-305", "list item without kind: %v", item)
		}
	}
	response, empty := t.ask("GET", wirePath+"?labelSelector=nosuch", "")
	items, isArray := empty["items"].([]any)
	t.report.check(response.status == 200 && isArray && len(items) == 0, "R-645", "an empty list is %.200s", response.body)
	t.report.check(revisionOf(empty) >= now, "R-160", "an empty list has revision %d", revisionOf(empty))
	one := t.wants(200, "GET", wirePath+query("fieldSelector", "metadata.name=d"), "")
	t.report.check(fmt.Sprint(namesOf(one)) == "[d]" && revisionOf(one) >= now, "R-621", "list by name: %v at %d", namesOf(one), revisionOf(one))
	none := t.wants(200, "GET", wirePath+query("fieldSelector", "metadata.name=nope"), "")
	t.report.check(len(namesOf(none)) == 0, "R-621", "list by a name that is not there: %v", namesOf(none))

	// Label and field selectors.
	for selector, names := range map[string]string{
		"colour=red": "a c e g", "colour==blue": "b d f", "colour!=red": "b d f", "colour in (red,green)": "a c e g", "colour notin (red)": "b d f",
		"colour": "a b c d e f g", "!colour": "", "n>3": "e f g", "n<2": "a b", "colour=red,n>2": "e g", "nosuch!=x": "a b c d e f g", "nosuch notin (x)": "a b c d e f g",
		"colour in (red, blue),n in (1,2)": "b c", " colour = red , n = 0 ": "a", "nosuch=": "", "": "a b c d e f g",
	} {
		list := t.wants(200, "GET", wirePath+query("labelSelector", selector), "")
		t.report.check(strings.Join(namesOf(list), " ") == names, "R-691", "labelSelector %q gives %v, not %s", selector, namesOf(list), names)
	}
	for selector, names := range map[string]string{
		"metadata.name=c": "c", "metadata.name!=c": "a b d e f g", "metadata.namespace=" + wireNamespace + ",metadata.name==e": "e",
		"metadata.namespace=elsewhere": "", "metadata.name!=a,metadata.name!=b": "c d e f g", "metadata.name=a,metadata.name=b": "",
	} {
		list := t.wants(200, "GET", wirePath+query("fieldSelector", selector), "")
		t.report.check(strings.Join(namesOf(list), " ") == names, "R-692", "fieldSelector %q gives %v, not %s", selector, namesOf(list), names)
	}

	// All namespaces: keys in byte order of namespace/name ('-' sorts before '/').
	for _, namespace := range []string{wireNamespace + "-b", wireNamespace + "0"} {
		t.ask("POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+namespace+`"}}`, jsonType)
		t.ask("DELETE", "/api/v1/namespaces/"+namespace+"/configmaps", "")
		for _, name := range []string{"z", "a"} {
			t.wants(201, "POST", "/api/v1/namespaces/"+namespace+"/configmaps", configMapJSON(name, `"order":"yes"`, ""), jsonType)
		}
	}
	t.patchConfigMap("a", `{"metadata":{"labels":{"order":"yes"}}}`)
	all := t.wants(200, "GET", "/api/v1/configmaps?labelSelector=order%3Dyes", "")
	keys := []string{}
	for _, item := range digItems(all, "items") {
		keys = append(keys, digString(item, "metadata", "namespace")+"/"+digString(item, "metadata", "name"))
	}
	t.report.check(len(keys) == 5 && sort.StringsAreSorted(keys), "R-619", "list of all namespaces is not in key order: %v", keys)
	narrowed := t.wants(200, "GET", "/api/v1/configmaps"+query("fieldSelector", "metadata.namespace="+wireNamespace+"-b"), "")
	t.report.check(fmt.Sprint(namesOf(narrowed)) == "[a z]" || upstream, "R-620", "list narrowed to a namespace: %v", namesOf(narrowed))

	// pretty
	for q, pretty := range map[string]bool{"?pretty=true": true, "?pretty=1": true, "?pretty=false": false, "": false} {
		response, _ := t.ask("GET", wirePath+"/c"+q, "")
		t.report.check(strings.Contains(string(response.body), "\n  \"metadata\": {") == pretty, "R-609", "GET c%s: %.100q", q, response.body)
		t.report.check(strings.HasSuffix(string(response.body), "\n") || pretty, "R-679", "no newline after the document: %.100q", response.body)
	}
	response, _ = t.ask("GET", wirePath+"/c", "", "User-Agent: curl/8.0")
	t.report.check(strings.Contains(string(response.body), "\n  \"metadata\": {"), "R-609", "pretty is the default for curl: %.100q", response.body)

	// HEAD-less things that must be ignored (H-104).
	list = t.wants(200, "GET", wirePath+"?timeout=32s&unknown=x&allowWatchBookmarks=true&fieldManager=me", "")
	t.report.check(len(namesOf(list)) == 7, "H-104", "unknown parameters change the list: %v", namesOf(list))
	t.wants(200, "GET", wirePath+"/c?watch=1", "") // ignored for a single object
	for value, watch := range map[string]bool{"0": false, "false": false, "False": false, "FALSE": false, "": true, "1": true, "yes": true, "TRUE": true} {
		response, err := t.client.do(rawRequest{method: "GET", target: wirePath + "?timeoutSeconds=1&watch=" + value})
		if t.report.check(err == nil, "R-602", "watch=%s: %v", value, err) {
			t.report.check(strings.HasPrefix(string(response.body), `{"type":"ADDED"`) == watch, "R-602", "watch=%q: %.60q", value, response.body)
		}
	}
}

// listModes is the table R-151.
func (t *wireTest) listModes(upstream bool) {
	revisions := t.makeSeven()
	t.patchConfigMap("b", `{"data":{"value":"new"}}`)
	t.deleteConfigMap("f")
	now := revisionOf(t.wants(200, "GET", wirePath, ""))
	third := text(revisions[2])
	type row struct {
		rule, query string
		names       string
		exactly     uint64 // 0: only >= atLeast
		atLeast     uint64
		more        bool
	}
	for _, row := range []row{
		{"R-151", "", "a b c d e g", 0, now, false},
		{"R-151", "?limit=3", "a b c", 0, now, true},
		{"R-151", "?limit=6", "a b c d e g", 0, now, false},
		{"R-151", "?resourceVersion=0", "a b c d e g", 0, 1, false},
		{"R-151", "?resourceVersion=0&limit=3", "a b c d e g", 0, 1, false},
		{"R-151", "?resourceVersion=" + third, "a b c d e g", 0, revisions[2], false},
		{"R-151", "?resourceVersion=" + third + "&limit=2", "a b", revisions[2], 0, true},
		{"R-151", "?resourceVersion=" + third + "&limit=3", "a b c", revisions[2], 0, false},
		{"R-151", "?resourceVersion=0&resourceVersionMatch=NotOlderThan", "a b c d e g", 0, 1, false},
		{"R-151", "?resourceVersion=0&resourceVersionMatch=NotOlderThan&limit=2", "a b c d e g", 0, 1, false},
		{"R-151", "?resourceVersion=" + third + "&resourceVersionMatch=NotOlderThan", "a b c d e g", 0, revisions[2], false},
		{"R-151", "?resourceVersion=" + third + "&resourceVersionMatch=NotOlderThan&limit=2", "a b", 0, revisions[2], true},
		{"R-472", "?resourceVersion=" + third + "&resourceVersionMatch=Exact", "a b c", revisions[2], 0, false},
		{"R-472", "?resourceVersion=" + third + "&resourceVersionMatch=Exact&limit=2", "a b", revisions[2], 0, true},
		{"R-472", "?resourceVersion=" + text(revisions[6]) + "&resourceVersionMatch=Exact", "a b c d e f g", revisions[6], 0, false},
		{"R-472", "?resourceVersion=" + text(revisions[6]) + "&resourceVersionMatch=Exact&labelSelector=colour%3Dblue", "b d f", revisions[6], 0, false},
	} {
		list := t.wants(200, "GET", wirePath+row.query, "")
		t.report.check(strings.Join(namesOf(list), " ") == row.names, row.rule, "list%s: %v instead of %s", row.query, namesOf(list), row.names)
		at := revisionOf(list)
		if row.exactly != 0 {
			t.report.check(at == row.exactly, row.rule, "list%s has revision %d instead of exactly %d", row.query, at, row.exactly)
		} else {
			t.report.check(at >= row.atLeast, row.rule, "list%s has revision %d, at least %d is asked", row.query, at, row.atLeast)
		}
		t.report.check((digString(list, "metadata", "continue") != "") == row.more, "R-156", "list%s: continue %q", row.query, digString(list, "metadata", "continue"))
		if row.more {
			total := 6
			if row.exactly == revisions[2] {
				total = 3
			}
			t.report.check(digNumber(list, "metadata", "remainingItemCount") == int64(total-len(namesOf(list))), "R-155", "list%s: remainingItemCount %v",
				row.query, dig(list, "metadata", "remainingItemCount"))
		} else {
			t.report.check(dig(list, "metadata", "remainingItemCount") == nil, "R-155", "list%s: remainingItemCount without more", row.query)
		}
	}
	old := t.wants(200, "GET", wirePath+"?resourceVersion="+text(revisions[6])+"&resourceVersionMatch=Exact", "")
	t.report.check(digString(old, "items", 1, "data", "value") == "0" && revisionOf(dig(old, "items", 1)) == revisions[1], "R-472", "b at an old revision: %v", dig(old, "items", 1))

	// A revision that does not exist yet.
	future := text(now + 1000000)
	for _, q := range []string{"?resourceVersion=" + future, "?resourceVersionMatch=NotOlderThan&resourceVersion=" + future,
		"?resourceVersionMatch=Exact&resourceVersion=" + future, "?limit=2&resourceVersion=" + future} {
		decoded := t.refused("R-124", refusal{code: 504, reason: "Timeout", contains: "Too large resource version: " + future + ", current: "}, "GET", wirePath+q, "")
		t.report.check(digString(decoded, "details", "causes", 0, "reason") == "ResourceVersionTooLarge" &&
			digString(decoded, "details", "causes", 0, "message") == "Too large resource version", "H-412", "list%s: causes %v", q, dig(decoded, "details", "causes"))
	}

	// Pages: one state, whatever is written in between; selectors give no remainingItemCount.
	first := t.wants(200, "GET", wirePath+"?limit=2", "")
	t.patchConfigMap("d", `{"data":{"value":"between pages"}}`)
	t.deleteConfigMap("e")
	t.createConfigMap("ee", `"colour":"red"`)
	names, pages := namesOf(first), 1
	for page := first; digString(page, "metadata", "continue") != "" && pages < 10; pages++ {
		page = t.wants(200, "GET", wirePath+query("limit", "2", "continue", digString(page, "metadata", "continue")), "")
		t.report.check(revisionOf(page) == revisionOf(first), "R-151", "page %d has revision %d, the first %d", pages, revisionOf(page), revisionOf(first))
		names = append(names, namesOf(page)...)
		for _, item := range digItems(page, "items") {
			t.report.check(revisionOf(item) <= revisionOf(first), "R-151", "page %d of a list at %d holds %s at %d", pages, revisionOf(first), digString(item, "metadata", "name"), revisionOf(item))
		}
	}
	t.report.check(strings.Join(names, " ") == "a b c d e g" && pages == 3, "R-151", "%d pages of one list hold %v", pages, names)
	selected := t.wants(200, "GET", wirePath+"?limit=2&labelSelector=colour%3Dred", "")
	t.report.check(len(namesOf(selected)) == 2 && digString(selected, "metadata", "continue") != "" && dig(selected, "metadata", "remainingItemCount") == nil,
		"R-155", "first page with a selector: %v", dig(selected, "metadata"))
	second := t.wants(200, "GET", wirePath+query("limit", "5", "labelSelector", "colour=red", "continue", digString(selected, "metadata", "continue")), "")
	t.report.check(fmt.Sprint(namesOf(selected), namesOf(second)) == "[a c] [ee g]", "R-156", "pages with a selector: %v %v", namesOf(selected), namesOf(second))
}

// tokens is about continue tokens.
func (t *wireTest) tokens(upstream bool) {
	t.makeSeven()
	first := t.wants(200, "GET", wirePath+"?limit=3", "")
	token := digString(first, "metadata", "continue")
	plain, err := base64.RawURLEncoding.DecodeString(token)
	if !t.report.check(err == nil, "R-153", "token %q is not unpadded base64url: %v", token, err) {
		return
	}
	want := fmt.Sprintf(`{"v":"meta.k8s.io/v1","rv":%d,"start":"c\u0000"}`, revisionOf(first))
	t.report.check(string(plain) == want || string(plain) == strings.Replace(want, `"c`, `"/c`, 1), "R-153", "token holds %s, not %s", plain, want)
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	crafted := func(rv any, start string) string {
		quoted, _ := json.Marshal(start)
		return encode(fmt.Sprintf(`{"v":"meta.k8s.io/v1","rv":%v,"start":%s}`, rv, quoted))
	}
	for _, row := range []struct {
		token, names string
		exact        bool
	}{
		{token, "d e f g", true},
		{crafted(revisionOf(first), "c\x00"), "d e f g", true},
		{crafted(revisionOf(first), "/c\x00"), "d e f g", true},
		{crafted(revisionOf(first), "d"), "d e f g", true},
		{crafted(revisionOf(first), "zzz"), "", true},
	} {
		list := t.wants(200, "GET", wirePath+query("continue", row.token), "")
		t.report.check(strings.Join(namesOf(list), " ") == row.names && revisionOf(list) == revisionOf(first), "R-153", "continue %s: %v at %d, not %s at %d",
			row.token, namesOf(list), revisionOf(list), row.names, revisionOf(first))
	}
	// With resourceVersion=0 a token is allowed; rv -1 goes on in the latest state.
	list := t.wants(200, "GET", wirePath+query("continue", token, "resourceVersion", "0"), "")
	t.report.check(fmt.Sprint(namesOf(list)) == "[d e f g]", "R-150", "continue with resourceVersion=0: %v", namesOf(list))
	last := t.createConfigMap("dd", "")
	list = t.wants(200, "GET", wirePath+query("continue", crafted(-1, "c\x00")), "")
	t.report.check(fmt.Sprint(namesOf(list)) == "[d dd e f g]" && revisionOf(list) >= last, "R-151", "continue at rv -1: %v at %d", namesOf(list), revisionOf(list))

	bad := func(token, message string) {
		t.refused("R-153", refusal{code: 400, reason: "BadRequest", contains: message}, "GET", wirePath+query("limit", "2", "continue", token), "")
	}
	bad("garbage!", "continue key is not valid")
	bad(encode("no json"), "continue key is not valid")
	bad(encode("[]"), "continue key is not valid")
	bad(token+"==", "continue key is not valid")
	bad(crafted(0, "c\x00"), "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	bad(crafted(5, ""), "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
	bad(encode(`{"v":"meta.k8s.io/v2","rv":5,"start":"c"}`), "continue key is not valid: server does not recognize this encoded version meta.k8s.io/v2")
	for _, start := range []string{"../../secrets/x", "a/../../b", "..", "a//b", "b/", "/../x", "//x"} {
		bad(crafted(revisionOf(first), start), "continue key is not valid: "+start)
	}
	t.refused("R-150", refusal{code: 400, reason: "BadRequest", contains: "specifying resource version is not allowed when using continue"},
		"GET", wirePath+query("continue", token, "resourceVersion", "5"), "")
	if !upstream {
		t.refused("R-124", refusal{codes: []int{400, 504}}, "GET", wirePath+query("continue", crafted(last+1000000, "c")), "")
	}
}

func (t *wireTest) representations() {
	t.makeSeven()
	response, table := t.ask("GET", wirePath+"?limit=3", "", tableAccept)
	t.report.check(response.status == 200 && digString(table, "kind") == "Table" && digString(table, "apiVersion") == "meta.k8s.io/v1", "H-301", "Table list: %d %v %v",
		response.status, table["kind"], table["apiVersion"])
	t.report.check(revisionOf(table) > 0 && digString(table, "metadata", "continue") != "" && digNumber(table, "metadata", "remainingItemCount") == 4, "H-415",
		"metadata of a Table list: %v", table["metadata"])
	columns := digItems(table, "columnDefinitions")
	t.report.check(len(columns) >= 2 && strings.EqualFold(digString(columns, 0, "name"), "name") && digString(columns, 0, "format") == "name" && digString(columns, 0, "type") == "string",
		"H-301", "first column: %v", dig(table, "columnDefinitions", 0))
	rows := digItems(table, "rows")
	if t.report.check(len(rows) == 3, "H-301", "Table of 3 has %d rows", len(rows)) {
		t.report.check(len(digItems(rows[0], "cells")) == len(columns) && digString(rows[0], "cells", 0) == "a", "H-301", "cells %v", dig(rows[0], "cells"))
		t.report.check(digString(rows[0], "object", "kind") == "PartialObjectMetadata" && digString(rows[0], "object", "apiVersion") == "meta.k8s.io/v1" &&
			digString(rows[0], "object", "metadata", "name") == "a" && dig(rows[0], "object", "data") == nil, "H-302", "row object: %v", dig(rows[0], "object"))
	}
	_, table = t.ask("GET", wirePath+"?includeObject=Object", "", tableAccept)
	t.report.check(digString(table, "rows", 0, "object", "kind") == "ConfigMap" && digString(table, "rows", 0, "object", "data", "value") == "0", "H-302",
		"includeObject=Object: %v", dig(table, "rows", 0, "object"))
	_, table = t.ask("GET", wirePath+"?includeObject=None", "", tableAccept)
	t.report.check(len(digItems(table, "rows")) == 7 && dig(table, "rows", 0, "object", "metadata") == nil, "H-104", "includeObject=None: %v", dig(table, "rows", 0))
	t.refused("H-104", refusal{codes: []int{400, 422}}, "GET", wirePath+"?includeObject=Bogus", "", tableAccept)
	_, table = t.ask("GET", wirePath+"/c", "", tableAccept)
	t.report.check(digString(table, "kind") == "Table" && len(digItems(table, "rows")) == 1 && digString(table, "rows", 0, "cells", 0) == "c", "H-301", "Table of one: %v", table)

	_, partial := t.ask("GET", wirePath, "", partialList)
	t.report.check(digString(partial, "kind") == "PartialObjectMetadataList" && digString(partial, "apiVersion") == "meta.k8s.io/v1" && revisionOf(partial) > 0 &&
		len(digItems(partial, "items")) == 7, "H-306", "metadata list: %v %v", partial["apiVersion"], partial["kind"])
	t.report.check(dig(partial, "items", 2, "data") == nil && digString(partial, "items", 2, "metadata", "labels", "colour") == "red" &&
		digString(partial, "items", 2, "metadata", "uid") != "" && revisionOf(dig(partial, "items", 2)) > 0, "H-306", "metadata item: %v", dig(partial, "items", 2))
	response, err := t.client.do(rawRequest{method: "GET", target: wirePath + "/c", headers: []string{"Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"}})
	if t.report.check(err == nil && response.status == 200, "H-306", "metadata of one, protobuf preferred: %v", err) { // either may be chosen
		t.report.check(strings.Contains(string(response.body), "PartialObjectMetadata"), "H-306", "metadata of one, protobuf preferred: %.100q", response.body)
	}
	_, one := t.ask("GET", wirePath+"/c", "", partialAccept)
	t.report.check(digString(one, "kind") == "PartialObjectMetadata" && digString(one, "metadata", "name") == "c" && one["data"] == nil, "H-306", "metadata of one: %v", one)

	for _, accept := range []string{"Accept: */*", "Accept: application/json;q=0.5, */*;q=0.1",
		"Accept: application/vnd.kubernetes.nosuch, application/json", "Accept: application/json;charset=utf-8", "X-No: accept"} {
		list := t.wants(200, "GET", wirePath, "", accept)
		t.report.check(digString(list, "kind") == "ConfigMapList", "R-648", "%s gives %v", accept, list["kind"])
	}
	t.refused("R-648", refusal{code: 406, reason: "NotAcceptable"}, "GET", wirePath, "", "Accept: image/png")
	t.refused("R-648", refusal{code: 406, reason: "NotAcceptable", contains: "only the following media types are accepted: "}, "GET", wirePath, "",
		"Accept: application/json;as=Nonsense;g=meta.k8s.io;v=v1")

	// A big list may be gzipped, when asked.
	compressed, list := t.ask("GET", wirePath, "", "Accept-Encoding: gzip")
	t.report.check(len(namesOf(list)) == 7, "R-647", "list with Accept-Encoding: gzip: %d %v", compressed.status, compressed.header)
	compressed, _ = t.ask("GET", wirePath, "", "Accept-Encoding: identity")
	t.report.check(compressed.header.Get("Content-Encoding") == "", "R-647", "gzip without being asked: %v", compressed.header)
}

// compression looks at long lists as Go's transport and client-go get them, who ask for gzip by themselves.
func (t *wireTest) compression() {
	const bigNamespace, count = "peers-gzip", 40
	path := "/api/v1/namespaces/" + bigNamespace + "/configmaps"
	_, _ = t.ask("POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+bigNamespace+`"}}`, jsonType)
	defer t.ask("DELETE", "/api/v1/namespaces/"+bigNamespace, "")
	defer t.wants(200, "DELETE", path, "")
	for i := 0; i < count; i++ {
		t.wants(201, "POST", path, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"big-%02d"},"data":{"value":"%s"}}`, i, strings.Repeat(fmt.Sprintf("%d,", i*i), 1500)), jsonType)
	}
	plain, err := t.client.do(rawRequest{method: "GET", target: path})
	if !t.report.check(err == nil && plain.status == 200 && len(plain.body) > 128<<10, "R-647", "a long list: %v", err) {
		return
	}
	// A transport of its own, which says "Accept-Encoding: gzip" and takes the encoding off.
	client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	for _, one := range []struct {
		query      string
		compressed bool
	}{{"", true}, {"?limit=5", false}, {"?limit=39", true}} {
		response, err := client.Get("http://" + t.address + path + one.query)
		if !t.report.check(err == nil, "R-647", "%s: %v", one.query, err) {
			continue
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		t.report.check(err == nil && response.StatusCode == 200 && response.Uncompressed == one.compressed, "R-647", "%s: %v, %d, compressed %v", one.query, err,
			response.StatusCode, response.Uncompressed)
		if one.compressed {
			t.report.check(strings.Contains(strings.Join(response.Header.Values("Vary"), ","), "Accept-Encoding"), "R-647", "Vary: %v", response.Header.Values("Vary"))
		}
		if one.query == "" {
			t.report.check(string(body) == string(plain.body), "R-647", "%d bytes compressed are not the %d plain ones", len(body), len(plain.body))
		}
	}
	// What is no request for gzip.
	for _, encoding := range []string{"gzip;q=0", "br", "*", "GZIP", "gzip;q=1.0", ",", "identity, deflate", strings.Repeat("x,", 2000)} {
		response, err := t.client.do(rawRequest{method: "GET", target: path, headers: []string{"Accept-Encoding: " + encoding}})
		t.report.check(err == nil && response.status == 200 && response.header.Get("Content-Encoding") == "" && string(response.body) == string(plain.body), "R-647",
			"Accept-Encoding %.20q: %v", encoding, err)
	}
	// client-go, through pages and as one.
	direct, err := dynamic.NewForConfig(restConfig("http://" + t.address))
	if t.report.check(err == nil, "R-647", "client-go: %v", err) {
		for _, limit := range []int64{0, 30, 7} {
			names := 0
			options := metav1.ListOptions{Limit: limit}
			for {
				list, err := direct.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(bigNamespace).List(context.Background(), options)
				if !t.report.check(err == nil, "R-647", "client-go, limit %d: %v", limit, err) {
					break
				}
				names += len(list.Items)
				if options.Continue = list.GetContinue(); options.Continue == "" {
					break
				}
			}
			t.report.check(names == count, "R-647", "client-go, limit %d: %d of %d", limit, names, count)
		}
	}
}
