//go:build e2evllm

package e2evllm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/loadgen"
)

// A round of preemption: bulk requests fill the engine to the bound, two of them wait there for a slot, and then a
// request of a higher tier arrives.
const (
	preemptionRounds = 10
	bulkTokens       = 300 // some seconds of work: none ends by itself before the preemption
	urgentTokens     = 16
	// abortWithin is the longest time from the urgent request until the engine has dropped the victim.
	abortWithin = 200 * time.Millisecond
)

// The tiers of the profile smg-priority without their reservations, which are meant for many more slots than here.
var preemptionConfig = fmt.Sprintf(`
profile: smg-priority
requestQueueController: { slotsPerBackend: %d }
criticality: { maxClass: system }
tiers:
- { name: system, reservedFloor: 0 }
- { name: interactive, reservedFloor: 0, reservedPerSlot: 0 }
- { name: default, reservedPerSlot: 0 }
`, bound)

// preempted is the result of a round. Times are since the urgent request was sent.
type preempted struct {
	rejected  time.Duration // the victim's client had its 503
	logged    time.Duration // the engine logged the victim's abort
	forgotten time.Duration // running + waiting at the bound for good, with the urgent request among them
	most      int           // the largest running + waiting, and
	mostAfter int           // the largest from abortWithin on
}

