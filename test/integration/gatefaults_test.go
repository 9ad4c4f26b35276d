package integration

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// parked is a model server of event streams. It sends the headers and the bytes before the first token at once, and the
// rest at the test's command.
type parked struct {
	before  string
	began   chan struct{}
	release chan struct{}
	gone    chan struct{} // a client disconnected while its answer was parked
}

func newParked(before string) *parked {
	return &parked{before: before, began: make(chan struct{}, 64), release: make(chan struct{}), gone: make(chan struct{}, 64)}
}

const parkedRest = "data: first\n\ndata: second\n\n"

func (p *parked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("content-type", "text/event-stream")
	_, _ = io.WriteString(w, p.before)
	_ = http.NewResponseController(w).Flush()
	p.began <- struct{}{}
	select {
	case <-p.release:
		_, _ = io.WriteString(w, parkedRest)
	case <-r.Context().Done():
		p.gone <- struct{}{}
	}
}

// forget discards the events so far.
func (p *parked) forget() {
	for {
		select {
		case <-p.began:
		case <-p.gone:
		default:
			return
		}
	}
}

// next waits until another answer is parked, and at the gate if atGate says so.
func (s *scene) next(p *parked, atGate float64) {
	s.t.Helper()
	select {
	case <-p.began:
	case <-time.After(patience):
		s.t.Fatal("the request does not come to the model server")
	}
	s.epp.waitFor(atGate, "weir_gate_streams")
}

// known shows Weir the gate, with one answer.
func (s *scene) known(p *parked) {
	s.t.Helper()
	first := s.begin(as("default", "a"))
	<-p.began
	p.release <- struct{}{}
	wantServed(s.t, "the first", first.wait())
	s.epp.settled()
}

// wantHeld checks that no request has an answer.
func (s *scene) wantHeld(p *pending) {
	s.t.Helper()
	select {
	case <-p.done:
		s.t.Fatalf("answered while it should be held: %d %v %q", p.answer.status, p.answer.err, p.answer.body)
	case <-time.After(100 * time.Millisecond):
	}
}

// Bytes before the first token do not end preemption: comments, and the events that begin a stream of /v1/responses.
// They arrive unchanged with the token. This holds on every path, even one that only this server has.
func TestGateWaitsForTheToken(t *testing.T) {
	t.Parallel()
	const early = "event: response.created\ndata: {}\n\nevent: response.in_progress\ndata: {}\n\n"
	for _, test := range []struct {
		config, path, prelude string
		atGate                float64
	}{
		{"gate", "/v1/chat/completions", ": waiting\n\n: waiting\n\n", 1},
		{"gate", "/v1/embeddings", "", 1},
		{"gate", "/v1/responses", ": waiting\n\n" + early, 1},
		{"gate", "/v1/messages", "", 1},
		{"full-duplex", "/v1/chat/completions", ": waiting\n\n", 0}, // which needs no gate
		{"full-duplex", "/v1/responses", early, 0},
	} {
		t.Run(test.config+test.path, func(t *testing.T) {
			path, prelude, atGate := test.path, test.prelude, test.atGate
			p := newParked(prelude)
			s := before(t, p, setup{envoys: []string{test.config}, config: smgOneSlot})
			s.known(p)
			bulk := as("bulk", "a")
			bulk.path, bulk.body = path, `{"model":"tiny","input":"x","messages":[],"stream":true}`

			served := s.begin(bulk)
			s.next(p, atGate)
			s.wantHeld(served)
			p.release <- struct{}{}
			got := served.wait()
			wantServed(t, "the one that was not preempted", got)
			if got.body != prelude+parkedRest {
				t.Errorf("the answer is %q", got.body)
			}

			victim := s.begin(bulk)
			s.next(p, atGate)
			preemptor := as("interactive", "vip")
			preemptor.path, preemptor.body = bulk.path, bulk.body
			urgent := s.begin(preemptor)
			wantPreempted(t, path, path, victim.wait())
			<-p.gone
			s.next(p, atGate)
			p.release <- struct{}{}
			wantServed(t, "the preemptor", urgent.wait())
			s.epp.settled()
			s.epp.waitFor(0, "weir_gate_streams")
			s.epp.waitFor(0, "weir_extproc_streams")
			if n := s.epp.value("weir_gate_unknown_total"); n != 0 {
				t.Errorf("%v unknown", n)
			}
		})
	}
}

// A burst comes right after Weir's start, before it has seen a gate. All of it is held, and each request can be
// preempted before its first token.
func TestGateHoldsTheFirstBurst(t *testing.T) {
	t.Parallel()
	p := newParked(": waiting\n\n")
	s := before(t, p, setup{envoys: []string{"gate"}, config: smgTwoSlots})
	bulk := as("bulk", "a")
	bulk.body = `{"model":"tiny","messages":[],"stream":true}`
	urgent := as("interactive", "vip")
	urgent.body = bulk.body
	victims := []*pending{s.begin(bulk), s.begin(bulk)}
	s.next(p, 2)
	s.next(p, 2)
	s.wantHeld(victims[0])
	s.wantHeld(victims[1])
	preemptors := []*pending{s.begin(urgent), s.begin(urgent)}
	for _, victim := range victims {
		wantPreempted(t, "of the burst", "", victim.wait())
		<-p.gone
	}
	for range preemptors {
		p.release <- struct{}{}
	}
	for _, preemptor := range preemptors {
		wantServed(t, "a preemptor", preemptor.wait())
	}
	s.epp.settled()
}

