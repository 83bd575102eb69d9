package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

const (
	gzipAccept = "Accept-Encoding: gzip"
	// Until something arrives that must: a guard, not a measure.
	gzipPatience = 2 * time.Minute
)

// watchCompression: a WatchList goes out as one gzip member per flush. What matters is that a reader who takes the members apart gets each event at once, and
// not when the next member begins: so the next write waits until the event of the one before was seen.
func (t *wireTest) watchCompression(upstream bool) {
	const watchList = wirePath + "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
	revisions := t.makeSeven()
	now := text(revisions[6])

	// Who is answered plainly: t.open says so when not.
	t.open(watchList).close()
	t.open(wirePath+"?watch=1&resourceVersion="+now, gzipAccept).close()
	t.open(wirePath+"?watch=1&allowWatchBookmarks=true&resourceVersion="+now, gzipAccept).close()
	t.open(wirePath+"?watch=1", gzipAccept).close() // initial events, but no bookmark ends them
	for _, encoding := range []string{"gzip;q=0", "gzip;q=1.0", "GZIP", "*", "br, deflate", ""} {
		t.open(watchList, "Accept-Encoding: "+encoding).close()
	}
	probe, err := http.NewRequest("GET", "http://"+t.address+watchList+"&timeoutSeconds=1", nil)
	if !t.report.check(err == nil, "R-642", "request: %v", err) {
		return
	}
	probe.Header.Set("Accept-Encoding", "deflate, gzip")
	response, err := (&http.Client{Timeout: gzipPatience}).Do(probe)
	if !t.report.check(err == nil, "R-642", "watch: %v", err) {
		return
	}
	_, err = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	encoding, vary := response.Header.Get("Content-Encoding"), strings.Join(response.Header.Values("Vary"), ",")
	if upstream && encoding == "" {
		t.report.figure("watch-compression", "this kube-apiserver has none")
		return
	}
	t.report.check(err == nil && encoding == "gzip" && strings.Contains(vary, "Accept-Encoding"), "R-642", "a WatchList: %v, Content-Encoding %q, Vary %q", err, encoding, vary)

	if !upstream { // Go's server cuts its chunks elsewhere
		t.watchGzipChunks(watchList)
	}
	t.watchGzipHTTP(watchList)
	t.watchGzipHTTP(wirePath + "?watch=1&allowWatchBookmarks=true") // becomes one
	t.watchGzipForms(watchList)
	t.watchGzipInformer()
}

// eventsOf decodes the lines of one flush.
func eventsOf(content []byte) (lines []string, last streamEvent, err error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	for {
		var line struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err = decoder.Decode(&line); err != nil {
			if err == io.EOF {
				err = nil
			}
			return
		}
		last = streamEvent{kind: line.Type, raw: line.Object}
		if err = json.Unmarshal(line.Object, &last.object); err != nil {
			return
		}
		lines = append(lines, line.Type+" "+digString(last.object, "metadata", "name"))
	}
}

