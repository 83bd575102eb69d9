package main

import (
	"context"
	"errors"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// feed is a storage of which the Cacher needs a list and one watch: it holds objects that are ready made, and hands on events that are pushed. Nothing is
// decoded, so what is measured is the Cacher.
type feed struct {
	versioner storage.APIObjectVersioner
	initial   []*corev1.Pod
	revision  uint64
	events    chan watch.Event
	stop      sync.Once
}

var errNotHere = errors.New("a feed is only listed and watched")

func newFeed(initial []*corev1.Pod) *feed {
	f := &feed{initial: initial, revision: 1, events: make(chan watch.Event, 128)}
	for _, pod := range initial {
		f.revision++
		pod.ResourceVersion = strconv.FormatUint(f.revision, 10)
	}
	return f
}

// push is the next revision of pod.
func (f *feed) push(kind watch.EventType, pod *corev1.Pod) {
	f.revision++
	pod.ResourceVersion = strconv.FormatUint(f.revision, 10)
	f.events <- watch.Event{Type: kind, Object: pod}
}

func (f *feed) Versioner() storage.Versioner { return f.versioner }

func (f *feed) GetList(_ context.Context, _ string, _ storage.ListOptions, into runtime.Object) error {
	list := into.(*corev1.PodList)
	for _, pod := range f.initial {
		list.Items = append(list.Items, *pod)
	}
	list.ResourceVersion = strconv.FormatUint(f.revision, 10)
	return nil
}

func (f *feed) ResultChan() <-chan watch.Event { return f.events }
func (f *feed) Stop()                          { f.stop.Do(func() { close(f.events) }) }

func (f *feed) Watch(_ context.Context, _ string, options storage.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		first := f.revision
		go func() {
			for _, pod := range f.initial {
				f.events <- watch.Event{Type: watch.Added, Object: pod}
			}
			bookmark := &corev1.Pod{}
			bookmark.ResourceVersion = strconv.FormatUint(first, 10)
			bookmark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
			f.events <- watch.Event{Type: watch.Bookmark, Object: bookmark}
		}()
	}
	return f, nil
}

func (f *feed) Create(context.Context, string, runtime.Object, runtime.Object, uint64) error {
	return errNotHere
}
func (f *feed) Delete(context.Context, string, runtime.Object, *storage.Preconditions, storage.ValidateObjectFunc, runtime.Object, storage.DeleteOptions) error {
	return errNotHere
}
func (f *feed) Get(context.Context, string, storage.GetOptions, runtime.Object) error {
	return errNotHere
}
func (f *feed) GuaranteedUpdate(context.Context, string, runtime.Object, bool, *storage.Preconditions, storage.UpdateFunc, runtime.Object) error {
	return errNotHere
}
func (f *feed) Stats(context.Context) (storage.Stats, error) { return storage.Stats{}, errNotHere }
func (f *feed) ReadinessCheck() error                        { return nil }
func (f *feed) RequestWatchProgress(context.Context) error   { return nil }
func (f *feed) GetCurrentResourceVersion(context.Context) (uint64, error) {
	return f.revision, nil
}
func (f *feed) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }
func (f *feed) CompactRevision() int64                              { return 0 }
