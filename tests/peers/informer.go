package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

const watchListEnvironment = "KUBE_FEATURE_WatchListClient"

// useWatchList makes client-go start its informers with or without WatchList. The feature gate is read from the environment when
// the process starts, so the other choice means to start again.
func useWatchList(want bool) error {
	text := fmt.Sprint(want)
	if os.Getenv(watchListEnvironment) == text {
		return nil
	}
	if err := os.Setenv(watchListEnvironment, text); err != nil {
		return err
	}
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(executable, os.Args, os.Environ())
}

// informerCase is one informer behind its own cutting proxy, and everything it was told.
type informerCase struct {
	name      string
	watchList bool // expected way to start
	filter    int  // number of the recorder's filter, -1: none
	recorder  *recorder
	proxy     *cuttingProxy
	informer  cache.SharedIndexInformer
	factOf    func(kind string, obj any) (fact, bool)

	mu           sync.Mutex
	syncRevision uint64 // revision of the initial state, as seen on the wire
	wire         []fact // events after the initial state, as the reflector got them; nil when the client cannot be tapped
	tapped       bool
	starting     bool // inside the initial events of a WatchList
	initial      map[string]fact
	handled      []fact
	oddities     []string
	watchErrors  map[string]int

	startLists, startWatchLists int
}

func (c *informerCase) odd(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.oddities = append(c.oddities, fmt.Sprintf(format, args...))
}

// tapWatch hands events on and notes each.
type tapWatch struct {
	inner watch.Interface
	out   chan watch.Event
	quit  chan struct{}
	once  sync.Once
}

func (t *tapWatch) ResultChan() <-chan watch.Event { return t.out }

func (t *tapWatch) Stop() {
	t.once.Do(func() { close(t.quit) })
	t.inner.Stop()
}

func (c *informerCase) tap(inner watch.Interface, initialEvents bool) watch.Interface {
	t := &tapWatch{inner: inner, out: make(chan watch.Event), quit: make(chan struct{})}
	c.mu.Lock()
	c.starting = initialEvents
	c.mu.Unlock()
	go func() {
		defer close(t.out)
		for event := range inner.ResultChan() {
			select {
			case t.out <- event:
				c.onWire(event)
			case <-t.quit:
				return
			}
		}
	}()
	return t
}

func (c *informerCase) onWire(event watch.Event) {
	obj, isUnstructured := event.Object.(*unstructured.Unstructured)
	if event.Type == watch.Error || !isUnstructured {
		c.odd("wire: %s %v", event.Type, apierrors.FromObject(event.Object))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case event.Type == watch.Bookmark:
		if obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			c.starting = false
			c.syncRevision = parseRevision(obj.GetResourceVersion())
			c.wire = nil
		}
	case c.starting:
	default:
		c.wire = append(c.wire, factOf(string(event.Type), obj))
	}
}

// listWatch makes a tapped ListWatch over the dynamic client; declines: the client says it has no WatchList semantics.
func (c *informerCase) listWatch(client dynamic.Interface, resource schema.GroupVersionResource, selector string, declines bool) cache.ListerWatcher {
	c.tapped = true
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			list, err := client.Resource(resource).List(ctx, options)
			if err == nil {
				c.mu.Lock()
				c.syncRevision = parseRevision(list.GetResourceVersion())
				c.mu.Unlock()
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			inner, err := client.Resource(resource).Watch(ctx, options)
			if err != nil {
				return nil, err
			}
			return c.tap(inner, options.SendInitialEvents != nil && *options.SendInitialEvents), nil
		},
	}
	if declines {
		return cache.ToListWatcherWithWatchListSemantics(lw, declining{})
	}
	return cache.ToListWatcherWithWatchListSemantics(lw, client)
}

// declining is a client without WatchList semantics.
type declining struct{}

func (declining) IsWatchListSemanticsUnSupported() bool { return true }

func unstructuredFact(kind string, obj any) (fact, bool) {
	from, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fact{}, false
	}
	return factOf(kind, from), true
}

