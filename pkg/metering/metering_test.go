package metering

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/usage"
)

// begun returns a meter, and a charge of 100 + 2·1,000 for a prompt of 400 bytes whose answer may have 3,000 tokens.
func begun(change func(*estimate.Request)) (*Meter, *Charge) {
	m, cfg := &Meter{}, estimate.DefaultConfig()
	m.Configure(cfg)
	r := estimate.Request{Flow: "f", Model: "m", Tokens: estimate.Unknown, Text: 400, Length: estimate.Unknown, Answers: 1, MaxOutput: 3000}
	if change != nil {
		change(&r)
	}
	return m, m.Begin(r, false, &cfg)
}

// Each rule of the package comment in its turn.
func TestEnd(t *testing.T) {
	whole := Report{Tokens: usage.Tokens{Input: 120, Output: 30}, Known: true, Whole: true, By: Body}
	broken := Report{Tokens: usage.Tokens{Input: 120, Output: 1100}, Known: true}
	for _, c := range []struct {
		name  string
		end   End
		cost  estimate.Cost
		basis Basis
	}{
		{"usage", End{Report: whole, Status: 200, Answered: true}, 180, ByUsage},
		{"usage of an error", End{Report: whole, Status: 400}, 180, ByUsage},
		{"no engine", End{Unsent: true, Status: 503}, 1, ByNothing},
		{"refused at once", End{Status: 400}, 1, ByRoom},
		{"refused after a tenth of a second", End{Status: 503, Produced: 100 * time.Millisecond}, 210, ByRoom},
		{"refused after a second", End{Status: 429, Produced: time.Second}, 2100, ByRoom},
		{"refused after all the work", End{Status: 400, Produced: 40 * time.Second}, 100 + 2*2000, ByRoom},
		{"refused late", End{Status: 429, Produced: time.Hour}, 100 + 2*3000, ByRoom},
		{"a clock that went back", End{Status: 404, Produced: -time.Hour}, 1, ByRoom},
		{"the engine fails", End{Status: 500}, 2100, ByTime},
		{"at once", End{Status: 200, Answered: true}, 2100, ByTime},
		{"after 40 s", End{Status: 200, Answered: true, Produced: 40 * time.Second}, 100 + 2*2000, ByTime},
		{"a report of more before the end", End{Report: broken, Status: 200, Answered: true}, 120 + 2*1100, ByTime},
	} {
		m, charge := begun(nil)
		if cost, basis := m.End(charge, &c.end, time.Time{}); cost != c.cost || basis != c.basis {
			t.Errorf("%s: %d by %d, want %d by %d", c.name, cost, basis, c.cost, c.basis)
		}
	}
}

// A refusal, and a request that reached nobody, teach nothing; an answer by its time only if it has begun.
func TestEndTeaches(t *testing.T) {
	for _, c := range []struct {
		name    string
		end     End
		changes bool
	}{
		{"usage", End{Report: Report{Tokens: usage.Tokens{Input: 1, Output: 1}, Known: true, Whole: true}}, true},
		{"an answer by time", End{Status: 200, Answered: true, Produced: time.Second}, true},
		{"a failure", End{Status: 500, Produced: time.Second}, false},
		{"a refusal", End{Status: 400, Produced: time.Second}, false},
		{"nobody", End{Unsent: true}, false},
	} {
		m, charge := begun(nil)
		first := charge.Estimated()
		for range 20 {
			charge = m.Begin(charge.request, false, charge.cfg)
			m.End(charge, &c.end, time.Time{})
		}
		if got := m.Begin(charge.request, false, charge.cfg).Estimated() != first; got != c.changes {
			t.Errorf("%s: changes the estimate %t", c.name, got)
		}
	}
}

