package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

const (
	historyPatience = 3 * time.Minute // for anything that must happen
	historyPrefix   = "/registry/configmaps/default/"
	historyPath     = "/api/v1/namespaces/default/configmaps"
)

// runServeHistory: `vedette serve --etcd --data-dir` on a real etcd, killed and started again. What happened before the kill and while the server was down is told
// to whoever asks from a revision inside its window, whatever etcd has compacted; one revision further back is 410; an informer goes on without a list. An etcd that
// has compacted the gap, or was put back to an older state, ends the history with one line and nothing else.
func runServeHistory(args []string) int {
	flags, verbose, seed := newFlags("serve-history")
	program := flags.String("vedette", "", "path of vedette")
	updates := flags.Int("updates", 100, "before each kill")
	_ = flags.Parse(args)
	if *program == "" {
		fmt.Fprintln(os.Stderr, "peers serve-history: --vedette is needed")
		return 2
	}
	setVerbose(*verbose)
	etcd, err := findEtcd("3.7")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, errSkip) {
			return exitSkipped
		}
		return 2
	}
	report := newReport("serve-history")
	cluster, err := startEtcd(etcdOptions{program: etcd, count: 1, seed: *seed})
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers serve-history:", err)
		return 1
	}
	defer cluster.stop()
	run := &serveHistory{report: report, cluster: cluster, program: *program, verbose: *verbose, updates: *updates, random: rand.New(rand.NewSource(*seed)),
		happened: map[int64]string{}, exists: map[string]bool{}}
	if run.etcd, err = newEtcdClient(cluster, cluster.endpoints(true)); err == nil {
		run.port, err = freePort(map[int]bool{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers serve-history:", err)
		return 1
	}
	defer func() { _ = run.etcd.Close() }()
	defer run.kill()
	for _, step := range []func(){run.acrossRestarts, run.pastTheWindow, run.compactedGap, run.restoredEtcd, run.misuse} {
		step()
		if report.violated() {
			break
		}
	}
	return report.finish()
}

type serveHistory struct {
	report  *report
	cluster *etcdCluster
	etcd    *clientv3.Client
	program string
	verbose bool
	updates int
	random  *rand.Rand
	port    int
	server  *serverProcess // nil: not running

	mu       sync.Mutex
	happened map[int64]string // "MODIFIED name" by revision
	exists   map[string]bool
	puts     int
}

func (s *serveHistory) say(format string, args ...any) {
	if s.verbose {
		fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format("15:04:05.000")}, args...)...)
	}
}

func (s *serveHistory) url() string { return fmt.Sprintf("http://127.0.0.1:%d", s.port) }

func (s *serveHistory) dir(name string) string { return filepath.Join(s.cluster.dir, name) }

func (s *serveHistory) arguments(dir string, more ...string) []string {
	return append([]string{"serve", "--etcd", s.cluster.endpoints(true)[0], "--etcd-compaction-interval", "0", "--listen", fmt.Sprintf("127.0.0.1:%d", s.port),
		"--data-dir", dir}, more...)
}

func (s *serveHistory) start(dir string, more ...string) bool {
	server, err := startServer(s.program, s.arguments(dir, more...)...)
	if err == nil {
		_, err = server.awaitReady(historyPatience)
	}
	if !s.report.check(err == nil, "serve", "%v", err) {
		return false
	}
	s.server = server
	return true
}

func (s *serveHistory) kill() {
	if s.server != nil {
		s.server.kill()
		s.server = nil
	}
}

// write changes one of 20 objects in etcd itself, or through the server, and notes what happened.
func (s *serveHistory) write(client *clientv3.Client, size int) int64 {
	s.puts++
	name := fmt.Sprintf("c%02d", s.random.Intn(20))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var revision int64
	kind := "ADDED"
	if s.exists[name] {
		kind = "MODIFIED"
	}
	if s.exists[name] && s.random.Intn(5) == 0 {
		kind = "DELETED"
		response, err := client.Delete(ctx, historyPrefix+name)
		if !s.report.check(err == nil && response.Deleted == 1, "etcd", "delete %s: %v", name, err) {
			return 0
		}
		revision = response.Header.Revision
	} else {
		value := fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","uid":"00000000-0000-4000-8000-000000000000",`+
			`"creationTimestamp":"2026-01-01T00:00:00Z"},"data":{"put":"%d","filler":"%s"}}`, name, s.puts, strings.Repeat("x", size))
		response, err := client.Put(ctx, historyPrefix+name, value)
		if !s.report.check(err == nil, "etcd", "put %s: %v", name, err) {
			return 0
		}
		revision = response.Header.Revision
	}
	s.mu.Lock()
	s.exists[name] = kind != "DELETED"
	s.happened[revision] = fmt.Sprintf("%s %s@%d", kind, name, revision)
	s.mu.Unlock()
	return revision
}

