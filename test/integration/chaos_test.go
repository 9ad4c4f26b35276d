package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// Sizes for the chaos test. Weir takes bodies up to bodyLimit, the Envoys that buffer up to bufferLimit.
const (
	chaosRequests = 10_000
	chaosWorkers  = 48
	bodyLimit     = 64 << 10
	bufferLimit   = 128 << 10
)

// chaosHeader tells the model servers the treatment of a request. They use nothing else, so the seed determines it.
const chaosHeader = "x-chaos"

// 10,000 requests have every possible course, through three kinds of Envoy at once. Each request that reached Weir has
// exactly one outcome, nothing is held in the end, and neither memory nor goroutines have grown.
func TestChaos(t *testing.T) {
	t.Parallel()
	server := modelsim.Fixed(16, 3*time.Millisecond)
	server.Records = 0
	s := start(t, setup{
		envoys: []string{"recommended", "full-duplex", "header-only"},
		models: []modelsim.Config{server, server, server},
		config: fmt.Sprintf(`
fairRequestQueue: { totalCapacity: 60, flowCapacity: 6, queueTTL: 100ms }
requestQueueController: { watermarkPerBackend: 5, lowerBoundPerBackend: 5, upperBoundPerBackend: 5 }
flows: { key: ["header:x-llm-d-inference-fairness-id", "model"] }
limits: { maxBodyBytes: %d }
`, bodyLimit),
		flags: []string{"--enable-pprof"},
		edit:  smallBuffers,
	})
	s.unleash(chaosRequests)
}

// The same with classes that preempt each other, through a first-token gate and in full duplex: there is still one
// outcome for each request, and nothing held in the end.
func TestChaosWithPreemption(t *testing.T) {
	t.Parallel()
	server := modelsim.Fixed(16, 3*time.Millisecond)
	server.Records = 0
	s := start(t, setup{
		envoys: []string{"gate", "full-duplex"},
		models: []modelsim.Config{server, server, server},
		config: strings.NewReplacer(
			`"header:x-tenant"`, `"header:x-llm-d-inference-fairness-id", "model"`,
			"vip: { maxClass: system }", "t0: { maxClass: system }, t1: { maxClass: system }, t2: { maxClass: interactive }",
		).Replace(smgTiers) + fmt.Sprintf(`
requestQueueController: { slotsPerBackend: 3 }
limits: { maxBodyBytes: %d }
`, bodyLimit),
		flags: []string{"--enable-pprof"},
		edit:  smallBuffers,
	})
	s.unleash(chaosRequests / 2)
	if n := s.epp.outcomes()["preempted"]; n == 0 {
		t.Error("no request was preempted: this is not chaos")
	}
}

// smallBuffers lets Envoy buffer no more than bufferLimit.
func smallBuffers(b envoyrun.Bootstrap) error {
	b.Listener()["per_connection_buffer_limit_bytes"] = bufferLimit
	return nil
}

// unleash sends requests to which anything may happen, and checks the accounts after calm, if there is one, has put all
// else in order.
func (s *scene) unleash(requests int, calm ...func()) {
	for _, m := range s.models {
		m.Inject(-1, modelsim.Quirk{Match: chaotic("reset"), Reset: modelsim.ResetBeforeHeaders})
		m.Inject(-1, modelsim.Quirk{Match: chaotic("cut"), Reset: modelsim.ResetMidAnswer})
		m.Inject(-1, modelsim.Quirk{Match: chaotic("500"), Status: 500})
		m.Inject(-1, modelsim.Quirk{Match: chaotic("503"), Status: 503})
		m.Inject(-1, modelsim.Quirk{Match: chaotic("crumbs"), ChunkSizes: []int{1, 7, 64}, ChunkPause: 100 * time.Microsecond})
		m.Inject(-1, modelsim.Quirk{Match: chaotic("late"), HeaderDelay: 30 * time.Millisecond})
		m.Inject(-1, modelsim.Quirk{Match: chaotic("trailers"), Trailer: http.Header{"X-Chaos": {"end"}}})
	}
	// The baseline includes one connection from each Envoy.
	for i := range s.envoys {
		s.send(ask{envoy: i})
	}
	s.epp.settled()
	base := s.epp.resources()

	rng := rand.New(rand.NewPCG(1, 10_000))
	plans := make(chan plan)
	go func() {
		defer close(plans)
		for i := range requests {
			plans <- newPlan(rng, i%len(s.envoys))
		}
	}()
	var workers sync.WaitGroup
	for range chaosWorkers {
		workers.Go(func() {
			for p := range plans {
				p.carryOut(s.envoys[p.envoy].URL())
			}
		})
	}
	workers.Wait()
	for _, order := range calm {
		order()
	}

	s.epp.settled()
	s.epp.waitFor(0, "weir_extproc_streams")
	s.epp.waitFor(0, "weir_extproc_body_bytes")
	s.oneOutcomeEach(base.streams, requests)
	s.epp.unburdened(base)
}

func chaotic(kind string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Header.Get(chaosHeader) == kind }
}

