package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

// runEtcdLoad loads an etcd, real or ours, with clientv3 and prints one JSON line for each case: rate, latencies, and the server's CPU and memory when its
// process id is given. The same program for both sides of a comparison.
func runEtcdLoad(args []string) int {
	flags, _, _ := newFlags("etcd-load")
	endpoint := flags.String("endpoint", os.Getenv("ETCD_ENDPOINTS"), "of the server")
	name := flags.String("name", "", "of the server, for the output")
	pid := flags.Int("pid", 0, "of the server")
	cases := flags.String("cases", "put:1,put:64,put:256,range:64,txn:64,list,watch:1,watch:100,watch:1000", "what to measure")
	seconds := flags.Float64("seconds", 3, "for each")
	as := flags.String("as", "", "what to call the case in the output, if not by its name")
	size := flags.Int("size", 1024, "of values, bytes")
	_ = flags.Parse(args)
	if *endpoint == "" {
		fmt.Fprintln(os.Stderr, "usage: peers etcd-load --endpoint ADDR [--pid PID] [--cases LIST] [--seconds S]")
		return 2
	}
	load := &etcdLoad{endpoint: strings.Split(*endpoint, ",")[0], pid: *pid, length: time.Duration(*seconds * float64(time.Second)), value: make([]byte, *size)}
	_, _ = rand.Read(load.value)
	for _, which := range strings.Split(*cases, ",") {
		kind, number, _ := strings.Cut(which, ":")
		count, _ := strconv.Atoi(number)
		figures, err := load.run(kind, max(count, 1))
		if err != nil {
			fmt.Fprintf(os.Stderr, "peers etcd-load: %s: %v\n", which, err)
			return 1
		}
		figures["server"], figures["case"] = *name, which
		if *as != "" {
			figures["case"] = *as
		}
		line, _ := json.Marshal(figures)
		fmt.Println(string(line))
	}
	return 0
}

type etcdLoad struct {
	endpoint string
	pid      int
	length   time.Duration
	value    []byte
}

// usage is the server's CPU time (seconds, user and system) and RSS (KiB).
func (l *etcdLoad) usage() (cpu float64, rss int) {
	if l.pid == 0 {
		return 0, 0
	}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", l.pid)); err == nil {
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		user, _ := strconv.ParseFloat(fields[11], 64)
		system, _ := strconv.ParseFloat(fields[12], 64)
		cpu = (user + system) / 100
	}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.pid)); err == nil {
		for _, line := range strings.Split(string(text), "\n") {
			if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
				rss, _ = strconv.Atoi(strings.Fields(rest)[0])
			}
		}
	}
	return cpu, rss
}

func (l *etcdLoad) client() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{l.endpoint}, DialTimeout: 5 * time.Second})
}

// clients that are connected, so that no case measures that.
func (l *etcdLoad) clients(count int) ([]*clientv3.Client, error) {
	clients := make([]*clientv3.Client, 0, count)
	for range count {
		client, err := l.client()
		if err == nil {
			clients = append(clients, client)
			_, err = client.Get(context.Background(), "load/0")
		}
		if err != nil {
			closeAll(clients)
			return nil, err
		}
	}
	return clients, nil
}

func closeAll(clients []*clientv3.Client) {
	for _, client := range clients {
		client.Close()
	}
}

func round(value float64, digits float64) float64 { return float64(int64(value*digits+0.5)) / digits }

func (l *etcdLoad) run(kind string, count int) (map[string]any, error) {
	switch kind {
	case "put", "range", "txn", "mixed":
		return l.calls(kind, count)
	case "steady":
		return l.steady(count)
	case "list":
		return l.list()
	case "fill":
		return l.fill(count)
	case "bulk":
		return l.bulk(count)
	case "behind":
		return l.behind(count)
	case "usage":
		_, rss := l.usage()
		return map[string]any{"rss_kib": rss}, nil
	case "watch":
		return l.watch(count, nil, l.putOneByOne)
	case "piled":
		return l.watch(count, []clientv3.OpOption{clientv3.WithPrefix()}, l.putTogether)
	}
	return nil, fmt.Errorf("unknown case")
}

