package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/recording"
)

// Clients is the assumed behavior of a recording's clients under another configuration.
type Clients string

const (
	// ClientsAuto assumes a closed loop for each flow whose arrivals look like one.
	ClientsAuto Clients = "auto"
	// ClientsOpen makes all requests arrive at their recorded times.
	ClientsOpen Clients = "open"
	// ClientsClosed makes each client send its next request when the one before has ended.
	ClientsClosed Clients = "closed"
)

// ParseClients returns the Clients of this name.
func ParseClients(name string) (Clients, error) {
	c := Clients(name)
	if !slices.Contains([]Clients{ClientsAuto, ClientsOpen, ClientsClosed}, c) {
		return "", fmt.Errorf("%q: must be one of auto, open, closed", name)
	}
	return c, nil
}

// A closed loop shows in a recording: a request of the flow arrives when another one has ended, so the number of its
// waiting and running requests hardly changes. These are the limits for recognizing one.
const (
	loopRequests   = 3    // times the clients: the least number of requests
	leastLoop      = 20   // the least number of requests in any case
	loopDispersion = 0.25 // the largest variance of the number of its requests over their mean number; 1 at random arrivals
	loopThinking   = 0.25 // the largest mean pause, as a part of the mean time from arrival to end
	loopRefused    = 0.05 // the largest part of its requests that were rejected on arrival
	loopSilence    = time.Second
	loopIdle       = 3  // times its mean cycle: a client that is silent for longer has left
	loopPause      = 10 // times its mean pause: a client that is silent for less is about to send
	leastPause     = 10 * time.Millisecond
	loopOverlap    = 10 * time.Millisecond // the longest delay of an answer's end behind its client's next request
)

// crowd is the clients of one flow, in a period without a longer pause of the flow. Each sends a request when the one
// before has ended.
type crowd struct {
	requests []*recording.Visit // by sending
	pauses   []time.Duration    // between an end and the next request
	next     int                // index of the next request to send; wraps around
	paused   int                // index of the next pause to take
}

// client is one client of a crowd, or nil for requests that arrive at their recorded times.
type client struct {
	crowd *crowd
	until time.Time // the last time of sending, in the recording
}

// follow returns the client's next request after one that ended now, and its time; ok is false if there is none. Times
// are the recording's.
func (c *client) follow(now time.Time, rejected bool) (of *recording.Visit, at time.Time, ok bool) {
	if c == nil || len(c.crowd.requests) == 0 {
		return nil, time.Time{}, false
	}
	w := c.crowd
	pause := time.Duration(0)
	if len(w.pauses) > 0 {
		pause = w.pauses[w.paused%len(w.pauses)]
		w.paused++
	}
	if rejected {
		pause = max(pause, afterRejection)
	}
	if at = now.Add(pause); at.After(c.until) {
		return nil, time.Time{}, false
	}
	of = w.requests[w.next%len(w.requests)]
	w.next++
	return of, at, true
}

// loopsOf finds the clients of a recording. begins has the clients by the request that begins their loop, and follows
// the further requests of loops.
func loopsOf(h *recording.History, clients Clients) (begins map[*recording.Visit]*client, follows map[*recording.Visit]bool) {
	begins, follows = map[*recording.Visit]*client{}, map[*recording.Visit]bool{}
	if clients == ClientsOpen {
		return begins, follows
	}
	flows := map[string][]*recording.Visit{} // by arrival
	for _, v := range h.Visits {
		if !v.PassedOn {
			flows[v.Arrival.Flow] = append(flows[v.Arrival.Flow], v)
		}
	}
	for _, visits := range flows {
		for _, p := range phasesOf(visits, h.To) {
			if clients == ClientsClosed || p.isLoop() {
				p.add(begins, follows)
			}
		}
	}
	return begins, follows
}

// phase is requests of a flow without a longer pause between them, in chains that may be one client's each. In a chain,
// each request follows the one that ended last before it and has no successor yet.
type phase struct {
	visits []*recording.Visit
	chains [][]*recording.Visit
	of     []int // the chain of each visit
	pauses []time.Duration
	// Sums over the arrivals, without the first ones, as many as chains: of the flow's waiting and running requests,
	// and of their squares.
	present, squares, counted float64
	inside                    time.Duration // mean time from the arrival to the end
	refused                   int           // as they came
	until                     time.Time     // when its clients left
}

