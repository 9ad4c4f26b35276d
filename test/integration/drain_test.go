package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// oneAtATime returns a configuration that lets one request run, with room for many waiting ones.
func oneAtATime(drainWindow string) string {
	return "fairRequestQueue: { totalCapacity: 100, flowCapacity: 100, queueTTL: 10m }\n" +
		"requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1, " +
		"drainWindow: " + drainWindow + " }\n"
}

// On SIGTERM readiness goes down first, so that no new traffic comes. Queued requests, and later arrivals, are served
// within the drain window. Peers answer 503 to everything from then on.
func TestDrainServesTheQueue(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		models: []modelsim.Config{modelsim.Fixed(1, 5*time.Millisecond)},
		config: oneAtATime("2m"), flags: []string{"--drain-timeout=3m"},
	})
	// The first one runs until the test releases it.
	s.models[0].Inject(1, modelsim.Quirk{HeaderDelay: time.Hour})
	running := s.begin(ask{})
	s.running(1)
	waiting := s.queue(20)
	if got := s.epp.serving("readiness"); got != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("before the signal readiness is %v", got)
	}

	s.epp.signal(syscall.SIGTERM)
	expect.Eventually(t, "readiness down", func() error {
		if got := s.epp.serving("readiness"); got != healthv1.HealthCheckResponse_NOT_SERVING {
			return fmt.Errorf("readiness is %v", got)
		}
		return nil
	})
	if got := s.epp.serving("liveness"); got != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("liveness is %v: a draining process must not be restarted", got)
	}
	s.epp.waitFor(20, "weir_queue_length") // none was rejected
	late := s.begin(ask{})
	s.epp.waitFor(21, "weir_queue_length") // and requests that still arrive are accepted

	running.cancel()
	for i, p := range append(waiting, late) {
		if got := p.wait(); got.status != 200 || got.err != nil {
			t.Errorf("%d: got %d %v %s", i, got.status, got.err, got.body)
		}
	}
	if code := s.epp.exitCode(patience); code != 0 { // well before the window is over, since nothing is left
		t.Errorf("exit code %d, want 0", code)
	}
}

// Requests that still wait at the end of the drain window are rejected. Running ones continue to their end.
func TestDrainWindowOver(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		models: []modelsim.Config{slow()},
		config: oneAtATime("200ms"), flags: []string{"--drain-timeout=3m"},
	})
	running := s.begin(ask{})
	s.epp.waitFor(1, "weir_stock_level")
	waiting := s.queue(20)

	s.epp.signal(syscall.SIGTERM)
	moments := map[string]bool{}
	for i, p := range waiting {
		got := p.wait()
		if got.status != 503 || got.reason() != "draining" || got.err != nil {
			t.Errorf("%d: got %d %q %v, want 503 draining", i, got.status, got.reason(), got.err)
		}
		if got.header.Get("retry-after") != "1" || got.header.Get("retry-after-ms") == "" {
			t.Errorf("%d: retry-after %q, retry-after-ms %q", i, got.header.Get("retry-after"), got.header.Get("retry-after-ms"))
		}
		if message := got.failure(t).Error.Message; !strings.Contains(message, "shutting down") {
			t.Errorf("%d: message %q", i, message)
		}
		moments[got.header.Get("retry-after-ms")] = true
	}
	if len(moments) < 15 {
		t.Errorf("%d clients come back at %d moments, want them spread", len(waiting), len(moments))
	}

	s.running(1) // still running
	running.cancel()
	if code := s.epp.exitCode(patience); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// When Weir stops under continuous load, every client gets its answer or a clean rejection: no request that reached
// Weir is cut, and each counted rejection has reached its client.
func TestDrainUnderLoad(t *testing.T) {
	t.Parallel()
	for _, envoy := range []string{"recommended", "full-duplex"} {
		t.Run(envoy, func(t *testing.T) {
			s := start(t, setup{
				envoys: []string{envoy},
				models: []modelsim.Config{modelsim.Fixed(1, 20*time.Millisecond)},
				config: oneAtATime("1s"), flags: []string{"--drain-timeout=30s", "--v=1"},
			})
			const workers = 16
			ended := make(chan drained)
			for worker := range workers {
				go func() { ended <- s.loadUntilTheEnd(chat("tiny", worker%2 == 0)) }()
			}
			expect.Eventually(t, "work", func() error {
				if n := s.models[0].Stats().Completed; n < 20 {
					return fmt.Errorf("%d completed", n)
				}
				return nil
			})
			s.epp.signal(syscall.SIGTERM)
			if code := s.epp.exitCode(time.Minute); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			var all drained
			for range workers {
				one := <-ended
				all.served += one.served
				all.rejected += one.rejected
				all.unclean = append(all.unclean, one.unclean...)
			}
			t.Logf("%d served, %d rejected with a Retry-After", all.served, all.rejected)
			gone := s.epp.logTime(t, "drained:") // the listener is closed from then on
			for _, got := range all.unclean {
				// With bodies in FULL_DUPLEX Envoy cannot continue without Weir.
				if envoy == "recommended" || got.status != 503 || got.err != nil || got.at.Before(gone) {
					t.Errorf("%v after the listener closed: got %d %q %v %s", got.at.Sub(gone), got.status, got.reason(),
						got.err, got.body)
				}
			}
			s.epp.told(all.rejected, `"outcome":"draining"`)
		})
	}
}

