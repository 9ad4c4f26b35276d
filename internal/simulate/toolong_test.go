package simulate

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim/engine"
)

// sized are engines with KV caches of so many tokens.
func sized(tokens ...int) []Engines {
	var pool []Engines
	for _, n := range tokens {
		cfg := engine.Reference()
		cfg.Slots, cfg.BlockSize, cfg.Blocks = 64, 16, n/16
		pool = append(pool, Engines{1, cfg})
	}
	return pool
}

// A request for large engines only goes to one of these, wherever they are in the pool. Other requests go to all
// engines. A request too large for every engine is too long, and neither answered nor rejected.
func TestLongRequestsGoToLargeEngines(t *testing.T) {
	const small, large = 1600, 16_000
	for name, pool := range map[string][]Engines{
		"the large ones first": sized(large, large, small), "the small one first": sized(small, large, large),
		"many":     sized(slices.Insert(slices.Repeat([]int{small}, 12), 2, large)...), // their order by number is not that of their names
		"all same": sized(large, large),
	} {
		for _, affinity := range []string{"off", "prefix"} {
			var requests []Request
			const long, short, tooLong = 40, 50, 3
			add := func(n int, flow string, prompt int) {
				for i := range n {
					requests = append(requests, Request{At: time.Duration(i) * time.Second / 10, Flow: flow, Prompt: prompt, Output: 10})
				}
			}
			add(short, "short", 100)
			add(long, "long", 5000)
			add(tooLong, "endless", 16_000)
			slices.SortStableFunc(requests, func(a, b Request) int { return cmp.Compare(a.At, b.At) })
			r, err := Run(&Options{Config: withAffinity(t, "open", affinity), Engines: pool}, &list{requests})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, f := range r.Flows {
				want := map[string][3]int{"long": {long, long, 0}, "short": {short, short, 0}, "endless": {tooLong, 0, tooLong}}[f.Flow]
				if got := [3]int{f.Requests, f.Answered, f.TooLong}; got != want || len(f.Rejected) > 0 {
					t.Errorf("%s, affinity %s, %s: requests, answered, too long %v, want %v; rejected %v", name, affinity, f.Flow, got, want, f.Rejected)
				}
			}
			if r.TooLong != tooLong || r.All.TooLong != tooLong {
				t.Errorf("%s, affinity %s: %d and %d too long, want %d", name, affinity, r.TooLong, r.All.TooLong, tooLong)
			}
			busy := 0
			for _, e := range r.Engines {
				if e.PromptTokens > 0 {
					busy++
				}
			}
			if busy < min(len(r.Engines), 6) {
				t.Errorf("%s, affinity %s: only %d engines got requests", name, affinity, busy)
			}
			if m := Median([]*Report{r, r, r}); m.All.TooLong != tooLong {
				t.Errorf("%s: the median is %d too long", name, m.All.TooLong)
			}
			var table bytes.Buffer
			if err := WriteTable(&table, []*Report{r}); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(table.String(), "\n")
			if got := strings.Join(strings.Fields(lines[0])[:7], " "); got != "configuration flow requests answered rejected too long" {
				t.Errorf("head %q", got)
			}
			if got := strings.Join(strings.Fields(lines[2])[:5], " "); got != "all 93 90 0 3" {
				t.Errorf("line %q", got)
			}
		}
	}
}

// A table without overlong requests has no column for them.
func TestNoColumnTooLong(t *testing.T) {
	var table bytes.Buffer
	if err := WriteTable(&table, simulated(t, "groups", 1, true, "small")); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(table.String(), "too long") {
		t.Error(table.String())
	}
}
