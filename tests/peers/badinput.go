package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Hostile input. Every request here must get the right refusal, and meanwhile a healthy client (its own goroutine and connections) keeps
// a watch, writes, and lists: its events must go on coming in order, promptly, to the end.

const badNamespace = "peers-bad"
const badPath = "/api/v1/namespaces/" + badNamespace + "/configmaps"

// healthyClient writes one config map again and again and watches it.
type healthyClient struct {
	report    *report
	address   string
	stop      atomic.Bool
	done      sync.WaitGroup
	mu        sync.Mutex
	changed   chan struct{} // closed and replaced at each event
	latencies []time.Duration
	events    int
}

const healthyLatencyMax = time.Minute

func startHealthyClient(report *report, address string) *healthyClient {
	h := &healthyClient{report: report, address: address, changed: make(chan struct{})}
	client := &rawClient{address: address}
	response, err := client.do(rawRequest{method: "POST", target: badPath, headers: []string{jsonType}, body: []byte(configMapJSON("healthy", "", `"value":"0"`))})
	if !report.check(err == nil && response.status == 201, "healthy", "create: %v %v", err, response) {
		return h
	}
	var created object
	if created, err = response.decode(); err != nil {
		report.violation("healthy", "create: %v", err)
		return h
	}
	s, head, err := openStream(address, badPath+query("watch", "1", "fieldSelector", "metadata.name=healthy", "resourceVersion", text(revisionOf(created))))
	if !report.check(err == nil && s != nil, "healthy", "watch: %v %v", err, head) {
		return h
	}
	h.done.Add(1)
	go h.run(client, s)
	return h
}

func (h *healthyClient) run(client *rawClient, s *stream) {
	defer h.done.Done()
	defer s.close()
	for n := 1; !h.stop.Load(); n++ {
		started := time.Now()
		response, err := client.do(rawRequest{method: "PATCH", target: badPath + "/healthy", headers: []string{mergeType}, body: []byte(fmt.Sprintf(`{"data":{"value":"%d"}}`, n)),
			timeout: healthyLatencyMax})
		if !h.report.check(err == nil && response.status == 200, "healthy", "write %d: %v %v", n, err, response) {
			return
		}
		event, err := s.next(healthyLatencyMax)
		if !h.report.check(err == nil, "healthy", "event %d did not come: %v", n, err) {
			return
		}
		if !h.report.check(event.kind == "MODIFIED" && digString(event.object, "data", "value") == fmt.Sprint(n), "healthy", "event %d is %.200s", n, event.raw) {
			return
		}
		h.mu.Lock()
		h.latencies = append(h.latencies, time.Since(started))
		h.events++
		close(h.changed)
		h.changed = make(chan struct{})
		h.mu.Unlock()
		if n%20 == 0 {
			response, err := client.do(rawRequest{method: "GET", target: badPath + "?fieldSelector=metadata.name%3Dhealthy", timeout: healthyLatencyMax})
			h.report.check(err == nil && response.status == 200 && strings.Contains(string(response.body), fmt.Sprintf(`"value":"%d"`, n)), "healthy", "list after write %d: %v", n, err)
		}
		pause(5 * time.Millisecond)
	}
}

// count is the number of events that the healthy client has received.
func (h *healthyClient) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events
}

// await waits until the healthy client has received count events.
func (h *healthyClient) await(count int, patience time.Duration) bool {
	end := time.After(patience)
	for {
		h.mu.Lock()
		events, changed := h.events, h.changed
		h.mu.Unlock()
		if events >= count {
			return true
		}
		select {
		case <-changed:
		case <-end:
			return false
		}
	}
}

func (h *healthyClient) finish() {
	h.stop.Store(true)
	h.done.Wait()
	h.report.check(h.events > 0, "healthy", "the healthy client saw no event")
	if len(h.latencies) > 0 {
		sort.Slice(h.latencies, func(i, j int) bool { return h.latencies[i] < h.latencies[j] })
		h.report.figure("healthyEvents", h.events)
		h.report.figure("healthyWriteToEventP50Microseconds", h.latencies[len(h.latencies)/2].Microseconds())
		h.report.figure("healthyWriteToEventP99Microseconds", h.latencies[len(h.latencies)*99/100].Microseconds())
		h.report.figure("healthyWriteToEventMaxMicroseconds", h.latencies[len(h.latencies)-1].Microseconds())
	}
}

