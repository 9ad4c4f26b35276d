package integration

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// before starts Weir and an Envoy with the named configuration, in front of a model server of the test's own, which
// gets the clients' requests. It answers Weir's own requests with 404.
func before(t *testing.T, server http.Handler, with setup) *scene {
	t.Helper()
	return beforeAll(t, with, server)
}

// beforeAll is before for several model servers.
func beforeAll(t *testing.T, with setup, servers ...http.Handler) *scene {
	t.Helper()
	s := &scene{t: t, with: with}
	var address []string
	for _, server := range servers {
		address = append(address, serve(t, server))
	}
	s.epp = startEPP(t, with, address)
	for _, name := range with.envoys {
		e, err := envoyrun.Start(context.Background(), envoyrun.Options{
			Config: name, ModelServers: address, Weir: s.epp.Address, Edit: with.edit, Concurrency: with.workers,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Kill() })
		s.envoys = append(s.envoys, e)
	}
	return s
}

// serve starts a model server, and returns its address.
func serve(t *testing.T, server http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	clients := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.UserAgent(), "weir-") {
			http.NotFound(w, r)
			return
		}
		server.ServeHTTP(w, r)
	})
	h := &http.Server{Handler: clients, Protocols: new(http.Protocols)}
	h.Protocols.SetHTTP1(true)
	go func() { _ = h.Serve(listener) }()
	t.Cleanup(func() { _ = h.Close() })
	return listener.Addr().String()
}

// wide lets all requests through at once.
const wide = "requestQueueController: { watermarkPerBackend: 1000, lowerBoundPerBackend: 1000, upperBoundPerBackend: 1000 }\n"

// lettingTrailersThrough enables trailers in both directions: the shipped files leave them off.
func lettingTrailersThrough(b envoyrun.Bootstrap) error {
	listener := b["static_resources"].(map[string]any)["listeners"].([]any)[0].(map[string]any)
	filter := listener["filter_chains"].([]any)[0].(map[string]any)["filters"].([]any)[0].(map[string]any)
	filter["typed_config"].(map[string]any)["http_protocol_options"] = map[string]any{"enable_trailers": true}
	options := b.Cluster(envoyrun.ModelServersCluster)["typed_extension_protocol_options"].(map[string]any)
	for _, o := range options {
		o.(map[string]any)["explicit_http_config"] = map[string]any{
			"http_protocol_options": map[string]any{"enable_trailers": true},
		}
	}
	return nil
}

// odd is an unusual answer, drawn from its seed.
type odd struct {
	status   int
	events   bool
	chunks   [][]byte
	pauses   []time.Duration // before each chunk
	trailers bool
	reset    int // before this chunk; -1: never
}

func newOdd(seed uint64) odd {
	rng := rand.New(rand.NewPCG(seed, 1))
	if seed >= withToken {
		o := newOdd(seed - withToken)
		if o.events {
			o.chunks, o.pauses = append(o.chunks, []byte("\ndata: x\n\n")), append(o.pauses, 0)
		}
		return o
	}
	o := odd{status: 200, events: rng.IntN(2) == 0, reset: -1, trailers: rng.IntN(5) == 0}
	switch rng.IntN(12) {
	case 0:
		return odd{status: 204, reset: -1}
	case 1:
		o.status = 500
	}
	n := rng.IntN(8)
	o.trailers = o.trailers && n > 0
	for range n {
		size := 1 + rng.IntN(1<<rng.IntN(12))
		if rng.IntN(60) == 0 {
			size = 200_000
		}
		chunk := make([]byte, size)
		for i := range chunk {
			chunk[i] = "0123456789abcdef:\r\n data event"[rng.IntN(30)]
		}
		if o.events && rng.IntN(3) == 0 {
			chunk = []byte(": a comment\n\n")
		}
		var pause time.Duration
		if rng.IntN(3) == 0 {
			pause = time.Duration(rng.IntN(3000)) * time.Microsecond
		}
		o.chunks, o.pauses = append(o.chunks, chunk), append(o.pauses, pause)
	}
	if n > 0 && rng.IntN(10) == 0 {
		o.reset = rng.IntN(n)
	}
	return o
}

// withToken is the first seed of answers whose streams have a token, and not only comments.
const withToken = 1 << 32

