package loadgen

import (
	"context"
	"sync"
)

// Together makes scenarios that [Interleave] can run in turn run at the same time: all of them in the turn of the first,
// and the others hand over what they have measured when theirs comes. So whatever else the machine does meanwhile burdens
// all of them alike. They must not share what they measure, such as a process.
func Together(all ...Scenario) []Scenario {
	measured := make([]Figures, len(all))
	errs := make([]error, len(all))
	together := make([]Scenario, len(all))
	for i, scenario := range all {
		together[i] = Scenario{Name: scenario.Name, Run: func(ctx context.Context, round int) (Figures, error) {
			if i == 0 {
				var running sync.WaitGroup
				for j := range all {
					running.Go(func() { measured[j], errs[j] = all[j].Run(ctx, round) })
				}
				running.Wait()
			}
			return measured[i], errs[i]
		}}
	}
	return together
}
