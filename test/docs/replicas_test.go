package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/scene"
)

// replicas starts a scene of two epps behind an Envoy whose cluster for Weir has the fields of blocks of
// two-replicas.md.
func replicas(t *testing.T, titles ...string) (*Stage, []*scene.EPP) {
	t.Helper()
	s := newStage(t, scenes["nothing"])
	var epps []*scene.EPP
	var words []string
	for i := range 2 {
		s.startEPP("--profile=recommended --min-drain=30s --drain-timeout=1m")
		epps = append(epps, s.epp)
		text, err := os.ReadFile(filepath.Join(s.scene.Dir(), fmt.Sprintf("epp%d-ports.json", i)))
		if err != nil {
			t.Fatal(err)
		}
		var at struct{ GRPC, Health int }
		if err := json.Unmarshal(text, &at); err != nil {
			t.Fatal(err)
		}
		words = append(words, fmt.Sprintf("{ address: 10.0.1.%d, port_value: 9002 } }\n        health_check_config: { port_value: 9003 }", i+1),
			fmt.Sprintf("{ address: 127.0.0.1, port_value: %d } }\n        health_check_config: { port_value: %d }", at.GRPC, at.Health))
	}
	fields := map[string]any{}
	for _, title := range titles {
		_, text, ok := strings.Cut(read(t, "docs/two-replicas.md"), "```yaml\n# "+title)
		text, _, closed := strings.Cut(text, "```")
		if !ok || !closed {
			t.Fatalf("there is no block %q", title)
		}
		text = strings.NewReplacer(words...).Replace(text[strings.Index(text, "\n"):])
		if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
			t.Fatal(err)
		}
	}
	envoy, err := s.scene.Envoy("envoy", envoyrun.Options{
		Config: "recommended", Weir: epps[0].Address, ModelServers: s.models,
		Edit: func(b envoyrun.Bootstrap) error {
			maps.Copy(b.Cluster(envoyrun.WeirCluster), fields)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.envoy = envoy
	return s, epps
}

// dispatched returns the number of requests that an epp has dispatched.
func dispatched(t *testing.T, e *scene.EPP) int {
	t.Helper()
	metrics, err := expect.Scrape(e.MetricsURL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	return int(metrics.Sum("weir_requests_total", "outcome", "dispatched"))
}

// until sends requests until a condition holds.
func (s *Stage) until(what string, condition func() bool) {
	s.t.Helper()
	for end := time.Now().Add(settle); !condition(); {
		if time.Now().After(end) {
			s.t.Fatalf("not in %v: %s", settle, what)
		}
		if status := s.ask(s.t.Context()); status != http.StatusOK {
			s.t.Fatalf("status %d", status)
		}
	}
}

// Behind the page's cluster both replicas serve. A draining one gets no new streams.
func TestReplicasFromThePage(t *testing.T) {
	t.Parallel()
	s, epps := replicas(t, "The cluster weir")
	s.until("both serve", func() bool { return dispatched(t, epps[0]) > 0 && dispatched(t, epps[1]) > 0 })
	s.leaves(epps[0], epps[1])
}

// The second replica is on standby until the first one drains.
func TestStandbyFromThePage(t *testing.T) {
	t.Parallel()
	s, epps := replicas(t, "The cluster weir", "The same, standing by")
	s.until("the first serves", func() bool { return dispatched(t, epps[0]) >= 10 })
	if n := dispatched(t, epps[1]); n > 0 {
		t.Errorf("the second has served %d", n)
	}
	s.leaves(epps[0], epps[1])
}

// leaves stops a replica in order, and checks that all requests soon go to the other one.
func (s *Stage) leaves(leaving, staying *scene.EPP) {
	s.t.Helper()
	if err := syscall.Kill(leaving.Pid(), syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	before, other := dispatched(s.t, leaving), dispatched(s.t, staying)
	s.until("ten in a row go to the other one", func() bool {
		now, others := dispatched(s.t, leaving), dispatched(s.t, staying)
		if now > before {
			before, other = now, others
		}
		return others >= other+10
	})
}