func (o odd) whole() []byte { return bytes.Join(o.chunks, nil) }

// serveOdd answers with the odd answer named by the request.
func serveOdd(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	seed, _ := strconv.ParseUint(r.Header.Get("x-seed"), 10, 64)
	o := newOdd(seed)
	if o.trailers {
		w.Header().Set("trailer", "x-checksum") // unannounced trailers are not waited for
	}
	w.Header().Set("content-type", "application/json")
	if o.events {
		w.Header().Set("content-type", "text/event-stream")
	}
	w.WriteHeader(o.status)
	if seed%2 == 0 {
		_ = http.NewResponseController(w).Flush() // send the headers separately
	}
	for i, chunk := range o.chunks {
		time.Sleep(o.pauses[i])
		if i == o.reset {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(chunk)
		_ = http.NewResponseController(w).Flush()
	}
	if o.trailers {
		w.Header().Set("x-checksum", fmt.Sprint(seed))
	}
}

// answerWithin is far longer than any odd answer takes.
const answerWithin = patience

// check requests one odd answer and compares every byte.
func (s *scene) check(seed uint64) error {
	o := newOdd(seed)
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.envoy().URL()+"/v1/chat/completions", bytes.NewReader([]byte(chat("m", true))))
	if err != nil {
		return err
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set("x-seed", fmt.Sprint(seed))
	s.authorize(request)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	want := o.whole()
	if o.reset >= 0 {
		// The headers may have been sent before or not. The bytes sent are a prefix of the whole.
		if err == nil && response.StatusCode == o.status {
			return fmt.Errorf("a reset answer ended well with %d of %d bytes", len(got), len(want))
		}
		if response.StatusCode == o.status && !bytes.HasPrefix(want, got) {
			return errors.New("a reset answer's bytes are others")
		}
		return nil
	}
	switch {
	case err != nil:
		return err
	case response.StatusCode != o.status:
		return fmt.Errorf("status %d, want %d", response.StatusCode, o.status)
	case !bytes.Equal(got, want):
		return fmt.Errorf("%d bytes are not the %d", len(got), len(want))
	case o.trailers && response.Trailer.Get("x-checksum") != fmt.Sprint(seed):
		return fmt.Errorf("trailers are %v", response.Trailer)
	}
	return nil
}

// more multiplies the odd answers of the tests that compare every byte. `make every-byte` has five times as many.
var more = flag.Uint64("more", 1, "how many times as many odd answers are checked")

// checkAll requests so many odd answers from this seed on, 16 at a time.
func (s *scene) checkAll(first, answers uint64) {
	const clients = 16
	var wg sync.WaitGroup
	for c := range uint64(clients) {
		wg.Go(func() {
			for seed := first + c; seed < first+answers; seed += clients {
				if err := s.check(seed); err != nil {
					s.t.Errorf("answer %d: %v", seed, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// For any answer, the gate lets every byte of it through, and leaves no stream behind.
func TestGateKeepsEveryByte(t *testing.T) {
	t.Parallel()
	s := before(t, http.HandlerFunc(serveOdd), setup{envoys: []string{"gate"}, config: wide, edit: lettingTrailersThrough})
	answers := 1000 * *more
	s.checkAll(0, answers)
	s.epp.settled()
	s.epp.waitFor(0, "weir_gate_streams")
	s.epp.waitFor(0, "weir_extproc_streams")
	// The stream of an answer that is reset at once may reach the gate after its request has ended.
	if n := s.epp.value("weir_gate_unknown_total"); n > float64(answers/50) {
		t.Errorf("%v gates named an unknown request", n)
	}
	// Each answer that is not reset at once has a status, although after a while only the gate sees it: here no request
	// can be preempted.
	if n := s.epp.value("weir_extproc_upstream_responses_total") - s.epp.value("weir_extproc_upstream_responses_total", "status", "unknown"); n < float64(answers*9/10) {
		t.Errorf("the status was seen of %v answers", n)
	}
	if log := s.epp.Log.String(); strings.Contains(log, "Envoy ends the streams") {
		t.Error("a false alarm")
	}
	if n := s.epp.value("weir_extproc_time_to_first_token_seconds"); n < float64(answers/2) {
		t.Errorf("the first token was seen of %v answers", n)
	}
}
