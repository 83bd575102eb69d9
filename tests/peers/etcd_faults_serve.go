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
	"sort"
	"strings"
	"sync"
	"time"
)

const (
	serveNamespace = "faults"
	servePrefix    = "/registry/configmaps/" + serveNamespace + "/"
	servePath      = "/api/v1/namespaces/" + serveNamespace + "/configmaps"
)

// runServeFaults: two `vedette serve --etcd` on one real etcd in trouble. Writers write through one of them and around both; watches on both must
// see what etcd's own client sees, once and in order; after each trouble every list equals etcd's own at its revision.
func runServeFaults(args []string) int {
	flags, verbose, seed := newFlags("serve-faults")
	program := flags.String("vedette", "", "path of vedette")
	version := flags.String("version", "3.7", "of etcd: 3.7 or 3.4")
	members := flags.Int("members", 3, "of the cluster")
	withTLS := flags.Bool("tls", false, "TLS with client certificates")
	rounds := flags.Int("rounds", 1, "how often each kind of trouble happens")
	writers := flags.Int("writers", 3, "through HTTP")
	interval := flags.Duration("interval", 20*time.Millisecond, "between two operations of a writer")
	only := flags.String("only", "", "only trouble whose name contains this")
	_ = flags.Parse(args)
	if *program == "" {
		fmt.Fprintln(os.Stderr, "peers serve-faults: --vedette is needed")
		return 2
	}
	etcd, err := findEtcd(*version)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, errSkip) {
			return exitSkipped
		}
		return 2
	}
	report := newReport("serve-faults")
	world, err := newFaultWorld(report, etcdOptions{program: etcd, count: *members, tls: *withTLS, proxy: true, seed: *seed}, *verbose, *rounds > 1)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers serve-faults:", err)
		return 1
	}
	defer world.close()
	world.prefix = servePrefix
	world.valueOf = faultConfigMap
	run := &serveFaults{world: world, report: report, client: &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	serveArgs := []string{"serve", "--etcd", strings.Join(world.cluster.endpoints(false), ","), "--listen", "127.0.0.1:0"}
	if certs := world.cluster.certs; certs != nil {
		serveArgs = append(serveArgs, "--etcd-cacert", certs.caFile, "--etcd-cert", certs.certFile, "--etcd-key", certs.keyFile)
	}
	for range 2 {
		server, err := startServer(*program, serveArgs...)
		if err == nil {
			_, err = server.awaitReady(5 * time.Minute)
		}
		if err != nil {
			report.violation("serve", "%v", err)
			return report.finish()
		}
		defer server.kill()
		run.servers = append(run.servers, server)
	}
	run.all(*rounds, *writers, *interval, *seed, *only)
	return report.finish()
}

func faultConfigMap(name, text string) string {
	value, _ := json.Marshal(map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": name, "namespace": serveNamespace,
		"uid": "00000000-0000-4000-8000-000000000000", "creationTimestamp": "2026-01-01T00:00:00Z"}, "data": map[string]any{"value": text}})
	return string(value)
}

type serveFaults struct {
	world    *faultWorld
	report   *report
	servers  []*serverProcess
	client   *http.Client
	watchers []*serveWatcher
	cancel   context.CancelFunc
	working  sync.WaitGroup

	mu     sync.Mutex
	writes []httpWrite
}

type httpWrite struct {
	value    string
	status   int // 0: no answer
	revision int64
	body     string
}

func (s *serveFaults) all(rounds, writers int, interval time.Duration, seed int64, only string) {
	w := s.world
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.put(ctx, "POST", "/api/v1/namespaces", fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, serveNamespace))
	writing, stop := context.WithCancel(ctx)
	for i := range writers {
		s.working.Add(1)
		go s.write(writing, i, interval, rand.New(rand.NewSource(seed*1000+int64(i))))
	}
	for i, server := range s.servers {
		for range 2 {
			watcher := &serveWatcher{faults: s, name: fmt.Sprintf("watch %d on server %d", len(s.watchers), i), server: server}
			watcher.changed = sync.NewCond(&watcher.mu)
			s.watchers = append(s.watchers, watcher)
			go watcher.run(ctx)
		}
	}
	s.settle("the start")
	for round := range rounds {
		faults := w.faults()
		w.random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		for _, f := range faults {
			if s.report.violated() {
				break
			}
			if strings.Contains(f.name, only) {
				w.say("round %d: %s", round+1, f.name)
				f.make()
				w.heal()
				s.settle(f.name)
			}
		}
	}
	stop()
	s.working.Wait()
	s.settle("the end")
	s.compareWrites()
	cancel()
	relists, restarts, events := 0, 0, 0
	for _, watcher := range s.watchers {
		relists += watcher.relists
		restarts += watcher.restarts
		events += watcher.events
	}
	// One ends while etcd is well, the other one while it is gone.
	if err := s.servers[0].terminate(); err != nil {
		s.report.violation("serve", "%v", err)
	}
	w.obey("kill all")
	if err := s.servers[1].terminate(); err != nil {
		s.report.violation("serve", "with etcd gone: %v", err)
	}
	if s.report.violated() {
		for _, server := range s.servers {
			fmt.Fprintf(os.Stderr, "--- stderr of %s\n%s\n", server.url, server.stderr())
		}
	}
	s.report.figure("revisions", w.history.revision())
	s.report.figure("events", events)
	s.report.figure("relists", relists)
	s.report.figure("watchesEndedCleanly", restarts)
	s.report.figure("writes", len(s.writes))
}

