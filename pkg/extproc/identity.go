package extproc

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// anonymous is the flow and the tenant of a request in which no source finds an identity. Nobody can claim to be it: a
// tenant of that name is known by its hash.
const anonymous = "anonymous"

// maxIdentityBytes is the longest identity that is used as it is. A longer one, or one that is not UTF-8, is hashed.
const maxIdentityBytes = 256

// identity is who sent a request. It is read from the headers, before the model is known.
type identity struct {
	// flow is what a source before "model" in the list found, or "".
	flow string
	// later is what a source after "model" found, for a request without a model.
	later string
	// byModel is set if the flow depends on the model's name.
	byModel bool
	// tenant is what the first source other than "model" found; "" means anonymous.
	tenant string
	// unknownModel is set if the client made up the model's name, so that it names no flow of its own.
	unknownModel bool
}

// identify reads the identity from the sources of the flow key, in their order.
func (c *compiled) identify(id *identity, h *headers, m *corev3.Metadata, attributes map[string]*structpb.Struct) {
	for i := range c.flow {
		s := &c.flow[i]
		if s.kind == fromModel {
			id.byModel = true
			continue
		}
		v := s.lookup(h, m, attributes)
		if v == "" {
			continue
		}
		v = c.tenantName(v)
		id.tenant = v
		if id.byModel {
			id.later = v
		} else {
			id.flow = v
		}
		break
	}
	if id.tenant == "" && c.Anonymous == AnonymousShared {
		id.flow = anonymous
	}
	id.byModel = id.byModel && id.flow == ""
}

// tenantName returns the name of an identity that a source has found: its hash if keys are hashed, or if the name is that of
// a flow which nobody can claim.
func (c *compiled) tenantName(identity string) string {
	if c.HashFlowKeys || c.isTaken(identity) {
		return hashedFlow(identity)
	}
	return bounded(identity)
}

// isTaken reports whether a name is that of a flow of requests without an identity: of all of them, of unknown models, or
// of a model with its target.
func (c *compiled) isTaken(name string) bool {
	switch {
	case name == anonymous:
		return true
	case !c.flowsOfModels:
		return false
	case name == unknownModels:
		return c.UnknownModels == UnknownModelsShared
	default:
		return c.namesModel(name)
	}
}

// namesModel reports whether a name is that of the flow of some model: any may be its own target, or have one of the
// configured targets.
func (c *compiled) namesModel(name string) bool {
	half := len(name) / 2
	if len(name)%2 == 1 && name[half] == '/' && name[:half] == name[half+1:] {
		return true
	}
	if c.modelFlows[name] {
		return true
	}
	return c.otherModels != nil && slices.ContainsFunc(c.otherModels.names, func(target string) bool {
		model, ok := strings.CutSuffix(name, target)
		return ok && strings.HasSuffix(model, "/")
	})
}

// flowKey returns the key of the flow. The model is "" if the request has none.
func (id *identity) flowKey(model, target string) string {
	switch {
	case id.flow != "":
		return id.flow
	case id.byModel && id.unknownModel:
		return unknownModels
	case id.byModel && model != "":
		return bounded(modelFlow(model, target))
	case id.later != "":
		return id.later
	default:
		return anonymous
	}
}

// modelFlow returns the name of a model's flow.
func modelFlow(model, target string) string { return model + "/" + target }

// owns reports whether the flow is the client's own: its key names the client, and not what the client asks for.
func (id *identity) owns(flow string) bool { return flow == id.tenant }

// bounded returns id, or its hash if id is too long to keep or is not text.
func bounded(id string) string {
	if len(id) <= maxIdentityBytes && utf8.ValidString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// A flow's key may be a secret: an API key, a token. With Config.HashFlowKeys a key from a header, metadata or an
// attribute is replaced by its hash as soon as it is read, so that nothing that shows flows (metrics, logs, pages) can
// show it. Names in the configuration are hashed in the same way. A model's name is not a secret and stays.

const (
	hashPrefix = "sha256:"
	hashDigits = 32 // 128 bits: no two flows collide by chance, and nobody can find another identity with the same hash
)

// hashedFlow returns what stands for an identity: "sha256:" and the first 32 hexadecimal digits of its SHA-256.
func hashedFlow(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return hashPrefix + hex.EncodeToString(sum[:hashDigits/2])
}

// HashedFlowName returns the hash of a name in the configuration, or the name itself if it is such a hash already.
func HashedFlowName(name string) string {
	digits, ok := strings.CutPrefix(name, hashPrefix)
	if ok && len(digits) == hashDigits && strings.Trim(digits, "0123456789abcdef") == "" {
		return name
	}
	return hashedFlow(name)
}
