package app

import (
	"testing"

	"github.com/weir-epp/weir/internal/config"
)

// --slots is short for --slots-per-backend: a number, auto or unbounded.
func TestSlotsFlag(t *testing.T) {
	for text, want := range map[string]config.Slots{
		"--slots=auto": config.Auto, "--slots=12": 12, "--slots-per-backend=auto": config.Auto, "--slots=unbounded": config.Unbounded,
	} {
		f := newFlags()
		if err := f.parse([]string{"--endpoints=192.0.2.1:8000", text}); err != nil {
			t.Fatal(err)
		}
		d, err := config.Profile("recommended")
		if err != nil {
			t.Fatal(err)
		}
		if f.Override(&d); d.RequestQueueController.SlotsPerBackend == nil || *d.RequestQueueController.SlotsPerBackend != want {
			t.Errorf("%s: %v", text, d.RequestQueueController.SlotsPerBackend)
		}
	}
	for _, text := range []string{"--slots=", "--slots=many", "--slots=1.5"} {
		if err := newFlags().parse([]string{"--endpoints=192.0.2.1:8000", text}); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