// put sends one write and returns what came back; status 0: nothing did.
func (s *serveFaults) put(ctx context.Context, method, path, body string) (status int, answer []byte) {
	request, err := http.NewRequestWithContext(ctx, method, s.servers[0].url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, answer
}

// write changes objects through the first server until it is told to stop.
func (s *serveFaults) write(ctx context.Context, id int, interval time.Duration, random *rand.Rand) {
	defer s.working.Done()
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("http-%02d", random.Intn(12))
		write := httpWrite{value: fmt.Sprintf("h%d-%d", id, n)}
		body := faultConfigMap(name, write.value)
		var answer []byte
		// The request itself is not canceled by the end: its answer counts.
		switch random.Intn(5) {
		case 0:
			_, _ = s.put(context.Background(), "DELETE", servePath+"/"+name, "")
			write.value = ""
		case 1:
			write.status, answer = s.put(context.Background(), "POST", servePath, body)
		default:
			write.status, answer = s.put(context.Background(), "PUT", servePath+"/"+name, body)
			if write.status == 404 {
				write.status, answer = s.put(context.Background(), "POST", servePath, body)
			}
		}
		if write.value != "" {
			if write.status >= 400 {
				write.body = string(answer)
			} else if write.status >= 200 {
				var got struct {
					Metadata struct{ ResourceVersion string }
				}
				_ = json.Unmarshal(answer, &got)
				write.revision = int64(parseRevision(got.Metadata.ResourceVersion))
			}
			s.mu.Lock()
			s.writes = append(s.writes, write)
			s.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

// compareWrites: what was answered with success happened, once, at that revision; what was refused by a 4xx did not happen.
func (s *serveFaults) compareWrites() {
	revisions := map[string]int64{}
	for _, event := range s.world.history.since(0) {
		if value := valueIn(event.value); strings.HasPrefix(value, "h") && strings.HasPrefix(event.key, servePrefix) {
			if before, found := revisions[value]; found {
				s.report.violation("E-207", "%q was written twice, at %d and at %d", value, before, event.revision)
			}
			revisions[value] = event.revision
		}
	}
	acknowledged := 0
	for _, write := range s.writes {
		revision, happened := revisions[write.value]
		switch {
		case write.status >= 200 && write.status < 300:
			acknowledged++
			s.report.check(happened && revision == write.revision, "R-128", "%s was answered with revision %d, it happened at %d", write.value, write.revision,
				revision)
		case write.status >= 400 && write.status < 500:
			s.report.check(!happened, "R-128", "%s was refused with %d (%.200s), but it happened at %d", write.value, write.status, write.body, revision)
		}
	}
	s.report.check(acknowledged > 0, "R-128", "no write was acknowledged")
	s.report.figure("acknowledged", acknowledged)
}

// valueIn is the value of our config maps, as stored or as answered.
func valueIn(text string) string {
	var object struct{ Data struct{ Value string } }
	_ = json.Unmarshal([]byte(text), &object)
	return object.Data.Value
}

// stateAt is what lies under the prefix at a revision: value and last revision of each name.
func (s *serveFaults) stateAt(revision int64) map[string]string {
	state := map[string]string{}
	for _, event := range s.world.history.since(0) {
		if event.revision > revision {
			break
		}
		name, under := strings.CutPrefix(event.key, servePrefix)
		switch {
		case !under:
		case event.deleted:
			delete(state, name)
		default:
			state[name] = fmt.Sprintf("%s@%d", valueIn(event.value), event.revision)
		}
	}
	return state
}

// list asks a server; the answer's revision, and its objects as in stateAt.
func (s *serveFaults) list(server *serverProcess, query string) (status int, revision int64, state map[string]string, err error) {
	response, err := s.client.Get(server.url + servePath + query)
	if err != nil {
		return 0, 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, 0, nil, err
	}
	if response.StatusCode != 200 {
		return response.StatusCode, 0, nil, fmt.Errorf("%s: %.300s", response.Status, bytes.TrimSpace(body))
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []struct {
			Metadata struct{ Name, ResourceVersion string }
			Data     struct{ Value string }
		}
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return 200, 0, nil, err
	}
	state = map[string]string{}
	for _, item := range list.Items {
		state[item.Metadata.Name] = fmt.Sprintf("%s@%s", item.Data.Value, item.Metadata.ResourceVersion)
	}
	return 200, int64(parseRevision(list.Metadata.ResourceVersion)), state, nil
}

// dump prints what the server says about itself.
func (s *serveFaults) dump(server *serverProcess) {
	response, err := s.client.Get(server.url + "/debug/vedette")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	fmt.Fprintf(os.Stderr, "--- /debug/vedette of %s\n%s\n", server.url, body)
}

func difference(got, wanted map[string]string) string {
	var lines []string
	for name, value := range wanted {
		if got[name] != value {
			lines = append(lines, fmt.Sprintf("%s is %.40q, wanted %.40q", name, got[name], value))
		}
	}
	for name, value := range got {
		if _, found := wanted[name]; !found {
			lines = append(lines, fmt.Sprintf("%s is %.40q, wanted nothing", name, value))
		}
	}
	sort.Strings(lines)
	if len(lines) > 5 {
		lines = append(lines[:5], fmt.Sprintf("and %d more", len(lines)-5))
	}
	return strings.Join(lines, "; ")
}

// settle: every server answers lists that are at least as new as what was just written, and right; every watch gets there.
func (s *serveFaults) settle(after string) {
	w := s.world
	w.say("  settling")
	marker := w.put("marker", "after "+after)
	deadline := time.Now().Add(faultPatience)
	for i, server := range s.servers {
		for _, query := range []string{fmt.Sprintf("?resourceVersion=%d", marker), "", fmt.Sprintf("?resourceVersion=%d&resourceVersionMatch=Exact", marker)} {
			var status int
			var revision int64
			var state map[string]string
			var err error
			pollUntil(time.Until(deadline), func() bool {
				status, revision, state, err = s.list(server, query)
				return err == nil
			})
			if !s.report.check(err == nil, "R-440", "after %s: server %d does not answer %s: %d %v", after, i, query, status, err) {
				s.dump(server)
				return
			}
			exact := strings.Contains(query, "Exact")
			s.report.check(revision >= marker && (!exact || revision == marker), "R-440", "after %s: server %d answers %s with revision %d, wanted %d", after, i,
				query, revision, marker)
			if err := w.history.await(revision, faultPatience); err != nil {
				s.report.violation("history", "server %d is ahead of etcd's own client: %v", i, err)
				return
			}
			if text := difference(state, s.stateAt(revision)); text != "" {
				s.report.violation("R-440", "after %s: server %d, list %s at revision %d: %s", after, i, query, revision, text)
			} else {
				s.report.check(true, "R-440", "")
			}
		}
	}
	for _, watcher := range s.watchers {
		watcher.settle(after, marker, deadline)
	}
}

// serveWatcher is one watch over HTTP that goes on from its last revision, and lists again when it is told to.
type serveWatcher struct {
	faults   *serveFaults
	name     string
	server   *serverProcess
	relists  int
	restarts int
	events   int

	mu       sync.Mutex
	changed  *sync.Cond
	revision int64 // everything up to here was seen; 0: nothing yet
	position int   // in the history
	seen     []serveEvent
}

type serveEvent struct {
	kind, name, value string
	revision          int64
}

func (e serveEvent) String() string {
	return fmt.Sprintf("%s %s %.40q at %d", e.kind, e.name, e.value, e.revision)
}

func (r *serveWatcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		if r.at() == 0 && !r.list(ctx) {
			continue
		}
		again, err := r.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		r.mu.Lock()
		if again {
			r.relists++
			r.compareLocked()
			r.revision = 0
		} else {
			r.restarts++
		}
		r.mu.Unlock()
		r.faults.world.say("  %s: %v", r.name, err)
		pause(20 * time.Millisecond) // a client backs off before it watches again
	}
}

func (r *serveWatcher) at() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.revision
}

// list begins again; what it says is compared in settle, as everything between is.
func (r *serveWatcher) list(ctx context.Context) bool {
	status, revision, state, err := r.faults.list(r.server, "?resourceVersion=0")
	if err != nil {
		r.faults.world.say("  %s: list: %d %v", r.name, status, err)
		pause(100 * time.Millisecond) // a client backs off before it lists again
		return false
	}
	if err := r.faults.world.history.await(revision, faultPatience); err != nil {
		r.faults.report.violation("history", "%s: %v", r.name, err)
		return false
	}
	if text := difference(state, r.faults.stateAt(revision)); text != "" {
		r.faults.report.violation("R-440", "%s: the list at revision %d: %s", r.name, revision, text)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults.report.check(revision >= r.revision, "R-440", "%s: a list went back to revision %d from %d", r.name, revision, r.revision)
	r.revision, r.position, r.seen = revision, 0, nil
	history := r.faults.world.history.since(0)
	for r.position < len(history) && history[r.position].revision <= revision {
		r.position++
	}
	r.changed.Broadcast()
	return true
}

// watch reads until the end; true: begin again with a list.
func (r *serveWatcher) watch(ctx context.Context) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s%s?watch=true&allowWatchBookmarks=true&resourceVersion=%d&timeoutSeconds=600",
		r.server.url, servePath, r.at()), nil)
	if err != nil {
		return false, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode == 410, fmt.Errorf("watch: %s: %.200s", response.Status, body)
	}
	decoder := json.NewDecoder(bufio.NewReaderSize(response.Body, 64<<10))
	for {
		var line struct {
			Type   string
			Object struct {
				Code     int
				Message  string
				Metadata struct{ Name, ResourceVersion string }
				Data     struct{ Value string }
			}
		}
		if err := decoder.Decode(&line); err != nil {
			return false, err
		}
		if line.Type == "ERROR" {
			return line.Object.Code == 410, fmt.Errorf("ERROR event %d: %s", line.Object.Code, line.Object.Message)
		}
		r.take(serveEvent{line.Type, line.Object.Metadata.Name, line.Object.Data.Value, int64(parseRevision(line.Object.Metadata.ResourceVersion))})
	}
}

