package kube

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
)

// A leader that ends has long answers in flight. While it drains it still reports them, so the next leader counts them
// beyond the takeover window, and dispatches as many requests as answers have ended.
func TestLeaderThatDrainsIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, electing, pool)
	w.pod("a", "10.0.0.1", true)
	const window = 12 * time.Second // much more than the time between two records
	flags := append([]string{
		"--watermark-per-backend=4", "--lower-bound-per-backend=4", "--upper-bound-per-backend=4", "--takeover-window=" + window.String(),
	}, quick...)
	first := w.replica("weir-0", flags...)
	first.leads(w)
	second := w.replica("weir-1", flags...)
	second.follows(w)
	const foreign = `weir_foreign_stock{pool="chat"}`
	var long []*request
	for range 4 {
		r := first.send("chat")
		r.granted(t)
		long = append(long, r)
	}
	second.wantMetric(foreign, 4)
	if err := first.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	second.leads(w)
	var waiting []*request
	for i := range 3 {
		waiting = append(waiting, second.send("chat"))
		second.wantQueued(i + 1) // so that they wait in this order
	}
	w.status("a", "10.0.0.1", false) // it returns with its requests in flight
	second.want("10.0.0.1:8000 (not ready)")
	second.wantMetric(foreign, 0)
	w.status("a", "10.0.0.1", true)
	second.wantMetric(foreign, 4)
	second.wantQueued(3)
	for until := time.Now().Add(window * 3 / 2); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if n, _ := second.metric(foreign); n != 4 {
			t.Fatalf("the next leader counts %g of the 4 requests that the last one has in flight", n)
		}
	}
	for i := range waiting {
		long[i].end()
		second.wantMetric(foreign, float64(3-i))
		waiting[i].granted(t)
		second.wantQueued(2 - i)
	}
	if first.Ended() {
		t.Error("the last leader has ended before its last answer")
	}
	long[3].end()
	expect.Eventually(t, "the last leader ends", func() error {
		if !first.Ended() {
			return errors.New("it runs")
		}
		return nil
	})
	second.wantMetric(foreign, 0)
	if s := fmt.Sprint(first.State()); s != "exit status 0" {
		t.Errorf("the last leader ended with %s", s)
	}
}

// An ending leader stays ready beside its successor for minDrain, so that a proxy that checks each replica sees the
// next one before it loses the last one.
func TestLeaderThatEndsIsReadyBesideItsSuccessor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, electing, pool)
	w.pod("a", "10.0.0.1", true)
	const least = 8 * time.Second
	flags := append([]string{"--min-drain=" + least.String()}, quick...)
	first := w.replica("weir-0", flags...)
	first.leads(w)
	second := w.replica("weir-1", flags...)
	second.follows(w)
	if err := first.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	second.leads(w)
	led := time.Now()
	for first.serving("readiness") && first.serving("synced") && time.Since(led) < 2*least {
		time.Sleep(20 * time.Millisecond)
	}
	if both := time.Since(led); both < least/2 || both > 3*least/2 { // the test sees events late on a busy machine
		t.Errorf("the last leader was ready for %v beside the next one, want %v", both, least)
	}
	second.leads(w)
}
