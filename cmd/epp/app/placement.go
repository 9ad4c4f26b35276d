package app

import (
	"sync/atomic"

	"github.com/weir-epp/weir/pkg/dispatch"
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

// placer is dispatch's view of scheduling: the board, which knows what a request asks of its endpoints by the query that
// the picker has made. It is used under the controller's lock.
type placer struct{ *scheduling.Board }

var (
	_ dispatch.Reacher   = placer{}
	_ dispatch.Bounder   = placer{} // by the board, as the next
	_ dispatch.Signaller = placer{}
)

// NewPlacer returns how the program's machine places requests on a board.
func NewPlacer(board *scheduling.Board) dispatch.Placer { return placer{board} }

// queryOf is the query behind a placement; the picker made all of them.
func queryOf(p flowcontrol.Placement) *scheduling.Query { return p.(*scheduling.Query) }

// Place implements dispatch.Placer.
func (b placer) Place(
	p flowcontrol.Placement, bound scheduling.Bound, except *scheduling.EndpointSet,
) scheduling.Reservation {
	return b.Board.Place(queryOf(p), bound, except)
}

// HasRoom implements dispatch.Placer.
func (b placer) HasRoom(p flowcontrol.Placement, bound scheduling.Bound, except *scheduling.EndpointSet) bool {
	return b.Board.HasRoom(queryOf(p), bound, except)
}

// PlaceAt implements dispatch.Placer.
func (b placer) PlaceAt(p flowcontrol.Placement, e scheduling.EndpointID) scheduling.Reservation {
	return b.Board.PlaceAt(queryOf(p), e)
}

// HasReady implements dispatch.Placer.
func (b placer) HasReady(p flowcontrol.Placement, except *scheduling.EndpointSet) bool {
	return b.Board.HasReady(queryOf(p), except)
}

// Meets implements dispatch.Placer.
func (b placer) Meets(p flowcontrol.Placement, set *scheduling.EndpointSet) bool {
	return b.Board.Meets(queryOf(p), set)
}

// CanServe implements dispatch.Placer.
func (b placer) CanServe(p flowcontrol.Placement, e scheduling.EndpointID) bool {
	return b.Board.CanServe(queryOf(p), e)
}

// CanTakeOver implements dispatch.Placer.
func (b placer) CanTakeOver(p flowcontrol.Placement, e scheduling.EndpointID) bool {
	return b.Board.CanTakeOver(queryOf(p), e)
}

// Reach implements dispatch.Reacher.
func (b placer) Reach(
	p flowcontrol.Placement, some []scheduling.EndpointID,
) (endpoints []scheduling.EndpointID, whole bool) {
	return b.Board.Reach(queryOf(p), some)
}

// Traits implements dispatch.Reacher.
func (b placer) Traits(p flowcontrol.Placement, some []scheduling.Trait) []scheduling.Trait {
	return b.Board.Traits(queryOf(p), some)
}
