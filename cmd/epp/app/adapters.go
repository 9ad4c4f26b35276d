package app

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// mostAdapters is the number of adapters known by name; further ones are treated as ordinary models.
const mostAdapters = 65536

// adapterNames are the names of LoRA adapters, from the ready endpoints' lists and their engines' pages. Its methods
// are safe for concurrent use; known takes no lock.
type adapterNames struct {
	names sync.Map // the names

	mu     sync.Mutex
	counts map[string]int
	listed map[scheduling.EndpointID][]string
	paged  map[scheduling.EndpointID]*scheduling.AdapterState
}

// known reports whether a model is an adapter.
func (a *adapterNames) known(model string) bool {
	if a == nil || model == "" {
		return false
	}
	_, known := a.names.Load(model)
	return known
}

// list takes an endpoint's listed adapters.
func (a *adapterNames) list(id scheduling.EndpointID, names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count(names, 1)
	a.count(a.listed[id], -1)
	if a.listed == nil {
		a.listed = map[scheduling.EndpointID][]string{}
	}
	if a.listed[id] = names; len(names) == 0 {
		delete(a.listed, id)
	}
}

// page takes the adapters on an engine's page; equal statements share one value.
func (a *adapterNames) page(id scheduling.EndpointID, s *scheduling.AdapterState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.paged[id]
	if before == s {
		return
	}
	if s != nil {
		a.count(s.Loaded, 1)
	}
	if before != nil {
		a.count(before.Loaded, -1)
	}
	if a.paged == nil {
		a.paged = map[scheduling.EndpointID]*scheduling.AdapterState{}
	}
	if a.paged[id] = s; s == nil {
		delete(a.paged, id)
	}
}

// forget forgets the statements of endpoints that are not ready.
func (a *adapterNames) forget(ready func(scheduling.EndpointID) bool) {
	a.mu.Lock()
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(a.listed)), ready)
	gone = append(gone, slices.DeleteFunc(slices.Collect(maps.Keys(a.paged)), ready)...)
	a.mu.Unlock()
	for _, id := range gone {
		a.list(id, nil)
		a.page(id, nil)
	}
}

// count adds names to the counts, or removes them. The caller holds mu.
func (a *adapterNames) count(names []string, by int) {
	if a.counts == nil {
		a.counts = map[string]int{}
	}
	for _, name := range names {
		n, known := a.counts[name]
		if !known && (by < 0 || len(a.counts) >= mostAdapters) {
			continue
		}
		if n += by; n <= 0 {
			delete(a.counts, name)
			a.names.Delete(name)
			continue
		}
		if a.counts[name] = n; !known {
			a.names.Store(name, true)
		}
	}
}

// adapterMetrics are the counters of requests for adapters, read at a scrape.
type adapterMetrics struct {
	pool *Pool
	desc *prometheus.Desc
}

func newAdapterMetrics(p *Pool) *adapterMetrics {
	return &adapterMetrics{p, prometheus.NewDesc("weir_adapter_placements_total", "Placed requests for LoRA adapters, by "+
		"result: the engine had the adapter (there), had to load it (loaded), or had to replace another one (replaced).",
		[]string{"result"}, nil)}
}

// Describe implements prometheus.Collector.
func (m *adapterMetrics) Describe(to chan<- *prometheus.Desc) { to <- m.desc }

// Collect implements prometheus.Collector.
func (m *adapterMetrics) Collect(to chan<- prometheus.Metric) {
	var t scheduling.AdapterTotals
	m.pool.controller.Look(func() { t = m.pool.board.AdapterTotals() })
	for _, result := range []struct {
		name string
		n    uint64
	}{{"there", t.Requests - t.Loads}, {"loaded", t.Loads - t.Evictions}, {"replaced", t.Evictions}} {
		to <- prometheus.MustNewConstMetric(m.desc, prometheus.CounterValue, float64(result.n), result.name)
	}
}

// adapterColumn is a table's column with the number of adapters expected at an endpoint's engine, and its places.
func (p *Pool) adapterColumn(id scheduling.EndpointID) string {
	var adapters, places int
	p.controller.Look(func() { adapters, places = p.board.AdaptersAt(id) })
	switch {
	case places > 0:
		return fmt.Sprintf("%d of %d", adapters, places)
	case adapters > 0:
		return fmt.Sprint(adapters)
	}
	return "-"
}
