//go:build e2evllm

package e2evllm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/loadgen"
)

// Groups of conversations share a system prompt. An engine has room for the prompts of 15 groups. Two engines that
// share the groups have all of them, and two that each get all groups have none for long. A token of this model is a
// byte.
const (
	affinityGroups  = 24
	affinityShared  = 1536
	affinityOwn     = 64
	affinityTokens  = 16 // of an answer
	affinityClients = 4
	affinityTurns   = 10  // of each group in a round
	affinityBlocks  = 750 // of an engine's cache
	affinityBlock   = 32  // vLLM on a CPU takes multiples of 32
)

// mostMissed is the largest part of the prompts' tokens computed with affinity, relative to that without.
const mostMissed = 0.5

const hit, computed = "prompt tokens that the engines had cached, %", "prompt tokens computed"

// cachingArguments are those of an engine with a small cache that reports its cached tokens.
func cachingArguments() []string {
	return []string{
		"--enable-prefix-caching", "--block-size", fmt.Sprint(affinityBlock), "--enable-prompt-tokens-details",
		"--num-gpu-blocks-override", fmt.Sprint(affinityBlocks),
	}
}

// affinityScene checks by the engines' own counters that requests go to the engines with their prompts cached.
func affinityScene(t *testing.T, _ *engine) section {
	a, served := launch(t, cachingArguments()...)
	b := startEngine(t, cachingArguments()...)
	served()
	const with, without = "prefix", "off"
	var scenarios []loadgen.Scenario
	for _, affinity := range []string{without, with} {
		set := through(t, a, "recommended", "profile: recommended\nscheduling: { affinity: "+affinity+" }\n", b)
		scenarios = append(scenarios, loadgen.Scenario{Name: affinity, Run: func(_ context.Context, round int) (loadgen.Figures, error) {
			return affinityOnce(t, set, fmt.Sprintf("%s %d", affinity, round), uint64(round), a, b), nil
		}})
	}
	compared, err := loadgen.Interleave(context.Background(), *rounds, scenarios, nil)
	if err != nil {
		t.Fatal(err)
	}
	ratio := compared.Ratio(with, without, computed)
	if ratio.Median > mostMissed {
		t.Errorf("with affinity the engines compute %.3f of the prompt tokens, want at most %.2f", ratio.Median, mostMissed)
	}
	var text strings.Builder
	fmt.Fprintf(&text, `Two engines with `+"`--enable-prefix-caching --block-size %d --enable-prompt-tokens-details`"+` and room for %d tokens each (vLLM
takes no blocks of 16 tokens on a CPU). %d groups of conversations share a system prompt of %d tokens, with %d tokens of
their own: two engines have room for all groups together, and one for %d. %d clients, each group %d times in random order, the first time one
after the other.
%d rounds with `+"`scheduling.affinity: off`"+` and `+"`prefix`"+` in turn, by the engines' own counters:

| | off | prefix |
|---|---|---|
`, affinityBlock, affinityBlock*affinityBlocks, affinityGroups, affinityShared, affinityOwn,
		affinityBlock*affinityBlocks/affinityShared, affinityClients, affinityTurns, *rounds)
	for _, figure := range []string{hit, computed, throughput} {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", figure, spread(compared.Of(without, figure)), spread(compared.Of(with, figure)))
	}
	fmt.Fprintf(&text, "\nWith affinity the engines compute **%.3f** (%.3f to %.3f) of the prompt tokens, wanted at most %.2f.\n",
		ratio.Median, ratio.Min, ratio.Max, mostMissed)
	return section{"Prompts that are cached", text.String()}
}

// affinityOnce is one round. Its groups are its own, so nothing of an earlier round helps it. The order of groups is
// the same in all rounds of a number.
func affinityOnce(t *testing.T, set *setting, name string, seed uint64, engines ...*engine) loadgen.Figures {
	t.Helper()
	count := func(name string) (sum float64) {
		for _, e := range engines {
			sum += metric(t, "http://"+e.address, name)
		}
		return sum
	}
	asked, had := count("vllm:prefix_cache_queries_total"), count("vllm:prefix_cache_hits_total")
	lot := rand.New(rand.NewPCG(seed, affinityGroups))
	var order []int
	for range affinityTurns {
		order = append(order, lot.Perm(affinityGroups)...)
	}
	var next atomic.Int64
	until := func(end int) func() {
		return func() {
			for !t.Failed() {
				i := int(next.Add(1)) - 1
				if i >= end {
					next.Add(-1)
					return
				}
				shared := fmt.Sprintf("Group %d of %s. ", order[i], name)
				got := post(context.Background(), set.weir.URL(), ask{body: fmt.Sprintf(
					`{"model":%q,"messages":[{"role":"system","content":%q},{"role":"user","content":%q}],"max_tokens":%d,"ignore_eos":true}`,
					model, padded(shared, affinityShared), padded(fmt.Sprintf("Request %d.", i), affinityOwn), affinityTokens)})
				if got.err != nil || got.status != http.StatusOK {
					t.Errorf("status %d, error %v: %.500s", got.status, got.err, got.body)
				}
			}
		}
	}
	start := usedNow(t)
	begun := time.Now()
	until(affinityGroups)() // one after the other, so that the groups are divided evenly, however fast the engines are
	var clients sync.WaitGroup
	for range affinityClients {
		clients.Go(until(len(order)))
	}
	clients.Wait()
	t.Logf("%s: others used %.0f %% of the processor time that was used", name, 100*foreignSince(t, start))
	asked, had = count("vllm:prefix_cache_queries_total")-asked, count("vllm:prefix_cache_hits_total")-had
	return loadgen.Figures{hit: 100 * had / asked, computed: asked - had, throughput: float64(len(order)) / time.Since(begun).Seconds()}
}

// padded returns a text of so many bytes that begins with another.
func padded(text string, bytes int) string { return text + strings.Repeat("x", bytes-len(text)) }