// watchGzipChunks: each chunk is one complete member, whole events in it, without its successor.
func (t *wireTest) watchGzipChunks(target string) {
	conn, err := dialRaw(t.address)
	if !t.report.check(err == nil, "R-642", "connecting: %v", err) {
		return
	}
	defer conn.Close()
	_, _ = conn.Write(rawRequest{method: "GET", target: target, headers: []string{gzipAccept}}.bytes(t.address))
	head, err := conn.readHead(gzipPatience)
	if !t.report.check(err == nil && head.status == 200 && head.chunked && head.header.Get("Content-Encoding") == "gzip" && head.header.Get("Content-Type") == "application/json",
		"R-642", "head: %v %+v", err, head) {
		return
	}
	next := func(what string) (lines []string, last streamEvent) {
		chunk, err := conn.nextChunk()
		if !t.report.check(err == nil && len(chunk) > 0, "R-642", "%s: no chunk: %v", what, err) {
			return
		}
		source := bytes.NewReader(chunk)
		reader, err := gzip.NewReader(source)
		if !t.report.check(err == nil, "R-642", "%s: a chunk that is no member: %v: %.20q", what, err, chunk) {
			return
		}
		reader.Multistream(false)
		content, err := io.ReadAll(reader)
		if !t.report.check(err == nil && source.Len() == 0, "R-642", "%s: a chunk of %d bytes is not one complete member: %v, %d left", what, len(chunk), err, source.Len()) {
			return
		}
		lines, last, err = eventsOf(content)
		t.report.check(err == nil && bytes.HasSuffix(content, []byte("}\n")), "R-642", "%s: %v: %.200q", what, err, content)
		return
	}
	var got []string
	for ended := false; !ended && !t.report.violated(); {
		lines, last := next("initial events")
		got, ended = append(got, lines...), last.endsInitialEvents()
	}
	t.report.check(fmt.Sprint(got) == fmt.Sprint(append(append([]string{}, sevenAdded...), "BOOKMARK ")), "R-642", "initial events: %v", got)
	for i := 0; i < 5; i++ {
		t.patchConfigMap("c", fmt.Sprintf(`{"data":{"value":"chunk %d"}}`, i))
		lines, last := next("a change")
		for last.kind == "BOOKMARK" { // may come at any time
			lines, last = next("a change")
		}
		t.report.check(fmt.Sprint(lines) == "[MODIFIED c]" && digString(last.object, "data", "value") == fmt.Sprintf("chunk %d", i), "R-642", "change %d: %v %.200s", i, lines, last.raw)
	}
}

// watchGzipHTTP: net/http's transport asks for gzip by itself and takes it off.
func (t *wireTest) watchGzipHTTP(target string) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get("http://" + t.address + target)
	if !t.report.check(err == nil && response.StatusCode == 200 && response.Uncompressed, "R-642", "%s with net/http: %v", target, err) {
		return
	}
	defer response.Body.Close()
	events := make(chan streamEvent)
	ended := make(chan error, 1)
	quit := make(chan struct{})
	defer close(quit)
	go func() {
		decoder := json.NewDecoder(response.Body)
		for {
			var line struct {
				Type   string
				Object object
			}
			if err := decoder.Decode(&line); err != nil {
				ended <- err
				return
			}
			select {
			case events <- streamEvent{kind: line.Type, object: line.Object}:
			case <-quit:
				return
			}
		}
	}()
	next := func(what string) streamEvent {
	another:
		select {
		case event := <-events:
			if event.kind == "BOOKMARK" && !event.endsInitialEvents() { // may come at any time
				goto another
			}
			return event
		case err := <-ended:
			t.report.violation("R-642", "%s: %s: the stream ended: %v", target, what, err)
		case <-time.After(gzipPatience):
			t.report.violation("R-642", "%s: %s: it was written and did not come", target, what)
		}
		return streamEvent{}
	}
	for i := 0; i < 7; i++ {
		event := next("initial events")
		if !t.report.check(event.kind == "ADDED" && digString(event.object, "metadata", "name") == string(rune('a'+i)), "R-642", "%s: initial event %d is %v", target, i, event) {
			return
		}
	}
	if event := next("the end of the initial events"); !t.report.check(event.endsInitialEvents(), "R-642", "%s: %v ends the initial events", target, event) {
		return
	}
	for i := 0; i < 12; i++ {
		value := fmt.Sprintf("%schange %d", strings.Repeat("value ", i*i*100), i)
		t.patchConfigMap("d", `{"data":{"value":"`+value+`"}}`)
		event := next(fmt.Sprintf("change %d", i))
		if !t.report.check(event.kind == "MODIFIED" && digString(event.object, "data", "value") == value, "R-642", "%s: change %d: %v", target, i, event) {
			return
		}
	}
}

