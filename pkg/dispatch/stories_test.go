package dispatch_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	arrived "github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

var rewrite = flag.Bool("rewrite", false, "write the answers of the stories into testdata")

// TestStories runs testdata/*.txt. Each file is one story of a pool: events in, verdicts out. A line is an event, the
// following lines that begin with " > " are its answer, and "#" begins a comment. `-rewrite` writes the answers. The
// events:
//
//	config                   the configuration file, in the indented lines that follow; apiVersion and kind may be left out
//	engine NAME KEY=VALUE …  a model server joins, or changes: slots, models=M,…, max (its limit of requests in flight),
//	                         role, prefill (the tokens that it may have to read, as a prefill engine), step (the tokens that
//	                         it processes in one);
//	                         "engine NAME gone" takes it out of the pool
//	ready NAME, unready NAME
//	arrive FLOW KEY=VALUE …  tier (the configured default), class, role, user (of the tenant FLOW), cost, tokens, uses (of its quota), model, subset=ENGINE,…, deadline, n;
//	                         prompt (tokens), cached=ENGINE:TOKENS,… (how many of these each engine has), floor (all others);
//	                         requests are named by flow, user and number: alice1, alice2, acme.ann1. With "slow" the stream learns of a
//	                         grant only by "told"
//	pass FLOW                a request that is no inference arrives, and does not queue
//	told NAME                the stream of a granted request has learned its destination
//	answer NAME              the first byte of its answer is there
//	token NAME               the first token of its answer is there, so its prompt is read
//	complete NAME …          its answer is whole; cost is what it has really cost, used what it has used of its quota, status (200) and retry-after (in seconds)
//	                         what the engine has answered
//	complete oldest n=N      the same for the oldest in flight, one after the other; prints who goes, in this order
//	raise NAME, usage NAME   cost, tokens: the answer has outgrown its estimate; the usage is known in flight, or after the end
//	move NAME ENGINE         Envoy went on to a fallback, which serves the request
//	others ENGINE KEY=VALUE  what other replicas of Weir have there: requests, tokens
//	says ENGINE KEY=VALUE …  its metrics: running, waiting, preempted, produced (tokens), slots; without any: they cannot be read
//	cancel NAME …            the client goes away
//	advance DURATION         time goes by; the timer rings when the machine has asked for it, or with "late" is late
//	reload                   like config, while requests wait
//	drain                    the program is about to end
//	show                     the stock, and who waits for what
//	deficits                 those of the classes
//	accounts                 the last line of each story: how each request has ended
//
// A verdict says whose turn a request has taken or whom it has overtaken in its flow, and how many tokens of prompts that saves.
// A verdict has where a request goes and how long it has waited; or what it waits for, in the words of /debug/flows; or its
// outcome, which is the reason in x-weir-reason, and its Retry-After. After each event every request is where the verdicts
// have it, and the accounts of machine and board are the sums over the requests.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := tell(t, string(golden))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, lines := strings.Split(string(golden), "\n"), strings.Split(got, "\n")
			for i, line := range lines {
				if i >= len(want) || want[i] != line {
					t.Fatalf("%s:%d: got %q, want %q", file, i+1, line, append(want, "")[min(i, len(want))])
				}
			}
		})
	}
}

// story is a story on its way.
type story struct {
	*testing.T
	document  config.Document
	m         *dispatch.Machine
	scheduler *scheduling.Scheduler
	board     *scheduling.Board
	pool      []scheduling.Endpoint
	began     time.Time
	now       time.Time
	cast      []*character // by arrival
	byName    map[string]*character
	numbers   map[string]int // requests by flow
	refused   map[dispatch.Outcome]int
	granted   int
	answer    []verdict
}

// character is a request.
type character struct {
	name    string
	w       dispatch.Waiter
	slow    bool
	stage   dispatch.Stage // as the verdicts have it
	granted int            // number of its last verdict
}

// verdict is one answer about requests.
type verdict struct {
	names []string
	text  string
}

