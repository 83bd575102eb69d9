// cacher-bench is k8s.io/apiserver's Cacher at the work of bench_delivery and bench_objects: the same cases, the same pods, JSON lines for
// bench/peer_tables.py. Its storage is a feed of ready-made objects, which favours it: vedette decodes each event in the same cases.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
)

const (
	prefix   = "/pods/"
	inFlight = 8 // the smallest channel of a watcher holds ten
)

var (
	rounds = flag.Int("rounds", 5, "per case; the median counts")
	seed   = flag.Int64("seed", 1, "of all random values")
	scale  = flag.Float64("scale", 1, "shrinks counts")
)

func attributes(object apiruntime.Object) (labels.Set, fields.Set, error) {
	pod := object.(*corev1.Pod)
	return pod.Labels, fields.Set{"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "spec.nodeName": pod.Spec.NodeName, "status.phase": string(pod.Status.Phase)}, nil
}

func newCacherOver(store storage.Interface) *cacher.Cacher {
	c, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage: store, Versioner: store.Versioner(), GroupResource: schema.GroupResource{Resource: "pods"}, EventsHistoryWindow: cacher.DefaultEventFreshDuration, ResourcePrefix: prefix,
		KeyFunc: func(object apiruntime.Object) (string, error) { return storage.NamespaceKeyFunc(prefix, object) }, GetAttrsFunc: attributes,
		IndexerFuncs: storage.IndexerFuncs{"spec.nodeName": func(object apiruntime.Object) string { return object.(*corev1.Pod).Spec.NodeName }},
		Indexers:     &cache.Indexers{storage.FieldIndex("spec.nodeName"): func(object any) ([]string, error) { return []string{object.(*corev1.Pod).Spec.NodeName}, nil }},
		NewFunc:      func() apiruntime.Object { return &corev1.Pod{} }, NewListFunc: func() apiruntime.Object { return &corev1.PodList{} },
		Codec: scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion),
	})
	check(err)
	check(c.Wait(context.Background()))
	return c
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "cacher-bench:", err)
		os.Exit(1)
	}
}

func cpu() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func resident() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	check(err)
	pages, err := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
	check(err)
	return pages * float64(os.Getpagesize())
}

func say(name string, value float64, unit string) {
	line := map[string]any{"server": "apiserver", "case": name, "value": value, "unit": unit}
	text, err := json.Marshal(line)
	check(err)
	fmt.Println(string(text))
}

func scaled(count int) int { return max(1, int(float64(count)**scale)) }

func median(values []float64) float64 {
	for i := range values {
		for j := i; j > 0 && values[j] < values[j-1]; j-- {
			values[j], values[j-1] = values[j-1], values[j]
		}
	}
	return values[len(values)/2]
}

// world is a cacher with watchers, each of which has a goroutine that only receives.
type world struct {
	feed     *feed
	cacher   *cacher.Cacher
	watchers []watch.Interface
	received atomic.Int64
	awaited  atomic.Int64
	all      chan struct{}
}

func newWorld(initial []*corev1.Pod) *world {
	f := newFeed(initial)
	return &world{feed: f, cacher: newCacherOver(f), all: make(chan struct{}, 1)}
}

// open watches one namespace, or all of them: "".
func (w *world) open(namespace string, predicate storage.SelectionPredicate) {
	predicate.GetAttrs = attributes
	ctx, key := request.WithNamespace(context.Background(), namespace), prefix
	if namespace != "" {
		key += namespace + "/"
	}
	watcher, err := w.cacher.Watch(ctx, key, storage.ListOptions{ResourceVersion: strconv.FormatUint(w.feed.revision, 10), Predicate: predicate, Recursive: true})
	check(err)
	w.watchers = append(w.watchers, watcher)
	go func() {
		for event := range watcher.ResultChan() {
			if event.Type == watch.Error {
				check(fmt.Errorf("a watcher was told %v", event.Object))
			}
			if w.received.Add(1) == w.awaited.Load() {
				w.all <- struct{}{}
			}
		}
	}()
}

func (w *world) close() {
	for _, watcher := range w.watchers {
		watcher.Stop()
	}
	w.cacher.Stop()
	w.feed.Stop()
}

// run pushes so many events, eight at most on their way, each of which that many watchers want; the CPU time of it all.
func (w *world) run(pods []*corev1.Pod, events, wanting int) time.Duration {
	start := cpu()
	for at := 0; at < events; at += inFlight {
		now := min(inFlight, events-at)
		w.awaited.Store(w.received.Load() + int64(now*wanting))
		for i := range now {
			pod := *pods[(at+i)%len(pods)] // as a decoder would make it
			w.feed.push(watch.Modified, &pod)
		}
		<-w.all
	}
	return cpu() - start
}

