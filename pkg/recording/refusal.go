package recording

import (
	"time"

	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/dispatch"
)

// Refuse records a request that ended before it arrived, and when its client should retry.
func (r *Recorder) Refuse(now time.Time, f *dispatch.Refusal) {
	r.event(refuse, now)
	flags := len(r.buf)
	r.buf = append(r.buf, 0)
	r.text(f.Flow, r.hide)
	r.text(f.Model, nil)
	r.number(uint64(f.Outcome))
	r.number(uint64(f.RetryAfter))
	r.buf[flags] |= r.id(f.ID)
}

// refuse repeats a refusal.
func (p *player) refuse(now time.Time) error {
	flags := p.in.octet()
	r := dispatch.Refusal{Flow: p.in.key(), Model: p.in.text(), Outcome: p.in.outcome()}
	r.RetryAfter = time.Duration(p.in.number())
	r.ID = p.in.id(flags)
	if p.in.broken {
		return errBroken
	}
	if replayed := p.machine.Refuse(now, r.Outcome); replayed != r.RetryAfter {
		return p.differs("come back in "+r.RetryAfter.String(), "in "+replayed.String())
	}
	if p.watch != nil {
		p.watch.refusedEarly(&r)
	}
	return nil
}

// id reads a request's ID in the form given by flags.
func (r *reader) id(flags byte) string {
	switch {
	case flags&hasUUID != 0:
		return uuidOf(r.fixed(uuidSize))
	case flags&hasText != 0:
		return string(r.bytes())
	}
	return ""
}

// refusalRecord returns the decision record of a request refused before it arrived.
func refusalRecord(now time.Time, r *dispatch.Refusal) decision.Record {
	return decision.Record{
		ID: r.ID, Model: r.Model, Outcome: r.Outcome.String(), RetryAfter: r.RetryAfter.Seconds(),
		Facts: dispatch.Facts{Arrived: now.Round(0).UTC(), Flow: r.Flow},
	}
}
