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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	maxNote      = 1000 // bytes of an Event's note; the API takes 1024
	maxEventName = 253  // bytes
	maxEvents    = 100  // waiting for the apiserver
)

// telling writes Events. It only creates them, so it needs no other permission; callers avoid repetitions.
type telling struct {
	client  client.Client
	log     logr.Logger
	allowed *allowance
	events  chan *eventsv1.Event
}

func newTelling(c client.Client, log logr.Logger) *telling {
	return &telling{
		client: c, log: log, allowed: newAllowance(), events: make(chan *eventsv1.Event, maxEvents),
	}
}

// Tell reports the problems of an object in the log and as an Event. It returns at once. It returns false if the limit
// of reports suppresses this one.
func (c *Cluster) Tell(about client.Object, reason, note string) bool {
	t := c.telling
	gvk, err := apiutil.GVKForObject(about, c.manager.GetScheme())
	if err != nil {
		panic(err) // only objects of followed kinds are reported
	}
	if !t.allowed.allows(gvk.Kind, about.GetUID()) {
		return false
	}
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "")
	}
	t.log.Info("WARNING: "+note, "kind", gvk.Kind, "namespace", about.GetNamespace(), "name", about.GetName(), "reason", reason)
	now := metav1.NowMicro()
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: about.GetNamespace(), Name: eventName(about.GetName(), now.UnixNano()),
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
	return true
}

// eventName returns the name of an Event about an object: the object's, or the beginning of a long one, and a time.
func eventName(object string, time int64) string {
	suffix := fmt.Sprintf(".%x", time)
	object = object[:min(len(object), maxEventName-len(suffix))]
	return strings.TrimRight(object, ".-") + suffix
}

// run writes the Events until ctx is done.
func (t *telling) run(ctx context.Context) {
	for {
		select {
		case event := <-t.events:
			call, cancel := context.WithTimeout(ctx, callTimeout)
			err := t.client.Create(call, event)
			cancel()
			if err != nil && ctx.Err() == nil {
				t.log.V(1).Info("an Event was not written", "name", event.Name, "reason", err.Error())
				pause(ctx, time.Second)
			}
		case <-ctx.Done():
			return
		}
	}
}
