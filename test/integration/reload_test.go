package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// configFile is a configuration that the test changes while Weir uses it.
type configFile struct {
	t    *testing.T
	path string
}

func newConfigFile(t *testing.T, text string) configFile {
	f := configFile{t: t, path: filepath.Join(t.TempDir(), "weir.yaml")}
	f.write(text)
	return f
}

// write replaces the file with an atomic rename.
func (f configFile) write(text string) {
	f.t.Helper()
	expect.Replaced(f.t, f.path, whole(text))
}

// reloaded waits until the given numbers of changes were applied and refused, and checks that the gauge agrees with the
// last one.
func (e *epp) reloaded(applied, refused int, valid float64) {
	e.t.Helper()
	e.waitFor(float64(applied), "weir_config_reloads_total", "result", "applied")
	e.waitFor(float64(refused), "weir_config_reloads_total", "result", "refused")
	if got := e.value("weir_config_valid"); got != valid {
		e.t.Errorf("weir_config_valid is %v, want %v", got, valid)
	}
}

// The constant part of the configuration, and the parts that take turns: weights, tiers, limits and bounds, chosen so
// that every kind of rejection occurs. A tier is removed and returns.
const reloadedBase = `
criticality: { header: x-class }
flows: { key: ["header:x-tenant"], weights: { a: %d } }
`

var reloadedTurns = []string{`
fairRequestQueue: { capacityMode: shared, totalCapacity: 100, flowCapacity: 100 }
requestQueueController: { enqueueAll: true, watermarkPerBackend: 4, lowerBoundPerBackend: 4, upperBoundPerBackend: 4 }
`, `
fairRequestQueue: { capacityMode: shared, totalCapacity: 12, flowCapacity: 4, topTier: fair }
requestQueueController: { enqueueAll: true, watermarkPerBackend: 2, lowerBoundPerBackend: 1, upperBoundPerBackend: 3, maxInFlightPerFlow: 2 }
tiers: [ { name: critical, canPreempt: true }, { name: sheddable, queueSize: 2 } ]
`, `
fairRequestQueue: { capacityMode: shared, totalCapacity: 100, flowCapacity: 10, queueTTL: 20ms }
requestQueueController: { enqueueAll: true, watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }
replaceTiers: true
tiers: [ { name: critical, minPriority: 1, reservedFloor: 1 }, { name: other, minPriority: 0, starvationThreshold: 5ms } ]
limits: { maxBodyBytes: 4096 }
requestBody: always
`, `
fairRequestQueue: { capacityMode: shared, totalCapacity: 8, flowCapacity: 8, promotionBudget: 1 }
requestQueueController: { enqueueAll: true, watermarkPerBackend: 3, lowerBoundPerBackend: 3, upperBoundPerBackend: 3, victimOrder: least-cost }
tiers: [ { name: critical, canPreempt: true }, { name: default, canPreempt: true, starvationThreshold: 10ms } ]
`, `
fairRequestQueue: { capacityMode: shared, totalCapacity: 100, flowCapacity: 100 }
requestQueueController: { enqueueAll: false, watermarkPerBackend: 4, maxInFlightPerFlowPerBackend: 1, numPoppers: 1 }
`}

// reloadedWrong are invalid in several ways each, or not configurations at all.
var reloadedWrong = []string{
	"fairRequestQueue: { totalCapacity: -1, capacityMode: shared }\nrequestQueueController: { numPoppers: 0 }\n",
	"fairRequestQueue: { capacityMode: reserved, totalCapcity: 10 }\nlimits: { maxBodyBytes: -5 }\n",
	"replaceTiers: true\ntiers: [ { name: x }, { name: x } ]\nflows: { key: [model], weights: { a: 0 } }\n",
	"fairRequestQueue: [\n",
}

