package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// etcdWitness is tests/integration/etcd_witness.c under our command: watches and writers over vedette's etcd client. Whatever its watches see is
// held against the history.
type etcdWitness struct {
	report  *report
	command *exec.Cmd
	stdin   io.WriteCloser
	ended   chan struct{}
	exit    error

	mu      sync.Mutex
	changed *sync.Cond
	watches map[int]*witnessWatch
	writes  []witnessWrite
	stopped int // answers to "stop"
	lines   int
}

type witnessEvent struct {
	Rev     int64  `json:"rev"`
	Op      string `json:"op"`
	Key     string `json:"key"`
	Create  int64  `json:"create"`
	Version int64  `json:"version"`
	Lease   int64  `json:"lease"`
	Value   string `json:"value"`
	Prev    int64  `json:"prev"`
}

type witnessLine struct {
	Watch     *int           `json:"watch"`
	Open      string         `json:"open"`
	Created   bool           `json:"created"`
	Header    int64          `json:"header"`
	Progress  int64          `json:"progress"`
	Events    []witnessEvent `json:"events"`
	End       string         `json:"end"`
	Compacted int64          `json:"compacted"`
	Message   string         `json:"message"`
	Closed    bool           `json:"closed"`
	Stopped   bool           `json:"stopped"`
	Writer    *int           `json:"writer"`
	witnessWrite
}

type witnessWrite struct {
	Op      string `json:"op"`
	Key     string `json:"key"`
	Value   string `json:"value"`
	Rev     int64  `json:"rev"`
	Nothing bool   `json:"nothing"` // a guard did not hold, or there was nothing to delete
	Error   string `json:"error"`
	Maybe   bool   `json:"maybe"`
	Message string `json:"-"`
}

// witnessWatch is one watch of the witness, as far as its lines have come.
type witnessWatch struct {
	id       int
	keys     keyRange
	flags    string
	position int   // in the history: everything before was compared
	next     int64 // no event below this may come any more
	first    int64 // revision that was asked for
	events   []witnessEvent
	count    int
	progress int
	end      string // why it ended; "" lives
	endedAt  int64  // compacted revision that came with it
	message  string
	closed   bool
}

func startWitness(report *report, program string, environment []string) (*etcdWitness, error) {
	p := &etcdWitness{report: report, command: exec.Command(program), ended: make(chan struct{}), watches: map[int]*witnessWatch{}}
	p.changed = sync.NewCond(&p.mu)
	p.command.Env = append(os.Environ(), environment...)
	p.command.Stderr = os.Stderr
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		reader := bufio.NewReaderSize(stdout, 1<<20)
		for {
			text, err := reader.ReadBytes('\n')
			if err != nil {
				break
			}
			p.take(text)
		}
		p.exit = p.command.Wait()
		close(p.ended)
		p.mu.Lock()
		p.changed.Broadcast()
		p.mu.Unlock()
	}()
	return p, nil
}

func (p *etcdWitness) tell(format string, args ...any) {
	if _, err := fmt.Fprintf(p.stdin, format+"\n", args...); err != nil {
		p.report.violation("witness", "it does not take commands any more: %v", err)
	}
}

// shellKey writes a key for the witness's commands.
func shellKey(key string) string { return strings.ReplaceAll(key, "\x00", "\\0") }

func (p *etcdWitness) open(id int, revision int64, flags string, keys keyRange) {
	p.mu.Lock()
	p.watches[id] = &witnessWatch{id: id, keys: keys, flags: flags, first: revision, next: revision}
	p.mu.Unlock()
	p.tell("open %d %d %s %s %s", id, revision, flags, shellKey(keys.key), shellKey(keys.end))
}

func (p *etcdWitness) watch(id int) *witnessWatch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watches[id]
}