// drained has one worker's view of a stopping Weir.
type drained struct {
	served, rejected int
	unclean          []timedAnswer
}

// timedAnswer is an answer and the time of its end.
type timedAnswer struct {
	answer
	at time.Time
}

// logTime returns the time of the first line of epp's log that has the text.
func (e *epp) logTime(t *testing.T, text string) time.Time {
	t.Helper()
	for line := range strings.Lines(e.Log.String()) {
		if !strings.Contains(line, text) {
			continue
		}
		var entry struct{ Time time.Time }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		return entry.Time
	}
	t.Fatalf("no line of epp's log has %q", text)
	return time.Time{}
}

// loadUntilTheEnd sends one request after another until epp has ended.
func (s *scene) loadUntilTheEnd(body string) (seen drained) {
	for {
		got := send(context.Background(), s.envoy().URL(), ask{body: body})
		switch {
		case got.err == nil && got.status == 200:
			seen.served++
		case got.err == nil && got.status == 503 && got.reason() == "draining" && got.header.Get("retry-after") != "":
			seen.rejected++
		default:
			seen.unclean = append(seen.unclean, timedAnswer{got, time.Now()})
		}
		select {
		case <-s.epp.Done():
			return seen
		default:
		}
	}
}

// At the end of the drain timeout, the streams of running answers end with OK. The answers continue unobserved, even if
// the filter fails closed or they go through Weir, where a dead Weir would cut both. The streamed answer has begun by
// then, the other has not.
func TestDrainTimeoutCutsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, envoy := range []string{"fail-closed", "recommended", "full-duplex"} {
		t.Run(envoy, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{
				envoys: []string{envoy},
				models: []modelsim.Config{modelsim.Fixed(8, 15*time.Second)},
				config: oneAtATime("100ms"), flags: []string{"--drain-timeout=1500ms", "--upper-bound-per-backend=2"},
			})
			streamed, whole := s.begin(ask{body: chat("tiny", true)}), s.begin(ask{})
			s.running(2)
			s.epp.signal(syscall.SIGTERM)
			if code := s.epp.exitCode(patience); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			if n := s.models[0].Stats().InFlight; n != 2 {
				t.Fatalf("%d answers run after the end of epp, want 2", n)
			}
			if got := streamed.wait(); got.status != 200 || got.err != nil || !strings.Contains(got.body, "[DONE]") {
				t.Errorf("streamed: got %d %v %s", got.status, got.err, got.body)
			}
			if got := whole.wait(); got.status != 200 || got.err != nil {
				t.Errorf("whole: got %d %v %s", got.status, got.err, got.body)
			}
		})
	}
}

// A proxy learns with a delay that a replica is not ready. So an idle replica still answers for a while, 5 s by
// default. The filter fails closed here, so a request without Weir's answer is a 503.
func TestIdleReplicaAnswersUntilProxiesKnow(t *testing.T) {
	t.Parallel()
	const least = 5 * time.Second
	s := start(t, setup{envoys: []string{"fail-closed"}, shipped: true})
	s.epp.waitFor(2, "weir_ready_backends")
	begun := time.Now()
	s.epp.signal(syscall.SIGTERM)
	expect.Eventually(t, "readiness down", func() error {
		if got := s.epp.serving("readiness"); got != healthv1.HealthCheckResponse_NOT_SERVING {
			return fmt.Errorf("readiness is %v", got)
		}
		return nil
	})
	answered := 0
	for time.Since(begun) < least {
		got := s.send(ask{})
		if got.status == 200 && got.err == nil {
			answered++
		} else if since := time.Since(begun); since < least {
			t.Fatalf("%v after SIGTERM: got %d %v %s", since, got.status, got.err, got.body)
		}
	}
	if answered == 0 {
		t.Error("none was answered")
	}
	if code := s.epp.exitCode(patience); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if took := time.Since(begun); took < least {
		t.Errorf("it ended %v after SIGTERM, want %v at least", took, least)
	}
}

// queue begins n requests and waits until all of them wait in the queue.
func (s *scene) queue(n int) []*pending {
	s.t.Helper()
	begun := make([]*pending, n)
	for i := range begun {
		begun[i] = s.begin(ask{})
	}
	s.epp.waitFor(float64(n), "weir_queue_length")
	return begun
}

// serving asks the health port about a service.
func (e *epp) serving(service string) healthv1.HealthCheckResponse_ServingStatus {
	e.t.Helper()
	conn, err := grpc.NewClient(e.Health, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		e.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: service})
	if err != nil {
		e.t.Fatalf("health of %s: %v", service, err)
	}
	return got.GetStatus()
}
