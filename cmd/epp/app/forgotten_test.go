package app

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// 10,000 pods come and go, each batch with requests in flight that outlive some pods. Afterwards nothing of the pods is
// left: not in the stock, not in the metrics, and not in memory.
func TestNoTraceOfPodsThatWent(t *testing.T) {
	const batch, pods = 500, 10_000
	o := testOptions()
	setRecording(&o, 0) // a recording would keep the events
	r := start(t, o)
	pod := func(i int) scheduling.Endpoint {
		return scheduling.Endpoint{
			Key: fmt.Sprintf("0d5b1b0e-aaaa-bbbb-cccc-%012d:8000", i), Ready: true,
			Address: fmt.Sprintf("10.%d.%d.%d:8000", i/batch%250, i%batch/250, 1+i%250), Models: []string{"chat", fmt.Sprint("adapter-", i%97)},
		}
	}
	came := func(from, to int) {
		for i := from; i < to; i += batch {
			var list []scheduling.Endpoint
			for j := range batch {
				list = append(list, pod(i+j))
			}
			r.pool.store.Set(list)
			ctx, gone := context.WithCancel(t.Context())
			for range 3 {
				granted(t, r.request(ctx))
			}
			r.pool.store.Set(nil)
			if n := r.pool.controller.State().Stock; n != 3 {
				t.Fatalf("the stock is %d, with 3 requests in flight at pods that are gone", n)
			}
			gone()
			expect.True(t, "the streams end", func() bool { return r.pool.controller.State().Stock == 0 })
		}
		r.pool.store.Set(nil)
		r.pool.store.Set([]scheduling.Endpoint{pod(0)})
	}
	came(0, 2*batch) // so that caches and reused memory have their size
	before := heap()
	came(2*batch, 2*batch+pods)
	expect.True(t, "no more memory than before", func() bool { // once the scrapes of pods that went have ended
		grown := int64(heap()) - int64(before)
		if grown > 1<<19 {
			t.Logf("%d bytes more than before, %d for each pod that went", grown, grown/pods)
		}
		return grown <= 1<<19
	})
	if n := r.pool.board.Total(); n != 0 {
		t.Errorf("%d requests in flight on the board", n)
	}
	_, page := r.get("/metrics")
	for line := range strings.Lines(page) {
		if strings.Contains(line, `endpoint="10.`) && !strings.Contains(line, `endpoint="`+pod(0).Address+`"`) {
			t.Errorf("a series of a pod that went: %s", line)
		}
	}
	first := r.pool.store.Current().At(0).ID
	r.pool.store.Set(nil)
	r.pool.store.Set([]scheduling.Endpoint{pod(0)})
	if r.pool.store.Current().At(0).ID == first {
		t.Error("a pod that went without requests was not forgotten")
	}
}

// heap returns the bytes in use after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