// attach adds the handler that notes what a user of the informer sees.
func (c *informerCase) attach() error {
	c.initial = map[string]fact{}
	c.watchErrors = map[string]int{}
	err := c.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		reason := string(apierrors.ReasonForError(err))
		var short *cache.VeryShortWatchError
		if errors.As(err, &short) {
			reason = "VeryShortWatch"
		} else if reason == "" {
			reason = err.Error()
		}
		c.mu.Lock()
		c.watchErrors[reason]++
		c.mu.Unlock()
	})
	if err != nil {
		return err
	}
	note := func(kind string, obj any) {
		f, ok := c.factOf(kind, obj)
		if !ok {
			c.odd("%s handler got %T", kind, obj)
			return
		}
		c.mu.Lock()
		c.handled = append(c.handled, f)
		c.mu.Unlock()
	}
	_, err = c.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			if !isInInitialList {
				note("ADDED", obj)
				return
			}
			f, ok := c.factOf("ADDED", obj)
			if !ok {
				c.odd("initial list has %T", obj)
				return
			}
			c.mu.Lock()
			if _, twice := c.initial[f.key]; twice {
				c.oddities = append(c.oddities, "twice in the initial list: "+f.key)
			}
			c.initial[f.key] = f
			c.mu.Unlock()
		},
		UpdateFunc: func(before, obj any) {
			note("MODIFIED", obj)
		},
		DeleteFunc: func(obj any) { note("DELETED", obj) },
	})
	return err
}

func (c *informerCase) handledCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.handled)
}

// synced is called once the informer has its initial state: from now on no LIST and no WatchList may be seen.
func (c *informerCase) synced(report *report) {
	c.startLists, c.startWatchLists, _, _ = c.proxy.counts()
	if c.watchList {
		report.check(c.startWatchLists >= 1 && c.startLists == 0, "R-330", "%s: should have started by WatchList, sent %d LIST and %d WatchList",
			c.name, c.startLists, c.startWatchLists)
	} else {
		report.check(c.startLists >= 1 && c.startWatchLists == 0, "H-402", "%s: should have started by LIST, sent %d LIST and %d WatchList",
			c.name, c.startLists, c.startWatchLists)
	}
	c.proxy.armed.Store(true)
}

// verify compares all this informer was told with the recorder; the recorder has stopped or stands still.
func (c *informerCase) verify(report *report, final uint64) map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range c.oddities {
		report.violation("informer", "%s: %s", c.name, text)
	}
	lists, watchLists, watches, cuts := c.proxy.counts()
	report.check(lists == c.startLists && watchLists == c.startWatchLists, "resumable",
		"%s: %d LIST and %d WatchList after the initial state; a cut watch must resume (watch errors %v; last requests %v)",
		c.name, lists-c.startLists, watchLists-c.startWatchLists, c.watchErrors, c.proxy.lastRequests(4))
	if c.tapped {
		report.check(c.syncRevision >= c.recorder.start, "R-619", "%s: initial state has revision %d, the store was at %d before", c.name, c.syncRevision, c.recorder.start)
	} else if c.syncRevision == 0 {
		// Not tapped: the newest initial object, or what the first handled event tells, bounds it; every event after that must be there.
		for _, f := range c.initial {
			c.syncRevision = max(c.syncRevision, f.revision)
		}
		for revision := c.syncRevision; len(c.handled) > 0; {
			later := c.recorder.expected(c.filter, revision)
			if len(later) == 0 || len(later) <= len(c.handled) {
				break
			}
			revision = later[len(later)-len(c.handled)-1].revision
			c.syncRevision = revision
		}
	}
	compareStates(report, "R-481", c.name+": initial state", c.recorder.expectedState(c.filter, c.syncRevision), c.initial)
	want := c.recorder.expected(c.filter, c.syncRevision)
	if c.tapped {
		compareSequences(report, c.name+" (on the wire)", want, c.wire)
	}
	compareSequences(report, c.name+" (handlers)", want, c.handled)
	store := map[string]fact{}
	for _, item := range c.informer.GetStore().List() {
		if f, ok := c.factOf("ADDED", item); ok {
			store[f.key] = f
		}
	}
	compareStates(report, "informer store", c.name, c.recorder.expectedState(c.filter, final), store)
	return map[string]any{"cuts": cuts, "watches": watches, "events": len(c.handled), "initial": len(c.initial), "objects": len(store), "watchErrors": c.watchErrors}
}

