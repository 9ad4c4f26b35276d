package extproc

import (
	"time"

	"github.com/weir-epp/weir/pkg/metering"
	"github.com/weir-epp/weir/pkg/usage"
)

// response is the state of the response to a request, as it passes.
type response struct {
	// status is its status; 0 if no headers were seen.
	status int
	// again is the model server's Retry-After; 0: none.
	again time.Duration
	// events is set if it is a stream of server-sent events.
	events bool
	// released is when its headers were released; zero if they were not.
	released time.Time
	// early is the part held before the first token; nil unless the state is holding.
	early *early
	// reading reads its usage.
	reading metering.Reading
	// asked is set if Weir, not the client, has requested the usage. strip removes it; nil if it stays.
	asked bool
	strip *usage.Strip
	// tells is set if its headers get the queue's state.
	tells bool
	// tellsQuota is set if its headers get the rest of the quota.
	tellsQuota bool
	// tellsDecision is set if its headers get the record of the decision.
	tellsDecision bool
	// elsewhere is the serving endpoint if it is not the picked one. The gate's finding is added at the end of the stream.
	elsewhere string
}

// early is the part of a response before its first token, while the headers are held.
type early struct {
	tokenWatch
	bytes []byte
}

// maxEarlyBytes is the largest number of bytes kept of one response.
const maxEarlyBytes = 16 << 10

// keep keeps the next part and reports whether there was room for it.
func (e *early) keep(b []byte) bool {
	if len(e.bytes)+len(b) > maxEarlyBytes {
		return false
	}
	e.bytes = append(e.bytes, b...)
	return true
}

// usage returns the usage that the response has reported, and reports whether it is the whole: a truncated response has
// reported only a part. With promptOnly the response has no output.
func (r *response) usage(promptOnly bool) (t usage.Tokens, whole bool) {
	if p := r.reading.Report(promptOnly); p.Known && p.Whole {
		return p.Tokens, true
	}
	return t, false
}

// beginStrip begins to remove the usage from a response whose client has not requested it. The announced length of such
// a response is no longer valid.
func (r *response) beginStrip(head responseHead) {
	if r.asked && head.events && !head.encoded {
		r.strip = &usage.Strip{}
	}
}

// kept returns the bytes of a part of the body that go to the client.
func (r *response) kept(b []byte, end bool) []byte {
	if r.strip == nil {
		return b
	}
	return r.strip.Next(b, end)
}

// rest returns the bytes of an event truncated by the end of the body.
func (r *response) rest() []byte {
	if r.strip == nil {
		return nil
	}
	return r.strip.Rest()
}
