//go:build e2evllm

package e2evllm

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The engine's slots, and the stock that Weir keeps there: a quarter more keeps it full, since the next request is
// there at an end.
const (
	slots = 8
	bound = 10
	model = "tiny"
)

// engineStart bounds the start, which takes a minute and a half on an idle machine with two cores.
const engineStart = 10 * time.Minute

// engine is a running vLLM.
type engine struct {
	address string // ip:port
	log     *engineLog
}

// startEngine starts vLLM with further arguments and waits until it serves. It ends with the test.
func startEngine(t *testing.T, more ...string) *engine {
	t.Helper()
	e, serves := launch(t, more...)
	serves()
	return e
}

// eventsPort is a placeholder in an argument for the port of the engine's KV events: its own and eventsAhead more.
const (
	eventsPort  = "EVENTS-PORT"
	eventsAhead = 100
)

// launch starts vLLM with further arguments; serves waits until it does.
func launch(t *testing.T, more ...string) (e *engine, serves func()) {
	t.Helper()
	if *served != "" {
		address, rest, _ := strings.Cut(*served, ",")
		*served = rest
		return &engine{address: address, log: &engineLog{}}, func() {}
	}
	venv := os.Getenv("VLLM_VENV")
	if venv == "" {
		t.Fatal("no vLLM: run `make e2e-vllm`, or set VLLM_VENV=$(hack/vllm.sh)")
	}
	e = &engine{address: freeAddress(t), log: &engineLog{}}
	_, port, _ := net.SplitHostPort(e.address)
	n, _ := strconv.Atoi(port)
	for i, a := range more {
		more[i] = strings.ReplaceAll(a, eventsPort, strconv.Itoa(n+eventsAhead))
	}
	ended := e.run(t, append([]string{
		filepath.Join(venv, "bin", "vllm"), "serve", filepath.Join(venv, "model"),
		"--served-model-name", model, "--load-format", "dummy", "--dtype", "bfloat16", "--enforce-eager",
		"--max-model-len", "2048", "--max-num-seqs", strconv.Itoa(slots), "--enable-log-requests",
		"--host", "127.0.0.1", "--port", port,
	}, more...)...)
	t.Logf("starting vLLM at %s", e.address)
	return e, func() { t.Helper(); e.serves(t, ended) }
}

// serves waits until the engine serves.
func (e *engine) serves(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	for deadline := time.Now().Add(engineStart); ; time.Sleep(100 * time.Millisecond) {
		select {
		case <-ended:
			t.Fatal("vLLM ended at its start")
		default:
		}
		response, err := http.Get("http://" + e.address + "/health")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("vLLM does not serve: %v", err)
		}
	}
}

// watched is a shell script that replaces itself by its arguments' command. The command ends, with all its children,
// when the pipe at descriptor 3 is closed: by stop, or by any end of this process.
const watched = `( read -r _ <&3; trap '' TERM; kill -TERM 0; sleep 10; kill -KILL 0 ) & exec "$@" 3<&-`

// run starts a command in a process group of its own. The channel is closed when it has ended.
func (e *engine) run(t *testing.T, command ...string) <-chan struct{} {
	t.Helper()
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", watched, "sh"}, command...)...)
	cmd.Stdout, cmd.Stderr = e.log, e.log
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.WaitDelay = time.Second // its children may keep the output open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(),
		"VLLM_SERVER_DEV_MODE=1", "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "VLLM_HOST_IP=127.0.0.1",
		"VLLM_CPU_KVCACHE_SPACE=1", "VLLM_CPU_OMP_THREADS_BIND=nobind", "OMP_NUM_THREADS=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its log has the reason
		close(ended)
	}()
	t.Cleanup(func() {
		_ = ours.Close()
		<-ended
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of the group
		if t.Failed() {
			t.Logf("end of vLLM's log:\n%s", e.log.tail(40))
		}
	})
	return ended
}

// freeAddress returns an address without a listener. vLLM cannot report its chosen port.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// version returns the engine's version, as it reports it.
func (e *engine) version(t *testing.T) string {
	t.Helper()
	response, err := http.Get("http://" + e.address + "/version")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var said struct{ Version string }
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
		t.Fatalf("vLLM's version: %v", err)
	}
	return said.Version
}

// engineLog is vLLM's output by lines, each with its time.
type engineLog struct {
	mu    sync.Mutex
	part  []byte // of the line that has not ended
	lines []logLine
}

type logLine struct {
	at   time.Time
	text string
}

// Write adds vLLM's output.
func (l *engineLog) Write(b []byte) (int, error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, b...)
	for {
		line, rest, whole := bytes.Cut(l.part, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		l.lines = append(l.lines, logLine{now, string(line)})
		l.part = rest
	}
}

// when returns the time of the first line with all the parts; ok is false if there is none.
func (l *engineLog) when(parts ...string) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
search:
	for _, line := range l.lines {
		for _, part := range parts {
			if !strings.Contains(line.text, part) {
				continue search
			}
		}
		return line.at, true
	}
	return time.Time{}, false
}

func (l *engineLog) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text strings.Builder
	for _, line := range l.lines[max(0, len(l.lines)-n):] {
		text.WriteString(line.text + "\n")
	}
	return text.String()
}
