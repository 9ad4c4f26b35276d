package envoyrun

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

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

// wantGone checks that neither a process (not even one that nobody has reaped) nor a temporary file is left.
func wantGone(t *testing.T, envoy *Envoy) {
	t.Helper()
	select {
	case <-envoy.Done():
	case <-time.After(patience):
		t.Fatal("Envoy runs on")
	}
	if err := syscall.Kill(envoy.Pid(), 0); err != syscall.ESRCH {
		t.Errorf("process %d: %v, want none", envoy.Pid(), err)
	}
	eventually(t, "the temporary directory is gone", func() bool {
		_, err := os.Stat(envoy.dir)
		return os.IsNotExist(err)
	})
}

func TestStop(t *testing.T) {
	envoy := direct(t.Context(), t, modelServer(t, answering("ok")))
	envoy.post(t, "").want(http.StatusOK, "ok")
	if err := envoy.Stop(); err != nil {
		t.Error(err)
	}
	wantGone(t, envoy)
	if err := envoy.Stop(); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestStopPaused(t *testing.T) {
	envoy := direct(t.Context(), t, unused(t))
	if err := envoy.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := envoy.Stop(); err != nil {
		t.Error(err)
	}
	wantGone(t, envoy)
}

func TestKill(t *testing.T) {
	address, arrived, gone := hanging(t)
	envoy := direct(t.Context(), t, address)
	x := envoy.post(t, "")
	receive(t, "the request", arrived)
	envoy.Kill()
	wantGone(t, envoy)
	receive(t, "the model server to see it", gone)
	if resp, ok := <-x.answer; ok || x.err == nil {
		t.Errorf("the client has an answer: %v", resp)
	}
}

func TestEndOfContextKills(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	envoy := direct(ctx, t, unused(t))
	cancel()
	wantGone(t, envoy)
	if err := envoy.Stop(); err != nil {
		t.Errorf("Stop after it: %v", err)
	}
}

// An Envoy that ends unasked, as one that crashes does, fails the test that stops it.
func TestStopTellsOfACrash(t *testing.T) {
	envoy := direct(t.Context(), t, unused(t))
	if err := syscall.Kill(envoy.Pid(), syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	receiveClosed(t, envoy.Done())
	if err := envoy.Stop(); err == nil || !strings.Contains(err.Error(), "aborted") {
		t.Errorf("Stop: %v, want the signal's name", err)
	}
	wantGone(t, envoy)
}

func receiveClosed(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("not closed")
	}
}

func TestPauseAndResume(t *testing.T) {
	envoy := direct(t.Context(), t, modelServer(t, answering("ok")))
	if err := envoy.Pause(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it stands", func() bool { return state(t, envoy) == "T" })
	x := envoy.post(t, "")
	time.Sleep(100 * time.Millisecond)
	x.wantUnanswered()
	if err := envoy.Resume(); err != nil {
		t.Fatal(err)
	}
	x.want(http.StatusOK, "ok")
}

// state is the process's state letter in /proc.
func state(t *testing.T, envoy *Envoy) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", envoy.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[0]
}

func TestStatsAndCPU(t *testing.T) {
	envoy := direct(t.Context(), t, modelServer(t, answering("ok")))
	before, err := envoy.CPU()
	if err != nil || before <= 0 || before > time.Minute {
		t.Errorf("CPU after the start: %v, %v", before, err)
	}
	for range 3 {
		envoy.post(t, "").want(http.StatusOK, "ok")
	}
	const counter = "cluster.model_servers.upstream_rq_total"
	eventually(t, "three requests are counted", func() bool {
		stats, err := envoy.Stats(t.Context(), "^"+counter+"$")
		if err != nil {
			t.Fatal(err)
		}
		return len(stats) == 1 && stats[counter] == 3
	})
	eventually(t, "the access log has three lines", func() bool {
		entries, err := envoy.AccessEntries()
		return err == nil && len(entries) == 3 && entries[0]["path"] == "/v1/completions" && entries[0]["status"] == 200.0 &&
			entries[0]["details"] == "via_upstream"
	})
	if err := envoy.Stop(); err != nil {
		t.Error(err)
	}
	if after, err := envoy.CPU(); err != nil || after < before {
		t.Errorf("CPU after the end: %v, %v; at the start it was %v", after, err, before)
	}
}

func TestParseCPU(t *testing.T) {
	for stat, want := range map[string]time.Duration{
		"7 (envoy) S 1 7 7 0 -1 4194560 900 0 0 0 125 75 0 0 20 0": 2 * time.Second,
		"7 (a) b) (c) R 1 7 7 0 -1 4194560 900 0 0 0 1 0 0 0 20 0": 10 * time.Millisecond,
	} {
		if got, err := parseCPU(stat); err != nil || got != want {
			t.Errorf("parseCPU(%q) = %v, %v; want %v", stat, got, err, want)
		}
	}
	for _, stat := range []string{"", "7 (envoy) S 1", "7 (envoy) S 1 7 7 0 -1 4194560 900 0 0 0 x 75 0"} {
		if got, err := parseCPU(stat); err == nil {
			t.Errorf("parseCPU(%q) = %v without an error", stat, got)
		}
	}
}

// A configuration that Envoy does not take is an error with Envoy's own words, and nothing is left running.
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
	address := modelServer(t, answering("ok"))
	seen := map[string]bool{}
	for range 3 {
		envoy := direct(t.Context(), t, address)
		seen[envoy.Addr()] = true
		envoy.post(t, "").want(http.StatusOK, "ok")
	}
	if len(seen) != 3 {
		t.Errorf("addresses are %v", seen)
	}
}
