package app

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/datastore"
	"github.com/weir-epp/weir/pkg/datastore/kube"
	"github.com/weir-epp/weir/pkg/datastore/kvevents"
	"github.com/weir-epp/weir/pkg/datastore/scrape"
	"github.com/weir-epp/weir/pkg/decision/sink"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/leader"
	"github.com/weir-epp/weir/pkg/prefix"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// Pool has all parts of one pool of model servers: its endpoints, the requests in flight there, the queue, the streams
// of its requests and its metrics. A process may have several pools.
type Pool struct {
	// Immutable.
	log        logr.Logger
	registerer prometheus.Registerer // for its metrics; it adds the label pool, if any
	store      *datastore.Store
	board      *scheduling.Board // guarded by the controller's lock
	controller *flowcontrol.RequestQueueController
	server     *extproc.Server
	recording  recordings    // its own comments name its guards
	records    *sink.Sink    // of decision records
	index      *prefix.Index // the endpoints' cached prompts
	tail       tail          // its own comments name its guards
	cluster    *kube.Cluster // nil: the endpoints do not come from Kubernetes
	naming     naming        // its own comments name its guards

	replication *replication         // nil: other replicas are unknown
	scraper     *scrape.Scraper      // nil: no metrics of engines are read
	events      *kvevents.Subscriber // nil: no KV events of engines are followed

	// prepared has the parts that prepare requests before the controller's lock.
	prepared atomic.Pointer[prepared]

	// lengths are the endpoints' stated longest contexts; nil: none.
	lengths atomic.Pointer[lengths]

	adapters     adapterNames
	capabilities capabilities // guarded by mu

	endings endings

	// mu orders changes of the pool and of the configuration, and guards the rest.
	mu        sync.Mutex
	stored    *scheduling.Snapshot // the store's newest
	published *scheduling.Snapshot // stored plus the engines' statements, as passed to all parts
	scheduler *scheduling.Scheduler
	flow      flowcontrol.Config
	streams   extproc.Config                        // RoutesByModel follows the snapshot, the names the resources
	clamped   string                                // the last log line about the reservations
	told      map[scheduling.EndpointID]leader.Held // the controller's values of other replicas' work, without zeros
	heard     map[scheduling.EndpointID]int         // the counted foreign load reported by engines, without zeros
	strangers map[scheduling.EndpointID]time.Time   // since when engines have had requests of others while Weir had no stream
	recorded  bool                                  // other replicas, or earlier processes, have requests in flight by their records

	foreignTotal  atomic.Int64 // the counted part of other replicas' work, in requests
	foreignTokens atomic.Int64 // and in tokens
}

// prepared is a scheduler and the newest snapshot.
type prepared struct {
	scheduler *scheduling.Scheduler
	snapshot  *scheduling.Snapshot
	tainted   bool // some endpoint has a taint
}

func newPrepared(s *scheduling.Scheduler, snapshot *scheduling.Snapshot) *prepared {
	return &prepared{s, snapshot, isTainted(snapshot)}
}

// changed is the store's subscriber. It is called with one snapshot at a time, in order.
func (p *Pool) changed(published *scheduling.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stored = published
	p.follow(published)
	p.publish(p.capabilities.of(published))
}

// publish passes a snapshot to all parts. The caller holds mu.
func (p *Pool) publish(published *scheduling.Snapshot) {
	p.published = published
	ready, routesByModel := readyOf(published)
	routesByNeeds := published.Lacked() != 0
	if routesByModel != p.streams.RoutesByModel || routesByNeeds != p.streams.RoutesByNeeds {
		p.streams.RoutesByModel, p.streams.RoutesByNeeds = routesByModel, routesByNeeds
		if err := p.server.SetConfig(p.streams); err != nil { // it was valid with the other value
			p.log.Error(err, "cannot follow the models and capabilities of the endpoints")
		}
	}
	p.prepared.Store(newPrepared(p.scheduler, published))
	p.controller.SetBackends(ready, p.foreign(), func() { p.board.SetSnapshot(published) })
	p.index.SetEndpoints(cachesOf(published)) // slow, and no request may go to a removed engine meanwhile
	if p.events != nil {
		p.events.Follow(published)
	}
	p.log.Info("endpoints", "version", published.Version(), "listed", published.Len(), "ready", len(ready))
	p.noteReservations(ready)
}

// reconfigure applies a new configuration to every part, or on an error to none. Requests arrive and end meanwhile, so
// the order matters:
//
//  1. The caller has made and validated the parts that can refuse. Only the controller's step can still fail, so it
//     comes first.
//  2. The controller changes the queue, the bounds of the stock, the board's with them and, in commit and under the same
//     lock, the scheduler. So every decision sees either the old or the new configuration: the bounds of the pool are
//     always the sum of those of its endpoints.
//  3. Next come the parts used before the lock. A request prepared with the old scheduler is updated when it is placed.
//  4. The streams come last. A running stream keeps its configuration, so that its flow, its cost and its statuses
//     match. If the streams changed before step 2, requests of new tiers could meet the old queue. A request classified
//     before step 2 that enters the queue after it keeps the rank of its tier; this is another tier only if tiers above
//     it were inserted or removed.
//
// The configuration has the names of the file; the names of the cluster's resources stay in use.
func (p *Pool) reconfigure(flow flowcontrol.Config, scheduler *scheduling.Scheduler, file extproc.Config) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ready, routesByModel := readyOf(p.published)
	streams, merged := p.naming.merge(file, p.naming.resources)
	streams.RoutesByModel, streams.RoutesByNeeds = routesByModel, p.published.Lacked() != 0
	if err := p.controller.Reconfigure(flow, func() { p.board.SetScheduler(scheduler) }); err != nil {
		return err
	}
	p.flow, p.scheduler, p.streams = flow, scheduler, streams
	p.prepared.Store(newPrepared(scheduler, p.published))
	if err := p.server.SetConfig(streams); err != nil {
		return fmt.Errorf("app: streams: %w", err) // the caller has validated it
	}
	p.naming.file = file
	p.naming.files++
	p.naming.use(merged)
	p.noteReservations(ready)
	return nil
}

// readyOf returns the ready backends of a snapshot, and whether any endpoint lists models.
func readyOf(snapshot *scheduling.Snapshot) (ready []stock.Backend, routesByModel bool) {
	for i := range snapshot.Len() {
		e := snapshot.At(i)
		if e.Ready && e.Work.Serves() {
			ready = append(ready, backendOf(&e))
		}
		routesByModel = routesByModel || len(e.Models) > 0
	}
	return ready, routesByModel
}

func backendOf(e *scheduling.Endpoint) stock.Backend {
	return stock.Backend{ID: stock.BackendID(e.ID), Slots: int32(min(e.Slots, math.MaxInt32))}
}
