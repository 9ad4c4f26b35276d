package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
)

// rejection is the expected content of a rejection.
type rejection struct {
	status int
	reason string
	kind   string // the error's type; default: server_error
	param  string // the bad field
	final  bool   // a retry is pointless: there is no Retry-After, and a header says so to clients
}

// wantRejection checks everything in a rejection: status, the reason in both headers, the OpenAI-shaped JSON body, and
// a Retry-After that both kinds of clients read alike.
func wantRejection(t *testing.T, got answer, want rejection) {
	t.Helper()
	wantRefusal(t, got, want)
	var body struct {
		Error map[string]any
	}
	if err := json.Unmarshal([]byte(got.body), &body); err != nil {
		t.Fatalf("the body is not JSON: %v: %q", err, got.body)
	}
	if want.kind == "" {
		want.kind = "server_error"
	}
	e := body.Error
	if message, _ := e["message"].(string); message == "" || e["type"] != want.kind || e["code"] != want.reason {
		t.Errorf("the error is %v, want a message, type %s, code %s", e, want.kind, want.reason)
	}
	// The clients' own types always have the field: null if there is nothing to name.
	if param, there := e["param"]; !there || want.param == "" && param != nil || want.param != "" && param != want.param {
		t.Errorf("the error's param is %v (there: %v), want %q", param, there, want.param)
	}
}

// wantAnthropicRejection is wantRejection for the shape that clients of /v1/messages read.
func wantAnthropicRejection(t *testing.T, got answer, want rejection) {
	t.Helper()
	wantRefusal(t, got, want)
	var body struct {
		Type  string
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal([]byte(got.body), &body); err != nil {
		t.Fatalf("the body is not JSON: %v: %q", err, got.body)
	}
	if body.Type != "error" || body.Error.Type != want.kind || body.Error.Message == "" {
		t.Errorf("the error is %s, want type error, of %s with a message", got.body, want.kind)
	}
}

// wantRefusal checks status and headers.
func wantRefusal(t *testing.T, got answer, want rejection) {
	t.Helper()
	if got.err != nil || got.status != want.status {
		t.Fatalf("got %d %q %v, want %d %s: %s", got.status, got.reason(), got.err, want.status, want.reason, got.body)
	}
	for name, value := range map[string]string{
		"x-weir-reason":                  want.reason,
		"x-llm-d-request-dropped-reason": want.reason,
		"content-type":                   "application/json",
	} {
		if values := got.header.Values(name); len(values) != 1 || values[0] != value {
			t.Errorf("%s is %q, want %q", name, values, value)
		}
	}
	if want.final {
		if got.header.Get("retry-after")+got.header.Get("retry-after-ms") != "" || got.header.Get("x-should-retry") != "false" {
			t.Errorf("the client is asked to come back: %v", got.header)
		}
		return
	}
	if ms := retryAfterMS(t, got); ms < 1000 || ms > 90_000 {
		t.Errorf("retry-after-ms is %d, want 1 s to 90 s", ms)
	}
}

// retryAfterMS returns the answer's retry-after-ms; retry-after is its ceiling in whole seconds.
func retryAfterMS(t *testing.T, got answer) int {
	t.Helper()
	ms, err := strconv.Atoi(got.header.Get("retry-after-ms"))
	if err != nil {
		t.Fatalf("retry-after-ms: %v", err)
	}
	if s, err := strconv.Atoi(got.header.Get("retry-after")); err != nil || s < 1 || s != (ms+999)/1000 {
		t.Errorf("retry-after is %q with retry-after-ms %d", got.header.Get("retry-after"), ms)
	}
	return ms
}

// accessLog waits until Envoy's access log has so many entries, and returns all.
func (s *scene) accessLog(least int) (entries []map[string]any) {
	s.t.Helper()
	expect.Eventually(s.t, "the access log", func() (err error) {
		if entries, err = s.envoy().AccessEntries(); err == nil && len(entries) < least {
			err = fmt.Errorf("has %d entries, want %d", len(entries), least)
		}
		return err
	})
	return entries
}

// logged waits for an entry of Envoy's access log in which these fields (name, value, name, value …) have these values;
// numbers are float64s.
func (s *scene) logged(fields ...any) map[string]any {
	s.t.Helper()
	var found map[string]any
	expect.Eventually(s.t, fmt.Sprintf("an entry of the access log with %v", fields), func() error {
		entries, err := s.envoy().AccessEntries()
		for _, entry := range entries {
			same := true
			for i := 0; i+1 < len(fields); i += 2 {
				same = same && entry[fields[i].(string)] == fields[i+1]
			}
			if same {
				found = entry
				return nil
			}
		}
		return errors.Join(err, errors.New("there is none"))
	})
	return found
}
