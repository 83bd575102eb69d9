package main

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// compaction by itself (E-463): what is told to go goes, what is to stay stays, and nothing comes back with a kill -9.
func (o *etcdOwn) compaction() {
	o.compactionByRevisions()
	o.compactionByTime()
}

// compacted is the revision that history begins with; 0: with the first. Something was put before.
func (s *ownServer) compacted() (int64, error) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	response, ok := <-s.client.Watch(ctx, "c", clientv3.WithRev(1))
	if !ok {
		return 0, s.ctx.Err()
	}
	if response.CompactRevision != 0 {
		return response.CompactRevision, nil
	}
	return 0, response.Err()
}

// reads checks that history can be read from first on, and not before.
func (s *ownServer) reads(what string, first int64) {
	_, err := s.client.Get(s.ctx, "c", clientv3.WithRev(first))
	s.report.check(err == nil, "E-463", "%s: a read of revision %d: %v", what, first, err)
	_, err = s.client.Get(s.ctx, "c", clientv3.WithRev(first-1))
	s.report.check(err == rpctypes.ErrCompacted, "E-463", "%s: a read of revision %d, which is compacted: %v", what, first-1, err)
}

func (o *etcdOwn) compactionByRevisions() {
	const keep, puts = 10, 100
	s := o.open(true, "--auto-compaction-mode", "revision", "--auto-compaction-retention", fmt.Sprint(keep), "--auto-compaction-interval", "100ms")
	if s == nil {
		return
	}
	defer s.close()
	var last int64
	for range puts {
		answer, err := s.client.Put(s.ctx, "c", "v")
		if err != nil {
			o.report.violation("E-463", "%v", err)
			return
		}
		last = answer.Header.Revision
	}
	var compacted int64
	var err error
	pollUntil(ownPatience, func() bool {
		compacted, err = s.compacted()
		return err != nil || compacted >= last-keep
	})
	if !o.report.check(err == nil && compacted == last-keep, "E-463", "by revisions: %d is compacted, and the newest %d before %d are to stay: %v", compacted, keep, last, err) {
		return
	}
	s.reads("by revisions", last-keep)
	if err := s.restart(); err != nil {
		o.report.violation("E-463", "%v", err)
		return
	}
	s.reads("after kill -9", last-keep)
}

// Nothing is known about when a server that shares a machine looks at its clock; but what it compacts has been old for the period at that time, and so later.
func (o *etcdOwn) compactionByTime() {
	const period, distinct = time.Second, 3
	s := o.open(true, "--auto-compaction-mode", "periodic", "--auto-compaction-retention", period.String())
	if s == nil {
		return
	}
	defer s.close()
	replaced := map[int64]time.Time{} // a revision, and when the next was not there yet
	previous, seen := int64(1), int64(0)
	for changes := 0; changes < distinct; {
		replaced[previous] = time.Now()
		answer, err := s.client.Put(s.ctx, "c", "v")
		if err != nil {
			o.report.violation("E-463", "%v", err)
			return
		}
		previous = answer.Header.Revision
		compacted, err := s.compacted()
		now := time.Now()
		if err != nil {
			o.report.violation("E-463", "by time: %v", err)
			return
		}
		if compacted == seen {
			pause(pollInterval) // between the puts, whose times are compared with those of compactions
			continue
		}
		// Revisions below it cannot be read any more, the newest of them was replaced by it: that was a period ago.
		at, known := replaced[compacted-1]
		o.report.check(compacted > seen && known && now.Sub(at) >= period, "E-463", "%d is compacted, and %d was replaced %v ago", compacted, compacted-1, now.Sub(at))
		seen = compacted
		changes++
	}
	if err := s.restart(); err != nil {
		o.report.violation("E-463", "%v", err)
		return
	}
	compacted, err := s.compacted()
	o.report.check(err == nil && compacted >= seen, "E-463", "after kill -9 %d is compacted, before it %d: %v", compacted, seen, err)
}
