package integration

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// A tenant that asks for far more than it uses, pauses, and gets the refund on its return has saved nothing. Each time
// it is a new tenant, so that each of its three first answers is charged with 1,000 tokens, and has ten.
func TestInflatedLimitsAndLateRefundsDoNotPay(t *testing.T) {
	t.Parallel()
	server := modelsim.Fixed(4, 5*time.Millisecond)
	server.EarlyStop = 0.1
	var release atomic.Pointer[chan struct{}]
	server.Quirk.Match = func(r *http.Request) bool {
		if r.Header.Get("x-slow") != "" {
			<-*release.Load()
		}
		return false
	}
	c := compete(t, setup{envoys: []string{"usage"}, config: vtcFromEnvoy}, server, by("honest", plain()))
	for round := range 5 {
		name, slow := fmt.Sprint("attacker-", round), make(chan struct{})
		release.Store(&slow)
		for range 3 {
			a := by(name, completion(10, 100_000))
			a.header = append(a.header, "x-slow", "1")
			c.begin(a)
		}
		// Meanwhile the honest tenant gets more than these charges.
		idle := c.models[0].Stats().Completed
		expect.True(t, "the idle time", func() bool { return c.models[0].Stats().Completed >= idle+100 })
		c.round(func() {
			c.attack(150, func(i int) ask {
				if i == 20 {
					close(slow)
				}
				return by(name, plain())
			})
		})
	}
	c.wantNoGain()
}

// A tenant that looks harmless, gets more than its charge, and leaves with the debt still has the debt on its return.
func TestComingBackDoesNotShedDebt(t *testing.T) {
	t.Parallel()
	c := compete(t, setup{envoys: []string{"usage"}, config: vtcFromEnvoy}, modelsim.Fixed(4, 5*time.Millisecond), by("honest", plain()))
	for range 20 {
		c.attack(48, func(int) ask { return by("attacker", completion(10, 1)) }) // estimated at the floor
		c.attack(4, func(int) ask { return by("attacker", completion(10, 800)) })
		for range 3 { // comes and goes
			p := c.begin(by("attacker", completion(10, 1)))
			time.Sleep(time.Millisecond)
			p.cancel()
		}
	}
	c.wantNoGain()
}

// A tenant with one long open answer, followed by many requests at once, has saved nothing meanwhile. TestHourAndBurst
// in pkg/flowcontrol has an answer of an hour.
func TestHeldStreamAndBurst(t *testing.T) {
	t.Parallel()
	c := compete(t, setup{envoys: []string{"usage"}, config: vtcFromEnvoy}, modelsim.Fixed(4, 10*time.Millisecond), by("honest", plain()))
	c.attack(20, func(int) ask { return by("attacker", plain()) })
	// About a kilobyte in pieces of 25 bytes, one each 400 ms.
	c.models[0].Inject(1, modelsim.Quirk{
		Match:      func(r *http.Request) bool { return r.Header.Get("x-held") != "" },
		ChunkSizes: []int{25}, ChunkPause: 400 * time.Millisecond,
	})
	held := by("attacker", strings.TrimSuffix(completion(10, 100), "}")+`,"stream":true,"stream_options":{"include_usage":true}}`)
	held.header = append(held.header, "x-held", "1")
	stream := c.begin(held)
	select {
	case <-stream.done:
		t.Fatalf("the stream has ended: %+v", stream.answer)
	case <-time.After(18 * time.Second):
	}
	c.round(func() {
		c.attack(600, func(int) ask { return by("attacker", plain()) })
		wantServed(t, "the stream", stream.wait())
	})
	c.wantNoGain()
}

// A tenant known by its key has one share, for any number of invented names.
func TestVerifiedIdentityCannotMultiply(t *testing.T) {
	t.Parallel()
	const config = inTokens + `flows: { key: ["header:x-llm-d-inference-fairness-id"], discipline: vtc }
requestBody: always
`
	named := func(tenant, key string, i int) ask {
		a := by(tenant, plain())
		name := fmt.Sprintf("invented-%d", i)
		a.header = append(a.header, "authorization", "Bearer "+key, "x-llm-d-inference-fairness-id", name,
			"x-gateway-inference-fairness-id", name, "x-api-key", name, "x-user-id", name)
		return a
	}
	c := compete(t, setup{envoys: []string{"api-keys"}, config: config, strange: true, edit: envoyrun.ReadUsage},
		modelsim.Fixed(4, 5*time.Millisecond), named("honest", keyOfTeamB, 0))
	c.round(func() { c.attack(800, func(i int) ask { return named("attacker", keyOfTeamA, i) }) })
	c.wantNoGain()
}