// awaitSync waits for all informers' initial states.
func awaitSync(report *report, cases []*informerCase, timeout time.Duration) bool {
	stop := make(chan struct{})
	timer := time.AfterFunc(timeout, func() { close(stop) })
	defer timer.Stop()
	for _, c := range cases {
		if !report.check(cache.WaitForCacheSync(stop, c.informer.HasSynced), "H-403", "%s: not synced after %v; requests %v, watch errors %v",
			c.name, timeout, c.proxy.lastRequests(5), c.watchErrors) {
			return false
		}
	}
	return true
}

// awaitEvents waits until each informer has handled as many events as it must (or more), or until nothing moves any more.
func awaitEvents(cases []*informerCase, timeout time.Duration) {
	for _, c := range cases {
		c.mu.Lock()
		from := c.syncRevision
		c.mu.Unlock()
		tapped := c.tapped
		last, lastChange := -1, time.Now()
		for isOver := false; !isOver; {
			isOver = pollUntil(timeout, func() bool {
				count := c.handledCount()
				if tapped && count >= len(c.recorder.expected(c.filter, from)) {
					return true
				}
				if count != last {
					last, lastChange = count, time.Now()
				}
				return !tapped && last >= 0 && c.caughtUp() || time.Since(lastChange) > timeout
			})
		}
	}
}

// caughtUp: the last event handled is the last one there is.
func (c *informerCase) caughtUp() bool {
	all := c.recorder.expected(c.filter, 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(all) == 0 || (len(c.handled) > 0 && c.handled[len(c.handled)-1].revision >= all[len(all)-1].revision)
}

func factsOfList(items []unstructured.Unstructured) map[string]fact {
	facts := make(map[string]fact, len(items))
	for i := range items {
		f := factOf("ADDED", &items[i])
		facts[f.key] = f
	}
	return facts
}

// checkLists compares lists of the server, unpaged, paged and at exact earlier revisions, with the recorder.
func checkLists(ctx context.Context, report *report, client dynamic.Interface, load *workload, r *recorder, revisions []uint64) {
	list, err := client.Resource(load.resource).List(ctx, metav1.ListOptions{})
	if report.check(err == nil, "R-151", "list %s: %v", load.name, err) {
		compareStates(report, "R-151", load.name+": list", r.stateAt(parseRevision(list.GetResourceVersion())), factsOfList(list.Items))
	}
	for _, revision := range revisions {
		list, err := client.Resource(load.resource).List(ctx, metav1.ListOptions{ResourceVersion: fmt.Sprint(revision), ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		if !report.check(err == nil, "R-151", "list %s at exactly %d: %v", load.name, revision, err) {
			continue
		}
		report.check(parseRevision(list.GetResourceVersion()) == revision, "R-472", "list %s at exactly %d answers revision %s", load.name, revision, list.GetResourceVersion())
		compareStates(report, "R-472", fmt.Sprintf("%s: list at exactly %d", load.name, revision), r.stateAt(revision), factsOfList(list.Items))
	}
}

// pagedList lists through client-go's pager while writers write; all pages must be one state.
func pagedList(ctx context.Context, client dynamic.Interface, load *workload, size int64) (revision uint64, facts map[string]fact, pages int, err error) {
	facts = map[string]fact{}
	revisions := map[string]bool{}
	p := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		list, err := client.Resource(load.resource).List(ctx, options)
		if err == nil {
			pages++
			revisions[list.GetResourceVersion()] = true
			revision = parseRevision(list.GetResourceVersion())
		}
		return list, err
	})
	p.PageSize = size
	p.FullListIfExpired = false
	err = p.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		f := factOf("ADDED", obj.(*unstructured.Unstructured))
		if _, twice := facts[f.key]; twice {
			return fmt.Errorf("%s is on two pages", f.key)
		}
		facts[f.key] = f
		return nil
	})
	if err == nil && len(revisions) != 1 {
		err = fmt.Errorf("pages of one list have %d different revisions", len(revisions))
	}
	return
}

