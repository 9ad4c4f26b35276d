package loadgen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Figures are what one run of a scenario measured, by name; put the unit into the name ("cpu ms/request").
type Figures map[string]float64

// Scenario is one side of a comparison.
type Scenario struct {
	Name string
	// Run measures once; round counts from 0.
	Run func(ctx context.Context, round int) (Figures, error)
}

// Comparison holds the figures of scenarios that ran in turn.
type Comparison struct {
	// Scenarios are the names, in the order of running.
	Scenarios []string
	// Rounds holds the figures of each round, in the order of Scenarios.
	Rounds [][]Figures
}

// Spread is a median with the smallest and the largest value. All are NaN where nothing was measured.
type Spread struct{ Median, Min, Max float64 }

// Interleave runs the scenarios in turn, A B C A B C …, so changes of the machine's speed affect all of them. Compare
// the medians of the pairwise ratios ([Comparison.Ratio]), not the ratio of the medians. Progress counts runs and may
// be nil. On an error the comparison holds the complete rounds before it.
func Interleave(ctx context.Context, rounds int, scenarios []Scenario, progress Progress) (*Comparison, error) {
	if rounds <= 0 || len(scenarios) == 0 {
		return nil, errors.New("loadgen: interleave: needs a round and a scenario at least")
	}
	comparison := &Comparison{}
	for _, scenario := range scenarios {
		if slices.Contains(comparison.Scenarios, scenario.Name) {
			return nil, fmt.Errorf("loadgen: interleave: two scenarios are named %q", scenario.Name)
		}
		comparison.Scenarios = append(comparison.Scenarios, scenario.Name)
	}
	for round := range rounds {
		measured := make([]Figures, len(scenarios))
		for i, scenario := range scenarios {
			if err := context.Cause(ctx); err != nil {
				return comparison, err
			}
			var err error
			if measured[i], err = scenario.Run(ctx, round); err != nil {
				return comparison, fmt.Errorf("loadgen: scenario %q, round %d: %w", scenario.Name, round, err)
			}
			if progress != nil {
				progress(round*len(scenarios)+i+1, rounds*len(scenarios))
			}
		}
		comparison.Rounds = append(comparison.Rounds, measured)
	}
	return comparison, nil
}

// Of is the spread of one scenario's figure over the rounds that measured it.
func (c *Comparison) Of(scenario, figure string) Spread {
	i := slices.Index(c.Scenarios, scenario)
	var values []float64
	for _, round := range c.Rounds {
		if i < 0 {
			break
		}
		if value, ok := round[i][figure]; ok {
			values = append(values, value)
		}
	}
	return spread(values)
}

// Ratio is the spread of a scenario's figure divided by another's in the same round. It omits rounds without either
// figure, or with 0 as the other's.
func (c *Comparison) Ratio(scenario, to, figure string) Spread {
	i, j := slices.Index(c.Scenarios, scenario), slices.Index(c.Scenarios, to)
	var ratios []float64
	for _, round := range c.Rounds {
		if i < 0 || j < 0 {
			break
		}
		over, okOver := round[i][figure]
		under, okUnder := round[j][figure]
		if okOver && okUnder && under != 0 {
			ratios = append(ratios, over/under)
		}
	}
	return spread(ratios)
}

// spread sorts the values in place. The median of an even number is the mean of the middle two.
func spread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	slices.Sort(values)
	n := len(values)
	return Spread{Median: (values[(n-1)/2] + values[n/2]) / 2, Min: values[0], Max: values[n-1]}
}
