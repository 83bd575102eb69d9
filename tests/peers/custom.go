package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
)

// custom: a kind that comes while factories of informers run, goes, and comes again. It is found by a RESTMapper; dynamic and metadata-only informers on both of its
// versions, and a typed one on a built-in kind beside them, hear of every write in its order, over changes of the definition and kill -9 of the server, without
// listing again; of every deletion when the definition goes; and of the kind of the same name that comes afterwards.

const (
	customPatience  = 5 * time.Minute
	customNamespace = "default"
	customGroup     = "peers.example.com"
	customPlural    = "gadgets"
)

var customDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func customResource(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: customGroup, Version: version, Resource: customPlural}
}

// customEvent is what a write was acknowledged as, or what an informer's handler was told.
type customEvent struct {
	kind     string
	revision string
}

// customListener is one informer and what it has told, by key.
type customListener struct {
	name     string
	informer cache.SharedIndexInformer
	version  string // of the objects, "" when it has none to show

	mu     sync.Mutex
	events map[string][]customEvent
	odd    []string
}

func (l *customListener) note(kind string, obj any) {
	if tombstone, is := obj.(cache.DeletedFinalStateUnknown); is {
		l.mu.Lock()
		l.odd = append(l.odd, "the end of "+tombstone.Key+" was missed")
		l.mu.Unlock()
		return
	}
	object, err := meta.Accessor(obj)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.odd = append(l.odd, fmt.Sprintf("%s: %T", kind, obj))
		return
	}
	if typed, is := obj.(*unstructured.Unstructured); is && typed.GetAPIVersion() != customGroup+"/"+l.version {
		l.odd = append(l.odd, fmt.Sprintf("%s of %s has the version %s", kind, object.GetName(), typed.GetAPIVersion()))
	}
	key := string(object.GetUID())
	l.events[key] = append(l.events[key], customEvent{kind, object.GetResourceVersion()})
}

func (l *customListener) listen() error {
	l.events = map[string][]customEvent{}
	// While the kind is gone there is much to complain of.
	if err := l.informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return err
	}
	_, err := l.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { l.note("ADDED", obj) },
		UpdateFunc: func(before, obj any) {
			old, _ := meta.Accessor(before)
			now, _ := meta.Accessor(obj)
			if old.GetResourceVersion() != now.GetResourceVersion() { // else a resync
				l.note("MODIFIED", obj)
			}
		},
		DeleteFunc: func(obj any) { l.note("DELETED", obj) },
	})
	return err
}

// difference says how what was told is not what was written; "" when it is the same.
func (l *customListener) difference(written map[string][]customEvent) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, events := range written {
		if !slices.Equal(events, l.events[key]) {
			return fmt.Sprintf("%s: of %s was written %v, told %v", l.name, key, events, l.events[key])
		}
	}
	if len(l.events) != len(written) {
		return fmt.Sprintf("%s: %d objects were written, %d told of", l.name, len(written), len(l.events))
	}
	return ""
}

// countingRequests counts the lists and watches of the custom kind.
type countingRequests struct {
	next http.RoundTripper

	mu                         sync.Mutex
	lists, watchLists, watches int
}

func (c *countingRequests) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	if request.Method == "GET" && strings.HasSuffix(request.URL.Path, "/"+customPlural) {
		c.mu.Lock()
		switch {
		case query.Get("watch") == "":
			c.lists++
		case query.Get("sendInitialEvents") == "true":
			c.watchLists++
		default:
			c.watches++
		}
		c.mu.Unlock()
	}
	return c.next.RoundTrip(request)
}

func (c *countingRequests) counts() (lists, watchLists, watches int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists, c.watchLists, c.watches
}

type customTest struct {
	report    *report
	program   string
	dataDir   string
	server    *serverProcess
	host      string
	watchList bool
	random    *rand.Rand

	counting  *countingRequests
	client    kubernetes.Interface
	dynamic   dynamic.Interface
	quiet     dynamic.Interface // whose requests are not counted
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	discovery discovery.CachedDiscoveryInterface
	factories struct {
		typed    informers.SharedInformerFactory
		dynamic  dynamicinformer.DynamicSharedInformerFactory
		metadata metadatainformer.SharedInformerFactory
	}
	gadgets []*customListener
	maps    *customListener

	written     map[string][]customEvent // gadgets, by uid
	writtenMaps map[string][]customEvent
	living      map[string]*unstructured.Unstructured // gadgets by name
	next        int
}

