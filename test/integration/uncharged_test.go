package integration

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/modelsim"
)

// noPanics fails the test if a decision or a stream has panicked.
func (e *epp) noPanics() {
	e.t.Helper()
	for _, metric := range []string{"weir_decision_panics_total", "weir_extproc_panics_total"} {
		if n := e.value(metric); n != 0 {
			e.t.Errorf("%s is %v", metric, n)
		}
	}
}

// With the queue switched off nothing is charged, so the ends of answers correct nothing: every place is free again,
// and the queue has all of them after it is switched on.
func TestSwitchedOffAndOnAgainLeavesNoGhosts(t *testing.T) {
	t.Parallel()
	const recommended = "profile: recommended\n" + byTenant
	file := newConfigFile(t, recommended+single)
	s := start(t, setup{
		envoys: []string{"recommended"}, models: []modelsim.Config{modelsim.Fixed(8, 0)},
		flags: []string{"--config-file=" + file.path},
	})
	wantServed(t, "the first of its flow", s.send(from("a")))
	s.epp.settled()

	file.write(recommended + "requestQueueController: { enabled: false }\n")
	s.epp.reloaded(1, 0, 1)
	for range 20 {
		wantServed(t, "with the queue switched off", s.send(from("a")))
	}
	s.epp.settled()

	file.write(recommended + single)
	s.epp.reloaded(2, 0, 1)
	for range 5 {
		wantServed(t, "with the queue switched on again", s.send(from("a")))
	}
	s.epp.settled()
	s.epp.noPanics()
}

// A list of models is not inference, so no request preempts it, in any tier: a preemptor waits for its end.
func TestModelListIsNotPreempted(t *testing.T) {
	t.Parallel()
	held, release := make(chan struct{}), make(chan struct{})
	s := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet {
			close(held)
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		w.Header().Set("content-type", "application/json")
		_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":3,"completion_tokens":4}}`)
	}), setup{envoys: []string{"recommended"}, config: strings.Replace(smgOneSlot, `["header:x-tenant"] }`, `["header:x-tenant"], discipline: vtc }`, 1)})
	wantServed(t, "the first of its flow", s.send(as("bulk", "a")))
	s.epp.settled()

	list := as("bulk", "a")
	list.method, list.path = http.MethodGet, "/v1/models"
	passed := s.begin(list)
	<-held
	urgent := s.begin(as("interactive", "vip"))
	s.epp.waitFor(1, "weir_queue_length")
	close(release)
	wantServed(t, "the list", passed.wait())
	wantServed(t, "the one that waited for it", urgent.wait())
	s.epp.settled()
	s.epp.noPanics()
}
