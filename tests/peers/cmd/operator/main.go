// operator is a small operator on controller-runtime, and the world that tries it: a custom kind with defaults, a status subresource and a
// finalizer, which owns ConfigMaps. Against a `vedette serve` of its own, on a data directory, that is killed (kill -9) in the middle of
// the work. In the end what is there must be what was asked for: nothing missing, nothing left over, everything told in the status.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"net"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// patience is how long anything may take on a machine that is busy: a guard, not an expectation.
var patience = 5 * time.Minute

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(extensions.AddToScheme(scheme))
	utilruntime.Must(addToScheme(scheme))
}

// world is what was asked for: by name, the parts of the widgets that live.
type world struct {
	client client.Client
	random *rand.Rand
	living map[string]int
	next   int
}

// insist repeats what fails because nobody is there to answer, until an answer comes.
func insist(ctx context.Context, do func() error) error {
	var err error
	if over := poll(ctx, func() bool {
		err = do()
		var status apierrors.APIStatus
		return err == nil || errors.As(err, &status) && !apierrors.IsTooManyRequests(err) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTimeout(err) &&
			!apierrors.IsServerTimeout(err) && !apierrors.IsInternalError(err)
	}); over != nil {
		return fmt.Errorf("%w; last: %w", over, err)
	}
	return err
}

// poll calls done until it returns true, or ctx ends: another process offers no notification of the state.
func poll(ctx context.Context, done func() bool) error {
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) { return done(), nil })
}

func (w *world) create(ctx context.Context) error {
	w.next++
	widget := &Widget{}
	widget.Namespace, widget.Name = namespace, fmt.Sprintf("w%03d", w.next)
	widget.Spec.Parts = w.random.Intn(5)
	wanted := widget.Spec.Parts
	err := insist(ctx, func() error { return w.client.Create(ctx, widget) })
	if apierrors.IsAlreadyExists(err) { // the answer to the first attempt was lost
		err = insist(ctx, func() error { return w.client.Get(ctx, client.ObjectKeyFromObject(widget), widget) })
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", widget.Name, err)
	}
	if widget.Spec.Color != defaultColor {
		return fmt.Errorf("%s was created with the color %q: the schema's default is %q", widget.Name, widget.Spec.Color, defaultColor)
	}
	w.living[widget.Name] = wanted
	return nil
}

func (w *world) pick() string {
	var names []string
	for name := range w.living {
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	sort.Strings(names)
	return names[w.random.Intn(len(names))]
}

func (w *world) resize(ctx context.Context) error {
	name := w.pick()
	if name == "" {
		return nil
	}
	parts := w.random.Intn(5)
	widget := &Widget{}
	widget.Namespace, widget.Name = namespace, name
	patch := client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(`{"spec":{"parts":%d}}`, parts)))
	if err := insist(ctx, func() error { return w.client.Patch(ctx, widget, patch) }); err != nil {
		return fmt.Errorf("patch %s: %w", name, err)
	}
	w.living[name] = parts
	return nil
}

func (w *world) remove(ctx context.Context) error {
	name := w.pick()
	if name == "" {
		return nil
	}
	widget := &Widget{}
	widget.Namespace, widget.Name = namespace, name
	if err := insist(ctx, func() error { return client.IgnoreNotFound(w.client.Delete(ctx, widget)) }); err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	delete(w.living, name)
	return nil
}

// refuse: what the schema does not allow is refused with the field's name.
func (w *world) refuse(ctx context.Context) error {
	widget := &Widget{}
	widget.Namespace, widget.Name = namespace, "too-many"
	widget.Spec.Parts = 1000
	err := insist(ctx, func() error { return w.client.Create(ctx, widget) })
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.parts") {
		return fmt.Errorf("a widget of 1000 parts: %v: it should be invalid, and say that it is spec.parts", err)
	}
	return nil
}

// differences are what is not as it was asked for.
func (w *world) differences(ctx context.Context, op *operator) ([]string, error) {
	var found []string
	var widgets WidgetList
	var maps corev1.ConfigMapList
	if err := insist(ctx, func() error { return w.client.List(ctx, &widgets, client.InNamespace(namespace)) }); err != nil {
		return nil, err
	}
	if err := insist(ctx, func() error { return w.client.List(ctx, &maps, client.InNamespace(namespace)) }); err != nil {
		return nil, err
	}
	owned := map[string]int{}
	for i := range maps.Items {
		for _, reference := range maps.Items[i].OwnerReferences {
			owned[string(reference.UID)]++
		}
	}
	seen := map[string]bool{}
	for i := range widgets.Items {
		widget := &widgets.Items[i]
		parts, lives := w.living[widget.Name]
		seen[widget.Name] = true
		switch count := owned[string(widget.UID)]; {
		case !lives:
			found = append(found, widget.Name+" is still there")
		case widget.Spec.Parts != parts || count != parts:
			found = append(found, fmt.Sprintf("%s: %d parts asked for, %d in the spec, %d are there", widget.Name, parts, widget.Spec.Parts, count))
		case widget.Status.Ready != parts || widget.Status.ObservedGeneration != widget.Generation:
			found = append(found, fmt.Sprintf("%s: its status %+v of generation %d", widget.Name, widget.Status, widget.Generation))
		}
		delete(owned, string(widget.UID))
	}
	for uid, count := range owned {
		found = append(found, fmt.Sprintf("%d parts of %s, which is gone", count, uid))
	}
	for name := range w.living {
		if !seen[name] {
			found = append(found, name+" is missing")
		}
	}
	adopted, cleaned := op.story()
	for i := range widgets.Items {
		uid := string(widgets.Items[i].UID)
		if cleaned[uid] {
			found = append(found, widgets.Items[i].Name+" was cleaned up, and lives")
		}
		delete(adopted, uid)
	}
	for uid := range adopted {
		if !cleaned[uid] {
			found = append(found, uid+" went without being cleaned up")
		}
	}
	return found, nil
}