func (s *serveHistory) writeMany(count, size int) (revision int64) {
	for range count {
		revision = s.write(s.etcd, size)
	}
	return
}

// post creates an object through the server.
func (s *serveHistory) post() int64 {
	s.puts++
	name := fmt.Sprintf("posted-%d", s.puts)
	response, err := http.Post(s.url()+historyPath, "application/json", strings.NewReader(fmt.Sprintf(`{"metadata":{"name":%q}}`, name)))
	if !s.report.check(err == nil, "R-128", "post %s: %v", name, err) {
		return 0
	}
	defer response.Body.Close()
	var object unstructured.Unstructured
	text, _ := io.ReadAll(response.Body)
	if !s.report.check(response.StatusCode == http.StatusCreated && json.Unmarshal(text, &object.Object) == nil, "R-128", "post %s: %s %s", name, response.Status, text) {
		return 0
	}
	revision := int64(parseRevision(object.GetResourceVersion()))
	s.mu.Lock()
	s.happened[revision] = fmt.Sprintf("ADDED %s@%d", name, revision)
	s.mu.Unlock()
	return revision
}

func (s *serveHistory) compact(revision int64) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err := s.etcd.Compact(ctx, revision, clientv3.WithCompactPhysical())
	s.report.check(err == nil, "etcd", "compact at %d: %v", revision, err)
}

// expected are the changes after a revision, in order.
func (s *serveHistory) expected(after int64) (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := after
	for revision := range s.happened {
		last = max(last, revision)
	}
	for revision := after + 1; revision <= last; revision++ {
		if line, found := s.happened[revision]; found {
			lines = append(lines, line)
		}
	}
	return
}

// watched are the first count events of a watch; with an ERROR event its code, or the status of the answer.
func (s *serveHistory) watched(after int64, count int) (lines []string, code int) {
	ctx, cancel := context.WithTimeout(context.Background(), historyPatience)
	defer cancel()
	request, _ := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s%s?watch=true&resourceVersion=%d", s.url(), historyPath, after), nil)
	response, err := http.DefaultClient.Do(request)
	if !s.report.check(err == nil, "watch", "from %d: %v", after, err) {
		return nil, 0
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, response.StatusCode
	}
	reader := bufio.NewReaderSize(response.Body, 1<<20)
	for len(lines) < count {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return lines, 0
		}
		var event struct {
			Type   string
			Object struct {
				Code     int
				Metadata struct{ Name, ResourceVersion string }
			}
		}
		if !s.report.check(json.Unmarshal(line, &event) == nil, "watch", "a line that is no event: %s", line) {
			return lines, 0
		}
		if event.Type == "ERROR" {
			return lines, event.Object.Code
		}
		lines = append(lines, fmt.Sprintf("%s %s@%s", event.Type, event.Object.Metadata.Name, event.Object.Metadata.ResourceVersion))
	}
	return lines, 0
}

// resumes checks that a watch from there gets exactly what happened since.
func (s *serveHistory) resumes(after int64, what string) {
	want := s.expected(after)
	got, code := s.watched(after, len(want))
	s.say("%s: from %d: %d of %d events, code %d", what, after, len(got), len(want), code)
	if !s.report.check(code == 0 && len(got) == len(want), "resumable", "%s: a watch from %d got %d of %d events, code %d", what, after, len(got), len(want), code) {
		return
	}
	for i := range want {
		if !s.report.check(got[i] == want[i], "reliable", "%s: a watch from %d got %q where %q happened", what, after, got[i], want[i]) {
			return
		}
	}
}

func (s *serveHistory) isExpired(after int64, what string) {
	got, code := s.watched(after, 1)
	s.report.check(code == 410, "R-483", "%s: a watch from %d should answer 410: code %d, events %v", what, after, code, got)
}

var metricLine = regexp.MustCompile(`^(\w+)(?:\{([^}]*)\})? (\S+)$`)

// metric is the value of a family without labels, or with the given ones; -1: there is none.
func (s *serveHistory) metric(name, labels string) int64 {
	response, err := http.Get(s.url() + "/metrics")
	if err != nil {
		return -1
	}
	defer response.Body.Close()
	for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
		if match := metricLine.FindStringSubmatch(scanner.Text()); match != nil && match[1] == name && match[2] == labels {
			value, _ := strconv.ParseFloat(match[3], 64)
			return int64(value)
		}
	}
	return -1
}

func (s *serveHistory) floor() int64 {
	return s.metric("vedette_history_oldest_revision", `group="",resource="configmaps"`)
}

// recorded waits until the local history has a revision.
func (s *serveHistory) recorded(revision int64) bool {
	isRecorded := pollUntil(historyPatience, func() bool { return s.metric("vedette_local_history_newest_revision", "") >= revision })
	return s.report.check(isRecorded, "history", "revision %d is not recorded", revision)
}

