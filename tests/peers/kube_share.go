package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// kube-share: a real kube-apiserver and `vedette serve --etcd` on one etcd. What kubectl creates through kube-apiserver (protobuf in etcd) is read, changed
// and deleted through vedette; what is created through vedette (JSON in etcd) is read, changed and deleted through kube-apiserver; watches on both
// see the same.

const (
	kubeToken     = "peers-token"
	kubePatience  = 60 * time.Second
	kubeNamespace = "peers-share"
)

// shared is one kind of object in the test: how to make one that kube-apiserver takes.
type shared struct {
	resource  schema.GroupVersionResource
	kind      string
	namespace bool
	content   string // JSON members beside apiVersion, kind and metadata; "" for none
}

const podTemplate = `{"metadata":{"labels":{"app":"share"}},"spec":{"containers":[{"name":"main","image":"registry.example/share:1","ports":[{"containerPort":8080,"protocol":"TCP"}],` +
	`"env":[{"name":"A","value":"b"},{"name":"N","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],"resources":{"limits":{"cpu":"500m","memory":"64Mi"}},` +
	`"livenessProbe":{"httpGet":{"path":"/healthz","port":8080},"periodSeconds":7}}],"restartPolicy":"%s","terminationGracePeriodSeconds":5,` +
	`"tolerations":[{"key":"k","operator":"Exists","effect":"NoExecute","tolerationSeconds":3}],"volumes":[{"name":"v","emptyDir":{}},{"name":"c","configMap":{"name":"x","defaultMode":420}}]}}`

func podSpecOf(restart string) string {
	var template struct{ Spec json.RawMessage }
	_ = json.Unmarshal([]byte(fmt.Sprintf(podTemplate, restart)), &template)
	return string(template.Spec)
}

func sharedKinds() []shared {
	core := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	of := func(group, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	}
	template := fmt.Sprintf(podTemplate, "Always")
	workload := `"spec":{"replicas":2,"selector":{"matchLabels":{"app":"share"}},"template":` + template + `}`
	return []shared{
		{core("configmaps"), "ConfigMap", true, `"data":{"a":"b","text":"blank \" quote \\ <tag> & ünïcödé \u2028 end"},"binaryData":{"bin":"AAEC/w=="}`},
		{core("secrets"), "Secret", true, `"type":"Opaque","data":{"password":"c2VjcmV0"}`},
		{core("serviceaccounts"), "ServiceAccount", true, ``},
		{core("pods"), "Pod", true, `"spec":` + podSpecOf("Always")},
		{core("services"), "Service", true, `"spec":{"selector":{"app":"share"},"ports":[{"name":"http","port":80,"targetPort":"http"},{"name":"n","port":81,"targetPort":8081}]}`},
		{core("endpoints"), "Endpoints", true, `"subsets":[{"addresses":[{"ip":"10.1.2.3"}],"ports":[{"name":"http","port":80,"protocol":"TCP"}]}]`},
		{core("events"), "Event", true, `"involvedObject":{"kind":"Pod","namespace":"` + kubeNamespace + `","name":"x"},"reason":"Because","message":"it is so","type":"Normal","count":3,"firstTimestamp":"2026-01-02T03:04:05Z"`},
		{core("persistentvolumeclaims"), "PersistentVolumeClaim", true, `"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}`},
		{core("persistentvolumes"), "PersistentVolume", false, `"spec":{"capacity":{"storage":"5Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/tmp/x"}}`},
		{core("nodes"), "Node", false, `"spec":{"podCIDR":"10.9.0.0/24","taints":[{"key":"k","value":"v","effect":"NoSchedule"}]},"status":{"capacity":{"cpu":"4","memory":"8Gi"},"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"2026-01-02T03:04:05Z","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"R","message":"m"}]}`},
		{core("namespaces"), "Namespace", false, ``},
		{of("apps", "deployments"), "Deployment", true, workload},
		{of("apps", "replicasets"), "ReplicaSet", true, workload},
		{of("apps", "statefulsets"), "StatefulSet", true, strings.Replace(workload, `"replicas":2`, `"replicas":2,"serviceName":"share"`, 1)},
		{of("apps", "daemonsets"), "DaemonSet", true, strings.Replace(workload, `"replicas":2,`, ``, 1)},
		// Its selector is given: kube-apiserver would make one only for jobs that come through itself.
		{of("batch", "jobs"), "Job", true, `"spec":{"backoffLimit":4,"manualSelector":true,"selector":{"matchLabels":{"app":"share"}},"template":` + fmt.Sprintf(podTemplate, "Never") + `}`},
		{of("batch", "cronjobs"), "CronJob", true, `"spec":{"schedule":"*/5 * * * *","jobTemplate":{"spec":{"template":` + fmt.Sprintf(podTemplate, "OnFailure") + `}}}`},
		{of("coordination.k8s.io", "leases"), "Lease", true, `"spec":{"holderIdentity":"me","leaseDurationSeconds":15,"acquireTime":"2026-01-02T03:04:05.123456Z","renewTime":"2026-01-02T03:04:06.000001Z","leaseTransitions":2}`},
		{of("discovery.k8s.io", "endpointslices"), "EndpointSlice", true, `"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"],"conditions":{"ready":true},"nodeName":"n"}],"ports":[{"name":"http","port":80,"protocol":"TCP"}]`},
		{schema.GroupVersionResource{Group: "share.example.com", Version: "v1", Resource: "gadgets"}, "Gadget", true, `"spec":{"size":3,"nested":{"list":["a",1,true,null,1.5]}}`},
	}
}

const gadgetDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.share.example.com"},"spec":{"group":"share.example.com",` +
	`"scope":"Namespaced","names":{"plural":"gadgets","singular":"gadget","kind":"Gadget","listKind":"GadgetList"},"versions":[{"name":"v1","served":true,"storage":true,` +
	`"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

// The same for vedette.
const gadgetResource = `[{"group":"share.example.com","version":"v1","kind":"Gadget","plural":"gadgets"}]`

func (s shared) object(name string) *unstructured.Unstructured {
	metadata := fmt.Sprintf(`{"name":%q,"labels":{"made-by":"peers"},"annotations":{"note":"a & b"}`, name)
	if s.namespace {
		metadata += fmt.Sprintf(`,"namespace":%q`, kubeNamespace)
	}
	text := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":%s}`, s.resource.GroupVersion().String(), s.kind, metadata)
	if s.content != "" {
		text += "," + s.content
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(text + "}")); err != nil {
		panic(err)
	}
	return object
}

// kubeServer is a kube-apiserver that we started.
type kubeServer struct {
	command *exec.Cmd
	exited  chan struct{}
	url     string
	dir     string
}

func startKubeServer(program, etcd, dir string) (*kubeServer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	keyFile, tokenFile := filepath.Join(dir, "service-account.key"), filepath.Join(dir, "tokens.csv")
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(keyFile, text, 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(tokenFile, []byte(kubeToken+",peers,1,system:masters\n"), 0o600); err != nil {
		return nil, err
	}
	port, err := freePort(map[int]bool{})
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "kube-apiserver.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s := &kubeServer{url: fmt.Sprintf("https://127.0.0.1:%d", port), dir: dir, exited: make(chan struct{})}
	s.command = exec.Command(program, "--etcd-servers="+etcd, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir="+filepath.Join(dir, "certs"), "--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+keyFile,
		"--service-account-signing-key-file="+keyFile, "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=AlwaysAllow",
		"--token-auth-file="+tokenFile, "--disable-admission-plugins=ServiceAccount")
	s.command.Stdout, s.command.Stderr = log, log
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.command.Wait()
		close(s.exited)
	}()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	isReady, hasEnded := false, false
	pollUntil(2*time.Minute, func() bool {
		request, _ := http.NewRequest("GET", s.url+"/readyz", nil)
		request.Header.Set("Authorization", "Bearer "+kubeToken)
		if response, err := client.Do(request); err == nil {
			response.Body.Close()
			isReady = response.StatusCode == 200
		}
		select {
		case <-s.exited:
			hasEnded = true
		default:
		}
		return isReady || hasEnded
	})
	switch {
	case hasEnded:
		return nil, fmt.Errorf("kube-apiserver ended: %v\n%s", s.command.ProcessState, s.logTail())
	case !isReady:
		s.kill()
		return nil, fmt.Errorf("kube-apiserver is not ready\n%s", s.logTail())
	}
	return s, nil
}