// phasesOf returns the phases of a flow.
func phasesOf(visits []*recording.Visit, to time.Time) (phases []*phase) {
	silence := max(loopSilence, meanInside(visits))
	begin, end := 0, time.Time{} // end is the last end until now
	for i, v := range visits {
		if i > begin && !end.IsZero() && v.At.Sub(end) > silence {
			phases = append(phases, newPhase(visits[begin:i], v.At))
			begin = i
		}
		if ended := v.Ended; ended.IsZero() {
			end = to // nothing follows
		} else if ended.After(end) {
			end = ended
		}
	}
	return append(phases, newPhase(visits[begin:], to))
}

// meanInside returns the mean time from the arrival to the end.
func meanInside(visits []*recording.Visit) time.Duration {
	sum, n := time.Duration(0), 0
	for _, v := range visits {
		if !v.Ended.IsZero() && !v.Present {
			sum += v.Ended.Sub(v.At)
			n++
		}
	}
	return sum / time.Duration(max(1, n))
}

// newPhase makes the chains. to is the begin of the next phase, or the end of the recording.
func newPhase(visits []*recording.Visit, to time.Time) *phase {
	p := &phase{visits: visits, of: make([]int, len(visits)), inside: meanInside(visits)}
	ends := make([]int, 0, len(visits)) // indexes of the ended ones, by end
	for i, v := range visits {
		if !v.Ended.IsZero() {
			ends = append(ends, i)
		}
		if v.Outcome != dispatch.OutcomeDispatched && v.Ended.Equal(v.At) {
			p.refused++
		}
		p.of[i] = -1
	}
	slices.SortStableFunc(ends, func(a, b int) int { return visits[a].Ended.Compare(visits[b].Ended) })
	var idle []int // chains by the end of their last request
	var present []float64
	ended := 0
	overlap := min(loopOverlap, p.inside/4)
	for i, v := range visits {
		for ; ended < len(ends) && visits[ends[ended]].Ended.Sub(v.At) <= overlap && p.of[ends[ended]] >= 0; ended++ {
			idle = append(idle, p.of[ends[ended]])
		}
		if n := len(idle); n > 0 {
			c := idle[n-1]
			idle = idle[:n-1]
			last := p.chains[c][len(p.chains[c])-1]
			p.pauses = append(p.pauses, max(0, v.At.Sub(last.Ended)))
			p.chains[c] = append(p.chains[c], v)
			p.of[i] = c
		} else {
			p.of[i] = len(p.chains)
			p.chains = append(p.chains, []*recording.Visit{v})
		}
		present = append(present, float64(i+1-ended))
	}
	for _, n := range present[min(len(p.chains), len(present)):] {
		p.present += n
		p.squares += n * n
		p.counted++
	}
	p.until = p.stops(to)
	return p
}

// stops returns the time at which the clients left: their last request, if an answer ended after it without a further
// request in time; otherwise to, since they had not left.
func (p *phase) stops(to time.Time) time.Time {
	last := p.visits[len(p.visits)-1].At
	due := to.Add(-max(leastPause, loopPause*p.pause()))
	for _, v := range p.visits {
		if !v.Ended.IsZero() && v.Ended.After(last) && v.Ended.Before(due) {
			return last
		}
	}
	return to
}

// pause returns the mean pause between an end and the next request.
func (p *phase) pause() time.Duration {
	sum := time.Duration(0)
	for _, pause := range p.pauses {
		sum += pause
	}
	return sum / time.Duration(max(1, len(p.pauses)))
}

// cycle returns the mean time from a request to its client's next one.
func (p *phase) cycle() time.Duration { return p.inside + p.pause() }

// isLoop reports whether the arrivals look like a closed loop.
func (p *phase) isLoop() bool {
	n := len(p.visits)
	if n < max(leastLoop, loopRequests*len(p.chains)) || float64(p.refused) > loopRefused*float64(n) ||
		float64(p.pause()) > loopThinking*float64(p.inside) {
		return false
	}
	mean := p.present / p.counted
	return p.squares/p.counted-mean*mean <= loopDispersion*mean
}

// add adds the clients of a phase.
func (p *phase) add(begins map[*recording.Visit]*client, follows map[*recording.Visit]bool) {
	w := &crowd{pauses: p.pauses}
	idle := loopIdle * p.cycle()
	for _, chain := range p.chains {
		last, c := chain[len(chain)-1], &client{crowd: w, until: p.until}
		if !last.Ended.IsZero() && p.until.Sub(last.Ended) > idle {
			c.until = last.At
		}
		begins[chain[0]] = c
	}
	for _, v := range p.visits {
		if begins[v] == nil {
			follows[v] = true
			w.requests = append(w.requests, v)
		}
	}
	for _, chain := range p.chains {
		if !chain[0].Present { // such requests are not wholly known
			w.requests = append(w.requests, chain[0])
		}
	}
}
