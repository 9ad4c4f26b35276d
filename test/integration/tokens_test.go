package integration

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// inTokens charges tokens, and gives the one model server four slots. Its limits suit a busy machine.
const inTokens = `cost: tokens
fairRequestQueue: { queueTTL: 10m }
requestQueueController: { watermarkPerBackend: 4, lowerBoundPerBackend: 4, upperBoundPerBackend: 4 }
`

// completion is a request whose prompt and answer have so many tokens, at 4 bytes a token.
func completion(in, out int) string {
	return fmt.Sprintf(`{"model":"tiny","prompt":%q,"max_tokens":%d}`, strings.Repeat("x", 4*in-2), out)
}

// tenant has a constant backlog.
type tenant struct {
	name    string
	workers int
	in, out int      // tokens of a request
	header  []string // besides its name
	path    string   // default: /v1/completions
	body    string   // default: completion(in, out)
}

// cost is the cost of a fully served request.
func (w tenant) cost() int { return w.in + 2*w.out }

func (w tenant) ask() ask {
	a := from(w.name)
	a.header = append(a.header, w.header...)
	if a.path = w.path; a.path == "" {
		a.path, w.body = "/v1/completions", completion(w.in, w.out)
	}
	a.body = w.body
	return a
}

// attained keeps all tenants backlogged, lets Weir learn the first costs, and then measures each tenant's service at
// the model server, until each has attained at least as much as given.
func attained(t *testing.T, with setup, least int, all ...tenant) map[string]int {
	t.Helper()
	server := modelsim.Fixed(4, 5*time.Millisecond)
	server.Records, server.TagHeader = 1<<16, "x-tenant"
	with.models = []modelsim.Config{server}
	s := start(t, with)
	var workers sync.WaitGroup
	var over atomic.Bool
	for _, w := range all {
		for range w.workers {
			workers.Go(func() {
				for !over.Load() {
					wantServed(t, w.name, s.send(w.ask()))
				}
			})
		}
	}
	defer workers.Wait()
	defer over.Store(true)
	served := func() (records int, costs map[string]int) {
		costs = map[string]int{}
		order := tenants(s.models[0])
		for _, name := range order {
			for _, w := range all {
				if w.name == name {
					costs[name] += w.cost()
				}
			}
		}
		return len(order), costs
	}
	enough := func(since map[string]int, least int) func() error {
		return func() error {
			families, err := expect.Scrape(s.epp.MetricsURL + "/metrics")
			if err != nil {
				return err
			}
			_, costs := served()
			for _, w := range all {
				if since != nil && families.Sum("weir_flow_entitled_share", "flow", w.name) == 0 {
					t.Errorf("%s has nothing waiting", w.name)
				}
				if got := costs[w.name] - since[w.name]; got < least {
					return fmt.Errorf("%s has attained %d", w.name, got)
				}
			}
			return nil
		}
	}
	s.epp.waitFor(float64(len(all)), "weir_active_flows")
	expect.Within(t, patience, "costs are learned", enough(nil, least/5))
	_, before := served()
	expect.Within(t, 2*patience, "enough is measured", enough(before, least))
	_, after := served()
	for name := range after {
		after[name] -= before[name]
	}
	return after
}