// If one of two Envoys has no gate, its many answers do not stop the gate of the other from holding.
func TestGatedAndUngatedEnvoys(t *testing.T) {
	t.Parallel()
	p := newParked(": waiting\n\n")
	s := before(t, p, setup{envoys: []string{"gate", "recommended"}, config: smgOneSlot})
	s.known(p)
	for range 100 {
		ungated := as("default", "a")
		ungated.envoy, ungated.body = 1, `{"model":"tiny","messages":[],"stream":true}`
		served := s.begin(ungated)
		s.next(p, 0)
		p.release <- struct{}{}
		wantServed(t, "without a gate", served.wait())
	}
	s.epp.settled()
	bulk := as("bulk", "a")
	bulk.body = `{"model":"tiny","messages":[],"stream":true}`
	victim := s.begin(bulk)
	s.next(p, 1)
	s.wantHeld(victim)
	urgent := s.begin(as("interactive", "vip"))
	wantPreempted(t, "behind the gate", "", victim.wait())
	<-p.gone
	p.release <- struct{}{}
	wantServed(t, "the preemptor", urgent.wait())
	s.epp.settled()
}

// If the first token and the preemption happen at the same time, through a real Envoy, the client gets either the whole
// answer or the whole rejection. The preemptor is served in any case.
func TestFirstTokenRacesPreemption(t *testing.T) {
	t.Parallel()
	p := newParked(": waiting\n\n")
	s := before(t, p, setup{envoys: []string{"gate"}, config: smgOneSlot})
	s.known(p)
	tokens, preemptions := 0, 0
	for i := range 100 {
		bulk := s.begin(as("bulk", "a"))
		s.next(p, 1)
		token := make(chan struct{})
		go func() {
			defer close(token)
			time.Sleep(time.Duration(i%10) * 150 * time.Microsecond)
			p.release <- struct{}{} // for the request in flight or, if it is gone, the preemptor
		}()
		urgent := s.begin(as("interactive", "vip"))
		got := bulk.wait()
		if got.status == http.StatusOK {
			tokens++
			if got.err != nil || got.body != p.before+parkedRest {
				t.Errorf("cut: %v, %q", got.err, got.body)
			}
		} else {
			preemptions++
			wantPreempted(t, "the one in flight", "", got)
		}
		<-token
		select {
		case <-urgent.done:
		case p.release <- struct{}{}:
		}
		wantServed(t, "the preemptor", urgent.wait())
		s.epp.settled()
		p.forget()
	}
	t.Logf("the token won %d times, the preemption %d times", tokens, preemptions)
}

// headers begins a request and sends the answer to the channel once its headers have arrived; nil if there is none.
func (s *scene) headers(a ask) <-chan *http.Response {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.envoy().URL()+"/v1/chat/completions", strings.NewReader(longStream))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("content-type", "application/json")
	for i := 0; i+1 < len(a.header); i += 2 {
		request.Header.Set(a.header[i], a.header[i+1])
	}
	came := make(chan *http.Response, 1)
	go func() {
		response, err := client.Do(request)
		if err != nil {
			s.t.Error(err)
		}
		came <- response
	}()
	return came
}

// wantWhole reads the answer to its end.
func wantWhole(t *testing.T, response *http.Response, want string) {
	t.Helper()
	if response == nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the answer is %v", response)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != want {
		t.Errorf("the body is %q, %v, want %q", body, err, want)
	}
}

// If Weir is killed while its gate holds, the headers continue, and the answer is complete.
func TestWeirDiesWhileTheGateHolds(t *testing.T) {
	t.Parallel()
	p := newParked("")
	s := before(t, p, setup{envoys: []string{"gate"}, config: smgOneSlot})
	s.known(p)
	came := s.headers(as("bulk", "a"))
	s.next(p, 1)
	select {
	case <-came:
		t.Fatal("the headers were not held")
	case <-time.After(100 * time.Millisecond):
	}
	_ = s.epp.Kill()
	response := <-came
	p.release <- struct{}{}
	wantWhole(t, response, parkedRest)
}

// If a token comes after the gate's timeout, or the gate's Weir is away, the headers continue as if there were no gate.
// The answers are complete, and from then on the request cannot be preempted.
func TestGateThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(envoyrun.Bootstrap) error{
		"too slow": func(b envoyrun.Bootstrap) error {
			b.Filter(envoyrun.GateFilter)["message_timeout"] = "0.1s"
			return nil
		},
		"dead": func(b envoyrun.Bootstrap) error {
			nobody := maps.Clone(b.Cluster("weir"))
			nobody["name"] = "nobody"
			nobody["load_assignment"] = map[string]any{"cluster_name": "nobody", "endpoints": []any{}}
			resources := envoyrun.Object(b, "static_resources")
			resources["clusters"] = append(envoyrun.List(resources, "clusters"), any(nobody))
			envoyrun.Object(b.Filter(envoyrun.GateFilter), "grpc_service")["envoy_grpc"] = map[string]any{"cluster_name": "nobody"}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newParked(": waiting\n\n")
			s := before(t, p, setup{envoys: []string{"gate"}, config: smgOneSlot, edit: edit})
			s.known(p)
			s.known(p)
			response := <-s.headers(as("bulk", "a"))
			<-p.began
			// The headers have been sent: it is too late to preempt.
			urgent := s.begin(as("interactive", "vip"))
			s.epp.waitFor(1, "weir_tier_queue_length", "tier", "interactive")
			s.wantHeld(urgent)
			p.release <- struct{}{}
			wantWhole(t, response, p.before+parkedRest)
			<-p.began
			p.release <- struct{}{}
			wantServed(t, "the one that waited", urgent.wait())
			s.epp.settled()
			s.epp.waitFor(0, "weir_extproc_streams")
		})
	}
}
