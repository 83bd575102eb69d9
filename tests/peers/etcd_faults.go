package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// faultWorld is a cluster with trouble, and what every program that makes trouble needs: a client around the proxies, the history, and
// conditions to wait for.
type faultWorld struct {
	report  *report
	cluster *etcdCluster
	client  *clientv3.Client // around the proxies
	history *etcdHistory
	random  *rand.Rand
	verbose bool
	full    bool
	puts    int // by ourselves
	prefix  string
	valueOf func(name, text string) string // what a key under the prefix holds

	whileNoLeader func() // nil, or what to wait for while nobody leads

	mu        sync.Mutex
	compacted int64 // up to here history was compacted
}

const (
	faultPatience = 90 * time.Second // for anything to happen that must happen
	faultQuota    = 40 << 20         // of etcd's file
)

func newFaultWorld(report *report, options etcdOptions, verbose, full bool) (*faultWorld, error) {
	options.flags = append(options.flags, fmt.Sprintf("--quota-backend-bytes=%d", faultQuota))
	cluster, err := startEtcd(options)
	if err != nil {
		return nil, err
	}
	client, err := newEtcdClient(cluster, cluster.endpoints(true))
	if err != nil {
		cluster.stop()
		return nil, err
	}
	return &faultWorld{report: report, cluster: cluster, client: client, history: watchHistory(client), random: rand.New(rand.NewSource(options.seed)),
		verbose: verbose, full: full, prefix: "/witness/", valueOf: func(_, text string) string { return text }}, nil
}

func (w *faultWorld) close() {
	w.history.stop()
	_ = w.client.Close()
	w.cluster.stop()
}

func (w *faultWorld) say(format string, args ...any) {
	if w.verbose {
		fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format("15:04:05.000")}, args...)...)
	}
}

// obey gives a command to the cluster; that it is refused is our own mistake or the end of etcd.
func (w *faultWorld) obey(command string) string {
	answer, err := w.cluster.obey(strings.Fields(command))
	w.say("  %s: %s %v", command, answer, err)
	if err != nil {
		w.report.violation("etcd", "%s: %v", command, err)
	}
	return answer
}

// try repeats an operation of etcd's own client until it works.
func (w *faultWorld) try(what string, operation func(ctx context.Context) error) bool {
	var err error
	works := pollUntil(faultPatience, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err = operation(ctx)
		return err == nil
	})
	return w.report.check(works, "etcd", "%s does not work for etcd's own client: %v", what, err)
}

// put writes a key under the prefix until it worked, and returns the revision.
func (w *faultWorld) put(name, text string) (revision int64) {
	w.try("put", func(ctx context.Context) error {
		response, err := w.client.Put(ctx, w.prefix+name, w.valueOf(name, text))
		if err == nil {
			revision = response.Header.Revision
		}
		return err
	})
	return
}

// pulse writes some keys by etcd's own client, so that something happens whatever the proxies do.
func (w *faultWorld) pulse(n int) (revision int64) {
	for range n {
		w.puts++
		revision = w.put(fmt.Sprintf("%03d", w.random.Intn(20)), fmt.Sprintf("pulse-%d", w.puts))
	}
	return
}

// compact forgets everything before the revision, once our own history has it.
func (w *faultWorld) compact(revision int64) {
	if err := w.history.await(revision, faultPatience); err != nil {
		w.report.violation("history", "%v", err)
		return
	}
	w.mu.Lock()
	w.compacted = max(w.compacted, revision)
	w.mu.Unlock()
	w.try("compact", func(ctx context.Context) error {
		_, err := w.client.Compact(ctx, revision, clientv3.WithCompactPhysical())
		if err != nil && strings.Contains(err.Error(), "has been compacted") {
			return nil
		}
		return err
	})
}

func (w *faultWorld) compactedRevision() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.compacted
}

// accepted counts the connections that clients ever made through the proxies.
func (w *faultWorld) accepted() (sum int) {
	for _, m := range w.cluster.members {
		m.proxy.mu.Lock()
		sum += m.proxy.accepted
		m.proxy.mu.Unlock()
	}
	return
}

// awaitAccepted waits until there were so many.
func (w *faultWorld) awaitAccepted(wanted int) {
	w.report.check(pollUntil(faultPatience, func() bool { return w.accepted() >= wanted }), "E-256", "no client connected again within %v", faultPatience)
}

// heal ends all trouble and waits until etcd is well.
func (w *faultWorld) heal() {
	w.obey("proxy all heal")
	w.client.SetEndpoints(w.cluster.endpoints(true)...)
	for i, m := range w.cluster.members {
		if m.running() && m.paused {
			w.obey(fmt.Sprintf("resume %d", i))
		}
	}
	w.obey("start all")
	w.obey("wait")
}