func (s *kubeServer) kill() {
	_ = s.command.Process.Kill()
	<-s.exited
}

func (s *kubeServer) logTail() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "kube-apiserver.log"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

func runKubeShare(args []string) int {
	flags, verbose, _ := newFlags("kube-share")
	vedette := flags.String("vedette", "", "path of vedette")
	kube := flags.String("kube-apiserver", "", "path of kube-apiserver; default: beside this program")
	kubectl := flags.String("kubectl", "kubectl", "path of kubectl")
	only := flags.String("only", "", "only kinds whose resource contains this")
	upstream := flags.Bool("upstream", false, "a second kube-apiserver in vedette's place: what we expect must hold there too")
	_ = flags.Parse(args)
	if *kube == "" {
		self, _ := os.Executable()
		*kube = filepath.Join(filepath.Dir(self), "kube-apiserver")
	}
	if _, err := os.Stat(*kube); err != nil {
		fmt.Fprintf(os.Stderr, "skipped: no kube-apiserver at %s (docs/HACKING.md says how it is built)\n", *kube)
		return exitSkipped
	}
	etcd, err := findEtcd("3.7")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, errSkip) {
			return exitSkipped
		}
		return 2
	}
	report := newReport("kube-share")
	cluster, err := startEtcd(etcdOptions{program: etcd, count: 1})
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers kube-share:", err)
		return 1
	}
	defer cluster.stop()
	dir, err := os.MkdirTemp("", "vedette-kube-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers kube-share:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	kubeServer, err := startKubeServer(*kube, cluster.endpoints(true)[0], dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers kube-share:", err)
		return 1
	}
	defer kubeServer.kill()
	run := &kubeShare{report: report, upstream: *upstream, verbose: *verbose, kubectl: *kubectl, kubeURL: kubeServer.url, dir: dir}
	kubeConfig := func(url string) *rest.Config {
		return &rest.Config{Host: url, BearerToken: kubeToken, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	}
	var server *serverProcess
	var config *rest.Config
	if *upstream {
		second := filepath.Join(dir, "second")
		_ = os.Mkdir(second, 0o700)
		other, err := startKubeServer(*kube, cluster.endpoints(true)[0], second)
		if err != nil {
			fmt.Fprintln(os.Stderr, "peers kube-share:", err)
			return 1
		}
		defer other.kill()
		config = kubeConfig(other.url)
	} else {
		resources := filepath.Join(dir, "resources.json")
		if err := os.WriteFile(resources, []byte(gadgetResource), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "peers kube-share:", err)
			return 1
		}
		server, err = startServer(*vedette, "serve", "--etcd", cluster.endpoints(true)[0], "--listen", "127.0.0.1:0", "--resources", resources)
		if err == nil {
			_, err = server.awaitReady(kubePatience)
		}
		if err != nil {
			report.violation("serve", "%v", err)
			return report.finish()
		}
		defer server.kill()
		config = restConfig(server.url)
	}
	if run.kube, err = dynamic.NewForConfig(kubeConfig(kubeServer.url)); err == nil {
		run.vedette, err = dynamic.NewForConfig(config)
	}
	if err != nil {
		report.violation("clients", "%v", err)
		return report.finish()
	}
	run.all(*only)
	if server != nil {
		if err := server.terminate(); err != nil {
			report.violation("serve", "%v", err)
		}
		if report.violated() {
			fmt.Fprintf(os.Stderr, "--- stderr of vedette\n%s\n--- kube-apiserver\n%s\n", server.stderr(), kubeServer.logTail())
		}
	}
	return report.finish()
}

type kubeShare struct {
	report   *report
	upstream bool
	verbose  bool
	kubectl  string
	kubeURL  string
	dir      string
	kube     dynamic.Interface
	vedette  dynamic.Interface
}

