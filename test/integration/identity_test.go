package integration

import (
	"context"
	"net/http"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// separate checks that the first two requests are in one flow and the third is in another: with one place in the queue
// for each flow, the second is rejected and the third waits.
func separate(t *testing.T, with setup, first, second, third ask) {
	t.Helper()
	v := newValve()
	with.models = v.one()
	with.config += single + "fairRequestQueue: { totalCapacity: 10, flowCapacity: 1 }\n"
	s := start(t, with)
	s.begin(third)
	s.epp.waitFor(1, "weir_stock_level")
	s.begin(first)
	s.epp.waitFor(1, "weir_queue_length")
	wantRejection(t, s.send(second), rejection{status: 503, reason: "flow-full"})
	s.begin(third)
	s.epp.waitFor(2, "weir_queue_length")
	s.epp.waitFor(2, "weir_active_flows")
	v.open()
	s.epp.settled()
}

// Requests without an identity share one flow, for any models, with the places of that flow's name. A tenant of that
// name is another flow.
func TestFlowOfTheAnonymous(t *testing.T) {
	t.Parallel()
	for name, who := range map[string]string{"a tenant": "a", "a tenant called anonymous": "anonymous"} {
		t.Run(name, func(t *testing.T) {
			v := newValve()
			s := start(t, setup{models: v.one(), config: single + `
fairRequestQueue: { totalCapacity: 20, flowCapacity: 9 }
flows: { key: ["header:x-llm-d-inference-fairness-id", "model"], anonymous: shared, capacities: { anonymous: 2 } }
`})
			s.begin(ask{tenant: who})
			s.epp.waitFor(1, "weir_stock_level")
			s.begin(ask{body: chat("one", false)})
			s.begin(ask{body: chat("other", false)})
			s.epp.waitFor(2, "weir_queue_length")
			wantRejection(t, s.send(ask{body: chat("third", false)}), rejection{status: 503, reason: "flow-full"})
			for range 3 {
				s.begin(ask{tenant: who})
			}
			s.epp.waitFor(5, "weir_queue_length")
			s.epp.waitFor(2, "weir_active_flows")
			v.open()
			s.epp.settled()
		})
	}
}

// A tenant with the name of a model's flow, or of unknown models' flow, is another flow.
func TestNobodyClaimsAFlowOfModels(t *testing.T) {
	t.Parallel()
	const key = `flows: { key: ["header:x-llm-d-inference-fairness-id", "model"], unknownModels: shared }
models: [ { name: tiny } ]
`
	t.Run("a model", func(t *testing.T) {
		known := ask{body: chat("tiny", false)}
		separate(t, setup{config: key}, known, known, ask{tenant: "tiny/tiny"})
	})
	t.Run("unknown models", func(t *testing.T) {
		separate(t, setup{config: key}, ask{body: chat("zz0", false)}, ask{body: chat("zz1", false)}, ask{tenant: "unknown"})
	})
}

// A value that Envoy's JWT filter stores in the dynamic metadata, at any depth, names the flow. A client's header does
// not.
func TestFlowByMetadata(t *testing.T) {
	t.Parallel()
	const namespace = "envoy.filters.http.jwt_authn"
	with := setup{
		config: `flows: { key: ["metadata:` + namespace + `/claims/sub"] }` + "\n",
		edit: func(b envoyrun.Bootstrap) error {
			metadataFromHeader(b, "x-test-claims", namespace, "claims")
			forwarded := envoyrun.Object(b.Filter(envoyrun.ExtProcFilter), "metadata_options", "forwarding_namespaces")
			forwarded["untyped"] = append(forwarded["untyped"].([]any), namespace)
			return nil
		},
	}
	of := func(subject, tenant string) ask {
		claims := map[string]any{"iss": "https://issuer.example", "sub": subject}
		return ask{tenant: tenant, header: []string{"x-test-claims", inMetadata(t, claims)}}
	}
	separate(t, with, of("alice", "a"), of("alice", "b"), of("bob", "a"))
}

// If the headers suffice, Weir does not get the body: a trusted model header saves that message.
func TestTrustedModelHeaderTakesNoBody(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		models: []modelsim.Config{recorded(8)},
		edit:   envoyrun.KeepHeader("x-gateway-model-name"),
	})
	sent := func() int64 {
		stats, err := s.envoy().Stats(context.Background(), `ext_proc\.stream_msgs_sent$`)
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		for _, n := range stats {
			total += n
		}
		return total
	}
	messages := func(want int64, a ask) {
		t.Helper()
		before := sent()
		wantServed(t, "a request", s.send(a))
		expect.True(t, "messages", func() bool { return sent() >= before+want })
		s.epp.settled()
		if got := sent() - before; got != want {
			t.Errorf("Envoy sent %d messages, want %d", got, want)
		}
	}
	messages(4, ask{}) // request headers, its body, response headers, its usage
	trusted := ask{header: []string{"x-gateway-model-name", "tiny"}}
	messages(3, trusted) // no body
	trusted.body = chat("tiny", true)
	messages(2, trusted) // nor any chunk of a streamed answer, and this one reports no usage
	s.epp.waitFor(3, "weir_bypass_total", "model", "tiny")

	// The shipped files remove the header from clients: only the gateway may set it.
	clients := start(t, setup{models: []modelsim.Config{recorded(8)}})
	trusted.header[1] = "another"
	wantServed(t, "a client's word", clients.send(trusted))
	clients.epp.waitFor(1, "weir_bypass_total", "model", "tiny")
}

// Headers for Weir do not go on to the model server, and all others do.
func TestControlHeadersAreStripped(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"recommended", "full-duplex", "header-only"} {
		t.Run(config, func(t *testing.T) {
			s := start(t, setup{
				envoys: []string{config}, models: []modelsim.Config{recorded(8)},
				config: "trustedHeaders: { cost: x-cost }\n", edit: envoyrun.WithoutFilter(envoyrun.HeaderFilter),
			})
			control := []string{
				"x-llm-d-inference-fairness-id", "a", "x-gateway-inference-fairness-id", "a",
				"x-llm-d-inference-objective", "o", "x-gateway-inference-objective", "o",
				"x-llm-d-slo-ttft-ms", "200", "x-gateway-destination-endpoint-subset", "10.0.0.1:80",
				"x-gateway-destination-endpoint-served", "10.0.0.1:80", "x-gateway-model-name", "tiny",
				"x-cost", "7", "x-weir-reason", "none", "x-weir-anything", "1",
			}
			wantServed(t, "a request", s.send(ask{header: append(control, "x-mine", "kept", "authorization", "Bearer t")}))
			got := s.models[0].Records()[0].Header
			for i := 0; i < len(control); i += 2 {
				if v, there := got[http.CanonicalHeaderKey(control[i])]; there {
					t.Errorf("%s: %q went on", control[i], v)
				}
			}
			if got.Get("x-mine") != "kept" || got.Get("authorization") != "Bearer t" {
				t.Errorf("the client's own headers are %v", got)
			}
		})
	}
}