func (r *serveWatcher) take(event serveEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.changed.Broadcast()
	if event.kind == "BOOKMARK" {
		r.faults.report.check(event.revision >= r.revision, "R-619", "%s: bookmark at %d after %d", r.name, event.revision, r.revision)
		r.revision = max(r.revision, event.revision)
		return
	}
	// Several events of one revision: a lease that ended took several keys with it.
	if r.faults.report.check(event.revision >= r.revision, "ordered", "%s: %v after revision %d", r.name, event, r.revision) {
		r.revision = event.revision
	}
	r.seen = append(r.seen, event)
	r.events++
}

// settle waits until the watch has seen the marker, and compares.
func (r *serveWatcher) settle(after string, marker int64, deadline time.Time) {
	expired := false
	timer := time.AfterFunc(time.Until(deadline), func() {
		r.mu.Lock()
		expired = true
		r.changed.Broadcast()
		r.mu.Unlock()
	})
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.revision < marker && !expired {
		r.changed.Wait()
	}
	if r.revision < marker {
		r.faults.dump(r.server)
	}
	if !r.faults.report.check(r.revision >= marker, "reliable", "after %s: %s stands at revision %d, %d was written", after, r.name, r.revision, marker) {
		return
	}
	r.compareLocked()
}

// compareLocked holds what was seen since the last comparison against the history.
func (r *serveWatcher) compareLocked() {
	if err := r.faults.world.history.await(r.revision, faultPatience); err != nil {
		r.faults.report.violation("history", "%s: %v", r.name, err)
		return
	}
	present := map[string]string{} // at position
	apply := func(event historyEvent) {
		if event.deleted {
			delete(present, event.key)
		} else {
			present[event.key] = valueIn(event.value)
		}
	}
	for _, event := range r.faults.world.history.since(0)[:r.position] {
		apply(event)
	}
	seen := r.seen
	r.seen = nil
	last := ""
	for _, event := range r.faults.world.history.since(r.position) {
		if event.revision > r.revision {
			break
		}
		r.position++
		name, under := strings.CutPrefix(event.key, servePrefix)
		if !under {
			continue
		}
		wanted := serveEvent{"ADDED", name, valueIn(event.value), event.revision}
		before, found := present[event.key]
		switch {
		case event.deleted:
			wanted.kind, wanted.value = "DELETED", before // the last state
		case found:
			wanted.kind = "MODIFIED"
		}
		apply(event)
		if len(seen) == 0 {
			r.faults.report.violation("reliable", "%s did not see %v (it had seen %s)", r.name, wanted, last)
			return
		}
		got := seen[0]
		seen = seen[1:]
		if !r.faults.report.check(got == wanted, "reliable", "%s saw %v, wanted %v", r.name, got, wanted) {
			return
		}
		last = got.String()
	}
	for _, event := range seen {
		r.faults.report.violation("unique", "%s saw %v, which never was, or twice", r.name, event)
	}
}
