package main

// protobuf: Kubernetes' protobuf over HTTP, with client-go's typed and metadata clients as they are by default, and byte by byte. Every object is read
// in both forms, and both must be the same object for Go.

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	protoType      = "application/vnd.kubernetes.protobuf"
	protoNamespace = "proto"
)

// protoWire counts the media types that clients sent and were answered.
type protoWire struct {
	mu       sync.Mutex
	sent     map[string]int
	answered map[string]int
	next     http.RoundTripper
}

func (w *protoWire) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	w.mu.Lock()
	defer w.mu.Unlock()
	if request.Body != nil {
		w.sent[request.Header.Get("Content-Type")]++
	}
	if err == nil {
		w.answered[response.Header.Get("Content-Type")]++
	}
	return response, err
}

type protoAPI struct {
	report *report
	server string
	random *rand.Rand
}

type protoReply struct {
	code   int
	kind   string
	header http.Header
	body   []byte
}

func (a *protoAPI) call(method, path, contentType, accept string, body []byte) protoReply {
	request, err := http.NewRequest(method, a.server+path, bytes.NewReader(body))
	if err != nil {
		return protoReply{}
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	response, err := http.DefaultClient.Do(request)
	if !a.report.check(err == nil, "H-320", "%s %s: %v", method, path, err) {
		return protoReply{}
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	a.report.check(err == nil, "H-320", "%s %s: %v", method, path, err)
	return protoReply{response.StatusCode, response.Header.Get("Content-Type"), response.Header, content}
}

// decode reads an answer in the form it says it has.
func (a *protoAPI) decode(reply protoReply, kind reflect.Type) runtime.Object {
	if strings.HasPrefix(reply.kind, protoType) {
		object, err := protoDecode(kind, reply.body)
		a.report.check(err == nil, "H-325", "answer as %s: %v", reply.kind, err)
		return object
	}
	object := reflect.New(kind).Interface().(runtime.Object)
	err := json.Unmarshal(reply.body, object)
	a.report.check(err == nil, "H-304", "answer as %s: %v", reply.kind, err)
	return object
}

func listRevision(list runtime.Object) string {
	if list == nil || reflect.ValueOf(list).IsNil() {
		return ""
	}
	return list.(metav1.ListInterface).GetResourceVersion()
}

func (a *protoAPI) same(rule, what string, x, y runtime.Object) {
	a.report.check(x != nil && y != nil && equality.Semantic.DeepEqual(x, y), rule, "%s: protobuf and JSON are different objects\n%+v\n%+v", what, x, y)
}

func (a *protoAPI) statusOf(rule, what string, reply protoReply, code int, reason metav1.StatusReason) metav1.Status {
	var status metav1.Status
	if object := a.decode(reply, reflect.TypeOf(status)); object != nil {
		status = *object.(*metav1.Status)
	}
	a.report.check(reply.code == code && int(status.Code) == code && status.Reason == reason, rule, "%s: %d %s %+v", what, reply.code, reply.kind, status)
	return status
}

type protoServed struct {
	kind       protoKind
	list       protoKind
	path       string // of the collection
	namespaced bool
	resource   schema.GroupVersionResource
}

// served lists what the server serves and the tables know.
func (a *protoAPI) served() []protoServed {
	client, err := discovery.NewDiscoveryClientForConfig(restConfig(a.server))
	if err != nil {
		return nil
	}
	_, lists, err := client.ServerGroupsAndResources()
	a.report.check(err == nil, "H-113", "discovery: %v", err)
	kinds := map[schema.GroupVersionKind]protoKind{}
	for _, kind := range protoKinds() {
		kinds[kind.gvk] = kind
	}
	var served []protoServed
	for _, list := range lists {
		version, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, resource := range list.APIResources {
			kind, known := kinds[version.WithKind(resource.Kind)]
			if !known || strings.Contains(resource.Name, "/") {
				continue
			}
			path := "/apis/" + list.GroupVersion
			if version.Group == "" {
				path = "/api/" + list.GroupVersion
			}
			if resource.Namespaced {
				path += "/namespaces/" + protoNamespace
			}
			served = append(served, protoServed{kind, kinds[version.WithKind(resource.Kind+"List")], path + "/" + resource.Name, resource.Namespaced,
				version.WithResource(resource.Name)})
		}
	}
	return served
}

// watchOne opens a watch from the beginning and gives the object of its first event of this name.
func (a *protoAPI) watchOne(s protoServed, name, accept string) (eventType string, object runtime.Object, kind string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	request, _ := http.NewRequestWithContext(ctx, "GET", a.server+s.path+"?watch=1&fieldSelector=metadata.name%3D"+name, nil)
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	if !a.report.check(err == nil && response.StatusCode == 200, "R-633", "watch %s: %v", s.path, err) {
		return
	}
	defer func() { _ = response.Body.Close() }()
	kind = response.Header.Get("Content-Type")
	if !strings.HasPrefix(kind, protoType) {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := json.NewDecoder(response.Body).Decode(&event); a.report.check(err == nil, "R-634", "watch %s: %v", s.path, err) {
			eventType, object = event.Type, a.decode(protoReply{body: event.Object, kind: kind}, s.kind.kind)
		}
		return
	}
	var length [4]byte
	var event metav1.WatchEvent
	_, err = io.ReadFull(response.Body, length[:])
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	if err == nil {
		_, err = io.ReadFull(response.Body, frame)
	}
	if err == nil {
		err = event.Unmarshal(frame)
	}
	if a.report.check(err == nil, "R-698", "watch %s: %v", s.path, err) {
		wanted := s.kind.kind
		if event.Type == "ERROR" {
			wanted = reflect.TypeOf(metav1.Status{})
		}
		eventType, object = event.Type, a.decode(protoReply{body: event.Object.Raw, kind: kind}, wanted)
	}
	return
}

func listItems(list runtime.Object) int {
	return reflect.ValueOf(list).Elem().FieldByName("Items").Len()
}

// protoValidKeys renames the keys of config maps and secrets, which a server checks, and lets them change.
func protoValidKeys(object runtime.Object) {
	switch o := object.(type) {
	case *corev1.ConfigMap:
		o.Data, o.BinaryData, o.Immutable = protoRenamed(o.Data, "text"), protoRenamed(o.BinaryData, "bytes"), nil
	case *corev1.Secret:
		o.Data, o.StringData, o.Immutable = protoRenamed(o.Data, "bytes"), protoRenamed(o.StringData, "text"), nil
	}
}

func protoRenamed[V any](values map[string]V, prefix string) map[string]V {
	renamed := map[string]V{}
	for _, value := range values {
		renamed[fmt.Sprintf("%s-%d", prefix, len(renamed))] = value
	}
	return renamed
}

// kind takes one kind through its life, in protobuf, and reads every state in JSON too.
func (a *protoAPI) kind(s protoServed) {
	const name = "everything"
	what := s.resource.String()
	c, err := protoMakeCase(s.kind, a.random, 0.3)
	if !a.report.check(err == nil, "H-327", "%s: %v", what, err) {
		return
	}
	protoValidKeys(c.want)
	accessor := c.want.(metav1.Object)
	meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "x", "example.com/y": ""}, Annotations: map[string]string{"note": "\u00fc<&>\"\\\n"}}
	if s.namespaced {
		meta.Namespace = protoNamespace
	}
	reflect.ValueOf(accessor).Elem().FieldByName("ObjectMeta").Set(reflect.ValueOf(meta))
	body, err := protoEncode(c.want)
	a.report.check(err == nil, "H-325", "%s: %v", what, err)

	reply := a.call("POST", s.path, protoType, protoType+",application/json", body)
	if !a.report.check(reply.code == 201 && reply.kind == protoType, "H-320", "create %s: %d %s %.300q", what, reply.code, reply.kind, reply.body) {
		return
	}
	made := a.decode(reply, s.kind.kind)
	one, text := a.call("GET", s.path+"/"+name, "", protoType, nil), a.call("GET", s.path+"/"+name, "", "application/json", nil)
	a.report.check(one.code == 200 && one.kind == protoType, "R-648", "get %s: %d %s", what, one.code, one.kind)
	a.report.check(text.code == 200 && text.kind == "application/json", "R-648", "get %s: %d %s", what, text.code, text.kind)
	got := a.decode(one, s.kind.kind)
	a.same("R-648", "get "+what, got, a.decode(text, s.kind.kind))
	a.same("H-320", "created "+what, made, got)
	a.report.check(got.(metav1.Object).GetResourceVersion() != "" && got.(metav1.Object).GetUID() != "", "H-350", "%s: no revision or no uid", what)

	// The server's own controllers write too: both are to be of one revision.
	var listed, listedText runtime.Object
	for try := 0; try < 100 && (listed == nil || listRevision(listed) != listRevision(listedText)); try++ {
		list, listText := a.call("GET", s.path, "", protoType, nil), a.call("GET", s.path, "", "application/json", nil)
		if !a.report.check(list.code == 200 && list.kind == protoType, "R-699", "list %s: %d %s", what, list.code, list.kind) {
			return
		}
		listed, listedText = a.decode(list, s.list.kind), a.decode(listText, s.list.kind)
	}
	a.report.check(listed != nil && listItems(listed) > 0 && listItems(listed) == listItems(listedText), "R-699", "list %s", what)
	for _, l := range []runtime.Object{listed, listedText} { // kind and apiVersion of an item are in its envelope only, and a list has one envelope
		items := reflect.ValueOf(l).Elem().FieldByName("Items")
		for i := 0; i < items.Len(); i++ {
			items.Index(i).FieldByName("TypeMeta").Set(reflect.ValueOf(metav1.TypeMeta{}))
		}
	}
	a.same("R-699", "list "+what, listed, listedText)

	eventType, event, kind := a.watchOne(s, name, protoType+",application/json")
	a.report.check(eventType == "ADDED" && kind == protoType+";stream=watch", "R-633", "watch %s: %s %s", what, eventType, kind)
	a.same("R-634", "watch "+what, event, got)
	eventType, event, _ = a.watchOne(s, name, "application/json")
	a.report.check(eventType == "ADDED", "R-634", "watch %s: %s", what, eventType)
	a.same("R-634", "watch "+what, event, got)

	got.(metav1.Object).SetLabels(map[string]string{"app": "changed"})
	body, _ = protoEncode(got)
	reply = a.call("PUT", s.path+"/"+name, protoType, protoType, body)
	a.report.check(reply.code == 200 && reply.kind == protoType, "H-320", "update %s: %d %s %.300q", what, reply.code, reply.kind, reply.body)
	if updated := a.decode(reply, s.kind.kind); updated != nil && reply.code == 200 {
		a.report.check(updated.(metav1.Object).GetLabels()["app"] == "changed", "H-320", "update %s: %v", what, updated.(metav1.Object).GetLabels())
		// The same again changes nothing.
		body, _ = protoEncode(updated)
		again := a.decode(a.call("PUT", s.path+"/"+name, protoType, protoType, body), s.kind.kind)
		if s.resource.Resource != "events" { // each write of an event gives it a new life
			a.same("R-135", "an equal update of "+what, again, updated)
		}
	}
	reply = a.call("PUT", s.path+"/"+name, protoType, protoType, body[:len(body)/2])
	a.statusOf("H-329", "half a body for "+what, reply, 400, metav1.StatusReasonBadRequest)

	options, _ := protoEncode(&metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: s.kind.gvk.GroupVersion().String()},
		Preconditions: metav1.NewUIDPreconditions("another")})
	reply = a.call("DELETE", s.path+"/"+name, protoType, protoType, options)
	a.statusOf("H-323", "delete "+what+" with another uid", reply, 409, metav1.StatusReasonConflict)
	// At once: no agent to wait for, and no dependents to be let go first.
	atOnce, background := int64(0), metav1.DeletePropagationBackground
	options, _ = protoEncode(&metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}, GracePeriodSeconds: &atOnce, PropagationPolicy: &background})
	reply = a.call("DELETE", s.path+"/"+name, protoType, protoType, options)
	a.report.check(reply.code == 200 && reply.kind == protoType, "H-323", "delete %s: %d %s", what, reply.code, reply.kind)
	reply = a.call("GET", s.path+"/"+name, "", protoType, nil)
	if s.resource.Resource == "namespaces" && reply.code == 200 { // which is emptied first, and goes when nobody's finalizer holds it
		left := a.decode(reply, s.kind.kind).(metav1.Object)
		a.report.check(left.GetDeletionTimestamp() != nil, "R-648", "deleted %s, still there: %v", what, left)
		return
	}
	a.statusOf("R-648", "get deleted "+what, reply, 404, metav1.StatusReasonNotFound)
}