func (w *world) settle(ctx context.Context, op *operator) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last []string
	var err error
	over := poll(ctx, func() bool {
		var found []string
		if found, err = w.differences(ctx, op); err == nil {
			last = found
		}
		return err != nil || len(found) == 0
	})
	switch {
	case err != nil:
		return fmt.Errorf("%w; before: %s", err, strings.Join(last, "; "))
	case over != nil:
		return fmt.Errorf("not settled after %v: %s", patience, strings.Join(last, "; "))
	}
	return nil
}

func newManager(config *rest.Config, op *operator) (ctrl.Manager, error) {
	lease, renew, retry := 4*time.Minute, 3*time.Minute, 500*time.Millisecond
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, LeaderElection: true,
		LeaderElectionID: "widgets.example.dev", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true, LeaseDuration: &lease,
		RenewDeadline: &renew, RetryPeriod: &retry})
	if err != nil {
		return nil, err
	}
	return manager, op.setup(manager)
}

// runManager runs one until stop is called, which returns what it ended with.
func runManager(config *rest.Config, op *operator) (stop func() error, elected <-chan struct{}, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	manager, err := newManager(config, op)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	return func() error { cancel(); return <-ended }, manager.Elected(), nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

func run(vedette string, steps, kills int, seed int64) error {
	dir, err := os.MkdirTemp("", "vedette-operator-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	address, err := freeAddress()
	if err != nil {
		return err
	}
	keeper := &keeper{program: vedette, arguments: []string{"serve", "--data-dir", dir, "--listen", address}}
	if err := keeper.start(); err != nil {
		return err
	}
	defer keeper.kill()

	config := &rest.Config{Host: "http://" + address, QPS: -1}
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	if err := installKind(ctx, direct); err != nil {
		return fmt.Errorf("the kind: %w", err)
	}

	w := &world{client: direct, random: rand.New(rand.NewSource(seed)), living: map[string]int{}}
	op := newOperator("widget")
	stop, elected, err := runManager(config, op)
	if err != nil {
		return err
	}
	select {
	case <-elected:
	case <-time.After(patience):
		return errors.New("nobody was elected")
	}
	if err := w.refuse(ctx); err != nil {
		return err
	}

	var killing sync.WaitGroup
	killed := 0
	for step := range steps {
		do := w.create
		switch chance := w.random.Intn(10); {
		case chance >= 8:
			do = w.remove
		case chance >= 5:
			do = w.resize
		}
		if err := do(ctx); err != nil {
			return err
		}
		if kills > 0 && (step+1)%max(1, steps/(kills+1)) == 0 && killed < kills {
			killed++
			killing.Wait()
			killing.Add(1)
			go func() { defer killing.Done(); keeper.restart() }() // the next steps and the operator go on meanwhile
		}
	}
	killing.Wait()
	if keeper.err != nil {
		return keeper.err
	}
	if err := w.settle(ctx, op); err != nil {
		return err
	}
	first := op.reconciled.Load()

	// Another one takes over, and finds nothing to do but to look.
	if err := stop(); err != nil {
		return fmt.Errorf("the first manager ended with: %w", err)
	}
	next := newOperator("widget-again")
	next.adopted, next.cleaned = op.story()
	stop, elected, err = runManager(config, next)
	if err != nil {
		return err
	}
	select {
	case <-elected:
	case <-time.After(patience):
		return errors.New("the second manager was not elected after the first had let go")
	}
	for name := range w.living {
		if err := insist(ctx, func() error { return w.client.Delete(ctx, named(name)) }); err != nil {
			return err
		}
		delete(w.living, name)
	}
	if err := w.settle(ctx, next); err != nil {
		return err
	}
	if err := stop(); err != nil {
		return fmt.Errorf("the second manager ended with: %w", err)
	}
	if err := removeKind(ctx, direct); err != nil {
		return fmt.Errorf("removing the kind: %w", err)
	}
	fmt.Printf("operator: %d steps, %d widgets, %d kills, %d and %d reconciliations: all as asked for\n", steps, w.next, keeper.kills, first, next.reconciled.Load())
	return nil
}

func main() {
	vedette := flag.String("vedette", "vedette", "the program")
	steps := flag.Int("steps", 60, "creations, changes and deletions")
	kills := flag.Int("kills", 3, "kill -9 of the server meanwhile")
	seed := flag.Int64("seed", 1, "of the steps")
	flag.DurationVar(&patience, "patience", patience, "how long anything may take")
	verbose := flag.Bool("v", false, "show what the manager logs")
	flag.Parse()
	if *verbose {
		ctrl.SetLogger(zap.New())
	} else {
		log.SetLogger(logr.Discard())
	}
	if err := run(*vedette, *steps, *kills, *seed); err != nil {
		fmt.Fprintf(os.Stderr, "operator: seed %d: %v\n", *seed, err)
		os.Exit(1)
	}
}
