package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// runEtcdCrash: vedette etcd is killed (-9) and started again on the same port and directory, again and again, under clientv3 writers and watchers. Nothing that was
// acknowledged is missing; a write that failed happened once or not at all; watchers see each revision once, in order, without a gap, and what they saw is
// what the store says it was; the revision never goes back.
func runEtcdCrash(args []string) int {
	flags, verbose, seed := newFlags("etcd-crash")
	program := flags.String("program", "", "the vedette to start")
	rounds := flags.Int("rounds", 8, "kills")
	writers := flags.Int("writers", 16, "clients that write")
	_ = flags.Parse(args)
	if *program == "" {
		fmt.Fprintln(os.Stderr, "usage: peers etcd-crash --program VEDETTE [--rounds N] [--writers N]")
		return 2
	}
	r := newReport("etcd-crash")
	directory, err := os.MkdirTemp("", "etcd-crash-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-crash:", err)
		return 1
	}
	defer os.RemoveAll(directory)
	c := &etcdCrash{report: r, program: *program, directory: directory, listen: "127.0.0.1:0", acknowledged: map[string]int64{}, tried: map[string]bool{}, random: rand.New(rand.NewSource(*seed))}
	if !c.start() {
		return r.finish()
	}
	c.listen = c.server.url
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for i := 0; i < *writers; i++ {
		group.Add(1)
		go func() { defer group.Done(); c.write(ctx, i) }()
	}
	watchers := make([]*etcdCrashWatcher, 4)
	for i := range watchers {
		watchers[i] = &etcdCrashWatcher{}
		group.Add(1)
		go func() { defer group.Done(); c.watch(ctx, watchers[i]) }()
	}
	for round := 0; round < *rounds; round++ {
		pause(time.Duration(300+c.random.Intn(700)) * time.Millisecond)
		c.server.kill()
		if *verbose {
			fmt.Fprintln(os.Stderr, "killed", round)
		}
		if !c.start() {
			break
		}
	}
	pause(time.Second)
	cancel()
	group.Wait()
	c.verify(watchers)
	if err := c.server.terminate(); err != nil {
		r.violation("E-469", "%v", err)
	}
	r.figure("acknowledged", len(c.acknowledged))
	r.figure("tried", len(c.tried))
	r.figure("kills", *rounds)
	return r.finish()
}

type etcdCrash struct {
	report             *report
	program, directory string
	listen             string
	server             *serverProcess
	random             *rand.Rand

	mu           sync.Mutex
	acknowledged map[string]int64 // value -> revision
	tried        map[string]bool
}

func (c *etcdCrash) start() bool {
	var err error
	for attempt := 0; attempt < 3; attempt++ {
		if c.server, err = startServer(c.program, "etcd", "--listen", c.listen, "--data-dir", c.directory); err == nil {
			if _, err = c.server.awaitReady(2 * time.Minute); err == nil {
				return true
			}
			c.server.kill()
		}
		pause(200 * time.Millisecond)
	}
	c.report.violation("E-469", "the server does not start: %v", err)
	return false
}

func (c *etcdCrash) client() *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{c.listen}, DialTimeout: time.Second, DialKeepAliveTime: time.Second * 5, DialKeepAliveTimeout: time.Second, Logger: zap.NewNop()})
	if err != nil {
		panic(err)
	}
	return client
}

// write puts values that are never used twice, some of them several in one transaction.
func (c *etcdCrash) write(ctx context.Context, id int) {
	client := c.client()
	defer client.Close()
	for n := 0; ctx.Err() == nil; n++ {
		value := fmt.Sprintf("%d-%d", id, n)
		c.mu.Lock()
		c.tried[value] = true
		c.mu.Unlock()
		call, cancel := context.WithTimeout(ctx, time.Second)
		var revision int64
		var err error
		if n%4 == 0 {
			var answer *clientv3.TxnResponse
			answer, err = client.Txn(call).Then(clientv3.OpPut(fmt.Sprintf("crash/%d/a", id), value+"/a"), clientv3.OpPut(fmt.Sprintf("crash/%d/b", id), value+"/b")).Commit()
			if err == nil {
				revision = answer.Header.Revision
			}
		} else {
			var answer *clientv3.PutResponse
			answer, err = client.Put(call, fmt.Sprintf("crash/%d/a", id), value+"/a")
			if err == nil {
				revision = answer.Header.Revision
			}
		}
		cancel()
		if err == nil {
			c.mu.Lock()
			c.acknowledged[value] = revision
			c.mu.Unlock()
		} else {
			pause(pollInterval) // the server is being started again
		}
	}
}