func (k *kubeShare) all(only string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	if !k.create(fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, kubeNamespace)) || !k.create(gadgetDefinition) {
		return
	}
	kinds := 0
	for _, kind := range sharedKinds() {
		if !strings.Contains(kind.resource.Resource, only) {
			continue
		}
		kinds++
		k.kind(ctx, kind)
	}
	k.report.figure("kinds", kinds)
}

// create is `kubectl create` through kube-apiserver, repeated while a definition is not served yet.
func (k *kubeShare) create(text string) bool {
	var out []byte
	var err error
	isOver := func() bool {
		command := exec.Command(k.kubectl, "--server", k.kubeURL, "--token", kubeToken, "--insecure-skip-tls-verify", "create", "-f", "-")
		command.Env = append(os.Environ(), "HOME="+k.dir, "KUBECONFIG=/dev/null")
		command.Stdin = strings.NewReader(text)
		out, err = command.CombinedOutput()
		return err == nil || !bytes.Contains(out, []byte("no matches for kind")) && !bytes.Contains(out, []byte("could not find the requested resource"))
	}
	pollUntil(kubePatience, isOver)
	return k.report.check(err == nil, "kubectl", "create: %v: %s", err, bytes.TrimSpace(out))
}

func (k *kubeShare) of(client dynamic.Interface, kind shared) dynamic.ResourceInterface {
	if kind.namespace {
		return client.Resource(kind.resource).Namespace(kubeNamespace)
	}
	return client.Resource(kind.resource)
}

// subset tells where wanted holds something that got does not; "" when it has all.
func subset(path string, wanted, got any) string {
	switch want := wanted.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			if len(want) == 0 && got == nil {
				return "" // an empty object says nothing
			}
			return fmt.Sprintf("%s: %v is %v", path, want, got)
		}
		for key, value := range want {
			if text := subset(path+"."+key, value, have[key]); text != "" {
				return text
			}
		}
		return ""
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			return fmt.Sprintf("%s: %v is %v", path, want, got)
		}
		for i := range want {
			if text := subset(fmt.Sprintf("%s[%d]", path, i), want[i], have[i]); text != "" {
				return text
			}
		}
		return ""
	}
	if !reflect.DeepEqual(wanted, got) {
		return fmt.Sprintf("%s: %v is %v", path, wanted, got)
	}
	return ""
}

// different compares in both directions.
func different(kube, vedette map[string]any) string {
	if text := subset("", kube, vedette); text != "" {
		return "vedette lacks " + text
	}
	if text := subset("", vedette, kube); text != "" {
		return "vedette adds " + text
	}
	return ""
}