// tell runs a story and returns it with its answers.
func tell(t *testing.T, text string) string {
	t.Helper()
	s := &story{
		T: t, began: dawn, now: dawn, byName: map[string]*character{}, numbers: map[string]int{},
		refused: map[dispatch.Outcome]int{},
	}
	var result []string
	lines := slices.DeleteFunc(strings.Split(strings.TrimRight(text, "\n"), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "  > ")
	})
	last := ""
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		result = append(result, line)
		command, _, _ := strings.Cut(line, "#")
		fields := strings.Fields(command)
		if len(fields) == 0 {
			continue
		}
		var block []string
		for ; i+1 < len(lines) && strings.HasPrefix(lines[i+1], "    "); i++ {
			block = append(block, lines[i+1])
			result = append(result, lines[i+1])
		}
		s.answer = nil
		last = fields[0]
		s.perform(fields[0], s.parse(fields[1:]), strings.Join(block, "\n"))
		s.check()
		result = append(result, s.answers()...)
	}
	if last != "accounts" {
		t.Error("a story ends with its accounts")
	}
	return strings.Join(result, "\n") + "\n"
}

// answers renders the verdicts of an event. Equal consecutive verdicts are one line.
func (s *story) answers() (lines []string) {
	for i := 0; i < len(s.answer); {
		v := s.answer[i]
		names := slices.Clone(v.names)
		for i++; i < len(s.answer) && len(names) > 0 && s.answer[i].text == v.text; i++ {
			names = append(names, s.answer[i].names...)
		}
		line := v.text
		if len(names) > 0 {
			line = s.shorten(names) + ": " + v.text
		}
		lines = append(lines, "  > "+line)
	}
	return lines
}

// shorten joins names; more than two of a flow with successive numbers become "a1..a9".
func (s *story) shorten(names []string) string {
	var parts []string
	for len(names) > 0 {
		n := 1
		flow := strings.TrimRight(names[0], "0123456789")
		for first, _ := strconv.Atoi(names[0][len(flow):]); n < len(names) && names[n] == fmt.Sprint(flow, first+n); {
			n++
		}
		if n > 2 {
			parts = append(parts, names[0]+".."+names[n-1])
		} else {
			parts, n = append(parts, names[0]), 1
		}
		names = names[n:]
	}
	return strings.Join(parts, " ")
}

func (s *story) say(name, format string, args ...any) {
	v := verdict{text: fmt.Sprintf(format, args...)}
	if name != "" {
		v.names = []string{name}
	}
	s.answer = append(s.answer, v)
}

// arguments of an event: words, and KEY=VALUE.
type arguments struct {
	*story
	words []string
	named map[string]string
}

func (s *story) parse(fields []string) arguments {
	a := arguments{story: s, named: map[string]string{}}
	for _, f := range fields {
		if key, value, ok := strings.Cut(f, "="); ok {
			a.named[key] = value
		} else {
			a.words = append(a.words, f)
		}
	}
	return a
}

func (a arguments) has(word string) bool { return slices.Contains(a.words, word) }

func (a arguments) list(key string) []string {
	if a.named[key] == "" {
		return nil
	}
	return strings.Split(a.named[key], ",")
}

func (a arguments) number(key string, otherwise int) int {
	if v, ok := a.named[key]; ok {
		n, err := strconv.Atoi(v)
		if err != nil {
			a.Fatal(err)
		}
		return n
	}
	return otherwise
}

func (s *story) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.Fatal(err)
	}
	return d
}

// source is a configuration file.
func (s *story) source(block string) config.Source {
	return config.Source{Text: []byte("    apiVersion: weir.dev/v1alpha1\n    kind: EndpointPickerConfig\n" + block)}
}

// configure makes the machine.
func (s *story) configure(block string) {
	var err error
	if s.document, err = config.Load(s.source(block)); err != nil {
		s.Fatal(err)
	}
	if s.scheduler, err = scheduling.New(s.document.SchedulingConfig()); err != nil {
		s.Fatal(err)
	}
	s.board = scheduling.NewBoard(s.scheduler, rand.New(rand.NewPCG(1, 1)))
	s.m, err = dispatch.New(s.document.FlowcontrolConfig().Config, placement.On(s.board), rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		s.Fatal(err)
	}
}

