package request

import (
	"time"

	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Request has everything that a decision about a request needs. ReadHeaders fills it, and ReadBody completes it.
type Request struct {
	// Known after the headers.

	// Tenant is its identity, or "" if no source has one.
	Tenant string
	// User is the user of its tenant, Anonymous if no source has one, or "" where tenants have no users.
	User string
	// Role is the role of its tenant, or of its user where tenants have users, or "". UnknownRole is set if it named an
	// unlisted role.
	Role        string
	UnknownRole bool
	// API is the API of a request that certainly runs a model: a POST to a known path, of any content type, since an
	// engine may read any body as JSON. If such a request lacks a needed model, that is an error. Any other request has
	// the model found in it, or none.
	API API
	// PromptOnly is set if its answer has no output.
	PromptOnly bool
	// PassesOn is set if it is known not to be inference and is placed without queueing.
	PassesOn bool
	// QueueState is set if the client requests the queue's state.
	QueueState bool
	// Explain is set if the client requests the record of the decision and is permitted to.
	Explain bool
	// Subset is the subset hint.
	Subset Subset
	// Requirements are the requirements of its endpoint.
	Requirements Requirements
	// Class is its class and its priorities; nil if it names none. Before Classify it is the named class.
	Class *fairqueue.Path
	// UnknownClass is set by Classify if it names a class that is neither an explicit one nor a family.
	UnknownClass bool
	// Deadline is the client's, or zero.
	Deadline time.Time
	// ContentLength is the announced length of the body, or -1.
	ContentLength int64
	// Control are the request's headers with a slot that must not reach the model server; Own names further ones.
	Control Slots
	Own     []string
	// Has are the slots of the request's headers.
	Has Slots
	// Unread are the synonyms of trusted headers that the configuration does not name.
	Unread Slots
	// BodyHidden is set if the body is needed, but Envoy does not show it before the destination is named.
	BodyHidden bool
	// MayReportUsage is set if the response may be a stream that reports usage when the body requests it.
	MayReportUsage bool

	// Known once the body has been read, or is not needed.

	// Model is the requested model, and Target the model's name at the engines, or "".
	Model, Target string
	// Flow is the key of its flow.
	Flow string
	// Tier is the rank of its tier, and AskedTier the rank before the tenant's policy limited it. UnknownTier is set if
	// it named an unknown tier, which is ignored.
	Tier, AskedTier int
	UnknownTier     bool
	// StatedCost is the cost that the gateway states, or 0.
	StatedCost fairqueue.Cost
	// Size is the basis of the estimate of its cost in tokens. LooseLimit is set if Size.MaxOutput bounds the estimate
	// only: Envoy does not send the number of answers, and engines may read another limit than Envoy.
	Size       estimate.Request
	LooseLimit bool
	// Edits are the replacements in the body. AsksUsage is set if one of them requests the usage of the answer.
	Edits     []body.Edit
	AsksUsage bool
	// Needs are its needs besides its model, from its path and, if read, its body.
	Needs Needs
	// Prompt has the blocks of its prompt if affinity compares prompts; Session is the key of its session if affinity
	// compares sessions, 0: none. PromptUnknown is set if it has neither, because its body was not read or names no
	// session.
	Prompt        body.Blocks
	Session       uint64
	PromptUnknown bool
	// Streams is set if the prompt is known in part or whole, and the client is known to want a stream.
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
	session     string // the name in a header
	envoyRead   *EnvoyRead
	declared    int // the rank of the declared tier; noRank: none
	asksUsage   bool
	hints       hints // not overridden by headers
}

// Input comes with a request's headers, or is known at their arrival.
type Input struct {
	// End is set if the request ends with its headers.
	End bool
	// Mode is Envoy's mode for the body.
	Mode BodyMode
	// AskUsage is set if Weir requests the usage of a stream on behalf of its client, and can remove it from the
	// response.
	AskUsage bool
	// Context has metadata and attributes.
	Context Context
	// Subset is the subset hint.
	Subset Subset
	// EnvoyRead is the part of the request that Envoy itself has read; nil: none.
	EnvoyRead *EnvoyRead
	// Now is the arrival of the request.
	Now time.Time
	// Models has the models of the endpoints, and Draw draws targets.
	Models Models
	Draw   Draw
}

// EnvoyRead is the part of a request that Envoy itself has read. Only Envoy can write it, so it is trusted: it ranks
// after the configured headers and before the body, which is not requested if this suffices. It does not have the
// number of answers (n, best_of, several prompts).
type EnvoyRead struct {
	// Model is the model's name, or "".
	Model string
	// Streams is set if the client wants a stream.
	Streams bool
	// Input is the estimated length of the prompt, and Most the limit on the answer, in tokens; estimate.Unknown if
	// missing.
	Input, Most int64
}

// BodyMode is Envoy's mode for the body of a request.
type BodyMode uint8

// The modes of bodies.
const (
	None       BodyMode = iota // not at all
	Streamed                   // in chunks, after the reply to the headers
	Buffered                   // in one message
	Partial                    // in one message, up to the buffer's limit
	FullDuplex                 // in chunks, which must be sent back
	NumModes   = iota
)

// String returns the mode as Envoy's configuration spells it.
func (m BodyMode) String() string {
	return [NumModes]string{"NONE", "STREAMED", "BUFFERED", "BUFFERED_PARTIAL", "FULL_DUPLEX_STREAMED"}[m]
}

// hidden reports whether the destination must be named before the body comes.
func (m BodyMode) hidden() bool { return m == None || m == Streamed }
