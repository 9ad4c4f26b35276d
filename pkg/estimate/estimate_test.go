package estimate

import (
	"testing"
	"time"
)

// chat is a request of team-a to llama with a prompt of so many bytes of text.
func chat(text int64) *Request {
	return &Request{Flow: "team-a", Model: "llama", Tokens: Unknown, Text: text, Length: Unknown, Answers: 1, MaxOutput: Unknown}
}

// used teaches e that so many requests like r have used u.
func used(e *Estimator, times int, r *Request, u Usage) {
	for range times {
		e.Learn(r, u, 0)
	}
}

func near(t *testing.T, what string, got, least, most int64) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %d, want %d to %d", what, got, least, most)
	}
}

// A request costs its prompt once and its answer twice; a token in the cache costs what the operator says.
func TestCost(t *testing.T) {
	whole := Weights{Input: WeightOne, CachedInput: WeightOne, Output: 2 * WeightOne}
	cheap := Weights{Input: WeightOne, CachedInput: WeightOne / 10, Output: 4 * WeightOne}
	for _, c := range []struct {
		weights Weights
		usage   Usage
		want    Cost
	}{
		{whole, Usage{Input: 1900, Output: 100}, 2100},
		{whole, Usage{Input: 50, Output: 50}, 150},
		{whole, Usage{Input: 1000, Cached: 900, Output: 0}, 1000},
		{cheap, Usage{Input: 1000, Cached: 900, Output: 10}, 100 + 90 + 40},
		{cheap, Usage{Input: 1, Cached: 1}, 1},        // a tenth, rounded up
		{cheap, Usage{Input: 10, Cached: 1 << 40}, 1}, // no more than the prompt is cached
		{whole, Usage{}, 1}, // never free
		{whole, Usage{Input: -5, Cached: -7, Output: -9}, 1},
		{whole, Usage{Input: 1 << 62, Output: 1 << 62}, MaxCost},
		{Weights{MaxWeight, MaxWeight, MaxWeight}, Usage{Input: MaxTokens, Output: MaxTokens}, MaxCost},
	} {
		if got := c.weights.Cost(c.usage); got != c.want {
			t.Errorf("%+v of %+v: %d, want %d", c.weights, c.usage, got, c.want)
		}
	}
}