func runBadInput(args []string) int {
	flags, verbose, seed := newFlags("badinput")
	server := flags.String("server", "", "URL of the server")
	custom := flags.String("custom", "example.com/v1/widgets/Widget", "a custom resource: GROUP/VERSION/PLURAL/KIND")
	idle := flags.Int("idle", 20000, "idle connections")
	slow := flags.Int("slow", 200, "clients that send a request byte by byte")
	slowDeadline := flags.Duration("slow-deadline", 0, "check that the server ends such clients within this time (0: do not wait for it)")
	unread := flags.Int("unread", 20, "watch clients that never read")
	unreadBytes := flags.Int("unread-bytes", 64<<20, "bytes of events they do not read, each")
	upstream := flags.Bool("upstream", false, "the server is a kube-apiserver behind a proxy: leave out raw HTTP, and where vedette differs on purpose")
	only := flags.String("only", "", "run this step alone")
	_ = flags.Parse(args)
	setVerbose(*verbose)
	files := raiseFileLimit()
	report := newReport("badinput")
	t, err := newWireTest(report, *server)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers badinput:", err)
		return 2
	}
	if t.custom, err = customWorkload(*custom); err != nil {
		fmt.Fprintln(os.Stderr, "peers badinput:", err)
		return 2
	}
	response, _ := t.ask("POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+badNamespace+`"}}`, jsonType)
	report.check(response.status == 201 || response.status == 409, "setup", "creating the namespace: %d %.200s", response.status, response.body)
	t.ask("DELETE", badPath, "")
	if report.violated() {
		return report.finish()
	}
	healthy := startHealthyClient(report, t.address)
	b := &badInput{wireTest: t, healthy: healthy, upstream: *upstream}
	steps := []struct {
		name string
		run  func()
	}{
		{"bodies", b.bodies}, {"writes", b.writes}, {"patches", b.patches}, {"deletes", b.deletes}, {"selectors", b.selectors}, {"parameters", b.parameters},
		{"list options", b.listOptions}, {"paths", b.paths}, {"endpoints", b.endpoints}, {"big bodies", b.bigBodies},
	}
	if !*upstream {
		steps = append(steps, []struct {
			name string
			run  func()
		}{
			{"framing", b.framing}, {"half-closed peers", b.halfClosed}, {"pipelining", b.pipelining}, {"random bytes", func() { b.randomBytes(*seed) }},
			{"slow clients", func() { b.slowClients(*slow, *slowDeadline) }},
			{"idle connections", func() { b.idleConnections(min(*idle, int(files)-500)) }},
			{"unread watches", func() { b.unreadWatches(*unread, *unreadBytes) }},
		}...)
	}
	for _, step := range steps {
		if *only != "" && *only != step.name {
			continue
		}
		before, started := healthy.count(), time.Now()
		b.wellKnown()
		step.run()
		report.check(healthy.await(before+1, healthyLatencyMax), "healthy", "no event for the healthy client during %q", step.name)
		if *verbose {
			fmt.Fprintf(os.Stderr, "peers badinput: %s: %v\n", step.name, time.Since(started))
		}
		if report.violated() {
			// A server that is gone makes everything after it fail as well: say where.
			if conn, err := dialRaw(t.address); err != nil {
				report.violation("alive", "after %q the server cannot be reached: %v", step.name, err)
				break
			} else {
				conn.Close()
			}
		}
	}
	healthy.finish()
	t.client.close()
	return report.finish()
}

type badInput struct {
	*wireTest
	healthy  *healthyClient
	upstream bool
	rowCount int // of requests in tables
}

// wellKnown makes sure that the object "w" is there: steps read and change it, and one that fails must not make others fail.
func (b *badInput) wellKnown() {
	response, _ := b.ask("GET", badPath+"/w", "")
	if response.status == 404 {
		b.wants(201, "POST", badPath, configMapJSON("w", `"a":"b"`, `"k":"v"`), jsonType)
	}
}

// bodies that are no object, or not the one the path says.
func (b *badInput) bodies() {
	valid := configMapJSON("x", "", `"k":"v"`)
	bad := map[string]string{
		"truncated":            valid[:len(valid)-5],
		"trailing garbage":     valid + "x",
		"two objects":          valid + valid,
		"no JSON":              "hello",
		"array":                "[]",
		"string":               `"x"`,
		"number":               "1",
		"single quotes":        strings.ReplaceAll(valid, `"`, `'`),
		"unquoted key":         strings.Replace(valid, `"kind"`, `kind`, 1),
		"trailing comma":       strings.Replace(valid, `"k":"v"`, `"k":"v",`, 1),
		"NUL":                  strings.Replace(valid, `"v"`, "\"v\x00\"", 1),
		"control in string":    strings.Replace(valid, `"v"`, "\"v\x01\"", 1),
		"newline in string":    strings.Replace(valid, `"v"`, "\"v\n\"", 1),
		"bad escape":           strings.Replace(valid, `"v"`, `"\x41"`, 1),
		"short unicode escape": strings.Replace(valid, `"v"`, `"\u12"`, 1),
		"NaN":                  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","generation":NaN}}`,
		"leading zero":         `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","generation":01}}`,
		"metadata is a string": `{"apiVersion":"v1","kind":"ConfigMap","metadata":"x"}`,
		"name is a number":     `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":5}}`,
		"labels is an array":   `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","labels":[]}}`,
		"label is a number":    `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","labels":{"a":5}}}`,
		"other kind":           strings.Replace(valid, "ConfigMap", "Secret", 1),
		"other version":        strings.Replace(valid, `"v1"`, `"v2"`, 1),
		"other group":          strings.Replace(valid, `"v1"`, `"apps/v1"`, 1),
		"unclosed":             strings.Repeat(`{"a":`, 20),
	}
	if !b.upstream { // Go's decoder lets these pass
		bad["invalid UTF-8"] = strings.Replace(valid, `"v"`, "\"\xff\xfe\"", 1)
		bad["overlong UTF-8"] = strings.Replace(valid, `"v"`, "\"\xc0\xaf\"", 1)
		bad["UTF-8 surrogate"] = strings.Replace(valid, `"v"`, "\"\xed\xa0\x80\"", 1)
		bad["truncated UTF-8"] = strings.Replace(valid, `"v"`, "\"\xe2\x82\"", 1)
		bad["name twice"] = strings.Replace(valid, `"name":"x"`, `"name":"x","name":"y"`, 1)
		bad["kind twice"] = strings.Replace(valid, `"kind":"ConfigMap"`, `"kind":"ConfigMap","kind":"Secret"`, 1)
		bad["metadata twice"] = strings.Replace(valid, `"metadata":`, `"metadata":{"name":"y"},"metadata":`, 1)
		bad["no body"] = ""
		bad["null"] = "null"
		bad["only blanks"] = "  \r\n\t "
		bad["byte order mark"] = "\xef\xbb\xbf" + valid
		bad["1000 arrays deep"] = strings.Replace(valid, `"v"`, strings.Repeat("[", 1000)+strings.Repeat("]", 1000), 1)
	}
	names := make([]string, 0, len(bad))
	for name := range bad {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		response, err := b.client.do(rawRequest{method: "POST", target: badPath, headers: []string{jsonType}, body: []byte(bad[name])})
		if !b.report.check(err == nil, "H-101", "POST of %q: %v", name, err) {
			continue
		}
		decoded, err := response.decode()
		if b.report.check(err == nil, "H-101", "POST of %q: %v", name, err) {
			b.isStatus("H-701", "POST of "+fmt.Sprintf("%q", name), response, decoded, refusal{code: 400, reason: "BadRequest"})
		}
	}
	// The same for a custom kind, which no typed decoder looks at.
	path := fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s", b.custom.resource.Group, b.custom.resource.Version, badNamespace, b.custom.resource.Resource)
	deep := func(depth int) string {
		return fmt.Sprintf(`{"apiVersion":"%s","kind":"%s","metadata":{"name":"deep"},"spec":{"nested":%s1%s}}`, b.custom.resource.GroupVersion(), b.custom.kind,
			strings.Repeat(`{"a":`, depth), strings.Repeat("}", depth))
	}
	b.wants(201, "POST", path, deep(40), jsonType)
	b.wants(200, "DELETE", path+"/deep", "")
	b.refused("H-701", refusal{code: 400, reason: "BadRequest"}, "POST", path, deep(100000), jsonType)
	b.refused("H-701", refusal{code: 400, reason: "BadRequest"}, "POST", path, strings.Repeat("[", 1000000), jsonType)
	b.refused("H-701", refusal{code: 400, reason: "BadRequest"}, "POST", path, strings.Repeat(`{"metadata":`, 100000), jsonType)
	if !b.upstream {
		b.refused("H-701", refusal{code: 400, reason: "BadRequest"}, "POST", path, deep(200), jsonType)
	}
	b.refused("R-661", refusal{code: 400, reason: "BadRequest", contains: "Object 'Kind' is missing"}, "POST", path,
		fmt.Sprintf(`{"apiVersion":"%s","metadata":{"name":"x"}}`, b.custom.resource.GroupVersion()), jsonType)
	// A built-in kind has a default for it.
	b.wants(201, "POST", badPath, `{"metadata":{"name":"kindless"}}`, jsonType)
	b.wants(200, "DELETE", badPath+"/kindless", "")
	// Good ones that look odd: escapes in strings and keys keep their meaning.
	odd := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"odd"},"data":{"a":"\u0041\ud83d\ude00\"\\\/\b\f\n\r\t","\u0062.c":"<>&"}}`
	b.ask("DELETE", badPath+"/odd", "")
	response, decoded := b.ask("POST", badPath, odd, jsonType)
	if response.status == 201 {
		b.report.check(digString(decoded, "data", "a") == "A\U0001F600\"\\/\b\f\n\r\t" && digString(decoded, "data", "b.c") == "<>&", "H-702", "escapes: %v", decoded["data"])
		b.ask("DELETE", badPath+"/odd", "")
	} else {
		b.report.violation("H-702", "an object with escapes is refused: %d %.200s", response.status, response.body)
	}

	for _, contentType := range []string{"text/plain", "application/xml", "application/cbor", "application/x-www-form-urlencoded", "garbage"} {
		b.refused("H-102", refusal{code: 415, reason: "UnsupportedMediaType"}, "POST", badPath, valid, "Content-Type: "+contentType)
	}
	for _, garbage := range []string{"k8s\x00", "k8s\x00\x0a\xff\xff\xff\xff\x0f", "k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\xff\xff\xff\xff\x7f", "not protobuf at all"} {
		b.refused("H-320", refusal{codes: []int{400, 415}}, "POST", badPath, garbage, "Content-Type: application/vnd.kubernetes.protobuf")
	}
}

func (b *badInput) writes() {
	invalid := refusal{code: 422, reason: "Invalid"}
	b.refused("R-114", refusal{code: 409, reason: "AlreadyExists", message: `configmaps "w" already exists`}, "POST", badPath, configMapJSON("w", "", ""), jsonType)
	decoded := b.refused("H-349", invalid, "POST", badPath, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}`, jsonType)
	b.report.check(len(digItems(decoded, "details", "causes")) > 0, "R-680", "422 without causes: %v", decoded)
	for _, name := range []string{"UPPER", "under_score", "-dash", "dot.", "a..b", "a b", strings.Repeat("n", 254), "ä", "*"} {
		b.refused("H-349", invalid, "POST", badPath, configMapJSON(name, "", ""), jsonType)
	}
	for _, name := range []string{"a/b", ".", "..", "a%b", "a?b"} {
		b.refused("H-349", refusal{codes: []int{400, 422}}, "POST", badPath, configMapJSON(name, "", ""), jsonType)
	}
	b.refused("R-691", invalid, "POST", badPath, configMapJSON("l", `"a b":"c"`, ""), jsonType)
	b.refused("R-691", invalid, "POST", badPath, configMapJSON("l", `"a":"b c"`, ""), jsonType)
	b.refused("R-691", invalid, "POST", badPath, configMapJSON("l", `"a":"`+strings.Repeat("v", 64)+`"`, ""), jsonType)
	b.refused("R-661", refusal{code: 400, reason: "BadRequest"}, "POST", badPath, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"elsewhere"}}`, jsonType)
	withRevision := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","resourceVersion":"5"}}`
	response, decoded := b.ask("POST", badPath, withRevision, jsonType)
	b.report.check(response.status == 500 && decoded["reason"] == nil && digString(decoded, "message") == "resourceVersion should not be set on objects to be created",
		"R-121", "create with a resourceVersion: %d %.300s", response.status, response.body)

	b.refused("R-661", refusal{code: 400, reason: "BadRequest"}, "PUT", badPath+"/w", configMapJSON("other", "", ""), jsonType)
	b.refused("R-661", refusal{code: 400, reason: "BadRequest"}, "PUT", badPath+"/w", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"w","namespace":"elsewhere"}}`, jsonType)
	b.refused("R-662", refusal{code: 409, reason: "Conflict",
		message: `Operation cannot be fulfilled on configmaps "w": the object has been modified; please apply your changes to the latest version and try again`},
		"PUT", badPath+"/w", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"w","resourceVersion":"1"}}`, jsonType)
	b.refused("R-663", refusal{code: 404, reason: "NotFound", message: `configmaps "nope" not found`}, "PUT", badPath+"/nope", configMapJSON("nope", "", ""), jsonType)
	b.refused("R-663", refusal{code: 409, reason: "Conflict"}, "PUT", badPath+"/w",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"w","uid":"00000000-0000-4000-8000-000000000000"}}`, jsonType)
	if !b.upstream { // there it is 500
		b.refused("R-662", refusal{codes: []int{400, 409, 422}}, "PUT", badPath+"/w", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"w","resourceVersion":"abc"}}`, jsonType)
	}

	for q, want := range map[string]refusal{
		"dryRun=Some":                                invalid,
		"dryRun=All&dryRun=None":                     invalid,
		"fieldManager=" + strings.Repeat("m", 129):   invalid,
		"fieldManager=a%01b":                         invalid,
		"fieldValidation=Maybe":                      invalid,
		"timeout=soon":                               {code: 400, reason: "BadRequest", contains: "invalid timeout specified in the request URL"},
		"fieldManager=" + strings.Repeat("m", 20000): {codes: []int{400, 414, 422, 431}},
	} {
		b.refused("R-610", want, "POST", badPath+"?"+q, configMapJSON("never", "", ""), jsonType)
	}
	if response, _ := b.ask("GET", badPath+"/never", ""); response.status == 200 {
		b.report.violation("R-610", "a refused create stored the object")
		b.ask("DELETE", badPath+"/never", "")
	}
	for _, row := range [][2]string{{"PUT", badPath}, {"PATCH", badPath}, {"POST", badPath + "/w"}} {
		b.refused("H-102", refusal{code: 405, reason: "MethodNotAllowed"}, row[0], row[1], configMapJSON("w", "", ""), jsonType)
	}
}