func fanout(count int, pods []*corev1.Pod) {
	w := newWorld(pods)
	for range count {
		w.open("", storage.Everything)
	}
	events := max(64, scaled(2_000_000)/max(count, 100)/inFlight*inFlight)
	w.run(pods, inFlight, count)
	var values []float64
	for range *rounds {
		values = append(values, float64(w.run(pods, events, count).Nanoseconds())/float64(events*count))
	}
	say(fmt.Sprintf("delivery:%d", count), median(values), "ns")
	w.close()
}

func oneOf(count int, by string, pods []*corev1.Pod) {
	w := newWorld(pods)
	for i := range count {
		predicate, namespace := storage.Everything, ""
		switch by {
		case "trigger":
			predicate.Field = fields.OneTermEqualSelector("spec.nodeName", fmt.Sprintf("node-of-%d", i))
			predicate.IndexFields = []string{"spec.nodeName"}
		case "namespace":
			namespace = fmt.Sprintf("space-%d", i)
		case "field":
			predicate.Field = fields.OneTermEqualSelector("status.phase", fmt.Sprintf("Phase%d", i))
		case "label":
			predicate.Label = labels.SelectorFromSet(labels.Set{"app": fmt.Sprintf("of-%d", i)})
		}
		w.open(namespace, predicate)
	}
	wanted := pods[0].DeepCopy()
	switch by {
	case "trigger":
		wanted.Spec.NodeName = "node-of-0"
	case "namespace":
		wanted.Namespace = "space-0"
	case "field":
		wanted.Status.Phase = "Phase0"
	case "label":
		wanted.Labels["app"] = "of-0"
	}
	events := scaled(20_000)
	if by == "field" || by == "label" {
		events = max(64, scaled(400_000)/max(count, 20))
	}
	w.run([]*corev1.Pod{wanted}, inFlight, 1)
	var values []float64
	for range *rounds {
		values = append(values, float64(w.run([]*corev1.Pod{wanted}, events, 1).Nanoseconds())/float64(events)/1000)
	}
	say(fmt.Sprintf("one-of:%s:%d", by, count), median(values), "us")
	w.close()
}

func heap() float64 {
	runtime.GC()
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc + stats.StackInuse)
}

func idle(pods []*corev1.Pod) {
	count := scaled(10_000)
	w := newWorld(pods)
	before, rss := heap(), resident()
	for range count {
		w.open("", storage.Everything)
	}
	say("idle", (heap()-before)/float64(count), "bytes")
	say("idle-rss", (resident()-rss)/float64(count), "bytes")
	w.close()
}

// objects measures memory and reads of so many of them; each name of a case begins with family ("": the names of 100,000 objects).
func objects(size, count int, family string) {
	heap()
	rss := resident()
	random := rand.New(rand.NewSource(*seed))
	pods := make([]*corev1.Pod, count)
	for i := range pods {
		pods[i] = makePod(i, size, random)
	}
	w := newWorld(pods)
	pods = nil
	heap() // what is not needed goes back to the system
	if family == "" {
		say(fmt.Sprintf("object:%d", size), (resident()-rss)/float64(count), "bytes")
	} else {
		say(fmt.Sprintf("scale-memory:%d", count), (resident()-rss)/float64(count), "bytes")
	}
	if size != 1024 {
		w.close()
		return
	}
	list := func(name, key string, label, node string) {
		var values []float64
		times := max(1, 100_000/count)
		for range *rounds {
			predicate := storage.Everything
			predicate.GetAttrs = attributes
			if label != "" {
				predicate.Label = labels.SelectorFromSet(labels.Set{"app": label})
			}
			if node != "" {
				predicate.Field = fields.OneTermEqualSelector("spec.nodeName", node)
				predicate.IndexFields = []string{"spec.nodeName"}
			}
			start := cpu()
			for range times {
				check(w.cacher.GetList(context.Background(), key, storage.ListOptions{ResourceVersion: "0", Predicate: predicate, Recursive: true}, &corev1.PodList{}))
			}
			values = append(values, float64((cpu()-start).Nanoseconds())/1e6/float64(times))
		}
		if family != "" {
			name = fmt.Sprintf("%s-%s:%d", family, name, count)
		}
		say(name, median(values), "ms")
	}
	list("list:all", prefix, "", "")
	list("list:label", prefix, "app-00007", "")
	list("list:namespace", prefix+"ns-00003/", "", "")
	if family == "" {
		list("list:node", prefix, "", "node-00007")
		start := cpu()
		const gets = 20_000
		for i := range gets {
			check(w.cacher.Get(context.Background(), fmt.Sprintf("%sns-%05d/web-7d4b9c6f5-%07d", prefix, i%count/100, i%count), storage.GetOptions{ResourceVersion: "0"}, &corev1.Pod{}))
		}
		say("get", float64((cpu()-start).Nanoseconds())/gets/1000, "us")
	}
	w.close()
}

