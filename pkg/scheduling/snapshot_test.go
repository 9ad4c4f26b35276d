package scheduling

import (
	"math"
	"testing"
)

func TestSnapshotLookups(t *testing.T) {
	s := NewSnapshot(7, []Endpoint{ready(5, "[::1]:81"), ready(2, "10.0.0.1:80"), ready(3, "[::1]:80")})
	if s.Version() != 7 || s.Len() != 3 || s.At(0).ID != 2 || s.At(2).ID != 5 {
		t.Fatalf("version %d, %d endpoints", s.Version(), s.Len())
	}
	if e, ok := s.ByID(3); !ok || e.Address != "[::1]:80" {
		t.Errorf("ByID: %+v", e)
	}
	if _, ok := s.ByID(4); ok {
		t.Error("ByID of a stranger")
	}
	if e, ok := s.ByAddress(" [0::1]:81"); !ok || e.ID != 5 {
		t.Errorf("ByAddress: %+v", e)
	}
	if _, ok := s.ByAddress("::1"); ok {
		t.Error("ByAddress without a port")
	}
}

// Lists distinguishes a model that an endpoint lists from one that only endpoints without a list may serve.
func TestListedModels(t *testing.T) {
	s := NewSnapshot(1, []Endpoint{ready(0, "10.0.0.1:80", "a"), unready(1, "10.0.0.2:80", "b"), ready(2, "10.0.0.3:80")})
	for model, want := range map[string]bool{"a": true, "b": true, "c": false, "": false} {
		if got := s.Lists(model); got != want {
			t.Errorf("model %q: %t, want %t", model, got, want)
		}
	}
}

// A snapshot is independent of the values that it was built from.
func TestSnapshotIsImmutable(t *testing.T) {
	models, labels := []string{"a"}, map[string]string{"zone": "x"}
	endpoints := []Endpoint{{Address: "10.0.0.1:80", Models: models, Labels: labels}}
	s := NewSnapshot(1, endpoints)
	models[0], labels["zone"], endpoints[0].Ready = "b", "y", true
	if e := s.At(0); e.Models[0] != "a" || e.Labels["zone"] != "x" || e.Ready {
		t.Fatalf("%+v", e)
	}
}

func TestBrokenSnapshotsPanic(t *testing.T) {
	for name, endpoints := range map[string][]Endpoint{
		"an ID twice":       {ready(0, "10.0.0.1:80"), ready(0, "10.0.0.2:80")},
		"an address twice":  {ready(0, "[::1]:80"), ready(1, "[0::1]:80")},
		"a negative ID":     {ready(-1, "10.0.0.1:80")},
		"a limit below 0":   {{MaxInFlight: -1}},
		"an address absent": {{ID: 0}, {ID: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			defer wantPanic(t)
			NewSnapshot(1, endpoints)
		})
	}
}

// A model listed twice by an endpoint is there once.
func TestModelListedTwice(t *testing.T) {
	b := poolOf(t, mustNew(t), ready(0, "10.0.0.1:80", "a", "b", "a"), ready(1, "10.0.0.2:80", "b"))
	q := prepare(t, b, Ask{Model: "a"})
	wantPlaced(t, b, q, BelowUpper, 0, 0, 0, NoEndpoint) // an upper bound of 2.2
	if d := b.Explain(q); d.Stock != 3 || d.LowerBound != 1.8 {
		t.Errorf("%d in flight, lower bound %g", d.Stock, d.LowerBound)
	}
}

// Limits and bounds may be as large as their types permit, at any number of endpoints, and the lane stays open.
func TestHugeLimitsAndBounds(t *testing.T) {
	endpoints := make([]Endpoint, 20_000)
	for i, address := range addresses(len(endpoints)) {
		endpoints[i] = ready(EndpointID(i), address, []string{"a", "a", "b"}[i%3])
		endpoints[i].MaxInFlight = math.MaxInt
	}
	b := poolOf(t, mustNew(t), endpoints...)
	for _, e := range endpoints {
		b.SetBounds(e.ID, math.MaxInt64, math.MaxInt64)
	}
	q := prepare(t, b, Ask{Model: "a"})
	wantPlaced(t, b, q, BelowLower, 0, 1, 3)
	if d := b.Explain(q); !d.BelowLower || !d.BelowUpper || d.LowerBound <= 0 {
		t.Errorf("lower bound %g, upper bound %g", d.LowerBound, d.UpperBound)
	}
	endpoints[0].MaxInFlight = math.MaxInt32 + 1
	wantPlaced(t, poolOf(t, mustNew(t), endpoints[0]), prepare(t, b, Ask{}), BelowLower, 0, 0)
}