func (b *badInput) patches() {
	patch := func(want refusal, contentType, body string, query ...string) {
		b.refused("R-665", want, "PATCH", badPath+"/w"+strings.Join(query, ""), body, "Content-Type: "+contentType)
	}
	bad := refusal{code: 400, reason: "BadRequest"}
	const jsonPatch, merge, strategic, apply = "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"
	before := b.wants(200, "GET", badPath+"/w", "")
	for _, body := range []string{"", "{", "nonsense", `[{"op":"test"`, "[1]", `{"op":"add"}`} {
		patch(refusal{codes: []int{400, 422}}, jsonPatch, body)
	}
	for _, body := range []string{
		`[{"op":"nosuch","path":"/data/k","value":"x"}]`, `[{"op":"replace","path":"/nosuch/deep","value":"x"}]`, `[{"op":"remove","path":"/data/nosuch"}]`,
		`[{"op":"test","path":"/data/k","value":"other"}]`, `[{"op":"add","path":"no-slash","value":"x"}]`, `[{"op":"move","from":"/nosuch","path":"/data/z"}]`,
	} {
		patch(refusal{codes: []int{400, 422}}, jsonPatch, body)
	}
	if !b.upstream { // the library used there copies nothing and is content
		patch(refusal{codes: []int{400, 422}}, jsonPatch, `[{"op":"copy","from":"/nosuch","path":"/data/z"}]`)
	}
	// An operation that fails undoes those before it.
	patch(refusal{codes: []int{400, 422}}, jsonPatch, `[{"op":"replace","path":"/data/k","value":"half"},{"op":"test","path":"/data/k","value":"no"}]`)
	operations := make([]string, 10001)
	for i := range operations {
		operations[i] = `{"op":"test","path":"/data/k","value":"v"}`
	}
	patch(refusal{code: 413, reason: "RequestEntityTooLarge"}, jsonPatch, "["+strings.Join(operations, ",")+"]")
	for _, body := range []string{"", "{", "[]", `"x"`, "nonsense"} {
		patch(refusal{codes: []int{400, 422}}, merge, body)
	}
	patch(refusal{codes: []int{400, 422}}, merge, `{"metadata":{"name":"other"}}`)
	patch(refusal{codes: []int{400, 422}}, merge, `{"metadata":{"namespace":"other"}}`)
	patch(refusal{codes: []int{400, 422}}, merge, `{"kind":"Secret"}`)
	patch(refusal{codes: []int{400, 422}}, merge, `{"metadata":{"labels":{"a b":"c"}}}`)
	patch(refusal{code: 409, reason: "Conflict"}, merge, `{"metadata":{"resourceVersion":"1"},"data":{"k":"never"}}`)
	if !b.upstream {
		patch(refusal{codes: []int{400, 409, 422}}, merge, `{"metadata":{"uid":"00000000-0000-4000-8000-000000000000"}}`)
	}
	patch(refusal{codes: []int{400, 422}}, strategic, "{")
	patch(refusal{code: 415, reason: "UnsupportedMediaType"}, "text/plain", "{}")
	patch(refusal{code: 415, reason: "UnsupportedMediaType"}, "application/json", "{}")
	patch(refusal{code: 422, reason: "Invalid"}, merge, `{"data":{"k":"never"}}`, "?force=true")
	patch(refusal{code: 422, reason: "Invalid"}, merge, `{"data":{"k":"never"}}`, "?dryRun=nonsense")
	if !b.upstream { // there, server-side apply works
		patch(refusal{codes: []int{400, 415, 422}}, apply, "{", "?fieldManager=me")
	}
	b.refused("R-663", refusal{code: 404, reason: "NotFound"}, "PATCH", badPath+"/nope", "{}", "Content-Type: "+merge)
	path := fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s", b.custom.resource.Group, b.custom.resource.Version, badNamespace, b.custom.resource.Resource)
	b.wants(201, "POST", path, fmt.Sprintf(`{"apiVersion":"%s","kind":"%s","metadata":{"name":"w"}}`, b.custom.resource.GroupVersion(), b.custom.kind), jsonType)
	b.refused("H-342", refusal{code: 415, reason: "UnsupportedMediaType"}, "PATCH", path+"/w", "{}", "Content-Type: "+strategic)
	b.wants(200, "DELETE", path+"/w", "")
	after := b.wants(200, "GET", badPath+"/w", "")
	b.report.check(revisionOf(after) == revisionOf(before) && digString(after, "data", "k") == "v", "R-665", "refused patches changed the object from %v to %v", before, after)
	_ = bad
}

