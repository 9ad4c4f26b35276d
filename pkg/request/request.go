package request

import (
	"time"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/extproc/body"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Request has all that a decision about a request needs. ReadHeaders fills it, and ReadBody completes it.
type Request struct {
	// Known after the headers.

	// Tenant is its identity, or "" if no source has found one.
	Tenant string
	// User is the user of its tenant, Anonymous if no source has found one, or "" where tenants have no users.
	User string
	// Role is the role of its tenant, or of its user where tenants have users, or "". UnknownRole is set if it named one that does not exist.
	Role        string
	UnknownRole bool
	// API is the API of a request that certainly runs a model: a POST to a known path, of any content type, since an engine
	// may read the body as JSON whatever the client calls it. If such a request lacks a model where one is needed, that is
	// an error. Any other request has the model that is found, or none.
	API API
	// PromptOnly is set if its answer has no output.
	PromptOnly bool
	// PassesOn is set if it is known not to be inference, and is placed without queueing.
	PassesOn bool
	// Bodyless is set if it ends with its headers.
	Bodyless bool
	// QueueState is set if the client asks for the queue's state.
	QueueState bool
	// Explain is set if the client asks for the record of the decision, and may.
	Explain bool
	// Subset is the subset hint.
	Subset Subset
	// Requirements are the requirements of its endpoint.
	Requirements Requirements
	// Class is its class and its priorities; nil if it names none. Until Classify it is the class that it names.
	Class *fairqueue.Path
	// UnknownClass is set by Classify if it names a class that is neither an explicit one nor a family.
	UnknownClass bool
	// Deadline is the client's, or zero.
	Deadline time.Time
	// ContentLength is the announced length of the body, or -1.
	ContentLength int64
	// Control are the headers of the request that must not reach the model server, and Own the names of others.
	Control Slots
	Own     []string
	// Has are the headers that the request has.
	Has Slots
	// Unread are the headers that look trusted and that the configuration does not name.
	Unread Slots
	// BodyHidden is set if the body is needed, and Envoy does not show it before the destination is named.
	BodyHidden bool
	// MayReportUsage is set if the response may be a stream that reports usage if the body asks for it.
	MayReportUsage bool

	// Known once the body was read, or is not needed.

	// Model is the model that it is for, and Target the name under which engines serve it, or "".
	Model, Target string
	// Flow is the key of its flow.
	Flow string
	// Tier is the rank of its tier, and AskedTier the rank before the tenant's policy limited it. UnknownTier is set if it
	// named a tier that does not exist, which is ignored.
	Tier, AskedTier int
	UnknownTier     bool
	// StatedCost is the cost that the gateway states, or 0.
	StatedCost fairqueue.Cost
	// Size is the basis of the estimate of its cost in tokens. LooseLimit is set if Size.MaxOutput bounds the estimate
	// only: Envoy does not tell the number of answers of that length, and engines may read another limit than it does.
	Size       estimate.Request
	LooseLimit bool
	// Edits are the replacements in the body. AsksUsage is set if one of them asks for the usage of the answer.
	Edits     []body.Edit
	AsksUsage bool
	// Needs are its demands on an engine besides its model, as far as its path and its body, if that was read, tell.
	Needs Needs
	// Prompt has the blocks of its prompt, where affinity compares these, and Session the key of its session, where it
	// compares that; 0: none. PromptUnknown is set if it has neither, because its body was not read or names no session.
	Prompt        body.Blocks
	Session       uint64
	PromptUnknown bool
	// Streams is set if something is known of the prompt, and the client is known to want a stream.
	Streams bool
	// PartNotRewritten is set if the model is not replaced because Envoy shows only a part of the body.
	PartNotRewritten bool

	// Kept from the first step for the second.
	rules       *Rules
	known       Models
	draw        Draw
	identity    identity
	path        string // the entry of inferencePaths, or ""
	contentType string
	session     string // as a header names it
	envoyRead   *EnvoyRead
	declared    int // the rank of the tier that is declared; noRank: none
	asksUsage   bool
	hints       hints // that the headers leave to the body
}

// Input comes with the headers of a request, or is known when they come.
type Input struct {
	// End is set if the request ends with its headers.
	End bool
	// Mode is how Envoy shows the body.
	Mode BodyMode
	// AskUsage is set if Weir asks for the usage of a stream on behalf of its client, and can take it out again.
	AskUsage bool
	// Context has metadata and attributes.
	Context Context
	// Subset is the subset hint.
	Subset Subset
	// EnvoyRead is the part that Envoy has read of the request; nil if it tells nothing.
	EnvoyRead *EnvoyRead
	// Now is when the request came.
	Now time.Time
	// Models knows the models of the endpoints, and Draw draws the targets.
	Models Models
	Draw   Draw
}

// EnvoyRead is the part of a request that Envoy itself has read. Only Envoy can say it, so it counts like a trusted
// header: after the headers that the configuration names, and before the body, which is not asked for as far as this says
// enough. How many answers the request asks for is not told (n, best_of, several prompts).
type EnvoyRead struct {
	// Model is the model's name, or "".
	Model string
	// Streams is set if the client wants a stream.
	Streams bool
	// Input is the estimated length of the prompt, and Most that of the longest answer that the request allows, in
	// tokens; estimate.Unknown if they are not told.
	Input, Most int64
}

// BodyMode is how Envoy shows the body of a request.
type BodyMode uint8

// The modes of bodies.
const (
	None       BodyMode = iota // not at all
	Streamed                   // in chunks, after the headers were answered
	Buffered                   // in one message
	Partial                    // in one message, up to the buffer's limit
	FullDuplex                 // in chunks, which have to be sent back
	NumModes   = iota
)

// String returns the mode as Envoy's configuration spells it.
func (m BodyMode) String() string {
	return [NumModes]string{"NONE", "STREAMED", "BUFFERED", "BUFFERED_PARTIAL", "FULL_DUPLEX_STREAMED"}[m]
}

// hidden reports whether the destination has to be named before the body comes.
func (m BodyMode) hidden() bool { return m == None || m == Streamed }
