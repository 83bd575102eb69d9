package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server/routine"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/kubernetes/scheme"
)

var podsResource = schema.GroupResource{Resource: "pods"}

func newPod() apiruntime.Object     { return &corev1.Pod{} }
func newPodList() apiruntime.Object { return &corev1.PodList{} }

// openEtcd is upstream's etcd3 store for pods; protobuf, as an API server stores them, unless asJSON.
func openEtcd(endpoint, prefix string, asJSON bool) storage.Interface {
	var encoder apiruntime.Serializer = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	if asJSON {
		encoder = kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, kubejson.SerializerOptions{})
	}
	codec := scheme.Codecs.CodecForVersions(encoder, scheme.Codecs.UniversalDeserializer(), corev1.SchemeGroupVersion, corev1.SchemeGroupVersion)
	config := storagebackend.NewDefaultConfig(prefix, codec)
	config.Transport.ServerList = []string{endpoint}
	store, _, err := factory.Create(*config.ForResource(podsResource), newPod, newPodList, "/"+prefixOfPods)
	check(err)
	return store
}

const prefixOfPods = "pods/"

// fill puts so many pods into an etcd, 64 at a time.
func fill(arguments []string) {
	flags := flag.NewFlagSet("fill", flag.ExitOnError)
	endpoint := flags.String("etcd", "", "URL")
	where := flags.String("prefix", "/registry", "of all keys")
	asJSON := flags.Bool("json", false, "stored as JSON, not as protobuf")
	count := flags.Int("pods", 100_000, "")
	size := flags.Int("size", 1024, "bytes of a pod's JSON")
	check(flags.Parse(arguments))
	store := openEtcd(*endpoint, *where+"/", *asJSON)
	var next atomic.Int64
	var group sync.WaitGroup
	for worker := range 64 {
		group.Go(func() {
			random := rand.New(rand.NewSource(int64(worker)))
			for {
				number := int(next.Add(1)) - 1
				if number >= *count {
					return
				}
				pod := makePod(number, *size, random)
				key, err := storage.NamespaceKeyFunc("/"+prefixOfPods, pod)
				check(err)
				// A busy disk makes etcd late: what it then has is fine.
				for attempt := 0; ; attempt++ {
					err = store.Create(context.Background(), key, pod, nil, 0)
					if err == nil || storage.IsExist(err) {
						break
					}
					if attempt == 20 {
						check(err)
					}
				}
			}
		})
	}
	group.Wait()
}

// server answers like a kube-apiserver for pods: upstream's handlers over upstream's registry and Cacher. Authentication, authorization, admission, audit
// and fair queuing are left out, which favours it. Writes are ours: over the feed they make an event, over etcd they are the store's own.
type server struct {
	feed    *feed
	mutex   sync.Mutex
	storage storage.Interface
	codec   apiruntime.Serializer
}

func (s *server) write(w http.ResponseWriter, r *http.Request, pod *corev1.Pod) error {
	if s.feed != nil {
		s.mutex.Lock()
		s.feed.push(watch.Modified, pod)
		s.mutex.Unlock()
		return nil
	}
	key, err := storage.NamespaceKeyFunc("/"+prefixOfPods, pod)
	if err != nil {
		return err
	}
	if r.Method == http.MethodPost {
		return s.storage.Create(r.Context(), key, pod, pod, 0)
	}
	into := &corev1.Pod{}
	err = s.storage.GuaranteedUpdate(r.Context(), key, into, true, nil, storage.SimpleUpdate(func(old apiruntime.Object) (apiruntime.Object, error) {
		changed := *pod
		changed.ResourceVersion = old.(*corev1.Pod).ResourceVersion
		return &changed, nil
	}), nil)
	if err == nil {
		*pod = *into // as it is stored, with its revision
	}
	return err
}

func (s *server) writePod(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	check(err)
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	status := http.StatusOK
	if r.Method == http.MethodPost {
		status = http.StatusCreated
	}
	if pod, ok := object.(*corev1.Pod); ok {
		if pod.Namespace == "" {
			pod.Namespace = r.PathValue("namespace")
		}
		if err := s.write(w, r, pod); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	text := &strings.Builder{}
	check(s.codec.Encode(object, text))
	w.Header().Set("Content-Length", fmt.Sprint(text.Len()))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text.String())
}

