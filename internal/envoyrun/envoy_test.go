package envoyrun

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-epp/weir/internal/expect"
)

// patience bounds a test's wait for an event. Every event should take less than a tenth of it, but on a loaded machine
// it may not.
const patience = 30 * time.Second

// nobody is an address without a listener.
const nobody = "127.0.0.1:1"

// A test may leave no goroutine behind, such as the one that waits for Envoy, and no connection to it.
func TestMain(m *testing.M) {
	if os.Getenv(victimVariable) != "" {
		beVictim()
		return
	}
	goleak.VerifyTestMain(m)
}

// direct starts an Envoy without ext_proc.
func direct(ctx context.Context, t *testing.T, address string) *Envoy {
	t.Helper()
	envoy, err := Start(ctx, Options{Config: "direct", ModelServers: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(envoy.Kill)
	return envoy
}

// modelServer answers every request with "ok" until the end of the test; it returns its ip:port.
func modelServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// answer is a client's answer.
type answer struct {
	status int
	body   string
	err    error // no complete answer
}

var served = answer{status: http.StatusOK, body: "ok"}

// ask sends a request on a connection of its own, and sends the answer to the channel.
func ask(envoy *Envoy) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * patience}
		resp, err := client.Get(envoy.URL() + "/v1/models")
		if err != nil {
			answers <- answer{err: err}
			return
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		answers <- answer{resp.StatusCode, string(body), err}
	}()
	return answers
}

// wantServed fails unless a request gets the model server's answer.
func wantServed(t *testing.T, envoy *Envoy) {
	t.Helper()
	if got := <-ask(envoy); got != served {
		t.Errorf("answer is %+v", got)
	}
}

// wantClosed waits until the channel is closed.
func wantClosed(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
}

// wantGone checks that no process (not even an unreaped one) and no temporary file is left.
func wantGone(t *testing.T, envoy *Envoy) {
	t.Helper()
	wantClosed(t, "Envoy's end", envoy.Done())
	if err := syscall.Kill(envoy.Pid(), 0); err != syscall.ESRCH {
		t.Errorf("process %d: %v, want none", envoy.Pid(), err)
	}
	expect.True(t, "the temporary directory is gone", func() bool {
		_, err := os.Stat(envoy.dir)
		return os.IsNotExist(err)
	})
}

func TestStop(t *testing.T) {
	envoy := direct(t.Context(), t, modelServer(t))
	wantServed(t, envoy)
	if err := envoy.Stop(); err != nil {
		t.Error(err)
	}
	wantGone(t, envoy)
	if err := envoy.Stop(); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestStopPaused(t *testing.T) {
	envoy := direct(t.Context(), t, nobody)
	if err := envoy.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := envoy.Stop(); err != nil {
		t.Error(err)
	}
	wantGone(t, envoy)
}

func TestKill(t *testing.T) {
	arrived, gone := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(gone)
	}))
	t.Cleanup(server.Close)
	envoy := direct(t.Context(), t, server.Listener.Addr().String())
	answer := ask(envoy)
	wantClosed(t, "the request's way to the model server", arrived)
	envoy.Kill()
	wantGone(t, envoy)
	wantClosed(t, "the model server's request", gone)
	if a := <-answer; a.err == nil {
		t.Errorf("the client has an answer: %+v", a)
	}
}

func TestEndOfContextKills(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	envoy := direct(ctx, t, nobody)
	cancel()
	wantGone(t, envoy)
	if err := envoy.Stop(); err != nil {
		t.Errorf("Stop after it: %v", err)
	}
}

// An Envoy that ends by itself, for example after a crash, fails the test that stops it.
func TestStopTellsOfACrash(t *testing.T) {
	envoy := direct(t.Context(), t, nobody)
	if err := syscall.Kill(envoy.Pid(), syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	wantClosed(t, "the process", envoy.Done())
	if err := envoy.Stop(); err == nil || !strings.Contains(err.Error(), "aborted") {
		t.Errorf("Stop: %v, want the signal's name", err)
	}
	wantGone(t, envoy)
}

func TestPauseAndResume(t *testing.T) {
	envoy := direct(t.Context(), t, modelServer(t))
	if err := envoy.Pause(); err != nil {
		t.Fatal(err)
	}
	expect.True(t, "it stands", func() bool { return state(t, envoy) == "T" })
	answer := ask(envoy)
	time.Sleep(100 * time.Millisecond)
	select {
	case a := <-answer:
		t.Fatalf("a paused Envoy has answered: %+v", a)
	default:
	}
	if err := envoy.Resume(); err != nil {
		t.Fatal(err)
	}
	if a := <-answer; a != served {
		t.Errorf("answer is %+v", a)
	}
}

// state returns the process's state letter in /proc.
func state(t *testing.T, envoy *Envoy) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", envoy.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[0]
}

func TestStatsAndAccessLog(t *testing.T) {
	envoy := direct(t.Context(), t, modelServer(t))
	for range 3 {
		wantServed(t, envoy)
	}
	const counter = "cluster.model_servers.upstream_rq_total"
	expect.True(t, "three requests are counted", func() bool {
		stats, err := envoy.Stats(t.Context(), "^"+counter+"$")
		if err != nil {
			t.Fatal(err)
		}
		return len(stats) == 1 && stats[counter] == 3
	})
	expect.True(t, "the access log has three lines", func() bool {
		entries, err := envoy.AccessEntries()
		return err == nil && len(entries) == 3 && entries[0]["path"] == "/v1/models" && entries[0]["status"] == 200.0 &&
			entries[0]["details"] == "via_upstream"
	})
}

// If Envoy rejects a configuration, the error has Envoy's message, and nothing is left running.
func TestStartTellsWhatEnvoySays(t *testing.T) {
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{
		Config: "direct", ModelServers: []string{"127.0.0.1:1"}, Dir: dir,
		Edit: func(b Bootstrap) error {
			b.Route()["cluster"] = "no_such_cluster"
			return nil
		},
	})
	if err == nil || !strings.Contains(err.Error(), "no_such_cluster") || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("error is %v, want Envoy's", err)
	}
	if _, err := os.Stat(dir + "/envoy.log"); err != nil {
		t.Errorf("the log in the caller's directory: %v", err)
	}
}

func TestStartWithoutEnvoy(t *testing.T) {
	t.Setenv("ENVOY", "/nowhere/envoy")
	if _, err := Start(t.Context(), Options{Config: "direct", ModelServers: []string{"127.0.0.1:1"}}); err == nil {
		t.Error("no error")
	}
}

func TestSeveralAtOnce(t *testing.T) {
	address := modelServer(t)
	seen := map[string]bool{}
	for range 3 {
		envoy := direct(t.Context(), t, address)
		seen[envoy.Addr()] = true
		wantServed(t, envoy)
	}
	if len(seen) != 3 {
		t.Errorf("addresses are %v", seen)
	}
}
