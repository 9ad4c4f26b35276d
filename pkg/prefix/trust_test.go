package prefix

import (
	"testing"

	"github.com/weir-epp/weir/pkg/scheduling"
)

func session(key uint64, tokens int64) Prefix {
	p := Prefix{Tokens: tokens}
	p.FollowSession(key)
	return p
}

// A session is worth what its last prompt was, in steps, and nothing at other endpoints.
func TestSession(t *testing.T) {
	x, ids := newIndex(2, 0)
	p := session(77, 10_000)
	x.put(&p, 1)
	next := session(77, 13_000)
	if r := x.Match(&next, ids); r.Cached(1) < 9_000 || r.Cached(1) > 10_000 || r.Cached(0) != 0 {
		t.Errorf("%+v", r)
	}
	again, short, foreign := session(77, 10_000), session(77, 100), session(78, 10_000)
	if r := x.Match(&again, ids); r.Cached(1) != 10_000 {
		t.Errorf("%+v", r)
	}
	if r := x.Match(&short, ids); r.Cached(1) != 100 {
		t.Errorf("%+v", r)
	}
	if r := x.Match(&foreign, ids); r.Cached(1) != 0 {
		t.Errorf("%+v", r)
	}
}

// An engine that reports much less than was expected over 100 requests is cleared, and remembers half as much; one that has
// never reported anything is believed, as is one that reports enough.
func TestTrust(t *testing.T) {
	for _, c := range []struct {
		reported int64
		cleared  bool
	}{{0, false}, {20, true}, {1200, true}, {1300, false}, {2560, false}} {
		x, ids := newIndex(1, 0)
		p := blocks(1, 10, 1, 10)
		limit := x.engines[0].limit
		for i := range 101 {
			r := x.Match(p, ids)
			placed := x.Place(p, &r, 0)
			if placed.Reports != (i > 0 && c.reported > 0) {
				t.Fatalf("reported %d: request %d is placed as %+v", c.reported, i, placed)
			}
			if believed := placed.Believed(); placed.Reports && believed != placed.Expected || !placed.Reports && believed != 0 {
				t.Fatalf("reported %d: of request %d, placed as %+v, %d are believed", c.reported, i, placed, believed)
			}
			x.Report(placed, c.reported)
		}
		now := x.Totals()
		if cleared := now.Distrusted == 1 && x.engines[0].limit == limit/2 && x.Size().Nodes == 0; cleared != c.cleared || !cleared && x.Size().Nodes != 10 {
			t.Errorf("reported %d of 2560: %+v, limit %d of %d, %+v", c.reported, now, x.engines[0].limit, limit, x.Size())
		}
		if now.Prompt != 101*2560 || now.Best != 100*2560 || now.Chosen != 100*2560 || now.Reported != 101*c.reported {
			t.Errorf("%+v", now)
		}
	}
}

// An endpoint that was halved is believed again, step by step, once its reports are about what was expected: otherwise a few
// bad hundreds in a week would leave its history too small for ever. Half of the expectation is not enough for that.
func TestTrustComesBack(t *testing.T) {
	for _, c := range []struct {
		name     string
		percent  int64 // of the expectation, reported after the halvings
		hundreds int
		halved   uint8
	}{{"all of it", 100, 1, 1}, {"all of it, twice", 100, 2, 0}, {"and not beyond", 100, 5, 0}, {"most of it", 75, 1, 1}, {"too little", 60, 5, 2}} {
		x := New(DefaultConfig())
		x.SetEndpoints([]Endpoint{{ID: 0, Key: "a", Ready: true}})
		p := &Prefix{Keys: []uint64{1, 2, 3, 4}, Ends: []uint32{1024, 2048, 3072, 4096}, Bytes: 4096, Tokens: 1000}
		limit := x.engines[0].limit
		hundred := func(percent int64) {
			for done := 0; done < trustWindow; {
				r := x.Match(p, []scheduling.EndpointID{0})
				placed := x.Place(p, &r, 0)
				if placed.Expected > 0 {
					done++
				}
				x.Report(placed, max(1, placed.Expected*percent/100))
			}
		}
		for range 2 {
			hundred(10)
		}
		if x.engines[0].limit != limit/4 {
			t.Fatalf("%s: a limit of %d after two bad hundreds, want a quarter of %d", c.name, x.engines[0].limit, limit)
		}
		for range c.hundreds {
			hundred(c.percent)
		}
		if got := x.engines[0].limit; got != limit>>c.halved {
			t.Errorf("%s: a limit of %d, want %d", c.name, got, limit>>c.halved)
		}
	}
}
