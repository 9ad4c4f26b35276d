package stock

import "time"

// StartSlots is the bound of an unknown backend, in requests: a usual --max-num-seqs of a vLLM on one accelerator.
const StartSlots = 64

// Parameters of a bound that follows its engine.
const (
	overfull  = 2                // waiting requests that are not by chance
	patience  = 9 * time.Second  // longer than an engine reads a prompt of 128k tokens
	leastPace = 10_000           // tokens of a request in 1,000 s: slower engines may be reading prompts
	quietTime = 10 * time.Second // without growth after a preemption
)

// mostProduced caps the counted tokens between two reports.
const mostProduced = 1 << 40

// Report is an engine's report about itself, in requests, with its backend's holdings by the ledger.
type Report struct {
	// Running and Waiting are the requests inside the engine: in its batch, and in its queue for want of room.
	Running, Waiting int
	// Preemptions and Produced (tokens) are counters since the engine's start; Produced is 0 if unknown.
	Preemptions, Produced int64
	// Held is the backend's holdings, including other Weirs'.
	Held int
}

// Learned is a bound that follows its engine; see the package comment for the rule. The zero value is not valid.
type Learned struct {
	bound   int
	moved   bool  // it has ever changed
	shrunk  bool  // it has been less than before
	settled bool  // a request has ended since the bound last grew
	grownAt int64 // Report.Produced when it last grew

	stood int       // the lesser of the bound patience ago and the present one
	grew  time.Time // when it last grew

	pace int64     // the most tokens of a request in 1,000 s
	at   time.Time // of the last report

	last  Report
	known bool // there is a last report
	row   crowd

	quiet time.Time // no growth before this time
}

// crowd is a row of reports with overfull waiting requests.
type crowd struct {
	reports int
	most    int       // that ran
	risen   time.Time // when the running requests last exceeded all earlier reports
}

// add adds a report to the row, or ends the row. It reports whether more requests ran than in any report before.
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

// Moved reports whether the engine has ever changed the bound, so that the bound is evidence for similar engines.
func (l *Learned) Moved() bool { return l.moved }

// Settled notes that a request at the backend has ended.
func (l *Learned) Settled() { l.settled = true }

// Forget notes that the engine's reports have stopped: the bound stays, and the row of reports starts over.
func (l *Learned) Forget() { l.known, l.row = false, crowd{} }

// Follow takes a report, and reports whether the bound has changed. wanted reports whether a waiting request could go
// to the backend; it is called only if the bound would then grow.
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

// fast reports whether each running request has got its tokens near the fastest pace since the last report, so that the
// engine cannot have read long prompts.
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

// enough returns a bound that keeps the engine full and one request waiting inside, from reports of an engine with
// waiting requests. Held requests that do not wait are running, about to run, or on their way. The running ones alone
// are too few, since an engine counts them after a step has ended some.
func (l *Learned) enough(r *Report) int {
	busy := max(r.Held-r.Waiting, l.row.most)
	return max(min(busy+1, l.bound), r.Running+1)
}

// mayGrow reports whether a larger bound is of use if requests wait here: none waits inside the engine, and the engine
// works. After the first shrink two reports in a row must agree, as for a shrink: otherwise bursts, of which every
// other report sees some waiting, would raise the bound without end.
func (l *Learned) mayGrow(now time.Time, r *Report) bool {
	if l.shrunk && l.last.Waiting > 0 {
		return false
	}
	return r.Waiting == 0 && r.Held >= l.bound && l.known && l.works(r) && !now.Before(l.quiet)
}

// works reports whether the engine has made progress since the bound last grew, unlike a hanging engine: each running
// request has got a token or, without token counts, one of them has ended.
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
