package app

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// Events of an engine give the size of its cache, and clear the index when it is cleared.
func TestKVEvents(t *testing.T) {
	cfg := modelsim.DefaultConfig()
	cfg.PrefixCaching, cfg.KVEvents = true, "127.0.0.1:0"
	cfg.Engine.Blocks, cfg.Engine.BlockSize = 100, 16
	cfg.Engine.Step.Base, cfg.Engine.Step.PerSequence, cfg.Engine.Step.PerToken = time.Microsecond, 0, 0
	engine, err := modelsim.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	_, port, _ := net.SplitHostPort(engine.KVEvents())
	o := inSessions("")
	o.Endpoints, o.KVEvents.Port = []string{engine.Address()}, port
	r := start(t, o)
	shows := func(line string) func() bool {
		return func() bool {
			_, text := r.get("/metrics")
			return strings.Contains(text, "\n"+line)
		}
	}
	expect.True(t, "the counters are there", shows(`weir_kv_events_clears_total{reason="gap"} 0`))
	stream := r.request(t.Context(), [2]string{"x-session", "a"})
	granted(t, stream)
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	expect.True(t, "the index has the session", shows("weir_affinity_nodes 1"))
	n := 0
	ask := func() {
		n++
		body := fmt.Sprintf(`{"prompt":"%d%s","max_tokens":1}`, n, strings.Repeat("x", 640))
		if err := expect.Post(t.Context(), engine.URL()+"/v1/completions", body).Served(); err != nil {
			t.Fatal(err)
		}
	}
	size := `weir_endpoint_kv_tokens{endpoint="` + engine.Address() + `"} 1`
	expect.True(t, "the size is known", func() bool { ask(); return shows(size)() })
	if _, text := r.get("/metrics"); !strings.Contains(text, "\nweir_affinity_nodes 1\n") || strings.Contains(text, "weir_kv_events_blocks_total{event=\"stored\"} 0\n") {
		t.Error("the index has lost the session, or no blocks are counted")
	}
	if err := expect.Post(t.Context(), engine.URL()+"/reset_prefix_cache", "").Served(); err != nil {
		t.Fatal(err)
	}
	expect.True(t, "the index is cleared", shows("weir_affinity_nodes 0\n"))
	expect.True(t, "a clear is counted", shows(`weir_kv_events_clears_total{reason="cleared"} 1`))
}

// A wrong port is named by its flag; without one there are no events.
func TestKVEventsFlags(t *testing.T) {
	o := testOptions()
	o.KVEvents.Port, o.KVEvents.Topic = "70000", strings.Repeat("x", 300)
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "--kv-events-port: ") || !strings.Contains(err.Error(), "--kv-events-topic: ") {
		t.Error(err)
	}
	o = testOptions()
	r := start(t, o)
	if _, text := r.get("/metrics"); strings.Contains(text, "weir_kv_events") || strings.Contains(text, strconv.Quote("kv_events")) {
		t.Error("there are metrics of events")
	}
}