// calls: count goroutines over at most 8 connections, one call after the other each.
func (l *etcdLoad) calls(kind string, count int) (map[string]any, error) {
	clients, err := l.clients(min(count, 8))
	if err != nil {
		return nil, err
	}
	defer closeAll(clients)
	if _, err := clients[0].Put(context.Background(), "load/0", string(l.value)); err != nil && kind != "behind" {
		return nil, err
	}
	var stop atomic.Bool
	var failed atomic.Int64
	latencies := make([][]time.Duration, count)
	var group sync.WaitGroup
	value := string(l.value)
	cpu, _ := l.usage()
	began := time.Now()
	for i := 0; i < count; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			client := clients[i%len(clients)]
			for n := 0; !stop.Load(); n++ {
				key := fmt.Sprintf("load/%d", (i*7919+n)%10000)
				start := time.Now()
				var err error
				switch kind {
				case "put", "behind":
					_, err = client.Put(context.Background(), key, value)
				case "range":
					_, err = client.Get(context.Background(), "load/0")
				case "txn":
					_, err = client.Txn(context.Background()).If(clientv3.Compare(clientv3.ModRevision(key), ">", -1)).Then(clientv3.OpPut(key, value)).Else(clientv3.OpGet(key)).Commit()
				}
				if err != nil {
					failed.Add(1)
				}
				latencies[i] = append(latencies[i], time.Since(start))
			}
		}(i)
	}
	pause(l.length)
	stop.Store(true)
	group.Wait()
	elapsed := time.Since(began)
	after, rss := l.usage()
	all := sorted(latencies)
	if failed.Load() > 0 && kind != "behind" {
		return nil, fmt.Errorf("%d calls failed", failed.Load())
	}
	return map[string]any{"failed": failed.Load(), "per_s": int(float64(len(all)) / elapsed.Seconds()), "p50_us": all[len(all)/2].Microseconds(), "p99_us": all[len(all)*99/100].Microseconds(),
		"cpu_us": round((after-cpu)*1e6/float64(len(all)), 10), "rss_kib": rss}, nil
}

// steady: count goroutines that together put 5,000 times a second, whatever the server takes: each has its turn by the clock, and a call's time is from when its turn
// was. So neither the server nor the clients are the bottleneck, and the latencies are those of the server rather than of goroutines that wait for each other.
func (l *etcdLoad) steady(count int) (map[string]any, error) {
	const rate = 5000
	clients, err := l.clients(min(count, 8))
	if err != nil {
		return nil, err
	}
	defer closeAll(clients)
	interval := time.Duration(count) * time.Second / rate
	latencies := make([][]time.Duration, count)
	value := string(l.value)
	var failed atomic.Int64
	var group sync.WaitGroup
	cpu, _ := l.usage()
	began := time.Now()
	for i := 0; i < count; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			turn := began.Add(time.Duration(i) * interval / time.Duration(count))
			for n := 0; turn.Sub(began) < l.length; n++ {
				pause(time.Until(turn))
				if _, err := clients[i%len(clients)].Put(context.Background(), fmt.Sprintf("load/%d", (i*7919+n)%10000), value); err != nil {
					failed.Add(1)
				}
				latencies[i] = append(latencies[i], time.Since(turn))
				turn = turn.Add(interval)
			}
		}()
	}
	group.Wait()
	elapsed := time.Since(began)
	after, rss := l.usage()
	all := sorted(latencies)
	if failed.Load() > 0 {
		return nil, fmt.Errorf("%d calls failed", failed.Load())
	}
	return map[string]any{"per_s": int(float64(len(all)) / elapsed.Seconds()), "p50_us": all[len(all)/2].Microseconds(), "p99_us": all[len(all)*99/100].Microseconds(),
		"cpu_us": round((after-cpu)*1e6/float64(len(all)), 10), "rss_kib": rss}, nil
}

func sorted(lists [][]time.Duration) []time.Duration {
	var all []time.Duration
	for _, list := range lists {
		all = append(all, list...)
	}
	slices.Sort(all)
	return all
}

// inBatches calls put for [from, to) of size each, up to count, from that many workers at once.
func inBatches(workers, size, count int, put func(from, to int) error) error {
	var group sync.WaitGroup
	var failed atomic.Int64
	for worker := range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for from := worker * size; from < count; from += workers * size {
				if put(from, min(from+size, count)) != nil {
					failed.Add(1)
				}
			}
		}()
	}
	group.Wait()
	if failed.Load() > 0 {
		return fmt.Errorf("%d calls failed", failed.Load())
	}
	return nil
}

// fill puts count keys.
func (l *etcdLoad) fill(count int) (map[string]any, error) {
	client, err := l.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	began := time.Now()
	if err := inBatches(64, 1, count, func(from, _ int) error {
		_, err := client.Put(context.Background(), fmt.Sprintf("fill/%08d", from), string(l.value))
		return err
	}); err != nil {
		return nil, err
	}
	_, rss := l.usage()
	return map[string]any{"seconds": round(time.Since(began).Seconds(), 1000), "rss_kib": rss}, nil
}

// bulk puts count keys, 100 in a transaction, and compacts.
func (l *etcdLoad) bulk(count int) (map[string]any, error) {
	client, err := l.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	began := time.Now()
	if err := inBatches(16, 100, count, func(from, to int) error {
		var ops []clientv3.Op
		for i := from; i < to; i++ {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("bulk/%08d", i), string(l.value)))
		}
		_, err := client.Txn(context.Background()).Then(ops...).Commit()
		return err
	}); err != nil {
		return nil, err
	}
	answer, err := client.Get(context.Background(), "bulk/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err == nil && answer.Count != int64(count) {
		err = fmt.Errorf("%d keys", answer.Count)
	}
	if err == nil {
		_, err = client.Compact(context.Background(), answer.Header.Revision, clientv3.WithCompactPhysical())
	}
	_, rss := l.usage()
	return map[string]any{"seconds": round(time.Since(began).Seconds(), 1000), "rss_kib": rss}, err
}

