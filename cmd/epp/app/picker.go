package app

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// picker is extproc's view of scheduling: it prepares a query against the newest snapshot, before the controller's
// lock.
type picker struct{ prepared *atomic.Pointer[prepared] }

// Prepare implements extproc.Picker.
func (p picker) Prepare(model string, subset request.Subset) (extproc.Placement, error) {
	now := p.prepared.Load()
	ask := scheduling.Ask{Model: model, Subset: scheduling.Subset{Set: subset.Set, Entries: subset.Members}}
	query, err := now.scheduler.Prepare(now.snapshot, ask)
	if errors.Is(err, scheduling.ErrModelUnknown) {
		return nil, fmt.Errorf("%w: %w", flowcontrol.ErrUnknownModel, err)
	}
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
