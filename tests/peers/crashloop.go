package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The crash loop: writers, a reader and a watcher run against a server that is killed (SIGKILL) at random moments and started again on
// the same data and port. Between two lives everything stands still and is compared:
//   - every key holds its last acknowledged state, or that of the one write whose answer the kill swallowed;
//   - the revision is not behind any that anybody saw, in an answer, a list, an event or a bookmark;
//   - the sequence of events that the watcher saw before the kill is there again, event by event (visible means durable);
//   - the watcher's own stream goes on from its last revision, without ERROR and without a gap.

const (
	crashNamespace    = "peers-crash"
	crashPath         = "/api/v1/namespaces/" + crashNamespace + "/configmaps"
	crashWatchOverlap = 500 // events before the last comparison that are compared again
)

// crashState is what a key holds: value 0 is absent.
type crashState struct {
	value    int64
	revision uint64 // 0: not known
}

func (s crashState) String() string {
	if s.value == 0 {
		return "absent"
	}
	return fmt.Sprintf("value %d at revision %d", s.value, s.revision)
}

type crashKey struct {
	name       string
	acked      crashState
	pending    *crashState // the write under way, its answer unknown
	operations int64
}

type crashAck struct {
	key      string
	revision uint64
	value    int64 // 0: deleted
}

type crashEvent struct {
	fact
	value int64
}

type crashWriter struct {
	keys []*crashKey
	acks []crashAck
}

type crashLoop struct {
	report  *report
	program string
	args    []string
	random  *rand.Rand
	server  *serverProcess
	url     string
	client  *http.Client

	writers []*crashWriter

	mu         sync.Mutex
	condition  *sync.Cond
	running    bool // clients may work
	ended      bool
	parked     int
	parties    int
	life       int
	maxSeen    uint64
	maxSeenHow string
	seen       []crashEvent // by the continuous watcher
	watchAt    uint64       // its revision
	watchStart uint64
	reads      []crashAck // states seen by the reader in this life
	value      int64
	watches    int
}

func runCrashloop(args []string) int {
	flags, verbose, seed := newFlags("crashloop")
	program := flags.String("vedette", "", "path of the vedette program")
	dataDir := flags.String("data-dir", "", "data directory (default: a temporary one, removed when all was well)")
	rounds := flags.Int("rounds", 10, "kills")
	writers := flags.Int("writers", 8, "writers")
	keys := flags.Int("keys", 8, "keys per writer")
	runMax := flags.Duration("run-max", 1500*time.Millisecond, "longest time between ready and kill")
	_ = flags.Parse(args)
	setVerbose(*verbose)
	report := newReport("crashloop")
	temporary := *dataDir == ""
	if temporary {
		var err error
		if *dataDir, err = os.MkdirTemp("", "peers-crashloop-"); err != nil {
			report.violation("setup", "%v", err)
			return report.finish()
		}
	}
	loop := &crashLoop{
		report: report, program: *program, random: rand.New(rand.NewSource(*seed)),
		args:   append([]string{"serve", "--data-dir", *dataDir}, flags.Args()...),
		client: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}},
	}
	loop.condition = sync.NewCond(&loop.mu)
	for w := 0; w < *writers; w++ {
		writer := &crashWriter{}
		for k := 0; k < *keys; k++ {
			writer.keys = append(writer.keys, &crashKey{name: fmt.Sprintf("key-%02d-%02d", w, k)})
		}
		loop.writers = append(loop.writers, writer)
	}
	if err := loop.run(*rounds, *runMax, *verbose); err != nil {
		report.violation("crashloop", "%v", err)
	}
	if loop.server != nil {
		loop.server.kill()
	}
	if temporary && !report.violated() {
		os.RemoveAll(*dataDir)
	} else {
		report.figure("dataDir", *dataDir)
	}
	return report.finish()
}

// start runs the program, on the port of its first life.
func (l *crashLoop) start() error {
	listen := "127.0.0.1:0"
	if l.url != "" {
		parsed, err := url.Parse(l.url)
		if err != nil {
			return err
		}
		listen = parsed.Host
	}
	server, err := startServer(l.program, append(append([]string(nil), l.args...), "--listen", listen)...)
	l.server = server
	return err
}

