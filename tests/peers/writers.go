package main

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const colourLabel = "colour"

// restConfig is how all our client-go clients speak: JSON, no client-side rate limit.
func restConfig(server string) *rest.Config {
	return &rest.Config{
		Host:          server,
		QPS:           -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
	}
}

// workload is one resource our writers change.
type workload struct {
	name       string
	resource   schema.GroupVersionResource
	kind       string
	path       string // of the list of all namespaces
	makeObject func(namespace, name string, value int64) *unstructured.Unstructured
	patchValue func(value int64) string // a merge patch that changes the content
	setValue   func(obj *unstructured.Unstructured, value int64)

	unconditional bool // updates without a resourceVersion are allowed (R-662: upstream refuses them for custom kinds)
}

func configMapWorkload() *workload {
	return &workload{
		name:     "configmaps",
		resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		kind:     "ConfigMap",
		path:     "/api/v1/configmaps",
		makeObject: func(namespace, name string, value int64) *unstructured.Unstructured {
			return newObject("v1", "ConfigMap", namespace, name, value, map[string]any{
				"data": map[string]any{"value": fmt.Sprint(value), "text": "blank \" quote \\ <tag> & ünïcödé \u2028 end"},
			})
		},
		patchValue: func(value int64) string { return fmt.Sprintf(`{"data":{"value":"%d"}}`, value) },
		setValue: func(obj *unstructured.Unstructured, value int64) {
			_ = unstructured.SetNestedField(obj.Object, fmt.Sprint(value), "data", "value")
		},
		unconditional: true,
	}
}

// customWorkload takes "group/version/plural/Kind".
func customWorkload(text string) (*workload, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 4 {
		return nil, fmt.Errorf("--custom must look like GROUP/VERSION/PLURAL/KIND, not %q", text)
	}
	resource := schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
	return &workload{
		name:     resource.Resource,
		resource: resource,
		kind:     parts[3],
		path:     fmt.Sprintf("/apis/%s/%s/%s", resource.Group, resource.Version, resource.Resource),
		makeObject: func(namespace, name string, value int64) *unstructured.Unstructured {
			return newObject(resource.GroupVersion().String(), parts[3], namespace, name, value, map[string]any{
				"spec": map[string]any{"size": value, "colour": "none", "nested": map[string]any{"list": []any{"a", value, true, nil, 1.5}}},
			})
		},
		patchValue: func(value int64) string { return fmt.Sprintf(`{"spec":{"size":%d}}`, value) },
		setValue: func(obj *unstructured.Unstructured, value int64) {
			_ = unstructured.SetNestedField(obj.Object, value, "spec", "size")
		},
	}, nil
}

func colourOf(value int64) string {
	return []string{"red", "blue", "green"}[value%3]
}

func newObject(apiVersion, kind, namespace, name string, value int64, content map[string]any) *unstructured.Unstructured {
	object := map[string]any{
		"apiVersion": apiVersion,
		"kind":       kind,
		"metadata": map[string]any{
			"name":      name,
			"namespace": namespace,
			"labels":    map[string]any{colourLabel: colourOf(value), "made-by": "peers"},
		},
	}
	for key, field := range content {
		object[key] = field
	}
	return &unstructured.Unstructured{Object: object}
}

// ensureNamespaces creates namespaces; existing ones are fine.
func ensureNamespaces(ctx context.Context, client dynamic.Interface, names ...string) error {
	for _, name := range names {
		namespace := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
		_, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(ctx, namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	return nil
}

// removeLeftovers deletes what an earlier run against the same server left, and so tries deletecollection.
func removeLeftovers(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespaces ...string) error {
	for _, namespace := range namespaces {
		err := client.Resource(resource).Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)},
			metav1.ListOptions{LabelSelector: "made-by=peers"})
		if err != nil {
			return fmt.Errorf("deletecollection of %s in %s: %w", resource.Resource, namespace, err)
		}
		list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: "made-by=peers"})
		if err != nil || len(list.Items) != 0 {
			return fmt.Errorf("deletecollection of %s in %s left objects: %w", resource.Resource, namespace, err)
		}
	}
	return nil
}

// ack is one write the server acknowledged.
type ack struct {
	fact         // revision, uid, hash of the answered object (DELETED: of the last state, revision 0)
	readRevision uint64
}