// plan is what one client does.
type plan struct {
	envoy  int
	client *http.Client
	tenant string
	class  string
	kind   string
	path   string
	body   []byte
	slow   bool          // the body comes in pieces
	half   bool          // only half of it comes, until the client leaves
	leaves time.Duration // after this time; 0: it stays
}

var chaosKinds = []string{"", "", "", "reset", "cut", "500", "503", "crumbs", "late", "trailers"}

func newPlan(rng *rand.Rand, envoy int) plan {
	p := plan{
		envoy: envoy, client: client, path: "/v1/chat/completions",
		tenant: fmt.Sprintf("t%d", rng.IntN(12)),
		kind:   chaosKinds[rng.IntN(len(chaosKinds))],
		body:   []byte(chat("tiny", rng.IntN(2) == 0)),
		slow:   rng.IntN(10) == 0,
	}
	p.class = []string{"system", "interactive", "default", "bulk", "no such class"}[rng.IntN(5)]
	if rng.IntN(2) == 0 {
		p.client = client2
	}
	if rng.IntN(4) == 0 {
		p.tenant = "" // then the body has to be read for the flow's key
	}
	if rng.IntN(5) == 0 {
		p.leaves = time.Duration(1 + rng.IntN(int(25*time.Millisecond)))
	}
	switch rng.IntN(24) {
	case 0: // over Weir's limit, within Envoy's buffer
		p.body = padded(bodyLimit + 1 + rng.IntN(bodyLimit/2))
	case 1: // over both
		p.body = padded(bufferLimit + 1 + rng.IntN(bufferLimit))
	case 2: // large, but allowed
		p.body = padded(bodyLimit / 2)
	case 3: // cut in the middle
		p.body = p.body[:1+rng.IntN(len(p.body)-1)]
	case 4: // no JSON at all
		for i := range p.body {
			p.body[i] = byte(rng.Uint32())
		}
	case 5:
		p.body = []byte([]string{`null`, `[]`, `{"model":7}`, `{"model":""}`, `"x"`, strings.Repeat("[", 9000)}[rng.IntN(6)])
	case 6:
		p.body = nil
	case 7:
		p.path = "/v1/messages"
	case 8:
		p.path = "/nowhere"
	case 9:
		p.half, p.leaves = true, time.Duration(1+rng.IntN(int(25*time.Millisecond)))
	}
	return p
}

// padded returns a chat completion request of about the given size.
func padded(size int) []byte {
	return []byte(`{"model":"tiny","messages":[{"role":"user","content":"` + strings.Repeat("x", size) + `"}],"max_tokens":4}`)
}

// carryOut sends the request and reads the answer. Any answer is fine, but it must end.
func (p plan) carryOut(url string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if p.leaves > 0 {
		defer time.AfterFunc(p.leaves, cancel).Stop()
	}
	var body io.Reader = bytes.NewReader(p.body)
	switch {
	case p.half:
		body = &half{rest: p.body[:len(p.body)/2], gone: ctx.Done()}
	case p.slow:
		body = &trickle{rest: p.body}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+p.path, body)
	if err != nil {
		panic(err) // the plans are well-formed requests
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set(chaosHeader, p.kind)
	request.Header.Set("x-smg-priority", p.class)
	if p.tenant != "" {
		request.Header.Set("x-llm-d-inference-fairness-id", p.tenant)
	}
	response, err := p.client.Do(request)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

// trickle sends a body in eight pieces with pauses.
type trickle struct {
	rest []byte
	size int
}

func (r *trickle) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	if r.size == 0 {
		r.size = len(r.rest)/8 + 1
	}
	time.Sleep(time.Millisecond)
	n := copy(p, r.rest[:min(r.size, len(r.rest))])
	r.rest = r.rest[n:]
	return n, nil
}

// oneOutcomeEach compares three counts of the requests that reached Weir: its streams, its outcomes, and Envoy's.
func (s *scene) oneOutcomeEach(before, requests int) {
	s.t.Helper()
	outcomes, sum := s.epp.outcomes(), 0
	for _, n := range outcomes {
		sum += n
	}
	streams := int(s.epp.value("weir_extproc_streams_total"))
	if sum != streams {
		s.t.Errorf("%d outcomes for %d requests: %v", sum, streams, outcomes)
	}
	opened := 0
	for _, e := range s.envoys {
		stats, err := e.Stats(context.Background(), `ext_proc\.streams_started$`)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, n := range stats {
			opened += int(n)
		}
	}
	gated := slices.Contains(s.with.envoys, "gate") // then Envoy counts the gate's streams as well
	// A client, one in five of which leave early, may disconnect before Envoy opens the stream, or before its first
	// message.
	if streams > opened || !gated && streams < opened-requests/4 {
		s.t.Errorf("Weir saw %d streams, the Envoys opened %d", streams, opened)
	}
	if n := streams - before; n < requests*7/10 {
		s.t.Errorf("only %d of %d requests came to Weir", n, requests)
	}
	s.t.Logf("%d streams opened by Envoy, %d seen: %v", opened, streams, outcomes)
	for _, must := range []string{"dispatched", "client-cancelled", "bad-request", "too-large"} {
		if outcomes[must] == 0 {
			s.t.Errorf("no request ended as %s: this is not chaos", must)
		}
	}
}
