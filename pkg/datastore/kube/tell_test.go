package kube

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
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
	pod := running()
	for i := range 10_000 {
		c.Tell(pod, "InvalidPod", fmt.Sprint(i, strings.Repeat(" is wrong", 1000)))
	}
	if n := len(lines); n < tellBurst || n > 2*tellBurst {
		t.Errorf("%d lines", n)
	}
	if len(lines[0]) > 2*maxNote || !strings.Contains(lines[0], "WARNING: 0 is wrong") || !strings.Contains(lines[0], "chat-0") {
		t.Errorf("%d bytes: %.200s", len(lines[0]), lines[0])
	}
	if n := len(c.telling.events); n != tellBurst {
		t.Errorf("%d Events wait", n)
	}
	event := <-c.telling.events
	if len(event.Note) > 1024 || event.Namespace != "serving" || event.Regarding.Kind != "Pod" || event.Regarding.UID != "u" ||
		event.Type != corev1.EventTypeWarning {
		t.Errorf("%+v", event)
	}
}