// countingTransport counts what client-go asks for.
type countingTransport struct {
	inner                  http.RoundTripper
	lists, starts, resumes atomic.Int64
}

func (t *countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	switch {
	case query.Get("watch") == "":
		t.lists.Add(1)
	case query.Get("sendInitialEvents") == "true":
		t.starts.Add(1)
	default:
		t.resumes.Add(1)
	}
	return t.inner.RoundTrip(request)
}

// acrossRestarts: an informer and plain watches across kill -9 and SIGTERM, with changes and compactions meanwhile.
func (s *serveHistory) acrossRestarts() {
	dir := s.dir("history")
	if !s.start(dir) {
		return
	}
	first := s.writeMany(20, 100)
	transport := &countingTransport{}
	config := restConfig(s.url())
	config.WrapTransport = func(inner http.RoundTripper) http.RoundTripper {
		transport.inner = inner
		return transport
	}
	client, err := dynamic.NewForConfig(config)
	if !s.report.check(err == nil, "client", "%v", err) {
		return
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "default", 0, cache.Indexers{}, nil).Informer()
	stop := make(chan struct{})
	defer close(stop)
	go informer.Run(stop)
	s.report.check(cache.WaitForCacheSync(stop, informer.HasSynced), "H-403", "the informer is not synced")
	lists, starts := transport.lists.Load(), transport.starts.Load()
	s.report.check(lists+starts > 0, "client", "the informer began without a list")
	for round := range 4 {
		before := s.writeMany(1, 100)
		for range s.updates / 10 {
			s.writeMany(9, 100)
			s.post()
		}
		last := before
		if round != 0 {
			last = s.post()
			if !s.recorded(last) {
				return
			}
		}
		// The first time at once, with whatever has been recorded by then.
		if round == 3 {
			_ = s.server.command.Process.Signal(syscall.SIGTERM)
			<-s.server.exited
			s.report.check(s.server.exit == nil, "serve", "after SIGTERM: %v; %s", s.server.exit, s.server.stderr())
			s.server = nil
		} else {
			s.kill()
		}
		if round != 0 {
			s.compact(last)
		}
		s.writeMany(10, 100)
		if !s.start(dir) {
			return
		}
		what := fmt.Sprintf("restart %d", round+1)
		s.report.check(!strings.Contains(s.server.stderr(), "is dropped"), "history", "%s: %s", what, s.server.stderr())
		s.resumes(before, what)
		s.resumes(first, what)
		s.post()
		s.resumes(last, what)
	}
	// The informer goes on by itself, and has everything in the end.
	final := s.post()
	pollUntil(historyPatience, func() bool { return informer.LastSyncResourceVersion() == fmt.Sprint(final) })
	s.report.check(informer.LastSyncResourceVersion() == fmt.Sprint(final), "resumable", "the informer stands at %s and not at %d", informer.LastSyncResourceVersion(), final)
	s.report.check(transport.lists.Load() == lists && transport.starts.Load() == starts, "resumable",
		"the informer listed again: %d lists and %d WatchLists after the first", transport.lists.Load()-lists, transport.starts.Load()-starts)
	s.report.figure("relists", transport.lists.Load()-lists+transport.starts.Load()-starts)
	list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default").List(context.Background(), metav1.ListOptions{})
	if s.report.check(err == nil, "R-151", "%v", err) {
		store := map[string]fact{}
		for _, item := range informer.GetStore().List() {
			f := factOf("ADDED", item.(*unstructured.Unstructured))
			store[f.key] = f
		}
		compareStates(s.report, "informer store", "across restarts", factsOfList(list.Items), store)
	}
	s.report.figure("resumed watches", transport.resumes.Load())
	s.kill()
}

// pastTheWindow: a budget that the updates do not fit into. The oldest revision that the metric names works, the one before it is 410.
func (s *serveHistory) pastTheWindow() {
	dir := s.dir("small")
	if !s.start(dir, "--history-bytes", "256KiB") {
		return
	}
	first := s.writeMany(1, 4000)
	last := s.writeMany(2*s.updates, 4000)
	if !s.recorded(last) {
		return
	}
	s.kill()
	s.compact(last)
	s.writeMany(5, 100)
	if !s.start(dir, "--history-bytes", "256KiB") {
		return
	}
	for {
		floor := s.floor()
		want := s.expected(floor)
		got, code := s.watched(floor, len(want))
		_, past := s.watched(floor-1, 1)
		if s.floor() != floor {
			continue // something left the window meanwhile
		}
		s.say("a window of %d revisions: %d of %d events, code %d; just past it code %d", last-floor, len(got), len(want), code, past)
		s.report.figure("window of", last-floor)
		s.report.check(floor > first && floor < last, "history", "the window begins at %d: %d was to be evicted, %d not", floor, first, last)
		s.report.check(floor <= s.metric("vedette_local_history_oldest_revision", ""), "history", "the cache has more than the files")
		s.report.check(code == 0 && strings.Join(got, ", ") == strings.Join(want, ", "), "resumable", "just inside the window, from %d: %v where %v happened, code %d", floor, got,
			want, code)
		s.report.check(past == 410, "R-483", "just past the window, from %d: code %d", floor-1, past)
		break
	}
	s.kill()
}

