// A test of a controller written with client-go, against `vedette replay --listen`: a recorded cluster, with faults from a seed, for a real client.
//
//	go-controller --vedette build/tools/vedette/vedette --log examples/logs/namespace-deletion.ndjson.zst
//
// The controller keeps the config map default/pods-per-node true: for every node, how many pods are on it. It counts what its informer tells it. The planted bug is a
// famous one: when an informer was away for too long it lists again, and what went meanwhile comes as a cache.DeletedFinalStateUnknown instead of a pod. Who looks only for
// pods counts those for ever. It shows only when the history was compacted at the wrong moment, so it is looked for under many seeds.
//
// Prints one line for each controller; exit status 0 when the fixed one was right under every seed and the planted bug was found.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	namespace = "default"
	result    = "pods-per-node"
	marker    = "end-of-the-simulation"
	// Nothing is measured by it: it ends a run that hangs.
	hang = 5 * time.Minute
)

// ---- The controller ----

type controller struct {
	client kubernetes.Interface
	fixed  bool

	lock    sync.Mutex
	nodes   map[string]string // pod -> node
	changed chan struct{}
	marked  chan struct{} // the marker was seen: everything before it was, too
}

func newController(client kubernetes.Interface, fixed bool) *controller {
	return &controller{client: client, fixed: fixed, nodes: map[string]string{}, changed: make(chan struct{}, 1), marked: make(chan struct{})}
}

func (c *controller) set(object any) {
	pod := object.(*corev1.Pod)
	c.lock.Lock()
	_, known := c.nodes[pod.Namespace+"/"+pod.Name]
	c.nodes[pod.Namespace+"/"+pod.Name] = pod.Spec.NodeName
	c.lock.Unlock()
	c.wake()
	if pod.Name == marker && !known {
		close(c.marked)
	}
}

func (c *controller) remove(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok && c.fixed { // the planted bug is the lack of this
		object = tombstone.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	c.lock.Lock()
	delete(c.nodes, pod.Namespace+"/"+pod.Name)
	c.lock.Unlock()
	c.wake()
}

func (c *controller) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// What the config map should say.
func (c *controller) counts() map[string]string {
	c.lock.Lock()
	defer c.lock.Unlock()
	return count(c.nodes)
}

func count(nodes map[string]string) map[string]string {
	numbers := map[string]int{}
	for _, node := range nodes {
		if node != "" {
			numbers[node]++
		}
	}
	data := map[string]string{}
	for node, number := range numbers {
		data[node] = fmt.Sprint(number)
	}
	return data
}

func (c *controller) write(ctx context.Context) error {
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: result, Namespace: namespace}, Data: c.counts()}
	_, err := c.client.CoreV1().ConfigMaps(namespace).Update(ctx, wanted, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = c.client.CoreV1().ConfigMaps(namespace).Create(ctx, wanted, metav1.CreateOptions{})
	}
	return err
}

func (c *controller) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		}
		if err := c.write(ctx); err != nil && ctx.Err() == nil { // refused: again, a little later
			time.AfterFunc(50*time.Millisecond, c.wake)
		}
	}
}

// ---- The recorded cluster ----

type cluster struct {
	process *exec.Cmd
	url     string
}

func start(vedette, log string, seed int, speed float64, faults string) (*cluster, error) {
	process := exec.Command(vedette, "replay", log, "--listen", "127.0.0.1:0", "--paused", "--seed", fmt.Sprint(seed), "--speed", fmt.Sprint(speed), "--faults", faults)
	stderr, err := process.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(stderr)
	said := ""
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "vedette: ready "); ok {
			go io.Copy(io.Discard, stderr)
			return &cluster{process, url}, nil
		}
		said += lines.Text() + "\n"
	}
	process.Wait()
	return nil, fmt.Errorf("vedette did not start: %s", said)
}

func (c *cluster) stop() {
	c.process.Process.Signal(syscall.SIGTERM)
	c.process.Wait()
}

func (c *cluster) play() {
	c.process.Process.Signal(syscall.SIGUSR1)
}

// Whether the log has been played to its end.
func (c *cluster) ended() (bool, error) {
	var debug struct {
		Store struct{ Replay struct{ Ended bool } }
	}
	answer, err := http.Get(c.url + "/debug/vedette")
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	err = json.NewDecoder(answer.Body).Decode(&debug)
	return debug.Store.Replay.Ended, err
}