// reload is a change of the file: all of it, or nothing.
func (s *story) reload(block string) {
	d, err := config.Reload(s.source(block), s.document)
	if err == nil {
		s.event(nil, func() { err = s.m.Configure(s.now, d.FlowcontrolConfig().Config) })
	}
	if err != nil {
		if first, ok := errors.AsType[config.Problem](err); ok {
			err = first
		}
		s.say("", "refused: %v", err)
		return
	}
	s.document = d
}

// setPool sets the board's and the machine's pool, like the datastore.
func (s *story) setPool() {
	var ready []stock.Backend
	for _, e := range s.pool {
		if e.Ready && e.Work.Serves() {
			ready = append(ready, stock.Backend{ID: stock.BackendID(e.ID), Slots: int32(e.Slots)})
		}
	}
	s.event(nil, func() {
		old := s.board.Snapshot()
		s.board.SetSnapshot(old.Next(old.Version()+1, slices.Clone(s.pool)))
		s.m.SetBackends(s.now, ready, nil)
	})
}

func (s *story) engine(a arguments) {
	name := a.words[0]
	i := slices.IndexFunc(s.pool, func(e scheduling.Endpoint) bool { return e.Key == name })
	if a.has("gone") {
		s.pool = slices.Delete(s.pool, i, i+1)
		s.setPool()
		return
	}
	if i < 0 {
		i = len(s.pool)
		s.pool = append(s.pool, scheduling.Endpoint{
			ID: s.endpointOf(name), Key: name, Address: s.addressOf(name), Ready: true,
		})
	}
	e := &s.pool[i]
	e.Slots, e.MaxInFlight = a.number("slots", e.Slots), a.number("max", e.MaxInFlight)
	e.PrefillTokens = int64(a.number("prefill", int(e.PrefillTokens)))
	e.MaxBatchedTokens = int64(a.number("step", int(e.MaxBatchedTokens)))
	if role, given := a.named["role"]; given {
		e.Work, _ = scheduling.WorkOf(role)
	}
	if _, given := a.named["models"]; given {
		e.Models = a.list("models")
	}
	s.setPool()
}

// Engines are called a, b, c, …: that determines their number and their address.
func (s *story) nameOf(e dispatch.Endpoint) string { return string(rune('a' + e)) }

func (s *story) endpointOf(name string) dispatch.Endpoint { return dispatch.Endpoint(name[0] - 'a') }

func (s *story) addressOf(name string) string {
	return fmt.Sprintf("10.0.0.%d:8000", s.endpointOf(name)+1)
}

func (s *story) request(name string) *character {
	s.Helper()
	c := s.byName[name]
	if c == nil {
		s.Fatalf("there is no request %s", name)
	}
	return c
}

// defaultTier is the tier of a request without one.
func (s *story) defaultTier() string {
	switch tiers := s.document.Tiers; s.document.Criticality.Default {
	case arrived.Critical:
		return tiers[0].Name
	case arrived.Standard:
		for _, t := range tiers {
			if t.MinPriority != nil && *t.MinPriority == 0 {
				return t.Name
			}
		}
		return tiers[len(tiers)/2].Name
	default:
		return s.document.Criticality.Default
	}
}

