package extproc

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
)

// The first of these that names a tier counts: trusted metadata, class header, objective, model, the tenant's class,
// default. Then the tenant's highest tier limits it. Rank 0 is critical, 1 default, 2 sheddable.
func TestTier(t *testing.T) {
	change := func(c *Config) {
		c.FlowKey = []string{"header:x-tenant", "model"}
		c.Models = []Model{{Name: "cheap", Criticality: "Sheddable"}, {Name: "plain"}}
		c.Objectives = []Objective{{Name: "batch", Priority: -1}, {Name: "mid", Priority: 0}, {Name: "top", Priority: 9}}
		c.Criticality = Criticality{
			Header: "X-Class", Metadata: "auth/class", Default: "Standard", ObjectiveHeaders: []string{"x-llm-d-inference-objective"},
		}
		c.TenantPolicies = map[string]TenantPolicy{
			"low": {MaxClass: "sheddable"}, "vip": {MaxClass: "critical"}, "*": {MaxClass: "default"},
			"gold": {Class: "critical"}, "bulk": {Class: "Sheddable"}, "capped": {Class: "critical", MaxClass: "sheddable"},
		}
	}
	tests := []struct {
		name     string
		pass     []string
		metadata string
		want     int
	}{
		{"nobody says", nil, "", 1},
		{"metadata, case and blanks do not count", []string{"x-tenant", "vip", "x-class", "sheddable"}, " CRITICAL ", 0},
		{"metadata that names no tier is passed over", []string{"x-class", "sheddable"}, "nonsense", 2},
		{"class header", []string{"x-tenant", "vip", "x-class", "critical", "x-llm-d-inference-objective", "batch"}, "", 0},
		{"a header that names no tier is passed over", []string{"x-class", "wow", "x-llm-d-inference-objective", "batch"}, "", 2},
		{"objective", []string{"x-llm-d-inference-objective", "batch", "x-gateway-model-name", "plain"}, "", 2},
		{"objective above all", []string{"x-tenant", "vip", "x-llm-d-inference-objective", "top"}, "", 0},
		{"an unknown objective says nothing", []string{"x-llm-d-inference-objective", "none", "x-gateway-model-name", "cheap"}, "", 2},
		{"model", []string{"x-gateway-model-name", "cheap"}, "", 2},
		{"a model without criticality", []string{"x-gateway-model-name", "plain"}, "", 1},
		{"clamped down by its policy", []string{"x-tenant", "low", "x-class", "critical"}, "", 2},
		{"clamped as tenants without one are", []string{"x-class", "critical"}, "", 1},
		{"never clamped up", []string{"x-tenant", "vip", "x-class", "sheddable"}, "", 2},
		{"the tenant's class, above what others may use", []string{"x-tenant", "gold"}, "", 0},
		{"the tenant's class comes after the model", []string{"x-tenant", "gold", "x-gateway-model-name", "cheap"}, "", 2},
		{"after the objective", []string{"x-tenant", "gold", "x-llm-d-inference-objective", "mid"}, "", 1},
		{"after the class header", []string{"x-tenant", "gold", "x-class", "default"}, "", 1},
		{"after the metadata", []string{"x-tenant", "gold"}, "sheddable", 2},
		{"the tenant's class, below the default", []string{"x-tenant", "bulk", "x-gateway-model-name", "plain"}, "", 2},
		{"a tenant of low class may ask for what others may", []string{"x-tenant", "bulk", "x-class", "critical"}, "", 1},
		{"the tenant's class is clamped", []string{"x-tenant", "capped"}, "", 2},
		{"a model's name has no tenant's class", []string{"x-gateway-model-name", "gold"}, "", 1},
		{"a model's name is no tenant", []string{"x-gateway-model-name", "vip", "x-class", "critical"}, "", 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, "NONE/NONE", change, func(c *conversation) {
				m := chat(test.pass...)
				if test.metadata != "" {
					m.MetadataContext = metadataOf("auth", "class", structpb.NewStringValue(test.metadata))
				}
				c.say(m)
				c.heard()
				if got := c.controller.requests[0].Tier; got != test.want {
					t.Errorf("tier %d, want %d", got, test.want)
				}
			})
		})
	}
}

// If no tier has minPriority 0, Standard is the one in the middle.
func TestCriticalitiesMapToTiers(t *testing.T) {
	one := 1
	r := newTierRanks([]Tier{{Name: "system", MinPriority: &one}, {Name: "interactive"}, {Name: "default"}, {Name: "bulk"}})
	for name, want := range map[string]int{"Critical": 0, "standard": 2, "SHEDDABLE": 3, "bulk": 3, "default": 2} {
		if got, ok := r.byName(name); !ok || got != want {
			t.Errorf("%s: %d, %v", name, got, ok)
		}
	}
}

