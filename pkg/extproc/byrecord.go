package extproc

import (
	logv3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
)

// fate is what became of a record of Envoy's access log.
type fate uint8

const (
	recordUsed    fate = iota // its tokens were taken
	recordEmpty               // its request is known, but it has no usage
	recordInvalid             // its request is known, but its numbers make no sense; the same as empty
	recordLate                // its request has been charged
	recordUnknown             // its ID is not of this replica
	recordUnnamed             // it names no request
	numFates      = iota
)

// proves reports whether a record of this fate names a request that nobody but an Envoy of ours can name: those that have
// been charged may have been seen by others since.
func (f fate) proves() bool { return f == recordUsed || f == recordEmpty || f == recordInvalid }

// fateLabels are the values of the label "outcome" in metrics.
var fateLabels = [numFates]string{
	recordUsed: "used", recordEmpty: "empty", recordInvalid: "invalid", recordLate: "late", recordUnknown: "unknown",
	recordUnnamed: "unnamed",
}

// nameInLog gives a granted request a name for the records of Envoy's access log, if its usage is learned from them. What
// is passed on without queueing has none.
func (st *mainStream) nameInLog() {
	if st.lease == nil || st.request.PassesOn {
		return
	}
	switch st.cfg.Usage {
	case UsageALS:
	case UsageAuto:
		if st.charge == nil || !st.server.roll.wanted() {
			return
		}
	default:
		return
	}
	st.inLog = st.server.roll.add(st.lease, st.request.PromptOnly)
}

// readEntry reads one record of Envoy's access log.
func (s *Server) readEntry(entry *logv3.HTTPAccessLogEntry) fate {
	id, r := readRecord(entry)
	if id == "" {
		return recordUnnamed
	}
	q, elsewhere := s.roll.take(id, &r)
	switch {
	case elsewhere:
		return recordUnknown
	case q == nil:
		return recordLate
	}
	s.metrics.ends[r.end].Inc()
	if r.bad {
		return recordInvalid
	}
	if _, known := r.usage(q.promptOnly); !known {
		return recordEmpty
	}
	return recordUsed
}

// needsRecord reports whether a request that has ended awaits its record: it went to an engine, nothing else has told its
// usage, and a record is to be expected.
func (st *mainStream) needsRecord() bool {
	if st.inLog == nil || st.rejection != nil || st.completion.Unsent {
		return false
	}
	if _, known := st.reportedUsage(); known {
		return false
	}
	return st.cfg.Usage == UsageALS || st.server.roll.comes()
}

// awaitRecord has a request whose lease is settled charged when its record comes, or when it has not come in time.
func (st *mainStream) awaitRecord() {
	switch {
	case st.inLog == nil:
	case st.awaits:
		e := st.ending()
		st.server.roll.await(st.inLog, &e)
	default:
		st.server.roll.remove(st.inLog)
	}
}

// chargeByRecord charges a request that has ended, with its record or, if none has come, as one without usage.
func (s *Server) chargeByRecord(q *inLog, r *record) {
	defer s.recovered("charging a request by its record")
	e := q.ending
	var u reported
	if r != nil {
		if e.status == 0 {
			e.status = r.status
		}
		e.unsent = e.unsent || r.end == endUnsent
		u = reported{whole: r.end == endWhole, began: r.end != endWhole, by: UsageALS}
		u.Tokens, u.known = r.usage(q.promptOnly)
		if u.known && u.whole {
			s.metrics.countUsage(u.Tokens)
		}
	}
	if e.charge != nil {
		s.noteUsage(e, &u)
		q.lease.OnUsage(s.costs.atEnd(e, u, s.metrics), 0)
	}
}
