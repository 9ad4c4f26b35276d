package decision

import (
	"fmt"
	"strings"
	"time"
)

// Lines returns the record as text, without the arrival, the wait and the end, which a story of the request has
// already.
func (r *Record) Lines() []string {
	var p printer
	p.flow(r)
	p.limit(r)
	if r.Placement != nil {
		p.placement(r.Endpoint, r.Placement)
	} else if r.Endpoint != "" {
		p.say("It went to %s.", r.Endpoint)
	}
	for i := range p.lines {
		p.lines[i] = Printable(p.lines[i])
	}
	return p.lines
}

// Text returns the whole record as text.
func (r *Record) Text() string {
	var p printer
	line := "Request " + Printable(r.name())
	if !r.Arrived.IsZero() {
		line += " arrived at " + r.Arrived.UTC().Format(time.RFC3339Nano)
	}
	line += fmt.Sprintf(": flow %q", r.Flow)
	if r.Tier != "" {
		line += ", tier " + r.Tier
	}
	if r.Model != "" {
		line += fmt.Sprintf(", model %q", r.Model)
	}
	if r.Cost > 0 {
		line += fmt.Sprintf(", cost %d", r.Cost)
	}
	p.say("%s.", Printable(line))
	switch end := ""; {
	case r.Bypassed:
		p.say("It went at once, and ended as %s.", r.Outcome)
	default:
		if r.RetryAfter > 0 {
			end = fmt.Sprintf(" Its client was told to come back in %v.", seconds(r.RetryAfter))
		}
		p.say("It ended as %s after %v in the queue.%s", r.Outcome, seconds(r.Waited), end)
	}
	return strings.Join(append(p.lines, r.Lines()...), "\n") + "\n"
}

// name returns the request's ID, or its number.
func (r *Record) name() string {
	switch {
	case r.ID == "" && r.Number > 0:
		return fmt.Sprint(r.Number)
	case r.ID == "":
		return "without an ID"
	}
	return r.ID
}

// seconds returns a time in seconds, to the microsecond.
func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
}

// printer collects lines.
type printer struct{ lines []string }

func (p *printer) say(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

// flow describes the queue's state of the request's flow.
func (p *printer) flow(r *Record) {
	if r.Weight > 0 {
		role := ""
		if r.Role != "" {
			role = fmt.Sprintf(" by its role %s", r.Role)
		}
		p.say("Its flow had a weight of %g%s, %d of its requests waited, and %d were in flight.", r.Weight, role, r.Waiting, r.InFlight)
	} else if r.Role != "" {
		p.say("Its tenant has the role %s.", r.Role)
	}
	if r.Quantum > 0 {
		p.say("Its class %q had a deficit of %d, and earns %d a round.", r.Class, r.ClassDeficit, r.Quantum)
	}
	if f := r.FairShare; f != nil {
		lowered := ""
		if f.Factor < 1 {
			lowered = fmt.Sprintf("; its priority was lowered by the factor %g", f.Factor)
		}
		p.say("By fairshare the flow was owed %d, had used %d recently and had burst credits of %d%s.", f.Deficit, f.Recent, f.BurstCredits, lowered)
	}
	if q := r.Quota; q != nil {
		p.say("Of the quota of its tenant, %d tokens, %d were left; all of them are in %v.", q.Limit, q.Remaining, seconds(q.Reset))
	}
}

// limit describes the limit that rejected the request, and its largest holders.
func (p *printer) limit(r *Record) {
	l := r.Limit
	if l == nil {
		return
	}
	var line strings.Builder
	fmt.Fprintf(&line, "It met the limit %s of %s", l.Name, l.Text())
	for i, h := range l.Holders {
		user := ""
		if h.User != "" {
			user = fmt.Sprintf(", user %q", h.User)
		}
		fmt.Fprintf(&line, "%s flow %q%s holds %d", [...]string{":", ",", ","}[min(i, 2)], h.Flow, user, h.Held)
	}
	p.say("%s.", line.String())
}
