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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

const podsNamespace = "peers-pods"

// podFact reduces a pod to what every kind of client sees of it: typed clients drop unknown fields, metadata-only clients the rest.
func podFact(kind string, pod metav1.Object, node, phase string) fact {
	return fact{
		kind:     kind,
		key:      keyOf(pod.GetNamespace(), pod.GetName()),
		uid:      string(pod.GetUID()),
		revision: parseRevision(pod.GetResourceVersion()),
		hash: contentHash(map[string]any{"labels": pod.GetLabels(), "annotations": pod.GetAnnotations(), "node": node, "phase": phase,
			"created": pod.GetCreationTimestamp().UTC().Format(time.RFC3339)}),
	}
}

func typedPodFact(kind string, obj any) (fact, bool) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return fact{}, false
	}
	return podFact(kind, pod, pod.Spec.NodeName, string(pod.Status.Phase)), true
}

func metadataPodFact(kind string, obj any) (fact, bool) {
	pod, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fact{}, false
	}
	return podFact(kind, pod, "", ""), true
}

// podRecorderFact fits the recorder's objects to the informers': full, or metadata only.
func podRecorderFact(metadataOnly bool) func(f fact, from *unstructured.Unstructured) fact {
	return func(f fact, from *unstructured.Unstructured) fact {
		node, phase := "", ""
		if !metadataOnly {
			node = digString(from.Object, "spec", "nodeName")
			phase = digString(from.Object, "status", "phase")
		}
		f.hash = podFact("", from, node, phase).hash
		return f
	}
}

func runInformerPods(args []string) int {
	flags, verbose, seed := newFlags("informer-pods")
	server := flags.String("server", "", "URL of the server")
	pods := flags.Int("pods", 500, "pods")
	nodes := flags.Int("nodes", 10, "node names the pods are spread over")
	changes := flags.Int("changes", 4000, "changes")
	cutMin := flags.Int("cut-min", 40, "cut a watch after at least this many events")
	cutMax := flags.Int("cut-max", 200, "cut a watch after at most this many events")
	watchList := flags.Bool("watchlist", true, "let client-go use WatchList (its default)")
	protobuf := flags.Bool("protobuf", false, "let the typed clients speak protobuf, their default for built-in kinds (H-320)")
	bind := flags.String("bind", "patch", "how a pod gets its node: patch, or create (only when it is made)")
	_ = flags.Parse(args)
	if err := useWatchList(*watchList); err != nil {
		fmt.Fprintln(os.Stderr, "peers informer-pods:", err)
		return 2
	}
	setVerbose(*verbose)
	report := newReport("informer-pods")
	if err := informerPodsRun(report, *server, *pods, *nodes, *changes, *cutMin, *cutMax, *watchList, *bind == "patch", *protobuf, *seed); err != nil {
		report.violation("setup", "%v", err)
	}
	return report.finish()
}

// podChanger owns some pods.
type podChanger struct {
	report  *report
	client  kubernetes.Interface
	random  *rand.Rand
	nodes   int
	bind    bool
	names   []string
	exists  []bool
	bound   []bool
	changed int
	last    uint64
}

func (p *podChanger) pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: podsNamespace,
			Labels: map[string]string{"app": "web", colourLabel: colourOf(p.random.Int63n(3)), "made-by": "peers"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/image:1"}}},
	}
}

func (p *podChanger) note(i int, what string, pod *corev1.Pod, err error) {
	if p.report.check(err == nil, "R-662", "%s of pod %s: %v", what, p.names[i], err) && pod != nil {
		revision := parseRevision(pod.ResourceVersion)
		p.report.check(revision > 0, "H-419", "%s of pod %s answered resourceVersion %q", what, p.names[i], pod.ResourceVersion)
		p.last = max(p.last, revision)
		p.bound[i] = pod.Spec.NodeName != ""
	}
	p.changed++
}

func (p *podChanger) change(ctx context.Context, i int) {
	pods := p.client.CoreV1().Pods(podsNamespace)
	name := p.names[i]
	if !p.exists[i] {
		pod := p.pod(name)
		if p.random.Intn(2) == 0 || !p.bind {
			pod.Spec.NodeName = fmt.Sprintf("node-%d", p.random.Intn(p.nodes))
		}
		created, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		p.exists[i] = true
		p.note(i, "create", created, err)
		return
	}
	switch dice := p.random.Intn(100); {
	case dice < 30 && p.bind && !p.bound[i]:
		patch := fmt.Sprintf(`{"spec":{"nodeName":"node-%d"}}`, p.random.Intn(p.nodes))
		pod, err := pods.Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		p.note(i, "binding", pod, err)
	case dice < 50:
		patch := fmt.Sprintf(`{"status":{"phase":"%s","message":"%d"}}`, []string{"Pending", "Running", "Succeeded"}[p.random.Intn(3)], p.random.Int63())
		pod, err := pods.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		p.note(i, "status patch", pod, err)
	case dice < 80:
		patch := fmt.Sprintf(`{"metadata":{"labels":{"%s":"%s"},"annotations":{"stamp":"%d"}}}`, colourLabel, colourOf(p.random.Int63n(3)), p.random.Int63())
		pod, err := pods.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		p.note(i, "label patch", pod, err)
	case dice < 88:
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			pod.Annotations = map[string]string{"stamp": fmt.Sprint(p.random.Int63())}
			pod, err = pods.Update(ctx, pod, metav1.UpdateOptions{})
		}
		p.note(i, "update", pod, err)
	default:
		err := pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		p.exists[i] = false
		p.note(i, "delete", nil, err)
	}
}