// A client that may name flows has a share for each name, as docs/security.md says. A name used once gets no more than
// a permanent one.
func TestInventedNamesHaveAShareEach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		workers int
		tenant  func(worker, i int) string
		least   float64
	}{
		{"three names", 24, func(worker, _ int) string { return fmt.Sprintf("attacker-%d", worker%3) }, 3 * 0.95},
		{"three at a time, each used once", 3, func(worker, i int) string { return fmt.Sprintf("attacker-%d-%d", worker, i) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := compete(t, setup{envoys: []string{"usage"}, config: vtcFromEnvoy}, modelsim.Fixed(4, 5*time.Millisecond), by("honest", plain()))
			k.round(func() {
				var workers sync.WaitGroup
				for worker := range c.workers {
					workers.Go(func() {
						for i := range 1200 / c.workers {
							wantServed(t, "attacker", k.send(by(c.tenant(worker, i), plain())))
						}
					})
				}
				workers.Wait()
			})
			if got, honest, ratio := k.attained(); ratio < c.least || ratio > 3*1.05 {
				t.Errorf("the names have %d, the honest one %d: ratio %.3f, want 3", got, honest, ratio)
			}
		})
	}
}

// stream asks for one streamed chat, disconnects after so many tokens, and returns the number it has seen.
func (c *contest) stream(tenant, body string, most int) (n int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.envoy().URL()+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		c.t.Error(err)
		return 0
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set("x-tenant", tenant)
	response, err := client.Do(request)
	if err != nil {
		c.t.Error(err)
		return 0
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); n < most && lines.Scan(); {
		if strings.Contains(lines.Text(), `"content"`) {
			n++
		}
	}
	return n
}

// A client gains nothing by a limit below the engine's answer, by never asking for the usage, or by disconnecting
// early.
func TestUnderstatedLimitsDoNotPay(t *testing.T) {
	t.Parallel()
	const prompt = `"model":"tiny","messages":[{"role":"user","content":"write a story"}],"ignore_eos":true`
	const hidden = 1 << 20 // to the end
	for _, c := range []struct {
		name, body string
		leaves     int
	}{
		{"another limit is understated, and the attacker leaves", `{` + prompt + `,"max_tokens":1,"max_output_tokens":1,"max_completion_tokens":160,"stream":true}`, 80},
		{"another limit is understated, and usage not asked for", `{` + prompt + `,"max_tokens":1,"max_completion_tokens":160,"stream":true}`, hidden},
		{"the limit comes twice, and the attacker leaves", `{"max_completion_tokens":1,` + prompt + `,"max_completion_tokens":160,"stream":true}`, 80},
		{"a limit that does not count, and the attacker leaves", `{` + prompt + `,"max_output_tokens":1,"stream":true}`, 80},
		{"no limit, and usage not asked for", `{` + prompt + `,"stream":true}`, hidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most of the time is waiting, and a slow machine delays all alike
			server := modelsim.Fixed(4, 480*time.Millisecond)
			server.DefaultOutputTokens = 160
			honest := by("honest", strings.TrimSuffix(completion(20, 160), "}")+`,"stream":true,"stream_options":{"include_usage":true}}`)
			k := compete(t, setup{envoys: []string{"usage"}, config: vtcFromEnvoy}, server, honest)
			short := from("attacker")
			short.body = `{"model":"tiny","messages":[{"role":"user","content":"hi"}],"max_tokens":1}`
			k.attack(15, func(int) ask { return short }) // so that it is estimated at the floor
			k.began = time.Now()
			var over atomic.Bool
			var workers sync.WaitGroup
			for range 12 {
				workers.Go(func() {
					for !over.Load() {
						k.stream("attacker", c.body, c.leaves)
					}
				})
			}
			expect.Within(t, 2*patience, "enough is measured", func() error {
				if _, got := k.had(); got < 20*2*4*(20+2*160) {
					return fmt.Errorf("honest has attained %d", got)
				}
				return nil
			})
			over.Store(true)
			workers.Wait()
			k.wantAtMost(byTime)
		})
	}
}