// An answer that is longer than its charge raises it by more than was seen, up to its limit, and never below what its prompt
// takes of the stock.
func TestOutgrown(t *testing.T) {
	_, charge := begun(func(r *estimate.Request) { r.Media = 1 })
	for _, c := range []struct {
		seen        int64
		cost, stock estimate.Cost
		raised      bool
	}{
		{1000, 0, 0, false},
		{1001, 100 + 2*1142, 2100 + 1142, true},
		{1142, 0, 0, false},
		{2800, 100 + 2*3000, 2100 + 3000, true},
		{5000, 0, 0, false},
	} {
		if cost, stock, raised := charge.Outgrown(c.seen); cost != c.cost || stock != c.stock || raised != c.raised {
			t.Errorf("%d seen: %d, %d, %t; want %d, %d, %t", c.seen, cost, stock, raised, c.cost, c.stock, c.raised)
		}
	}
}

// A prompt that is taken to be cached costs less at once, and while the answer grows; the end goes by what the engine says,
// and without a word of it by the whole prompt.
func TestExpect(t *testing.T) {
	m, charge := begun(nil)
	cfg := *charge.cfg
	cfg.Weights.CachedInput = cfg.Weights.Input / 10
	charge.cfg = &cfg
	if cost, less := charge.Expect(90); cost != 10+9+2000 || !less {
		t.Errorf("expecting 90 of 100 tokens: %d, %t", cost, less)
	}
	if cost, less := charge.Expect(5000); cost != 10+2000 || !less {
		t.Errorf("expecting more than there are: %d, %t", cost, less)
	}
	if cost, stock, raised := charge.Outgrown(1001); cost != 10+2*1142 || stock != 100+1142 || !raised {
		t.Errorf("outgrown: %d, %d, %t", cost, stock, raised)
	}
	if _, less := charge.Expect(0); less {
		t.Error("nothing is cached, and it costs less")
	}
	charge.Expect(90)
	if cost, _ := m.End(charge, &End{Status: 500}, time.Time{}); cost < 100+2*1142 {
		t.Errorf("without a report it costs %d", cost)
	}
}

// The limit that Envoy tells bounds the estimate only: an answer may go beyond it.
func TestLooseLimit(t *testing.T) {
	m, charge := begun(nil)
	r := charge.request
	r.MaxOutput = 10
	for _, loose := range []bool{false, true} {
		charge := m.Begin(r, loose, charge.cfg)
		if got := charge.Estimated().Output; got != 10 {
			t.Errorf("estimated at %d", got)
		}
		if _, _, raised := charge.Outgrown(11); raised != loose {
			t.Errorf("loose %t: raised %t", loose, raised)
		}
	}
}

// Envoy's reading goes before Weir's own, and a response is whole when its body says so, or its end was seen.
func TestReading(t *testing.T) {
	var r Reading
	if got := r.Report(false); got != (Report{By: Body}) {
		t.Errorf("nothing read: %+v", got)
	}
	if n := r.Write([]byte("data: {}\n\n"), false); n != 0 {
		t.Errorf("%d events of a body that is not read", n)
	}
	r.ReadBody(false)
	r.Write([]byte(`{"usage":{"prompt_tokens":7,`), false)
	if got := r.Report(true); got != (Report{Tokens: usage.Tokens{Input: 7}, Known: true, By: Body}) {
		t.Errorf("half of it, of a prompt alone: %+v", got)
	}
	r.Write([]byte(`"completion_tokens":3}}`), false)
	if got := r.Report(false); got != (Report{Tokens: usage.Tokens{Input: 7, Output: 3}, Known: true, Whole: true, By: Body}) {
		t.Errorf("the document is whole: %+v", got)
	}
	r.Tell(usage.Tokens{Input: 8})
	if got := r.Report(false); got != (Report{Tokens: usage.Tokens{Input: 8}, Known: true, Whole: true, By: Trailers}) {
		t.Errorf("told by Envoy: %+v", got)
	}
	for name, end := range map[string]func(*Reading){"the last part": func(r *Reading) { r.Write(nil, true) }, "trailers": (*Reading).End} {
		var r Reading
		if end(&r); !r.Report(false).Whole {
			t.Errorf("%s: not whole", name)
		}
	}
}

