package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/status"
)

// statusServer serves a document as an epp does, and records the queries.
type statusServer struct {
	*httptest.Server
	mu      sync.Mutex
	queries []string
}

func serveStatus(t *testing.T, d *status.Document) *statusServer {
	t.Helper()
	s := &statusServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/status" {
			http.NotFound(w, r)
			return
		}
		s.mu.Lock()
		s.queries = append(s.queries, r.URL.RawQuery)
		s.mu.Unlock()
		q, err := status.ParseQuery(r.URL.Query())
		if err != nil {
			t.Error(err)
		}
		shown := *d
		shown.Flows = append([]status.Flow(nil), d.Flows...)
		shown.Select(&q)
		text, err := shown.Encode()
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(text)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *statusServer) address() string { return strings.TrimPrefix(s.URL, "http://") }

// asked reports whether there was a query with this part.
func (s *statusServer) asked(part string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queries {
		if strings.Contains(q, part) {
			return true
		}
	}
	return false
}

func healthyPool() *status.Document {
	return &status.Document{
		Schema: status.Schema, At: time.Now(), Version: "v1", Healthy: true, WindowSeconds: 10,
		Pool:  status.Pool{Profile: "recommended", Ready: true, Leads: true, Engines: 1, ReadyEngines: 1},
		Flows: []status.Flow{{Flow: "ann", Waiting: 2}, {Flow: "bob", Waiting: 1}},
	}
}

// terminal is a pseudo-terminal with a weir top on it.
type terminal struct {
	t           *testing.T
	master, tty *os.File
	command     *exec.Cmd
	before      *unix.Termios
	mu          sync.Mutex
	shown       bytes.Buffer
	stderr      bytes.Buffer
	ended       chan error
}

func openTop(t *testing.T, args ...string) *terminal {
	t.Helper()
	x := &terminal{t: t, ended: make(chan error, 1)}
	var err error
	if x.master, x.tty, err = pty.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.master.Close(); _ = x.tty.Close() })
	if err := pty.Setsize(x.tty, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	if x.before, err = unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS); err != nil {
		t.Fatal(err)
	}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := x.master.Read(buffer)
			x.mu.Lock()
			x.shown.Write(buffer[:n])
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	x.command = exec.Command(binaries.Path(binaries.Weir), append([]string{"top", "--every=100ms"}, args...)...)
	x.command.Env = append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=1")
	x.command.Stdin, x.command.Stdout, x.command.Stderr = x.tty, x.tty, &x.stderr
	x.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { x.ended <- x.command.Wait() }()
	t.Cleanup(func() { _ = x.command.Process.Kill() })
	return x
}

// shows waits until the screen shows the text, or has shown it.
func (x *terminal) shows(want string) {
	x.t.Helper()
	x.until("it shows "+want, func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return strings.Contains(x.shown.String(), want)
	})
}

func (x *terminal) until(what string, is func() bool) {
	x.t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.t.Fatalf("not within 30 s: %s\n%q\n%s", what, x.shown.String(), x.stderr.String())
		}
	}
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// restored waits for the end, and checks the exit code and the restored terminal.
func (x *terminal) restored(code int) {
	x.t.Helper()
	select {
	case <-x.ended:
	case <-time.After(30 * time.Second):
		x.t.Fatal("it does not end")
	}
	if got := x.command.ProcessState.ExitCode(); got != code {
		x.t.Errorf("exit code %d, want %d: %s", got, code, x.stderr.String())
	}
	after, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS)
	if err != nil {
		x.t.Fatal(err)
	}
	if *after != *x.before {
		x.t.Errorf("the terminal's settings are %+v, were %+v", after, x.before)
	}
	x.shows("\x1b[?1049l") // leaves the alternate screen
	x.shows("\x1b[?25h")   // shows the cursor
}

// On a terminal weir top shows the pool, and keys work. After any end the terminal is as before.
func TestTopOnATerminal(t *testing.T) {
	t.Run("q", func(t *testing.T) {
		t.Parallel()
		s := serveStatus(t, healthyPool())
		x := openTop(t, "--address="+s.address())
		x.shows("\x1b[?1049h")
		x.shows("ann")
		x.press("s")
		x.until("it asks in another order", func() bool { return s.asked("sort-flows=since") })
		x.press("/bo\r")
		x.until("it asks for a part of a name", func() bool { return s.asked("flow=bo") })
		x.shows("with \"bo\"")
		x.press("\r")
		x.until("it asks for one flow", func() bool { return s.asked("only-flow=bob") })
		x.shows("flow bob")
		x.press("q")
		x.restored(0)
	})
	t.Run("^C", func(t *testing.T) {
		t.Parallel()
		x := openTop(t, "--address="+serveStatus(t, healthyPool()).address())
		x.shows("ann")
		x.press("\x03")
		x.restored(0)
	})
	t.Run("lost connection", func(t *testing.T) {
		t.Parallel()
		s := serveStatus(t, healthyPool())
		x := openTop(t, "--address="+s.address(), "--patience=300ms")
		x.shows("ann")
		s.Close()
		x.restored(2)
		if !strings.Contains(x.stderr.String(), "no answer for") {
			t.Errorf("standard error: %s", x.stderr.String())
		}
	})
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			x := openTop(t, "--address="+serveStatus(t, healthyPool()).address())
			x.shows("ann")
			if err := x.command.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			x.restored(0)
		})
	}
}

// Without an epp or a terminal, weir top prints an error and changes nothing.
func TestTopDoesNotBegin(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	x := openTop(t, "--address="+strings.TrimPrefix(closed.URL, "http://"))
	<-x.ended
	if x.command.ProcessState.ExitCode() != 2 || !strings.Contains(x.stderr.String(), "no epp answers at its debug port") {
		t.Errorf("exit code %d: %s", x.command.ProcessState.ExitCode(), x.stderr.String())
	}
	if x.mu.Lock(); x.shown.Len() > 0 {
		t.Errorf("the terminal has %q", x.shown.String())
	}
	x.mu.Unlock()
	checkCommands(t, map[string]commandTest{
		"no terminal": {[]string{"top"}, 2, nil, []string{"standard output is no terminal: weir status prints the same once"}},
		"every":       {[]string{"top", "--every=1ms"}, 2, nil, []string{"--every: 1ms: must be at least 100ms"}},
		"patience":    {[]string{"top", "--patience=-1s"}, 2, nil, []string{"--patience: -1s: must be at least 0"}},
		"address":     {[]string{"top", "--address=9004"}, 2, nil, []string{`--address: "9004": must be HOST:PORT`}},
		"order":       {[]string{"top", "--sort-flows=age"}, 2, nil, []string{`--sort-flows: "age": must be one of waiting, since`}},
	})
}
