package fairqueue

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write the scripts' answers into testdata")

// TestScripts runs testdata/*.txt: a line is a command, the lines behind it that begin with "  > " are its answer, and
// "#" begins a comment. The commands:
//
//	queue KEY=VALUE …        total, flow (capacities), ttl, capacity (reserved, shared), tiers (strict, weighted),
//	                         top (guaranteed, fair), budget, discipline (wfq, vtc, none), tie (arrival, newcomer)
//	tier NAME KEY=VALUE …    size, timeout, starve, weight; "tier NAME gone" takes it off the list
//	flow NAME KEY=VALUE …    weight, capacity
//	reload                   applies what the lines above have changed since the queue was made
//	push FLOW KEY=VALUE …    tier, cost, lane, deadline, n; requests are named by flow and number: a1, a2
//	pop KEY=VALUE …          pops n, with stock available to the tiers only=NAME,…; promote lets starved heads go
//	slots N, grant           the stock: grant releases while fewer than N are out; promote as above
//	complete NAME …          gives the slots back, and grants; cost is what each has really cost
//	dispatch FLOW KEY=VALUE  an arrival goes without waiting: tier, cost, lane
//	raise NAME, late NAME    its cost is raised in flight, or known after its end: cost
//	cancel NAME …            leaves the queue
//	advance DURATION         lets time go by, and expires
//	park NAME, unpark FLOW   the flow of a waiter is at its cap in its lane, and no more
//	close NAME busy|full|dead  the lane of a waiter has no room below the lower bound, the upper one, or no endpoint
//	open LANE                "" is the whole pool; open without a name opens all
//	requeue NAME             a release came to nothing
//	bypass TIER …            whether an arrival may go without waiting
//	forget, drain, next      removed tiers that are empty, everything, and when to ask again
//	print                    who waits: tier, flow, requests in order of arrival
//
// After each command the invariants are checked.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(golden))
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

// script is the state of a running script.
type script struct {
	*testing.T
	cfg      Config
	q        *FairRequestQueue // made by the first command that needs it
	now      time.Time
	slots    int
	out      map[string]bool // released and not complete
	requests map[string]*Request
	numbers  map[string]int // requests by flow
	audit    audit
	answer   []string
}

func runScript(t *testing.T, text string) string {
	t.Helper()
	s := &script{
		T: t, cfg: DefaultConfig(), now: start,
		out: map[string]bool{}, requests: map[string]*Request{}, numbers: map[string]int{},
	}
	s.cfg.Tiers = nil
	var result []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  > ") {
			continue
		}
		result = append(result, line)
		command, _, _ := strings.Cut(line, "#")
		if fields := strings.Fields(command); len(fields) > 0 {
			s.answer = nil
			s.run(fields[0], parseArguments(fields[1:]))
			if s.q != nil {
				s.audit.check(t, s.q)
			}
			for _, a := range s.answer {
				result = append(result, "  > "+a)
			}
		}
	}
	return strings.Join(result, "\n") + "\n"
}

func (s *script) say(format string, args ...any) {
	s.answer = append(s.answer, fmt.Sprintf(format, args...))
}

// queue makes the queue with the configuration so far.
func (s *script) queue() *FairRequestQueue {
	if s.q == nil {
		if len(s.cfg.Tiers) == 0 {
			s.cfg.Tiers = DefaultConfig().Tiers
		}
		s.q = queue(s, s.cfg)
	}
	return s.q
}

// arguments of a command: words, and KEY=VALUE.
type arguments struct {
	words []string
	named map[string]string
}

func parseArguments(fields []string) arguments {
	a := arguments{named: map[string]string{}}
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

func (s *script) number(a arguments, key string, otherwise int) int {
	if v, ok := a.named[key]; ok {
		n, err := strconv.Atoi(v)
		if err != nil {
			s.Fatal(err)
		}
		return n
	}
	return otherwise
}

// millionths parses a decimal such as a weight or a budget.
func (s *script) millionths(a arguments, key string, otherwise int64) int64 {
	if v, ok := a.named[key]; ok {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			s.Fatal(err)
		}
		return int64(f*1_000_000 + 0.5)
	}
	return otherwise
}

func (s *script) duration(a arguments, key string, otherwise time.Duration) time.Duration {
	if v, ok := a.named[key]; ok {
		d, err := time.ParseDuration(v)
		if err != nil {
			s.Fatal(err)
		}
		return d
	}
	return otherwise
}

// nameOf returns the name of an error.
func nameOf(err error) string {
	switch {
	case errors.Is(err, ErrTooManyFlows):
		return "ErrTooManyFlows"
	case errors.Is(err, ErrInsufficientFlowCapacity):
		return "ErrInsufficientFlowCapacity"
	default:
		return err.Error()
	}
}
