package app

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/prefix"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// picker is extproc's interface to scheduling: it prepares a query on the newest snapshot, before the controller's
// lock.
type picker struct {
	prepared *atomic.Pointer[prepared]
	lengths  *atomic.Pointer[lengths]
	index    *prefix.Index
	adapters *adapterNames // nil: none
}

// Prepare implements extproc.Picker.
func (p picker) Prepare(model string, subset request.Subset, needs request.Needs) (extproc.Placement, error) {
	now := p.prepared.Load()
	ask := scheduling.Ask{
		Model: model, Adapter: p.adapters.known(model), Subset: scheduling.Subset{Set: subset.Set, Entries: subset.Members}, Needs: needsOf(&needs),
	}
	query, err := now.scheduler.Prepare(now.snapshot, ask)
	if unmet := new(scheduling.UnmetError); errors.As(err, &unmet) {
		return nil, &extproc.UnsupportedError{Needs: unmet.Needs.Names(), Tag: unmet.Needs.Tag()}
	}
	if errors.Is(err, scheduling.ErrModelUnknown) {
		return nil, fmt.Errorf("%w: %w", flowcontrol.ErrUnknownModel, err)
	}
	if err != nil {
		return nil, err
	}
	return query, nil
}

// needsOf returns the needs of a request as scheduling.Needs.
func needsOf(n *request.Needs) (needs scheduling.Needs) {
	for _, of := range [...]struct {
		has  bool
		need scheduling.Needs
	}{
		{n.Image, scheduling.NeedImage},
		{n.Audio, scheduling.NeedAudio},
		{n.Video, scheduling.NeedVideo},
		{n.Embeddings, scheduling.NeedEmbeddings},
		{n.Structured, scheduling.NeedStructured},
	} {
		if of.has {
			needs |= of.need
		}
	}
	return needs
}

// affinity implements extproc.Affinity.
type affinity struct {
	index  *prefix.Index
	query  *scheduling.Query
	prompt *body.Blocks
	placed prefix.Placement
	read   prefix.Placement // at the prefill engine
}

// ids are reused by Rate.
var ids = sync.Pool{New: func() any { return new([]scheduling.EndpointID) }}

// Rate implements extproc.Picker. It reads the index outside the controller's lock.
func (p picker) Rate(placement extproc.Placement, prompt *body.Blocks, watched bool) extproc.Affinity {
	a := &affinity{index: p.index, query: placement.(*scheduling.Query), prompt: prompt}
	all := ids.Get().(*[]scheduling.EndpointID)
	*all = a.query.Ready((*all)[:0])
	ratings := p.index.Match(a.prompt, *all)
	ratings.Watched = watched
	a.query.Rate(&ratings)
	if *all = a.query.Prefills((*all)[:0]); len(*all) > 0 {
		atPrefill := p.index.Match(a.prompt, *all)
		a.query.RatePrefill(&atPrefill)
	}
	ids.Put(all)
	return a
}

// Cached implements extproc.Affinity.
func (a *affinity) Cached() int64 { return a.query.Ratings().Best() }

// Granted implements extproc.Affinity.
func (a *affinity) Granted() (cached int64) {
	a.placed = a.index.Place(a.prompt, a.query.Ratings(), a.query.Placed())
	if id, _ := a.query.Prefill(); id != scheduling.NoEndpoint {
		a.read = a.index.PlaceAlso(a.prompt, id)
		return 0 // reports concern the other engine
	}
	return a.placed.Believed()
}

// Failed implements extproc.Affinity.
func (a *affinity) Failed() {
	a.index.TakeBack(a.placed)
	a.index.TakeBack(a.read)
}

// Reported implements extproc.Affinity.
func (a *affinity) Reported(cached int64) { a.index.Report(a.placed, cached) }

// Locate implements extproc.Picker.
func (p picker) Locate(address string) (flowcontrol.Endpoint, bool) {
	e, ok := p.prepared.Load().snapshot.ByAddress(address)
	return e.ID, ok
}

// Lists implements extproc.Picker.
func (p picker) Lists(model string) bool { return p.prepared.Load().snapshot.Lists(model) }
