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
	return flowcontrol.Endpoint(e.ID), ok
}

// Lists implements extproc.Picker.
func (p picker) Lists(model string) bool { return p.prepared.Load().snapshot.Lists(model) }

// placer is flowcontrol's view of scheduling: the board, under the controller's lock.
type placer struct {
	board  *scheduling.Board
	except scheduling.EndpointSet  // reused, under that lock too
	reach  []scheduling.EndpointID // likewise
}

// without is the exceptions in the board's terms.
func (p *placer) without(except []flowcontrol.Endpoint) *scheduling.EndpointSet {
	if len(except) == 0 {
		return nil
	}
	p.except.Clear()
	for _, e := range except {
		p.except.Add(scheduling.EndpointID(e))
	}
	return &p.except
}

// queryOf is the query behind a placement; the picker made all of them.
func queryOf(p flowcontrol.Placement) *scheduling.Query { return p.(*scheduling.Query) }

// Place implements flowcontrol.Placer.
func (p *placer) Place(
	placement flowcontrol.Placement, bound flowcontrol.Bound, except []flowcontrol.Endpoint,
) flowcontrol.Endpoint {
	r := p.board.Place(queryOf(placement), boundOf(bound), p.without(except))
	return flowcontrol.Endpoint(r.Endpoint())
}

// HasRoom implements flowcontrol.Placer.
func (p *placer) HasRoom(placement flowcontrol.Placement, bound flowcontrol.Bound) bool {
	return p.board.HasRoom(queryOf(placement), boundOf(bound), nil)
}

func boundOf(bound flowcontrol.Bound) scheduling.Bound {
	switch bound {
	case flowcontrol.BelowUpper:
		return scheduling.BelowUpper
	case flowcontrol.Unbounded:
		return scheduling.Unbounded
	default:
		return scheduling.BelowLower
	}
}

// CanTakeOver implements flowcontrol.Placer.
func (p *placer) CanTakeOver(placement flowcontrol.Placement, e flowcontrol.Endpoint) bool {
	return p.board.CanTakeOver(queryOf(placement), scheduling.EndpointID(e))
}

// Reach implements flowcontrol.Reacher.
func (p *placer) Reach(
	placement flowcontrol.Placement, some []flowcontrol.Endpoint,
) (ready []flowcontrol.Endpoint, whole bool) {
	ids, whole := p.board.Reach(queryOf(placement), p.reach[:0])
	for _, id := range ids {
		some = append(some, flowcontrol.Endpoint(id))
	}
	p.reach = ids[:0]
	return some, whole
}

var _ flowcontrol.Reacher = (*placer)(nil)

// PlaceAt implements flowcontrol.Placer.
func (p *placer) PlaceAt(placement flowcontrol.Placement, e flowcontrol.Endpoint) {
	p.board.PlaceAt(queryOf(placement), scheduling.EndpointID(e))
}

// Release implements flowcontrol.Placer.
func (p *placer) Release(e flowcontrol.Endpoint) {
	r := scheduling.Reserved(scheduling.EndpointID(e))
	p.board.Release(&r)
}

// HasReady implements flowcontrol.Placer.
func (p *placer) HasReady(placement flowcontrol.Placement, except []flowcontrol.Endpoint) bool {
	return p.board.HasReady(queryOf(placement), p.without(except))
}

// CanServe implements flowcontrol.Placer.
func (p *placer) CanServe(placement flowcontrol.Placement, e flowcontrol.Endpoint) bool {
	return p.board.CanServe(queryOf(placement), scheduling.EndpointID(e))
}

// NoEndpoint is one value on both sides.
var _ = [1]struct{}{}[int(flowcontrol.NoEndpoint)-int(scheduling.NoEndpoint)]
