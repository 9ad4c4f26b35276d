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
	// TierName names its tier; an unknown name means the lowest tier. If it is empty, Tier is its rank, 0 being the
	// highest; a rank that does not exist means the lowest. A name remains right when a reload changes the ranks.
	TierName string
	Tier     int
	// Path names its class within the tier, and how urgent it is there; nil means that it names nothing.
	Path *fairqueue.Path
	// Cost is its work, which the queue charges, at least 1; 0 counts as 1.
	Cost fairqueue.Cost
	// Tokens is its part of the stock in tokens, as far as is known; 0 means as many as its cost.
	Tokens Tokens
	// Tenant is the identity whose quota counts the request; empty means that none does. Uses is the number of tokens
	// that its prompt and its answer are estimated to have; 0 means as many as its cost.
	Tenant string
	Uses   int64
	// Deadline is the client's own (from the stream or a deadline header); zero means none.
	Deadline time.Time
	// Placement is its constraint on endpoints, computed before the lock is acquired.
	Placement Placement
	// Explain asks for the Facts of the request.
	Explain bool
	// OnQueued is called at most once, in the caller's goroutine and outside the lock, before the request waits in the
	// queue, with the longest time that it may wait. The stream uses it to extend Envoy's timeout.
	OnQueued func(maxWait time.Duration)
}

type (
	// Tokens is a request's part of the stock in tokens; see stock.Tokens.
	Tokens = stock.Tokens
	// Placement is a request's constraint on endpoints; see dispatch.Placement.
	Placement = dispatch.Placement
	// Facts are what was known of a request when it was decided on; see dispatch.Facts.
	Facts = dispatch.Facts
	// Endpoint is an endpoint's number; see dispatch.Endpoint.
	Endpoint = dispatch.Endpoint
	// Placer picks endpoints; see dispatch.Placer.
	Placer = dispatch.Placer
)

// NoEndpoint is the Endpoint of a request that is not placed.
const NoEndpoint = dispatch.NoEndpoint

// Usage is the numbers of tokens that an answer has reported: of its prompt, of itself, and of the part of the prompt that
// the engine had cached.
type Usage struct{ Input, Output, Cached int64 }

// Completion is the knowledge about a request when its stream has ended.
type Completion struct {
	// ID is the request's name in logs, for the last rejections; it may be empty.
	ID string
	// Status is the HTTP status of the model server's answer; 0 if no response headers were seen.
	Status int
	// RetryAfter is when the model server wants to be asked again, with status 429; 0: it does not say.
	RetryAfter time.Duration
	// Unsent means that the destination could not be sent, because the client or its proxy had just gone: the request
	// ends as cancelled, not as dispatched.
	Unsent bool
	// Cost is the real cost of the request, or fairqueue.UnknownCost, the zero value.
	Cost fairqueue.Cost
	// Usage is the usage that its answer has reported; the zero value if that is not known.
	Usage Usage
	// Used is the number of tokens of its prompt and its answer; 0 if that is not known. Unserved means that the model
	// server refused the request, so that the tenant's quota gets the tokens back.
	Used     int64
	Unserved bool
}