func (l *crashLoop) run(rounds int, runMax time.Duration, verbose bool) error {
	if err := l.start(); err != nil {
		return err
	}
	if _, err := l.server.awaitReady(5 * time.Minute); err != nil {
		return err
	}
	l.url = l.server.url
	status, body, err := l.request("POST", "/api/v1/namespaces", "application/json",
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+crashNamespace+`"}}`)
	if err != nil || (status != 201 && status != 409) {
		return fmt.Errorf("creating the namespace: %d %.200s %w", status, body, err)
	}
	revision, items, err := l.list("")
	if err != nil {
		return err
	}
	if len(items) != 0 {
		return fmt.Errorf("the data directory already holds %d objects of an earlier run", len(items))
	}
	l.watchStart, l.watchAt = revision, revision
	l.saw(revision, "first list")

	l.parties = len(l.writers) + 2
	for i := range l.writers {
		go l.writer(l.writers[i], rand.New(rand.NewSource(int64(i)+l.random.Int63())))
	}
	go l.reader(rand.New(rand.NewSource(l.random.Int63())))
	go l.watcher()

	compared := l.watchStart // the fresh watch of the next comparison starts here
	var restarts []int64
	killedEarly := 0
	for round := 0; round < rounds; round++ {
		l.setRunning(true)
		pause(time.Duration(l.random.Int63n(int64(runMax))))
		l.server.kill()
		l.setRunning(false)
		l.awaitParked()

		// One time in four the next life is killed too, before or just after it is ready: recovery itself is interrupted.
		for l.random.Intn(4) == 0 {
			if err := l.start(); err != nil {
				return err
			}
			select {
			case <-time.After(time.Duration(l.random.Int63n(int64(60 * time.Millisecond)))):
				killedEarly++
			case <-l.server.exited:
				return fmt.Errorf("the server gave up when it started again: %v; its stderr:\n%s", l.server.exit, l.server.stderr())
			}
			l.server.kill()
		}
		if err := l.start(); err != nil {
			return err
		}
		took, err := l.server.awaitReady(5 * time.Minute)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		restarts = append(restarts, took.Milliseconds())
		if verbose {
			fmt.Fprintf(os.Stderr, "peers crashloop: round %d: %d events seen, ready again after %v\n", round, len(l.seen), took)
		}
		if compared, err = l.compare(compared); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if l.report.violated() {
			return fmt.Errorf("round %d: see above; the server's stderr:\n%s", round, l.server.stderr())
		}
	}

	// A last life that ends in order, then everything once more from the very first revision.
	l.setRunning(true)
	pause(200 * time.Millisecond)
	l.setRunning(false)
	if err := l.server.terminate(); err != nil {
		l.report.violation("SIGTERM", "%v", err)
	}
	l.awaitParked()
	if err := l.start(); err != nil {
		return err
	}
	if _, err := l.server.awaitReady(5 * time.Minute); err != nil {
		return err
	}
	if _, err := l.compare(l.watchStart); err != nil {
		return err
	}
	l.compareAcks()
	l.mu.Lock()
	l.ended = true
	l.condition.Broadcast()
	l.mu.Unlock()
	if err := l.server.terminate(); err != nil {
		l.report.violation("SIGTERM", "%v", err)
	}
	acks := 0
	for _, w := range l.writers {
		acks += len(w.acks)
	}
	l.report.figure("rounds", rounds)
	l.report.figure("killedWhileStarting", killedEarly)
	l.report.figure("acknowledged", acks)
	l.report.figure("eventsSeen", len(l.seen))
	l.report.figure("watches", l.watches)
	l.report.figure("readyAgainMilliseconds", restarts)
	l.report.check(acks > 0 && len(l.seen) > 0, "setup", "nothing was written or seen")
	return nil
}

func (l *crashLoop) setRunning(running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if running {
		l.life++
	}
	l.running = running
	l.condition.Broadcast()
}

// park blocks until the next life; false: it is over.
func (l *crashLoop) park() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	life := l.life
	if l.running { // our request failed before the main loop has taken note of its own kill
		for l.running && l.life == life && !l.ended {
			l.condition.Wait()
		}
	}
	l.parked++
	l.condition.Broadcast()
	for !l.running && !l.ended {
		l.condition.Wait()
	}
	l.parked--
	return !l.ended
}

func (l *crashLoop) isRunning() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running
}

func (l *crashLoop) awaitParked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.parked < l.parties {
		l.condition.Wait()
	}
}

func (l *crashLoop) saw(revision uint64, how string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if revision > l.maxSeen {
		l.maxSeen, l.maxSeenHow = revision, how
	}
}