func runInformer(args []string) int {
	flags, verbose, seed := newFlags("informer")
	server := flags.String("server", "", "URL of the server")
	custom := flags.String("custom", "example.com/v1/widgets/Widget", "custom resource to use beside configmaps: GROUP/VERSION/PLURAL/KIND")
	objects := flags.Int("objects", 5000, "objects, over both resources")
	changes := flags.Int("changes", 20000, "changes, over both resources")
	writerCount := flags.Int("writers", 8, "writers per resource")
	cutMin := flags.Int("cut-min", 100, "cut a watch after at least this many events")
	cutMax := flags.Int("cut-max", 500, "cut a watch after at most this many events")
	watchList := flags.Bool("watchlist", true, "let client-go use WatchList (its default)")
	_ = flags.Parse(args)
	if err := useWatchList(*watchList); err != nil {
		fmt.Fprintln(os.Stderr, "peers informer:", err)
		return 2
	}
	setVerbose(*verbose)
	report := newReport("informer")
	target, err := addressOf(*server)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers informer:", err)
		return 2
	}
	customLoad, err := customWorkload(*custom)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers informer:", err)
		return 2
	}
	if err := informerRun(report, *server, target, []*workload{configMapWorkload(), customLoad}, *objects/2, *changes/2, *writerCount,
		*cutMin, *cutMax, *watchList, *seed); err != nil {
		report.violation("setup", "%v", err)
	}
	return report.finish()
}

