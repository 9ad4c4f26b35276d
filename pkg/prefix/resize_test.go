package prefix

import (
	"testing"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// The size by events goes before the one that the source states, stays when the pool changes, and is another engine's with
// another key. An endpoint that is not known has none.
func TestResize(t *testing.T) {
	x := New(DefaultConfig())
	pool := func(key string) {
		x.SetEndpoints([]Endpoint{{ID: 0, Key: key, Ready: true, Tokens: 500_000}, {ID: 1, Key: "other", Ready: true}})
	}
	want := func(what string, first, second int64) {
		t.Helper()
		for id, tokens := range []int64{first, second} {
			if got := x.engines[scheduling.EndpointID(id)].limit; got != int(2*tokens/tokensPerNode) {
				t.Errorf("%s: endpoint %d has a limit of %d, want that of %d tokens", what, id, got, tokens)
			}
		}
	}
	pool("a")
	want("as stated", 500_000, DefaultTokens)
	x.Resize(0, 100_000)
	x.Resize(1, 200_000)
	x.Resize(7, 300_000)
	want("by events", 100_000, 200_000)
	pool("a")
	want("after a change of the pool", 100_000, 200_000)
	pool("b")
	want("another engine", 500_000, 200_000)
	x.Resize(0, 1<<40)
	want("whatever events say", maxTokens, 200_000)
}