func (l *crashLoop) request(method, path, contentType, body string) (int, []byte, error) {
	request, err := http.NewRequest(method, l.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := l.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

func crashValue(from *unstructured.Unstructured) int64 {
	var value int64
	_, _ = fmt.Sscan(digString(from.Object, "data", "value"), &value)
	return value
}

func (l *crashLoop) list(query string) (uint64, []unstructured.Unstructured, error) {
	status, body, err := l.request("GET", crashPath+query, "", "")
	if err != nil {
		return 0, nil, err
	}
	if status != 200 {
		return 0, nil, fmt.Errorf("list: %d %.300s", status, body)
	}
	var list unstructured.UnstructuredList
	if err := list.UnmarshalJSON(body); err != nil {
		return 0, nil, err
	}
	return parseRevision(list.GetResourceVersion()), list.Items, nil
}

// writer writes its keys until a request fails for want of a server, then parks.
func (l *crashLoop) writer(w *crashWriter, random *rand.Rand) {
	for l.park() {
		for l.isRunning() {
			if !l.write(w, w.keys[random.Intn(len(w.keys))]) {
				break
			}
		}
	}
}

// write makes the key's next write. False: no answer, the write stays pending.
func (l *crashLoop) write(w *crashWriter, key *crashKey) bool {
	l.mu.Lock()
	l.value++
	value := l.value
	l.mu.Unlock()
	key.operations++
	method, path, contentType := "PUT", crashPath+"/"+key.name, "application/json"
	object := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},"data":{"value":"%d","pad":"%s"}}`,
		key.name, value, strings.Repeat("x", int(value%7)*100))
	body, want := object, 200
	switch {
	case key.acked.value == 0:
		method, path, want = "POST", crashPath, 201
	case key.operations%13 == 12:
		method, body, value = "DELETE", `{"kind":"DeleteOptions","apiVersion":"v1"}`, 0
	case key.operations%3 == 0:
		method, contentType, body = "PATCH", "application/merge-patch+json", fmt.Sprintf(`{"data":{"value":"%d"}}`, value)
	case key.operations%3 == 1:
		body = strings.Replace(object, `"metadata":{`, fmt.Sprintf(`"metadata":{"resourceVersion":"%d",`, key.acked.revision), 1)
	}
	key.pending = &crashState{value: value}
	status, answer, err := l.request(method, path, contentType, body)
	if err != nil {
		return false
	}
	if status != want {
		if status == 503 || status == 429 { // going down
			return false
		}
		l.report.violation("R-662", "%s %s: %d %.300s (last acknowledged: %v)", method, path, status, answer, key.acked)
		return false
	}
	key.pending = nil
	if value == 0 {
		key.acked = crashState{}
		w.acks = append(w.acks, crashAck{key: key.name})
		return true
	}
	var object2 unstructured.Unstructured
	if err := object2.UnmarshalJSON(answer); err != nil {
		l.report.violation("H-340", "%s %s answered %.200s: %v", method, path, answer, err)
		return false
	}
	revision := parseRevision(object2.GetResourceVersion())
	l.report.check(crashValue(&object2) == value && revision > key.acked.revision, "H-340", "%s %s answered value %d at %d; written %d after %v",
		method, path, crashValue(&object2), revision, value, key.acked)
	key.acked = crashState{value: value, revision: revision}
	w.acks = append(w.acks, crashAck{key: key.name, revision: revision, value: value})
	l.saw(revision, "answer to "+method+" "+key.name)
	return true
}

// reader reads as others do: what it saw must still be true after the kill.
func (l *crashLoop) reader(random *rand.Rand) {
	for l.park() {
		for l.isRunning() {
			query := []string{"", "?resourceVersion=0", "?limit=5"}[random.Intn(3)]
			revision, items, err := l.list(query)
			if err != nil {
				break
			}
			l.saw(revision, "list"+query)
			l.mu.Lock()
			for i := range items {
				if len(l.reads) < 5000 {
					l.reads = append(l.reads, crashAck{key: items[i].GetName(), revision: parseRevision(items[i].GetResourceVersion()), value: crashValue(&items[i])})
				}
			}
			l.mu.Unlock()
		}
	}
}

// openWatch opens a watch; every failure that is an answer is a violation.
func (l *crashLoop) openWatch(ctx context.Context, from uint64) (*json.Decoder, io.Closer, error) {
	request, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s%s?watch=1&allowWatchBookmarks=true&resourceVersion=%d", l.url, crashPath, from), nil)
	if err != nil {
		return nil, nil, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	if response.StatusCode != 200 {
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		return nil, nil, fmt.Errorf("watch from revision %d: %d %.300s", from, response.StatusCode, body)
	}
	return json.NewDecoder(response.Body), response.Body, nil
}

var errErrorEvent = errors.New("ERROR event")

func nextCrashEvent(decoder *json.Decoder) (crashEvent, error) {
	var line struct {
		Type   string
		Object json.RawMessage
	}
	if err := decoder.Decode(&line); err != nil {
		return crashEvent{}, err
	}
	if line.Type == "ERROR" {
		return crashEvent{}, fmt.Errorf("%w: %.300s", errErrorEvent, line.Object)
	}
	var from unstructured.Unstructured
	if err := from.UnmarshalJSON(line.Object); err != nil {
		return crashEvent{}, fmt.Errorf("%w that is no object: %.200s", errErrorEvent, line.Object)
	}
	return crashEvent{factOf(line.Type, &from), crashValue(&from)}, nil
}

// watcher keeps one watch through all lives.
func (l *crashLoop) watcher() {
	for l.park() {
		ctx, cancel := context.WithCancel(context.Background())
		decoder, closer, err := l.openWatch(ctx, l.watchAt)
		if err != nil {
			cancel()
			var urlError *url.Error
			l.report.check(errors.As(err, &urlError), "resumable", "%v", err)
			continue
		}
		l.mu.Lock()
		l.watches++
		l.mu.Unlock()
		present := map[string]bool{}
		for _, event := range l.seen {
			present[event.key] = event.kind != "DELETED"
		}
		for {
			event, err := nextCrashEvent(decoder)
			if err != nil {
				l.report.check(!errors.Is(err, errErrorEvent), "resumable", "the watch from before the kill: %v", err)
				break
			}
			l.saw(event.revision, "event "+event.kind)
			if event.kind == "BOOKMARK" {
				l.report.check(event.revision >= l.watchAt, "bookmarkable", "bookmark %d after revision %d", event.revision, l.watchAt)
				l.watchAt = max(l.watchAt, event.revision)
				continue
			}
			l.report.check(event.revision > l.watchAt, "ordered", "%v after revision %d", event.fact, l.watchAt)
			l.report.check(present[event.key] == (event.kind != "ADDED"), "R-552", "%v, and the object was there: %v", event.fact, present[event.key])
			present[event.key] = event.kind != "DELETED"
			l.watchAt = event.revision
			l.mu.Lock()
			l.seen = append(l.seen, event)
			l.mu.Unlock()
		}
		closer.Close()
		cancel()
	}
}

// compare checks a new life against all that was seen of earlier ones; everybody is parked. from: where the fresh watch starts.
func (l *crashLoop) compare(from uint64) (next uint64, err error) {
	revision, items, err := l.list("")
	if err != nil {
		return 0, err
	}
	l.report.check(revision >= l.maxSeen, "revision", "after the restart the revision is %d, but %s had shown %d", revision, l.maxSeenHow, l.maxSeen)
	listed := map[string]crashState{}
	for i := range items {
		listed[items[i].GetName()] = crashState{crashValue(&items[i]), parseRevision(items[i].GetResourceVersion())}
	}
	for _, w := range l.writers {
		for _, key := range w.keys {
			status, body, err := l.request("GET", crashPath+"/"+key.name, "", "")
			if err != nil {
				return 0, err
			}
			state := crashState{}
			if status == 200 {
				var object unstructured.Unstructured
				if err := object.UnmarshalJSON(body); err != nil {
					return 0, err
				}
				state = crashState{crashValue(&object), parseRevision(object.GetResourceVersion())}
			} else if status != 404 {
				return 0, fmt.Errorf("get %s: %d %.300s", key.name, status, body)
			}
			l.report.check(listed[key.name] == state, "R-151", "%s: get says %v, list %v", key.name, state, listed[key.name])
			switch {
			case state == key.acked:
			case key.pending != nil && state.value == key.pending.value:
				if state.value != 0 {
					w.acks = append(w.acks, crashAck{key.name, state.revision, state.value})
				} else {
					w.acks = append(w.acks, crashAck{key: key.name})
				}
			default:
				pending := "none"
				if key.pending != nil {
					pending = key.pending.String()
				}
				l.report.violation("durable", "%s: %v after the restart; acknowledged was %v, under way %s", key.name, state, key.acked, pending)
			}
			key.acked, key.pending = state, nil
			delete(listed, key.name)
		}
	}
	for name, state := range listed {
		l.report.violation("durable", "%s: %v, but nobody wrote it", name, state)
	}

	// What the watcher saw must come again in a new watch from an old revision, and nothing else in between.
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	decoder, closer, err := l.openWatch(ctx, from)
	if err != nil {
		return 0, err
	}
	defer closer.Close()
	old := l.seen
	for len(old) > 0 && old[0].revision <= from {
		old = old[1:]
	}
	var fresh []crashEvent
	lastEvent := l.lastEventRevision(revision)
	for lastEvent > from && (len(fresh) == 0 || fresh[len(fresh)-1].revision < lastEvent) {
		event, err := nextCrashEvent(decoder)
		if err != nil {
			l.report.violation("resumable", "a new watch from revision %d, standing at %d of %d: %v", from, lastRevision(fresh), lastEvent, err)
			return from, nil
		}
		if event.kind == "BOOKMARK" {
			if l.report.check(event.revision < lastEvent, "reliable", "a new watch from revision %d: bookmark %d came before the event of revision %d", from, event.revision, lastEvent) {
				continue
			}
			return from, nil
		}
		fresh = append(fresh, event)
	}
	for i, event := range old {
		if i >= len(fresh) || fresh[i] != event {
			got := "nothing"
			if i < len(fresh) {
				got = fmt.Sprintf("%v value %d", fresh[i].fact, fresh[i].value)
			}
			l.report.violation("durable", "event %v value %d was seen before the kill; after it, a watch from revision %d brings %s there", event.fact, event.value, from, got)
			break
		}
	}
	states := map[crashAck]bool{}
	for _, event := range fresh {
		states[crashAck{event.key[len(crashNamespace)+1:], event.revision, event.value}] = true
	}
	for _, read := range l.reads {
		if read.revision > from {
			l.report.check(states[read], "durable", "%s was read with value %d at revision %d before the kill; no such event after it", read.key, read.value, read.revision)
		}
	}
	l.reads = nil
	if len(fresh) > crashWatchOverlap {
		return fresh[len(fresh)-crashWatchOverlap].revision, nil
	}
	return from, nil
}

func lastRevision(events []crashEvent) uint64 {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].revision
}

// lastEventRevision is a revision at which there surely was an event: the newest of all acknowledged states and of all events seen.
func (l *crashLoop) lastEventRevision(limit uint64) uint64 {
	last := lastRevision(l.seen)
	for _, w := range l.writers {
		for _, a := range w.acks {
			last = max(last, a.revision)
		}
	}
	return min(last, limit)
}

// compareAcks checks the full sequence against the acknowledgements: each is there, and nothing that nobody wrote.
func (l *crashLoop) compareAcks() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	decoder, closer, err := l.openWatch(ctx, l.watchStart)
	if err != nil {
		l.report.violation("resumable", "%v", err)
		return
	}
	defer closer.Close()
	last := l.lastEventRevision(^uint64(0))
	type place struct {
		key   string
		value int64
	}
	events := map[place]uint64{}
	deletions := map[string]int{}
	for at := l.watchStart; at < last; {
		event, err := nextCrashEvent(decoder)
		if err != nil {
			l.report.violation("resumable", "the whole sequence from revision %d: at %d: %v", l.watchStart, at, err)
			return
		}
		at = event.revision
		name := strings.TrimPrefix(event.key, crashNamespace+"/")
		if event.kind == "DELETED" {
			deletions[name]++
		} else if event.kind != "BOOKMARK" {
			_, twice := events[place{name, event.value}]
			l.report.check(!twice, "unique", "%s: value %d was written twice", name, event.value)
			events[place{name, event.value}] = event.revision
		}
	}
	for _, w := range l.writers {
		for _, a := range w.acks {
			if a.value == 0 {
				deletions[a.key]--
				continue
			}
			revision, ok := events[place{a.key, a.value}]
			l.report.check(ok && revision == a.revision, "durable", "acknowledged %s value %d at revision %d; the history has it at revision %d", a.key, a.value, a.revision, revision)
			delete(events, place{a.key, a.value})
		}
	}
	for p, revision := range events {
		l.report.violation("durable", "%s: value %d at revision %d: no write that could have made it survived", p.key, p.value, revision)
	}
	for name, n := range deletions {
		// The last event may be a deletion that came after the last put: it has no acknowledged revision and lies beyond what was read.
		l.report.check(n == 0 || n == -1, "durable", "%s: %d more deletions in history than acknowledged", name, n)
	}
}
