package app

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/datastore/scrape"
	"github.com/weir-epp/weir/pkg/leader"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// scrape makes the part that reads the engines' metrics, if configured.
func (p *Pool) scrape(cfg scrape.Config, log logr.Logger) error {
	if cfg.Path == "" {
		if p.flow.Stock.Follow {
			log.Info(warningPrefix + "requestQueueController.slotsPerBackend: auto: without --scrape-path no engine's metrics are read, " +
				"so the bound of each endpoint is the slots that its source states, else " + strconv.Itoa(stock.StartSlots))
		}
		return nil
	}
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_scrape_failures_total",
		Help: "Failed scrapes of model servers' metrics, by reason.",
	}, []string{"reason"})
	for _, reason := range scrape.Reasons {
		failures.WithLabelValues(string(reason))
	}
	p.scraper = scrape.New(cfg, scrape.Parts{
		Own:    p.inFlightAt,
		Told:   p.engineSays,
		Listed: p.lists,
		Failed: func(r scrape.Reason) { failures.WithLabelValues(string(r)).Inc() },
	}, log)
	return register(p.registerer, failures)
}

// follow makes the scraper follow the endpoints. The caller holds mu.
func (p *Pool) follow(published *scheduling.Snapshot) {
	if p.scraper == nil {
		return
	}
	p.scraper.Follow(published)
	ready := map[scheduling.EndpointID]bool{}
	for i := range published.Len() {
		e := published.At(i)
		ready[e.ID] = e.Ready
	}
	p.adapters.forget(func(id scheduling.EndpointID) bool { return ready[id] })
	p.forgetLengths(ready)
	p.capabilities.forget(ready)
	maps.DeleteFunc(p.heard, func(id scheduling.EndpointID, _ int) bool { return !ready[id] })
	maps.DeleteFunc(p.strangers, func(id scheduling.EndpointID, _ time.Time) bool { return !ready[id] })
}

// inFlightAt returns Weir's own count of the requests at an endpoint.
func (p *Pool) inFlightAt(id scheduling.EndpointID) (n int) {
	p.controller.Look(func() { n = p.board.Stock(id) })
	return n
}

// engineSays takes the signals of an engine and its foreign load, in requests. The foreign load counts up to half of
// the endpoint's bound: otherwise clients that bypass Weir, or another Weir that knows this one only from the engine's
// metrics, could keep this one from the engine for ever.
func (p *Pool) engineSays(id scheduling.EndpointID, signals scheduling.Signals, foreign int) {
	p.adapters.page(id, signals.Adapters)
	p.controller.SetSignals(id, signals)
	p.index.SetSignals(id, signals)
	p.mu.Lock()
	p.noteStrangers(id, foreign, time.Now())
	p.mu.Unlock()
	if foreign > 0 {
		var share scheduling.Share
		p.controller.Look(func() { share, _ = p.board.ShareOf(id) })
		foreign = int(min(int64(foreign), share.UpperBound/(2*scheduling.Millionths)))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heard[id] == foreign {
		return
	}
	if p.heard == nil {
		p.heard = map[scheduling.EndpointID]int{}
	}
	if p.heard[id] = foreign; foreign == 0 {
		delete(p.heard, id)
	}
	if changes := p.foreign(); len(changes) > 0 {
		p.controller.SetForeign(changes)
	}
}

// withHeard returns the counts of a snapshot's endpoints, nil if all are 0: from other replicas' records, or from
// engines' metrics where these are higher. Both count the same requests.
func withHeard(snapshot *scheduling.Snapshot, counts []leader.Held, heard map[scheduling.EndpointID]int) []leader.Held {
	if len(heard) == 0 {
		return counts
	}
	if counts == nil {
		counts = make([]leader.Held, snapshot.Len())
	}
	for i := range counts {
		counts[i].Requests = max(counts[i].Requests, heard[snapshot.At(i).ID])
	}
	return counts
}

// engineOf returns the state of an endpoint's engine; known is false if its metrics have never been read.
func (p *Pool) engineOf(id scheduling.EndpointID) (status scrape.Status, known bool) {
	if p.scraper == nil {
		return status, false
	}
	status, known = p.scraper.Status(id)
	return status, known && !status.At.IsZero()
}

// engineColumns are the columns of a table with an engine's report: its running and waiting requests, and the report's
// age.
func (p *Pool) engineColumns(id scheduling.EndpointID, now time.Time) string {
	e, known := p.engineOf(id)
	if !known {
		return "-\t-\tnever"
	}
	return fmt.Sprintf("%d\t%d\t%v ago", e.Running, e.Lacking, max(0, now.Sub(e.At)).Round(100*time.Millisecond))
}
