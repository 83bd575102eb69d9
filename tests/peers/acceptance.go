package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// acceptance: what every program on client-go does first. Typed (protobuf, their default), dynamic and metadata informers come in sync, see an update and
// a deletion, and hold what the server holds: over plain HTTP/1.1 and over TLS without HTTP/2; with WatchList served, and refused as kube-apiserver refuses
// it; with the stream taken apart at random bytes in both directions; with 410 at the start of watches and within them; with 429 and Retry-After. Two
// candidates elect a leader with a Lease, and the other one takes over.
// rules: H-305, H-306, H-320, H-321, H-401, H-402, H-403, H-404, H-405, H-406, H-411, H-413, H-501, H-502

const acceptanceNamespace = "peers-acceptance"
const acceptancePatience = 2 * time.Minute // a guard against hanging, not a measure

// tamperingProxy stands before the server and does one thing to what passes.
type tamperingProxy struct {
	listener *httptest.Server
	mode     string
	mu       sync.Mutex
	random   *rand.Rand
	seen     map[string]int // requests by path and sort
	tampered int
}

var tamperModes = []string{"split", "refused", "gone at the start", "gone in the stream", "too many"}

func newTamperingProxy(target, mode string, seed int64) (*tamperingProxy, error) {
	address, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	p := &tamperingProxy{mode: mode, random: rand.New(rand.NewSource(seed)), seen: map[string]int{}}
	forward := httputil.NewSingleHostReverseProxy(address)
	forward.FlushInterval = -1
	if mode == "split" {
		forward.Transport = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return &splittingConn{Conn: conn, proxy: p}, err
		}}
	}
	p.listener = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.tamper(w, r, forward) {
			forward.ServeHTTP(w, r)
		}
	}))
	return p, nil
}

// next counts, and tells how many there were before.
func (p *tamperingProxy) next(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[key]++
	return p.seen[key] - 1
}

func (p *tamperingProxy) intn(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.Intn(n)
}

func (p *tamperingProxy) done() {
	p.mu.Lock()
	p.tampered++
	p.mu.Unlock()
}

func refuseWith(w http.ResponseWriter, code int, reason, message, details string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"details":{%s},"code":%d}`, message, reason, details, code)
}

// tamper answers instead of the server, or changes its answer on the way; false: the request passes as it is.
func (p *tamperingProxy) tamper(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
	q := r.URL.Query()
	isWatch := q.Get("watch") == "true" || q.Get("watch") == "1"
	switch {
	case !strings.Contains(r.URL.Path, acceptanceNamespace) || r.Method != "GET":
		return false
	case p.mode == "refused" && q.Get("sendInitialEvents") == "true":
		refuseWith(w, 422, "Invalid", `ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled`, "")
	case p.mode == "gone at the start" && isWatch && p.next("watch "+r.URL.Path+r.Header.Get("Accept")) == 0: // only a watch that goes on has a version to be too old
		p.cutsShort(w, r, forward, 21, "")
	case p.mode == "gone at the start" && isWatch && q.Get("resourceVersion") != "" && p.next("gone "+r.URL.Path+r.Header.Get("Accept")) == 0:
		refuseWith(w, 410, "Expired", "too old resource version: 1 (2)", "")
	case p.mode == "too many" && p.next("many "+r.URL.Path+r.Header.Get("Accept")) < 2:
		w.Header().Set("Retry-After", "1")
		refuseWith(w, 429, "TooManyRequests", "the server has received too many requests", `"retryAfterSeconds":1`)
	case p.mode == "gone in the stream" && isWatch && p.next("stream "+r.URL.Path+r.Header.Get("Accept")) == 0:
		p.cutsShort(w, r, forward, 3,
			`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (2)","reason":"Expired","code":410}}`+"\n")
	default:
		return false
	}
	p.done()
	return true
}