// Without experience a token has 4 bytes and an answer 1,000 tokens, within what the request allows.
func TestColdStart(t *testing.T) {
	e := New(DefaultConfig())
	for _, c := range []struct {
		name   string
		change func(*Request)
		want   Estimate
	}{
		{"text alone", func(*Request) {}, Estimate{1000, 1000, 1000, 3000, 2000}},
		{"a limit", func(r *Request) { r.MaxOutput = 50 }, Estimate{1000, 50, 1000, 1100, 1050}},
		{"a generous limit", func(r *Request) { r.MaxOutput = 100_000 }, Estimate{1000, 1000, 1000, 3000, 2000}},
		{"16 answers", func(r *Request) { r.Answers = 16 }, Estimate{1000, 16_000, 1000, 33_000, 17_000}},
		{"16 answers with a limit", func(r *Request) { r.Answers, r.MaxOutput = 16, 50 }, Estimate{1000, 800, 1000, 2600, 1800}},
		{"no output allowed", func(r *Request) { r.MaxOutput = 0 }, Estimate{1000, 0, 1000, 1000, 1000}},
		{"an exact count", func(r *Request) { r.Tokens = 77 }, Estimate{77, 1000, 77, 2077, 1077}},
		{"an exact count of 0", func(r *Request) { r.Tokens = 0 }, Estimate{0, 1000, 0, 2000, 1000}},
		{"tokens by number", func(r *Request) { r.Text, r.Numbers = 0, 300 }, Estimate{300, 1000, 300, 2300, 1300}},
		{"an unread body", func(r *Request) { r.Text, r.Length = Unknown, 4256 }, Estimate{1000, 1000, 1000, 3000, 2000}},
		{"a short unread body", func(r *Request) { r.Text, r.Length = Unknown, 80 }, Estimate{1, 1000, 1, 2001, 1001}},
		{"an unread body of unknown length", func(r *Request) { r.Text = Unknown }, Estimate{0, 1000, 2000, 2000, 3000}},
		{"an empty prompt", func(r *Request) { r.Text = 0 }, Estimate{0, 1000, 0, 2000, 1000}},
		{"one byte", func(r *Request) { r.Text = 1 }, Estimate{1, 1000, 1, 2001, 1001}},
		{"nonsense", func(r *Request) { r.Text, r.Answers, r.MaxOutput = 1<<62, 1<<62, 1<<62 }, Estimate{1 << 28, MaxTokens, 1 << 28, MaxCost, MaxCost}},
	} {
		r := chat(4000)
		c.change(r)
		if got := e.Estimate(r); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// The ratio of bytes to tokens is learned by flow and model, and from 1 to 8 whatever usage says.
func TestRatioIsLearned(t *testing.T) {
	for _, c := range []struct {
		name              string
		tokens, want, off int64 // of 6,000 bytes
	}{
		{"2.5 bytes a token", 2400, 2400, 24},
		{"6 bytes a token", 1000, 1000, 10},
		{"30 bytes a token, which is not text", 200, 750, 10},
		{"a third of a byte a token, which is not text either", 18_000, 5800, 200},
	} {
		e := New(DefaultConfig())
		used(e, 100, chat(6000), Usage{Input: c.tokens, Output: 10})
		near(t, c.name, e.Estimate(chat(6000)).Input, c.want-c.off, c.want+c.off)
		other := chat(6000)
		other.Model = "qwen"
		near(t, c.name+", another model", e.Estimate(other).Input, 1500, 1500)
	}
}

// Old ratios fade: after as many tokens again as are remembered, the newer ones prevail.
func TestRatioForgets(t *testing.T) {
	e := New(DefaultConfig())
	used(e, 1000, chat(6000), Usage{Input: 1000})
	used(e, 50, chat(6000), Usage{Input: 3000})
	near(t, "from 6 bytes a token to 2", e.Estimate(chat(6000)).Input, 2700, 3000)
}

// A new flow is estimated by what the flows of its model agree on, and a flow that disagrees keeps its own.
func TestPriorIsTheMedian(t *testing.T) {
	e := New(DefaultConfig())
	for i := range 20 {
		r := chat(6000)
		r.Flow = string(rune('a' + i))
		used(e, 20, r, Usage{Input: 2400})
	}
	odd := chat(6000)
	odd.Flow = "odd"
	used(e, 20, odd, Usage{Input: 1000})
	near(t, "a new flow", e.Estimate(chat(6000)).Input, 2370, 2450)
	near(t, "the odd one", e.Estimate(odd).Input, 990, 1030)
}

// A body that is not read is taken by its length, less what is not text in the bodies of that flow.
func TestOverheadIsLearned(t *testing.T) {
	e := New(DefaultConfig())
	read := chat(4000)
	read.Length = 5000
	used(e, 200, read, Usage{Input: 1000})
	unread := chat(Unknown)
	unread.Length = 9000
	near(t, "8,000 bytes of text in 9,000", e.Estimate(unread).Input, 1990, 2010)
	other := *unread
	other.Flow = "team-b"
	near(t, "another flow", e.Estimate(&other).Input, (9000-256)/4, (9000-256)/4)

	// Where no body is ever read, lengths and usage tell the same.
	e = New(DefaultConfig())
	for i := range int64(400) {
		r := chat(Unknown)
		text := 400 + i%7*2000
		r.Length = text + 1000
		e.Learn(r, Usage{Input: text / 4}, 0)
	}
	near(t, "learned from lengths", e.Estimate(unread).Input, 1850, 2150)
}

// The prediction of an answer is what nine of ten do not exceed, lately: nine short ones replace the cold start, and
// one long one in ten is not overlooked for long.
func TestOutputIsAQuantile(t *testing.T) {
	e := New(DefaultConfig())
	short, long := Usage{Input: 10, Output: 100}, Usage{Input: 10, Output: 5000}
	used(e, 8, chat(40), short)
	near(t, "after eight", e.Estimate(chat(40)).Output, 1000, 1000)
	used(e, 1, chat(40), short)
	near(t, "after nine", e.Estimate(chat(40)).Output, 100, 112)
	used(e, 50, chat(40), short)
	used(e, 1, chat(40), long)
	near(t, "after one long answer of sixty", e.Estimate(chat(40)).Output, 100, 112)
	for range 20 {
		used(e, 8, chat(40), short)
		used(e, 2, chat(40), long)
	}
	near(t, "with two long ones in ten", e.Estimate(chat(40)).Output, 5000, 5625)
	used(e, 300, chat(40), short)
	near(t, "and when they are over", e.Estimate(chat(40)).Output, 100, 112)
	used(e, 300, chat(40), Usage{Input: 10, Output: 2})
	near(t, "not below the floor", e.Estimate(chat(40)).Output, 16, 16)
}

// Usage counts all answers of a request together; what is learned is the length of one.
func TestOutputIsPerAnswer(t *testing.T) {
	e := New(DefaultConfig())
	four := chat(40)
	four.Answers = 4
	used(e, 20, four, Usage{Input: 10, Output: 400})
	near(t, "one answer", e.Estimate(chat(40)).Output, 100, 112)
	near(t, "four", e.Estimate(four).Output, 400, 448)
}

// An answer that ends without usage costs the estimate, or more if it went on for longer.
func TestUnfinished(t *testing.T) {
	e := New(DefaultConfig())
	r := chat(400)
	r.MaxOutput = 3000
	est := e.Estimate(r)
	if est.Cost != 100+2*1000 {
		t.Fatalf("%+v", est)
	}
	for _, c := range []struct {
		name  string
		after time.Duration
		want  Cost
	}{
		{"at once", 0, 2100},
		{"a clock that went back", -time.Hour, 2100},
		{"earlier than predicted: 50 tokens a second before any rate is known", 10 * time.Second, 2100},
		{"later", 40 * time.Second, 100 + 2*2000},
		{"no more than it allows", time.Hour, 100 + 2*3000},
		{"for ever", 1 << 62, 100 + 2*3000},
	} {
		if got := e.Unfinished(r, est, c.after); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}

	// Once answers of the model have been seen, at 200 tokens a second, that counts, for others too.
	for range 20 {
		e.Learn(chat(400), Usage{Input: 100, Output: 1000}, 5*time.Second)
	}
	other := chat(400)
	other.Flow = "team-b"
	est = e.Estimate(other)
	near(t, "40 s at 200 a second", int64(e.Unfinished(other, est, 40*time.Second)), 100+2*8000, 100+2*9100)
	three := *other
	three.Answers = 3
	near(t, "three answers at a time", int64(e.Unfinished(&three, e.Estimate(&three), 40*time.Second)), 100+2*24_000, 100+2*27_300)
}

// A refusal costs what the request may have taken in its time: at once nothing, however much it asks for, after a second its
// prompt and its estimate, and later the answer that an engine makes meanwhile.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		image bool
		most  int64
		after time.Duration
		want  Cost
	}{
		{"at once", true, 100_000, 0, 1},
		{"a clock that went back", true, 100_000, -time.Hour, 1},
		{"soon: a part of the estimate", false, 100_000, 10 * time.Millisecond, 21},
		{"a part of the prompt, and a token", true, 1, 100 * time.Millisecond, 210 + 2},
		{"after a second", false, 100_000, time.Second, 2100},
		{"the whole prompt", true, 1, time.Second, 2100 + 2},
		{"the prompt no more than once", true, 1, time.Minute, 2100 + 2},
		{"50 tokens a second", false, 100_000, time.Minute, 100 + 2*3000},
		{"no more than it allows", false, 2500, time.Minute, 100 + 2*2500},
		{"for ever", false, 3000, 1 << 62, 100 + 2*3000},
	} {
		e := New(DefaultConfig())
		r := chat(400)
		if r.MaxOutput = c.most; c.image {
			r.Media = 1
		}
		if got := e.Refused(r, e.Estimate(r), c.after); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	unread := chat(0)
	unread.Text, unread.Length, unread.MaxOutput = Unknown, 4000, 1
	if got := New(DefaultConfig()).Refused(unread, Estimate{}, time.Second); got != 1000+2 {
		t.Errorf("an unread body: %d", got)
	}
	// A flow that has taught short answers, and a small prompt, pays by the rate, for each answer.
	e := New(DefaultConfig())
	used(e, 60, chat(400), Usage{Input: 100, Output: 1})
	r := chat(400)
	r.Rest, r.Answers = 4000, 3
	near(t, "three answers in half a second, and half the rest", int64(e.Refused(r, e.Estimate(r), 500*time.Millisecond)), 550+2*75, 560+2*75)
}

// Whatever a flow has taught of its prompts, one that ends without usage is charged for all bytes that may be text, and for
// each part that cannot be measured. A flow whose prompts are denser than others' is charged by its own ratio.
func TestUnfinishedByNothingTaught(t *testing.T) {
	unread := func(r *Request) { r.Text, r.Length = Unknown, 4000 }
	for _, c := range []struct {
		name    string
		request func(*Request)
		input   Cost
	}{
		{"text", func(*Request) {}, 1000},
		{"an unread body", unread, 1000},
		{"an unread body of unknown length", func(r *Request) { r.Text = Unknown }, 2000},
		{"fields that are no prompt", func(r *Request) { r.Text, r.Rest = 8, 4000 }, 1002},
		{"an image", func(r *Request) { r.Text, r.Media = 8, 1 }, 2002},
		{"three images among text", func(r *Request) { r.Media = 3 }, 7000},
		{"a prompt by number", func(r *Request) { r.Text, r.Numbers = 0, 300 }, 300},
		{"an exact count", func(r *Request) { r.Tokens, r.Media, r.Rest = 77, 3, 4000 }, 77},
		{"nonsense", func(r *Request) { r.Rest, r.Media, r.Numbers = 1<<62, 1<<62, 1<<62 }, MaxCost},
		{"less than nothing", func(r *Request) { r.Rest, r.Media, r.Numbers = -1<<62, -1, -1 }, 1000},
	} {
		for _, taught := range []struct {
			name   string
			length int64
			input  int64
			factor Cost
		}{{"nothing", 0, 0, 1}, {"padding", 40_000, 200, 1}, {"density", 4000, 4000, 4}} {
			e := New(DefaultConfig())
			for range 60 {
				if taught.length > 0 {
					r := chat(taught.length)
					unread(r)
					r.Length = taught.length
					e.Learn(r, Usage{Input: taught.input, Output: 1}, 0)
				}
			}
			r := chat(4000)
			r.MaxOutput = 0
			c.request(r)
			got := e.Unfinished(r, e.Estimate(r), time.Second)
			if most := max(c.input*taught.factor, c.input); got < c.input*9/10 || got > min(most, MaxCost)*11/10 {
				t.Errorf("%s, taught %s: %d, want about %d", c.name, taught.name, got, c.input)
			}
		}
	}
}

// A flow's own prompts make no request of it smaller in the stock than a new flow's.
func TestStockByNothingTaught(t *testing.T) {
	unread := func() *Request {
		r := chat(0)
		r.Text, r.Length, r.MaxOutput = Unknown, 4256, 0
		return r
	}
	e := New(DefaultConfig())
	fresh := e.Estimate(unread())
	if fresh.Held != 1000 || fresh.Stock != 1000 {
		t.Fatalf("%+v", fresh)
	}
	for range 60 {
		padded := unread()
		padded.Length = 40_000
		e.Learn(padded, Usage{Input: 200, Output: 1}, 0)
	}
	if got := e.Estimate(unread()); got.Cost > 100 || got.Stock < 1000*100/109 {
		t.Errorf("after padding: %+v", got)
	}
	for range 60 {
		e.Learn(unread(), Usage{Input: 4000, Output: 1}, 0)
	}
	if got := e.Estimate(unread()); got.Stock < 3000 || got.Stock != Cost(got.Input) {
		t.Errorf("after dense prompts: %+v", got)
	}
	image := chat(8)
	image.Media, image.MaxOutput = 1, 0
	if got := e.Estimate(image); got.Stock < 2000 || got.Cost > 8 {
		t.Errorf("an image: %+v", got)
	}
	padded := chat(8)
	padded.Rest, padded.MaxOutput = 900_000, 0
	if got := e.Estimate(padded); got.Stock > 8 {
		t.Errorf("fields that no engine may know take room from others: %+v", got)
	}
}

// A configuration is checked whole.
func TestValidate(t *testing.T) {
	bad := Config{
		Weights: Weights{Input: -1, CachedInput: MaxWeight + 1}, StockWeights: Weights{CachedInput: 1}, Quantile: 1_000_000, Window: 7, Floor: -1, ColdOutput: 0,
		ColdRate: MaxSetting + 1, ColdRatio: 500_000,
	}
	want := `Weights.Input: -1e-06: must be from 0 to 1000
Weights.CachedInput: 1000.000001: must be from 0 to 1000
StockWeights.Input: 0: must be above 0, since StockWeights.Output is 0 too
Quantile: 1: must be from 0.5 to 0.99
ColdRatio: 0.5: must be from 1 to 8
Window: 7: must be from 8 to 1024
Floor: -1: must be from 0 to 1000000
ColdOutput: 0: must be from 1 to 1000000
ColdRate: 1000001: must be from 1 to 1000000`
	if err := bad.Validate(); err == nil || err.Error() != want {
		t.Errorf("got\n%v", err)
	}
	most := DefaultConfig()
	most.Weights = Weights{Input: MaxWeight, CachedInput: MaxWeight, Output: MaxWeight}
	if err := most.Validate(); err != nil {
		t.Errorf("the largest weights: %v", err)
	}
	free := DefaultConfig()
	free.Weights = Weights{CachedInput: WeightOne}
	if err := free.Validate(); err == nil || err.Error() != "Weights.Input: 0: must be above 0, since Weights.Output is 0 too" {
		t.Errorf("%v", err)
	}
}

// A reload keeps what was learned.
func TestConfigure(t *testing.T) {
	e := New(DefaultConfig())
	used(e, 100, chat(6000), Usage{Input: 2400, Output: 100})
	cfg := DefaultConfig()
	cfg.Weights.Output, cfg.ColdOutput, cfg.ColdRatio = 3*WeightOne, 200, 2_000_000
	e.Configure(cfg)
	est := e.Estimate(chat(6000))
	near(t, "input", est.Input, 2380, 2420)
	near(t, "output", est.Output, 100, 112)
	if want := Cost(est.Input + 3*est.Output); est.Cost != want {
		t.Errorf("%+v", est)
	}
	fresh := chat(6000)
	fresh.Flow, fresh.Model = "new", "new"
	if got := e.Estimate(fresh); got != (Estimate{3000, 200, 3000, 3600, 3200}) {
		t.Errorf("%+v", got)
	}
}