// Calls try until it succeeds; faults refuse calls now and then.
func retry(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %v", ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ---- One run ----

var errNotYet = fmt.Errorf("not yet")

// What the controller should know, read without any informer. The marker is no pod of the log.
func truth(ctx context.Context, client kubernetes.Interface) (map[string]string, error) {
	nodes := map[string]string{}
	err := retry(ctx, func() error {
		pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			nodes[pod.Namespace+"/"+pod.Name] = pod.Spec.NodeName
		}
		return nil
	})
	return count(nodes), err
}

func putMarker(ctx context.Context, client kubernetes.Interface) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: marker, Namespace: namespace},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}}
	return retry(ctx, func() error {
		_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // the answer to the first try was lost
			return nil
		}
		return err
	})
}

// "" when the controller was right, else what was wrong.
func simulate(options options, seed int, fixed bool) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	world, err := start(options.vedette, options.log, seed, options.speed, options.faults)
	if err != nil {
		return "", err
	}
	defer world.stop()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: world.url, QPS: -1})
	if err != nil {
		return "", err
	}
	subject := newController(client, fixed)
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: subject.set, UpdateFunc: func(_, object any) { subject.set(object) }, DeleteFunc: subject.remove}); err != nil {
		return "", err
	}
	factory.Start(ctx.Done())
	go subject.run(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		return "", ctx.Err()
	}

	world.play()
	if err := retry(ctx, func() error {
		ended, err := world.ended()
		if err == nil && !ended {
			err = errNotYet
		}
		return err
	}); err != nil {
		return "", err
	}
	// Behind everything else; when the controller has seen it, it has seen all.
	if err := putMarker(ctx, client); err != nil {
		return "", err
	}
	select {
	case <-subject.marked:
	case <-ctx.Done():
		return "the controller has never seen the last pod", nil
	}
	right, err := truth(ctx, client)
	if err != nil {
		return "", err
	}
	if counted := subject.counts(); !reflect.DeepEqual(counted, right) {
		return fmt.Sprintf("the controller counts %v, there are %v", counted, right), nil
	}
	// What it knows it also writes, in the end.
	err = retry(ctx, func() error {
		written, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, result, metav1.GetOptions{})
		if err == nil && !reflect.DeepEqual(written.Data, right) {
			err = fmt.Errorf("the config map says %v", written.Data)
		}
		return err
	})
	return "", err
}

// ---- Many runs ----

type options struct {
	vedette, log, faults string
	speed                float64
	runs, parallel       int
}

// The runs of one controller, several at a time; with stop, until the first seed that shows something wrong.
func search(options options, fixed, stop bool) (runs int, found string, err error) {
	var lock sync.Mutex
	var group sync.WaitGroup
	next := 0
	for range options.parallel {
		group.Go(func() {
			for {
				lock.Lock()
				seed := next
				done := seed >= options.runs || err != nil || (stop && found != "")
				next++
				lock.Unlock()
				if done {
					return
				}
				wrong, failure := simulate(options, seed, fixed)
				lock.Lock()
				runs++
				if failure != nil && err == nil {
					err = fmt.Errorf("seed %d: %w", seed, failure)
				}
				if wrong != "" && found == "" {
					found = fmt.Sprintf("seed %d: %s", seed, wrong)
				}
				lock.Unlock()
			}
		})
	}
	group.Wait()
	return runs, found, err
}

func main() {
	var options options
	flag.StringVar(&options.vedette, "vedette", "vedette", "the program")
	flag.StringVar(&options.log, "log", "examples/logs/namespace-deletion.ndjson.zst", "what is replayed")
	flag.StringVar(&options.faults, "faults", "compact=0.02,disconnect=0.01,refuse=0.01", "as of vedette replay")
	flag.Float64Var(&options.speed, "speed", 20, "times recorded time")
	flag.IntVar(&options.runs, "runs", 100, "seeds for the fixed controller; the bug is looked for under twice as many, at least 200")
	flag.IntVar(&options.parallel, "parallel", 8, "runs at a time")
	flag.Parse()
	klog.SetLogger(logr.Discard()) // reflectors tell every cut

	failed := false
	runs, found, err := search(options, true, true)
	switch {
	case err != nil:
		fmt.Println("fixed controller:", err)
		failed = true
	case found != "":
		fmt.Println("fixed controller: wrong under", found)
		failed = true
	default:
		fmt.Printf("fixed controller: right under %d seeds\n", runs)
	}
	options.runs = max(200, 2*options.runs)
	runs, found, err = search(options, false, true)
	switch {
	case err != nil:
		fmt.Println("planted bug:", err)
		failed = true
	case found == "":
		fmt.Printf("planted bug: not found under %d seeds\n", runs)
		failed = true
	default:
		fmt.Printf("planted bug: found after %d runs, %s\n", runs, found)
	}
	if failed {
		os.Exit(1)
	}
}