// Two tenants, one of 1,900 tokens in and 100 out, one of 50 and 50, attain service in the ratio of their weights, in
// tokens, measured at the model server. This holds for both ways of the usage, and also if the gateway states a tenth
// of the long prompts' tokens.
func TestFairInTokens(t *testing.T) {
	t.Parallel()
	long := tenant{name: "long", workers: 8, in: 1900, out: 100}
	short := tenant{name: "short", workers: 64, in: 50, out: 50}
	lying := long
	lying.header = []string{"x-input-tokens", "190"}
	const learned = 20 * 5 * (2100 + 150)
	for _, c := range []struct {
		name, envoy, config string
		long                tenant
		least               int
		ratio               float64
	}{
		{"wfq, usage from bodies", "full-duplex", `flows: { key: ["header:x-tenant"] }`, long, learned, 1},
		{"wfq, usage from Envoy", "usage", `flows: { key: ["header:x-tenant"] }
requestBody: always`, long, learned, 1},
		{"vtc, usage from Envoy", "usage", `flows: { key: ["header:x-tenant"], discipline: vtc }
requestBody: always`, long, learned, 1},
		{"vtc, and a weight of 3", "usage", `flows: { key: ["header:x-tenant"], discipline: vtc, weights: { long: 3 } }
requestBody: always`, long, learned, 3},
		{"wfq, underestimated by 10", "usage", `flows: { key: ["header:x-tenant"], discipline: wfq }
trustedHeaders: { inputTokens: x-input-tokens }
requestBody: always`, lying, learned + 20*2*4*1710, 1},
		{"vtc, underestimated by 10", "usage", `flows: { key: ["header:x-tenant"], discipline: vtc }
trustedHeaders: { inputTokens: x-input-tokens }
requestBody: always`, lying, learned + 20*2*4*1710, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := attained(t, setup{envoys: []string{c.envoy}, config: inTokens + c.config + "\n"}, c.least, c.long, short)
			if ratio := float64(got["long"]) / float64(got["short"]); ratio < 0.95*c.ratio || ratio > 1.05*c.ratio {
				t.Errorf("%v: ratio %.3f, want %v within 5 %%", got, ratio, c.ratio)
			} else {
				t.Logf("%v: ratio %.3f", got, ratio)
			}
		})
	}
}

// The same as shipped: tenants by their API keys, api-keys.yaml unchanged, and the profile recommended with other slots
// only. Estimates may be wrong by a fifth of the longest request for each of the four in flight.
func TestFairInTokensAsShipped(t *testing.T) {
	t.Parallel()
	const least = 20 * (5*(2100+150) + 2*4*420)
	long := tenant{name: "team-a", workers: 8, in: 1900, out: 100, header: []string{"authorization", "Bearer " + keyOfTeamA}}
	short := tenant{name: "team-b", workers: 64, in: 50, out: 50, header: []string{"authorization", "Bearer " + keyOfTeamB}}
	const slots = "profile: recommended\nrequestQueueController: { watermarkPerBackend: 4, lowerBoundPerBackend: 4, upperBoundPerBackend: 4 }\n" +
		"fairRequestQueue: { queueTTL: 10m }\n"
	for config, ratio := range map[string]float64{"": 1, "flows: { weights: { team-a: 3 } }\n": 3} {
		t.Run(fmt.Sprintf("weight %v", ratio), func(t *testing.T) {
			t.Parallel()
			got := attained(t, setup{envoys: []string{"api-keys"}, config: slots + config, strange: true}, least, long, short)
			if got := float64(got["team-a"]) / float64(got["team-b"]); got < 0.95*ratio || got > 1.05*ratio {
				t.Errorf("ratio %.3f, want %v within 5 %%", got, ratio)
			} else {
				t.Logf("ratio %.3f", got)
			}
		})
	}
}

// vtcFromEnvoy has counters in tokens, and usage that Envoy reads.
const vtcFromEnvoy = inTokens + `flows: { key: ["header:x-tenant"], discipline: vtc }
requestBody: always
`

// A client gains nothing by requests that look cheaper than they are: their costs become known.
func TestDisguisesDoNotPay(t *testing.T) {
	t.Parallel()
	const measured = 20 * 5 * (2020 + 2020)
	honest := tenant{name: "honest", workers: 16, in: 2000, out: 10}
	image := `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
		strings.Repeat("QUJD", 1950) + `"}}]}]`
	number := make([]string, 2000)
	for i := range number {
		number[i] = "7"
	}
	for _, attacker := range []tenant{
		{
			name: "images", workers: 16, in: (len(image) + 3) / 4, out: 10, path: "/v1/chat/completions",
			body: `{"model":"tiny","messages":` + image + `,"max_tokens":10}`,
		},
		{name: "numbers", workers: 16, in: 2000, out: 10, path: "/v1/completions", body: `{"model":"tiny","prompt":[` + strings.Join(number, ",") + `],"max_tokens":10}`},
		{
			name: "sixteen answers", workers: 16, in: 10, out: 16 * 62, path: "/v1/completions",
			body: `{"model":"tiny","prompt":"` + strings.Repeat("x", 38) + `","max_tokens":62,"n":16}`,
		},
	} {
		t.Run(attacker.name, func(t *testing.T) {
			t.Parallel()
			got := attained(t, setup{envoys: []string{"usage"}, config: vtcFromEnvoy}, measured, honest, attacker)
			if ratio := float64(got[attacker.name]) / float64(got["honest"]); ratio > 1.05 {
				t.Errorf("%v: ratio %.3f, want at most 1.05", got, ratio)
			} else {
				t.Logf("%v: ratio %.3f", got, ratio)
			}
		})
	}
}

