package extproc

import (
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/request"
)

func withRequestInfo(m *extprocv3.ProcessingRequest, packed *anypb.Any) *extprocv3.ProcessingRequest {
	m.MetadataContext = &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{envoyRequest: packed}}
	return m
}

// readByEnvoy is a request whose model, limit and length Envoy has read.
var readByEnvoy = &aiv3.RequestInfo{
	Model: "read", Stream: wrapperspb.Bool(false), MaxOutputTokens: wrapperspb.UInt64(50),
	EstimatedInputTokens: wrapperspb.UInt64(200),
}

// Values read by Envoy rank after a trusted header and before the body, and the body is not requested.
func TestRequestReadByEnvoy(t *testing.T) {
	bad := mustPack(readByEnvoy)
	bad.Value = []byte{0xff, 0xff}
	for _, c := range []struct {
		name    string
		packed  *anypb.Any
		headers []string
		asked   bool // for the body, which then has the model "body" and 400 bytes of text
		model   string
		cost    fairqueue.Cost
	}{
		{"everything", mustPack(readByEnvoy), nil, false, "read", 200 + 100},
		{"trusted headers win", mustPack(readByEnvoy), []string{"x-gateway-model-name", "trusted", "x-input-tokens", "7"}, false, "trusted", 7 + 100},
		{"a trusted cost wins", mustPack(readByEnvoy), []string{"x-cost", "5"}, false, "read", 5},
		{"nothing but the model", mustPack(&aiv3.RequestInfo{Model: "read"}), []string{"content-length", "656"}, false, "read", 100 + 2000},
		{"a limit of none says none", mustPack(&aiv3.RequestInfo{Model: "read", MaxOutputTokens: wrapperspb.UInt64(0)}), []string{"content-length", "656"}, false, "read", 100 + 2000},
		{"absurd numbers", mustPack(&aiv3.RequestInfo{Model: "read", EstimatedInputTokens: wrapperspb.UInt64(1 << 63)}), nil, false, "read", fairqueue.MaxCost},
		{"no model", mustPack(&aiv3.RequestInfo{MaxOutputTokens: wrapperspb.UInt64(50), EstimatedInputTokens: wrapperspb.UInt64(200)}), nil, true, "body", 200 + 100},
		{"nothing", mustPack(&aiv3.RequestInfo{}), nil, true, "body", 100 + 2*500},
		{"something else under that name", mustPack(wrapperspb.String("read")), nil, true, "body", 100 + 2*500},
		{"bytes that are no message", bad, nil, true, "body", 100 + 2*500},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, "BUFFERED/NONE", func(cfg *Config) {
				inTokens(cfg)
				cfg.TrustedHeaders.Cost, cfg.TrustedHeaders.InputTokens = "x-cost", "x-input-tokens"
			}, func(conv *conversation) {
				conv.say(withRequestInfo(chat(c.headers...), c.packed))
				heard := conv.heard()
				if asked := !strings.Contains(heard, "override=NONE"); asked != c.asked {
					t.Errorf("asked for the body %v: %s", asked, heard)
				}
				if c.asked {
					conv.say(requestBodyOf(`{"model":"body","prompt":"`+strings.Repeat("abcd", 100)+`","max_tokens":500}`, true))
					conv.heard()
				}
				if n := len(conv.controller.requests); n != 1 {
					t.Fatalf("%d requests", n)
				}
				if r := conv.controller.requests[0]; r.Model != c.model || r.Cost != c.cost {
					t.Errorf("model %q, cost %d; want %q, %d", r.Model, r.Cost, c.model, c.cost)
				}
				conv.settled(1)
			})
		})
	}
}

// Values read by Envoy rank before a body that is read for another reason. A model with a target needs its body.
func TestRequestReadByEnvoyBesideABody(t *testing.T) {
	const body = `{"model":"read","prompt":"abcd","max_tokens":500,"n":3}`
	for _, mode := range []string{"FULL_DUPLEX/NONE", "BUFFERED/NONE"} {
		inBubble(t, mode, func(cfg *Config) {
			inTokens(cfg)
			cfg.Models = []request.Model{{Name: "read", Targets: []request.Target{{Name: "target", Weight: 1}}}}
		}, func(c *conversation) {
			c.say(withRequestInfo(chat(), mustPack(readByEnvoy)))
			c.heard()
			c.say(requestBodyOf(body, true))
			if heard := c.heard(); !strings.Contains(heard, `{"model":"target"`) {
				t.Errorf("%s: %s", mode, heard)
			}
			if got := c.controller.requests[0].Cost; got != 200+3*100 {
				t.Errorf("%s: cost %d", mode, got)
			}
			c.settled(1)
		})
	}
}

// Envoy does not report the number of answers that a request asks for. So its limit bounds the estimate, but not the
// charge of an answer without usage: 50 tokens a second for its duration.
func TestLimitReadByEnvoyIsNoCap(t *testing.T) {
	inBubble(t, "BUFFERED/NONE", inTokens, func(c *conversation) {
		c.say(withRequestInfo(chat(), mustPack(readByEnvoy)))
		c.heard()
		c.say(responseHeaders("200", false, sseHeaders...))
		c.heard()
		time.Sleep(10 * time.Second)
		c.settled(1)
		if got := c.controller.leases[0].completed[0].Cost; got != 200+2*500 {
			t.Errorf("cost %d", got)
		}
	})
}