// behind: puts of 8 clients while count watchers stand 20,000 revisions and more behind and do not read.
func (l *etcdLoad) behind(count int) (map[string]any, error) {
	client, err := l.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	first, err := client.Put(context.Background(), "load/0", "first")
	if err == nil {
		_, err = ownFill(context.Background(), client, 20000, string(l.value))
	}
	if err != nil {
		return nil, err
	}
	_, before := l.usage()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var s *side
	for i := 0; i < count; i++ {
		if i%100 == 0 {
			if s, err = dialSide("behind", l.endpoint); err != nil {
				return nil, err
			}
			defer s.connection.Close()
		}
		stream, err := s.watch.Watch(ctx)
		if err == nil {
			err = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0},
				StartRevision: first.Header.Revision}}})
		}
		if err != nil {
			return nil, err
		}
	}
	figures, err := l.calls("behind", 8) // a call that fails, or takes long, is a figure here
	if err == nil {
		figures["rss_more_kib"] = figures["rss_kib"].(int) - before
	}
	return figures, err
}

// list reads 10,000 keys at once, several times.
func (l *etcdLoad) list() (map[string]any, error) {
	if _, err := l.fill(10000); err != nil {
		return nil, err
	}
	client, err := l.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	cpu, _ := l.usage()
	var times []time.Duration
	for began := time.Now(); time.Since(began) < l.length; {
		start := time.Now()
		answer, err := client.Get(context.Background(), "fill/", clientv3.WithPrefix(), clientv3.WithLimit(10000))
		if err != nil || len(answer.Kvs) != 10000 {
			return nil, fmt.Errorf("%v", err)
		}
		times = append(times, time.Since(start))
	}
	after, rss := l.usage()
	slices.Sort(times)
	return map[string]any{"p50_ms": round(float64(times[len(times)/2].Microseconds())/1000, 100), "cpu_ms": round((after-cpu)*1e3/float64(len(times)), 100), "rss_kib": rss}, nil
}

// watch: count watchers of one key, or of what begins with it, on at most 100 streams.
func (l *etcdLoad) watch(count int, options []clientv3.OpOption, put func(ctx context.Context, clients []*clientv3.Client) int64) (map[string]any, error) {
	streams := min(count, 100)
	clients, err := l.clients(min(streams, 10))
	if err != nil {
		return nil, err
	}
	defer closeAll(clients)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var delivered atomic.Int64
	for i := 0; i < count; i++ {
		// A stream for each value of this key: clientv3 shares streams between equal metadata.
		streamCtx := metadata.AppendToOutgoingContext(ctx, "load-stream", strconv.Itoa(i%streams))
		channel := clients[i%len(clients)].Watch(streamCtx, "watched", options...)
		go func() {
			for response := range channel {
				delivered.Add(int64(len(response.Events)))
			}
		}()
	}
	pause(500 * time.Millisecond)
	cpu, _ := l.usage()
	began := time.Now()
	puts := put(ctx, clients)
	wanted := puts * int64(count)
	pollUntil(5*time.Minute, func() bool { return delivered.Load() >= wanted })
	elapsed := time.Since(began)
	after, rss := l.usage()
	if delivered.Load() < wanted {
		return nil, fmt.Errorf("%d of %d events arrived", delivered.Load(), wanted)
	}
	return map[string]any{"events_per_s": int(float64(wanted) / elapsed.Seconds()), "puts_per_s": int(float64(puts) / elapsed.Seconds()),
		"cpu_us_per_event": round((after-cpu)*1e6/float64(wanted), 100), "rss_kib": rss}, nil
}

// putOneByOne: 8 workers, one put after the other each.
func (l *etcdLoad) putOneByOne(ctx context.Context, clients []*clientv3.Client) int64 {
	began := time.Now()
	var puts atomic.Int64
	var group sync.WaitGroup
	for worker := range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for time.Since(began) < l.length {
				if _, err := clients[worker%len(clients)].Put(ctx, "watched", string(l.value)); err == nil {
					puts.Add(1)
				}
			}
		}()
	}
	group.Wait()
	return puts.Load()
}

// putTogether: transactions of 100 puts, so that each watcher has 100 events at once; ten of them in three seconds' worth, at the watchers' pace or not.
func (l *etcdLoad) putTogether(ctx context.Context, clients []*clientv3.Client) int64 {
	var puts int64
	for range max(int(10*l.length/(3*time.Second)), 1) {
		var ops []clientv3.Op
		for i := range 100 {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("watched/%d", i), string(l.value)))
		}
		if _, err := clients[0].Txn(ctx).Then(ops...).Commit(); err == nil {
			puts += int64(len(ops))
		}
	}
	return puts
}
