package request

import (
	"errors"
	"slices"
	"testing"
)

// The hint lists addresses, separated by commas. A request with an empty hint is refused: the hint must not open the
// whole pool.
func TestSubset(t *testing.T) {
	for list, want := range map[string][]string{
		"10.0.0.1:8000": {"10.0.0.1:8000"}, " 10.0.0.1 ,, [::1]:8000,": {"10.0.0.1", "[::1]:8000"}, "": nil, " , ": nil,
	} {
		hint := Subset{Set: true}
		hint.Add(list)
		s := sent{headers: chat("x-gateway-model-name", "m"), subset: hint}
		q, err := s.read()
		if !slices.Equal(q.Subset.Members, want) || errors.Is(err, ErrEmptySubset) != (want == nil) {
			t.Errorf("%q: %q, %v", list, q.Subset.Members, err)
		}
	}
	if q := (&sent{headers: chat("x-gateway-model-name", "m")}).must(t); q.Subset.Set {
		t.Error("a hint that nobody gave")
	}
}
