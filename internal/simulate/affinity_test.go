package simulate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Prompts have as many keys in common as full KiB of the text that their hashes stand for.
func TestKeysOfPrompts(t *testing.T) {
	endpoints := []scheduling.Endpoint{{ID: 0, Key: "0", Ready: true}}
	common := func(a, b []uint64) int {
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return n
	}
	for _, c := range []struct {
		block, prompt int      // tokens
		a, b          []uint64 // hashes
		keys, common  int
	}{
		{512, 2048, []uint64{1, 2, 3, 4}, []uint64{1, 2, 3, 4}, 8, 8},
		{512, 2048, []uint64{1, 2, 3, 4}, []uint64{1, 2, 9, 4}, 8, 4},
		{512, 2048, []uint64{1, 2, 3, 4}, []uint64{9, 2, 3, 4}, 8, 0},
		{512, 1100, []uint64{1, 2, 3}, []uint64{1, 2, 9}, 4, 4}, // the last hash stands for less than a KiB
		{512, 2048, []uint64{1, 2}, []uint64{1, 2}, 4, 4},       // the rest has no hash
		{16, 512, hashes(32, 0), hashes(32, 17), 2, 1},
		{512, 512, nil, nil, 0, 0},
		{512, 160_000, hashes(313, 0), hashes(313, 0), 512 + 14, 512 + 14}, // larger blocks after the first 512
	} {
		a := newAffinity(&request.Affinity{Mode: request.AffinityPrefix, Scope: request.ScopeAll}, endpoints, c.block)
		first := a.prompt(&Request{Flow: "x", Prompt: c.prompt, Blocks: c.a}, 1)
		second := a.prompt(&Request{Flow: "y", Prompt: c.prompt, Blocks: c.b}, 1)
		if len(first.Keys) != c.keys || common(first.Keys, second.Keys) != c.common || len(first.Ends) != len(first.Keys) {
			t.Errorf("%+v: %d keys, %d in common", c, len(first.Keys), common(first.Keys, second.Keys))
		}
		if !slices.IsSorted(first.Ends) || c.keys > 0 && first.Ends[c.keys-1] > first.Bytes {
			t.Errorf("%+v: ends %v of %d", c, first.Ends, first.Bytes)
		}
		a.scope = request.ScopeFlow
		first, second = a.prompt(&Request{Flow: "x", Prompt: c.prompt, Blocks: c.a}, 1), a.prompt(&Request{Flow: "y", Prompt: c.prompt, Blocks: c.a}, 1)
		if n := common(first.Keys, second.Keys); n > 0 {
			t.Errorf("%+v: %d keys in common between flows", c, n)
		}
	}
	if newAffinity(&request.Affinity{Mode: request.AffinityOff}, endpoints, 512) != nil {
		t.Error("affinity that is off has an index")
	}
}

// hashes are so many, of which those from the differs-th on (0: none) are others.
func hashes(n, differs int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = uint64(i + 1)
		if differs > 0 && i >= differs {
			list[i] += 1 << 20
		}
	}
	return list
}

// With affinity a prompt goes where its beginning was, however often others go elsewhere meanwhile; without, it does not.
func TestPromptsFindTheirEngine(t *testing.T) {
	for affinity, want := range map[string]bool{"off": false, "prefix": true} {
		r := shipped(t, "zipf", affinity+"-64")
		hits := 0
		for _, e := range r.Engines {
			if float64(e.CachedTokens) > .7*float64(e.PromptTokens) {
				hits++
			}
		}
		if (hits >= 6) != want {
			t.Errorf("affinity %s: %d engines of 8 have more than 70 %% hits: %s", affinity, hits, fmt.Sprint(r.Engines))
		}
	}
}
