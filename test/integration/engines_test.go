package integration

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// followEndpoints lets weir write Envoy's endpoints from epp's file until the end of the test, and returns the file.
func (s *scene) followEndpoints(grace time.Duration) string {
	t := s.t
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "eds", "model_servers.yaml")
	s.lists = child.LogFile(filepath.Join(dir, "weir.log"))
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binaries.Path(binaries.Weir), "envoy", "endpoints", s.epp.endpoints, file, "--follow", "--grace="+grace.String())
	process, err := s.lists.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Kill()
		if t.Failed() {
			t.Logf("log of weir envoy endpoints:\n%s", s.lists.String())
		}
	})
	expect.Eventually(t, "the endpoints are written", func() error {
		_, err := os.Stat(file)
		return err
	})
	return file
}

// load starts clients that send requests one after the other until end is called or the test ends. All must be served.
// end returns the number of requests.
func (s *scene) load(clients int) (end func() int) {
	var all sync.WaitGroup
	var over atomic.Bool
	var sent atomic.Int64
	for range clients {
		all.Go(func() {
			for !over.Load() {
				wantServed(s.t, "a request under load", s.send(ask{}))
				sent.Add(1)
			}
		})
	}
	end = func() int {
		over.Store(true)
		all.Wait()
		return int(sent.Load())
	}
	s.t.Cleanup(func() { end() })
	return end
}

// Engines come and go under load by a change of one file, which both Weir and Envoy follow. No request is lost. A new
// engine gets requests. A leaving engine serves all its requests, becomes idle, and can stop.
func TestEnginesComeAndGoWithoutKubernetes(t *testing.T) {
	t.Parallel()
	engine := modelsim.Fixed(8, 100*time.Millisecond)
	engine.Records = 8192
	s := start(t, setup{
		models: []modelsim.Config{engine, engine}, file: true, follow: 3 * time.Second,
		config: "profile: recommended\nscheduling: { affinity: off, fallbacks: 2 }\nresponses: { metadata: true }\n",
	})
	stays, leaves := s.models[0], s.models[1]
	comes, err := modelsim.Start(engine)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(comes.Close)
	end := s.load(6)
	gets := func(m *modelsim.Server, more int) {
		t.Helper()
		before := len(m.Records())
		expect.Eventually(t, "an engine gets requests", func() error {
			if n := len(m.Records()) - before; n < more {
				return fmt.Errorf("%d, want %d", n, more)
			}
			return nil
		})
	}
	gets(leaves, 4)

	s.epp.setEndpoints(stays.Address(), leaves.Address(), comes.Address())
	gets(comes, 4)

	s.epp.setEndpoints(stays.Address(), comes.Address())
	s.epp.waitFor(2, "weir_ready_backends")
	s.inEnvoy(2)
	isIdle(t, leaves)
	last := len(leaves.Records())
	leaves.Close()
	gets(comes, 4)
	var lists []string
	for line := range strings.Lines(s.lists.String()) {
		_, list, _ := strings.Cut(strings.TrimSpace(line), "endpoints: ")
		lists = append(lists, list)
	}
	if want := []string{"2, draining: 0", "3, draining: 0", "2, draining: 1", "2, draining: 0"}; !slices.Equal(lists, want) {
		t.Errorf("Envoy was given the endpoints %q, want %q", lists, want)
	}
	if n := len(leaves.Records()); n != last {
		t.Errorf("%d requests came after the engine had left", n-last)
	}

	sent := end()
	s.epp.settled()
	if got := s.epp.outcomes(); len(got) != 1 || got["dispatched"] != sent {
		t.Errorf("outcomes are %v, want all %d dispatched", got, sent)
	}
	s.servedAsNamed(sent, comes.Address())
}

// isIdle waits until an engine runs no request, by its own metrics.
func isIdle(t *testing.T, m *modelsim.Server) {
	t.Helper()
	running := regexp.MustCompile(`(?m)^vllm:num_requests_running\{.*\} 0$`)
	expect.Eventually(t, "an engine is idle", func() error {
		page, err := expect.Read(m.URL() + "/metrics")
		if err == nil && !running.MatchString(page) {
			err = fmt.Errorf("it runs requests:\n%s", page)
		}
		return err
	})
}

// inEnvoy waits until Envoy has so many model servers.
func (s *scene) inEnvoy(want int64) {
	s.t.Helper()
	const name = "cluster.model_servers.membership_total"
	expect.Eventually(s.t, "Envoy has its endpoints", func() error {
		stats, err := s.envoy().Stats(s.t.Context(), "^"+name+"$")
		if err == nil && stats[name] != want {
			err = fmt.Errorf("%d, want %d", stats[name], want)
		}
		return err
	})
}

// servedAsNamed checks by the access log that the engine named by Weir answered each request. Only requests for a new
// engine may have gone elsewhere, since Weir may know it a moment before Envoy does.
func (s *scene) servedAsNamed(requests int, newcomer string) {
	s.t.Helper()
	elsewhere := 0
	entries := s.accessLog(requests)
	for _, entry := range entries {
		named, _, _ := strings.Cut(fmt.Sprint(entry["endpoint"]), ",")
		if _, err := netip.ParseAddrPort(named); err != nil {
			s.t.Fatalf("the log has %v", entry)
		}
		switch {
		case entry["upstream"] == named:
		case named == newcomer:
			elsewhere++
		default:
			s.t.Errorf("%v has answered, and Weir had named %s", entry["upstream"], named)
		}
	}
	s.t.Logf("%d requests, of which %d went elsewhere before Envoy knew the new engine", len(entries), elsewhere)
}