// A client that looked harmless before gains nothing by disconnecting from a stream before its usage: the answer's time
// shows its length.
func TestLeavingEarlyDoesNotPay(t *testing.T) {
	t.Parallel()
	const tokens, left = 320, 80 // so far from the end that even a late reader is not served whole
	server := modelsim.Fixed(4, 1280*time.Millisecond)
	server.TagHeader = "x-tenant"
	s := start(t, setup{models: []modelsim.Config{server}, envoys: []string{"usage"}, config: vtcFromEnvoy})
	for range 15 { // so that it is estimated at the floor
		short := tenant{name: "attacker", in: 10, out: 1}
		wantServed(t, "a short one", s.send(short.ask()))
	}
	body := strings.TrimSuffix(completion(10, tokens), "}") + `,"stream":true,"stream_options":{"include_usage":true}}`
	// stream reads so many tokens and then disconnects, or reads to the end if there are fewer. It sums up their costs.
	stream := func(name string, most int, attained *atomic.Int64) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.envoy().URL()+"/v1/completions", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		request.Header.Set("content-type", "application/json")
		request.Header.Set("x-tenant", name)
		response, err := client.Do(request)
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		attained.Add(10)
		lines := bufio.NewScanner(response.Body)
		for n := 0; n < most && lines.Scan(); {
			if strings.Contains(lines.Text(), `"text"`) {
				n++
				attained.Add(2)
			}
		}
	}
	var workers sync.WaitGroup
	var over atomic.Bool
	attained := map[string]*atomic.Int64{"honest": {}, "attacker": {}}
	for name, most := range map[string]int{"honest": 1 << 20, "attacker": left} {
		for range 12 {
			workers.Go(func() {
				for !over.Load() {
					stream(name, most, attained[name])
				}
			})
		}
	}
	defer workers.Wait()
	defer over.Store(true)
	has := func(what string, least int64) {
		expect.Within(t, 2*patience, what, func() error {
			if got := attained["honest"].Load(); got < least {
				return fmt.Errorf("honest has attained %d", got)
			}
			return nil
		})
	}
	has("the rate is learned", 4*(10+2*tokens))
	h, a := attained["honest"].Load(), attained["attacker"].Load()
	has("enough is measured", h+40*(10+2*tokens))
	h, a = attained["honest"].Load()-h, attained["attacker"].Load()-a
	if ratio := float64(a) / float64(h); ratio > byTime {
		t.Errorf("the attacker has %d, the honest one %d: ratio %.3f, want at most %v", a, h, ratio, byTime)
	} else {
		t.Logf("the attacker has %d, the honest one %d: ratio %.3f", a, h, ratio)
	}
	if n := s.epp.value("weir_extproc_usage_unknown_total"); n < 30 {
		t.Errorf("only %v have left", n)
	}
}

// The filter that reads the usage leaves every byte of an answer unchanged, also together with the gate.
func TestUsageKeepsEveryByte(t *testing.T) {
	t.Parallel()
	// The others read as recommended does, and TestUsageKeepsEveryByteUnderLoad has the rest.
	for config, answers := range map[string]uint64{"recommended": 1000, "gate": 400, "api-keys": 200, "jwt": 200} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			edit, first := lettingTrailersThrough, uint64(0)
			if config == "gate" {
				// The filter adds trailers to an answer that ends within a line, and Envoy keeps them while the gate
				// waits for a token. So a stream with only such a comment would be held.
				edit, first = envoyrun.Edits(lettingTrailersThrough, envoyrun.ReadUsage), withToken
			}
			s := before(t, http.HandlerFunc(serveOdd), setup{
				envoys: []string{config}, config: wide + "cost: tokens\n", edit: envoyrun.Edits(trustIssuer, edit),
			})
			s.checkAll(first, answers**more)
			s.epp.settled()
			s.epp.waitFor(0, "weir_extproc_streams")
			if n := s.epp.value("weir_extproc_panics_total"); n != 0 {
				t.Errorf("%v panics", n)
			}
		})
	}
}
