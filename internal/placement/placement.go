// Package placement is dispatch's view of scheduling: the board, which knows what a request asks of its endpoints by the
// query that was made for it. The program's machine places so, and so do those that repeat its recordings.
package placement

import (
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/scheduling"
)

type placer struct{ *scheduling.Board }

// On returns the machine's view of a board. The machine uses it under the controller's lock.
func On(board *scheduling.Board) dispatch.Placer { return placer{board} }

// queryOf is the query behind a placement; whoever offers a request has made it.
func queryOf(p dispatch.Placement) *scheduling.Query { return p.(*scheduling.Query) }

// Place implements dispatch.Placer.
func (b placer) Place(
	p dispatch.Placement, bound scheduling.Bound, except *scheduling.EndpointSet,
) scheduling.Reservation {
	return b.Board.Place(queryOf(p), bound, except)
}

// HasRoom implements dispatch.Placer.
func (b placer) HasRoom(p dispatch.Placement, bound scheduling.Bound, except *scheduling.EndpointSet) bool {
	return b.Board.HasRoom(queryOf(p), bound, except)
}

// PlaceAt implements dispatch.Placer.
func (b placer) PlaceAt(p dispatch.Placement, e scheduling.EndpointID) scheduling.Reservation {
	return b.Board.PlaceAt(queryOf(p), e)
}

// HasReady implements dispatch.Placer.
func (b placer) HasReady(p dispatch.Placement, except *scheduling.EndpointSet) bool {
	return b.Board.HasReady(queryOf(p), except)
}

// Meets implements dispatch.Placer.
func (b placer) Meets(p dispatch.Placement, set *scheduling.EndpointSet) bool {
	return b.Board.Meets(queryOf(p), set)
}

// CanServe implements dispatch.Placer.
func (b placer) CanServe(p dispatch.Placement, e scheduling.EndpointID) bool {
	return b.Board.CanServe(queryOf(p), e)
}

// CanTakeOver implements dispatch.Placer.
func (b placer) CanTakeOver(p dispatch.Placement, e scheduling.EndpointID) bool {
	return b.Board.CanTakeOver(queryOf(p), e)
}

// Reach implements dispatch.Placer.
func (b placer) Reach(
	p dispatch.Placement, some []scheduling.EndpointID,
) (endpoints []scheduling.EndpointID, whole bool) {
	return b.Board.Reach(queryOf(p), some)
}

// Lane implements dispatch.Placer.
func (b placer) Lane(p dispatch.Placement) string { return b.Board.Lane(queryOf(p)) }

// Traits implements dispatch.Placer.
func (b placer) Traits(p dispatch.Placement, some []scheduling.Trait) []scheduling.Trait {
	return b.Board.Traits(queryOf(p), some)
}