// faults is the trouble there is. Each ends with the world possibly still broken; heal follows.
func (w *faultWorld) faults() []fault {
	several := len(w.cluster.members) > 1
	list := []fault{
		{"kill -9 of one member", func() {
			w.obey("kill follower")
			w.pulse(20)
		}, several},
		{"kill -9 of the leader", func() {
			w.obey("kill leader")
			w.pulse(20)
		}, several},
		{"kill -9 of all", func() {
			w.pulse(5)
			w.obey("restart all")
		}, true},
		{"no quorum", func() {
			leader := w.obey("leader")
			for i := range w.cluster.members {
				if fmt.Sprint(i) != leader {
					w.obey(fmt.Sprintf("kill %d", i))
				}
			}
			w.awaitNoLeader()
			if w.whileNoLeader != nil {
				w.whileNoLeader()
			}
		}, several},
		{"a frozen leader", func() { w.freeze("leader") }, several},
		{"a frozen member", func() { w.freeze("follower") }, several},
		{"another leader", w.moveLeader, several},
		{"orderly restarts", func() {
			for i := range w.cluster.members {
				w.obey(fmt.Sprintf("stop %d", i))
				if several {
					w.pulse(5)
				}
				w.obey(fmt.Sprintf("start %d", i))
				w.obey("wait")
			}
		}, true},
		{"connections cut", func() {
			for range 5 {
				w.obey("proxy all cut")
				w.pulse(5)
			}
			w.obey("proxy all cut fin")
			w.pulse(5)
		}, true},
		{"connections cut in the middle of frames", func() {
			w.obey("proxy all cut-after 200 20000")
			w.obey("proxy all cut")
			w.awaitAcceptedWhile(10, func() { w.pulse(3) })
		}, true},
		{"refused connections", func() {
			w.obey("proxy all refuse on")
			w.obey("proxy all cut")
			w.pulse(20)
		}, true},
		{"delayed bytes", func() {
			w.obey("proxy all delay 30ms")
			w.pulse(20)
		}, true},
		{"small pieces", func() {
			w.obey("proxy all pieces 7")
			w.pulse(20)
		}, true},
		{"held bytes", func() {
			for _, which := range []string{"down", "up", "both"} {
				w.obey("proxy all hold " + which)
				w.pulse(10)
			}
		}, true},
		{"half-open connections", func() {
			which := []string{"server", "client"}[w.random.Intn(2)]
			before := w.accepted()
			w.obey("proxy all half-open " + which)
			w.pulse(10)
			w.awaitAccepted(before + 1) // the client finds out by itself
		}, true},
		{"a network that swallows", func() {
			before := w.accepted()
			w.obey("proxy all drop down")
			w.pulse(10)
			w.awaitAccepted(before + 1)
		}, true},
		{"compaction while disconnected", func() {
			w.obey("proxy all refuse on")
			w.obey("proxy all cut")
			w.pulse(10)
			revision := w.pulse(1)
			w.pulse(10)
			w.compact(revision)
		}, true},
		{"compaction while writing", func() {
			w.compact(w.pulse(10))
			w.obey("proxy all cut")
			w.compact(w.pulse(1))
		}, true},
		{"leases that end", w.leasesEnd, true},
		{"defragmentation", func() {
			w.defragment()
			w.pulse(3)
		}, true},
		{"an alarm", w.alarm, true},
		{"a full quota", w.fillQuota, true},
		{"large values", func() {
			value := strings.Repeat("0123456789abcdef", 64<<10/16)
			for i := range 120 {
				w.put(fmt.Sprintf("large-%d", i%3), fmt.Sprintf("large-%d-%s", i, value))
			}
			w.obey("proxy all cut")
		}, true},
	}
	var usable []fault
	for _, f := range list {
		if f.usable {
			usable = append(usable, f)
		}
	}
	return usable
}

type fault struct {
	name   string
	make   func()
	usable bool
}

// awaitAcceptedWhile keeps doing something until clients have made n further connections.
func (w *faultWorld) awaitAcceptedWhile(n int, do func()) {
	done, wanted := make(chan struct{}), w.accepted()+n
	go func() {
		w.awaitAccepted(wanted)
		close(done)
	}()
	for {
		do()
		select {
		case <-done:
			return
		default:
		}
	}
}

// freeze stops a member without ending it: its connections stay, and say nothing. Our own client looks elsewhere.
func (w *faultWorld) freeze(which string) {
	w.obey("pause " + which)
	var others []string
	for _, m := range w.cluster.members {
		if !m.paused {
			others = append(others, m.url(w.cluster, true))
		}
	}
	w.client.SetEndpoints(others...)
	w.pulse(20)
}