func (b *badInput) deletes() {
	// Upstream's registry words it "the UID in the precondition (0000) does not match ...", its storage "Precondition failed: UID in precondition: 0000, ...".
	b.refused("R-126", refusal{code: 409, reason: "Conflict", contains: "UID in "}, "DELETE", badPath+"/w", `{"preconditions":{"uid":"0000"}}`, jsonType)
	b.refused("R-126", refusal{code: 409, reason: "Conflict", contains: "ResourceVersion in "}, "DELETE", badPath+"/w", `{"preconditions":{"resourceVersion":"1"}}`, jsonType)
	b.refused("R-113", refusal{code: 404, reason: "NotFound", message: `configmaps "nope" not found`}, "DELETE", badPath+"/nope", "")
	for _, body := range []string{"{", "nonsense", "[]"} {
		b.refused("R-614", refusal{code: 400, reason: "BadRequest"}, "DELETE", badPath+"/w", body, jsonType)
	}
	b.refused("R-614", refusal{code: 422, reason: "Invalid"}, "DELETE", badPath+"/w", `{"propagationPolicy":"Orphan","orphanDependents":true}`, jsonType)
	b.refused("R-614", refusal{code: 422, reason: "Invalid"}, "DELETE", badPath+"/w", `{"propagationPolicy":"Sideways"}`, jsonType)
	b.refused("R-610", refusal{code: 422, reason: "Invalid"}, "DELETE", badPath+"/w", `{"dryRun":["Some"]}`, jsonType)
	b.refused("R-614", refusal{codes: []int{400, 422}}, "DELETE", badPath+"/w?propagationPolicy=Sideways", "")
	b.refused("R-614", refusal{code: 400, reason: "BadRequest"}, "DELETE", badPath+"/w?gracePeriodSeconds=soon", "")
	b.refused("R-601", refusal{code: 400, reason: "BadRequest"}, "DELETE", badPath+"?labelSelector=a%20in", "")
	b.wants(200, "GET", badPath+"/healthy", "")
}