// Only the last answers count, whatever came before.
func TestLastAnswersCount(t *testing.T) {
	var s seen
	var all []bool
	for i := range 3 * lastAnswers {
		without := i < lastAnswers || i%7 == 0
		if without {
			s.count(true)
		} else {
			s.known(Body, time.Time{})
		}
		all = append(all, without)
		last, want := all[max(0, len(all)-lastAnswers):], 0
		for _, without := range last {
			if without {
				want++
			}
		}
		if shown := s.show(); shown.Unknown != want || shown.Answers != len(last) {
			t.Fatalf("after %d: %d of %d without usage, want %d of %d", i+1, shown.Unknown, shown.Answers, want, len(last))
		}
	}
}

// Charging a request and settling it allocates the charge, and nothing else.
func TestAllocations(t *testing.T) {
	m, charge := begun(nil)
	e := End{Report: Report{Tokens: usage.Tokens{Input: 100, Output: 30}, Known: true, Whole: true}}
	r, cfg := charge.request, charge.cfg
	m.End(charge, &e, time.Time{})
	if n := testing.AllocsPerRun(100, func() { m.End(m.Begin(r, false, cfg), &e, time.Time{}) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// A prompt that was fixed costs its uncached tokens, whatever is reported of it later; its answer is charged as always.
func TestFix(t *testing.T) {
	whole := Report{Tokens: usage.Tokens{Input: 120, Cached: 60, Output: 30}, Known: true, Whole: true}
	for _, c := range []struct {
		name           string
		output         estimate.Weight
		end            End
		begun, settled estimate.Cost
	}{
		{"only prompts", 0, End{Report: whole, Status: 200, Answered: true}, 40, 40},
		{"only prompts, no usage", 0, End{Status: 200, Answered: true, Produced: time.Hour}, 40, 40},
		{"only prompts, refused", 0, End{Status: 400, Produced: time.Hour}, 40, 40},
		{"only prompts, no engine", 0, End{Unsent: true}, 40, 40},
		{"answers too", estimate.WeightOne, End{Report: whole, Status: 200, Answered: true}, 40 + 1000, 40 + 30},
		{"answers too, no usage", estimate.WeightOne, End{Status: 500}, 40 + 1000, 40 + 1000},
		{"answers too, refused", estimate.WeightOne, End{Status: 400}, 40 + 1000, 40},
	} {
		m, charge := begun(nil)
		cfg := *charge.cfg
		cfg.Weights.Output = c.output
		charge.cfg = &cfg
		if got := charge.Fix(60); got != c.begun {
			t.Errorf("%s: costs %d at first, want %d", c.name, got, c.begun)
		}
		if cost, less := charge.Expect(100); less {
			t.Errorf("%s: its engine makes it cheaper: %d", c.name, cost)
		}
		charge.AtLeast(usage.Tokens{Input: 5000})
		if got, _ := m.End(charge, &c.end, time.Time{}); got != c.settled {
			t.Errorf("%s: costs %d in the end, want %d", c.name, got, c.settled)
		}
	}
	_, charge := begun(nil)
	charge.cfg = &estimate.Config{Weights: estimate.Weights{Input: estimate.WeightOne, CachedInput: estimate.WeightOne}}
	if got := charge.Fix(5000); got != 1 {
		t.Errorf("a prompt that is cached whole costs %d, want 1", got)
	}
}

// Dynamo's costs: the uncached tokens of a prompt of which a known number is cached, at least 1.
func TestUncachedCosts(t *testing.T) {
	for _, c := range []struct {
		prompt, cached int64
		want           estimate.Cost
	}{{1024, 960, 64}, {1024, 16, 1008}, {1024, 0, 1024}, {512, 512, 1}, {512, 4096, 1}, {1024, -1, 1024}} {
		_, charge := begun(func(r *estimate.Request) { r.Tokens = c.prompt })
		charge.cfg = &estimate.Config{Weights: estimate.Weights{Input: estimate.WeightOne}}
		if got := charge.Fix(c.cached); got != c.want {
			t.Errorf("%d tokens, %d of them cached: costs %d, want %d", c.prompt, c.cached, got, c.want)
		}
	}
}
