package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// operator gives each widget as many ConfigMaps as it has parts, and says so in its status. It remembers whom it has cleaned up after.
type operator struct {
	client     client.Client
	controller string
	reconciled atomic.Int64

	mu      sync.Mutex
	adopted map[string]bool // uids of those that have had the finalizer
	cleaned map[string]bool
}

func newOperator(controller string) *operator {
	return &operator{controller: controller, adopted: map[string]bool{}, cleaned: map[string]bool{}}
}

// story is a copy of what it remembers.
func (o *operator) story() (adopted, cleaned map[string]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.adopted), maps.Clone(o.cleaned)
}

func (o *operator) remember(what map[string]bool, widget *Widget) {
	o.mu.Lock()
	defer o.mu.Unlock()
	what[string(widget.UID)] = true
}

func (o *operator) setup(manager ctrl.Manager) error {
	o.client = manager.GetClient()
	return ctrl.NewControllerManagedBy(manager).Named(o.controller).For(&Widget{}).Owns(&corev1.ConfigMap{}, builder.OnlyMetadata).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete(o)
}

func (o *operator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	o.reconciled.Add(1)
	widget := &Widget{}
	if err := o.client.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		o.remember(o.cleaned, widget)
		if controllerutil.RemoveFinalizer(widget, finalizer) {
			return ctrl.Result{}, client.IgnoreNotFound(o.client.Update(ctx, widget))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(widget, finalizer) {
		if err := o.client.Update(ctx, widget); err != nil {
			return ctrl.Result{}, err
		}
	}
	o.remember(o.adopted, widget)
	if err := o.makeParts(ctx, widget); err != nil {
		return ctrl.Result{}, err
	}
	if widget.Status.Ready != widget.Spec.Parts || widget.Status.ObservedGeneration != widget.Generation {
		before := widget.DeepCopyObject().(*Widget)
		widget.Status.Ready, widget.Status.ObservedGeneration = widget.Spec.Parts, widget.Generation
		return ctrl.Result{}, client.IgnoreNotFound(o.client.Status().Patch(ctx, widget, client.MergeFrom(before)))
	}
	return ctrl.Result{}, nil
}

func (o *operator) makeParts(ctx context.Context, widget *Widget) error {
	for i := range widget.Spec.Parts {
		part := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: fmt.Sprintf("%s-%d", widget.Name, i)}}
		_, err := controllerutil.CreateOrUpdate(ctx, o.client, part, func() error {
			part.Labels = map[string]string{"widget": widget.Name}
			part.Data = map[string]string{"part": strconv.Itoa(i), "color": widget.Spec.Color}
			return controllerutil.SetControllerReference(widget, part, scheme)
		})
		if err != nil {
			return err
		}
	}
	var parts corev1.ConfigMapList
	if err := o.client.List(ctx, &parts, client.InNamespace(widget.Namespace), client.MatchingLabels{"widget": widget.Name}); err != nil {
		return err
	}
	for i := range parts.Items {
		number, err := strconv.Atoi(parts.Items[i].Data["part"])
		if err == nil && number < widget.Spec.Parts || !metav1.IsControlledBy(&parts.Items[i], widget) {
			continue
		}
		if err := o.client.Delete(ctx, &parts.Items[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