// cutsShort lets a few lines of a watch pass and ends it, with one line more.
func (p *tamperingProxy) cutsShort(w http.ResponseWriter, r *http.Request, forward http.Handler, count int, last string) {
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(r.Context())
	clauses := []string{}
	for _, clause := range strings.Split(r.Header.Get("Accept"), ",") { // lines are what we can count
		if !strings.Contains(clause, "protobuf") {
			clauses = append(clauses, clause)
		}
	}
	r.Header.Set("Accept", strings.Join(clauses, ","))
	defer cancel()
	go func() {
		defer func() {
			_ = recover() // it aborts when nobody reads any more
			_ = writer.Close()
		}()
		forward.ServeHTTP(&pipeResponse{header: http.Header{}, writer: writer}, r.WithContext(ctx))
	}()
	w.Header().Set("Content-Type", "application/json")
	lines := bufio.NewReader(reader)
	for range count {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		_, _ = w.Write(line)
		w.(http.Flusher).Flush()
	}
	_, _ = io.WriteString(w, last)
	_ = reader.CloseWithError(io.ErrClosedPipe)
}

// pipeResponse is where a request is answered whose answer another one reads.
type pipeResponse struct {
	header http.Header
	writer *io.PipeWriter
}

func (p *pipeResponse) Header() http.Header             { return p.header }
func (p *pipeResponse) WriteHeader(code int)            {}
func (p *pipeResponse) Write(bytes []byte) (int, error) { return p.writer.Write(bytes) }
func (p *pipeResponse) Flush()                          {}
func (c *splittingConn) Read(into []byte) (int, error) {
	return c.Conn.Read(into[:min(len(into), 1+c.proxy.intn(200))])
}
func (c *splittingConn) Write(bytes []byte) (n int, e error) {
	for n < len(bytes) && e == nil {
		var m int
		m, e = c.Conn.Write(bytes[n:min(len(bytes), n+1+c.proxy.intn(60))])
		n += m
	}
	c.proxy.done()
	return n, e
}

// splittingConn reads and writes a few bytes at a time: what the server gets, and what the client gets of its answers, comes in pieces.
type splittingConn struct {
	net.Conn
	proxy *tamperingProxy
}

type acceptanceTest struct {
	report  *report
	program string
	seed    int64
}

func runAcceptance(args []string) int {
	flags, verbose, seed := newFlags("acceptance")
	program := flags.String("vedette", "", "path of the vedette program")
	resources := flags.String("resources", "", "its resources file, with example.com/v1 widgets")
	_ = flags.Parse(args)
	setVerbose(*verbose)
	report := newReport("acceptance")
	if err := useWatchList(true); err != nil {
		fmt.Fprintln(os.Stderr, "peers acceptance:", err)
		return 2
	}
	dir, err := os.MkdirTemp("", "peers-acceptance-")
	if err != nil {
		report.violation("setup", "%v", err)
		return report.finish()
	}
	defer os.RemoveAll(dir)
	t := &acceptanceTest{report: report, program: *program, seed: *seed}
	certificates, err := makeTestCertificates(dir)
	if err != nil {
		report.violation("setup", "%v", err)
		return report.finish()
	}
	for _, secure := range []bool{false, true} {
		flags := []string{"serve", "--memory", "--listen", "127.0.0.1:0", "--resources", *resources}
		config := &rest.Config{QPS: -1, Timeout: 0}
		if secure {
			flags = append(flags, "--tls-cert", certificates.certFile, "--tls-key", certificates.keyFile)
			config.TLSClientConfig.CAFile = certificates.caFile
		}
		server, err := startServer(t.program, flags...)
		if err == nil {
			_, err = server.awaitReady(acceptancePatience)
		}
		if !report.check(err == nil, "setup", "%v", err) {
			break
		}
		config.Host = server.url
		t.against(config, secure)
		report.check(server.terminate() == nil, "clean shutdown", "%s", server.stderr())
	}
	return report.finish()
}

