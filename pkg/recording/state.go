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

// state is everything that decides: the machine, the board that it places on, and the requests that later events can be
// about.
type state struct {
	machine  *dispatch.Machine
	board    *scheduling.Board
	requests map[uint64]*request
}

// request is a request in a replay.
type request struct {
	*dispatch.Waiter
	id    string
	query *scheduling.Query // nil: any endpoint will do
}

// beginning is what a recording begins with, as it is captured from the machine that is recorded.
type beginning struct {
	machine *dispatch.Machine
	board   *scheduling.Board
	live    []*dispatch.Waiter // the requests that have not ended
}

// state returns the state; ids has the IDs of the live requests.
func (b *beginning) state(ids []string) *state {
	s := &state{machine: b.machine, board: b.board, requests: make(map[uint64]*request, len(b.live))}
	for i, w := range b.live {
		q, _ := w.Placement().(*scheduling.Query)
		s.requests[w.Number()] = &request{Waiter: w, id: ids[i], query: q}
	}
	return s
}

// Format reads and writes recordings of machines with one type of Placer.
type Format struct{ placer dispatch.Placer }

// NewFormat returns the format for machines whose Placer has the type of placer.
func NewFormat(placer dispatch.Placer) (*Format, error) {
	f := &Format{placer}
	_, err := f.checkpoints(dispatch.DefaultConfig())
	return f, err
}

// checkpoints returns the codec for states of machines that were made with cfg.
func (f *Format) checkpoints(cfg dispatch.Config) (*graph.Codec, error) {
	c := graph.New((*state)(nil),
		(*request)(nil), (*dispatch.Waiter)(nil), f.placer, (*scheduling.Query)(nil), (*rand.PCG)(nil))
	// A scheduler contains functions, so its configuration is written instead. It has no other state.
	graph.Opaque(c,
		func(s *scheduling.Scheduler) ([]byte, error) { return json.Marshal(s.Config()) },
		func(text []byte) (*scheduling.Scheduler, error) {
			var cfg scheduling.Config
			if err := json.Unmarshal(text, &cfg); err != nil {
				return nil, err
			}
			return scheduling.New(cfg)
		})
	for _, cfg := range append(examples(), cfg) {
		m, err := dispatch.New(cfg, f.placer, nil)
		if err == nil {
			err = c.Learn(&state{machine: m})
		}
		if err != nil {
			return nil, fmt.Errorf("recording: %w", err)
		}
	}
	return c, nil
}

// examples returns configurations that together cover the types behind interfaces in a machine. Types that only other
// settings bring are learned from the configuration at hand.
func examples() []dispatch.Config {
	var all []dispatch.Config
	for _, discipline := range []fairqueue.Discipline{fairqueue.WFQ, fairqueue.OneFlow} {
		cfg := dispatch.DefaultConfig()
		cfg.Queue.Discipline = discipline
		all = append(all, cfg)
	}
	cfg := dispatch.DefaultConfig()
	cfg.Queue.Priorities = true // four orders
	cfg.Queue.Classes = []fairqueue.ClassConfig{
		{Name: "a", Quantum: 1},
		{Name: "b", Quantum: 1, Order: fairqueue.WSPT},
		{Name: "c", Quantum: 1, Order: fairqueue.EDF},
		{Name: "d", Quantum: 1, Order: fairqueue.WSPT, Ageing: fairqueue.MinAgeing},
	}
	return append(all, cfg)
}

// restore decodes a checkpoint. The state continues exactly as the original.
func restore(c *graph.Codec, checkpoint []byte) (*state, error) {
	root, err := c.Read(checkpoint)
	if err != nil {
		return nil, err
	}
	return root.(*state), nil
}
