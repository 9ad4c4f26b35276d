package flowcontrol

import (
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// Request describes one request to the controller. The caller fills it, passes it to TryEnqueue once, and does not
// change it until TryEnqueue has returned.
type Request struct {
	// ID is the request's name in logs, for a recording; it may be empty.
	ID string
	// Flow is the key of the flow; requests with equal keys (and tiers) share one fair share.
	Flow string
	// Model and TargetModel are the labels of the request's metrics.
	Model, TargetModel string
	// TierName names its tier; an unknown name means the lowest tier. If the name is empty, Tier is the rank, with 0
	// the highest; an unknown rank means the lowest. A name stays right when a reload changes the ranks.
	TierName string
	Tier     int
	// Path names its class within the tier and its urgency there; nil names nothing.
	Path *fairqueue.Path
	// Cost is its work, which the queue charges, at least 1; 0 counts as 1.
	Cost fairqueue.Cost
	// Tokens is its estimated part of the stock in tokens; 0 means as many as its cost.
	Tokens Tokens
	// Tenant is the identity whose quota counts the request; empty means no quota. Uses is the estimated number of
	// tokens of prompt and answer; 0 means as many as its cost.
	Tenant string
	Uses   int64
	// Deadline is the client's own (from the stream or a deadline header); zero means none.
	Deadline time.Time
	// Placement is its constraint on endpoints, computed before the lock is acquired.
	Placement Placement
	// Explain asks for the Facts of the request.
	Explain bool
	// OnQueued is called at most once, in the caller's goroutine and outside the lock, before the request waits in the
	// queue, with its longest possible wait. The stream uses it to extend Envoy's timeout.
	OnQueued func(maxWait time.Duration)
}

type (
	// Tokens is a request's part of the stock in tokens; see stock.Tokens.
	Tokens = stock.Tokens
	// Placement is a request's constraint on endpoints; see dispatch.Placement.
	Placement = dispatch.Placement
	// Facts are the facts of a decision; see dispatch.Facts.
	Facts = dispatch.Facts
	// Endpoint is an endpoint's number; see dispatch.Endpoint.
	Endpoint = dispatch.Endpoint
	// Placer picks endpoints; see dispatch.Placer.
	Placer = dispatch.Placer
)

// NoEndpoint is the Endpoint of a request that is not placed.
const NoEndpoint = dispatch.NoEndpoint

// Usage has the numbers of tokens reported in an answer: of the prompt, of the answer, and of the cached part of the
// prompt.
type Usage struct{ Input, Output, Cached int64 }

// Completion describes a request at the end of its stream.
type Completion struct {
	// ID is the request's name in logs, for the last rejections; it may be empty.
	ID string
	// Status is the HTTP status of the model server's answer; 0 if no response headers were seen.
	Status int
	// RetryAfter is the model server's Retry-After with status 429; 0: none.
	RetryAfter time.Duration
	// Unsent means that the destination could not be sent, because the client or its proxy had just gone: the request
	// ends as cancelled instead of dispatched.
	Unsent bool
	// Cost is the real cost of the request, or fairqueue.UnknownCost, the zero value.
	Cost fairqueue.Cost
	// Usage is the reported usage of its answer; the zero value if unknown.
	Usage Usage
	// Used is the number of tokens of its prompt and its answer; 0 if unknown. Unserved means that the model server
	// refused the request, so that its tokens are refunded to the tenant's quota.
	Used     int64
	Unserved bool
}
