package scheduling

import (
	"time"

	"github.com/weir-epp/weir/pkg/invalid"
)

// Points are the constants of MindRouter's scores. An endpoint's total is
//
//	Loaded                             if it has the request's model loaded
//	Utilisation · (100 % − u)          UtilisationUnknown without u, the engine's own utilisation
//	Queue / (1 + QueueSlope · d)       with d the requests there
//	Throughput / (1 + pace/Scale)      with pace the time of a thousand units of cost, Throughput without it
//	Latency / (1 + latency/Scale)      LatencyUnknown without it
//	Priority · p                       with p the endpoint's configured priority
//
// and the highest total goes first. All terms are computed in millionths of a point.
type Points struct {
	// Loaded, Utilisation, Queue, Throughput and Latency are the most points of each term, and UtilisationUnknown and
	// LatencyUnknown the points of an unknown utilisation or latency; 0 to MaxPoints.
	Loaded, Utilisation, UtilisationUnknown, Queue, Throughput, Latency, LatencyUnknown int64
	// Priority is the points of one step of an endpoint's priority; 0 to MaxPriorityPoints.
	Priority int64
	// QueueSlope is how steeply the points of the queue fall, and Alpha the weight of the newest answer in the means of latency
	// and pace, both in millionths: 0 to 1000, and above 0 and at most 1.
	QueueSlope, Alpha int64
	// Scale is the time at which half of the points are left; 1 ms to 10 minutes.
	Scale time.Duration
}

// Limits of Points, and of their inputs, so that no total overflows and none is below 0.
const (
	MaxPoints         = 10_000
	MaxPriorityPoints = 1000
	// MaxPriority is the highest priority of an endpoint, and its negative the lowest.
	MaxPriority = 100

	maxQueueSlope = 1000 * Millionths
	minScale      = time.Millisecond
	maxScale      = 10 * time.Minute
	longestAnswer = int64(24 * time.Hour / time.Microsecond)
)

func (p *Points) check(ps *invalid.Problems) {
	for _, term := range []struct {
		name  string
		value int64
	}{
		{"Loaded", p.Loaded},
		{"Utilisation", p.Utilisation},
		{"UtilisationUnknown", p.UtilisationUnknown},
		{"Queue", p.Queue},
		{"Throughput", p.Throughput},
		{"Latency", p.Latency},
		{"LatencyUnknown", p.LatencyUnknown},
	} {
		invalid.Within(ps, invalid.At("Points", term.name), term.value, 0, MaxPoints)
	}
	invalid.Within(ps, invalid.At("Points", "Priority"), p.Priority, 0, MaxPriorityPoints)
	if p.QueueSlope < 0 || p.QueueSlope > maxQueueSlope {
		ps.Add(invalid.At("Points", "QueueSlope"), p.QueueSlope, "must be from 0 to %d", maxQueueSlope/Millionths)
	}
	if p.Alpha <= 0 || p.Alpha > Millionths {
		ps.Add(invalid.At("Points", "Alpha"), p.Alpha, "must be above 0 and at most 1")
	}
	invalid.Within(ps, invalid.At("Points", "Scale"), p.Scale, minScale, maxScale)
}

// Score is the terms of an endpoint's total, in millionths of a point.
type Score struct {
	Loaded      int64 `json:"loaded"`
	Utilisation int64 `json:"utilisation"`
	Queue       int64 `json:"queue"`
	Throughput  int64 `json:"throughput"`
	Latency     int64 `json:"latency"`
	Priority    int64 `json:"priority"`
}

// Total returns the sum.
func (s *Score) Total() int64 {
	return s.Loaded + s.Utilisation + s.Queue + s.Throughput + s.Latency + s.Priority
}

// score returns the terms of an endpoint with a load, for a request whose model is loaded there or not.
func (p *Points) score(l Load, loaded bool) (s Score) {
	if loaded {
		s.Loaded = p.Loaded * Millionths
	}
	s.Utilisation = p.UtilisationUnknown * Millionths
	if l.Signals.StatesUtilised {
		s.Utilisation = p.Utilisation * (Millionths - max(0, min(int64(l.Signals.Utilised), Millionths)))
	}
	held := int64(min(max(0, l.Held), 1_000_000_000))
	s.Queue = p.Queue * Millionths * Millionths / (Millionths + p.QueueSlope*held)
	s.Throughput = p.Throughput * Millionths
	if l.Pace > 0 {
		s.Throughput = p.part(p.Throughput, l.Pace)
	}
	s.Latency = p.LatencyUnknown * Millionths
	if l.Latency > 0 {
		s.Latency = p.part(p.Latency, l.Latency)
	}
	s.Priority = p.Priority * int64(l.Priority) * Millionths
	return s
}

// part returns the rest of some points after a mean time in microseconds.
func (p *Points) part(points, mean int64) int64 {
	scale := int64(p.Scale / time.Microsecond)
	return points * Millionths * scale / (scale + mean)
}

// pointed compares by points.
type pointed struct{ Points }

// standing implements comparison: the total without the points of a loaded model, shifted so that it is not below 0.
func (p *pointed) standing(l Load) Standing {
	s := p.score(l, false)
	return Standing(s.Total() + MaxPriority*p.Priority*Millionths)
}

// cost implements comparison. A request's tokens do not count.
func (p *pointed) cost(s *spot, _ int64) Cost { return Cost(MostStanding - p.standing(s.load())) }

// wait implements comparison. Other prompts do not count.
func (p *pointed) wait(int64) Cost { return 0 }

// bonus implements comparison.
func (p *pointed) bonus() (Standing, bool) { return Standing(p.Loaded * Millionths), true }

// means are the exponential means of an endpoint's answers to Weir's own requests, in microseconds; 0: none yet.
type means struct {
	latency int64 // from the dispatch to the end of the answer
	pace    int64 // of a thousand units of cost
}

// add adds an answer with its time and its cost; 0 is an unknown cost.
func (m *means) add(alpha int64, took time.Duration, cost int64) {
	us := min(int64(took/time.Microsecond), longestAnswer)
	m.latency = mean(m.latency, max(1, us), alpha)
	if cost > 0 {
		m.pace = mean(m.pace, max(1, min(us*1000/cost, longestAnswer)), alpha)
	}
}

// mean adds x to a mean. The first value becomes the mean.
func mean(of, x, alpha int64) int64 {
	if of == 0 {
		return x
	}
	return max(1, of+(x-of)*alpha/Millionths)
}

// Times reports whether Completed must be called with the times of answers.
func (b *Board) Times() bool {
	_, points := b.scheduler.by.bonus()
	return points
}

// Completed notes an engine's answer to one of Weir's requests, with the time and the cost; 0: unknown. Answers of
// endpoints outside the pool do not count.
func (b *Board) Completed(id EndpointID, took time.Duration, cost int64) {
	p, ok := b.ring.position(id)
	if !ok || took < 0 {
		return
	}
	if by, ok := b.scheduler.by.(*pointed); ok {
		b.spots[p].means.add(by.Alpha, took, cost)
		b.changed(p)
	}
}
