package extproc

import (
	"testing"

	"github.com/weir-epp/weir/pkg/request"
)

// inFamilies has the families standard and batch in two buckets, and an explicit class.
func inFamilies(c *Config) {
	inTokens(c)
	c.TrustedHeaders.InputTokens = "x-input-tokens"
	c.PolicyClass.Headers = []string{"x-class"}
	c.Ring = request.Ring{
		DefaultFamily: "standard", Buckets: []request.Bucket{{Name: "cached"}, {MinTokens: 3072, Name: "uncached"}},
	}
	c.Classes = []request.Class{
		{Name: "std-cached", Family: "standard", Bucket: "cached"},
		{Name: "std-uncached", Family: "standard", Bucket: "uncached"},
		{Name: "batch-cached", Family: "batch", Bucket: "cached"},
		{Name: "batch-uncached", Family: "batch", Bucket: "uncached"},
		{Name: "probes"},
	}
}

// A request is offered in the class of its family and of its uncached tokens; a name that is no class and no family is
// counted.
func TestClassifiedWhenOffered(t *testing.T) {
	for _, c := range []struct {
		class, tokens, want string
		unknown             int
	}{
		{"batch", "3071", "batch-cached", 0},
		{"batch", "3072", "batch-uncached", 0},
		{"probes", "3072", "probes", 0},
		{"batch-uncached", "1", "std-cached", 1},
		{"nobody", "9000", "std-uncached", 1},
	} {
		inBubble(t, "NONE/NONE", inFamilies, func(conv *conversation) {
			conv.say(chat("x-class", c.class, "x-input-tokens", c.tokens, "x-gateway-model-name", "m"))
			conv.heard()
			if got := conv.controller.requests[0].Path.Class; got != c.want {
				t.Errorf("%s, %s tokens: class %s", c.class, c.tokens, got)
			}
			if n := conv.counted("weir_class_unknown_total"); n != c.unknown {
				t.Errorf("%s: %d unknown classes", c.class, n)
			}
		})
	}
	// A request that is not inference is placed without any class.
	inBubble(t, "NONE/NONE", inFamilies, func(conv *conversation) {
		conv.say(requestHeaders(true, ":method", "GET", ":path", "/v1/models"))
		conv.heard()
		if got := conv.controller.requests[0].Path; got != nil {
			t.Errorf("a list of models is in %s", got.Class)
		}
	})
}

// A role that the configuration does not list is counted.
func TestUnknownRolesAreCounted(t *testing.T) {
	roles := func(c *Config) {
		c.RoleSources, c.DefaultRole = []string{"header:x-role"}, "student"
		c.Roles = map[string]request.RoleTiers{"student": {}, "staff": {}}
	}
	for role, want := range map[string]int{"staff": 0, "stuff": 1} {
		inBubble(t, "NONE/NONE", roles, func(conv *conversation) {
			conv.say(chat("x-role", role, "x-gateway-model-name", "m"))
			conv.heard()
			if n := conv.counted("weir_role_unknown_total"); n != want {
				t.Errorf("%s: %d unknown roles, want %d", role, n, want)
			}
		})
	}
}