func runCustom(args []string) int {
	flags, verbose, seed := newFlags("custom")
	program := flags.String("vedette", "", "path of the vedette program")
	watchList := flags.Bool("watchlist", true, "informers begin with WatchList")
	steps := flags.Int("steps", 150, "writes between two events in the life of the kind")
	rounds := flags.Int("rounds", 1, "how often the kind goes and comes again; informers take longer to notice each time")
	_ = flags.Parse(args)
	setVerbose(*verbose)
	report := newReport("custom")
	if err := useWatchList(*watchList); err != nil {
		report.violation("setup", "%v", err)
		return report.finish()
	}
	dir, err := os.MkdirTemp("", "peers-custom-")
	if err != nil {
		report.violation("setup", "%v", err)
		return report.finish()
	}
	t := &customTest{report: report, program: *program, dataDir: dir, watchList: *watchList, random: rand.New(rand.NewSource(*seed)), written: map[string][]customEvent{},
		writtenMaps: map[string][]customEvent{}, living: map[string]*unstructured.Unstructured{}}
	ctx, cancel := context.WithTimeout(context.Background(), 4*customPatience)
	if err := t.run(ctx, *steps, *rounds); err != nil {
		report.violation("custom", "%v", err)
	}
	cancel()
	if t.server != nil {
		t.server.kill()
	}
	if report.violated() {
		report.figure("dataDir", dir)
	} else {
		os.RemoveAll(dir)
	}
	return report.finish()
}

func (t *customTest) start() error {
	listen := "127.0.0.1:0"
	if t.host != "" {
		listen = t.host
	}
	server, err := startServer(t.program, "serve", "--data-dir", t.dataDir, "--listen", listen)
	if err != nil {
		return err
	}
	t.server = server
	if _, err := server.awaitReady(customPatience); err != nil {
		return err
	}
	parsed, err := url.Parse(server.url)
	if err == nil {
		t.host = parsed.Host
	}
	return err
}

func (t *customTest) connect() error {
	config := &rest.Config{Host: "http://" + t.host, QPS: -1}
	var err error
	if t.quiet, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if t.counting == nil {
			t.counting = &countingRequests{next: next}
		}
		return t.counting
	})
	if t.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if t.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	t.discovery = memory.NewMemCacheClient(t.client.Discovery())
	t.mapper = restmapper.NewDeferredDiscoveryRESTMapper(t.discovery)
	t.factories.typed = informers.NewSharedInformerFactory(t.client, 0)
	t.factories.dynamic = dynamicinformer.NewDynamicSharedInformerFactory(t.dynamic, 0)
	t.factories.metadata = metadatainformer.NewSharedInformerFactory(objects, 0)
	t.maps = &customListener{name: "typed configmaps", informer: t.factories.typed.Core().V1().ConfigMaps().Informer()}
	return t.maps.listen()
}

// await repeats a check until it says "".
func (t *customTest) await(ctx context.Context, what string, check func() string) error {
	ctx, cancel := context.WithTimeout(ctx, customPatience)
	defer cancel()
	var text string
	if !pollUntil(customPatience, func() bool { text = check(); return text == "" || ctx.Err() != nil }) || text != "" {
		return fmt.Errorf("%s: %s", what, text)
	}
	return nil
}

func customDefinition(storage string) *unstructured.Unstructured {
	version := func(name string) any {
		return map[string]any{"name": name, "served": true, "storage": name == storage, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
				"spec":   map[string]any{"type": "object", "properties": map[string]any{"size": map[string]any{"type": "integer"}, "color": map[string]any{"type": "string"}}},
				"status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": customPlural + "." + customGroup},
		"spec": map[string]any{"group": customGroup, "scope": "Namespaced",
			"names":    map[string]any{"plural": customPlural, "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList", "shortNames": []any{"gdg"}},
			"versions": []any{version("v1"), version("v2")}}}}
}

