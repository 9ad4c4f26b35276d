package integration

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/modelsim/engine"
)

// The charges by time of answers without usage are within 15 % of their real costs, in the sum over many: of answers
// read to the end, and of those whose clients disconnect. The model server generates 100 tokens a second for each
// request. Prompts have 200 tokens and a flow's answers 90 to 110. With usage: none the configuration states that rate.
// Otherwise Weir learns it from other answers with usage.
func TestChargedByTime(t *testing.T) { // before the parallel tests: a busy machine lengthens the charged time
	const warm, many = 32, 80
	for _, c := range []struct{ name, envoy, config string }{
		{"usage none", "recommended", "usage: none\ntokens: { output: { coldRate: 100 } }\n"},
		{"usage not asked for", "usage", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most of the time is waiting
			server := modelsim.Fixed(0, 0)
			server.Engine = engine.Config{Step: engine.StepTime{Base: 10 * time.Millisecond}, Seed: 1}
			server.Records, server.RecordBodyBytes, server.TagHeader = 1<<12, 0, "x-tenant"
			s := start(t, setup{models: []modelsim.Config{server}, envoys: []string{c.envoy}, config: `cost: tokens
requestQueueController: { watermarkPerBackend: 16, lowerBoundPerBackend: 16, upperBoundPerBackend: 16 }
flows: { key: ["header:x-tenant"], discipline: vtc }
requestBody: always
` + c.config})
			k := &contest{scene: s}
			// A chat of 200 tokens, whose limit is far above the length of its answer.
			body := func(length int, usage bool) string {
				return fmt.Sprintf(`{"model":"tiny","messages":[{"content":%q}],"max_completion_tokens":%d,"max_tokens":2000,`+
					`"stream":true,"stream_options":{"include_usage":%v}}`, strings.Repeat("x", 800-16), length, usage)
			}
			const toTheEnd = 1 << 20
			all := func(tenant string, n int, one func(length int) (string, int)) {
				var next atomic.Int64
				var workers sync.WaitGroup
				for range 16 {
					workers.Go(func() {
						for i := next.Add(1); i <= int64(n); i = next.Add(1) {
							text, most := one(90 + int(i*7%21))
							k.stream(tenant, text, most)
						}
					})
				}
				workers.Wait()
				s.epp.settled()
			}
			all("others", 48, func(length int) (string, int) { return body(length, true), toTheEnd })
			for tenant, one := range map[string]func(length int) (string, int){
				"stays":  func(length int) (string, int) { return body(length, false), toTheEnd },
				"leaves": func(length int) (string, int) { return body(1000, false), length },
			} {
				charged := func() float64 { return s.epp.value("weir_flow_actual_cost_total", "flow", tenant) }
				cost := func() (sum float64) {
					for _, r := range s.models[0].Records() {
						if r.Tag == tenant {
							sum += float64(r.Prompt + 2*r.Output)
						}
					}
					return sum
				}
				all(tenant, warm, one)
				ratio := math.Inf(1)
				for range 3 { // delays of a busy machine only add to it
					before, costBefore := charged(), cost()
					all(tenant, many, one)
					ratio = min(ratio, (charged()-before)/(cost()-costBefore))
					t.Logf("a client that %s is charged %.3f of its cost", tenant, ratio)
					if ratio <= 1.15 {
						break
					}
				}
				if ratio < 0.85 || ratio > 1.15 {
					t.Errorf("a client that %s is charged %.3f of its cost, want 0.85 to 1.15", tenant, ratio)
				}
			}
		})
	}
}

// Odd answers pass byte by byte also beside load and beside clients that disconnect during them, and nothing is left of
// any.
func TestUsageKeepsEveryByteUnderLoad(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"usage", "gate"} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			edit, first := lettingTrailersThrough, uint64(0)
			if config == "gate" { // as in TestUsageKeepsEveryByte
				edit, first = envoyrun.Edits(lettingTrailersThrough, envoyrun.ReadUsage), withToken
			}
			s := before(t, http.HandlerFunc(serveOdd), setup{envoys: []string{config}, config: wide + "cost: tokens\n", edit: edit})
			var over atomic.Bool
			var left, others atomic.Int64
			var workers sync.WaitGroup
			for worker := range uint64(4) {
				workers.Go(func() {
					for seed := first + 100_000 + worker; !over.Load(); seed += 4 {
						if s.leave(seed, time.Duration(1+seed%12)*time.Millisecond) {
							left.Add(1)
						}
					}
				})
				workers.Go(func() {
					for seed := first + 200_000 + worker; !over.Load(); seed += 4 {
						if err := s.check(seed); err != nil {
							t.Errorf("answer %d, of the load: %v", seed, err)
							return
						}
						others.Add(1)
					}
				})
			}
			s.checkAll(first, 2000**more)
			over.Store(true)
			workers.Wait()
			s.epp.settled()
			s.epp.waitFor(0, "weir_extproc_streams")
			if n := s.epp.value("weir_extproc_panics_total"); n != 0 {
				t.Errorf("%v panics", n)
			}
			t.Logf("%d clients have left, and %d answers were the load", left.Load(), others.Load())
			if left.Load() < 300 || others.Load() < 300 {
				t.Error("that is not much")
			}
		})
	}
}

// leave requests an odd answer, and disconnects after a time. It reports whether that was before the end.
func (s *scene) leave(seed uint64, after time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), after)
	defer cancel()
	a := ask{body: chat("m", true), header: []string{"x-seed", fmt.Sprint(seed)}}
	return send(ctx, s.envoy().URL(), a).err != nil && ctx.Err() != nil
}
