package recording

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/weir-epp/weir/internal/graph"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// state is all that decides: the machine, the board that it places on, and the requests that further events can be
// about.
type state struct {
	machine  *dispatch.Machine
	board    *scheduling.Board
	requests map[uint64]*request
}

// request is one request of a replay.
type request struct {
	dispatch.Waiter
	id    string
	query *scheduling.Query // nil: any endpoint will do
}

// Format writes and reads recordings of machines that place in one way.
type Format struct{ checkpoints *graph.Codec }

// NewFormat returns the format for machines whose Placer is of the type of placer.
func NewFormat(placer dispatch.Placer) (*Format, error) {
	c := graph.New((*state)(nil),
		(*request)(nil), (*dispatch.Waiter)(nil), placer, (*scheduling.Query)(nil), (*rand.PCG)(nil))
	// A scheduler has functions, and is written as its configuration: no scorer has a memory of its own yet.
	graph.Opaque(c,
		func(s *scheduling.Scheduler) ([]byte, error) { return json.Marshal(s.Config()) },
		func(text []byte) (*scheduling.Scheduler, error) {
			var cfg scheduling.Config
			if err := json.Unmarshal(text, &cfg); err != nil {
				return nil, err
			}
			return scheduling.New(cfg)
		})
	for _, cfg := range examples() {
		m, err := dispatch.New(cfg, placer, nil)
		if err == nil {
			err = c.Learn(&state{machine: m})
		}
		if err != nil {
			return nil, fmt.Errorf("recording: %w", err)
		}
	}
	return &Format{c}, nil
}

// examples are configurations that together have every type behind an interface in a machine.
func examples() []dispatch.Config {
	var all []dispatch.Config
	for _, discipline := range []fairqueue.Discipline{fairqueue.WFQ, fairqueue.OneFlow} {
		cfg := dispatch.DefaultConfig()
		cfg.Queue.Discipline = discipline
		all = append(all, cfg)
	}
	return all
}

// checkpoint writes a state, from which restore goes on as s would.
func (f *Format) checkpoint(s *state) ([]byte, error) { return f.checkpoints.Write(s) }

func (f *Format) restore(checkpoint []byte) (*state, error) {
	root, err := f.checkpoints.Read(checkpoint)
	if err != nil {
		return nil, err
	}
	return root.(*state), nil
}
