package kube

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Objects that have something new wrong with them all the time fill neither the log nor the memory.
func TestTellIsLimited(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	c, err := NewCluster(&rest.Config{Host: "https://192.0.2.1"}, log, func() {})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for i := range 10_000 {
		pod := running()
		pod.UID += types.UID(fmt.Sprint(i / 2))
		if c.Tell(pod, "InvalidPod", fmt.Sprint(i, strings.Repeat(" is wrong", 1000))) {
			told++
		}
	}
	if told != len(lines) {
		t.Errorf("%d are said to be told", told)
	}
	if n := len(lines); n < tellBurst || n > 2*tellBurst {
		t.Errorf("%d lines", n)
	}
	if len(lines[0]) > 2*maxNote || !strings.Contains(lines[0], "WARNING: 0 is wrong") || !strings.Contains(lines[0], "chat-0") {
		t.Errorf("%d bytes: %.200s", len(lines[0]), lines[0])
	}
	if n := len(c.telling.events); n != maxEvents {
		t.Errorf("%d Events wait", n)
	}
	event := <-c.telling.events
	if len(event.Note) > 1024 || event.Namespace != "serving" || event.Regarding.Kind != "Pod" || event.Regarding.UID != "u0" ||
		event.Type != corev1.EventTypeWarning {
		t.Errorf("%+v", event)
	}
}

// One object that changes all the time keeps no other one from being told of, and all of a kind no other kind. Whatever
// there is, little is remembered.
func TestAllowance(t *testing.T) {
	a := newAllowance()
	ask := func(kind string, uid func(i int) string, times int) (allowed int) {
		for i := range times {
			if a.allows(kind, types.UID(uid(i))) {
				allowed++
			}
		}
		return allowed
	}
	one := func(name string) func(int) string { return func(int) string { return name } }
	if n := ask("Pod", one("restless"), 10_000); n != tellBurstOfOne {
		t.Errorf("of one pod %d are told", n)
	}
	if n := ask("Pod", one("other"), 1); n != 1 {
		t.Error("another pod is not told of")
	}
	if n := ask("Pod", func(i int) string { return fmt.Sprint(i) }, 10_000); n < tellBurst-10 || n > tellBurst {
		t.Errorf("of 10,000 pods %d are told of", n)
	}
	if n := ask("InferencePool", one("pool"), 1); n != 1 {
		t.Error("the InferencePool is not told of")
	}
	if n := len(a.objects); n > maxTold {
		t.Errorf("%d objects are remembered", n)
	}
}

// The name of an Event is a valid one, whatever that of the object is.
func TestEventName(t *testing.T) {
	for object, want := range map[string]string{
		"chat-0":                        "chat-0.ff",
		strings.Repeat("a", 253):        strings.Repeat("a", 250) + ".ff",
		strings.Repeat("a.", 126) + "a": strings.Repeat("a.", 124) + "a.ff",
	} {
		if got := eventName(object, 255); got != want {
			t.Errorf("%s: %s", object, got)
		}
	}
}