// writer owns some names; nobody else writes them, so the order of its acknowledgements is the order of the writes.
type writer struct {
	report   *report
	client   dynamic.Interface
	load     *workload
	random   *rand.Rand
	names    []types.NamespacedName
	current  []*unstructured.Unstructured // nil: absent
	value    *atomic.Int64                // shared: every written value is unique
	acks     []ack
	refusals int
}

func (w *writer) resource(i int) dynamic.ResourceInterface {
	return w.client.Resource(w.load.resource).Namespace(w.names[i].Namespace)
}

func (w *writer) acknowledge(i int, obj *unstructured.Unstructured) {
	f := factOf("PUT", obj)
	if before := w.current[i]; before != nil {
		w.report.check(f.revision > parseRevision(before.GetResourceVersion()), "H-419", "write of %s answered revision %s after %s",
			f.key, obj.GetResourceVersion(), before.GetResourceVersion())
		w.report.check(string(before.GetUID()) == f.uid, "H-350", "write of %s changed its uid", f.key)
	}
	w.report.check(f.revision != 0 && f.uid != "", "H-350", "write of %s answered resourceVersion %q, uid %q", f.key, obj.GetResourceVersion(), f.uid)
	w.current[i] = obj
	w.acks = append(w.acks, ack{fact: f})
}

func (w *writer) create(ctx context.Context, i int) {
	obj, err := w.resource(i).Create(ctx, w.load.makeObject(w.names[i].Namespace, w.names[i].Name, w.value.Add(1)), metav1.CreateOptions{})
	if !w.report.check(err == nil, "R-660", "create %s %v: %v", w.load.name, w.names[i], err) {
		return
	}
	w.acknowledge(i, obj)
}