func (b *badInput) selectors() {
	bad := refusal{code: 400, reason: "BadRequest"}
	for _, selector := range []string{"a in", "a in (", "a in (b", "a in b", "=x", "!", "a=b=c", "a b", "a=b c", "a,,b", ",", "a notin", "(", "a>b", "a>1.5", "a<",
		"a=" + strings.Repeat("v", 64), strings.Repeat("k", 64) + "=v", "a/b/c=d", "/a=b", "-a=b", "a=b!", "a=ü", "a=\x01", "!a=b", "a in ()b", "a!", "exists,a in (b"} {
		for _, watch := range []string{"", "1"} {
			q := query("labelSelector", selector)
			if watch != "" {
				q += "&watch=1&timeoutSeconds=1"
			}
			b.refused("R-601", bad, "GET", badPath+q, "")
		}
	}
	b.refused("R-692", refusal{code: 400, reason: "BadRequest", contains: "invalid selector: 'metadata.name'; can't understand 'metadata.name'"}, "GET",
		badPath+query("fieldSelector", "metadata.name"), "")
	for _, selector := range []string{"metadata.name", "metadata.name>x", "=x", "spec.nodeName=x", "nosuch=x", "data.k=v", `metadata.name=a\x`, `metadata.name=a\`,
		"metadata.name=a,nosuch=b", "metadata.name in (a)", "metadata.name=a=b"} {
		for _, watch := range []string{"", "&watch=1&timeoutSeconds=1"} {
			b.refused("R-601", bad, "GET", badPath+query("fieldSelector", selector)+watch, "")
		}
	}
	// Valid ones with escapes and many parts.
	b.wants(200, "GET", badPath+query("fieldSelector", `metadata.name=a\,b`), "")
	b.wants(200, "GET", badPath+query("fieldSelector", `metadata.name!=a\=b,metadata.name!=\\`), "")
	many := make([]string, 500)
	for i := range many {
		many[i] = fmt.Sprintf("label-%d!=value-%d", i, i)
	}
	b.wants(200, "GET", badPath+query("labelSelector", strings.Join(many[:100], ",")), "")
	b.wants(200, "GET", badPath+query("labelSelector", "a in ("+strings.ReplaceAll(strings.Join(many[:200], ","), "!=", "-")+")"), "")
	if !b.upstream {
		b.refused("H-104", bad, "GET", badPath+"?shardSelector=shardRange(object.metadata.uid,'0x0','0x8')", "")
	}
}

func (b *badInput) parameters() {
	bad := refusal{code: 400, reason: "BadRequest"}
	revisions := []string{"abc", "-1", "1.5", "0x10", "+5", " 5", "5 ", "99999999999999999999999", "18446744073709551616", "1e3", "５"}
	if !b.upstream { // there a few places answer 500
		for _, revision := range revisions {
			q := query("resourceVersion", revision)
			b.refused("R-150", bad, "GET", badPath+q, "")
			b.refused("R-150", bad, "GET", badPath+"/w"+q, "")
			b.refused("R-150", bad, "GET", badPath+q+"&limit=1", "")
			b.refused("R-150", bad, "GET", badPath+q+"&resourceVersionMatch=Exact", "")
			b.refused("R-150", bad, "GET", badPath+q+"&resourceVersionMatch=NotOlderThan", "")
			b.refused("R-150", bad, "GET", badPath+q+"&watch=1", "")
			b.refused("R-150", bad, "GET", badPath+q+"&watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "")
		}
	}
	for _, limit := range []string{"abc", "1.5", "0x5", "99999999999999999999"} {
		b.refused("R-604", bad, "GET", badPath+query("limit", limit), "")
	}
	for _, limit := range []string{"-1", "0", "9223372036854775807"} {
		response, decoded := b.ask("GET", badPath+query("limit", limit), "")
		b.report.check(response.status == 200 || response.status == 400 || response.status == 422, "R-604", "limit=%s: %d", limit, response.status)
		b.report.check(response.status != 200 || len(digItems(decoded, "items")) >= 2, "R-604", "limit=%s: %v", limit, namesOf(decoded))
	}
	for _, q := range []string{"timeoutSeconds=abc", "timeoutSeconds=1.5", "timeout=abc", "timeout=5"} {
		b.refused("R-603", bad, "GET", badPath+"?"+q, "")
	}
	b.refused("R-603", bad, "GET", badPath+"?watch=1&timeoutSeconds=abc", "")
	b.refused("R-615", refusal{code: 400, reason: "BadRequest", message: "the export parameter, deprecated since v1.14, is no longer supported"}, "GET", badPath+"/w?export=true", "")
	for _, accept := range []string{"image/png", "application/cbor", "text/html;q=1"} {
		b.refused("R-648", refusal{code: 406, reason: "NotAcceptable"}, "GET", badPath, "", "Accept: "+accept)
		b.refused("R-648", refusal{code: 406, reason: "NotAcceptable"}, "GET", badPath+"?watch=1&timeoutSeconds=1", "", "Accept: "+accept)
	}
	// Odd but harmless encodings of a query.
	for _, q := range []string{"?", "?&", "?=", "?=x", "?limit=5&limit=6", "?a", "?a&b=c&&&", "?limit=%35", "?labelSelector=", "?watch=0&watch=0", "?%6cimit=5"} {
		b.wants(200, "GET", badPath+q, "")
	}
	if !b.upstream {
		for _, q := range []string{"?limit=%", "?limit=%5", "?limit=%zz", "?labelSelector=%00", "?fieldSelector=%ff"} {
			response, _ := b.ask("GET", badPath+q, "")
			b.report.check(response.status == 400 || response.status == 200, "H-101", "GET %s: %d", q, response.status)
		}
	}
}

// listOptions is the table of R-607.
func (b *badInput) listOptions() {
	const prefix = `ListOptions.meta.k8s.io "" is invalid: `
	const (
		needsRevision  = `resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided`
		notWithToken   = `resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided`
		exactZero      = `resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"`
		forbiddenList  = `sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list`
		needsNotOlder  = `resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan`
		needsInitial   = `resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided`
		unknownForList = `resourceVersionMatch: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""`
		unknownWatch   = `resourceVersionMatch: Unsupported value: "%s": supported values: "NotOlderThan"`
	)
	both := func(texts ...string) string { return "[" + strings.Join(texts, ", ") + "]" }
	for _, row := range []struct{ query, text string }{
		{"resourceVersionMatch=Exact", needsRevision},
		{"resourceVersionMatch=NotOlderThan", needsRevision},
		{"resourceVersionMatch=NotOlderThan&resourceVersion=5&continue=abc", notWithToken},
		{"resourceVersionMatch=Foo&resourceVersion=5", unknownForList},
		{"resourceVersionMatch=Foo", both(needsRevision, unknownForList)},
		{"resourceVersionMatch=Exact&resourceVersion=0", exactZero},
		{"sendInitialEvents=true", forbiddenList},
		{"sendInitialEvents=false", forbiddenList},
		{"sendInitialEvents=true&resourceVersionMatch=NotOlderThan", both(needsRevision, forbiddenList)},
		{"watch=1&sendInitialEvents=true", needsNotOlder},
		{"watch=1&sendInitialEvents=false", needsNotOlder},
		{"watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=5", needsInitial},
		{"watch=1&resourceVersionMatch=Exact&resourceVersion=5", both(needsInitial, fmt.Sprintf(unknownWatch, "Exact"))},
		{"watch=1&sendInitialEvents=true&resourceVersionMatch=Foo", both(needsNotOlder, fmt.Sprintf(unknownWatch, "Foo"))},
		{"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=abc", notWithToken},
	} {
		decoded := b.refused("R-607", refusal{code: 422, reason: "Invalid", message: prefix + row.text}, "GET", badPath+"?"+row.query, "")
		causes := digItems(decoded, "details", "causes")
		want := 1 + strings.Count(row.text, "resourceVersionMatch: ") + strings.Count(row.text, "sendInitialEvents: ") - 1
		if !b.report.check(len(causes) == want, "R-607", "%s: %d causes instead of %d: %v", row.query, len(causes), want, causes) {
			continue
		}
		for _, cause := range causes {
			reason := "FieldValueForbidden"
			if strings.HasPrefix(digString(cause, "message"), "Unsupported value") {
				reason = "FieldValueNotSupported"
			}
			field := digString(cause, "field")
			b.report.check(digString(cause, "reason") == reason && (field == "resourceVersionMatch" || field == "sendInitialEvents"), "R-607", "%s: cause %v", row.query, cause)
		}
		b.report.check(digString(decoded, "details", "kind") == "ListOptions" && digString(decoded, "details", "group") == "meta.k8s.io", "R-607", "%s: details %v", row.query, decoded["details"])
	}
}

