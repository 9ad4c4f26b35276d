package app

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/weir-epp/weir/pkg/leader"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// foreignPool has two ready endpoints, the second of which reports its slots, and one that is not ready.
func foreignPool() *scheduling.Snapshot {
	return scheduling.NewSnapshot(1, []scheduling.Endpoint{
		{ID: 1, Key: "a", Address: "10.0.0.1:80", Ready: true},
		{ID: 2, Key: "b", Address: "10.0.0.2:80", Ready: true, Slots: 6},
		{ID: 3, Key: "c", Address: "10.0.0.3:80"},
	})
}

// The controller gets the changes and nothing else. An endpoint that was not ready had no foreign stock.
func TestWhatOthersHaveIsToldWhereItChanges(t *testing.T) {
	type counts = map[scheduling.EndpointID]leader.Held
	is := func(requests int, tokens int64) leader.Held { return leader.Held{Requests: requests, Tokens: tokens} }
	told := counts{}
	step := func(what string, pool *scheduling.Snapshot, now []leader.Held, want []stock.Foreign, knows counts) {
		t.Helper()
		var changes []stock.Foreign
		if changes, told = toTell(pool, now, told); !slices.Equal(changes, want) || !maps.Equal(told, knows) {
			t.Errorf("%s: %v, it knows %v; want %v and %v", what, changes, told, want, knows)
		}
	}
	held := func(id stock.BackendID, n int, tokens stock.Tokens) stock.Foreign {
		return stock.Foreign{ID: id, Held: stock.Amount{Requests: n, Tokens: tokens}}
	}
	pool := foreignPool()
	step("first", pool, []leader.Held{is(4, 90), is(5, 0), is(6, 0)}, []stock.Foreign{held(1, 4, 90), held(2, 5, 0)}, counts{1: is(4, 90), 2: is(5, 0)})
	step("the same", pool, []leader.Held{is(4, 90), is(5, 0), is(7, 7)}, nil, counts{1: is(4, 90), 2: is(5, 0)})
	step("fewer tokens", pool, []leader.Held{is(4, 80), is(5, 0), is(7, 7)}, []stock.Foreign{held(1, 4, 80)}, counts{1: is(4, 80), 2: is(5, 0)})
	step("one fell", pool, []leader.Held{is(4, 80), is(3, 0), is(7, 7)}, []stock.Foreign{held(2, 3, 0)}, counts{1: is(4, 80), 2: is(3, 0)})
	others := scheduling.NewSnapshot(2, []scheduling.Endpoint{
		{ID: 2, Key: "b", Address: "10.0.0.2:80"}, {ID: 3, Key: "c", Address: "10.0.0.3:80", Ready: true},
	})
	step("one went, one is not ready, one is", others, []leader.Held{is(3, 0), is(7, 7)}, []stock.Foreign{held(3, 7, 7)}, counts{3: is(7, 7)})
	step("they are back", pool, []leader.Held{is(4, 80), is(3, 0), is(7, 7)}, []stock.Foreign{held(1, 4, 80), held(2, 3, 0)}, counts{1: is(4, 80), 2: is(3, 0)})
	step("nothing is left", pool, nil, []stock.Foreign{held(1, 0, 0), held(2, 0, 0)}, nil)
}

// Totals are spread by the upper bounds of the ready endpoints, and no more counts there.
func TestTotalsAreSpreadByTheBounds(t *testing.T) {
	cfg := stock.DefaultConfig() // 2.2
	cfg.Tokens.Watermark = 100
	want := []leader.Endpoint{
		{Key: "a", Bound: 2_200_000, Most: leader.Held{Requests: 3, Tokens: 110}},
		{Key: "b", Bound: 6_000_000, Most: leader.Held{Requests: 6, Tokens: 110}},
		{Key: "c"},
	}
	if got := shares(foreignPool(), &cfg); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A record lists the endpoints with requests, each with its tokens, and has their sum.
func TestWhatARecordSays(t *testing.T) {
	at := func(key string, requests int, tokens int64) load {
		return load{Endpoint: scheduling.Endpoint{Key: key}, Share: scheduling.Share{InFlight: requests, Tokens: tokens}}
	}
	got := inFlightOf(7, []load{at("a", 2, 300), at("b", 0, 0), at("c", 4, 500)}) // one at an endpoint that has left
	want := leader.InFlight{
		Total: 7, ByEndpoint: map[string]int{"a": 2, "c": 4}, Tokens: 800, TokensByEndpoint: map[string]int64{"a": 300, "c": 500},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := inFlightOf(2, []load{at("a", 2, 0)}); got.Tokens != 0 || got.TokensByEndpoint != nil {
		t.Errorf("tokens are not bounded: %+v", got)
	}
}