// A client gains nothing by prompts that Weir cannot measure, nor by teaching it that many bytes of a body are no
// prompt, even if the answers report no usage: such prompts are charged by their possible size.
func TestUnmeasuredPromptsDoNotPay(t *testing.T) {
	t.Parallel()
	t.Run("images", func(t *testing.T) {
		t.Parallel()
		c := compete(t, setup{envoys: []string{"usage"}, config: vtcFromEnvoy}, modelsim.Fixed(4, 20*time.Millisecond),
			by("honest", lasting(2000, 10)))
		image := from("attacker")
		image.body = `{"model":"tiny","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
			strings.Repeat("QUJD", 1950) + `"}}]}],"max_tokens":10,"ignore_eos":true,"stream":true}` // 2,000 tokens there
		c.attack(400, func(int) ask { return image })
		c.wantNoGain()
	})
	t.Run("what a tool was called with", func(t *testing.T) {
		t.Parallel()
		c := compete(t, setup{envoys: []string{"usage"}, config: vtcFromEnvoy}, modelsim.Fixed(4, 20*time.Millisecond),
			by("honest", lasting(2000, 10)))
		called := from("attacker")
		called.body = `{"model":"tiny","messages":[{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":{"numbers":[0` +
			strings.Repeat(",777", 490) + `],"literals":[null` + strings.Repeat(",true", 390) + `],"data":"` + strings.Repeat("QUJD", 490) + `"` +
			strings.Repeat(`,"key":0`, 245) + `}}}]}],"max_tokens":10,"ignore_eos":true,"stream":true}` // 2,000 tokens there
		c.attack(400, func(int) ask { return called })
		c.wantNoGain()
	})
	t.Run("empty messages", func(t *testing.T) {
		t.Parallel()
		c := compete(t, setup{envoys: []string{"usage"}, config: vtcFromEnvoy}, modelsim.Fixed(4, 20*time.Millisecond),
			by("honest", lasting(2000, 10)))
		empty := from("attacker")
		empty.body = `{"model":"tiny","messages":[{"content":""}` + strings.Repeat(`,{"content":""}`, 532) +
			`],"max_tokens":10,"ignore_eos":true,"stream":true}` // 2,000 tokens there
		c.attack(400, func(int) ask { return empty })
		c.wantNoGain()
	})
	t.Run("padding before, bodies unread", func(t *testing.T) {
		t.Parallel()
		honest, attacker := by("honest", lasting(2000, 10)), by("attacker", mostlyPadding())
		honest.header = append(honest.header, "authorization", "Bearer "+keyOfTeamB)
		attacker.header = append(attacker.header, "authorization", "Bearer "+keyOfTeamA)
		c := compete(t, setup{envoys: []string{"api-keys"}, config: `profile: recommended
requestQueueController: { watermarkPerBackend: 4, lowerBoundPerBackend: 4, upperBoundPerBackend: 4 }
`, strange: true}, modelsim.Fixed(4, 20*time.Millisecond), honest)
		c.attack(60, func(int) ask { return attacker })
		c.began = time.Now()
		attacker.body = strings.TrimSuffix(lasting(2000, 10), "}") + `,"stream":true}`
		c.attack(400, func(int) ask { return attacker })
		c.wantNoGain()
	})
}

// A body counts by its length, even if it claims to be a form, which some engines read as JSON.
func TestFalseFormsDoNotPay(t *testing.T) {
	honest, attacker := by("honest", lasting(2000, 10)), by("attacker", strings.TrimSuffix(lasting(8000, 10), "}")+`,"stream":true}`)
	honest.header = append(honest.header, "authorization", "Bearer "+keyOfTeamB)
	attacker.header = append(attacker.header, "authorization", "Bearer "+keyOfTeamA, "content-type", "multipart/form-data; boundary=x")
	c := compete(t, setup{envoys: []string{"api-keys"}, config: `profile: recommended
requestQueueController: { watermarkPerBackend: 4, lowerBoundPerBackend: 4, upperBoundPerBackend: 4 }
`, strange: true}, modelsim.Fixed(4, 20*time.Millisecond), honest)
	c.attack(150, func(int) ask { return attacker })
	c.wantNoGain()
}

