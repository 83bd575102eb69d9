package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recorder keeps one raw watch on one resource over a direct connection that is never cut: the full sequence, to which
// everything else is compared. It also checks what holds for any watch: strictly increasing revisions, ADDED only for an
// absent object, MODIFIED and DELETED only for a present one, DELETED carrying the last state.
type recorder struct {
	report  *report
	name    string
	filters []func(*unstructured.Unstructured) bool
	reduce  func(f fact, from *unstructured.Unstructured) fact // may replace the hash by one over less; nil: as it is
	cancel  context.CancelFunc
	done    chan struct{}
	resumed int // how often the server ended the watch cleanly before us; read after stop

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced whenever revision moves
	initial  map[string]fact
	start    uint64
	sequence []fact
	present  map[string]fact
	revision uint64
	failure  error
}

// startRecorder lists target (a path such as /api/v1/configmaps) and watches from there.
func startRecorder(ctx context.Context, report *report, name, server, target string, filters ...func(*unstructured.Unstructured) bool) (*recorder, error) {
	return startRecorderWith(ctx, report, name, server, target, nil, filters...)
}

func startRecorderWith(ctx context.Context, report *report, name, server, target string,
	reduce func(f fact, from *unstructured.Unstructured) fact, filters ...func(*unstructured.Unstructured) bool) (*recorder, error) {
	r := &recorder{report: report, name: name, filters: filters, reduce: reduce, done: make(chan struct{}), changed: make(chan struct{}),
		initial: map[string]fact{}, present: map[string]fact{}}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	response, err := client.Get(server + target)
	for attempt := 0; err == nil && response.StatusCode == 429 && attempt < 30; attempt++ { // not ready yet
		response.Body.Close()
		pause(time.Second)
		response, err = client.Get(server + target)
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != 200 {
		return nil, fmt.Errorf("GET %s: %s: %.300s", target, response.Status, body)
	}
	var list unstructured.UnstructuredList
	if err := list.UnmarshalJSON(body); err != nil {
		return nil, fmt.Errorf("GET %s: %w", target, err)
	}
	for i := range list.Items {
		f := r.factOf("ADDED", &list.Items[i])
		r.initial[f.key] = f
		r.present[f.key] = f
	}
	r.start = parseRevision(list.GetResourceVersion())
	r.revision = r.start
	if r.start == 0 {
		return nil, fmt.Errorf("GET %s: list resourceVersion is %q", target, list.GetResourceVersion())
	}
	watchContext, cancel := context.WithCancel(ctx)
	r.cancel = cancel
	open := func() (io.ReadCloser, error) {
		request, err := http.NewRequestWithContext(watchContext, "GET",
			fmt.Sprintf("%s%s?watch=true&allowWatchBookmarks=true&resourceVersion=%d&timeoutSeconds=7200", server, target, r.at()), nil)
		if err != nil {
			return nil, err
		}
		stream, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		if stream.StatusCode != 200 {
			stream.Body.Close()
			return nil, fmt.Errorf("watch %s: %s", target, stream.Status)
		}
		return stream.Body, nil
	}
	stream, err := open()
	if err != nil {
		cancel()
		return nil, err
	}
	go r.run(watchContext, stream, open)
	return r, nil
}

func (r *recorder) factOf(kind string, from *unstructured.Unstructured) fact {
	f := factOf(kind, from)
	if r.reduce != nil {
		f = r.reduce(f, from)
	}
	for i, filter := range r.filters {
		if filter(from) {
			f.matches |= 1 << i
		}
	}
	return f
}

// run reads until the end. A server may end a watch cleanly when its reader is too slow (this machine may starve us): we go on from the
// last revision then, and count it.
func (r *recorder) run(ctx context.Context, body io.ReadCloser, open func() (io.ReadCloser, error)) {
	defer close(r.done)
	for {
		err := r.read(body)
		body.Close()
		if ctx.Err() != nil {
			return
		}
		if err == io.EOF {
			r.resumed++
			body, err = open()
		}
		if err != nil {
			r.fail(fmt.Errorf("the recorder's watch ended: %w", err))
			return
		}
	}
}

func (r *recorder) read(body io.Reader) error {
	decoder := json.NewDecoder(bufio.NewReaderSize(body, 256<<10))
	for {
		var line struct {
			Type   string
			Object json.RawMessage
		}
		if err := decoder.Decode(&line); err != nil {
			return err
		}
		if line.Type == "ERROR" {
			return fmt.Errorf("ERROR event: %.300s", line.Object)
		}
		var from unstructured.Unstructured
		if err := from.UnmarshalJSON(line.Object); err != nil {
			return fmt.Errorf("event object %.200s: %w", line.Object, err)
		}
		r.add(r.factOf(line.Type, &from))
	}
}

func (r *recorder) fail(err error) {
	r.report.violation("recorder", "%s: %v", r.name, err)
	r.mu.Lock()
	r.failure = err
	close(r.changed)
	r.changed = make(chan struct{})
	r.mu.Unlock()
}

func (r *recorder) add(f fact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.kind == "BOOKMARK" {
		r.report.check(f.revision >= r.revision, "bookmarkable", "%s: bookmark %d after revision %d", r.name, f.revision, r.revision)
	} else {
		before, known := r.present[f.key]
		r.report.check(f.revision > r.revision, "ordered", "%s: %v after revision %d", r.name, f, r.revision)
		switch f.kind {
		case "ADDED":
			r.report.check(!known, "R-552", "%s: %v but the object was there: %v", r.name, f, before)
			r.present[f.key] = f
		case "MODIFIED":
			r.report.check(known && before.uid == f.uid, "R-552", "%s: %v but before was %v", r.name, f, before)
			r.present[f.key] = f
		case "DELETED":
			r.report.check(known && before.uid == f.uid && before.hash == f.hash, "H-408", "%s: %v does not carry the last state %v", r.name, f, before)
			delete(r.present, f.key)
		default:
			r.report.violation("H-406", "%s: event type %q", r.name, f.kind)
		}
		r.sequence = append(r.sequence, f)
	}
	if f.revision > r.revision {
		r.revision = f.revision
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

var errRecorder = errors.New("the recorder failed")

// waitFor blocks until the watch has reached revision.
func (r *recorder) waitFor(revision uint64, timeout time.Duration) error {
	deadline := time.After(timeout)
	for {
		r.mu.Lock()
		at, failure, changed := r.revision, r.failure, r.changed
		r.mu.Unlock()
		switch {
		case failure != nil:
			return errRecorder
		case at >= revision:
			return nil
		}
		select {
		case <-changed:
		case <-deadline:
			return fmt.Errorf("%s: the raw watch stands at revision %d, %d was acknowledged %v ago", r.name, at, revision, timeout)
		}
	}
}

// at is the revision the watch has reached.
func (r *recorder) at() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.revision
}

// waitForGone blocks until the last event of an object of this name is its deletion.
func (r *recorder) waitForGone(name string, timeout time.Duration) error {
	deadline := time.After(timeout)
	for {
		r.mu.Lock()
		changed := r.changed
		gone := len(r.sequence) > 0 && r.sequence[len(r.sequence)-1].kind == "DELETED" && strings.HasSuffix(r.sequence[len(r.sequence)-1].key, "/"+name)
		r.mu.Unlock()
		if gone {
			return nil
		}
		select {
		case <-changed:
		case <-deadline:
			return fmt.Errorf("%s: the deletion of %s did not come", r.name, name)
		}
	}
}

func (r *recorder) stop() {
	r.cancel()
	<-r.done
}

// stateAt replays to a revision; call after stop, or under no concurrent change that matters.
func (r *recorder) stateAt(revision uint64) map[string]fact {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := make(map[string]fact, len(r.initial))
	for key, f := range r.initial {
		state[key] = f
	}
	for _, f := range r.sequence {
		if f.revision > revision {
			break
		}
		if f.kind == "DELETED" {
			delete(state, f.key)
		} else {
			state[f.key] = f
		}
	}
	return state
}

// expected is what a watch with filter number i (-1: none) that starts at revision must deliver.
func (r *recorder) expected(filter int, revision uint64) []fact {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := make(map[string]fact, len(r.initial))
	for key, f := range r.initial {
		state[key] = f
	}
	matches := func(f fact) bool { return filter < 0 || f.matches&(1<<filter) != 0 }
	var events []fact
	for _, f := range r.sequence {
		before, known := state[f.key]
		old := known && matches(before)
		current := f.kind != "DELETED" && matches(f)
		if f.kind == "DELETED" {
			delete(state, f.key)
		} else {
			state[f.key] = f
		}
		if f.revision <= revision {
			continue
		}
		switch {
		case current && !old:
			f.kind = "ADDED"
			events = append(events, f)
		case current && old:
			f.kind = "MODIFIED"
			events = append(events, f)
		case old:
			events = append(events, fact{kind: "DELETED", key: before.key, uid: before.uid, revision: f.revision, hash: before.hash})
		}
	}
	return events
}

// expectedState is the filtered state at a revision.
func (r *recorder) expectedState(filter int, revision uint64) map[string]fact {
	state := r.stateAt(revision)
	if filter >= 0 {
		for key, f := range state {
			if f.matches&(1<<filter) == 0 {
				delete(state, key)
			}
		}
	}
	return state
}

func describeFacts(facts []fact, around int) string {
	from, to := max(0, around-2), min(len(facts), around+3)
	text := ""
	for i := from; i < to; i++ {
		text += fmt.Sprintf("\n    [%d] %v", i, facts[i])
	}
	return text
}

// compareSequences reports the first difference in words: missing, twice, out of order, other content.
func compareSequences(report *report, who string, want, got []fact) bool {
	for i := 0; i < len(want) || i < len(got); i++ {
		if i < len(want) && i < len(got) && want[i].same(got[i]) {
			continue
		}
		what := "differs"
		switch {
		case i >= len(got):
			what = fmt.Sprintf("the last %d events are missing", len(want)-len(got))
		case i >= len(want):
			what = fmt.Sprintf("%d events too many", len(got)-len(want))
		case i+1 < len(want) && want[i+1].same(got[i]):
			what = "an event is missing"
		case i > 0 && got[i].revision <= got[i-1].revision:
			what = "an event came twice or out of order"
		case want[i].revision == got[i].revision:
			what = "same revision, other content"
		}
		report.violation("sequence", "%s: event %d of %d: %s; wanted:%s\n  got:%s", who, i, len(want), what, describeFacts(want, i), describeFacts(got, i))
		return false
	}
	report.check(true, "sequence", "")
	return true
}

// compareStates checks that two states have the same objects with the same uid, revision and content.
func compareStates(report *report, rule, who string, want, got map[string]fact) bool {
	good := true
	for key, f := range want {
		g, ok := got[key]
		if !ok {
			good = report.check(false, rule, "%s: object is missing: %v", who, f) && good
		} else if f.uid != g.uid || f.revision != g.revision || f.hash != g.hash {
			good = report.check(false, rule, "%s: wanted %v, got %v", who, f, g) && good
		}
	}
	for key, g := range got {
		if _, ok := want[key]; !ok {
			good = report.check(false, rule, "%s: object should not be there: %v", who, g) && good
		}
	}
	report.check(true, rule, "")
	return good
}
