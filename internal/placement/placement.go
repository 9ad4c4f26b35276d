// Package placement connects dispatch with a scheduling board: it passes the board the query of each request, which has
// the request's needs. epp's machine places requests through it, and so do the machines that replay its recordings.
package placement

import "github.com/weir-epp/weir/pkg/scheduling"

// Placer is the dispatch.Placer of a board. The machine uses it under the controller's lock. A placement is a
// *scheduling.Query.
type Placer struct{ *scheduling.Board }

// On returns the Placer of a board.
func On(board *scheduling.Board) Placer { return Placer{board} }

func queryOf(p any) *scheduling.Query { return p.(*scheduling.Query) }

// Place implements dispatch.Placer.
func (b Placer) Place(
	p any, bound scheduling.Bound, except *scheduling.EndpointSet,
) scheduling.Reservation {
	return b.Board.Place(queryOf(p), bound, except)
}

// Regret implements dispatch.Placer.
func (b Placer) Regret(
	p any, bound scheduling.Bound, except *scheduling.EndpointSet,
) (tokens int64, ok bool) {
	return b.Board.Regret(queryOf(p), bound, except)
}

// HasRoom implements dispatch.Placer.
func (b Placer) HasRoom(p any, bound scheduling.Bound, except *scheduling.EndpointSet) bool {
	return b.Board.HasRoom(queryOf(p), bound, except)
}

// PlaceAt implements dispatch.Placer.
func (b Placer) PlaceAt(p any, e scheduling.EndpointID) scheduling.Reservation {
	return b.Board.PlaceAt(queryOf(p), e)
}

// Release implements dispatch.Placer.
func (b Placer) Release(p any, r *scheduling.Reservation) { b.Board.ReleaseFor(queryOf(p), r) }

// HasReady implements dispatch.Placer.
func (b Placer) HasReady(p any, except *scheduling.EndpointSet) bool {
	return b.Board.HasReady(queryOf(p), except)
}

// Known implements dispatch.Placer.
func (b Placer) Known(p any) int { return b.Board.Known(queryOf(p)) }

// SetBusyRules implements dispatch.Placer. Without a board it does nothing.
func (b Placer) SetBusyRules(rules []scheduling.BusyRule) {
	if b.Board != nil {
		b.Board.SetBusyRules(rules)
	}
}

// Busy implements dispatch.Placer.
func (b Placer) Busy(p any, rule int) bool { return b.Board.Busy(queryOf(p), rule) }

// Meets implements dispatch.Placer.
func (b Placer) Meets(p any, set *scheduling.EndpointSet) bool {
	return b.Board.Meets(queryOf(p), set)
}

// CanServe implements dispatch.Placer.
func (b Placer) CanServe(p any, e scheduling.EndpointID) bool {
	return b.Board.CanServe(queryOf(p), e)
}

// CanTakeOver implements dispatch.Placer.
func (b Placer) CanTakeOver(p any, e scheduling.EndpointID) bool {
	return b.Board.CanTakeOver(queryOf(p), e)
}

// Reach implements dispatch.Placer.
func (b Placer) Reach(
	p any, some []scheduling.EndpointID,
) (endpoints []scheduling.EndpointID, whole bool) {
	return b.Board.Reach(queryOf(p), some)
}

// Lane implements dispatch.Placer.
func (b Placer) Lane(p any) string { return b.Board.Lane(queryOf(p)) }

// Traits implements dispatch.Placer.
func (b Placer) Traits(p any, some []scheduling.Trait) []scheduling.Trait {
	return b.Board.Traits(queryOf(p), some)
}
