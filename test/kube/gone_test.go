package kube

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/internal/expect"
)

// gone is the number of pods that come and go. The figure to show is 10,000, for which the apiserver needs two minutes.
var gone = flag.Int("kube.gone", 1_000, "how many pods come and go, in batches of 500")

// Many pods come and go, each with its own UID and address, and with requests that outlive some of them. Afterwards
// nothing of them is left: no endpoint, no request in flight, no series and no memory. TestNothingIsLeftOfPodsThatWent
// in pkg/datastore/kube always has 10,000 of them.
func TestNoTraceOfPodsThatWent(t *testing.T) {
	const (
		batch, outliving = 500, 3
		stock            = `weir_stock_level{model="chat",pool="chat",target_model="chat"}`
	)
	w := newWorld(t)
	w.apply(role, pool)
	e := w.epp("--pool-name=chat", "--enable-pprof", "--v=0")
	e.ready(true)
	pods := w.env.Clients().CoreV1().Pods(w.namespace)
	number := 0
	came := func(n int) {
		t.Helper()
		for ; n > 0; n -= batch {
			first := number
			number += batch
			w.inParallel(batch, func(ctx context.Context, i int) error {
				name, n := fmt.Sprint("p", i), first+i // the name of a deleted pod
				if err := w.createPod(ctx, name); err != nil {
					return err
				}
				return w.setStatus(ctx, name, fmt.Sprintf("10.%d.%d.%d", n/62_500, n/250%250, 1+n%250), true)
			})
			e.wantMetric(`weir_ready_backends{pool="chat"}`, batch)
			var requests []*request
			for range outliving {
				r := e.send("chat")
				r.granted(t)
				requests = append(requests, r)
			}
			if err := pods.DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			e.wantMetric(`weir_ready_backends{pool="chat"}`, 0)
			e.wantMetric(stock, outliving)
			for _, r := range requests {
				r.end()
			}
			e.wantMetric(stock, 0)
		}
	}
	came(2 * batch) // so that caches and buffers have their size
	e.disconnected()
	before, began := e.least(), time.Now()
	came(*gone)
	took := time.Since(began)
	e.disconnected()
	after := e.least()
	t.Logf("%d pods came and went in %v; heap %d KiB, then %d KiB; goroutines %d, then %d",
		*gone, took, before.heap>>10, after.heap>>10, before.goroutines, after.goroutines)
	if after.heap > before.heap+before.heap/20 {
		t.Errorf("the heap is %d bytes, and was %d at the start", after.heap, before.heap)
	}
	if after.goroutines > before.goroutines+5 { // connections
		t.Errorf("%d goroutines, %d at the start; now\n%s\nthen\n%s", after.goroutines, before.goroutines, after.where, before.where)
	}
	e.want()
	page, err := expect.Read(e.metrics)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(page) {
		if strings.Contains(line, `"10.`) {
			t.Errorf("a series of a pod that went: %s", line)
		}
	}
}

// disconnected waits until epp has closed its idle connections. If the network answers for any address, it has two
// goroutines for each pod whose metrics it read.
func (e *epp) disconnected() {
	e.t.Helper()
	const few = 300
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		n, where := e.profile("goroutine?debug=1", "goroutine profile: total %d")
		if n <= few {
			return
		}
		if time.Now().After(end) {
			e.t.Fatalf("%d goroutines:\n%s", n, where)
		}
	}
}
