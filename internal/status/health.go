package status

import (
	"fmt"

	"github.com/weir-epp/weir/internal/printable"
)

// Verdict is the state of all replicas together. Its value is an exit code.
type Verdict int

// The verdicts, as exit codes.
const (
	Healthy     Verdict = 0
	Degraded    Verdict = 1 // with reasons
	Unreachable Verdict = 2 // no replica answers
)

// String returns the verdict as one word.
func (v Verdict) String() string {
	return [...]string{"healthy", "degraded", "unreachable"}[v]
}

// Judge returns the verdict on all replicas, and the reasons unless it is Healthy: each replica's reasons, replicas
// without an answer, and the lack of a leader. A follower is healthy.
func Judge(answers []Answer) (v Verdict, reasons []string) {
	reached, leads := 0, false
	named := func(a *Answer, text string) string {
		if len(answers) == 1 {
			return text
		}
		return a.Address + ": " + text
	}
	for i := range answers {
		a := &answers[i]
		if a.Err != nil {
			reasons = append(reasons, named(a, Plain(a.Err.Error())))
			continue
		}
		reached++
		leads = leads || a.Document.Pool.Leads
		for _, r := range a.Document.Reasons {
			reasons = append(reasons, named(a, Plain(r.ID+": "+r.Text)))
		}
	}
	if reached == 0 {
		return Unreachable, reasons
	}
	if leader := leaderOf(answers); !leads && reached == len(answers) && leader == "" {
		reasons = append(reasons, "no-leader: no replica leads, and none knows a leader")
	}
	if len(reasons) > 0 {
		return Degraded, reasons
	}
	return Healthy, nil
}

// leaderOf returns the leader named by the replicas; "" if none is.
func leaderOf(answers []Answer) string {
	for _, a := range answers {
		if a.Document != nil && a.Document.Pool.Leader != "" {
			return a.Document.Pool.Leader
		}
	}
	return ""
}

// Role returns a replica's role in words, such as leader or follower.
func (p *Pool) Role() string {
	switch {
	case p.Leads && p.Leader != "":
		return "the leader, " + Plain(p.Leader)
	case p.Leads:
		return ""
	case p.Leader != "":
		return fmt.Sprintf("a follower: the leader is %s", Plain(p.Leader))
	}
	return "a follower: no leader is known"
}

// Plain returns a client-chosen name without control characters, safe for a terminal.
func Plain(name string) string {
	return printable.Text(name)
}
