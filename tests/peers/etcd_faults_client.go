package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// runEtcdFaults: vedette's etcd client (tests/integration/etcd_witness.c) against a real etcd in trouble. Its watches must see everything that etcd's
// own client sees, once and in order; its writers must be told the truth.
func runEtcdFaults(args []string) int {
	flags, verbose, seed := newFlags("etcd-faults")
	program := flags.String("witness", "", "path of etcd_witness")
	version := flags.String("version", "3.7", "of etcd: 3.7 or 3.4")
	members := flags.Int("members", 3, "of the cluster")
	withTLS := flags.Bool("tls", false, "TLS with client certificates")
	rounds := flags.Int("rounds", 1, "how often each kind of trouble happens")
	writers := flags.Int("writers", 4, "of the witness")
	interval := flags.Int("interval", 10, "milliseconds between two operations of a writer")
	only := flags.String("only", "", "only trouble whose name contains this")
	_ = flags.Parse(args)
	if *program == "" {
		fmt.Fprintln(os.Stderr, "peers etcd-faults: --witness is needed")
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
	report := newReport("etcd-faults")
	world, err := newFaultWorld(report, etcdOptions{program: etcd, count: *members, tls: *withTLS, proxy: true, seed: *seed}, *verbose, *rounds > 1)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-faults:", err)
		return 1
	}
	defer world.close()
	witness, err := startWitness(report, *program, world.cluster.environment(*version, ""))
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-faults:", err)
		return 1
	}
	// Before 3.4.31, etcd answers a request for progress at once, for watches that are still catching up as well.
	run := &clientFaults{world: world, witness: witness, progress: *version != "3.4"}
	world.whileNoLeader = run.awaitNoLeader
	run.openWatches()
	run.witness.tell("writers %d %d 20 %d %s", *writers, *interval, *seed, world.prefix)
	run.settle("the start")
	for round := range *rounds {
		faults := world.faults()
		world.random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		for _, f := range faults {
			if report.violated() {
				break
			}
			if strings.Contains(f.name, *only) {
				world.say("round %d: %s", round+1, f.name)
				run.trouble(f)
			}
		}
	}
	witness.tell("stop")
	report.check(witness.await(faultPatience, func() bool { return witness.stopped > 0 }), "E-208", "the writers did not stop")
	run.settle("the end")
	acknowledged, uncertain, refused := witness.compareWrites(world.history)
	report.check(acknowledged > 0, "E-207", "no write was acknowledged")
	witness.quit(faultPatience)
	if report.violated() {
		fmt.Fprint(os.Stderr, world.cluster.logTails(10))
	}
	events := 0
	for _, w := range witness.watches {
		events += w.count
	}
	report.figure("revisions", world.history.revision())
	report.figure("events", events)
	report.figure("watches", len(witness.watches))
	report.figure("expired", run.expired)
	report.figure("noLeader", run.noLeader)
	report.figure("acknowledged", acknowledged)
	report.figure("uncertain", uncertain)
	report.figure("refused", refused)
	return report.finish()
}

type clientFaults struct {
	world    *faultWorld
	witness  *etcdWitness
	progress bool // the server knows when a watch is up to date
	nextID   int
	live     []int // watches that go on from fault to fault
	held     int   // the one that is not read while there is trouble
	expired  int
	noLeader int
}

// openWatches opens one of each kind.
func (f *clientFaults) openWatches() {
	all, prefix := keyRange{"\x00", "\x00"}, keyRange{f.world.prefix, prefixEnd(f.world.prefix)}
	some, one := keyRange{f.world.prefix + "00", prefixEnd(f.world.prefix + "00")}, keyRange{f.world.prefix + "007", ""}
	for _, w := range []struct {
		flags string
		keys  keyRange
	}{{"-", all}, {"pv", all}, {"f", all}, {"pvfl", prefix}, {"p", prefix}, {"v", some}, {"u", prefix}, {"d", prefix}, {"pl", one}, {"c", one}} {
		f.open(2, w.flags, w.keys)
	}
	f.held = f.live[2]
}

func prefixEnd(prefix string) string {
	end := []byte(prefix)
	end[len(end)-1]++
	return string(end)
}

func (f *clientFaults) open(revision int64, flags string, keys keyRange) {
	f.witness.open(f.nextID, revision, flags, keys)
	f.live = append(f.live, f.nextID)
	f.nextID++
}