// watchGzipForms: whatever the form, what is inside is what goes out plainly.
func (t *wireTest) watchGzipForms(target string) {
	client := &http.Client{Timeout: gzipPatience}
	read := func(accept, encoding string) string {
		request, err := http.NewRequest("GET", "http://"+t.address+target+"&timeoutSeconds=1", nil)
		if err != nil {
			return err.Error()
		}
		request.Header.Set("Accept", accept)
		request.Header.Set("Accept-Encoding", encoding)
		response, err := client.Do(request)
		if !t.report.check(err == nil, "R-642", "%s: %v", accept, err) {
			return ""
		}
		defer response.Body.Close()
		body := io.Reader(response.Body)
		t.report.check((response.Header.Get("Content-Encoding") == "gzip") == (encoding == "gzip"), "R-642", "%s, %s: Content-Encoding %q", accept, encoding, response.Header.Get("Content-Encoding"))
		if encoding == "gzip" {
			if body, err = gzip.NewReader(response.Body); !t.report.check(err == nil, "R-642", "%s: %v", accept, err) {
				return ""
			}
		}
		content, err := io.ReadAll(body)
		t.report.check(err == nil && len(content) > 0, "R-642", "%s, %s: after %d bytes: %v", accept, encoding, len(content), err)
		return string(content)
	}
	for _, header := range []string{"Accept: application/json", partialAccept, "Accept: application/vnd.kubernetes.protobuf",
		"Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"} {
		accept := strings.TrimPrefix(header, "Accept: ")
		plain, packed := read(accept, "identity"), read(accept, "gzip")
		// What comes behind the initial events depends on the time.
		whole := strings.Contains(plain, "k8s.io/initial-events-end") && strings.Contains(packed, "k8s.io/initial-events-end")
		t.report.check(whole && (strings.HasPrefix(plain, packed) || strings.HasPrefix(packed, plain)), "R-642", "%s: %d bytes compressed are not the %d plain ones", accept,
			len(packed), len(plain))
	}
	// A table's ages are of the moment, and only its first event has columns.
	lines, _, err := eventsOf([]byte(read(strings.TrimPrefix(tableAccept, "Accept: "), "gzip")))
	t.report.check(err == nil && len(lines) >= 8, "R-642", "a table: %v %v", lines, err)
}

// watchGzipInformer: client-go's reflector, as it is by default.
func (t *wireTest) watchGzipInformer() {
	var mu sync.Mutex
	packed, plain := 0, 0
	config := restConfig("http://" + t.address)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			response, err := inner.RoundTrip(request)
			if err == nil && request.URL.Query().Get("sendInitialEvents") == "true" {
				mu.Lock()
				defer mu.Unlock()
				if response.Uncompressed {
					packed++
				} else {
					plain++
				}
			}
			return response, err
		})
	})
	client, err := dynamic.NewForConfig(config)
	if !t.report.check(err == nil, "R-642", "client-go: %v", err) {
		return
	}
	t.makeSeven()
	values := make(chan string, 100)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, wireNamespace, nil)
	informer := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, changed any) {
		value, _, _ := unstructured.NestedString(changed.(*unstructured.Unstructured).Object, "data", "value")
		values <- value
	}})
	t.report.check(err == nil, "R-642", "client-go: %v", err)
	ctx, cancel := context.WithTimeout(context.Background(), 10*gzipPatience)
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	if !t.report.check(cache.WaitForCacheSync(ctx.Done(), informer.HasSynced), "R-642", "the informer never had its initial state") {
		return
	}
	t.report.check(len(informer.GetStore().List()) == 7, "R-642", "the informer has %d objects", len(informer.GetStore().List()))
	for i := 0; i < 12; i++ {
		want := fmt.Sprintf("informer %d", i)
		t.patchConfigMap("e", `{"data":{"value":"`+want+`"}}`)
		select {
		case got := <-values:
			t.report.check(got == want, "R-642", "the informer was told %q instead of %q", got, want)
		case <-time.After(gzipPatience):
			t.report.violation("R-642", "change %d was written and the informer was not told", i)
			return
		}
	}
	mu.Lock()
	defer mu.Unlock()
	t.report.check(packed == 1 && plain == 0, "R-642", "the informer opened %d compressed watch lists and %d plain ones", packed, plain)
}

type roundTrip func(request *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
