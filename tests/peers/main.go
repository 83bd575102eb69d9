// Command peers holds the programs that test vedette with its real counterparts: its HTTP server with client-go and with clients that no
// well-behaved library would write (raw sockets), its etcd client with real etcd servers and with one that follows a script. Each test prints one JSON summary on stdout and exits 0 when
// every check held, 1 when one did not (each violation names the rule of the specification it breaks), 2 on wrong use.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
	"syscall"

	"k8s.io/klog/v2"
)

type subcommand struct {
	about string
	run   func(args []string) int
}

var subcommands = map[string]subcommand{
	"informer":          {"informers whose connections are cut: nothing missing, nothing twice, no relist", runInformer},
	"informer-pods":     {"typed, filtered and metadata-only informers on pods", runInformerPods},
	"collector":         {"the garbage collector and namespaces, killed in the middle: nothing left over, nothing deleted wrongly", runCollector},
	"custom":            {"a custom kind that comes, goes and comes again under running informers and a RESTMapper, over kill -9: nothing missing, no relist", runCustom},
	"crashloop":         {"kill -9 and restart under load: nothing acknowledged is lost, watches go on", runCrashloop},
	"acceptance":        {"what programs on client-go do first: informers of every sort and leader election, over HTTP and TLS, with answers tampered with", runAcceptance},
	"badinput":          {"hostile requests: the right refusal, and healthy clients unharmed", runBadInput},
	"watchlist":         {"list and watch semantics on the wire", runWatchList},
	"security":          {"TLS, certificates, tokens and the policy: who may do what, and hostile handshakes", runSecurity},
	"etcd-run":          {"starts an etcd (3.7 or 3.4, one or more members), runs a command with it, and ends both", runEtcd},
	"control":           {"one command to what runs around us: kill, restart, pause members; faults of the network", runControl},
	"etcd-fake":         {"a gRPC server that the command beside it plays: any order of answers; and servers that are none", runFakeEtcd},
	"etcd-diff":         {"the same operations to a real etcd and to vedette etcd: every field of every answer compared", runEtcdDiff},
	"etcd-http":         {"HTTP on the client URL of a real etcd and of vedette etcd: status, headers and bodies compared", runEtcdHTTP},
	"etcd-crash":        {"kill -9 of vedette etcd under clientv3 writers and watchers: nothing acknowledged is lost, watches miss nothing", runEtcdCrash},
	"etcd-port":         {"bad input on the port of vedette etcd: answered or cut, memory bounded, others unharmed", runEtcdPort},
	"etcd-own":          {"vedette etcd with watchers far behind, compacting itself, defragmented under load, killed with leases, bounded, pinged, ended", runEtcdOwn},
	"etcd-falsify":      {"a proxy between vedette verify and an honest etcd falsifies watches: verify finds each falsification, and blames nobody else", runEtcdFalsify},
	"etcd-load":         {"loads an etcd, real or vedette, with clientv3: rates, latencies, CPU of the server", runEtcdLoad},
	"etcd-faults":       {"vedette's etcd client against a real etcd in trouble: nothing missing, nothing twice, no lie about a write", runEtcdFaults},
	"serve-faults":      {"two vedette serve --etcd on a real etcd in trouble: watches miss nothing, lists are right", runServeFaults},
	"serve-history":     {"vedette serve --etcd --data-dir, killed and started again: watches go on, informers do not list; etcd compacted, put back", runServeHistory},
	"etcd-bench":        {"etcd's Go client beside vedette's, on one etcd in one run: watches and lists", runEtcdBench},
	"etcd-bench-client": {"one client of etcd-bench", runEtcdBenchClient},
	"kube-share":        {"a real kube-apiserver and vedette serve on one etcd: each serves what the other wrote", runKubeShare},
	"kube-informer":     {"client-go's informers on a server, with the commands and reports of kube_witness", runKubeInformer},
	"kube-leader":       {"client-go's leader election, with the reports of examples/leader_election.c", runKubeLeader},
	"fault-proxy":       {"a TCP proxy that cuts, delays, holds and loses", runFaultProxy},
	"proto-diff":        {"the protobuf transcoder against Go's own, on random objects of every kind", runProtoDiff},
	"protobuf":          {"objects, lists and watches of every kind as protobuf and as JSON, and client-go as it is by default", runProtoAPI},
	"proto-vectors":     {"prints the objects of tests/unit/k8s_proto_vectors.def", runProtoVectors},
	"proto-table":       {"prints the field tables of Kubernetes' protobuf (storage/codec/k8s_proto_table.def)", runProtoTable},
}

func usage() {
	fmt.Fprintf(os.Stderr, "usage: peers SUBCOMMAND [flags]\n")
	names := make([]string, 0, len(subcommands))
	for name := range subcommands {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(os.Stderr, "  %-18s %s\n", name, subcommands[name].about)
	}
}

// raiseFileLimit asks for as many descriptors as the system allows: some programs hold thousands of connections.
func raiseFileLimit() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 256
	}
	most := syscall.Rlimit{Cur: max(limit.Max, 65536), Max: max(limit.Max, 65536)}
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &most) == nil { // root may have more than it was given
		return most.Cur
	}
	limit.Cur = limit.Max
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	return limit.Cur
}

func main() {
	if len(os.Args) < 2 {
		usage()
		os.Exit(2)
	}
	command, ok := subcommands[os.Args[1]]
	if !ok {
		usage()
		os.Exit(2)
	}
	// client-go logs every connection we cut on purpose; only --verbose shows that.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	os.Exit(command.run(os.Args[2:]))
}

// newFlags makes a flag set with the flags all subcommands share.
func newFlags(name string) (flags *flag.FlagSet, verbose *bool, seed *int64) {
	flags = flag.NewFlagSet("peers "+name, flag.ExitOnError)
	verbose = flags.Bool("verbose", false, "print what happens, and client-go's own log")
	seed = flags.Int64("seed", 1, "seed of every random choice")
	return
}

func setVerbose(verbose bool) {
	if verbose {
		klog.LogToStderr(true)
		klog.SetOutput(os.Stderr)
	}
}
