package main

import (
	"context"
	"fmt"

	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// diffStream is one raw Watch stream and everything that came on it.
type diffStream struct {
	stream pb.Watch_WatchClient
	cancel context.CancelFunc

	mu        sync.Mutex
	responses []*pb.WatchResponse
	ended     error
}

func (s *side) openStream() (*diffStream, error) {
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := s.watch.Watch(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	w := &diffStream{stream: stream, cancel: cancel}
	go func() {
		for {
			response, err := stream.Recv()
			w.mu.Lock()
			if err != nil {
				w.ended = err
				w.mu.Unlock()
				return
			}
			maskHeader(response.Header)
			w.responses = append(w.responses, response)
			w.mu.Unlock()
		}
	}()
	s.streams = append(s.streams, w)
	return w, nil
}

func (w *diffStream) take() []*pb.WatchResponse {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.responses
	w.responses = nil
	return taken
}

func (w *diffStream) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.responses)
}

// openBoth opens a stream on each side.
func (d *diff) openBoth() (a, b *diffStream) {
	var err error
	if a, err = d.real.openStream(); err == nil {
		b, err = d.ours.openStream()
	}
	if err != nil {
		d.report.violation("E-310", "a stream cannot be opened: %v", err)
		return nil, nil
	}
	return a, b
}

// settle waits until neither side says anything more.
func settle(quiet time.Duration, streams ...*diffStream) {
	counts := make([]int, len(streams))
	since := time.Now()
	pollUntil(20*time.Second, func() bool {
		for i, w := range streams {
			if n := w.count(); n != counts[i] {
				counts[i], since = n, time.Now()
			}
		}
		return time.Since(since) >= quiet
	})
}

// exchange sends one request on both streams and compares what came back, answer by answer.
func (d *diff) exchange(rule string, a, b *diffStream, request *pb.WatchRequest) {
	if request != nil {
		_ = a.stream.Send(request)
		_ = b.stream.Send(request)
	}
	settle(350*time.Millisecond, a, b)
	// One that is slow today (the other's sync loop has a period of its own) is waited for, not blamed.
	for deadline := time.Now().Add(10 * time.Second); a.count() != b.count() && time.Now().Before(deadline); {
		settle(350*time.Millisecond, a, b)
	}
	wanted, got := a.take(), b.take()
	what := "events"
	if request != nil {
		what = show(request, nil)
	}
	same := len(wanted) == len(got)
	for i := 0; same && i < len(wanted); i++ {
		same = proto.Equal(wanted[i], got[i])
	}
	text := func(list []*pb.WatchResponse) (out string) {
		for _, response := range list {
			out += "\n    " + cut(show(response, nil))
		}
		return out
	}
	d.report.check(same, rule, "%s\n  etcd: %s\n  vedette: %s", what, text(wanted), text(got))
}

func creating(request *pb.WatchCreateRequest) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: request}}
}
func canceling(id int64) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}}
}
func asking() *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
}

