package browser

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/child"
)

// soon bounds immediate events, on a machine that may be busy.
const soon = time.Minute

// message is one of the DevTools protocol: a call, its answer, or an event.
type message struct {
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// tab is a tab of a running Chromium. It is for one goroutine.
type tab struct {
	t       *testing.T
	to      *os.File
	from    chan message // closed when Chromium has ended
	session string
	calls   int
	// said are the events that a page without a fault does not cause: a log line, a dialog, an exception, a breach of
	// its policy.
	said   []string
	loaded int // pages
}

// open starts Chromium with an empty tab. It ends with the test.
func open(t *testing.T) *tab {
	t.Helper()
	path := os.Getenv("CHROMIUM")
	if path == "" {
		var err error
		if path, err = exec.LookPath("chromium"); err != nil {
			t.Fatalf("no Chromium: CHROMIUM=$(hack/chromium.sh) gets one (%v)", err)
		}
	}
	home := t.TempDir()
	log, err := os.Create(filepath.Join(home, "log"))
	if err != nil {
		t.Fatal(err)
	}
	calls, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, from, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// Its sandbox needs rights that a container lacks. The only pages are the tests' own.
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--no-first-run", "--disable-background-networking", "--user-data-dir="+filepath.Join(home, "profile"), "--remote-debugging-pipe")
	cmd.ExtraFiles = []*os.File{calls, from} // it reads 3 and writes 4
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+home, "XDG_CONFIG_HOME="+home)
	process, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	_, _, _ = calls.Close(), from.Close(), log.Close() // Chromium has them
	b := &tab{t: t, to: to, from: make(chan message, 1024)}
	go b.read(bufio.NewReader(answers))
	t.Cleanup(func() {
		_ = to.Close()
		if err := process.Kill(); err != nil {
			t.Error(err)
		}
		for range b.from { // until the reader has ended
		}
		_ = answers.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("Chromium's log:\n%s", text)
		}
	})
	b.attach()
	return b
}

// attach makes a tab, and subscribes to its events.
func (b *tab) attach() {
	b.t.Helper()
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Audits"} {
		b.call(domain+".enable", nil, nil)
	}
}

// read passes on Chromium's messages, each of which ends with a zero byte.
func (b *tab) read(from *bufio.Reader) {
	defer close(b.from)
	for {
		text, err := from.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m) == nil {
			b.from <- m
		}
	}
}

// call calls a method and waits for its answer.
func (b *tab) call(method string, params, result any) {
	b.t.Helper()
	b.calls++
	text, err := json.Marshal(params)
	if err != nil {
		b.t.Fatal(err)
	}
	call, err := json.Marshal(message{ID: b.calls, Method: method, Session: b.session, Params: text})
	if err != nil {
		b.t.Fatal(err)
	}
	if params == nil {
		call, _ = json.Marshal(message{ID: b.calls, Method: method, Session: b.session})
	}
	if _, err := b.to.Write(append(call, 0)); err != nil {
		b.t.Fatalf("%s: Chromium reads no more: %v", method, err)
	}
	for {
		m := b.next(method)
		if m.ID != b.calls {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

// next waits for a message, and records its events of the page.
func (b *tab) next(during string) message {
	b.t.Helper()
	select {
	case m, more := <-b.from:
		if !more {
			b.t.Fatalf("%s: Chromium has ended", during)
		}
		switch m.Method {
		case "Page.loadEventFired":
			b.loaded++
		case "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Page.javascriptDialogOpening", "Audits.issueAdded":
			b.said = append(b.said, fmt.Sprintf("%s %s", m.Method, m.Params))
		}
		return m
	case <-time.After(soon):
		b.t.Fatalf("%s: nothing from Chromium within %s", during, soon)
	}
	return message{}
}

// visit loads a page.
func (b *tab) visit(address string) {
	b.t.Helper()
	before := b.loaded
	var went struct{ ErrorText string }
	b.call("Page.navigate", map[string]any{"url": address}, &went)
	if went.ErrorText != "" {
		b.t.Fatalf("%s: %s", address, went.ErrorText)
	}
	b.awaitLoad(before)
}

// awaitLoad waits until more pages were loaded than before.
func (b *tab) awaitLoad(before int) {
	b.t.Helper()
	for b.loaded == before {
		b.next("loading")
	}
}

// eval returns the value of an expression in the page. The page's policy does not apply to DevTools.
func (b *tab) eval(expression string, value any) {
	b.t.Helper()
	var answer struct {
		Result struct{ Value json.RawMessage }
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &answer)
	if err := json.Unmarshal(answer.Result.Value, value); err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
}

// window sets the width of the window in CSS pixels, its height, the pixels of the screen for each of them, and the colours.
func (b *tab) window(width, height int, scale float64, dark bool) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 500}, nil)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	features := []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": features}, nil)
}

// screenshot returns the window as a PNG.
func (b *tab) screenshot() []byte {
	b.t.Helper()
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	picture, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return picture
}
