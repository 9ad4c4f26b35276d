package recording

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// poolChange is the difference between two snapshots.
type poolChange struct {
	Version uint64                  `json:"version"`
	Set     []scheduling.Endpoint   `json:"set,omitempty"` // new and changed ones
	Removed []scheduling.EndpointID `json:"removed,omitempty"`
}

func changeOf(before, after *scheduling.Snapshot) poolChange {
	c := poolChange{Version: after.Version()}
	for i := range after.Len() {
		e := after.At(i)
		if old, known := before.ByID(e.ID); !known || !sameEndpoint(&old, &e) {
			c.Set = append(c.Set, e)
		}
	}
	for i := range before.Len() {
		if id := before.At(i).ID; !hasID(after, id) {
			c.Removed = append(c.Removed, id)
		}
	}
	return c
}

func hasID(s *scheduling.Snapshot, id scheduling.EndpointID) bool {
	_, ok := s.ByID(id)
	return ok
}

// sameEndpoint reports whether two endpoints are equal. It avoids reflection on fields for which it is slow.
func sameEndpoint(a, b *scheduling.Endpoint) bool {
	x, y := *a, *b
	if !slices.Equal(x.Models, y.Models) || !maps.Equal(x.Labels, y.Labels) {
		return false
	}
	x.Models, y.Models, x.Labels, y.Labels = nil, nil, nil, nil
	return reflect.DeepEqual(x, y)
}

// apply returns the snapshot after the change.
func (c *poolChange) apply(before *scheduling.Snapshot) *scheduling.Snapshot {
	set := map[scheduling.EndpointID]scheduling.Endpoint{}
	for i := range before.Len() {
		set[before.At(i).ID] = before.At(i)
	}
	for _, id := range c.Removed {
		delete(set, id)
	}
	for _, e := range c.Set {
		set[e.ID] = e
	}
	endpoints := make([]scheduling.Endpoint, 0, len(set))
	for _, id := range slices.Sorted(maps.Keys(set)) {
		endpoints = append(endpoints, set[id])
	}
	return scheduling.NewSnapshot(c.Version, endpoints)
}

// change writes the difference between the board's snapshot and the one written last, or nothing if they are equal.
func (r *Recorder) change() {
	now := r.board.Snapshot()
	if now == r.pool {
		r.number(0)
		return
	}
	text, err := json.Marshal(changeOf(r.pool, now))
	if err != nil {
		panic(err) // JSON can encode all of it
	}
	r.pool = now
	r.bytes(text)
}

// configuration is the content of a change of the configuration.
type configuration struct {
	Dispatch   dispatch.Config   `json:"dispatch"`
	Scheduling scheduling.Config `json:"scheduling"`
}

func configurationText(d dispatch.Config, s scheduling.Config) []byte {
	text, err := json.Marshal(configuration{d, s})
	if err != nil {
		panic(err)
	}
	return text
}

// hidden returns the configuration with the flows' keys as recorded.
func (r *Recorder) hidden(cfg dispatch.Config) dispatch.Config {
	if r.hide == nil {
		return cfg
	}
	return HiddenConfig(cfg, r.hide)
}

// HiddenConfig returns the configuration with each flow's key replaced by hide, as recorded.
func HiddenConfig(cfg dispatch.Config, hide func(string) string) dispatch.Config {
	cfg.Queue.Weights = rekeyed(cfg.Queue.Weights, hide)
	cfg.Queue.FlowCapacities = rekeyed(cfg.Queue.FlowCapacities, hide)
	cfg.Quotas.Tenants = rekeyed(cfg.Quotas.Tenants, hide)
	cfg.Queue.ByLevel = slices.Clone(cfg.Queue.ByLevel)
	for i := range cfg.Queue.ByLevel {
		l := &cfg.Queue.ByLevel[i]
		l.Weights, l.Capacities = rekeyed(l.Weights, hide), rekeyed(l.Capacities, hide)
	}
	return cfg
}

func rekeyed[V any](of map[string]V, key func(string) string) map[string]V {
	if of == nil {
		return nil
	}
	rekeyed := make(map[string]V, len(of))
	for k, v := range of {
		rekeyed[key(k)] = v
	}
	return rekeyed
}
