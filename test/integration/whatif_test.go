package integration

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/simulate"
)

// The recording of two equal flows predicts a weight of 3: shares within 5 points, and median waits within 20 %, in the
// model servers' view. Both flows have clients that wait for each answer, and more of them than there are slots. The
// recorded configuration is recognised.
func TestAPredictedWeightComesTrue(t *testing.T) {
	t.Parallel()
	const equal, changed = byTenant + "requestQueueController: { slotsPerBackend: 2 }\n",
		"flows: { key: [\"header:x-tenant\"], weights: { heavy: 3 } }\nrequestQueueController: { slotsPerBackend: 2 }\n"
	file := newConfigFile(t, equal)
	var servers []modelsim.Config
	for _, took := range []time.Duration{150, 170, 190, 220} { // different, so that slots do not become free together
		server := modelsim.Fixed(2, took*time.Millisecond)
		server.Records = 1 << 10
		servers = append(servers, server)
	}
	s := start(t, setup{models: servers, flags: []string{"--config-file=" + file.path}})

	var recorded string
	before := s.overload(func() { recorded = s.epp.recording() })
	next := newConfigFile(t, changed)
	compared := whatIf(t, recorded, file.path, next.path)
	if e := compared.Error; e == nil || e.SharePoints > 5 || e.WaitPercent > 20 {
		t.Errorf("the error of the prediction is %+v", e)
	}
	if !compared.Configurations[0].AsRecorded || compared.Configurations[1].AsRecorded {
		t.Error("the recorded configuration is taken for another one, or another one for it")
	}

	file.write(changed)
	s.epp.reloaded(1, 0, 1)
	after := s.overload(func() {})
	for _, f := range compared.Configurations[1].Flows {
		was, is := before[f.Flow], after[f.Flow]
		t.Logf("%s: %.1f %% and %.2f s, predicted %.1f %% and %.2f s, became %.1f %% and %.2f s",
			f.Flow, was.share, was.wait, f.After.SharePercent, f.After.WaitP50, is.share, is.wait)
		if f.Clients != "closed" {
			t.Errorf("the clients of %s are taken for %q", f.Flow, f.Clients)
		}
		if math.Abs(f.After.SharePercent-is.share) > 5 {
			t.Errorf("%s: a share of %.1f %% was predicted, and it is %.1f %%", f.Flow, f.After.SharePercent, is.share)
		}
		if math.Abs(f.After.WaitP50-is.wait) > 0.2*is.wait {
			t.Errorf("%s: a median wait of %.2f s was predicted, and it is %.2f s", f.Flow, f.After.WaitP50, is.wait)
		}
	}
	if heavy := after["heavy"].share; heavy < before["heavy"].share+15 {
		t.Errorf("the weight has moved the share from %.1f to %.1f %%", before["heavy"].share, heavy)
	}
}

// whatIf returns what weir simulate says of configurations.
func whatIf(t *testing.T, recorded string, configs ...string) (compared simulate.Comparison) {
	t.Helper()
	args := []string{"simulate", "--recording=" + recorded, "--output=json"}
	for _, config := range configs {
		args = append(args, "--config="+config)
	}
	out, err := runWeir(t, args...)
	if err == nil {
		err = json.Unmarshal([]byte(out), &compared)
	}
	if err != nil || len(compared.Configurations) != len(configs) {
		t.Fatalf("%v: %s", err, out)
	}
	return compared
}

// fared is how a flow fared: its share of the requests at the model servers, in percent, and its median wait, in seconds.
type fared struct{ share, wait float64 }

// overload has clients of two flows send one request after the other, and returns how the flows fared until the function has
// returned, which is called after 260 answers. In the end nothing is left.
func (s *scene) overload(last func()) map[string]fared {
	s.t.Helper()
	const workers, most = 20, 260
	var all sync.WaitGroup
	var over atomic.Bool
	var answers atomic.Int64
	enough := make(chan struct{})
	began := time.Now()
	for _, flow := range []string{"heavy", "light"} {
		for range workers {
			all.Go(func() {
				for !over.Load() {
					sent := strconv.FormatInt(time.Now().UnixNano(), 10)
					wantServed(s.t, flow, s.send(ask{header: []string{"x-tenant", flow, "x-sent", sent}}))
					if answers.Add(1) == most {
						close(enough)
					}
				}
			})
		}
	}
	<-enough
	last()
	ended := time.Now()
	over.Store(true)
	all.Wait()
	s.epp.settled()
	waits, total := map[string][]float64{}, 0
	for _, m := range s.models {
		for _, r := range m.Records() {
			if r.Arrived.Before(began) || r.Arrived.After(ended) {
				continue
			}
			sent, err := strconv.ParseInt(r.Header.Get("x-sent"), 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			flow := r.Header.Get("x-tenant")
			waits[flow] = append(waits[flow], r.Arrived.Sub(time.Unix(0, sent)).Seconds())
			total++
		}
	}
	outcome := map[string]fared{}
	for flow, all := range waits {
		slices.Sort(all)
		outcome[flow] = fared{100 * float64(len(all)) / float64(total), all[len(all)/2]}
	}
	return outcome
}