func (b *badInput) paths() {
	notFound := refusal{code: 404, reason: "NotFound"}
	targets := []string{"/api/v1/nosuch", "/api/v1/namespaces/default/nosuch", "/api/v2/pods", "/api/v1/namespaces/default/configmaps/x/nosuch"}
	if !b.upstream { // there, unknown groups get plain text
		targets = append(targets, "/apis/nosuch/v1/things", "/apis/example.com/v9/widgets", "/apis/example.com/v1/namespaces/default/nosuch/x")
	}
	for _, target := range targets {
		for _, method := range []string{"GET", "DELETE"} {
			b.refused("H-103", notFound, method, target, "")
		}
	}
	for _, target := range []string{"/nosuch", "/apis/nosuch", "/apis/nosuch/v1", "/api/v1/", "/api/v1/namespaces/default/", "/..", "/.", "/api/..", "/favicon.ico", "/apis/"} {
		response, err := b.client.do(rawRequest{method: "GET", target: target})
		if b.report.check(err == nil, "H-101", "GET %s: %v", target, err) && !b.upstream {
			b.report.check(response.status < 500, "H-101", "GET %s: %d %.100q", target, response.status, response.body)
			if response.status >= 400 {
				decoded, err := response.decode()
				if b.report.check(err == nil, "H-101", "GET %s: %v", target, err) {
					b.isStatus("H-101", "GET "+target, response, decoded, refusal{codes: []int{400, 404, 405}})
				}
			}
		}
	}
	if b.upstream {
		return
	}
	// Names that must not lead anywhere else: never a 200 that shows another object, never a 5xx.
	for _, target := range []string{
		badPath + "/%2e%2e", badPath + "/%2e%2e/secrets", badPath + "/..", badPath + "/../configmaps/w", badPath + "/%00", badPath + "/w%00", badPath + "/%2f", badPath + "/w%2f",
		badPath + "/%2e%2e%2fconfigmaps%2fw", badPath + "//w", badPath + "/./w", badPath + "/w/", "/" + badPath, "//api/v1/namespaces/" + badNamespace + "/configmaps/w",
		"/api/v1/namespaces//configmaps/w", "/api/v1/namespaces/%2e%2e/configmaps", "/api/v1/namespaces/" + badNamespace + "%2fconfigmaps", badPath + "/" + strings.Repeat("x", 300),
		badPath + "/%ff%fe", badPath + "/%C3%28", badPath + "/%", badPath + "/%1", badPath + "/%zz", badPath + "/w;x=y", badPath + "/w#fragment", badPath + "/\\..\\w",
		badPath + "/%77", "/api/v1/namespaces/" + strings.Repeat("n", 4000) + "/configmaps", "/" + strings.Repeat("a/", 2000),
	} {
		response, err := b.client.do(rawRequest{method: "GET", target: target})
		if !b.report.check(err == nil, "H-101", "GET %.100s: %v", target, err) {
			continue
		}
		b.report.check(response.status < 500, "H-101", "GET %.100s: %d %.100q", target, response.status, response.body)
		if response.status >= 400 {
			decoded, err := response.decode()
			if b.report.check(err == nil, "H-101", "GET %.100s: %d %v", target, response.status, err) {
				b.isStatus("H-101", fmt.Sprintf("GET %.100s", target), response, decoded, refusal{codes: []int{400, 404, 405, 414, 431}})
			}
		}
	}
	decoded := b.wants(200, "GET", badPath+"/%77", "") // an encoded letter is that letter
	b.report.check(digString(decoded, "metadata", "name") == "w", "H-101", "GET of an encoded name: %v", decoded)
	long := "/" + strings.Repeat("x", 100000)
	response, err := b.client.do(rawRequest{method: "GET", target: long})
	if b.report.check(err == nil, "H-101", "GET of a path of 100 KB: %v", err) {
		decoded, err := response.decode()
		if b.report.check(err == nil, "H-101", "GET of a path of 100 KB: %d %v", response.status, err) {
			b.isStatus("H-601", "GET of a path of 100 KB", response, decoded, refusal{codes: []int{400, 404, 414, 431}})
		}
	}
	b.client.close()
}

