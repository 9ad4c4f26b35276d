package dispatch

import (
	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// countingBoard counts the calls of the board, and the calls among them that look at every endpoint of a lane.
type countingBoard struct {
	placement.Placer
	calls, explored int
}

func (b *countingBoard) Place(p Placement, bound Bound, except *EndpointSet) Reservation {
	b.calls++
	return b.Placer.Place(p, bound, except)
}

func (b *countingBoard) Regret(p Placement, bound Bound, except *EndpointSet) (int64, bool) {
	b.calls++
	return b.Placer.Regret(p, bound, except)
}

func (b *countingBoard) HasRoom(p Placement, bound Bound, except *EndpointSet) bool {
	b.calls++
	return b.Placer.HasRoom(p, bound, except)
}

func (b *countingBoard) PlaceAt(p Placement, e Endpoint) Reservation {
	b.calls++
	return b.Placer.PlaceAt(p, e)
}

func (b *countingBoard) Release(p Placement, r *Reservation) {
	b.calls++
	b.Placer.Release(p, r)
}

func (b *countingBoard) HasReady(p Placement, except *EndpointSet) bool {
	b.calls++
	return b.Placer.HasReady(p, except)
}

func (b *countingBoard) Meets(p Placement, set *EndpointSet) bool {
	b.calls++
	return b.Placer.Meets(p, set)
}

func (b *countingBoard) CanServe(p Placement, e Endpoint) bool {
	b.calls++
	return b.Placer.CanServe(p, e)
}

func (b *countingBoard) CanTakeOver(p Placement, e Endpoint) bool {
	b.calls++
	return b.Placer.CanTakeOver(p, e)
}

func (b *countingBoard) Reach(p Placement, some []Endpoint) ([]Endpoint, bool) {
	b.calls++
	b.explored++
	return b.Placer.Reach(p, some)
}

func (b *countingBoard) Traits(p Placement, some []scheduling.Trait) []scheduling.Trait {
	b.calls++
	return b.Placer.Traits(p, some)
}

// countsCalls makes a machine use a counting placer from now on.
func countsCalls(x *shared) *countingBoard {
	c := &countingBoard{Placer: placement.On(x.board)}
	x.placer = c
	return c
}
