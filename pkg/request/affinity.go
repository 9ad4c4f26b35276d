package request

import (
	"fmt"
	"strings"

	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/invalid"
)

// AffinityMode is the part of a request that is compared to find the engine with its prompt cached.
type AffinityMode string

// The modes of affinity.
const (
	AffinityOff     AffinityMode = "off"     // nothing
	AffinityPrefix  AffinityMode = "prefix"  // the beginning of its prompt
	AffinitySession AffinityMode = "session" // the name of its session
)

// AffinityScope is the set of requests between which prompts are compared.
type AffinityScope string

// The scopes of affinity.
const (
	ScopeAll  AffinityScope = "all"  // all requests for a model
	ScopeFlow AffinityScope = "flow" // those of a flow
)

// Affinity configures the routing of requests to engines with their prompts cached (scheduling.affinity).
type Affinity struct {
	// Mode is the compared part of requests.
	Mode AffinityMode
	// Scope is the set of compared requests.
	Scope AffinityScope
	// Seed is a secret shared by all replicas, so that clients cannot build prompts with colliding keys, and all
	// replicas have the same keys. It may be empty.
	Seed string
	// Session is the source of a session's name: "header:NAME", "cookie:NAME" or "body:prompt_cache_key".
	Session string
}

// sessionBody is the source of a session's name in the body.
const sessionBody = "body:prompt_cache_key"

func (a *Affinity) check(ps *invalid.Problems) {
	oneOf(ps, invalid.At("Affinity", "Mode"), a.Mode, AffinityOff, AffinityPrefix, AffinitySession)
	oneOf(ps, invalid.At("Affinity", "Scope"), a.Scope, ScopeAll, ScopeFlow)
	kind, name, _ := strings.Cut(a.Session, ":")
	if a.Session != sessionBody && (kind != "header" && kind != "cookie" || !isHeaderName(name)) {
		ps.Add(invalid.At("Affinity", "Session"), a.Session, "must be header:NAME, cookie:NAME or %s", sessionBody)
	}
}

// sessionSource is a compiled Affinity.Session.
type sessionSource struct {
	inBody bool
	slot   slot
	cookie string // its name with "="; "" for a header
}

// compileAffinity finds the header of sessions. With mode prefix it serves requests with an unread body.
func (r *Rules) compileAffinity() {
	a := &r.cfg.Affinity
	r.seed = body.HashText(a.Seed, 0)
	r.session = sessionSource{slot: noSlot}
	kind, name, _ := strings.Cut(a.Session, ":")
	switch {
	case a.Mode == AffinityOff || a.Mode == "":
	case a.Session == sessionBody:
		r.session.inBody = true
	case kind == "cookie":
		r.session.slot, r.session.cookie = r.names.add("cookie"), name+"="
	default:
		r.session.slot = r.names.add(name)
	}
}

// readSession notes the session that the headers name.
func (q *Request) readSession(h *Headers) {
	s := &q.rules.session
	if s.slot == noSlot {
		return
	}
	value := h.values[s.slot]
	if s.cookie != "" {
		value = cookie(value, s.cookie)
	}
	q.session = value
}

// cookie returns the value of the cookie whose name, with "=", is given.
func cookie(header, name string) string {
	for part := range strings.SplitSeq(header, ";") {
		if value, ok := strings.CutPrefix(strings.TrimSpace(part), name); ok {
			return value
		}
	}
	return ""
}

// hasPrompt reports whether the request runs a model with a prompt. Forms have files instead.
func (q *Request) hasPrompt() bool { return q.API != NoAPI && !body.IsForm(q.contentType) }

// asksForPrompt reports whether affinity needs the request's body.
func (q *Request) asksForPrompt() bool {
	switch q.rules.cfg.Affinity.Mode {
	case AffinityPrefix:
		return q.hasPrompt()
	case AffinitySession:
		return q.hasPrompt() && q.rules.session.inBody
	default:
		return false
	}
}

// affine completes the inputs of affinity after model and flow are known. f is nil if the body was not read.
func (q *Request) affine(f *body.Fields, b []byte) {
	a := &q.rules.cfg.Affinity
	if a.Mode == AffinityOff || a.Mode == "" || !q.hasPrompt() {
		return
	}
	seed := body.HashText(q.Target, q.rules.seed)
	if a.Scope == ScopeFlow {
		seed = body.HashText(q.Flow, seed)
	}
	switch {
	case a.Mode == AffinityPrefix && f != nil:
		q.Prompt = f.Blocks(b, seed)
	case q.session != "":
		q.Session = body.HashText(q.session, seed)
	case a.Mode == AffinitySession && q.rules.session.inBody && f != nil:
		q.Session, _ = f.SessionKey(b, seed)
	}
	q.Streams = f != nil && f.Stream || q.envoyRead != nil && q.envoyRead.Streams
	q.Prompt.Flow = body.HashText(q.Flow, q.rules.seed)
	q.PromptUnknown = len(q.Prompt.Keys) == 0 && q.Session == 0 && (f == nil || a.Mode == AffinitySession)
}

// String describes the affinity without its secret.
func (a Affinity) String() string {
	return fmt.Sprintf("{%s %s %s}", a.Mode, a.Scope, a.Session)
}
