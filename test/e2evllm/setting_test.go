//go:build e2evllm

package e2evllm

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/scene"
)

// patience bounds every wait for one answer or state: far above the time of any of them.
const patience = time.Minute

// setting has the parts in front of the engine during a scene.
type setting struct {
	direct *envoyrun.Envoy // without Weir
	weir   *envoyrun.Envoy // with Weir, and the first-token gate unless the scene has another configuration
	epp    *scene.EPP
}

// before starts both Envoys and a Weir of that configuration before the engine. They end with the test.
func before(t *testing.T, e *engine, config string) *setting {
	t.Helper()
	return through(t, e, "gate", config)
}

// through is before with another of the shipped configurations of Envoy, and with further engines.
func through(t *testing.T, e *engine, envoy, config string, more ...*engine) *setting {
	t.Helper()
	return throughWith(t, e, envoy, config, nil, more...)
}

// throughWith is through with further flags of the epp.
func throughWith(t *testing.T, e *engine, envoy, config string, flags []string, more ...*engine) *setting {
	t.Helper()
	dir := t.TempDir()
	s := scene.New(context.Background(), dir)
	var set setting
	t.Cleanup(func() {
		if t.Failed() && set.epp != nil {
			logEPP(t, dir, set.epp)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	servers := []string{e.address}
	for _, m := range more {
		servers = append(servers, m.address)
	}
	var err error
	if set.epp, err = s.EPP(scene.EPPOptions{Binary: binaries.Path(binaries.EPP), Config: config, Endpoints: servers, Flags: flags}); err != nil {
		t.Fatal(err)
	}
	if set.direct, err = s.Envoy("direct", envoyrun.Options{Config: "direct", ModelServers: servers}); err != nil {
		t.Fatal(err)
	}
	options := envoyrun.Options{
		Config: envoy, Weir: set.epp.Address, ModelServers: servers,
		Edit: envoyrun.KeepHeader(strings.ToLower(fairnessHeader)), // as a gateway that knows its tenants
	}
	if set.weir, err = s.Envoy("weir", options); err != nil {
		t.Fatal(err)
	}
	return &set
}

// logEPP logs a Weir's own output.
func logEPP(t *testing.T, dir string, epp *scene.EPP) {
	log, _ := os.ReadFile(filepath.Join(dir, "epp.log"))
	t.Logf("epp's log:\n%s", log)
	response, err := http.Get(epp.MetricsURL + "/metrics")
	if err != nil {
		t.Logf("epp's metrics: %v", err)
		return
	}
	defer response.Body.Close()
	var moved strings.Builder
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, "weir_") && !strings.HasSuffix(line, " 0") && !strings.Contains(line, "_bucket{") {
			moved.WriteString(line + "\n")
		}
	}
	t.Logf("epp's metrics:\n%s", &moved)
}

// bounds keep ten requests in the engine of eight slots, never more.
var bounds = fmt.Sprintf("watermarkPerBackend: %d, lowerBoundPerBackend: %[1]d, upperBoundPerBackend: %[1]d", bound)

// ask is one request.
type ask struct {
	path   string // default /v1/chat/completions
	body   string
	header []string // name, value, …
}

// answer is a client's view of an answer.
type answer struct {
	status int
	header http.Header
	body   []byte
	sent   time.Time
	begun  time.Time // the headers came
	ended  time.Time
	err    error
}

// client has a connection per request in flight.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}}

// post sends one request and reads the whole answer.
func post(ctx context.Context, url string, a ask) (got answer) {
	if a.path == "" {
		a.path = "/v1/chat/completions"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+a.path, strings.NewReader(a.body))
	if err != nil {
		return answer{err: err}
	}
	request.Header.Set("content-type", "application/json")
	for i := 0; i+1 < len(a.header); i += 2 {
		request.Header.Set(a.header[i], a.header[i+1])
	}
	got.sent = time.Now()
	response, err := client.Do(request)
	if err != nil {
		got.err = err
		return got
	}
	defer response.Body.Close()
	got.status, got.header, got.begun = response.StatusCode, response.Header, time.Now()
	got.body, got.err = io.ReadAll(response.Body)
	got.ended = time.Now()
	return got
}

// begin sends a request and does not wait for it.
func begin(t *testing.T, url string, a ask) <-chan answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	ended := make(chan answer, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		ended <- post(ctx, url, a)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return ended
}