// ingest is an event that is decoded from its stored form first; a watcher wants one of 64, so that it is known when they are through.
func ingest(size int, name string) {
	random := rand.New(rand.NewSource(*seed))
	pods := make([]*corev1.Pod, 1000)
	for i := range pods {
		pods[i] = makePod(i, max(size, 1024), random)
	}
	w := newWorld(pods)
	predicate := storage.Everything
	predicate.Field = fields.OneTermEqualSelector("spec.nodeName", "the-last")
	predicate.IndexFields = []string{"spec.nodeName"}
	w.open("", predicate)
	encoder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	stored := make([][]byte, 64)
	for i := range stored {
		pod := makePod(i, size, random)
		if i == len(stored)-1 {
			pod.Spec.NodeName = "the-last"
		}
		text := &bytes.Buffer{}
		check(encoder.Encode(pod, text))
		stored[i] = text.Bytes()
	}
	var values []float64
	batches := max(1, scaled(16_384)/len(stored))
	for range *rounds + 1 {
		start := cpu()
		for range batches {
			w.awaited.Store(w.received.Load() + 1)
			for _, text := range stored {
				pod := &corev1.Pod{}
				_, _, err := encoder.Decode(text, nil, pod)
				check(err)
				w.feed.push(watch.Modified, pod)
			}
			<-w.all
		}
		values = append(values, float64((cpu()-start).Nanoseconds())/1000/float64(batches*len(stored)))
	}
	say(name, median(values[1:]), "us")
	w.close()
}

// stalled is the 99th percentile of the time until all of 16 watchers have an event, beside 1,000 that take nothing, over that without them.
func stalled(pods []*corev1.Pod) {
	const healthy, stuck = 16, 1000
	measure := func(w *world) float64 {
		times := make([]float64, scaled(2000))
		for i := range times {
			start := time.Now()
			w.run(pods[i%len(pods):i%len(pods)+1], 1, healthy)
			times[i] = float64(time.Since(start).Nanoseconds()) / 1000
		}
		sort.Float64s(times)
		return times[len(times)*99/100]
	}
	var ratios []float64
	for range *rounds {
		w := newWorld(pods)
		for range healthy {
			w.open("", storage.Everything)
		}
		alone := measure(w)
		for range stuck {
			_, err := w.cacher.Watch(context.Background(), prefix, storage.ListOptions{ResourceVersion: strconv.FormatUint(w.feed.revision, 10), Predicate: storage.Everything, Recursive: true})
			check(err)
		}
		w.run(pods, 64, healthy)
		ratios = append(ratios, measure(w)/alone)
		w.close()
	}
	say("stalled", median(ratios), "x")
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		serve(os.Args[2:])
	}
	if len(os.Args) > 1 && os.Args[1] == "fill" {
		fill(os.Args[2:])
		return
	}
	flag.Parse()
	wanted := func(name string) bool {
		for _, argument := range flag.Args() {
			if strings.HasPrefix(name, argument) {
				return true
			}
		}
		return flag.NArg() == 0
	}
	random := rand.New(rand.NewSource(*seed))
	pods := make([]*corev1.Pod, 1000)
	for i := range pods {
		pods[i] = makePod(i, 1024, random)
	}
	for _, count := range []int{1, 10, 100, 1000, 10000} {
		if wanted("delivery") {
			fanout(count, pods)
		}
	}
	for _, by := range []string{"trigger", "namespace", "field", "label"} {
		for _, count := range []int{10, 1000, 10000} {
			if wanted("one-of") {
				oneOf(count, by, pods)
			}
		}
	}
	if wanted("idle") {
		idle(pods)
	}
	if wanted("stalled") {
		stalled(pods)
	}
	if wanted("ingest") {
		ingest(1024, "ingest:64")
	}
	for _, size := range []int{256, 512, 1024, 2048, 4096, 8192, 16384} {
		if wanted("ingest-size") {
			ingest(size, fmt.Sprintf("ingest-size:%d", size))
		}
	}
	for _, size := range []int{1024, 4096} {
		if wanted("object") || size == 1024 && (wanted("list") || wanted("get")) {
			objects(size, scaled(100_000), "")
		}
	}
	for count := 1000; count <= scaled(1_000_000); count *= 10 {
		if wanted("scale") {
			objects(1024, count, "scale")
		}
	}
}