func informerPodsRun(report *report, server string, podCount, nodes, changes, cutMin, cutMax int, watchList, bind, protobuf bool, seed int64) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	target, err := addressOf(server)
	if err != nil {
		return err
	}
	direct, err := dynamic.NewForConfig(restConfig(server))
	if err != nil {
		return err
	}
	config := restConfig(server)
	if protobuf {
		config.ContentConfig.ContentType, config.ContentConfig.AcceptContentTypes = "", ""
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := ensureNamespaces(ctx, direct, podsNamespace); err != nil {
		return err
	}
	if err := removeLeftovers(ctx, direct, corev1.SchemeGroupVersion.WithResource("pods"), podsNamespace); err != nil {
		return err
	}

	// Two recorders of the same sequence: one reduces to the whole pod, one to its metadata (a change of status only is still an event).
	const path = "/api/v1/namespaces/" + podsNamespace + "/pods"
	filters := []func(*unstructured.Unstructured) bool{
		func(obj *unstructured.Unstructured) bool {
			return digString(obj.Object, "spec", "nodeName") == "node-3"
		},
		func(obj *unstructured.Unstructured) bool { return obj.GetLabels()[colourLabel] == "red" },
		func(obj *unstructured.Unstructured) bool {
			return digString(obj.Object, "status", "phase") == "Running"
		},
		func(obj *unstructured.Unstructured) bool { return digString(obj.Object, "spec", "nodeName") == "" },
	}
	full, err := startRecorderWith(ctx, report, "pods", server, path, podRecorderFact(false), filters...)
	if err != nil {
		return err
	}
	defer full.stop()
	meta, err := startRecorderWith(ctx, report, "pods metadata", server, path, podRecorderFact(true), filters...)
	if err != nil {
		return err
	}
	defer meta.stop()

	const changerCount = 6
	changers := make([]*podChanger, changerCount)
	for i := range changers {
		changers[i] = &podChanger{report: report, client: clients, random: rand.New(rand.NewSource(seed*31 + int64(i))), nodes: nodes, bind: bind}
	}
	for i := 0; i < podCount; i++ {
		p := changers[i%changerCount]
		p.names = append(p.names, fmt.Sprintf("pod-%04d", i))
		p.exists = append(p.exists, false)
		p.bound = append(p.bound, false)
	}
	each := func(run func(p *podChanger)) {
		var wg sync.WaitGroup
		for _, p := range changers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				run(p)
			}()
		}
		wg.Wait()
	}
	each(func(p *podChanger) {
		for i := range p.names {
			if i%3 != 0 {
				p.change(ctx, i)
			}
		}
	})
	if report.violated() {
		return errors.New("creating pods failed")
	}

	var cases []*informerCase
	add := func(name string, filter int, r *recorder, makeInformer func(url string) (cache.SharedIndexInformer, error), factOf func(string, any) (fact, bool)) error {
		c := &informerCase{name: name, watchList: watchList, filter: filter, recorder: r, factOf: factOf}
		var err error
		if c.proxy, err = newCuttingProxy(target, cutMin, cutMax, seed+int64(len(cases))*104729); err != nil {
			return err
		}
		if c.informer, err = makeInformer(c.proxy.url()); err != nil {
			return err
		}
		cases = append(cases, c)
		return c.attach()
	}
	typed := func(tweak func(*metav1.ListOptions)) func(url string) (cache.SharedIndexInformer, error) {
		return func(url string) (cache.SharedIndexInformer, error) {
			config := restConfig(url)
			if protobuf {
				config.ContentConfig.ContentType, config.ContentConfig.AcceptContentTypes = "", ""
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return nil, err
			}
			return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(podsNamespace),
				informers.WithTweakListOptions(tweak)).Core().V1().Pods().Informer(), nil
		}
	}
	metadataOnly := func(tweak func(*metav1.ListOptions)) func(url string) (cache.SharedIndexInformer, error) {
		return func(url string) (cache.SharedIndexInformer, error) {
			config := restConfig(url)
			config.ContentConfig.ContentType, config.ContentConfig.AcceptContentTypes = "", "" // its own default: protobuf first, then JSON
			client, err := metadata.NewForConfig(config)
			if err != nil {
				return nil, err
			}
			return metadatainformer.NewFilteredSharedInformerFactory(client, 0, podsNamespace, tweak).
				ForResource(corev1.SchemeGroupVersion.WithResource("pods")).Informer(), nil
		}
	}
	bySelector := func(field, label string) func(*metav1.ListOptions) {
		return func(options *metav1.ListOptions) { options.FieldSelector, options.LabelSelector = field, label }
	}
	for _, err := range []error{
		add("all", -1, full, typed(bySelector("", "")), typedPodFact),
		add("node-3", 0, full, typed(bySelector("spec.nodeName=node-3", "")), typedPodFact),
		add("red", 1, full, typed(bySelector("", colourLabel+"=red")), typedPodFact),
		add("running", 2, full, typed(bySelector("status.phase=Running", "")), typedPodFact),
		add("unbound", 3, full, typed(bySelector("spec.nodeName=", "")), typedPodFact),
		add("metadata", -1, meta, metadataOnly(bySelector("", "")), metadataPodFact),
		add("metadata red", 1, meta, metadataOnly(bySelector("", colourLabel+" in (red)")), metadataPodFact),
	} {
		if err != nil {
			return err
		}
	}
	defer func() {
		for _, c := range cases {
			c.proxy.close()
		}
	}()
	for _, c := range cases {
		go c.informer.RunWithContext(ctx)
	}
	syncStarted := time.Now()
	if !awaitSync(report, cases, 60*time.Second) {
		return nil
	}
	report.figure("allSyncedMilliseconds", time.Since(syncStarted).Milliseconds())
	for _, c := range cases {
		// Nothing is written while these start: the initial state is the state now.
		c.syncRevision = full.at()
		c.synced(report)
	}
	started := time.Now()
	each(func(p *podChanger) {
		for n := 0; n < changes/changerCount && !report.violated(); n++ {
			p.change(ctx, p.random.Intn(len(p.names)))
		}
	})
	report.figure("writesPerSecond", int(float64(changes)/time.Since(started).Seconds()))
	for _, c := range cases {
		c.proxy.armed.Store(false)
	}

	// A pod that every informer sees come and go, so that all before it is all there is.
	last := changers[0].pod("last")
	last.Labels[colourLabel] = "red"
	for _, node := range []string{"node-3", ""} {
		last.Spec.NodeName = node
		if _, err := clients.CoreV1().Pods(podsNamespace).Create(ctx, last, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("last pod: %w", err)
		}
		pod, err := clients.CoreV1().Pods(podsNamespace).Patch(ctx, "last", types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`), metav1.PatchOptions{}, "status")
		if !report.check(err == nil && pod.Status.Phase == corev1.PodRunning, "H-348", "status patch of pod last: %v", err) {
			return nil
		}
		if err := clients.CoreV1().Pods(podsNamespace).Delete(ctx, "last", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			return fmt.Errorf("last pod: %w", err)
		}
		_, err = clients.CoreV1().Pods(podsNamespace).Get(ctx, "last", metav1.GetOptions{})
		report.check(apierrors.IsNotFound(err), "R-666", "get of a deleted pod: %v", err)
	}
	list, err := clients.CoreV1().Pods(podsNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, r := range []*recorder{full, meta} {
		if err := r.waitForGone("last", 30*time.Second); err != nil {
			report.violation("reliable", "%v", err)
		}
	}
	awaitEvents(cases, 30*time.Second)
	full.stop()
	meta.stop()
	listed := map[string]fact{}
	for i := range list.Items {
		f, _ := typedPodFact("ADDED", &list.Items[i])
		listed[f.key] = f
	}
	compareStates(report, "R-151", "typed list", full.stateAt(parseRevision(list.ResourceVersion)), listed)
	for _, filter := range []struct {
		number       int
		field, label string
	}{{0, "spec.nodeName=node-3", ""}, {1, "", colourLabel + "=red"}, {2, "status.phase=Running", ""}, {3, "spec.nodeName==", ""},
		{2, "status.phase!=Pending,status.phase!=Succeeded,status.phase!=", ""}} {
		list, err := clients.CoreV1().Pods(podsNamespace).List(ctx, metav1.ListOptions{FieldSelector: filter.field, LabelSelector: filter.label})
		if !report.check(err == nil, "H-416", "list of pods with %q %q: %v", filter.field, filter.label, err) {
			continue
		}
		listed := map[string]fact{}
		for i := range list.Items {
			f, _ := typedPodFact("ADDED", &list.Items[i])
			listed[f.key] = f
		}
		compareStates(report, "R-691", "list with "+strings.TrimSpace(filter.field+" "+filter.label), full.expectedState(filter.number, full.revision), listed)
	}
	cuts := 0
	for _, c := range cases {
		figures := c.verify(report, c.recorder.revision)
		cuts += figures["cuts"].(int)
		report.figure(c.name, figures)
	}
	report.figure("cuts", cuts)
	report.figure("events", len(full.sequence))
	report.figure("recordersResumed", full.resumed+meta.resumed)
	return nil
}