func (t *customTest) createDefinition(ctx context.Context, storage string) error {
	definitions := t.dynamic.Resource(customDefinitions)
	if _, err := definitions.Create(ctx, customDefinition(storage), metav1.CreateOptions{}); err != nil {
		return err
	}
	return t.await(ctx, "the definition", func() string {
		definition, err := definitions.Get(ctx, customPlural+"."+customGroup, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
		for _, condition := range conditions {
			if digString(condition, "type") == "Established" && digString(condition, "status") == "True" {
				return ""
			}
		}
		return fmt.Sprintf("not established: %v", conditions)
	})
}

// noMapping: it is in no document of discovery, or soon is not.
func (t *customTest) noMapping(ctx context.Context) error {
	return t.await(ctx, "the RESTMapper", func() string {
		t.mapper.Reset()
		_, err := t.mapper.RESTMapping(schema.GroupKind{Group: customGroup, Kind: "Gadget"})
		if meta.IsNoMatchError(err) {
			return ""
		}
		return fmt.Sprintf("a kind that is not there: %v", err)
	})
}

// mapping: the deferred RESTMapper has looked before the kind was there; a reset, as whoever meets "no match" does, finds it; and so does a shortcut.
func (t *customTest) mapping() {
	kind := schema.GroupKind{Group: customGroup, Kind: "Gadget"}
	if _, err := t.mapper.RESTMapping(kind); meta.IsNoMatchError(err) {
		t.mapper.Reset()
	}
	for _, version := range []string{"", "v1", "v2"} {
		var versions []string
		wanted := "v2" // the newest one goes first
		if version != "" {
			versions, wanted = []string{version}, version
		}
		mapping, err := t.mapper.RESTMapping(kind, versions...)
		if t.report.check(err == nil, "restmapper", "version %q: %v", version, err) {
			t.report.check(mapping.Resource == customResource(wanted) && mapping.Scope.Name() == meta.RESTScopeNameNamespace, "restmapper", "version %q: %+v", version, mapping)
		}
	}
	resource, err := restmapper.NewShortcutExpander(t.mapper, t.discovery, nil).ResourceFor(schema.GroupVersionResource{Resource: "gdg"})
	t.report.check(err == nil && resource == customResource("v2"), "restmapper", "its short name: %v %v", resource, err)
}

// freshen brings the cache where the writes are: the lists of informers, at resourceVersion 0, may be of any time.
func (t *customTest) freshen(ctx context.Context) error {
	for _, version := range []string{"v1", "v2"} {
		if _, err := t.dynamic.Resource(customResource(version)).Namespace(customNamespace).List(ctx, metav1.ListOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// listen adds informers on both versions to the factories, which run.
func (t *customTest) listen(ctx context.Context) error {
	for _, version := range []string{"v1", "v2"} {
		t.gadgets = append(t.gadgets,
			&customListener{name: "dynamic " + version, version: version, informer: t.factories.dynamic.ForResource(customResource(version)).Informer()},
			&customListener{name: "metadata " + version, informer: t.factories.metadata.ForResource(customResource(version)).Informer()})
	}
	for _, listener := range t.gadgets {
		if err := listener.listen(); err != nil {
			return err
		}
	}
	t.factories.dynamic.Start(ctx.Done())
	t.factories.metadata.Start(ctx.Done())
	for _, listener := range t.gadgets {
		if !cache.WaitForCacheSync(ctx.Done(), listener.informer.HasSynced) {
			return fmt.Errorf("%s has not synced", listener.name)
		}
	}
	lists, watchLists, _ := t.counting.counts()
	if t.watchList {
		t.report.check(lists == 0 && watchLists >= len(t.gadgets), "R-330", "informers that should begin with WatchList sent %d lists, %d WatchLists", lists, watchLists)
	} else {
		t.report.check(watchLists == 0 && lists >= len(t.gadgets), "H-402", "informers that should begin with lists sent %d lists, %d WatchLists", lists, watchLists)
	}
	return nil
}

func (t *customTest) note(kind string, object *unstructured.Unstructured) {
	key := string(object.GetUID())
	t.written[key] = append(t.written[key], customEvent{kind, object.GetResourceVersion()})
}

func (t *customTest) create(ctx context.Context, version string) error {
	t.next++
	name := fmt.Sprintf("g%04d", t.next)
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": customGroup + "/" + version, "kind": "Gadget", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"size": int64(t.next)}}}
	created, err := t.dynamic.Resource(customResource(version)).Namespace(customNamespace).Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	t.note("ADDED", created)
	t.living[name] = created
	return nil
}

func (t *customTest) change(ctx context.Context, version, name string) error {
	var parts []string
	text := fmt.Sprintf(`{"spec":{"size":%d}}`, t.random.Int31())
	if t.random.Intn(2) == 0 {
		parts, text = []string{"status"}, fmt.Sprintf(`{"status":{"seen":%d}}`, t.random.Int31())
	}
	changed, err := t.dynamic.Resource(customResource(version)).Namespace(customNamespace).Patch(ctx, name, types.MergePatchType, []byte(text), metav1.PatchOptions{}, parts...)
	if err != nil {
		return fmt.Errorf("patch %s: %w", name, err)
	}
	t.note("MODIFIED", changed)
	return nil
}

// remove deletes one; the deletion's revision is learned from a get beside it, as it is in no answer: it is left open, and taken from what is told.
func (t *customTest) remove(ctx context.Context, version, name string) error {
	object := t.living[name]
	if err := t.dynamic.Resource(customResource(version)).Namespace(customNamespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	t.ended(object)
	delete(t.living, name)
	return nil
}

// ended: the revision is what the first listener says, which the others must say too.
func (t *customTest) ended(object *unstructured.Unstructured) {
	t.written[string(object.GetUID())] = append(t.written[string(object.GetUID())], customEvent{kind: "DELETED"})
}

func (t *customTest) write(ctx context.Context, steps int) error {
	for range steps {
		version := []string{"v1", "v2"}[t.random.Intn(2)]
		names := make([]string, 0, len(t.living))
		for name := range t.living {
			names = append(names, name)
		}
		slices.Sort(names)
		var err error
		switch chance := t.random.Intn(10); {
		case len(names) == 0 || chance < 3:
			err = t.create(ctx, version)
		case chance < 8:
			err = t.change(ctx, version, names[t.random.Intn(len(names))])
		default:
			err = t.remove(ctx, version, names[t.random.Intn(len(names))])
		}
		if err != nil {
			return err
		}
	}
	t.next++
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%04d", t.next)}}
	created, err := t.client.CoreV1().ConfigMaps(customNamespace).Create(ctx, object, metav1.CreateOptions{})
	if err == nil {
		t.writtenMaps[string(created.UID)] = []customEvent{{"ADDED", created.ResourceVersion}}
	}
	return err
}

// openEnds fills in the revisions of deletions, in the order of what one listener was told, where there is something to fill in.
func (t *customTest) openEnds() {
	first := t.gadgets[0]
	first.mu.Lock()
	defer first.mu.Unlock()
	for key, events := range t.written {
		told := first.events[key]
		last := len(events) - 1
		if events[last] == (customEvent{kind: "DELETED"}) && len(told) == len(events) && told[last].kind == "DELETED" {
			events[last].revision = told[last].revision
		}
	}
}

// settle waits until everybody was told everything.
func (t *customTest) settle(ctx context.Context, when string) error {
	return t.await(ctx, when, func() string {
		t.openEnds()
		for _, listener := range t.gadgets {
			if text := listener.difference(t.written); text != "" {
				return text
			}
		}
		return t.maps.difference(t.writtenMaps)
	})
}

func (t *customTest) kill() error {
	t.server.kill()
	return t.start()
}

// changeVersions changes each version of the definition.
func (t *customTest) changeVersions(ctx context.Context, change func(version map[string]any) error) error {
	definitions := t.dynamic.Resource(customDefinitions)
	definition, err := definitions.Get(ctx, customPlural+"."+customGroup, metav1.GetOptions{})
	if err != nil {
		return err
	}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, each := range versions {
		if err := change(each.(map[string]any)); err != nil {
			return err
		}
	}
	if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
		return err
	}
	_, err = definitions.Update(ctx, definition, metav1.UpdateOptions{})
	return err
}

// storeIn makes the other version the one that is stored.
func (t *customTest) storeIn(ctx context.Context, version string) error {
	return t.changeVersions(ctx, func(each map[string]any) error {
		each["storage"] = digString(each, "name") == version
		return nil
	})
}

// defaultTo gives a member a default that the objects there are were written without. Informers that begin now have it in all of them, with nothing written.
func (t *customTest) defaultTo(ctx context.Context, color string) error {
	err := t.changeVersions(ctx, func(each map[string]any) error {
		return unstructured.SetNestedField(each, color, "schema", "openAPIV3Schema", "properties", "spec", "properties", "color", "default")
	})
	if err != nil {
		return err
	}
	for _, version := range []string{"v1", "v2"} {
		gadgets := t.quiet.Resource(customResource(version)).Namespace(customNamespace)
		err := t.await(ctx, "the default", func() string {
			list, err := gadgets.List(ctx, metav1.ListOptions{})
			if err != nil {
				return err.Error()
			}
			for i := range list.Items {
				if now := digString(list.Items[i].Object, "spec", "color"); now != color {
					return fmt.Sprintf("%s of version %s has the color %q", list.Items[i].GetName(), version, now)
				}
			}
			return ""
		})
		if err != nil {
			return err
		}
		quick, cancel := context.WithCancel(ctx)
		factory := dynamicinformer.NewDynamicSharedInformerFactory(t.quiet, 0)
		informer := factory.ForResource(customResource(version)).Informer()
		factory.Start(quick.Done())
		synced := cache.WaitForCacheSync(quick.Done(), informer.HasSynced)
		objects := informer.GetStore().List()
		cancel()
		t.report.check(synced && len(objects) == len(t.living), "informer", "a new informer has %d of %d objects", len(objects), len(t.living))
		for _, each := range objects {
			object := each.(*unstructured.Unstructured)
			events := t.written[string(object.GetUID())]
			t.report.check(digString(object.Object, "spec", "color") == color && len(events) > 0 && events[len(events)-1].revision == object.GetResourceVersion(), "informer",
				"a new informer on %s has %s as %v, written at %v", version, object.GetName(), object.Object, events)
		}
	}
	return nil
}

func (t *customTest) removeDefinition(ctx context.Context) error {
	definitions := t.dynamic.Resource(customDefinitions)
	if err := definitions.Delete(ctx, customPlural+"."+customGroup, metav1.DeleteOptions{}); err != nil {
		return err
	}
	for name, object := range t.living {
		t.ended(object)
		delete(t.living, name)
	}
	return t.await(ctx, "the definition's end", func() string {
		_, err := definitions.Get(ctx, customPlural+"."+customGroup, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("it is still there: %v", err)
	})
}

func (t *customTest) run(ctx context.Context, steps, rounds int) error {
	if err := t.start(); err != nil {
		return err
	}
	if err := t.connect(); err != nil {
		return err
	}
	t.factories.typed.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), t.maps.informer.HasSynced) {
		return errors.New("the typed informer has not synced")
	}
	if err := t.noMapping(ctx); err != nil {
		return err
	}
	if err := t.createDefinition(ctx, "v1"); err != nil {
		return err
	}
	t.mapping()
	if err := t.write(ctx, steps/3); err != nil { // an initial state
		return err
	}
	for key, events := range t.written { // of which only the end is told
		if last := events[len(events)-1]; last.kind == "DELETED" {
			delete(t.written, key)
		} else {
			t.written[key] = []customEvent{{"ADDED", last.revision}}
		}
	}
	if !t.watchList {
		if err := t.freshen(ctx); err != nil {
			return err
		}
	}
	if err := t.listen(ctx); err != nil {
		return err
	}
	for i, step := range []struct {
		name string
		do   func() error
	}{
		{"at first", func() error { return nil }},
		{"after kill -9", t.kill},
		{"stored in v2", func() error { return t.storeIn(ctx, "v2") }},
		{"with a default", func() error { return t.defaultTo(ctx, "red") }},
		{"after kill -9 again", t.kill},
	} {
		lists, watchLists, _ := t.counting.counts()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := t.write(ctx, steps); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := t.settle(ctx, step.name); err != nil {
			return err
		}
		listsNow, watchListsNow, _ := t.counting.counts()
		t.report.check(lists == listsNow && watchLists == watchListsNow, "R-312", "%s: %d lists and %d WatchLists were sent", step.name, listsNow-lists, watchListsNow-watchLists)
		t.report.figure(fmt.Sprintf("objects%d", i), len(t.written))
	}

	// It goes: every deletion is told. It comes again, in the same informers.
	for range rounds {
		if err := t.removeDefinition(ctx); err != nil {
			return err
		}
		if err := t.settle(ctx, "the kind is gone"); err != nil {
			return err
		}
		if err := t.noMapping(ctx); err != nil {
			return err
		}
		if err := t.createDefinition(ctx, "v2"); err != nil {
			return err
		}
		t.mapping()
		for range 5 {
			if err := t.create(ctx, "v1"); err != nil {
				return err
			}
		}
		if err := t.settle(ctx, "the kind has come again"); err != nil {
			return err
		}
	}
	for _, listener := range append(t.gadgets, t.maps) {
		t.report.check(len(listener.odd) == 0, "informer", "%s: %v", listener.name, listener.odd)
	}
	lists, watchLists, watches := t.counting.counts()
	t.report.figure("lists", lists)
	t.report.figure("watchLists", watchLists)
	t.report.figure("watches", watches)
	t.report.figure("objects", len(t.written))
	return nil
}
