package chart

import (
	"os"
	"testing"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/doctor"
)

// `weir doctor` finds nothing in the chart's rendered Envoy, in any mode, beside the rendered Weir.
func TestRenderedEnvoyHasNoTraps(t *testing.T) {
	document, err := config.Profile(config.DefaultProfile)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		values string
		tls    bool
	}{
		"sidecar":              {"envoy: { mode: sidecar }\n", true},
		"sidecar, plaintext":   {"envoy: { mode: sidecar }\ntls: { enabled: false }\n", false},
		"standalone":           {"envoy: { mode: standalone }\n", true},
		"standalone, h2c pool": {"envoy: { mode: standalone }\npool: { appProtocol: kubernetes.io/h2c }\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(envoyConfig(t, render(t, minimal, test.values)))
			if err != nil {
				t.Fatal(err)
			}
			envoys, err := doctor.Read(text)
			if err != nil || len(envoys) != 1 {
				t.Fatalf("%d Envoys, %v", len(envoys), err)
			}
			r := doctor.Examine(envoys[0], doctor.Weir{Document: document, TLS: &test.tls})
			for _, f := range r.Findings {
				t.Errorf("%s at %s: %s", f.ID, f.Where, f.Found)
			}
		})
	}
}