// arrive offers a request, or passes it on without queueing for "pass".
func (s *story) arrive(how string, a arguments) {
	flow := a.words[0]
	sender, user := flow, a.named["user"]
	if user != "" {
		sender += "." + user
	}
	s.numbers[sender]++
	c := &character{name: fmt.Sprintf("%s%d", sender, s.numbers[sender]), slow: a.has("slow")}
	if _, twice := s.byName[c.name]; twice {
		s.Fatalf("two requests %s", c.name)
	}
	ask := scheduling.Ask{Model: a.named["model"]}
	for _, name := range a.list("subset") {
		ask.Subset.Set = true
		ask.Subset.Entries = append(ask.Subset.Entries, s.addressOf(name))
	}
	q, err := s.scheduler.Prepare(s.board.Snapshot(), ask)
	if err != nil {
		o := dispatch.OutcomeNoEndpoint
		if errors.Is(err, scheduling.ErrModelUnknown) {
			o = dispatch.OutcomeUnknownModel
		}
		s.refused[o]++
		s.say(c.name, "%s", rejection(o, s.m.Refuse(s.now, o)))
		return
	}
	prompt, best := a.number("prompt", 0), int64(a.number("floor", 0))
	if prompt > 0 {
		r := &scheduling.Ratings{Prompt: int64(prompt), Floor: best}
		atPrefill := &scheduling.Ratings{Prompt: r.Prompt}
		for _, of := range a.list("cached") {
			name, tokens, _ := strings.Cut(of, ":")
			n, err := strconv.Atoi(tokens)
			if err != nil {
				s.Fatal(err)
			}
			cached, at := scheduling.Cached{ID: s.endpointOf(name), Tokens: int64(n)}, &r.Above
			if slices.ContainsFunc(s.pool, func(e scheduling.Endpoint) bool { return e.ID == cached.ID && !e.Work.Serves() }) {
				at = &atPrefill.Above
			}
			*at = append(*at, cached)
			best = max(best, cached.Tokens)
		}
		q.Rate(r)
		if len(q.Prefills(nil)) > 0 {
			q.RatePrefill(atPrefill)
		}
	}
	arrival := dispatch.Arrival{
		Flow: flow, TierName: s.defaultTier(), Cost: fairqueue.Cost(a.number("cost", 1)),
		Tokens: stock.Tokens(a.number("tokens", 0)), Tenant: flow, Uses: int64(a.number("uses", 0)), Placement: q, Owner: c,
	}
	if tier, given := a.named["tier"]; given {
		arrival.TierName = tier
	}
	if class, role := a.named["class"], a.named["role"]; class != "" || role != "" || user != "" {
		arrival.Path = &fairqueue.Path{Class: class, Role: role, Prompt: fairqueue.PromptOf(int64(prompt), best)}
		if slices.ContainsFunc(s.document.Classes, func(c config.Class) bool { return c.Model != "" && c.Model == ask.Model }) {
			arrival.Path.Ring = ask.Model
		}
		if user != "" {
			arrival.Path.Under = []string{user}
		}
	}
	if d, given := a.named["deadline"]; given {
		arrival.Deadline = s.now.Add(s.duration(d))
	}
	s.cast, s.byName[c.name] = append(s.cast, c), c
	s.event(c, func() {
		if how == "pass" {
			s.m.PassOn(s.now, &c.w, arrival)
		} else {
			s.m.Arrive(s.now, &c.w, arrival)
		}
	})
}

// accounts lists the end of each request.
func (s *story) accounts() {
	offered, queued, inFlight := 0, 0, 0
	outcomes := maps.Clone(s.refused)
	for _, c := range s.cast {
		switch c.w.Stage() {
		case dispatch.StageWaiting:
			queued++
		case dispatch.StageGranted, dispatch.StageSent, dispatch.StageStreaming:
			inFlight++
		case dispatch.StageEnded:
			outcomes[c.w.Outcome()]++
		default:
			s.Fatalf("%s is at stage %d", c.name, c.w.Stage())
		}
	}
	var text strings.Builder
	for _, o := range slices.Sorted(maps.Keys(outcomes)) {
		offered += outcomes[o]
		fmt.Fprintf(&text, " + %d %v", outcomes[o], o)
	}
	offered += queued + inFlight
	s.say("", "%d offered = %d queued + %d in flight%s", offered, queued, inFlight, text.String())
	if offered != int(s.m.Arrived())+sum(s.refused) {
		s.Errorf("%d offered, the machine has %d", offered, s.m.Arrived())
	}
}

func sum(counts map[dispatch.Outcome]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