// scriptedWatches is 11.2 and parts of 11.4.
func (d *diff) scriptedWatches() {
	a, b := d.openBoth()
	if a == nil {
		return
	}
	start := d.revision
	d.exchange("E-311", a, b, asking())
	d.exchange("E-311", a, b, creating(&pb.WatchCreateRequest{Key: []byte("k"), StartRevision: -1}))
	d.exchange("E-311", a, b, creating(&pb.WatchCreateRequest{Key: []byte("k"), RangeEnd: []byte("a")}))
	d.exchange("E-311", a, b, creating(&pb.WatchCreateRequest{Key: []byte("k"), RangeEnd: []byte("k")}))
	d.exchange("E-315", a, b, creating(&pb.WatchCreateRequest{Key: []byte("k"), PrevKv: true}))
	d.exchange("E-314", a, b, creating(&pb.WatchCreateRequest{Key: []byte("k"), WatchId: 9}))
	d.exchange("E-314", a, b, creating(&pb.WatchCreateRequest{Key: []byte("k"), WatchId: 9}))
	d.exchange("E-314", a, b, creating(&pb.WatchCreateRequest{Key: []byte("other"), WatchId: 1}))
	d.exchange("E-314", a, b, creating(&pb.WatchCreateRequest{Key: []byte("other")}))
	d.exchange("E-317", a, b, asking())
	d.exchange("E-318", a, b, &pb.WatchRequest{})
	d.exchange("E-316", a, b, canceling(9))
	d.exchange("E-316", a, b, canceling(9))
	d.put("E-329", &pb.PutRequest{Key: []byte("k"), Value: []byte("1")})
	d.exchange("E-329", a, b, nil)
	d.remove("E-342", &pb.DeleteRangeRequest{Key: []byte("k")})
	d.exchange("E-343", a, b, nil)
	d.put("E-442", &pb.PutRequest{Key: []byte("k")})
	d.exchange("E-442", a, b, nil)
	d.txn("E-459", then(opPut("k", "2"), opPut("other", "3"), opDelete("b", "")))
	d.settleStreams("E-329", a, b)
	d.exchange("E-317", a, b, asking())

	c, e := d.openBoth()
	d.exchange("E-336", c, e, creating(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte{0}, StartRevision: start + 1}))
	d.exchange("E-336", c, e, creating(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte{0}, StartRevision: start + 1, PrevKv: true}))
	d.exchange("E-339", c, e, creating(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte{0}, StartRevision: start + 1, Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT}}))
	d.exchange("E-339", c, e, creating(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte{0}, StartRevision: start + 1, Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NODELETE}}))
	d.exchange("E-339", c, e, creating(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte{0}, StartRevision: start + 1,
		Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NODELETE, pb.WatchCreateRequest_NOPUT}}))
	d.exchange("E-334", c, e, creating(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte{0}, StartRevision: 2}))
	d.exchange("E-316", c, e, canceling(5))
	d.exchange("E-335", c, e, creating(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte{0}, StartRevision: d.compact}))
	d.exchange("E-312", c, e, creating(&pb.WatchCreateRequest{}))
	d.exchange("E-312", c, e, creating(&pb.WatchCreateRequest{RangeEnd: []byte{0}, StartRevision: start + 1}))
	d.exchange("E-317", c, e, asking())
	d.exchange("E-340", c, e, creating(&pb.WatchCreateRequest{Key: []byte("fut"), StartRevision: d.revision + 3}))
	d.exchange("E-317", c, e, asking())
	d.exchange("E-316", c, e, canceling(12345))
	for i := 0; i < 4; i++ {
		d.put("E-340", &pb.PutRequest{Key: []byte("fut"), Value: []byte(fmt.Sprint(i))})
		d.settleStreams("E-340", c, e)
	}
	d.exchange("E-317", c, e, asking())
	c.cancel()
	e.cancel()

	f, g := d.openBoth()
	d.exchange("E-319", f, g, creating(&pb.WatchCreateRequest{Key: []byte("h")}))
	_ = f.stream.CloseSend()
	_ = g.stream.CloseSend()
	d.put("E-319", &pb.PutRequest{Key: []byte("h"), Value: []byte("1")})
	d.exchange("E-319", f, g, nil)
	f.cancel()
	g.cancel()
	d.fragments()
	d.longBacklog()
	a.cancel()
	b.cancel()
	d.compactedPrevious()
}

// compactedPrevious: watches that start at the compacted revision, with previous records (E-343).
func (d *diff) compactedPrevious() {
	d.put("E-343", &pb.PutRequest{Key: []byte("prev/a"), Value: []byte("1")})
	d.put("E-343", &pb.PutRequest{Key: []byte("prev/b"), Value: []byte("1")})
	d.put("E-343", &pb.PutRequest{Key: []byte("prev/a"), Value: []byte("2")})
	d.txn("E-343", then(opPut("prev/a", "3"), opDelete("prev/b", ""), opPut("prev/c", "1")))
	d.put("E-343", &pb.PutRequest{Key: []byte("prev/a"), Value: []byte("4")})
	d.remove("E-343", &pb.DeleteRangeRequest{Key: []byte("prev/c")})
	last := d.revision
	for compact := last - 4; compact <= last; compact++ {
		d.compactTo("E-343", compact, true)
		a, b := d.openBoth()
		if a == nil {
			return
		}
		for start := compact - 1; start <= last; start++ {
			d.exchange("E-343", a, b, creating(&pb.WatchCreateRequest{Key: []byte("prev/"), RangeEnd: []byte("prev0"), StartRevision: start, PrevKv: true}))
			d.settleStreams("E-343", a, b)
		}
		d.exchange("E-343", a, b, creating(&pb.WatchCreateRequest{Key: []byte("prev/"), RangeEnd: []byte("prev0"), StartRevision: compact}))
		d.settleStreams("E-343", a, b)
		a.cancel()
		b.cancel()
	}
}

// settleStreams compares what several watchers of a stream got; they have no mutual order (E-356).
func (d *diff) settleStreams(rule string, a, b *diffStream) {
	settle(350*time.Millisecond, a, b)
	d.compareFlattened(rule, a.take(), b.take())
}

type flattened struct {
	events   []*mvccpb.Event
	created  int
	canceled []string
	compact  int64
}

