package docs

import (
	"net/http"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
)

// engine is a model server that answers at once.
var engine = modelsim.Fixed(4, 20*time.Millisecond)

// scenes are what the pages' comments name.
var scenes = map[string]func(*stage){
	// Model servers, and nothing before them yet: the page starts it.
	"nothing": func(s *stage) { s.serve(engine) },
	// All is well.
	"whole": func(s *stage) {
		s.serve(engine)
		s.startEPP("--profile=recommended")
		s.startEnvoy("recommended")
	},
	// All model servers are busy for good, one request waits, and there is no room for another of its flow: one has been
	// rejected.
	"full": func(s *stage) {
		s.busy("fairRequestQueue: { flowCapacity: 1 }\n")
		if status := s.ask(s.t.Context()); status != http.StatusTooManyRequests {
			s.t.Fatalf("status %d, want 429", status)
		}
	},
	// The bounds are so low that one request waits while each engine has room.
	"idle": func(s *stage) { s.busy("") },
	// Envoy does not find Weir, and a request went on without.
	"away": func(s *stage) {
		s.serve(engine)
		s.startEnvoy("recommended")
		if status := s.ask(s.t.Context()); status != http.StatusOK {
			s.t.Fatalf("status %d, want 200", status)
		}
	},
	// Envoy speaks plaintext to an epp that wants TLS, and a request went on without.
	"tls": func(s *stage) {
		s.serve(engine)
		s.startEPP("--profile=recommended --secure-serving=true")
		s.startEnvoy("recommended")
		if status := s.ask(s.t.Context()); status != http.StatusOK {
			s.t.Fatalf("status %d, want 200", status)
		}
	},
	// Weir knows two model servers, Envoy's cluster has the first of them only; both were picked.
	"missing": func(s *stage) {
		s.serve(engine)
		s.startEPP("--profile=recommended")
		all := s.models
		s.models = all[:1]
		s.startEnvoy("recommended")
		s.models = all
		for range 4 {
			if status := s.ask(s.t.Context()); status != http.StatusOK {
				s.t.Fatalf("status %d, want 200", status)
			}
		}
	},
	// Tenants are told by their keys, and shown as hashes; one has had a request.
	"hashed": func(s *stage) {
		s.serve(engine)
		s.startEPP("--profile=recommended --hash-flow-keys")
		s.startEnvoy("api-keys")
		if status := s.ask(s.t.Context(), "authorization", "Bearer example-key-of-team-a"); status != http.StatusOK {
			s.t.Fatalf("status %d, want 200", status)
		}
	},
	// epp has a configuration from a file, weir.yaml.
	"configured": func(s *stage) {
		s.serve(engine)
		s.write("weir.yaml", "profile: recommended\n")
		s.startEPP("--config-file=weir.yaml")
	},
	// Nothing listens at the model servers' addresses.
	"down": func(s *stage) {
		s.models = []string{"127.0.0.1:1", "127.0.0.1:2"}
		s.startEPP("--profile=recommended --probe-path=/health --probe-interval=100ms")
	},
	// A replica, for a page about two: each knows itself only.
	"two": func(s *stage) { s.serve(engine) },
}

// busy makes a scene where each of two model servers may have one request, has one that does not end, and one more
// waits.
func (s *stage) busy(config string) {
	s.t.Helper()
	s.serve(modelsim.Fixed(4, time.Hour))
	s.startEPP("--profile=recommended --v=1", config+"responses: { preset: gateway, metadata: true }\n"+
		"requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }")
	s.startEnvoy("recommended")
	s.begin(3)
	s.run("the scene", "curl -s localhost:9090/metrics | grep ^weir_tier_queue_length", []string{"…{tier=\"default\"} 1"})
}
