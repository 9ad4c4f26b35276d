package integration

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
	decisions "github.com/weir-epp/weir/pkg/decision"
)

// Through Envoy, a permitted tenant gets the record of its request's decision, in an answer and in a rejection. Another
// tenant gets nothing, and the question reaches no model server. The sink has only these records, and weir explain
// gives the same for the sink's file and the recording. With --hash-flow-keys no key is in any of them.
func TestExplainOnTheWire(t *testing.T) {
	t.Parallel()
	const ops, guest = "sk-ops-secret", "sk-guest-secret"
	file := filepath.Join(t.TempDir(), "decisions.json")
	s := start(t, setup{
		models: []modelsim.Config{modelsim.Fixed(4, time.Millisecond)}, flags: []string{"--hash-flow-keys"},
		config: `flows: { key: ["header:x-llm-d-inference-fairness-id"], weights: { ` + ops + `: 3 } }
requestBody: always
decisions: { explain: [` + ops + `], sink: file, file: ` + file + " }\n",
	})
	asks := func(tenant, id string, body string) answer {
		return s.send(ask{tenant: tenant, body: body, header: []string{"x-weir-explain", "1", "x-request-id", id}})
	}
	served := asks(ops, "the one", chat("tiny", false))
	wantServed(t, "a tenant that may ask", served)
	var told decisions.Record
	if err := json.Unmarshal([]byte(served.header.Get("x-weir-decision")), &told); err != nil {
		t.Fatalf("got %q: %v", served.header.Get("x-weir-decision"), err)
	}
	if told.Weight != 3 || told.Endpoint != s.models[0].Address() || told.Placement == nil || len(told.Placement.Candidates) != 1 || !strings.HasPrefix(told.Flow, "sha256:") {
		t.Errorf("told %s", told.JSON())
	}
	rejected := asks(ops, "malformed", "{")
	if text := rejected.header.Get("x-weir-decision"); rejected.status != http.StatusBadRequest || !strings.Contains(text, `"outcome":"bad-request"`) {
		t.Errorf("rejected with %d and %q", rejected.status, text)
	}
	other := asks(guest, "another", chat("tiny", false))
	wantServed(t, "a tenant that may not", other)
	if text := other.header.Get("x-weir-decision"); text != "" {
		t.Errorf("another tenant gets %s", text)
	}
	for _, r := range s.models[0].Records() {
		if r.Header.Get("x-weir-explain") != "" {
			t.Error("the question has reached a model server")
		}
	}
	var records []byte
	expect.True(t, "two records", func() bool {
		records, _ = os.ReadFile(file)
		return bytes.Count(records, []byte("\n")) == 2
	})
	recorded := s.epp.recording()
	dump, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"the recording": dump, "the sink's file": records} {
		if bytes.Contains(text, []byte("-secret")) || !bytes.Contains(text, []byte("sha256:")) {
			t.Errorf("a key is in %s, or nothing of it", name)
		}
	}
	for _, from := range []string{recorded, file} {
		out, err := runWeir(t, "explain", from, "--request", "the one")
		if err != nil || !strings.Contains(out, strings.Join(told.Lines(), "\n")) {
			t.Errorf("%s: %v\n%s\nwant\n%s", from, err, out, strings.Join(told.Lines(), "\n"))
		}
	}
	out, err := runWeir(t, "explain", recorded, "--last", "5m", "--flow", guest, "--slowest", "1")
	if err != nil || !strings.Contains(out, "It has 1 requests of flow") || !strings.Contains(out, "Request 2 (another) arrived") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := runWeir(t, "explain", recorded, "--request", "malformed"); err != nil || !strings.Contains(out, "It was refused before it came to the queue.") {
		t.Errorf("%v\n%s", err, out)
	}
	s.epp.settled()
}

// Without a recording its page has the key that switches it on.
func TestNoRecordingOnTheWire(t *testing.T) {
	t.Parallel()
	s := start(t, setup{models: []modelsim.Config{modelsim.Fixed(4, time.Millisecond)}, config: "recording: 0\n"})
	if a := expect.Get(s.epp.DebugURL + "/debug/recording"); a.Status != http.StatusNotFound || !strings.Contains(a.Body, "recording: 16") {
		t.Errorf("%+v", a)
	}
}