func (w *writer) delete(ctx context.Context, i int) {
	err := w.resource(i).Delete(ctx, w.names[i].Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if !w.report.check(err == nil, "R-666", "delete %s %v: %v", w.load.name, w.names[i], err) {
		return
	}
	f := factOf("DELETED", w.current[i])
	f.revision = 0
	w.acks = append(w.acks, ack{fact: f})
	w.current[i] = nil
}

// change makes one random write to name i.
func (w *writer) change(ctx context.Context, i int) {
	if w.current[i] == nil {
		w.create(ctx, i)
		return
	}
	name := w.names[i].Name
	value := w.value.Add(1)
	var obj *unstructured.Unstructured
	var err error
	what := ""
	switch dice := w.random.Intn(100); {
	case dice < 35:
		what = "merge patch"
		obj, err = w.resource(i).Patch(ctx, name, types.MergePatchType, []byte(w.load.patchValue(value)), metav1.PatchOptions{})
	case dice < 55:
		what = "json patch"
		patch := fmt.Sprintf(`[{"op":"test","path":"/metadata/name","value":"%s"},{"op":"replace","path":"/metadata/labels/%s","value":"%s"},`+
			`{"op":"add","path":"/metadata/labels/stamp","value":"%d"}]`, name, colourLabel, colourOf(w.random.Int63n(3)), value)
		obj, err = w.resource(i).Patch(ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	case dice < 70:
		what = "update at a revision"
		next := w.current[i].DeepCopy()
		w.load.setValue(next, value)
		obj, err = w.resource(i).Update(ctx, next, metav1.UpdateOptions{})
	case dice < 78:
		what = "unconditional update"
		next := w.current[i].DeepCopy()
		w.load.setValue(next, value)
		if w.load.unconditional {
			next.SetResourceVersion("")
		}
		obj, err = w.resource(i).Update(ctx, next, metav1.UpdateOptions{})
	case dice < 95:
		w.delete(ctx, i)
		return
	default:
		w.refused(ctx, i, value)
		return
	}
	if w.report.check(err == nil, "R-662", "%s of %s %v: %v", what, w.load.name, w.names[i], err) {
		w.acknowledge(i, obj)
	}
}

// refused makes a write that must be refused, or that must change nothing.
func (w *writer) refused(ctx context.Context, i int, value int64) {
	name := w.names[i].Name
	w.refusals++
	switch w.random.Intn(5) {
	case 0:
		_, err := w.resource(i).Create(ctx, w.load.makeObject(w.names[i].Namespace, name, value), metav1.CreateOptions{})
		w.report.check(apierrors.IsAlreadyExists(err), "R-114", "create of existing %v: %v", w.names[i], err)
	case 1:
		stale := w.current[i].DeepCopy()
		stale.SetResourceVersion(fmt.Sprint(parseRevision(stale.GetResourceVersion()) - 1))
		w.load.setValue(stale, value)
		_, err := w.resource(i).Update(ctx, stale, metav1.UpdateOptions{})
		w.report.check(apierrors.IsConflict(err), "R-662", "update of %v at an old revision: %v", w.names[i], err)
	case 2:
		uid := types.UID("00000000-0000-4000-8000-000000000000")
		err := w.resource(i).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		w.report.check(apierrors.IsConflict(err), "R-116", "delete of %v with another uid: %v", w.names[i], err)
	case 3:
		obj, err := w.resource(i).Update(ctx, w.current[i], metav1.UpdateOptions{})
		if w.report.check(err == nil, "R-671", "update of %v without a change: %v", w.names[i], err) {
			w.report.check(obj.GetResourceVersion() == w.current[i].GetResourceVersion(), "R-671", "update of %v without a change moved its revision from %s to %s",
				w.names[i], w.current[i].GetResourceVersion(), obj.GetResourceVersion())
		}
	case 4:
		obj, err := w.resource(i).Get(ctx, name, metav1.GetOptions{})
		if w.report.check(err == nil, "R-582", "get %v: %v", w.names[i], err) {
			w.report.check(factOf("", obj).same(factOf("", w.current[i])), "R-582", "get %v after its write: %v, written %v",
				w.names[i], factOf("", obj), factOf("", w.current[i]))
		}
		list, err := w.resource(i).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if w.report.check(err == nil && len(list.Items) == 1, "R-473", "list of %v right after its write: %v", w.names[i], err) {
			w.report.check(factOf("", &list.Items[0]).same(factOf("", w.current[i])), "R-473", "list of %v after its write: %v, written %v",
				w.names[i], factOf("", &list.Items[0]), factOf("", w.current[i]))
		}
	}
}

// makeWriters spreads count names over namespaces and writers.
func makeWriters(report *report, client dynamic.Interface, load *workload, namespaces []string, count, writers int, seed int64, value *atomic.Int64) []*writer {
	all := make([]*writer, writers)
	for i := range all {
		all[i] = &writer{report: report, client: client, load: load, random: rand.New(rand.NewSource(seed*1000 + int64(i))), value: value}
	}
	for i := 0; i < count; i++ {
		w := all[i%writers]
		w.names = append(w.names, types.NamespacedName{Namespace: namespaces[i/writers%len(namespaces)], Name: fmt.Sprintf("object-%05d", i)})
		w.current = append(w.current, nil)
	}
	return all
}

// inParallel runs one function per writer and waits for all.
func inParallel(writers []*writer, each func(w *writer)) {
	var wg sync.WaitGroup
	for _, w := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			each(w)
		}()
	}
	wg.Wait()
}

// compareWithAcks checks that the raw sequence holds exactly the acknowledged writes: every one, each once, nothing else.
func compareWithAcks(report *report, who string, r *recorder, writers []*writer, ours func(key string) bool) (acknowledged int) {
	type place struct {
		key      string
		revision uint64
	}
	seen := map[place]fact{}
	deleted := map[string]fact{} // by uid
	for _, f := range r.sequence {
		if !ours(f.key) {
			continue
		}
		if f.kind == "DELETED" {
			deleted[f.uid] = f
		} else {
			seen[place{f.key, f.revision}] = f
		}
	}
	for _, w := range writers {
		for _, a := range w.acks {
			acknowledged++
			if a.kind == "DELETED" {
				f, ok := deleted[a.uid]
				report.check(ok && f.key == a.key && f.hash == a.hash, "reliable", "%s: acknowledged delete of %s (uid %s) has no fitting event: %v", who, a.key, a.uid, f)
				delete(deleted, a.uid)
				continue
			}
			f, ok := seen[place{a.key, a.revision}]
			report.check(ok && f.uid == a.uid && f.hash == a.hash, "reliable", "%s: acknowledged %v has no fitting event: %v", who, a.fact, f)
			delete(seen, place{a.key, a.revision})
		}
	}
	for _, f := range seen {
		report.violation("reliable", "%s: event of a write nobody made: %v", who, f)
	}
	for _, f := range deleted {
		report.violation("reliable", "%s: event of a delete nobody made: %v", who, f)
	}
	return acknowledged
}
