package observe

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/checkout"
	"github.com/weir-epp/weir/internal/expect"
)

// The namespace of all rigs, and the release that is replaced by a rig's name in the rendered rules.
const (
	namespace   = "observe"
	placeholder = "a-rig"
)

// ruleGroups are groups of alerts, with the needed fields only.
type ruleGroups struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Alert  string            `json:"alert"`
	Expr   string            `json:"expr"`
	For    string            `json:"for"`
	Labels map[string]string `json:"labels"`
}

var rendered struct {
	sync.Once
	spec []byte // YAML
	err  error
}

// rulesOf returns the alerts of the chart for a rig, as JSON for Prometheus. Each waits for a second, and has the label
// rig.
func rulesOf(t *testing.T, rig string) ruleGroups {
	t.Helper()
	rendered.Do(func() { rendered.spec, rendered.err = render(t) })
	if rendered.err != nil {
		t.Fatal(rendered.err)
	}
	var all ruleGroups
	if err := yaml.Unmarshal(bytes.ReplaceAll(rendered.spec, []byte(placeholder), []byte(rig)), &all); err != nil {
		t.Fatal(err)
	}
	for i := range all.Groups {
		all.Groups[i].Name += "-" + rig
		for j := range all.Groups[i].Rules {
			r := &all.Groups[i].Rules[j]
			r.For, r.Labels["rig"] = "1s", rig
		}
	}
	return all
}

// render returns the spec of the PrometheusRule that the chart makes.
func render(t *testing.T) ([]byte, error) {
	helm, err := checkout.Tool(t.Context(), "helm")
	if err != nil {
		return nil, err
	}
	homes := t.TempDir()
	cmd := exec.CommandContext(t.Context(), helm, "template", placeholder, "../../charts/weir", "--namespace", namespace,
		"--show-only", "templates/prometheusrule.yaml", "--set", "pool.matchLabels.app=llama",
		"--set", "metrics.prometheusRule.enabled=true", "--set", "envoy.mode=standalone", "--set", "envoy.podMonitor.enabled=true")
	cmd.Env = append(os.Environ(), "KUBECONFIG=/dev/null")
	for _, home := range []string{"CACHE", "CONFIG", "DATA"} {
		cmd.Env = append(cmd.Env, "HELM_"+home+"_HOME="+filepath.Join(homes, home))
	}
	var problems strings.Builder
	cmd.Stderr = &problems
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("helm: %w\n%s", err, problems.String())
	}
	var object struct{ Spec map[string]any }
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	if object.Spec == nil {
		return nil, errors.New("observe: the chart renders no alerts")
	}
	return yaml.Marshal(object.Spec)
}

// alerts returns the names of a rig's alerts that are pending or firing.
func (r *rig) alerts() []string {
	r.t.Helper()
	var answer struct {
		Data struct {
			Alerts []struct{ Labels map[string]string }
		}
	}
	r.prometheus.get(r.t, "/api/v1/alerts", &answer)
	names := map[string]bool{}
	for _, a := range answer.Data.Alerts {
		if a.Labels["rig"] == r.name {
			names[a.Labels["alertname"]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// alarmed waits until exactly these alerts are pending or firing.
func (r *rig) alarmed(want ...string) {
	r.t.Helper()
	slices.Sort(want)
	expect.Eventually(r.t, "the alerts", func() error {
		if got := r.alerts(); !slices.Equal(got, want) {
			return fmt.Errorf("%v are pending or firing, want %v", got, want)
		}
		return nil
	})
}