func flatten(list []*pb.WatchResponse) map[int64]*flattened {
	all := map[int64]*flattened{}
	for _, response := range list {
		f := all[response.WatchId]
		if f == nil {
			f = &flattened{}
			all[response.WatchId] = f
		}
		f.events = append(f.events, response.Events...)
		if response.Created {
			f.created++
		}
		if response.Canceled {
			f.canceled = append(f.canceled, response.CancelReason)
			f.compact = response.CompactRevision
		}
	}
	delete(all, -1)
	return all
}

// compareFlattened looks at the events of each watcher, however they were put into answers.
func (d *diff) compareFlattened(rule string, wanted, got []*pb.WatchResponse) {
	a, b := flatten(wanted), flatten(got)
	d.report.check(len(a) == len(b), rule, "etcd answered %d watchers, vedette %d", len(a), len(b))
	for id, left := range a {
		right := b[id]
		if right == nil {
			d.report.violation(rule, "watcher %d: etcd sent %d events, vedette nothing", id, len(left.events))
			continue
		}
		same := len(left.events) == len(right.events) && left.created == right.created && fmt.Sprint(left.canceled) == fmt.Sprint(right.canceled) && left.compact == right.compact
		at := -1
		for i := 0; same && i < len(left.events); i++ {
			if !proto.Equal(left.events[i], right.events[i]) {
				same, at = false, i
			}
		}
		difference := ""
		if at >= 0 {
			difference = fmt.Sprintf("\n  etcd:    %s\n  vedette: %s", show(left.events[at], nil), show(right.events[at], nil))
		}
		d.report.check(same, rule, "watcher %d: etcd %d events, created %d, canceled %q at %d; vedette %d, %d, %q at %d; first difference at %d%s", id, len(left.events), left.created,
			left.canceled, left.compact, len(right.events), right.created, right.canceled, right.compact, at, difference)
	}
}

func (d *diff) fragments() {
	value := make([]byte, 1000000)
	first := d.revision + 1
	for i := 0; i < 5; i++ {
		d.put("E-345", &pb.PutRequest{Key: []byte(fmt.Sprint("frag/", i)), Value: value})
	}
	a, b := d.openBoth()
	request := creating(&pb.WatchCreateRequest{Key: []byte("frag/"), RangeEnd: []byte("frag0"), StartRevision: first, Fragment: true})
	_ = a.stream.Send(request)
	_ = b.stream.Send(request)
	settle(500*time.Millisecond, a, b)
	shape := func(list []*pb.WatchResponse) (out string) {
		for _, response := range list {
			out += fmt.Sprintf("[id %d created %v fragment %v events %d size %d header %d]", response.WatchId, response.Created, response.Fragment, len(response.Events),
				proto.Size(response)/1000, response.Header.Revision)
		}
		return out
	}
	wanted, got := shape(a.take()), shape(b.take())
	d.report.check(wanted == got, "E-345", "fragments\n  etcd:    %s\n  vedette: %s", wanted, got)
	a.cancel()
	b.cancel()
	d.remove("E-345", &pb.DeleteRangeRequest{Key: []byte("frag/"), RangeEnd: []byte("frag0")})
}

// longBacklog: 2500 revisions of one key, watched from the first (11.4, 12).
func (d *diff) longBacklog() {
	first := d.revision + 1
	for i := 0; i < 20; i++ {
		ops := 0
		for ops < 125 {
			d.silentPut("backlog", fmt.Sprint(i, ops))
			ops++
		}
	}
	a, b := d.openBoth()
	request := creating(&pb.WatchCreateRequest{Key: []byte("backlog"), StartRevision: first})
	_ = a.stream.Send(request)
	_ = b.stream.Send(request)
	_ = a.stream.Send(asking())
	_ = b.stream.Send(asking())
	settle(600*time.Millisecond, a, b)
	shape := func(list []*pb.WatchResponse) (out string) {
		for _, response := range list {
			if response.WatchId != -1 {
				out += fmt.Sprintf("[created %v events %d header %d]", response.Created, len(response.Events), response.Header.Revision)
			}
		}
		return out
	}
	wanted, got := shape(a.take()), shape(b.take())
	d.report.check(wanted == got, "E-336", "2500 revisions\n  etcd:    %s\n  vedette: %s", wanted, got)
	d.exchange("E-317", a, b, asking())
	a.cancel()
	b.cancel()
}

func (d *diff) silentPut(key, value string) {
	for _, s := range []*side{d.real, d.ours} {
		ctx, cancel := s.context()
		answer, err := s.kv.Put(ctx, &pb.PutRequest{Key: []byte(key), Value: []byte(value)})
		cancel()
		if err != nil {
			d.report.violation("E-403", "put: %v", err)
			return
		}
		d.revision = answer.Header.Revision
	}
}
