package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// recordedTurns are the configurations of a recorded chaos, in turn.
var recordedTurns = []string{
	"requestQueueController: { slotsPerBackend: 3, maxInFlightPerFlowPerBackend: 2 }",
	"requestQueueController: { slotsPerBackend: 2, maxInFlightPerFlowPerBackend: 1, victimOrder: least-cost }",
	"requestQueueController: { slotsPerBackend: 3, maxInFlightPerFlow: 4, releaseSpacing: 1ms }",
}

// A recording has 10,000 requests of every possible course, while the configuration is reloaded and model servers come
// and go. Its replay gives the same verdicts, event by event.
func TestRecordedChaosIsReplayed(t *testing.T) {
	t.Parallel()
	server := modelsim.Fixed(16, 3*time.Millisecond)
	server.Records = 0
	base := strings.NewReplacer(
		`["header:x-tenant"]`, `["header:x-llm-d-inference-fairness-id", "model"], discipline: wfq`,
		"vip: { maxClass: system }", "t0: { maxClass: system }, t1: { maxClass: system }, t2: { maxClass: interactive }",
	).Replace(smgTiers) + fmt.Sprintf("\nlimits: { maxBodyBytes: %d }\n", bodyLimit)
	config := newConfigFile(t, base+recordedTurns[0])
	s := start(t, setup{
		envoys: []string{"gate", "full-duplex"},
		models: []modelsim.Config{server, server, server},
		file:   true,
		flags:  []string{"--enable-pprof", "--record=64", "--config-file=" + config.path},
		edit:   smallBuffers,
	})
	ctx, stop := context.WithCancel(t.Context())
	changes := make(chan int)
	go func() {
		defer close(changes)
		lot := rand.New(rand.NewPCG(5, 5))
		var addresses []string
		for _, m := range s.models {
			addresses = append(addresses, m.Address())
		}
		n := 0
		for ; ctx.Err() == nil; n++ {
			lot.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
			s.epp.setEndpoints(addresses[:1+lot.IntN(len(addresses))]...)
			config.write(base + recordedTurns[n%len(recordedTurns)])
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
		changes <- n
	}()
	s.unleash(chaosRequests)
	stop()
	if n := <-changes; n < 20 {
		t.Errorf("the configuration and the model servers have changed %d times only", n)
	}
	if n := s.epp.outcomes()["preempted"]; n == 0 {
		t.Error("no request was preempted: this is not chaos")
	}
	out, err := runWeir(t, "replay", s.epp.recording())
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	arrivals := regexp.MustCompile(`, (\d+) of them arrivals: all`).FindStringSubmatch(out)
	if arrivals == nil {
		t.Fatalf("weir replay: %s", out)
	}
	if n, _ := strconv.Atoi(arrivals[1]); n < chaosRequests/2 {
		t.Errorf("%d arrivals are recorded", n)
	}
	t.Log(out)
}

// recording fetches the recording so far, and returns the file's name.
func (e *epp) recording() string {
	e.t.Helper()
	text := expect.Page(e.t, e.DebugURL+"/debug/recording")
	file := filepath.Join(e.t.TempDir(), "weir.recording")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
	return file
}

// runWeir runs the operator's tool, and returns its output.
func runWeir(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binaries.Path(binaries.Weir), args...).CombinedOutput()
	return string(out), err
}
