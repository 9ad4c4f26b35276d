package integration

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// failingNow is a model server that answers with a status at once.
func failingNow(status int) modelsim.Config {
	cfg := modelsim.Fixed(8, 100*time.Millisecond)
	cfg.Quirk = modelsim.Quirk{Status: status}
	return cfg
}

// tallied counts the answers of some clients. Each sends its next request after its last answer.
type tallied struct {
	served, failed int
}

// crowd starts clients that send requests for a time, each of the tenant that who returns.
func (s *scene) crowd(clients int, d time.Duration, who func(client int) string) map[string]*tallied {
	var mu sync.Mutex
	var done sync.WaitGroup
	got := map[string]*tallied{}
	for end, i := time.Now().Add(d), 0; i < clients; i++ {
		done.Go(func() {
			for time.Now().Before(end) {
				answer := s.send(from(who(i)))
				mu.Lock()
				of := got[who(i)]
				if of == nil {
					of = &tallied{}
					got[who(i)] = of
				}
				if answer.status == 200 {
					of.served++
				} else {
					of.failed++
				}
				mu.Unlock()
				if answer.status != 200 {
					time.Sleep(20 * time.Millisecond) // as a client that tries again
				}
			}
		})
	}
	done.Wait()
	return got
}

// inTurns makes Envoy send requests to the model servers in turns.
func inTurns(b envoyrun.Bootstrap) error {
	policy := envoyrun.Object(b.Cluster("model_servers"), "load_balancing_policy", "policies", 0, "typed_extension_config")
	policy["name"] = "envoy.load_balancing_policies.round_robin"
	policy["typed_config"] = map[string]any{
		"@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin",
	}
	return nil
}

// One of two engines answers 500 at once, and 4, 12 or 40 clients continue. Envoy alone, by its least requests or in
// turns, loses at least as large a part of the requests as Weir, in the first 5 s too.
func TestNoMoreIsLostThanByEnvoyAlone(t *testing.T) {
	t.Parallel()
	models := []modelsim.Config{failingNow(500), modelsim.Fixed(8, 100*time.Millisecond)}
	for _, clients := range []int{4, 12, 40} {
		t.Run(fmt.Sprint(clients, " clients"), func(t *testing.T) {
			lost := map[string]float64{}
			for name, with := range map[string]setup{
				"Weir": {
					config: "profile: recommended\n" + byTenant + "requestQueueController: { slotsPerBackend: 8 }\n", file: true,
				},
				"least requests": {envoys: []string{"direct"}, noEPP: true},
				"turns":          {envoys: []string{"direct"}, noEPP: true, edit: inTurns},
			} {
				with.models = models
				s := start(t, with)
				all := tallied{}
				for _, of := range s.crowd(clients, 5*time.Second, func(client int) string { return fmt.Sprint("tenant-", client%4) }) {
					all.served += of.served
					all.failed += of.failed
				}
				lost[name] = float64(all.failed) / float64(all.served+all.failed)
				t.Logf("%s: %+v, %.0f %% lost", name, all, 100*lost[name])
			}
			if lost["Weir"] > min(lost["least requests"], lost["turns"]) {
				t.Errorf("lost: %v", lost)
			}
		})
	}
}

// One of two engines answers 500 at once. Without circuits it gets nearly all requests. Weir loses at most 5 % of them,
// and 5 s later next to none, with one tenant or many.
func TestOneEngineFails(t *testing.T) {
	t.Parallel()
	for _, clients := range []int{4, 12, 40} {
		for _, tenants := range []int{1, 4} {
			t.Run(fmt.Sprintf("%d clients of %d tenants", clients, tenants), func(t *testing.T) {
				t.Parallel()
				s := start(t, setup{
					models: []modelsim.Config{failingNow(500), modelsim.Fixed(8, 100*time.Millisecond)},
					config: "profile: recommended\n" + byTenant + "requestQueueController: { slotsPerBackend: 8 }\n", file: true,
				})
				who := func(client int) string { return fmt.Sprint("tenant-", client%tenants) }
				sum := func(d time.Duration) (all tallied) {
					for _, of := range s.crowd(clients, d, who) {
						all.served += of.served
						all.failed += of.failed
					}
					return all
				}
				first := sum(5 * time.Second)
				then := sum(5 * time.Second)
				t.Logf("first %+v, then %+v", first, then)
				// On a busy machine few are served, but trials come by the clock.
				if then.failed > 5 && then.failed*20 > then.served+then.failed {
					t.Errorf("after 5 s %d of %d fail", then.failed, then.served+then.failed)
				}
				if first.failed*2 > first.served+first.failed {
					t.Errorf("at first %d of %d fail, as many as without Weir", first.failed, first.served+first.failed)
				}
				a := s.models[0].Address()
				if s.epp.value("weir_endpoint_circuit_open", "endpoint", a) != 1 {
					t.Error("its circuit is closed")
				}
				s.epp.waitFor(float64(first.failed+then.failed), "weir_endpoint_answers_total", "endpoint", a, "class", "5xx")
				s.epp.settled()
			})
		}
	}
}