func (b *badInput) bigBodies() {
	const limit = 3145728
	tooLarge := refusal{code: 413, reason: "RequestEntityTooLarge", contains: "limit is 3145728"}
	if !b.upstream {
		tooLarge.message = "Request entity too large: limit is 3145728"
	}
	big := configMapJSON("big", "", `"k":"`+strings.Repeat("x", 4<<20)+`"`)
	for _, row := range [][3]string{{"POST", badPath, "Content-Type: application/json"}, {"PUT", badPath + "/w", "Content-Type: application/json"},
		{"PATCH", badPath + "/w", "Content-Type: application/merge-patch+json"}, {"DELETE", badPath + "/w", "Content-Type: application/json"}} {
		conn, err := dialRaw(b.address)
		if !b.report.check(err == nil, "R-654", "%v", err) {
			return
		}
		// The server may answer before it has read all: write and read at the same time.
		go func() {
			_, _ = conn.Write(rawRequest{method: row[0], target: row[1], headers: row[2:], body: []byte(big)}.bytes(b.address))
		}()
		response, err := conn.readResponse(20 * time.Second)
		if b.report.check(err == nil, "R-654", "%s of 4 MB: %v", row[0], err) {
			decoded, err := response.decode()
			if b.report.check(err == nil, "H-101", "%s of 4 MB: %v", row[0], err) {
				b.isStatus("R-654", row[0]+" of 4 MB", response, decoded, tooLarge)
			}
		}
		conn.Close()
	}
	// Chunked: the limit holds without a declared length.
	conn, err := dialRaw(b.address)
	if !b.report.check(err == nil, "R-654", "%v", err) {
		return
	}
	go func() {
		_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\n%s\r\nTransfer-Encoding: chunked\r\n\r\n", badPath, b.address, jsonType)
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 65536, strings.Repeat("x", 65536))
		for i := 0; i < 64; i++ {
			if _, err := conn.Write([]byte(chunk)); err != nil {
				return
			}
		}
		_, _ = conn.Write([]byte("0\r\n\r\n"))
	}()
	response, err := conn.readResponse(20 * time.Second)
	if b.report.check(err == nil, "R-654", "POST of 4 MB in chunks: %v", err) {
		decoded, err := response.decode()
		if b.report.check(err == nil, "H-101", "POST of 4 MB in chunks: %v", err) {
			b.isStatus("R-654", "POST of 4 MB in chunks", response, decoded, refusal{codes: []int{411, 413}})
		}
	}
	conn.Close()
	// Just under the limit of a request: stored, or refused in words.
	path := fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s", b.custom.resource.Group, b.custom.resource.Version, badNamespace, b.custom.resource.Resource)
	head := fmt.Sprintf(`{"apiVersion":"%s","kind":"%s","metadata":{"name":"large"},"spec":{"text":"`, b.custom.resource.GroupVersion(), b.custom.kind)
	for _, size := range []int{1 << 20, limit - 2000, limit} {
		body := head + strings.Repeat("y", size-len(head)-3) + `"}}`
		response, decoded := b.ask("POST", path, body, jsonType)
		if response.status == 201 {
			got := b.wants(200, "GET", path+"/large", "")
			b.report.check(len(digString(got, "spec", "text")) == size-len(head)-3, "H-702", "an object of %d bytes came back with %d", size, len(digString(got, "spec", "text")))
			b.wants(200, "DELETE", path+"/large", "")
		} else {
			b.report.check(size > 1<<20, "R-654", "an object of 1 MiB is refused: %d %.200s", response.status, response.body)
			b.isStatus("R-654", fmt.Sprintf("POST of %d bytes", size), response, decoded, refusal{codes: []int{400, 413, 422, 500}})
		}
	}
	_ = json.Valid
}