func (t *acceptanceTest) against(config *rest.Config, secure bool) {
	client, err := kubernetes.NewForConfig(config)
	if err == nil {
		_, err = client.CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: acceptanceNamespace}}, metav1.CreateOptions{})
	}
	if !t.report.check(err == nil, "setup", "%v", err) {
		return
	}
	name := map[bool]string{false: "http", true: "tls"}[secure]
	t.informers(name, config, config, nil)
	t.leaders(name, client)
	if secure {
		return
	}
	for i, mode := range tamperModes {
		proxy, err := newTamperingProxy(config.Host, mode, t.seed+int64(i))
		if !t.report.check(err == nil, "setup", "%v", err) {
			return
		}
		through := rest.CopyConfig(config)
		through.Host = proxy.listener.URL
		t.informers(mode, config, through, proxy)
		proxy.mu.Lock()
		t.report.check(proxy.tampered > 0, "tampering", "nothing was changed on the way with %q", mode)
		t.report.figure("tampered "+mode, proxy.tampered)
		proxy.mu.Unlock()
		go proxy.listener.Close() // watches of informers that have ended may take a while to notice
	}
}

// seenObjects is what the handlers of one informer were told.
type seenObjects struct {
	mu      sync.Mutex
	value   map[string]string // name -> label "step"
	gone    map[string]bool
	changed chan struct{}
}

func (s *seenObjects) handler() cache.ResourceEventHandler {
	note := func(from any, gone bool) {
		if tombstone, is := from.(cache.DeletedFinalStateUnknown); is {
			from = tombstone.Obj
		}
		object, is := from.(metav1.Object)
		if !is {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.value[object.GetName()] = object.GetLabels()["step"]
		s.gone[object.GetName()] = gone
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { note(o, false) }, UpdateFunc: func(_, o any) { note(o, false) }, DeleteFunc: func(o any) { note(o, true) }}
}

// until waits for what it was told to be so.
func (s *seenObjects) until(is func() bool) bool {
	for end := time.After(acceptancePatience); ; {
		s.mu.Lock()
		done := is()
		s.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-s.changed:
		case <-end:
			return false
		}
	}
}