func TestTargetsAreDrawnByWeight(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Models = []Model{
			{Name: "chat", Targets: []Target{{Name: "v1", Weight: 9}, {Name: "v2", Weight: 1}}},
			{Name: "even", Targets: []Target{{Name: "a", Weight: 5}, {Name: "b", Weight: 5}}},
		}
	})
	c := b.server.config.Load()
	drawn := map[string]int{}
	const n = 10_000
	for range n {
		drawn[b.server.target(c, "chat")]++
		drawn[b.server.target(c, "even")]++
	}
	if math.Abs(float64(drawn["v1"])/n-0.9) > 0.01 || math.Abs(float64(drawn["a"])/n-0.5) > 0.02 {
		t.Errorf("%v", drawn)
	}
	if got := b.server.target(c, "other"); got != "other" {
		t.Errorf("a model that is not listed became %q", got)
	}
}

func TestDeadlineHeaders(t *testing.T) {
	cfg := DefaultConfig()
	cfg.DeadlineHeaders = []string{"x-envoy-expected-rq-timeout-ms", "gRPC-Timeout"}
	c := compile(&cfg)
	now := time.Unix(1000, 0)
	tests := []struct {
		ms, grpc string
		want     time.Duration // 0: none
	}{
		{"1500", "", 1500 * time.Millisecond},
		{"1500", "1S", time.Second},
		{"1500", "2S", 1500 * time.Millisecond},
		{"", "100m", 100 * time.Millisecond},
		{"", "3H", 3 * time.Hour},
		{"", "7u", 7 * time.Microsecond},
		{"", "7n", 7},
		{"", "2M", 2 * time.Minute},
		{"0", "", 0},
		{"-5", "S", 0},
		{"soon", "1x", 0},
		{"99999999999999999999", "99999999H", 0},
		{"9223372036854775807", "123456789S", 0},
	}
	for _, test := range tests {
		var h headers
		h.read(&c.names, headerMap("x-envoy-expected-rq-timeout-ms", test.ms, "grpc-timeout", test.grpc).GetHeaders())
		got := c.deadline(&h, now)
		if test.want == 0 && !got.IsZero() || test.want != 0 && got.Sub(now) != test.want {
			t.Errorf("%q, %q: %v", test.ms, test.grpc, got.Sub(now))
		}
	}
}

func TestCostFromTrustedHeader(t *testing.T) {
	for value, want := range map[string]int64{"17": 17, "0": 1, "-3": 1, "many": 1, "": 1, "9999999999999": 1 << 30} {
		inBubble(t, "NONE/NONE", func(c *Config) { c.TrustedHeaders.Cost = "x-cost" }, func(c *conversation) {
			c.say(chat("x-cost", value))
			c.heard()
			if got := c.controller.requests[0].Cost; int64(got) != want {
				t.Errorf("%q: cost %d", value, got)
			}
		})
	}
}