// awaitNoLeader waits until every watch that wants a leader has ended for want of one (E-255).
func (f *clientFaults) awaitNoLeader() {
	for _, id := range f.live {
		watch := f.witness.watch(id)
		if strings.Contains(watch.flags, "l") {
			f.world.report.check(f.witness.await(faultPatience, func() bool { return watch.end != "" }), "E-255", "watch %d (%s) goes on without a leader", id,
				watch.flags)
		}
	}
}

// trouble makes one fault, with watches that come and go while it lasts, and then waits until all is as it should be.
func (f *clientFaults) trouble(fault fault) {
	w := f.world
	f.witness.tell("hold %d", f.held)
	fault.make()
	// Watches that start in the middle of it, from what just was and from long ago, and one that ends.
	now := w.history.revision()
	f.open(now, "v", keyRange{"\x00", "\x00"})
	f.open(max(now-100, w.compactedRevision()+1, 2), "fp", keyRange{w.prefix, prefixEnd(w.prefix)})
	if f.progress {
		f.witness.tell("progress %d", f.live[0])
	}
	w.heal()
	f.witness.tell("flow %d", f.held)
	f.settle(fault.name)
	for len(f.live) > 10 {
		f.witness.tell("close %d", f.live[len(f.live)-1])
		f.live = f.live[:len(f.live)-1]
	}
}

// settle writes a last word that every watch wants, waits until all have it, and compares.
func (f *clientFaults) settle(after string) {
	w := f.world
	w.say("  settling")
	key := w.prefix + "007"
	w.put("007", "settle")
	w.try("delete", func(ctx context.Context) error {
		_, err := w.client.Delete(ctx, key)
		return err
	})
	put := w.put("007", "settled") // wanted by those that see no deletes
	deleted := put
	w.try("delete", func(ctx context.Context) error {
		answer, err := w.client.Delete(ctx, key)
		if err == nil {
			deleted = answer.Header.Revision
		}
		return err
	})
	deadline := time.Now().Add(faultPatience)
	for i := 0; i < len(f.live); i++ {
		id := f.live[i]
		watch := f.witness.watch(id)
		goal := deleted
		if strings.Contains(watch.flags, "d") {
			goal = put
		}
		ended, next := false, int64(0)
		arrived := f.witness.await(time.Until(deadline), func() bool {
			ended, next = watch.end != "", watch.next
			return next > goal || ended
		})
		if !w.report.check(arrived, "E-256", "after %s: watch %d (%s from %d) stands before revision %d, %d was written", after, id, watch.flags,
			watch.first, next, goal) {
			return
		}
		if ended {
			f.reopen(i, watch, after)
			i-- // the new one has taken its place
		}
	}
	if err := w.history.await(deleted, faultPatience); err != nil {
		w.report.violation("history", "%v", err)
		return
	}
	// What the watches saw beyond that may not have reached our own history yet.
	reach := int64(0)
	f.witness.mu.Lock()
	for _, watch := range f.witness.watches {
		reach = max(reach, watch.next-1)
	}
	f.witness.mu.Unlock()
	if err := w.history.await(reach, faultPatience); err != nil {
		w.report.violation("E-285", "a watch is ahead of etcd's own client: %v", err)
		return
	}
	f.witness.compare(w.history, w.compactedRevision())
}

// reopen judges why a watch ended, and starts one that goes on where it stood.
func (f *clientFaults) reopen(i int, watch *witnessWatch, after string) {
	w := f.world
	f.witness.mu.Lock()
	end, endedAt, next, message := watch.end, watch.endedAt, max(watch.next, watch.first), watch.message
	f.witness.mu.Unlock()
	w.say("  watch %d (%s) ended: %s %d %s", watch.id, watch.flags, end, endedAt, message)
	switch end {
	case "expired":
		f.expired++
		compacted := w.compactedRevision()
		w.report.check(next < compacted && endedAt <= compacted && endedAt > next, "E-238",
			"after %s: watch %d ended with %d as the lowest revision there is; it stood at %d, and %d is the truth", after, watch.id, endedAt, next, compacted)
		next = compacted
	case "unavailable":
		f.noLeader++
		w.report.check(strings.Contains(watch.flags, "l") && strings.Contains(message, "no leader"), "E-255", "after %s: watch %d (%s) ended: %s %s", after,
			watch.id, watch.flags, end, message)
	default:
		w.report.violation("E-256", "after %s: watch %d (%s) ended: %s %s", after, watch.id, watch.flags, end, message)
		return
	}
	f.witness.open(f.nextID, next, watch.flags, watch.keys)
	f.live[i] = f.nextID
	if f.held == watch.id {
		f.held = f.nextID
	}
	f.nextID++
}
