package integration

import (
	"bufio"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// logFields are the fields of the shipped files' access log. A file without Weir has only the first ones.
var logFields = []string{
	"time", "id", "method", "path", "protocol", "status", "flags", "details", "received_bytes", "sent_bytes", "duration_ms",
	"upstream", "attempts",
}

var weirLogFields = []string{"flow", "tier", "model", "wait_ms", "endpoint", "outcome", "bypass"}

// Every value of a client is one string in the access log: it cannot add a field or a line, or change another field.
func TestAccessLogCannotBeForged(t *testing.T) {
	t.Parallel()
	names := []string{
		`x" "status": 200, "flow":"vip`, `","status":418,"flow":"vip","z":"`, `\","status":418,"z":"\`, "a b\tc", "\\u0022",
		"%RESPONSE_CODE%", "\xff\xfe", `{"flow":"vip"}`,
	}
	for _, config := range envoyrun.Shipped() {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{envoys: []string{config}, noEPP: config == "direct"})
			fields := slices.Sorted(slices.Values(logFields))
			if config != "direct" {
				fields = slices.Sorted(slices.Values(slices.Concat(logFields, weirLogFields)))
			}
			for _, name := range names {
				s.raw("POST /v1/chat/completions?a=%22,%22status%22:418&b=\"x\" HTTP/1.1", "x-request-id: "+name)
			}
			entries := s.accessLog(len(names))
			if len(entries) != len(names) {
				t.Errorf("%d lines for %d requests", len(entries), len(names))
			}
			for i, entry := range entries {
				if got := slices.Sorted(maps.Keys(entry)); !slices.Equal(got, fields) {
					t.Errorf("%q: fields are %q, want %q", names[i], got, fields)
				}
				if names[i] != "\xff\xfe" && entry["id"] != names[i] || entry["method"] != "POST" || entry["flow"] == "vip" ||
					entry["status"] == 418.0 || entry["path"] != "/v1/chat/completions" {
					t.Errorf("%q: logged as %v", names[i], entry)
				}
			}
		})
	}
}

// raw sends a request with the given request line and header unchanged, and reads the first line of the answer.
func (s *scene) raw(line, header string) {
	s.t.Helper()
	body := chat("tiny", false)
	conn := s.write(fmt.Sprintf("%s\r\nhost: inference\r\n%s\r\nauthorization: %s\r\ncontent-type: application/json\r\n"+
		"content-length: %d\r\n\r\n%s", line, header, credentials(s.t, s.with.envoys[0]), len(body), body))
	defer conn.Close()
	if status, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		s.t.Errorf("no answer to %q: %q %v", header, status, err)
	}
}
