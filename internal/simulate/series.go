package simulate

import "time"

// series is a run over time, in intervals of one length. When there are too many, each two become one, so memory is
// bounded for any length of the run.
type series struct {
	length    time.Duration
	intervals []interval
	engines   int
	flows     map[string]int // index of each flow with its own service
	names     []string
}

// interval has the events of one interval.
type interval struct {
	grants   int
	wait     time.Duration // sum over the grants
	answers  int
	ttft     time.Duration // sum over the answers
	prompt   int64         // tokens of the answers' prompts
	cached   int64         // of prompt, the cached ones
	service  []int64       // tokens of prompts and answers, by flow
	held     []int         // by engine, at the end of the interval
	queued   int           // at the end of the interval
	complete bool          // the interval has ended
}

// The limits of a series: intervals, and flows shown one by one.
const (
	mostIntervals   = 240
	mostSeriesFlows = 24
)

func (s *series) init(engines int) {
	s.length, s.engines, s.flows = time.Second, engines, map[string]int{}
	s.intervals = append(s.intervals, interval{})
}

// pass advances time to at: the current holdings were held since the last event.
func (s *series) pass(at time.Duration, held []int, queued int) {
	for at >= s.length*time.Duration(len(s.intervals)) {
		last := &s.intervals[len(s.intervals)-1]
		last.held, last.queued, last.complete = append(last.held[:0], held...), queued, true
		if len(s.intervals) == mostIntervals {
			s.halve()
		}
		s.intervals = append(s.intervals, interval{})
	}
}

// halve joins each two intervals.
func (s *series) halve() {
	s.length *= 2
	for i := range s.intervals[:len(s.intervals)/2] {
		a, b := s.intervals[2*i], s.intervals[2*i+1]
		a.grants += b.grants
		a.wait += b.wait
		a.answers += b.answers
		a.ttft += b.ttft
		a.prompt += b.prompt
		a.cached += b.cached
		for len(a.service) < len(b.service) {
			a.service = append(a.service, 0)
		}
		for f, tokens := range b.service {
			a.service[f] += tokens
		}
		a.held, a.queued, a.complete = b.held, b.queued, b.complete
		s.intervals[i] = a
	}
	s.intervals = s.intervals[:len(s.intervals)/2]
}

func (s *series) present() *interval { return &s.intervals[len(s.intervals)-1] }

func (s *series) granted(wait time.Duration) {
	i := s.present()
	i.grants++
	i.wait += wait
}

func (s *series) finished(v *visit, u use) {
	i := s.present()
	i.answers++
	if !v.first.IsZero() {
		i.ttft += v.first.Sub(epoch.Add(v.asked.At))
	}
	i.prompt += int64(v.asked.Prompt)
	i.cached += int64(u.cached)
	f := s.flow(v.asked.Flow)
	for len(i.service) <= f {
		i.service = append(i.service, 0)
	}
	i.service[f] += u.service
}

// flow returns the index of a flow in service. Indexes follow the flows' first arrivals.
func (s *series) flow(name string) int {
	f, known := s.flows[name]
	if known {
		return f
	}
	if len(s.names) >= mostSeriesFlows {
		name = otherFlows
	}
	if f, known = s.flows[name]; !known {
		f = len(s.names)
		s.names = append(s.names, name)
		s.flows[name] = f
	}
	return f
}