// preemptionScene checks that a streamed request that waits for its first token inside the engine makes room for an
// urgent one.
func preemptionScene(t *testing.T, e *engine) section {
	set := before(t, e, preemptionConfig)
	// The first answer that passes the gate shows it to Weir.
	wantStream(t, "the first", <-begin(t, set.weir.URL(), streamed("weir-e2e-first.", "bulk", 1)), 1)
	start := usedNow(t)
	var rejected, logged, forgotten []time.Duration
	most, mostAfter := 0, 0
	for round := range preemptionRounds {
		p := preemptOnce(t, e, set, fmt.Sprintf("weir-e2e-%d", round))
		t.Logf("round %d: %+v", round, p)
		rejected, logged = append(rejected, p.rejected), append(logged, p.logged)
		forgotten = append(forgotten, p.forgotten)
		most, mostAfter = max(most, p.most), max(mostAfter, p.mostAfter)
	}
	foreign := foreignSince(t, start)
	wantQuiet(t, foreign, mostForeignBounded)

	var text strings.Builder
	fmt.Fprintf(&text, `%d streamed bulk requests of %d tokens fill the engine: %d run, the others wait inside it for their first token. Then an
urgent request comes, of a tier that may preempt (profile smg-priority, behind the first-token gate). %d rounds. In each,
exactly one bulk request's client had a clean 503 (`+"`x-weir-reason: preempted`, `Retry-After: 1`, `X-SMG-Preempted: true`"+`,
a JSON error), all the others and the urgent one had whole answers. Since the urgent request was sent:

| | median | largest |
|---|---|---|
`, bound, bulkTokens, slots, preemptionRounds)
	for _, line := range []struct {
		what string
		of   []time.Duration
	}{
		{"the victim's client has its 503", rejected},
		{"the engine logs the victim's abort", logged},
		{"the engine's running + waiting are within the bound for good", forgotten},
	} {
		d := loadgen.Distribute(line.of)
		fmt.Fprintf(&text, "| %s | %.0f ms | %.0f ms |\n", line.what, ms(d.P50), ms(d.Max))
	}
	fmt.Fprintf(&text, `
Wanted: the last two within %d ms. The engine's gauges, read every 10 ms: at most %d while one left and the other came, at most
%d from %d ms on (bound: %d). Others used %.0f %% of the processor time that was used meanwhile.
`, abortWithin.Milliseconds(), most, mostAfter, abortWithin.Milliseconds(), bound, 100*foreign)
	return section{"A preemption while the victim waits for its first token", text.String()}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// preemptOnce is one round, with this prefix of its requests' names.
func preemptOnce(t *testing.T, e *engine, set *setting, name string) (p preempted) {
	t.Helper()
	type ended struct {
		name string
		answer
	}
	bulk := make(chan ended, bound)
	for i := range bound {
		id := fmt.Sprintf("%s-bulk-%d.", name, i)
		pending := begin(t, set.weir.URL(), streamed(id, "bulk", bulkTokens))
		go func() { bulk <- ended{id, <-pending} }()
	}
	e.await(t, occupancy{running: slots, waiting: bound - slots})
	stop := e.watch(t, 10*time.Millisecond)
	time.Sleep(50 * time.Millisecond) // some samples before

	urgentID := name + "-urgent."
	urgent := begin(t, set.weir.URL(), streamed(urgentID, "interactive", urgentTokens))
	victim := <-bulk
	wantPreempted(t, victim.answer)
	for range bound - 1 {
		other := <-bulk
		wantStream(t, other.name, other.answer, bulkTokens)
	}
	served := <-urgent
	wantStream(t, urgentID, served, urgentTokens)
	samples := stop()

	p.rejected = victim.ended.Sub(served.sent)
	p.logged = sinceLogged(t, e, served.sent, victim.name, "aborted")
	// From here on gauges at the bound mean that the victim no longer counts, since the urgent one does.
	p.forgotten = sinceLogged(t, e, served.sent, "Added request", urgentID)
	for _, s := range samples {
		since := s.at.Sub(served.sent)
		p.most = max(p.most, s.sum())
		if since > abortWithin {
			p.mostAfter = max(p.mostAfter, s.sum())
		}
		if s.sum() > bound {
			p.forgotten = max(p.forgotten, since)
		}
	}
	if p.logged > abortWithin || p.forgotten > abortWithin {
		t.Errorf("the engine logged the abort after %v, and had forgotten the victim after %v, want at most %v",
			p.logged, p.forgotten, abortWithin)
	}
	if p.mostAfter > bound {
		t.Errorf("later the engine has %d requests, want at most %d", p.mostAfter, bound)
	}
	return p
}

// streamed requests a stream, under a name that the engine logs.
func streamed(id, tier string, tokens int) ask {
	return ask{
		body: fmt.Sprintf(`{"model":%q,"max_tokens":%d,"stream":true,"stream_options":{"include_usage":true},`+
			`"messages":[{"role":"user","content":"What is a weir?"}]}`, model, tokens),
		header: []string{"x-request-id", id, "x-smg-priority", tier},
	}
}

// sinceLogged is the time from the given one to the engine's line with all the parts.
func sinceLogged(t *testing.T, e *engine, since time.Time, parts ...string) time.Duration {
	t.Helper()
	at, ok := e.log.when(parts...)
	if !ok {
		t.Errorf("the engine's log has no line with %q", parts)
	}
	return at.Sub(since)
}

// wantPreempted checks a victim's answer.
func wantPreempted(t *testing.T, got answer) {
	t.Helper()
	if got.err != nil || got.status != http.StatusServiceUnavailable {
		t.Fatalf("the first bulk request to end: status %d, error %v, want 503: %.300s", got.status, got.err, got.body)
	}
	for name, want := range map[string]string{
		"x-weir-reason": "preempted", "x-llm-d-request-dropped-reason": "preempted", "retry-after": "1",
		"x-smg-preempted": "true", "content-type": "application/json",
	} {
		if value := got.header.Get(name); value != want {
			t.Errorf("the victim's %s is %q, want %q", name, value, want)
		}
	}
	if wait, err := strconv.Atoi(got.header.Get("retry-after-ms")); err != nil || wait < 1 || wait > 1000 {
		t.Errorf("the victim's retry-after-ms is %q, want 1 to 1000", got.header.Get("retry-after-ms"))
	}
	var body struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(got.body, &body); err != nil || body.Error.Code != "scheduler_preempted" || body.Error.Message == "" {
		t.Errorf("the victim's body is %.300q (%v)", got.body, err)
	}
}

// wantStream checks a whole streamed answer.
func wantStream(t *testing.T, name string, got answer, tokens int64) {
	t.Helper()
	if got.err != nil || got.status != http.StatusOK || !bytes.HasSuffix(bytes.TrimSpace(got.body), []byte("data: [DONE]")) {
		t.Errorf("%s: status %d, error %v, want a whole stream: %.300s", name, got.status, got.err, got.body)
		return
	}
	if usage := usageIn(t, got.body, true, len(got.body)); usage.Output != tokens {
		t.Errorf("%s: %d tokens, want %d", name, usage.Output, tokens)
	}
}
