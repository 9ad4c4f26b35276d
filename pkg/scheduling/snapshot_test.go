package scheduling

import (
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
	if all := s.ByHost("[::1]"); len(all) != 2 || all[0].ID != 3 || all[1].ID != 5 {
		t.Errorf("ByHost: %+v", all)
	}
}

// Lists distinguishes a model that an endpoint lists from one that only endpoints without a list could serve.
func TestListedModels(t *testing.T) {
	s := NewSnapshot(1, []Endpoint{ready(0, "10.0.0.1:80", "a"), unready(1, "10.0.0.2:80", "b"), ready(2, "10.0.0.3:80")})
	for model, want := range map[string]bool{"a": true, "b": true, "c": false, "": false} {
		if got := s.Lists(model); got != want {
			t.Errorf("model %q: %t, want %t", model, got, want)
		}
	}
}

// A snapshot does not change with the values that it was built from.
func TestSnapshotIsImmutable(t *testing.T) {
	models, labels := []string{"a"}, map[string]string{"zone": "x"}
	endpoints := []Endpoint{{Address: "10.0.0.1:80", Models: models, Labels: labels}}
	s := NewSnapshot(1, endpoints)
	models[0], labels["zone"], endpoints[0].Ready = "b", "y", true
	if e := s.At(0); e.Models[0] != "a" || e.Labels["zone"] != "x" || e.Ready {
		t.Fatalf("%+v", e)
	}
}

func TestDerive(t *testing.T) {
	s := NewSnapshot(3, []Endpoint{ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80")})
	d := s.Derive(func(e *Endpoint) { e.LowerBound = int64(e.ID) })
	if d.Version() != 3 || d.At(1).LowerBound != 1 || s.At(1).LowerBound != 1_800_000 {
		t.Fatalf("%+v", d.At(1))
	}
}

func TestBrokenSnapshotsPanic(t *testing.T) {
	negative := ready(0, "10.0.0.1:80")
	negative.UpperBound = -1
	for name, endpoints := range map[string][]Endpoint{
		"an ID twice":       {ready(0, "10.0.0.1:80"), ready(0, "10.0.0.2:80")},
		"an address twice":  {ready(0, "[::1]:80"), ready(1, "[0::1]:80")},
		"a negative ID":     {ready(-1, "10.0.0.1:80")},
		"a bound below 0":   {negative},
		"a limit below 0":   {{MaxInFlight: -1}},
		"an address absent": {{ID: 0}, {ID: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			defer wantPanic(t)
			NewSnapshot(1, endpoints)
		})
	}
}
