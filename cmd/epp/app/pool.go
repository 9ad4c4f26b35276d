package app

import (
	"sync/atomic"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// pool passes the store's snapshots on to everybody who works with them.
type pool struct {
	log        logr.Logger
	band       stock.Config
	board      *scheduling.Board
	controller *flowcontrol.RequestQueueController
	server     *extproc.Server
	config     extproc.Config // of the server; RoutesByModel follows the snapshot

	// snapshot is the newest one, with each endpoint's share of the band.
	snapshot *atomic.Pointer[scheduling.Snapshot]
}

// changed is the store's subscriber: it is called with one snapshot at a time, in order.
func (p *pool) changed(published *scheduling.Snapshot) {
	var ready []stock.Backend
	routesByModel := false
	snapshot := published.Derive(func(e *scheduling.Endpoint) {
		backend := stock.Backend{Slots: e.Slots}
		band := p.band.Of(backend)
		e.LowerBound, e.UpperBound = millionths(band.Lower), millionths(band.Upper)
		if e.Ready {
			ready = append(ready, backend)
		}
		routesByModel = routesByModel || len(e.Models) > 0
	})
	if routesByModel != p.config.RoutesByModel {
		p.config.RoutesByModel = routesByModel
		if err := p.server.SetConfig(p.config); err != nil { // it was valid with the other value
			p.log.Error(err, "following the models of the endpoints")
		}
	}
	p.snapshot.Store(snapshot)
	p.controller.SetBackends(ready, func() { p.board.SetSnapshot(snapshot) })
	p.log.Info("endpoints", "version", published.Version(), "listed", published.Len(), "ready", len(ready))
}

// millionths is a bound in the scheduler's unit.
func millionths(m stock.Micro) int64 { return int64(m) * scheduling.Millionths / int64(stock.One) }
