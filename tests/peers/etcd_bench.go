package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// The cases, each run by etcd's own Go client and by vedette's (bench/bench_etcd.c) on one etcd in one run:
//
//	etcd-watch   10,000 watches of one key each on one stream; 1,000 puts a second: CPU of the client per event, private memory per idle watch
//	etcd-burst   1 and 100 watches of one prefix on one stream; transactions of 50 puts, as fast as etcd takes them: CPU of the client per event
//	etcd-list    100,000 pods of 1 KB, read in pages of 10,000 at one revision: CPU of the client per object
//
// A client is a process of its own. It asks for puts with a line {"put":N}, for transactions with {"txn":N}, and prints its results in the form of bench/measure.c.
const (
	benchSubstreams = 10000
	benchEvents     = 2000 // of a round
	benchObjects    = 100000
	benchRate       = 1000 // puts a second
	benchWatchKey   = "/bench/watch/%05d"
	benchBurstKey   = "/bench/burst/%02d"
	benchBurstPuts  = 50
	benchBurstTotal = 200000 // events of a round, all watches together; a tenth of it for one watch, which would fill etcd
	benchListPrefix = "/registry/pods/"
	benchPage       = 10000
)

// runEtcdBench starts an etcd, fills it, and runs the clients one after the other.
func runEtcdBench(args []string) int {
	flags, _, seed := newFlags("etcd-bench")
	other := flags.String("vedette", "", "path of bench_etcd; without it, only Go's client is measured")
	version := flags.String("version", "3.7", "of etcd")
	rounds := flags.Int("rounds", 5, "the median counts")
	scale := flags.Float64("scale", 1, "of counts")
	_ = flags.Parse(args)
	program, err := findEtcd(*version)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, errSkip) {
			return exitSkipped
		}
		return 2
	}
	cluster, err := startEtcd(etcdOptions{program: program, count: 1})
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-bench:", err)
		return 1
	}
	defer cluster.stop()
	client, err := newEtcdClient(cluster, cluster.endpoints(true))
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-bench:", err)
		return 1
	}
	defer client.Close()
	cases := flags.Args()
	if len(cases) == 0 {
		cases = []string{"etcd-watch", "etcd-burst", "etcd-list"}
	}
	self, _ := os.Executable()
	common := []string{"--rounds", fmt.Sprint(*rounds), "--seed", fmt.Sprint(*seed), "--scale", fmt.Sprint(*scale)}
	filled := false
	for _, name := range cases {
		if strings.HasPrefix("etcd-list", name) && !filled {
			filled = true
			if err := fillPods(client, max(1, int(benchObjects**scale)), *seed); err != nil {
				fmt.Fprintln(os.Stderr, "peers etcd-bench:", err)
				return 1
			}
		}
		commands := [][]string{append(append([]string{self, "etcd-bench-client"}, common...), name)}
		if *other != "" {
			commands = append(commands, append(append([]string{*other}, common...), name))
		}
		for _, command := range commands {
			if err := runBenchClient(command, cluster.environment(*version, ""), client, *scale, *seed); err != nil {
				fmt.Fprintf(os.Stderr, "peers etcd-bench: %s: %v\n", strings.Join(command, " "), err)
				return 1
			}
		}
	}
	return 0
}

// runBenchClient runs one client to its end, puts what it asks for and passes its lines on.
func runBenchClient(command, environment []string, client *clientv3.Client, scale float64, seed int64) error {
	child := exec.Command(command[0], command[1:]...)
	child.Env = append(os.Environ(), environment...)
	child.Stderr = os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	random := rand.New(rand.NewSource(seed))
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		var line struct{ Put, Txn int }
		if json.Unmarshal(scanner.Bytes(), &line) == nil && line.Put+line.Txn > 0 {
			err := putAtRate(client, line.Put, max(1, int(benchSubstreams*scale)), random)
			if err == nil {
				err = putTogether(client, line.Txn, random)
			}
			if err != nil {
				_ = child.Process.Kill()
				return err
			}
			continue
		}
		fmt.Println(scanner.Text())
	}
	return child.Wait()
}

func randomText(random *rand.Rand, size int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	text := make([]byte, size)
	for i := range text {
		text[i] = letters[random.Intn(len(letters))]
	}
	return string(text)
}

// putAtRate puts n values of 1 KB on keys of the watches, one after the other, not faster than the rate.
func putAtRate(client *clientv3.Client, n, keys int, random *rand.Rand) error {
	ctx := context.Background()
	begin := time.Now()
	values := make(chan string, 64)
	go func() {
		for range n {
			values <- randomText(random, 1024)
		}
	}()
	order := rand.New(rand.NewSource(random.Int63()))
	for i := range n {
		if wait := time.Until(begin.Add(time.Duration(i) * time.Second / benchRate)); wait > 0 {
			pause(wait)
		}
		if _, err := client.Put(ctx, fmt.Sprintf(benchWatchKey, order.Intn(keys)), <-values); err != nil {
			return err
		}
	}
	return nil
}