// compactedGap: etcd has forgotten what happened while the server was down.
func (s *serveHistory) compactedGap() {
	dir := s.dir("gap")
	if !s.start(dir) {
		return
	}
	last := s.writeMany(s.updates, 100)
	if !s.recorded(last) {
		return
	}
	s.kill()
	s.compact(s.writeMany(5, 100))
	if !s.start(dir) {
		return
	}
	s.isDropped("etcd has compacted the changes after revision")
	s.isExpired(last, "a compacted gap")
	s.resumes(s.post(), "after a compacted gap")
	s.kill()
}

func (s *serveHistory) isDropped(why string) {
	text := s.server.stderr()
	s.report.check(strings.Count(text, "is dropped") == 1 && strings.Contains(text, why), "history", "one line should say %q: %s", why, text)
	s.report.check(s.metric("vedette_local_history_drops_total", "") == 1, "history", "the drop is not counted")
}

// restoredEtcd: etcd is put back to what it was before the updates and has gone another way since, past the newest revision that was recorded.
func (s *serveHistory) restoredEtcd() {
	dir, member := s.dir("restored"), s.cluster.members[0]
	backup := s.dir("backup")
	copyOf := func(from, to string) {
		_ = os.RemoveAll(to)
		out, err := exec.Command("cp", "-r", from, to).CombinedOutput()
		s.report.check(err == nil, "setup", "cp: %v %s", err, out)
	}
	again := func() {
		s.cluster.mu.Lock()
		err := s.cluster.startMember(member)
		s.cluster.mu.Unlock()
		if err == nil {
			err = s.cluster.awaitHealthy(historyPatience)
		}
		s.report.check(err == nil, "etcd", "%v", err)
	}
	member.kill(syscall.SIGTERM)
	copyOf(member.dir, backup)
	again()
	if !s.start(dir) {
		return
	}
	before := s.post()
	last := s.writeMany(s.updates, 100)
	if !s.recorded(last) {
		return
	}
	s.kill()
	member.kill(syscall.SIGKILL)
	copyOf(backup, member.dir)
	again()
	s.mu.Lock()
	s.happened, s.exists = map[int64]string{}, map[string]bool{}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), historyPatience)
	defer cancel()
	if _, err := s.etcd.Delete(ctx, historyPrefix, clientv3.WithPrefix()); !s.report.check(err == nil, "etcd", "%v", err) {
		return
	}
	revision := s.writeMany(2*s.updates, 100)
	s.report.check(revision > last, "setup", "the restored etcd did not pass revision %d", last)
	if !s.start(dir) {
		return
	}
	s.isDropped("it was restored, or is another cluster")
	s.report.check(s.floor() != before, "history", "the former life is still there")
	s.resumes(s.post()-1, "after a restore")
	s.kill()
}

// misuse: a directory that is in use, one that cannot be made, one that holds something else.
func (s *serveHistory) misuse() {
	dir := s.dir("used")
	if !s.start(dir) {
		return
	}
	fails := func(status int, text string, arguments ...string) {
		var stderr bytes.Buffer
		command := exec.Command(s.program, arguments...)
		command.Stderr = &stderr
		done := time.AfterFunc(historyPatience, func() { _ = command.Process.Kill() })
		defer done.Stop()
		_ = command.Run()
		s.report.check(command.ProcessState.ExitCode() == status && strings.Contains(stderr.String(), text), "serve", "%v should end with %d and say %q: %v %s", arguments, status,
			text, command.ProcessState, stderr.String())
	}
	second := s.arguments(dir)
	second[6] = "127.0.0.1:0"
	fails(1, "is in use by process", second...)
	s.kill()
	fails(1, "/proc/vedette-history", s.arguments("/proc/vedette-history")...)
	embedded := s.dir("embedded")
	server, err := startServer(s.program, "serve", "--data-dir", embedded, "--listen", "127.0.0.1:0")
	if err == nil {
		_, err = server.awaitReady(historyPatience)
	}
	if s.report.check(err == nil, "serve", "%v", err) {
		server.kill()
		fails(2, "contains an embedded store", s.arguments(embedded)...)
		fails(2, "holds the local history of an etcd", "serve", "--data-dir", dir, "--listen", "127.0.0.1:0")
	}
}