// awaitNoLeader waits until the members that run have lost their leader.
func (w *faultWorld) awaitNoLeader() {
	isLost := pollUntil(faultPatience, func() bool {
		lost := true
		for _, m := range w.cluster.members {
			if m.running() {
				_, leader, err := w.cluster.memberStatus(m)
				lost = lost && err == nil && (leader == "" || leader == "0")
			}
		}
		return lost
	})
	w.report.check(isLost, "etcd", "a member without the others still knows a leader after %v", faultPatience)
}

func (w *faultWorld) moveLeader() {
	var leader string
	var ids []uint64
	w.try("member list", func(ctx context.Context) error {
		ids = nil
		for i, url := range w.cluster.endpoints(true) {
			status, err := w.client.Status(ctx, url)
			if err != nil {
				return err
			}
			if status.Leader == status.Header.MemberId {
				leader = w.cluster.endpoints(true)[i]
			} else {
				ids = append(ids, status.Header.MemberId)
			}
		}
		if leader == "" || len(ids) == 0 {
			return errors.New("no leader")
		}
		return nil
	})
	// Another one may lead by now: then there is nothing to move, which is as good.
	if client, err := newEtcdClient(w.cluster, []string{leader}); err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, err := client.MoveLeader(ctx, ids[w.random.Intn(len(ids))])
		w.say("  move leader: %v", err)
		cancel()
		client.Close()
	}
	w.pulse(10)
}

func (w *faultWorld) leasesEnd() {
	var id clientv3.LeaseID
	w.try("grant", func(ctx context.Context) error {
		granted, err := w.client.Grant(ctx, 2)
		if err == nil {
			id = granted.ID
		}
		return err
	})
	names := []string{"leased-a", "leased-b", "000"}
	for i, name := range names {
		w.try("put", func(ctx context.Context) error {
			w.puts++
			_, err := w.client.Put(ctx, w.prefix+name, w.valueOf(name, fmt.Sprintf("leased-%d-%d", w.puts, i)), clientv3.WithLease(id))
			if err != nil && strings.Contains(err.Error(), "lease not found") {
				return nil // it was faster
			}
			return err
		})
	}
	w.obey("proxy all cut")
	hasEnded := pollUntil(faultPatience, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		answer, err := w.client.Get(ctx, w.prefix+names[0])
		return err == nil && len(answer.Kvs) == 0
	})
	w.report.check(hasEnded, "etcd", "a lease did not end within %v", faultPatience)
}

// raiseAlarm raises the alarm that a full member raises.
func (w *faultWorld) raiseAlarm() {
	maintenance := etcdserverpb.NewMaintenanceClient(w.client.ActiveConnection())
	w.try("alarm", func(ctx context.Context) error {
		status, err := w.client.Status(ctx, w.cluster.endpoints(true)[0])
		if err == nil {
			_, err = maintenance.Alarm(ctx, &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: status.Header.MemberId,
				Alarm: etcdserverpb.AlarmType_NOSPACE})
		}
		return err
	})
}

// disarm takes back the alarms of all members.
func (w *faultWorld) disarm() {
	w.try("disarm", func(ctx context.Context) error {
		_, err := w.client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
		return err
	})
}

// awaitNoSpace puts until there is no space for it.
func (w *faultWorld) awaitNoSpace(text string) {
	for deadline := time.Now().Add(faultPatience); ; {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, err := w.client.Put(ctx, w.prefix+"full", w.valueOf("full", text))
		cancel()
		if err != nil && strings.Contains(err.Error(), "database space exceeded") {
			return
		}
		if time.Now().After(deadline) {
			w.report.violation("etcd", "it is never full: %v", err)
			return
		}
	}
}

// alarm stops all writes, without anything being full.
func (w *faultWorld) alarm() {
	w.raiseAlarm()
	w.awaitNoSpace("full")
	w.obey("proxy all cut")
	w.disarm()
	w.pulse(3)
}

// fillQuota fills etcd up to its quota, and makes room as its manual says: compact, defragment, take the alarm back.
func (w *faultWorld) fillQuota() {
	w.awaitNoSpace(strings.Repeat("0123456789abcdef", 1<<20/16))
	w.obey("proxy all cut")
	var deleted int64
	w.try("delete", func(ctx context.Context) error {
		response, err := w.client.Delete(ctx, w.prefix+"full")
		if err == nil {
			deleted = response.Header.Revision
		}
		return err
	})
	// The history learns of the large puts through the connections that were just cut. Without them it names a revision before them.
	if err := w.history.await(deleted, faultPatience); err != nil {
		w.report.violation("history", "%v", err)
	}
	w.compact(w.history.lastPlainPut())
	w.defragment()
	w.disarm()
	w.pulse(3)
}

func (w *faultWorld) defragment() {
	for _, url := range w.cluster.endpoints(true) {
		w.try("defragment", func(ctx context.Context) error {
			_, err := w.client.Defragment(ctx, url)
			return err
		})
	}
}
