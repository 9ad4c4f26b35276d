package kube

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-epp/weir/internal/kubeapi"
)

// replacement returns an object under another UID.
func replacement[O client.Object](o O, uid types.UID) O {
	other := o.DeepCopyObject().(O)
	other.SetUID(uid)
	return other
}

// A pod that was created again under its name while nobody watched, as a StatefulSet does, is another pod: of the old one
// nothing is left, however often that happens.
func TestAPodIsReplacedUnseen(t *testing.T) {
	m := &members{changed: func() {}, byUID: map[types.UID]*member{}}
	s := &Source{}
	tell := new(s.followed(m, labels.Everything())).events()
	pod := running()
	tell.OnAdd(pod, true)
	for _, now := range []struct {
		uid     types.UID
		address string
	}{{"v", "10.0.0.2"}, {"w", "10.0.0.3"}} {
		next := replacement(pod, now.uid)
		next.Status.PodIP = now.address
		tell.OnUpdate(pod, next)
		pod = next
	}
	if got := shown(m.endpoints([]int{8000})); got != "w:8000 at 10.0.0.3:8000" {
		t.Errorf("the endpoints are %s", got)
	}
	tell.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "serving/chat-0", Obj: pod})
	if got := shown(m.endpoints([]int{8000})); got != "" {
		t.Errorf("of pods that went is left %s", got)
	}
}

// So it is for every kind that is followed: first the old object is gone, then the new one has come. An update of the same
// object removes nothing.
func TestAReplacementIsADeletionAndAnAddition(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "chat", Namespace: "serving", UID: "old"}
	for _, o := range []client.Object{
		&corev1.Pod{ObjectMeta: meta}, &kubeapi.InferencePool{ObjectMeta: meta}, &kubeapi.InferenceObjective{ObjectMeta: meta},
		&kubeapi.InferenceModelRewrite{ObjectMeta: meta}, &kubeapi.InferenceModel{ObjectMeta: meta},
	} {
		var told []string
		f := Following{
			Changed: func(o client.Object) { told = append(told, "changed "+string(o.GetUID())) },
			Gone:    func(o client.Object) { told = append(told, "gone "+string(o.GetUID())) },
		}
		tell := f.events()
		tell.OnAdd(o, true)
		tell.OnUpdate(o, o)
		tell.OnUpdate(o, replacement(o, "new"))
		if want := []string{"changed old", "changed old", "gone old", "changed new"}; !slices.Equal(told, want) {
			t.Errorf("%T: %q", o, told)
		}
	}
}