// A tenant whose requests fail everywhere, or that the engines alone limit (429 with Retry-After), never shuts an engine,
// and no request of others fails.
// TestATenantThatFailsEverywhereCostsOthersLittle of pkg/dispatch measures its small effect on others, without a
// processor's influence.
func TestATenantThatFailsEverywhere(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusInternalServerError, http.StatusTooManyRequests} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			shutsNothing(t, status)
		})
	}
}

// shutsNothing is TestATenantThatFailsEverywhere for the status of the bad tenant's answers.
func shutsNothing(t *testing.T, status int) {
	t.Helper()
	engine := modelsim.Fixed(8, 100*time.Millisecond)
	engine.Quirk = modelsim.Quirk{
		Match:  func(r *http.Request) bool { return r.Header.Get("x-tenant") == "bad" },
		Status: status, Header: http.Header{"Retry-After": {"30"}},
	}
	s := start(t, setup{
		models: []modelsim.Config{engine, engine}, file: true,
		config: "profile: recommended\nscheduling: { affinity: off }\n" + byTenant + "requestQueueController: { slotsPerBackend: 8 }\n",
	})
	const others = 16
	over := make(chan struct{})
	shut := make(chan string)
	go func() { // in time for a circuit, which is open for 1 s at least
		state := ""
		for {
			select {
			case <-over:
				shut <- state
				return
			case <-time.After(50 * time.Millisecond):
				if families, err := expect.Scrape(s.epp.MetricsURL + "/metrics"); err == nil && families.Sum("weir_endpoint_circuit_open") != 0 {
					state = "an engine was shut"
				}
			}
		}
	}()
	got := map[string]*tallied{}
	for rounds := 0; rounds < 20 && (got["bad"] == nil || got["bad"].failed < 200); rounds++ {
		for name, of := range s.crowd(others+4, 2*time.Second, func(client int) string {
			if client >= others {
				return "bad"
			}
			return fmt.Sprint("good-", client%4)
		}) {
			if got[name] == nil {
				got[name] = &tallied{}
			}
			got[name].served += of.served
			got[name].failed += of.failed
		}
	}
	close(over)
	if state := <-shut; state != "" {
		t.Error(state)
	}
	for name, of := range got {
		if t.Logf("%s: %+v", name, *of); name == "bad" && (of.served > 0 || of.failed < 200) || name != "bad" && (of.failed > 0 || of.served < 20) {
			t.Errorf("%s: %d requests are served and %d fail", name, of.served, of.failed)
		}
	}
	if len(got) != 5 {
		t.Errorf("answers of %d tenants, want 5", len(got))
	}
}

// An engine ten times slower than another gets less, and a hanging one next to nothing. The metrics name both.
func TestASlowAndAHangingEngine(t *testing.T) {
	t.Parallel()
	quick, slow := modelsim.Fixed(8, 50*time.Millisecond), modelsim.Fixed(8, 500*time.Millisecond)
	hangs := modelsim.Fixed(8, time.Minute)
	s := start(t, setup{
		models: []modelsim.Config{quick, slow, hangs},
		config: "profile: recommended\n" + byTenant + "requestQueueController: { slotsPerBackend: 8 }\n", file: true,
	})
	for range 30 {
		s.begin(from("a")) // 8 of these stay at the one that hangs
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.models[2].WaitFor(ctx, func(m modelsim.Stats) bool { return m.InFlight == 8 }); err != nil {
		t.Fatal(err)
	}
	s.crowd(8, 6*time.Second, func(int) string { return "a" })
	answers := func(i int) float64 {
		return s.epp.value("weir_endpoint_answers_total", "endpoint", s.models[i].Address(), "class", "2xx")
	}
	if answers(0) < 3*answers(1) || answers(2) != 0 {
		t.Errorf("the quick one answered %v, the slow one %v, the one that hangs %v", answers(0), answers(1), answers(2))
	}
	if old := s.epp.value("weir_endpoint_oldest_seconds", "endpoint", s.models[2].Address()); old < 4 {
		t.Errorf("the oldest request at the one that hangs is %v s old", old)
	}
	if q, w := s.epp.value("weir_endpoint_service_seconds", "endpoint", s.models[0].Address()),
		s.epp.value("weir_endpoint_service_seconds", "endpoint", s.models[1].Address()); w < 2*q {
		t.Errorf("the mean times are %v s and %v s", q, w)
	}
}
