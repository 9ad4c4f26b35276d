package scheduling

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Limits of a Config.
const (
	MaxScorers   = 16
	MaxWeight    = 1000
	MaxFallbacks = 8
)

// The pickers and the ways to break a tie.
const (
	PickerMaxScore = "max-score"

	TieFirst  = "first"
	TieRotate = "rotate"
	TieRandom = "random"
)

// Config says how an endpoint is chosen.
type Config struct {
	// Filters names the filters that rule endpoints out. ready is required: nothing is sent to an endpoint that is
	// not. Without subset or model a request's subset or model is ignored.
	Filters []string `json:"filters"`
	// Scorers are at most 16, each at most once. Without any, all endpoints tie.
	Scorers []ScorerConfig `json:"scorers"`
	// Picker turns scores into a choice: max-score.
	Picker string `json:"picker"`
	// TieBreak chooses among equal scores: rotate, first or random.
	TieBreak string `json:"tieBreak"`
	// Fallbacks is how many more endpoints, next best first, are named after the chosen one; 0 to 8.
	Fallbacks int `json:"fallbacks"`
}

// ScorerConfig is one scorer and its say.
type ScorerConfig struct {
	Name string `json:"name"`
	// Weight is 1 to 1000.
	Weight int `json:"weight"`
}

// DefaultConfig is every filter, Weir's own count, and rotation among equals.
func DefaultConfig() Config {
	return Config{
		Filters:   []string{FilterReady, FilterSubset, FilterModel},
		Scorers:   []ScorerConfig{{Name: ScorerLeastStock, Weight: 1}},
		Picker:    PickerMaxScore,
		TieBreak:  TieRotate,
		Fallbacks: 0,
	}
}

// Validate returns every problem at once, each with the name of its field.
func (c Config) Validate() error {
	var problems []error
	bad := func(field, format string, args ...any) {
		problems = append(problems, fmt.Errorf("scheduling.%s: %s", field, fmt.Sprintf(format, args...)))
	}
	for i, name := range c.Filters {
		field := fmt.Sprintf("filters[%d]", i)
		if _, ok := filterByName(name); !ok {
			bad(field, "unknown filter %q (known: %s)", name, known(filterNames()))
		} else if slices.Contains(c.Filters[:i], name) {
			bad(field, "%q is listed twice", name)
		}
	}
	if !slices.Contains(c.Filters, FilterReady) {
		bad("filters", "%q is missing: a request must not go to an endpoint that is not ready", FilterReady)
	}
	if len(c.Scorers) > MaxScorers {
		bad("scorers", "%d scorers, at most %d", len(c.Scorers), MaxScorers)
	}
	for i, scorer := range c.Scorers {
		field := fmt.Sprintf("scorers[%d]", i)
		same := func(s ScorerConfig) bool { return s.Name == scorer.Name }
		if _, ok := scorerByName(scorer.Name); !ok {
			bad(field+".name", "unknown scorer %q (known: %s)", scorer.Name, known(scorerNames()))
		} else if slices.ContainsFunc(c.Scorers[:i], same) {
			bad(field+".name", "%q is listed twice", scorer.Name)
		}
		if scorer.Weight < 1 || scorer.Weight > MaxWeight {
			bad(field+".weight", "%d is not within 1 to %d", scorer.Weight, MaxWeight)
		}
	}
	if c.Picker != PickerMaxScore {
		bad("picker", "unknown picker %q (known: %s)", c.Picker, PickerMaxScore)
	}
	if ties := []string{TieFirst, TieRandom, TieRotate}; !slices.Contains(ties, c.TieBreak) {
		bad("tieBreak", "unknown tie-break %q (known: %s)", c.TieBreak, known(ties))
	}
	if c.Fallbacks < 0 || c.Fallbacks > MaxFallbacks {
		bad("fallbacks", "%d is not within 0 to %d", c.Fallbacks, MaxFallbacks)
	}
	return errors.Join(problems...)
}

func known(names []string) string { return strings.Join(names, ", ") }
