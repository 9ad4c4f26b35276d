package kube

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// What is told of objects, in the log and as Events, is limited: objects may be hostile, and change as often as they
// like. tellBurst is also the most that waits for the apiserver.
const (
	tellPerSecond = 1
	tellBurst     = 100
	maxNote       = 1000 // bytes; the API takes 1024
)

// telling writes Events. It only creates them, so that it needs no other permission: whoever tells takes care not to
// repeat himself.
type telling struct {
	client client.Client
	log    logr.Logger
	limit  flowcontrol.RateLimiter
	events chan *eventsv1.Event
}

func newTelling(c client.Client, log logr.Logger) *telling {
	return &telling{
		client: c, log: log, limit: flowcontrol.NewTokenBucketRateLimiter(tellPerSecond, tellBurst),
		events: make(chan *eventsv1.Event, tellBurst),
	}
}

// Tell says what is wrong with an object: in the log, and as an Event about it. It returns at once; if there is too much to
// tell, some of it is left out.
func (c *Cluster) Tell(about client.Object, reason, note string) {
	t := c.telling
	if !t.limit.TryAccept() {
		return
	}
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "")
	}
	gvk, err := apiutil.GVKForObject(about, c.manager.GetScheme())
	if err != nil {
		panic(err) // only objects of kinds that are followed are told of
	}
	t.log.Info("WARNING: "+note, "kind", gvk.Kind, "namespace", about.GetNamespace(), "name", about.GetName(), "reason", reason)
	now := metav1.NowMicro()
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: about.GetNamespace(), Name: fmt.Sprintf("%s.%x", about.GetName(), now.UnixNano()),
		},
		EventTime: now, Type: corev1.EventTypeWarning, Reason: reason, Action: "Follow", Note: note,
		ReportingController: "weir.dev/epp", ReportingInstance: "weir",
		Regarding: corev1.ObjectReference{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: about.GetNamespace(), Name: about.GetName(),
			UID: about.GetUID(), ResourceVersion: about.GetResourceVersion(),
		},
	}
	select {
	case t.events <- event:
	default: // the log has it
	}
}

// run writes the Events until ctx is done.
func (t *telling) run(ctx context.Context) {
	for {
		select {
		case event := <-t.events:
			if err := t.client.Create(ctx, event); err != nil && ctx.Err() == nil {
				t.log.V(1).Info("an Event was not written", "name", event.Name, "reason", err.Error())
				pause(ctx, time.Second)
			}
		case <-ctx.Done():
			return
		}
	}
}