func informerRun(report *report, server, target string, loads []*workload, objects, changes, writerCount, cutMin, cutMax int,
	watchList bool, seed int64) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	direct, err := dynamic.NewForConfig(restConfig(server))
	if err != nil {
		return err
	}
	namespaces := []string{"peers-informer", "peers-informer-b"}
	if err := ensureNamespaces(ctx, direct, namespaces...); err != nil {
		return err
	}
	ours := func(key string) bool { return strings.HasPrefix(key, "peers-informer") }
	isRed := func(obj *unstructured.Unstructured) bool { return obj.GetLabels()[colourLabel] == "red" }
	var value atomic.Int64
	var cases []*informerCase
	var writers [][]*writer
	var recorders []*recorder
	for n, load := range loads {
		if err := removeLeftovers(ctx, direct, load.resource, namespaces...); err != nil {
			return err
		}
		r, err := startRecorder(ctx, report, load.name, server, load.path, isRed)
		if err != nil {
			return err
		}
		defer r.stop()
		recorders = append(recorders, r)
		set := makeWriters(report, direct, load, namespaces, objects, writerCount, seed+int64(n), &value)
		writers = append(writers, set)
		started := time.Now()
		inParallel(set, func(w *writer) { // two of three objects exist before the informers start
			for i := range w.names {
				if i%3 != 0 {
					w.create(ctx, i)
				}
			}
		})
		report.figure(load.name+"CreatesPerSecond", int(float64(objects*2/3)/time.Since(started).Seconds()))
		if report.violated() {
			return fmt.Errorf("creating %s failed", load.name)
		}

		type variant struct {
			name     string
			selector string
			filter   int
			declines bool
			factory  bool
		}
		for _, v := range []variant{
			{name: "watchlist", filter: -1},
			{name: "list", filter: -1, declines: true},
			{name: "red", selector: colourLabel + "=red", filter: 0},
			{name: "factory", filter: -1, factory: true},
		} {
			c := &informerCase{name: load.name + "/" + v.name, watchList: watchList && !v.declines, filter: v.filter, recorder: r, factOf: unstructuredFact}
			if c.proxy, err = newCuttingProxy(target, cutMin, cutMax, seed+int64(len(cases))*7919); err != nil {
				return err
			}
			defer c.proxy.close()
			client, err := dynamic.NewForConfig(restConfig(c.proxy.url()))
			if err != nil {
				return err
			}
			if v.factory {
				c.informer = dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(load.resource).Informer()
			} else {
				c.informer = cache.NewSharedIndexInformer(c.listWatch(client, load.resource, v.selector, v.declines), &unstructured.Unstructured{}, 0, cache.Indexers{})
			}
			if err := c.attach(); err != nil {
				return err
			}
			cases = append(cases, c)
		}
	}

	// The initial states are taken while writers write.
	var writing sync.WaitGroup
	started := time.Now()
	resume := make(chan struct{}) // writers pause until every informer is synced, so that most changes meet cut connections
	for _, set := range writers {
		for _, w := range set {
			writing.Add(1)
			go func() {
				defer writing.Done()
				for i := range w.names {
					if w.current[i] == nil {
						w.create(ctx, i)
					}
				}
				count := changes / writerCount
				for n := 0; n < count && !report.violated(); n++ {
					if n == count/4 {
						<-resume
					}
					w.change(ctx, w.random.Intn(len(w.names)))
				}
			}()
		}
	}
	for _, c := range cases {
		go c.informer.RunWithContext(ctx)
	}
	syncStarted := time.Now()
	if !awaitSync(report, cases, 60*time.Second) {
		cancel()
		return nil
	}
	report.figure("allSyncedMilliseconds", time.Since(syncStarted).Milliseconds())
	for _, c := range cases {
		c.synced(report)
	}
	close(resume)
	var pagedMutex sync.Mutex
	type pagedResult struct {
		load     int
		revision uint64
		facts    map[string]fact
	}
	var paged []pagedResult
	for n, load := range loads {
		writing.Add(1)
		go func() {
			defer writing.Done()
			for round := 0; round < 3; round++ {
				revision, facts, pages, err := pagedList(ctx, direct, load, int64(max(20, objects/10)))
				if !report.check(err == nil, "R-151", "paged list of %s while others write: %v", load.name, err) {
					return
				}
				report.check(pages > 1 || len(facts) <= max(20, objects/10), "R-156", "list of %d %s came in one page", len(facts), load.name)
				pagedMutex.Lock()
				paged = append(paged, pagedResult{n, revision, facts})
				pagedMutex.Unlock()
			}
		}()
	}
	writing.Wait()
	seconds := time.Since(started).Seconds()

	// A last write that every informer sees: what comes before it in any stream is all there is.
	for n := range loads {
		w := writers[n][0]
		if w.current[0] == nil {
			w.create(ctx, 0)
		}
		if w.current[0] == nil {
			return nil // already reported
		}
		for _, colour := range []string{"blue", "red"} {
			next := w.current[0].DeepCopy()
			next.SetLabels(map[string]string{colourLabel: colour, "last": colour, "made-by": "peers"})
			obj, err := w.resource(0).Update(ctx, next, metav1.UpdateOptions{})
			if !report.check(err == nil, "R-662", "last update: %v", err) {
				return nil
			}
			w.acknowledge(0, obj)
		}
	}
	for _, c := range cases {
		c.proxy.armed.Store(false)
	}
	total := 0
	for n, load := range loads {
		r := recorders[n]
		last := uint64(0)
		var revisions []uint64
		for i, w := range writers[n] {
			for j, a := range w.acks {
				last = max(last, a.revision)
				if a.revision != 0 && (i+j)%max(1, len(w.acks)/2) == len(w.acks)/4 && len(revisions) < 6 {
					revisions = append(revisions, a.revision)
				}
			}
		}
		if err := r.waitFor(last, 30*time.Second); err != nil {
			report.violation("reliable", "%v", err)
			continue
		}
		checkLists(ctx, report, direct, load, r, revisions)
	}
	awaitEvents(cases, 30*time.Second)
	for n, load := range loads {
		r := recorders[n]
		r.stop()
		acknowledged := compareWithAcks(report, load.name, r, writers[n], ours)
		total += acknowledged
		refusals := 0
		for _, w := range writers[n] {
			refusals += w.refusals
		}
		report.figure(load.name, map[string]int{"acknowledged": acknowledged, "events": len(r.sequence), "refusals": refusals, "recorderResumed": r.resumed})
	}
	for _, p := range paged {
		compareStates(report, "R-151", fmt.Sprintf("%s: paged list at %d while others wrote", loads[p.load].name, p.revision),
			recorders[p.load].stateAt(p.revision), p.facts)
	}
	cuts := 0
	for _, c := range cases {
		figures := c.verify(report, c.recorder.revision)
		cuts += figures["cuts"].(int)
		report.figure(c.name, figures)
	}
	report.figure("cuts", cuts)
	report.figure("writesPerSecond", int(float64(total)/seconds))
	if changes >= cutMax*4 {
		report.check(cuts > 0, "setup", "no connection was cut")
	}
	return nil
}