// refusals: what cannot be had as protobuf.
func (a *protoAPI) refusals() {
	const widgets = "/apis/example.com/v1/namespaces/" + protoNamespace + "/widgets"
	const maps = "/api/v1/namespaces/" + protoNamespace + "/configmaps"
	body, _ := protoEncode(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	a.statusOf("H-324", "protobuf for a custom kind", a.call("POST", widgets, protoType, "", body), 415, metav1.StatusReasonUnsupportedMediaType)
	a.statusOf("H-324", "CBOR", a.call("POST", maps, "application/cbor", "", body), 415, metav1.StatusReasonUnsupportedMediaType)
	a.statusOf("R-648", "a custom kind as protobuf", a.call("GET", widgets, "", protoType, nil), 406, metav1.StatusReasonNotAcceptable)
	reply := a.call("GET", widgets, "", protoType+",application/json", nil)
	a.report.check(reply.code == 200 && reply.kind == "application/json", "R-648", "a custom kind, JSON second: %d %s", reply.code, reply.kind)
	reply = a.call("GET", widgets, "", protoType+",*/*", nil)
	a.report.check(reply.code == 200 && reply.kind == "application/json", "R-648", "a custom kind, anything second: %d %s", reply.code, reply.kind)
	reply = a.call("GET", maps, "", "application/json,"+protoType, nil)
	a.report.check(reply.kind == "application/json", "R-648", "JSON first: %s", reply.kind)
	reply = a.call("GET", maps, "", "application/json;q=0.5,"+protoType, nil)
	a.report.check(reply.kind == protoType, "R-648", "JSON with q=0.5: %s", reply.kind)
	table := ";as=Table;v=v1;g=meta.k8s.io"
	reply = a.call("GET", maps, "", protoType+table+",application/json"+table, nil)
	a.report.check(reply.kind == "application/json" && bytes.Contains(reply.body, []byte(`"kind":"Table"`)), "H-301", "a table, protobuf first: %s", reply.kind)
	a.statusOf("R-648", "a table as protobuf", a.call("GET", maps, "", protoType+table, nil), 406, metav1.StatusReasonNotAcceptable)
	a.statusOf("H-325", "another kind's body", a.call("POST", "/api/v1/namespaces/"+protoNamespace+"/secrets", protoType, "", body), 400, metav1.StatusReasonBadRequest)
	a.statusOf("H-325", "no envelope", a.call("POST", maps, protoType, "", []byte("{}")), 400, metav1.StatusReasonBadRequest)
	a.statusOf("H-341", "a patch as protobuf", a.call("PATCH", maps+"/x", protoType, "", body), 415, metav1.StatusReasonUnsupportedMediaType)
	a.statusOf("H-323", "delete with another kind's body", a.call("DELETE", maps+"/x", protoType, "", body), 400, metav1.StatusReasonBadRequest)

	widget := a.call("POST", widgets, "application/json", "", []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":3}}`))
	a.report.check(widget.code == 201, "H-306", "create a widget: %d %.200q", widget.code, widget.body)
	reply = a.call("GET", widgets+"/w", "", protoType+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1", nil)
	if a.report.check(reply.code == 200 && reply.kind == protoType, "H-306", "a custom kind's metadata as protobuf: %d %s", reply.code, reply.kind) {
		partial := a.decode(reply, reflect.TypeOf(metav1.PartialObjectMetadata{})).(*metav1.PartialObjectMetadata)
		a.report.check(partial.Name == "w" && partial.ResourceVersion != "" && partial.Kind == "PartialObjectMetadata" && partial.APIVersion == "meta.k8s.io/v1",
			"H-306", "a custom kind's metadata: %+v", partial)
	}
}

// misfits: what was stored by others need not be of its kind's types (tests/integration/misfit.ndjson).
func (a *protoAPI) misfits() {
	const pods = "/api/v1/namespaces/misfits/pods"
	reply := a.call("POST", "/api/v1/namespaces/"+protoNamespace+"/pods", "application/json", protoType,
		[]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"misfit"},"spec":{"priority":"high"}}`))
	a.statusOf("R-612", "a member of another type", reply, 400, metav1.StatusReasonBadRequest)
	if a.call("GET", pods+"/misfit", "", "", nil).code == 404 {
		return // it was not loaded
	}
	s := protoServed{kind: protoKind{corev1.SchemeGroupVersion.WithKind("Pod"), reflect.TypeOf(corev1.Pod{})}, path: pods}
	reply = a.call("GET", pods+"/misfit", "", protoType+",application/json", nil)
	a.report.check(reply.code == 200 && reply.kind == "application/json", "R-648", "an object that does not fit, JSON second: %d %s", reply.code, reply.kind)
	a.statusOf("R-648", "an object that does not fit", a.call("GET", pods+"/misfit", "", protoType, nil), 406, metav1.StatusReasonNotAcceptable)
	reply = a.call("GET", pods, "", protoType+",application/json", nil)
	a.report.check(reply.code == 200 && reply.kind == "application/json", "R-648", "a list that does not fit, JSON second: %d %s", reply.code, reply.kind)
	a.statusOf("R-648", "a list that does not fit", a.call("GET", pods, "", protoType, nil), 406, metav1.StatusReasonNotAcceptable)
	eventType, object, _ := a.watchOne(s, "misfit", protoType)
	status, ok := object.(*metav1.Status)
	a.report.check(eventType == "ERROR" && ok && status.Code == 500 && strings.Contains(status.Message, "misfit"), "R-637", "a watch of it: %s %+v", eventType, object)
	reply = a.call("PATCH", pods+"/misfit", "application/merge-patch+json", "", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	a.report.check(reply.code == 200, "R-612", "a patch of it that makes nothing worse: %d", reply.code)
	reply = a.call("PATCH", pods+"/misfit", "application/merge-patch+json", "", []byte(`{"spec":{"priority":5}}`))
	a.report.check(reply.code == 200, "R-612", "a patch that cures it: %d", reply.code)
	reply = a.call("PATCH", pods+"/misfit", "application/merge-patch+json", protoType, []byte(`{"spec":{"priority":"low"}}`))
	a.statusOf("R-612", "a patch that spoils it again", reply, 422, metav1.StatusReasonInvalid)
	reply = a.call("GET", pods+"/misfit", "", protoType, nil)
	a.report.check(reply.code == 200 && reply.kind == protoType, "R-648", "cured: %d %s", reply.code, reply.kind)
	a.call("DELETE", pods+"/misfit", "", "", nil)
}

// large: a list that is too large for one piece is JSON to who takes it.
func (a *protoAPI) large() {
	const maps = "/api/v1/namespaces/" + protoNamespace + "/configmaps"
	for i := 0; i < 12; i++ {
		body, _ := protoEncode(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("large-%02d", i)}, BinaryData: map[string][]byte{"b": bytes.Repeat([]byte{byte(i)}, 200000)}})
		reply := a.call("POST", maps, protoType, "", body)
		a.report.check(reply.code == 201, "H-320", "create large-%02d: %d", i, reply.code)
	}
	wanted := reflect.TypeOf(corev1.ConfigMapList{})
	reply := a.call("GET", maps, "", protoType+",application/json", nil)
	list := a.decode(reply, wanted).(*corev1.ConfigMapList)
	a.report.check(reply.kind == "application/json" && len(list.Items) == 12 && len(list.Items[11].BinaryData["b"]) == 200000, "H-307",
		"a large list: %s, %d items", reply.kind, len(list.Items))
	a.statusOf("R-648", "a large list as protobuf only", a.call("GET", maps, "", protoType, nil), 406, metav1.StatusReasonNotAcceptable)
	names := map[string]bool{}
	for path := maps + "?limit=5"; path != ""; {
		reply = a.call("GET", path, "", protoType, nil)
		page := a.decode(reply, wanted).(*corev1.ConfigMapList)
		if !a.report.check(reply.code == 200 && reply.kind == protoType && page.ResourceVersion != "", "R-699", "a page: %d %s", reply.code, reply.kind) {
			break
		}
		meta, err := page.ListMeta.Marshal()
		a.report.check(err == nil && bytes.Contains(reply.body, meta), "R-699", "a page's metadata is not Kubernetes' %x", meta)
		for _, item := range page.Items {
			names[item.Name] = true
		}
		path = ""
		if page.Continue != "" {
			a.report.check(page.RemainingItemCount != nil && *page.RemainingItemCount > 0, "R-699", "a page without its remaining items")
			path = maps + "?limit=5&continue=" + page.Continue
		}
	}
	a.report.check(len(names) == 12, "R-699", "pages: %d names", len(names))
	a.call("DELETE", maps, "", "", nil)
}

// clients: client-go as it is by default.
func (a *protoAPI) clients(ctx context.Context) {
	wire := &protoWire{sent: map[string]int{}, answered: map[string]int{}}
	config := restConfig(a.server)
	config.ContentConfig = rest.ContentConfig{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		wire.next = next
		return wire
	})
	typed, err := kubernetes.NewForConfig(config)
	if !a.report.check(err == nil, "H-320", "typed client: %v", err) {
		return
	}
	maps := typed.CoreV1().ConfigMaps(protoNamespace)
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "gen-"}, Data: map[string]string{"a": "1"}}, metav1.CreateOptions{})
	if !a.report.check(err == nil && strings.HasPrefix(made.Name, "gen-"), "H-320", "create: %v", err) {
		return
	}
	made.Data["a"] = "2"
	changed, err := maps.Update(ctx, made, metav1.UpdateOptions{})
	a.report.check(err == nil && changed.Data["a"] == "2" && changed.ResourceVersion != made.ResourceVersion, "H-320", "update: %v", err)
	_, err = maps.Update(ctx, made, metav1.UpdateOptions{})
	a.report.check(apierrors.IsConflict(err), "H-344", "update of a stale object: %v", err)
	_, err = maps.Get(ctx, "nope", metav1.GetOptions{})
	a.report.check(apierrors.IsNotFound(err), "H-102", "get of nothing: %v", err)
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: made.Name}}, metav1.CreateOptions{})
	a.report.check(apierrors.IsAlreadyExists(err), "H-102", "create twice: %v", err)
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "A_"}}, metav1.CreateOptions{})
	a.report.check(apierrors.IsInvalid(err), "H-102", "create with a bad name: %v", err)
	dry, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "dry"}}, metav1.CreateOptions{DryRun: []string{"All"}})
	a.report.check(err == nil && dry.Name == "dry", "H-346", "dry run: %v", err)
	err = maps.Delete(ctx, made.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")})
	a.report.check(apierrors.IsConflict(err), "H-323", "delete with another uid: %v", err)
	err = maps.Delete(ctx, made.Name, metav1.DeleteOptions{Preconditions: metav1.NewPreconditionDeleteOptions(string(made.UID)).Preconditions})
	a.report.check(err == nil, "H-323", "delete: %v", err)

	replicas := int32(2)
	deployments := typed.AppsV1().Deployments(protoNamespace)
	_, err = deployments.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "d"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "d"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}, metav1.CreateOptions{})
	a.report.check(err == nil, "H-320", "create a deployment: %v", err)
	scale, err := deployments.GetScale(ctx, "d", metav1.GetOptions{})
	if a.report.check(err == nil && scale.Spec.Replicas == 2, "H-347", "get scale: %v", err) {
		scale, err = deployments.UpdateScale(ctx, "d", &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: protoNamespace},
			Spec: autoscalingv1.ScaleSpec{Replicas: 5}}, metav1.UpdateOptions{})
		a.report.check(err == nil && scale.Spec.Replicas == 5, "H-347", "update scale: %v", err)
	}
	deployment, err := deployments.Get(ctx, "d", metav1.GetOptions{})
	if a.report.check(err == nil && *deployment.Spec.Replicas == 5, "H-347", "get the deployment: %v", err) {
		deployment.Status.ReadyReplicas = 3
		deployment, err = deployments.UpdateStatus(ctx, deployment, metav1.UpdateOptions{})
		a.report.check(err == nil && deployment.Status.ReadyReplicas == 3, "H-348", "update status: %v", err)
	}
	a.report.check(deployments.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}) == nil, "H-323", "delete the collection")
	for kind, count := range wire.sent {
		a.report.check(kind == protoType, "H-320", "%d bodies were sent as %q", count, kind)
	}
	for kind, count := range wire.answered {
		a.report.check(kind == protoType, "R-648", "%d answers came as %q", count, kind)
	}

	meta, err := metadata.NewForConfig(config)
	if a.report.check(err == nil, "H-306", "metadata client: %v", err) {
		list, err := meta.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).List(ctx, metav1.ListOptions{})
		a.report.check(err == nil && len(list.Items) > 0 && list.ResourceVersion != "", "H-306", "metadata list: %v", err)
	}
}

func runProtoAPI(args []string) int {
	flags, verbose, seed := newFlags("protobuf")
	server := flags.String("server", "", "URL of the server")
	_ = flags.Parse(args)
	setVerbose(*verbose)
	a := &protoAPI{report: newReport("protobuf"), server: *server, random: rand.New(rand.NewSource(*seed))}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	reply := a.call("POST", "/api/v1/namespaces", "application/json", "", []byte(`{"metadata":{"name":"`+protoNamespace+`"}}`))
	a.report.check(reply.code == 201 || reply.code == 409, "H-320", "the namespace: %d %.200q", reply.code, reply.body)
	served := a.served()
	a.report.check(len(served) >= 18, "H-324", "only %d kinds are served", len(served))
	for _, s := range served {
		a.kind(s)
	}
	a.refusals()
	a.misfits()
	a.large()
	a.clients(ctx)
	a.report.figure("kinds", len(served))
	return a.report.finish()
}
