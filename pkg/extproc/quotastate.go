package extproc

import (
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// A tenant with a quota of tokens gets its rest in the headers of OpenAI's API:
//
//	x-ratelimit-limit-tokens      the quota
//	x-ratelimit-remaining-tokens  what is left of it after this request, of which the estimate counts
//	x-ratelimit-reset-tokens      the time until all of it is free again, if nothing more is used: 6m0s, 350ms
//
// A rejection also has them, after the refund of its reservation. They are missing in the cases of queuestate.go.
var quotaHeaders = [...]string{"x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"}

// quotaState returns the headers of a standing; none for nil.
func quotaState(s *flowcontrol.QuotaStanding) []*corev3.HeaderValueOption {
	if s == nil {
		return nil
	}
	reset := (s.Reset + time.Millisecond - 1).Truncate(time.Millisecond)
	return []*corev3.HeaderValueOption{
		setHeader(quotaHeaders[0], strconv.FormatInt(s.Limit, 10)),
		setHeader(quotaHeaders[1], strconv.FormatInt(s.Remaining, 10)),
		setHeader(quotaHeaders[2], reset.String()),
	}
}

// uses returns the request's estimated tokens for its tenant's quota; 0 means as many as its cost.
func (g *grant) uses() int64 {
	if g.charge == nil {
		return 0
	}
	return g.charge.Uses()
}