// For ten seconds under load the configuration changes every 100 ms, alternating between a valid and an invalid one.
// Every request is answered, each is counted once and with its client's outcome, and nothing is held in the end.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	const writes, every, workers = 100, 100 * time.Millisecond, 24
	turn := func(i int) string {
		return fmt.Sprintf(reloadedBase, 1+i%7) + reloadedTurns[i%len(reloadedTurns)]
	}
	file := newConfigFile(t, turn(0))
	server := modelsim.Fixed(8, 10*time.Millisecond)
	s := start(t, setup{
		models: []modelsim.Config{server, server}, flags: []string{"--config-file=" + file.path}, edit: unhurried,
	})

	var load sync.WaitGroup
	var over atomic.Bool
	seen := make([]map[string]int, workers) // outcomes, by worker
	for w := range workers {
		seen[w] = map[string]int{}
		random := rand.New(rand.NewPCG(uint64(w), 5))
		load.Go(func() {
			for !over.Load() {
				a := ofTier(string("abcd"[random.IntN(4)]), []string{"critical", "standard", "sheddable"}[random.IntN(3)])
				a.body = chat("tiny", random.IntN(2) == 0)
				if random.IntN(20) == 0 {
					a.body = string(padded(8192))
				}
				got := s.send(a)
				switch {
				case got.err == nil && got.status == 200 && got.reason() == "":
					seen[w]["dispatched"]++
				case got.err == nil && got.status >= 400 && got.reason() != "":
					seen[w][got.reason()]++
					time.Sleep(5 * time.Millisecond) // otherwise there would be few other outcomes
				default:
					t.Errorf("a request is lost: %d %q %v %s", got.status, got.reason(), got.err, got.body)
				}
			}
		})
	}

	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for i := 1; i <= writes/2; i++ {
		<-ticks.C
		file.write(reloadedWrong[i%len(reloadedWrong)])
		s.epp.reloaded(i-1, i, 0)
		<-ticks.C
		file.write(turn(i))
		s.epp.reloaded(i, i, 1)
	}
	over.Store(true)
	load.Wait()
	s.epp.settled()
	for _, tier := range []string{"critical", "default", "sheddable", "other"} {
		s.epp.waitFor(0, "weir_tier_inflight", "tier", tier)
	}

	all := map[string]int{}
	for _, outcomes := range seen {
		for outcome, n := range outcomes {
			all[outcome] += n
		}
	}
	t.Logf("outcomes: %v", all)
	if got := s.epp.outcomes(); !maps.Equal(got, all) {
		t.Errorf("counted are %v, the clients saw %v", got, all)
	}
	for _, must := range []string{"dispatched", "flow-full", "queue-full", "displaced", "ttl-expired", "too-large", "preempted", "shed"} {
		if all[must] == 0 {
			t.Errorf("no request ended as %s: the changes did not come through", must)
		}
	}
	if n := s.epp.value("weir_extproc_panics_total"); n != 0 {
		t.Errorf("%v panics", n)
	}
}

// An invalid file is refused with every problem named in one line of the log, and the old configuration stays in use,
// waiters included. A valid one takes effect at once, for waiting requests too.
func TestInvalidReloadNamesEveryProblem(t *testing.T) {
	t.Parallel()
	v := newValve()
	file := newConfigFile(t, single)
	s := start(t, setup{models: v.one(), flags: []string{"--config-file=" + file.path}})
	s.begin(ask{})
	s.epp.waitFor(1, "weir_stock_level")
	s.fill(2, ask{})

	file.write(`fairRequestQueue: { totalCapacity: 0, flowCapacity: x, tierMode: weighted, queuTTL: 1s }
requestQueueController: { watermarkPerBackend: 3, lowerBoundPerBackend: 4 }
replaceTiers: true
tiers: [ { name: a }, { name: a } ]
flows: { discipline: none, weights: { a: -1 } }
limits: { maxBodyBytes: 0 }
`)
	s.epp.reloaded(0, 1, 0)
	s.epp.told(1, "THE NEW CONFIGURATION IS INVALID")
	var refusal string
	for line := range strings.Lines(s.epp.Log.String()) {
		if strings.Contains(line, "THE NEW CONFIGURATION IS INVALID") {
			refusal = line
		}
	}
	for _, problem := range []string{
		"fairRequestQueue.totalCapacity", "fairRequestQueue.flowCapacity", "fairRequestQueue.tierMode", "did you mean queueTTL",
		"lowerBoundPerBackend", "tiers[1].name", "flows.discipline", "flows.weights", "limits.maxBodyBytes", file.path,
	} {
		if !strings.Contains(refusal, problem) {
			t.Errorf("%q is not named in the log: %s", problem, refusal)
		}
	}
	s.epp.waitFor(2, "weir_queue_length")

	file.write("requestQueueController: { watermarkPerBackend: 3, lowerBoundPerBackend: 3, upperBoundPerBackend: 3 }\n")
	s.epp.reloaded(1, 1, 1)
	s.epp.waitFor(3, "weir_stock_level")
	v.open()
	s.epp.settled()
}

// SIGHUP rereads the configuration, as in other programs, and ends neither epp nor a waiting request. Without a file,
// Weir logs that there is none.
func TestHangupReloads(t *testing.T) {
	t.Parallel()
	file := newConfigFile(t, "fairRequestQueue: { queueTTL: 10m }\n"+
		"requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }\n")
	s := start(t, setup{models: []modelsim.Config{modelsim.Fixed(4, 20*time.Millisecond)}, flags: []string{"--config-file=" + file.path}})
	s.models[0].Inject(1, modelsim.Quirk{HeaderDelay: time.Hour})
	running := s.begin(ask{})
	s.running(1)
	waiting := s.queue(3)
	s.epp.signal(syscall.SIGHUP)
	s.epp.waitFor(1, "weir_config_reloads_total", "result", "unchanged")
	if n := s.epp.value("weir_queue_length"); n != 3 {
		t.Errorf("%v wait after SIGHUP, want 3", n)
	}
	running.cancel()
	for i, p := range waiting {
		if got := p.wait(); got.status != 200 || got.err != nil {
			t.Errorf("%d: got %d %v %s", i, got.status, got.err, got.body)
		}
	}

	without := start(t, setup{})
	for range 2 {
		without.epp.signal(syscall.SIGHUP)
		wantServed(t, "after SIGHUP", without.send(ask{}))
	}
	expect.Eventually(t, "a line in the log", func() error {
		if !strings.Contains(without.epp.Log.String(), "no file to read again") {
			return fmt.Errorf("the log is %s", without.epp.Log.String())
		}
		return nil
	})
}