// putTogether puts values of 1 KB, 50 in each transaction, one transaction after the other.
func putTogether(client *clientv3.Client, n int, random *rand.Rand) error {
	var operations []clientv3.Op
	for i := range benchBurstPuts {
		operations = append(operations, clientv3.OpPut(fmt.Sprintf(benchBurstKey, i), randomText(random, 1024)))
	}
	for range n {
		if _, err := client.Txn(context.Background()).Then(operations...).Commit(); err != nil {
			return err
		}
	}
	return nil
}

// fillPods writes pods of exactly 1 KB of JSON, each with random values of its own.
func fillPods(client *clientv3.Client, count int, seed int64) error {
	random := rand.New(rand.NewSource(seed))
	var operations []clientv3.Op
	for i := range count {
		namespace, name := fmt.Sprintf("ns-%03d", i%1000), fmt.Sprintf("pod-%06d", i)
		head := fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":"%08x-0000-4000-8000-%012x","creationTimestamp":"2026-01-01T00:00:00Z",`+
			`"labels":{"app":"app-%d","hash":%q}},"spec":{"containers":[{"name":"main","image":"registry.example/%s:1"}],"nodeName":"node-%d"},"status":{"phase":"Running","message":"`,
			name, namespace, i, i, random.Intn(100), randomText(random, 10), randomText(random, 12), random.Intn(1000))
		value := head + randomText(random, 1024-len(head)-3) + `"}}`
		operations = append(operations, clientv3.OpPut(benchListPrefix+namespace+"/"+name, value))
		if len(operations) == 100 || i == count-1 {
			if _, err := client.Txn(context.Background()).Then(operations...).Commit(); err != nil {
				return err
			}
			operations = operations[:0]
		}
	}
	return nil
}

// ---- The Go client ----

func processCPU() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// privateMemory is RssAnon, after what can be given back was given back.
func privateMemory() int64 {
	runtime.GC()
	debug.FreeOSMemory()
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		var kib int64
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kib); n == 1 {
			return kib * 1024
		}
	}
	return 0
}

type benchRounds struct {
	values    []float64
	cpu, wall time.Duration
}

func (r *benchRounds) add(value float64, cpu, wall time.Duration) {
	r.values = append(r.values, value)
	r.cpu += cpu
	r.wall += wall
}

func (r *benchRounds) median() float64 {
	sorted := slices.Sorted(slices.Values(r.values))
	if len(sorted)%2 == 1 {
		return sorted[len(sorted)/2]
	}
	return (sorted[len(sorted)/2-1] + sorted[len(sorted)/2]) / 2
}

type benchClient struct {
	rounds  int
	seed    int64
	scale   float64
	machine string
	client  *clientv3.Client
}

func (b *benchClient) scaled(count int) int { return max(1, int(float64(count)*b.scale)) }

func (b *benchClient) report(name string, parameters map[string]any, rounds *benchRounds, unit string) {
	line := map[string]any{"bench": "etcd", "case": name, "client": "go", "value": rounds.median(), "unit": unit, "cpu_s": rounds.cpu.Seconds(),
		"wall_s": rounds.wall.Seconds(), "rounds": len(rounds.values), "seed": b.seed, "scale": b.scale, "machine": b.machine}
	for key, value := range parameters {
		line[key] = value
	}
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

// machineName is as in bench/measure.c.
func machineName() string {
	model := "unknown"
	text, _ := os.ReadFile("/proc/cpuinfo")
	for _, line := range strings.Split(string(text), "\n") {
		if rest, found := strings.CutPrefix(line, "model name"); found {
			model = strings.TrimLeft(rest, "\t :")
			break
		}
	}
	var info syscall.Sysinfo_t
	_ = syscall.Sysinfo(&info)
	gib := (int64(info.Totalram)*int64(info.Unit) + 1<<29) >> 30
	return fmt.Sprintf("%s, %d processors, %d GiB", model, runtime.NumCPU(), gib)
}

func runEtcdBenchClient(args []string) int {
	flags, _, seed := newFlags("etcd-bench-client")
	rounds := flags.Int("rounds", 5, "the median counts")
	scale := flags.Float64("scale", 1, "of counts")
	_ = flags.Parse(args)
	endpoints := os.Getenv("ETCD_ENDPOINTS")
	if endpoints == "" || flags.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "peers etcd-bench-client: runs under `peers etcd-bench`")
		return 2
	}
	client, err := newEtcdClient(&etcdCluster{}, strings.Split(endpoints, ","))
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-bench-client:", err)
		return 1
	}
	defer client.Close()
	bench := &benchClient{rounds: *rounds, seed: *seed, scale: *scale, machine: machineName(), client: client}
	switch name := flags.Arg(0); {
	case strings.HasPrefix("etcd-watch", name):
		err = bench.watch()
	case strings.HasPrefix("etcd-burst", name):
		for _, count := range []int{1, 100} {
			if err == nil {
				err = bench.burst(count)
			}
		}
	case strings.HasPrefix("etcd-list", name):
		err = bench.list()
	default:
		err = fmt.Errorf("no case %q", name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers etcd-bench-client:", err)
		return 1
	}
	return 0
}

