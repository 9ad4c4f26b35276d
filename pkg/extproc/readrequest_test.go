package extproc

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/request"
)

// Package request has the tests of reading a request. These test the messages that it is read from, and the stream's
// use of the result.

// Headers come in either field. Metadata and attributes are strings, numbers or bools, at any depth.
func TestIdentitiesInMessages(t *testing.T) {
	jwt := func(v *structpb.Value) *corev3.Metadata {
		return metadataOf("jwt", "payload", structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"sub": v}}))
	}
	attributes := map[string]*structpb.Struct{"another.filter": {}, "envoy.filters.http.ext_proc": {
		Fields: map[string]*structpb.Value{"source.principal": structpb.NewStringValue("spiffe://c")},
	}}
	for _, test := range []struct {
		name       string
		header     *corev3.HeaderValue
		metadata   *corev3.Metadata
		attributes map[string]*structpb.Struct
		want       string
	}{
		{"a raw header", &corev3.HeaderValue{Key: "x-team", RawValue: []byte("a")}, nil, nil, "a"},
		{"a header in text", &corev3.HeaderValue{Key: "x-team", Value: "a"}, nil, nil, "a"},
		{"a string", nil, jwt(structpb.NewStringValue("b")), attributes, "b"},
		{"a number", nil, jwt(structpb.NewNumberValue(1.5e6)), attributes, "1500000"},
		{"a bool", nil, jwt(structpb.NewBoolValue(true)), attributes, "true"},
		{"a list is none", nil, jwt(structpb.NewListValue(&structpb.ListValue{})), attributes, "spiffe://c"},
		{"an attribute", nil, metadataOf("jwt", "another", structpb.NewBoolValue(true)), attributes, "spiffe://c"},
		{"nothing", nil, nil, nil, "m/m"},
	} {
		change := func(c *Config) {
			c.FlowKey = []string{"header:x-team", "metadata:jwt/payload/sub", "attribute:source.principal", "model"}
		}
		inBubble(t, "NONE/NONE", change, func(c *conversation) {
			first := chat("x-gateway-model-name", "m")
			if test.header != nil {
				list := first.GetRequestHeaders().GetHeaders()
				list.Headers = append(list.Headers, test.header)
			}
			first.MetadataContext, first.Attributes = test.metadata, test.attributes
			c.say(first)
			c.heard()
			if got := c.controller.requests[0].Flow; got != test.want {
				t.Errorf("%s: flow %q, want %q", test.name, got, test.want)
			}
		})
	}
}

// The controller gets all data of the request.
func TestWhatIsOffered(t *testing.T) {
	change := func(c *Config) {
		smgLike(c)
		c.PolicyClass = request.PolicyClass{Headers: []string{"x-policy"}, StrictPriorityHeader: "x-strict", MaxStrictPriority: 3}
		c.DeadlineHeaders, c.TrustedHeaders.Cost = []string{"x-deadline-ms"}, "x-cost"
		c.Models = []request.Model{{Name: "m", Targets: []request.Target{{Name: "m-v1", Weight: 1}}}}
	}
	inBubble(t, "BUFFERED/NONE", change, func(c *conversation) {
		m := chat("x-tenant", "vip", "x-smg-priority", "interactive", "x-policy", "gold", "x-strict", "2", "x-cost", "7", "x-deadline-ms", "90")
		m.MetadataContext = subsetMetadata(structpb.NewStringValue("10.0.0.1, 10.0.0.2:80"))
		begun := time.Now()
		c.say(m)
		c.say(requestBodyOf(`{"model":"m"}`, true))
		c.heard()
		r := c.controller.requests[0]
		got := fmt.Sprint(r.Flow, " ", r.Model, " ", r.TargetModel, " ", r.Tier, " ", r.TierName, " ", r.Cost, " ", r.Path.Class, " ",
			r.Path.Strict, " ", r.Deadline.Sub(begun))
		if want := "vip m m-v1 1 interactive 7 gold 2 90ms"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if c.picker.model != "m-v1" || fmt.Sprint(c.picker.subset.Members) != "[10.0.0.1 10.0.0.2:80]" {
			t.Errorf("placed as %q in %q", c.picker.model, c.picker.subset.Members)
		}
	})
}

// The metrics of a refusal have no label with a client's invented model name.
func TestRefusalOfAnUnknownModel(t *testing.T) {
	inBubble(t, "BUFFERED/NONE", func(c *Config) { c.UnknownModels = request.UnknownModelsShared }, func(c *conversation) {
		c.picker.err = fmt.Errorf("no endpoint serves it")
		c.say(chat("x-gateway-model-name", "zz1"))
		c.heard()
		if got := c.controller.refusedModels; len(got) != 1 || got[0] != "unknown" {
			t.Errorf("refused %q", got)
		}
	})
}

// With hashed keys no line of the log shows an identity.
func TestHashedIdentitiesAreNotLogged(t *testing.T) {
	change := func(c *Config) { c.HashFlowKeys, c.FlowKey = true, []string{"header:authorization", "model"} }
	inBubble(t, "NONE/NONE", change, func(c *conversation) {
		c.say(chat("authorization", "sk-secret-1", "x-gateway-model-name", "m"))
		c.say(responseHeaders("200", true))
		c.heard()
		c.settled(1)
		if c.logged.has("sk-secret-1") > 0 || c.logged.has(request.HashedFlowName("sk-secret-1")) == 0 {
			t.Errorf("%q", c.logged.lines)
		}
	})
}

// A request at an unknown path queues with its model, if it names one. Weir does not wait for the body of an upgrade.
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
	inBubble(t, "BUFFERED/NONE", func(c *Config) { c.RequestBody = request.BodyAlways }, func(c *conversation) {
		c.say(requestHeaders(false, ":method", "GET", ":path", "/v1/realtime", "upgrade", "websocket", "connection", "upgrade"))
		if got := c.heard(); got != "headers "+dest+" "+meta+" override=NONE/NONE" || c.controller.passedOn != 0 {
			t.Errorf("got %s, %d passed on", got, c.controller.passedOn)
		}
	})
}