type etcdCrashEvent struct {
	revision int64
	key      string
	value    string
}

type etcdCrashWatcher struct {
	events   []etcdCrashEvent
	progress int64
	problems []string
}

// watch follows everything from the first revision; clientv3 resumes it after each kill.
func (c *etcdCrash) watch(ctx context.Context, w *etcdCrashWatcher) {
	client := c.client()
	defer client.Close()
	for response := range client.Watch(clientv3.WithRequireLeader(ctx), "crash/", clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithProgressNotify()) {
		if err := response.Err(); err != nil && ctx.Err() == nil {
			w.problems = append(w.problems, err.Error())
			return
		}
		if response.IsProgressNotify() {
			w.progress = response.Header.Revision
		}
		for _, event := range response.Events {
			if event.Kv.ModRevision <= w.progress {
				w.problems = append(w.problems, fmt.Sprintf("revision %d after progress %d", event.Kv.ModRevision, w.progress))
			}
			w.events = append(w.events, etcdCrashEvent{event.Kv.ModRevision, string(event.Kv.Key), string(event.Kv.Value)})
		}
	}
}

func (c *etcdCrash) verify(watchers []*etcdCrashWatcher) {
	client := c.client()
	defer client.Close()
	history := &etcdCrashWatcher{}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	answer, err := client.Get(ctx, "crash/", clientv3.WithPrefix())
	if err != nil {
		c.report.violation("E-469", "no answer at the end: %v", err)
		return
	}
	last := int64(0)
	for _, kv := range answer.Kvs {
		last = max(last, kv.ModRevision)
	}
	// The store's own word on what happened: a watch from the first revision.
	for response := range client.Watch(ctx, "crash/", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		for _, event := range response.Events {
			history.events = append(history.events, etcdCrashEvent{event.Kv.ModRevision, string(event.Kv.Key), string(event.Kv.Value)})
		}
		if n := len(history.events); n > 0 && history.events[n-1].revision >= last {
			break
		}
	}
	// Each value once, at the revision that was acknowledged; whole transactions.
	seen := map[string]int64{}
	for i, event := range history.events {
		value := strings.TrimSuffix(strings.TrimSuffix(event.value, "/a"), "/b")
		if strings.HasSuffix(event.value, "/a") {
			c.report.check(seen[value] == 0, "E-702 Unique", "%s happened at %d and again at %d", value, seen[value], event.revision)
			seen[value] = event.revision
		} else {
			c.report.check(seen[value] == event.revision, "E-702 Atomic", "%s: half of a transaction at %d", value, event.revision)
		}
		c.report.check(c.tried[value], "E-701", "%s was never written", value)
		if i > 0 {
			previous := history.events[i-1].revision
			c.report.check(event.revision == previous || event.revision == previous+1, "E-407", "revision %d follows %d", event.revision, previous)
		}
	}
	for value, revision := range c.acknowledged {
		c.report.check(seen[value] == revision, "E-469", "%s was acknowledged at %d; the store has it at %d (0: not at all)", value, revision, seen[value])
	}
	// What a later reader was told never comes from before an earlier acknowledgement of the same writer.
	c.report.check(sort.SliceIsSorted(history.events, func(i, j int) bool { return history.events[i].revision < history.events[j].revision }), "E-702 Ordered", "the history is out of order")
	for i, w := range watchers {
		c.report.check(len(w.problems) == 0, "E-702 Resumable", "watcher %d: %v", i, w.problems)
		same := len(w.events) <= len(history.events)
		for n := 0; same && n < len(w.events); n++ {
			same = w.events[n] == history.events[n]
		}
		c.report.check(same, "E-702 Reliable", "watcher %d saw %d events that are not the first of the %d that happened", i, len(w.events), len(history.events))
		c.report.check(len(w.events) > 0, "E-702 Reliable", "watcher %d saw nothing", i)
	}
	c.report.figure("events", len(history.events))
}
