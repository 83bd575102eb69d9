package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// etcdHistory is everything that ever happened in an etcd, as its own client sees it, without any proxy between: a watch of all keys from the
// first revision on. Every revision changes some key, so a gap would show; this is what others are compared with.
type etcdHistory struct {
	client *clientv3.Client
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	changed *sync.Cond
	events  []historyEvent // by revision, and within it as etcd sends them
	last    int64          // revision of the newest
	failure error
	living  map[string]int64 // keys that exist, with their last revision
}

type historyEvent struct {
	revision int64
	deleted  bool
	key      string
	value    string
	create   int64
	version  int64
	lease    int64
	previous int64 // revision of what it replaced; 0: nothing
}

func watchHistory(client *clientv3.Client) *etcdHistory {
	ctx, cancel := context.WithCancel(context.Background())
	h := &etcdHistory{client: client, cancel: cancel, ended: make(chan struct{}), last: 1, living: map[string]int64{}}
	h.changed = sync.NewCond(&h.mu)
	go h.run(ctx)
	return h
}

func (h *etcdHistory) stop() {
	h.cancel()
	<-h.ended
}

func (h *etcdHistory) run(ctx context.Context) {
	defer close(h.ended)
	for ctx.Err() == nil {
		h.mu.Lock()
		from := h.last + 1
		h.mu.Unlock()
		for response := range h.client.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(from), clientv3.WithFragment()) {
			if response.CompactRevision != 0 {
				h.fail(fmt.Errorf("history was compacted at %d before it was read from %d on", response.CompactRevision, from))
				return
			}
			h.take(response.Events)
		}
	}
}

func (h *etcdHistory) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failure == nil {
		h.failure = err
	}
	h.changed.Broadcast()
}

func (h *etcdHistory) take(events []*clientv3.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, event := range events {
		revision := event.Kv.ModRevision
		if revision != h.last && revision != h.last+1 && h.failure == nil {
			h.failure = fmt.Errorf("etcd's own client got revision %d after %d", revision, h.last)
		}
		h.last = revision
		key := string(event.Kv.Key)
		entry := historyEvent{revision: revision, deleted: event.Type == mvccpb.Event_DELETE, key: key, value: string(event.Kv.Value),
			create: event.Kv.CreateRevision, version: event.Kv.Version, lease: event.Kv.Lease, previous: h.living[key]}
		if entry.deleted {
			delete(h.living, key)
		} else {
			h.living[key] = revision
		}
		h.events = append(h.events, entry)
	}
	h.changed.Broadcast()
}

// await waits until the history reaches that revision.
func (h *etcdHistory) await(revision int64, timeout time.Duration) error {
	expired := false
	timer := time.AfterFunc(timeout, func() {
		h.mu.Lock()
		expired = true
		h.changed.Broadcast()
		h.mu.Unlock()
	})
	defer timer.Stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.last < revision && h.failure == nil {
		if expired {
			return fmt.Errorf("etcd's own client stands at revision %d, %d was written, after %v", h.last, revision, timeout)
		}
		h.changed.Wait()
	}
	return h.failure
}

// since returns what happened from that index on; the result must not be changed.
func (h *etcdHistory) since(index int) []historyEvent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events[index:len(h.events):len(h.events)]
}

// lastPlainPut is the newest revision in which nothing was deleted. Before 3.4.35 and 3.5.17, etcd forgets a deletion at the very revision that is compacted:
// a watch from there on never sees it.
func (h *etcdHistory) lastPlainPut() int64 {
	events := h.since(0)
	deletions := map[int64]bool{}
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].deleted {
			deletions[events[i].revision] = true
		} else if !deletions[events[i].revision] && (i == 0 || events[i-1].revision != events[i].revision) {
			return events[i].revision
		}
	}
	return 1
}

// at describes what happened at one revision.
func (h *etcdHistory) at(revision int64) string {
	text := "nothing"
	for _, event := range h.since(0) {
		if event.revision == revision {
			text += fmt.Sprintf(", %s=%.40q deleted %v", event.key, event.value, event.deleted)
		}
	}
	return strings.TrimPrefix(text, "nothing, ")
}

func (h *etcdHistory) revision() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// keyRange is a range of keys as etcd's requests have it.
type keyRange struct{ key, end string }

func (r keyRange) contains(key string) bool {
	switch r.end {
	case "":
		return key == r.key
	case "\x00":
		return key >= r.key
	}
	return key >= r.key && key < r.end
}