// An engine may generate the whole answer, and then refuse it as invalid. A tenant that has taught short answers before
// gains nothing by that: the refusal is charged by its time.
func TestRefusedAfterTheWorkDoesNotPay(t *testing.T) {
	t.Parallel()
	const speed = 4000 // tokens a second
	slots := make(chan struct{}, 4)
	var had [2]atomic.Int64 // by the honest one and the attacker
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.Header.Get("x-output"))
		slots <- struct{}{}
		time.Sleep(time.Duration(n) * time.Second / speed)
		<-slots
		w.Header().Set("content-type", "application/json")
		if r.Header.Get("x-refuse") != "" {
			had[1].Add(int64(plainIn + 2*n))
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		had[0].Add(int64(plainIn + 2*n))
		fmt.Fprintf(w, `{"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, plainIn, n, plainIn+n)
	})
	s := before(t, server, setup{envoys: []string{"usage"}, config: vtcFromEnvoy + "tokens: { output: { coldRate: 4000 } }\n"})
	request := func(tenant string, n int, more ...string) ask {
		a := by(tenant, completion(plainIn, n))
		a.header = append(append(a.header, "x-output", strconv.Itoa(n)), more...)
		return a
	}
	for range 60 {
		wantServed(t, "a short answer", s.send(request("attacker", 1)))
	}
	var over atomic.Bool
	var workers sync.WaitGroup
	for range 12 {
		for _, a := range []ask{request("honest", 200), request("attacker", 800, "x-refuse", "1")} {
			workers.Go(func() {
				for !over.Load() {
					s.send(a)
				}
			})
		}
	}
	time.Sleep(time.Second)
	honest, attacker := had[0].Load(), had[1].Load()
	time.Sleep(8 * time.Second)
	honest, attacker = had[0].Load()-honest, had[1].Load()-attacker
	over.Store(true)
	workers.Wait()
	s.epp.settled()
	ratio := float64(attacker) / float64(honest)
	t.Logf("the attacker has %d, the honest one %d: ratio %.3f", attacker, honest, ratio)
	if ratio > byTime {
		t.Errorf("the ratio is %.3f, want at most %v", ratio, byTime)
	}
}

// mostlyPadding is a completion of 200 tokens in 40 KB, most of which is no prompt.
func mostlyPadding() string {
	return strings.TrimSuffix(completion(200, 1), "}") + `,"user":"` + strings.Repeat("y", 40_000) + `"}`
}

// A tenant's cap in tokens holds after padding has taught Weir that most bytes of its bodies are no prompt.
func TestPaddingDoesNotLiftCaps(t *testing.T) {
	t.Parallel()
	s := start(t, setup{envoys: []string{"api-keys"}, models: []modelsim.Config{modelsim.Fixed(64, 200*time.Millisecond)}, config: `
profile: recommended
requestQueueController: { watermarkPerBackend: 64, lowerBoundPerBackend: 64, upperBoundPerBackend: 64, maxTokensInFlightPerFlow: 4000 }
`, strange: true})
	request := func(body string) ask {
		a := by("team-a", body)
		a.header = append(a.header, "authorization", "Bearer "+keyOfTeamA)
		return a
	}
	for range 40 {
		wantServed(t, "padded", s.send(request(mostlyPadding())))
	}
	var all []*pending
	for range 20 {
		all = append(all, s.begin(request(lasting(2000, 1)))) // estimated at 16 tokens more
	}
	most := 0.0
	for range 40 {
		most = max(most, s.epp.value("weir_stock_level"))
		time.Sleep(10 * time.Millisecond)
	}
	for _, p := range all {
		wantServed(t, "a prompt of 2,000 tokens", p.wait())
	}
	if most < 2 || most > 3 {
		t.Errorf("%v prompts of 2,000 tokens in flight, want 2 or 3 below a cap of 4,000", most)
	}
}
