package loadgen

import (
	"context"
	"sync"
)

// Together makes scenarios for [Interleave] run at the same time: all run in the first one's turn, and the others
// return their figures in their turns. So other load on the machine affects all of them equally. They must not share a
// measured object, such as a process.
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
