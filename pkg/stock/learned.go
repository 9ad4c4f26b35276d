package stock

import "time"

// StartSlots is the bound of a backend of which nothing is known, in requests: a usual --max-num-seqs of a vLLM on one
// accelerator.
const StartSlots = 64

// Parameters of a bound that follows its engine.
const (
	overfull  = 2                // waiting requests that are no accident
	patience  = 9 * time.Second  // longer than an engine reads a prompt of 128k tokens
	leastPace = 10_000           // tokens of a request in 1,000 s: slower engines may be reading prompts
	quietTime = 10 * time.Second // without growth after a preemption
)

// mostProduced is the most tokens between two reports that count.
const mostProduced = 1 << 40

// Report is an engine's report of itself, in requests, with its backend's holdings by the ledger.
type Report struct {
	// Running and Waiting are the requests inside the engine: in its batch, and in its queue for want of room.
	Running, Waiting int
	// Preemptions and Produced, its tokens, are counters since the engine's start; Produced is 0 if it is unknown.
	Preemptions, Produced int64
	// Held is the backend's holdings, others' included.
	Held int
}

// Learned is a bound that follows its engine; see the package comment for the rule. The zero value is not valid.
type Learned struct {
	bound   int
	moved   bool  // it has moved from its beginning
	shrunk  bool  // it has been less than before
	settled bool  // a request has ended since the bound last grew
	grownAt int64 // Report.Produced when it last grew

	stood int       // the bound of patience ago; the present one, if that is less
	grew  time.Time // when it last grew

	pace int64     // the most tokens of a request in 1,000 s
	at   time.Time // of the last report

	last  Report
	known bool // there is a last report
	row   crowd

	quiet time.Time // it does not grow before
}

// crowd is a row of reports with overfull waiting requests.
type crowd struct {
	reports int
	most    int       // that ran
	risen   time.Time // when more ran than in any report before
}

// add adds a report to the row, or ends it. It reports whether more ran than in any before.
func (c *crowd) add(now time.Time, r *Report) (risen bool) {
	switch {
	case r.Waiting < overfull:
		*c = crowd{}
	case c.reports == 0 || r.Running > c.most:
		*c = crowd{c.reports + 1, r.Running, now}
		return true
	default:
		c.reports++
	}
	return false
}

// NewLearned returns a bound that begins with start, clamped to 1 to MaxPerBackend.
func NewLearned(start int) Learned {
	start = max(1, min(start, MaxPerBackend))
	return Learned{bound: start, stood: start}
}

// Bound returns the bound in requests, 1 to MaxPerBackend.
func (l *Learned) Bound() int { return l.bound }

// Moved reports whether the engine has ever changed the bound, so that it says something of engines like it.
func (l *Learned) Moved() bool { return l.moved }

// Settled says that a request at the backend has ended.
func (l *Learned) Settled() { l.settled = true }

// Forget says that the engine's reports have stopped: the bound stays, and a row of reports begins anew.
func (l *Learned) Forget() { l.known, l.row = false, crowd{} }

// Follow takes a report, and reports whether the bound has changed. wanted reports whether a request waits that could go to
// the backend. It is asked only where the bound grows if so.
func (l *Learned) Follow(now time.Time, r Report, wanted func() bool) (changed bool) {
	before := l.bound
	restarted := l.known && (r.Preemptions < l.last.Preemptions || r.Produced < l.last.Produced)
	if restarted {
		l.shrunk, l.row, l.grownAt, l.pace = false, crowd{}, 0, 0
	}
	fast := l.fast(now, &r)
	full := !l.row.add(now, &r) && l.row.reports > 1
	if now.Sub(l.grew) >= patience {
		l.stood = l.bound
	}
	switch preempted := l.known && r.Preemptions > l.last.Preemptions; {
	case preempted:
		l.quiet = now.Add(quietTime)
		l.set(min(l.bound, r.Running))
	case full && (fast || now.Sub(l.row.risen) >= patience):
		l.set(l.enough(&r))
	case full && l.stood < l.bound:
		l.set(max(l.stood, l.enough(&r)))
	case l.mayGrow(now, &r) && wanted():
		grown := l.bound + 1
		if !l.shrunk {
			grown = l.bound + (l.bound+3)/4
		}
		l.set(grown)
		l.settled, l.grownAt, l.grew = false, r.Produced, now
	}
	l.stood = min(l.stood, l.bound)
	l.known, l.last, l.at = true, r, now
	return l.bound != before
}

// fast reports whether each running request has got its tokens about as fast as ever since the last report, so that the engine
// cannot have read long prompts.
func (l *Learned) fast(now time.Time, r *Report) bool {
	took := now.Sub(l.at).Milliseconds()
	running := int64(max(r.Running, l.last.Running))
	if !l.known || took <= 0 || running == 0 || r.Produced <= l.last.Produced {
		return false
	}
	pace := min(r.Produced-l.last.Produced, mostProduced) * 1_000_000 / (took * running)
	l.pace = max(l.pace, pace)
	return pace >= leastPace && 3*pace >= 2*l.pace
}

// enough returns a bound that keeps the engine full and one request waiting, by reports of an engine that keeps some waiting.
// Requests that are held and do not wait run, begin to with the next step, or are on their way: the running ones alone are too
// few, since an engine counts them when a step has ended some.
func (l *Learned) enough(r *Report) int {
	busy := max(r.Held-r.Waiting, l.row.most)
	return max(min(busy+1, l.bound), r.Running+1)
}

// mayGrow reports whether more would be of use if requests wait: none of them waits inside the engine, and the engine works.
// After the first shrink two reports in a row must say so, as it takes two to shrink: otherwise requests that arrive in bursts,
// of which every other report sees some waiting, would lift the bound without an end.
func (l *Learned) mayGrow(now time.Time, r *Report) bool {
	if l.shrunk && l.last.Waiting > 0 {
		return false
	}
	return r.Waiting == 0 && r.Held >= l.bound && l.known && l.works(r) && !now.Before(l.quiet)
}

// works reports whether the engine has done something since the bound last grew: an engine that hangs does not. Each of the
// running requests has got a token, or where tokens are not known one of them has ended.
func (l *Learned) works(r *Report) bool {
	if r.Produced > 0 {
		return r.Produced > l.last.Produced && r.Produced-l.grownAt >= int64(r.Running)
	}
	return l.settled
}

func (l *Learned) set(bound int) {
	bound = max(1, min(bound, MaxPerBackend))
	l.moved = l.moved || bound != l.bound
	l.shrunk = l.shrunk || bound < l.bound
	l.bound = bound
}