func (s *server) handler(store storage.Interface) http.Handler {
	pods := &registry.Store{
		NewFunc: newPod, NewListFunc: newPodList, DefaultQualifiedResource: podsResource, SingularQualifiedResource: schema.GroupResource{Resource: "pod"},
		KeyRootFunc: func(ctx context.Context) string {
			return registry.NamespaceKeyRootFunc(ctx, "/"+strings.TrimSuffix(prefixOfPods, "/"))
		},
		KeyFunc: func(ctx context.Context, name string) (string, error) {
			return registry.NamespaceKeyFunc(ctx, "/"+strings.TrimSuffix(prefixOfPods, "/"), name)
		},
		PredicateFunc: func(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
			return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: attributes, IndexFields: []string{"spec.nodeName"}}
		},
		Storage:        registry.DryRunnableStorage{Storage: store, Codec: scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion)},
		TableConvertor: rest.NewDefaultTableConvertor(podsResource),
	}
	scope := &handlers.RequestScope{
		Namer:      handlers.ContextBasedNaming{Namer: apiruntime.Namer(meta.NewAccessor())},
		Serializer: scheme.Codecs, ParameterCodec: scheme.ParameterCodec, Creater: scheme.Scheme, Convertor: scheme.Scheme, Defaulter: scheme.Scheme,
		Typer: scheme.Scheme, UnsafeConvertor: apiruntime.UnsafeObjectConvertor(scheme.Scheme), TableConvertor: pods,
		Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: corev1.SchemeGroupVersion.WithKind("Pod"),
		MetaGroupVersion: metav1.SchemeGroupVersion, HubGroupVersion: corev1.SchemeGroupVersion,
	}
	list := handlers.ListResource(pods, pods, scope, false, 30*time.Minute)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/pods", list)
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods", list)
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{name}", handlers.GetResource(pods, scope))
	mux.HandleFunc("POST /api/v1/namespaces", s.writePod)
	mux.HandleFunc("POST /api/v1/namespaces/{namespace}/pods", s.writePod)
	mux.HandleFunc("PUT /api/v1/namespaces/{namespace}/pods/{name}", s.writePod)
	info := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	isLong := func(r *http.Request, info *request.RequestInfo) bool { return info.Verb == "watch" }
	return filters.WithRequestInfo(routine.WithRoutine(mux, isLong), info)
}

// serve takes the arguments of `vedette serve` that the benches give, and prints the same line when it is ready.
func serve(arguments []string) {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:0", "")
	endpoint := flags.String("etcd", "", "URL; without it objects are ready made")
	where := flags.String("etcd-prefix", "/registry", "")
	count := flags.Int("pods", 0, "that are there from the beginning, without etcd")
	size := flags.Int("size", 1024, "of a pod's JSON")
	certificate := flags.String("tls-cert", "", "")
	key := flags.String("tls-key", "", "")
	for _, name := range []string{"memory", "no-garbage-collector", "insecure-no-auth"} {
		flags.Bool(name, false, "ignored")
	}
	for _, name := range []string{"log-level", "data-dir", "token-file"} {
		flags.String(name, "", "ignored")
	}
	check(flags.Parse(arguments))
	s := &server{codec: kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, kubejson.SerializerOptions{})}
	var store storage.Interface
	if *endpoint != "" {
		store = openEtcd(*endpoint, *where+"/", false)
		s.storage = store
	} else {
		random := rand.New(rand.NewSource(*seed))
		pods := make([]*corev1.Pod, *count)
		for i := range pods {
			pods[i] = makePod(i, *size, random)
		}
		s.feed = newFeed(pods)
		store = s.feed
	}
	c := newCacherOver(store)
	if s.storage != nil {
		s.storage = cacher.NewCacheDelegator(c, store)
	}
	listener, err := net.Listen("tcp", *listen)
	check(err)
	web := &http.Server{Handler: s.handler(cacher.NewCacheDelegator(c, store))}
	scheme := "http"
	if *certificate != "" {
		pair, err := tls.LoadX509KeyPair(*certificate, *key)
		check(err)
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}})
		scheme = "https"
	}
	fmt.Fprintf(os.Stderr, "vedette: ready %s://%s\n", scheme, listener.Addr())
	check(web.Serve(listener))
}
