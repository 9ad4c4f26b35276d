//go:build e2evllm

package e2evllm

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/envoyrun"
)

var (
	out    = flag.String("out", "", "`file` to keep the page of figures in; without it they are only shown")
	calm   = flag.Duration("calm", 10*time.Minute, "with -out: how long to wait at most for a quiet machine")
	served = flag.String("engines", "", "`addresses` of running vLLMs, in the order in which scenes would start them: repeats a scene sooner")
	rounds = flag.Int("rounds", 5, "rounds of the flood, 1 to 20: each through Envoy alone and through Weir")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if _, err := envoyrun.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(binaries.Run(m, binaries.EPP))
}

// TestRealEngine plays the scenes one after the other on one engine, and keeps the results if all tests pass and the
// machine was quiet.
func TestRealEngine(t *testing.T) {
	if *rounds < 1 || *rounds > 20 {
		t.Fatalf("-rounds: %d: must be from 1 to 20", *rounds)
	}
	p := &page{before: loadAverage(t)}
	if *out != "" {
		p.before = awaitQuiet(t)
	}
	e := startEngine(t)
	p.engine = e.version(t)
	for _, scene := range []struct {
		name string
		play func(*testing.T, *engine) section
	}{
		{"clients", clientsScene},
		{"usage", usageScene},
		{"fairness", fairnessScene},
		{"preemption", preemptionScene},
		{"flood", floodScene},
		{"slots", slotsScene},
		{"affinity", affinityScene},
		{"events", eventsScene},
	} {
		t.Run(scene.name, func(t *testing.T) {
			s := scene.play(t, e)
			t.Logf("%s\n\n%s", s.title, s.text)
			p.sections = append(p.sections, s)
		})
	}
	if *out == "" || t.Failed() {
		return
	}
	if len(p.sections) < 8 {
		t.Fatal("-out: not all scenes were played: the page has all or is not written")
	}
	p.keep(t, *out)
}
