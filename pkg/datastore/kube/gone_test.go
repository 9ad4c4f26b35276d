package kube

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-epp/weir/pkg/datastore"
)

// After 10,000 pods came, got ready, began to end and went, as an informer tells it, the source holds nothing of them.
// TestNoTraceOfPodsThatWent in test/kube has an apiserver tell it, of fewer pods by default, since it takes 10 ms for each.
func TestNothingIsLeftOfPodsThatWent(t *testing.T) {
	const batch, pods = 500, 10_000
	store, err := datastore.New(datastore.DefaultConfig(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	is := newTarget(labels.SelectorFromSet(labels.Set{"app": "chat"}), []int{8000, 8001})
	s := &Source{store: store, target: &is, wake: make(chan struct{}, 1)}
	s.current = &members{selector: is.text, changed: s.awaken, byUID: map[types.UID]*member{}}
	following := s.followed(s.current, is.selector)
	tell := following.events()
	was := func(number int, ready bool, changes ...func(*corev1.Pod)) *corev1.Pod {
		pod := running(annotate(AnnotationSlots, fmt.Sprint(1+number%7)), func(p *corev1.Pod) {
			p.Name, p.UID = fmt.Sprint("chat-", number%batch), types.UID(fmt.Sprintf("0d5b1b0e-aaaa-bbbb-cccc-%012d", number))
			p.Status.PodIP = fmt.Sprintf("10.%d.%d.%d", number/62_500, number/250%250, 1+number%250)
			if !ready {
				p.Status.Conditions = nil
			}
		})
		for _, change := range changes {
			change(pod)
		}
		if _, err := following.trim(pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	step := func(ready int) {
		t.Helper()
		s.step(t.Context(), &sync.WaitGroup{})
		n := 0
		for i := range store.Current().Len() {
			if store.Current().At(i).Ready {
				n++
			}
		}
		if n != ready*len(is.ports) {
			t.Fatalf("%d endpoints of %d ready pods are ready", n, ready)
		}
	}
	came := func(from, to int) {
		t.Helper()
		for ; from < to; from += batch {
			for i := from; i < from+batch; i++ {
				tell.OnAdd(was(i, false), false)
			}
			step(0)
			for i := from; i < from+batch; i++ {
				tell.OnUpdate(was(i, false), was(i, true))
			}
			step(batch)
			ends := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
			for i := from; i < from+batch; i++ {
				tell.OnUpdate(was(i, true), was(i, true, ends))
			}
			step(0)
			for i := from; i < from+batch; i++ {
				tell.OnDelete(was(i, true, ends))
			}
			step(0)
		}
	}
	came(0, 2*batch) // so that reused memory has its size
	before := heap()
	came(2*batch, 2*batch+pods)
	if grown := int64(heap()) - int64(before); grown > 1<<17 {
		t.Errorf("%d bytes more than before, %d for each pod that went", grown, grown/pods)
	}
	if n, m := len(s.current.byUID), store.Current().Len(); n != 0 || m != 0 {
		t.Errorf("%d pods and %d endpoints are left", n, m)
	}
	runtime.KeepAlive(s)
}

// heap returns the bytes in use after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
