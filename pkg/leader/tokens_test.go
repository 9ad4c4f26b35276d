package leader

import (
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Tokens are counted where their requests are, as the record lists them, or else in proportion: to the requests that it
// lists, or to the endpoints' bounds. A record of an earlier version has no tokens, and only its requests count.
func TestTokensOfRecords(t *testing.T) {
	endpoints := []Endpoint{{Key: "a", Bound: 3}, {Key: "b", Bound: 1}}
	for what, test := range map[string]struct{ text, want, half string }{
		"listed":            {`{"boot":"x","total":4,"endpoints":{"a":3,"b":1},"tokens":1000,"endpointTokens":{"a":100,"b":900}}`, "[{3 100} {1 900}]", "[{2 50} {0 0}]"},
		"by the requests":   {`{"boot":"x","total":5,"endpoints":{"a":1,"b":4},"tokens":1000}`, "[{1 200} {4 800}]", "[{1 100} {2 400}]"},
		"totals":            {`{"boot":"x","total":4,"tokens":1000}`, "[{3 750} {1 250}]", "[{2 375} {0 0}]"},
		"earlier version":   {`{"boot":"x","total":4,"endpoints":{"a":3,"b":1}}`, "[{3 0} {1 0}]", "[{2 0} {0 0}]"},
		"tokens of nothing": {`{"boot":"x","total":1,"endpoints":{"a":1},"endpointTokens":{"b":900}}`, "[{1 0} {0 0}]", "[{1 0} {0 0}]"},
	} {
		f := newForeign(time.Minute, "me")
		if bad := f.saw(epoch, []coordinationv1.Lease{lease("weir-x", 1, test.text)}, fresh); len(bad) > 0 {
			t.Fatal(bad)
		}
		if got := fmt.Sprint(f.stock(epoch, endpoints)); got != test.want {
			t.Errorf("%s: %s, want %s", what, got, test.want)
		}
		if got := fmt.Sprint(f.stock(epoch.Add(30*time.Second), endpoints)); got != test.half {
			t.Errorf("%s, half of the window later: %s, want %s", what, got, test.half)
		}
	}
}

// The leases that a process hands on of an earlier one keep their tokens.
func TestTokensAreHandedOn(t *testing.T) {
	f := newForeign(time.Minute, "me")
	f.saw(epoch, []coordinationv1.Lease{lease("weir-x", 1, `{"boot":"x","total":1,"endpoints":{"a":1},"tokens":60,"endpointTokens":{"a":60}}`)}, fresh)
	text := Record{Boot: "x2", Earlier: f.earlier(epoch, "weir-x")}.encode()
	g := newForeign(time.Minute, "me")
	g.saw(epoch, []coordinationv1.Lease{lease("weir-x", 2, text)}, fresh)
	if got := fmt.Sprint(g.stock(epoch, []Endpoint{{Key: "a", Bound: 1}})); got != "[{1 60}]" {
		t.Errorf("%s of %s", got, text)
	}
}

// For any number of valid records with any claims, at most an endpoint's bound counts there, in both units. This falls
// evenly, so the pool has room again as soon as after a leader that left it full.
func TestRecordsCloseNoPool(t *testing.T) {
	const all = `"total":1000000,"endpoints":{"a":1000000},"tokens":1099511627776,"endpointTokens":{"a":1099511627776}}`
	endpoints := []Endpoint{{Key: "a", Bound: 4, Most: Held{4, 6000}}, {Key: "b", Bound: 4, Most: Held{4, 6000}}}
	for what, records := range map[string][]string{
		"one":                {`{"boot":"x",` + all},
		"totals":             {`{"boot":"x","total":1000000,"tokens":1099511627776}`},
		"many":               {`{"boot":"x",` + all, `{"boot":"y",` + all, `{"boot":"z","total":1000000}`},
		"just what it holds": {`{"boot":"x","total":4,"endpoints":{"a":4},"tokens":6000,"endpointTokens":{"a":6000}}`},
	} {
		f := newForeign(time.Minute, "me")
		var leases []coordinationv1.Lease
		for i, text := range records {
			leases = append(leases, lease(fmt.Sprint("weir-", i), 1, text))
		}
		if bad := f.saw(epoch, leases, fresh); len(bad) > 0 {
			t.Fatal(bad)
		}
		for after, want := range map[time.Duration]Held{
			0: {4, 6000}, 15 * time.Second: {3, 4500}, 30 * time.Second: {2, 3000}, 45 * time.Second: {1, 1500}, time.Minute: {},
		} {
			if got := f.stock(epoch.Add(after), endpoints); got[0] != want || got[1] != want && got[1] != (Held{}) && got[1].Tokens != 0 {
				t.Errorf("%s, after %v: %+v, want %+v", what, after, got, want)
			}
		}
	}
}

// For any number of old records beside a new one, the count at an endpoint's bound falls like the new one.
func TestOldRecordsDoNotHideANewOne(t *testing.T) {
	endpoints := []Endpoint{{Key: "a", Bound: 1, Most: Held{4, 6000}}}
	for _, says := range []string{
		`"total":9,"endpoints":{"a":9},"tokens":9000,"endpointTokens":{"a":9000}}`, `"total":9,"tokens":9000}`,
	} {
		f := newForeign(time.Minute, "me")
		var leases []coordinationv1.Lease
		for i := range 8 {
			leases = append(leases, lease(fmt.Sprint("weir-", i), 1, fmt.Sprintf(`{"boot":"b%d",`, i)+says))
		}
		f.saw(epoch, leases, func(l *coordinationv1.Lease) time.Duration {
			if l.Name == "weir-3" {
				return 0
			}
			return 45 * time.Second
		})
		for range 20 { // the records come in any order
			if got := f.stock(epoch, endpoints)[0]; got != (Held{4, 6000}) {
				t.Fatalf("%s: %+v", says, got)
			}
		}
	}
}

// A record that is too long to list its endpoints keeps the sum of their tokens, and the caller's lists stay.
func TestLongRecordsKeepTheirTokens(t *testing.T) {
	all := InFlight{Total: 4000, Tokens: 400_000, ByEndpoint: map[string]int{}, TokensByEndpoint: map[string]int64{}}
	for i := range 4000 {
		key := fmt.Sprintf("default/model-server-%04d", i)
		all.ByEndpoint[key], all.TokensByEndpoint[key] = 1, 100
	}
	r := Record{Boot: "x", InFlight: all, Earlier: []Earlier{{Boot: "y", InFlight: all}}}
	short, err := decode(r.encode())
	if err != nil {
		t.Fatal(err)
	}
	if short.Tokens != 400_000 || len(short.Earlier) != 1 || short.Earlier[0].Tokens != 400_000 {
		t.Errorf("%+v", short)
	}
	if len(r.TokensByEndpoint) != 4000 || len(r.Earlier[0].TokensByEndpoint) != 4000 {
		t.Error("encoding has changed the record")
	}
}