// kind takes one kind through its whole life, on both servers.
func (k *kubeShare) kind(ctx context.Context, kind shared) {
	name := kind.resource.Resource
	if k.verbose {
		fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format("15:04:05.000"), name)
	}
	kube, vedette := k.of(k.kube, kind), k.of(k.vedette, kind)
	// A kind that was only just defined is served a moment later.
	var list *unstructured.UnstructuredList
	var err error
	pollUntil(kubePatience, func() bool {
		if list, err = kube.List(ctx, metav1.ListOptions{}); err == nil {
			_, err = vedette.List(ctx, metav1.ListOptions{})
		}
		return err == nil
	})
	if !k.report.check(err == nil, "same objects", "%s: list: %v", name, err) {
		return
	}
	watches := k.watch(ctx, kind, list.GetResourceVersion())
	if watches == nil {
		return
	}
	defer watches.stop()

	// Made by kubectl through kube-apiserver, so protobuf in etcd (JSON for custom kinds).
	text, _ := json.Marshal(kind.object("from-kube").Object)
	if !k.create(string(text)) {
		return
	}
	a, err := kube.Get(ctx, "from-kube", metav1.GetOptions{})
	if !k.report.check(err == nil, "same objects", "%s: get from kube-apiserver: %v", name, err) {
		return
	}
	same := func(what string, wanted *unstructured.Unstructured) {
		got, err := vedette.Get(ctx, wanted.GetName(), metav1.GetOptions{})
		if k.report.check(err == nil, "same objects", "%s: %s: vedette: %v", name, what, err) {
			difference := different(wanted.Object, got.Object)
			k.report.check(difference == "", "same objects", "%s: %s: %s", name, what, difference)
		}
	}
	if name == "persistentvolumeclaims" && !k.upstream {
		// Not stored: kube-apiserver fills it in when it reads (SetDefaults_PersistentVolumeClaim).
		unstructured.RemoveNestedField(a.Object, "status", "phase")
	}
	same("created through kube-apiserver", a)
	// Changed by kube-apiserver, then by vedette, then by kube-apiserver again.
	label := func(client dynamic.ResourceInterface, name, value string) (*unstructured.Unstructured, error) {
		return client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"step":"`+value+`"}}}`), metav1.PatchOptions{})
	}
	if a, err = label(kube, "from-kube", "one"); k.report.check(err == nil, "same objects", "%s: patch through kube-apiserver: %v", name, err) {
		same("patched through kube-apiserver", a)
	}
	if b, err := label(vedette, "from-kube", "two"); k.report.check(err == nil, "same objects", "%s: patch through vedette: %v", name, err) {
		got, err := kube.Get(ctx, "from-kube", metav1.GetOptions{})
		if k.report.check(err == nil, "same objects", "%s: get from kube-apiserver what vedette patched: %v", name, err) {
			difference := subset("", b.Object, got.Object)
			k.report.check(difference == "", "same objects", "%s: patched through vedette, kube-apiserver lacks %s", name, difference)
			// Nothing else was changed by the way through vedette.
			for _, object := range []*unstructured.Unstructured{a, got} {
				object.SetResourceVersion("")
				object.SetLabels(nil)
				object.SetManagedFields(nil)
				object.SetGeneration(0)
			}
			difference = different(a.Object, got.Object)
			k.report.check(difference == "", "same objects", "%s: a patch through vedette changed more: %s", name, difference)
		}
	}
	if a, err = label(kube, "from-kube", "three"); k.report.check(err == nil, "same objects", "%s: patch through kube-apiserver of what vedette wrote: %v", name, err) {
		same("patched through kube-apiserver again", a)
	}

	// Made through vedette, so JSON in etcd.
	b, err := vedette.Create(ctx, kind.object("from-vedette"), metav1.CreateOptions{})
	if k.report.check(err == nil, "same objects", "%s: create through vedette: %v", name, err) {
		got, err := kube.Get(ctx, "from-vedette", metav1.GetOptions{})
		if k.report.check(err == nil, "same objects", "%s: get from kube-apiserver what vedette created: %v", name, err) {
			difference := subset("", b.Object, got.Object)
			k.report.check(difference == "", "same objects", "%s: created through vedette, kube-apiserver lacks %s", name, difference)
		}
		if got, err = label(kube, "from-vedette", "one"); k.report.check(err == nil, "same objects", "%s: patch through kube-apiserver of what vedette made: %v", name, err) {
			same("made by vedette, patched through kube-apiserver", got)
		}
	}
	// Conflicts are seen across servers.
	stale, err := vedette.Get(ctx, "from-vedette", metav1.GetOptions{})
	if err == nil {
		if _, err = label(kube, "from-vedette", "two"); err == nil {
			stale.SetLabels(map[string]string{"step": "stale"})
			_, err = vedette.Update(ctx, stale, metav1.UpdateOptions{})
			k.report.check(apierrors.IsConflict(err), "same objects", "%s: an update of an old revision through vedette: %v", name, err)
		}
	}
	k.remove(ctx, kind, kube, vedette)
	watches.compare()
}

// remove deletes each object through the server that did not make it.
func (k *kubeShare) remove(ctx context.Context, kind shared, kube, vedette dynamic.ResourceInterface) {
	name, now := kind.resource.Resource, int64(0)
	for _, step := range []struct {
		object         string
		through, other dynamic.ResourceInterface
		who            string
	}{{"from-kube", vedette, kube, "vedette"}, {"from-vedette", kube, vedette, "kube-apiserver"}} {
		err := step.through.Delete(ctx, step.object, metav1.DeleteOptions{GracePeriodSeconds: &now})
		k.report.check(err == nil, "same objects", "%s: delete of %s through %s: %v", name, step.object, step.who, err)
		if name == "namespaces" {
			continue // kube-apiserver waits for a controller that finalizes them
		}
		// Finalizers that admission added (claims, volumes) are for controllers that are not here.
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		_, _ = kube.Patch(ctx, step.object, types.MergePatchType, patch, metav1.PatchOptions{})
		_, err = step.other.Get(ctx, step.object, metav1.GetOptions{})
		k.report.check(apierrors.IsNotFound(err), "same objects", "%s: %s was deleted through %s, the other server says %v", name, step.object, step.who, err)
	}
}

// twoWatches watches one kind on both servers from the same revision.
type twoWatches struct {
	share  *kubeShare
	kind   shared
	cancel context.CancelFunc

	mu      sync.Mutex
	changed *sync.Cond
	events  [2][]watchedEvent // kube-apiserver, vedette
	ended   [2]error
}

type watchedEvent struct {
	kind     string
	name     string
	revision string
	object   map[string]any
}

func (k *kubeShare) watch(ctx context.Context, kind shared, revision string) *twoWatches {
	watchContext, cancel := context.WithCancel(ctx)
	t := &twoWatches{share: k, kind: kind, cancel: cancel}
	t.changed = sync.NewCond(&t.mu)
	for i, client := range []dynamic.Interface{k.kube, k.vedette} {
		watch, err := k.of(client, kind).Watch(watchContext, metav1.ListOptions{ResourceVersion: revision, LabelSelector: "made-by=peers"})
		if !k.report.check(err == nil, "same objects", "%s: watch %d: %v", kind.resource.Resource, i, err) {
			cancel()
			return nil
		}
		go func() {
			for event := range watch.ResultChan() {
				object, ok := event.Object.(*unstructured.Unstructured)
				t.mu.Lock()
				if ok {
					t.events[i] = append(t.events[i], watchedEvent{string(event.Type), object.GetName(), object.GetResourceVersion(), object.Object})
				} else {
					t.ended[i] = fmt.Errorf("%v", event.Object)
				}
				t.changed.Broadcast()
				t.mu.Unlock()
			}
			t.mu.Lock()
			if t.ended[i] == nil {
				t.ended[i] = errors.New("closed")
			}
			t.changed.Broadcast()
			t.mu.Unlock()
		}()
	}
	return t
}

func (t *twoWatches) stop() { t.cancel() }

// compare waits until both have seen the end of both objects, and holds them against each other.
func (t *twoWatches) compare() {
	report, name := t.share.report, t.kind.resource.Resource
	expired := false
	timer := time.AfterFunc(kubePatience, func() {
		t.mu.Lock()
		expired = true
		t.changed.Broadcast()
		t.mu.Unlock()
	})
	defer timer.Stop()
	deletions := func(events []watchedEvent) (n int) {
		for _, event := range events {
			if event.kind == "DELETED" {
				n++
			}
		}
		return
	}
	wanted := 2
	if name == "namespaces" {
		wanted = 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for !expired && t.ended[0] == nil && t.ended[1] == nil && (deletions(t.events[0]) < wanted || deletions(t.events[1]) < wanted ||
		len(t.events[0]) != len(t.events[1])) {
		t.changed.Wait()
	}
	report.check(t.ended[0] == nil && t.ended[1] == nil, "same objects", "%s: watches ended: kube-apiserver %v, vedette %v", name, t.ended[0], t.ended[1])
	if !report.check(len(t.events[0]) == len(t.events[1]) && len(t.events[0]) > 4, "same objects", "%s: kube-apiserver's watch saw %d events, vedette's %d", name,
		len(t.events[0]), len(t.events[1])) {
		return
	}
	for i, event := range t.events[0] {
		other := t.events[1][i]
		if report.check(event.kind == other.kind && event.name == other.name && event.revision == other.revision, "same objects",
			"%s: event %d: kube-apiserver %s %s %s, vedette %s %s %s", name, i, event.kind, event.name, event.revision, other.kind, other.name,
			other.revision) {
			difference := subset("", other.object, event.object)
			report.check(difference == "", "same objects", "%s: event %d, %s %s at %s: kube-apiserver lacks %s", name, i, event.kind, event.name, event.revision,
				difference)
		}
	}
}
