package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/golden"
	"github.com/weir-epp/weir/internal/modelsim/engine"
	"github.com/weir-epp/weir/internal/splitmix"
)

// list is a source of the given requests.
type list struct{ requests []Request }

func (l *list) Next() (Request, error) {
	if len(l.requests) == 0 {
		return Request{}, io.EOF
	}
	r := l.requests[0]
	l.requests = l.requests[1:]
	return r, nil
}

func (l *list) Fraction() float64 { return 0 }

func readWorkload(t *testing.T, name string) *Workload {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := DecodeWorkload(text)
	if err != nil {
		t.Fatal(err)
	}
	return &w
}

func readConfig(t *testing.T, name string) config.Document {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := config.Load(config.Source{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// simulated runs a workload of testdata against configurations of testdata.
func simulated(t *testing.T, workload string, seed uint64, firstTokens bool, configs ...string) []*Report {
	t.Helper()
	w := readWorkload(t, workload)
	var reports []*Report
	for _, name := range configs {
		o := Options{
			Name: name, Config: readConfig(t, name), Engines: w.Pool(), Weights: w.Weights(), Seed: seed, FirstTokens: firstTokens,
		}
		r, err := Run(&o, w.Requests(seed))
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r)
	}
	return reports
}

// The tables of small workloads are unchanged.
func TestGoldenTables(t *testing.T) {
	for workload, configs := range map[string][]string{
		"groups": {"open", "small"}, "weights": {"open", "small"}, "tiers": {"preempt"},
	} {
		var got bytes.Buffer
		if err := WriteTable(&got, simulated(t, workload, 1, true, configs...)); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", workload+".txt"), got.String())
	}
}

// The same seed gives the same result to the byte, another seed another.
func TestTheSameSeedIsTheSameResult(t *testing.T) {
	result := func(seed uint64) string {
		text, err := json.Marshal(simulated(t, "groups", seed, false, "small", "open"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := result(7)
	if first != result(7) {
		t.Error("two runs of one seed differ")
	}
	if first == result(8) {
		t.Error("two seeds give one result")
	}
}

// A single request has the times of its engine's formula.
func TestOneRequestTakesItsTime(t *testing.T) {
	step := engine.StepTime{Base: 10 * time.Millisecond, PerSequence: 2 * time.Millisecond, PerToken: time.Millisecond}
	d := readConfig(t, "small")
	for _, c := range []struct {
		name         string
		requests     []Request
		ttft, last   []float64 // by request, in seconds
		cachedTokens int64
	}{
		{"alone", []Request{{Prompt: 11, Output: 3}}, []float64{0.022}, []float64{0.046}, 0},
		{
			"its prompt again, when it has ended",
			[]Request{{Prompt: 11, Output: 3, Blocks: []uint64{1, 2}}, {At: time.Second, Prompt: 11, Output: 1, Blocks: []uint64{1, 2}}},
			[]float64{0.022, 0.014},
			[]float64{0.046, 0.014},
			8, // three of its tokens are computed
		},
	} {
		for i := range c.requests {
			c.requests[i].Flow = string(rune('a' + i))
		}
		r, err := Run(&Options{
			Config: d, Engines: []Engines{{1, engine.Config{Slots: 4, Step: step, BlockSize: 4, Blocks: 100}}},
		}, &list{c.requests})
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range r.Flows {
			if f.Wait.Max != 0 || f.TTFT.Max != c.ttft[i] || f.Total.Max != c.last[i] {
				t.Errorf("%s: request %d: wait %v, TTFT %v, total %v, want 0, %v, %v", c.name, i, f.Wait.Max, f.TTFT.Max, f.Total.Max, c.ttft[i], c.last[i])
			}
		}
		if r.All.CachedTokens != c.cachedTokens {
			t.Errorf("%s: %d tokens cached, want %d", c.name, r.All.CachedTokens, c.cachedTokens)
		}
	}
}

// For any configuration and workload, every request has one outcome, and nothing is left at the end: otherwise Run
// returns an error. The sums over flows and over intervals are those of the whole.
func TestEveryRequestHasOneOutcome(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		name := []string{"small", "open", "preempt"}[rng.IntN(3)]
		var requests []Request
		at := time.Duration(0)
		for range 400 {
			at += time.Duration(rng.ExpFloat64() * float64(30*time.Millisecond))
			r := Request{At: at, Flow: string(rune('a' + rng.IntN(5))), Prompt: 1 + rng.IntN(3000), Output: 1 + rng.IntN(60)}
			if name == "preempt" && rng.IntN(4) == 0 {
				r.Tier = "high"
			}
			for i := range r.Prompt / 16 {
				r.Blocks = append(r.Blocks, splitmix.Mix(uint64(rng.IntN(2)<<20+i)))
			}
			requests = append(requests, r)
		}
		cfg := engine.Reference()
		cfg.Slots, cfg.Blocks, cfg.AbortDelay = 1+rng.IntN(6), 150+rng.IntN(300), time.Duration(rng.IntN(2))*50*time.Millisecond
		r, err := Run(&Options{
			Config: readConfig(t, name), Engines: []Engines{{1 + rng.IntN(3), cfg}}, Seed: seed, FirstTokens: rng.IntN(2) == 0,
		}, &list{requests})
		if err != nil {
			t.Fatalf("seed %d, %s: %v", seed, name, err)
		}
		var sum Figures
		var service, ofFlows int64
		for _, f := range r.Flows {
			sum.Requests += f.Requests
			sum.Answered += f.Answered
			sum.OutputTokens += f.OutputTokens
			ofFlows += f.PromptTokens + f.OutputTokens
		}
		for _, of := range r.Over.Service {
			for _, tokens := range of {
				service += tokens
			}
		}
		rejected := r.TooLong
		for _, n := range r.All.Rejected {
			rejected += n
		}
		if sum.Requests != 400 || r.All.Requests != 400 || sum.Answered+rejected != 400 ||
			sum.OutputTokens != r.All.OutputTokens || service != ofFlows {
			t.Fatalf("seed %d, %s: %+v, sums over flows %+v, %d of %d tokens over time", seed, name, r.All, sum, service, ofFlows)
		}
	}
}

// Flows with a constant backlog are served by their weights, and a quiet flow does not wait for them.
func TestServiceFollowsWeights(t *testing.T) {
	r := simulated(t, "weights", 1, true, "small")[0]
	// All three wait, after the first seconds.
	service := map[string]int64{}
	for i := 5; i < 25; i++ {
		for f, tokens := range r.Over.Service[i] {
			service[r.Over.Flows[f]] += tokens
		}
	}
	heavy, light := float64(service["heavy"]), float64(service["light-1"]+service["light-2"])/2
	if ratio := heavy / light; ratio < 1.8 || ratio > 2.2 {
		t.Errorf("the flow of weight 2 gets %.2f times what those of weight 1 get (%v)", ratio, service)
	}
}

// A preempted request is aborted at its engine, and counted.
func TestPreemptedRequestsAreCounted(t *testing.T) {
	r := simulated(t, "tiers", 1, true, "preempt")[0]
	if r.All.Rejected["preempted"] == 0 {
		t.Errorf("nothing was preempted: %+v", r.All)
	}
	for _, f := range r.Flows {
		if f.Flow == "chat" && (f.Answered != f.Requests || f.Wait.Max > 0.1) {
			t.Errorf("requests that may preempt wait: %+v", f.Figures)
		}
	}
}

// All mistakes of a workload are reported at once, by path and line.
func TestWorkloadErrors(t *testing.T) {
	const head = "apiVersion: weir.dev/v1alpha1\nkind: Workload\nduration: 10s\n"
	const client = "clients:\n- { flow: a, rate: 1, prompt: 10, output: 10"
	for text, want := range map[string]string{
		"":                                                                     "apiVersion: \"\": must be weir.dev/v1alpha1|kind: \"\": must be Workload|duration: 0s: must be above 0s|clients: \"none\": must have at least one",
		head + client + ", rates: 2 }\n":                                       `clients[0].rates: unknown field (did you mean rate?) (line 5)`,
		head + client + ", burst: 0 }\n":                                       "clients[0].burst: 0: must be from 1 to 1000000 (line 5)",
		head + client + ", arrivals: now }":                                    `clients[0].arrivals: "now": must be poisson or even (line 5)`,
		head + client + ", from: 11s }":                                        "clients[0].from: 11s: must be from 0s to 10s (line 5)",
		head + client + ", from: 5s, to: 2s":                                   "not YAML",
		head + client + ", to: 11s }":                                          "clients[0].to: 11s: must be above from (0s) and at most duration (10s) (line 5)",
		head + client + ", off: 1s }":                                          "clients[0].off: 1s: must be at least 0s, and needs an on (line 5)",
		head + client + ", prefix: { groups: 3 } }":                            "clients[0].prefix.tokens: 0: must be from 1 to 4194304",
		head + client + ", prefix: { tokens: 3, zipf: -1 } }":                  "clients[0].prefix.zipf: -1: must be from 0 to 10 (line 5)",
		head + client + ", prompt: 1 }":                                        "clients[0].prompt: given twice (line 5)",
		head + client + ", weight: -1 }":                                       "clients[0].weight: -1: must be above 0 (line 5)",
		head + "clients:\n- { flow: a, rate: 1, prompt: lots }":                `clients[0].prompt: "lots": must be a number of tokens such as 500, a range such as 100..900, or a mean such as ~300 or ~300..4000 (line 5)|clients[0].output: "none": must be a number of tokens`,
		head + "clients:\n- { rate: 0, prompt: 1, output: 1 }":                 `clients[0].flow: "": must be a name|clients[0].rate: 0: must be above 0 and at most 100000 (line 5)`,
		head + client + " }\n- { flow: a, rate: 1, prompt: 1, output: 1 }\n":   `clients[1].flow: "a": is the flow of clients[0] already, at the same time or with another count, tier or weight (line 6)`,
		head + "blockTokens: 1\n" + client + ", prefix: { tokens: 4000000 } }": "clients[0].prompt: 10: with clients[0].prefix.tokens (4000000) it may have 4000010 blocks of blockTokens (1), must have at most 65536 (line 6)",
		head + "blockTokens: 16\nclients:\n- { flow: a, rate: 1, prompt: ~100000, output: 10 }": "clients[0].prompt: 4194304: with clients[0].prefix.tokens (0) it may have 262144 blocks of blockTokens (16), must have at most 65536 (line 6)",
		head + "engines:\n- { slots: 0, kvTokens: 0 }\n" + client + " }":                        "engines[0].slots: 0: must be from 1 to 1048576 (line 5)|engines[0].kvTokens: 0: must be from 1 to",
		head + "engines:\n- { count: 4000 }\n- { count: 97 }\n" + client + " }":                 "engines: 4097: must be at most 4096 together (line 5)",
	} {
		_, err := DecodeWorkload([]byte(text))
		if err == nil {
			t.Errorf("no error for\n%s", text)
			continue
		}
		for part := range strings.SplitSeq(want, "|") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s\nof\n%s\nwant %s", err, text, part)
			}
		}
	}
}

// The error for a tier that the configuration lacks lists its tiers.
func TestTiersAreChecked(t *testing.T) {
	w, d := readWorkload(t, "tiers"), readConfig(t, "preempt")
	if err := w.CheckTiers(&d); err != nil {
		t.Error(err)
	}
	d = readConfig(t, "small")
	const want = `clients[0].tier: "low": must be one of the configuration's tiers: critical, default, sheddable`
	if err := w.CheckTiers(&d); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Arrivals have their client's rate, times and lengths.
func TestArrivals(t *testing.T) {
	w, err := DecodeWorkload([]byte(`
apiVersion: weir.dev/v1alpha1
kind: Workload
duration: 1000s
blockTokens: 100
clients:
- { flow: poisson, rate: 10, prompt: 100..300, output: ~50..400 }
- { flow: even, rate: 0.5, arrivals: even, prompt: 1, output: 1 }
- { flow: window, rate: 5, on: 10s, off: 30s, from: 100s, to: 900s, prompt: 1, output: 1 }
- { flow: burst, rate: 2, burst: 8, prompt: 7, output: 1, requests: 100 }
- { flow: many, count: 3, rate: 1, prompt: 50, output: 1, prefix: { name: all, groups: 2, tokens: 300 } }
`))
	if err != nil {
		t.Fatal(err)
	}
	count, prompts, outputs := map[string]int{}, 0, 0
	var last time.Duration
	shared, own := map[uint64]int{}, 0
	source := w.Requests(1)
	for {
		r, err := source.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || r.At < last || r.At >= 1000*time.Second {
			t.Fatalf("%+v after %v: %v", r, last, err)
		}
		last = r.At
		count[r.Flow]++
		switch r.Flow {
		case "poisson":
			if r.Prompt < 100 || r.Prompt > 300 || r.Output < 1 || r.Output > 400 || len(r.Blocks) != r.Prompt/100 {
				t.Fatalf("%+v", r)
			}
			prompts += r.Prompt
			outputs += r.Output
		case "even":
			if r.At%(2*time.Second) != 0 {
				t.Fatalf("%+v", r)
			}
		case "window":
			if s := (r.At - 100*time.Second) % (40 * time.Second); r.At < 100*time.Second || r.At > 900*time.Second || s >= 10*time.Second {
				t.Fatalf("%+v", r)
			}
		case "many-1", "many-2", "many-3":
			if len(r.Blocks) != 3 || r.Prompt != 350 {
				t.Fatalf("%+v", r)
			}
			shared[r.Blocks[0]]++
			own++
		}
	}
	near := func(what string, got, want, by float64) {
		if got < want-by || got > want+by {
			t.Errorf("%s: %v, want about %v", what, got, want)
		}
	}
	near("poisson", float64(count["poisson"]), 10_000, 300)
	near("even", float64(count["even"]), 499, 0)
	near("window", float64(count["window"]), 1000, 100)
	near("burst", float64(count["burst"]), 100, 0)
	near("mean prompt", float64(prompts)/float64(count["poisson"]), 200, 3)
	near("mean output", float64(outputs)/float64(count["poisson"]), 50, 2)
	if len(shared) != 2 {
		t.Errorf("the flows that share a prefix have %d first blocks in %d requests, want the prefix's 2 groups", len(shared), own)
	}
}

// Prompts of different groups share no block, however many blocks a workload may have. Prompts of one group share their
// whole prefix.
func TestGroupsShareNothing(t *testing.T) {
	w, err := DecodeWorkload([]byte(`
apiVersion: weir.dev/v1alpha1
kind: Workload
duration: 1000s
blockTokens: 1
clients:
- { flow: a, rate: 1, requests: 40, prompt: 1, output: 1, prefix: { groups: 5, tokens: 65535 } }
- { flow: b, rate: 1, requests: 1, prompt: ~300, output: 1, prefix: { groups: 1000000, tokens: 10000 } }
`))
	if err != nil {
		t.Fatal(err)
	}
	beginning := map[uint64]uint64{} // by block: the first block of its prompt
	groups := map[uint64]bool{}
	for source := w.Requests(1); ; {
		r, err := source.Next()
		if err != nil {
			break
		}
		groups[r.Blocks[0]] = true
		for i, b := range r.Blocks {
			if first, known := beginning[b]; known && first != r.Blocks[0] {
				t.Fatalf("block %d of a prompt of %s is in another group's too", i, r.Flow)
			}
			beginning[b] = r.Blocks[0]
		}
	}
	if len(groups) != 6 {
		t.Errorf("%d groups, want 5 and 1", len(groups))
	}
}

// Buckets are at most 1 % wide, and in order.
func TestHistogram(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	for range 100_000 {
		d := time.Duration(rng.Uint64N(1 << rng.UintN(56)))
		end := bucketEnd(bucketOf(d))
		if short := d.Truncate(time.Microsecond); end < short || float64(end) > float64(short)*1.01+1 {
			t.Fatalf("%v is in the bucket up to %v", d, end)
		}
		if bucketOf(end) != bucketOf(d) || bucketOf(end+time.Microsecond) != bucketOf(d)+1 {
			t.Fatalf("the bucket of %v does not end at %v", d, end)
		}
	}
	var h histogram
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	if got := h.times(); got.Mean != 0.5005 || got.Max != 1 || got.P50 < 0.5 || got.P50 > 0.505 || got.P99 < 0.99 || got.P99 > 1 {
		t.Errorf("%+v", got)
	}
}

// A picture has a column for each configuration, the names of the flows, and the axes.
func TestPicture(t *testing.T) {
	reports := simulated(t, "weights", 1, true, "open", "small")
	var drawn bytes.Buffer
	if err := WriteSVG(&drawn, "weights.yaml", reports); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"weights.yaml", ">open<", ">small<", "heavy", "light-1", "burst", "tokens/s by flow", "mean wait (s)", "mean TTFT (s)",
		"hit tokens (%)", "held by engine", "time (s)",
	} {
		if !strings.Contains(drawn.String(), text) {
			t.Errorf("%q is not in the picture", text)
		}
	}
	if err := WriteSVG(io.Discard, "", append(reports, simulated(t, "weights", 1, true, "open", "open", "open")...)); err == nil {
		t.Error("five configurations fit a picture of four")
	}
}

// A long run has a bounded timeline without loss.
func TestALongRunHasABoundedTimeline(t *testing.T) {
	var requests []Request
	for i := range 1000 {
		requests = append(requests, Request{At: time.Duration(i) * time.Minute, Flow: "f", Prompt: 10, Output: 2})
	}
	r, err := Run(&Options{Config: readConfig(t, "small"), Engines: []Engines{DefaultEngines(2, 512)}}, &list{requests})
	if err != nil {
		t.Fatal(err)
	}
	answers, tokens := 0, int64(0)
	for i, n := range r.Over.Answered {
		answers += n
		tokens += r.Over.Service[i][0]
	}
	if n := len(r.Over.Wait); n > mostIntervals || n < mostIntervals/4 || answers != 1000 || tokens != 12_000 {
		t.Errorf("%d intervals with %d answers and %d tokens, want at most %d with 1000 and 12000", n, answers, tokens, mostIntervals)
	}
	if want := float64(len(r.Over.Wait)) * r.Over.IntervalSeconds; want < r.Seconds || want > r.Seconds+r.Over.IntervalSeconds {
		t.Errorf("the timeline ends at %v s, the run at %v s", want, r.Seconds)
	}
}