func (p *etcdWitness) take(text []byte) {
	var line witnessLine
	if err := json.Unmarshal(text, &line); err != nil {
		p.report.violation("witness", "a line that is no JSON: %v: %.200s", err, text)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.changed.Broadcast()
	p.lines++
	switch {
	case line.Watch != nil && p.watches[*line.Watch] != nil:
		p.takeWatch(p.watches[*line.Watch], &line)
	case line.Writer != nil:
		line.witnessWrite.Message = line.Message
		p.writes = append(p.writes, line.witnessWrite)
	case line.Stopped:
		p.stopped++
	}
}

// takeWatch checks what can be known without the history: order, whole revisions, nothing after its end.
func (p *etcdWitness) takeWatch(w *witnessWatch, line *witnessLine) {
	p.report.check(w.end == "" || line.Closed, "E-238", "watch %d: something came after its end (%s)", w.id, w.end)
	switch {
	case line.Closed:
		w.closed = true
	case line.End != "":
		w.end, w.endedAt, w.message = line.End, line.Compacted, line.Message
	case line.Open != "":
		p.report.check(line.Open == "ok", "E-230", "watch %d could not be opened: %s", w.id, line.Open)
	case len(line.Events) > 0:
		p.report.check(line.Events[0].Rev >= w.next, "E-285", "watch %d: revision %d came after everything below %d was delivered", w.id,
			line.Events[0].Rev, w.next)
		for i, event := range line.Events {
			if i > 0 {
				p.report.check(event.Rev >= line.Events[i-1].Rev, "E-268", "watch %d: revision %d after %d", w.id, event.Rev, line.Events[i-1].Rev)
			}
		}
		w.events = append(w.events, line.Events...)
		w.count += len(line.Events)
		w.next = line.Events[len(line.Events)-1].Rev + 1
	case line.Progress != 0:
		w.progress++
		p.report.check(line.Progress+1 >= w.next, "E-235", "watch %d: progress at %d after revision %d", w.id, line.Progress, w.next-1)
		w.next = max(w.next, line.Progress+1)
	}
}

// await waits until the condition holds; mu is held while it is asked. False: it did not within the time, or the witness ended.
func (p *etcdWitness) await(timeout time.Duration, condition func() bool) bool {
	expired := false
	timer := time.AfterFunc(timeout, func() {
		p.mu.Lock()
		expired = true
		p.changed.Broadcast()
		p.mu.Unlock()
	})
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !condition() {
		select {
		case <-p.ended:
			return false
		default:
		}
		if expired {
			return false
		}
		p.changed.Wait()
	}
	return true
}

// quit ends the witness, which must end well.
func (p *etcdWitness) quit(timeout time.Duration) {
	p.tell("quit")
	select {
	case <-p.ended:
		p.report.check(p.exit == nil, "E-273", "the witness ended with %v", p.exit)
	case <-time.After(timeout):
		p.report.violation("E-273", "the witness did not end within %v of quit", timeout)
		_ = p.command.Process.Signal(syscall.SIGABRT)
		<-p.ended
	}
}

// compare holds what the watches saw against the history, which must reach further than they do. compacted is the highest revision that was
// compacted so far: records before it may be missing as previous ones.
func (p *etcdWitness) compare(history *etcdHistory, compacted int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.watches {
		p.compareWatch(w, history, compacted)
	}
}

func (p *etcdWitness) compareWatch(w *witnessWatch, history *etcdHistory, compacted int64) {
	// The watch may be ahead of the history by now, or behind it: what lies beyond waits for the next comparison.
	wanted := history.since(w.position)
	limit := w.next
	if len(wanted) > 0 {
		limit = min(limit, wanted[len(wanted)-1].revision+1)
	} else {
		limit = min(limit, history.revision()+1)
	}
	for i, event := range wanted {
		if event.revision >= limit {
			wanted = wanted[:i]
			break
		}
	}
	w.position += len(wanted)
	seen := w.events
	for i, event := range seen {
		if event.Rev >= limit {
			seen = seen[:i]
			break
		}
	}
	rest := w.events[len(seen):]
	defer func() { w.events = rest }()
	for _, event := range wanted {
		if event.revision < w.first || !w.keys.contains(event.key) || (event.deleted && strings.Contains(w.flags, "d")) ||
			(!event.deleted && strings.Contains(w.flags, "u")) {
			continue
		}
		if len(seen) == 0 || seen[0].Rev > event.revision || (seen[0].Rev == event.revision && seen[0].Key != event.key) {
			p.report.violation("E-285", "watch %d (%s from %d) never saw revision %d of %q", w.id, w.flags, w.first, event.revision, event.key)
			return
		}
		got := seen[0]
		seen = seen[1:]
		if !p.report.check(got.Rev == event.revision && got.Key == event.key, "E-285", "watch %d saw revision %d of %q, wanted %d of %q", w.id, got.Rev,
			got.Key, event.revision, event.key) {
			return
		}
		same := (got.Op == "delete") == event.deleted && got.Value == event.value && got.Create == event.create && got.Version == event.version &&
			got.Lease == event.lease
		p.report.check(same, "E-342", "watch %d: revision %d of %q is %+v, wanted %+v", w.id, event.revision, event.key, got, event)
		if strings.Contains(w.flags, "v") {
			p.report.check(got.Prev == event.previous || (got.Prev == 0 && event.revision <= compacted), "E-343",
				"watch %d: revision %d of %q replaced %d, the watch says %d", w.id, event.revision, event.key, event.previous, got.Prev)
		} else {
			p.report.check(got.Prev == 0, "E-343", "watch %d: revision %d carries a previous record nobody asked for", w.id, event.revision)
		}
	}
	for _, event := range seen {
		p.report.violation("E-285", "watch %d (%s from %d) saw revision %d of %q, which never was, or twice", w.id, w.flags, w.first, event.Rev, event.Key)
	}
}

// compareWrites holds the answers of the witness's writers against the history: what was answered happened, once, at that revision; what failed
// for certain did not happen.
func (p *etcdWitness) compareWrites(history *etcdHistory) (acknowledged, uncertain, refused int) {
	revisions := map[string]int64{}
	for _, event := range history.since(0) {
		if !strings.HasPrefix(event.value, "w") {
			continue
		}
		if before, found := revisions[event.value]; found && before != event.revision {
			p.report.violation("E-207", "%q was written twice, at %d and at %d", event.value, before, event.revision)
		}
		revisions[event.value] = event.revision
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, write := range p.writes {
		revision, happened := revisions[write.Value]
		switch {
		case write.Op == "delete":
		case write.Error != "" && (write.Maybe || write.Error == "no_space"):
			uncertain++ // the very write that finds the quota full is carried out all the same (etcd server/etcdserver/apply/quota.go)
		case write.Error != "":
			refused++
			p.report.check(!happened, "E-207", "%s of %s failed with %s (%s), but it happened at %d", write.Op, write.Value, write.Error, write.Message,
				revision)
		case write.Nothing:
			p.report.check(!happened, "E-453", "%s of %s did nothing, but it happened at %d", write.Op, write.Value, revision)
		default:
			acknowledged++
			p.report.check(happened && revision == write.Rev, "E-207", "%s of %s = %s was answered with revision %d, it happened at %d; there: %s", write.Op,
				write.Key, write.Value, write.Rev, revision, history.at(write.Rev))
		}
	}
	return
}
