package docs

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
)

// engine is a model server that answers at once.
var engine = modelsim.Fixed(4, 20*time.Millisecond)

// scenes are the scenes in the pages' comments, except for the one in a cluster.
var scenes = map[string]func(*Stage){
	// Only model servers: the page starts the rest.
	"nothing": func(s *Stage) { s.serve(engine) },
	// Model servers, and the endpoints file that lists them.
	"listed": func(s *Stage) {
		s.serve(engine)
		s.write("endpoints.yaml", fmt.Sprintf("endpoints:\n- address: %q\n- address: %q\n", s.models[0], s.models[1]))
	},
	// Everything works.
	"whole": func(s *Stage) {
		s.serve(engine)
		s.startEPP("--profile=recommended")
		s.startEnvoy("recommended")
	},
	// All model servers are busy until the end, one request waits, and its flow has no more room: another request has
	// been rejected.
	"full": func(s *Stage) {
		s.busy("fairRequestQueue: { flowCapacity: 1 }\n")
		if status := s.ask(s.t.Context()); status != http.StatusTooManyRequests {
			s.t.Fatalf("status %d, want 429", status)
		}
	},
	// The bounds are so low that a request waits although each engine has room.
	"idle": func(s *Stage) { s.busy("") },
	// Envoy cannot find Weir, and a request bypassed it.
	"away": func(s *Stage) {
		s.serve(engine)
		s.startEnvoy("recommended")
		if status := s.ask(s.t.Context()); status != http.StatusOK {
			s.t.Fatalf("status %d, want 200", status)
		}
	},
	// Envoy speaks plaintext to an epp that serves TLS, and a request bypassed it.
	"tls": func(s *Stage) {
		s.serve(engine)
		s.startEPP("--profile=recommended --secure-serving=true")
		s.startEnvoy("recommended")
		if status := s.ask(s.t.Context()); status != http.StatusOK {
			s.t.Fatalf("status %d, want 200", status)
		}
	},
	// Envoy has a wrong port of Weir's, and a request that bypassed it runs until the end.
	"passed": func(s *Stage) {
		s.serve(modelsim.Fixed(4, time.Hour))
		s.startEnvoy("recommended")
		s.startEPP("--profile=recommended")
		s.begin(1)
	},
	// The second model server answers 50 times slower than the first. Both were picked.
	"slow": func(s *Stage) { s.unlike(modelsim.Fixed(4, 50*engine.Engine.ServiceTime), 4) },
	// The second model server answers all requests with 500, and Weir has detected it.
	"failing": func(s *Stage) {
		failing := engine
		failing.Quirk.Status = http.StatusInternalServerError
		s.unlike(failing, 0)
		for n := 0; ; n++ { // on a busy machine a round takes so long that the circuit stays closed
			s.together(40)
			if out, err := s.shell(s.inward("curl -s localhost:9004/statusz")); err == nil && strings.Contains(out, "open ") {
				return
			}
			if n == 50 {
				s.t.Fatal("no circuit has opened")
			}
		}
	},
	// An hour ago a tenant, batch, sent far more requests than others for ten minutes: simulated in virtual time, and
	// recorded in epp's form.
	"night": func(s *Stage) {
		s.write("workload.yaml", `apiVersion: weir.dev/v1alpha1
kind: Workload
duration: 75m
engines: [{ count: 2, slots: 8 }]
clients:
- { flow: chat, rate: 1, prompt: 400, output: ~150 }
- { flow: batch, rate: 12, from: 5m, to: 15m, prompt: 900, output: ~200 }
`)
		s.write("weir.yaml", "profile: recommended\nrequestQueueController: { slotsPerBackend: 8 }\nfairRequestQueue: { queueTTL: 60s }\n")
		s.write("new.yaml", "profile: recommended\nrequestQueueController: { slotsPerBackend: 8 }\nfairRequestQueue: { queueTTL: 60s }\nflows: { weights: { batch: 3 } }\n")
		s.run("the scene", "bin/weir simulate --workload workload.yaml --config weir.yaml --record recording", nil)
	},
	// Weir knows two model servers, but Envoy's cluster has only the first. Both were picked.
	"missing": func(s *Stage) {
		s.serve(engine)
		s.startEPP("", "profile: recommended", "scheduling: { affinity: off }") // else equal prompts all go to one of the two
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
	// Tenants are identified by their keys, and shown as hashes. One has sent a request.
	"hashed": func(s *Stage) {
		s.serve(engine)
		s.startEPP("--profile=recommended --hash-flow-keys")
		s.startEnvoy("api-keys")
		if status := s.ask(s.t.Context(), "authorization", "Bearer example-key-of-team-a"); status != http.StatusOK {
			s.t.Fatalf("status %d, want 200", status)
		}
	},
	// Tenants are identified by their keys. Each of two has sent a request.
	"tenants": func(s *Stage) {
		s.serve(engine)
		s.startEPP("--profile=recommended --record=16")
		s.startEnvoy("api-keys")
		for _, key := range []string{"a", "b"} {
			if status := s.ask(s.t.Context(), "authorization", "Bearer example-key-of-team-"+key); status != http.StatusOK {
				s.t.Fatalf("status %d, want 200", status)
			}
		}
	},
	// epp has its configuration from a file, weir.yaml.
	"configured": func(s *Stage) {
		s.serve(engine)
		s.write("weir.yaml", "profile: recommended\n")
		s.startEPP("--config-file=weir.yaml")
	},
	// Nothing listens at the model servers' addresses.
	"down": func(s *Stage) {
		s.models = []string{"127.0.0.1:1", "127.0.0.1:2"}
		s.startEPP("--profile=recommended --probe-path=/health --probe-interval=100ms")
	},
	// A replica, for a page about two: each knows only itself.
	"two": func(s *Stage) { s.serve(engine) },
}

// unlike makes a scene with two different model servers, and sends so many requests.
func (s *Stage) unlike(second modelsim.Config, requests int) {
	s.t.Helper()
	for _, each := range []modelsim.Config{engine, second} {
		address, err := s.scene.Models(1, each)
		if err != nil {
			s.t.Fatal(err)
		}
		s.models = append(s.models, address...)
	}
	s.startEPP("", "profile: recommended", "scheduling: { affinity: off }") // else equal prompts all go to one of the two
	s.startEnvoy("recommended")
	s.together(requests)
}

// together sends requests at once: a failing engine keeps its place for a moment, so in sequence most requests would
// avoid it.
func (s *Stage) together(requests int) {
	var all sync.WaitGroup
	for range requests {
		all.Go(func() { s.ask(s.t.Context()) })
	}
	all.Wait()
}

// busy makes a scene with two model servers of one request each: each has one that does not end, and another request
// waits.
func (s *Stage) busy(config string) {
	s.t.Helper()
	s.serve(modelsim.Fixed(4, time.Hour))
	s.startEPP("--profile=recommended --v=1", config+"responses: { preset: gateway, metadata: true }\n"+
		"requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }")
	s.startEnvoy("recommended")
	s.begin(3)
	s.run("the scene", "curl -s localhost:9090/metrics | grep ^weir_tier_queue_length", []string{"…{tier=\"default\"} 1"})
}