func (b *benchClient) watch() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	count := b.scaled(benchSubstreams)
	if _, err := b.client.Get(ctx, "x"); err != nil { // connected
		return err
	}
	before := privateMemory()
	begin, beginCPU := time.Now(), processCPU()
	var mu sync.Mutex
	arrived := sync.NewCond(&mu)
	events, wanted, ended := 0, 0, 0
	for i := range count {
		channel := b.client.Watch(ctx, fmt.Sprintf(benchWatchKey, i))
		go func() {
			for response := range channel {
				mu.Lock()
				if events += len(response.Events); events >= wanted {
					arrived.Signal()
				}
				mu.Unlock()
			}
			mu.Lock()
			ended++
			arrived.Signal()
			mu.Unlock()
		}()
	}
	open, openCPU := time.Since(begin), processCPU()-beginCPU
	idle := &benchRounds{}
	idle.add(float64(privateMemory()-before)/float64(count), openCPU, open)
	b.report("etcd-watch-idle", map[string]any{"watches": count}, idle, "bytes")
	opening := &benchRounds{}
	opening.add(float64(openCPU.Microseconds())/float64(count), openCPU, open)
	b.report("etcd-watch-open", map[string]any{"watches": count}, opening, "us CPU")
	perEvent := &benchRounds{}
	for range b.rounds {
		mu.Lock()
		wanted = events + b.scaled(benchEvents)
		mu.Unlock()
		begin, beginCPU := time.Now(), processCPU()
		fmt.Printf("{\"put\":%d}\n", b.scaled(benchEvents))
		mu.Lock()
		for events < wanted && ended == 0 {
			arrived.Wait()
		}
		lost := ended
		mu.Unlock()
		if lost > 0 {
			return errors.New("a watch ended")
		}
		cpu := processCPU() - beginCPU
		perEvent.add(float64(cpu.Nanoseconds())/1000/float64(b.scaled(benchEvents)), cpu, time.Since(begin))
	}
	b.report("etcd-watch-event", map[string]any{"watches": count}, perEvent, "us CPU")
	return nil
}

func (b *benchClient) burst(count int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var mu sync.Mutex
	arrived := sync.NewCond(&mu)
	events, wanted, ended := 0, 0, 0
	for range count {
		channel := b.client.Watch(ctx, benchBurstKey[:len("/bench/burst/")], clientv3.WithPrefix())
		go func() {
			for response := range channel {
				mu.Lock()
				if events += len(response.Events); events >= wanted {
					arrived.Signal()
				}
				mu.Unlock()
			}
			mu.Lock()
			ended++
			arrived.Signal()
			mu.Unlock()
		}()
	}
	perEvent := &benchRounds{}
	transactions := max(1, b.scaled(benchBurstTotal)/benchBurstPuts/max(count, 10))
	for range b.rounds {
		mu.Lock()
		wanted += transactions * benchBurstPuts * count
		mu.Unlock()
		begin, beginCPU := time.Now(), processCPU()
		fmt.Printf("{\"txn\":%d}\n", transactions)
		mu.Lock()
		for events < wanted && ended == 0 {
			arrived.Wait()
		}
		lost := ended
		mu.Unlock()
		if lost > 0 {
			return errors.New("a watch ended")
		}
		cpu := processCPU() - beginCPU
		perEvent.add(float64(cpu.Nanoseconds())/1000/float64(transactions*benchBurstPuts*count), cpu, time.Since(begin))
	}
	b.report("etcd-burst", map[string]any{"watches": count, "together": benchBurstPuts}, perEvent, "us CPU")
	return nil
}

func (b *benchClient) list() error {
	perObject, wall := &benchRounds{}, &benchRounds{}
	count := 0
	for range b.rounds {
		runtime.GC()
		begin, beginCPU := time.Now(), processCPU()
		count = 0
		key, end, revision := benchListPrefix, prefixEnd(benchListPrefix), int64(0)
		for {
			answer, err := b.client.Get(context.Background(), key, clientv3.WithRange(end), clientv3.WithLimit(benchPage), clientv3.WithRev(revision))
			if err != nil {
				return err
			}
			count += len(answer.Kvs)
			if !answer.More {
				break
			}
			key, revision = string(answer.Kvs[len(answer.Kvs)-1].Key)+"\x00", answer.Header.Revision
		}
		cpu, took := processCPU()-beginCPU, time.Since(begin)
		perObject.add(float64(cpu.Nanoseconds())/1000/float64(count), cpu, took)
		wall.add(float64(took.Microseconds())/1000, cpu, took)
	}
	parameters := map[string]any{"how": "pages", "objects": count, "bytes": 1024, "wall_ms": wall.median()}
	b.report("etcd-list", parameters, perObject, "us CPU per object")
	return nil
}