func TestInferencePaths(t *testing.T) {
	tests := []struct {
		method, path, contentType string
		want                      api
	}{
		{"POST", "/v1/chat/completions", "application/json", openAI},
		{"POST", "/gw/v1/chat/completions?a=b", "application/json; charset=utf-8", openAI},
		{"POST", "/v1/messages", "", anthropic},
		{"POST", "/v1/responses", "application/vnd.x+json", openAI},
		{"POST", "/v1/messages/count_tokens", "application/json", noAPI},
		{"GET", "/v1/chat/completions", "application/json", noAPI},
		{"POST", "/v1/audio/transcriptions", "multipart/form-data; boundary=json", openAI},
		{"POST", "/v1/chat/%63ompletions", "application/json", openAI},
		{"POST", "/gw/v1/chat%2Fcompletions?a=%", "application/json", openAI},
		{"POST", "//v1/./chat//completions/#a", "application/json", openAI},
		{"POST", "/v1%2fmess%61ges", "application/json", anthropic},
		{"POST", "/v1/chat/completions%3Fa", "application/json", noAPI}, // a path that ends in ?a
		{"POST", "/v1/completions%", "application/json", noAPI},
		{"POST", "/v1/completions%0A", "application/json", openAI}, // Starlette serves it
		{"POST", "/v1/completions%0A%0A", "application/json", noAPI},
		{"POST", "/v2/rerank", "application/json", openAI},
		{"POST", "/v1/chat/completions/render", "application/json", noAPI},
		{"POST", "/v1/completions", "text/plain", openAI}, // queued, and its body not read
		{"POST", "/tokenize", "application/json", noAPI},
	}
	for _, test := range tests {
		var h headers
		h.values[slotMethod], h.values[slotPath], h.values[slotContentType] = test.method, test.path, test.contentType
		if got := apiOf(&h); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}

// Operators have to know what queues.
func TestDocsListTheInferencePaths(t *testing.T) {
	page, err := os.ReadFile("../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range slices.Concat(inferencePaths, cheapPaths) {
		if !strings.Contains(string(page), "`"+known+"`") {
			t.Errorf("docs/envoy.md does not name %s", known)
		}
	}
}

// Only what is listed bypasses the queue: no upgrades, and GET, HEAD, OPTIONS and DELETE without a body, or a few paths
// exactly as listed.
func TestCheap(t *testing.T) {
	cfg := DefaultConfig()
	cfg.PassOnPaths = []string{"/own"}
	c := compile(&cfg)
	for _, test := range []struct {
		want    bool
		end     bool
		headers string // separated by blanks
	}{
		{true, true, ":method GET :path /v1/models"},
		{true, true, ":method GET :path /v1/chat/completions"},
		{true, true, ":method HEAD :path /anything%0A"},
		{true, true, ":method OPTIONS :path *"},
		{true, true, ":method DELETE :path /v1/responses/1?a=b content-length 0"},
		{true, true, ":method GET :path / connection Keep-Alive"},
		{true, true, ":method GET :path / connection close"},
		{true, false, ":method POST :path /tokenize content-length 5"},
		{true, false, ":method POST :path /v1/messages/count_tokens?beta=true"},
		{true, false, ":method PATCH :path /own"},
		{false, false, ":method GET :path /v1/models"}, // a body may come
		{false, true, ":method GET :path / content-length 5"},
		{false, true, ":method GET :path / transfer-encoding chunked"},
		{false, true, ":method POST :path /generate"},
		{false, true, ":method PUT :path /generate"},
		{false, true, ":method get :path /v1/models"},
		{false, true, ":path /v1/models"},
		{false, true, ":method CONNECT :path /"},
		{false, true, ":method CONNECT :path /own"},
		{false, true, ":method GET :path / :protocol websocket"},
		{false, true, ":method GET :path / upgrade websocket"},
		{false, true, ":method GET :path / connection upgrade"},
		{false, true, ":method GET :path / connection keep-alive,Upgrade"},
		{false, true, ":method GET :path / connection close connection upgrade"},
		{false, false, ":method GET :path /own upgrade websocket connection upgrade"},
		{false, false, ":method POST :path /own/"},
		{false, false, ":method POST :path /Own"},
		{false, false, ":method POST :path /%6Fwn"},
		{false, false, ":method POST :path /x/own"},
		{false, false, ":method POST :path /own%0A"},
		{false, false, ":method POST :path /own;a"},
		{false, false, ":method POST :path /own#a"},
		{false, false, ":method POST :path //tokenize"},
		{false, false, ":method POST :path /v1/chat/completions?/tokenize"},
		{false, false, ":method POST :path /tokenize/../generate"},
	} {
		h := headers{end: test.end}
		h.read(&c.names, headerMap(strings.Fields(test.headers)...).GetHeaders())
		if got := c.cheap(&h); got != test.want {
			t.Errorf("%s: %v", test.headers, got)
		}
	}
}

// A request at an unknown path queues with the model that is found, if any. The body of an upgrade is not awaited.
func TestUnknownPathsQueue(t *testing.T) {
	for _, test := range []struct{ name, headers, body, flow string }{
		{"a model", ":method POST :path /llm/chat", `{"model":"m"}`, "m/m"},
		{"no model", ":method POST :path /generate", `{"text":"m"}`, "anonymous"},
		{"an odd model", ":method POST :path /generate", `{"model":7}`, "anonymous"},
		{"no JSON", ":method POST :path /generate", `text=m`, "anonymous"},
		{"GET with a body", ":method GET :path /v1/models", `{"model":"m"}`, "m/m"},
	} {
		for _, mode := range []string{"BUFFERED/NONE", "FULL_DUPLEX/NONE"} {
			t.Run(test.name+mode, func(t *testing.T) {
				inBubble(t, mode, nil, func(c *conversation) {
					c.say(requestHeaders(false, strings.Fields(test.headers)...))
					c.heard()
					if len(c.controller.requests) > 0 {
						t.Fatal("offered without its body")
					}
					c.say(requestBodyOf(test.body, true))
					if got := c.heard(); !strings.Contains(got, "+x-gateway-destination-endpoint=") {
						t.Errorf("got %s", got)
					}
					if c.controller.passedOn != 0 || c.controller.requests[0].Flow != test.flow {
						t.Errorf("%d passed on, flow %q", c.controller.passedOn, c.controller.requests[0].Flow)
					}
				})
			})
		}
	}
	inBubble(t, "BUFFERED/NONE", func(c *Config) { c.RequestBody = BodyAlways }, func(c *conversation) {
		c.say(requestHeaders(false, ":method", "GET", ":path", "/v1/realtime", "upgrade", "websocket", "connection", "upgrade"))
		if got := c.heard(); got != "headers "+dest+" "+meta+" override=NONE/NONE" || c.controller.passedOn != 0 {
			t.Errorf("got %s, %d passed on", got, c.controller.passedOn)
		}
	})
}
