package simulate

import (
	"cmp"
	"maps"
	"slices"
)

// Median returns the report on one or more runs of one configuration with different seeds. Each figure is the median,
// the lower of the middle two if the number is even. The flows, the engines' figures and the timeline are the first
// run's.
func Median(runs []*Report) *Report {
	r := *runs[0]
	r.Runs = len(runs)
	r.Seconds = median(runs, func(r *Report) float64 { return r.Seconds })
	r.TooLong = median(runs, func(r *Report) int { return r.TooLong })
	if r.Service != nil {
		r.Service = medianService(runs)
	}
	var all []*Figures
	for _, run := range runs {
		all = append(all, &run.All)
	}
	r.All = medianFigures(all)
	r.Flows = slices.Clone(r.Flows)
	for i := range r.Flows {
		var same []*Figures
		for _, run := range runs {
			for j := range run.Flows {
				if run.Flows[j].Flow == r.Flows[i].Flow {
					same = append(same, &run.Flows[j].Figures)
				}
			}
		}
		r.Flows[i].Figures = medianFigures(same)
	}
	return &r
}

// median returns the median of a value over the list.
func median[T any, V cmp.Ordered](list []T, of func(T) V) V {
	values := make([]V, 0, len(list))
	for _, x := range list {
		values = append(values, of(x))
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

func medianFigures(list []*Figures) Figures {
	count := func(of func(*Figures) int) int { return median(list, of) }
	tokens := func(of func(*Figures) int64) int64 { return median(list, of) }
	f := Figures{
		Requests: count(func(f *Figures) int { return f.Requests }), Answered: count(func(f *Figures) int { return f.Answered }),
		TooLong:            count(func(f *Figures) int { return f.TooLong }),
		Wait:               medianTimes(list, func(f *Figures) *Times { return &f.Wait }),
		TTFT:               medianTimes(list, func(f *Figures) *Times { return &f.TTFT }),
		Total:              medianTimes(list, func(f *Figures) *Times { return &f.Total }),
		PerToken:           medianTimes(list, func(f *Figures) *Times { return &f.PerToken }),
		PromptTokens:       tokens(func(f *Figures) int64 { return f.PromptTokens }),
		CachedTokens:       tokens(func(f *Figures) int64 { return f.CachedTokens }),
		OutputTokens:       tokens(func(f *Figures) int64 { return f.OutputTokens }),
		Cost:               tokens(func(f *Figures) int64 { return f.Cost }),
		HitPercent:         median(list, func(f *Figures) float64 { return f.HitPercent }),
		OutputTokensPerSec: median(list, func(f *Figures) float64 { return f.OutputTokensPerSec }),
	}
	reasons := map[string]bool{}
	for _, one := range list {
		for reason := range one.Rejected {
			reasons[reason] = true
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		if n := count(func(f *Figures) int { return f.Rejected[reason] }); n > 0 {
			if f.Rejected == nil {
				f.Rejected = map[string]int{}
			}
			f.Rejected[reason] = n
		}
	}
	return f
}

func medianTimes(list []*Figures, of func(*Figures) *Times) Times {
	one := func(field func(*Times) float64) float64 {
		return median(list, func(f *Figures) float64 { return field(of(f)) })
	}
	return Times{
		Mean: one(func(t *Times) float64 { return t.Mean }), P50: one(func(t *Times) float64 { return t.P50 }),
		P95: one(func(t *Times) float64 { return t.P95 }), P99: one(func(t *Times) float64 { return t.P99 }),
		Max: one(func(t *Times) float64 { return t.Max }),
	}
}

func medianService(runs []*Report) *ServiceFigures {
	one := func(of func(*ServiceFigures) float64) float64 {
		return median(runs, func(r *Report) float64 { return of(r.Service) })
	}
	f := &ServiceFigures{
		MaxDifference:   one(func(f *ServiceFigures) float64 { return f.MaxDifference }),
		MeanDifference:  one(func(f *ServiceFigures) float64 { return f.MeanDifference }),
		Jain:            one(func(f *ServiceFigures) float64 { return f.Jain }),
		LeastJain:       one(func(f *ServiceFigures) float64 { return f.LeastJain }),
		TokensPerSecond: one(func(f *ServiceFigures) float64 { return f.TokensPerSecond }),
	}
	for _, r := range runs {
		f.WorstDifference = max(f.WorstDifference, r.Service.WorstDifference)
	}
	return f
}
