package app

import (
	"sync/atomic"

	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// picker is extproc's view of scheduling: it prepares a query against the newest snapshot, before the controller's
// lock.
type picker struct{ prepared *atomic.Pointer[prepared] }

// Prepare implements extproc.Picker.
func (p picker) Prepare(model string, subset extproc.Subset) (extproc.Placement, error) {
	now := p.prepared.Load()
	ask := scheduling.Ask{Model: model, Subset: scheduling.Subset{Set: subset.Set, Entries: subset.Members}}
	query, err := now.scheduler.Prepare(now.snapshot, ask)
	if err != nil {
		return nil, err
	}
	return query, nil
}

// Locate implements extproc.Picker.
func (p picker) Locate(address string) (flowcontrol.Endpoint, bool) {
	e, ok := p.prepared.Load().snapshot.ByAddress(address)
	return e.ID, ok
}

// Lists implements extproc.Picker.
func (p picker) Lists(model string) bool { return p.prepared.Load().snapshot.Lists(model) }

// placer is flowcontrol's view of scheduling: the board, under the controller's lock.
type placer struct {
	board  *scheduling.Board
	except scheduling.EndpointSet // reused, under that lock too
}

// without is the exceptions in the board's terms.
func (p *placer) without(except []flowcontrol.Endpoint) *scheduling.EndpointSet {
	if len(except) == 0 {
		return nil
	}
	p.except.Clear()
	for _, e := range except {
		p.except.Add(e)
	}
	return &p.except
}

// queryOf is the query behind a placement; the picker made all of them.
func queryOf(p flowcontrol.Placement) *scheduling.Query { return p.(*scheduling.Query) }

// Place implements flowcontrol.Placer.
func (p *placer) Place(
	placement flowcontrol.Placement, bound flowcontrol.Bound, except []flowcontrol.Endpoint,
) flowcontrol.Endpoint {
	r := p.board.Place(queryOf(placement), bound, p.without(except))
	return r.Endpoint()
}

// HasRoom implements flowcontrol.Placer.
func (p *placer) HasRoom(
	placement flowcontrol.Placement, bound flowcontrol.Bound, except []flowcontrol.Endpoint,
) bool {
	return p.board.HasRoom(queryOf(placement), bound, p.without(except))
}

// CanTakeOver implements flowcontrol.Placer.
func (p *placer) CanTakeOver(placement flowcontrol.Placement, e flowcontrol.Endpoint) bool {
	return p.board.CanTakeOver(queryOf(placement), e)
}

// Reach implements flowcontrol.Reacher.
func (p *placer) Reach(
	placement flowcontrol.Placement, some []flowcontrol.Endpoint,
) (ready []flowcontrol.Endpoint, whole bool) {
	return p.board.Reach(queryOf(placement), some)
}

var _ flowcontrol.Reacher = (*placer)(nil)

// PlaceAt implements flowcontrol.Placer.
func (p *placer) PlaceAt(placement flowcontrol.Placement, e flowcontrol.Endpoint) {
	p.board.PlaceAt(queryOf(placement), e)
}

// Release implements flowcontrol.Placer.
func (p *placer) Release(e flowcontrol.Endpoint) {
	r := scheduling.Reserved(e)
	p.board.Release(&r)
}

// HasReady implements flowcontrol.Placer.
func (p *placer) HasReady(placement flowcontrol.Placement, except []flowcontrol.Endpoint) bool {
	return p.board.HasReady(queryOf(placement), p.without(except))
}

// CanServe implements flowcontrol.Placer.
func (p *placer) CanServe(placement flowcontrol.Placement, e flowcontrol.Endpoint) bool {
	return p.board.CanServe(queryOf(placement), e)
}
