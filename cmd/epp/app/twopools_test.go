package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Two pools live in one process: each has endpoints, a queue, stock and metrics of its own.
func TestTwoPools(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig") // of a missing apiserver: the test supplies the pods
	if err := os.WriteFile(kubeconfig, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{"token":"x"}}],
		"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	document := config.Default()
	pools := map[string]*Pool{}
	for i, name := range []string{"chat", "batch"} {
		o := testOptions()
		o.Endpoints, o.PoolName, o.Kubeconfig = nil, name, kubeconfig
		if err := o.Validate(); err != nil {
			t.Fatal(err)
		}
		known := true
		p, err := newPool(&o, &document, registry, logr.Discard(), nil, func(c condition, is bool) {
			if c == synced {
				known = is
			}
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if known {
			t.Errorf("%s is known before its pods have been read", name)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		p.store.Set([]scheduling.Endpoint{{Address: fmt.Sprintf("10.0.0.%d:8000", i+1), Ready: true}})
		pools[name] = p
	}
	chat := pools["chat"]
	placement, err := picker{prepared: &chat.prepared, lengths: &chat.lengths}.Prepare("m", request.Subset{}, request.Needs{})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := chat.controller.TryEnqueue(t.Context(), &flowcontrol.Request{Flow: "f", Cost: 1, Placement: placement})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"chat": 1, "batch": 0} {
		if got := gaugeIn(t, registry, "weir_endpoint_in_flight", name); got != want {
			t.Errorf("in flight in %s: %g, want %g", name, got, want)
		}
		if got := gaugeIn(t, registry, "weir_upper_bound", name); got != 2.2 {
			t.Errorf("the upper bound of %s is %g", name, got)
		}
	}
	lease.OnRequestComplete(flowcontrol.Completion{Status: 200})
}

// gaugeIn returns the only gauge of a name that a pool has.
func gaugeIn(t *testing.T, registry *prometheus.Registry, name, pool string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && labelOf(m, "pool") == pool {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("%s has no series of pool %s", name, pool)
	return 0
}

// labelOf returns the value of a label, or "".
func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
