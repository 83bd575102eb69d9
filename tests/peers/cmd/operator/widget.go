package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	namespace    = "default"
	finalizer    = "widgets.example.dev/cleanup"
	defaultColor = "blue"
	partsMax     = 10
)

// Widget is a kind as an operator's author writes it down.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec"`
	Status            WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Parts int    `json:"parts"`
	Color string `json:"color,omitempty"`
}

type WidgetStatus struct {
	Ready              int   `json:"ready"`
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

func (w *Widget) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Widget))
	}
	return &out
}

var groupVersion = schema.GroupVersion{Group: "example.dev", Version: "v1"}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(groupVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return nil
}

func named(name string) *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func definition() *extensions.CustomResourceDefinition {
	most, least := float64(partsMax), float64(0)
	return &extensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.dev"},
		Spec: extensions.CustomResourceDefinitionSpec{
			Group: groupVersion.Group,
			Scope: extensions.NamespaceScoped,
			Names: extensions.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList", ShortNames: []string{"wd"}},
			Versions: []extensions.CustomResourceDefinitionVersion{{
				Name: groupVersion.Version, Served: true, Storage: true,
				Subresources: &extensions.CustomResourceSubresources{Status: &extensions.CustomResourceSubresourceStatus{}},
				AdditionalPrinterColumns: []extensions.CustomResourceColumnDefinition{
					{Name: "Parts", Type: "integer", JSONPath: ".spec.parts"}, {Name: "Ready", Type: "integer", JSONPath: ".status.ready"},
				},
				Schema: &extensions.CustomResourceValidation{OpenAPIV3Schema: &extensions.JSONSchemaProps{
					Type: "object",
					Properties: map[string]extensions.JSONSchemaProps{
						"spec": {Type: "object", Required: []string{"parts"}, Properties: map[string]extensions.JSONSchemaProps{
							"parts": {Type: "integer", Minimum: &least, Maximum: &most},
							"color": {Type: "string", Default: &extensions.JSON{Raw: []byte(`"` + defaultColor + `"`)}},
						}},
						"status": {Type: "object", Properties: map[string]extensions.JSONSchemaProps{
							"ready": {Type: "integer"}, "observedGeneration": {Type: "integer", Format: "int64"},
						}},
					},
				}},
			}},
		},
	}
}

// installKind creates it and waits until it is established, as an operator's installation does.
func installKind(ctx context.Context, direct client.Client) error {
	crd := definition()
	if err := insist(ctx, func() error { return direct.Create(ctx, crd) }); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	isEstablished := func(condition extensions.CustomResourceDefinitionCondition) bool {
		return condition.Type == extensions.Established && condition.Status == extensions.ConditionTrue
	}
	if poll(ctx, func() bool {
		err = insist(ctx, func() error { return direct.Get(ctx, client.ObjectKeyFromObject(crd), crd) })
		return err != nil || slices.ContainsFunc(crd.Status.Conditions, isEstablished)
	}) != nil {
		return fmt.Errorf("not established: %+v", crd.Status)
	}
	return err
}

// removeKind removes it and waits until it is gone, with its resource.
func removeKind(ctx context.Context, direct client.Client) error {
	crd := definition()
	if err := insist(ctx, func() error { return direct.Delete(ctx, crd) }); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	// First the definition disappears, then, as upstream, its resource.
	for _, read := range []func() error{
		func() error { return direct.Get(ctx, client.ObjectKeyFromObject(crd), crd) },
		func() error { return direct.List(ctx, &WidgetList{}) },
	} {
		if poll(ctx, func() bool { err = insist(ctx, read); return err != nil }) != nil {
			return errors.New("it is still there")
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("a read of the kind that is removed: %w", err)
		}
	}
	return nil
}
