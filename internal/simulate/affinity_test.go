package simulate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/internal/splitmix"
	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/prefix"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/request"
)

// Prompts have as many common keys as full KiB of text behind their hashes.
func TestKeysOfPrompts(t *testing.T) {
	engines := []prefix.Endpoint{{ID: 0, Key: "0", Ready: true}}
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
		a := newAffinity(&request.Affinity{Mode: request.AffinityPrefix, Scope: request.ScopeAll}, engines, c.block, false)
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
	if newAffinity(&request.Affinity{Mode: request.AffinityOff}, engines, 512, false) != nil {
		t.Error("affinity that is off has an index")
	}
}

// A prompt has as many keys, at the same ends, as package body makes of a text of its length.
func TestKeysAreThoseOfBodies(t *testing.T) {
	for _, tokens := range []int{255, 256, 5000, 512 * 256, 512*256 + 2047, 512*256 + 2048, 400_000, 8_000_000} {
		text := []byte(`{"prompt":"` + strings.Repeat("word", tokens) + `"}`)
		var f body.Fields
		if err := f.Scan(text); err != nil {
			t.Fatal(err)
		}
		want := f.Blocks(text, 1)
		a := newAffinity(&request.Affinity{Mode: request.AffinityPrefix, Scope: request.ScopeAll}, nil, 1, false)
		got := a.prompt(&Request{Prompt: tokens, Blocks: hashes(tokens, 0)}, 1)
		if !slices.Equal(got.Ends, want.Ends) || got.Bytes != want.Bytes {
			t.Errorf("%d tokens: %d keys of %d bytes, want %d of %d", tokens, len(got.Keys), got.Bytes, len(want.Keys), want.Bytes)
		}
	}
}

// hashes returns n hashes; from number differs on (0: never) they are different ones.
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

// With affinity a prompt goes to the endpoint of its beginning, however many others go elsewhere meanwhile. Without
// affinity it does not.
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

// withAffinity returns a configuration of testdata with affinity by prefixes, or another mode.
func withAffinity(t *testing.T, name, mode string) config.Document {
	t.Helper()
	d := readConfig(t, name)
	d.Scheduling.Affinity = mode
	return d
}

// The index gets the engines' reports and drops preempted prompts: it has the prompts of the answered requests, which
// are all different, and no others.
func TestIndexIsToldTheEnd(t *testing.T) {
	w := readWorkload(t, "tiers")
	w.BlockTokens = 512
	for i := range w.Engines {
		w.Engines[i].KVTokens = 1_000_000 // so that none is dropped for want of room
	}
	var requests []Request
	for source := w.Requests(1); ; {
		r, err := source.Next()
		if err != nil {
			break
		}
		r.Prompt = 1024
		r.Blocks = []uint64{splitmix.Mix(uint64(len(requests))), splitmix.Mix(uint64(len(requests)) + 1<<40)}
		requests = append(requests, r)
	}
	s, err := newSimulation(&Options{
		Config: withAffinity(t, "preempt", "prefix"), Engines: w.Pool(), Weights: w.Weights(), Seed: 1, FirstTokens: true,
	}, &list{requests})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	all := s.report("x").All
	if all.Rejected["preempted"] == 0 {
		t.Fatalf("nothing was preempted: %+v", all)
	}
	if got, want := s.affinity.index.Size().Nodes, 4*all.Answered; got != want {
		t.Errorf("the index has %d blocks, want the 4 of each of %d answered requests", got, all.Answered)
	}

	w = readWorkload(t, "groups")
	if s, err = newSimulation(&Options{
		Config: withAffinity(t, "small", "prefix"), Engines: w.Pool(), Weights: w.Weights(), Seed: 1,
	}, w.Requests(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	all = s.report("x").All
	if totals := s.affinity.index.Totals(); totals.Reported != all.CachedTokens || totals.Chosen == 0 {
		t.Errorf("%+v, and engines had %d tokens cached", totals, all.CachedTokens)
	}
}

// The ratings of a recording count under a configuration with affinity, and not under one without.
func TestRatingsOfARecording(t *testing.T) {
	w := readWorkload(t, "groups")
	run, err := Run(&Options{
		Config: withAffinity(t, "small", "prefix"), Engines: w.Pool(), Weights: w.Weights(), Seed: 1, Record: true,
	}, w.Requests(1))
	if err != nil {
		t.Fatal(err)
	}
	format, err := recording.NewFormat(placement.On(nil))
	if err != nil {
		t.Fatal(err)
	}
	held := func(mode string) string {
		h, err := format.History(bytes.NewReader(run.Recording))
		if err != nil {
			t.Fatal(err)
		}
		o := RecordedOptions{Seed: 1}
		if mode != "" {
			d := withAffinity(t, "small", mode)
			o.Config = &d
		}
		r, err := RunRecorded(&o, h)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(r.Over.Held)
	}
	if held("prefix") != held("") {
		t.Error("its own configuration differs from that of the recording")
	}
	if held("prefix") == held("off") {
		t.Error("affinity that is off goes by the recording's ratings")
	}
}