// informers: one of each sort, through what stands before the server; the writer goes to the server itself.
func (t *acceptanceTest) informers(name string, direct, through *rest.Config, proxy *tamperingProxy) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	writer, err := dynamic.NewForConfig(direct)
	typed, err2 := kubernetes.NewForConfig(through)
	untyped, err3 := dynamic.NewForConfig(through)
	partial, err4 := metadata.NewForConfig(through)
	if !t.report.check(err == nil && err2 == nil && err3 == nil && err4 == nil, "setup", "%v %v %v %v", err, err2, err3, err4) {
		return
	}
	in := func(resource schema.GroupVersionResource) dynamic.ResourceInterface {
		return writer.Resource(resource).Namespace(acceptanceNamespace)
	}
	made := func(resource schema.GroupVersionResource, kind, object, step string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": resource.GroupVersion().String(), "kind": kind,
			"metadata": map[string]any{"name": object, "labels": map[string]any{"step": step}}, "spec": map[string]any{"text": strings.Repeat("x", 300)}}}
	}
	kinds := map[schema.GroupVersionResource]string{maps: "ConfigMap", widgets: "Widget"}
	for resource, kind := range kinds {
		_ = in(resource).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		for i := range 20 {
			_, err := in(resource).Create(ctx, made(resource, kind, fmt.Sprintf("o-%d", i), "0"), metav1.CreateOptions{})
			t.report.check(err == nil, "R-660", "%s: create: %v", name, err)
		}
	}
	typedFactory := informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithNamespace(acceptanceNamespace))
	dynamicFactory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(untyped, 0, acceptanceNamespace, nil)
	metadataFactory := metadatainformer.NewFilteredSharedInformerFactory(partial, 0, acceptanceNamespace, nil)
	sorts := []struct {
		name     string
		resource schema.GroupVersionResource
		informer cache.SharedIndexInformer
		seen     *seenObjects
	}{
		{"typed configmaps", maps, typedFactory.Core().V1().ConfigMaps().Informer(), nil},
		{"dynamic configmaps", maps, dynamicFactory.ForResource(maps).Informer(), nil},
		{"dynamic widgets", widgets, dynamicFactory.ForResource(widgets).Informer(), nil},
		{"metadata of configmaps", maps, metadataFactory.ForResource(maps).Informer(), nil},
		{"metadata of widgets", widgets, metadataFactory.ForResource(widgets).Informer(), nil},
	}
	started := time.Now()
	for i := range sorts {
		sorts[i].seen = &seenObjects{value: map[string]string{}, gone: map[string]bool{}, changed: make(chan struct{}, 1)}
		_, err := sorts[i].informer.AddEventHandler(sorts[i].seen.handler())
		t.report.check(err == nil, "setup", "%v", err)
		go sorts[i].informer.Run(ctx.Done())
	}
	for _, sort := range sorts {
		patience, end := context.WithTimeout(ctx, acceptancePatience)
		if !t.report.check(cache.WaitForCacheSync(patience.Done(), sort.informer.HasSynced), "H-403", "%s: %s never came in sync", name, sort.name) {
			end()
			return
		}
		end()
		t.report.check(len(sort.informer.GetStore().ListKeys()) == 20, "H-404", "%s: %s begin with %d objects", name, sort.name, len(sort.informer.GetStore().ListKeys()))
	}
	t.report.figure("milliseconds to sync, "+name, time.Since(started).Milliseconds())
	for resource := range kinds {
		for i := range 10 {
			_, err := in(resource).Patch(ctx, fmt.Sprintf("o-%d", i), types.MergePatchType, []byte(`{"metadata":{"labels":{"step":"1"}}}`), metav1.PatchOptions{})
			t.report.check(err == nil, "R-665", "%s: patch: %v", name, err)
		}
		t.report.check(in(resource).Delete(ctx, "o-0", metav1.DeleteOptions{}) == nil, "R-666", "%s: delete", name)
	}
	for _, sort := range sorts {
		t.report.check(sort.seen.until(func() bool { return sort.seen.value["o-9"] == "1" && sort.seen.value["o-1"] == "1" }), "H-405", "%s: %s never saw the updates", name, sort.name)
		t.report.check(sort.seen.until(func() bool { return sort.seen.gone["o-0"] }), "H-408", "%s: %s never saw the deletion", name, sort.name)
		t.report.check(len(sort.informer.GetStore().ListKeys()) == 19, "H-404", "%s: %s end with %d objects", name, sort.name, len(sort.informer.GetStore().ListKeys()))
	}
}

// leaders: two candidates and one Lease, which the typed client writes as protobuf.
func (t *acceptanceTest) leaders(name string, client kubernetes.Interface) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	leads := make(chan string, 4)
	candidate := func(ctx context.Context, identity string) {
		lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Name: "leader", Namespace: acceptanceNamespace}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity}}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{Lock: lock, ReleaseOnCancel: true, LeaseDuration: 5 * time.Minute, RenewDeadline: 4 * time.Minute,
			RetryPeriod: 200 * time.Millisecond, Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { leads <- identity }, OnStoppedLeading: func() {}}})
	}
	leader := func() string {
		select {
		case who := <-leads:
			return who
		case <-time.After(acceptancePatience):
			return "nobody"
		}
	}
	first, release := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Add(1)
	go func() { defer ended.Done(); candidate(first, "one") }()
	t.report.check(leader() == "one", "H-320", "%s: the first candidate does not lead", name)
	go candidate(ctx, "two")
	release()
	ended.Wait()
	t.report.check(leader() == "two", "H-320", "%s: the second candidate does not take over", name)
	lease, err := client.CoordinationV1().Leases(acceptanceNamespace).Get(ctx, "leader", metav1.GetOptions{})
	t.report.check(err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == "two", "H-320", "%s: the lease: %v %v", name, err, lease)
	stale := lease.DeepCopy()
	stale.ResourceVersion = "1"
	_, err = client.CoordinationV1().Leases(acceptanceNamespace).Update(ctx, stale, metav1.UpdateOptions{})
	t.report.check(apierrors.IsConflict(err), "R-662", "%s: an update of a lease with an old version: %v", name, err)
}
