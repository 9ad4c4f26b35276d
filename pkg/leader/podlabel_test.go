package leader

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The label is removed at the start, follows the leadership, and is tried again until it can be set. Only its newest
// value is written.
func TestPodLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var patches []bool
		var broken error
		label := newPodLabel(DefaultConfig(), func(_ context.Context, leads bool) error {
			mu.Lock()
			defer mu.Unlock()
			if broken == nil {
				patches = append(patches, leads)
			}
			return broken
		}, func() {}, logr.Discard())
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = label.Run(ctx) }()
		want := func(what string, want ...bool) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(patches, want) {
				t.Errorf("%s: patches %v, want %v", what, patches, want)
			}
			patches = nil
		}
		want("at the start", false)
		label.Set(true)
		label.Settle(ctx)
		want("it leads", true)
		label.Set(true)
		time.Sleep(time.Hour)
		want("nothing has changed")

		mu.Lock()
		broken = errAway
		mu.Unlock()
		label.Set(false)
		label.Set(true)
		label.Set(false)
		waiting, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		label.Settle(waiting)
		if waiting.Err() == nil {
			t.Error("settled in an outage")
		}
		mu.Lock()
		broken = nil
		mu.Unlock()
		label.Settle(ctx)
		want("after an outage", false)

		mu.Lock()
		broken = apierrors.NewNotFound(leaseResource, "pod") // a process that is in no pod
		mu.Unlock()
		label.Set(true)
		label.Settle(ctx)
		time.Sleep(time.Hour)
	})
}

// Whoever waits for the label waits for its newest value, also if that is set while an older one is being written.
func TestPodLabelIsSettledWithItsNewestValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		label := newPodLabel(DefaultConfig(), func(context.Context, bool) error {
			time.Sleep(time.Second)
			return nil
		}, func() {}, logr.Discard())
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = label.Run(ctx) }()
		time.Sleep(5 * time.Second)
		label.Set(true)
		time.Sleep(500 * time.Millisecond)
		label.Set(false)
		waiting, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		begun := time.Now()
		label.Settle(waiting)
		if took := time.Since(begun); took != 1500*time.Millisecond {
			t.Errorf("settled after %v, want 1.5 s: the rest of one patch, and another", took)
		}
	})
}

func TestLabelPatch(t *testing.T) {
	for want, got := range map[string]string{
		`{"metadata":{"labels":{"weir.dev/leader":"true"},"uid":"u1"}}`: string(labelPatch(anna, true)),
		`{"metadata":{"labels":{"weir.dev/leader":null},"uid":"u1"}}`:   string(labelPatch(anna, false)),
		`{"metadata":{"labels":{"weir.dev/leader":null}}}`:              string(labelPatch(Identity{Pod: "x"}, false)),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestNames(t *testing.T) {
	long := string(slices.Repeat([]byte("a"), 253))
	for got, want := range map[string]string{
		ElectionLease("chat"):                  "chat-weir",
		ReplicaLease("weir-0"):                 "weir-weir-0",
		PoolLabelOf("chat.team"):               "chat.team",
		SelectorLabelOf("app=chat,x in (a,b)"): "selector-" + hashed("app=chat,x in (a,b)"),
		PodOf("My_Machine.local"):              "my-machine-local",
		PodOf("___"):                           "local",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, got := range []string{ElectionLease(long), ReplicaLease(long)} {
		if len(got) > maxName {
			t.Errorf("%d bytes: %s", len(got), got)
		}
	}
	if got := PoolLabelOf(long); len(got) > maxLabel || got == PoolLabelOf(long[1:]) {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
