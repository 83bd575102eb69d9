package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// kube-informer: client-go's informers on any server, with the commands and reports of tests/integration/kube_witness.c, so that
// kube_informers.py compares the events of both, and bench group kube their costs.

type kubeInformer struct {
	config  *rest.Config
	dynamic dynamic.Interface
	typed   kubernetes.Interface // nil: pods are unstructured, too
	quiet   bool
	events  atomic.Int64
	lock    sync.Mutex
	out     *bufio.Writer
	stores  map[string]cache.Store
	ends    map[string]chan struct{}
	mapper  func(resource string) (schema.GroupVersionResource, error)
}

func (k *kubeInformer) print(format string, values ...any) {
	k.lock.Lock()
	defer k.lock.Unlock()
	fmt.Fprintf(k.out, format, values...)
	k.out.Flush()
}

func (k *kubeInformer) event(kind, id string, object, old any) {
	k.events.Add(1)
	if k.quiet {
		return
	}
	meta := object.(metav1.Object)
	line := fmt.Sprintf("%s %s %s/%s %s", kind, id, meta.GetNamespace(), meta.GetName(), meta.GetResourceVersion())
	if old != nil {
		line += " " + old.(metav1.Object).GetResourceVersion()
	}
	k.print("%s\n", line)
}

func (k *kubeInformer) handler(id string) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if initial {
				k.event("I", id, object, nil)
			} else {
				k.event("A", id, object, nil)
			}
		},
		UpdateFunc: func(old, object any) { k.event("U", id, object, old) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				k.event("X", id, unknown.Obj, nil)
			} else {
				k.event("D", id, object, nil)
			}
		},
	}
}

func (k *kubeInformer) open(id, resource, namespace, labels, fields string) error {
	member := func(word string) string { return strings.TrimPrefix(word, "-") }
	tweak := func(options *metav1.ListOptions) {
		options.LabelSelector, options.FieldSelector = member(labels), member(fields)
	}
	var informer cache.SharedIndexInformer
	if k.typed != nil && resource == "pods" {
		factory := informers.NewSharedInformerFactoryWithOptions(k.typed, 0, informers.WithNamespace(member(namespace)), informers.WithTweakListOptions(tweak))
		informer = factory.Core().V1().Pods().Informer()
	} else {
		gvr, err := k.mapper(resource)
		if err != nil {
			return err
		}
		informer = dynamicinformer.NewFilteredDynamicInformer(k.dynamic, gvr, member(namespace), 0, cache.Indexers{}, tweak).Informer()
	}
	registration, err := informer.AddEventHandler(k.handler(id))
	if err != nil {
		return err
	}
	end := make(chan struct{})
	k.stores[id], k.ends[id] = informer.GetStore(), end
	go informer.Run(end)
	go func() {
		if cache.WaitForCacheSync(end, registration.HasSynced) {
			k.print("S %s\n", id)
		}
	}()
	return nil
}

func (k *kubeInformer) dump(id string) {
	objects := k.stores[id].List()
	for _, object := range objects {
		text, _ := json.Marshal(object.(runtime.Object))
		k.print("O %s %s\n", id, text)
	}
	k.print("o %s %d 0\n", id, len(objects))
}

func (k *kubeInformer) request(path string) {
	client, err := rest.HTTPClientFor(k.config)
	if err != nil {
		k.print("R error 0 0 %v\n", err)
		return
	}
	answer, err := client.Get(k.config.Host + path)
	if err != nil {
		k.print("R unavailable 0 0 %v\n", err)
		return
	}
	answer.Body.Close()
	status := map[int]string{200: "ok", 404: "not_found"}[answer.StatusCode]
	k.print("R %s %d 0\n", status, answer.StatusCode)
}

func (k *kubeInformer) usage() {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	pages := 0
	if statm, err := os.ReadFile("/proc/self/statm"); err == nil {
		pages, _ = strconv.Atoi(strings.Fields(string(statm))[1])
	}
	k.print("u %d %d %d\n", pages*os.Getpagesize(), (usage.Utime.Nano()+usage.Stime.Nano())/1000, k.events.Load())
}

func (k *kubeInformer) obey(words []string) (err error) {
	switch words[0] {
	case "open":
		if len(words) != 6 {
			return fmt.Errorf("open has %d words, not 6", len(words))
		}
		return k.open(words[1], words[2], words[3], words[4], words[5])
	case "close":
		close(k.ends[words[1]])
		delete(k.ends, words[1])
	case "dump":
		k.dump(words[1])
	case "request":
		k.request(words[2])
	case "health":
		k.print("h\n")
	case "usage":
		k.usage()
	default:
		err = fmt.Errorf("no such command: %s", words[0])
	}
	return err
}

// mapperOf resolves names such as "deployments.apps" by discovery, once.
func mapperOf(config *rest.Config) func(resource string) (schema.GroupVersionResource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	var groups []*restmapper.APIGroupResources
	if err == nil {
		groups, err = restmapper.GetAPIGroupResources(client)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	return func(resource string) (schema.GroupVersionResource, error) {
		if err != nil {
			return schema.GroupVersionResource{}, err
		}
		plural, group, _ := strings.Cut(resource, ".")
		return mapper.ResourceFor(schema.GroupVersionResource{Group: group, Resource: plural})
	}
}

func runKubeInformer(args []string) int {
	flags, verbose, _ := newFlags("kube-informer")
	kubeconfig := flags.String("kubeconfig", "", "file")
	contextName := flags.String("context", "", "context of the kubeconfig")
	_ = flags.Int("silence", 0, "ignored")
	typed := flags.Bool("typed", false, "pods are decoded from protobuf into their Go type, as most programs do")
	quiet := flags.Bool("quiet", false, "events are only counted")
	_ = flags.Parse(args)
	setVerbose(*verbose)
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: *kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: *contextName}).ClientConfig()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	config.QPS, config.Burst, config.Timeout = -1, 0, 0
	k := &kubeInformer{config: config, quiet: *quiet, out: bufio.NewWriter(os.Stdout), stores: map[string]cache.Store{}, ends: map[string]chan struct{}{}, mapper: mapperOf(config)}
	if k.dynamic, err = dynamic.NewForConfig(config); err == nil && *typed {
		binary := rest.CopyConfig(config)
		binary.ContentType = runtime.ContentTypeProtobuf
		k.typed, err = kubernetes.NewForConfig(binary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	k.print("ready %s\n", config.Host)
	scanner := bufio.NewScanner(os.Stdin)
	for scanner.Scan() && scanner.Text() != "quit" {
		if words := strings.Fields(scanner.Text()); len(words) > 0 {
			if err := k.obey(words); err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", scanner.Text(), err)
				continue
			}
		}
	}
	for _, end := range k.ends {
		close(end)
	}
	k.print("bye\n")
	return 0
}
